//! Which scalars every thread of a block agrees on.

use pantile_ir::arena::Arena;
use pantile_ir::program::{
    ArgKind, Expr, ExprId, Home, Kernel, LocalId, LocalKind, Mem, Mode, Op, Over, Stmt, StmtKind, Team,
};
use std::collections::HashSet;

/// Locals whose value may differ between threads.
pub struct Varying {
    locals: HashSet<LocalId>,
    /// Loops that threads leave apart.
    loops: HashSet<*const Stmt>,
}

impl Varying {
    /// The least set closed under assignment and control.
    pub fn of(kernel: &Kernel) -> Varying {
        let mut v = Varying { locals: HashSet::new(), loops: HashSet::new() };
        for (id, l) in kernel.body.locals.iter() {
            if matches!(l.kind, LocalKind::Thread(_)) {
                v.locals.insert(id);
            }
        }
        loop {
            let before = (v.locals.len(), v.loops.len());
            v.block(kernel, &kernel.stmts, false);
            if (v.locals.len(), v.loops.len()) == before {
                return v;
            }
        }
    }

    /// Whether a jump in the block, out of or on in the loop around it, is taken by some threads only.
    fn block(&mut self, k: &Kernel, block: &[Stmt], mut divergent: bool) -> bool {
        let mut apart = false;
        for s in block {
            let mut varies = divergent;
            match &s.kind {
                // a result that all threads share stays uniform in uniform control
                StmtKind::Op { op: Op::Once { .. } | Op::Join { .. } | Op::Reduce { .. }, .. } => {}
                StmtKind::Op { op: Op::AllReduce { over, .. }, .. } if all_threads(k, over) => {}
                StmtKind::Op { op: Op::Vote { team: Team::Block, .. }, .. } => {}
                StmtKind::Op {
                    op: Op::Atomic { .. } | Op::Shuffle { .. } | Op::AllReduce { .. } | Op::Vote { .. },
                    ..
                } => varies = true,
                _ => s.kind.operands(|x| varies |= self.varies(k, x)),
            }
            if varies {
                self.locals.extend(s.kind.defines());
            }
            match &s.kind {
                StmtKind::Break | StmtKind::Continue => apart |= divergent,
                StmtKind::For { body, .. } | StmtKind::While { body, .. } => {
                    // once some have left, nothing in the body is done by all
                    if self.block(k, body, varies) {
                        self.loops.insert(std::ptr::from_ref(s));
                        self.block(k, body, true);
                    }
                }
                _ => {
                    for inner in s.kind.blocks() {
                        apart |= self.block(k, inner, varies);
                    }
                }
            }
            // after such a jump the rest of the loop's body is divergent too
            divergent |= apart;
        }
        apart
    }

    /// Whether some threads leave the loop, or one of its iterations, before others.
    pub fn left_apart(&self, s: &Stmt) -> bool {
        self.loops.contains(&std::ptr::from_ref(s))
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

/// Whether the team is the whole block.
fn all_threads(k: &Kernel, over: &Over) -> bool {
    match over {
        Over::Team(team) => *team == Team::Block,
        Over::Axes(axes) => k.threads.iter().flat_map(|t| &t.axes).all(|(l, n)| *n == 1 || axes.contains(l)),
    }
}

fn varies(exprs: &Arena<Expr>, x: ExprId, f: &mut dyn FnMut(&Expr) -> bool) -> bool {
    let mut any = f(&exprs[x]);
    exprs[x].operands(|c| any |= varies(exprs, c, f));
    any
}
