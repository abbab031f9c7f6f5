//! Blocks and plain statements: declarations of values, assignments, expressions.

use super::Parser;
use crate::ast::*;
use crate::codes;
use crate::span::Span;
use crate::text::precedence;
use crate::text::token::{Tok, Token};
use crate::text::words;

impl Parser<'_> {
    // ---- blocks ----

    /// A block whose last expression is its value.
    pub(super) fn value_block(&mut self) -> Block {
        let header = self.token();
        self.block(true, header)
    }

    /// A block of statements. `header` is the first token of what the block belongs to.
    pub(super) fn body(&mut self, header: Token) -> Block {
        self.block(false, header)
    }

    pub(super) fn block(&mut self, value: bool, header: Token) -> Block {
        if !self.at(Tok::LBrace) {
            return self.block_without_brace(value, header);
        }
        let start = self.here();
        let outside = std::mem::take(&mut self.brackets);
        let block = self.deeper(|p| {
            let open = p.bump();
            let mut block = p.statements(value, |p| p.at(Tok::RBrace) || p.begins_item_in_column_0());
            p.close_block(open);
            block.span = p.since(start);
            block
        });
        self.brackets = outside;
        block.unwrap_or_default()
    }

    pub(super) fn close_block(&mut self, open: Token) {
        let span = self.span_of(open);
        if self.at(Tok::RBrace) {
            let close = self.token();
            if close.first_on_line && close.column < self.indentation(open) {
                self.suspect.get_or_insert(span);
            }
            self.bump();
            return;
        }
        // the blocks around are not closed either: one report tells enough
        if self.unclosed_at.replace(self.pos) == Some(self.pos) {
            self.lost = true;
            return;
        }
        let opener = self.suspect.take().unwrap_or(span);
        let d = self
            .error(codes::UNCLOSED, opener, "this `{` is never closed")
            .label("opened here")
            .help("write `}` where the block ends");
        self.fail(d);
    }

    /// The column of the first token on the line of `t`.
    pub(super) fn indentation(&self, t: Token) -> u32 {
        let i = self.tokens.partition_point(|o| o.start < t.start);
        let first = self.tokens[..=i.min(self.tokens.len() - 1)].iter().rev().find(|o| o.first_on_line);
        first.map_or(0, |o| o.column)
    }

    /// Statements up to where `ends` says so.
    pub(super) fn statements(&mut self, value: bool, ends: impl std::ops::Fn(&Self) -> bool) -> Block {
        let start = self.here();
        let mut block = Block::default();
        loop {
            while self.eat(Tok::Semi) {}
            if self.at(Tok::End) || ends(self) {
                break;
            }
            let before = self.pos;
            let mut stmt = self.statement();
            self.finish_statement(before);
            while self.eat(Tok::Semi) {}
            let last = value && (self.at(Tok::RBrace) || ends(self));
            match into_value(&mut stmt, last) {
                Some(tail) => block.tail = Some(Box::new(tail)),
                None => block.stmts.push(stmt),
            }
            if self.pos == before {
                self.bump();
            }
        }
        block.span = self.since(start);
        block
    }

    fn finish_statement(&mut self, before: usize) {
        if !self.lost && !self.at_end() {
            let d = self.leftover();
            self.fail(d);
        }
        self.find_statement_end(before);
    }

    // ---- statements ----

    fn statement(&mut self) -> Stmt {
        let start = self.here();
        let outer = std::mem::take(&mut self.height);
        self.slips.clear();
        let stage = self.stage_mark();
        let kind = self.statement_kind();
        self.height = self.height.max(outer);
        Stmt { kind, span: self.since(start), stage }
    }

    /// `@stage(1, 0)` before a statement
    fn stage_mark(&mut self) -> Option<Box<(Expr, Expr)>> {
        if !self.at(Tok::At) {
            return None;
        }
        self.bump();
        self.expect_word("stage");
        let what = "stage and rank, as in `@stage(1, 0)`";
        let mut parts = self.parens(what, Self::expr);
        if !self.lost && (parts.len() != 2 || self.at_end()) {
            let d = self.error(codes::UNEXPECTED, self.previous(), "`@stage(…)` gives a stage and a rank");
            self.fail(d.help("write it before the statement that it is about: `@stage(1, 0) c += a @ b`"));
        }
        let rank = parts.pop()?;
        Some(Box::new((parts.pop()?, rank)))
    }

    fn statement_kind(&mut self) -> StmtKind {
        match self.word() {
            "let" => self.let_statement(),
            "var" => self.var_statement(),
            "if" => self.if_statement(),
            "for" => self.for_statement(),
            "while" => self.while_statement(),
            "const" => self.const_statement(),
            "break" => self.single(StmtKind::Break),
            "continue" => self.single(StmtKind::Continue),
            word if words::STATEMENTS.contains(&word) && self.begins_keyword(word) => self.keyword(word),
            _ if self.begins_fragment() => self.fragment_by_type(),
            _ => self.expression_statement(),
        }
    }

    fn single(&mut self, kind: StmtKind) -> StmtKind {
        self.bump();
        kind
    }

    /// Does `word` begin its statement here, or is it a name? See [`words`].
    fn begins_keyword(&self, word: &str) -> bool {
        let next = self.ahead(1);
        let here = self.same_line(1);
        let operand = here && next.tok == Tok::Word && !self.continues_expression(1);
        match word {
            "barrier" => operand || !here || matches!(next.tok, Tok::Semi | Tok::RBrace | Tok::End),
            "plan" => here && next.tok == Tok::LBrace,
            "static_assert" => here && next.tok == Tok::LParen,
            "parallel" => operand || (here && next.tok == Tok::LParen),
            "grid" | "threads" => operand || (here && matches!(next.tok, Tok::LParen | Tok::Int)),
            "copy" if here && next.tok == Tok::Dot => self.word_ahead(2) == "async",
            "copy" | "gemm" => here && (operand || self.arrow_in_statement()),
            _ => operand,
        }
    }

    /// Is there a `->` outside brackets before the statement ends? A comma or an operator carries it over the line.
    fn arrow_in_statement(&self) -> bool {
        let mut open = 0;
        for n in 1.. {
            let t = self.ahead(n);
            match t.tok {
                Tok::Arrow if open == 0 => return true,
                Tok::LBrace | Tok::Semi if open == 0 => return false,
                Tok::LParen | Tok::LBracket | Tok::LBrace => open += 1,
                Tok::RParen | Tok::RBracket | Tok::RBrace if open > 0 => open -= 1,
                Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::End => return false,
                _ => {}
            }
            let carries = t.tok == Tok::Comma || precedence::operator(t.tok).is_some();
            if open == 0 && !carries && self.ahead(n + 1).first_on_line {
                return false;
            }
        }
        false
    }

    /// After a word that begins a statement, `as`, `and` and `pad` are names; only these join a name and an operand.
    fn continues_expression(&self, n: usize) -> bool {
        matches!(self.word_ahead(n), "in" | "or") || self.infix_word(n) && self.word_ahead(n) == "op"
    }

    pub(super) fn infix_word(&self, n: usize) -> bool {
        let word = self.word_ahead(n);
        words::INFIX.contains(&word) || (word == "op" && self.ahead(n + 1).tok == Tok::Assign)
    }

    fn keyword(&mut self, word: &str) -> StmtKind {
        match word {
            "barrier" => {
                self.bump();
                let team = (self.at(Tok::Word) && self.same_line(0)).then(|| self.name("a team"));
                StmtKind::Barrier { team }
            }
            "param" => self.param_statement(),
            "grid" => self.grid_statement(),
            "threads" => self.threads_statement(),
            "static_assert" => self.static_assert(),
            "plan" => self.plan(),
            "shared" | "fragment" | "scratch" => self.memory(word),
            "parallel" => self.parallel(),
            "workspace" => self.workspace(),
            "launch" => self.launch(),
            _ => self.machine(word),
        }
    }

    fn let_statement(&mut self) -> StmtKind {
        self.bump();
        let pattern = self.pattern();
        let ty = self.type_annotation();
        if !self.eat(Tok::Assign) {
            self.unexpected("`=` and the value");
            return StmtKind::Let { pattern, ty, value: self.error_expr(), options: Vec::new() };
        }
        let value = self.expr();
        StmtKind::Let { pattern, ty, value, options: self.options() }
    }

    fn var_statement(&mut self) -> StmtKind {
        self.bump();
        let pattern = self.pattern();
        let ty = self.type_annotation();
        let value = (!self.at_end() && self.eat(Tok::Assign)).then(|| self.expr());
        if value.is_none() && ty.is_none() {
            self.unexpected("`: type` or `= value`");
        }
        let options = if value.is_some() { self.options() } else { Vec::new() };
        StmtKind::Var { pattern, ty, value, options }
    }

    fn type_annotation(&mut self) -> Option<Type> {
        (!self.at_end() && self.eat(Tok::Colon)).then(|| self.ty())
    }

    fn pattern(&mut self) -> Pattern {
        let start = self.here();
        if self.at(Tok::LParen) {
            let parts = self.deeper(|p| p.list(Tok::RParen, Self::pattern)).unwrap_or_default();
            return Pattern::Tuple(parts, self.since(start));
        }
        if self.eat(Tok::Underscore) {
            return Pattern::Ignore(start);
        }
        let name = self.name("a name");
        if self.lost || !self.at(Tok::At) || !self.same_line(0) {
            return Pattern::Name(name);
        }
        self.bump();
        Pattern::Placed(name, Box::new(self.placed_after_name(start)))
    }

    /// `{ precision = tf32 }` after the value of an assignment
    pub(super) fn options(&mut self) -> Vec<Named> {
        if self.lost || !self.at(Tok::LBrace) || !self.same_line(0) {
            return Vec::new();
        }
        self.list(Tok::RBrace, Self::option)
    }

    pub(super) fn option(&mut self) -> Named {
        let name = self.name("an option's name");
        if !self.eat(Tok::Assign) {
            self.unexpected("`=` and the option's value");
        }
        Named { name, value: self.expr() }
    }

    pub(super) fn const_statement(&mut self) -> StmtKind {
        self.bump();
        let mut decls = vec![self.const_decl()];
        while !self.lost && self.eat(Tok::Comma) && self.at(Tok::Word) {
            decls.push(self.const_decl());
        }
        StmtKind::Const(decls)
    }

    pub(super) fn const_decl(&mut self) -> ConstDecl {
        let name = self.name_after_comma("a name for the constant");
        if !self.eat(Tok::Assign) {
            let typed = self.at(Tok::Colon);
            self.unexpected(if typed {
                "`=`: a constant takes the type of its value"
            } else {
                "`=` and the value"
            });
        }
        ConstDecl { name, value: self.expr() }
    }

    /// A name that may stand on the next line, since a comma precedes it.
    pub(super) fn name_after_comma(&mut self, what: &str) -> Ident {
        let next_line = self.tokens[self.pos.saturating_sub(1)].tok == Tok::Comma;
        if next_line { self.unbroken(|p| p.name(what)) } else { self.name(what) }
    }

    fn expression_statement(&mut self) -> StmtKind {
        if let Some(d) = self.not_a_statement() {
            self.fail(d);
            return StmtKind::Expr(self.error_expr());
        }
        let place = self.expr();
        if self.lost || self.at_end() {
            return StmtKind::Expr(place);
        }
        if let Some(op) = self.assign_op() {
            let value = self.expr();
            return StmtKind::Assign { place, op, value, options: self.options() };
        }
        if self.eat(Tok::Arrow) {
            return StmtKind::Form(Form::Call { call: place, to: self.places() });
        }
        StmtKind::Expr(place)
    }

    fn assign_op(&mut self) -> Option<AssignOp> {
        if self.at_word("op") && self.ahead(1).tok == Tok::Assign {
            self.bump();
            self.bump();
            return Some(AssignOp::Fold);
        }
        let op = match self.tok() {
            Tok::Assign => AssignOp::Set,
            Tok::PlusEq => AssignOp::Add,
            Tok::MinusEq => AssignOp::Sub,
            Tok::StarEq => AssignOp::Mul,
            Tok::SlashEq => AssignOp::Div,
            Tok::PercentEq => AssignOp::Rem,
            Tok::AmpEq => AssignOp::And,
            Tok::PipeEq => AssignOp::Or,
            Tok::CaretEq => AssignOp::Xor,
            Tok::ShlEq => AssignOp::Shl,
            Tok::ShrEq => AssignOp::Shr,
            _ => return None,
        };
        self.bump();
        Some(op)
    }
}

