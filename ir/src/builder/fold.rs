//! Exact arithmetic on integer constants, so that printed offsets are clean. Never on floats, but for the sign of
//! a constant. An expression that could fail (overflow, division by zero) is left as it stands.

use crate::program::*;

pub(super) enum Folded {
    No,
    /// The expression is one of its operands.
    Same(ExprId),
    Const(Expr),
}

pub(super) fn fold(body: &Body, expr: &Expr) -> Folded {
    match expr {
        Expr::Unary(UnOp::Neg, a) => negate(body, *a),
        Expr::Binary(op, a, b) => binary(body, *op, *a, *b),
        Expr::Math { f, args, .. } if args.len() == 2 => pair(body, *f, args[0], args[1]),
        Expr::Cast { to, sat: false, value } => cast(body, *to, *value),
        _ => Folded::No,
    }
}

fn index(value: i64) -> Folded {
    Folded::Const(Expr::Const { elem: Elem::Index, bits: value as u64 })
}

fn truth(value: bool) -> Folded {
    Folded::Const(Expr::Const { elem: Elem::BOOL, bits: u64::from(value) })
}

fn constant(body: &Body, e: ExprId) -> Option<(Elem, u64)> {
    match body.exprs.get(e)? {
        Expr::Const { elem, bits } => Some((*elem, *bits)),
        _ => None,
    }
}

fn const_index(body: &Body, e: ExprId) -> Option<i64> {
    constant(body, e).and_then(|(elem, bits)| (elem == Elem::Index).then_some(bits as i64))
}

fn negate(body: &Body, a: ExprId) -> Folded {
    let Some((elem, bits)) = constant(body, a) else { return Folded::No };
    let bits = match elem {
        Elem::Index => match (bits as i64).checked_neg() {
            Some(n) => n as u64,
            None => return Folded::No,
        },
        Elem::D(d) if d.is_float() => bits ^ (1 << (d.bits() - 1)),
        Elem::D(d) if d.is_int() => {
            let shift = 64 - d.bits();
            let wrapped = bits.wrapping_neg() << shift;
            if d.is_signed() { ((wrapped as i64) >> shift) as u64 } else { wrapped >> shift }
        }
        Elem::D(_) => return Folded::No,
    };
    Folded::Const(Expr::Const { elem, bits })
}

fn binary(body: &Body, op: BinOp, a: ExprId, b: ExprId) -> Folded {
    let (x, y) = (const_index(body, a), const_index(body, b));
    if let (Some(x), Some(y)) = (x, y) {
        return arithmetic(op, x, y);
    }
    match (op, x, y) {
        (BinOp::Add, Some(0), _) | (BinOp::Mul, Some(1), _) => Folded::Same(b),
        (BinOp::Add | BinOp::Sub, _, Some(0)) | (BinOp::Mul | BinOp::Div, _, Some(1)) => Folded::Same(a),
        _ => Folded::No,
    }
}

fn arithmetic(op: BinOp, x: i64, y: i64) -> Folded {
    let value = match op {
        BinOp::Add => x.checked_add(y),
        BinOp::Sub => x.checked_sub(y),
        BinOp::Mul => x.checked_mul(y),
        BinOp::Div => floor_div(x, y),
        BinOp::Rem => floor_div(x, y).map(|q| x.wrapping_sub(q.wrapping_mul(y))),
        BinOp::Eq => return truth(x == y),
        BinOp::Ne => return truth(x != y),
        BinOp::Lt => return truth(x < y),
        BinOp::Le => return truth(x <= y),
        BinOp::Gt => return truth(x > y),
        BinOp::Ge => return truth(x >= y),
        _ => None,
    };
    value.map_or(Folded::No, index)
}

fn floor_div(x: i64, y: i64) -> Option<i64> {
    let q = x.checked_div(y)?;
    Some(if x % y != 0 && (x < 0) != (y < 0) { q - 1 } else { q })
}

fn pair(body: &Body, f: MathFn, a: ExprId, b: ExprId) -> Folded {
    let (Some(x), Some(y)) = (const_index(body, a), const_index(body, b)) else { return Folded::No };
    let value = match f {
        MathFn::Min => Some(x.min(y)),
        MathFn::Max => Some(x.max(y)),
        MathFn::CeilDiv => {
            floor_div(x, y).and_then(|q| if q.checked_mul(y) == Some(x) { Some(q) } else { q.checked_add(1) })
        }
        _ => None,
    };
    value.map_or(Folded::No, index)
}

/// Integer constants convert at once where the new type holds them.
fn cast(body: &Body, to: Elem, value: ExprId) -> Folded {
    let Some((from, bits)) = constant(body, value) else { return Folded::No };
    if !from.is_integer() || !to.is_integer() {
        return Folded::No;
    }
    let unsigned = |e: Elem| matches!(e, Elem::D(d) if !d.is_signed());
    let large = bits > i64::MAX as u64;
    let fits = unsigned(from) == unsigned(to) || !large;
    if fits && crate::typing::literal_fits(to, bits) {
        return Folded::Const(Expr::Const { elem: to, bits });
    }
    Folded::No
}
