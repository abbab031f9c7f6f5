//! Late reduction: a loop that adds up `s = s*a + reduce(add, p)` keeps in each thread what that thread has met, and joins
//! the threads once, after the loop, instead of in each round.
//!
//! Sound where the running value is linear in what is added: its other uses are outside of the loop, and what scales it
//! is the same for all threads that share the reduced axis (any value of a tile is, at a position that they all hold).
//! Sums and products of floats change their order by it, which `math contract` allows of a reduction and `exact` does not.

use super::Lower;
use super::nest::{Coord, Inner};
use super::store::Storage;
use crate::layout::digits::AxisLayout;
use pantile_ir::builder::{Exprs, Result};
use pantile_ir::program::*;
use std::collections::{HashMap, HashSet};

/// One running value of a loop.
#[derive(Clone)]
pub struct Late {
    comb: Combiner,
    /// the reduction's place in the loop's body, and its axis
    at: usize,
    axis: Option<u8>,
    /// the value that runs
    total: LocalId,
    /// the name or the value itself that the update gives
    gives: LocalId,
    /// what a round's reduction gives
    round: LocalId,
    /// `total * scale + round`
    scale: Option<ExprId>,
    /// what the update gives without the round's part
    rest: Option<ExprId>,
    elem: Elem,
    share: Option<Share>,
    /// threads that share the reduced axis, once the reduction is lowered
    over: Option<Vec<LocalId>>,
}

/// What each thread has met.
#[derive(Clone)]
enum Share {
    Scalar(LocalId),
    Tile(Storage),
}

/// The running values of the loops around, by what names them.
#[derive(Default)]
pub struct Running {
    all: Vec<Late>,
    rounds: HashMap<LocalId, usize>,
    updates: HashMap<LocalId, usize>,
}

impl Lower<'_, '_> {
    /// Finds the running values of a loop's body and gives each thread a share of them.
    pub fn begin_late(&mut self, body: &Block) -> Result<Vec<usize>> {
        if self.parallel || self.named {
            return Ok(Vec::new());
        }
        let mut made = Vec::new();
        for mut late in Find::of(self.k.kernel(), body).found() {
            if !self.crosses(&late, body) {
                continue;
            }
            if !self.commutes(late.comb) || self.fold_elems(late.comb, &[late.elem]) != [late.elem] {
                continue;
            }
            let Some(start) = self.neutral(&late)? else { continue };
            if self.k.kernel().body.locals[late.total].ty.is_tile() {
                if !self.same_place(late.total, late.round) {
                    continue;
                }
                let axes = self.storage(late.total)?.axes().to_vec();
                let share = self.new_storage("share", late.elem, axes.clone(), false)?;
                self.nest_open(&axes, Inner::Unroll, &mut |s, at, _| s.put(&share, at, start))?;
                late.share = Some(Share::Tile(share));
            } else {
                late.share = Some(Share::Scalar(self.var("share", start)?));
            }
            let id = self.late.all.len();
            self.late.rounds.insert(late.round, id);
            self.late.updates.insert(late.gives, id);
            self.late.all.push(late);
            made.push(id);
        }
        Ok(made)
    }

