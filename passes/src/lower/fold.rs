//! `reduce`: the elements of a thread first, then the threads that share the axis.

use super::Lower;
use super::bounds::Bound;
use super::nest::{Coord, Inner};
use crate::layout::digits::{AxisLayout, Place};
use pantile_ir::builder::Result;
use pantile_ir::program::*;

/// Running values of a fold, one a part.
pub type Parts = Vec<LocalId>;

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
            let values = self.reduce_all(comb, inputs, &axes, &bounds, &elems)?;
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
        let mut stores = Vec::new();
        for &r in results {
            stores.push(self.storage(r)?);
        }
        self.nest(&kept, Inner::Unroll, &mut |s, at| {
            let values = s.line(comb, inputs, &elems, (&along, axis, bounds[axis]), at)?;
            for ((store, v), &elem) in stores.iter().zip(values).zip(&elems) {
                let value = s.converted(v, elem)?;
                s.put(store, at, value)?;
            }
            Ok(())
        })?;
        for &r in results {
            self.set_box(r, kept_box.clone())?;
        }
        Ok(())
    }

    /// The fold of one line of a tile: along `axis`, at a position on the other axes.
    fn line(
        &mut self,
        comb: Combiner,
        inputs: &[ExprId],
        elems: &[Elem],
        (along, axis, bound): (&AxisLayout, usize, Bound),
        at: &[Coord],
    ) -> Result<Vec<ExprId>> {
        let place = |c: &Coord| {
            let mut all = at.to_vec();
            all.insert(axis, c.clone());
            all
        };
        self.fold_line(comb, elems, along, bound, &mut |s, c| s.eval_all(inputs, &place(c)))
    }

    /// Folds along one axis what `element` gives at each position, in ascending order where order counts.
    pub fn fold_line(
        &mut self,
        comb: Combiner,
        elems: &[Elem],
        along: &AxisLayout,
        bound: Bound,
        element: &mut dyn FnMut(&mut Self, &Coord) -> Result<Vec<ExprId>>,
    ) -> Result<Vec<ExprId>> {
        let fold = self.fold_elems(comb, elems);
        let threads: Vec<(u32, u32)> = along.threads().collect();
        let over = self.over(threads.iter().copied());
        let ordered = !self.commutes(comb) && along.threads().next().is_some() && leading(along) > 1;
        if !ordered {
            let acc = self.accumulators(comb, &fold)?;
            self.nest(std::slice::from_ref(along), Inner::Unroll, &mut |s, at| {
                let v = element(s, &at[0])?;
                s.fold_in(comb, &fold, &acc, &v, bound, &at[0])
            })?;
            return self.across(comb, &acc, &over);
        }
        // rounds one after the other, each joined over the threads before the next begins
        let total = self.accumulators(comb, &fold)?;
        let rounds = leading(along);
        let (lo, hi) = (self.int(0)?, self.int(rounds.into())?);
        let inner = AxisLayout { extent: along.extent, digits: along.digits.clone() };
        self.for_("round", LoopKind::Unroll, lo, hi, |s, round| {
            let part = s.accumulators(comb, &fold)?;
            s.rest_of(&inner, round, &mut |s, c| {
                let v = element(s, c)?;
                s.fold_in(comb, &fold, &part, &v, bound, c)
            })?;
            let got = s.across(comb, &part, &over)?;
            s.join_parts(comb, &total, &got)
        })?;
        total.iter().map(|&l| self.get(l)).collect()
    }

    /// The positions of one round: the first register digit is given.
    pub fn rest_of(
        &mut self,
        along: &AxisLayout,
        round: ExprId,
        body: &mut dyn FnMut(&mut Self, &Coord) -> Result<()>,
    ) -> Result<()> {
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
            let c = Coord { value, held };
            let inside = match along.covered() > u64::from(along.extent) {
                true => {
                    let end = s.int(along.extent.into())?;
                    Some(s.bin(BinOp::Lt, value, end)?)
                }
                false => None,
            };
            s.when(inside, |s| body(s, &c))
        })
    }

    /// Running values at the identity.
    pub fn accumulators(&mut self, comb: Combiner, fold: &[Elem]) -> Result<Parts> {
        let start = self.identity(comb, fold)?;
        start.into_iter().map(|v| self.var("part", v)).collect()
    }

    /// `acc = comb(acc, value)` where the position is valid.
    pub fn fold_in(
        &mut self,
        comb: Combiner,
        fold: &[Elem],
        acc: &Parts,
        v: &[ExprId],
        bound: Bound,
        c: &Coord,
    ) -> Result<()> {
        let ok = self.inside(bound, c.value)?;
        let mut wide = Vec::new();
        for (&v, &e) in v.iter().zip(fold) {
            wide.push(self.converted(v, e)?);
        }
        self.when(ok, |s| s.join_parts(comb, acc, &wide))
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

    /// A fold of all elements into scalars, in the types of the fold.
    pub fn reduce_all(
        &mut self,
        comb: Combiner,
        inputs: &[ExprId],
        axes: &[AxisLayout],
        bounds: &[Bound],
        elems: &[Elem],
    ) -> Result<Vec<ExprId>> {
        let fold = self.fold_elems(comb, elems);
        if self.commutes(comb) {
            let acc = self.accumulators(comb, &fold)?;
            self.nest(axes, Inner::Unroll, &mut |s, at| {
                let ok = s.valid(bounds, at)?;
                s.when(ok, |s| {
                    let v = s.eval_all(inputs, at)?;
                    s.fold_in(comb, &fold, &acc, &v, Bound::default(), &at[0])
                })
            })?;
            let over = self.over(axes.iter().flat_map(AxisLayout::threads));
            return self.across(comb, &acc, &over);
        }
        self.in_order(comb, inputs, axes, bounds, elems, &[])
    }

    /// Row-major order over several axes: each line joined before the next.
    fn in_order(
        &mut self,
        comb: Combiner,
        inputs: &[ExprId],
        axes: &[AxisLayout],
        bounds: &[Bound],
        elems: &[Elem],
        before: &[Coord],
    ) -> Result<Vec<ExprId>> {
        let (axis, last) = (before.len(), before.len() + 1 == axes.len());
        self.fold_line(comb, elems, &axes[axis], bounds[axis], &mut |s, c| {
            let mut here = before.to_vec();
            here.push(c.clone());
            if last {
                s.eval_all(inputs, &here)
            } else {
                s.in_order(comb, inputs, axes, bounds, elems, &here)
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
