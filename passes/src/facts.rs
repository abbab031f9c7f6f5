//! Facts of a program of stage final, counted in its statements: every place once, whatever loops stand around it.

use crate::share::Conflicts;
use pantile_ir::diag::Diagnostics;
use pantile_ir::program::{
    ArgKind, Block, Expr, ExprId, Home, Kernel, LoopKind, Mem, Op, Program, StmtKind, Team,
};
use pantile_ir::span::Span;
use pantile_ir::target::Arch;
use pantile_ir::verify::{KernelInfo, verify};
use std::collections::BTreeMap;

/// Facts of one kernel, a `key: value` a line.
#[derive(Default)]
pub struct Facts {
    pub threads: u32,
    /// bytes of the block's arena
    pub shared_bytes: u64,
    /// By name, in the order of the names.
    counts: BTreeMap<String, u64>,
    /// `None` is unknown.
    conflicts: Option<Conflicts>,
    pub accesses: Vec<Access>,
}

/// What one statement moves between memory and registers of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub mem: Mem,
    pub store: bool,
    pub bits: u64,
    pub span: Span,
}

/// Shown even where they are zero.
const ALWAYS: [&str; 5] =
    ["barriers of the block", "barriers of a warp", "shuffles", "shared atomics", "global atomics"];

/// Facts of each kernel of a verified program.
pub fn facts(program: &Program, arch: &Arch) -> Result<Vec<Facts>, Diagnostics> {
    let info = verify(program, arch)?;
    Ok(program.kernels.iter().zip(&info.kernels).map(|((_, k), info)| of(k, info, arch)).collect())
}

fn of(k: &Kernel, info: &KernelInfo, arch: &Arch) -> Facts {
    let mut facts = Facts { threads: crate::plan::threads(k), ..Facts::default() };
    ALWAYS.iter().for_each(|n| facts.add(n, 0));
    let mut count = Count { k, facts, lanes: 1, span: k.span };
    count.block(&k.stmts);
    let mut facts = count.facts;
    facts.shared_bytes = crate::share::bytes(k);
    let shared = k.buffers.iter().filter(|(_, b)| b.home == Home::Shared);
    facts.conflicts = arch.banks().map(|_| Conflicts::default());
    for (id, _) in shared {
        let more = crate::share::conflicts(k, info, id, arch);
        facts.conflicts = facts.conflicts.zip(more).map(|(a, b)| Conflicts {
            ways: a.ways.max(b.ways),
            phases: a.phases + b.phases,
            ideal: a.ideal + b.ideal,
            unknown: a.unknown + b.unknown,
        });
    }
    facts
}

/// In words: `none`, `4 ways, 128 phases for 32`, with what is not known.
pub fn conflicts_text(found: Option<Conflicts>) -> String {
    let Some(c) = found else { return "unknown".into() };
    let mut text = match c.phases > c.ideal {
        true => format!("{} ways, {} phases for {}", c.ways, c.phases, c.ideal),
        false => "none".to_string(),
    };
    if c.unknown > 0 {
        let noun = if c.unknown == 1 { "access" } else { "accesses" };
        text += &format!(" ({} {noun} unknown)", c.unknown);
    }
    text
}

impl Facts {
    fn add(&mut self, name: &str, n: u64) {
        *self.counts.entry(name.into()).or_default() += n;
    }
}

impl std::fmt::Display for Facts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "threads: {}\nshared bytes: {}", self.threads, self.shared_bytes)?;
        self.counts.iter().try_for_each(|(name, n)| writeln!(f, "{name}: {n}"))?;
        writeln!(f, "bank conflicts: {}", conflicts_text(self.conflicts))
    }
}

struct Count<'a> {
    k: &'a Kernel,
    facts: Facts,
    /// elements that one access of the statement moves
    lanes: u64,
    span: Span,
}

impl Count<'_> {
    fn block(&mut self, block: &Block) {
        for s in block {
            self.span = s.span;
            self.stmt(&s.kind);
        }
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
        self.facts.accesses.push(Access { mem, store: way == "store", bits, span: self.span });
    }
}
