//! log and log2: x = m·2^e with m in [√½, √2), and a series in f = m − 1.

use super::lanes::{Float, Real};
use super::value::Val;

/// `m − 1` and `e` of a positive finite x; some value otherwise.
pub(super) fn split<'b, B: Float<T>, T: Log>(x: Val<'b, B, T>) -> [Val<'b, B, T>; 2] {
    let small = x.lt(T::TINY);
    let bits = small.select(x * T::LIFT, x).bits();
    let e = (bits - T::SQRT_HALF_BITS).shr(T::FRACTION);
    let m = (bits - e.shl(T::FRACTION)).float();
    [m - T::ONE, e.value() - small.select(T::LIFT_LOG2, T::ZERO)]
}

/// The logarithm `r` of x, put right for x that is zero, negative, infinite or NaN.
pub(super) fn edges<'b, B: Float<T>, T: Real>(x: Val<'b, B, T>, r: Val<'b, B, T>) -> Val<'b, B, T> {
    let r = x.lt(T::INFINITY).select(r, x);
    let r = x.eq(T::ZERO).select(T::NEG_INFINITY, r);
    x.lt(T::ZERO).select(T::NAN, r)
}

/// log(1 + f) = f + f²·(−1/2 + f·P(f)): minimax by Lawson's iteration relative to f, rounded to f32 from the lowest
/// coefficient up with the others fitted again: error 2^-30.4.
const LOG_F32: [f32; 9] = [
    0.3333331,
    -0.24999987,
    0.20002225,
    -0.16669251,
    0.14218673,
    -0.123843394,
    0.11872932,
    -0.117899254,
    0.069155365,
];
/// ln2 in 15 bits, so that its product with an exponent is exact, and the rest.
const LN2_SHORT: f32 = 0.69314575;
const LN2_REST: f32 = 1.4286068e-06;

pub(super) fn log_f32<B: Float<f32>>(x: Val<'_, B, f32>) -> Val<'_, B, f32> {
    let [f, e] = split(x);
    let series = (f * f) * f.fma(f.poly(&LOG_F32), -0.5);
    let (hi, lo) = (e * LN2_SHORT).plus_smaller(f);
    edges(x, hi + (lo + e.fma(LN2_REST, series)))
}

/// Coefficients of one width.
pub(super) trait Log: Real {
    /// 2·atanh(s) = 2s + s·z·R(z), z = s², on |s| ≤ (√2−1)/(√2+1).
    const ATANH: &'static [Self];
    const SQRT_HALF_BITS: i64;
    const HALF: Self;
}

impl Log for f32 {
    // Minimax by Lawson's iteration, rounded to f32 like LOG_F32: error 2^-30.2 of s.
    const ATANH: &'static [f32] = &[0.66666776, 0.39977568, 0.2987146];
    const SQRT_HALF_BITS: i64 = 0x3f35_04f3;
    const HALF: f32 = 0.5;
}

impl Log for f64 {
    // Remez exchange in 50 digits: error 2^-59.1 of s.
    const ATANH: &'static [f64] = &[
        0.6666666666666735,
        0.399999999994111,
        0.28571428743260335,
        0.22222198476251231,
        0.18183569725124826,
        0.15313903641168627,
        0.14797503594145237,
    ];
    const SQRT_HALF_BITS: i64 = 0x3fe6_a09e_667f_3bcd;
    const HALF: f64 = 0.5;
}

/// log(1 + f) as a sum of two. With s = f/(2 + f) and h = f²/2 it is f − h + s·(h + z·R(z)); h is kept exact.
fn log1p<'b, B: Float<T>, T: Log>(f: Val<'b, B, T>) -> [Val<'b, B, T>; 2] {
    let s = f / (f + T::TWO);
    let z = s * s;
    let (h, h_lost) = (f * T::HALF).times(f);
    let (hi, lost) = f.plus_smaller(-h);
    [hi, s.fma(z.fma(z.poly(T::ATANH), h), lost - h_lost)]
}

pub(super) fn log_f64<B: Float<f64>>(x: Val<'_, B, f64>) -> Val<'_, B, f64> {
    let [f, e] = split(x);
    let [a, al] = log1p(f);
    let (main, lost) = e.times(f64::LN2_HI);
    let (hi, lo) = main.plus_smaller(a);
    edges(x, hi + (lo + (al + e.fma(f64::LN2_LO, lost))))
}

pub(super) fn log2<'b, B: Float<T>, T: Log>(x: Val<'b, B, T>) -> Val<'b, B, T> {
    let [f, e] = split(x);
    let [a, al] = log1p(f);
    let (main, lost) = a.times(T::LOG2E);
    let (hi, lo) = e.plus_smaller(main);
    edges(x, hi + (lo + al.fma(T::LOG2E, a.fma(T::LOG2E_LO, lost))))
}
