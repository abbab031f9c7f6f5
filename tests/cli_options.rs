//! Options and files that are refused before any work, and what is said of them.

mod cli_support;

use cli_support::{Place, library};

const PAIR: &str = "\
kernel pair<T: float>(X: T[N], W: T[N], Y: out T[N], Z: out T[N]) {
    grid N as i
    print(\"n\", N, \"i=\", i, \", x\", X[i])
    Y[i] = X[i] + W[i]
    Z[i] = X[i] - W[i]
}
";

fn place() -> Place {
    let p = Place::new();
    p.write("pair.tile", PAIR);
    p
}

fn pair<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    [&["run", "pair.tile", "X=iota:2", "W=iota:2", "-p", "T=f32"], rest].concat()
}

#[test]
fn numbers_out_of_range() {
    let p = place();
    for option in ["--threads=0", "--threads=20000", "--repeat=0", "--orders=0"] {
        p.fails(1, &["is not in 1..="], &pair(&[option, "-t", "interp"]));
    }
    p.fails(1, &["1..=4096"], &["test", "pair.tile", "--jobs", "5000"]);
    for option in ["--rtol=nan", "--rtol=-1", "--atol=inf", "--atol=-0.5", "--rtol=-inf"] {
        p.fails(1, &["a tolerance is a finite number, zero or more"], &pair(&["--check", option]));
    }
    p.fails(1, &["this is no number"], &pair(&["--check", "--rtol", "much"]));
    p.fine(&pair(&["--check", "--rtol", "0", "--atol", "1e-6", "-t", "interp"]));
}

#[test]
fn options_that_the_target_would_not_heed() {
    let p = place();
    p.fails(
        1,
        &["`--threads` is for native code", "interp (reference)"],
        &pair(&["--threads", "2", "-t", "interp"]),
    );
    p.fine(&pair(&["--orders", "3", "-t", "interp"]));
    if pantile::llvm_version().is_some() {
        p.fails(1, &["`--orders` is for the interpreter"], &pair(&["--orders", "3", "-t", "cpu"]));
        p.fine(&pair(&["--threads", "2", "-t", "cpu"]));
    }
}

#[test]
fn dims_that_contradict_inputs() {
    let p = place();
    let gemm = format!("{}::gemm", library("gemm.tile"));
    let call = ["run", &gemm, "A=normal:3x4", "B=normal:4x5", "-p", "T=f32", "-t", "interp"];
    p.fails(
        1,
        &["`K` is given as 7, but it is 4 from axis 1 of `A`"],
        &[&call[..], &["--dim", "K=7"]].concat(),
    );
    p.fine(&[&call[..], &["--dim", "K=4"]].concat());
    p.write(
        "s.tile",
        "kernel s(B: f32[K, N] strides (1, ldb), Y: out f32[K, N]) {\n    grid K as k\n    \
         for n in 0..N { Y[k, n] = B[k, n] }\n}\n",
    );
    let strided = ["run", "s.tile", "B=iota:3x5", "-t", "interp", "--dim", "ldb=40"];
    p.fails(1, &["`ldb` is a stride of `B`"], &strided);
    for command in ["check", "emit"] {
        p.fails(1, &["`K` is a dim of the launch"], &[command, "s.tile::s", "-t", "cpu", "--dim", "K=3"]);
    }
}

#[test]
fn outputs_that_cannot_be_written_are_told_before_the_work() {
    let p = place();
    p.write("plain", "");
    std::fs::create_dir(p.path("folder.npy")).unwrap();
    let before = p.files();
    let cases: &[(&[&str], &str)] = &[
        (&["Y=@no/such/y.npy"], "there is no folder `no/such`"),
        (&["Y=@plain/y.npy"], "`plain` is a file, not a folder"),
        (&["Y=@folder.npy"], "cannot write `folder.npy`: it is a folder"),
        (&["Y=@y.npy:key"], "`:key` names nothing"),
        (&["Y=@y.npy", "Z=@./y.npy"], "can hold one array"),
        (&["Y=@y.npz:a", "Z=@y.npz:a"], "two outputs are called `a`"),
        (&["Y=@y.npy", "Z=@no/z.npy"], "there is no folder `no`"),
    ];
    for (outputs, words) in cases {
        let s = p.fails(1, &[words], &pair(&[outputs, &["-t", "interp"][..]].concat()));
        assert_eq!(s.out, "", "{outputs:?}: the kernel ran");
        assert_eq!(p.files(), before, "{outputs:?}: something was left");
    }
    p.fine(&pair(&["Y=@y.npy", "Z=@z.npz:z", "-t", "interp"]));
    assert_eq!(p.files(), ["folder.npy", "pair.tile", "plain", "y.npy", "z.npz"]);
}

#[test]
fn types_of_files_that_do_not_fit() {
    let p = place();
    p.write("make.tile", "kernel make<T: dtype>(Y: out T[N]) {\n    grid N as i\n    Y[i] = T(1)\n}\n");
    for (file, ty) in [("f32.npy", "f32"), ("f64.npy", "f64"), ("i64.npy", "i64")] {
        let (out, param) = (format!("Y=@{file}"), format!("T={ty}"));
        p.fine(&["run", "make.tile", "--dim", "N=2", &out, "-p", &param, "-t", "interp"]);
    }
    let run = |x: &str, w: &str, more: &[&str]| {
        let (x, w) = (format!("X={x}"), format!("W={w}"));
        let mut args = vec!["run", "pair.tile", &x, &w, "-t", "interp"];
        args.extend(more);
        let s = p.fails(1, &["P0751", "pair.tile:1:"], &args);
        s.err
    };
    let said = run("i64.npy", "f32.npy", &[]);
    for words in
        ["`X` is f32, but `i64.npy` holds i64", "`T` is f32 from `W` (`f32.npy`)", "convert `i64.npy`"]
    {
        assert!(said.contains(words), "{said}");
    }
    let said = run("f32.npy", "f64.npy", &[]);
    assert!(said.contains("convert `f64.npy` to f32, or `f32.npy` to f64"), "{said}");
    let said = run("f32.npy", "f32.npy", &["-p", "T=f16"]);
    assert!(said.contains("`-p T=f16` says so") && said.contains("give `-p T=f32`"), "{said}");
}

