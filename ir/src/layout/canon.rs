//! Canonical form and inversion.
//!
//! The canonical form is unique for the function from index to place: the innermost digit's extent is the first
//! index at which the function leaves the line through its first two values, and so on outwards. Equality is
//! equality of this form, never of spelling.

use super::{Axis, Digit, Dim, Layout};

impl Dim {
    /// Digits of extent 1 dropped, neighbours that continue each other merged, padding beyond the guard cut off.
    pub fn canon(&self) -> Dim {
        let mut digits = merge(self.digits.iter().copied().filter(|d| d.extent > 1).map(still));
        let mut guard = self.guard;
        if let Some(valid) = guard {
            // An outer digit that a shrunken guard never moves disappears, the next one becomes the outermost.
            while let [outer, inner @ ..] = digits.as_mut_slice() {
                let below: u64 = inner.iter().map(|d| d.extent).product();
                let needed = valid.div_ceil(below).max(1).min(outer.extent);
                if needed > 1 {
                    outer.extent = needed;
                    break;
                }
                digits.remove(0);
            }
            guard = guard.filter(|valid| *valid < digits.iter().map(|d| d.extent).product());
        }
        Dim { name: self.name.clone(), digits, guard }
    }
}

/// A digit without effect is written one way.
fn still(d: Digit) -> Digit {
    if d.stride == 0 { Digit { axis: Axis::Reg, ..d } } else { d }
}

fn merge(digits: impl Iterator<Item = Digit>) -> Vec<Digit> {
    let mut out: Vec<Digit> = Vec::new();
    for d in digits {
        match out.last_mut() {
            Some(outer) if outer.axis == d.axis && outer.stride == d.extent * d.stride => {
                *outer = Digit { extent: outer.extent * d.extent, ..d };
            }
            _ => out.push(d),
        }
    }
    out
}

impl Layout {
    pub fn canon(&self) -> Layout {
        let mut rep: Vec<Digit> = self.rep.iter().copied().filter(|d| d.extent > 1 && d.stride > 0).collect();
        rep.sort_by_key(|d| (d.axis, std::cmp::Reverse(d.stride)));
        Layout {
            dims: self.dims.iter().map(Dim::canon).collect(),
            rep: merge(rep.into_iter()),
            offset: self.offset,
        }
    }

    /// Both place every element alike; the order in which dims are listed does not matter.
    pub fn same(&self, other: &Layout) -> bool {
        let (mut a, mut b) = (self.canon(), other.canon());
        a.dims.sort_by(|x, y| x.name.cmp(&y.name));
        b.dims.sort_by(|x, y| x.name.cmp(&y.name));
        a == b
    }
}

/// What a digit of an axis belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// adds `place` times its value to the index of a dim
    Dim { dim: usize, place: u64 },
    /// tells copies apart
    Copy,
}

/// One digit of an axis, seen from the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inverse {
    pub extent: u64,
    pub stride: u64,
    pub source: Source,
}

/// Why an axis has no inverse: the digits skip a place or share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Uneven {
    pub axis: Axis,
    /// the stride that was found, and the one that would tile the axis
    pub stride: u64,
    pub wanted: u64,
}

impl Layout {
    /// The digits of one axis by ascending stride, which must tile it in steps of `unit`: from a place to the
    /// element that lives there.
    pub fn invert(&self, axis: Axis, unit: u64) -> Result<Vec<Inverse>, Uneven> {
        let mut found: Vec<Inverse> = Vec::new();
        for (dim, d) in self.dims.iter().enumerate() {
            let mut place = 1;
            for digit in d.digits.iter().rev() {
                if digit.axis == axis && digit.extent > 1 {
                    let source = Source::Dim { dim, place };
                    found.push(Inverse { extent: digit.extent, stride: digit.stride, source });
                }
                place *= digit.extent;
            }
        }
        let copies = self.rep.iter().filter(|d| d.axis == axis && d.extent > 1);
        found.extend(copies.map(|d| Inverse { extent: d.extent, stride: d.stride, source: Source::Copy }));
        found.sort_by_key(|i| i.stride);
        let mut wanted = unit;
        for i in &found {
            if i.stride != wanted {
                return Err(Uneven { axis, stride: i.stride, wanted });
            }
            wanted *= i.extent;
        }
        Ok(found)
    }

    /// Every place of the given axes holds exactly one element (or a copy of one): `Ok` with the axes' sizes.
    pub fn bijective(&self, axes: &[Axis]) -> Result<Vec<u64>, Uneven> {
        let size = |axis: &Axis| Ok(self.invert(*axis, 1)?.iter().map(|i| i.extent).product());
        axes.iter().map(size).collect()
    }
}
