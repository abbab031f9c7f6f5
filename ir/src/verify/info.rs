//! What the verifier found out, for those who compile the program.

use crate::diag::Diagnostics;
use crate::program::ExprId;

/// Teams in ascending order; a value that is constant over one is constant over all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    Thread,
    Warp,
    Group,
    Block,
    Cluster,
    Grid,
}

impl Level {
    pub const fn name(self) -> &'static str {
        match self {
            Level::Thread => "thread",
            Level::Warp => "warp",
            Level::Group => "group",
            Level::Block => "block",
            Level::Cluster => "cluster",
            Level::Grid => "grid",
        }
    }
}

/// A set of axes by their numbers; [`AxisSet::UNKNOWN`] is any dependence at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct AxisSet(pub u8);

impl AxisSet {
    pub const NONE: AxisSet = AxisSet(0);
    pub const UNKNOWN: AxisSet = AxisSet(0xff);

    pub fn one(axis: u8) -> AxisSet {
        if axis < 8 { AxisSet(1 << axis) } else { AxisSet::UNKNOWN }
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn meets(self, other: AxisSet) -> bool {
        self.0 & other.0 != 0
    }

    pub fn with(self, other: AxisSet) -> AxisSet {
        AxisSet(self.0 | other.0)
    }

    pub fn without(self, other: AxisSet) -> AxisSet {
        AxisSet(self.0 & !other.0)
    }
}

/// Over what a value, or the control that leads to a statement, is constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Uniformity {
    /// The largest team over which it is constant for certain.
    pub level: Level,
    /// Thread axes along which it may differ.
    pub threads: AxisSet,
    /// Grid axes along which it may differ.
    pub grid: AxisSet,
}

impl Uniformity {
    /// The same everywhere.
    pub const CONSTANT: Uniformity =
        Uniformity { level: Level::Grid, threads: AxisSet::NONE, grid: AxisSet::NONE };
    /// One value for each block.
    pub const BLOCK: Uniformity =
        Uniformity { level: Level::Block, threads: AxisSet::NONE, grid: AxisSet::UNKNOWN };
    /// Nothing is known.
    pub const THREAD: Uniformity =
        Uniformity { level: Level::Thread, threads: AxisSet::UNKNOWN, grid: AxisSet::UNKNOWN };

    /// Of something made from both.
    pub fn join(self, other: Uniformity) -> Uniformity {
        Uniformity {
            level: self.level.min(other.level),
            threads: self.threads.with(other.threads),
            grid: self.grid.with(other.grid),
        }
    }
}

/// Facts about a verified program.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// By the kernels' numbers.
    pub kernels: Vec<KernelInfo>,
    pub warnings: Diagnostics,
}

#[derive(Clone, Debug, Default)]
pub struct KernelInfo {
    /// By the expressions' numbers: the worst of all places that evaluate it.
    pub exprs: Vec<Uniformity>,
    /// By the statements' numbers (outer before inner, in the order of the text, as [`crate::program::walk`]
    /// visits them): the control that leads there.
    pub stmts: Vec<Uniformity>,
}

impl KernelInfo {
    pub fn expr(&self, e: ExprId) -> Uniformity {
        self.exprs.get(e.index()).copied().unwrap_or(Uniformity::THREAD)
    }
}
