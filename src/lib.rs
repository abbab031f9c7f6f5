//! Pantile: tile kernels written once, compiled for CPUs and GPUs.
//!
//! This crate is the front door: it re-exports the parts and ties them together. [`ir`] is the language, [`passes`]
//! the pipeline, [`runtime`] what runs; the command line (`src/main.rs`) is a user of this crate like any other.

pub mod driver;

pub use pantile_abi as abi;
pub use pantile_backends as backends;
pub use pantile_ir as ir;
pub use pantile_passes as passes;
pub use pantile_runtime as runtime;

/// The LLVM that the CPU back end of this build calls, if it has one.
pub fn llvm_version() -> Option<&'static str> {
    match (cfg!(feature = "cpu-llvm22"), cfg!(feature = "cpu-llvm19")) {
        (true, _) => Some("22"),
        (false, true) => Some("19"),
        (false, false) => None,
    }
}
