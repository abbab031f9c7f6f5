//! Spreading a free tile over threads.

use super::{Axis, Digit, Dim, Layout};

/// How a run of elements is covered: `rounds` rounds of `threads` threads with `vec` elements each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    pub threads: u64,
    pub vec: u64,
    pub rounds: u64,
    /// the last round reaches beyond the extent
    pub guarded: bool,
}

/// Covers `extent` elements with at most `threads` threads and accesses of at most `vec` elements (a power of two),
/// at least `least_threads` threads taking part.
///
/// An exact factorisation is preferred, since a guard costs a compare and a branch in every access: among exact
/// covers the one with the fewest rounds, then the widest accesses. It is taken only while it issues at most twice
/// the accesses of a guarded cover with all threads; else full rounds and one guarded round.
pub fn cover(extent: u64, threads: u64, vec: u64, least_threads: u64) -> Cover {
    let (threads, extent) = (threads.max(1), extent.max(1));
    let full = guarded(extent, threads, vec.max(1));
    let exact = widths(vec).filter(|v| extent.is_multiple_of(*v)).filter_map(|v| {
        let vectors = extent / v;
        let t = (least_threads.max(1)..=threads.min(vectors)).rev().find(|t| vectors.is_multiple_of(*t))?;
        Some(Cover { threads: t, vec: v, rounds: vectors / t, guarded: false })
    });
    let best = exact.min_by_key(|c| (c.rounds, std::cmp::Reverse(c.vec)));
    match best {
        Some(c) if c.rounds <= 2 * full.rounds => c,
        _ => full,
    }
}

/// The widest accesses that divide the extent's own alignment, in full rounds and a guarded one.
fn guarded(extent: u64, threads: u64, vec: u64) -> Cover {
    let vec = widths(vec).find(|v| extent.is_multiple_of(*v)).unwrap_or(1);
    let vectors = extent / vec;
    let rounds = vectors.div_ceil(threads);
    Cover { threads, vec, rounds, guarded: rounds * threads != vectors }
}

/// Powers of two from the widest down.
fn widths(vec: u64) -> impl Iterator<Item = u64> {
    let top = if vec == 0 { 0 } else { vec.ilog2() };
    (0..=top).rev().map(|b| 1 << b)
}

/// The fragment of a row of `extent` elements that a cover describes: neighbouring threads take neighbouring vectors.
pub fn cover_layout(name: &str, extent: u64, cover: &Cover) -> Layout {
    let digits = vec![
        Digit::new(cover.rounds, Axis::Reg, cover.vec),
        Digit::new(cover.threads, Axis::Thr, 1),
        Digit::new(cover.vec, Axis::Reg, 1),
    ];
    let mut dim = Dim::new(name, digits);
    dim.guard = cover.guarded.then_some(extent);
    Layout::new(vec![dim])
}
