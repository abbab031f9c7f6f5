//! Threads and what joins them: `threads`, `allreduce`, shuffles, votes, `once`, barriers; `print` and `assert`.

use super::Elab;
use super::calls::CallArgs;
use super::consts::Const;
use super::names::suggest;
use super::scope::Value;
use crate::ast::{self, ExprKind, Ident};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use smallvec::SmallVec;

impl<'a> Elab<'a> {
    pub(crate) fn threads(
        &mut self,
        extents: &'a [ast::Expr],
        names: &'a [Ident],
        ordered: bool,
        span: Span,
    ) {
        let counts: Vec<Option<u32>> =
            extents.iter().map(|e| self.const_u32(e, "a number of threads", 1)).collect();
        if names.len() != extents.len() {
            let text = format!("{} names stand for {} thread axes", names.len(), extents.len());
            let d = Diagnostic::error(codes::PATTERN, self.sp(span), text);
            return self.report(d.help("write `threads (4, 32) as (row, lane)`"));
        }
        if self.f.kernel.threads.is_some() {
            let d = Diagnostic::error(codes::TWICE, self.sp(span), "the threads of a kernel are named once");
            return self.report(d);
        }
        if !self.f.path.is_empty() || self.f.at.0 != 0 {
            let d = Diagnostic::error(
                codes::MISPLACED,
                self.sp(span),
                "`threads` belongs to the top of the kernel",
            );
            return self.report(d);
        }
        let mut axes = SmallVec::new();
        for (i, (name, n)) in names.iter().zip(counts).enumerate() {
            let local = self.new_local(&name.name, Type::INDEX, LocalKind::Thread(i as u8), name.span);
            self.declare(name, Value::Local(local));
            axes.push((local, n.unwrap_or(1)));
        }
        let span = extents.iter().map(|e| e.span).reduce(Span::to).unwrap_or(span);
        self.f.kernel.threads = Some(Threads { axes, ordered, span: self.sp(span) });
    }

    // ---- collectives --------------------------------------------------------------------------------------------

    /// `allreduce(comb, x, over = tk)`
    pub(crate) fn allreduce(&mut self, args: &CallArgs<'a>, span: Span) -> Value {
        let (Some(c), Some(x)) = (args.one(0), args.one(1)) else { return Value::Poison };
        let Some(comb) = self.combiner(c) else { return Value::Poison };
        let Some(inputs) = self.fold_inputs(comb, x, false) else { return Value::Poison };
        let over = match args.named("over") {
            Some(e) => self.over(e),
            None => {
                let d = Diagnostic::error(
                    codes::NO_TEAM,
                    self.sp(span),
                    "`allreduce` needs to know whom it joins",
                );
                self.report(d.help("name thread axes, `over = tk` or `over = (a, b)`, or a team: `over = warp`, `over = block`"));
                None
            }
        };
        let Some(over) = over else { return Value::Poison };
        self.op_value(Op::AllReduce { comb, inputs, over }, span)
    }

