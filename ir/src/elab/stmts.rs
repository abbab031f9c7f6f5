//! Statements: dispatch, `let` and `var`, memory declarations, `if`.

use super::Elab;
use super::consts::Const;
use super::emit::FrameKind;
use super::scope::Value;
use crate::ast::{self, ExprKind, Ident, Named, Pattern, StmtKind as A, TypeKind};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;

impl<'a> Elab<'a> {
    pub(crate) fn stmts(&mut self, stmts: &'a [ast::Stmt]) {
        let mut i = 0;
        while let Some(s) = stmts.get(i) {
            if let A::Role { .. } = s.kind {
                let n = stmts[i..].iter().take_while(|s| matches!(s.kind, A::Role { .. })).count();
                self.roles(&stmts[i..i + n]);
                if let Some(s) = stmts[i..i + n].iter().find(|s| s.stage.is_some()) {
                    self.stage_misplaced(s.span);
                }
                i += n;
                continue;
            }
            i += 1;
            self.f.rest = &stmts[i..];
            self.staged(s);
        }
    }

    /// A statement, and the pipeline stage that stands before it.
    fn staged(&mut self, s: &'a ast::Stmt) {
        let Some(parts) = &s.stage else { return self.one(s) };
        let stage = self.small_int(&parts.0, "a pipeline stage");
        let rank = self.small_int(&parts.1, "a rank");
        let before = self.mark();
        let errors = self.errors();
        self.one(s);
        let (Some(stage), Some(rank)) = (stage, rank) else { return };
        if self.mark() == before && self.errors() == errors {
            return self.stage_misplaced(s.span);
        }
        for made in self.f.block.iter_mut().skip(before) {
            made.stage = Some((stage, rank));
        }
    }

    fn stage_misplaced(&mut self, span: Span) {
        let text = "a pipeline stage stands before one statement of a loop's body";
        let d = Diagnostic::error(codes::MISPLACED, self.sp(span), text);
        self.report(d.help("leave `@stage(…)` out here"));
    }

    fn small_int(&mut self, e: &'a ast::Expr, what: &str) -> Option<i32> {
        let n = self.const_int(e, what)?;
        let small = i32::try_from(n).ok();
        if small.is_none() {
            let d = Diagnostic::error(
                codes::WRONG_CONST,
                self.sp(e.span),
                format!("{what} is a small number, not {n}"),
            );
            self.report(d);
        }
        small
    }

    fn one(&mut self, s: &'a ast::Stmt) {
        let span = s.span;
        match &s.kind {
            A::Const(decls) => decls.iter().for_each(|d| self.const_decl(d)),
            A::StaticAssert { cond, message } => self.static_assert(cond, message.as_deref(), span),
            A::Let { pattern, ty, value, options } => {
                self.let_stmt(pattern, ty.as_ref(), value, options, span)
            }
            A::If { is_const, cond, then, other } => {
                self.if_stmt(*is_const, cond, then, other.as_ref(), span)
            }
            A::For { var, kind, segments, carry, body } => {
                self.for_stmt(var, kind, segments, carry, body, span)
            }
            A::Expr(e) => self.expr_stmt(e),
            A::Param { decls, filter } => self.param_stmt(decls, filter.as_ref(), span),
            A::Workspace { name, elem, shape, zeroed } => self.workspace(name, elem, shape, *zeroed, span),
            A::Launch { kernel, generics, args, params } => {
                self.launch_stmt(kernel, generics, args, params, span)
            }
            _ if self.f.kind == FrameKind::Kernel => self.kernel_stmt(s),
            A::Var { pattern: Pattern::Name(id) | Pattern::Placed(id, _), .. } => {
                self.misplaced(s.span, "`var`", Some(id))
            }
            A::Var { .. } => self.misplaced(span, "`var`", None),
            A::Assign { .. } => self.misplaced(span, "an assignment", None),
            _ => self.misplaced(span, "this statement", None),
        }
    }

