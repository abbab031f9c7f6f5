//! Machinery of tests that make their own inputs: generated programs, mutated texts, mutated kernels.

pub mod generate;
pub mod run;
