//! How the threads of a reduction lie in the block, and by which steps it is done.

use super::fold::Folder;
use crate::make::Make;
use pantile_ir::builder::Result;
use pantile_ir::program::*;

/// A digit of a thread's number.
#[derive(Clone, Copy)]
pub struct Digit {
    pub value: ExprId,
    pub extent: u64,
    /// what one more of it adds to the thread's number
    pub stride: u64,
}

/// The threads that are folded together, and what tells such groups apart.
pub struct Group {
    /// slowest in the fold first
    pub over: Vec<Digit>,
    pub kept: Vec<Digit>,
    /// Threads of the block.
    pub total: u64,
}

/// Widths of the machine.
#[derive(Clone, Copy)]
pub struct Widths {
    pub shuffle: u64,
    pub warp: u64,
    pub group: u64,
}

/// Lanes that fold by exchange at given distances, and the parts that this leaves.
pub struct Bits {
    /// distance of the partner, and the digit and place value of the bit that tells who is left
    pub steps: Vec<(u64, usize, u64)>,
    /// for each digit how much of it the steps fold
    pub folded: Vec<u64>,
    /// parts of a group that remain
    pub cells: u64,
}

/// Neighbours that fold towards the first of them.
pub struct Run {
    /// threads of a group
    pub len: u64,
    /// the last group has fewer
    pub ragged: bool,
    /// the most parts that remain of a group
    pub cells: u64,
}

pub enum Method {
    Bits(Bits),
    Run(Run),
}

impl Method {
    /// Whether lanes alone do it.
    pub fn in_lanes(&self) -> bool {
        self.cells() == 1
    }

    pub fn cells(&self) -> u64 {
        match self {
            Method::Bits(b) => b.cells,
            Method::Run(r) => r.cells,
        }
    }
}

/// The group that `over` names; `None` where no such team exists here.
pub fn group(m: &mut Make, over: &Over, w: Widths) -> Result<Option<Group>> {
    let Some(threads) = m.k.kernel().threads.clone() else { return Ok(None) };
    let total = u64::from(threads.count());
    let mut digits = Vec::new();
    let mut stride = 1;
    for &(axis, n) in threads.axes.iter().rev() {
        digits.insert(0, (axis, Digit { value: m.get(axis)?, extent: n.into(), stride }));
        stride *= u64::from(n);
    }
    let size = match over {
        Over::Axes(axes) => {
            let of = |l: &LocalId| digits.iter().find(|(a, _)| a == l).map(|d| d.1);
            let over = axes.iter().filter_map(of).collect();
            let kept = digits.iter().filter(|(a, _)| !axes.contains(a)).map(|d| d.1).collect();
            return Ok(Some(Group { over, kept, total }));
        }
        Over::Team(Team::Warp) => w.warp,
        Over::Team(Team::Group) => w.group,
        Over::Team(Team::Block | Team::Cluster) => total,
        Over::Team(Team::Named(_)) => return Ok(None),
    };
    if size >= total {
        let over = digits.into_iter().map(|d| d.1).collect();
        return Ok(Some(Group { over, kept: Vec::new(), total }));
    }
    let id = m.thread()?;
    let (inner, outer) = (m.rem(id, size)?, m.div(id, size)?);
    let over = vec![Digit { value: inner, extent: size, stride: 1 }];
    let kept = vec![Digit { value: outer, extent: total.div_ceil(size), stride: size }];
    Ok(Some(Group { over, kept, total }))
}

impl Group {
    /// Threads that are folded into one value.
    pub fn len(&self) -> u64 {
        self.over.iter().map(|d| d.extent).product()
    }

    /// How many such values there are.
    pub fn count(&self) -> u64 {
        self.kept.iter().map(|d| d.extent).product()
    }

    /// Fold order is the order of the threads' numbers, without gaps.
    fn contiguous(&self) -> bool {
        let mut stride = 1;
        self.over.iter().rev().all(|d| {
            let fits = d.stride == stride;
            stride *= d.extent;
            fits
        })
    }

    /// The steps with the fewest parts left; few more parts are worth the simpler exchange.
    pub fn method(&mut self, fold: &Folder, w: Widths) -> Method {
        self.over.retain(|d| d.extent > 1);
        if fold.commutes() {
            self.over.sort_by_key(|d| std::cmp::Reverse(d.stride));
        }
        let len = self.len();
        let ragged = !self.total.is_multiple_of(len.max(1));
        let bits = self.bits(fold.commutes(), w.shuffle);
        if !ragged && bits.cells == 1 {
            return Method::Bits(bits);
        }
        if !self.contiguous() {
            return Method::Bits(bits);
        }
        let cells = |g: u64| (g * len + len - 1) / w.shuffle - g * len / w.shuffle + 1;
        let cells = (0..self.total.div_ceil(len)).map(cells).max().unwrap_or(1);
        if !ragged && cells > 1 && bits.cells <= 2 * cells {
            return Method::Bits(bits);
        }
        Method::Run(Run { len, ragged, cells })
    }

    /// Bits of digits that are bits of the lane's number. Where order counts only the lowest bits of the fold order
    /// may go first.
    fn bits(&self, commutes: bool, width: u64) -> Bits {
        let mut bits = Bits { steps: Vec::new(), folded: vec![1; self.over.len()], cells: 1 };
        let mut open = true;
        for (i, d) in self.over.iter().enumerate().rev() {
            let mut folded = 1;
            let lane = |folded: u64| d.stride.is_power_of_two() && d.stride * folded < width;
            while open && (d.extent / folded).is_multiple_of(2) && lane(folded) {
                bits.steps.push((d.stride * folded, i, folded));
                folded *= 2;
            }
            bits.folded[i] = folded;
            bits.cells *= d.extent / folded;
            open &= commutes || folded == d.extent;
        }
        bits
    }
}

/// `Σ digit · Π extents of the faster ones`
pub fn number(m: &mut Make, digits: &[(ExprId, u64)]) -> Result<ExprId> {
    let mut stride = 1;
    let mut sum = m.int(0)?;
    for &(value, extent) in digits.iter().rev() {
        if extent > 1 {
            let part = m.scale(value, stride)?;
            sum = m.add(part, sum)?;
        }
        stride *= extent;
    }
    Ok(sum)
}
