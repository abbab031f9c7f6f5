//! The table: one row an op. The match has no wildcard, so a new op does not compile without its row.

use super::*;
use smallvec::smallvec;

/// What an op touches: first what its expressions read, then its own row.
pub fn effects(op: &Op, ctx: &Ctx) -> Accesses {
    let mut row = Row::new(ctx);
    op.operands(|e| row.expr(e));
    match op {
        Op::Read { from, .. } => row.region(from, Kind::Read),
        Op::Write { to, .. } => row.region(to, Kind::Write),
        Op::Gemm { into, init, .. } => row.accumulator(*into, *init, Proxy::Generic, Done::Now),
        Op::Reduce { .. } | Op::Scan { .. } => {}
        Op::Fold { reducer, index, .. } => {
            let part = if index.is_empty() { Part::Whole } else { Part::Element(index.clone()) };
            row.add(Obj::Reducer(*reducer), part, Kind::Accumulate);
        }
        Op::Join { reducer } => row.add(Obj::Reducer(*reducer), Part::Whole, Kind::Read),
        Op::AllReduce { .. } | Op::Shuffle { .. } | Op::Vote { .. } | Op::Once { .. } => {}
        Op::Barrier { .. } => {}
        Op::Atomic { at, .. } => {
            let scope = if matches!(at.mem(), Mem::Tensor(_)) { Scope::Device } else { Scope::Block };
            match at {
                Place::Element { mem, index } => {
                    row.memory(*mem, Part::Element(index.clone()), Kind::Atomic(scope))
                }
                Place::Region(r) => row.region(r, Kind::Atomic(scope)),
            }
        }
        Op::Print { .. } | Op::Assert { .. } => {}
        // the order of agents is in `sync`; a slot's tiles are touched by those who name them
        Op::Acquire { .. }
        | Op::Wait { .. }
        | Op::Commit { .. }
        | Op::Release { .. }
        | Op::Await { .. }
        | Op::Take { .. }
        | Op::Pass { .. }
        | Op::Fence { .. } => {}
        Op::CopyAsync { from, to, queue, .. } => row.copy(from, to, *queue),
        Op::Issue { queue, a, b, into, init, .. } => {
            let done = Done::Fifo(*queue);
            for m in [a, b] {
                match m {
                    MatOperand::Memory { region, .. } => {
                        row.engine(region.mem, Part::Region(region.axes.clone()), Kind::Read, done);
                    }
                    // registers are read until the await
                    MatOperand::Value(e) => row.locals_of(*e, Proxy::Async, done),
                }
            }
            row.accumulator(*into, *init, Proxy::Async, done);
        }
    }
    row.list
}

