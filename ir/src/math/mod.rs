//! Elementary functions, defined once.
//!
//! [`emit_f32`] and [`emit_f64`] write a function as straight-line code over the primitives of [`Lanes`]; the
//! interpreter runs them on [`Scalar`], the CPU back end builds vector code from them, and the results are the same bits
//! by construction. [`table`] holds each function's error bounds; tests measure them.
//!
//! f16, bf16 and f8 compute in f32 and round once more ([`eval`]); `fma` on them goes through [`fma_to_odd`]. An
//! `.approx` form is the same function here and may be a looser one on a GPU.
//!
//! No function of the platform's libm is called, no table is read, nothing branches.

mod erf;
mod eval;
mod exp;
mod lanes;
mod log;
mod narrow;
mod pow;
mod scalar;
pub mod table;
#[cfg(test)]
mod tests;
mod trig;
mod value;

pub use eval::{eval, eval_slice};
pub use lanes::{Float, Lanes, Real};
pub use scalar::Scalar;

use crate::program::MathFn;
use value::Val;

/// An f32 value of `B`.
pub type V32<B> = <B as Float<f32>>::V;
/// An f64 value of `B`.
pub type V64<B> = <B as Float<f64>>::V;

/// `f(args)` on f32 lanes; `None` if `f` yields no float (`isnan`, `isinf`, `ceildiv`) or the number of arguments is
/// wrong.
pub fn emit_f32<B: Lanes>(b: &B, f: MathFn, args: &[V32<B>]) -> Option<V32<B>> {
    let val = |v: V32<B>| Val::<B, f32>::new(b, v);
    Some(match (f, args) {
        (MathFn::Exp, &[x]) => exp::exp_f32(val(x)).v,
        (MathFn::Exp2, &[x]) => exp::exp2_f32(val(x)).v,
        (MathFn::Log, &[x]) => log::log_f32(val(x)).v,
        (MathFn::Log2, &[x]) => log::log2(val(x)).v,
        (MathFn::Rsqrt, &[x]) => {
            let root = val(x).widen().sqrt();
            (Val::new(b, Float::<f64>::splat(b, 1.0)) / root).narrow().v
        }
        (MathFn::Tanh, &[x]) => exp::tanh(val(x)).v,
        (MathFn::Sin, &[x]) => trig::sin_f32(val(x)).v,
        (MathFn::Cos, &[x]) => trig::cos_f32(val(x)).v,
        (MathFn::Erf, &[x]) => erf::erf_f32(val(x)).v,
        (MathFn::Pow, &[x, y]) => pow::pow_f32(val(x), val(y)).v,
        _ => return emit_simple::<B, f32>(b, f, args),
    })
}

/// `f(args)` on f64 lanes; `None` as in [`emit_f32`].
pub fn emit_f64<B: Lanes>(b: &B, f: MathFn, args: &[V64<B>]) -> Option<V64<B>> {
    let val = |v: V64<B>| Val::<B, f64>::new(b, v);
    Some(match (f, args) {
        (MathFn::Exp, &[x]) => exp::exp(val(x)).v,
        (MathFn::Exp2, &[x]) => exp::exp2(val(x)).v,
        (MathFn::Log, &[x]) => log::log_f64(val(x)).v,
        (MathFn::Log2, &[x]) => log::log2(val(x)).v,
        (MathFn::Rsqrt, &[x]) => (Val::new(b, Float::<f64>::splat(b, 1.0)) / val(x).sqrt()).v,
        (MathFn::Tanh, &[x]) => exp::tanh(val(x)).v,
        (MathFn::Sin, &[x]) => trig::sin_f64(val(x)).v,
        (MathFn::Cos, &[x]) => trig::cos_f64(val(x)).v,
        (MathFn::Erf, &[x]) => erf::erf_f64(val(x)).v,
        (MathFn::Pow, &[x, y]) => pow::pow_f64(val(x), val(y)).v,
        _ => return emit_simple::<B, f64>(b, f, args),
    })
}

/// Functions that are primitives, in either width.
fn emit_simple<B: Float<T>, T: Real>(b: &B, f: MathFn, args: &[B::V]) -> Option<B::V> {
    Some(match (f, args) {
        (MathFn::Sqrt, &[x]) => b.sqrt(x),
        (MathFn::Rcp, &[x]) => b.div(b.splat(T::ONE), x),
        (MathFn::Fma, &[x, y, z]) => b.fma(x, y, z),
        (MathFn::Floor, &[x]) => b.floor(x),
        (MathFn::Ceil, &[x]) => b.ceil(x),
        (MathFn::Round, &[x]) => b.round_even(x),
        (MathFn::Abs, &[x]) => b.abs(x),
        (MathFn::Min, &[x, y]) => b.minimum(x, y),
        (MathFn::Max, &[x, y]) => b.maximum(x, y),
        (MathFn::Clamp, &[x, lo, hi]) => b.minimum(b.maximum(x, lo), hi),
        _ => return None,
    })
}

/// `a·b + c` of values of at most 11 significant bits (f16, bf16, f8), rounded to odd in f32: converting it to that
/// type is then the fused result, rounded once.
pub fn fma_to_odd<B: Lanes>(b: &B, x: V32<B>, y: V32<B>, z: V32<B>) -> V32<B> {
    let [x, y, z] = [x, y, z].map(|v| Val::<B, f32>::new(b, v).widen());
    narrow::sum_to_odd(x * y, z).v
}

/// The sum of two f64 rounded to odd in f32, from where f16, bf16 and f8 are one rounding away. A plain conversion has
/// `y` = 0; a 64-bit integer is the sum of its two halves.
pub fn sum_to_odd<B: Lanes>(b: &B, x: V64<B>, y: V64<B>) -> V32<B> {
    narrow::sum_to_odd(Val::new(b, x), Val::new(b, y)).v
}
