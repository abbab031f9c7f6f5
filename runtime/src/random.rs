//! Seeded inputs, the same on every machine.
//!
//! Element `i` depends on the seed and `i` alone: Philox 4x32-10 (Salmon et al.) with the seed as key and `i / 2` as
//! counter gives 128 bits for two elements. A uniform number is the top 53 bits of 64; a pair of normal numbers comes
//! from Box and Muller's transform in f64 with portable logarithm and cosine; then one rounding to the type.

use crate::error::{Error, ErrorKind, Result};
use crate::host::HostTensor;
use pantile_abi::{DType, DTypeKind, Packing};

/// Philox 4x32 with ten rounds.
pub fn philox(key: u64, counter: u128) -> [u32; 4] {
    const MULTIPLY: (u32, u32) = (0xD251_1F53, 0xCD9E_8D57);
    const BUMP: (u32, u32) = (0x9E37_79B9, 0xBB67_AE85);
    let mut c = [counter as u32, (counter >> 32) as u32, (counter >> 64) as u32, (counter >> 96) as u32];
    let mut k = (key as u32, (key >> 32) as u32);
    for _ in 0..10 {
        let p0 = MULTIPLY.0 as u64 * c[0] as u64;
        let p1 = MULTIPLY.1 as u64 * c[2] as u64;
        c = [(p1 >> 32) as u32 ^ c[1] ^ k.0, p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k.1, p0 as u32];
        k = (k.0.wrapping_add(BUMP.0), k.1.wrapping_add(BUMP.1));
    }
    c
}

/// 64 random bits for element `i`.
fn word(seed: u64, i: usize) -> u64 {
    let block = philox(seed, (i / 2) as u128);
    let half = 2 * (i % 2);
    block[half] as u64 | (block[half + 1] as u64) << 32
}

/// In [0, 1), a multiple of 2^-53.
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Mean 0, variance 1.
    Normal,
    /// In `lo..hi`.
    Uniform {
        lo: f64,
        hi: f64,
    },
    /// Whole numbers in `lo..hi`; `None`: what suits the type (-8..8, 0..16 if unsigned, 0..2 for bool).
    Int {
        range: Option<(i64, i64)>,
    },
    Zeros,
    /// 0, 1, 2, …
    Iota,
}

/// How to make a tensor's elements: a distribution, then `· scale + shift`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    pub distribution: Distribution,
    pub seed: u64,
    pub scale: f64,
    pub shift: f64,
}

impl Recipe {
    pub fn new(distribution: Distribution, seed: u64) -> Recipe {
        Recipe { distribution, seed, scale: 1.0, shift: 0.0 }
    }

    /// Element `i` before it is rounded to the type.
    pub fn value(&self, dtype: DType, i: usize) -> f64 {
        let v = match self.distribution {
            Distribution::Normal => normal(self.seed, i),
            Distribution::Uniform { lo, hi } => {
                let v = lo + unit(word(self.seed, i)) * (hi - lo);
                // the product may round up to the end that is excluded
                if v < hi || lo >= hi { v } else { hi.next_down() }
            }
            Distribution::Int { range } => {
                let (lo, hi) = range.unwrap_or_else(|| small_range(dtype));
                let width = (hi as i128 - lo as i128).max(1) as u128;
                let offset = (word(self.seed, i) as u128 * width) >> 64;
                (lo as i128 + offset as i128) as f64
            }
            Distribution::Zeros => 0.0,
            Distribution::Iota => i as f64,
        };
        v * self.scale + self.shift
    }

    pub fn make(&self, dtype: DType, shape: &[usize], packed: Option<Packing>) -> Result<HostTensor> {
        let mut t = HostTensor::zeros(dtype, shape, packed)?;
        for i in 0..t.len() {
            t.set_bits(i, dtype.encode(self.value(dtype, i)));
        }
        Ok(t)
    }
}

fn small_range(dtype: DType) -> (i64, i64) {
    match dtype.kind() {
        DTypeKind::Bool => (0, 2),
        DTypeKind::Uint => (0, 16),
        _ => (-8, 8),
    }
}

/// The pair of elements `2j`, `2j + 1` shares a radius and an angle.
fn normal(seed: u64, i: usize) -> f64 {
    let (a, b) = (word(seed, i & !1), word(seed, i | 1));
    // in (0, 1], so that the logarithm is finite
    let radius = (-2.0 * libm::log(1.0 - unit(a))).sqrt();
    let angle = std::f64::consts::TAU * unit(b);
    radius * if i.is_multiple_of(2) { libm::cos(angle) } else { libm::sin(angle) }
}

