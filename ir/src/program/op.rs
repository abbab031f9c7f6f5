//! Ops: everything that moves data between memories, combines elements, crosses threads or orders agents.
//!
//! One row an op here, one row an op in [`crate::effects`]. An op stands in a statement with its result locals
//! ([`super::StmtKind::Op`]); its operands are expressions.

use super::{
    ArgId, Args, BufferId, CombineId, Elem, ExprId, LocalId, QueueId, ReducerId, RingId, TeamId, TurnId,
};
use smallvec::SmallVec;

/// A memory that can be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mem {
    /// A tensor parameter.
    Tensor(ArgId),
    /// `shared`, `fragment` or per-thread array.
    Buffer(BufferId),
    /// Field `field` of the ring slot that the token holds.
    Slot { token: LocalId, field: u8 },
}

/// A box of memory, read or written as a tile. Axes of the tile are the axes that are not dropped, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub mem: Mem,
    pub axes: SmallVec<[RegionAxis; 4]>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RegionAxis {
    /// One index; the axis is dropped.
    At(ExprId),
    /// `start +: len limit m clip low`; `:` is a span of the whole axis.
    Span { start: ExprId, len: u32, limit: Option<ExprId>, clip_low: bool },
    /// Indices from a 1-D tile; an element is invalid where its index is.
    Gather { index: ExprId, len: u32 },
    /// An inserted axis of extent 1 (no memory axis).
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combiner {
    Add,
    Mul,
    Min,
    Max,
    And,
    Or,
    Xor,
    User(CombineId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// the operands' own type
    Full,
    Tf32,
}

/// What a product does with what its accumulator held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// `c += a @ b`
    Accumulate,
    /// `c = a @ b`
    Overwrite,
    /// overwrites where the condition holds, accumulates elsewhere
    When(ExprId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShuffleKind {
    /// value of lane `lane`
    Index,
    Up,
    Down,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoteKind {
    Any,
    All,
    /// u32 or u64 mask of the warp
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    /// `atomic_cas(place, expected, new)`
    CompareExchange,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    Element { mem: Mem, index: Args },
    Region(Region),
}

/// The threads that a collective joins.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// thread axes, by their locals, in the order of the fold (last fastest)
    Axes(SmallVec<[LocalId; 2]>),
    Team(Team),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Team {
    Warp,
    Group,
    Block,
    Cluster,
    Named(TeamId),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Text {
    Str(String),
    Value(ExprId),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    // tile level
    /// Region → tile. `pad` makes the tile full.
    Read {
        from: Region,
        pad: Option<ExprId>,
    },
    /// Tile (or scalar, stretched) → region; valid elements only.
    Write {
        to: Region,
        value: ExprId,
    },
    /// `into` is a mutable tile local; see [`Init`].
    Gemm {
        a: ExprId,
        b: ExprId,
        into: LocalId,
        init: Init,
        precision: Precision,
    },
    /// Valid elements along `axis` (all axes if `None`, giving scalars) folded in ascending order from the identity.
    Reduce {
        comb: Combiner,
        inputs: Args,
        axis: Option<u8>,
    },
    Scan {
        comb: Combiner,
        inputs: Args,
        axis: u8,
        reverse: bool,
        exclusive: bool,
    },
    /// `r op= values` or `r[index] op= values`: folds scalars, or all valid elements of tiles, into a reducer.
    Fold {
        reducer: ReducerId,
        index: Args,
        values: Args,
    },
    /// The first read of a reducer: joins it over its threads and gives its parts.
    Join {
        reducer: ReducerId,
    },

    // thread level and collectives
    AllReduce {
        comb: Combiner,
        inputs: Args,
        over: Over,
    },
    Shuffle {
        kind: ShuffleKind,
        value: ExprId,
        lane: ExprId,
        width: Option<u32>,
    },
    Vote {
        kind: VoteKind,
        cond: ExprId,
        team: Team,
    },
    /// Evaluated on one thread, given to all.
    Once {
        value: ExprId,
    },
    /// As written by the user, or by the ordering pass in later stages.
    Barrier {
        team: Team,
    },

    /// The result, if asked for, is the value before.
    Atomic {
        op: AtomicOp,
        at: Place,
        value: ExprId,
        expected: Option<ExprId>,
    },
    Print {
        parts: Vec<Text>,
    },
    Assert {
        cond: ExprId,
        message: String,
    },

    // rings, queues, turns (DESIGN-NOTES section 1.2); results of the first two are tokens
    Acquire {
        ring: RingId,
    },
    Wait {
        ring: RingId,
    },
    Commit {
        token: LocalId,
    },
    Release {
        token: LocalId,
    },
    /// Completes all groups of the queue but the `keep` newest.
    Await {
        queue: QueueId,
        keep: u32,
    },
    Take {
        turn: TurnId,
    },
    Pass {
        turn: TurnId,
    },
    /// Region → slot field (bytes counted on the token) or, with a queue, region → memory in FIFO order.
    CopyAsync {
        from: Region,
        to: Region,
        pad: Option<ExprId>,
        queue: Option<QueueId>,
    },
    /// A product on an asynchronous matrix engine: lands by its queue's await.
    Issue {
        queue: QueueId,
        a: MatOperand,
        b: MatOperand,
        into: LocalId,
        init: Init,
        precision: Precision,
    },
    /// Makes generic writes visible to engines (`Proxy`) or pins registers before an issue (`Registers`).
    Fence {
        kind: FenceKind,
        team: Team,
    },
}

/// An operand of an asynchronous product: read in place from memory, or a fragment value.
#[derive(Clone, Debug, PartialEq)]
pub enum MatOperand {
    Memory { region: Region, transposed: bool },
    Value(ExprId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceKind {
    Proxy,
    Registers,
}

impl Combiner {
    pub const fn builtin_name(self) -> Option<&'static str> {
        Some(match self {
            Combiner::Add => "add",
            Combiner::Mul => "mul",
            Combiner::Min => "min",
            Combiner::Max => "max",
            Combiner::And => "and",
            Combiner::Or => "or",
            Combiner::Xor => "xor",
            Combiner::User(_) => return None,
        })
    }

    pub fn from_name(name: &str) -> Option<Combiner> {
        use Combiner::*;
        [Add, Mul, Min, Max, And, Or, Xor].into_iter().find(|c| c.builtin_name() == Some(name))
    }
}

impl AtomicOp {
    pub const ALL: [AtomicOp; 8] = [
        AtomicOp::Add,
        AtomicOp::Min,
        AtomicOp::Max,
        AtomicOp::And,
        AtomicOp::Or,
        AtomicOp::Xor,
        AtomicOp::Exchange,
        AtomicOp::CompareExchange,
    ];

    /// The function's name in the language.
    pub const fn name(self) -> &'static str {
        match self {
            AtomicOp::Add => "atomic_add",
            AtomicOp::Min => "atomic_min",
            AtomicOp::Max => "atomic_max",
            AtomicOp::And => "atomic_and",
            AtomicOp::Or => "atomic_or",
            AtomicOp::Xor => "atomic_xor",
            AtomicOp::Exchange => "atomic_exchange",
            AtomicOp::CompareExchange => "atomic_cas",
        }
    }
}

/// Elements that a user's combiner folds in a row under `math contract` before it joins what it has: associativity
/// allows it, and rounding errors of long rows stay those of short ones.
pub const FOLD_BLOCK: usize = 64;

/// Elements of a tile that `print` shows.
pub const PRINTED: usize = 64;

/// The type in which a fold runs before its result is rounded once to the element type.
pub fn fold_elem(comb: Combiner, elem: Elem) -> Elem {
    match comb {
        Combiner::Add | Combiner::Mul => elem.acc(),
        _ => elem,
    }
}
