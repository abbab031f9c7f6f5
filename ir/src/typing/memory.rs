//! Memories and regions: what can be indexed, and what a region is as a tile.

use super::rules::{check_shape, need_elem, need_scalar, need_subscript, need_tile};
use super::{Answer, Ctx, TypeError};
use crate::codes;
use crate::program::*;

/// The name of a memory as the text has it.
pub fn mem_name(ctx: &Ctx, mem: Mem) -> Answer<String> {
    Ok(match mem {
        Mem::Tensor(a) => ctx.arg(a)?.name.clone(),
        Mem::Buffer(b) => ctx.buffer(b)?.name.clone(),
        Mem::Slot { token, field } => {
            let local = ctx.local(token)?;
            format!("{}.{}", local.name, slot_field(ctx, token, field)?.name)
        }
    })
}

pub fn tensor<'a>(ctx: &Ctx<'a>, id: ArgId) -> Answer<&'a Tensor> {
    let arg = ctx.arg(id)?;
    match &arg.kind {
        ArgKind::Tensor(t) => Ok(t),
        ArgKind::Scalar(elem) => {
            let message = format!("`{}` is a scalar {elem}, it has no elements", arg.name);
            Err(TypeError::new(codes::NOT_A_TENSOR, message)
                .help(format!("use it by its name: `{}`", arg.name)))
        }
    }
}

/// The field that a token's slot shows.
pub fn slot_field<'a>(ctx: &Ctx<'a>, token: LocalId, field: u8) -> Answer<&'a RingField> {
    let local = ctx.local(token)?;
    let LocalKind::Token(ring) = local.kind else {
        let message = format!("`{}` is not a slot of a ring", local.name);
        return Err(TypeError::new(codes::NOT_A_TOKEN, message)
            .help("a slot comes from `acquire RING` or `wait RING`"));
    };
    let ring = ctx.ring(ring)?;
    ring.fields.get(usize::from(field)).ok_or_else(|| {
        let names: Vec<_> = ring.fields.iter().map(|f| format!("`{}`", f.name)).collect();
        let message = format!("the slots of `{}` have {} fields", ring.name, ring.fields.len());
        TypeError::new(codes::NO_SUCH_FIELD, message).help(format!("its fields are {}", names.join(", ")))
    })
}

pub fn mem_elem(ctx: &Ctx, mem: Mem) -> Answer<Elem> {
    Ok(match mem {
        Mem::Tensor(a) => tensor(ctx, a)?.elem.into(),
        Mem::Buffer(b) => ctx.buffer(b)?.elem.into(),
        Mem::Slot { token, field } => slot_field(ctx, token, field)?.elem,
    })
}

pub fn mem_rank(ctx: &Ctx, mem: Mem) -> Answer<usize> {
    Ok(match mem {
        Mem::Tensor(a) => tensor(ctx, a)?.dims.len(),
        Mem::Buffer(b) => ctx.buffer(b)?.shape.len(),
        Mem::Slot { token, field } => slot_field(ctx, token, field)?.shape.len(),
    })
}

/// Extents that are known while compiling; a tensor's symbolic ones are `None`.
pub fn mem_extents(ctx: &Ctx, mem: Mem) -> Answer<Vec<Option<u64>>> {
    let fixed = |shape: &Shape| shape.iter().map(|&n| Some(u64::from(n))).collect();
    Ok(match mem {
        Mem::Tensor(a) => {
            let dims = tensor(ctx, a)?.dims.iter();
            dims.map(|&d| super::const_index(ctx, d).and_then(|n| u64::try_from(n).ok())).collect()
        }
        Mem::Buffer(b) => fixed(&ctx.buffer(b)?.shape),
        Mem::Slot { token, field } => fixed(&slot_field(ctx, token, field)?.shape),
    })
}

fn need_rank(ctx: &Ctx, mem: Mem, found: usize) -> Answer<()> {
    let rank = mem_rank(ctx, mem)?;
    if rank == found {
        return Ok(());
    }
    let name = mem_name(ctx, mem)?;
    let (axes, indices) = (plural(rank, "axis", "axes"), plural(found, "index", "indices"));
    Err(TypeError::new(codes::INDEX_COUNT, format!("`{name}` has {axes}, but {indices} stand here"))
        .help("give one index for each axis; `:` takes a whole axis whose extent is known"))
}

fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Index of one element.
pub fn check_index(ctx: &Ctx, mem: Mem, index: &[ExprId]) -> Answer<()> {
    need_rank(ctx, mem, index.len())?;
    index.iter().try_for_each(|&e| need_subscript(ctx, "an index", e))
}

/// Types that may stand as a subscript.
pub fn index_type_ok(ty: &Type) -> bool {
    matches!(ty, Type::Scalar(elem) if elem.is_integer())
}

/// The tile that a region is.
pub fn region_type(ctx: &Ctx, region: &Region) -> Answer<Type> {
    let axes = region.axes.iter().filter(|a| !matches!(a, RegionAxis::New)).count();
    need_rank(ctx, region.mem, axes)?;
    let mut shape = Shape::new();
    for axis in &region.axes {
        match axis {
            RegionAxis::At(e) => need_subscript(ctx, "an index", *e)?,
            RegionAxis::Span { start, len, limit, .. } => {
                need_subscript(ctx, "the start of a range", *start)?;
                if let Some(limit) = limit {
                    need_subscript(ctx, "a limit", *limit)?;
                }
                shape.push(*len);
            }
            RegionAxis::Gather { index, len } => {
                check_gather(ctx, *index, *len)?;
                shape.push(*len);
            }
            RegionAxis::New => shape.push(1),
        }
    }
    if shape.is_empty() {
        let name = mem_name(ctx, region.mem)?;
        let message = format!("this names one element of `{name}`, not a region");
        return Err(TypeError::new(codes::ELEMENT_REGION, message).help("keep an axis: `i +: 1`"));
    }
    check_shape(&shape)?;
    Ok(Type::Tile { elem: mem_elem(ctx, region.mem)?, shape })
}

fn check_gather(ctx: &Ctx, index: ExprId, len: u32) -> Answer<()> {
    let (elem, shape) = need_tile(ctx, "a list of indices", index)?;
    let ty = ctx.ty(index)?;
    if !elem.is_integer() || shape.len() != 1 {
        return Err(TypeError::new(
            codes::GATHER_TYPE,
            "a list of indices is a tile of integers with one axis",
        )
        .at(index, format!("this is {ty}")));
    }
    if shape[0] != len {
        let message = format!("a list of {} indices gathers {} rows, not {len}", shape[0], shape[0]);
        return Err(TypeError::new(codes::GATHER_TYPE, message).at(index, format!("this is {ty}")));
    }
    Ok(())
}

/// The pad of a read or the `or` of an element.
pub fn check_pad(ctx: &Ctx, what: &str, pad: Option<ExprId>, elem: Elem) -> Answer<()> {
    let Some(pad) = pad else { return Ok(()) };
    need_scalar(ctx, what, pad)?;
    need_elem(ctx, what, pad, elem)
}
