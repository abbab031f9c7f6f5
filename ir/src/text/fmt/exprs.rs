//! Expressions and types, with as few brackets as precedence allows.

use super::doc::{Doc, concat, empty, group, nest, text};
use super::spacing::is_tight_product;
use super::{Printer, Row};
use crate::ast::*;
use crate::span::Span;
use crate::text::lexer::quote;
use crate::text::precedence as prec;

/// Words that the parser would not read as names in every place; brackets make them names.
const SHY_NAMES: &[&str] = &["once"];

/// How tightly the outermost part of `e` binds.
fn level(e: &Expr) -> u8 {
    match &e.kind {
        ExprKind::Binary(op, ..) => prec::level(*op),
        ExprKind::In(..) => prec::COMPARE,
        ExprKind::Unary(..) => prec::UNARY,
        ExprKind::Or(..) | ExprKind::Pad(..) => prec::ELEMENT,
        // they would take what follows for their own
        ExprKind::Fill { .. } | ExprKind::Acquire(_) | ExprKind::Wait(_) => prec::ELEMENT,
        ExprKind::Index(..) | ExprKind::Field(..) | ExprKind::Call { .. } => prec::POSTFIX,
        ExprKind::If { .. } | ExprKind::Block(_) | ExprKind::Keyed(..) => prec::ANY,
        _ => prec::ATOM,
    }
}

