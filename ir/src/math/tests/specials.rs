use super::*;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// In both widths, with the sign of zero.
fn check(f: MathFn, args: &[f64], want: f64) {
    let same = |got: f64| {
        got == want && got.is_sign_negative() == want.is_sign_negative() || want.is_nan() && got.is_nan()
    };
    let narrow: Vec<f32> = args.iter().map(|&x| x as f32).collect();
    let got = f32_of(f, &narrow) as f64;
    assert!(same(got), "f32 {f:?}({args:?}) is {got}, not {want}");
    let got = f64_of(f, args);
    assert!(same(got), "f64 {f:?}({args:?}) is {got}, not {want}");
}

#[test]
fn one_argument() {
    use MathFn::*;
    for f in [Exp, Exp2, Log, Log2, Sqrt, Rsqrt, Rcp, Tanh, Sin, Cos, Erf, Floor, Ceil, Round, Abs] {
        check(f, &[NAN], NAN);
    }
    for (f, cases) in [
        (Exp, &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0)][..]),
        (
            Exp2,
            &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1.0, 2.0), (10.0, 1024.0), (-3.0, 0.125)],
        ),
        (Log, &[(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN)]),
        (
            Log2,
            &[(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (1024.0, 10.0), (0.125, -3.0)],
        ),
        (Sqrt, &[(4.0, 2.0), (0.0, 0.0), (-0.0, -0.0), (-1.0, NAN), (INF, INF)]),
        (Rsqrt, &[(4.0, 0.5), (0.0, INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0)]),
        (Rcp, &[(4.0, 0.25), (0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0)]),
        (Tanh, &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (30.0, 1.0), (-30.0, -1.0)]),
        (Erf, &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (7.0, 1.0), (-7.0, -1.0)]),
        (Sin, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)]),
        (Cos, &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)]),
        (Floor, &[(1.5, 1.0), (-1.5, -2.0), (-0.0, -0.0), (INF, INF)]),
        (Ceil, &[(1.5, 2.0), (-0.5, -0.0), (-INF, -INF)]),
        (Round, &[(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (-2.5, -2.0), (INF, INF)]),
        (Abs, &[(-0.0, 0.0), (-INF, INF)]),
    ] {
        for &(x, want) in cases {
            check(f, &[x], want);
        }
    }
}

#[test]
fn powers_of_two_are_exact() {
    for e in -149..=128 {
        let want = if e == 128 { f32::INFINITY } else { 2f64.powi(e) as f32 };
        assert_eq!(f32_of(MathFn::Exp2, &[e as f32]), want);
        if e < 128 {
            assert_eq!(f32_of(MathFn::Log2, &[want]), e as f32);
        }
    }
    for e in -1074..=1024 {
        let want = if e == 1024 { INF } else { 2f64.powi(e / 2) * 2f64.powi(e - e / 2) };
        assert_eq!(f64_of(MathFn::Exp2, &[e as f64]), want, "2^{e}");
        if e < 1024 {
            assert_eq!(f64_of(MathFn::Log2, &[want]), e as f64);
        }
    }
}

#[test]
fn where_exponentials_overflow_and_vanish() {
    let (e2, e) = (MathFn::Exp2, MathFn::Exp);
    assert!(f32_of(e2, &[128f32.next_down()]).is_finite());
    assert_eq!(f32_of(e2, &[-149.0]), f32::from_bits(1));
    assert_eq!(f32_of(e2, &[(-150f32).next_up()]), f32::from_bits(1));
    assert_eq!(f32_of(e2, &[-150.0]), 0.0, "a tie, to even");
    // ln(2^128) and ln(2^-150) lie between these neighbours
    assert!(f32_of(e, &[88.72283]).is_finite());
    assert_eq!(f32_of(e, &[88.72284]), f32::INFINITY);
    let last = -103.972_08_f32;
    assert_eq!(f32_of(e, &[last]), f32::from_bits(1));
    assert_eq!(f32_of(e, &[last.next_down()]), 0.0);
    assert!(f64_of(e2, &[1024f64.next_down()]).is_finite());
    assert_eq!(f64_of(e2, &[-1074.0]), f64::from_bits(1));
    assert_eq!(f64_of(e2, &[-1075.0]), 0.0);
    assert!(f64_of(e, &[709.782712893384]).is_finite());
    assert_eq!(f64_of(e, &[709.7827128933841]), INF);
    assert_eq!(f64_of(e, &[-745.1332191019411]), f64::from_bits(1));
    assert_eq!(f64_of(e, &[-745.1332191019412]), 0.0);
}

