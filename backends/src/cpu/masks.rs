//! Control that differs between the threads of a block around code that runs once for all of them, such as an
//! all-reduce of one warp: a mask says which threads take part, and loops go on while any does.
//!
//! The verifier sees to it that whole teams take part. A mask is one byte a thread in scratch.

use super::emit::{Int, Ptr};
use super::error::{CpuError, Result};
use super::frame::{Frame, ThreadAt};
use inkwell::IntPredicate;
use pantile_ir::codes;
use pantile_ir::program::{Carry, ExprId, LocalId, Segment};

/// What clears a mask beside its own end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// jumps of the loop around it
    Jump,
    /// the next iteration: `continue` goes no further out
    Iteration,
    /// the loop's end: `break` goes no further out
    Loop,
}

/// The threads that take part, within those of the masks before it.
#[derive(Clone, Copy)]
pub struct Mask<'c> {
    on: Ptr<'c>,
    until: Until,
}

type Body<'b, 'a, 'c> = &'b mut dyn FnMut(&Frame<'a, 'c>) -> Result<()>;

impl<'a, 'c> Frame<'a, 'c> {
    /// Runs `f` as thread `t` if it takes part.
    pub fn if_active(&self, t: Int<'c>, f: impl FnOnce(&Self)) {
        let run = || self.with_thread(Some(ThreadAt { linear: t }), f);
        let top = self.masks.borrow().last().copied();
        match top {
            Some(m) => self.e.if_(self.is_on(m.on, t), run, || {}),
            None => run(),
        }
    }

