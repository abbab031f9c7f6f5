//! The Rust builder: whole programs, and mistakes told at the caller's line.

mod interp_common;

use pantile_ir::DType;
use pantile_ir::builder::{Exprs, HostBuilder, KernelBuilder, ProgramBuilder, Result};
use pantile_ir::codes;
use pantile_ir::diag::Diagnostic;
use pantile_ir::program::*;
use pantile_ir::span::Span;

fn span(start: ExprId, len: u32) -> RegionAxis {
    RegionAxis::Span { start, len, limit: None, clip_low: false }
}

fn gemm(p: &mut ProgramBuilder) -> Result<KernelId> {
    let mut k = p.kernel("gemm");
    let (m, n, kk) = (k.dim("M")?, k.dim("N")?, k.dim("K")?);
    let a = Mem::Tensor(k.tensor("A", Mode::In, DType::F16, &[m, kk])?);
    let b = Mem::Tensor(k.tensor("B", Mode::In, DType::F16, &[kk, n])?);
    let c = Mem::Tensor(k.tensor("C", Mode::Out, DType::F16, &[m, n])?);
    let bm = k.c_index(64)?;
    let (gm, gn) = (k.ceildiv(m, bm)?, k.ceildiv(n, bm)?);
    let ij = k.grid(&[(gm, "i"), (gn, "j")])?;
    let (i0, j0) = (k.mul(ij[0], bm)?, k.mul(ij[1], bm)?);
    let acc = k.zeros("c", DType::F32, &[64, 64])?;
    let (zero, steps) = (k.c_index(0)?, k.ceildiv(kk, bm)?);
    k.for_("ko", zero, steps, |k, ko| {
        let k0 = k.mul(ko, bm)?;
        let x = k.read("a", a, &[span(i0, 64), span(k0, 64)])?;
        let y = k.read("b", b, &[span(k0, 64), span(j0, 64)])?;
        k.gemm(acc, x, y)
    })?;
    let sum = k.get(acc)?;
    let out = k.cast(DType::F16, sum)?;
    k.write(c, &[span(i0, 64), span(j0, 64)], out)?;
    p.add_kernel(k)
}

fn fails<T>(result: Result<T>) -> Diagnostic {
    match result {
        Ok(_) => panic!("accepted"),
        Err(d) => d,
    }
}

fn with_kernel() -> (ProgramBuilder, KernelBuilder) {
    let p = ProgramBuilder::new("reference");
    let k = p.kernel("k");
    (p, k)
}

#[test]
fn a_gemm_is_a_lone_program() {
    let mut p = ProgramBuilder::new("reference");
    let id = gemm(&mut p).unwrap();
    p.set_lone(id).unwrap();
    let (program, sources) = p.finish().unwrap();
    assert!(program.entry.lone);
    assert_eq!(program.entry.args.len(), 3);
    assert_eq!(program.entry.dims.len(), 3);
    let kernel = &program.kernels[id];
    assert_eq!(kernel.stmts.len(), 3);
    let StmtKind::For { body, .. } = &kernel.stmts[1].kind else { panic!("no loop") };
    assert_eq!(body.len(), 3);
    let (line, _) = sources.line_col(body[2].span);
    assert!(sources.file(body[2].span.file).name.ends_with("builder_programs.rs"));
    let text = include_str!("builder_programs.rs").lines().nth(line - 1);
    assert_eq!(text.map(str::trim), Some("k.gemm(acc, x, y)"));
}

#[test]
fn an_op_launches_with_a_workspace() {
    let mut p = ProgramBuilder::new("reference");
    let id = gemm(&mut p).unwrap();
    let mut h: HostBuilder = p.host("twice");
    let (m, n, k) = (h.dim("M").unwrap(), h.dim("N").unwrap(), h.dim("K").unwrap());
    let a = h.tensor("A", Mode::In, DType::F16, &[m, k]).unwrap();
    let b = h.tensor("B", Mode::In, DType::F16, &[k, n]).unwrap();
    let w = h.workspace("W", DType::F16, &[m, n]).unwrap();
    h.launch(id, &[LaunchArg::Arg(a), LaunchArg::Arg(b), LaunchArg::Workspace(w)]);
    p.set_entry(h).unwrap();
    let (program, _) = p.finish().unwrap();
    assert!(!program.entry.lone);
    assert_eq!(program.entry.steps.len(), 1);
}

#[test]
fn mixed_types_are_told_at_the_line() {
    let (_p, mut k) = with_kernel();
    let a = k.c_f32(1.0).unwrap();
    let b = k.c_i32(1).unwrap();
    let d = fails(k.add(a, b));
    assert_eq!(d.code, codes::TYPE_MISMATCH);
    assert_eq!(d.message, "`+` joins f32 and i32");
    assert_eq!(d.help, ["convert one side: write `f32(...)`"]);
}

