//! Statements at the caller's line of Rust.

use super::{Exprs, Here, KernelBuilder, Result};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use smallvec::SmallVec;
use std::panic::Location;

impl KernelBuilder {
    /// `let name = value`; gives the name's value.
    #[track_caller]
    pub fn let_(&mut self, name: impl Into<String>, value: ExprId) -> Result<ExprId> {
        let span = self.here(Location::caller());
        let local = self.define(name.into(), LocalKind::Let, value, span)?;
        self.get_at(local, span)
    }

    /// `var name = value`
    #[track_caller]
    pub fn var(&mut self, name: impl Into<String>, value: ExprId) -> Result<LocalId> {
        let span = self.here(Location::caller());
        self.define(name.into(), LocalKind::Var, value, span)
    }

    fn define(&mut self, name: String, kind: LocalKind, value: ExprId, span: Span) -> Result<LocalId> {
        let Some(ty) = self.type_of(value).cloned() else { return Err(super::foreign(span, "value")) };
        let local = self.local(name, ty, kind, span);
        self.stmt(StmtKind::Let { local, value }, span)?;
        Ok(local)
    }

    /// `var name = zeros elem[shape]`
    #[track_caller]
    pub fn zeros(
        &mut self,
        name: impl Into<String>,
        elem: impl Into<Elem>,
        shape: &[u32],
    ) -> Result<LocalId> {
        let span = self.here(Location::caller());
        let zero = self.constant_at(elem.into(), 0, span)?;
        let value = self.expr(Expr::Splat { value: zero, shape: shape.into() }, span)?;
        self.define(name.into(), LocalKind::Var, value, span)
    }

    /// `local = value`
    #[track_caller]
    pub fn set(&mut self, local: LocalId, value: ExprId) -> Result<()> {
        let span = self.here(Location::caller());
        self.stmt(StmtKind::Assign { local, value }, span)
    }

    /// `local op= value`
    #[track_caller]
    pub fn update(&mut self, local: LocalId, op: Update, value: ExprId) -> Result<()> {
        let span = self.here(Location::caller());
        self.stmt(StmtKind::Update { local, op, value }, span)
    }

    /// `mem[index] = value`
    #[track_caller]
    pub fn store(&mut self, mem: Mem, index: &[ExprId], value: ExprId) -> Result<()> {
        let span = self.here(Location::caller());
        self.stmt(StmtKind::Store { mem, index: index.into(), value }, span)
    }

    /// `let name = mem[axes]`
    #[track_caller]
    pub fn read(&mut self, name: &str, mem: Mem, axes: &[RegionAxis]) -> Result<ExprId> {
        let span = self.here(Location::caller());
        let from = Region { mem, axes: axes.iter().cloned().collect() };
        self.op_value(Op::Read { from, pad: None }, name, span)
    }

    /// `let name = mem[axes] pad value`
    #[track_caller]
    pub fn read_pad(&mut self, name: &str, mem: Mem, axes: &[RegionAxis], pad: ExprId) -> Result<ExprId> {
        let span = self.here(Location::caller());
        let from = Region { mem, axes: axes.iter().cloned().collect() };
        self.op_value(Op::Read { from, pad: Some(pad) }, name, span)
    }

    /// `mem[axes] = value`
    #[track_caller]
    pub fn write(&mut self, mem: Mem, axes: &[RegionAxis], value: ExprId) -> Result<()> {
        let span = self.here(Location::caller());
        let to = Region { mem, axes: axes.iter().cloned().collect() };
        self.op(Op::Write { to, value }, &[], span).map(|_| ())
    }

    /// `into += a @ b`
    #[track_caller]
    pub fn gemm(&mut self, into: LocalId, a: ExprId, b: ExprId) -> Result<()> {
        let span = self.here(Location::caller());
        let op = Op::Gemm { a, b, into, init: Init::Accumulate, precision: Precision::Full };
        self.op(op, &[], span).map(|_| ())
    }

    /// `let name = reduce(comb, tile, axis = axis)`
    #[track_caller]
    pub fn reduce(&mut self, name: &str, comb: Combiner, tile: ExprId, axis: Option<u8>) -> Result<ExprId> {
        let span = self.here(Location::caller());
        let inputs = std::iter::once(tile).collect();
        self.op_value(Op::Reduce { comb, inputs, axis }, name, span)
    }

    /// `let name = scan(comb, tile, axis = axis)`
    #[track_caller]
    pub fn scan(&mut self, name: &str, comb: Combiner, tile: ExprId, axis: u8) -> Result<ExprId> {
        let span = self.here(Location::caller());
        let inputs = std::iter::once(tile).collect();
        self.op_value(Op::Scan { comb, inputs, axis, reverse: false, exclusive: false }, name, span)
    }

