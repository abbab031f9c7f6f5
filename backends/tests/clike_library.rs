//! Every specialisation that the library's tests ask for becomes a source for each GPU target, or is refused by name.
//!
//! `PANTILE_SOURCES=DIR` keeps the texts there, for a compiler to read.
#![cfg(all(feature = "cuda", feature = "musa"))]

use pantile_backends::clike::{Source, emit};
use pantile_ir::codes;
use pantile_ir::elab::{Files, Found, Library, elaborate, tests};
use pantile_ir::program::Stage;
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const ARCHS: [&str; 7] = ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "mp_22", "mp_31"];

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = Vec::new();
    for folder in ["kernels", "tests/cases"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "tile") {
                all.push(path);
            }
        }
    }
    all.sort();
    all
}

/// What a text must have, whatever it computes.
fn check_shape(source: &Source, arch: &Arch) {
    let text = &source.text;
    assert_eq!(text.matches('{').count(), text.matches('}').count(), "braces:\n{text}");
    assert_eq!(text.matches('(').count(), text.matches(')').count(), "parentheses:\n{text}");
    let cuda = arch.backend.name() == "cuda";
    assert_eq!(text.contains("#include"), !cuda, "headers:\n{text}");
    assert!(cuda || !text.contains("asm("), "inline assembly on {}:\n{text}", arch.name);
    for k in &source.kernels {
        assert_eq!(text.matches(&format!("{}(", k.symbol)).count(), 1, "{}:\n{text}", k.symbol);
        assert!(text.contains(&format!("__launch_bounds__({})", k.threads)));
    }
}

#[test]
fn library_becomes_sources() {
    let targets = Targets::shipped();
    let keep = std::env::var_os("PANTILE_SOURCES").map(PathBuf::from);
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for path in files() {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let found = Found { name: stem.clone(), path: Some(path.clone()), text };
        let mut sources = Sources::default();
        let search = path.parent().map(Path::to_path_buf).into_iter().collect();
        let (lib, diags) = Library::load(found, &Files { search }, &mut sources);
        assert!(!diags.has_errors(), "{stem}");
        let mut seen = BTreeSet::new();
        for case in tests(&lib, &mut sources).unwrap() {
            if !seen.insert(format!("{:?}", case.request)) {
                continue;
            }
            for name in ARCHS {
                let arch = targets.arch(name).unwrap();
                let Ok(elaborated) = elaborate(&lib, &case.request, arch, &mut sources) else { continue };
                let mut program = elaborated.program;
                program.stage = Stage::Threaded;
                match emit(&program, arch) {
                    Ok(source) => {
                        check_shape(&source, arch);
                        assert_eq!(emit(&program, arch).unwrap(), source, "two runs differ");
                        *made.entry(name).or_default() += 1;
                        names.insert(program.entry.name.clone());
                        if let Some(dir) = &keep {
                            let file = format!("{stem}.{}.{}.{name}.cu", case.name, seen.len());
                            std::fs::write(dir.join(file), source.text).unwrap();
                        }
                    }
                    Err(diags) => {
                        let known =
                            [codes::NOT_THREADED, codes::UNSUPPORTED, codes::WARP_WIDTH, codes::SHARED_LIMIT];
                        for d in diags.iter() {
                            assert!(known.contains(&d.code), "{stem} {}: {}", case.name, d.message);
                            assert!(!d.help.is_empty(), "{}", d.message);
                        }
                    }
                }
            }
        }
    }
    for name in ARCHS {
        assert!(made.get(name).is_some_and(|&n| n > 100), "{made:?}");
    }
    for kernel in ["gemv_naive", "gemv_splitk", "histogram", "extremes", "tickets"] {
        assert!(names.contains(kernel), "{kernel} is missing");
    }
}
