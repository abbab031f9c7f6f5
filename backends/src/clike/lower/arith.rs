//! Operators. Integers wrap: what may leave its type is computed on unsigned words. Narrow floats are rounded at once.

use super::{Fun, Result, Val, is_narrow};
use crate::clike::range::Range;
use crate::clike::tree::{C, Ty};
use pantile_abi::DType;
use pantile_ir::program::*;

impl<'a> Fun<'_, 'a> {
    pub(super) fn unary(&mut self, op: UnOp, elem: Elem, a: Val) -> Result<Val> {
        let ty = a.ty;
        match (op, elem) {
            (UnOp::Not, Elem::BOOL) => Ok(Val::new(C::unary("!", a.c), Ty::Bool, Range::BOOL)),
            (UnOp::Not, _) => {
                let range = Range::new(-1 - a.range.hi, -1 - a.range.lo);
                self.wrap(elem, ty, C::unary("~", a.c), range)
            }
            (UnOp::Neg, _) if elem.is_float() => Ok(Val::of(C::unary("-", a.c), elem)),
            (UnOp::Neg, _) => {
                let zero = Val::new(C::Int(0, ty), ty, Range::exactly(0));
                let range = zero.range.minus(a.range);
                if range.fits(elem) && ty.is_signed() {
                    let ty = if elem == Elem::Index { self.wider(range, ty) } else { ty };
                    return Ok(Val::new(C::unary("-", a.c), ty, range));
                }
                self.binary(BinOp::Sub, elem, zero, a)
            }
        }
    }

    /// The type of an index whose operands have `ty`.
    fn wider(&self, range: Range, ty: Ty) -> Ty {
        if ty == Ty::I64 { Ty::I64 } else { range.index_type() }
    }

    pub(super) fn binary(&mut self, op: BinOp, elem: Elem, a: Val, b: Val) -> Result<Val> {
        if let Some(sign) = comparison(op) {
            return Ok(Val::new(C::binary(sign, a.c, b.c), Ty::Bool, Range::BOOL));
        }
        if elem.is_float() {
            return self.float_binary(op, elem, a, b);
        }
        match op {
            BinOp::LogicalAnd | BinOp::LogicalOr => {
                let sign = if op == BinOp::LogicalAnd { "&&" } else { "||" };
                Ok(Val::new(C::binary(sign, a.c, b.c), Ty::Bool, Range::BOOL))
            }
            BinOp::And | BinOp::Or | BinOp::Xor => {
                let range = if op == BinOp::And { a.range.and(b.range) } else { a.range.or(b.range) };
                let ty = if b.ty == Ty::I64 { Ty::I64 } else { a.ty };
                let sign = if op == BinOp::And {
                    "&"
                } else if op == BinOp::Or {
                    "|"
                } else {
                    "^"
                };
                let whole = Range::of(elem);
                let range = if range.within(whole) { range } else { whole };
                Ok(Val::new(C::binary(sign, a.c, b.c), ty, range))
            }
            BinOp::Div | BinOp::Rem => self.int_division(op == BinOp::Rem, elem, a, b),
            BinOp::Shr => {
                let range = a.range.shr(b.range);
                let ty = a.ty;
                self.wrap(elem, ty, C::binary(">>", a.c, b.c), range)
            }
            BinOp::Shl => {
                let range = a.range.shl(b.range);
                self.int_op("<<", elem, a, b, range)
            }
            BinOp::Mul => {
                let range = a.range.times(b.range);
                self.int_op("*", elem, a, b, range)
            }
            BinOp::Sub => {
                let range = a.range.minus(b.range);
                self.int_op("-", elem, a, b, range)
            }
            _ => {
                let range = a.range.plus(b.range);
                self.int_op("+", elem, a, b, range)
            }
        }
    }

    /// `+ - * <<`: plain where the result is known to fit, else on unsigned words.
    fn int_op(&mut self, sign: &'static str, elem: Elem, a: Val, b: Val, range: Range) -> Result<Val> {
        if elem == Elem::Index {
            return Ok(index_op(sign, a, b, range));
        }
        let ty = a.ty;
        let small = ty.bytes() < 4;
        // C computes small types in `int`, where their sums fit; products of 16 bits may not
        let plain = !ty.is_signed() && !small || range.fits_int() && small || range.fits(elem);
        if plain {
            return self.wrap(elem, ty, C::binary(sign, a.c, b.c), range);
        }
        let word = ty.wrapping();
        let right = if sign == "<<" { b.c } else { unsigned(word, b) };
        let wrapped = C::binary(sign, unsigned(word, a), right);
        self.wrap(elem, ty, wrapped, Range::INDEX)
    }

    /// Brings a result of C's wider arithmetic back into its type.
    fn wrap(&mut self, elem: Elem, ty: Ty, c: C, range: Range) -> Result<Val> {
        let whole = Range::of(elem);
        let inside = range.within(whole);
        let c = match elem {
            Elem::D(DType::I4) if !inside => self.call("wrap_i4", [c])?,
            Elem::D(DType::U4) if !inside => C::cast(ty, C::binary("&", c, C::int(15))),
            Elem::Index | Elem::D(DType::U32 | DType::U64) => c,
            Elem::D(DType::I32 | DType::I64) if inside => c,
            _ => C::cast(ty, c),
        };
        Ok(Val::new(c, ty, if inside { range } else { whole }))
    }

    /// Division that rounds down; C's own where nothing is negative.
    fn int_division(&mut self, rem: bool, elem: Elem, a: Val, b: Val) -> Result<Val> {
        let range = if rem { a.range.rem(b.range) } else { a.range.div(b.range) };
        let ty = if elem == Elem::Index && b.ty == Ty::I64 { Ty::I64 } else { a.ty };
        let range = if range.fits(elem) { range } else { Range::of(elem) };
        if a.range.lo >= 0 && b.range.lo >= 0 {
            let c = C::binary(if rem { "%" } else { "/" }, a.c, b.c);
            let c = if ty.bytes() < 4 { C::cast(ty, c) } else { c };
            return Ok(Val::new(c, ty, range));
        }
        let wide = if ty == Ty::I64 { Ty::I64 } else { Ty::I32 };
        let name = format!("{}_{}", if rem { "floor_rem" } else { "floor_div" }, wide.tag());
        let c = self.call(&name, [a.c, b.c])?;
        if ty == wide { Ok(Val::new(c, ty, range)) } else { self.wrap(elem, ty, c, range) }
    }

    pub(super) fn ceil_div(&mut self, elem: Elem, a: Val, b: Val) -> Result<Val> {
        let range = a.range.ceil_div(b.range);
        let range = if range.fits(elem) { range } else { Range::of(elem) };
        let ty = if elem == Elem::Index && b.ty == Ty::I64 { Ty::I64 } else { a.ty };
        if let (Elem::Index, Some(n)) = (elem, b.range.constant())
            && a.range.lo >= 0
            && n > 0
        {
            let more = Val::index((n - 1) as i64);
            let sum = a.range.plus(more.range);
            let sum = index_op("+", a, more, sum);
            let ty = sum.ty;
            return Ok(Val::new(C::binary("/", sum.c, b.c), ty, range));
        }
        let wide = match ty {
            Ty::U32 | Ty::I64 | Ty::U64 => ty,
            _ => Ty::I32,
        };
        let c = self.call(&format!("ceil_div_{}", wide.tag()), [a.c, b.c])?;
        if ty == wide { Ok(Val::new(c, ty, range)) } else { self.wrap(elem, ty, c, range) }
    }

    fn float_binary(&mut self, op: BinOp, elem: Elem, a: Val, b: Val) -> Result<Val> {
        let c = match op {
            BinOp::Add => C::binary("+", a.c, b.c),
            BinOp::Sub => C::binary("-", a.c, b.c),
            BinOp::Mul => C::binary("*", a.c, b.c),
            BinOp::Div => self.quotient(a.ty, a.c, b.c)?,
            _ => return Err(self.unsupported("this operator does not work on floats".into())),
        };
        self.settle(c, elem)
    }

    /// The vendor's correctly rounded division, where its operator is not.
    pub(super) fn quotient(&mut self, ty: Ty, a: C, b: C) -> Result<C> {
        let name = format!("div_{}", ty.tag());
        if self.cx.prelude.has(&name) { self.call(&name, [a, b]) } else { Ok(C::binary("/", a, b)) }
    }

    /// A result computed in a register, as a value of its type.
    pub(super) fn settle(&mut self, c: C, elem: Elem) -> Result<Val> {
        match elem {
            Elem::D(d) if is_narrow(d) => {
                let c = self.call(&format!("round_{}", Ty::of(d).tag()), [c])?;
                Ok(Val::of(c, elem))
            }
            _ => Ok(Val::of(c, elem)),
        }
    }
}

