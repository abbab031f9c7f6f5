//! The walk of one block along one way.

use super::shadow::{Found, Mark, Shadow};
use super::steps::Step;
use super::values::{OPEN, Val, Values, arithmetic};
use pantile_ir::codes;
use pantile_ir::diag::{Code, Diagnostic};
use pantile_ir::effects::{Obj, Sync, sync};
use pantile_ir::program::*;
use pantile_ir::span::Span;
use pantile_ir::target::Arch;
use pantile_ir::verify::{KernelInfo, Level};
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

/// Whether a thread comes here: not, perhaps, perhaps but all of its warp or none, for sure.
type Mask = Rc<[u8]>;
const GONE: u8 = 0;
const MAYBE: u8 = 1;
const AS_WARP: u8 = 2;
const SURE: u8 = 3;

/// How much of a thread's coming is left after it left the step or the loop.
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
    shadow: Shadow,
    /// barriers passed by the block, and by each warp
    blocks: u32,
    warps: Vec<u32>,
    time: u32,
    spans: Vec<Span>,
    jumps: Vec<Jumps>,
    /// choices of this way: the one taken, and the last there is
    pub script: Vec<(i64, i64)>,
    pub at: usize,
    pub fault: Option<Box<Diagnostic>>,
}

impl<'a> Replay<'a> {
    pub fn new(
        k: &'a Kernel,
        info: &'a KernelInfo,
        machine: &'a Machine,
        sample: super::Sample,
        script: Vec<(i64, i64)>,
    ) -> Self {
        let threads = k.threads.as_ref().map_or(1, Threads::count) as usize;
        Replay {
            k,
            info,
            machine,
            values: Values::new(k, threads, sample),
            shadow: Shadow::new(k, machine.warp),
            blocks: 1,
            warps: vec![1; threads.div_ceil(machine.warp)],
            time: 0,
            spans: Vec::new(),
            jumps: Vec::new(),
            script,
            at: 0,
            fault: None,
        }
    }

