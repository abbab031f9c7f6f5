//! sin and cos for arguments of any size.
//!
//! The argument is brought to |r| ≤ π/4 and a quadrant, in f64 also for f32. Up to a bound by subtracting a multiple of
//! π/2 held in two or three parts. Beyond it (Payne and Hanek) x·2/π is formed piece by piece from the bits of 2/π;
//! each piece drops its multiples of 4 exactly before the sum. The bound is where the first way would lose its
//! accuracy; results stay within the stated error for every finite argument.

use super::lanes::{Float, Lanes};
use super::value::{Int, Val};

const PI_2: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];

/// sin r = r + r·z·S(z), cos r = 1 − z/2 + z²·C(z), z = r², on |r| ≤ π/4: Remez exchange in 50 digits, relative errors
/// 2^-57.2 and 2^-59.9.
const SIN: [f64; 6] = [
    -0.16666666666666632,
    0.008333333333322413,
    -0.00019841269829807894,
    2.7557313691958818e-06,
    -2.505075812246982e-08,
    1.5896796094539874e-10,
];
const COS: [f64; 6] = [
    0.0416666666666666,
    -0.0013888888888874125,
    2.4801587289482398e-05,
    -2.75573143523879e-07,
    2.0875723280125173e-09,
    -1.1359648139783847e-11,
];
/// The same to 2^-37.6 and 2^-43.2, enough for f32.
const SIN_SHORT: [f64; 4] =
    [-0.16666666641606864, 0.008333329383585986, -0.00019839334085569737, 2.7183042570069863e-06];
const COS_SHORT: [f64; 4] =
    [0.04166666662279407, -0.001388888375041027, 2.4799519202231485e-05, -2.7210170087320863e-07];

/// The bits of 2/π after the point, 28 at a time: the product with an f32 is exact in f64.
const TWO_OVER_PI_28: [u32; 7] = [170891318, 240010261, 44024437, 131200308, 232525238, 43358524, 70845471];
/// 53 at a time, for f64.
const TWO_OVER_PI_53: [u64; 22] = [
    0x145f306dc9c882,
    0x14a7f09d5f47d4,
    0x1a6ee06db14acc,
    0x13c439041fe516,
    0x0757bd778ac36e,
    0x091b8e909374b8,
    0x00324977504e8c,
    0x121cfe1deb1cb1,
    0x0534e7dd1046be,
    0x14baed1213a671,
    0x18135a2fbf209c,
    0x191d639835339f,
    0x093908bf177bf2,
    0x0a0ec7fe25fff7,
    0x102cc07f79788c,
    0x0b5a0a6d1f6d36,
    0x0fd9e4f96136e9,
    0x1d18fd9a797fa8,
    0x16ba93dd63f5f2,
    0x1f17b3d0739f78,
    0x14a525d4d7f6bf,
    0x0c47e357421580,
];

/// r = hi + lo in [−π/4, π/4] and the quadrant modulo 4 in the low bits.
struct Reduced<'b, B: Float<f64>> {
    hi: Val<'b, B, f64>,
    lo: Val<'b, B, f64>,
    quadrant: Int<'b, B, f64>,
}

/// A sum in three parts, for cancellation down to the last bits.
struct Sum3<'b, B: Float<f64>>([Val<'b, B, f64>; 3]);

impl<'b, B: Float<f64>> Sum3<'b, B> {
    /// Adds what is left of `x` modulo 4.
    fn add_mod_4(&mut self, x: Val<'b, B, f64>) {
        let x = (x * 0.25).round_even().fma(-4.0, x);
        let (hi, lost) = self.0[0].plus(x);
        let (mid, lost) = self.0[1].plus(lost);
        self.0 = [hi, mid, self.0[2] + lost];
    }

    fn reduced(self) -> Reduced<'b, B> {
        let [hi, mid, lo] = self.0;
        let (n, quadrant) = hi.nearest();
        let (f, lost) = (hi - n).plus(mid);
        let lost = lost + lo;
        let (r, r_lost) = f.times(PI_2[0]);
        Reduced { hi: r, lo: lost.fma(PI_2[0], f.fma(PI_2[1], r_lost)), quadrant }
    }
}

