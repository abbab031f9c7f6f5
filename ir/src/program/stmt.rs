//! Statements: the tree that holds control flow and all effects.

use super::{Args, BufferId, ExprId, LocalId, Mem, Op, ReducerId, TeamId};
use crate::span::Span;
use smallvec::SmallVec;

pub type Block = Vec<Stmt>;

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
    /// Pipeline stage and rank within its loop's body, written by the plan.
    pub stage: Option<(i32, i32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Update {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopKind {
    Serial,
    /// in order, body repeated by the back end
    Unroll,
    NoUnroll,
    /// lanes must be independent
    Vectorized,
    /// serial meaning; `stages` is an upper bound
    Pipelined {
        stages: Option<u32>,
    },
}

/// A token that lives across iterations: `carry (held: slot(ab)? = none)`. `next` gives the new value.
#[derive(Clone, Debug, PartialEq)]
pub struct Carry {
    pub local: LocalId,
    pub init: Option<LocalId>,
}

/// One range of a loop's domain; consecutive segments share one pipeline without a drain between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    pub lo: ExprId,
    pub hi: ExprId,
    pub step: ExprId,
    /// What the loop's `named` constants are here, parallel to them.
    pub values: SmallVec<[ExprId; 1]>,
}

#[derive(Clone, Debug)]
pub struct Role {
    pub team: TeamId,
    /// `role math as g`: the body runs once for each group of the team, with `g` its number.
    pub group: Option<LocalId>,
    pub body: Block,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StmtKind {
    /// Names a value; the first definition of a `let` or `var`.
    Let {
        local: LocalId,
        value: ExprId,
    },
    /// A `var` without a value; reading it before an assignment is an error.
    Declare {
        local: LocalId,
    },
    /// A buffer comes to life, its contents undefined.
    Buffer {
        buffer: BufferId,
    },
    /// A reducer comes to life at its identity.
    Reducer {
        reducer: ReducerId,
    },
    /// `x = e`: value and box.
    Assign {
        local: LocalId,
        value: ExprId,
    },
    /// `x op= e`: an invalid element of `e` leaves `x` as it is, and `x` keeps its box.
    Update {
        local: LocalId,
        op: Update,
        value: ExprId,
    },
    /// One element of memory.
    Store {
        mem: Mem,
        index: Args,
        value: ExprId,
    },
    Op {
        results: SmallVec<[LocalId; 2]>,
        op: Op,
    },

    If {
        cond: ExprId,
        then: Block,
        other: Block,
    },
    For {
        var: LocalId,
        kind: LoopKind,
        /// Constants that each segment gives a value of its own: `seg(0..m: mask = true; m..n: mask = false)`.
        named: SmallVec<[LocalId; 1]>,
        segments: SmallVec<[Segment; 1]>,
        carry: Vec<Carry>,
        body: Block,
    },
    While {
        cond: ExprId,
        body: Block,
    },
    /// Every index tuple once, in any order; extents are block-uniform.
    Parallel {
        vars: SmallVec<[LocalId; 3]>,
        extents: Args,
        body: Block,
    },
    Break,
    Continue,
    /// The carried token's value for the next iteration.
    Next {
        carry: LocalId,
        value: Option<LocalId>,
    },
    /// Consecutive `role` statements: they run side by side and join at the end.
    Roles(Vec<Role>),
}

impl Segment {
    /// A range that names no constants.
    pub fn plain(lo: ExprId, hi: ExprId, step: ExprId) -> Segment {
        Segment { lo, hi, step, values: SmallVec::new() }
    }
}

impl Stmt {
    pub fn new(kind: StmtKind, span: Span) -> Stmt {
        Stmt { kind, span, stage: None }
    }
}

impl Update {
    pub const fn binary(self) -> super::BinOp {
        use super::BinOp;
        match self {
            Update::Add => BinOp::Add,
            Update::Sub => BinOp::Sub,
            Update::Mul => BinOp::Mul,
            Update::Div => BinOp::Div,
            Update::Rem => BinOp::Rem,
            Update::And => BinOp::And,
            Update::Or => BinOp::Or,
            Update::Xor => BinOp::Xor,
            Update::Shl => BinOp::Shl,
            Update::Shr => BinOp::Shr,
        }
    }
}
