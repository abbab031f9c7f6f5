//! Kernels: declarations and the stack of open blocks.

use super::frame::{self, parameters};
use super::{Defs, Exprs, Here, Result, place};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use crate::typing::{self, Ctx, Frame, TypeError};
use pantile_abi::DType;
use smallvec::SmallVec;
use std::panic::Location;

/// Makes one kernel. Statements go to the innermost open block.
pub struct KernelBuilder {
    pub(super) defs: Defs,
    pub(super) kernel: Kernel,
    /// Open blocks, outermost first; the first is the kernel's own.
    open: Vec<Block>,
}

impl Here for KernelBuilder {
    fn here(&self, at: &'static Location<'static>) -> Span {
        place::span(&self.defs, at)
    }
}

impl Exprs for KernelBuilder {
    fn body(&self) -> &Body {
        &self.kernel.body
    }

    fn body_mut(&mut self) -> &mut Body {
        &mut self.kernel.body
    }

    fn with_ctx<R>(&self, f: impl FnOnce(&Ctx) -> R) -> R {
        let shared = self.defs.borrow();
        f(&Ctx {
            body: &self.kernel.body,
            frame: Frame::Kernel(&self.kernel),
            combines: &shared.combines,
            intrinsics: &shared.intrinsics,
        })
    }
}

impl KernelBuilder {
    pub(super) fn new(defs: Defs, name: String, span: Span) -> KernelBuilder {
        KernelBuilder { defs, kernel: Kernel { name, span, ..Kernel::default() }, open: vec![Block::new()] }
    }

    /// Goes on with a kernel whose statements were taken out.
    pub(super) fn resume(defs: Defs, kernel: Kernel) -> KernelBuilder {
        KernelBuilder { defs, kernel, open: vec![Block::new()] }
    }

    /// The kernel itself, for passes that fill what has no statement: plan, homes, layouts, threads.
    pub fn kernel_mut(&mut self) -> &mut Kernel {
        &mut self.kernel
    }

    parameters!(kernel);

