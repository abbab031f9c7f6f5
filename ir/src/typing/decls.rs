//! Whether declarations are well formed: parameters, buffers, rings.

use super::rules::{check_shape, need_index};
use super::{Answer, Ctx, MAX_RANK, TypeError};
use crate::codes;
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

pub fn check_buffer(_ctx: &Ctx, buffer: &Buffer) -> Answer<()> {
    check_shape(&buffer.shape)?;
    check_align(buffer.align)
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
    }
    Ok(())
}
