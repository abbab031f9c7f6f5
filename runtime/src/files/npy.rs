//! The `.npy` format, versions 1 to 3: magic, a header that is a Python dictionary, the elements.

use super::{FileType, RawArray, file_shape};
use crate::error::{Error, ErrorKind, Result};
use crate::host::HostTensor;
use pantile_abi::{DType, PackOrder};
use std::io::{Read, Write};
use std::path::Path;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longer headers describe record types with thousands of fields, which no kernel takes.
const HEADER_LIMIT: usize = 1 << 20;

pub(super) fn read_file(path: &Path) -> Result<RawArray> {
    let mut file = std::fs::File::open(path).map_err(|e| Error::io(path, "read", &e))?;
    let size = file.metadata().map_err(|e| Error::io(path, "read", &e))?.len();
    read(path, &mut file, size)
}

/// Reads from a stream that has `size` bytes left.
pub(super) fn read(path: &Path, from: &mut impl Read, size: u64) -> Result<RawArray> {
    let bad = |what: String| Error::format(path, what);
    let mut take = |n: usize, what: &str| -> Result<Vec<u8>> {
        let mut bytes = vec![0; n];
        from.read_exact(&mut bytes).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => bad(format!("it ends inside {what}")),
            _ => Error::io(path, "read", &e),
        })?;
        Ok(bytes)
    };
    let start = take(8, "its head")?;
    if !start.starts_with(MAGIC) {
        return Err(bad("it is no .npy file".into()));
    }
    let (length_bytes, major) = match start[6] {
        1 => (2, 1),
        v @ (2 | 3) => (4, v),
        v => return Err(bad(format!("its format version {v} is not known"))),
    };
    let length = take(length_bytes, "its head")?;
    let length = length.iter().rev().fold(0usize, |n, &b| n << 8 | b as usize);
    if length > HEADER_LIMIT {
        return Err(bad(format!("its header claims {length} bytes")));
    }
    let header = take(length, "its header")?;
    let text = String::from_utf8(header).map_err(|_| bad("its header is not text".into()))?;
    let header = Header::parse(&text).map_err(|e| e.into_error(path))?;

    let count = header.shape.iter().try_fold(header.width, |n, &e| n.checked_mul(e));
    let left = size.saturating_sub((8 + length_bytes + length) as u64);
    let need = if header.shape.contains(&0) { Some(0) } else { count };
    match need.map(|n| n as u64) {
        Some(n) if n == left => {}
        Some(n) if n > left => {
            return Err(bad(format!("shape {:?} needs {n} bytes, but it holds {left}", header.shape)));
        }
        Some(n) => {
            return Err(bad(format!(
                "shape {:?} needs {n} bytes, but it holds {left}; version {major} files hold one array",
                header.shape
            )));
        }
        None => return Err(bad(format!("shape {:?} is too large", header.shape))),
    }
    let mut data = take(left as usize, "its elements")?;
    if header.swap {
        data.chunks_exact_mut(header.width).for_each(<[u8]>::reverse);
    }
    if header.fortran {
        data = to_row_major(&data, &header.shape, header.width);
    }
    Ok(RawArray { ty: header.ty, shape: header.shape, data })
}

struct Header {
    ty: FileType,
    width: usize,
    swap: bool,
    fortran: bool,
    shape: Vec<usize>,
}

enum HeaderError {
    Malformed(String),
    Unsupported(String),
}

impl HeaderError {
    fn into_error(self, path: &Path) -> Error {
        match self {
            HeaderError::Malformed(what) => Error::format(path, format!("its header {what}")),
            HeaderError::Unsupported(what) => {
                Error::new(ErrorKind::FileUnsupported, format!("`{}` holds {what}", path.display()))
                    .help("save it as bool, an integer or a float type")
            }
        }
    }
}

impl Header {
    fn parse(text: &str) -> std::result::Result<Header, HeaderError> {
        let malformed = |what: &str| HeaderError::Malformed(what.to_string());
        let mut at = Cursor { rest: text };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        at.expect("{")?;
        while !at.accept("}") {
            let key = at.string()?;
            at.expect(":")?;
            match key.as_str() {
                "descr" if at.peek("[") => {
                    return Err(HeaderError::Unsupported("records of several fields".into()));
                }
                "descr" => descr = Some(at.string()?),
                "fortran_order" => fortran = Some(at.boolean()?),
                "shape" => shape = Some(at.shape()?),
                _ => return Err(malformed(&format!("has an unknown entry `{}`", key.escape_default()))),
            }
            if !at.accept(",") {
                at.expect("}")?;
                break;
            }
        }
        if !at.rest.trim().is_empty() {
            return Err(malformed("goes on after its end"));
        }
        let descr = descr.ok_or_else(|| malformed("names no element type"))?;
        let (ty, width, swap) = element_type(&descr)?;
        Ok(Header {
            ty,
            width,
            swap,
            fortran: fortran.ok_or_else(|| malformed("does not say its order"))?,
            shape: shape.ok_or_else(|| malformed("names no shape"))?,
        })
    }
}

