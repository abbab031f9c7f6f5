//! Contents of the tensors of a generated program.

use super::Rng;
use pantile_abi::{DType, DTypeKind};

/// What a tensor holds, by a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    pub kind: u8,
    pub seed: u64,
}

const SPECIAL: [f64; 12] = [
    0.0,
    -0.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1.0,
    -1.0,
    1e-40,
    -3e-310,
    65504.0,
    3e38,
    5.960_464_477_539_063e-8,
];

impl Data {
    pub const KINDS: usize = 4;

    /// Bits of `n` elements, in the low end of each word.
    pub fn bits(self, dtype: DType, n: usize) -> Vec<u64> {
        let mut rng = Rng::new(self.seed);
        (0..n).map(|i| self.element(dtype, i, &mut rng)).collect()
    }

    fn element(self, dtype: DType, i: usize, rng: &mut Rng) -> u64 {
        let mask = if dtype.bits() >= 64 { u64::MAX } else { (1 << dtype.bits()) - 1 };
        let float = matches!(dtype.kind(), DTypeKind::Float | DTypeKind::Float8);
        let small = (rng.next() % 17) as f64 - 8.0;
        let word = rng.next();
        if dtype == DType::Bool {
            return word & 1;
        }
        match (self.kind, float) {
            // a short pattern: what a shrunk program should hold
            (0, true) => dtype.encode((i % 5) as f64 - 2.0),
            (0, false) => (i as u64 % 5) & mask,
            (1, true) => dtype.encode(small * 0.25 + (word % 1000) as f64 * 1e-3),
            (1, false) => (small as i64 as u64) & mask,
            (2, true) if word.is_multiple_of(3) => dtype.encode(SPECIAL[(word / 3) as usize % SPECIAL.len()]),
            (2, true) => dtype.encode(small * f64::powi(2.0, (word / 3 % 60) as i32 - 30)),
            (2, false) if word.is_multiple_of(3) => {
                [0, 1, mask, mask >> 1, (mask >> 1) + 1][(word / 3) as usize % 5]
            }
            (_, false) => word & mask,
            // any pattern, all kinds of NaN among them
            (_, true) => word & mask,
        }
    }
}
