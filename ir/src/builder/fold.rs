//! Exact arithmetic on integer and bool constants, so that printed offsets are clean, by the same rules as text is
//! elaborated. Never on floats, but for the sign of a constant and the conversion of an integer one. An operation
//! that would fail (overflow, division by zero) is left as it stands.

use crate::num::{self, Rounding};
use crate::program::*;

pub(super) enum Folded {
    No,
    /// The expression is one of its operands.
    Same(ExprId),
    Const(Expr),
}

pub(super) fn fold(body: &Body, expr: &Expr) -> Folded {
    match expr {
        Expr::Unary(op, a) => unary(body, *op, *a),
        Expr::Binary(op, a, b) if op.is_logical() => logical(body, *op, *a, *b),
        Expr::Binary(op, a, b) => binary(body, *op, *a, *b),
        Expr::Math { f, args, .. } if args.len() == 2 => match num::Bin::of_math(*f) {
            Some(op) => compute(body, op, args[0], args[1], None),
            None => Folded::No,
        },
        Expr::Cast { to, sat, value } => cast(body, *to, *sat, *value),
        _ => Folded::No,
    }
}

fn of(elem: Elem, bits: u64) -> Folded {
    Folded::Const(Expr::Const { elem, bits })
}

/// An integer or bool constant.
fn known(body: &Body, e: ExprId) -> Option<(Elem, u64)> {
    match body.exprs.get(e)? {
        Expr::Const { elem, bits } if !elem.is_float() => Some((*elem, *bits)),
        _ => None,
    }
}

fn is_const(body: &Body, e: ExprId, value: i64) -> bool {
    known(body, e) == Some((Elem::Index, value as u64))
}

fn unary(body: &Body, op: UnOp, a: ExprId) -> Folded {
    match body.exprs.get(a) {
        Some(&Expr::Const { elem, bits }) => match num::unary(op.into(), elem, bits) {
            Ok(bits) => of(elem, bits),
            Err(_) => Folded::No,
        },
        _ => Folded::No,
    }
}

/// `true && x` is `x`; `false && x` is false, whether or not `x` could be evaluated.
fn logical(body: &Body, op: BinOp, a: ExprId, b: ExprId) -> Folded {
    let decides = u64::from(op == BinOp::LogicalOr);
    let scalar = |e: ExprId| body.types.get(e.index()) == Some(&Type::BOOL);
    if !scalar(a) || !scalar(b) {
        return Folded::No;
    }
    match (known(body, a), known(body, b)) {
        (Some((_, x)), _) if x == decides => of(Elem::BOOL, x),
        (Some(_), _) => Folded::Same(b),
        (_, Some((_, y))) if y == decides => of(Elem::BOOL, y),
        (_, Some(_)) => Folded::Same(a),
        _ => Folded::No,
    }
}

fn binary(body: &Body, op: BinOp, a: ExprId, b: ExprId) -> Folded {
    let result = op.is_comparison().then_some(Elem::BOOL);
    let folded = compute(body, op.into(), a, b, result);
    if !matches!(folded, Folded::No) {
        return folded;
    }
    match op {
        BinOp::Add if is_const(body, a, 0) => Folded::Same(b),
        BinOp::Mul if is_const(body, a, 1) => Folded::Same(b),
        BinOp::Add | BinOp::Sub if is_const(body, b, 0) => Folded::Same(a),
        BinOp::Mul | BinOp::Div if is_const(body, b, 1) => Folded::Same(a),
        _ => Folded::No,
    }
}

fn compute(body: &Body, op: num::Bin, a: ExprId, b: ExprId, result: Option<Elem>) -> Folded {
    let (Some((elem, x)), Some((other, y))) = (known(body, a), known(body, b)) else { return Folded::No };
    match num::binary(op, elem, x, y) {
        Ok(bits) if elem == other => of(result.unwrap_or(elem), bits),
        _ => Folded::No,
    }
}

fn cast(body: &Body, to: Elem, sat: bool, value: ExprId) -> Folded {
    if body.types.get(value.index()).and_then(Type::elem) == Some(to) {
        return Folded::Same(value);
    }
    let Some((from, bits)) = known(body, value) else { return Folded::No };
    let rounding = if sat { Rounding::Saturate } else { Rounding::Nearest };
    match num::convert(from, to, bits, rounding) {
        Ok(bits) => of(to, bits),
        Err(_) => Folded::No,
    }
}