impl Printer<'_> {
    /// `e` where only what binds at least as tightly as `min` may stand without brackets.
    pub(super) fn expr(&mut self, e: &Expr, min: u8) -> Doc {
        if level(e) < min {
            let inner = self.expr(e, prec::ANY);
            return group(vec![text("("), nest(concat(vec![Doc::Soft, inner])), text(")")]);
        }
        match &e.kind {
            ExprKind::Int(s) | ExprKind::Float(s) => text(s.clone()),
            ExprKind::Bool(b) => text(b.to_string()),
            ExprKind::Str(s) => text(quote(s)),
            ExprKind::Name(n) if SHY_NAMES.contains(&n.name.as_str()) => text(format!("({})", n.name)),
            ExprKind::Name(n) => text(n.name.clone()),
            ExprKind::Elem(elem) => text(elem_text(elem)),
            ExprKind::Unary(op, x) => {
                let mark = match op {
                    UnaryOp::Neg => "-",
                    UnaryOp::Not => "!",
                };
                concat(vec![text(mark), self.expr(x, prec::UNARY)])
            }
            ExprKind::Binary(op, ..) => self.binary(e, *op),
            ExprKind::In(a, b) => {
                let left = self.expr(a, prec::COMPARE + 1);
                concat(vec![left, text(" in "), self.expr(b, prec::COMPARE + 1)])
            }
            ExprKind::Or(x, v) => self.padded(x, " or ", v),
            ExprKind::Pad(x, v) => self.padded(x, " pad ", v),
            ExprKind::Index(base, axes) => {
                let base_doc = self.base(base);
                concat(vec![base_doc, self.axes(axes, (base.span.end, e.span.end))])
            }
            ExprKind::Field(base, name) => concat(vec![self.base(base), text(format!(".{}", name.name))]),
            ExprKind::Call { callee, generics, args } => {
                let base = self.callee(callee);
                let generics = self.generic_args(generics, (callee.span.end, e.span.end));
                concat(vec![base, generics, self.args(args, (callee.span.end, e.span.end))])
            }
            ExprKind::Tuple(items) => self.tuple(items, e.span),
            ExprKind::List(items) => self.exprs(("[", "]"), items, (e.span.start, e.span.end)),
            ExprKind::If { .. } => self.if_expr(e),
            ExprKind::Block(b) => self.value_block(b),
            ExprKind::Once(b) => concat(vec![text("once "), self.value_block(b)]),
            ExprKind::Fill { value, elem, shape } => {
                let word = if value.is_some() { "full " } else { "zeros " };
                let mut docs = vec![text(word), text(elem_text(elem)), self.shape(shape, e.span)];
                if let Some(v) = value {
                    docs.extend([text("("), self.expr(v, prec::ANY), text(")")]);
                }
                concat(docs)
            }
            ExprKind::Acquire(r) => text(format!("acquire {}", r.name)),
            ExprKind::Wait(r) => text(format!("wait {}", r.name)),
            ExprKind::Keyed(key, v) => concat(vec![text(format!("{} ", key.name)), self.expr(v, prec::SUM)]),
            ExprKind::Error => text("_error"),
        }
    }

    fn padded(&mut self, x: &Expr, word: &str, v: &Expr) -> Doc {
        let base = self.base(x);
        let signed = matches!(&v.kind, ExprKind::Unary(UnaryOp::Neg, inner) if level(inner) >= prec::POSTFIX);
        let value = if signed { self.expr(v, prec::UNARY) } else { self.expr(v, prec::POSTFIX) };
        concat(vec![base, text(word), value])
    }

    /// What a field or subscript applies to.
    fn base(&mut self, e: &Expr) -> Doc {
        let number = matches!(e.kind, ExprKind::Int(_) | ExprKind::Float(_));
        self.expr(e, if number { prec::ATOM + 1 } else { prec::POSTFIX })
    }

    /// What is called.
    fn callee(&mut self, e: &Expr) -> Doc {
        match &e.kind {
            // words that mean something else before a bracket
            ExprKind::Name(n) if n.name == "acc" || n.name == "not" => text(format!("({})", n.name)),
            _ => self.base(e),
        }
    }

    /// A chain of operators of one level, broken behind operators if it is too long.
    fn binary(&mut self, e: &Expr, op: BinaryOp) -> Doc {
        if let ExprKind::Binary(_, a, b) = &e.kind
            && prec::level(op) == prec::COMPARE
        {
            let left = self.expr(a, prec::COMPARE + 1);
            let right = self.expr(b, prec::COMPARE + 1);
            return group(vec![
                left,
                text(format!(" {}", prec::mark(op))),
                nest(concat(vec![Doc::Line, right])),
            ]);
        }
        let mut chain = Vec::new();
        let mut first = e;
        while let ExprKind::Binary(o, a, b) = &first.kind
            && prec::level(*o) == prec::level(op)
            && (chain.is_empty() || !mixes_products(*o, op))
        {
            chain.push((*o, b.as_ref()));
            first = a;
        }
        let head = self.operand(first, prec::level(op), op);
        let mut rest = Vec::new();
        for (o, operand) in chain.into_iter().rev() {
            let operand = self.operand(operand, prec::level(op) + 1, op);
            rest.extend([text(format!(" {}", prec::mark(o))), Doc::Line, operand]);
        }
        group(vec![head, nest(concat(rest))])
    }

    /// An operand of `op`. `&&` inside `||`, and `@` beside `*`, get brackets that readers need and
    /// the parser does not.
    fn operand(&mut self, e: &Expr, min: u8, op: BinaryOp) -> Doc {
        if prec::level(op) == prec::SUM && is_tight_product(e) {
            return text(tight(e, min));
        }
        let mixed = match e.kind {
            ExprKind::Binary(inner, ..) => {
                (op == BinaryOp::OrOr && inner == BinaryOp::AndAnd) || mixes_products(op, inner)
            }
            _ => false,
        };
        self.expr(e, if mixed { prec::ATOM } else { min })
    }

    /// An expression in a subscript, shape or range.
    pub(super) fn index_expr(&mut self, e: &Expr) -> Doc {
        if is_tight_product(e) { text(tight(e, prec::ANY)) } else { self.expr(e, prec::ANY) }
    }

    pub(super) fn axes(&mut self, axes: &[AxisIndex], place: (u32, u32)) -> Doc {
        self.list(("[", "]"), place, axes, axis_span, |p, a| p.axis(a))
    }

    fn axis(&mut self, a: &AxisIndex) -> Doc {
        match a {
            AxisIndex::At(e) => self.index_expr(e),
            AxisIndex::Extent { start, len, limit, clip_low, .. } => {
                let mut docs = vec![self.index_expr(start), text(" +: "), self.index_expr(len)];
                if let Some(limit) = limit {
                    docs.extend([text(" limit "), self.index_expr(limit)]);
                }
                if *clip_low {
                    docs.push(text(" clip low"));
                }
                concat(docs)
            }
            AxisIndex::Range { lo, hi, .. } => {
                concat(vec![self.index_expr(lo), text(".."), self.index_expr(hi)])
            }
            AxisIndex::Full(_) => text(":"),
            AxisIndex::New(_) => text("_"),
        }
    }

    pub(super) fn exprs(&mut self, brackets: (&str, &str), items: &[Expr], place: (u32, u32)) -> Doc {
        self.list(brackets, place, items, |e| e.span, |p, e| p.expr(e, prec::ANY))
    }

    /// `[a, b]` of a type; the comments in it are those before the end of `place`.
    pub(super) fn shape(&mut self, items: &[Expr], place: Span) -> Doc {
        let at = items.first().map_or(place.end, |e| e.span.start);
        let end = items.last().map_or(place.end, |e| e.span.end);
        self.list(("[", "]"), (at, end), items, |e| e.span, |p, e| p.index_expr(e))
    }

    fn tuple(&mut self, items: &[Expr], span: Span) -> Doc {
        match items {
            [only] => concat(vec![text("("), self.expr(only, prec::ANY), text(",)")]),
            _ => self.exprs(("(", ")"), items, (span.start, span.end)),
        }
    }

    pub(super) fn args(&mut self, args: &[Arg], place: (u32, u32)) -> Doc {
        let span = |a: &Arg| a.name.as_ref().map_or(a.value.span, |n| n.span.to(a.value.span));
        self.list(("(", ")"), place, args, span, |p, a| {
            let value = p.expr(&a.value, prec::ANY);
            match &a.name {
                Some(n) => concat(vec![text(format!("{} = ", n.name)), value]),
                None => value,
            }
        })
    }

    pub(super) fn generic_args(&mut self, args: &[GenericArg], place: (u32, u32)) -> Doc {
        if args.is_empty() {
            return empty();
        }
        let span = |a: &GenericArg| match a {
            GenericArg::Positional(e) => e.span,
            GenericArg::Named(n) => n.name.span.to(n.value.span),
        };
        let end = args.last().map_or(place.1, |a| span(a).end);
        self.list(("<", ">"), (place.0, end), args, span, |p, a| match a {
            GenericArg::Positional(e) => p.expr(e, prec::SUM),
            GenericArg::Named(n) => {
                concat(vec![text(format!("{} = ", n.name.name)), p.expr(&n.value, prec::SUM)])
            }
        })
    }

    /// ` { precision = tf32 }`, or nothing
    pub(super) fn options(&mut self, options: &[Named]) -> Doc {
        if options.is_empty() {
            return empty();
        }
        let mut docs = vec![text(" { ")];
        for (i, o) in options.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            docs.extend([text(format!("{comma}{} = ", o.name.name)), self.expr(&o.value, prec::ANY)]);
        }
        docs.push(text(" }"));
        concat(docs)
    }

    // ---- values with blocks ----

    fn if_expr(&mut self, e: &Expr) -> Doc {
        let ExprKind::If { is_const, cond, then, other } = &e.kind else { return empty() };
        let word = if *is_const { "if const " } else { "if " };
        let mut docs = vec![text(word), self.expr(cond, prec::ANY), text(" ")];
        docs.push(self.branch(then));
        docs.push(text(" else "));
        match &other.tail {
            Some(tail) if other.stmts.is_empty() && self.is_chained(tail, other) => {
                docs.push(self.if_expr(tail))
            }
            _ => docs.push(self.branch(other)),
        }
        group(docs)
    }

    fn is_chained(&self, tail: &Expr, block: &Block) -> bool {
        matches!(tail.kind, ExprKind::If { .. })
            && !self.has_notes(block.span.start, tail.span.start)
            && !self.has_notes(tail.span.end, block.span.end)
    }

    /// Its line breaks belong to the group around, so that all branches break together.
    fn branch(&mut self, b: &Block) -> Doc {
        match self.single_value(b) {
            Some(value) => {
                concat(vec![text("{"), nest(concat(vec![Doc::Line, value])), Doc::Line, text("}")])
            }
            None => self.block(b),
        }
    }

    pub(super) fn value_block(&mut self, b: &Block) -> Doc {
        group(vec![self.branch(b)])
    }

    /// The value of a block that holds nothing else, no comment either.
    fn single_value(&mut self, b: &Block) -> Option<Doc> {
        let tail = b.tail.as_ref()?;
        if !b.stmts.is_empty()
            || self.has_notes(b.span.start, tail.span.start)
            || self.has_notes(tail.span.end, b.span.end)
        {
            return None;
        }
        Some(self.indented(|p| p.block_value(tail)))
    }

    /// A block over several lines.
    pub(super) fn block(&mut self, b: &Block) -> Doc {
        let rows = self.indented(|p| p.block_rows(b));
        self.braced(b.span, rows)
    }

    fn block_rows(&mut self, b: &Block) -> Vec<Row> {
        let end = b.tail.as_ref().map_or(b.span.end, |t| t.span.start);
        let mut rows = self.rows((b.span.start, end), &b.stmts, |s| s.span, |p, s| p.stmt(s));
        if let Some(tail) = &b.tail {
            let place = (tail.span.start, b.span.end);
            let tail = std::slice::from_ref(tail.as_ref());
            rows.extend(self.rows(place, tail, |e| e.span, |p, e| p.block_value(e)));
        }
        rows
    }

    // ---- types ----

    pub(super) fn ty(&mut self, t: &Type) -> Doc {
        match &t.kind {
            TypeKind::Elem(e) => text(elem_text(e)),
            TypeKind::Tile { elem, shape } => {
                concat(vec![text(format!("tile {}", elem_text(elem))), self.shape(shape, t.span)])
            }
            TypeKind::Array { elem, shape } => concat(vec![text(elem_text(elem)), self.shape(shape, t.span)]),
            TypeKind::Shared { elem, shape } => {
                concat(vec![text(format!("&shared {}", elem_text(elem))), self.shape(shape, t.span)])
            }
            TypeKind::Reducer { comb, value } => {
                concat(vec![text(format!("reducer({}) ", comb.name)), self.ty(value)])
            }
            TypeKind::Tuple(parts) => {
                self.list(("(", ")"), (t.span.start, t.span.end), parts, |t| t.span, |p, t| p.ty(t))
            }
        }
    }
}