#[test]
fn tiny_arguments_come_back() {
    for x in [f32::from_bits(1), f32::from_bits(77), f32::MIN_POSITIVE, 1e-30] {
        for x in [x, -x] {
            assert_eq!(f32_of(MathFn::Tanh, &[x]), x);
            assert_eq!(f32_of(MathFn::Sin, &[x]), x);
            assert_eq!(f32_of(MathFn::Cos, &[x]), 1.0);
            assert_eq!(f32_of(MathFn::Exp, &[x]), 1.0);
        }
    }
    for x in [f64::from_bits(1), f64::from_bits(77), f64::MIN_POSITIVE, 1e-300] {
        assert_eq!(f64_of(MathFn::Tanh, &[x]), x);
        assert_eq!(f64_of(MathFn::Sin, &[-x]), -x);
    }
}

#[test]
fn pow_follows_ieee_754() {
    let pow = |x: f64, y: f64, want: f64| check(MathFn::Pow, &[x, y], want);
    for x in [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, INF, -INF, NAN] {
        pow(x, 0.0, 1.0);
        pow(x, -0.0, 1.0);
    }
    for y in [0.0, 1.0, -2.5, INF, -INF, NAN] {
        pow(1.0, y, 1.0);
    }
    pow(-1.0, INF, 1.0);
    pow(-1.0, -INF, 1.0);
    pow(-1.0, NAN, NAN);
    pow(NAN, 1.0, NAN);
    pow(2.0, NAN, NAN);
    for odd in [1.0, 3.0, 5.0, 1025.0] {
        pow(0.0, odd, 0.0);
        pow(-0.0, odd, -0.0);
        pow(0.0, -odd, INF);
        pow(-0.0, -odd, -INF);
        pow(-INF, odd, -INF);
        pow(-INF, -odd, -0.0);
    }
    for other in [0.5, 2.0, 2.5, 1024.0, 1e30, INF] {
        pow(0.0, other, 0.0);
        pow(-0.0, other, 0.0);
        pow(0.0, -other, INF);
        pow(-0.0, -other, INF);
        pow(-INF, other, INF);
        pow(-INF, -other, 0.0);
        pow(INF, other, INF);
        pow(INF, -other, 0.0);
    }
    for (x, grows) in [(0.5, false), (-0.5, false), (2.0, true), (-2.0, true), (1e-30, false)] {
        pow(x, INF, if grows { INF } else { 0.0 });
        pow(x, -INF, if grows { 0.0 } else { INF });
    }
    pow(-2.0, 3.0, -8.0);
    pow(-2.0, 2.0, 4.0);
    pow(-2.0, -1.0, -0.5);
    pow(-2.0, 0.5, NAN);
    pow(-8.0, 1.0 / 3.0, NAN);
    pow(2.0, 2000.0, INF);
    pow(-2.0, 2001.0, -INF);
    pow(2.0, -2000.0, 0.0);
    pow(-2.0, -2001.0, -0.0);
    assert_eq!(f32_of(MathFn::Pow, &[2.0, -149.0]), f32::from_bits(1));
    assert_eq!(f64_of(MathFn::Pow, &[2.0, -1074.0]), f64::from_bits(1));
    assert_eq!(f64_of(MathFn::Pow, &[10.0, 22.0]), 1e22);
}

#[test]
fn minimum_maximum_clamp() {
    use MathFn::*;
    check(Min, &[-0.0, 0.0], -0.0);
    check(Min, &[0.0, -0.0], -0.0);
    check(Max, &[-0.0, 0.0], 0.0);
    check(Max, &[0.0, -0.0], 0.0);
    for f in [Min, Max] {
        check(f, &[NAN, 1.0], NAN);
        check(f, &[1.0, NAN], NAN);
    }
    check(Clamp, &[5.0, -1.0, 1.0], 1.0);
    check(Clamp, &[-5.0, -1.0, 1.0], -1.0);
    check(Clamp, &[NAN, -1.0, 1.0], NAN);
    check(Clamp, &[0.5, -1.0, 1.0], 0.5);
}

#[test]
fn huge_arguments_of_sine_and_cosine() {
    // the f64 nearest to a multiple of π/2 (6381956970095103·2^797), where most bits of 2/π are needed
    let x = 6381956970095103.0 * 2f64.powi(797);
    assert!((f64_of(MathFn::Cos, &[x]) / -4.687165924254628e-19 - 1.0).abs() < 3e-16);
    assert!((f64_of(MathFn::Sin, &[1e22]) + 0.8522008497671888).abs() < 1e-15);
    for bits in (0x5000_0000..0x7f80_0000u32).step_by(999_983) {
        let x = f32::from_bits(bits);
        assert!((f32_of(MathFn::Sin, &[x]) as f64 - libm::sin(x as f64)).abs() < 4e-8, "{x:e}");
    }
}
