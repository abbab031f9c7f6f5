//! From characters to tokens. Comments and line starts are kept at the side; nothing here knows the grammar.

use super::token::{MARKS, Tok, Token};
use crate::ast::Comment;
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::span::{FileId, Span};

/// Longest text that is read, in bytes: spans stay far from the limits of their integers.
const MAX_BYTES: usize = 64 << 20;

pub struct Lexed {
    /// Ends with one [`Tok::End`].
    pub tokens: Vec<Token>,
    pub comments: Vec<Comment>,
    pub lines: Vec<u32>,
    pub diags: Diagnostics,
}

pub fn lex(file: FileId, text: &str) -> Lexed {
    let mut lexer = Lexer::new(file, text);
    if text.len() > MAX_BYTES {
        let whole = Span::new(file, 0, 1);
        lexer.out.diags.push(
            Diagnostic::error(codes::TOO_LARGE, whole, "this source file is too large").help(format!(
                "a file may have {} MiB; split it, and join the parts with `use`",
                MAX_BYTES >> 20
            )),
        );
    } else {
        lexer.run();
    }
    lexer.push(Tok::End, lexer.pos, lexer.pos);
    lexer.out
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    pos: usize,
    line_start: usize,
    /// No token yet on this line.
    fresh_line: bool,
    out: Lexed,
}

impl<'a> Lexer<'a> {
    fn new(file: FileId, text: &'a str) -> Self {
        let out =
            Lexed { tokens: Vec::new(), comments: Vec::new(), lines: vec![0], diags: Diagnostics::new() };
        // a byte order mark is no part of the text
        let pos = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Lexer { file, text, pos, line_start: 0, fresh_line: true, out }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start, end)
    }

    fn push(&mut self, tok: Tok, start: usize, end: usize) {
        self.out.tokens.push(Token {
            tok,
            start: start as u32,
            end: end as u32,
            first_on_line: self.fresh_line,
            column: (start - self.line_start.min(start)) as u32,
        });
        self.fresh_line = false;
    }

    fn newline(&mut self) {
        self.line_start = self.pos;
        self.fresh_line = true;
        self.out.lines.push(self.pos as u32);
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.pos += rest.find(|c| !accept(c)).unwrap_or(rest.len());
    }

    fn run(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                '\n' => {
                    self.pos += 1;
                    self.newline();
                }
                ' ' | '\t' | '\r' => self.pos += 1,
                '/' if self.rest().starts_with("//") => self.comment(),
                '/' if self.rest().starts_with("/*") => self.block_comment(),
                '"' => self.string(),
                c if c.is_ascii_digit() => self.number(),
                c if c.is_ascii_alphabetic() || c == '_' => self.word(),
                _ => self.mark(),
            }
        }
    }

    fn word(&mut self) {
        let start = self.pos;
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        let tok = if &self.text[start..self.pos] == "_" { Tok::Underscore } else { Tok::Word };
        self.push(tok, start, self.pos);
    }

    fn mark(&mut self) {
        match MARKS.iter().find(|(text, _)| self.rest().starts_with(text)) {
            Some((text, tok)) => {
                let start = self.pos;
                self.pos += text.len();
                self.push(*tok, start, self.pos);
            }
            None => self.bad_characters(),
        }
    }

    fn comment(&mut self) {
        let start = self.pos;
        let own_line = self.text[self.line_start..start].trim_start_matches('\u{feff}').trim().is_empty();
        self.take_while(|c| c != '\n');
        let text = self.text[start..self.pos].trim_end().to_string();
        let span = self.span(start, start + text.len());
        self.out.comments.push(Comment { span, text, own_line });
    }

    fn block_comment(&mut self) {
        let start = self.pos;
        let end = self.rest().find("*/").map_or(self.text.len(), |i| self.pos + i + 2);
        self.out.diags.push(
            Diagnostic::error(
                codes::FOREIGN_SYNTAX,
                self.span(start, start + 2),
                "comments between `/*` and `*/` do not exist here",
            )
            .help("begin each line of the comment with `//`"),
        );
        while self.pos < end {
            let next = self.text[self.pos..end].find('\n').map(|i| self.pos + i + 1);
            self.pos = next.unwrap_or(end);
            // only the line numbers go on: a comment ends no statement
            if next.is_some() {
                self.line_start = self.pos;
                self.out.lines.push(self.pos as u32);
            }
        }
    }

    fn string(&mut self) {
        let start = self.pos;
        self.pos += 1;
        let mut good = true;
        loop {
            match self.peek() {
                None | Some('\n') => {
                    let span = self.span(start, start + 1);
                    self.out.diags.push(
                        Diagnostic::error(
                            codes::UNTERMINATED_STRING,
                            span,
                            "this string has no closing quote",
                        )
                        .label("begins here")
                        .help("write `\"` where it ends; a string stays on one line"),
                    );
                    good = false;
                    break;
                }
                Some('"') => {
                    self.pos += 1;
                    break;
                }
                Some('\\') => good &= self.escape(),
                Some(c) => self.pos += c.len_utf8(),
            }
        }
        self.push(if good { Tok::Str } else { Tok::Bad }, start, self.pos);
    }

    fn escape(&mut self) -> bool {
        let start = self.pos;
        self.pos += 1;
        match self.peek() {
            Some('n' | 't' | 'r' | '0' | '\\' | '"') => {
                self.pos += 1;
                true
            }
            Some('\n') | None => true,
            Some(c) => {
                self.pos += c.len_utf8();
                self.out.diags.push(
                    Diagnostic::error(
                        codes::BAD_ESCAPE,
                        self.span(start, self.pos),
                        format!("strings do not know the escape `\\{c}`"),
                    )
                    .help("known are `\\n`, `\\t`, `\\r`, `\\0`, `\\\\` and `\\\"`"),
                );
                false
            }
        }
    }

    fn number(&mut self) {
        let start = self.pos;
        let after_dot = self.out.tokens.last().is_some_and(|t| t.tok == Tok::Dot && t.end as usize == start);
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if !after_dot {
            self.fraction(start);
        }
        let text = &self.text[start..self.pos];
        match classify(text) {
            Some(tok) => self.push(tok, start, self.pos),
            None => {
                let d = Diagnostic::error(
                    codes::BAD_NUMBER,
                    self.span(start, self.pos),
                    format!("`{text}` is not a number"),
                );
                self.out.diags.push(d.help(number_help(text)));
                self.push(Tok::Bad, start, self.pos);
            }
        }
    }

    /// Takes the part after the point and the sign of an exponent, where they belong to the number: `1.5e-3`
    /// but not `0..n`.
    fn fraction(&mut self, start: usize) {
        let hex = |s: &Self| s.text[start..].starts_with("0x") || s.text[start..].starts_with("0X");
        if hex(self) {
            return;
        }
        let mut next = self.rest().chars();
        if next.next() == Some('.') && next.next().is_some_and(|c| c.is_ascii_digit()) {
            self.pos += 1;
            self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        }
        let exponent = self.text[start..self.pos].ends_with(['e', 'E']);
        let mut next = self.rest().chars();
        if exponent
            && matches!(next.next(), Some('+' | '-'))
            && next.next().is_some_and(|c| c.is_ascii_digit())
        {
            self.pos += 1;
            self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        }
    }

    fn bad_characters(&mut self) {
        let start = self.pos;
        let first = self.peek().unwrap_or(' ');
        // one report for a whole foreign word
        self.pos += first.len_utf8();
        if !first.is_ascii() {
            self.take_while(|c| !c.is_ascii() && !c.is_whitespace());
        }
        let text: String = self.text[start..self.pos].chars().take(12).collect();
        let shown = text.escape_debug();
        let d = Diagnostic::error(
            codes::BAD_CHARACTER,
            self.span(start, self.pos),
            format!("the language does not use `{shown}`"),
        );
        self.out.diags.push(d.help(character_help(first)));
        self.push(Tok::Bad, start, self.pos);
    }
}

