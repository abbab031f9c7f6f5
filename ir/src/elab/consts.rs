//! Compile-time values and their arithmetic. Nothing here touches the IR under construction.
//!
//! Numbers have no type of their own: they take the type of the place where they meet a run-time value.

use crate::ast::{BinaryOp, UnaryOp};
use crate::program::{Elem, MathFn};
use std::rc::Rc;

use super::library::ItemRef;

/// A value known at compile time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Const {
    Int(i128),
    Float(f64),
    Bool(bool),
    Str(Rc<str>),
    Type(Elem),
    List(Rc<[Const]>),
    Fn(Callable),
}

/// A function as a value: an item, or one that the language declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Callable {
    Item(ItemRef),
    Builtin(&'static str),
}

impl Const {
    pub fn is_number(&self) -> bool {
        matches!(self, Const::Int(_) | Const::Float(_))
    }

    /// What it is, in the user's words.
    pub fn kind(&self) -> &'static str {
        match self {
            Const::Int(_) => "an integer",
            Const::Float(_) => "a number with a fraction",
            Const::Bool(_) => "a bool",
            Const::Str(_) => "a string",
            Const::Type(_) => "a type",
            Const::List(_) => "a list",
            Const::Fn(_) => "a function",
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Const::Int(n) => Some(n as f64),
            Const::Float(x) => Some(x),
            _ => None,
        }
    }
}

impl std::fmt::Display for Const {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Const::Int(n) => n.fmt(f),
            Const::Float(x) => write!(f, "{x:?}"),
            Const::Bool(b) => b.fmt(f),
            Const::Str(s) => write!(f, "{s:?}"),
            Const::Type(t) => t.fmt(f),
            Const::Fn(Callable::Builtin(name)) => f.write_str(name),
            Const::Fn(Callable::Item(_)) => f.write_str("fn"),
            Const::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Why a compile-time operation has no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// operator and operands do not go together
    Kinds,
    DivideByZero,
    Overflow,
    Shift,
}

impl Fault {
    pub fn words(&self) -> &'static str {
        match self {
            Fault::Kinds => "these values do not go together",
            Fault::DivideByZero => "division by zero",
            Fault::Overflow => "the result is out of range",
            Fault::Shift => "a shift by a negative or too large amount",
        }
    }
}

fn in_range(n: Option<i128>) -> Result<Const, Fault> {
    // u64 and i64 both fit; anything wider has no type that could hold it
    match n {
        Some(n) if n >= i64::MIN as i128 && n <= u64::MAX as i128 => Ok(Const::Int(n)),
        _ => Err(Fault::Overflow),
    }
}

pub(crate) fn floor_div(a: i128, b: i128) -> i128 {
    let q = a / b;
    if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q }
}

pub(crate) fn ceil_div(a: i128, b: i128) -> i128 {
    -floor_div(-a, b)
}

fn int_binary(op: BinaryOp, a: i128, b: i128) -> Result<Const, Fault> {
    use BinaryOp::*;
    match op {
        Add => in_range(a.checked_add(b)),
        Sub => in_range(a.checked_sub(b)),
        Mul => in_range(a.checked_mul(b)),
        Div | Rem if b == 0 => Err(Fault::DivideByZero),
        Div => in_range(Some(floor_div(a, b))),
        Rem => in_range(Some(a - floor_div(a, b) * b)),
        Shl | Shr if !(0..64).contains(&b) => Err(Fault::Shift),
        Shl => in_range(a.checked_mul(1 << b)),
        Shr => in_range(Some(a >> b)),
        BitAnd => in_range(Some(a & b)),
        BitOr => in_range(Some(a | b)),
        BitXor => in_range(Some(a ^ b)),
        Eq => Ok(Const::Bool(a == b)),
        Ne => Ok(Const::Bool(a != b)),
        Lt => Ok(Const::Bool(a < b)),
        Le => Ok(Const::Bool(a <= b)),
        Gt => Ok(Const::Bool(a > b)),
        Ge => Ok(Const::Bool(a >= b)),
        AndAnd | OrOr | MatMul => Err(Fault::Kinds),
    }
}

fn float_binary(op: BinaryOp, a: f64, b: f64) -> Result<Const, Fault> {
    use BinaryOp::*;
    match op {
        Add => Ok(Const::Float(a + b)),
        Sub => Ok(Const::Float(a - b)),
        Mul => Ok(Const::Float(a * b)),
        Div => Ok(Const::Float(a / b)),
        Eq => Ok(Const::Bool(a == b)),
        Ne => Ok(Const::Bool(a != b)),
        Lt => Ok(Const::Bool(a < b)),
        Le => Ok(Const::Bool(a <= b)),
        Gt => Ok(Const::Bool(a > b)),
        Ge => Ok(Const::Bool(a >= b)),
        _ => Err(Fault::Kinds),
    }
}

