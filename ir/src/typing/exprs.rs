//! Types of expressions.

use super::memory::{check_index, check_pad, mem_elem};
use super::rules::*;
use super::{Answer, Ctx, TypeError};
use crate::codes;
use crate::num;
use crate::program::*;
use pantile_abi::DType;

/// The type of an expression whose operands stand in `ctx.body`.
pub fn type_of(ctx: &Ctx, expr: &Expr) -> Answer<Type> {
    match expr {
        Expr::Const { elem, bits } => constant(*elem, *bits),
        Expr::Local(l) => local(ctx, *l),
        Expr::Dim(d) => ctx.dim(*d).map(|_| Type::INDEX),
        Expr::Arg(a) => match &ctx.arg(*a)?.kind {
            ArgKind::Scalar(elem) => Ok(Type::Scalar(*elem)),
            ArgKind::Tensor(_) => {
                let name = &ctx.arg(*a)?.name;
                Err(TypeError::new(
                    codes::NEED_SCALAR,
                    format!("`{name}` is a tensor in memory, not a value"),
                )
                .help(format!("read a region or an element of it: `{name}[...]`")))
            }
        },
        Expr::Unary(op, e) => unary(ctx, *op, *e),
        Expr::Binary(op, a, b) => binary(ctx, *op, *a, *b),
        Expr::Select { cond, then, other } => select(ctx, *cond, *then, *other),
        Expr::Math { f, approx, args } => math(ctx, *f, *approx, args),
        Expr::Cast { to, sat, value } => cast(ctx, *to, *sat, *value),
        Expr::Bits { to, value } => bits(ctx, *to, *value),
        Expr::Intrinsic { id, args } => intrinsic(ctx, *id, args),
        Expr::Element { mem, index, or } => {
            check_index(ctx, *mem, index)?;
            let elem = mem_elem(ctx, *mem)?;
            check_pad(ctx, "the value after `or`", *or, elem)?;
            Ok(Type::Scalar(elem))
        }
        Expr::Pick { tile, index } => pick(ctx, *tile, index),
        Expr::Splat { value, shape } => {
            let elem = need_scalar(ctx, "`full`", *value)?;
            check_shape(shape)?;
            Ok(Type::Tile { elem, shape: shape.clone() })
        }
        Expr::Iota { axis, shape } => iota(*axis, shape),
        Expr::Transpose(e) => transpose(ctx, *e),
        Expr::InsertAxis { value, axis } => insert_axis(ctx, *value, *axis),
        Expr::Slice { value, axes } => slice(ctx, *value, axes),
        Expr::Broadcast { value, shape } => stretch(ctx, *value, shape),
        Expr::Reshape { value, shape } => reshape(ctx, *value, shape),
    }
}

/// Whether bits are a value of the type, extended as [`Expr::Const`] says.
pub fn literal_fits(elem: Elem, bits: u64) -> bool {
    let Elem::D(d) = elem else { return true };
    let width = d.bits();
    if d == DType::Bool {
        return bits <= 1;
    }
    if width == 64 {
        return true;
    }
    if d.is_int() && d.is_signed() {
        let shift = 64 - width;
        return ((bits << shift) as i64 >> shift) as u64 == bits;
    }
    bits >> width == 0
}

/// An expression as programs hold it: a NaN is the one of its type.
pub fn normal(expr: Expr) -> Expr {
    match expr {
        Expr::Const { elem, bits } if literal_fits(elem, bits) => {
            Expr::Const { elem, bits: crate::num::one_nan(elem, bits) }
        }
        other => other,
    }
}

/// The value of an expression that is an integer constant.
pub fn const_index(ctx: &Ctx, e: ExprId) -> Option<i64> {
    match ctx.body.exprs.get(e)? {
        Expr::Const { elem, bits } if elem.is_integer() => {
            let unsigned = matches!(elem, Elem::D(d) if !d.is_signed());
            if unsigned { i64::try_from(*bits).ok() } else { Some(*bits as i64) }
        }
        _ => None,
    }
}

