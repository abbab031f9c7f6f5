//! The walk of one block along one way.

use super::interval::{Fault, Intervals};
use super::steps::{Step, Touch};
use super::values::{Found, OPEN, Val, Values, arithmetic};
use pantile_ir::codes;
use pantile_ir::diag::{Code, Diagnostic};
use pantile_ir::effects::{Obj, Sync, sync};
use pantile_ir::hash::{Set, Words};
use pantile_ir::program::*;
use pantile_ir::span::Span;
use pantile_ir::target::Arch;
use pantile_ir::verify::{KernelInfo, Level};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Touches that a loop may cost if all of its steps are walked.
const WORK: u64 = 1 << 15;
/// Steps of a loop that costs more, or whose trips are unknown; a ring of two slots has met itself by then. The first
/// block takes one more, so that both of two slots come last somewhere.
const TRIPS: i64 = 3;
/// Rounds of a `while` whose condition is known.
const ROUNDS: usize = 64;

/// How threads move together.
pub struct Machine {
    warp: usize,
    lanes: usize,
    group: usize,
}

impl Machine {
    pub fn of(arch: &Arch) -> Machine {
        let t = &arch.facts.threads;
        let warp = t.warp_size.as_ref().map_or(1, |w| w.value).max(1) as usize;
        let lanes = t.shuffle_width.as_ref().map_or(warp, |w| w.value.max(1) as usize);
        let group = t.group_size.as_ref().map_or(warp, |w| w.value.max(1) as usize);
        Machine { warp, lanes: lanes.min(warp), group }
    }
}

/// Whether each thread comes here: not, perhaps, perhaps but all of its warp or none, for sure.
#[derive(Clone, Hash)]
pub struct Mask {
    pub of: Rc<[u8]>,
    /// all come for sure; nobody does
    all: bool,
    none: bool,
}

const GONE: u8 = Mask::GONE;
const MAYBE: u8 = 1;
const AS_WARP: u8 = 2;
const SURE: u8 = Mask::SURE;

impl Mask {
    pub const GONE: u8 = 0;
    pub const SURE: u8 = 3;

    fn all(threads: usize) -> Mask {
        vec![SURE; threads].into_iter().collect()
    }

    /// Of these threads, those that also pass a test.
    fn map(&self, f: impl Fn(usize, u8) -> u8) -> Mask {
        self.of.iter().enumerate().map(|(t, &m)| f(t, m)).collect()
    }

    fn gone(&self) -> Mask {
        self.map(|_, _| GONE)
    }
}

impl FromIterator<u8> for Mask {
    fn from_iter<I: IntoIterator<Item = u8>>(list: I) -> Mask {
        let of: Rc<[u8]> = list.into_iter().collect();
        let (low, high) = of.iter().fold((SURE, GONE), |(a, b), &m| (a.min(m), b.max(m)));
        Mask { all: low == SURE, none: high == GONE, of }
    }
}

/// How much of a thread's coming is left after it left the step or the loop.
#[derive(Hash)]
struct Jumps {
    of_loop: Vec<u8>,
    of_step: Vec<u8>,
    any: bool,
}

pub struct Replay<'a> {
    k: &'a Kernel,
    info: &'a KernelInfo,
    machine: &'a Machine,
    pub values: Values<'a>,
    pub intervals: Intervals,
    jumps: Vec<Jumps>,
    /// Open statements: which, how far, and who is in it.
    open: Vec<(*const Stmt, i64, Rc<[i64]>, Mask)>,
    /// States from which some way went on.
    pub seen: Set<u64>,
    /// A choice was made, and no state with an empty interval was looked up since.
    forked: bool,
    /// The rest of this way is known.
    done: bool,
    /// choices of this way: the one taken, and the last there is
    pub script: Vec<(i64, i64)>,
    pub at: usize,
    pub fault: Option<Box<Diagnostic>>,
}

impl<'a> Replay<'a> {
    pub fn new(k: &'a Kernel, info: &'a KernelInfo, machine: &'a Machine, sample: super::Sample) -> Self {
        let threads = k.threads.as_ref().map_or(1, Threads::count) as usize;
        Replay {
            k,
            info,
            machine,
            values: Values::new(k, threads, sample),
            intervals: Intervals::new(k, threads, machine.warp),
            jumps: Vec::new(),
            open: Vec::new(),
            seen: Set::default(),
            forked: false,
            done: false,
            script: Vec::new(),
            at: 0,
            fault: None,
        }
    }

