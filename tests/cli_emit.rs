//! `pantile emit`: every stage, several targets, places that take nothing, differences.

mod cli_support;

use cli_support::{Place, library};

/// The library's row reduction over threads, for half precision.
fn kernel() -> String {
    format!("{}::gemv_allreduce", library("gemv.tile"))
}

fn emit<'a>(kernel: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["emit", kernel, "-p", "T=f16"], rest].concat()
}

/// The value of `key: value`.
fn fact<'a>(facts: &'a str, key: &str) -> &'a str {
    let line = facts.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no `{key}` in\n{facts}"))
}

#[test]
fn programs_of_each_stage() {
    let (p, k) = (Place::new(), kernel());
    let stage = |s: &str| p.fine(&emit(&k, &["-t", "sm_80", "--stage", s]));
    assert!(stage("tile").contains("allreduce"));
    assert!(stage("threaded").contains("shfl_xor"));
    let last = stage("final");
    assert!(last.contains("seg(") && !last.contains(" allreduce("), "{last}");
    // what is printed is a program
    p.write("last.tile", &last);
    p.fine(&["check", "last.tile", "--target", "sm_80"]);
    for stage in ["scheduled", "threaded", "final"] {
        p.fails(3, &["P0913", "between tile text and code"], &emit(&k, &["-t", "cpu", "--stage", stage]));
    }
}

#[test]
fn sources_of_both_vendors() {
    let (p, k) = (Place::new(), kernel());
    let source = |t: &str| p.fine(&emit(&k, &["-t", t, "--stage", "source"]));
    let (cuda, musa) = (source("cuda:sm_90a"), source("musa:mp_31"));
    assert!(cuda.contains("__global__") && !cuda.contains("#include"), "{cuda}");
    assert!(musa.contains("#include") && musa.contains("__global__"), "{musa}");
    let both = p.fine(&emit(&k, &["-t", "cuda:sm_90a,musa:mp_31", "--stage", "source"]));
    assert_eq!(both, format!("// target cuda:sm_90a\n{cuda}// target musa:mp_31\n{musa}"));
    p.fails(3, &["P0913", "`--stage llvm`"], &emit(&k, &["-t", "cpu", "--stage", "source"]));
}

#[test]
fn facts_are_a_key_and_a_value_a_line() {
    let (p, k) = (Place::new(), kernel());
    let facts = p.fine(&emit(&k, &["-t", "sm_80", "--stage", "facts"]));
    assert!(facts.lines().all(|l| l.split_once(": ").is_some_and(|(k, v)| !k.is_empty() && !v.is_empty())));
    assert_eq!(fact(&facts, "shuffles"), "5");
    assert_eq!(fact(&facts, "bytes"), "2*K*N + 2*K + 2*N");
    assert_eq!(fact(&facts, "barriers of the block"), "0");
    assert_eq!(fact(&facts, "shared atomics"), "0");
    assert_ne!(fact(&facts, "global loads of 128 bits"), "0");
    assert_eq!(fact(&facts, "threads"), "64");
    assert_eq!(fact(&facts, "shared bytes"), "0");
}

#[test]
fn a_folder_for_each_target() {
    let (p, k) = (Place::new(), kernel());
    p.fine(&emit(&k, &["-t", "sm_80,mp_31", "--stage", "source", "-o", "out"]));
    assert!(p.read("out/sm_80/gemv_allreduce.cu").contains("__global__"));
    assert!(p.read("out/mp_31/gemv_allreduce.mu").contains("__global__"));
    p.fine(&emit(&k, &["-t", "sm_80", "--stage", "source", "-o", "one.cu"]));
    assert_eq!(p.read("one.cu"), p.read("out/sm_80/gemv_allreduce.cu"));
    p.fine(&emit(&k, &["-t", "sm_80", "--stage", "facts", "-o", "out"]));
    assert!(p.read("out/gemv_allreduce.facts").contains("shuffles: 5"));
    let dumps = p.fine(&emit(&k, &["-t", "musa:mp_31", "--dump-after", "all", "-o", "dumps"]));
    let last = dumps.lines().last().unwrap();
    assert!(last.ends_with("-source.mu"), "{dumps}");
    assert_eq!(p.read(last), p.read("out/mp_31/gemv_allreduce.mu"));
}

#[test]
fn places_that_take_nothing_are_told_before_the_work() {
    let p = Place::new();
    p.write("plain", "");
    // would be refused for its target, had the work begun
    let k = kernel();
    let before = p.files();
    let cases: &[(&str, &str, &str)] = &[
        ("sm_80", "no/such.ll", "there is no folder `no`"),
        ("sm_80", "plain/x.ll", "`plain` is a file, not a folder"),
        ("sm_80,mp_31", "plain", "`plain` is a file, not a folder"),
        ("sm_80,mp_31", "plain/more", "`plain` is a file, not a folder"),
    ];
    for (target, output, words) in cases {
        p.fails(1, &[words], &emit(&k, &["--stage", "llvm", "-t", target, "-o", output]));
        assert_eq!(p.files(), before, "{output}");
    }
    p.fails(1, &["P0910", "`-o FILE`"], &emit(&k, &["-t", "sm_80", "--stage", "cubin"]));
}

