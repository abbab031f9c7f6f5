//! From a file to results: reading, formatting, specialising, running, testing.
//!
//! Everything that the command line can do with kernels is a function here, for other programs to call. Nothing here
//! prints or ends the process; whatever goes wrong is a diagnostic.

mod compile;
#[cfg(any(feature = "cpu", feature = "cpu-llvm19"))]
pub mod cpu;
mod execute;
mod interp;
mod source;

pub use compile::{Compiled, compile, load};
pub use execute::{Device, Ran, RunError, Value, execute};
pub use source::{format_source, read_source};
