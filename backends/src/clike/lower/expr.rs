//! Expressions.

use super::{Fun, Result, Val, is_narrow};
use crate::clike::prelude::{f32_literal, f64_literal};
use crate::clike::range::Range;
use crate::clike::tree::{C, Ty};
use pantile_abi::DType;
use pantile_ir::num;
use pantile_ir::program::*;

impl<'a> Fun<'_, 'a> {
    pub(super) fn expr(&mut self, e: ExprId) -> Result<Val> {
        if let Some(v) = self.shared.get(&e) {
            return Ok(v.clone());
        }
        let elem = self.elem(e)?;
        let body = self.body;
        if let Some(known) = self.known(e) {
            return Ok(constant(Elem::BOOL, known.into()));
        }
        match &body.exprs[e] {
            // one side decides nothing
            Expr::Binary(BinOp::LogicalAnd | BinOp::LogicalOr, a, b) if self.known(*a).is_some() => {
                self.expr(*b)
            }
            Expr::Binary(BinOp::LogicalAnd | BinOp::LogicalOr, a, b) if self.known(*b).is_some() => {
                self.expr(*a)
            }
            Expr::Select { cond, then, other } if self.known(*cond).is_some() => {
                let chosen = if self.known(*cond) == Some(true) { then } else { other };
                self.expr(*chosen)
            }
            Expr::Const { elem, bits } => Ok(constant(*elem, *bits)),
            Expr::Local(l) => self.read_local(*l, elem),
            Expr::Dim(d) => Ok(Val::new(C::name(self.dims[d.index()].clone()), Ty::I64, Range::DIM)),
            Expr::Arg(a) => self.read_arg(*a, elem),
            Expr::Unary(op, a) => {
                let a = self.expr(*a)?;
                self.unary(*op, elem, a)
            }
            Expr::Binary(op, a, b) => {
                let of = self.elem(*a)?;
                let (a, b) = (self.expr(*a)?, self.expr(*b)?);
                self.binary(*op, of, a, b)
            }
            Expr::Select { cond, then, other } => {
                let (c, a, b) = (self.expr(*cond)?, self.expr(*then)?, self.expr(*other)?);
                Ok(choose(c.c, a, b))
            }
            Expr::Math { f, approx, args } => self.math(*f, *approx, args),
            Expr::Cast { to, sat, value } => {
                let from = self.elem(*value)?;
                let v = self.expr(*value)?;
                self.cast(v, from, *to, *sat)
            }
            Expr::Bits { to, value } => {
                let from = self.elem(*value)?;
                let v = self.expr(*value)?;
                self.reinterpret(v, from, *to)
            }
            Expr::Intrinsic { id, args } => self.intrinsic(*id, args),
            Expr::Element { mem, index, or } => self.element(*mem, index, *or),
            Expr::Pick { .. }
            | Expr::Splat { .. }
            | Expr::Iota { .. }
            | Expr::Transpose(_)
            | Expr::InsertAxis { .. }
            | Expr::Slice { .. }
            | Expr::Broadcast { .. }
            | Expr::Reshape { .. } => Err(self.not_threaded("a tile")),
        }
    }

    /// A condition that the text, or the present range of a loop, decides.
    pub(super) fn known(&self, e: ExprId) -> Option<bool> {
        match &self.body.exprs[e] {
            Expr::Const { elem, bits } if *elem == Elem::BOOL => Some(*bits != 0),
            Expr::Local(l) => self.fixed.get(l).copied(),
            Expr::Unary(UnOp::Not, a) => self.known(*a).map(|b| !b),
            Expr::Binary(op @ (BinOp::LogicalAnd | BinOp::LogicalOr), a, b) => {
                let decides = *op == BinOp::LogicalOr;
                match (self.known(*a), self.known(*b)) {
                    (Some(x), _) | (_, Some(x)) if x == decides => Some(decides),
                    (Some(_), Some(_)) => Some(!decides),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn read_local(&self, l: LocalId, elem: Elem) -> Result<Val> {
        let var = self.local(l)?;
        if var.range == Range::exactly(0) && var.name == "0" {
            return Ok(Val::index(0));
        }
        let c = C::name(var.name.clone());
        Ok(if elem.is_integer() { Val::new(c, var.ty, var.range) } else { Val::of(c, elem) })
    }

    fn read_arg(&mut self, a: ArgId, elem: Elem) -> Result<Val> {
        let c = C::name(self.args[a.index()].clone());
        match elem {
            Elem::D(d) if is_narrow(d) => self.from_word(c, d),
            _ => Ok(Val::of(c, elem)),
        }
    }

    /// What a word of memory holds.
    pub(super) fn from_word(&mut self, c: C, d: DType) -> Result<Val> {
        let c = if is_narrow(d) { self.call(&format!("from_{}", Ty::of(d).tag()), [c])? } else { c };
        Ok(Val::of(c, Elem::D(d)))
    }

    /// The word that memory holds for a value.
    pub(super) fn to_word(&mut self, v: Val, d: DType) -> Result<C> {
        if !is_narrow(d) {
            return Ok(v.c);
        }
        let tag = Ty::of(d).tag();
        // converting what was just rounded gives the same word
        let inner = match v.c {
            C::Call(f, mut args) if f == format!("round_{tag}") => args.remove(0),
            C::Call(f, mut args) if f == format!("from_{tag}") => return Ok(args.remove(0)),
            c => c,
        };
        self.call(&format!("to_{tag}"), [inner])
    }

    /// A whole statement's value: parts that it uses more than once get a name first.
    pub(super) fn value(&mut self, e: ExprId) -> Result<Val> {
        self.share(&[e])?;
        self.expr(e)
    }
}

/// `c ? a : b`; an index has the wider type of the two.
pub(super) fn choose(cond: C, a: Val, b: Val) -> Val {
    let ty = if a.ty == Ty::I64 || b.ty == Ty::I64 { Ty::I64 } else { a.ty };
    Val::new(C::choice(cond, a.c, b.c), ty, a.range.union(b.range))
}

pub(super) fn constant(elem: Elem, bits: u64) -> Val {
    let ty = match elem {
        Elem::Index => return Val::index(bits as i64),
        Elem::D(d) => Ty::of(d).register(),
    };
    let c = match elem {
        Elem::D(DType::Bool) => C::name(if bits != 0 { "true" } else { "false" }),
        Elem::D(DType::F64) => number(f64_literal(f64::from_bits(bits))),
        Elem::D(d) if d.is_float() => number(f32_literal(num::to_f64(elem, bits) as f32)),
        Elem::D(d) if d.is_signed() => C::Int((bits as i64).into(), ty),
        _ => C::Int(bits.into(), ty),
    };
    let range = match num::to_i64(elem, bits) {
        Some(v) => Range::exactly(v.into()),
        None if elem.is_integer() => Range::exactly(bits.into()),
        None => Range::of(elem),
    };
    Val::new(c, ty, range)
}

fn number(text: String) -> C {
    match text.strip_prefix('-') {
        Some(rest) => C::unary("-", C::name(rest)),
        None => C::name(text),
    }
}
