//! One row a function: how far from the exact result it may be. For the verifier, the documentation and the back ends.

use crate::program::{Elem, MathFn};
use pantile_abi::DType;

/// The promise of an `.approx` form in f32: an error of at most `(rel + rel_per_x·|x|)·|result| + abs` for arguments up
/// to `within` in magnitude. Results below the smallest normal number may be zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Approx {
    pub rel: f64,
    pub rel_per_x: f64,
    pub abs: f64,
    pub within: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub f: MathFn,
    /// Largest error in units of the last place; 0.5 is correct rounding, 0 exact.
    pub ulp_f32: f64,
    pub ulp_f64: f64,
    pub approx: Option<Approx>,
}

const fn row(f: MathFn, ulp_f32: f64, ulp_f64: f64) -> Row {
    Row { f, ulp_f32, ulp_f64, approx: None }
}

/// 2^-n
const fn p(n: u64) -> f64 {
    f64::from_bits((1023 - n) << 52)
}

impl Row {
    const fn approx(self, rel: f64, rel_per_x: f64, abs: f64, within: f64) -> Row {
        Row { approx: Some(Approx { rel, rel_per_x, abs, within }), ..self }
    }

    /// The bound for a type. Narrow floats round an f32 result once more.
    pub fn ulp(&self, elem: Elem) -> f64 {
        match elem {
            Elem::F32 => self.ulp_f32,
            Elem::D(DType::F64) => self.ulp_f64,
            _ if self.ulp_f32 == 0.0 || !elem.is_float() => 0.0,
            _ => 0.501,
        }
    }
}

const INF: f64 = f64::INFINITY;

/// In the order of [`MathFn::ALL`].
pub const ROWS: [Row; 23] = [
    row(MathFn::Exp, 1.0, 1.0).approx(p(21), p(23), 0.0, INF),
    row(MathFn::Exp2, 1.0, 1.0).approx(p(21), p(24), 0.0, INF),
    row(MathFn::Log, 1.0, 1.0).approx(p(21), 0.0, p(21), INF),
    row(MathFn::Log2, 1.0, 1.0).approx(p(21), 0.0, p(21), INF),
    row(MathFn::Sqrt, 0.5, 0.5).approx(p(22), 0.0, 0.0, INF),
    row(MathFn::Rsqrt, 0.51, 1.5).approx(p(22), 0.0, 0.0, INF),
    row(MathFn::Rcp, 0.5, 0.5).approx(p(22), 0.0, 0.0, INF),
    row(MathFn::Tanh, 1.0, 1.0).approx(p(10), 0.0, 0.0, INF),
    row(MathFn::Sin, 0.51, 1.0).approx(0.0, 0.0, p(20), std::f64::consts::TAU),
    row(MathFn::Cos, 0.51, 1.0).approx(0.0, 0.0, p(20), std::f64::consts::TAU),
    row(MathFn::Erf, 1.0, 1.0),
    row(MathFn::Pow, 0.51, 1.0),
    row(MathFn::Fma, 0.5, 0.5),
    row(MathFn::Floor, 0.0, 0.0),
    row(MathFn::Ceil, 0.0, 0.0),
    row(MathFn::Round, 0.0, 0.0),
    row(MathFn::Abs, 0.0, 0.0),
    row(MathFn::Min, 0.0, 0.0),
    row(MathFn::Max, 0.0, 0.0),
    row(MathFn::Clamp, 0.0, 0.0),
    row(MathFn::IsNan, 0.0, 0.0),
    row(MathFn::IsInf, 0.0, 0.0),
    row(MathFn::CeilDiv, 0.0, 0.0),
];

pub fn of(f: MathFn) -> &'static Row {
    &ROWS[f as usize]
}
