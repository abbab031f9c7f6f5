//! Statements, run for the block or for one thread.

use super::emit::Int;
use super::error::{CpuError, Result};
use super::frame::{Frame, Place};
use super::value::Val;
use inkwell::basic_block::BasicBlock;
use pantile_ir::program::{Block, Elem, ExprId, LocalId, Op, Segment, Stmt, StmtKind, Text};
use pantile_ir::span::Span;

/// Where `break` and `continue` go.
#[derive(Clone, Copy)]
pub struct LoopEnds<'c> {
    pub next: BasicBlock<'c>,
    pub exit: BasicBlock<'c>,
}

impl<'a, 'c> Frame<'a, 'c> {
    pub fn stmts(&self, block: &Block) -> Result<()> {
        block.iter().try_for_each(|s| self.stmt(s))
    }

    pub fn stmt(&self, s: &Stmt) -> Result<()> {
        match &s.kind {
            StmtKind::Let { local, value } | StmtKind::Assign { local, value } => self.assign(*local, *value),
            StmtKind::Declare { local } => {
                self.declare(*local);
                Ok(())
            }
            StmtKind::Buffer { buffer } => {
                self.buffer_base(*buffer);
                Ok(())
            }
            StmtKind::Reducer { reducer } => self.start_reducer(*reducer),
            StmtKind::Update { local, op, value } => self.update(*local, *op, *value),
            StmtKind::Store { mem, index, value } => {
                let mut at = Vec::with_capacity(index.len());
                for &i in index {
                    at.push(self.index_expr(i)?);
                }
                let v = self.scalar(*value)?;
                self.store_element(*mem, &at, v)
            }
            StmtKind::Op { results, op } => self.op(results, op, s.span),
            StmtKind::If { cond, then, other } => self.branch(*cond, |f| f.stmts(then), |f| f.stmts(other)),
            StmtKind::For { var, named, segments, carry, body, .. } => {
                if !carry.is_empty() {
                    return Err(rings(s.span));
                }
                self.for_segments(*var, named, segments, &mut |f| f.stmts(body))
            }
            StmtKind::While { cond, body } => self.while_loop(*cond, &mut |f| f.stmts(body)),
            StmtKind::Parallel { vars, extents, body } => {
                let mut ends = Vec::with_capacity(extents.len());
                for &x in extents {
                    ends.push(self.index_expr(x)?);
                }
                self.nest(vars, &ends, &mut |f| f.stmts(body))
            }
            StmtKind::Break => self.leave(|l| l.exit),
            StmtKind::Continue => self.leave(|l| l.next),
            StmtKind::Next { .. } | StmtKind::Roles(_) => Err(rings(s.span)),
        }
    }

    /// A tile without a value has nothing valid in it.
    fn declare(&self, local: LocalId) {
        if let Place::Tile(_, bounds) = self.place(local) {
            for &(lo, hi) in &bounds.axes {
                self.e.store(lo, self.e.int(0), 8);
                self.e.store(hi, self.e.int(0), 8);
            }
        }
    }

    pub fn branch(
        &self,
        cond: ExprId,
        then: impl FnOnce(&Self) -> Result<()>,
        other: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        let c = self.scalar(cond)?.int();
        let (mut a, mut b) = (Ok(()), Ok(()));
        self.e.if_(c, || a = then(self), || b = other(self));
        a.and(b)
    }

    /// The ranges of a loop, one after another, the body once for each with that range's constants. All bounds are
    /// read first; `break` leaves all of them.
    pub fn for_segments(
        &self,
        var: LocalId,
        named: &[LocalId],
        segments: &[Segment],
        body: &mut dyn FnMut(&Self) -> Result<()>,
    ) -> Result<()> {
        let mut bounds = Vec::with_capacity(segments.len());
        for s in segments {
            bounds.push([self.index_expr(s.lo)?, self.index_expr(s.hi)?, self.index_expr(s.step)?]);
        }
        let end = (segments.len() > 1).then(|| self.e.block("end"));
        for (s, bounds) in segments.iter().zip(bounds) {
            self.for_loop(var, bounds, end, &mut |f| {
                for (&local, &value) in named.iter().zip(&s.values) {
                    f.set_scalar(local, f.scalar(value)?);
                }
                body(f)
            })?;
        }
        if let Some(end) = end {
            self.e.b.build_unconditional_branch(end).unwrap();
            self.e.b.position_at_end(end);
        }
        Ok(())
    }

