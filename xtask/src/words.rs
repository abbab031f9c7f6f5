//! Words that must not stand in certain places.

use crate::{Findings, files};
use anyhow::Result;
use std::collections::BTreeSet;

/// Vendors, their tools and products: passes and the shared C-like writer ask a target's facts instead.
const VENDORS: [&str; 17] = [
    "cuda",
    "musa",
    "nvidia",
    "amd",
    "hopper",
    "blackwell",
    "ampere",
    "wgmma",
    "sqmma",
    "nvrtc",
    "ptx",
    "ptxas",
    "cubin",
    "sass",
    "mcc",
    "mtgpu",
    "mthreads",
];
/// Where no vendor may be named.
const NEUTRAL: [&str; 2] = ["passes/src", "backends/src/clike"];
/// Where no kernel of the library may be named: every kernel goes one way.
const KERNEL_BLIND: [&str; 2] = ["passes/src", "backends/src"];
/// Names of kernels, or their first words, that are operations and plain words as well.
const PLAIN: &str = "absolute add cast copy decode extremes fill gemm linear map max min normal piece product random reduce \
                     scale scan scatter signs sum reduce_all tickets transpose uniform variance";
const UNDONE: [&str; 5] = ["todo!(", "unimplemented!(", "FIXME", "TODO", "HACK"];

pub fn check() -> Result<Findings> {
    let mut found = Findings::default();
    let kernels = kernels()?;
    found.notes.push(format!("{} names of kernels are kept out of passes and back ends", kernels.len()));
    for path in files::list(&[".rs", ".tile", ".py", ".sh", "x", "run"])? {
        // this file lists the words
        if path.ends_with("xtask/src/words.rs") {
            continue;
        }
        let Ok(text) = files::read(&path) else { continue };
        let within = |folders: &[&str]| folders.iter().any(|f| path.starts_with(f));
        let (neutral, blind) = (within(&NEUTRAL), within(&KERNEL_BLIND));
        // unit tests may take a kernel of the library for an example
        let tests = text.find("#[cfg(test)]").map_or(usize::MAX, |at| text[..at].lines().count());
        for (i, line) in text.lines().enumerate() {
            let at = || format!("{}:{}", path.display(), i + 1);
            if let Some(word) = UNDONE.iter().find(|w| line.contains(**w)) {
                found.faults.push(format!("{}: `{word}`", at()));
            }
            if neutral && let Some(word) = vendor(line) {
                found.faults.push(format!("{}: `{word}` names a vendor or its product", at()));
            }
            if blind
                && i < tests
                && let Some(word) = kernel(line, &kernels)
            {
                found.faults.push(format!("{}: `{word}` names a kernel of the library", at()));
            }
        }
        if path.starts_with("backends/src") {
            for (line, count) in crowded(&text) {
                let place = format!("{}:{line}", path.display());
                found.faults.push(format!("{place}: {count} instructions in one prelude function"));
            }
        }
    }
    Ok(found)
}

fn vendor(line: &str) -> Option<String> {
    let code = line.split("//").next().unwrap_or("").to_lowercase();
    let words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let arch = |w: &str| {
        let digits = w.strip_prefix("sm_").or(w.strip_prefix("mp_"));
        digits.is_some_and(|d| d.starts_with(|c: char| c.is_ascii_digit()))
    };
    words.map(str::to_string).find(|w| arch(w) || w.split('_').any(|part| VENDORS.contains(&part)))
}

/// Words that only a kernel of the library has: its name and the first part of it.
fn kernels() -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for path in files::list(&[".tile"])?.iter().filter(|p| p.starts_with("kernels")) {
        for line in files::read(path)?.lines() {
            let Some(rest) = line.strip_prefix("kernel ").or(line.strip_prefix("op ")) else { continue };
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
            let first = name.split('_').next().unwrap_or("");
            names.extend([name, first].map(str::to_string));
        }
    }
    // references are named after what they judge
    names.retain(|n| n.len() > 3 && !n.starts_with("ref") && !PLAIN.split_whitespace().any(|p| p == n));
    Ok(names)
}

fn kernel(line: &str, kernels: &BTreeSet<String>) -> Option<String> {
    let code = line.split("//").next().unwrap_or("").to_lowercase();
    let words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.map(str::to_string).find(|w| kernels.contains(w))
}

/// Prelude functions with more than one machine instruction: their lines and numbers. A function is the stretch from one
/// `Entry::new(` to the next; an instruction is an `asm`, or each `;` within its first text.
fn crowded(text: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut at = 0;
    for part in text.split("Entry::new(") {
        let count: usize = part.split("asm").skip(1).map(instructions).sum();
        if at > 0 && count > 1 {
            out.push((text[..at].lines().count(), count));
        }
        at += part.len() + "Entry::new(".len();
    }
    out
}

/// Instructions of what follows the word `asm`; a name that only ends in it has none.
fn instructions(rest: &str) -> usize {
    let call =
        rest.trim_start().trim_start_matches("volatile").trim_start().trim_start_matches("__volatile__");
    let Some(text) = call.trim_start().strip_prefix('(') else { return 0 };
    // the assembly stands in a text of C within a text of Rust
    let text = text.trim_start().trim_start_matches(['\\', '"']);
    // a text put together by a macro does not stand here
    text.split('"').next().unwrap_or("").matches(';').count().max(1)
}

#[cfg(test)]
mod tests {
    use super::{crowded, kernel, kernels, vendor};

    #[test]
    fn kernels_are_seen_as_words() {
        let names = kernels().unwrap();
        for line in ["if name == \"softmax_rows\" {", "fn gemv(x: f32) {", "mod attention;", "Gemm_Tiled"] {
            assert!(kernel(line, &names).is_some(), "{line}");
        }
        for line in
            ["// as in softmax", "Op::Transpose", "Op::Gemm", "let product = a * b;", "reduce(x)", "gemvish"]
        {
            assert!(kernel(line, &names).is_none(), "{line}");
        }
    }

    #[test]
    fn one_instruction_a_prelude_function() {
        let one = r#"Entry::new("a", "FN void a() { asm volatile(\"bar.sync 0;\"); }"), Entry::new("b", "asm(\"x;\")")"#;
        assert!(crowded(one).is_empty(), "{:?}", crowded(one));
        let two = r#"Entry::new("a", "FN void a() { asm volatile(\"a.b; c.d;\"); }")"#;
        let apart = r#"Entry::new("a", "FN void a() { asm(\"a;\" : \"=r\"(x)); asm(\"b;\"); }")"#;
        assert_eq!((crowded(two), crowded(apart)), (vec![(1, 2)], vec![(1, 2)]));
    }

    #[test]
    fn vendors_are_seen_as_words() {
        for line in ["if arch == \"sm_90a\" {", "fn emit_cuda() {", "Nvidia", "x = mp_31"] {
            assert!(vendor(line).is_some(), "{line}");
        }
        for line in ["// cuda does this", "let camusa = 1;", "sm_count", "framed"] {
            assert!(vendor(line).is_none(), "{line}");
        }
    }
}
