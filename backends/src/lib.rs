//! Back ends. Each takes a verified program and gives code or a named error; none decides how a kernel is mapped.

#[cfg(feature = "cpu")]
pub mod cpu;
