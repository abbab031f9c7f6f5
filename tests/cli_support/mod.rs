//! Running the command in a folder of its own.
#![allow(dead_code)] // each test file uses a part

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub struct Place {
    dir: tempfile::TempDir,
}

pub struct Said {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.retain(|n| n != "cache");
        names.sort();
        names
    }

    /// Runs `pantile` here; its cache is here too.
    pub fn run(&self, args: &[&str]) -> Said {
        self.run_with(&[], args)
    }

    /// The same with more in the environment.
    pub fn run_with(&self, vars: &[(&str, &str)], args: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pantile"));
        command.current_dir(self.dir.path()).args(args);
        command
            .env("PANTILE_CACHE_DIR", self.path("cache"))
            .env("NO_COLOR", "1")
            .env_remove("RUST_BACKTRACE")
            .envs(vars.iter().copied());
        said(command.output().unwrap())
    }

    /// Runs and expects success.
    pub fn fine(&self, args: &[&str]) -> String {
        let s = self.run(args);
        assert_eq!(s.status, 0, "{args:?}\n{}{}", s.out, s.err);
        s.out
    }

    /// Runs and expects this exit code and these words on standard error.
    pub fn fails(&self, status: i32, words: &[&str], args: &[&str]) -> Said {
        let s = self.run(args);
        assert_eq!(s.status, status, "{args:?}\n{}{}", s.out, s.err);
        for w in words {
            assert!(s.err.contains(w), "{args:?} does not say `{w}`:\n{}", s.err);
        }
        for internal in ["panicked", "unwrap", "src/", "RUST_BACKTRACE", "Err("] {
            assert!(!s.err.contains(internal), "{args:?} says `{internal}`:\n{}", s.err);
        }
        s
    }
}

fn said(o: Output) -> Said {
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    Said { status: o.status.code().unwrap_or(-1), out: text(o.stdout), err: text(o.stderr) }
}

pub fn library(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels").join(file).display().to_string()
}
