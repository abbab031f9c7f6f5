//! Lane values with operators, so that formulas read as formulas.

use super::lanes::{Float, Lanes, Real};
use std::ops;

pub(super) struct Val<'b, B: Float<T>, T: Real> {
    pub b: &'b B,
    pub v: B::V,
}

pub(super) struct Int<'b, B: Float<T>, T: Real> {
    b: &'b B,
    v: B::I,
}

pub(super) struct Mask<'b, B: Float<T>, T: Real> {
    b: &'b B,
    v: B::M,
}

macro_rules! copy {
    ($($name:ident)*) => { $(
        impl<B: Float<T>, T: Real> Clone for $name<'_, B, T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<B: Float<T>, T: Real> Copy for $name<'_, B, T> {}
    )* };
}
copy!(Val Int Mask);

/// A value, or a constant that becomes one.
pub(super) trait Lift<'b, B: Float<T>, T: Real>: Copy {
    fn lift(self, b: &'b B) -> Val<'b, B, T>;
}

impl<'b, B: Float<T>, T: Real> Lift<'b, B, T> for Val<'b, B, T> {
    #[inline]
    fn lift(self, _: &'b B) -> Val<'b, B, T> {
        self
    }
}

impl<'b, B: Float<T>, T: Real> Lift<'b, B, T> for T {
    #[inline]
    fn lift(self, b: &'b B) -> Val<'b, B, T> {
        Val { b, v: b.splat(self) }
    }
}

macro_rules! operator {
    ($($op:ident $method:ident)*) => { $(
        impl<'b, B: Float<T>, T: Real, R: Lift<'b, B, T>> ops::$op<R> for Val<'b, B, T> {
            type Output = Self;
            #[inline]
            fn $method(self, other: R) -> Self {
                Val { b: self.b, v: self.b.$method(self.v, other.lift(self.b).v) }
            }
        }
    )* };
}
operator!(Add add Sub sub Mul mul Div div);

impl<B: Float<T>, T: Real> ops::Neg for Val<'_, B, T> {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Val { b: self.b, v: self.b.neg(self.v) }
    }
}

macro_rules! methods {
    ($($name:ident)*) => { $(
        #[inline]
        pub fn $name(self) -> Self {
            Val { b: self.b, v: self.b.$name(self.v) }
        }
    )* };
}

