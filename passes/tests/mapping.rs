//! How kernels are mapped, counted in the last program: widths of accesses, exchanges, barriers.

#![allow(clippy::print_stdout)]

mod common;
mod support;

use common::{library, out, program, tensor};
use pantile_ir::DType::{self, *};
use pantile_ir::elab::{Request, Setting};
use pantile_ir::interp::{ArgValue, run_host};
use pantile_ir::print::print;
use pantile_ir::program::*;
use pantile_ir::target::Arch;
use pantile_passes::facts::facts;
use pantile_passes::pipeline::{Cx, of};
use support::{arch, archs, args, counts, options, run};

#[track_caller]
fn compiled(mut p: Program, arch: &Arch) -> Program {
    let cx = Cx { arch };
    for pass in of(arch.backend) {
        if let Some(run) = pass.run {
            p = run(p, &cx).unwrap_or_else(|d| panic!("{}: {d:#?}", pass.name));
        }
    }
    p
}

/// Accesses to tensors by bytes, loads and stores.
#[derive(Default, Debug)]
struct Widths {
    loads: Vec<u64>,
    stores: Vec<u64>,
    shared_atomics: usize,
}

fn widths(p: &Program) -> Widths {
    let mut found = Widths::default();
    for (_, k) in p.kernels.iter() {
        statements(k, &k.stmts, 1, &mut found);
    }
    found
}

fn statements(k: &Kernel, block: &Block, lanes: u64, found: &mut Widths) {
    for s in block {
        let mut roots = Vec::new();
        s.kind.operands(|e| roots.push(e));
        while let Some(e) = roots.pop() {
            k.body.exprs[e].operands(|o| roots.push(o));
            if let Expr::Element { mem: Mem::Tensor(a), .. } = k.body.exprs[e] {
                found.loads.push(bytes(k, a) * lanes);
            }
        }
        let mut lanes = lanes;
        match &s.kind {
            StmtKind::Store { mem: Mem::Tensor(a), .. } => found.stores.push(bytes(k, *a) * lanes),
            StmtKind::Op { op: Op::Atomic { at, .. }, .. } => {
                found.shared_atomics += usize::from(matches!(at.mem(), Mem::Buffer(_)))
            }
            StmtKind::For { kind: LoopKind::Vectorized, segments, .. } => {
                if let Expr::Const { bits, .. } = k.body.exprs[segments[0].hi] {
                    lanes = bits;
                }
            }
            _ => {}
        }
        s.kind.blocks().iter().for_each(|b| statements(k, b, lanes, found));
    }
}

fn bytes(k: &Kernel, a: ArgId) -> u64 {
    match &k.args[a].kind {
        ArgKind::Tensor(t) => u64::from(t.elem.bits()) / 8,
        ArgKind::Scalar(_) => 0,
    }
}

fn gemv(order: &str, rt: i64, t: DType, arch: &Arch) -> Program {
    let text = std::fs::read_to_string("../kernels/gemv.tile").unwrap();
    let text = text.split("// ---- tests").next().unwrap();
    let text = text.replace("use \"ref.tile\"::{ref_gemv, ref_gemv_alpha_beta}", "");
    let text = text.replace("threads (ROWS, RT) as (tn, tk)", order);
    let mut request = Request::new("gemv_allreduce").with_type("T", t);
    request.params.insert("RT".into(), Setting::Int(rt));
    program(&text, &request, arch)
}

const ORDERS: [&str; 2] = ["threads (ROWS, RT) as (tn, tk)", "threads (RT, ROWS) as (tk, tn)"];

#[test]
fn a_row_of_a_warp_is_five_exchanges_and_wide_loads() {
    for arch in ["sm_80", "mp_31"].map(arch) {
        for order in ORDERS {
            let before = gemv(order, 32, F16, &arch);
            let p = compiled(before.clone(), &arch);
            let c = counts(&p);
            assert_eq!((c.shuffles, c.block_barriers, c.warp_barriers), (5, 0, 0), "{}", print(&p));
            let w = widths(&p);
            println!("{} {order}: {w:?}\n{}", arch.name, facts(&p, &arch).unwrap()[0]);
            assert!(w.loads.iter().filter(|&&n| n == 16).count() >= 2, "{w:?}\n{}", print(&p));
            assert_eq!(w.shared_atomics, 0);
            for dims in [[("N", 5), ("K", 300)], [("N", 2), ("K", 256)], [("N", 3), ("K", 33)]] {
                let a = run(&before, args(&before, &dims), &arch).unwrap();
                assert_eq!(a, run(&p, args(&p, &dims), &arch).unwrap(), "{dims:?}");
            }
        }
    }
}

