//! Where vendors' libraries lie: toolkits, the loader's folders, Python's wheels.

use std::path::{Path, PathBuf};

pub fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// Folders of toolkits: those that the environment names, then the usual ones, newest version first.
fn toolkits() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(set).collect();
    roots.push("/usr/local/cuda".into());
    roots.extend(matching(Path::new("/usr/local"), "cuda-"));
    roots.push("/opt/cuda".into());
    let below = ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];
    roots.iter().flat_map(|r| below.iter().map(|b| r.join(b))).collect()
}

/// Folders of a folder whose names begin so, the highest version first.
fn matching(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.filter(|e| e.file_name().to_string_lossy().starts_with(prefix)).map(|e| e.path()).collect();
    found.sort_by_key(|p| std::cmp::Reverse(version(&p.to_string_lossy())));
    found
}

/// The numbers in a name, in order.
pub fn version(name: &str) -> Vec<u32> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

/// Folders in which Python looks for packages: of the active environment, the `python3` of `PATH`, the user, the system.
fn site_packages() -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(set).collect();
    // PREFIX/bin/python3; its own place first, then what it is a link to
    if let Some(python) = super::child::on_path("python3") {
        let real = python.canonicalize().ok();
        let prefix = |p: &Path| Some(p.parent()?.parent()?.to_path_buf());
        prefixes.extend([Some(python), real].into_iter().flatten().filter_map(|p| prefix(&p)));
    }
    prefixes.extend(set("HOME").map(|h| h.join(".local")));
    prefixes.extend(["/usr/local".into(), "/usr".into()]);
    let mut folders = Vec::new();
    for prefix in prefixes {
        for python in matching(&prefix.join("lib"), "python3") {
            folders.extend(["site-packages", "dist-packages"].map(|f| python.join(f)));
        }
    }
    folders
}

/// Folders that may hold the run-time compiler's library, in the order in which they are tried.
pub fn library_folders() -> Vec<PathBuf> {
    let mut folders = toolkits();
    let loader = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&loader).filter(|p| !p.as_os_str().is_empty()));
    for packages in site_packages() {
        folders.extend(["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"].map(|f| packages.join(f)));
    }
    let mut seen = std::collections::HashSet::new();
    folders.retain(|f| f.is_dir() && seen.insert(f.clone()));
    folders
}

/// Files of a folder called `STEM.so`, `STEM.so.N…`, the highest version first.
pub fn libraries(folder: &Path, stem: &str) -> Vec<PathBuf> {
    let head = format!("{stem}.so");
    let fits = |name: &str| {
        name.strip_prefix(&head)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') && !version(rest).is_empty())
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.filter(|e| fits(&e.file_name().to_string_lossy())).map(|e| e.path()).collect();
    let rank =
        |p: &PathBuf| version(&p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default());
    found.sort_by_key(|p| std::cmp::Reverse(rank(p)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let names =
            ["libx.so", "libx.so.9", "libx.so.13", "libx.alt.so.14", "libx-more.so.15", "libx.so.txt"];
        for name in names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let found = libraries(dir.path(), "libx");
        let found: Vec<_> = found.iter().filter_map(|p| p.file_name()?.to_str()).collect();
        assert_eq!(found, ["libx.so.13", "libx.so.9", "libx.so"]);
    }
}
