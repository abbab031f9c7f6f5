//! Handles, types, sizes: everything that makes it safe to look at the rest.

use super::type_error;
use crate::arena::Arena;
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::program::*;
use crate::span::Span;
use crate::typing::{self, Ctx, rules};
use std::collections::HashMap;

/// How deep expressions and blocks may be nested; the text could not be read otherwise.
const MAX_DEPTH: u32 = 120;
/// The most nodes of an expression, written out as a tree.
const MAX_NODES: u64 = 1 << 16;

pub fn program(p: &Program, out: &mut Diagnostics) {
    for (_, c) in p.combines.iter() {
        pure(Ctx::pure(p, &c.func), &c.func, c.span, out);
        combine(c, out);
    }
    for (_, i) in p.intrinsics.iter() {
        pure(Ctx::pure(p, &i.means), &i.means, i.span, out);
        if i.means.results.len() != 1 {
            let message = format!("`{}` gives one scalar", i.name);
            out.push(Diagnostic::error(codes::INTRINSIC_SHAPE, i.span, message));
        }
    }
    for (_, k) in p.kernels.iter() {
        kernel(Ctx::kernel(p, k), k, out);
    }
    host(Ctx::host(p, &p.entry), p, out);
}

/// All expressions have the types that are recorded for them, and none is too large. False if nothing more can be
/// said about them.
fn body(ctx: &Ctx, span: Span, out: &mut Diagnostics) -> bool {
    if ctx.body.types.len() != ctx.body.exprs.len() {
        out.push(Diagnostic::error(
            codes::FOREIGN_HANDLE,
            span,
            "the values of this kernel lack their types",
        ));
        return false;
    }
    if let Err((e, error)) = typing::check_body(ctx) {
        let place = ctx.body.exprs.span(e);
        out.push(error.diagnostic(ctx.body, if place == Span::default() { span } else { place }));
        return false;
    }
    sizes(ctx.body, span, out)
}

fn sizes(body: &Body, span: Span, out: &mut Diagnostics) -> bool {
    let mut weights: Vec<(u32, u64)> = Vec::with_capacity(body.exprs.len());
    for (id, expr) in body.exprs.iter() {
        let (mut depth, mut nodes) = (0, 1u64);
        expr.operands(|o| {
            let (d, n) = weights[o.index()];
            depth = depth.max(d);
            nodes = nodes.saturating_add(n);
        });
        if depth >= MAX_DEPTH || nodes > MAX_NODES {
            let place = body.exprs.span(id);
            let place = if place == Span::default() { span } else { place };
            out.push(
                Diagnostic::error(codes::TOO_BIG, place, "this expression is too large")
                    .help("give names to its parts with `let`"),
            );
            return false;
        }
        weights.push((depth + 1, nodes));
    }
    true
}

fn pure(ctx: Ctx, f: &PureFn, span: Span, out: &mut Diagnostics) {
    if !body(&ctx, span, out) {
        return;
    }
    let mut known: Vec<bool> = vec![false; f.body.locals.len()];
    let mut define = |l: LocalId| known.get_mut(l.index()).is_some_and(|k| !std::mem::replace(k, true));
    if !f.params.iter().all(|&l| define(l)) || !f.lets.iter().all(|&(l, _)| define(l)) {
        out.push(Diagnostic::error(codes::FOREIGN_HANDLE, span, "a name of this function is not its own"));
        return;
    }
    let mut known = vec![false; f.body.locals.len()];
    f.params.iter().for_each(|l| known[l.index()] = true);
    for &(l, value) in &f.lets {
        if f.body.exprs.get(value).is_none() || !in_sight(f, value, &known, span, out) {
            return;
        }
        type_error(out, &f.body, span, typing::check_stmt(&ctx, &StmtKind::Let { local: l, value }));
        known[l.index()] = true;
    }
    for &r in &f.results {
        match f.body.types.get(r.index()) {
            Some(ty) if ty.is_scalar() => {
                in_sight(f, r, &known, span, out);
            }
            _ => out.push(Diagnostic::error(codes::NEED_SCALAR, span, "this function gives scalars")),
        }
    }
}

