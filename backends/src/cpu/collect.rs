//! Collectives over threads and atomic updates.

use super::emit::Int;
use super::error::Result;
use super::expr::Ix;
use super::frame::{Frame, Place};
use super::threads::Members;
use super::value::Val;
use inkwell::AtomicOrdering;
use pantile_abi::DType;
use pantile_ir::program::{
    AtomicOp, BinOp, Combiner, Elem, ExprId, LocalId, Mem, Over, Place as AtomicPlace, ShuffleKind, Team,
    VoteKind,
};

impl<'a, 'c> Frame<'a, 'c> {
    /// Gives a block-wide value to all threads.
    pub fn spread(&self, local: LocalId, v: Val<'c>) -> Result<()> {
        match self.place(local) {
            Place::PerThread(_) => self.each_thread(&mut |f| {
                f.set_scalar(local, v);
                Ok(())
            }),
            _ => {
                self.set_scalar(local, v);
                Ok(())
            }
        }
    }

    fn linear_of(&self, digits: &[(u32, u32)], mut at: Int<'c>) -> Int<'c> {
        let mut linear = self.e.int(0);
        for &(extent, stride) in digits.iter().rev() {
            let n = self.e.int(extent as i64);
            let digit = self.e.b.build_int_unsigned_rem(at, n, "").unwrap();
            at = self.e.b.build_int_unsigned_div(at, n, "").unwrap();
            linear = self.e.add(linear, self.e.mul(digit, self.e.int(stride as i64)));
        }
        linear
    }

    /// Runs `f` as each member of a team, in the order of the fold, with its place in the team.
    fn each_member(
        &self,
        m: &Members,
        team: Int<'c>,
        f: &mut dyn FnMut(&Self, Int<'c>) -> Result<()>,
    ) -> Result<()> {
        let first = self.e.add(self.e.int(m.first as i64), self.linear_of(&m.outer, team));
        let mut result = Ok(());
        self.e.for_(self.e.int(0), self.e.int(m.size() as i64), self.e.int(1), |i| {
            let t = self.e.add(first, self.linear_of(&m.inner, i));
            let mut body = || self.if_active(t, |this| result = f(this, i));
            if m.whole() {
                body();
            } else {
                let place = self.e.sub(t, self.e.int(m.from as i64));
                let inside =
                    self.e.cmp(inkwell::IntPredicate::ULT, place, self.e.int((m.to - m.from) as i64));
                self.e.if_(inside, body, || {});
            }
        });
        result
    }

    fn each_team(&self, m: &Members, f: &mut dyn FnMut(Int<'c>) -> Result<()>) -> Result<()> {
        let mut result = Ok(());
        self.e.for_(self.e.int(0), self.e.int(m.teams() as i64), self.e.int(1), |team| {
            result = f(team);
        });
        result
    }

    pub fn all_reduce(
        &self,
        comb: Combiner,
        inputs: &[ExprId],
        over: &Over,
        results: &[LocalId],
    ) -> Result<()> {
        let m = self.members(over);
        let elems: Vec<Elem> =
            inputs.iter().map(|&x| self.kernel.body.type_of(x).elem().unwrap_or(Elem::Index)).collect();
        self.each_team(&m, &mut |team| {
            let acc = self.accumulators(comb, &elems, 1);
            self.each_member(&m, team, &mut |f, _| {
                let vals = inputs.iter().map(|&x| f.scalar(x)).collect::<Result<Vec<_>>>()?;
                f.acc_fold(comb, &acc, &vals, None)
            })?;
            let done = self.acc_values(&acc);
            self.each_member(&m, team, &mut |f, _| {
                for ((&r, v), &elem) in results.iter().zip(&done).zip(&elems) {
                    f.set_scalar(r, f.e.convert(*v, elem, false));
                }
                Ok(())
            })
        })
    }

    pub fn shuffle(
        &self,
        kind: ShuffleKind,
        value: ExprId,
        lane: ExprId,
        width: Option<u32>,
        result: LocalId,
    ) -> Result<()> {
        let e = self.e;
        let elem = self.kernel.body.type_of(value).elem().unwrap_or(Elem::Index);
        let before = self.new_tile(elem, &[self.thread_count()]);
        self.each_thread(&mut |f| {
            let t = f.thread.get().map_or(e.int(0), |t| t.linear);
            let v = f.scalar(value)?;
            e.store_val(f.tile_address(&before, &[Ix::at(t)]), v);
            Ok(())
        })?;
        let width = width.unwrap_or(self.machine.warp).max(1);
        self.each_thread(&mut |f| {
            let t = f.thread.get().map_or(e.int(0), |t| t.linear);
            let n = e.int(width as i64);
            let own = e.b.build_int_unsigned_rem(t, n, "").unwrap();
            let base = e.sub(t, own);
            let x = f.index_expr(lane)?;
            let to = match kind {
                ShuffleKind::Index => e.b.build_int_unsigned_rem(x, n, "").unwrap(),
                ShuffleKind::Up => e.sub(own, x),
                ShuffleKind::Down => e.add(own, x),
                ShuffleKind::Xor => e.b.build_xor(own, x, "").unwrap(),
            };
            // a source outside the group gives the thread its own value
            let there = e.add(base, to);
            let threads = e.int(f.crew.get().to as i64);
            let ok = e.and(e.cmp(inkwell::IntPredicate::ULT, to, n), e.lt(there, threads));
            let src = e.select(ok, there.into(), t.into()).into_int_value();
            let v = e.load_val(f.tile_address(&before, &[Ix::at(src)]), elem, 1);
            f.set_scalar(result, v);
            Ok(())
        })
    }

    pub fn vote(&self, kind: VoteKind, cond: ExprId, team: Team, result: LocalId) -> Result<()> {
        let e = self.e;
        let m = self.members(&Over::Team(team));
        let ty = self.kernel.body.locals[result].ty.elem().unwrap_or(Elem::BOOL);
        self.each_team(&m, &mut |team| {
            let slot = e.alloca(e.i64(), "vote");
            e.store(slot, e.int(if kind == VoteKind::All { 1 } else { 0 }), 8);
            self.each_member(&m, team, &mut |f, place| {
                let c = f.scalar(cond)?;
                let wide = e.zext(c.v, e.i64().into()).into_int_value();
                let old = e.load(e.i64(), slot, 8).into_int_value();
                let new = match kind {
                    VoteKind::Any => e.b.build_or(old, wide, "").unwrap(),
                    VoteKind::All => e.and(old, wide),
                    VoteKind::Ballot => {
                        let bit = e.b.build_left_shift(wide, place, "").unwrap();
                        e.b.build_or(old, bit, "").unwrap()
                    }
                };
                e.store(slot, new, 8);
                Ok(())
            })?;
            let all = Val::scalar(e.load(e.i64(), slot, 8), Elem::D(DType::U64));
            let all = e.convert(all, ty, false);
            self.each_member(&m, team, &mut |f, _| {
                f.set_scalar(result, all);
                Ok(())
            })
        })
    }

    pub fn once(&self, value: ExprId, result: LocalId) -> Result<()> {
        if !self.crew.get().threaded {
            return self.assign(result, value);
        }
        let v = self.as_thread_zero(|f| f.scalar(value))?;
        self.spread(result, v)
    }

    // ---- atomics

    pub fn atomic(
        &self,
        op: AtomicOp,
        at: &AtomicPlace,
        value: ExprId,
        expected: Option<ExprId>,
        result: Option<LocalId>,
    ) -> Result<()> {
        match at {
            AtomicPlace::Element { mem, index } => {
                let place = self.element_index(*mem, index)?;
                let v = self.scalar(value)?;
                let expected = expected.map(|x| self.scalar(x)).transpose()?;
                let old = self.atomic_at(op, *mem, &place, v, expected)?;
                if let Some(r) = result {
                    self.set_scalar(r, old);
                }
                Ok(())
            }
            AtomicPlace::Region(region) => {
                let shape = self.kernel.body.type_of(value).shape().to_vec();
                let inner = if shape.is_empty() { None } else { Some(self.box_of(value)?) };
                self.each_in_region(region, inner.as_deref(), &mut |index, pos| {
                    let pos: &[Ix<'c>] = if shape.is_empty() { &[] } else { pos };
                    let v = self.eval(value, pos, 1)?;
                    self.atomic_at(op, region.mem, index, v, None).map(|_| ())
                })
            }
        }
    }

    /// Read, combine, compare and swap until nobody came between; gives the value before.
    fn atomic_at(
        &self,
        op: AtomicOp,
        mem: Mem,
        index: &[Int<'c>],
        v: Val<'c>,
        expected: Option<Val<'c>>,
    ) -> Result<Val<'c>> {
        let e = self.e;
        let (p, elem) = self.atomic_address(mem, index)?;
        let bits = super::value::scratch_bytes(elem) * 8;
        let int = e.ctx.custom_width_int_type(bits.try_into().expect("a width")).expect("a width");
        let raw = |v: Val<'c>| e.bitcast(e.pack(v), int.into()).into_int_value();
        let value_of = |x: Int<'c>| e.unpack(e.bitcast(x.into(), e.mem_type(elem)), elem, 1);
        let (head, exit) = (e.block("atomic"), e.block("done"));
        let first = e.load(int, p, bits / 8).into_int_value();
        let from = e.b.get_insert_block().expect("position");
        e.b.build_unconditional_branch(head).unwrap();
        e.b.position_at_end(head);
        let phi = e.b.build_phi(int, "old").unwrap();
        phi.add_incoming(&[(&first, from)]);
        let old_raw = phi.as_basic_value().into_int_value();
        let old = value_of(old_raw);
        let new = self.atomic_value(op, old, v, expected);
        let order = AtomicOrdering::Monotonic;
        let pair = e.b.build_cmpxchg(p, old_raw, raw(new), order, order).unwrap();
        let seen = e.b.build_extract_value(pair, 0, "").unwrap().into_int_value();
        let won = e.b.build_extract_value(pair, 1, "").unwrap().into_int_value();
        phi.add_incoming(&[(&seen, e.b.get_insert_block().expect("position"))]);
        e.b.build_conditional_branch(won, exit, head).unwrap();
        e.b.position_at_end(exit);
        Ok(old)
    }

    fn atomic_value(&self, op: AtomicOp, old: Val<'c>, v: Val<'c>, expected: Option<Val<'c>>) -> Val<'c> {
        let e = self.e;
        match op {
            AtomicOp::Add => e.binary(BinOp::Add, old, v, false),
            AtomicOp::Min => e.min_max(false, old, v),
            AtomicOp::Max => e.min_max(true, old, v),
            AtomicOp::And => e.binary(BinOp::And, old, v, false),
            AtomicOp::Or => e.binary(BinOp::Or, old, v, false),
            AtomicOp::Xor => e.binary(BinOp::Xor, old, v, false),
            AtomicOp::Exchange => v,
            AtomicOp::CompareExchange => match expected {
                Some(x) => e.choose(e.binary(BinOp::Eq, old, x, false), v, old),
                None => v,
            },
        }
    }
}
