//! Types of values.

use pantile_abi::DType;
use smallvec::SmallVec;
use std::fmt;

/// Type of one element: a stored type, or `index`, the 64-bit integer of dims, loop variables and subscripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Elem {
    Index,
    D(DType),
}

pub type Shape = SmallVec<[u32; 4]>;

/// The type of an expression or local. Tuples exist only in text: `elab` splits them into their parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Scalar(Elem),
    /// A value of the block with a static shape and, at run time, a valid box.
    Tile {
        elem: Elem,
        shape: Shape,
    },
    /// A linear token of a ring slot.
    Token,
}

impl Elem {
    pub const BOOL: Elem = Elem::D(DType::Bool);
    pub const F32: Elem = Elem::D(DType::F32);

    pub fn dtype(self) -> Option<DType> {
        match self {
            Elem::Index => None,
            Elem::D(d) => Some(d),
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Elem::D(d) if d.is_float())
    }

    /// Bytes of an element in memory; two elements of 4 bits share one.
    pub fn bytes(self) -> u64 {
        match self {
            Elem::Index => 8,
            Elem::D(d) => u64::from(d.bits().div_ceil(8)),
        }
    }

    /// `index` or an integer type
    pub fn is_integer(self) -> bool {
        match self {
            Elem::Index => true,
            Elem::D(d) => d.is_int(),
        }
    }

    pub fn acc(self) -> Elem {
        match self {
            Elem::Index => Elem::Index,
            Elem::D(d) => Elem::D(d.acc()),
        }
    }
}

impl Type {
    pub const INDEX: Type = Type::Scalar(Elem::Index);
    pub const BOOL: Type = Type::Scalar(Elem::BOOL);

    pub fn tile(elem: Elem, shape: impl IntoIterator<Item = u32>) -> Type {
        Type::Tile { elem, shape: shape.into_iter().collect() }
    }

    pub fn elem(&self) -> Option<Elem> {
        match self {
            Type::Scalar(elem) | Type::Tile { elem, .. } => Some(*elem),
            Type::Token => None,
        }
    }

    /// Extents; empty for scalars and tokens.
    pub fn shape(&self) -> &[u32] {
        match self {
            Type::Tile { shape, .. } => shape,
            Type::Scalar(_) | Type::Token => &[],
        }
    }

    pub fn is_scalar(&self) -> bool {
        matches!(self, Type::Scalar(_))
    }

    pub fn is_tile(&self) -> bool {
        matches!(self, Type::Tile { .. })
    }

    /// The same type with another element.
    pub fn with_elem(&self, elem: Elem) -> Type {
        match self {
            Type::Scalar(_) => Type::Scalar(elem),
            Type::Tile { shape, .. } => Type::Tile { elem, shape: shape.clone() },
            Type::Token => Type::Token,
        }
    }

    pub fn count(&self) -> usize {
        self.shape().iter().map(|&n| n as usize).product()
    }
}

impl From<DType> for Elem {
    fn from(d: DType) -> Elem {
        Elem::D(d)
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Index => f.write_str("index"),
            Elem::D(d) => f.write_str(d.name()),
        }
    }
}

/// As written in the language: `f32`, `tile f32[64, 128]`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (elem, shape) = match self {
            Type::Scalar(elem) => return elem.fmt(f),
            Type::Token => return f.write_str("slot"),
            Type::Tile { elem, shape } => (elem, shape),
        };
        write!(f, "tile {elem}[")?;
        for (i, n) in shape.iter().enumerate() {
            write!(f, "{}{n}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}
