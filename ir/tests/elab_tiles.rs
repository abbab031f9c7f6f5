//! Tiles: filling, indexing, products, folds, scans, counting; each on odd shapes.

mod elab_support;

use elab_support::*;
use pantile_ir::print::print;

#[test]
fn filling() {
    assert_eq!(
        printed("let a = full f32[33](s)\nlet b = zeros f32[33]\nO[i, 0 +: 33] = a + b"),
        ["let a = full f32[33](s)", "let b = zeros f32[33]", "O[i, 0 +: 33] = a + b"]
    );
    one_error("let a = full f32[33](n)", "1:22", 301, "the value of `full` is f32, not i32");
    one_error("let a = zeros f32[0]", "1:19", 218, "an extent must be at least 1, not 0");
    one_error("let a = zeros f33[4]", "1:15", 202, "did you mean `f32`?");
    one_error("let a = zeros n[4]", "1:15", 208, "`n` is not a type");
}

#[test]
fn parts_of_tiles() {
    assert_eq!(
        printed(
            "let t = A[i, 0 +: 7]\nlet c = t[:, _] + t[_, :]\nlet p = c[2, 3] + t[0]\nlet q = c[1..4, 0 +: 2]\nO[0 +: 3, 0 +: 2] = q + p"
        ),
        [
            "let t = A[i, 0 +: 7]",
            "let c = t[:, _] + t[_, :]",
            "let p = c[2, 3] + t[0]",
            "let q = c[1 +: 3, 0 +: 2]",
            "O[0 +: 3, 0 +: 2] = q + p",
        ]
    );
    one_error(
        "let t = A[i, 0 +: 7]\nlet p = t[0, 1]",
        "2:9",
        401,
        "tile f32[7] has 1 axes, but 2 indices are given",
    );
    one_error("let p = s[0]", "1:9", 401, "a scalar (f32) has no elements to index");
    one_error("let t = A[i, 0 +: 7]\nlet p = t[7]", "2:11", 317, "axis 0 has 7 elements");
    one_error("let t = A[i, 0 +: 7]\nlet p = t[0 +: 2 limit n]", "2:11", 432, "belong to reads of memory");
    one_error("let t = A[i, 0 +: 7]\nlet g = I[0 +: 4]\nlet p = t[g]", "3:11", 405, "not gathered");
    one_error("let t = A[i, 0 +: 7]\nO[i, 0 +: 7] = t.T", "2:16", 312, "`.T` swaps the last two axes");
    one_error("let t = A[i, 0 +: 7]\nlet u = t.x", "2:11", 226, "there is no `.x` here");
}

#[test]
fn products_become_statements() {
    assert_eq!(
        printed(
            "let a = H[0 +: 33, 0 +: 16]\nlet p = a @ a.T\nvar c = a @ a.T\nc += a @ a.T\nc = a @ a.T\nc -= a @ a.T\nO[0 +: 33, 0 +: 33] = p * 2 + c"
        ),
        [
            "let a = H[0 +: 33, 0 +: 16]",
            "var p: tile f32[33, 33]",
            "p = a @ a.T",
            "var c: tile f32[33, 33]",
            "c = a @ a.T",
            "c += a @ a.T",
            "c = a @ a.T",
            "var product: tile f32[33, 33]",
            "product = a @ a.T",
            "c -= product",
            "O[0 +: 33, 0 +: 33] = p * 2.0 + c",
        ]
    );
    // a product never overwrites what it reads
    let lines = printed("var c = zeros f32[8, 8]\nc = c @ c\nc += c @ c\nO[0 +: 8, 0 +: 8] = c");
    assert_eq!(
        lines[1..5],
        ["var product: tile f32[8, 8]", "product = c @ c", "c = product", "var product_2: tile f32[8, 8]"]
    );
    one_error("let a = H[0 +: 8, 0 +: 4]\nlet p = a @ a", "2:13", 315, "4 columns on the left but 8 rows");
    one_error(
        "let a = H[0 +: 8, 0 +: 4]\nlet p = a @ A[0 +: 4, 0 +: 8]",
        "2:13",
        314,
        "`@` does not multiply f16 by f32",
    );
    one_error(
        "let a = H[0 +: 8, 0 +: 4]\nlet p = a @ a.T\np = a @ a.T",
        "3:1",
        230,
        "`p` was declared with `let`",
    );
    one_error(
        "let a = H[0 +: 8, 0 +: 4]\nvar c = zeros f16[8, 8]\nc += a @ a.T",
        "3:1",
        328,
        "accumulate in `acc(T)`",
    );
    one_error(
        "let a = H[0 +: 8, 0 +: 4]\nlet p = a @ a.T { accuracy = high }",
        "2:19",
        229,
        "products have no option `accuracy`",
    );
    one_error("let a = s * 2 { precision = tf32 }", "1:17", 229, "only a product");
}