fn constant(elem: Elem, bits: u64) -> Answer<Type> {
    if literal_fits(elem, bits) {
        return Ok(Type::Scalar(elem));
    }
    Err(TypeError::new(codes::LITERAL_RANGE, format!("{elem} cannot hold this number")))
}

fn local(ctx: &Ctx, l: LocalId) -> Answer<Type> {
    let local = ctx.local(l)?;
    if local.ty == Type::Token {
        return Err(TypeError::new(
            codes::WRONG_OPERAND,
            format!("`{}` is a slot token, not a value", local.name),
        )
        .help(format!("name one of the slot's tiles, as in `{}.a`", local.name)));
    }
    Ok(local.ty.clone())
}

fn refuse(what: &str, e: ExprId, ty: &Type, elem: Elem) -> TypeError {
    TypeError::new(codes::WRONG_OPERAND, format!("{what} does not take {elem}"))
        .at(e, format!("this is {ty}"))
        .help(operand_help(elem))
}

fn unary(ctx: &Ctx, op: UnOp, e: ExprId) -> Answer<Type> {
    let ty = ctx.ty(e)?;
    let elem = elem_of(ctx, e)?;
    let ok = match op {
        UnOp::Neg => is_number(elem),
        UnOp::Not => elem == Elem::BOOL || elem.is_integer(),
    };
    let what = if op == UnOp::Neg { "`-`" } else { "`!`" };
    if ok { Ok(ty.clone()) } else { Err(refuse(what, e, ty, elem)) }
}

/// An operator as written.
pub fn symbol(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::Rem => "%",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        BinOp::And => "&",
        BinOp::Or => "|",
        BinOp::Xor => "^",
        BinOp::LogicalAnd => "&&",
        BinOp::LogicalOr => "||",
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
    }
}

pub(super) fn takes(op: BinOp, elem: Elem) -> bool {
    use BinOp::*;
    match op {
        Add | Sub | Mul | Div => is_number(elem),
        Rem | Shl | Shr => elem.is_integer(),
        And | Or | Xor => elem.is_integer() || elem == Elem::BOOL,
        LogicalAnd | LogicalOr => elem == Elem::BOOL,
        Eq | Ne => is_number(elem) || elem == Elem::BOOL,
        Lt | Le | Gt | Ge => is_number(elem),
    }
}

fn binary(ctx: &Ctx, op: BinOp, a: ExprId, b: ExprId) -> Answer<Type> {
    let what = format!("`{}`", symbol(op));
    for e in [a, b] {
        let elem = elem_of(ctx, e)?;
        if op.is_logical() && elem != Elem::BOOL {
            let ty = ctx.ty(e)?;
            return Err(TypeError::new(codes::NOT_BOOL, format!("{what} takes bools, not {elem}"))
                .at(e, format!("this is {ty}"))
                .help("compare: write `... != 0`"));
        }
    }
    let elem = same_elem(ctx, &what, &[a, b])?;
    if !takes(op, elem) {
        let mut error = refuse(&what, a, ctx.ty(a)?, elem);
        if op == BinOp::Rem && is_float(elem) {
            error = error.help("the remainder of floats is written `a - b*floor(a / b)`");
        }
        return Err(error);
    }
    if matches!(op, BinOp::Shl | BinOp::Shr) {
        check_shift(ctx, elem, b)?;
    }
    if matches!(op, BinOp::Div | BinOp::Rem) && elem.is_integer() && const_index(ctx, b) == Some(0) {
        let message = format!("{what} divides by zero");
        return Err(TypeError::new(codes::DIVISION_BY_ZERO, message).at(b, "this is 0"));
    }
    if let (Elem::Index, Some(x), Some(y)) = (elem, const_index(ctx, a), const_index(ctx, b))
        && num::binary(op.into(), elem, x as u64, y as u64).is_err()
    {
        let message = format!("{what} of {x} and {y} does not fit into an index");
        return Err(TypeError::new(codes::INDEX_OVERFLOW, message));
    }
    let shape = join_shapes(ctx, &what, &[a, b])?;
    let result = if op.is_comparison() { Elem::BOOL } else { elem };
    Ok(with_shape(result, shape))
}