    fn kernel_stmt(&mut self, s: &'a ast::Stmt) {
        let span = s.span;
        match &s.kind {
            A::Var { pattern, ty, value, options } => {
                self.var_stmt(pattern, ty.as_ref(), value.as_ref(), options, span)
            }
            A::Assign { place, op, value, options } => self.assign(place, *op, value, options, span),
            A::Grid { extents, names, cost } => self.grid(extents, names, cost.as_ref(), span),
            A::Threads { extents, names, ordered } => self.threads(extents, names, *ordered, span),
            A::Plan(entries) => self.plan(entries),
            A::Memory { .. } => self.memory(&s.kind, span),
            A::While { cond, body } => self.while_stmt(cond, body, span),
            A::Parallel { names, extents, body } => self.parallel(names, extents, body, span),
            A::Break => self.jump(StmtKind::Break, span),
            A::Continue => self.jump(StmtKind::Continue, span),
            A::Barrier { team } => self.barrier(team.as_ref(), span),
            A::Form(form) => self.form(form, span),
            A::Team(t) => self.team(t, span),
            A::Ring(r) => self.ring(r, span),
            A::Queue(q) => self.queue(q, span),
            A::Turn { name, team, .. } => self.turn(name, team, span),
            A::Commit(token) => self.finish_token(token, true, span),
            A::Release(token) => self.finish_token(token, false, span),
            A::Await { queue, keep } => self.await_queue(queue, keep, span),
            A::Take(turn) => self.take_turn(turn, true, span),
            A::Pass(turn) => self.take_turn(turn, false, span),
            A::Next(token) => self.next(token, span),
            _ => self.misplaced(span, "this statement", None),
        }
    }

    pub(crate) fn misplaced(&mut self, span: Span, what: &str, name: Option<&'a Ident>) {
        let place = match self.f.kind {
            FrameKind::Kernel => "a kernel",
            FrameKind::Host => "an op",
            FrameKind::Pure => "a combiner or intrinsic",
            FrameKind::Consts => "a compile-time value",
        };
        let d = Diagnostic::error(codes::MISPLACED, self.sp(span), format!("{what} cannot stand in {place}"));
        self.report(match self.f.kind {
            FrameKind::Host => d.help(
                "an op declares workspaces and launches kernels; `if` and `for` over dims and params choose",
            ),
            FrameKind::Kernel => d.help("workspaces and launches belong to an `op`"),
            _ => d.help("only `let` and expressions of scalars may stand here"),
        });
        if let Some(name) = name {
            self.declare(name, Value::Poison);
        }
    }

    fn expr_stmt(&mut self, e: &'a ast::Expr) {
        let value = self.expr(e, None);
        match value {
            Value::Poison | Value::Unit => {}
            Value::Expr(v) if self.drop_old(v) => {}
            // a user's function may be called for its effects
            _ if matches!(e.kind, ExprKind::Call { .. }) && !self.calls_builtin(e) => {}
            _ => {
                let text = "the value of this expression goes nowhere";
                let d = Diagnostic::error(codes::UNUSED_VALUE, self.sp(e.span), text);
                self.report(d.help("give it a name with `let`, or assign it"));
            }
        }
    }

    /// An atomic whose old value nobody wants has no result.
    fn drop_old(&mut self, v: ExprId) -> bool {
        let Expr::Local(l) = self.f.body.exprs[v] else { return false };
        let Some(Stmt { kind: StmtKind::Op { results, op: Op::Atomic { .. } }, .. }) =
            self.f.block.last_mut()
        else {
            return false;
        };
        let own = results.as_slice() == [l];
        if own {
            results.clear();
            self.take_temp(l);
        }
        own
    }

    fn calls_builtin(&mut self, e: &'a ast::Expr) -> bool {
        let ExprKind::Call { callee, .. } = &e.kind else { return false };
        let ExprKind::Name(id) = &callee.kind else { return true };
        !matches!(self.find(&id.name), Some(Value::Const(Const::Fn(super::consts::Callable::Item(_)))))
    }

