//! Machine code as text, by the toolkit's own programs.

use super::{child, find};
use crate::error::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
/// Programs that can do it, each with what stands before the file.
const PROGRAMS: [(&str, &str); 2] = [("nvdisasm", "-c"), ("cuobjdump", "-sass")];

/// The instructions of a device image.
pub fn disassemble(cubin: &[u8]) -> Result<String> {
    let Some((program, option)) = program() else {
        let message = "neither `nvdisasm` nor `cuobjdump` is on this machine";
        return Err(Error::new(ErrorKind::Library, message).help(
            "install a CUDA toolkit and set CUDA_HOME to its folder, or put its `bin` on PATH; `--stage ptx` needs neither",
        ));
    };
    let failed = |path: &Path, doing: &str, e: &std::io::Error| Error::io(path, doing, e);
    let folder = tempfile::tempdir().map_err(|e| failed(&std::env::temp_dir(), "write in", &e))?;
    let file = folder.path().join("kernel.cubin");
    std::fs::write(&file, cubin).map_err(|e| failed(&file, "write", &e))?;
    let ended = child::run(Command::new(&program).arg(option).arg(&file), LIMIT)?;
    match ended.status.success() {
        true => Ok(ended.log),
        false => {
            let message = format!("`{}` failed:\n{}", program.display(), ended.log.trim_end());
            Err(Error::new(ErrorKind::Compiler, message))
        }
    }
}

/// In `bin` of the toolkit that the environment names, then on `PATH`, then in the usual folder.
fn program() -> Option<(PathBuf, &'static str)> {
    let named = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(find::set);
    let homes: Vec<PathBuf> = named.chain([PathBuf::from("/usr/local/cuda")]).collect();
    let in_home = |name: &str| homes.iter().map(|h| h.join("bin").join(name)).find(|p| child::is_program(p));
    PROGRAMS
        .into_iter()
        .find_map(|(name, option)| Some((in_home(name).or_else(|| child::on_path(name))?, option)))
}
