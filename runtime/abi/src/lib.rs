//! The contract between compiler, runtime, simulator and ahead-of-time launchers.
//!
//! Plain data only: element types, integer expressions over dims, kernel and program descriptions.
//! Nothing here may compile, allocate device memory or know a vendor.

mod dtype;

pub use dtype::{DType, DTypeKind};
