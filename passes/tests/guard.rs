//! Loops whose steady part has no compare; simplification and the last tidying.

mod common;

use common::*;
use pantile_ir::DType::{self, *};
use pantile_ir::elab::Request;
use pantile_ir::interp::ArgValue;
use pantile_ir::print::print;
use pantile_ir::program::Stage;
use pantile_passes::{guard, simplify, tidy, vectorize};

/// Passes over a kernel `k`, after each of which it means the same.
#[track_caller]
fn after(passes: &[Pass], stage: Stage, text: &str, runs: &[Vec<ArgValue>]) -> String {
    let t = arch("sm_80");
    let before = program(text, &Request::new("k"), &t);
    let mut now = before.clone();
    for &pass in passes {
        now = passed(pass, now, stage, &t);
        runs.iter().for_each(|args| same(&before, &now, args));
    }
    print(&now)
}

fn rows(dtype: DType, shapes: &[(i64, i64)]) -> Vec<Vec<ArgValue>> {
    shapes.iter().map(|&(n, k)| vec![tensor(dtype, &[n, k]), out(dtype, &[n, k])]).collect()
}

#[test]
fn the_steady_rounds_of_the_library_hold_no_compare() {
    let t = arch("sm_80");
    for (name, want) in [
        ("gemv_allreduce", "let edge = if bn*2 + 2 <= N { K / 256 } else { 0 }"),
        ("gemv_warp", "let edge = if bn*4 + 4 <= N { K / 32 } else { 0 }"),
        ("gemv_xcache", "let edge = if bn*4 + 4 <= N { K / 1024 } else { 0 }"),
    ] {
        let before = library("gemv.tile", &Request::new(name).with_type("T", F16), &t);
        let wide = passed(vectorize::run, before.clone(), before.stage, &t);
        let split = passed(guard::run, wide, Stage::Threaded, &t);
        let done = passed(tidy::run, split, Stage::Threaded, &t);
        let text = print(&done);
        assert!(text.contains(want), "{text}");
        // every compare in a loop is behind the constant, every guarded read has an unguarded twin
        let start = text.find(want).unwrap();
        let end = text[start..].find("let total").unwrap();
        for line in text[start..start + end].lines().filter(|l| l.contains("<=") && !l.contains("let edge")) {
            assert!(line.contains("steady || "), "{line}");
        }
        let body = &text[start..start + end];
        assert_eq!(body.matches(" or 0.0").count(), body.matches("if steady {").count(), "{body}");
        for (n, k) in [(1, 1), (7, 33), (5, 1000), (3, 1152), (2, 0), (3, 300), (4, 1024), (4, 2056)] {
            let args = [tensor(F16, &[k]), tensor(F16, &[n, k]), out(F16, &[n])];
            same(&before, &done, &args);
        }
    }
}

#[test]
fn ranges_that_are_no_multiple_begin_anywhere_and_may_be_empty() {
    let text = "
kernel k(X: f32[N, K], Y: out f32[N, K]) {
    grid N as n
    threads 32 as t
    for i in n..K {
        for j in 0..3 {
            let c = i*96 + j*32 + t
            if c < K { Y[n, c] = X[n, c] }
        }
    }
    for i in 0..n {
        let c = i*32 + t
        if c < K && c < n*96 { Y[n, c] = X[n, c] or 0 }
    }
}";
    let runs = rows(F32, &[(1, 1), (1, 33), (1, 1000), (1, 96), (1, 97)]);
    let text = after(&[guard::run, tidy::run], Stage::Threaded, text, &runs);
    assert!(text.contains("seg(n..edge: steady = true; edge..K: steady = false)"), "{text}");
    assert!(text.contains("if steady || c < K {"), "{text}");
    // what the second loop reads lies inside, as its own condition says
    assert!(!text.contains("X[n, c] or 0"), "{text}");
}

#[test]
fn guards_that_differ_between_threads_stay() {
    let text = "
kernel k(X: f32[N, K], Y: out f32[N, K]) {
    grid N as n
    threads 32 as t
    for i in 0..ceildiv(K - t, 32) {
        if i*32 + t < K { Y[n, i*32 + t] = X[n, i*32 + t] }
    }
}";
    let text = after(&[guard::run], Stage::Threaded, text, &rows(F32, &[(1, 1), (2, 33), (1, 100)]));
    assert!(!text.contains("steady"), "{text}");
}

#[test]
fn a_loop_that_only_some_threads_run_has_its_ends_in_place() {
    let text = "
kernel k(X: f32[N, K], Y: out f32[N, K]) {
    grid ceildiv(N, 32) as b
    threads 32 as t
    let n = b*32 + t
    if n < N {
        for i in 0..ceildiv(K, 4) {
            for v in unroll(4) { if i*4 + v < K { Y[n, i*4 + v] = X[n, i*4 + v] } }
        }
    }
}";
    let text = after(&[guard::run], Stage::Threaded, text, &rows(F32, &[(1, 1), (33, 7), (2, 100)]));
    assert!(text.contains("seg(0..K/4: steady = true; K/4..ceildiv(K, 4): steady = false)"), "{text}");
}

#[test]
fn what_is_known_is_decided() {
    let text = "
kernel k(X: f32[N, K], Y: out f32[N, K]) {
    grid N as n
    threads 32 as t
    var a: f32[4]
    let unread = X[n, 0]
    for i in 0..1 { a[i] = 1.0 }
    for c in 0..ceildiv(K, 32) {
        let k = (c*64 + t*2) / 2
        if t < 32 && n < N { if k < K { Y[n, k] = X[n, k] or 0 } }
        if t >= 32 { Y[n, k] = 0.0 }
        if t < 7 { }
    }
}";
    let runs = rows(F32, &[(1, 1), (2, 33), (1, 1000)]);
    let tidied = after(&[tidy::run], Stage::Threaded, text, &runs);
    let want = "    threads 32 as t
    for c in 0..ceildiv(K, 32) {
        let k = c*32 + t
        if k < K {
            Y[n, k] = X[n, k]
        }
    }
}";
    assert!(tidied.contains(want), "{tidied}");
    let simple = after(&[simplify::run], Stage::Tile, text, &runs);
    assert!(!simple.contains("unread") && simple.contains("or 0.0"), "{simple}");
}

#[test]
fn tile_programs_keep_their_floats_and_lose_what_is_known() {
    let text = "
kernel k(X: f32[N, K], Y: out f32[N, K]) {
    grid (ceildiv(N, 16), ceildiv(K, 16)) as (i, j)
    let z = min(i, i + 1) * 16
    let x = X[z +: 16, j*16 +: 16]
    let dead = x + 1.0
    if i >= 0 { Y[i*16 +: 16, j*16 +: 16] = x * 1.0 + 0.0 } else { Y[0 +: 16, j*16 +: 16] = x }
}";
    let text = after(&[simplify::run], Stage::Tile, text, &rows(F32, &[(1, 1), (33, 17), (16, 32)]));
    assert!(text.contains("let z = i * 16") && text.contains("= x * 1.0 + 0.0"), "{text}");
    assert!(!text.contains("dead") && !text.contains("if "), "{text}");
}
