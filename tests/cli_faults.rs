//! Indices made from the user's data: a wrong one stops the program with a place, compiled and interpreted alike, and
//! never reaches memory.
#![cfg(feature = "cpu")]

mod cli_support;

use cli_support::Place;

const KERNELS: &str = "\
kernel rows(E: f32[V, D], I: i32[N], Y: out f32[N, D]) {
    grid 1 as g
    let ids = I[0 +: 8]
    Y[0 +: 8, 0 +: 16] = E[ids, 0 +: 16]
}

kernel picked(E: f32[V], I: i32[N], Y: out f32[N]) {
    grid N as i
    threads 1 as t
    if t == 0 { Y[i] = E[I[i]] }
}

kernel put(X: f32[N], I: i32[N], Y: inout f32[V]) {
    grid 1 as i
    threads 1 as t
    if t == 0 { Y[I[i]] = X[i] }
}

kernel counted(I: i32[N], H: inout i32[V]) {
    grid N as i
    threads 1 as t
    if t == 0 { atomic_add(H[I[i]], 1) }
}

kernel span(X: f32[V], I: i32[N], Y: out f32[N, 4]) {
    grid N as i
    Y[i, :] = X[I[i] +: 4] pad 0
}

kernel folded(I: i32[N], Y: out i32[5]) {
    grid 1 as g
    threads 1 as t
    var h: reducer(add) i32[5]
    for i in 0..N { h[I[i]] op= 1 }
    Y[0 +: 5] = h
}

kernel element(X: f32[5], I: i32[N], Y: out f32[N]) {
    grid N as i
    let x = X[0 +: 5]
    Y[i] = x[I[i]]
}

kernel one(X: f32[V], y: out f32[1], at: i32) {
    grid 1 as g
    threads 1 as t
    if t == 0 { y[0] = X[at] }
}

kernel until(X: f32[V], y: out f32[1]) {
    grid 1 as g
    threads 1 as t
    var k: i32 = 0
    while X[k] < 100 { k += 1 }
    if t == 0 { y[0] = X[k] }
}
";

/// Each kernel with its other arguments; `I` holds numbers from the range that is put in.
const RUNS: [(&str, &[&str]); 7] = [
    ("rows", &["E=normal:5x16", "I"]),
    ("picked", &["E=normal:5", "I"]),
    ("put", &["X=normal:6", "Y=zeros:5", "I"]),
    ("counted", &["H=zeros:5", "I"]),
    ("span", &["X=normal:5", "I"]),
    ("folded", &["I"]),
    ("element", &["X=normal:5", "I"]),
];

#[test]
fn an_index_from_a_tensor_is_checked() {
    let p = Place::new();
    p.write("k.tile", KERNELS);
    for (kernel, args) in RUNS {
        for (range, fine) in [("lo=0:hi=5", true), ("lo=1000000:hi=1000001", false), ("lo=-9:hi=-8", false)] {
            // a span that begins beyond the end is empty
            let fine = fine || (kernel == "span" && range.starts_with("lo=1"));
            for target in ["interp", "cpu"] {
                let index = format!("I=int:6:{range}");
                let name = format!("k.tile::{kernel}");
                let args = args.iter().map(|&a| if a == "I" { index.as_str() } else { a });
                let all: Vec<&str> = ["run", &name, "--target", target].into_iter().chain(args).collect();
                let said = p.run(&all);
                if fine {
                    assert_eq!(said.status, 0, "{all:?}\n{}", said.err);
                } else {
                    assert_eq!(said.status, 1, "{all:?}\n{}{}", said.out, said.err);
                    let code = if kernel == "span" { "P0704" } else { "P0703" };
                    assert!(said.err.contains(code) && said.err.contains("k.tile:"), "{}", said.err);
                }
            }
        }
    }
}

#[test]
fn a_scalar_and_a_search_are_checked() {
    let p = Place::new();
    p.write("k.tile", KERNELS);
    for target in ["interp", "cpu"] {
        let on = ["--target", target];
        p.fine(&[&["run", "k.tile::one", "X=normal:5", "at=4"][..], &on].concat());
        for args in [&["k.tile::one", "X=normal:5", "at=5"][..], &["k.tile::until", "X=normal:5"]] {
            let said = p.run(&[&["run"], args, &on].concat());
            assert_eq!(said.status, 1, "{args:?}\n{}{}", said.out, said.err);
            assert!(said.err.contains("P0703"), "{}", said.err);
        }
    }
}
