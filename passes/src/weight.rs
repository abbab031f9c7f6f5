//! How much code statements become once back ends have repeated what is to be repeated: what bounds copies that passes
//! make. An estimate of leaf statements, never part of a meaning.

use pantile_ir::program::*;
use std::collections::HashSet;

/// A fold over threads in statements of one thread: a few exchanges, and as many joins.
const FOLD: usize = 12;
/// An elementary function that is code, and a division of floats.
const ELEMENTARY: usize = 12;
const DIVISION: usize = 4;

pub fn weight(body: &Body, block: &[Stmt]) -> usize {
    block.iter().map(|s| one(body, s)).fold(0, usize::saturating_add)
}

fn one(body: &Body, s: &Stmt) -> usize {
    let inside = s.kind.blocks().into_iter().map(|b| weight(body, b)).fold(0, usize::saturating_add);
    match &s.kind {
        StmtKind::For { kind: LoopKind::Unroll, segments, .. } => {
            segments.iter().fold(0, |n: usize, s| n.saturating_add(inside.saturating_mul(rounds(body, s))))
        }
        // a body once a range
        StmtKind::For { segments, .. } => inside.saturating_mul(segments.len()).saturating_add(1),
        StmtKind::Op { results, op: Op::AllReduce { .. } | Op::Reduce { .. } | Op::Scan { .. } } => {
            FOLD * results.len().max(1)
        }
        StmtKind::Declare { .. } | StmtKind::Buffer { .. } => 0,
        kind => {
            let mut roots = Vec::new();
            kind.operands(|e| roots.push(e));
            inside.saturating_add(1).saturating_add(functions(body, roots))
        }
    }
}

/// What calls below some expressions become, each counted once.
fn functions(body: &Body, mut open: Vec<ExprId>) -> usize {
    use MathFn::*;
    let (mut seen, mut all) = (HashSet::new(), 0);
    while let Some(e) = open.pop() {
        if !seen.insert(e) {
            continue;
        }
        let expr = &body.exprs[e];
        all += match expr {
            Expr::Math {
                f: Exp | Exp2 | Log | Log2 | Tanh | Sin | Cos | Erf | Pow, approx: false, ..
            } => ELEMENTARY,
            Expr::Binary(BinOp::Div, ..) if body.types[e.index()] != Type::INDEX => DIVISION,
            _ => 0,
        };
        expr.operands(|o| open.push(o));
    }
    all
}

fn rounds(body: &Body, s: &Segment) -> usize {
    let known = |e| body.index_constant(e);
    let count = || {
        let (lo, hi, step) = (known(s.lo)?, known(s.hi)?, known(s.step)?);
        usize::try_from(hi.checked_sub(lo)?.checked_add(step - 1)?.checked_div(step)?).ok()
    };
    count().unwrap_or(1)
}
