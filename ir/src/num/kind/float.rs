//! f8, f16, bf16, f32, f64.

use super::{F32, F64, Kind, Mini, Res};
use crate::num::convert::{Exact, Rounding};
use crate::num::minifloat::{Format, decode, encode};
use crate::program::Elem;
use pantile_abi::DType;

/// The operations of floats over unpacked `$v`.
macro_rules! float_ops {
    ($v:ident) => {
        #[inline]
        fn add(self, a: $v, b: $v) -> Res<$v> {
            Ok(a + b)
        }
        #[inline]
        fn sub(self, a: $v, b: $v) -> Res<$v> {
            Ok(a - b)
        }
        #[inline]
        fn mul(self, a: $v, b: $v) -> Res<$v> {
            Ok(a * b)
        }
        #[inline]
        fn div(self, a: $v, b: $v) -> Res<$v> {
            Ok(a / b)
        }
        #[inline]
        fn neg(self, a: $v) -> Res<$v> {
            Ok(-a)
        }
        #[inline]
        fn abs(self, a: $v) -> Res<$v> {
            Ok(a.abs())
        }
        #[inline]
        fn min(self, a: $v, b: $v) -> $v {
            match a.partial_cmp(&b) {
                None => $v::NAN,
                Some(std::cmp::Ordering::Less) => a,
                Some(std::cmp::Ordering::Greater) => b,
                Some(std::cmp::Ordering::Equal) => {
                    if a.is_sign_negative() {
                        a
                    } else {
                        b
                    }
                }
            }
        }
        #[inline]
        fn max(self, a: $v, b: $v) -> $v {
            match a.partial_cmp(&b) {
                None => $v::NAN,
                Some(std::cmp::Ordering::Less) => b,
                Some(std::cmp::Ordering::Greater) => a,
                Some(std::cmp::Ordering::Equal) => {
                    if a.is_sign_negative() {
                        b
                    } else {
                        a
                    }
                }
            }
        }
    };
}

impl Kind for F32 {
    type V = f32;
    fn elem(self) -> Elem {
        Elem::D(DType::F32)
    }
    #[inline]
    fn load(self, bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline]
    fn store(self, v: f32) -> u64 {
        v.to_bits() as u64
    }
    #[inline]
    fn exact(self, v: f32) -> Exact {
        Exact::Float(v as f64)
    }
    #[inline]
    fn cast(self, x: Exact, rounding: Rounding) -> Res<u64> {
        let v = match x {
            Exact::Signed(v) => v as f32,
            Exact::Unsigned(v) => v as f32,
            Exact::Float(v) => v as f32,
        };
        Ok(self.store(if rounding == Rounding::Saturate { v.clamp(f32::MIN, f32::MAX) } else { v }))
    }
    #[inline]
    fn fma(self, a: f32, b: f32, c: f32) -> Res<f32> {
        Ok(a.mul_add(b, c))
    }
    float_ops!(f32);
}

impl Kind for F64 {
    type V = f64;
    fn elem(self) -> Elem {
        Elem::D(DType::F64)
    }
    #[inline]
    fn load(self, bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    #[inline]
    fn store(self, v: f64) -> u64 {
        v.to_bits()
    }
    #[inline]
    fn exact(self, v: f64) -> Exact {
        Exact::Float(v)
    }
    #[inline]
    fn cast(self, x: Exact, rounding: Rounding) -> Res<u64> {
        let v = match x {
            Exact::Signed(v) => v as f64,
            Exact::Unsigned(v) => v as f64,
            Exact::Float(v) => v,
        };
        Ok(self.store(if rounding == Rounding::Saturate { v.clamp(f64::MIN, f64::MAX) } else { v }))
    }
    #[inline]
    fn fma(self, a: f64, b: f64, c: f64) -> Res<f64> {
        Ok(a.mul_add(b, c))
    }
    float_ops!(f64);
}

impl<F: Format> Kind for Mini<F> {
    type V = f32;
    fn elem(self) -> Elem {
        Elem::D(self.0)
    }
    #[inline]
    fn load(self, bits: u64) -> f32 {
        decode::<F>(bits)
    }
    #[inline]
    fn store(self, v: f32) -> u64 {
        encode::<F>(v as f64, false)
    }
    #[inline]
    fn exact(self, v: f32) -> Exact {
        Exact::Float(v as f64)
    }
    #[inline]
    fn cast(self, x: Exact, rounding: Rounding) -> Res<u64> {
        let sat = rounding == Rounding::Saturate;
        Ok(encode::<F>(x.to_f64_sticky(), sat))
    }
    #[inline]
    fn fma(self, a: f32, b: f32, c: f32) -> Res<f32> {
        Ok(crate::math::fma_to_odd(&crate::math::Scalar, a, b, c))
    }
    float_ops!(f32);
}