    /// `let name = allreduce(comb, value, over = …)`
    #[track_caller]
    pub fn allreduce(&mut self, name: &str, comb: Combiner, value: ExprId, over: Over) -> Result<ExprId> {
        let span = self.here(Location::caller());
        let inputs = std::iter::once(value).collect();
        self.op_value(Op::AllReduce { comb, inputs, over }, name, span)
    }

    /// `atomic_…(mem[index], value)`
    #[track_caller]
    pub fn atomic(&mut self, op: AtomicOp, mem: Mem, index: &[ExprId], value: ExprId) -> Result<()> {
        let span = self.here(Location::caller());
        let at = Place::Element { mem, index: index.into() };
        self.op(Op::Atomic { op, at, value, expected: None }, &[], span).map(|_| ())
    }

    /// `r op= values`
    #[track_caller]
    pub fn fold(&mut self, reducer: ReducerId, index: &[ExprId], values: &[ExprId]) -> Result<()> {
        let span = self.here(Location::caller());
        let op = Op::Fold { reducer, index: index.into(), values: values.into() };
        self.op(op, &[], span).map(|_| ())
    }

    /// The first read of a reducer: its parts.
    #[track_caller]
    pub fn join(&mut self, names: &[&str], reducer: ReducerId) -> Result<Vec<ExprId>> {
        let span = self.here(Location::caller());
        let results = self.op(Op::Join { reducer }, names, span)?;
        results.into_iter().map(|l| self.get_at(l, span)).collect()
    }

    #[track_caller]
    pub fn barrier(&mut self) -> Result<()> {
        let span = self.here(Location::caller());
        self.op(Op::Barrier { team: Team::Block }, &[], span).map(|_| ())
    }

    /// `for name in lo..hi { … }`
    #[track_caller]
    pub fn for_(
        &mut self,
        name: &str,
        lo: ExprId,
        hi: ExprId,
        body: impl FnOnce(&mut Self, ExprId) -> Result<()>,
    ) -> Result<()> {
        let span = self.here(Location::caller());
        self.loop_at(name, LoopKind::Serial, lo, hi, span, body)
    }

    /// A loop of another kind, as `for name in pipelined(lo..hi, stages = 3) { … }`.
    #[track_caller]
    pub fn loop_(
        &mut self,
        name: &str,
        kind: LoopKind,
        lo: ExprId,
        hi: ExprId,
        body: impl FnOnce(&mut Self, ExprId) -> Result<()>,
    ) -> Result<()> {
        let span = self.here(Location::caller());
        self.loop_at(name, kind, lo, hi, span, body)
    }

    fn loop_at(
        &mut self,
        name: &str,
        kind: LoopKind,
        lo: ExprId,
        hi: ExprId,
        span: Span,
        body: impl FnOnce(&mut Self, ExprId) -> Result<()>,
    ) -> Result<()> {
        let var = self.local(name, Type::INDEX, LocalKind::Loop, span);
        let value = self.get_at(var, span)?;
        let step = self.constant_at(Elem::Index, 1, span)?;
        let body = self.block(|k| body(k, value))?;
        let segments = std::iter::once(Segment::plain(lo, hi, step)).collect();
        let named = SmallVec::new();
        self.stmt(StmtKind::For { var, kind, named, segments, carry: Vec::new(), body }, span)
    }

    /// `if cond { … }`
    #[track_caller]
    pub fn if_(&mut self, cond: ExprId, then: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let span = self.here(Location::caller());
        let then = self.block(then)?;
        self.stmt(StmtKind::If { cond, then, other: Block::new() }, span)
    }

    /// `if cond { … } else { … }`
    #[track_caller]
    pub fn if_else(
        &mut self,
        cond: ExprId,
        then: impl FnOnce(&mut Self) -> Result<()>,
        other: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let span = self.here(Location::caller());
        let then = self.block(then)?;
        let other = self.block(other)?;
        self.stmt(StmtKind::If { cond, then, other }, span)
    }

    /// `while cond { … }`; `cond` is evaluated before each round.
    #[track_caller]
    pub fn while_(&mut self, cond: ExprId, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let span = self.here(Location::caller());
        let body = self.block(body)?;
        self.stmt(StmtKind::While { cond, body }, span)
    }

    /// Statements made by `body`, as a block. Blocks that `body` leaves open or closes too often are an error.
    fn block(&mut self, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<Block> {
        let depth = self.depth();
        self.begin_block();
        body(self)?;
        if self.depth() != depth + 1 {
            let message = "a block was opened or closed inside another and not put back";
            return Err(Diagnostic::error(codes::OPEN_BLOCK, self.kernel.span, message));
        }
        self.end_block()
    }

    fn op_value(&mut self, op: Op, name: &str, span: Span) -> Result<ExprId> {
        let results = self.op(op, &[name], span)?;
        match results.first() {
            Some(&local) => self.get_at(local, span),
            None => Err(super::foreign(span, "value")),
        }
    }
}
