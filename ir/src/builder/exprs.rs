//! The common way to make expressions, at a given span.

use super::{Result, fold};
use crate::program::*;
use crate::span::Span;
use crate::typing::{self, Ctx, type_of};
use std::panic::Location;

/// A builder that holds a [`Body`]. The second half are conveniences whose span is the caller's line of Rust.
pub trait Exprs: super::here::Here {
    #[doc(hidden)]
    fn body(&self) -> &Body;
    #[doc(hidden)]
    fn body_mut(&mut self) -> &mut Body;
    #[doc(hidden)]
    fn with_ctx<R>(&self, f: impl FnOnce(&Ctx) -> R) -> R;

    /// Adds an expression; exact arithmetic on `index` constants is done at once.
    fn expr(&mut self, expr: Expr, span: Span) -> Result<ExprId> {
        let expr = typing::normal(expr);
        let typed = self.with_ctx(|ctx| {
            let ty = type_of(ctx, &expr).map_err(|e| e.diagnostic(ctx.body, span))?;
            Ok((ty, fold::fold(ctx.body, &expr)))
        });
        let (ty, folded) = typed?;
        let expr = match folded {
            fold::Folded::Same(id) => return Ok(id),
            fold::Folded::Const(expr) => expr,
            fold::Folded::No => expr,
        };
        let body = self.body_mut();
        body.types.push(ty);
        Ok(body.exprs.push(expr, span))
    }

    /// Makes a name; it comes to life by the statement that defines it.
    fn local(&mut self, name: impl Into<String>, ty: Type, kind: LocalKind, span: Span) -> LocalId {
        self.body_mut().locals.push(Local::new(name, ty, kind), span)
    }

    /// The type of an expression, if the handle is this builder's.
    fn type_of(&self, e: ExprId) -> Option<&Type> {
        self.body().types.get(e.index())
    }

    fn local_ref(&self, l: LocalId) -> Option<&Local> {
        self.body().locals.get(l)
    }

    /// The value of a name.
    fn get_at(&mut self, local: LocalId, span: Span) -> Result<ExprId> {
        self.expr(Expr::Local(local), span)
    }

    fn constant_at(&mut self, elem: Elem, bits: u64, span: Span) -> Result<ExprId> {
        self.expr(Expr::Const { elem, bits }, span)
    }

    // --- at the caller's line -------------------------------------------------------------------------------

    #[track_caller]
    fn get(&mut self, local: LocalId) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.get_at(local, span)
    }

    #[track_caller]
    fn c_index(&mut self, value: i64) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.constant_at(Elem::Index, value as u64, span)
    }

    #[track_caller]
    fn c_i32(&mut self, value: i32) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.constant_at(Elem::D(pantile_abi::DType::I32), i64::from(value) as u64, span)
    }

    #[track_caller]
    fn c_u32(&mut self, value: u32) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.constant_at(Elem::D(pantile_abi::DType::U32), u64::from(value), span)
    }

    #[track_caller]
    fn c_f32(&mut self, value: f32) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.constant_at(Elem::F32, u64::from(value.to_bits()), span)
    }

    #[track_caller]
    fn c_f64(&mut self, value: f64) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.constant_at(Elem::D(pantile_abi::DType::F64), value.to_bits(), span)
    }

    #[track_caller]
    fn c_bool(&mut self, value: bool) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.constant_at(Elem::BOOL, u64::from(value), span)
    }

    #[track_caller]
    fn unary(&mut self, op: UnOp, a: ExprId) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Unary(op, a), span)
    }

    #[track_caller]
    fn binary(&mut self, op: BinOp, a: ExprId, b: ExprId) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Binary(op, a, b), span)
    }

    #[track_caller]
    fn neg(&mut self, a: ExprId) -> Result<ExprId> {
        self.unary(UnOp::Neg, a)
    }

    #[track_caller]
    fn not(&mut self, a: ExprId) -> Result<ExprId> {
        self.unary(UnOp::Not, a)
    }

    #[track_caller]
    fn add(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.binary(BinOp::Add, a, b)
    }

    #[track_caller]
    fn sub(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.binary(BinOp::Sub, a, b)
    }

    #[track_caller]
    fn mul(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.binary(BinOp::Mul, a, b)
    }

    #[track_caller]
    fn div(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.binary(BinOp::Div, a, b)
    }

    #[track_caller]
    fn rem(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.binary(BinOp::Rem, a, b)
    }

    #[track_caller]
    fn lt(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.binary(BinOp::Lt, a, b)
    }

    #[track_caller]
    fn ge(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.binary(BinOp::Ge, a, b)
    }

    #[track_caller]
    fn eq(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.binary(BinOp::Eq, a, b)
    }

    #[track_caller]
    fn and(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.binary(BinOp::LogicalAnd, a, b)
    }

    #[track_caller]
    fn math(&mut self, f: MathFn, args: &[ExprId]) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Math { f, approx: false, args: args.into() }, span)
    }

    #[track_caller]
    fn approx(&mut self, f: MathFn, args: &[ExprId]) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Math { f, approx: true, args: args.into() }, span)
    }

    #[track_caller]
    fn ceildiv(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.math(MathFn::CeilDiv, &[a, b])
    }

    #[track_caller]
    fn cast(&mut self, to: impl Into<Elem>, value: ExprId) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Cast { to: to.into(), sat: false, value }, span)
    }

    #[track_caller]
    fn sat(&mut self, to: impl Into<Elem>, value: ExprId) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Cast { to: to.into(), sat: true, value }, span)
    }

    /// `where(cond, then, other)`; on scalars only the chosen side is evaluated.
    #[track_caller]
    fn select(&mut self, cond: ExprId, then: ExprId, other: ExprId) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Select { cond, then, other }, span)
    }

    #[track_caller]
    fn transpose(&mut self, tile: ExprId) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Transpose(tile), span)
    }

    #[track_caller]
    fn insert_axis(&mut self, value: ExprId, axis: u8) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::InsertAxis { value, axis }, span)
    }

    #[track_caller]
    fn full(&mut self, value: ExprId, shape: &[u32]) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Splat { value, shape: shape.into() }, span)
    }

    #[track_caller]
    fn iota(&mut self, n: u32) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Iota { axis: 0, shape: [n][..].into() }, span)
    }

    /// One element of memory.
    #[track_caller]
    fn element(&mut self, mem: Mem, index: &[ExprId]) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Element { mem, index: index.into(), or: None }, span)
    }

    /// One element of memory, or `or` where the index is outside.
    #[track_caller]
    fn element_or(&mut self, mem: Mem, index: &[ExprId], or: ExprId) -> Result<ExprId> {
        let span = self.here(Location::caller());
        self.expr(Expr::Element { mem, index: index.into(), or: Some(or) }, span)
    }
}
