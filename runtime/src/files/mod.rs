//! Array files: `.npy`, `.npz`, `.safetensors`.
//!
//! A file gives a [`RawArray`], which says what the file says. [`RawArray::into_tensor`] turns it into the type that a
//! parameter asks for, where the file format has no word for that type:
//!
//! | type | `.npy`, `.npz` | `.safetensors` |
//! | --- | --- | --- |
//! | bf16 | two raw bytes (`V2`, as numpy's extension types write it); uint16 is read too | BF16 |
//! | f8e4m3, f8e5m2 | one raw byte (`V1`; `f1` for f8e5m2); uint8 is read too | F8_E4M3, F8_E5M2 |
//! | i4, u4 linear | uint8, the packed axis half as long | U8 |
//! | i4, u4 gptq, awq | int32, the packed axis an eighth as long | I32 |
//!
//! Nothing here trusts a file: sizes are checked before memory is taken, and every flaw is a named error.

mod npy;
mod npz;
mod part;
mod safetensor;
mod write;

pub use part::{abandon, put};
pub use write::{check_place, check_writable, write};

use crate::error::{Error, ErrorKind, Result};
use crate::host::HostTensor;
use pantile_abi::{DType, Packing};
use std::path::{Path, PathBuf};

/// The element type as far as a file says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
    Known(DType),
    /// So many bytes of unknown meaning.
    Raw(usize),
}

impl std::fmt::Display for FileType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileType::Known(d) => d.fmt(f),
            FileType::Raw(1) => f.write_str("raw bytes"),
            FileType::Raw(n) => write!(f, "raw groups of {n} bytes"),
        }
    }
}

/// An array as a file holds it: row-major, little-endian.
#[derive(Debug)]
pub struct RawArray {
    pub ty: FileType,
    pub shape: Vec<usize>,
    pub data: Vec<u8>,
}

/// What a parameter expects of an array.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub dtype: DType,
    pub packed: Option<Packing>,
}

impl RawArray {
    /// The array in the type it says it has, or that `wanted` gives to bytes without one. A type that the file does
    /// state is kept, so that binding can compare it with the parameter's.
    pub fn into_tensor(mut self, wanted: Option<Wanted>) -> Result<HostTensor> {
        let dtype = match (self.ty, wanted) {
            (ty, Some(w)) if carries(ty, w) => w.dtype,
            (FileType::Known(d), _) => d,
            (FileType::Raw(2), None) => DType::BF16,
            (ty, wanted) => {
                let wish = wanted.map_or("no type is known".into(), |w| format!("{} is wanted", w.dtype));
                let message = format!("the array holds {ty}, but {wish}");
                return Err(Error::new(ErrorKind::FileUnsupported, message));
            }
        };
        let packed = wanted.filter(|w| w.dtype == dtype).and_then(|w| w.packed);
        if let Some(p) = packed {
            let Some(extent) = self.shape.get_mut(p.axis as usize) else {
                let message = format!("shape {:?} has no axis {} to be packed along", self.shape, p.axis);
                return Err(Error::new(ErrorKind::FileUnsupported, message));
            };
            *extent = extent.saturating_mul(p.order.per_unit());
        }
        if dtype == DType::Bool && self.data.iter().any(|&b| b > 1) {
            return Err(Error::new(ErrorKind::FileFormat, "an array of bool holds other bytes than 0 and 1"));
        }
        HostTensor::from_bytes(dtype, &self.shape, packed, &self.data)
    }
}

impl RawArray {
    /// Does it hold the wanted type, or what stands for it in a file?
    pub fn fits(&self, wanted: Wanted) -> bool {
        self.ty == FileType::Known(wanted.dtype) || carries(self.ty, wanted)
    }
}

/// Can elements of `ty` stand for the wanted type, which the file format cannot name?
fn carries(ty: FileType, wanted: Wanted) -> bool {
    match wanted.dtype {
        DType::BF16 => matches!(ty, FileType::Raw(2) | FileType::Known(DType::U16)),
        DType::F8E4M3 | DType::F8E5M2 => matches!(ty, FileType::Raw(1) | FileType::Known(DType::U8)),
        DType::I4 | DType::U4 => match wanted.packed.map_or(1, |p| p.order.unit_bytes()) {
            1 => matches!(ty, FileType::Raw(1) | FileType::Known(DType::U8 | DType::I8)),
            _ => matches!(ty, FileType::Known(DType::I32 | DType::U32)),
        },
        _ => false,
    }
}

