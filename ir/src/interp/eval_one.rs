//! Scalars in a context of one lane: the same meaning as [`super::eval`], without masks and vectors. References and
//! hosts spend their time here.

use super::arith::{Ew, compute, scalar_fault};
use super::eval::{Scope, as_index};
use super::eval_tile;
use super::fault::{Exec, fault, malformed};
use crate::codes;
use crate::math;
use crate::num::{self, Bin, Rounding};
use crate::program::*;
use smallvec::SmallVec;
use std::borrow::Cow;

pub(super) fn one<'p, S: Scope<'p>>(s: &mut S, e: ExprId) -> Exec<u64> {
    let body = s.body();
    let expr = &body.exprs[e];
    match expr {
        Expr::Const { bits, .. } => return Ok(*bits),
        Expr::Local(l) => return s.local_one(*l).map_err(|f| f.at(body.exprs.span(e))),
        Expr::Dim(d) => return s.dim(*d).map(|v| v as u64),
        Expr::Arg(a) => return s.arg(*a),
        _ => {}
    }
    let shared = s.memo().is_shared(e);
    if shared && let Some(bits) = s.memo().bits(e) {
        return Ok(bits);
    }
    let bits = node(s, expr).map_err(|f| f.at(body.exprs.span(e)))?;
    if shared {
        s.memo().put_bits(e, bits);
    }
    Ok(bits)
}

fn elem_of(body: &Body, e: ExprId) -> Exec<Elem> {
    body.type_of(e).elem().ok_or_else(|| malformed("a token where a value is needed"))
}

fn node<'p, S: Scope<'p>>(s: &mut S, expr: &'p Expr) -> Exec<u64> {
    let body = s.body();
    match expr {
        Expr::Binary(op @ (BinOp::LogicalAnd | BinOp::LogicalOr), a, b) => {
            let left = one(s, *a)?;
            if (left != 0) == (*op == BinOp::LogicalAnd) { one(s, *b) } else { Ok(left) }
        }
        Expr::Binary(op, a, b) => {
            let (x, y) = (one(s, *a)?, one(s, *b)?);
            let elem = elem_of(body, *a)?;
            num::binary(Bin::from(*op), elem, x, y).map_err(|f| scalar_fault(f, &[elem, elem], &[x, y]))
        }
        Expr::Unary(op, a) => {
            let (x, elem) = (one(s, *a)?, elem_of(body, *a)?);
            num::unary((*op).into(), elem, x).map_err(|f| scalar_fault(f, &[elem], &[x]))
        }
        Expr::Select { cond, then, other } => {
            let yes = one(s, *cond)? != 0;
            one(s, if yes { *then } else { *other })
        }
        Expr::Math { f, args, .. } => {
            let (x, elems) = operands(s, args)?;
            math::eval(*f, elems[0], &x).map_err(|f| scalar_fault(f, &elems, &x))
        }
        Expr::Cast { to, sat, value } => {
            let (x, elem) = (one(s, *value)?, elem_of(body, *value)?);
            let rounding = if *sat { Rounding::Saturate } else { Rounding::Nearest };
            num::convert(elem, *to, x, rounding).map_err(|f| scalar_fault(f, &[elem], &[x]))
        }
        Expr::Bits { to, value } => {
            let (x, elem) = (one(s, *value)?, elem_of(body, *value)?);
            num::bitcast(elem, (*to).into(), x).ok_or_else(|| malformed("a bit view of another width"))
        }
        Expr::Intrinsic { args, .. } => {
            let Some(op) = Ew::of(expr, s.program())? else { return Err(malformed("an unknown intrinsic")) };
            let (x, elems) = operands(s, args)?;
            let dense: SmallVec<[Cow<[u64]>; 3]> = x.iter().map(|&v| Cow::Owned(vec![v])).collect();
            Ok(compute(s.program(), op, &elems, &dense, 1).map_err(|f| f.fault)?[0])
        }
        Expr::Element { mem, index, or } => {
            let at = subscripts(s, index)?;
            match (s.element_one(*mem, &at, or.is_some())?, or) {
                (Some(bits), _) => Ok(bits),
                (None, Some(e)) => one(s, *e),
                (None, None) => Err(malformed("an index outside without its pad")),
            }
        }
        Expr::Pick { tile, index } => {
            let tile = eval_tile::tile(s, *tile)?;
            let at = subscripts(s, index)?;
            pick(&tile, &at)
        }
        _ => Err(malformed("a tile where a scalar is needed")),
    }
}

type Values = SmallVec<[u64; 3]>;

fn operands<'p, S: Scope<'p>>(s: &mut S, args: &[ExprId]) -> Exec<(Values, SmallVec<[Elem; 3]>)> {
    let (mut x, mut elems) = (Values::new(), SmallVec::new());
    for &e in args {
        x.push(one(s, e)?);
        elems.push(elem_of(s.body(), e)?);
    }
    Ok((x, elems))
}

/// The subscripts of one element.
pub(super) fn subscripts<'p, S: Scope<'p>>(s: &mut S, index: &[ExprId]) -> Exec<SmallVec<[i64; 4]>> {
    let mut at = SmallVec::new();
    for &e in index {
        let bits = one(s, e)?;
        at.push(as_index(s.body().type_of(e), bits)?);
    }
    Ok(at)
}

/// One element of a tile, which must be inside and valid.
pub(super) fn pick(tile: &super::tile::Tile, at: &[i64]) -> Exec<u64> {
    let inside: Option<Shape> =
        (at.iter().zip(&tile.shape)).map(|(&i, &n)| u32::try_from(i).ok().filter(|&i| i < n)).collect();
    let Some(inside) = inside else {
        let message = format!("element {at:?} is outside a tile of shape {:?}", tile.shape.as_slice());
        return Err(fault(codes::OUT_OF_BOUNDS, message));
    };
    tile.get(&inside).ok_or_else(|| {
        let message = format!("element {at:?} of the tile is invalid: it lay outside the tensor");
        fault(codes::INVALID_ELEMENT, message).help("give the region a `pad`, or index only what is inside")
    })
}