pub(super) fn check_shift(ctx: &Ctx, elem: Elem, by: ExprId) -> Answer<()> {
    let width = elem.dtype().map_or(64, |d| i64::from(d.bits()));
    match const_index(ctx, by) {
        Some(n) if !(0..width).contains(&n) => {
            let message = format!("{elem} has {width} bits, it cannot be shifted by {n}");
            Err(TypeError::new(codes::SHIFT_RANGE, message)
                .at(by, format!("must be from 0 to {}", width - 1)))
        }
        _ => Ok(()),
    }
}

fn select(ctx: &Ctx, cond: ExprId, then: ExprId, other: ExprId) -> Answer<Type> {
    let elem = elem_of(ctx, cond)?;
    if elem != Elem::BOOL {
        let ty = ctx.ty(cond)?;
        return Err(TypeError::new(codes::NOT_BOOL, format!("a choice takes a bool, not {elem}"))
            .at(cond, format!("this is {ty}"))
            .help("compare: write `... != 0`"));
    }
    let what = "a choice";
    let elem = same_elem(ctx, what, &[then, other])?;
    let shape = join_shapes(ctx, what, &[cond, then, other])?;
    Ok(with_shape(elem, shape))
}

fn math(ctx: &Ctx, f: MathFn, approx: bool, args: &[ExprId]) -> Answer<Type> {
    let what = format!("`{}`", f.name());
    need_count(&what, args.len(), f.arity())?;
    if approx && !f.has_approx() {
        return Err(TypeError::new(codes::NO_APPROX, format!("{what} has no `.approx` form"))
            .help(format!("write `{}(...)`", f.name())));
    }
    let elem = same_elem(ctx, &what, args)?;
    let ok = match f {
        MathFn::Abs | MathFn::Min | MathFn::Max | MathFn::Clamp => is_number(elem),
        MathFn::CeilDiv => elem.is_integer(),
        _ => is_float(elem),
    };
    if !ok {
        return Err(refuse(&what, args[0], ctx.ty(args[0])?, elem));
    }
    let shape = join_shapes(ctx, &what, args)?;
    let result = if matches!(f, MathFn::IsNan | MathFn::IsInf) { Elem::BOOL } else { elem };
    Ok(with_shape(result, shape))
}

fn cast(ctx: &Ctx, to: Elem, sat: bool, value: ExprId) -> Answer<Type> {
    let ty = ctx.ty(value)?;
    let from = elem_of(ctx, value)?;
    if to == Elem::BOOL && from != Elem::BOOL {
        return Err(TypeError::new(codes::BAD_CAST, format!("{from} does not convert to bool"))
            .at(value, format!("this is {ty}"))
            .help("compare: write `... != 0`"));
    }
    if sat && (from == Elem::BOOL || to == Elem::BOOL || to == Elem::Index) {
        return Err(TypeError::new(codes::BAD_CAST, format!("`{to}.sat` does not take {from}"))
            .at(value, format!("this is {ty}"))
            .help(format!("write `{to}(...)`")));
    }
    Ok(ty.with_elem(to))
}