#[test]
fn prints() {
    let p = place();
    let lines = "n 2 i=0, x 0.0\nn 2 i=1, x 1.0\n";
    let mut targets = vec!["interp"];
    targets.extend(pantile::llvm_version().map(|_| "cpu"));
    for target in targets {
        let out = p.fine(&pair(&["--check", "-t", target]));
        let mut printed: Vec<&str> = out.lines().filter(|l| l.starts_with('n')).collect();
        printed.sort_unstable();
        assert_eq!(printed, lines.lines().collect::<Vec<_>>(), "{target}: {out}");
        let json = p.fine(&pair(&["--json", "-t", target]));
        serde_json::from_str::<serde_json::Value>(&json).unwrap();
    }
}

#[test]
fn caches_that_cannot_be_used() {
    let p = place();
    p.write("plain", "");
    let plain = p.path("plain").display().to_string();
    let dir = [("PANTILE_CACHE_DIR", plain.as_str())];
    let s = p.run_with(&dir, &["cache"]);
    assert_eq!(s.status, 1, "{}{}", s.out, s.err);
    assert!(s.err.contains("cannot be the cache: a part of the path is a file"), "{}", s.err);
    let s = p.run_with(&dir, &["doctor"]);
    assert!(s.out.contains("cannot be the cache, so nothing built is kept"), "{}", s.out);
    let size = [("PANTILE_CACHE_SIZE", "abc")];
    let words = "PANTILE_CACHE_SIZE is `abc`, which is no number of bytes";
    let s = p.run_with(&size, &["cache"]);
    assert!(s.status == 0 && s.err.contains(words), "{}{}", s.out, s.err);
    let s = p.run_with(&size, &["doctor"]);
    assert!(s.out.contains(words), "{}", s.out);
    if pantile::llvm_version().is_some() {
        for (vars, words) in [(dir, "nothing built is kept"), (size, words)] {
            let s = p.run_with(&vars, &pair(&["-t", "cpu"]));
            assert!(s.status == 0 && s.err.contains(words), "{}{}", s.out, s.err);
            assert_eq!(s.err.lines().count(), 1, "{}", s.err);
        }
    }
}

#[test]
fn no_words_of_the_system() {
    let p = place();
    std::fs::write(p.path("bytes.toml"), [0xff, 0xfe]).unwrap();
    p.write("top.toml", "hello = 1\n");
    let folder = p.path("").display().to_string();
    let cases: &[(&str, &str)] = &[
        ("absent.toml", "cannot read `absent.toml`: no such file"),
        ("bytes.toml", "cannot read `bytes.toml`: it is no text in UTF-8"),
        (&folder, "it is a folder"),
        ("top.toml", "a targets file has no key `hello`"),
    ];
    for (file, words) in cases {
        let s = p.fails(1, &[words], &["check", "--targets", file, "pair.tile"]);
        assert!(!s.err.contains("os error"), "{}", s.err);
    }
}

#[test]
fn limits_name_their_target() {
    let p = Place::new();
    p.write(
        "big.tile",
        "kernel f(y: out f32[N]) {\n    grid N as i\n    threads 32 as t\n    shared s: f32[100000]\n    \
         s[t] = 1\n    if t == 0 { y[i] = s[0] }\n}\n",
    );
    p.fails(1, &["`sm_80` has 166912"], &["check", "big.tile", "-t", "sm_80"]);
    let all = p.fails(
        1,
        &["P0821", "refused for reference, ", "the limit is that of `reference`"],
        &["check", "big.tile"],
    );
    assert!(!all.err.contains("for mp_31\n"), "{}", all.err);
}

/// Following the help gives the right maxima, also where all of them are negative.
#[test]
fn the_remedy_of_a_kept_edge_is_neutral() {
    let p = Place::new();
    let text = |pad: &str| {
        format!(
            "kernel f(X: f32[N], y: out f32[1]) {{\n    grid 1 as i\n    var m = zeros f32[24] - inf\n    \
             for k in 0..ceildiv(N, 24) {{ m = max(m, X[k*24 +: 24]{pad}) }}\n    y[0] = max(m)\n}}\n"
        )
    };
    p.write("m.tile", &text(""));
    let s = p.fails(1, &["P0416", "leaves `m` as it is"], &["check", "m.tile", "-t", "cpu"]);
    let (_, pad) = s.err.split_once("`A[...]").unwrap();
    let (pad, _) = pad.split_once('`').unwrap();
    p.write("m.tile", &text(pad));
    let json = p.fine(&["run", "m.tile", "X=iota:33:shift=-100", "--json", "-t", "interp"]);
    let v: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(v["outputs"][0]["max"].as_f64(), Some(-68.0), "{json}");
}

#[test]
fn what_is_neither_an_array_nor_a_number_is_told_apart_from_a_wrong_shape() {
    let p = place();
    for value in ["gauss:2", "pair.tile", "."] {
        let x = format!("X={value}");
        p.fails(
            1,
            &["is neither a file nor a description", "normal:128x64"],
            &["run", "pair.tile", &x, "W=iota:2", "-p", "T=f32", "-t", "interp"],
        );
    }
}
