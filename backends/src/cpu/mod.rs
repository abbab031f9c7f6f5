//! The CPU back end: verified tile programs to native code through LLVM.
//!
//! One function a kernel, over a range of blocks ([`pantile_abi::CpuEntry`]). Tiles live in scratch memory of the
//! running range; element-wise statements are vector loops over the valid box, products a register-blocked
//! micro-kernel, kernels that name threads are split at collectives. Under `math exact` results equal the
//! interpreter's bit for bit. Nothing here decides a mapping or opens a file.

mod arith;
mod bounds;
mod collect;
mod convert;
mod emit;
mod error;
mod expr;
mod externs;
mod frame;
mod gemm;
mod header;
mod jit;
mod lanes;
mod machine;
mod masks;
mod math;
mod object;
mod paths;
mod plain_stores;
mod print;
mod reduce;
mod reducer;
mod region;
mod rings;
mod roles;
mod side;
mod stmt;
mod threads;
mod tile;
mod uniform;
mod untrusted;
mod value;
mod wide;

pub use error::{CpuError, Result};
pub use header::header;
pub use jit::Jit;
pub use machine::{Host, Machine};
pub use object::{Built, KernelCode, build, identity};
