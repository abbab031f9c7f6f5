//! Schedules: which block takes which tile and in which order, the meaning under each, and what is refused.

mod common;
mod support;

use common::{library, passed, program};
use pantile_ir::DType::*;
use pantile_ir::codes;
use pantile_ir::diag::{Code, Diagnostics};
use pantile_ir::elab::Request;
use pantile_ir::interp::{ArgValue, Options, Tensor, run_host};
use pantile_ir::print::print;
use pantile_ir::program::plan::{Entry, Key, Value};
use pantile_ir::program::schedule::Schedule;
use pantile_ir::program::*;
use pantile_ir::span::Span;
use pantile_ir::target::Arch;
use pantile_ir::verify::verify;
use pantile_passes::pipeline::{self, Cx};
use pantile_passes::{abi, plan, schedule, simplify, verify_order};
use std::collections::HashMap;
use support::{arch, args, counts, options, run};

const ONE: [&str; 5] = [
    "grid",
    "persistent(blocks = 1)",
    "persistent(blocks = 2)",
    "persistent(blocks = 5)",
    "persistent(blocks = 100000)",
];
const MORE: [&str; 14] = [
    "grid",
    "grid(raster = rows)",
    "grid(raster = columns)",
    "grid(group = 3)",
    "grid(raster = rows, group = 2)",
    "grid(raster = columns, group = 3)",
    "grid(raster = columns, group = 65535)",
    "persistent(blocks = 1)",
    "persistent(blocks = 4)",
    "persistent(blocks = 3, group = 2)",
    "persistent(blocks = 2, raster = rows, group = 8)",
    "persistent(raster = columns, group = 2, blocks = 5)",
    "persistent(raster = columns, blocks = 7)",
    "persistent(blocks = 2147483647, raster = rows, group = 3)",
];

/// The text with a schedule in each kernel's plan.
fn with(text: &str, schedule: &str) -> String {
    text.replace("PLAN", &format!("plan {{ schedule = {schedule} }}"))
}

#[track_caller]
fn checked(text: &str, arch: &Arch) -> Program {
    let p = program(text, &Request::new("k"), arch);
    verify(&p, arch).unwrap_or_else(|d| panic!("{d:#?}\n{text}"));
    p
}

/// The program that the pass leaves; it verifies and reads back.
#[track_caller]
fn scheduled(p: &Program, arch: &Arch) -> Program {
    let p = passed(plan::run, passed(simplify::run, p.clone(), Stage::Tile, arch), Stage::Tile, arch);
    let p = passed(schedule::run, p, Stage::Scheduled, arch);
    assert!(p.kernels.iter().all(|(_, k)| k.plan.get(Key::Schedule, None).is_none()), "{}", print(&p));
    p
}

/// The program that all passes leave, the replay of barriers among them.
#[track_caller]
fn through(p: &Program, arch: &Arch) -> Program {
    let cx = Cx { arch };
    let checked = |pass: &'static pipeline::Pass, p: &Program| {
        verify(p, arch).unwrap_or_else(|d| panic!("{}: {d:#?}\n{}", pass.name, print(p)));
        Ok(())
    };
    pipeline::run(p.clone(), &cx, checked).unwrap_or_else(|d| panic!("{d:#?}\n{}", print(p)))
}

/// Before, after the pass and after all of them the tensors are the same.
#[track_caller]
fn same(text: &str, dims: &[&[(&str, i64)]], arch: &Arch) {
    let p = checked(text, arch);
    for q in [scheduled(&p, arch), through(&p, arch)] {
        for dims in dims {
            let a = run(&p, args(&p, dims), arch).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let b = run(&q, args(&p, dims), arch)
                .unwrap_or_else(|e| panic!("{} {dims:?}: {e}\n{}", arch.name, print(&q)));
            assert_eq!(a, b, "{} {dims:?}\n{}", arch.name, print(&q));
        }
    }
}

fn targets() -> Vec<Arch> {
    ["sm_80", "mp_22"].map(arch).into()
}

