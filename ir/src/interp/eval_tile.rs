//! Tile expressions: element-wise operations over the common box, and the ones that only re-index.

use super::arith::{Ew, Failed, compute};
use super::eval::{Scope, agreed, eval, scalar, uniform_index};
use super::fault::{Exec, Fault, fault, malformed};
use super::tile::{Bounds, Tile};
use super::value::Value;
use crate::codes;
use crate::num;
use crate::program::*;
use std::borrow::Cow;
use std::rc::Rc;

pub(super) fn tile<'p, S: Scope<'p>>(s: &mut S, e: ExprId) -> Exec<Rc<Tile>> {
    match eval(s, e)? {
        Value::Tile(tile) => Ok(tile),
        _ => Err(malformed("a scalar where a tile is needed")),
    }
}

/// An operand of a tile operation: a tile, or a scalar that joins any tile.
pub(super) enum Operand {
    Scalar(u64),
    Tile(Rc<Tile>),
}

impl Operand {
    pub fn over(&self, shape: &[u32], bounds: &Bounds) -> Cow<'_, [u64]> {
        match self {
            Operand::Scalar(v) => Cow::Owned(vec![*v]),
            Operand::Tile(t) => t.over(shape, bounds),
        }
    }

    /// The valid box when stretched to `shape`.
    pub fn valid(&self, shape: &[u32]) -> Bounds {
        match self {
            Operand::Scalar(_) => Bounds::full(shape),
            Operand::Tile(t) => t.valid.stretched(&t.shape, shape),
        }
    }
}

pub(super) fn operand<'p, S: Scope<'p>>(s: &mut S, e: ExprId) -> Exec<Operand> {
    match eval(s, e)? {
        Value::Tile(tile) => Ok(Operand::Tile(tile)),
        Value::Scalar(lanes) => {
            agreed(s, &lanes).map(Operand::Scalar).map_err(|f| f.at(s.body().exprs.span(e)))
        }
        Value::Token(_) => Err(malformed("a token where a value is needed")),
    }
}

pub(super) fn node<'p, S: Scope<'p>>(s: &mut S, expr: &'p Expr, ty: &'p Type) -> Exec<Value> {
    let Type::Tile { elem, shape } = ty else { return Err(malformed("a scalar where a tile is needed")) };
    let out = match expr {
        Expr::Splat { value, .. } => {
            let lanes = scalar(s, *value)?;
            let bits = agreed(s, &lanes)?;
            Tile::full(*elem, shape.clone(), vec![bits; ty.count()])
        }
        Expr::Iota { .. } => Tile::full(*elem, shape.clone(), (0..ty.count() as u64).collect()),
        Expr::Transpose(e) => tile(s, *e)?.transposed(),
        Expr::InsertAxis { value, axis } => tile(s, *value)?.with_axis(usize::from(*axis)),
        Expr::Broadcast { value, .. } => tile(s, *value)?.broadcast(shape),
        Expr::Reshape { value, .. } => {
            let t = whole(s, *value, "a reshape")?;
            Tile::full(*elem, shape.clone(), t.data.clone())
        }
        Expr::Bits { to, value } => bits(s, (*to).into(), *value, shape)?,
        Expr::Slice { value, axes } => slice(s, *value, axes)?,
        _ => elementwise(s, expr, *elem, shape)?,
    };
    Ok(Value::Tile(Rc::new(out)))
}

fn whole<'p, S: Scope<'p>>(s: &mut S, e: ExprId, what: &str) -> Exec<Rc<Tile>> {
    let t = tile(s, e)?;
    if t.is_full() {
        return Ok(t);
    }
    let message = format!("{what} needs all elements of its tile, but some lay outside the tensor");
    Err(fault(codes::PARTIAL_TILE, message)
        .help("give the region a `pad`")
        .value("the valid part", bounds_text(&t.valid)))
}

