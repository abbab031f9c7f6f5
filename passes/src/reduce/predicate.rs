//! Control that differs between the threads of a block around collectives: the statements run under masks, the
//! collectives on all threads.
//!
//! The outermost statement that all of the block reach is taken apart. `if` becomes a mask, and what is no
//! collective stands under `if mask`; a loop runs while any thread of the block is in it; `break` and `continue`
//! clear masks. What a collective is given is evaluated where the mask holds. The verifier sees to it that whole teams
//! take part, so nobody reads what threads outside of the mask give or get.
//!
//! Where the block agrees on the way, and only no longer shows it, nothing is taken apart: it votes. Masks would make one
//! statement of all that stands inside, and no barrier could lie between what one thread writes and another reads.
//!
//! Refused: a loop over several ranges, or with a carried token, whose bounds differ between threads.

use super::divergence::{Fact, facts};
use super::partial;
use super::shape::Widths;
use super::votes::{positive, vote};
use crate::make::Make;
use pantile_ir::arena::Arena;
use pantile_ir::builder::{Exprs, KernelBuilder, Result, rewrite};
use pantile_ir::diag::Diagnostics;
use pantile_ir::program::*;
use pantile_ir::span::Span;
use pantile_ir::target::Arch;
use pantile_ir::verify::{KernelInfo, Level, examine};

pub fn run(program: Program, arch: &Arch, w: Widths) -> std::result::Result<Program, Diagnostics> {
    let info = examine(&program, arch);
    let (stage, combines) = (program.stage, program.combines.clone());
    let mut kernels = info.kernels.iter();
    let done = rewrite(program, stage, |k, mut stmts| {
        let none = KernelInfo::default();
        let info = kernels.next().unwrap_or(&none);
        let alone = k.kernel().threads.as_ref().is_none_or(|t| t.count() == 1);
        if alone {
            return stmts.into_iter().try_for_each(|s| k.stmt_staged(s.kind, s.span, s.stage));
        }
        let (declared, facts) = facts(k, &mut stmts, info, (&combines, w))?;
        declared.into_iter().try_for_each(|s| k.stmt(s.kind, s.span))?;
        Search { combines: &combines, facts, number: 0 }.block(k, stmts)
    });
    done.map_err(|d| std::iter::once(d).collect())
}

/// Looks for the outermost statements that must be taken apart.
pub struct Search<'a> {
    combines: &'a Arena<Combine>,
    facts: Vec<Fact>,
    /// of the next statement
    number: usize,
}

impl Search<'_> {
    pub fn block(&mut self, k: &mut KernelBuilder, stmts: Block) -> Result<()> {
        stmts.into_iter().try_for_each(|s| self.stmt(k, s))
    }

    fn bad(&self, number: usize, s: &Stmt) -> bool {
        self.facts[number..number + size(s)].iter().any(|f| f.bad() || f.vote)
    }

    fn stmt(&mut self, k: &mut KernelBuilder, mut s: Stmt) -> Result<()> {
        let number = self.number;
        let compound = !s.kind.blocks_mut().is_empty();
        if !compound || !self.bad(number, &s) {
            self.number += size(&s);
            return k.stmt_staged(s.kind, s.span, s.stage);
        }
        if self.deeper(number, &mut s) {
            self.number += 1;
            if self.facts[number].vote {
                return self.voted(k, s);
            }
            for block in s.kind.blocks_mut() {
                *block = self.inner(k, std::mem::take(block))?;
            }
            return k.stmt_staged(s.kind, s.span, s.stage);
        }
        self.number += size(&s);
        Apart { combines: self.combines, locals: Vec::new(), buffers: Vec::new(), masks: Vec::new() }
            .root(k, s)
    }

    pub fn inner(&mut self, k: &mut KernelBuilder, block: Block) -> Result<Block> {
        k.begin_block();
        self.block(k, block)?;
        k.end_block()
    }

    /// Whether all that is wrong lies in statements inside that the whole block reaches.
    fn deeper(&self, number: usize, s: &mut Stmt) -> bool {
        let mut at = number + 1;
        for block in s.kind.blocks_mut() {
            for inner in block.iter_mut() {
                let compound = !inner.kind.blocks_mut().is_empty();
                let jump = matches!(inner.kind, StmtKind::Break | StmtKind::Continue);
                let reached = self.facts[at].level >= Level::Block;
                if (self.bad(at, inner) && !(compound && reached)) || (jump && !reached) {
                    return false;
                }
                at += size(inner);
            }
        }
        true
    }
}

/// Statements in it, itself counted.
fn size(s: &Stmt) -> usize {
    let mut n = 1;
    s.kind.blocks().into_iter().for_each(|b| walk(b, &mut |_| n += 1));
    n
}

