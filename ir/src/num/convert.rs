//! Conversions between all types, and reinterpretation of bits.
//!
//! * to a float: round to nearest, ties to even; what is too large becomes infinity (NaN in f8e4m3, which has none);
//!   `.sat` clamps to the largest finite value, infinity included, and leaves NaN.
//! * float to integer: round to nearest even. A value outside the type's range, or NaN, is an error here (compiled
//!   code gives some value of the type); `.sat` clamps and turns NaN into 0.
//! * integer to integer: the low bits (wraps); `.sat` clamps. `index` cannot hold a u64 above 2^63 − 1: an error.
//! * to bool: `x != 0`, so NaN is true; from bool: 0 or 1.

use super::kind::{Kind, with_kind};
use super::{Fault, NumError, Scalar, bits, int_range};
use crate::program::Elem;
use pantile_abi::DType;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// `T(x)`
    Nearest,
    /// `T.sat(x)`
    Saturate,
}

/// A value of any type without loss.
#[derive(Clone, Copy)]
pub(super) enum Exact {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl Exact {
    /// As f64 for one more rounding to at most 51 bits: integers too wide for f64 are rounded to odd, which keeps
    /// them off every tie.
    pub(super) fn to_f64_sticky(self) -> f64 {
        match self {
            Exact::Float(v) => v,
            Exact::Unsigned(v) => sticky(v),
            Exact::Signed(v) => {
                let magnitude = sticky(v.unsigned_abs());
                if v < 0 { -magnitude } else { magnitude }
            }
        }
    }
}

fn sticky(v: u64) -> f64 {
    let dropped = (64 - v.leading_zeros()).saturating_sub(53);
    let kept = v >> dropped;
    let lost = kept << dropped != v;
    (kept | lost as u64) as f64 * (1u64 << dropped) as f64
}

pub(super) fn float_to_signed(v: f64, bits: u32, rounding: Rounding) -> Option<i64> {
    let r = v.round_ties_even();
    let end = (1u64 << (bits - 1)) as f64;
    if r >= -end && r < end {
        return Some(r as i64);
    }
    let max = i64::MAX >> (64 - bits);
    match rounding {
        Rounding::Nearest => None,
        Rounding::Saturate if v.is_nan() => Some(0),
        Rounding::Saturate => Some(if v < 0.0 { -max - 1 } else { max }),
    }
}

pub(super) fn float_to_unsigned(v: f64, bits: u32, rounding: Rounding) -> Option<u64> {
    let r = v.round_ties_even();
    let end = (1u64 << (bits - 1)) as f64 * 2.0;
    if r >= 0.0 && r < end {
        return Some(r as u64);
    }
    match rounding {
        Rounding::Nearest => None,
        Rounding::Saturate => Some(if v > 0.0 { u64::MAX >> (64 - bits) } else { 0 }),
    }
}

/// `to(x)` or `to.sat(x)` for `x` of type `from`.
pub fn convert(from: Elem, to: Elem, x: Scalar, rounding: Rounding) -> Result<Scalar, NumError> {
    let exact = with_kind!(from, k => k.exact(k.load(x)));
    with_kind!(to, k => k.cast(exact, rounding))
}

/// Elementwise [`convert`]. `a` may have one element for all of `out`.
pub fn convert_slice(
    from: Elem,
    to: Elem,
    a: &[Scalar],
    rounding: Rounding,
    out: &mut [Scalar],
    faults: &mut Vec<Fault>,
) {
    with_kind!(from, kf => with_kind!(to, kt => convert_kinds(kf, kt, a, rounding, out, faults)))
}

fn convert_kinds<F: Kind, T: Kind>(
    from: F,
    to: T,
    a: &[Scalar],
    rounding: Rounding,
    out: &mut [Scalar],
    faults: &mut Vec<Fault>,
) {
    let step = super::slice::step(a.len(), out.len());
    for (i, o) in out.iter_mut().enumerate() {
        *o = match to.cast(from.exact(from.load(a[i * step])), rounding) {
            Ok(v) => v,
            Err(error) => {
                faults.push(Fault { at: i, error });
                0
            }
        };
    }
}

/// Sign- or zero-extends the low bits of `raw`; `None` for a bool that is neither 0 nor 1.
fn canonical(elem: Elem, raw: u64) -> Option<Scalar> {
    let unused = 64 - bits(elem);
    let raw = raw << unused >> unused;
    match elem {
        Elem::D(DType::Bool) if raw > 1 => None,
        Elem::D(d) if d.is_int() && d.is_signed() => Some(((raw << unused) as i64 >> unused) as u64),
        _ => Some(raw),
    }
}

/// The bits of `x` as a value of a type of the same width; `None` if the widths differ, or if the bits are no bool.
pub fn bitcast(from: Elem, to: Elem, x: Scalar) -> Option<Scalar> {
    if bits(from) == bits(to) { canonical(to, x) } else { None }
}

/// Reinterprets a row of values, which may change their number; the first value holds the lowest bits. `None` if
/// the row is no whole number of `to`.
pub fn bitcast_slice(from: Elem, to: Elem, a: &[Scalar]) -> Option<Vec<Scalar>> {
    let (wide, narrow) = (bits(from).max(bits(to)), bits(from).min(bits(to)));
    let parts = (wide / narrow) as usize;
    if bits(from) >= bits(to) {
        let pieces = a.iter().flat_map(|&x| (0..parts as u32).map(move |i| x >> (i * narrow)));
        return pieces.map(|raw| canonical(to, raw)).collect();
    }
    if !a.len().is_multiple_of(parts) {
        return None;
    }
    let join = |row: &[Scalar]| {
        let mask = u64::MAX >> (64 - narrow);
        row.iter().rev().fold(0, |raw, &x| raw << narrow | x & mask)
    };
    a.chunks(parts).map(|row| canonical(to, join(row))).collect()
}

/// A float of type `elem` nearest to `x`; an integer if `x` rounds to one of the type.
pub fn from_f64(elem: Elem, x: f64) -> Result<Scalar, NumError> {
    with_kind!(elem, k => k.cast(Exact::Float(x), Rounding::Nearest))
}

/// The integer `x` as a value of `elem`, if it has it exactly.
pub fn from_int(elem: Elem, x: i128) -> Option<Scalar> {
    if let Some((lo, hi)) = int_range(elem) {
        return (lo..=hi).contains(&x).then_some(x as u64);
    }
    let exact =
        i64::try_from(x).map(Exact::Signed).or_else(|_| u64::try_from(x).map(Exact::Unsigned)).ok()?;
    let bits = with_kind!(elem, k => k.cast(exact, Rounding::Nearest)).ok()?;
    let back = to_f64(elem, bits);
    // Any float that an integer of 64 bits rounds to is an integer below 2^65, or not finite.
    (back.is_finite() && back as i128 == x).then_some(bits)
}

/// The value as f64: exact for floats and for integers up to 53 bits, else rounded.
pub fn to_f64(elem: Elem, x: Scalar) -> f64 {
    match with_kind!(elem, k => k.exact(k.load(x))) {
        Exact::Signed(v) => v as f64,
        Exact::Unsigned(v) => v as f64,
        Exact::Float(v) => v,
    }
}

/// The value of an integer or bool that fits into i64.
pub fn to_i64(elem: Elem, x: Scalar) -> Option<i64> {
    match with_kind!(elem, k => k.exact(k.load(x))) {
        Exact::Signed(v) => Some(v),
        Exact::Unsigned(v) => i64::try_from(v).ok(),
        Exact::Float(_) => None,
    }
}
