//! `.npz`: a zip archive of `.npy` files.

use super::{FileType, RawArray, choose_key, npy};
use crate::error::{Error, Result};
use crate::host::HostTensor;
use std::io::{BufReader, Seek, Write};
use std::path::Path;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;

pub(super) type Archive = zip::ZipArchive<BufReader<std::fs::File>>;

pub(super) fn open(path: &Path) -> Result<Archive> {
    let file = std::fs::File::open(path).map_err(|e| Error::io(path, "read", &e))?;
    zip::ZipArchive::new(BufReader::new(file)).map_err(|e| error(path, &e))
}

fn error(path: &Path, e: &ZipError) -> Error {
    match e {
        ZipError::Io(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => Error::io(path, "read", e),
        ZipError::UnsupportedArchive(what) => Error::format(path, what),
        _ => Error::format(path, "it is no sound .npz archive"),
    }
}

/// Names of the arrays, without their suffix; entries whose name is no text are not arrays.
fn names(archive: &Archive) -> Vec<String> {
    let names = archive.file_names().filter_map(|n| n.ok());
    names.filter_map(|n| n.strip_suffix(".npy").map(str::to_string)).collect()
}

pub(super) fn read(path: &Path, key: Option<&str>) -> Result<RawArray> {
    let mut archive = open(path)?;
    let names = names(&archive);
    let name = choose_key(path, key, &names)?;
    read_entry(path, &mut archive, name)
}

fn read_entry(path: &Path, archive: &mut Archive, name: &str) -> Result<RawArray> {
    let mut entry = archive.by_name(&format!("{name}.npy")).map_err(|e| error(path, &e))?;
    let size = entry.size();
    npy::read(path, &mut entry, size).map_err(|e| e.within(format!("array `{name}`")))
}

pub(super) fn list(path: &Path) -> Result<Vec<(String, FileType, Vec<usize>)>> {
    let mut archive = open(path)?;
    let names = names(&archive);
    (names.into_iter())
        .map(|name| {
            let array = read_entry(path, &mut archive, &name)?;
            Ok((name, array.ty, array.shape))
        })
        .collect()
}

/// Writes arrays, and what else `old` holds as it is there.
pub(super) fn write<W: Write + Seek>(
    out: &mut W,
    path: &Path,
    arrays: &[(&str, &HostTensor)],
    old: Option<Archive>,
) -> Result<()> {
    let failed = |e: ZipError| match e {
        ZipError::Io(e) => Error::io(path, "write", &e),
        other => error(path, &other),
    };
    let mut archive = zip::ZipWriter::new(out);
    if let Some(mut old) = old {
        let replaced: Vec<String> = arrays.iter().map(|(name, _)| format!("{name}.npy")).collect();
        for at in 0..old.len() {
            let entry = old.by_index_raw(at).map_err(|e| error(path, &e))?;
            if !replaced.iter().any(|r| r.as_bytes() == entry.name_raw()) {
                archive.raw_copy_file(entry).map_err(failed)?;
            }
        }
    }
    for (name, tensor) in arrays {
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .large_file(tensor.bytes().len() as u64 >= u32::MAX as u64 - 4096);
        archive.start_file(format!("{name}.npy"), options).map_err(failed)?;
        npy::write(&mut archive, tensor).map_err(|e| Error::io(path, "write", &e))?;
    }
    archive.finish().map_err(failed)?;
    Ok(())
}
