//! Files, items and their headers.

use super::doc::{Doc, concat, empty, fill, group, nest, text};
use super::exprs::elem_text;
use super::{Printer, Row};
use crate::ast::*;
use crate::span::Span;
use crate::text::lexer::quote;
use crate::text::precedence as prec;

impl Printer<'_> {
    pub(super) fn file(&mut self, file: &File) -> Doc {
        let mut rows = Vec::new();
        let mut start = 0;
        if let Some(stage) = &file.stage {
            let stages = std::slice::from_ref(stage);
            rows =
                self.rows((0, stage.span.end), stages, |s| s.span, |_, s| text(format!("stage {}", s.name)));
            start = stage.span.end;
        }
        self.item_rows(&file.items, start, &mut rows);
        let rest = self.take_notes(0, u32::MAX);
        for n in rest {
            self.add_note(&mut rows, n);
        }
        Self::stack(rows)
    }

    fn item_rows(&mut self, items: &[Item], start: u32, rows: &mut Vec<Row>) {
        let mut at = start;
        let mut staged = !rows.is_empty();
        for (i, item) in items.iter().enumerate() {
            let before = rows.len();
            for n in self.take_notes(at, item.span.start) {
                self.add_note(rows, n);
            }
            let doc = self.item(item);
            for n in self.take_notes(item.span.start, item.span.end) {
                rows.push(self.note_row(n));
            }
            let (first, last) = (self.line(item.span.start), self.last_line(item.span));
            rows.push(Row { doc, first, last, apart: false });
            // items stand apart from each other and from the stage line; lines of one kind need not
            let lines = i > 0 && is_line(item) && is_line(&items[i - 1]) && same_kind(item, &items[i - 1]);
            rows[before].apart |= staged || !lines;
            staged = false;
            at = item.span.end.max(at);
        }
    }

    fn item(&mut self, item: &Item) -> Doc {
        match &item.kind {
            ItemKind::Use(u) => {
                let names = &u.names;
                let place = (u.path_span.end, item.span.end);
                let list = self.list(("{", "}"), place, names, |n| n.span, |_, n| text(n.name.clone()));
                concat(vec![text(format!("use {}::", quote(&u.path))), list])
            }
            ItemKind::Const(c) => self.consts(std::slice::from_ref(c)),
            ItemKind::Fn(f) => self.function(f),
            ItemKind::Kernel(k) => {
                let end = k.wheres.first().map_or(k.body.span.start, |w| w.span.start);
                let head = self.params_head(("kernel", &k.name), &k.generics, &k.params, &k.attrs, end);
                self.launchable(head, &k.wheres, &k.body)
            }
            ItemKind::Op(o) => {
                let end = o.wheres.first().map_or(o.body.span.start, |w| w.span.start);
                let head = self.params_head(("op", &o.name), &o.generics, &o.params, &o.attrs, end);
                self.launchable(head, &o.wheres, &o.body)
            }
            ItemKind::Combine(c) => self.combine(c),
            ItemKind::Intrinsic(i) => self.intrinsic(i, item.span),
            ItemKind::Test(t) => self.test(t, item.span),
        }
    }

    // ---- kernels and ops ----

    /// Everything up to the conditions, on one line if it fits.
    fn params_head(
        &mut self,
        (word, name): (&str, &Ident),
        gs: &[Generic],
        ps: &[Param],
        attrs: &Attrs,
        end: u32,
    ) -> Doc {
        let mut docs = vec![text(format!("{word} {}", name.name)), self.generics(gs, name.span.end)];
        let from = gs.last().map_or(name.span.end, |g| g.span.end);
        docs.push(self.list(("(", ")"), (from, end), ps, |p| p.span, |p, param| p.param(param)));
        if let Some(math) = &attrs.math {
            docs.push(text(format!(" math {}", math.name)));
        }
        if attrs.deterministic.is_some() {
            docs.push(text(" deterministic"));
        }
        concat(docs)
    }

    /// A header with its conditions and body: all on one line, or `where` and `{` on lines of their own.
    fn launchable(&mut self, head: Doc, wheres: &[Expr], body: &Block) -> Doc {
        let count = wheres.len();
        let conditions = wheres.iter().enumerate().map(|(i, w)| {
            let comma = if i + 1 < count { "," } else { "" };
            // a brace would begin the body
            let min = if matches!(w.kind, ExprKind::Block(_)) { prec::ATOM } else { prec::ANY };
            concat(vec![self.expr(w, min), text(comma)])
        });
        let conditions = fill(conditions.collect());
        let mut flat = head.flat_width();
        if count > 0 {
            flat = flat.zip(conditions.flat_width()).map(|(h, c)| h + " where ".len() + c);
        }
        let one_line = flat.is_some_and(|w| w + " {".len() <= super::doc::WIDTH);
        let mut docs = vec![head];
        if count > 0 {
            let gap = if one_line { Doc::Line } else { Doc::Hard };
            docs.extend([gap, text("where "), nest(conditions)]);
        }
        docs.push(if one_line { text(" ") } else { Doc::Hard });
        docs.push(self.block(body));
        if one_line {
            // what precedes the body must not be broken
            let body = docs.pop().unwrap_or_else(empty);
            return concat(vec![group(docs), body]);
        }
        concat(docs)
    }

    fn generics(&mut self, gs: &[Generic], from: u32) -> Doc {
        if gs.is_empty() {
            return empty();
        }
        let to = gs.last().map_or(from, |g| g.span.end);
        self.list(("<", ">"), (from, to), gs, |g| g.span, |p, g| p.generic(g))
    }

    fn generic(&mut self, g: &Generic) -> Doc {
        let (word, class) = match g.kind {
            GenericKind::Float => ("", "float"),
            GenericKind::Float8 => ("", "float8"),
            GenericKind::Int => ("", "int"),
            GenericKind::DType => ("", "dtype"),
            GenericKind::Fn => ("", "fn"),
            GenericKind::ConstInt => ("const ", "int"),
            GenericKind::ConstBool => ("const ", "bool"),
        };
        let mut docs = vec![text(format!("{word}{}: {class}", g.name.name))];
        if let Some(default) = &g.default {
            docs.extend([text(" = "), self.expr(default, prec::SUM)]);
        }
        concat(docs)
    }

    fn param(&mut self, p: &Param) -> Doc {
        let mode = match p.mode {
            Mode::In => "",
            Mode::Out => "out ",
            Mode::InOut => "inout ",
        };
        let mut docs = vec![text(format!("{}: {mode}{}", p.name.name, elem_text(&p.elem)))];
        if let Some(shape) = &p.shape {
            docs.push(self.shape(shape, p.span));
        }
        if let Some(strides) = &p.strides {
            docs.extend([text(" strides "), self.exprs(("(", ")"), strides, places(strides))]);
        }
        if let Some(align) = &p.align {
            docs.extend([text(" align "), self.expr(align, prec::SUM)]);
        }
        if let Some(base) = &p.base {
            docs.extend([text(" base "), self.expr(base, prec::SUM)]);
        }
        if let Some(packed) = &p.packed {
            docs.extend([text(" packed("), self.index_expr(&packed.axis)]);
            docs.extend(packed.order.as_ref().map(|o| text(format!(", order = {}", o.name))));
            docs.push(text(")"));
        }
        docs.extend(p.prepacked.as_ref().map(|o| text(format!(" prepacked(operand {})", o.name))));
        concat(docs)
    }

    // ---- functions ----

    fn fn_params(&mut self, params: &[(Ident, Type)], from: u32, to: u32) -> Doc {
        let span = |p: &(Ident, Type)| p.0.span.to(p.1.span);
        self.list(("(", ")"), (from, to), params, span, |p, (name, ty)| {
            concat(vec![text(format!("{}: ", name.name)), p.ty(ty)])
        })
    }

    /// `head -> type`, on one line or with the result on a line of its own; true if on one line.
    fn with_result(&mut self, head: Doc, result: Option<&Type>, after: usize) -> (Doc, bool) {
        let Some(result) = result else {
            let fits = head.flat_width().is_some_and(|w| w + after <= super::doc::WIDTH);
            return (head, fits);
        };
        let ty = self.ty(result);
        let width = head.flat_width().zip(ty.flat_width()).map(|(h, t)| h + " -> ".len() + t + after);
        let fits = width.is_some_and(|w| w <= super::doc::WIDTH);
        let gap = if fits { text(" ") } else { Doc::Hard };
        (concat(vec![head, nest(concat(vec![gap, text("-> "), ty]))]), fits)
    }

    fn function(&mut self, f: &Fn) -> Doc {
        let generics = self.generics(&f.generics, f.name.span.end);
        let from = f.generics.last().map_or(f.name.span.end, |g| g.span.end);
        let to = f.result.as_ref().map_or(f.body.span.start, |t| t.span.start);
        let head =
            concat(vec![text(format!("fn {}", f.name.name)), generics, self.fn_params(&f.params, from, to)]);
        let (head, one_line) = self.with_result(head, f.result.as_ref(), " {".len());
        concat(vec![head, if one_line { text(" ") } else { Doc::Hard }, self.block(&f.body)])
    }

    fn combine(&mut self, c: &Combine) -> Doc {
        let params = self.fn_params(&c.params, c.name.span.end, c.result.span.start);
        let head = concat(vec![text(format!("combine {}", c.name.name)), params]);
        let mut identity = vec![text(" identity "), self.expr(&c.identity, prec::ANY)];
        if c.commutative {
            identity.push(text(" commutative"));
        }
        let identity = concat(identity);
        let after = identity.flat_width().unwrap_or(0) + " {".len();
        let (head, one_line) = self.with_result(head, Some(&c.result), after);
        concat(vec![head, identity, if one_line { text(" ") } else { Doc::Hard }, self.block(&c.body)])
    }

    fn intrinsic(&mut self, i: &Intrinsic, span: Span) -> Doc {
        let params = self.fn_params(&i.params, i.name.span.end, i.result.span.start);
        let head = concat(vec![text(format!("intrinsic fn {}", i.name.name)), params]);
        let (head, _) = self.with_result(head, Some(&i.result), " {".len());
        let mut parts = vec![IntrinsicPart::Means(i)];
        parts.extend(i.spellings.iter().map(IntrinsicPart::Spelling));
        let place = (i.result.span.end, span.end);
        let rows = self.indented(|p| {
            p.rows(place, &parts, IntrinsicPart::span, |p, part| match part {
                IntrinsicPart::Means(i) => p.means(i),
                IntrinsicPart::Spelling(s) => text(spelling_text(s)),
            })
        });
        let open = Span { start: i.result.span.end, ..i.result.span };
        concat(vec![head, text(" "), self.braced(open, rows)])
    }

    fn means(&mut self, i: &Intrinsic) -> Doc {
        let means = self.value_block(&i.means);
        let bound = self.expr(&i.bound.value, prec::SUM);
        let bound =
            if i.bound.ulp { concat(vec![bound, text(" ulp")]) } else { concat(vec![text("abs "), bound]) };
        concat(vec![text("means "), means, text(" within "), bound])
    }

    // ---- tests ----

    fn test(&mut self, t: &Test, span: Span) -> Doc {
        let place = (t.name.span.end, span.end);
        let rows = self.indented(|p| p.rows(place, &t.entries, |e| e.span, |p, e| p.test_entry(e)));
        concat(vec![text(format!("test {} ", t.name.name)), self.braced(t.name.span, rows)])
    }

    fn test_entry(&mut self, e: &TestEntry) -> Doc {
        match &e.kind {
            TestKind::Subject(n) => text(format!("kernel {}", n.name)),
            TestKind::Dims(c) => self.choices("dims ", c),
            TestKind::Type(c) => self.choices("type ", c),
            TestKind::Param(c) => self.choices("param ", c),
            TestKind::Input { name, value } => {
                concat(vec![text(format!("{} = ", name.name)), self.expr(value, prec::ANY)])
            }
            TestKind::Expect { name, exact, reference, rtol, atol } => {
                let mark = if *exact { "==" } else { "~" };
                let mut docs = vec![text(format!("{} {mark} ", name.name)), self.expr(reference, prec::ANY)];
                for (word, bound) in [(" rtol ", rtol), (" atol ", atol)] {
                    if let Some(bound) = bound {
                        docs.extend([text(word), self.expr(bound, prec::SUM)]);
                    }
                }
                concat(docs)
            }
            TestKind::Only(targets) => {
                let names: Vec<&str> = targets.iter().map(|t| t.name.as_str()).collect();
                text(format!("only {}", names.join(", ")))
            }
        }
    }

    fn choices(&mut self, word: &str, choices: &[Choice]) -> Doc {
        let count = choices.len();
        let parts = choices.iter().enumerate().map(|(i, c)| {
            let comma = if i + 1 < count { "," } else { "" };
            let values = match (c.list, c.values.as_slice()) {
                (false, [only]) => concat(vec![text(" = "), self.expr(only, prec::ANY)]),
                (_, many) => concat(vec![text(" in "), self.exprs(("[", "]"), many, places(many))]),
            };
            concat(vec![text(c.name.name.clone()), values, text(comma)])
        });
        let parts = parts.collect();
        group(vec![text(word), nest(fill(parts))])
    }
}

/// What stands in the braces of an intrinsic.
enum IntrinsicPart<'a> {
    Means(&'a Intrinsic),
    Spelling(&'a Spelling),
}

impl IntrinsicPart<'_> {
    fn span(&self) -> Span {
        match self {
            IntrinsicPart::Means(i) => i.means.span.to(i.bound.span),
            IntrinsicPart::Spelling(s) => s.backend.span.to(s.text_span),
        }
    }
}

fn spelling_text(s: &Spelling) -> String {
    let range = match (&s.to, s.open_ended) {
        (Some(to), _) => format!("{}..{}", s.from.name, to.name),
        (None, true) => format!("{}..", s.from.name),
        (None, false) => s.from.name.clone(),
    };
    format!("{}({range}) {}", s.backend.name, quote(&s.text))
}

fn places(items: &[Expr]) -> (u32, u32) {
    items.first().zip(items.last()).map_or((0, 0), |(a, b)| (a.span.start, b.span.end))
}

fn is_line(item: &Item) -> bool {
    matches!(item.kind, ItemKind::Use(_) | ItemKind::Const(_))
}

fn same_kind(a: &Item, b: &Item) -> bool {
    std::mem::discriminant(&a.kind) == std::mem::discriminant(&b.kind)
}