const VECTOR: &str = "kernel k(X: f32[N], Y: out f32[N]) {
    grid ceildiv(N, 64) as i
    PLAN
    Y[i*64 +: 64] = X[i*64 +: 64] * 2.0 + 1.0
}";
const MATRIX: &str = "kernel k(X: f32[M, N], Y: out f32[M, N]) {
    grid (ceildiv(M, 4), ceildiv(N, 32)) as (i, j)
    PLAN
    Y[i*4 +: 4, j*32 +: 32] = X[i*4 +: 4, j*32 +: 32] * 2.0
}";
const BATCH: &str = "kernel k(X: f32[B, M, N], Y: out f32[B, M, N]) {
    grid (B, ceildiv(M, 4), ceildiv(N, 16)) as (b, i, j)
    PLAN
    Y[b, i*4 +: 4, j*16 +: 16] = X[b, i*4 +: 4, j*16 +: 16] + 1.0
}";
const GEMM: &str = "kernel k(A: f32[M, K], B: f32[K, N], C: out f32[M, N]) {
    grid (ceildiv(M, 16), ceildiv(N, 16)) as (i, j)
    PLAN
    var c = zeros f32[16, 16]
    for s in 0..ceildiv(K, 8) {
        c += A[i*16 +: 16, s*8 +: 8] @ B[s*8 +: 8, j*16 +: 16]
    }
    C[i*16 +: 16, j*16 +: 16] = c
}";
const ROWS: &str = "kernel k(X: f32[M, N], Y: out f32[M]) {
    grid M as i
    PLAN
    var s = zeros f32[64]
    for c in 0..ceildiv(N, 64) { s += X[i, c*64 +: 64] }
    Y[i] = sum(s)
}";
const SHARED: &str = "kernel k(X: i32[M, N], Y: out i32[M, N]) {
    grid (M, ceildiv(N, 64)) as (r, c)
    threads 64 as t
    PLAN
    shared s: i32[64]
    s[t] = X[r, c*64 + t] or 0
    let x = s[63 - t] + s[(t + 17) % 64]
    s[t] = x
    if c*64 + t < N { Y[r, c*64 + t] = s[t] + s[63 - t] }
}";

#[test]
fn one_axis_keeps_its_meaning() {
    for arch in targets() {
        for schedule in ONE {
            let n: Vec<[(&str, i64); 1]> = [0, 1, 33, 64, 65, 997].map(|n| [("N", n)]).into();
            same(&with(VECTOR, schedule), &n.iter().map(|d| &d[..]).collect::<Vec<_>>(), &arch);
            let rows: [&[(&str, i64)]; 4] = [
                &[("M", 1), ("N", 1)],
                &[("M", 7), ("N", 130)],
                &[("M", 0), ("N", 5)],
                &[("M", 13), ("N", 0)],
            ];
            same(&with(ROWS, schedule), &rows, &arch);
        }
    }
}

#[test]
fn two_axes_keep_their_meaning() {
    let sizes: [&[(&str, i64)]; 6] = [
        &[("M", 1), ("N", 1), ("K", 3)],
        &[("M", 33), ("N", 97), ("K", 11)],
        &[("M", 0), ("N", 40), ("K", 2)],
        &[("M", 40), ("N", 0), ("K", 2)],
        &[("M", 29), ("N", 129), ("K", 0)],
        &[("M", 16), ("N", 64), ("K", 16)],
    ];
    for arch in targets() {
        for schedule in MORE {
            same(&with(MATRIX, schedule), &sizes, &arch);
            same(&with(SHARED, schedule), &sizes, &arch);
            same(&with(GEMM, schedule), &sizes, &arch);
        }
    }
}

#[test]
fn three_axes_keep_their_meaning() {
    let sizes: [&[(&str, i64)]; 4] = [
        &[("B", 1), ("M", 1), ("N", 1)],
        &[("B", 3), ("M", 13), ("N", 37)],
        &[("B", 0), ("M", 5), ("N", 5)],
        &[("B", 2), ("M", 0), ("N", 5)],
    ];
    let arch = arch("sm_80");
    MORE.iter().for_each(|schedule| same(&with(BATCH, schedule), &sizes, &arch));
}

