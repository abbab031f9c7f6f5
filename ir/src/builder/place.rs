//! Spans for things made by Rust code: the caller's file and line.

use super::Defs;
use crate::span::{FileId, Span};
use std::collections::HashMap;
use std::panic::Location;

/// Files of Rust code, each with how many lines can be pointed at.
#[derive(Default)]
pub(super) struct Places {
    files: HashMap<&'static str, Known>,
}

struct Known {
    file: FileId,
    /// Byte offset of each line; empty if the text is only line breaks, one a line.
    lines: Vec<usize>,
    count: usize,
}

/// The text is read if it is where the compiler saw it, so that messages can show the line; otherwise a text of
/// empty lines stands for it, and messages still name file and line.
pub(super) fn span(defs: &Defs, at: &'static Location<'static>) -> Span {
    let mut shared = defs.borrow_mut();
    let shared = &mut *shared;
    let line = at.line() as usize;
    let known = match shared.places.files.get(at.file()) {
        Some(known) if line <= known.count => known,
        _ => {
            let (text, lines, count) = load(at.file(), line);
            let file = shared.sources.add(at.file(), None, text);
            shared.places.files.insert(at.file(), Known { file, lines, count });
            &shared.places.files[at.file()]
        }
    };
    match known.lines.get(line - 1) {
        None => Span::new(known.file, line - 1, line - 1),
        Some(&start) => {
            let text = &shared.sources.file(known.file).text;
            let rest = text[start..].lines().next().unwrap_or("");
            let skip = rest.char_indices().nth(at.column() as usize - 1).map_or(rest.len(), |(i, _)| i);
            Span::new(known.file, start + skip, start + rest.trim_end().len().max(skip))
        }
    }
}

fn load(path: &str, line: usize) -> (String, Vec<usize>, usize) {
    if let Ok(text) = std::fs::read_to_string(path) {
        let breaks = text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i + 1);
        let lines: Vec<usize> = std::iter::once(0).chain(breaks).filter(|&i| i < text.len()).collect();
        if line <= lines.len() {
            let count = lines.len();
            return (text, lines, count);
        }
    }
    let count = line.next_power_of_two().max(1024);
    ("\n".repeat(count), Vec::new(), count)
}
