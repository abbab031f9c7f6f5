//! An agent: one flow of control of a block, with its locals, lanes and the stack of what it is in the middle of.
//!
//! A block starts with one agent; a `roles` statement runs one for each role or group of a role. All state that a
//! suspended agent needs stands here, so a role waits simply by not being stepped.

use super::eval::Memo;
use super::fault::Exec;
use super::frame::{Frame, LoopCtl};
use super::memory::MemId;
use super::reducer::ReducerState;
use super::shadow::Access;
use super::value::{Lanes, Mask, Value};
use crate::program::*;
use crate::span::Span;
use std::rc::Rc;

/// A local's value.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    pub value: Option<Value>,
    /// Lanes that have a value, where not all that may ask have.
    pub set: Option<Rc<Vec<bool>>>,
    /// Index of the lane context that it was declared in.
    pub depth: usize,
    /// Epoch of the last assignment.
    pub written: u32,
    /// Vectorized loop (by its first epoch) and lane of the last assignment.
    pub vec: Option<(u32, u16)>,
    /// Products on their way into it.
    pub in_flight: u32,
    /// Two roles assigned it, so nobody knows which value it holds.
    pub contested: bool,
}

impl Slot {
    /// Nothing about it needs a second look before it is read.
    pub fn is_plain(&self) -> bool {
        self.set.is_none() && self.in_flight == 0 && self.vec.is_none() && !self.contested
    }
}

/// What a lane is called in messages.
#[derive(Clone, Debug)]
pub(super) enum LaneKind {
    Threads,
    /// A role that works as one.
    Team,
    /// Iterations of a `parallel`: names and extents.
    Iterations(Rc<Vec<(String, i64)>>),
}

/// A set of lanes that execute together.
#[derive(Clone, Debug)]
pub(super) struct Ctx {
    pub width: u32,
    pub mask: Mask,
    /// Lanes of this agent; control flow starts with all of them.
    pub all: Mask,
    /// Number of enclosing divergent statements. While it is 0 every statement is a section of its own.
    pub divergent: u32,
    pub kind: LaneKind,
    /// Thread number of lane 0 where lanes run one after another.
    pub first_thread: u32,
    pub parallel: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct BufferSlot {
    pub mem: MemId,
    /// Context that its lanes count in.
    pub depth: usize,
}

pub(super) struct Agent<'p> {
    pub id: u8,
    pub name: String,
    pub team: Option<TeamId>,
    pub group: Option<u32>,
    pub frames: Vec<Frame<'p>>,
    pub ctx: Vec<Ctx>,
    pub loops: Vec<LoopCtl>,
    pub slots: Vec<Slot>,
    pub buffers: Vec<Option<BufferSlot>>,
    /// Buffers that belong to the agent around this role.
    pub inherited: Vec<bool>,
    pub reducers: Vec<Option<ReducerState>>,
    pub epoch: u32,
    pub section: u32,
    /// Per agent the last epoch that is ordered before what this one does next.
    pub seen: Vec<u32>,
    pub barriers: Vec<(u32, u32)>,
    pub vec: Option<(u32, u16)>,
    pub memo: Memo,
    pub span: Span,
    /// The current span's number, once something was touched.
    pub span_id: Option<u32>,
    /// What it waits for, and since which statement.
    pub waiting: Option<String>,
    /// Numbers of barriers it has arrived at and not yet left.
    pub arrived: Option<(BarrierKey, u64)>,
}

/// Who meets at a barrier between agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum BarrierKey {
    Block,
    Team(TeamId),
}

