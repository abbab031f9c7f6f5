//! Memories and regions as syntax.

use super::exprs::Printer;
use super::syntax::*;
use crate::ast::{self, AxisIndex};
use crate::program::*;
use crate::typing;

pub fn mem(p: &Printer, mem: Mem) -> ast::Expr {
    match mem {
        Mem::Tensor(a) => name(p.names.args.get(a)),
        Mem::Buffer(b) => name(p.names.buffers.get(b)),
        Mem::Slot { token, field: at } => {
            let ring = match p.body().locals.get(token).map(|l| l.kind) {
                Some(LocalKind::Token(ring)) => p.ctx.ring(ring).ok(),
                _ => None,
            };
            let tile = ring.and_then(|r| r.fields.get(usize::from(at))).map_or("", |f| &f.name);
            field(p.local(token), tile)
        }
    }
}

pub fn region(p: &Printer, r: &Region) -> ast::Expr {
    let extents = typing::mem_extents(&p.ctx, r.mem).unwrap_or_default();
    let mut at = 0;
    let mut axes = Vec::new();
    for axis in &r.axes {
        let extent = extents.get(at).copied().flatten();
        if !matches!(axis, RegionAxis::New) {
            at += 1;
        }
        axes.push(region_axis(p, axis, extent));
    }
    index(mem(p, r.mem), axes)
}

fn region_axis(p: &Printer, axis: &RegionAxis, extent: Option<u64>) -> AxisIndex {
    match axis {
        RegionAxis::At(e) => AxisIndex::At(p.subscript(*e)),
        RegionAxis::Gather { index, .. } => AxisIndex::At(p.expr(*index)),
        RegionAxis::New => AxisIndex::New(super::nowhere()),
        RegionAxis::Span { .. } if is_whole(p, axis, extent) => full(),
        RegionAxis::Span { start, len, limit, clip_low } => {
            super::syntax::extent(p.subscript(*start), *len, limit.map(|l| p.subscript(l)), *clip_low)
        }
    }
}

fn is_whole(p: &Printer, axis: &RegionAxis, extent: Option<u64>) -> bool {
    matches!(axis, RegionAxis::Span { start, len, limit: None, clip_low: false }
        if p.is_index(*start, 0) && extent == Some(u64::from(*len)))
}

/// A region that an engine reads or writes: a whole tile is named without an index.
pub fn whole_or_region(p: &Printer, r: &Region) -> ast::Expr {
    let extents = typing::mem_extents(&p.ctx, r.mem).unwrap_or_default();
    let whole = extents.len() == r.axes.len() && r.axes.iter().zip(extents).all(|(a, e)| is_whole(p, a, e));
    if whole && !matches!(r.mem, Mem::Tensor(_)) { mem(p, r.mem) } else { region(p, r) }
}
