//! Mistakes by the thousand: the shipped kernels with one name or token spoilt. Nothing panics, and one mistake gives
//! one error.

mod elab_support;

use elab_support::*;
use pantile_ir::diag::Diagnostics;
use pantile_ir::elab::{Files, Found, Library, check_all};
use pantile_ir::span::Sources;
use pantile_ir::target::Arch;
use std::path::{Path, PathBuf};

fn kernels() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let mut all: Vec<PathBuf> = std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "tile") && !p.ends_with("ref.tile"));
    all.sort();
    all.into_iter().map(|p| (p.clone(), std::fs::read_to_string(p).unwrap())).collect()
}

/// All diagnostics of the spoilt text, and whether it could be parsed.
fn check(path: &Path, text: String, arch: &Arch) -> (Vec<String>, bool) {
    let mut sources = Sources::default();
    let found = Found { name: "m.tile".into(), path: Some(path.to_path_buf()), text };
    let (lib, diags) = Library::load(found, &Files::default(), &mut sources);
    if diags.has_errors() {
        return (lines(&diags, &sources), false);
    }
    let found = check_all(&lib, &[arch], &mut sources, &mut |_, _, _| Diagnostics::new());
    let errors: Diagnostics = found.into_iter().filter(|d| d.is_error()).collect();
    (lines(&errors, &sources), true)
}

/// Byte ranges of words and numbers outside comments and strings.
fn words(text: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'/' if bytes.get(i + 1) == Some(&b'/') => {
                while i < bytes.len() && bytes[i] != b'\n' {
                    i += 1;
                }
            }
            b'"' => {
                i += 1;
                while i < bytes.len() && bytes[i] != b'"' {
                    i += 1;
                }
                i += 1;
            }
            c if c.is_ascii_alphanumeric() || c == b'_' => {
                let start = i;
                while i < bytes.len() && (bytes[i].is_ascii_alphanumeric() || bytes[i] == b'_') {
                    i += 1;
                }
                out.push((start, i));
            }
            _ => i += 1,
        }
    }
    out
}

/// How many mutants of each file; `PANTILE_FUZZ_TEXTS` beyond 3,000 tries as many times more.
fn times(n: usize) -> usize {
    let texts: Option<usize> = std::env::var("PANTILE_FUZZ_TEXTS").ok().and_then(|v| v.parse().ok());
    n * texts.map_or(1, |t| t / 3000).max(1)
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

#[test]
fn an_unknown_name_is_one_error() {
    let arch = arch("reference");
    let mut random = Random(7);
    let (mut tried, mut several) = (0, Vec::new());
    for (path, text) in kernels() {
        let all = words(&text);
        for _ in 0..times(20) {
            let (from, to) = all[random.below(all.len())];
            let word = &text[from..to];
            if word.starts_with(|c: char| c.is_ascii_digit()) || pantile_ir::text::words::is_reserved(word) {
                continue;
            }
            // a use, not a declaration: those have many uses that break
            let before = text[..from].trim_end();
            let after = text[to..].trim_start();
            let use_of =
                after.starts_with(['+', '*', ')', ']', ',']) && before.ends_with(['+', '*', '(', '[', '-']);
            if !use_of {
                continue;
            }
            let (found, parsed) = check(&path, format!("{}zzqq{}", &text[..from], &text[to..]), &arch);
            tried += 1;
            if parsed && found.len() > 1 {
                let line = text[..from].matches('\n').count() + 1;
                several.push(format!("{}:{line} `{word}`:\n  {}", path.display(), found.join("\n  ")));
            }
        }
    }
    assert!(
        several.is_empty(),
        "{} of {tried} gave more than one error:\n{}",
        several.len(),
        several.join("\n")
    );
    assert!(tried > 20, "only {tried}");
}

#[test]
fn spoilt_texts_never_panic() {
    let arch = arch("reference");
    let mut random = Random(3);
    let spoilers = [
        "",
        "0",
        "-1",
        "1e400",
        "T",
        "acc",
        "f16",
        "i4",
        "(",
        ")",
        "{",
        "[",
        ":",
        "_",
        "&&",
        "@",
        "..",
        "as",
        "if",
        "const",
        "reducer",
        "sum",
        "99999999999",
        "1.5",
        "none",
        "target",
        "x",
        "let",
        "\"\"",
        "[]",
        "op=",
    ];
    let mut parsed = 0;
    for (path, text) in kernels() {
        let all = words(&text);
        for _ in 0..times(15) {
            let (from, to) = all[random.below(all.len())];
            let other = all[random.below(all.len())];
            let with = match random.below(4) {
                0 => &text[other.0..other.1],
                _ => spoilers[random.below(spoilers.len())],
            };
            let spoilt = format!("{}{with}{}", &text[..from], &text[to..]);
            parsed += usize::from(check(&path, spoilt, &arch).1);
        }
    }
    assert!(parsed > 40, "only {parsed} could be parsed");
}
