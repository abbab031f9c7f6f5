//! `reduce`: the elements of a thread first, then the threads that share the axis.

use super::Lower;
use super::bounds::Bound;
use super::nest::{Coord, Inner};
use crate::layout::digits::{AxisLayout, Place};
use pantile_ir::builder::Result;
use pantile_ir::program::*;

/// Running values of a fold, one a part.
pub type Parts = Vec<LocalId>;

/// One line of a tile to be folded.
struct Line<'a> {
    comb: Combiner,
    elems: &'a [Elem],
    along: &'a AxisLayout,
    bound: Bound,
    /// The test that the line itself is one of the tile: all threads fold, only these count.
    within: Option<ExprId>,
    /// Elements are folds of their own, which join threads: they must not stand under a test.
    joins: bool,
    /// What each thread has met is the result: the threads are joined elsewhere.
    open: bool,
}

/// The parts at a position; where the line's elements join threads, with the test of what counts.
type Element<'f, L> = dyn FnMut(&mut L, &Coord, Option<ExprId>) -> Result<Vec<ExprId>> + 'f;

/// What runs at one position of an axis, with the test of being on it where there is one.
type Position<'f, L> = dyn FnMut(&mut L, &Coord, Option<ExprId>) -> Result<()> + 'f;

impl Lower<'_, '_> {
    /// The joint shape of what one op takes.
    pub fn joint_shape(&self, inputs: &[ExprId]) -> Shape {
        let mut out = Shape::new();
        for &e in inputs {
            let shape = self.shape(e);
            if out.is_empty() {
                out = shape.clone();
            }
            out.iter_mut().zip(&shape).for_each(|(o, &n)| *o = (*o).max(n));
        }
        out
    }

    pub fn elems(&self, inputs: &[ExprId]) -> Vec<Elem> {
        inputs.iter().map(|&e| self.ty(e).elem().unwrap_or(Elem::Index)).collect()
    }

    pub fn reduce(
        &mut self,
        results: &[LocalId],
        comb: Combiner,
        inputs: &[ExprId],
        axis: Option<u8>,
    ) -> Result<()> {
        let shape = self.joint_shape(inputs);
        let axes = self.own_axes(0, &shape);
        let bounds = self.joint_box(inputs, &shape)?;
        let bounds = self.named_box("n", bounds)?;
        let elems = self.elems(inputs);
        let Some(axis) = axis.map(usize::from).filter(|_| shape.len() > 1) else {
            let over = self.over(axes.iter().flat_map(AxisLayout::threads));
            let open = self.joins_late(results, &over);
            let values = self.reduce_all(comb, inputs, &axes, &bounds, &elems, open)?;
            for ((&r, v), &elem) in results.iter().zip(values).zip(&elems) {
                let value = self.converted(v, elem)?;
                self.emit(StmtKind::Let { local: r, value })?;
            }
            return Ok(());
        };
        let mut kept = axes.clone();
        let along = kept.remove(axis);
        let mut kept_box = bounds.clone();
        kept_box.remove(axis);
        let over = self.over(along.threads().collect::<Vec<_>>());
        let open = self.joins_late(results, &over);
        let mut stores = Vec::new();
        for &r in results {
            stores.push(self.storage(r)?);
        }
        let checked = inputs.iter().any(|&e| self.may_fail(e));
        self.nest_open(&kept, Inner::Unroll, &mut |s, at, inside| {
            // a line that is not valid is not computed with, where that could go wrong
            let valid = if checked { s.valid(&kept_box, at)? } else { None };
            let within = s.both(inside, valid)?;
            let place = |c: &Coord| {
                let mut all = at.to_vec();
                all.insert(axis, c.clone());
                all
            };
            let line =
                Line { comb, elems: &elems, along: &along, bound: bounds[axis], within, joins: false, open };
            let values = s.fold_line(&line, &mut |s, c, _| s.eval_all(inputs, &place(c)))?;
            s.when(inside, |s| {
                for ((store, v), &elem) in stores.iter().zip(values).zip(&elems) {
                    let value = s.converted(v, elem)?;
                    s.put(store, at, value)?;
                }
                Ok(())
            })
        })?;
        for &r in results {
            self.set_box(r, kept_box.clone())?;
        }
        Ok(())
    }