pub(super) fn bounds_text(b: &Bounds) -> String {
    let parts: Vec<String> = (0..b.rank()).map(|d| format!("{}..{}", b.lo[d], b.hi[d])).collect();
    format!("[{}]", parts.join(", "))
}

fn bits<'p, S: Scope<'p>>(s: &mut S, to: Elem, value: ExprId, shape: &Shape) -> Exec<Tile> {
    let t = tile(s, value)?;
    let refuse = || malformed("a bit view that does not fit");
    if t.shape == *shape {
        let data: Option<Vec<u64>> = t.data.iter().map(|&x| num::bitcast(t.elem, to, x)).collect();
        return Ok(Tile {
            elem: to,
            shape: shape.clone(),
            valid: t.valid.clone(),
            data: data.ok_or_else(refuse)?,
        });
    }
    let t = whole(s, value, "a bit view of another width")?;
    let data = num::bitcast_slice(t.elem, to, &t.data).ok_or_else(refuse)?;
    Ok(Tile::full(to, shape.clone(), data))
}

fn slice<'p, S: Scope<'p>>(s: &mut S, value: ExprId, axes: &[SliceAxis]) -> Exec<Tile> {
    let t = tile(s, value)?;
    let mut parts = Vec::with_capacity(axes.len());
    for (d, axis) in axes.iter().enumerate() {
        let (start, len) = match *axis {
            SliceAxis::Span { start, len } => (start, Some(len)),
            SliceAxis::At(e) => (e, None),
        };
        let at = uniform_index(s, start)?;
        let n = i64::from(t.shape[d]);
        if at < 0 || at.saturating_add(i64::from(len.unwrap_or(1))) > n {
            let message = match len {
                Some(len) => {
                    format!("a slice of {len} from {at} leaves axis {d} of a tile, which has {n} elements")
                }
                None => format!("index {at} is outside axis {d} of a tile, which has {n} elements"),
            };
            return Err(fault(codes::OUT_OF_BOUNDS, message).at(s.body().exprs.span(start)));
        }
        parts.push((at as u32, len));
    }
    Ok(t.slice(&parts))
}

fn elementwise<'p, S: Scope<'p>>(s: &mut S, expr: &'p Expr, elem: Elem, shape: &Shape) -> Exec<Tile> {
    let Some(op) = Ew::of(expr, s.program())? else {
        return Err(malformed("a tile expression of unknown kind"));
    };
    let mut ids = Vec::new();
    expr.operands(|e| ids.push(e));
    let (mut operands, mut elems) = (Vec::new(), Vec::new());
    for e in ids {
        operands.push(operand(s, e)?);
        elems.extend(s.body().type_of(e).elem());
    }
    map(s.program(), op, elem, &elems, shape, &operands)
}

/// An element-wise operation over the intersection of the operands' boxes.
pub(super) fn map<'p>(
    program: &'p Program,
    op: Ew<'p>,
    elem: Elem,
    elems: &[Elem],
    shape: &Shape,
    operands: &[Operand],
) -> Exec<Tile> {
    let mut valid = Bounds::full(shape);
    for o in operands {
        valid = valid.intersect(&o.valid(shape));
    }
    let dense: Vec<Cow<[u64]>> = operands.iter().map(|o| o.over(shape, &valid)).collect();
    let data = compute(program, op, elems, &dense, valid.count()).map_err(|f| in_tile(f, &valid))?;
    Ok(Tile { elem, shape: shape.clone(), valid, data })
}

/// Names the tile's element at which an operation failed.
pub(super) fn in_tile(failed: Failed, valid: &Bounds) -> Box<Fault> {
    let mut rest = failed.at;
    let mut index = Vec::new();
    for (d, stride) in valid.strides().into_iter().enumerate() {
        index.push(i64::from(valid.lo[d]) + (rest / stride.max(1)) as i64);
        rest %= stride.max(1);
    }
    let mut f = failed.fault;
    f.values.insert(0, ("the tile's element".into(), format!("{index:?}")));
    f
}
