use super::*;
use proptest::prelude::*;

const INTS: [DType; 10] = [
    DType::I4,
    DType::U4,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
];

/// The value of `ty` congruent to `v`, or an index overflow.
fn wrap(elem: Elem, v: i128) -> Result<u64, NumError> {
    let (lo, hi) = int_range(elem).unwrap();
    if elem == Elem::Index && !(lo..=hi).contains(&v) {
        return Err(NumError::IndexOverflow);
    }
    let span = hi - lo + 1;
    Ok(((v - lo).rem_euclid(span) + lo) as u64)
}

/// What an operation means, over mathematical integers.
fn meaning(op: Bin, elem: Elem, a: i128, b: i128) -> Result<u64, NumError> {
    let floor = |a: i128, b: i128| {
        (a - a.rem_euclid(b.abs())) / b.abs() * b.signum() - {
            // a = q·|b| + r; for a negative divisor round -q - r/|b| down
            (b < 0 && a.rem_euclid(b.abs()) != 0) as i128
        }
    };
    let width = bits(elem);
    let shift = |b: i128| {
        if (0..width as i128).contains(&b) {
            Ok(b as u32)
        } else {
            Err(NumError::Shift { amount: b.min(i64::MAX as i128) as i64, width })
        }
    };
    match op {
        Bin::Div | Bin::Rem | Bin::CeilDiv if b == 0 => Err(NumError::DivisionByZero),
        Bin::Add => wrap(elem, a + b),
        Bin::Sub => wrap(elem, a - b),
        Bin::Mul => wrap(elem, a.wrapping_mul(b)),
        Bin::Div => wrap(elem, floor(a, b)),
        Bin::Rem => wrap(elem, a - floor(a, b) * b),
        Bin::CeilDiv => wrap(elem, -floor(-a, b)),
        Bin::Min => wrap(elem, a.min(b)),
        Bin::Max => wrap(elem, a.max(b)),
        Bin::And => wrap(elem, a & b),
        Bin::Or => wrap(elem, a | b),
        Bin::Xor => wrap(elem, a ^ b),
        Bin::Shl => shift(b).and_then(|n| wrap(elem, a << n)),
        Bin::Shr => shift(b).and_then(|n| wrap(elem, a >> n)),
        Bin::Eq => Ok((a == b) as u64),
        Bin::Ne => Ok((a != b) as u64),
        Bin::Lt => Ok((a < b) as u64),
        Bin::Le => Ok((a <= b) as u64),
        Bin::Gt => Ok((a > b) as u64),
        Bin::Ge => Ok((a >= b) as u64),
    }
}

/// The integer of canonical bits.
fn value(elem: Elem, x: u64) -> i128 {
    if int_range(elem).unwrap().0 < 0 { x as i64 as i128 } else { x as i128 }
}

fn check(elem: Elem, a: u64, b: u64) {
    for op in Bin::ALL {
        let (x, y) = (value(elem, a), value(elem, b));
        assert_eq!(binary(op, elem, a, b), meaning(op, elem, x, y), "{elem}: {x} {op:?} {y}");
    }
    let x = value(elem, a);
    assert_eq!(unary(Un::Neg, elem, a), wrap(elem, -x), "{elem}: -{x}");
    assert_eq!(unary(Un::Abs, elem, a), wrap(elem, x.abs()), "{elem}: |{x}|");
    assert_eq!(unary(Un::Not, elem, a), wrap(elem, !x), "{elem}: !{x}");
}

#[test]
fn four_and_eight_bits_exhaustively() {
    for d in [DType::I4, DType::U4, DType::I8, DType::U8] {
        let (lo, hi) = int_range(d.into()).unwrap();
        for (a, b) in (lo..=hi).flat_map(|a| (lo..=hi).map(move |b| (a, b))) {
            check(d.into(), a as u64, b as u64);
        }
    }
}

#[test]
fn edges_of_wide_integers() {
    for elem in INTS.map(Elem::D).into_iter().chain([Elem::Index]) {
        let (lo, hi) = int_range(elem).unwrap();
        let edges = [lo, lo + 1, -2, -1, 0, 1, 2, 3, bits(elem) as i128 - 1, bits(elem) as i128, hi - 1, hi];
        let edges = edges.map(|v| v.clamp(lo, hi));
        for (a, b) in edges.into_iter().flat_map(|a| edges.map(|b| (a, b))) {
            check(elem, a as u64, b as u64);
        }
    }
}

proptest! {
    #[test]
    fn wide_integers(a: u64, b: u64, narrow in 0u32..64, which in 0usize..11) {
        let elem = INTS.get(which).map_or(Elem::Index, |&d| Elem::D(d));
        let canonical = |x: u64| bitcast_slice(Elem::D(DType::U64), elem, &[x]).map_or(x, |v| v[0]);
        check(elem, canonical(a), canonical(b >> narrow));
        check(elem, canonical(a), narrow as u64 & 7);
    }
}

#[test]
fn bools() {
    let b = Elem::BOOL;
    for (x, y) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        assert_eq!(binary(Bin::And, b, x, y), Ok(x & y));
        assert_eq!(binary(Bin::Or, b, x, y), Ok(x | y));
        assert_eq!(binary(Bin::Xor, b, x, y), Ok(x ^ y));
        assert_eq!(binary(Bin::Eq, b, x, y), Ok((x == y) as u64));
        assert_eq!(unary(Un::Not, b, x), Ok(1 - x));
        assert_eq!(binary(Bin::Add, b, x, y), Err(NumError::Undefined { elem: b }));
    }
}
