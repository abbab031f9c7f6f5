//! Reducers: `r op= x` gathers, the first read joins.
//!
//! **Order.** Where the whole block acts, and in `parallel`, values fold into one accumulator in ascending order of
//! iteration. At thread level each thread folds its own values in the order of its execution into its own
//! accumulator, and the join folds these in ascending thread order onto the block's, all in the accumulate type.

use super::agent::LaneKind;
use super::combine::Folder;
use super::cx::Cx;
use super::eval::scalar;
use super::eval_tile::{Operand, operand};
use super::fault::{Exec, fault, malformed};
use super::tile::{Bounds, Tile};
use super::value::{Lanes, Value};
use crate::codes;
use crate::program::*;
use crate::span::Span;
use std::borrow::Cow;
use std::rc::Rc;

#[derive(Clone, Debug)]
pub(super) struct ReducerState {
    comb: Combiner,
    parts: Vec<Type>,
    identity: Vec<u64>,
    /// Per part one accumulator for each element; the block's own.
    block: Vec<Vec<u64>>,
    /// The same for each thread that has folded something.
    threads: Vec<Option<Vec<Vec<u64>>>>,
    /// Updates of a `parallel` that runs as lanes, to be folded when it ends.
    log: Vec<Update>,
    joined: Option<(Vec<Value>, Span)>,
}

#[derive(Clone, Debug)]
struct Update {
    lane: u32,
    at: usize,
    values: Vec<u64>,
}

impl ReducerState {
    pub fn new(program: &Program, kernel: &Kernel, id: ReducerId) -> Exec<ReducerState> {
        let Some(r) = kernel.reducers.get(id) else { return Err(malformed("an unknown reducer")) };
        let parts = r.parts.to_vec();
        let elems = parts.iter().filter_map(Type::elem).collect();
        let identity = Folder::new(program, r.comb, elems).identity()?;
        let count = parts.first().map_or(0, Type::count);
        let block = identity.iter().map(|&id| vec![id; count]).collect();
        let (threads, log) = (Vec::new(), Vec::new());
        Ok(ReducerState { comb: r.comb, parts, identity, block, threads, log, joined: None })
    }

    fn elems(&self) -> Vec<Elem> {
        self.parts.iter().filter_map(Type::elem).collect()
    }

    fn shape(&self) -> &[u32] {
        self.parts.first().map_or(&[], |p| p.shape())
    }

    fn fresh(&self) -> Vec<Vec<u64>> {
        let count = self.parts.first().map_or(0, Type::count);
        self.identity.iter().map(|&id| vec![id; count]).collect()
    }
}