/// A grid of tiles that each count once, and note when their block came.
fn order_text(axes: usize, schedule: &str) -> String {
    let names = ["p", "q", "b", "i", "j"];
    let dims = ["P", "Q", "B", "M", "N"];
    let (names, dims) = (&names[5 - axes..], &dims[5 - axes..]);
    let (at, shape) = (names.join(", "), dims.join(", "));
    let (grid, index) =
        if axes == 1 { (shape.clone(), at.clone()) } else { (format!("({shape})"), format!("({at})")) };
    with(
        &format!(
            "kernel k(next: inout i32[1], Y: inout i32[{shape}], at: out i32[{shape}]) {{
    grid {grid} as {index}
    threads 32 as t
    PLAN
    if t == 0 {{
        atomic_add(Y[{at}], 1)
        let old = atomic_add(next[0], 1)
        at[{at}] = old
    }}
}}"
        ),
        schedule,
    )
}

/// In which order the blocks, one after the other, come to the tiles, by the tiles' numbers in memory.
#[track_caller]
fn order(p: &Program, shape: &[i64], arch: &Arch) -> Vec<usize> {
    let n = shape.iter().product::<i64>() as usize;
    let zeros = |shape: &[i64], n| ArgValue::from(Tensor::from_f64(I32, shape, &vec![0.0; n]));
    let mut all = vec![zeros(&[1], 1), zeros(shape, n), Tensor::unwritten(I32, shape).into()];
    // blocks as they are numbered
    let options = Options { seed: 0, ..options(arch) };
    run_host(p, &[], &mut all, &options).unwrap_or_else(|f| panic!("{f:#?}\n{}", print(p)));
    let taken = all[1].tensor().unwrap().to_f64();
    assert!(taken.iter().all(|&n| n == 1.0), "{shape:?} {taken:?}\n{}", print(p));
    let at = all[2].tensor().unwrap().to_f64();
    let mut order = vec![0; n];
    at.iter().enumerate().for_each(|(tile, &when)| order[when as usize] = tile);
    order
}

/// The order in which tiles are numbered, written down once more: bands, the tiles across a band first.
fn bands(shape: &[i64], rows: bool, group: i64) -> Vec<usize> {
    let (r, c) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let planes = shape.iter().rev().skip(2).product::<i64>();
    let (slow, fast) = if rows { (r, c) } else { (c, r) };
    let mut out = Vec::new();
    for plane in 0..planes {
        for first in (0..slow).step_by(group as usize) {
            for along in 0..fast {
                for s in first..(first + group).min(slow) {
                    let (i, j) = if rows { (s, along) } else { (along, s) };
                    out.push((plane * r * c + i * c + j) as usize);
                }
            }
        }
    }
    out
}

/// Blocks come in order: each takes its tiles, one after the other.
fn by_blocks(order: &[usize], blocks: usize) -> Vec<usize> {
    (0..blocks.min(order.len())).flat_map(|b| order.iter().skip(b).step_by(blocks).copied()).collect()
}

#[test]
fn every_tile_is_taken_once_and_in_order() {
    let arch = arch("sm_80");
    let shapes: [&[i64]; 9] =
        [&[1, 1], &[5, 7], &[1, 33], &[33, 1], &[8, 3], &[0, 4], &[3, 5, 7], &[1, 0, 2], &[2, 3, 2, 3, 5]];
    for shape in shapes {
        for (raster, rows) in [("rows", true), ("columns", false)] {
            for group in [1, 2, 3, 8] {
                let walk = format!("raster = {raster}, group = {group}");
                let want = bands(shape, rows, group);
                let text = order_text(shape.len(), &format!("grid({walk})"));
                let p = checked(&text, &arch);
                for q in [scheduled(&p, &arch), through(&p, &arch)] {
                    assert_eq!(order(&q, shape, &arch), want, "{walk} {shape:?}\n{}", print(&q));
                }
                for blocks in [1, 4, 1000] {
                    let text = order_text(shape.len(), &format!("persistent(blocks = {blocks}, {walk})"));
                    let p = checked(&text, &arch);
                    let want = by_blocks(&want, blocks);
                    for q in [scheduled(&p, &arch), through(&p, &arch)] {
                        assert_eq!(order(&q, shape, &arch), want, "{walk} {shape:?}\n{}", print(&q));
                    }
                }
            }
        }
    }
}

