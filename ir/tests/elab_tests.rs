//! `test` blocks as cases, and checking of whole files.

mod elab_support;

use elab_support::*;
use pantile_ir::DType;
use pantile_ir::diag::Diagnostics;
use pantile_ir::elab::{
    Expectation, Given, Input, InputOp, Library, Reference, Setting, TestCase, check_all, tests,
};
use pantile_ir::span::Sources;

const K: &str = "kernel scale<T: float, const D: int, const UP: bool, E: fn = identity>(X: T[M, D], k: i32, Y: out T[M, D], Z: inout T[M]) {
    param BM = 8 in [8, 16]
    grid ceildiv(M, BM) as i
    Y[i*BM +: BM, :] = E(X[i*BM +: BM, :]) * T(k)
    Z[i*BM +: BM] += 1
}
kernel ref_scale<T: float, const UP: bool>(A: T[M, N], n: i32, B: out T[M, N]) {
    grid (M, N) as (i, j)
    B[i, j] = A[i, j] * T(n)
}
fn ones() -> f32 { 1 }
";

fn cases(block: &str) -> Result<Vec<TestCase>, Vec<String>> {
    let text = format!("{K}{block}");
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("t", &text, &mut sources);
    assert!(diags.is_empty(), "{:#?}", lines(&diags, &sources));
    tests(&lib, &mut sources).map_err(|d| lines(&d, &sources))
}

const FULL: &str = "test scale_all {
    dims M in [0, 33]
    type T in [f16, f32]
    const D = 5, UP in [false, true], E = relu
    param BM = 16
    X = normal(seed 1) * 3 + 1000
    k = -2
    Z = uniform(-1, 1, seed 2) / -int(1, 9, seed 3)
    Y ~ ref_scale(X, k) rtol 1e-2 atol 0.5
    Z == ones()
    only cpu, interp
}";

#[test]
fn every_combination_is_a_case() {
    let text = FULL.replace("E = relu", "E = identity");
    let cases = cases(&text).unwrap();
    assert_eq!(cases.len(), 8);
    let labels: Vec<&str> = cases.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(labels[0], "M = 0, T = f16, D = 5, UP = false, E = identity, BM = 16");
    assert_eq!(labels[7], "M = 33, T = f32, D = 5, UP = true, E = identity, BM = 16");
    let c = &cases[7];
    assert_eq!((c.name.as_str(), c.request.entry.as_str()), ("scale_all", "scale"));
    assert_eq!(c.dims.iter().map(|(n, v)| (n.as_str(), *v)).collect::<Vec<_>>(), [("M", 33)]);
    assert_eq!(c.request.types.get("T"), Some(&DType::F32));
    assert_eq!(c.request.consts.get("UP"), Some(&Setting::Bool(true)));
    assert_eq!(c.request.params.get("BM"), Some(&Setting::Int(16)));
    assert_eq!(c.only, ["cpu", "interp"]);
    let normal = Box::new(Input::Normal { seed: 1 });
    let scaled = Box::new(Input::Binary(InputOp::Mul, normal, Box::new(Input::Whole(3))));
    assert_eq!(c.inputs["X"], Input::Binary(InputOp::Add, scaled, Box::new(Input::Whole(1000))));
    assert_eq!(c.inputs["k"], Input::Whole(-2));
    let Expectation { tensor, exact, rtol, atol, reference, .. } = &c.expects[0];
    assert_eq!((tensor.as_str(), *exact, *rtol, *atol), ("Y", false, 0.01, Some(0.5)));
    let Reference::Run { request, args, result } = reference else { panic!("{reference:?}") };
    assert_eq!((request.entry.as_str(), result.as_str()), ("ref_scale", "B"));
    assert_eq!(request.consts.get("UP"), Some(&Setting::Bool(true)));
    assert_eq!(args[0], ("A".to_string(), Given::Input("X".into())));
    assert!(matches!(&c.expects[1].reference, Reference::Call { function, .. } if function == "ones"));
    assert!(c.expects[1].exact);
}

#[test]
fn tests_that_do_not_fit_their_subject() {
    let one = |from: &str, to: &str, part: &str| {
        let text = FULL.replace("E = relu", "E = identity").replace(from, to);
        let found = cases(&text).expect_err(to);
        assert!(found.len() == 1 && found[0].contains(part), "{to}: {found:#?}");
    };
    one("scale_all", "other", "P0250 `other` does not say what it tests");
    one("dims M", "kernel scal\n dims M", "did you mean `scale`?");
    one("X = normal", "XX = normal", "`scale` has no parameter `XX`");
    one("    k = -2\n", "", "the test gives no value for `k`");
    one("k = -2", "k = -2\nY = 0", "`Y` is an output, it starts undefined");
    one("Y ~ ref", "X ~ ref", "`X` is an input, nothing comes out of it");
    one("ref_scale(X, k)", "ref_scale(X)", "`ref_scale` reads 2 parameters, but 1 are given");
    one("ref_scale(X, k)", "ref_scal(X, k)", "did you mean `ref_scale`?");
    one("int(1, 9, seed 3)", "int(9, 1, seed 3)", "`int` is not given like this");
    one("M in [0, 33]", "M in [0, -1]", "a dim is not negative");
    one("dims M", "dims T = 3, M", "must be an element type");
}