    /// The kernel as far as it is made.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    pub fn set_math(&mut self, math: MathMode) {
        self.kernel.math = math;
    }

    pub fn set_plan(&mut self, plan: plan::Plan) {
        self.kernel.plan = plan;
    }

    /// Where the plan put a tile, its layout, its team.
    pub fn place_local(&mut self, local: LocalId, f: impl FnOnce(&mut Local)) -> Result<()> {
        if self.kernel.body.locals.get(local).is_none() {
            return Err(self.error(TypeError::foreign("name"), self.kernel.span));
        }
        f(&mut self.kernel.body.locals[local]);
        Ok(())
    }

    // --- grid and threads ------------------------------------------------------------------------------------

    /// Declares the grid; gives the locals of its axes.
    pub fn set_grid(&mut self, axes: &[(ExprId, &str)], span: Span) -> Result<SmallVec<[LocalId; 3]>> {
        let extents: SmallVec<[ExprId; 3]> = axes.iter().map(|&(e, _)| e).collect();
        self.with_ctx(|ctx| frame::extents(ctx, "a grid extent", &extents, span))?;
        let names = axes.iter().enumerate();
        let locals: SmallVec<[LocalId; 3]> = names
            .map(|(i, &(_, name))| self.local(name, Type::INDEX, LocalKind::Grid(i as u8), span))
            .collect();
        self.kernel.grid = Grid { extents, locals: locals.clone(), cost: None };
        Ok(locals)
    }

    /// What a block costs, over dims and the grid's indices.
    pub fn set_cost(&mut self, cost: ExprId, span: Span) -> Result<()> {
        self.with_ctx(|ctx| frame::extents(ctx, "a cost", &[cost], span))?;
        self.kernel.grid.cost = Some(cost);
        Ok(())
    }

    /// Declares the threads of a block; gives the locals of their axes.
    pub fn set_threads(&mut self, axes: &[(u32, &str)], ordered: bool, span: Span) -> SmallVec<[LocalId; 3]> {
        let names = axes.iter().enumerate();
        let axes: SmallVec<[(LocalId, u32); 3]> = names
            .map(|(i, &(n, name))| (self.local(name, Type::INDEX, LocalKind::Thread(i as u8), span), n))
            .collect();
        let locals = axes.iter().map(|&(l, _)| l).collect();
        self.kernel.threads = Some(Threads { axes, ordered, span });
        locals
    }

    // --- memory, reducers, teams -----------------------------------------------------------------------------

    /// Makes a buffer; it comes to life by its statement.
    pub fn add_buffer(&mut self, buffer: Buffer, span: Span) -> Result<BufferId> {
        self.check(span, |ctx| typing::check_buffer(ctx, &buffer))?;
        Ok(self.kernel.buffers.push(buffer, span))
    }

    pub fn add_reducer(&mut self, reducer: Reducer, span: Span) -> ReducerId {
        self.kernel.reducers.push(reducer, span)
    }

    pub fn add_team(&mut self, team: TeamDecl, span: Span) -> TeamId {
        self.kernel.teams.push(team, span)
    }

    pub fn add_ring(&mut self, ring: Ring, span: Span) -> Result<RingId> {
        self.check(span, |ctx| typing::check_ring(ctx, &ring))?;
        Ok(self.kernel.rings.push(ring, span))
    }

    pub fn add_queue(&mut self, queue: Queue, span: Span) -> Result<QueueId> {
        self.check(span, |ctx| ctx.team(queue.team).map(|_| ()))?;
        Ok(self.kernel.queues.push(queue, span))
    }

    pub fn add_turn(&mut self, turn: Turn, span: Span) -> Result<TurnId> {
        self.check(span, |ctx| ctx.team(turn.team).map(|_| ()))?;
        Ok(self.kernel.turns.push(turn, span))
    }

    // --- statements ------------------------------------------------------------------------------------------

    /// Opens a block; statements go into it until [`KernelBuilder::end_block`].
    pub fn begin_block(&mut self) {
        self.open.push(Block::new());
    }

    /// Closes the innermost block and gives it.
    pub fn end_block(&mut self) -> Result<Block> {
        match self.open.pop() {
            Some(block) if !self.open.is_empty() => Ok(block),
            last => {
                self.open.extend(last);
                let message = "a block is closed that was not opened";
                Err(Diagnostic::error(codes::OPEN_BLOCK, self.kernel.span, message)
                    .help("call `begin_block` once for each `end_block`"))
            }
        }
    }

    /// Adds a statement whose operands fit.
    pub fn stmt(&mut self, kind: StmtKind, span: Span) -> Result<()> {
        self.stmt_staged(kind, span, None)
    }

    /// A statement with its pipeline stage and rank.
    pub fn stmt_staged(&mut self, kind: StmtKind, span: Span, stage: Option<(i32, i32)>) -> Result<()> {
        self.check(span, |ctx| typing::check_stmt(ctx, &kind))?;
        self.push(Stmt { kind, span, stage });
        Ok(())
    }

    /// Adds an op; its results get names in order. An atomic without a name gives no result.
    pub fn op(&mut self, op: Op, names: &[&str], span: Span) -> Result<SmallVec<[LocalId; 2]>> {
        let types =
            self.with_ctx(|ctx| typing::op_results(ctx, &op).map_err(|e| e.diagnostic(ctx.body, span)))?;
        let unnamed = names.is_empty() && matches!(op, Op::Atomic { .. });
        if types.len() != names.len() && !unnamed {
            let message = format!("this gives {} values, but {} names stand here", types.len(), names.len());
            return Err(Diagnostic::error(codes::WRONG_COUNT, span, message));
        }
        let kind = match op {
            Op::Acquire { ring } | Op::Wait { ring } => LocalKind::Token(ring),
            _ => LocalKind::Let,
        };
        let pairs = names.iter().zip(types);
        let results: SmallVec<[LocalId; 2]> =
            pairs.map(|(&name, ty)| self.local(name, ty, kind, span)).collect();
        self.push(Stmt::new(StmtKind::Op { results: results.clone(), op }, span));
        Ok(results)
    }

    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    fn push(&mut self, stmt: Stmt) {
        match self.open.last_mut() {
            Some(block) => block.push(stmt),
            None => self.open.push(vec![stmt]),
        }
    }

    pub(super) fn finish(mut self) -> Result<Kernel> {
        let span = self.kernel.span;
        match self.open.pop() {
            Some(block) if self.open.is_empty() => self.kernel.stmts = block,
            _ => {
                let message = format!("a block of `{}` was opened and never closed", self.kernel.name);
                return Err(Diagnostic::error(codes::OPEN_BLOCK, span, message)
                    .help("call `end_block` once for each `begin_block`"));
            }
        }
        Ok(self.kernel)
    }

    fn check(&self, span: Span, rule: impl FnOnce(&Ctx) -> std::result::Result<(), TypeError>) -> Result<()> {
        self.with_ctx(|ctx| rule(ctx).map_err(|e| e.diagnostic(ctx.body, span)))
    }

    fn error(&self, error: TypeError, span: Span) -> Diagnostic {
        error.diagnostic(&self.kernel.body, span)
    }

    // --- conveniences for declarations -----------------------------------------------------------------------

    /// The grid's indices as values.
    #[track_caller]
    pub fn grid(&mut self, axes: &[(ExprId, &str)]) -> Result<Vec<ExprId>> {
        let span = self.here(Location::caller());
        let locals = self.set_grid(axes, span)?;
        locals.into_iter().map(|l| self.get_at(l, span)).collect()
    }

    /// The thread's indices as values.
    #[track_caller]
    pub fn threads(&mut self, axes: &[(u32, &str)]) -> Result<Vec<ExprId>> {
        let span = self.here(Location::caller());
        let locals = self.set_threads(axes, false, span);
        locals.into_iter().map(|l| self.get_at(l, span)).collect()
    }

    /// `shared name: elem[shape]`
    #[track_caller]
    pub fn shared(&mut self, name: impl Into<String>, elem: DType, shape: &[u32]) -> Result<Mem> {
        let span = self.here(Location::caller());
        self.memory(name.into(), Home::Shared, elem, shape, span)
    }

    /// `var name: elem[shape]`, an array of each thread
    #[track_caller]
    pub fn array(&mut self, name: impl Into<String>, elem: DType, shape: &[u32]) -> Result<Mem> {
        let span = self.here(Location::caller());
        self.memory(name.into(), Home::Thread, elem, shape, span)
    }

    fn memory(&mut self, name: String, home: Home, elem: DType, shape: &[u32], span: Span) -> Result<Mem> {
        let shape = shape.into();
        let buffer = Buffer::new(name, home, elem, shape);
        let buffer = self.add_buffer(buffer, span)?;
        self.stmt(StmtKind::Buffer { buffer }, span)?;
        Ok(Mem::Buffer(buffer))
    }

    /// `var name: reducer(comb) …`, one type for each part
    #[track_caller]
    pub fn reducer(&mut self, name: impl Into<String>, comb: Combiner, parts: &[Type]) -> Result<ReducerId> {
        let span = self.here(Location::caller());
        let parts = parts.iter().cloned().collect();
        let reducer = self.add_reducer(Reducer { name: name.into(), comb, parts }, span);
        self.stmt(StmtKind::Reducer { reducer }, span)?;
        Ok(reducer)
    }
}
