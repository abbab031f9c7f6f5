//! The second half of wide folds: parts meet in shared memory. One element a part and group is written, read after
//! one ordering point; consecutive folds alternate two rows, so that the next one may write while slow threads read.

use super::fold::Folder;
use super::lanes::{self, Place, Running};
use super::shape::{Bits, Group, Run, Widths, number};
use crate::make::Make;
use pantile_abi::DType;
use pantile_ir::builder::Result;
use pantile_ir::program::*;
use pantile_ir::span::Span;

/// Parts that every thread reads one after the other instead of sharing the work.
const FEW: u64 = 4;

/// Staging memory of a kernel, made as folds ask for it.
#[derive(Default)]
pub struct Staging {
    rows: Vec<Row>,
}

struct Row {
    elem: DType,
    /// number among the parts of this type
    nth: usize,
    buffer: BufferId,
    len: u64,
}

/// The memory of one fold: a buffer for each part, and the row in them.
pub struct Slot {
    buffers: Vec<BufferId>,
    row: ExprId,
}

/// The type in which a value waits in memory.
fn stored(elem: Elem) -> DType {
    match elem {
        Elem::Index => DType::I64,
        Elem::D(d) if d.is_int() && d.bits() < 8 => {
            if d.is_signed() {
                DType::I8
            } else {
                DType::U8
            }
        }
        Elem::D(d) => d,
    }
}

impl Staging {
    pub fn slot(&mut self, m: &mut Make, elems: &[Elem], len: u64, row: ExprId) -> Result<Slot> {
        let mut buffers = Vec::new();
        for (i, &elem) in elems.iter().enumerate() {
            let elem = stored(elem);
            let nth = elems[..i].iter().filter(|&&e| stored(e) == elem).count();
            let found = self.rows.iter_mut().find(|r| r.elem == elem && r.nth == nth);
            if let Some(r) = found {
                r.len = r.len.max(len);
                buffers.push(r.buffer);
                continue;
            }
            let shape = [2, 1].into_iter().collect();
            let buffer = m.k.add_buffer(Buffer::new("parts".into(), Home::Shared, elem, shape), m.span)?;
            self.rows.push(Row { elem, nth, buffer, len });
            buffers.push(buffer);
        }
        Ok(Slot { buffers, row })
    }

    /// The declarations, once all lengths are known.
    pub fn declare(&self, m: &mut Make, span: Span) -> Result<()> {
        for r in &self.rows {
            m.k.kernel_mut().buffers[r.buffer].shape = [2, r.len as u32].into_iter().collect();
            m.k.stmt(StmtKind::Buffer { buffer: r.buffer }, span)?;
        }
        Ok(())
    }
}

impl Slot {
    pub fn store(&self, m: &mut Make, at: ExprId, values: &[ExprId]) -> Result<()> {
        for (&buffer, &value) in self.buffers.iter().zip(values) {
            let elem = m.k.kernel().buffers[buffer].elem;
            let value = m.cast(elem.into(), value)?;
            let index = [self.row, at].into_iter().collect();
            m.stmt(StmtKind::Store { mem: Mem::Buffer(buffer), index, value })?;
        }
        Ok(())
    }

    pub fn load(&self, m: &mut Make, at: ExprId, elems: &[Elem]) -> Result<Vec<ExprId>> {
        let mut all = Vec::new();
        for (&buffer, &elem) in self.buffers.iter().zip(elems) {
            let index = [self.row, at].into_iter().collect();
            let value = m.expr(Expr::Element { mem: Mem::Buffer(buffer), index, or: None })?;
            all.push(m.cast(elem, value)?);
        }
        Ok(all)
    }
}

/// Where one group's parts lie.
struct Cells<'s> {
    slot: &'s Slot,
    base: ExprId,
}

impl Cells<'_> {
    fn load(&self, m: &mut Make, i: ExprId, fold: &Folder) -> Result<Vec<ExprId>> {
        let at = m.add(self.base, i)?;
        self.slot.load(m, at, &fold.elems)
    }
}

fn base(m: &mut Make, g: &Group, cells: u64) -> Result<ExprId> {
    let kept: Vec<_> = g.kept.iter().map(|d| (d.value, d.extent)).collect();
    let group = number(m, &kept)?;
    m.scale(group, cells)
}

