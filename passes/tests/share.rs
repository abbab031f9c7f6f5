//! Shared memory after the whole pipeline: nobody waits for a bank, rows stay wide, bytes are used again.

#![allow(clippy::print_stdout)]

mod common;
mod support;

use common::{library, passed, program};
use pantile_ir::DType::{self, *};
use pantile_ir::elab::Request;
use pantile_ir::print::print;
use pantile_ir::program::*;
use pantile_ir::target::Arch;
use pantile_ir::verify::verify;
use pantile_passes::pipeline::{Cx, of};
use pantile_passes::{order, share, verify_order};
use support::{arch, args, run};

/// A program through every pass of its target.
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

/// Widths in bytes of accesses to tensors that are one access of several elements.
fn wide_bytes(k: &Kernel) -> Vec<u64> {
    let mut all = Vec::new();
    walk(&k.stmts, &mut |s| {
        let StmtKind::For { kind: LoopKind::Vectorized, segments, body, .. } = &s.kind else { return };
        let Some(Stmt { kind: StmtKind::Store { mem, value, .. }, .. }) = body.first() else { return };
        let Expr::Const { bits: n, .. } = k.body.exprs[segments[0].hi] else { return };
        let from = match k.body.exprs[*value] {
            Expr::Element { mem, .. } => Some(mem),
            _ => None,
        };
        for mem in [Some(*mem), from].into_iter().flatten() {
            if let Mem::Tensor(a) = mem
                && let ArgKind::Tensor(t) = &k.args[a].kind
            {
                all.push(n * u64::from(t.elem.bits()) / 8);
            }
        }
    });
    all
}

/// Most ways of reads and writes of the shared buffers; every access must be known.
#[track_caller]
fn ways(p: &Program, arch: &Arch) -> Vec<(String, u64, u64)> {
    let info = verify(p, arch).unwrap_or_else(|d| panic!("{d:#?}"));
    let k = p.kernels.iter().next().unwrap().1;
    let all = share::ways(k, &info.kernels[0], arch).into_iter();
    all.map(|(id, r, w)| {
        let known = |n: Option<u64>| n.unwrap_or_else(|| panic!("unknown places\n{}", print(p)));
        (k.buffers[id].name.clone(), known(r), known(w))
    })
    .collect()
}

const KERNELS: [(&str, &str); 5] = [
    ("transpose.tile", "transpose"),
    ("transpose.tile", "transpose_stack"),
    ("transpose.tile", "transpose_shared"),
    ("columns.tile", "reduce_cols"),
    ("columns.tile", "max_cols"),
];

fn made(file: &str, name: &str, t: DType, arch: &Arch) -> Program {
    compiled(library(file, &Request::new(name).with_type("T", t), arch), arch)
}

