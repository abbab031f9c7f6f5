//! Where things stand in source text, and through which calls they got there.

use std::path::{Path, PathBuf};

/// Byte range in one source file, plus the chain of inlined calls (`at`) that leads to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
    /// Index into [`Sources::calls`], 0 where the text was not reached through a call.
    pub at: CallId,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u32);

impl Span {
    pub fn new(file: FileId, start: usize, end: usize) -> Span {
        Span { file, start: start as u32, end: end as u32, at: CallId(0) }
    }

    /// The smallest span that holds both, in the file of `self`.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { start: self.start.min(other.start), end: self.end.max(other.end), ..self }
    }

    pub fn inside(self, at: CallId) -> Span {
        Span { at, ..self }
    }
}

/// One inlined call: `callee`'s body stands in place of the call at `span`.
#[derive(Clone, Debug)]
pub struct CallSite {
    pub span: Span,
    pub callee: String,
}

#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The path as the user gave it; `std` for the built-in library.
    pub name: String,
    pub path: Option<PathBuf>,
    pub text: String,
}

/// All source texts of a compilation. File 0 is an empty placeholder, so that a default span is harmless.
#[derive(Clone, Debug)]
pub struct Sources {
    files: Vec<SourceFile>,
    calls: Vec<CallSite>,
}

impl Default for Sources {
    fn default() -> Self {
        let none = SourceFile { name: "<builder>".into(), path: None, text: String::new() };
        let root = CallSite { span: Span::default(), callee: String::new() };
        Sources { files: vec![none], calls: vec![root] }
    }
}

impl Sources {
    pub fn add(&mut self, name: impl Into<String>, path: Option<&Path>, text: impl Into<String>) -> FileId {
        let id = FileId(self.files.len() as u32);
        let path = path.map(Path::to_path_buf);
        self.files.push(SourceFile { name: name.into(), path, text: text.into() });
        id
    }

    pub fn add_call(&mut self, span: Span, callee: impl Into<String>) -> CallId {
        self.calls.push(CallSite { span, callee: callee.into() });
        CallId(self.calls.len() as u32 - 1)
    }

    pub fn file(&self, id: FileId) -> &SourceFile {
        self.files.get(id.0 as usize).unwrap_or(&self.files[0])
    }

    pub fn files(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().skip(1).map(|(i, f)| (FileId(i as u32), f))
    }

    /// The call through which `span` was reached, if it was.
    pub fn call(&self, span: Span) -> Option<&CallSite> {
        if span.at.0 == 0 { None } else { self.calls.get(span.at.0 as usize) }
    }

    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// 1-based line and column (in characters) of the span's start.
    pub fn line_col(&self, span: Span) -> (usize, usize) {
        let text = &self.file(span.file).text;
        let mut at = (span.start as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}
