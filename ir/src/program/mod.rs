//! The typed IR of every stage: arenas, handles, a tree of statements.
//!
//! A [`Program`] is specialised: no generics, no `fn`, no compile-time control is left in it. Names are only for
//! people; identity is the handle. Every expression has a type ([`Body::type_of`]), every entry a span. Fields for
//! later stages (teams, rings, layouts, homes, plan) exist from the start and are empty at stage `tile`.
//!
//! Programs are made by [`crate::builder`] (which `elab` uses too) and checked by [`crate::verify`]; nothing else
//! may push to the arenas.

mod expr;
mod op;
pub mod plan;
pub mod schedule;
mod stmt;
mod team;
mod types;
mod visit;

pub use expr::{Args, BinOp, Expr, ExprId, MathFn, SliceAxis, UnOp};
pub use op::{
    AtomicOp, Combiner, FOLD_BLOCK, FenceKind, Init, MatOperand, Mem, Op, Over, PRINTED, Place, Precision,
    Region, RegionAxis, ShuffleKind, Team, Text, VoteKind, fold_elem,
};
pub use stmt::{Block, Carry, LoopKind, Role, Segment, Stmt, StmtKind, Update};
pub use team::{
    Engine, Fill, Partial, Queue, QueueId, Ring, RingField, RingId, Spread, TeamDecl, TeamId, Turn, TurnId,
};
pub use types::{Elem, Shape, Type};
pub use visit::walk;

use crate::arena::{Arena, Handle};
use crate::layout::Shared;
use crate::span::Span;
use pantile_abi::DType;
use plan::Plan;
use smallvec::SmallVec;
use std::collections::HashSet;

pub type DimId = Handle<Dim>;
pub type ArgId = Handle<Arg>;
pub type LocalId = Handle<Local>;
pub type BufferId = Handle<Buffer>;
pub type ReducerId = Handle<Reducer>;
pub type CombineId = Handle<Combine>;
pub type IntrinsicId = Handle<Intrinsic>;
pub type KernelId = Handle<Kernel>;

/// One specialised entry with all that it needs.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub stage: Stage,
    /// The architecture that `target.*` was bound to.
    pub arch: String,
    pub combines: Arena<Combine>,
    pub intrinsics: Arena<Intrinsic>,
    pub kernels: Arena<Kernel>,
    /// What runs: an op, or a lone kernel as an op of one launch.
    pub entry: Host,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    #[default]
    Tile,
    Scheduled,
    Threaded,
    Final,
}

/// The common part of everything that holds expressions: their arena, their types, the locals they name.
#[derive(Clone, Debug, Default)]
pub struct Body {
    pub exprs: Arena<Expr>,
    /// Parallel to `exprs`.
    pub types: Vec<Type>,
    pub locals: Arena<Local>,
}

impl Body {
    pub fn type_of(&self, expr: ExprId) -> &Type {
        &self.types[expr.index()]
    }

    /// Whether an expression or one that it is made of is wanted. Each is asked once, however often it is shared.
    pub fn holds(&self, expr: ExprId, mut wanted: impl FnMut(&Expr, &Type) -> bool) -> bool {
        let (mut open, mut seen) = (vec![expr], HashSet::new());
        while let Some(e) = open.pop() {
            if seen.insert(e) {
                if wanted(&self.exprs[e], &self.types[e.index()]) {
                    return true;
                }
                self.exprs[e].operands(|o| open.push(o));
            }
        }
        false
    }

    /// The value of a constant of type `index`.
    pub fn index_constant(&self, expr: ExprId) -> Option<i64> {
        match self.exprs[expr] {
            Expr::Const { elem: Elem::Index, bits } => Some(bits as i64),
            _ => None,
        }
    }
}

