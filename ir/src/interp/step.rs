//! Control flow. One step runs one statement of one agent, or moves a loop on; nothing here waits or recurses.
//!
//! **Sections.** While no enclosing statement is divergent, each statement (and each evaluation of a loop's
//! condition) begins a new section: what it touches is ordered after everything before it. A condition or bound that
//! varies over lanes makes its whole statement one section. Loops whose lanes differ run in lock step under masks.
//! At stage `final` only a barrier begins a new section of threads: all order is written out there.

use super::agent::{Agent, Ctx, LaneKind};
use super::cx::Cx;
use super::eval::{indices, scalar, uniform_index};
use super::fault::{Exec, fault, malformed};
use super::frame::{ForFrame, Frame, Iterations, LoopCtl, Position};
use super::value::{Lanes, Mask, Value};
use crate::codes;
use crate::program::*;
use std::rc::Rc;

/// More iterations of one `parallel` than thread numbers can name.
const MOST_ITERATIONS: i64 = 1 << 23;

pub(super) enum Step<'p> {
    Ran,
    /// Nothing changed; the agent says in `waiting` for what.
    Blocked,
    Fork(Vec<Agent<'p>>),
    Done,
}

impl<'p> Cx<'_, 'p> {
    pub fn step(&mut self) -> Exec<Step<'p>> {
        let idle = self.agent.top().mask.is_empty();
        let Some(frame) = self.agent.frames.last_mut() else { return Ok(Step::Done) };
        match frame {
            Frame::Block { stmts, pc } => {
                let stmts: &'p [Stmt] = stmts;
                let at = *pc;
                if at == stmts.len() || idle {
                    self.agent.frames.pop();
                    return Ok(Step::Ran);
                }
                self.run.tick()?;
                *pc += 1;
                let index = self.agent.frames.len() - 1;
                let step = self.statement(&stmts[at])?;
                if let (Step::Blocked, Frame::Block { pc, .. }) = (&step, &mut self.agent.frames[index]) {
                    *pc -= 1;
                }
                Ok(step)
            }
            Frame::If { .. } => self.end_branch(),
            Frame::For(_) => self.next_iteration(),
            Frame::While { .. } => self.next_while(),
            Frame::Lanes => {
                self.flush_reducers()?;
                self.agent.frames.pop();
                self.agent.ctx.pop();
                Ok(Step::Ran)
            }
            Frame::Iterations(_) => self.next_parallel(),
            Frame::Roles => {
                self.agent.frames.pop();
                Ok(Step::Ran)
            }
        }
    }

    /// Begins a statement: a new section in uniform flow.
    pub fn begin(&mut self, stmt: &Stmt) -> Exec<()> {
        self.agent.span = stmt.span;
        self.agent.span_id = None;
        self.agent.memo.begin();
        if self.agent.top().divergent == 0 {
            let epoch = self.run.next_epoch()?;
            self.agent.epoch = epoch;
            let waits = matches!(&stmt.kind, StmtKind::Op { op: Op::Barrier { .. }, .. });
            let explicit = self.run.program.stage == Stage::Final && self.run.kernel.threads.is_some();
            if !explicit || waits || self.agent.section < self.run.block_epoch {
                self.agent.section = epoch;
                self.agent.barriers.clear();
            }
        }
        Ok(())
    }

    fn statement(&mut self, stmt: &'p Stmt) -> Exec<Step<'p>> {
        self.begin(stmt)?;
        match &stmt.kind {
            StmtKind::If { cond, then, other } => self.branch(*cond, then, other)?,
            StmtKind::For { .. } => self.begin_for(stmt)?,
            StmtKind::While { cond, body } => self.begin_while(stmt, *cond, body)?,
            StmtKind::Parallel { vars, extents, body } => self.begin_parallel(stmt, vars, extents, body)?,
            StmtKind::Break => self.leave(true)?,
            StmtKind::Continue => self.leave(false)?,
            StmtKind::Next { carry, value } => self.next_token(*carry, *value)?,
            StmtKind::Roles(roles) => return self.fork(roles),
            StmtKind::Op { results, op } => return self.op(results, op),
            other => self.simple(other)?,
        }
        Ok(Step::Ran)
    }

    fn push_block(&mut self, stmts: &'p [Stmt]) {
        self.agent.frames.push(Frame::Block { stmts, pc: 0 });
    }

    fn branch(&mut self, cond: ExprId, then: &'p [Stmt], other: &'p [Stmt]) -> Exec<()> {
        let outer = self.agent.top().mask.clone();
        match scalar(self, cond)?.agreed(&outer) {
            Lanes::One(v) => {
                self.agent.frames.push(Frame::If { outer, other: None, divergent: false });
                self.push_block(if v != 0 { then } else { other });
            }
            cond @ Lanes::Many(_) => {
                let (yes, no) = outer.split(&cond);
                let top = self.agent.top_mut();
                top.divergent += 1;
                top.mask = yes;
                self.agent.frames.push(Frame::If { outer, other: Some((other, no)), divergent: true });
                self.push_block(then);
            }
        }
        Ok(())
    }

    fn end_branch(&mut self) -> Exec<Step<'p>> {
        if let Some(Frame::If { other, .. }) = self.agent.frames.last_mut()
            && let Some((stmts, mask)) = other.take()
        {
            self.agent.top_mut().mask = mask;
            self.push_block(stmts);
            return Ok(Step::Ran);
        }
        if let Some(Frame::If { outer, divergent, .. }) = self.agent.frames.pop() {
            let mask = self.still_in(outer);
            let top = self.agent.top_mut();
            top.mask = mask;
            top.divergent -= u32::from(divergent);
        }
        Ok(Step::Ran)
    }

    /// Without the lanes that left the innermost loop or its iteration.
    fn still_in(&self, mask: Mask) -> Mask {
        match self.agent.loops.last() {
            Some(ctl) if ctl.depth == self.agent.depth() && ctl.any() => mask.filter(|l| !ctl.is_out(l)),
            _ => mask,
        }
    }

    fn enter_loop(&mut self, divergent: bool) {
        let depth = self.agent.depth();
        let top = self.agent.top_mut();
        top.divergent += u32::from(divergent);
        let mut ctl = LoopCtl::new(depth, top.divergent);
        ctl.diverged = divergent;
        self.agent.loops.push(ctl);
    }

    fn exit_loop(&mut self, entry: Mask) {
        let diverged = self.agent.loops.pop().is_some_and(|ctl| ctl.diverged);
        let top = self.agent.top_mut();
        top.divergent -= u32::from(diverged);
        top.mask = entry;
        self.agent.frames.pop();
    }

    /// `break` (or `continue`) for the active lanes.
    fn leave(&mut self, breaks: bool) -> Exec<()> {
        let depth = self.agent.depth();
        let top = &mut self.agent.ctx[depth];
        let Some(ctl) = self.agent.loops.last_mut().filter(|c| c.depth == depth) else {
            return Err(malformed("`break` or `continue` outside a loop"));
        };
        LoopCtl::mark(if breaks { &mut ctl.broke } else { &mut ctl.skipped }, &top.mask, top.width);
        if top.divergent > ctl.base && !ctl.diverged {
            ctl.diverged = true;
            ctl.base += 1;
            top.divergent += 1;
        }
        top.mask = Mask::of(Vec::new());
        Ok(())
    }

    fn begin_for(&mut self, stmt: &'p Stmt) -> Exec<()> {
        let StmtKind::For { var, kind, named, segments, carry, body } = &stmt.kind else { return Ok(()) };
        let mut bounds = Vec::with_capacity(segments.len());
        for s in segments {
            let [lo, hi, step] = [scalar(self, s.lo)?, scalar(self, s.hi)?, scalar(self, s.step)?];
            let mask = &self.agent.top().mask;
            if let Some(lane) = mask.iter().find(|&l| step.get(l) as i64 <= 0) {
                let f = fault(codes::BAD_STEP, "the step of a loop must be positive").on(lane);
                return Err(f.value("the step", (step.get(lane) as i64).to_string()));
            }
            bounds.push([lo, hi, step].map(|b| b.agreed(mask)));
        }
        let one = |l: &Lanes| if let Lanes::One(v) = l { Some(*v as i64) } else { None };
        let uniform: Option<Vec<[i64; 3]>> =
            bounds.iter().map(|[a, b, c]| Some([one(a)?, one(b)?, one(c)?])).collect();
        let divergent = uniform.is_none();
        let position = match uniform {
            Some(segments) => {
                let next = segments.first().map_or(0, |s| s[0]);
                Position::Uniform { segments, segment: 0, next }
            }
            None => {
                let width = self.agent.top().width;
                let at = (0..width).map(|l| (0, bounds[0][0].get(l) as i64)).collect();
                Position::Lanes { segments: bounds, at }
            }
        };
        let mut consts = Vec::with_capacity(segments.len());
        for s in segments {
            let mut values = Vec::with_capacity(s.values.len());
            for &v in &s.values {
                values.push(scalar(self, v)?.get(0));
            }
            consts.push(values);
        }
        for c in carry {
            let init = c.init.map_or(Ok(None), |l| self.take_token(l))?;
            self.put_token(c.local, init)?;
        }
        let vectorized = *kind == LoopKind::Vectorized;
        if vectorized {
            self.agent.epoch = self.run.next_epoch()?;
        }
        let frame = ForFrame {
            stmt,
            var: *var,
            named,
            consts,
            body,
            vectorized,
            carry,
            pending: Vec::new(),
            entry: self.agent.top().mask.clone(),
            position,
            count: 0,
            vec_start: self.agent.epoch,
            outer_vec: self.agent.vec,
        };
        self.enter_loop(divergent);
        self.agent.frames.push(Frame::For(Box::new(frame)));
        Ok(())
    }

    fn next_iteration(&mut self) -> Exec<Step<'p>> {
        let Some(Frame::For(mut f)) = self.agent.frames.pop() else { return Ok(Step::Ran) };
        if f.count > 0 {
            self.begin(f.stmt)?;
            self.run.tick()?;
            self.roll_tokens(&mut f)?;
        }
        let live = self.next_live(&f.entry);
        let width = self.agent.top().width;
        let Some((mask, value)) = f.position.step(&live, width) else {
            self.agent.vec = f.outer_vec;
            let entry = f.entry.clone();
            self.agent.frames.push(Frame::For(f));
            self.exit_loop(entry);
            return Ok(Step::Ran);
        };
        if f.vectorized {
            self.agent.vec = Some((f.vec_start, (f.count % 0xfffe) as u16));
        }
        f.count += 1;
        self.define(f.var, Value::Scalar(value));
        for (i, &local) in f.named.iter().enumerate() {
            let value = f.position.constant(width, |segment| f.consts[segment][i]);
            self.define(local, Value::Scalar(value));
        }
        self.agent.top_mut().mask = mask;
        let body = f.body;
        self.agent.frames.push(Frame::For(f));
        self.push_block(body);
        Ok(Step::Ran)
    }

    /// The lanes that have not broken out; those that skipped the last iteration are back.
    fn next_live(&mut self, entry: &Mask) -> Mask {
        let Some(ctl) = self.agent.loops.last_mut() else { return entry.clone() };
        ctl.skipped.clear();
        if ctl.broke.is_empty() { entry.clone() } else { entry.filter(|l| !ctl.has_broken(l)) }
    }

    fn begin_while(&mut self, stmt: &'p Stmt, cond: ExprId, body: &'p [Stmt]) -> Exec<()> {
        let entry = self.agent.top().mask.clone();
        self.enter_loop(false);
        self.agent.frames.push(Frame::While { cond, stmt, body, entry });
        Ok(())
    }

    fn next_while(&mut self) -> Exec<Step<'p>> {
        let Some(Frame::While { cond, stmt, body, entry }) = self.agent.frames.last() else {
            return Ok(Step::Ran);
        };
        let (cond, stmt, body, entry) = (*cond, *stmt, *body, entry.clone());
        self.run.tick()?;
        let live = self.next_live(&entry);
        if live.is_empty() {
            self.exit_loop(entry);
            return Ok(Step::Ran);
        }
        self.agent.top_mut().mask = live.clone();
        self.begin(stmt)?;
        let mask = match scalar(self, cond)?.agreed(&live) {
            Lanes::One(0) => Mask::of(Vec::new()),
            Lanes::One(_) => live,
            cond @ Lanes::Many(_) => {
                let depth = self.agent.depth();
                if let Some(ctl) = self.agent.loops.last_mut()
                    && !ctl.diverged
                {
                    ctl.diverged = true;
                    ctl.base += 1;
                    self.agent.ctx[depth].divergent += 1;
                }
                live.split(&cond).0
            }
        };
        if mask.is_empty() {
            self.exit_loop(entry);
        } else {
            self.leave_while(&live_without(&entry, &mask));
            self.agent.top_mut().mask = mask;
            self.push_block(body);
        }
        Ok(Step::Ran)
    }

    /// Lanes whose condition was false never come back.
    fn leave_while(&mut self, out: &[u32]) {
        let width = self.agent.top().width;
        if let (false, Some(ctl)) = (out.is_empty(), self.agent.loops.last_mut()) {
            LoopCtl::mark(&mut ctl.broke, &Mask::of(out.to_vec()), width);
        }
    }

    fn begin_parallel(
        &mut self,
        stmt: &'p Stmt,
        vars: &'p [LocalId],
        extents: &[ExprId],
        body: &'p [Stmt],
    ) -> Exec<()> {
        self.need_collective("a `parallel` statement")?;
        let mut sizes = Vec::with_capacity(extents.len());
        for &e in extents {
            sizes.push(uniform_index(self, e)?.max(0));
        }
        let total = sizes.iter().try_fold(1i64, |n, &s| n.checked_mul(s)).unwrap_or(i64::MAX);
        if total > MOST_ITERATIONS {
            return Err(fault(codes::STEP_LIMIT, "a `parallel` has more iterations than can be run here")
                .value("the iterations", total.to_string())
                .help("run it on smaller tensors"));
        }
        if total == 0 {
            return Ok(());
        }
        let names = vars.iter().map(|&v| self.run.kernel.body.locals[v].name.clone());
        let names = Rc::new(names.zip(sizes.iter().copied()).collect());
        let lanes = self.run.traits.runs_in_lanes(self.run.kernel, stmt);
        let width = if lanes { total as u32 } else { 1 };
        let ctx = Ctx {
            width,
            mask: Mask::All(width),
            all: Mask::All(width),
            divergent: 1,
            kind: LaneKind::Iterations(names),
            first_thread: 0,
            parallel: total > 1,
        };
        self.agent.ctx.push(ctx);
        if !lanes {
            let extents = sizes;
            let frame = Iterations { vars, extents, total, next: 0, body };
            self.agent.frames.push(Frame::Iterations(Box::new(frame)));
            return Ok(());
        }
        let mut inner = 1i64;
        for (&var, &n) in vars.iter().zip(&sizes).rev() {
            let values = (0..total).map(|i| (i / inner % n) as u64).collect();
            self.define(var, Value::Scalar(Lanes::many(values)));
            inner *= n;
        }
        self.agent.frames.push(Frame::Lanes);
        self.push_block(body);
        Ok(())
    }

    fn next_parallel(&mut self) -> Exec<Step<'p>> {
        let Some(Frame::Iterations(f)) = self.agent.frames.last_mut() else { return Ok(Step::Ran) };
        if f.next == f.total {
            self.agent.frames.pop();
            self.agent.ctx.pop();
            return Ok(Step::Ran);
        }
        let (n, vars, body) = (f.next, f.vars, f.body);
        f.next += 1;
        let mut rest = n;
        let mut index = vec![0; vars.len()];
        for (i, &extent) in index.iter_mut().zip(&f.extents).rev() {
            *i = rest % extent;
            rest /= extent;
        }
        self.run.tick()?;
        let top = self.agent.top_mut();
        top.first_thread = n as u32;
        top.mask = Mask::All(1);
        for (&var, i) in vars.iter().zip(index) {
            self.define(var, Value::one(i as u64));
        }
        self.push_block(body);
        Ok(Step::Ran)
    }

    /// Subscripts of one element, over the active lanes.
    pub fn subscripts(&mut self, index: &[ExprId]) -> Exec<Vec<Lanes>> {
        indices(self, index)
    }
}

fn live_without(entry: &Mask, mask: &Mask) -> Vec<u32> {
    if entry.len() == mask.len() { Vec::new() } else { entry.iter().filter(|&l| !mask.contains(l)).collect() }
}
