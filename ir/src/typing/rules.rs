//! What many rules share: classes of element types, and how operands join.

use super::{Answer, Ctx, MAX_ELEMENTS, MAX_RANK, TypeError};
use crate::codes;
use crate::program::{Elem, ExprId, Shape, Type};
use pantile_abi::DTypeKind;

/// Types that arithmetic takes: integers, `index` and `float`; `float8` is only stored, converted and multiplied.
pub fn is_number(elem: Elem) -> bool {
    elem.is_integer() || is_float(elem)
}

/// The class `float`: f16, bf16, f32, f64.
pub fn is_float(elem: Elem) -> bool {
    matches!(elem, Elem::D(d) if d.kind() == DTypeKind::Float)
}

pub fn is_float8(elem: Elem) -> bool {
    matches!(elem, Elem::D(d) if d.kind() == DTypeKind::Float8)
}

/// What to write so that `elem` may stand where an operator refused it.
pub fn operand_help(elem: Elem) -> &'static str {
    if is_float8(elem) {
        "8-bit floats are stored, converted and multiplied by `@`; for arithmetic write `f32(...)`"
    } else if elem == Elem::BOOL {
        "a bool becomes a number by a conversion: write `i32(...)`, or choose with `where(c, a, b)`"
    } else if elem.is_integer() {
        "convert first: write `f32(...)`"
    } else {
        "convert first: write `i32(...)`, or `index(...)` where dims and subscripts are meant"
    }
}

/// Element type of a value; a token has none.
pub fn elem_of(ctx: &Ctx, e: ExprId) -> Answer<Elem> {
    ctx.ty(e)?.elem().ok_or_else(|| {
        TypeError::new(codes::WRONG_OPERAND, "a slot token is not a value")
            .at(e, "this is a slot")
            .help("name one of the slot's tiles, as in `r.a`")
    })
}

/// One element type for all operands.
pub fn same_elem(ctx: &Ctx, what: &str, operands: &[ExprId]) -> Answer<Elem> {
    let Some((&first, rest)) = operands.split_first() else {
        return Err(TypeError::new(codes::WRONG_COUNT, format!("{what} needs an operand")));
    };
    let elem = elem_of(ctx, first)?;
    for &e in rest {
        let other = elem_of(ctx, e)?;
        if other != elem {
            return Err(mismatch(what, (first, elem), (e, other)));
        }
    }
    Ok(elem)
}

fn mismatch(what: &str, (a, left): (ExprId, Elem), (b, right): (ExprId, Elem)) -> TypeError {
    TypeError::new(codes::TYPE_MISMATCH, format!("{what} joins {left} and {right}"))
        .at(b, format!("this is {right}"))
        .also(a, format!("this is {left}"))
        .help(conversion_help(left, right))
        .note("nothing is converted unless it is written")
}

/// `convert one side: write i32(...)`; the wider or more general side is offered.
pub fn conversion_help(left: Elem, right: Elem) -> String {
    let rank = |e: Elem| match e {
        Elem::Index => (1, 64),
        Elem::D(d) if d.is_float() => (2, d.bits()),
        Elem::D(d) if d.is_int() => (1, d.bits()),
        Elem::D(d) => (0, d.bits()),
    };
    if (left == Elem::Index) != (right == Elem::Index) && left.is_integer() && right.is_integer() {
        let other = if left == Elem::Index { right } else { left };
        return format!(
            "convert one side: write `{other}(...)` around the index, or `index(...)` around the {other}"
        );
    }
    let to = if rank(left) >= rank(right) { left } else { right };
    format!("convert one side: write `{to}(...)`")
}

/// The joined shape of operands: `None` if all are scalars.
pub fn join_shapes(ctx: &Ctx, what: &str, operands: &[ExprId]) -> Answer<Option<Shape>> {
    let mut joined: Option<(ExprId, Shape)> = None;
    for &e in operands {
        let ty = ctx.ty(e)?;
        let Type::Tile { shape, .. } = ty else { continue };
        joined = Some(match joined {
            None => (e, shape.clone()),
            Some((first, have)) => {
                let shape = broadcast(&have, shape).map_err(|err| clash(ctx, what, err, first, e))?;
                (first, shape)
            }
        });
    }
    Ok(joined.map(|(_, shape)| shape))
}

/// Why two shapes do not join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    Rank,
    Axis(usize),
}

/// Equal rank, and per axis equal extents or a 1 that stretches.
pub fn broadcast(a: &[u32], b: &[u32]) -> Result<Shape, Clash> {
    if a.len() != b.len() {
        return Err(Clash::Rank);
    }
    let mut out = Shape::new();
    for (axis, (&x, &y)) in a.iter().zip(b).enumerate() {
        match (x, y) {
            _ if x == y => out.push(x),
            (1, n) | (n, 1) => out.push(n),
            _ => return Err(Clash::Axis(axis)),
        }
    }
    Ok(out)
}

fn clash(ctx: &Ctx, what: &str, clash: Clash, a: ExprId, b: ExprId) -> TypeError {
    let (Ok(left), Ok(right)) = (ctx.ty(a), ctx.ty(b)) else { return TypeError::foreign("value") };
    let error = match clash {
        Clash::Rank => {
            let n = |ty: &Type| ty.shape().len();
            TypeError::new(
                codes::RANK_MISMATCH,
                format!("{what} joins a tile of rank {} and one of rank {}", n(left), n(right)),
            )
            .help("insert an axis of extent 1 with `_`, as in `x[:, _]`")
        }
        Clash::Axis(axis) => {
            let (x, y) = (left.shape()[axis], right.shape()[axis]);
            TypeError::new(codes::SHAPE_MISMATCH, format!("{what} joins extents {x} and {y} on axis {axis}"))
                .help("extents must be equal, or one of them 1")
        }
    };
    error.at(b, format!("this is {right}")).also(a, format!("this is {left}"))
}

