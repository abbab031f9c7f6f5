//! What kernels and ops have in common: dims, parameters, launch conditions.

use super::Result;
use crate::program::*;
use crate::span::Span;
use crate::typing::{Ctx, check_arg, rules};

pub(super) fn arg(ctx: &Ctx, arg: &Arg, span: Span) -> Result<()> {
    check_arg(ctx, arg).map_err(|e| e.diagnostic(ctx.body, span))
}

pub(super) fn condition(ctx: &Ctx, cond: ExprId, span: Span) -> Result<()> {
    rules::need_condition(ctx, "`where`", cond).map_err(|e| e.diagnostic(ctx.body, span))
}

pub(super) fn extents(ctx: &Ctx, what: &str, list: &[ExprId], span: Span) -> Result<()> {
    list.iter().try_for_each(|&e| rules::need_index(ctx, what, e)).map_err(|e| e.diagnostic(ctx.body, span))
}

/// The parameter declarations that kernels and ops share, for both builders.
macro_rules! parameters {
    ($field:ident) => {
        pub fn add_dim(&mut self, dim: Dim, span: Span) -> DimId {
            self.$field.dims.push(dim, span)
        }

        pub fn add_arg(&mut self, arg: Arg, span: Span) -> Result<ArgId> {
            self.with_ctx(|ctx| super::frame::arg(ctx, &arg, span))?;
            Ok(self.$field.args.push(arg, span))
        }

        /// A launch condition, with its text for the error that a false one is.
        pub fn add_where(&mut self, cond: ExprId, text: impl Into<String>, span: Span) -> Result<()> {
            self.with_ctx(|ctx| super::frame::condition(ctx, cond, span))?;
            self.$field.wheres.push((cond, text.into()));
            Ok(())
        }

        pub fn set_deterministic(&mut self, deterministic: bool) {
            self.$field.deterministic = deterministic;
        }

        /// A symbolic dim, as a value.
        #[track_caller]
        pub fn dim(&mut self, name: impl Into<String>) -> Result<ExprId> {
            let span = self.here(Location::caller());
            let id = self.add_dim(Dim { name: name.into(), stride: false }, span);
            self.expr(Expr::Dim(id), span)
        }

        /// A row-major tensor parameter.
        #[track_caller]
        pub fn tensor(
            &mut self,
            name: impl Into<String>,
            mode: Mode,
            elem: DType,
            dims: &[ExprId],
        ) -> Result<ArgId> {
            let span = self.here(Location::caller());
            let tensor = Tensor {
                mode,
                elem,
                dims: dims.into(),
                strides: None,
                align: None,
                base_align: None,
                packed: None,
                prepacked: None,
            };
            self.add_arg(Arg { name: name.into(), kind: ArgKind::Tensor(tensor) }, span)
        }

        /// A scalar parameter, as a value.
        #[track_caller]
        pub fn scalar(&mut self, name: impl Into<String>, elem: impl Into<Elem>) -> Result<ExprId> {
            let span = self.here(Location::caller());
            let id = self.add_arg(Arg { name: name.into(), kind: ArgKind::Scalar(elem.into()) }, span)?;
            self.expr(Expr::Arg(id), span)
        }
    };
}
pub(super) use parameters;