/// After the lanes' exchange by bits.
pub fn bits(m: &mut Make, r: &Running, g: &Group, b: &Bits, slot: &Slot, w: Widths) -> Result<()> {
    let cells = Cells { slot, base: base(m, g, b.cells)? };
    let mut high = Vec::new();
    for (d, &folded) in g.over.iter().zip(&b.folded) {
        high.push((m.div(d.value, folded)?, d.extent / folded));
    }
    let cell = number(m, &high)?;
    let at = m.add(cells.base, cell)?;
    let rank = lanes::rank(m, g, b)?;
    let values = r.values(m)?;
    if b.steps.is_empty() {
        slot.store(m, at, &values)?;
    } else {
        let first = m.is_zero(rank)?;
        m.when(first, |m| slot.store(m, at, &values))?;
    }
    if b.cells <= FEW || b.steps.is_empty() {
        let count = m.int(b.cells)?;
        return one_by_one(m, r, &cells, count, b.cells);
    }
    let steps = b.steps.len().min(b.cells.next_power_of_two().ilog2() as usize);
    let lanes = 1 << steps;
    let own = if lanes == 1 << b.steps.len() { rank } else { m.rem(rank, lanes)? };
    shared_reads(m, r, &cells, (own, lanes), b.cells)?;
    lanes::butterfly(m, r, g, &b.steps[..steps], w)
}

/// After the lanes' exchange towards the first of a run.
pub fn run(
    m: &mut Make,
    r: &Running,
    g: &Group,
    run: &Run,
    at: &Place,
    slot: &Slot,
    w: Widths,
) -> Result<()> {
    let cells = Cells { slot, base: base(m, g, run.cells)? };
    let (mine, first) = (m.div(at.thread, w.shuffle)?, m.div(at.first, w.shuffle)?);
    let cell = m.sub(mine, first)?;
    let place = m.add(cells.base, cell)?;
    let values = r.values(m)?;
    let mut leads = m.is_zero(at.lane)?;
    if g.count() > 1 {
        let starts = m.is_zero(at.at)?;
        leads = m.bin(BinOp::LogicalOr, leads, starts)?;
    }
    m.when(leads, |m| slot.store(m, place, &values))?;
    let end = at.end(m, run)?;
    let one = m.int(1)?;
    let last = m.sub(end, one)?;
    let last = m.div(last, w.shuffle)?;
    let count = m.sub(last, first)?;
    let count = m.add(count, one)?;
    one_by_one(m, r, &cells, count, run.cells)
}

/// Every thread folds all parts in order.
fn one_by_one(m: &mut Make, r: &Running, cells: &Cells, count: ExprId, most: u64) -> Result<()> {
    let zero = m.int(0)?;
    let first = cells.load(m, zero, r.fold)?;
    r.set(m, &first)?;
    if m.known(count).is_some() && most <= FEW {
        for i in 1..most {
            let i = m.int(i)?;
            let next = cells.load(m, i, r.fold)?;
            r.take(m, &next, false)?;
        }
        return Ok(());
    }
    let one = m.int(1)?;
    m.count("i", (one, count), |m, i| {
        let next = cells.load(m, i, r.fold)?;
        r.take(m, &next, false)
    })
}

/// Lane `own` of `lanes` folds its share of the parts.
fn shared_reads(m: &mut Make, r: &Running, cells: &Cells, (own, lanes): (ExprId, u64), n: u64) -> Result<()> {
    let share = n.div_ceil(lanes);
    if share == 1 && n == lanes {
        let values = cells.load(m, own, r.fold)?;
        return r.set(m, &values);
    }
    let identity = r.fold.identity(m)?;
    r.set(m, &identity)?;
    let end = m.int(n)?;
    if share == 1 {
        let some = m.lt(own, end)?;
        return m.when(some, |m| {
            let values = cells.load(m, own, r.fold)?;
            r.set(m, &values)
        });
    }
    let start = m.scale(own, share)?;
    let (zero, share) = (m.int(0)?, m.int(share)?);
    m.count("i", (zero, share), |m, i| {
        let at = m.add(start, i)?;
        let some = m.lt(at, end)?;
        m.when(some, |m| {
            let next = cells.load(m, at, r.fold)?;
            r.take(m, &next, false)
        })
    })
}
