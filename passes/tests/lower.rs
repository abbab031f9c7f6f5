//! Tiles become threads: small kernels, each for one thing that lowering must see to, before and after all passes.

mod support;

use pantile_ir::DType;
use pantile_ir::elab::Request;
use pantile_ir::print::print;
use pantile_passes::pipeline::{self, Cx};
use support::*;

/// Runs a kernel of `T` through all passes; after each pass it must mean the same.
#[track_caller]
fn through(text: &str, t: DType) {
    for arch in [arch("sm_80"), arch("toy")] {
        let before = compile(text, &Request::new("k").with_type("T", t), &arch);
        let sizes = [(1, 1), (9, 33), (16, 32)].map(|(r, c)| [("R", r), ("C", c)]);
        let wanted = sizes
            .map(|dims| run(&before, args(&before, &dims), &arch).unwrap_or_else(|e| panic!("{e}\n{text}")));
        let last = pipeline::run(before.clone(), &Cx { arch: &arch }, |pass, now| {
            for (dims, want) in sizes.iter().zip(&wanted) {
                let got = run(now, args(&before, dims), &arch);
                let got = got.unwrap_or_else(|e| panic!("{}, {}: {e}\n{}", arch.name, pass.name, print(now)));
                assert_eq!(want, &got, "{}, {}, {dims:?}\n{}", arch.name, pass.name, print(now));
            }
            pantile_ir::verify::verify(now, &arch).map(drop)
        });
        last.unwrap_or_else(|d| panic!("{}: {d:#?}\n{text}", arch.name));
    }
}

fn kernel(body: &str) -> String {
    format!(
        "kernel k<T: dtype>(X: T[R, C], A: T[R, C], N: i32[R], Z: inout i32[R], Y: inout T[R, C]) math exact {{
    grid (ceildiv(R, 8), ceildiv(C, 16)) as (i, j)
    let x = X[i*8 +: 8, j*16 +: 16]
    let a = A[i*8 +: 8, j*16 +: 16]
    {body}
}}"
    )
}

const OUT: &str = "Y[i*8 +: 8, j*16 +: 16]";

#[test]
fn a_tile_made_from_itself_asks_for_what_was_there() {
    for body in [
        "v = v / (a | 1)",
        "v = x / (v | 1)",
        "v = (v << (v & 7)) + a",
        "v = x << (v & 7)\n    v = (a * 3) % (v | 1)",
        "for n in 0..3 { v = v / (a | 1) + n32(n) }",
    ] {
        let body = body.replace("n32(n)", "i32(n)");
        through(&kernel(&format!("var v = x\n    {body}\n    {OUT} = v")), DType::I32);
    }
}

#[test]
fn what_is_not_valid_is_not_divided_by() {
    for body in [
        format!("{OUT} = x / d"),
        format!("let q = x / d\n    {OUT} = q + 1"),
        format!("var v = x\n    v = v / d\n    {OUT} = v"),
        format!("var v = x\n    v += x / d\n    {OUT} = v"),
        format!(
            "let q = x / d\n    let t = (i8(q) / i8(q | 1)) @ i8(a).T\n    {OUT} = x + sum(t, axis = 1)[:, _]"
        ),
        format!("let s = scan(add, x / d, axis = 1)\n    {OUT} = s"),
        format!(
            "shared s: i32[8, 16]\n    s[:, :] = zeros i32[8, 16]\n    s[:, :] = x / d\n    {OUT} = s[:, :]"
        ),
        format!(
            "var v = x\n    let t = i8(v) @ i8(a).T\n    v = v / d\n    v += v / d\n    {OUT} = v + sum(t, axis = 1)[:, _]"
        ),
    ] {
        // a divisor that is 0 nowhere but where it is not valid
        through(&kernel(&format!("{OUT} = a | 1\n    let d = {OUT}\n    {body}")), DType::I32);
    }
}

