//! Source files: reading and formatting.

use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::span::{FileId, Sources, Span};
use pantile_ir::text;
use pantile_runtime::io_words;
use std::path::Path;

/// Reads a `.tile` file into `sources`; `-` is standard input.
pub fn read_source(path: &Path, sources: &mut Sources) -> Result<FileId, Diagnostic> {
    let text = read_text(path)?;
    Ok(match shown(path).as_str() {
        STDIN => sources.add(STDIN, None, text),
        name => sources.add(name, Some(path), text),
    })
}

const STDIN: &str = "<stdin>";

/// The name of a source in messages.
pub(super) fn shown(path: &Path) -> String {
    if path == Path::new("-") { STDIN.into() } else { path.display().to_string() }
}

/// The text of a file; `-` is standard input.
pub fn read_text(path: &Path) -> Result<String, Diagnostic> {
    if path == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).map_err(|e| unreadable("standard input", &e));
    }
    std::fs::read_to_string(path).map_err(|e| unreadable(&format!("`{}`", path.display()), &e))
}

fn unreadable(what: &str, e: &std::io::Error) -> Diagnostic {
    use std::io::ErrorKind::{InvalidData, NotFound};
    let code = match e.kind() {
        NotFound => codes::FILE_MISSING,
        InvalidData => codes::FILE_FORMAT,
        _ => codes::FILE_ACCESS,
    };
    Diagnostic::error(code, Span::default(), format!("cannot read {what}: {}", io_words(e)))
}

/// The text as `fmt` writes it; a text with mistakes in its syntax has none.
pub fn format_source(file: FileId, sources: &Sources) -> Result<String, Diagnostics> {
    let (tree, found) = text::parse(file, sources);
    if found.has_errors() { Err(found) } else { Ok(text::format(&tree)) }
}
