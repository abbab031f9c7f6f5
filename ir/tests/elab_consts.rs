//! Compile time: arithmetic, lists, `if const`, `for const`, and how numbers take their types.

mod elab_support;

use elab_support::*;
use pantile_ir::elab::Request;
use pantile_ir::print::print;

#[test]
fn constants_are_computed_now() {
    assert_eq!(printed("const K = BM / 2 + 3 % 2, L = [1, 2, K]\nO[i, j] = f32(L[2])"), ["O[i, j] = 33.0"]);
    assert_eq!(printed("const K = ceildiv(33, 8), M2 = max(K, 7)\nO[K, M2] = s"), ["O[5, 7] = s"]);
    assert_eq!(
        printed("const S = 1 << 4 | 3, P = !(S > 3)\nif P { O[0, 0] = 1 } else { O[S, 0] = 2 }"),
        ["O[19, 0] = 2.0"]
    );
    let direct = printed("O[i, j] = s * 2.8853900817779268");
    assert_eq!(printed("const F = 2.0 * LOG2E\nO[i, j] = s * F"), direct);
    assert_eq!(printed("O[i, j] = f32(target.vec(f16) * 2)"), ["O[i, j] = 16.0"]);
}

#[test]
fn runtime_integers_fold_where_both_sides_are_known() {
    assert_eq!(printed("let a = i32(3) * 4 - 2\nO[i, j] = f32(a)")[0], "let a: i32 = 10");
    assert_eq!(printed("O[i + 2 * 3, j] = s"), ["O[i + 6, j] = s"]);
}

#[test]
fn if_const_and_for_const_leave_no_trace() {
    assert_eq!(
        printed(
            "for const a in 0..2 { for const b in [5, 7] {\n if const a == 0 { O[a, b] = 1 } else { O[a, b] = f32(b) } } }"
        ),
        ["O[0, 5] = 1.0", "O[0, 7] = 1.0", "O[1, 5] = 5.0", "O[1, 7] = 7.0"]
    );
    // what is not chosen is not even looked at
    assert_eq!(printed("if const BM > 64 { O[i, j] = undeclared } else { O[i, j] = 1 }"), ["O[i, j] = 1.0"]);
    assert_eq!(printed("const T2 = f16\nlet x = T2(s)\nO[i, j] = f32(x)")[0], "let x = f16(s)");
}

#[test]
fn compile_time_mistakes() {
    one_error("if const n > 0 { O[i, j] = 1 }", "1:10", 217, "needs a condition known at compile time");
    one_error("const K = n + 1\nO[K, K] = 1", "1:11", 217, "`K` must be known at compile time");
    one_error("let a = A[i, 0 +: n]", "1:19", 217, "the extent of a region must be known at compile time");
    one_error("const K = 5 / 0", "1:11", 219, "division by zero");
    one_error("const K = [1, 2][2]", "1:18", 218, "the list has 2 elements");
    one_error("static_assert(BM > 64, \"BM is small\")", "1:1", 223, "BM is small");
    one_error("static_assert(BM > 64)", "1:1", 223, "`BM > 64` does not hold");
    one_error("for const a in 0..100000 { O[a, 0] = 1 }", "1:1", 243, "100000 times");
    one_error("for a in [1, 2] { O[a, 0] = 1 }", "1:10", 244, "for const a in");
    one_error("for const a in 0..3 { break }", "1:23", 246, "cannot leave a `for const`");
    one_error("let x = target.lanes", "1:9", 227, "there is no fact `target.lanes`");
    one_error("let x = target.vec", "1:9", 227, "takes one type");
}

#[test]
fn numbers_take_the_type_of_their_place() {
    assert_eq!(printed("O[i, j] = s * 2 + 1"), ["O[i, j] = s * 2.0 + 1.0"]);
    assert_eq!(printed("O[i, j] = s * (1/2)"), ["O[i, j] = s * 0.5"]);
    assert_eq!(printed("let k = n * (7/2)\nO[k, j] = s"), ["let k = n * 3", "O[k, j] = s"]);
    assert_eq!(printed("let x: f16 = 0.1\nlet y = x + 1\nO[i, j] = f32(y)")[1], "let y = x + 1.0");
    assert_eq!(printed("var x: u8 = 255\nx += 1\nO[i, j] = f32(x)")[0], "var x: u8 = 255");
    assert_eq!(
        printed("O[i, j] = if n > 3 { 1 } else { 0.5 }"),
        ["O[i, j] = if n > 3 { f32(1.0) } else { 0.5 }"]
    );
    assert_eq!(printed("O[i, j] = where(s > 0, 1, s)"), ["O[i, j] = if s > 0.0 { 1.0 } else { s }"]);
    assert_eq!(printed("O[i, j] = -0 * s"), ["O[i, j] = -0.0 * s"]);
}

#[test]
fn numbers_that_do_not_fit() {
    one_error("let x: i8 = 128\nO[i, j] = f32(x)", "1:13", 220, "128 does not fit into i8");
    one_error("let x: f16 = 70000.5\nO[i, j] = f32(x)", "1:14", 220, "70000.5 does not fit into f16");
    one_error("let x: f16 = 1e-30\nO[i, j] = f32(x)", "1:14", 220, "too small for f16");
    one_error("let x: f16 = 2049\nO[i, j] = f32(x)", "1:14", 220, "2049 is not a value of f16");
    one_error("O[n + 0.5, j] = s", "1:7", 220, "0.5 is not a value of i32");
    one_error("let b = n > 0 && 1", "1:18", 220, "a number is not a bool");
    one_error("O[i, j] = s + true", "1:15", 220, "a bool is not a value of f32");
    one_error("let x = 18446744073709551616", "1:9", 220, "no type can hold");
}

#[test]
fn conversions_are_written_but_for_integers_beside_index() {
    one_error("O[i, j] = s + n", "1:15", 301, "`+` joins f32 and i32");
    one_error("O[i, j] = H[i, j]", "1:11", 324, "the place holds f32, the value is f16");
    one_error("let x: i32 = i", "1:14", 325, "the value is index, but i32 is written");
    assert_eq!(printed("let k = i * 2 + n\nO[k, j] = s"), ["let k = i*2 + index(n)", "O[k, j] = s"]);
    assert_eq!(printed("for k in 0..n { O[k, j] = s }")[0], "for k in 0..index(n) {");
    assert_eq!(printed("O[min(i, I[j]), j] = s"), ["O[min(i, index(I[j])), j] = s"]);
    one_error("let u: u64 = 1\nlet k = i + u", "2:13", 301, "`+` joins index and u64");
}

#[test]
fn item_constants() {
    let text = "const A = B + 1\nconst B = 2\nkernel k(Y: out f32[N]) { grid N as i\nY[i] = f32(A) }";
    assert!(print(&program(text, "k")).contains("Y[i] = 3.0"));
    let text = "const A = B\nconst B = A\nkernel k(Y: out f32[N]) { grid N as i\nY[i] = f32(A) }";
    let found = run(text, &Request::new("k")).unwrap_err();
    assert!(found.len() == 1 && found[0].contains("P0216"), "{found:#?}");
}
