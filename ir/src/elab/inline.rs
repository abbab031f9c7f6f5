//! Calls of `fn` items: generics bound from the arguments, the body elaborated in place under a scope of its own.

use super::Elab;
use super::bindings::{Slot, class_admits, class_words};
use super::consts::Const;
use super::library::ItemRef;
use super::scope::{Scope, Value};
use crate::ast::{self, Arg, ExprKind, GenericArg, GenericKind, TypeKind};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;

impl<'a> Elab<'a> {
    pub(crate) fn inline(
        &mut self,
        r: ItemRef,
        f: &'a ast::Fn,
        generics: &'a [GenericArg],
        args: &'a [Arg],
        want: Option<Elem>,
        span: Span,
    ) -> Value {
        if self.recursive(r, &f.name, span) || self.too_large(span) {
            return Value::Poison;
        }
        let Some(mut slots) = self.explicit_generics(&f.generics, &f.name, generics, span) else {
            return Value::Poison;
        };
        let Some(exprs) = self.ordered_args(f, args, span) else { return Value::Poison };
        let mut values = Vec::with_capacity(exprs.len());
        for (e, (_, ty)) in exprs.iter().zip(&f.params) {
            let want = self.param_elem(r, ty, &slots);
            let mark = self.mark();
            let v = self.argument(e, ty, want);
            for (before, at) in values.iter_mut().zip(&exprs) {
                *before = self.settle(std::mem::replace(before, Value::Unit), at, mark);
            }
            values.push(v);
        }
        if values.contains(&Value::Poison) {
            return Value::Poison;
        }
        for (v, (e, (_, ty))) in values.iter().zip(exprs.iter().zip(&f.params)) {
            self.infer(&mut slots, ty, v, e.span);
        }
        self.infer_numbers(&mut slots, f, &values, want);

        let call = self.sources.add_call(self.sp(span), f.name.name.as_str());
        let outer = std::mem::replace(&mut self.f.scope, Scope::new(r.unit));
        let at = std::mem::replace(&mut self.f.at, call);
        self.stack.push((r, self.f.kind));
        let bound = self.bind_generics(&f.generics, &slots, &f.name);
        let value = match bound {
            true => {
                let ok = self.bind_params(f, values, &exprs, at);
                if ok { self.fn_body(f, want) } else { Value::Poison }
            }
            false => Value::Poison,
        };
        self.stack.pop();
        self.f.at = at;
        self.f.scope = outer;
        value
    }

    fn recursive(&mut self, r: ItemRef, name: &ast::Ident, span: Span) -> bool {
        if !self.stack.iter().any(|&(s, _)| s == r) {
            return false;
        }
        let d = Diagnostic::error(codes::RECURSION, self.sp(span), format!("`{}` calls itself", name.name));
        let d = d.note("functions are inlined, so a call may not lead back to its own function");
        self.report(d.help("write a loop, or `if const` on a smaller compile-time list"));
        true
    }