#[test]
fn the_first_band_is_walked_before_the_next() {
    let arch = arch("sm_80");
    let p = scheduled(&checked(&order_text(2, "grid(raster = rows, group = 2)"), &arch), &arch);
    // rows 0 and 1 of 3 x 4 tiles, column by column, then row 2
    assert_eq!(order(&p, &[3, 4], &arch), [0, 4, 1, 5, 2, 6, 3, 7, 8, 9, 10, 11]);
    let p = scheduled(&checked(&order_text(2, "grid(raster = columns, group = 3)"), &arch), &arch);
    assert_eq!(order(&p, &[3, 4], &arch), [0, 1, 2, 4, 5, 6, 8, 9, 10, 3, 7, 11]);
}

#[test]
fn one_axis_is_shared_out() {
    let arch = arch("sm_80");
    for n in [0, 1, 5, 33] {
        for blocks in [1, 3, 33, 34] {
            let p = checked(&order_text(1, &format!("persistent(blocks = {blocks})")), &arch);
            let plain: Vec<usize> = (0..n as usize).collect();
            for q in [scheduled(&p, &arch), through(&p, &arch)] {
                assert_eq!(order(&q, &[n], &arch), by_blocks(&plain, blocks), "{}", print(&q));
            }
        }
    }
}

/// The blocks of a launch.
fn blocks(p: &Program, dims: &[i64]) -> Vec<i64> {
    let k = &abi::describe(p).unwrap().kernels[0];
    let dims: Vec<Option<i64>> = dims.iter().copied().map(Some).collect();
    let values = pantile_abi::Values { dims: &dims, ..Default::default() };
    let value = |e: &pantile_abi::IExpr| e.eval(values).unwrap();
    k.grid.iter().map(value).collect()
}

#[test]
fn launches_have_the_new_grid() {
    let arch = arch("sm_80");
    let of = |schedule: &str| through(&checked(&order_text(2, schedule), &arch), &arch);
    assert_eq!(blocks(&of("grid"), &[5, 7]), [5, 7]);
    assert_eq!(blocks(&of("grid(group = 2)"), &[5, 7]), [35]);
    let p = of("persistent(blocks = 8)");
    assert_eq!(blocks(&p, &[5, 7]), [8]);
    assert_eq!(blocks(&p, &[1, 7]), [7]);
    assert_eq!(blocks(&p, &[0, 7]), [0]);
    // more tiles than 32 bits can number
    assert_eq!(blocks(&p, &[1 << 20, 1 << 20]), [8]);
}

/// Extents below 0 launch nothing, also where two of them would make a number of tiles.
#[test]
fn extents_below_zero_are_no_tiles() {
    let arch = arch("sm_80");
    let text = "kernel k(X: i32[M, N], Y: inout i32[M, N]) {
        grid (M - 5, N - 5) as (i, j)
        threads 32 as t
        PLAN
        if t == 0 { Y[i, j] = X[i, j] }
    }";
    for schedule in MORE {
        same(
            &with(text, schedule),
            &[&[("M", 2), ("N", 3)], &[("M", 7), ("N", 3)], &[("M", 9), ("N", 8)]],
            &arch,
        );
    }
}

/// The default changes nothing.
#[test]
fn the_grid_stays_as_it_is() {
    let arch = arch("sm_80");
    for text in [VECTOR, MATRIX, BATCH, GEMM] {
        let without = text.replace("    PLAN\n", "");
        let want = print(&scheduled(&checked(&without, &arch), &arch));
        assert_eq!(print(&scheduled(&checked(&with(text, "grid"), &arch), &arch)), want);
    }
}