    /// Folds along one axis what `element` gives at each position, in ascending order where order counts.
    fn fold_line(&mut self, line: &Line, element: &mut Element<Self>) -> Result<Vec<ExprId>> {
        let Line { comb, along, .. } = *line;
        let fold = self.fold_elems(comb, line.elems);
        let over = self.over(along.threads().collect::<Vec<_>>());
        let acc = self.accumulators(comb, &fold)?;
        let ordered = !self.commutes(comb) && !over.is_empty() && leading(along) > 1;
        if !ordered {
            self.nest_open(std::slice::from_ref(along), Inner::Unroll, &mut |s, at, inside| {
                s.fold_position(line, &fold, &acc, &at[0], inside, element)
            })?;
            return self.across(comb, &acc, if line.open { &[] } else { &over });
        }
        // rounds one after the other, each joined over the threads before the next begins
        let (lo, hi) = (self.int(0)?, self.int(leading(along).into())?);
        self.for_("round", LoopKind::Unroll, lo, hi, |s, round| {
            let part = s.accumulators(comb, &fold)?;
            s.rest_of(along, round, &mut |s, c, inside| {
                s.fold_position(line, &fold, &part, c, inside, element)
            })?;
            let got = s.across(comb, &part, &over)?;
            s.join_parts(comb, &acc, &got)
        })?;
        acc.iter().map(|&l| self.get(l)).collect()
    }

    /// One position of a line into running values, where it is an element and valid.
    fn fold_position(
        &mut self,
        line: &Line,
        fold: &[Elem],
        acc: &Parts,
        c: &Coord,
        inside: Option<ExprId>,
        element: &mut Element<Self>,
    ) -> Result<()> {
        let valid = self.inside(line.bound, c.value)?;
        let ok = self.both(inside, valid)?;
        let ok = self.both(line.within, ok)?;
        if line.joins {
            let v = element(self, c, ok)?;
            return self.when(ok, |s| s.fold_in(line.comb, fold, acc, &v));
        }
        self.when(ok, |s| {
            let v = element(s, c, None)?;
            s.fold_in(line.comb, fold, acc, &v)
        })
    }

    /// The positions of one round, with the test of being inside: the first register digit is given.
    pub fn rest_of(&mut self, along: &AxisLayout, round: ExprId, body: &mut Position<Self>) -> Result<()> {
        let rest = AxisLayout { extent: u32::MAX, digits: along.digits[1..].to_vec() };
        let per_round = u32::try_from(rest.covered()).unwrap_or(u32::MAX);
        let regs = rest.regs();
        let rest = AxisLayout { extent: per_round, ..rest };
        self.nest(&[rest], Inner::Unroll, &mut |s, at| {
            let before = s.scale(round, per_round)?;
            let value = s.add(before, at[0].value)?;
            let held = match &at[0].held {
                Some((_, n)) => {
                    let earlier = s.scale(round, regs)?;
                    Some((along.clone(), s.add(earlier, *n)?))
                }
                None => None,
            };
            let inside = s.short_of(along, value)?;
            body(s, &Coord { value, held }, inside)
        })
    }

    /// Whether a position that the digits of an axis reach is one of the axis; `None` where all are.
    pub fn short_of(&mut self, axis: &AxisLayout, value: ExprId) -> Result<Option<ExprId>> {
        if axis.covered() <= u64::from(axis.extent) {
            return Ok(None);
        }
        let end = self.int(axis.extent.into())?;
        self.bin(BinOp::Lt, value, end).map(Some)
    }

    /// Running values at the identity.
    pub fn accumulators(&mut self, comb: Combiner, fold: &[Elem]) -> Result<Parts> {
        let start = self.identity(comb, fold)?;
        start.into_iter().map(|v| self.var("part", v)).collect()
    }

