//! exp, exp2 and tanh: reduction to |r| ≤ ln2/2 and a polynomial for (e^r − 1 − r)/r².

use super::lanes::{Float, Real};
use super::value::{Int, Val};

/// Coefficients of one width.
pub(super) trait Exp: Real {
    /// (e^r − 1 − r)/r² on |r| ≤ 1.0005·ln2/2.
    const TAIL: &'static [Self];
    /// Below, e^x and 2^x round to zero; above, to infinity. tanh is ±1 beyond `TANH_ONE`.
    const EXP_MIN: Self;
    const EXP_MAX: Self;
    const EXP2_MIN: Self;
    const EXP2_MAX: Self;
    const TANH_ONE: Self;
}

impl Exp for f32 {
    // Minimax by Lawson's iteration on 700 Chebyshev nodes, weighted for relative error in e^r − 1; each coefficient
    // rounded to f32 from the lowest up, the others fitted again: error 2^-31.1.
    const TAIL: &'static [f32] = &[0.5, 0.16666667, 0.04166649, 0.008333208, 0.0013932674, 0.00019944266];
    const EXP_MIN: f32 = -104.0;
    const EXP_MAX: f32 = 89.0;
    const EXP2_MIN: f32 = -151.0;
    const EXP2_MAX: f32 = 128.5;
    const TANH_ONE: f32 = 10.0;
}

impl Exp for f64 {
    // Remez exchange in 50 digits, weighted likewise, then rounded: error 2^-60.7.
    const TAIL: &'static [f64] = &[
        0.5,
        0.16666666666666677,
        0.0416666666666667,
        0.008333333333321579,
        0.0013888888888866835,
        0.00019841269886263784,
        2.4801587360551786e-05,
        2.755724406450476e-06,
        2.7557242764197076e-07,
        2.5109089489263027e-08,
        2.0924442593623e-09,
    ];
    const EXP_MIN: f64 = -746.0;
    const EXP_MAX: f64 = 710.0;
    const EXP2_MIN: f64 = -1076.0;
    const EXP2_MAX: f64 = 1024.5;
    const TANH_ONE: f64 = 20.0;
}

/// `x − n·ln2` as a sum of two, with the nearest `n`. The first difference is exact: both sides are multiples of its
/// last place.
fn reduce<'b, B: Float<T>, T: Real>(x: Val<'b, B, T>) -> (Val<'b, B, T>, Val<'b, B, T>, Int<'b, B, T>) {
    let (n, int) = (x * T::LOG2E).nearest();
    let n = -n;
    let near = n.fma(T::LN2_HI, x);
    let hi = n.fma(T::LN2_LO, near);
    (hi, n.fma(T::LN2_LO, near - hi), int)
}

/// e^(hi + lo) for |hi| ≤ ln2/2 and lo below its last place.
pub(super) fn near_one<'b, B: Float<T>, T: Exp>(hi: Val<'b, B, T>, lo: Val<'b, B, T>) -> Val<'b, B, T> {
    let tail = (hi * hi).fma(hi.poly(T::TAIL), lo);
    let (one, lost) = hi.constant(T::ONE).plus_smaller(hi);
    one + (lost + tail)
}

pub(super) fn exp<'b, B: Float<T>, T: Exp>(x: Val<'b, B, T>) -> Val<'b, B, T> {
    let (hi, lo, n) = reduce(x.at_least(T::EXP_MIN).at_most(T::EXP_MAX));
    near_one(hi, lo).scale(n)
}

pub(super) fn exp2<'b, B: Float<T>, T: Exp>(x: Val<'b, B, T>) -> Val<'b, B, T> {
    exp2_of_sum(x.at_least(T::EXP2_MIN).at_most(T::EXP2_MAX), None)
}

/// 2^(x + lo), `x` within the limits of exp2 and `lo` below its last place.
pub(super) fn exp2_of_sum<'b, B: Float<T>, T: Exp>(
    x: Val<'b, B, T>,
    lo: Option<Val<'b, B, T>>,
) -> Val<'b, B, T> {
    let (n, int) = x.nearest();
    let f = x - n;
    let (hi, lost) = f.times(T::LN2_HI);
    let lost = f.fma(T::LN2_LO, lost);
    let lost = lo.map_or(lost, |lo| lo.fma(T::LN2_HI, lost));
    near_one(hi, lost).scale(int)
}

/// (e^2x − 1)/(e^2x + 1) with e^2x − 1 as a sum of two, and the quotient's remainder put back.
pub(super) fn tanh<'b, B: Float<T>, T: Exp>(x: Val<'b, B, T>) -> Val<'b, B, T> {
    let magnitude = x.abs().at_most(T::TANH_ONE);
    let (hi, lo, n) = reduce(magnitude + magnitude);
    let power = n.power();
    // e^r − 1 = a + al, e^2x − 1 = s + sl
    let (a, al) = hi.plus_smaller((hi * hi).fma(hi.poly(T::TAIL), lo));
    let (s, sl) = (power - T::ONE).plus_smaller(power * a);
    let sl = power.fma(al, sl);
    let (d, dl) = s.plus(T::TWO);
    let dl = dl + sl;
    let inverse = d.constant(T::ONE) / d;
    let q = s * inverse;
    let remainder = (-q).fma(d, s) + (-q).fma(dl, sl);
    remainder.fma(inverse, q).with_sign_of(x)
}

/// e^r = 1 + r·Q(r): minimax like `TAIL`, relative to e^r: error 2^-28.2.
const EXP_F32: [f32; 6] = [1.0, 0.49999994, 0.16666521, 0.041668266, 0.008368677, 0.0013820734];
/// 2^f = 1 + f·Q(f) on |f| ≤ 1/2, likewise: error 2^-28.3.
const EXP2_F32: [f32; 6] = [0.6931472, 0.24022648, 0.0555036, 0.009618506, 0.0013390806, 0.00015326463];

/// The short forms for f32, where speed counts and one fused operation at the end suffices.
pub(super) fn exp_f32<B: Float<f32>>(x: Val<'_, B, f32>) -> Val<'_, B, f32> {
    let x = x.at_least(f32::EXP_MIN).at_most(f32::EXP_MAX);
    let (n, int) = (x * f32::LOG2E).nearest();
    let r = (-n).fma(f32::LN2_HI, x);
    let r = (-n).fma(f32::LN2_LO, r);
    r.fma(r.poly(&EXP_F32), 1.0).scale(int)
}

pub(super) fn exp2_f32<B: Float<f32>>(x: Val<'_, B, f32>) -> Val<'_, B, f32> {
    let x = x.at_least(f32::EXP2_MIN).at_most(f32::EXP2_MAX);
    let (n, int) = x.nearest();
    let f = x - n;
    f.fma(f.poly(&EXP2_F32), 1.0).scale(int)
}
