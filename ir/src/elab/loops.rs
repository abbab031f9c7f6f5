//! Loops of every kind, `parallel`, `while`, jumps and carried tokens.

use super::Elab;
use super::consts::Const;
use super::emit::FrameKind;
use super::scope::Value;
use crate::ast::{self, ExprKind, Ident};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use smallvec::SmallVec;

/// The most iterations that `for const` writes out.
const MAX_UNROLLED: i128 = 4096;

impl<'a> Elab<'a> {
    pub(crate) fn for_stmt(
        &mut self,
        var: &'a Ident,
        kind: &'a ast::LoopKind,
        segments: &'a [ast::Segment],
        carry: &'a [ast::Carry],
        body: &'a ast::Block,
        span: Span,
    ) {
        let stages = match kind {
            ast::LoopKind::Const => return self.for_const_segments(var, segments, body, span),
            ast::LoopKind::Each { of, is_const } => return self.for_each(var, of, *is_const, body),
            ast::LoopKind::Pipelined { stages: Some(e) } => self.const_u32(e, "the number of stages", 1),
            _ => None,
        };
        let kind = match kind {
            ast::LoopKind::Unroll => LoopKind::Unroll,
            ast::LoopKind::NoUnroll => LoopKind::NoUnroll,
            ast::LoopKind::Vectorized => LoopKind::Vectorized,
            ast::LoopKind::Pipelined { .. } => LoopKind::Pipelined { stages },
            _ => LoopKind::Serial,
        };
        if self.f.kind == FrameKind::Host {
            return self.host_for_segments(var, segments, body, span);
        }
        let ranges: Vec<Option<Segment>> = segments.iter().map(|s| self.segment(s)).collect();
        let ranges: Option<SmallVec<[Segment; 1]>> = ranges.into_iter().collect();
        let names = self.named_constants(segments);
        let named: SmallVec<[LocalId; 1]> = names
            .iter()
            .enumerate()
            .map(|(i, n)| {
                let value = ranges.as_ref().and_then(|r| r.first()?.values.get(i).copied());
                let ty = value.map_or(Type::BOOL, |v| self.ty(v).clone());
                self.new_local(&n.name, ty, LocalKind::Loop, n.span)
            })
            .collect();
        let carries: Vec<Option<Carry>> = carry.iter().map(|c| self.carry(c)).collect();
        let local = self.new_local(&var.name, Type::INDEX, LocalKind::Loop, var.span);
        let outer =
            std::mem::replace(&mut self.f.carries, carries.iter().flatten().map(|c| c.local).collect());
        let bad = std::mem::replace(&mut self.f.bad_carry, carries.iter().any(Option::is_none));
        self.f.loops += 1;
        let in_const = std::mem::take(&mut self.f.in_const);
        // A carried name outlives its loop: what the last iteration handed on is given back after it.
        for (c, made) in carry.iter().zip(&carries) {
            self.declare(&c.name, made.as_ref().map_or(Value::Poison, |m| Value::Local(m.local)));
        }
        let block = self.in_block(|s| {
            s.declare(var, Value::Local(local));
            for (name, &l) in names.iter().zip(&named) {
                s.declare(name, Value::Local(l));
            }
            s.body(body);
        });
        self.f.in_const = in_const;
        self.f.loops -= 1;
        self.f.carries = outer;
        self.f.bad_carry = bad;
        let Some(segments) = ranges else { return };
        let Some(carry) = carries.into_iter().collect::<Option<Vec<Carry>>>() else { return };
        let kind = StmtKind::For { var: local, kind, named, segments, carry, body: block };
        self.stmt(kind, span);
    }

