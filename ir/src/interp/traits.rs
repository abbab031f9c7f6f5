//! What is known about a kernel before it runs, computed once.

use super::eval::shared_exprs;
use crate::program::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

#[derive(Debug)]
pub(super) struct Traits {
    pub shared: Rc<Vec<bool>>,
    /// Some loop is `vectorized`: per-thread arrays must watch for dependence.
    pub vectorized: bool,
    /// By the address of its body: whether a `parallel` runs as lanes.
    lanes: RefCell<HashMap<usize, bool>>,
}

impl Traits {
    pub fn of(kernel: &Kernel) -> Traits {
        let mut vectorized = false;
        walk(&kernel.stmts, &mut |s| {
            vectorized |= matches!(s.kind, StmtKind::For { kind: LoopKind::Vectorized, .. });
        });
        Traits { shared: shared_exprs(&kernel.body), vectorized, lanes: RefCell::default() }
    }

    /// Whether the iterations of a `parallel` can run side by side as lanes: its body holds scalars only. Otherwise
    /// they run one after another, with the same meaning.
    pub fn runs_in_lanes(&self, kernel: &Kernel, stmt: &Stmt) -> bool {
        let StmtKind::Parallel { body, .. } = &stmt.kind else { return false };
        let key = body.as_ptr() as usize;
        if let Some(&known) = self.lanes.borrow().get(&key) {
            return known;
        }
        let mut scalar = true;
        walk(body, &mut |s| scalar &= is_scalar(kernel, s));
        self.lanes.borrow_mut().insert(key, scalar);
        scalar
    }
}

fn is_scalar(kernel: &Kernel, stmt: &Stmt) -> bool {
    let body = &kernel.body;
    let kind_ok = match &stmt.kind {
        StmtKind::Parallel { .. } | StmtKind::Roles(_) | StmtKind::Next { .. } => false,
        StmtKind::Buffer { buffer } => kernel.buffers[*buffer].home == Home::Thread,
        StmtKind::Reducer { .. } => false,
        StmtKind::Op { op, .. } => match op {
            Op::Atomic { at, .. } => matches!(at, Place::Element { .. }),
            Op::Fold { .. } | Op::Print { .. } | Op::Assert { .. } => true,
            _ => false,
        },
        _ => true,
    };
    let mut ok = kind_ok && stmt.kind.defines().iter().all(|&l| body.locals[l].ty.is_scalar());
    stmt.kind.operands(|e| ok &= scalar_expr(body, e));
    ok
}

/// Scalars throughout, apart from elements picked out of a named tile.
fn scalar_expr(body: &Body, e: ExprId) -> bool {
    let mut todo = vec![e];
    let mut seen = std::collections::HashSet::new();
    while let Some(e) = todo.pop() {
        if !seen.insert(e) {
            continue;
        }
        let expr = &body.exprs[e];
        if body.type_of(e).is_tile() && !matches!(expr, Expr::Local(_)) {
            return false;
        }
        expr.operands(|o| todo.push(o));
    }
    true
}