/// Makes `stmt` the value of its block, if it is the last one there and has a value; otherwise makes it a plain
/// statement. `if` branches are read as if they had values, since only what follows decides.
fn into_value(stmt: &mut Stmt, last: bool) -> Option<Expr> {
    if last && stmt.stage.is_none() && has_value(&stmt.kind) {
        let kind = std::mem::replace(&mut stmt.kind, StmtKind::Break);
        return if_value(kind, stmt.span);
    }
    match &mut stmt.kind {
        StmtKind::Expr(e) if last && stmt.stage.is_none() && !matches!(e.kind, ExprKind::Error) => {
            Some(std::mem::replace(e, Expr { kind: ExprKind::Error, span: stmt.span }))
        }
        StmtKind::If { then, other, .. } => {
            without_value(then);
            if let Some(other) = other {
                without_value(other);
            }
            None
        }
        _ => None,
    }
}

fn has_value(kind: &StmtKind) -> bool {
    match kind {
        StmtKind::If { then, other: Some(other), .. } => then.tail.is_some() && branch_has_value(other),
        _ => false,
    }
}

fn branch_has_value(b: &Block) -> bool {
    b.tail.is_some() || matches!(b.stmts.as_slice(), [only] if only.stage.is_none() && has_value(&only.kind))
}

fn if_value(kind: StmtKind, span: Span) -> Option<Expr> {
    let StmtKind::If { is_const, cond, then, other } = kind else { return None };
    let mut other = other?;
    if other.tail.is_none()
        && let Some(stmt) = other.stmts.pop()
    {
        other.tail = if_value(stmt.kind, stmt.span).map(Box::new);
    }
    Some(Expr { kind: ExprKind::If { is_const, cond: Box::new(cond), then, other }, span })
}

fn without_value(block: &mut Block) {
    // branches that are `else if` hold a statement whose own branches still look like values
    if block.tail.is_none()
        && let [Stmt { kind: StmtKind::If { then, other, .. }, .. }] = block.stmts.as_mut_slice()
    {
        without_value(then);
        if let Some(other) = other {
            without_value(other);
        }
    }
    let Some(tail) = block.tail.take() else { return };
    let span = tail.span;
    let kind = match tail.kind {
        ExprKind::If { is_const, cond, mut then, mut other } => {
            without_value(&mut then);
            without_value(&mut other);
            StmtKind::If { is_const, cond: *cond, then, other: Some(other) }
        }
        kind => StmtKind::Expr(Expr { kind, span }),
    };
    block.stmts.push(Stmt::new(kind, span));
}
