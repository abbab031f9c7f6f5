//! Control on which the block agrees, but that it has from other lanes or from memory: a vote shows that all go one way.

use super::predicate::Search;
use crate::make::Make;
use pantile_ir::builder::{Exprs, KernelBuilder, Result};
use pantile_ir::program::*;

impl Search<'_> {
    /// A statement into which the whole block goes, by votes.
    pub fn voted(&mut self, k: &mut KernelBuilder, s: Stmt) -> Result<()> {
        let m = &mut Make { k, span: s.span };
        match s.kind {
            StmtKind::If { cond, then, other } => {
                let cond = vote(m, "all", VoteKind::All, cond)?;
                let (then, other) = (self.inner(m.k, then)?, self.inner(m.k, other)?);
                m.k.stmt_staged(StmtKind::If { cond, then, other }, s.span, s.stage)
            }
            StmtKind::While { cond, body } => self.rounds(m, cond, |_| Ok(()), body),
            StmtKind::For { var, segments, body, .. } => self.count(m, var, &segments[0], body),
            kind => m.k.stmt_staged(kind, s.span, s.stage),
        }
    }

    /// `body` after `begin` as long as the block votes for `cond`, asked after `begin`.
    fn rounds(
        &mut self,
        m: &mut Make,
        cond: ExprId,
        begin: impl FnOnce(&mut Make) -> Result<()>,
        body: Block,
    ) -> Result<()> {
        m.k.begin_block();
        begin(m)?;
        let go = vote(m, "all", VoteKind::All, cond)?;
        let stop = m.expr(Expr::Unary(UnOp::Not, go))?;
        m.when(stop, |m| m.stmt(StmtKind::Break))?;
        self.block(m.k, body)?;
        let body = m.k.end_block()?;
        let cond = m.k.constant_at(Elem::BOOL, 1, m.span)?;
        m.stmt(StmtKind::While { cond, body })
    }

    /// A loop over one range. The variable goes on at a round's begin, so that `continue` leaves nothing out.
    fn count(&mut self, m: &mut Make, var: LocalId, seg: &Segment, body: Block) -> Result<()> {
        let mut fixed = |name: &str, e| if m.known(e).is_some() { Ok(e) } else { m.let_(name, e) };
        let (end, by) = (fixed("end", seg.hi)?, fixed("by", seg.step)?);
        positive(m, by)?;
        let before = m.sub(seg.lo, by)?;
        m.k.place_local(var, |l| l.kind = LocalKind::Var)?;
        m.stmt(StmtKind::Let { local: var, value: before })?;
        let at = m.get(var)?;
        let (next, inside) = (m.add(at, by)?, m.lt(at, end)?);
        self.rounds(m, inside, |m| m.stmt(StmtKind::Assign { local: var, value: next }), body)
    }
}

/// What the block decides together.
pub fn vote(m: &mut Make, name: &str, kind: VoteKind, cond: ExprId) -> Result<ExprId> {
    let said = m.k.local(name, Type::BOOL, LocalKind::Let, m.span);
    let op = Op::Vote { kind, cond, team: Team::Block };
    m.stmt(StmtKind::Op { results: std::iter::once(said).collect(), op })?;
    m.get(said)
}

/// Stops the kernel where a loop would not come to its end.
pub fn positive(m: &mut Make, step: ExprId) -> Result<()> {
    if m.known(step).is_some_and(|n| n > 0) {
        return Ok(());
    }
    let zero = m.int(0)?;
    let cond = m.lt(zero, step)?;
    let message = "the step of a loop must be positive".to_owned();
    m.stmt(StmtKind::Op { results: Default::default(), op: Op::Assert { cond, message } })
}
