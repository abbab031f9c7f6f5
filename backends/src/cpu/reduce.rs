//! Reductions and scans of tiles.
//!
//! Folds start at the identity, run in the accumulate type and are rounded once. Where the order of a fold can be
//! seen (float sums and products under `math exact`, combiners that do not commute) it is the ascending order, one
//! element after the other; elsewhere lanes fold side by side and are joined at the end.

use super::bounds::Bound;
use super::emit::{Any, Ptr};
use super::error::Result;
use super::expr::Ix;
use super::frame::{Frame, TileMem};
use super::tile::Step;
use super::value::Val;
use pantile_abi::DType;
use pantile_ir::program::{BinOp, Combiner, Elem, ExprId, FOLD_BLOCK, LocalId, fold_elem};

/// Running values of a fold, one stack slot a part.
pub struct Accumulators<'c> {
    slots: Vec<Ptr<'c>>,
    elems: Vec<Elem>,
    lanes: u32,
}

impl<'a, 'c> Frame<'a, 'c> {
    /// The neutral value of part `part` in the accumulate type.
    pub fn identity(&self, comb: Combiner, part: usize, elem: Elem) -> Val<'c> {
        let float = elem.is_float();
        let fconst = |x: f64| Val::scalar(self.e.float_const(elem, x, 1), elem);
        let int = |bits: u64| Val::scalar(self.e.ints(self.e.reg_type(elem), bits, 1), elem);
        let bits = elem.dtype().map_or(64, |d| if d == DType::Bool { 1 } else { d.bits() });
        let signed = super::value::signed(elem) && elem != Elem::BOOL;
        let (min, max) = if signed {
            ((1u64 << (bits - 1)).wrapping_neg(), (1u64 << (bits - 1)) - 1)
        } else {
            (0, u64::MAX >> (64 - bits))
        };
        match comb {
            Combiner::User(id) => {
                let (e, bits) = self.program.combines[id].identity[part];
                self.e.constant(e, bits)
            }
            Combiner::Mul if float => fconst(1.0),
            Combiner::Min if float => fconst(f64::INFINITY),
            Combiner::Max if float => fconst(f64::NEG_INFINITY),
            Combiner::Add | Combiner::Or | Combiner::Xor if !float => int(0),
            Combiner::Add | Combiner::Or | Combiner::Xor => fconst(0.0),
            Combiner::Mul => int(1),
            Combiner::Min => int(max),
            Combiner::Max => int(min),
            // all bits of the element, not of the register that holds it
            Combiner::And => int(if signed { u64::MAX } else { max }),
        }
    }

    /// `comb(a, b)`, part by part.
    pub fn combine(&self, comb: Combiner, a: &[Val<'c>], b: &[Val<'c>]) -> Result<Vec<Val<'c>>> {
        let op = match comb {
            Combiner::User(id) => {
                let both: Vec<Val> = a.iter().chain(b).copied().collect();
                return self.pure_call(&self.program.combines[id].func, &both);
            }
            Combiner::Min | Combiner::Max => {
                let pair = |(&a, &b): (&Val<'c>, &Val<'c>)| self.e.min_max(comb == Combiner::Max, a, b);
                return Ok(a.iter().zip(b).map(pair).collect());
            }
            Combiner::Add => BinOp::Add,
            Combiner::Mul => BinOp::Mul,
            Combiner::And => BinOp::And,
            Combiner::Or => BinOp::Or,
            Combiner::Xor => BinOp::Xor,
        };
        Ok(a.iter().zip(b).map(|(&a, &b)| self.e.binary(op, a, b, self.contract)).collect())
    }

    /// Whether the result may depend on the order of the fold.
    pub fn order_matters(&self, comb: Combiner, elem: Elem) -> bool {
        match comb {
            Combiner::User(id) => !self.program.combines[id].commutative || !self.contract,
            Combiner::Add | Combiner::Mul => elem.is_float() && !self.contract,
            _ => false,
        }
    }

    pub fn accumulators(&self, comb: Combiner, elems: &[Elem], lanes: u32) -> Accumulators<'c> {
        let mut acc = Accumulators { slots: Vec::new(), elems: Vec::new(), lanes };
        for &elem in elems {
            let held = fold_elem(comb, elem);
            let slot = self.e.alloca(self.e.lanes_of(self.e.reg_type(held), lanes), "acc");
            acc.slots.push(slot);
            acc.elems.push(held);
        }
        self.acc_reset(comb, &acc);
        acc
    }

    fn acc_reset(&self, comb: Combiner, acc: &Accumulators<'c>) {
        for (part, (&slot, &held)) in acc.slots.iter().zip(&acc.elems).enumerate() {
            let start = self.e.widen(self.identity(comb, part, held), acc.lanes);
            self.e.b.build_store(slot, start.v).unwrap();
        }
    }

    /// Folds the elements of a box in order, block by block: what is rounded is never more than a block old.
    pub fn fold_in_blocks(
        &self,
        comb: Combiner,
        elems: &[Elem],
        bounds: &[Bound<'c>],
        get: &mut dyn FnMut(&Step<'_, 'c>) -> Result<Vec<Val<'c>>>,
    ) -> Result<Vec<Val<'c>>> {
        let e = self.e;
        let (total, part) = (self.accumulators(comb, elems, 1), self.accumulators(comb, elems, 1));
        let count = e.alloca(e.i64(), "count");
        e.store(count, e.int(0), 8);
        let flush = || -> Result<()> {
            let all = self.combine(comb, &self.acc_values(&total), &self.acc_values(&part))?;
            self.acc_set(&total, &all);
            self.acc_reset(comb, &part);
            e.store(count, e.int(0), 8);
            Ok(())
        };
        self.each_element(bounds, &mut |step| {
            let vals = get(&step)?;
            self.acc_fold(comb, &part, &vals, None)?;
            let n = e.add(e.load(e.i64(), count, 8).into_int_value(), e.int(1));
            e.store(count, n, 8);
            let mut result = Ok(());
            e.if_(e.cmp(inkwell::IntPredicate::EQ, n, e.int(FOLD_BLOCK as i64)), || result = flush(), || {});
            result
        })?;
        flush()?;
        Ok(self.acc_values(&total))
    }

    pub fn acc_values(&self, acc: &Accumulators<'c>) -> Vec<Val<'c>> {
        let get = |(&p, &elem): (&Ptr<'c>, &Elem)| {
            let ty = self.e.lanes_of(self.e.reg_type(elem), acc.lanes);
            Val { v: self.e.b.build_load(ty, p, "").unwrap(), elem, lanes: acc.lanes }
        };
        acc.slots.iter().zip(&acc.elems).map(get).collect()
    }

    pub fn acc_set(&self, acc: &Accumulators<'c>, values: &[Val<'c>]) {
        for (&p, v) in acc.slots.iter().zip(values) {
            self.e.b.build_store(p, self.e.widen(*v, acc.lanes).v).unwrap();
        }
    }

    /// Folds one value (or vector of values, masked) into the accumulators.
    pub fn acc_fold(
        &self,
        comb: Combiner,
        acc: &Accumulators<'c>,
        values: &[Val<'c>],
        mask: Option<Any<'c>>,
    ) -> Result<()> {
        let old = self.acc_values(acc);
        let wide: Vec<Val> = values
            .iter()
            .zip(&acc.elems)
            .map(|(v, &elem)| self.e.widen(self.e.convert(*v, elem, false), acc.lanes))
            .collect();
        let mut new = self.combine(comb, &old, &wide)?;
        if let Some(mask) = mask {
            let mask = Val { v: mask, elem: Elem::BOOL, lanes: acc.lanes };
            new = new.iter().zip(&old).map(|(&n, &o)| self.e.choose(mask, n, o)).collect();
        }
        self.acc_set(acc, &new);
        Ok(())
    }

    /// Joins the lanes of vector accumulators into one value a part.
    fn join_lanes(&self, comb: Combiner, acc: &Accumulators<'c>) -> Result<Vec<Val<'c>>> {
        let mut vals = self.acc_values(acc);
        let mut lanes = acc.lanes;
        while lanes > 1 {
            lanes /= 2;
            let half =
                |high: bool| -> Vec<Val<'c>> { vals.iter().map(|v| self.half(*v, lanes, high)).collect() };
            vals = self.combine(comb, &half(false), &half(true))?;
        }
        Ok(vals.iter().map(|v| self.e.lane(*v, 0)).collect())
    }

    fn half(&self, v: Val<'c>, lanes: u32, high: bool) -> Val<'c> {
        if lanes == 1 {
            return self.e.lane(v, high as u32);
        }
        let first = if high { lanes } else { 0 };
        let i32t = self.e.ctx.i32_type();
        let at: Vec<_> = (first..first + lanes).map(|k| i32t.const_int(k as u64, false)).collect();
        let mask = inkwell::types::VectorType::const_vector(&at);
        let x = v.v.into_vector_value();
        let v2 = self.e.b.build_shuffle_vector(x, x.get_type().get_poison(), mask, "").unwrap();
        Val { v: v2.into(), elem: v.elem, lanes }
    }

    fn input_elems(&self, inputs: &[ExprId]) -> Vec<Elem> {
        inputs.iter().map(|&x| self.kernel.body.type_of(x).elem().unwrap_or(Elem::Index)).collect()
    }

    pub fn eval_all(&self, inputs: &[ExprId], pos: &[Ix<'c>], lanes: u32) -> Result<Vec<Val<'c>>> {
        let one = |&x: &ExprId| {
            let at: &[Ix<'c>] = if self.kernel.body.type_of(x).shape().is_empty() { &[] } else { pos };
            self.eval(x, at, lanes)
        };
        inputs.iter().map(one).collect()
    }

    pub fn reduce(
        &self,
        comb: Combiner,
        inputs: &[ExprId],
        axis: Option<u8>,
        results: &[LocalId],
    ) -> Result<()> {
        let shape = self.joint_shape(inputs);
        let bounds = self.joint_box(inputs, &shape)?;
        match axis {
            None => self.reduce_all(comb, inputs, &shape, &bounds, results),
            Some(axis) => self.reduce_axis(comb, inputs, axis as usize, &shape, &bounds, results),
        }
    }

    fn reduce_all(
        &self,
        comb: Combiner,
        inputs: &[ExprId],
        shape: &[u32],
        bounds: &[Bound<'c>],
        results: &[LocalId],
    ) -> Result<()> {
        let elems = self.input_elems(inputs);
        let values = self.fold_box(comb, inputs, &elems, shape, bounds)?;
        for ((&r, v), &elem) in results.iter().zip(values).zip(&elems) {
            self.set_scalar(r, self.e.convert(v, elem, false));
        }
        Ok(())
    }

    /// Folds all valid elements; gives one value a part, in the accumulate type.
    fn fold_box(
        &self,
        comb: Combiner,
        inputs: &[ExprId],
        elems: &[Elem],
        shape: &[u32],
        bounds: &[Bound<'c>],
    ) -> Result<Vec<Val<'c>>> {
        let ordered = elems.iter().any(|&e| self.order_matters(comb, e));
        if ordered && self.contract {
            return self.fold_in_blocks(comb, elems, bounds, &mut |step| self.eval_all(inputs, step.pos, 1));
        }
        let vector = !ordered && shape.last().is_some_and(|&n| n > 1);
        let acc = self.accumulators(comb, elems, if vector { self.machine.lanes } else { 1 });
        let mut fold = |step: Step<'_, 'c>| -> Result<()> {
            let vals = self.eval_all(inputs, step.pos, step.lanes)?;
            let mask = self.step_mask(&step).map(Into::into);
            self.acc_fold(comb, &acc, &vals, mask)
        };
        if vector {
            self.each_vector(shape, bounds, &mut fold)?;
        } else {
            self.each_element(bounds, &mut fold)?;
        }
        self.join_lanes(comb, &acc)
    }

    fn reduce_axis(
        &self,
        comb: Combiner,
        inputs: &[ExprId],
        axis: usize,
        shape: &[u32],
        bounds: &[Bound<'c>],
        results: &[LocalId],
    ) -> Result<()> {
        let elems = self.input_elems(inputs);
        let mut kept_shape = shape.to_vec();
        kept_shape.remove(axis);
        let mut kept = bounds.to_vec();
        let folded = kept.remove(axis);
        if kept.is_empty() {
            return self.reduce_all(comb, inputs, shape, bounds, results);
        }
        let out: Vec<(TileMem<'c>, _)> = results.iter().filter_map(|&r| self.tile_place(r)).collect();
        let along_last = axis + 1 == shape.len();
        let mut row = |step: Step<'_, 'c>| -> Result<()> {
            let values = if along_last {
                self.fold_last(comb, inputs, &elems, shape, step.pos, folded)?
            } else {
                self.fold_across(comb, inputs, &elems, axis, &step, folded)?
            };
            for (((mem, _), v), &elem) in out.iter().zip(values).zip(&elems) {
                let v = self.e.widen(self.e.convert(v, elem, false), step.lanes);
                self.e.store_val(self.tile_address(mem, step.pos), v);
            }
            Ok(())
        };
        if along_last {
            self.each_element(&kept, &mut row)?;
        } else {
            self.each_vector(&kept_shape, &kept, &mut row)?;
        }
        for (_, b) in &out {
            self.store_box(b, &kept);
        }
        Ok(())
    }

    /// One row along the last axis.
    fn fold_last(
        &self,
        comb: Combiner,
        inputs: &[ExprId],
        elems: &[Elem],
        shape: &[u32],
        kept: &[Ix<'c>],
        folded: Bound<'c>,
    ) -> Result<Vec<Val<'c>>> {
        let one = self.e.int(1);
        let mut bounds: Vec<Bound> =
            kept.iter().map(|p| Bound { lo: p.base, hi: self.e.add(p.base, one) }).collect();
        bounds.push(folded);
        self.fold_box(comb, inputs, elems, shape, &bounds)
    }

    /// All lanes of a step side by side, along an axis that is not the last.
    fn fold_across(
        &self,
        comb: Combiner,
        inputs: &[ExprId],
        elems: &[Elem],
        axis: usize,
        step: &Step<'_, 'c>,
        folded: Bound<'c>,
    ) -> Result<Vec<Val<'c>>> {
        let acc = self.accumulators(comb, elems, step.lanes);
        let mut result = Ok(());
        self.e.for_(folded.lo, folded.hi, self.e.int(1), |k| {
            let mut pos = step.pos.to_vec();
            pos.insert(axis, Ix::at(k));
            result = self
                .eval_all(inputs, &pos, step.lanes)
                .and_then(|vals| self.acc_fold(comb, &acc, &vals, None));
        });
        result?;
        Ok(self.acc_values(&acc))
    }

    pub fn scan(
        &self,
        comb: Combiner,
        inputs: &[ExprId],
        axis: usize,
        reverse: bool,
        exclusive: bool,
        results: &[LocalId],
    ) -> Result<()> {
        let shape = self.joint_shape(inputs);
        let bounds = self.joint_box(inputs, &shape)?;
        let elems = self.input_elems(inputs);
        let out: Vec<(TileMem<'c>, _)> = results.iter().filter_map(|&r| self.tile_place(r)).collect();
        let mut kept_shape = shape.clone();
        kept_shape.remove(axis);
        let mut kept = bounds.clone();
        let scanned = kept.remove(axis);
        let mut line = |step: Step<'_, 'c>| -> Result<()> {
            let acc = self.accumulators(comb, &elems, step.lanes);
            let mut result = Ok(());
            self.e.for_(scanned.lo, scanned.hi, self.e.int(1), |k| {
                let at = if reverse {
                    self.e.sub(self.e.add(scanned.lo, self.e.sub(scanned.hi, k)), self.e.int(1))
                } else {
                    k
                };
                let mut pos = step.pos.to_vec();
                pos.insert(axis, Ix::at(at));
                result = self.scan_step(comb, inputs, &elems, &acc, &out, &pos, step.lanes, exclusive);
            });
            result
        };
        if axis + 1 == shape.len() || kept.is_empty() {
            self.each_element(&kept, &mut line)?;
        } else {
            self.each_vector(&kept_shape, &kept, &mut line)?;
        }
        for (_, b) in &out {
            self.store_box(b, &bounds);
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `scan`, split off to fit a screen")]
    fn scan_step<B>(
        &self,
        comb: Combiner,
        inputs: &[ExprId],
        elems: &[Elem],
        acc: &Accumulators<'c>,
        out: &[(TileMem<'c>, B)],
        pos: &[Ix<'c>],
        lanes: u32,
        exclusive: bool,
    ) -> Result<()> {
        let before = self.acc_values(acc);
        let vals = self.eval_all(inputs, pos, lanes)?;
        self.acc_fold(comb, acc, &vals, None)?;
        let now = if exclusive { before } else { self.acc_values(acc) };
        for (((mem, _), v), &elem) in out.iter().zip(now).zip(elems) {
            let v = self.e.widen(self.e.convert(v, elem, false), lanes);
            self.e.store_val(self.tile_address(mem, pos), v);
        }
        Ok(())
    }
}
