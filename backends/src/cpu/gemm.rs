//! Products: a register-blocked outer-product micro-kernel over scratch tiles.
//!
//! `c[m, n] += a[m, k] · b[k, n]` with k innermost and ascending, one accumulator an element: the order that
//! `math exact` prescribes costs nothing here. `a` may have any strides (its elements are broadcast), `b` and `c`
//! run along n. Under `contract` product and sum fuse.

use super::bounds::Bound;
use super::emit::{Any, Int};
use super::error::{CpuError, Result};
use super::frame::{Frame, TileMem};
use super::value::{Val, scratch_bytes};
use inkwell::values::VectorValue;
use pantile_ir::program::{BinOp, Elem, Expr, ExprId, Init, LocalId, MatOperand, Precision};

/// Addresses and extents of one product.
struct Product<'c> {
    a: TileMem<'c>,
    b: TileMem<'c>,
    c: TileMem<'c>,
    m: Bound<'c>,
    n: Bound<'c>,
    k: Bound<'c>,
    elem: Elem,
}

/// A register block: rows, and vectors along n.
#[derive(Clone, Copy)]
struct Block {
    rows: u32,
    vectors: u32,
    unroll: u32,
}

impl<'a, 'c> Frame<'a, 'c> {
    /// `into` is of the type in which its operands' products are summed (the type rules say so).
    pub fn gemm(
        &self,
        a: &MatOperand,
        b: &MatOperand,
        into: LocalId,
        init: Init,
        precision: Precision,
    ) -> Result<()> {
        let Some((c, c_box)) = self.tile_place(into) else {
            return Err(CpuError::Llvm("a product needs a tile to go to".into()));
        };
        let elem = c.elem;
        let (a_mem, a_box) = self.operand(a, into, precision, false)?;
        let (b_mem, b_box) = self.operand(b, into, precision, true)?;
        let k = self.intersect(&a_box[1..2], &b_box[0..1])[0];
        let p = Product { a: a_mem, b: b_mem, c, m: a_box[0], n: b_box[1], k, elem };
        match init {
            Init::Accumulate => {}
            Init::Overwrite => {
                self.clear(&p.c)?;
                self.store_box(&c_box, &[p.m, p.n]);
            }
            Init::When(cond) => {
                let cond = self.scalar(cond)?.int();
                let mut result = Ok(());
                self.e.if_(
                    cond,
                    || {
                        result = self.clear(&p.c);
                        self.store_box(&c_box, &[p.m, p.n]);
                    },
                    || {},
                );
                result?;
            }
        }
        self.multiply(&p);
        Ok(())
    }

    fn clear(&self, c: &TileMem<'c>) -> Result<()> {
        let zero = Val::scalar(self.e.zero(self.e.reg_type(c.elem)), c.elem);
        self.each_vector(&c.shape, &self.full(&c.shape), &mut |step| {
            self.e.store_val(self.tile_address(c, step.pos), self.e.widen(zero, step.lanes));
            Ok(())
        })
    }

    /// An operand in the accumulator's type; `rows` demands unit stride along the last axis.
    fn operand(
        &self,
        x: &MatOperand,
        into: LocalId,
        precision: Precision,
        rows: bool,
    ) -> Result<(TileMem<'c>, Vec<Bound<'c>>)> {
        let (from, swap) = match x {
            MatOperand::Value(x) => match self.stored_operand(*x, into) {
                Some(found) => found,
                None => return self.evaluated_operand(*x, into, precision),
            },
            MatOperand::Memory { region, transposed } => (self.fetch(region, None)?, *transposed),
        };
        let (mut mem, mut bounds) = from;
        let elem = self.accumulator(into);
        let as_it_is = mem.elem == elem && precision == Precision::Full && !(rows && swap);
        let stored = mem.clone();
        if swap {
            mem.shape.swap(0, 1);
            mem.strides.swap(0, 1);
            bounds.swap(0, 1);
        }
        if as_it_is {
            return Ok((mem, bounds));
        }
        let own = self.new_tile(elem, &mem.shape);
        self.each_vector(&own.shape, &bounds, &mut |step| {
            let mut pos = step.pos.to_vec();
            if swap {
                pos.swap(0, 1);
            }
            let v = self.load_tile(&stored, &pos, step.lanes);
            let v = self.e.widen(self.factor(v, elem, precision), step.lanes);
            self.e.store_val(self.tile_address(&own, step.pos), v);
            Ok(())
        })?;
        Ok((own, bounds))
    }

    fn accumulator(&self, into: LocalId) -> Elem {
        self.kernel.body.locals[into].ty.elem().unwrap_or(Elem::F32)
    }

