//! The narrow float formats (f8e4m3, f8e5m2, f16, bf16): decode to f32, encode from f64 with one rounding.

/// A format with at most 16 bits whose every value is an f32.
pub(super) trait Format: Copy {
    const EXP: u32;
    const MAN: u32;
    /// The code (without sign) of what an overflow becomes; every larger code is NaN. f8e4m3 has no infinity: its
    /// largest code is its only NaN.
    const OVER: u64;
    const NAN: u64;
    const HAS_INF: bool;

    const BIAS: i32 = (1 << (Self::EXP - 1)) - 1;
    /// The code of the largest finite value.
    const MAX: u64 = Self::OVER - 1;
}

#[derive(Clone, Copy)]
pub(super) struct E4M3;
#[derive(Clone, Copy)]
pub(super) struct E5M2;
#[derive(Clone, Copy)]
pub(super) struct F16;
#[derive(Clone, Copy)]
pub(super) struct BF16;

impl Format for E4M3 {
    const EXP: u32 = 4;
    const MAN: u32 = 3;
    const OVER: u64 = 0x7f;
    const NAN: u64 = 0x7f;
    const HAS_INF: bool = false;
}

impl Format for E5M2 {
    const EXP: u32 = 5;
    const MAN: u32 = 2;
    const OVER: u64 = 0x7c;
    const NAN: u64 = 0x7e;
    const HAS_INF: bool = true;
}

impl Format for F16 {
    const EXP: u32 = 5;
    const MAN: u32 = 10;
    const OVER: u64 = 0x7c00;
    const NAN: u64 = 0x7e00;
    const HAS_INF: bool = true;
}

impl Format for BF16 {
    const EXP: u32 = 8;
    const MAN: u32 = 7;
    const OVER: u64 = 0x7f80;
    const NAN: u64 = 0x7fc0;
    const HAS_INF: bool = true;
}

/// 2^e as f64, for `e` of a normal number.
const fn pow2(e: i32) -> f64 {
    f64::from_bits(((1023 + e) as u64) << 52)
}

#[inline]
pub(super) fn decode<F: Format>(bits: u64) -> f32 {
    let sign = (bits >> (F::EXP + F::MAN)) as u32 & 1;
    let code = bits & ((1 << (F::EXP + F::MAN)) - 1);
    let magnitude = if code >= F::OVER {
        if F::HAS_INF && code == F::OVER { f32::INFINITY } else { f32::NAN }
    } else {
        // The fields fall into f32's places with the wrong bias; the product mends it and normalises subnormals.
        f32::from_bits((code as u32) << (23 - F::MAN)) * pow2(127 - F::BIAS) as f32
    };
    f32::from_bits(magnitude.to_bits() | sign << 31)
}

/// Round to nearest, ties to even. Overflow gives infinity (NaN in a format without), or with `sat` the largest
/// finite value, also for infinity itself. NaN stays NaN.
#[inline]
pub(super) fn encode<F: Format>(x: f64, sat: bool) -> u64 {
    if x.is_nan() {
        return F::NAN;
    }
    let sign = (x.to_bits() >> 63) << (F::EXP + F::MAN);
    let magnitude = x.abs();
    let code = if magnitude < pow2(1 - F::BIAS) {
        // At this sum f64 counts in steps of the smallest subnormal, so the addition rounds to them.
        let steps = pow2(52 + 1 - F::BIAS - F::MAN as i32);
        (magnitude + steps).to_bits() - steps.to_bits()
    } else {
        let bits = magnitude.to_bits();
        let dropped = 52 - F::MAN;
        let rounded = bits + ((1 << (dropped - 1)) - 1) + (bits >> dropped & 1);
        (rounded >> dropped) - (((1023 - F::BIAS) as u64) << F::MAN)
    };
    sign | code.min(if sat { F::MAX } else { F::OVER })
}