    /// Joins the threads after the loop.
    pub fn end_late(&mut self, made: Vec<usize>) -> Result<()> {
        for id in made {
            let late = self.late.all[id].clone();
            self.late.rounds.remove(&late.round);
            self.late.updates.remove(&late.gives);
            let over = late.over.unwrap_or_default();
            match late.share {
                Some(Share::Scalar(share)) => {
                    let all = self.across(late.comb, &vec![share], &over)?;
                    let old = self.get(late.total)?;
                    let value = self.combine(late.comb, &[old], &all)?[0];
                    self.emit(StmtKind::Assign { local: late.total, value })?;
                }
                Some(Share::Tile(share)) => {
                    let total = self.storage(late.total)?;
                    self.nest_open(share.axes(), Inner::Unroll, &mut |s, at, inside| {
                        let mine = s.load(&share, late.elem, at)?;
                        let mine = s.var("part", mine)?;
                        let all = s.across(late.comb, &vec![mine], &over)?;
                        s.when(inside, |s| {
                            let old = s.load(&total, late.elem, at)?;
                            let value = s.combine(late.comb, &[old], &all)?[0];
                            s.put(&total, at, value)
                        })
                    })?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Whether the threads are joined after the loop; if so, notes which.
    pub fn joins_late(&mut self, results: &[LocalId], over: &[LocalId]) -> bool {
        let Some(&id) = results.first().and_then(|r| self.late.rounds.get(r)) else { return false };
        self.late.all[id].over = Some(over.to_vec());
        true
    }

    /// The update of a running value; `false` where the statement is none.
    pub fn late_statement(&mut self, s: &Stmt) -> Result<bool> {
        let (StmtKind::Let { local, value }
        | StmtKind::Assign { local, value }
        | StmtKind::Update { local, value, .. }) = s.kind
        else {
            return Ok(false);
        };
        let Some(&id) = self.late.updates.get(&local) else { return Ok(false) };
        let late = self.late.all[id].clone();
        self.share_round(&late)?;
        let Some(rest) = late.rest else { return Ok(true) };
        let same = self.k.body().exprs[rest] == Expr::Local(local);
        if self.is_tile(local) {
            let bounds = self.box_of(value)?;
            if !same {
                self.assign(local, rest)?;
            }
            self.set_box(local, bounds)?;
        } else if !same {
            let value = self.scalar(rest)?;
            self.emit(match s.kind {
                StmtKind::Let { .. } => StmtKind::Let { local, value },
                _ => StmtKind::Assign { local, value },
            })?;
        }
        Ok(true)
    }

    /// A round's part into each thread's share.
    fn share_round(&mut self, late: &Late) -> Result<()> {
        match late.share.clone() {
            Some(Share::Scalar(share)) => {
                let scale = late.scale.map(|a| self.scalar(a)).transpose()?;
                let (old, round) = (self.get(share)?, self.get(late.round)?);
                let value = self.next_share(late, old, scale, round)?;
                self.emit(StmtKind::Assign { local: share, value })
            }
            Some(Share::Tile(share)) => {
                let round = self.storage(late.round)?;
                let full = self.full(share.axes().len());
                let bounds = self.boxes.get(&late.round).cloned().unwrap_or(full);
                let axes = share.axes().to_vec();
                self.nest(&axes, Inner::Unroll, &mut |s, at| {
                    let ok = s.valid(&bounds, at)?;
                    s.when(ok, |s| s.share_at(late, &share, &round, at))
                })
            }
            None => Ok(()),
        }
    }

    fn share_at(&mut self, late: &Late, share: &Storage, round: &Storage, at: &[Coord]) -> Result<()> {
        let scale = late.scale.map(|a| self.eval(a, at)).transpose()?;
        let (old, new) = (self.load(share, late.elem, at)?, self.load(round, late.elem, at)?);
        let value = self.next_share(late, old, scale, new)?;
        self.put(share, at, value)
    }

    fn next_share(
        &mut self,
        late: &Late,
        old: ExprId,
        scale: Option<ExprId>,
        round: ExprId,
    ) -> Result<ExprId> {
        let old = match scale {
            Some(a) => self.bin(BinOp::Mul, old, a)?,
            None => old,
        };
        Ok(self.combine(late.comb, &[old], &[round])?[0])
    }

    /// A value that changes nothing when joined, the sign of zero included; `None` if there is none.
    fn neutral(&mut self, late: &Late) -> Result<Option<ExprId>> {
        if late.comb == Combiner::Add && late.elem.is_float() {
            let Elem::D(d) = late.elem else { return Ok(None) };
            let sign = 1u64 << (d.bits() - 1);
            return self.k.constant_at(late.elem, sign, self.span).map(Some);
        }
        Ok(self.identity(late.comb, &[late.elem])?.first().copied())
    }

    /// Threads share the reduced axis.
    fn crosses(&self, late: &Late, body: &Block) -> bool {
        let mut number = self.next;
        for s in &body[..late.at] {
            number += 1;
            s.kind.blocks().into_iter().for_each(|b| walk(b, &mut |_| number += 1));
        }
        let Some(axes) = self.assign.stmts.get(&number).and_then(|spaces| spaces.first()) else {
            return false;
        };
        let threads = |a: &AxisLayout| a.threads().next().is_some();
        match late.axis {
            Some(axis) if axes.len() > 1 => axes.get(usize::from(axis)).is_some_and(threads),
            _ => axes.iter().any(threads),
        }
    }

    /// Both tiles are registers of the same threads.
    fn same_place(&self, a: LocalId, b: LocalId) -> bool {
        let own = |l: &LocalId| !self.assign.shared.contains(l) && !self.assign.direct.contains(l);
        own(&a)
            && own(&b)
            && self.assign.locals.get(&a).is_some_and(|axes| self.assign.locals.get(&b) == Some(axes))
    }
}

/// The search for running values in the statements of one loop.
struct Find<'k> {
    k: &'k Kernel,
    block: &'k Block,
    /// statements of the block, by their places in it, that read or write a local
    users: HashMap<LocalId, Vec<usize>>,
}

impl<'k> Find<'k> {
    fn of(k: &'k Kernel, block: &'k Block) -> Find<'k> {
        let mut users: HashMap<LocalId, Vec<usize>> = HashMap::new();
        for (i, s) in block.iter().enumerate() {
            let mut seen = HashSet::new();
            named(&k.body, s, &mut seen);
            seen.into_iter().for_each(|l| users.entry(l).or_default().push(i));
        }
        Find { k, block, users }
    }

    fn found(&self) -> Vec<Late> {
        (0..self.block.len()).filter_map(|i| self.at(i)).collect()
    }

    /// The running value that the reduction at a place belongs to.
    fn at(&self, at: usize) -> Option<Late> {
        let StmtKind::Op { results, op: Op::Reduce { comb, inputs, axis } } = &self.block[at].kind else {
            return None;
        };
        let (&[round], [_]) = (&results[..], &inputs[..]) else { return None };
        let elem = self.k.body.locals[round].ty.elem()?;
        let exact = !elem.is_float() || matches!(comb, Combiner::Min | Combiner::Max);
        if !exact && self.k.math == MathMode::Exact {
            return None;
        }
        let [_, update] = self.users[&round][..] else { return None };
        let late = |total, gives, scale, rest| Late {
            comb: *comb,
            at,
            axis: *axis,
            total,
            gives,
            round,
            scale,
            rest,
            elem,
            share: None,
            over: None,
        };
        let found = match &self.block[update].kind {
            StmtKind::Update { local, op, value } if self.is(*value, round) && updates(*op, *comb) => {
                late(*local, *local, None, None)
            }
            StmtKind::Assign { local, value } => {
                let (rest, scale) = self.linear(*value, *local, round, *comb)?;
                late(*local, *local, scale, Some(rest))
            }
            StmtKind::Let { local, value } => {
                let total = self.assigned(*local, update)?;
                let (rest, scale) = self.linear(*value, total, round, *comb)?;
                late(total, *local, scale, Some(rest))
            }
            _ => return None,
        };
        let total = &self.k.body.locals[found.total];
        let alone = self.users[&found.total].iter().all(|&i| {
            i == update || matches!(self.block[i].kind, StmtKind::Assign { local, value } if local == found.total && self.is(value, found.gives))
        });
        let same = total.ty == self.k.body.locals[round].ty && total.kind == LocalKind::Var;
        (alone && same).then_some(found)
    }

    fn is(&self, e: ExprId, l: LocalId) -> bool {
        self.k.body.exprs[e] == Expr::Local(l)
    }

    /// The variable that takes a name's value over, if the name has no other use.
    fn assigned(&self, name: LocalId, defined: usize) -> Option<LocalId> {
        let [first, last] = self.users[&name][..] else { return None };
        match self.block[last].kind {
            StmtKind::Assign { local, value } if first == defined && self.is(value, name) => Some(local),
            _ => None,
        }
    }

    /// `total` or `total * a` in `(that) comb round`, with `a`.
    fn linear(
        &self,
        value: ExprId,
        total: LocalId,
        round: LocalId,
        comb: Combiner,
    ) -> Option<(ExprId, Option<ExprId>)> {
        let (a, b) = match &self.k.body.exprs[value] {
            Expr::Binary(op, a, b) if binary(comb) == Some(*op) => (*a, *b),
            Expr::Math { f: MathFn::Min, args, .. } if comb == Combiner::Min => (args[0], args[1]),
            Expr::Math { f: MathFn::Max, args, .. } if comb == Combiner::Max => (args[0], args[1]),
            _ => return None,
        };
        let rest = match (self.is(a, round), self.is(b, round)) {
            (false, true) => a,
            (true, false) => b,
            _ => return None,
        };
        if self.is(rest, total) {
            return Some((rest, None));
        }
        let Expr::Binary(BinOp::Mul, x, y) = self.k.body.exprs[rest] else { return None };
        let scale = match (self.is(x, total), self.is(y, total)) {
            (true, false) => y,
            (false, true) => x,
            _ => return None,
        };
        let free = |l: LocalId| !self.k.body.holds(scale, |x, _| *x == Expr::Local(l));
        (comb == Combiner::Add && free(total) && free(round)).then_some((rest, Some(scale)))
    }
}

fn updates(op: Update, comb: Combiner) -> bool {
    binary(comb) == Some(op.binary())
}

fn binary(comb: Combiner) -> Option<BinOp> {
    Some(match comb {
        Combiner::Add => BinOp::Add,
        Combiner::Mul => BinOp::Mul,
        Combiner::And => BinOp::And,
        Combiner::Or => BinOp::Or,
        Combiner::Xor => BinOp::Xor,
        Combiner::Min | Combiner::Max | Combiner::User(_) => return None,
    })
}

/// Locals that a statement reads or writes, in its blocks too.
fn named(body: &Body, s: &Stmt, found: &mut HashSet<LocalId>) {
    s.kind.operands(|e| {
        body.holds(e, |x, _| {
            if let Expr::Local(l) = x {
                found.insert(*l);
            }
            false
        });
    });
    found.extend(s.kind.defines());
    for block in s.kind.blocks() {
        block.iter().for_each(|s| named(body, s, found));
    }
}
