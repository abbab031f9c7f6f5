//! Tiles: a static shape, a valid box, and the elements inside the box only. An invalid element has no storage, so
//! nothing can compute with it by mistake.

use crate::program::{Elem, Shape};
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tile {
    pub elem: Elem,
    pub shape: Shape,
    pub valid: Bounds,
    /// Row-major over the extents of `valid`.
    pub data: Vec<u64>,
}

/// A box: `lo..hi` per axis. An axis may be empty while others are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub lo: Shape,
    pub hi: Shape,
}

impl Bounds {
    pub fn full(shape: &[u32]) -> Bounds {
        Bounds { lo: shape.iter().map(|_| 0).collect(), hi: shape.iter().copied().collect() }
    }

    pub fn rank(&self) -> usize {
        self.lo.len()
    }

    pub fn extent(&self, axis: usize) -> u32 {
        self.hi[axis].saturating_sub(self.lo[axis])
    }

    pub fn extents(&self) -> Shape {
        (0..self.rank()).map(|d| self.extent(d)).collect()
    }

    pub fn count(&self) -> usize {
        (0..self.rank()).map(|d| self.extent(d) as usize).product()
    }

    pub fn is_full(&self, shape: &[u32]) -> bool {
        (0..self.rank()).all(|d| self.lo[d] == 0 && self.hi[d] == shape[d])
    }

    pub fn contains(&self, index: &[u32]) -> bool {
        (0..self.rank()).all(|d| (self.lo[d]..self.hi[d]).contains(&index[d]))
    }

    /// The common part; an empty axis is normalised to `lo..lo`.
    pub fn intersect(&self, other: &Bounds) -> Bounds {
        let lo: Shape = self.lo.iter().zip(&other.lo).map(|(&a, &b)| a.max(b)).collect();
        let hi = self.hi.iter().zip(&other.hi).zip(&lo).map(|((&a, &b), &lo)| a.min(b).max(lo)).collect();
        Bounds { lo, hi }
    }

    /// The box after stretching axes of extent 1 from `from` to `to`: full where that one element is valid.
    pub fn stretched(&self, from: &[u32], to: &[u32]) -> Bounds {
        let mut out = self.clone();
        for d in 0..self.rank() {
            if from[d] != to[d] {
                out.lo[d] = 0;
                out.hi[d] = if self.extent(d) == 0 { 0 } else { to[d] };
            }
        }
        out
    }

    pub fn strides(&self) -> Vec<usize> {
        row_major(&self.extents())
    }
}

fn row_major(extents: &[u32]) -> Vec<usize> {
    let mut strides = vec![1; extents.len()];
    for d in (1..extents.len()).rev() {
        strides[d - 1] = strides[d] * extents[d] as usize;
    }
    strides
}

/// Calls `f` with the offset of each element of a box walked row-major.
pub(super) fn walk(base: usize, extents: &[u32], strides: &[usize], mut f: impl FnMut(usize)) {
    if extents.contains(&0) {
        return;
    }
    let Some(last) = extents.len().checked_sub(1) else { return f(base) };
    let mut at = vec![0u32; extents.len()];
    let mut offset = base;
    loop {
        for i in 0..extents[last] as usize {
            f(offset + i * strides[last]);
        }
        let mut d = last;
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            at[d] += 1;
            offset += strides[d];
            if at[d] < extents[d] {
                break;
            }
            offset -= strides[d] * extents[d] as usize;
            at[d] = 0;
        }
    }
}

impl Tile {
    pub fn full(elem: Elem, shape: Shape, data: Vec<u64>) -> Tile {
        Tile { elem, valid: Bounds::full(&shape), shape, data }
    }

    pub fn is_full(&self) -> bool {
        self.valid.is_full(&self.shape)
    }

