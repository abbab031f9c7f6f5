//! Types of the results of ops.

use super::exprs::need_axis;
use super::memory::{check_index, check_pad, mem_elem, region_type, slot_field};
use super::rules::*;
use super::{Answer, Ctx, TypeError};
use crate::codes;
use crate::program::*;
use pantile_abi::DType;
use smallvec::{SmallVec, smallvec};

type Results = SmallVec<[Type; 2]>;

/// The types of an op's results. An atomic's result may stay unnamed; every other result has its local.
pub fn op_results(ctx: &Ctx, op: &Op) -> Answer<Results> {
    match op {
        Op::Read { from, pad } => {
            let ty = region_type(ctx, from)?;
            check_pad(ctx, "the value after `pad`", *pad, mem_elem(ctx, from.mem)?)?;
            Ok(smallvec![ty])
        }
        Op::Write { to, value } => nothing(check_write(ctx, to, *value)),
        Op::Gemm { a, b, into, init, precision } => {
            let (x, y) = (need_tile(ctx, "`@`", *a)?, need_tile(ctx, "`@`", *b)?);
            let at = [Some(*a), Some(*b)];
            nothing(check_product(ctx, at, (x.0, x.1.clone()), (y.0, y.1.clone()), *into, *init, *precision))
        }
        Op::Reduce { comb, inputs, axis } => reduce(ctx, *comb, inputs, *axis),
        Op::Scan { comb, inputs, axis, .. } => {
            let shape = folded_shape(ctx, "scan", *comb, inputs)?;
            need_axis(*axis, shape.len())?;
            inputs.iter().map(|&e| ctx.ty(e).cloned()).collect()
        }
        Op::Fold { reducer, index, values } => nothing(fold(ctx, *reducer, index, values)),
        Op::Join { reducer } => Ok(ctx.reducer(*reducer)?.parts.iter().cloned().collect()),
        Op::AllReduce { comb, inputs, over } => allreduce(ctx, *comb, inputs, over),
        Op::Shuffle { value, lane, width, .. } => shuffle(ctx, *value, *lane, *width),
        Op::Vote { kind, cond, team } => {
            check_team(ctx, *team)?;
            need_condition(ctx, "a vote", *cond)?;
            let mask = Elem::D(DType::U32);
            Ok(smallvec![Type::Scalar(if *kind == VoteKind::Ballot { mask } else { Elem::BOOL })])
        }
        Op::Once { value } => {
            need_scalar(ctx, "`once`", *value)?;
            Ok(smallvec![ctx.ty(*value)?.clone()])
        }
        Op::Barrier { team } | Op::Fence { team, .. } => nothing(check_team(ctx, *team)),
        Op::Atomic { op, at, value, expected } => atomic(ctx, *op, at, *value, *expected),
        Op::Print { parts } => nothing(parts.iter().try_for_each(|part| match part {
            Text::Value(e) => elem_of(ctx, *e).map(|_| ()),
            Text::Str(_) => Ok(()),
        })),
        Op::Assert { cond, .. } => nothing(need_condition(ctx, "`assert`", *cond)),
        Op::Acquire { ring } | Op::Wait { ring } => ctx.ring(*ring).map(|_| smallvec![Type::Token]),
        Op::Commit { token } | Op::Release { token } => nothing(need_token(ctx, *token)),
        Op::Await { queue, .. } => nothing(ctx.queue(*queue).map(|_| ())),
        Op::Take { turn } | Op::Pass { turn } => nothing(ctx.turn(*turn).map(|_| ())),
        Op::CopyAsync { from, to, pad, queue } => nothing(copy_async(ctx, from, to, *pad, *queue)),
        Op::Issue { queue, a, b, into, init, precision } => {
            ctx.queue(*queue)?;
            let (x, y) = (mat_operand(ctx, a)?, mat_operand(ctx, b)?);
            let at = [a, b].map(|m| if let MatOperand::Value(e) = m { Some(*e) } else { None });
            nothing(check_product(ctx, at, x, y, *into, *init, *precision))
        }
    }
}

fn nothing(checked: Answer<()>) -> Answer<Results> {
    checked.map(|()| Results::new())
}

