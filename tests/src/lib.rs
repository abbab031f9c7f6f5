//! Machinery of tests that make their own inputs: generated programs, mutated texts, mutated kernels.

pub mod corpus;
pub mod generate;
pub mod hot;
pub mod library;
pub mod mutants;
pub mod mutate;
pub mod pieces;
pub mod plain;
pub mod run;
pub mod shrink;
pub mod tidy;
pub mod vendor;
pub mod words;