impl<'p> Agent<'p> {
    pub fn new(kernel: &Kernel, memo: Memo, ctx: Ctx) -> Agent<'p> {
        Agent {
            id: 0,
            name: "the block".into(),
            team: None,
            group: None,
            frames: Vec::new(),
            ctx: vec![ctx],
            loops: Vec::new(),
            slots: vec![Slot::default(); kernel.body.locals.len()],
            buffers: vec![None; kernel.buffers.len()],
            inherited: Vec::new(),
            reducers: kernel.reducers.iter().map(|_| None).collect(),
            epoch: 0,
            section: 0,
            seen: vec![0],
            barriers: Vec::new(),
            vec: None,
            memo,
            span: Span::default(),
            span_id: None,
            waiting: None,
            arrived: None,
        }
    }

    pub fn top(&self) -> &Ctx {
        &self.ctx[self.ctx.len() - 1]
    }

    pub fn top_mut(&mut self) -> &mut Ctx {
        let last = self.ctx.len() - 1;
        &mut self.ctx[last]
    }

    pub fn depth(&self) -> usize {
        self.ctx.len() - 1
    }

    /// Tile statements and collectives act once for all lanes.
    pub fn is_collective(&self) -> bool {
        let ctx = self.top();
        ctx.width == 1 || ctx.divergent == 0
    }

    /// The thread number under which a collective access is noted.
    pub fn team_thread(&self) -> u32 {
        let ctx = self.top();
        if ctx.all.len() == 1 { ctx.first_thread + ctx.all.lane(0) } else { super::shadow::MANY }
    }

    pub fn access(&self, block: u32) -> Access<'_> {
        Access {
            agent: self.id,
            epoch: self.epoch,
            section: self.section,
            block,
            seen: &self.seen,
            span: self.span_id.unwrap_or(0),
            vec: self.vec,
            barriers: &self.barriers,
        }
    }

    /// What happened before `other` also happened before this agent's next step.
    pub fn join(&mut self, other: &[u32]) {
        if self.seen.len() < other.len() {
            self.seen.resize(other.len(), 0);
        }
        for (mine, &theirs) in self.seen.iter_mut().zip(other) {
            *mine = (*mine).max(theirs);
        }
    }

    /// Everything that happened before now, this agent's own past included.
    pub fn clock(&self) -> Vec<u32> {
        let mut clock = self.seen.clone();
        let me = usize::from(self.id);
        if clock.len() <= me {
            clock.resize(me + 1, 0);
        }
        clock[me] = self.epoch;
        clock
    }

    /// Indices of a lane by name, for messages.
    pub fn lane_names(&self, kernel: &Kernel, lane: u32) -> Vec<(String, i64)> {
        let ctx = self.top();
        match &ctx.kind {
            LaneKind::Threads => {
                let Some(threads) = &kernel.threads else { return Vec::new() };
                let axes =
                    threads.axes.iter().map(|&(l, n)| (kernel.body.locals[l].name.clone(), i64::from(n)));
                unravel(i64::from(lane), &axes.collect::<Vec<_>>())
            }
            LaneKind::Team => Vec::new(),
            LaneKind::Iterations(axes) => unravel(i64::from(ctx.first_thread + lane), axes),
        }
    }

    /// A scalar's values for the lanes of the current context.
    pub fn seen_from(&self, lanes: Lanes, depth: usize) -> Exec<Lanes> {
        if matches!(lanes, Lanes::One(_)) || depth == self.depth() {
            return Ok(lanes);
        }
        let outer = &self.ctx[depth];
        lanes.uniform(&outer.mask).map(Lanes::One).ok_or_else(|| {
            super::fault::fault(
                crate::codes::NOT_UNIFORM,
                "a value that differs between threads is used where the whole block acts together",
            )
            .help("`parallel` and roles act for the block; give them a value all threads share")
        })
    }
}

/// Row-major coordinates of a number.
pub(super) fn unravel(n: i64, axes: &[(String, i64)]) -> Vec<(String, i64)> {
    let mut rest = n;
    let mut out: Vec<(String, i64)> = Vec::with_capacity(axes.len());
    for (name, extent) in axes.iter().rev() {
        let extent = (*extent).max(1);
        out.push((name.clone(), rest % extent));
        rest /= extent;
    }
    out.reverse();
    out
}