#[test]
fn folds_of_any_width_wait_once_at_most() {
    let text = include_str!("widths.tile");
    let cases = [("total", F16), ("total", BF16), ("total", I8), ("total", F32), ("best", F32)];
    for arch in archs() {
        let reach = arch.facts.threads.shuffle_width.as_ref().unwrap().value;
        assert!(arch.name == "toy" || reach == 32);
        for rt in [2, 7, 8, 11, 26, 48, 64, 100, 256, 1024] {
            let mut line = String::new();
            for (name, t) in cases {
                let request = Request::new(name).with_type("T", t).with_const("RT", rt);
                let before = program(text, &request, &arch);
                let p = compiled(before.clone(), &arch);
                let c = counts(&p);
                line += &format!(" {}/{}", c.shuffles, c.block_barriers);
                assert!(c.block_barriers <= 1, "{} {rt} {t:?}\n{}", arch.name, print(&p));
                narrow(&p, reach.into());
                let a = run(&before, args(&before, &[]), &arch).unwrap();
                assert_eq!(a, run(&p, args(&p, &[]), &arch).unwrap(), "{} {rt} {t:?}", arch.name);
            }
            println!("{} {rt}: shuffles/barriers{line}", arch.name);
        }
    }
}

/// No exchange reaches over `width` lanes.
#[track_caller]
fn narrow(p: &Program, width: u64) {
    for (_, k) in p.kernels.iter() {
        walk(&k.stmts, &mut |s| {
            if let StmtKind::Op { op: Op::Shuffle { kind, lane, .. }, .. } = &s.kind
                && *kind != ShuffleKind::Index
            {
                let Expr::Const { bits, .. } = k.body.exprs[*lane] else { panic!("{}", print(p)) };
                assert!(bits < width, "{}", print(p));
            }
        });
    }
}

const COPY: &str = "kernel k(X: f16[R, C], Y: out f16[R, C]) {
    grid R as r
    Y[r, 0 +: 8192] = X[r, 0 +: 8192]
}";
const SCALE: &str = "kernel k(X: f16[R, C], Y: out f16[R, C], s: f16) {
    grid R as r
    for c in 0..ceildiv(C, 1024) { Y[r, c*1024 +: 1024] = X[r, c*1024 +: 1024] * s }
}";

fn row_kernel(which: &str, arch: &Arch, width: Option<i64>) -> Program {
    let fixed = |text: &str| match width {
        Some(w) => text.replace("[R, C]", &format!("[R, {w}]")).replace("(C,", &format!("({w},")),
        None => text.to_string(),
    };
    match which {
        "softmax" if width.is_none() => {
            let request = Request::new("softmax_rows").with_type("T", F16).with_const("NB", 8192);
            library("rows.tile", &request, arch)
        }
        "softmax" => {
            let text = "kernel k(X: f16[R, C], Y: out f16[R, C]) {
                grid R as r
                let x = f32(X[r, 0 +: 8192])
                let e = exp(x - reduce(max, x))
                Y[r, 0 +: 8192] = f16(e / sum(e))
            }";
            // beyond the row the maximum must not see zeros
            let text = text.replace("8192", &width.unwrap().to_string());
            program(&fixed(&text), &Request::new("k"), arch)
        }
        "copy" => program(&fixed(COPY), &Request::new("k"), arch),
        _ => program(&fixed(SCALE), &Request::new("k"), arch),
    }
}

fn row_args(which: &str, width: i64) -> Vec<ArgValue> {
    let mut all = vec![tensor(F16, &[2, width]), out(F16, &[2, width])];
    if which == "scale" {
        all.push(ArgValue::Scalar(pantile_ir::num::from_f64(Elem::D(F16), 0.5).unwrap()));
    }
    all
}

fn values(p: &Program, mut all: Vec<ArgValue>, arch: &Arch) -> Vec<f64> {
    run_host(p, &[], &mut all, &options(arch)).unwrap_or_else(|f| panic!("{f:#?}\n{}", print(p)));
    all[1].tensor().unwrap().to_f64()
}

#[track_caller]
fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= 2e-3 * (a.abs() + 1e-3), "{a} is {b}");
    }
}

#[test]
fn rows_are_as_wide_as_their_alignment() {
    let arch = arch("sm_80");
    for which in ["copy", "scale", "softmax"] {
        for width in [33, 96, 1000, 1152, 4097, 8191] {
            let before = row_kernel(which, &arch, Some(width));
            let p = compiled(before.clone(), &arch);
            let w = widths(&p);
            let most = |all: &[u64]| all.iter().copied().max().unwrap_or(0);
            let want = if width % 8 == 0 { 16 } else { 2 };
            println!("{which} {width}: loads of {} bytes, stores of {}", most(&w.loads), most(&w.stores));
            assert_eq!((most(&w.loads), most(&w.stores)), (want, want), "{which} {width}\n{}", print(&p));
            close(
                &values(&before, row_args(which, width), &arch),
                &values(&p, row_args(which, width), &arch),
            );
        }
    }
}

#[test]
fn rows_of_unknown_length_have_a_wide_way() {
    let arch = arch("sm_80");
    for which in ["copy", "scale", "softmax"] {
        let before = row_kernel(which, &arch, None);
        let p = compiled(before.clone(), &arch);
        let w = widths(&p);
        assert!(w.loads.contains(&16) && w.stores.contains(&16), "{which}: {w:?}\n{}", print(&p));
        for width in [33, 96, 1000, 1152, 4097, 8191] {
            close(
                &values(&before, row_args(which, width), &arch),
                &values(&p, row_args(which, width), &arch),
            );
        }
    }
}
