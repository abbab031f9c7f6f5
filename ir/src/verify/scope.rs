//! Names: declared once, used in sight, assigned before they are read, assigned only if they are `var`s; reducers
//! closed by their first read.

use super::{Verifier, operands_of};
use crate::codes;
use crate::program::*;
use crate::span::Span;
use std::collections::HashSet;

pub fn kernel(v: &mut Verifier) {
    let k = v.kernel;
    let mut walk = Walk {
        v,
        sight: vec![false; k.body.locals.len()],
        declared: vec![None; k.body.locals.len()],
        buffers: vec![false; k.buffers.len()],
        reducers: vec![Reduced::Hidden; k.reducers.len()],
        once_assigned: HashSet::new(),
        stamps: vec![0; k.body.exprs.len()],
        stamp: 0,
        scope: Vec::new(),
        exits: Vec::new(),
    };
    let threads = k.threads.iter().flat_map(|t| t.axes.iter().map(|&(l, _)| l));
    for l in k.grid.locals.iter().copied().chain(threads) {
        walk.sight[l.index()] = true;
        walk.declared[l.index()] = Some(k.span);
    }
    let mut state = State::default();
    walk.block(&k.stmts, &mut state);
}

/// What holds at a point of the program on some path that leads there.
#[derive(Clone, Default)]
struct State {
    /// `var`s in sight that may not have a value yet
    empty: HashSet<LocalId>,
    /// reducers that may have been read
    read: HashSet<ReducerId>,
    /// no path leads here
    dead: bool,
}

impl State {
    fn join(&mut self, other: State) {
        if other.dead {
            return;
        }
        if std::mem::take(&mut self.dead) {
            *self = other;
            return;
        }
        self.empty.extend(other.empty);
        self.read.extend(other.read);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Reduced {
    Hidden,
    InSight,
}

enum Thing {
    Local(LocalId),
    Buffer(BufferId),
    Reducer(ReducerId),
}

struct Walk<'v, 'a, 'o> {
    v: &'v mut Verifier<'a, 'o>,
    sight: Vec<bool>,
    /// Where a name was declared.
    declared: Vec<Option<Span>>,
    buffers: Vec<bool>,
    reducers: Vec<Reduced>,
    /// `var`s that some statement above assigns, for `once`.
    once_assigned: HashSet<LocalId>,
    stamps: Vec<u32>,
    stamp: u32,
    /// What the open blocks declare.
    scope: Vec<Vec<Thing>>,
    /// For each open loop what holds where it is left by `break`.
    exits: Vec<State>,
}

impl<'a> Walk<'_, 'a, '_> {
    fn block(&mut self, stmts: &'a Block, state: &mut State) {
        self.scope.push(Vec::new());
        for s in stmts {
            self.stmt(s, state);
        }
        for thing in self.scope.pop().unwrap_or_default() {
            match thing {
                Thing::Local(l) => self.sight[l.index()] = false,
                Thing::Buffer(b) => self.buffers[b.index()] = false,
                Thing::Reducer(r) => self.reducers[r.index()] = Reduced::Hidden,
            }
        }
    }

    fn stmt(&mut self, s: &'a Stmt, state: &mut State) {
        self.stamp += 1;
        let once = matches!(&s.kind, StmtKind::Op { op: Op::Once { .. }, .. });
        for e in operands_of(&s.kind) {
            self.read_expr(e, s.span, state, once);
        }
        match &s.kind {
            StmtKind::Let { local, .. } => self.declare(*local, &[LocalKind::Let, LocalKind::Var], s.span),
            StmtKind::Declare { local } => {
                self.declare(*local, &[LocalKind::Var], s.span);
                state.empty.insert(*local);
                self.once_assigned.remove(local);
            }
            StmtKind::Buffer { buffer } => {
                self.buffers[buffer.index()] = true;
                self.add(Thing::Buffer(*buffer));
            }
            StmtKind::Reducer { reducer } => {
                self.reducers[reducer.index()] = Reduced::InSight;
                state.read.remove(reducer);
                self.add(Thing::Reducer(*reducer));
            }
            StmtKind::Assign { local, .. } => self.assign(*local, s.span, state),
            StmtKind::Update { local, .. } => {
                self.read_local(*local, s.span, state, false);
                self.assign(*local, s.span, state);
            }
            StmtKind::Store { mem, .. } => self.memory(*mem, s.span),
            StmtKind::Op { results, op } => self.op(results, op, s.span, state),
            StmtKind::If { then, other, .. } => {
                let mut before = state.clone();
                self.block(then, state);
                self.block(other, &mut before);
                state.join(before);
            }
            StmtKind::For { var, named, carry, body, .. } => {
                self.for_loop((*var, named), carry, body, s.span, state)
            }
            StmtKind::While { cond, body } => {
                let exit = self.loop_body(body, state);
                // a loop that only `break` leaves
                if let Expr::Const { bits: 1, .. } = self.v.body().exprs[*cond] {
                    state.empty = exit.empty;
                    state.dead |= exit.dead;
                }
            }
            StmtKind::Parallel { vars, body, .. } => {
                self.scope.push(Vec::new());
                vars.iter().for_each(|&l| self.declare(l, &[LocalKind::Loop], s.span));
                self.loop_body(body, state);
                self.close();
            }
            StmtKind::Break => {
                let here = state.clone();
                if let Some(exit) = self.exits.last_mut() {
                    exit.join(here);
                }
                state.dead = true;
            }
            StmtKind::Continue => state.dead = true,
            StmtKind::Next { carry, value } => {
                self.read_local(*carry, s.span, state, false);
                if let Some(l) = value {
                    self.read_local(*l, s.span, state, false);
                }
            }
            StmtKind::Roles(roles) => {
                for r in roles {
                    self.scope.push(Vec::new());
                    if let Some(g) = r.group {
                        self.declare(g, &[LocalKind::Loop], r.span);
                    }
                    let mut inner = state.clone();
                    self.block(&r.body, &mut inner);
                    state.join(inner);
                    self.close();
                }
            }
        }
    }

