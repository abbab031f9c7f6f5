//! Intervals of integers: which index values fit into 32 bits, which divisions need no rounding, which guards are idle.

use super::tree::Ty;
use pantile_ir::num;
use pantile_ir::program::Elem;

/// All integers from `lo` to `hi`, ends included. Bounds stay far inside `i128`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub lo: i128,
    pub hi: i128,
}

const LIMIT: i128 = 1 << 100;

impl Range {
    pub const INDEX: Range = Range { lo: i64::MIN as i128, hi: i64::MAX as i128 };
    /// A dim or stride: bytes of memory are counted in 63 bits, and no element is smaller than half a byte.
    pub const DIM: Range = Range { lo: 0, hi: 1 << 62 };
    pub const BOOL: Range = Range { lo: 0, hi: 1 };

    pub fn new(lo: i128, hi: i128) -> Range {
        Range { lo: lo.clamp(-LIMIT, LIMIT), hi: hi.clamp(-LIMIT, LIMIT) }
    }

    pub fn exactly(v: i128) -> Range {
        Range::new(v, v)
    }

    /// Every value of a type; floats have none.
    pub fn of(elem: Elem) -> Range {
        match num::int_range(elem) {
            Some((lo, hi)) => Range { lo, hi },
            None => Range::INDEX,
        }
    }

    pub fn within(self, other: Range) -> bool {
        self.lo >= other.lo && self.hi <= other.hi
    }

    pub fn fits(self, elem: Elem) -> bool {
        self.within(Range::of(elem))
    }

    pub fn fits_int(self) -> bool {
        self.within(Range { lo: i32::MIN.into(), hi: i32::MAX.into() })
    }

    /// The type of an index with these values.
    pub fn index_type(self) -> Ty {
        if self.fits_int() { Ty::I32 } else { Ty::I64 }
    }

    pub fn constant(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    pub fn union(self, o: Range) -> Range {
        Range { lo: self.lo.min(o.lo), hi: self.hi.max(o.hi) }
    }

    fn corners(self, o: Range, f: impl Fn(i128, i128) -> i128) -> Range {
        let all = [f(self.lo, o.lo), f(self.lo, o.hi), f(self.hi, o.lo), f(self.hi, o.hi)];
        Range::new(all.into_iter().fold(LIMIT, i128::min), all.into_iter().fold(-LIMIT, i128::max))
    }

    pub fn plus(self, o: Range) -> Range {
        Range::new(self.lo + o.lo, self.hi + o.hi)
    }

    pub fn minus(self, o: Range) -> Range {
        Range::new(self.lo - o.hi, self.hi - o.lo)
    }

    pub fn times(self, o: Range) -> Range {
        self.corners(o, |a, b| a.saturating_mul(b))
    }

    /// Floor division; a divisor that may be zero tells nothing.
    pub fn div(self, o: Range) -> Range {
        if o.lo <= 0 { Range::INDEX } else { self.corners(o, |a, b| a.div_euclid(b)) }
    }

    pub fn ceil_div(self, o: Range) -> Range {
        if o.lo <= 0 { Range::INDEX } else { self.corners(o, |a, b| -(-a).div_euclid(b)) }
    }

    pub fn rem(self, o: Range) -> Range {
        if o.lo <= 0 {
            return Range::INDEX;
        }
        if self.lo >= 0 && self.hi < o.lo {
            return self;
        }
        Range::new(0, if self.lo >= 0 { (o.hi - 1).min(self.hi) } else { o.hi - 1 })
    }

    pub fn min(self, o: Range) -> Range {
        Range { lo: self.lo.min(o.lo), hi: self.hi.min(o.hi) }
    }

    pub fn max(self, o: Range) -> Range {
        Range { lo: self.lo.max(o.lo), hi: self.hi.max(o.hi) }
    }

    /// Bitwise `and`: a side without sign bounds the result.
    pub fn and(self, o: Range) -> Range {
        match (self.lo >= 0, o.lo >= 0) {
            (true, true) => Range::new(0, self.hi.min(o.hi)),
            (true, false) => Range::new(0, self.hi),
            (false, true) => Range::new(0, o.hi),
            (false, false) => Range::INDEX,
        }
    }

    /// Bitwise `or` and `xor` of values without sign: no more bits than the larger one has.
    pub fn or(self, o: Range) -> Range {
        let top = self.hi.max(o.hi);
        if self.lo < 0 || o.lo < 0 || top >= LIMIT {
            return Range::INDEX;
        }
        Range::new(0, (1i128 << (128 - top.leading_zeros())) - 1)
    }

    pub fn shl(self, o: Range) -> Range {
        if o.lo < 0 || o.hi > 63 { Range::INDEX } else { self.corners(o, |a, n| a.saturating_mul(1 << n)) }
    }

    pub fn shr(self, o: Range) -> Range {
        if o.lo < 0 || o.hi > 63 { Range::INDEX } else { self.corners(o, |a, n| a >> n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_all_results() {
        let all: Vec<i128> = (-7..=7).collect();
        for lo in -4..=4i128 {
            for hi in lo..=4 {
                for (dlo, dhi) in [(1, 3), (2, 2), (-2, 3)] {
                    let (a, b) = (Range::new(lo, hi), Range::new(dlo, dhi));
                    for &x in all.iter().filter(|x| (lo..=hi).contains(x)) {
                        for y in dlo..=dhi {
                            let holds =
                                |r: Range, v: i128| assert!((r.lo..=r.hi).contains(&v), "{x} {y} {r:?} {v}");
                            holds(a.plus(b), x + y);
                            holds(a.minus(b), x - y);
                            holds(a.times(b), x * y);
                            holds(a.and(b), x & y);
                            holds(a.or(b), x | y);
                            holds(a.or(b), x ^ y);
                            if y > 0 {
                                holds(a.div(b), x.div_euclid(y));
                                holds(a.rem(b), x.rem_euclid(y));
                                holds(a.ceil_div(b), -(-x).div_euclid(y));
                                holds(a.shl(b), x << y);
                                holds(a.shr(b), x >> y);
                            }
                        }
                    }
                }
            }
        }
    }
}
