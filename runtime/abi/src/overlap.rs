//! Do two views share memory, and does one view visit an element twice?
//!
//! Exact where strides nest (every axis steps over all finer ones together), else by enumeration while small;
//! beyond that the answer errs on the side of "may share".

/// Extents and byte strides of a view's axes; axes of one element are left out.
#[derive(Clone, Debug)]
pub(crate) struct Footprint {
    start: usize,
    /// (extent, byte stride), finest first.
    axes: Vec<(usize, usize)>,
    unit: usize,
    empty: bool,
}

/// Enumeration stops here.
const MANY: usize = 1 << 16;

impl Footprint {
    /// `unit` is the size of one element in bytes; strides count elements and are not negative.
    pub(crate) fn new(start: usize, extents: &[usize], strides: &[isize], unit: usize) -> Footprint {
        let empty = extents.contains(&0);
        let mut axes: Vec<(usize, usize)> = extents
            .iter()
            .zip(strides)
            .filter(|(extent, _)| **extent > 1)
            .map(|(extent, stride)| (*extent, stride.unsigned_abs().saturating_mul(unit)))
            .collect();
        axes.sort_by_key(|&(_, stride)| stride);
        Footprint { start, axes, unit, empty }
    }

    /// Bytes from the first element's start to the last one's end; `None` if that does not fit.
    pub(crate) fn span(&self) -> Option<usize> {
        if self.empty {
            return Some(0);
        }
        self.axes.iter().try_fold(self.unit, |sum, &(extent, stride)| {
            (extent - 1).checked_mul(stride).and_then(|reach| sum.checked_add(reach))
        })
    }

    /// May one element be visited through two indices?
    pub(crate) fn overlaps_itself(&self) -> bool {
        if self.empty {
            return false;
        }
        let mut reach = self.unit;
        let mut nested = true;
        for &(extent, stride) in &self.axes {
            nested &= stride >= reach;
            reach = reach.saturating_add((extent - 1).saturating_mul(stride));
        }
        if nested {
            return false;
        }
        let Some(mut starts) = self.starts() else { return true };
        starts.sort_unstable();
        starts.windows(2).any(|w| w[1] - w[0] < self.unit)
    }

    /// May the two share a byte?
    pub(crate) fn overlaps(&self, other: &Footprint) -> bool {
        if self.empty || other.empty {
            return false;
        }
        let (Some(a), Some(b)) = (self.span(), other.span()) else { return true };
        let apart =
            self.start.saturating_add(a) <= other.start || other.start.saturating_add(b) <= self.start;
        if apart || self.interleaves(other) {
            return false;
        }
        match (self.starts(), other.starts()) {
            (Some(a), Some(b)) => touch(a, self.unit, b, other.unit),
            _ => true,
        }
    }

    /// Columns of one matrix: both step by one stride and their rows stay in different parts of that step.
    fn interleaves(&self, other: &Footprint) -> bool {
        let (Some((&(_, step), fine_a)), Some((&(_, step_b), fine_b))) =
            (self.axes.split_last(), other.axes.split_last())
        else {
            return false;
        };
        if step != step_b || step == 0 {
            return false;
        }
        let width = |unit: usize, fine: &[(usize, usize)]| {
            fine.iter()
                .fold(unit, |w, &(extent, stride)| w.saturating_add((extent - 1).saturating_mul(stride)))
        };
        let (wa, wb) = (width(self.unit, fine_a), width(other.unit, fine_b));
        // place of `other` relative to `self` on the circle of one step
        let gap = (other.start as i128 - self.start as i128).rem_euclid(step as i128) as usize;
        wa <= gap && gap.saturating_add(wb) <= step
    }

    /// The address of every element, if they are not too many.
    fn starts(&self) -> Option<Vec<usize>> {
        let count = self.axes.iter().try_fold(1usize, |n, &(extent, _)| n.checked_mul(extent))?;
        if count > MANY {
            return None;
        }
        let mut all = vec![self.start];
        for &(extent, stride) in &self.axes {
            let steps = (0..extent).map(|i| i.saturating_mul(stride));
            all = steps
                .flat_map(|s| all.iter().map(move |a| a.saturating_add(s)).collect::<Vec<_>>())
                .collect();
        }
        Some(all)
    }
}

fn touch(mut a: Vec<usize>, unit_a: usize, mut b: Vec<usize>, unit_b: usize) -> bool {
    a.sort_unstable();
    b.sort_unstable();
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i].saturating_add(unit_a) <= b[j] {
            i += 1;
        } else if b[j].saturating_add(unit_b) <= a[i] {
            j += 1;
        } else {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: usize, extents: &[usize], strides: &[isize]) -> Footprint {
        Footprint::new(start, extents, strides, 4)
    }

    /// Every byte of a view, by brute force.
    fn bytes(start: usize, extents: &[usize], strides: &[isize]) -> Vec<usize> {
        let mut all = vec![start];
        for (e, s) in extents.iter().zip(strides) {
            all = (0..*e)
                .flat_map(|i| all.iter().map(move |a| a + i * *s as usize * 4).collect::<Vec<_>>())
                .collect();
        }
        all.into_iter().flat_map(|a| a..a + 4).collect()
    }

    #[test]
    fn itself() {
        assert!(!at(0, &[4, 5], &[5, 1]).overlaps_itself());
        assert!(!at(0, &[4, 5], &[1, 4]).overlaps_itself());
        assert!(at(0, &[4, 5], &[0, 1]).overlaps_itself());
        assert!(at(0, &[4, 5], &[4, 1]).overlaps_itself());
        assert!(!at(0, &[1, 5], &[0, 1]).overlaps_itself(), "an axis of one element may have any stride");
        assert!(!at(0, &[0, 5], &[0, 0]).overlaps_itself());
        assert!(!at(0, &[3, 2], &[2, 3]).overlaps_itself(), "0 2 4 and 3 5 7 are distinct");
    }

    #[test]
    fn columns_of_a_matrix_are_apart() {
        let big = 1 << 12;
        let left = at(0, &[big, 64], &[128, 1]);
        let right = at(64 * 4, &[big, 64], &[128, 1]);
        let wide = at(63 * 4, &[big, 65], &[128, 1]);
        assert!(!left.overlaps(&right) && !right.overlaps(&left));
        assert!(left.overlaps(&wide) && wide.overlaps(&left));
    }

    #[test]
    fn agrees_with_enumeration() {
        for start in 0..12 {
            for stride in 0..6isize {
                for other in 1..6isize {
                    let (ea, sa) = ([3, 2], [stride, 1]);
                    let (eb, sb) = ([2, 2], [other, 2]);
                    let (a, b) = (bytes(40, &ea, &sa), bytes(start * 8, &eb, &sb));
                    let truth = a.iter().any(|x| b.contains(x));
                    let (fa, fb) = (at(40, &ea, &sa), at(start * 8, &eb, &sb));
                    assert_eq!(fa.overlaps(&fb), truth, "{start} {stride} {other}");
                    assert_eq!(fb.overlaps(&fa), truth);
                    let mut seen = a.clone();
                    seen.sort_unstable();
                    seen.dedup();
                    assert_eq!(fa.overlaps_itself(), seen.len() != a.len(), "{stride}");
                }
            }
        }
    }
}
