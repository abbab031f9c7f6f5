//! Numbers without a type take one, constants fold, conversions: everything that changes what type a value has.

use super::Elab;
use super::consts::Const;
use super::emit::FrameKind;
use super::scope::Value;
use crate::ast;
use crate::codes;
use crate::diag::Diagnostic;
use crate::num;
use crate::program::*;
use crate::span::Span;
use pantile_abi::DType;

/// Bits of a compile-time number or bool in a type, or why it cannot be.
pub(crate) fn literal_bits(c: &Const, elem: Elem) -> Result<u64, String> {
    match *c {
        Const::Bool(b) if elem == Elem::BOOL => Ok(b.into()),
        Const::Int(_) | Const::Float(_) if elem == Elem::BOOL => Err("a number is not a bool".into()),
        Const::Int(n) => num::from_int(elem, n).ok_or_else(|| match elem.is_float() {
            true => format!("{n} is not a value of {elem}: it would be rounded"),
            false => format!("{n} does not fit into {elem}"),
        }),
        Const::Float(x) if elem.is_float() => {
            let bits = num::from_f64(elem, x).map_err(|_| format!("{x:?} does not fit into {elem}"))?;
            let back = num::to_f64(elem, bits);
            if x.is_finite() && !back.is_finite() {
                return Err(format!("{x:?} does not fit into {elem}: it would be infinite"));
            }
            if x != 0.0 && back == 0.0 {
                return Err(format!("{x:?} is too small for {elem}: it would be zero"));
            }
            if x.is_infinite() && back.is_finite() {
                return Err(format!("{elem} has no infinity"));
            }
            Ok(num::one_nan(elem, bits))
        }
        Const::Float(x) => Err(format!("{x:?} is not a value of {elem}")),
        ref other => Err(format!("{} is not a value of {elem}", other.kind())),
    }
}

impl<'a> Elab<'a> {
    /// A compile-time number or bool as a value of a type.
    pub(crate) fn adapt(&mut self, c: &Const, elem: Elem, span: Span) -> Option<ExprId> {
        match literal_bits(c, elem) {
            Ok(bits) => self.push(Expr::Const { elem, bits }, span),
            Err(text) => {
                let d = Diagnostic::error(codes::NUMBER_RANGE, self.sp(span), text);
                self.report(match c {
                    Const::Float(_) if elem.is_integer() => {
                        d.help("write a whole number, or convert the other side to a float")
                    }
                    Const::Int(_) if elem == Elem::BOOL => {
                        d.help("write `true` or `false`, or compare: `x != 0`")
                    }
                    Const::Bool(_) => d.help(format!(
                        "choose a number: `if c {{ 1 }} else {{ 0 }}`, or convert: `{elem}(c)`"
                    )),
                    _ => d,
                });
                None
            }
        }
    }

    pub(crate) fn index_const(&mut self, n: i64, span: Span) -> Option<ExprId> {
        self.push(Expr::Const { elem: Elem::Index, bits: n as u64 }, span)
    }

    /// An integer next to `index` becomes `index`: nothing is lost, and dims meet loaded integers everywhere.
    pub(crate) fn widen_ints(&mut self, x: ExprId, y: ExprId) -> (ExprId, ExprId) {
        match (self.elem(x), self.elem(y)) {
            (Elem::Index, e) if grows(e) => (x, self.as_index(y)),
            (e, Elem::Index) if grows(e) => (self.as_index(x), y),
            _ => (x, y),
        }
    }

    fn as_index(&mut self, e: ExprId) -> ExprId {
        let span = self.f.body.exprs.span(e);
        self.push(Expr::Cast { to: Elem::Index, sat: false, value: e }, span).unwrap_or(e)
    }

    pub(crate) fn to_index(&mut self, e: ExprId, _span: Span) -> ExprId {
        if self.ty(e).is_scalar() && grows(self.elem(e)) { self.as_index(e) } else { e }
    }

    /// `T(x)` and `T.sat(x)`
    pub(crate) fn cast(&mut self, to: Elem, sat: bool, arg: &'a ast::Expr, span: Span) -> Value {
        let value = match self.expr(arg, None) {
            Value::Const(c) if c.is_number() || matches!(c, Const::Bool(_)) => {
                return self.cast_const(to, sat, &c, arg.span);
            }
            other => match self.to_expr(other, None, arg.span) {
                Some(e) => e,
                None => return Value::Poison,
            },
        };
        if self.elem(value) == to {
            return Value::Expr(value);
        }
        self.folded(Expr::Cast { to, sat, value }, span)
    }

