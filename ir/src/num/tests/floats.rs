use super::*;
use crate::program::{BinOp, UnOp};

fn bin(op: BinOp, d: DType, a: u64, b: u64) -> u64 {
    binary(op.into(), Elem::D(d), a, b).unwrap()
}

#[test]
fn every_code_decodes_to_its_value() {
    for d in NARROW {
        let table = Table::new(d);
        for bits in 0..1u64 << d.bits() {
            let (got, want) = (to_f64(d.into(), bits), table.value(bits));
            assert!(
                got == want && got.is_sign_negative() == want.is_sign_negative()
                    || want.is_nan() && got.is_nan()
            );
        }
    }
}

#[test]
fn half_agrees() {
    let mut rng = Lcg(7);
    for high in 0..1u64 << 16 {
        for low in [0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff, rng.next() & 0xffff] {
            let x = f32::from_bits((high << 16 | low) as u32);
            let f16 = from_f64(DType::F16.into(), x as f64).unwrap();
            let bf16 = from_f64(DType::BF16.into(), x as f64).unwrap();
            if x.is_nan() {
                assert!(is_nan(DType::F16.into(), f16) && is_nan(DType::BF16.into(), bf16));
            } else {
                assert_eq!(f16, half::f16::from_f32(x).to_bits() as u64, "{x:e}");
                assert_eq!(bf16, half::bf16::from_f32(x).to_bits() as u64, "{x:e}");
            }
        }
    }
}

/// Correctly rounded result of an operation on two narrow floats.
fn reference(t: &Table, op: BinOp, a: f64, b: f64) -> u64 {
    match op {
        BinOp::Add => {
            let (hi, lo) = two_sum(a, b);
            t.round(hi, lo)
        }
        BinOp::Sub => {
            let (hi, lo) = two_sum(a, -b);
            t.round(hi, lo)
        }
        BinOp::Mul => t.round(a * b, 0.0),
        _ => {
            let q = a / b;
            if !q.is_finite() || q == 0.0 || !b.is_finite() {
                return t.round(q, 0.0);
            }
            let sign = if q < 0.0 { t.sign() } else { 0 };
            // a/b against a midpoint m is a against m·b, which f64 holds exactly
            sign | t.nearest(|m| a.abs().partial_cmp(&(m * b.abs())).unwrap())
        }
    }
}

const ARITHMETIC: [BinOp; 4] = [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Div];

#[test]
fn f8_arithmetic_is_correctly_rounded() {
    for d in [DType::F8E4M3, DType::F8E5M2] {
        let t = Table::new(d);
        for (a, b) in (0..256).flat_map(|a| (0..256).map(move |b| (a, b))) {
            for op in ARITHMETIC {
                let want = reference(&t, op, t.value(a), t.value(b));
                let got = bin(op, d, a, b);
                assert!(t.same(got, want), "{d} {a:#x} {op:?} {b:#x}: {got:#x}, not {want:#x}");
            }
        }
    }
}

#[test]
fn f16_and_bf16_arithmetic_is_correctly_rounded() {
    let mut rng = Lcg(1);
    for d in [DType::F16, DType::BF16] {
        let t = Table::new(d);
        for a in 0..1u64 << 16 {
            // anything, and a neighbour in magnitude, where cancellation and ties are
            let near = (a & !0xff).wrapping_add(rng.next() & 0xfff) & 0xffff;
            for b in [rng.next() & 0xffff, near, near ^ 0x8000] {
                for op in ARITHMETIC {
                    let want = reference(&t, op, t.value(a), t.value(b));
                    let got = bin(op, d, a, b);
                    assert!(t.same(got, want), "{d} {a:#x} {op:?} {b:#x}: {got:#x}, not {want:#x}");
                }
            }
        }
    }
}

#[test]
fn narrow_fma_rounds_once() {
    let mut rng = Lcg(2);
    let mut twice = 0;
    for d in NARROW {
        let t = Table::new(d);
        let mask = (1u64 << d.bits()) - 1;
        for _ in 0..400_000 {
            let (a, b) = (rng.next() & mask, rng.next() & mask);
            let (x, y) = (t.value(a), t.value(b));
            // c of any size, or close to the product
            let c = if rng.next().is_multiple_of(2) {
                rng.next() & mask
            } else {
                t.round(-x * y, 0.0) ^ (rng.next() % 3)
            };
            let z = t.value(c);
            let product = x * y;
            let (hi, lo) = two_sum(product, z);
            let want = t.round(hi, lo);
            let got = fma(d.into(), a, b, c).unwrap();
            assert!(t.same(got, want), "{d} {a:#x} * {b:#x} + {c:#x}: {got:#x}, not {want:#x}");
            let naive = from_f64(d.into(), (x as f32).mul_add(y as f32, z as f32) as f64).unwrap();
            twice += !t.same(naive, want) as u32;
        }
    }
    assert!(twice > 0, "the sample has no case where rounding twice differs");
    // a tie of bf16 broken by an addend far below
    let one_and_a_bit = from_f64(DType::BF16.into(), 1.0 + 1.0 / 128.0).unwrap();
    let half_step = from_f64(DType::BF16.into(), 1.0 + 3.0 / 128.0).unwrap();
    let tiny = from_f64(DType::BF16.into(), 1e-30).unwrap();
    let t = Table::new(DType::BF16);
    let exact = t.value(one_and_a_bit) * t.value(half_step);
    assert_eq!(fma(DType::BF16.into(), one_and_a_bit, half_step, tiny).unwrap(), t.round(exact, 1e-30));
}

