//! Which loops of thread code can run many threads side by side, one a vector lane.
//!
//! Neighbouring threads of the fastest axis become lanes where memory says so: every index is the same for all of
//! them, or thread `t` works on elements `base + t·n ..` of a row, `n` of them in a loop of constant length. Then a
//! step of all lanes reads one piece of memory. Each thread keeps its own order of operations, so results are
//! those of scalar code bit for bit. Nothing is emitted here; [`super::wide`] does.

use super::frame::Frame;
use pantile_ir::program::{
    ArgKind, BinOp, BufferId, Elem, Expr, ExprId, Home, Kernel, LocalId, LocalKind, Mem, Mode, Segment, Stmt,
    StmtKind, UnOp, walk,
};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// Elements of one thread in a step, at most.
const LONGEST: i64 = 64;

/// What an index moves by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// from one thread of the fastest axis to the next
    Lane,
    /// from one value of this loop variable to the next
    Var(LocalId),
}

/// How fast values change, from their definitions.
pub struct Slopes {
    lets: HashMap<LocalId, ExprId>,
    known: RefCell<HashMap<(LocalId, By), Option<i64>>>,
}

impl Slopes {
    pub fn of(kernel: &Kernel) -> Slopes {
        let mut lets = HashMap::new();
        walk(&kernel.stmts, &mut |s| {
            if let StmtKind::Let { local, value } = s.kind
                && kernel.body.locals[local].kind == LocalKind::Let
            {
                lets.insert(local, value);
            }
        });
        Slopes { lets, known: RefCell::default() }
    }

    /// The constant by which `x` grows; `None` where that is not known.
    pub fn of_expr(&self, k: &Kernel, x: ExprId, by: By) -> Option<i64> {
        let go = |x: ExprId| self.of_expr(k, x, by);
        match &k.body.exprs[x] {
            Expr::Const { .. } | Expr::Dim(_) | Expr::Arg(_) => Some(0),
            Expr::Local(l) => self.of_local(k, *l, by),
            Expr::Unary(UnOp::Neg, a) => go(*a)?.checked_neg(),
            Expr::Binary(BinOp::Add, a, b) => go(*a)?.checked_add(go(*b)?),
            Expr::Binary(BinOp::Sub, a, b) => go(*a)?.checked_sub(go(*b)?),
            Expr::Binary(BinOp::Mul, a, b) => match (go(*a)?, go(*b)?) {
                (0, 0) => Some(0),
                (s, 0) => s.checked_mul(k.body.index_constant(*b)?),
                (0, s) => s.checked_mul(k.body.index_constant(*a)?),
                _ => None,
            },
            Expr::Element { mem: Mem::Tensor(id), index, or } => {
                let read_only = matches!(&k.args[*id].kind, ArgKind::Tensor(t) if t.mode == Mode::In);
                let still = read_only && index.iter().chain(or).all(|&i| go(i) == Some(0));
                still.then_some(0)
            }
            Expr::Element { .. } | Expr::Pick { .. } => None,
            other => {
                let mut still = true;
                other.operands(|c| still &= go(c) == Some(0));
                (still && k.body.type_of(x).is_scalar()).then_some(0)
            }
        }
    }

    fn of_local(&self, k: &Kernel, l: LocalId, by: By) -> Option<i64> {
        if let Some(&s) = self.known.borrow().get(&(l, by)) {
            return s;
        }
        let s = match k.body.locals[l].kind {
            LocalKind::Thread(axis) => {
                let last = k.threads.as_ref().is_some_and(|t| t.axes.len() == axis as usize + 1);
                Some(i64::from(by == By::Lane && last))
            }
            LocalKind::Grid(_) => Some(0),
            LocalKind::Loop => Some(i64::from(by == By::Var(l))),
            LocalKind::Let => self.lets.get(&l).and_then(|&x| self.of_expr(k, x, by)),
            LocalKind::Var => (by != By::Lane).then_some(0),
            LocalKind::Token(_) => None,
        };
        self.known.borrow_mut().insert((l, by), s);
        s
    }
}

/// One thread's elements in a step: `n` of them counted by `var`, or a single one.
#[derive(Clone, Copy)]
pub struct Chunk {
    pub var: Option<LocalId>,
    pub n: u32,
}