#[test]
fn index_and_i32_do_not_mix() {
    let (_p, mut k) = with_kernel();
    let a = k.c_index(1).unwrap();
    let b = k.c_i32(1).unwrap();
    let d = fails(k.mul(a, b));
    assert_eq!(d.code, codes::TYPE_MISMATCH);
    assert!(d.help[0].contains("`i32(...)`"), "{:?}", d.help);
}

#[test]
fn index_constants_fold_exactly() {
    let (_p, mut k) = with_kernel();
    let n = k.dim("N").unwrap();
    let (zero, one, c7, c2) =
        (k.c_index(0).unwrap(), k.c_index(1).unwrap(), k.c_index(-7).unwrap(), k.c_index(2).unwrap());
    assert_eq!(k.add(n, zero).unwrap(), n);
    assert_eq!(k.mul(one, n).unwrap(), n);
    let value = |k: &KernelBuilder, e: ExprId| k.kernel().body.exprs[e].clone();
    let index = |v: i64| Expr::Const { elem: Elem::Index, bits: v as u64 };
    let q = k.div(c7, c2).unwrap();
    assert_eq!(value(&k, q), index(-4));
    let r = k.rem(c7, c2).unwrap();
    assert_eq!(value(&k, r), index(1));
    let c = k.ceildiv(c7, c2).unwrap();
    assert_eq!(value(&k, c), index(-3));
    assert_eq!(fails(k.div(c7, zero)).code, codes::DIVISION_BY_ZERO);
    let max = k.c_index(i64::MAX).unwrap();
    assert_eq!(fails(k.add(max, one)).code, codes::INDEX_OVERFLOW);
}

#[test]
fn float_constants_do_not_fold() {
    let (_p, mut k) = with_kernel();
    let (x, zero) = (k.scalar("x", DType::F32).unwrap(), k.c_f32(0.0).unwrap());
    let sum = k.add(x, zero).unwrap();
    assert_ne!(sum, x, "-0 + 0 is +0");
}

#[test]
fn handles_of_another_builder_are_errors() {
    let (p, mut k) = with_kernel();
    for i in 0..40 {
        k.c_index(i).unwrap();
    }
    let far = k.c_index(7).unwrap();
    let mut other = p.kernel("other");
    let d = fails(other.neg(far));
    assert_eq!(d.code, codes::FOREIGN_HANDLE);
    let local = k.var("x", far).unwrap();
    assert_eq!(fails(other.get(local)).code, codes::FOREIGN_HANDLE);
    assert_eq!(fails(other.set(local, far)).code, codes::FOREIGN_HANDLE);
    let mut elsewhere = ProgramBuilder::new("reference");
    assert_eq!(fails(elsewhere.add_kernel(other)).code, codes::FOREIGN_HANDLE);
}

#[test]
fn blocks_must_match() {
    let (mut p, mut k) = with_kernel();
    assert_eq!(fails(k.end_block()).code, codes::OPEN_BLOCK);
    let t = k.c_bool(true).unwrap();
    let d = fails(k.if_(t, |k| k.end_block().map(|_| ())));
    assert_eq!(d.code, codes::OPEN_BLOCK);
    let (_, mut k) = (0, p.kernel("open"));
    k.begin_block();
    assert_eq!(fails(p.add_kernel(k)).code, codes::OPEN_BLOCK);
}

#[test]
fn a_program_needs_an_entry() {
    let d = match ProgramBuilder::new("reference").finish() {
        Ok(_) => panic!("accepted"),
        Err(d) => d,
    };
    assert_eq!(d.code, codes::NO_ENTRY);
}

#[test]
fn result_names_must_match() {
    let (_p, mut k) = with_kernel();
    let x = k.c_f32(1.0).unwrap();
    let t = k.full(x, &[33]).unwrap();
    let op = Op::Reduce { comb: Combiner::Add, inputs: [t][..].into(), axis: None };
    assert_eq!(fails(k.op(op.clone(), &[], Span::default())).code, codes::WRONG_COUNT);
    let results = k.op(op, &["s"], Span::default()).unwrap();
    assert_eq!(k.local_ref(results[0]).unwrap().ty, Type::Scalar(Elem::F32));
}

