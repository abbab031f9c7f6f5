//! Bank conflicts, by enumeration of one access of a warp at each distinct position: exact for any radix and any
//! swizzle, a few thousand integer operations at most.

use super::{Axis, Layout, Mismatch, Piece, Relation, Shared, gcd, relate};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

/// How shared memory serves a warp.
#[derive(Clone, Copy, Debug)]
pub struct Banks {
    pub count: u64,
    /// width of a bank in bytes
    pub bytes: u64,
    /// bytes that are served together; wider accesses of a warp take several phases
    pub phase: u64,
    /// threads whose accesses are served together
    pub lanes: u64,
}

/// The price of moving a fragment to or from shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflicts {
    /// most words that one bank must serve in one phase
    pub ways: u64,
    /// instructions of all warps
    pub accesses: u64,
    /// phases of all of them, each counted with its ways
    pub cycles: u64,
    /// phases if no bank were hit twice
    pub ideal: u64,
}

/// Ways of one access: `addresses` of the lanes, `width` bytes each. Lanes that read one word share it.
pub fn bank_conflicts_of(addresses: &[u64], width: u64, banks: &Banks) -> Vec<u64> {
    let together = (banks.phase / width.max(banks.bytes)).clamp(1, banks.lanes) as usize;
    addresses.chunks(together).map(|phase| ways(phase, width, banks)).collect()
}

fn ways(phase: &[u64], width: u64, banks: &Banks) -> u64 {
    // by bank: the first word that it serves, and how many it does; further words stand apart, they are few
    let mut first: SmallVec<[u64; 64]> = smallvec![u64::MAX; banks.count as usize];
    let mut served: SmallVec<[u64; 64]> = smallvec![0; banks.count as usize];
    let mut others: SmallVec<[u64; 64]> = SmallVec::new();
    for address in phase {
        for word in address / banks.bytes..=(address + width - 1) / banks.bytes {
            let bank = (word % banks.count) as usize;
            if first[bank] == word || others.contains(&word) {
                continue;
            }
            match served[bank] {
                0 => first[bank] = word,
                _ => others.push(word),
            }
            served[bank] += 1;
        }
    }
    served.into_iter().max().unwrap_or(0)
}

/// Conflicts of a fragment's accesses to a shared tile, `vector` elements each.
pub fn bank_conflicts(
    frag: &Layout,
    shared: &Shared,
    element_bytes: u64,
    vector: u64,
    banks: &Banks,
) -> Result<Conflicts, Mismatch> {
    let relation = relate(frag, &shared.layout)?;
    Ok(conflicts(&relation, shared, element_bytes, vector, banks))
}

pub(super) fn conflicts(
    relation: &Relation,
    shared: &Shared,
    element_bytes: u64,
    vector: u64,
    banks: &Banks,
) -> Conflicts {
    let width = vector * element_bytes;
    let threads: Vec<&Piece> = relation.on(Axis::Thr, Axis::Mem).collect();
    let lanes: Vec<u64> = (0..banks.lanes).map(|t| contribution(&threads, t)).collect();
    let mut total = Conflicts { ways: 0, accesses: 0, cycles: 0, ideal: 0 };
    for (base, times) in bases(relation, shared, width, banks, &threads) {
        let addresses: Vec<u64> = lanes.iter().map(|l| shared.swizzled(base + l)).collect();
        let phases = bank_conflicts_of(&addresses, width, banks);
        total.accesses += times;
        total.ideal += times * phases.len() as u64;
        total.cycles += times * phases.iter().sum::<u64>();
        total.ways = total.ways.max(phases.into_iter().max().unwrap_or(0));
    }
    total
}

/// What a thread's number adds to the address.
fn contribution(pieces: &[&Piece], thread: u64) -> u64 {
    pieces.iter().map(|p| thread / p.src.1 % p.extent * p.dst.1).sum()
}

/// Addresses from which the warps' accesses start, modulo the cycle of swizzle and banks, with how often each occurs.
fn bases(
    relation: &Relation,
    shared: &Shared,
    width: u64,
    banks: &Banks,
    threads: &[&Piece],
) -> BTreeMap<u64, u64> {
    let cycle = shared.xor.map_or(1, |x| x.cycle()).max(banks.count * banks.bytes);
    let team = threads.iter().map(|p| p.src.1 * p.extent).max().unwrap_or(1);
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for warp in 0..team.div_ceil(banks.lanes) {
        let at = relation.dst_offset[Axis::Mem] + contribution(threads, warp * banks.lanes);
        *all.entry(at % cycle).or_default() += 1;
    }
    let others = relation.pieces.iter().filter(|p| p.src.0 != Axis::Thr && p.dst.0 == Axis::Mem);
    for p in others {
        // Registers inside one access do not start another.
        let (step, extent) = match width / p.dst.1.max(1) {
            within if within > 1 => (width, p.extent.div_ceil(within)),
            _ => (p.dst.1, p.extent),
        };
        let mut next: BTreeMap<u64, u64> = BTreeMap::new();
        // The steps come back to where they started after a while: count whole turns at once.
        let turn = cycle / gcd(step % cycle, cycle);
        for (base, times) in &all {
            for i in 0..extent.min(turn) {
                let here = extent / turn + u64::from(i < extent % turn);
                *next.entry((base + i * step) % cycle).or_default() += times * here;
            }
        }
        all = next;
    }
    all
}