/// Type, bytes of an element, and whether they stand in the other order.
fn element_type(descr: &str) -> std::result::Result<(FileType, usize, bool), HeaderError> {
    let unsupported = || HeaderError::Unsupported(format!("elements of type `{}`", descr.escape_default()));
    let (order, code) = match descr.split_at_checked(1) {
        Some((o @ ("<" | ">" | "=" | "|"), code)) => (o, code),
        _ => ("|", descr),
    };
    let ty = match code {
        "b1" | "?" => FileType::Known(DType::Bool),
        "i1" => FileType::Known(DType::I8),
        "i2" => FileType::Known(DType::I16),
        "i4" => FileType::Known(DType::I32),
        "i8" => FileType::Known(DType::I64),
        "u1" => FileType::Known(DType::U8),
        "u2" => FileType::Known(DType::U16),
        "u4" => FileType::Known(DType::U32),
        "u8" => FileType::Known(DType::U64),
        "f1" => FileType::Known(DType::F8E5M2),
        "f2" => FileType::Known(DType::F16),
        "f4" => FileType::Known(DType::F32),
        "f8" => FileType::Known(DType::F64),
        "V1" => FileType::Raw(1),
        "V2" => FileType::Raw(2),
        _ => return Err(unsupported()),
    };
    let width = match ty {
        FileType::Known(d) => d.bits() as usize / 8,
        FileType::Raw(n) => n,
    };
    Ok((ty, width, order == ">" && width > 1))
}

/// Column-major elements to row-major.
fn to_row_major(data: &[u8], shape: &[usize], width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    if data.is_empty() {
        return out;
    }
    let mut index = vec![0usize; shape.len()];
    let mut strides = vec![1usize; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    for _ in 0..data.len() / width {
        let at: usize = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        out.extend_from_slice(&data[at * width..(at + 1) * width]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

/// Reads the few forms of Python literals that headers hold.
struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    fn peek(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.starts_with(token)
    }

    fn accept(&mut self, token: &str) -> bool {
        let found = self.peek(token);
        if found {
            self.rest = &self.rest[token.len()..];
        }
        found
    }

    fn expect(&mut self, token: &str) -> std::result::Result<(), HeaderError> {
        if self.accept(token) { Ok(()) } else { Err(HeaderError::Malformed(format!("lacks a `{token}`"))) }
    }

    fn string(&mut self) -> std::result::Result<String, HeaderError> {
        for quote in ["'", "\""] {
            if self.accept(quote) {
                let (text, rest) = (self.rest.split_once(quote))
                    .ok_or_else(|| HeaderError::Malformed("has an open quote".into()))?;
                self.rest = rest;
                return Ok(text.to_string());
            }
        }
        Err(HeaderError::Malformed("lacks a quoted word".into()))
    }

    fn boolean(&mut self) -> std::result::Result<bool, HeaderError> {
        match () {
            _ if self.accept("True") => Ok(true),
            _ if self.accept("False") => Ok(false),
            _ => Err(HeaderError::Malformed("lacks True or False".into())),
        }
    }

    fn shape(&mut self) -> std::result::Result<Vec<usize>, HeaderError> {
        const MOST_AXES: usize = 32;
        let mut shape = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            self.rest = self.rest.trim_start();
            let digits = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(digits);
            let extent = number
                .parse()
                .map_err(|_| HeaderError::Malformed("has a shape that is no list of numbers".into()))?;
            shape.push(extent);
            // old files write long integers, `3L`
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if shape.len() > MOST_AXES {
                return Err(HeaderError::Malformed(format!("has more than {MOST_AXES} axes")));
            }
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(shape)
    }
}

fn descr(t: &HostTensor) -> &'static str {
    if let Some(p) = t.packed() {
        return if p.order == PackOrder::Linear { "|u1" } else { "<i4" };
    }
    match t.dtype() {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 | DType::I4 | DType::U4 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F8E4M3 | DType::F8E5M2 => "|V1",
        DType::BF16 => "|V2",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
    }
}

pub(super) fn write(out: &mut impl Write, t: &HostTensor) -> std::io::Result<()> {
    let shape: String = file_shape(t).iter().map(|e| format!("{e}, ")).collect();
    // a tuple of several numbers ends without the comma that a tuple of one needs
    let shape = if t.shape().len() == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
    let dict = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", descr(t));
    // elements start on a multiple of 64 bytes; the header ends in a newline
    let length = (10 + dict.len() + 1).next_multiple_of(64) - 10;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&(length as u16).to_le_bytes())?;
    out.write_all(format!("{dict:<width$}\n", width = length - 1).as_bytes())?;
    out.write_all(t.bytes())
}
