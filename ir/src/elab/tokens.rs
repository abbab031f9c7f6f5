//! Teams, rings, queues, turns, roles and the tokens that pass between them, as experts write them and dumps show
//! them; the `plan` block.

use super::Elab;
use super::consts::Const;
use super::names::suggest;
use super::scope::Value;
use crate::ast::{self, ExprKind, Ident, Named, StmtKind as A};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::plan::{self, Key};
use crate::program::*;
use crate::span::Span;
use crate::typing;

impl<'a> Elab<'a> {
    // ---- declarations -----------------------------------------------------------------------------------------------

    pub(crate) fn team(&mut self, t: &'a ast::TeamDecl, span: Span) {
        let groups = self.const_u32(&t.groups, "the number of groups", 1);
        let threads = t.threads.as_ref().map(|e| self.const_u32(e, "the threads of a group", 1));
        let regs = t.regs.as_ref().map(|e| self.const_u32(e, "a register quota", 1));
        let (Some(groups), None | Some(Some(_)), None | Some(Some(_))) = (groups, threads, regs) else {
            return self.declare(&t.name, Value::Poison);
        };
        let decl = TeamDecl {
            name: t.name.name.clone(),
            groups,
            threads: threads.flatten(),
            elected: t.elected,
            regs: regs.flatten(),
        };
        let at = self.sp(span);
        let id = self.f.kernel.teams.push(decl, at);
        self.declare(&t.name, Value::Team(id));
    }

    pub(crate) fn team_named(&mut self, id: &'a Ident) -> Option<TeamId> {
        match self.lookup(id) {
            Value::Team(t) => Some(t),
            Value::Poison => None,
            _ => self.not_a(id, "team"),
        }
    }

    fn not_a<T>(&mut self, id: &'a Ident, what: &str) -> Option<T> {
        let code = match what {
            "ring" => codes::NOT_A_RING,
            "queue" | "turn" => codes::NOT_A_QUEUE,
            _ => codes::NO_TEAM,
        };
        let mut d = Diagnostic::error(code, self.sp(id.span), format!("`{}` is not a {what}", id.name));
        if let Some(place) = self.f.scope.span(&id.name) {
            d = d.also(place, "declared here");
        }
        self.report(d);
        None
    }

    pub(crate) fn ring(&mut self, r: &'a ast::RingDecl, span: Span) {
        let slots = self.const_u32(&r.slots, "the number of slots", 1);
        let (producer, consumer) = (self.team_named(&r.producer), self.team_named(&r.consumer));
        let fill = match &r.fill {
            ast::Fill::Counted => Some(Fill::Counted),
            ast::Fill::Generic => Some(Fill::Generic),
            ast::Fill::Fifo(q) => self.queue_named(q).map(Fill::Fifo),
        };
        let fields: Vec<Option<RingField>> = r.fields.iter().map(|f| self.ring_field(f, span)).collect();
        let fields: Option<Vec<RingField>> = fields.into_iter().collect();
        let (Some(slots), Some(producer), Some(consumer), Some(fill), Some(fields)) =
            (slots, producer, consumer, fill, fields)
        else {
            return self.declare(&r.name, Value::Poison);
        };
        let ring = Ring { name: r.name.name.clone(), slots, producer, consumer, fields, fill };
        let at = self.sp(span);
        let id = self.f.kernel.rings.push(ring, at);
        self.declare(&r.name, Value::Ring(id));
    }

    fn ring_field(&mut self, f: &'a ast::RingField, span: Span) -> Option<RingField> {
        let elem = self.elem_type(&f.elem);
        let shape = self.static_shape(&f.shape);
        let align = match &f.align {
            Some(e) => Some(self.alignment(e)?),
            None => None,
        };
        let layout = match &f.layout {
            Some(text) => Some(self.placement(text, elem?, shape.as_ref()?, true, span)?),
            None => None,
        };
        Some(RingField { name: f.name.name.clone(), elem: elem?, shape: shape?, layout, align })
    }