    fn const_decl(&mut self, d: &'a ast::ConstDecl) {
        let value = self.constant(&d.value, &format!("`{}`", d.name.name));
        self.declare(&d.name, value.map_or(Value::Poison, Value::Const));
    }

    fn static_assert(&mut self, cond: &'a ast::Expr, message: Option<&str>, span: Span) {
        if self.const_bool(cond, "the condition of `static_assert`") == Some(false) {
            let text = match message {
                Some(m) => m.to_owned(),
                None => format!("`{}` does not hold", self.sources.text(cond.span)),
            };
            let d = Diagnostic::error(codes::STATIC_ASSERT, self.sp(span), text).label("asserted here");
            self.report(d);
        }
    }

    // ---- let --------------------------------------------------------------------------------------------------

    fn let_stmt(
        &mut self,
        pattern: &'a Pattern,
        ty: Option<&'a ast::Type>,
        value: &'a ast::Expr,
        options: &'a [Named],
        span: Span,
    ) {
        let ty = match ty {
            None => None,
            Some(ty) => match self.written_type(ty) {
                Some(t) => Some(t),
                None => {
                    self.expr(value, None);
                    return self.poison(pattern);
                }
            },
        };
        let want = ty.as_ref().and_then(Type::elem);
        let v = self.initial(value, want, options);
        let v = match &ty {
            Some(ty) => self.typed(v, ty, value.span),
            None => v,
        };
        let named = matches!(value.kind, ExprKind::Name(_));
        self.bind_pattern(pattern, v, false, named, value.span, span);
    }

    /// The value of a declaration; a product may carry options.
    fn initial(&mut self, value: &'a ast::Expr, want: Option<Elem>, options: &'a [Named]) -> Value {
        match &value.kind {
            ExprKind::Binary(ast::BinaryOp::MatMul, a, b) => self.product(a, b, Some(options), value.span),
            _ => {
                if let Some(o) = options.first() {
                    let d = Diagnostic::error(
                        codes::UNKNOWN_OPTION,
                        self.sp(o.name.span),
                        "only a product `a @ b` takes options",
                    );
                    self.report(d);
                }
                self.expr(value, want)
            }
        }
    }

    /// A type written in a body: a scalar or a tile.
    pub(crate) fn written_type(&mut self, ty: &'a ast::Type) -> Option<Type> {
        match &ty.kind {
            TypeKind::Elem(e) => self.elem_type(e).map(Type::Scalar),
            TypeKind::Tile { elem, shape } => {
                let elem = self.elem_type(elem);
                let shape = self.static_shape(shape);
                Some(Type::Tile { elem: elem?, shape: shape? })
            }
            _ => {
                let d = Diagnostic::error(
                    codes::WRONG_TYPE_FORM,
                    self.sp(ty.span),
                    "this type cannot stand here",
                );
                self.report(d.help("write an element type, `f32`, or a tile, `tile f32[64, 64]`"));
                None
            }
        }
    }

    fn typed(&mut self, v: Value, ty: &Type, span: Span) -> Value {
        let Some(elem) = ty.elem() else { return v };
        let Some(mut e) = self.to_expr(v, Some(elem), span) else { return Value::Poison };
        if elem == Elem::Index {
            e = self.to_index(e, span);
        }
        if self.ty(e) == ty {
            return Value::Expr(e);
        }
        let text = format!("the value is {}, but {ty} is written", self.ty(e));
        let d = Diagnostic::error(codes::RESULT_TYPE, self.sp(span), text);
        self.report(if self.ty(e).shape() == ty.shape() {
            d.help(format!("write `{elem}(...)`"))
        } else {
            d
        });
        Value::Poison
    }

