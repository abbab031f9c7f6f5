//! Ops: workspaces, launches with their generics and params, `if` and `for` over dims; a lone kernel as an op.

use super::Elab;
use super::bindings::Slot;
use super::consts::Const;
use super::emit::FrameKind;
use super::items::Override;
use super::library::{Entity, ItemRef, item_kind};
use super::names::suggest;
use super::scope::Value;
use crate::ast::{self, ExprKind, GenericArg, Ident, ItemKind, Named};
use crate::builder;
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use crate::typing;
use smallvec::SmallVec;

impl<'a> Elab<'a> {
    pub(crate) fn host_op(&mut self, r: ItemRef, slots: &[Slot<'a>]) -> Option<Host> {
        let lib = self.lib;
        let ItemKind::Op(op) = &lib.item(r).kind else { return None };
        let before = self.errors();
        let span = lib.item(r).span;
        let ((), frame) = self.framed(FrameKind::Host, r.unit, |s| {
            s.f.host.name = op.name.name.clone();
            s.f.host.span = span;
            s.f.host.deterministic = op.attrs.deterministic.is_some();
            s.f.item = Some(r);
            if s.bind_generics(&op.generics, slots, &op.name) {
                s.header(&op.params, &op.wheres);
                s.body(&op.body);
            }
        });
        if self.errors() > before {
            return None;
        }
        Some(Host { body: frame.body, steps: frame.steps, ..frame.host })
    }

    /// A kernel by itself: one launch with the kernel's own parameters.
    pub(crate) fn host_lone(&mut self, r: ItemRef, slots: &[Slot<'a>]) -> Option<Host> {
        let id = self.kernel(r, slots, Vec::new())?;
        match builder::lone(id, &self.program.kernels[id]) {
            Ok(host) => Some(host),
            Err(d) => {
                self.report(d);
                None
            }
        }
    }

    fn step(&mut self, kind: StepKind, span: Span) {
        let span = self.sp(span);
        self.f.steps.push(Step { kind, span });
    }

    fn in_steps(&mut self, fill: impl FnOnce(&mut Self)) -> Vec<Step> {
        let outer = std::mem::take(&mut self.f.steps);
        self.f.path.push(0);
        self.f.scope.open();
        fill(self);
        self.f.scope.close();
        self.f.path.pop();
        std::mem::replace(&mut self.f.steps, outer)
    }

    pub(crate) fn host_if(
        &mut self,
        cond: Option<ExprId>,
        then: &'a ast::Block,
        other: Option<&'a ast::Block>,
        span: Span,
    ) {
        let then = self.in_steps(|s| s.body(then));
        let other = self.in_steps(|s| other.into_iter().for_each(|b| s.body(b)));
        if let Some(cond) = cond {
            self.step(StepKind::If { cond, then, other }, span);
        }
    }

    pub(crate) fn host_for(
        &mut self,
        var: &'a Ident,
        lo: Option<ExprId>,
        hi: Option<ExprId>,
        body: &'a ast::Block,
        span: Span,
    ) {
        let local = self.new_local(&var.name, Type::INDEX, LocalKind::Loop, var.span);
        let body = self.in_steps(|s| {
            s.declare(var, Value::Local(local));
            s.body(body);
        });
        if let (Some(lo), Some(hi)) = (lo, hi) {
            self.step(StepKind::For { var: local, lo, hi, body }, span);
        }
    }

    /// `workspace P: f32[WAYS, M, N] = 0`
    pub(crate) fn workspace(
        &mut self,
        name: &'a Ident,
        elem: &'a ast::Elem,
        shape: &'a [ast::Expr],
        zeroed: bool,
        span: Span,
    ) {
        if self.f.kind != FrameKind::Host {
            return self.misplaced(span, "a workspace", Some(name));
        }
        let elem = self.elem_type(elem);
        let dims: Vec<Option<ExprId>> = shape.iter().map(|e| self.index_value(e)).collect();
        let dims: Option<SmallVec<[ExprId; 4]>> = dims.into_iter().collect();
        let (Some(Elem::D(elem)), Some(shape)) = (elem, dims) else {
            if elem == Some(Elem::Index) {
                let d =
                    Diagnostic::error(codes::NOT_A_TYPE, self.sp(span), "a workspace does not hold `index`");
                self.report(d.help("store i32 or i64"));
            }
            return self.declare(name, Value::Poison);
        };
        let at = self.sp(span);
        let id = self.f.host.workspaces.push(Workspace { name: name.name.clone(), elem, shape, zeroed }, at);
        self.declare(name, Value::Workspace(id));
    }

    // ---- launches -----------------------------------------------------------------------------------------------

    pub(crate) fn launch_stmt(
        &mut self,
        kernel: &'a Ident,
        generics: &'a [GenericArg],
        args: &'a [ast::Expr],
        params: &'a [Named],
        span: Span,
    ) {
        if self.f.kind != FrameKind::Host {
            return self.misplaced(span, "a launch", None);
        }
        let Some((r, k)) = self.launched(kernel) else { return };
        let Some(mut slots) = self.explicit_generics(&k.generics, &k.name, generics, span) else { return };
        if args.len() != k.params.len() {
            let names: Vec<&str> = k.params.iter().map(|p| p.name.name.as_str()).collect();
            let text = format!("`{}` takes {} arguments, not {}", k.name.name, names.len(), args.len());
            let d = Diagnostic::error(codes::LAUNCH_ARGUMENTS, self.sp(span), text);
            let d = d.also(k.name.span, "declared here");
            return self.report(d.help(format!(
                "it is launched as `launch {}({})`",
                k.name.name,
                names.join(", ")
            )));
        }
        let mut ok = true;
        for (e, p) in args.iter().zip(&k.params) {
            if let Some(shape) = &p.shape {
                ok &= self.infer_tensor(&mut slots, e, p, shape);
            }
        }
        let mut overrides: Vec<Override> = Vec::new();
        for p in params {
            match self.constant(&p.value, &format!("`{}`", p.name.name)) {
                Some(c) => overrides.push((p.name.name.clone(), c, self.sp(p.name.span))),
                None => ok = false,
            }
        }
        if !ok {
            return;
        }
        let here = self.sp(span);
        let outer = self.launch.replace(here);
        let id = self.kernel(r, &slots, overrides);
        self.launch = outer;
        let Some(id) = id else { return };
        let mut out = Vec::new();
        for (i, (e, p)) in args.iter().zip(&k.params).enumerate() {
            match self.launch_arg(id, i, e, p) {
                Some(a) => out.push(a),
                None => ok = false,
            }
        }
        if ok && self.dims_agree(id, &out, args, span) {
            self.step(StepKind::Launch { kernel: id, args: out }, span);
        }
    }

    fn launched(&mut self, kernel: &'a Ident) -> Option<(ItemRef, &'a ast::Kernel)> {
        let lib = self.lib;
        let found = lib.lookup(self.f.scope.unit, &kernel.name);
        if let Some(Entity::Item(r)) = found {
            if let ItemKind::Kernel(k) = &lib.item(r).kind {
                return Some((r, k));
            }
            let text = format!("`{}` is a {}, not a kernel", kernel.name, item_kind(lib.item(r)));
            let d = Diagnostic::error(codes::NOT_A_KERNEL, self.sp(kernel.span), text);
            self.report(d.help("an op launches kernels"));
            return None;
        }
        let kernels = lib.names(self.f.scope.unit).filter(|n| match lib.lookup(self.f.scope.unit, n) {
            Some(Entity::Item(r)) => matches!(lib.item(r).kind, ItemKind::Kernel(_)),
            _ => false,
        });
        let mut d = Diagnostic::error(
            codes::UNKNOWN_NAME,
            self.sp(kernel.span),
            format!("there is no kernel `{}`", kernel.name),
        );
        if let Some(near) = suggest(&kernel.name, kernels) {
            d = d.help(format!("did you mean `{near}`?"));
        }
        self.report(d);
        None
    }

    /// Element type and dims of a tensor or workspace of the op.
    fn handed(&mut self, e: &'a ast::Expr) -> Option<(Elem, SmallVec<[ExprId; 4]>, Value)> {
        if let ExprKind::Name(id) = &e.kind {
            match self.lookup(id) {
                Value::Poison => return None,
                v @ Value::Mem(Mem::Tensor(a)) => {
                    if let ArgKind::Tensor(t) = &self.f.host.args[a].kind {
                        return Some((t.elem.into(), t.dims.clone(), v));
                    }
                }
                v @ Value::Workspace(w) => {
                    let w = &self.f.host.workspaces[w];
                    return Some((w.elem.into(), w.shape.clone(), v));
                }
                _ => {}
            }
        }
        let d = Diagnostic::error(
            codes::LAUNCH_ARGUMENTS,
            self.sp(e.span),
            "a tensor or workspace of the op is needed here",
        );
        self.report(d.help("name it as a whole: `launch k(A, B)`"));
        None
    }

    fn infer_tensor(
        &mut self,
        slots: &mut [Slot<'a>],
        e: &'a ast::Expr,
        p: &'a ast::Param,
        shape: &'a [ast::Expr],
    ) -> bool {
        let Some((elem, dims, _)) = self.handed(e) else { return false };
        if dims.len() != shape.len() {
            let text = format!(
                "`{}` has {} axes, but `{}` has {}",
                p.name.name,
                shape.len(),
                self.sources.text(e.span),
                dims.len()
            );
            let d = Diagnostic::error(codes::LAUNCH_ARGUMENTS, self.sp(e.span), text)
                .also(p.span, "declared here");
            self.report(d);
            return false;
        }
        let span = self.sp(e.span);
        self.infer_elem(slots, &p.elem, elem, span);
        let ctx = self.ctx();
        let extents: Vec<Option<u64>> =
            dims.iter().map(|&d| typing::const_index(&ctx, d).and_then(|n| u64::try_from(n).ok())).collect();
        self.infer_shape(slots, shape, &extents);
        for (s, (&dim, n)) in shape.iter().zip(dims.iter().zip(extents)) {
            let (ExprKind::Name(id), None) = (&s.kind, n) else { continue };
            if let Some(slot) = slots.iter_mut().find(|s| s.generic.name.name == id.name && s.value.is_none())
            {
                let text = self.sources.text(self.f.body.exprs.span(dim)).to_owned();
                slot.open = Some((text, span));
            }
        }
        true
    }

    fn launch_arg(
        &mut self,
        id: KernelId,
        i: usize,
        e: &'a ast::Expr,
        p: &'a ast::Param,
    ) -> Option<LaunchArg> {
        let arg = ArgId::from_index(i);
        // a parameter that could not be read was reported with its kernel
        match self.program.kernels[id].args.get(arg)?.kind.clone() {
            ArgKind::Scalar(elem) => {
                let v = self.value(e, Some(elem))?;
                let v = if elem == Elem::Index { self.to_index(v, e.span) } else { v };
                self.need_elem(v, elem, &format!("`{}`", p.name.name), e.span).map(LaunchArg::Scalar)
            }
            ArgKind::Tensor(t) => {
                let (elem, _, v) = self.handed(e)?;
                if elem != Elem::D(t.elem) {
                    let text = format!(
                        "`{}` holds {}, but `{}` holds {elem}",
                        p.name.name,
                        t.elem,
                        self.sources.text(e.span)
                    );
                    let d = Diagnostic::error(codes::LAUNCH_ARGUMENTS, self.sp(e.span), text);
                    self.report(d.also(p.span, "declared here"));
                    return None;
                }
                match v {
                    Value::Mem(Mem::Tensor(a)) => {
                        self.mode_agrees(a, t.mode, e, p)?;
                        Some(LaunchArg::Arg(a))
                    }
                    Value::Workspace(w) => Some(LaunchArg::Workspace(w)),
                    _ => None,
                }
            }
        }
    }

    fn mode_agrees(&mut self, a: ArgId, mode: Mode, e: &'a ast::Expr, p: &'a ast::Param) -> Option<()> {
        let ArgKind::Tensor(own) = &self.f.host.args[a].kind else { return None };
        if mode == Mode::In || own.mode != Mode::In {
            return Some(());
        }
        let name = self.f.host.args[a].name.clone();
        let text = format!("`{}` is written by the kernel, but the op only reads `{name}`", p.name.name);
        let d = Diagnostic::error(codes::LAUNCH_ARGUMENTS, self.sp(e.span), text);
        let here = self.f.host.args.span(a);
        self.report(d.also(here, "declared here").help(format!("declare it `{name}: out ...` or `inout`")));
        None
    }

    /// One dim of the kernel stands for one number of the op, as far as that is known now.
    fn dims_agree(&mut self, id: KernelId, args: &[LaunchArg], exprs: &'a [ast::Expr], span: Span) -> bool {
        let mut seen: Vec<(DimId, i64, Span)> = Vec::new();
        let mut wrong: Option<Diagnostic> = None;
        for ((i, arg), e) in args.iter().enumerate().zip(exprs) {
            let dims = match arg {
                LaunchArg::Arg(a) => match &self.f.host.args[*a].kind {
                    ArgKind::Tensor(t) => t.dims.clone(),
                    ArgKind::Scalar(_) => continue,
                },
                LaunchArg::Workspace(w) => self.f.host.workspaces[*w].shape.clone(),
                LaunchArg::Scalar(_) => continue,
            };
            let kernel = &self.program.kernels[id];
            let ArgKind::Tensor(t) = &kernel.args[ArgId::from_index(i)].kind else { continue };
            for (&want, &have) in t.dims.iter().zip(&dims) {
                let ctx = self.ctx();
                let Some(have) = typing::const_index(&ctx, have) else { continue };
                let at = self.sp(e.span);
                let clash = match kernel.body.exprs[want] {
                    Expr::Const { bits, .. } if bits as i64 != have => {
                        Some((format!("{}", bits as i64), None))
                    }
                    Expr::Dim(d) => match seen.iter().find(|(s, ..)| *s == d) {
                        Some(&(_, n, first)) if n != have => {
                            Some((format!("`{}`, which is {n}", kernel.dims[d].name), Some(first)))
                        }
                        Some(_) => None,
                        None => {
                            seen.push((d, have, at));
                            None
                        }
                    },
                    _ => None,
                };
                if let Some((need, first)) = clash {
                    let text = format!(
                        "an extent of `{}` is {have}, but the kernel needs {need}",
                        self.sources.text(e.span)
                    );
                    let mut d = Diagnostic::error(codes::LAUNCH_ARGUMENTS, at, text);
                    if let Some(first) = first {
                        d = d.also(first, "bound here");
                    }
                    wrong.get_or_insert(d);
                }
            }
        }
        let _ = span;
        match wrong {
            Some(d) => {
                self.report(d);
                false
            }
            None => true,
        }
    }

    /// A setting of the request as a compile-time value.
    pub(crate) fn setting(&mut self, s: &super::Setting, name: &str) -> Option<Const> {
        match s {
            super::Setting::Int(n) => Some(Const::Int((*n).into())),
            super::Setting::Bool(b) => Some(Const::Bool(*b)),
            super::Setting::Float(x) => Some(Const::Float(*x)),
            super::Setting::Type(d) => Some(Const::Type(self.widened(Elem::D(*d)))),
            super::Setting::Name(word) => match self.find(word) {
                Some(Value::Const(c)) => Some(c),
                _ => {
                    let d = Diagnostic::error(
                        codes::UNKNOWN_NAME,
                        Span::default(),
                        format!("`{word}`, given for `{name}`, is not declared"),
                    );
                    self.report(d.help(
                        "give a number, `true`, `false`, a type, or the name of a function of the file",
                    ));
                    None
                }
            },
        }
    }
}
