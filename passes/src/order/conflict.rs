//! Whether two accesses of different threads may meet.

use super::radix::Sum;
use super::value::{Known, STEPS, Val};
use pantile_ir::effects::{Kind, Obj};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// One access of a unit, as every thread makes it.
#[derive(PartialEq, Eq)]
pub struct Touch {
    pub obj: Obj,
    /// an index an axis; `None` is the whole object
    pub index: Option<Vec<Val>>,
    /// The same as sums over thread axes and loops.
    pub sums: Option<Vec<Option<Rc<Sum>>>>,
    pub kind: Kind,
    /// threads that may come here
    pub mask: Rc<Vec<bool>>,
}

impl Hash for Touch {
    fn hash<H: Hasher>(&self, h: &mut H) {
        (self.obj, self.kind, &self.sums, &self.index).hash(h);
        // a look at every thread would cost more than it saves
        let coming = self.mask.iter().filter(|&&m| m).count();
        (coming, self.mask.iter().position(|&m| m)).hash(h);
    }
}

/// The smallest team that a conflict stays in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reach {
    None,
    Warp,
    Block,
}

/// Kinds that need an order.
pub fn clash(a: Kind, b: Kind) -> bool {
    !matches!((a, b), (Kind::Read, Kind::Read) | (Kind::Atomic(_), Kind::Atomic(_)))
}

/// How far apart the threads may be that meet; `same` says whether both name the same memory.
pub fn reach(a: &Touch, b: &Touch, same: bool, warp: usize) -> Reach {
    let n = a.mask.len();
    let axes = match (&a.index, &b.index) {
        (Some(x), Some(y)) if same && x.len() == y.len() => {
            x.iter().zip(y).filter_map(|(x, y)| axis(x.as_ref()?, y.as_ref()?)).collect()
        }
        _ => Vec::new(),
    };
    let (exact, apart): (Vec<_>, Vec<_>) = axes.iter().partition(|a| a.apart == 0);
    let keys = |mask: &[bool], second: bool| -> Vec<(u64, usize)> {
        // what two threads' equal keys say wrongly only makes them wait
        let key = |t: usize| exact.iter().fold(0, |h: u64, a| mix(h ^ a.of(t, second) as u64));
        let mut list: Vec<(u64, usize)> = (0..n).filter(|&t| mask[t]).map(|t| (key(t), t)).collect();
        list.sort_unstable();
        list
    };
    let (first, second) = (keys(&a.mask, false), keys(&b.mask, true));
    let mut worst = Reach::None;
    let (mut i, mut j) = (0, 0);
    while i < first.len() && j < second.len() {
        let key = first[i].0.max(second[j].0);
        while i < first.len() && first[i].0 < key {
            i += 1;
        }
        while j < second.len() && second[j].0 < key {
            j += 1;
        }
        let (from_i, from_j) = (i, j);
        while i < first.len() && first[i].0 == key {
            i += 1;
        }
        while j < second.len() && second[j].0 == key {
            j += 1;
        }
        worst = worst.max(meet(&first[from_i..i], &second[from_j..j], &apart, warp));
        if worst == Reach::Block {
            return worst;
        }
    }
    worst
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 29)
}

/// How far apart two threads of these lists are that are not one.
fn meet(first: &[(u64, usize)], second: &[(u64, usize)], apart: &[&Axis], warp: usize) -> Reach {
    if first.is_empty()
        || second.is_empty()
        || first.len() == 1 && second.len() == 1 && first[0].1 == second[0].1
    {
        return Reach::None;
    }
    if apart.is_empty() {
        let mut warps = first.iter().chain(second).map(|&(_, t)| t / warp);
        let one = warps.next();
        return if warps.all(|w| Some(w) == one) { Reach::Warp } else { Reach::Block };
    }
    let mut worst = Reach::None;
    for &(_, u) in second {
        for &(_, t) in first.iter().filter(|&&(_, t)| t != u) {
            if apart.iter().all(|x| x.steps(t, u)) {
                if t / warp != u / warp {
                    return Reach::Block;
                }
                worst = Reach::Warp;
            }
        }
    }
    worst
}

/// Two indices of one axis that can be compared.
struct Axis<'v> {
    first: &'v Known,
    second: &'v Known,
    /// how far a step of the loop between them moves the second
    apart: i64,
    modulus: i64,
}

fn axis<'v>(first: &'v Known, second: &'v Known) -> Option<Axis<'v>> {
    if first.modulus != second.modulus {
        return None;
    }
    let mut rest = second.symbols.clone();
    let apart = rest.remove(STEPS).unwrap_or(0);
    let comparable = rest == first.symbols && (apart == 0 || first.modulus == 0);
    comparable.then_some(Axis { first, second, apart, modulus: first.modulus })
}

impl Axis<'_> {
    fn of(&self, t: usize, second: bool) -> i64 {
        let v = if second { self.second.of(t) } else { self.first.of(t) };
        if self.modulus == 0 { v } else { v.rem_euclid(self.modulus) }
    }

    /// Whether some number of steps, one or more, makes them equal.
    fn steps(&self, t: usize, u: usize) -> bool {
        let difference = self.first.of(t) - self.second.of(u);
        difference % self.apart == 0 && difference / self.apart >= 1
    }
}
