use super::*;
use proptest::prelude::*;

fn canonical(elem: Elem, x: u64) -> u64 {
    if elem == Elem::BOOL {
        return x & 1;
    }
    let narrower = bitcast_slice(Elem::D(DType::U64), elem, &[x]);
    narrower.map_or(x, |v| v[0])
}

fn same(elem: Elem, a: u64, b: u64) -> bool {
    a == b || is_nan(elem, a) && is_nan(elem, b)
}

proptest! {
    #[test]
    fn slices_do_what_scalars_do(seed: u64, len in prop::sample::select(vec![0usize, 1, 2, 7, 33]), splat in 0..3) {
        let mut rng = Lcg(seed);
        for elem in all_elems() {
            let mut values = |n: usize| -> Vec<u64> {
                (0..n).map(|_| canonical(elem, if rng.next().is_multiple_of(4) { rng.next() % 9 } else { rng.next() })).collect()
            };
            let a = values(if splat == 1 { 1 } else { len });
            let b = values(if splat == 2 { 1 } else { len });
            let at = |v: &[u64], i: usize| if v.len() == 1 { v[0] } else { v[i] };
            for op in Bin::ALL {
                let (mut out, mut faults) = (vec![9; len], Vec::new());
                binary_slice(op, elem, &a, &b, &mut out, &mut faults);
                let result = if op.is_comparison() { Elem::BOOL } else { elem };
                let mut want_faults = Vec::new();
                for (i, &got) in out.iter().enumerate() {
                    match binary(op, elem, at(&a, i), at(&b, i)) {
                        Ok(want) => prop_assert!(same(result, got, want)),
                        Err(error) => {
                            prop_assert_eq!(got, 0);
                            want_faults.push(Fault { at: i, error });
                        }
                    }
                }
                prop_assert_eq!(faults, want_faults);
            }
            for op in Un::ALL {
                let (mut out, mut faults) = (vec![9; len], Vec::new());
                unary_slice(op, elem, &a, &mut out, &mut faults);
                for (i, &got) in out.iter().enumerate() {
                    let want = unary(op, elem, at(&a, i));
                    prop_assert!(same(elem, got, want.unwrap_or(0)));
                    prop_assert_eq!(faults.iter().any(|f| f.at == i), want.is_err());
                }
            }
            for to in all_elems() {
                let (mut out, mut faults) = (vec![9; len], Vec::new());
                convert_slice(elem, to, &a, Rounding::Nearest, &mut out, &mut faults);
                for (i, &got) in out.iter().enumerate() {
                    let want = convert(elem, to, at(&a, i), Rounding::Nearest);
                    prop_assert!(same(to, got, want.unwrap_or(0)));
                    prop_assert_eq!(faults.iter().any(|f| f.at == i), want.is_err());
                }
            }
        }
    }

    #[test]
    fn folds_go_in_order(seed: u64) {
        let mut rng = Lcg(seed);
        for elem in all_elems() {
            let values: Vec<u64> = (0..9).map(|_| canonical(elem, rng.next())).collect();
            for op in [Bin::Add, Bin::Mul, Bin::Min, Bin::Max, Bin::And, Bin::Or, Bin::Xor] {
                let Some(id) = identity(op, elem) else { continue };
                let want = values.iter().try_fold(id, |acc, &v| binary(op, elem, acc, v));
                match (fold_slice(op, elem, id, &values), want) {
                    (Ok(got), Ok(want)) => prop_assert!(same(elem, got, want)),
                    (got, want) => prop_assert_eq!(got.map_err(|f| f.error), want),
                }
            }
        }
    }
}

#[test]
fn products_are_rounded_before_the_sum() {
    for (elem, want) in [(Elem::F32, 0.0), (Elem::D(DType::F16), 0.0), (Elem::D(DType::F64), 0.0)] {
        // (1 + e)² - (1 + 2e) is e², which only a fused operation sees
        let e = if elem == Elem::F32 {
            2f64.powi(-23)
        } else {
            2f64.powi(if bits(elem) == 16 { -10 } else { -52 })
        };
        let (a, c) = (from_f64(elem, 1.0 + e).unwrap(), from_f64(elem, -(1.0 + 2.0 * e)).unwrap());
        let mut out = [c, c, c];
        axpy_slice(elem, a, &[a, a, a], &mut out).unwrap();
        assert_eq!(out.map(|x| to_f64(elem, x)), [want; 3], "{elem}");
        let (mut fused, mut faults) = ([0; 3], Vec::new());
        fma_slice(elem, &[a], &[a, a, a], &[c], &mut fused, &mut faults);
        assert!(faults.is_empty());
        assert_eq!(fused.map(|x| to_f64(elem, x)), [e * e; 3], "{elem}");
    }
}

#[test]
fn integers_wrap_in_dot_products() {
    let i8s = Elem::D(DType::I8);
    let mut out = [100, -100i64 as u64];
    axpy_slice(i8s, 10, &[10, 3], &mut out).unwrap();
    assert_eq!(out, [-56i64 as u64, -70i64 as u64]);
    let mut faults = Vec::new();
    fma_slice(i8s, &[1], &[1], &[1], &mut [0], &mut faults);
    assert_eq!(faults[0].error, NumError::Undefined { elem: i8s });
}