macro_rules! comparisons {
    ($($name:ident)*) => { $(
        #[inline]
        pub fn $name(self, other: impl Lift<'b, B, T>) -> Mask<'b, B, T> {
            Mask { b: self.b, v: self.b.$name(self.v, other.lift(self.b).v) }
        }
    )* };
}

impl<'b, B: Float<T>, T: Real> Val<'b, B, T> {
    methods!(abs sqrt round_even);
    comparisons!(lt eq);

    #[inline]
    pub fn new(b: &'b B, v: B::V) -> Self {
        Val { b, v }
    }

    /// A constant of the same lanes.
    #[inline]
    pub fn constant(self, x: T) -> Self {
        x.lift(self.b)
    }

    #[inline]
    pub fn gt(self, other: impl Lift<'b, B, T>) -> Mask<'b, B, T> {
        other.lift(self.b).lt(self)
    }

    /// `self * a + c`
    #[inline]
    pub fn fma(self, a: impl Lift<'b, B, T>, c: impl Lift<'b, B, T>) -> Self {
        Val { b: self.b, v: self.b.fma(self.v, a.lift(self.b).v, c.lift(self.b).v) }
    }

    /// `c[0] + c[1]·self + …`, from the highest power down, fused.
    #[inline]
    pub fn poly(self, c: &[T]) -> Self {
        let mut powers = c.iter().rev().map(|&c| c.lift(self.b));
        let top = powers.next().unwrap_or(self);
        powers.fold(top, |acc, c| acc.fma(self, c))
    }

    /// The product of `self` and `a`, and what its rounding lost.
    #[inline]
    pub fn times(self, a: impl Lift<'b, B, T>) -> (Self, Self) {
        let a = a.lift(self.b);
        let hi = self * a;
        (hi, self.fma(a, -hi))
    }

    /// The sum of `self` and `a`, and what its rounding lost; exact unless it overflows.
    #[inline]
    pub fn plus(self, a: impl Lift<'b, B, T>) -> (Self, Self) {
        let a = a.lift(self.b);
        let hi = self + a;
        let back = hi - self;
        (hi, (self - (hi - back)) + (a - back))
    }

    /// [`Val::plus`] where `|self| ≥ |a|`, or `self` is zero.
    #[inline]
    pub fn plus_smaller(self, a: impl Lift<'b, B, T>) -> (Self, Self) {
        let a = a.lift(self.b);
        let hi = self + a;
        (hi, (self - hi) + a)
    }

    /// NaN stays.
    #[inline]
    pub fn at_most(self, limit: T) -> Self {
        self.gt(limit).select(limit, self)
    }

    /// NaN stays.
    #[inline]
    pub fn at_least(self, limit: T) -> Self {
        self.lt(limit).select(limit, self)
    }

    #[inline]
    pub fn bits(self) -> Int<'b, B, T> {
        Int { b: self.b, v: self.b.to_bits(self.v) }
    }

    /// The magnitude of `self` with the sign of `other`, if `self` is positive.
    #[inline]
    pub fn with_sign_of(self, other: Self) -> Self {
        (self.bits() ^ (other.bits() & T::SIGN)).float()
    }

    /// The nearest integer of a small value, as a float and as an int (garbage for NaN, but some integer).
    #[inline]
    pub fn nearest(self) -> (Self, Int<'b, B, T>) {
        let shifted = self + T::ROUNDER;
        (shifted - T::ROUNDER, shifted.bits() - T::ROUNDER_BITS)
    }

    /// `self·2^n` for `self` near 1, with one rounding where the result is subnormal; |n| < 2·BIAS − 1.
    #[inline]
    pub fn scale(self, n: Int<'b, B, T>) -> Self {
        let half = n.shr(1);
        self * half.power() * (n - half).power()
    }

    #[inline]
    pub fn rarely(self, m: Mask<'b, B, T>, slow: impl FnOnce() -> Self) -> Self {
        Val { b: self.b, v: self.b.rarely(m.v, self.v, || slow().v) }
    }
}

/// An integer, or a constant.
pub(super) trait LiftInt<'b, B: Float<T>, T: Real>: Copy {
    fn lift(self, b: &'b B) -> Int<'b, B, T>;
}

impl<'b, B: Float<T>, T: Real> LiftInt<'b, B, T> for Int<'b, B, T> {
    #[inline]
    fn lift(self, _: &'b B) -> Int<'b, B, T> {
        self
    }
}

impl<'b, B: Float<T>, T: Real> LiftInt<'b, B, T> for i64 {
    #[inline]
    fn lift(self, b: &'b B) -> Int<'b, B, T> {
        Int { b, v: b.int_splat(self) }
    }
}

macro_rules! int_operator {
    ($($op:ident $method:ident $prim:ident)*) => { $(
        impl<'b, B: Float<T>, T: Real, R: LiftInt<'b, B, T>> ops::$op<R> for Int<'b, B, T> {
            type Output = Self;
            #[inline]
            fn $method(self, other: R) -> Self {
                Int { b: self.b, v: self.b.$prim(self.v, other.lift(self.b).v) }
            }
        }
    )* };
}
int_operator!(Add add int_add Sub sub int_sub BitAnd bitand int_and BitOr bitor int_or BitXor bitxor int_xor);

impl<'b, B: Float<T>, T: Real> Int<'b, B, T> {
    #[inline]
    pub fn shl(self, n: u32) -> Self {
        Int { b: self.b, v: self.b.int_shl(self.v, n) }
    }

    /// Copies the sign bit.
    #[inline]
    pub fn shr(self, n: u32) -> Self {
        Int { b: self.b, v: self.b.int_shr(self.v, n) }
    }

    #[inline]
    pub fn eq(self, other: i64) -> Mask<'b, B, T> {
        Mask { b: self.b, v: self.b.int_eq(self.v, LiftInt::<B, T>::lift(other, self.b).v) }
    }

    /// The float with these bits.
    #[inline]
    pub fn float(self) -> Val<'b, B, T> {
        Val { b: self.b, v: self.b.from_bits(self.v) }
    }

    /// The float of this value; exact integers only.
    #[inline]
    pub fn value(self) -> Val<'b, B, T> {
        Val { b: self.b, v: self.b.int_to_float(self.v) }
    }

    /// 2^self, for the exponents of normal numbers.
    #[inline]
    pub fn power(self) -> Val<'b, B, T> {
        (self + T::BIAS).shl(T::FRACTION).float()
    }
}

impl<'b, B: Float<T>, T: Real> Mask<'b, B, T> {
    #[inline]
    pub fn select(self, yes: impl Lift<'b, B, T>, no: impl Lift<'b, B, T>) -> Val<'b, B, T> {
        Val { b: self.b, v: self.b.select(self.v, yes.lift(self.b).v, no.lift(self.b).v) }
    }
}

impl<B: Float<T>, T: Real> ops::BitAnd for Mask<'_, B, T> {
    type Output = Self;
    #[inline]
    fn bitand(self, other: Self) -> Self {
        Mask { b: self.b, v: self.b.mask_and(self.v, other.v) }
    }
}

impl<B: Float<T>, T: Real> ops::BitOr for Mask<'_, B, T> {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Mask { b: self.b, v: self.b.mask_or(self.v, other.v) }
    }
}

impl<B: Float<T>, T: Real> ops::Not for Mask<'_, B, T> {
    type Output = Self;
    #[inline]
    fn not(self) -> Self {
        Mask { b: self.b, v: self.b.mask_not(self.v) }
    }
}

impl<'b, B: Lanes> Val<'b, B, f32> {
    #[inline]
    pub fn widen(self) -> Val<'b, B, f64> {
        Val { b: self.b, v: self.b.widen(self.v) }
    }
}

impl<'b, B: Lanes> Val<'b, B, f64> {
    #[inline]
    pub fn narrow(self) -> Val<'b, B, f32> {
        Val { b: self.b, v: self.b.narrow(self.v) }
    }
}