    pub(crate) fn queue(&mut self, q: &'a ast::QueueDecl, span: Span) {
        let team = self.team_named(&q.team);
        let engine = match q.engine.name.as_str() {
            "matrix" => Some(Engine::Matrix),
            "copy" => Some(Engine::Copy),
            "store" => Some(Engine::Store),
            _ => {
                let d = Diagnostic::error(
                    codes::NOT_A_QUEUE,
                    self.sp(q.engine.span),
                    format!("there is no engine `{}`", q.engine.name),
                );
                self.report(d.help("the engines are `matrix`, `copy` and `store`"));
                None
            }
        };
        let keep = q.keep.as_ref().map(|e| self.const_u32(e, "what a queue may keep in flight", 0));
        let (mut one, mut reads) = (false, false);
        for option in &q.options {
            match option.name.as_str() {
                "per_thread one" | "per_thread" => one = true,
                "read_completion" => reads = true,
                name => {
                    let d = Diagnostic::error(
                        codes::UNKNOWN_OPTION,
                        self.sp(option.span),
                        format!("a queue has no option `{name}`"),
                    );
                    self.report(d.help("the options are `per_thread one` and `read_completion`"));
                }
            }
        }
        let (Some(team), Some(engine), None | Some(Some(_))) = (team, engine, keep) else {
            return self.declare(&q.name, Value::Poison);
        };
        let queue = Queue {
            name: q.name.name.clone(),
            team,
            per_group: q.per_group,
            engine,
            max_keep: keep.flatten(),
            per_thread_one: one,
            read_completion: reads,
        };
        let at = self.sp(span);
        let id = self.f.kernel.queues.push(queue, at);
        self.declare(&q.name, Value::Queue(id));
    }

    fn queue_named(&mut self, id: &'a Ident) -> Option<QueueId> {
        match self.lookup(id) {
            Value::Queue(q) => Some(q),
            Value::Poison => None,
            _ => self.not_a(id, "queue"),
        }
    }

    pub(crate) fn turn(&mut self, name: &'a Ident, team: &'a Ident, span: Span) {
        let value = match self.team_named(team) {
            Some(team) => {
                let at = self.sp(span);
                Value::Turn(self.f.kernel.turns.push(Turn { name: name.name.clone(), team }, at))
            }
            None => Value::Poison,
        };
        self.declare(name, value);
    }

    pub(crate) fn roles(&mut self, stmts: &'a [ast::Stmt]) {
        let mut out = Vec::new();
        for s in stmts {
            let A::Role { team, group, body } = &s.kind else { continue };
            let id = self.team_named(team);
            let local = group.as_ref().map(|g| self.new_local(&g.name, Type::INDEX, LocalKind::Loop, g.span));
            let block = self.in_block(|e| {
                if let (Some(g), Some(l)) = (group, local) {
                    e.declare(g, Value::Local(l));
                }
                e.body(body);
            });
            if let Some(team) = id {
                out.push(Role { team, group: local, body: block, span: self.sp(s.span) });
            }
        }
        if let Some(first) = stmts.first() {
            self.stmt(StmtKind::Roles(out), first.span);
        }
    }

    // ---- tokens -----------------------------------------------------------------------------------------------------

    pub(crate) fn acquire(&mut self, ring: &'a Ident, writes: bool, span: Span) -> Value {
        let ring = match self.lookup(ring) {
            Value::Ring(r) => r,
            Value::Poison => return Value::Poison,
            _ => return self.not_a::<Value>(ring, "ring").unwrap_or(Value::Poison),
        };
        let op = if writes { Op::Acquire { ring } } else { Op::Wait { ring } };
        match self.op(op, span).as_deref() {
            Some([token]) => Value::Local(*token),
            _ => Value::Poison,
        }
    }

    pub(crate) fn finish_token(&mut self, token: &'a Ident, commit: bool, span: Span) {
        match self.lookup(token) {
            Value::Local(token) => {
                self.effect(if commit { Op::Commit { token } } else { Op::Release { token } }, span)
            }
            Value::Poison => {}
            _ => {
                let d = Diagnostic::error(
                    codes::NOT_A_TOKEN,
                    self.sp(token.span),
                    format!("`{}` is not a slot", token.name),
                );
                self.report(d.help("a slot comes from `acquire RING` or `wait RING`"));
            }
        }
    }

