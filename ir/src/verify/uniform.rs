//! Uniformity: over which team, and along which thread and grid axes, each value and the way to each statement is
//! constant.
//!
//! The analysis is insensitive to the order of statements: a name is as uniform as the least of its assignments and
//! of the control that leads to them, found by iteration to a fixed point. A loaded value is uniform if its address
//! is and the tensor is `in`; results of atomics and shuffles are not; tiles, reductions and joins are values of
//! the block. In a kernel that names no threads, scalar statements outside of `parallel` run once for the block.

use super::Verifier;
use super::info::{AxisSet, KernelInfo, Level, Uniformity};
use crate::program::*;

/// The analysis' answer for one kernel.
pub struct Uniform {
    pub info: KernelInfo,
    /// For each `for` and `while`, by its statement number: the control of its `break`s and `continue`s.
    pub exits: Vec<Uniformity>,
}

pub fn analyse(v: &Verifier) -> Uniform {
    let k = v.kernel;
    let mut count = 0;
    walk(&k.stmts, &mut |_| count += 1);
    let mut a = Analysis {
        k,
        unknown: if k.threads.is_some() { Uniformity::THREAD } else { Uniformity::BLOCK },
        axis_levels: axis_levels(v),
        locals: vec![Uniformity::CONSTANT; k.body.locals.len()],
        arrays: vec![Uniformity::CONSTANT; k.buffers.len()],
        exits: vec![Uniformity::CONSTANT; count],
        stmts: vec![Uniformity::CONSTANT; count],
        memo: Vec::new(),
        next: 0,
        loops: Vec::new(),
        parallel: 0,
        changed: true,
    };
    for (i, &l) in k.grid.locals.iter().enumerate() {
        let one = matches!(k.body.exprs[k.grid.extents[i]], Expr::Const { bits: 1, .. });
        let grid = if one { AxisSet::NONE } else { AxisSet::one(i as u8) };
        a.locals[l.index()] = Uniformity { level: Level::Block, threads: AxisSet::NONE, grid };
    }
    for (i, &(l, n)) in k.threads.iter().flat_map(|t| &t.axes).enumerate() {
        if n > 1 {
            let level = a.axis_levels.get(i).copied().unwrap_or(Level::Thread);
            a.locals[l.index()] = Uniformity { level, threads: AxisSet::one(i as u8), grid: AxisSet::NONE };
        }
    }
    // each round lowers at least one of finitely many levels; the bound only guards against a mistake here
    for _ in 0..64 {
        if !std::mem::take(&mut a.changed) {
            break;
        }
        a.memo = vec![None; k.body.exprs.len()];
        a.next = 0;
        a.block(&k.stmts, Uniformity::CONSTANT);
    }
    let handles: Vec<ExprId> = k.body.exprs.handles().collect();
    let exprs = handles.into_iter().map(|e| a.expr(e)).collect();
    Uniform { info: KernelInfo { exprs, stmts: a.stmts }, exits: a.exits }
}

/// Over what a value that differs along one axis only is still constant: known where the order of threads is.
fn axis_levels(v: &Verifier) -> Vec<Level> {
    let Some(t) = &v.kernel.threads else { return Vec::new() };
    let warp = v.arch.fact("warp", &[]).and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0);
    let group = v.arch.facts.threads.group_size.as_ref().map(|k| u64::from(k.value)).filter(|&n| n > 0);
    let mut stride = 1u64;
    let mut levels = vec![Level::Thread; t.axes.len()];
    for (i, &(_, n)) in t.axes.iter().enumerate().rev() {
        let whole = |size: Option<u64>| size.is_some_and(|s| stride.is_multiple_of(s));
        if t.ordered && whole(group) {
            levels[i] = Level::Group;
        } else if t.ordered && whole(warp) {
            levels[i] = Level::Warp;
        }
        stride = stride.saturating_mul(u64::from(n));
    }
    levels
}

struct Analysis<'a> {
    k: &'a Kernel,
    /// What is known of a value about which nothing is known.
    unknown: Uniformity,
    axis_levels: Vec<Level>,
    locals: Vec<Uniformity>,
    /// Contents of per-thread arrays.
    arrays: Vec<Uniformity>,
    exits: Vec<Uniformity>,
    stmts: Vec<Uniformity>,
    memo: Vec<Option<Uniformity>>,
    /// Number of the next statement.
    next: usize,
    /// Statement numbers of the open loops.
    loops: Vec<usize>,
    /// How many `parallel`s are open.
    parallel: u32,
    changed: bool,
}

