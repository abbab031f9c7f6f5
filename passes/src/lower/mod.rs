//! `lower`: tiles become registers of threads and shared memory, tile ops become loops of each thread. Obeys the plan
//! and the layouts; decides nothing. What it leaves has scalars, per-thread arrays, shared memory, loops, and
//! collectives over thread axes; ordering through shared memory is still the language's own (a statement on all
//! threads before the next).
//!
//! * [`lanes`]: the thread's number as axes, and digits of layouts as runs of them.
//! * [`nest`]: loops over the elements of one thread; a position is a [`nest::Coord`] an axis.
//! * [`eval`]: one element of a tile expression at a position.
//! * [`bounds`]: valid boxes.
//! * [`store`]: where a tile local lives and how an element is written.
//! * [`agree`]: control that the block must agree on, since no later pass sees that it does.
//! * [`late`]: sums that run over a loop's rounds, joined over threads once after it.
//! * one file a family of ops: [`memory`], [`product`], [`fold`], [`scan`], [`reducer`], [`stmts`].

mod agree;
mod bounds;
mod combine;
mod eval;
mod fold;
mod lanes;
mod late;
mod memory;
mod nest;
mod product;
mod reducer;
mod scan;
mod stmts;
mod store;

use crate::layout::{Assignment, assign};
use crate::make::Make;
use crate::pipeline::Cx;
use bounds::{Bound, Ragged};
use lanes::Lanes;
use pantile_ir::builder::{Exprs, KernelBuilder, Result};
use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::program::*;
use pantile_ir::span::Span;
use pantile_ir::verify::{KernelInfo, verify};
use std::collections::{HashMap, HashSet};
use store::Storage;

pub fn run(program: Program, cx: &Cx) -> std::result::Result<Program, Diagnostics> {
    let combines = program.combines.clone();
    let mut kernels = verify(&program, cx.arch)?.kernels.into_iter();
    pantile_ir::builder::rewrite(program, Stage::Threaded, |k, stmts| {
        let info = kernels.next().unwrap_or_default();
        if is_threaded(k.kernel(), &stmts) {
            return stmts.into_iter().try_for_each(|s| k.stmt_staged(s.kind, s.span, s.stage));
        }
        Lower::kernel(k, cx, (&combines, info), stmts)
    })
    .map_err(|d| Diagnostics::from_iter([d]))
}

/// Nothing of the tile level is in it.
fn is_threaded(k: &Kernel, stmts: &Block) -> bool {
    let mut tiles = k.threads.is_none() || k.body.locals.iter().any(|(_, l)| l.ty.is_tile());
    walk(stmts, &mut |s| {
        tiles |= match &s.kind {
            StmtKind::Parallel { .. } | StmtKind::Reducer { .. } => true,
            StmtKind::For { kind: LoopKind::Pipelined { .. }, .. } => true,
            StmtKind::Op { op, .. } => {
                matches!(op, Op::Read { .. } | Op::Write { .. } | Op::Atomic { at: Place::Region(_), .. })
            }
            _ => false,
        };
        // a tile may be without a name: what a fold reads, or what an element is taken of
        s.kind.operands(|e| tiles = tiles || k.body.holds(e, |_, ty| ty.is_tile()));
    });
    !tiles
}

struct Lower<'b, 'c> {
    k: &'b mut KernelBuilder,
    combines: &'c pantile_ir::arena::Arena<Combine>,
    assign: Assignment,
    /// What is known of the kernel as it was.
    info: KernelInfo,
    unseen: agree::Unseen,
    lanes: Lanes,
    store: HashMap<LocalId, Storage>,
    boxes: HashMap<LocalId, Vec<Bound>>,
    ragged: HashMap<LocalId, Ragged>,
    reducers: HashMap<ReducerId, reducer::State>,
    late: late::Running,
    /// What the names stand for that were given here.
    named_values: HashMap<LocalId, ExprId>,
    /// Tiles that hold zero where they are not valid.
    zeroed: HashSet<LocalId>,
    /// The kernel names its threads: scalar statements are each thread's own.
    named: bool,
    /// Inside `parallel`, where each position is one thread's.
    parallel: bool,
    /// Positions along the indices of enclosing `parallel`s.
    running: HashMap<LocalId, nest::Coord>,
    /// Number of the statement being lowered, as `walk` counts.
    stmt: usize,
    next: usize,
    span: Span,
    fresh: u32,
}

impl<'b, 'c> Lower<'b, 'c> {
    fn kernel(
        k: &'b mut KernelBuilder,
        cx: &Cx,
        (combines, info): (&'c pantile_ir::arena::Arena<Combine>, KernelInfo),
        stmts: Block,
    ) -> Result<()> {
        let named = k.kernel().threads.is_some();
        k.kernel_mut().stmts = stmts;
        let assign = assign(k.kernel(), cx);
        let ragged = bounds::ragged(k.kernel());
        let unseen = agree::unseen(k.kernel(), &assign);
        let stmts = std::mem::take(&mut k.kernel_mut().stmts);
        let lanes = Lanes::make(k, &assign)?;
        let span = k.kernel().span;
        let mut lower = Lower {
            k,
            combines,
            assign,
            info,
            unseen,
            lanes,
            store: HashMap::new(),
            boxes: HashMap::new(),
            ragged,
            reducers: HashMap::new(),
            late: late::Running::default(),
            named_values: HashMap::new(),
            zeroed: HashSet::new(),
            named,
            parallel: false,
            running: HashMap::new(),
            stmt: 0,
            next: 0,
            span,
            fresh: 0,
        };
        lower.block(&stmts)?;
        let kernel = lower.k.kernel_mut();
        for id in kernel.body.locals.handles().collect::<Vec<_>>() {
            let l = &mut kernel.body.locals[id];
            (l.home, l.layout) = (Home::Open, None);
        }
        Ok(())
    }

    // ---- small builders at the current statement's place

    fn make(&mut self) -> Make<'_> {
        Make { k: self.k, span: self.span }
    }

