//! Where a Rust caller stands.

use crate::span::Span;
use std::panic::Location;

/// A builder that can name the line of Rust that called it.
pub trait Here {
    fn here(&self, at: &'static Location<'static>) -> Span;
}
