//! Every shipped `.tile` file elaborates for every dtype its generics admit, and its tests expand.

mod elab_support;

use elab_support::*;
use pantile_ir::codes;
use pantile_ir::diag::Diagnostics;
use pantile_ir::elab::{Files, Found, Library, TestCase, check_all, elaborate, tests};
use pantile_ir::span::Sources;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

fn tile_files(dir: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(dir);
    let mut files: Vec<PathBuf> = std::fs::read_dir(root)
        .expect("a folder")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "tile"))
        .collect();
    files.sort();
    files
}

fn load_file(path: &Path, sources: &mut Sources) -> (Library, Diagnostics) {
    let text = std::fs::read_to_string(path).expect("a text");
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let found = Found { name, path: Some(path.to_path_buf()), text };
    Library::load(found, &Files::default(), sources)
}

fn placed(diags: &Diagnostics, sources: &Sources, path: &Path) -> Vec<String> {
    let file = path.file_name().unwrap().to_string_lossy().into_owned();
    // which types have atomics is the business of the type rules, and tested there
    let ours: Diagnostics = diags.iter().filter(|d| d.code != codes::ATOMIC_TYPE).cloned().collect();
    lines(&ours, sources).into_iter().map(|l| format!("{file}:{l}")).collect()
}

fn check(path: &Path) -> Vec<String> {
    let mut sources = Sources::default();
    let (lib, diags) = load_file(path, &mut sources);
    if diags.has_errors() {
        return placed(&diags, &sources, path);
    }
    let reference = arch("reference");
    let found = check_all(&lib, &[&reference], &mut sources, &mut |_, _, _| Diagnostics::new());
    let errors: Diagnostics = found.into_iter().filter(|d| d.is_error()).collect();
    placed(&errors, &sources, path)
}

#[test]
fn kernels_check() {
    let found: Vec<String> = tile_files("kernels").iter().flat_map(|p| check(p)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn cases_check() {
    let found: Vec<String> = tile_files("tests/cases").iter().flat_map(|p| check(p)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn place_in(diags: &Diagnostics, sources: &Sources, path: &Path, case: &TestCase) -> Vec<String> {
    placed(diags, sources, path)
        .into_iter()
        .map(|l| format!("{l} in {} ({})", case.name, case.label))
        .collect()
}

#[test]
fn every_test_case_elaborates() {
    let reference = arch("reference");
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut seen = HashSet::new();
    for path in tile_files("kernels").iter().chain(&tile_files("tests/cases")) {
        let mut sources = Sources::default();
        let (lib, _) = load_file(path, &mut sources);
        let cases = match tests(&lib, &mut sources) {
            Ok(cases) => cases,
            Err(d) => {
                wrong.extend(placed(&d, &sources, path));
                continue;
            }
        };
        for case in cases {
            count += 1;
            // dims do not change what is elaborated
            if !seen.insert(format!("{} {:?}", path.display(), case.request)) {
                continue;
            }
            let mut requests = vec![case.request.clone()];
            match elaborate(&lib, &case.request, &reference, &mut sources) {
                Ok(e) => match case.args(&e.program.entry) {
                    Ok(args) => {
                        requests.extend(case.expects.iter().filter_map(|x| case.reference_request(x, &args)))
                    }
                    Err(text) => wrong.push(format!("{}: {text} in {}", path.display(), case.name)),
                },
                Err(d) => wrong.extend(place_in(&d, &sources, path, &case)),
            }
            for request in &requests[1..] {
                if let Err(d) = elaborate(&lib, request, &reference, &mut sources) {
                    wrong.extend(place_in(&d, &sources, path, &case));
                }
            }
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
    assert!(count > 500);
}