impl Analysis<'_> {
    fn lower(&mut self, l: LocalId, to: Uniformity) {
        let old = self.locals[l.index()];
        let new = old.join(to);
        if new != old {
            self.locals[l.index()] = new;
            self.changed = true;
        }
    }

    fn all(&mut self, list: impl IntoIterator<Item = ExprId>) -> Uniformity {
        list.into_iter().fold(Uniformity::CONSTANT, |u, e| u.join(self.expr(e)))
    }

    fn unknown(&self) -> Uniformity {
        if self.parallel > 0 { Uniformity::THREAD } else { self.unknown }
    }

    fn expr(&mut self, e: ExprId) -> Uniformity {
        if let Some(Some(u)) = self.memo.get(e.index()) {
            return *u;
        }
        let body = &self.k.body;
        let expr = &body.exprs[e];
        let mut u = match expr {
            Expr::Local(l) => self.locals[l.index()],
            Expr::Element { mem, .. } => self.loaded(*mem),
            _ => Uniformity::CONSTANT,
        };
        let mut operands: smallvec::SmallVec<[ExprId; 4]> = smallvec::SmallVec::new();
        expr.operands(|o| operands.push(o));
        for o in operands {
            u = u.join(self.expr(o));
        }
        if let Some(slot) = self.memo.get_mut(e.index()) {
            *slot = Some(u);
        }
        u
    }

    /// A value loaded from a uniform address.
    fn loaded(&self, mem: Mem) -> Uniformity {
        match mem {
            Mem::Tensor(arg) => match &self.k.args[arg].kind {
                ArgKind::Tensor(Tensor { mode: Mode::In, .. }) => Uniformity::CONSTANT,
                _ => self.unknown(),
            },
            Mem::Buffer(b) if self.k.buffers[b].home == Home::Thread => self.arrays[b.index()],
            Mem::Buffer(_) => self.unknown(),
            // between its wait and its release nobody writes a slot
            Mem::Slot { .. } => Uniformity::BLOCK,
        }
    }

    fn block(&mut self, stmts: &Block, control: Uniformity) {
        for s in stmts {
            self.stmt(s, control);
        }
    }

    fn stmt(&mut self, s: &Stmt, control: Uniformity) {
        let number = self.next;
        self.next += 1;
        // a statement after a conditional jump is reached by those who did not jump
        let control = match self.loops.last() {
            Some(&l) => control.join(self.exits[l]),
            None => control,
        };
        self.stmts[number] = control;
        match &s.kind {
            StmtKind::Let { local, value }
            | StmtKind::Assign { local, value }
            | StmtKind::Update { local, value, .. } => {
                let mut u = self.expr(*value).join(control);
                if self.k.body.locals[*local].ty.is_tile() {
                    u = of_block(u);
                }
                self.lower(*local, u);
            }
            StmtKind::Store { mem: Mem::Buffer(b), index, value }
                if self.k.buffers[*b].home == Home::Thread =>
            {
                let u = self.all(index.iter().copied().chain([*value])).join(control);
                let old = self.arrays[b.index()];
                if old.join(u) != old {
                    self.arrays[b.index()] = old.join(u);
                    self.changed = true;
                }
            }
            StmtKind::Op { results, op } => self.op(results, op, control),
            StmtKind::If { cond, then, other } => {
                let inner = control.join(self.expr(*cond));
                self.block(then, inner);
                self.block(other, inner);
            }
            StmtKind::For { var, named, segments, body, .. } => {
                let bounds = segments.iter().flat_map(|s| [s.lo, s.hi, s.step]);
                let inner = control.join(self.all(bounds));
                self.lower(*var, inner);
                named.iter().for_each(|&l| self.lower(l, inner));
                self.loop_body(number, body, inner);
            }
            StmtKind::While { cond, body } => {
                let inner = control.join(self.expr(*cond));
                self.loop_body(number, body, inner);
            }
            StmtKind::Parallel { vars, extents, body } => {
                let inner = control.join(self.all(extents.iter().copied()));
                vars.iter().for_each(|&v| self.lower(v, Uniformity::THREAD));
                let outer = std::mem::take(&mut self.loops);
                self.parallel += 1;
                self.block(body, inner.join(Uniformity::THREAD));
                self.parallel -= 1;
                self.loops = outer;
            }
            StmtKind::Break | StmtKind::Continue => {
                if let Some(&l) = self.loops.last() {
                    let exit = self.exits[l].join(control);
                    if exit != self.exits[l] {
                        self.exits[l] = exit;
                        self.changed = true;
                    }
                }
            }
            StmtKind::Roles(roles) => {
                for r in roles {
                    if let Some(g) = r.group {
                        let u = Uniformity { level: Level::Group, ..Uniformity::CONSTANT };
                        self.lower(g, u);
                    }
                    let outer = std::mem::take(&mut self.loops);
                    self.block(&r.body, control);
                    self.loops = outer;
                }
            }
            StmtKind::Declare { .. }
            | StmtKind::Buffer { .. }
            | StmtKind::Reducer { .. }
            | StmtKind::Store { .. }
            | StmtKind::Next { .. } => {}
        }
    }

    fn loop_body(&mut self, number: usize, body: &Block, inner: Uniformity) {
        self.loops.push(number);
        self.block(body, inner);
        self.loops.pop();
    }

    fn op(&mut self, results: &[LocalId], op: &Op, control: Uniformity) {
        let u = match op {
            Op::Read { from, .. } => {
                let mut operands = Vec::new();
                op.operands(|e| operands.push(e));
                let u = self.all(operands);
                let whole = matches!(from.mem, Mem::Tensor(_)) && self.loaded(from.mem).level == Level::Grid;
                of_block(if whole { u } else { u.join(Uniformity::BLOCK) })
            }
            Op::Reduce { inputs, .. } | Op::Scan { inputs, .. } => of_block(self.all(inputs.iter().copied())),
            Op::Join { .. } => Uniformity::BLOCK,
            Op::AllReduce { inputs, over, .. } => {
                let u = self.all(inputs.iter().copied()).join(control);
                self.reduced(u, over)
            }
            Op::Shuffle { kind, value, lane, width } => {
                let (value, lane) = (self.expr(*value), self.expr(*lane));
                let one = *kind == ShuffleKind::Index && width.is_none() && lane.level >= Level::Warp;
                let level = if one { Level::Warp } else { Level::Thread };
                Uniformity { level, threads: AxisSet::UNKNOWN, grid: value.grid.with(lane.grid) }
            }
            Op::Vote { cond, team, .. } => over_team(self.expr(*cond), *team),
            Op::Once { value } => of_block(Uniformity { grid: self.expr(*value).grid, ..Uniformity::BLOCK }),
            Op::Atomic { .. } => self.unknown(),
            Op::Gemm { a, b, into, .. } => {
                let u = of_block(self.all([*a, *b]));
                self.lower(*into, u.join(control));
                return;
            }
            Op::Issue { into, .. } => {
                self.lower(*into, Uniformity::BLOCK.join(control));
                return;
            }
            _ => Uniformity::CONSTANT,
        };
        for &r in results {
            self.lower(r, u.join(control));
        }
    }

    fn reduced(&self, u: Uniformity, over: &Over) -> Uniformity {
        match over {
            Over::Team(team) => over_team(u, *team),
            Over::Axes(axes) => {
                let all = self.k.threads.iter().flat_map(|t| &t.axes);
                let number = |l: LocalId| all.clone().position(|&(a, _)| a == l);
                let over = axes
                    .iter()
                    .filter_map(|&l| number(l))
                    .fold(AxisSet::NONE, |s, i| s.with(AxisSet::one(i as u8)));
                let named =
                    (0..self.axis_levels.len()).fold(AxisSet::NONE, |s, i| s.with(AxisSet::one(i as u8)));
                // threads are their axes, so beyond them nothing can differ
                let threads = AxisSet(u.threads.0 & named.0).without(over);
                let differs = self
                    .axis_levels
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| threads.meets(AxisSet::one(*i as u8)));
                let level = differs.map(|(_, &l)| l).min().unwrap_or(Level::Block);
                Uniformity { level: level.min(Level::Block), threads, grid: u.grid }
            }
        }
    }
}

/// A value that the block computes once.
fn of_block(u: Uniformity) -> Uniformity {
    Uniformity { level: u.level.max(Level::Block), threads: AxisSet::NONE, grid: u.grid }
}

fn over_team(u: Uniformity, team: Team) -> Uniformity {
    let level = match team {
        Team::Warp => Level::Warp,
        Team::Group | Team::Named(_) => Level::Group,
        Team::Block => Level::Block,
        Team::Cluster => Level::Cluster,
    };
    let threads = if level >= Level::Block { AxisSet::NONE } else { AxisSet::UNKNOWN };
    Uniformity { level, threads, grid: u.grid }
}