/// Memory of a tile is used again by the next one: a barrier lies between, and the replay misses it.
#[test]
fn tiles_of_a_block_wait_for_each_other() {
    let text = "kernel k(X: i32[N], Y: out i32[N]) {
        grid ceildiv(N, 64) as c
        threads 64 as t
        PLAN
        shared s: i32[64]
        s[t] = X[c*64 + t] or 0
        if c*64 + t < N { Y[c*64 + t] = s[63 - t] }
    }";
    for arch in targets() {
        for blocks in [1, 132, 1 << 20] {
            let once = through(&checked(&with(text, "grid"), &arch), &arch);
            assert_eq!(counts(&once).block_barriers, 1, "{}", print(&once));
            let text = with(text, &format!("persistent(blocks = {blocks})"));
            let p = through(&checked(&text, &arch), &arch);
            assert_eq!(counts(&p).block_barriers, 2, "{}", print(&p));
            let (cx, all) = (Cx { arch: &arch }, barriers(&p));
            assert!(verify_order::run(p.clone(), &cx).is_ok());
            for n in 0..all {
                let mutant = without_barrier(&p, n);
                assert!(verify_order::run(mutant.clone(), &cx).is_err(), "{}", print(&mutant));
            }
        }
    }
}

fn barriers(p: &Program) -> usize {
    let c = counts(p);
    c.block_barriers + c.warp_barriers
}

fn without_barrier(p: &Program, n: usize) -> Program {
    fn drop(b: &mut Block, left: &mut usize) {
        b.retain(|s| {
            let barrier = matches!(s.kind, StmtKind::Op { op: Op::Barrier { .. }, .. });
            let found = barrier && *left == 0;
            *left = left.wrapping_sub(usize::from(barrier));
            !found
        });
        b.iter_mut().flat_map(|s| s.kind.blocks_mut()).for_each(|inner| drop(inner, left));
    }
    let mut p = p.clone();
    let id = p.kernels.handles().next().unwrap();
    let mut left = n;
    drop(&mut p.kernels[id].stmts, &mut left);
    p
}

#[test]
fn a_cost_of_old_indices_is_gone() {
    let arch = arch("sm_80");
    let text = "kernel k(X: i32[M, N], Y: out i32[M, N]) {
        grid (M, N) as (i, j) cost = i*2 + N
        threads 32 as t
        PLAN
        if t == 0 { Y[i, j] = X[i, j] }
    }";
    for schedule in MORE {
        same(&with(text, schedule), &[&[("M", 3), ("N", 5)]], &arch);
    }
}

/// Kernels of the library under schedules that their grids admit.
#[test]
fn the_library_keeps_its_meaning() {
    let arch = arch("sm_80");
    let kernels = [
        ("transpose.tile", "transpose", 2),
        ("columns.tile", "reduce_cols", 1),
        ("gemm.tile", "gemm_tiled", 2),
    ];
    let dims = [("M", 70), ("N", 40), ("R", 37), ("C", 70), ("K", 24), ("B", 2)];
    for (file, name, axes) in kernels {
        let p = library(file, &Request::new(name).with_type("T", F16), &arch);
        let list: &[&str] = if axes == 1 { &ONE } else { &MORE };
        let want = run(&p, args(&p, &dims), &arch).unwrap();
        for s in list {
            let mut p = p.clone();
            let ids: Vec<_> = p.kernels.handles().collect();
            ids.into_iter().for_each(|id| put(&mut p.kernels[id], s));
            let last = through(&p, &arch);
            let found =
                run(&last, args(&p, &dims), &arch).unwrap_or_else(|e| panic!("{e}\n{}", print(&last)));
            assert_eq!(want, found, "{name} {s}\n{}", print(&last));
        }
    }
}

/// Writes a schedule into a kernel's plan.
fn put(k: &mut Kernel, schedule: &str) {
    let text = with("kernel k(Y: out i32[M, N]) { grid (M, N) as (i, j)\nPLAN\nY[i, j] = 0 }", schedule);
    let p = program(&text, &Request::new("k"), &arch("sm_80"));
    let value = p.kernels.iter().next().unwrap().1.plan.get(Key::Schedule, None).unwrap().clone();
    let (key, subject, span) = (Key::Schedule, None, Span::default());
    k.plan.entries.push(Entry { key, subject, value, by_hand: true, refused: Vec::new(), span });
}

