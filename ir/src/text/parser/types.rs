//! Types, generics and parameters.

use super::Parser;
use crate::ast::*;
use crate::codes;
use crate::span::Span;
use crate::text::token::Tok;

impl Parser<'_> {
    /// `f32`, `T`, `acc(T)`
    pub(super) fn elem(&mut self) -> Elem {
        if self.at_word("acc") && self.ahead(1).tok == Tok::LParen {
            let start = self.name_here().span;
            self.bump();
            let of = self.unbroken(|p| {
                let of = p.name("an element type");
                p.expect(Tok::RParen);
                of
            });
            return Elem::Acc(of, self.since(start));
        }
        Elem::Name(self.name("an element type, such as `f32`"))
    }

    /// `[a, b, …]`; empty and reported if it does not stand here.
    pub(super) fn shape(&mut self) -> Vec<Expr> {
        if self.at(Tok::LBracket) && self.same_line(0) {
            return self.list(Tok::RBracket, Self::extent);
        }
        self.unexpected("a shape, such as `[BM, BN]`");
        Vec::new()
    }

    fn extent(&mut self) -> Expr {
        if self.at(Tok::Colon) || self.at(Tok::Underscore) {
            let d =
                self.error(codes::UNEXPECTED, self.here(), "every extent of a shape has a name or a value");
            self.complain(
                d.help("write `X: f32[M, N]`: `M` and `N` are bound to the extents of the argument"),
            );
            self.bump();
            return Expr { kind: ExprKind::Error, span: self.previous() };
        }
        self.expr()
    }

    fn optional_shape(&mut self) -> Option<Vec<Expr>> {
        (self.at(Tok::LBracket) && self.same_line(0)).then(|| self.shape())
    }

    pub(super) fn ty(&mut self) -> Type {
        let start = self.here();
        let kind = self.deeper(|p| p.type_kind());
        let kind = kind.unwrap_or_else(|| TypeKind::Elem(Elem::Name(self.missing_name())));
        Type { kind, span: self.since(start) }
    }

    fn type_kind(&mut self) -> TypeKind {
        if self.at(Tok::LParen) {
            return TypeKind::Tuple(self.list(Tok::RParen, Self::ty));
        }
        if self.at(Tok::Amp) {
            self.bump();
            self.expect_word("shared");
            let elem = self.elem();
            return TypeKind::Shared { elem, shape: self.shape() };
        }
        if self.at_word("tile") && self.ahead(1).tok == Tok::Word && self.same_line(1) {
            self.bump();
            let elem = self.elem();
            return TypeKind::Tile { elem, shape: self.shape() };
        }
        if self.at_word("reducer") && self.ahead(1).tok == Tok::LParen {
            self.bump();
            self.bump();
            let comb = self.unbroken(|p| {
                let comb = if p.at_word("or") { p.name_here() } else { p.name("a combiner, such as `add`") };
                p.expect(Tok::RParen);
                comb
            });
            return TypeKind::Reducer { comb, value: Box::new(self.ty()) };
        }
        let elem = self.elem();
        match self.optional_shape() {
            Some(shape) => TypeKind::Array { elem, shape },
            None => TypeKind::Elem(elem),
        }
    }

    /// `<T: float, const N: int, E: fn = identity>`, where it stands here.
    pub(super) fn generics(&mut self) -> Vec<Generic> {
        if !self.at(Tok::Lt) {
            return Vec::new();
        }
        self.list(Tok::Gt, Self::generic)
    }

    fn generic(&mut self) -> Generic {
        let start = self.here();
        let is_const = self.eat_word("const");
        let name = self.name("a name for the generic");
        let kind = self.generic_kind(is_const, &name);
        let default = self.eat(Tok::Assign).then(|| self.operand_expr());
        Generic { name, kind, default, span: self.since(start) }
    }

    fn generic_kind(&mut self, is_const: bool, name: &Ident) -> GenericKind {
        if !self.eat(Tok::Colon) {
            let class =
                if is_const { "`: int` or `: bool`" } else { "`: float`, `: int`, `: dtype` or `: fn`" };
            self.unexpected(class);
            return GenericKind::DType;
        }
        let word = self.word();
        let kind = match (is_const, word) {
            (false, "float") => GenericKind::Float,
            (false, "float8") => GenericKind::Float8,
            (false, "int") => GenericKind::Int,
            (false, "dtype") => GenericKind::DType,
            (false, "fn") => GenericKind::Fn,
            (true, "int" | "index") => GenericKind::ConstInt,
            (true, "bool") => GenericKind::ConstBool,
            _ => {
                let d = self.generic_class_error(is_const, &name.name);
                self.fail(d);
                return GenericKind::DType;
            }
        };
        self.bump();
        kind
    }

    fn generic_class_error(&self, is_const: bool, name: &str) -> crate::diag::Diagnostic {
        let (found, span) = self.found();
        let expected = if is_const { "`int` or `bool`" } else { "`float`, `float8`, `int`, `dtype` or `fn`" };
        let d = self.error(codes::UNEXPECTED, span, format!("expected {expected}, found {found}"));
        if !is_const && self.word() == "bool" {
            return d.help(format!("a compile-time flag is written `const {name}: bool`"));
        }
        d.help(if is_const {
            "`const N: int` and `const C: bool` are values known when the kernel is compiled"
        } else {
            "`T: float` is a type, `const N: int` a number, `E: fn` a function"
        })
    }

    /// `(A: T[M, K], C: out T[M, N], scale: f32)` of a kernel or op.
    pub(super) fn params(&mut self) -> Vec<Param> {
        if !self.at(Tok::LParen) {
            self.unexpected("the parameters, as in `(X: f32[N], Y: out f32[N])`");
            return Vec::new();
        }
        self.list(Tok::RParen, Self::param)
    }

    fn param(&mut self) -> Param {
        let start = self.here();
        let name = self.name("a parameter's name");
        if !self.eat(Tok::Colon) {
            self.unexpected("`:` and the parameter's type");
        }
        let mode = self.mode();
        let elem = self.elem();
        let shape = self.optional_shape();
        let mut p = Param {
            name,
            mode,
            elem,
            shape,
            strides: None,
            align: None,
            base: None,
            packed: None,
            prepacked: None,
            span: start,
        };
        while !self.lost && self.param_clause(&mut p) {}
        p.span = self.since(start);
        p
    }

    fn mode(&mut self) -> Mode {
        let names_type = self.ahead(1).tok == Tok::Word;
        let mode = match self.word() {
            "in" => Mode::In,
            "out" if names_type => Mode::Out,
            "inout" if names_type => Mode::InOut,
            _ => return Mode::In,
        };
        self.bump();
        mode
    }

    fn param_clause(&mut self, p: &mut Param) -> bool {
        let start = self.here();
        let word = self.word();
        let twice = match word {
            "strides" => p.strides.is_some(),
            "align" => p.align.is_some(),
            "base" => p.base.is_some(),
            "packed" => p.packed.is_some(),
            "prepacked" => p.prepacked.is_some(),
            _ => return false,
        };
        self.bump();
        match word {
            "strides" => p.strides = Some(self.parens("the strides, as in `strides (ld, 1)`", Self::expr)),
            "align" => p.align = Some(self.operand_expr()),
            "base" => p.base = Some(self.operand_expr()),
            "packed" => p.packed = self.packed(start),
            _ => p.prepacked = self.prepacked(),
        }
        if twice {
            self.duplicate(word, start);
        }
        true
    }

    pub(super) fn duplicate(&mut self, word: &str, span: Span) {
        let d = self.error(codes::DUPLICATE_CLAUSE, span, format!("`{word}` is written twice"));
        self.complain(d.help("remove one of them"));
    }

    /// `(element, …)`, reported in the words of `what` if it does not stand here.
    pub(super) fn parens<T>(&mut self, what: &str, element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        if self.at(Tok::LParen) && self.same_line(0) {
            return self.list(Tok::RParen, element);
        }
        self.unexpected(what);
        Vec::new()
    }

    /// `(K, order = linear)` after `packed`
    fn packed(&mut self, start: Span) -> Option<Packed> {
        let mut axis = None;
        let mut order = None;
        self.parens("the packed axis, as in `packed(K, order = linear)`", |p| {
            if p.at_word("order") && p.ahead(1).tok == Tok::Assign {
                p.bump();
                p.bump();
                order = Some(p.name("an order: `linear`, `gptq` or `awq`"));
            } else {
                let e = p.expr();
                axis.get_or_insert(e);
            }
        });
        let span = self.since(start);
        if axis.is_none() {
            self.fail(self.error(
                codes::MISSING_CLAUSE,
                span,
                "`packed` names the axis along which it packs",
            ));
        }
        Some(Packed { axis: axis?, order, span })
    }

    /// `(operand A)` after `prepacked`
    fn prepacked(&mut self) -> Option<Ident> {
        let mut operand = None;
        self.parens("the operand, as in `prepacked(operand A)`", |p| {
            p.expect_word("operand");
            operand = Some(p.name("`A` or `B`"));
        });
        operand
    }

    /// `(a: T, b: tile f32[N])` of a function or combiner.
    pub(super) fn fn_params(&mut self) -> Vec<(Ident, Type)> {
        if !self.at(Tok::LParen) {
            self.unexpected("the parameters, as in `(x: f32)`");
            return Vec::new();
        }
        self.list(Tok::RParen, |p| {
            let name = p.name("a parameter's name");
            if !p.eat(Tok::Colon) {
                p.unexpected("`:` and the parameter's type");
            }
            (name, p.ty())
        })
    }
}
