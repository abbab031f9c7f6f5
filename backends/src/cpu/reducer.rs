//! Reducers: running values in scratch, updated from anywhere, joined at their first read.
//!
//! The block has one state. In a kernel that names threads each thread also has its own, so that the result is that of
//! every thread folding what it sees and the threads joining in ascending order.

use super::bounds::Bound;
use super::emit::Ptr;
use super::error::Result;
use super::expr::Ix;
use super::frame::{Frame, TileMem};
use super::value::{Val, scratch_bytes};
use pantile_ir::program::{Combiner, Elem, ExprId, LocalId, ReducerId, Type, fold_elem};

/// Where a reducer's parts are; scalars are tiles of one element.
#[derive(Clone, Debug)]
pub struct ReducerMem<'c> {
    block: Vec<TileMem<'c>>,
    /// The first thread's parts, and the bytes from one thread's to the next.
    threads: Vec<(TileMem<'c>, u64)>,
}

impl<'a, 'c> Frame<'a, 'c> {
    fn reducer_comb(&self, id: ReducerId) -> Combiner {
        self.kernel.reducers[id].comb
    }

    fn reducer_rank(&self, id: ReducerId) -> usize {
        self.kernel.reducers[id].parts.first().map_or(0, |t| t.shape().len())
    }

    pub fn start_reducer(&self, id: ReducerId) -> Result<()> {
        let comb = self.reducer_comb(id);
        let mut mem = ReducerMem { block: Vec::new(), threads: Vec::new() };
        for (part, ty) in self.kernel.reducers[id].parts.iter().enumerate() {
            let held = fold_elem(comb, ty.elem().unwrap_or(Elem::Index));
            let shape: &[u32] = if ty.shape().is_empty() { &[1] } else { ty.shape() };
            let own = self.new_tile(held, shape);
            self.fill_identity(comb, part, &own)?;
            if self.crew.get().threaded {
                let extent = own.shape[0] as i64 * own.strides[0];
                let bytes = (extent as u64 * scratch_bytes(held) as u64).next_multiple_of(64);
                let base = self.reserve(bytes * self.thread_count() as u64);
                let first = TileMem { base, ..own.clone() };
                self.each_index(&mut |t| self.fill_identity(comb, part, &self.of_thread(&first, bytes, t)))?;
                mem.threads.push((first, bytes));
            }
            mem.block.push(own);
        }
        self.reducers.borrow_mut().insert(id, mem);
        Ok(())
    }

    fn fill_identity(&self, comb: Combiner, part: usize, mem: &TileMem<'c>) -> Result<()> {
        let start = self.identity(comb, part, mem.elem);
        self.each_vector(&mem.shape, &self.full(&mem.shape), &mut |step| {
            self.e.store_val(self.tile_address(mem, step.pos), self.e.widen(start, step.lanes));
            Ok(())
        })
    }

    /// Runs `f` with the number of each thread of the block or role.
    fn each_index(&self, f: &mut dyn FnMut(super::emit::Int<'c>) -> Result<()>) -> Result<()> {
        let mut result = Ok(());
        self.every_thread(|t| result = f(t));
        result
    }

    fn of_thread(&self, first: &TileMem<'c>, bytes: u64, t: super::emit::Int<'c>) -> TileMem<'c> {
        let base = self.e.offset(first.base, self.e.mul(t, self.e.int(bytes as i64)));
        TileMem { base, ..first.clone() }
    }

