//! Memories: tensors, workspaces, buffers and ring slots, with poison, in-flight marks and shadows.

use super::fault::{Exec, Fault, element_text, fault};
use super::shadow::{Access, Clash, Conflict, Shadow, Touch};
use super::value::Lanes;
use crate::codes;
use crate::program::{Elem, Mode};
use crate::span::Span;
use std::collections::HashMap;
use std::rc::Rc;

/// Never written since it came to life.
const POISON: u8 = 1;
/// An engine will write it at a time nobody knows.
const IN_FLIGHT: u8 = 2;

/// Index of a memory in its run.
pub(super) type MemId = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// A parameter or workspace with its mode in the kernel that runs.
    Global(Mode),
    /// One for the block.
    Block,
    /// One for each lane.
    Lane,
    Slot,
}

#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub name: Rc<str>,
    pub elem: Elem,
    pub home: Home,
    pub dims: Vec<i64>,
    pub strides: Vec<i64>,
    /// Elements of one lane's copy.
    pub copy: usize,
    pub bits: Vec<u64>,
    flags: Vec<u8>,
    shadow: Vec<Shadow>,
    /// Reads by other agents that a later read replaced.
    hidden: HashMap<usize, Vec<Touch>>,
}

/// Row-major strides.
pub(super) fn contiguous(dims: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d].max(1);
    }
    strides
}

/// Elements that the memories of a block hold together, each thread's own included, and its tiles likewise. Far more
/// than any machine has for a block; what is given out lazily would otherwise end the process when it is touched.
pub(super) const MOST_OF_A_BLOCK: usize = 1 << 25;

/// `n` times `value`, where the machine has room for it.
pub(super) fn filled<T: Clone>(value: T, n: usize) -> Exec<Vec<T>> {
    let mut out = room(n)?;
    out.resize(n, value);
    Ok(out)
}

/// An empty list that takes `n` elements.
pub(super) fn room<T>(n: usize) -> Exec<Vec<T>> {
    let mut out = Vec::new();
    match out.try_reserve_exact(n) {
        Ok(()) => Ok(out),
        Err(_) => Err(fault(codes::MEMORY, format!("the interpreter gets no memory for {n} elements"))
            .help("run it on smaller tensors, or as native code")),
    }
}

