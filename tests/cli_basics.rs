//! Help, usage errors, exit codes, error formats, and the commands that need no kernel.

mod cli_support;

use cli_support::Place;

#[test]
fn help_and_version() {
    let p = Place::new();
    let help = p.fine(&["--help"]);
    for command in
        ["new", "check", "fmt", "run", "test", "emit", "watch", "explain", "targets", "doctor", "cache"]
    {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is not listed");
        let own = p.fine(&[command, "--help"]);
        assert!(own.contains("Usage: pantile"), "{command}");
    }
    assert!(p.fine(&["--version"]).starts_with("pantile "));
}

#[test]
fn usage_errors_are_mistakes_of_the_user() {
    let p = Place::new();
    p.fails(1, &["unrecognized subcommand"], &["walk"]);
    p.fails(1, &["required"], &["run"]);
    let s = p.fails(1, &["P0910"], &["run", "--error-format=json"]);
    let line: serde_json::Value = serde_json::from_str(s.err.trim()).unwrap();
    assert_eq!(line["severity"], "error");
    p.fails(1, &["add `--check` or `--ref NAME`"], &["run", "x.tile", "--rtol", "1e-3"]);
}

#[test]
fn errors_in_three_forms() {
    let p = Place::new();
    p.write("bad.tile", "kernel f(X: f32[N], Y: out f32[N]) {\n    grid N as i\n    Y[i] = Z[i]\n}\n");
    let human = p.fails(1, &["bad.tile:3:", "Z"], &["check", "bad.tile", "--target", "cpu"]);
    assert!(human.err.contains('^'), "{}", human.err);
    let short =
        p.fails(1, &["bad.tile:3:"], &["check", "bad.tile", "--target", "cpu", "--error-format=short"]);
    assert_eq!(short.err.lines().count(), 1, "{}", short.err);
    let json = p.fails(1, &[], &["check", "bad.tile", "--target", "cpu", "--error-format", "json"]);
    for line in json.err.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn targets() {
    let p = Place::new();
    let list = p.fine(&["targets"]);
    assert!(list.contains("x86-64-v3") && list.contains("reference"));
    let facts: serde_json::Value = serde_json::from_str(&p.fine(&["targets", "sm_80", "--json"])).unwrap();
    assert!(facts.as_array().unwrap().iter().all(|f| !f["source"].as_str().unwrap().is_empty()));
    p.fails(1, &["did you mean"], &["targets", "sm_8"]);
    p.write("t.toml", "[arch.mine]\nbackend = \"cpu\"\nwrong = 1\n");
    p.fails(1, &["t.toml", "wrong"], &["targets", "--targets", "t.toml"]);
    p.fails(1, &["absent.toml"], &["targets", "--targets", "absent.toml"]);
}

#[test]
fn explanations() {
    let p = Place::new();
    assert!(p.fine(&["explain", "P0302"]).contains("P0302"));
    assert_eq!(p.fine(&["explain", "302"]), p.fine(&["explain", "p0302"]));
    assert!(p.fine(&["explain"]).lines().count() > 100);
    p.fails(1, &["there is no rule P9999"], &["explain", "P9999"]);
    let page = p.fine(&["explain", "--layout", "m: 8@thr*4 ; n: 4@thr, 2@reg"]);
    assert!(page.contains("T5.r1"), "{page}");
    assert!(p.fine(&["explain", "--layout", "m: 8@mem*64 ; n: 64@mem", "--svg"]).starts_with("<svg"));
    p.fails(1, &["an axis is missing", "--layout:1:6"], &["explain", "--layout", "m: 8@@"]);
}

#[test]
fn doctor_and_cache() {
    let p = Place::new();
    let s = p.run(&["doctor", "--json"]);
    let checks: serde_json::Value = serde_json::from_str(&s.out).unwrap();
    let absent = checks.as_array().unwrap().iter().any(|c| c["state"] == "absent");
    assert_eq!(s.status, if absent { 3 } else { 0 });
    let usage: serde_json::Value = serde_json::from_str(&p.fine(&["cache", "--json"])).unwrap();
    assert_eq!(usage["entries"], 0);
    assert!(p.fine(&["cache", "--clear"]).starts_with("removed 0 entries"));
}

#[test]
fn formatting() {
    let p = Place::new();
    p.write("a.tile", "kernel f(X:f32[N],Y:out f32[N]){\ngrid N as i\nY[i]=X[i]\n}\n");
    let s = p.run(&["fmt", "--check", "a.tile"]);
    assert_eq!((s.status, s.out.as_str()), (1, "a.tile\n"));
    p.fine(&["fmt", "a.tile"]);
    p.fine(&["fmt", "--check", "a.tile"]);
    assert!(p.read("a.tile").contains("X: f32[N]"));
    p.write("b.tile", "kernel f(\n");
    let before = p.read("b.tile");
    p.fails(1, &["b.tile:"], &["fmt", "a.tile", "b.tile"]);
    assert_eq!((p.read("b.tile"), p.files()), (before, vec!["a.tile".to_string(), "b.tile".into()]));
    p.fails(1, &["no such file"], &["fmt", "c.tile"]);
}

#[test]
fn new_kernels_are_sound() {
    for kind in ["gemm", "attention", "rowwise", "elementwise"] {
        let p = Place::new();
        let file = format!("{kind}.tile");
        p.fine(&["new", kind]);
        p.fine(&["fmt", "--check", &file]);
        p.fine(&["check", &file, "--target", "interp,cpu"]);
        p.fine(&["test", &file, "--target", "interp"]);
        p.fails(1, &["is there already"], &["new", kind]);
    }
}

const DOUBLE: &str = "kernel double<T: float>(X: T[N], Y: out T[N]) {
    grid ceildiv(N, 64) as i
    Y[i*64 +: 64] = X[i*64 +: 64] * 2
}
";