fn check_write(ctx: &Ctx, to: &Region, value: ExprId) -> Answer<()> {
    let place = region_type(ctx, to)?;
    let elem = mem_elem(ctx, to.mem)?;
    let found = elem_of(ctx, value)?;
    let ty = ctx.ty(value)?;
    if found != elem {
        return Err(TypeError::new(
            codes::STORE_TYPE,
            format!("the place holds {elem}, the value is {found}"),
        )
        .at(value, format!("this is {ty}"))
        .help(format!("write `{elem}(...)`")));
    }
    if ty.is_tile() {
        let joined = broadcast(place.shape(), ty.shape());
        if joined.ok().as_deref() != Some(place.shape()) {
            let rank = ty.shape().len() != place.shape().len();
            let code = if rank { codes::RANK_MISMATCH } else { codes::SHAPE_MISMATCH };
            return Err(TypeError::new(code, format!("the place is {place}, the value is {ty}"))
                .at(value, format!("this is {ty}"))
                .help("the value's extents must be those of the place, or 1"));
        }
    }
    Ok(())
}

/// Element type of a product: `acc` of operands that `@` multiplies.
pub fn product_elem(a: Elem, b: Elem) -> Option<Elem> {
    use DType::*;
    let (Elem::D(x), Elem::D(y)) = (a, b) else { return None };
    let known = |d| matches!(d, I4 | U4 | I8 | U8 | F8E4M3 | F8E5M2 | F16 | BF16 | F32 | F64);
    let mixed = matches!((x, y), (I8, U8) | (U8, I8) | (F8E4M3, F8E5M2) | (F8E5M2, F8E4M3));
    (known(x) && known(y) && (x == y || mixed)).then(|| a.acc())
}

fn check_product(
    ctx: &Ctx,
    at: [Option<ExprId>; 2],
    a: (Elem, Shape),
    b: (Elem, Shape),
    into: LocalId,
    init: Init,
    precision: Precision,
) -> Answer<()> {
    let point = |mut error: TypeError, a: &(Elem, Shape), b: &(Elem, Shape)| {
        let tile = |(elem, shape): &(Elem, Shape)| Type::Tile { elem: *elem, shape: shape.clone() };
        if let Some(e) = at[1] {
            error = error.at(e, format!("this is {}", tile(b)));
        }
        if let Some(e) = at[0] {
            error = error.also(e, format!("this is {}", tile(a)));
        }
        error
    };
    let Some(elem) = product_elem(a.0, b.0) else {
        let error = TypeError::new(codes::PRODUCT_TYPES, format!("`@` does not multiply {} by {}", a.0, b.0))
            .help("both sides have one type of f16, bf16, f32, f64, f8e4m3, f8e5m2, i8, u8, i4, u4")
            .note("only i8 with u8, and f8e4m3 with f8e5m2, may be mixed");
        return Err(point(error, &a, &b));
    };
    if a.1.len() != 2 || b.1.len() != 2 {
        let error = TypeError::new(codes::RANK_MISMATCH, "`@` multiplies tiles of rank 2")
            .help("drop an axis with an index, or insert one with `_`; batches are grid axes or loops");
        return Err(point(error, &a, &b));
    }
    if a.1[1] != b.1[0] {
        let message =
            format!("`@` sums over {} columns on the left but {} rows on the right", a.1[1], b.1[0]);
        let mut error = TypeError::new(codes::PRODUCT_SHAPES, message);
        if a.1[1] == b.1[1] {
            error = error.help("transpose the right side: `b.T`");
        }
        return Err(point(error, &a, &b));
    }
    if precision == Precision::Tf32 && a.0 != Elem::F32 {
        return Err(TypeError::new(
            codes::PRODUCT_TYPES,
            format!("precision tf32 is for f32 operands, not {}", a.0),
        ));
    }
    if let Init::When(cond) = init {
        need_condition(ctx, "`init`", cond)?;
    }
    check_accumulator(ctx, into, &Type::tile(elem, [a.1[0], b.1[1]]))
}

