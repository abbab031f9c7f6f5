//! Statements without control flow: names, buffers, single elements.

use super::agent::{BufferSlot, Slot};
use super::arith::Ew;
use super::cx::{Cx, Use};
use super::eval::{Scope, eval, map, scalar};
use super::eval_one::{one, subscripts};
use super::eval_tile::{self, Operand};
use super::fault::{Exec, malformed};
use super::memory::{Home as MemHome, Memory};
use super::reducer::ReducerState;
use super::tile::{Bounds, Tile};
use super::value::Value;
use crate::num::Bin;
use crate::program::*;
use std::rc::Rc;

impl<'p> Cx<'_, 'p> {
    pub fn simple(&mut self, stmt: &'p StmtKind) -> Exec<()> {
        match stmt {
            StmtKind::Let { local, value } => {
                let value = self.value(*value)?;
                self.not_in_flight(*local)?;
                self.define(*local, value);
                Ok(())
            }
            StmtKind::Declare { local } => {
                let depth = self.agent.depth();
                self.agent.slots[local.index()] = Slot { depth, ..Slot::default() };
                Ok(())
            }
            StmtKind::Assign { local, value } => {
                let value = self.value(*value)?;
                self.assign(*local, value)
            }
            StmtKind::Update { local, op, value } => self.update(*local, *op, *value),
            StmtKind::Store { mem, index, value } => self.store(*mem, index, *value),
            StmtKind::Buffer { buffer } => self.buffer(*buffer),
            StmtKind::Reducer { reducer } => {
                let state = ReducerState::new(self.run.program, self.run.kernel, *reducer)?;
                self.agent.reducers[reducer.index()] = Some(state);
                Ok(())
            }
            _ => Err(malformed("a statement that cannot stand here")),
        }
    }

    fn value(&mut self, e: ExprId) -> Exec<Value> {
        let value = eval(self, e)?;
        if matches!(value, Value::Tile(_)) {
            self.need_collective("a tile statement")?;
        }
        Ok(value)
    }

    fn update(&mut self, local: LocalId, op: Update, value: ExprId) -> Exec<()> {
        let op = Ew::Bin(Bin::from(op.binary()));
        let Some(elem) = self.run.kernel.body.locals[local].ty.elem() else {
            return Err(malformed("an update of a token"));
        };
        let elems = [elem, elem];
        match self.local(local)? {
            Value::Scalar(old) => {
                let new = scalar(self, value)?;
                let result = map(self, op, &elems, &[old, new])?;
                self.assign(local, Value::Scalar(result))
            }
            Value::Tile(old) => {
                self.need_collective("an update of a tile")?;
                let by = eval_tile::operand(self, value)?;
                let part = eval_tile::map(
                    self.run.program,
                    op,
                    elem,
                    &elems,
                    &old.shape,
                    &[Operand::Tile(old.clone()), by],
                )?;
                let tile = if part.valid == old.valid { part } else { patched(&old, &part) };
                self.assign(local, Value::Tile(Rc::new(tile)))
            }
            Value::Token(_) => Err(malformed("an update of a token")),
        }
    }

    fn store(&mut self, mem: Mem, index: &[ExprId], value: ExprId) -> Exec<()> {
        if self.agent.top().width == 1 {
            let index = subscripts(self, index)?;
            let value = one(self, value)?;
            return self.store_one(mem, &index, value);
        }
        let index = self.subscripts(index)?;
        let value = scalar(self, value)?;
        let at = self.memory(mem, Use::Write)?;
        for lane in Cx::mask(self).iter() {
            let addr = self.address(at, &index, lane, true)?;
            let thread = self.thread_of(lane);
            self.write_at(at.0, addr, value.get(lane), thread).map_err(|f| f.on(lane))?;
        }
        Ok(())
    }

    fn buffer(&mut self, id: BufferId) -> Exec<()> {
        let Some(buffer) = self.run.kernel.buffers.get(id) else {
            return Err(malformed("an unknown buffer"));
        };
        let lane = buffer.home == Home::Thread;
        if !lane {
            self.need_collective("a declaration of memory")?;
        }
        let (home, copies) = match lane {
            true => (MemHome::Lane, self.agent.top().width),
            false => (MemHome::Block, 1),
        };
        let dims = buffer.shape.iter().map(|&n| i64::from(n)).collect();
        let tracked = !lane || self.run.traits.vectorized;
        let mem = self.run.mems.len();
        let depth = self.agent.depth();
        let old = self.agent.buffers[id.index()].filter(|old| {
            self.run.mems[old.mem].home == home && old.depth == depth && !self.is_inherited(id)
        });
        let held = self.run.held() - old.map_or(0, |old| self.run.mems[old.mem].bits.len());
        let memory = Memory::fresh(&buffer.name, buffer.elem.into(), home, dims, copies, tracked, held)?;
        match old {
            Some(old) => self.run.mems[old.mem] = memory,
            None => {
                self.run.mems.push(memory);
                self.agent.buffers[id.index()] = Some(BufferSlot { mem, depth });
            }
        }
        Ok(())
    }

    /// Whether a role sees a buffer of the block around it, which it must not replace.
    fn is_inherited(&self, id: BufferId) -> bool {
        self.agent.inherited.get(id.index()).copied().unwrap_or(false)
    }
}

/// `old` with the elements of `part`, whose box lies inside.
pub(super) fn patched(old: &Tile, part: &Tile) -> Tile {
    let mut tile = old.clone();
    paste(&mut tile.data, &old.valid, &part.valid, &part.data);
    tile
}

/// Writes the elements of the box `part` into row-major data over the box `whole`.
pub(super) fn paste(data: &mut [u64], whole: &Bounds, part: &Bounds, values: &[u64]) {
    let strides = whole.strides();
    let base =
        (0..whole.rank()).map(|d| (part.lo[d].saturating_sub(whole.lo[d])) as usize * strides[d]).sum();
    let mut next = values.iter();
    super::tile::walk(base, &part.extents(), &strides, |i| {
        if let Some(&v) = next.next() {
            data[i] = v;
        }
    });
}
