mod conversions;
mod floats;
mod integers;
mod literals;
mod slices;

use super::*;
use std::cmp::Ordering;

pub(super) const NARROW: [DType; 4] = [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16];

/// Rounding by definition: all values of a narrow format, found from its fields, and comparison with midpoints.
pub(super) struct Table {
    dtype: DType,
    /// non-negative finite values, by code
    values: Vec<f64>,
}

impl Table {
    pub fn new(dtype: DType) -> Table {
        let (exp, man, codes) = match dtype {
            DType::F8E4M3 => (4, 3, 0x7f),
            DType::F8E5M2 => (5, 2, 0x7c),
            DType::F16 => (5, 10, 0x7c00),
            _ => (8, 7, 0x7f80),
        };
        let bias = (1 << (exp - 1)) - 1;
        let value = |code: u32| {
            let (e, m) = ((code >> man) as i32, (code & ((1 << man) - 1)) as f64);
            let steps = 2f64.powi(man);
            if e == 0 { m / steps * 2f64.powi(1 - bias) } else { (1.0 + m / steps) * 2f64.powi(e - bias) }
        };
        Table { dtype, values: (0..codes).map(value).collect() }
    }

    pub fn sign(&self) -> u64 {
        1 << (self.dtype.bits() - 1)
    }

    /// The value of a code; NaN also for the codes above infinity.
    pub fn value(&self, bits: u64) -> f64 {
        let code = (bits & !self.sign()) as usize;
        let over = self.values.len();
        let magnitude = match code.cmp(&over) {
            Ordering::Less => self.values[code],
            Ordering::Equal if self.dtype != DType::F8E4M3 => f64::INFINITY,
            _ => f64::NAN,
        };
        if bits & self.sign() != 0 { -magnitude } else { magnitude }
    }

    /// The code nearest to an exact positive number, of which we know how it compares with an f64.
    pub fn nearest(&self, compare: impl Fn(f64) -> Ordering) -> u64 {
        let n = self.values.len();
        let step = self.values[n - 1] - self.values[n - 2];
        let (mut lo, mut hi) = (0, n);
        while lo < hi {
            let mid = (lo + hi) / 2;
            let next = self.values.get(mid + 1).copied().unwrap_or(self.values[n - 1] + step);
            let tie = (self.values[mid] + next) / 2.0;
            // does the number round to `mid` or below?
            let below = match compare(tie) {
                Ordering::Less => true,
                Ordering::Equal => mid % 2 == 0,
                Ordering::Greater => false,
            };
            if below {
                hi = mid;
            } else {
                lo = mid + 1;
            }
        }
        lo as u64
    }

    /// The code of an exact number `hi + lo`, where `lo` is what rounding lost.
    pub fn round(&self, hi: f64, lo: f64) -> u64 {
        if hi.is_nan() {
            return self.values.len() as u64 + (self.dtype != DType::F8E4M3) as u64;
        }
        let (sign, hi, lo) = if hi.is_sign_negative() { (self.sign(), -hi, -lo) } else { (0, hi, lo) };
        // Rounding to f64 is monotonic, so only at equality does the lost part decide.
        let compare = |m: f64| hi.partial_cmp(&m).unwrap().then_with(|| lo.partial_cmp(&0.0).unwrap());
        sign | self.nearest(compare)
    }

    pub fn same(&self, a: u64, b: u64) -> bool {
        a == b || self.value(a).is_nan() && self.value(b).is_nan()
    }
}

/// A small generator, so that samples are the same in every run.
pub(super) struct Lcg(pub u64);

impl Lcg {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0;
        (x ^ x >> 29).wrapping_mul(0xbf58476d1ce4e5b9) ^ x >> 32
    }
}

/// `a + b` as a sum of two f64.
pub(super) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    if !s.is_finite() {
        return (s, 0.0);
    }
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}
