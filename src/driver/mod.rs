//! From a file to results: reading, formatting, specialising, running, testing.
//!
//! Everything that the command line can do with kernels is a function here, for other programs to call. Nothing here
//! prints or ends the process; whatever goes wrong is a diagnostic.

mod source;

pub use source::{format_source, read_source};
