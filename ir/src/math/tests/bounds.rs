use super::measure::*;
use super::*;

#[test]
fn rows_are_in_order() {
    for (f, row) in MathFn::ALL.iter().zip(&table::ROWS) {
        assert_eq!(*f, row.f);
        assert_eq!(f.has_approx(), row.approx.is_some(), "{f:?}");
        assert_eq!(table::of(*f), row);
    }
}

#[test]
fn f32_on_a_million_arguments() {
    for f in UNARY {
        let (worst, x) = worst_f32(f, (1..=u32::MAX).step_by(4093));
        assert!(worst <= table::of(f).ulp_f32, "{f:?}({x:e}) is off by {worst} ulp");
    }
}

/// Magnitudes between which a function is worth every argument; elsewhere it is trivial or repeats itself.
fn dense(f: MathFn) -> std::ops::Range<f32> {
    match f {
        MathFn::Exp | MathFn::Exp2 => 1e-8..256.0,
        MathFn::Log | MathFn::Log2 => 0.2..5.0,
        MathFn::Tanh => 1e-4..16.0,
        MathFn::Erf => 1e-4..4.5,
        _ => 0.5..2.0,
    }
}

/// Every argument of the dense range, of both signs, and every 257th of all.
#[test]
#[ignore = "two thousand million arguments: minutes in a release build for the host's processor"]
fn deep_f32() {
    for f in UNARY {
        let range = dense(f).start.to_bits()..dense(f).end.to_bits();
        let runs = std::thread::scope(|scope| {
            let jobs = [(0, range.clone()), (1 << 31, range)].map(|(sign, range)| {
                scope.spawn(move || {
                    let sparse = worst_f32(f, (sign..=sign | 0x7fff_ffff).step_by(257));
                    let all = worst_f32(f, range.map(|bits| bits | sign));
                    if all.0 > sparse.0 { all } else { sparse }
                })
            });
            jobs.map(|job| job.join().unwrap())
        });
        for (worst, x) in runs {
            eprintln!("{:6} {worst:.4} ulp at {x:e}", f.name());
            assert!(worst <= table::of(f).ulp_f32, "{f:?}({x:e}) is off by {worst} ulp");
        }
    }
}

/// Where sampling by bits seldom looks: a dense walk over the arguments that kernels have.
#[test]
fn f32_on_usual_arguments() {
    for f in [MathFn::Exp, MathFn::Exp2, MathFn::Tanh, MathFn::Erf, MathFn::Log, MathFn::Log2] {
        for i in 0..100_000u32 {
            let x = (i as f32 - 50_000.0) * (1.0 / 7_507.0);
            let x = if matches!(f, MathFn::Log | MathFn::Log2) { x.abs() } else { x };
            let error = error_f32(f32_of(f, &[x]), reference(f, x as f64, 0.0));
            assert!(error <= table::of(f).ulp_f32, "{f:?}({x:e}) is off by {error} ulp");
        }
    }
}

#[test]
fn pow_f32() {
    let mut rng = Lcg(5);
    let check = |x: f32, y: f32| {
        let error = error_f32(f32_of(MathFn::Pow, &[x, y]), reference(MathFn::Pow, x as f64, y as f64));
        assert!(error <= table::of(MathFn::Pow).ulp_f32, "pow({x:e}, {y:e}) is off by {error} ulp");
    };
    for i in 0..100_000 {
        let x = f32::from_bits(rng.next() as u32);
        // any exponent, one that leads to a finite result, a small integer
        let limit = 150.0 / x.abs().log2().abs().max(1e-6);
        let unit = rng.next() as u32 as f32 / u32::MAX as f32 * 2.0 - 1.0;
        check(x, [f32::from_bits(rng.next() as u32), limit * unit, (rng.next() % 41) as f32 - 20.0][i % 3]);
    }
}

/// Results computed in 1400 bits; the file says how far each lies from the nearest f64.
#[test]
fn f64_against_long_arithmetic() {
    let mut worst = std::collections::BTreeMap::new();
    for line in include_str!("reference_f64.txt").lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let f = MathFn::from_name(words[0]).unwrap();
        let lost: f64 = words[words.len() - 1].parse().unwrap();
        let numbers =
            words[1..words.len() - 1].iter().map(|w| f64::from_bits(u64::from_str_radix(w, 16).unwrap()));
        let numbers: Vec<f64> = numbers.collect();
        let (args, near) = (&numbers[..f.arity()], numbers[f.arity()]);
        let got = f64_of(f, args);
        let error = error_f64(got, near, lost);
        assert!(error <= table::of(f).ulp_f64 + 0.005, "{f:?}({args:?}) is {got:e}, off by {error} ulp");
        let most = worst.entry(f.name()).or_insert((0, 0.0f64));
        *most = (most.0 + 1, most.1.max(error));
    }
    assert!(worst.len() == 10 && worst.values().all(|&(count, _)| count >= 60));
}

/// Many more arguments against a libm that is itself within one place.
#[test]
fn f64_against_libm() {
    let mut rng = Lcg(6);
    for f in UNARY {
        for i in 0..30_000 {
            let x = match i % 3 {
                0 => f64::from_bits(rng.next()),
                1 => (rng.next() as i64 as f64) * 2f64.powi(-60),
                _ => 1.0 + (rng.next() as i64 as f64) * 2f64.powi(-66),
            };
            let (got, want) = (f64_of(f, &[x]), reference(f, x, 0.0));
            if want.is_nan() || want.is_infinite() {
                assert!(got == want || want.is_nan() && got.is_nan(), "{f:?}({x:e}): {got:e}, not {want:e}");
                continue;
            }
            let error = error_f64(got, want, 0.0);
            assert!(error <= table::of(f).ulp_f64 + 1.0, "{f:?}({x:e}): {got:e}, not {want:e}, {error} ulp");
        }
    }
    for i in 0..50_000 {
        let x = if i % 2 == 0 {
            f64::from_bits(rng.next())
        } else {
            1.0 + (rng.next() as i64 as f64) * 2f64.powi(-64)
        };
        let limit = 1070.0 / x.abs().log2().abs().max(1e-12);
        let y = limit * (rng.next() as u32 as f64 / u32::MAX as f64 * 2.0 - 1.0);
        let (got, want) = (f64_of(MathFn::Pow, &[x, y]), libm::pow(x, y));
        let same = got == want || want.is_nan() && got.is_nan();
        assert!(same || error_f64(got, want, 0.0) <= 2.0, "pow({x:e}, {y:e}): {got:e}, not {want:e}");
    }
}
