//! Text form, templates, covers and pictures.

mod layout_support;

use layout_support::{Rng, fragment};
use pantile_ir::layout::{
    Axis, Digit, Dim, Layout, Shared, Symbols, Xor, contiguous, cover, cover_layout, draw, explain,
    fragment_text, parse, parse_layout, svg, tile_text, unify,
};
use proptest::prelude::*;

fn tile(text: &str) -> Shared {
    parse_layout(text, &Symbols::default()).unwrap_or_else(|e| panic!("{text}: {}", e.message))
}

fn fault(text: &str) -> (String, String) {
    let e = parse_layout(text, &Symbols::default()).expect_err(text);
    (text[e.at.clone()].to_string(), e.message)
}

#[test]
fn printing_and_reading_are_inverse() {
    let mut rng = Rng(41);
    for _ in 0..2000 {
        let copies = rng.pick(&[1, 4]);
        let mut layout = fragment(&mut rng, &[("m", 24), ("n", 1), ("k", 10)], copies);
        layout.dims[0].guard = (rng.below(2) == 0).then_some(23);
        if rng.below(2) == 0 {
            layout.offset[Axis::Mem] = 64;
            layout.offset[Axis::Thr] = 3;
        }
        let xor = (rng.below(2) == 0).then_some(Xor::new(3, 4, 3));
        let shared = Shared { layout, xor, align: rng.pick(&[1, 1024]) };
        assert_eq!(tile(&shared.to_string()), shared);
    }
}

#[test]
fn symbols_take_values() {
    let symbols = Symbols::new([("N", 64), ("K", 32), ("bits", 16), ("E", 2)]);
    let bound = parse_layout("n: N/8@reg*(K/4), 8@thr*4 ; k: K*bits/128@reg*E, 4@thr, E@reg", &symbols)
        .expect("bound");
    assert_eq!(bound.layout.to_string(), "n: 8@reg*8, 8@thr*4 ; k: 4@reg*2, 4@thr, 2@reg");
    assert_eq!(tile("n: N/8@reg*4, 4@thr, 2@reg ; with N = 24").layout.size(Axis::Reg), 10);
    let template = parse("m: M/8@mem*SBO, 8@mem*128 ; k: K/(1024/bits)@mem*CH, 1024/bits@mem*(bits/8)")
        .expect("template");
    assert_eq!(template.dims[1].digits[0].extent.to_string(), "K/(1024/bits)");
}

#[test]
fn mistakes_are_pointed_at() {
    let at = |text: &str, piece: &str, words: &str| {
        let (found, message) = fault(text);
        assert_eq!(found, piece, "{message}");
        assert!(message.contains(words), "{message}");
    };
    at("m: 8@thrd", "thrd", "no axis is called `thrd`");
    at("m: 8@thr*4 m: 2@reg", "m:", "cannot stand here");
    at("m: 8@thr ; m: 2@reg", "m", "written twice");
    at("m: N/8@reg", "N/8@reg", "`N` has no value");
    at("m: 7/2@reg", "7/2@reg", "2 does not divide 7");
    at("m: 8@thr, 1", "1", "stands alone");
    at("m: 8@mem*2 ; align 12", "align 12", "no power of two");
    at("m: 8@mem*2 ; xor<3,4,2>", "xor<3,4,2>", "no swizzle");
    at("m: 0@reg", "0@reg", "holds nothing");
    at("m: 4@reg < 5", "m: 4@reg < 5", "more than the 4 indices");
    at("", "", "a dim is missing");
    at("rep 4@thr", "rep 4@thr", "needs a dim");
    at("m: 99999999999999999999@reg", "99999999999999999999", "too large");
    at("m: 1000000@mem*1000000000", "m: 1000000@mem*1000000000", "too large");
    at("m: 1000000@reg ; rep 1000000@thr, 1000@cta", "m: 1000000@reg", "too large");
    at("m: ((((((((((((((((((1@reg", "(1", "nested too deeply");
    at("m: ", "", "the text ends");
    at("m: 8 thr", "thr", "`@` and an axis are missing");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[mnk0-9:;,@*/()< a-z=]{0,60}|[a-z]: ?[0-9]{1,3}@(reg|thr|mem)(\\*[0-9]{1,3})?( ?[,;<] ?.{0,20})?") {
        if let Ok(page) = explain(&text) {
            prop_assert!(page.contains("canonical"));
        }
    }
}

/// The values found for the unknowns, or the reason.
fn solve(template: &str, shared: &str, names: &[&str]) -> Result<Vec<Option<u64>>, String> {
    let template = parse(template).expect("template");
    let found =
        unify(&template, &tile(shared), &Symbols::new([("bits", 16)]), &[("P".into(), vec![64, 128, 256])]);
    found.map(|s| names.iter().map(|n| s.values.get(n)).collect()).map_err(|why| why.to_string())
}

