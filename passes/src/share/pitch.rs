//! How rows of a shared buffer lie: plain, padded, or with granules swizzled, so that the counted phases of all its
//! accesses are fewest. Counts take each statement once, loops at their first two and their last steps.

use crate::order::{Env, Known, Val};
use pantile_ir::effects::{Access, Ctx, Kind, Obj, Part, stmt_effects};
use pantile_ir::hash::{Map, Set};
use pantile_ir::layout::{Axis, Banks, Digit, Dim, Layout, Shared, Xor, bank_conflicts_of, contiguous};
use pantile_ir::program::*;
use pantile_ir::target::Arch;
use pantile_ir::verify::KernelInfo;
use std::rc::Rc;

/// An access: its indices, one number or one for each thread, and the bytes that a thread takes.
struct Use {
    index: Vec<Rc<Vec<i64>>>,
    active: Rc<Vec<bool>>,
    bytes: u64,
    write: bool,
    /// how often it is made
    times: u64,
}

/// Granules of padding that are tried.
const PADS: u64 = 4;

/// What rows of shared memory may be turned into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rows {
    Plain,
    Swizzled,
    /// padded, or swizzled where that is not enough
    Padded,
}

/// The layout with the fewest phases: plain rows, padded rows where that helps, else rows with a swizzle that keeps
/// wide accesses whole. `None` where plain rows do.
pub fn choose(scan: &Scan, buffer: BufferId, arch: &Arch, rows: Rows) -> Option<Shared> {
    let b = &scan.env.k.buffers[buffer];
    let banks = arch.banks()?;
    let size = Elem::D(b.elem).bytes();
    let (&fast, slow) = b.shape.split_last()?;
    if rows == Rows::Plain || slow.iter().all(|&n| n == 1) {
        return None;
    }
    let uses = &scan.of.get(&buffer)?.known;
    let row = u64::from(fast) * size;
    let wide = uses.iter().map(|u| u.bytes).max().unwrap_or(size);
    let plain = pitched(&b.shape, size, row);
    let mut order: Vec<(u64, u64, &Use)> = uses
        .iter()
        .map(|u| {
            let c = price(u, &plain, &banks);
            (c.phases - c.ideal, c.ideal, u)
        })
        .collect();
    // what conflicts most tells layouts apart first
    order.sort_by_key(|&(above, ..)| std::cmp::Reverse(above));
    let uses = order.into_iter().map(|(_, ideal, u)| (ideal, u)).collect();
    let mut best = Best { uses, banks, cost: u64::MAX, layout: None };
    best.consider(&plain);
    // a padded row must keep the alignment that wide accesses need
    let step = wide.max(banks.bytes);
    let pitches = (0..=PADS).map(|n| row.next_multiple_of(step) + n * step).filter(|&p| p != row);
    if rows == Rows::Padded {
        pitches.for_each(|p| best.consider(&pitched(&b.shape, size, p)));
    }
    for xor in swizzles(step, plain.bytes(size), &banks) {
        best.consider(&Shared { layout: plain.layout.clone(), xor: Some(xor), align: xor.cycle() });
    }
    best.layout.filter(|l| *l != plain)
}

/// The cheapest layout so far.
struct Best<'a> {
    /// with the phases that no layout can be below
    uses: Vec<(u64, &'a Use)>,
    banks: Banks,
    cost: u64,
    layout: Option<Shared>,
}

impl Best<'_> {
    /// Takes a layout that is cheaper than those before it.
    fn consider(&mut self, layout: &Shared) {
        let mut least: u64 = self.uses.iter().map(|(ideal, _)| ideal).sum();
        for (ideal, u) in &self.uses {
            if least >= self.cost {
                return;
            }
            least += price(u, layout, &self.banks).phases - ideal;
        }
        if least < self.cost {
            (self.cost, self.layout) = (least, Some(layout.clone()));
        }
    }
}

