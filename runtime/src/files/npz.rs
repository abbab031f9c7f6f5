//! `.npz`: a zip archive of `.npy` files.

use super::{FileType, RawArray, choose_key, npy};
use crate::error::{Error, Result};
use crate::host::HostTensor;
use std::io::{BufReader, Seek, Write};
use std::path::Path;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;

type Archive = zip::ZipArchive<BufReader<std::fs::File>>;

fn open(path: &Path) -> Result<Archive> {
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

pub(super) fn write<W: Write + Seek>(out: &mut W, arrays: &[(&str, &HostTensor)]) -> std::io::Result<()> {
    let mut archive = zip::ZipWriter::new(out);
    for (name, tensor) in arrays {
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .large_file(tensor.bytes().len() as u64 >= u32::MAX as u64 - 4096);
        archive.start_file(format!("{name}.npy"), options)?;
        npy::write(&mut archive, tensor)?;
    }
    archive.finish()?;
    Ok(())
}