    fn close(&mut self) {
        for thing in self.scope.pop().unwrap_or_default() {
            if let Thing::Local(l) = thing {
                self.sight[l.index()] = false;
            }
        }
    }

    fn add(&mut self, thing: Thing) {
        if let Some(scope) = self.scope.last_mut() {
            scope.push(thing);
        }
    }

    fn for_loop(
        &mut self,
        (var, named): (LocalId, &[LocalId]),
        carry: &[Carry],
        body: &'a Block,
        span: Span,
        state: &mut State,
    ) {
        for c in carry {
            if let Some(init) = c.init {
                self.read_local(init, span, state, false);
            }
            // what is carried is still held when the loop has ended
            if let LocalKind::Token(ring) = self.v.body().locals[c.local].kind {
                self.declare(c.local, &[LocalKind::Token(ring)], span);
            }
        }
        self.scope.push(Vec::new());
        self.declare(var, &[LocalKind::Loop], span);
        named.iter().for_each(|&l| self.declare(l, &[LocalKind::Loop], span));
        self.loop_body(body, state);
        self.close();
    }

    /// A body that runs any number of times: its second round sees what the first read.
    /// Gives what holds where `break` leaves it.
    fn loop_body(&mut self, body: &'a Block, state: &mut State) -> State {
        let mut inner = state.clone();
        let reads = reads_of(body);
        let updated = updates_of(body);
        inner.read.extend(reads.iter().filter(|r| updated.contains(*r) && self.outer(**r)));
        self.exits.push(State { dead: true, ..State::default() });
        self.block(body, &mut inner);
        state.read.extend(reads);
        self.exits.pop().unwrap_or_default()
    }

    /// Declared around the loop that is being entered.
    fn outer(&self, r: ReducerId) -> bool {
        self.reducers[r.index()] == Reduced::InSight
    }

    fn declare(&mut self, l: LocalId, kinds: &[LocalKind], span: Span) {
        let local = &self.v.body().locals[l];
        if let Some(first) = self.declared[l.index()] {
            let message = format!("`{}` is declared by two statements", local.name);
            self.v.error(codes::DECLARED_TWICE, span, message).also(first, "the first");
            return;
        }
        if !kinds.contains(&local.kind) {
            let message = format!("`{}` is not declared by a statement of this kind", local.name);
            self.v.error(codes::DECLARED_TWICE, span, message);
        }
        self.declared[l.index()] = Some(span);
        self.sight[l.index()] = true;
        self.add(Thing::Local(l));
    }

    fn assign(&mut self, l: LocalId, span: Span, state: &mut State) {
        if !self.in_sight(l, span) {
            return;
        }
        let local = &self.v.body().locals[l];
        if local.kind != LocalKind::Var {
            let message = format!("`{}` cannot be assigned", local.name);
            let place = self.declared[l.index()];
            let what = match local.kind {
                LocalKind::Let => "declared with `let`",
                LocalKind::Loop => "counts a loop",
                LocalKind::Grid(_) => "an index of the grid",
                LocalKind::Thread(_) => "an index of a thread",
                LocalKind::Token(_) | LocalKind::Var => "a slot",
            };
            let report = self.v.error(codes::NOT_MUTABLE, span, message).help("declare it with `var`");
            if let Some(place) = place {
                report.also(place, what);
            }
            return;
        }
        state.empty.remove(&l);
        self.once_assigned.insert(l);
    }

    fn in_sight(&mut self, l: LocalId, span: Span) -> bool {
        if self.sight[l.index()] {
            return true;
        }
        let name = self.v.local_name(l);
        let message = format!("`{name}` is used outside of the block that declares it");
        let place = self.declared[l.index()];
        let report =
            self.v.error(codes::NOT_IN_SIGHT, span, message).help("declare it before, in a block around");
        if let Some(place) = place {
            report.also(place, "declared here");
        }
        false
    }

