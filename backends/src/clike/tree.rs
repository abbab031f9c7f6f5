//! The C-like tree: what a source of a GPU back end is made of before it is text. It knows no vendor.

use pantile_abi::DType;

/// Types of values and of memory. Narrow floats are words in memory; in registers they are `F32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ty {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    BF16,
    F8E4M3,
    F8E5M2,
    F32,
    F64,
}

impl Ty {
    /// What holds an element in memory; elements of 4 bits outside of packed tensors have a byte each.
    pub const fn of(d: DType) -> Ty {
        match d {
            DType::Bool => Ty::Bool,
            DType::I4 | DType::I8 => Ty::I8,
            DType::U4 | DType::U8 => Ty::U8,
            DType::I16 => Ty::I16,
            DType::U16 => Ty::U16,
            DType::I32 => Ty::I32,
            DType::U32 => Ty::U32,
            DType::I64 => Ty::I64,
            DType::U64 => Ty::U64,
            DType::F8E4M3 => Ty::F8E4M3,
            DType::F8E5M2 => Ty::F8E5M2,
            DType::F16 => Ty::F16,
            DType::BF16 => Ty::BF16,
            DType::F32 => Ty::F32,
            DType::F64 => Ty::F64,
        }
    }

    /// The type of the same value in a register.
    pub const fn register(self) -> Ty {
        match self {
            Ty::F16 | Ty::BF16 | Ty::F8E4M3 | Ty::F8E5M2 => Ty::F32,
            other => other,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Ty::Bool => "bool",
            Ty::I8 => "i8",
            Ty::U8 => "u8",
            Ty::I16 => "i16",
            Ty::U16 => "u16",
            Ty::I32 => "int",
            Ty::U32 => "u32",
            Ty::I64 => "i64",
            Ty::U64 => "u64",
            Ty::F16 => "f16",
            Ty::BF16 => "bf16",
            Ty::F8E4M3 => "f8e4m3",
            Ty::F8E5M2 => "f8e5m2",
            Ty::F32 => "float",
            Ty::F64 => "double",
        }
    }

    /// What the name stands for, where C has another one.
    pub const fn definition(self) -> Option<&'static str> {
        Some(match self {
            Ty::I8 => "signed char",
            Ty::U8 | Ty::F8E4M3 | Ty::F8E5M2 => "unsigned char",
            Ty::I16 => "short",
            Ty::U16 | Ty::F16 | Ty::BF16 => "unsigned short",
            Ty::U32 => "unsigned int",
            Ty::I64 => "long long",
            Ty::U64 => "unsigned long long",
            Ty::Bool | Ty::I32 | Ty::F32 | Ty::F64 => return None,
        })
    }

    pub const ALL: [Ty; 15] = [
        Ty::Bool,
        Ty::I8,
        Ty::U8,
        Ty::I16,
        Ty::U16,
        Ty::I32,
        Ty::U32,
        Ty::I64,
        Ty::U64,
        Ty::F16,
        Ty::BF16,
        Ty::F8E4M3,
        Ty::F8E5M2,
        Ty::F32,
        Ty::F64,
    ];

    pub const fn bytes(self) -> u64 {
        match self {
            Ty::Bool | Ty::I8 | Ty::U8 | Ty::F8E4M3 | Ty::F8E5M2 => 1,
            Ty::I16 | Ty::U16 | Ty::F16 | Ty::BF16 => 2,
            Ty::I32 | Ty::U32 | Ty::F32 => 4,
            Ty::I64 | Ty::U64 | Ty::F64 => 8,
        }
    }

    pub const fn is_signed(self) -> bool {
        matches!(self, Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64)
    }

    /// The unsigned type in which arithmetic on this one wraps.
    pub const fn wrapping(self) -> Ty {
        match self {
            Ty::I64 | Ty::U64 => Ty::U64,
            _ => Ty::U32,
        }
    }

    /// The name that says the type inside a prelude function's name.
    pub const fn tag(self) -> &'static str {
        match self {
            Ty::I32 => "i32",
            Ty::F32 => "f32",
            Ty::F64 => "f64",
            other => other.name(),
        }
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum C {
    Int(i128, Ty),
    /// A name, or a literal that is no integer.
    Name(String),
    Call(String, Vec<C>),
    Unary(&'static str, Box<C>),
    Binary(&'static str, Box<C>, Box<C>),
    Cast(String, Box<C>),
    Index(Box<C>, Box<C>),
    Choice(Box<C>, Box<C>, Box<C>),
}

impl C {
    pub fn name(text: impl Into<String>) -> C {
        C::Name(text.into())
    }

    pub fn int(value: i64) -> C {
        let ty = if i32::try_from(value).is_ok() { Ty::I32 } else { Ty::I64 };
        C::Int(value.into(), ty)
    }

    pub fn call(name: impl Into<String>, args: impl Into<Vec<C>>) -> C {
        C::Call(name.into(), args.into())
    }

    pub fn unary(op: &'static str, a: C) -> C {
        C::Unary(op, Box::new(a))
    }

    pub fn binary(op: &'static str, a: C, b: C) -> C {
        C::Binary(op, Box::new(a), Box::new(b))
    }

    /// A conversion, not written where it stands already.
    pub fn cast(to: Ty, a: C) -> C {
        match a {
            C::Cast(ref t, _) if t == to.name() => a,
            _ => C::Cast(to.name().into(), Box::new(a)),
        }
    }

    pub fn index(base: C, at: C) -> C {
        C::Index(Box::new(base), Box::new(at))
    }

    pub fn choice(cond: C, then: C, other: C) -> C {
        C::Choice(Box::new(cond), Box::new(then), Box::new(other))
    }

    /// `&base[at]`, as a person writes it.
    pub fn address(place: C) -> C {
        match place {
            C::Index(base, at) if matches!(*at, C::Int(0, _)) => *base,
            C::Index(base, at) => C::Binary("+", base, at),
            other => C::unary("&", other),
        }
    }
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum S {
    Comment(String),
    /// `const T name = init;`
    Declare {
        constant: bool,
        ty: String,
        name: String,
        init: Option<C>,
    },
    /// An array of a thread's own.
    Array {
        ty: Ty,
        name: String,
        len: u64,
        align: u64,
    },
    /// `=`, or an operator with it
    Assign {
        op: &'static str,
        to: C,
        value: C,
    },
    Do(C),
    If {
        cond: C,
        then: Vec<S>,
        other: Vec<S>,
    },
    For {
        hint: Option<&'static str>,
        ty: Ty,
        var: String,
        lo: C,
        cond: C,
        step: C,
        body: Vec<S>,
    },
    While {
        cond: C,
        body: Vec<S>,
    },
    Break,
    Continue,
    Return(C),
}
