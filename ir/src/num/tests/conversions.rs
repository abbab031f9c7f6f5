use super::*;
use Rounding::{Nearest, Saturate};

fn narrow_ints() -> impl Iterator<Item = (DType, i128)> {
    [DType::I4, DType::U4, DType::I8, DType::U8, DType::I16, DType::U16].into_iter().flat_map(|d| {
        let (lo, hi) = int_range(d.into()).unwrap();
        (lo..=hi).map(move |v| (d, v))
    })
}

#[test]
fn narrow_floats_to_integers() {
    for from in NARROW {
        for x in 0..1u64 << from.bits() {
            let v = to_f64(from.into(), x);
            // nearest even from the floor, which is exact: no narrow value has more than 11 bits
            let low = v.floor();
            let up = v - low > 0.5 || v - low == 0.5 && low % 2.0 != 0.0;
            let rounded = low + up as u8 as f64;
            for to in all_elems().filter(|e| e.is_integer()) {
                let (lo, hi) = int_range(to).unwrap();
                let inside =
                    v.is_finite() && (lo as f64..=hi as f64).contains(&rounded) && rounded as i128 <= hi;
                let want = if inside { Ok(rounded as i128 as u64) } else { Err(NumError::OutOfRange { to }) };
                assert_eq!(convert(from.into(), to, x, Nearest), want, "{from} {v} to {to}");
                let clamped = if v.is_nan() {
                    0
                } else if inside {
                    rounded as i128
                } else if v < 0.0 {
                    lo
                } else {
                    hi
                };
                assert_eq!(convert(from.into(), to, x, Saturate), Ok(clamped as u64), "{from} {v} to {to}");
            }
        }
    }
}

#[test]
fn floats_at_the_edges_of_wide_integers() {
    let f64s = Elem::D(DType::F64);
    for to in all_elems().filter(|e| e.is_integer()) {
        let (lo, hi) = int_range(to).unwrap();
        let at = |v: f64, mode| convert(f64s, to, v.to_bits(), mode);
        let outside = Err(NumError::OutOfRange { to });
        let end = hi as f64 + if hi < 1 << 53 { 1.0 } else { 0.0 }; // the first integer outside
        assert_eq!(at(end, Nearest), outside, "{to}");
        assert_eq!(at(end, Saturate), Ok(hi as u64));
        assert_eq!(at(lo as f64, Nearest), Ok(lo as u64));
        assert_eq!(at(lo as f64 - 0.5, Nearest), Ok(lo as u64), "ties to the even end");
        assert_eq!(at((lo as f64).next_down() - 0.75, Nearest), outside);
        assert_eq!(at(f64::NAN, Nearest), outside);
        assert_eq!(at(f64::NAN, Saturate), Ok(0));
        assert_eq!(at(f64::INFINITY, Saturate), Ok(hi as u64));
        assert_eq!(at(f64::NEG_INFINITY, Saturate), Ok(lo as u64));
        assert_eq!((at(0.5, Nearest), at(1.5, Nearest), at(2.5, Nearest)), (Ok(0), Ok(2), Ok(2)));
    }
}

#[test]
fn integers_to_integers() {
    for (from, v) in narrow_ints() {
        for to in all_elems().filter(|e| e.is_integer()) {
            let (lo, hi) = int_range(to).unwrap();
            let span = hi - lo + 1;
            let wrapped = (v - lo).rem_euclid(span) + lo;
            assert_eq!(convert(from.into(), to, v as u64, Nearest), Ok(wrapped as u64), "{from} {v} to {to}");
            assert_eq!(convert(from.into(), to, v as u64, Saturate), Ok(v.clamp(lo, hi) as u64));
        }
    }
    let u64s = Elem::D(DType::U64);
    let index = Elem::Index;
    assert_eq!(convert(u64s, index, 1 << 63, Nearest), Err(NumError::OutOfRange { to: index }));
    assert_eq!(convert(u64s, index, 1 << 63, Saturate), Ok(i64::MAX as u64));
    assert_eq!(convert(index, DType::I32.into(), 1 << 31, Nearest), Ok(i32::MIN as i64 as u64));
    assert_eq!(convert(index, u64s, -1i64 as u64, Nearest), Ok(u64::MAX));
    assert_eq!(convert(index, u64s, -1i64 as u64, Saturate), Ok(0));
}

#[test]
fn integers_to_narrow_floats() {
    let mut rng = Lcg(3);
    let wide = (0..20_000).flat_map(|_| {
        // long runs of ones and zeros sit next to ties
        let x = rng.next() >> (rng.next() % 64);
        let tie = (x | 1) << (rng.next() % 60);
        [x, tie, tie.wrapping_add(1), tie.wrapping_sub(1)]
    });
    let wide: Vec<u64> = wide.collect();
    for to in NARROW {
        let t = Table::new(to);
        let nearest = |v: u128| {
            // midpoints below 2^64 with a fraction compare by their floor
            t.nearest(|m| {
                if m >= 2e38 { Ordering::Less } else { v.cmp(&(m as u128)).then(0f64.total_cmp(&m.fract())) }
            })
        };
        for (from, v) in narrow_ints() {
            let sign = if v < 0 { t.sign() } else { 0 };
            let want = sign | nearest(v.unsigned_abs());
            let got = convert(from.into(), to.into(), v as u64, Nearest).unwrap();
            assert!(t.same(got, want), "{from} {v} to {to}: {got:#x}, not {want:#x}");
        }
        for &x in &wide {
            let got = convert(DType::U64.into(), to.into(), x, Nearest).unwrap();
            assert!(t.same(got, nearest(x as u128)), "u64 {x} to {to}");
            let signed = x as i64;
            let sign = if signed < 0 { t.sign() } else { 0 };
            let got = convert(DType::I64.into(), to.into(), x, Nearest).unwrap();
            assert!(t.same(got, sign | nearest(signed.unsigned_abs() as u128)), "i64 {signed} to {to}");
        }
    }
}

