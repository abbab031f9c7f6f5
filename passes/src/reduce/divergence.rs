//! Where threads that a collective needs do not come together: what each collective needs of the control around it
//! once it is lowered, and what that control still is then.
//!
//! A value that folds leave is read from other lanes or from memory, so that control that hangs on it is no longer
//! known to be uniform; it counts as control that differs between threads.

use super::fold::Folder;
use super::shape::{Widths, group};
use crate::make::Make;
use pantile_ir::arena::Arena;
use pantile_ir::builder::{Exprs, KernelBuilder, Result};
use pantile_ir::program::*;
use pantile_ir::verify::{KernelInfo, Level};
use std::collections::HashSet;

/// Of each statement, by its number in the order of the text.
#[derive(Clone, Copy)]
pub struct Fact {
    /// the team that must come together here; `Thread` where none
    pub need: Level,
    /// over which the control that leads here is uniform
    pub level: Level,
    /// The whole block agrees on the condition, but only a vote still shows it.
    pub vote: bool,
}

impl Fact {
    pub fn bad(self) -> bool {
        self.need > self.level
    }
}

/// Takes the declarations of shared memory that only some threads would reach out of the block, and gives the facts
/// of the rest.
pub fn facts(
    k: &mut KernelBuilder,
    stmts: &mut Block,
    info: &KernelInfo,
    (combines, w): (&Arena<Combine>, Widths),
) -> Result<(Vec<Stmt>, Vec<Fact>)> {
    let shared: HashSet<BufferId> =
        k.kernel().buffers.iter().filter(|(_, b)| b.home != Home::Thread).map(|(b, _)| b).collect();
    let mut taint = Taint { shared, info: Some(info), ..Taint::default() };
    while {
        taint.changed = false;
        taint.levels.clear();
        taint.votes.clear();
        taint.loops.clear();
        taint.block(k.body(), stmts, false);
        taint.changed
    } {}
    let mut needs = Vec::new();
    let mut all = Vec::new();
    walk(stmts, &mut |s| all.push((s.kind_of_need(), s.span)));
    for (kind, span) in all {
        let m = &mut Make { k, span };
        needs.push(match kind {
            Kind::Fold(comb, inputs, over) => {
                let user = match comb {
                    Combiner::User(id) => combines.get(id).cloned(),
                    _ => None,
                };
                let elems: Vec<Elem> = inputs.iter().filter_map(|&e| m.elem(e)).collect();
                let fold = Folder::new(comb, user, elems.into_iter());
                match group(m, &over, w)? {
                    Some(g) if g.len() <= 1 => Level::Thread,
                    Some(mut g) => match g.method(&fold, w).in_lanes() {
                        true => Level::Warp,
                        false => Level::Block,
                    },
                    None => Level::Thread,
                }
            }
            Kind::Buffer(b) if m.k.kernel().buffers[b].home == Home::Thread => Level::Thread,
            Kind::Buffer(_) => Level::Block,
            Kind::Needs(level) => level,
        });
    }
    let level = |n: usize| match taint.levels.get(n) {
        Some(false) => info.stmts.get(n).map_or(Level::Thread, |u| u.level),
        _ => Level::Thread,
    };
    let fact = |(n, need)| Fact { need, level: level(n), vote: taint.votes.contains(&n) };
    let facts: Vec<Fact> = needs.into_iter().enumerate().map(fact).collect();
    let mut out = Take { facts: &facts, number: 0, taken: Vec::new(), left: Vec::new() };
    out.block(stmts);
    Ok((out.taken, out.left))
}

enum Kind {
    Fold(Combiner, Args, Over),
    Buffer(BufferId),
    Needs(Level),
}

trait KindOfNeed {
    fn kind_of_need(&self) -> Kind;
}

impl KindOfNeed for Stmt {
    fn kind_of_need(&self) -> Kind {
        let team = |t: Team| match t {
            Team::Warp => Level::Warp,
            Team::Group => Level::Group,
            Team::Block | Team::Cluster | Team::Named(_) => Level::Block,
        };
        match &self.kind {
            StmtKind::Buffer { buffer } => Kind::Buffer(*buffer),
            StmtKind::Op { op, .. } => match op {
                Op::AllReduce { comb, inputs, over } => Kind::Fold(*comb, inputs.clone(), over.clone()),
                Op::Once { .. } => Kind::Needs(Level::Block),
                Op::Shuffle { .. } => Kind::Needs(Level::Warp),
                Op::Vote { team: t, .. } | Op::Barrier { team: t } => Kind::Needs(team(*t)),
                _ => Kind::Needs(Level::Thread),
            },
            _ => Kind::Needs(Level::Thread),
        }
    }
}

