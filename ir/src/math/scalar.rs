//! The primitives on plain numbers.

use super::lanes::{Float, Lanes};

/// One lane, computed at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scalar;

macro_rules! scalar {
    ($t:ident $i:ident) => {
        impl Float<$t> for Scalar {
            type V = $t;
            type I = $i;
            type M = bool;

            #[inline]
            fn splat(&self, x: $t) -> $t {
                x
            }
            #[inline]
            fn add(&self, a: $t, b: $t) -> $t {
                a + b
            }
            #[inline]
            fn sub(&self, a: $t, b: $t) -> $t {
                a - b
            }
            #[inline]
            fn mul(&self, a: $t, b: $t) -> $t {
                a * b
            }
            #[inline]
            fn div(&self, a: $t, b: $t) -> $t {
                a / b
            }
            #[inline]
            fn fma(&self, a: $t, b: $t, c: $t) -> $t {
                a.mul_add(b, c)
            }
            #[inline]
            fn sqrt(&self, a: $t) -> $t {
                a.sqrt()
            }
            #[inline]
            fn neg(&self, a: $t) -> $t {
                -a
            }
            #[inline]
            fn abs(&self, a: $t) -> $t {
                a.abs()
            }
            #[inline]
            fn floor(&self, a: $t) -> $t {
                a.floor()
            }
            #[inline]
            fn ceil(&self, a: $t) -> $t {
                a.ceil()
            }
            #[inline]
            fn round_even(&self, a: $t) -> $t {
                a.round_ties_even()
            }
            #[inline]
            fn minimum(&self, a: $t, b: $t) -> $t {
                if a.is_nan() || b.is_nan() {
                    $t::NAN
                } else if a < b || (a == b && a.is_sign_negative()) {
                    a
                } else {
                    b
                }
            }
            #[inline]
            fn maximum(&self, a: $t, b: $t) -> $t {
                if a.is_nan() || b.is_nan() {
                    $t::NAN
                } else if a > b || (a == b && b.is_sign_negative()) {
                    a
                } else {
                    b
                }
            }
            #[inline]
            fn lt(&self, a: $t, b: $t) -> bool {
                a < b
            }
            #[inline]
            fn eq(&self, a: $t, b: $t) -> bool {
                a == b
            }
            #[inline]
            fn mask_and(&self, a: bool, b: bool) -> bool {
                a & b
            }
            #[inline]
            fn mask_or(&self, a: bool, b: bool) -> bool {
                a | b
            }
            #[inline]
            fn mask_not(&self, a: bool) -> bool {
                !a
            }
            #[inline]
            fn select(&self, m: bool, yes: $t, no: $t) -> $t {
                if m { yes } else { no }
            }
            #[inline]
            fn to_bits(&self, a: $t) -> $i {
                a.to_bits() as $i
            }
            #[inline]
            fn from_bits(&self, a: $i) -> $t {
                $t::from_bits(a as _)
            }
            #[inline]
            fn int_splat(&self, x: i64) -> $i {
                x as $i
            }
            #[inline]
            fn int_add(&self, a: $i, b: $i) -> $i {
                a.wrapping_add(b)
            }
            #[inline]
            fn int_sub(&self, a: $i, b: $i) -> $i {
                a.wrapping_sub(b)
            }
            #[inline]
            fn int_and(&self, a: $i, b: $i) -> $i {
                a & b
            }
            #[inline]
            fn int_or(&self, a: $i, b: $i) -> $i {
                a | b
            }
            #[inline]
            fn int_xor(&self, a: $i, b: $i) -> $i {
                a ^ b
            }
            #[inline]
            fn int_shl(&self, a: $i, n: u32) -> $i {
                a << n
            }
            #[inline]
            fn int_shr(&self, a: $i, n: u32) -> $i {
                a >> n
            }
            #[inline]
            fn int_eq(&self, a: $i, b: $i) -> bool {
                a == b
            }
            #[inline]
            fn int_to_float(&self, a: $i) -> $t {
                a as $t
            }
            #[inline]
            fn rarely(&self, m: bool, fast: $t, slow: impl FnOnce() -> $t) -> $t {
                if m { slow() } else { fast }
            }
        }
    };
}
scalar!(f32 i32);
scalar!(f64 i64);

impl Lanes for Scalar {
    #[inline]
    fn widen(&self, a: f32) -> f64 {
        a as f64
    }
    #[inline]
    fn narrow(&self, a: f64) -> f32 {
        a as f32
    }
}
