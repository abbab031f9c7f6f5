//! Forms of the language one by one, as text: wide accesses, guards, swizzles, warps wider than the hardware's.
#![cfg(all(feature = "cuda", feature = "musa"))]

use pantile_backends::clike::{Source, emit};
use pantile_ir::codes;
use pantile_ir::diag::Diagnostics;
use pantile_ir::elab::{Library, Request, elaborate};
use pantile_ir::layout::{Axis, Digit, Dim, Layout, Shared, Xor};
use pantile_ir::program::{Program, Stage};
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets};

fn arch(name: &str) -> Arch {
    Targets::shipped().arch(name).expect("a shipped target").clone()
}

fn program(text: &str, arch: &Arch) -> Program {
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("t.tile", text, &mut sources);
    assert!(!diags.has_errors(), "{:?}", diags.iter().map(|d| &d.message).collect::<Vec<_>>());
    let made = elaborate(&lib, &Request::new("k"), arch, &mut sources);
    let mut program =
        made.unwrap_or_else(|d| panic!("{:?}", d.iter().map(|d| &d.message).collect::<Vec<_>>())).program;
    program.stage = Stage::Threaded;
    program
}

fn source(text: &str, name: &str) -> Result<Source, Diagnostics> {
    let arch = arch(name);
    emit(&program(text, &arch), &arch)
}

fn has(text: &str, name: &str, lines: &[&str]) {
    let made = source(text, name)
        .unwrap_or_else(|d| panic!("{:?}", d.iter().map(|d| &d.message).collect::<Vec<_>>()));
    for line in lines {
        assert!(made.text.contains(line), "`{line}` is missing:\n{}", made.text);
    }
}

fn refused(text: &str, name: &str, code: pantile_ir::diag::Code) {
    let diags = source(text, name).expect_err("a refusal");
    assert!(
        diags.iter().any(|d| d.code == code),
        "{:?}",
        diags.iter().map(|d| (d.code, &d.message)).collect::<Vec<_>>()
    );
}

const WIDE: &str = "kernel k(X: f16[N], Y: out f16[N]) where N % 256 == 0 {
    grid N/256 as b
    threads 32 as t
    let i = (b*32 + t)*8
    var a: f16[8]
    for v in vectorized(8) { a[v] = X[i + v] }
    for v in vectorized(8) { Y[i + v] = a[v] }
}";

#[test]
fn a_wide_access_is_one_call() {
    let lines = ["__align__(16) f16 a[8];", "copy_16(a, X + i);", "copy_16(Y + i, a);"];
    has(WIDE, "sm_80", &lines);
    has(WIDE, "mp_31", &lines);
    let made = source(WIDE, "sm_90a").expect("a source");
    assert_eq!(made.kernels[0].counts.wide, [16, 16]);
    assert!(!made.text.contains("from_f16"), "moved words are not converted:\n{}", made.text);
}

#[test]
fn programs_of_tiles_are_refused() {
    let arch = arch("sm_80");
    let mut p = program(WIDE, &arch);
    p.stage = Stage::Tile;
    assert!(emit(&p, &arch).is_err());
    let tiles = "kernel k(X: f32[N], Y: out f32[N]) {
    grid ceildiv(N, 32) as i
    Y[i*32 +: 32] = X[i*32 +: 32]
}";
    refused(tiles, "sm_80", codes::NOT_THREADED);
    refused(tiles, "mp_22", codes::NOT_THREADED);
}

#[test]
fn guards_are_lazy_and_only_where_needed() {
    let text = "kernel k(X: f32[N], Y: out f32[N]) {
    grid ceildiv(N, 64) as b
    threads 64 as t
    let i = b*64 + t
    let x = X[i - 1] or 0
    if i < N { Y[i] = x + (X[i] or 0) }
}";
    has(text, "sm_80", &["i - 1 >= 0 && i - 1 < N ? X[i - 1] : 0.0f", "i < N ? X[i] : 0.0f"]);
}

#[test]
fn integers_wrap_and_round_down() {
    let text = "kernel k(X: i32[N], Y: out i32[N]) {
    grid ceildiv(N, 64) as b
    threads 64 as t
    let i = b*64 + t
    if i < N {
        let x = X[i]
        Y[i] = (x + 7) * x / 3
    }
}";
    has(text, "sm_80", &["floor_div_i32((int)((u32)(int)((u32)x + 7u) * (u32)x), 3)"]);
}

#[test]
fn a_swizzled_layout_is_an_xor() {
    let text = "kernel k(X: f32[32, 32], Y: out f32[32, 32]) {
    threads (32, 32) as (r, c)
    shared s: f32[32, 32]
    s[r, c] = X[r, c]
    Y[c, r] = s[c, r]
}";
    let arch = arch("sm_80");
    let mut p = program(text, &arch);
    for kernel in p.kernels.handles() {
        for b in p.kernels[kernel].buffers.handles() {
            let digit = |stride| [Digit::new(32, Axis::Mem, stride)];
            let mut layout = Layout::new([Dim::new("r", digit(128)), Dim::new("c", digit(4))]);
            layout.offset[Axis::Mem] = 1024;
            p.kernels[kernel].buffers[b].layout =
                Some(Shared { layout, xor: Some(Xor::new(5, 2, 5)), align: 4096 });
        }
    }
    let made = emit(&p, &arch).expect("a source");
    assert!(made.text.contains("at ^ ((at >> 5) & 31)"), "{}", made.text);
    assert!(made.text.contains("s[swizzle_5_0_5(r * 32 + c)] = X[r * 32 + c]"), "{}", made.text);
    assert_eq!(made.kernels[0].shared_bytes, 1024 + 4096);
}

#[test]
fn a_vote_of_a_warp_wider_than_the_hardwares() {
    let text = |n: u32| {
        format!(
            "kernel k(X: i32[{n}], Y: out i32[{n}]) {{
    threads {n} ordered as t
    let all = vote_any(X[t] > 0)
    Y[t] = if all {{ 1 }} else {{ 0 }}
}}"
        )
    };
    has(&text(128), "sm_80", &["warp_any(0xffffffffu, "]);
    has(&text(128), "mp_22", &["block_any("]);
    refused(&text(256), "mp_22", codes::WARP_WIDTH);
}