    /// A number written inside a conversion is a literal of that type; where nothing but compile-time values are
    /// around, it stays one.
    fn cast_const(&mut self, to: Elem, sat: bool, c: &Const, span: Span) -> Value {
        if to == Elem::Index || self.f.kind == FrameKind::Consts {
            return match (c, to) {
                (Const::Int(_), _) => Value::Const(c.clone()),
                (Const::Float(x), Elem::Index) if x.is_finite() && x.abs() < 9e18 => {
                    Value::Const(Const::Int(x.round_ties_even() as i128))
                }
                (Const::Float(_), t) if t.is_float() => Value::Const(c.clone()),
                _ => self.adapt(c, to, span).map_or(Value::Poison, Value::Expr),
            };
        }
        let c = match c {
            Const::Bool(b) if to != Elem::BOOL => Const::Int((*b).into()),
            // a fraction converts to an integer as a value of f64 would
            Const::Float(x) if to.is_integer() => {
                let from = Elem::D(DType::F64);
                let Some(value) = self.push(Expr::Const { elem: from, bits: x.to_bits() }, span) else {
                    return Value::Poison;
                };
                return self.folded(Expr::Cast { to, sat, value }, span);
            }
            other => other.clone(),
        };
        if sat && let Some(x) = c.as_f64() {
            let from = Elem::D(DType::F64);
            if let Ok(bits) = num::convert(from, to, x.to_bits(), num::Rounding::Saturate) {
                return self.push(Expr::Const { elem: to, bits }, span).map_or(Value::Poison, Value::Expr);
            }
        }
        if let (Const::Int(n), true) = (&c, to.is_float()) {
            // an integer that the type rounds: written as a conversion, so rounding is meant
            let bits = num::from_int(to, *n).or_else(|| num::from_f64(to, *n as f64).ok());
            if let Some(bits) = bits.filter(|&b| num::to_f64(to, b).is_finite()) {
                return self.push(Expr::Const { elem: to, bits }, span).map_or(Value::Poison, Value::Expr);
            }
        }
        self.adapt(&c, to, span).map_or(Value::Poison, Value::Expr)
    }

    /// `x + 0`, `x * 1` and the like of `index`: the operand that the expression equals.
    pub(crate) fn same_as_operand(&self, e: &Expr) -> Option<ExprId> {
        let known = |id| self.f.body.index_constant(id);
        let Expr::Binary(op, a, b) = *e else { return None };
        match (op, known(a), known(b)) {
            (BinOp::Add, Some(0), _) | (BinOp::Mul, Some(1), _) => {
                Some(b).filter(|&b| self.elem(b) == Elem::Index)
            }
            (BinOp::Add | BinOp::Sub, _, Some(0)) | (BinOp::Mul | BinOp::Div, _, Some(1)) => {
                Some(a).filter(|&a| self.elem(a) == Elem::Index)
            }
            _ => None,
        }
    }

    /// Integer and bool constants are computed now.
    pub(crate) fn fold(&self, e: Expr) -> Expr {
        let known = |id: ExprId| match self.f.body.exprs[id] {
            Expr::Const { elem, bits } if !elem.is_float() => Some((elem, bits)),
            _ => None,
        };
        let folded = match &e {
            Expr::Binary(op, a, b) if !op.is_logical() => match (known(*a), known(*b)) {
                (Some((elem, x)), Some((other, y))) if elem == other => {
                    let elem_out = if op.is_comparison() { Elem::BOOL } else { elem };
                    num::binary((*op).into(), elem, x, y)
                        .ok()
                        .map(|bits| Expr::Const { elem: elem_out, bits })
                }
                _ => None,
            },
            Expr::Unary(op, a) => known(*a).and_then(|(elem, x)| {
                num::unary((*op).into(), elem, x).ok().map(|bits| Expr::Const { elem, bits })
            }),
            Expr::Cast { to, sat: false, value } if *to != Elem::BOOL && !to.is_float() => known(*value)
                .and_then(|(elem, x)| {
                    num::convert(elem, *to, x, num::Rounding::Nearest)
                        .ok()
                        .map(|bits| Expr::Const { elem: *to, bits })
                }),
            Expr::Math { f, args, .. } => match (num::Bin::of_math(*f), args.as_slice()) {
                (Some(op), [a, b]) => match (known(*a), known(*b)) {
                    (Some((elem, x)), Some((other, y))) if elem == other => {
                        num::binary(op, elem, x, y).ok().map(|bits| Expr::Const { elem, bits })
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        folded.unwrap_or(e)
    }

    // ---- order of evaluation --------------------------------------------------------------------------------------

    /// The present place in the block, for [`Elab::settle`].
    pub(crate) fn mark(&self) -> usize {
        self.f.block.len()
    }

    /// A left operand that reads memory is evaluated before effects which its right neighbour has emitted.
    pub(crate) fn settle(&mut self, v: Value, e: &'a ast::Expr, mark: usize) -> Value {
        let Value::Expr(id) = v else { return v };
        if self.f.block.len() <= mark
            || !self.f.block[mark..].iter().any(has_effect)
            || !self.reads_memory(id)
        {
            return v;
        }
        let ty = self.ty(id).clone();
        let local = self.new_local("t", ty, LocalKind::Let, e.span);
        let span = self.sp(e.span);
        self.f.block.insert(mark, Stmt::new(StmtKind::Let { local, value: id }, span));
        self.read_local(local, e.span).map_or(Value::Poison, Value::Expr)
    }

    fn reads_memory(&self, id: ExprId) -> bool {
        self.f.body.holds(id, |x, _| matches!(x, Expr::Element { .. }))
    }
}

fn grows(e: Elem) -> bool {
    e.is_integer() && e != Elem::Index && e != Elem::D(DType::U64)
}

fn has_effect(s: &Stmt) -> bool {
    match &s.kind {
        StmtKind::Op { op, .. } => matches!(op, Op::Atomic { .. } | Op::Write { .. } | Op::CopyAsync { .. }),
        StmtKind::Store { .. } => true,
        StmtKind::If { then, other, .. } => then.iter().chain(other).any(has_effect),
        StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::Parallel { body, .. } => {
            body.iter().any(has_effect)
        }
        _ => false,
    }
}
