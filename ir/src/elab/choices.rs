//! `if` as an expression: which side is taken, and in which type.

use super::Elab;
use super::consts::Const;
use super::convert::literal_bits;
use super::scope::Value;
use crate::ast;
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::{Elem, Expr, ExprId, Shape};
use crate::span::Span;
use crate::typing::rules;

/// What is known of a value that is not taken.
enum Like {
    Open,
    /// a bare number with a fraction
    Float,
    Typed(Elem, Shape),
    Tuple(Vec<Like>),
}

impl<'a> Elab<'a> {
    pub(crate) fn lazily<R>(&mut self, decides: Span, f: impl FnOnce(&mut Self) -> R) -> R {
        let outer = self.f.lazy;
        if outer.is_none() {
            self.f.lazy = Some(self.sp(decides));
        }
        let result = f(self);
        self.f.lazy = outer;
        result
    }

    pub(crate) fn choice(
        &mut self,
        is_const: bool,
        cond: &'a ast::Expr,
        then: &'a ast::Block,
        other: &'a ast::Block,
        want: Option<Elem>,
        span: Span,
    ) -> Value {
        let c = match self.expr(cond, None) {
            Value::Const(Const::Bool(c)) => {
                let (taken, left) = if c { (then, other) } else { (other, then) };
                let value = self.block_value(taken, want);
                if is_const || self.settled(&value) {
                    return value;
                }
                let like = self.looked_at(left, want, span);
                return self.conform(value, &like, span);
            }
            Value::Poison => return Value::Poison,
            found if is_const => {
                self.not_const_condition(found, cond);
                return Value::Poison;
            }
            found => match self.to_expr(found, Some(Elem::BOOL), cond.span) {
                Some(c) if self.condition("`if`", c, cond.span) => c,
                _ => return Value::Poison,
            },
        };
        let x = self.lazily(cond.span, |s| s.block_value(then, want));
        let y = self.lazily(cond.span, |s| s.block_value(other, want));
        let places = (block_end(then), block_end(other), span);
        self.select(c, x, y, want, places)
    }

    /// Whether the other branch cannot change a value's type or shape: no bare number, no scalar that a tile would
    /// stretch.
    fn settled(&self, value: &Value) -> bool {
        match value {
            Value::Const(c) => !matches!(c, Const::Int(_) | Const::Float(_)),
            Value::Tuple(parts) => parts.iter().all(|v| self.settled(v)),
            Value::Expr(e) => self.ty(*e).is_tile(),
            Value::Local(l) => self.f.body.locals[*l].ty.is_tile(),
            Value::Arg(_) => false,
            _ => true,
        }
    }

    /// What the branch that is not taken would give. It is only looked at; nothing of it stays.
    fn looked_at(&mut self, left: &'a ast::Block, want: Option<Elem>, span: Span) -> Like {
        let kept = (self.f.clone(), self.program.clone(), self.diags.clone(), self.told.clone(), self.errors);
        let maps = (self.combines.clone(), self.intrinsics.clone(), self.positions.clone());
        let other = self.lazily(span, |s| s.block_value(left, want));
        let like = self.like(other, want, span);
        let sound = self.errors == kept.4;
        (self.f, self.program, self.diags, self.told, self.errors) = kept;
        (self.combines, self.intrinsics, self.positions) = maps;
        if sound { like } else { Like::Open }
    }

    fn like(&mut self, value: Value, want: Option<Elem>, span: Span) -> Like {
        match value {
            Value::Tuple(parts) => {
                Like::Tuple(parts.iter().map(|v| self.like(v.clone(), want, span)).collect())
            }
            Value::Const(Const::Float(_)) => Like::Float,
            Value::Expr(_) | Value::Local(_) | Value::Arg(_) => match self.to_expr(value, want, span) {
                Some(e) => Like::Typed(self.elem(e), self.ty(e).shape().into()),
                None => Like::Open,
            },
            _ => Like::Open,
        }
    }

    /// The chosen value in the type and shape that it would have if the condition were not known.
    fn conform(&mut self, value: Value, like: &Like, span: Span) -> Value {
        let value = match (value, like) {
            (Value::Tuple(parts), Like::Tuple(likes)) if parts.len() == likes.len() => {
                let parts: Vec<Value> =
                    parts.iter().zip(likes).map(|(v, l)| self.conform(v.clone(), l, span)).collect();
                return Value::Tuple(parts.into());
            }
            (Value::Const(Const::Int(n)), Like::Float) => return Value::Const(Const::Float(n as f64)),
            (Value::Const(c @ (Const::Int(_) | Const::Float(_))), Like::Typed(elem, _))
                if *elem != Elem::Index && literal_bits(&c, *elem).is_ok() =>
            {
                self.adapt(&c, *elem, span).map_or(Value::Poison, Value::Expr)
            }
            (value, _) => value,
        };
        match (&value, like) {
            (Value::Expr(_) | Value::Local(_) | Value::Arg(_), Like::Typed(_, shape))
                if !shape.is_empty() =>
            {
                match self.to_expr(value.clone(), None, span) {
                    Some(e) if !self.ty(e).is_tile() => {
                        let splat = Expr::Splat { value: e, shape: shape.clone() };
                        self.push(splat, span).map_or(Value::Poison, Value::Expr)
                    }
                    _ => value,
                }
            }
            _ => value,
        }
    }

    pub(crate) fn not_const_condition(&mut self, found: Value, cond: &'a ast::Expr) {
        let d = match found {
            Value::Const(c) => {
                let text = format!("a condition is a bool, not {}", c.kind());
                Diagnostic::error(codes::WRONG_CONST, self.sp(cond.span), text)
            }
            _ => Diagnostic::error(
                codes::NOT_CONSTANT,
                self.sp(cond.span),
                "`if const` needs a condition known at compile time",
            )
            .help("write `if` where it is decided while the kernel runs"),
        };
        self.report(d);
    }

    /// Whether the value may decide control flow; if not, it is reported.
    pub(crate) fn condition(&mut self, what: &str, c: ExprId, span: Span) -> bool {
        match rules::need_condition(&self.ctx(), what, c) {
            Ok(()) => true,
            Err(e) => {
                let d = e.diagnostic(&self.f.body, self.sp(span));
                self.report(d);
                false
            }
        }
    }

    fn select(&mut self, c: ExprId, x: Value, y: Value, want: Option<Elem>, at: (Span, Span, Span)) -> Value {
        match (x, y) {
            (Value::Poison, _) | (_, Value::Poison) => Value::Poison,
            (Value::Tuple(xs), Value::Tuple(ys)) if xs.len() == ys.len() => {
                let parts: Vec<Value> = xs
                    .iter()
                    .zip(ys.iter())
                    .map(|(x, y)| self.select(c, x.clone(), y.clone(), None, at))
                    .collect();
                Value::Tuple(parts.into())
            }
            (x, y) => {
                let Some((x, y)) = self.alike(x, at.0, y, at.1, want) else { return Value::Poison };
                let e = Expr::Select { cond: c, then: x, other: y };
                self.push(e, at.2).map_or(Value::Poison, Value::Expr)
            }
        }
    }
}

fn block_end(b: &ast::Block) -> Span {
    b.tail.as_ref().map_or(b.span, |t| t.span)
}
