//! The pipeline, one pass a file. Passes read a target's facts; none knows a vendor's or architecture's name.

pub mod abi;
pub mod affine;
mod copies;
mod make;
pub mod pipeline;
pub mod ranges;
pub mod reduce;
pub mod vectorize;