impl Memory {
    /// Fresh memory of a block that holds `held` elements already; every element is poisoned.
    pub fn fresh(
        name: &str,
        elem: Elem,
        home: Home,
        dims: Vec<i64>,
        copies: u32,
        tracked: bool,
        held: usize,
    ) -> Exec<Memory> {
        let copy = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d.max(0) as usize));
        let len = copy.and_then(|n| n.checked_mul(copies as usize));
        let (Some(copy), Some(len)) = (copy, len.filter(|n| n.saturating_add(held) <= MOST_OF_A_BLOCK))
        else {
            return Err(too_large(name, &dims, copies, held));
        };
        Ok(Memory {
            name: name.into(),
            elem,
            home,
            strides: contiguous(&dims),
            dims,
            copy,
            bits: filled(0, len)?,
            flags: filled(POISON, len)?,
            shadow: if tracked { filled(Shadow::default(), len)? } else { Vec::new() },
            hidden: HashMap::new(),
        })
    }

    /// Memory that holds a tensor's storage.
    pub fn tensor(
        name: &str,
        elem: Elem,
        dims: Vec<i64>,
        strides: Vec<i64>,
        bits: Vec<u64>,
        poison: &[bool],
    ) -> Exec<Memory> {
        let mut flags = filled(0, bits.len())?;
        for (flag, _) in flags.iter_mut().zip(poison).filter(|(_, p)| **p) {
            *flag = POISON;
        }
        let copy = bits.len();
        let home = Home::Global(Mode::In);
        let (shadow, hidden) = (Vec::new(), HashMap::new());
        Ok(Memory { name: name.into(), elem, home, dims, strides, copy, bits, flags, shadow, hidden })
    }

    /// Prepares for a launch that sees it with `mode`: new shadows, and poison if the kernel promises to write it.
    pub fn enter(&mut self, mode: Mode) -> Exec<()> {
        self.home = Home::Global(mode);
        self.hidden.clear();
        self.shadow.clear();
        if mode != Mode::In {
            if self.shadow.try_reserve_exact(self.bits.len()).is_err() {
                let message =
                    format!("the interpreter gets no memory to watch the writes to `{}`", self.name);
                return Err(fault(codes::MEMORY, message)
                    .named(&self.name)
                    .help("run it on smaller tensors, or as native code"));
            }
            self.shadow.resize(self.bits.len(), Shadow::default());
        }
        if mode == Mode::Out {
            self.flags.fill(POISON);
        }
        Ok(())
    }

    pub fn is_poison(&self, addr: usize) -> bool {
        self.flags[addr] & POISON != 0
    }

    /// Says of each element whether it holds nothing.
    pub fn poison_into(&self, out: &mut [bool]) {
        out.iter_mut().zip(&self.flags).for_each(|(out, flag)| *out = flag & POISON != 0);
    }

    /// Forgets all contents, as when a slot is acquired anew.
    pub fn wipe(&mut self, a: &Access) {
        self.flags.fill(POISON);
        for s in &mut self.shadow {
            *s = Shadow::default();
            s.write(a, super::shadow::MANY, false, &[]);
        }
    }

    /// The address of the element that a lane's subscripts name, if it is inside; `copy` picks the copy.
    pub fn addr(&self, index: &[Lanes], lane: u32, copy: u32) -> Option<usize> {
        let mut addr = 0;
        for ((i, &n), &stride) in index.iter().zip(&self.dims).zip(&self.strides) {
            let i = i.get(lane) as i64;
            if i < 0 || i >= n {
                return None;
            }
            addr += i * stride;
        }
        Some(addr as usize + self.lane_base(copy))
    }

    pub fn addr_of(&self, index: &[i64], copy: u32) -> Option<usize> {
        let mut addr = 0;
        for ((&i, &n), &stride) in index.iter().zip(&self.dims).zip(&self.strides) {
            if i < 0 || i >= n {
                return None;
            }
            addr += i * stride;
        }
        Some(addr as usize + self.lane_base(copy))
    }

    pub fn lane_base(&self, lane: u32) -> usize {
        if self.home == Home::Lane { self.copy * lane as usize } else { 0 }
    }

    /// The index of an address: exact where strides do not overlap.
    pub fn index_of(&self, addr: usize) -> Vec<i64> {
        let mut rest = if self.home == Home::Lane { addr % self.copy.max(1) } else { addr } as i64;
        let mut axes: Vec<usize> = (0..self.dims.len()).collect();
        axes.sort_by_key(|&d| (-self.strides[d], self.dims[d]));
        let mut index = vec![0; self.dims.len()];
        for d in axes {
            if self.strides[d] > 0 {
                index[d] = (rest / self.strides[d]).min(self.dims[d] - 1).max(0);
                rest -= index[d] * self.strides[d];
            }
        }
        index
    }

    fn about(&self, fault: Box<Fault>, addr: usize) -> Box<Fault> {
        fault.of(&self.name, self.index_of(addr))
    }

    pub fn text(&self, addr: usize) -> String {
        element_text(&self.name, &self.index_of(addr))
    }

    fn poisoned(&self, addr: usize) -> Box<Fault> {
        let text = self.text(addr);
        let f = if self.flags[addr] & IN_FLIGHT != 0 {
            fault(codes::READ_IN_FLIGHT, format!("{text} is read while a copy into it is in flight"))
                .help("wait for the slot, or await the queue, before the read")
        } else {
            let f = fault(codes::READ_POISON, format!("{text} is read, but nothing was written to it"));
            match self.home {
                Home::Global(Mode::Out) => {
                    f.help("an `out` tensor holds nothing on entry; make it `inout` to read it")
                }
                Home::Global(_) => f.help("write it in an earlier launch"),
                Home::Slot => f.help(
                    "fill all of the slot before it is read; `pad 0` fills what lies outside the tensor",
                ),
                _ => f.help("fill it before the read"),
            }
        };
        self.about(f, addr)
    }

    /// Reads an element; `spans` names the places of earlier accesses.
    pub fn read(&mut self, addr: usize, thread: u32, a: &Access, spans: &[Span]) -> Exec<u64> {
        if self.flags[addr] != 0 {
            return Err(self.poisoned(addr));
        }
        self.note_read(addr, thread, a, spans)?;
        Ok(self.bits[addr])
    }

    fn note_read(&mut self, addr: usize, thread: u32, a: &Access, spans: &[Span]) -> Exec<()> {
        let Some(shadow) = self.shadow.get_mut(addr) else { return Ok(()) };
        let (clash, hidden) = shadow.read(a, thread);
        if let Some(touch) = hidden {
            self.hidden.entry(addr).or_default().push(touch);
        }
        clash.map_or(Ok(()), |c| Err(self.race(addr, c, false, spans)))
    }

    pub fn write(&mut self, addr: usize, bits: u64, thread: u32, a: &Access, spans: &[Span]) -> Exec<()> {
        self.note_write(addr, thread, a, false, spans)?;
        self.flags[addr] = 0;
        self.bits[addr] = bits;
        Ok(())
    }

    /// The value before, for an atomic that is about to replace it.
    pub fn atomic(&mut self, addr: usize, thread: u32, a: &Access, spans: &[Span]) -> Exec<u64> {
        if self.flags[addr] != 0 {
            return Err(self.poisoned(addr));
        }
        self.note_write(addr, thread, a, true, spans)?;
        Ok(self.bits[addr])
    }

    fn note_write(&mut self, addr: usize, thread: u32, a: &Access, atomic: bool, spans: &[Span]) -> Exec<()> {
        if self.flags[addr] & IN_FLIGHT != 0 {
            let message = format!("{} is written while a copy into it is in flight", self.text(addr));
            return Err(self.about(fault(codes::CHANGED_IN_FLIGHT, message), addr));
        }
        let Some(shadow) = self.shadow.get_mut(addr) else { return Ok(()) };
        let hidden = self.hidden.get(&addr).map_or(&[][..], |h| h);
        let clash = shadow.write(a, thread, atomic, hidden);
        clash.map_or(Ok(()), |c| Err(self.race(addr, c, true, spans)))
    }

    /// Marks an element as the target of a copy in flight.
    pub fn launch_into(&mut self, addr: usize, thread: u32, a: &Access, spans: &[Span]) -> Exec<()> {
        self.note_write(addr, thread, a, false, spans)?;
        self.flags[addr] = POISON | IN_FLIGHT;
        Ok(())
    }

    /// The copy arrives.
    pub fn land(&mut self, addr: usize, bits: u64) {
        self.flags[addr] = 0;
        self.bits[addr] = bits;
    }

    /// The last write, where writes are tracked.
    pub fn last_write(&self, addr: usize) -> Option<(u32, u32)> {
        self.shadow.get(addr).map(|s| (s.write.epoch, s.write.span)).filter(|w| w.0 != 0)
    }

    fn race(&self, addr: usize, c: Clash, writes: bool, spans: &[Span]) -> Box<Fault> {
        let text = self.text(addr);
        let earlier = if c.earlier_writes { "written" } else { "read" };
        let now = if writes { "writes" } else { "reads" };
        let f = match c.kind {
            Conflict::Blocks => {
                let message = match (c.earlier_writes, writes) {
                    (true, true) => format!("two blocks write {text} in one launch"),
                    (true, false) => {
                        format!("a block reads {text}, which another block wrote in this launch")
                    }
                    (false, _) => format!("a block writes {text}, which another block read in this launch"),
                };
                fault(codes::RACE_BLOCKS, message)
                    .help("blocks are unordered: use atomics, another tensor or a second launch")
            }
            Conflict::Agents => fault(
                codes::RACE_ROLES,
                format!("one role {now} {text}, {earlier} by another, and nothing orders the two"),
            )
            .help("pass it through a ring, or order the roles with a turn or a barrier"),
            Conflict::Threads => fault(
                codes::RACE_THREADS,
                format!("a thread {now} {text}, {earlier} by another thread in the same statement"),
            )
            .help("put the two accesses into two statements, or a `barrier` between them"),
            Conflict::Lanes => fault(
                codes::VECTOR_DEPENDENCE,
                format!("an iteration of a `vectorized` loop {now} {text}, {earlier} by another iteration"),
            )
            .help("write `unroll` or a plain `for` where iterations depend on one another"),
        };
        let mut f = self.about(f, addr).label(format!("{} here", if writes { "written" } else { "read" }));
        if let Some(&span) = spans.get(c.span as usize) {
            f = f.also(span, format!("{earlier} here"));
        }
        if c.kind == Conflict::Blocks {
            f.other_epoch = Some(c.epoch);
        }
        match c.thread {
            Some(t) if matches!(c.kind, Conflict::Threads) => {
                f.value("the other thread's number", t.to_string())
            }
            _ => f,
        }
    }
}

fn too_large(name: &str, dims: &[i64], copies: u32, held: usize) -> Box<Fault> {
    let shape = dims.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let each = if copies > 1 { format!(" for each of {copies} threads") } else { String::new() };
    let message =
        format!("`{name}` takes [{shape}] elements{each}, more than the interpreter holds for a block");
    let f = fault(codes::MEMORY, message).named(name);
    let f = if held > 0 { f.value("what the block holds already", format!("{held} elements")) } else { f };
    f.help(format!("a block may hold {MOST_OF_A_BLOCK} elements: declare less memory, or have fewer threads"))
}
