//! Back ends. Each takes a verified program and gives code or a named error; none decides how a kernel is mapped.

#[cfg(feature = "cpu")]
pub mod cpu;

#[cfg(any(feature = "cuda", feature = "musa"))]
pub mod clike;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "musa")]
pub mod musa;
