//! Expressions, by precedence climbing over the table of [`crate::text::precedence`].

use super::{MAX_DEPTH, Parser};
use crate::ast::*;
use crate::codes;
use crate::span::Span;
use crate::text::lexer::unescape;
use crate::text::precedence as prec;
use crate::text::token::Tok;
use crate::text::words;

enum Infix {
    In,
    Op(BinaryOp),
}

impl Infix {
    fn level(&self) -> u8 {
        match self {
            Infix::In => prec::COMPARE,
            Infix::Op(op) => prec::level(*op),
        }
    }
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Expr {
        self.binary(prec::ANY)
    }

    /// An expression of sums and tighter operators.
    pub(super) fn operand_expr(&mut self) -> Expr {
        self.binary(prec::SUM)
    }

    /// An expression without comparisons at its top, where `in` or `<=` follow it.
    pub(super) fn value_expr(&mut self) -> Expr {
        self.binary(prec::BITS)
    }

    /// The condition of `if` or `while`, where `=` is a likely slip.
    pub(super) fn condition(&mut self) -> Expr {
        let left = self.expr();
        if !self.at(Tok::Assign) || self.lost {
            return left;
        }
        let d = self
            .error(codes::ASSIGN_IN_CONDITION, self.here(), "`=` assigns, a condition compares")
            .help("write `==`");
        self.complain(d);
        self.bump();
        let right = self.expr();
        let span = left.span.to(right.span);
        Expr { kind: ExprKind::Binary(BinaryOp::Eq, Box::new(left), Box::new(right)), span }
    }

    fn binary(&mut self, min: u8) -> Expr {
        let outer = std::mem::take(&mut self.height);
        let e = self.deeper(|p| p.binary_at(min)).unwrap_or_else(|| self.error_expr());
        self.height = self.height.max(outer);
        e
    }

    fn binary_at(&mut self, min: u8) -> Expr {
        let mut left = self.unary();
        let mut compared = 0;
        let mut first = self.here();
        while !self.lost && !self.at_end() {
            let Some(infix) = self.infix() else { break };
            let level = infix.level();
            if level < min {
                break;
            }
            if level == prec::COMPARE {
                compared += 1;
                // a longer chain is still one mistake
                if compared == 2 {
                    self.chained_comparison(first);
                }
                first = self.here();
            }
            self.bump();
            self.doubled_operator();
            let right = self.binary(level + 1);
            self.grow();
            let span = left.span.to(right.span);
            let (l, r) = (Box::new(left), Box::new(right));
            let kind = match infix {
                Infix::In => ExprKind::In(l, r),
                Infix::Op(op) => ExprKind::Binary(op, l, r),
            };
            left = Expr { kind, span };
        }
        left
    }

    /// The operator that stands here; the words `and` and `or` are reported and understood.
    fn infix(&mut self) -> Option<Infix> {
        if self.at_word("in") {
            return Some(Infix::In);
        }
        if let Some(op) = self.word_operator() {
            return Some(Infix::Op(op));
        }
        prec::operator(self.tok()).map(Infix::Op)
    }

    /// The expression being read got one level higher.
    pub(super) fn grow(&mut self) {
        if self.height >= MAX_DEPTH {
            self.too_deep();
        }
        self.height += 1;
    }

    fn chained_comparison(&mut self, first: Span) {
        let d = self
            .error(codes::CHAINED_COMPARISON, self.here(), "comparisons cannot be chained")
            .also(first, "the first comparison")
            .help("compare twice, as in `a < b && b < c`, or set brackets");
        self.complain(d);
    }

    fn unary(&mut self) -> Expr {
        let start = self.here();
        let op = match self.tok() {
            Tok::Minus => UnaryOp::Neg,
            Tok::Bang => UnaryOp::Not,
            _ => return self.element(),
        };
        self.bump();
        let Some(operand) = self.deeper(|p| p.unary()) else { return self.error_expr() };
        self.grow();
        let span = start.to(operand.span);
        Expr { kind: ExprKind::Unary(op, Box::new(operand)), span }
    }