    pub fn start(&mut self, steps: &[Step<'a>]) {
        let all: Mask = vec![SURE; self.values.threads].into();
        self.block(steps, &all);
    }

    fn choose(&mut self, last: i64) -> i64 {
        if self.at == self.script.len() {
            self.script.push((0, last));
        }
        self.at += 1;
        self.script[self.at - 1].0
    }

    fn error(&mut self, code: Code, span: Span, message: String) {
        self.fault.get_or_insert_with(|| Box::new(Diagnostic::error(code, span, message)));
    }

    fn block(&mut self, steps: &[Step<'a>], mask: &Mask) {
        for s in steps {
            let mask = match self.jumps.last() {
                Some(j) if j.any => {
                    let left = mask.iter().zip(&j.of_loop).zip(&j.of_step);
                    left.map(|((&m, &a), &b)| m.min(a).min(b)).collect()
                }
                _ => mask.clone(),
            };
            if self.fault.is_some() || mask.iter().all(|&m| m == GONE) {
                return;
            }
            self.step(s, &mask);
        }
    }

    fn set(&mut self, l: LocalId, new: &Val, mask: &Mask) {
        if mask.iter().all(|&m| m == SURE) {
            return self.values.set(l, new.clone());
        }
        let old = self.values.get(l);
        let one = |(t, &m): (usize, &u8)| match m {
            SURE => new.at(t),
            GONE => old.at(t),
            _ if old.at(t) == new.at(t) => old.at(t),
            _ => OPEN,
        };
        let merged: Rc<[i64]> = mask.iter().enumerate().map(one).collect();
        self.values.set(l, Val::Each(merged));
    }

    fn step(&mut self, s: &Step<'a>, mask: &Mask) {
        self.touch(s, mask);
        match &s.stmt.kind {
            StmtKind::Let { local, value } | StmtKind::Assign { local, value } => {
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
                    let one = |(t, &m): (usize, &u8)| match v.at(t) {
                        OPEN if side == OPEN => m.min(level),
                        OPEN => {
                            if (side != 0) == yes {
                                m
                            } else {
                                GONE
                            }
                        }
                        c => {
                            if (c != 0) == yes {
                                m
                            } else {
                                GONE
                            }
                        }
                    };
                    mask.iter().enumerate().map(one).collect()
                };
                let (yes, no) = (pick(true), pick(false));
                self.block(&s.blocks[0], &yes);
                if let Some(other) = s.blocks.get(1) {
                    self.block(other, &no);
                }
            }
            StmtKind::For { var, named, segments, .. } => {
                self.jumps.push(Jumps::none(mask.len()));
                for g in segments {
                    for (&l, &e) in named.iter().zip(&g.values) {
                        let v = self.values.eval(e);
                        self.values.set(l, v);
                    }
                    self.segment(s, *var, g, mask);
                }
                self.jumps.pop();
            }
            StmtKind::While { cond, .. } => self.rounds(s, *cond, mask),
            StmtKind::Break => self.jump(mask, true),
            StmtKind::Continue => self.jump(mask, false),
            _ => s.blocks.iter().for_each(|b| self.block(b, mask)),
        }
    }

    fn unknown(&self, v: &Val, mask: &Mask) -> bool {
        mask.iter().enumerate().any(|(t, &m)| m != GONE && v.at(t) == OPEN)
    }

    /// How sure a thread is of what its team does where the value is unknown.
    fn level(&self, e: ExprId) -> u8 {
        match self.info.expr(e).level {
            Level::Thread => MAYBE,
            Level::Warp | Level::Group => AS_WARP,
            Level::Block | Level::Cluster | Level::Grid => SURE,
        }
    }

    fn segment(&mut self, s: &Step<'a>, var: LocalId, g: &Segment, mask: &Mask) {
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
        let trips: Vec<i64> = (0..mask.len())
            .map(|t| match (mask[t], hi.at(t)) {
                (GONE, _) => 0,
                _ if open => guess,
                (_, hi) => (hi - lo.at(t) + by.at(t) - 1).div_euclid(by.at(t).max(1)).max(0),
            })
            .collect();
        let most = trips.iter().copied().max().unwrap_or(0);
        let body: u64 = s.blocks.iter().flatten().map(|s| s.cost).sum();
        let cheap = (most as u64).saturating_mul(body).saturating_mul(mask.len() as u64) <= WORK;
        let few = TRIPS + i64::from(self.values.first_block());
        // an even number is left out: what follows meets the slots as it would
        let most = if cheap || most <= few { most } else { few - (most - few) % 2 };
        for i in 0..most {
            let sure = if open { level } else { SURE };
            let here = |(t, &m): (usize, &u8)| if i < trips[t] { m.min(sure) } else { GONE };
            let on: Mask = mask.iter().enumerate().map(here).collect();
            let at = lo.advanced(i, &by);
            self.values.set(var, at);
            if !self.turn(s, &on) {
                break;
            }
        }
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
    fn turn(&mut self, s: &Step<'a>, on: &Mask) -> bool {
        if let Some(j) = self.jumps.last_mut().filter(|j| j.any) {
            j.of_step.fill(SURE);
        }
        s.blocks.iter().for_each(|b| self.block(b, on));
        self.fault.is_none() && self.jumps.last().is_none_or(|j| j.of_loop.iter().any(|&m| m != GONE))
    }

    fn rounds(&mut self, s: &Step<'a>, cond: ExprId, mask: &Mask) {
        self.jumps.push(Jumps::none(mask.len()));
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
            let one = |(t, &m): (usize, &u8)| match v.at(t) {
                0 => GONE,
                OPEN => m.min(level),
                _ => m,
            };
            on = on.iter().enumerate().map(one).collect();
            if on.iter().all(|&m| m == GONE) || !self.turn(s, &on) {
                break;
            }
        }
        self.jumps.pop();
    }

    fn jump(&mut self, mask: &Mask, of_loop: bool) {
        if let Some(j) = self.jumps.last_mut() {
            j.any = true;
            let list = if of_loop { &mut j.of_loop } else { &mut j.of_step };
            for (left, &m) in list.iter_mut().zip(mask.iter()) {
                *left = match m {
                    GONE => *left,
                    SURE => GONE,
                    maybe => maybe.min(*left),
                };
            }
        }
    }

    fn meet(&mut self, op: &Op, mask: &Mask, span: Span) {
        let whole = |n: usize| mask.chunks(n).all(|c| c.iter().all(|&m| m == c[0] && m != MAYBE));
        let all = mask.iter().all(|&m| m == SURE);
        let group = self.machine.group;
        match sync(op) {
            Some(Sync::Barrier(team)) => {
                let block = match team {
                    Team::Block | Team::Cluster => true,
                    Team::Group => mask.len() <= group,
                    Team::Warp | Team::Named(_) => false,
                };
                if block && !all || !block && !whole(self.machine.warp) {
                    let part = if block { "block" } else { "warp" };
                    let message = format!("only a part of the {part} comes to this barrier");
                    return self.error(codes::UNORDERED, span, message);
                }
                if block {
                    self.blocks += 1;
                } else {
                    let warps = mask.chunks(self.machine.warp).zip(&mut self.warps);
                    warps.filter(|(m, _)| m[0] != GONE).for_each(|(_, w)| *w += 1);
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

    fn touch(&mut self, s: &Step<'a>, mask: &Mask) {
        if s.touches.is_empty() {
            return;
        }
        self.time += 1;
        let step = self.spans.len() as u32;
        self.spans.push(s.stmt.span);
        for touch in &s.touches {
            let Some(object) = self.shadow.object(touch.obj) else { continue };
            let index: Option<Vec<Val>> =
                touch.index.as_ref().map(|list| list.iter().map(|&e| self.values.place(e)).collect());
            let mut at = vec![0; index.as_ref().map_or(0, Vec::len)];
            for t in (0..mask.len()).filter(|&t| mask[t] != GONE) {
                let new = Mark {
                    thread: t as u32,
                    block: self.blocks,
                    warp: self.warps[t / self.machine.warp],
                    time: self.time,
                    step,
                    lost: false,
                };
                let mut known = index.is_some();
                for (a, v) in at.iter_mut().zip(index.iter().flatten()) {
                    *a = v.at(t);
                    known &= *a != OPEN;
                }
                let met = match known {
                    true => self.shadow.touch(object, &at, touch.kind, new, mask[t] == SURE),
                    false => self.shadow.touch_any(object, touch.kind, new),
                };
                match met {
                    Some(Found::Race(other)) => return self.report(touch.obj, &new, &other),
                    Some(Found::Other(o)) => {
                        let (mine, other) = (self.name(touch.obj), self.name(self.shadow.obj(o)));
                        let message = format!("`{mine}` is read here where `{other}` was written over it");
                        return self.error(codes::UNORDERED, s.stmt.span, message);
                    }
                    None => {}
                }
            }
        }
    }

    fn name(&self, obj: Obj) -> &str {
        match obj {
            Obj::Shared(b) => &self.k.buffers[b].name,
            Obj::Global(a) => &self.k.args[a].name,
            _ => "",
        }
    }

    fn report(&mut self, obj: Obj, new: &Mark, other: &Mark) {
        let name = self.name(obj);
        let message = format!(
            "threads {} and {} meet here in `{name}`, and no barrier lies between them",
            other.thread, new.thread
        );
        let span = self.spans[new.step as usize];
        let d = Diagnostic::error(codes::UNORDERED, span, message);
        self.fault = Some(Box::new(d.also(self.spans[other.step as usize], "the other access")));
    }
}

impl Jumps {
    fn none(n: usize) -> Jumps {
        Jumps { of_loop: vec![SURE; n], of_step: vec![SURE; n], any: false }
    }
}
