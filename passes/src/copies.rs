//! A second copy of statements: what they declare gets handles of its own, since one statement declares a name.

use pantile_ir::builder::{Exprs, KernelBuilder, Result};
use pantile_ir::program::*;
use std::collections::HashMap;

/// Copies statements, with some names replaced by values.
#[derive(Default)]
pub struct Copies {
    values: HashMap<LocalId, ExprId>,
    locals: HashMap<LocalId, LocalId>,
    buffers: HashMap<BufferId, BufferId>,
    /// What stands for an expression, wherever it is met.
    replaced: HashMap<ExprId, ExprId>,
    memo: HashMap<ExprId, ExprId>,
}

impl Copies {
    /// With a value in the place of a name.
    pub fn with(local: LocalId, value: ExprId) -> Copies {
        Copies { values: HashMap::from([(local, value)]), ..Copies::default() }
    }

    pub fn replace(mut self, by: impl IntoIterator<Item = (ExprId, ExprId)>) -> Copies {
        self.replaced.extend(by);
        self
    }

    pub fn block(&mut self, k: &mut KernelBuilder, block: &Block) -> Result<Block> {
        block.iter().map(|s| self.stmt(k, s)).collect()
    }

    pub fn stmt(&mut self, k: &mut KernelBuilder, stmt: &Stmt) -> Result<Stmt> {
        let mut new = stmt.clone();
        // operands first: a `let` may use an outer name that is spelled as its own
        new.kind.replace_operands(|e| self.expr(k, e))?;
        self.declare(k, &mut new.kind)?;
        let blocks = new.kind.blocks_mut();
        for block in blocks {
            *block = self.block(k, block)?;
        }
        Ok(new)
    }

    pub fn expr(&mut self, k: &mut KernelBuilder, e: ExprId) -> Result<ExprId> {
        if let Some(&done) = self.replaced.get(&e).or_else(|| self.memo.get(&e)) {
            return Ok(done);
        }
        let old = k.body().exprs[e].clone();
        let span = k.body().exprs.span(e);
        let mut new = old.map_operands(|o| self.expr(k, o))?;
        match &mut new {
            Expr::Local(l) => {
                if let Some(&value) = self.values.get(l) {
                    self.memo.insert(e, value);
                    return Ok(value);
                }
                *l = self.local(*l);
            }
            Expr::Element { mem, .. } => *mem = self.mem(*mem),
            _ => {}
        }
        let done = if new == old { e } else { k.expr(new, span)? };
        self.memo.insert(e, done);
        Ok(done)
    }

    fn local(&self, l: LocalId) -> LocalId {
        self.locals.get(&l).copied().unwrap_or(l)
    }

    fn mem(&self, mem: Mem) -> Mem {
        match mem {
            Mem::Buffer(b) => Mem::Buffer(self.buffers.get(&b).copied().unwrap_or(b)),
            Mem::Slot { token, field } => Mem::Slot { token: self.local(token), field },
            Mem::Tensor(_) => mem,
        }
    }

    fn fresh(&mut self, k: &mut KernelBuilder, l: &mut LocalId) -> Result<()> {
        let (local, span) = (k.body().locals[*l].clone(), k.body().locals.span(*l));
        let new = k.local(local.name.clone(), local.ty.clone(), local.kind, span);
        k.place_local(new, |l| *l = local)?;
        self.locals.insert(*l, new);
        *l = new;
        self.memo.clear();
        Ok(())
    }

    /// Gives what a statement declares a handle of its own, and what it names the new handle.
    fn declare(&mut self, k: &mut KernelBuilder, kind: &mut StmtKind) -> Result<()> {
        match kind {
            StmtKind::Let { local, .. } | StmtKind::Declare { local } => self.fresh(k, local)?,
            StmtKind::Assign { local, .. } | StmtKind::Update { local, .. } => *local = self.local(*local),
            StmtKind::Buffer { buffer } => {
                let (old, span) = (k.kernel().buffers[*buffer].clone(), k.kernel().buffers.span(*buffer));
                let new = k.add_buffer(old, span)?;
                self.buffers.insert(*buffer, new);
                *buffer = new;
                self.memo.clear();
            }
            StmtKind::Reducer { .. } => {}
            StmtKind::Store { mem, .. } => *mem = self.mem(*mem),
            StmtKind::Op { results, op } => {
                self.op(op);
                results.iter_mut().try_for_each(|l| self.fresh(k, l))?;
            }
            StmtKind::For { var, named, carry, .. } => {
                self.fresh(k, var)?;
                named.iter_mut().try_for_each(|l| self.fresh(k, l))?;
                for c in carry {
                    c.init = c.init.map(|l| self.local(l));
                    self.fresh(k, &mut c.local)?;
                }
            }
            StmtKind::Parallel { vars, .. } => vars.iter_mut().try_for_each(|l| self.fresh(k, l))?,
            StmtKind::Next { carry, value } => {
                *carry = self.local(*carry);
                *value = value.map(|l| self.local(l));
            }
            StmtKind::Roles(_)
            | StmtKind::If { .. }
            | StmtKind::While { .. }
            | StmtKind::Break
            | StmtKind::Continue => {}
        }
        Ok(())
    }

    fn op(&self, op: &mut Op) {
        let region = |r: &mut Region| r.mem = self.mem(r.mem);
        match op {
            Op::Read { from: r, .. } | Op::Write { to: r, .. } => region(r),
            Op::CopyAsync { from, to, .. } => {
                region(from);
                region(to);
            }
            Op::Gemm { into, .. } | Op::Issue { into, .. } => *into = self.local(*into),
            Op::Atomic { at: Place::Element { mem, .. }, .. } => *mem = self.mem(*mem),
            Op::Atomic { at: Place::Region(r), .. } => region(r),
            Op::Commit { token } | Op::Release { token } => *token = self.local(*token),
            _ => {}
        }
    }
}

/// Whether statements may be copied: nothing in them is declared for one place only.
pub fn copyable(block: &Block) -> bool {
    let mut ok = true;
    walk(block, &mut |s| {
        let one = matches!(s.kind, StmtKind::Reducer { .. } | StmtKind::Roles(_))
            || matches!(
                &s.kind,
                StmtKind::Op { op: Op::Acquire { .. } | Op::Wait { .. } | Op::Issue { .. }, .. }
            );
        ok &= !one;
    });
    ok
}