#[test]
fn descriptor_constants_follow_from_the_tile() {
    let k_major = "r: R/8@mem*SBO, 8@mem*128 ; k: K/64@mem*CH, 64@mem*2 ; xor<3,4,3> align 1024";
    let solved =
        solve(k_major, "r: 256@mem*128 ; k: 2@mem*32768, 64@mem*2 ; xor<3,4,3> align 1024", &["SBO", "CH"]);
    assert_eq!(solved, Ok(vec![Some(1024), Some(32768)]));
    let one = solve(k_major, "k: 64@mem*2 ; r: 64@mem*128 ; xor<3,4,3> align 2048", &["SBO", "CH"]);
    assert_eq!(one, Ok(vec![Some(1024), None]), "a single chunk has no stride");
    let mn_major = "k: K/8@mem*SBO, 8@mem*128 ; n: N/64@mem*LBO, 64@mem*2 ; xor<3,4,3> align 1024";
    let solved =
        solve(mn_major, "k: 64@mem*128 ; n: 4@mem*8192, 64@mem*2 ; xor<3,4,3> align 1024", &["SBO", "LBO"]);
    assert_eq!(solved, Ok(vec![Some(1024), Some(8192)]));
    let squad = "m: M@mem*P ; k: K/C@mem*CH, C@mem*2 ; xor<4,4,4> align 4096";
    let solved = solve(squad, "m: 128@mem*128 ; k: 64@mem*2 ; xor<4,4,4> align 4096", &["P", "C", "CH"]);
    assert_eq!(solved, Ok(vec![Some(128), Some(64), None]));
    let panels = "m: 128@mem*256 ; k: 2@mem*32768, 128@mem*2 ; xor<4,4,4> align 4096";
    assert_eq!(solve(squad, panels, &["P", "C", "CH"]), Ok(vec![Some(256), Some(128), Some(32768)]));
}

#[test]
fn tiles_that_do_not_fit_are_refused_by_the_digit() {
    let k_major = "r: R/8@mem*SBO, 8@mem*128 ; k: K/64@mem*CH, 64@mem*2 ; xor<3,4,3> align 1024";
    let why = |shared: &str| solve(k_major, shared, &[]).expect_err(shared);
    assert!(
        why("r: 64@mem*144 ; k: 64@mem*2 ; xor<3,4,3> align 1024")
            .contains("8 steps are 144 apart, the instruction wants 128")
    );
    assert!(why("r: 64@mem*128 ; k: 64@mem*2").contains("no swizzle, the instruction wants xor<3,4,3>"));
    assert!(why("r: 64@mem*128 ; k: 64@mem*2 ; xor<3,4,3> align 512").contains("aligned to 512"));
    assert!(
        why("r: 12@mem*128 ; k: 64@mem*2 ; xor<3,4,3> align 1024")
            .contains("cut every 12 indices, the instruction every 8")
    );
    assert!(
        why("r: 64@mem*128 ; k: 4@mem*16384, 48@mem*2 ; xor<3,4,3> align 1024").contains("every 48 indices")
    );
    assert!(why("r: 64@mem*128 ; n: 64@mem*2 ; xor<3,4,3> align 1024").contains("no such dim"));
    assert!(why("r: 64@thr ; k: 64@mem*2 ; xor<3,4,3> align 1024").contains("not on `mem`"));
    let squad = "m: M@mem*P ; k: K/C@mem*CH, C@mem*2 ; xor<4,4,4> align 4096";
    let pitch = solve(squad, "m: 16@mem*96 ; k: 32@mem*2 ; xor<4,4,4> align 4096", &[]).expect_err("96");
    assert!(pitch.contains("P would be 96"));
}

#[test]
fn covers_prefer_exact_factorisations() {
    let of = |extent, threads, vec| {
        let c = cover(extent, threads, vec, 1);
        (c.threads, c.rounds, c.vec, c.guarded)
    };
    assert_eq!(of(1152, 64, 8), (48, 3, 8, false));
    assert_eq!(of(1152, 128, 8), (72, 2, 8, false));
    assert_eq!(of(1152, 256, 8), (144, 1, 8, false));
    assert_eq!(of(1024, 128, 8), (128, 1, 8, false));
    assert_eq!(of(1009, 128, 8), (128, 8, 1, true), "a prime takes a guarded round");
    assert_eq!(of(1, 32, 8), (1, 1, 1, false));
    assert_eq!(of(33, 32, 4), (11, 3, 1, false), "three exact rounds against two guarded ones");
    assert_eq!(cover(1152, 256, 8, 144).threads, 144, "enough threads to keep the memory busy");
    let mut rng = Rng(43);
    for _ in 0..2000 {
        let (extent, threads) = (1 + rng.below(3000), 1 + rng.below(512));
        let c = cover(extent, threads, 1 << rng.below(5), 1);
        let all = c.threads * c.rounds * c.vec;
        assert!(c.threads <= threads && extent % c.vec == 0);
        assert_eq!(all != extent, c.guarded);
        assert!(all >= extent && all - c.threads * c.vec < extent, "no round is empty: {extent} by {c:?}");
        let layout = cover_layout("n", extent, &c);
        assert_eq!(layout.dims[0].extent(), extent);
        assert!(layout.bijective(&[Axis::Thr, Axis::Reg]).is_ok());
    }
}

