//! Modes of parameters: `in` is never written, `out` is written, and not read before.

use super::{Verifier, each_below, operands_of, scope::mems_of};
use crate::codes;
use crate::program::*;
use crate::span::Span;

pub fn kernel(v: &mut Verifier) {
    let k = v.kernel;
    let mut seen = Seen { written: vec![false; k.args.len()] };
    block(v, &k.stmts, &mut seen);
    // later stages have lost writes that control never reaches
    if v.program.stage > Stage::Scheduled {
        return;
    }
    for (id, arg) in k.args.iter() {
        let ArgKind::Tensor(t) = &arg.kind else { continue };
        if t.mode == Mode::Out && !seen.written[id.index()] {
            let message = format!("`{}` is `out`, but nothing writes it", arg.name);
            v.error(codes::OUT_NOT_WRITTEN, k.args.span(id), message)
                .help(format!("store the result: `{}[...] = ...`", arg.name));
        }
    }
}

struct Seen {
    written: Vec<bool>,
}

/// The memory that a statement itself writes.
pub fn written_by(kind: &StmtKind) -> Option<Mem> {
    match kind {
        StmtKind::Store { mem, .. } => Some(*mem),
        StmtKind::Op { op, .. } => match op {
            Op::Write { to, .. } | Op::CopyAsync { to, .. } => Some(to.mem),
            Op::Atomic { at, .. } => Some(at.mem()),
            _ => None,
        },
        _ => None,
    }
}

fn block(v: &mut Verifier, stmts: &Block, seen: &mut Seen) {
    for s in stmts {
        if let Some(mem) = written_by(&s.kind) {
            check_write(v, mem, s.span);
        }
        // a body may run again after it has written
        if matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Parallel { .. }) {
            for inner in s.kind.blocks() {
                walk(inner, &mut |s| mark(s, seen));
            }
        }
        reads(v, s, seen);
        mark(s, seen);
        for inner in s.kind.blocks() {
            block(v, inner, seen);
        }
    }
}

fn mark(s: &Stmt, seen: &mut Seen) {
    if let Some(Mem::Tensor(arg)) = written_by(&s.kind) {
        seen.written[arg.index()] = true;
    }
}

fn check_write(v: &mut Verifier, mem: Mem, span: Span) {
    let Some(Tensor { mode: Mode::In, .. }) = v.tensor(mem) else { return };
    let Mem::Tensor(arg) = mem else { return };
    let (name, place) = (&v.kernel.args[arg].name, v.kernel.args.span(arg));
    v.error(codes::WRITE_TO_IN, span, format!("`{name}` is `in` and cannot be written"))
        .also(place, "declared here")
        .help(format!("declare it `out` or `inout`: `{name}: out ...`"));
}

fn reads(v: &mut Verifier, s: &Stmt, seen: &Seen) {
    let mut found: Vec<(Mem, Span)> = Vec::new();
    each_below(v.body(), &operands_of(&s.kind), |e, expr| {
        if let Expr::Element { mem, .. } = expr {
            found.push((*mem, v.span(e)));
        }
    });
    if let StmtKind::Op { op, .. } = &s.kind {
        let written = written_by(&s.kind);
        let atomic = matches!(op, Op::Atomic { .. });
        mems_of(op, &mut |mem| {
            if atomic || Some(mem) != written {
                found.push((mem, s.span));
            }
        });
    }
    for (mem, span) in found {
        let Some(Tensor { mode: Mode::Out, .. }) = v.tensor(mem) else { continue };
        let Mem::Tensor(arg) = mem else { continue };
        if seen.written[arg.index()] {
            continue;
        }
        let (name, place) = (&v.kernel.args[arg].name, v.kernel.args.span(arg));
        let span = if span == Span::default() { s.span } else { span };
        v.error(codes::READ_OF_OUT, span, format!("`{name}` is `out` and holds nothing yet"))
            .also(place, "declared here")
            .help(format!("declare it `inout` to read what the caller put there: `{name}: inout ...`"));
    }
}