fn check_accumulator(ctx: &Ctx, into: LocalId, product: &Type) -> Answer<()> {
    let local = ctx.local(into)?;
    if local.ty == *product {
        return Ok(());
    }
    let message = format!("the product is {product}, but `{}` is {}", local.name, local.ty);
    let error = TypeError::new(codes::ACCUMULATOR, message);
    if local.ty.shape() == product.shape() {
        return Err(error.help("accumulate in `acc(T)`, and convert the sum at the end: `T(c)`"));
    }
    Err(error.help(format!("declare it as `var {} = zeros {}`", local.name, fill(product))))
}

/// `f32[64, 64]`
fn fill(ty: &Type) -> String {
    ty.to_string().trim_start_matches("tile ").to_owned()
}

fn mat_operand(ctx: &Ctx, m: &MatOperand) -> Answer<(Elem, Shape)> {
    match m {
        MatOperand::Value(e) => need_tile(ctx, "`@`", *e).map(|(elem, shape)| (elem, shape.clone())),
        MatOperand::Memory { region, transposed } => {
            let elem = mem_elem(ctx, region.mem)?;
            let Type::Tile { mut shape, .. } = region_type(ctx, region)? else {
                return Err(TypeError::new(codes::NEED_TILE, "`@` takes a tile, not a scalar"));
            };
            let n = shape.len();
            if *transposed && n >= 2 {
                shape.swap(n - 2, n - 1);
            }
            Ok((elem, shape))
        }
    }
}

/// The element types of a combiner's parts; `None` is a built-in one, of one part of any fitting type.
pub fn combiner_parts(ctx: &Ctx, comb: Combiner) -> Answer<Option<Vec<Elem>>> {
    let Combiner::User(id) = comb else { return Ok(None) };
    Ok(Some(ctx.combine(id)?.identity.iter().map(|&(elem, _)| elem).collect()))
}

fn combiner_name(ctx: &Ctx, comb: Combiner) -> Answer<String> {
    match comb {
        Combiner::User(id) => Ok(ctx.combine(id)?.name.clone()),
        _ => Ok(comb.builtin_name().unwrap_or_default().to_owned()),
    }
}

pub(super) fn builtin_takes(comb: Combiner, elem: Elem) -> bool {
    match comb {
        Combiner::Add | Combiner::Mul | Combiner::Min | Combiner::Max => is_number(elem),
        Combiner::And | Combiner::Or | Combiner::Xor => elem.is_integer() || elem == Elem::BOOL,
        Combiner::User(_) => false,
    }
}

/// The values given to a combiner: as many as it has parts, each of its part's element type.
pub(super) fn check_combiner(ctx: &Ctx, comb: Combiner, inputs: &[ExprId]) -> Answer<()> {
    let name = combiner_name(ctx, comb)?;
    let Some(parts) = combiner_parts(ctx, comb)? else {
        need_count(&format!("`{name}`"), inputs.len(), 1)?;
        let elem = elem_of(ctx, inputs[0])?;
        if !builtin_takes(comb, elem) {
            let ty = ctx.ty(inputs[0])?;
            return Err(TypeError::new(codes::COMBINER_TYPES, format!("`{name}` does not combine {elem}"))
                .at(inputs[0], format!("this is {ty}"))
                .help(operand_help(elem)));
        }
        return Ok(());
    };
    if parts.len() != inputs.len() {
        let message = format!("`{name}` combines tuples of {}, not of {}", parts.len(), inputs.len());
        return Err(TypeError::new(codes::COMBINER_TYPES, message));
    }
    for (i, (&e, part)) in inputs.iter().zip(parts).enumerate() {
        let found = elem_of(ctx, e)?;
        if found != part {
            let message = format!("part {i} of `{name}` is {part}, not {found}");
            return Err(TypeError::new(codes::COMBINER_TYPES, message)
                .at(e, format!("this is {}", ctx.ty(e)?))
                .help(format!("write `{part}(...)`")));
        }
    }
    Ok(())
}