    fn read_local(&mut self, l: LocalId, span: Span, state: &State, once: bool) {
        if !self.in_sight(l, span) || state.dead || !state.empty.contains(&l) {
            return;
        }
        // `once { e }` reads on one thread what that thread has assigned
        if once && self.once_assigned.contains(&l) {
            return;
        }
        let name = self.v.local_name(l);
        let place = self.declared[l.index()];
        let message = format!("`{name}` may not have a value yet");
        let report = self
            .v
            .error(codes::UNASSIGNED, span, message)
            .help(format!("give it one where it is declared: `var {name} = ...`"));
        if let Some(place) = place {
            report.also(place, "declared without a value");
        }
    }

    fn read_expr(&mut self, root: ExprId, span: Span, state: &State, once: bool) {
        let body = self.v.body();
        let mut open = vec![root];
        while let Some(e) = open.pop() {
            if std::mem::replace(&mut self.stamps[e.index()], self.stamp) == self.stamp {
                continue;
            }
            let place = match body.exprs.span(e) {
                s if s == Span::default() => span,
                s => s,
            };
            match &body.exprs[e] {
                Expr::Local(l) => self.read_local(*l, place, state, once),
                Expr::Element { mem, .. } => self.memory(*mem, place),
                _ => {}
            }
            body.exprs[e].operands(|o| open.push(o));
        }
    }

    fn memory(&mut self, mem: Mem, span: Span) {
        match mem {
            Mem::Tensor(_) => {}
            Mem::Slot { token, .. } => {
                self.in_sight(token, span);
            }
            Mem::Buffer(b) => {
                if !self.buffers[b.index()] {
                    let name = &self.v.kernel.buffers[b].name;
                    let message = format!("`{name}` is used outside of the block that declares it");
                    self.v
                        .error(codes::NOT_IN_SIGHT, span, message)
                        .help("declare it before, in a block around");
                }
            }
        }
    }

    fn op(&mut self, results: &[LocalId], op: &Op, span: Span, state: &mut State) {
        mems_of(op, &mut |mem| self.memory(mem, span));
        match op {
            Op::Gemm { into, init, .. } | Op::Issue { into, init, .. } => {
                // where its condition holds, `init` gives the accumulator its first value
                if matches!(init, Init::Accumulate) {
                    self.read_local(*into, span, state, false);
                }
                self.assign(*into, span, state);
            }
            Op::Commit { token } | Op::Release { token } => self.read_local(*token, span, state, false),
            Op::AllReduce { over: Over::Axes(axes), .. } => {
                axes.iter().for_each(|&l| self.read_local(l, span, state, false));
            }
            Op::Fold { reducer, .. } => {
                self.reducer(*reducer, span);
                if state.read.contains(reducer) && !state.dead {
                    let name = &self.v.kernel.reducers[*reducer].name;
                    let message = format!("`{name}` is updated after it was read");
                    self.v
                        .error(codes::REDUCER_AFTER_READ, span, message)
                        .help("a reducer is joined at its first read; use a second one for later updates");
                }
            }
            Op::Join { reducer } => {
                self.reducer(*reducer, span);
                state.read.insert(*reducer);
            }
            _ => {}
        }
        let kinds: Vec<LocalKind> = match op {
            Op::Acquire { ring } | Op::Wait { ring } => vec![LocalKind::Token(*ring)],
            _ => vec![LocalKind::Let],
        };
        results.iter().for_each(|&l| self.declare(l, &kinds, span));
    }

    fn reducer(&mut self, r: ReducerId, span: Span) {
        if self.reducers[r.index()] == Reduced::Hidden {
            let name = &self.v.kernel.reducers[r].name;
            let message = format!("`{name}` is used outside of the block that declares it");
            self.v.error(codes::NOT_IN_SIGHT, span, message);
        }
    }
}

/// The memories that an op names.
pub fn mems_of(op: &Op, f: &mut impl FnMut(Mem)) {
    match op {
        Op::Read { from, .. } => f(from.mem),
        Op::Write { to, .. } => f(to.mem),
        Op::Atomic { at, .. } => f(at.mem()),
        Op::CopyAsync { from, to, .. } => {
            f(from.mem);
            f(to.mem);
        }
        Op::Issue { a, b, .. } => {
            for m in [a, b] {
                if let MatOperand::Memory { region, .. } = m {
                    f(region.mem);
                }
            }
        }
        _ => {}
    }
}

fn reads_of(body: &Block) -> HashSet<ReducerId> {
    reducer_ops(body, |op| match op {
        Op::Join { reducer } => Some(*reducer),
        _ => None,
    })
}

fn updates_of(body: &Block) -> HashSet<ReducerId> {
    reducer_ops(body, |op| match op {
        Op::Fold { reducer, .. } => Some(*reducer),
        _ => None,
    })
}

fn reducer_ops(body: &Block, pick: impl Fn(&Op) -> Option<ReducerId>) -> HashSet<ReducerId> {
    let mut found = HashSet::new();
    walk(body, &mut |s| {
        if let StmtKind::Op { op, .. } = &s.kind {
            found.extend(pick(op));
        }
    });
    found
}
