//! Words that must not stand in certain places.

use crate::{Findings, files};
use anyhow::Result;

/// Vendors, their tools and products: passes ask a target's facts instead.
const VENDORS: [&str; 10] =
    ["cuda", "musa", "nvidia", "amd", "hopper", "blackwell", "ampere", "wgmma", "sqmma", "nvrtc"];
const UNDONE: [&str; 5] = ["todo!(", "unimplemented!(", "FIXME", "TODO", "HACK"];

pub fn check() -> Result<Findings> {
    let mut found = Findings::default();
    for path in files::list(&[".rs", ".tile", ".py", ".sh", "x", "run"])? {
        // this file lists the words
        if path.ends_with("xtask/src/words.rs") {
            continue;
        }
        let Ok(text) = files::read(&path) else { continue };
        for (i, line) in text.lines().enumerate() {
            let at = || format!("{}:{}", path.display(), i + 1);
            if let Some(word) = UNDONE.iter().find(|w| line.contains(**w)) {
                found.faults.push(format!("{}: `{word}`", at()));
            }
            if path.starts_with("passes/src")
                && let Some(word) = vendor(line)
            {
                found.faults.push(format!("{}: `{word}` names a vendor or its product", at()));
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

#[cfg(test)]
mod tests {
    use super::vendor;

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
