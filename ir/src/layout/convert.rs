//! Conversion of a fragment from one layout to another, by the cheapest of: nothing, renaming registers, choosing
//! registers by lane, shuffles, exchanging lane digits with register digits, or a detour through shared memory.

use super::banks::conflicts;
use super::{
    Axis, Banks, BlockMove, Candidate, Digit, Layout, Piece, Shared, VectorLimits, free_candidates, relate,
    vector_width,
};

/// One step of a conversion. Threads and registers are numbered from 0; registers count elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// new register `r` is old register `from[r]`
    Rename { from: Vec<u64> },
    /// new register `r` of thread `t` is old register `by_reg[r] + by_thread[t]` of the same thread
    Select { by_reg: Vec<u64>, by_thread: Vec<u64> },
    /// new register `r` of thread `t` is old register `from[r]` of thread `by_reg[r] + by_thread[t]`, same warp
    Shuffle { from: Vec<u64>, by_reg: Vec<u64>, by_thread: Vec<u64> },
    /// The bit of the thread number with value `lane` and the bit of the register number `r / reg % 2` change
    /// places: a butterfly round that moves half of the registers.
    Exchange { lane: u64, reg: u64 },
    /// store to shared memory, synchronise the scope, load
    Shared { tile: Shared, name: String, store: Access, load: Access, scope: Scope },
}

/// How the registers of a warp reach shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// each thread its own, that many elements at once
    Vector(u64),
    /// by the matrix move of that name
    Blocks(String),
}

/// Whom the two halves of a detour must synchronise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Warp,
    Team,
    Block,
    Cluster,
}

/// Steps in order, and their price for one warp.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    pub steps: Vec<Step>,
    pub cost: f64,
}

/// Relative prices of one warp's instruction, on 32-bit words; of shared memory, of one phase of its banks.
#[derive(Clone, Copy, Debug)]
pub struct Prices<'a> {
    pub shuffle: f64,
    pub select: f64,
    pub shared_store: f64,
    pub shared_load: f64,
    pub barrier: f64,
    /// widest access to shared memory
    pub max_bytes: u64,
    pub banks: Banks,
    pub moves: &'a [BlockMove],
}

/// Where a digit counts, seen from a warp of `Banks::lanes` threads that shuffles reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Lane(u64),
    Warp(u64),
    Reg(u64),
    Other(Axis, u64),
}

/// A stretch of elements that moves as one digit.
#[derive(Clone, Copy, Debug)]
struct Move {
    extent: u64,
    src: Slot,
    dst: Slot,
}

/// Plans the conversion of elements of `bits` bits. `Err` only for elements narrower than a byte that would need
/// shared memory, where a byte has one owner.
pub fn convert(src: &Layout, dst: &Layout, bits: u32, prices: &Prices) -> Result<Conversion, String> {
    if src.same(dst) {
        return Ok(Conversion { steps: Vec::new(), cost: 0.0 });
    }
    let direct = in_registers(src, dst, bits, prices);
    let detour = if bits >= 8 { Some(through_shared(src, dst, u64::from(bits / 8), prices)?) } else { None };
    match (direct, detour) {
        (Some(a), Some(b)) => Ok(if a.cost <= b.cost { a } else { b }),
        (Some(a), None) => Ok(a),
        (None, Some(b)) => Ok(b),
        (None, None) => {
            Err(format!("elements of {bits} bits cannot be rearranged between threads: widen them first"))
        }
    }
}

fn in_registers(src: &Layout, dst: &Layout, bits: u32, prices: &Prices) -> Option<Conversion> {
    let lanes = prices.banks.lanes;
    let tiled = |l: &Layout| l.bijective(&[Axis::Reg, Axis::Thr]).is_ok() && l.offset == Default::default();
    let covered = |l: &Layout, name: &str| l.dim(name).map(|d| d.covered());
    if !tiled(src) || !tiled(dst) || src.dims.iter().any(|d| covered(dst, &d.name) != Some(d.covered())) {
        return None;
    }
    // Copies in other groups or blocks cannot be made from here.
    let elsewhere = |d: &&Digit| !matches!(d.axis, Axis::Reg | Axis::Thr);
    if dst.rep.iter().filter(elsewhere).any(|d| !src.rep.contains(d)) {
        return None;
    }
    let relation = relate(src, dst).ok()?;
    let moves: Vec<Move> = relation.pieces.iter().flat_map(|p| cut(p, lanes)).collect();
    let plan =
        Planner { moves, src_rep: src.rep.clone(), dst_rep: dst.rep.clone(), lanes, bits, prices: *prices };
    let sizes = |l: &Layout| (l.size(Axis::Reg), l.size(Axis::Thr));
    plan.plan(sizes(dst))
}

