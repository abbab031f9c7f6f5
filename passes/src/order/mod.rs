//! Explicit order: barriers where threads meet in memory, as few as the text's order needs.
//!
//! The text is walked with what was touched since the last barrier. A *unit* is a statement that the block reaches
//! together; what stands under control that differs between threads belongs to the unit around it. Before a unit that
//! clashes with something pending comes a barrier, of warps where all that clash are in one warp. A loop's body is
//! walked on until a step needs nothing for the step before; what is pending from before a loop waits in front of it.
//! What ops touch is asked of [`pantile_ir::effects`] alone.

mod conflict;
mod env;
mod radix;
mod relevant;
mod touches;
mod value;

pub(crate) use env::Env;
pub(crate) use value::{Known, Val};

pub use crate::make::Make;
use crate::pipeline::Cx;
use conflict::{Reach, Touch};
use pantile_ir::builder::{KernelBuilder, Result, Rewrite, rewrite};
use pantile_ir::diag::Diagnostics;
use pantile_ir::effects::{Part, Sync, sync};
use pantile_ir::hash::Map;
use pantile_ir::program::*;
use pantile_ir::verify::{KernelInfo, Level, examine};
use std::collections::BTreeSet;
use std::rc::Rc;
use touches::{Pending, Touches, passed, unique};

/// A loop of no more steps than this and no more statements is walked step by step.
const FEW: i64 = 8;
const SMALL: usize = 48;
/// A unit's loop with more steps than this is not looked at step by step.
const STEPS: i64 = 16;

pub fn run(program: Program, cx: &Cx) -> std::result::Result<Program, Diagnostics> {
    let info = examine(&program, cx.arch);
    let warp = meeting(&cx.arch.facts.threads);
    let plans = program.kernels.iter().zip(&info.kernels).map(|((_, k), info)| points(k, info, warp));
    let plans: Vec<Points> = plans.collect();
    let mut plans = plans.into_iter();
    let done = rewrite(program, Stage::Final, |k, stmts| {
        Insert { points: plans.next().unwrap_or_default(), number: 0 }.stmts(k, stmts)
    });
    done.map_err(|d| std::iter::once(d).collect())
}

/// Threads that a barrier smaller than the block's joins: a warp, where its lanes exchange values as a whole.
fn meeting(t: &pantile_ir::target::Threads) -> usize {
    let value = |f: &pantile_ir::target::Fact<u32>| f.as_ref().map_or(1, |k| k.value.max(1));
    if value(&t.shuffle_width) < value(&t.warp_size) { 1 } else { value(&t.warp_size) as usize }
}

struct Insert {
    points: Points,
    number: usize,
}

impl Rewrite for Insert {
    fn stmt(&mut self, k: &mut KernelBuilder, stmt: Stmt) -> Result<()> {
        let here = self.points.get(&self.number).copied();
        self.number += 1;
        if let Some(team) = here {
            Make { k, span: stmt.span }
                .stmt(StmtKind::Op { results: Default::default(), op: Op::Barrier { team } })?;
        }
        self.keep(k, stmt)
    }
}

type Points = Map<usize, Team>;

/// Statements before which a barrier belongs, by their numbers.
fn points(k: &Kernel, info: &KernelInfo, warp: usize) -> Points {
    let mut w = Walk::new(k, info, warp);
    if w.env.threads == 1 {
        return Points::default();
    }
    w.again(Points::default());
    let mut points = w.points.clone();
    for s in std::mem::take(&mut w.suspects) {
        let mut without = points.clone();
        without.remove(&s);
        w.again(without.clone());
        if w.points == without {
            points = without;
        }
    }
    points
}

struct Walk<'a> {
    env: Env<'a>,
    sums: radix::Sums<'a>,
    relevant: relevant::Relevant,
    /// Statements of which sums alone say who meets whom.
    plain: Map<*const Stmt, bool>,
    all: Touches,
    points: Points,
    /// Points that a later one, found in a loop's second step, may stand for.
    suspects: BTreeSet<usize>,
    /// What is pending where the open loops are left or continued.
    exits: Vec<Pending>,
    everybody: Rc<Vec<bool>>,
}