#[test]
fn minimum_and_maximum() {
    for d in [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16, DType::F32, DType::F64] {
        let e = Elem::D(d);
        let v = |x: f64| from_f64(e, x).unwrap();
        for (a, b, min, max) in [(1.0, 2.0, 1.0, 2.0), (-0.0, 0.0, -0.0, 0.0), (-3.0, -0.0, -3.0, -0.0)] {
            for (a, b) in [(a, b), (b, a)] {
                assert_eq!(binary(Bin::Min, e, v(a), v(b)).unwrap(), v(min), "{d}");
                assert_eq!(binary(Bin::Max, e, v(a), v(b)).unwrap(), v(max), "{d}");
            }
        }
        for op in [Bin::Min, Bin::Max] {
            for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::NAN, f64::NEG_INFINITY)] {
                assert!(is_nan(e, binary(op, e, v(a), v(b)).unwrap()));
            }
        }
    }
}

#[test]
fn comparisons_with_nan_are_false_but_not_equal_is_true() {
    for d in [DType::F8E4M3, DType::F16, DType::F32, DType::F64] {
        let nan = from_f64(d.into(), f64::NAN).unwrap();
        let one = from_f64(d.into(), 1.0).unwrap();
        for (a, b) in [(nan, one), (one, nan), (nan, nan)] {
            for op in [BinOp::Eq, BinOp::Lt, BinOp::Le, BinOp::Gt, BinOp::Ge] {
                assert_eq!(bin(op, d, a, b), 0);
            }
            assert_eq!(bin(BinOp::Ne, d, a, b), 1);
        }
        let zero = from_f64(d.into(), 0.0).unwrap();
        let minus = unary(UnOp::Neg.into(), d.into(), zero).unwrap();
        assert_ne!(zero, minus);
        assert_eq!(bin(BinOp::Eq, d, zero, minus), 1);
    }
}

#[test]
fn signs() {
    for d in NARROW.into_iter().chain([DType::F32, DType::F64]) {
        for x in [0.0, 1.5, f64::INFINITY] {
            let (Ok(plus), Ok(minus)) = (from_f64(d.into(), x), from_f64(d.into(), -x)) else { panic!() };
            if is_nan(d.into(), plus) {
                continue;
            }
            assert_eq!(unary(Un::Neg, d.into(), plus), Ok(minus));
            assert_eq!(unary(Un::Abs, d.into(), minus), Ok(plus));
        }
        assert_eq!(unary(Un::Not, d.into(), 0), Err(NumError::Undefined { elem: d.into() }));
        let one = from_f64(d.into(), 1.0).unwrap();
        assert_eq!(binary(Bin::Rem, d.into(), one, one), Err(NumError::Undefined { elem: d.into() }));
    }
}

#[test]
fn identities_change_nothing() {
    for elem in all_elems() {
        for op in [Bin::Add, Bin::Mul, Bin::Min, Bin::Max, Bin::And, Bin::Or, Bin::Xor] {
            let Some(id) = identity(op, elem) else {
                let other = if elem.is_float() { op as u8 >= Bin::And as u8 } else { elem == Elem::BOOL };
                assert!(other, "{op:?} of {elem}");
                continue;
            };
            for x in [0, 1, 2, 3, 100] {
                if let Some(x) = from_int(elem, x) {
                    assert_eq!(binary(op, elem, x, id), Ok(x), "{op:?} of {elem}");
                }
            }
            if let Some((lo, hi)) = int_range(elem) {
                for x in [lo as u64, hi as u64] {
                    assert_eq!(binary(op, elem, id, x), Ok(x), "{op:?} of {elem}");
                }
            }
        }
    }
}

/// The runtime reads and writes elements without this crate; both must mean the same bits.
#[test]
fn the_runtime_agrees() {
    let mut rng = Lcg(11);
    for d in NARROW {
        for x in 0..1u64 << d.bits() {
            let (here, there) = (to_f64(d.into(), x), d.decode(x));
            assert!(here.to_bits() == there.to_bits() || here.is_nan() && there.is_nan(), "{d} {x:#x}");
            // halfway to the next value, and beside it
            let tie = (here + to_f64(d.into(), x ^ 1)) / 2.0;
            for v in [here, tie, tie.next_up(), tie.next_down(), f64::from_bits(rng.next())] {
                let (here, there) = (from_f64(d.into(), v).unwrap(), d.encode(v));
                assert!(here == there || v.is_nan() && is_nan(d.into(), there), "{v:e} to {d}");
            }
        }
    }
}
