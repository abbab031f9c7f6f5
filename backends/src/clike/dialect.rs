//! What differs between vendors of C-like sources: a table and a few words.

use super::prelude::{Arithmetic, Entry};

/// A vendor's way to write what this crate emits.
pub struct Dialect {
    pub name: &'static str,
    /// How files of it end.
    pub extension: &'static str,
    /// Headers of every source.
    pub includes: &'static [&'static str],
    /// Functions laid over the shared ones; the first that fits wins.
    pub prelude: &'static [Entry],
    pub arithmetic: Arithmetic,
    /// Alignment of the dynamic shared arena.
    pub arena_align: u64,
    /// The compiler's flag that keeps products and sums apart.
    pub no_contraction: &'static str,
}
