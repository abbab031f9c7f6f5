//! What ops and statements do to memory, to values in flight, and to the order of agents.
//!
//! One table ([`table::effects`]), one row an op. Pipelining, versioning, sharing of memory, ordering and `explain`
//! all ask here; none of them may look into an op for itself. The table says what is touched and how a touch
//! completes; whether two touches conflict is the asker's to decide.

mod table;

pub use table::{effects, stmt_effects, sync};

use crate::layout::Layout;
use crate::program::*;
use crate::span::Span;
use smallvec::SmallVec;

/// What is touched. Values of tiles are objects too: accumulators and operands in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Obj {
    /// `shared` memory of the block
    Shared(BufferId),
    /// an array of each thread
    Array(BufferId),
    /// a pinned fragment or a CPU's scratch
    Pinned(BufferId),
    /// a tile of the ring slot that a token holds
    Slot {
        token: LocalId,
        field: u8,
    },
    /// a tile value
    Frag(LocalId),
    /// a tensor parameter; workspaces are tensors to a kernel
    Global(ArgId),
    Reducer(ReducerId),
}

/// The part of an object, with indices as expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Whole,
    Region(SmallVec<[RegionAxis; 4]>),
    Element(Args),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Read,
    Write,
    /// read and written by an addition that commutes with its like
    Accumulate,
    Atomic(Scope),
}

/// Among whom an atomic is one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Block,
    Device,
}

/// Through which path memory is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proxy {
    /// ordinary accesses of threads, also those that complete by a queue
    Generic,
    /// copy engines and the operand reads of matrix engines
    Async,
}

/// When a touch is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Done {
    Now,
    /// when the queue's await says so
    Fifo(QueueId),
    /// when the bytes counted on the token have arrived
    Counted(LocalId),
}

/// Which thread touches which element.
#[derive(Clone, Debug, PartialEq)]
pub enum Owner {
    /// as the layout says; `None` until a plan has laid it out
    PerThread(Option<Layout>),
    /// each thread for itself, by its own indices
    Thread,
    /// one elected thread
    Elected,
    Engine,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    pub obj: Obj,
    pub part: Part,
    pub kind: Kind,
    pub proxy: Proxy,
    pub done: Done,
    /// The role's team; `None` is the whole block.
    pub team: Option<TeamId>,
    pub owner: Owner,
    pub span: Span,
}

pub type Accesses = SmallVec<[Access; 4]>;

/// What an op does to the order of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    Barrier(Team),
    Acquire(RingId),
    Commit(LocalId),
    Wait(RingId),
    Release(LocalId),
    Await {
        queue: QueueId,
        keep: u32,
    },
    ProxyFence(Team),
    RegFence(Team),
    Take(TurnId),
    Pass(TurnId),
    /// every thread of the team must arrive, since values cross between them
    Exchange(Team),
}

/// Where an op stands.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    pub kernel: &'a Kernel,
    pub team: Option<TeamId>,
    pub span: Span,
}
