//! The reference interpreter as a device: arrays in, canonical bits through, arrays out.

use super::Compiled;
use super::execute::{Ran, RunError, Value, views};
use pantile_abi::{Mode, ParamAbi, ScalarValue, bind_named};
use pantile_ir::interp::{self, Options, Tensor};
use std::time::Instant;

pub(super) fn execute(
    compiled: &Compiled,
    args: &mut [(String, Value)],
    options: &Options,
) -> Result<Ran, RunError> {
    // the same checks and words as on every other device
    let bound = bind_named(compiled.abi.signature(), views(args))?;
    let mut values = Vec::with_capacity(compiled.abi.params.len());
    for (param, bound) in compiled.abi.params.iter().zip(&bound.args) {
        values.push(match (bound, find(args, param.name())) {
            (pantile_abi::ArgValue::Tensor(_), Some(Value::Tensor(t))) => {
                interp::ArgValue::Tensor(tensor(param, t))
            }
            (pantile_abi::ArgValue::Scalar(ScalarValue::Index(v)), _) => interp::ArgValue::Scalar(*v as u64),
            (pantile_abi::ArgValue::Scalar(s), _) => interp::ArgValue::Scalar(canonical(*s)),
            (pantile_abi::ArgValue::Tensor(_), _) => continue,
        });
    }
    let start = Instant::now();
    let result = interp::run_host(&compiled.program, &bound.dims, &mut values, options);
    let seconds = start.elapsed().as_secs_f64();
    for (param, value) in compiled.abi.params.iter().zip(&values) {
        let writes = param.as_tensor().is_some_and(|t| t.mode.writes());
        if let (true, interp::ArgValue::Tensor(from), Some(Value::Tensor(to))) =
            (writes, value, find(args, param.name()))
        {
            for (i, (&bits, &poison)) in from.bits.iter().zip(&from.poison).enumerate() {
                if !poison {
                    to.set_bits(i, bits);
                }
            }
        }
    }
    match result {
        Ok(report) => Ok(Ran { prints: report.prints, seconds }),
        Err(fault) => Err(fault.to_diagnostic().into()),
    }
}

fn find<'a>(args: &'a mut [(String, Value)], name: &str) -> Option<&'a mut Value> {
    args.iter_mut().find(|(n, _)| n == name).map(|(_, v)| v)
}

fn tensor(param: &ParamAbi, t: &pantile_runtime::HostTensor) -> Tensor {
    let shape: Vec<i64> = t.shape().iter().map(|&n| n as i64).collect();
    if param.as_tensor().is_some_and(|p| p.mode == Mode::Out) {
        return Tensor::unwritten(t.dtype(), &shape);
    }
    Tensor::new(t.dtype(), &shape, (0..t.len()).map(|i| t.bits(i)).collect())
}

/// Sign- or zero-extended, as the interpreter keeps scalars.
fn canonical(s: ScalarValue) -> u64 {
    match (s.as_int(), s) {
        (Some(v), _) => v as u64,
        (None, ScalarValue::Bits(_, bits)) => bits,
        (None, ScalarValue::Index(v)) => v as u64,
    }
}
