//! Recursive descent over the tokens of one file: the cursor, reports and recovery. The grammar itself is in the
//! submodules, one a topic; it is written down in `docs/language.md`.
//!
//! A mistake is reported once: after a report the parser is `lost` and silent until the next statement, item or
//! list element begins. Mistakes that leave no doubt about what was meant are reported without getting lost.
//! An [`ExprKind::Error`] in the tree always has a report.

mod control;
mod exprs;
mod frame;
mod hints;
mod items;
mod machines;
mod statements;
mod tests_block;
mod types;

use super::lexer;
use super::token::{Tok, Token};
use super::words;
use crate::ast::{self, Expr, ExprKind, Ident};
use crate::codes;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::span::{FileId, Sources, Span};

/// Deepest nesting of brackets and blocks, and longest chain of operators: every later walk over the tree may
/// recurse.
pub(super) const MAX_DEPTH: u32 = 128;

/// Reads a file. The tree is complete where there are no errors and usable for further checks where there are.
pub fn parse(file: FileId, sources: &Sources) -> (ast::File, Diagnostics) {
    let text = &sources.file(file).text;
    let lexed = lexer::lex(file, text);
    let mut parser = Parser {
        text,
        file,
        tokens: lexed.tokens,
        pos: 0,
        diags: lexed.diags,
        lost: false,
        brackets: 0,
        depth: 0,
        height: 0,
        suspect: None,
        slips: Vec::new(),
        unclosed_at: None,
        reports_left: u32::MAX,
    };
    let (stage, items) = parser.file();
    let tree = ast::File { stage, items, comments: lexed.comments, lines: lexed.lines };
    let mut diags: Vec<Diagnostic> = parser.diags.into_iter().collect();
    diags.sort_by_key(|d| d.primary.span.start);
    (tree, diags.into_iter().collect())
}

pub(super) struct Parser<'a> {
    text: &'a str,
    file: FileId,
    tokens: Vec<Token>,
    pos: usize,
    diags: Diagnostics,
    /// A mistake was reported and its end is not reached yet.
    lost: bool,
    /// Open round and square brackets inside the innermost braces; inside them line breaks mean nothing.
    brackets: u32,
    /// Nesting of the recursion.
    depth: u32,
    /// Height of the expression read last.
    height: u32,
    /// The first brace whose closing one stands too far to the left.
    suspect: Option<Span>,
    /// Foreign words that were reported in the current statement.
    slips: Vec<&'static str>,
    /// The token before which a `}` was reported to be missing.
    unclosed_at: Option<usize>,
    /// How many more reports the current item may give: few where its braces do not match, since then most of
    /// what follows is misread.
    reports_left: u32,
}

impl<'a> Parser<'a> {
    // ---- cursor ----

    fn token(&self) -> Token {
        self.tokens[self.pos]
    }

    fn ahead(&self, n: usize) -> Token {
        self.tokens[(self.pos + n).min(self.tokens.len() - 1)]
    }

    fn tok(&self) -> Tok {
        self.token().tok
    }

    fn at(&self, tok: Tok) -> bool {
        self.tok() == tok
    }