    /// `x[i] or v`, `X[region] pad v`, or anything tighter.
    fn element(&mut self) -> Expr {
        let base = self.postfix();
        let is_or = self.at_word("or");
        if self.lost || !self.same_line(0) || !(is_or || self.at_word("pad")) {
            return base;
        }
        if !matches!(base.kind, ExprKind::Index(..)) {
            if !is_or {
                self.misplaced_pad(base.span);
            }
            return base;
        }
        self.bump();
        let Some(value) = self.deeper(|p| p.pad_value()) else { return base };
        self.grow();
        let span = base.span.to(value.span);
        let (b, v) = (Box::new(base), Box::new(value));
        Expr { kind: if is_or { ExprKind::Or(b, v) } else { ExprKind::Pad(b, v) }, span }
    }

    /// What follows `or` and `pad`: signed, but without a further `or`.
    fn pad_value(&mut self) -> Expr {
        let start = self.here();
        if self.at(Tok::Minus) {
            self.bump();
            let Some(operand) = self.deeper(|p| p.pad_value()) else { return self.error_expr() };
            self.grow();
            let span = start.to(operand.span);
            return Expr { kind: ExprKind::Unary(UnaryOp::Neg, Box::new(operand)), span };
        }
        self.postfix()
    }

    pub(super) fn postfix(&mut self) -> Expr {
        let mut base = self.primary();
        while !self.lost && !self.at_end() {
            let start = base.span;
            let kind = match self.tok() {
                Tok::Dot => self.field(base),
                Tok::LBracket => ExprKind::Index(Box::new(base), self.list(Tok::RBracket, Self::axis_index)),
                Tok::LParen => {
                    let args = self.list(Tok::RParen, Self::arg);
                    ExprKind::Call { callee: Box::new(base), generics: Vec::new(), args }
                }
                Tok::Lt if self.generic_call(&base) => {
                    let generics = self.list(Tok::Gt, Self::generic_arg);
                    let args = self.parens("the arguments", Self::arg);
                    ExprKind::Call { callee: Box::new(base), generics, args }
                }
                _ => break,
            };
            base = Expr { kind, span: self.since(start) };
            self.grow();
        }
        base
    }

    pub(super) fn field(&mut self, base: Expr) -> ExprKind {
        self.bump();
        if matches!(self.tok(), Tok::Word | Tok::Int) && self.same_line(0) {
            return ExprKind::Field(Box::new(base), self.name_here());
        }
        self.unexpected("a field, such as `.T` or `.0`");
        ExprKind::Error
    }

    /// Is `name<` the begin of `name<…>(…)`? Only without a space before `<`, and only if the angle brackets close
    /// directly before a round one.
    fn generic_call(&self, base: &Expr) -> bool {
        if !matches!(base.kind, ExprKind::Name(_) | ExprKind::Field(..)) || !self.touches(0) {
            return false;
        }
        let mut open = 0;
        for n in 1..256 {
            match self.ahead(n).tok {
                Tok::Gt if open == 0 => return self.ahead(n + 1).tok == Tok::LParen && self.touches(n + 1),
                Tok::LParen | Tok::LBracket => open += 1,
                Tok::RParen | Tok::RBracket if open > 0 => open -= 1,
                Tok::Word | Tok::Int | Tok::Float | Tok::Comma | Tok::Assign | Tok::Dot => {}
                Tok::Plus | Tok::Minus | Tok::Star | Tok::Slash | Tok::Percent | Tok::Bang => {}
                _ => return false,
            }
        }
        false
    }

    pub(super) fn generic_arg(&mut self) -> GenericArg {
        if self.at(Tok::Word) && self.ahead(1).tok == Tok::Assign {
            return GenericArg::Named(self.named());
        }
        GenericArg::Positional(self.operand_expr())
    }

    /// `NAME = value` between angle brackets
    fn named(&mut self) -> Named {
        let name = self.name("a name");
        self.bump();
        Named { name, value: self.operand_expr() }
    }

