//! Makers of syntax tree nodes; nothing here knows typed IR beyond its small enums.

use super::nowhere;
use crate::ast::*;
use crate::num;
use crate::program::{BinOp, Elem as IrElem};

pub fn ident(name: impl Into<String>) -> Ident {
    Ident { name: name.into(), span: nowhere() }
}

pub fn expr(kind: ExprKind) -> Expr {
    Expr { kind, span: nowhere() }
}

pub fn name(text: impl Into<String>) -> Expr {
    expr(ExprKind::Name(ident(text)))
}

pub fn int(n: impl ToString) -> Expr {
    expr(ExprKind::Int(n.to_string()))
}

pub fn string(text: &str) -> Expr {
    expr(ExprKind::Str(text.to_owned()))
}

pub fn stmt(kind: StmtKind) -> Stmt {
    Stmt::new(kind, nowhere())
}

pub fn block(stmts: Vec<Stmt>) -> Block {
    Block { stmts, tail: None, span: nowhere() }
}

/// `{ e }`
pub fn value_block(e: Expr) -> Block {
    Block { stmts: Vec::new(), tail: Some(Box::new(e)), span: nowhere() }
}

pub fn negative(e: Expr) -> Expr {
    expr(ExprKind::Unary(UnaryOp::Neg, Box::new(e)))
}

pub fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    expr(ExprKind::Binary(op, Box::new(a), Box::new(b)))
}

pub fn field(base: Expr, name: impl Into<String>) -> Expr {
    expr(ExprKind::Field(Box::new(base), ident(name)))
}

pub fn index(base: Expr, axes: Vec<AxisIndex>) -> Expr {
    expr(ExprKind::Index(Box::new(base), axes))
}

pub fn full() -> AxisIndex {
    AxisIndex::Full(nowhere())
}

pub fn extent(start: Expr, len: u32, limit: Option<Expr>, clip_low: bool) -> AxisIndex {
    AxisIndex::Extent { start, len: int(len), limit, clip_low, span: nowhere() }
}

pub fn call(callee: Expr, args: Vec<Expr>) -> Expr {
    call_with(callee, args, Vec::new())
}

/// A call with positional, then named arguments.
pub fn call_with(callee: Expr, args: Vec<Expr>, named: Vec<(&str, Expr)>) -> Expr {
    let positional = args.into_iter().map(|value| Arg { name: None, value });
    let named = named.into_iter().map(|(n, value)| Arg { name: Some(ident(n)), value });
    let args = positional.chain(named).collect();
    expr(ExprKind::Call { callee: Box::new(callee), generics: Vec::new(), args })
}

/// A value, or a tuple of several.
pub fn tuple(mut parts: Vec<Expr>) -> Expr {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            expr(ExprKind::Tuple(parts))
        }
        None => expr(ExprKind::Tuple(parts)),
    }
}

pub fn elem(e: IrElem) -> Elem {
    Elem::Name(ident(e.to_string()))
}

pub fn ty(kind: TypeKind) -> Type {
    Type { kind, span: nowhere() }
}

pub fn extents(shape: &[u32]) -> Vec<Expr> {
    shape.iter().map(int).collect()
}

pub fn named(name: &str, value: Expr) -> Named {
    Named { name: ident(name), value }
}

pub fn binary_op(op: BinOp) -> BinaryOp {
    match op {
        BinOp::Add => BinaryOp::Add,
        BinOp::Sub => BinaryOp::Sub,
        BinOp::Mul => BinaryOp::Mul,
        BinOp::Div => BinaryOp::Div,
        BinOp::Rem => BinaryOp::Rem,
        BinOp::Shl => BinaryOp::Shl,
        BinOp::Shr => BinaryOp::Shr,
        BinOp::And => BinaryOp::BitAnd,
        BinOp::Or => BinaryOp::BitOr,
        BinOp::Xor => BinaryOp::BitXor,
        BinOp::LogicalAnd => BinaryOp::AndAnd,
        BinOp::LogicalOr => BinaryOp::OrOr,
        BinOp::Eq => BinaryOp::Eq,
        BinOp::Ne => BinaryOp::Ne,
        BinOp::Lt => BinaryOp::Lt,
        BinOp::Le => BinaryOp::Le,
        BinOp::Gt => BinaryOp::Gt,
        BinOp::Ge => BinaryOp::Ge,
    }
}

/// A number or bool as a literal of a place that gives it its type.
pub fn literal(elem: IrElem, bits: u64) -> Expr {
    let text = num::print_value(elem, bits);
    if elem == IrElem::BOOL {
        return expr(ExprKind::Bool(bits != 0));
    }
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let value = match magnitude {
        "inf" | "nan" => name(magnitude),
        digits if elem.is_float() => expr(ExprKind::Float(digits.to_owned())),
        digits => int(digits),
    };
    if sign { negative(value) } else { value }
}

/// `f32(1.0)`: a literal that brings its type along. Integers are of `index` without it.
pub fn typed_literal(e: IrElem, bits: u64) -> Expr {
    match e {
        IrElem::Index => literal(e, bits),
        _ => call(name(e.to_string()), vec![literal(e, bits)]),
    }
}

/// A number that belongs to no type, as in bounds and plans.
pub fn plain_number(x: f64) -> Expr {
    let f64 = IrElem::D(pantile_abi::DType::F64);
    if x.fract() == 0.0 && x.abs() < 1e15 { signed(x as i64) } else { literal(f64, x.to_bits()) }
}

pub fn signed(n: i64) -> Expr {
    if n < 0 { negative(int(n.unsigned_abs())) } else { int(n) }
}