/// A seed for an input that was given none: made of its name, so that two inputs differ.
pub fn seed_of_name(name: &str) -> u64 {
    let hash = blake3::hash(name.as_bytes());
    u64::from_le_bytes(std::array::from_fn(|i| hash.as_bytes()[i])) >> 32
}

/// An input as written on the command line: `normal:128x64`, `normal:128x64:7`, `uniform:33:lo=-1:hi=1`,
/// `int:1000:seed=3:lo=0:hi=10`, `normal:7x33:1:scale=3:shift=1000`, `zeros:4x4`, `iota:10`. A scalar's shape is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    pub recipe: Recipe,
    pub shape: Vec<usize>,
}

const FORMS: &str = "write normal:SHAPE[:SEED], uniform:SHAPE[:SEED][:lo=A:hi=B], int:SHAPE[:SEED][:lo=A:hi=B], \
                     zeros:SHAPE or iota:SHAPE, with SHAPE as 128x64; :scale=S and :shift=T may follow";

impl InputSpec {
    /// `None` where the text does not begin like a description of an input.
    pub fn parse(text: &str, name: &str) -> Option<Result<InputSpec>> {
        let (kind, rest) = text.split_once(':')?;
        let distribution = match kind {
            "normal" => Distribution::Normal,
            "uniform" => Distribution::Uniform { lo: 0.0, hi: 1.0 },
            "int" => Distribution::Int { range: None },
            "zeros" => Distribution::Zeros,
            "iota" => Distribution::Iota,
            _ => return None,
        };
        let mut recipe = Recipe::new(distribution, seed_of_name(name));
        let parsed = Self::parse_rest(&mut recipe, rest).map(|shape| InputSpec { recipe, shape });
        Some(
            parsed.map_err(|what| {
                Error::new(ErrorKind::InputSpec, format!("`{name}={text}`: {what}")).help(FORMS)
            }),
        )
    }

    fn parse_rest(recipe: &mut Recipe, rest: &str) -> std::result::Result<Vec<usize>, String> {
        let mut fields = rest.split(':');
        let shape = parse_shape(fields.next().unwrap_or(""))?;
        let (mut lo, mut hi) = (None, None);
        for (i, field) in fields.enumerate() {
            match field.split_once('=') {
                None if i == 0 => recipe.seed = seed(field)?,
                Some(("seed", v)) => recipe.seed = seed(v)?,
                Some(("scale", v)) => recipe.scale = number(v)?,
                Some(("shift", v)) => recipe.shift = number(v)?,
                Some(("lo", v)) => lo = Some(v),
                Some(("hi", v)) => hi = Some(v),
                _ => return Err(format!("`{field}` is not understood")),
            }
        }
        Self::range(recipe, lo, hi)?;
        Ok(shape)
    }

    fn range(recipe: &mut Recipe, lo: Option<&str>, hi: Option<&str>) -> std::result::Result<(), String> {
        if lo.is_none() && hi.is_none() {
            return Ok(());
        }
        match &mut recipe.distribution {
            Distribution::Uniform { lo: a, hi: b } => {
                *a = lo.map_or(Ok(*a), number)?;
                *b = hi.map_or(Ok(*b), number)?;
                if *a < *b { Ok(()) } else { Err(format!("the range {a}..{b} is empty")) }
            }
            Distribution::Int { range } => {
                let whole = |v: &str| v.parse::<i64>().map_err(|_| format!("`{v}` is no whole number"));
                let (a, b) = (lo.map_or(Ok(0), whole)?, hi.map_or(Ok(16), whole)?);
                *range = Some((a, b));
                if a < b { Ok(()) } else { Err(format!("the range {a}..{b} is empty")) }
            }
            _ => Err("only uniform and int have a range".into()),
        }
    }
}

/// `128x64`, or `128,64`.
pub fn parse_shape(text: &str) -> std::result::Result<Vec<usize>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(['x', ',']).map(|e| e.parse().map_err(|_| format!("`{text}` is no shape"))).collect()
}

fn seed(text: &str) -> std::result::Result<u64, String> {
    text.parse().map_err(|_| format!("the seed `{text}` is no whole number"))
}