    /// `acc = comb(acc, value)`, in the types of the fold.
    pub fn fold_in(&mut self, comb: Combiner, fold: &[Elem], acc: &Parts, v: &[ExprId]) -> Result<()> {
        let mut wide = Vec::new();
        for (&v, &e) in v.iter().zip(fold) {
            wide.push(self.converted(v, e)?);
        }
        self.join_parts(comb, acc, &wide)
    }

    /// `acc = comb(acc, values)`
    pub fn join_parts(&mut self, comb: Combiner, acc: &Parts, values: &[ExprId]) -> Result<()> {
        let old: Vec<ExprId> = acc.iter().map(|&l| self.get(l)).collect::<Result<_>>()?;
        let new = self.combine(comb, &old, values)?;
        // all parts are computed before the first is replaced
        let mut named = Vec::new();
        for v in new {
            named.push(if acc.len() > 1 { self.bind("part", v)? } else { v });
        }
        for (&local, value) in acc.iter().zip(named) {
            self.emit(StmtKind::Assign { local, value })?;
        }
        Ok(())
    }

    /// The fold over threads of what each holds.
    pub fn across(&mut self, comb: Combiner, acc: &Parts, over: &[LocalId]) -> Result<Vec<ExprId>> {
        let inputs: Args = acc.iter().map(|&l| self.get(l)).collect::<Result<_>>()?;
        if over.is_empty() {
            return Ok(inputs.to_vec());
        }
        let names: Vec<&str> = acc.iter().map(|_| "total").collect();
        let op = Op::AllReduce { comb, inputs, over: Over::Axes(over.iter().copied().collect()) };
        let results = self.k.op(op, &names, self.span)?;
        results.into_iter().map(|l| self.get(l)).collect()
    }

    /// A fold of all elements into scalars, in the types of the fold; `open` as in [`Line`].
    pub fn reduce_all(
        &mut self,
        comb: Combiner,
        inputs: &[ExprId],
        axes: &[AxisLayout],
        bounds: &[Bound],
        elems: &[Elem],
        open: bool,
    ) -> Result<Vec<ExprId>> {
        let fold = self.fold_elems(comb, elems);
        if self.commutes(comb) {
            let acc = self.accumulators(comb, &fold)?;
            self.nest(axes, Inner::Unroll, &mut |s, at| {
                let ok = s.valid(bounds, at)?;
                s.when(ok, |s| {
                    let v = s.eval_all(inputs, at)?;
                    s.fold_in(comb, &fold, &acc, &v)
                })
            })?;
            let over = self.over(axes.iter().flat_map(AxisLayout::threads));
            return self.across(comb, &acc, if open { &[] } else { &over });
        }
        self.in_order(comb, inputs, axes, bounds, elems, (&[], None))
    }

    /// Row-major order over several axes: each line joined before the next.
    fn in_order(
        &mut self,
        comb: Combiner,
        inputs: &[ExprId],
        axes: &[AxisLayout],
        bounds: &[Bound],
        elems: &[Elem],
        (before, within): (&[Coord], Option<ExprId>),
    ) -> Result<Vec<ExprId>> {
        let (axis, last) = (before.len(), before.len() + 1 == axes.len());
        let line =
            Line { comb, elems, along: &axes[axis], bound: bounds[axis], within, joins: !last, open: false };
        self.fold_line(&line, &mut |s, c, ok| {
            let mut here = before.to_vec();
            here.push(c.clone());
            if last {
                s.eval_all(inputs, &here)
            } else {
                s.in_order(comb, inputs, axes, bounds, elems, (&here, ok))
            }
        })
    }
}

/// The first digit, where it is in registers before a digit on threads.
fn leading(along: &AxisLayout) -> u32 {
    match along.digits.first() {
        Some(Place::Reg(n)) => *n,
        _ => 1,
    }
}
