//! What an elementary function is made of: the primitives of one lane, over which every function is written once.
//!
//! [`Scalar`](super::Scalar) computes them on numbers; a back end emits them as instructions on vectors. Each primitive
//! is one IEEE 754 operation rounded to nearest even (or an operation on bits), so any two implementations agree bit
//! for bit. An implementation therefore must not contract, reassociate, flush subnormals or assume finite values.
//!
//! Code over these traits has no branches; what both sides of a condition yield is computed and selected.

/// Lanes of the float width `T`, with the integers and conditions of the same shape.
pub trait Float<T: Real> {
    type V: Copy;
    /// Integers as wide as `T`; arithmetic wraps.
    type I: Copy;
    type M: Copy;

    fn splat(&self, x: T) -> Self::V;
    fn add(&self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(&self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(&self, a: Self::V, b: Self::V) -> Self::V;
    fn div(&self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c` with one rounding.
    fn fma(&self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    fn sqrt(&self, a: Self::V) -> Self::V;
    /// Flips the sign bit.
    fn neg(&self, a: Self::V) -> Self::V;
    /// Clears the sign bit.
    fn abs(&self, a: Self::V) -> Self::V;
    fn floor(&self, a: Self::V) -> Self::V;
    fn ceil(&self, a: Self::V) -> Self::V;
    fn round_even(&self, a: Self::V) -> Self::V;
    /// IEEE 754-2019 minimum: NaN wins, −0 < +0.
    fn minimum(&self, a: Self::V, b: Self::V) -> Self::V;
    fn maximum(&self, a: Self::V, b: Self::V) -> Self::V;

    /// Ordered comparisons: false where an operand is NaN.
    fn lt(&self, a: Self::V, b: Self::V) -> Self::M;
    fn eq(&self, a: Self::V, b: Self::V) -> Self::M;
    fn mask_and(&self, a: Self::M, b: Self::M) -> Self::M;
    fn mask_or(&self, a: Self::M, b: Self::M) -> Self::M;
    fn mask_not(&self, a: Self::M) -> Self::M;
    fn select(&self, m: Self::M, yes: Self::V, no: Self::V) -> Self::V;

    fn bits_of(&self, a: Self::V) -> Self::I;
    fn of_bits(&self, a: Self::I) -> Self::V;
    fn int_splat(&self, x: i64) -> Self::I;
    fn int_add(&self, a: Self::I, b: Self::I) -> Self::I;
    fn int_sub(&self, a: Self::I, b: Self::I) -> Self::I;
    fn int_and(&self, a: Self::I, b: Self::I) -> Self::I;
    fn int_or(&self, a: Self::I, b: Self::I) -> Self::I;
    fn int_xor(&self, a: Self::I, b: Self::I) -> Self::I;
    fn int_shl(&self, a: Self::I, n: u32) -> Self::I;
    /// Copies the sign bit.
    fn int_shr(&self, a: Self::I, n: u32) -> Self::I;
    fn int_eq(&self, a: Self::I, b: Self::I) -> Self::M;
    /// Signed integer to float; only for integers that are exact.
    fn int_to_float(&self, a: Self::I) -> Self::V;

    /// `slow()` in the lanes of `m`, `fast` elsewhere. `m` is seldom true: an implementation may skip `slow` when it
    /// is false in all lanes.
    fn rarely(&self, m: Self::M, fast: Self::V, slow: impl FnOnce() -> Self::V) -> Self::V {
        let slow = slow();
        self.select(m, slow, fast)
    }
}

/// Both widths, lane for lane.
pub trait Lanes: Float<f32> + Float<f64> {
    fn widen(&self, a: <Self as Float<f32>>::V) -> <Self as Float<f64>>::V;
    fn narrow(&self, a: <Self as Float<f64>>::V) -> <Self as Float<f32>>::V;
}

/// The constants of a width. Pairs `_HI`, `_LO` are a value and what its rounding lost.
pub trait Real: Copy + 'static {
    /// Bits of the fraction field.
    const FRACTION: u32;
    const BIAS: i64;
    const SIGN: i64;
    const ONE: Self;
    const TWO: Self;
    const INFINITY: Self;
    /// 1.5·2^FRACTION. Adding it rounds a small value to an integer, which then stands in the low bits.
    const ROUNDER: Self;
    const ROUNDER_BITS: i64;
    const LOG2E: Self;
    const LOG2E_LO: Self;
    const LN2_HI: Self;
    const LN2_LO: Self;
    /// Smallest normal number.
    const TINY: Self;
    /// 2^(FRACTION + 2) lifts subnormals into the normal range.
    const LIFT: Self;
    const LIFT_LOG2: Self;
    const ZERO: Self;
    const NAN: Self;
    const NEG_INFINITY: Self;
}

impl Real for f32 {
    const FRACTION: u32 = 23;
    const BIAS: i64 = 127;
    const SIGN: i64 = i32::MIN as i64;
    const ONE: f32 = 1.0;
    const TWO: f32 = 2.0;
    const INFINITY: f32 = f32::INFINITY;
    const ROUNDER: f32 = 12_582_912.0;
    const ROUNDER_BITS: i64 = 0x4b40_0000;
    const LOG2E: f32 = std::f32::consts::LOG2_E;
    const LOG2E_LO: f32 = 1.925_963e-8;
    const LN2_HI: f32 = std::f32::consts::LN_2;
    const LN2_LO: f32 = -1.904_654_2e-9;
    const TINY: f32 = f32::MIN_POSITIVE;
    const LIFT: f32 = 33_554_432.0;
    const LIFT_LOG2: f32 = 25.0;
    const ZERO: f32 = 0.0;
    const NAN: f32 = f32::NAN;
    const NEG_INFINITY: f32 = f32::NEG_INFINITY;
}

impl Real for f64 {
    const FRACTION: u32 = 52;
    const BIAS: i64 = 1023;
    const SIGN: i64 = i64::MIN;
    const ONE: f64 = 1.0;
    const TWO: f64 = 2.0;
    const INFINITY: f64 = f64::INFINITY;
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    const ROUNDER_BITS: i64 = 0x4338_0000_0000_0000;
    const LOG2E: f64 = std::f64::consts::LOG2_E;
    const LOG2E_LO: f64 = 2.035_527_374_093_103_3e-17;
    const LN2_HI: f64 = std::f64::consts::LN_2;
    const LN2_LO: f64 = 2.319_046_813_846_299_6e-17;
    const TINY: f64 = f64::MIN_POSITIVE;
    const LIFT: f64 = 18_014_398_509_481_984.0;
    const LIFT_LOG2: f64 = 54.0;
    const ZERO: f64 = 0.0;
    const NAN: f64 = f64::NAN;
    const NEG_INFINITY: f64 = f64::NEG_INFINITY;
}
