//! Where results go. A place that takes none is found before anything is compiled.

use crate::cli::report::{Failure, print};
use pantile::ir::codes;
use pantile::runtime::files::{check_place, put};
use pantile::runtime::io_words;
use std::fs;
use std::path::{Path, PathBuf};

pub enum Out {
    Screen,
    File(PathBuf),
    Folder(PathBuf),
}

impl Out {
    pub fn of(output: Option<&Path>, folder: bool) -> Result<Out, Failure> {
        match output {
            None => Ok(Out::Screen),
            Some(path) if folder || path.is_dir() => {
                check_folder(path)?;
                Ok(Out::Folder(path.to_path_buf()))
            }
            Some(path) => {
                check_place(path)?;
                Ok(Out::File(path.to_path_buf()))
            }
        }
    }

    pub fn is_disk(&self) -> bool {
        !matches!(self, Out::Screen)
    }

    /// Machine code is no text for a screen.
    pub fn takes_bytes(&self) -> Result<(), Failure> {
        match self {
            Out::Screen => Err(Failure::new(codes::USAGE, "machine code is no text to print")
                .help("say where it goes: `-o FILE`; `--stage sass` is its text")),
            _ => Ok(()),
        }
    }

    /// Writes one result; `name` is its path in a folder.
    pub fn put(&self, name: &Path, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            // all that is printed is text
            Out::Screen => print(&String::from_utf8_lossy(bytes)),
            Out::File(path) => write(path, bytes)?,
            Out::Folder(_) => drop(self.put_in_folder(name, bytes)?),
        }
        Ok(())
    }

    /// The same, giving the file's path.
    pub fn put_in_folder(&self, name: &Path, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let path = match self {
            Out::Folder(folder) => folder.join(name),
            Out::File(path) => path.clone(),
            Out::Screen => name.to_path_buf(),
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|e| failed(parent, &e))?;
        }
        write(&path, bytes)?;
        Ok(path)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    put(path, bytes).map_err(|e| failed(path, &e))
}

fn failed(path: &Path, e: &std::io::Error) -> Failure {
    Failure::new(codes::FILE_ACCESS, format!("cannot write `{}`: {}", path.display(), io_words(e)))
}

/// The folder takes files, or can be made: the nearest one above it that is there takes files.
fn check_folder(path: &Path) -> Result<(), Failure> {
    let mut there = path;
    while !there.exists() {
        there = match there.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
    }
    let refuse = |why: String| {
        Failure::new(codes::FILE_ACCESS, format!("cannot write into `{}`: {why}", path.display()))
    };
    if !there.is_dir() {
        return Err(refuse(format!("`{}` is a file, not a folder", there.display())));
    }
    let probe = there.join(format!(".pantile.{}.part", std::process::id()));
    let tried = fs::File::create(&probe).map(drop);
    // it is only there if it could be made
    let _ = fs::remove_file(&probe);
    tried.map_err(|e| refuse(format!("folder `{}` takes no file: {}", there.display(), io_words(&e))))
}