#[test]
fn the_target_says_how_many_blocks_are_at_work() {
    let arch = arch("sm_80");
    let of = |threads: u32, schedule: &str, arch: &Arch| {
        let text = VECTOR.replace("PLAN", &format!("threads {threads} as t\n    PLAN"));
        let text = text.replace("Y[i*64 +: 64] = X[i*64 +: 64] * 2.0 + 1.0", "if t == 0 { Y[i] = X[i] }");
        plan::run(checked(&with(&text, schedule), arch), &Cx { arch })
    };
    let value = |p: Result<Program, Diagnostics>| {
        let p = p.unwrap_or_else(|d| panic!("{d:#?}"));
        let k = p.kernels.iter().next().unwrap().1;
        k.plan.get(Key::Schedule, None).unwrap().to_string()
    };
    // 108 processors of 2048 threads and 32 blocks
    assert_eq!(value(of(256, "persistent", &arch)), "persistent(blocks = 864)");
    assert_eq!(value(of(32, "persistent", &arch)), "persistent(blocks = 3456)");
    assert_eq!(value(of(1024, "persistent()", &arch)), "persistent(blocks = 216)");
    assert_eq!(value(of(64, "persistent(blocks = 3)", &arch)), "persistent(blocks = 3)");
    let mut unknown = arch.clone();
    unknown.processors = None;
    assert_eq!(value(of(64, "persistent(blocks = 3)", &unknown)), "persistent(blocks = 3)");
    let refused = of(64, "persistent", &unknown).unwrap_err();
    told(&refused, codes::SCHEDULE_BLOCKS, "sm_80");
    // with rows and columns
    let text = with(MATRIX, "persistent(raster = columns, group = 2)");
    let p = plan::run(checked(&text, &arch), &Cx { arch: &arch }).unwrap();
    let k = p.kernels.iter().next().unwrap().1;
    let value = k.plan.get(Key::Schedule, None).unwrap();
    assert!(value.to_string().ends_with(", raster = columns, group = 2)"), "{value}");
    assert!(Schedule::read(value).is_ok());
    same(&text, &[&[("M", 33), ("N", 97)]], &arch);
}

/// One error of that code, at the plan's line, with a remedy.
#[track_caller]
fn told(d: &Diagnostics, code: Code, part: &str) {
    let all: Vec<_> = d.iter().collect();
    assert!(all.len() == 1 && all[0].code == code && all[0].message.contains(part), "{d:#?}");
    assert!(!all[0].help.is_empty(), "{d:#?}");
    let span = all[0].primary.span;
    assert!(span.end > span.start, "{d:#?}");
}

#[test]
fn values_that_cannot_be() {
    let arch = arch("sm_80");
    let wrong = [
        ("rows", "no schedule `rows`"),
        ("3", "`3` is no schedule"),
        ("diagonal(blocks = 2)", "`diagonal`"),
        ("grid(raster = snake)", "`snake`"),
        ("grid(group = 0)", "`group`"),
        ("grid(group = -2)", "`group`"),
        ("grid(group = 65536)", "`group`"),
        ("grid(group = rows)", "`group`"),
        ("grid(blocks = 2)", "no `blocks`"),
        ("grid(rows)", "has no name"),
        ("persistent(blocks = 0)", "`blocks`"),
        ("persistent(blocks = -1)", "`blocks`"),
        ("persistent(blocks = 2147483648)", "`blocks`"),
        ("persistent(blocks = 2, blocks = 3)", "twice"),
        ("persistent(blocks = 2, group = 1, group = 1)", "twice"),
        ("persistent(blocks = 2, order = 3)", "no `order`"),
    ];
    for (value, part) in wrong {
        let text = with(MATRIX, value);
        let p = program(&text, &Request::new("k"), &arch);
        told(&verify(&p, &arch).expect_err(value), codes::SCHEDULE, part);
    }
    for value in ["grid(raster = rows)", "grid(group = 2)", "persistent(blocks = 2, raster = columns)"] {
        let p = program(&with(VECTOR, value), &Request::new("k"), &arch);
        told(&verify(&p, &arch).expect_err(value), codes::SCHEDULE, "no rows and columns");
    }
    let of = MATRIX.replace("PLAN", "plan { schedule(i) = grid }");
    let p = program(&of, &Request::new("k"), &arch);
    told(&verify(&p, &arch).unwrap_err(), codes::SCHEDULE, "whole kernel");
}

