//! Whether declarations are well formed: parameters, buffers, rings.

use super::rules::{check_shape, need_index};
use super::{Answer, Ctx, MAX_RANK, TypeError};
use crate::codes;
use crate::layout::{Axis, Shared};
use crate::program::*;

pub fn check_arg(ctx: &Ctx, arg: &Arg) -> Answer<()> {
    let ArgKind::Tensor(t) = &arg.kind else { return Ok(()) };
    let rank = t.dims.len();
    if rank == 0 {
        return Err(TypeError::new(codes::INDEX_COUNT, format!("the tensor `{}` has no axes", arg.name))
            .help("a single value is a scalar parameter: `x: f32`"));
    }
    if rank > MAX_RANK {
        let message = format!("a tensor has at most {MAX_RANK} axes, `{}` has {rank}", arg.name);
        return Err(TypeError::new(codes::TOO_MANY_AXES, message));
    }
    t.dims.iter().try_for_each(|&d| need_index(ctx, "a dim", d))?;
    if let Some(strides) = &t.strides {
        if strides.len() != rank {
            let message = format!("`{}` has {rank} axes, but {} strides stand here", arg.name, strides.len());
            return Err(TypeError::new(codes::STRIDE_COUNT, message)
                .help("give one stride for each axis, in elements"));
        }
        strides.iter().try_for_each(|&s| need_index(ctx, "a stride", s))?;
    }
    check_align(t.align)?;
    check_align(t.base_align)?;
    check_packing(arg, t)
}

fn check_packing(arg: &Arg, t: &Tensor) -> Answer<()> {
    let Some(packed) = t.packed else {
        if t.elem.bits() < 8 {
            let message = format!("`{}` has {}-bit elements, two in a byte", arg.name, t.elem.bits());
            return Err(TypeError::new(codes::BAD_PACKING, message)
                .help("say along which dim they are packed: `packed(K)`"));
        }
        return Ok(());
    };
    if t.elem.bits() >= 8 {
        let message = format!("`{}` has {} elements, which fill whole bytes", arg.name, t.elem);
        return Err(TypeError::new(codes::BAD_PACKING, message).help("leave `packed(...)` out"));
    }
    if usize::from(packed.axis) >= t.dims.len() {
        let message = format!("`{}` has no axis {} to be packed along", arg.name, packed.axis);
        return Err(TypeError::new(codes::BAD_PACKING, message));
    }
    Ok(())
}

fn check_align(align: Option<u32>) -> Answer<()> {
    match align {
        Some(n) if !n.is_power_of_two() => {
            Err(TypeError::new(codes::BAD_ALIGN, format!("an alignment is a power of two, not {n}"))
                .help("alignments are in bytes: `align 16`"))
        }
        _ => Ok(()),
    }
}

pub fn check_buffer(ctx: &Ctx, buffer: &Buffer) -> Answer<()> {
    check_shape(&buffer.shape)?;
    check_align(buffer.align)?;
    if !matches!(buffer.home, Home::Shared | Home::Fragment | Home::Thread | Home::Scratch) {
        let message = format!("`{}` is declared as memory, but has no home of its own", buffer.name);
        return Err(TypeError::new(codes::PLACE, message)
            .help("memory is `shared`, `fragment`, `scratch` or an array of each thread"));
    }
    if let Some(l) = &buffer.layout {
        check_layout(&buffer.name, l, &buffer.shape, Elem::D(buffer.elem), buffer.home == Home::Fragment)?;
    }
    buffer.team.map_or(Ok(()), |t| ctx.team(t).map(|_| ()))?;
    check_partial(&buffer.name, buffer.partial, buffer.home)
}

/// What the plan says of a value.
pub fn check_local(ctx: &Ctx, local: &Local) -> Answer<()> {
    let placed = local.home != Home::Open || local.layout.is_some() || local.team.is_some();
    if placed && !matches!(local.kind, LocalKind::Let | LocalKind::Var) {
        let message = format!("`{}` is an index or a slot, which has no place of its own", local.name);
        return Err(
            TypeError::new(codes::PLACE, message).help("only values named by `let` and `var` have one")
        );
    }
    if let Home::Ring(ring) = local.home {
        ctx.ring(ring)?;
    }
    if let Some(l) = &local.layout {
        let registers = match local.home {
            Home::Fragment => true,
            Home::Open => l.layout.size(Axis::Mem) <= 1 && l.xor.is_none(),
            _ => false,
        };
        check_layout(&local.name, l, local.ty.shape(), local.ty.elem().unwrap_or(Elem::Index), registers)?;
    }
    local.team.map_or(Ok(()), |t| ctx.team(t).map(|_| ()))?;
    check_partial(&local.name, local.partial, local.home)
}

fn check_layout(name: &str, l: &Shared, shape: &[u32], elem: Elem, registers: bool) -> Answer<()> {
    let shape: Vec<u64> = shape.iter().map(|&n| n.into()).collect();
    let fits = if registers { l.fits_fragment(&shape) } else { l.fits_memory(&shape, elem.bytes()) };
    fits.map_err(|why| TypeError::new(codes::PLACE, format!("the layout of `{name}` does not fit: {why}")))
}

fn check_partial(name: &str, partial: Option<Partial>, home: Home) -> Answer<()> {
    let Some(partial) = partial else { return Ok(()) };
    if home != Home::Fragment {
        let message = format!("`{name}` is a partial value, but no fragment");
        return Err(TypeError::new(codes::PARTIAL, message)
            .help("parts are held in registers: declare it with `fragment`, or place it `@ fragment`"));
    }
    if !matches!(partial.comb, Combiner::Add | Combiner::Max) {
        let message = format!("the parts of `{name}` are joined by another combiner than `add` and `max`");
        return Err(
            TypeError::new(codes::PARTIAL, message).help("write `partial(add, …)` or `partial(max, …)`")
        );
    }
    Ok(())
}

pub fn check_ring(ctx: &Ctx, ring: &Ring) -> Answer<()> {
    ctx.team(ring.producer)?;
    ctx.team(ring.consumer)?;
    if let Fill::Fifo(q) = ring.fill {
        ctx.queue(q)?;
    }
    for field in &ring.fields {
        if !field.shape.is_empty() {
            check_shape(&field.shape)?;
        }
        check_align(field.align)?;
        if let Some(l) = &field.layout {
            check_layout(&field.name, l, &field.shape, field.elem, false)?;
        }
    }
    Ok(())
}
