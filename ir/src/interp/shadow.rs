//! Who touched an element last: the data behind every race report.
//!
//! Time is counted in *epochs*, one for each statement that starts in uniform flow (see `step`). Two accesses to one
//! element, at least one of them a write and not both atomic, conflict if
//! * they are of different blocks of a launch,
//! * or of different agents (roles) and no ring, turn or barrier orders the earlier before the later,
//! * or of different threads in one unordered section (a statement in uniform flow, a whole divergent statement,
//!   a whole `parallel`) with no barrier of their team between them,
//! * or of different lanes of a `vectorized` loop.

/// Stands for several threads at once.
pub(super) const MANY: u32 = 0x00ff_ffff;

const ATOMIC: u16 = 1;
/// An atomic of an earlier block came before this one.
const EARLIER: u16 = 2;

/// One access. `epoch` 0 is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touch {
    pub epoch: u32,
    /// agent in the top byte, thread below
    who: u32,
    /// index into the run's table of spans
    pub span: u32,
    /// lane of a vectorized loop + 1, or 0
    vec: u16,
    flags: u16,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shadow {
    pub write: Touch,
    pub read: Touch,
    /// The last read by an earlier block.
    earlier_read: (u32, u32),
}

/// What an agent knows while it executes a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access<'a> {
    pub agent: u8,
    pub epoch: u32,
    /// Where the current unordered section began.
    pub section: u32,
    /// First epoch of the block.
    pub block: u32,
    /// Per agent the last epoch that happened before now.
    pub seen: &'a [u32],
    pub span: u32,
    /// First epoch of the innermost vectorized loop, and its lane.
    pub vec: Option<(u32, u16)>,
    /// Barriers inside the section: epoch, and threads of each team.
    pub barriers: &'a [(u32, u32)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conflict {
    Blocks,
    Agents,
    Threads,
    Lanes,
}

/// An earlier access that is not ordered before this one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clash {
    pub kind: Conflict,
    pub epoch: u32,
    pub span: u32,
    /// The earlier access's thread, where it was one.
    pub thread: Option<u32>,
    pub earlier_writes: bool,
}

impl Touch {
    fn new(a: &Access, thread: u32, flags: u16) -> Touch {
        let vec = a.vec.map_or(0, |(_, lane)| lane.wrapping_add(1));
        Touch { epoch: a.epoch, who: u32::from(a.agent) << 24 | thread, span: a.span, vec, flags }
    }

    fn agent(self) -> u8 {
        (self.who >> 24) as u8
    }

    fn thread(self) -> u32 {
        self.who & MANY
    }

    fn is_atomic(self) -> bool {
        self.flags & ATOMIC != 0
    }

    /// Whether this access, seen from a new one of another kind, is not ordered before it.
    fn conflict(self, a: &Access, thread: u32) -> Option<Conflict> {
        if self.epoch == 0 {
            return None;
        }
        if self.epoch < a.block || self.flags & EARLIER != 0 {
            return Some(Conflict::Blocks);
        }
        if self.agent() != a.agent {
            let seen = a.seen.get(usize::from(self.agent())).copied().unwrap_or(0);
            return (self.epoch > seen).then_some(Conflict::Agents);
        }
        if let Some((start, lane)) = a.vec
            && self.epoch >= start
            && self.vec != 0
            && self.vec != lane.wrapping_add(1)
        {
            return Some(Conflict::Lanes);
        }
        if self.epoch < a.section {
            return None;
        }
        let (t, u) = (self.thread(), thread);
        let same = t == u && t != MANY;
        let fenced =
            || a.barriers.iter().any(|&(at, size)| at > self.epoch && t / size == u / size && t != MANY);
        (!same && !fenced()).then_some(Conflict::Threads)
    }

    fn clash(self, kind: Conflict, earlier_writes: bool) -> Clash {
        let thread = Some(self.thread()).filter(|&t| t != MANY);
        Clash { kind, epoch: self.epoch, span: self.span, thread, earlier_writes }
    }

    fn in_section(self, a: &Access) -> bool {
        self.agent() == a.agent && self.epoch >= a.section
    }
}

impl Shadow {
    /// Notes a read. The second part is a read of another agent that the new one would hide.
    pub fn read(&mut self, a: &Access, thread: u32) -> (Option<Clash>, Option<Touch>) {
        let clash = self.write.conflict(a, thread).map(|kind| self.write.clash(kind, true));
        let mut new = Touch::new(a, thread, 0);
        let old = self.read;
        let mut hidden = None;
        if old.epoch != 0 {
            if old.epoch < a.block {
                self.earlier_read = (old.epoch, old.span);
            } else if old.agent() != a.agent {
                hidden = Some(old);
            } else if old.in_section(a) && old.thread() != thread {
                new.who |= MANY;
            }
        }
        self.read = new;
        (clash, hidden)
    }

    /// Notes a write; `hidden` are reads that [`Shadow::read`] handed out.
    pub fn write(&mut self, a: &Access, thread: u32, atomic: bool, hidden: &[Touch]) -> Option<Clash> {
        let mut clash = self.clash_with_reads(a, thread, hidden);
        let old = self.write;
        let both_atomic = atomic && old.is_atomic();
        if !both_atomic {
            clash = clash.or(old.conflict(a, thread).map(|kind| old.clash(kind, true)));
        }
        let mut new = Touch::new(a, thread, if atomic { ATOMIC } else { 0 });
        if both_atomic {
            if old.epoch < a.block {
                new.flags |= EARLIER;
            }
            new.flags |= old.flags & EARLIER;
            if old.in_section(a) && old.thread() != thread {
                new.who |= MANY;
            }
        }
        self.write = new;
        clash
    }

    fn clash_with_reads(&self, a: &Access, thread: u32, hidden: &[Touch]) -> Option<Clash> {
        let (epoch, span) = self.earlier_read;
        if epoch != 0 {
            let kind = Conflict::Blocks;
            return Some(Clash { kind, epoch, span, thread: None, earlier_writes: false });
        }
        let mut reads = std::iter::once(&self.read).chain(hidden);
        reads.find_map(|r| r.conflict(a, thread).map(|kind| r.clash(kind, false)))
    }
}
