//! Where threads that a collective needs do not come together: what each collective needs of the control around it
//! once it is lowered, and what that control still is then.
//!
//! A value that folds leave is read from other lanes or from memory, so that control that hangs on it is no longer
//! known to be uniform; it counts as control that differs between threads.

use super::fold::Folder;
use super::meet::{jumps, meets};
use super::shape::{Widths, group};
use crate::make::Make;
use pantile_ir::arena::Arena;
use pantile_ir::builder::{KernelBuilder, Result};
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
    /// The whole block agrees on what leads inside, but only a vote still shows it.
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
    let mut taint = Taint { info: Some(info), ..Taint::default() };
    while {
        taint.changed = false;
        taint.levels.clear();
        taint.votes.clear();
        taint.loops.clear();
        taint.block(k.kernel(), stmts, false);
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

pub enum Kind {
    Fold(Combiner, Args, Over),
    Buffer(BufferId),
    Needs(Level),
}

pub trait KindOfNeed {
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
    /// Branches and loops into which a vote leads the whole block.
    votes: HashSet<usize>,
    locals: HashSet<LocalId>,
    buffers: HashSet<BufferId>,
    /// Loops that some threads leave, by the number of their statement.
    exits: HashSet<usize>,
    /// The open loops, and whether threads meet in their steps.
    loops: Vec<(usize, bool)>,
    /// Of each statement: whether the way there hangs on one.
    levels: Vec<bool>,
    changed: bool,
}

impl Taint<'_> {
    fn mark(&mut self, l: LocalId) {
        self.changed |= self.locals.insert(l);
    }

    fn has(&self, body: &Body, e: ExprId) -> bool {
        body.holds(e, |x, _| match x {
            Expr::Local(l) => self.locals.contains(l),
            Expr::Element { mem: Mem::Buffer(b), .. } => self.buffers.contains(b),
            _ => false,
        })
    }

    fn block(&mut self, k: &Kernel, block: &Block, control: bool) {
        for s in block {
            self.stmt(k, s, control);
        }
    }

    fn stmt(&mut self, k: &Kernel, s: &Stmt, control: bool) {
        let number = self.levels.len();
        let control = control || self.loops.last().is_some_and(|(l, _)| self.exits.contains(l));
        self.levels.push(control);
        let mut inner = control;
        s.kind.operands(|e| inner = inner || self.has(&k.body, e));
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
                let inner = inner && (control || !self.voted(k, number, s));
                self.block(k, then, inner);
                self.block(k, other, inner);
            }
            StmtKind::For { var, named, body, .. } => {
                if inner {
                    self.mark(*var);
                    named.iter().for_each(|&l| self.mark(l));
                }
                let inner = inner && (control || !self.voted(k, number, s));
                self.inside(k, number, body, inner);
            }
            StmtKind::While { body, .. } => {
                let inner = inner && (control || !self.voted(k, number, s));
                self.inside(k, number, body, inner);
            }
            StmtKind::Break | StmtKind::Continue if control => {
                if let Some(&(l, _)) = self.loops.last() {
                    self.changed |= self.exits.insert(l);
                }
            }
            _ => {}
        }
    }

    /// Whether the whole block goes the same way into a statement where threads meet inside, or in what a jump in it
    /// leaves out; if so, notes it.
    fn voted(&mut self, k: &Kernel, number: usize, s: &Stmt) -> bool {
        let Some(info) = self.info else { return false };
        let block = |l: Option<Level>| l.is_some_and(|l| l >= Level::Block);
        let mut agreed = block(info.stmts.get(number).map(|u| u.level));
        s.kind.operands(|e| agreed &= block(info.exprs.get(e.index()).map(|u| u.level)));
        if let StmtKind::For { kind, named, segments, carry, .. } = &s.kind {
            agreed &= segments.len() == 1 && named.is_empty() && carry.is_empty();
            agreed &= matches!(kind, LoopKind::Serial | LoopKind::NoUnroll);
        }
        let skips = self.loops.last().is_some_and(|l| l.1) && matches!(s.kind, StmtKind::If { .. });
        let votes = agreed && (skips && s.kind.blocks().into_iter().any(jumps) || meets(k, s.kind.blocks()));
        if votes {
            self.votes.insert(number);
        }
        votes
    }

    fn inside(&mut self, k: &Kernel, number: usize, block: &Block, control: bool) {
        self.loops.push((number, meets(k, [block])));
        self.block(k, block, control);
        self.loops.pop();
    }
}