/// All inputs of a fold are tiles of one shape.
fn folded_shape<'a>(ctx: &Ctx<'a>, what: &str, comb: Combiner, inputs: &[ExprId]) -> Answer<&'a Shape> {
    check_combiner(ctx, comb, inputs)?;
    let mut first: Option<(ExprId, &Shape)> = None;
    for &e in inputs {
        let (_, shape) = need_tile(ctx, &format!("`{what}`"), e)?;
        match first {
            Some((f, have)) if have != shape => {
                return Err(TypeError::new(
                    codes::SHAPE_MISMATCH,
                    format!("`{what}` folds tiles of one shape"),
                )
                .at(e, format!("this is {}", ctx.ty(e)?))
                .also(f, format!("this is {}", ctx.ty(f)?)));
            }
            Some(_) => {}
            None => first = Some((e, shape)),
        }
    }
    first
        .map(|(_, shape)| shape)
        .ok_or_else(|| TypeError::new(codes::WRONG_COUNT, format!("`{what}` needs a tile")))
}

fn reduce(ctx: &Ctx, comb: Combiner, inputs: &[ExprId], axis: Option<u8>) -> Answer<Results> {
    let mut shape = folded_shape(ctx, "reduce", comb, inputs)?.clone();
    match axis {
        None => shape.clear(),
        Some(axis) => {
            need_axis(axis, shape.len())?;
            shape.remove(usize::from(axis));
        }
    }
    let kept = (!shape.is_empty()).then_some(shape);
    inputs.iter().map(|&e| Ok(with_shape(elem_of(ctx, e)?, kept.clone()))).collect()
}

fn fold(ctx: &Ctx, id: ReducerId, index: &[ExprId], values: &[ExprId]) -> Answer<()> {
    let reducer = ctx.reducer(id)?;
    let name = &reducer.name;
    check_combiner(ctx, reducer.comb, values)?;
    let shape = reducer.parts.first().map_or(&[][..], |p| p.shape());
    if index.is_empty() {
        return fold_whole(ctx, reducer, shape, values);
    }
    if index.len() != shape.len() {
        let message = format!("`{name}` has {} axes, but {} indices stand here", shape.len(), index.len());
        return Err(TypeError::new(codes::INDEX_COUNT, message));
    }
    index.iter().try_for_each(|&e| need_subscript(ctx, "an index", e))?;
    values.iter().try_for_each(|&e| need_scalar(ctx, "an element of a reducer", e).map(|_| ()))
}

/// Without an index: one scalar, all elements of tiles into a scalar reducer, or a tile into a tile reducer.
fn fold_whole(ctx: &Ctx, reducer: &Reducer, shape: &[u32], values: &[ExprId]) -> Answer<()> {
    let joined = join_shapes(ctx, "`op=`", values)?;
    let stretches = |have: &Shape| broadcast(shape, have).ok().as_deref() == Some(shape);
    match joined {
        Some(have) if !shape.is_empty() && !stretches(&have) => {
            let found = Type::Tile { elem: elem_of(ctx, values[0])?, shape: have };
            let message =
                format!("`{}` has the shape {}, the values are {found}", reducer.name, reducer.parts[0]);
            Err(TypeError::new(codes::SHAPE_MISMATCH, message))
        }
        _ => Ok(()),
    }
}

fn allreduce(ctx: &Ctx, comb: Combiner, inputs: &[ExprId], over: &Over) -> Answer<Results> {
    check_combiner(ctx, comb, inputs)?;
    for &e in inputs {
        need_scalar(ctx, "`allreduce`", e)?;
    }
    match over {
        Over::Team(team) => check_team(ctx, *team)?,
        Over::Axes(axes) => {
            for &axis in axes {
                let local = ctx.local(axis)?;
                if !matches!(local.kind, LocalKind::Thread(_)) {
                    let message = format!("`{}` is not an axis of `threads`", local.name);
                    return Err(TypeError::new(codes::NO_SUCH_AXIS, message)
                        .help("name a thread axis, or `warp`, `group`, `block`"));
                }
            }
        }
    }
    inputs.iter().map(|&e| ctx.ty(e).cloned()).collect()
}

fn shuffle(ctx: &Ctx, value: ExprId, lane: ExprId, width: Option<u32>) -> Answer<Results> {
    need_scalar(ctx, "a shuffle", value)?;
    need_subscript(ctx, "a lane", lane)?;
    if let Some(w) = width
        && !w.is_power_of_two()
    {
        let message = format!("the width of a shuffle is a power of two, not {w}");
        return Err(TypeError::new(codes::SHAPE_MISMATCH, message));
    }
    Ok(smallvec![ctx.ty(value)?.clone()])
}