#[test]
fn the_block_agrees_on_control_that_hangs_on_copies() {
    let sum = format!("{OUT} = x + sum(a, axis = 1)[:, _]");
    for start in [
        // a fold of a part of the threads, of what was in shared memory
        "if all(reshape((X[i*8 +: 1, 0 +: 4] pad 0) > 0, 4)) {".to_string(),
        "if any(scan(and, x[:, 0] > 0, axis = 0)) {".into(),
        // an element, by way of a name
        "var m = x[0, 0] + 1\n    if m > 0 {".into(),
        "var m = x[0, 0] + 1\n    for n in 0..2 {\n        m += 1\n        if m > 4 { continue }".into(),
        "var m = i32(x[0, 0])\n    while m < 8 {\n        m += 3".into(),
        // memory that threads write
        "if Z[i] > 0 {".into(),
        "shared s: i32[8]\n    s[:] = N[i*8 +: 8] pad 0\n    if s[2] > 0 {".into(),
        "let before = atomic_max(Z[i], 100)\n    if before < 100 {".into(),
        "for n in 0..(index(max(Z[i], 0)) % 3) {".into(),
    ] {
        let text = kernel(&format!("{start}\n        {sum}\n    }}"));
        through(&text, DType::I32);
    }
}

#[test]
fn threads_that_have_names_agree_too() {
    for start in [
        "if any(scan(and, X[i, 0 +: 16] > 0, axis = 0)) {",
        "var m = max(scan(add, X[i, 0 +: 16], axis = 0))\n    if m > 3 {",
    ] {
        let text = format!(
            "kernel k<T: dtype>(X: T[R, C], Y: inout T[R, C]) math exact {{
    grid R as i
    threads 64 ordered as t
    {start}
        let s = sum(X[i, 0 +: 256])
        if t < C {{ Y[i, t] = s }}
    }}
}}"
        );
        through(&text, DType::I32);
    }
}

#[test]
fn control_that_differs_between_threads_is_not_agreed_on() {
    let text = "kernel k<T: dtype>(X: T[R, C], Y: inout T[R, C]) math exact {
    grid R as i
    threads 64 ordered as t
    shared s: i32[64]
    s[t] = i32(t)
    barrier
    let p = X[i, 0 +: 16]
    let m = sum(p)
    if m > s[63 - t] { if t < C { Y[i, t] = m } }
}";
    through(text, DType::I32);
}

#[test]
fn slices_start_at_integers_of_any_type() {
    for body in
        ["x[i32(0), i32(2) +: 4]", "x[i64(n), i32(n) +: 4]", "x[n, i32(n) +: 4] / (a[i64(n), 0 +: 4] | 1)"]
    {
        let text = format!("for n in 0..1 {{ Y[i*8, j*16 +: 4] = {body} + 1 }}");
        through(&kernel(&text), DType::I32);
    }
}

/// Three loops that meet in pairs only: each axis gets its threads in a loop where the other one is not.
#[test]
fn axes_that_meet_late_have_threads_of_their_own() {
    let text = "kernel k<T: dtype>(X: T[R, C], A: T[R, C], Y: inout T[R, C]) math exact {
    grid (ceildiv(R, 16), ceildiv(C, 16)) as (i, j)
    let x = X[j*16 +: 16, i*16 +: 16]
    let a = A[i*16 +: 16, j*16 +: 16]
    let r = A[i*16 +: 16, 0 +: 1]
    let t = (r + max(x.T, a)) * 2
    Y[i*16 +: 16, j*16 +: 16] = t
}";
    through(text, DType::I32);
}

#[test]
fn nothing_is_concluded_where_control_never_comes() {
    for body in [
        "for n in 1..min(i, 1) { v += A[((n % 5) * (-2)) % 2, 0 +: 16] }",
        "for n in 4..2 { v += A[((n % 5) * (-2)) % 2, 0 +: 16] }",
        "if i > 0 { v += A[((i % 5) * (-2)) % 2, 0 +: 16] }",
        "if i > 0 { Y[((i % 5) * (-2)) % 2, 0 +: 16] = v } else { Y[i, 0 +: 16] = v + 1 }",
    ] {
        let text = format!(
            "kernel k<T: dtype>(X: T[R, C], A: T[2, 18], Y: inout T[R, C]) math exact {{
    grid 1 as i
    var v = X[i, 0 +: 16]
    {body}
    Y[i, 0 +: 16] = v
}}"
        );
        through(&text, DType::I32);
    }
}
