//! Control: `if`, `for`, `while`, `parallel`.

use super::Parser;
use crate::ast::*;
use crate::codes;
use crate::span::Span;
use crate::text::token::Tok;

impl Parser<'_> {
    pub(super) fn if_statement(&mut self) -> StmtKind {
        let header = self.bump();
        let is_const = self.eat_word("const");
        let cond = self.condition();
        let then = self.block(true, header);
        let other = if self.lost { None } else { self.else_branch() };
        StmtKind::If { is_const, cond, then, other }
    }

    fn else_branch(&mut self) -> Option<Block> {
        let chained = self.else_if_in_one_word();
        if !chained {
            if !self.at_word("else") {
                return None;
            }
            let header = self.bump();
            if !self.at_word("if") {
                return Some(self.block(true, header));
            }
        }
        let start = self.here();
        let kind = self.deeper(|p| p.if_statement())?;
        let span = self.since(start);
        Some(Block { stmts: vec![Stmt::new(kind, span)], tail: None, span })
    }

    pub(super) fn for_statement(&mut self) -> StmtKind {
        let header = self.bump();
        let is_const = self.eat_word("const");
        if self.foreign_loop() {
            return StmtKind::Expr(self.error_expr());
        }
        let var = self.name("a name for the loop variable");
        if !self.lost && self.at(Tok::Assign) {
            self.foreign_loop_error();
            return StmtKind::Expr(self.error_expr());
        }
        self.expect_word("in");
        let (kind, segments) = self.iteration(is_const);
        let carry = if self.eat_word("carry") {
            self.parens("what is carried, as in `carry (held: slot(ab)? = none)`", Self::carry)
        } else {
            Vec::new()
        };
        let body = self.body(header);
        StmtKind::For { var, kind, segments, carry, body }
    }

    fn iteration(&mut self, is_const: bool) -> (LoopKind, Vec<Segment>) {
        let start = self.here();
        let word = self.word();
        let call = self.ahead(1).tok == Tok::LParen && self.same_line(1);
        if call && matches!(word, "unroll" | "nounroll" | "vectorized" | "pipelined") {
            if is_const {
                let d = self.error(
                    codes::UNEXPECTED,
                    start,
                    format!("`for const` and `{word}` exclude each other"),
                );
                self.complain(d.help("`for const` unrolls before anything else; remove one of the two"));
            }
            self.bump();
            return self.special_iteration(word, start);
        }
        let plain = if is_const { LoopKind::Const } else { LoopKind::Serial };
        if self.begins_segments() {
            return (plain, self.segments());
        }
        let first = self.expr();
        if matches!(self.tok(), Tok::DotDot | Tok::DotDotEq) && !self.at_end() {
            let range = self.range_from(first, start);
            return (plain, vec![Segment { range, consts: Vec::new() }]);
        }
        (LoopKind::Each { of: first, is_const }, Vec::new())
    }

    /// `seg(` with a range inside; a call of something named `seg` holds none.
    fn begins_segments(&self) -> bool {
        if !self.at_word("seg") || self.ahead(1).tok != Tok::LParen || !self.same_line(1) {
            return false;
        }
        let mut open = 0;
        for n in 2.. {
            match self.ahead(n).tok {
                Tok::DotDot | Tok::DotDotEq if open == 0 => return true,
                Tok::LParen | Tok::LBracket | Tok::LBrace => open += 1,
                Tok::RParen | Tok::RBracket | Tok::RBrace if open > 0 => open -= 1,
                Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::End => return false,
                _ => {}
            }
        }
        false
    }

    /// `seg(a..b: mask = true; b..c: mask = false)`
    fn segments(&mut self) -> Vec<Segment> {
        self.bump();
        self.bump();
        let mut all = Vec::new();
        self.unbroken(|p| {
            loop {
                all.push(p.segment());
                if p.lost || !p.eat(Tok::Semi) || p.at(Tok::RParen) {
                    break;
                }
            }
            if !p.lost && !p.at(Tok::RParen) {
                p.unexpected("`;` and the next range, or `)`");
            }
            if p.lost {
                p.skip_to_closer(Tok::RParen);
            }
        });
        self.eat(Tok::RParen);
        all
    }

    fn segment(&mut self) -> Segment {
        let start = self.here();
        let lo = self.expr();
        if !matches!(self.tok(), Tok::DotDot | Tok::DotDotEq) {
            self.unexpected("a range `a..b`");
        }
        let range = self.range_from(lo, start);
        let mut consts = Vec::new();
        if !self.lost && self.eat(Tok::Colon) {
            consts.push(self.option());
            while !self.lost && self.eat(Tok::Comma) {
                consts.push(self.option());
            }
        }
        Segment { range, consts }
    }

    /// `(n)`, `(a..b step s)`, and for `pipelined` also `stages = n`
    fn special_iteration(&mut self, word: &str, start: Span) -> (LoopKind, Vec<Segment>) {
        let mut segments: Vec<Segment> = Vec::new();
        let mut stages = None;
        self.list(Tok::RParen, |p| {
            if word == "pipelined" && p.at_word("stages") && p.ahead(1).tok == Tok::Assign {
                p.bump();
                p.bump();
                stages = Some(p.expr());
                return;
            }
            let at = p.here();
            let read = if p.begins_segments() {
                p.segments()
            } else {
                let range = p.one_range(at);
                vec![Segment { range, consts: Vec::new() }]
            };
            if !segments.is_empty() {
                let d = p.error(codes::UNEXPECTED, at, format!("`{word}` takes one range"));
                p.fail(d.help("consecutive ranges of one loop are written `seg(a..b; b..c)`"));
            } else {
                segments = read;
            }
        });
        if segments.is_empty() {
            let d = self.error(codes::MISSING_CLAUSE, start, format!("`{word}` needs its range"));
            self.fail(d.help(format!("write `{word}(0..n)`")));
            let range = Range { lo: self.error_expr(), hi: self.error_expr(), step: None, span: start };
            segments.push(Segment { range, consts: Vec::new() });
        }
        let kind = match word {
            "unroll" => LoopKind::Unroll,
            "nounroll" => LoopKind::NoUnroll,
            "vectorized" => LoopKind::Vectorized,
            _ => LoopKind::Pipelined { stages },
        };
        (kind, segments)
    }

    /// `a..b step s`, or `n` for `0..n`
    fn one_range(&mut self, at: Span) -> Range {
        let first = self.expr();
        if matches!(self.tok(), Tok::DotDot | Tok::DotDotEq) {
            return self.range_from(first, at);
        }
        let lo = Expr { kind: ExprKind::Int("0".into()), span: first.span };
        Range { lo, hi: first, step: None, span: self.since(at) }
    }

    fn range_from(&mut self, lo: Expr, start: Span) -> Range {
        if self.at(Tok::DotDotEq) {
            let d = self.error(codes::UNEXPECTED, self.here(), "loop ranges exclude their end");
            self.complain(d.help("write `a..b + 1`; only the ranges of `param` are written `..=`"));
        }
        self.bump();
        let hi = self.expr();
        let step = self.eat_word("step").then(|| self.expr());
        Range { lo, hi, step, span: self.since(start) }
    }

    pub(super) fn while_statement(&mut self) -> StmtKind {
        let header = self.bump();
        let cond = self.condition();
        StmtKind::While { cond, body: self.body(header) }
    }

    pub(super) fn parallel(&mut self) -> StmtKind {
        let header = self.bump();
        let names = self.name_or_names("a name for the index");
        self.expect_word("in");
        let extents = self.extents();
        if self.at(Tok::DotDot) && !self.at_end() {
            let d = self.error(codes::UNEXPECTED, self.here(), "`parallel` takes extents, not ranges");
            self.fail(d.help("write `parallel (i, j) in (M, N)`: the indices begin at 0"));
        }
        StmtKind::Parallel { names, extents, body: self.body(header) }
    }

    /// `i` or `(i, j)`
    pub(super) fn name_or_names(&mut self, what: &str) -> Vec<Ident> {
        if self.at(Tok::LParen) { self.list(Tok::RParen, |p| p.name(what)) } else { vec![self.name(what)] }
    }

    /// `M` or `(M, N)`
    pub(super) fn extents(&mut self) -> Vec<Expr> {
        let e = self.expr();
        match e.kind {
            ExprKind::Tuple(list) => list,
            _ => vec![e],
        }
    }
}