#[test]
fn what_no_pass_makes_is_refused() {
    let arch = arch("sm_80");
    let refused = |text: &str| {
        let p = checked(text, &arch);
        let p = plan::run(p, &Cx { arch: &arch }).unwrap();
        schedule::run(p, &Cx { arch: &arch }).expect_err(text)
    };
    for value in ["dynamic", "dynamic(order = cost)", "splitk(loop = s, ways = 2, over = blocks)"] {
        told(&refused(&with(GEMM, value)), codes::UNSUPPORTED, "has no lowering yet");
    }
    let roles = "kernel k(X: f32[N, 64], Y: out f32[N, 64]) {
        grid N as i
        team load: 1 thread of 1 group
        team math: 1 groups of 128
        ring r[2] load -> math { x: shared f32[1, 64] } fill counted
        PLAN
        role load {
            let w = acquire r
            copy.async X[i +: 1, 0 +: 64] -> w.x
            commit w
        }
        role math {
            let q = wait r
            copy q.x -> Y[i +: 1, 0 +: 64]
            release q
        }
    }";
    told(&refused(&with(roles, "persistent(blocks = 2)")), codes::UNSUPPORTED, "roles or rings");
    let cluster = MATRIX.replace("PLAN", "plan { schedule = grid(group = 2); cluster = [2, 1] }");
    told(&refused(&cluster), codes::UNSUPPORTED, "clusters");
}

/// Names of the text and those that the pass makes do not meet.
#[test]
fn names_do_not_collide() {
    let arch = arch("sm_80");
    let text = "kernel k(worker: i32[M, N], tile_number: out i32[M, N]) {
        grid (M, N) as (band_first, band_tile)
        threads 32 as band_height
        PLAN
        if band_height == 0 { tile_number[band_first, band_tile] = worker[band_first, band_tile] }
    }";
    for schedule in MORE {
        same(&with(text, schedule), &[&[("M", 5), ("N", 7)]], &arch);
    }
}

/// A block's `break`s and `continue`s end its own loops, not the tile.
#[test]
fn jumps_stay_in_their_tile() {
    let arch = arch("sm_80");
    let text = "kernel k(X: i32[M, N], Y: out i32[M]) {
        grid M as i
        threads 32 as t
        PLAN
        var s: i32 = 0
        for j in 0..N {
            if X[i, j] < -5 { break }
            if X[i, j] > 5 { continue }
            s += X[i, j]
        }
        if t == 0 { Y[i] = s }
    }";
    for schedule in ONE {
        same(&with(text, schedule), &[&[("M", 33), ("N", 17)], &[("M", 1), ("N", 0)]], &arch);
    }
}

#[test]
fn every_kernel_of_a_program_has_its_own() {
    let arch = arch("sm_80");
    let text = "kernel a(X: i32[M, N], Y: out i32[M, N]) {
        grid (M, N) as (i, j)
        threads 32 as t
        plan { schedule = grid(raster = columns, group = 2) }
        if t == 0 { Y[i, j] = X[i, j] + 1 }
    }
    kernel b(X: i32[M, N], Y: out i32[M, N]) {
        grid (M, N) as (i, j)
        threads 32 as t
        if t == 0 { Y[i, j] = X[i, j] * 2 }
    }
    op k(X: i32[M, N], Y: out i32[M, N]) {
        workspace w: i32[M, N]
        launch a(X, w)
        launch b(w, Y)
    }";
    same(text, &[&[("M", 5), ("N", 7)]], &arch);
    let p = scheduled(&checked(text, &arch), &arch);
    let axes: HashMap<&str, usize> =
        p.kernels.iter().map(|(_, k)| (k.name.as_str(), k.grid.extents.len())).collect();
    assert_eq!((axes["a"], axes["b"]), (1, 2));
    assert!(matches!(Schedule::read(&Value::Name("grid".into())), Ok(Schedule::Grid(None))));
}
