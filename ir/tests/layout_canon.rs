//! Canonical form, equality and inversion against enumeration.

mod layout_support;

use layout_support::{Rng, factors, fragment, holdings, indices, place, places};
use pantile_ir::layout::{Axis, Digit, Dim, Layout, Source, Symbols, parse_layout};
use std::collections::HashMap;

fn layout(text: &str) -> Layout {
    parse_layout(text, &Symbols::default()).unwrap_or_else(|e| panic!("{text}: {}", e.message)).layout
}

/// A dim with random digits, overlapping or not, sometimes guarded.
fn any_dim(rng: &mut Rng) -> Dim {
    let extent = rng.pick(&[1, 6, 8, 12, 16, 24, 30]);
    let digits: Vec<Digit> = factors(rng, extent)
        .into_iter()
        .map(|e| Digit::new(e, rng.pick(&[Axis::Reg, Axis::Thr]), rng.pick(&[0, 1, 2, 3, 4, 6, 8, 12])))
        .collect();
    let mut dim = Dim::new("n", digits);
    if rng.below(3) == 0 {
        dim.guard = Some(1 + rng.below(extent));
        dim.guard = dim.guard.filter(|g| *g < extent);
    }
    dim
}

#[test]
fn equal_functions_have_equal_canonical_forms_and_only_they() {
    let mut rng = Rng(2);
    let mut seen: HashMap<Vec<(u64, u64)>, Dim> = HashMap::new();
    let mut forms: HashMap<Dim, Vec<(u64, u64)>> = HashMap::new();
    let mut repeats = 0;
    for _ in 0..200_000 {
        let dim = any_dim(&mut rng);
        let l = Layout::new(vec![dim.clone()]);
        let function: Vec<(u64, u64)> =
            (0..dim.extent()).map(|i| place(&l, &[i])).map(|at| (at[Axis::Reg], at[Axis::Thr])).collect();
        let canon = dim.canon();
        let old = seen.entry(function.clone()).or_insert_with(|| canon.clone());
        assert_eq!(*old, canon, "one function, two forms: {dim:?}");
        repeats += usize::from(forms.contains_key(&canon));
        let known = forms.entry(canon).or_insert_with(|| function.clone());
        assert_eq!(*known, function, "one form, two functions: {dim:?}");
    }
    assert!(repeats > 50_000, "the sample must hold many equal functions, not {repeats}");
}

#[test]
fn canonical_form_keeps_the_function_and_is_a_fixed_point() {
    let mut rng = Rng(3);
    for _ in 0..3000 {
        let copies = rng.pick(&[1, 2, 6]);
        let l = fragment(&mut rng, &[("m", 12), ("n", 10)], copies);
        let c = l.canon();
        assert_eq!(c, c.canon());
        for index in indices(&l) {
            let (mut a, mut b) = (places(&l, &index), places(&c, &index));
            a.sort();
            b.sort();
            assert_eq!(a, b, "{l} became {c}");
        }
    }
}

#[test]
fn accumulator_and_operand_are_one_function() {
    for n in (16..=256).step_by(16) {
        let acc = layout(&format!("m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: {}@reg*4, 4@thr, 2@reg", n / 8));
        let a =
            layout(&format!("m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: {}@reg*8, 2@reg*4, 4@thr, 2@reg", n / 16));
        assert_ne!(acc, a, "they are spelled differently");
        assert!(acc.same(&a), "n = {n}");
    }
    let acc = layout("m: 8@thr*4 ; n: 4@thr, 2@reg");
    assert!(!acc.same(&layout("m: 8@thr*4 ; n: 2@reg, 4@thr")));
    assert!(acc.same(&layout("n: 4@thr, 2@reg ; m: 8@thr*4")), "the order of dims is a way of writing");
}

#[test]
fn inversion_finds_the_element_at_every_place() {
    let mut rng = Rng(5);
    for _ in 0..500 {
        let copies = rng.pick(&[1, 3, 4]);
        let l = fragment(&mut rng, &[("m", 12), ("n", 8), ("k", 5)], copies);
        let sizes = l.bijective(&[Axis::Thr, Axis::Reg]).expect("fragments tile their axes");
        let held = holdings(&l);
        assert_eq!(held.len() as u64, sizes[0] * sizes[1]);
        let inverse = [l.invert(Axis::Thr, 1).expect("tiled"), l.invert(Axis::Reg, 1).expect("tiled")];
        for ((t, r), index) in held {
            let mut found = vec![0; 3];
            for (digits, at) in inverse.iter().zip([t, r]) {
                for i in digits {
                    if let Source::Dim { dim, place } = i.source {
                        found[dim] += at / i.stride % i.extent * place;
                    }
                }
            }
            assert_eq!(found, index, "{l} at thread {t}, register {r}");
        }
    }
}

#[test]
fn gaps_and_overlaps_are_not_invertible() {
    let gap = layout("m: 8@thr*2").invert(Axis::Thr, 1).expect_err("every second thread is idle");
    assert_eq!((gap.stride, gap.wanted), (2, 1));
    assert!(layout("m: 8@thr ; n: 4@thr*4").invert(Axis::Thr, 1).is_err(), "two digits share places");
    assert!(layout("m: 8@mem*4 ; n: 2@mem*2").invert(Axis::Mem, 2).is_ok(), "elements of two bytes");
    assert!(layout("m: 8@mem*4 ; n: 2@mem*2").invert(Axis::Mem, 1).is_err());
}

#[test]
fn reduction_leaves_copies_and_compact_registers() {
    let acc = layout("m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: 16@reg*4, 4@thr, 2@reg");
    assert!(acc.drop_dim("n").same(&layout("m: 4@thr*32, 2@reg, 8@thr*4 ; rep 4@thr")));
    let squad = layout("m: 4@reg*16, 16@thr*8 ; n: 16@reg, 8@thr");
    assert!(squad.drop_dim("n").same(&layout("m: 4@reg, 16@thr*8 ; rep 8@thr")));
    assert!(squad.drop_dim("m").same(&layout("n: 16@reg, 8@thr ; rep 16@thr*8")));
}

#[test]
fn guards_that_never_bite_disappear() {
    let same = |a: &str, b: &str| assert!(layout(a).same(&layout(b)), "{a} and {b}");
    same("n: 2@thr*64, 64@reg < 64", "n: 64@reg");
    same("n: 13@thr, 8@reg < 104", "n: 13@thr, 8@reg");
    same("n: 16@thr, 8@reg < 100", "n: 13@thr, 8@reg < 100");
    assert!(!layout("n: 13@thr, 8@reg < 100").same(&layout("n: 13@thr, 8@reg")));
}