fn in_sight(f: &PureFn, e: ExprId, known: &[bool], span: Span, out: &mut Diagnostics) -> bool {
    let mut missing = None;
    super::each_below(&f.body, &[e], |_, expr| match expr {
        Expr::Local(l) if !known.get(l.index()).is_some_and(|k| *k) => missing = Some(*l),
        _ => {}
    });
    let Some(l) = missing else { return true };
    let name = f.body.locals.get(l).map_or("", |l| &l.name);
    out.push(Diagnostic::error(codes::NOT_IN_SIGHT, span, format!("`{name}` is used before it is declared")));
    false
}

fn combine(c: &Combine, out: &mut Diagnostics) {
    let n = c.identity.len();
    let elem = |l: &LocalId| c.func.body.locals.get(*l).and_then(|l| l.ty.elem());
    let part = |i: usize| c.identity.get(i % n.max(1)).map(|&(e, _)| e);
    let params = c.func.params.iter().enumerate().all(|(i, l)| elem(l) == part(i));
    let result = |r: &ExprId| c.func.body.types.get(r.index()).and_then(Type::elem);
    let results = c.func.results.iter().enumerate().all(|(i, r)| result(r) == part(i));
    if n == 0 || c.func.params.len() != 2 * n || c.func.results.len() != n || !params || !results {
        let message = format!("`{}` takes two tuples of its identity's types and gives one", c.name);
        out.push(Diagnostic::error(codes::COMBINE_SHAPE, c.span, message));
    }
    if c.identity.iter().any(|&(e, bits)| !typing::literal_fits(e, bits)) {
        let message = format!("an identity of `{}` does not fit its type", c.name);
        out.push(Diagnostic::error(codes::LITERAL_RANGE, c.span, message));
    }
}

fn parameters(ctx: &Ctx, dims: &Arena<Dim>, args: &Arena<Arg>, out: &mut Diagnostics) {
    let mut seen: HashMap<&str, Span> = HashMap::new();
    let dims = dims.iter().map(|(id, d)| (d.name.as_str(), dims.span(id)));
    let names = args.iter().map(|(id, a)| (a.name.as_str(), args.span(id)));
    for (name, span) in dims.chain(names) {
        kept_name(name, span, out);
        if let Some(&first) = seen.get(name) {
            let message = format!("`{name}` names two dims or parameters");
            out.push(Diagnostic::error(codes::SAME_PARAMETER, span, message).also(first, "the first"));
        }
        seen.insert(name, span);
    }
    for (id, arg) in args.iter() {
        type_error(out, ctx.body, args.span(id), typing::check_arg(ctx, arg));
        if let ArgKind::Tensor(t) = &arg.kind {
            let exprs: Vec<ExprId> = t.dims.iter().chain(t.strides.iter().flatten()).copied().collect();
            at_launch(ctx, &exprs, &[], "a dim", args.span(id), out);
        }
    }
}

/// All its names can be written.
fn is_plan_value(v: &plan::Value) -> bool {
    match v {
        plan::Value::Int(_) | plan::Value::Bool(_) | plan::Value::Str(_) => true,
        plan::Value::Name(n) => crate::text::is_name(n),
        plan::Value::List(items) => items.iter().all(is_plan_value),
        plan::Value::Call(f, args) => {
            let key = |k: &Option<String>| k.as_deref().is_none_or(crate::text::is_name);
            crate::text::is_name(f) && args.iter().all(|(k, v)| key(k) && is_plan_value(v))
        }
    }
}

/// Names that dumps keep must be ones, and must not hide what dumps write.
fn kept_name(name: &str, span: Span, out: &mut Diagnostics) {
    let what = match crate::elab::functions::kept_for_dumps(name) {
        _ if !crate::text::is_name(name) => "no name, or a reserved word",
        Some(what) => what,
        None => return,
    };
    let message = format!("`{name}` is {what} and cannot name a dim, a parameter or a tile of a ring");
    out.push(Diagnostic::error(codes::KEPT_NAME, span, message).help("choose another name"));
}

