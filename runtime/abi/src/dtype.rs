//! Element types.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The element type of a tensor or tile. Names print as they are written in the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    Bool,
    I4,
    U4,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F8E4M3,
    F8E5M2,
    F16,
    BF16,
    F32,
    F64,
}

/// What family of arithmetic a type belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DTypeKind {
    Bool,
    Int,
    Uint,
    /// f16, bf16, f32, f64: the types that the generic class `float` admits
    Float,
    /// f8e4m3, f8e5m2: the generic class `float8`
    Float8,
}

impl DType {
    pub const ALL: [DType; 17] = [
        DType::Bool,
        DType::I4,
        DType::U4,
        DType::I8,
        DType::U8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::F8E4M3,
        DType::F8E5M2,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I4 => "i4",
            DType::U4 => "u4",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::I16 => "i16",
            DType::U16 => "u16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I64 => "i64",
            DType::U64 => "u64",
            DType::F8E4M3 => "f8e4m3",
            DType::F8E5M2 => "f8e5m2",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Width in bits. `bool` is stored as one byte.
    pub const fn bits(self) -> u32 {
        match self {
            DType::I4 | DType::U4 => 4,
            DType::Bool | DType::I8 | DType::U8 | DType::F8E4M3 | DType::F8E5M2 => 8,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 16,
            DType::I32 | DType::U32 | DType::F32 => 32,
            DType::I64 | DType::U64 | DType::F64 => 64,
        }
    }

    pub const fn kind(self) -> DTypeKind {
        match self {
            DType::Bool => DTypeKind::Bool,
            DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => DTypeKind::Int,
            DType::U4 | DType::U8 | DType::U16 | DType::U32 | DType::U64 => DTypeKind::Uint,
            DType::F8E4M3 | DType::F8E5M2 => DTypeKind::Float8,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => DTypeKind::Float,
        }
    }

    pub const fn is_float(self) -> bool {
        matches!(self.kind(), DTypeKind::Float | DTypeKind::Float8)
    }

    pub const fn is_int(self) -> bool {
        matches!(self.kind(), DTypeKind::Int | DTypeKind::Uint)
    }

    pub const fn is_signed(self) -> bool {
        !matches!(self.kind(), DTypeKind::Uint | DTypeKind::Bool)
    }

    /// The type in which sums and products of this type are accumulated: `acc(T)` of the language.
    pub const fn acc(self) -> DType {
        match self {
            DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 => DType::F32,
            DType::F64 => DType::F64,
            DType::I4 | DType::U4 | DType::I8 | DType::U8 => DType::I32,
            other => other,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
