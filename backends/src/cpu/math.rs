//! Elementary functions on vectors: `pantile_ir::math`'s definitions, instantiated with LLVM values.
//!
//! Nothing here may let LLVM contract or reassociate: the interpreter runs the same primitives one by one.

use super::emit::{Any, Emit};
use super::value::Val;
use inkwell::types::BasicTypeEnum;
use inkwell::{FloatPredicate, IntPredicate};
use pantile_abi::DType;
use pantile_ir::math::{Float, Lanes, emit_f32, emit_f64, fma_to_odd};
use pantile_ir::program::{Elem, MathFn};

/// The primitives on vectors of `lanes` (a scalar for one).
struct Vectors<'e, 'c> {
    e: &'e Emit<'c>,
    lanes: u32,
}

impl<'c> Emit<'c> {
    /// A function of the language on register values of one type and width.
    pub fn elementary(&self, f: MathFn, args: &[Val<'c>]) -> Val<'c> {
        let a = args[0];
        let b = Vectors { e: self, lanes: a.lanes };
        let vals: Vec<Any> = args.iter().map(|v| v.v).collect();
        let done = |v| Val { v, ..a };
        let narrow = a.elem != Elem::F32 && a.elem != Elem::D(DType::F64);
        let v = match (a.elem, f) {
            (Elem::D(DType::F64), _) => emit_f64(&b, f, &vals),
            (_, MathFn::Fma) if narrow && vals.len() == 3 => Some(fma_to_odd(&b, vals[0], vals[1], vals[2])),
            _ => emit_f32(&b, f, &vals),
        };
        // the verifier admits only functions that these tables define
        self.settle(done(v.expect("a function of this type")))
    }
}

macro_rules! float {
    ($t:ident, $float:ident, $int:ident, $splat:ident) => {
        impl<'c> Float<$t> for Vectors<'_, 'c> {
            type V = Any<'c>;
            type I = Any<'c>;
            type M = Any<'c>;

            fn splat(&self, x: $t) -> Any<'c> {
                self.e.$splat(x, self.lanes)
            }
            fn add(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.float_add(a, b)
            }
            fn sub(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.float_sub(a, b)
            }
            fn mul(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.float_mul(a, b)
            }
            fn div(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.float_div(a, b)
            }
            fn fma(&self, a: Any<'c>, b: Any<'c>, c: Any<'c>) -> Any<'c> {
                self.e.fma(a, b, c)
            }
            fn sqrt(&self, a: Any<'c>) -> Any<'c> {
                self.e.sqrt(a)
            }
            fn neg(&self, a: Any<'c>) -> Any<'c> {
                self.e.float_neg(a)
            }
            fn abs(&self, a: Any<'c>) -> Any<'c> {
                self.e.float_abs(a)
            }
            fn floor(&self, a: Any<'c>) -> Any<'c> {
                self.e.unary_intrinsic("llvm.floor", a)
            }
            fn ceil(&self, a: Any<'c>) -> Any<'c> {
                self.e.unary_intrinsic("llvm.ceil", a)
            }
            fn round_even(&self, a: Any<'c>) -> Any<'c> {
                self.e.round_even(a)
            }
            fn minimum(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.min_max::<$t>(false, a, b)
            }
            fn maximum(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.min_max::<$t>(true, a, b)
            }
            fn lt(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.float_compare(FloatPredicate::OLT, a, b)
            }
            fn eq(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.float_compare(FloatPredicate::OEQ, a, b)
            }
            fn mask_and(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.int_and(a, b)
            }
            fn mask_or(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.int_or(a, b)
            }
            fn mask_not(&self, a: Any<'c>) -> Any<'c> {
                self.e.int_xor(a, self.e.ints(self.e.ctx.bool_type().into(), 1, self.lanes))
            }
            fn select(&self, m: Any<'c>, yes: Any<'c>, no: Any<'c>) -> Any<'c> {
                self.e.pick(m, yes, no)
            }
            fn bits_of(&self, a: Any<'c>) -> Any<'c> {
                self.e.bitcast(a, self.e.lanes_of(self.e.ctx.$int().into(), self.lanes))
            }
            fn of_bits(&self, a: Any<'c>) -> Any<'c> {
                self.e.bitcast(a, self.e.lanes_of(self.e.ctx.$float().into(), self.lanes))
            }
            fn int_splat(&self, x: i64) -> Any<'c> {
                self.e.ints(self.e.ctx.$int().into(), x as u64, self.lanes)
            }
            fn int_add(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.int_add(a, b)
            }
            fn int_sub(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.int_sub(a, b)
            }
            fn int_and(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.int_and(a, b)
            }
            fn int_or(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.int_or(a, b)
            }
            fn int_xor(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.int_xor(a, b)
            }
            fn int_shl(&self, a: Any<'c>, n: u32) -> Any<'c> {
                self.e.shl(a, self.e.ints(self.e.ctx.$int().into(), n as u64, self.lanes))
            }
            fn int_shr(&self, a: Any<'c>, n: u32) -> Any<'c> {
                self.e.ashr(a, self.e.ints(self.e.ctx.$int().into(), n as u64, self.lanes))
            }
            fn int_eq(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                self.e.int_compare(IntPredicate::EQ, a, b)
            }
            fn int_to_float(&self, a: Any<'c>) -> Any<'c> {
                self.e.sitofp(a, self.e.lanes_of(self.e.ctx.$float().into(), self.lanes))
            }
            fn rarely(&self, m: Any<'c>, fast: Any<'c>, slow: impl FnOnce() -> Any<'c>) -> Any<'c> {
                let some = self.e.any_lane(m);
                self.e.if_value(some, || self.e.pick(m, slow(), fast), || fast)
            }
        }
    };
}

float!(f32, f32_type, i32_type, f32s);
float!(f64, f64_type, i64_type, f64s);

/// The element that a width's register values have.
trait Width {
    const ELEM: Elem;
}

impl Width for f32 {
    const ELEM: Elem = Elem::F32;
}

impl Width for f64 {
    const ELEM: Elem = Elem::D(DType::F64);
}

impl<'c> Vectors<'_, 'c> {
    fn min_max<T: Width>(&self, max: bool, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        let val = |v| Val { v, elem: T::ELEM, lanes: self.lanes };
        self.e.min_max(max, val(a), val(b)).v
    }

    fn lanes_of(&self, ty: BasicTypeEnum<'c>) -> BasicTypeEnum<'c> {
        self.e.lanes_of(ty, self.lanes)
    }
}

impl<'c> Lanes for Vectors<'_, 'c> {
    fn widen(&self, a: Any<'c>) -> Any<'c> {
        self.e.fpext(a, self.lanes_of(self.e.ctx.f64_type().into()))
    }

    fn narrow(&self, a: Any<'c>) -> Any<'c> {
        self.e.fptrunc(a, self.lanes_of(self.e.ctx.f32_type().into()))
    }
}