#[test]
fn columns_and_transposes_meet_no_bank_twice() {
    let mut bad = String::new();
    for arch in ["sm_80", "mp_31"].map(arch) {
        for (file, name) in KERNELS {
            for t in [F16, F32] {
                let p = made(file, name, t, &arch);
                let found = ways(&p, &arch);
                println!("{} {name} {t:?}: {found:?}", arch.name);
                if found.iter().any(|(_, r, w)| *r > 1 || *w > 1) {
                    bad += &format!("{} {name} {t:?}: {found:?}\n{}\n", arch.name, print(&p));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{bad}");
}

#[test]
fn plain_rows_would_meet() {
    let arch = arch("sm_80");
    for t in [F16, F32] {
        let mut p = made("transpose.tile", "transpose", t, &arch);
        let id = p.kernels.handles().next().unwrap();
        let buffers: Vec<_> = p.kernels[id].buffers.handles().collect();
        buffers.into_iter().for_each(|b| p.kernels[id].buffers[b].layout = None);
        let found = ways(&p, &arch);
        assert!(found.iter().any(|(_, r, _)| *r >= 8), "{found:?}");
    }
}

/// Padding would need more memory than there is: the swizzle needs none.
#[test]
fn rows_that_have_no_room_for_padding() {
    let mut small = arch("sm_80");
    let text = "kernel k(X: f32[32, 32], Y: out f32[32, 32]) {
        grid 1 as g
        threads (8, 32) as (a, b)
        shared s: f32[32, 32]
        for r in unroll(4) { s[r*8 + a, b] = X[r*8 + a, b] }
        for r in unroll(4) { Y[r*8 + a, b] = s[b, r*8 + a] }
    }";
    for (bytes, xor) in [(48 << 10, false), (4096, true)] {
        small.facts.shared.max_bytes.as_mut().unwrap().value = bytes;
        let before = program(text, &Request::new("k"), &small);
        let p = compiled(before.clone(), &small);
        let k = p.kernels.iter().next().unwrap().1;
        let layout = k.buffers.iter().find_map(|(_, b)| b.layout.clone()).unwrap();
        assert_eq!(layout.xor.is_some(), xor, "{}", print(&p));
        assert!(share::bytes(k) <= bytes.into());
        assert_eq!(ways(&p, &small), [("s".to_string(), 1, 1)], "{}", print(&p));
        let a = run(&before, args(&before, &[]), &small).unwrap();
        assert_eq!(a, run(&p, args(&p, &[]), &small).unwrap());
    }
}

#[test]
fn their_rows_stay_wide() {
    for arch in ["sm_80", "mp_31"].map(arch) {
        for (file, name) in [("transpose.tile", "transpose"), ("columns.tile", "reduce_cols")] {
            for t in [F16, F32] {
                let p = made(file, name, t, &arch);
                let wide = wide_bytes(p.kernels.iter().next().unwrap().1);
                println!("{} {name} {t:?}: {wide:?}", arch.name);
                assert!(wide.contains(&16), "{wide:?}\n{}", print(&p));
            }
        }
    }
}

#[test]
fn layouts_leave_the_meaning() {
    let arch = arch("sm_80");
    for (file, name) in KERNELS {
        for t in [F16, F32] {
            let before = library(file, &Request::new(name).with_type("T", t), &arch);
            let after = compiled(before.clone(), &arch);
            let dims = [("M", 40), ("N", 72), ("R", 5), ("C", 40), ("B", 1)];
            let a = run(&before, args(&before, &dims), &arch).unwrap();
            let b =
                run(&after, args(&after, &dims), &arch).unwrap_or_else(|e| panic!("{e}\n{}", print(&after)));
            assert_eq!(a, b, "{name}");
        }
    }
}

const TWO: &str = "kernel k(X: f32[512], Y: out f32[512]) {
    grid 1 as g
    threads 256 as t
    shared a: f32[512]
    shared b: f32[512]
    a[t] = X[t]
    a[t + 256] = X[t + 256]
    let x = a[511 - t]
    b[t] = x + 1.0
    b[t + 256] = x
    Y[t] = b[511 - t]
    Y[t + 256] = b[255 - t] EARLY
}";

#[test]
fn buffers_that_never_live_together_share_bytes() {
    for arch in ["sm_80", "mp_31"].map(arch) {
        for (early, together) in [("", false), (" + a[255 - t]", true)] {
            let text = TWO.replace("EARLY", early);
            let before = program(&text, &Request::new("k"), &arch);
            let stage = before.stage;
            let placed = passed(share::run, before.clone(), stage, &arch);
            let k = placed.kernels.iter().next().unwrap().1;
            let mut ranges: Vec<_> = share::ranges(k).into_values().collect();
            ranges.sort_by_key(|r| (r.start, r.end));
            let shared = ranges[0].end > ranges[1].start;
            assert_eq!(shared, !together, "{ranges:?}");
            assert_eq!(share::bytes(k), if together { 4096 } else { 2048 });
            let cx = Cx { arch: &arch };
            let ordered = order::run(placed, &cx).unwrap_or_else(|d| panic!("{d:#?}"));
            verify_order::run(ordered.clone(), &cx).unwrap_or_else(|d| panic!("{d:#?}\n{}", print(&ordered)));
            let a = run(&before, args(&before, &[]), &arch).unwrap();
            assert_eq!(a, run(&ordered, args(&ordered, &[]), &arch).unwrap());
        }
    }
}

#[test]
fn bytes_used_again_need_their_barrier() {
    let arch = arch("sm_80");
    let cx = Cx { arch: &arch };
    let text = TWO.replace("EARLY", "");
    let mut p = order::run(share::run(program(&text, &Request::new("k"), &arch), &cx).unwrap(), &cx).unwrap();
    let id = p.kernels.handles().next().unwrap();
    let is_barrier = |s: &Stmt| matches!(s.kind, StmtKind::Op { op: Op::Barrier { .. }, .. });
    let at: Vec<usize> =
        p.kernels[id].stmts.iter().enumerate().filter(|(_, s)| is_barrier(s)).map(|(i, _)| i).collect();
    assert_eq!(at.len(), 3, "{}", print(&p));
    p.kernels[id].stmts.remove(at[1]);
    assert!(verify_order::run(p, &cx).is_err(), "the second buffer overwrites what others still read");
}