    pub(super) fn arg(&mut self) -> Arg {
        let name = (self.at(Tok::Word) && self.ahead(1).tok == Tok::Assign).then(|| {
            let name = self.name("a name");
            self.bump();
            name
        });
        let start = self.here();
        let keyed =
            name.is_none() && self.at_word("seed") && matches!(self.ahead(1).tok, Tok::Int | Tok::Word);
        if keyed
            && !words::CLAUSES.contains(&self.word_ahead(1))
            && !words::INFIX.contains(&self.word_ahead(1))
        {
            let key = self.name_here();
            let kind = ExprKind::Keyed(key, Box::new(self.operand_expr()));
            return Arg { name, value: Expr { kind, span: self.since(start) } };
        }
        Arg { name, value: self.expr() }
    }

    pub(super) fn axis_index(&mut self) -> AxisIndex {
        let start = self.here();
        if self.eat(Tok::Underscore) {
            return AxisIndex::New(start);
        }
        if self.eat(Tok::Colon) {
            if !matches!(self.tok(), Tok::Comma | Tok::RBracket) {
                self.extent_colon(start);
                self.expr();
            }
            return AxisIndex::Full(start);
        }
        let at = self.expr();
        match self.tok() {
            Tok::PlusColon => {
                self.bump();
                self.region_extent(at, start)
            }
            Tok::Colon => {
                self.extent_colon(self.here());
                self.bump();
                self.region_extent(at, start)
            }
            Tok::DotDot => {
                self.bump();
                let hi = self.expr();
                AxisIndex::Range { lo: at, hi, span: self.since(start) }
            }
            _ => AxisIndex::At(at),
        }
    }

    fn region_extent(&mut self, from: Expr, start: Span) -> AxisIndex {
        let len = self.expr();
        let mut limit = None;
        let mut clip_low = false;
        while !self.lost {
            if self.at_word("limit") {
                if limit.is_some() {
                    self.duplicate("limit", self.here());
                }
                self.bump();
                limit = Some(self.expr());
            } else if self.at_word("clip") {
                if clip_low {
                    self.duplicate("clip low", self.here());
                }
                self.bump();
                self.expect_word("low");
                clip_low = true;
            } else {
                break;
            }
        }
        AxisIndex::Extent { start: from, len, limit, clip_low, span: self.since(start) }
    }

    fn extent_colon(&mut self, colon: Span) {
        let d = self
            .error(codes::EXTENT_COLON, colon, "`:` alone stands for a whole axis")
            .help("write `start +: count` for a number of elements, or `first..end` for a range");
        self.complain(d);
    }

    fn primary(&mut self) -> Expr {
        let start = self.here();
        let kind = match self.tok() {
            Tok::Int | Tok::Float | Tok::Str => self.literal(),
            Tok::Bad => {
                // the lexer reported it
                self.bump();
                ExprKind::Error
            }
            Tok::LParen => self.parenthesised(),
            Tok::LBracket => ExprKind::List(self.list(Tok::RBracket, Self::expr)),
            Tok::LBrace => ExprKind::Block(self.value_block()),
            Tok::Word => self.word_expr(),
            _ => {
                self.expected_expression();
                return self.error_expr();
            }
        };
        Expr { kind, span: self.since(start) }
    }

    fn literal(&mut self) -> ExprKind {
        let t = self.bump();
        let text = self.text_of(t);
        match t.tok {
            Tok::Int => ExprKind::Int(text.to_string()),
            Tok::Float => ExprKind::Float(text.to_string()),
            _ => ExprKind::Str(unescape(text)),
        }
    }

    /// `(e)` is `e`; `(a, b)`, `(a,)` and `()` are tuples.
    fn parenthesised(&mut self) -> ExprKind {
        let mut comma = false;
        let mut items = self.list(Tok::RParen, |p| {
            let e = p.expr();
            comma |= p.at(Tok::Comma);
            e
        });
        match items.pop() {
            Some(only) if items.is_empty() && !comma => only.kind,
            Some(last) => {
                items.push(last);
                ExprKind::Tuple(items)
            }
            None => ExprKind::Tuple(items),
        }
    }

