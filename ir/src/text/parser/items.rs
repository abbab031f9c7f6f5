//! Files and items.

use super::Parser;
use crate::ast::*;
use crate::codes;
use crate::span::Span;
use crate::text::lexer::unescape;
use crate::text::token::{Tok, Token};
use crate::text::words;

/// Reports of an item whose braces do not match.
const REPORTS_OF_A_BROKEN_ITEM: u32 = 3;

impl Parser<'_> {
    pub(super) fn file(&mut self) -> (Option<Ident>, Vec<Item>) {
        let stage =
            (self.at_word("stage") && self.ahead(1).tok == Tok::Word && self.same_line(1)).then(|| {
                self.bump();
                self.name("a stage")
            });
        let mut items = Vec::new();
        loop {
            while self.eat(Tok::Semi) {}
            if self.at(Tok::End) {
                break;
            }
            let before = self.pos;
            let start = self.here();
            if self.token().column == 0 {
                self.reports_left = if self.braces_match() { u32::MAX } else { REPORTS_OF_A_BROKEN_ITEM };
            }
            for kind in self.item() {
                items.push(Item { kind, span: self.since(start) });
            }
            self.find_item();
            if self.pos == before {
                self.bump();
            }
        }
        (stage, items)
    }

    /// Leaves an item that holds a mistake: to the next word that begins one, on a line of its own.
    fn find_item(&mut self) {
        if !self.lost {
            return;
        }
        let mut braces = 0i32;
        loop {
            let t = self.token();
            let begins = t.first_on_line && self.begins_item(0) && (t.column == 0 || braces <= 0);
            match t.tok {
                Tok::End => break,
                _ if begins => break,
                Tok::LBrace => braces += 1,
                Tok::RBrace => braces -= 1,
                _ => {}
            }
            self.bump();
        }
        self.brackets = 0;
        self.lost = false;
        self.suspect = None;
    }

    /// Does every brace from here to the next item at the left margin have its partner?
    fn braces_match(&self) -> bool {
        let mut open = 0i32;
        for n in 0.. {
            let t = self.ahead(n);
            match t.tok {
                Tok::End => break,
                Tok::LBrace => open += 1,
                Tok::RBrace => open -= 1,
                _ if n > 0 && t.first_on_line && t.column == 0 && self.begins_item(n) => break,
                _ => {}
            }
            if open < 0 {
                break;
            }
        }
        open == 0
    }

    fn begins_item(&self, n: usize) -> bool {
        let word = self.word_ahead(n);
        let next = self.ahead(n + 1).tok;
        match word {
            "use" => next == Tok::Str,
            _ => words::ITEMS.contains(&word) && next == Tok::Word,
        }
    }

    /// An item begins here at the very left, where no statement of a block stands.
    pub(super) fn begins_item_in_column_0(&self) -> bool {
        let t = self.token();
        t.column == 0 && t.first_on_line && self.begins_item(0) && !matches!(self.word(), "const" | "op")
            || t.column == 0 && self.at_word("op") && matches!(self.ahead(2).tok, Tok::LParen | Tok::Lt)
    }

    fn item(&mut self) -> Vec<ItemKind> {
        let word = self.item_word();
        match word {
            "kernel" => vec![ItemKind::Kernel(self.kernel())],
            "op" => vec![ItemKind::Op(self.op())],
            "fn" => vec![ItemKind::Fn(self.function())],
            "combine" => vec![ItemKind::Combine(self.combine())],
            "intrinsic" => vec![ItemKind::Intrinsic(self.intrinsic())],
            "test" => vec![ItemKind::Test(self.test())],
            "use" => vec![ItemKind::Use(self.use_item())],
            "const" => self.constants(),
            _ => {
                let d = self.not_an_item();
                self.fail(d);
                Vec::new()
            }
        }
    }

    fn constants(&mut self) -> Vec<ItemKind> {
        match self.const_statement() {
            StmtKind::Const(decls) => {
                if !self.lost && !self.at_end() {
                    let d = self.leftover();
                    self.fail(d);
                }
                decls.into_iter().map(ItemKind::Const).collect()
            }
            _ => Vec::new(),
        }
    }

    /// `use "path"::{a, b}`
    fn use_item(&mut self) -> Use {
        self.bump();
        let mut path = String::new();
        let path_span = self.here();
        if self.at(Tok::Str) {
            let t = self.bump();
            path = unescape(self.text_of(t));
        } else {
            self.unexpected("the path between quotes, as in `use \"std\"::{gelu}`");
        }
        if !self.lost && !self.eat(Tok::PathSep) {
            self.unexpected("`::` and the names, as in `use \"std\"::{gelu}`");
        }
        let names = if self.at(Tok::LBrace) && !self.lost {
            self.list(Tok::RBrace, |p| p.name("a name"))
        } else {
            self.unexpected("`{` and the names, as in `use \"std\"::{gelu}`");
            Vec::new()
        };
        Use { path, path_span, names }
    }

    /// Attributes and conditions between the parameters and the body.
    fn clauses(&mut self) -> (Attrs, Vec<Expr>) {
        let mut attrs = Attrs::default();
        let mut wheres = Vec::new();
        while !self.lost {
            let at = self.here();
            match self.word() {
                "deterministic" => {
                    self.bump();
                    if attrs.deterministic.replace(at).is_some() {
                        self.duplicate("deterministic", at);
                    }
                }
                "math" => {
                    self.bump();
                    if attrs.math.replace(self.name("`exact` or `contract`")).is_some() {
                        self.duplicate("math", at);
                    }
                }
                "where" => {
                    self.bump();
                    self.conditions(&mut wheres);
                }
                _ => break,
            }
        }
        (attrs, wheres)
    }

    fn conditions(&mut self, wheres: &mut Vec<Expr>) {
        while !self.lost && !self.at(Tok::LBrace) {
            wheres.push(self.condition());
            if !self.eat(Tok::Comma) {
                break;
            }
        }
    }

    fn kernel(&mut self) -> Kernel {
        let header = self.bump();
        let (name, generics, params, attrs, wheres) = self.launchable("a name for the kernel");
        Kernel { name, generics, params, attrs, wheres, body: self.item_body(header) }
    }

    fn op(&mut self) -> Op {
        let header = self.bump();
        let (name, generics, params, attrs, wheres) = self.launchable("a name for the op");
        Op { name, generics, params, attrs, wheres, body: self.item_body(header) }
    }

    #[allow(clippy::type_complexity)] // the common part of two headers, taken apart at once
    fn launchable(&mut self, what: &str) -> (Ident, Vec<Generic>, Vec<Param>, Attrs, Vec<Expr>) {
        let name = self.name(what);
        self.unbroken(|p| {
            let generics = p.generics();
            let params = if p.lost { Vec::new() } else { p.params() };
            if p.at(Tok::Arrow) {
                let d = p.error(codes::UNEXPECTED, p.here(), "kernels and ops give no value");
                p.fail(d.help("name the result among the parameters, as in `Y: out f32[N]`"));
            }
            let (attrs, wheres) = p.clauses();
            (name, generics, params, attrs, wheres)
        })
    }

    /// The body of an item. After a mistake in the header the body is still read, for its own mistakes.
    fn item_body(&mut self, header: Token) -> Block {
        if self.lost {
            self.skip_header();
            if self.lost {
                return Block::default();
            }
        }
        self.body(header)
    }

    /// Skips from a mistake in a header to its `{`, if that comes before the next statement or item.
    fn skip_header(&mut self) {
        let mut n = 0;
        loop {
            let t = self.ahead(n);
            match t.tok {
                Tok::LBrace => {
                    self.pos += n;
                    self.lost = false;
                    return;
                }
                Tok::End | Tok::RBrace => return,
                _ if t.first_on_line && (self.begins_statement(n) || self.begins_item(n)) => return,
                _ => n += 1,
            }
        }
    }

    fn function(&mut self) -> Fn {
        let header = self.bump();
        let name = self.name("a name for the function");
        let (generics, params, result) = self.unbroken(|p| {
            let generics = p.generics();
            let params = if p.lost { Vec::new() } else { p.fn_params() };
            let result = (!p.lost && p.eat(Tok::Arrow)).then(|| p.ty());
            (generics, params, result)
        });
        if self.lost {
            self.skip_header();
        }
        let body = if self.lost { Block::default() } else { self.block(true, header) };
        Fn { name, generics, params, result, body }
    }

    fn result_type(&mut self) -> Type {
        if !self.eat(Tok::Arrow) {
            self.unexpected("`->` and the type of the result");
        }
        self.ty()
    }

    fn combine(&mut self) -> Combine {
        let header = self.bump();
        let name = self.name("a name for the combiner");
        let (params, result, identity, commutative) = self.unbroken(|p| {
            let params = p.fn_params();
            let result = p.result_type();
            if !p.lost && !p.at_word("identity") {
                let d = p.error(codes::MISSING_CLAUSE, p.found().1, "a combiner states its identity");
                p.fail(d.help(
                    "write `identity` and the value that changes nothing, as in `-> f32 identity 0.0`",
                ));
            }
            p.eat_word("identity");
            let identity = if p.lost { p.error_expr() } else { p.expr() };
            let commutative = p.eat_word("commutative");
            (params, result, identity, commutative)
        });
        if self.lost {
            self.skip_header();
        }
        let body = if self.lost { Block::default() } else { self.block(true, header) };
        Combine { name, params, result, identity, commutative, body }
    }

    fn intrinsic(&mut self) -> Intrinsic {
        self.bump();
        self.expect_word("fn");
        let name = self.name("a name for the intrinsic");
        let (params, result) = self.unbroken(|p| {
            let params = p.fn_params();
            (params, p.result_type())
        });
        let mut item = Intrinsic {
            name,
            params,
            result,
            means: Block::default(),
            bound: Bound { value: self.error_expr(), ulp: true, span: self.here() },
            spellings: Vec::new(),
        };
        if self.lost || !self.expect(Tok::LBrace) {
            return item;
        }
        let open = self.tokens[self.pos - 1];
        let before = self.pos;
        self.means(&mut item, self.span_of(open));
        if !self.lost && !self.at_end() {
            let d = self.leftover();
            self.fail(d);
        }
        self.find_statement_end(before);
        while !matches!(self.tok(), Tok::RBrace | Tok::End) && !self.begins_item_in_column_0() {
            if self.eat(Tok::Semi) {
                continue;
            }
            let before = self.pos;
            item.spellings.push(self.spelling());
            self.find_statement_end(before);
            if self.pos == before {
                self.bump();
            }
        }
        self.close_block(open);
        item
    }

    /// `means { … } within 2 ulp`
    fn means(&mut self, item: &mut Intrinsic, open: Span) {
        if !self.at_word("means") {
            let d = self.error(codes::MISSING_CLAUSE, open, "an intrinsic states what it means");
            self.fail(d.help(
                "begin it with `means { … } within 1 ulp`: the interpreter and other targets use that",
            ));
            return;
        }
        self.bump();
        item.means = self.value_block();
        let start = self.here();
        if !self.lost && !self.at_word("within") {
            let (_, span) = self.found();
            let d = self.error(
                codes::MISSING_CLAUSE,
                span,
                "an intrinsic states how near it comes to its meaning",
            );
            self.fail(d.help("write `within 2 ulp` or `within abs 1e-6` after the meaning"));
            return;
        }
        self.bump();
        let abs = self.eat_word("abs");
        item.bound.value = self.operand_expr();
        if !abs {
            self.expect_word("ulp");
        }
        item.bound.ulp = !abs;
        item.bound.span = self.since(start);
    }

    /// `cuda(sm_75..) "asm: …"`
    fn spelling(&mut self) -> Spelling {
        let backend = self.unbroken(|p| p.name("a back end, such as `cuda`"));
        if !self.eat(Tok::LParen) {
            self.unexpected("the architectures in brackets, as in `cuda(sm_75..)`");
        }
        let from = self.target_name();
        let open_ended = self.eat(Tok::DotDot);
        let to = (open_ended && self.at(Tok::Word)).then(|| self.target_name());
        let open_ended = open_ended && to.is_none();
        self.expect(Tok::RParen);
        let text_span = self.here();
        let mut text = String::new();
        if self.at(Tok::Str) && !self.lost {
            let t = self.bump();
            text = unescape(self.text_of(t));
        } else {
            self.unexpected("the target's text between quotes");
        }
        Spelling { backend, from, to, open_ended, text, text_span }
    }
}
