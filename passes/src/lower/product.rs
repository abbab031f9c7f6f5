//! `@` by multiplying and adding: operands in shared memory, an accumulator tile in each thread's registers, one outer
//! product a step of K.

use super::Lower;
use super::bounds::Bound;
use super::nest::{Coord, Inner};
use super::store::Storage;
use crate::layout::digits::AxisLayout;
use pantile_abi::DType;
use pantile_ir::builder::{Exprs, Result};
use pantile_ir::program::*;

/// An operand where any thread reads any element.
struct Operand {
    storage: Storage,
    elem: Elem,
    transposed: bool,
    bounds: Vec<Bound>,
    /// Rounded to tf32 before it is multiplied.
    short: bool,
    /// What is not valid is zero: two such operands that end alike need no bound on K.
    zeroed: bool,
}

impl Lower<'_, '_> {
    pub fn gemm(
        &mut self,
        a: ExprId,
        b: ExprId,
        into: LocalId,
        init: Init,
        precision: Precision,
    ) -> Result<()> {
        let mut spaces = 0;
        let mut a = self.operand(a, "a", &mut spaces)?;
        let mut b = self.operand(b, "b", &mut spaces)?;
        let short = precision == Precision::Tf32;
        (a.short, b.short) = (short, short);
        let acc = self.storage(into)?;
        let axes = acc.axes().to_vec();
        let elem = self.k.kernel().body.locals[into].ty.elem().unwrap_or(Elem::F32);
        let product = vec![a.bounds[0], b.bounds[1]];
        match init {
            Init::Accumulate => {}
            Init::Overwrite => {
                self.clear(&acc, elem)?;
                self.set_box(into, product)?;
            }
            // where it does not hold, values and box stay
            Init::When(cond) => {
                let cond = self.scalar(cond)?;
                self.when(Some(cond), |s| {
                    s.clear(&acc, elem)?;
                    s.set_box(into, product)
                })?;
            }
        }
        // outside of its box nobody looks at a new sum
        let all_new = matches!(init, Init::Overwrite);
        let rows_and_columns = if all_new { [Bound::default(); 2] } else { [a.bounds[0], b.bounds[1]] };
        self.outer(&a, &b, (&acc, &axes), elem, rows_and_columns)
    }

    fn clear(&mut self, acc: &Storage, elem: Elem) -> Result<()> {
        let zero = self.k.constant_at(elem, 0, self.span)?;
        self.nest(acc.axes(), Inner::Unroll, &mut |s, at| s.put(acc, at, zero))
    }

    /// The operand in shared memory: its own place, or a copy.
    fn operand(&mut self, e: ExprId, name: &str, spaces: &mut usize) -> Result<Operand> {
        let elem = self.ty(e).elem().unwrap_or(Elem::F32);
        let (local, transposed) = match self.k.kernel().body.exprs[e] {
            Expr::Local(l) => (Some(l), false),
            Expr::Transpose(inner) => match self.k.kernel().body.exprs[inner] {
                Expr::Local(l) => (Some(l), true),
                _ => (None, false),
            },
            _ => (None, false),
        };
        let bounds = self.box_of(e)?;
        if let Some(l) = local {
            let storage = self.storage(l)?;
            if matches!(storage, Storage::Shared { .. } | Storage::Direct { .. }) {
                let zeroed = self.zeroed.contains(&l);
                return Ok(Operand { storage, elem, transposed, bounds, short: false, zeroed });
            }
        }
        let shape = self.shape(e);
        let axes = match local {
            None => {
                *spaces += 1;
                self.own_axes(*spaces - 1, &shape)
            }
            Some(l) => {
                let mut axes = self.storage(l)?.axes().to_vec();
                if transposed {
                    axes.swap(0, 1);
                }
                axes
            }
        };
        let bounds = self.named_box(&format!("{name}_n"), bounds)?;
        let storage = self.new_storage(name, elem, axes.clone(), true)?;
        let zero = self.k.constant_at(elem, 0, self.span)?;
        let checked = self.may_fail(e);
        self.nest(&axes, Inner::Unroll, &mut |s, at| {
            if checked {
                return s.put_value(&storage, at, e, &bounds, false);
            }
            let ok = s.valid(&bounds, at)?;
            let v = s.eval(e, at)?;
            let v = match ok {
                Some(cond) => s.expr(Expr::Select { cond, then: v, other: zero })?,
                None => v,
            };
            s.put(&storage, at, v)
        })?;
        Ok(Operand { storage, elem, transposed: false, bounds, short: false, zeroed: true })
    }

