//! `pantile run`: inputs, outputs, checks and their exit codes, on the interpreter.

mod cli_support;

use cli_support::{Place, library};

const SCALE: &str = "\
kernel scale<T: float>(X: T[M, N], Y: out T[M, N], s: T) {
    grid M as i
    for j in 0..N { Y[i, j] = s * X[i, j] }
}

kernel off<T: float>(X: T[M, N], Y: out T[M, N], s: T) {
    grid M as i
    for j in 0..N { Y[i, j] = s * X[i, j] + 1 }
}
";

fn place() -> Place {
    let p = Place::new();
    p.write("scale.tile", SCALE);
    p
}

const ON: [&str; 4] = ["--target", "interp", "-p", "T=f32"];

fn run<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    [&["run", "scale.tile::scale"], rest, &ON].concat()
}

#[test]
fn arrays_go_in_and_come_out() {
    let p = place();
    for file in ["y.npy", "y.npz:out", "y.safetensors:out"] {
        let out = format!("Y=@{file}");
        p.fine(&run(&["X=iota:2x3", "s=2", &out]));
        let back = format!("X={file}");
        let json = p.fine(&run(&[&back, "s=0.5", "--json"]));
        let v: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (v["outputs"][0]["max"].as_f64(), v["outputs"][0]["shape"][1].as_u64()),
            (Some(5.0), Some(3))
        );
    }
}

#[test]
fn right_and_wrong_results() {
    let p = place();
    let out = p.fine(&run(&["X=normal:7x33:1", "s=3", "--check"]));
    assert!(out.contains("Y: right"), "{out}");
    let wrong = p.run(&run(&["X=normal:7x33:1", "s=3", "--ref", "off"]));
    assert_eq!(wrong.status, 2, "{}{}", wrong.out, wrong.err);
    assert!(wrong.out.contains("Y: WRONG: 231 of 231 elements are wrong"), "{}", wrong.out);
    p.fine(&run(&["X=normal:7x33:1", "s=3", "--ref", "off", "--atol", "1.1"]));
}

#[test]
fn empty_shapes() {
    let p = place();
    for shape in ["0x5", "5x0"] {
        let x = format!("X=normal:{shape}");
        p.fine(&run(&[&x, "s=1", "Y=@y.npy", "--check"]));
    }
}

#[test]
fn mistakes_name_the_thing() {
    let p = place();
    let cases: &[(&[&str], &[&str])] = &[
        (&["X=x.npy", "s=1"], &["P0901", "cannot read `x.npy`: no such file"]),
        (&["X=normal:2x3"], &["`s` is missing", "scale(X: f32[M, N], Y: out f32[M, N], s: f32)"]),
        (&["X=normal:2x3", "s=1", "Z=1"], &["Z"]),
        (&["X=normal:2x3", "s=one"], &["`s` is f32, but `one` is no number"]),
        (&["X=normal:6", "s=1"], &["`X`", "2"]),
        (&["X=normal:2y3", "s=1"], &["P0906", "no shape"]),
        (&["X=12", "s=1"], &["X"]),
        (&["X=normal:2x3", "s=1", "Y=@y.txt"], &["`y.txt` is not an array file"]),
        (&["X=normal:2x3", "s=1", "X=@x.npy"], &["`X` is only read"]),
        (&["X=normal:2x3", "s=1", "Y=@no/such/y.npy"], &["cannot write `no/such/y.npy`"]),
        (&["X=normal:2x3", "X=normal:2x3", "s=1"], &["`X` is given twice"]),
        (&["X=normal:2x3", "s=1", "--dim", "Q=3"], &["no dim `Q`"]),
        (&["X=normal:2x3", "s=1", "-p", "BM=3"], &["BM"]),
    ];
    for (rest, words) in cases {
        p.fails(1, words, &run(rest));
    }
    assert_eq!(p.files(), ["scale.tile"], "something half-written was left");
    p.fails(1, &["several kernels", "name one: `scale.tile::scale`"], &["run", "scale.tile"]);
    p.fails(1, &["no kernel or op `scales`", "`scale`"], &["run", "scale.tile::scales"]);
    p.write("bad.npy", "garbage");
    p.fails(1, &["P0903", "`bad.npy` is not usable"], &run(&["X=bad.npy", "s=1"]));
}

#[test]
fn missing_devices() {
    let p = place();
    p.fails(
        3,
        &["cannot run code for `cuda`"],
        &["run", "scale.tile::scale", "X=normal:2x3", "s=1", "--target", "cuda"],
    );
    p.fails(1, &["no target is called `gpu`"], &["run", "scale.tile::scale", "--target", "gpu"]);
}

#[test]
fn shapes_that_disagree() {
    let p = Place::new();
    let gemm = format!("{}::gemm", library("gemm.tile"));
    let words = ["`B` has 100 rows (axis 0), but K is 128 from axis 1 of `A`"];
    p.fails(
        1,
        &words,
        &["run", &gemm, "A=normal:4x128", "B=normal:100x6", "-p", "T=f32", "--target", "interp"],
    );
}

#[test]
fn strided_and_packed_parameters() {
    let p = Place::new();
    p.write(
        "s.tile",
        "kernel s(B: f32[K, N] strides (1, ldb), Y: out f32[K, N] strides (1, ldy)) {\n    grid K as k\n    \
         for n in 0..N { Y[k, n] = 2 * B[k, n] }\n}\n",
    );
    let out = p.fine(&["run", "s.tile", "B=iota:3x5", "Y=@y.npy", "--check", "--target", "interp"]);
    assert!(out.contains("right: 15 elements"), "{out}");
    p.write(
        "w.tile",
        "kernel w(W: u4[N, K] packed(K, order = linear), Y: out i32[N, K]) {\n    grid N as n\n    \
         for k in 0..K { Y[n, k] = i32(W[n, k]) }\n}\n",
    );
    p.fine(&["run", "w.tile", "W=int:3x8:1", "Y=@y.npy", "--target", "interp"]);
    p.fails(1, &["share a unit of storage"], &["run", "w.tile", "W=int:3x7", "--target", "interp"]);
}
