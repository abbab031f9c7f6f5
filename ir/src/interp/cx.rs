//! One agent at work in its run: how names and memories are reached.

use super::agent::{Agent, BufferSlot, Slot};
use super::eval::{Memo, Scope, scalar, under};
use super::fault::{Exec, Fault, element_text, fault, malformed};
use super::memory::{Home, MemId};
use super::run::{Bound, Run};
use super::value::{Lanes, Mask, Value};
use crate::codes;
use crate::program::*;
use std::rc::Rc;

pub(super) struct Cx<'a, 'p> {
    pub run: &'a mut Run<'p>,
    pub agent: &'a mut Agent<'p>,
}

/// What is about to happen to a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
}

impl<'p> Cx<'_, 'p> {
    pub fn mask(&self) -> Mask {
        self.agent.top().mask.clone()
    }

    pub fn name(&self, local: LocalId) -> &'p str {
        &self.run.kernel.body.locals[local].name
    }

    /// Tile statements and collectives: all threads of the team must come here together.
    pub fn need_collective(&self, what: &str) -> Exec<()> {
        if self.agent.is_collective() {
            return Ok(());
        }
        let message = format!("{what} acts for all threads together, but only some of them come here");
        Err(fault(codes::DIVERGENT, message)
            .help("move it out of the condition, or make the condition the same for all"))
    }

    /// Gives a name its first value.
    pub fn define(&mut self, local: LocalId, value: Value) {
        let depth = self.agent.depth();
        let (written, vec) = (self.agent.epoch, self.agent.vec);
        self.agent.slots[local.index()] = Slot { value: Some(value), depth, written, vec, ..Slot::default() };
    }

    /// The context of a name, if it may be assigned from here.
    fn assignable(&self, local: LocalId) -> Exec<()> {
        let depth = self.agent.slots[local.index()].depth;
        let name = self.name(local);
        if self.agent.ctx[(depth + 1).min(self.agent.ctx.len())..].iter().any(|c| c.parallel) {
            let message =
                format!("every iteration of a `parallel` assigns `{name}`, which was declared outside it");
            return Err(fault(codes::RACE_THREADS, message)
                .named(name)
                .help("collect into a reducer: `var r: reducer(add) f32`, then `r op= value`"));
        }
        self.not_in_flight(local)
    }

    pub fn not_in_flight(&self, local: LocalId) -> Exec<()> {
        if self.agent.slots[local.index()].in_flight == 0 {
            return Ok(());
        }
        let name = self.name(local);
        let message = format!("`{name}` is assigned while a product into it is in flight");
        Err(fault(codes::CHANGED_IN_FLIGHT, message).named(name).help("await the queue first"))
    }

    /// Replaces a name's value; in divergent flow only for the active lanes.
    pub fn assign(&mut self, local: LocalId, value: Value) -> Exec<()> {
        self.assignable(local)?;
        let here = self.agent.depth();
        let (written, vec) = (self.agent.epoch, self.agent.vec);
        let Agent { ctx, slots, .. } = &mut *self.agent;
        let (slot, top) = (&mut slots[local.index()], &ctx[here]);
        slot.written = written;
        slot.vec = vec;
        slot.contested = false;
        let lanes = match value {
            Value::Scalar(lanes) if top.divergent > 0 && top.width > 1 => lanes,
            other => {
                slot.value = Some(other);
                slot.set = None;
                slot.depth = here;
                return Ok(());
            }
        };
        let old = match slot.value.take() {
            Some(Value::Scalar(old)) => old,
            _ => {
                slot.set = Some(Rc::new(vec![false; top.width as usize]));
                Lanes::One(0)
            }
        };
        slot.value = Some(Value::Scalar(old.merged(&lanes, &top.mask, top.width)));
        if let Some(set) = &mut slot.set {
            let set = Rc::make_mut(set);
            for lane in top.mask.iter() {
                set[lane as usize] = true;
            }
        }
        Ok(())
    }

    /// Whether a name may be read now, by all active lanes.
    fn check_readable(&self, local: LocalId) -> Exec<()> {
        let slot = &self.agent.slots[local.index()];
        let name = self.name(local);
        if slot.in_flight > 0 {
            let message = format!("`{name}` is read while a product into it is in flight");
            return Err(fault(codes::READ_IN_FLIGHT, message).named(name).help("await the queue first"));
        }
        if slot.contested {
            let message = format!("`{name}` was assigned by several roles, so its value is not known");
            return Err(fault(codes::RACE_ROLES, message).named(name).help("pass the value through a ring"));
        }
        if let (Some((loop_, lane)), Some((here, now))) = (slot.vec, self.agent.vec)
            && loop_ == here
            && lane != now
        {
            let message =
                format!("`{name}` carries a value from one iteration of a `vectorized` loop to another");
            return Err(fault(codes::VECTOR_DEPENDENCE, message)
                .named(name)
                .help("write `unroll` or a plain `for` where iterations depend on one another"));
        }
        let unset = || {
            let message = format!("`{name}` is read before it has a value");
            fault(codes::UNINITIALISED, message).named(name).help("give it a value on every way to this read")
        };
        if slot.value.is_none() {
            return Err(unset());
        }
        let Some(set) = &slot.set else { return Ok(()) };
        let mask = &self.agent.ctx[slot.depth].mask;
        match mask.iter().find(|&l| !set[l as usize]) {
            Some(lane) => Err(unset().on(lane)),
            None => Ok(()),
        }
    }

    /// The memory behind a name, and the depth that its lanes count in.
    pub fn memory(&self, mem: Mem, access: Use) -> Exec<(MemId, usize)> {
        match mem {
            Mem::Tensor(a) => match self.run.args.get(a.index()) {
                Some(Bound::Memory(id)) => {
                    let name = &self.run.kernel.args[a].name;
                    if access == Use::Write && self.run.mems[*id].home == Home::Global(Mode::In) {
                        return Err(malformed(format!("`{name}` is an input and cannot be written"))
                            .help("declare it `out` or `inout`"));
                    }
                    Ok((*id, 0))
                }
                _ => Err(malformed("a scalar parameter used as memory")),
            },
            Mem::Buffer(b) => match self.agent.buffers.get(b.index()) {
                Some(Some(BufferSlot { mem, depth })) => Ok((*mem, *depth)),
                _ => {
                    let name = self.run.kernel.buffers.get(b).map_or("?", |b| &b.name);
                    Err(malformed(format!("`{name}` is used before its declaration")))
                }
            },
            Mem::Slot { token, field } => {
                let id = self.slot_memory(token, field, access)?;
                Ok((id, 0))
            }
        }
    }

    /// The copy of a memory that a lane uses.
    fn copy_of(&self, id: MemId, depth: usize, lane: u32) -> Exec<u32> {
        if self.run.mems[id].home != Home::Lane || depth == self.agent.depth() {
            return Ok(lane);
        }
        let outer = &self.agent.ctx[depth].mask;
        if outer.len() == 1 {
            return Ok(outer.lane(0));
        }
        let name = self.run.mems[id].name.clone();
        let message = format!("`{name}` is one array for each thread, but the whole block acts here");
        Err(fault(codes::NOT_UNIFORM, message).named(&name).help("use a `shared` array"))
    }

    /// Notes where accesses come from; call before [`Agent::access`].
    pub fn touch(&mut self) {
        if self.agent.span_id.is_none() {
            self.agent.span_id = Some(self.run.spans.number(self.agent.span));
        }
    }

    /// The thread number of a lane's accesses.
    pub fn thread_of(&self, lane: u32) -> u32 {
        self.agent.top().first_thread + lane
    }

    fn outside(&self, id: MemId, index: &[i64], writes: bool) -> Box<Fault> {
        let m = &self.run.mems[id];
        let extents: Vec<String> = m.dims.iter().map(|n| n.to_string()).collect();
        let verb = if writes { "written" } else { "read" };
        let f = fault(
            codes::OUT_OF_BOUNDS,
            format!(
                "{} is {verb}, but `{}` has the extents [{}]",
                element_text(&m.name, index),
                m.name,
                extents.join(", ")
            ),
        )
        .of(&m.name, index.to_vec());
        if writes {
            f.help("guard the store with an `if`")
        } else {
            f.help("state the pad, `A[i] or 0`, or guard the read")
        }
    }

    fn one_index(index: &[Lanes], lane: u32) -> Vec<i64> {
        index.iter().map(|i| i.get(lane) as i64).collect()
    }

    /// The address of one element for a lane, or the fault of an index outside.
    pub fn address(&self, at: (MemId, usize), index: &[Lanes], lane: u32, writes: bool) -> Exec<usize> {
        let copy = self.copy_of(at.0, at.1, lane)?;
        let addr = self.run.mems[at.0].addr(index, lane, copy);
        addr.ok_or_else(|| self.outside(at.0, &Self::one_index(index, lane), writes).on(lane))
    }

    pub fn read_at(&mut self, id: MemId, addr: usize, thread: u32) -> Exec<u64> {
        self.touch();
        let access = self.agent.access(self.run.block_epoch);
        self.run.mems[id].read(addr, thread, &access, self.run.spans.all())
    }

    pub fn write_at(&mut self, id: MemId, addr: usize, bits: u64, thread: u32) -> Exec<()> {
        self.touch();
        let access = self.agent.access(self.run.block_epoch);
        self.run.mems[id].write(addr, bits, thread, &access, self.run.spans.all())
    }

    pub fn store_one(&mut self, mem: Mem, index: &[i64], bits: u64) -> Exec<()> {
        let at = self.memory(mem, Use::Write)?;
        let copy = self.copy_of(at.0, at.1, 0)?;
        match self.run.mems[at.0].addr_of(index, copy) {
            Some(addr) => self.write_at(at.0, addr, bits, self.thread_of(0)),
            None => Err(self.outside(at.0, index, true)),
        }
    }

    /// Whether loads from a memory may differ between lanes even at one address.
    fn is_constant(&self, id: MemId) -> bool {
        self.agent.top().width == 1 || self.run.mems[id].home == Home::Global(Mode::In)
    }
}