    fn word_expr(&mut self) -> ExprKind {
        let word = self.word();
        match word {
            "true" | "false" => {
                self.bump();
                return ExprKind::Bool(word == "true");
            }
            "if" => return self.if_expr(),
            // the combiner, as in `reduce(or, x)`
            "or" if matches!(self.ahead(1).tok, Tok::Comma | Tok::RParen) => {
                return ExprKind::Name(self.name_here());
            }
            "once" if self.ahead(1).tok == Tok::LBrace && self.same_line(1) => {
                self.bump();
                return ExprKind::Once(self.value_block());
            }
            _ if words::is_reserved(word) => {
                self.expected_expression();
                return ExprKind::Error;
            }
            _ => {}
        }
        let next = self.ahead(1).tok;
        let after = self.word_ahead(1);
        let operand =
            next == Tok::Word && self.same_line(1) && !self.infix_word(1) && !words::CLAUSES.contains(&after);
        match word {
            "zeros" | "full" if operand => self.fill(word == "full"),
            "acquire" if operand || self.names_last(1) => {
                self.bump();
                ExprKind::Acquire(self.name("a ring"))
            }
            "wait" if operand || self.names_last(1) => {
                self.bump();
                ExprKind::Wait(self.name("a ring"))
            }
            "acc" if next == Tok::LParen && self.same_line(1) && self.acc_type() => {
                ExprKind::Elem(self.elem())
            }
            "not" if operand || (next == Tok::LParen && self.same_line(1)) => self.word_not(),
            _ => ExprKind::Name(self.name_here()),
        }
    }

    /// A name that ends its statement stands there, though it looks like a word that joins.
    fn names_last(&self, n: usize) -> bool {
        let after = self.ahead(n + 1);
        let ends = matches!(after.tok, Tok::Semi | Tok::RBrace | Tok::End) || after.first_on_line;
        let word = self.word_ahead(n);
        ends && self.brackets == 0 && self.same_line(n) && !word.is_empty() && !words::is_reserved(word)
    }

    fn acc_type(&self) -> bool {
        self.ahead(2).tok == Tok::Word && self.ahead(3).tok == Tok::RParen
    }

    /// `zeros f32[BM, BN]`, `full f32[BM](-inf)`
    fn fill(&mut self, with_value: bool) -> ExprKind {
        self.bump();
        let elem = self.elem();
        let shape = self.shape();
        let value = with_value.then(|| {
            let mut values = self.parens("the value, as in `full f32[BM](-inf)`", Self::expr);
            if values.len() > 1 {
                let d = self.error(codes::UNEXPECTED, values[1].span, "`full` takes one value");
                self.complain(d);
            }
            values.truncate(1);
            Box::new(values.pop().unwrap_or_else(|| self.missing_fill_value()))
        });
        ExprKind::Fill { value, elem, shape }
    }

    fn missing_fill_value(&mut self) -> Expr {
        let d = self.error(codes::UNEXPECTED, self.previous(), "`full` needs the value to fill with");
        self.complain(d.help("write it in brackets, as in `full f32[BM](-inf)`"));
        self.error_expr()
    }

    /// `if c { a } else { b }` as a value
    fn if_expr(&mut self) -> ExprKind {
        let start = self.here();
        self.bump();
        let is_const = self.eat_word("const");
        let cond = Box::new(self.condition());
        let then = self.value_block();
        if self.lost {
            return ExprKind::Error;
        }
        if !self.at_word("else") {
            let d = self
                .error(codes::MISSING_CLAUSE, start, "an `if` that gives a value needs an `else`")
                .help("write `if condition { a } else { b }`");
            self.fail(d);
            return ExprKind::Error;
        }
        self.bump();
        let other = if self.at_word("if") {
            let at = self.here();
            let kind = self.deeper(|p| p.if_expr()).unwrap_or(ExprKind::Error);
            let span = self.since(at);
            Block { stmts: Vec::new(), tail: Some(Box::new(Expr { kind, span })), span }
        } else {
            self.value_block()
        };
        self.grow();
        ExprKind::If { is_const, cond, then, other }
    }
}
