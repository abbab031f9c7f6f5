//! The pipeline, one pass a file. Passes read a target's facts; none knows a vendor's or architecture's name.

pub mod abi;
pub mod affine;
mod clean;
mod copies;
pub mod facts;
mod forward;
pub mod guard;
pub mod layout;
mod lower;
mod make;
pub mod order;
pub mod pipeline;
pub mod plan;
pub mod ranges;
pub mod reduce;
pub mod schedule;
pub mod share;
pub mod simplify;
mod terms;
pub mod tidy;
pub mod vectorize;
pub mod verify_order;
mod weight;
pub mod work;
