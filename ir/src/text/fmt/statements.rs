//! Statements.

use super::Printer;
use super::doc::{Doc, WIDTH, concat, empty, fill, group, nest, text};
use super::exprs::elem_text;
use crate::ast::*;
use crate::span::Span;
use crate::text::lexer::quote;
use crate::text::precedence as prec;

/// Names that would begin a statement of another kind where a call or nothing follows them.
const STATEMENT_LIKE: &[&str] =
    &["barrier", "copy", "grid", "parallel", "return", "static_assert", "threads"];

impl Printer<'_> {
    pub(super) fn stmt(&mut self, s: &Stmt) -> Doc {
        let Some(stage) = &s.stage else { return self.stmt_kind(s) };
        let mark = concat(vec![
            text("@stage("),
            self.expr(&stage.0, prec::ANY),
            text(", "),
            self.expr(&stage.1, prec::ANY),
            text(") "),
        ]);
        concat(vec![mark, self.stmt_kind(s)])
    }

    fn stmt_kind(&mut self, s: &Stmt) -> Doc {
        match &s.kind {
            StmtKind::Param { decls, filter } => self.params(decls, filter.as_ref()),
            StmtKind::Const(decls) => self.consts(decls),
            StmtKind::Grid { extents, names, cost } => {
                let mut docs = vec![text("grid "), self.extents(extents), text(" as "), names_doc(names)];
                if let Some(cost) = cost {
                    docs.extend([text(" cost = "), self.expr(cost, prec::ANY)]);
                }
                concat(docs)
            }
            StmtKind::Threads { extents, names, ordered } => {
                let ordered = if *ordered { " ordered" } else { "" };
                let extents = self.extents(extents);
                concat(vec![text("threads "), extents, text(format!("{ordered} as ")), names_doc(names)])
            }
            StmtKind::StaticAssert { cond, message } => {
                let mut docs = vec![text("static_assert("), self.expr(cond, prec::ANY)];
                docs.extend(message.as_ref().map(|m| text(format!(", {}", quote(m)))));
                docs.push(text(")"));
                concat(docs)
            }
            StmtKind::Plan(entries) => self.plan(entries, s),
            StmtKind::Let { pattern, ty, value, options } => {
                self.declaration("let ", pattern, ty.as_ref(), Some(value), options)
            }
            StmtKind::Var { pattern, ty, value, options } => {
                self.declaration("var ", pattern, ty.as_ref(), value.as_ref(), options)
            }
            StmtKind::Memory { name, elem, shape, place } => {
                let word = place.home.as_ref().map_or("shared".into(), home_text);
                let head = text(format!("{word} {}: {}", name.name, elem_text(elem)));
                concat(vec![head, self.shape(shape, s.span), self.placement(place)])
            }
            StmtKind::Assign { place, op, value, options } => {
                let place = self.statement_expr(place);
                let value = self.expr(value, prec::ANY);
                concat(vec![place, text(format!(" {} ", assign_mark(*op))), value, self.options(options)])
            }
            StmtKind::If { .. } => self.if_statement(s),
            StmtKind::For { var, kind, segments, carry, body } => {
                let head = self.for_head(var, kind, segments, carry);
                self.with_body(head, body)
            }
            StmtKind::While { cond, body } => {
                let head = concat(vec![text("while "), self.expr(cond, prec::ANY)]);
                self.with_body(head, body)
            }
            StmtKind::Parallel { names, extents, body } => {
                let extents = self.extents(extents);
                let head = concat(vec![text("parallel "), names_doc(names), text(" in "), extents]);
                self.with_body(head, body)
            }
            StmtKind::Break => text("break"),
            StmtKind::Continue => text("continue"),
            StmtKind::Expr(e) => self.statement_expr(e),
            StmtKind::Barrier { team } => match team {
                Some(team) => text(format!("barrier {}", team.name)),
                None => text("barrier"),
            },
            StmtKind::Workspace { name, elem, shape, zeroed } => {
                let head = text(format!("workspace {}: {}", name.name, elem_text(elem)));
                let tail = if *zeroed { text(" = 0") } else { empty() };
                concat(vec![head, self.shape(shape, s.span), tail])
            }
            StmtKind::Launch { kernel, generics, args, params } => {
                let generics = self.generic_args(generics, (kernel.span.end, s.span.end));
                let args = self.exprs(("(", ")"), args, (kernel.span.end, s.span.end));
                concat(vec![text(format!("launch {}", kernel.name)), generics, args, self.options(params)])
            }
            _ => self.machine(s),
        }
    }

    /// An expression that begins a statement.
    pub(super) fn statement_expr(&mut self, e: &Expr) -> Doc {
        if matches!(e.kind, ExprKind::If { .. }) {
            // without brackets it would be control
            return self.expr(e, prec::ATOM);
        }
        self.block_value(e)
    }

    /// An expression that is the value of a block.
    pub(super) fn block_value(&mut self, e: &Expr) -> Doc {
        let doc = self.expr(e, prec::ANY);
        if STATEMENT_LIKE.contains(&first_name(e)) { concat(vec![text("("), doc, text(")")]) } else { doc }
    }

    fn declaration(
        &mut self,
        word: &str,
        pattern: &Pattern,
        ty: Option<&Type>,
        value: Option<&Expr>,
        options: &[Named],
    ) -> Doc {
        let mut docs = vec![text(word), self.pattern(pattern)];
        if let Some(ty) = ty {
            docs.extend([text(": "), self.ty(ty)]);
        }
        if let Some(value) = value {
            docs.extend([text(" = "), self.expr(value, prec::ANY), self.options(options)]);
        }
        concat(docs)
    }

    fn pattern(&mut self, p: &Pattern) -> Doc {
        match p {
            Pattern::Name(n) => text(n.name.clone()),
            Pattern::Placed(n, place) => {
                let home = place.home.as_ref().map_or(String::new(), |h| format!(" {}", home_text(h)));
                concat(vec![text(format!("{} @{home}", n.name)), self.placement(place)])
            }
            Pattern::Ignore(_) => text("_"),
            Pattern::Tuple(parts, _) => {
                let mut docs = vec![text("(")];
                for (i, part) in parts.iter().enumerate() {
                    docs.extend([text(if i > 0 { ", " } else { "" }), self.pattern(part)]);
                }
                docs.push(text(")"));
                concat(docs)
            }
        }
    }

    fn params(&mut self, decls: &[ParamDecl], filter: Option<&Expr>) -> Doc {
        let mut parts = Vec::new();
        for (i, d) in decls.iter().enumerate() {
            let comma = if i + 1 < decls.len() { "," } else { "" };
            parts.push(concat(vec![self.param_decl(d), text(comma)]));
        }
        let mut docs = vec![text("param "), nest(fill(parts))];
        if let Some(filter) = filter {
            let filter = self.expr(filter, prec::ANY);
            docs.push(nest(concat(vec![Doc::Line, text("where "), filter])));
        }
        group(docs)
    }

    fn param_decl(&mut self, d: &ParamDecl) -> Doc {
        let mut docs = vec![text(format!("{} = ", d.name.name)), self.expr(&d.default, prec::BITS)];
        match &d.range {
            None => {}
            Some(ParamRange::List(values)) => {
                docs.extend([text(" in "), self.exprs(("[", "]"), values, (d.default.span.end, d.span.end))]);
            }
            Some(ParamRange::Span { lo, hi, step }) => {
                docs.extend([
                    text(" in "),
                    self.expr(lo, prec::BITS),
                    text("..="),
                    self.expr(hi, prec::BITS),
                ]);
                if let Some(step) = step {
                    docs.extend([text(" step "), self.expr(step, prec::BITS)]);
                }
            }
        }
        if !d.per_target.is_empty() {
            docs.push(text(" for { "));
            for (i, (target, value)) in d.per_target.iter().enumerate() {
                let comma = if i > 0 { ", " } else { "" };
                docs.extend([text(format!("{comma}{}: ", target.name)), self.expr(value, prec::BITS)]);
            }
            docs.push(text(" }"));
        }
        concat(docs)
    }

    pub(super) fn consts(&mut self, decls: &[ConstDecl]) -> Doc {
        let mut parts = Vec::new();
        for (i, d) in decls.iter().enumerate() {
            let comma = if i + 1 < decls.len() { "," } else { "" };
            let value = self.expr(&d.value, prec::ANY);
            parts.push(concat(vec![text(format!("{} = ", d.name.name)), value, text(comma)]));
        }
        group(vec![text("const "), nest(fill(parts))])
    }

    fn plan(&mut self, entries: &[PlanEntry], s: &Stmt) -> Doc {
        let place = (s.span.start, s.span.end);
        let rows = self.indented(|p| {
            p.rows(
                place,
                entries,
                |e| e.span,
                |p, e| {
                    let subject = e.subject.as_ref().map_or(String::new(), |s| format!("({})", s.name));
                    concat(vec![text(format!("{}{subject} = ", e.key.name)), p.expr(&e.value, prec::ANY)])
                },
            )
        });
        concat(vec![text("plan "), self.braced(s.span, rows)])
    }

    /// `M` or `(M, N)`
    fn extents(&mut self, extents: &[Expr]) -> Doc {
        match extents {
            // a tuple in its place would read as several extents
            [only] if matches!(only.kind, ExprKind::Tuple(_)) => {
                concat(vec![text("("), self.expr(only, prec::ANY), text(",)")])
            }
            [only] => self.expr(only, if begins_with_word(only) { prec::BITS } else { prec::ATOM + 1 }),
            many => {
                let place = many.first().zip(many.last()).map_or((0, 0), |(a, b)| (a.span.start, b.span.end));
                self.exprs(("(", ")"), many, place)
            }
        }
    }

    // ---- control ----

    fn for_head(&mut self, var: &Ident, kind: &LoopKind, segments: &[Segment], carry: &[Carry]) -> Doc {
        let word = match kind {
            LoopKind::Const | LoopKind::Each { is_const: true, .. } => "for const ",
            _ => "for ",
        };
        let over = match kind {
            LoopKind::Serial | LoopKind::Const => self.segments(segments),
            LoopKind::Unroll => concat(vec![text("unroll("), self.counted(segments), text(")")]),
            LoopKind::NoUnroll => concat(vec![text("nounroll("), self.segments(segments), text(")")]),
            LoopKind::Vectorized => concat(vec![text("vectorized("), self.counted(segments), text(")")]),
            LoopKind::Pipelined { stages } => {
                let comma = if stages.is_some() { "," } else { "" };
                let mut parts = vec![concat(vec![self.segments(segments), text(comma)])];
                if let Some(n) = stages {
                    parts.push(concat(vec![text("stages = "), self.expr(n, prec::ANY)]));
                }
                let inner = nest(concat(vec![Doc::Soft, fill(parts)]));
                group(vec![text("pipelined("), inner, text(")")])
            }
            LoopKind::Each { of, .. } => self.expr(of, prec::ANY),
        };
        let mut docs = vec![text(format!("{word}{} in ", var.name)), over];
        if !carry.is_empty() {
            let parts = carry.iter().enumerate().map(|(i, c)| {
                let optional = if c.optional { "?" } else { "" };
                let comma = if i + 1 < carry.len() { "," } else { "" };
                let head = format!("{}: slot({}){optional} = ", c.name.name, c.ring.name);
                concat(vec![text(head), self.expr(&c.init, prec::ANY), text(comma)])
            });
            let parts = parts.collect();
            docs.push(group(vec![text(" carry ("), nest(concat(vec![Doc::Soft, fill(parts)])), text(")")]));
        }
        concat(docs)
    }

    fn range(&mut self, r: &Range) -> Doc {
        let mut docs = vec![self.index_expr(&r.lo), text(".."), self.index_expr(&r.hi)];
        if let Some(step) = &r.step {
            docs.extend([text(" step "), self.index_expr(step)]);
        }
        concat(docs)
    }

    /// A range, or `seg(…)` of several or of one with constants
    fn segments(&mut self, segments: &[Segment]) -> Doc {
        if let [Segment { range, consts }] = segments
            && consts.is_empty()
        {
            return self.range(range);
        }
        let last = segments.len().saturating_sub(1);
        let mut parts = Vec::new();
        for (i, s) in segments.iter().enumerate() {
            let mut docs = vec![self.range(&s.range)];
            for (n, c) in s.consts.iter().enumerate() {
                let mark = if n == 0 { ": " } else { ", " };
                docs.extend([text(format!("{mark}{} = ", c.name.name)), self.expr(&c.value, prec::ANY)]);
            }
            docs.push(text(if i < last { ";" } else { "" }));
            parts.push(concat(docs));
        }
        let inner = nest(concat(vec![Doc::Soft, fill(parts)]));
        group(vec![text("seg("), inner, text(")")])
    }

    /// `n` for `0..n`
    fn counted(&mut self, segments: &[Segment]) -> Doc {
        match segments {
            [Segment { range: r, consts }]
                if consts.is_empty()
                    && matches!(&r.lo.kind, ExprKind::Int(s) if s == "0")
                    && r.step.is_none() =>
            {
                self.expr(&r.hi, prec::ANY)
            }
            _ => self.segments(segments),
        }
    }

    /// `head { body }`: on one line if it stood so and fits.
    pub(super) fn with_body(&mut self, head: Doc, body: &Block) -> Doc {
        if let Some(inline) = self.inline_block(body) {
            let whole = concat(vec![head, text(" "), inline]);
            if self.fits(&whole) {
                return whole;
            }
            let Doc::Concat(mut parts, _) = whole else { return empty() };
            parts.truncate(1);
            parts.extend([text(" "), self.block(body)]);
            return concat(parts);
        }
        concat(vec![head, text(" "), self.block(body)])
    }

    fn fits(&self, doc: &Doc) -> bool {
        doc.flat_width().is_some_and(|w| self.margin + w <= WIDTH)
    }

    /// `{ statement }` for a block that stood on one line and holds one plain statement, or nothing.
    fn inline_block(&mut self, b: &Block) -> Option<Doc> {
        if self.has_notes(b.span.start, b.span.end) {
            return None;
        }
        match (b.stmts.as_slice(), &b.tail) {
            ([], None) => Some(text("{}")),
            ([only], None) if self.on_one_line(b.span) && is_plain(&only.kind) => {
                let doc = self.indented(|p| p.stmt(only));
                Some(concat(vec![text("{ "), doc, text(" }")]))
            }
            _ => None,
        }
    }

    fn if_statement(&mut self, s: &Stmt) -> Doc {
        let (branches, last) = self.if_chain(s);
        let one_line = self.on_one_line(s.span);
        if let Some(parts) = self.inline_branches(&branches, last) {
            let fits = parts.iter().all(|p| self.fits(p));
            let mut docs = Vec::new();
            let count = parts.len();
            let whole: Option<usize> = parts.iter().map(|p| p.flat_width()).sum();
            let joined = whole.is_some_and(|w| self.margin + w + count - 1 <= WIDTH);
            if fits && (count == 1 || !one_line || joined) {
                for (i, part) in parts.into_iter().enumerate() {
                    if i > 0 {
                        docs.push(if one_line { text(" ") } else { Doc::Hard });
                    }
                    docs.push(part);
                }
                return concat(docs);
            }
        }
        let mut docs = Vec::new();
        for (i, (is_const, cond, block, span)) in branches.iter().enumerate() {
            if i > 0 {
                docs.push(text(" else "));
            }
            docs.extend([self.if_head(*is_const, cond), text(" ")]);
            let next = branches.get(i + 1).map(|b| b.3.start).or(last.map(|l| l.span.start));
            docs.push(self.branch_block(block, next.unwrap_or(span.end)));
        }
        if let Some(block) = last {
            docs.extend([text(" else "), self.branch_block(block, s.span.end)]);
        }
        concat(docs)
    }

    /// A branch, with the comments that stand between it and the next one.
    fn branch_block(&mut self, b: &Block, next: u32) -> Doc {
        let mut rows =
            self.indented(|p| p.rows((b.span.start, b.span.end), &b.stmts, |s| s.span, |p, s| p.stmt(s)));
        for i in self.take_notes(b.span.end, next) {
            rows.push(self.note_row(i));
        }
        self.braced(b.span, rows)
    }

    fn if_head(&mut self, is_const: bool, cond: &Expr) -> Doc {
        let word = if is_const { "if const " } else { "if " };
        concat(vec![text(word), self.expr(cond, prec::ANY)])
    }

    /// The conditions and blocks of `if … else if … else`, each with the place of its `if`.
    #[allow(clippy::type_complexity)] // lives for two lines of the caller
    fn if_chain<'t>(&self, s: &'t Stmt) -> (Vec<(bool, &'t Expr, &'t Block, Span)>, Option<&'t Block>) {
        let mut branches = Vec::new();
        let mut stmt = s;
        loop {
            let StmtKind::If { is_const, cond, then, other } = &stmt.kind else { return (branches, None) };
            branches.push((*is_const, cond, then, stmt.span));
            let Some(other) = other else { return (branches, None) };
            match other.stmts.as_slice() {
                [next]
                    if matches!(next.kind, StmtKind::If { .. })
                        && next.stage.is_none()
                        && self.holds_only(other, next) =>
                {
                    stmt = next
                }
                _ => return (branches, Some(other)),
            }
        }
    }

    fn holds_only(&self, b: &Block, s: &Stmt) -> bool {
        b.tail.is_none()
            && !self.has_notes(b.span.start, s.span.start)
            && !self.has_notes(s.span.end, b.span.end)
    }

    /// Each branch on a line, if all can be.
    fn inline_branches(
        &mut self,
        branches: &[(bool, &Expr, &Block, Span)],
        last: Option<&Block>,
    ) -> Option<Vec<Doc>> {
        let end = last.or(branches.last().map(|b| b.2)).map_or(0, |b| b.span.end);
        let start = branches.first().map_or(0, |b| b.3.start);
        let blocks = branches.iter().map(|b| b.2).chain(last);
        let plain = |b: &Block| self.on_one_line(b.span) || (b.stmts.is_empty() && b.tail.is_none());
        if self.has_notes(start, end) || !blocks.into_iter().all(plain) {
            return None;
        }
        let mut parts = Vec::new();
        for (i, (is_const, cond, block, _)) in branches.iter().enumerate() {
            let word = if i > 0 { "else " } else { "" };
            let head = self.if_head(*is_const, cond);
            parts.push(concat(vec![text(word), head, text(" "), self.inline_block(block)?]));
        }
        if let Some(block) = last {
            parts.push(concat(vec![text("else "), self.inline_block(block)?]));
        }
        Some(parts)
    }
}