impl<'p> Scope<'p> for Cx<'_, 'p> {
    fn program(&self) -> &'p Program {
        self.run.program
    }

    fn body(&self) -> &'p Body {
        &self.run.kernel.body
    }

    fn width(&self) -> u32 {
        self.agent.top().width
    }

    fn mask(&self) -> &Mask {
        &self.agent.top().mask
    }

    fn set_mask(&mut self, mask: Mask) -> Mask {
        std::mem::replace(&mut self.agent.top_mut().mask, mask)
    }

    fn memo(&mut self) -> &mut Memo {
        &mut self.agent.memo
    }

    fn local(&mut self, id: LocalId) -> Exec<Value> {
        self.check_readable(id)?;
        let slot = &self.agent.slots[id.index()];
        match &slot.value {
            Some(Value::Scalar(lanes)) => {
                let f = self.agent.seen_from(lanes.clone(), slot.depth);
                f.map(Value::Scalar).map_err(|f| f.named(self.name(id)))
            }
            Some(value) => Ok(value.clone()),
            None => Err(malformed("a name without a value")),
        }
    }

    fn dim(&self, id: DimId) -> Exec<i64> {
        self.run.dims.get(id.index()).copied().ok_or_else(|| malformed("a dim of another kernel"))
    }

    fn arg(&self, id: ArgId) -> Exec<u64> {
        match self.run.args.get(id.index()) {
            Some(Bound::Scalar(bits)) => Ok(*bits),
            _ => Err(malformed("a tensor used as a scalar")),
        }
    }

    fn element(&mut self, mem: Mem, index: &[Lanes], or: Option<ExprId>) -> Exec<Lanes> {
        let at = self.memory(mem, Use::Read)?;
        let mask = self.agent.top().mask.clone();
        let width = self.agent.top().width;
        let uniform = index.iter().all(|i| matches!(i, Lanes::One(_)));
        if uniform && self.run.mems[at.0].home != Home::Lane {
            let lane = mask.lane(0);
            let addr = self.run.mems[at.0].addr(index, lane, 0);
            let Some(addr) = addr else {
                return match or {
                    Some(e) => scalar(self, e),
                    None => Err(self.outside(at.0, &Self::one_index(index, lane), false).on(lane)),
                };
            };
            let thread = if mask.len() == 1 { self.thread_of(lane) } else { super::shadow::MANY };
            let bits = self.read_at(at.0, addr, thread).map_err(|f| f.on(lane))?;
            let constant = self.is_constant(at.0);
            return Ok(if constant { Lanes::One(bits) } else { Lanes::many(vec![bits; width as usize]) });
        }
        let mut out = vec![0; width as usize];
        let mut outside = Vec::new();
        for lane in mask.iter() {
            let copy = self.copy_of(at.0, at.1, lane)?;
            match self.run.mems[at.0].addr(index, lane, copy) {
                Some(addr) => {
                    let thread = self.thread_of(lane);
                    out[lane as usize] = self.read_at(at.0, addr, thread).map_err(|f| f.on(lane))?;
                }
                None if or.is_some() => outside.push(lane),
                None => return Err(self.outside(at.0, &Self::one_index(index, lane), false).on(lane)),
            }
        }
        let mut out = if width == 1 { Lanes::One(out[0]) } else { Lanes::many(out) };
        if let (Some(e), false) = (or, outside.is_empty()) {
            let mask = Mask::of(outside);
            let value = under(self, mask.clone(), |s| scalar(s, e))?;
            out = if width == 1 { value } else { out.merged(&value, &mask, width) };
        }
        Ok(out)
    }

    fn local_one(&mut self, id: LocalId) -> Exec<u64> {
        let slot = &self.agent.slots[id.index()];
        if let (Some(Value::Scalar(Lanes::One(bits))), true) = (&slot.value, slot.is_plain()) {
            return Ok(*bits);
        }
        match self.local(id)? {
            Value::Scalar(lanes) => Ok(lanes.get(0)),
            _ => Err(malformed("a tile where a scalar is needed")),
        }
    }

    fn element_one(&mut self, mem: Mem, index: &[i64], padded: bool) -> Exec<Option<u64>> {
        let at = self.memory(mem, Use::Read)?;
        let copy = self.copy_of(at.0, at.1, 0)?;
        match self.run.mems[at.0].addr_of(index, copy) {
            Some(addr) => self.read_at(at.0, addr, self.thread_of(0)).map(Some),
            None if padded => Ok(None),
            None => Err(self.outside(at.0, index, false)),
        }
    }
}
