//! `test NAME { … }`: which inputs a kernel is run on, and what must come out.

use super::Parser;
use crate::ast::*;
use crate::codes;
use crate::text::token::Tok;

impl Parser<'_> {
    pub(super) fn test(&mut self) -> Test {
        let header = self.bump();
        let name = self.name("a name for the test");
        let mut entries = Vec::new();
        if !self.at(Tok::LBrace) {
            self.block_without_brace(false, header);
            return Test { name, entries };
        }
        let open = self.bump();
        loop {
            while self.eat(Tok::Semi) {}
            if matches!(self.tok(), Tok::RBrace | Tok::End) || self.begins_item_in_column_0() {
                break;
            }
            let before = self.pos;
            let start = self.here();
            let kind = self.test_entry();
            if let Some(kind) = kind {
                entries.push(TestEntry { kind, span: self.since(start) });
            }
            if !self.lost && !self.at_end() {
                let d = self.leftover();
                self.fail(d);
            }
            self.find_statement_end(before);
            if self.pos == before {
                self.bump();
            }
        }
        self.close_block(open);
        Test { name, entries }
    }

    fn test_entry(&mut self) -> Option<TestKind> {
        let names_follow = self.ahead(1).tok == Tok::Word && self.same_line(1);
        let word = self.word();
        match word {
            "kernel" | "dims" | "type" | "param" | "const" | "only" if names_follow => {
                self.bump();
            }
            _ => return self.test_value(),
        }
        Some(match word {
            "kernel" => TestKind::Subject(self.name("the item that is tested")),
            "dims" => TestKind::Dims(self.choices()),
            "type" => TestKind::Type(self.choices()),
            "only" => TestKind::Only(self.targets()),
            _ => TestKind::Param(self.choices()),
        })
    }

    /// `M = 33, N in [1, 100]`
    fn choices(&mut self) -> Vec<Choice> {
        let mut all = vec![self.choice()];
        while !self.lost && self.eat(Tok::Comma) && self.at(Tok::Word) {
            all.push(self.unbroken(Self::choice));
        }
        all
    }

    fn choice(&mut self) -> Choice {
        let name = self.name("a name");
        if self.eat_word("in") {
            if self.at(Tok::LBracket) {
                return Choice { name, values: self.list(Tok::RBracket, Self::expr), list: true };
            }
            self.unexpected("a list, as in `N in [1, 100]`");
        } else if !self.eat(Tok::Assign) {
            self.unexpected("`= value` or `in [values]`");
        }
        Choice { name, values: vec![self.expr()], list: false }
    }

    fn targets(&mut self) -> Vec<Ident> {
        let mut all = vec![self.target_spec()];
        while !self.lost && self.eat(Tok::Comma) {
            all.push(self.target_spec());
        }
        all
    }

    /// `cpu`, `cuda:sm_80`
    fn target_spec(&mut self) -> Ident {
        let mut name = self.target_name();
        if self.at(Tok::Colon) && self.touches(0) {
            self.bump();
            let arch = self.target_name();
            name.name = format!("{}:{}", name.name, arch.name);
            name.span = name.span.to(arch.span);
        }
        name
    }

    /// `A = normal(seed 1)`, `Y ~ widen rtol 1e-2`, `Y == ref(A)`
    fn test_value(&mut self) -> Option<TestKind> {
        if self.at(Tok::Word)
            && !matches!(self.ahead(1).tok, Tok::Assign | Tok::Tilde | Tok::EqEq)
            && let Some(d) = self.unknown_test_entry()
        {
            self.fail(d);
            return None;
        }
        let what = "an input, an output, `dims`, `type`, `param`, `kernel` or `only`";
        let name = self.unbroken(|p| p.name(what));
        if self.lost {
            return None;
        }
        if self.eat(Tok::Assign) {
            return Some(TestKind::Input { name, value: self.expr() });
        }
        let exact = self.at(Tok::EqEq);
        if !exact && !self.at(Tok::Tilde) {
            self.unexpected("`=` for an input, `~` or `==` for an output");
            return None;
        }
        self.bump();
        let reference = self.expr();
        let (mut rtol, mut atol) = (None, None);
        while !self.lost && !self.at_end() {
            let at = self.here();
            let word = self.word();
            let bound = match word {
                "rtol" => &mut rtol,
                "atol" => &mut atol,
                _ => break,
            };
            self.bump();
            let twice = bound.replace(self.operand_expr()).is_some();
            if twice {
                self.duplicate(word, at);
            }
        }
        if exact && (rtol.is_some() || atol.is_some()) {
            let d = self.error(
                codes::UNEXPECTED,
                self.previous(),
                "`==` demands equality and takes no tolerance",
            );
            self.complain(d.help("write `~` to compare with a tolerance"));
        }
        Some(TestKind::Expect { name, exact, reference, rtol, atol })
    }
}
