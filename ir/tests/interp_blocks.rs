//! Blocks and ops: races between blocks, poison, coverage, workspaces, launch checks.

mod interp_common;

use interp_common::*;
use pantile_ir::codes;
use pantile_ir::interp::{ArgValue, Options, Tensor, infer_dims, run_host, run_kernel};

fn kernel(head: &str, body: &str) -> pantile_ir::program::Program {
    text(&format!("kernel k({head}) {{\n{body}\n}}"), "k")
}

#[test]
fn two_blocks_may_not_write_one_element() {
    let p = kernel("O: out f32[N]", "grid ceildiv(N, 4) as i\nO[i*4 +: 5] = 1.0");
    let f = faults(&p, vec![out(F32, &[9])], codes::RACE_BLOCKS);
    assert!(f.message.contains("two blocks write"), "{f}");
    assert_eq!(f.block.len(), 1);
    assert!(f.values.iter().any(|(n, v)| n == "the other block" && v.starts_with("(i = ")), "{f:#?}");
    let p = kernel("O: out f32[N]", "grid ceildiv(N, 4) as i\nO[i*4 +: 4] = 1.0");
    assert_eq!(output(&p, vec![out(F32, &[9])]), [1.0; 9]);
}

#[test]
fn a_block_may_not_read_what_another_writes() {
    let p = kernel("O: inout f32[N]", "grid N as i\nlet x = O[(i + 1) % N]\nif i == 0 { O[0] = x }");
    for seed in 0..4 {
        let options = Options { seed, ..Options::default() };
        faults_with(&p, vec![tensor(F32, &[3], noise)], codes::RACE_BLOCKS, &options);
    }
    let p = kernel("O: inout f32[N]", "grid N as i\nlet x = O[i]\nO[i] = x + 1.0");
    assert_eq!(output(&p, vec![tensor(F32, &[3], |_| 1.0)]), [2.0; 3]);
    let shared_read = kernel("A: inout f32[N], O: out f32[N]", "grid N as i\nO[i] = A[0]");
    output(&shared_read, vec![tensor(F32, &[3], |_| 1.0), out(F32, &[3])]);
}

#[test]
fn atomics_of_blocks_are_excepted_but_plain_reads_are_not() {
    let p = kernel(
        "A: f32[N], S: inout f32[1]",
        "grid ceildiv(N, 8) as i\natomic_add(S[0 +: 1], sum(A[i*8 +: 8]))",
    );
    let mut args = vec![tensor(F32, &[33], |_| 1.0), tensor(F32, &[1], |_| 0.0)];
    run(&p, &mut args).unwrap();
    assert_eq!(values(&args[1]), [33.0]);
    let p =
        kernel("C: inout i32[1], O: out i32[N]", "grid N as i\nlet n = atomic_add(C[0], 1)\nO[i] = C[0] + n");
    faults(&p, vec![tensor(I32, &[1], |_| 0.0), out(I32, &[3])], codes::RACE_BLOCKS);
}

#[test]
fn every_element_of_an_out_is_written() {
    let p = kernel("O: out f32[N]", "grid 1 as i\nO[0 +: 8] = 1.0");
    output(&p, vec![out(F32, &[8])]);
    let f = faults(&p, vec![out(F32, &[11])], codes::NOT_COVERED);
    assert_eq!((f.index, f.values[0].1.as_str()), (Some(vec![8]), "3 of 11"));
    let options = Options { require_coverage: false, ..Options::default() };
    let mut args = vec![out(F32, &[11])];
    run_host(&p, &[], &mut args, &options).unwrap();
    assert_eq!(args[0].tensor().unwrap().poison.iter().filter(|p| **p).count(), 3);
}

#[test]
fn an_out_holds_nothing_on_entry() {
    let p = kernel("O: out f32[N]", "grid 1 as i\nlet x = O[0]\nO[0 +: 8] = x");
    let f = faults(&p, vec![tensor(F32, &[8], noise)], codes::READ_POISON);
    assert!(f.message.contains("`O[0]`"), "{f}");
    let p = kernel("O: out f32[N]", "grid 1 as i\nO[0 +: 8] = 1.0\nlet x = O[0]\nO[0 +: 8] = x + O[7]");
    assert_eq!(output(&p, vec![out(F32, &[8])]), [2.0; 8]);
}

const TWO_PASS: &str = "
kernel parts(A: f32[N], P: out f32[B]) {
    grid B as i
    P[i] = sum(A[i*8 +: 8])
}
kernel join(P: f32[B], O: out f32[1]) {
    grid 1 as g
    var s: f32 = 0
    for i in 0..B { s += P[i] }
    O[0] = s
}
op total(A: f32[N], O: out f32[1]) {
    workspace P: f32[ceildiv(N, 8)]
    launch parts(A, P)
    launch join(P, O)
}";