/// Without blocks of its own.
fn is_plain(kind: &StmtKind) -> bool {
    !matches!(
        kind,
        StmtKind::If { .. }
            | StmtKind::For { .. }
            | StmtKind::While { .. }
            | StmtKind::Parallel { .. }
            | StmtKind::Role { .. }
            | StmtKind::Plan(_)
            | StmtKind::Ring(_)
    )
}

/// The name with which an expression begins, empty if it begins with something else.
fn first_name(e: &Expr) -> &str {
    match &e.kind {
        ExprKind::Name(n) => &n.name,
        ExprKind::Binary(_, a, _) | ExprKind::In(a, _) | ExprKind::Or(a, _) | ExprKind::Pad(a, _) => {
            first_name(a)
        }
        ExprKind::Index(a, _) | ExprKind::Field(a, _) | ExprKind::Call { callee: a, .. } => first_name(a),
        _ => "",
    }
}

/// Its first token is a name or a whole number, after which `grid` and `threads` are not read as names.
fn begins_with_word(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Int(_) | ExprKind::Elem(_) => true,
        ExprKind::Binary(_, a, _) => begins_with_word(a),
        _ => !first_name(e).is_empty(),
    }
}

/// The word for a home
fn home_text(home: &Home) -> String {
    match home {
        Home::Shared => "shared".into(),
        Home::Fragment => "fragment".into(),
        Home::Thread => "thread".into(),
        Home::Scratch => "scratch".into(),
        Home::Direct => "direct".into(),
        Home::Ring(r) => format!("ring {}", r.name),
    }
}

pub(super) fn names_doc(names: &[Ident]) -> Doc {
    match names {
        [only] => text(only.name.clone()),
        many => {
            let all: Vec<&str> = many.iter().map(|n| n.name.as_str()).collect();
            text(format!("({})", all.join(", ")))
        }
    }
}

fn assign_mark(op: AssignOp) -> &'static str {
    match op {
        AssignOp::Set => "=",
        AssignOp::Add => "+=",
        AssignOp::Sub => "-=",
        AssignOp::Mul => "*=",
        AssignOp::Div => "/=",
        AssignOp::Rem => "%=",
        AssignOp::And => "&=",
        AssignOp::Or => "|=",
        AssignOp::Xor => "^=",
        AssignOp::Shl => "<<=",
        AssignOp::Shr => ">>=",
        AssignOp::Fold => "op=",
    }
}
