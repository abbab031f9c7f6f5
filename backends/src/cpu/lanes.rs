//! Instructions on scalars and vectors alike.

use super::emit::{Any, Emit, Int};
use inkwell::types::BasicTypeEnum;
use inkwell::{FloatPredicate, IntPredicate};

/// Calls a builder method on two ints or two int vectors.
macro_rules! int2 {
    ($($name:ident => $build:ident),* $(,)?) => {
        impl<'c> Emit<'c> {
            $(pub fn $name(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                match a {
                    Any::VectorValue(a) => self.b.$build(a, b.into_vector_value(), "").unwrap().into(),
                    _ => self.b.$build(a.into_int_value(), b.into_int_value(), "").unwrap().into(),
                }
            })*
        }
    };
}

macro_rules! float2 {
    ($($name:ident => $build:ident),* $(,)?) => {
        impl<'c> Emit<'c> {
            $(pub fn $name(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
                match a {
                    Any::VectorValue(a) => self.b.$build(a, b.into_vector_value(), "").unwrap().into(),
                    _ => self.b.$build(a.into_float_value(), b.into_float_value(), "").unwrap().into(),
                }
            })*
        }
    };
}

int2! {
    int_add => build_int_add,
    int_sub => build_int_sub,
    int_mul => build_int_mul,
    int_and => build_and,
    int_or => build_or,
    int_xor => build_xor,
    shl => build_left_shift,
    sdiv => build_int_signed_div,
    udiv => build_int_unsigned_div,
}

float2! {
    float_add => build_float_add,
    float_sub => build_float_sub,
    float_mul => build_float_mul,
    float_div => build_float_div,
}

macro_rules! cast {
    ($($name:ident: $from:ident -> $to:ident => $build:ident),* $(,)?) => {
        impl<'c> Emit<'c> {
            $(pub fn $name(&self, a: Any<'c>, ty: BasicTypeEnum<'c>) -> Any<'c> {
                match a {
                    Any::VectorValue(a) => self.b.$build(a, ty.into_vector_type(), "").unwrap().into(),
                    _ => self.b.$build(a.$from(), ty.$to(), "").unwrap().into(),
                }
            })*
        }
    };
}

cast! {
    zext: into_int_value -> into_int_type => build_int_z_extend,
    sext: into_int_value -> into_int_type => build_int_s_extend,
    trunc: into_int_value -> into_int_type => build_int_truncate,
    sitofp: into_int_value -> into_float_type => build_signed_int_to_float,
    uitofp: into_int_value -> into_float_type => build_unsigned_int_to_float,
    fptosi: into_float_value -> into_int_type => build_float_to_signed_int,
    fptrunc: into_float_value -> into_float_type => build_float_trunc,
    fpext: into_float_value -> into_float_type => build_float_ext,
}

impl<'c> Emit<'c> {
    pub fn lshr(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.shift_right(a, b, false)
    }

    pub fn ashr(&self, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.shift_right(a, b, true)
    }

    fn shift_right(&self, a: Any<'c>, b: Any<'c>, arithmetic: bool) -> Any<'c> {
        match a {
            Any::VectorValue(a) => {
                self.b.build_right_shift(a, b.into_vector_value(), arithmetic, "").unwrap().into()
            }
            _ => {
                let (a, b) = (a.into_int_value(), b.into_int_value());
                self.b.build_right_shift(a, b, arithmetic, "").unwrap().into()
            }
        }
    }

    pub fn bitcast(&self, a: Any<'c>, ty: BasicTypeEnum<'c>) -> Any<'c> {
        self.b.build_bit_cast(a, ty, "").unwrap()
    }

    pub fn int_compare(&self, p: IntPredicate, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        match a {
            Any::VectorValue(a) => self.b.build_int_compare(p, a, b.into_vector_value(), "").unwrap().into(),
            _ => self.b.build_int_compare(p, a.into_int_value(), b.into_int_value(), "").unwrap().into(),
        }
    }

    pub fn float_compare(&self, p: FloatPredicate, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        match a {
            Any::VectorValue(a) => {
                self.b.build_float_compare(p, a, b.into_vector_value(), "").unwrap().into()
            }
            _ => {
                let (a, b) = (a.into_float_value(), b.into_float_value());
                self.b.build_float_compare(p, a, b, "").unwrap().into()
            }
        }
    }

    pub fn float_neg(&self, a: Any<'c>) -> Any<'c> {
        match a {
            Any::VectorValue(a) => self.b.build_float_neg(a, "").unwrap().into(),
            _ => self.b.build_float_neg(a.into_float_value(), "").unwrap().into(),
        }
    }

    /// Lane by lane: `c ? a : b` with a condition of the same lane count.
    pub fn pick(&self, c: Any<'c>, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        match c {
            Any::VectorValue(c) => self.b.build_select(c, a, b, "").unwrap(),
            _ => self.b.build_select(c.into_int_value(), a, b, "").unwrap(),
        }
    }

    /// One-operand float intrinsic on the value's own type.
    pub fn unary_intrinsic(&self, name: &str, a: Any<'c>) -> Any<'c> {
        self.intrinsic(name, &[a.get_type()], &[a.into()]).expect("a value")
    }

    pub fn float_abs(&self, a: Any<'c>) -> Any<'c> {
        self.unary_intrinsic("llvm.fabs", a)
    }

    pub fn round_even(&self, a: Any<'c>) -> Any<'c> {
        self.unary_intrinsic("llvm.roundeven", a)
    }

    pub fn sqrt(&self, a: Any<'c>) -> Any<'c> {
        self.unary_intrinsic("llvm.sqrt", a)
    }

    /// a·b + c, rounded once.
    pub fn fma(&self, a: Any<'c>, b: Any<'c>, c: Any<'c>) -> Any<'c> {
        self.intrinsic("llvm.fma", &[a.get_type()], &[a.into(), b.into(), c.into()]).expect("a value")
    }

    /// Whether any lane of a mask is set.
    pub fn any_lane(&self, mask: Any<'c>) -> Int<'c> {
        match mask {
            Any::VectorValue(v) => {
                let any = self.intrinsic("llvm.vector.reduce.or", &[v.get_type().into()], &[v.into()]);
                any.expect("a value").into_int_value()
            }
            one => one.into_int_value(),
        }
    }
}
