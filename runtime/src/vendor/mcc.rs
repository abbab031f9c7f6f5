//! Moore Threads' compiler, a program of its own: MUSA C++ to a device image.

use super::{child, find};
use crate::error::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Ample for one kernel; a compiler that takes longer hangs.
pub const LIMIT: Duration = Duration::from_secs(120);
const HELP: &str = "install the MUSA toolkit and set MUSA_HOME to its folder, or put its `bin` on PATH";
/// Language, device part alone, and shared memory from its first byte on; with the rest as the toolkit's users have it.
const FIXED: [&str; 8] = [
    "-x",
    "musa",
    "-mtgpu",
    "-std=c++17",
    "-O2",
    "--cuda-device-only",
    "-mllvm",
    "-mtgpu-alloc-shared-memory-from-zero=1",
];

/// The compiler as it was found.
#[derive(Clone, Debug)]
pub struct Mcc {
    path: PathBuf,
}

/// What came of a source.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// What the driver loads.
    pub image: Vec<u8>,
    pub log: String,
}

impl Mcc {
    /// In `bin` of the folder that `MUSA_HOME` names; without that, on `PATH`, then in the usual folder.
    pub fn find() -> Result<Mcc> {
        if let Some(home) = find::set("MUSA_HOME") {
            let path = home.join("bin/mcc");
            return match child::is_program(&path) {
                true => Ok(Mcc { path }),
                false => {
                    let message = format!("MUSA_HOME names `{}`, which has no `bin/mcc`", home.display());
                    Err(Error::new(ErrorKind::Library, message).help(HELP))
                }
            };
        }
        let usual = || Some(PathBuf::from("/usr/local/musa/bin/mcc")).filter(|p| child::is_program(p));
        match child::on_path("mcc").or_else(usual) {
            Some(path) => Ok(Mcc { path }),
            None => {
                let message = "the MUSA compiler (`mcc`) is not on this machine";
                Err(Error::new(ErrorKind::Library, message).help(HELP))
            }
        }
    }

    /// The compiler at a place that the caller knows.
    pub fn at(path: impl Into<PathBuf>) -> Mcc {
        Mcc { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of itself: a part of every cache key.
    pub fn version(&self) -> Result<String> {
        let ended = child::run(Command::new(&self.path).arg("--version"), LIMIT)?;
        match ended.status.success() {
            true => Ok(ended.log.trim().to_string()),
            false => Err(Error::new(
                ErrorKind::Compiler,
                format!("`{}` does not run:\n{}", self.path.display(), ended.log),
            )),
        }
    }

    /// Compiles a source for `mp_31` and the like. The error of a refused source carries the compiler's words.
    pub fn compile(
        &self,
        source: &str,
        name: &str,
        arch: &str,
        options: &[&str],
        limit: Duration,
    ) -> Result<Compiled> {
        let failed = |path: &Path, doing: &str, e: &std::io::Error| Error::io(path, doing, e);
        let folder = tempfile::tempdir().map_err(|e| failed(&std::env::temp_dir(), "write in", &e))?;
        let (from, to) = (folder.path().join("kernel.mu"), folder.path().join("kernel.mubin"));
        std::fs::write(&from, source).map_err(|e| failed(&from, "write", &e))?;
        let mut command = Command::new(&self.path);
        command.args(FIXED).arg(format!("--offload-arch={arch}")).args(options).arg("-o").arg(&to).arg(&from);
        let ended = child::run(&mut command, limit)?;
        // messages name the user's kernel, not our scratch file
        let log = ended.log.replace(&*from.to_string_lossy(), name);
        if !ended.status.success() {
            let message = format!("`mcc` refused `{name}` for {arch}: {}\n{}", ended.status, log.trim_end());
            return Err(Error::new(ErrorKind::Compiler, message));
        }
        let image = std::fs::read(&to).map_err(|e| failed(&to, "read", &e))?;
        Ok(Compiled { image, log })
    }
}
