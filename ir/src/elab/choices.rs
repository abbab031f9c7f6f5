//! `if` as an expression: which side is taken, and in which type.

use super::Elab;
use super::consts::Const;
use super::convert::literal_bits;
use super::scope::Value;
use crate::ast;
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::{Elem, Expr, ExprId};
use crate::span::Span;
use crate::typing::rules;

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
                return match self.block_value(taken, want) {
                    Value::Const(n @ (Const::Int(_) | Const::Float(_))) if !is_const => {
                        self.typed_by(n, left, want, span)
                    }
                    value => value,
                };
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

    /// A bare number chosen by an `if` whose condition is known: it has the type that the other branch asks for, as it
    /// would if the condition were not known. The other branch is only looked at; nothing of it stays.
    fn typed_by(&mut self, number: Const, left: &'a ast::Block, want: Option<Elem>, span: Span) -> Value {
        let kept = (self.f.clone(), self.program.clone(), self.diags.clone(), self.told.clone(), self.errors);
        let maps = (self.combines.clone(), self.intrinsics.clone(), self.positions.clone());
        let other = self.lazily(span, |s| s.block_value(left, want));
        let float = matches!(other, Value::Const(Const::Float(_)));
        let typed = !matches!(other, Value::Const(_) | Value::Poison | Value::Unit | Value::Tuple(_));
        let elem = if typed { self.to_expr(other, want, span).map(|e| self.elem(e)) } else { None };
        let elem = elem.filter(|&e| self.errors == kept.4 && e != Elem::Index);
        (self.f, self.program, self.diags, self.told, self.errors) = kept;
        (self.combines, self.intrinsics, self.positions) = maps;
        match (number, elem) {
            (c, Some(elem)) if literal_bits(&c, elem).is_ok() => {
                self.adapt(&c, elem, span).map_or(Value::Poison, Value::Expr)
            }
            (Const::Int(n), None) if float => Value::Const(Const::Float(n as f64)),
            (c, _) => Value::Const(c),
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
