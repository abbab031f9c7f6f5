//! Wide accesses: what becomes of lanes, and that nothing changes its meaning.

mod common;

use common::*;
use pantile_ir::DType::{self, *};
use pantile_ir::elab::Request;
use pantile_ir::print::print;
use pantile_passes::vectorize;

/// The pass over a kernel `k`, which must mean the same for these shapes of its tensors.
#[track_caller]
fn wide(text: &str, runs: &[Vec<pantile_ir::interp::ArgValue>]) -> String {
    let t = arch("sm_80");
    let before = program(text, &Request::new("k"), &t);
    let after = passed(vectorize::run, before.clone(), before.stage, &t);
    for args in runs {
        same(&before, &after, args);
    }
    print(&after)
}

/// Widths of the wide accesses that are left, in the order of the text.
fn widths(p: &str) -> Vec<u32> {
    let found = p.match_indices("in vectorized(").map(|(i, m)| &p[i + m.len()..]);
    found.map(|rest| rest[..rest.find(')').unwrap()].parse().unwrap()).collect()
}

const LOADS: &str = "
kernel k(X: T[N, W], Y: out T[N, W]) {
    grid N as n
    threads 32 as t
    for c in 0..ceildiv(W, 256) {
        let k0 = c*256 + t*8
        var a: T[8]
        for v in vectorized(8) { a[v] = X[n, k0 + v] or 0 }
        for v in vectorized(8) { if k0 + v < W { Y[n, k0 + v] = a[v] } }
    }
}";

fn copies(dtype: DType, width: i64) -> String {
    let text = LOADS.replace('T', dtype.name()).replace('W', &width.to_string());
    let runs: Vec<_> = [1, 3].map(|n| vec![tensor(dtype, &[n, width]), out(dtype, &[n, width])]).into();
    wide(&text, &runs)
}

#[test]
fn rows_of_a_known_length_take_the_widest_access_that_they_are_aligned_for() {
    for (width, want) in [(1000, 8), (1152, 8), (96, 8), (100, 4), (1002, 2)] {
        assert_eq!(widths(&copies(F16, width)), [want; 2], "{width}");
    }
    for width in [1, 33, 4097, 8191] {
        let text = copies(F16, width);
        assert_eq!(widths(&text), [0u32; 0], "{width}");
        assert!(text.contains("for v in unroll(8) {\n            a[v] = X[n, k0 + v] or 0.0"), "{text}");
    }
    assert_eq!(widths(&copies(F32, 1000)), [4; 2]);
    assert_eq!(widths(&copies(I8, 1000)), [8; 2]);
    assert_eq!(widths(&copies(F64, 1000)), [2; 2]);
}

#[test]
fn one_test_where_lanes_are_all_inside_or_all_outside() {
    let text = copies(F16, 1000);
    let want = "
        if k0 + 8 <= 1000 {
            for v in vectorized(8) {
                a[v] = X[n, k0 + v]
            }
        } else {
            for v in unroll(8) {
                a[v] = 0.0
            }
        }
        if k0 + 7 < 1000 {
            for v in vectorized(8) {
                Y[n, k0 + v] = a[v]
            }
        }
";
    assert!(text.contains(want), "{text}");
}

#[test]
fn rows_of_an_unknown_length_are_tested_once() {
    let text = LOADS.replace("T[N, W]", "f16[N, W]").replace("T[8]", "f16[8]");
    let shapes = [(1, 1), (2, 33), (3, 1000), (1, 1152), (2, 0), (1, 257)];
    let runs = shapes.map(|(n, w)| vec![tensor(F16, &[n, w]), out(F16, &[n, w])]);
    let text = wide(&text, &runs);
    assert_eq!(text.matches("if W % 8 == 0 {\n        for c in 0..ceildiv(W, 256)").count(), 1, "{text}");
    assert_eq!(widths(&text), [8, 8], "{text}");
    assert!(text.contains("X: f16[N, W] base 16"), "{text}");
}

#[test]
fn of_many_axes_only_the_row_must_be_a_multiple() {
    let text = "
kernel k(X: f16[B, H, N, W], Y: out f16[B, H, N, W]) {
    grid (N, H, B) as (n, h, b)
    threads 32 as t
    for c in 0..ceildiv(W, 256) {
        let k0 = c*256 + t*8
        var a: f16[8]
        for v in vectorized(8) { a[v] = X[b, h, n, k0 + v] or 0 }
        for v in vectorized(8) { if k0 + v < W { Y[b, h, n, k0 + v] = a[v] } }
    }
}";
    let shapes = [[2, 3, 5, 8], [1, 3, 7, 9], [2, 1, 3, 1000]];
    let runs: Vec<_> = shapes.iter().map(|s| vec![tensor(F16, s), out(F16, s)]).collect();
    let made = wide(text, &runs);
    assert!(made.contains("W % 8 == 0"), "{made}");
    assert!(["N %", "H %", "B %"].iter().all(|d| !made.contains(d)), "{made}");
}