#[test]
fn an_op_launches_kernels_over_a_workspace() {
    let p = text(TWO_PASS, "total");
    for n in [0usize, 1, 33, 1000] {
        let sums: Vec<f32> = (0..n.div_ceil(8))
            .map(|b| (b * 8..(b * 8 + 8).min(n)).fold(0f32, |s, i| s + noise(i) as f32))
            .collect();
        let want = sums.iter().fold(0f32, |s, &v| s + v);
        assert_eq!(
            output(&p, vec![tensor(F32, &[n as i64], noise), out(F32, &[1])]),
            [f64::from(want)],
            "N = {n}"
        );
    }
}

#[test]
fn a_workspace_holds_nothing_before_it_is_written() {
    let source = TWO_PASS.replace("launch parts(A, P)\n", "");
    let f =
        faults(&text(&source, "total"), vec![tensor(F32, &[9], noise), out(F32, &[1])], codes::READ_POISON);
    assert_eq!((f.tensor.as_deref(), f.kernel.as_deref()), (Some("P"), Some("join")));
}

#[test]
fn a_zeroed_workspace_is_restored() {
    let source = |reset: &str| {
        format!(
            "kernel count(C: inout i32[1], O: out i32[1]) {{\ngrid 1 as g\nlet n = atomic_add(C[0], 1)\nO[0] = n\n{reset}\n}}\n\
             op go(O: out i32[1]) {{\nworkspace C: i32[1] = 0\nlaunch count(C, O)\n}}"
        )
    };
    assert_eq!(output(&text(&source("C[0] = 0"), "go"), vec![out(I32, &[1])]), [0.0]);
    let f = faults(&text(&source(""), "go"), vec![out(I32, &[1])], codes::NOT_RESTORED);
    assert_eq!((f.tensor.as_deref(), f.index), (Some("C"), Some(vec![0])));
}

#[test]
fn an_op_branches_and_loops_over_dims() {
    let p = text(
        "kernel inc(X: inout i32[N], by: i32) {\ngrid 1 as g\nX[0 +: 64] = X[0 +: 64] + by\n}\n\
         op go(X: inout i32[N], by: i32) {\nif N > 4 { launch inc(X, by) } else { launch inc(X, 0 - by) }\nfor i in 0..N { launch inc(X, i32(i)) }\n}",
        "go",
    );
    let go = |n: i64| {
        let mut args = vec![tensor(I32, &[n], |_| 0.0), scalar(10)];
        run(&p, &mut args).unwrap();
        values(&args[0])[0]
    };
    assert_eq!((go(5), go(3), go(1)), (20.0, -7.0, -10.0));
}

#[test]
fn heads_are_checked_at_launch() {
    let p = text(
        "kernel k(A: f32[M, N], S: f32[M/2], O: out f32[N]) where M % 2 == 0 {\ngrid 1 as g\nO[0 +: 8] = A[0, 0 +: 8]\n}",
        "k",
    );
    let a = |m: i64, n: i64| tensor(F32, &[m, n], noise);
    let s = |m: i64| tensor(F32, &[m], noise);
    assert_eq!(infer_dims(&p, &[a(4, 3), s(2), out(F32, &[3])]).unwrap().len(), 2);
    output(&p, vec![a(4, 3), s(2), out(F32, &[3])]);
    let f = faults(&p, vec![a(4, 3), s(3), out(F32, &[3])], codes::BIND_SHAPE);
    assert!(f.message.contains("axis 0 of `S` has 3 elements"), "{f}");
    faults(&p, vec![a(4, 3), s(2), out(F32, &[4])], codes::BIND_SHAPE);
    let f = faults(&p, vec![a(3, 3), s(1), out(F32, &[3])], codes::BIND_CONDITION);
    assert!(f.message.contains("`M % 2 == 0`"), "{f}");
    assert!(f.values.contains(&("M".to_string(), "3".to_string())));
    faults(&p, vec![tensor(I32, &[4, 3], noise), s(2), out(F32, &[3])], codes::BIND_DTYPE);
    faults(&p, vec![tensor(F32, &[4], noise), s(2), out(F32, &[3])], codes::BIND_RANK);
    faults(&p, vec![scalar(1), s(2), out(F32, &[3])], codes::BIND_ARGUMENT);
    faults(&p, vec![a(4, 3)], codes::BIND_ARGUMENT);
    let mut short = Tensor::from_f64(F32, &[4, 3], &[0.0; 12]);
    short.bits.truncate(11);
    faults(&p, vec![short.into(), s(2), out(F32, &[3])], codes::BIND_SIZE);
}

