//! Which scalars every thread of a block agrees on.

use pantile_ir::arena::Arena;
use pantile_ir::program::{ArgKind, Expr, ExprId, Home, Kernel, LocalId, LocalKind, Mem, Mode, Op, StmtKind};
use std::collections::HashSet;

/// Locals whose value may differ between threads.
pub struct Varying {
    locals: HashSet<LocalId>,
}

impl Varying {
    /// The least set closed under assignment and control.
    pub fn of(kernel: &Kernel) -> Varying {
        let mut v = Varying { locals: HashSet::new() };
        for (id, l) in kernel.body.locals.iter() {
            if matches!(l.kind, LocalKind::Thread(_)) {
                v.locals.insert(id);
            }
        }
        loop {
            let before = v.locals.len();
            v.block(kernel, &kernel.stmts, false);
            if v.locals.len() == before {
                return v;
            }
        }
    }

    fn block(&mut self, k: &Kernel, block: &[pantile_ir::program::Stmt], mut divergent: bool) {
        for s in block {
            let mut varies = divergent;
            match &s.kind {
                // a result that all threads share stays uniform in uniform control
                StmtKind::Op { op: Op::Once { .. } | Op::Join { .. } | Op::Reduce { .. }, .. } => {}
                StmtKind::Op {
                    op: Op::Atomic { .. } | Op::Shuffle { .. } | Op::AllReduce { .. }, ..
                }
                | StmtKind::Op { op: Op::Vote { .. }, .. } => varies = true,
                _ => s.kind.operands(|x| varies |= self.varies(k, x)),
            }
            if varies {
                self.locals.extend(s.kind.defines());
            }
            for inner in s.kind.blocks() {
                self.block(k, inner, varies);
            }
            // after a divergent jump the rest of the loop's body is divergent too
            divergent |= varies && holds_jump(&s.kind);
        }
    }

    pub fn varies(&self, k: &Kernel, x: ExprId) -> bool {
        varies(&k.body.exprs, x, &mut |e| match e {
            Expr::Local(id) => self.locals.contains(id),
            Expr::Element { mem: Mem::Tensor(id), .. } => match &k.args[*id].kind {
                ArgKind::Tensor(t) => t.mode != Mode::In,
                ArgKind::Scalar(_) => false,
            },
            Expr::Element { mem: Mem::Buffer(id), .. } => k.buffers[*id].home == Home::Thread,
            _ => false,
        })
    }
}

fn holds_jump(kind: &StmtKind) -> bool {
    matches!(kind, StmtKind::Break | StmtKind::Continue)
        || kind.blocks().iter().any(|b| b.iter().any(|s| holds_jump(&s.kind)))
}

fn varies(exprs: &Arena<Expr>, x: ExprId, f: &mut dyn FnMut(&Expr) -> bool) -> bool {
    let mut any = f(&exprs[x]);
    exprs[x].operands(|c| any |= varies(exprs, c, f));
    any
}