impl Chunk {
    pub const ONE: Chunk = Chunk { var: None, n: 1 };
}

impl<'a, 'c> Frame<'a, 'c> {
    /// The number of lanes in which a statement of thread code can run.
    pub fn side_by_side(&self, s: &Stmt) -> Option<u32> {
        let threads = self.kernel.threads.as_ref()?;
        let crew = self.crew.get();
        if !matches!(s.kind, StmtKind::For { .. }) || crew.from != 0 || crew.to != threads.count() {
            return None;
        }
        let fastest = threads.axes.last()?.1;
        let lanes = 1 << fastest.trailing_zeros().min(self.machine.lanes.ilog2());
        (lanes >= 4 && self.runs_wide(s, &mut HashSet::new())).then_some(lanes)
    }

    /// `own`: the thread arrays declared so far.
    fn runs_wide(&self, s: &Stmt, own: &mut HashSet<BufferId>) -> bool {
        let scalar = |l: LocalId| self.kernel.body.locals[l].ty.is_scalar();
        match &s.kind {
            StmtKind::Let { local, value } => {
                scalar(*local) && (self.follows(*local) || self.chunk_value(*value, Chunk::ONE, own))
            }
            StmtKind::Assign { local, value } | StmtKind::Update { local, value, .. } => {
                scalar(*local) && self.chunk_value(*value, Chunk::ONE, own)
            }
            StmtKind::Declare { local } => scalar(*local),
            StmtKind::Buffer { buffer } => {
                let b = self.buffer(*buffer);
                let n = b.shape.first().copied().unwrap_or(0);
                own.insert(*buffer);
                b.home == Home::Thread
                    && b.shape.len() == 1
                    && n.is_power_of_two()
                    && i64::from(n) <= LONGEST
                    && b.elem.bits() >= 8
            }
            StmtKind::Store { mem, index, value } => {
                self.chunk_place(*mem, index, false, Chunk::ONE) && self.chunk_value(*value, Chunk::ONE, own)
            }
            StmtKind::If { cond, then, other } => {
                self.lanes_agree(*cond) && then.iter().chain(other).all(|s| self.runs_wide(s, own))
            }
            StmtKind::For { named, segments, carry, body, .. } => {
                let bounds = |g: &Segment| [g.lo, g.hi, g.step].into_iter().all(|x| self.lanes_agree(x));
                named.is_empty()
                    && carry.is_empty()
                    && segments.iter().all(bounds)
                    && (self.chunk_loop(s, own).is_some() || body.iter().all(|s| self.runs_wide(s, own)))
            }
            _ => false,
        }
    }

    pub fn lanes_agree(&self, x: ExprId) -> bool {
        self.slope(x, By::Lane) == Some(0)
    }

    pub fn slope(&self, x: ExprId, by: By) -> Option<i64> {
        self.slopes.of_expr(self.kernel, x, by)
    }

    /// A name whose value in any lane follows from that in the first.
    pub fn follows(&self, l: LocalId) -> bool {
        self.slopes.of_local(self.kernel, l, By::Lane).is_some()
    }

    /// Slopes by lane and within the chunk, where both are known.
    pub fn slopes_in(&self, x: ExprId, chunk: Chunk) -> Option<(i64, i64)> {
        let within = chunk.var.map_or(Some(0), |v| self.slope(x, By::Var(v)));
        self.slope(x, By::Lane).zip(within)
    }

