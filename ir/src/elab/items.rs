//! Kernels: the header that kernels and ops share, params, grid, and the body as a specialised kernel.

use super::bindings::Slot;
use super::consts::Const;
use super::emit::{Frame, FrameKind};
use super::library::{Entity, ItemRef};
use super::names::suggest;
use super::scope::{Scope, Value};
use super::{Choices, Elab, ParamInfo};
use crate::ast::{self, ExprKind, Ident, ItemKind};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use crate::typing;
use smallvec::SmallVec;

/// A param value given from outside: its name, value, and where it was written.
pub(crate) type Override = (String, Const, Span);

impl<'a> Elab<'a> {
    /// Runs `fill` in a new frame and gives what it built with the frame.
    pub(crate) fn framed<R>(
        &mut self,
        kind: FrameKind,
        unit: u32,
        fill: impl FnOnce(&mut Self) -> R,
    ) -> (R, Frame<'a>) {
        let frame = Frame { kind, scope: Scope::new(unit), ..Frame::default() };
        let outer = std::mem::replace(&mut self.f, frame);
        let result = fill(self);
        (result, std::mem::replace(&mut self.f, outer))
    }

    /// Specialises a kernel; the same one under the same bindings is made once.
    pub(crate) fn kernel(
        &mut self,
        r: ItemRef,
        slots: &[Slot<'a>],
        overrides: Vec<Override>,
    ) -> Option<KernelId> {
        let lib = self.lib;
        let ItemKind::Kernel(k) = &lib.item(r).kind else { return None };
        let values: Vec<_> = slots.iter().map(|s| &s.value).collect();
        let params: Vec<_> = overrides.iter().map(|(n, c, _)| (n, c)).collect();
        let key = format!("{r:?} {values:?} {params:?}");
        if let Some(&known) = self.kernels.get(&key) {
            return Some(known);
        }
        let before = self.errors();
        let span = lib.item(r).span;
        let ((), frame) = self.framed(FrameKind::Kernel, r.unit, |s| {
            s.f.kernel.name = k.name.name.clone();
            s.f.kernel.span = span;
            s.f.overrides = overrides;
            s.f.item = Some(r);
            if s.bind_generics(&k.generics, slots, &k.name) {
                s.attrs(&k.attrs);
                s.header(&k.params, &k.wheres);
                s.body(&k.body);
                s.unused_overrides(&k.name);
            }
        });
        if self.errors() > before {
            return None;
        }
        let kernel = Kernel { body: frame.body, stmts: frame.block, ..frame.kernel };
        let id = self.program.kernels.push(kernel, span);
        self.kernels.insert(key, id);
        Some(id)
    }

    fn attrs(&mut self, attrs: &'a ast::Attrs) {
        self.f.kernel.deterministic = attrs.deterministic.is_some();
        self.f.host.deterministic = attrs.deterministic.is_some();
        let Some(math) = &attrs.math else { return };
        match math.name.as_str() {
            "exact" => self.f.kernel.math = MathMode::Exact,
            "contract" => self.f.kernel.math = MathMode::Contract,
            other => {
                let d = Diagnostic::error(
                    codes::UNKNOWN_OPTION,
                    self.sp(math.span),
                    format!("there is no math mode `{other}`"),
                );
                self.report(d.help("write `math exact` or `math contract`"));
            }
        }
    }

    // ---- header -------------------------------------------------------------------------------------------------

    pub(crate) fn header(&mut self, params: &'a [ast::Param], wheres: &'a [ast::Expr]) {
        for p in params {
            p.shape.iter().flatten().for_each(|e| self.dim(e, false));
        }
        for p in params {
            p.strides.iter().flatten().for_each(|e| self.dim(e, true));
        }
        for p in params {
            self.param(p);
        }
        for w in wheres {
            self.where_clause(w);
        }
    }

    /// A bare name in a shape or stride list that nothing else declares is a dim bound at launch.
    fn dim(&mut self, e: &'a ast::Expr, stride: bool) {
        let ExprKind::Name(id) = &e.kind else { return };
        if self.f.scope.get(&id.name).is_some() {
            return;
        }
        if let Some(Entity::Item(r)) = self.lib.lookup(self.f.scope.unit, &id.name)
            && matches!(self.lib.item(r).kind, ItemKind::Const(_))
        {
            return;
        }
        if !self.may_be_kept(id) {
            return self.declare(id, Value::Poison);
        }
        let span = self.sp(id.span);
        let dim = Dim { name: id.name.clone(), stride };
        let dim = match self.f.kind {
            FrameKind::Host => self.f.host.dims.push(dim, span),
            _ => self.f.kernel.dims.push(dim, span),
        };
        self.declare(id, Value::Dim(dim));
    }

    /// Dims and parameters keep their names in dumps, which must not hide what dumps write.
    fn may_be_kept(&mut self, id: &'a Ident) -> bool {
        let Some(what) = super::functions::kept_for_dumps(&id.name) else { return true };
        let text = format!("`{}` is {what} and cannot name a dim or a parameter", id.name);
        let d = Diagnostic::error(codes::KEPT_NAME, self.sp(id.span), text);
        self.report(d.help("choose another name"));
        false
    }

    fn param(&mut self, p: &'a ast::Param) {
        if !self.may_be_kept(&p.name) {
            return self.declare(&p.name, Value::Poison);
        }
        let kind = match &p.shape {
            None => self.scalar_param(p),
            Some(shape) => self.tensor_param(p, shape).map(ArgKind::Tensor),
        };
        let value = kind.and_then(|kind| {
            let tensor = matches!(kind, ArgKind::Tensor(_));
            let arg = Arg { name: p.name.name.clone(), kind };
            let span = self.sp(p.span);
            if let Err(e) = typing::check_arg(&self.ctx(), &arg) {
                let d = e.diagnostic(&self.f.body, span);
                self.report(d);
                return None;
            }
            let id = match self.f.kind {
                FrameKind::Host => self.f.host.args.push(arg, span),
                _ => self.f.kernel.args.push(arg, span),
            };
            Some(if tensor { Value::Mem(Mem::Tensor(id)) } else { Value::Arg(id) })
        });
        self.declare(&p.name, value.unwrap_or(Value::Poison));
    }

    fn scalar_param(&mut self, p: &'a ast::Param) -> Option<ArgKind> {
        if p.mode != ast::Mode::In {
            let d = Diagnostic::error(
                codes::SCALAR_MODE,
                self.sp(p.span),
                format!("`{}` is a scalar, it cannot be written", p.name.name),
            );
            self.report(d.help(format!("give the result a tensor: `{}: out T[1]`", p.name.name)));
        }
        self.elem_type(&p.elem).map(ArgKind::Scalar)
    }

    fn tensor_param(&mut self, p: &'a ast::Param, shape: &'a [ast::Expr]) -> Option<Tensor> {
        let elem = self.elem_type(&p.elem);
        let dims: Vec<Option<ExprId>> = shape.iter().map(|e| self.index_value(e)).collect();
        let strides: Option<Vec<Option<ExprId>>> =
            p.strides.as_ref().map(|s| s.iter().map(|e| self.index_value(e)).collect());
        let align = match &p.align {
            Some(e) => Some(self.alignment(e)?),
            None => None,
        };
        let base_align = match &p.base {
            Some(e) => Some(self.alignment(e)?),
            None => None,
        };
        let packed = match &p.packed {
            Some(packed) => Some(self.packing(packed, shape)?),
            None => None,
        };
        let prepacked = match &p.prepacked {
            Some(id) => Some(self.operand(id)?),
            None => None,
        };
        let elem = match elem? {
            Elem::D(d) => d,
            Elem::Index => {
                let d =
                    Diagnostic::error(codes::NOT_A_TYPE, self.sp(p.span), "a tensor does not hold `index`");
                self.report(d.help("store i32 or i64"));
                return None;
            }
        };
        let mode = match p.mode {
            ast::Mode::In => Mode::In,
            ast::Mode::Out => Mode::Out,
            ast::Mode::InOut => Mode::InOut,
        };
        let dims = dims.into_iter().collect::<Option<SmallVec<_>>>()?;
        let strides = match strides {
            Some(s) => Some(s.into_iter().collect::<Option<SmallVec<_>>>()?),
            None => None,
        };
        Some(Tensor { mode, elem, dims, strides, align, base_align, packed, prepacked })
    }

    fn operand(&mut self, id: &'a Ident) -> Option<Operand> {
        match id.name.as_str() {
            "A" => Some(Operand::A),
            "B" => Some(Operand::B),
            _ => {
                let d = Diagnostic::error(
                    codes::UNKNOWN_OPTION,
                    self.sp(id.span),
                    format!("a product has no operand `{}`", id.name),
                );
                self.report(d.help("write `operand A` or `operand B`"));
                None
            }
        }
    }

    /// `packed(K, order = linear)`: the axis is named by its extent, or by its number.
    fn packing(&mut self, p: &'a ast::Packed, shape: &'a [ast::Expr]) -> Option<Packing> {
        let number = match &p.axis.kind {
            ExprKind::Int(text) => super::consts::parse_int(text)
                .and_then(|n| usize::try_from(n).ok())
                .filter(|&n| n < shape.len()),
            _ => shape.iter().rposition(|e| same(e, &p.axis)),
        };
        let Some(axis) = number else {
            let written = self.sources.text(p.axis.span);
            let text = match &p.axis.kind {
                ExprKind::Int(_) => format!("there is no axis {written}; a number counts axes from 0"),
                _ => format!("no axis has the extent `{written}`"),
            };
            let d = Diagnostic::error(codes::NO_SUCH_AXIS, self.sp(p.axis.span), text);
            let help = "name the packed axis by its extent, as it stands in the shape, or by its number";
            self.report(d.help(help));
            return None;
        };
        let order = match p.order.as_ref().map(|o| (o.name.as_str(), o.span)) {
            None | Some(("linear", _)) => PackOrder::Linear,
            Some(("gptq", _)) => PackOrder::Gptq,
            Some(("awq", _)) => PackOrder::Awq,
            Some((other, span)) => {
                let d = Diagnostic::error(
                    codes::UNKNOWN_OPTION,
                    self.sp(span),
                    format!("there is no order `{other}`"),
                );
                self.report(d.help("the orders are `linear`, `gptq` and `awq`"));
                return None;
            }
        };
        Some(Packing { axis: axis as u8, order })
    }

    fn where_clause(&mut self, w: &'a ast::Expr) {
        let text = self.sources.text(w.span).split_whitespace().collect::<Vec<_>>().join(" ");
        match self.expr(w, None) {
            Value::Const(Const::Bool(true)) | Value::Poison => {}
            Value::Const(Const::Bool(false)) => {
                let d = Diagnostic::error(
                    codes::WHERE_FALSE,
                    self.sp(w.span),
                    format!("this kernel needs {text}"),
                );
                let bound: Vec<String> =
                    self.const_names(w).iter().map(|(n, c)| format!("{n} is {c}")).collect();
                let d = if bound.is_empty() { d } else { d.label(bound.join(", ")) };
                let d = match self.launch {
                    Some(launch) => d.also(launch, "launched here"),
                    None => d,
                };
                self.report(d);
            }
            other => {
                let c = self.to_expr(other, Some(Elem::BOOL), w.span);
                if let Some(c) = c.filter(|&c| self.condition("`where`", c, w.span)) {
                    match self.f.kind {
                        FrameKind::Host => self.f.host.wheres.push((c, text)),
                        _ => self.f.kernel.wheres.push((c, text)),
                    }
                }
            }
        }
    }

    /// Names in an expression that are known at compile time, for messages.
    fn const_names(&mut self, e: &'a ast::Expr) -> Vec<(&'a str, Const)> {
        let mut out = Vec::new();
        names_in(e, &mut |id| {
            if let Some(Value::Const(c)) = self.f.scope.get(&id.name)
                && !out.iter().any(|(n, _)| *n == id.name.as_str())
            {
                out.push((id.name.as_str(), c.clone()));
            }
        });
        out
    }

    // ---- params -------------------------------------------------------------------------------------------------

    pub(crate) fn param_stmt(
        &mut self,
        decls: &'a [ast::ParamDecl],
        filter: Option<&'a ast::Expr>,
        span: Span,
    ) {
        if !matches!(self.f.kind, FrameKind::Kernel | FrameKind::Host)
            || !self.f.path.is_empty()
            || self.f.at.0 != 0
        {
            let d = Diagnostic::error(
                codes::MISPLACED,
                self.sp(span),
                "`param` belongs to the top of a kernel or op",
            );
            self.report(d.help("inside, use `const` or `let`"));
        }
        for d in decls {
            let value = self.param_value(d);
            self.declare(&d.name, value.map_or(Value::Poison, Value::Const));
        }
        let Some(filter) = filter else { return };
        if self.const_bool(filter, "the condition on params") == Some(false) {
            let text = self.sources.text(filter.span).split_whitespace().collect::<Vec<_>>().join(" ");
            let values: Vec<String> =
                self.const_names(filter).iter().map(|(n, c)| format!("{n} is {c}")).collect();
            let d = Diagnostic::error(
                codes::PARAM_RANGE,
                self.sp(filter.span),
                format!("these params do not fit together: {text}"),
            );
            self.report(d.label(values.join(", ")).help("give other values: `--param NAME=VALUE`"));
        }
    }

    fn param_value(&mut self, d: &'a ast::ParamDecl) -> Option<Const> {
        let name = &d.name.name;
        let choices = match &d.range {
            Some(range) => Some(self.param_range(range)?),
            None => None,
        };
        let mut default = self.constant(&d.default, &format!("the default of `{name}`"));
        let mut place = d.default.span;
        let chain = &self.arch.chain;
        let rank = |arch: &Ident| chain.iter().position(|c| *c == arch.name);
        if let Some((_, arch, e)) =
            d.per_target.iter().filter_map(|(a, e)| Some((rank(a)?, a, e))).min_by_key(|&(r, ..)| r)
        {
            default = self.constant(e, &format!("`{name}` for {}", arch.name));
            place = e.span;
        }
        for (arch, _) in &d.per_target {
            self.known_arch(arch);
        }
        let default = default?;
        let (value, at) = match self.override_of(name) {
            Some((value, at)) => (value, at),
            None => (default.clone(), self.sp(place)),
        };
        if std::mem::discriminant(&value) != std::mem::discriminant(&default) {
            let text = format!("`{name}` is {}, not {}", default.kind(), value.kind());
            let d = Diagnostic::error(codes::PARAM_RANGE, at, text).also(self.sp(d.span), "declared here");
            self.report(d);
            return None;
        }
        if let Some(choices) = &choices
            && !choices.admit(&value)
        {
            let text = format!("`{name}` cannot be {value}: it is one of {choices}");
            let mut e = Diagnostic::error(codes::PARAM_RANGE, at, text);
            if at != self.sp(place) {
                e = e.also(self.sp(d.span), "declared here");
            }
            self.report(e);
            return None;
        }
        let info = ParamInfo {
            item: match self.f.kind {
                FrameKind::Host => self.f.host.name.clone(),
                _ => self.f.kernel.name.clone(),
            },
            name: name.clone(),
            value: value.clone().into(),
            choices: choices.map(Choices::into_public).unwrap_or_default(),
        };
        if !self.params.contains(&info) {
            self.params.push(info);
        }
        Some(value)
    }

    fn known_arch(&mut self, arch: &'a Ident) {
        static SHIPPED: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
        let names = || crate::target::Targets::shipped().archs().map(|a| a.name.clone()).collect();
        let shipped = SHIPPED.get_or_init(names);
        if shipped.contains(&arch.name) || self.arch.chain.contains(&arch.name) {
            return;
        }
        // files of targets may add more, so this is no error
        let text = format!("no shipped architecture is called `{}`", arch.name);
        let d = Diagnostic::warning(codes::UNKNOWN_ARCH, self.sp(arch.span), text);
        self.report(match suggest(&arch.name, shipped.iter().map(String::as_str)) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help("`pantile targets` lists them"),
        });
    }

