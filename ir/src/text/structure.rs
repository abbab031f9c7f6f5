//! What a syntax tree says, without where it says it: for comparing trees.

use crate::ast::File;

/// The debug form of `file` without spans, comments and line starts. Equal texts mean equal programs.
pub fn structure(file: &File) -> String {
    strip_spans(&format!("{:?}\n{:?}", file.stage, file.items))
}

/// Removes every `Span { … }` outside of quoted text.
fn strip_spans(text: &str) -> String {
    let mut out = String::with_capacity(text.len() / 2);
    let mut rest = text;
    while let Some(i) = rest.find(['"', 'S']) {
        out.push_str(&rest[..i]);
        rest = &rest[i..];
        let taken = if rest.starts_with('"') {
            let end = quoted(rest);
            out.push_str(&rest[..end]);
            end
        } else if rest.starts_with("Span { file") {
            // a span holds two more pairs of brackets, `FileId(n)` and `CallId(n)`, and no braces
            rest.find('}').map_or(rest.len(), |end| end + 1)
        } else {
            out.push('S');
            1
        };
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

/// Length of the quoted text at the start of `text`.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return i + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{Ident, Item, ItemKind, Use};
    use crate::span::{FileId, Span};

    #[test]
    fn places_do_not_count_and_words_do() {
        let tree = |at: usize, path: &str| {
            let span = Span::new(FileId(1), at, at + 1);
            let names = vec![Ident { name: "Span { file".into(), span }];
            let kind = ItemKind::Use(Use { path: path.into(), path_span: span, names });
            File { items: vec![Item { kind, span }], ..File::default() }
        };
        assert_eq!(structure(&tree(1, "a\"b")), structure(&tree(7, "a\"b")));
        assert_ne!(structure(&tree(1, "a")), structure(&tree(1, "b")));
        assert!(structure(&tree(1, "a")).contains("Span { file"));
    }
}