    /// A loop over the elements of one thread that runs as one step.
    pub fn chunk_loop(&self, s: &Stmt, own: &HashSet<BufferId>) -> Option<Chunk> {
        let StmtKind::For { var, segments, body, .. } = &s.kind else { return None };
        let [g] = segments.as_slice() else { return None };
        let [lo, hi, step] = [g.lo, g.hi, g.step].map(|x| self.kernel.body.index_constant(x));
        let n = hi.filter(|n| (2..=LONGEST).contains(n) && lo == Some(0) && step == Some(1))?;
        let chunk = Chunk { var: Some(*var), n: u32::try_from(n).ok().filter(|n| n.is_power_of_two())? };
        let mut changed = HashSet::new();
        let fits = |s: &Stmt, changed: &mut HashSet<LocalId>| match &s.kind {
            StmtKind::Update { local, value, .. } => {
                let scalar = self.kernel.body.locals[*local].ty.is_scalar();
                scalar && changed.insert(*local) && self.chunk_value(*value, chunk, own)
            }
            StmtKind::Store { mem, index, value } => {
                (self.own_array(*mem, index, chunk, own) || self.chunk_place(*mem, index, false, chunk))
                    && self.chunk_value(*value, chunk, own)
            }
            _ => false,
        };
        // one statement after another for all elements is the same as element after element
        let mut seen = false;
        let all = body.iter().all(|s| fits(s, &mut changed));
        for s in body {
            s.kind.operands(|x| {
                super::tile::for_each_expr(&self.kernel.body.exprs, x, &mut |id| {
                    seen |= matches!(self.kernel.body.exprs[id], Expr::Local(l) if changed.contains(&l));
                });
            });
        }
        (all && !seen).then_some(chunk)
    }

    /// An array of the thread, read or written at the chunk's own variable.
    pub fn own_array(&self, mem: Mem, index: &[ExprId], chunk: Chunk, own: &HashSet<BufferId>) -> bool {
        let (Mem::Buffer(id), [i], Some(v)) = (mem, index, chunk.var) else { return false };
        own.contains(&id)
            && self.buffer(id).shape.as_slice() == [chunk.n]
            && matches!(self.kernel.body.exprs[*i], Expr::Local(l) if l == v)
    }

    /// Elements of all lanes stand one after another; `checked` where their indices are compared with the extents.
    fn chunk_place(&self, mem: Mem, index: &[ExprId], checked: bool, chunk: Chunk) -> bool {
        let unit = match mem {
            Mem::Tensor(id) => {
                let t = &self.tensors[&id];
                let step = t.strides.last().and_then(|&s| self.e.known(s));
                t.packed.is_none() && step == Some(1) && t.elem.dtype().is_some_and(|d| d.bits() >= 8)
            }
            Mem::Buffer(id) => self.buffer(id).home != Home::Thread && self.buffer(id).elem.bits() >= 8,
            Mem::Slot { .. } => false,
        };
        let Some((&last, outer)) = index.split_last() else { return false };
        let inner = i64::from(chunk.var.is_some());
        unit && (checked || !index.iter().any(|&x| self.untrusted.holds(self.kernel, x)))
            && self.slopes_in(last, chunk) == Some((i64::from(chunk.n), inner))
            && outer.iter().all(|&x| self.slopes_in(x, chunk) == Some((0, 0)))
    }

    fn chunk_value(&self, x: ExprId, chunk: Chunk, own: &HashSet<BufferId>) -> bool {
        let ty = self.kernel.body.type_of(x);
        if !ty.is_scalar() {
            return false;
        }
        let slopes = self.slopes_in(x, chunk);
        if slopes == Some((0, 0)) || (slopes.is_some() && ty.elem() == Some(Elem::Index)) {
            return true;
        }
        let mut below = true;
        self.kernel.body.exprs[x].operands(|c| below &= self.chunk_value(c, chunk, own));
        match &self.kernel.body.exprs[x] {
            Expr::Local(_) => true,
            Expr::Binary(op, ..) if op.is_logical() => below && self.safe_anywhere(x),
            Expr::Select { .. } => below && self.safe_anywhere(x),
            Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Math { .. }
            | Expr::Cast { .. }
            | Expr::Bits { .. }
            | Expr::Intrinsic { .. } => below,
            Expr::Element { mem, index, or } => {
                let constant = |x: &ExprId| matches!(self.kernel.body.exprs[*x], Expr::Const { .. });
                (or.is_none() && self.own_array(*mem, index, chunk, own))
                    || (or.iter().all(constant) && self.chunk_place(*mem, index, or.is_some(), chunk))
            }
            _ => false,
        }
    }

    /// Both sides of a choice may be evaluated: no element is read unless it is there.
    fn safe_anywhere(&self, x: ExprId) -> bool {
        let mut safe = true;
        super::tile::for_each_expr(&self.kernel.body.exprs, x, &mut |id| {
            safe &= !matches!(self.kernel.body.exprs[id], Expr::Element { or: None, .. });
        });
        safe
    }
}