    fn poison(&mut self, pattern: &'a Pattern) {
        match pattern {
            Pattern::Name(id) | Pattern::Placed(id, _) => self.declare(id, Value::Poison),
            Pattern::Ignore(_) => {}
            Pattern::Tuple(parts, _) => parts.iter().for_each(|p| self.poison(p)),
        }
    }

    /// `named` says that the value is a plain name, which `let` copies; other immutable locals are only renamed.
    fn bind_pattern(&mut self, pattern: &'a Pattern, v: Value, var: bool, named: bool, at: Span, span: Span) {
        match pattern {
            Pattern::Name(id) if var => self.bind_var(id, v, at, span),
            Pattern::Name(id) => self.bind_let(id, v, named, at, span),
            Pattern::Placed(id, place) => {
                // a name with a place of its own is a value of its own
                match var {
                    true => self.bind_var(id, v, at, span),
                    false => self.bind_let(id, v, true, at, span),
                }
                self.place_value(id, place);
            }
            Pattern::Ignore(_) => {}
            Pattern::Tuple(parts, place) => match v {
                Value::Poison => self.poison(pattern),
                Value::Tuple(values) if values.len() == parts.len() => {
                    for (p, v) in parts.iter().zip(values.iter()) {
                        self.bind_pattern(p, v.clone(), var, false, at, span);
                    }
                }
                other => {
                    let found = match &other {
                        Value::Tuple(values) => format!("a tuple of {}", values.len()),
                        _ => "one value".into(),
                    };
                    let text = format!("{} names stand for {found}", parts.len());
                    let d = Diagnostic::error(codes::PATTERN, self.sp(*place), text);
                    self.report(d.also(self.sp(at), "this is the value"));
                    self.poison(pattern);
                }
            },
        }
    }

    fn bind_let(&mut self, id: &'a Ident, v: Value, named: bool, at: Span, span: Span) {
        let value = match v {
            Value::Const(c)
                if self.f.kind == FrameKind::Consts || !(c.is_number() || matches!(c, Const::Bool(_))) =>
            {
                Value::Const(c)
            }
            Value::Tuple(parts) => {
                let parts: Vec<Value> =
                    parts.iter().map(|p| self.kept(p.clone(), &id.name, id.span, false)).collect();
                Value::Tuple(parts.into())
            }
            Value::Local(l) if self.f.body.locals[l].ty == Type::Token => {
                if self.take_temp(l) {
                    self.rename(l, id);
                }
                Value::Local(l)
            }
            other => match self.to_expr(other, None, at) {
                Some(e) => self.let_value(id, e, named, span),
                None => Value::Poison,
            },
        };
        self.declare(id, value);
    }

    fn let_value(&mut self, id: &'a Ident, e: ExprId, named: bool, span: Span) -> Value {
        if let Expr::Local(l) = self.f.body.exprs[e] {
            if self.take_temp(l) {
                self.rename(l, id);
                self.f.frozen.push(l);
                return Value::Local(l);
            }
            if !named && self.f.body.locals[l].kind == LocalKind::Let {
                return Value::Local(l);
            }
        }
        let at = id.span;
        let _ = span;
        self.bind(&id.name, e, at)
    }

    fn rename(&mut self, l: LocalId, id: &Ident) {
        self.f.body.locals[l].name = id.name.clone();
    }

    // ---- var --------------------------------------------------------------------------------------------------

