//! Texts cut into the pieces that people type: words, numbers, strings, marks, comments, white space.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Word,
    Number,
    Str,
    Mark,
    Space,
    Comment,
}

/// A piece as a byte range of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

impl Piece {
    pub fn text<'t>(&self, whole: &'t str) -> &'t str {
        &whole[self.start..self.end]
    }
}

const MARKS: [&str; 21] = [
    "<<=", ">>=", "..=", "..", "+:", "->", "::", "&&", "||", "<<", ">>", "==", "!=", "<=", ">=", "+=", "-=",
    "*=", "/=", "%=", "^=",
];

/// All pieces; together they are the text. `comment` begins a comment of one line.
pub fn pieces(text: &str, comment: &str) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let (kind, len) = piece(rest, comment);
        out.push(Piece { kind, start: at, end: at + len });
        at += len;
    }
    out
}

fn piece(rest: &str, comment: &str) -> (Kind, usize) {
    let run = |accept: fn(char) -> bool| rest.find(|c| !accept(c)).unwrap_or(rest.len());
    let first = rest.chars().next().unwrap_or(' ');
    if rest.starts_with(comment) {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if first.is_whitespace() {
        return (Kind::Space, run(char::is_whitespace));
    }
    if first.is_ascii_digit() {
        let n = run(|c| c.is_ascii_alphanumeric() || c == '_');
        // a fraction, but not the range `0..n`
        let tail = &rest[n..];
        let fraction = tail.starts_with('.') && tail[1..].starts_with(|c: char| c.is_ascii_digit());
        if !fraction {
            return (Kind::Number, n);
        }
        let more = tail[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(tail.len() - 1);
        let mut end = n + 1 + more;
        // `1.5e-3`
        if rest[..end].ends_with(['e', 'E']) && rest[end..].starts_with(['-', '+']) {
            end += 1;
            end += rest[end..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - end);
        }
        return (Kind::Number, end);
    }
    if first.is_alphabetic() || first == '_' {
        return (Kind::Word, run(|c| c.is_alphanumeric() || c == '_'));
    }
    if first == '"' {
        let close = rest[1..].find(['"', '\n']).map_or(rest.len(), |i| i + 2);
        return (Kind::Str, close.min(rest.len()));
    }
    let mark = MARKS.iter().find(|m| rest.starts_with(**m));
    (Kind::Mark, mark.map_or(first.len_utf8(), |m| m.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text() {
        let text = "let x = A[0..n, 1.5e-3 +: 4] pad 0x7f // é\n\"a b\" ÿ::<<=";
        let found: Vec<&str> = pieces(text, "//").iter().map(|p| p.text(text)).collect();
        assert_eq!(found.concat(), text);
        let solid: Vec<&str> = found.into_iter().filter(|t| !t.trim().is_empty()).collect();
        let expected = [
            "let", "x", "=", "A", "[", "0", "..", "n", ",", "1.5e-3", "+:", "4", "]", "pad", "0x7f", "// é",
            "\"a b\"", "ÿ", "::", "<<=",
        ];
        assert_eq!(solid, expected);
    }
}
