//! Bit patterns of elements to numbers and back.
//!
//! Floats widen exactly to f64; f64 narrows to nearest even in one rounding. This is the one place that knows how
//! the narrow float formats are laid out.

use crate::DType;

/// A binary float of at most 32 bits: sign, exponent with the usual bias, fraction.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    fraction: u32,
    /// Whether the top exponent is reserved for infinity and NaN. Without: one NaN (all ones), no infinity.
    ieee: bool,
}

impl Format {
    const fn of(dtype: DType) -> Option<Format> {
        Some(match dtype {
            DType::F8E4M3 => Format { exponent: 4, fraction: 3, ieee: false },
            DType::F8E5M2 => Format { exponent: 5, fraction: 2, ieee: true },
            DType::F16 => Format { exponent: 5, fraction: 10, ieee: true },
            DType::BF16 => Format { exponent: 8, fraction: 7, ieee: true },
            DType::F32 => Format { exponent: 8, fraction: 23, ieee: true },
            _ => return None,
        })
    }

    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The code of infinity, or of the NaN that stands in for it.
    const fn top(self) -> u64 {
        if self.ieee {
            ((1 << self.exponent) - 1) << self.fraction
        } else {
            (1 << (self.exponent + self.fraction)) - 1
        }
    }

    const fn nan(self) -> u64 {
        if self.ieee { self.top() | 1 << (self.fraction - 1) } else { self.top() }
    }

    fn decode(self, bits: u64) -> f64 {
        let magnitude = bits & ((1 << (self.exponent + self.fraction)) - 1);
        let negative = bits >> (self.exponent + self.fraction) & 1 == 1;
        let value = if magnitude > self.top() || (!self.ieee && magnitude == self.top()) {
            f64::NAN
        } else if self.ieee && magnitude == self.top() {
            f64::INFINITY
        } else {
            let exponent = (magnitude >> self.fraction) as i32;
            let fraction = magnitude & ((1 << self.fraction) - 1);
            let hidden = if exponent > 0 { 1 << self.fraction } else { 0 };
            let scale = exponent.max(1) - self.bias() - self.fraction as i32;
            (fraction | hidden) as f64 * power_of_two(scale)
        };
        if negative { -value } else { value }
    }

    fn encode(self, value: f64) -> u64 {
        let sign = (value.is_sign_negative() as u64) << (self.exponent + self.fraction);
        if value.is_nan() {
            return sign | self.nan();
        }
        let bits = value.abs().to_bits();
        let exponent = (bits >> 52) as i32 - 1023;
        if exponent > self.bias() + 1 {
            return sign | self.top();
        }
        // significand with its hidden bit; subnormal f64 values are below half of every format's least value
        let significand = (bits & ((1 << 52) - 1)) | 1 << 52;
        let least = 1 - self.bias();
        let shift = 52 - self.fraction + least.saturating_sub(exponent).max(0) as u32;
        if shift > 53 || exponent == -1023 {
            return sign;
        }
        let kept = significand >> shift;
        let rest = significand & ((1 << shift) - 1);
        let half = 1u64 << (shift - 1);
        let up = rest > half || (rest == half && kept & 1 == 1);
        let code = (((exponent - least).max(0) as u64) << self.fraction) + kept + up as u64;
        sign | code.min(self.top())
    }
}