    fn var_stmt(
        &mut self,
        pattern: &'a Pattern,
        ty: Option<&'a ast::Type>,
        value: Option<&'a ast::Expr>,
        options: &'a [Named],
        span: Span,
    ) {
        let (id, place) = match pattern {
            Pattern::Name(id) => (Some(id), None),
            Pattern::Placed(id, place) => (Some(id), Some(&**place)),
            _ => (None, None),
        };
        if let (Some(id), Some(ty)) = (id, ty) {
            match &ty.kind {
                TypeKind::Reducer { comb, value: of } => {
                    if let Some(place) = place {
                        self.no_place(place, "a reducer lives where its threads fold");
                    }
                    return self.reducer(id, comb, of, value, span);
                }
                TypeKind::Array { elem, shape } => {
                    return self.thread_array(id, (elem, shape, ty.span), value, place, span);
                }
                _ => {}
            }
        }
        let written = match ty {
            None => None,
            Some(ty) => match self.written_type(ty) {
                Some(t) => Some(t),
                None => return self.poison(pattern),
            },
        };
        match (value, written) {
            (Some(value), written) => {
                let want = written.as_ref().and_then(Type::elem);
                let v = self.initial(value, want, options);
                let v = match &written {
                    Some(ty) => self.typed(v, ty, value.span),
                    None => v,
                };
                self.bind_pattern(pattern, v, true, false, value.span, span);
            }
            (None, Some(ty)) => self.declare_var(pattern, ty, span),
            (None, None) => {
                let d = Diagnostic::error(codes::NO_TYPE, self.sp(span), "a `var` needs a type or a value");
                self.report(d.help("write `var x: f32 = 0`, `var x: tile f32[64, 64]` or `var x = ...`"));
                self.poison(pattern);
            }
        }
    }

    fn declare_var(&mut self, pattern: &'a Pattern, ty: Type, span: Span) {
        let (Pattern::Name(id) | Pattern::Placed(id, _)) = pattern else {
            let d =
                Diagnostic::error(codes::PATTERN, self.sp(span), "a `var` without a value declares one name");
            self.report(d);
            return self.poison(pattern);
        };
        let local = self.new_local(&id.name, ty, LocalKind::Var, id.span);
        let value = match self.stmt(StmtKind::Declare { local }, span) {
            Some(()) => Value::Local(local),
            None => Value::Poison,
        };
        self.declare(id, value);
        if let Pattern::Placed(id, place) = pattern {
            self.place_value(id, place);
        }
    }

    fn bind_var(&mut self, id: &'a Ident, v: Value, at: Span, span: Span) {
        let Some(e) = self.to_expr(v, None, at) else { return self.declare(id, Value::Poison) };
        if let Expr::Local(l) = self.f.body.exprs[e]
            && self.f.body.locals[l].kind == LocalKind::Var
            && self.take_temp(l)
        {
            self.rename(l, id);
            return self.declare(id, Value::Local(l));
        }
        let ty = self.ty(e).clone();
        let local = self.new_local(&id.name, ty, LocalKind::Var, id.span);
        let value = match self.stmt(StmtKind::Let { local, value: e }, span) {
            Some(()) => Value::Local(local),
            None => Value::Poison,
        };
        self.declare(id, value);
    }

    /// `var x: f16[VEC]`
    fn thread_array(
        &mut self,
        id: &'a Ident,
        (elem, shape, place): (&'a ast::Elem, &'a [ast::Expr], Span),
        value: Option<&'a ast::Expr>,
        plan: Option<&'a ast::Placement>,
        span: Span,
    ) {
        let (elem, shape) = (self.elem_type(elem), self.static_shape(shape));
        if let Some(value) = value {
            let d = Diagnostic::error(
                codes::ARRAY_VALUE,
                self.sp(value.span),
                "an array per thread has no initial value",
            );
            self.report(d.help("assign its elements in a loop; a tile is `var x: tile f32[...] = ...`"));
        }
        if self.f.kernel.threads.is_none() {
            let d = Diagnostic::error(
                codes::ARRAY_WITHOUT_THREADS,
                self.sp(place),
                "an array per thread needs a kernel that names its threads",
            );
            let tile = format!("tile {}", self.sources.text(place));
            self.report(
                d.help(format!("a tile of the block is written `var {}: {tile}`", id.name))
                    .help("or name threads: `threads 128 as t`"),
            );
        }
        let Some(Elem::D(elem)) = elem else {
            if elem.is_some() {
                let d = Diagnostic::error(codes::NOT_A_TYPE, self.sp(place), "memory does not hold `index`");
                self.report(d.help("store i32 or i64"));
            }
            return self.declare(id, Value::Poison);
        };
        match shape {
            Some(shape) => self.buffer(id, Home::Thread, elem, shape, plan, span),
            None => self.declare(id, Value::Poison),
        }
    }

