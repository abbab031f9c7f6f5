//! What frames a kernel or op: parameters, constants, grid, threads, memory, plan, workspaces, launches.

use super::Parser;
use crate::ast::*;
use crate::codes;
use crate::span::Span;
use crate::text::lexer::unescape;
use crate::text::token::Tok;

impl Parser<'_> {
    /// `param BM = 64 in [32, 64] for { sm_80: 32 }, STAGES = 3 in 2..=6 where BM * STAGES <= 512`
    pub(super) fn param_statement(&mut self) -> StmtKind {
        self.bump();
        let mut decls = vec![self.param_decl()];
        while !self.lost && self.eat(Tok::Comma) && self.at(Tok::Word) {
            decls.push(self.param_decl());
        }
        // no expression can follow usefully, so the filter may stand on the next line
        let filter = (!self.lost && self.at_word("where")).then(|| {
            self.bump();
            self.expr()
        });
        StmtKind::Param { decls, filter }
    }

    fn param_decl(&mut self) -> ParamDecl {
        let name = self.name_after_comma("a name for the parameter");
        let start = name.span;
        if !self.eat(Tok::Assign) {
            self.unexpected("`=` and the default");
        }
        let default = self.value_expr();
        let range = self.eat_word("in").then(|| self.param_range());
        let per_target = if self.eat_word("for") { self.per_target() } else { Vec::new() };
        ParamDecl { name, default, range, per_target, span: self.since(start) }
    }

    fn param_range(&mut self) -> ParamRange {
        if self.at(Tok::LBracket) {
            return ParamRange::List(self.list(Tok::RBracket, Self::expr));
        }
        let lo = self.value_expr();
        if self.at(Tok::DotDot) {
            let d = self.error(codes::UNEXPECTED, self.here(), "ranges of a `param` include their end");
            self.complain(d.help("write `a..=b`"));
            self.bump();
        } else if !self.eat(Tok::DotDotEq) {
            self.unexpected("a range `a..=b` or a list `[a, b]`");
        }
        let hi = self.value_expr();
        let step = self.eat_word("step").then(|| self.value_expr());
        ParamRange::Span { lo, hi, step }
    }

    /// `{ mp_31: 4, sm_80: 2 }`
    fn per_target(&mut self) -> Vec<(Ident, Expr)> {
        if !self.at(Tok::LBrace) {
            self.unexpected("`{` and defaults for targets, as in `for { sm_80: 2 }`");
            return Vec::new();
        }
        self.list(Tok::RBrace, |p| {
            let target = p.target_name();
            if !p.eat(Tok::Colon) {
                p.unexpected("`:` and the default for this target");
            }
            (target, p.value_expr())
        })
    }

    /// A target's name, which may hold hyphens: `sm_80`, `x86-64-v3`.
    pub(super) fn target_name(&mut self) -> Ident {
        let mut name = self.name("a target's name, such as `sm_80`");
        while self.at(Tok::Minus) && self.touches(0) && self.touches(1) {
            let part = self.ahead(1);
            if !matches!(part.tok, Tok::Word | Tok::Int) {
                break;
            }
            self.bump();
            self.bump();
            name.name = format!("{}-{}", name.name, self.text_of(part));
            name.span = name.span.to(self.previous());
        }
        name
    }

    /// `grid (a, b) as (i, j) cost = e`
    pub(super) fn grid_statement(&mut self) -> StmtKind {
        self.bump();
        let (extents, names) = self.axes();
        let cost = (!self.lost && self.at_word("cost") && !self.at_end()).then(|| {
            self.bump();
            if !self.eat(Tok::Assign) {
                self.unexpected("`=` and the cost of a block");
            }
            self.expr()
        });
        StmtKind::Grid { extents, names, cost }
    }

    /// `threads (a, b) ordered as (i, j)`; `ordered` may also stand at the end
    pub(super) fn threads_statement(&mut self) -> StmtKind {
        self.bump();
        let extents = self.extents();
        let early = self.eat_word("ordered");
        let names = self.axis_names();
        let late = !self.lost && !self.at_end() && self.at_word("ordered");
        if late {
            if early {
                self.duplicate("ordered", self.here());
            }
            self.bump();
        }
        StmtKind::Threads { extents, names, ordered: early || late }
    }

    fn axes(&mut self) -> (Vec<Expr>, Vec<Ident>) {
        let extents = self.extents();
        (extents, self.axis_names())
    }

    fn axis_names(&mut self) -> Vec<Ident> {
        if !self.lost && !self.at_word("as") {
            self.unexpected("`as` and names for the indices");
        }
        self.eat_word("as");
        self.name_or_names("a name for the index")
    }

    /// `static_assert(cond, "text")`
    pub(super) fn static_assert(&mut self) -> StmtKind {
        let start = self.bump();
        let mut parts = self.list(Tok::RParen, Self::expr);
        let mut message = None;
        if parts.len() == 2
            && let Some(last) = parts.pop()
        {
            match last.kind {
                ExprKind::Str(text) => message = Some(text),
                _ => parts.push(last),
            }
        }
        if parts.len() != 1 {
            let d = self.error(
                codes::UNEXPECTED,
                self.span_of(start),
                "`static_assert` takes a condition and a text",
            );
            self.fail(d.help("write `static_assert(N % 8 == 0, \"N must be a multiple of 8\")`"));
        }
        StmtKind::StaticAssert { cond: parts.pop().unwrap_or_else(|| self.error_expr()), message }
    }

    /// `plan { key(subject) = value … }`, an entry a line
    pub(super) fn plan(&mut self) -> StmtKind {
        self.bump();
        let open = self.bump();
        let outside = std::mem::take(&mut self.brackets);
        let mut entries = Vec::new();
        loop {
            while self.eat(Tok::Semi) || self.eat(Tok::Comma) {}
            if matches!(self.tok(), Tok::RBrace | Tok::End) {
                break;
            }
            let before = self.pos;
            entries.push(self.plan_entry());
            if !self.lost && !self.at_end() && !self.at(Tok::Comma) {
                self.unexpected("the end of the line");
            }
            self.find_statement_end(before);
            if self.pos == before {
                self.bump();
            }
        }
        self.close_block(open);
        self.brackets = outside;
        StmtKind::Plan(entries)
    }

    fn plan_entry(&mut self) -> PlanEntry {
        let start = self.here();
        let key = self.unbroken(|p| p.name("a key of the plan"));
        let subject = (self.at(Tok::LParen) && !self.at_end()).then(|| {
            self.bump();
            let subject = self.name("what the entry is about");
            self.expect(Tok::RParen);
            subject
        });
        if !self.eat(Tok::Assign) {
            self.unexpected("`=` and a value");
        }
        let value = self.expr();
        PlanEntry { key, subject, value, span: self.since(start) }
    }

    /// `shared t: f16[64, 72] xor<3, 4, 3> align 128`, `fragment c: f32[64, 64] over math`, `scratch s: f32[64]`
    pub(super) fn memory(&mut self, word: &str) -> StmtKind {
        let start = self.here();
        self.bump();
        let name = self.name("a name");
        if !self.eat(Tok::Colon) {
            self.unexpected("`:` and the type, as in `shared t: f16[64, 72]`");
        }
        let home = match word {
            "shared" => Home::Shared,
            "fragment" => Home::Fragment,
            _ => Home::Scratch,
        };
        self.memory_of(name, home, start)
    }

    /// `c: frag f32[64, 64] over math` is read as `fragment c: f32[64, 64] over math`.
    pub(super) fn begins_fragment(&self) -> bool {
        self.at(Tok::Word)
            && self.ahead(1).tok == Tok::Colon
            && self.word_ahead(2) == "frag"
            && self.same_line(2)
    }

    pub(super) fn fragment_by_type(&mut self) -> StmtKind {
        let start = self.here();
        let name = self.name_here();
        self.bump();
        self.bump();
        self.memory_of(name, Home::Fragment, start)
    }

    fn memory_of(&mut self, name: Ident, home: Home, start: Span) -> StmtKind {
        let elem = self.elem();
        let shape = self.shape();
        let mut place = Placement::none(start);
        while !self.lost && !self.at_end() && self.placement(&mut place) {}
        place.home = Some(home);
        place.span = self.since(start);
        StmtKind::Memory { name, elem, shape, place }
    }

    /// `shared xor<3, 4, 3> align 1024 over math`, after a name and `@`
    pub(super) fn placed_after_name(&mut self, start: Span) -> Placement {
        let mut place = Placement::none(start);
        let before = self.pos;
        while !self.lost && !self.at_end() && (self.home(&mut place) || self.placement(&mut place)) {}
        if self.pos == before {
            self.unexpected("a home (`shared`, `fragment`, `thread`, `scratch`, `direct`, `ring R`), `layout`, `align`, `over` or `partial`");
        }
        place.span = self.since(start);
        place
    }

    fn home(&mut self, place: &mut Placement) -> bool {
        let start = self.here();
        let word = self.word();
        let home = match word {
            "shared" => Home::Shared,
            "fragment" => Home::Fragment,
            "thread" => Home::Thread,
            "scratch" => Home::Scratch,
            "direct" => Home::Direct,
            "ring" => Home::Ring(self.missing_name()),
            _ => return false,
        };
        self.bump();
        let home = if word == "ring" { Home::Ring(self.name("a ring")) } else { home };
        if place.home.replace(home).is_some() {
            self.duplicate(word, start);
        }
        true
    }

    /// One of `xor<3, 4, 3>`, `layout "…"`, `align n`, `over TEAM`, `partial(op, axis)`; false if none stands here.
    pub(super) fn placement(&mut self, place: &mut Placement) -> bool {
        let start = self.here();
        let word = self.word();
        let twice = match word {
            "xor" if self.ahead(1).tok == Tok::Lt => {
                self.bump();
                let parts =
                    self.list(Tok::Gt, |p| if p.at(Tok::Int) { p.name_here().name } else { p.not_a_count() });
                place.layout.replace(format!("xor<{}>", parts.join(", "))).is_some()
            }
            "layout" => {
                self.bump();
                if !self.at(Tok::Str) {
                    self.unexpected("the layout between quotes");
                    return true;
                }
                let t = self.bump();
                place.layout.replace(unescape(self.text_of(t))).is_some()
            }
            "align" => {
                self.bump();
                let e = self.operand_expr();
                place.align.replace(e).is_some()
            }
            "over" => {
                self.bump();
                let team = self.name("a team");
                place.over.replace(team).is_some()
            }
            "partial" if self.ahead(1).tok == Tok::LParen => {
                self.bump();
                let Some(partial) = self.partial() else { return true };
                place.partial.replace(partial).is_some()
            }
            _ => return false,
        };
        if twice {
            self.duplicate(if word == "xor" { "layout" } else { word }, start);
        }
        true
    }

    /// `(add, cluster)` after `partial`
    fn partial(&mut self) -> Option<(Ident, Ident)> {
        let mut parts =
            self.list(Tok::RParen, |p| p.name("a combiner and an axis, as in `partial(add, cluster)`"));
        if parts.len() != 2 {
            let d = self.error(codes::UNEXPECTED, self.previous(), "`partial` takes a combiner and an axis");
            self.fail(d.help("write `partial(add, cluster)`"));
            return None;
        }
        let over = parts.pop()?;
        Some((parts.pop()?, over))
    }

    fn not_a_count(&mut self) -> String {
        self.unexpected("a number, as in `xor<3, 4, 3>`");
        "0".into()
    }

    /// `workspace P: f32[WAYS, M, N] = 0`
    pub(super) fn workspace(&mut self) -> StmtKind {
        self.bump();
        let name = self.name("a name for the workspace");
        if !self.eat(Tok::Colon) {
            self.unexpected("`:` and the type, as in `workspace P: f32[M, N]`");
        }
        let elem = self.elem();
        let shape = self.shape();
        let zeroed = !self.at_end() && self.eat(Tok::Assign);
        if zeroed {
            if self.at(Tok::Int) && self.text_of(self.token()) == "0" {
                self.bump();
            } else {
                let (found, span) = self.found();
                let d = self.error(codes::UNEXPECTED, span, format!("expected `0`, found {found}"));
                self.fail(d.help("a workspace begins undefined, or zeroed with `= 0`"));
            }
        }
        StmtKind::Workspace { name, elem, shape, zeroed }
    }

    /// `launch gemm<f16, E = gelu>(A, B, C) { BM = 64 }`
    pub(super) fn launch(&mut self) -> StmtKind {
        self.bump();
        let kernel = self.name("the kernel's name");
        let generics = if self.at(Tok::Lt) && self.same_line(0) {
            self.list(Tok::Gt, Self::generic_arg)
        } else {
            Vec::new()
        };
        let args = if self.lost { Vec::new() } else { self.parens("the arguments in brackets", Self::expr) };
        StmtKind::Launch { kernel, generics, args, params: self.options() }
    }
}
