//! Pantile's tile IR: the language, its meaning, and the facts about targets.
//!
//! The way of a program: `text` reads it into `ast`, `elab` specialises and types it into a [`program::Program`],
//! `verify` checks it, `interp` runs it, `print` writes it back. Later stages are the same data structures with
//! more of their fields filled. `layout`, `target` and `effects` are what the passes ask.
//!
//! Nothing in this crate emits code, opens a device or knows a vendor's library.

pub mod arena;
pub mod ast;
pub mod builder;
pub mod codes;
pub mod diag;
pub mod effects;
pub mod elab;
pub mod explain;
pub mod hash;
pub mod interp;
pub mod layout;
pub mod math;
pub mod num;
pub mod print;
pub mod program;
pub mod span;
pub mod target;
pub mod text;
pub mod typing;
pub mod verify;

pub use pantile_abi::DType;