fn classify(text: &str) -> Option<Tok> {
    let digits = |s: &str, ok: fn(&u8) -> bool| {
        s.bytes().any(|b| ok(&b)) && s.bytes().all(|b| b == b'_' || ok(&b)) && !s.starts_with('_')
    };
    if let Some(hex) = text.strip_prefix("0x") {
        return digits(hex, u8::is_ascii_hexdigit).then_some(Tok::Int);
    }
    if digits(text, u8::is_ascii_digit) {
        return Some(Tok::Int);
    }
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(i) => (&text[..i], Some(text[i + 1..].trim_start_matches(['+', '-']))),
        None => (text, None),
    };
    let mantissa_good = match mantissa.split_once('.') {
        Some((a, b)) => digits(a, u8::is_ascii_digit) && digits(b, u8::is_ascii_digit),
        None => digits(mantissa, u8::is_ascii_digit),
    };
    let good = mantissa_good && exponent.is_none_or(|e| digits(e, u8::is_ascii_digit));
    good.then_some(Tok::Float)
}

fn number_help(text: &str) -> String {
    let suffix = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '_');
    let value = &text[..text.len() - suffix.len()];
    if matches!(suffix, "f" | "F" | "h" | "u" | "U" | "l" | "L" | "ul" | "UL" | "ull" | "ULL") {
        return format!("numbers have no suffix: write `{value}`, which takes the type of its context");
    }
    if super::words::closest(suffix, pantile_abi::DType::ALL.iter().map(|t| t.name())) == Some(suffix) {
        return format!("numbers have no suffix: write `{suffix}({value})`");
    }
    if text.starts_with("0b") || text.starts_with("0o") {
        return "whole numbers are written in decimal (`128`) or in hexadecimal (`0x80`)".into();
    }
    "numbers look like `128`, `1_000`, `0x7f`, `0.5`, `1e-6`; a name cannot begin with a digit".into()
}

fn character_help(c: char) -> &'static str {
    match c {
        '#' => "comments begin with `//`",
        '\'' | '‘' | '’' | '“' | '”' | '`' => {
            "text stands between straight double quotes: `\"text\"`"
        }
        '·' | '×' | '∗' => "a product is written `*`, a matrix product `@`",
        '−' | '–' | '—' => "minus is written `-`",
        '≤' => "write `<=`",
        '≥' => "write `>=`",
        '≠' => "write `!=`",
        '→' => "write `->`",
        '…' => "write `..`",
        '∞' => "infinity is written `inf`",
        'π' => "the constant is written `PI`",
        '\u{a0}' | '\u{2007}' | '\u{202f}' => "put an ordinary space in its place",
        '\\' => "a line goes on where it ends in an operator, a comma or an open bracket; no `\\` is needed",
        '$' => "names are written without `$`",
        c if c.is_alphanumeric() => "names consist of the letters a-z and A-Z, digits and `_`",
        _ => "remove it",
    }
}

/// The meaning of a string token, its quotes included in `raw`.
pub fn unescape(raw: &str) -> String {
    let inner = raw.strip_prefix('"').unwrap_or(raw);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some('0')) => out.push('\0'),
            ('\\', Some(other)) => out.push(other),
            (c, _) => out.push(c),
        }
    }
    out
}

/// `text` between quotes, so that [`unescape`] gives it back.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
