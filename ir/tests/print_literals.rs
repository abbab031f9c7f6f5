//! Every number that the printer writes reads back as the same value, wherever a number may stand.

mod elab_support;

use elab_support::*;
use pantile_ir::DType;
use pantile_ir::builder::{Exprs, ProgramBuilder};
use pantile_ir::num;
use pantile_ir::program::*;
use pantile_ir::span::Span;

/// Bits at the ends of a type's range and around what is special in it.
fn values(elem: Elem) -> Vec<u64> {
    let Elem::D(d) = elem else { return [0, 1, -1, i64::MAX, i64::MIN].map(|n| n as u64).into() };
    let width = d.bits();
    let mask = u64::MAX >> (64 - width);
    let mut all: Vec<u64> = match d {
        DType::Bool => vec![0, 1],
        _ if d.is_int() && d.is_signed() => {
            let low = u64::MAX << (width - 1);
            vec![0, 1, 7, u64::MAX, !low, low, low + 1]
        }
        _ => {
            let top = 1 << (width - 1);
            vec![0, 1, 2, 3, 7, top, top | 1, mask, mask - 1, mask >> 1, mask >> 2, (mask >> 1) - 1, mask / 3]
        }
    };
    if d.is_float() {
        let special =
            [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0, 0.1, 1e-5, -448.0, 57344.0, 16777216.0];
        all.extend(special.into_iter().filter_map(|x| num::from_f64(elem, x).ok()));
        all.extend((0..width).map(|bit| 1 << bit));
    }
    all.retain(|&b| pantile_ir::typing::literal_fits(elem, b));
    all
}

fn elems() -> impl Iterator<Item = Elem> {
    DType::ALL.into_iter().map(Elem::D).chain([Elem::Index])
}

fn lets(p: &Program) -> Vec<(Elem, u64)> {
    let k = p.kernels.iter().next().unwrap().1;
    let value = |s: &Stmt| match s.kind {
        StmtKind::Let { value, .. } => match k.body.exprs[value] {
            Expr::Const { elem, bits } => Some((elem, bits)),
            Expr::Splat { value, .. } => match k.body.exprs[value] {
                Expr::Const { elem, bits } => Some((elem, bits)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    k.stmts.iter().filter_map(value).collect()
}

#[test]
fn numbers_read_back_bit_for_bit() {
    for elem in elems() {
        let mut p = ProgramBuilder::new("reference");
        let mut k = p.kernel("k");
        let n = k.dim("N").unwrap();
        let o = k.tensor("O", Mode::Out, DType::I32, &[n]).unwrap();
        k.grid(&[(n, "i")]).unwrap();
        let mut wanted = Vec::new();
        for bits in values(elem) {
            let c = k.constant_at(elem, bits, Span::default()).unwrap();
            k.let_("x", c).unwrap();
            let tile = k.full(c, &[3]).unwrap();
            k.let_("t", tile).unwrap();
            wanted.extend([(elem, num::one_nan(elem, bits)); 2]);
        }
        let (zero, three) = (k.c_index(0).unwrap(), k.c_i32(3).unwrap());
        k.store(Mem::Tensor(o), &[zero], three).unwrap();
        let id = p.add_kernel(k).unwrap();
        p.set_lone(id).unwrap();
        let p = p.finish().unwrap().0;
        assert_eq!(lets(&p), wanted, "{elem}");
        round_trip(&p);
        assert_eq!(lets(&reread(&p)), wanted, "{elem}");
    }
}

#[test]
fn infinities_and_nans_stand_where_a_number_may() {
    for t in ["f16", "bf16", "f32", "f64"] {
        let text = format!(
            "combine pick(a: {t}, b: {t}) -> {t} identity nan {{ if isnan(a) {{ b }} else {{ a }} }}
            kernel k(A: {t}[N], O: out {t}[N], s: {t} ) {{
                grid 1 as i
                var a: {t} = nan
                let b: {t} = -inf
                let c = full {t}[8](nan)
                let d = A[0 +: 8] pad -inf
                let e = A[9] or nan
                let g = {t}(nan)
                let h = reduce(pick, where(d > -inf, d, nan))
                if a > nan {{ a = -nan }}
                a = max(s, inf)
                a = max(nan, -1.0)
                a = min(1.0, nan)
                O[0 +: 8] = c + d + (a + b + e + g + h)
            }}"
        );
        let p = program(&text, "k");
        pantile_ir::verify::verify(&p, &arch("reference")).unwrap_or_else(|d| panic!("{d:?}"));
        let printed = round_trip(&p);
        assert_eq!(printed.matches("a = nan").count(), 3, "{printed}");
    }
    let text = "kernel k(O: out f8e4m3[N]) { grid 1 as i
        O[0 +: 8] = full f8e4m3[8](nan) }";
    assert!(round_trip(&program(text, "k")).contains("full f8e4m3[8](nan)"));
    let text = "kernel k(O: out f8e5m2[N]) { grid 1 as i
        O[0 +: 8] = full f8e5m2[8](-inf) }";
    assert!(round_trip(&program(text, "k")).contains("full f8e5m2[8](-inf)"));
}
