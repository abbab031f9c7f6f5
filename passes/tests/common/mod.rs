//! What tests of passes share: a program from text, a pass over it, its text, and runs before and after.
#![allow(dead_code)]

use pantile_ir::DType;
use pantile_ir::elab::{Files, Found, Library, Request, elaborate};
use pantile_ir::interp::{ArgValue, Options, Tensor, run_host};
use pantile_ir::print::print;
use pantile_ir::program::*;
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets};
use pantile_passes::pipeline::Cx;

pub type Pass = fn(Program, &Cx) -> Result<Program, pantile_ir::diag::Diagnostics>;

pub fn arch(name: &str) -> Arch {
    Targets::shipped().arch(name).expect("a shipped architecture").clone()
}

#[track_caller]
pub fn program(text: &str, request: &Request, target: &Arch) -> Program {
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("test.tile", text, &mut sources);
    assert!(!diags.has_errors(), "does not load: {diags:#?}");
    elaborate(&lib, request, target, &mut sources).unwrap_or_else(|d| panic!("{d:#?}\n{text}")).program
}

/// A kernel of the library.
#[track_caller]
pub fn library(file: &str, request: &Request, target: &Arch) -> Program {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels").join(file);
    let mut sources = Sources::default();
    let text = std::fs::read_to_string(&path).expect("a file of the library");
    let found = Found { name: file.into(), path: Some(path), text };
    let (lib, diags) = Library::load(found, &Files { search: Vec::new() }, &mut sources);
    assert!(!diags.has_errors(), "does not load: {diags:#?}");
    elaborate(&lib, request, target, &mut sources).unwrap_or_else(|d| panic!("{d:#?}")).program
}

/// The program after a pass, at a stage; it verifies and reads back.
#[track_caller]
pub fn passed(pass: Pass, mut p: Program, stage: Stage, target: &Arch) -> Program {
    p.stage = stage;
    let out = pass(p, &Cx { arch: target }).unwrap_or_else(|d| panic!("{d:#?}"));
    let text = print(&out);
    if let Err(d) = pantile_ir::verify::verify(&out, target) {
        panic!("does not verify: {d:#?}\n{text}");
    }
    let entry = out.entry.name.clone();
    let again = program(&text, &Request::new(entry), target);
    assert_eq!(print(&again), text, "the text reads back as another program");
    out
}

/// Reproducible values in -1..1.
pub fn noise(i: usize) -> f64 {
    let x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / (1u64 << 23) as f64 - 1.0
}

pub fn tensor(dtype: DType, shape: &[i64]) -> ArgValue {
    let n = shape.iter().product::<i64>() as usize;
    let whole = dtype.is_int();
    let value = |i| if whole { (noise(i) * 7.0).round() } else { noise(i) };
    Tensor::from_f64(dtype, shape, &(0..n).map(value).collect::<Vec<_>>()).into()
}

pub fn out(dtype: DType, shape: &[i64]) -> ArgValue {
    Tensor::unwritten(dtype, shape).into()
}

/// Both programs give the same bits for these arguments.
#[track_caller]
pub fn same(a: &Program, b: &Program, args: &[ArgValue]) {
    let run = |p: &Program| {
        let mut args = args.to_vec();
        run_host(p, &[], &mut args, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}\n{}", print(p)));
        args
    };
    let shapes: Vec<_> = args.iter().filter_map(|a| a.tensor()).map(|t| t.shape.clone()).collect();
    assert_eq!(run(a), run(b), "{shapes:?}\n{}", print(b));
}