    /// A value from outside: for this item by its full name, from the launch, or by the plain name.
    fn override_of(&mut self, name: &str) -> Option<(Const, Span)> {
        let item = match self.f.kind {
            FrameKind::Host => self.f.host.name.clone(),
            _ => self.f.kernel.name.clone(),
        };
        let span = self.f.kernel.span.max(self.f.host.span);
        let full = format!("{item}.{name}");
        if let Some(c) = self.requested(&full) {
            return Some((c, span));
        }
        if let Some(i) = self.f.overrides.iter().position(|(n, ..)| n == name) {
            let (_, c, span) = self.f.overrides[i].clone();
            self.f.used_overrides.push(name.to_owned());
            return Some((c, span));
        }
        self.requested(name).map(|c| (c, span))
    }

    /// A setting of the request, marked as used.
    pub(crate) fn requested(&mut self, name: &str) -> Option<Const> {
        let setting = self.settings.get(name)?.clone();
        self.used.insert(name.to_owned());
        self.setting(&setting, name)
    }

    fn param_range(&mut self, range: &'a ast::ParamRange) -> Option<Choices> {
        match range {
            ast::ParamRange::List(items) => {
                let items: Vec<Option<Const>> =
                    items.iter().map(|e| self.constant(e, "a choice of a param")).collect();
                items.into_iter().collect::<Option<Vec<Const>>>().map(Choices::List)
            }
            ast::ParamRange::Span { lo, hi, step } => {
                let lo = self.const_int(lo, "the start of a param's range");
                let hi = self.const_int(hi, "the end of a param's range");
                let step = match step {
                    Some(e) => self.const_u32(e, "the step of a param's range", 1).map(i128::from),
                    None => Some(1),
                };
                Some(Choices::Range { lo: lo?, hi: hi?, step: step? })
            }
        }
    }

