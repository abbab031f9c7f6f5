//! Random layouts and brute-force enumeration for the layout tests. Nothing here uses the algebra under test beyond
//! the meaning of a digit.
#![allow(dead_code)]

use pantile_ir::layout::{At, Axis, Digit, Dim, Layout, Shared};

/// A small deterministic generator.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// A random ordered factorisation of `n`, without ones.
pub fn factors(rng: &mut Rng, mut n: u64) -> Vec<u64> {
    let mut all = Vec::new();
    while n > 1 {
        let divisors: Vec<u64> = (2..=n).filter(|d| n.is_multiple_of(*d)).collect();
        let f = rng.pick(&divisors);
        all.push(f);
        n /= f;
    }
    all
}

/// A layout in which every register of every thread holds one element: digits shared out at random.
pub fn fragment(rng: &mut Rng, shape: &[(&str, u64)], copies: u64) -> Layout {
    let mut dims: Vec<Dim> = shape
        .iter()
        .map(|(name, extent)| {
            let cut = factors(rng, *extent);
            let digits: Vec<Digit> =
                cut.iter().map(|e| Digit::new(*e, rng.pick(&[Axis::Thr, Axis::Reg]), 0)).collect();
            Dim::new(*name, digits)
        })
        .collect();
    let mut rep: Vec<Digit> = factors(rng, copies).iter().map(|e| Digit::new(*e, Axis::Thr, 0)).collect();
    for axis in [Axis::Thr, Axis::Reg] {
        let mut all: Vec<&mut Digit> = dims
            .iter_mut()
            .flat_map(|d| d.digits.iter_mut())
            .chain(rep.iter_mut())
            .filter(|d| d.axis == axis)
            .collect();
        rng.shuffle(&mut all);
        let mut stride = 1;
        for d in all {
            d.stride = stride;
            stride *= d.extent;
        }
    }
    Layout { dims, rep, offset: At::default() }
}

/// All indices of the valid elements.
pub fn indices(layout: &Layout) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for d in &layout.dims {
        all = all
            .into_iter()
            .flat_map(|i| (0..d.extent()).map(move |x| [i.clone(), vec![x]].concat()))
            .collect();
    }
    all
}

/// The place of an element by the bare meaning of digits, one digit at a time.
pub fn place(layout: &Layout, index: &[u64]) -> At {
    let mut at = layout.offset;
    for (d, i) in layout.dims.iter().zip(index) {
        let mut below = d.digits.iter().map(|x| x.extent).product::<u64>();
        let mut rest = *i;
        for x in &d.digits {
            below /= x.extent;
            at[x.axis] += rest / below * x.stride;
            rest %= below;
        }
    }
    at
}

/// All places of an element, one a copy.
pub fn places(layout: &Layout, index: &[u64]) -> Vec<At> {
    let mut all = vec![place(layout, index)];
    for d in &layout.rep {
        all = all
            .into_iter()
            .flat_map(|at| {
                (0..d.extent).map(move |v| {
                    let mut next = at;
                    next[d.axis] += v * d.stride;
                    next
                })
            })
            .collect();
    }
    all
}

/// An index in the order of another layout's dims.
pub fn reorder(from: &Layout, to: &Layout, index: &[u64]) -> Vec<u64> {
    to.dims
        .iter()
        .map(|d| index[from.dims.iter().position(|o| o.name == d.name).expect("same dims")])
        .collect()
}

/// Elements per (thread, register), as positions in `indices`.
pub fn holdings(layout: &Layout) -> std::collections::BTreeMap<(u64, u64), Vec<u64>> {
    let mut all = std::collections::BTreeMap::new();
    for index in indices(layout) {
        for at in places(layout, &index) {
            let old = all.insert((at[Axis::Thr], at[Axis::Reg]), index.clone());
            assert!(old.is_none(), "two elements in one place of {layout}");
        }
    }
    all
}

/// The byte address of each element under the plain meaning of digits and XOR.
pub fn address(tile: &Shared, index: &[u64]) -> u64 {
    let a = place(&tile.layout, index)[Axis::Mem];
    match tile.xor {
        None => a,
        Some(x) => (0..x.bits).fold(a, |a, b| a ^ ((a >> (x.base + b + x.shift) & 1) << (x.base + b))),
    }
}