#[test]
fn folds() {
    assert_eq!(
        printed(
            "let t = A[0 +: 33, 0 +: 5]\nlet a = sum(t)\nlet b = max(t, axis = 0)\nlet c = rowmin(t)\nlet d = any(t > 0)\nlet e = reduce(mul, t, axis = 1)\nO[0 +: 33, 0] = c + e + a\nif d { O[0, 0 +: 5] = b }"
        )[1..6],
        [
            "let a = reduce(add, t)",
            "let b = reduce(max, t, axis = 0)",
            "let c = reduce(min, t, axis = 1)",
            "let d = reduce(or, t > 0.0)",
            "let e = reduce(mul, t, axis = 1)"
        ]
    );
    one_error(
        "let t = A[0 +: 33, 0 +: 5]\nlet a = sum(t, axis = 2)",
        "2:23",
        312,
        "there is no axis 2 in a tile of rank 2",
    );
    one_error("let t = A[0 +: 33, 0 +: 5]\nlet a = sum(t, axs = 1)", "2:16", 212, "did you mean `axis`?");
    one_error("let t = A[0 +: 33, 0 +: 5]\nlet a = sum(t, t)", "2:9", 211, "`sum` takes 1 argument, not 2");
    one_error("let a = sum(s)", "1:13", 307, "`sum` takes a tile, not f32");
    one_error("let t = A[0 +: 33, 0 +: 5]\nlet a = reduce(plus, t)", "2:16", 202, "combiners are add");
    one_error("let t = A[0 +: 33, 0 +: 5]\nlet a = reduce(exp, t)", "2:16", 236, "`exp` is not a combiner");
}

#[test]
fn positions() {
    let lines = printed(
        "let t = A[0 +: 3, 0 +: 5]\nlet a = argmax(t, axis = 1)\nlet b = argmin(t)\nO[0 +: 3, 0] = f32(a + b)",
    );
    assert!(lines[1].contains("reduce(argmax_f32"), "{lines:#?}");
    assert!(lines[2].contains("iota(3, 1) * 5"), "{lines:#?}");
    one_error("let a = argmax(s)", "1:16", 307, "takes a tile");
}

#[test]
fn combiners_of_tuples() {
    let text = "combine both(a: (f32, i32), b: (f32, i32)) -> (f32, i32) identity (-inf, 0) {
        if b.0 > a.0 { b } else { a }
    }
    kernel k(X: f32[M, 33], Y: out f32[M], Z: out i32[M]) {
        grid M as i
        let x = X[i, :]
        let (v, p) = reduce(both, (x, i32(iota(33))))
        let (w, _) = reduce(both, (x, 7))
        Y[i] = v + w
        Z[i] = p
    }";
    let all = print(&program(text, "k"));
    assert!(all.contains("let (v, p) = reduce(both, (x, i32(iota(33))))"), "{all}");
    assert!(all.contains("full i32[33](7)"), "a number stretches to the tile beside it:\n{all}");
}

#[test]
fn scans_and_counting() {
    let lines = printed(
        "let t = A[0 +: 3, 0 +: 5]\nlet a = cumsum(t)\nlet b = scan(max, t, axis = 0, reverse = true, exclusive = true)\nlet c = where(rows(t) >= cols(t), a, b)\nO[0 +: 3, 0 +: 5] = c",
    );
    assert!(lines[1].contains("axis = 1"), "{lines:#?}");
    assert!(lines[3].contains("iota(3, 1)") && lines[3].contains("iota(1, 5, axis = 1)"), "{lines:#?}");
    one_error(
        "let t = A[0 +: 3, 0 +: 5]\nlet b = scan(max, t, reverse = n)",
        "2:32",
        217,
        "`reverse` must be known at compile time",
    );
    one_error("let r = rows(s)", "1:14", 307, "`rows` takes a tile, not f32");
    one_error("let r = iota(0)", "1:14", 218, "an extent must be at least 1");
}

#[test]
fn element_functions() {
    one_error("let x = exp(n)", "1:13", 304, "`exp` does not take i32");
    one_error("let x = erf.approx(s)", "1:9", 319, "has no `.approx` form");
    one_error("let x = sum.approx(s)", "1:9", 319, "`sum` has no `.approx` form");
    one_error("let x = fma(s, s)", "1:9", 211, "it is written `fma(a, b, c)`");
    one_error("O[i, j] = max(n, 3) + 0 * s", "1:23", 301, "`+` joins i32 and f32");
    assert_eq!(printed("O[i, j] = max(s, 3)"), ["O[i, j] = max(s, 3.0)"]);
}

#[test]
fn conditions_of_tiles_are_refused() {
    one_error("let t = A[0 +: 3, 0 +: 5]\nif t > 0 { O[i, j] = 1 }", "2:4", 306, "`where(c, a, b)`");
    one_error(
        "let t = A[0 +: 3, 0 +: 5]\nlet u = if t > 0 { t } else { -t }",
        "2:12",
        306,
        "`where(c, a, b)`",
    );
}

#[test]
fn collectives_are_not_hidden_in_what_may_not_run() {
    one_error(
        "let t = A[0 +: 3, 0 +: 5]\nlet c = n > 0 && any(t > 0)",
        "2:18",
        530,
        "give it a name with `let` before",
    );
    one_error(
        "let t = A[0 +: 3, 0 +: 5]\nlet c = if n > 0 { sum(t) } else { 0 }",
        "2:20",
        530,
        "evaluated only if needed",
    );
    one_error("let t = A[0 +: 3, 0 +: 5]\nwhile any(t > 0) { O[i, j] = 1 }", "2:7", 530, "again and again");
    // both sides of tile operators are evaluated, so there they are fine
    body("let t = A[0 +: 3, 0 +: 5]\nlet c = t > 0 && t < max(t)\nO[0 +: 3, 0 +: 5] = where(c, t, sum(t))");
}

#[test]
fn order_is_left_to_right() {
    let lines = printed("shared q: i32[4]\nlet x = q[0] + atomic_add(q[0], 1)\nO[i, j] = f32(x)");
    assert_eq!(lines[1], "let t = q[0]", "{lines:#?}");
    assert!(lines[2].contains("atomic_add(q[0], 1)"), "{lines:#?}");
}