    pub(crate) fn unused_overrides(&mut self, owner: &'a Ident) {
        for (name, _, span) in self.f.overrides.clone() {
            if self.f.used_overrides.contains(&name) || name.contains('.') {
                continue;
            }
            let known: Vec<String> =
                self.params.iter().filter(|p| p.item == owner.name).map(|p| p.name.clone()).collect();
            let mut d = Diagnostic::error(
                codes::UNKNOWN_PARAM,
                span,
                format!("`{}` has no param `{name}`", owner.name),
            );
            d = match suggest(&name, known.iter().map(String::as_str)) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None if known.is_empty() => d.help("it declares none"),
                None => d.help(format!("its params are {}", known.join(", "))),
            };
            self.report(d.also(self.sp(owner.span), "declared here"));
        }
    }

    // ---- grid ---------------------------------------------------------------------------------------------------

    pub(crate) fn grid(
        &mut self,
        extents: &'a [ast::Expr],
        names: &'a [Ident],
        cost: Option<&'a ast::Expr>,
        span: Span,
    ) {
        if self.f.has_grid {
            let d = Diagnostic::error(codes::TWICE, self.sp(span), "a kernel has one grid");
            return self.report(d);
        }
        if !self.f.path.is_empty() || self.f.at.0 != 0 {
            let d =
                Diagnostic::error(codes::MISPLACED, self.sp(span), "`grid` belongs to the top of the kernel");
            return self.report(d);
        }
        self.f.has_grid = true;
        let before = self.mark();
        let values: Vec<Option<ExprId>> = extents.iter().map(|e| self.index_value(e)).collect();
        if names.len() != extents.len() {
            let text = format!("{} names stand for {} grid axes", names.len(), extents.len());
            let d = Diagnostic::error(codes::PATTERN, self.sp(span), text);
            return self.report(d.help("write `grid (M, N) as (i, j)`"));
        }
        let mut grid = Grid::default();
        for (i, (name, value)) in names.iter().zip(values).enumerate() {
            let local = self.new_local(&name.name, Type::INDEX, LocalKind::Grid(i as u8), name.span);
            self.declare(name, Value::Local(local));
            if let Some(value) = value {
                if let Err(e) = typing::rules::need_index(&self.ctx(), "an extent of the grid", value) {
                    let d = e.diagnostic(&self.f.body, self.sp(extents[i].span));
                    self.report(d);
                }
                grid.extents.push(value);
                grid.locals.push(local);
            }
        }
        if let Some(cost) = cost {
            grid.cost = self.index_value(cost);
        }
        if self.mark() != before {
            self.f.block.truncate(before);
            let d = Diagnostic::error(
                codes::GRID_VALUE,
                self.sp(span),
                "the grid is made of dims and integer parameters",
            );
            self.report(d.help("what depends on data is decided inside the kernel"));
        }
        self.f.kernel.grid = grid;
    }
}

