//! `pantile build`: programs in C call kernels from an object and from a shared library.

mod cli_support;

use cli_support::{Place, library};
use std::process::Command;

/// Small whole numbers, so that any order of additions gives the same sum.
const MAIN: &str = r#"
#include "gemv.h"
#include <stdio.h>
enum { N = 37, K = 1000 };
static float x[K], B[N * K], y[N];
int main(void) {
    for (int k = 0; k < K; k++) x[k] = (float)(k % 7 - 3);
    for (int i = 0; i < N * K; i++) B[i] = (float)(i % 11 - 5);
    uint64_t status = gemv_allreduce(x, B, y, K, N);
    if (status) { printf("%s\n", gemv_allreduce_message(status)); return 2; }
    for (int n = 0; n < N; n++) {
        float want = 0;
        for (int k = 0; k < K; k++) want += B[n * K + k] * x[k];
        if (y[n] != want) { printf("row %d: %g, not %g\n", n, y[n], want); return 1; }
    }
    puts("right");
    return 0;
}
"#;

fn build(p: &Place, rest: &[&str]) {
    let kernel = format!("{}::gemv_allreduce", library("gemv.tile"));
    p.fine(&[&["build", &kernel, "-p", "T=f32"], rest].concat());
}

/// Compiles the caller with one more file and runs it.
fn calls(p: &Place, with: &str) -> String {
    p.write("main.c", MAIN);
    let at = |name: &str| p.path(name).into_os_string();
    let made = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .args([at("main"), at("main.c"), at(with)])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let ran = Command::new(p.path("main")).output().unwrap();
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn from_an_object() {
    let p = Place::new();
    build(&p, &["-o", "gemv.o", "--header", "gemv.h"]);
    assert_eq!(p.files(), ["gemv.h", "gemv.o"]);
    assert_eq!(calls(&p, "gemv.o"), "right\n");
}

#[test]
fn from_a_shared_library() {
    let p = Place::new();
    build(&p, &["-o", "gemv.so", "--header", "gemv.h"]);
    assert_eq!(p.files(), ["gemv.h", "gemv.json", "gemv.so"]);
    assert_eq!(calls(&p, "gemv.so"), "right\n");
    build(&p, &["-o", "out"]);
    for ending in ["h", "json", "o", "so"] {
        assert!(p.path(&format!("out/gemv_allreduce.{ending}")).exists(), "{ending}");
    }
}

#[test]
fn refusals() {
    let p = Place::new();
    let kernel = format!("{}::gemv_allreduce", library("gemv.tile"));
    let args = |rest: &'static [&'static str]| -> Vec<&str> {
        [&["build", kernel.as_str(), "-p", "T=f32"], rest].concat()
    };
    let said = p.run_with(&[("CC", "no-such-compiler")], &args(&["-o", "gemv.so"]));
    assert_eq!(said.status, 3, "{}", said.err);
    assert!(said.err.contains("P0913") && said.err.contains("no-such-compiler"), "{}", said.err);
    assert_eq!(p.files(), [""; 0]);
    p.fails(1, &["P0910", ".o"], &args(&["-o", "gemv.exe"]));
    p.fails(3, &["P0913", "processor"], &args(&["-t", "cuda:sm_80", "-o", "gemv.o"]));
    p.write("says.tile", "kernel says(x: f32[N], y: out f32[N]) {\n    grid N as i\n    print(\"here\", i)\n    y[i] = x[i]\n}\n");
    p.fails(1, &["print"], &["build", "says.tile", "-o", "says.o"]);
}
