//! Arithmetic that has no value, conversions, intrinsics, runaway loops, deep expressions.

mod interp_common;

use interp_common::*;
use pantile_ir::DType;
use pantile_ir::codes;
use pantile_ir::diag::Code;
use pantile_ir::interp::{ArgValue, Options};
use pantile_ir::program::Program;

/// `O[0] = e` over the scalars `n: i32`, `i: index`, `x: f32`.
fn expression(ty: &str, e: &str) -> Program {
    text(
        &format!(
            "kernel k(n: i32, x: f32, A: f32[M], O: out {ty}[1]) {{\ngrid 1 as g\nlet i = M\nO[0] = {e}\n}}"
        ),
        "k",
    )
}

fn go(ty: DType, e: &str, n: i64, x: f32, m: i64) -> Result<f64, Code> {
    let p = expression(ty.name(), e);
    let mut args =
        vec![scalar(n), ArgValue::Scalar(u64::from(x.to_bits())), tensor(F32, &[m], noise), out(ty, &[1])];
    match run(&p, &mut args) {
        Ok(_) => Ok(values(&args[3])[0]),
        Err(f) => Err(f.code),
    }
}

#[test]
fn integers_divide_by_floor_and_not_by_zero() {
    assert_eq!(go(I32, "-7 / n", 2, 0.0, 1), Ok(-4.0));
    assert_eq!(go(I32, "-7 % n", 2, 0.0, 1), Ok(1.0));
    assert_eq!(go(I32, "7 / n", 0, 0.0, 1), Err(codes::DIVIDED_BY_ZERO));
    assert_eq!(go(I32, "7 % n", 0, 0.0, 1), Err(codes::DIVIDED_BY_ZERO));
    assert_eq!(go(I32, "if n != 0 { 7 / n } else { 3 }", 0, 0.0, 1), Ok(3.0));
    assert_eq!(go(F32, "x / 0.0", 0, 1.0, 1), Ok(f64::INFINITY));
}

#[test]
fn integers_wrap_and_index_does_not() {
    assert_eq!(go(I32, "n + 1", i64::from(i32::MAX), 0.0, 1), Ok(f64::from(i32::MIN)));
    let cube = "i32((i*4611686018427387904 + i*4611686018427387904) % 7)";
    assert_eq!(go(I32, cube, 0, 0.0, 1), Err(codes::INDEX_TOO_LARGE));
    assert_eq!(go(I32, "i32((i*4611686018427387904 + i*4611686018427387903) % 7)", 0, 0.0, 1), Ok(0.0));
}

#[test]
fn shifts_stay_below_the_width() {
    assert_eq!(go(I32, "1 << n", 31, 0.0, 1), Ok(f64::from(i32::MIN)));
    assert_eq!(go(I32, "1 << n", 32, 0.0, 1), Err(codes::SHIFTED_TOO_FAR));
    assert_eq!(go(I32, "1 >> n", -1, 0.0, 1), Err(codes::SHIFTED_TOO_FAR));
}

#[test]
fn conversions_saturate_only_when_written() {
    assert_eq!(go(I32, "i32(x)", 0, 2.5, 1), Ok(2.0));
    assert_eq!(go(I32, "i32(x)", 0, 3e9, 1), Err(codes::CONVERSION_RANGE));
    assert_eq!(go(I32, "i32(x)", 0, f32::NAN, 1), Err(codes::CONVERSION_RANGE));
    assert_eq!(go(I32, "i32.sat(x)", 0, 3e9, 1), Ok(f64::from(i32::MAX)));
    assert_eq!(go(DType::F16, "f16(x)", 0, 1e6, 1), Ok(f64::INFINITY));
    assert_eq!(go(DType::F16, "f16.sat(x)", 0, 1e6, 1), Ok(65504.0));
}