pub fn with_shape(elem: Elem, shape: Option<Shape>) -> Type {
    match shape {
        None => Type::Scalar(elem),
        Some(shape) => Type::Tile { elem, shape },
    }
}

/// A tile that may exist: rank, extents and size within the limits.
pub fn check_shape(shape: &[u32]) -> Answer<()> {
    if shape.is_empty() {
        return Err(TypeError::new(codes::NEED_TILE, "a tile needs at least one axis"));
    }
    if shape.len() > MAX_RANK {
        let message = format!("a tile has at most {MAX_RANK} axes, this one {}", shape.len());
        return Err(TypeError::new(codes::TOO_MANY_AXES, message));
    }
    if shape.contains(&0) {
        return Err(TypeError::new(codes::EMPTY_TILE, "a tile's extents are at least 1")
            .help("ragged and empty edges are written as regions that clip: `X[i*B +: B]`"));
    }
    let count = shape.iter().try_fold(1u64, |n, &e| n.checked_mul(u64::from(e)));
    if count.is_none_or(|n| n > MAX_ELEMENTS) {
        return Err(TypeError::new(
            codes::EMPTY_TILE,
            format!("a tile holds at most {MAX_ELEMENTS} elements"),
        )
        .help("cut it into smaller tiles and loop over them"));
    }
    Ok(())
}

/// A scalar bool; `what` is the place, as in "`if`".
pub fn need_condition(ctx: &Ctx, what: &str, e: ExprId) -> Answer<()> {
    match ctx.ty(e)? {
        Type::Scalar(Elem::BOOL) => Ok(()),
        ty @ Type::Tile { elem: Elem::BOOL, .. } => {
            Err(TypeError::new(codes::TILE_CONDITION, format!("{what} takes one bool, not a tile of them"))
                .at(e, format!("this is {ty}"))
                .help("choose per element with `where(c, a, b)`, or fold with `any(c)` or `all(c)`"))
        }
        ty => {
            let help = if ty.elem().is_some_and(is_number) {
                "compare: write `... != 0`"
            } else {
                "write a comparison"
            };
            Err(TypeError::new(codes::NOT_BOOL, format!("{what} takes a bool, not {ty}"))
                .at(e, format!("this is {ty}"))
                .help(help))
        }
    }
}

pub fn need_scalar(ctx: &Ctx, what: &str, e: ExprId) -> Answer<Elem> {
    match ctx.ty(e)? {
        Type::Scalar(elem) => Ok(*elem),
        ty @ Type::Tile { .. } => {
            Err(TypeError::new(codes::NEED_SCALAR, format!("{what} takes a scalar, not a tile"))
                .at(e, format!("this is {ty}"))
                .help("fold the tile (`sum(x)`, `rowmax(x)`), or pick one element: `x[i]`"))
        }
        Type::Token => elem_of(ctx, e),
    }
}

pub fn need_tile<'a>(ctx: &Ctx<'a>, what: &str, e: ExprId) -> Answer<(Elem, &'a Shape)> {
    match ctx.ty(e)? {
        Type::Tile { elem, shape } => Ok((*elem, shape)),
        ty => {
            elem_of(ctx, e)?;
            Err(TypeError::new(codes::NEED_TILE, format!("{what} takes a tile, not a scalar"))
                .at(e, format!("this is {ty}"))
                .help(format!("make a tile of it: `full {ty}[N](...)`")))
        }
    }
}

/// A scalar of an integer type or `index`, as subscripts are.
pub fn need_subscript(ctx: &Ctx, what: &str, e: ExprId) -> Answer<()> {
    match ctx.ty(e)? {
        Type::Scalar(elem) if elem.is_integer() => Ok(()),
        ty => Err(TypeError::new(codes::INDEX_TYPE, format!("{what} is one integer, not {ty}"))
            .at(e, format!("this is {ty}"))
            .help("write `index(...)` to convert a number")),
    }
}

/// A scalar `index`, as loop bounds and extents are.
pub fn need_index(ctx: &Ctx, what: &str, e: ExprId) -> Answer<()> {
    match ctx.ty(e)? {
        Type::Scalar(Elem::Index) => Ok(()),
        ty => Err(TypeError::new(codes::TYPE_MISMATCH, format!("{what} is an index, not {ty}"))
            .at(e, format!("this is {ty}"))
            .help("write `index(...)`")),
    }
}

/// An operand of exactly this element type.
pub fn need_elem(ctx: &Ctx, what: &str, e: ExprId, elem: Elem) -> Answer<()> {
    let found = elem_of(ctx, e)?;
    if found == elem {
        return Ok(());
    }
    Err(TypeError::new(codes::TYPE_MISMATCH, format!("{what} is {elem}, not {found}"))
        .at(e, format!("this is {found}"))
        .help(format!("write `{elem}(...)`")))
}

pub fn need_count(what: &str, found: usize, expected: usize) -> Answer<()> {
    if found == expected {
        return Ok(());
    }
    let s = if expected == 1 { "" } else { "s" };
    Err(TypeError::new(codes::WRONG_COUNT, format!("{what} takes {expected} operand{s}, not {found}")))
}
