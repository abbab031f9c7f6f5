//! The stack of what an agent is in the middle of: blocks, branches, loops, `parallel`s, roles.

use super::value::{Lanes, Mask};
use crate::program::*;

pub(super) enum Frame<'p> {
    Block {
        stmts: &'p [Stmt],
        pc: usize,
    },
    /// Below the block of one branch; `other` is the second branch, still to run.
    If {
        outer: Mask,
        other: Option<(&'p [Stmt], Mask)>,
        divergent: bool,
    },
    For(Box<ForFrame<'p>>),
    While {
        cond: ExprId,
        stmt: &'p Stmt,
        body: &'p [Stmt],
        entry: Mask,
    },
    /// A `parallel` whose iterations are lanes.
    Lanes,
    /// A `parallel` whose iterations run one after another.
    Iterations(Box<Iterations<'p>>),
    /// Waits for the agents of a `roles` statement.
    Roles,
}

pub(super) struct ForFrame<'p> {
    pub stmt: &'p Stmt,
    pub var: LocalId,
    pub body: &'p [Stmt],
    pub vectorized: bool,
    pub carry: &'p [Carry],
    /// Values given by `next` for the coming iteration.
    pub pending: Vec<(LocalId, Option<usize>)>,
    pub entry: Mask,
    /// Constants that each segment gives a value of its own, and those values, a row for each segment.
    pub named: &'p [LocalId],
    pub consts: Vec<Vec<u64>>,
    pub position: Position,
    /// Iterations begun.
    pub count: u32,
    /// First epoch of a vectorized loop, and the loop around it.
    pub vec_start: u32,
    pub outer_vec: Option<(u32, u16)>,
}

/// Where a loop stands in its segments.
pub(super) enum Position {
    Uniform {
        segments: Vec<[i64; 3]>,
        segment: usize,
        next: i64,
    },
    /// Per lane: segment and next value; bounds differ between lanes.
    Lanes {
        segments: Vec<[Lanes; 3]>,
        at: Vec<(usize, i64)>,
    },
}

pub(super) struct Iterations<'p> {
    pub vars: &'p [LocalId],
    pub extents: Vec<i64>,
    pub total: i64,
    pub next: i64,
    pub body: &'p [Stmt],
}

/// `break` and `continue` of the innermost loop.
#[derive(Clone, Debug)]
pub(super) struct LoopCtl {
    /// The lane context that the loop runs in.
    pub depth: usize,
    /// Divergence inside the loop body.
    pub base: u32,
    pub broke: Vec<bool>,
    pub skipped: Vec<bool>,
    /// The loop itself counts as divergent: its lanes do not all run all iterations.
    pub diverged: bool,
}

impl LoopCtl {
    pub fn new(depth: usize, base: u32) -> LoopCtl {
        LoopCtl { depth, base, broke: Vec::new(), skipped: Vec::new(), diverged: false }
    }

    pub fn is_out(&self, lane: u32) -> bool {
        let hit = |set: &[bool]| set.get(lane as usize).copied().unwrap_or(false);
        hit(&self.broke) || hit(&self.skipped)
    }

    pub fn has_broken(&self, lane: u32) -> bool {
        self.broke.get(lane as usize).copied().unwrap_or(false)
    }

    pub fn any(&self) -> bool {
        !self.broke.is_empty() || !self.skipped.is_empty()
    }

    pub fn mark(set: &mut Vec<bool>, mask: &Mask, width: u32) {
        set.resize(width as usize, false);
        for lane in mask.iter() {
            set[lane as usize] = true;
        }
    }
}

impl Position {
    /// What a constant of the segments is in the iteration that was given last.
    pub fn constant(&self, width: u32, of: impl Fn(usize) -> u64) -> Lanes {
        match self {
            Position::Uniform { segment, .. } => Lanes::One(of(*segment)),
            Position::Lanes { segments, at } => {
                // lanes that have ended keep the last segment's value, which nobody reads
                let last = segments.len().saturating_sub(1);
                let value = |lane: usize| at.get(lane).map_or(last, |&(segment, _)| segment.min(last));
                Lanes::many((0..width as usize).map(|lane| of(value(lane))).collect())
            }
        }
    }

    /// The lanes that run one more iteration, and the loop variable for them; `None` when the loop is over.
    pub fn step(&mut self, live: &Mask, width: u32) -> Option<(Mask, Lanes)> {
        match self {
            Position::Uniform { segments, segment, next } => loop {
                let &[_, hi, step] = segments.get(*segment)?;
                if live.is_empty() {
                    return None;
                }
                if *next < hi {
                    let now = *next;
                    *next = now.saturating_add(step);
                    return Some((live.clone(), Lanes::One(now as u64)));
                }
                *segment += 1;
                if let Some(&[lo, ..]) = segments.get(*segment) {
                    *next = lo;
                }
            },
            Position::Lanes { segments, at } => {
                let mut values = vec![0; width as usize];
                let mut lanes = Vec::new();
                for lane in live.iter() {
                    let (segment, next) = &mut at[lane as usize];
                    while let Some([_, hi, step]) = segments.get(*segment) {
                        if *next < hi.get(lane) as i64 {
                            values[lane as usize] = *next as u64;
                            lanes.push(lane);
                            *next = next.saturating_add(step.get(lane) as i64);
                            break;
                        }
                        *segment += 1;
                        if let Some([lo, ..]) = segments.get(*segment) {
                            *next = lo.get(lane) as i64;
                        }
                    }
                }
                (!lanes.is_empty()).then(|| (Mask::of(lanes), Lanes::many(values)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_run_one_after_another() {
        let segments = vec![[0, 5, 2], [7, 7, 1], [3, 4, 1]];
        let mut p = Position::Uniform { segments, segment: 0, next: 0 };
        let mut seen = Vec::new();
        while let Some((_, Lanes::One(i))) = p.step(&Mask::All(1), 1) {
            seen.push(i);
        }
        assert_eq!(seen, [0, 2, 4, 3]);
    }

    #[test]
    fn lanes_leave_when_their_range_ends() {
        let hi = Lanes::many(vec![0, 2, 1]);
        let segments = vec![[Lanes::One(0), hi, Lanes::One(1)]];
        let mut p = Position::Lanes { segments, at: vec![(0, 0); 3] };
        let mut runs = Vec::new();
        while let Some((mask, _)) = p.step(&Mask::All(3), 3) {
            runs.push(mask.iter().collect::<Vec<_>>());
        }
        assert_eq!(runs, [vec![1, 2], vec![1]]);
    }
}