#[test]
fn floats_to_narrow_floats() {
    let mut rng = Lcg(4);
    for to in NARROW {
        let t = Table::new(to);
        for from in NARROW {
            for x in 0..1u64 << from.bits() {
                let v = to_f64(from.into(), x);
                let got = convert(from.into(), to.into(), x, Nearest).unwrap();
                let want = if v.is_infinite() && to == DType::F8E4M3 { 0x7f } else { t.round(v, 0.0) };
                assert!(t.same(got, want), "{from} {v} to {to}: {got:#x}, not {want:#x}");
            }
        }
        // every value, every tie, and the f64s beside them
        for code in 0..(1u64 << (to.bits() - 1)) - 1 {
            let (a, b) = (t.value(code), t.value(code + 1));
            if !a.is_finite() || !b.is_finite() {
                continue;
            }
            let between = a + (b - a) * (rng.next() as u32 as f64 / u32::MAX as f64);
            for v in [a, (a + b) / 2.0, between].into_iter().flat_map(|v| [v.next_down(), v, v.next_up()]) {
                for v in [v, -v] {
                    let got = from_f64(to.into(), v).unwrap();
                    assert!(t.same(got, t.round(v, 0.0)), "{v:e} to {to}: {got:#x}");
                }
            }
        }
    }
}

#[test]
fn overflow_of_floats() {
    let to = |d: DType, v: f64, mode| {
        to_f64(d.into(), convert(DType::F64.into(), d.into(), v.to_bits(), mode).unwrap())
    };
    for (d, max, tie) in [
        (DType::F8E4M3, 448.0, 464.0),
        (DType::F8E5M2, 57344.0, 61440.0),
        (DType::F16, 65504.0, 65520.0),
        (DType::F32, f32::MAX as f64, f32::MAX as f64 + 2f64.powi(103)),
    ] {
        let ties_to_max = d == DType::F8E4M3;
        let over = |v: f64| if ties_to_max { v.is_nan() } else { v == f64::INFINITY };
        assert_eq!(to(d, tie.next_down(), Nearest), max);
        assert!(if ties_to_max { to(d, tie, Nearest) == max } else { over(to(d, tie, Nearest)) }, "{d}");
        assert!(over(to(d, tie.next_up(), Nearest)));
        assert!(over(to(d, f64::INFINITY, Nearest)));
        assert_eq!(to(d, f64::INFINITY, Saturate), max);
        assert_eq!(to(d, -1e300, Saturate), -max);
        assert!(to(d, f64::NAN, Saturate).is_nan());
    }
}

#[test]
fn bools_convert_by_zero_or_not() {
    for elem in all_elems() {
        let one = from_int(elem, 1).unwrap();
        assert_eq!(convert(Elem::BOOL, elem, 1, Nearest), Ok(one), "{elem}");
        assert_eq!(convert(Elem::BOOL, elem, 0, Nearest), Ok(0));
        assert_eq!(convert(elem, Elem::BOOL, one, Nearest), Ok(1));
        assert_eq!(convert(elem, Elem::BOOL, 0, Nearest), Ok(0));
        if elem.is_float() {
            assert_eq!(convert(elem, Elem::BOOL, from_f64(elem, f64::NAN).unwrap(), Nearest), Ok(1));
            assert_eq!(convert(elem, Elem::BOOL, from_f64(elem, -0.0).unwrap(), Nearest), Ok(0));
        }
    }
}

#[test]
fn bits_reinterpreted() {
    let d = Elem::D;
    assert_eq!(bitcast(d(DType::F32), d(DType::I32), 0xbf80_0000), Some(0xffff_ffff_bf80_0000));
    assert_eq!(bitcast(d(DType::I32), d(DType::F32), 0xffff_ffff_bf80_0000), Some(0xbf80_0000));
    assert_eq!(bitcast(d(DType::I4), d(DType::U4), -1i64 as u64), Some(15));
    assert_eq!(bitcast(d(DType::F32), d(DType::F64), 0), None);
    assert_eq!(bitcast(d(DType::U8), Elem::BOOL, 2), None);
    assert_eq!(bitcast_slice(d(DType::U8), d(DType::U4), &[0xa5, 0x3f]), Some(vec![5, 10, 15, 3]));
    assert_eq!(bitcast_slice(d(DType::I4), d(DType::I8), &[-1i64 as u64, 7]), Some(vec![0x7f]));
    assert_eq!(bitcast_slice(d(DType::I8), d(DType::I4), &[0x7f]), Some(vec![-1i64 as u64, 7]));
    assert_eq!(bitcast_slice(d(DType::U8), d(DType::U32), &[1, 2, 3]), None);
    assert_eq!(bitcast_slice(d(DType::U8), d(DType::U32), &[1, 2, 3, 0x84]), Some(vec![0x8403_0201]));
}

#[test]
fn exact_integers() {
    assert_eq!(from_int(Elem::F32, 1 << 24), Some(0x4b80_0000));
    assert_eq!(from_int(Elem::F32, (1 << 24) + 1), None);
    assert_eq!(from_int(DType::F8E4M3.into(), 448), Some(0x7e));
    assert_eq!(from_int(DType::F8E4M3.into(), 480), None);
    assert_eq!(from_int(DType::U64.into(), 1 << 64), None);
    assert_eq!(from_int(DType::I8.into(), -128), Some(-128i64 as u64));
    assert_eq!(to_i64(DType::U64.into(), u64::MAX), None);
    assert_eq!(to_i64(DType::I8.into(), -128i64 as u64), Some(-128));
}