    /// One way, which takes these choices first.
    pub fn start(&mut self, steps: &[Step<'a>], sample: super::Sample, script: Vec<(i64, i64)>) {
        self.values.restart(sample);
        self.intervals.restart();
        (self.script, self.at, self.forked, self.done) = (script, 0, false, false);
        self.block(steps, &Mask::all(self.values.threads));
        self.close();
    }

    /// A choice was made in the statement that ends here, or a barrier came after one: does another way go on from the
    /// same state?
    fn merge(&mut self, s: &Step<'a>) {
        if self.done || self.fault.is_some() || self.at < self.script.len() {
            return;
        }
        let mut h = Words::default();
        std::ptr::from_ref(s.stmt).hash(&mut h);
        self.open.hash(&mut h);
        self.jumps.hash(&mut h);
        self.values.state(&mut h);
        self.intervals.state(&mut h);
        self.done = !self.seen.insert(h.finish());
    }

    fn choose(&mut self, last: i64) -> i64 {
        if self.at == self.script.len() {
            self.script.push((0, last));
        }
        self.at += 1;
        self.forked = true;
        self.script[self.at - 1].0
    }

    /// The block waits or ends.
    fn close(&mut self) {
        if self.fault.is_none()
            && let Some(fault) = self.intervals.close()
        {
            self.fault = Some(Box::new(self.report(&fault)));
        }
    }

    fn error(&mut self, code: Code, span: Span, message: String) {
        // what lies before it comes first
        self.close();
        self.fault.get_or_insert_with(|| Box::new(Diagnostic::error(code, span, message)));
    }

    fn block(&mut self, steps: &[Step<'a>], mask: &Mask) {
        for s in steps {
            let left = self.jumps.last().filter(|j| j.any);
            let left: Option<Mask> = left.map(|j| mask.map(|t, m| m.min(j.of_loop[t]).min(j.of_step[t])));
            let mask = left.as_ref().unwrap_or(mask);
            if self.done || self.fault.is_some() || mask.none {
                break;
            }
            let chosen = self.at;
            self.step(s, mask);
            let empty = self.intervals.is_empty();
            if self.at > chosen || self.forked && empty {
                self.merge(s);
                self.forked &= !empty;
            }
        }
        // what had a name only here
        for s in steps {
            if let StmtKind::Let { local, .. } = &s.stmt.kind {
                self.values.drop(*local);
            }
        }
    }

    /// Walks a statement's block.
    fn inside(&mut self, s: &Step<'a>, block: usize, at: i64, rest: Rc<[i64]>, mask: &Mask) {
        if let Some(steps) = s.blocks.get(block) {
            self.open.push((s.stmt, at, rest, mask.clone()));
            self.block(steps, mask);
            self.open.pop();
        }
    }

    fn set(&mut self, l: LocalId, new: &Val, mask: &Mask) {
        if mask.all {
            return self.values.set(l, new.clone());
        }
        let old = self.values.get(l);
        let one = |(t, &m): (usize, &u8)| match m {
            SURE => new.at(t),
            GONE => old.at(t),
            _ if old.at(t) == new.at(t) => old.at(t),
            _ => OPEN,
        };
        let merged: Rc<[i64]> = mask.of.iter().enumerate().map(one).collect();
        self.values.set(l, Val::Each(merged));
    }

    fn step(&mut self, s: &Step<'a>, mask: &Mask) {
        self.touch(s, mask);
        match &s.stmt.kind {
            // a thread that is not here does not come to where the name is read
            StmtKind::Let { local, value } => {
                let v = self.values.eval(*value);
                self.values.set(*local, v);
            }
            StmtKind::Assign { local, value } => {
                let v = self.values.eval(*value);
                self.set(*local, &v, mask);
            }
            StmtKind::Update { local, op, value } => {
                let (a, b) = (self.values.get(*local), self.values.eval(*value));
                let one = |t| match (a.at(t), b.at(t)) {
                    (OPEN, _) | (_, OPEN) => OPEN,
                    (a, b) => arithmetic(op.binary(), a, b).unwrap_or(OPEN),
                };
                let v = match (&a, &b) {
                    (Val::One(_), Val::One(_)) => Val::One(one(0)),
                    _ => Val::Each((0..self.values.threads).map(one).collect()),
                };
                self.set(*local, &v, mask);
            }
            StmtKind::Op { results, op } => {
                self.meet(op, mask, s.stmt.span);
                results.iter().for_each(|&l| self.set(l, &Val::One(OPEN), mask));
            }
            StmtKind::If { cond, .. } => {
                let v = self.values.eval(*cond);
                let open = self.unknown(&v, mask);
                let level = self.level(*cond);
                let side = if open && level == SURE { self.choose(1) } else { OPEN };
                let pick = |yes: bool| -> Mask {
                    let keep = |c: i64, m: u8| if (c != 0) == yes { m } else { GONE };
                    match &v {
                        Val::One(c) if *c != OPEN && (*c != 0) == yes => mask.clone(),
                        Val::One(c) if *c != OPEN => mask.gone(),
                        _ => mask.map(|t, m| match v.at(t) {
                            OPEN if side == OPEN => m.min(level),
                            OPEN => keep(side, m),
                            c => keep(c, m),
                        }),
                    }
                };
                // what the second side hangs on
                let rest: Rc<[i64]> = match &v {
                    Val::Each(list) if s.blocks.get(1).is_some_and(|b| !b.is_empty()) => list.clone(),
                    _ => [side].into(),
                };
                for (block, yes) in [(0, true), (1, false)] {
                    self.inside(s, block, block as i64, rest.clone(), &pick(yes));
                }
            }
            StmtKind::For { var, kind: LoopKind::Vectorized, segments, .. }
                if self.vector(s, *var, segments, mask) => {}
            StmtKind::For { var, named, segments, .. } => {
                self.jumps.push(Jumps::none(mask.of.len()));
                for (n, g) in segments.iter().enumerate() {
                    for (&l, &e) in named.iter().zip(&g.values) {
                        let v = self.values.eval(e);
                        self.values.set(l, v);
                    }
                    self.segment(s, *var, (n, g), mask);
                }
                self.jumps.pop();
            }
            StmtKind::While { cond, .. } => self.rounds(s, *cond, mask),
            StmtKind::Break => self.jump(mask, true),
            StmtKind::Continue => self.jump(mask, false),
            _ => (0..s.blocks.len()).for_each(|b| self.inside(s, b, b as i64, [].into(), mask)),
        }
    }

    fn unknown(&self, v: &Val, mask: &Mask) -> bool {
        match v {
            Val::One(v) => *v == OPEN && !mask.none,
            Val::Each(list) => mask.of.iter().zip(list.iter()).any(|(&m, &v)| m != GONE && v == OPEN),
        }
    }

    /// How sure a thread is of what its team does where the value is unknown.
    fn level(&self, e: ExprId) -> u8 {
        match self.info.expr(e).level {
            Level::Thread => MAYBE,
            Level::Warp | Level::Group => AS_WARP,
            Level::Block | Level::Cluster | Level::Grid => SURE,
        }
    }

    fn segment(&mut self, s: &Step<'a>, var: LocalId, (number, g): (usize, &Segment), mask: &Mask) {
        let (lo, hi, by) = (self.values.eval(g.lo), self.values.eval(g.hi), self.values.eval(g.step));
        let open = self.unknown(&lo, mask) || self.unknown(&hi, mask) || self.unknown(&by, mask);
        let level = self.level(g.lo).min(self.level(g.hi));
        let guess = match (open, level) {
            (false, _) => 0,
            (true, SURE) => self.choose(TRIPS),
            (true, _) => 2,
        };
        let (lo, by) = (lo.or(0), by.or(1));
        let by = match (&lo, &hi, &by) {
            (Val::One(lo), Val::One(hi), Val::One(by)) if !open && self.shared_out(g) => {
                Val::One((*by).min((hi - lo) / TRIPS).max(1))
            }
            _ => by,
        };
        let trips: Vec<i64> = (0..mask.of.len())
            .map(|t| match (mask.of[t], hi.at(t)) {
                (GONE, _) => 0,
                _ if open => guess,
                (_, hi) => (hi - lo.at(t) + by.at(t) - 1).div_euclid(by.at(t).max(1)).max(0),
            })
            .collect();
        let most = trips.iter().copied().max().unwrap_or(0);
        let body: u64 = s.blocks.iter().flatten().map(|s| s.cost).sum();
        let cheap = (most as u64).saturating_mul(body).saturating_mul(mask.of.len() as u64) <= WORK;
        let few = TRIPS + i64::from(self.values.first_block());
        // an even number is left out: what follows meets the slots as it would
        let most = if cheap || most <= few { most } else { few - (most - few) % 2 };
        let least = trips.iter().copied().min().unwrap_or(0);
        let sure = if open { level } else { SURE };
        // which steps are still to come
        let mut rest = vec![number as i64, most, sure.into()];
        rest.extend((least != most).then_some(&trips).into_iter().flatten());
        match &by {
            Val::One(by) => rest.push(*by),
            Val::Each(list) => rest.extend(list.iter()),
        }
        let rest: Rc<[i64]> = rest.into();
        for i in 0..most {
            let on = match sure == SURE && i < least {
                true => mask.clone(),
                false => mask.map(|t, m| if i < trips[t] { m.min(sure) } else { GONE }),
            };
            let at = lo.advanced(i, &by);
            self.values.set(var, at);
            if !self.turn(s, i, rest.clone(), &on) {
                break;
            }
        }
        self.values.drop(var);
    }

    /// A loop over work that blocks share out among them, as much as sizes of tensors make it. A sample may have less
    /// work than there are blocks; it is walked with fewer of them, so that a block takes more than one piece.
    fn shared_out(&self, g: &Segment) -> bool {
        let body = &self.k.body;
        let mut open = vec![g.hi];
        let mut by_size = false;
        while let Some(e) = open.pop() {
            by_size |= matches!(body.exprs[e], Expr::Dim(_) | Expr::Arg(_));
            body.exprs[e].operands(|o| open.push(o));
        }
        let number = |e: ExprId| matches!(body.exprs[e], Expr::Local(l) if self.k.grid.locals.contains(&l));
        by_size && number(g.lo) && body.index_constant(g.step).is_some_and(|n| n > 1)
    }

    /// One step of a loop; whether somebody is left for the next.
    fn turn(&mut self, s: &Step<'a>, round: i64, rest: Rc<[i64]>, on: &Mask) -> bool {
        if let Some(j) = self.jumps.last_mut().filter(|j| j.any) {
            j.of_step.fill(SURE);
        }
        self.inside(s, 0, round, rest, on);
        !self.done
            && self.fault.is_none()
            && self.jumps.last().is_none_or(|j| j.of_loop.iter().any(|&m| m != GONE))
    }

    fn rounds(&mut self, s: &Step<'a>, cond: ExprId, mask: &Mask) {
        self.jumps.push(Jumps::none(mask.of.len()));
        let level = self.level(cond);
        let mut on = mask.clone();
        let mut guess = None;
        for round in 0..ROUNDS {
            let v = self.values.eval(cond);
            if self.unknown(&v, &on) {
                let most = match guess {
                    Some(n) => n,
                    None if level == SURE => self.choose(TRIPS),
                    None => 2,
                };
                guess = Some(most);
                if round as i64 >= most {
                    break;
                }
            }
            on = on.map(|t, m| match v.at(t) {
                0 => GONE,
                OPEN => m.min(level),
                _ => m,
            });
            let rest = [guess.unwrap_or(OPEN)].into();
            if on.none || !self.turn(s, round as i64, rest, &on) {
                break;
            }
        }
        self.jumps.pop();
    }

    fn jump(&mut self, mask: &Mask, of_loop: bool) {
        if let Some(j) = self.jumps.last_mut() {
            j.any = true;
            let list = if of_loop { &mut j.of_loop } else { &mut j.of_step };
            for (left, &m) in list.iter_mut().zip(mask.of.iter()) {
                *left = match m {
                    GONE => *left,
                    SURE => GONE,
                    maybe => maybe.min(*left),
                };
            }
        }
    }

    fn meet(&mut self, op: &Op, mask: &Mask, span: Span) {
        let whole = |n: usize| mask.of.chunks(n).all(|c| c.iter().all(|&m| m == c[0] && m != MAYBE));
        let all = mask.all;
        let group = self.machine.group;
        match sync(op) {
            Some(Sync::Barrier(team)) => {
                let block = match team {
                    Team::Block | Team::Cluster => true,
                    Team::Group => mask.of.len() <= group,
                    Team::Warp | Team::Named(_) => false,
                };
                if block && !all || !block && !whole(self.machine.warp) {
                    let part = if block { "block" } else { "warp" };
                    let message = format!("only a part of the {part} comes to this barrier");
                    return self.error(codes::UNORDERED, span, message);
                }
                match block || mask.all && mask.of.len() <= self.machine.warp {
                    true => self.close(),
                    false => self.intervals.wait_warps(mask),
                }
            }
            Some(Sync::Exchange(team)) => {
                let lanes = match op {
                    Op::Shuffle { width: Some(n), .. } => *n as usize,
                    Op::Shuffle { .. } => self.machine.lanes,
                    _ => self.machine.warp,
                };
                let fits = match team {
                    Team::Warp => whole(lanes.clamp(1, self.machine.warp)),
                    Team::Group => whole(group),
                    _ => all,
                };
                if !fits {
                    let message =
                        "values are exchanged here, and only a part of the threads comes".to_string();
                    self.error(codes::PARTIAL_EXCHANGE, span, message);
                }
            }
            _ => {}
        }
    }

    /// A loop whose steps touch elements side by side, as one wide touch; whether it is one.
    fn vector(&mut self, s: &Step<'a>, var: LocalId, segments: &[Segment], mask: &Mask) -> bool {
        let ([g], [inner]) = (segments, &s.blocks[0][..]) else { return false };
        let number = |e| self.k.body.index_constant(e);
        let (Some(lo), Some(hi), Some(1)) = (number(g.lo), number(g.hi), number(g.step)) else {
            return false;
        };
        let alone = matches!(inner.stmt.kind, StmtKind::Store { .. }) && inner.blocks.is_empty();
        if !alone || hi - lo < 2 {
            return false;
        }
        let mut first: Vec<(&Touch, SmallVec<[Found; 2]>)> = Vec::new();
        for touch in &inner.touches {
            let Some(list) = &touch.index else { return false };
            let mut lane = |i: i64| -> SmallVec<[Found; 2]> {
                self.values.set(var, Val::One(i));
                list.iter().map(|&e| self.values.place(e)).collect()
            };
            let start = lane(lo);
            let Some((last, rest)) = start.split_last().filter(|_| start.iter().all(|v| !v.open)) else {
                return false;
            };
            let in_line = |(n, v): (i64, SmallVec<[Found; 2]>)| {
                let (at, others) = v.split_last().unwrap_or((last, &[]));
                at.val.is_ahead(&last.val, n) && rest.iter().zip(others).all(|(x, y)| x.hash == y.hash)
            };
            if !(1..hi - lo).map(|n| (n, lane(lo + n))).all(in_line) {
                return false;
            }
            first.push((touch, start));
        }
        self.intervals.statement(inner.stmt.span);
        for (touch, index) in first {
            self.intervals.touch(touch.obj, Some(index), touch.kind, mask, (hi - lo) as u64);
        }
        self.values.drop(var);
        true
    }

    fn touch(&mut self, s: &Step<'a>, mask: &Mask) {
        if s.touches.is_empty() {
            return;
        }
        self.intervals.statement(s.stmt.span);
        for touch in &s.touches {
            let index: Option<SmallVec<[Found; 2]>> =
                touch.index.as_ref().map(|list| list.iter().map(|&e| self.values.place(e)).collect());
            self.intervals.touch(touch.obj, index, touch.kind, mask, 1);
        }
    }

    fn name(&self, obj: Obj) -> &str {
        match obj {
            Obj::Shared(b) => &self.k.buffers[b].name,
            Obj::Global(a) => &self.k.args[a].name,
            _ => "",
        }
    }

    fn report(&self, fault: &Fault) -> Diagnostic {
        match fault {
            Fault::Race { obj, threads: [a, b], spans: [first, second] } => {
                let name = self.name(*obj);
                let message =
                    format!("threads {a} and {b} meet here in `{name}`, and no barrier lies between them");
                Diagnostic::error(codes::UNORDERED, *second, message).also(*first, "the other access")
            }
            Fault::Other { mine, other, span } => {
                let (mine, other) = (self.name(*mine), self.name(*other));
                let message = format!("`{mine}` is read here where `{other}` was written over it");
                Diagnostic::error(codes::UNORDERED, *span, message)
            }
        }
    }
}

impl Jumps {
    fn none(n: usize) -> Jumps {
        Jumps { of_loop: vec![SURE; n], of_step: vec![SURE; n], any: false }
    }
}
