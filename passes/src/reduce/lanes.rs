//! Folds among lanes by shuffles, none wider than the machine's exchange.

use super::fold::Folder;
use super::shape::{Bits, Group, Run, Widths, number};
use crate::make::Make;
use pantile_ir::builder::Result;
use pantile_ir::program::*;

/// The running values of a fold, one local a part.
pub struct Running<'f> {
    pub fold: &'f Folder,
    pub names: Vec<String>,
    pub locals: Vec<LocalId>,
}

impl Running<'_> {
    pub fn values(&self, m: &mut Make) -> Result<Vec<ExprId>> {
        self.locals.iter().map(|&l| m.get(l)).collect()
    }

    /// `x = x ∘ others`, or the other way round.
    pub fn take(&self, m: &mut Make, others: &[ExprId], from_left: bool) -> Result<()> {
        let own = self.values(m)?;
        if let (Combiner::Add, [local], [other]) = (self.fold.comb, &self.locals[..], others) {
            return m.stmt(StmtKind::Update { local: *local, op: Update::Add, value: *other });
        }
        let new = match from_left {
            true => self.fold.join(m, others, &own)?,
            false => self.fold.join(m, &own, others)?,
        };
        self.set(m, &new)
    }

    /// All parts at once.
    pub fn set(&self, m: &mut Make, new: &[ExprId]) -> Result<()> {
        let mut values = new.to_vec();
        if values.len() > 1 {
            for (v, name) in values.iter_mut().zip(&self.names) {
                *v = m.let_(name, *v)?;
            }
        }
        self.locals
            .iter()
            .zip(values)
            .try_for_each(|(&local, value)| m.stmt(StmtKind::Assign { local, value }))
    }

    fn shuffle(&self, m: &mut Make, kind: ShuffleKind, lane: ExprId, w: Widths) -> Result<Vec<ExprId>> {
        let width = (w.shuffle < w.warp).then_some(w.shuffle as u32);
        let mut all = Vec::new();
        for (&local, name) in self.locals.iter().zip(&self.names) {
            let value = m.get(local)?;
            let op = Op::Shuffle { kind, value, lane, width };
            let result = m.k.op(op, &[&format!("{name}_other")], m.span)?;
            all.push(m.get(result[0])?);
        }
        Ok(all)
    }
}

/// Every lane ends with the fold over the lanes that `steps` reach.
pub fn butterfly(m: &mut Make, r: &Running, g: &Group, steps: &[(u64, usize, u64)], w: Widths) -> Result<()> {
    // far partners first where order is free, as people write it
    let order: Vec<_> = if r.fold.commutes() { steps.iter().rev().collect() } else { steps.iter().collect() };
    for &(distance, digit, place) in order {
        let lane = m.int(distance)?;
        let other = r.shuffle(m, ShuffleKind::Xor, lane, w)?;
        if r.fold.commutes() {
            r.take(m, &other, false)?;
            continue;
        }
        let bit = m.div(g.over[digit].value, place)?;
        let bit = m.rem(bit, 2)?;
        let first = m.is_zero(bit)?;
        let own = r.values(m)?;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (i, (&a, &b)) in own.iter().zip(&other).enumerate() {
            let (l, r_) = (m.select(first, a, b)?, m.select(first, b, a)?);
            left.push(m.let_(&format!("{}_left", r.names[i]), l)?);
            right.push(m.let_(&format!("{}_right", r.names[i]), r_)?);
        }
        let new = r.fold.join(m, &left, &right)?;
        r.set(m, &new)?;
    }
    Ok(())
}

/// The lane's number among those that [`butterfly`] joins, and their count.
pub fn rank(m: &mut Make, g: &Group, bits: &Bits) -> Result<ExprId> {
    let mut digits = Vec::new();
    for (d, &folded) in g.over.iter().zip(&bits.folded) {
        let low = if folded == d.extent { d.value } else { m.rem(d.value, folded)? };
        digits.push((low, folded));
    }
    number(m, &digits)
}

/// The first lane of each run within a stretch of lanes ends with the run's fold, in order.
pub fn towards_first(m: &mut Make, r: &Running, run: &Run, at: &Place, w: Widths) -> Result<()> {
    let whole = run.cells == 1;
    let mut distance = 1;
    while distance < run.len.min(w.shuffle) {
        let mut valid = at.within(m, run, distance)?;
        if !whole {
            let lane = m.add_int(at.lane, distance)?;
            let width = m.int(w.shuffle)?;
            let here = m.lt(lane, width)?;
            valid = m.bin(BinOp::LogicalAnd, valid, here)?;
        }
        let far = m.add_int(at.lane, distance)?;
        let source = m.select(valid, far, at.lane)?;
        let other = r.shuffle(m, ShuffleKind::Index, source, w)?;
        let own = r.values(m)?;
        let joined = r.fold.join(m, &own, &other)?;
        let mut new = Vec::new();
        for (&joined, &own) in joined.iter().zip(&own) {
            new.push(m.select(valid, joined, own)?);
        }
        r.set(m, &new)?;
        distance *= 2;
    }
    Ok(())
}

/// The first lane's value for all of its run.
pub fn from_first(m: &mut Make, r: &Running, at: &Place, w: Widths) -> Result<()> {
    let first = m.rem(at.first, w.shuffle)?;
    let all = r.shuffle(m, ShuffleKind::Index, first, w)?;
    r.locals.iter().zip(all).try_for_each(|(&local, value)| m.stmt(StmtKind::Assign { local, value }))
}

/// Where a thread stands in a run of neighbours.
pub struct Place {
    /// number in the block
    pub thread: ExprId,
    /// lane of the stretch that exchanges
    pub lane: ExprId,
    /// number in the run
    pub at: ExprId,
    /// number in the block of the run's first thread
    pub first: ExprId,
    /// threads of the block
    total: u64,
}

impl Place {
    pub fn new(m: &mut Make, g: &Group, w: Widths) -> Result<Place> {
        let thread = m.thread()?;
        let lane = if g.total <= w.shuffle { thread } else { m.rem(thread, w.shuffle)? };
        let digits: Vec<_> = g.over.iter().map(|d| (d.value, d.extent)).collect();
        let at = number(m, &digits)?;
        let first = if g.len() == g.total { m.int(0)? } else { m.sub(thread, at)? };
        Ok(Place { thread, lane, at, first, total: g.total })
    }

    /// Whether the thread `distance` further belongs to the run.
    fn within(&self, m: &mut Make, run: &Run, distance: u64) -> Result<ExprId> {
        let at = m.add_int(self.at, distance)?;
        let len = m.int(run.len)?;
        let inside = m.lt(at, len)?;
        if !run.ragged {
            return Ok(inside);
        }
        let thread = m.add_int(self.thread, distance)?;
        let total = m.int(self.total)?;
        let exists = m.lt(thread, total)?;
        m.bin(BinOp::LogicalAnd, inside, exists)
    }

    /// Threads of the run as far as they exist, from its first one.
    pub fn end(&self, m: &mut Make, run: &Run) -> Result<ExprId> {
        let end = m.add_int(self.first, run.len)?;
        if !run.ragged {
            return Ok(end);
        }
        let total = m.int(self.total)?;
        m.expr(Expr::Math { f: MathFn::Min, approx: false, args: [end, total].into_iter().collect() })
    }
}