fn check_team(ctx: &Ctx, team: Team) -> Answer<()> {
    match team {
        Team::Named(id) => ctx.team(id).map(|_| ()),
        Team::Warp | Team::Group | Team::Block | Team::Cluster => Ok(()),
    }
}

fn atomic_takes(op: AtomicOp, elem: Elem) -> bool {
    use DType::*;
    let Elem::D(d) = elem else { return false };
    let wide = matches!(d, I32 | U32 | I64 | U64);
    match op {
        AtomicOp::Add | AtomicOp::Min | AtomicOp::Max => wide || matches!(d, F16 | BF16 | F32 | F64),
        AtomicOp::Exchange => wide || matches!(d, F32 | F64),
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::CompareExchange => wide,
    }
}

fn atomic(ctx: &Ctx, op: AtomicOp, at: &Place, value: ExprId, expected: Option<ExprId>) -> Answer<Results> {
    let what = format!("`{}`", op.name());
    let mem = match at {
        Place::Element { mem, .. } => *mem,
        Place::Region(r) => r.mem,
    };
    let elem = mem_elem(ctx, mem)?;
    if !atomic_takes(op, elem) {
        let message = format!("{what} does not work on {elem}");
        let types = match op {
            AtomicOp::Add | AtomicOp::Min | AtomicOp::Max => {
                "32- and 64-bit integers, f16, bf16, f32 and f64"
            }
            AtomicOp::Exchange => "32- and 64-bit integers, f32 and f64",
            _ => "32- and 64-bit integers",
        };
        return Err(TypeError::new(codes::ATOMIC_TYPE, message).help(format!("it takes {types}")));
    }
    match (op, expected) {
        (AtomicOp::CompareExchange, Some(e)) => {
            need_scalar(ctx, "the expected value", e)?;
            need_elem(ctx, "the expected value", e, elem)?;
        }
        (AtomicOp::CompareExchange, None) => need_count(&what, 2, 3)?,
        (_, Some(_)) => need_count(&what, 3, 2)?,
        (_, None) => {}
    }
    match at {
        Place::Element { index, .. } => {
            check_index(ctx, mem, index)?;
            need_scalar(ctx, &what, value)?;
            need_elem(ctx, &format!("the value of {what}"), value, elem)?;
            Ok(smallvec![Type::Scalar(elem)])
        }
        Place::Region(region) => {
            if matches!(op, AtomicOp::CompareExchange | AtomicOp::Exchange) {
                return Err(TypeError::new(
                    codes::ATOMIC_TYPE,
                    format!("{what} works on one element, not on a region"),
                )
                .help("name the element: `P[i]`"));
            }
            nothing(check_write(ctx, region, value))
        }
    }
}

pub(super) fn need_token(ctx: &Ctx, token: LocalId) -> Answer<()> {
    let local = ctx.local(token)?;
    if local.ty == Type::Token && matches!(local.kind, LocalKind::Token(_)) {
        return Ok(());
    }
    Err(TypeError::new(codes::NOT_A_TOKEN, format!("`{}` is {}, not a slot of a ring", local.name, local.ty))
        .help("a slot comes from `acquire RING` or `wait RING`"))
}

fn copy_async(
    ctx: &Ctx,
    from: &Region,
    to: &Region,
    pad: Option<ExprId>,
    queue: Option<QueueId>,
) -> Answer<()> {
    if let Some(q) = queue {
        ctx.queue(q)?;
    }
    if let Mem::Slot { token, field } = to.mem {
        slot_field(ctx, token, field)?;
    }
    let (src, dst) = (region_type(ctx, from)?, region_type(ctx, to)?);
    check_pad(ctx, "the value after `pad`", pad, mem_elem(ctx, from.mem)?)?;
    if src != dst {
        let code = if src.elem() == dst.elem() { codes::SHAPE_MISMATCH } else { codes::STORE_TYPE };
        return Err(TypeError::new(code, format!("a copy moves {src} to {dst}"))
            .help("both sides of a copy have the same type and extents"));
    }
    Ok(())
}
