//! Writing array files: all of a call's outputs, or none.

use super::part::{Part, beside};
use super::{ArrayPath, Format, npy, npz, safetensor};
use crate::error::{Error, ErrorKind, Result, io_words};
use crate::host::HostTensor;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Can outputs of these names go where they are sent? For callers that ask before hours of work: forms, keys, and that
/// each folder is there and takes new files; an archive that is there already must be readable.
pub fn check_writable(outputs: &[(ArrayPath, &str)]) -> Result<()> {
    let list: Vec<(&ArrayPath, &str, ())> = outputs.iter().map(|(at, name)| (at, *name, ())).collect();
    for file in by_file(&list)? {
        check_place(file.path)?;
        Old::of(&file)?;
    }
    Ok(())
}

/// Writes tensors, those of one archive together. Every file is first written whole beside its place; only then are
/// they renamed, so that a failure leaves none half-written. Without a key, an array of an archive is called by its
/// parameter's name.
pub fn write(outputs: &[(ArrayPath, &str, &HostTensor)]) -> Result<()> {
    let list: Vec<(&ArrayPath, &str, &HostTensor)> = outputs.iter().map(|(at, n, t)| (at, *n, *t)).collect();
    let mut parts = Vec::new();
    for file in by_file(&list)? {
        let failed = |e: io::Error| Error::io(file.path, "write", &e);
        let (part, out) = Part::open(file.path).map_err(failed)?;
        write_file(out, &file)?;
        parts.push((part, file.path));
    }
    for (part, path) in parts {
        part.keep().map_err(|e| Error::io(path, "write", &e))?;
    }
    Ok(())
}

/// What goes into one file, by key.
struct OneFile<'a, T> {
    path: &'a Path,
    format: Format,
    arrays: Vec<(&'a str, T)>,
}

/// Gathers outputs by file and finds what their formats cannot hold.
fn by_file<'a, T: Copy>(outputs: &[(&'a ArrayPath, &'a str, T)]) -> Result<Vec<OneFile<'a, T>>> {
    let mut files: Vec<OneFile<'a, T>> = Vec::new();
    for &(at, name, thing) in outputs {
        let key = at.key.as_deref().unwrap_or(name);
        let format = at.format()?;
        if format == Format::Npy {
            at.no_key()?;
        }
        let refuse = |message: String| Error::new(ErrorKind::FileUnsupported, message);
        match files.iter_mut().find(|f| same(f.path, &at.path)) {
            None => files.push(OneFile { path: &at.path, format, arrays: vec![(key, thing)] }),
            Some(_) if format == Format::Npy => {
                let message = format!("`{at}` can hold one array, but several outputs go there");
                return Err(refuse(message).help("give each output a file, or write a .npz"));
            }
            Some(file) if file.arrays.iter().any(|(k, _)| *k == key) => {
                return Err(refuse(format!("two outputs are called `{key}` in `{}`", at.path.display())));
            }
            Some(file) => file.arrays.push((key, thing)),
        }
    }
    Ok(files)
}

fn write_file(out: File, file: &OneFile<'_, &HostTensor>) -> Result<()> {
    let mut out = BufWriter::new(out);
    let failed = |e: io::Error| Error::io(file.path, "write", &e);
    let old = Old::of(file)?;
    match (file.format, file.arrays.as_slice()) {
        (Format::Npy, arrays) => {
            arrays.iter().try_for_each(|(_, t)| npy::write(&mut out, t)).map_err(failed)?
        }
        (Format::Npz, arrays) => npz::write(&mut out, file.path, arrays, old.npz)?,
        (Format::Safetensors, arrays) => safetensor::write(&mut out, file.path, arrays, old.safetensors)?,
    }
    out.flush().map_err(failed)
}

/// An archive that is there already: its other arrays stay in it.
#[derive(Default)]
struct Old {
    npz: Option<npz::Archive>,
    safetensors: Option<safetensor::Header>,
}

impl Old {
    fn of<T>(file: &OneFile<'_, T>) -> Result<Old> {
        // an empty file holds a place, as `mktemp` makes it
        if file.format == Format::Npy || !fs::metadata(file.path).is_ok_and(|m| m.is_file() && m.len() > 0) {
            return Ok(Old::default());
        }
        let unread = |e: Error| {
            e.help("outputs are added to an archive that is there: write to another file, or remove this one")
        };
        Ok(match file.format {
            Format::Npz => Old { npz: Some(npz::open(file.path).map_err(unread)?), ..Old::default() },
            _ => Old { safetensors: Some(safetensor::open(file.path).map_err(unread)?), ..Old::default() },
        })
    }
}

/// The folder of a file that is to be written is there and takes new files.
pub fn check_place(path: &Path) -> Result<()> {
    let refuse = |kind, message: String| Err(Error::new(kind, message));
    let shown = path.display();
    if path.is_dir() {
        return refuse(ErrorKind::FileAccess, format!("cannot write `{shown}`: it is a folder"));
    }
    let failed = |e: io::Error| Error::io(path, "write", &e);
    let Some(probe) = beside(path).map_err(failed)? else { return Ok(()) };
    let folder = match probe.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    match fs::metadata(folder) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => {
            let message = format!("cannot write `{shown}`: `{}` is a file, not a folder", folder.display());
            return refuse(ErrorKind::FileAccess, message);
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let message = format!("cannot write `{shown}`: there is no folder `{}`", folder.display());
            return Err(Error::new(ErrorKind::FileMissing, message).help("make the folder first"));
        }
        Err(e) => {
            let message = format!("cannot write `{shown}`: folder `{}`: {}", folder.display(), io_words(&e));
            return refuse(ErrorKind::FileAccess, message);
        }
    }
    let tried = File::create(&probe).map(drop);
    let _ = fs::remove_file(&probe);
    tried.map_err(|e| {
        let why = io_words(&e);
        let message = format!("cannot write `{shown}`: folder `{}` takes no file: {why}", folder.display());
        Error::new(ErrorKind::FileAccess, message)
    })
}

/// Do two paths name one file, as far as their words tell?
fn same(a: &Path, b: &Path) -> bool {
    a == b || std::path::absolute(a).ok().is_some_and(|a| std::path::absolute(b).is_ok_and(|b| a == b))
}