    fn is_on(&self, mask: Ptr<'c>, t: Int<'c>) -> Int<'c> {
        let byte = self.e.load(self.e.ctx.i8_type(), self.e.offset(mask, t), 1).into_int_value();
        self.e.cmp(IntPredicate::NE, byte, self.e.ctx.i8_type().const_zero())
    }

    fn turn(&self, mask: Ptr<'c>, t: Int<'c>, on: Int<'c>) {
        let byte = self.e.zext(on.into(), self.e.ctx.i8_type().into());
        self.e.store(self.e.offset(mask, t), byte, 1);
    }

    fn here(&self) -> Int<'c> {
        self.thread.get().map_or(self.e.int(0), |t| t.linear)
    }

    fn new_mask(&self) -> Ptr<'c> {
        self.reserve(u64::from(self.thread_count()))
    }

    /// Sets `mask` to the threads that take part and for which `test` holds.
    fn narrowed(&self, mask: Ptr<'c>, test: &dyn Fn(&Self) -> Result<Int<'c>>) -> Result<()> {
        let off = self.e.ctx.bool_type().const_zero();
        self.every_thread(|t| self.turn(mask, t, off));
        self.each_thread(&mut |f| {
            f.turn(mask, f.here(), test(f)?);
            Ok(())
        })
    }

    fn any(&self, mask: Ptr<'c>) -> Int<'c> {
        let slot = self.e.alloca(self.e.i64(), "any");
        self.e.store(slot, self.e.int(0), 8);
        self.every_thread(|t| {
            let on = self.e.zext(self.is_on(mask, t).into(), self.e.i64().into()).into_int_value();
            let old = self.e.load_int(slot);
            self.e.store(slot, self.e.b.build_or(old, on, "").unwrap(), 8);
        });
        self.e.cmp(IntPredicate::NE, self.e.load_int(slot), self.e.int(0))
    }

    fn with_mask<R>(&self, on: Ptr<'c>, until: Until, f: impl FnOnce(&Self) -> R) -> R {
        self.masks.borrow_mut().push(Mask { on, until });
        let r = f(self);
        self.masks.borrow_mut().pop();
        r
    }

    pub fn masked_if<'b>(
        &self,
        cond: ExprId,
        then: Body<'b, 'a, 'c>,
        other: Option<Body<'b, 'a, 'c>>,
    ) -> Result<()> {
        let yes = self.new_mask();
        self.narrowed(yes, &|f| Ok(f.scalar(cond)?.int()))?;
        let sides = match other {
            Some(other) => {
                let no = self.new_mask();
                self.narrowed(no, &|f| Ok(f.e.b.build_not(f.is_on(yes, f.here()), "").unwrap()))?;
                vec![(yes, then), (no, other)]
            }
            None => vec![(yes, then)],
        };
        for (mask, side) in sides {
            let mut result = Ok(());
            self.e.if_(
                self.any(mask),
                || result = self.with_mask(mask, Until::Jump, |f| f.with_thread(None, |f| side(f))),
                || {},
            );
            result?;
        }
        Ok(())
    }

    /// Each thread has its own bounds and its own place in them.
    pub fn masked_for(
        &self,
        var: LocalId,
        named: &[LocalId],
        segments: &[Segment],
        carry: &[Carry],
        body: Body<'_, 'a, 'c>,
    ) -> Result<()> {
        if !carry.is_empty() {
            return Err(CpuError::unsupported(
                "a slot carried through a loop whose length differs between threads",
                "let all threads of the role run the loop equally often",
                self.kernel.span,
            ));
        }
        let all = self.new_mask();
        self.narrowed(all, &|f| Ok(f.e.ctx.bool_type().const_int(1, false)))?;
        let bounds = self.own_bounds(segments)?;
        let in_masks = self.in_masks.replace(true);
        let result = self.with_mask(all, Until::Loop, |f| {
            segments.iter().zip(bounds).try_for_each(|(seg, b)| f.masked_range(var, named, seg, b, body))
        });
        self.in_masks.set(in_masks);
        result
    }

    /// Arrays of each range's present place, end and step, one element a thread.
    fn own_bounds(&self, segments: &[Segment]) -> Result<Vec<[Ptr<'c>; 3]>> {
        let array = || self.reserve(8 * u64::from(self.thread_count()));
        let arrays: Vec<[Ptr; 3]> = segments.iter().map(|_| [array(), array(), array()]).collect();
        self.each_thread(&mut |f| {
            for (seg, places) in segments.iter().zip(&arrays) {
                let step = f.index_expr(seg.step)?;
                if f.e.known(step).is_none_or(|n| n <= 0) {
                    let stop = f.fault(codes::BAD_STEP, "the step of a loop must be positive".into());
                    f.go_on_if(f.e.lt(f.e.int(0), step), stop);
                }
                for (&p, v) in places.iter().zip([f.index_expr(seg.lo)?, f.index_expr(seg.hi)?, step]) {
                    f.e.store(f.word_of(p, f.here()), v, 8);
                }
            }
            Ok(())
        })?;
        Ok(arrays)
    }

    fn word_of(&self, array: Ptr<'c>, t: Int<'c>) -> Ptr<'c> {
        self.e.offset(array, self.e.mul(t, self.e.int(8)))
    }

    fn masked_range(
        &self,
        var: LocalId,
        named: &[LocalId],
        seg: &Segment,
        [at, hi, step]: [Ptr<'c>; 3],
        body: Body<'_, 'a, 'c>,
    ) -> Result<()> {
        let e = self.e;
        let own = |f: &Self, p| e.load_int(f.word_of(p, f.here()));
        let (live, now) = (self.new_mask(), self.new_mask());
        let (head, run, done) = (e.block("for"), e.block("body"), e.block("done"));
        e.jump(head);
        e.b.position_at_end(head);
        // who broke out left the loop's mask
        self.narrowed(live, &|f| Ok(e.lt(own(f, at), own(f, hi))))?;
        e.jump_if(self.any(live), run, done);
        e.b.position_at_end(run);
        self.with_mask(live, Until::Jump, |f| {
            f.narrowed(now, &|f| Ok(f.e.ctx.bool_type().const_int(1, false)))?;
            f.with_mask(now, Until::Iteration, |f| {
                f.each_thread(&mut |f| {
                    f.set_scalar(var, super::value::Val::index(own(f, at)));
                    for (&local, &value) in named.iter().zip(&seg.values) {
                        f.set_scalar(local, f.scalar(value)?);
                    }
                    Ok(())
                })?;
                f.with_thread(None, |f| body(f))
            })?;
            f.each_thread(&mut |f| {
                e.store(f.word_of(at, f.here()), e.add(own(f, at), own(f, step)), 8);
                Ok(())
            })
        })?;
        e.jump(head);
        e.b.position_at_end(done);
        Ok(())
    }

    pub fn masked_while(&self, cond: ExprId, body: Body<'_, 'a, 'c>) -> Result<()> {
        let e = self.e;
        let (all, now) = (self.new_mask(), self.new_mask());
        self.narrowed(all, &|f| Ok(f.e.ctx.bool_type().const_int(1, false)))?;
        let (head, run, done) = (e.block("while"), e.block("body"), e.block("done"));
        let in_masks = self.in_masks.replace(true);
        let result = self.with_mask(all, Until::Loop, |f| {
            e.jump(head);
            e.b.position_at_end(head);
            f.narrowed(now, &|f| Ok(f.scalar(cond)?.int()))?;
            // who is done does not ask again
            f.every_thread(|t| f.turn(all, t, f.is_on(now, t)));
            e.jump_if(f.any(now), run, done);
            e.b.position_at_end(run);
            f.with_mask(now, Until::Iteration, |f| f.with_thread(None, |f| body(f)))?;
            e.jump(head);
            e.b.position_at_end(done);
            Ok(())
        });
        self.in_masks.set(in_masks);
        result
    }

    /// `break` and `continue` of a loop with masks: who takes part now does not until the loop, or its iteration, ends.
    pub fn masked_jump(&self, leaves: bool) {
        let all = self.masks.borrow().clone();
        let Some(top) = all.last() else { return };
        let last = if leaves { Until::Loop } else { Until::Iteration };
        let from = all.iter().rposition(|m| m.until == last).unwrap_or(0);
        let off = self.e.ctx.bool_type().const_zero();
        self.every_thread(|t| {
            self.e.if_(
                self.is_on(top.on, t),
                || all[from..].iter().for_each(|m| self.turn(m.on, t, off)),
                || {},
            );
        });
    }
}
