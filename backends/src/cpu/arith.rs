//! Operators and the simple functions of the language on register values, as `pantile_ir::num` defines them.

use super::emit::{Any, Emit};
use super::value::Val;
use inkwell::values::{BasicValue, FastMathFlags};
use inkwell::{FloatPredicate, IntPredicate};
use pantile_abi::DType;
use pantile_ir::program::{BinOp, Elem, MathFn, UnOp};

impl<'c> Emit<'c> {
    /// Integers of 4 bits are held in 8: brings the upper half back in line.
    pub fn wrap(&self, a: Val<'c>) -> Val<'c> {
        let four = self.ints(self.ctx.i8_type().into(), 4, a.lanes);
        match a.elem {
            Elem::D(DType::I4) => Val { v: self.ashr(self.shl(a.v, four), four), ..a },
            Elem::D(DType::U4) => Val { v: self.lshr(self.shl(a.v, four), four), ..a },
            _ => a,
        }
    }

    /// Rounds the f32 that holds a narrow float.
    pub fn settle(&self, a: Val<'c>) -> Val<'c> {
        match a.elem {
            Elem::D(d) if d.is_float() => Val { v: self.round_to(d, a.v, a.lanes), ..a },
            _ => self.wrap(a),
        }
    }

    /// Lets the compiler fuse this product or sum with its neighbour (`math contract`).
    pub fn allow_contract(&self, v: Any<'c>) -> Any<'c> {
        let inst = match v {
            Any::VectorValue(x) => x.as_instruction_value(),
            Any::FloatValue(x) => x.as_instruction_value(),
            _ => None,
        };
        if let Some(inst) = inst {
            // constants fold to no instruction, and only float instructions carry flags
            let _ = inst.set_fast_math_flags(FastMathFlags::AllowContract);
        }
        v
    }

    /// `a op b` on equal types and lanes; `contract` as in `math contract`.
    pub fn binary(&self, op: BinOp, a: Val<'c>, b: Val<'c>, contract: bool) -> Val<'c> {
        let lanes = a.lanes.max(b.lanes);
        let (a, b) = (self.widen(a, lanes), self.widen(b, lanes));
        if op.is_comparison() {
            return self.compare(op, a, b);
        }
        let v = if a.is_float() {
            let v = match op {
                BinOp::Add => self.float_add(a.v, b.v),
                BinOp::Sub => self.float_sub(a.v, b.v),
                BinOp::Mul => self.float_mul(a.v, b.v),
                BinOp::Div => self.float_div(a.v, b.v),
                _ => return self.float_rem(a, b),
            };
            if contract && a.elem.dtype() == Some(a.elem.acc().dtype().unwrap_or(DType::F32)) {
                self.allow_contract(v)
            } else {
                v
            }
        } else {
            self.int_binary(op, a, b)
        };
        self.settle(Val { v, elem: a.elem, lanes })
    }

    /// a − floor(a/b)·b
    fn float_rem(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        let q = self.unary_intrinsic("llvm.floor", self.float_div(a.v, b.v));
        let v = self.float_sub(a.v, self.float_mul(q, b.v));
        self.settle(Val { v, ..a })
    }

    fn int_binary(&self, op: BinOp, a: Val<'c>, b: Val<'c>) -> Any<'c> {
        match op {
            BinOp::Add => self.int_add(a.v, b.v),
            BinOp::Sub => self.int_sub(a.v, b.v),
            BinOp::Mul => self.int_mul(a.v, b.v),
            BinOp::And | BinOp::LogicalAnd => self.int_and(a.v, b.v),
            BinOp::Or | BinOp::LogicalOr => self.int_or(a.v, b.v),
            BinOp::Xor => self.int_xor(a.v, b.v),
            BinOp::Shl | BinOp::Shr => self.shift(op, a, b),
            BinOp::Div => self.floor_div(a, b),
            _ => {
                let q = self.floor_div(a, b);
                self.int_sub(a.v, self.int_mul(q, b.v))
            }
        }
    }

    /// A count that is too large is the user's error; masking keeps it harmless.
    fn shift(&self, op: BinOp, a: Val<'c>, b: Val<'c>) -> Any<'c> {
        let ty = self.reg_type(a.elem);
        let width = ty.into_int_type().get_bit_width() as u64;
        let count = self.int_and(b.v, self.ints(ty, width - 1, a.lanes));
        match op {
            BinOp::Shl => self.shl(a.v, count),
            _ if a.is_signed() => self.ashr(a.v, count),
            _ => self.lshr(a.v, count),
        }
    }

