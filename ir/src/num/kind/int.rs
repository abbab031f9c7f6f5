//! bool, iN, uN and `index`.

use super::{Bool, Index, Kind, Res, Signed, Unsigned};
use crate::num::NumError;
use crate::num::convert::{Exact, Rounding, float_to_signed, float_to_unsigned};
use crate::program::Elem;
use pantile_abi::DType;

impl Kind for Bool {
    type V = bool;
    fn elem(self) -> Elem {
        Elem::D(DType::Bool)
    }
    #[inline]
    fn load(self, bits: u64) -> bool {
        bits != 0
    }
    #[inline]
    fn store(self, v: bool) -> u64 {
        v as u64
    }
    #[inline]
    fn exact(self, v: bool) -> Exact {
        Exact::Unsigned(v as u64)
    }
    #[inline]
    fn cast(self, x: Exact, _: Rounding) -> Res<u64> {
        Ok(match x {
            Exact::Signed(v) => (v != 0) as u64,
            Exact::Unsigned(v) => (v != 0) as u64,
            Exact::Float(v) => (v != 0.0) as u64,
        })
    }
    #[inline]
    fn and(self, a: bool, b: bool) -> Res<bool> {
        Ok(a & b)
    }
    #[inline]
    fn or(self, a: bool, b: bool) -> Res<bool> {
        Ok(a | b)
    }
    #[inline]
    fn xor(self, a: bool, b: bool) -> Res<bool> {
        Ok(a ^ b)
    }
    #[inline]
    fn not(self, a: bool) -> Res<bool> {
        Ok(!a)
    }
}

/// The shift amount, if it is in `0..width`.
fn amount(n: i64, width: u32) -> Res<u32> {
    if (0..width as i64).contains(&n) { Ok(n as u32) } else { Err(NumError::Shift { amount: n, width }) }
}

/// Floor division; `None` for a zero divisor. The one quotient that does not fit wraps.
fn div_floor(a: i64, b: i64) -> Option<i64> {
    if b == 0 {
        return None;
    }
    let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
    Some(if r != 0 && (r < 0) != (b < 0) { q - 1 } else { q })
}

/// What floor division leaves: zero or of the divisor's sign.
fn rem_floor(a: i64, b: i64) -> Option<i64> {
    if b == 0 {
        return None;
    }
    let r = a.wrapping_rem(b);
    Some(if r != 0 && (r < 0) != (b < 0) { r + b } else { r })
}

fn div_ceil(a: i64, b: i64) -> Option<i64> {
    if b == 0 {
        return None;
    }
    let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
    Some(if r != 0 && (r < 0) == (b < 0) { q + 1 } else { q })
}

fn nonzero<T>(v: Option<T>) -> Res<T> {
    v.ok_or(NumError::DivisionByZero)
}

impl Signed {
    fn wrap(self, v: i64) -> i64 {
        let unused = 64 - self.0.bits();
        v << unused >> unused
    }
}

