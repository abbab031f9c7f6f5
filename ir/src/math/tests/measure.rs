//! Measuring errors.

use super::*;

/// The function in f64, to less than one of its own last places.
pub(super) fn reference(f: MathFn, x: f64, y: f64) -> f64 {
    match f {
        MathFn::Exp => libm::exp(x),
        MathFn::Exp2 => libm::exp2(x),
        MathFn::Log => libm::log(x),
        MathFn::Log2 => libm::log2(x),
        MathFn::Sqrt => x.sqrt(),
        MathFn::Rsqrt => 1.0 / x.sqrt(),
        MathFn::Rcp => 1.0 / x,
        MathFn::Tanh => libm::tanh(x),
        MathFn::Sin => libm::sin(x),
        MathFn::Cos => libm::cos(x),
        MathFn::Erf => libm::erf(x),
        MathFn::Pow => libm::pow(x, y),
        MathFn::Floor => x.floor(),
        MathFn::Ceil => x.ceil(),
        MathFn::Round => x.round_ties_even(),
        other => panic!("{other:?}"),
    }
}

/// How far `got` is from `want` in units of the last place of an f32 at `want`.
pub(super) fn error_f32(got: f32, want: f64) -> f64 {
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    // infinity stands one place past the largest value
    let limit = 2f64.powi(128);
    let got = if got.is_infinite() { limit.copysign(got as f64) } else { got as f64 };
    let want = want.clamp(-limit, limit);
    let exponent = ((want.abs().to_bits() >> 52) as i32 - 1023).clamp(-126, 127);
    (got - want).abs() / 2f64.powi(exponent - 23)
}

pub(super) const UNARY: [MathFn; 14] = [
    MathFn::Exp,
    MathFn::Exp2,
    MathFn::Log,
    MathFn::Log2,
    MathFn::Sqrt,
    MathFn::Rsqrt,
    MathFn::Rcp,
    MathFn::Tanh,
    MathFn::Sin,
    MathFn::Cos,
    MathFn::Erf,
    MathFn::Floor,
    MathFn::Ceil,
    MathFn::Round,
];

/// The worst error over the f32s with these bits, and where it is.
pub(super) fn worst_f32(f: MathFn, arguments: impl Iterator<Item = u32>) -> (f64, f32) {
    let errors = arguments.map(|bits| {
        let x = f32::from_bits(bits);
        (error_f32(f32_of(f, &[x]), reference(f, x as f64, 0.0)), x)
    });
    errors.fold((0.0, 0.0), |worst, next| if next.0 > worst.0 { next } else { worst })
}

/// The distance of `got` from the exact value, which is `near + lost` last places.
pub(super) fn error_f64(got: f64, near: f64, lost: f64) -> f64 {
    if got.is_nan() || got.is_sign_negative() != near.is_sign_negative() && near != 0.0 {
        return f64::INFINITY;
    }
    // neighbours have neighbouring bits; the places of one binade suffice for errors of a few
    let places = got.abs().to_bits().abs_diff(near.abs().to_bits()) as f64;
    let places = if got.abs() < near.abs() { -places } else { places };
    (places - if near < 0.0 { -lost } else { lost }).abs()
}