/// Moves declarations out; facts of what stays keep their order.
struct Take<'f> {
    facts: &'f [Fact],
    number: usize,
    taken: Vec<Stmt>,
    left: Vec<Fact>,
}

impl Take<'_> {
    fn block(&mut self, block: &mut Block) {
        for mut s in std::mem::take(block) {
            let fact = self.facts[self.number];
            self.number += 1;
            if matches!(s.kind, StmtKind::Buffer { .. }) && fact.bad() {
                self.taken.push(s);
                continue;
            }
            self.left.push(fact);
            s.kind.blocks_mut().into_iter().for_each(|b| self.block(b));
            block.push(s);
        }
    }
}

/// What hangs on the result of a fold.
#[derive(Default)]
struct Taint<'a> {
    info: Option<&'a KernelInfo>,
    shared: HashSet<BufferId>,
    /// Branches whose condition a vote makes uniform.
    votes: HashSet<usize>,
    locals: HashSet<LocalId>,
    buffers: HashSet<BufferId>,
    /// Loops that some threads leave, by the number of their statement.
    exits: HashSet<usize>,
    loops: Vec<usize>,
    /// Of each statement: whether the way there hangs on one.
    levels: Vec<bool>,
    changed: bool,
}

impl Taint<'_> {
    fn mark(&mut self, l: LocalId) {
        self.changed |= self.locals.insert(l);
    }

    fn has(&self, body: &Body, e: ExprId) -> bool {
        let mut found = match &body.exprs[e] {
            Expr::Local(l) => self.locals.contains(l),
            Expr::Element { mem: Mem::Buffer(b), .. } => self.buffers.contains(b),
            _ => false,
        };
        body.exprs[e].operands(|o| found = found || self.has(body, o));
        found
    }

    fn block(&mut self, body: &Body, block: &Block, control: bool) {
        for s in block {
            self.stmt(body, s, control);
        }
    }

    fn stmt(&mut self, body: &Body, s: &Stmt, control: bool) {
        let number = self.levels.len();
        let control = control || self.loops.last().is_some_and(|l| self.exits.contains(l));
        self.levels.push(control);
        let mut inner = control;
        s.kind.operands(|e| inner = inner || self.has(body, e));
        match &s.kind {
            StmtKind::Let { local, .. } | StmtKind::Assign { local, .. } | StmtKind::Update { local, .. }
                if inner =>
            {
                self.mark(*local);
            }
            StmtKind::Store { mem: Mem::Buffer(b), .. } if inner => self.changed |= self.buffers.insert(*b),
            StmtKind::Op { results, op } => {
                let fold = matches!(op, Op::AllReduce { .. } | Op::Once { .. });
                // votes are uniform whatever they are given
                let hangs = if matches!(op, Op::Vote { .. }) { control } else { inner };
                if fold || hangs {
                    results.iter().for_each(|&l| self.mark(l));
                }
            }
            StmtKind::If { then, other, .. } => {
                if inner && !control && self.agreed(number, s) {
                    self.votes.insert(number);
                    inner = false;
                }
                self.block(body, then, inner);
                self.block(body, other, inner);
            }
            StmtKind::For { var, named, body: inside, .. } => {
                if inner {
                    self.mark(*var);
                    named.iter().for_each(|&l| self.mark(l));
                }
                self.inside(body, number, inside, inner);
            }
            StmtKind::While { body: inside, .. } => self.inside(body, number, inside, inner),
            StmtKind::Break | StmtKind::Continue if control => {
                if let Some(&l) = self.loops.last() {
                    self.changed |= self.exits.insert(l);
                }
            }
            _ => {}
        }
    }

    /// Whether the whole block takes the same side of a branch in which threads meet.
    fn agreed(&self, number: usize, s: &Stmt) -> bool {
        let Some(info) = self.info else { return false };
        let StmtKind::If { cond, .. } = &s.kind else { return false };
        let block = |l: Option<Level>| l.is_some_and(|l| l >= Level::Block);
        let mut meets = false;
        for b in s.kind.blocks() {
            walk(b, &mut |s| {
                meets |= match &s.kind {
                    StmtKind::Store { mem: Mem::Buffer(b), .. } | StmtKind::Buffer { buffer: b } => {
                        self.shared.contains(b)
                    }
                    _ => !matches!(s.kind_of_need(), Kind::Needs(Level::Thread) | Kind::Buffer(_)),
                };
            });
        }
        meets
            && block(info.stmts.get(number).map(|u| u.level))
            && block(info.exprs.get(cond.index()).map(|u| u.level))
    }

    fn inside(&mut self, body: &Body, number: usize, block: &Block, control: bool) {
        self.loops.push(number);
        self.block(body, block, control);
        self.loops.pop();
    }
}