#[test]
fn pictures_are_deterministic_and_right() {
    let small = tile("m: 2@reg, 2@thr*2 ; n: 2@thr");
    let wanted =
        "m\\n      0     1\n  0  T0.r0 T1.r0\n  1  T2.r0 T3.r0\n  2  T0.r1 T1.r1\n  3  T2.r1 T3.r1\n";
    assert_eq!(draw(&small), wanted);
    let swizzled = tile("r: 4@mem*64 ; c: 4@mem*16 ; xor<2,4,2> align 256");
    let wanted = "r\\c    0   1   2   3\n  0    0  16  32  48\n  1   80  64 112  96\n  2  160 176 128 144\n  3  240 224 208 192\n";
    assert_eq!(draw(&swizzled), wanted);
    assert!(draw(&tile("m: 100@thr ; n: 64@reg")).contains("… 64 columns"));
    assert!(draw(&tile("n: 4@simd")).ends_with("L0 L1 L2 L3\n"));
    let (a, b) = (svg(&small), svg(&small));
    assert_eq!(a, b);
    assert!(a.starts_with("<svg ") && a.trim_end().ends_with("</svg>"));
    assert_eq!(a.matches("<rect").count(), 8);
}

#[test]
fn explanations_name_what_matters() {
    let page = explain("m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: 16@reg*4, 4@thr, 2@reg").expect("a layout");
    for piece in [
        "canonical  m: 4@thr*32",
        "shape      m 64 x n 128",
        "axes       reg 64, thr 128",
        "2 at once along the last dim",
        "T0.r0",
    ] {
        assert!(page.contains(piece), "`{piece}` is missing in\n{page}");
    }
    let page = explain("m: 4@thr*32, 2@reg, 8@thr*4 ; rep 4@thr").expect("a layout");
    assert!(page.contains("copies     4 of each element"), "{page}");
    let page = explain("r: 64@mem*128 ; c: 64@mem*2 ; xor<3,4,3> align 1024").expect("a layout");
    assert!(page.contains("32 threads along `r`, one element each: 4-way"), "{page}");
    assert!(page.contains("32 threads along `c`, one element each: 1-way"), "{page}");
    let plain = explain("r: 64@mem*128 ; c: 64@mem*2").expect("a layout");
    assert!(plain.contains("32 threads along `r`, one element each: 32-way"), "{plain}");
    let why = explain("r: 64@mm*128").expect_err("no such axis");
    assert_eq!((why.primary.span.start, why.primary.span.end), (6, 8));
    assert!(!why.help.is_empty());
}

#[test]
fn guards_reach_the_layout() {
    let l: Layout = tile("n: 5@reg*8, 32@thr, 8@reg < 1152").layout;
    assert_eq!((l.dims[0].extent(), l.dims[0].covered(), l.elements()), (1152, 1280, 1152));
    assert_eq!(
        tile("n: 4@reg < 4").layout,
        Layout::new(vec![Dim::new("n", vec![Digit::new(4, Axis::Reg, 1)])])
    );
}

#[test]
fn placements_beside_declarations() {
    let swizzle = tile_text("xor<3, 4, 3>", &[128, 64], 2).expect("a swizzle");
    assert_eq!(
        swizzle,
        Shared { layout: contiguous(&[128, 64], 2), xor: Some(Xor::new(3, 4, 3)), align: 1024 }
    );
    assert_eq!(swizzle.layout.to_string(), "d0: 128@mem*128 ; d1: 64@mem*2");
    assert_eq!(swizzle.beside(&[128, 64], 2).as_deref(), Some("xor<3,4,3>"));
    let chunks = "m: 128@mem*128 ; k: 2@mem*16384, 64@mem*2 ; xor<3,4,3>";
    let tile = tile_text(chunks, &[128, 128], 2).expect("a layout");
    assert_eq!(
        tile.beside(&[128, 128], 2).as_deref(),
        Some("d0: 128@mem*128 ; d1: 2@mem*16384, 64@mem*2 ; xor<3,4,3>")
    );
    assert_eq!(tile_text(&tile.beside(&[128, 128], 2).expect("text"), &[128, 128], 2), Ok(tile));
    assert_eq!(Shared::plain(contiguous(&[4, 5], 4), 16).beside(&[4, 5], 4), None);
    let why = |text: &str| tile_text(text, &[4, 8], 2).expect_err(text).message;
    assert!(why("m: 4@mem*8 ; k: 8@mem*2").contains("share bytes"));
    assert!(why("m: 4@mem*16 ; k: 4@mem*2").contains("shape"));
    assert!(why("m: 4@thr ; k: 8@mem*2").contains("no digits on thr"));
    assert!(why("swizzled").contains("no swizzle"));
    assert!(fragment_text("m: 4@thr*2 ; k: 2@thr, 4@reg", &[4, 8]).is_ok());
    assert!(fragment_text("m: 4@thr*2 ; k: 2@thr, 4@mem", &[4, 8]).is_err());
    assert!(fragment_text("m: 4@thr*4 ; k: 2@thr, 4@reg", &[4, 8]).is_err());
}
