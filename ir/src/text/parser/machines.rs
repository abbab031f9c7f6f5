//! Statements of asynchronous machines: copies and products as statements, teams, rings, queues, turns, roles, tokens.

use super::Parser;
use crate::ast::*;
use crate::codes;
use crate::text::token::Tok;

impl Parser<'_> {
    pub(super) fn machine(&mut self, word: &str) -> StmtKind {
        let header = self.token();
        match word {
            "copy" => self.copy(None),
            "gemm" => {
                self.bump();
                self.gemm(None)
            }
            "issue" => self.issue(),
            "team" => self.team(),
            "ring" => self.ring(),
            "queue" => self.queue(),
            "turn" => self.turn(),
            "role" => {
                self.bump();
                let team = self.name("a team");
                let group = self.eat_word("as").then(|| self.name("a name for the group's index"));
                StmtKind::Role { team, group, body: self.body(header) }
            }
            "await" => {
                self.bump();
                let queue = self.name("a queue");
                self.expect_word("keep");
                StmtKind::Await { queue, keep: self.expr() }
            }
            "commit" => self.with_name(StmtKind::Commit),
            "release" => self.with_name(StmtKind::Release),
            "take" => self.with_name(StmtKind::Take),
            "pass" => self.with_name(StmtKind::Pass),
            _ => self.with_name(StmtKind::Next),
        }
    }

    fn with_name(&mut self, make: fn(Ident) -> StmtKind) -> StmtKind {
        self.bump();
        make(self.name("a name"))
    }

    /// `copy A[…] -> t`, `copy.async A[…] pad 0 -> w.a`
    fn copy(&mut self, queue: Option<Ident>) -> StmtKind {
        self.bump();
        let dot = self.at(Tok::Dot);
        let asynchronous = dot || queue.is_some();
        if dot {
            self.bump();
            self.bump();
        }
        let source = self.expr();
        let (from, pad) = match source.kind {
            ExprKind::Pad(region, value) => (*region, Some(*value)),
            kind => (Expr { kind, span: source.span }, None),
        };
        if !self.eat(Tok::Arrow) {
            self.unexpected("`->` and the destination");
        }
        StmtKind::Form(Form::Copy { asynchronous, queue, from, to: self.place(), pad })
    }

    /// `a, b -> c (init = cond) { options }`, after the word `gemm`
    fn gemm(&mut self, queue: Option<Ident>) -> StmtKind {
        let a = self.expr();
        if !self.eat(Tok::Comma) {
            self.unexpected("`,` and the second operand");
        }
        let b = self.expr();
        if !self.eat(Tok::Arrow) {
            self.unexpected("`->` and the accumulator");
        }
        let to = self.place();
        let mut init = None;
        if !self.lost && self.at(Tok::LParen) && self.same_line(0) {
            self.bump();
            init = self.unbroken(|p| {
                p.expect_word("init");
                if !p.eat(Tok::Assign) {
                    p.unexpected("`=` and the condition under which the accumulator starts at zero");
                }
                let init = p.expr();
                p.expect(Tok::RParen);
                Some(init)
            });
        }
        StmtKind::Form(Form::Gemm { queue, a, b, to, init, options: self.options() })
    }

    fn issue(&mut self) -> StmtKind {
        self.bump();
        let queue = self.name("a queue");
        if !self.eat(Tok::Colon) {
            self.unexpected("`:` and the operation");
        }
        if self.at_word("copy") {
            return self.copy(Some(queue));
        }
        self.expect_word("gemm");
        self.gemm(Some(queue))
    }

    pub(super) fn places(&mut self) -> Vec<Expr> {
        let mut to = vec![self.place()];
        while !self.lost && self.eat(Tok::Comma) {
            to.push(self.place());
        }
        to
    }

    /// A destination: a name with fields and regions. Brackets after it belong to the statement.
    fn place(&mut self) -> Expr {
        let start = self.here();
        if !self.at(Tok::Word) || crate::text::words::is_reserved(self.word()) {
            self.unexpected("a destination");
            return self.error_expr();
        }
        let mut base = Expr { kind: ExprKind::Name(self.name_here()), span: start };
        while !self.lost && !self.at_end() {
            let kind = match self.tok() {
                Tok::Dot => self.field(base),
                Tok::LBracket => ExprKind::Index(Box::new(base), self.list(Tok::RBracket, Self::axis_index)),
                _ => break,
            };
            base = Expr { kind, span: self.since(start) };
            self.grow();
        }
        base
    }

    /// `team math: 2 groups of 128 { regs 232 }`, `team load: 1 thread of 1 group`
    fn team(&mut self) -> StmtKind {
        self.bump();
        let name = self.name("a name for the team");
        if !self.eat(Tok::Colon) {
            self.unexpected("`:` and the team's size, as in `team math: 2 groups of 128`");
        }
        let mut count = self.operand_expr();
        let elected = self.eat_word("thread");
        if elected {
            if !matches!(&count.kind, ExprKind::Int(one) if one == "1") {
                let d = self.error(codes::UNEXPECTED, count.span, "one elected thread acts for a team");
                self.complain(d.help("write `1 thread of …`"));
            }
            self.expect_word("of");
            count = self.operand_expr();
        }
        if !self.eat_word("groups") && !self.eat_word("group") {
            self.unexpected("`groups`");
        }
        let threads = self.eat_word("of").then(|| self.operand_expr());
        let mut regs = None;
        if !self.lost && self.at(Tok::LBrace) && self.same_line(0) {
            self.list(Tok::RBrace, |p| {
                p.expect_word("regs");
                regs = Some(p.expr());
            });
        }
        StmtKind::Team(TeamDecl { name, groups: count, threads, elected, regs })
    }

    /// `ring ab[4] load -> math { a: shared f16[128, 64] xor<3, 4, 3> align 1024 } fill counted`
    fn ring(&mut self) -> StmtKind {
        let start = self.here();
        self.bump();
        let name = self.name("a name for the ring");
        let slots = self.slots();
        let producer = self.name("the team that fills the ring");
        if !self.eat(Tok::Arrow) {
            self.unexpected("`->` and the team that reads the ring");
        }
        let consumer = self.name("the team that reads the ring");
        let mut fields = Vec::new();
        if self.at(Tok::LBrace) && !self.lost {
            fields = self.list(Tok::RBrace, Self::ring_field);
        } else {
            self.unexpected("`{` and the tiles of a slot");
        }
        let fill = self.fill_kind(start);
        StmtKind::Ring(RingDecl { name, slots, producer, consumer, fields, fill })
    }

    /// `[4]`: one number.
    fn slots(&mut self) -> Expr {
        if !self.at(Tok::LBracket) || !self.same_line(0) {
            self.unexpected("the number of slots, as in `ring ab[4]`");
            return self.error_expr();
        }
        let start = self.here();
        let mut all = self.list(Tok::RBracket, Self::expr);
        match all.pop() {
            Some(only) if all.is_empty() => only,
            _ => {
                let d = self.error(codes::UNEXPECTED, self.since(start), "a ring has one number of slots");
                self.complain(d.help("write it in the brackets, as in `ring ab[4]`"));
                self.error_expr()
            }
        }
    }

    fn ring_field(&mut self) -> RingField {
        let name = self.name("a name for the tile");
        if !self.eat(Tok::Colon) {
            self.unexpected("`: shared` and the type");
        }
        self.expect_word("shared");
        let elem = self.elem();
        let shape = if self.at(Tok::LBracket) { self.shape() } else { Vec::new() };
        let mut place = Placement::none(name.span);
        while !self.lost && self.placement(&mut place) {}
        if place.over.is_some() || place.partial.is_some() {
            let d = self.error(codes::UNEXPECTED, name.span, "a ring's tile is shared by its two teams");
            self.complain(d.help("leave `over` and `partial` out"));
        }
        RingField { name, elem, shape, layout: place.layout, align: place.align }
    }

    /// `fill counted`, `fill generic`, `fill fifo(cp)`
    fn fill_kind(&mut self, ring: crate::span::Span) -> Fill {
        if self.lost {
            return Fill::Generic;
        }
        if !self.eat_word("fill") {
            let span = self.since(ring);
            let d = self.error(codes::MISSING_CLAUSE, span, "this ring does not say how it is filled");
            self.fail(d.help("end it with `fill counted`, `fill generic` or `fill fifo(QUEUE)`"));
            return Fill::Generic;
        }
        let known = [("counted", Fill::Counted), ("generic", Fill::Generic)];
        if let Some((word, fill)) = known.into_iter().find(|(word, _)| self.at_word(word)) {
            self.eat_word(word);
            return fill;
        }
        if self.eat_word("fifo") && self.at(Tok::LParen) {
            self.bump();
            if self.ahead(1).tok == Tok::Word {
                self.eat_word("queue");
            }
            let queue = self.name("a queue");
            self.expect(Tok::RParen);
            return Fill::Fifo(queue);
        }
        self.unexpected("`counted`, `generic` or `fifo(QUEUE)`");
        Fill::Generic
    }

    /// `queue mm of math.group: matrix, keep <= 7`
    fn queue(&mut self) -> StmtKind {
        self.bump();
        let name = self.name("a name for the queue");
        self.expect_word("of");
        let team = self.name("a team");
        let per_group = self.eat(Tok::Dot);
        if per_group {
            self.expect_word("group");
        }
        if !self.eat(Tok::Colon) {
            self.unexpected("`:` and the engine");
        }
        let engine = self.name("an engine: `matrix`, `copy` or `store`");
        let mut keep = None;
        let mut options = Vec::new();
        while !self.lost && !self.at_end() && self.eat(Tok::Comma) {
            if self.at_word("keep") && self.ahead(1).tok == Tok::Le {
                self.bump();
                self.bump();
                keep = Some(self.operand_expr());
                continue;
            }
            // an option may have two words: `per_thread one`
            let mut option = self.name("an option of the queue");
            if !self.lost && self.at(Tok::Word) && self.same_line(0) {
                let second = self.name("a word");
                option.name = format!("{} {}", option.name, second.name);
                option.span = option.span.to(second.span);
            }
            options.push(option);
        }
        StmtKind::Queue(QueueDecl { name, team, per_group, engine, keep, options })
    }

    /// `turn pp over math.groups`
    fn turn(&mut self) -> StmtKind {
        self.bump();
        let name = self.name("a name for the turn");
        self.expect_word("over");
        let team = self.name("a team");
        let groups = self.eat(Tok::Dot);
        if groups {
            self.expect_word("groups");
        }
        StmtKind::Turn { name, team, groups }
    }

    /// `held: slot(ab)? = none`
    pub(super) fn carry(&mut self) -> Carry {
        let name = self.name("a name for what is carried");
        if !self.eat(Tok::Colon) {
            self.unexpected("`: slot(RING)`");
        }
        self.expect_word("slot");
        self.expect(Tok::LParen);
        let ring = self.name("a ring");
        self.expect(Tok::RParen);
        let optional = self.eat(Tok::Question);
        if !self.eat(Tok::Assign) {
            self.unexpected("`=` and the value before the first step");
        }
        Carry { name, ring, optional, init: self.expr() }
    }
}