    fn expr(&mut self, e: Expr) -> Result<ExprId> {
        self.k.expr(e, self.span)
    }

    fn int(&mut self, n: u64) -> Result<ExprId> {
        self.make().int(n)
    }

    fn bin(&mut self, op: BinOp, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.make().bin(op, a, b)
    }

    fn add(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.make().add(a, b)
    }

    fn sub(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.make().sub(a, b)
    }

    fn scale(&mut self, a: ExprId, n: u32) -> Result<ExprId> {
        self.make().scale(a, n.into())
    }

    fn math(&mut self, f: MathFn, args: &[ExprId]) -> Result<ExprId> {
        self.expr(Expr::Math { f, approx: false, args: args.into() })
    }

    fn get(&mut self, l: LocalId) -> Result<ExprId> {
        self.make().get(l)
    }

    fn known(&self, e: ExprId) -> Option<i64> {
        self.k.body().index_constant(e)
    }

    fn ty(&self, e: ExprId) -> Type {
        self.k.kernel().body.type_of(e).clone()
    }

    fn shape(&self, e: ExprId) -> Shape {
        self.ty(e).shape().into()
    }

    fn emit(&mut self, kind: StmtKind) -> Result<()> {
        self.k.stmt(kind, self.span)
    }

    /// `let name = value`; the value itself where it is a name or constant already.
    fn bind(&mut self, name: &str, value: ExprId) -> Result<ExprId> {
        if matches!(
            self.k.kernel().body.exprs[value],
            Expr::Local(_) | Expr::Const { .. } | Expr::Dim(_) | Expr::Arg(_)
        ) {
            return Ok(value);
        }
        let name = self.make().let_(name, value)?;
        if let Expr::Local(l) = self.k.body().exprs[name] {
            self.named_values.insert(l, value);
        }
        Ok(name)
    }

    /// The same computation, names given here taken for what they stand for. What it reads must not have changed.
    fn alike(&self, a: ExprId, b: ExprId) -> bool {
        let body = self.k.body();
        let (a, b) = (self.unnamed(a), self.unnamed(b));
        if a == b {
            return true;
        }
        let (x, y) = (&body.exprs[a], &body.exprs[b]);
        let (mut left, mut right) = (Args::new(), Args::new());
        x.operands(|o| left.push(o));
        y.operands(|o| right.push(o));
        let reads = |e: &Expr| match e {
            Expr::Local(l) => body.locals[*l].kind == LocalKind::Var,
            Expr::Element { .. } => true,
            _ => false,
        };
        // with equal operands in place of its own the one is the other
        let mut from = left.iter().copied();
        let other = y.map_operands(|o| Ok::<_, std::convert::Infallible>(from.next().unwrap_or(o)));
        !reads(x)
            && left.len() == right.len()
            && other.as_ref() == Ok(x)
            && left.iter().zip(&right).all(|(&a, &b)| self.alike(a, b))
    }

    fn unnamed(&self, e: ExprId) -> ExprId {
        match self.k.body().exprs[e] {
            Expr::Local(l) => self.named_values.get(&l).map_or(e, |&v| self.unnamed(v)),
            _ => e,
        }
    }

    /// `var name = value`
    fn var(&mut self, name: &str, value: ExprId) -> Result<LocalId> {
        self.make().var(name, value)
    }

    /// Statements made by `f`, as a block.
    fn block_of(&mut self, f: impl FnOnce(&mut Self) -> Result<()>) -> Result<Block> {
        self.k.begin_block();
        f(self)?;
        self.k.end_block()
    }

    /// `if cond { … }`; nothing around it where there is no condition.
    fn when(&mut self, cond: Option<ExprId>, f: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let Some(cond) = cond else { return f(self) };
        let then = self.block_of(f)?;
        if then.is_empty() {
            return Ok(());
        }
        self.emit(StmtKind::If { cond, then, other: Block::new() })
    }

    fn both(&mut self, a: Option<ExprId>, b: Option<ExprId>) -> Result<Option<ExprId>> {
        Ok(match (a, b) {
            (Some(a), Some(b)) => Some(self.bin(BinOp::LogicalAnd, a, b)?),
            (a, b) => a.or(b),
        })
    }

    fn for_(
        &mut self,
        name: &str,
        kind: LoopKind,
        lo: ExprId,
        hi: ExprId,
        f: impl FnOnce(&mut Self, ExprId) -> Result<()>,
    ) -> Result<()> {
        let var = self.k.local(name, Type::INDEX, LocalKind::Loop, self.span);
        let value = self.get(var)?;
        let step = self.int(1)?;
        let body = self.block_of(|s| f(s, value))?;
        let segments = std::iter::once(Segment::plain(lo, hi, step)).collect();
        self.emit(StmtKind::For { var, kind, named: Default::default(), segments, carry: Vec::new(), body })
    }

    fn refuse<T>(&self, message: impl Into<String>, help: &str) -> Result<T> {
        Err(Diagnostic::error(codes::UNSUPPORTED, self.span, message.into()).help(help))
    }
}
