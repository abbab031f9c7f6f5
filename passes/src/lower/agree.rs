//! Control that the whole block goes by. Threads that hold copies of a tile's element, or read one place of memory, hold
//! the same, which no later pass can know: a vote or one thread tells all. This says where that is needed, and must
//! never ask for it where threads may really differ.

use super::Lower;
use crate::layout::Assignment;
use crate::layout::digits::AxisLayout;
use pantile_ir::builder::{Exprs, Result};
use pantile_ir::program::*;
use pantile_ir::verify::Level;
use std::collections::HashSet;

/// Locals of the kernel of tiles whose values come from memory that threads write, directly or by others.
#[derive(Default)]
pub struct Unseen(HashSet<LocalId>);

/// Finds them, to a fixed point.
pub fn unseen(k: &Kernel, assign: &Assignment) -> Unseen {
    let mut found = Search { k, assign, unseen: HashSet::new() };
    loop {
        let (before, mut number) = (found.unseen.len(), 0);
        walk(&k.stmts, &mut |s| {
            found.stmt(s, number);
            number += 1;
        });
        if found.unseen.len() == before {
            return Unseen(found.unseen);
        }
    }
}

struct Search<'k> {
    k: &'k Kernel,
    assign: &'k Assignment,
    unseen: HashSet<LocalId>,
}

impl Search<'_> {
    fn stmt(&mut self, s: &Stmt, number: usize) {
        match &s.kind {
            StmtKind::Let { local, value }
            | StmtKind::Assign { local, value }
            | StmtKind::Update { local, value, .. }
                if self.assign.shared.contains(local) || self.hides(*value) =>
            {
                self.unseen.insert(*local);
            }
            StmtKind::Op { results, op } => {
                if let Op::Gemm { into, .. } = op {
                    self.unseen.insert(*into);
                }
                let hidden = self.op(op, number);
                let hidden = results.iter().filter(|r| hidden || self.assign.shared.contains(r));
                self.unseen.extend(hidden);
            }
            _ => {}
        }
    }

    /// Whether the op's results are no longer known to be the same.
    fn op(&self, op: &Op, number: usize) -> bool {
        let mut inputs = Vec::new();
        op.operands(|e| inputs.push(e));
        let hidden = inputs.iter().any(|&e| self.hides(e));
        match op {
            Op::Read { from, .. } => hidden || written(self.k, from.mem),
            Op::Reduce { inputs, axis, .. } => {
                let whole = axis.is_none() || inputs.iter().all(|&e| self.rank(e) < 2);
                hidden && !(whole && self.all_join(number))
            }
            Op::Join { reducer } => !self.k.reducers[*reducer].parts.iter().all(|p| p.shape().is_empty()),
            Op::Scan { .. } | Op::Atomic { .. } => true,
            Op::AllReduce { over: Over::Axes(_), .. } | Op::Shuffle { .. } => hidden,
            _ => false,
        }
    }

    fn rank(&self, e: ExprId) -> usize {
        self.k.body.type_of(e).shape().len()
    }

    /// The loop of a statement runs on all threads, so that a fold of its elements joins them all.
    fn all_join(&self, number: usize) -> bool {
        let axes = self.assign.stmts.get(&number).and_then(|spaces| spaces.first());
        let threads = axes.map(|a| a.iter().flat_map(AxisLayout::threads).map(|(n, _)| n).product::<u32>());
        threads == Some(self.assign.threads)
    }

    fn hides(&self, e: ExprId) -> bool {
        hides(self.k, &self.unseen, e)
    }
}

/// Threads may write it while the kernel runs.
fn written(k: &Kernel, mem: Mem) -> bool {
    match mem {
        Mem::Tensor(a) => !matches!(&k.args[a].kind, ArgKind::Tensor(Tensor { mode: Mode::In, .. })),
        Mem::Buffer(b) => k.buffers[b].home != Home::Thread,
        Mem::Slot { .. } => true,
    }
}

fn hides(k: &Kernel, unseen: &HashSet<LocalId>, e: ExprId) -> bool {
    k.body.holds(e, |x, _| match x {
        Expr::Local(l) => unseen.contains(l),
        Expr::Pick { .. } => true,
        Expr::Element { mem, .. } => written(k, *mem),
        _ => false,
    })
}

/// Whether threads must come together in a block, or leave the loop that it is in.
fn meets(k: &Kernel, block: &Block) -> bool {
    let mut found = false;
    walk(block, &mut |s| {
        found |= match &s.kind {
            StmtKind::Let { local, .. }
            | StmtKind::Assign { local, .. }
            | StmtKind::Update { local, .. }
            | StmtKind::Declare { local } => k.body.locals[*local].ty.is_tile(),
            StmtKind::Buffer { buffer } => k.buffers[*buffer].home != Home::Thread,
            StmtKind::Store { .. } | StmtKind::If { .. } | StmtKind::For { .. } | StmtKind::While { .. } => {
                false
            }
            _ => true,
        };
    });
    found
}

impl Lower<'_, '_> {
    /// What decides over statements, as a value that the block has agreed on where that is needed.
    pub fn agreed(&mut self, e: ExprId, over: &[&Block]) -> Result<ExprId> {
        let value = self.scalar(e)?;
        if !self.must_agree(e, over) {
            return Ok(value);
        }
        let op = match self.ty(value) == Type::BOOL {
            true => Op::Vote { kind: VoteKind::Any, cond: value, team: Team::Block },
            false => Op::Once { value },
        };
        let agreed = self.k.op(op, &["agreed"], self.span)?;
        self.get(agreed[0])
    }

    /// The block is together here and goes by one value, which is not to be seen from the code of a thread.
    fn must_agree(&self, e: ExprId, over: &[&Block]) -> bool {
        let (k, info) = (self.k.kernel(), &self.info);
        let here = info.stmts.get(self.stmt).is_some_and(|u| u.level >= Level::Block);
        here && info.expr(e).level >= Level::Block
            && hides(k, &self.unseen.0, e)
            && (self.picks(e) || over.iter().any(|b| meets(k, b)))
    }

    fn picks(&self, e: ExprId) -> bool {
        self.k.body().holds(e, |x, _| matches!(x, Expr::Pick { .. }))
    }

    pub fn while_loop(&mut self, cond: ExprId, body: &Block) -> Result<()> {
        let span = self.span;
        if !self.must_agree(cond, &[body]) {
            let cond = self.scalar(cond)?;
            let body = self.inner(body)?;
            self.span = span;
            return self.emit(StmtKind::While { cond, body });
        }
        self.k.begin_block();
        let agreed = self.agreed(cond, &[body])?;
        let stop = self.expr(Expr::Unary(UnOp::Not, agreed))?;
        self.when(Some(stop), |s| s.emit(StmtKind::Break))?;
        self.block(body)?;
        let body = self.k.end_block()?;
        self.span = span;
        let cond = self.k.constant_at(Elem::BOOL, 1, span)?;
        self.emit(StmtKind::While { cond, body })
    }
}