/// `float` asks for float arithmetic of integers: the context is a float.
pub(crate) fn binary(op: BinaryOp, a: &Const, b: &Const, float: bool) -> Result<Const, Fault> {
    use BinaryOp::*;
    match (a, b) {
        (Const::Int(a), Const::Int(b)) if !float || !matches!(op, Add | Sub | Mul | Div) => {
            int_binary(op, *a, *b)
        }
        (Const::Bool(a), Const::Bool(b)) => match op {
            AndAnd | BitAnd => Ok(Const::Bool(*a && *b)),
            OrOr | BitOr => Ok(Const::Bool(*a || *b)),
            BitXor | Ne => Ok(Const::Bool(a != b)),
            Eq => Ok(Const::Bool(a == b)),
            _ => Err(Fault::Kinds),
        },
        (Const::Type(_), Const::Type(_)) | (Const::Fn(_), Const::Fn(_)) | (Const::Str(_), Const::Str(_)) => {
            match op {
                Eq => Ok(Const::Bool(a == b)),
                Ne => Ok(Const::Bool(a != b)),
                _ => Err(Fault::Kinds),
            }
        }
        _ => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => float_binary(op, a, b),
            _ => Err(Fault::Kinds),
        },
    }
}

pub(crate) fn unary(op: UnaryOp, a: &Const) -> Result<Const, Fault> {
    match (op, a) {
        (UnaryOp::Neg, Const::Int(n)) => in_range(Some(-n)),
        (UnaryOp::Neg, Const::Float(x)) => Ok(Const::Float(-x)),
        (UnaryOp::Not, Const::Bool(b)) => Ok(Const::Bool(!b)),
        (UnaryOp::Not, Const::Int(n)) => in_range(Some(!n)),
        _ => Err(Fault::Kinds),
    }
}

/// Functions that fold on numbers without a type; `None` leaves the call to run time.
pub(crate) fn math(f: MathFn, args: &[Const]) -> Option<Result<Const, Fault>> {
    let ints: Option<Vec<i128>> =
        args.iter().map(|a| if let Const::Int(n) = a { Some(*n) } else { None }).collect();
    if let Some(n) = ints {
        return Some(match (f, n.as_slice()) {
            (MathFn::Min, [a, b]) => Ok(Const::Int(*a.min(b))),
            (MathFn::Max, [a, b]) => Ok(Const::Int(*a.max(b))),
            (MathFn::Clamp, [x, lo, hi]) => Ok(Const::Int(*x.max(lo).min(hi))),
            (MathFn::Abs, [a]) => in_range(Some(a.abs())),
            (MathFn::CeilDiv, [_, 0]) => Err(Fault::DivideByZero),
            (MathFn::CeilDiv, [a, b]) => in_range(Some(ceil_div(*a, *b))),
            _ => return None,
        });
    }
    let x: Vec<f64> = args.iter().map(Const::as_f64).collect::<Option<_>>()?;
    Some(Ok(Const::Float(match (f, x.as_slice()) {
        (MathFn::Min, [a, b]) => minimum(*a, *b),
        (MathFn::Max, [a, b]) => -minimum(-a, -b),
        (MathFn::Abs, [a]) => a.abs(),
        (MathFn::Floor, [a]) => a.floor(),
        (MathFn::Ceil, [a]) => a.ceil(),
        (MathFn::Sqrt, [a]) => a.sqrt(),
        _ => return None,
    })))
}

/// As IEEE 754-2019 has it: a NaN is handed on, -0 is below 0.
fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    if a < b || (a == b && a.is_sign_negative()) { a } else { b }
}

/// Digits as written, with `_` between them and a prefix for other bases.
pub(crate) fn parse_int(text: &str) -> Option<i128> {
    let plain: String = text.chars().filter(|&c| c != '_').collect();
    let (digits, radix) = match plain.get(..2) {
        Some("0x" | "0X") => (&plain[2..], 16),
        Some("0b" | "0B") => (&plain[2..], 2),
        Some("0o" | "0O") => (&plain[2..], 8),
        _ => (plain.as_str(), 10),
    };
    let n = i128::from_str_radix(digits, radix).ok()?;
    (n <= u64::MAX as i128).then_some(n)
}

pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let plain: String = text.chars().filter(|&c| c != '_').collect();
    plain.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_floors() {
        let div = |a, b| binary(BinaryOp::Div, &Const::Int(a), &Const::Int(b), false);
        let rem = |a, b| binary(BinaryOp::Rem, &Const::Int(a), &Const::Int(b), false);
        assert_eq!(div(-7, 2), Ok(Const::Int(-4)));
        assert_eq!(rem(-7, 2), Ok(Const::Int(1)));
        assert_eq!(div(7, -2), Ok(Const::Int(-4)));
        assert_eq!(rem(7, -2), Ok(Const::Int(-1)));
        assert_eq!(div(1, 0), Err(Fault::DivideByZero));
        assert_eq!(ceil_div(33, 32), 2);
        assert_eq!(ceil_div(-1, 32), 0);
    }

    #[test]
    fn context_decides_between_integer_and_float_division() {
        let (one, two) = (Const::Int(1), Const::Int(2));
        assert_eq!(binary(BinaryOp::Div, &one, &two, false), Ok(Const::Int(0)));
        assert_eq!(binary(BinaryOp::Div, &one, &two, true), Ok(Const::Float(0.5)));
    }

    #[test]
    fn numbers_beyond_64_bits_are_faults() {
        let big = Const::Int(u64::MAX as i128);
        assert_eq!(binary(BinaryOp::Add, &big, &Const::Int(1), false), Err(Fault::Overflow));
        assert_eq!(binary(BinaryOp::Shl, &Const::Int(1), &Const::Int(64), false), Err(Fault::Shift));
        assert_eq!(parse_int("0xffff_ffff_ffff_ffff"), Some(u64::MAX as i128));
        assert_eq!(parse_int("18446744073709551616"), None);
    }
}
