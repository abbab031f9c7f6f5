//! Collectives: who must reach them together, and what they may be given.

use super::info::{AxisSet, Level, Uniformity};
use super::uniform::Uniform;
use super::{Verifier, operands_of};
use crate::codes;
use crate::program::*;
use crate::span::Span;

pub fn kernel(v: &mut Verifier, u: &Uniform) {
    let k = v.kernel;
    let mut walk = Walk { v, u, next: 0, control: Vec::new(), parallel: None, role: None };
    walk.block(&k.stmts);
}

/// What stands around a statement and may keep threads from it.
#[derive(Clone, Copy)]
struct Control {
    /// The condition or bound that decides.
    cond: Option<ExprId>,
    span: Span,
    uniform: Uniformity,
}

/// Whom a collective joins.
#[derive(Clone, Copy)]
enum Need {
    Team(Level),
    Axes(AxisSet),
}

impl Need {
    fn met(self, u: Uniformity) -> bool {
        match self {
            Need::Team(level) => u.level >= level,
            Need::Axes(axes) => u.level >= Level::Block || !u.threads.meets(axes),
        }
    }
}

struct Walk<'v, 'a, 'o, 'u> {
    v: &'v mut Verifier<'a, 'o>,
    u: &'u Uniform,
    next: usize,
    control: Vec<Control>,
    parallel: Option<Span>,
    /// Inside of a role: whether its body runs once for each group.
    role: Option<bool>,
}

