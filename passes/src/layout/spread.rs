//! Digits for classes of axes: threads first along what is contiguous in memory, the rest over the other axes.
//!
//! A thread's number is cut into bits; each class takes bits that no other axis of its loops takes. Threads beyond a
//! power of two, and bits that nobody needs, hold copies.

use super::Facts;
use super::classes::{Classes, Node};
use super::digits::{AxisLayout, Place};
use std::collections::HashMap;

/// What a class was given.
#[derive(Clone, Debug, Default)]
struct Share {
    /// bits of the thread's number, lowest value first
    bits: Vec<u32>,
    vector: u32,
}

/// The axis layout of each class, by its root.
pub fn spread(classes: &Classes, threads: u32, facts: &Facts) -> HashMap<Node, AxisLayout> {
    let mut shares: HashMap<Node, Share> = HashMap::new();
    let width = threads.trailing_zeros();
    let size =
        |s: usize| -> u64 { classes.spaces[s].axes.iter().map(|&a| u64::from(classes.extent[a])).product() };
    let mut order: Vec<usize> = (0..classes.spaces.len()).collect();
    order.sort_by_key(|&s| (!classes.spaces[s].product, std::cmp::Reverse(size(s)), s));
    for s in order {
        let space = &classes.spaces[s];
        let roots: Vec<Node> = space.axes.iter().map(|&a| classes.find(a)).collect();
        let used: u32 =
            roots.iter().filter_map(|r| shares.get(r)).flat_map(|s| &s.bits).map(|b| 1 << b).sum();
        let mut free: Vec<u32> = (0..width).filter(|b| used >> b & 1 == 0).collect();
        let mut open: Vec<(usize, Node)> =
            roots.iter().copied().enumerate().filter(|(_, r)| !shares.contains_key(r)).collect();
        // fast axes first: what is contiguous, then from the last axis on
        let slow = |r: Node| !classes.strong(r) && (space.product || classes.vector(r) == 0);
        open.sort_by_key(|&(i, r)| (slow(r), std::cmp::Reverse(i)));
        for (n, &(_, root)) in open.iter().enumerate() {
            let extent = classes.extent[root];
            let others: u32 = open[n + 1..].iter().map(|&(_, r)| capacity(classes.extent[r])).sum();
            let vector = vector(classes, root, extent, space.product, facts);
            let want = ceil_log2(extent.div_ceil(vector));
            let left = free.len() as u32;
            let take = if space.product && n == 0 && open.len() > 1 {
                want.min(left / 2)
            } else {
                // what a shuffle reaches, unless the other axes cannot take the rest
                // what crosses rows of shared memory leaves lanes for neighbours in a row, which share its words
                let near =
                    if classes.crosses(root) { facts.lanes.min(facts.line.max(1)) } else { facts.lanes };
                let near = near.ilog2().max(left.saturating_sub(others));
                want.min(near)
            };
            let taken = beside(classes, &shares, root);
            let open_to_it = free.iter().copied().filter(|b| taken >> b & 1 == 0);
            let bits: Vec<u32> = open_to_it.take(take.min(left) as usize).collect();
            free.retain(|b| !bits.contains(b));
            shares.insert(root, Share { bits, vector });
        }
    }
    let all = 0..classes.extent.len();
    let roots = all.filter(|&n| classes.find(n) == n);
    roots.map(|r| (r, axis(classes.extent[r], shares.get(&r)))).collect()
}

/// Bits of the classes that a class meets in any loop. Two that have theirs from loops of their own may meet in a third.
fn beside(classes: &Classes, shares: &HashMap<Node, Share>, root: Node) -> u32 {
    let met = classes.around(root).flat_map(|s| &s.axes).map(|&a| classes.find(a));
    let bits = met.filter(|&r| r != root).filter_map(|r| shares.get(&r)).flat_map(|s| &s.bits);
    bits.fold(0, |all, b| all | 1 << b)
}

/// Bits of threads that an axis can take.
fn capacity(extent: u32) -> u32 {
    extent.max(1).ilog2()
}

fn ceil_log2(n: u32) -> u32 {
    n.max(1).next_power_of_two().trailing_zeros()
}

/// Neighbouring elements of one thread: an access to memory, or a register tile's row.
fn vector(classes: &Classes, root: Node, extent: u32, product: bool, facts: &Facts) -> u32 {
    let wanted = match (classes.vector(root), product) {
        (0, true) => facts.register_row,
        (v, true) => v.min(facts.register_row),
        (0, false) => 1,
        (v, false) => v,
    };
    let mut v = prev_power_of_two(wanted.max(1));
    while v > 1 && !extent.is_multiple_of(v) {
        v /= 2;
    }
    v
}

fn prev_power_of_two(n: u32) -> u32 {
    1 << n.ilog2()
}

/// `rounds@reg, threads, vector@reg`
fn axis(extent: u32, share: Option<&Share>) -> AxisLayout {
    let Some(share) = share else { return AxisLayout::whole(extent) };
    let mut digits = Vec::new();
    let lanes = 1u32 << share.bits.len();
    let rounds = extent.div_ceil(share.vector * lanes);
    if rounds > 1 {
        digits.push(Place::Reg(rounds));
    }
    // runs of neighbouring bits are one digit
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &b in &share.bits {
        match runs.last_mut() {
            Some((lo, n)) if *lo + *n == b => *n += 1,
            _ => runs.push((b, 1)),
        }
    }
    digits.extend(runs.iter().rev().map(|&(lo, n)| Place::Thr { extent: 1 << n, stride: 1 << lo }));
    if share.vector > 1 || digits.is_empty() {
        digits.push(Place::Reg(share.vector));
    }
    AxisLayout { extent, digits }
}
