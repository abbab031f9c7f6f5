//! Tokens: the words, numbers and marks of the language.

use super::words;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tok {
    /// A word, reserved or not.
    Word,
    Int,
    Float,
    Str,
    /// A number or string that was reported already.
    Bad,
    /// The end of the text.
    End,
    LParen,
    RParen,
    LBracket,
    RBracket,
    LBrace,
    RBrace,
    Comma,
    Semi,
    Colon,
    PathSep,
    Dot,
    DotDot,
    DotDotEq,
    PlusColon,
    Arrow,
    Question,
    Tilde,
    Underscore,
    Assign,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    At,
    Amp,
    Pipe,
    Caret,
    Bang,
    AndAnd,
    OrOr,
    Shl,
    Shr,
    EqEq,
    NotEq,
    Lt,
    Le,
    Gt,
    Ge,
    PlusEq,
    MinusEq,
    StarEq,
    SlashEq,
    PercentEq,
    AmpEq,
    PipeEq,
    CaretEq,
    ShlEq,
    ShrEq,
}

/// Marks, longer ones before their prefixes.
pub const MARKS: &[(&str, Tok)] = &[
    ("<<=", Tok::ShlEq),
    (">>=", Tok::ShrEq),
    ("..=", Tok::DotDotEq),
    ("..", Tok::DotDot),
    ("+:", Tok::PlusColon),
    ("->", Tok::Arrow),
    ("::", Tok::PathSep),
    ("&&", Tok::AndAnd),
    ("||", Tok::OrOr),
    ("<<", Tok::Shl),
    (">>", Tok::Shr),
    ("==", Tok::EqEq),
    ("!=", Tok::NotEq),
    ("<=", Tok::Le),
    (">=", Tok::Ge),
    ("+=", Tok::PlusEq),
    ("-=", Tok::MinusEq),
    ("*=", Tok::StarEq),
    ("/=", Tok::SlashEq),
    ("%=", Tok::PercentEq),
    ("&=", Tok::AmpEq),
    ("|=", Tok::PipeEq),
    ("^=", Tok::CaretEq),
    ("(", Tok::LParen),
    (")", Tok::RParen),
    ("[", Tok::LBracket),
    ("]", Tok::RBracket),
    ("{", Tok::LBrace),
    ("}", Tok::RBrace),
    (",", Tok::Comma),
    (";", Tok::Semi),
    (":", Tok::Colon),
    (".", Tok::Dot),
    ("?", Tok::Question),
    ("~", Tok::Tilde),
    ("=", Tok::Assign),
    ("+", Tok::Plus),
    ("-", Tok::Minus),
    ("*", Tok::Star),
    ("/", Tok::Slash),
    ("%", Tok::Percent),
    ("@", Tok::At),
    ("&", Tok::Amp),
    ("|", Tok::Pipe),
    ("^", Tok::Caret),
    ("!", Tok::Bang),
    ("<", Tok::Lt),
    (">", Tok::Gt),
];

impl Tok {
    /// The mark as it is written; empty for words and numbers.
    pub fn mark(self) -> &'static str {
        if self == Tok::Underscore {
            return "_";
        }
        MARKS.iter().find(|(_, t)| *t == self).map_or("", |(text, _)| text)
    }
}

/// One token, as a byte range of its file.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub tok: Tok,
    pub start: u32,
    pub end: u32,
    /// A line break stands between the token before and this one.
    pub first_on_line: bool,
    /// Bytes between the start of its line and the token.
    pub column: u32,
}

/// Can `text` be written as a plain name?
pub fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let start = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    start && chars.all(|c| c.is_ascii_alphanumeric() || c == '_') && text != "_" && !words::is_reserved(text)
}