    /// A range with what its constants are.
    fn segment(&mut self, s: &'a ast::Segment) -> Option<Segment> {
        let range = &s.range;
        let (lo, hi) = (self.index_value(&range.lo), self.index_value(&range.hi));
        let step = match &range.step {
            Some(e) => self.index_value(e),
            None => self.index_const(1, range.span),
        };
        if let (Some(step), Some(e)) = (step, &range.step) {
            self.positive_step(step, e.span);
        }
        let values: Vec<Option<ExprId>> = s.consts.iter().map(|c| self.value(&c.value, None)).collect();
        let values = values.into_iter().collect::<Option<SmallVec<[ExprId; 1]>>>();
        Some(Segment { lo: lo?, hi: hi?, step: step?, values: values? })
    }

    /// The names of the constants: each range gives all of them a value, in one order.
    fn named_constants(&mut self, segments: &'a [ast::Segment]) -> Vec<&'a Ident> {
        let Some(first) = segments.first() else { return Vec::new() };
        let names: Vec<&'a Ident> = first.consts.iter().map(|c| &c.name).collect();
        for s in &segments[1..] {
            if !s.consts.iter().map(|c| &c.name.name).eq(names.iter().map(|n| &n.name)) {
                let text = "each range of a loop gives the same constants a value, in the same order";
                let d = Diagnostic::error(codes::SEGMENTS, self.sp(s.range.span), text);
                self.report(d.also(self.sp(first.range.span), "the first range"));
            }
        }
        names
    }

    fn host_for_segments(
        &mut self,
        var: &'a Ident,
        segments: &'a [ast::Segment],
        body: &'a ast::Block,
        span: Span,
    ) {
        let [ast::Segment { range, consts }] = segments else {
            return self.one_range_only(segments, "a loop of an `op`");
        };
        if !consts.is_empty() {
            return self.one_range_only(segments, "a loop of an `op`");
        }
        let (lo, hi) = (self.index_value(&range.lo), self.index_value(&range.hi));
        self.host_for(var, lo, hi, body, span);
    }

    fn for_const_segments(
        &mut self,
        var: &'a Ident,
        segments: &'a [ast::Segment],
        body: &'a ast::Block,
        span: Span,
    ) {
        match segments {
            [s] if s.consts.is_empty() => self.for_const(var, &s.range, body, span),
            _ => self.one_range_only(segments, "a `for const`"),
        }
    }

    fn one_range_only(&mut self, segments: &'a [ast::Segment], what: &str) {
        let Some(s) = segments.last() else { return };
        let text = format!("{what} has one range and no constants");
        let d = Diagnostic::error(codes::SEGMENTS, self.sp(s.range.span), text);
        self.report(d.help("write a loop for each range"));
    }

    fn positive_step(&mut self, step: ExprId, span: Span) {
        if let Expr::Const { bits, .. } = self.f.body.exprs[step]
            && bits as i64 <= 0
        {
            let d = Diagnostic::error(
                codes::LOOP_STEP,
                self.sp(span),
                format!("a step is at least 1, not {}", bits as i64),
            );
            self.report(d.help("count up and compute the falling number inside: `let k = n - 1 - i`"));
        }
    }

    pub(crate) fn ring_named(&mut self, id: &'a Ident) -> Option<RingId> {
        match self.lookup(id) {
            Value::Ring(r) => Some(r),
            Value::Poison => None,
            _ => {
                let text = format!("`{}` is not a ring", id.name);
                let d = Diagnostic::error(codes::NOT_A_RING, self.sp(id.span), text);
                self.report(d);
                None
            }
        }
    }

    fn carry(&mut self, c: &'a ast::Carry) -> Option<Carry> {
        let ring = self.ring_named(&c.ring)?;
        let init = match self.token_value(&c.init)? {
            Some(token) => Some(token),
            None if c.optional => None,
            None => {
                let d = Diagnostic::error(
                    codes::NOT_A_TOKEN,
                    self.sp(c.init.span),
                    "this carried slot may not be absent",
                );
                self.report(d.help(format!("write `{}: slot({})?`", c.name.name, c.ring.name)));
                return None;
            }
        };
        let local = self.new_local(&c.name.name, Type::Token, LocalKind::Token(ring), c.name.span);
        Some(Carry { local, init })
    }

    /// A slot, or `none`.
    fn token_value(&mut self, e: &'a ast::Expr) -> Option<Option<LocalId>> {
        if let ExprKind::Name(id) = &e.kind {
            match self.lookup(id) {
                Value::NoToken => return Some(None),
                Value::Local(l) if self.f.body.locals[l].ty == Type::Token => return Some(Some(l)),
                // a name that is no slot does not hide the word
                _ if id.name == "none" => return Some(None),
                Value::Poison => return None,
                _ => {}
            }
        }
        let d = Diagnostic::error(codes::NOT_A_TOKEN, self.sp(e.span), "a slot or `none` is needed here");
        self.report(d.help("a slot comes from `acquire RING` or `wait RING`"));
        None
    }

    /// `next r`: what the loop carries into its next iteration.
    pub(crate) fn next(&mut self, token: &'a Ident, span: Span) {
        let value = match self.lookup(token) {
            Value::NoToken => None,
            Value::Local(l) if self.f.body.locals[l].ty == Type::Token => Some(l),
            _ if token.name == "none" => None,
            Value::Poison => return,
            _ => {
                let d = Diagnostic::error(
                    codes::NOT_A_TOKEN,
                    self.sp(token.span),
                    format!("`{}` is not a slot", token.name),
                );
                return self.report(d);
            }
        };
        let carries = self.f.carries.clone();
        let fits =
            |&c: &LocalId| value.is_none_or(|v| self.f.body.locals[v].kind == self.f.body.locals[c].kind);
        let found: Vec<LocalId> = carries.into_iter().filter(fits).collect();
        match found[..] {
            [carry] => {
                self.stmt(StmtKind::Next { carry, value }, span);
            }
            [] if self.f.bad_carry => {}
            [] => {
                let d = Diagnostic::error(
                    codes::NOT_A_TOKEN,
                    self.sp(span),
                    "the loop around carries no such slot",
                );
                self.report(
                    d.help("declare it at the loop: `for k in 0..n carry (held: slot(ring)? = none)`"),
                );
            }
            _ => {
                let d = Diagnostic::error(
                    codes::NOT_A_TOKEN,
                    self.sp(span),
                    "the loop carries several slots of this ring",
                );
                self.report(d.help("carry one slot of a ring"));
            }
        }
    }

    // ---- compile time -----------------------------------------------------------------------------------------------

    fn for_const(&mut self, var: &'a Ident, range: &'a ast::Range, body: &'a ast::Block, span: Span) {
        let lo = self.const_int(&range.lo, "the start of a `for const`");
        let hi = self.const_int(&range.hi, "the end of a `for const`");
        let step = match &range.step {
            Some(e) => self.const_int(e, "the step of a `for const`"),
            None => Some(1),
        };
        let (Some(lo), Some(hi), Some(step)) = (lo, hi, step) else { return };
        if step <= 0 {
            let d = Diagnostic::error(
                codes::LOOP_STEP,
                self.sp(range.span),
                format!("a step is at least 1, not {step}"),
            );
            return self.report(d);
        }
        if (hi - lo) / step > MAX_UNROLLED {
            let text = format!("`for const` would write its body out {} times", (hi - lo) / step);
            let d = Diagnostic::error(codes::TOO_MANY_COPIES, self.sp(span), text);
            return self.report(
                d.help(format!("at most {MAX_UNROLLED} are allowed; use a plain loop, or `unroll(n)`")),
            );
        }
        let mut i = lo;
        while i < hi {
            self.copy_body(var, Const::Int(i), body);
            i += step;
        }
    }

    fn for_each(&mut self, var: &'a Ident, of: &'a ast::Expr, is_const: bool, body: &'a ast::Block) {
        match self.expr(of, None) {
            Value::Const(Const::List(items)) if is_const => {
                for item in items.iter() {
                    self.copy_body(var, item.clone(), body);
                }
            }
            Value::Poison => {}
            Value::Const(Const::List(_)) => {
                let d = Diagnostic::error(
                    codes::LOOP_RANGE,
                    self.sp(of.span),
                    "a list is known at compile time only",
                );
                self.report(d.help(format!("write `for const {} in ...`", var.name)));
            }
            _ => {
                let d = Diagnostic::error(
                    codes::LOOP_RANGE,
                    self.sp(of.span),
                    "a loop runs over a range or a compile-time list",
                );
                self.report(
                    d.help("write `a..b`, `pipelined(a..b)`, `unroll(n)` or `for const x in [1, 2, 4]`"),
                );
            }
        }
    }

    fn copy_body(&mut self, var: &'a Ident, value: Const, body: &'a ast::Block) {
        if self.too_large(var.span) {
            return;
        }
        let outer = std::mem::replace(&mut self.f.in_const, true);
        self.f.scope.open();
        self.declare(var, Value::Const(value));
        self.f.scope.open();
        self.body(body);
        self.f.scope.close();
        self.f.scope.close();
        self.f.in_const = outer;
    }

    // ---- the others -------------------------------------------------------------------------------------------------

    pub(crate) fn while_stmt(&mut self, cond: &'a ast::Expr, body: &'a ast::Block, span: Span) {
        let before = self.mark();
        let c = self.value(cond, Some(Elem::BOOL));
        if self.mark() != before {
            self.f.block.truncate(before);
            let d = Diagnostic::error(
                codes::LAZY_COLLECTIVE,
                self.sp(cond.span),
                "the condition of a loop is evaluated again and again, but this part of it runs on the whole team",
            );
            self.report(d.help("compute it in the body: `while true { let c = ...; if !c { break } ... }`"));
            return;
        }
        let c = c.filter(|&c| self.condition("`while`", c, cond.span));
        self.f.loops += 1;
        let in_const = std::mem::take(&mut self.f.in_const);
        let body = self.in_block(|s| s.body(body));
        self.f.in_const = in_const;
        self.f.loops -= 1;
        if let Some(cond) = c {
            self.stmt(StmtKind::While { cond, body }, span);
        }
    }

    pub(crate) fn parallel(
        &mut self,
        names: &'a [Ident],
        extents: &'a [ast::Expr],
        body: &'a ast::Block,
        span: Span,
    ) {
        let extents: Vec<Option<ExprId>> = extents.iter().map(|e| self.index_value(e)).collect();
        if names.len() != extents.len() {
            let text = format!("{} names stand for {} extents", names.len(), extents.len());
            let d = Diagnostic::error(codes::PATTERN, self.sp(span), text);
            return self.report(d.help("write `parallel (i, j) in (N, M) { ... }`"));
        }
        let vars: Vec<LocalId> =
            names.iter().map(|n| self.new_local(&n.name, Type::INDEX, LocalKind::Loop, n.span)).collect();
        let loops = std::mem::take(&mut self.f.loops);
        let block = self.in_block(|s| {
            for (name, &local) in names.iter().zip(&vars) {
                s.declare(name, Value::Local(local));
            }
            s.body(body);
        });
        self.f.loops = loops;
        if let Some(extents) = extents.into_iter().collect::<Option<Args>>() {
            self.stmt(StmtKind::Parallel { vars: vars.into(), extents, body: block }, span);
        }
    }

    pub(crate) fn jump(&mut self, kind: StmtKind, span: Span) {
        let word = if matches!(kind, StmtKind::Break) { "break" } else { "continue" };
        if self.f.in_const {
            let d = Diagnostic::error(
                codes::JUMP,
                self.sp(span),
                format!("`{word}` cannot leave a `for const`, whose bodies are written out"),
            );
            return self.report(d.help("use `if const` around the rest of the body"));
        }
        if self.f.loops == 0 {
            let d = Diagnostic::error(codes::JUMP, self.sp(span), format!("`{word}` stands in no loop"));
            return self.report(d);
        }
        self.stmt(kind, span);
    }
}
