//! Threads side by side as lanes on the CPU: the interpreter's bits at every edge.

use pantile_ir::elab::Request;
use pantile_tests::plain::program_of;
use pantile_tests::run::{Bench, Outcome, check_one, compile};

/// Kernel `k` for rows that end before, at and behind a step of all threads.
#[track_caller]
fn agrees(text: &str) {
    let bench = Bench::new();
    for (k, kind) in [(0, 0), (1, 0), (31, 1), (128, 0), (129, 1), (600, 0), (1031, 1)] {
        let dims = [("N", 3), ("K", k)];
        let p = program_of(&bench, "k", text, &dims, kind).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let outcome = check_one(&bench, &p);
        let same = matches!(outcome, Outcome::Same);
        assert!(same, "K = {k}, data {kind}: {} {}\n{text}", outcome.kind(), outcome.text());
    }
}

/// Vectors of the code as it is written, before LLVM looks for any.
fn is_wide(text: &str) -> bool {
    let made = compile(&Bench::new(), text, &Request::new("k")).expect("verified");
    let targets = pantile_ir::target::Targets::shipped();
    let arch = targets.arch_for_target("cpu:x86-64-v4").expect("known");
    let machine = pantile_backends::cpu::Machine::of(arch).expect("complete");
    let built = pantile_backends::cpu::build(&made.program, &machine, true).expect("built");
    built.lowered.expect("asked for").contains("x float>")
}

/// A row a group of threads; `body` is what each does with its elements from `k0` on.
fn rows(elem: &str, threads: u32, n: u32, body: &str) -> String {
    format!(
        "kernel k(x: {elem}[K], B: {elem}[N, K], y: out f32[N]) math exact {{
    grid ceildiv(N, 2) as b
    threads (2, {threads}) as (row, t)
    let i = b*2 + row
    var s: f32 = 0
    for c in 0..ceildiv(K, {threads}*{n}) {{
        let k0 = (c*{threads} + t) * {n}
{body}
    }}
    let all = allreduce(add, s, over = t)
    if t == 0 && i < N {{ y[i] = all }}
}}
"
    )
}

const ARRAYS: &str = "        var xv: ELEM[LEN]
        var bv: ELEM[LEN]
        for v in vectorized(LEN) { xv[v] = x[k0 + v] or 1
            bv[v] = B[i, k0 + v] or 0 }
        for v in unroll(LEN) { s += f32(xv[v]) * f32(bv[v]) }";

const PLAIN: &str = "        for v in 0..LEN { s += f32(x[k0 + v] or 2) * f32(B[i, k0 + v] or 0) }";

/// What differs between lanes and between elements, each as a value, and a choice.
const MIXED: &str = "        let scale = f32(t) * 0.5 + f32(x[c % max(K, 1)] or 0)
        for v in 0..LEN {
            s += if (k0 + v) % 3 == 0 { scale * f32(B[i, k0 + v] or 0) } else { f32(k0 + v) - scale }
        }
        s = max(s, -scale)";

#[test]
fn arrays_and_elements() {
    for (elem, threads, n) in
        [("f32", 32, 4), ("f16", 32, 8), ("bf16", 16, 16), ("f64", 8, 2), ("i8", 4, 8), ("f8e4m3", 64, 4)]
    {
        for body in [ARRAYS, PLAIN, MIXED] {
            let text = rows(elem, threads, n, &body.replace("ELEM", elem).replace("LEN", &n.to_string()));
            assert!(is_wide(&text), "{text}");
            agrees(&text);
        }
    }
}

#[test]
fn one_element_a_thread() {
    let body = "        if c % 2 == 0 { s += f32(x[k0] or 0) * f32(B[i, k0] or 0) } else { s = s - f32(B[i, k0] or 3) }
        for again in 0..c { s *= 0.75 }";
    for (elem, threads) in [("f32", 32), ("f16", 16), ("i32", 4)] {
        let text = rows(elem, threads, 1, body);
        assert!(is_wide(&text), "{text}");
        agrees(&text);
    }
}

#[test]
fn stores() {
    let text = "kernel k(x: f16[K], y: out f32[K]) math exact {
    threads (1, 32) as (z, t)
    for c in 0..K / 128 {
        let k0 = (c*32 + t) * 4
        for v in vectorized(4) { y[k0 + v] = f32(x[k0 + v]) * 3 + f32(t) }
    }
    for r in K / 128 * 128 .. K { if t == 0 { y[r] = 1 } }
}
";
    assert!(is_wide(text));
    agrees(text);
}

/// Lanes would not be neighbours, threads would meet, or an order would change: code of one thread at a time.
#[test]
fn what_stays_apart() {
    for body in [
        // rows, not columns, differ
        "        for v in 0..4 { s += f32(x[(k0 + v) * 2] or 0) }",
        // the loop reads what it changes
        "        for v in 0..4 { s += f32(x[k0 + v] or 0) * s }",
        // lanes choose apart
        "        if t < 5 { s += f32(x[k0] or 0) }",
        // lengths differ
        "        for v in 0..t { s += f32(x[k0] or 0) }",
    ] {
        let text = rows("f32", 32, 4, body);
        assert!(!is_wide(&text), "{text}");
        agrees(&text);
    }
}
