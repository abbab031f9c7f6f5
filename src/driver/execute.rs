//! Running a compiled program on arrays in memory.

use super::Compiled;
use pantile_abi::{ArgValue, BindError, BoundArgs, Program, ScalarValue, bind_named};
use pantile_ir::diag::{Code, Diagnostic, Diagnostics};
use pantile_ir::span::Span;
use pantile_runtime::arrange::Arranged;
use pantile_runtime::{self as runtime, HostTensor};

/// An argument by name.
#[derive(Debug)]
pub enum Value {
    Tensor(HostTensor),
    Scalar(ScalarValue),
}

/// Where a program runs.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "made once a run")]
pub enum Device {
    /// The reference interpreter: slow, exact, reports every misuse.
    Interp(pantile_ir::interp::Options),
    /// Native code on this machine.
    #[cfg(feature = "cpu")]
    Cpu(super::cpu::Options),
}

/// Why a run failed.
#[derive(Debug)]
pub enum RunError {
    /// Arguments that do not fit, missing memory or devices, faults without a place in the source.
    Runtime(runtime::Error),
    /// Faults and refusals with a place in the source.
    Source(Diagnostics),
    /// A fault of a kernel, and what it printed before, as in [`Ran::prints`].
    Stopped { diagnostics: Diagnostics, prints: Vec<String> },
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
        #[cfg(feature = "cpu")]
        Device::Cpu(options) => super::cpu::execute(compiled, args, options),
    }
}

impl RunError {
    pub fn into_diagnostics(self) -> Diagnostics {
        match self {
            RunError::Runtime(e) => Diagnostics::from_iter([diagnostic(e)]),
            RunError::Source(d) | RunError::Stopped { diagnostics: d, .. } => d,
        }
    }
}

/// What the runtime reports, as a diagnostic without a place in a text.
pub fn diagnostic(e: runtime::Error) -> Diagnostic {
    let mut d = Diagnostic::error(Code(e.kind.code()), Span::default(), e.message);
    d.help.extend(e.help);
    d
}

/// Arguments in the order of the parameters, laid out as the declared strides demand. Tensors are taken out of the
/// caller's list and go back with [`Call::finish`].
pub(super) struct Call<'a> {
    given: &'a mut [(String, Value)],
    tensors: Vec<(usize, Arranged)>,
    pub bound: BoundArgs,
}

impl<'a> Call<'a> {
    pub fn new(program: &Program, given: &'a mut [(String, Value)]) -> Result<Call<'a>, RunError> {
        let mut views = Vec::with_capacity(given.len());
        let mut tensors = Vec::new();
        for (i, (name, value)) in given.iter_mut().enumerate() {
            let view = match value {
                Value::Scalar(s) => ArgValue::Scalar(*s),
                Value::Tensor(t) => {
                    let abi = program.param_index(name).and_then(|p| program.params[p].as_tensor());
                    match abi.map(|abi| Arranged::copy(abi, t)).transpose()?.flatten() {
                        // row-major, as it is
                        None => ArgValue::Tensor(t.arg_mut()),
                        Some(mut arranged) => {
                            let view = arranged.arg();
                            tensors.push((i, arranged));
                            ArgValue::Tensor(view)
                        }
                    }
                }
            };
            views.push((name.clone(), view));
        }
        let bound = bind_named(program.signature(), views)?;
        Ok(Call { given, tensors, bound })
    }

    /// The memory behind the tensor of this name: its own, or the arranged copy.
    pub fn memory(&mut self, name: &str) -> Option<&mut HostTensor> {
        let at = self.given.iter().position(|(n, _)| n == name)?;
        match self.tensors.iter_mut().find(|(i, _)| *i == at) {
            Some((_, arranged)) => Some(arranged.memory_mut()),
            None => match &mut self.given[at].1 {
                Value::Tensor(t) => Some(t),
                Value::Scalar(_) => None,
            },
        }
    }

    /// Brings arranged tensors back to the caller's order.
    pub fn finish(self) -> Result<(), RunError> {
        for (i, arranged) in self.tensors {
            self.given[i].1 = Value::Tensor(arranged.into_tensor()?);
        }
        Ok(())
    }
}
