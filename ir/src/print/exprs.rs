//! Expressions as syntax.

use super::names::Names;
use super::regions;
use super::syntax::*;
use crate::ast::{self, AxisIndex, ExprKind, UnaryOp};
use crate::program::*;
use crate::typing::Ctx;
use std::cell::RefCell;
use std::collections::HashSet;

/// What printing a body needs to know.
pub struct Printer<'a> {
    pub ctx: Ctx<'a>,
    pub names: Names,
    /// Names of the program's combiners and intrinsics, by their numbers.
    pub combines: &'a [String],
    pub intrinsics: &'a [String],
    /// Those of them that what is printed names: the text holds no others.
    pub used: &'a RefCell<HashSet<String>>,
    /// Parameters of a combiner, which print as parts of `a` and `b`.
    pub parts: Vec<(LocalId, ast::Expr)>,
}

impl<'a> Printer<'a> {
    pub fn body(&self) -> &'a Body {
        self.ctx.body
    }

    pub fn constant(&self, e: ExprId) -> Option<(Elem, u64)> {
        match self.body().exprs.get(e)? {
            Expr::Const { elem, bits } => Some((*elem, *bits)),
            _ => None,
        }
    }

    pub fn is_index(&self, e: ExprId, value: i64) -> bool {
        self.constant(e) == Some((Elem::Index, value as u64))
    }

    /// In a place that gives a number its type.
    pub fn typed(&self, e: ExprId) -> ast::Expr {
        match self.constant(e) {
            Some((elem, bits)) => literal(elem, bits),
            None => self.expr(e),
        }
    }

    /// A subscript: a number is an index unless it says otherwise.
    pub fn subscript(&self, e: ExprId) -> ast::Expr {
        self.expr(e)
    }

    /// In a place that gives no type.
    pub fn expr(&self, e: ExprId) -> ast::Expr {
        let Some(expr) = self.body().exprs.get(e) else { return name(format!("undeclared_{}", e.index())) };
        match expr {
            Expr::Const { elem, bits } if *elem == Elem::BOOL => literal(*elem, *bits),
            Expr::Const { elem, bits } => typed_literal(*elem, *bits),
            Expr::Local(l) => self.local(*l),
            Expr::Dim(d) => name(self.names.dims.get(*d)),
            Expr::Arg(a) => name(self.names.args.get(*a)),
            Expr::Unary(op, a) => {
                let op = if *op == UnOp::Neg { UnaryOp::Neg } else { UnaryOp::Not };
                ast_expr(ExprKind::Unary(op, Box::new(self.expr(*a))))
            }
            Expr::Binary(op, a, b) if op.is_logical() => {
                binary(binary_op(*op), self.condition(*a), self.condition(*b))
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = self.pair(*a, *b);
                binary(binary_op(*op), a, b)
            }
            Expr::Select { cond, then, other } => self.select(e, *cond, *then, *other),
            Expr::Math { f, approx, args } => {
                let f = name(f.name());
                call(if *approx { field(f, "approx") } else { f }, self.alike(args))
            }
            Expr::Cast { to, sat, value } => {
                let to = name(to.to_string());
                call(if *sat { field(to, "sat") } else { to }, vec![self.condition(*value)])
            }
            Expr::Bits { to, value } => call(name("bits"), vec![name(to.name()), self.condition(*value)]),
            Expr::Intrinsic { id, args } => {
                let f = self.intrinsics.get(id.index()).cloned().unwrap_or_default();
                self.used.borrow_mut().insert(f.clone());
                call(name(f), args.iter().map(|&a| self.typed(a)).collect())
            }
            Expr::Element { mem, index, or } => self.element(*mem, index, *or),
            Expr::Pick { tile, index } => {
                let axes = index.iter().map(|&e| AxisIndex::At(self.subscript(e))).collect();
                super::syntax::index(self.expr(*tile), axes)
            }
            Expr::Splat { value, shape } => self.splat(e, *value, shape),
            Expr::Iota { axis, shape } => {
                let named = if *axis == 0 { vec![] } else { vec![("axis", int(axis))] };
                call_with(name("iota"), extents(shape), named)
            }
            Expr::Transpose(a) => field(self.expr(*a), "T"),
            Expr::InsertAxis { value, axis } => self.insert_axis(*value, *axis),
            Expr::Slice { value, axes } => self.slice(*value, axes),
            Expr::Broadcast { value, shape } => self.shaped("broadcast", *value, shape),
            Expr::Reshape { value, shape } => self.shaped("reshape", *value, shape),
        }
    }

    pub fn local(&self, l: LocalId) -> ast::Expr {
        match self.parts.iter().find(|(part, _)| *part == l) {
            Some((_, e)) => e.clone(),
            None => name(self.names.locals.get(l)),
        }
    }

    /// A constant bool says its type, so that what it decides is still there after elaboration.
    pub fn condition(&self, e: ExprId) -> ast::Expr {
        match self.constant(e) {
            Some((elem, bits)) => typed_literal(elem, bits),
            None => self.expr(e),
        }
    }

    /// Operands of one type: a number takes it from its neighbour, the first from itself.
    fn alike(&self, args: &[ExprId]) -> Vec<ast::Expr> {
        let all = args.iter().all(|&e| self.constant(e).is_some());
        let one = |(i, &e): (usize, &ExprId)| if all && i == 0 { self.expr(e) } else { self.typed(e) };
        args.iter().enumerate().map(one).collect()
    }

    fn pair(&self, a: ExprId, b: ExprId) -> (ast::Expr, ast::Expr) {
        let a_first = if self.constant(b).is_some() { self.expr(a) } else { self.typed(a) };
        (a_first, self.typed(b))
    }

    fn select(&self, e: ExprId, cond: ExprId, then: ExprId, other: ExprId) -> ast::Expr {
        let cond = self.condition(cond);
        let (then, other) = self.pair(then, other);
        if self.body().types.get(e.index()).is_some_and(Type::is_tile) {
            return call(name("where"), vec![cond, then, other]);
        }
        ast_expr(ExprKind::If {
            is_const: false,
            cond: Box::new(cond),
            then: value_block(then),
            other: value_block(other),
        })
    }

    pub fn element(&self, mem: Mem, index: &[ExprId], or: Option<ExprId>) -> ast::Expr {
        let base = regions::mem(self, mem);
        let place = if index.is_empty() {
            base
        } else {
            let axes = index.iter().map(|&e| AxisIndex::At(self.subscript(e))).collect();
            super::syntax::index(base, axes)
        };
        match or {
            None => place,
            Some(or) => ast_expr(ExprKind::Or(Box::new(place), Box::new(self.typed(or)))),
        }
    }

    fn splat(&self, e: ExprId, value: ExprId, shape: &[u32]) -> ast::Expr {
        let elem_type = self.body().types.get(e.index()).and_then(Type::elem).unwrap_or(Elem::Index);
        let zero = self.constant(value).is_some_and(|(_, bits)| bits == 0);
        let value = if zero { None } else { Some(Box::new(self.typed(value))) };
        ast_expr(ExprKind::Fill { value, elem: elem(elem_type), shape: extents(shape) })
    }

    fn insert_axis(&self, value: ExprId, axis: u8) -> ast::Expr {
        let rank = self.body().types.get(value.index()).map_or(0, |t| t.shape().len());
        let mut axes: Vec<AxisIndex> = (0..rank).map(|_| full()).collect();
        axes.insert(usize::from(axis).min(rank), AxisIndex::New(super::nowhere()));
        index(self.expr(value), axes)
    }

    fn slice(&self, value: ExprId, axes: &[SliceAxis]) -> ast::Expr {
        let shape = self.body().types.get(value.index()).map_or(&[][..], |t| t.shape());
        let whole = |(axis, extent): (&SliceAxis, &u32)| match axis {
            SliceAxis::Span { start, len } => self.is_index(*start, 0) && len == extent,
            SliceAxis::At(_) => false,
        };
        // `x[:, :]` is x itself, so at least one axis says what it takes
        let mut all = axes.iter().zip(shape).all(whole);
        let mut list = Vec::new();
        for (axis, extent) in axes.iter().zip(shape) {
            list.push(match axis {
                SliceAxis::Span { .. } if whole((axis, extent)) && !std::mem::take(&mut all) => full(),
                SliceAxis::Span { start, len } => {
                    super::syntax::extent(self.subscript(*start), *len, None, false)
                }
                SliceAxis::At(e) => AxisIndex::At(self.subscript(*e)),
            });
        }
        index(self.expr(value), list)
    }

    fn shaped(&self, f: &str, value: ExprId, shape: &[u32]) -> ast::Expr {
        let args = std::iter::once(self.expr(value)).chain(extents(shape)).collect();
        call(name(f), args)
    }
}

fn ast_expr(kind: ExprKind) -> ast::Expr {
    super::syntax::expr(kind)
}