    fn over(&mut self, e: &'a ast::Expr) -> Option<Over> {
        let parts: Vec<&'a ast::Expr> = match &e.kind {
            ExprKind::Tuple(parts) => parts.iter().collect(),
            _ => vec![e],
        };
        if let [one] = parts[..]
            && let ExprKind::Name(id) = &one.kind
            && let Some(team) = self.team_word(id)
        {
            return Some(Over::Team(team));
        }
        let mut axes = SmallVec::new();
        for part in parts {
            axes.push(self.thread_axis(part)?);
        }
        Some(Over::Axes(axes))
    }

    fn thread_axis(&mut self, e: &'a ast::Expr) -> Option<LocalId> {
        if let ExprKind::Name(id) = &e.kind {
            match self.lookup(id) {
                Value::Local(l) if matches!(self.f.body.locals[l].kind, LocalKind::Thread(_)) => {
                    return Some(l);
                }
                Value::Poison => return None,
                _ => {}
            }
        }
        let text = format!("`{}` is not an axis of `threads`", self.sources.text(e.span));
        let d = Diagnostic::error(codes::NO_SUCH_AXIS, self.sp(e.span), text);
        self.report(d.help("name a thread axis, or `warp`, `group`, `block`, `cluster`"));
        None
    }

    /// `warp`, `group`, `block`, `cluster` or a declared team, unless a local name hides the word.
    fn team_word(&mut self, id: &'a Ident) -> Option<Team> {
        match self.f.scope.get(&id.name) {
            Some(Value::Team(t)) => return Some(Team::Named(*t)),
            Some(_) => return None,
            None => {}
        }
        Some(match id.name.as_str() {
            "warp" => Team::Warp,
            "group" => Team::Group,
            "block" => Team::Block,
            "cluster" => Team::Cluster,
            _ => return None,
        })
    }

    pub(crate) fn some_team(&mut self, id: &'a Ident) -> Option<Team> {
        let team = self.team_word(id);
        if team.is_none() {
            let text = format!("`{}` is not a team", id.name);
            let mut d = Diagnostic::error(codes::NO_TEAM, self.sp(id.span), text);
            let words = ["warp", "group", "block", "cluster"];
            d = match suggest(&id.name, words.into_iter()) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => {
                    d.help("the teams are `warp`, `group`, `block`, `cluster` and those declared with `team`")
                }
            };
            self.report(d);
        }
        team
    }

    fn team_arg(&mut self, args: &CallArgs<'a>, default: Team) -> Option<Team> {
        match args.named("over").map(|e| (&e.kind, e.span)) {
            None => Some(default),
            Some((ExprKind::Name(id), _)) => self.some_team(id),
            Some((_, span)) => {
                let d = Diagnostic::error(codes::NO_TEAM, self.sp(span), "a team is named here");
                self.report(d.help("the teams are `warp`, `group`, `block`, `cluster`"));
                None
            }
        }
    }

    pub(crate) fn shuffle(&mut self, kind: ShuffleKind, args: &CallArgs<'a>, span: Span) -> Value {
        let (Some(x), Some(lane)) = (args.one(0), args.one(1)) else { return Value::Poison };
        let value = self.value(x, None);
        let lane = self.subscript(lane);
        let width = match args.named("width") {
            Some(e) => match self.const_u32(e, "the width of a shuffle", 1) {
                Some(w) => Some(w),
                None => return Value::Poison,
            },
            None => None,
        };
        let (Some(value), Some(lane)) = (value, lane) else { return Value::Poison };
        self.op_value(Op::Shuffle { kind, value, lane, width }, span)
    }

    pub(crate) fn vote(&mut self, kind: VoteKind, args: &CallArgs<'a>, span: Span) -> Value {
        let Some(c) = args.one(0) else { return Value::Poison };
        let cond = self.value(c, Some(Elem::BOOL));
        let team = self.team_arg(args, Team::Warp);
        let (Some(cond), Some(team)) = (cond, team) else { return Value::Poison };
        self.op_value(Op::Vote { kind, cond, team }, span)
    }

    pub(crate) fn fence(&mut self, args: &CallArgs<'a>, span: Span) -> Value {
        let word = args.one(0).map(|e| self.sources.text(e.span).to_owned()).unwrap_or_default();
        let kind = match word.as_str() {
            "proxy" => FenceKind::Proxy,
            "registers" => FenceKind::Registers,
            _ => {
                let d = Diagnostic::error(
                    codes::UNKNOWN_ARGUMENT,
                    self.sp(span),
                    format!("there is no fence `{word}`"),
                );
                self.report(d.help("write `fence(proxy)` or `fence(registers)`"));
                return Value::Poison;
            }
        };
        if let Some(team) = self.team_arg(args, Team::Block) {
            self.effect(Op::Fence { kind, team }, span);
        }
        Value::Unit
    }

    pub(crate) fn barrier(&mut self, team: Option<&'a Ident>, span: Span) {
        let team = match team {
            None => Some(Team::Block),
            Some(id) => self.some_team(id),
        };
        if let Some(team) = team {
            self.effect(Op::Barrier { team }, span);
        }
    }

    /// `once { e }`: one thread evaluates, all have the value. Effects run under a test for that thread.
    pub(crate) fn once(&mut self, b: &'a ast::Block, want: Option<Elem>, span: Span) -> Value {
        if self.f.lazy.is_some() {
            // reports why it cannot stand here
            self.effect(Op::Barrier { team: Team::Block }, span);
            return Value::Poison;
        }
        let mut value = Value::Unit;
        let block = self.in_block(|s| value = s.block_value(b, want));
        if block.is_empty() {
            return match self.to_expr(value, want, span) {
                Some(value) => self.op_value(Op::Once { value }, span),
                None => Value::Poison,
            };
        }
        let first = self.first_thread(span);
        self.once_effects(block, value, want, first, span)
    }

    /// Whether this is the thread at the origin of all axes; `None` where the kernel names no threads, whose
    /// thread-level statements run once anyway.
    fn first_thread(&mut self, span: Span) -> Option<ExprId> {
        let axes: Vec<LocalId> = self.f.kernel.threads.as_ref()?.axes.iter().map(|&(l, _)| l).collect();
        let mut all: Option<ExprId> = None;
        for axis in axes {
            let at = self.read_local(axis, span)?;
            let zero = self.index_const(0, span)?;
            let here = self.push(Expr::Binary(BinOp::Eq, at, zero), span)?;
            all = Some(match all {
                None => here,
                Some(before) => self.push(Expr::Binary(BinOp::LogicalAnd, before, here), span)?,
            });
        }
        all
    }

    fn once_effects(
        &mut self,
        mut block: Block,
        value: Value,
        want: Option<Elem>,
        first: Option<ExprId>,
        span: Span,
    ) -> Value {
        let result = match value {
            Value::Unit => None,
            Value::Poison => return Value::Poison,
            v => match self.to_expr(v, want, span) {
                Some(e) => Some(e),
                None => return Value::Poison,
            },
        };
        let held = match result {
            None => None,
            Some(e) => {
                let ty = self.ty(e).clone();
                let held = self.new_local("held", ty, LocalKind::Var, span);
                self.stmt(StmtKind::Declare { local: held }, span);
                block.push(Stmt::new(StmtKind::Assign { local: held, value: e }, self.sp(span)));
                Some(held)
            }
        };
        match first {
            Some(cond) => {
                self.stmt(StmtKind::If { cond, then: block, other: Block::new() }, span);
            }
            None => self.f.block.extend(block),
        }
        match held {
            None => Value::Unit,
            Some(held) => match self.read_local(held, span) {
                Some(value) => self.op_value(Op::Once { value }, span),
                None => Value::Poison,
            },
        }
    }

    // ---- finding faults -------------------------------------------------------------------------------------------

    pub(crate) fn print(&mut self, args: &CallArgs<'a>, span: Span) -> Value {
        let mut parts: Vec<Text> = Vec::new();
        // whether what stands last is a word or number that another would run into
        let mut word = false;
        for e in &args.positional {
            let value = self.expr(e, None);
            let written = if let Value::Const(Const::Str(s)) = &value { Some(s.to_string()) } else { None };
            let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let begins = written.as_deref().is_none_or(|s| joins(s.chars().next()));
            if word && begins {
                match parts.last_mut() {
                    Some(Text::Str(s)) => s.push(' '),
                    _ => parts.push(Text::Str(" ".into())),
                }
            }
            word = written.as_deref().is_none_or(|s| joins(s.chars().last()));
            parts.push(match (written, value) {
                (Some(s), _) => Text::Str(s),
                (_, Value::Const(c @ (Const::Type(_) | Const::List(_)))) => Text::Str(c.to_string()),
                (_, v) => match self.to_expr(v, None, e.span) {
                    Some(e) => Text::Value(e),
                    None => return Value::Poison,
                },
            });
        }
        self.effect(Op::Print { parts }, span);
        Value::Unit
    }

    pub(crate) fn assert(&mut self, args: &CallArgs<'a>, span: Span) -> Value {
        let Some(c) = args.one(0) else { return Value::Poison };
        let message = match args.one(1) {
            None => self.sources.text(c.span).to_owned(),
            Some(e) => match self.constant(e, "the text of `assert`") {
                Some(Const::Str(s)) => s.to_string(),
                Some(other) => {
                    return self
                        .wrong_kind(e.span, "the second argument of `assert`", "a string", &other)
                        .unwrap_or(Value::Poison);
                }
                None => return Value::Poison,
            },
        };
        if let Some(cond) = self.value(c, Some(Elem::BOOL)) {
            self.effect(Op::Assert { cond, message }, span);
        }
        Value::Unit
    }
}