    /// The elements of `bounds` of this tile stretched to `shape`; every one of them is valid.
    pub fn over(&self, shape: &[u32], bounds: &Bounds) -> Cow<'_, [u64]> {
        if self.shape[..] == *shape && self.valid == *bounds {
            return Cow::Borrowed(&self.data);
        }
        let mut strides = self.valid.strides();
        let mut base = 0;
        for d in 0..self.shape.len() {
            if self.shape[d] == shape[d] {
                base += (bounds.lo[d] - self.valid.lo[d]) as usize * strides[d];
            } else {
                strides[d] = 0;
            }
        }
        let mut out = Vec::with_capacity(bounds.count());
        walk(base, &bounds.extents(), &strides, |i| out.push(self.data[i]));
        Cow::Owned(out)
    }

    /// One element, if it is valid.
    pub fn get(&self, index: &[u32]) -> Option<u64> {
        if !self.valid.contains(index) {
            return None;
        }
        let mut at = 0;
        for (d, &i) in index.iter().enumerate() {
            at = at * self.valid.extent(d) as usize + (i - self.valid.lo[d]) as usize;
        }
        self.data.get(at).copied()
    }

    pub fn transposed(&self) -> Tile {
        let n = self.shape.len();
        let (mut shape, mut valid, mut strides) =
            (self.shape.clone(), self.valid.clone(), self.valid.strides());
        shape.swap(n - 2, n - 1);
        valid.lo.swap(n - 2, n - 1);
        valid.hi.swap(n - 2, n - 1);
        strides.swap(n - 2, n - 1);
        let mut data = Vec::with_capacity(self.data.len());
        walk(0, &valid.extents(), &strides, |i| data.push(self.data[i]));
        Tile { elem: self.elem, shape, valid, data }
    }

    pub fn with_axis(&self, axis: usize) -> Tile {
        let mut tile = self.clone();
        tile.shape.insert(axis, 1);
        tile.valid.lo.insert(axis, 0);
        tile.valid.hi.insert(axis, 1);
        tile
    }

    pub fn broadcast(&self, shape: &Shape) -> Tile {
        let valid = self.valid.stretched(&self.shape, shape);
        let data = self.over(shape, &valid).into_owned();
        Tile { elem: self.elem, shape: shape.clone(), valid, data }
    }

    /// A part: per axis a start with a length, or an index that drops the axis. The part lies inside the shape; its
    /// box is what of it is valid, and empty where a dropping index meets an invalid row.
    pub fn slice(&self, axes: &[(u32, Option<u32>)]) -> Tile {
        let strides = self.valid.strides();
        let (mut shape, mut lo, mut hi, mut kept) = (Shape::new(), Shape::new(), Shape::new(), Vec::new());
        let (mut base, mut alive) = (0, true);
        for (d, &(start, len)) in axes.iter().enumerate() {
            let valid = self.valid.lo[d]..self.valid.hi[d];
            match len {
                None if valid.contains(&start) => base += (start - valid.start) as usize * strides[d],
                None => alive = false,
                Some(len) => {
                    let l = valid.start.max(start);
                    let h = valid.end.min(start + len).max(l);
                    base += (l - valid.start) as usize * strides[d];
                    shape.push(len);
                    lo.push((l - start).min(len));
                    hi.push((h - start).min(len));
                    kept.push(strides[d]);
                }
            }
        }
        if !alive {
            hi.clone_from(&lo);
        }
        let valid = Bounds { lo, hi };
        let mut data = Vec::with_capacity(valid.count());
        walk(base, &valid.extents(), &kept, |i| data.push(self.data[i]));
        Tile { elem: self.elem, shape, valid, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Elem;

    fn counting(shape: &[u32], lo: &[u32], hi: &[u32]) -> Tile {
        let valid = Bounds { lo: lo.iter().copied().collect(), hi: hi.iter().copied().collect() };
        let data = (0..valid.count() as u64).collect();
        Tile { elem: Elem::Index, shape: shape.iter().copied().collect(), valid, data }
    }

    #[test]
    fn slices_keep_what_is_valid() {
        let t = counting(&[4, 5], &[1, 0], &[3, 4]);
        let s = t.slice(&[(0, Some(2)), (3, Some(2))]);
        assert_eq!((s.valid.lo.to_vec(), s.valid.hi.to_vec(), s.data), (vec![1, 0], vec![2, 1], vec![3]));
        assert_eq!(t.slice(&[(2, None), (0, Some(5))]).data, [4, 5, 6, 7]);
        assert_eq!(t.slice(&[(3, None), (0, Some(5))]).valid.count(), 0);
        assert!(t.slice(&[(3, Some(1)), (0, Some(5))]).data.is_empty());
    }

    #[test]
    fn transposes_and_stretches() {
        let t = counting(&[3, 2], &[0, 0], &[3, 2]);
        assert_eq!(t.transposed().data, [0, 2, 4, 1, 3, 5]);
        let column = counting(&[3, 1], &[1, 0], &[3, 1]);
        let wide = column.broadcast(&[3, 2].into_iter().collect());
        assert_eq!((wide.valid.lo.to_vec(), wide.data), (vec![1, 0], vec![0, 0, 1, 1]));
        assert_eq!(t.get(&[2, 1]), Some(5));
        assert_eq!(column.get(&[0, 0]), None);
    }
}
