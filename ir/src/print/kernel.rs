//! Kernels as syntax: parameters, frame, memory, teams, plan.

use super::exprs::Printer;
use super::places::{layout_text, placement};
use super::stmts;
use super::syntax::*;
use crate::arena::Arena;
use crate::ast::{self, Pattern, StmtKind as S, TypeKind};
use crate::program::plan::{Plan, Value};
use crate::program::*;

pub fn kernel(p: &mut Printer, k: &Kernel, printed: &str) -> ast::Kernel {
    parameter_names(p, &k.dims, &k.args);
    let params = k.args.iter().map(|(_, a)| param(p, a)).collect();
    let wheres = k.wheres.iter().map(|(e, _)| p.expr(*e)).collect();
    p.names.open();
    let mut body = frame(p, k);
    body.extend(stmts::statements(p, &k.stmts));
    p.names.close();
    ast::Kernel {
        name: ident(printed),
        generics: Vec::new(),
        params,
        attrs: attrs(k.math, k.deterministic),
        wheres,
        body: block(body),
    }
}

pub fn attrs(math: MathMode, deterministic: bool) -> ast::Attrs {
    ast::Attrs {
        math: (math == MathMode::Exact).then(|| ident("exact")),
        deterministic: deterministic.then(super::nowhere),
    }
}

/// Dims and parameters are the program's interface and keep their names.
pub fn parameter_names(p: &mut Printer, dims: &Arena<Dim>, args: &Arena<Arg>) {
    for (id, d) in dims.iter() {
        p.names.reserve(&d.name);
        p.names.dims.set(id, d.name.clone());
    }
    for (id, a) in args.iter() {
        p.names.reserve(&a.name);
        p.names.args.set(id, a.name.clone());
    }
}

pub fn param(p: &Printer, arg: &Arg) -> ast::Param {
    let mut param = ast::Param {
        name: ident(&arg.name),
        mode: ast::Mode::In,
        elem: elem(Elem::Index),
        shape: None,
        strides: None,
        align: None,
        base: None,
        packed: None,
        prepacked: None,
        span: super::nowhere(),
    };
    match &arg.kind {
        ArgKind::Scalar(e) => param.elem = elem(*e),
        ArgKind::Tensor(t) => {
            param.elem = elem(t.elem.into());
            param.mode = match t.mode {
                Mode::In => ast::Mode::In,
                Mode::Out => ast::Mode::Out,
                Mode::InOut => ast::Mode::InOut,
            };
            param.shape = Some(t.dims.iter().map(|&d| p.expr(d)).collect());
            param.strides = t.strides.as_ref().map(|s| s.iter().map(|&e| p.expr(e)).collect());
            param.align = t.align.map(int);
            param.base = t.base_align.map(int);
            param.packed = t.packed.map(|k| packing(p, t, k));
            param.prepacked = t.prepacked.map(|o| ident(if o == Operand::A { "A" } else { "B" }));
        }
    }
    param
}

fn packing(p: &Printer, t: &Tensor, packed: Packing) -> ast::Packed {
    let order = match packed.order {
        PackOrder::Linear => "linear",
        PackOrder::Gptq => "gptq",
        PackOrder::Awq => "awq",
    };
    // the axis is named by its extent where that is a name and no later axis has it too
    let at = usize::from(packed.axis);
    let same =
        |&d: &ExprId| Some(d) == t.dims.get(at).copied() || p.body().exprs.get(d) == dim_expr(p, t, at);
    let named = t.dims.get(at).is_some_and(|&d| p.constant(d).is_none());
    let axis = match t.dims.iter().rposition(same) {
        Some(last) if named && last == at => p.expr(t.dims[at]),
        _ => int(at),
    };
    ast::Packed { axis, order: Some(ident(order)), span: super::nowhere() }
}

fn dim_expr<'a>(p: &Printer<'a>, t: &Tensor, at: usize) -> Option<&'a Expr> {
    p.body().exprs.get(*t.dims.get(at)?)
}

fn frame(p: &mut Printer, k: &Kernel) -> Vec<ast::Stmt> {
    let mut out = Vec::new();
    if !k.grid.extents.is_empty() {
        let extents = k.grid.extents.iter().map(|&e| p.expr(e)).collect();
        let names = k.grid.locals.iter().map(|&l| ident(p.names.declare_local(l, &k.body))).collect();
        let cost = k.grid.cost.map(|c| p.expr(c));
        out.push(stmt(S::Grid { extents, names, cost }));
    }
    if let Some(t) = &k.threads {
        let extents = t.axes.iter().map(|&(_, n)| int(n)).collect();
        let names = t.axes.iter().map(|&(l, _)| ident(p.names.declare_local(l, &k.body))).collect();
        out.push(stmt(S::Threads { extents, names, ordered: t.ordered }));
    }
    for (id, t) in k.teams.iter() {
        let name = p.names.declare(&t.name);
        p.names.teams.set(id, name.clone());
        out.push(stmt(S::Team(team(name, t))));
    }
    for (id, q) in k.queues.iter() {
        let name = p.names.declare(&q.name);
        p.names.queues.set(id, name.clone());
        out.push(stmt(S::Queue(queue(p, name, q))));
    }
    for (id, r) in k.rings.iter() {
        let name = p.names.declare(&r.name);
        p.names.rings.set(id, name.clone());
        out.push(stmt(S::Ring(ring(p, name, r))));
    }
    for (id, t) in k.turns.iter() {
        let name = p.names.declare(&t.name);
        p.names.turns.set(id, name.clone());
        let team = ident(p.names.teams.get(t.team));
        out.push(stmt(S::Turn { name: ident(name), team, groups: true }));
    }
    if !k.plan.entries.is_empty() {
        out.push(stmt(S::Plan(plan(&k.plan))));
    }
    out
}

