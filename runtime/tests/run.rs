//! Programs of several steps, run by a launcher that writes down what it is asked, and kernels in a shared library.

use pantile_abi::*;
use pantile_runtime::object::{Library, Object};
use pantile_runtime::{Error, ErrorKind, HostTensor, Launch, Launcher, run_program};
use std::path::{Path, PathBuf};

fn dim(slot: u32) -> IExpr {
    IExpr::Dim(slot)
}

fn tensor(name: &str, mode: Mode, dims: Vec<IExpr>) -> ParamAbi {
    ParamAbi::Tensor(TensorAbi::new(name, mode, DType::F32, dims))
}

fn kernel(name: &str, params: Vec<ParamAbi>, dims: &[&str], grid: Vec<IExpr>) -> KernelAbi {
    KernelAbi {
        name: name.into(),
        symbol: String::new(),
        params,
        dims: dims.iter().map(|d| d.to_string()).collect(),
        conditions: vec![],
        grid,
        threads: vec![],
        cpu: Some(CpuAbi {
            scratch: 64,
            faults: vec![CpuFault { message: "`n` is 13".into(), code: 717, statement: Some(2) }],
            features: vec![],
        }),
    }
}

/// `double(x: f32[N], y: out f32[N])` and an op that runs it through a workspace `times` times.
fn program() -> Program {
    let ceil = IExpr::bin(IOp::CeilDiv, dim(0), 4.into());
    let double = kernel(
        "double",
        vec![tensor("x", Mode::In, vec![dim(0)]), tensor("y", Mode::Out, vec![dim(0)])],
        &["N"],
        vec![ceil],
    );
    let times = ParamAbi::Scalar(ScalarAbi { name: "times".into(), ty: ScalarType::Index });
    let launch = |a, b| Step::Launch { kernel: 0, args: vec![a, b] };
    Program {
        name: "quadruple".into(),
        params: vec![tensor("x", Mode::In, vec![dim(0)]), tensor("y", Mode::Out, vec![dim(0)]), times],
        dims: vec!["N".into()],
        loop_vars: vec!["i".into()],
        conditions: vec![],
        kernels: vec![double],
        steps: vec![
            Step::Workspace {
                slot: 0,
                name: "t".into(),
                dtype: DType::F32,
                shape: vec![dim(0)],
                zeroed: false,
            },
            Step::For {
                var: 1,
                lo: 0.into(),
                hi: IExpr::Scalar(2),
                body: vec![launch(Arg::Param(0), Arg::Workspace(0))],
            },
            Step::If {
                cond: IExpr::bin(IOp::Gt, dim(0), 100.into()),
                then: vec![],
                other: vec![launch(Arg::Workspace(0), Arg::Param(1))],
            },
        ],
    }
}

#[derive(Default)]
struct Notes {
    grids: Vec<Vec<u64>>,
}

fn floats(arg: &ArgValue) -> &'static mut [f32] {
    let t = arg.as_tensor().unwrap();
    // SAFETY: the tests own the memory and run one launch at a time.
    unsafe { std::slice::from_raw_parts_mut(t.ptr.0.cast(), t.shape.iter().product()) }
}

impl Launcher for Notes {
    fn launch(&mut self, launch: Launch<'_>) -> Result<(), Error> {
        self.grids.push(launch.grid.to_vec());
        let [x, y] = launch.args.args.as_slice() else { panic!() };
        let (x, y) = (floats(x), floats(y));
        y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * *x);
        Ok(())
    }
}

fn arguments(x: &HostTensor, y: &mut HostTensor, times: i64) -> Vec<(String, ArgValue)> {
    vec![
        ("times".into(), ArgValue::Scalar(ScalarValue::Index(times))),
        ("y".into(), ArgValue::Tensor(y.arg_mut())),
        ("x".into(), ArgValue::Tensor(x.arg())),
    ]
}

