//! Rounding to odd: how f16, bf16 and f8 get one rounding out of two.
//!
//! A sum rounded to odd in f32 (inexact results take the neighbour whose last bit is 1) keeps on which side of every
//! value and tie of a narrower type the exact sum lies, so rounding it again gives what one rounding would.

use super::lanes::Lanes;
use super::value::Val;

/// The f64 sum `a + b`, rounded to odd in f32. `a·b + c` of f16 or bf16 has an exact product in f64; a plain
/// conversion of an f64 has `b` = 0; an i64 is the sum of its halves.
pub(super) fn sum_to_odd<'b, B: Lanes>(a: Val<'b, B, f64>, b: Val<'b, B, f64>) -> Val<'b, B, f32> {
    let (sum, lost) = a.plus(b);
    let near = sum.narrow();
    let residue = (sum - near.widen()) + lost;
    // the way from `near` to the exact sum: −1, 0 or 1 (0 where the sum is not finite)
    let way = residue.lt(0.0).select(-1.0, residue.gt(0.0).select(1.0, 0.0));
    let way = sum.abs().lt(f64::INFINITY).select(way, 0.0).narrow();
    let bits = near.bits();
    let outwards = way.with_sign_of(near).gt(0.0);
    let moved = outwards.select((bits + 1).float(), (bits - 1).float());
    (!way.eq(0.0) & (bits & 1).eq(0)).select(moved, near)
}
