//! The stand-in for MUSA's headers takes right sources and refuses wrong ones: names, arity, types, address spaces,
//! ranges. Without clang it is skipped.
#![allow(clippy::print_stdout)]

use pantile_tests::corpus::root;
use pantile_tests::vendor::{Clang, real_musa};

const ARCHS: [&str; 2] = ["mp_31", "mp_22"];

fn clang() -> Option<Clang> {
    Clang::find().map_err(|why| println!("skipped: {why}")).ok()
}

#[test]
fn right_sources_are_taken() {
    let Some(clang) = clang() else { return };
    let folder = root().join("tests/musa/accepted");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        let only =
            source.lines().next().and_then(|l| l.split_once("only ")).map(|(_, a)| a.trim_end_matches('.'));
        for arch in ARCHS.into_iter().filter(|a| only.is_none_or(|o| o == *a)) {
            clang.check(&source, arch).unwrap_or_else(|log| panic!("{} for {arch}:\n{log}", file.display()));
            if let Some(done) = real_musa(&source, &file.to_string_lossy(), arch) {
                done.unwrap_or_else(|log| panic!("mcc: {log}"));
            }
        }
    }
}

/// Each piece of the file is refused for exactly its own reason.
#[test]
fn wrong_sources_are_refused() {
    let Some(clang) = clang() else { return };
    let text = std::fs::read_to_string(root().join("tests/musa/refused.mu")).unwrap();
    let pieces: Vec<(&str, &str)> =
        text.split("//! ").filter(|p| !p.trim().is_empty()).map(|p| p.split_once('\n').unwrap()).collect();
    assert!(pieces.len() >= 25, "{}", pieces.len());
    let mut wrong = Vec::new();
    for (words, source) in pieces {
        match clang.check(source, "mp_31") {
            Ok(()) => wrong.push(format!("taken, though `{words}`:\n{source}")),
            Err(log) if log.contains(words) => {
                let errors = log.matches("error: ").count();
                if errors > 1 {
                    wrong.push(format!("{errors} errors, one was meant:\n{source}\n{log}"));
                }
            }
            Err(log) => wrong.push(format!("refused, but not for `{words}`:\n{source}\n{log}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n----\n"));
}

/// What only the newer architecture has is refused for the older one.
#[test]
fn architectures_differ() {
    let Some(clang) = clang() else { return };
    let cases = [
        ("extern \"C\" __global__ void k() { __syncthreads_lm(); }", "mp_31"),
        (
            "extern \"C\" __global__ void k(unsigned short* p) { atomicCAS(p, (unsigned short)0, (unsigned short)1); }",
            "mp_31",
        ),
        ("#include <musa_fp8.h>\nextern \"C\" __global__ void k(__mt_fp8_e4m3* p) {}", "mp_31"),
        ("extern \"C\" __global__ void k(char4 a, int* y) { *y = __dp4a(a, a, 0); }", "mp_22"),
    ];
    for (source, has) in cases {
        for arch in ARCHS {
            assert_eq!(clang.check(source, arch).is_ok(), arch == has, "{arch}: {source}");
        }
    }
}
