//! Sums that run over a loop are joined over threads once, after it, where that keeps their meaning.
#![allow(clippy::print_stdout)]

mod support;

use pantile_ir::DType;
use pantile_ir::elab::Request;
use pantile_ir::print::print;
use pantile_ir::program::*;
use pantile_ir::target::Arch;
use pantile_passes::pipeline::{self, Cx};
use support::*;

/// Shuffles inside of loops of the text, and outside, in the last program.
fn shuffles(p: &Program) -> (usize, usize) {
    fn count(block: &Block, inside: bool, found: &mut (usize, usize)) {
        for s in block {
            if matches!(s.kind, StmtKind::Op { op: Op::Shuffle { .. }, .. }) {
                *(if inside { &mut found.0 } else { &mut found.1 }) += 1;
            }
            let serial = matches!(
                s.kind,
                StmtKind::While { .. } | StmtKind::For { kind: LoopKind::Serial | LoopKind::NoUnroll, .. }
            );
            s.kind.blocks().into_iter().for_each(|b| count(b, inside || serial, found));
        }
    }
    let mut found = (0, 0);
    p.kernels.iter().for_each(|(_, k)| count(&k.stmts, false, &mut found));
    found
}

/// Runs the whole pipeline and compares; `sizes` are values of R and C.
fn through(text: &str, t: DType, sizes: &[(i64, i64)], arch: &Arch) -> Program {
    let before = compile(text, &Request::new("k").with_type("T", t), arch);
    let last = pipeline::run(before.clone(), &Cx { arch }, |_, _| Ok(()));
    let last = last.unwrap_or_else(|d| panic!("{d:#?}\n{text}"));
    for &(r, c) in sizes {
        let dims = [("R", r), ("C", c)];
        let want = run(&before, args(&before, &dims), arch).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let got = run(&last, args(&before, &dims), arch).unwrap_or_else(|e| panic!("{e}\n{}", print(&last)));
        for (a, b) in want.iter().flatten().zip(got.iter().flatten()) {
            let close = (a - b).abs() <= 2e-5 * (1.0 + a.abs());
            assert!(a == b || close || (a.is_nan() && b.is_nan()), "{r}x{c}: {a} is {b}\n{}", print(&last));
        }
    }
    last
}

const SIZES: [(i64, i64); 7] = [(1, 1), (3, 33), (8, 128), (9, 1000), (5, 1152), (17, 257), (4, 0)];

fn kernel(math: &str, start: &str, body: &str, end: &str) -> String {
    format!(
        "kernel k<T: dtype>(X: T[R, C], A: T[R, C], y: out T[R]) math {math} {{
    grid ceildiv(R, 8) as i
    {start}
    for c in 0..ceildiv(C, 128) {{
        let x = X[i*8 +: 8, c*128 +: 128]
        let a = A[i*8 +: 8, c*128 +: 128]
        {body}
    }}
    {end}
}}"
    )
}

const WRITE: &str = "y[i*8 +: 8] = s";

#[test]
fn running_values_join_threads_after_the_loop() {
    let sums = [
        ("var s = zeros T[8]", "s += sum(x, axis = 1)"),
        ("var s = zeros T[8]", "s = s + sum(x * a, axis = 1)"),
        ("var s = zeros T[8]", "s = sum(x, axis = 1) + s"),
        ("var s = zeros T[8]", "let n = s + sum(x, axis = 1)\n        s = n"),
        ("var s = full T[8](-1)", "s = max(s, max(x, axis = 1))"),
        ("var s = full T[8](1)", "s = min(min(x, axis = 1), s)"),
    ];
    for arch in archs() {
        for (start, body) in sums {
            for t in [DType::F32, DType::I32] {
                let text = kernel("contract", start, body, WRITE);
                let (inside, outside) = shuffles(&through(&text, t, &SIZES, &arch));
                assert!(inside == 0 && outside > 0, "{}, {t:?}, {body}: {inside} inside", arch.name);
            }
        }
    }
}

#[test]
fn scaled_sums_join_threads_after_the_loop() {
    for body in [
        "let f = 0.5 + 0.25 * max(a, axis = 1)\n        s = s*f + sum(x, axis = 1)",
        "let f = 0.5 * max(a, axis = 1)\n        let n = sum(x, axis = 1) + f*s\n        s = n",
    ] {
        let text = kernel("contract", "var s = zeros f32[8]", body, WRITE).replace("T: dtype", "T: float");
        for arch in archs() {
            let (inside, outside) = shuffles(&through(&text, DType::F32, &SIZES, &arch));
            // the maximum is needed in each round; its exchanges are as many as the sum's
            assert!(outside > 0 && inside % outside == 0, "{}: {inside}, {outside}", arch.name);
        }
    }
}

#[test]
fn scalars_join_threads_after_the_loop() {
    for (start, body) in [
        ("var s: T = 0", "s += sum(x)"),
        ("var s: T = 3", "let n = s + sum(x * a)\n        s = n"),
        ("var s: T = -1", "s = max(s, max(x))"),
    ] {
        let end = "y[i*8 +: 8] = full T[8](s)";
        for arch in archs() {
            for t in [DType::F32, DType::I32] {
                let last = through(&kernel("contract", start, body, end), t, &SIZES, &arch);
                assert_eq!(shuffles(&last).0, 0, "{}, {body}\n{}", arch.name, print(&last));
            }
        }
    }
}

/// What the running value is used for in the loop, or the order of the sum, keeps the threads together in each round.
#[test]
fn what_is_read_in_the_loop_is_joined_in_the_loop() {
    let arch = arch("sm_80");
    for (math, body, t) in [
        ("contract", "s += sum(x * s[:, _], axis = 1)", DType::F32),
        ("contract", "s = s*s + sum(x, axis = 1)", DType::F32),
        ("contract", "s = s - sum(x, axis = 1)", DType::F32),
        ("contract", "s += sum(x, axis = 1)\n        if s[0] > 100 { break }", DType::F32),
        (
            "contract",
            "s += sum(x, axis = 1)\n        var n: i32 = 0\n        while s[1] > f32(n) && n < 3 { n += 1 }\n        for j in 0..index(clamp(s[2], 0, 3)) { s += sum(a, axis = 1) }",
            DType::F32,
        ),
        ("contract", "s += sum(x, axis = 1)\n        s += sum(a, axis = 1)", DType::F32),
        ("contract", "s = max(s, sum(x, axis = 1))", DType::F32),
        ("contract", "let r = sum(x, axis = 1)\n        s += r\n        y[i*8 +: 8] = r", DType::F32),
        ("exact", "s += sum(x, axis = 1)", DType::F32),
        ("contract", "s += sum(x, axis = 1)", DType::F16),
    ] {
        let text = kernel(math, "var s = zeros T[8]", body, WRITE);
        let before = compile(&text, &Request::new("k").with_type("T", t), &arch);
        let last = pipeline::run(before, &Cx { arch: &arch }, |_, _| Ok(())).unwrap();
        assert!(shuffles(&last).0 > 0, "{body}\n{}", print(&last));
        if t == DType::F32 {
            through(&text, t, &SIZES[..5], &arch);
        }
    }
    // one element's width of integers wraps the same in any order
    let text = kernel("exact", "var s = zeros T[8]", "s += sum(x, axis = 1)", WRITE);
    assert_eq!(shuffles(&through(&text, DType::I32, &SIZES, &arch)).0, 0);
}
