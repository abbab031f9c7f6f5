//! What the launcher learns of a program.

use pantile_abi::{Arg, IExpr, Step};
use pantile_ir::DType;
use pantile_ir::builder::{Exprs, ProgramBuilder, Result};
use pantile_ir::program::*;
use pantile_ir::span::Span;
use pantile_passes::abi;

/// `scale(x: f32[N, K/2], y: out f32[N, K], n: i32, s: f32) where K % 2 == 0 { grid ceildiv(N, 64) }`
fn kernel(p: &mut ProgramBuilder) -> Result<KernelId> {
    let mut k = p.kernel("scale");
    let (n, kk) = (k.dim("N")?, k.dim("K")?);
    let (two, zero, width) = (k.c_index(2)?, k.c_index(0)?, k.c_index(64)?);
    let half = k.div(kk, two)?;
    k.tensor("x", Mode::In, DType::F32, &[n, half])?;
    k.tensor("y", Mode::Out, DType::F32, &[n, kk])?;
    let count = k.scalar("n", DType::I32)?;
    k.scalar("s", DType::F32)?;
    let rest = k.rem(kk, two)?;
    let even = k.eq(rest, zero)?;
    k.add_where(even, "K % 2 == 0", Span::default())?;
    let count = k.cast(Elem::Index, count)?;
    let blocks = k.ceildiv(n, width)?;
    let least = k.math(MathFn::Min, &[blocks, count])?;
    k.grid(&[(least, "i")])?;
    k.threads(&[(4, "a"), (32, "b")])?;
    p.add_kernel(k)
}

#[test]
fn a_lone_kernel() {
    let mut p = ProgramBuilder::new("reference");
    let id = kernel(&mut p).unwrap();
    p.set_lone(id).unwrap();
    let program = abi::describe(&p.finish().unwrap().0).unwrap();
    assert_eq!(program.signature().head(), "scale(x: f32[N, K / 2], y: out f32[N, K], n: i32, s: f32)");
    let k = &program.kernels[0];
    let names = k.signature().names();
    assert_eq!(k.grid[0].display(&names).to_string(), "min(ceildiv(N, 64), n)");
    assert_eq!(k.threads, [4, 32]);
    let (cond, text) = &program.conditions[0];
    assert_eq!(
        (cond.display(&program.names()).to_string(), text.as_str()),
        ("K % 2 == 0".into(), "K % 2 == 0")
    );
    assert_eq!(program.steps, [Step::Launch { kernel: 0, args: (0..4).map(Arg::Param).collect() }]);
}

#[test]
fn an_op_with_a_workspace_and_a_loop() {
    let mut p = ProgramBuilder::new("reference");
    let id = kernel(&mut p).unwrap();
    let mut op = p.host("twice");
    let (n, kk) = (op.dim("N").unwrap(), op.dim("K").unwrap());
    let y = op.tensor("y", Mode::Out, DType::F32, &[n, kk]).unwrap();
    let two = op.c_index(2).unwrap();
    let half = op.div(kk, two).unwrap();
    let w = op.workspace("w", DType::F32, &[n, half]).unwrap();
    let i = op.local("i", Type::INDEX, LocalKind::Loop, Span::default());
    let (lo, hi) = (op.c_index(0).unwrap(), op.c_index(3).unwrap());
    op.begin_steps();
    let value = op.get(i).unwrap();
    let small = op.cast(DType::I32, value).unwrap();
    let scale = op.c_f32(0.5).unwrap();
    op.launch(
        id,
        &[LaunchArg::Workspace(w), LaunchArg::Arg(y), LaunchArg::Scalar(small), LaunchArg::Scalar(scale)],
    );
    let body = op.end_steps().unwrap();
    op.step(StepKind::For { var: i, lo, hi, body }, Span::default());
    p.set_entry(op).unwrap();
    let program = abi::describe(&p.finish().unwrap().0).unwrap();
    assert_eq!(program.loop_vars, ["i"]);
    let Step::Workspace { slot: 0, shape, zeroed: false, .. } = &program.steps[0] else { panic!() };
    assert_eq!(shape[1].display(&program.names()).to_string(), "K / 2");
    let launch = Step::Launch {
        kernel: 0,
        args: vec![
            Arg::Workspace(0),
            Arg::Param(0),
            Arg::Int(IExpr::Dim(2)),
            Arg::Bits(DType::F32, 0.5f32.to_bits().into()),
        ],
    };
    assert_eq!(program.steps[1], Step::For { var: 2, lo: 0.into(), hi: 3.into(), body: vec![launch] });
}