/// Swizzles that move granules of `granule` bytes within a row of the banks and map the buffer onto itself.
fn swizzles(granule: u64, bytes: u64, banks: &Banks) -> Vec<Xor> {
    let line = banks.count * banks.bytes;
    if !granule.is_power_of_two() || !line.is_power_of_two() || !bytes.is_multiple_of(line) {
        return Vec::new();
    }
    let (low, high, top) = (granule.ilog2(), line.ilog2(), bytes.next_power_of_two().ilog2());
    let mut all = Vec::new();
    for base in low..high {
        for bits in 1..=high - base {
            // the bits that decide lie above the line: what is moved never decides
            let shifts = (high - base)..=top.saturating_sub(base + bits);
            all.extend(shifts.map(|shift| Xor::new(bits, base, shift)));
        }
    }
    all
}

/// Rows `pitch` bytes apart.
fn pitched(shape: &[u32], size: u64, pitch: u64) -> Shared {
    let strides = strides(shape, size, pitch);
    let dims = shape.iter().zip(&strides).enumerate();
    let dims = dims
        .map(|(i, (&n, &stride))| Dim::new(format!("d{i}"), vec![Digit::new(n.into(), Axis::Mem, stride)]));
    Shared::plain(Layout::new(dims.collect::<Vec<_>>()), 16)
}

/// Bank conflicts of all accesses to a buffer as it is placed, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// most words that one bank must serve in one phase
    pub ways: u64,
    /// phases of all accesses, each counted with its ways
    pub phases: u64,
    /// phases if no bank were hit twice
    pub ideal: u64,
    /// accesses whose places are not known before the launch
    pub unknown: u64,
}

/// `None` where nothing is known of the target's banks.
pub fn conflicts(k: &Kernel, info: &KernelInfo, buffer: BufferId, arch: &Arch) -> Option<Conflicts> {
    let b = &k.buffers[buffer];
    let banks = arch.banks()?;
    let place = placed(b);
    let scan = Scan::of(k, info);
    let uses = scan.of.get(&buffer)?;
    let mut total = Conflicts { unknown: uses.skipped.len() as u64, ..Conflicts::default() };
    for u in &uses.known {
        let one = price(u, &place, &banks);
        total.ideal += one.ideal;
        total.phases += one.phases;
        total.ways = total.ways.max(one.ways);
    }
    Some(total)
}

/// Most words that one bank must serve in one phase, of reads and of writes of each shared buffer: 1 is no conflict,
/// 0 no access, `None` not known before the launch.
pub fn ways(k: &Kernel, info: &KernelInfo, arch: &Arch) -> Vec<(BufferId, Option<u64>, Option<u64>)> {
    let shared = k.buffers.iter().filter(|(_, b)| b.home == Home::Shared);
    let scan = Scan::of(k, info);
    let one = |(id, b): (BufferId, &Buffer)| {
        let (Some(banks), Some(all)) = (arch.banks(), scan.of.get(&id)) else { return (id, None, None) };
        let place = placed(b);
        let most = |write: bool| {
            let known = all.skipped.values().all(|&w| w != write);
            let uses = all.known.iter().filter(|u| u.write == write);
            known.then(|| uses.map(|u| price(u, &place, &banks).ways).max().unwrap_or(0))
        };
        (id, most(false), most(true))
    };
    shared.map(one).collect()
}

/// The buffer's layout, or the plain one that stands for none.
fn placed(b: &Buffer) -> Shared {
    let shape: Vec<u64> = b.shape.iter().map(|&n| n.into()).collect();
    b.layout.clone().unwrap_or_else(|| Shared::plain(contiguous(&shape, Elem::D(b.elem).bytes()), 1))
}

fn strides(shape: &[u32], size: u64, pitch: u64) -> Vec<u64> {
    let mut all = vec![size; shape.len()];
    let mut stride = pitch;
    for i in (0..shape.len().saturating_sub(1)).rev() {
        all[i] = stride;
        stride *= u64::from(shape[i]);
    }
    all
}

