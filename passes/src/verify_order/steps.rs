//! What of a kernel the replay walks: statements that touch memory of several threads, that make threads wait or
//! exchange, control around them, and what their indices and conditions are computed from.

use pantile_ir::effects::{Ctx, Kind, Obj, Part, stmt_effects, sync};
use pantile_ir::program::*;
use std::collections::HashSet;

pub struct Touch {
    pub obj: Obj,
    /// `None` is the whole object
    pub index: Option<Args>,
    pub kind: Kind,
}

pub struct Step<'a> {
    pub stmt: &'a Stmt,
    pub touches: Vec<Touch>,
    pub blocks: Vec<Vec<Step<'a>>>,
    /// about how many touches of one thread this is
    pub cost: u64,
}

/// Loops whose trips are unknown count as so many.
const TRIPS: u64 = 4;

pub fn digest(k: &Kernel) -> Vec<Step<'_>> {
    let mut d = Digest { k, quiet: quiet(k), needed: HashSet::new() };
    loop {
        let before = d.needed.len();
        let steps = d.block(&k.stmts, false);
        if d.needed.len() == before {
            return steps;
        }
    }
}

/// Tensors in whose accesses no two threads can get into each other's way.
fn quiet(k: &Kernel) -> HashSet<Obj> {
    let (mut reads, mut writes, mut atomics) = (HashSet::new(), HashSet::new(), HashSet::new());
    walk(&k.stmts, &mut |s| {
        for a in stmt_effects(&s.kind, &Ctx { kernel: k, team: None, span: s.span }) {
            match a.kind {
                Kind::Read => reads.insert(a.obj),
                Kind::Write | Kind::Accumulate => writes.insert(a.obj),
                Kind::Atomic(_) => atomics.insert(a.obj),
            };
        }
    });
    let only = |a: &HashSet<Obj>, b: &HashSet<Obj>, c: &HashSet<Obj>| -> Vec<Obj> {
        let mine = a.iter().filter(|o| !b.contains(o) && !c.contains(o));
        mine.filter(|o| matches!(o, Obj::Global(_))).copied().collect()
    };
    let mut all: HashSet<Obj> = only(&reads, &writes, &atomics).into_iter().collect();
    all.extend(only(&atomics, &reads, &writes));
    all
}

struct Digest<'a> {
    k: &'a Kernel,
    quiet: HashSet<Obj>,
    /// names that something kept is computed from
    needed: HashSet<LocalId>,
}

impl<'a> Digest<'a> {
    /// `looped`: a jump here leaves a loop that is walked.
    fn block(&mut self, block: &'a Block, looped: bool) -> Vec<Step<'a>> {
        block.iter().filter_map(|s| self.step(s, looped)).collect()
    }

    fn step(&mut self, s: &'a Stmt, looped: bool) -> Option<Step<'a>> {
        let touches = self.touches(s);
        let repeats = matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. });
        let inner: Vec<&'a Block> = s.kind.blocks().into_iter().collect();
        let mut blocks: Vec<Vec<Step<'a>>> =
            inner.iter().map(|b| self.block(b, looped && !repeats)).collect();
        if repeats && blocks.iter().any(|b| !b.is_empty()) {
            blocks = inner.iter().map(|b| self.block(b, true)).collect();
        }
        let own = match &s.kind {
            StmtKind::Let { local, .. } | StmtKind::Assign { local, .. } | StmtKind::Update { local, .. } => {
                self.needed.contains(local)
            }
            StmtKind::Op { op, results } => {
                sync(op).is_some() || results.iter().any(|l| self.needed.contains(l))
            }
            StmtKind::Break | StmtKind::Continue => looped,
            _ => false,
        };
        if !own && touches.is_empty() && blocks.iter().all(Vec::is_empty) {
            return None;
        }
        touches.iter().flat_map(|t| t.index.iter().flatten()).for_each(|&e| self.need(e));
        match &s.kind {
            StmtKind::Let { value, local } | StmtKind::Assign { value, local }
                if self.needed.contains(local) =>
            {
                self.need(*value);
            }
            StmtKind::Update { value, .. } if own => self.need(*value),
            StmtKind::If { cond, .. } | StmtKind::While { cond, .. } => self.need(*cond),
            StmtKind::For { segments, .. } => {
                for g in segments {
                    [g.lo, g.hi, g.step]
                        .into_iter()
                        .chain(g.values.iter().copied())
                        .for_each(|e| self.need(e));
                }
            }
            _ => {}
        }
        let inner: u64 = blocks.iter().flatten().map(|s| s.cost).sum();
        let cost = touches.len() as u64 + 1 + if repeats { inner * self.trips(s) } else { inner };
        Some(Step { stmt: s, touches, blocks, cost })
    }

    fn trips(&self, s: &Stmt) -> u64 {
        let StmtKind::For { segments, .. } = &s.kind else { return TRIPS };
        let number = |e: ExprId| match self.k.body.exprs[e] {
            Expr::Const { bits, .. } => Some(bits as i64),
            _ => None,
        };
        let one = |g: &Segment| {
            let (lo, hi, step) = (number(g.lo)?, number(g.hi)?, number(g.step)?.max(1));
            u64::try_from((hi - lo + step - 1) / step).ok()
        };
        segments.iter().map(one).sum::<Option<u64>>().unwrap_or(TRIPS)
    }

    fn touches(&self, s: &Stmt) -> Vec<Touch> {
        let counts = |obj: Obj| match obj {
            Obj::Shared(_) => true,
            Obj::Global(arg) => {
                let input = matches!(&self.k.args[arg].kind, ArgKind::Tensor(t) if t.mode == Mode::In);
                !input && !self.quiet.contains(&obj)
            }
            _ => false,
        };
        let all = stmt_effects(&s.kind, &Ctx { kernel: self.k, team: None, span: s.span });
        let one = |a: pantile_ir::effects::Access| {
            let index = match a.part {
                Part::Element(index) => Some(index),
                Part::Whole | Part::Region(_) => None,
            };
            Touch { obj: a.obj, index, kind: a.kind }
        };
        all.into_iter().filter(|a| counts(a.obj)).map(one).collect()
    }

    fn need(&mut self, root: ExprId) {
        let mut open = vec![root];
        while let Some(e) = open.pop() {
            match &self.k.body.exprs[e] {
                Expr::Local(l) => {
                    self.needed.insert(*l);
                }
                Expr::Element { .. } => {}
                expr => expr.operands(|o| open.push(o)),
            }
        }
    }
}