/// One is a matrix product, the other one element-wise.
fn mixes_products(a: BinaryOp, b: BinaryOp) -> bool {
    prec::level(a) == prec::level(b) && (a == BinaryOp::MatMul) != (b == BinaryOp::MatMul)
}

pub fn elem_text(e: &Elem) -> String {
    match e {
        Elem::Name(n) => n.name.clone(),
        Elem::Acc(n, _) => format!("acc({})", n.name),
    }
}

fn axis_span(a: &AxisIndex) -> Span {
    match a {
        AxisIndex::At(e) => e.span,
        AxisIndex::Extent { span, .. } | AxisIndex::Range { span, .. } => *span,
        AxisIndex::Full(span) | AxisIndex::New(span) => *span,
    }
}

/// A tight product, or a part of one, without spaces.
fn tight(e: &Expr, min: u8) -> String {
    if level(e) < min {
        return format!("({})", tight(e, prec::ANY));
    }
    match &e.kind {
        ExprKind::Binary(op, a, b) => {
            let l = prec::level(*op);
            format!("{}{}{}", tight(a, l), prec::mark(*op), tight(b, l + 1))
        }
        ExprKind::Field(base, name) => format!("{}.{}", tight(base, prec::POSTFIX), name.name),
        ExprKind::Name(n) if SHY_NAMES.contains(&n.name.as_str()) => format!("({})", n.name),
        ExprKind::Name(n) => n.name.clone(),
        ExprKind::Int(s) => s.clone(),
        // no other expression is tight
        _ => String::new(),
    }
}