/// For x that came from f32, |x| < 2^36: f64 has bits to spare, so that two parts of π/2 do.
fn reduce_short<B: Float<f64>>(x: Val<'_, B, f64>) -> Reduced<'_, B> {
    let (n, quadrant) = (x * std::f64::consts::FRAC_2_PI).nearest();
    let hi = (-n).fma(PI_2[1], (-n).fma(PI_2[0], x));
    Reduced { hi, lo: x.constant(0.0), quadrant }
}

fn reduce_short_huge<B: Float<f64>>(x: Val<'_, B, f64>) -> Reduced<'_, B> {
    let mut sum = Sum3([x.constant(0.0); 3]);
    let mut scale = 1.0;
    for piece in TWO_OVER_PI_28 {
        scale /= (1u64 << 28) as f64;
        sum.add_mod_4(x * (piece as f64 * scale));
    }
    sum.reduced()
}

/// |x| < 2^30. The first difference is exact, both sides being multiples of its last place.
fn reduce<B: Float<f64>>(x: Val<'_, B, f64>) -> Reduced<'_, B> {
    let (n, quadrant) = (x * std::f64::consts::FRAC_2_PI).nearest();
    let n = -n;
    let near = n.fma(PI_2[0], x);
    let (p, p_lost) = n.times(PI_2[1]);
    let (hi, lost) = near.plus(p);
    let (hi, lo) = hi.plus_smaller(lost + n.fma(PI_2[2], p_lost));
    Reduced { hi, lo, quadrant }
}

fn reduce_huge<B: Float<f64>>(x: Val<'_, B, f64>) -> Reduced<'_, B> {
    // The powers keep the last pieces in the normal range.
    const UP: f64 = f64::from_bits((1023 + 200) << 52);
    const DOWN: f64 = f64::from_bits((1023 - 200) << 52);
    let x = x * DOWN;
    let mut sum = Sum3([x.constant(0.0); 3]);
    let mut scale = UP;
    for piece in TWO_OVER_PI_53 {
        scale /= (1u64 << 53) as f64;
        let (hi, lo) = x.times(piece as f64 * scale);
        sum.add_mod_4(hi);
        sum.add_mod_4(lo);
    }
    sum.reduced()
}

/// The sine of r turned by its quadrant and by `turn` more.
fn turned<'b, B: Float<f64>>(r: Reduced<'b, B>, turn: i64, sin: &[f64], cos: &[f64]) -> Val<'b, B, f64> {
    let (x, lo, quadrant) = (r.hi, r.lo, r.quadrant + turn);
    let z = x * x;
    let half = z * 0.5;
    let sin = x + (x * z).fma(z.poly(sin), (-half).fma(lo, lo));
    let (one, lost) = x.constant(1.0).plus_smaller(-half);
    let cos = one + (lost + (z * z).fma(z.poly(cos), -(x * lo)));
    let value = (quadrant & 1).eq(1).select(cos, sin);
    (value.bits() ^ (quadrant & 2).shl(62)).float()
}

fn sin_or_cos_f32<B: Lanes>(x: Val<'_, B, f32>, turn: i64) -> Val<'_, B, f32> {
    let x = x.widen();
    let fast = turned(reduce_short(x), turn, &SIN_SHORT, &COS_SHORT);
    let huge = x.abs().gt(68_719_476_736.0);
    fast.rarely(huge, || turned(reduce_short_huge(x), turn, &SIN_SHORT, &COS_SHORT)).narrow()
}

fn sin_or_cos_f64<B: Float<f64>>(x: Val<'_, B, f64>, turn: i64) -> Val<'_, B, f64> {
    let fast = turned(reduce(x), turn, &SIN, &COS);
    let huge = x.abs().gt(1_073_741_824.0);
    fast.rarely(huge, || turned(reduce_huge(x), turn, &SIN, &COS))
}

/// The sine is odd; the formulas lose the sign of zero.
pub(super) fn sin_f32<B: Lanes>(x: Val<'_, B, f32>) -> Val<'_, B, f32> {
    x.eq(0.0).select(x, sin_or_cos_f32(x, 0))
}

pub(super) fn cos_f32<B: Lanes>(x: Val<'_, B, f32>) -> Val<'_, B, f32> {
    sin_or_cos_f32(x, 1)
}

pub(super) fn sin_f64<B: Float<f64>>(x: Val<'_, B, f64>) -> Val<'_, B, f64> {
    x.eq(0.0).select(x, sin_or_cos_f64(x, 0))
}

pub(super) fn cos_f64<B: Float<f64>>(x: Val<'_, B, f64>) -> Val<'_, B, f64> {
    sin_or_cos_f64(x, 1)
}
