//! Regions: from subscripts to a valid box and the addresses inside it.

use super::cx::{Cx, Use};
use super::eval::{uniform, uniform_index};
use super::eval_tile::{Operand, operand, tile};
use super::fault::{Exec, fault, malformed};
use super::memory::{Home, MemId};
use super::tile::{Bounds, Tile};
use crate::codes;
use crate::num;
use crate::program::*;
use std::collections::HashSet;

/// A region with its subscripts evaluated.
pub(super) struct Resolved {
    pub mem: MemId,
    pub shape: Shape,
    /// What of it lies inside the memory.
    pub valid: Bounds,
    base: i64,
    /// Per kept axis the offset of each valid coordinate.
    offsets: Vec<Vec<i64>>,
    gathers: bool,
}

impl Resolved {
    /// Addresses of a box inside `valid`, row-major.
    pub fn addresses(&self, bounds: &Bounds) -> Vec<usize> {
        let mut out = vec![self.base];
        for (d, offsets) in self.offsets.iter().enumerate() {
            let from = bounds.lo[d].saturating_sub(self.valid.lo[d]) as usize;
            let part = offsets.get(from..from + bounds.extent(d) as usize).unwrap_or(&[]);
            out = out.iter().flat_map(|&a| part.iter().map(move |&o| a + o)).collect();
        }
        out.into_iter().map(|a| a as usize).collect()
    }
}

