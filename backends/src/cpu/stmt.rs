//! Statements, run for the block or for one thread.

use super::emit::{Emit, Int, Ptr};
use super::error::{CpuError, Result};
use super::frame::{Frame, Place};
use super::value::Val;
use inkwell::basic_block::BasicBlock;
use pantile_ir::codes;
use pantile_ir::program::{Block, Carry, ExprId, LocalId, MatOperand, Op, Segment, Stmt, StmtKind};

/// A constant, or a stack slot.
#[derive(Clone, Copy)]
enum Kept<'c> {
    Known(Int<'c>),
    Slot(Ptr<'c>),
}

impl<'c> Kept<'c> {
    fn get(self, e: &Emit<'c>) -> Int<'c> {
        match self {
            Kept::Known(v) => v,
            Kept::Slot(p) => e.load_int(p),
        }
    }
}

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
        self.at_stmt(s);
        match &s.kind {
            StmtKind::Let { local, value } => self.assign(*local, *value),
            StmtKind::Assign { local, value } => {
                self.changes(*local);
                self.assign(*local, *value)
            }
            StmtKind::Declare { local } => {
                self.declare(*local);
                Ok(())
            }
            StmtKind::Buffer { buffer } => {
                self.buffer_base(*buffer);
                Ok(())
            }
            StmtKind::Reducer { reducer } => self.start_reducer(*reducer),
            StmtKind::Update { local, op, value } => {
                self.changes(*local);
                self.update(*local, *op, *value)
            }
            StmtKind::Store { mem, index, value } => {
                let at = self.element_index(*mem, index)?;
                let v = self.scalar(*value)?;
                self.store_element(*mem, &at, v)
            }
            StmtKind::Op { results, op } => self.op(results, op),
            StmtKind::If { cond, then, other } => self.branch(*cond, |f| f.stmts(then), |f| f.stmts(other)),
            StmtKind::For { var, named, segments, carry, body, .. } => {
                self.for_loop(*var, named, segments, carry, &mut |f| f.stmts(body))
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
            StmtKind::Next { carry, value } => {
                self.next_token(*carry, *value);
                Ok(())
            }
            StmtKind::Roles(roles) => self.roles(roles),
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
    /// read first; `break` leaves all of them. The variable and whatever else outlives an iteration stand in stack slots: a
    /// role may be left and entered again in the middle of the body.
    pub fn for_loop(
        &self,
        var: LocalId,
        named: &[LocalId],
        segments: &[Segment],
        carry: &[Carry],
        body: &mut dyn FnMut(&Self) -> Result<()>,
    ) -> Result<()> {
        let e = self.e;
        let mut ranges = Vec::with_capacity(segments.len());
        for seg in segments {
            let (lo, hi, step) =
                (self.index_expr(seg.lo)?, self.index_expr(seg.hi)?, self.index_expr(seg.step)?);
            if e.known(step).is_none_or(|n| n <= 0) {
                let stop = self.fault(codes::BAD_STEP, "the step of a loop must be positive".into());
                self.go_on_if(e.lt(e.int(0), step), stop);
            }
            ranges.push([lo, hi, step].map(|v| self.kept(v)));
        }
        self.carry_in(carry);
        let i = e.alloca(e.i64(), "i");
        let exit = e.block("end");
        for (seg, [lo, hi, step]) in segments.iter().zip(ranges) {
            let (head, run, next, done) = (e.block("for"), e.block("body"), e.block("next"), e.block("done"));
            e.store(i, lo.get(e), 8);
            e.jump(head);
            e.b.position_at_end(head);
            let at = e.load_int(i);
            e.jump_if(e.lt(at, hi.get(e)), run, done);
            e.b.position_at_end(run);
            self.set_scalar(var, Val::index(at));
            for (&local, &value) in named.iter().zip(&seg.values) {
                self.set_scalar(local, self.scalar(value)?);
            }
            self.loops.borrow_mut().push(LoopEnds { next, exit });
            let result = body(self);
            self.loops.borrow_mut().pop();
            result?;
            e.jump(next);
            e.b.position_at_end(next);
            self.carry_on(carry);
            e.count(i, step.get(e));
            e.jump(head);
            e.b.position_at_end(done);
        }
        e.jump(exit);
        e.b.position_at_end(exit);
        Ok(())
    }

    /// A value that is still there after a role was left and entered again.
    fn kept(&self, v: Int<'c>) -> Kept<'c> {
        if self.e.known(v).is_some() {
            return Kept::Known(v);
        }
        let p = self.e.alloca(self.e.i64(), "kept");
        self.e.store(p, v, 8);
        Kept::Slot(p)
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

    fn op(&self, results: &[LocalId], op: &Op) -> Result<()> {
        match op {
            Op::Read { from, pad } => self.read_region(results[0], from, *pad),
            Op::Write { to, value } => self.write_region(to, *value),
            Op::Gemm { a, b, into, init, precision } => {
                self.changes(*into);
                let [a, b] = [a, b].map(|&x| MatOperand::Value(x));
                self.gemm(&a, &b, *into, *init, *precision)
            }
            Op::Reduce { comb, inputs, axis } => self.reduce(*comb, inputs, *axis, results),
            Op::Scan { comb, inputs, axis, reverse, exclusive } => {
                self.scan(*comb, inputs, *axis as usize, *reverse, *exclusive, results)
            }
            Op::Fold { reducer, index, values } => self.fold_reducer(*reducer, index, values),
            Op::Join { reducer } => self.join_reducer(*reducer, results),
            Op::AllReduce { comb, inputs, over } => self.all_reduce(*comb, inputs, over, results),
            Op::Shuffle { kind, value, lane, width } => {
                self.shuffle(*kind, *value, *lane, *width, results[0])
            }
            Op::Vote { kind, cond, team } => self.vote(*kind, *cond, *team, results[0]),
            Op::Once { value } => self.once(*value, results[0]),
            Op::Barrier { team } => {
                self.barrier(*team);
                Ok(())
            }
            Op::Atomic { op, at, value, expected } => {
                self.atomic(*op, at, *value, *expected, results.first().copied())
            }
            Op::Print { parts } => self.print(parts),
            Op::Assert { cond, message } => self.assert(*cond, message),
            Op::Acquire { ring } => {
                self.acquire(*ring, results[0]);
                Ok(())
            }
            Op::Wait { ring } => {
                self.wait(*ring, results[0]);
                Ok(())
            }
            Op::Commit { token } => {
                self.commit(*token);
                Ok(())
            }
            Op::Release { token } => {
                self.release(*token);
                Ok(())
            }
            Op::Take { turn } => {
                self.take_turn(*turn);
                Ok(())
            }
            Op::Pass { turn } => {
                self.pass_turn(*turn);
                Ok(())
            }
            // Engines have done their work when they are told of it: nobody may look before the slot's `wait` or the
            // queue's `await`, so nobody can tell. What is left to order is done by the order of the code.
            Op::CopyAsync { from, to, pad, .. } => self.copy_region(from, to, *pad),
            Op::Issue { a, b, into, init, precision, .. } => {
                self.changes(*into);
                self.gemm(a, b, *into, *init, *precision)
            }
            Op::Await { .. } | Op::Fence { .. } => Ok(()),
        }
    }

    fn assert(&self, cond: ExprId, message: &str) -> Result<()> {
        let c = self.scalar(cond)?.int();
        let stop = self.fault(codes::ASSERT_FAILED, format!("assertion failed: {message}"));
        self.go_on_if(c, stop);
        Ok(())
    }

    /// Stops the kernel with this fault unless the condition holds.
    pub fn go_on_if(&self, cond: Int<'c>, fault: Int<'c>) {
        let e = self.e;
        let (stop, on) = (e.block("fault"), e.block("on"));
        e.jump_if(cond, on, stop);
        e.b.position_at_end(stop);
        e.b.build_return(Some(&fault)).unwrap();
        e.b.position_at_end(on);
    }
}