fn number(text: &str) -> std::result::Result<f64, String> {
    text.parse().ok().filter(|v: &f64| v.is_finite()).ok_or_else(|| format!("`{text}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_values() {
        assert_eq!(philox(0, 0), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(philox(u64::MAX, u128::MAX), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let counter = 0x03707344_13198a2e_85a308d3_243f6a88u128;
        assert_eq!(philox(0x299f31d0_a4093822, counter), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
    }

    #[test]
    fn values_are_pinned() {
        let r = Recipe::new(Distribution::Normal, 7);
        let bits: Vec<u64> = (0..4).map(|i| r.value(DType::F64, i).to_bits()).collect();
        assert_eq!(bits, PINNED, "{bits:#x?}");
    }

    /// Must never change: saved results depend on it.
    const PINNED: [u64; 4] =
        [0x3ff6_e164_bc12_be7e, 0x3feb_51a0_0ebf_5b24, 0x3ffb_8106_8728_35d0, 0xbfdd_d57f_b6e2_954e];

    #[test]
    fn moments() {
        let n = 100_000;
        let of = |d| (0..n).map(|i| Recipe::new(d, 1).value(DType::F64, i)).collect::<Vec<f64>>();
        let mean = |v: &[f64]| v.iter().sum::<f64>() / n as f64;
        let var = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>() / n as f64 - mean(v).powi(2);
        let v = of(Distribution::Normal);
        assert!(mean(&v).abs() < 0.02 && (var(&v) - 1.0).abs() < 0.02);
        let v = of(Distribution::Uniform { lo: -1.0, hi: 3.0 });
        assert!((mean(&v) - 1.0).abs() < 0.02 && (var(&v) - 16.0 / 12.0).abs() < 0.02);
        assert!(v.iter().all(|x| (-1.0..3.0).contains(x)));
        let v = of(Distribution::Int { range: Some((-3, 4)) });
        for k in -3..4 {
            let share = v.iter().filter(|&&x| x == k as f64).count() as f64 / n as f64;
            assert!((share - 1.0 / 7.0).abs() < 0.01, "{k}: {share}");
        }
        assert!(v.iter().all(|x| (-3.0..=3.0).contains(x)));
    }

    #[test]
    fn elements_do_not_depend_on_the_shape() {
        let r = Recipe::new(Distribution::Normal, 5);
        let small = r.make(DType::F32, &[7], None).unwrap();
        let large = r.make(DType::F32, &[3, 11], None).unwrap();
        assert_eq!(small.to_f64()[..], large.to_f64()[..7]);
    }

    #[test]
    fn specs() {
        let ok = |text: &str| InputSpec::parse(text, "A").unwrap().unwrap();
        assert_eq!(ok("normal:128x64:7").recipe, Recipe::new(Distribution::Normal, 7));
        assert_eq!(ok("normal:128x64:7").shape, [128, 64]);
        assert_eq!(ok("zeros:0").shape, [0]);
        assert_eq!(ok("iota:2,3").shape, [2, 3]);
        assert_ne!(
            ok("normal:3").recipe.seed,
            InputSpec::parse("normal:3", "B").unwrap().unwrap().recipe.seed
        );
        let r = ok("int:9:seed=3:lo=0:hi=10:scale=0.5:shift=-1").recipe;
        assert_eq!(r.distribution, Distribution::Int { range: Some((0, 10)) });
        assert_eq!((r.seed, r.scale, r.shift), (3, 0.5, -1.0));
        assert!(InputSpec::parse("file.npy", "A").is_none());
        for bad in [
            "normal:12y4",
            "normal:4:x",
            "normal:4:1:2",
            "uniform:4:lo=2:hi=1",
            "normal:4:lo=1",
            "int:4:lo=0.5",
        ] {
            let e = InputSpec::parse(bad, "A").unwrap().unwrap_err();
            assert_eq!(e.kind, ErrorKind::InputSpec, "{bad}");
        }
    }

    #[test]
    fn integers_stay_in_their_type() {
        for d in [DType::I4, DType::U4, DType::U8, DType::Bool] {
            let t = Recipe::new(Distribution::Int { range: None }, 1).make(d, &[64], None).unwrap();
            let values = t.to_f64();
            let distinct = values.iter().map(|v| *v as i64).collect::<std::collections::BTreeSet<_>>();
            assert!(distinct.len() > 1, "{d}");
            assert_eq!(*distinct.first().unwrap() < 0, d.is_signed(), "{d}");
        }
    }
}