#[test]
fn a_user_combiner_is_checked() {
    let mut p = ProgramBuilder::new("reference");
    let mut f = p.pure();
    let a = f.param("a", DType::F32).unwrap();
    let b = f.param("b", DType::F32).unwrap();
    let sum = f.add(a, b).unwrap();
    let func = f.finish(&[sum]).unwrap();
    let combine = Combine {
        name: "plus".into(),
        span: Span::default(),
        identity: vec![(Elem::F32, 0)],
        commutative: true,
        func,
    };
    let wrong = Combine { identity: vec![(Elem::F32, 0), (Elem::F32, 0)], ..combine.clone() };
    assert_eq!(fails(p.add_combine(wrong)).code, codes::COMBINE_SHAPE);
    let id = p.add_combine(combine).unwrap();
    let mut k = p.kernel("k");
    let x = k.c_i32(1).unwrap();
    let t = k.full(x, &[33]).unwrap();
    let d = fails(k.reduce("s", Combiner::User(id), t, Some(0)));
    assert_eq!(d.code, codes::COMBINER_TYPES);
    assert_eq!(d.message, "part 0 of `plus` is f32, not i32");
}

/// `f(x) = x + x`, with the sum named.
fn twice(p: &ProgramBuilder) -> PureFn {
    let mut f = p.pure();
    let x = f.param("x", DType::F32).unwrap();
    let sum = f.add(x, x).unwrap();
    let named = f.add_let("sum", sum, Span::default()).unwrap();
    let sum = f.get(named).unwrap();
    f.finish(&[sum]).unwrap()
}

#[test]
fn an_intrinsic_is_checked_and_means_its_function() {
    let mut p = ProgramBuilder::new("reference");
    let means = twice(&p);
    let intrinsic = Intrinsic {
        name: "twice".into(),
        span: Span::default(),
        means: means.clone(),
        bound: ErrorBound::Ulp(1.0),
        spellings: Vec::new(),
    };
    let both = PureFn { results: [means.results[0], means.results[0]].to_vec(), ..means };
    let wrong = Intrinsic { means: both, ..intrinsic.clone() };
    assert_eq!(fails(p.add_intrinsic(wrong)).code, codes::INTRINSIC_SHAPE);
    let id = p.add_intrinsic(intrinsic).unwrap();
    let mut k = p.kernel("k");
    let one = k.c_index(1).unwrap();
    let y = Mem::Tensor(k.tensor("y", Mode::Out, DType::F32, &[one]).unwrap());
    let i = k.grid(&[(one, "i")]).unwrap();
    let x = k.c_f32(3.5).unwrap();
    let call = k.expr(Expr::Intrinsic { id, args: [x][..].into() }, Span::default()).unwrap();
    k.store(y, &[i[0]], call).unwrap();
    assert_eq!(outcome(p, k, 1), [7.0]);
}

/// Runs a kernel of one output `y` of `n` elements.
fn outcome(mut p: ProgramBuilder, k: KernelBuilder, n: i64) -> Vec<f64> {
    let id = p.add_kernel(k).unwrap();
    assert_eq!(p.kernel_ref(id).map(|k| k.name.as_str()), Some("k"));
    p.set_lone(id).unwrap();
    let (program, _) = p.finish().unwrap();
    interp_common::output(&program, vec![interp_common::out(DType::F32, &[n])])
}

/// Collatz: rounds from 6 to 1, by `while` and both sides of `if`.
#[test]
fn loops_and_branches_of_closures() {
    let (p, mut k) = with_kernel();
    let one = k.c_index(1).unwrap();
    let y = Mem::Tensor(k.tensor("y", Mode::Out, DType::F32, &[one]).unwrap());
    let i = k.grid(&[(one, "i")]).unwrap();
    let (six, none) = (k.c_i32(6).unwrap(), k.c_f32(0.0).unwrap());
    let (v, rounds) = (k.var("v", six).unwrap(), k.var("rounds", none).unwrap());
    let (last, now) = (k.c_i32(1).unwrap(), k.get(v).unwrap());
    let more = k.lt(last, now).unwrap();
    k.while_(more, |k| {
        let (two, three) = (k.c_i32(2)?, k.c_i32(3)?);
        let now = k.get(v)?;
        let rest = k.binary(BinOp::Rem, now, two)?;
        let even = k.lt(rest, last)?;
        k.if_else(
            even,
            |k| k.update(v, Update::Div, two),
            |k| {
                k.update(v, Update::Mul, three)?;
                k.update(v, Update::Add, last)
            },
        )?;
        let step = k.c_f32(1.0)?;
        k.update(rounds, Update::Add, step)
    })
    .unwrap();
    let rounds = k.get(rounds).unwrap();
    k.store(y, &[i[0]], rounds).unwrap();
    assert_eq!(outcome(p, k, 1), [8.0]);
}
