//! Facts of a program of stage final, counted in its statements: every place once, whatever loops stand around it.

use pantile_ir::program::{ArgKind, Block, Expr, ExprId, Home, Kernel, LoopKind, Mem, Op, StmtKind, Team};
use std::collections::BTreeMap;

/// Counts by name, in the order of their names.
#[derive(Default)]
pub struct Facts(BTreeMap<String, u64>);

/// Shown even where they are zero.
const ALWAYS: [&str; 4] = ["barriers of the block", "barriers of a warp", "shuffles", "shared atomics"];

/// Facts of a kernel.
pub fn facts(k: &Kernel) -> Facts {
    let mut facts = Facts::default();
    ALWAYS.iter().for_each(|n| facts.add(n, 0));
    let mut count = Count { k, facts, lanes: 1 };
    count.block(&k.stmts);
    let mut facts = count.facts;
    let shared = k.buffers.iter().filter(|(_, b)| b.home == Home::Shared);
    let bits: u64 = shared
        .map(|(_, b)| b.shape.iter().map(|&n| u64::from(n)).product::<u64>() * u64::from(b.elem.bits()))
        .sum();
    facts.add("shared bytes declared", bits.div_ceil(8));
    facts
}

impl Facts {
    fn add(&mut self, name: &str, n: u64) {
        *self.0.entry(name.into()).or_default() += n;
    }
}

impl std::fmt::Display for Facts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|(name, n)| writeln!(f, "{name}: {n}"))
    }
}

struct Count<'a> {
    k: &'a Kernel,
    facts: Facts,
    /// elements that one access of the statement moves
    lanes: u64,
}

impl Count<'_> {
    fn block(&mut self, block: &Block) {
        block.iter().for_each(|s| self.stmt(&s.kind));
    }

    fn stmt(&mut self, stmt: &StmtKind) {
        stmt.operands(|e| self.expr(e));
        match stmt {
            StmtKind::Store { mem, .. } => self.access(*mem, "store"),
            StmtKind::Op { op, .. } => self.op(op),
            StmtKind::If { then, other, .. } => [then, other].into_iter().for_each(|b| self.block(b)),
            StmtKind::For { kind, segments, body, .. } => {
                let wide =
                    (*kind == LoopKind::Vectorized).then(|| self.constant(segments.first()?.hi)).flatten();
                let before = std::mem::replace(&mut self.lanes, wide.unwrap_or(1));
                self.block(body);
                self.lanes = before;
            }
            StmtKind::While { body, .. } | StmtKind::Parallel { body, .. } => self.block(body),
            StmtKind::Roles(roles) => roles.iter().for_each(|r| self.block(&r.body)),
            _ => {}
        }
    }

    fn op(&mut self, op: &Op) {
        let name = match op {
            Op::Barrier { team: Team::Warp } => "barriers of a warp",
            Op::Barrier { .. } => "barriers of the block",
            Op::Shuffle { .. } => "shuffles",
            Op::Vote { .. } => "votes",
            Op::AllReduce { .. } => "reductions left",
            Op::Atomic { at, .. } => match self.home(at.mem()) {
                Some(Home::Shared) => "shared atomics",
                _ => "global atomics",
            },
            _ => return,
        };
        self.facts.add(name, 1);
    }

    fn expr(&mut self, e: ExprId) {
        let expr = &self.k.body.exprs[e];
        expr.operands(|o| self.expr(o));
        if let Expr::Element { mem, .. } = expr {
            self.access(*mem, "load");
        }
    }

    fn constant(&self, e: ExprId) -> Option<u64> {
        match self.k.body.exprs[e] {
            Expr::Const { bits, .. } => Some(bits),
            _ => None,
        }
    }

    /// Where memory lies; `None` is a tensor.
    fn home(&self, mem: Mem) -> Option<Home> {
        match mem {
            Mem::Buffer(b) => Some(self.k.buffers[b].home),
            _ => None,
        }
    }

    fn access(&mut self, mem: Mem, way: &str) {
        let (place, elem) = match mem {
            Mem::Tensor(arg) => match &self.k.args[arg].kind {
                ArgKind::Tensor(t) => ("global", t.elem),
                ArgKind::Scalar(_) => return,
            },
            Mem::Buffer(b) if self.k.buffers[b].home == Home::Shared => ("shared", self.k.buffers[b].elem),
            // registers
            _ => return,
        };
        let bits = u64::from(elem.bits()) * self.lanes;
        self.facts.add(&format!("{place} {way}s of {bits} bits"), 1);
    }
}
