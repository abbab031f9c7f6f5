//! Reports on likely slips: words of other languages, forgotten braces, misspelt words.

use super::Parser;
use crate::ast::*;
use crate::codes;
use crate::diag::Diagnostic;
use crate::span::Span;
use crate::text::precedence as prec;
use crate::text::token::{Tok, Token};
use crate::text::words;

/// Words of other languages that begin an item, and what is written instead.
const FOREIGN_ITEMS: &[(&str, &str)] = &[
    ("def", "functions are declared with `fn`, kernels with `kernel`"),
    ("func", "functions are declared with `fn`"),
    ("function", "functions are declared with `fn`"),
    ("void", "functions are declared with `fn`, kernels with `kernel`"),
    ("pub", "items need no `pub`; remove it"),
    ("import", "names of another file are taken with `use \"path.tile\"::{name}`"),
    ("from", "names of another file are taken with `use \"path.tile\"::{name}`"),
    ("include", "names of another file are taken with `use \"path.tile\"::{name}`"),
    ("struct", "there are no structs; functions take and give tuples"),
];

/// Words of other languages that begin a statement, and what is written instead.
const FOREIGN_STATEMENTS: &[(&str, &str)] = &[
    (
        "return",
        "there is no `return`: the last expression of a function is its value, and kernels store results",
    ),
    ("mut", "a variable that changes is declared with `var`"),
    ("auto", "a value is declared with `let`, a variable with `var`"),
    ("def", "functions are declared with `fn`, at the left margin of the file"),
    ("switch", "write `if … { } else if … { } else { }`"),
    ("match", "write `if … { } else if … { } else { }`"),
    ("loop", "write `while true { }`, or `for i in a..b { }`"),
    ("do", "write `while condition { }`"),
];