fn bits(ctx: &Ctx, to: DType, value: ExprId) -> Answer<Type> {
    let ty = ctx.ty(value)?;
    let from = elem_of(ctx, value)?;
    let error = |message: String| TypeError::new(codes::BAD_BITS, message).at(value, format!("this is {ty}"));
    let Some(d) = from.dtype().filter(|&d| d != DType::Bool && to != DType::Bool) else {
        return Err(
            error(format!("{from} has no bits to view as {to}")).help("convert to a sized integer first")
        );
    };
    let (have, want) = (d.bits(), to.bits());
    match ty {
        Type::Tile { shape, .. } => {
            let mut shape = shape.clone();
            if let Some(last) = shape.last_mut() {
                let total = u64::from(*last) * u64::from(have);
                if total % u64::from(want) != 0 {
                    return Err(error(format!(
                        "{last} elements of {have} bits do not make whole {to} of {want} bits"
                    )));
                }
                *last = u32::try_from(total / u64::from(want))
                    .map_err(|_| error("the tile is too large".into()))?;
            }
            check_shape(&shape)?;
            Ok(Type::Tile { elem: to.into(), shape })
        }
        _ if have == want => Ok(Type::Scalar(to.into())),
        _ => Err(error(format!("{from} has {have} bits, {to} has {want}"))
            .help("a scalar is viewed as a type of its own width")),
    }
}

fn intrinsic(ctx: &Ctx, id: IntrinsicId, args: &[ExprId]) -> Answer<Type> {
    let def = ctx.intrinsic(id)?;
    let what = format!("`{}`", def.name);
    let func = &def.means;
    need_count(&what, args.len(), func.params.len())?;
    for (&arg, &param) in args.iter().zip(&func.params) {
        let local = func.body.locals.get(param).ok_or_else(|| TypeError::foreign("intrinsic"))?;
        let elem = local.ty.elem().ok_or_else(|| TypeError::foreign("intrinsic"))?;
        need_elem(ctx, &format!("`{}` of {what}", local.name), arg, elem)?;
    }
    let result = func.results.first().and_then(|r| func.body.types.get(r.index())).and_then(Type::elem);
    let elem = result.ok_or_else(|| TypeError::foreign("intrinsic"))?;
    Ok(with_shape(elem, join_shapes(ctx, &what, args)?))
}

fn pick(ctx: &Ctx, tile: ExprId, index: &[ExprId]) -> Answer<Type> {
    let (elem, shape) = need_tile(ctx, "an index", tile)?;
    if shape.len() != index.len() {
        let ty = ctx.ty(tile)?;
        let message = format!("a tile of rank {} needs as many indices, not {}", shape.len(), index.len());
        return Err(TypeError::new(codes::INDEX_COUNT, message).at(tile, format!("this is {ty}")));
    }
    for (axis, (&e, &n)) in index.iter().zip(shape).enumerate() {
        need_subscript(ctx, "an index", e)?;
        check_inside(ctx, e, 1, n, axis)?;
    }
    Ok(Type::Scalar(elem))
}

fn check_inside(ctx: &Ctx, start: ExprId, len: u32, extent: u32, axis: usize) -> Answer<()> {
    let last = i64::from(extent) - i64::from(len);
    let allowed = match last {
        0 => "must be 0".to_string(),
        1.. => format!("must be from 0 to {last}"),
        _ => format!("{len} are more than there are"),
    };
    match const_index(ctx, start) {
        Some(n) if n < 0 || n > last => {
            let message =
                format!("axis {axis} has {extent} elements; {n} to {} is outside", n + i64::from(len) - 1);
            Err(TypeError::new(codes::SLICE_OUTSIDE, message).at(start, allowed))
        }
        _ if last < 0 => {
            let message = format!("axis {axis} has {extent} elements, not {len}");
            Err(TypeError::new(codes::SLICE_OUTSIDE, message))
        }
        _ => Ok(()),
    }
}

fn iota(axis: u8, shape: &Shape) -> Answer<Type> {
    check_shape(shape)?;
    need_axis(axis, shape.len())?;
    if shape.iter().enumerate().any(|(i, &n)| i != usize::from(axis) && n != 1) {
        let message = "a counting tile is 1 long on every other axis";
        return Err(
            TypeError::new(codes::SHAPE_MISMATCH, message).help("broadcasting stretches it where it is used")
        );
    }
    Ok(Type::Tile { elem: Elem::Index, shape: shape.clone() })
}

