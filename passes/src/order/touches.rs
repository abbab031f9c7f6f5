//! Touches by number. Equal ones have one number, so that what two of them mean for each other is found once.

use super::conflict::{Reach, Touch, clash, reach};
use super::radix::Sums;
use pantile_ir::effects::{Kind, Obj};
use pantile_ir::hash::{Map, Set};
use pantile_ir::program::*;
use std::rc::Rc;

/// A touch, and whether a barrier of warps lies between it and now.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Waiting {
    number: u32,
    obj: Obj,
    kind: Kind,
    warps_met: bool,
}

pub type Pending = Vec<Waiting>;

pub struct Touches {
    all: Vec<Rc<Touch>>,
    numbers: Map<Rc<Touch>, u32>,
    reaches: Map<(u32, u32, bool), Reach>,
    /// shared buffers that have bytes in common
    aliases: Set<(BufferId, BufferId)>,
    warp: usize,
}

impl Touches {
    pub fn new(k: &Kernel, warp: usize) -> Touches {
        let ranges = crate::share::ranges(k);
        let pairs = ranges.iter().flat_map(|x| ranges.iter().map(move |y| (x, y)));
        let meet = pairs.filter(|((a, x), (b, y))| a != b && x.start < y.end && y.start < x.end);
        let aliases = meet.map(|((a, _), (b, _))| (*a, *b)).collect();
        Touches { all: Vec::new(), numbers: Map::default(), reaches: Map::default(), aliases, warp }
    }

    pub fn add(&mut self, touch: Touch) -> Waiting {
        let (obj, kind) = (touch.obj, touch.kind);
        let touch = Rc::new(touch);
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(touch.clone()).or_insert(next);
        if number == next {
            self.all.push(touch);
        }
        Waiting { number, obj, kind, warps_met: false }
    }

    /// How far apart threads may be that meet in these two, the first of which came before.
    pub fn pair(&mut self, sums: &Sums, a: Waiting, b: Waiting) -> Reach {
        if !clash(a.kind, b.kind) {
            return Reach::None;
        }
        let same = a.obj == b.obj;
        let alias = match (a.obj, b.obj) {
            (Obj::Shared(x), Obj::Shared(y)) => self.aliases.contains(&(x, y)),
            _ => false,
        };
        if !same && !alias {
            return Reach::None;
        }
        let key = (a.number, b.number, a.warps_met);
        if let Some(&known) = self.reaches.get(&key) {
            return known;
        }
        let (x, y) = (&self.all[a.number as usize], &self.all[b.number as usize]);
        let found = far(sums, x, y, same, a.warps_met, self.warp);
        self.reaches.insert(key, found);
        found
    }

    /// The farthest that any of the first reaches to any of the second.
    pub fn worst(&mut self, sums: &Sums, first: &[Waiting], second: &[Waiting]) -> Reach {
        let mut worst = Reach::None;
        for &a in first {
            for &b in second {
                worst = worst.max(self.pair(sums, a, b));
                if worst == Reach::Block {
                    return worst;
                }
            }
        }
        worst
    }
}

fn far(sums: &Sums, a: &Touch, b: &Touch, same: bool, warps_met: bool, warp: usize) -> Reach {
    if same && let (Some(x), Some(y)) = (&a.sums, &b.sums) {
        let (one, near) = sums.reach(sums.agree(x, y), warp);
        if one || near && warps_met {
            return Reach::None;
        }
        let loose = |t: &Touch| t.index.iter().flatten().any(Option::is_none);
        if near && (loose(a) || loose(b)) {
            return Reach::Warp;
        }
    }
    match reach(a, b, same, warp) {
        Reach::Warp if warps_met => Reach::None,
        reach => reach,
    }
}

/// A barrier lies behind them.
pub fn passed(team: Team, pending: &mut Pending) {
    match team {
        Team::Block | Team::Cluster => pending.clear(),
        Team::Warp => pending.iter_mut().for_each(|t| t.warps_met = true),
        Team::Group | Team::Named(_) => {}
    }
}

/// Without repeats, which walking on a loop makes.
pub fn unique(pending: &mut Pending) {
    let mut seen = Set::with_capacity_and_hasher(pending.len(), Default::default());
    pending.retain(|t| seen.insert(*t));
}