    pub(crate) fn await_queue(&mut self, queue: &'a Ident, keep: &'a ast::Expr, span: Span) {
        let queue = self.queue_named(queue);
        let keep = self.const_u32(keep, "the number kept in flight", 0);
        if let (Some(queue), Some(keep)) = (queue, keep) {
            self.effect(Op::Await { queue, keep }, span);
        }
    }

    pub(crate) fn take_turn(&mut self, turn: &'a Ident, take: bool, span: Span) {
        match self.lookup(turn) {
            Value::Turn(turn) => self.effect(if take { Op::Take { turn } } else { Op::Pass { turn } }, span),
            Value::Poison => {}
            _ => {
                self.not_a::<()>(turn, "turn");
            }
        }
    }

    // ---- asynchronous forms -------------------------------------------------------------------------------------------

    /// A region by itself, or all of a memory with a known shape: `r.a`, `t`, `A[i +: N, :]`.
    pub(crate) fn region(&mut self, e: &'a ast::Expr) -> Option<Region> {
        if let ExprKind::Index(base, axes) = &e.kind {
            let mem = match &base.kind {
                ExprKind::Name(id) => self.lookup(id),
                _ => self.expr(base, None),
            };
            return match mem {
                Value::Mem(mem) => match self.place(mem, axes, e.span)? {
                    Place::Region(r) => Some(r),
                    Place::Element { .. } => self.no_region(e.span),
                },
                Value::Poison => None,
                _ => self.no_region(e.span),
            };
        }
        let value = match &e.kind {
            ExprKind::Name(id) => self.lookup(id),
            ExprKind::Field(base, field) => match self.token_of(base) {
                Some(token) => self.slot_field(token, field),
                None => self.expr(e, None),
            },
            _ => self.expr(e, None),
        };
        match value {
            Value::Mem(mem) => self.whole(mem, e.span),
            Value::Poison => None,
            _ => self.no_region(e.span),
        }
    }

    fn no_region(&mut self, span: Span) -> Option<Region> {
        let d = Diagnostic::error(codes::NOT_MEMORY, self.sp(span), "a region of memory is needed here");
        self.report(d.help("name it: `A[i +: N, :]`, or a tile of a slot: `r.a`"));
        None
    }

    fn whole(&mut self, mem: Mem, span: Span) -> Option<Region> {
        let mut axes = smallvec::SmallVec::new();
        for extent in typing::mem_extents(&self.ctx(), mem).ok()? {
            let Some(len) = extent.and_then(|n| u32::try_from(n).ok()) else { return self.no_region(span) };
            let start = self.index_const(0, span)?;
            axes.push(RegionAxis::Span { start, len, limit: None, clip_low: false });
        }
        Some(Region { mem, axes })
    }

    pub(crate) fn copy_async(
        &mut self,
        queue: Option<&'a Ident>,
        from: &'a ast::Expr,
        to: &'a ast::Expr,
        pad: Option<&'a ast::Expr>,
        span: Span,
    ) {
        let queue = match queue {
            None => None,
            Some(id) => match self.queue_named(id) {
                Some(queue) => Some(queue),
                None => return,
            },
        };
        let (from, to) = (self.region(from), self.region(to));
        let (Some(from), Some(to)) = (from, to) else { return };
        let pad = match pad {
            None => None,
            Some(e) => {
                let elem = typing::mem_elem(&self.ctx(), from.mem).ok();
                match self.value(e, elem) {
                    Some(v) => Some(v),
                    None => return,
                }
            }
        };
        self.effect(Op::CopyAsync { from, to, pad, queue }, span);
    }

    /// `issue mm: gemm a, b -> c (init = cond)`
    pub(crate) fn issue(
        &mut self,
        queue: &'a Ident,
        (a, b): (&'a ast::Expr, &'a ast::Expr),
        to: &'a ast::Expr,
        init: Option<&'a ast::Expr>,
        options: &'a [Named],
        span: Span,
    ) {
        let queue = self.queue_named(queue);
        let (a, b) = (self.mat_operand(a), self.mat_operand(b));
        let into = self.tile_target(to);
        let init = self.init(init);
        let precision = self.precision(options);
        if let (Some(queue), Some(a), Some(b), Some(into), Some(init)) = (queue, a, b, into, init) {
            self.effect(Op::Issue { queue, a, b, into, init, precision }, span);
        }
    }