/// What clears a mask beside its own end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Jump,
    /// `continue` goes no further out
    Iteration,
    /// `break` goes no further out
    Loop,
}

/// A statement being taken apart.
struct Apart<'a> {
    combines: &'a Arena<Combine>,
    /// Declared before it.
    locals: Vec<(LocalId, Span)>,
    buffers: Vec<(BufferId, Span)>,
    /// Who takes part, outermost first, each within those before it.
    masks: Vec<(LocalId, Until)>,
}

/// Of a loop: who still runs it, who is in this iteration, whether any is.
struct Runs {
    live: LocalId,
    now: LocalId,
    go: LocalId,
}

impl Apart<'_> {
    fn root(mut self, k: &mut KernelBuilder, s: Stmt) -> Result<()> {
        k.begin_block();
        self.split(k, s)?;
        let body = k.end_block()?;
        for (local, span) in self.locals {
            let m = &mut Make { k, span };
            let Some(elem) = m.k.body().locals[local].ty.elem() else {
                return Err(partial(span, "the block"));
            };
            let value = m.k.constant_at(elem, 0, span)?;
            m.stmt(StmtKind::Let { local, value })?;
        }
        self.buffers.into_iter().try_for_each(|(buffer, span)| k.stmt(StmtKind::Buffer { buffer }, span))?;
        body.into_iter().try_for_each(|s| k.stmt_staged(s.kind, s.span, s.stage))
    }

    /// A local of the text that lives as long as the whole statement.
    fn hoist(&mut self, m: &mut Make, local: LocalId) -> Result<()> {
        if !self.locals.iter().any(|&(l, _)| l == local) {
            self.locals.push((local, m.span));
            m.k.place_local(local, |l| l.kind = LocalKind::Var)?;
        }
        Ok(())
    }

    fn fresh(&mut self, m: &mut Make, name: &str, ty: Type) -> LocalId {
        let local = m.k.local(name, ty, LocalKind::Var, m.span);
        self.locals.push((local, m.span));
        local
    }

    fn flag(&mut self, m: &mut Make, name: &str) -> LocalId {
        self.fresh(m, name, Type::BOOL)
    }

    /// What `f` makes, for the threads that take part.
    fn under(&self, m: &mut Make, f: impl FnOnce(&mut Make) -> Result<()>) -> Result<()> {
        match self.masks.last() {
            Some(&(mask, _)) => {
                let on = m.get(mask)?;
                m.when(on, f)
            }
            None => f(m),
        }
    }

    fn block(&mut self, k: &mut KernelBuilder, stmts: Block) -> Result<()> {
        let mut plain = Block::new();
        for s in stmts {
            if special(&s) {
                self.flush(k, std::mem::take(&mut plain))?;
                self.split(k, s)?;
            } else {
                plain.push(s);
            }
        }
        self.flush(k, plain)
    }

    /// Statements without collectives. What they name is seen after them, too.
    fn flush(&mut self, k: &mut KernelBuilder, stmts: Block) -> Result<()> {
        let mut out = Block::new();
        for mut s in stmts {
            let m = &mut Make { k, span: s.span };
            match s.kind {
                StmtKind::Buffer { buffer } => {
                    self.buffers.push((buffer, s.span));
                    continue;
                }
                StmtKind::Declare { local } => {
                    self.hoist(m, local)?;
                    continue;
                }
                StmtKind::Let { local, value } => {
                    self.hoist(m, local)?;
                    s.kind = StmtKind::Assign { local, value };
                    out.push(s);
                }
                StmtKind::Op { results, op } => {
                    let mut news = Vec::new();
                    for &l in &results {
                        let (name, ty) = (m.k.body().locals[l].name.clone(), m.k.body().locals[l].ty.clone());
                        news.push((l, m.k.local(&name, ty, LocalKind::Let, s.span)));
                    }
                    let kind = StmtKind::Op { results: news.iter().map(|n| n.1).collect(), op };
                    out.push(Stmt { kind, span: s.span, stage: s.stage });
                    for (local, new) in news {
                        self.hoist(m, local)?;
                        let value = m.get(new)?;
                        out.push(Stmt::new(StmtKind::Assign { local, value }, s.span));
                    }
                }
                _ => out.push(s),
            }
        }
        let Some(first) = out.first() else { return Ok(()) };
        let m = &mut Make { span: first.span, k };
        self.under(m, |m| out.into_iter().try_for_each(|s| m.k.stmt_staged(s.kind, s.span, s.stage)))
    }

    fn split(&mut self, k: &mut KernelBuilder, s: Stmt) -> Result<()> {
        let m = &mut Make { k, span: s.span };
        match s.kind {
            StmtKind::If { cond, then, other } => {
                let yes = self.flag(m, "yes");
                self.narrow(m, yes, cond)?;
                let no = if other.is_empty() { None } else { Some(self.flag(m, "no")) };
                if let Some(no) = no {
                    let on = m.get(yes)?;
                    let not = m.expr(Expr::Unary(UnOp::Not, on))?;
                    self.narrow(m, no, not)?;
                }
                self.masked(m.k, (yes, Until::Jump), then)?;
                no.map_or(Ok(()), |no| self.masked(m.k, (no, Until::Jump), other))
            }
            StmtKind::For { var, kind, named, segments, carry, body } => {
                let fixed =
                    |s: &Segment| [s.lo, s.hi, s.step].iter().chain(&s.values).all(|&e| fixed(m.k.body(), e));
                let fixed = segments.iter().all(fixed);
                match &segments[..] {
                    _ if !carry.is_empty() => Err(partial(s.span, "the block")),
                    _ if fixed => {
                        let runs = self.runs(m);
                        self.everybody(m, runs.live)?;
                        self.masks.push((runs.live, Until::Loop));
                        m.k.begin_block();
                        self.iteration(m, &runs, body)?;
                        let body = m.k.end_block()?;
                        self.masks.pop();
                        m.k.stmt_staged(
                            StmtKind::For { var, kind, named, segments, carry, body },
                            s.span,
                            s.stage,
                        )
                    }
                    [only] if named.is_empty() => self.count(m, var, only, body),
                    _ => Err(partial(s.span, "the block")),
                }
            }
            StmtKind::While { cond, body } => {
                let runs = self.runs(m);
                self.everybody(m, runs.live)?;
                // who is done does not ask again
                let ask = |m: &mut Make| {
                    let live = m.get(runs.live)?;
                    m.when(live, |m| m.stmt(StmtKind::Assign { local: runs.live, value: cond }))
                };
                ask(m)?;
                self.while_any(m, &runs, body, ask)
            }
            StmtKind::Break => self.jump(m, Until::Loop),
            StmtKind::Continue => self.jump(m, Until::Iteration),
            StmtKind::Op { results, op } => {
                let op = self.collective(m, op)?;
                m.stmt(StmtKind::Op { results, op })
            }
            kind => m.k.stmt_staged(kind, s.span, s.stage),
        }
    }

    /// `to = mask && cond`, the condition asked where the mask holds.
    fn narrow(&self, m: &mut Make, to: LocalId, cond: ExprId) -> Result<()> {
        let off = m.k.constant_at(Elem::BOOL, 0, m.span)?;
        m.stmt(StmtKind::Assign { local: to, value: off })?;
        self.under(m, |m| m.stmt(StmtKind::Assign { local: to, value: cond }))
    }

    fn everybody(&self, m: &mut Make, to: LocalId) -> Result<()> {
        let on = m.k.constant_at(Elem::BOOL, 1, m.span)?;
        self.narrow(m, to, on)
    }

    fn masked(&mut self, k: &mut KernelBuilder, mask: (LocalId, Until), block: Block) -> Result<()> {
        self.masks.push(mask);
        let done = self.block(k, block);
        self.masks.pop();
        done
    }

    fn runs(&mut self, m: &mut Make) -> Runs {
        Runs { live: self.flag(m, "live"), now: self.flag(m, "now"), go: self.flag(m, "go") }
    }

    fn iteration(&mut self, m: &mut Make, r: &Runs, body: Block) -> Result<()> {
        let live = m.get(r.live)?;
        m.stmt(StmtKind::Assign { local: r.now, value: live })?;
        self.masked(m.k, (r.now, Until::Iteration), body)
    }

    /// Each thread has its own bounds and its own place in them.
    fn count(&mut self, m: &mut Make, var: LocalId, seg: &Segment, body: Block) -> Result<()> {
        let runs = self.runs(m);
        self.hoist(m, var)?;
        let (end, by) = (self.fresh(m, "end", Type::INDEX), self.fresh(m, "by", Type::INDEX));
        let (at, end_, by_) = (m.get(var)?, m.get(end)?, m.get(by)?);
        let inside = m.lt(at, end_)?;
        self.everybody(m, runs.live)?;
        self.under(m, |m| {
            for (local, value) in [(var, seg.lo), (end, seg.hi), (by, seg.step)] {
                m.stmt(StmtKind::Assign { local, value })?;
            }
            if m.known(seg.step).is_none_or(|n| n <= 0) {
                positive(m, by_)?;
            }
            m.stmt(StmtKind::Assign { local: runs.live, value: inside })
        })?;
        self.while_any(m, &runs, body, |m| {
            let live = m.get(runs.live)?;
            m.when(live, |m| {
                let value = m.add(at, by_)?;
                m.stmt(StmtKind::Assign { local: var, value })?;
                m.stmt(StmtKind::Assign { local: runs.live, value: inside })
            })
        })
    }

    /// The body while any thread of the block is live; `ask` says after each iteration who still is.
    fn while_any(
        &mut self,
        m: &mut Make,
        r: &Runs,
        body: Block,
        ask: impl Fn(&mut Make) -> Result<()>,
    ) -> Result<()> {
        let any = |m: &mut Make| {
            let live = m.get(r.live)?;
            let value = vote(m, "any", VoteKind::Any, live)?;
            m.stmt(StmtKind::Assign { local: r.go, value })
        };
        any(m)?;
        self.masks.push((r.live, Until::Loop));
        m.k.begin_block();
        self.iteration(m, r, body)?;
        ask(m)?;
        any(m)?;
        let body = m.k.end_block()?;
        self.masks.pop();
        let cond = m.get(r.go)?;
        m.stmt(StmtKind::While { cond, body })
    }

    /// Who takes part now does not until the loop, or its iteration, ends.
    fn jump(&self, m: &mut Make, to: Until) -> Result<()> {
        let Some(from) = self.masks.iter().rposition(|x| x.1 == to) else {
            return Err(partial(m.span, "the block"));
        };
        let off = m.k.constant_at(Elem::BOOL, 0, m.span)?;
        self.under(m, |m| {
            let mut masks = self.masks[from..].iter();
            masks.try_for_each(|&(local, _)| m.stmt(StmtKind::Assign { local, value: off }))
        })
    }

    /// The value where threads take part, `other` elsewhere.
    fn lazy(&mut self, m: &mut Make, value: ExprId, other: ExprId) -> Result<ExprId> {
        if self.masks.is_empty() || matches!(m.k.body().exprs[value], Expr::Const { .. }) {
            return Ok(value);
        }
        let ty = m.k.type_of(value).cloned().unwrap_or(Type::INDEX);
        let local = self.fresh(m, "part", ty);
        m.stmt(StmtKind::Assign { local, value: other })?;
        self.under(m, |m| m.stmt(StmtKind::Assign { local, value }))?;
        m.get(local)
    }

    fn or_zero(&mut self, m: &mut Make, value: ExprId) -> Result<ExprId> {
        let elem = m.elem(value).unwrap_or(Elem::Index);
        let zero = m.k.constant_at(elem, 0, m.span)?;
        self.lazy(m, value, zero)
    }

    /// The op for all threads.
    fn collective(&mut self, m: &mut Make, op: Op) -> Result<Op> {
        match op {
            Op::AllReduce { comb: comb @ Combiner::User(id), inputs, over } => {
                // a user's combiner may refuse other values than its identity
                let identity = self.combines.get(id).map(|c| c.identity.clone()).unwrap_or_default();
                let mut new = Args::new();
                for (&e, &(elem, bits)) in inputs.iter().zip(&identity) {
                    let id = m.expr(Expr::Const { elem, bits })?;
                    let id = m.elem(e).map_or(Ok(id), |to| m.cast(to, id))?;
                    new.push(self.lazy(m, e, id)?);
                }
                Ok(Op::AllReduce { comb, inputs: new, over })
            }
            Op::Once { value } => {
                let first = m.thread()?;
                let first = m.is_zero(first)?;
                let lead = self.flag(m, "first");
                self.narrow(m, lead, first)?;
                self.masks.push((lead, Until::Jump));
                let value = self.or_zero(m, value);
                self.masks.pop();
                Ok(Op::Once { value: value? })
            }
            op => op.map_operands(|e| self.or_zero(m, e)),
        }
    }
}

/// Whether something in it must be seen by all threads: a collective, or a jump out of it.
fn special(s: &Stmt) -> bool {
    let mut found = jumps(s) || collective(s);
    s.kind.blocks().into_iter().for_each(|b| walk(b, &mut |s| found |= collective(s)));
    found
}

fn collective(s: &Stmt) -> bool {
    let StmtKind::Op { op, .. } = &s.kind else { return false };
    matches!(
        op,
        Op::AllReduce { .. } | Op::Once { .. } | Op::Shuffle { .. } | Op::Vote { .. } | Op::Barrier { .. }
    )
}

fn jumps(s: &Stmt) -> bool {
    match &s.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::If { then, other, .. } => then.iter().chain(other).any(jumps),
        _ => false,
    }
}

/// Known before the block starts, and no fault to evaluate.
fn fixed(body: &Body, e: ExprId) -> bool {
    let mut all = match &body.exprs[e] {
        Expr::Const { .. } | Expr::Dim(_) | Expr::Arg(_) => true,
        Expr::Local(l) => matches!(body.locals[*l].kind, LocalKind::Grid(_)),
        Expr::Binary(op, ..) => matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul),
        _ => false,
    };
    body.exprs[e].operands(|o| all = all && fixed(body, o));
    all
}
