//! Compilers that are programs: run with a time limit, their words kept.

use crate::error::{Error, ErrorKind, Result, io_words};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a program said before it ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// standard output and standard error, as they came
    pub log: String,
}

/// Runs a command without input. Past the limit it and all that it started are ended, which is an error.
pub fn run(command: &mut Command, limit: Duration) -> Result<Ended> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |e: std::io::Error| {
        Error::new(ErrorKind::Compiler, format!("`{name}` could not be run: {}", io_words(&e)))
    };
    // a file, not a pipe: nobody has to read while the program runs
    let mut log = tempfile::tempfile().map_err(failed)?;
    let copy = |f: &File| f.try_clone().map(Stdio::from).map_err(failed);
    command.stdin(Stdio::null()).stdout(copy(&log)?).stderr(copy(&log)?);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn().map_err(failed)?;
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if start.elapsed() >= limit {
            end(&mut child);
            let message = format!("`{name}` had not ended after {} s", limit.as_secs_f32());
            return Err(Error::new(ErrorKind::Compiler, message));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let mut bytes = Vec::new();
    log.rewind().and_then(|()| log.read_to_end(&mut bytes)).map_err(failed)?;
    Ok(Ended { status, log: String::from_utf8_lossy(&bytes).into_owned() })
}

/// Ends a program and its group: compilers start further programs.
fn end(child: &mut Child) {
    #[cfg(unix)]
    {
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    }
    // the group may be gone already, or `kill` absent
    let _ = child.kill();
    let _ = child.wait();
}

/// The program of that name in the folders of `PATH`.
pub fn on_path(name: &str) -> Option<std::path::PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|f| f.join(name)).find(|p| is_program(p))
}

pub(super) fn is_program(path: &Path) -> bool {
    let Ok(data) = path.metadata() else { return false };
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    data.is_file() && runs
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn words_and_status_are_kept() {
        let mut shell = Command::new("sh");
        let ended =
            run(shell.args(["-c", "echo out; echo err >&2; exit 3"]), Duration::from_secs(20)).unwrap();
        assert_eq!((ended.status.code(), ended.log.as_str()), (Some(3), "out\nerr\n"));
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let start = Instant::now();
        let e =
            run(Command::new("sh").args(["-c", "sleep 60 & wait"]), Duration::from_millis(100)).unwrap_err();
        assert!(e.message.contains("had not ended"), "{e}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn an_absent_program_is_an_error() {
        let e = run(&mut Command::new("/nowhere/compiler"), Duration::from_secs(1)).unwrap_err();
        assert_eq!(e.message, "`/nowhere/compiler` could not be run: no such file");
    }
}