fn run(program: &Program, n: usize, times: i64, launcher: &mut dyn Launcher) -> Result<HostTensor, Error> {
    let values: Vec<f64> = (0..n).map(|i| i as f64).collect();
    let x = HostTensor::from_f64(DType::F32, &[n], &values).unwrap();
    let mut y = HostTensor::zeros(DType::F32, &[n], None).unwrap();
    y.poison();
    // SAFETY: the tensors outlive the call.
    unsafe { run_program(program, arguments(&x, &mut y, times), launcher)? };
    Ok(y)
}

#[test]
fn steps_are_walked() {
    let mut notes = Notes::default();
    let y = run(&program(), 33, 2, &mut notes).unwrap();
    assert_eq!(y.to_f64(), (0..33).map(|i| 4.0 * i as f64).collect::<Vec<_>>());
    assert_eq!(notes.grids, vec![vec![9]; 3]);
    let mut notes = Notes::default();
    run(&program(), 101, 0, &mut notes).unwrap();
    assert!(notes.grids.is_empty(), "the loop has no trips and the branch is not taken");
}

#[test]
fn an_empty_grid_launches_nothing() {
    let mut notes = Notes::default();
    run(&program(), 0, 3, &mut notes).unwrap();
    assert!(notes.grids.is_empty());
}

#[test]
fn unwritten_workspaces_are_poison() {
    let mut p = program();
    p.steps.remove(1);
    let y = run(&p, 5, 0, &mut Notes::default()).unwrap();
    assert!(y.to_f64().iter().all(|v| v.is_nan()));
    if let Step::Workspace { zeroed, .. } = &mut p.steps[0] {
        *zeroed = true;
    }
    assert_eq!(run(&p, 5, 0, &mut Notes::default()).unwrap().to_f64(), [0.0; 5]);
}

#[test]
fn mistakes_inside_an_op_say_where() {
    let mut p = program();
    p.kernels[0].grid = vec![IExpr::bin(IOp::Sub, dim(0), 10.into())];
    let e = run(&p, 5, 1, &mut Notes::default()).unwrap_err();
    assert_eq!(
        (e.kind, e.message.as_str()),
        (ErrorKind::Launch, "the grid of `double` has extent N - 10, which is -5")
    );

    let mut p = program();
    p.kernels[0].conditions = vec![(IExpr::bin(IOp::Le, dim(0), 4.into()), "N <= 4".into())];
    let e = run(&p, 5, 1, &mut Notes::default()).unwrap_err();
    let says = "in the launch of `double`: `double` wants N <= 4, but N is 5 from axis 0 of `x`";
    assert_eq!((e.kind, e.message.as_str()), (ErrorKind::Bind(BindRule::Condition), says));

    let mut p = program();
    if let Step::Workspace { shape, .. } = &mut p.steps[0] {
        *shape = vec![IExpr::bin(IOp::Sub, 3.into(), dim(0))];
    }
    let e = run(&p, 5, 1, &mut Notes::default()).unwrap_err();
    assert_eq!(e.message, "workspace `t` has extent 3 - N, which is -2");

    let mut p = program();
    p.steps[0] = Step::Launch { kernel: 0, args: vec![Arg::Param(0), Arg::Workspace(0)] };
    let e = run(&p, 5, 1, &mut Notes::default()).unwrap_err();
    assert!(e.message.contains("a workspace is used before it is made"), "{e}");
    p.steps[0] = Step::Launch { kernel: 7, args: vec![] };
    assert_eq!(run(&p, 5, 1, &mut Notes::default()).unwrap_err().kind, ErrorKind::Launch);
}

#[test]
fn numbers_must_fit_their_parameter() {
    let mut p = program();
    let n = ParamAbi::Scalar(ScalarAbi { name: "n".into(), ty: ScalarType::Typed(DType::I8) });
    p.kernels[0].params.push(n);
    p.steps = vec![Step::Launch {
        kernel: 0,
        args: vec![Arg::Param(0), Arg::Param(1), Arg::Int(IExpr::bin(IOp::Mul, dim(0), 20.into()))],
    }];
    let e = run(&p, 7, 0, &mut Notes::default()).unwrap_err();
    assert_eq!(e.message, "in the launch of `double`: `n` is 140, which does not fit i8");
}