#[test]
fn arguments_of_a_case_have_types_and_shapes() {
    let text = FULL.replace("E = relu", "E = identity");
    let whole = format!("{K}{text}");
    let (lib, mut sources) = load(&whole);
    let case = tests(&lib, &mut sources).unwrap().pop().unwrap();
    let program = program_of(&whole, &case.request);
    let args = case.args(&program.entry).unwrap();
    let shapes: Vec<String> =
        args.iter().map(|a| format!("{} {:?} {:?}", a.name, a.dtype.unwrap(), a.shape)).collect();
    assert_eq!(shapes, ["X F32 [33, 5]", "k I32 []", "Y F32 [33, 5]", "Z F32 [33]"]);
    let request = case.reference_request(&case.expects[0], &args).unwrap();
    assert_eq!(program_of(&whole, &request).entry.name, "ref_scale");
}

fn checked(text: &str, targets: &[&str]) -> Vec<String> {
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("t", text, &mut sources);
    assert!(!diags.has_errors(), "{:#?}", lines(&diags, &sources));
    let archs: Vec<_> = targets.iter().map(|t| arch(t)).collect();
    let archs: Vec<&_> = archs.iter().collect();
    let found = check_all(&lib, &archs, &mut sources, &mut |_, _, _| Diagnostics::new());
    let notes: Vec<Vec<String>> = found.iter().map(|d| d.notes.clone()).collect();
    lines(&found, &sources).into_iter().zip(notes).map(|(l, n)| format!("{l} {}", n.join("; "))).collect()
}

#[test]
fn one_mistake_is_told_once() {
    // met for every type, constant and architecture
    let text = "kernel k<T: float, const C: bool>(X: T[N], Y: out T[N]) { grid N as i\nY[i] = X[j] }";
    let found = checked(text, &["reference", "sm_80"]);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("2:10 P0202") && !found[0].contains("with T"), "{found:#?}");
}

#[test]
fn a_mistake_of_some_types_names_them() {
    let text = "kernel k<T: float>(X: T[N], Y: out f32[N]) { grid N as i\nlet s: f32 = 70000\nlet h = T(s) * 70000\nY[i] = f32(h) }";
    let found = checked(text, &["reference"]);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("P0220") && found[0].contains("with T = f16"), "{found:#?}");
}

#[test]
fn what_does_not_work_in_f64_is_a_warning() {
    let text = "kernel k<T: float>(X: T[N], Y: out T[N], s: f32) { grid N as i\nY[i] = T(acc(T)(X[i]) * s) }";
    let found = checked(text, &["reference"]);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].starts_with("1:8 P0251") && found[0].contains("where T in [f16, bf16, f32]"),
        "{found:#?}"
    );
    let limited = text.replace("s: f32)", "s: f32) where T in [f16, bf16, f32]");
    assert!(checked(&limited, &["reference"]).is_empty());
}

#[test]
fn functions_combiners_and_intrinsics_are_checked_unused() {
    let found = checked("fn f<T: float>(x: tile T[R, C]) -> tile T[R] { rowsum(x) + y }", &["reference"]);
    assert!(found.len() == 1 && found[0].contains("`y` is not declared"), "{found:#?}");
    let found = checked("fn f(x: tile f32[R, C]) -> tile f32[R] { x }", &["reference"]);
    assert!(found.len() == 1 && found[0].contains("P0213 the result of `f`"), "{found:#?}");
    let found = checked("combine c(a: f32, b: f32) -> f32 identity 0 { a + b + z }", &["reference"]);
    assert!(found.len() == 1 && found[0].contains("`z` is not declared"), "{found:#?}");
    let found = checked("combine c(a: f32, b: i32) -> f32 identity 0 { a }", &["reference"]);
    assert!(found.len() == 1 && found[0].contains("P0293"), "{found:#?}");
    let found = checked("combine c(a: i8, b: i8) -> i8 identity 300 { a + b }", &["reference"]);
    assert!(found.len() == 1 && found[0].contains("300 does not fit into i8"), "{found:#?}");
    let found = checked("intrinsic fn f(x: f32) -> f32 { means { f(x) } within 1 ulp }", &["reference"]);
    assert!(found.len() == 1 && found[0].contains("P0216"), "{found:#?}");
    let found = checked("intrinsic fn f(x: f32) -> f32 { means { sum(x) } within 1 ulp }", &["reference"]);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        checked("fn f<T: dtype, const N: int>(x: T, t: &shared T[N, M]) -> T { t[0, 0] }", &["reference"])
            .is_empty()
    );
}

#[test]
fn constants_come_from_lists_launches_and_tests() {
    // only 5 is used, and only 5 works
    let text = "kernel k<const D: int>(X: f32[M, D], Y: out f32[M]) { static_assert(D == 5)\ngrid M as i\nY[i] = sum(X[i, :]) + X[i, 4] }
    op o(X: f32[M, 5], Y: out f32[M]) { launch k<5>(X, Y) }";
    assert!(checked(text, &["reference"]).is_empty());
    let text = "kernel k<const D: int>(X: f32[M, D], Y: out f32[M]) where D in [4, 8] { grid M as i\nlet x = X[i, :]\nY[i] = x[4] }";
    let found = checked(text, &["reference"]);
    assert!(found.len() == 1 && found[0].contains("P0317") && found[0].contains("with D = 4"), "{found:#?}");
}