/// A piece as moves. Stretches that change their slot are cut into bits, so that each bit lies inside or outside a
/// warp; an odd rest that straddles a warp's edge gets a slot that no register plan accepts.
fn cut(piece: &Piece, lanes: u64) -> Vec<Move> {
    let registers = piece.src.0 == Axis::Reg && piece.dst.0 == Axis::Reg;
    if piece.src == piece.dst || registers {
        return vec![Move {
            extent: piece.extent,
            src: slot(piece.src, 1, lanes),
            dst: slot(piece.dst, 1, lanes),
        }];
    }
    let mut out = Vec::new();
    let (mut left, mut scale) = (piece.extent, 1);
    while left > 1 {
        let extent = if left % 2 == 0 { 2 } else { left };
        let whole = |s: Slot| match s {
            Slot::Lane(stride) if stride * extent > lanes => Slot::Other(Axis::Thr, stride),
            s => s,
        };
        let (src, dst) = (whole(slot(piece.src, scale, lanes)), whole(slot(piece.dst, scale, lanes)));
        out.push(Move { extent, src, dst });
        left /= extent;
        scale *= extent;
    }
    out
}

fn slot((axis, stride): (Axis, u64), scale: u64, lanes: u64) -> Slot {
    let stride = stride * scale;
    match axis {
        Axis::Thr if stride < lanes => Slot::Lane(stride),
        Axis::Thr => Slot::Warp(stride),
        Axis::Reg => Slot::Reg(stride),
        other => Slot::Other(other, stride),
    }
}

struct Planner<'a> {
    moves: Vec<Move>,
    src_rep: Vec<Digit>,
    dst_rep: Vec<Digit>,
    lanes: u64,
    bits: u32,
    prices: Prices<'a>,
}

/// Where the elements of the new layout come from, as sums of a part by register and a part by thread.
struct Sources {
    reg_by_reg: Vec<u64>,
    reg_by_thread: Vec<u64>,
    thread_by_reg: Vec<u64>,
    thread_by_thread: Vec<u64>,
}