/// An index operation; overflow of 64 bits is the program's error, so only 32 bits need care.
pub(super) fn index_op(sign: &'static str, a: Val, b: Val, range: Range) -> Val {
    let range = if range.within(Range::INDEX) { range } else { Range::INDEX };
    let zero = |v: &Val| v.range == Range::exactly(0);
    let one = |v: &Val| v.range == Range::exactly(1);
    match sign {
        "+" if zero(&a) => return b,
        "+" | "-" | "<<" if zero(&b) => return a,
        "*" if one(&a) => return b,
        "*" if one(&b) => return a,
        "*" if zero(&a) || zero(&b) => return Val::index(0),
        _ => {}
    }
    if let (Some(v), true) = (range.constant(), a.range.constant().is_some() && b.range.constant().is_some())
    {
        return Val::index(v as i64);
    }
    let long = a.ty == Ty::I64 || sign != "<<" && b.ty == Ty::I64;
    let ty = if long { Ty::I64 } else { range.index_type() };
    let left = if ty == Ty::I64 && !long { C::cast(Ty::I64, a.c) } else { a.c };
    Val::new(C::binary(sign, left, b.c), ty, range)
}

fn unsigned(word: Ty, v: Val) -> C {
    match v.c {
        C::Int(n, _) if n >= 0 => C::Int(n, word),
        c if v.ty == word => c,
        c => C::cast(word, c),
    }
}

fn comparison(op: BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
        _ => return None,
    })
}
