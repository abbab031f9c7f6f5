//! Atomics: one element for each thread in some order, or a region element-wise.

use super::arith::num_fault;
use super::cx::{Cx, Use};
use super::eval::scalar;
use super::fault::{Exec, malformed};
use super::memory::MemId;
use super::value::{Lanes, Value};
use crate::num::{self, Bin};
use crate::program::*;

impl<'p> Cx<'_, 'p> {
    /// The value before, for each active lane; lanes act in the run's seeded order.
    pub fn atomic_element(
        &mut self,
        op: AtomicOp,
        mem: Mem,
        index: &[ExprId],
        value: ExprId,
        expected: Option<ExprId>,
    ) -> Exec<Value> {
        let index = self.subscripts(index)?;
        let expected = expected.map_or(Ok(None), |e| scalar(self, e).map(Some))?;
        let value = scalar(self, value)?;
        let at = self.memory(mem, Use::Write)?;
        let width = self.agent.top().width;
        let mut before = vec![0; width as usize];
        let lanes = self.mask().iter().collect();
        for lane in self.run.any_order(lanes) {
            let addr = self.address(at, &index, lane, true)?;
            let thread = self.thread_of(lane);
            let expected = expected.as_ref().map(|e| e.get(lane));
            let old = self.exchange(op, at.0, addr, thread, value.get(lane), expected);
            before[lane as usize] = old.map_err(|f| f.on(lane))?;
        }
        Ok(Value::Scalar(if width == 1 { Lanes::One(before[0]) } else { Lanes::many(before) }))
    }

    pub fn atomic_region(&mut self, op: AtomicOp, to: &Region, value: ExprId) -> Exec<()> {
        self.need_collective("an atomic on a region")?;
        let (r, valid, value) = self.outgoing(to, value)?;
        let data = value.over(&r.shape, &valid);
        let thread = self.agent.team_thread();
        for (i, addr) in r.addresses(&valid).into_iter().enumerate() {
            let bits = if data.len() == 1 { data[0] } else { data[i] };
            self.exchange(op, r.mem, addr, thread, bits, None)?;
        }
        Ok(())
    }

    fn exchange(
        &mut self,
        op: AtomicOp,
        id: MemId,
        addr: usize,
        thread: u32,
        value: u64,
        expected: Option<u64>,
    ) -> Exec<u64> {
        self.touch();
        let access = self.agent.access(self.run.block_epoch);
        let m = &mut self.run.mems[id];
        let old = m.atomic(addr, thread, &access, self.run.spans.all())?;
        let apply = |op| num::binary(op, m.elem, old, value).map_err(num_fault);
        let new = match op {
            AtomicOp::Add => apply(Bin::Add)?,
            AtomicOp::Min => apply(Bin::Min)?,
            AtomicOp::Max => apply(Bin::Max)?,
            AtomicOp::And => apply(Bin::And)?,
            AtomicOp::Or => apply(Bin::Or)?,
            AtomicOp::Xor => apply(Bin::Xor)?,
            AtomicOp::Exchange => value,
            AtomicOp::CompareExchange => match expected {
                Some(e) if e == old => value,
                Some(_) => old,
                None => return Err(malformed("a compare-and-swap without the expected value")),
            },
        };
        m.bits[addr] = new;
        Ok(old)
    }
}
