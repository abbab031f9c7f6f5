//! `scan`: a thread's neighbours first, then what the threads before it hold, round by round along the axis.

use super::Lower;
use super::bounds::Bound;
use super::fold::Parts;
use super::nest::{Coord, Inner};
use super::store::Storage;
use crate::layout::digits::{AxisLayout, Place};
use pantile_ir::builder::{Exprs, Result};
use pantile_ir::program::*;

/// What a scan is, beside its inputs.
#[derive(Clone, Copy)]
pub struct Kind {
    pub comb: Combiner,
    pub axis: usize,
    pub reverse: bool,
    pub exclusive: bool,
}

struct Line<'a> {
    kind: Kind,
    inputs: &'a [ExprId],
    elems: Vec<Elem>,
    fold: Vec<Elem>,
    along: AxisLayout,
    bound: Bound,
    /// What is valid, where the inputs must not be computed elsewhere.
    checked: Option<Vec<Bound>>,
    stores: Vec<Storage>,
    /// Totals of the threads of a line, one buffer a part; the first index is the line's among those of a block.
    totals: Vec<BufferId>,
}

/// Which line of the tile, and the test that it is one: all threads exchange, only these count.
#[derive(Clone, Copy)]
struct Here<'a> {
    kept: &'a [AxisLayout],
    at: &'a [Coord],
    within: Option<ExprId>,
}

impl Lower<'_, '_> {
    pub fn scan(&mut self, results: &[LocalId], kind: Kind, inputs: &[ExprId]) -> Result<()> {
        let shape = self.joint_shape(inputs);
        let axes = self.own_axes(0, &shape);
        let bounds = self.joint_box(inputs, &shape)?;
        let bounds = self.named_box("n", bounds)?;
        let elems = self.elems(inputs);
        let fold = self.fold_elems(kind.comb, &elems);
        let mut kept = axes.clone();
        let along = kept.remove(kind.axis);
        let mut stores = Vec::new();
        for (&r, &elem) in results.iter().zip(&elems) {
            let store = self.storage(r)?;
            // its value comes in a loop, of which nobody can see that it always runs
            if let Storage::Scalar { local, .. } = store {
                let value = self.k.constant_at(elem, 0, self.span)?;
                self.emit(StmtKind::Assign { local, value })?;
            }
            stores.push(store);
        }
        let threads: u32 = along.threads().map(|(e, _)| e).product();
        let lines: u32 = kept.iter().flat_map(AxisLayout::threads).map(|(e, _)| e).product();
        let mut totals = Vec::new();
        if threads > 1 {
            for &e in &fold {
                totals.push(self.buffer("totals", Home::Shared, e, [lines, threads][..].into())?);
            }
        }
        let checked = inputs.iter().any(|&e| self.may_fail(e)).then(|| bounds.clone());
        let line =
            Line { kind, inputs, elems, fold, along, bound: bounds[kind.axis], checked, stores, totals };
        let held = kept.clone();
        self.nest_open(&kept, Inner::Unroll, &mut |s, at, within| {
            s.scan_line(&line, &Here { kept: &held, at, within })
        })?;
        for &r in results {
            self.set_box(r, bounds.clone())?;
        }
        Ok(())
    }

    fn scan_line(&mut self, line: &Line, here: &Here) -> Result<()> {
        let carry = self.accumulators(line.kind.comb, &line.fold)?;
        let rounds = match line.along.digits.first() {
            Some(Place::Reg(n)) if line.along.threads().next().is_some() => *n,
            _ => 1,
        };
        if rounds == 1 {
            let mut along = line.along.clone();
            if !matches!(along.digits.first(), Some(Place::Reg(1))) {
                along.digits.insert(0, Place::Reg(1));
            }
            let zero = self.int(0)?;
            return self.scan_round(line, here, &along, zero, &carry);
        }
        let (lo, hi) = (self.int(0)?, self.int(rounds.into())?);
        self.for_("round", LoopKind::Unroll, lo, hi, |s, n| {
            let n = if line.kind.reverse {
                let last = s.int(u64::from(rounds) - 1)?;
                s.sub(last, n)?
            } else {
                n
            };
            s.scan_round(line, here, &line.along, n, &carry)
        })
    }

    /// One round: `carry` is the fold of all rounds before it.
    fn scan_round(
        &mut self,
        line: &Line,
        here: &Here,
        along: &AxisLayout,
        round: ExprId,
        carry: &Parts,
    ) -> Result<()> {
        let comb = line.kind.comb;
        let own = self.accumulators(comb, &line.fold)?;
        self.each_of(line, here, along, round, &mut |s, c| {
            let place = s.place(line, here.at, c);
            s.fold_scan(line, &own, &place, c)
        })?;
        let before = self.accumulators(comb, &line.fold)?;
        for (&l, &c) in before.iter().zip(carry) {
            let value = self.get(c)?;
            self.emit(StmtKind::Assign { local: l, value })?;
        }
        if !line.totals.is_empty() {
            self.exchange(line, here.kept, &own, &before, carry)?;
        } else {
            let all: Vec<ExprId> = own.iter().map(|&l| self.get(l)).collect::<Result<_>>()?;
            self.join_parts(line.kind.comb, carry, &all)?;
        }
        self.each_of(line, here, along, round, &mut |s, c| {
            let place = s.place(line, here.at, c);
            if line.kind.exclusive {
                s.put_scan(line, &before, &place)?;
                return s.fold_scan(line, &before, &place, c);
            }
            s.fold_scan(line, &before, &place, c)?;
            s.put_scan(line, &before, &place)
        })
    }