    /// A variable as an operand, perhaps transposed; not the accumulator itself, which changes on the way.
    fn stored_operand(&self, x: ExprId, into: LocalId) -> Option<((TileMem<'c>, Vec<Bound<'c>>), bool)> {
        let exprs = &self.kernel.body.exprs;
        let (x, swap) = match exprs[x] {
            Expr::Transpose(inner) => (inner, true),
            _ => (x, false),
        };
        let Expr::Local(id) = exprs[x] else { return None };
        if id == into {
            return None;
        }
        let (mem, bounds) = self.tile_place(id)?;
        Some(((mem, self.load_box(&bounds)), swap))
    }

    fn evaluated_operand(
        &self,
        x: ExprId,
        into: LocalId,
        precision: Precision,
    ) -> Result<(TileMem<'c>, Vec<Bound<'c>>)> {
        let shape = self.kernel.body.type_of(x).shape().to_vec();
        let bounds = self.box_of(x)?;
        let elem = self.accumulator(into);
        let mem = self.new_tile(elem, &shape);
        self.each_vector(&shape, &bounds, &mut |step| {
            let v = self.eval(x, step.pos, step.lanes)?;
            let v = self.e.widen(self.factor(v, elem, precision), step.lanes);
            self.e.store_val(self.tile_address(&mem, step.pos), v);
            Ok(())
        })?;
        Ok((mem, bounds))
    }

