//! Running a compiled program on arrays in memory.

use super::Compiled;
use pantile_abi::{ArgValue, BindError, ScalarValue};
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_runtime::{self as runtime, HostTensor};

/// An argument by name.
#[derive(Debug)]
pub enum Value {
    Tensor(HostTensor),
    Scalar(ScalarValue),
}

/// Where a program runs.
#[derive(Clone, Debug)]
pub enum Device {
    /// The reference interpreter: slow, exact, reports every misuse.
    Interp(pantile_ir::interp::Options),
    /// Native code on this machine.
    #[cfg(any(feature = "cpu", feature = "cpu-llvm19"))]
    Cpu(super::cpu::Options),
}

/// Why a run failed.
#[derive(Debug)]
pub enum RunError {
    /// Arguments that do not fit, missing memory or devices, faults without a place in the source.
    Runtime(runtime::Error),
    /// Faults and refusals with a place in the source.
    Source(Diagnostics),
}

impl From<runtime::Error> for RunError {
    fn from(e: runtime::Error) -> RunError {
        RunError::Runtime(e)
    }
}

impl From<BindError> for RunError {
    fn from(e: BindError) -> RunError {
        RunError::Runtime(e.into())
    }
}

impl From<Diagnostic> for RunError {
    fn from(d: Diagnostic) -> RunError {
        RunError::Source(Diagnostics::from_iter([d]))
    }
}

/// What a run reports beside its outputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ran {
    /// Lines of `print`, where the device gathers them; native code prints by itself.
    pub prints: Vec<String>,
    /// Seconds on the device, compiling and copying excluded.
    pub seconds: f64,
}

/// Runs the program; tensors that it writes are changed in place.
pub fn execute(compiled: &Compiled, args: &mut [(String, Value)], device: &Device) -> Result<Ran, RunError> {
    match device {
        Device::Interp(options) => super::interp::execute(compiled, args, options),
        #[cfg(any(feature = "cpu", feature = "cpu-llvm19"))]
        Device::Cpu(options) => super::cpu::execute(compiled, args, options),
    }
}

/// Arguments as the contract sees them. The views are valid while `args` is not moved.
pub(super) fn views(args: &mut [(String, Value)]) -> Vec<(String, ArgValue)> {
    let view = |(name, value): &mut (String, Value)| {
        let value = match value {
            Value::Tensor(t) => ArgValue::Tensor(t.arg_mut()),
            Value::Scalar(s) => ArgValue::Scalar(*s),
        };
        (name.clone(), value)
    };
    args.iter_mut().map(view).collect()
}
