//! Whether the operands of a statement fit; blocks inside it are not visited.

use super::memory::{check_index, mem_elem};
use super::ops::{need_token, op_results};
use super::rules::*;
use super::{Answer, Ctx, TypeError, type_of};
use crate::codes;
use crate::program::*;

pub fn check_stmt(ctx: &Ctx, stmt: &StmtKind) -> Answer<()> {
    match stmt {
        StmtKind::Let { local, value } | StmtKind::Assign { local, value } => named(ctx, *local, *value),
        StmtKind::Declare { local } => ctx.local(*local).map(|_| ()),
        StmtKind::Buffer { buffer } => check_shape(&ctx.buffer(*buffer)?.shape),
        StmtKind::Reducer { reducer } => check_reducer(ctx, *reducer),
        StmtKind::Update { local, op, value } => update(ctx, *local, *op, *value),
        StmtKind::Store { mem, index, value } => store(ctx, *mem, index, *value),
        StmtKind::Op { results, op } => check_results(ctx, results, op),
        StmtKind::If { cond, .. } => need_condition(ctx, "`if`", *cond),
        StmtKind::While { cond, .. } => need_condition(ctx, "`while`", *cond),
        StmtKind::For { var, named, segments, carry, .. } => {
            need_index_local(ctx, *var)?;
            check_named(ctx, named, segments)?;
            for s in segments {
                need_index(ctx, "the start of a loop", s.lo)?;
                need_index(ctx, "the end of a loop", s.hi)?;
                need_index(ctx, "the step of a loop", s.step)?;
            }
            for c in carry {
                need_token(ctx, c.local)?;
                c.init.map_or(Ok(()), |init| same_ring(ctx, c.local, init))?;
            }
            Ok(())
        }
        StmtKind::Parallel { vars, extents, .. } => {
            need_count("`parallel`", vars.len(), extents.len())?;
            vars.iter().try_for_each(|&v| need_index_local(ctx, v))?;
            extents.iter().try_for_each(|&e| need_index(ctx, "an extent", e))
        }
        StmtKind::Next { carry, value } => {
            need_token(ctx, *carry)?;
            value.map_or(Ok(()), |v| same_ring(ctx, *carry, v))
        }
        StmtKind::Roles(roles) => roles.iter().try_for_each(|r| {
            ctx.team(r.team)?;
            r.group.map_or(Ok(()), |g| need_index_local(ctx, g))
        }),
        StmtKind::Break | StmtKind::Continue => Ok(()),
    }
}

/// Each segment gives all constants a value of their types.
fn check_named(ctx: &Ctx, named: &[LocalId], segments: &[Segment]) -> Answer<()> {
    for s in segments {
        if s.values.len() != named.len() {
            let message =
                format!("a range gives {} constants a value, the loop has {}", s.values.len(), named.len());
            return Err(TypeError::new(codes::SEGMENTS, message));
        }
        for (&l, &value) in named.iter().zip(&s.values) {
            let (local, ty) = (ctx.local(l)?, ctx.ty(value)?);
            if !matches!(ctx.body.exprs.get(value), Some(Expr::Const { .. })) {
                let message = format!("`{}` is a constant of each range", local.name);
                return Err(TypeError::new(codes::SEGMENTS, message)
                    .at(value, "not known at compile time")
                    .help("write a number, `true` or `false`"));
            }
            if local.ty != *ty || local.kind != LocalKind::Loop {
                let message = format!("`{}` is {} in one range and {ty} in another", local.name, local.ty);
                return Err(TypeError::new(codes::SEGMENTS, message).at(value, format!("this is {ty}")));
            }
        }
    }
    Ok(())
}

/// A name and its value have one type.
fn named(ctx: &Ctx, l: LocalId, value: ExprId) -> Answer<()> {
    let (local, ty) = (ctx.local(l)?, ctx.ty(value)?);
    if local.ty == *ty {
        return Ok(());
    }
    let message = format!("`{}` is {}, the value is {ty}", local.name, local.ty);
    let error = TypeError::new(codes::RESULT_TYPE, message).at(value, format!("this is {ty}"));
    Err(match (&local.ty, local.ty.elem()) {
        (Type::Tile { .. }, _) if ty.is_scalar() => {
            error.help(format!("write `full {}(...)`", fill(&local.ty)))
        }
        (want, Some(elem)) if want.shape() == ty.shape() => error.help(format!("write `{elem}(...)`")),
        _ => error.help("a name keeps the type of its first value"),
    })
}

fn fill(ty: &Type) -> String {
    ty.to_string().trim_start_matches("tile ").to_owned()
}

fn check_reducer(ctx: &Ctx, id: ReducerId) -> Answer<()> {
    let reducer = ctx.reducer(id)?;
    let elems: Vec<Elem> = reducer.parts.iter().filter_map(Type::elem).collect();
    let fits = match super::combiner_parts(ctx, reducer.comb)? {
        Some(parts) => parts == elems,
        None => matches!(elems[..], [elem] if super::ops::builtin_takes(reducer.comb, elem)),
    };
    let shape = reducer.parts.first().map_or(&[][..], |p| p.shape());
    if !fits || reducer.parts.iter().any(|p| p.shape() != shape || *p == Type::Token) {
        let message = format!("the reducer `{}` does not have its combiner's types", reducer.name);
        return Err(TypeError::new(codes::COMBINER_TYPES, message));
    }
    if shape.is_empty() { Ok(()) } else { check_shape(shape) }
}

