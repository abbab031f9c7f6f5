//! Memory: regions, elements, pads, assignments, buffers, reducers.

mod elab_support;

use elab_support::*;

#[test]
fn regions() {
    let found = printed(
        "let a = A[i*BM - 1 +: 33 clip low, 0 +: 7 limit n] pad 0\nlet g = A[I[0 +: 5], j]\nlet b = B[j, 0 +: 7][_, :]\nO[0 +: 33, 0 +: 7] = a + b\nO[0 +: 5, 0] = g",
    );
    assert_eq!(found.len(), 7, "{found:#?}");
    assert!(
        found[0].contains("clip low") && found[0].contains("limit n") && found[0].ends_with("pad 0.0"),
        "{found:#?}"
    );
    one_error("let a = A[i, :]", "1:14", 431, "axis 1 of `A` is not");
    one_error("let a = A[i]", "1:9", 401, "`A` has 2 axes, but 1 index is given");
    one_error("let a = A[i, 3..3]", "1:14", 218, "the range 3..3 holds nothing");
    one_error("let a = A[i, 0..n]", "1:14", 217, "give a start and a fixed extent");
    one_error("let a = A[s, j]", "1:11", 402, "an index is one integer, not f32");
    one_error("let a = A", "1:9", 207, "`A` is memory, not a value");
    one_error("let a = A.T", "1:9", 207, "transpose a region of it");
}

#[test]
fn pads() {
    assert_eq!(printed("O[i, j] = A[i - 1, j] or 0"), ["O[i, j] = A[i - 1, j] or 0.0"]);
    one_error("let a = A[i, 0 +: 4] or 0", "1:9", 430, "`or` follows the read of one element");
    one_error("let a = A[i, j] pad 0", "1:9", 430, "an element takes `or`");
    one_error("let t = A[i, 0 +: 4]\nlet u = t[0] or 1", "2:9", 430, "`or` follows a read of memory");
    one_error("let a = A[i, j] or n", "1:20", 301, "the value after `or` is f32, not i32");
}

#[test]
fn assignments() {
    assert_eq!(
        printed(
            "var x = s\nvar y: i32 = 3\nx = 2\nx *= s\ny <<= 2\n(x, y) = (f32(y), i32(x))\nO[i, j] = x + f32(y)"
        ),
        [
            "var x = s",
            "var y: i32 = 3",
            "x = 2.0",
            "x *= s",
            "y <<= 2",
            "let t = f32(y)",
            "let t_2 = i32(x)",
            "x = t",
            "y = t_2",
            "O[i, j] = x + f32(y)",
        ]
    );
    assert_eq!(printed("X[i, j] += s"), ["X[i, j] = X[i, j] + s"]);
    let found = printed("X[i, 0 +: 33] *= 2");
    assert_eq!(found, ["let read = X[i, 0 +: 33]", "X[i, 0 +: 33] = read * 2.0"]);
    one_error("let x = s\nx = 1", "2:1", 230, "declare it with `var`");
    one_error("for k in 0..3 { k = 1 }", "1:17", 230, "`k` counts the loop");
    one_error("i = 1", "1:1", 230, "`i` is an index of the grid");
    one_error("M = 1", "1:1", 230, "`M` is a dim");
    one_error("s = 1", "1:1", 230, "`s` is a parameter");
    one_error("BM = 1", "1:1", 230, "`BM` is known at compile time");
    one_error("A = 1", "1:1", 230, "`A` is memory");
    one_error("var t = zeros f32[4]\nt[0] = 1", "2:1", 230, "a tile changes as a whole");
    one_error("1 + 2 = 3", "1:1", 230, "this cannot be assigned");
    one_error("var x = s\nx = n", "2:5", 325, "`x` is f32, the value is i32");
    one_error("var t = zeros f32[4]\nt = s", "2:5", 325, "write `full f32[4](...)`");
    one_error("var t = zeros f32[4]\nt += zeros f32[5]", "2:6", 302, "the value is tile f32[5]");
    one_error("O[i, j] = n", "1:11", 324, "write `f32(...)`");
    one_error("s + 1", "1:1", 232, "goes nowhere");
}

