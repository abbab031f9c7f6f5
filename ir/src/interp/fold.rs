//! Products, reductions and scans of tiles: ascending index, one accumulator, no fma, one rounding at the end.

use super::arith::num_fault;
use super::combine::Folder;
use super::cx::Cx;
use super::eval::{Scope, uniform};
use super::eval_tile::{in_tile, tile};
use super::fault::{Exec, malformed};
use super::stmt::patched;
use super::tile::{Bounds, Tile};
use super::value::{Lanes, Value};
use crate::num::{self, Rounding};
use crate::program::*;
use std::borrow::Cow;
use std::rc::Rc;

/// What a product of two tiles computes on: the operands' common part in the accumulator's type.
pub(super) struct Factors {
    elem: Elem,
    shape: Shape,
    /// Valid rows from a, valid columns from b.
    valid: Bounds,
    k: usize,
    a: Vec<u64>,
    b: Vec<u64>,
}

impl Factors {
    pub fn new(elem: Elem, a: &Tile, b: &Tile, precision: Precision) -> Exec<Factors> {
        let k_lo = a.valid.lo[1].max(b.valid.lo[0]);
        let k_hi = a.valid.hi[1].min(b.valid.hi[0]).max(k_lo);
        let part = |t: &Tile, axis: usize| {
            let mut bounds = t.valid.clone();
            bounds.lo[axis] = k_lo;
            bounds.hi[axis] = k_hi;
            factor(elem, t.elem, &t.over(&t.shape, &bounds), precision)
        };
        let valid = Bounds {
            lo: [a.valid.lo[0], b.valid.lo[1]].into_iter().collect(),
            hi: [a.valid.hi[0], b.valid.hi[1]].into_iter().collect(),
        };
        let shape = [a.shape[0], b.shape[1]].into_iter().collect();
        Ok(Factors { elem, shape, valid, k: (k_hi - k_lo) as usize, a: part(a, 1)?, b: part(b, 0)? })
    }

    /// `old + a·b` on the elements of `old`, or `a·b` where there is no `old`.
    pub fn product(&self, old: Option<&Tile>) -> Exec<Tile> {
        let valid = old.map_or(self.valid.clone(), |o| self.valid.intersect(&o.valid));
        let mut out = match old {
            Some(old) => old.over(&self.shape, &valid).into_owned(),
            None => vec![num::from_int(self.elem, 0).unwrap_or(0); valid.count()],
        };
        let n = valid.extent(1) as usize;
        let columns = self.valid.extent(1) as usize;
        let skip = valid.lo[1].saturating_sub(self.valid.lo[1]) as usize;
        let top = valid.lo[0].saturating_sub(self.valid.lo[0]) as usize;
        for (i, row) in out.chunks_mut(n.max(1)).enumerate() {
            for k in 0..self.k {
                let a = self.a[(top + i) * self.k + k];
                let b = &self.b[k * columns + skip..][..n];
                num::axpy_slice(self.elem, a, b, row).map_err(num_fault)?;
            }
        }
        let part = Tile { elem: self.elem, shape: self.shape.clone(), valid, data: out };
        Ok(match old {
            Some(old) if old.valid != part.valid => patched(old, &part),
            _ => part,
        })
    }
}

fn factor(to: Elem, from: Elem, values: &[u64], precision: Precision) -> Exec<Vec<u64>> {
    let mut out = vec![0; values.len()];
    let mut faults = Vec::new();
    num::convert_slice(from, to, values, Rounding::Nearest, &mut out, &mut faults);
    if let Some(f) = faults.first() {
        return Err(num_fault(f.error));
    }
    if precision == Precision::Tf32 && to == Elem::F32 {
        out.iter_mut().for_each(|v| *v = tf32(*v));
    }
    Ok(out)
}