    fn text_of(&self, t: Token) -> &'a str {
        &self.text[t.start as usize..t.end as usize]
    }

    fn word(&self) -> &'a str {
        self.word_ahead(0)
    }

    /// The word `n` tokens ahead, empty if none stands there.
    fn word_ahead(&self, n: usize) -> &'a str {
        let t = self.ahead(n);
        if t.tok == Tok::Word { self.text_of(t) } else { "" }
    }

    fn at_word(&self, word: &str) -> bool {
        self.word() == word
    }

    /// The statement ends here: a line break outside brackets, `;`, `}`, or the end of the text.
    fn at_end(&self) -> bool {
        let t = self.token();
        matches!(t.tok, Tok::Semi | Tok::RBrace | Tok::End) || (self.brackets == 0 && t.first_on_line)
    }

    /// Token `n` ahead stands on the line of the token before it, or line breaks mean nothing here.
    fn same_line(&self, n: usize) -> bool {
        self.brackets > 0 || !self.ahead(n).first_on_line
    }

    /// Token `n` touches the one before it.
    fn touches(&self, n: usize) -> bool {
        let i = self.pos + n;
        i > 0 && i < self.tokens.len() && self.tokens[i - 1].end == self.tokens[i].start
    }

    fn bump(&mut self) -> Token {
        let t = self.token();
        if t.tok != Tok::End {
            self.pos += 1;
        }
        t
    }

    fn eat(&mut self, tok: Tok) -> bool {
        let found = self.at(tok);
        if found {
            self.bump();
        }
        found
    }

    /// Takes `word` where it stands on the same line.
    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word) && self.same_line(0);
        if found {
            self.bump();
        }
        found
    }

    // ---- spans ----

    fn span_of(&self, t: Token) -> Span {
        Span::new(self.file, t.start as usize, t.end as usize)
    }

    fn here(&self) -> Span {
        self.span_of(self.token())
    }

    fn previous(&self) -> Span {
        self.span_of(self.tokens[self.pos.saturating_sub(1)])
    }

    /// From `start` to the end of the last token taken.
    fn since(&self, start: Span) -> Span {
        if self.pos == 0 || self.previous().end < start.start { start } else { start.to(self.previous()) }
    }

    // ---- reports ----

    /// Reports `d` unless the parser is lost, and gets lost.
    fn fail(&mut self, d: Diagnostic) {
        // the lexer reported what makes a token bad
        if !self.at(Tok::Bad) {
            self.complain(d);
        }
        self.lost = true;
    }

    /// Reports a mistake whose meaning is clear, and goes on.
    fn complain(&mut self, d: Diagnostic) {
        if !self.lost && self.reports_left > 0 {
            self.reports_left -= 1;
            self.diags.push(d);
        }
    }

    fn error(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, span, message)
    }

    /// What stands here, for a message, and where to point.
    fn found(&self) -> (String, Span) {
        let t = self.token();
        if t.tok == Tok::End {
            return ("the end of the file".into(), Span { start: t.start, end: t.start, ..self.here() });
        }
        if self.brackets == 0 && t.first_on_line && self.pos > 0 {
            let end = self.previous().end;
            return ("the end of the line".into(), Span { start: end, end, ..self.here() });
        }
        (format!("`{}`", self.text_of(t)), self.here())
    }

    fn unexpected(&mut self, expected: &str) {
        let (found, span) = self.found();
        let d = self.error(codes::UNEXPECTED, span, format!("expected {expected}, found {found}"));
        let d = self.hint_for_token(d);
        self.fail(d);
    }

    fn expect(&mut self, tok: Tok) -> bool {
        if self.at(tok) && (self.same_line(0) || tok == Tok::LBrace) {
            self.bump();
            return true;
        }
        self.unexpected(&format!("`{}`", tok.mark()));
        false
    }

    fn expect_word(&mut self, word: &str) -> bool {
        if self.eat_word(word) {
            return true;
        }
        self.unexpected(&format!("`{word}`"));
        false
    }

    fn name_here(&mut self) -> Ident {
        let t = self.bump();
        Ident { name: self.text_of(t).to_string(), span: self.span_of(t) }
    }

    /// A name; `what` says of what, as in "a name for the kernel".
    fn name(&mut self, what: &str) -> Ident {
        if self.at(Tok::Word) && self.same_line(0) {
            let word = self.word();
            if words::is_reserved(word) {
                let d = self
                    .error(codes::RESERVED_WORD, self.here(), format!("`{word}` is a reserved word"))
                    .label(format!("expected {what}"))
                    .help(format!("choose another name, such as `{word}_`"));
                self.complain(d);
            }
            return self.name_here();
        }
        self.unexpected(what);
        self.missing_name()
    }

    fn missing_name(&self) -> Ident {
        Ident { name: "_error".into(), span: self.here() }
    }

    fn error_expr(&self) -> Expr {
        Expr { kind: ExprKind::Error, span: self.here() }
    }

    // ---- nesting ----

    /// Runs `read` one level deeper; `None` where the text is nested too deeply.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            self.too_deep();
            return None;
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        Some(value)
    }

    fn too_deep(&mut self) {
        let d = self
            .error(codes::TOO_DEEP, self.here(), "this is nested too deeply")
            .note(format!("brackets, blocks and chains of operators may be {MAX_DEPTH} deep"))
            .help("give parts of it a name with `let`");
        self.fail(d);
    }

    /// Runs `read` where line breaks mean nothing, as between the name and the body of an item.
    fn unbroken<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.brackets += 1;
        let value = read(self);
        self.brackets -= 1;
        value
    }

    /// `open element, element, … close` with an optional last comma; the cursor stands on `open`.
    fn list<T>(&mut self, close: Tok, mut element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let open = self.bump();
        let mut items = Vec::new();
        self.unbroken(|p| {
            loop {
                if p.at(close) {
                    break;
                }
                let before = p.pos;
                items.push(element(p));
                if p.lost || !p.eat(Tok::Comma) {
                    break;
                }
                if p.pos == before {
                    break;
                }
            }
            if !p.lost && p.at(close) {
                return;
            }
            if !p.lost {
                p.unclosed_list(open, close);
            }
            p.skip_to_closer(close);
        });
        self.eat(close);
        items
    }

    fn unclosed_list(&mut self, open: Token, close: Tok) {
        let mark = close.mark();
        let t = self.token();
        let open_span = self.span_of(open);
        let foreign = self.foreign_operator();
        let d = if t.first_on_line || matches!(t.tok, Tok::End | Tok::RBrace | Tok::LBrace) {
            let end = self.previous().end;
            let d =
                self.error(codes::UNCLOSED, open_span, format!("this `{}` is never closed", open.tok.mark()));
            let place = Span { start: end, end, ..open_span };
            d.label("opened here").also(place, format!("`,` or `{mark}` is missing here"))
        } else if let Some(d) = foreign {
            d
        } else {
            let (found, span) = self.found();
            let d = self.error(codes::UNEXPECTED, span, format!("expected `,` or `{mark}`, found {found}"));
            let d = self.hint_for_token(d);
            d.also(open_span, format!("inside this `{}`", open.tok.mark()))
        };
        self.fail(d);
    }

    // ---- recovery ----

    /// Skips to `close`, if it comes before the end of the line or statement.
    fn skip_to_closer(&mut self, close: Tok) {
        let mut open = 0u32;
        let mut n = 0;
        loop {
            let t = self.ahead(n);
            if open == 0 && t.tok == close {
                self.pos += n;
                return;
            }
            match t.tok {
                Tok::LParen | Tok::LBracket | Tok::LBrace => open += 1,
                Tok::RParen | Tok::RBracket | Tok::RBrace if open > 0 => open -= 1,
                Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::End => return,
                _ => {}
            }
            if open == 0 && n > 0 && t.first_on_line && self.begins_statement(n) {
                return;
            }
            n += 1;
        }
    }

    /// The token `n` ahead is a word that begins a statement or an item, nothing else.
    fn begins_statement(&self, n: usize) -> bool {
        let word = self.word_ahead(n);
        matches!(word, "let" | "var" | "for" | "while" | "const" | "fn" | "break" | "continue")
            || (self.ahead(n + 1).tok == Tok::Word
                && (words::STATEMENTS.contains(&word) || words::ITEMS.contains(&word)))
    }

    /// Leaves the statement that begins at token `start` and holds a mistake: to the next line, outside of any
    /// brackets it opened.
    fn find_statement_end(&mut self, start: usize) {
        if !self.lost {
            return;
        }
        let mut braces = 0u32;
        let mut brackets = 0i32;
        loop {
            let t = self.token();
            let line = self.pos > start
                && t.first_on_line
                && braces == 0
                && (brackets <= 0 || self.begins_statement(0));
            match t.tok {
                Tok::End => break,
                Tok::RBrace if braces == 0 => break,
                Tok::Semi if braces == 0 && brackets <= 0 => break,
                _ if line => break,
                Tok::LBrace => braces += 1,
                Tok::RBrace => braces -= 1,
                Tok::LParen | Tok::LBracket => brackets += 1,
                Tok::RParen | Tok::RBracket => brackets -= 1,
                _ => {}
            }
            self.bump();
        }
        self.lost = false;
    }
}