impl Parser<'_> {
    // ---- tokens ----

    /// Adds what is known about the token that stands here.
    pub(super) fn hint_for_token(&self, d: Diagnostic) -> Diagnostic {
        let t = self.token();
        if t.first_on_line && self.brackets == 0 {
            return d;
        }
        match t.tok {
            Tok::Question => d.help("a choice is written `if condition { a } else { b }`"),
            Tok::Word if words::is_reserved(self.word()) => {
                d.note(format!("`{}` is a reserved word", self.word()))
            }
            _ => d,
        }
    }

    pub(super) fn expected_expression(&mut self) {
        let t = self.token();
        let line_break = t.first_on_line && self.brackets == 0;
        let help = match t.tok {
            _ if line_break => None,
            Tok::Plus => Some("there is no sign `+`; remove it"),
            Tok::Tilde => Some("bits are inverted with `!`"),
            Tok::Amp => {
                Some("there are no addresses; a function's parameter `&shared T[…]` takes memory by its name")
            }
            Tok::Star => Some("there are no pointers; an element is read as `x[i]`"),
            Tok::Underscore => Some("`_` stands only in an index list and in a pattern"),
            Tok::DotDot | Tok::DotDotEq => Some("write both ends of a range, as in `0..n`"),
            _ => None,
        };
        let (found, span) = self.found();
        let d = self.error(codes::UNEXPECTED, span, format!("expected an expression, found {found}"));
        let d = match help {
            Some(help) => d.help(help),
            None => self.hint_for_token(d),
        };
        self.fail(d);
    }

    /// `and`, and `or` between values, are reported and read as `&&` and `||`.
    pub(super) fn word_operator(&mut self) -> Option<BinaryOp> {
        let (word, op, mark) = match self.word() {
            "and" => ("and", BinaryOp::AndAnd, "&&"),
            "or" => ("or", BinaryOp::OrOr, "||"),
            _ => return None,
        };
        if self.lost || matches!(self.ahead(1).tok, Tok::Comma | Tok::RParen | Tok::RBracket | Tok::Assign) {
            return None;
        }
        if !self.first_in_statement(word) {
            return Some(op);
        }
        let d = self.error(codes::FOREIGN_SYNTAX, self.here(), format!("`{word}` does not join conditions"));
        let d = d.help(format!("write `{mark}`"));
        let d = if word == "or" {
            d.note("`or` gives the value of one element read that lies outside, as in `x[i] or 0`")
        } else {
            d
        };
        self.complain(d);
        Some(op)
    }

    /// False if the statement holds this slip already: one report tells enough.
    fn first_in_statement(&mut self, word: &'static str) -> bool {
        let first = !self.slips.contains(&word);
        if first {
            self.slips.push(word);
        }
        first
    }

    pub(super) fn word_not(&mut self) -> ExprKind {
        if self.first_in_statement("not") {
            let d = self.error(codes::FOREIGN_SYNTAX, self.here(), "`not` does not negate a condition");
            self.complain(d.help("write `!`"));
        }
        self.bump();
        let operand = self.deeper(|p| p.postfix());
        let operand = operand.unwrap_or_else(|| self.error_expr());
        ExprKind::Unary(UnaryOp::Not, Box::new(operand))
    }

    /// `**`, `&&&` and the like: the second mark is reported and skipped.
    pub(super) fn doubled_operator(&mut self) {
        if self.at(Tok::Star) && self.touches(0) {
            let d = self.error(
                codes::FOREIGN_SYNTAX,
                self.previous().to(self.here()),
                "there is no operator `**`",
            );
            self.complain(d.help("write `pow(a, b)`, or a product"));
            self.bump();
        }
    }

    pub(super) fn misplaced_pad(&mut self, base: Span) {
        if matches!(self.ahead(1).tok, Tok::Comma | Tok::RParen | Tok::RBracket | Tok::Assign) {
            return;
        }
        let d = self.error(codes::UNEXPECTED, self.here(), "`pad` follows a region");
        self.fail(
            d.also(base, "this is not one")
                .help("write it directly after the brackets, as in `A[i +: n] pad 0`"),
        );
    }

    /// In a list: an operator of another language, where one stands here.
    pub(super) fn foreign_operator(&self) -> Option<Diagnostic> {
        let (message, help) = match self.tok() {
            Tok::Assign => ("`=` does not stand inside an expression", "compare with `==`"),
            Tok::Question => {
                ("there is no operator `?`", "a choice is written `if condition { a } else { b }`")
            }
            _ => return None,
        };
        Some(self.error(codes::FOREIGN_SYNTAX, self.here(), message).help(help))
    }

    /// Text is left on the line after a statement.
    pub(super) fn leftover(&self) -> Diagnostic {
        let t = self.token();
        let (_, span) = self.found();
        let text = self.text_of(t);
        if let Some(d) = self.foreign_operator().filter(|_| t.tok == Tok::Question) {
            return d;
        }
        if self.at(Tok::Colon) && self.ahead(1).tok == Tok::Assign {
            let d = self.error(codes::FOREIGN_SYNTAX, span, "there is no `:=`");
            return d.help("a value is declared with `let x = …`, a variable with `var x = …`");
        }
        if self.at(Tok::Colon) {
            let d = self.error(codes::UNEXPECTED, span, "`:` cannot stand here");
            return d.help("to declare a name with a type, begin with `let` or `var`");
        }
        if matches!(t.tok, Tok::RParen | Tok::RBracket) {
            let d = self.error(codes::STRAY_CLOSER, span, format!("this `{text}` closes nothing"));
            return d.help("remove it, or open the bracket that it should close");
        }
        let d =
            self.error(codes::MISSING_NEWLINE, span, format!("expected the end of the line, found `{text}`"));
        if matches!(t.tok, Tok::Comma) {
            return d.help("separate statements by line breaks");
        }
        d.help("begin a new statement on a line of its own, or put `;` before it")
    }

    // ---- statements ----

    /// The mistake, if what stands here begins no statement at all.
    pub(super) fn not_a_statement(&self) -> Option<Diagnostic> {
        let word = self.word();
        let next = self.ahead(1);
        let span = self.here();
        let same_line = self.same_line(1);
        if word.is_empty() {
            return self.continued_line();
        }
        let next_word =
            next.tok == Tok::Word && same_line && !self.infix_word(1) && self.word_ahead(1) != "and";
        if matches!(word, "fn" | "kernel" | "combine" | "intrinsic") && next_word {
            let d = self.error(codes::UNEXPECTED, span, format!("`{word}` cannot stand inside a block"));
            return Some(d.help("declare it at the top level of the file"));
        }
        if let Some((_, help)) = FOREIGN_STATEMENTS.iter().find(|(w, _)| *w == word)
            && (next_word
                || (same_line && next.tok == Tok::LBrace)
                || (word == "return" && self.gives_value(1)))
        {
            return Some(
                self.error(codes::FOREIGN_SYNTAX, span, format!("there is no `{word}`")).help(*help),
            );
        }
        if word == "else" {
            let d = self.error(codes::UNEXPECTED, span, "this `else` belongs to no `if`");
            return Some(d.help("write it after the `}` of the `if`"));
        }
        if self.increment() {
            let d = self.error(codes::FOREIGN_SYNTAX, span, "there is no `++` and no `--`");
            return Some(d.help(format!("write `{word} += 1`")));
        }
        let expression_word = matches!(word, "zeros" | "full" | "acquire" | "wait" | "not" | "if");
        if next_word && !expression_word {
            return Some(self.unknown_statement());
        }
        None
    }

    /// After `return`: a value, or the end of the statement.
    fn gives_value(&self, n: usize) -> bool {
        let end = matches!(self.ahead(n).tok, Tok::Semi | Tok::RBrace | Tok::End) || !self.same_line(n);
        end || matches!(self.ahead(n).tok, Tok::Int | Tok::Float | Tok::LParen | Tok::Minus | Tok::Bang)
    }

    fn increment(&self) -> bool {
        let (a, b) = (self.ahead(1), self.ahead(2));
        matches!((a.tok, b.tok), (Tok::Plus, Tok::Plus) | (Tok::Minus, Tok::Minus))
            && a.end == b.start
            && (!self.same_line(3) || matches!(self.ahead(3).tok, Tok::Semi | Tok::RBrace | Tok::End))
    }

    fn unknown_statement(&self) -> Diagnostic {
        let word = self.word();
        let span = self.here();
        if let Some(near) = words::closest(word, words::STATEMENTS.iter().copied()) {
            let d = self.error(codes::UNKNOWN_WORD, span, format!("`{word}` begins no statement"));
            return d.help(format!("did you mean `{near}`?"));
        }
        let name = self.word_ahead(1);
        if matches!(self.ahead(2).tok, Tok::Assign | Tok::Colon | Tok::Semi | Tok::LBracket)
            || !self.same_line(2)
        {
            let d = self.error(codes::FOREIGN_SYNTAX, span, "a declaration begins with `let` or `var`");
            return d.help(format!("write `let {name} = …` for a value, `var {name} = …` for a variable"));
        }
        let d = self.error(codes::UNKNOWN_WORD, span, format!("`{word}` begins no statement"));
        d.help("assignments are written `place = value`; statements begin with a word such as `let`, `for`, `copy`")
    }

    /// A line that begins with an operator continues nothing.
    fn continued_line(&self) -> Option<Diagnostic> {
        let t = self.token();
        let mark = t.tok.mark();
        let first = self.pos == 0 || matches!(self.tokens[self.pos - 1].tok, Tok::LBrace);
        if first || !t.first_on_line {
            return None;
        }
        let continues = match t.tok {
            // a sign touches what it stands before
            Tok::Minus => !self.touches(1),
            Tok::Dot | Tok::Comma | Tok::Assign => true,
            other => prec::operator(other).is_some(),
        };
        if !continues {
            return None;
        }
        let d = self.error(codes::UNEXPECTED, self.here(), format!("a statement cannot begin with `{mark}`"));
        Some(d.help(format!("to continue a line, end it with `{mark}`, or put the expression in brackets")))
    }

    // ---- control ----

    /// `elif`, `elsif` or `elseif`, reported.
    pub(super) fn else_if_in_one_word(&mut self) -> bool {
        let condition = matches!(self.ahead(1).tok, Tok::Word | Tok::Int | Tok::LParen | Tok::Bang);
        let found = matches!(self.word(), "elif" | "elsif" | "elseif") && condition && !self.lost;
        if found {
            let d = self.error(codes::FOREIGN_SYNTAX, self.here(), format!("there is no `{}`", self.word()));
            self.complain(d.help("write `else if`"));
        }
        found
    }

    /// `for (` of C.
    pub(super) fn foreign_loop(&mut self) -> bool {
        let found = self.at(Tok::LParen);
        if found {
            self.foreign_loop_error();
        }
        found
    }

    pub(super) fn foreign_loop_error(&mut self) {
        let d = self.error(codes::FOREIGN_SYNTAX, self.here(), "loops run over a range");
        self.fail(d.help("write `for i in 0..n { … }`, with `step s` after the range for other strides"));
    }

    /// The `{` of a body is missing. Reads what is indented deeper than `header` as the body, so that one slip is
    /// one report.
    pub(super) fn block_without_brace(&mut self, value: bool, header: Token) -> Block {
        if self.lost {
            return Block::default();
        }
        let margin = self.indentation(header);
        let (found, span) = self.found();
        let d = self.error(codes::MISSING_BLOCK, span, format!("expected `{{` and a block, found {found}"));
        let colon = self.at(Tok::Colon);
        let then = self.at_word("then") || self.at_word("do");
        let d = if colon || then {
            d.help(format!(
                "write `{{` instead of `{}`, and `}}` after the block",
                self.text_of(self.token())
            ))
        } else {
            d.help("bodies always stand in braces")
        };
        self.complain(d);
        if colon || then {
            self.bump();
            if self.at(Tok::LBrace) {
                return self.block(value, header);
            }
        }
        let outside = std::mem::take(&mut self.brackets);
        let line = self.token().first_on_line;
        let indented = |p: &Self| {
            let t = p.token();
            t.tok == Tok::RBrace || (t.first_on_line && t.column <= margin)
        };
        let block = if line && !indented(self) {
            self.deeper(|p| p.statements(value, indented)).unwrap_or_default()
        } else {
            self.lost = true;
            Block::default()
        };
        if line && self.at(Tok::RBrace) && self.token().column >= margin {
            self.bump();
        }
        self.brackets = outside;
        block
    }

    // ---- items ----

    /// The word that begins the item here, a misspelt one corrected and reported.
    pub(super) fn item_word(&mut self) -> &'static str {
        let word = self.word();
        let known = words::ITEMS.iter().copied().find(|w| *w == word);
        if let Some(known) = known {
            return known;
        }
        let near = words::closest(word, words::ITEMS.iter().copied());
        match near {
            Some(near) if self.ahead(1).tok == Tok::Word => {
                let d = self.error(codes::UNKNOWN_WORD, self.here(), format!("`{word}` begins no item"));
                self.complain(d.help(format!("did you mean `{near}`?")));
                words::ITEMS.iter().copied().find(|w| *w == near).unwrap_or("")
            }
            _ => "",
        }
    }

    pub(super) fn not_an_item(&self) -> Diagnostic {
        let t = self.token();
        let span = self.here();
        let word = self.word();
        if matches!(t.tok, Tok::RBrace | Tok::RParen | Tok::RBracket) {
            let d =
                self.error(codes::STRAY_CLOSER, span, format!("this `{}` closes nothing", self.text_of(t)));
            return d.help("remove it, or open the bracket that it should close");
        }
        if let Some((_, help)) = FOREIGN_ITEMS.iter().find(|(w, _)| *w == word) {
            return self.error(codes::FOREIGN_SYNTAX, span, format!("there is no `{word}`")).help(*help);
        }
        if words::STATEMENTS.contains(&word) {
            let d = self.error(codes::UNEXPECTED, span, format!("`{word}` cannot stand outside of a body"));
            return d.help("statements belong into the braces of a `kernel`, `op` or `fn`");
        }
        let found =
            if t.tok == Tok::End { "the end of the file".into() } else { format!("`{}`", self.text_of(t)) };
        let d = self.error(codes::UNEXPECTED, span, format!("expected an item, found {found}"));
        d.help("a file holds `use`, `const`, `fn`, `kernel`, `op`, `combine`, `intrinsic fn` and `test`")
    }

    pub(super) fn unknown_test_entry(&self) -> Option<Diagnostic> {
        let word = self.word();
        let known = ["dims", "type", "param", "const", "kernel", "only"];
        let span = self.here();
        if let Some(near) = words::closest(word, known) {
            let d = self.error(codes::UNKNOWN_WORD, span, format!("`{word}` begins no line of a test"));
            return Some(d.help(format!("did you mean `{near}`?")));
        }
        None
    }
}
