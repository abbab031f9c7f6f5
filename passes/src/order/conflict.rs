//! Whether two accesses of different threads may meet.

use super::radix::Sum;
use super::value::{Known, STEPS, Val};
use pantile_ir::effects::{Kind, Obj};
use std::collections::HashMap;
use std::rc::Rc;

/// One access of a unit, as every thread makes it.
#[derive(Clone)]
pub struct Touch {
    pub obj: Obj,
    /// an index an axis; `None` is the whole object
    pub index: Option<Vec<Val>>,
    /// The same as sums over thread axes and loops.
    pub sums: Option<Vec<Option<Sum>>>,
    pub kind: Kind,
    /// threads that may come here
    pub mask: Rc<Vec<bool>>,
    /// A barrier of warps lies between it and now.
    pub warps_met: bool,
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
    let key = |exact: &[&Axis], t: usize, second: bool| -> Vec<i64> {
        exact.iter().map(|a| a.of(t, second)).collect()
    };
    let mut groups: HashMap<Vec<i64>, Vec<usize>> = HashMap::new();
    for t in (0..n).filter(|&t| a.mask[t]) {
        groups.entry(key(&exact, t, false)).or_default().push(t);
    }
    let mut worst = Reach::None;
    for u in (0..n).filter(|&u| b.mask[u]) {
        let Some(list) = groups.get(&key(&exact, u, true)) else { continue };
        if apart.is_empty() && list.len() > warp {
            return Reach::Block;
        }
        for &t in list.iter().filter(|&&t| t != u) {
            if !apart.iter().all(|x| x.steps(t, u)) {
                continue;
            }
            if t / warp != u / warp {
                return Reach::Block;
            }
            worst = Reach::Warp;
        }
    }
    if a.warps_met && worst == Reach::Warp { Reach::None } else { worst }
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
