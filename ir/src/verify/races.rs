//! Races that are certain: threads or blocks that write one place. What depends on data is the interpreter's.

use super::info::{AxisSet, Uniformity};
use super::uniform::Uniform;
use super::{Verifier, modes::written_by};
use crate::codes;
use crate::program::*;
use crate::span::Span;

pub fn kernel(v: &mut Verifier, u: &Uniform) {
    let k = v.kernel;
    let mut number = 0;
    let mut found = Vec::new();
    walk(&k.stmts, &mut |s| {
        found.push((number, s));
        number += 1;
    });
    for (number, s) in found {
        let control = u.info.stmts[number];
        if let StmtKind::Store { mem, index, value } = &s.kind {
            store(v, u, (*mem, index, *value), control, s.span);
        }
        if let StmtKind::Op { op: Op::Atomic { op, at, .. }, .. } = &s.kind {
            deterministic(v, *op, at.mem(), s.span);
        } else if let Some(mem) = written_by(&s.kind) {
            blocks(v, u, mem, &s.kind, control, s.span);
        }
    }
}

fn thread_axes(k: &Kernel) -> impl Iterator<Item = (u8, LocalId, u32)> {
    k.threads.iter().flat_map(|t| &t.axes).enumerate().map(|(i, &(l, n))| (i as u8, l, n))
}

/// An element that does not depend on a thread axis takes a value that does, and nothing chooses one thread.
fn store(
    v: &mut Verifier,
    u: &Uniform,
    (mem, index, value): (Mem, &[ExprId], ExprId),
    control: Uniformity,
    span: Span,
) {
    let private = matches!(mem, Mem::Buffer(b) if v.kernel.buffers[b].home == Home::Thread);
    let value_axes = u.info.expr(value).threads;
    if private || value_axes == AxisSet::UNKNOWN {
        return;
    }
    let chosen = index.iter().fold(control, |c, &e| c.join(u.info.expr(e))).threads;
    let clash = thread_axes(v.kernel)
        .find(|&(i, _, n)| n > 1 && value_axes.meets(AxisSet::one(i)) && !chosen.meets(AxisSet::one(i)));
    let Some((_, axis, _)) = clash else { return };
    let (name, axis) = (v.mem_name(mem), v.local_name(axis));
    let place = v.span(value);
    let message =
        format!("all threads along `{axis}` store to the same element of `{name}`, each another value");
    let report = v.error(codes::STORE_RACE, span, message).help(format!(
        "join the values first (`allreduce(add, x, over = {axis})`), or choose a thread: `if {axis} == 0 {{ ... }}`"
    ));
    if place != Span::default() {
        report.also(place, format!("depends on `{axis}`"));
    }
}

/// Every block along a grid axis writes the same elements.
fn blocks(v: &mut Verifier, u: &Uniform, mem: Mem, kind: &StmtKind, control: Uniformity, span: Span) {
    if v.tensor(mem).is_none() {
        return;
    }
    let k = v.kernel;
    let mut places = Vec::new();
    match kind {
        StmtKind::Store { index, .. } => places.extend(index.iter().copied()),
        StmtKind::Op { op: Op::Write { to, .. } | Op::CopyAsync { to, .. }, .. } => {
            to.operands(|e| places.push(e))
        }
        _ => return,
    }
    let chosen = places.iter().fold(control, |c, &e| c.join(u.info.expr(e))).grid;
    for (i, (&extent, &axis)) in k.grid.extents.iter().zip(&k.grid.locals).enumerate() {
        let one = matches!(k.body.exprs[extent], Expr::Const { bits: 0 | 1, .. });
        if one || chosen.meets(AxisSet::one(i as u8)) {
            continue;
        }
        let (name, axis) = (v.mem_name(mem), v.local_name(axis));
        let place = k.body.locals.span(k.grid.locals[i]);
        let message = format!("all blocks along `{axis}` write the same elements of `{name}`");
        v.error(codes::BLOCKS_COLLIDE, span, message)
            .also(place, format!("blocks differ in `{axis}`, the written place does not"))
            .help(format!("index `{name}` by `{axis}`, or add with `atomic_add`"));
        return;
    }
}

fn deterministic(v: &mut Verifier, op: AtomicOp, mem: Mem, span: Span) {
    if !(v.kernel.deterministic || v.program.entry.deterministic) {
        return;
    }
    let float = crate::typing::mem_elem(&v.ctx, mem).is_ok_and(Elem::is_float);
    if float && matches!(op, AtomicOp::Add | AtomicOp::Exchange) {
        let message = format!("`{}` on floats depends on the order of the threads", op.name());
        v.error(codes::FLOAT_ATOMIC, span, message)
            .note("the kernel is `deterministic`")
            .help("sum the parts in a fixed order: a workspace, and a second kernel that adds it up");
    }
}
