//! Kernels that name threads: the body is split at collectives into runs of statements, and each run becomes one
//! loop over the threads of the block.
//!
//! Statements share a run only while no thread could see what another wrote in it, so that the result is that of
//! running each statement on all threads before the next. Control flow that holds a collective (or an exchange
//! through memory) and is uniform stays outside the thread loops; where it differs between teams, [`super::masks`] say
//! which threads take part. A scalar that lives across runs becomes an array
//! with one element a thread.

use super::emit::Int;
use super::error::Result;
use super::frame::{Frame, Place, ThreadAt};
use super::roles::Crew;
use super::value::scratch_bytes;
use pantile_ir::program::{
    Block, Elem, Expr, ExprId, Home, LocalId, LocalKind, Mem, Op, Over, Place as AtomicPlace, Stmt, StmtKind,
    Team,
};
use std::collections::{HashMap, HashSet};

/// The body of a threaded kernel, taken apart.
enum Node<'s> {
    /// run on each thread, one after the other
    Run(Vec<&'s Stmt>),
    /// run on this many threads at a time
    Wide(&'s Stmt, u32),
    /// executed once for the block
    Collective(&'s Stmt),
    If {
        stmt: &'s Stmt,
        then: Vec<Node<'s>>,
        other: Vec<Node<'s>>,
    },
    Loop {
        stmt: &'s Stmt,
        body: Vec<Node<'s>>,
    },
}

/// Memories that a statement may share with other threads.
#[derive(Default)]
struct Touched {
    reads: HashSet<Mem>,
    writes: HashSet<Mem>,
}

impl Touched {
    fn conflicts(&self, next: &Touched) -> bool {
        !self.writes.is_disjoint(&next.reads)
            || !self.writes.is_disjoint(&next.writes)
            || !self.reads.is_disjoint(&next.writes)
    }

    fn with_itself(&self) -> bool {
        !self.writes.is_disjoint(&self.reads)
    }

    fn merge(&mut self, other: Touched) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
    }
}

impl<'a, 'c> Frame<'a, 'c> {
    /// The code of a block or role; `own` are the locals that it declares.
    pub fn crew_block(&self, block: &Block, own: &dyn Fn(LocalId) -> bool) -> Result<()> {
        if !self.crew.get().threaded {
            return self.stmts(block);
        }
        let nodes = self.split(block);
        let mut homes = Homes::default();
        homes.visit(self, &nodes);
        for id in homes.arrays().into_iter().filter(|&id| own(id)) {
            let elem = self.kernel.body.locals[id].ty.elem().unwrap_or(Elem::Index);
            let bytes = scratch_bytes(elem) as u64 * self.thread_count() as u64;
            let base = self.reserve(bytes);
            self.places.borrow_mut().insert(id, Place::PerThread(base));
        }
        self.nodes(&nodes)
    }

    pub fn thread_count(&self) -> u32 {
        self.kernel.threads.as_ref().map_or(1, |t| t.count())
    }

    // ---- splitting

    fn split<'s>(&self, block: &'s Block) -> Vec<Node<'s>> {
        let mut out: Vec<Node> = Vec::new();
        let mut open: Option<(Vec<&Stmt>, Touched)> = None;
        for s in block {
            let close = |out: &mut Vec<Node<'s>>, open: &mut Option<(Vec<&'s Stmt>, Touched)>| {
                if let Some((run, _)) = open.take() {
                    out.push(Node::Run(run));
                }
            };
            if let Some(node) = self.outer(s) {
                close(&mut out, &mut open);
                out.push(node);
                continue;
            }
            let touched = self.touched(s);
            if let Some(lanes) = self.side_by_side(s).filter(|_| !touched.with_itself()) {
                close(&mut out, &mut open);
                out.push(Node::Wide(s, lanes));
                continue;
            }
            if open.as_ref().is_some_and(|(_, t)| t.conflicts(&touched)) {
                close(&mut out, &mut open);
            }
            let (run, all) = open.get_or_insert_with(Default::default);
            run.push(s);
            all.merge(touched);
        }
        if let Some((run, _)) = open {
            out.push(Node::Run(run));
        }
        out
    }

    /// A statement that must stand outside the thread loops.
    fn outer<'s>(&self, s: &'s Stmt) -> Option<Node<'s>> {
        match &s.kind {
            StmtKind::If { cond, then, other } => {
                let exchange = self.touched(s).with_itself() && self.is_uniform(*cond);
                (self.holds_collective(s) || exchange || jumps_out(s)).then(|| Node::If {
                    stmt: s,
                    then: self.split(then),
                    other: self.split(other),
                })
            }
            StmtKind::For { segments, body, .. } => {
                let uniform =
                    segments.iter().all(|g| [g.lo, g.hi, g.step].iter().all(|&x| self.is_uniform(x)));
                let exchange = self.touched(s).with_itself() && uniform;
                (self.holds_collective(s) || exchange).then(|| Node::Loop { stmt: s, body: self.split(body) })
            }
            StmtKind::While { cond, body } => {
                let exchange = self.touched(s).with_itself() && self.is_uniform(*cond);
                (self.holds_collective(s) || exchange).then(|| Node::Loop { stmt: s, body: self.split(body) })
            }
            _ => self.is_collective(s).then_some(Node::Collective(s)),
        }
    }

    fn holds_collective(&self, s: &Stmt) -> bool {
        (!is_jump(s) && self.is_collective(s))
            || s.kind.blocks().iter().any(|b| b.iter().any(|s| self.holds_collective(s)))
    }

    fn is_collective(&self, s: &Stmt) -> bool {
        let tile = |id: LocalId| self.kernel.body.locals[id].ty.is_tile();
        match &s.kind {
            StmtKind::Let { local, .. }
            | StmtKind::Declare { local }
            | StmtKind::Assign { local, .. }
            | StmtKind::Update { local, .. } => tile(*local),
            StmtKind::Buffer { buffer } => self.buffer(*buffer).home != Home::Thread,
            StmtKind::Reducer { .. } | StmtKind::Parallel { .. } | StmtKind::Roles(_) => true,
            // reached only where the loop itself stands outside the thread loops
            StmtKind::Break | StmtKind::Continue | StmtKind::Next { .. } => true,
            StmtKind::Op { op, .. } => match op {
                Op::Atomic { at, .. } => matches!(at, AtomicPlace::Region(_)),
                Op::Fold { values, .. } => values.iter().any(|&v| self.kernel.body.type_of(v).is_tile()),
                Op::Print { .. } | Op::Assert { .. } => false,
                _ => true,
            },
            _ => false,
        }
    }

    /// Shared and global memory that a statement reads or writes, its blocks included.
    fn touched(&self, s: &Stmt) -> Touched {
        let mut t = Touched::default();
        let shared = |mem: &Mem| match mem {
            Mem::Buffer(id) => self.buffer(*id).home != Home::Thread,
            _ => true,
        };
        match &s.kind {
            StmtKind::Store { mem, .. } if shared(mem) => {
                t.writes.insert(*mem);
            }
            // atomics order themselves: they conflict with plain accesses only
            StmtKind::Op { op: Op::Atomic { at: AtomicPlace::Element { mem, .. }, .. }, .. }
                if shared(mem) =>
            {
                t.writes.insert(*mem);
            }
            _ => {}
        }
        s.kind.operands(|x| {
            self.reads(x, &mut |mem| {
                if shared(&mem) {
                    t.reads.insert(mem);
                }
            })
        });
        for block in s.kind.blocks() {
            for inner in block {
                t.merge(self.touched(inner));
            }
        }
        t
    }

    fn reads(&self, x: ExprId, f: &mut dyn FnMut(Mem)) {
        super::tile::for_each_expr(&self.kernel.body.exprs, x, &mut |id| {
            if let Expr::Element { mem, .. } = &self.kernel.body.exprs[id] {
                f(*mem);
            }
        });
    }

    fn is_uniform(&self, x: ExprId) -> bool {
        !self.varying.varies(self.kernel, x)
    }

    // ---- emission

    fn nodes(&self, nodes: &[Node<'_>]) -> Result<()> {
        nodes.iter().try_for_each(|n| self.node(n))
    }

    fn node(&self, node: &Node<'_>) -> Result<()> {
        match node {
            Node::Run(stmts) => self.each_thread(&mut |f| stmts.iter().try_for_each(|s| f.stmt(s))),
            Node::Wide(s, lanes) if self.masks.borrow().is_empty() => self.each_thread_wide(s, *lanes),
            Node::Wide(s, _) => self.each_thread(&mut |f| f.stmt(s)),
            Node::Collective(s) if self.in_masks.get() && is_jump(s) => {
                self.masked_jump(matches!(s.kind, StmtKind::Break));
                Ok(())
            }
            Node::Collective(s) => self.stmt(s),
            Node::If { stmt, then, other } => {
                let StmtKind::If { cond, .. } = &stmt.kind else { return Ok(()) };
                self.at_stmt(stmt);
                if !self.is_uniform(*cond) {
                    let then = &mut |f: &Self| f.nodes(then);
                    if other.is_empty() {
                        return self.masked_if(*cond, then, None);
                    }
                    return self.masked_if(*cond, then, Some(&mut |f| f.nodes(other)));
                }
                self.as_thread_zero(|f| {
                    f.branch(*cond, |f| f.outside(|f| f.nodes(then)), |f| f.outside(|f| f.nodes(other)))
                })
            }
            Node::Loop { stmt, body } => {
                self.at_stmt(stmt);
                self.outer_loop(stmt, body)
            }
        }
    }

    fn outer_loop(&self, stmt: &Stmt, body: &[Node<'_>]) -> Result<()> {
        let nodes = |f: &Self| f.nodes(body);
        if self.differs(stmt) {
            return match &stmt.kind {
                StmtKind::For { var, named, segments, carry, .. } => {
                    self.masked_for(*var, named, segments, carry, &mut |f| nodes(f))
                }
                StmtKind::While { cond, .. } => self.masked_while(*cond, &mut |f| nodes(f)),
                _ => Ok(()),
            };
        }
        let in_masks = self.in_masks.replace(false);
        let result = self.as_thread_zero(|f| match &stmt.kind {
            StmtKind::For { var, named, segments, carry, .. } => {
                f.for_loop(*var, named, segments, carry, &mut |f| f.outside(nodes))
            }
            StmtKind::While { cond, .. } => f.while_loop(*cond, &mut |f| f.outside(nodes)),
            _ => Ok(()),
        });
        self.in_masks.set(in_masks);
        result
    }

    /// Whether threads run a loop a different number of times.
    fn differs(&self, stmt: &Stmt) -> bool {
        let varies = |&x: &ExprId| !self.is_uniform(x);
        self.varying.left_apart(stmt)
            || match &stmt.kind {
                StmtKind::For { segments, .. } => {
                    segments.iter().any(|g| [g.lo, g.hi, g.step].iter().any(varies))
                }
                StmtKind::While { cond, .. } => varies(cond),
                _ => false,
            }
    }

    /// Uniform conditions and bounds are read as the first thread sees them.
    pub fn as_thread_zero<R>(&self, f: impl FnOnce(&Self) -> R) -> R {
        let first = self.e.int(self.crew.get().from as i64);
        self.with_thread(Some(ThreadAt { linear: first }), f)
    }

    fn outside<R>(&self, f: impl FnOnce(&Self) -> R) -> R {
        self.with_thread(None, f)
    }

    pub fn with_thread<R>(&self, t: Option<ThreadAt<'c>>, f: impl FnOnce(&Self) -> R) -> R {
        let before = self.thread.replace(t);
        let r = f(self);
        self.thread.set(before);
        r
    }

    /// A loop over the threads of the block or role that take part.
    pub fn each_thread(&self, f: &mut dyn FnMut(&Self) -> Result<()>) -> Result<()> {
        let mut result = Ok(());
        self.every_thread(|t| self.if_active(t, |this| result = f(this)));
        result
    }

    /// The numbers of all threads of the block or role, whether they take part or not.
    pub fn every_thread(&self, f: impl FnOnce(Int<'c>)) {
        let crew = self.crew.get();
        self.e.for_(self.e.int(crew.from as i64), self.e.int(crew.to as i64), self.e.int(1), f);
    }

    /// The teams of a collective as (outer count, inner count, linear thread of (outer, inner)).
    pub fn members(&self, over: &Over) -> Members {
        let (total, crew) = (self.thread_count(), self.crew.get());
        match over {
            Over::Team(Team::Warp) => Members::consecutive(total, self.machine.warp, crew),
            Over::Team(Team::Group) => Members::consecutive(total, self.machine.group, crew),
            // whatever is larger than a role's threads ends with them
            Over::Team(Team::Block | Team::Cluster | Team::Named(_)) => Members {
                outer: vec![(1, 0)],
                inner: vec![(crew.to - crew.from, 1)],
                first: crew.from,
                from: crew.from,
                to: crew.to,
            },
            Over::Axes(axes) => {
                let all = self.kernel.threads.as_ref().map(|t| t.axes.as_slice()).unwrap_or_default();
                let mut strides = vec![1u32; all.len()];
                for i in (0..all.len().saturating_sub(1)).rev() {
                    strides[i] = strides[i + 1] * all[i + 1].1;
                }
                let digit = |i: usize| (all[i].1, strides[i]);
                let chosen = |id: &LocalId| all.iter().position(|(l, _)| l == id);
                let inner: Vec<usize> = axes.iter().filter_map(chosen).collect();
                let outer: Vec<usize> = (0..all.len()).filter(|i| !inner.contains(i)).collect();
                Members {
                    outer: outer.into_iter().map(digit).collect(),
                    inner: inner.into_iter().map(digit).collect(),
                    first: 0,
                    from: crew.from,
                    to: crew.to,
                }
            }
        }
    }
}

/// Mixed-radix digits (extent, stride in linear threads) of teams and of the places in a team; last fastest.
pub struct Members {
    pub outer: Vec<(u32, u32)>,
    pub inner: Vec<(u32, u32)>,
    /// the thread where all digits are 0
    pub first: u32,
    /// threads that are there; a team may be ragged
    pub from: u32,
    pub to: u32,
}

impl Members {
    fn consecutive(total: u32, size: u32, crew: Crew) -> Members {
        let size = size.min(total).max(1);
        let outer = vec![(total.div_ceil(size), size)];
        Members { outer, inner: vec![(size, 1)], first: 0, from: crew.from, to: crew.to }
    }

    /// Every member of every team is there.
    pub fn whole(&self) -> bool {
        self.teams() * self.size() == self.to - self.from
    }

    pub fn teams(&self) -> u32 {
        self.outer.iter().map(|d| d.0).product()
    }

    pub fn size(&self) -> u32 {
        self.inner.iter().map(|d| d.0).product()
    }
}

/// Which runs and collectives mention each local.
#[derive(Default)]
struct Homes {
    uses: HashMap<LocalId, HashSet<u32>>,
    /// set once for the block
    block: HashSet<LocalId>,
    /// different for each thread
    own: HashSet<LocalId>,
    next: u32,
}

impl Homes {
    fn visit(&mut self, f: &Frame<'_, '_>, nodes: &[Node<'_>]) {
        for node in nodes {
            match node {
                Node::Run(stmts) => {
                    self.next += 1;
                    stmts.iter().for_each(|s| self.stmt(f, s));
                }
                Node::Wide(s, _) => {
                    self.next += 1;
                    self.stmt(f, s);
                }
                Node::Collective(s) => {
                    self.next += 1;
                    self.stmt(f, s);
                    self.collective(s);
                }
                Node::If { stmt, then, other } => {
                    self.next += 1;
                    stmt.kind.operands(|x| self.expr(f, x));
                    self.visit(f, then);
                    self.visit(f, other);
                }
                Node::Loop { stmt, body } => {
                    self.next += 1;
                    stmt.kind.operands(|x| self.expr(f, x));
                    if let StmtKind::For { var, named, .. } = &stmt.kind {
                        let all = std::iter::once(*var).chain(named.iter().copied());
                        if f.differs(stmt) { self.own.extend(all) } else { self.block.extend(all) }
                    }
                    self.visit(f, body);
                }
            }
        }
    }

    /// Results that all threads share stay single.
    fn collective(&mut self, s: &Stmt) {
        let StmtKind::Op { results, op } = &s.kind else {
            if let StmtKind::Parallel { vars, .. } = &s.kind {
                self.block.extend(vars.iter().copied());
            }
            return;
        };
        if matches!(op, Op::Once { .. } | Op::Join { .. } | Op::Reduce { axis: None, .. }) {
            self.block.extend(results.iter().copied());
        }
    }

    fn stmt(&mut self, f: &Frame<'_, '_>, s: &Stmt) {
        for id in s.kind.defines() {
            // a tile belongs to the block wherever it is written
            if f.kernel.body.locals[id].ty.is_scalar() {
                self.uses.entry(id).or_default().insert(self.next);
            }
        }
        s.kind.operands(|x| self.expr(f, x));
        for block in s.kind.blocks() {
            block.iter().for_each(|s| self.stmt(f, s));
        }
    }

    fn expr(&mut self, f: &Frame<'_, '_>, x: ExprId) {
        let at = self.next;
        super::tile::for_each_expr(&f.kernel.body.exprs, x, &mut |id| {
            if let Expr::Local(local) = f.kernel.body.exprs[id] {
                let l = &f.kernel.body.locals[local];
                let own = matches!(l.kind, LocalKind::Let | LocalKind::Var | LocalKind::Loop);
                if own && l.ty.is_scalar() {
                    self.uses.entry(local).or_default().insert(at);
                }
            }
        });
    }

    fn arrays(&self) -> Vec<LocalId> {
        let mut all: Vec<LocalId> = self
            .uses
            .iter()
            .filter(|(id, runs)| runs.len() > 1 && !self.block.contains(id))
            .map(|(&id, _)| id)
            .chain(self.own.iter().copied())
            .collect();
        all.sort();
        all.dedup();
        all
    }
}

fn is_jump(s: &Stmt) -> bool {
    matches!(s.kind, StmtKind::Break | StmtKind::Continue)
}

/// A jump whose loop lies outside the statement.
fn jumps_out(s: &Stmt) -> bool {
    match &s.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::If { then, other, .. } => then.iter().chain(other).any(jumps_out),
        _ => false,
    }
}
