//! What can go wrong at run time, each with a number, a sentence in the user's words and, where known, a remedy.

use pantile_abi::BindError;
use std::fmt;
use std::path::Path;

/// The kinds of failure. Their numbers print as `P0901` and are explained by `pantile explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file is absent.
    FileMissing,
    /// A file cannot be read or written.
    FileAccess,
    /// A file is not what its name promises, or is cut short.
    FileFormat,
    /// The file is sound but holds a type or form that is not supported.
    FileUnsupported,
    /// An archive has no such array.
    KeyMissing,
    /// An input description such as `normal:128x64:7` is wrong.
    InputSpec,
    /// Host memory cannot be had.
    Memory,
    /// An argument does not fit its parameter.
    Bind(pantile_abi::BindRule),
    /// A grid, workspace or loop bound of an op has no value.
    Launch,
    /// The kernel itself stopped: a failed assert, an index outside a tensor.
    Fault,
    /// A shared library or a symbol in it is absent, or its description is wrong.
    Library,
    /// A compiler of a vendor refused a source or failed.
    Compiler,
    /// The host lacks what the kernel was built for.
    HostFeature,
    /// Result and reference cannot be compared.
    Compare,
}

impl ErrorKind {
    pub const fn code(self) -> u16 {
        match self {
            ErrorKind::Bind(rule) => rule.code(),
            ErrorKind::Launch => 760,
            ErrorKind::Memory => 761,
            ErrorKind::Fault => 762,
            ErrorKind::HostFeature => 763,
            ErrorKind::Library => 764,
            ErrorKind::Compiler => 765,
            ErrorKind::FileMissing => 901,
            ErrorKind::FileAccess => 902,
            ErrorKind::FileFormat => 903,
            ErrorKind::FileUnsupported => 904,
            ErrorKind::KeyMissing => 905,
            ErrorKind::InputSpec => 906,
            ErrorKind::Compare => 907,
        }
    }
}

#[derive(Debug)]
pub struct Error {
    pub kind: ErrorKind,
    /// One sentence, lower case, no full stop.
    pub message: String,
    pub help: Option<String>,
    /// What a launcher reported, for callers that know its type.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), help: None, source: None }
    }

    pub fn help(mut self, text: impl Into<String>) -> Error {
        self.help = Some(text.into());
        self
    }

    /// The failure of a launcher; its own report stays reachable through [`std::error::Error::source`].
    pub fn from_launcher(kind: ErrorKind, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error { kind, message: source.to_string(), help: None, source: Some(Box::new(source)) }
    }

    /// Puts `place` before the sentence: ``in the launch of `k`: …``.
    pub fn within(mut self, place: impl fmt::Display) -> Error {
        self.message = format!("{place}: {}", self.message);
        self
    }

    pub(crate) fn io(path: &Path, doing: &str, e: &std::io::Error) -> Error {
        let kind = match e.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::FileMissing,
            _ => ErrorKind::FileAccess,
        };
        Error::new(kind, format!("cannot {doing} `{}`: {}", path.display(), io_words(e)))
    }

    pub(crate) fn format(path: &Path, what: impl fmt::Display) -> Error {
        Error::new(ErrorKind::FileFormat, format!("`{}` is not usable: {what}", path.display()))
    }
}

/// Why the system refused, without its numbers.
pub fn io_words(e: &std::io::Error) -> String {
    use std::io::ErrorKind as K;
    let words = match e.kind() {
        K::NotFound => "no such file",
        K::PermissionDenied => "permission denied",
        K::IsADirectory => "it is a folder",
        K::NotADirectory => "a part of the path is a file, not a folder",
        K::StorageFull | K::QuotaExceeded => "no space is left",
        K::ReadOnlyFilesystem => "the file system is read-only",
        K::InvalidFilename => "the name is too long",
        K::InvalidData => "it is no text in UTF-8",
        K::AlreadyExists => "it is there already",
        _ => {
            let text = e.to_string();
            let end = text.find(" (os error").unwrap_or(text.len());
            return text[..end].to_lowercase();
        }
    };
    words.into()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as _)
    }
}

impl From<BindError> for Error {
    fn from(e: BindError) -> Error {
        Error { kind: ErrorKind::Bind(e.rule), message: e.message, help: e.help, source: None }
    }
}
