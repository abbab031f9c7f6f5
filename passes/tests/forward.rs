//! Tiles that one statement reads element for element have no array of their own; all others keep theirs.

mod support;

use pantile_ir::DType;
use pantile_ir::elab::Request;
use pantile_ir::print::print;
use pantile_passes::pipeline::{self, Cx};
use pantile_passes::simplify;
use support::*;

fn simplified(body: &str) -> String {
    let arch = arch("sm_80");
    let text = format!(
        "kernel k<T: dtype>(X: T[R, C], A: T[R, C], Y: inout T[R, C]) {{
    grid (ceildiv(R, 8), ceildiv(C, 16)) as (i, j)
    let x = X[i*8 +: 8, j*16 +: 16]
    let a = A[i*8 +: 8, j*16 +: 16]
    {body}
}}"
    );
    let before = compile(&text, &Request::new("k").with_type("T", DType::F32), &arch);
    let cx = Cx { arch: &arch };
    let after = print(&simplify::run(before.clone(), &cx).unwrap_or_else(|d| panic!("{d:#?}\n{text}")));
    let last = pipeline::run(before.clone(), &cx, |_, _| Ok(())).unwrap_or_else(|d| panic!("{d:#?}\n{text}"));
    for (r, c) in [(1, 1), (9, 33), (8, 16), (7, 0), (33, 100)] {
        let dims = [("R", r), ("C", c)];
        let want = run(&before, args(&before, &dims), &arch).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let got = run(&last, args(&before, &dims), &arch).unwrap_or_else(|e| panic!("{e}\n{}", print(&last)));
        for (a, b) in want.iter().flatten().zip(got.iter().flatten()) {
            assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{r}x{c}: {a} is {b}\n{after}");
        }
    }
    after
}

const OUT: &str = "Y[i*8 +: 8, j*16 +: 16]";

#[test]
fn chains_are_one_statement() {
    for (body, want) in [
        (format!("let p = x * a\n    let q = p + 1.0\n    {OUT} = exp(q)"), "= exp(x * a + 1.0)"),
        (
            format!("let p = x * a\n    let s = sum(p, axis = 1)\n    {OUT} = x - s[:, _]"),
            "reduce(add, x * a",
        ),
        (format!("let p = x * a\n    var v = zeros T[8, 16]\n    v += p\n    {OUT} = v"), "v += x * a"),
        (format!("let m = x > 0.0\n    let p = where(m, x, a)\n    {OUT} = p"), "= where(x > 0.0, x, a)"),
    ] {
        let text = simplified(&body.replace("zeros T", "zeros f32"));
        let tight = |t: &str| t.replace(' ', "");
        assert!(tight(&text).contains(&tight(want)) && !text.contains("let p"), "{want}\n{text}");
    }
}

#[test]
fn what_would_be_computed_twice_or_later_keeps_its_name() {
    for body in [
        // two uses
        format!("let p = exp(x)\n    {OUT} = p * a + p"),
        // a use in each round
        format!("let p = exp(x)\n    var v = x\n    for n in 0..3 {{ v += p }}\n    {OUT} = v"),
        // stretched: each of its elements is asked 16 times
        format!("let p = exp(sum(x, axis = 1))\n    {OUT} = x * p[:, _]"),
        format!("let p = exp(X[i*8 +: 8, 0 +: 1])\n    {OUT} = x * p"),
        // its names change
        format!("var v = x\n    let p = v + 1.0\n    v = a\n    {OUT} = p * v"),
    ] {
        let text = simplified(&body);
        assert!(text.contains("let p = "), "{body}\n{text}");
    }
}

#[test]
fn a_value_read_from_memory_stays_where_it_was_read() {
    let text = simplified(&format!("let p = {OUT}\n    let q = p * 2.0\n    {OUT} = a\n    {OUT} = q + x"));
    assert!(text.contains("= p * 2.0 + x"), "{text}");
}