impl<'a> Walk<'_, 'a, '_, '_> {
    fn block(&mut self, stmts: &'a Block) {
        for s in stmts {
            self.stmt(s);
        }
    }

    /// The team that tile statements belong to here.
    fn tile_team(&self) -> Level {
        if self.role == Some(true) { Level::Group } else { Level::Block }
    }

    fn stmt(&mut self, s: &'a Stmt) {
        let number = self.next;
        self.next += 1;
        let need = self.need(&s.kind);
        if let Some((need, name)) = &need {
            self.reached(s, *need, name);
        }
        self.operands(s, need.as_ref().map(|n| n.0));
        self.constructs(s);
        match &s.kind {
            StmtKind::If { cond, then, other } => {
                let c = Control { cond: Some(*cond), span: s.span, uniform: self.u.info.expr(*cond) };
                self.inside(c, then);
                self.inside(c, other);
            }
            StmtKind::For { segments, body, .. } => {
                let bounds: Vec<ExprId> = segments.iter().flat_map(|s| [s.lo, s.hi, s.step]).collect();
                let worst = bounds.iter().copied().min_by_key(|&e| self.u.info.expr(e).level);
                let uniform = bounds.iter().fold(Uniformity::CONSTANT, |u, &e| u.join(self.u.info.expr(e)));
                self.loop_body(number, Control { cond: worst, span: s.span, uniform }, body);
            }
            StmtKind::While { cond, body } => {
                let c = Control { cond: Some(*cond), span: s.span, uniform: self.u.info.expr(*cond) };
                self.loop_body(number, c, body);
            }
            StmtKind::Parallel { body, .. } => {
                let outer = self.parallel.replace(s.span);
                self.block(body);
                self.parallel = outer;
            }
            StmtKind::Roles(roles) => {
                for r in roles {
                    let outer = self.role.replace(r.group.is_some());
                    self.block(&r.body);
                    self.role = outer;
                }
            }
            _ => {}
        }
    }

    fn inside(&mut self, c: Control, body: &'a Block) {
        self.control.push(c);
        self.block(body);
        self.control.pop();
    }

    fn loop_body(&mut self, number: usize, c: Control, body: &'a Block) {
        self.control.push(c);
        let exit = self.u.exits[number];
        let jump = if exit == Uniformity::CONSTANT { None } else { self.jump(body) };
        if let Some((cond, span)) = jump {
            self.control.push(Control { cond, span, uniform: exit });
        }
        self.block(body);
        if jump.is_some() {
            self.control.pop();
        }
        self.control.pop();
    }

    /// The first conditional jump out of a loop's body whose condition differs between threads.
    fn jump(&self, body: &Block) -> Option<(Option<ExprId>, Span)> {
        for s in body {
            if let StmtKind::If { cond, then, other } = &s.kind {
                let jumps =
                    |b: &Block| b.iter().any(|s| matches!(s.kind, StmtKind::Break | StmtKind::Continue));
                if (jumps(then) || jumps(other)) && self.u.info.expr(*cond).level < Level::Block {
                    return Some((Some(*cond), s.span));
                }
                if let Some(found) = self.jump(then).or_else(|| self.jump(other)) {
                    return Some(found);
                }
            }
        }
        None
    }

    // --- who must come together ------------------------------------------------------------------------------

    fn need(&self, kind: &StmtKind) -> Option<(Need, String)> {
        let body = self.v.body();
        let tile = |name: &str| Some((Need::Team(self.tile_team()), name.to_owned()));
        let is_tile = |e: ExprId| body.types[e.index()].is_tile();
        match kind {
            StmtKind::Let { local, .. } | StmtKind::Assign { local, .. } | StmtKind::Update { local, .. } => {
                let local = &body.locals[*local];
                if local.ty.is_tile() { tile(&format!("the tile `{}`", local.name)) } else { None }
            }
            StmtKind::Buffer { buffer } => {
                let b = &self.v.kernel.buffers[*buffer];
                if b.home == Home::Thread { None } else { tile(&format!("the declaration of `{}`", b.name)) }
            }
            StmtKind::Reducer { .. } => tile("the declaration of a reducer"),
            StmtKind::Parallel { .. } => tile("`parallel`"),
            StmtKind::Roles(_) => tile("`role`"),
            StmtKind::Op { op, .. } => match op {
                Op::Read { .. } => tile("the read of a region"),
                Op::Write { .. } => tile("the write of a region"),
                Op::Gemm { .. } | Op::Issue { .. } => tile("`@`"),
                Op::Reduce { .. } => tile("the reduction of a tile"),
                Op::Scan { .. } => tile("`scan`"),
                Op::Join { .. } => tile("the read of a reducer"),
                Op::Once { .. } => tile("`once`"),
                Op::CopyAsync { .. } => tile("`copy.async`"),
                Op::Fold { values, index, .. } if index.is_empty() && values.iter().any(|&e| is_tile(e)) => {
                    tile("the update of a reducer by a tile")
                }
                Op::Atomic { at: Place::Region(_), .. } => tile("the atomic on a region"),
                Op::AllReduce { over: Over::Axes(axes), .. } => {
                    let threads = self.v.kernel.threads.iter().flat_map(|t| &t.axes);
                    let numbered = threads.enumerate().filter(|(_, (l, _))| axes.contains(l));
                    let set = numbered.fold(AxisSet::NONE, |s, (i, _)| s.with(AxisSet::one(i as u8)));
                    Some((Need::Axes(set), "`allreduce`".to_owned()))
                }
                Op::AllReduce { over: Over::Team(team), .. } => self.team(*team, "`allreduce`"),
                Op::Vote { team, .. } => self.team(*team, "a vote"),
                Op::Shuffle { .. } => self.team(Team::Warp, "a shuffle"),
                Op::Barrier { team } => self.team(*team, "`barrier`"),
                Op::Fence { team, .. } => self.team(*team, "`fence`"),
                Op::Acquire { .. } => tile("`acquire`"),
                Op::Wait { .. } => tile("`wait`"),
                Op::Commit { .. } => tile("`commit`"),
                Op::Release { .. } => tile("`release`"),
                Op::Await { .. } => tile("`await`"),
                Op::Take { .. } => tile("`take`"),
                Op::Pass { .. } => tile("`pass`"),
                Op::Fold { .. } | Op::Atomic { .. } | Op::Print { .. } | Op::Assert { .. } => None,
            },
            StmtKind::Declare { .. }
            | StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::For { .. }
            | StmtKind::While { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Next { .. } => None,
        }
    }

    fn team(&self, team: Team, name: &str) -> Option<(Need, String)> {
        let level = match team {
            Team::Warp => Level::Warp,
            Team::Group => Level::Group,
            Team::Named(_) | Team::Block | Team::Cluster => self.tile_team(),
        };
        Some((Need::Team(level), name.to_owned()))
    }

    fn reached(&mut self, s: &Stmt, need: Need, name: &str) {
        if let Some(place) = self.parallel {
            self.v
                .error(codes::PARALLEL_COLLECTIVE, s.span, format!("{name} cannot stand inside `parallel`"))
                .label("needs the whole block")
                .also(place, "the steps of this run on different threads")
                .help("move it in front of the `parallel`, or write a loop of another kind");
            return;
        }
        let Some(c) = self.control.iter().find(|c| !need.met(c.uniform)).copied() else { return };
        let span = c.cond.map_or(c.span, |e| self.place(e, c.span));
        let whom = match need {
            Need::Team(level) => format!("all threads of the {}", level.name()),
            Need::Axes(_) => "all threads of its axis".to_owned(),
        };
        let message = format!("{name} needs {whom}, but this differs between them");
        let why = c.cond.and_then(|e| self.reason(e, need));
        let mut report = self
            .v
            .error(codes::DIVERGENT_CONTROL, span, message)
            .label("decides who gets there")
            .also(s.span, "needed here");
        if let Some((place, text)) = why {
            report = report.also(place, text);
        }
        report.help("move it out, and guard only what single threads do; `once { ... }` and `allreduce` make a value uniform");
    }

    /// The leaf because of which a value is not uniform.
    fn reason(&self, e: ExprId, need: Need) -> Option<(Span, String)> {
        let body = self.v.body();
        let mut at = e;
        loop {
            let mut worse = None;
            body.exprs[at].operands(|o| {
                if worse.is_none() && !need.met(self.u.info.expr(o)) {
                    worse = Some(o);
                }
            });
            match worse {
                Some(o) => at = o,
                None => break,
            }
        }
        let span = self.v.span(at);
        let text = match &body.exprs[at] {
            Expr::Local(l) => {
                let local = &body.locals[*l];
                match local.kind {
                    LocalKind::Thread(_) => format!("`{}` is an index of the threads", local.name),
                    _ => format!("`{}` differs between threads", local.name),
                }
            }
            Expr::Element { mem, .. } => {
                format!(
                    "`{}` may be written meanwhile, so threads may read different values",
                    self.v.mem_name(*mem)
                )
            }
            _ => "this differs between threads".to_owned(),
        };
        (at != e && span != Span::default()).then_some((span, text))
    }

    fn place(&self, e: ExprId, other: Span) -> Span {
        match self.v.span(e) {
            s if s == Span::default() => other,
            s => s,
        }
    }

    // --- what they may be given ------------------------------------------------------------------------------

    fn operands(&mut self, s: &Stmt, need: Option<Need>) {
        let level = self.tile_team();
        let collective = matches!(&s.kind, StmtKind::Parallel { .. })
            || matches!(&s.kind, StmtKind::Op { op, .. } if takes_uniform(op));
        for e in operands_of(&s.kind) {
            self.indices(e, s.span, level);
            let tile = self.v.body().types[e.index()].is_tile();
            if (collective || tile) && need.is_some() && self.parallel.is_none() {
                self.uniform_operand(e, s.span, level);
            }
        }
    }

    fn uniform_operand(&mut self, e: ExprId, span: Span, level: Level) {
        let need = Need::Team(level);
        if need.met(self.u.info.expr(e)) {
            return;
        }
        // the scalar that a tile is made with, as far down as it is one
        let body = self.v.body();
        let mut at = e;
        while body.types[at.index()].is_tile() {
            let mut worse = None;
            body.exprs[at].operands(|o| {
                if worse.is_none() && !need.met(self.u.info.expr(o)) {
                    worse = Some(o);
                }
            });
            let Some(o) = worse else { return };
            at = o;
        }
        let place = self.place(at, span);
        let why = self.reason(at, need);
        let message = format!(
            "this differs between the threads of the {}, but a tile belongs to all of them",
            level.name()
        );
        let mut report = self.v.error(codes::DIVERGENT_OPERAND, place, message);
        if place != span {
            report = report.also(span, "the tile statement");
        }
        if let Some((place, text)) = why {
            report = report.also(place, text);
        }
        report.help("write what differs per thread at thread level: elements, `parallel`, thread arrays");
    }

    /// Indices into tile values are uniform, but for the steps of `parallel`, which walk over tiles.
    fn indices(&mut self, root: ExprId, span: Span, level: Level) {
        if self.parallel.is_some() {
            return;
        }
        let body = self.v.body();
        let mut bad = None;
        super::each_below(body, &[root], |_, expr| {
            let mut check = |e: ExprId| {
                if self.u.info.expr(e).level < level {
                    bad = Some(e);
                }
            };
            match expr {
                Expr::Pick { index, .. } => index.iter().for_each(|&e| check(e)),
                Expr::Slice { axes, .. } => {
                    for axis in axes {
                        match axis {
                            SliceAxis::At(e) | SliceAxis::Span { start: e, .. } => check(*e),
                        }
                    }
                }
                _ => {}
            }
        });
        let Some(e) = bad else { return };
        let place = self.place(e, span);
        let message = "a tile value is indexed by what all threads agree on";
        self.v
            .error(codes::DIVERGENT_INDEX, place, message)
            .label("this differs between threads")
            .help("put the tile into `shared` memory, whose elements each thread may pick");
    }

    // --- constructs that need named threads -------------------------------------------------------------------

    fn constructs(&mut self, s: &Stmt) {
        let threads = self.v.kernel.threads.as_ref();
        if let StmtKind::Buffer { buffer } = &s.kind {
            let b = &self.v.kernel.buffers[*buffer];
            if b.home == Home::Thread && threads.is_none() && self.role.is_none() {
                let message =
                    format!("`{}` is an array of each thread, but the kernel names no threads", b.name);
                self.v
                    .error(codes::NEEDS_THREADS, s.span, message)
                    .help("write `threads 128 as t`, or a tile: `var x: tile f32[64]`");
            }
        }
        let StmtKind::Op { op, .. } = &s.kind else { return };
        let warp = match op {
            Op::Shuffle { .. } => Some("a shuffle"),
            Op::Vote { team: Team::Warp | Team::Group, .. } => Some("a vote"),
            Op::AllReduce { over: Over::Team(Team::Warp | Team::Group), .. } => {
                Some("`allreduce` over a warp or group")
            }
            Op::Barrier { team: Team::Warp | Team::Group } => Some("the barrier of a warp or group"),
            _ => None,
        };
        let Some(name) = warp.filter(|_| self.role.is_none()) else { return };
        match threads {
            None => {
                self.v
                    .error(
                        codes::NEEDS_THREADS,
                        s.span,
                        format!("{name} joins threads, but the kernel names none"),
                    )
                    .help("write `threads (4, 32) as (row, lane) ordered`");
            }
            Some(t) if !t.ordered => {
                self.v
                    .error(
                        codes::NEEDS_ORDERED,
                        s.span,
                        format!("{name} asks which threads are neighbours, but their order is open"),
                    )
                    .help("write `ordered` after the threads: the last axis then counts fastest");
            }
            Some(_) => {}
        }
    }
}

/// Ops all of whose scalar operands belong to the team.
fn takes_uniform(op: &Op) -> bool {
    matches!(
        op,
        Op::Read { .. }
            | Op::Write { .. }
            | Op::Gemm { .. }
            | Op::Issue { .. }
            | Op::CopyAsync { .. }
            | Op::Atomic { at: Place::Region(_), .. }
    )
}
