//! The families of arithmetic. A [`Kind`] holds one type's operations on unpacked values; the caller dispatches on the
//! type once (`with_kind!`) and then runs straight-line code.

mod float;
mod int;

use super::NumError;
use super::convert::{Exact, Rounding};
use crate::program::Elem;
use pantile_abi::DType;
use std::marker::PhantomData;

pub(in crate::num) type Res<T> = Result<T, NumError>;

/// Operations of one type. What a kind leaves out is not defined for it.
pub(in crate::num) trait Kind: Copy {
    type V: Copy + PartialEq + PartialOrd;
    fn elem(self) -> Elem;
    fn load(self, bits: u64) -> Self::V;
    /// Wraps or rounds into the type.
    fn store(self, v: Self::V) -> u64;
    fn exact(self, v: Self::V) -> Exact;
    fn cast(self, x: Exact, rounding: Rounding) -> Res<u64>;

    fn add(self, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn sub(self, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn mul(self, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn div(self, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn rem(self, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn ceil_div(self, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn and(self, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn or(self, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn xor(self, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn shl(self, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn shr(self, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn neg(self, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn not(self, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn abs(self, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn fma(self, _: Self::V, _: Self::V, _: Self::V) -> Res<Self::V> {
        Err(NumError::Undefined { elem: self.elem() })
    }
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        if b < a { b } else { a }
    }
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        if b > a { b } else { a }
    }
}

#[derive(Clone, Copy)]
pub(in crate::num) struct Bool;
/// iN
#[derive(Clone, Copy)]
pub(in crate::num) struct Signed(pub DType);
/// uN
#[derive(Clone, Copy)]
pub(in crate::num) struct Unsigned(pub DType);
#[derive(Clone, Copy)]
pub(in crate::num) struct Index;
#[derive(Clone, Copy)]
pub(in crate::num) struct F32;
#[derive(Clone, Copy)]
pub(in crate::num) struct F64;
/// f8, f16, bf16: unpacked to f32
#[derive(Clone, Copy)]
pub(in crate::num) struct Mini<F>(pub DType, pub PhantomData<F>);

/// Runs `$body` with `$k` bound to the kind of type `$elem`.
macro_rules! with_kind {
    ($elem:expr, $k:ident => $body:expr) => {{
        use pantile_abi::DType;
        use std::marker::PhantomData;
        use $crate::num::{kind, minifloat};
        use $crate::program::Elem;
        match $elem {
            Elem::Index => {
                let $k = kind::Index;
                $body
            }
            Elem::D(DType::Bool) => {
                let $k = kind::Bool;
                $body
            }
            Elem::D(d @ (DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64)) => {
                let $k = kind::Signed(d);
                $body
            }
            Elem::D(d @ (DType::U4 | DType::U8 | DType::U16 | DType::U32 | DType::U64)) => {
                let $k = kind::Unsigned(d);
                $body
            }
            Elem::D(d @ DType::F8E4M3) => {
                let $k = kind::Mini::<minifloat::E4M3>(d, PhantomData);
                $body
            }
            Elem::D(d @ DType::F8E5M2) => {
                let $k = kind::Mini::<minifloat::E5M2>(d, PhantomData);
                $body
            }
            Elem::D(d @ DType::F16) => {
                let $k = kind::Mini::<minifloat::F16>(d, PhantomData);
                $body
            }
            Elem::D(d @ DType::BF16) => {
                let $k = kind::Mini::<minifloat::BF16>(d, PhantomData);
                $body
            }
            Elem::D(DType::F32) => {
                let $k = kind::F32;
                $body
            }
            Elem::D(DType::F64) => {
                let $k = kind::F64;
                $body
            }
        }
    }};
}
pub(in crate::num) use with_kind;
