//! Widths of vector accesses.

use super::{Axis, Relation, gcd};

/// What bounds an access besides the layouts.
#[derive(Clone, Copy, Debug)]
pub struct VectorLimits {
    /// widest access of the target
    pub max_bytes: u64,
    /// bytes that the base pointer and all strides known only at run time are multiples of
    pub align: u64,
    /// lowest address bit that a swizzle changes
    pub xor_base: Option<u32>,
}

/// Elements that one access of a thread can move between registers (the source) and memory (the destination), for
/// elements of whole bytes; packed elements count by the byte that holds them.
///
/// The run of registers must continue byte by byte in memory. Its width is a power of two, no swizzle may reach into
/// it, and everything else that moves the address must keep it aligned.
pub fn vector_width(relation: &Relation, element_bytes: u64, limits: &VectorLimits) -> u64 {
    let most = limits.max_bytes.min(limits.xor_base.map_or(u64::MAX, |b| 1 << b)) / element_bytes;
    let mut width = 1;
    let mut guard_free = true;
    while width < most && guard_free {
        let next = relation.on(Axis::Reg, Axis::Mem).find(|p| p.dst.1 == width * element_bytes);
        let Some(piece) = next else { break };
        let run = piece.extent & piece.extent.wrapping_neg();
        let run = guarded_run(relation, piece.dim, piece.place, run);
        width *= run;
        guard_free = run == piece.extent;
    }
    let width = width.min(largest_power(most));
    aligned(relation, element_bytes, limits, width)
}

/// The part of a run that never straddles the end of a guarded dim.
fn guarded_run(relation: &Relation, dim: usize, place: u64, run: u64) -> u64 {
    let valid = relation.guards.iter().find(|(d, _)| *d == dim).map(|(_, g)| *g);
    valid.map_or(run, |g| if g % place == 0 { gcd(run, g / place) } else { 1 })
}

/// The greatest power of two not above `n`, at least 1.
fn largest_power(n: u64) -> u64 {
    if n == 0 { 1 } else { 1 << n.ilog2() }
}

/// Narrows a width until every other move of the address is a multiple of it.
fn aligned(relation: &Relation, element_bytes: u64, limits: &VectorLimits, width: u64) -> u64 {
    let inside =
        |p: &&super::Piece| p.src.0 == Axis::Reg && p.dst.0 == Axis::Mem && p.dst.1 < width * element_bytes;
    let others = relation.pieces.iter().filter(|p| p.dst.0 == Axis::Mem && p.extent > 1 && !inside(p));
    let step = others.fold(limits.align, |g, p| gcd(g, p.dst.1));
    let step = gcd(step, relation.dst_offset[Axis::Mem]);
    let fits = |w: u64| step.is_multiple_of(w * element_bytes);
    std::iter::successors(Some(width), |w| (*w > 1).then_some(w / 2)).find(|w| fits(*w)).unwrap_or(1)
}