fn update(ctx: &Ctx, l: LocalId, op: Update, value: ExprId) -> Answer<()> {
    let local = ctx.local(l)?;
    let Some(elem) = local.ty.elem() else { return Err(TypeError::foreign("name")) };
    let symbol = format!("`{}=`", super::exprs::symbol(op.binary()));
    let (found, ty) = (elem_of(ctx, value)?, ctx.ty(value)?);
    if found != elem {
        return Err(TypeError::new(codes::TYPE_MISMATCH, format!("{symbol} joins {elem} and {found}"))
            .at(value, format!("this is {ty}"))
            .label(format!("this is {ty}, `{}` is {}", local.name, local.ty))
            .help(format!("write `{elem}(...)`")));
    }
    if !super::exprs::takes(op.binary(), elem) {
        return Err(TypeError::new(codes::WRONG_OPERAND, format!("{symbol} does not take {elem}"))
            .at(value, format!("this is {ty}"))
            .help(operand_help(elem)));
    }
    let fits = match (&local.ty, ty) {
        (Type::Scalar(_), Type::Tile { .. }) => false,
        (Type::Tile { shape, .. }, Type::Tile { shape: other, .. }) => {
            broadcast(shape, other).is_ok_and(|joined| joined == *shape)
        }
        _ => true,
    };
    if !fits {
        return Err(TypeError::new(
            codes::SHAPE_MISMATCH,
            format!("`{}` is {}, the value is {ty}", local.name, local.ty),
        )
        .at(value, format!("this is {ty}"))
        .help("an update keeps the shape of what it updates"));
    }
    if matches!(op, Update::Shl | Update::Shr) {
        super::exprs::check_shift(ctx, elem, value)?;
    }
    Ok(())
}

fn store(ctx: &Ctx, mem: Mem, index: &[ExprId], value: ExprId) -> Answer<()> {
    check_index(ctx, mem, index)?;
    let elem = mem_elem(ctx, mem)?;
    let found = need_scalar(ctx, "one element", value)?;
    if found == elem {
        return Ok(());
    }
    Err(TypeError::new(codes::STORE_TYPE, format!("the place holds {elem}, the value is {found}"))
        .at(value, format!("this is {found}"))
        .help(format!("write `{elem}(...)`")))
}

fn check_results(ctx: &Ctx, results: &[LocalId], op: &Op) -> Answer<()> {
    let types = op_results(ctx, op)?;
    let unnamed = results.is_empty() && matches!(op, Op::Atomic { .. });
    if unnamed {
        return Ok(());
    }
    if types.len() != results.len() {
        let message = format!("this gives {} values, but {} names stand here", types.len(), results.len());
        return Err(TypeError::new(codes::WRONG_COUNT, message));
    }
    for (&l, ty) in results.iter().zip(&types) {
        let local = ctx.local(l)?;
        if local.ty != *ty {
            let message = format!("`{}` is {}, the value is {ty}", local.name, local.ty);
            return Err(TypeError::new(codes::RESULT_TYPE, message));
        }
    }
    match op {
        Op::Acquire { ring } | Op::Wait { ring } => results.iter().try_for_each(|&l| token_of(ctx, l, *ring)),
        _ => Ok(()),
    }
}

fn token_of(ctx: &Ctx, l: LocalId, ring: RingId) -> Answer<()> {
    let local = ctx.local(l)?;
    if local.kind == LocalKind::Token(ring) {
        return Ok(());
    }
    let message = format!("`{}` is not a slot of `{}`", local.name, ctx.ring(ring)?.name);
    Err(TypeError::new(codes::NOT_A_TOKEN, message))
}

fn same_ring(ctx: &Ctx, a: LocalId, b: LocalId) -> Answer<()> {
    need_token(ctx, b)?;
    let (x, y) = (ctx.local(a)?, ctx.local(b)?);
    if x.kind == y.kind {
        return Ok(());
    }
    Err(TypeError::new(
        codes::NOT_A_TOKEN,
        format!("`{}` and `{}` are slots of different rings", x.name, y.name),
    ))
}

fn need_index_local(ctx: &Ctx, l: LocalId) -> Answer<()> {
    let local = ctx.local(l)?;
    if local.ty == Type::INDEX {
        return Ok(());
    }
    let message = format!("`{}` counts, so it is an index, not {}", local.name, local.ty);
    Err(TypeError::new(codes::RESULT_TYPE, message))
}

/// The recorded type of every expression is what the rules say; the answer names the first that is not.
pub fn check_body(ctx: &Ctx) -> std::result::Result<(), (ExprId, TypeError)> {
    for (id, expr) in ctx.body.exprs.iter() {
        operands_before(id, expr).map_err(|e| (id, e))?;
        let ty = type_of(ctx, expr).map_err(|e| (id, e))?;
        if ctx.body.types.get(id.index()) != Some(&ty) {
            let message = format!("this is {ty}, but was recorded as another type");
            return Err((id, TypeError::new(codes::RESULT_TYPE, message)));
        }
    }
    Ok(())
}

/// Operands stand before their users, so there is no cycle.
fn operands_before(id: ExprId, expr: &Expr) -> Answer<()> {
    let mut ok = true;
    expr.operands(|e| ok &= e < id);
    if ok { Ok(()) } else { Err(TypeError::foreign("value")) }
}