impl Kind for Signed {
    type V = i64;
    fn elem(self) -> Elem {
        Elem::D(self.0)
    }
    #[inline]
    fn load(self, bits: u64) -> i64 {
        bits as i64
    }
    #[inline]
    fn store(self, v: i64) -> u64 {
        self.wrap(v) as u64
    }
    #[inline]
    fn exact(self, v: i64) -> Exact {
        Exact::Signed(v)
    }
    #[inline]
    fn cast(self, x: Exact, rounding: Rounding) -> Res<u64> {
        let bits = self.0.bits();
        let max = i64::MAX >> (64 - bits);
        let v = match (x, rounding) {
            (Exact::Signed(v), Rounding::Nearest) => v,
            (Exact::Signed(v), Rounding::Saturate) => v.clamp(-max - 1, max),
            (Exact::Unsigned(v), Rounding::Nearest) => v as i64,
            (Exact::Unsigned(v), Rounding::Saturate) => v.min(max as u64) as i64,
            (Exact::Float(v), _) => {
                float_to_signed(v, bits, rounding).ok_or(NumError::OutOfRange { to: self.elem() })?
            }
        };
        Ok(self.store(v))
    }
    #[inline]
    fn add(self, a: i64, b: i64) -> Res<i64> {
        Ok(a.wrapping_add(b))
    }
    #[inline]
    fn sub(self, a: i64, b: i64) -> Res<i64> {
        Ok(a.wrapping_sub(b))
    }
    #[inline]
    fn mul(self, a: i64, b: i64) -> Res<i64> {
        Ok(a.wrapping_mul(b))
    }
    #[inline]
    fn div(self, a: i64, b: i64) -> Res<i64> {
        nonzero(div_floor(a, b))
    }
    #[inline]
    fn rem(self, a: i64, b: i64) -> Res<i64> {
        nonzero(rem_floor(a, b))
    }
    #[inline]
    fn ceil_div(self, a: i64, b: i64) -> Res<i64> {
        nonzero(div_ceil(a, b))
    }
    #[inline]
    fn and(self, a: i64, b: i64) -> Res<i64> {
        Ok(a & b)
    }
    #[inline]
    fn or(self, a: i64, b: i64) -> Res<i64> {
        Ok(a | b)
    }
    #[inline]
    fn xor(self, a: i64, b: i64) -> Res<i64> {
        Ok(a ^ b)
    }
    #[inline]
    fn shl(self, a: i64, b: i64) -> Res<i64> {
        Ok(a << amount(b, self.0.bits())?)
    }
    #[inline]
    fn shr(self, a: i64, b: i64) -> Res<i64> {
        Ok(a >> amount(b, self.0.bits())?)
    }
    #[inline]
    fn neg(self, a: i64) -> Res<i64> {
        Ok(a.wrapping_neg())
    }
    #[inline]
    fn not(self, a: i64) -> Res<i64> {
        Ok(!a)
    }
    #[inline]
    fn abs(self, a: i64) -> Res<i64> {
        Ok(a.wrapping_abs())
    }
}

impl Kind for Unsigned {
    type V = u64;
    fn elem(self) -> Elem {
        Elem::D(self.0)
    }
    #[inline]
    fn load(self, bits: u64) -> u64 {
        bits
    }
    #[inline]
    fn store(self, v: u64) -> u64 {
        v & u64::MAX >> (64 - self.0.bits())
    }
    #[inline]
    fn exact(self, v: u64) -> Exact {
        Exact::Unsigned(v)
    }
    #[inline]
    fn cast(self, x: Exact, rounding: Rounding) -> Res<u64> {
        let bits = self.0.bits();
        let max = u64::MAX >> (64 - bits);
        let v = match (x, rounding) {
            (Exact::Signed(v), Rounding::Nearest) => v as u64,
            (Exact::Signed(v), Rounding::Saturate) => (v.max(0) as u64).min(max),
            (Exact::Unsigned(v), Rounding::Nearest) => v,
            (Exact::Unsigned(v), Rounding::Saturate) => v.min(max),
            (Exact::Float(v), _) => {
                float_to_unsigned(v, bits, rounding).ok_or(NumError::OutOfRange { to: self.elem() })?
            }
        };
        Ok(self.store(v))
    }
    #[inline]
    fn add(self, a: u64, b: u64) -> Res<u64> {
        Ok(a.wrapping_add(b))
    }
    #[inline]
    fn sub(self, a: u64, b: u64) -> Res<u64> {
        Ok(a.wrapping_sub(b))
    }
    #[inline]
    fn mul(self, a: u64, b: u64) -> Res<u64> {
        Ok(a.wrapping_mul(b))
    }
    #[inline]
    fn div(self, a: u64, b: u64) -> Res<u64> {
        nonzero(a.checked_div(b))
    }
    #[inline]
    fn rem(self, a: u64, b: u64) -> Res<u64> {
        nonzero(a.checked_rem(b))
    }
    #[inline]
    fn ceil_div(self, a: u64, b: u64) -> Res<u64> {
        if b == 0 { Err(NumError::DivisionByZero) } else { Ok(a.div_ceil(b)) }
    }
    #[inline]
    fn and(self, a: u64, b: u64) -> Res<u64> {
        Ok(a & b)
    }
    #[inline]
    fn or(self, a: u64, b: u64) -> Res<u64> {
        Ok(a | b)
    }
    #[inline]
    fn xor(self, a: u64, b: u64) -> Res<u64> {
        Ok(a ^ b)
    }
    #[inline]
    fn shl(self, a: u64, b: u64) -> Res<u64> {
        Ok(a << amount(b.min(i64::MAX as u64) as i64, self.0.bits())?)
    }
    #[inline]
    fn shr(self, a: u64, b: u64) -> Res<u64> {
        Ok(a >> amount(b.min(i64::MAX as u64) as i64, self.0.bits())?)
    }
    #[inline]
    fn neg(self, a: u64) -> Res<u64> {
        Ok(a.wrapping_neg())
    }
    #[inline]
    fn not(self, a: u64) -> Res<u64> {
        Ok(!a)
    }
    #[inline]
    fn abs(self, a: u64) -> Res<u64> {
        Ok(a)
    }
}