    fn place(&self, line: &Line, at: &[Coord], c: &Coord) -> Vec<Coord> {
        let mut all = at.to_vec();
        let held = c.held.as_ref().map(|(_, n)| (line.along.clone(), *n));
        all.insert(line.kind.axis, Coord { value: c.value, held });
        all
    }

    /// The thread's positions of a round in the order of the scan, as far as they are elements.
    fn each_of(
        &mut self,
        line: &Line,
        here: &Here,
        along: &AxisLayout,
        round: ExprId,
        body: &mut dyn FnMut(&mut Self, &Coord) -> Result<()>,
    ) -> Result<()> {
        if !line.kind.reverse {
            return self.rest_of(along, round, &mut |s, c, inside| {
                let ok = s.both(here.within, inside)?;
                s.when(ok, |s| body(s, c))
            });
        }
        // the digits behind the threads, last element first
        let split = along.digits.iter().rposition(|d| matches!(d, Place::Thr { .. })).map_or(1, |i| i + 1);
        let inner: u32 = along.digits[split..].iter().map(|d| d.extent()).product();
        let outer =
            AxisLayout { extent: along.extent.div_ceil(inner), digits: along.digits[..split].to_vec() };
        let (lo, hi) = (self.int(0)?, self.int(inner.into())?);
        self.for_("back", LoopKind::Unroll, lo, hi, |s, n| {
            let last = s.int(u64::from(inner) - 1)?;
            let v = s.sub(last, n)?;
            s.rest_of(&outer, round, &mut |s, c, _| {
                let scaled = s.scale(c.value, inner)?;
                let value = s.add(scaled, v)?;
                let held = match &c.held {
                    Some((_, n)) => {
                        let scaled = s.scale(*n, inner)?;
                        Some((along.clone(), s.add(scaled, v)?))
                    }
                    None => None,
                };
                let inside = s.short_of(along, value)?;
                let ok = s.both(here.within, inside)?;
                s.when(ok, |s| body(s, &Coord { value, held }))
            })
        })
    }

    fn fold_scan(&mut self, line: &Line, acc: &Parts, place: &[Coord], c: &Coord) -> Result<()> {
        let fold = |s: &mut Self| {
            let v = s.eval_all(line.inputs, place)?;
            let ok = s.inside(line.bound, c.value)?;
            s.when(ok, |s| s.fold_in(line.kind.comb, &line.fold, acc, &v))
        };
        match &line.checked {
            Some(bounds) => {
                let ok = self.valid(bounds, place)?;
                self.when(ok, fold)
            }
            None => fold(self),
        }
    }

    fn put_scan(&mut self, line: &Line, acc: &Parts, place: &[Coord]) -> Result<()> {
        for ((store, &l), &elem) in line.stores.iter().zip(acc).zip(&line.elems) {
            let v = self.get(l)?;
            let value = self.converted(v, elem)?;
            self.put(store, place, value)?;
        }
        Ok(())
    }

    /// Adds the totals of the threads before this one to `before`, and those of all threads to `carry`.
    fn exchange(
        &mut self,
        line: &Line,
        kept: &[AxisLayout],
        own: &Parts,
        before: &Parts,
        carry: &Parts,
    ) -> Result<()> {
        let threads: u32 = line.along.threads().map(|(e, _)| e).product();
        let me = self.digit_value(&line.along)?;
        let mut row = self.int(0)?;
        for axis in kept {
            let n: u32 = axis.threads().map(|(e, _)| e).product();
            let d = self.digit_value(axis)?;
            let scaled = if self.known(row) == Some(0) { row } else { self.scale(row, n)? };
            row = self.add(scaled, d)?;
        }
        let row = self.bind("line", row)?;
        let me = self.bind("me", me)?;
        let mut all = kept.to_vec();
        all.push(line.along.clone());
        let one = self.canonical(&all)?;
        let own: Vec<ExprId> = own.iter().map(|&l| self.get(l)).collect::<Result<_>>()?;
        self.when(one, |s| {
            for (&buffer, &v) in line.totals.iter().zip(&own) {
                s.put_element(buffer, [row, me][..].into(), v)?;
            }
            Ok(())
        })?;
        let (lo, hi) = (self.int(0)?, self.int(threads.into())?);
        self.for_("other", LoopKind::Serial, lo, hi, |s, n| {
            let n = if line.kind.reverse {
                let last = s.int(u64::from(threads) - 1)?;
                s.sub(last, n)?
            } else {
                n
            };
            let mut values = Vec::new();
            for (&buffer, &e) in line.totals.iter().zip(&line.fold) {
                let index = [row, n][..].into();
                let v = s.expr(Expr::Element { mem: Mem::Buffer(buffer), index, or: None })?;
                values.push(s.converted(v, e)?);
            }
            let op = if line.kind.reverse { BinOp::Gt } else { BinOp::Lt };
            let earlier = s.bin(op, n, me)?;
            s.when(Some(earlier), |s| s.join_parts(line.kind.comb, before, &values))?;
            s.join_parts(line.kind.comb, carry, &values)
        })
    }

    /// The number of a thread along an axis.
    fn digit_value(&mut self, axis: &AxisLayout) -> Result<ExprId> {
        let mut sum = self.int(0)?;
        for (extent, stride) in axis.threads().collect::<Vec<_>>() {
            let v = self.lanes.value(self.k, extent, stride)?;
            let scaled = if self.known(sum) == Some(0) { sum } else { self.scale(sum, extent)? };
            sum = self.add(scaled, v)?;
        }
        Ok(sum)
    }
}
