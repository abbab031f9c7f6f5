//! pow with every special case of IEEE 754.

use super::exp::{Exp, exp2, exp2_of_sum};
use super::lanes::{Float, Lanes, Real};
use super::log::{log2, split};
use super::value::Val;

/// `r` is |x|^y; gives it sign and special cases.
fn signed<'b, B: Float<f64>>(x: Val<'b, B, f64>, y: Val<'b, B, f64>, r: Val<'b, B, f64>) -> Val<'b, B, f64> {
    let whole = y.round_even().eq(y);
    let half = y * 0.5;
    let odd = whole & !half.round_even().eq(half);
    let r = odd.select(r.with_sign_of(x), r);
    let finite_negative = x.lt(0.0) & x.gt(f64::NEG_INFINITY);
    let r = (finite_negative & !whole & y.eq(y)).select(f64::NAN, r);
    let r = (x.abs().eq(1.0) & y.abs().eq(f64::INFINITY)).select(1.0, r);
    (y.eq(0.0) | x.eq(1.0)).select(1.0, r)
}

/// In f64 throughout: |y·log2|x|| < 152 there, so f64 leaves more than 15 bits beyond f32.
pub(super) fn pow_f32<'b, B: Lanes>(x: Val<'b, B, f32>, y: Val<'b, B, f32>) -> Val<'b, B, f32> {
    let (x, y) = (x.widen(), y.widen());
    signed(x, y, exp2(y * log2(x.abs()))).narrow()
}

/// atanh(s)/s = 1 + z/3 + z²·W(z), z = s², on |s| ≤ (√2−1)/(√2+1): Remez exchange in 50 digits: error 2^-64.5.
const ATANH: [f64; 7] = [
    0.20000000000000034,
    0.1428571428561766,
    0.11111111155293406,
    0.09090901402800233,
    0.07692957186451592,
    0.06638069537223812,
    0.06510334898956753,
];
const THIRD: [f64; 2] = [0.3333333333333333, 1.850371707708594e-17];

/// log2 of a positive finite x as a sum of two, to about 64 bits.
fn log2_long<B: Float<f64>>(x: Val<'_, B, f64>) -> [Val<'_, B, f64>; 2] {
    let [f, e] = split(x);
    // s = f/(2 + f)
    let (d, dl) = f.constant(2.0).plus_smaller(f);
    let s = f / d;
    let sl = ((-s).fma(d, f) - s * dl) / d;
    let (z, zl) = s.times(s);
    let zl = (s + s).fma(sl, zl);
    // v = 1/3 + z·W(z), u = z·v
    let (v, vl) = f.constant(THIRD[0]).plus_smaller(z * z.poly(&ATANH));
    let vl = vl + THIRD[1];
    let (u, ul) = z.times(v);
    let ul = z.fma(vl, zl.fma(v, ul));
    // a = s + s·u, half of log(1 + f)
    let (p, pl) = s.times(u);
    let pl = s.fma(ul, sl.fma(u, pl));
    let (a, al) = s.plus_smaller(p);
    let (a, al) = (a + a, (al + (pl + sl)) * 2.0);
    let (main, lost) = a.times(f64::LOG2E);
    let lost = al.fma(f64::LOG2E, a.fma(f64::LOG2E_LO, lost));
    let (hi, lo) = e.plus_smaller(main);
    let (hi, lo) = hi.plus_smaller(lo + lost);
    [hi, lo]
}

pub(super) fn pow_f64<'b, B: Float<f64>>(x: Val<'b, B, f64>, y: Val<'b, B, f64>) -> Val<'b, B, f64> {
    let magnitude = x.abs();
    let [l, ll] = log2_long(magnitude);
    let l = magnitude.lt(f64::INFINITY).select(l, magnitude); // infinity and NaN are their own logarithms
    let l = magnitude.eq(0.0).select(f64::NEG_INFINITY, l);
    let (p, pl) = y.times(l);
    let pl = y.fma(ll, pl);
    // Beyond the limits the low part is of no account, and not a number.
    let inside = p.abs().lt(f64::EXP2_MIN.abs());
    let power = exp2_of_sum(p.at_least(f64::EXP2_MIN).at_most(f64::EXP2_MAX), inside.select(pl, 0.0));
    signed(x, y, power)
}