/// What a statement itself touches; the blocks inside it are not visited.
pub fn stmt_effects(kind: &StmtKind, ctx: &Ctx) -> Accesses {
    if let StmtKind::Op { results, op } = kind {
        let mut list = effects(op, ctx);
        let mut row = Row::new(ctx);
        results.iter().for_each(|&l| row.frag(l, Kind::Write));
        list.extend(row.list);
        return list;
    }
    let mut row = Row::new(ctx);
    kind.operands(|e| row.expr(e));
    match kind {
        StmtKind::Let { local, .. } | StmtKind::Assign { local, .. } => row.frag(*local, Kind::Write),
        StmtKind::Update { local, .. } => {
            row.frag(*local, Kind::Read);
            row.frag(*local, Kind::Write);
        }
        StmtKind::Store { mem, index, .. } => row.memory(*mem, Part::Element(index.clone()), Kind::Write),
        StmtKind::Reducer { reducer } => row.add(Obj::Reducer(*reducer), Part::Whole, Kind::Write),
        StmtKind::Declare { .. }
        | StmtKind::Buffer { .. }
        | StmtKind::Op { .. }
        | StmtKind::If { .. }
        | StmtKind::For { .. }
        | StmtKind::While { .. }
        | StmtKind::Parallel { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Next { .. }
        | StmtKind::Roles(_) => {}
    }
    row.list
}

/// What an op orders.
pub fn sync(op: &Op) -> Option<Sync> {
    Some(match op {
        Op::Barrier { team } => Sync::Barrier(*team),
        Op::Acquire { ring } => Sync::Acquire(*ring),
        Op::Commit { token } => Sync::Commit(*token),
        Op::Wait { ring } => Sync::Wait(*ring),
        Op::Release { token } => Sync::Release(*token),
        Op::Await { queue, keep } => Sync::Await { queue: *queue, keep: *keep },
        Op::Fence { kind: FenceKind::Proxy, team } => Sync::ProxyFence(*team),
        Op::Fence { kind: FenceKind::Registers, team } => Sync::RegFence(*team),
        Op::Take { turn } => Sync::Take(*turn),
        Op::Pass { turn } => Sync::Pass(*turn),
        Op::AllReduce { over, .. } => Sync::Exchange(match over {
            Over::Team(team) => *team,
            Over::Axes(_) => Team::Block,
        }),
        Op::Shuffle { .. } => Sync::Exchange(Team::Warp),
        Op::Vote { team, .. } => Sync::Exchange(*team),
        Op::Once { .. } | Op::Join { .. } => Sync::Exchange(Team::Block),
        Op::Read { .. }
        | Op::Write { .. }
        | Op::Gemm { .. }
        | Op::Reduce { .. }
        | Op::Scan { .. }
        | Op::Fold { .. }
        | Op::Atomic { .. }
        | Op::Print { .. }
        | Op::Assert { .. }
        | Op::CopyAsync { .. }
        | Op::Issue { .. } => return None,
    })
}

struct Row<'c, 'a> {
    ctx: &'c Ctx<'a>,
    list: Accesses,
}

impl<'c, 'a> Row<'c, 'a> {
    fn new(ctx: &'c Ctx<'a>) -> Self {
        Row { ctx, list: smallvec![] }
    }

    fn push(&mut self, obj: Obj, part: Part, kind: Kind, (proxy, done): (Proxy, Done), owner: Owner) {
        let (team, span) = (self.ctx.team, self.ctx.span);
        let access = Access { obj, part, kind, proxy, done, team, owner, span };
        if !self.list.contains(&access) {
            self.list.push(access);
        }
    }

    fn add(&mut self, obj: Obj, part: Part, kind: Kind) {
        let owner = match part {
            Part::Element(_) => Owner::Thread,
            Part::Whole | Part::Region(_) => Owner::PerThread(None),
        };
        self.push(obj, part, kind, (Proxy::Generic, Done::Now), owner);
    }

    fn obj(&self, mem: Mem) -> Obj {
        match mem {
            Mem::Tensor(arg) => Obj::Global(arg),
            Mem::Slot { token, field } => Obj::Slot { token, field },
            Mem::Buffer(b) => match self.ctx.kernel.buffers.get(b).map(|b| b.home) {
                Some(Home::Shared) => Obj::Shared(b),
                Some(Home::Thread) => Obj::Array(b),
                _ => Obj::Pinned(b),
            },
        }
    }

    fn memory(&mut self, mem: Mem, part: Part, kind: Kind) {
        self.add(self.obj(mem), part, kind);
    }

    fn region(&mut self, r: &Region, kind: Kind) {
        self.memory(r.mem, Part::Region(r.axes.clone()), kind);
    }

    fn engine(&mut self, mem: Mem, part: Part, kind: Kind, done: Done) {
        let obj = self.obj(mem);
        self.push(obj, part, kind, (Proxy::Async, done), Owner::Engine);
    }

    /// A copy with a queue that carries copies of threads is generic; a counted or bulk copy is an engine's.
    fn copy(&mut self, from: &Region, to: &Region, queue: Option<QueueId>) {
        let fill = match to.mem {
            Mem::Slot { token, .. } => self.fill(token).map(|fill| (token, fill)),
            _ => None,
        };
        let (proxy, done, owner) = match (queue, fill) {
            (Some(q), _) => match self.ctx.kernel.queues.get(q).map(|q| q.engine) {
                Some(Engine::Copy) => (Proxy::Generic, Done::Fifo(q), Owner::PerThread(None)),
                _ => (Proxy::Async, Done::Fifo(q), Owner::Engine),
            },
            (None, Some((_, Fill::Fifo(q)))) => (Proxy::Generic, Done::Fifo(q), Owner::PerThread(None)),
            (None, Some((token, _))) => (Proxy::Async, Done::Counted(token), Owner::Engine),
            (None, None) => (Proxy::Async, Done::Now, Owner::Engine),
        };
        let (src, dst) = (self.obj(from.mem), self.obj(to.mem));
        self.push(src, Part::Region(from.axes.clone()), Kind::Read, (proxy, done), owner.clone());
        self.push(dst, Part::Region(to.axes.clone()), Kind::Write, (proxy, done), owner);
    }

    fn fill(&self, token: LocalId) -> Option<Fill> {
        match self.ctx.kernel.body.locals.get(token)?.kind {
            LocalKind::Token(ring) => self.ctx.kernel.rings.get(ring).map(|r| r.fill),
            _ => None,
        }
    }

    fn accumulator(&mut self, into: LocalId, init: Init, proxy: Proxy, done: Done) {
        let kind = if init == Init::Overwrite { Kind::Write } else { Kind::Accumulate };
        let owner = self.owner(into);
        self.push(Obj::Frag(into), Part::Whole, kind, (proxy, done), owner);
    }

    fn owner(&self, l: LocalId) -> Owner {
        Owner::PerThread(
            self.ctx.kernel.body.locals.get(l).and_then(|l| l.layout.as_ref()).map(|s| s.layout.clone()),
        )
    }

    /// Tiles are objects; scalars are not.
    fn frag(&mut self, l: LocalId, kind: Kind) {
        if self.ctx.kernel.body.locals.get(l).is_some_and(|l| l.ty.is_tile()) {
            let owner = self.owner(l);
            self.push(Obj::Frag(l), Part::Whole, kind, (Proxy::Generic, Done::Now), owner);
        }
    }

    /// What evaluating an expression reads.
    fn expr(&mut self, root: ExprId) {
        self.walk(root, |row, expr| match expr {
            Expr::Local(l) => row.frag(*l, Kind::Read),
            Expr::Element { mem, index, .. } => row.memory(*mem, Part::Element(index.clone()), Kind::Read),
            _ => {}
        });
    }

    fn locals_of(&mut self, root: ExprId, proxy: Proxy, done: Done) {
        self.walk(root, |row, expr| {
            if let Expr::Local(l) = expr
                && row.ctx.kernel.body.locals[*l].ty.is_tile()
            {
                let owner = row.owner(*l);
                row.push(Obj::Frag(*l), Part::Whole, Kind::Read, (proxy, done), owner);
            }
        });
    }

    fn walk(&mut self, root: ExprId, mut f: impl FnMut(&mut Self, &'a Expr)) {
        let exprs = &self.ctx.kernel.body.exprs;
        let mut seen = std::collections::HashSet::new();
        let mut open = vec![root];
        while let Some(e) = open.pop() {
            if !seen.insert(e) {
                continue;
            }
            if let Some(expr) = exprs.get(e) {
                f(self, expr);
                expr.operands(|o| open.push(o));
            }
        }
    }
}

#[cfg(test)]
mod tests;
