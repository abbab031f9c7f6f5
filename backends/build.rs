//! Stamps the code generator: compiled kernels are cached under a key that changes whenever it does.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    let mut files = Vec::new();
    for folder in ["src", "../ir/src/math"] {
        println!("cargo:rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files);
    }
    files.sort();
    let mut hash = DefaultHasher::new();
    for file in files {
        std::fs::read(file).unwrap_or_default().hash(&mut hash);
    }
    println!("cargo:rustc-env=PANTILE_GENERATOR={:016x}", hash.finish());
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
