//! A second implementation of the primitives, four lanes wide, as a back end would have: all lanes go every way and
//! nothing is skipped. Its results must be the scalar ones, bit for bit.

use super::measure::UNARY;
use super::*;

struct Four;

fn map<T: Copy, U>(a: [T; 4], f: impl Fn(T) -> U) -> [U; 4] {
    a.map(f)
}

fn zip<T: Copy, S: Copy, U>(a: [T; 4], b: [S; 4], f: impl Fn(T, S) -> U) -> [U; 4] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

macro_rules! delegate {
    ($t:ident $i:ident; $($bin:ident)*; $($un:ident)*; $($cmp:ident)*; $($mask:ident)*; $($int:ident)*; $($shift:ident)*) => {
        impl Float<$t> for Four {
            type V = [$t; 4];
            type I = [$i; 4];
            type M = [bool; 4];
            fn splat(&self, x: $t) -> [$t; 4] { [x; 4] }
            fn int_splat(&self, x: i64) -> [$i; 4] { [x as $i; 4] }
            $(fn $bin(&self, a: [$t; 4], b: [$t; 4]) -> [$t; 4] { zip(a, b, |a, b| Float::<$t>::$bin(&Scalar, a, b)) })*
            $(fn $un(&self, a: [$t; 4]) -> [$t; 4] { map(a, |a| Float::<$t>::$un(&Scalar, a)) })*
            $(fn $cmp(&self, a: [$t; 4], b: [$t; 4]) -> [bool; 4] { zip(a, b, |a, b| Float::<$t>::$cmp(&Scalar, a, b)) })*
            $(fn $mask(&self, a: [bool; 4], b: [bool; 4]) -> [bool; 4] { zip(a, b, |a, b| Float::<$t>::$mask(&Scalar, a, b)) })*
            $(fn $int(&self, a: [$i; 4], b: [$i; 4]) -> [$i; 4] { zip(a, b, |a, b| Float::<$t>::$int(&Scalar, a, b)) })*
            $(fn $shift(&self, a: [$i; 4], n: u32) -> [$i; 4] { map(a, |a| Float::<$t>::$shift(&Scalar, a, n)) })*
            fn fma(&self, a: [$t; 4], b: [$t; 4], c: [$t; 4]) -> [$t; 4] {
                std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
            }
            fn mask_not(&self, a: [bool; 4]) -> [bool; 4] { map(a, |a| !a) }
            fn select(&self, m: [bool; 4], yes: [$t; 4], no: [$t; 4]) -> [$t; 4] {
                std::array::from_fn(|i| if m[i] { yes[i] } else { no[i] })
            }
            fn bits_of(&self, a: [$t; 4]) -> [$i; 4] { map(a, |a| a.to_bits() as $i) }
            fn of_bits(&self, a: [$i; 4]) -> [$t; 4] { map(a, |a| $t::from_bits(a as _)) }
            fn int_eq(&self, a: [$i; 4], b: [$i; 4]) -> [bool; 4] { zip(a, b, |a, b| a == b) }
            fn int_to_float(&self, a: [$i; 4]) -> [$t; 4] { map(a, |a| a as $t) }
        }
    };
}

macro_rules! both {
    ($($list:tt)*) => {
        delegate!(f32 i32; $($list)*);
        delegate!(f64 i64; $($list)*);
    };
}
both!(add sub mul div minimum maximum; sqrt neg abs floor ceil round_even; lt eq; mask_and mask_or;
    int_add int_sub int_and int_or int_xor; int_shl int_shr);

impl Lanes for Four {
    fn widen(&self, a: [f32; 4]) -> [f64; 4] {
        map(a, |a| a as f64)
    }
    fn narrow(&self, a: [f64; 4]) -> [f32; 4] {
        map(a, |a| a as f32)
    }
}

fn same_f32(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn same_f64(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn vectors_give_the_scalar_bits() {
    let mut rng = Lcg(9);
    for f in UNARY.into_iter().chain([MathFn::Pow]) {
        for _ in 0..3_000 {
            // half of the lanes of any size, half usual, so that lanes differ in their way
            let mut draw = |i: usize| {
                let bits = rng.next();
                if i.is_multiple_of(2) { f64::from_bits(bits) } else { (bits as i64 as f64) * 2f64.powi(-60) }
            };
            let x: [f64; 4] = std::array::from_fn(&mut draw);
            let y: [f64; 4] = std::array::from_fn(&mut draw);
            let args = [x, y];
            let wide = emit_f64(&Four, f, &args[..f.arity()]).unwrap();
            for i in 0..4 {
                let one = f64_of(f, &[x[i], y[i]][..f.arity()]);
                assert!(same_f64(wide[i], one), "{f:?}({:e}, {:e}): {:e}, not {one:e}", x[i], y[i], wide[i]);
            }
            let to_f32 = |v: [f64; 4], high: bool| {
                v.map(|v| if high { f32::from_bits((v.to_bits() >> 32) as u32) } else { v as f32 })
            };
            for high in [false, true] {
                let args = [to_f32(x, high), to_f32(y, high)];
                let wide = emit_f32(&Four, f, &args[..f.arity()]).unwrap();
                for i in 0..4 {
                    let one = f32_of(f, &[args[0][i], args[1][i]][..f.arity()]);
                    assert!(same_f32(wide[i], one), "{f:?}({:e}): {:e}, not {one:e}", args[0][i], wide[i]);
                }
            }
        }
    }
}

#[test]
fn fused_narrow_sums_on_vectors() {
    let mut rng = Lcg(10);
    for _ in 0..3_000 {
        let mut draw =
            || -> [f32; 4] { std::array::from_fn(|_| f32::from_bits((rng.next() as u32) & 0xffff_0000)) };
        let (a, b, c) = (draw(), draw(), draw());
        let wide = fma_to_odd(&Four, a, b, c);
        for i in 0..4 {
            assert!(same_f32(wide[i], fma_to_odd(&Scalar, a[i], b[i], c[i])));
        }
    }
}