/// A file and, in an archive, the array's name in it: `x.npy`, `x.npz:key`, `x.safetensors:key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayPath {
    pub path: PathBuf,
    pub key: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Npy,
    Npz,
    Safetensors,
}

const SUFFIXES: [(&str, Format); 3] =
    [(".npy", Format::Npy), (".npz", Format::Npz), (".safetensors", Format::Safetensors)];

impl ArrayPath {
    /// `None` where the text names no array file.
    pub fn parse(text: &str) -> Option<ArrayPath> {
        // the key is what follows the first `SUFFIX:`, so that keys may hold colons and dots
        let split =
            (SUFFIXES.iter()).filter_map(|(s, _)| text.find(&format!("{s}:")).map(|at| (at, *s))).min();
        let Some((at, suffix)) = split else {
            let plain = SUFFIXES.iter().any(|(s, _)| text.ends_with(s));
            return plain.then(|| ArrayPath { path: text.into(), key: None });
        };
        let end = at + suffix.len();
        Some(ArrayPath { path: text[..end].into(), key: Some(text[end + 1..].to_string()) })
    }

    fn format(&self) -> Result<Format> {
        let name = self.path.to_string_lossy();
        SUFFIXES.iter().find(|(s, _)| name.ends_with(s)).map(|(_, f)| *f).ok_or_else(|| {
            Error::new(ErrorKind::FileUnsupported, format!("`{name}` is not an array file"))
                .help("array files end in .npy, .npz or .safetensors")
        })
    }

    fn no_key(&self) -> Result<()> {
        match &self.key {
            None => Ok(()),
            Some(key) => {
                let message = format!("`{}` holds one array, so `:{key}` names nothing", self.path.display());
                Err(Error::new(ErrorKind::KeyMissing, message))
            }
        }
    }
}

impl std::fmt::Display for ArrayPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())?;
        self.key.as_ref().map_or(Ok(()), |k| write!(f, ":{k}"))
    }
}

/// Reads one array. Without a key, an archive must hold exactly one.
pub fn read(from: &ArrayPath) -> Result<RawArray> {
    match from.format()? {
        Format::Npy => {
            from.no_key()?;
            npy::read_file(&from.path)
        }
        Format::Npz => npz::read(&from.path, from.key.as_deref()),
        Format::Safetensors => safetensor::read(&from.path, from.key.as_deref()),
    }
}

/// Reads one array as a parameter wants it.
pub fn read_tensor(from: &ArrayPath, wanted: Option<Wanted>) -> Result<HostTensor> {
    read(from)?.into_tensor(wanted).map_err(|e| e.within(format!("`{from}`")))
}

/// The arrays of an archive: name, type, shape. A `.npy` file has one, without a name.
pub fn list(path: &Path) -> Result<Vec<(String, FileType, Vec<usize>)>> {
    let at = ArrayPath { path: path.to_path_buf(), key: None };
    match at.format()? {
        Format::Npy => npy::read_file(path).map(|a| vec![(String::new(), a.ty, a.shape)]),
        Format::Npz => npz::list(path),
        Format::Safetensors => safetensor::list(path),
    }
}

/// Units of storage along each axis, as a file shows them.
fn file_shape(t: &HostTensor) -> Vec<usize> {
    t.arg().storage_shape(t.packed())
}

fn list_keys(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut text = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(", and {} more", names.len() - SHOWN));
    }
    text
}

/// The name to read from an archive that holds `names`.
fn choose_key<'n>(path: &Path, key: Option<&str>, names: &'n [String]) -> Result<&'n String> {
    let missing = |message: String| {
        let help =
            if names.is_empty() { "it is empty".into() } else { format!("it holds {}", list_keys(names)) };
        Err(Error::new(ErrorKind::KeyMissing, message).help(help))
    };
    match (key, names) {
        (Some(key), _) => match names.iter().find(|n| *n == key) {
            Some(name) => Ok(name),
            None => missing(format!("`{}` holds no array `{key}`", path.display())),
        },
        (None, [only]) => Ok(only),
        (None, _) => {
            missing(format!("`{}` holds {} arrays: say which, as FILE:NAME", path.display(), names.len()))
        }
    }
}
