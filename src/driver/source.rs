//! Source files: reading and formatting.

use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::span::{FileId, Sources, Span};
use pantile_ir::text;
use std::path::Path;

/// Reads a `.tile` file into `sources`; `-` is standard input.
pub fn read_source(path: &Path, sources: &mut Sources) -> Result<FileId, Diagnostic> {
    let shown = path.display().to_string();
    if shown == "-" {
        let text = std::io::read_to_string(std::io::stdin()).map_err(|e| unreadable("standard input", &e))?;
        return Ok(sources.add("<stdin>", None, text));
    }
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(&format!("`{shown}`"), &e))?;
    Ok(sources.add(shown, Some(path), text))
}

fn unreadable(what: &str, e: &std::io::Error) -> Diagnostic {
    use std::io::ErrorKind::{InvalidData, IsADirectory, NotFound};
    let (code, why) = match e.kind() {
        NotFound => (codes::FILE_MISSING, "there is no such file".to_string()),
        IsADirectory => (codes::FILE_ACCESS, "it is a folder".to_string()),
        InvalidData => (codes::FILE_FORMAT, "it is no text in UTF-8".to_string()),
        _ => (codes::FILE_ACCESS, e.to_string()),
    };
    Diagnostic::error(code, Span::default(), format!("cannot read {what}: {why}"))
}

/// The text as `fmt` writes it; a text with mistakes in its syntax has none.
pub fn format_source(file: FileId, sources: &Sources) -> Result<String, Diagnostics> {
    let (tree, found) = text::parse(file, sources);
    if found.has_errors() { Err(found) } else { Ok(text::format(&tree)) }
}