const SOURCE: &str = r#"
#include <stdint.h>
// words: x, y, N, grid
uint64_t doubled(const uint64_t *w, uint64_t begin, uint64_t end, unsigned char *scratch) {
    const float *x = (const float *)w[0];
    float *y = (float *)w[1];
    scratch[63] = 1;
    for (uint64_t b = begin; b < end; b++)
        for (uint64_t i = 4 * b; i < 4 * b + 4 && i < w[2]; i++) y[i] = 2 * x[i];
    return w[2] == 13;
}
"#;

/// Compiles the kernel and writes its description beside it.
fn build(dir: &Path, symbol: &str) -> PathBuf {
    let (c, so) = (dir.join("k.c"), dir.join("k.so"));
    std::fs::write(&c, SOURCE).unwrap();
    let mut cc = std::process::Command::new("cc");
    let done = cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&so).arg(&c).status().unwrap();
    assert!(done.success());
    let mut kernel = program().kernels.remove(0);
    kernel.symbol = symbol.into();
    let text = serde_json::to_string(&Program::of_kernel(kernel)).unwrap();
    std::fs::write(so.with_extension("json"), text).unwrap();
    so
}

#[test]
fn objects_on_disk_run() {
    let dir = tempfile::tempdir().unwrap();
    let so = build(dir.path(), "doubled");
    // SAFETY: built above.
    let object = unsafe { Object::load(&so).unwrap() };
    for n in [1, 33, 1000, 0] {
        let values: Vec<f64> = (0..n).map(|i| i as f64 / 2.0).collect();
        let x = HostTensor::from_f64(DType::F32, &[n], &values).unwrap();
        let mut y = HostTensor::zeros(DType::F32, &[n], None).unwrap();
        let args = arguments(&x, &mut y, 0)[1..].to_vec();
        // SAFETY: the tensors outlive the call.
        unsafe { object.run(args).unwrap() };
        assert_eq!(y.to_f64(), (0..n).map(|i| i as f64).collect::<Vec<_>>());
    }
    let x = HostTensor::zeros(DType::F32, &[13], None).unwrap();
    let mut y = HostTensor::zeros(DType::F32, &[13], None).unwrap();
    // SAFETY: the tensors outlive the call.
    let e = unsafe { object.run(arguments(&x, &mut y, 0)[1..].to_vec()).unwrap_err() };
    assert_eq!((e.kind, e.message.as_str()), (ErrorKind::Fault, "`double`: `n` is 13"));
}

#[test]
fn objects_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let so = build(dir.path(), "absent");
    // SAFETY: built above, as are the others.
    let load = |p: &Path| unsafe { Object::load(p).map(|_| ()).unwrap_err() };
    let e = load(&so);
    assert_eq!(e.kind, ErrorKind::Library);
    assert!(e.message.ends_with("k.so` exports no `absent`"), "{e}");

    let json = so.with_extension("json");
    let text = std::fs::read_to_string(&json).unwrap();
    let built_for =
        text.replace("absent", "doubled").replace("\"features\":[]", "\"features\":[\"no-such-unit\"]");
    std::fs::write(&json, built_for).unwrap();
    let e = load(&so);
    assert_eq!(e.message, "`double` was built for no-such-unit, which this processor lacks");

    std::fs::write(&json, "{").unwrap();
    assert_eq!(load(&so).kind, ErrorKind::FileFormat);
    std::fs::remove_file(&json).unwrap();
    assert_eq!(load(&so).kind, ErrorKind::FileMissing);
    std::fs::write(&so, b"no library").unwrap();
    // SAFETY: the file is no library, so nothing runs.
    let e = unsafe { Library::open(&so).map(|_| ()).unwrap_err() };
    assert_eq!(e.kind, ErrorKind::Library);
}