/// Made of dims, scalar parameters and constants, and of the given locals.
fn at_launch(ctx: &Ctx, exprs: &[ExprId], locals: &[LocalId], what: &str, span: Span, out: &mut Diagnostics) {
    let mut bad = None;
    let known: Vec<ExprId> = exprs.iter().copied().filter(|&e| ctx.body.exprs.get(e).is_some()).collect();
    super::each_below(ctx.body, &known, |e, expr| {
        let fits = match expr {
            Expr::Local(l) => locals.contains(l),
            Expr::Element { .. } | Expr::Intrinsic { .. } => false,
            _ => ctx.body.types[e.index()].is_scalar(),
        };
        if !fits {
            bad = Some(e);
        }
    });
    let Some(e) = bad else { return };
    let place = ctx.body.exprs.span(e);
    let place = if place == Span::default() { span } else { place };
    out.push(
        Diagnostic::error(
            codes::GRID_OPERAND,
            place,
            format!("{what} is made of dims and scalar parameters"),
        )
        .help("what depends on data is decided inside the kernel"),
    );
}

fn kernel(ctx: Ctx, k: &Kernel, out: &mut Diagnostics) {
    if !body(&ctx, k.span, out) {
        return;
    }
    parameters(&ctx, &k.dims, &k.args, out);
    for (cond, _) in &k.wheres {
        if type_error(out, ctx.body, k.span, rules::need_condition(&ctx, "`where`", *cond)) {
            at_launch(&ctx, &[*cond], &[], "a launch condition", k.span, out);
        }
    }
    frame(&ctx, k, out);
    if out.has_errors() {
        return;
    }
    block(&ctx, &k.stmts, 0, out);
}

fn frame(ctx: &Ctx, k: &Kernel, out: &mut Diagnostics) {
    let grid = &k.grid;
    let index = |e: &ExprId| rules::need_index(ctx, "a grid extent", *e);
    if type_error(out, ctx.body, k.span, grid.extents.iter().chain(&grid.cost).try_for_each(index)) {
        at_launch(ctx, &grid.extents, &[], "a grid extent", k.span, out);
        let cost: Vec<ExprId> = grid.cost.into_iter().collect();
        at_launch(ctx, &cost, &grid.locals, "the cost of a block", k.span, out);
    }
    let axes = k.threads.as_ref().map(|t| &t.axes[..]).unwrap_or_default();
    let grid_ok = grid.extents.len() == grid.locals.len()
        && grid.locals.iter().enumerate().all(|(i, &l)| is_kind(ctx, l, LocalKind::Grid(i as u8)));
    let threads_ok =
        axes.iter().enumerate().all(|(i, &(l, n))| is_kind(ctx, l, LocalKind::Thread(i as u8)) && n > 0);
    if !grid_ok || !threads_ok {
        let message = format!("the grid or the threads of `{}` do not match their indices", k.name);
        out.push(Diagnostic::error(codes::FOREIGN_HANDLE, k.span, message));
    }
    for (id, b) in k.buffers.iter() {
        type_error(out, ctx.body, k.buffers.span(id), typing::check_buffer(ctx, b));
    }
    for (id, r) in k.rings.iter() {
        type_error(out, ctx.body, k.rings.span(id), typing::check_ring(ctx, r));
        for f in r.fields.iter().filter(|f| !crate::text::is_name(&f.name)) {
            kept_name(&f.name, k.rings.span(id), out);
        }
    }
    for (id, q) in k.queues.iter() {
        type_error(out, ctx.body, k.queues.span(id), ctx.team(q.team).map(|_| ()));
    }
    for (id, t) in k.turns.iter() {
        type_error(out, ctx.body, k.turns.span(id), ctx.team(t.team).map(|_| ()));
    }
    for e in &k.plan.entries {
        let subject = e.subject.as_deref().is_none_or(crate::text::is_name);
        if !subject || !is_plan_value(&e.value) {
            let message = format!("`{}` of the plan holds what is no name", e.key.name());
            out.push(
                Diagnostic::error(codes::PLAN_VALUE, k.span, message).help("put other text between quotes"),
            );
        }
    }
    for (id, l) in k.body.locals.iter() {
        let shape = l.ty.shape();
        if l.ty.is_tile() {
            type_error(out, ctx.body, k.body.locals.span(id), typing::check_shape(shape));
        }
        type_error(out, ctx.body, k.body.locals.span(id), typing::check_local(ctx, l));
        if let LocalKind::Token(ring) = l.kind {
            type_error(out, ctx.body, k.body.locals.span(id), ctx.ring(ring).map(|_| ()));
        }
    }
}

