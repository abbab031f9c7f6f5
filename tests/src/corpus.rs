//! The `.tile` texts of the repository.

use pantile_ir::elab::{Files, Found, Library};
use pantile_ir::span::Sources;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.into(), Path::to_path_buf)
}

/// Files of some folders, by name.
pub fn files(folders: &[&str]) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = folders
        .iter()
        .flat_map(|f| std::fs::read_dir(root().join(f)).into_iter().flatten().flatten().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "tile"))
        .collect();
    paths.sort();
    paths
}

/// Loads a text as if it stood at `path`, with everything it uses. Problems are left to the caller.
pub fn load(path: &Path, text: &str, sources: &mut Sources) -> (Library, pantile_ir::diag::Diagnostics) {
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let found = Found { name, path: Some(path.into()), text: text.into() };
    let search = path.parent().map(Path::to_path_buf).into_iter().collect();
    Library::load(found, &Files { search }, sources)
}
