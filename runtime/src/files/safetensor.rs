//! `.safetensors`: a JSON header and the tensors' bytes.

use super::{FileType, RawArray, choose_key, file_shape};
use crate::error::{Error, ErrorKind, Result};
use crate::host::HostTensor;
use pantile_abi::{DType, PackOrder};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The format's own limit.
const HEADER_LIMIT: u64 = 100_000_000;

pub(super) struct Header {
    file: std::fs::File,
    /// Where the tensors' bytes begin.
    start: u64,
    size: u64,
    metadata: Metadata,
}

/// Reads the header only, so that one tensor of a large model costs little.
pub(super) fn open(path: &Path) -> Result<Header> {
    let io = |e: std::io::Error| Error::io(path, "read", &e);
    let mut file = std::fs::File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    let mut length = [0; 8];
    file.read_exact(&mut length).map_err(|_| Error::format(path, "it ends inside its head"))?;
    let length = u64::from_le_bytes(length);
    if length > HEADER_LIMIT || length.saturating_add(8) > size {
        return Err(Error::format(path, format!("its header claims {length} bytes, the file has {size}")));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes).map_err(io)?;
    let metadata: Metadata = serde_json::from_slice(&bytes)
        .map_err(|e| Error::format(path, format!("its header is wrong ({e})")))?;
    Ok(Header { file, start: length + 8, size, metadata })
}

impl Header {
    fn holds(&self, path: &Path, name: &str, (from, to): (usize, usize)) -> Result<()> {
        if self.start.saturating_add(to as u64) > self.size || from > to {
            return Err(Error::format(path, format!("it ends inside `{name}`")));
        }
        Ok(())
    }
}

fn names(header: &Header) -> Vec<String> {
    let mut names: Vec<String> = header.metadata.tensors().into_keys().collect();
    names.sort();
    names
}

pub(super) fn read(path: &Path, key: Option<&str>) -> Result<RawArray> {
    let mut header = open(path)?;
    let names = names(&header);
    let name = choose_key(path, key, &names)?;
    let Some(info) = header.metadata.info(name) else {
        return Err(Error::format(path, format!("its header does not describe `{name}`")));
    };
    let (ty, shape, (from, to)) = (file_type(path, info.dtype)?, info.shape.clone(), info.data_offsets);
    header.holds(path, name, (from, to))?;
    let io = |e: std::io::Error| Error::io(path, "read", &e);
    let mut data = vec![0; to - from];
    header.file.seek(SeekFrom::Start(header.start + from as u64)).map_err(io)?;
    header.file.read_exact(&mut data).map_err(io)?;
    Ok(RawArray { ty, shape, data })
}

pub(super) fn list(path: &Path) -> Result<Vec<(String, FileType, Vec<usize>)>> {
    let header = open(path)?;
    (names(&header).into_iter())
        .filter_map(|name| header.metadata.info(&name).map(|i| (name.clone(), i.dtype, i.shape.clone())))
        .map(|(name, ty, shape)| Ok((name, file_type(path, ty)?, shape)))
        .collect()
}

fn file_type(path: &Path, ty: Dtype) -> Result<FileType> {
    Ok(FileType::Known(match ty {
        Dtype::BOOL => DType::Bool,
        Dtype::U8 => DType::U8,
        Dtype::I8 => DType::I8,
        Dtype::F8_E5M2 => DType::F8E5M2,
        Dtype::F8_E4M3 => DType::F8E4M3,
        Dtype::I16 => DType::I16,
        Dtype::U16 => DType::U16,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::I32 => DType::I32,
        Dtype::U32 => DType::U32,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        Dtype::I64 => DType::I64,
        Dtype::U64 => DType::U64,
        other => {
            let message = format!("`{}` holds elements of type {other:?}", path.display());
            return Err(Error::new(ErrorKind::FileUnsupported, message));
        }
    }))
}

fn written_type(t: &HostTensor) -> Dtype {
    if let Some(p) = t.packed() {
        return if p.order == PackOrder::Linear { Dtype::U8 } else { Dtype::I32 };
    }
    match t.dtype() {
        DType::Bool => Dtype::BOOL,
        DType::I4 | DType::U4 | DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::U16 => Dtype::U16,
        DType::I32 => Dtype::I32,
        DType::U32 => Dtype::U32,
        DType::I64 => Dtype::I64,
        DType::U64 => Dtype::U64,
        DType::F8E4M3 => Dtype::F8_E4M3,
        DType::F8E5M2 => Dtype::F8_E5M2,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}

/// An array that goes into a file: a new one, or one of the old file.
struct Item<'a> {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    from: From<'a>,
}

enum From<'a> {
    Tensor(&'a HostTensor),
    Old { start: u64, len: usize },
}

impl Item<'_> {
    fn len(&self) -> usize {
        match self.from {
            From::Tensor(t) => t.bytes().len(),
            From::Old { len, .. } => len,
        }
    }
}

/// Writes arrays, and what else `old` holds, metadata included. Old bytes go from file to file: a model may be larger
/// than memory.
pub(super) fn write(
    out: &mut impl Write,
    path: &Path,
    arrays: &[(&str, &HostTensor)],
    mut old: Option<Header>,
) -> Result<()> {
    let io = |e: std::io::Error| Error::io(path, "write", &e);
    let mut items: Vec<Item<'_>> = (arrays.iter())
        .map(|(name, t)| Item {
            name: (*name).into(),
            dtype: written_type(t),
            shape: file_shape(t),
            from: From::Tensor(t),
        })
        .collect();
    if let Some(old) = &old {
        for (name, info) in old.metadata.tensors() {
            if arrays.iter().all(|(n, _)| *n != name) {
                let (from, to) = info.data_offsets;
                old.holds(path, &name, (from, to))?;
                let from = From::Old { start: old.start + from as u64, len: to - from };
                items.push(Item { name, dtype: info.dtype, shape: info.shape.clone(), from });
            }
        }
    }
    // wide types first, so that every tensor is aligned
    items.sort_by(|a, b| b.dtype.cmp(&a.dtype).then(a.name.cmp(&b.name)));
    let header = header(&items, old.as_ref()).map_err(|e| io(std::io::Error::other(e)))?;
    out.write_all(&(header.len() as u64).to_le_bytes()).map_err(io)?;
    out.write_all(&header).map_err(io)?;
    for item in &items {
        match (&item.from, &mut old) {
            (From::Tensor(t), _) => out.write_all(t.bytes()).map_err(io)?,
            (From::Old { start, len }, Some(old)) => {
                old.file.seek(SeekFrom::Start(*start)).map_err(io)?;
                let copied = std::io::copy(&mut (&old.file).take(*len as u64), out).map_err(io)?;
                if copied != *len as u64 {
                    return Err(Error::format(path, format!("it ends inside `{}`", item.name)));
                }
            }
            // there is no item of an old file without one
            (From::Old { .. }, None) => {}
        }
    }
    Ok(())
}

fn header(items: &[Item<'_>], old: Option<&Header>) -> std::result::Result<Vec<u8>, String> {
    let mut end = 0;
    let infos = items.iter().map(|item| {
        let start = end;
        end += item.len();
        let info = TensorInfo { dtype: item.dtype, shape: item.shape.clone(), data_offsets: (start, end) };
        (item.name.clone(), info)
    });
    let about = old.and_then(|o| o.metadata.metadata().clone());
    let metadata = Metadata::new(about, infos.collect()).map_err(|e| e.to_string())?;
    let mut text = serde_json::to_vec(&metadata).map_err(|e| e.to_string())?;
    text.resize(text.len().next_multiple_of(8), b' ');
    Ok(text)
}