#[test]
fn a_fault_in_a_tile_names_element_and_operands() {
    let p = text(
        "kernel k(A: i32[N], O: out i32[N]) {\ngrid 1 as g\nlet x = A[0 +: 8]\nO[0 +: 8] = 100 / x\n}",
        "k",
    );
    let a = |i: usize| i as f64 - 2.0;
    let f = faults(&p, vec![tensor(I32, &[5], a), out(I32, &[5])], codes::DIVIDED_BY_ZERO);
    let value = |name: &str| f.values.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    assert_eq!(value("the tile's element"), Some("[2]"));
    assert_eq!((value("the left operand"), value("the right operand")), (Some("100"), Some("0")));
    // elements outside the tensor are not computed
    let p = text("kernel k(A: i32[N], O: out i32[N]) {\ngrid 1 as g\nO[0 +: 8] = 100 / (A[0 +: 8])\n}", "k");
    assert_eq!(output(&p, vec![tensor(I32, &[2], |i| i as f64 - 2.0), out(I32, &[2])]), [-50.0, -100.0]);
}

#[test]
fn an_intrinsic_runs_by_its_meaning() {
    let p = text(
        "intrinsic fn twice_plus(x: f32, y: f32) -> f32 {\nmeans {\nlet d = x + x\nd + y\n} within 0 ulp\ncuda(sm_75..) \"never\"\n}\n\
         kernel k(A: f32[N], O: out f32[N]) {\ngrid 1 as g\nO[0 +: 8] = twice_plus(A[0 +: 8], 1.0)\n}",
        "k",
    );
    assert_eq!(output(&p, vec![tensor(F32, &[3], |i| i as f64), out(F32, &[3])]), [1.0, 3.0, 5.0]);
}

#[test]
fn a_loop_without_end_is_given_up() {
    let p = text(
        "kernel k(n: i32, O: out i32[1]) {\ngrid 1 as g\nvar c: i32 = n\nwhile c > 0 { c = n }\nO[0] = c\n}",
        "k",
    );
    let options = Options { max_steps: 10_000, ..Options::default() };
    faults_with(&p, vec![scalar(1), out(I32, &[1])], codes::STEP_LIMIT, &options);
    assert_eq!(output(&p, vec![scalar(0), out(I32, &[1])]), [0.0]);
}

#[test]
fn the_step_of_a_loop_is_positive() {
    let p = text(
        "kernel k(n: i32, O: inout i32[9]) {\ngrid 1 as g\nfor i in 0..9 step index(n) { O[i] = 1 }\n}",
        "k",
    );
    let args = |n| vec![scalar(n), tensor(I32, &[9], |_| 0.0)];
    assert_eq!(output(&p, args(4)), [1., 0., 0., 0., 1., 0., 0., 0., 1.]);
    faults(&p, args(0), codes::BAD_STEP);
    faults(&p, args(-1), codes::BAD_STEP);
}

#[test]
fn deep_expressions_need_no_deep_stack() {
    use pantile_ir::builder::Exprs;
    use pantile_ir::program::Mode;
    let p = program(|k| {
        let one = ix(k, 1)?;
        let o = vector(k, "O", Mode::Out, F32, one)?;
        let z = ix(k, 0)?;
        let step = k.c_f32(1.0)?;
        let x = k.let_("x", step)?;
        let mut sum = x;
        for _ in 0..5000 {
            sum = k.add(sum, step)?;
        }
        k.store(o, &[z], sum)
    });
    assert_eq!(output(&p, vec![out(F32, &[1])]), [5001.0]);
}

#[test]
fn shared_subexpressions_are_evaluated_once() {
    use pantile_ir::builder::Exprs;
    use pantile_ir::program::Mode;
    let p = program(|k| {
        let one = ix(k, 1)?;
        let o = vector(k, "O", Mode::Out, F32, one)?;
        let z = ix(k, 0)?;
        let x = k.c_f32(1.0)?;
        let mut x = k.let_("x", x)?;
        for _ in 0..60 {
            x = k.add(x, x)?;
        }
        k.store(o, &[z], x)
    });
    assert_eq!(output(&p, vec![out(F32, &[1])]), [f64::powi(2.0, 60)]);
}