    fn outer(
        &mut self,
        a: &Operand,
        b: &Operand,
        (acc, axes): (&Storage, &[AxisLayout]),
        elem: Elem,
        [row_bound, column_bound]: [Bound; 2],
    ) -> Result<()> {
        let kn = a.storage.axes()[if a.transposed { 0 } else { 1 }].extent;
        let k_box = self.intersect(&[a.bounds[1]], &[b.bounds[0]])?[0];
        // a zero times what is not valid on the other side might be no zero
        let same = |s: &Self, x: Option<ExprId>, y: Option<ExprId>| match (x, y) {
            (Some(x), Some(y)) => s.alike(x, y),
            (x, y) => x == y,
        };
        let (x, y) = (a.bounds[1], b.bounds[0]);
        let both_zero = a.zeroed && b.zeroed && same(self, x.lo, y.lo) && same(self, x.hi, y.hi);
        let k_box = if both_zero { Bound::default() } else { k_box };
        let lo = match k_box.lo {
            Some(lo) => lo,
            None => self.int(0)?,
        };
        let hi = match k_box.hi {
            Some(hi) => hi,
            None => self.int(kn.into())?,
        };
        let columns = [axes[1].clone()];
        let rows = [axes[0].clone()];
        // a step is an outer product already: repeating it only makes code
        self.for_("kk", LoopKind::NoUnroll, lo, hi, |s, kk| {
            let k = Coord::free(kk);
            let row = s.new_storage("ra", elem, vec![rows[0].clone()], false)?;
            s.nest(&rows, Inner::Unroll, &mut |s, at| {
                let v = s.factor(a, [at[0].clone(), k.clone()], elem)?;
                s.put(&row, &at[..1], v)
            })?;
            let column = s.new_storage("rb", elem, vec![columns[0].clone()], false)?;
            s.nest(&columns, Inner::Unroll, &mut |s, at| {
                let v = s.factor(b, [k.clone(), at[0].clone()], elem)?;
                s.put(&column, &at[..1], v)
            })?;
            // an invalid row or column leaves the sum as it is; a row is asked once for all of its columns
            s.nest(&rows, Inner::Unroll, &mut |s, i| {
                let ok = s.inside(row_bound, i[0].value)?;
                s.when(ok, |s| {
                    s.nest(&columns, Inner::Unroll, &mut |s, j| {
                        let ok = s.inside(column_bound, j[0].value)?;
                        s.when(ok, |s| {
                            let x = s.load(&row, elem, i)?;
                            let y = s.load(&column, elem, j)?;
                            let p = s.bin(BinOp::Mul, x, y)?;
                            s.accumulate(acc, elem, &[i[0].clone(), j[0].clone()], p)
                        })
                    })
                })
            })
        })
    }

    fn factor(&mut self, o: &Operand, at: [Coord; 2], to: Elem) -> Result<ExprId> {
        let [i, j] = at;
        let at = if o.transposed { [j, i] } else { [i, j] };
        let v = self.load(&o.storage, o.elem, &at)?;
        let v = self.converted(v, to)?;
        if o.short { self.tf32(v) } else { Ok(v) }
    }

    /// Rounded to ten bits of mantissa, to nearest even; infinities and NaNs stay.
    fn tf32(&mut self, v: ExprId) -> Result<ExprId> {
        let word = Elem::D(DType::U32);
        let v = self.bind("full", v)?;
        let bits = self.expr(Expr::Bits { to: DType::U32, value: v })?;
        let bits = self.bind("bits", bits)?;
        let n = |s: &mut Self, n: u64| s.k.constant_at(word, n, s.span);
        let (kept, one, half, mask, special) =
            (n(self, 13)?, n(self, 1)?, n(self, 0xfff)?, n(self, 0xffff_e000)?, n(self, 0x7f80_0000)?);
        let last = self.bin(BinOp::Shr, bits, kept)?;
        let odd = self.bin(BinOp::And, last, one)?;
        let up = self.bin(BinOp::Add, half, odd)?;
        let sum = self.bin(BinOp::Add, bits, up)?;
        let rounded = self.bin(BinOp::And, sum, mask)?;
        let rounded = self.expr(Expr::Bits { to: DType::F32, value: rounded })?;
        let exponent = self.bin(BinOp::And, bits, special)?;
        let finite = self.bin(BinOp::Ne, exponent, special)?;
        self.expr(Expr::Select { cond: finite, then: rounded, other: v })
    }

    fn accumulate(&mut self, acc: &Storage, elem: Elem, at: &[Coord], p: ExprId) -> Result<()> {
        if let Storage::Scalar { local, .. } = acc {
            return self.emit(StmtKind::Update { local: *local, op: Update::Add, value: p });
        }
        let old = self.load(acc, elem, at)?;
        let sum = self.bin(BinOp::Add, old, p)?;
        self.put(acc, at, sum)
    }
}
