//! Choice of a shared tile's address map, by counted cycles of all its writers and readers.

use super::banks::conflicts;
use super::{Axis, Banks, Digit, Dim, Layout, Mismatch, Shared, VectorLimits, Xor, relate, vector_width};

/// A way to lay a tile out.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// how it differs from the plain tile: `plain`, `pad 16`, `xor<3,4,3>`
    pub name: String,
    pub shared: Shared,
}

/// Someone who writes or reads the whole tile once.
#[derive(Clone, Debug)]
pub struct User {
    pub frag: Layout,
    /// how often, against the other users
    pub weight: u64,
    /// widest access it may use
    pub max_bytes: u64,
}

/// What a candidate costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    pub candidate: usize,
    pub cycles: u64,
    /// worst ways of any user
    pub ways: u64,
    pub bytes: u64,
}

/// Scores of the candidates that relate to every user, best first: fewest cycles, then fewest bytes, then the order
/// given. Candidates that do not relate come back with the reason.
pub fn choose_swizzle(
    candidates: &[Candidate],
    users: &[User],
    element_bytes: u64,
    banks: &Banks,
) -> (Vec<Score>, Vec<(usize, Mismatch)>) {
    let (mut scores, mut refused) = (Vec::new(), Vec::new());
    for (candidate, c) in candidates.iter().enumerate() {
        match score(&c.shared, users, element_bytes, banks) {
            Ok((cycles, ways)) => {
                scores.push(Score { candidate, cycles, ways, bytes: c.shared.bytes(element_bytes) })
            }
            Err(why) => refused.push((candidate, why)),
        }
    }
    scores.sort_by_key(|s| (s.cycles, s.bytes, s.candidate));
    (scores, refused)
}

fn score(shared: &Shared, users: &[User], element_bytes: u64, banks: &Banks) -> Result<(u64, u64), Mismatch> {
    let (mut cycles, mut worst) = (0, 0);
    for u in users {
        let relation = relate(&u.frag, &shared.layout)?;
        let limits = VectorLimits {
            max_bytes: u.max_bytes,
            align: shared.align.max(element_bytes),
            xor_base: shared.xor.map(|x| x.base),
        };
        let vector = vector_width(&relation, element_bytes, &limits);
        let c = conflicts(&relation, shared, element_bytes, vector, banks);
        cycles += u.weight * c.cycles;
        worst = worst.max(c.ways);
    }
    Ok((cycles, worst))
}

/// Ways to lay out a tile that no engine constrains: plain rows, rows padded by 16 bytes, and XOR of 16-byte granules
/// with the row number. Dims are given slowest first.
pub fn free_candidates(dims: &[(&str, u64)], element_bytes: u64) -> Vec<Candidate> {
    let Some(((fast, extent), slow)) = dims.split_last() else { return Vec::new() };
    let row = extent * element_bytes;
    let tile = |pitch: u64| {
        let mut all = vec![Dim::new(*fast, vec![Digit::new(*extent, Axis::Mem, element_bytes)])];
        let mut stride = pitch;
        for (name, extent) in slow.iter().rev() {
            all.insert(0, Dim::new(*name, vec![Digit::new(*extent, Axis::Mem, stride)]));
            stride *= extent;
        }
        Layout::new(all)
    };
    let align = 16.max(element_bytes);
    let mut all = vec![Candidate { name: "plain".into(), shared: Shared::plain(tile(row), align) }];
    if slow.is_empty() {
        return all;
    }
    let pitch = row.next_multiple_of(16) + 16;
    all.push(Candidate { name: format!("pad {}", pitch - row), shared: Shared::plain(tile(pitch), align) });
    if row.is_power_of_two() && row >= 32 {
        // Row number above, granule number below; several rows of less than 128 bytes share a cycle of the banks.
        let granules = (row / 16).ilog2().min(3);
        let xor = Xor::new(granules, 4, (row.ilog2() - 4).max(3));
        all.push(Candidate {
            name: xor.to_string(),
            shared: Shared { layout: tile(row), xor: Some(xor), align: xor.cycle() },
        });
    }
    all
}