/// A named value.
#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub ty: Type,
    pub kind: LocalKind,
    /// Where the plan puts a tile.
    pub home: Home,
    pub layout: Option<Shared>,
    /// The team that holds it; `None` is the whole block (tiles) or the thread (scalars).
    pub team: Option<TeamId>,
    pub partial: Option<Partial>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocalKind {
    Let,
    Var,
    /// loop variable, `parallel` index or a role's group number
    Loop,
    /// index of the grid's axis
    Grid(u8),
    /// index of a thread axis
    Thread(u8),
    /// slot token of a ring
    Token(RingId),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Home {
    /// not decided: a value
    #[default]
    Open,
    Shared,
    Fragment,
    /// per-thread array
    Thread,
    /// a ring's slots
    Ring(RingId),
    /// read in place by its only user
    Direct,
    /// CPU scratch
    Scratch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    #[default]
    In,
    Out,
    InOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum MathMode {
    #[default]
    Contract,
    Exact,
}

/// A dim or stride name, bound at launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Dim {
    pub name: String,
    pub stride: bool,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Arg {
    pub name: String,
    pub kind: ArgKind,
}

#[derive(Clone, Debug)]
pub enum ArgKind {
    Scalar(Elem),
    Tensor(Tensor),
}

/// Dims and strides are expressions of the kernel's body over [`Expr::Dim`] and constants.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub mode: Mode,
    pub elem: DType,
    pub dims: SmallVec<[ExprId; 4]>,
    /// in elements; `None` is row-major and contiguous
    pub strides: Option<SmallVec<[ExprId; 4]>>,
    /// Bytes, promised by the user of the base address and of strides other than 1.
    pub align: Option<u32>,
    /// Bytes that the code relies on of the base address alone: the launcher refuses others.
    pub base_align: Option<u32>,
    pub packed: Option<Packing>,
    /// opaque fragment-order pack for this operand of a product
    pub prepacked: Option<Operand>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packing {
    pub axis: u8,
    pub order: PackOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PackOrder {
    Linear,
    Gptq,
    Awq,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    A,
    B,
}

/// Memory of a block or thread, pinned by the user or placed by a pass.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub name: String,
    /// `Shared`, `Fragment`, `Thread` or `Scratch`
    pub home: Home,
    pub elem: DType,
    pub shape: Shape,
    pub align: Option<u32>,
    pub layout: Option<Shared>,
    pub team: Option<TeamId>,
    pub partial: Option<Partial>,
}

impl Buffer {
    /// Memory of which the text says no more than its home.
    pub fn new(name: String, home: Home, elem: DType, shape: Shape) -> Buffer {
        Buffer { name, home, elem, shape, align: None, layout: None, team: None, partial: None }
    }
}

/// `var s: reducer(welford) (f32, f32, f32)`
#[derive(Clone, Debug)]
pub struct Reducer {
    pub name: String,
    pub comb: Combiner,
    /// Scalars, or tiles for element-wise reducers; one for each part of the combiner's tuple.
    pub parts: SmallVec<[Type; 3]>,
}

#[derive(Clone, Debug, Default)]
pub struct Kernel {
    pub name: String,
    pub span: Span,
    pub math: MathMode,
    pub deterministic: bool,
    pub dims: Arena<Dim>,
    pub args: Arena<Arg>,
    pub body: Body,
    /// Launch conditions with their text.
    pub wheres: Vec<(ExprId, String)>,
    pub grid: Grid,
    /// `None`: the plan chooses.
    pub threads: Option<Threads>,
    pub buffers: Arena<Buffer>,
    pub reducers: Arena<Reducer>,
    pub teams: Arena<TeamDecl>,
    pub rings: Arena<Ring>,
    pub queues: Arena<Queue>,
    pub turns: Arena<Turn>,
    pub plan: Plan,
    pub stmts: Block,
}

/// Extents over dims and integer scalars; an empty grid is one block.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    pub extents: SmallVec<[ExprId; 3]>,
    /// Parallel to `extents`.
    pub locals: SmallVec<[LocalId; 3]>,
    pub cost: Option<ExprId>,
}

#[derive(Clone, Debug)]
pub struct Threads {
    /// The axes, slowest first where `ordered`.
    pub axes: SmallVec<[(LocalId, u32); 3]>,
    pub ordered: bool,
    /// Where the numbers of threads stand.
    pub span: Span,
}

impl Threads {
    pub fn count(&self) -> u32 {
        self.axes.iter().map(|&(_, n)| n).product()
    }
}

/// A pure scalar function: parameters, `let`s, results.
#[derive(Clone, Debug, Default)]
pub struct PureFn {
    pub body: Body,
    pub params: Vec<LocalId>,
    pub lets: Vec<(LocalId, ExprId)>,
    pub results: Vec<ExprId>,
}

/// A user's combiner: `params` are the left parts, then the right parts.
#[derive(Clone, Debug)]
pub struct Combine {
    pub name: String,
    pub span: Span,
    /// Constants, one for each part.
    pub identity: Vec<(Elem, u64)>,
    pub commutative: bool,
    pub func: PureFn,
}

#[derive(Clone, Debug)]
pub struct Intrinsic {
    pub name: String,
    pub span: Span,
    pub means: PureFn,
    pub bound: ErrorBound,
    pub spellings: Vec<Spelling>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorBound {
    Ulp(f64),
    Abs(f64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Spelling {
    pub backend: String,
    pub from: String,
    /// `None` with `open_ended`, or the same as `from`
    pub to: Option<String>,
    pub open_ended: bool,
    pub text: String,
}

/// The host side: parameters, workspaces, launches.
#[derive(Clone, Debug, Default)]
pub struct Host {
    pub name: String,
    pub span: Span,
    pub deterministic: bool,
    pub dims: Arena<Dim>,
    pub args: Arena<Arg>,
    pub body: Body,
    pub wheres: Vec<(ExprId, String)>,
    pub workspaces: Arena<Workspace>,
    pub steps: Vec<Step>,
    /// The entry is a kernel, not an `op`.
    pub lone: bool,
}

pub type WorkspaceId = Handle<Workspace>;

#[derive(Clone, Debug)]
pub struct Workspace {
    pub name: String,
    pub elem: DType,
    pub shape: SmallVec<[ExprId; 4]>,
    pub zeroed: bool,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub kind: StepKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StepKind {
    Launch { kernel: KernelId, args: Vec<LaunchArg> },
    If { cond: ExprId, then: Vec<Step>, other: Vec<Step> },
    For { var: LocalId, lo: ExprId, hi: ExprId, body: Vec<Step> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LaunchArg {
    /// A tensor parameter of the op.
    Arg(ArgId),
    Workspace(WorkspaceId),
    Scalar(ExprId),
}

impl Stage {
    pub const ALL: [Stage; 4] = [Stage::Tile, Stage::Scheduled, Stage::Threaded, Stage::Final];

    pub const fn name(self) -> &'static str {
        match self {
            Stage::Tile => "tile",
            Stage::Scheduled => "scheduled",
            Stage::Threaded => "threaded",
            Stage::Final => "final",
        }
    }

    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|s| s.name() == name)
    }
}

impl Local {
    pub fn new(name: impl Into<String>, ty: Type, kind: LocalKind) -> Local {
        Local { name: name.into(), ty, kind, home: Home::Open, layout: None, team: None, partial: None }
    }
}