#[test]
fn a_promise_of_alignment_needs_no_test() {
    let text = LOADS
        .replace("X: T[N, W]", "X: f16[N, W] align 16")
        .replace("Y: out T[N, W]", "Y: out f16[N, W] align 16");
    let text = wide(&text.replace("T[8]", "f16[8]"), &[vec![tensor(F16, &[2, 80]), out(F16, &[2, 80])]]);
    assert!(!text.contains('%'), "{text}");
    // the promise is about addresses: a single row may still end anywhere
    assert_eq!(widths(&text), [8, 8], "{text}");
    assert!(text.contains("X[n, k0 + v] or 0.0"), "{text}");
    let narrow = LOADS.replace("T[N, W]", "f16[N, 64] align 4").replace("T[8]", "f16[8]").replace('W', "64");
    assert_eq!(widths(&wide(&narrow, &[])), [2, 2]);
}

#[test]
fn long_lanes_are_chunks_and_arithmetic_stays_lane_by_lane() {
    let text = wide(
        "kernel k(X: f16[N, 64], Y: out f32[N, 64]) {
            grid N as n
            threads 4 as t
            for v in vectorized(16) { Y[n, t*16 + v] = f32(X[n, t*16 + v]) * 2.0 }
        }",
        &[1, 3].map(|n| vec![tensor(F16, &[n, 64]), out(F32, &[n, 64])]),
    );
    assert_eq!(widths(&text), [8, 4], "{text}");
    let want = "
    for c in unroll(2) {
        var x_v @ align 16: f16[8]
        for v in vectorized(8) {
            x_v[v] = X[n, t*16 + (c*8 + v)]
        }
";
    assert!(text.contains(want), "{text}");
}

#[test]
fn shared_rows_and_packed_elements() {
    let text = wide(
        "kernel k(X: u4[N, K] packed(K), Y: out i32[N, K]) where K % 32 == 0 {
            grid N as n
            threads 4 as t
            shared s: i32[4, 8]
            for c in 0..ceildiv(K, 32) {
                var a: u4[8]
                for v in vectorized(8) { a[v] = X[n, c*32 + t*8 + v] or 0 }
                for v in vectorized(8) { s[t, v] = i32(a[v]) }
                for v in vectorized(8) { Y[n, c*32 + t*8 + v] = s[3 - t, v] }
            }
        }",
        &[32, 96].map(|k| vec![tensor(U4, &[2, k]), out(I32, &[2, k])]),
    );
    assert_eq!(widths(&text), [8, 4, 4, 4], "{text}");
    assert!(!text.contains("if K"), "a condition of the launch is not tested again: {text}");
}

#[test]
fn what_is_not_contiguous_stays_single() {
    for (from, why) in [
        ("X[k0 + v, n % 8]", "along the wrong axis"),
        ("X[n % 8, (k0 + v) % 8]", "wrapped"),
        ("X[n % 8, 7 - v]", "downwards"),
        ("X[n % 8, 1 + v]", "misaligned, and beyond the row"),
    ] {
        let text = wide(
            &format!(
                "kernel k(X: f32[N, 8], Y: out f32[N, 8]) {{
                    grid N as n
                    threads 1 as t
                    let k0 = t*8
                    var a: f32[8]
                    for v in vectorized(8) {{ a[v] = {from} or 0 }}
                    for v in unroll(8) {{ Y[n, v] = a[v] }}
                }}"
            ),
            &[1, 3, 9].map(|n| vec![tensor(F32, &[n, 8]), out(F32, &[n, 8])]),
        );
        assert_eq!(widths(&text), [0u32; 0], "{why}: {text}");
    }
}

#[test]
fn plain_loops_load_what_they_read_before_they_run() {
    let t = arch("sm_80");
    for (name, want) in [
        ("gemv_vectorized", vec![8, 8, 8]),
        ("gemv_allreduce", vec![8, 8, 8]),
        ("gemv_splitk_tiled", vec![4, 4, 4]),
        ("gemv_xcache", vec![8, 8, 8]),
    ] {
        let before = library("gemv.tile", &Request::new(name).with_type("T", F16), &t);
        let after = passed(vectorize::run, before.clone(), before.stage, &t);
        let text = print(&after);
        assert_eq!(widths(&text), want, "{text}");
        for (n, k) in [(1, 1), (7, 33), (5, 1000), (3, 1152), (2, 0), (3, 300)] {
            let args = [tensor(F16, &[k]), tensor(F16, &[n, k]), out(F16, &[n])];
            same(&before, &after, &args);
        }
    }
}
