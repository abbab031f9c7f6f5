//! Expressions: pure, element-wise or re-indexing, in a DAG.
//!
//! **Evaluation time.** An expression has no effect and is evaluated when the statement that holds it executes;
//! a handle used by two statements is evaluated by each. It may *read* memory elements ([`Expr::Element`]) and
//! mutable locals, and sees what earlier statements wrote. Reads of regions, products, reductions and whatever
//! else moves or combines data across elements, threads or memory are [`super::Op`]s, never expressions.
//!
//! **Laziness.** For scalars `&&`, `||` and [`Expr::Select`] evaluate only what they need, so a guarded element
//! read is safe. For tiles all operands are evaluated.
//!
//! **Shapes.** A scalar joins any tile; two tiles have equal rank, and an extent of 1 stretches.

use super::{ArgId, DimId, Elem, IntrinsicId, LocalId, Mem, Shape};
use crate::arena::Handle;
use pantile_abi::DType;
use smallvec::SmallVec;

pub type ExprId = Handle<Expr>;
pub type Args = SmallVec<[ExprId; 3]>;

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// Bits as in [`crate::num`]: integers sign- or zero-extended, floats as their pattern.
    Const {
        elem: Elem,
        bits: u64,
    },
    Local(LocalId),
    /// A symbolic dim or stride of the kernel, bound at launch.
    Dim(DimId),
    /// A scalar parameter.
    Arg(ArgId),

    Unary(UnOp, ExprId),
    Binary(BinOp, ExprId, ExprId),
    /// `where(c, a, b)` on tiles, `if c { a } else { b }` on scalars.
    Select {
        cond: ExprId,
        then: ExprId,
        other: ExprId,
    },
    Math {
        f: MathFn,
        approx: bool,
        args: Args,
    },
    /// Conversion, to nearest even; `sat` clamps to the range of the type.
    Cast {
        to: Elem,
        sat: bool,
        value: ExprId,
    },
    /// The same bits as another type of equal width; a tile's last axis scales if widths differ.
    Bits {
        to: DType,
        value: ExprId,
    },
    Intrinsic {
        id: IntrinsicId,
        args: Args,
    },

    /// One element of memory, `or` a value where the index is outside.
    Element {
        mem: Mem,
        index: Args,
        or: Option<ExprId>,
    },
    /// One element of a tile value at block-uniform indices.
    Pick {
        tile: ExprId,
        index: Args,
    },

    /// A tile whose elements all are a scalar; always fully valid.
    Splat {
        value: ExprId,
        shape: Shape,
    },
    /// `index` tile that counts along `axis` and is 1 long elsewhere: `iota`, `rows`, `cols`.
    Iota {
        axis: u8,
        shape: Shape,
    },
    /// Swaps the last two axes.
    Transpose(ExprId),
    /// A new axis of extent 1 before `axis`.
    InsertAxis {
        value: ExprId,
        axis: u8,
    },
    /// A part of a tile value: per axis a start (static length) or a dropping index.
    Slice {
        value: ExprId,
        axes: SmallVec<[SliceAxis; 4]>,
    },
    /// Stretches axes of extent 1.
    Broadcast {
        value: ExprId,
        shape: Shape,
    },
    /// The same elements in row-major order under another shape; needs a full box.
    Reshape {
        value: ExprId,
        shape: Shape,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceAxis {
    Span { start: ExprId, len: u32 },
    At(ExprId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnOp {
    Neg,
    /// logical on bool, bitwise on integers
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Shl,
    Shr,
    /// bitwise on integers; on bool the strict form for tiles
    And,
    Or,
    Xor,
    /// lazy `&&` and `||` on bool scalars (on tiles element-wise)
    LogicalAnd,
    LogicalOr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl BinOp {
    pub fn is_comparison(self) -> bool {
        matches!(self, BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge)
    }

    pub fn is_logical(self) -> bool {
        matches!(self, BinOp::LogicalAnd | BinOp::LogicalOr)
    }
}

/// Functions of the language. Arity and error bounds stand in `math`'s table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MathFn {
    Exp,
    Exp2,
    Log,
    Log2,
    Sqrt,
    Rsqrt,
    /// `rcp(x)` is 1/x; exists for its `.approx` form
    Rcp,
    Tanh,
    Sin,
    Cos,
    Erf,
    Pow,
    Fma,
    Floor,
    Ceil,
    /// half to even
    Round,
    Abs,
    /// IEEE 754-2019 minimum and maximum: NaN wins, -0 < +0
    Min,
    Max,
    /// `clamp(x, lo, hi)` = min(max(x, lo), hi)
    Clamp,
    IsNan,
    IsInf,
    /// `ceildiv(a, b)` on integers
    CeilDiv,
}

impl MathFn {
    pub const ALL: [MathFn; 23] = [
        MathFn::Exp,
        MathFn::Exp2,
        MathFn::Log,
        MathFn::Log2,
        MathFn::Sqrt,
        MathFn::Rsqrt,
        MathFn::Rcp,
        MathFn::Tanh,
        MathFn::Sin,
        MathFn::Cos,
        MathFn::Erf,
        MathFn::Pow,
        MathFn::Fma,
        MathFn::Floor,
        MathFn::Ceil,
        MathFn::Round,
        MathFn::Abs,
        MathFn::Min,
        MathFn::Max,
        MathFn::Clamp,
        MathFn::IsNan,
        MathFn::IsInf,
        MathFn::CeilDiv,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            MathFn::Exp => "exp",
            MathFn::Exp2 => "exp2",
            MathFn::Log => "log",
            MathFn::Log2 => "log2",
            MathFn::Sqrt => "sqrt",
            MathFn::Rsqrt => "rsqrt",
            MathFn::Rcp => "rcp",
            MathFn::Tanh => "tanh",
            MathFn::Sin => "sin",
            MathFn::Cos => "cos",
            MathFn::Erf => "erf",
            MathFn::Pow => "pow",
            MathFn::Fma => "fma",
            MathFn::Floor => "floor",
            MathFn::Ceil => "ceil",
            MathFn::Round => "round",
            MathFn::Abs => "abs",
            MathFn::Min => "min",
            MathFn::Max => "max",
            MathFn::Clamp => "clamp",
            MathFn::IsNan => "isnan",
            MathFn::IsInf => "isinf",
            MathFn::CeilDiv => "ceildiv",
        }
    }

    pub fn from_name(name: &str) -> Option<MathFn> {
        MathFn::ALL.into_iter().find(|f| f.name() == name)
    }

    pub const fn arity(self) -> usize {
        match self {
            MathFn::Pow | MathFn::Min | MathFn::Max | MathFn::CeilDiv => 2,
            MathFn::Fma | MathFn::Clamp => 3,
            _ => 1,
        }
    }

    /// Functions that have an `.approx` form.
    pub const fn has_approx(self) -> bool {
        use MathFn::*;
        matches!(self, Exp | Exp2 | Log | Log2 | Sqrt | Rsqrt | Rcp | Tanh | Sin | Cos)
    }
}