fn names_in<'a>(e: &'a ast::Expr, f: &mut impl FnMut(&'a Ident)) {
    match &e.kind {
        ExprKind::Name(id) => f(id),
        ExprKind::Unary(_, a) | ExprKind::Field(a, _) => names_in(a, f),
        ExprKind::Binary(_, a, b) | ExprKind::In(a, b) => {
            names_in(a, f);
            names_in(b, f);
        }
        ExprKind::Call { args, .. } => args.iter().for_each(|a| names_in(&a.value, f)),
        _ => {}
    }
}

/// Equal as text but for spaces.
fn same(a: &ast::Expr, b: &ast::Expr) -> bool {
    match (&a.kind, &b.kind) {
        (ExprKind::Name(x), ExprKind::Name(y)) => x.name == y.name,
        (ExprKind::Int(x), ExprKind::Int(y)) => x == y,
        (ExprKind::Unary(o, x), ExprKind::Unary(p, y)) => o == p && same(x, y),
        (ExprKind::Binary(o, x, v), ExprKind::Binary(p, y, w)) => o == p && same(x, y) && same(v, w),
        (ExprKind::Call { callee: x, args: v, .. }, ExprKind::Call { callee: y, args: w, .. }) => {
            same(x, y) && v.len() == w.len() && v.iter().zip(w).all(|(a, b)| same(&a.value, &b.value))
        }
        _ => false,
    }
}
