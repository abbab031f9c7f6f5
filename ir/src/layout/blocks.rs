//! Matrix moves: instructions that load or store 8-row blocks of memory rows and hand each thread a fixed part of a
//! block (`ldmatrix`, `stmatrix` and their transposed forms). They apply where a fragment's digits repeat the
//! block's map.

use super::{Axis, Banks, Digit, Dim, Layout, Shared, bank_conflicts_of, relate};

/// A matrix move as the target states it.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockMove {
    pub name: String,
    pub loads: bool,
    /// width of an element in bytes
    pub element_bytes: u64,
    /// contiguous bytes of one row of a block
    pub row_bytes: u64,
    /// most blocks an instruction moves
    pub blocks: u64,
    /// dims `r` (rows) and `c` (along a row)
    pub map: Layout,
}

/// How a fragment is moved block by block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFit {
    /// the dims that blocks cut: rows, and along the rows
    pub rows: String,
    pub cols: String,
    /// blocks of the whole team
    pub blocks: u64,
    /// most ways of the eight rows of any block
    pub ways: u64,
}

const ROWS: u64 = 8;

impl BlockMove {
    /// Checks that the move delivers exactly this fragment from (or to) this tile, and what its rows cost.
    pub fn fit(&self, frag: &Layout, tile: &Shared, banks: &Banks) -> Option<BlockFit> {
        let cols = self.row_bytes / self.element_bytes;
        let whole_rows = |x: super::Xor| 1u64 << x.base >= self.row_bytes;
        if tile.xor.is_some_and(|x| !whole_rows(x))
            || !tile.align.is_multiple_of(self.row_bytes)
            || frag.copies() > 1
        {
            return None;
        }
        let fast = tile.layout.dims.iter().find(|d| {
            let last = d.canon().digits.last().copied();
            last.is_some_and(|d| {
                d.axis == Axis::Mem && d.stride == self.element_bytes && d.extent % cols == 0
            })
        })?;
        let [r, c] = ["r", "c"].map(|d| self.map.dim(d).map(Dim::canon));
        let (r, c) = (r?.digits, c?.digits);
        let slow = frag.dims.iter().find(|d| d.name != fast.name && inner(d, ROWS) == Some(r.clone()))?;
        if inner(frag.dim(&fast.name)?, cols)? != c || frag.dims.iter().any(|d| d.guard.is_some()) {
            return None;
        }
        let aligned = |d: &Digit| {
            d.axis != Axis::Mem || d.stride < self.row_bytes || d.stride.is_multiple_of(self.row_bytes)
        };
        if !tile.layout.digits().all(|(_, d)| aligned(d)) {
            return None;
        }
        let ways = self.ways(frag, tile, &slow.name, &fast.name, banks)?;
        let blocks = frag.elements() / (ROWS * cols);
        Some(BlockFit { rows: slow.name.clone(), cols: fast.name.clone(), blocks, ways })
    }

    /// The rows of each block that starts at a distinct address.
    fn ways(&self, frag: &Layout, tile: &Shared, rows: &str, cols: &str, banks: &Banks) -> Option<u64> {
        // One thread a row and one register a block: the fragment of the addresses.
        let mut starts = frag.clone();
        for d in &mut starts.dims {
            let extent = d.extent();
            let block = if d.name == rows {
                ROWS
            } else if d.name == cols {
                self.row_bytes / self.element_bytes
            } else {
                1
            };
            let (axis, stride) = if d.name == rows { (Axis::Thr, 1) } else { (Axis::Simd, 1) };
            d.digits = vec![Digit::new(extent / block, Axis::Reg, 1), Digit::new(block, axis, stride)];
        }
        let relation = relate(&starts, &tile.layout).ok()?;
        let at = |dim: usize, i: u64| {
            let of = relation.pieces.iter().filter(|p| p.dim == dim && p.dst.0 == Axis::Mem);
            of.map(|p| i / p.place % p.extent * p.dst.1).sum::<u64>()
        };
        let cycle = tile.xor.map_or(1, |x| x.cycle()).max(banks.count * banks.bytes);
        let mut bases = std::collections::BTreeSet::from([0]);
        for (i, d) in starts.dims.iter().enumerate() {
            let block = d.digits[1].extent;
            let offsets: Vec<u64> = (0..d.extent() / block).map(|b| at(i, b * block) % cycle).collect();
            bases = bases.iter().flat_map(|b| offsets.iter().map(move |o| (b + o) % cycle)).collect();
        }
        let slow = starts.dims.iter().position(|d| d.name == rows)?;
        let one = |base: u64| {
            let rows: Vec<u64> = (0..ROWS).map(|r| tile.swizzled(base + at(slow, r))).collect();
            bank_conflicts_of(&rows, self.row_bytes, banks).into_iter().max().unwrap_or(1)
        };
        bases.into_iter().map(one).max()
    }
}

/// The innermost `extent` indices of a dim as digits of their own.
fn inner(dim: &Dim, extent: u64) -> Option<Vec<Digit>> {
    let mut found = Vec::new();
    let mut left = extent;
    for d in dim.canon().digits.iter().rev() {
        if left == 1 {
            break;
        }
        let part = d.extent.min(left);
        if !left.is_multiple_of(part) || d.extent % part != 0 {
            return None;
        }
        found.insert(0, Digit { extent: part, ..*d });
        left /= part;
    }
    (left == 1).then_some(found)
}
