//! Short ways to build a kernel, run it and look at what came out.
#![allow(dead_code)]

use pantile_ir::DType;
use pantile_ir::builder::{Exprs, KernelBuilder, ProgramBuilder, Result};
use pantile_ir::diag::Code;
use pantile_ir::interp::{ArgValue, Fault, Options, Report, Tensor, run_host};
use pantile_ir::program::*;

pub const F32: DType = DType::F32;
pub const I32: DType = DType::I32;

/// A program of one kernel.
pub fn program(build: impl FnOnce(&mut KernelBuilder) -> Result<()>) -> Program {
    let mut p = ProgramBuilder::new("reference");
    let mut k = p.kernel("k");
    build(&mut k).unwrap_or_else(|d| panic!("the kernel cannot be built: {d:?}"));
    let id = p.add_kernel(k).unwrap();
    p.set_lone(id).unwrap();
    p.finish().unwrap().0
}

/// A program of one kernel that needs combiners or intrinsics.
pub fn program_with(build: impl FnOnce(&mut ProgramBuilder) -> Result<KernelBuilder>) -> Program {
    let mut p = ProgramBuilder::new("reference");
    let k = build(&mut p).unwrap_or_else(|d| panic!("the kernel cannot be built: {d:?}"));
    let id = p.add_kernel(k).unwrap();
    p.set_lone(id).unwrap();
    p.finish().unwrap().0
}

pub fn run(p: &Program, args: &mut [ArgValue]) -> std::result::Result<Report, Box<Fault>> {
    run_host(p, &[], args, &Options::default())
}

/// Runs with several orders and gives the last tensor.
pub fn output(p: &Program, mut args: Vec<ArgValue>) -> Vec<f64> {
    let options = Options { orders: 3, ..Options::default() };
    run_host(p, &[], &mut args, &options).unwrap_or_else(|f| panic!("{f:#?}"));
    values(args.last().unwrap())
}

pub fn values(arg: &ArgValue) -> Vec<f64> {
    arg.tensor().unwrap().to_f64()
}

/// The fault of a run that must fail, of the given rule.
#[track_caller]
pub fn faults(p: &Program, args: Vec<ArgValue>, code: Code) -> Fault {
    faults_with(p, args, code, &Options::default())
}

#[track_caller]
pub fn faults_with(p: &Program, mut args: Vec<ArgValue>, code: Code, options: &Options) -> Fault {
    let f = match run_host(p, &[], &mut args, options) {
        Ok(_) => panic!("ran without the fault {code}"),
        Err(f) => *f,
    };
    assert_eq!(f.code, code, "{f:#?}");
    assert!(!f.message.ends_with('.') && f.message.chars().next().is_some_and(|c| !c.is_uppercase()));
    assert!(f.to_diagnostic().is_error());
    f
}

pub fn tensor(dtype: DType, shape: &[i64], value: impl Fn(usize) -> f64) -> ArgValue {
    let n = shape.iter().product::<i64>() as usize;
    let values: Vec<f64> = (0..n).map(value).collect();
    Tensor::from_f64(dtype, shape, &values).into()
}

/// A scalar of an integer type.
pub fn scalar(v: i64) -> ArgValue {
    ArgValue::Scalar(v as u64)
}

pub fn out(dtype: DType, shape: &[i64]) -> ArgValue {
    Tensor::unwritten(dtype, shape).into()
}

/// Reproducible values in -1..1 with many bits.
pub fn noise(i: usize) -> f64 {
    let x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / (1u64 << 23) as f64 - 1.0
}

pub fn span(start: ExprId, len: u32) -> RegionAxis {
    RegionAxis::Span { start, len, limit: None, clip_low: false }
}

pub fn at(index: ExprId) -> RegionAxis {
    RegionAxis::At(index)
}

/// A 1-D tensor parameter with a dim of its own name.
pub fn vector(k: &mut KernelBuilder, name: &str, mode: Mode, dtype: DType, dim: ExprId) -> Result<Mem> {
    Ok(Mem::Tensor(k.tensor(name, mode, dtype, &[dim])?))
}

pub fn ix(k: &mut KernelBuilder, v: i64) -> Result<ExprId> {
    k.c_index(v)
}

/// A program from text: its entry without generics to bind.
#[track_caller]
pub fn text(source: &str, entry: &str) -> Program {
    text_with(source, &pantile_ir::elab::Request::new(entry))
}

#[track_caller]
pub fn text_with(source: &str, request: &pantile_ir::elab::Request) -> Program {
    use pantile_ir::elab::{Library, elaborate};
    let mut sources = pantile_ir::span::Sources::default();
    let (lib, diags) = Library::from_text("test.tile", source, &mut sources);
    assert!(!diags.has_errors(), "does not load: {diags:#?}");
    let arch = pantile_ir::target::Targets::shipped().arch("reference").expect("the reference").clone();
    match elaborate(&lib, request, &arch, &mut sources) {
        Ok(e) => e.program,
        Err(d) => panic!("does not elaborate: {d:#?}"),
    }
}