    // ---- memory -------------------------------------------------------------------------------------------------

    /// `shared t: f16[64, 72] align 128`, `fragment c: f32[64, 64]`
    fn memory(&mut self, m: &'a A, span: Span) {
        let A::Memory { name, elem, shape, place } = m else { return };
        if place.home == Some(ast::Home::Fragment) && Self::issued_into(self.f.rest, &name.name) {
            // products in flight own it, so it is a value; without a step it is zeros
            let zeros = self.fill(None, elem, shape, span);
            self.bind_var(name, zeros, span, span);
            return self.place_value(name, place);
        }
        let (elem, shape) = (self.elem_type(elem), self.static_shape(shape));
        let (Some(elem), Some(shape)) = (elem, shape) else { return self.declare(name, Value::Poison) };
        let Elem::D(elem) = elem else {
            let d = Diagnostic::error(codes::NOT_A_TYPE, self.sp(span), "memory does not hold `index`");
            self.report(d.help("store i32 or i64"));
            return self.declare(name, Value::Poison);
        };
        let home = place.home.as_ref().and_then(|h| self.home(h)).unwrap_or(Home::Shared);
        self.buffer(name, home, elem, shape, Some(place), span);
    }

    pub(crate) fn alignment(&mut self, e: &'a ast::Expr) -> Option<u32> {
        let n = self.const_u32(e, "an alignment", 1)?;
        if n.is_power_of_two() {
            return Some(n);
        }
        let d = Diagnostic::error(
            codes::WRONG_CONST,
            self.sp(e.span),
            format!("an alignment is a power of two, not {n}"),
        );
        self.report(d.help(format!("write {}", n.next_power_of_two())));
        None
    }

    fn buffer(
        &mut self,
        id: &'a Ident,
        home: Home,
        elem: pantile_abi::DType,
        shape: Shape,
        place: Option<&'a ast::Placement>,
        span: Span,
    ) {
        let at = self.sp(id.span);
        let mut buffer = Buffer::new(id.name.clone(), home, elem, shape);
        if let Some(place) = place {
            self.place_buffer(&mut buffer, place, span);
        }
        let buffer = self.f.kernel.buffers.push(buffer, at);
        let value = match self.stmt(StmtKind::Buffer { buffer }, span) {
            Some(()) => Value::Mem(Mem::Buffer(buffer)),
            None => Value::Poison,
        };
        self.declare(id, value);
    }

    // ---- reducers -----------------------------------------------------------------------------------------------

    fn reducer(
        &mut self,
        id: &'a Ident,
        comb: &'a Ident,
        of: &'a ast::Type,
        value: Option<&'a ast::Expr>,
        span: Span,
    ) {
        if let Some(value) = value {
            let d = Diagnostic::error(
                codes::REDUCER_USE,
                self.sp(value.span),
                "a reducer starts at the identity of its combiner",
            );
            self.report(d.help(format!("leave the value away, and fold it in: `{} op= ...`", id.name)));
        }
        let comb = self.combiner_named(comb);
        let parts = self.reducer_parts(of);
        let (Some(comb), Some(parts)) = (comb, parts) else { return self.declare(id, Value::Poison) };
        let at = self.sp(id.span);
        let reducer = Reducer { name: id.name.clone(), comb, parts: parts.into() };
        let reducer = self.f.kernel.reducers.push(reducer, at);
        let value = match self.stmt(StmtKind::Reducer { reducer }, span) {
            Some(()) => Value::Reducer(reducer),
            None => Value::Poison,
        };
        self.f.reducer_loops.insert(reducer, self.f.loops);
        self.declare(id, value);
    }