impl Planner<'_> {
    fn plan(mut self, size: (u64, u64)) -> Option<Conversion> {
        let fixed = |m: &Move| match (m.src, m.dst) {
            (Slot::Lane(_) | Slot::Reg(_), Slot::Lane(_) | Slot::Reg(_)) => true,
            (a, b) => a == b,
        };
        let selects = |m: &Move| matches!((m.src, m.dst), (Slot::Reg(_), Slot::Warp(_)));
        if self.moves.iter().any(|m| !fixed(m) && !selects(m)) {
            return None;
        }
        if let Some(done) = self.without_exchange(size) {
            return Some(done);
        }
        let rounds = self.exchange()?;
        let words = self.words(size.0);
        let mut rest = self.without_exchange(size)?;
        let each = (words / 2.0).max(1.0) * self.prices.shuffle + words * self.prices.select;
        rest.cost += each * rounds.len() as f64;
        rest.steps.splice(0..0, rounds);
        Some(rest)
    }

    fn words(&self, regs: u64) -> f64 {
        (regs * u64::from(self.bits)).div_ceil(32) as f64
    }

    /// The conversion by one step, if one is enough.
    fn without_exchange(&self, size: (u64, u64)) -> Option<Conversion> {
        let s = self.sources(size);
        let static_thread = s.thread_by_reg.iter().all(|t| *t == 0);
        let own_thread =
            static_thread && s.thread_by_thread.iter().enumerate().all(|(t, from)| t as u64 == *from);
        let static_reg = s.reg_by_thread.iter().all(|r| *r == 0);
        if own_thread && static_reg {
            let same = s.reg_by_reg.iter().enumerate().all(|(r, from)| r as u64 == *from);
            let cost =
                if self.whole_words(&s.reg_by_reg) { 0.0 } else { self.words(size.0) * self.prices.select };
            let steps = if same { Vec::new() } else { vec![Step::Rename { from: s.reg_by_reg }] };
            return Some(Conversion { steps, cost });
        }
        if own_thread {
            let choices = |m: &&Move| matches!((m.src, m.dst), (Slot::Reg(_), Slot::Lane(_) | Slot::Warp(_)));
            let ways: u64 = self.moves.iter().filter(choices).map(|m| m.extent).product();
            let cost = self.words(size.0) * (ways - 1) as f64 * self.prices.select;
            let steps = vec![Step::Select { by_reg: s.reg_by_reg, by_thread: s.reg_by_thread }];
            return Some(Conversion { steps, cost });
        }
        let warp = |t: u64| t / self.lanes;
        let inside = s.thread_by_thread.iter().enumerate().all(|(t, from)| warp(t as u64) == warp(*from));
        if !static_reg || !inside {
            return None;
        }
        let moved = if self.whole_words(&s.reg_by_reg) && self.whole_sources(&s.thread_by_reg) {
            self.words(size.0)
        } else {
            size.0 as f64
        };
        let step =
            Step::Shuffle { from: s.reg_by_reg, by_reg: s.thread_by_reg, by_thread: s.thread_by_thread };
        Some(Conversion { steps: vec![step], cost: moved * self.prices.shuffle })
    }

    /// Elements that share a 32-bit word still share one, in order.
    fn whole_words(&self, from: &[u64]) -> bool {
        let per = (32 / self.bits.min(32)) as usize;
        from.chunks(per).all(|w| w[0] % per as u64 == 0 && w.iter().zip(w[0]..).all(|(a, b)| *a == b))
    }

    fn whole_sources(&self, by_reg: &[u64]) -> bool {
        let per = (32 / self.bits.min(32)) as usize;
        by_reg.chunks(per).all(|w| w.iter().all(|t| *t == w[0]))
    }

    fn sources(&self, (regs, threads): (u64, u64)) -> Sources {
        let mut s = Sources {
            reg_by_reg: vec![0; regs as usize],
            reg_by_thread: vec![0; threads as usize],
            thread_by_reg: vec![0; regs as usize],
            thread_by_thread: vec![0; threads as usize],
        };
        let add = |table: &mut [u64], stride: u64, extent: u64, step: u64| {
            table.iter_mut().enumerate().for_each(|(i, v)| *v += i as u64 / stride % extent * step);
        };
        for m in &self.moves {
            match (m.src, m.dst) {
                (Slot::Reg(from), Slot::Reg(to)) => add(&mut s.reg_by_reg, to, m.extent, from),
                (Slot::Reg(from), Slot::Lane(to) | Slot::Warp(to)) => {
                    add(&mut s.reg_by_thread, to, m.extent, from)
                }
                (Slot::Lane(from) | Slot::Warp(from), Slot::Reg(to)) => {
                    add(&mut s.thread_by_reg, to, m.extent, from)
                }
                (Slot::Lane(from) | Slot::Warp(from), Slot::Lane(to) | Slot::Warp(to)) => {
                    add(&mut s.thread_by_thread, to, m.extent, from);
                }
                _ => {}
            }
        }
        // Of several copies a thread reads the one nearest to itself: the copy with its own digit.
        for d in self.src_rep.iter().filter(|d| d.axis == Axis::Thr) {
            add(&mut s.thread_by_thread, d.stride, d.extent, d.stride);
        }
        s
    }

    /// Swaps lane bits that must become register bits with register bits that must become lane bits; what is left
    /// needs no exchange.
    fn exchange(&mut self) -> Option<Vec<Step>> {
        if self.src_rep != self.dst_rep {
            return None;
        }
        let leaving = |m: &Move| matches!((m.src, m.dst), (Slot::Lane(_), Slot::Reg(_)));
        let coming = |m: &Move| matches!((m.src, m.dst), (Slot::Reg(_), Slot::Lane(_)));
        // A butterfly pairs lanes that differ in one bit of their number.
        let even = |s: Slot| !matches!(s, Slot::Lane(stride) if !stride.is_power_of_two());
        let odd = |m: &Move| (leaving(m) || coming(m)) && (m.extent != 2 || !even(m.src) || !even(m.dst));
        let count = |f: &dyn Fn(&Move) -> bool| self.moves.iter().filter(|m| f(m)).count();
        if self.moves.iter().any(odd) || count(&leaving) != count(&coming) || count(&leaving) == 0 {
            return None;
        }
        let mut steps = Vec::new();
        while let Some(out) = self.moves.iter().position(leaving) {
            let Slot::Lane(lane) = self.moves[out].src else { return None };
            // The bit that belongs on this very lane bit saves the shuffle afterwards.
            let home = |m: &Move| coming(m) && m.dst == Slot::Lane(lane);
            let back = self.moves.iter().position(home).or_else(|| self.moves.iter().position(coming))?;
            let Slot::Reg(reg) = self.moves[back].src else { return None };
            self.moves[out].src = Slot::Reg(reg);
            self.moves[back].src = Slot::Lane(lane);
            steps.push(Step::Exchange { lane, reg });
        }
        Some(steps)
    }
}

