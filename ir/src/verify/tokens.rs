//! Ownership inside roles (layer L1 of the order rules): slot tokens, turns, products in flight.
//!
//! The walk keeps, for each point, the tokens that are alive in the order they were taken, the turns that are held,
//! and what queues still work on. Both arms of an `if` must agree; a loop's end must be as its start, but for what it
//! carries. Loop bodies are walked twice, so that the second round sees what the first left in flight.

use super::{Verifier, each_below, modes::written_by, operands_of};
use crate::codes;
use crate::program::*;
use crate::span::Span;
use std::collections::HashMap;

/// The most slots of each ring that its consumer holds at a time.
pub type Held = HashMap<RingId, u32>;

pub fn kernel(v: &mut Verifier) -> Held {
    let k = v.kernel;
    if k.teams.is_empty() && k.rings.is_empty() && k.queues.is_empty() && k.turns.is_empty() {
        return Held::new();
    }
    let mut roles = false;
    walk(&k.stmts, &mut |s| roles |= matches!(s.kind, StmtKind::Roles(_)));
    let mut w = Walk { v, roles, role: None, loops: 0, held: Held::new() };
    let mut state = State::default();
    w.block(&k.stmts, &mut state);
    w.end(&state, 0, "the kernel");
    w.held
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Side {
    Writes,
    Reads,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Token {
    local: LocalId,
    ring: RingId,
    side: Side,
    /// it may be `none`
    optional: bool,
    span: Span,
}

#[derive(Clone, Copy, PartialEq)]
enum Busy {
    Accumulates(LocalId),
    Reads(LocalId),
    Slot(LocalId),
}

#[derive(Clone, Default)]
struct State {
    live: Vec<Token>,
    /// Where tokens that are no longer alive were given back.
    gone: HashMap<LocalId, Span>,
    turns: Vec<(TurnId, Span)>,
    /// Work of queues, oldest first; entries of one number belong to one group.
    flight: Vec<(QueueId, u32, Busy, Span)>,
    issued: u32,
    next: HashMap<LocalId, Span>,
    dead: bool,
}

struct Walk<'v, 'a, 'o> {
    v: &'v mut Verifier<'a, 'o>,
    /// The kernel has roles.
    roles: bool,
    role: Option<TeamId>,
    loops: u32,
    held: Held,
}

impl<'a> Walk<'_, 'a, '_> {
    fn block(&mut self, stmts: &'a Block, state: &mut State) {
        for s in stmts {
            self.stmt(s, state);
        }
    }

    /// Tokens beyond the first `keep` and turns may not be left at the end of `what`.
    fn end(&mut self, state: &State, keep: usize, what: &str) {
        if state.dead {
            return;
        }
        for t in state.live.iter().skip(keep) {
            let name = self.v.local_name(t.local);
            let word = if t.side == Side::Writes { "commit" } else { "release" };
            let message = format!("`{name}` is still held at the end of {what}");
            self.v.error(codes::TOKEN_KEPT, t.span, message).help(format!("give it back: `{word} {name}`"));
        }
    }

    fn stmt(&mut self, s: &'a Stmt, state: &mut State) {
        self.slots(s, state);
        self.in_flight(s, state);
        match &s.kind {
            StmtKind::Op { results, op } => self.op(results, op, s.span, state),
            StmtKind::If { then, other, .. } => self.branch(then, other, s.span, state),
            StmtKind::For { carry, body, .. } => self.carried_loop(carry, body, s.span, state),
            StmtKind::While { body, .. } | StmtKind::Parallel { body, .. } => {
                self.carried_loop(&[], body, s.span, state);
            }
            StmtKind::Next { carry, value } => self.next(*carry, *value, s.span, state),
            StmtKind::Break | StmtKind::Continue => state.dead = true,
            StmtKind::Roles(roles) => self.run_roles(roles, state),
            _ => {}
        }
    }

    fn run_roles(&mut self, roles: &'a [Role], state: &mut State) {
        for (i, r) in roles.iter().enumerate() {
            let team = &self.v.kernel.teams[r.team].name;
            if self.role.is_some() {
                self.v.error(codes::ROLE_TEAM, r.span, "a role stands inside another role");
            }
            if let Some(first) = roles[..i].iter().find(|o| o.team == r.team) {
                let message = format!("two roles that run side by side are both `{team}`'s");
                self.v
                    .error(codes::ROLE_TEAM, r.span, message)
                    .also(first.span, "the first")
                    .help("put both into one role");
            }
            let outer = self.role.replace(r.team);
            let mut inner = State { live: Vec::new(), ..state.clone() };
            self.block(&r.body, &mut inner);
            self.end(&inner, 0, "its role");
            self.turns_end(&inner, &[], r.span);
            self.role = outer;
        }
    }

    fn turns_end(&mut self, state: &State, before: &[(TurnId, Span)], span: Span) {
        if state.dead || state.turns.len() == before.len() {
            return;
        }
        match state.turns.iter().find(|t| !before.contains(t)) {
            Some(&(turn, place)) => {
                let name = &self.v.kernel.turns[turn].name;
                self.v
                    .error(
                        codes::TURN_PAIRS,
                        place,
                        format!("`{name}` is taken, but not passed on every path"),
                    )
                    .help(format!("write `pass {name}` before the end of the block"));
            }
            None => {
                self.v.error(codes::TURN_PAIRS, span, "a turn taken outside of this block is passed inside");
            }
        }
    }

    // --- control ---------------------------------------------------------------------------------------------

    fn branch(&mut self, then: &'a Block, other: &'a Block, span: Span, state: &mut State) {
        let before = state.clone();
        let mut b = state.clone();
        self.block(then, state);
        self.block(other, &mut b);
        if b.dead {
            return;
        }
        if std::mem::take(&mut state.dead) {
            *state = b;
            return;
        }
        for t in &before.live {
            let lives = |s: &State| s.live.iter().any(|o| o.local == t.local);
            if lives(state) != lives(&b) {
                let name = self.v.local_name(t.local);
                let place = state.gone.get(&t.local).or(b.gone.get(&t.local)).copied();
                let report = self
                    .v
                    .error(
                        codes::TOKEN_BRANCH,
                        span,
                        format!("only one arm of this `if` gives `{name}` back"),
                    )
                    .help("give it back in both arms, or after the `if`");
                if let Some(place) = place {
                    report.also(place, "given back here");
                }
                state.live.retain(|o| o.local != t.local);
            }
        }
        let old = before.live.len();
        for arm in [&*state, &b] {
            let new: Vec<Token> = arm.live.iter().filter(|t| !before.live.contains(t)).copied().collect();
            let rest = State { live: new, ..State::default() };
            self.end(&rest, 0, "an arm of the `if`");
        }
        state.live.retain(|t| before.live.contains(t));
        state.live.truncate(old);
        if state.turns != b.turns {
            self.v.error(codes::TURN_PAIRS, span, "only one arm of this `if` takes or passes a turn");
            state.turns = before.turns;
        }
        if state.next.len() != b.next.len() {
            self.v.error(
                codes::CARRY,
                span,
                "only one arm of this `if` gives the carried slot its next value",
            );
            state.next.extend(b.next);
        }
        state.gone.extend(b.gone);
        state.issued = state.issued.max(b.issued);
        let missing: Vec<_> = b.flight.into_iter().filter(|f| !state.flight.contains(f)).collect();
        state.flight.extend(missing);
    }

    fn carried_loop(&mut self, carry: &[Carry], body: &'a Block, span: Span, state: &mut State) {
        for c in carry {
            if let Some(init) = c.init {
                self.take_out(init, span, state, "carried into the loop");
            }
        }
        let before = state.clone();
        let carried: Vec<Token> = carry.iter().filter_map(|c| self.carried(c, span)).collect();
        if !carry.is_empty() && leaves(body) {
            self.v
                .error(
                    codes::CARRY,
                    span,
                    "a loop that carries a slot cannot be left by `break` or `continue`",
                )
                .help("guard the rest of the body with an `if`");
        }
        self.loops += 1;
        for _ in 0..2 {
            let mut inner = State {
                live: before.live.iter().chain(&carried).copied().collect(),
                next: HashMap::new(),
                dead: false,
                ..state.clone()
            };
            self.block(body, &mut inner);
            self.loop_end(&inner, &before, &carried, span);
            state.flight = inner.flight;
            state.issued = inner.issued;
            state.gone = inner.gone;
        }
        self.loops -= 1;
        state.live = before.live.iter().chain(&carried).copied().collect();
        state.turns = before.turns;
        for t in &carried {
            state.gone.remove(&t.local);
        }
    }

    fn carried(&self, c: &Carry, span: Span) -> Option<Token> {
        let LocalKind::Token(ring) = self.v.body().locals[c.local].kind else { return None };
        let consumes = self.role.is_none_or(|t| self.v.kernel.rings[ring].consumer == t);
        let side = if consumes { Side::Reads } else { Side::Writes };
        Some(Token { local: c.local, ring, side, optional: true, span })
    }

    fn loop_end(&mut self, inner: &State, before: &State, carried: &[Token], span: Span) {
        if inner.dead {
            return;
        }
        for t in &before.live {
            if !inner.live.iter().any(|o| o.local == t.local) {
                let name = self.v.local_name(t.local);
                let place = inner.gone.get(&t.local).copied().unwrap_or(span);
                self.v
                    .error(
                        codes::TOKEN_BRANCH,
                        place,
                        format!("`{name}` is given back in every round of this loop"),
                    )
                    .also(span, "the loop; the slot was taken before it")
                    .help("give it back after the loop, or carry it: `carry (h: slot(ring)? = none)`");
            }
        }
        for t in carried {
            let name = self.v.local_name(t.local);
            if inner.live.iter().any(|o| o.local == t.local) {
                let message = format!("`{name}` of the round before is still held at the end of this one");
                self.v
                    .error(codes::TOKEN_KEPT, span, message)
                    .help(format!("give it back: `release {name}`"));
            }
            if !inner.next.contains_key(&t.local) {
                let message = format!("this loop carries `{name}`, but says nothing of its next value");
                self.v.error(codes::CARRY, span, message).help("end the body with `next r`, or `next none`");
            }
        }
        let known = |t: &Token| before.live.iter().chain(carried).any(|o| o.local == t.local);
        let live = inner.live.iter().filter(|t| !known(t)).copied().collect();
        self.end(&State { live, ..State::default() }, 0, "the loop's body");
        self.turns_end(inner, &before.turns, span);
    }

    fn next(&mut self, carry: LocalId, value: Option<LocalId>, span: Span, state: &mut State) {
        if let Some(l) = value {
            self.take_out(l, span, state, "carried on");
            // what a queue does with the slot goes on under its new name
            for f in &mut state.flight {
                if f.2 == Busy::Slot(l) {
                    f.2 = Busy::Slot(carry);
                }
            }
        }
        if let Some(first) = state.next.insert(carry, span) {
            let name = self.v.local_name(carry);
            self.v
                .error(codes::CARRY, span, format!("`{name}` gets two values for the next round"))
                .also(first, "the first");
        }
    }

    // --- tokens ----------------------------------------------------------------------------------------------

    /// Removes a token that must be alive.
    fn take_out(&mut self, l: LocalId, span: Span, state: &mut State, how: &str) -> Option<Token> {
        if let Some(at) = state.live.iter().position(|t| t.local == l) {
            state.gone.insert(l, span);
            return Some(state.live.remove(at));
        }
        if !state.dead {
            let name = self.v.local_name(l);
            let report = self
                .v
                .error(codes::TOKEN_TWICE, span, format!("`{name}` is {how}, but is no longer held"))
                .help("each slot is given back exactly once");
            if let Some(&place) = state.gone.get(&l) {
                report.also(place, "it was given back here");
            }
        }
        None
    }

    fn side_of_ring(&mut self, ring: RingId, side: Side, span: Span) {
        let r = &self.v.kernel.rings[ring];
        let team = if side == Side::Writes { r.producer } else { r.consumer };
        let word = if side == Side::Writes { "filled" } else { "read" };
        let right = match self.role {
            Some(role) => role == team,
            None => !self.roles && r.producer == r.consumer,
        };
        if right {
            return;
        }
        let name = &self.v.kernel.teams[team].name;
        let message = format!("`{}` is {word} by `{name}` only", r.name);
        let place = self.v.kernel.rings.span(ring);
        self.v
            .error(codes::TOKEN_ROLE, span, message)
            .also(place, "its teams are declared here")
            .help(format!("move this into `role {name}`"));
    }

    fn of_team(&mut self, team: TeamId, what: &str, span: Span) {
        if self.role == Some(team) || (self.role.is_none() && !self.roles) {
            return;
        }
        let name = &self.v.kernel.teams[team].name;
        self.v
            .error(codes::TOKEN_ROLE, span, format!("{what} belongs to `{name}`"))
            .help(format!("move this into `role {name}`"));
    }

    fn op(&mut self, results: &[LocalId], op: &Op, span: Span, state: &mut State) {
        match op {
            Op::Acquire { ring } | Op::Wait { ring } => {
                let side = if matches!(op, Op::Acquire { .. }) { Side::Writes } else { Side::Reads };
                self.side_of_ring(*ring, side, span);
                for &local in results {
                    state.gone.remove(&local);
                    state.live.push(Token { local, ring: *ring, side, optional: false, span });
                }
                if side == Side::Reads {
                    let n = state.live.iter().filter(|t| t.ring == *ring && t.side == side).count();
                    let most = self.held.entry(*ring).or_default();
                    *most = (*most).max(u32::try_from(n).unwrap_or(u32::MAX));
                }
            }
            Op::Commit { token } => self.give_back(*token, Side::Writes, span, state),
            Op::Release { token } => self.give_back(*token, Side::Reads, span, state),
            Op::Await { queue, keep } => {
                let q = &self.v.kernel.queues[*queue];
                self.of_team(q.team, &format!("`{}`", q.name), span);
                if let Some(max) = q.max_keep.filter(|max| keep > max) {
                    let message = format!("`{}` keeps at most {max} groups in flight, not {keep}", q.name);
                    self.v
                        .error(codes::QUEUE_KEEP, span, message)
                        .help(format!("write `await {} keep {max}`", q.name));
                }
                let mut groups: Vec<u32> =
                    state.flight.iter().filter(|f| f.0 == *queue).map(|f| f.1).collect();
                groups.dedup();
                let done = groups.len().saturating_sub(*keep as usize);
                let finished = groups[..done].to_vec();
                state.flight.retain(|f| f.0 != *queue || !finished.contains(&f.1));
            }
            Op::Take { turn } | Op::Pass { turn } => {
                self.turn(*turn, matches!(op, Op::Take { .. }), span, state)
            }
            Op::Issue { queue, a, b, into, .. } => self.issue(*queue, [a, b], *into, span, state),
            Op::CopyAsync { queue: Some(queue), .. } => {
                let q = &self.v.kernel.queues[*queue];
                self.of_team(q.team, &format!("`{}`", q.name), span);
            }
            _ => {}
        }
    }

    fn give_back(&mut self, l: LocalId, side: Side, span: Span, state: &mut State) {
        let word = if side == Side::Writes { "committed" } else { "released" };
        if state.dead {
            return;
        }
        let older = state.live.iter().position(|t| t.local == l).and_then(|at| {
            let t = state.live[at];
            state.live[..at].iter().find(|o| o.ring == t.ring && o.side == t.side && !o.optional).copied()
        });
        let Some(t) = self.take_out(l, span, state, word) else { return };
        let name = self.v.local_name(l);
        if t.side != side {
            let (did, write) = match t.side {
                Side::Writes => ("acquired to be filled", "commit"),
                Side::Reads => ("waited for to be read", "release"),
            };
            self.v
                .error(codes::SLOT_ACCESS, span, format!("`{name}` was {did}"))
                .also(t.span, "taken here")
                .help(format!("write `{write} {name}`"));
        }
        if let Some(o) = older {
            let first = self.v.local_name(o.local);
            self.v
                .error(
                    codes::TOKEN_ORDER,
                    span,
                    format!("`{first}` was taken before `{name}` and is still held"),
                )
                .also(o.span, "taken here")
                .help(format!(
                    "slots of a ring are given back in the order in which they were taken: first `{first}`"
                ));
        }
        if let Some(f) = state.flight.iter().find(|f| f.2 == Busy::Slot(l)) {
            let queue = &self.v.kernel.queues[f.0].name;
            self.v
                .error(
                    codes::IN_FLIGHT,
                    span,
                    format!("`{name}` is given back while `{queue}` still reads it"),
                )
                .also(f.3, "issued here")
                .help(format!("write `await {queue} keep n` before"));
        }
    }

    fn turn(&mut self, turn: TurnId, take: bool, span: Span, state: &mut State) {
        let t = &self.v.kernel.turns[turn];
        self.of_team(t.team, &format!("`{}`", t.name), span);
        let at = state.turns.iter().position(|&(o, _)| o == turn);
        match (take, at) {
            (true, None) => state.turns.push((turn, span)),
            (false, Some(at)) => {
                state.turns.remove(at);
            }
            (true, Some(at)) => {
                let first = state.turns[at].1;
                self.v
                    .error(codes::TURN_PAIRS, span, format!("`{}` is taken twice", t.name))
                    .also(first, "taken here")
                    .help(format!("write `pass {}` between", t.name));
            }
            (false, None) => {
                self.v
                    .error(codes::TURN_PAIRS, span, format!("`{}` is passed, but was not taken", t.name))
                    .help(format!("write `take {}` before", t.name));
            }
        }
    }

    fn issue(
        &mut self,
        queue: QueueId,
        operands: [&MatOperand; 2],
        into: LocalId,
        span: Span,
        state: &mut State,
    ) {
        let q = &self.v.kernel.queues[queue];
        self.of_team(q.team, &format!("`{}`", q.name), span);
        if q.engine != Engine::Matrix {
            let message = format!("`{}` is not a queue of products", q.name);
            self.v
                .error(codes::ROLE_TEAM, span, message)
                .help(format!("declare it `queue {} of …: matrix`", q.name));
        }
        state.issued += 1;
        let group = state.issued;
        let mut add = |busy| state.flight.push((queue, group, busy, span));
        add(Busy::Accumulates(into));
        for m in operands {
            match m {
                MatOperand::Memory { region: Region { mem: Mem::Slot { token, .. }, .. }, .. } => {
                    add(Busy::Slot(*token))
                }
                MatOperand::Value(e) => {
                    if let Expr::Local(l) = self.v.kernel.body.exprs[*e] {
                        add(Busy::Reads(l));
                    }
                }
                MatOperand::Memory { .. } => {}
            }
        }
    }

    // --- uses ------------------------------------------------------------------------------------------------

    /// Tiles of slots are used through live tokens, written by the producer and read by the consumer.
    fn slots(&mut self, s: &Stmt, state: &State) {
        let mut uses: Vec<(LocalId, bool, Span)> = Vec::new();
        each_below(self.v.body(), &operands_of(&s.kind), |e, expr| {
            if let Expr::Element { mem: Mem::Slot { token, .. }, .. } = expr {
                uses.push((*token, false, self.v.span(e)));
            }
        });
        let written = written_by(&s.kind);
        if let Some(Mem::Slot { token, .. }) = written {
            uses.push((token, true, s.span));
        }
        if let StmtKind::Op { op, .. } = &s.kind {
            super::scope::mems_of(op, &mut |mem| {
                if let Mem::Slot { token, .. } = mem
                    && Some(mem) != written
                {
                    uses.push((token, false, s.span));
                }
            });
        }
        let by_copy = matches!(&s.kind, StmtKind::Op { op: Op::CopyAsync { .. }, .. });
        for (l, writes, span) in uses {
            let span = if span == Span::default() { s.span } else { span };
            self.slot_use(l, writes, by_copy, span, state);
        }
    }

    fn slot_use(&mut self, l: LocalId, writes: bool, by_copy: bool, span: Span, state: &State) {
        if state.dead {
            return;
        }
        let name = self.v.local_name(l);
        let Some(t) = state.live.iter().find(|t| t.local == l) else {
            let report = self
                .v
                .error(codes::TOKEN_TWICE, span, format!("`{name}` is used, but is no longer held"))
                .help("use a slot's tiles before it is given back");
            if let Some(&place) = state.gone.get(&l) {
                report.also(place, "it was given back here");
            }
            return;
        };
        let ring = &self.v.kernel.rings[t.ring];
        if t.optional {
            self.v
                .error(
                    codes::SLOT_ACCESS,
                    span,
                    format!("`{name}` may be `none`, so its tiles cannot be used"),
                )
                .help("use the slot in the round that took it");
        } else if writes != (t.side == Side::Writes) {
            let (does, did) =
                if writes { ("written", "waited for to be read") } else { ("read", "acquired to be filled") };
            self.v
                .error(codes::SLOT_ACCESS, span, format!("`{name}` is {does}, but was {did}"))
                .also(t.span, "taken here");
        } else if writes && !by_copy && ring.fill == Fill::Counted {
            self.v
                .error(
                    codes::SLOT_ACCESS,
                    span,
                    format!("`{}` is filled by copies, which are counted", ring.name),
                )
                .help("write `copy.async ... -> ...`, or declare the ring with `fill generic`");
        }
    }

    /// Accumulators and operands that a queue works on stay untouched.
    fn in_flight(&mut self, s: &Stmt, state: &State) {
        if state.flight.is_empty() || state.dead {
            return;
        }
        let issue = match &s.kind {
            StmtKind::Op { op: Op::Issue { queue, into, .. }, .. } => Some((*queue, *into)),
            _ => None,
        };
        let mut read: Vec<LocalId> = Vec::new();
        each_below(self.v.body(), &operands_of(&s.kind), |_, e| {
            if let Expr::Local(l) = e {
                read.push(*l);
            }
        });
        let written = match &s.kind {
            StmtKind::For { .. } | StmtKind::Parallel { .. } | StmtKind::Roles(_) => Vec::new(),
            kind => kind.defines().to_vec(),
        };
        let clash = state.flight.iter().find(|f| match f.2 {
            Busy::Accumulates(l) => {
                let chained = issue == Some((f.0, l));
                !chained && (read.contains(&l) || written.contains(&l))
            }
            Busy::Reads(l) => written.contains(&l),
            Busy::Slot(_) => false,
        });
        let Some(&(queue, _, busy, place)) = clash else { return };
        let (Busy::Accumulates(l) | Busy::Reads(l) | Busy::Slot(l)) = busy;
        let (name, queue) = (self.v.local_name(l), &self.v.kernel.queues[queue].name);
        self.v
            .error(codes::IN_FLIGHT, s.span, format!("`{name}` is touched while `{queue}` works on it"))
            .also(place, "issued here")
            .help(format!("write `await {queue} keep 0` before"));
    }
}

/// Whether a body can be left or cut short.
fn leaves(body: &Block) -> bool {
    body.iter().any(|s| match &s.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::If { then, other, .. } => leaves(then) || leaves(other),
        _ => false,
    })
}