#[test]
fn differences_of_passes_and_targets() {
    let (p, k) = (Place::new(), kernel());
    let changes = p.fine(&emit(&k, &["-t", "sm_80", "--diff", "vectorize..reduce"]));
    assert!(changes.starts_with("--- after vectorize\n+++ after reduce\n@@ "), "{changes}");
    assert!(changes.lines().any(|l| l.starts_with('-') && l.contains("allreduce")), "{changes}");
    assert!(changes.lines().any(|l| l.starts_with('+') && l.contains("shfl_xor")), "{changes}");
    let targets = p.fine(&emit(&k, &["--stage", "source", "--diff", "sm_80..mp_31"]));
    assert!(targets.starts_with("--- sm_80\n+++ mp_31\n"), "{targets}");
    assert!(targets.contains("+#include"), "{targets}");
    assert_eq!(p.fine(&emit(&k, &["--stage", "facts", "--diff", "sm_80..cuda:sm_80"])), "");
    p.fails(1, &["no pass `nothing`", "vectorize"], &emit(&k, &["-t", "sm_80", "--diff", "nothing..reduce"]));
    p.fails(1, &["write A..B"], &emit(&k, &["--diff", "reduce"]));
    p.fails(1, &["sm_8000"], &emit(&k, &["--diff", "sm_80..sm_8000"]));
}

/// Without the vendor's compiler and tools; where they are is not this machine's to say.
#[test]
fn what_vendors_make_is_named_where_it_is_absent() {
    let (p, k) = (Place::new(), kernel());
    let nowhere = p.path("nowhere").display().to_string();
    let vars = [("PANTILE_NVRTC", nowhere.as_str()), ("MUSA_HOME", nowhere.as_str())];
    let cases: &[(&str, &str, &[&str])] = &[
        ("sm_80", "ptx", &["P0913", "no PTX for `sm_80`", "PANTILE_NVRTC"]),
        ("sm_80", "sass", &["P0913", "no SASS for `sm_80`"]),
        ("sm_90a", "cubin", &["P0913", "no machine code for `sm_90a`", "nvidia-cuda-nvrtc"]),
        ("mp_31", "cubin", &["P0913", "no machine code for `mp_31`", "MUSA_HOME"]),
        ("mp_31", "ptx", &["P0913", "`mp_31` has no PTX"]),
    ];
    for (target, stage, words) in cases {
        let s = p.run_with(&vars, &emit(&k, &["-t", target, "--stage", stage, "-o", "x"]));
        assert_eq!(s.status, 3, "{target} {stage}: {}", s.err);
        assert!(words.iter().all(|w| s.err.contains(w)), "{target} {stage}: {}", s.err);
    }
    let facts = p.run_with(&vars, &emit(&k, &["-t", "sm_80", "--stage", "facts"])).out;
    assert_eq!(fact(&facts, "registers"), "unknown");
    assert_eq!(fact(&facts, "spilled bytes"), "unknown");
}

/// Where NVRTC is here, it takes the source.
#[test]
fn machine_code_where_the_compiler_is_here() {
    let (p, k) = (Place::new(), kernel());
    if pantile::runtime::vendor::Nvrtc::find().is_err() {
        return;
    }
    let ptx = p.fine(&emit(&k, &["-t", "sm_80", "--stage", "ptx"]));
    assert!(ptx.contains(".entry gemv_allreduce") && ptx.contains("shfl.sync"), "{ptx}");
    p.fine(&emit(&k, &["-t", "sm_80", "--stage", "cubin", "-o", "k.cubin"]));
    assert!(std::fs::read(p.path("k.cubin")).unwrap().starts_with(b"\x7fELF"));
    let facts = p.fine(&emit(&k, &["-t", "sm_80", "--stage", "facts"]));
    assert!(fact(&facts, "registers").parse::<u32>().is_ok(), "{facts}");
}

#[test]
fn what_was_left_before_a_pass_that_fails_is_dumped() {
    let p = Place::new();
    p.write(
        "told.tile",
        "kernel told(X: f32[N], Y: out f32[N]) {
    grid ceildiv(N, 64) as i
    let x = X[i*64 +: 64]
    print(\"x\", x)
    Y[i*64 +: 64] = x
}
",
    );
    let dump = |wanted: &'static str, to: &'static str| {
        ["emit", "told.tile", "-t", "sm_80", "--dump-after", wanted, "-o", to]
    };
    p.fails(1, &["P0830", "a tile is printed"], &dump("all", "all"));
    assert!(p.read("all/07-layout.tile").contains("stage scheduled"));
    assert!(!p.path("all/08-lower.tile").exists());
    // what comes before it is there, whatever follows
    let left = p.fine(&dump("layout", "one"));
    assert!(p.read(left.trim()).contains("stage scheduled"));
}