#[test]
fn one_memory_under_two_names_is_read_only() {
    let source = |second: &str| {
        format!(
            "kernel k(A: f32[N], B: {second}f32[N], O: out f32[N]) {{\ngrid 1 as g\nO[0 +: 8] = A[0 +: 8] + B[0 +: 8]\n}}\n\
             op go(X: inout f32[N], O: out f32[N]) {{\nlaunch k(X, X, O)\n}}"
        )
    };
    let args = || vec![tensor(F32, &[3], |_| 1.0), out(F32, &[3])];
    assert_eq!(output(&text(&source(""), "go"), args()), [2.0; 3]);
    let f = faults(&text(&source("inout "), "go"), args(), codes::BIND_OVERLAP);
    assert!(f.message.contains("`A` and `B`"), "{f}");
}

#[test]
fn a_kernel_of_a_program_runs_alone() {
    let p = text(TWO_PASS, "total");
    let parts = p.kernels.iter().find(|(_, k)| k.name == "parts").unwrap().0;
    let mut args: Vec<ArgValue> = vec![tensor(F32, &[9], |_| 1.0), out(F32, &[2])];
    run_kernel(&p, parts, &[], &mut args, &Options::default()).unwrap();
    assert_eq!(values(&args[1]), [8.0, 1.0]);
}

#[test]
fn prints_and_assertions() {
    let p = kernel(
        "A: f32[N], O: out f32[N]",
        "grid 1 as g\nlet x = A[0 +: 4]\nprint(\"x is \", x, \" of \", N)\nassert(N < 4, \"too long\")\nO[0 +: 4] = x",
    );
    let mut args = vec![tensor(F32, &[2], |i| 0.5 + i as f64), out(F32, &[2])];
    assert_eq!(run(&p, &mut args).unwrap().prints, ["x is [4] valid [0..2]: 0.5 1.5 of 2"]);
    let f = faults(&p, vec![tensor(F32, &[4], noise), out(F32, &[4])], codes::ASSERT_FAILED);
    assert_eq!(f.message, "too long");
    assert_eq!(f.before.prints, ["x is [4]: 0.578143 -0.15471566 0.83353686 0.18545043 of 4"]);
}

#[test]
fn prints_beyond_what_is_kept_are_counted() {
    let p = kernel("A: f32[N], O: out f32[N]", "grid N as i\nfor j in 0..6 { print(j) }\nO[i] = A[i]");
    let report = run(&p, &mut [tensor(F32, &[2000], noise), out(F32, &[2000])]).unwrap();
    assert_eq!((report.prints.len(), report.more_prints), (10_000, 2_000));
}

/// Each would take the process down, or the machine, if it were simply asked for.
#[test]
fn memory_that_cannot_be_had() {
    let head = "A: f32[N], O: out f32[N]";
    for (body, words, help) in [
        (
            "grid 1 as b\nthreads 32 as t\nvar a: f32[250000000]\na[0] = A[0]\nO[t] = a[0]",
            "`a` takes [250000000] elements for each of 32 threads",
            "fewer threads",
        ),
        (
            "grid 1 as b\nthreads 32 as t\nshared s: f32[4096, 8192]\nshared r: f32[1]\ns[0, 0] = A[0]\nO[t] = s[0, 0]",
            "`r` takes [1] elements, more than",
            "declare less memory",
        ),
        (
            "grid 1 as b\nlet x = A[0 +: 200000000] pad 0\nO[0 +: 1] = sum(x)",
            "`k` works on tiles that are more than the interpreter holds",
            "smaller tiles",
        ),
    ] {
        let p = kernel(head, body);
        let f = faults(&p, vec![tensor(F32, &[32], noise), out(F32, &[32])], codes::MEMORY);
        assert!(f.message.contains(words) && f.span.is_some(), "{f:#?}");
        assert!(f.help.as_ref().is_some_and(|h| h.contains(help)), "{f:#?}");
    }
}

#[test]
fn a_fault_reads_as_a_diagnostic() {
    let p = kernel("O: out f32[N]", "grid ceildiv(N, 4) as i\nO[i*4 +: 5] = 1.0");
    let d = faults(&p, vec![out(F32, &[9])], codes::RACE_BLOCKS).to_diagnostic();
    assert_eq!((d.code, d.secondary.len(), d.help.len()), (codes::RACE_BLOCKS, 1, 1));
    assert!(d.notes.iter().any(|n| n.starts_with("in kernel `k`, block (i = ")), "{:?}", d.notes);
}