/// What one access of all warps costs.
fn price(u: &Use, place: &Shared, banks: &Banks) -> Conflicts {
    let threads: Vec<usize> = (0..u.active.len()).collect();
    let mut total = Conflicts::default();
    let dims = &place.layout.dims;
    // one digit a dim is what this pass makes itself: no need to walk digits
    let strides: Option<Vec<u64>> =
        dims.iter().map(|d| if let [one] = &d.digits[..] { Some(one.stride) } else { None }).collect();
    let mut index = Vec::new();
    let of = |i: &Vec<i64>, t: usize| i[if i.len() == 1 { 0 } else { t }].unsigned_abs();
    let mut at = |t: usize| {
        if let Some(strides) = &strides {
            let sum = u.index.iter().zip(strides).map(|(i, s)| of(i, t) * s).sum::<u64>();
            return place.swizzled(place.layout.offset[Axis::Mem] + sum);
        }
        index.clear();
        index.extend(u.index.iter().map(|i| of(i, t)));
        place.address(&index)
    };
    for warp in threads.chunks(banks.lanes.max(1) as usize) {
        let lanes: Vec<u64> = warp.iter().filter(|&&t| u.active[t]).map(|&t| at(t)).collect();
        let phases = bank_conflicts_of(&lanes, u.bytes, banks);
        total.ideal += u.times * phases.len() as u64;
        total.phases += u.times * phases.iter().sum::<u64>();
        total.ways = total.ways.max(phases.into_iter().max().unwrap_or(0));
    }
    total
}

/// Accesses to all shared buffers.
pub struct Scan<'a> {
    env: Env<'a>,
    /// by statement, what it touches of shared memory itself
    touches: Map<*const Stmt, Rc<[(BufferId, Access)]>>,
    /// statements in and below which no shared memory is touched
    idle: Set<*const Stmt>,
    of: Map<BufferId, Uses>,
    /// the most that one buffer has
    most: usize,
}

#[derive(Default)]
struct Uses {
    /// each once
    known: Vec<Use>,
    count: usize,
    /// by a part of what makes two the same
    places: Map<(i64, i64, bool), Vec<usize>>,
    /// Accesses whose places are not known here, by statement: whether they write.
    skipped: Map<(*const Stmt, bool), bool>,
}

impl Uses {
    fn add(&mut self, u: Use) {
        let end = |part: Option<&Rc<Vec<i64>>>| part.and_then(|p| p.last().copied()).unwrap_or(0);
        let key = (end(u.index.first()), end(u.index.last()), u.write);
        let near = self.places.entry(key).or_default();
        let same = |o: &Use| o.index == u.index && o.bytes == u.bytes && o.active == u.active;
        match near.iter().find(|&&i| same(&self.known[i])) {
            Some(&i) => self.known[i].times += u.times,
            None => {
                near.push(self.known.len());
                self.known.push(u);
            }
        }
    }
}

/// From here on, loops are looked at in their first step alone.
const MANY: usize = 256;