fn is_kind(ctx: &Ctx, l: LocalId, kind: LocalKind) -> bool {
    ctx.local(l).is_ok_and(|l| l.kind == kind && l.ty == Type::INDEX)
}

fn block(ctx: &Ctx, stmts: &Block, depth: u32, out: &mut Diagnostics) {
    for s in stmts {
        type_error(out, ctx.body, s.span, typing::check_stmt(ctx, &s.kind));
        for inner in s.kind.blocks() {
            if depth >= MAX_DEPTH {
                out.push(Diagnostic::error(codes::TOO_BIG, s.span, "blocks are nested too deeply"));
                return;
            }
            block(ctx, inner, depth + 1, out);
        }
    }
}

fn host(ctx: Ctx, p: &Program, out: &mut Diagnostics) {
    let h = &p.entry;
    if !body(&ctx, h.span, out) {
        return;
    }
    parameters(&ctx, &h.dims, &h.args, out);
    for (cond, _) in &h.wheres {
        if type_error(out, ctx.body, h.span, rules::need_condition(&ctx, "`where`", *cond)) {
            at_launch(&ctx, &[*cond], &[], "a launch condition", h.span, out);
        }
    }
    for (id, w) in h.workspaces.iter() {
        let span = h.workspaces.span(id);
        let index = |e: &ExprId| rules::need_index(&ctx, "an extent", *e);
        if type_error(out, ctx.body, span, w.shape.iter().try_for_each(index)) {
            at_launch(&ctx, &w.shape, &[], "an extent of a workspace", span, out);
        }
    }
    steps(&ctx, p, &h.steps, &mut Vec::new(), out);
}

fn steps(ctx: &Ctx, p: &Program, list: &[Step], vars: &mut Vec<LocalId>, out: &mut Diagnostics) {
    if vars.len() > MAX_DEPTH as usize {
        return;
    }
    for s in list {
        match &s.kind {
            StepKind::Launch { kernel, args } => {
                let known = p.kernels.get(*kernel).is_some()
                    && args.iter().all(|a| match a {
                        LaunchArg::Arg(a) => p.entry.args.get(*a).is_some(),
                        LaunchArg::Workspace(w) => p.entry.workspaces.get(*w).is_some(),
                        LaunchArg::Scalar(e) => ctx.body.exprs.get(*e).is_some(),
                    });
                if !known {
                    out.push(Diagnostic::error(
                        codes::FOREIGN_HANDLE,
                        s.span,
                        "this launch was made for another program",
                    ));
                    continue;
                }
                for a in args {
                    if let LaunchArg::Scalar(e) = a {
                        at_launch(ctx, &[*e], vars, "an argument", s.span, out);
                    }
                }
            }
            StepKind::If { cond, then, other } => {
                if type_error(out, ctx.body, s.span, rules::need_condition(ctx, "`if`", *cond)) {
                    at_launch(ctx, &[*cond], vars, "a condition of an op", s.span, out);
                }
                steps(ctx, p, then, vars, out);
                steps(ctx, p, other, vars, out);
            }
            StepKind::For { var, lo, hi, body } => {
                let index = |&e: &ExprId| rules::need_index(ctx, "the range of a loop", e);
                if type_error(out, ctx.body, s.span, [*lo, *hi].iter().try_for_each(index)) {
                    at_launch(ctx, &[*lo, *hi], vars, "the range of a loop", s.span, out);
                }
                vars.push(*var);
                steps(ctx, p, body, vars, out);
                vars.pop();
            }
        }
    }
}