/// f32 rounded to nearest even at 10 bits of fraction.
fn tf32(bits: u64) -> u64 {
    if f32::from_bits(bits as u32).is_nan() {
        return bits;
    }
    (bits + 0xfff + (bits >> 13 & 1)) & !0x1fff
}

impl<'p> Cx<'_, 'p> {
    pub fn gemm(
        &mut self,
        a: ExprId,
        b: ExprId,
        into: LocalId,
        init: Init,
        precision: Precision,
    ) -> Exec<()> {
        self.need_collective("a product of tiles")?;
        let (a, b) = (tile(self, a)?, tile(self, b)?);
        let elem = self.accumulator(into)?;
        let factors = Factors::new(elem, &a, &b, precision)?;
        let old = if self.overwrites(init)? { None } else { Some(self.tile_local(into)?) };
        let product = factors.product(old.as_deref())?;
        self.assign(into, Value::Tile(Rc::new(product)))
    }

    pub fn accumulator(&self, into: LocalId) -> Exec<Elem> {
        self.run.kernel.body.locals[into].ty.elem().ok_or_else(|| malformed("a product into a token"))
    }

    pub fn overwrites(&mut self, init: Init) -> Exec<bool> {
        Ok(match init {
            Init::Accumulate => false,
            Init::Overwrite => true,
            Init::When(cond) => uniform(self, cond)? != 0,
        })
    }

    pub fn tile_local(&mut self, local: LocalId) -> Exec<Rc<Tile>> {
        match self.local(local)? {
            Value::Tile(t) => Ok(t),
            _ => Err(malformed("a scalar where a tile is needed")),
        }
    }

    /// Inputs of a fold over their common box, in the accumulators' types.
    fn inputs(
        &mut self,
        comb: Combiner,
        inputs: &[ExprId],
    ) -> Exec<(Folder<'p>, Shape, Bounds, Vec<Vec<u64>>)> {
        let mut tiles = Vec::with_capacity(inputs.len());
        for &e in inputs {
            tiles.push(tile(self, e)?);
        }
        let Some(shape) = tiles.first().map(|t| t.shape.clone()) else {
            return Err(malformed("a fold of nothing"));
        };
        let valid = tiles.iter().fold(Bounds::full(&shape), |b, t| b.intersect(&t.valid));
        let elems = tiles.iter().map(|t| t.elem).collect();
        let folder = Folder::new(self.run.program, comb, elems).under(self.run.kernel.math);
        let mut runs = Vec::with_capacity(tiles.len());
        for (part, t) in tiles.iter().enumerate() {
            runs.push(folder.widen(part, t.over(&shape, &valid))?.into_owned());
        }
        Ok((folder, shape, valid, runs))
    }

    pub fn reduce(&mut self, comb: Combiner, inputs: &[ExprId], axis: Option<u8>) -> Exec<Vec<Value>> {
        self.need_collective("a reduction of a tile")?;
        let (folder, shape, valid, runs) = self.inputs(comb, inputs)?;
        let axis = axis.map(usize::from);
        let identity = folder.identity()?;
        let kept = |s: &Shape| -> Shape { (0..s.len()).filter(|&d| Some(d) != axis).map(|d| s[d]).collect() };
        let (out_shape, out_valid) = match axis {
            Some(_) => (kept(&shape), Bounds { lo: kept(&valid.lo), hi: kept(&valid.hi) }),
            None => (Shape::new(), Bounds::full(&[])),
        };
        let mut acc: Vec<Vec<u64>> = identity.iter().map(|&id| vec![id; out_valid.count()]).collect();
        match axis {
            Some(axis) if shape.len() > 1 => self.fold_axis(&folder, &valid, axis, &runs, &mut acc)?,
            _ => {
                let dense: Vec<Cow<[u64]>> = runs.iter().map(|r| Cow::Borrowed(&r[..])).collect();
                let mut one: Vec<u64> = identity;
                folder.run(&mut self.run.session, &mut one, &dense).map_err(|f| in_tile(f, &valid))?;
                acc = one.into_iter().map(|v| vec![v]).collect();
            }
        }
        let mut results = Vec::with_capacity(acc.len());
        for (part, run) in acc.into_iter().enumerate() {
            let data = folder.narrow(part, run)?;
            results.push(if out_shape.is_empty() {
                Value::Scalar(Lanes::One(data[0]))
            } else {
                let elem = folder.elems[part];
                let (shape, valid) = (out_shape.clone(), out_valid.clone());
                Value::Tile(Rc::new(Tile { elem, shape, valid, data }))
            });
        }
        Ok(results)
    }

    /// Folds along one axis of a box, for all elements of the other axes at once.
    fn fold_axis(
        &mut self,
        folder: &Folder<'p>,
        valid: &Bounds,
        axis: usize,
        runs: &[Vec<u64>],
        acc: &mut [Vec<u64>],
    ) -> Exec<()> {
        let n = valid.extent(axis) as usize;
        for k in 0..n {
            let values: Vec<Cow<[u64]>> = runs.iter().map(|r| Cow::Owned(plane(r, valid, axis, k))).collect();
            folder.step(&mut self.run.session, acc, &values).map_err(|f| f.fault)?;
        }
        Ok(())
    }

    pub fn scan(
        &mut self,
        comb: Combiner,
        inputs: &[ExprId],
        axis: usize,
        reverse: bool,
        exclusive: bool,
    ) -> Exec<Vec<Value>> {
        self.need_collective("a scan of a tile")?;
        let (folder, shape, valid, runs) = self.inputs(comb, inputs)?;
        let n = valid.extent(axis) as usize;
        let count = valid.count().checked_div(n).unwrap_or(0);
        let mut acc: Vec<Vec<u64>> = folder.identity()?.iter().map(|&id| vec![id; count]).collect();
        let mut out: Vec<Vec<u64>> = runs.iter().map(|r| vec![0; r.len()]).collect();
        for step in 0..n {
            let k = if reverse { n - 1 - step } else { step };
            let before = if exclusive { Some(acc.clone()) } else { None };
            let values: Vec<Cow<[u64]>> =
                runs.iter().map(|r| Cow::Owned(plane(r, &valid, axis, k))).collect();
            folder.step(&mut self.run.session, &mut acc, &values).map_err(|f| f.fault)?;
            for (part, run) in before.as_ref().unwrap_or(&acc).iter().enumerate() {
                set_plane(&mut out[part], &valid, axis, k, &folder.narrow(part, run.clone())?);
            }
        }
        let tiles = out.into_iter().enumerate().map(|(part, data)| {
            let (shape, valid) = (shape.clone(), valid.clone());
            Value::Tile(Rc::new(Tile { elem: folder.elems[part], shape, valid, data }))
        });
        Ok(tiles.collect())
    }
}

/// Offset, extents and strides of the elements of a box at coordinate `k` of an axis.
fn plane_of(valid: &Bounds, axis: usize, k: usize) -> (usize, Vec<u32>, Vec<usize>) {
    let (mut extents, mut strides) = (valid.extents().to_vec(), valid.strides());
    let base = k * strides[axis];
    extents.remove(axis);
    strides.remove(axis);
    (base, extents, strides)
}

fn plane(run: &[u64], valid: &Bounds, axis: usize, k: usize) -> Vec<u64> {
    let (base, extents, strides) = plane_of(valid, axis, k);
    let mut out = Vec::new();
    super::tile::walk(base, &extents, &strides, |i| out.push(run[i]));
    out
}

fn set_plane(run: &mut [u64], valid: &Bounds, axis: usize, k: usize, values: &[u64]) {
    let (base, extents, strides) = plane_of(valid, axis, k);
    let mut next = values.iter();
    super::tile::walk(base, &extents, &strides, |i| {
        if let Some(&v) = next.next() {
            run[i] = v;
        }
    });
}
