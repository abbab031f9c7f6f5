//! The contract between compiler, runtime, simulator and ahead-of-time launchers.
//!
//! Plain data and the rules that need nothing else: element types ([`DType`]), integer expressions over dims
//! ([`IExpr`]), what a kernel or op takes and does ([`KernelAbi`], [`Program`]), views of tensors ([`TensorArg`]),
//! and how arguments meet parameters ([`bind()`]).
//! Nothing here may compile, allocate device memory, read through a pointer or know a vendor.

mod bind;
mod codec;
mod cpu;
mod dtype;
mod expr;
mod infer;
mod overlap;
mod program;
mod tensor;

pub use bind::{BindError, BindRule, BoundArgs, Signature, bind, bind_named};
pub use cpu::{CpuAbi, CpuEntry, CpuFault, cpu_words};
pub use dtype::{DType, DTypeKind};
pub use expr::{EvalError, IExpr, IOp, Names, Values};
pub use infer::{Known, infer_shapes};
pub use program::{
    Arg, KernelAbi, Mode, PackOrder, Packing, ParamAbi, Program, ScalarAbi, ScalarType, Step, TensorAbi,
};
pub use tensor::{ArgValue, Ptr, ScalarValue, TensorArg, contiguous_strides};
