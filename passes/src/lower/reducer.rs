//! Reducers: each thread folds what it meets into accumulators of its own; the first read joins the threads.

use super::Lower;
use super::bounds::Bound;
use super::nest::{Coord, Inner};
use super::store::Storage;
use crate::layout::digits::AxisLayout;
use pantile_ir::builder::Result;
use pantile_ir::program::*;

#[derive(Clone)]
pub struct State {
    comb: Combiner,
    elems: Vec<Elem>,
    fold: Vec<Elem>,
    axes: Vec<AxisLayout>,
    acc: Vec<Storage>,
}

impl Lower<'_, '_> {
    pub fn declare_reducer(&mut self, id: ReducerId) -> Result<()> {
        let r = self.k.kernel().reducers[id].clone();
        let elems: Vec<Elem> = r.parts.iter().map(|p| p.elem().unwrap_or(Elem::Index)).collect();
        let fold = self.fold_elems(r.comb, &elems);
        let axes = self.assign.reducers.get(&id).cloned().unwrap_or_default();
        let start = self.identity(r.comb, &fold)?;
        let mut acc = Vec::new();
        for (i, &e) in fold.iter().enumerate() {
            let name = if fold.len() == 1 { r.name.clone() } else { format!("{}{i}", r.name) };
            acc.push(self.new_storage(&name, e, axes.clone(), false)?);
        }
        // threads beyond the tile join with the identity
        self.nest_open(&axes, Inner::Unroll, &mut |s, at, _| {
            acc.iter().zip(&start).try_for_each(|(a, &v)| s.put(a, at, v))
        })?;
        self.reducers.insert(id, State { comb: r.comb, elems, fold, axes, acc });
        Ok(())
    }

    pub fn fold_reducer(&mut self, id: ReducerId, index: &[ExprId], values: &[ExprId]) -> Result<()> {
        let Some(state) = self.reducers.get(&id).cloned() else {
            return self.refuse("this reducer is updated before its declaration", "declare it first");
        };
        let shape = self.joint_shape(values);
        if !shape.is_empty() {
            return self.fold_tiles(&state, values, &shape);
        }
        let at = self.reducer_place(&state, index)?;
        if self.parallel && !self.commutes(state.comb) {
            return self.refuse(
                "this combiner keeps its order, and `parallel` has none",
                "mark the combiner `commutative` if it is, or fold tiles",
            );
        }
        let one = self.once()?;
        self.when(one, |s| {
            let mut v = Vec::new();
            for &e in values {
                v.push(s.scalar(e)?);
            }
            s.fold_at(&state, &at, &v)
        })
    }

    /// Where an update with an index goes: to an element that the thread holds.
    fn reducer_place(&mut self, state: &State, index: &[ExprId]) -> Result<Vec<Coord>> {
        let mut at = Vec::new();
        for (&i, axis) in index.iter().zip(&state.axes) {
            let running = match self.k.kernel().body.exprs[i] {
                Expr::Local(l) => self.running.get(&l).cloned(),
                _ => None,
            };
            match running {
                Some(c) if c.held.as_ref().is_some_and(|(held, _)| held == axis) => at.push(c),
                _ => {
                    return self.refuse(
                        "this updates an element of a reducer that another thread may hold",
                        "index it by an index of the `parallel` around it, or use an atomic on `shared` memory",
                    );
                }
            }
        }
        Ok(at)
    }

    /// `acc[at] = comb(acc[at], v)`
    fn fold_at(&mut self, state: &State, at: &[Coord], v: &[ExprId]) -> Result<()> {
        let mut wide = Vec::new();
        for (&v, &e) in v.iter().zip(&state.fold) {
            wide.push(self.converted(v, e)?);
        }
        let mut old = Vec::new();
        for (a, &e) in state.acc.iter().zip(&state.fold) {
            old.push(self.load(a, e, at)?);
        }
        let new = self.combine(state.comb, &old, &wide)?;
        let mut named = Vec::new();
        for v in new {
            named.push(if state.acc.len() > 1 { self.bind("part", v)? } else { v });
        }
        state.acc.iter().zip(named).try_for_each(|(a, v)| self.put(a, at, v))
    }

    fn fold_tiles(&mut self, state: &State, values: &[ExprId], shape: &Shape) -> Result<()> {
        let axes = self.own_axes(0, shape);
        let bounds = self.joint_box(values, shape)?;
        let bounds = self.named_box("n", bounds)?;
        let whole = state.axes.is_empty();
        if whole && !self.commutes(state.comb) {
            let elems = state.elems.clone();
            let v = self.reduce_all(state.comb, values, &axes, &bounds, &elems, false)?;
            let first = self.first()?;
            return self.when(first, |s| s.fold_at(state, &[], &v));
        }
        let one = self.canonical(&axes)?;
        self.when(one, |s| {
            s.nest(&axes, Inner::Unroll, &mut |s, at| {
                let ok = s.valid(&bounds, at)?;
                s.when(ok, |s| {
                    let v = s.eval_all(values, at)?;
                    s.fold_at(state, if whole { &[] } else { at }, &v)
                })
            })
        })
    }

    /// The first read: over all threads that do not tell elements apart.
    pub fn join_reducer(&mut self, results: &[LocalId], id: ReducerId) -> Result<()> {
        let Some(state) = self.reducers.get(&id).cloned() else {
            return self.refuse("this reducer is read before its declaration", "declare it first");
        };
        let used: Vec<(u32, u32)> = state.axes.iter().flat_map(AxisLayout::threads).collect();
        let free = crate::layout::digits::unused(&used, self.lanes.count);
        let over = self.over(free.into_iter().rev());
        let mut stores = Vec::new();
        for &r in results {
            let tile = self.k.kernel().body.locals[r].ty.is_tile();
            stores.push(if tile { Some(self.storage(r)?) } else { None });
        }
        let axes = state.axes.clone();
        if axes.is_empty() {
            let values = self.joined(&state, &[], &over)?;
            for ((&r, v), &elem) in results.iter().zip(values).zip(&state.elems) {
                let value = self.converted(v, elem)?;
                self.emit(StmtKind::Let { local: r, value })?;
            }
            return Ok(());
        }
        self.nest_open(&axes, Inner::Unroll, &mut |s, at, inside| {
            let values = s.joined(&state, at, &over)?;
            s.when(inside, |s| {
                for ((store, v), &elem) in stores.iter().zip(values).zip(&state.elems) {
                    let value = s.converted(v, elem)?;
                    if let Some(store) = store {
                        s.put(store, at, value)?;
                    }
                }
                Ok(())
            })
        })?;
        for &r in results {
            self.set_box(r, vec![Bound::default(); axes.len()])?;
        }
        Ok(())
    }

    fn joined(&mut self, state: &State, at: &[Coord], over: &[LocalId]) -> Result<Vec<ExprId>> {
        let mut own = Args::new();
        for (a, &e) in state.acc.iter().zip(&state.fold) {
            own.push(self.load(a, e, at)?);
        }
        if over.is_empty() {
            return Ok(own.to_vec());
        }
        let names: Vec<&str> = own.iter().map(|_| "total").collect();
        let over = Over::Axes(over.iter().copied().collect());
        let results = self.k.op(Op::AllReduce { comb: state.comb, inputs: own, over }, &names, self.span)?;
        results.into_iter().map(|l| self.get(l)).collect()
    }
}