impl<'p> Cx<'_, 'p> {
    pub fn resolve(&mut self, region: &Region, access: Use) -> Exec<Resolved> {
        let (mem, depth) = self.memory(region.mem, access)?;
        let mut r = Resolved {
            mem,
            shape: Shape::new(),
            valid: Bounds::full(&[]),
            base: self.copy_base(mem, depth)?,
            offsets: Vec::new(),
            gathers: false,
        };
        let mut axis = 0;
        for part in &region.axes {
            if matches!(part, RegionAxis::New) {
                push_axis(&mut r, 1, 0, vec![0]);
                continue;
            }
            let m = &self.run.mems[mem];
            let (Some(&n), Some(&stride)) = (m.dims.get(axis), m.strides.get(axis)) else {
                return Err(malformed("a region with too many axes"));
            };
            match part {
                RegionAxis::At(e) => {
                    let i = uniform_index(self, *e)?;
                    if i < 0 || i >= n {
                        let f = self.off_axis(mem, axis, &format!("index {i}"), n);
                        return Err(f.at(self.run.kernel.body.exprs.span(*e)));
                    }
                    r.base += i * stride;
                }
                RegionAxis::Span { start, len, limit, clip_low } => {
                    let (lo, hi, first) = self.span(mem, axis, *start, *len, *limit, *clip_low, n)?;
                    let offsets = (lo..hi).map(|j| (first + i64::from(j)) * stride).collect();
                    push_axis(&mut r, *len, lo, offsets);
                }
                RegionAxis::Gather { index, len } => {
                    let (lo, rows) = self.gather(mem, axis, *index, n)?;
                    push_axis(&mut r, *len, lo, rows.into_iter().map(|i| i * stride).collect());
                    r.gathers = true;
                }
                RegionAxis::New => {}
            }
            axis += 1;
        }
        Ok(r)
    }

    fn off_axis(&self, mem: MemId, axis: usize, what: &str, n: i64) -> Box<super::Fault> {
        let name = &self.run.mems[mem].name;
        let message = format!("{what} is outside axis {axis} of `{name}`, which has {n} elements");
        fault(codes::OUT_OF_BOUNDS, message).named(name)
    }

    /// Where a per-thread array starts that the block reads as a tile.
    fn copy_base(&self, mem: MemId, depth: usize) -> Exec<i64> {
        let m = &self.run.mems[mem];
        if m.home != Home::Lane {
            return Ok(0);
        }
        let mask = &self.agent.ctx[depth].mask;
        if mask.len() == 1 {
            return Ok(m.lane_base(mask.lane(0)) as i64);
        }
        let message =
            format!("`{}` is one array for each thread, but a region is read by the whole block", m.name);
        Err(fault(codes::NOT_UNIFORM, message).named(&m.name).help("use a `shared` array"))
    }

    /// The valid part of `start +: len`, and the memory index of the region's element 0.
    #[allow(clippy::too_many_arguments)]
    fn span(
        &mut self,
        mem: MemId,
        axis: usize,
        start: ExprId,
        len: u32,
        limit: Option<ExprId>,
        clip_low: bool,
        n: i64,
    ) -> Exec<(u32, u32, i64)> {
        let first = uniform_index(self, start)?;
        let most = match limit {
            Some(e) => uniform_index(self, e)?.clamp(0, i64::from(len)),
            None => i64::from(len),
        };
        if first < 0 && !clip_low {
            let name = self.run.mems[mem].name.clone();
            let message = format!("a region of `{name}` starts at {first} on axis {axis}, below 0");
            return Err(fault(codes::NEGATIVE_START, message)
                .named(&name)
                .at(self.run.kernel.body.exprs.span(start))
                .help(format!("write `start +: {len} clip low` where the low edge may be crossed")));
        }
        let lo = first.saturating_neg().clamp(0, i64::from(len));
        let hi = n.saturating_sub(first).min(most).max(lo);
        Ok((lo as u32, hi as u32, first))
    }

    /// The rows that a list of indices names: where its valid part begins, and the memory indices.
    fn gather(&mut self, mem: MemId, axis: usize, index: ExprId, n: i64) -> Exec<(u32, Vec<i64>)> {
        let list = tile(self, index)?;
        let mut rows = Vec::with_capacity(list.data.len());
        for (at, &bits) in list.data.iter().enumerate() {
            let i = match list.elem {
                Elem::Index => Some(bits as i64),
                elem => num::to_i64(elem, bits),
            };
            match i.filter(|i| (0..n).contains(i)) {
                Some(i) => rows.push(i),
                None => {
                    let text = num::print_value(list.elem, bits);
                    let f = self.off_axis(mem, axis, &format!("the gathered index {text}"), n);
                    let place = at as i64 + i64::from(list.valid.lo[0]);
                    return Err(f
                        .at(self.run.kernel.body.exprs.span(index))
                        .value("its place in the list", place.to_string()));
                }
            }
        }
        Ok((list.valid.lo[0], rows))
    }

    /// The valid elements of a region, as a tile.
    pub fn load(&mut self, r: &Resolved) -> Exec<Tile> {
        let addresses = r.addresses(&r.valid);
        let thread = self.agent.team_thread();
        self.touch();
        let access = self.agent.access(self.run.block_epoch);
        let m = &mut self.run.mems[r.mem];
        let mut data = Vec::with_capacity(addresses.len());
        for addr in addresses {
            data.push(m.read(addr, thread, &access, self.run.spans.all())?);
        }
        Ok(Tile { elem: m.elem, shape: r.shape.clone(), valid: r.valid.clone(), data })
    }

    pub fn read(&mut self, from: &Region, pad: Option<ExprId>) -> Exec<Tile> {
        self.need_collective("a read of a region")?;
        let r = self.resolve(from, Use::Read)?;
        let part = self.load(&r)?;
        match pad {
            None => Ok(part),
            Some(e) => Ok(padded(part, uniform(self, e)?)),
        }
    }

    /// A tile or scalar that goes to a region: where, and what.
    pub fn outgoing(&mut self, to: &Region, value: ExprId) -> Exec<(Resolved, Bounds, Operand)> {
        let value = operand(self, value)?;
        let r = self.resolve(to, Use::Write)?;
        let valid = r.valid.intersect(&value.valid(&r.shape));
        Ok((r, valid, value))
    }

    pub fn write(&mut self, to: &Region, value: ExprId) -> Exec<()> {
        self.need_collective("a write of a region")?;
        let (r, valid, value) = self.outgoing(to, value)?;
        let data = value.over(&r.shape, &valid);
        let addresses = r.addresses(&valid);
        self.check_distinct(&r, &addresses)?;
        let thread = self.agent.team_thread();
        self.touch();
        let access = self.agent.access(self.run.block_epoch);
        let m = &mut self.run.mems[r.mem];
        for (i, addr) in addresses.into_iter().enumerate() {
            let bits = if data.len() == 1 { data[0] } else { data[i] };
            m.write(addr, bits, thread, &access, self.run.spans.all())?;
        }
        Ok(())
    }

    /// A list of indices that scatters may not name a row twice.
    pub fn check_distinct(&self, r: &Resolved, addresses: &[usize]) -> Exec<()> {
        if !r.gathers {
            return Ok(());
        }
        let mut seen = HashSet::with_capacity(addresses.len());
        match addresses.iter().find(|&&a| !seen.insert(a)) {
            None => Ok(()),
            Some(&addr) => {
                let m = &self.run.mems[r.mem];
                let message = format!("one write of a region stores {} twice", m.text(addr));
                Err(fault(codes::RACE_THREADS, message)
                    .of(&m.name, m.index_of(addr))
                    .help("a list of indices that is written through names each row once; or use an atomic"))
            }
        }
    }
}

fn push_axis(r: &mut Resolved, len: u32, lo: u32, offsets: Vec<i64>) {
    r.shape.push(len);
    r.valid.lo.push(lo);
    r.valid.hi.push(lo + offsets.len() as u32);
    r.offsets.push(offsets);
}

/// The tile made full with a value.
pub(super) fn padded(part: Tile, pad: u64) -> Tile {
    if part.is_full() {
        return part;
    }
    let full = Bounds::full(&part.shape);
    let mut data = vec![pad; full.count()];
    super::stmt::paste(&mut data, &full, &part.valid, &part.data);
    Tile::full(part.elem, part.shape, data)
}
