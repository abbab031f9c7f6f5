//! `pantile fmt`: the one way to lay out a file.

use super::report::{Failure, Session, print};
use super::{Exit, Outcome};
use pantile::driver::{format_source, read_source};
use pantile::ir::codes;
use pantile::ir::diag::Diagnostics;
use pantile::runtime::files::put;
use pantile::runtime::io_words;
use std::path::{Path, PathBuf};

/// Lay out .tile files in the one canonical way.
///
/// Files with mistakes in their syntax are reported and left alone.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pantile fmt gemm.tile          rewrites the file
  pantile fmt kernels            rewrites every .tile file below a folder
  pantile fmt --check kernels    changes nothing; lists files that would change, exit code 1
  pantile fmt - < gemm.tile      from standard input to standard output")]
pub struct Args {
    /// Files, folders, or `-` for standard input.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Change nothing; fail if anything would change.
    #[arg(long)]
    check: bool,
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    let mut files = Vec::new();
    for path in &args.paths {
        collect(path, &mut files)?;
    }
    let (mut found, mut changed) = (Diagnostics::new(), 0);
    for path in &files {
        match one(path, args.check, session) {
            Ok(c) => changed += c as usize,
            Err(f) => found.extend(f.diagnostics),
        }
    }
    if found.has_errors() {
        return Err(found.into());
    }
    Ok(if args.check && changed > 0 { Exit::Mistake } else { Exit::Fine })
}

/// Formats one file; whether it differed.
fn one(path: &Path, check: bool, session: &mut Session) -> Result<bool, Failure> {
    let file = read_source(path, &mut session.sources)?;
    let text = format_source(file, &session.sources)?;
    let differs = session.sources.file(file).text != text;
    let shown = path.display();
    if check {
        if differs {
            print(&format!("{shown}\n"));
        }
    } else if shown.to_string() == "-" {
        print(&text);
    } else if differs {
        put(path, text.as_bytes()).map_err(|e| {
            Failure::new(codes::FILE_ACCESS, format!("cannot write `{shown}`: {}", io_words(&e)))
        })?;
    }
    Ok(differs)
}

/// Files as given, and the .tile files below folders in a stable order.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let fail = |e: std::io::Error| {
        Failure::new(codes::FILE_ACCESS, format!("cannot list `{}`: {}", path.display(), io_words(&e)))
    };
    let mut inside = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)? {
        inside.push(entry.map_err(fail)?.path());
    }
    inside.sort();
    for p in inside {
        if p.is_dir() {
            collect(&p, files)?;
        } else if p.extension().is_some_and(|e| e == "tile") {
            files.push(p);
        }
    }
    Ok(())
}