#[test]
fn passes_are_dumped_by_name_and_read_back() {
    let p = Place::new();
    p.write("d.tile", DOUBLE);
    p.fine(&["emit", "d.tile", "-p", "T=f32", "--target", "sm_80", "--dump-after", "all", "-o", "out"]);
    for file in ["01-specialise.tile", "02-verify.tile", "03-abi.json"] {
        assert!(p.path("out").join(file).exists(), "{file}");
    }
    let dump = std::fs::read_to_string(p.path("out").join("01-specialise.tile")).unwrap();
    assert!(dump.contains("Y[i*64 +: 64] = read * 2.0"), "{dump}");
    p.write("again.tile", &dump);
    p.fine(&["emit", "again.tile", "--target", "sm_80,sm_90a", "--dump-after", "verify", "-o", "two"]);
    for arch in ["sm_80", "sm_90a"] {
        let again = std::fs::read_to_string(p.path("two").join(arch).join("02-verify.tile")).unwrap();
        assert_eq!(again, dump);
        assert!(!p.path("two").join(arch).join("01-specialise.tile").exists());
    }
    let base = ["emit", "d.tile", "-p", "T=f32", "--target", "sm_80"];
    let with = |more: &[&'static str]| [&base[..], more].concat();
    p.fails(
        1,
        &["there is no pass `lowr`", "specialise, verify, abi"],
        &with(&["--dump-after", "lowr", "-o", "x"]),
    );
    p.fails(1, &["`optimize` does not run for `sm_80`"], &with(&["--dump-after", "optimize", "-o", "x"]));
    p.fails(1, &["--output"], &with(&["--dump-after", "all"]));
}

#[test]
fn check_runs_every_pass() {
    let p = Place::new();
    p.write("d.tile", DOUBLE);
    assert!(p.fine(&["check", "d.tile", "--passes", "--target", "sm_80"]).contains("fine"));
    let entry = ["check", "d.tile::double", "-p", "T=f32", "--passes", "--target", "sm_80"];
    assert!(p.fine(&entry).contains("fine"));
    // what only a later pass can refuse
    p.write(
        "parts.tile",
        "kernel k(X: f32[N], Y: out f32[N]) {
    grid 1 as i
    team math: 2 groups of 32
    fragment c: f32[8] over math partial(add, groups)
    c[:] = X[0 +: 8]
    Y[0 +: 8] = c[:]
}
",
    );
    p.fine(&["check", "parts.tile", "--target", "cpu"]);
    if cfg!(feature = "cpu") {
        p.fails(
            1,
            &["P0830", "`c`, held in 2 parts over groups,"],
            &["check", "parts.tile", "--target", "cpu", "--passes"],
        );
    }
}