    /// One range of a loop; the variable lives in its stack slot. `leave` is where `break` goes, behind the loop if
    /// nothing else is said.
    fn for_loop(
        &self,
        var: LocalId,
        [lo, hi, step]: [Int<'c>; 3],
        leave: Option<BasicBlock<'c>>,
        body: &mut dyn FnMut(&Self) -> Result<()>,
    ) -> Result<()> {
        let e = self.e;
        let i = e.alloca(e.i64(), "i");
        e.store(i, lo, 8);
        let (head, run, next, exit) = (e.block("for"), e.block("body"), e.block("next"), e.block("end"));
        e.b.build_unconditional_branch(head).unwrap();
        e.b.position_at_end(head);
        let at = e.load(e.i64(), i, 8).into_int_value();
        e.b.build_conditional_branch(e.lt(at, hi), run, exit).unwrap();
        e.b.position_at_end(run);
        self.set_scalar(var, Val::index(at));
        self.loops.borrow_mut().push(LoopEnds { next, exit: leave.unwrap_or(exit) });
        let result = body(self);
        self.loops.borrow_mut().pop();
        e.b.build_unconditional_branch(next).unwrap();
        e.b.position_at_end(next);
        let at = e.load(e.i64(), i, 8).into_int_value();
        e.store(i, e.add(at, step), 8);
        e.b.build_unconditional_branch(head).unwrap();
        e.b.position_at_end(exit);
        result
    }

    pub fn while_loop(&self, cond: ExprId, body: &mut dyn FnMut(&Self) -> Result<()>) -> Result<()> {
        let e = self.e;
        let (head, run, exit) = (e.block("while"), e.block("body"), e.block("end"));
        e.b.build_unconditional_branch(head).unwrap();
        e.b.position_at_end(head);
        let c = self.scalar(cond)?.int();
        e.b.build_conditional_branch(c, run, exit).unwrap();
        e.b.position_at_end(run);
        self.loops.borrow_mut().push(LoopEnds { next: head, exit });
        let result = body(self);
        self.loops.borrow_mut().pop();
        e.b.build_unconditional_branch(head).unwrap();
        e.b.position_at_end(exit);
        result
    }

    /// Jumps out of or to the end of the innermost loop; what follows in the block is dead.
    fn leave(&self, to: impl Fn(&LoopEnds<'c>) -> BasicBlock<'c>) -> Result<()> {
        let target = self.loops.borrow().last().map(to);
        let target = target.ok_or_else(|| CpuError::Llvm("a jump outside a loop".into()))?;
        self.e.b.build_unconditional_branch(target).unwrap();
        let dead = self.e.block("dead");
        self.e.b.position_at_end(dead);
        Ok(())
    }

    /// `parallel`: nested loops in ascending order.
    fn nest(
        &self,
        vars: &[LocalId],
        ends: &[Int<'c>],
        body: &mut dyn FnMut(&Self) -> Result<()>,
    ) -> Result<()> {
        let (Some((&var, vars)), Some((&end, ends))) = (vars.split_first(), ends.split_first()) else {
            return body(self);
        };
        let mut result = Ok(());
        self.e.for_(self.e.int(0), end, self.e.int(1), |i| {
            self.set_scalar(var, Val::index(i));
            result = self.nest(vars, ends, body);
        });
        result
    }

    fn op(&self, results: &[LocalId], op: &Op, span: Span) -> Result<()> {
        match op {
            Op::Read { from, pad } => self.read_region(results[0], from, *pad, span),
            Op::Write { to, value } => self.write_region(to, *value, span),
            Op::Gemm { a, b, into, init, .. } => self.gemm(*a, *b, *into, *init, span),
            Op::Reduce { comb, inputs, axis } => self.reduce(*comb, inputs, *axis, results),
            Op::Scan { comb, inputs, axis, reverse, exclusive } => {
                self.scan(*comb, inputs, *axis as usize, *reverse, *exclusive, results)
            }
            Op::Fold { reducer, index, values } => self.fold_reducer(*reducer, index, values),
            Op::Join { reducer } => self.join_reducer(*reducer, results),
            Op::AllReduce { comb, inputs, over } => self.all_reduce(*comb, inputs, over, results, span),
            Op::Shuffle { kind, value, lane, width } => {
                self.shuffle(*kind, *value, *lane, *width, results[0])
            }
            Op::Vote { kind, cond, team } => self.vote(*kind, *cond, *team, results[0], span),
            Op::Once { value } => self.once(*value, results[0]),
            Op::Barrier { .. } => Ok(()),
            Op::Atomic { op, at, value, expected } => {
                self.atomic(*op, at, *value, *expected, results.first().copied(), span)
            }
            Op::Print { parts } => self.print(parts),
            Op::Assert { cond, message } => self.assert(*cond, message),
            Op::Acquire { .. }
            | Op::Wait { .. }
            | Op::Commit { .. }
            | Op::Release { .. }
            | Op::Await { .. }
            | Op::Take { .. }
            | Op::Pass { .. }
            | Op::CopyAsync { .. }
            | Op::Issue { .. }
            | Op::Fence { .. } => Err(rings(span)),
        }
    }

    fn assert(&self, cond: ExprId, message: &str) -> Result<()> {
        let c = self.scalar(cond)?.int();
        let code = self.fault(format!("assertion failed: {message}"));
        let e = self.e;
        let (stop, on) = (e.block("fault"), e.block("on"));
        e.b.build_conditional_branch(c, on, stop).unwrap();
        e.b.position_at_end(stop);
        e.b.build_return(Some(&e.int(code as i64))).unwrap();
        e.b.position_at_end(on);
        Ok(())
    }

    fn print(&self, parts: &[Text]) -> Result<()> {
        let e = self.e;
        for part in parts {
            match part {
                Text::Str(s) => {
                    let text = e.b.build_global_string_ptr(s, "text").unwrap().as_pointer_value();
                    let len = e.int(s.len() as i64);
                    let types = [e.ptr_type().into(), e.i64().into()];
                    e.call_extern("pantile_print_text", None, &[text.into(), len.into()], &types);
                }
                Text::Value(x) => {
                    let v = self.scalar(*x)?;
                    if v.is_float() {
                        let v = e.convert(v, Elem::D(pantile_abi::DType::F64), false);
                        e.call_extern("pantile_print_float", None, &[v.v.into()], &[e.ctx.f64_type().into()]);
                    } else {
                        let v = e.convert(v, Elem::D(pantile_abi::DType::I64), false);
                        e.call_extern("pantile_print_int", None, &[v.v.into()], &[e.i64().into()]);
                    }
                }
            }
        }
        e.call_extern("pantile_print_end", None, &[], &[]);
        Ok(())
    }
}

fn rings(span: Span) -> CpuError {
    CpuError::unsupported(
        "an explicit ring, queue, turn or role",
        "run it with --target interp, or write the loop without them and let the plan choose",
        span,
    )
}