/// Statements of a block and below.
fn size(stmt: &Stmt) -> usize {
    1 + stmt.kind.blocks().iter().map(|b| sizes(b)).sum::<usize>()
}

fn sizes(block: &Block) -> usize {
    block.iter().map(size).sum()
}

impl<'a> Walk<'a> {
    fn new(k: &'a Kernel, info: &'a KernelInfo, warp: usize) -> Walk<'a> {
        let env = Env::new(k, info);
        Walk {
            everybody: Rc::new(vec![true; env.threads]),
            env,
            sums: radix::Sums::of(k),
            relevant: relevant::Relevant::of(k),
            plain: Map::default(),
            all: Touches::new(k, warp),
            points: Points::default(),
            suspects: BTreeSet::new(),
            exits: Vec::new(),
        }
    }

    /// Walks the kernel with these points and adds what it still needs; notes which of all are perhaps not needed.
    fn again(&mut self, points: Points) {
        self.points = points;
        self.suspects.clear();
        self.env.restart();
        self.block(&self.env.k.stmts, 0, &mut Pending::new());
    }

    fn block(&mut self, block: &'a Block, mut number: usize, pending: &mut Pending) {
        for s in block {
            self.stmt(s, number, pending);
            number += size(s);
        }
    }

    fn together(&self, number: usize) -> bool {
        self.env.info.stmts.get(number).is_none_or(|u| u.level >= Level::Block)
    }

    fn stmt(&mut self, s: &'a Stmt, number: usize, pending: &mut Pending) {
        if self.relevant.is_idle(s) {
            return self.define(s);
        }
        let inside = s.kind.blocks().iter().any(|b| !b.is_empty()) && self.together(number + 1);
        match &s.kind {
            StmtKind::If { then, other, .. } if inside => {
                self.unit(s, number, pending, false);
                let mut left = pending.clone();
                self.block(then, number + 1, &mut left);
                self.block(other, number + 1 + sizes(then), pending);
                pending.extend(left);
                self.env.forget(then);
                self.env.forget(other);
            }
            // who only reads leaves nothing for the next step
            StmtKind::For { .. } if inside && (self.relevant.only_reads(s) || self.stands_alone(s)) => {
                self.unit(s, number, pending, true);
                self.define(s);
            }
            StmtKind::For { kind, .. } if inside && *kind != LoopKind::Vectorized => {
                self.unit(s, number, pending, false);
                self.repeat(s, number, pending);
            }
            StmtKind::While { .. } if inside => {
                self.unit(s, number, pending, false);
                self.repeat(s, number, pending);
            }
            StmtKind::Break | StmtKind::Continue => {
                if let Some(exit) = self.exits.last_mut() {
                    exit.extend(pending.iter().cloned());
                }
            }
            _ => {
                self.unit(s, number, pending, true);
                self.define(s);
            }
        }
    }

    /// Sums say who meets whom in all that stands inside.
    fn is_plain(&mut self, s: &'a Stmt, guarded: bool) -> bool {
        if let Some(&known) = self.plain.get(&std::ptr::from_ref(s)) {
            return known;
        }
        let mut plain = self.relevant.is_idle(s);
        if !plain {
            let waits =
                matches!(&s.kind, StmtKind::Op { op, .. } if matches!(sync(op), Some(Sync::Barrier(_))));
            plain =
                !waits && !matches!(s.kind, StmtKind::Break | StmtKind::Continue | StmtKind::While { .. });
            for a in self.relevant.touches(s).iter() {
                plain &= match &a.part {
                    Part::Element(list) => {
                        let sums: Option<Vec<_>> = list.iter().map(|&e| self.sums.sum(e)).collect();
                        sums.is_some_and(|sums| !guarded || self.sums.names_all(&sums))
                    }
                    Part::Whole | Part::Region(_) => false,
                };
            }
            let guarded = guarded || matches!(s.kind, StmtKind::If { .. });
            for inner in s.kind.blocks().into_iter().flatten() {
                plain = plain && self.is_plain(inner, guarded);
            }
        }
        self.plain.insert(s, plain);
        plain
    }

    /// A loop in which no two threads meet, over all of its steps.
    fn stands_alone(&mut self, s: &'a Stmt) -> bool {
        if !self.is_plain(s, false) {
            return false;
        }
        let mut new = Vec::new();
        self.touches(s, true, &self.everybody.clone(), &mut new);
        unique(&mut new);
        (0..new.len()).all(|i| self.all.worst(&self.sums, &new[i..=i], &new[i..]) == Reach::None)
    }

    /// What the statement gives names to.
    fn define(&mut self, s: &Stmt) {
        match &s.kind {
            StmtKind::Let { local, .. } | StmtKind::Assign { local, .. }
                if !self.relevant.is_needed(*local) => {}
            StmtKind::Let { local, value } | StmtKind::Assign { local, value } => {
                let mut v = self.env.eval(*value);
                if v.is_none() {
                    v = self.env.open(*value);
                }
                self.env.set(*local, v);
            }
            StmtKind::Update { local, .. } => {
                self.env.set(*local, None);
            }
            _ => s.kind.blocks().iter().for_each(|b| self.env.forget(b)),
        }
    }

    /// The values of a loop's variable where they are few and known and every step runs to its end.
    fn few(&mut self, s: &Stmt) -> Option<Vec<i64>> {
        let StmtKind::For { segments, body, named, .. } = &s.kind else { return None };
        let [g] = &segments[..] else { return None };
        let number = |w: &mut Self, e| w.env.eval(e)?.constant();
        let (lo, hi, step) = (number(self, g.lo)?, number(self, g.hi)?, number(self, g.step)?);
        let small = step > 0 && lo < hi && (hi - lo - 1) / step < FEW && sizes(body) <= SMALL;
        (small && named.is_empty() && !jumps(body)).then(|| (lo..hi).step_by(step as usize).collect())
    }

    /// One step after the other, each with what it really touches.
    fn one_by_one(&mut self, s: &'a Stmt, number: usize, steps: &[i64], pending: &mut Pending) {
        let StmtKind::For { var, body, .. } = &s.kind else { return };
        let walk = |w: &mut Self, pending: &mut Pending, steps: &[i64]| {
            for &i in steps {
                w.env.forget(body);
                w.env.set(*var, Some(Rc::new(value::Known::number(i))));
                w.block(body, number + 1, pending);
            }
        };
        let mut end = Pending::new();
        loop {
            let before = self.points.clone();
            end.clear();
            walk(self, &mut end, steps);
            if self.points == before {
                break;
            }
        }
        // what waits from before the loop
        let before = self.points.clone();
        let mut all = pending.clone();
        // a step in which all wait leaves nothing of it
        let whole = self.free(body, number + 1);
        walk(self, &mut all, if whole { steps } else { &steps[..1] });
        if self.points == before {
            *pending = if whole { all } else { end };
        } else {
            let block = self.points.iter().any(|(n, t)| before.get(n) != Some(t) && *t == Team::Block);
            self.points = before;
            self.wait(number, if block { Team::Block } else { Team::Warp }, pending);
            pending.extend(end);
        }
        unique(pending);
        self.env.forget(body);
    }

    fn repeat(&mut self, s: &'a Stmt, number: usize, pending: &mut Pending) {
        // where threads wait in it, what one step leaves for the next is worth a closer look
        if self.waits_inside(s, number)
            && let Some(steps) = self.few(s)
        {
            return self.one_by_one(s, number, &steps, pending);
        }
        let (before, waiting) = (self.points.clone(), pending.clone());
        self.any_steps(s, number, pending);
        if self.waits_inside(s, number)
            && let Some(steps) = self.few(s)
        {
            self.points = before;
            *pending = waiting;
            self.one_by_one(s, number, &steps, pending);
        }
    }

    fn waits_inside(&self, s: &Stmt, number: usize) -> bool {
        let inside = number + 1..number + size(s);
        self.points.keys().any(|n| inside.contains(n))
    }

    fn any_steps(&mut self, s: &'a Stmt, number: usize, pending: &mut Pending) {
        let (body, step) = match &s.kind {
            StmtKind::For { segments, body, .. } => {
                let step = segments.iter().map(|g| self.env.eval(g.step).and_then(|v| v.constant()));
                (body, step.reduce(|a, b| if a == b { a } else { None }).flatten())
            }
            StmtKind::While { body, .. } => (body, None),
            _ => return,
        };
        self.env.forget(body);
        let start = match &s.kind {
            StmtKind::For { var, named, .. } => {
                named.iter().for_each(|&l| self.env.set(l, None));
                let first = self.env.symbol("i");
                self.env.set(*var, first.clone());
                first
            }
            _ => None,
        };
        self.exits.push(Pending::new());
        // a step alone, then the next one after it, one step or any number of them later
        let mut end = Pending::new();
        self.block(body, number + 1, &mut end);
        let inside = number + 1..number + size(s);
        let early: Vec<usize> = self.points.keys().copied().filter(|n| inside.contains(n)).collect();
        let found = self.points.len();
        for any in [false, true] {
            if any && !self.free(body, number + 1) {
                break;
            }
            self.next(s, body, &start, step, any);
            let mut again = end.clone();
            again.extend(self.exits.last().cloned().unwrap_or_default());
            self.block(body, number + 1, &mut again);
            end = again;
        }
        if self.points.len() > found {
            self.suspects.extend(early);
        }
        // what waits from before the loop
        self.next(s, body, &start, Some(0), false);
        let before = self.points.clone();
        let mut first = pending.clone();
        self.block(body, number + 1, &mut first);
        if self.points != before {
            let block = self.points.iter().any(|(n, t)| before.get(n) != Some(t) && *t == Team::Block);
            self.points = before;
            self.wait(number, if block { Team::Block } else { Team::Warp }, pending);
        }
        pending.extend(end);
        pending.extend(self.exits.pop().unwrap_or_default());
        unique(pending);
        self.env.forget(body);
    }

    /// Whether a way through the block meets no barrier of the block.
    fn free(&self, block: &Block, mut number: usize) -> bool {
        block.iter().all(|s| {
            let at = number;
            number += size(s);
            if self.points.get(&at) == Some(&Team::Block) {
                return false;
            }
            match &s.kind {
                StmtKind::Op { op: Op::Barrier { team: Team::Block }, .. } => false,
                StmtKind::If { then, other, .. } => {
                    self.free(then, at + 1) || self.free(other, at + 1 + sizes(then))
                }
                _ => true,
            }
        }) || jumps(block)
    }

    fn next(&mut self, s: &Stmt, body: &Block, start: &value::Val, step: Option<i64>, any: bool) {
        self.env.forget(body);
        if let StmtKind::For { var, .. } = &s.kind {
            let v = match step {
                Some(step) => self.env.later(start, step, any),
                None => self.env.symbol("i"),
            };
            self.env.set(*var, v);
        }
    }

    /// A statement that the block reaches together; `deep` with all that stands inside.
    fn unit(&mut self, s: &'a Stmt, number: usize, pending: &mut Pending, deep: bool) {
        if let StmtKind::Op { op, .. } = &s.kind
            && let Some(Sync::Barrier(team)) = sync(op)
        {
            return passed(team, pending);
        }
        let mut new = Vec::new();
        self.touches(s, deep, &self.everybody.clone(), &mut new);
        unique(&mut new);
        match self.points.get(&number) {
            Some(&team) => passed(team, pending),
            None => match self.all.worst(&self.sums, pending, &new) {
                Reach::None => {}
                Reach::Warp => self.wait(number, Team::Warp, pending),
                Reach::Block => self.wait(number, Team::Block, pending),
            },
        }
        // a barrier of warps that was enough before may not be now
        if self.all.worst(&self.sums, pending, &new) == Reach::Block {
            self.wait(number, Team::Block, pending);
        }
        pending.extend(new);
        unique(pending);
    }

    fn wait(&mut self, number: usize, team: Team, pending: &mut Pending) {
        if self.points.get(&number) != Some(&Team::Block) {
            self.points.insert(number, team);
        }
        passed(team, pending);
    }

    fn touches(&mut self, s: &'a Stmt, deep: bool, mask: &Rc<Vec<bool>>, out: &mut Pending) {
        let plain = self.is_plain(s, false);
        for a in self.relevant.touches(s).iter() {
            let index = match &a.part {
                Part::Element(list) => Some(list.iter().map(|&e| self.env.eval(e)).collect()),
                Part::Whole | Part::Region(_) => None,
            };
            let sums = match &a.part {
                Part::Element(list) => Some(list.iter().map(|&e| self.sums.sum(e)).collect()),
                Part::Whole | Part::Region(_) => None,
            };
            let mask = mask.clone();
            out.push(self.all.add(Touch { obj: a.obj, index, sums, kind: a.kind, mask }));
        }
        if !deep {
            return;
        }
        match &s.kind {
            _ if plain => {
                // a loop's own variable is any of its values
                if let StmtKind::For { var, body, .. } = &s.kind {
                    self.env.forget(body);
                    self.env.set(*var, None);
                }
                for block in s.kind.blocks() {
                    self.inner(block, mask, out);
                    self.env.forget(block);
                }
            }
            StmtKind::If { cond, then, other } => {
                for (block, no) in [(then, false), (other, true)] {
                    let may = self.env.may(*cond, no);
                    let both = Rc::new(mask.iter().zip(may.iter()).map(|(&a, &b)| a && b).collect());
                    self.inner(block, &both, out);
                }
                self.env.forget(then);
                self.env.forget(other);
            }
            StmtKind::For { var, segments, body, .. } => {
                self.env.forget(body);
                let bound = |w: &mut Self, e| w.env.eval(e).and_then(|v| v.constant());
                let range = match &segments[..] {
                    [g] => (|| Some((bound(self, g.lo)?, bound(self, g.hi)?, bound(self, g.step)?)))(),
                    _ => None,
                };
                match range {
                    Some((lo, hi, step)) if step > 0 && (hi - lo) / step <= STEPS => {
                        let mut i = lo;
                        while i < hi {
                            self.env.set(*var, Some(Rc::new(value::Known::number(i))));
                            self.inner(body, mask, out);
                            self.env.forget(body);
                            i += step;
                        }
                    }
                    _ => {
                        let any = if self.relevant.only_reads(s) { self.env.symbol("i") } else { None };
                        self.env.set(*var, any);
                        self.inner(body, mask, out);
                    }
                }
                self.env.forget(body);
            }
            StmtKind::While { body, .. } => {
                self.env.forget(body);
                self.inner(body, mask, out);
                self.env.forget(body);
            }
            kind => {
                for block in kind.blocks() {
                    self.inner(block, mask, out);
                }
            }
        }
    }

    fn inner(&mut self, block: &'a Block, mask: &Rc<Vec<bool>>, out: &mut Pending) {
        for s in block {
            if self.relevant.is_idle(s) {
                self.define(s);
                continue;
            }
            self.touches(s, true, mask, out);
            if s.kind.blocks().is_empty() {
                self.define(s);
            }
        }
    }
}

/// Whether something leaves a loop's step before its end.
fn jumps(block: &Block) -> bool {
    let mut found = false;
    walk(block, &mut |s| found |= matches!(s.kind, StmtKind::Break | StmtKind::Continue));
    found
}
