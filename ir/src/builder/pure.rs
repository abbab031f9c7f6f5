//! Functions of scalars: combiners and the meanings of intrinsics.

use super::{Defs, Exprs, Here, Result, Shared, place};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use crate::typing::{Ctx, Frame};
use std::panic::Location;

pub struct PureBuilder {
    defs: Defs,
    func: PureFn,
}

impl Here for PureBuilder {
    fn here(&self, at: &'static Location<'static>) -> Span {
        place::span(&self.defs, at)
    }
}

impl Exprs for PureBuilder {
    fn body(&self) -> &Body {
        &self.func.body
    }

    fn body_mut(&mut self) -> &mut Body {
        &mut self.func.body
    }

    fn with_ctx<R>(&self, f: impl FnOnce(&Ctx) -> R) -> R {
        let shared = self.defs.borrow();
        f(&Ctx {
            body: &self.func.body,
            frame: Frame::Pure,
            combines: &shared.combines,
            intrinsics: &shared.intrinsics,
        })
    }
}

impl PureBuilder {
    pub(super) fn new(defs: Defs) -> PureBuilder {
        PureBuilder { defs, func: PureFn::default() }
    }

    /// A scalar parameter; order counts.
    pub fn add_param(&mut self, name: impl Into<String>, elem: Elem, span: Span) -> Result<LocalId> {
        let local = self.local(name, Type::Scalar(elem), LocalKind::Let, span);
        self.func.params.push(local);
        Ok(local)
    }

    pub fn add_let(&mut self, name: impl Into<String>, value: ExprId, span: Span) -> Result<LocalId> {
        let Some(ty) = self.type_of(value).cloned() else { return Err(super::foreign(span, "value")) };
        let local = self.local(name, ty, LocalKind::Let, span);
        self.func.lets.push((local, value));
        Ok(local)
    }

    #[track_caller]
    pub fn param(&mut self, name: impl Into<String>, elem: impl Into<Elem>) -> Result<ExprId> {
        let span = self.here(Location::caller());
        let local = self.add_param(name, elem.into(), span)?;
        self.get_at(local, span)
    }

    /// The function, with its results.
    pub fn finish(mut self, results: &[ExprId]) -> Result<PureFn> {
        for &r in results {
            let Some(ty) = self.type_of(r) else { return Err(super::foreign(Span::default(), "value")) };
            if !ty.is_scalar() {
                let span = self.func.body.exprs.span(r);
                let message = format!("the function gives scalars, not {ty}");
                return Err(Diagnostic::error(codes::NEED_SCALAR, span, message));
            }
        }
        self.func.results = results.to_vec();
        Ok(self.func)
    }
}

pub(super) fn check_combine(shared: &Shared, combine: &Combine) -> Result<()> {
    let func = &combine.func;
    let elem_of = |l: &LocalId| func.body.locals.get(*l).and_then(|l| l.ty.elem());
    let params: Vec<Option<Elem>> = func.params.iter().map(elem_of).collect();
    let result = |r: &ExprId| func.body.types.get(r.index()).and_then(Type::elem);
    let results: Vec<Option<Elem>> = func.results.iter().map(result).collect();
    let parts: Vec<Option<Elem>> = combine.identity.iter().map(|&(e, _)| Some(e)).collect();
    let twice: Vec<Option<Elem>> = parts.iter().chain(&parts).copied().collect();
    if parts.is_empty() || results != parts || params != twice {
        let message = format!("`{}` must take two tuples of its identity's types and give one", combine.name);
        return Err(Diagnostic::error(codes::COMBINE_SHAPE, combine.span, message).help(
            "write `combine f(a: (f32, i32), b: (f32, i32)) -> (f32, i32) identity (0.0, 0) { ... }`",
        ));
    }
    if let Some(&(elem, _)) =
        combine.identity.iter().find(|&&(e, bits)| !crate::typing::literal_fits(e, bits))
    {
        let message = format!("an identity of `{}` does not fit {elem}", combine.name);
        return Err(Diagnostic::error(codes::LITERAL_RANGE, combine.span, message));
    }
    if shared.combines.iter().any(|(_, c)| c.name == combine.name) {
        let message = format!("there are two combiners named `{}`", combine.name);
        return Err(Diagnostic::error(codes::COMBINE_SHAPE, combine.span, message));
    }
    Ok(())
}

pub(super) fn check_intrinsic(intrinsic: &Intrinsic) -> Result<()> {
    let func = &intrinsic.means;
    let scalars = func.params.iter().all(|l| func.body.locals.get(*l).is_some_and(|l| l.ty.is_scalar()));
    if func.results.len() != 1 || !scalars {
        let message = format!("`{}` takes scalars and gives one scalar", intrinsic.name);
        return Err(Diagnostic::error(codes::INTRINSIC_SHAPE, intrinsic.span, message));
    }
    Ok(())
}