    /// One factor in the accumulator's type.
    fn factor(&self, v: Val<'c>, elem: Elem, precision: Precision) -> Val<'c> {
        let v = self.e.convert(v, elem, false);
        if precision == Precision::Full { v } else { self.e.tf32(v) }
    }

    /// Register block for a product of `m` rows: fills the register file, and divides the rows where it can.
    fn block(&self, elem: Elem, m: u32, n: u32) -> Block {
        let width = self.machine.lanes;
        let regs_per_vector =
            (elem.dtype().map_or(64, |d| d.bits().max(8)) * width).div_ceil(self.machine.vector_bits);
        let vectors = if n > width && regs_per_vector == 1 { 2 } else { 1 };
        let budget = (self.machine.registers - 4) / (vectors * regs_per_vector);
        let most = budget.clamp(1, 14);
        let least = most.div_ceil(2);
        let rows = (least..=most).rev().find(|r| m.is_multiple_of(*r)).unwrap_or(most);
        Block { rows: rows.min(m.max(1)), vectors, unroll: 4 }
    }

    fn multiply(&self, p: &Product<'c>) {
        let e = self.e;
        let block = self.block(p.elem, p.c.shape[0], p.c.shape[1]);
        let w = self.machine.lanes;
        if p.c.shape[1] == 1 {
            return self.column(p);
        }
        let span = e.int((block.vectors * w) as i64);
        // whole blocks of columns, then single vectors under a mask
        let n_lo = self.aligned(p.n.lo, w);
        let count = e.sub(p.n.hi, n_lo);
        let whole = e.sub(count, e.b.build_int_signed_rem(count, span, "").unwrap());
        let lo_plain = e.cmp(inkwell::IntPredicate::EQ, n_lo, p.n.lo);
        let n_mid = e.select(lo_plain, e.add(n_lo, whole).into(), n_lo.into()).into_int_value();
        e.for_(n_lo, n_mid, span, |n| self.rows(p, block, n, None));
        e.for_(n_mid, p.n.hi, e.int(w as i64), |n| {
            let below = e.lane_mask(e.sub(p.n.hi, n), w);
            let mask = if e.known(p.n.lo) == Some(0) {
                below
            } else {
                let skipped = e.lane_mask(e.sub(p.n.lo, n), w);
                e.b.build_and(below, e.b.build_not(skipped, "").unwrap(), "").unwrap()
            };
            self.rows(p, Block { vectors: 1, ..block }, n, Some(mask));
        });
    }

    fn aligned(&self, lo: Int<'c>, w: u32) -> Int<'c> {
        if self.e.known(lo) == Some(0) { lo } else { self.e.and(lo, self.e.int(-(w as i64))) }
    }

    /// All rows of one block of columns: whole register blocks, then row by row.
    fn rows(&self, p: &Product<'c>, block: Block, n: Int<'c>, mask: Option<VectorValue<'c>>) {
        let e = self.e;
        let step = e.int(block.rows as i64);
        let count = e.sub(p.m.hi, p.m.lo);
        let whole = e.sub(count, e.b.build_int_signed_rem(count, step, "").unwrap());
        let mid = e.add(p.m.lo, whole);
        e.for_(p.m.lo, mid, step, |m| self.register_block(p, block, m, n, mask));
        e.for_(mid, p.m.hi, e.int(1), |m| {
            self.register_block(p, Block { rows: 1, unroll: 1, ..block }, m, n, mask)
        });
    }

    fn register_block(
        &self,
        p: &Product<'c>,
        block: Block,
        m: Int<'c>,
        n: Int<'c>,
        mask: Option<VectorValue<'c>>,
    ) {
        let e = self.e;
        let w = self.machine.lanes;
        let size = scratch_bytes(p.elem) as i64;
        let at = |mem: &TileMem<'c>, row: Int<'c>, col: Int<'c>| {
            let off = e.add(e.mul(row, e.int(mem.strides[0])), e.mul(col, e.int(mem.strides[1])));
            e.offset(mem.base, e.mul(off, e.int(size)))
        };
        let c0 = at(&p.c, m, n);
        let c_at = |r: u32, v: u32| e.offset(c0, e.int((r as i64 * p.c.strides[0] + (v * w) as i64) * size));
        let mut init: Vec<Any> = Vec::new();
        for r in 0..block.rows {
            for v in 0..block.vectors {
                init.push(e.load_val(c_at(r, v), p.elem, w).v);
            }
        }
        let (a0, b0) = (at(&p.a, m, e.int(0)), at(&p.b, e.int(0), n));
        let step = |k: Int<'c>, u: i64, acc: &mut Vec<Any<'c>>| {
            let row = e.offset(b0, e.mul(e.add(k, e.int(u)), e.int(p.b.strides[0] * size)));
            let col = e.offset(a0, e.mul(e.add(k, e.int(u)), e.int(p.a.strides[1] * size)));
            let bs: Vec<Val> = (0..block.vectors)
                .map(|v| e.load_val(e.offset(row, e.int((v * w) as i64 * size)), p.elem, w))
                .collect();
            for r in 0..block.rows {
                let a = e.load_val(e.offset(col, e.int(r as i64 * p.a.strides[0] * size)), p.elem, 1);
                let a = e.widen(a, w);
                for (v, b) in bs.iter().enumerate() {
                    let slot = (r * block.vectors) as usize + v;
                    acc[slot] = self.multiply_add(a, *b, acc[slot]);
                }
            }
        };
        let unroll = block.unroll as i64;
        let count = e.sub(p.k.hi, p.k.lo);
        let mid = if unroll > 1 { e.add(p.k.lo, e.and(count, e.int(-unroll))) } else { p.k.lo };
        let mid = e.max(mid, p.k.lo);
        let mut acc = init;
        if unroll > 1 {
            acc = e.for_carry(p.k.lo, mid, e.int(unroll), &acc, |k, acc| {
                let mut acc = acc.to_vec();
                for u in 0..unroll {
                    step(k, u, &mut acc);
                }
                acc
            });
        }
        acc = e.for_carry(mid, p.k.hi, e.int(1), &acc, |k, acc| {
            let mut acc = acc.to_vec();
            step(k, 0, &mut acc);
            acc
        });
        for r in 0..block.rows {
            for v in 0..block.vectors {
                let x = Val { v: acc[(r * block.vectors + v) as usize], elem: p.elem, lanes: w };
                match mask {
                    Some(mask) => e.store_masked(c_at(r, v), x, mask),
                    None => e.store_val(c_at(r, v), x),
                }
            }
        }
    }

    fn multiply_add(&self, a: Val<'c>, b: Val<'c>, c: Any<'c>) -> Any<'c> {
        let c = Val { v: c, ..b };
        if self.contract && a.is_float() {
            return self.e.fma(a.v, b.v, c.v);
        }
        let product = self.e.binary(BinOp::Mul, a, b, false);
        self.e.binary(BinOp::Add, c, product, false).v
    }

    /// A product with one column: scalar, row by row.
    fn column(&self, p: &Product<'c>) {
        let e = self.e;
        let size = scratch_bytes(p.elem) as i64;
        let some = e.lt(p.n.lo, p.n.hi);
        e.if_(
            some,
            || {
                e.for_(p.m.lo, p.m.hi, e.int(1), |m| {
                    let at = e.offset(p.c.base, e.mul(m, e.int(p.c.strides[0] * size)));
                    let init = e.load_val(at, p.elem, 1).v;
                    let out = e.for_carry(p.k.lo, p.k.hi, e.int(1), &[init], |k, acc| {
                        let a_off = e.add(e.mul(m, e.int(p.a.strides[0])), e.mul(k, e.int(p.a.strides[1])));
                        let a = e.load_val(e.offset(p.a.base, e.mul(a_off, e.int(size))), p.elem, 1);
                        let b_off = e.mul(k, e.int(p.b.strides[0] * size));
                        let b = e.load_val(e.offset(p.b.base, b_off), p.elem, 1);
                        vec![self.multiply_add(a, b, acc[0])]
                    });
                    e.store_val(at, Val::scalar(out[0], p.elem));
                });
            },
            || {},
        );
    }
}
