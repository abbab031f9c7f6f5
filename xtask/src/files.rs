//! The repository's files, as git lists them (tracked and new ones that are not ignored).

use crate::Findings;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// Paths below the root whose names end in one of `endings`.
pub fn list(endings: &[&str]) -> Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let out = git.output().context("git is needed")?;
    if !out.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    let text = String::from_utf8(out.stdout)?;
    let mut paths: Vec<PathBuf> =
        text.lines().filter(|l| endings.iter().any(|e| l.ends_with(e))).map(PathBuf::from).collect();
    paths.retain(|p| root().join(p).is_file());
    paths.sort();
    Ok(paths)
}

pub fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(root().join(path)).with_context(|| path.display().to_string())
}

/// Median and the files beyond the soft ceiling.
pub fn lengths() -> Result<Findings> {
    const CEILING: usize = 800;
    let mut sizes = Vec::new();
    for path in list(&[".rs"])? {
        sizes.push((read(&path)?.lines().count(), path));
    }
    sizes.sort();
    let mut found = Findings::default();
    if let Some((median, _)) = sizes.get(sizes.len() / 2) {
        found.notes.push(format!("{} Rust files, median {median} lines", sizes.len()));
    }
    for (lines, path) in sizes.iter().rev().take_while(|(n, _)| *n > CEILING) {
        found.notes.push(format!("{lines} lines: {}", path.display()));
    }
    Ok(found)
}
