//! Where products are printed without spaces: `i*BM + n`, `A[g*(H/G) +: HG]`, but `d * d` and `(x - m) * r`.
//!
//! A product of names and numbers is written tight inside a sum, and in subscripts, shapes and ranges. Nothing
//! depends on it but the look.

use crate::ast::{BinaryOp, Expr, ExprKind};

/// Names, numbers, fields of names.
fn is_plain(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Int(_) | ExprKind::Name(_) => true,
        ExprKind::Field(base, _) => is_plain(base) && !matches!(base.kind, ExprKind::Int(_)),
        _ => false,
    }
}

fn is_product(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem)
}

fn is_sum(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Add | BinaryOp::Sub)
}

/// A product that may be written tight.
pub fn is_tight_product(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Binary(op, a, b) => is_product(*op) && is_tight_factor(a) && is_tight_factor(b),
        _ => false,
    }
}

/// What may stand in a tight product: also a sum of plain operands, in brackets.
fn is_tight_factor(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Binary(op, a, b) if is_sum(*op) => is_plain(a) && is_plain(b),
        ExprKind::Binary(..) => is_tight_product(e),
        _ => is_plain(e),
    }
}
