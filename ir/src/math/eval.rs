//! The functions on raw bits of any type.

use super::{Scalar as One, emit_f32, emit_f64};
use crate::num::{self, Bin, Fault, NumError, Scalar, Un};
use crate::program::{Elem, MathFn};
use pantile_abi::DType;

/// `f(args)` for operands of type `elem`. The result has that type; of `isnan` and `isinf`, bool.
pub fn eval(f: MathFn, elem: Elem, args: &[Scalar]) -> Result<Scalar, NumError> {
    let undefined = Err(NumError::Undefined { elem });
    match (f, args) {
        (MathFn::IsNan, &[x]) if elem.is_float() => return Ok(num::is_nan(elem, x) as u64),
        (MathFn::IsInf, &[x]) if elem.is_float() => return Ok(num::is_inf(elem, x) as u64),
        (MathFn::Abs, &[x]) => return num::unary(Un::Abs, elem, x),
        (MathFn::Fma, &[x, y, z]) => return num::fma(elem, x, y, z),
        (MathFn::Clamp, &[x, lo, hi]) => {
            let low = num::binary(Bin::Max, elem, x, lo)?;
            return num::binary(Bin::Min, elem, low, hi);
        }
        (_, &[x, y]) => {
            if let Some(op) = Bin::of_math(f) {
                return num::binary(op, elem, x, y);
            }
        }
        _ => {}
    }
    match elem {
        Elem::D(DType::F64) => {
            let value = with_args(args, f64::from_bits, |args| emit_f64(&One, f, args));
            value.map_or(undefined, |v| Ok(v.to_bits()))
        }
        Elem::D(d) if d.is_float() => {
            let value = with_args(args, |x| num::to_f64(elem, x) as f32, |args| emit_f32(&One, f, args));
            value.map_or(undefined, |v| num::from_f64(elem, v as f64))
        }
        _ => undefined,
    }
}

/// Calls `run` with up to three decoded arguments.
fn with_args<T: Copy + Default>(
    args: &[Scalar],
    decode: impl Fn(Scalar) -> T,
    run: impl FnOnce(&[T]) -> Option<T>,
) -> Option<T> {
    let mut values = [T::default(); 3];
    for (value, &x) in values.iter_mut().zip(args) {
        *value = decode(x);
    }
    run(values.get(..args.len())?)
}

/// Element-wise [`eval`]. An argument of one element stands for all; an element without a value becomes 0 and is
/// reported.
pub fn eval_slice(f: MathFn, elem: Elem, args: &[&[Scalar]], out: &mut [Scalar], faults: &mut Vec<Fault>) {
    let mut row = [0; 3];
    let row = &mut row[..args.len().min(3)];
    for (at, o) in out.iter_mut().enumerate() {
        for (x, arg) in row.iter_mut().zip(args) {
            *x = if arg.len() == 1 { arg[0] } else { arg[at] };
        }
        *o = eval(f, elem, row).unwrap_or_else(|error| {
            faults.push(Fault { at, error });
            0
        });
    }
}
