//! How one axis of a tile is spread: over registers of a thread and over threads, as digits, outermost first.

use pantile_ir::layout::{Axis, Digit, Dim, Layout};

/// A digit of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// elements that one thread holds, one after another
    Reg(u32),
    /// `extent` threads whose numbers are `stride` apart
    Thr { extent: u32, stride: u32 },
}

impl Place {
    pub fn extent(self) -> u32 {
        match self {
            Place::Reg(n) => n,
            Place::Thr { extent, .. } => extent,
        }
    }
}

/// The digits of one axis. They may cover more than the axis has: what lies beyond is nobody's element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AxisLayout {
    pub extent: u32,
    pub digits: Vec<Place>,
}

impl AxisLayout {
    /// Every element in every thread.
    pub fn whole(extent: u32) -> AxisLayout {
        AxisLayout { extent, digits: vec![Place::Reg(extent)] }
    }

    pub fn covered(&self) -> u64 {
        self.digits.iter().map(|d| u64::from(d.extent())).product()
    }

    /// Elements of one thread along the axis.
    pub fn regs(&self) -> u32 {
        self.digits.iter().map(|d| if let Place::Reg(n) = d { *n } else { 1 }).product()
    }

    /// The digits on threads, outermost first.
    pub fn threads(&self) -> impl Iterator<Item = (u32, u32)> {
        self.digits.iter().filter_map(|d| match d {
            Place::Thr { extent, stride } if *extent > 1 => Some((*extent, *stride)),
            _ => None,
        })
    }

    /// Neighbouring elements that one thread holds.
    pub fn vector(&self) -> u32 {
        match self.digits.last() {
            Some(Place::Reg(n)) => *n,
            _ => 1,
        }
    }

    /// Reads the digits of a layout's dim.
    pub fn of(dim: &Dim) -> Option<AxisLayout> {
        let one = |d: &Digit| {
            let extent = u32::try_from(d.extent).ok()?;
            match d.axis {
                Axis::Reg => Some(Place::Reg(extent)),
                Axis::Thr => Some(Place::Thr { extent, stride: u32::try_from(d.stride).ok()? }),
                _ => None,
            }
        };
        let digits = dim.digits.iter().map(one).collect::<Option<Vec<_>>>()?;
        Some(AxisLayout { extent: u32::try_from(dim.extent()).ok()?, digits })
    }
}

/// The layout of a fragment: registers numbered row-major over the axes; `threads` threads hold it, copies included.
pub fn layout(axes: &[AxisLayout], threads: u32) -> Layout {
    let mut stride: u64 = 1;
    let mut dims: Vec<Dim> = Vec::new();
    for (i, axis) in axes.iter().enumerate().rev() {
        let mut digits: Vec<Digit> = Vec::new();
        for d in axis.digits.iter().rev() {
            digits.push(match *d {
                Place::Reg(n) => {
                    stride *= u64::from(n);
                    Digit::new(n.into(), Axis::Reg, stride / u64::from(n.max(1)))
                }
                Place::Thr { extent, stride } => Digit::new(extent.into(), Axis::Thr, stride.into()),
            });
        }
        digits.reverse();
        let mut dim = Dim::new(format!("d{i}"), digits);
        dim.guard = (axis.covered() != u64::from(axis.extent)).then_some(axis.extent.into());
        dims.push(dim);
    }
    dims.reverse();
    let mut out = Layout::new(dims);
    let used: Vec<(u32, u32)> = axes.iter().flat_map(AxisLayout::threads).collect();
    out.rep =
        unused(&used, threads).into_iter().map(|(e, s)| Digit::new(e.into(), Axis::Thr, s.into())).collect();
    out
}

/// The digits of a thread's number that none of `used` holds.
pub fn unused(used: &[(u32, u32)], threads: u32) -> Vec<(u32, u32)> {
    let mut used = used.to_vec();
    used.sort_by_key(|&(_, stride)| stride);
    let mut out = Vec::new();
    let mut at = 1;
    for (extent, stride) in used {
        if stride > at {
            out.push((stride / at, at));
        }
        at = stride * extent;
    }
    if at < threads {
        out.push((threads / at, at));
    }
    out
}
