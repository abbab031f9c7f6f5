//! The exact meaning of scalar operations, on raw bits, for every element type.
//!
//! Interpreter, constant folding and the tests of the back ends ask this module what an operation yields. It knows
//! no expression, no tile and no span: a wrong operation is a [`NumError`], the caller says where it happened.
//!
//! A scalar is a `u64`. Integers are sign- or zero-extended to 64 bits, `bool` is 0 or 1, floats are their bit
//! pattern with zeros above. Every function returns that canonical form and expects it.
//!
//! * iN/uN wrap, also at 4 bits; `index` is an `i64` whose overflow is an error. `/` and `%` round down (floor).
//! * f32 and f64 follow IEEE 754; f16, bf16 and f8 compute in f32 and round once, which is correctly rounded for
//!   `+ - * /` and the square root (24 ≥ 2·11 + 2 bits). `fma` is rounded once in every type.
//! * `min`/`max` are IEEE 754-2019 minimum/maximum: NaN wins, −0 < +0. Comparisons with NaN are false, `!=` true.
//! * All NaNs are one value: sign and payload are unspecified.

mod convert;
mod kind;
mod literal;
mod minifloat;
mod ops;
mod slice;
#[cfg(test)]
mod tests;

pub use convert::{
    Rounding, bitcast, bitcast_slice, convert, convert_slice, from_f64, from_int, to_f64, to_i64,
};
pub use literal::{LiteralError, float_literal, int_literal, one_nan, parse_value, print_value};
pub use ops::{Bin, Un, binary, fma, identity, is_inf, is_nan, unary};
pub use slice::{axpy_slice, binary_slice, fma_slice, fold_slice, unary_slice};

use crate::program::Elem;
use pantile_abi::DType;
use std::fmt;

/// Raw bits of one value, in the canonical form of the module's head.
pub type Scalar = u64;

/// `index` and every element type.
pub fn all_elems() -> impl Iterator<Item = Elem> {
    std::iter::once(Elem::Index).chain(DType::ALL.into_iter().map(Elem::D))
}

/// Width of a scalar in its canonical place: 64 for `index`, 8 for bool.
pub(crate) const fn bits(elem: Elem) -> u32 {
    match elem {
        Elem::Index => 64,
        Elem::D(dtype) => dtype.bits(),
    }
}

/// Smallest and largest value of an integer type or bool; `None` for floats.
pub fn int_range(elem: Elem) -> Option<(i128, i128)> {
    let bits = bits(elem);
    match elem {
        Elem::D(DType::Bool) => Some((0, 1)),
        Elem::D(dtype) if !dtype.is_int() => None,
        Elem::D(dtype) if !dtype.is_signed() => Some((0, (1i128 << bits) - 1)),
        _ => Some((-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)),
    }
}

/// Why an operation has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumError {
    DivisionByZero,
    /// A negative shift, or one by at least the type's width.
    Shift {
        amount: i64,
        width: u32,
    },
    /// `index` is a mathematical integer; the result does not fit into 64 bits.
    IndexOverflow,
    /// A conversion without `.sat` of a value (or NaN) that the type does not have.
    OutOfRange {
        to: Elem,
    },
    /// The verifier admits no such operation on this type.
    Undefined {
        elem: Elem,
    },
}

impl fmt::Display for NumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NumError::DivisionByZero => write!(f, "division by zero"),
            NumError::Shift { amount, width } => {
                write!(f, "shift by {amount}, but the type has {width} bits")
            }
            NumError::IndexOverflow => write!(f, "the result does not fit into an index (64 bits)"),
            NumError::OutOfRange { to } => write!(f, "the value is outside the range of {to}"),
            NumError::Undefined { elem } => write!(f, "this operation is not defined for {elem}"),
        }
    }
}

impl std::error::Error for NumError {}

/// An element of a slice operation that has no value; the output there is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub at: usize,
    pub error: NumError,
}