impl<'a> Scan<'a> {
    pub fn of(k: &'a Kernel, info: &'a KernelInfo) -> Scan<'a> {
        let env = Env::new(k, info);
        let active = Rc::new(vec![true; env.threads]);
        let shared = k.buffers.iter().filter(|(_, b)| b.home == Home::Shared);
        let of = shared.map(|(id, _)| (id, Uses::default())).collect();
        let mut scan = Scan { env, touches: Map::default(), idle: Set::default(), of, most: 0 };
        scan.find(&k.stmts);
        scan.block(&k.stmts, &active, 1);
        scan
    }

    /// Whether shared memory is touched in the block.
    fn find(&mut self, block: &Block) -> bool {
        let mut any = false;
        for s in block {
            let ctx = Ctx { kernel: self.env.k, team: None, span: s.span };
            let shared = stmt_effects(&s.kind, &ctx).into_iter().filter_map(|a| match a.obj {
                Obj::Shared(b) => Some((b, a)),
                _ => None,
            });
            let own: Rc<[(BufferId, Access)]> = shared.collect();
            let mut here = !own.is_empty();
            if here {
                self.touches.insert(s, own);
            }
            for inner in s.kind.blocks() {
                here |= self.find(inner);
            }
            if !here {
                self.idle.insert(s);
            }
            any |= here;
        }
        any
    }

    fn block(&mut self, block: &Block, active: &Rc<Vec<bool>>, lanes: u64) {
        for s in block {
            if !self.idle.contains(&std::ptr::from_ref(s)) {
                self.touch(s, active, lanes);
                self.inside(s, active, lanes);
            }
            s.kind.blocks().iter().for_each(|b| self.env.forget(b));
            if let StmtKind::Let { local, value } | StmtKind::Assign { local, value } = &s.kind {
                let v = self.env.eval(*value);
                self.env.set(*local, v);
            }
        }
    }

    fn inside(&mut self, s: &Stmt, active: &Rc<Vec<bool>>, lanes: u64) {
        match &s.kind {
            StmtKind::If { cond, then, other } => {
                for (block, no) in [(then, false), (other, true)] {
                    let may = self.env.may(*cond, no);
                    let both = Rc::new(active.iter().zip(may.iter()).map(|(&a, &b)| a && b).collect());
                    self.block(block, &both, lanes);
                }
            }
            StmtKind::For { var, kind, segments, body, .. } => {
                let n = segments.first().and_then(|g| self.env.eval(g.hi)).and_then(|v| v.constant());
                let wide = *kind == LoopKind::Vectorized;
                let lanes = if wide { n.unwrap_or(1).max(1) as u64 } else { lanes };
                for value in self.samples(segments, wide) {
                    self.env.forget(body);
                    self.env.set(*var, value);
                    self.block(body, active, lanes);
                }
            }
            _ => s.kind.blocks().iter().for_each(|b| self.block(b, active, lanes)),
        }
    }

    /// Values of a loop's variable to look at: the first two and the last where they are numbers.
    fn samples(&mut self, segments: &[Segment], wide: bool) -> Vec<Val> {
        let Some(first) = segments.first() else { return Vec::new() };
        let lo = self.env.eval(first.lo);
        let hi = segments.last().and_then(|s| self.env.eval(s.hi)).and_then(|v| v.constant());
        let Some(n) = lo.as_ref().and_then(|v| v.constant()) else {
            let lo = lo.or_else(|| self.env.open(first.lo));
            return vec![lo];
        };
        let step = self.env.eval(first.step).and_then(|v| v.constant()).unwrap_or(1);
        let last = hi.map_or(n, |hi| n + (hi - n - 1).max(0) / step.max(1) * step);
        let mut all = vec![n, n + step, last];
        all.retain(|&v| v == n || hi.is_some_and(|hi| v < hi));
        all.dedup();
        if wide || self.most > MANY {
            all.truncate(1);
        }
        all.into_iter().map(|v| Some(Rc::new(Known::number(v)))).collect()
    }

    fn touch(&mut self, s: &Stmt, active: &Rc<Vec<bool>>, lanes: u64) {
        let Some(all) = self.touches.get(&std::ptr::from_ref(s)).cloned() else { return };
        for (buffer, a) in all.iter() {
            let Part::Element(list) = &a.part else { continue };
            let write = a.kind != Kind::Read;
            // symbols move all threads alike, which no plain pitch minds
            let index: Option<Vec<Rc<Vec<i64>>>> = list
                .iter()
                .map(|&e| Some(self.env.eval(e).filter(|v| v.modulus == 0)?.part.clone()))
                .collect();
            let size = Elem::D(self.env.k.buffers[*buffer].elem).bytes();
            let Some(uses) = self.of.get_mut(buffer) else { continue };
            if let Some(index) = index {
                let bytes = (size * lanes).next_power_of_two().min(16).max(size);
                uses.count += 1;
                self.most = self.most.max(uses.count);
                uses.add(Use { index, active: active.clone(), bytes, write, times: 1 });
            } else {
                uses.skipped.insert((s, write), write);
            }
        }
    }
}
