//! Element-wise operations on dense runs of elements: the one bridge to `num`, `math` and the functions of a program.

use super::fault::{Exec, Fault, fault, malformed};
use super::pure;
use crate::codes;
use crate::math;
use crate::num::{self, Bin, NumError, Rounding, Un};
use crate::program::{Elem, Expr, MathFn, Program, PureFn};
use std::borrow::Cow;

/// An element-wise operation.
#[derive(Clone, Copy)]
pub(super) enum Ew<'p> {
    Un(Un),
    Bin(Bin),
    /// condition, then, otherwise
    Select,
    /// An `.approx` form is the exact function here, which is within its bound.
    Math(MathFn),
    Cast {
        to: Elem,
        sat: bool,
    },
    Bits(Elem),
    Call(&'p PureFn),
}

/// A fault with the position of its element in the run.
pub(super) struct Failed {
    pub at: usize,
    pub fault: Box<Fault>,
}

pub(super) type Dense<'a> = [Cow<'a, [u64]>];

impl<'p> Ew<'p> {
    /// The element-wise operation of an expression, if it is one.
    pub fn of(expr: &Expr, program: &'p Program) -> Exec<Option<Ew<'p>>> {
        Ok(Some(match expr {
            Expr::Unary(op, _) => Ew::Un((*op).into()),
            Expr::Binary(op, ..) => Ew::Bin((*op).into()),
            Expr::Select { .. } => Ew::Select,
            Expr::Math { f, .. } => Ew::Math(*f),
            Expr::Cast { to, sat, .. } => Ew::Cast { to: *to, sat: *sat },
            Expr::Bits { to, .. } => Ew::Bits((*to).into()),
            Expr::Intrinsic { id, .. } => {
                let def = program.intrinsics.get(*id).ok_or_else(|| malformed("an unknown intrinsic"))?;
                Ew::Call(&def.means)
            }
            _ => return Ok(None),
        }))
    }
}

/// The fault of an operation without a value.
pub(super) fn num_fault(error: NumError) -> Box<Fault> {
    let code = match error {
        NumError::DivisionByZero => codes::DIVIDED_BY_ZERO,
        NumError::Shift { .. } => codes::SHIFTED_TOO_FAR,
        NumError::IndexOverflow => codes::INDEX_TOO_LARGE,
        NumError::OutOfRange { .. } => codes::CONVERSION_RANGE,
        NumError::Undefined { .. } => codes::NOT_VERIFIED,
    };
    let f = fault(code, error.to_string());
    match error {
        NumError::OutOfRange { to } => f.help(format!("`{to}.sat(...)` clamps to the range")),
        NumError::DivisionByZero => f.help("guard the division: `if d != 0 { n / d } else { ... }`"),
        _ => f,
    }
}

fn first(faults: Vec<num::Fault>, operands: &Dense, elems: &[Elem]) -> Result<(), Failed> {
    let Some(f) = faults.into_iter().min_by_key(|f| f.at) else { return Ok(()) };
    Err(failed(f.at, f.error, operands, elems))
}

fn failed(at: usize, error: NumError, operands: &Dense, elems: &[Elem]) -> Failed {
    let mut fault = num_fault(error);
    for (i, (run, &elem)) in operands.iter().zip(elems).enumerate() {
        let bits = if run.len() == 1 { run.first() } else { run.get(at) };
        if let Some(&bits) = bits {
            let name = match (operands.len(), i) {
                (1, _) => "the operand",
                (2, 0) => "the left operand",
                (2, _) => "the right operand",
                _ => "an operand",
            };
            fault = fault.value(name, num::print_value(elem, bits));
        }
    }
    Failed { at, fault }
}

/// The fault of an operation on single values.
pub(super) fn scalar_fault(error: NumError, elems: &[Elem], x: &[u64]) -> Box<Fault> {
    let operands: Vec<Cow<[u64]>> = x.iter().map(|&v| Cow::Owned(vec![v])).collect();
    failed(0, error, &operands, elems).fault
}

/// Applies an operation to `n` elements. An operand of one element stands for all.
pub(super) fn compute<'p>(
    program: &'p Program,
    op: Ew<'p>,
    elems: &[Elem],
    operands: &Dense,
    n: usize,
) -> Result<Vec<u64>, Failed> {
    let mut out = vec![0; n];
    let mut faults = Vec::new();
    match (op, operands) {
        (Ew::Un(op), [a]) => num::unary_slice(op, elems[0], a, &mut out, &mut faults),
        (Ew::Bin(op), [a, b]) => num::binary_slice(op, elems[0], a, b, &mut out, &mut faults),
        (Ew::Select, [c, a, b]) => {
            let pick = |run: &[u64], i: usize| if run.len() == 1 { run[0] } else { run[i] };
            for (i, o) in out.iter_mut().enumerate() {
                *o = if pick(c, i) != 0 { pick(a, i) } else { pick(b, i) };
            }
        }
        (Ew::Cast { to, sat }, [a]) => {
            let rounding = if sat { Rounding::Saturate } else { Rounding::Nearest };
            num::convert_slice(elems[0], to, a, rounding, &mut out, &mut faults);
        }
        (Ew::Bits(to), [a]) => {
            for (i, o) in out.iter_mut().enumerate() {
                let bits = if a.len() == 1 { a[0] } else { a[i] };
                let same = num::bitcast(elems[0], to, bits);
                *o = same.ok_or_else(|| Failed { at: i, fault: malformed("a bit view of another width") })?;
            }
        }
        (Ew::Math(f), _) => {
            let args: Vec<&[u64]> = operands.iter().map(|o| &o[..]).collect();
            math::eval_slice(f, elems[0], &args, &mut out, &mut faults);
        }
        (Ew::Call(func), _) => {
            let mut results = pure::call(program, func, operands, n)?;
            return match results.pop() {
                Some(result) if results.is_empty() => Ok(result),
                _ => Err(Failed { at: 0, fault: malformed("an intrinsic with more than one result") }),
            };
        }
        _ => return Err(Failed { at: 0, fault: malformed("an operator with the wrong number of operands") }),
    }
    first(faults, operands, elems)?;
    Ok(out)
}
