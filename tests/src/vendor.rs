//! Sources before compilers of vendors: NVRTC for CUDA C++; clang with a strict stand-in for MUSA C++, and `mcc` itself
//! where it is installed.
//!
//! A compiler that is absent gives `None`, which a test prints as skipped; with `PANTILE_NEED_VENDOR=1` it is a failure.

use crate::corpus::root;
use pantile_runtime::vendor::{Mcc, Nvrtc, child, mcc};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Longer than clang ever needs for one kernel.
const LIMIT: Duration = Duration::from_secs(60);

/// Must every compiler be here?
pub fn needed() -> bool {
    std::env::var("PANTILE_NEED_VENDOR").is_ok_and(|v| v == "1")
}

fn absent<T>(what: &str) -> Option<T> {
    assert!(!needed(), "PANTILE_NEED_VENDOR=1, but {what}");
    None
}

/// NVIDIA's compiler, if it is here.
pub fn nvrtc() -> Result<&'static Nvrtc, String> {
    Nvrtc::find().or_else(|e| absent(&e.message).ok_or(e.message))
}

/// Clang as the reader of MUSA C++.
pub struct Clang {
    path: PathBuf,
}

impl Clang {
    /// `PANTILE_CLANG`, else the newest on `PATH`.
    pub fn find() -> Result<Clang, String> {
        let named = std::env::var_os("PANTILE_CLANG").map(PathBuf::from);
        let on_path = || (14..=30).rev().find_map(|n| child::on_path(&format!("clang-{n}")));
        match named.or_else(on_path).or_else(|| child::on_path("clang")) {
            Some(path) => Ok(Clang { path }),
            None => {
                let what = "clang is not on this machine (`apt install clang`, or PANTILE_CLANG)".to_string();
                absent(&what).ok_or(what)
            }
        }
    }

    /// Reads a source as `mp_31` or `mp_22` would; refusals are the words of the compiler.
    pub fn check(&self, source: &str, arch: &str) -> Result<(), String> {
        if let Some(text) = assembly(source) {
            return Err(format!("assembly for another machine: {text}"));
        }
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let file = folder.path().join("kernel.mu");
        std::fs::write(&file, source).map_err(|e| e.to_string())?;
        let musa = root().join("tests/musa");
        let number = arch.trim_start_matches("mp_").to_string() + "0";
        let mut command = Command::new(&self.path);
        // an old machine of the language from which clang's comes, without anything of that language's own headers
        command
            .args(["-x", "cuda", "--cuda-gpu-arch=sm_80", "--cuda-device-only", "-nocudainc", "-nocudalib"])
            .args(["-nostdinc", "-nostdinc++"])
            .args(["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-cuda-version"])
            .args(["-Wno-unused-parameter", "-Wno-unused-function", "-Wno-unused-variable"])
            .args(["-Wno-unknown-pragmas", "-Wno-address-of-temporary"])
            .arg(format!("-D__MUSA_ARCH__={number}"))
            .arg("-include")
            .arg(musa.join("stub.h"))
            .arg("-I")
            .arg(musa.join("include"))
            .arg(&file);
        let ended = child::run(&mut command, LIMIT).map_err(|e| e.message)?;
        match ended.status.success() {
            true => Ok(()),
            false => Err(ended.log.replace(&*file.to_string_lossy(), "kernel.mu")),
        }
    }
}

/// The first assembly with an instruction in it: an empty one is a fence for the compiler alone.
fn assembly(source: &str) -> Option<&str> {
    let mut rest = source;
    while let Some(at) = rest.find("asm") {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let alone = !rest[..at].ends_with(word) && !rest[at + 3..].starts_with(word);
        rest = &rest[at + 3..];
        let Some((_, text)) = rest.split_once('"').filter(|_| alone) else { continue };
        if !text.starts_with('"') {
            return text.split('"').next();
        }
    }
    None
}

/// Compiles with the real compiler where it is installed.
pub fn real_musa(source: &str, name: &str, arch: &str) -> Option<Result<(), String>> {
    let found = Mcc::find().ok()?;
    Some(found.compile(source, name, arch, &[], mcc::LIMIT).map(drop).map_err(|e| e.message))
}