fn fits<T>(v: Option<T>) -> Res<T> {
    v.ok_or(NumError::IndexOverflow)
}

impl Kind for Index {
    type V = i64;
    fn elem(self) -> Elem {
        Elem::Index
    }
    #[inline]
    fn load(self, bits: u64) -> i64 {
        bits as i64
    }
    #[inline]
    fn store(self, v: i64) -> u64 {
        v as u64
    }
    #[inline]
    fn exact(self, v: i64) -> Exact {
        Exact::Signed(v)
    }
    #[inline]
    fn cast(self, x: Exact, rounding: Rounding) -> Res<u64> {
        let v = match (x, rounding) {
            (Exact::Signed(v), _) => Some(v),
            (Exact::Unsigned(v), Rounding::Saturate) => Some(v.min(i64::MAX as u64) as i64),
            (Exact::Unsigned(v), Rounding::Nearest) => i64::try_from(v).ok(),
            (Exact::Float(v), _) => float_to_signed(v, 64, rounding),
        };
        v.map(|v| v as u64).ok_or(NumError::OutOfRange { to: Elem::Index })
    }
    #[inline]
    fn add(self, a: i64, b: i64) -> Res<i64> {
        fits(a.checked_add(b))
    }
    #[inline]
    fn sub(self, a: i64, b: i64) -> Res<i64> {
        fits(a.checked_sub(b))
    }
    #[inline]
    fn mul(self, a: i64, b: i64) -> Res<i64> {
        fits(a.checked_mul(b))
    }
    #[inline]
    fn div(self, a: i64, b: i64) -> Res<i64> {
        if (a, b) == (i64::MIN, -1) { Err(NumError::IndexOverflow) } else { nonzero(div_floor(a, b)) }
    }
    #[inline]
    fn rem(self, a: i64, b: i64) -> Res<i64> {
        nonzero(rem_floor(a, b))
    }
    #[inline]
    fn ceil_div(self, a: i64, b: i64) -> Res<i64> {
        if (a, b) == (i64::MIN, -1) { Err(NumError::IndexOverflow) } else { nonzero(div_ceil(a, b)) }
    }
    #[inline]
    fn and(self, a: i64, b: i64) -> Res<i64> {
        Ok(a & b)
    }
    #[inline]
    fn or(self, a: i64, b: i64) -> Res<i64> {
        Ok(a | b)
    }
    #[inline]
    fn xor(self, a: i64, b: i64) -> Res<i64> {
        Ok(a ^ b)
    }
    #[inline]
    fn shl(self, a: i64, b: i64) -> Res<i64> {
        let n = amount(b, 64)?;
        let v = a << n;
        if v >> n == a { Ok(v) } else { Err(NumError::IndexOverflow) }
    }
    #[inline]
    fn shr(self, a: i64, b: i64) -> Res<i64> {
        Ok(a >> amount(b, 64)?)
    }
    #[inline]
    fn neg(self, a: i64) -> Res<i64> {
        fits(a.checked_neg())
    }
    #[inline]
    fn not(self, a: i64) -> Res<i64> {
        Ok(!a)
    }
    #[inline]
    fn abs(self, a: i64) -> Res<i64> {
        fits(a.checked_abs())
    }
}
