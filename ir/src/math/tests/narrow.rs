use super::measure::{UNARY, reference};
use super::*;

const NARROW: [DType; 4] = [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16];

/// All arguments: the result is the reference rounded once, unless that lies within 2^-11 of a tie.
#[test]
fn every_narrow_argument() {
    for d in NARROW {
        let elem = Elem::D(d);
        for f in UNARY {
            for x in 0..1u64 << d.bits() {
                let want = reference(f, num::to_f64(elem, x), 0.0);
                let got = eval(f, elem, &[x]).unwrap();
                let slack = want.abs() * 2f64.powi(-22);
                let ends = [want - slack, want, want + slack].map(|v| num::from_f64(elem, v).unwrap());
                let nan = num::is_nan(elem, got) && ends.iter().any(|&e| num::is_nan(elem, e));
                assert!(nan || ends.contains(&got), "{d} {f:?} {x:#x}: {got:#x}, not one of {ends:x?}");
            }
        }
    }
}

#[test]
fn sums_round_once() {
    let mut rng = Lcg(8);
    let mut differ = 0;
    for _ in 0..200_000 {
        // an f64 on or right beside a tie of bf16, and something far smaller
        let fraction = (rng.next() & 0xff) << 44;
        let a = f64::from_bits(fraction | (1023 + rng.next() % 28 - 12) << 52);
        let b = a * 2f64.powi(-(rng.next() as i32 & 63) - 55) * if rng.next() & 1 == 0 { 1.0 } else { -1.0 };
        for elem in [Elem::D(DType::BF16), Elem::D(DType::F16)] {
            let odd = sum_to_odd(&Scalar, a, b);
            let got = num::from_f64(elem, odd as f64).unwrap();
            // the sum in f64 moved one place towards the exact sum never crosses a tie that the sum does not
            let sum = a + b;
            let lost = (a - sum) + b;
            let beside = match lost.partial_cmp(&0.0) {
                Some(std::cmp::Ordering::Greater) => sum.next_up(),
                Some(std::cmp::Ordering::Less) => sum.next_down(),
                _ => sum,
            };
            assert_eq!(got, num::from_f64(elem, beside).unwrap(), "{a:e} + {b:e}");
            differ += (got != num::from_f64(elem, sum as f32 as f64).unwrap()) as u32;
        }
    }
    assert!(differ > 0, "the sample has no case where rounding twice differs");
}

#[test]
fn sums_that_are_not_finite() {
    for (a, b) in
        [(f64::INFINITY, 1.0), (f64::NAN, 1.0), (1.0, f64::NEG_INFINITY), (f64::INFINITY, f64::NEG_INFINITY)]
    {
        let (got, want) = (sum_to_odd(&Scalar, a, b), (a + b) as f32);
        assert!(got == want || got.is_nan() && want.is_nan());
    }
    assert_eq!(sum_to_odd(&Scalar, 1e300, 0.0), f32::MAX, "rounding to odd never reaches infinity");
    assert_eq!(sum_to_odd(&Scalar, -1e-300, 0.0), -f32::from_bits(1));
    assert_eq!(sum_to_odd(&Scalar, -0.0, -0.0).to_bits(), (-0.0f32).to_bits());
}

#[test]
fn functions_on_bits() {
    let f16 = Elem::D(DType::F16);
    let i8s = Elem::D(DType::I8);
    let v = |x: f64| num::from_f64(f16, x).unwrap();
    assert_eq!(eval(MathFn::Exp2, f16, &[v(-24.0)]), Ok(1));
    assert_eq!(eval(MathFn::Exp2, f16, &[v(16.0)]), Ok(0x7c00));
    assert_eq!(eval(MathFn::IsNan, f16, &[v(f64::NAN)]), Ok(1));
    assert_eq!(eval(MathFn::IsInf, f16, &[v(f64::INFINITY)]), Ok(1));
    assert_eq!(eval(MathFn::IsNan, f16, &[v(1.0)]), Ok(0));
    assert_eq!(eval(MathFn::Pow, f16, &[v(2.0), v(0.5)]), Ok(v(2f64.sqrt())));
    assert_eq!(eval(MathFn::Min, i8s, &[5, -3i64 as u64]), Ok(-3i64 as u64));
    assert_eq!(eval(MathFn::Clamp, i8s, &[100, -3i64 as u64, 7]), Ok(7));
    assert_eq!(eval(MathFn::Abs, i8s, &[-3i64 as u64]), Ok(3));
    assert_eq!(eval(MathFn::CeilDiv, Elem::Index, &[7, 2]), Ok(4));
    assert_eq!(eval(MathFn::CeilDiv, Elem::Index, &[7, 0]), Err(num::NumError::DivisionByZero));
    for (f, elem) in
        [(MathFn::Exp, i8s), (MathFn::IsNan, i8s), (MathFn::CeilDiv, f16), (MathFn::Fma, Elem::Index)]
    {
        let args = [1, 1, 1];
        assert_eq!(eval(f, elem, &args[..f.arity()]), Err(num::NumError::Undefined { elem }), "{f:?}");
    }
    let (mut out, mut faults) = ([9; 3], Vec::new());
    eval_slice(MathFn::CeilDiv, Elem::Index, &[&[7], &[1, 0, 3]], &mut out, &mut faults);
    assert_eq!((out, faults.len(), faults[0].at), ([7, 0, 3], 1, 1));
}