    /// The state that an update at this place of the code goes to.
    fn state(&self, id: ReducerId) -> Vec<TileMem<'c>> {
        let all = self.reducers.borrow();
        let Some(mem) = all.get(&id) else { return Vec::new() };
        match self.thread.get() {
            Some(t) => {
                mem.threads.iter().map(|(first, bytes)| self.of_thread(first, *bytes, t.linear)).collect()
            }
            None => mem.block.clone(),
        }
    }

    pub fn fold_reducer(&self, id: ReducerId, index: &[ExprId], values: &[ExprId]) -> Result<()> {
        let comb = self.reducer_comb(id);
        let mems = self.state(id);
        let rank = self.reducer_rank(id);
        let shape = &mems[0].shape;
        let mut at = self.tile_index(&self.kernel.reducers[id].name, index, shape)?;
        if at.is_empty() && rank == 0 {
            at.push(Ix::at(self.e.int(0)));
        }
        // a tile reducer without an index takes a value for each of its elements
        let everywhere = index.is_empty() && rank > 0;
        if !everywhere && !values.iter().any(|&v| self.kernel.body.type_of(v).is_tile()) {
            let new = values.iter().map(|&v| self.scalar(v)).collect::<Result<Vec<_>>>()?;
            return self.fold_at(comb, &mems, &at, &new);
        }
        let shape = if everywhere { mems[0].shape.to_vec() } else { self.joint_shape(values) };
        let bounds = self.joint_box(values, &shape)?;
        if !everywhere && self.contract {
            let elem = |&v: &ExprId| self.kernel.body.type_of(v).elem().unwrap_or(Elem::Index);
            let elems: Vec<Elem> = values.iter().map(elem).collect();
            let all = self.fold_in_blocks(comb, &elems, &bounds, &mut |step| {
                self.stretched_values(values, step.pos, &shape)
            })?;
            return self.fold_at(comb, &mems, &at, &all);
        }
        self.each_element(&bounds, &mut |step| {
            let new = self.stretched_values(values, step.pos, &shape)?;
            self.fold_at(comb, &mems, if everywhere { step.pos } else { &at }, &new)
        })
    }

    /// One element of each value, whose unit axes stretch to `shape`.
    fn stretched_values(&self, values: &[ExprId], pos: &[Ix<'c>], shape: &[u32]) -> Result<Vec<Val<'c>>> {
        let one =
            |&v: &ExprId| self.eval(v, &self.stretch_pos(pos, self.kernel.body.type_of(v).shape(), shape), 1);
        values.iter().map(one).collect()
    }

    pub fn joint_shape(&self, values: &[ExprId]) -> Vec<u32> {
        let mut joined: Vec<u32> = Vec::new();
        for &v in values {
            let own = self.kernel.body.type_of(v).shape();
            joined.resize(joined.len().max(own.len()), 1);
            joined.iter_mut().zip(own).for_each(|(n, &m)| *n = (*n).max(m));
        }
        joined
    }

    fn fold_at(&self, comb: Combiner, mems: &[TileMem<'c>], at: &[Ix<'c>], new: &[Val<'c>]) -> Result<()> {
        let places: Vec<Ptr> = mems.iter().map(|m| self.tile_address(m, at)).collect();
        let old: Vec<Val> = places.iter().zip(mems).map(|(&p, m)| self.e.load_val(p, m.elem, 1)).collect();
        let new: Vec<Val> = new.iter().zip(mems).map(|(v, m)| self.e.convert(*v, m.elem, false)).collect();
        for (&p, v) in places.iter().zip(self.combine(comb, &old, &new)?) {
            self.e.store_val(p, v);
        }
        Ok(())
    }

    /// The common box of the values, each stretched to `shape`.
    pub fn joint_box(&self, values: &[ExprId], shape: &[u32]) -> Result<Vec<Bound<'c>>> {
        let mut all = self.full(shape);
        for &v in values {
            let ty = self.kernel.body.type_of(v);
            if ty.is_tile() {
                let own = self.stretch(&self.box_of(v)?, ty.shape(), shape);
                all = self.intersect(&all, &own);
            }
        }
        Ok(all)
    }

    pub fn join_reducer(&self, id: ReducerId, results: &[LocalId]) -> Result<()> {
        let Some(mem) = self.reducers.borrow().get(&id).cloned() else { return Ok(()) };
        let comb = self.reducer_comb(id);
        if !mem.threads.is_empty() {
            let shape = mem.block[0].shape.clone();
            self.each_index(&mut |t| {
                self.each_element(&self.full(&shape), &mut |step| {
                    let of = |(first, bytes): &(TileMem<'c>, u64)| {
                        self.load_tile(&self.of_thread(first, *bytes, t), step.pos, 1)
                    };
                    let theirs: Vec<Val> = mem.threads.iter().map(of).collect();
                    self.fold_at(comb, &mem.block, step.pos, &theirs)
                })
            })?;
        }
        for (part, &r) in mem.block.iter().zip(results) {
            self.give_part(part, r)?;
        }
        Ok(())
    }

    fn give_part(&self, part: &TileMem<'c>, result: LocalId) -> Result<()> {
        let ty = &self.kernel.body.locals[result].ty;
        let elem = ty.elem().unwrap_or(part.elem);
        match (ty, self.tile_place(result)) {
            (Type::Tile { .. }, Some((out, bounds))) => {
                let full = self.full(&out.shape);
                self.each_vector(&out.shape, &full, &mut |step| {
                    let v = self.e.convert(self.load_tile(part, step.pos, step.lanes), elem, false);
                    self.e.store_val(self.tile_address(&out, step.pos), v);
                    Ok(())
                })?;
                self.store_box(&bounds, &full);
                Ok(())
            }
            _ => {
                let v = self.e.load_val(part.base, part.elem, 1);
                self.spread(result, self.e.convert(v, elem, false))
            }
        }
    }
}
