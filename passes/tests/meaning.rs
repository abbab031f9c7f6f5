//! The passes of threads leave the meaning: library kernels under the interpreter before and after each.

mod support;

use pantile_ir::DType;
use pantile_ir::elab::Request;
use pantile_ir::print::print;
use pantile_ir::program::*;
use pantile_ir::target::Arch;
use pantile_ir::verify::verify;
use pantile_passes::pipeline::{Cx, Run};
use pantile_passes::{order, reduce, share, verify_order};
use support::*;

const PASSES: [(&str, Run); 4] = [
    ("reduce", reduce::run),
    ("share", share::run),
    ("order", order::run),
    ("verify-order", verify_order::run),
];

/// Runs all passes, comparing the tensors after each with those before.
#[track_caller]
fn through(p: &Program, dims: &[(&str, i64)], arch: &Arch) -> Program {
    let cx = Cx { arch };
    let expected = run(p, args(p, dims), arch).unwrap_or_else(|e| panic!("{e}\n{}", print(p)));
    let mut now = p.clone();
    for (name, pass) in PASSES {
        now = pass(now, &cx).unwrap_or_else(|d| panic!("{name}: {d:#?}\n{}", print(p)));
        let text = print(&now);
        verify(&now, arch).unwrap_or_else(|d| panic!("{name}: {d:#?}\n{text}"));
        let found =
            run(&now, args(p, dims), arch).unwrap_or_else(|e| panic!("{}, {name}: {e}\n{text}", arch.name));
        for (a, b) in expected.iter().flatten().zip(found.iter().flatten()) {
            let close = (a - b).abs() <= 1e-2 * (1.0 + a.abs());
            assert!(close || (a.is_nan() && b.is_nan()), "{}, {name}: {a} is now {b}\n{text}", arch.name);
        }
    }
    now
}

/// A file's text with the kernels alone.
fn file(path: &str) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn gemv_kernels() {
    let text = file("../kernels/gemv.tile");
    let text = text.split("// ---- tests").next().unwrap();
    let text = text.replace("use \"ref.tile\"::{ref_gemv, ref_gemv_alpha_beta}", "");
    let names =
        ["naive", "splitk", "splitk_tiled", "vectorized", "allreduce", "warp", "xcache", "alpha_beta"];
    for arch in archs() {
        for name in names {
            let request = Request::new(format!("gemv_{name}")).with_type("T", DType::F16);
            let p = compile(&text, &request, &arch);
            let last = through(&p, &[("N", 9), ("K", 300)], &arch);
            if name == "allreduce" {
                let c = counts(&last);
                assert_eq!((c.shuffles, c.block_barriers, c.warp_barriers), (5, 0, 0), "{}", print(&last));
            }
        }
    }
}

/// Every kernel of a file of cases that names its threads and has no tiles.
fn cases(path: &str) -> usize {
    let text = file(path);
    let text: Vec<&str> =
        text.split("\n\n").filter(|t| !t.starts_with("test ") && !t.starts_with("use ")).collect();
    let text = text.join("\n\n").lines().filter(|l| !l.starts_with("use ")).collect::<Vec<_>>().join("\n");
    let mut n = 0;
    for arch in archs() {
        for line in text.lines().filter(|l| l.starts_with("kernel ")) {
            let name = line[7..].split(['(', '<']).next().unwrap();
            let mut request = Request::new(name).with_type("T", DType::I32);
            for (key, value) in [("RT", 64), ("BY", 5), ("ROWS", 4), ("BINS", 7)] {
                if line.contains(&format!("const {key}:")) {
                    request = request.with_const(key, value);
                }
            }
            if !line.contains("<T") {
                request.types.clear();
            }
            let Ok(p) = try_compile(path, &text, &request, &arch) else { continue };
            let dims = [("R", 3), ("C", 96)];
            if has_tiles(&p) || run(&p, args(&p, &dims), &arch).is_err() {
                continue;
            }
            through(&p, &dims, &arch);
            n += 1;
        }
    }
    n
}

#[test]
fn cases_of_shared_memory() {
    assert!(cases("../tests/cases/shared.tile") >= 40);
}

#[test]
fn cases_of_reductions() {
    assert!(cases("../tests/cases/reductions.tile") >= 16);
}

#[test]
fn a_fold_of_any_width_waits_once() {
    let text = "kernel k<T: dtype, const RT: int>(X: T[RT], y: out T[RT]) {
        grid 1 as g
        threads RT as t
        y[t] = allreduce(add, X[t], over = t)
    }";
    for arch in archs() {
        for rt in [2, 7, 8, 11, 26, 48, 64, 100, 256, 1024] {
            for t in [DType::F16, DType::BF16, DType::I8, DType::F32] {
                let request = Request::new("k").with_type("T", t).with_const("RT", rt);
                let p = through(&compile(text, &request, &arch), &[], &arch);
                assert!(counts(&p).block_barriers <= 1, "{}", print(&p));
            }
        }
    }
}

#[test]
fn a_missing_barrier_is_a_race_in_the_last_stage() {
    let arch = arch("sm_80");
    let text = "kernel k(X: i32[64], y: out i32[64]) {
        grid 1 as g
        threads 64 as t
        shared s: i32[64]
        s[t] = X[t]
        y[t] = s[63 - t]
    }";
    let mut p = through(&compile(text, &Request::new("k"), &arch), &[], &arch);
    assert_eq!(counts(&p).block_barriers, 1);
    let id = p.kernels.handles().next().unwrap();
    p.kernels[id].stmts.retain(|s| !matches!(s.kind, StmtKind::Op { op: Op::Barrier { .. }, .. }));
    let fault = run(&p, args(&p, &[]), &arch).unwrap_err();
    assert!(fault.contains("thread"), "{fault}");
}