fn team(name: String, t: &TeamDecl) -> ast::TeamDecl {
    ast::TeamDecl {
        name: ident(name),
        groups: int(t.groups),
        threads: t.threads.map(int),
        elected: t.elected,
        regs: t.regs.map(int),
    }
}

fn queue(p: &Printer, name: String, q: &Queue) -> ast::QueueDecl {
    let engine = match q.engine {
        Engine::Matrix => "matrix",
        Engine::Copy => "copy",
        Engine::Store => "store",
    };
    let options = [(q.per_thread_one, "per_thread one"), (q.read_completion, "read_completion")];
    ast::QueueDecl {
        name: ident(name),
        team: ident(p.names.teams.get(q.team)),
        per_group: q.per_group,
        engine: ident(engine),
        keep: q.max_keep.map(int),
        options: options.into_iter().filter(|&(on, _)| on).map(|(_, word)| ident(word)).collect(),
    }
}

fn ring(p: &Printer, name: String, r: &Ring) -> ast::RingDecl {
    let field = |f: &RingField| ast::RingField {
        name: ident(&f.name),
        elem: elem(f.elem),
        shape: extents(&f.shape),
        layout: f.layout.as_ref().map(|l| layout_text(l, &f.shape, f.elem)),
        align: f.align.map(int),
    };
    ast::RingDecl {
        name: ident(name),
        slots: int(r.slots),
        producer: ident(p.names.teams.get(r.producer)),
        consumer: ident(p.names.teams.get(r.consumer)),
        fields: r.fields.iter().map(field).collect(),
        fill: match r.fill {
            Fill::Counted => ast::Fill::Counted,
            Fill::Generic => ast::Fill::Generic,
            Fill::Fifo(q) => ast::Fill::Fifo(ident(p.names.queues.get(q))),
        },
    }
}

/// The statement by which a buffer comes to life.
pub fn buffer(p: &mut Printer, id: BufferId) -> ast::StmtKind {
    let Ok(b) = p.ctx.buffer(id) else { return S::Expr(tuple(Vec::new())) };
    let name = p.names.declare(&b.name);
    p.names.buffers.set(id, name.clone());
    let shape = (&b.shape[..], Elem::D(b.elem));
    let mut place = placement(p, b.home, (b.layout.as_ref(), b.align), shape, b.team, b.partial);
    let (name, elem, shape) = (ident(name), elem(b.elem.into()), extents(&b.shape));
    if b.home != Home::Thread {
        return S::Memory { name, elem, shape, place };
    }
    place.home = None;
    let plain = b.layout.is_none() && b.align.is_none() && b.team.is_none() && b.partial.is_none();
    let pattern = if plain { Pattern::Name(name) } else { Pattern::Placed(name, Box::new(place)) };
    S::Var { pattern, ty: Some(ty(TypeKind::Array { elem, shape })), value: None, options: Vec::new() }
}

/// `var s: reducer(welford) (f32, f32, f32)`
pub fn reducer(p: &mut Printer, id: ReducerId) -> ast::StmtKind {
    let Ok(r) = p.ctx.reducer(id) else { return S::Expr(tuple(Vec::new())) };
    let name = p.names.declare(&r.name);
    p.names.reducers.set(id, name.clone());
    let mut parts: Vec<ast::Type> = r.parts.iter().map(part_type).collect();
    let value = match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => ty(TypeKind::Tuple(parts.into_iter().chain(last).collect())),
    };
    let comb = ident(super::ops::combiner(p, r.comb));
    let ty = ty(TypeKind::Reducer { comb, value: Box::new(value) });
    S::Var { pattern: Pattern::Name(ident(name)), ty: Some(ty), value: None, options: Vec::new() }
}

/// A reducer's shape is written without `tile`.
fn part_type(t: &Type) -> ast::Type {
    match t {
        Type::Tile { elem: e, shape } => ty(TypeKind::Array { elem: elem(*e), shape: extents(shape) }),
        other => stmts::value_type(other),
    }
}

fn plan(plan: &Plan) -> Vec<ast::PlanEntry> {
    let entry = |e: &plan::Entry| ast::PlanEntry {
        key: ident(e.key.name()),
        subject: e.subject.as_ref().map(ident),
        value: plan_value(&e.value),
        span: super::nowhere(),
    };
    plan.entries.iter().map(entry).collect()
}

fn plan_value(v: &Value) -> ast::Expr {
    match v {
        Value::Int(n) => signed(*n),
        Value::Bool(b) => expr(ast::ExprKind::Bool(*b)),
        Value::Name(n) => name(n),
        Value::Str(s) => string(s),
        Value::List(items) => expr(ast::ExprKind::List(items.iter().map(plan_value).collect())),
        Value::Call(f, args) => {
            let arg = |(n, v): &(Option<String>, Value)| ast::Arg {
                name: n.as_ref().map(ident),
                value: plan_value(v),
            };
            expr(ast::ExprKind::Call {
                callee: Box::new(name(f)),
                generics: Vec::new(),
                args: args.iter().map(arg).collect(),
            })
        }
    }
}