impl<'p> Cx<'_, 'p> {
    fn take_reducer(&mut self, id: ReducerId) -> Exec<ReducerState> {
        let slot = self.agent.reducers.get_mut(id.index()).and_then(Option::take);
        slot.ok_or_else(|| malformed("a reducer used before its declaration"))
    }

    pub fn fold(&mut self, id: ReducerId, index: &[ExprId], values: &[ExprId]) -> Exec<()> {
        let mut state = self.take_reducer(id)?;
        let result = self.fold_into(id, &mut state, index, values);
        self.agent.reducers[id.index()] = Some(state);
        result
    }

    fn fold_into(
        &mut self,
        id: ReducerId,
        state: &mut ReducerState,
        index: &[ExprId],
        values: &[ExprId],
    ) -> Exec<()> {
        let name = &self.run.kernel.reducers[id].name;
        if let Some((_, read)) = &state.joined {
            let message = format!("`{name}` is updated after it was read");
            return Err(fault(codes::REDUCER_JOINED, message)
                .named(name)
                .also(*read, "first read here")
                .help("read it once, after all updates; declare a second reducer for later ones"));
        }
        let folder = Folder::new(self.run.program, state.comb, state.elems());
        let any_tile = values.iter().any(|&e| self.run.kernel.body.type_of(e).is_tile());
        if any_tile || (index.is_empty() && !state.shape().is_empty()) {
            self.need_collective("an update of a reducer with a tile")?;
            return self.fold_tiles(state, &folder, values);
        }
        let index = self.subscripts(index)?;
        let mut lanes = Vec::with_capacity(values.len());
        for &e in values {
            lanes.push(scalar(self, e)?);
        }
        let shape = state.shape().to_vec();
        for lane in Cx::mask(self).iter() {
            let at = element(name, &shape, &index, lane)?;
            let values: Vec<u64> = lanes.iter().map(|v| v.get(lane)).collect();
            self.fold_one(state, &folder, Update { lane, at, values })?;
        }
        Ok(())
    }

    /// One update by one lane.
    fn fold_one(&mut self, state: &mut ReducerState, folder: &Folder, update: Update) -> Exec<()> {
        let top = self.agent.top();
        let width = top.width as usize;
        match top.kind {
            _ if width == 1 => self.apply(&mut state.block, folder, &update),
            LaneKind::Iterations(_) => {
                state.log.push(update);
                Ok(())
            }
            LaneKind::Threads | LaneKind::Team => {
                state.threads.resize(width, None);
                let fresh = state.threads[update.lane as usize].take().unwrap_or_else(|| state.fresh());
                let mut acc = fresh;
                let result = self.apply(&mut acc, folder, &update);
                state.threads[update.lane as usize] = Some(acc);
                result
            }
        }
    }

    fn apply(&mut self, acc: &mut [Vec<u64>], folder: &Folder, update: &Update) -> Exec<()> {
        let mut one = Vec::with_capacity(acc.len());
        for (part, &v) in update.values.iter().enumerate() {
            one.push(folder.widen(part, Cow::Owned(vec![v]))?);
        }
        let mut state: Vec<u64> = acc.iter().map(|a| a[update.at]).collect();
        folder.run(&mut self.run.session, &mut state, &one).map_err(|f| f.fault.on(update.lane))?;
        for (a, s) in acc.iter_mut().zip(state) {
            a[update.at] = s;
        }
        Ok(())
    }

    fn fold_tiles(&mut self, state: &mut ReducerState, folder: &Folder, values: &[ExprId]) -> Exec<()> {
        let mut operands = Vec::with_capacity(values.len());
        for &e in values {
            operands.push(operand(self, e)?);
        }
        let own: Shape = state.shape().iter().copied().collect();
        let shape = if own.is_empty() { joined_shape(&operands) } else { own.clone() };
        let mut valid = Bounds::full(&shape);
        for o in &operands {
            valid = valid.intersect(&o.valid(&shape));
        }
        let mut dense = Vec::with_capacity(operands.len());
        for (part, o) in operands.iter().enumerate() {
            let mut run = folder.widen(part, o.over(&shape, &valid))?;
            if run.len() == 1 && valid.count() != 1 {
                run = Cow::Owned(vec![run[0]; valid.count()]);
            }
            dense.push(run);
        }
        if own.is_empty() {
            let mut acc: Vec<u64> = state.block.iter().map(|a| a[0]).collect();
            folder
                .run(&mut self.run.session, &mut acc, &dense)
                .map_err(|f| super::eval_tile::in_tile(f, &valid))?;
            for (a, v) in state.block.iter_mut().zip(acc) {
                a[0] = v;
            }
            return Ok(());
        }
        let full = Bounds::full(&shape);
        let mut part: Vec<Vec<u64>> = (state.block.iter())
            .map(|a| Tile::full(Elem::Index, shape.clone(), a.clone()).over(&shape, &valid).into_owned())
            .collect();
        folder
            .step(&mut self.run.session, &mut part, &dense)
            .map_err(|f| super::eval_tile::in_tile(f, &valid))?;
        for (a, p) in state.block.iter_mut().zip(&part) {
            super::stmt::paste(a, &full, &valid, p);
        }
        Ok(())
    }

    /// The end of a `parallel` that ran as lanes: its updates fold in the order of iterations.
    pub fn flush_reducers(&mut self) -> Exec<()> {
        for i in 0..self.agent.reducers.len() {
            let Some(mut state) = self.agent.reducers[i].take() else { continue };
            let mut log = std::mem::take(&mut state.log);
            log.sort_by_key(|u| u.lane);
            let folder = Folder::new(self.run.program, state.comb, state.elems());
            for update in &log {
                self.apply(&mut state.block, &folder, update)?;
            }
            self.agent.reducers[i] = Some(state);
        }
        Ok(())
    }

    /// The parts of a reducer, joined over threads at the first read.
    pub fn join_reducer(&mut self, id: ReducerId) -> Exec<Vec<Value>> {
        self.need_collective("a read of a reducer")?;
        let mut state = self.take_reducer(id)?;
        let result = self.joined(&mut state);
        self.agent.reducers[id.index()] = Some(state);
        result
    }

    fn joined(&mut self, state: &mut ReducerState) -> Exec<Vec<Value>> {
        if let Some((values, _)) = &state.joined {
            return Ok(values.clone());
        }
        let folder = Folder::new(self.run.program, state.comb, state.elems());
        let mut acc = std::mem::take(&mut state.block);
        for thread in state.threads.drain(..).flatten() {
            let values: Vec<Cow<[u64]>> = thread.into_iter().map(Cow::Owned).collect();
            folder.step(&mut self.run.session, &mut acc, &values).map_err(|f| f.fault)?;
        }
        let mut values = Vec::with_capacity(acc.len());
        for (part, bits) in acc.into_iter().enumerate() {
            let bits = folder.narrow(part, bits)?;
            values.push(match &state.parts[part] {
                Type::Tile { elem, shape } => Value::Tile(Rc::new(Tile::full(*elem, shape.clone(), bits))),
                _ => Value::Scalar(Lanes::One(bits[0])),
            });
        }
        state.joined = Some((values.clone(), self.agent.span));
        Ok(values)
    }
}

/// The element of a reducer that a lane's subscripts name.
fn element(name: &str, shape: &[u32], index: &[Lanes], lane: u32) -> Exec<usize> {
    let mut at = 0;
    for (&n, i) in shape.iter().zip(index) {
        let i = i.get(lane) as i64;
        if i < 0 || i >= i64::from(n) {
            let index: Vec<i64> = index.iter().map(|i| i.get(lane) as i64).collect();
            let text = super::fault::element_text(name, &index);
            let message = format!("{text} is updated, but `{name}` has the extents {shape:?}");
            return Err(fault(codes::OUT_OF_BOUNDS, message).of(name, index).on(lane));
        }
        at = at * n as usize + i as usize;
    }
    Ok(at)
}

/// Extents of tiles that are folded together; scalars join any.
fn joined_shape(operands: &[Operand]) -> Shape {
    let mut shape = Shape::new();
    for o in operands {
        if let Operand::Tile(t) = o {
            if shape.is_empty() {
                shape = t.shape.clone();
            } else {
                for (s, &n) in shape.iter_mut().zip(&t.shape) {
                    *s = (*s).max(n);
                }
            }
        }
    }
    shape
}