#[test]
fn declarations() {
    assert_eq!(
        printed("var t: tile f32[33, 2]\nt = zeros f32[33, 2]\nO[0 +: 33, 0 +: 2] = t")[0],
        "var t: tile f32[33, 2]"
    );
    assert!(errors("var x")[0].contains("expected `: type` or `= value`"));
    one_error("let x: f16 = s", "1:14", 325, "the value is f32, but f16 is written");
    one_error("let (a, b) = s", "1:5", 231, "2 names stand for one value");
    one_error("let (a, b) = (s, s, s)", "1:5", 231, "2 names stand for a tuple of 3");
    one_error("let a = (s, n)\nlet b = a + 1", "2:9", 207, "a tuple stands where one value is needed");
    one_error("let a = (s, n)\nlet b = a.2", "2:11", 226, "a tuple of 2 has no part `2`");
    body("let a = (s, n)\nlet (b, _) = a\nO[i, j] = a.0 + b");
}

#[test]
fn shared_memory() {
    let found = printed(
        "shared t: f16[33, 8] align 128\nt[:, :] = H[0 +: 33, 0 +: 8]\nt[0, 0] = 1\nlet u = t[1 +: 4, :]\nO[0 +: 4, 0 +: 8] = f32(u)",
    );
    assert_eq!(found[0], "shared t: f16[33, 8] align 128");
    one_error("shared t: f16[33, 8] align 100", "1:28", 218, "an alignment is a power of two, not 100");
    one_error("shared t: index[33]", "1:1", 208, "memory does not hold `index`");
    one_error("var x: f16[4]", "1:8", 435, "`var x: tile f16[4]`");
}

#[test]
fn reducers() {
    let found = printed(
        "var r: reducer(add) f32\nvar w: reducer(max) f32[33]\nr op= s\nr op= A[i, 0 +: 7]\nw op= A[0 +: 33, j]\nparallel (a, b) in (33, BN) { w[a] op= A[a, b] }\nlet m = w\nO[0 +: 33, j] = m + r\nO[i, j] = r",
    );
    assert_eq!(found.iter().filter(|l| l.ends_with("= r")).count(), 1, "joined once: {found:#?}");
    one_error("var r: reducer(add) f32\nr += s", "2:1", 434, "only updated with `op=`");
    one_error(
        "var r: reducer(add) f32\nlet x = r\nr op= s",
        "3:1",
        434,
        "was read before and takes no more updates",
    );
    one_error(
        "var r: reducer(add) f32\nif n > 0 { O[i, j] = r }\nO[i, 0] = r",
        "3:11",
        434,
        "first read in a block that is over",
    );
    one_error(
        "var r: reducer(add) f32\nfor k in 0..3 { O[i, k] = r }",
        "2:27",
        434,
        "read inside a loop, but lives outside",
    );
    one_error("var x = s\nx op= s", "2:1", 434, "folds into a reducer, and this is none");
    one_error("var r: reducer(add) f32 = 0", "1:27", 434, "starts at the identity");
    one_error("var r: reducer(add) f32\nr op= n", "2:7", 301, "what `r` folds is f32, not i32");
}

#[test]
fn forms() {
    assert_eq!(
        printed(
            "shared t: f32[33, 8]\nvar c = zeros f32[33, 33]\ncopy A[0 +: 33, 0 +: 8] -> t[:, :]\nlet a = t[:, :]\ngemm a, a.T -> c\nreduce(add, c, axis = 1) -> m\nO[0 +: 33, 0] = m"
        )[2..],
        [
            "let read = A[0 +: 33, 0 +: 8]",
            "t[:, :] = read",
            "let a = t[:, :]",
            "c += a @ a.T",
            "let m = reduce(add, c, axis = 1)",
            "O[0 +: 33, 0] = m",
        ]
    );
    one_error("copy A[0 +: 33, 0 +: 8] -> s", "1:28", 230, "`s` is a parameter");
}