fn power_of_two(exponent: i32) -> f64 {
    // every scale that occurs is a normal f64
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

impl DType {
    /// The number that `bits` (in the low end) stand for; integers beyond 2^53 round.
    pub fn decode(self, bits: u64) -> f64 {
        match (self, Format::of(self)) {
            (DType::F64, _) => f64::from_bits(bits),
            (DType::F32, _) => f32::from_bits(bits as u32) as f64,
            (_, Some(format)) => format.decode(bits),
            _ => match crate::ScalarValue::Bits(self, bits).as_int() {
                Some(v) => v as f64,
                None => bits as f64,
            },
        }
    }

    /// Bits of the nearest value, ties to even. Floats overflow to infinity (f8e4m3, which has none, to NaN);
    /// integers saturate and take NaN as 0.
    pub fn encode(self, value: f64) -> u64 {
        match (self, Format::of(self)) {
            (DType::F64, _) => value.to_bits(),
            (DType::F32, _) => (value as f32).to_bits().into(),
            (DType::Bool, _) => (value != 0.0) as u64,
            (DType::U64, _) => value.round_ties_even() as u64,
            (_, Some(format)) => format.encode(value),
            _ => {
                let bits = self.bits();
                let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
                let (lo, hi) = match (self.is_signed(), bits) {
                    (true, 64) => (i64::MIN, i64::MAX),
                    (true, _) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                    (false, _) => (0, (1i64 << bits) - 1),
                };
                (value.round_ties_even() as i64).clamp(lo, hi) as u64 & mask
            }
        }
    }

    /// Half the distance from 1 to the next larger value; 0 for types that do not round.
    pub const fn unit_roundoff(self) -> f64 {
        match self {
            DType::F64 => f64::EPSILON / 2.0,
            _ => match Format::of(self) {
                Some(f) => 1.0 / (2u64 << f.fraction) as f64,
                None => 0.0,
            },
        }
    }

    /// The smallest positive value; 0 for types that do not round.
    pub fn least_positive(self) -> f64 {
        match Format::of(self) {
            Some(f) => f.decode(1),
            None if self == DType::F64 => f64::from_bits(1),
            None => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: [DType; 4] = [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16];

    #[test]
    fn every_narrow_code_survives() {
        for d in NARROW {
            for bits in 0..1u64 << d.bits() {
                let v = d.decode(bits);
                if v.is_nan() {
                    assert!(d.decode(d.encode(v)).is_nan(), "{d} {bits:#x}");
                } else {
                    assert_eq!(d.encode(v), bits, "{d} {bits:#x} = {v}");
                }
            }
        }
    }

    #[test]
    fn midpoints_round_to_even_and_neighbours_do_not() {
        for d in NARROW {
            let top = 1u64 << (d.bits() - 1);
            for bits in 0..top - 1 {
                let (a, b) = (d.decode(bits), d.decode(bits + 1));
                if !b.is_finite() {
                    continue;
                }
                let middle = (a + b) / 2.0;
                let even = bits + (bits & 1);
                assert_eq!(d.encode(middle), even, "{d} {bits:#x}");
                assert_eq!(d.encode(middle.next_up()), bits + 1, "{d} {bits:#x}");
                assert_eq!(d.encode(middle.next_down()), bits, "{d} {bits:#x}");
                assert_eq!(d.encode(-middle), even | top);
            }
        }
    }

    #[test]
    fn the_generic_codec_agrees_with_hardware_on_f32() {
        let f = Format::of(DType::F32).unwrap();
        let mut x = 1u64;
        for _ in 0..200_000 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // exponents around f32's range, so that every path is met
            let v = f64::from_bits((x >> 2) % (400 << 52) + ((1023 - 200) << 52));
            assert_eq!(f.encode(v), (v as f32).to_bits() as u64, "{v:e}");
            let b = (x >> 32) as u32;
            let w = f32::from_bits(b);
            assert!(f.decode(b as u64) == w as f64 || w.is_nan(), "{b:#x}");
        }
    }

    #[test]
    fn edges() {
        assert_eq!(DType::F8E4M3.decode(0x7e), 448.0);
        assert_eq!(DType::F8E4M3.encode(464.0), 0x7e);
        assert_eq!(DType::F8E4M3.encode(464.0f64.next_up()), 0x7f);
        assert_eq!(DType::F8E4M3.encode(f64::NEG_INFINITY), 0xff);
        assert_eq!(DType::F16.encode(65520.0), 0x7c00);
        assert_eq!(DType::F16.encode(65519.0), 0x7bff);
        assert_eq!(DType::F16.encode(-0.0), 0x8000);
        assert_eq!(DType::BF16.encode(f64::MIN_POSITIVE), 0);
        assert_eq!(DType::I8.encode(127.5), 127);
        assert_eq!(DType::I8.encode(-2.5), 0xfe);
        assert_eq!(DType::U4.encode(99.0), 15);
        assert_eq!(DType::I4.decode(0xf), -1.0);
        assert_eq!(DType::U64.decode(u64::MAX), u64::MAX as f64);
        assert_eq!(DType::U64.encode(u64::MAX as f64), u64::MAX);
        assert_eq!(DType::F16.unit_roundoff(), 2f64.powi(-11));
        assert_eq!(DType::F16.least_positive(), 2f64.powi(-24));
    }
}
