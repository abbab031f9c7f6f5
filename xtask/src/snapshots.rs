//! Snapshots: none waits for review, none is left of a test that is gone.

use crate::{Findings, files};
use anyhow::Result;
use std::path::Path;

pub fn check() -> Result<Findings> {
    let mut found = Findings::default();
    // pending ones are ignored by git, so they are looked for on disk
    let mut folders = vec![files::root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)?.flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                if !name.starts_with('.') && !name.starts_with("target") {
                    folders.push(path);
                }
            } else if name.ends_with(".snap.new") || name.ends_with(".pending-snap") {
                found.faults.push(format!("{} waits for review", path.display()));
            }
        }
    }
    let all = files::list(&[".snap"])?;
    found.notes.push(format!("{} snapshots", all.len()));
    for path in &all {
        if let Some(why) = stray(path)? {
            found.faults.push(format!("{} {why}", path.display()));
        }
    }
    Ok(found)
}

/// Why a snapshot belongs to no test, if it does not: its head names the source file, its name the test in it.
fn stray(path: &Path) -> Result<Option<String>> {
    let text = files::read(path)?;
    let Some(source) = text.lines().take(12).find_map(|l| l.strip_prefix("source: ")) else {
        return Ok(Some("names no source".into()));
    };
    let Ok(code) = files::read(source.trim().trim_matches('"').as_ref()) else {
        return Ok(Some(format!("belongs to {source}, which is gone")));
    };
    if let Ok(below) = path.strip_prefix("tests/snapshots") {
        return library(below, &code);
    }
    let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let name = stem.rsplit("__").next().unwrap_or(&stem);
    // a second assertion of one test is called NAME-2
    let base = name.rsplit_once('-').filter(|(_, n)| n.parse::<u32>().is_ok()).map_or(name, |(b, _)| b);
    let used = code.contains(base) || code.contains("glob!") || code.contains("set_snapshot_suffix");
    Ok((!used).then(|| format!("is named by no test in {source}")))
}

/// `TARGET/FILE.KERNEL.snap`: the test pins the target, the library has the kernel.
fn library(below: &Path, code: &str) -> Result<Option<String>> {
    let parts: Vec<_> = below.iter().map(|p| p.to_string_lossy()).collect();
    let [target, name] = &parts[..] else {
        return Ok(Some("is not called TARGET/FILE.KERNEL.snap".into()));
    };
    if !code.contains(&format!("(\"{target}\"")) {
        return Ok(Some(format!("belongs to `{target}`, which no test pins")));
    }
    let Some((file, kernel)) = name.strip_suffix(".snap").and_then(|n| n.split_once('.')) else {
        return Ok(Some("is not called TARGET/FILE.KERNEL.snap".into()));
    };
    let text = files::read(&Path::new("kernels").join(format!("{file}.tile"))).unwrap_or_default();
    let head = format!("kernel {kernel}");
    let has = |l: &str| l.strip_prefix(&head).is_some_and(|rest| rest.starts_with(['<', '(']));
    Ok((!text.lines().any(has)).then(|| format!("belongs to `{kernel}` of {file}.tile, which is gone")))
}

#[cfg(test)]
mod tests {
    use super::library;
    use std::path::Path;

    #[test]
    fn snapshots_of_the_library_belong_to_kernels() {
        let code = "threads(\"sm_80\");";
        let ok = |path: &str| library(Path::new(path), code).unwrap().is_none();
        assert!(ok("sm_80/gemv.gemv_warp.snap"));
        for path in
            ["sm_80/gemv.gemv_war.snap", "sm_70/gemv.gemv_warp.snap", "gemv.gemv_warp.snap", "sm_80/x.k.snap"]
        {
            assert!(!ok(path), "{path}");
        }
    }
}