pub fn need_axis(axis: u8, rank: usize) -> Answer<()> {
    if usize::from(axis) < rank {
        return Ok(());
    }
    let last = rank.saturating_sub(1);
    let message = format!("there is no axis {axis} in a tile of rank {rank}");
    Err(TypeError::new(codes::NO_SUCH_AXIS, message).help(format!("axes are numbered from 0 to {last}")))
}

fn transpose(ctx: &Ctx, e: ExprId) -> Answer<Type> {
    let (elem, shape) = need_tile(ctx, "`.T`", e)?;
    let n = shape.len();
    if n < 2 {
        let ty = ctx.ty(e)?;
        return Err(TypeError::new(codes::NO_SUCH_AXIS, "`.T` swaps the last two axes")
            .at(e, format!("this is {ty}"))
            .help("insert an axis: `x[:, _]` is a column, `x[_, :]` a row"));
    }
    let mut shape = shape.clone();
    shape.swap(n - 2, n - 1);
    Ok(Type::Tile { elem, shape })
}

fn insert_axis(ctx: &Ctx, value: ExprId, axis: u8) -> Answer<Type> {
    let (elem, shape) = need_tile(ctx, "`_`", value)?;
    need_axis(axis, shape.len() + 1)?;
    let mut shape = shape.clone();
    shape.insert(usize::from(axis), 1);
    check_shape(&shape)?;
    Ok(Type::Tile { elem, shape })
}

fn slice(ctx: &Ctx, value: ExprId, axes: &[SliceAxis]) -> Answer<Type> {
    let (elem, shape) = need_tile(ctx, "an index", value)?;
    if shape.len() != axes.len() {
        let ty = ctx.ty(value)?;
        let message = format!("a tile of rank {} needs as many indices, not {}", shape.len(), axes.len());
        return Err(TypeError::new(codes::INDEX_COUNT, message).at(value, format!("this is {ty}")));
    }
    let mut out = Shape::new();
    for (axis, (part, &extent)) in axes.iter().zip(shape).enumerate() {
        match *part {
            SliceAxis::At(e) => {
                need_subscript(ctx, "an index", e)?;
                check_inside(ctx, e, 1, extent, axis)?;
            }
            SliceAxis::Span { start, len } => {
                need_subscript(ctx, "the start of a range", start)?;
                check_inside(ctx, start, len, extent, axis)?;
                out.push(len);
            }
        }
    }
    if out.is_empty() {
        let message = "this names one element of a tile, not a part of it";
        return Err(TypeError::new(codes::ELEMENT_REGION, message).help("keep an axis: `i +: 1`"));
    }
    check_shape(&out)?;
    Ok(Type::Tile { elem, shape: out })
}

fn stretch(ctx: &Ctx, value: ExprId, to: &Shape) -> Answer<Type> {
    let (elem, shape) = need_tile(ctx, "a broadcast", value)?;
    check_shape(to)?;
    if shape.len() != to.len() || shape.iter().zip(to).any(|(&a, &b)| a != b && a != 1) {
        let (ty, want) = (ctx.ty(value)?, Type::Tile { elem, shape: to.clone() });
        return Err(TypeError::new(codes::SHAPE_MISMATCH, format!("{ty} does not stretch to {want}"))
            .at(value, format!("this is {ty}"))
            .help("only extents of 1 stretch, ranks stay"));
    }
    Ok(Type::Tile { elem, shape: to.clone() })
}

fn reshape(ctx: &Ctx, value: ExprId, to: &Shape) -> Answer<Type> {
    let (elem, _) = need_tile(ctx, "a reshape", value)?;
    check_shape(to)?;
    let ty = ctx.ty(value)?;
    let want = Type::Tile { elem, shape: to.clone() };
    if ty.count() != want.count() {
        let message = format!("{} elements do not make {} elements", ty.count(), want.count());
        return Err(TypeError::new(codes::RESHAPE_COUNT, message).at(value, format!("this is {ty}")));
    }
    Ok(want)
}