    fn reducer_parts(&mut self, of: &'a ast::Type) -> Option<Vec<Type>> {
        match &of.kind {
            TypeKind::Elem(e) => Some(vec![Type::Scalar(self.elem_type(e)?)]),
            TypeKind::Array { elem, shape } | TypeKind::Tile { elem, shape } => {
                let (elem, shape) = (self.elem_type(elem), self.static_shape(shape));
                Some(vec![Type::Tile { elem: elem?, shape: shape? }])
            }
            TypeKind::Tuple(parts) => {
                let mut out = Vec::new();
                for p in parts {
                    out.extend(self.reducer_parts(p)?);
                }
                Some(out)
            }
            _ => {
                let d = Diagnostic::error(
                    codes::WRONG_TYPE_FORM,
                    self.sp(of.span),
                    "a reducer is of scalars or tiles",
                );
                self.report(
                    d.help("write `reducer(add) f32`, `reducer(max) f32[64]` or `reducer(comb) (f32, i32)`"),
                );
                None
            }
        }
    }

    /// The value of a reducer: joined over its threads at the first read.
    pub(crate) fn join(&mut self, r: ReducerId, id: &'a Ident) -> Value {
        if let Some((value, path)) = self.f.joined.get(&r) {
            if self.f.path.starts_with(path) {
                return value.clone();
            }
            let d = Diagnostic::error(
                codes::REDUCER_USE,
                self.sp(id.span),
                format!("`{}` was first read in a block that is over", id.name),
            );
            self.report(d.help(format!("read it before that block: `let total = {}`", id.name)));
            return Value::Poison;
        }
        if self.f.reducer_loops.get(&r).is_some_and(|&depth| depth < self.f.loops) {
            let d = Diagnostic::error(
                codes::REDUCER_USE,
                self.sp(id.span),
                format!("`{}` is read inside a loop, but lives outside of it", id.name),
            );
            self.report(
                d.note("a reducer is joined once, at its first read")
                    .help("read it after the loop, or declare it inside"),
            );
            return Value::Poison;
        }
        let value = self.op_value(Op::Join { reducer: r }, id.span);
        if value != Value::Poison {
            self.f.joined.insert(r, (value.clone(), self.f.path.clone()));
        }
        value
    }

    // ---- if -----------------------------------------------------------------------------------------------------

    fn if_stmt(
        &mut self,
        is_const: bool,
        cond: &'a ast::Expr,
        then: &'a ast::Block,
        other: Option<&'a ast::Block>,
        span: Span,
    ) {
        let c = match self.expr(cond, None) {
            Value::Const(Const::Bool(true)) => return self.spliced(then),
            Value::Const(Const::Bool(false)) => {
                if let Some(other) = other {
                    self.spliced(other);
                }
                return;
            }
            Value::Poison => None,
            found if is_const => return self.not_const_condition(found, cond),
            found => self.to_expr(found, Some(Elem::BOOL), cond.span),
        };
        let c = c.filter(|&c| self.condition("`if`", c, cond.span));
        if self.f.kind == FrameKind::Host {
            return self.host_if(c, then, other, span);
        }
        let then = self.in_block(|s| s.body(then));
        let other = self.in_block(|s| other.into_iter().for_each(|b| s.body(b)));
        if let Some(cond) = c {
            self.stmt(StmtKind::If { cond, then, other }, span);
        }
    }

    /// The branch that was chosen at compile time, in the present block.
    fn spliced(&mut self, b: &'a ast::Block) {
        self.f.scope.open();
        self.body(b);
        self.f.scope.close();
    }

    /// Statements of a block that gives no value.
    pub(crate) fn body(&mut self, b: &'a ast::Block) {
        self.stmts(&b.stmts);
        if let Some(tail) = &b.tail {
            self.expr_stmt(tail);
        }
    }
}