/// The cheapest detour: any layout of the tile in memory that free candidates offer, rows along either dim.
fn through_shared(
    src: &Layout,
    dst: &Layout,
    element_bytes: u64,
    prices: &Prices,
) -> Result<Conversion, String> {
    let names: Vec<(&str, u64)> = src.dims.iter().map(|d| (d.name.as_str(), d.extent())).collect();
    let mut best: Option<Conversion> = None;
    for fast in 0..names.len() {
        let mut order = names.clone();
        let last = order.remove(fast);
        order.push(last);
        for candidate in free_candidates(&order, element_bytes) {
            let found = detour(src, dst, candidate, element_bytes, prices)?;
            if best.as_ref().is_none_or(|b| found.cost < b.cost) {
                best = Some(found);
            }
        }
    }
    best.ok_or_else(|| "the tile has no dim".to_string())
}

fn detour(
    src: &Layout,
    dst: &Layout,
    c: Candidate,
    element_bytes: u64,
    prices: &Prices,
) -> Result<Conversion, String> {
    let (store, stored) = side(src, &c.shared, element_bytes, false, prices)?;
    let (load, loaded) = side(dst, &c.shared, element_bytes, true, prices)?;
    let scope = scope(src, dst, prices.banks.lanes);
    let sync = if scope == Scope::Warp { 1.0 } else { prices.barrier };
    let step = Step::Shared { tile: c.shared, name: c.name, store, load, scope };
    Ok(Conversion { steps: vec![step], cost: stored + sync + loaded })
}

/// The cheapest way of one half of a detour, and its price for one warp: an issue slot an instruction, and the phases
/// of the banks.
fn side(
    frag: &Layout,
    tile: &Shared,
    element_bytes: u64,
    load: bool,
    prices: &Prices,
) -> Result<(Access, f64), String> {
    let relation = relate(frag, &tile.layout).map_err(|why| why.to_string())?;
    let limits =
        VectorLimits { max_bytes: prices.max_bytes, align: tile.align, xor_base: tile.xor.map(|x| x.base) };
    let vector = vector_width(&relation, element_bytes, &limits);
    let found = conflicts(&relation, tile, element_bytes, vector, &prices.banks);
    let warps = frag.size(Axis::Thr).div_ceil(prices.banks.lanes).max(1) as f64;
    let phase = if load { prices.shared_load } else { prices.shared_store };
    let price = |accesses: u64, cycles: u64| (accesses as f64 + phase * cycles as f64) / warps;
    let mut best = (Access::Vector(vector), price(found.accesses, found.cycles));
    for m in prices.moves.iter().filter(|m| m.loads == load && m.element_bytes == element_bytes) {
        let Some(fit) = m.fit(frag, tile, &prices.banks) else { continue };
        let cost = price(fit.blocks.div_ceil(m.blocks), fit.blocks * fit.ways);
        if cost < best.1 {
            best = (Access::Blocks(m.name.clone()), cost);
        }
    }
    Ok(best)
}

/// The smallest team inside which all elements stay.
fn scope(src: &Layout, dst: &Layout, lanes: u64) -> Scope {
    let Ok(relation) = relate(src, dst) else { return Scope::Team };
    let wide =
        |axis: Axis| relation.pieces.iter().any(|p| (p.src.0 == axis || p.dst.0 == axis) && p.src != p.dst);
    if wide(Axis::Cta) || src.rep.iter().chain(&dst.rep).any(|d| d.axis == Axis::Cta) {
        return Scope::Cluster;
    }
    if wide(Axis::Group) || src.rep.iter().chain(&dst.rep).any(|d| d.axis == Axis::Group) {
        return Scope::Block;
    }
    let stays = |m: &Move| match (m.src, m.dst) {
        (Slot::Warp(_), _) | (_, Slot::Warp(_)) => m.src == m.dst,
        (Slot::Other(..), _) | (_, Slot::Other(..)) => false,
        _ => true,
    };
    let inside = relation.pieces.iter().flat_map(|p| cut(p, lanes)).all(|m| stays(&m));
    let copies = |d: &Digit| d.axis == Axis::Thr && d.stride * d.extent > lanes;
    let crossing = src.rep != dst.rep && src.rep.iter().chain(&dst.rep).any(copies);
    if inside && !crossing { Scope::Warp } else { Scope::Team }
}
