//! The reference interpreter as a device: arrays in, canonical bits through, arrays out.

use super::Compiled;
use super::execute::{Call, Ran, RunError, Value};
use pantile_abi::{ArgValue, DType, Mode, ScalarValue, TensorArg};
use pantile_ir::diag::Diagnostics;
use pantile_ir::interp::{self, Fault, Options, Report, Tensor};
use pantile_runtime::HostTensor;
use std::time::Instant;

pub(super) fn execute(
    compiled: &Compiled,
    args: &mut [(String, Value)],
    options: &Options,
) -> Result<Ran, RunError> {
    // the same checks and words as on every other device
    let mut call = Call::new(&compiled.abi, args)?;
    let bound = call.bound.clone();
    let params = &compiled.abi.params;
    let mut values = Vec::with_capacity(params.len());
    for (param, arg) in params.iter().zip(&bound.args) {
        values.push(match (arg, call.memory(param.name())) {
            (ArgValue::Tensor(view), Some(memory)) => {
                let out = param.as_tensor().is_some_and(|p| p.mode == Mode::Out);
                interp::ArgValue::Tensor(tensor(memory, view, out).map_err(|f| stopped(*f))?)
            }
            (ArgValue::Scalar(s), _) => interp::ArgValue::Scalar(scalar(*s)),
            // a bound tensor always has its memory
            (ArgValue::Tensor(_), None) => continue,
        });
    }
    let start = Instant::now();
    let result = interp::run_host(&compiled.program, &bound.dims, &mut values, options);
    let seconds = start.elapsed().as_secs_f64();
    for (param, value) in params.iter().zip(&values) {
        let writes = param.as_tensor().is_some_and(|t| t.mode.writes());
        if let (true, interp::ArgValue::Tensor(from), Some(to)) = (writes, value, call.memory(param.name())) {
            copy_back(to, from);
        }
    }
    call.finish()?;
    match result {
        Ok(report) => Ok(Ran { prints: prints(report), seconds }),
        Err(fault) => Err(stopped(*fault)),
    }
}

fn stopped(mut fault: Fault) -> RunError {
    let prints = prints(std::mem::take(&mut fault.before));
    RunError::Stopped { diagnostics: Diagnostics::from_iter([fault.to_diagnostic()]), prints }
}

/// What was printed, with a last line on what was not kept.
fn prints(report: Report) -> Vec<String> {
    let mut prints = report.prints;
    if report.more_prints > 0 {
        prints.push(format!("... and {} more lines, which are left out", report.more_prints));
    }
    prints
}

/// Elements in memory order; packed ones come apart and are contiguous.
fn tensor(memory: &HostTensor, view: &TensorArg, out: bool) -> Result<Tensor, Box<Fault>> {
    let shape: Vec<i64> = view.shape.iter().map(|&n| n as i64).collect();
    let bits = (0..memory.len()).map(|i| canonical(memory.dtype(), memory.bits(i)));
    let mut t = Tensor::gathered(memory.dtype(), &shape, bits, out)?;
    if memory.packed().is_none() {
        t.strides = view.strides.iter().map(|&s| s as i64).collect();
    }
    Ok(t)
}

/// Elements that were never written keep what the array held.
fn copy_back(to: &mut HostTensor, from: &Tensor) {
    for (i, (&bits, &poison)) in from.bits.iter().zip(&from.poison).enumerate() {
        if !poison {
            to.set_bits(i, bits);
        }
    }
}

/// Sign- or zero-extended, as the interpreter keeps values.
fn canonical(dtype: DType, bits: u64) -> u64 {
    ScalarValue::Bits(dtype, bits).as_int().map_or(bits, |v| v as u64)
}

fn scalar(s: ScalarValue) -> u64 {
    match s {
        ScalarValue::Index(v) => v as u64,
        ScalarValue::Bits(d, bits) => canonical(d, bits),
    }
}
