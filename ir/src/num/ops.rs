//! One operation on one value. Slices are in `slice`.

use super::kind::{Kind, with_kind};
use super::{NumError, Scalar, int_range};
use crate::program::{BinOp, Combiner, Elem, MathFn, UnOp};
use pantile_abi::DType;

/// Operations of two operands: the operators, and the functions that are exact on every type. Comparisons yield
/// bool, the rest the operands' type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bin {
    Add,
    Sub,
    Mul,
    /// Floor on integers; IEEE on floats.
    Div,
    /// What floor division leaves; integers only.
    Rem,
    /// Division rounded up; integers only.
    CeilDiv,
    Min,
    Max,
    And,
    Or,
    Xor,
    Shl,
    /// Arithmetic on signed types.
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Bin {
    pub const ALL: [Bin; 19] = [
        Bin::Add,
        Bin::Sub,
        Bin::Mul,
        Bin::Div,
        Bin::Rem,
        Bin::CeilDiv,
        Bin::Min,
        Bin::Max,
        Bin::And,
        Bin::Or,
        Bin::Xor,
        Bin::Shl,
        Bin::Shr,
        Bin::Eq,
        Bin::Ne,
        Bin::Lt,
        Bin::Le,
        Bin::Gt,
        Bin::Ge,
    ];

    /// The result is a bool.
    pub const fn is_comparison(self) -> bool {
        matches!(self, Bin::Eq | Bin::Ne | Bin::Lt | Bin::Le | Bin::Gt | Bin::Ge)
    }

    /// `min`, `max` and `ceildiv`; the other functions are in [`crate::math`].
    pub const fn of_math(f: MathFn) -> Option<Bin> {
        match f {
            MathFn::Min => Some(Bin::Min),
            MathFn::Max => Some(Bin::Max),
            MathFn::CeilDiv => Some(Bin::CeilDiv),
            _ => None,
        }
    }

    /// The operation of a built-in combiner.
    pub const fn of_combiner(comb: Combiner) -> Option<Bin> {
        Some(match comb {
            Combiner::Add => Bin::Add,
            Combiner::Mul => Bin::Mul,
            Combiner::Min => Bin::Min,
            Combiner::Max => Bin::Max,
            Combiner::And => Bin::And,
            Combiner::Or => Bin::Or,
            Combiner::Xor => Bin::Xor,
            Combiner::User(_) => return None,
        })
    }
}

/// `&&` and `||` are their strict forms here: whoever evaluates lazily never asks for them.
impl From<BinOp> for Bin {
    fn from(op: BinOp) -> Bin {
        match op {
            BinOp::Add => Bin::Add,
            BinOp::Sub => Bin::Sub,
            BinOp::Mul => Bin::Mul,
            BinOp::Div => Bin::Div,
            BinOp::Rem => Bin::Rem,
            BinOp::Shl => Bin::Shl,
            BinOp::Shr => Bin::Shr,
            BinOp::And | BinOp::LogicalAnd => Bin::And,
            BinOp::Or | BinOp::LogicalOr => Bin::Or,
            BinOp::Xor => Bin::Xor,
            BinOp::Eq => Bin::Eq,
            BinOp::Ne => Bin::Ne,
            BinOp::Lt => Bin::Lt,
            BinOp::Le => Bin::Le,
            BinOp::Gt => Bin::Gt,
            BinOp::Ge => Bin::Ge,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Un {
    /// Flips the sign, also of zero and NaN.
    Neg,
    /// Logical on bool, bitwise on integers.
    Not,
    Abs,
}

impl Un {
    pub const ALL: [Un; 3] = [Un::Neg, Un::Not, Un::Abs];
}

impl From<UnOp> for Un {
    fn from(op: UnOp) -> Un {
        match op {
            UnOp::Neg => Un::Neg,
            UnOp::Not => Un::Not,
        }
    }
}

/// The value that leaves the other operand unchanged: what an invalid element counts as. `None` where `op` does not
/// fold. f8e4m3 has no infinity; its largest finite values stand for it.
pub fn identity(op: Bin, elem: Elem) -> Option<Scalar> {
    let float = elem.is_float();
    let whole = |v: i128| super::from_int(elem, v);
    let extreme = |max: bool| match elem {
        Elem::D(DType::F8E4M3) => super::from_int(elem, if max { 448 } else { -448 }),
        _ if float => super::from_f64(elem, if max { f64::INFINITY } else { f64::NEG_INFINITY }).ok(),
        _ => int_range(elem).map(|(lo, hi)| if max { hi } else { lo } as u64),
    };
    let is_bool = elem == Elem::BOOL;
    match op {
        Bin::Add if !is_bool => whole(0),
        Bin::Mul if !is_bool => whole(1),
        Bin::Min => extreme(true),
        Bin::Max => extreme(false),
        Bin::Or | Bin::Xor if !float => whole(0),
        Bin::And if !float => int_range(elem).and_then(|(lo, hi)| whole(if lo < 0 { -1 } else { hi })),
        _ => None,
    }
}

pub fn binary(op: Bin, elem: Elem, a: Scalar, b: Scalar) -> Result<Scalar, NumError> {
    with_kind!(elem, k => binary_kind(op, k, a, b))
}

fn binary_kind<K: Kind>(op: Bin, k: K, a: Scalar, b: Scalar) -> Result<Scalar, NumError> {
    let (x, y) = (k.load(a), k.load(b));
    let value = match op {
        Bin::Eq => return Ok((x == y) as u64),
        Bin::Ne => return Ok((x != y) as u64),
        Bin::Lt => return Ok((x < y) as u64),
        Bin::Le => return Ok((x <= y) as u64),
        Bin::Gt => return Ok((x > y) as u64),
        Bin::Ge => return Ok((x >= y) as u64),
        Bin::Add => k.add(x, y),
        Bin::Sub => k.sub(x, y),
        Bin::Mul => k.mul(x, y),
        Bin::Div => k.div(x, y),
        Bin::Rem => k.rem(x, y),
        Bin::CeilDiv => k.ceil_div(x, y),
        Bin::Min => Ok(k.min(x, y)),
        Bin::Max => Ok(k.max(x, y)),
        Bin::And => k.and(x, y),
        Bin::Or => k.or(x, y),
        Bin::Xor => k.xor(x, y),
        Bin::Shl => k.shl(x, y),
        Bin::Shr => k.shr(x, y),
    };
    value.map(|v| k.store(v))
}

pub fn unary(op: Un, elem: Elem, a: Scalar) -> Result<Scalar, NumError> {
    with_kind!(elem, k => {
        let x = k.load(a);
        let value = match op {
            Un::Neg => k.neg(x),
            Un::Not => k.not(x),
            Un::Abs => k.abs(x),
        };
        value.map(|v| k.store(v))
    })
}

/// `a * b + c` with one rounding; floats only.
pub fn fma(elem: Elem, a: Scalar, b: Scalar, c: Scalar) -> Result<Scalar, NumError> {
    with_kind!(elem, k => k.fma(k.load(a), k.load(b), k.load(c)).map(|v| k.store(v)))
}

/// Of a float; false for other types.
pub fn is_nan(elem: Elem, a: Scalar) -> bool {
    elem.is_float() && super::to_f64(elem, a).is_nan()
}

/// Of a float; false for other types.
pub fn is_inf(elem: Elem, a: Scalar) -> bool {
    elem.is_float() && super::to_f64(elem, a).is_infinite()
}
