//! Copies and products as statements, teams, rings, queues, turns, roles, tokens.

use super::Printer;
use super::doc::{Doc, concat, empty, fill, group, nest, text};
use super::exprs::elem_text;
use crate::ast::*;
use crate::text::lexer::quote;
use crate::text::precedence as prec;

impl Printer<'_> {
    pub(super) fn machine(&mut self, s: &Stmt) -> Doc {
        match &s.kind {
            StmtKind::Form(form) => self.form(form),
            StmtKind::Team(t) => self.team(t),
            StmtKind::Ring(r) => self.ring(r, s),
            StmtKind::Queue(q) => self.queue(q),
            StmtKind::Turn { name, team, groups } => {
                let groups = if *groups { ".groups" } else { "" };
                text(format!("turn {} over {}{groups}", name.name, team.name))
            }
            StmtKind::Role { team, group, body } => {
                let group = group.as_ref().map_or(String::new(), |g| format!(" as {}", g.name));
                concat(vec![text(format!("role {}{group} ", team.name)), self.block(body)])
            }
            StmtKind::Await { queue, keep } => {
                concat(vec![text(format!("await {} keep ", queue.name)), self.expr(keep, prec::ANY)])
            }
            StmtKind::Commit(n) => text(format!("commit {}", n.name)),
            StmtKind::Release(n) => text(format!("release {}", n.name)),
            StmtKind::Take(n) => text(format!("take {}", n.name)),
            StmtKind::Pass(n) => text(format!("pass {}", n.name)),
            StmtKind::Next(n) => text(format!("next {}", n.name)),
            // the caller prints all others
            _ => empty(),
        }
    }

    fn form(&mut self, form: &Form) -> Doc {
        match form {
            Form::Copy { asynchronous, queue, from, to, pad } => {
                let word = match queue {
                    Some(q) => format!("issue {}: copy ", q.name),
                    None if *asynchronous => "copy.async ".to_string(),
                    None => "copy ".to_string(),
                };
                let mut docs = vec![text(word), self.expr(from, prec::ANY)];
                if let Some(pad) = pad {
                    docs.extend([text(" pad "), self.expr(pad, prec::UNARY)]);
                }
                docs.extend([text(" -> "), self.destination(to)]);
                concat(docs)
            }
            Form::Gemm { queue, a, b, to, init, options } => {
                let word = queue.as_ref().map_or("gemm ".to_string(), |q| format!("issue {}: gemm ", q.name));
                let mut docs = vec![text(word), self.expr(a, prec::ANY), text(", "), self.expr(b, prec::ANY)];
                docs.extend([text(" -> "), self.destination(to)]);
                if let Some(init) = init {
                    docs.extend([text(" (init = "), self.expr(init, prec::ANY), text(")")]);
                }
                docs.push(self.options(options));
                concat(docs)
            }
            Form::Call { call, to } => {
                let mut docs = vec![self.statement_expr(call), text(" -> ")];
                for (i, place) in to.iter().enumerate() {
                    if i > 0 {
                        docs.push(text(", "));
                    }
                    docs.push(self.destination(place));
                }
                concat(docs)
            }
        }
    }

    /// What stands behind `->`: a name with fields and regions.
    fn destination(&mut self, e: &Expr) -> Doc {
        match &e.kind {
            ExprKind::Name(n) => text(n.name.clone()),
            ExprKind::Field(base, n) => concat(vec![self.destination(base), text(format!(".{}", n.name))]),
            ExprKind::Index(base, axes) => {
                let base_doc = self.destination(base);
                concat(vec![base_doc, self.axes(axes, (base.span.end, e.span.end))])
            }
            _ => self.expr(e, prec::POSTFIX),
        }
    }

    /// ` xor<3, 4, 3> align 128 over math partial(add, cluster)`, or nothing
    pub(super) fn placement(&mut self, place: &Placement) -> Doc {
        let mut docs = vec![self.layout(place.layout.as_deref(), place.align.as_ref())];
        docs.extend(place.over.as_ref().map(|t| text(format!(" over {}", t.name))));
        let partial = place.partial.as_ref();
        docs.extend(partial.map(|(comb, over)| text(format!(" partial({}, {})", comb.name, over.name))));
        concat(docs)
    }

    fn layout(&mut self, layout: Option<&str>, align: Option<&Expr>) -> Doc {
        let mut docs = Vec::new();
        match layout {
            Some(swizzle) if is_swizzle(swizzle) => docs.push(text(format!(" {swizzle}"))),
            Some(layout) => docs.push(text(format!(" layout {}", quote(layout)))),
            None => {}
        }
        if let Some(align) = align {
            docs.extend([text(" align "), self.expr(align, prec::SUM)]);
        }
        concat(docs)
    }

    fn team(&mut self, t: &TeamDecl) -> Doc {
        let elected = if t.elected { "1 thread of " } else { "" };
        let one = matches!(&t.groups.kind, ExprKind::Int(n) if n == "1");
        let mut docs =
            vec![text(format!("team {}: {elected}", t.name.name)), self.expr(&t.groups, prec::SUM)];
        docs.push(text(if one { " group" } else { " groups" }));
        if let Some(threads) = &t.threads {
            docs.extend([text(" of "), self.expr(threads, prec::SUM)]);
        }
        if let Some(regs) = &t.regs {
            docs.extend([text(" { regs "), self.expr(regs, prec::ANY), text(" }")]);
        }
        concat(docs)
    }

    fn ring(&mut self, r: &RingDecl, s: &Stmt) -> Doc {
        let head = concat(vec![
            text(format!("ring {}[", r.name.name)),
            self.expr(&r.slots, prec::ANY),
            text(format!("] {} -> {} ", r.producer.name, r.consumer.name)),
        ]);
        let place = (r.consumer.span.end, s.span.end);
        let span = |f: &RingField| {
            let end = f.align.as_ref().or(f.shape.last()).map_or(f.name.span, |e| e.span);
            f.name.span.to(end)
        };
        let fields = if self.gaps_hold_notes(place, &r.fields, span) {
            self.list(("{", "}"), place, &r.fields, span, |p, f| p.ring_field(f))
        } else {
            let count = r.fields.len();
            let parts = r.fields.iter().enumerate().map(|(i, f)| {
                let comma = if i + 1 < count { "," } else { "" };
                concat(vec![self.ring_field(f), text(comma), if i + 1 < count { Doc::Line } else { empty() }])
            });
            let parts: Vec<Doc> = parts.collect();
            group(vec![text("{"), nest(concat(vec![Doc::Line, concat(parts)])), Doc::Line, text("}")])
        };
        let fill_text = match &r.fill {
            Fill::Counted => " fill counted".to_string(),
            Fill::Generic => " fill generic".to_string(),
            Fill::Fifo(q) => format!(" fill fifo({})", q.name),
        };
        concat(vec![head, fields, text(fill_text)])
    }

    fn ring_field(&mut self, f: &RingField) -> Doc {
        let mut docs = vec![text(format!("{}: shared {}", f.name.name, elem_text(&f.elem)))];
        if !f.shape.is_empty() {
            docs.push(self.shape(&f.shape, f.name.span));
        }
        docs.push(self.layout(f.layout.as_deref(), f.align.as_ref()));
        concat(docs)
    }

    fn queue(&mut self, q: &QueueDecl) -> Doc {
        let group_word = if q.per_group { ".group" } else { "" };
        let mut parts = vec![text(q.engine.name.clone())];
        if let Some(keep) = &q.keep {
            parts.push(concat(vec![text("keep <= "), self.expr(keep, prec::SUM)]));
        }
        parts.extend(q.options.iter().map(|o| text(o.name.clone())));
        let last = parts.len() - 1;
        let parts = parts.into_iter().enumerate();
        let parts = parts.map(|(i, d)| if i < last { concat(vec![d, text(",")]) } else { d }).collect();
        concat(vec![
            text(format!("queue {} of {}{group_word}: ", q.name.name, q.team.name)),
            nest(fill(parts)),
        ])
    }
}

/// `xor<3, 4, 3>`, which is written without quotes
fn is_swizzle(layout: &str) -> bool {
    let inner = layout.strip_prefix("xor<").and_then(|l| l.strip_suffix('>'));
    inner.is_some_and(|i| i.split(", ").all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())))
}