    fn mat_operand(&mut self, e: &'a ast::Expr) -> Option<MatOperand> {
        let (inner, transposed) = match &e.kind {
            ExprKind::Field(base, t) if t.name == "T" => (&**base, true),
            _ => (e, false),
        };
        if self.is_memory(inner) {
            return self.region(inner).map(|region| MatOperand::Memory { region, transposed });
        }
        self.value(e, None).map(MatOperand::Value)
    }

    fn is_memory(&mut self, e: &'a ast::Expr) -> bool {
        match &e.kind {
            ExprKind::Name(id) => matches!(self.find(&id.name), Some(Value::Mem(_))),
            ExprKind::Field(base, _) => self.token_of(base).is_some(),
            ExprKind::Index(base, _) => self.is_memory(base),
            _ => false,
        }
    }

    // ---- plan -------------------------------------------------------------------------------------------------------

    pub(crate) fn plan(&mut self, entries: &'a [ast::PlanEntry]) {
        for e in entries {
            let Some(key) = Key::from_name(&e.key.name) else {
                let d = Diagnostic::error(
                    codes::PLAN_KEY,
                    self.sp(e.key.span),
                    format!("a plan has no entry `{}`", e.key.name),
                );
                let near = suggest(&e.key.name, Key::ALL.iter().map(|k| k.name()));
                self.report(match near {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d.help(format!(
                        "the entries are {}",
                        Key::ALL.iter().map(|k| k.name()).collect::<Vec<_>>().join(", ")
                    )),
                });
                continue;
            };
            let subject = e.subject.as_ref().map(|s| s.name.clone());
            if self.f.kernel.plan.get(key, subject.as_deref()).is_some() {
                let d = Diagnostic::error(
                    codes::TWICE,
                    self.sp(e.span),
                    format!("`{}` is decided twice", e.key.name),
                );
                self.report(d);
                continue;
            }
            if let Some(value) = self.plan_value(&e.value) {
                let span = self.sp(e.span);
                let entry = plan::Entry { key, subject, value, by_hand: true, refused: Vec::new(), span };
                self.f.kernel.plan.entries.push(entry);
            }
        }
    }

    /// Names that mean something here (params, constants) give their value, all others stand for themselves.
    fn plan_value(&mut self, e: &'a ast::Expr) -> Option<plan::Value> {
        match &e.kind {
            ExprKind::Name(id) => Some(match self.f.scope.get(&id.name) {
                Some(Value::Const(Const::Int(n))) => plan::Value::Int(i64::try_from(*n).ok()?),
                Some(Value::Const(Const::Bool(b))) => plan::Value::Bool(*b),
                _ => plan::Value::Name(id.name.clone()),
            }),
            ExprKind::Bool(b) => Some(plan::Value::Bool(*b)),
            ExprKind::Str(s) => Some(plan::Value::Str(s.clone())),
            ExprKind::List(items) => {
                let items: Option<Vec<plan::Value>> = items.iter().map(|i| self.plan_value(i)).collect();
                items.map(plan::Value::List)
            }
            ExprKind::Call { callee, args, .. } => {
                let ExprKind::Name(name) = &callee.kind else { return self.bad_plan_value(e.span) };
                let mut out = Vec::new();
                for a in args {
                    out.push((a.name.as_ref().map(|n| n.name.clone()), self.plan_value(&a.value)?));
                }
                Some(plan::Value::Call(name.name.clone(), out))
            }
            ExprKind::Error => None,
            _ => match self.constant(e, "a value of the plan")? {
                Const::Int(n) => i64::try_from(n).ok().map(plan::Value::Int),
                Const::Bool(b) => Some(plan::Value::Bool(b)),
                _ => self.bad_plan_value(e.span),
            },
        }
    }

    fn bad_plan_value(&mut self, span: Span) -> Option<plan::Value> {
        let d = Diagnostic::error(codes::PLAN_VALUE, self.sp(span), "this cannot be a value of the plan");
        self.report(d.help("values are integers, names, strings, lists and `name(key = value)`"));
        None
    }
}
