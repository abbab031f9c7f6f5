//! Kernels from text, architectures, inputs, and runs under the interpreter.
#![allow(dead_code)]

use pantile_ir::elab::{Library, Request, elaborate};
use pantile_ir::interp::{ArgValue, Options, Tensor, run_host};
use pantile_ir::program::*;
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets};
use pantile_ir::verify::verify;
use std::collections::HashMap;

/// Shipped architectures of several kinds, and one of 64 lanes that nobody ships.
pub fn archs() -> Vec<Arch> {
    let shipped = Targets::shipped();
    let mut all: Vec<Arch> = ["sm_80", "mp_31", "mp_22"].map(|n| shipped.arch(n).unwrap().clone()).into();
    let mut toy = all[0].clone();
    toy.name = "toy".into();
    for fact in [&mut toy.facts.threads.warp_size, &mut toy.facts.threads.shuffle_width] {
        fact.as_mut().unwrap().value = 64;
    }
    toy.facts.shared.max_bytes.as_mut().unwrap().value = 48 << 10;
    all.push(toy);
    all
}

pub fn arch(name: &str) -> Arch {
    archs().into_iter().find(|a| a.name == name).unwrap()
}

/// Elaborates and verifies.
#[track_caller]
pub fn compile(text: &str, request: &Request, arch: &Arch) -> Program {
    try_compile("test.tile", text, request, arch).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

pub fn try_compile(path: &str, text: &str, request: &Request, arch: &Arch) -> Result<Program, String> {
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text(path, text, &mut sources);
    if diags.has_errors() {
        return Err(format!("{diags:?}"));
    }
    let made = elaborate(&lib, request, arch, &mut sources).map_err(|d| format!("{d:?}"))?;
    verify(&made.program, arch).map_err(|d| format!("{d:?}"))?;
    Ok(made.program)
}

/// Whole numbers from -9 to 9: their sums are exact in every type of the tests.
fn number(i: usize, seed: u64) -> f64 {
    let x = (i as u64 + 1 + seed * 7919).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((x ^ x >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 % 19.0 - 9.0
}

/// Inputs of the entry for values of its dims.
pub fn args(p: &Program, dims: &[(&str, i64)]) -> Vec<ArgValue> {
    let at: HashMap<&str, i64> = dims.iter().copied().collect();
    let host = &p.entry;
    let one = |(id, a): (ArgId, &Arg)| match &a.kind {
        ArgKind::Scalar(elem) => ArgValue::Scalar(pantile_ir::num::from_f64(*elem, 2.0).unwrap()),
        ArgKind::Tensor(t) => {
            let shape: Vec<i64> = t.dims.iter().map(|&d| extent(host, d, &at)).collect();
            let n = shape.iter().product::<i64>() as usize;
            let floor = if t.elem.is_int() && !t.elem.is_signed() { 9.0 } else { 0.0 };
            let values: Vec<f64> = (0..n).map(|i| number(i, id.index() as u64) + floor).collect();
            match t.mode {
                Mode::Out => Tensor::unwritten(t.elem, &shape).into(),
                _ => Tensor::from_f64(t.elem, &shape, &values).into(),
            }
        }
    };
    host.args.iter().map(one).collect()
}

fn extent(host: &Host, e: ExprId, at: &HashMap<&str, i64>) -> i64 {
    let sub = |e: &ExprId| extent(host, *e, at);
    match &host.body.exprs[e] {
        Expr::Const { bits, .. } => *bits as i64,
        Expr::Dim(d) => *at.get(host.dims[*d].name.as_str()).unwrap_or(&8),
        Expr::Binary(BinOp::Mul, a, b) => sub(a) * sub(b),
        Expr::Binary(BinOp::Add, a, b) => sub(a) + sub(b),
        Expr::Binary(BinOp::Sub, a, b) => sub(a) - sub(b),
        Expr::Binary(BinOp::Div, a, b) => sub(a).div_euclid(sub(b)),
        Expr::Math { f: MathFn::CeilDiv, args, .. } => {
            (sub(&args[0]) + sub(&args[1]) - 1).div_euclid(sub(&args[1]))
        }
        other => panic!("a dim of {other:?}"),
    }
}

pub fn options(arch: &Arch) -> Options {
    let warp = arch.facts.threads.warp_size.as_ref().map_or(32, |w| w.value);
    let group = arch.facts.threads.group_size.as_ref().map_or(128, |w| w.value);
    Options { warp, group, require_coverage: false, max_steps: 20_000_000, ..Options::default() }
}

/// All tensors after a run.
pub fn run(p: &Program, mut args: Vec<ArgValue>, arch: &Arch) -> Result<Vec<Vec<f64>>, String> {
    run_host(p, &[], &mut args, &options(arch)).map_err(|f| format!("{f:#?}"))?;
    Ok(args.iter().filter_map(|a| a.tensor().map(Tensor::to_f64)).collect())
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub struct Counts {
    pub shuffles: usize,
    pub block_barriers: usize,
    pub warp_barriers: usize,
    pub staging: usize,
}

pub fn counts(p: &Program) -> Counts {
    let mut c = Counts::default();
    for (_, k) in p.kernels.iter() {
        walk(&k.stmts, &mut |s| match &s.kind {
            StmtKind::Op { op: Op::Shuffle { .. }, .. } => c.shuffles += 1,
            StmtKind::Op { op: Op::Barrier { team: Team::Warp }, .. } => c.warp_barriers += 1,
            StmtKind::Op { op: Op::Barrier { .. }, .. } => c.block_barriers += 1,
            StmtKind::Buffer { buffer } if k.buffers[*buffer].name.starts_with("parts") => c.staging += 1,
            _ => {}
        });
    }
    c
}

/// Kernels with their own threads and no tiles, as this level's passes take them.
pub fn has_tiles(p: &Program) -> bool {
    p.kernels.iter().any(|(_, k)| {
        let mut found = k.threads.is_none() || k.reducers.iter().next().is_some();
        walk(&k.stmts, &mut |s| {
            found |= matches!(
                &s.kind,
                StmtKind::Op {
                    op: Op::Read { .. }
                        | Op::Write { .. }
                        | Op::Gemm { .. }
                        | Op::Reduce { .. }
                        | Op::Scan { .. }
                        | Op::Fold { .. }
                        | Op::Atomic { at: pantile_ir::program::Place::Region(_), .. },
                    ..
                } | StmtKind::Parallel { .. }
                    | StmtKind::Roles(_)
            );
            found |= s.kind.defines().iter().any(|&l| !k.body.locals[l].ty.is_scalar());
        });
        found
    })
}