    fn floor_div(&self, a: Val<'c>, b: Val<'c>) -> Any<'c> {
        self.divided(a, b, false)
    }

    /// Division toward −∞, or toward +∞. A zero divisor and the one overflowing quotient are made harmless: the first
    /// is an error in the interpreter, and lanes outside a valid box may hold anything.
    fn divided(&self, a: Val<'c>, b: Val<'c>, up: bool) -> Any<'c> {
        let ty = self.reg_type(a.elem);
        let c = |x: u64| self.ints(ty, x, a.lanes);
        let zero = self.int_compare(IntPredicate::EQ, b.v, c(0));
        let rest = |q: Any<'c>, d: Any<'c>| self.int_sub(a.v, self.int_mul(q, d));
        if !a.is_signed() {
            let divisor = self.pick(zero, c(1), b.v);
            let q = self.udiv(a.v, divisor);
            if !up {
                return q;
            }
            let inexact = self.int_compare(IntPredicate::NE, rest(q, divisor), c(0));
            return self.pick(inexact, self.int_add(q, c(1)), q);
        }
        let minus = self.int_compare(IntPredicate::EQ, b.v, c(u64::MAX));
        let negated = self.int_sub(c(0), a.v);
        let unsafe_divisor = self.int_or(zero, minus);
        let divisor = self.pick(unsafe_divisor, c(1), b.v);
        let q = self.sdiv(a.v, divisor);
        let r = rest(q, divisor);
        let inexact = self.int_compare(IntPredicate::NE, r, c(0));
        let signs = self.int_xor(r, divisor);
        let predicate = if up { IntPredicate::SGE } else { IntPredicate::SLT };
        let away = self.int_and(inexact, self.int_compare(predicate, signs, c(0)));
        let next = if up { self.int_add(q, c(1)) } else { self.int_sub(q, c(1)) };
        self.pick(minus, negated, self.pick(away, next, q))
    }

    fn compare(&self, op: BinOp, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        let v = if a.is_float() {
            let p = match op {
                BinOp::Eq => FloatPredicate::OEQ,
                BinOp::Ne => FloatPredicate::UNE,
                BinOp::Lt => FloatPredicate::OLT,
                BinOp::Le => FloatPredicate::OLE,
                BinOp::Gt => FloatPredicate::OGT,
                _ => FloatPredicate::OGE,
            };
            self.float_compare(p, a.v, b.v)
        } else {
            let s = a.is_signed() && a.elem != Elem::BOOL;
            let p = match op {
                BinOp::Eq => IntPredicate::EQ,
                BinOp::Ne => IntPredicate::NE,
                BinOp::Lt if s => IntPredicate::SLT,
                BinOp::Lt => IntPredicate::ULT,
                BinOp::Le if s => IntPredicate::SLE,
                BinOp::Le => IntPredicate::ULE,
                BinOp::Gt if s => IntPredicate::SGT,
                BinOp::Gt => IntPredicate::UGT,
                _ if s => IntPredicate::SGE,
                _ => IntPredicate::UGE,
            };
            self.int_compare(p, a.v, b.v)
        };
        Val { v, elem: Elem::BOOL, lanes: a.lanes }
    }

    pub fn unary(&self, op: UnOp, a: Val<'c>) -> Val<'c> {
        let ty = self.reg_type(a.elem);
        let v = match op {
            UnOp::Neg if a.is_float() => self.float_neg(a.v),
            UnOp::Neg => self.int_sub(self.ints(ty, 0, a.lanes), a.v),
            UnOp::Not if a.elem == Elem::BOOL => self.int_xor(a.v, self.ints(ty, 1, a.lanes)),
            UnOp::Not => self.int_xor(a.v, self.ints(ty, u64::MAX, a.lanes)),
        };
        self.wrap(Val { v, ..a })
    }

    /// `cond ? a : b`; all three stretch to the widest.
    pub fn choose(&self, cond: Val<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        let lanes = cond.lanes.max(a.lanes).max(b.lanes);
        let (cond, a, b) = (self.widen(cond, lanes), self.widen(a, lanes), self.widen(b, lanes));
        Val { v: self.pick(cond.v, a.v, b.v), ..a }
    }

    /// IEEE 754-2019 minimum or maximum; plain on integers.
    pub fn min_max(&self, max: bool, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        let lanes = a.lanes.max(b.lanes);
        let (a, b) = (self.widen(a, lanes), self.widen(b, lanes));
        if !a.is_float() {
            let less = self.compare(BinOp::Lt, a, b).v;
            let v = if max { self.pick(less, b.v, a.v) } else { self.pick(less, a.v, b.v) };
            return Val { v, ..a };
        }
        // equal values differ at most in the sign of zero: and-ing (max) or or-ing (min) the bits settles it
        let int = self.lanes_of(self.bits_type(a.elem), lanes);
        let (x, y) = (self.bitcast(a.v, int), self.bitcast(b.v, int));
        let tied = if max { self.int_and(x, y) } else { self.int_or(x, y) };
        let tied = self.bitcast(tied, a.v.get_type());
        let p = if max { FloatPredicate::OGT } else { FloatPredicate::OLT };
        let first = self.float_compare(p, a.v, b.v);
        let equal = self.float_compare(FloatPredicate::OEQ, a.v, b.v);
        let chosen = self.pick(first, a.v, self.pick(equal, tied, b.v));
        // an unordered pair fell through to b; a NaN in a must win too
        let a_nan = self.float_compare(FloatPredicate::UNO, a.v, a.v);
        Val { v: self.pick(a_nan, a.v, chosen), ..a }
    }

    /// The integer type as wide as the register form of a float.
    pub fn bits_type(&self, elem: Elem) -> inkwell::types::BasicTypeEnum<'c> {
        if elem == Elem::D(DType::F64) { self.i64().into() } else { self.ctx.i32_type().into() }
    }

    /// Functions that are single instructions or compare-and-select; the others live in [`super::math`].
    pub fn simple_math(&self, f: MathFn, args: &[Val<'c>]) -> Option<Val<'c>> {
        let a = args[0];
        Some(match f {
            MathFn::Min | MathFn::Max => self.min_max(f == MathFn::Max, a, args[1]),
            MathFn::Clamp => self.min_max(false, self.min_max(true, a, args[1]), args[2]),
            MathFn::Abs if !a.is_float() && a.is_signed() => {
                let negated = self.unary(UnOp::Neg, a);
                let zero = self.constant(a.elem, 0);
                let below = self.binary(BinOp::Lt, a, zero, false);
                self.choose(below, negated, a)
            }
            MathFn::Abs if !a.is_float() => a,
            MathFn::IsNan => {
                Val { v: self.float_compare(FloatPredicate::UNO, a.v, a.v), elem: Elem::BOOL, lanes: a.lanes }
            }
            MathFn::IsInf => {
                let inf = self.float_const(a.elem, f64::INFINITY, a.lanes);
                let v = self.float_compare(FloatPredicate::OEQ, self.float_abs(a.v), inf);
                Val { v, elem: Elem::BOOL, lanes: a.lanes }
            }
            MathFn::CeilDiv => {
                let lanes = a.lanes.max(args[1].lanes);
                let (a, b) = (self.widen(a, lanes), self.widen(args[1], lanes));
                self.wrap(Val { v: self.divided(a, b, true), ..a })
            }
            _ => return None,
        })
    }

    pub fn float_const(&self, elem: Elem, x: f64, lanes: u32) -> Any<'c> {
        if elem == Elem::D(DType::F64) { self.f64s(x, lanes) } else { self.f32s(x as f32, lanes) }
    }
}