    /// Arguments in the order of the parameters; named ones find their place.
    fn ordered_args(&mut self, f: &'a ast::Fn, args: &'a [Arg], span: Span) -> Option<Vec<&'a ast::Expr>> {
        let mut out: Vec<Option<&'a ast::Expr>> = vec![None; f.params.len()];
        let mut next = 0;
        for a in args {
            let at = match &a.name {
                None => {
                    next += 1;
                    next - 1
                }
                Some(n) => match f.params.iter().position(|(p, _)| p.name == n.name) {
                    Some(at) => at,
                    None => {
                        let text = format!("`{}` has no parameter `{}`", f.name.name, n.name);
                        let d = Diagnostic::error(codes::UNKNOWN_ARGUMENT, self.sp(n.span), text);
                        self.report(d.also(f.name.span, "declared here"));
                        return None;
                    }
                },
            };
            if let Some(slot @ None) = out.get_mut(at) {
                *slot = Some(&a.value);
                continue;
            }
            self.wrong_count(f, args.len(), span);
            return None;
        }
        let all: Option<Vec<&'a ast::Expr>> = out.into_iter().collect();
        if all.is_none() {
            self.wrong_count(f, args.len(), span);
        }
        all
    }

    fn wrong_count(&mut self, f: &'a ast::Fn, found: usize, span: Span) {
        let names: Vec<&str> = f.params.iter().map(|(p, _)| p.name.as_str()).collect();
        let s = if names.len() == 1 { "" } else { "s" };
        let text = format!("`{}` takes {} argument{s}, not {found}", f.name.name, names.len());
        let d = Diagnostic::error(codes::ARGUMENT_COUNT, self.sp(span), text);
        self.report(d.also(f.name.span, "declared here").help(format!(
            "it is called as `{}({})`",
            f.name.name,
            names.join(", ")
        )));
    }

    /// The element type that a parameter asks of a number, if it is known before the arguments are.
    fn param_elem(&mut self, r: ItemRef, ty: &'a ast::Type, slots: &[Slot<'a>]) -> Option<Elem> {
        let elem = match &ty.kind {
            TypeKind::Elem(e) | TypeKind::Tile { elem: e, .. } => e,
            _ => return None,
        };
        let (id, acc) = match elem {
            ast::Elem::Name(id) => (id, false),
            ast::Elem::Acc(id, _) => (id, true),
        };
        let found = match slots.iter().find(|s| s.generic.name.name == id.name) {
            Some(slot) => slot.value.clone(),
            None => match super::exprs::elem_from_name(&id.name) {
                Some(e) => Some(Const::Type(self.widened(e))),
                None => {
                    let _ = r;
                    None
                }
            },
        };
        match found {
            Some(Const::Type(t)) => Some(if acc { t.acc() } else { t }),
            _ => None,
        }
    }

    fn argument(&mut self, e: &'a ast::Expr, ty: &'a ast::Type, want: Option<Elem>) -> Value {
        if let (TypeKind::Shared { .. }, ExprKind::Name(id)) = (&ty.kind, &e.kind) {
            return self.lookup(id);
        }
        self.expr(e, want)
    }

    /// Binds the generics that a parameter's type names, from the argument's type.
    fn infer(&mut self, slots: &mut [Slot<'a>], ty: &'a ast::Type, v: &Value, span: Span) {
        match (&ty.kind, v) {
            (TypeKind::Elem(elem), Value::Expr(e)) => self.infer_elem(slots, elem, self.elem(*e), span),
            (TypeKind::Tile { elem, shape }, Value::Expr(e)) => {
                let ty = self.ty(*e).clone();
                if let Some(found) = ty.elem() {
                    self.infer_elem(slots, elem, found, span);
                }
                let extents: Vec<Option<u64>> = ty.shape().iter().map(|&n| Some(n.into())).collect();
                self.infer_shape(slots, shape, &extents);
            }
            (TypeKind::Shared { elem, shape } | TypeKind::Array { elem, shape }, Value::Mem(mem)) => {
                let mem = *mem;
                let ctx = self.ctx();
                let found = crate::typing::mem_elem(&ctx, mem).ok();
                let extents = crate::typing::mem_extents(&ctx, mem).unwrap_or_default();
                if let Some(found) = found {
                    self.infer_elem(slots, elem, found, span);
                }
                self.infer_shape(slots, shape, &extents);
            }
            (TypeKind::Tuple(types), Value::Tuple(values)) if types.len() == values.len() => {
                for (ty, v) in types.iter().zip(values.iter()) {
                    self.infer(slots, ty, v, span);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn infer_elem(
        &mut self,
        slots: &mut [Slot<'a>],
        elem: &'a ast::Elem,
        found: Elem,
        span: Span,
    ) {
        let ast::Elem::Name(id) = elem else { return };
        let Some(slot) = slots.iter_mut().find(|s| s.generic.name.name == id.name && s.value.is_none())
        else {
            return;
        };
        if class_admits(slot.generic.kind, found) {
            slot.value = Some(Const::Type(found));
            slot.span = span;
        } else {
            slot.refused = Some((found, span));
        }
    }

    pub(crate) fn infer_shape(
        &mut self,
        slots: &mut [Slot<'a>],
        shape: &'a [ast::Expr],
        extents: &[Option<u64>],
    ) {
        if shape.len() != extents.len() {
            return;
        }
        for (e, &n) in shape.iter().zip(extents) {
            let (ExprKind::Name(id), Some(n)) = (&e.kind, n) else { continue };
            let int =
                |s: &&mut Slot<'a>| s.generic.name.name == id.name && s.generic.kind == GenericKind::ConstInt;
            if let Some(slot) = slots.iter_mut().find(int)
                && slot.value.is_none()
            {
                slot.value = Some(Const::Int(n.into()));
            }
        }
    }

    /// A type that only numbers could tell is that of the call's place, else `index` or `f32`.
    fn infer_numbers(
        &mut self,
        slots: &mut [Slot<'a>],
        f: &'a ast::Fn,
        values: &[Value],
        want: Option<Elem>,
    ) {
        for (v, (_, ty)) in values.iter().zip(&f.params) {
            let (Value::Const(c), TypeKind::Elem(ast::Elem::Name(id))) = (v, &ty.kind) else { continue };
            let fraction = matches!(c, Const::Float(_));
            let (f32, bool) = (self.widened(Elem::F32), matches!(c, Const::Bool(_)));
            let Some(slot) = slots.iter_mut().find(|s| s.generic.name.name == id.name && s.value.is_none())
            else {
                continue;
            };
            let float = slot.generic.kind == GenericKind::Float;
            let own = if bool {
                Elem::BOOL
            } else if fraction || float {
                f32
            } else {
                Elem::Index
            };
            let choice = want.filter(|w| class_admits(slot.generic.kind, *w)).unwrap_or(own);
            if class_admits(slot.generic.kind, choice) {
                slot.value = Some(Const::Type(choice));
            }
        }
    }

    /// Declares the parameters with their arguments. `caller` is where the arguments stand.
    fn bind_params(
        &mut self,
        f: &'a ast::Fn,
        values: Vec<Value>,
        exprs: &[&'a ast::Expr],
        caller: crate::span::CallId,
    ) -> bool {
        let mut ok = true;
        for ((v, e), (name, ty)) in values.into_iter().zip(exprs).zip(&f.params) {
            let span = e.span.inside(caller);
            match self.fit(v, ty, &format!("`{}` of `{}`", name.name, f.name.name), span) {
                Some(v) => {
                    // the caller's variables stand still while the function runs
                    let v = self.kept(v, &name.name, name.span, true);
                    self.declare(name, v);
                }
                None => ok = false,
            }
        }
        ok
    }

    /// An argument or result as the type that is written; a wrong one is reported.
    fn fit(&mut self, v: Value, ty: &'a ast::Type, what: &str, span: Span) -> Option<Value> {
        match &ty.kind {
            TypeKind::Elem(elem) => {
                let elem = self.elem_type(elem)?;
                let e = self.located(v, elem, span)?;
                self.same_elem(e, elem, what, span)?;
                Some(Value::Expr(e))
            }
            TypeKind::Tile { elem, shape } => {
                let elem = self.elem_type(elem)?;
                let shape = self.fn_shape(shape, &v)?;
                let mut e = self.located(v, elem, span)?;
                self.same_elem(e, elem, what, span)?;
                if self.ty(e).is_scalar() && matches!(self.f.body.exprs[e], Expr::Const { .. }) {
                    e = self.push(Expr::Splat { value: e, shape: shape.clone() }, span)?;
                }
                if self.ty(e).shape() != shape.as_slice() {
                    let need = Type::Tile { elem, shape };
                    let text = format!("{what} is {need}, but this is {}", self.ty(e));
                    let d = Diagnostic::error(codes::ARGUMENT_TYPE, span, text);
                    self.report(d.also(self.sp(ty.span), "declared here"));
                    return None;
                }
                Some(Value::Expr(e))
            }
            TypeKind::Shared { elem, shape } | TypeKind::Array { elem, shape } => {
                self.fit_memory(v, elem, shape, what, span)
            }
            TypeKind::Tuple(types) => match v {
                Value::Tuple(values) if values.len() == types.len() => {
                    let parts: Option<Vec<Value>> =
                        values.iter().zip(types).map(|(v, ty)| self.fit(v.clone(), ty, what, span)).collect();
                    parts.map(|p| Value::Tuple(p.into()))
                }
                Value::Poison => None,
                _ => {
                    let text = format!("{what} is a tuple of {}", types.len());
                    let d = Diagnostic::error(codes::ARGUMENT_TYPE, span, text);
                    self.report(d.also(self.sp(ty.span), "declared here"));
                    None
                }
            },
            TypeKind::Reducer { .. } => {
                let d = Diagnostic::error(
                    codes::ARGUMENT_TYPE,
                    self.sp(ty.span),
                    "a reducer is not handed to a function",
                );
                self.report(d.help("hand over its value; reading it joins it"));
                None
            }
        }
    }

    /// [`Elab::to_expr`] with the place given as it stands, not inside the function.
    fn located(&mut self, v: Value, elem: Elem, span: Span) -> Option<ExprId> {
        let at = std::mem::replace(&mut self.f.at, span.at);
        let e = self.to_expr(v, Some(elem), span);
        self.f.at = at;
        e
    }

    fn same_elem(&mut self, e: ExprId, elem: Elem, what: &str, span: Span) -> Option<()> {
        let found = self.elem(e);
        if found == elem {
            return Some(());
        }
        let d = Diagnostic::error(
            codes::ARGUMENT_TYPE,
            span,
            format!("{what} is {elem}, but this is {}", self.ty(e)),
        );
        self.report(d.help(format!("write `{elem}(...)`")));
        None
    }

    /// Extents of a parameter; a name that nothing declares is bound by its first use.
    fn fn_shape(&mut self, shape: &'a [ast::Expr], v: &Value) -> Option<Shape> {
        let found: Shape = match v {
            Value::Expr(e) => self.ty(*e).shape().iter().copied().collect(),
            Value::Mem(mem) => {
                let extents = crate::typing::mem_extents(&self.ctx(), *mem).unwrap_or_default();
                extents.iter().map(|e| e.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)).collect()
            }
            _ => Shape::new(),
        };
        for (i, e) in shape.iter().enumerate() {
            if let (ExprKind::Name(id), Some(&n)) = (&e.kind, found.get(i))
                && n > 0
                && self.find(&id.name).is_none()
            {
                self.declare(id, Value::Const(Const::Int(n.into())));
            }
        }
        self.static_shape(shape)
    }

    fn fit_memory(
        &mut self,
        v: Value,
        elem: &'a ast::Elem,
        shape: &'a [ast::Expr],
        what: &str,
        span: Span,
    ) -> Option<Value> {
        let elem = self.elem_type(elem)?;
        let Value::Mem(mem) = v else {
            if v != Value::Poison {
                let d = Diagnostic::error(codes::ARGUMENT_TYPE, span, format!("{what} is memory"));
                self.report(d.help("hand over the name of a `shared` tile"));
            }
            return None;
        };
        let shape = self.fn_shape(shape, &v)?;
        let ctx = self.ctx();
        let found = crate::typing::mem_elem(&ctx, mem).ok()?;
        let extents = crate::typing::mem_extents(&ctx, mem).ok()?;
        if found == elem
            && extents.len() == shape.len()
            && extents.iter().zip(&shape).all(|(a, b)| *a == Some((*b).into()))
        {
            return Some(v);
        }
        let need = Type::Tile { elem, shape }.to_string().replace("tile", "shared");
        let name = crate::typing::mem_name(&ctx, mem).unwrap_or_default();
        let d = Diagnostic::error(
            codes::ARGUMENT_TYPE,
            span,
            format!("{what} is {need}, but `{name}` is of another type or shape"),
        );
        self.report(d);
        None
    }

    /// A value that may be used several times: named unless it is a constant or a name already. `still` says that
    /// variables do not change as long as the value is used.
    pub(crate) fn kept(&mut self, v: Value, name: &str, span: Span, still: bool) -> Value {
        match v {
            Value::Expr(e) => match self.f.body.exprs[e] {
                Expr::Local(l) if !still && self.f.body.locals[l].kind == LocalKind::Var => {
                    self.bind(name, e, span)
                }
                Expr::Const { .. } | Expr::Local(_) | Expr::Dim(_) | Expr::Arg(_) => Value::Expr(e),
                _ => self.bind(name, e, span),
            },
            Value::Tuple(parts) => {
                let parts: Vec<Value> =
                    parts.iter().map(|p| self.kept(p.clone(), name, span, still)).collect();
                Value::Tuple(parts.into())
            }
            other => other,
        }
    }

    pub(crate) fn fn_body(&mut self, f: &'a ast::Fn, want: Option<Elem>) -> Value {
        let want = match &f.result {
            Some(ty) => match &ty.kind {
                TypeKind::Elem(e) | TypeKind::Tile { elem: e, .. } => self.elem_type(e),
                _ => None,
            },
            None => want,
        };
        let value = self.block_value(&f.body, want);
        let end = f.body.tail.as_ref().map_or(f.body.span, |t| t.span);
        match (&f.result, value) {
            (_, Value::Poison) => Value::Poison,
            (None, Value::Unit) => Value::Unit,
            (None, v) => v,
            (Some(ty), Value::Unit) => {
                let d = Diagnostic::error(
                    codes::NO_RESULT,
                    self.sp(ty.span),
                    format!("`{}` promises a value but ends without one", f.name.name),
                );
                self.report(d.help("end the body with the expression that is its value"));
                Value::Poison
            }
            (Some(ty), v) => {
                let span = self.sp(end);
                self.fit_result(v, ty, &f.name.name, span).unwrap_or(Value::Poison)
            }
        }
    }

    /// A scalar result type also names the elements of a tile: the function was applied element by element.
    fn fit_result(&mut self, v: Value, ty: &'a ast::Type, name: &str, span: Span) -> Option<Value> {
        self.fit(v, ty, &format!("the result of `{name}`"), span)
    }

    pub(crate) fn class_error(&mut self, slot: &Slot<'a>, name: &ast::Ident) -> bool {
        let Some((found, span)) = slot.refused else { return false };
        let generic = slot.generic;
        let text = format!(
            "`{}` of `{}` is {}, but {found} is given",
            generic.name.name,
            name.name,
            class_words(generic.kind)
        );
        let d = Diagnostic::error(codes::WRONG_GENERIC, span, text);
        self.report(d.also(generic.span, "declared here"));
        true
    }
}
