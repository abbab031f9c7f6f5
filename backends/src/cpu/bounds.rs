//! Valid boxes: half-open ranges of each axis, as values.

use super::emit::Int;
use super::error::Result;
use super::frame::{BoxMem, Frame};
use pantile_ir::program::{Expr, ExprId, SliceAxis};

/// `lo..hi` of one axis.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'c> {
    pub lo: Int<'c>,
    pub hi: Int<'c>,
}

impl<'a, 'c> Frame<'a, 'c> {
    pub fn full(&self, shape: &[u32]) -> Vec<Bound<'c>> {
        shape.iter().map(|&n| Bound { lo: self.e.int(0), hi: self.e.int(n as i64) }).collect()
    }

    pub fn load_box(&self, mem: &BoxMem<'c>) -> Vec<Bound<'c>> {
        let load = |p| self.e.load(self.e.i64(), p, 8).into_int_value();
        mem.axes.iter().map(|&(lo, hi)| Bound { lo: load(lo), hi: load(hi) }).collect()
    }

    pub fn store_box(&self, mem: &BoxMem<'c>, bounds: &[Bound<'c>]) {
        for (&(lo, hi), b) in mem.axes.iter().zip(bounds) {
            self.e.store(lo, b.lo, 8);
            self.e.store(hi, b.hi, 8);
        }
    }

    pub fn intersect(&self, a: &[Bound<'c>], b: &[Bound<'c>]) -> Vec<Bound<'c>> {
        let both = |(a, b): (&Bound<'c>, &Bound<'c>)| Bound {
            lo: self.tighter(a.lo, b.lo, true),
            hi: self.tighter(a.hi, b.hi, false),
        };
        a.iter().zip(b).map(both).collect()
    }

    /// Larger (`lo`) or smaller of two limits, without code where one is a constant that cannot bind.
    fn tighter(&self, a: Int<'c>, b: Int<'c>, lo: bool) -> Int<'c> {
        if a == b {
            a
        } else if lo {
            match (self.e.known(a), self.e.known(b)) {
                (Some(0), _) => b,
                (_, Some(0)) => a,
                _ => self.e.max(a, b),
            }
        } else {
            self.e.min(a, b)
        }
    }

    /// A box seen through stretching of unit axes.
    pub fn stretch(&self, bounds: &[Bound<'c>], from: &[u32], to: &[u32]) -> Vec<Bound<'c>> {
        let one = |((b, &f), &t): ((&Bound<'c>, &u32), &u32)| {
            if f == t {
                return *b;
            }
            let (zero, n) = (self.e.int(0), self.e.int(t as i64));
            let some = self.e.lt(b.lo, b.hi);
            Bound { lo: zero, hi: self.e.select(some, n.into(), zero.into()).into_int_value() }
        };
        bounds.iter().zip(from).zip(to).map(one).collect()
    }

    /// The valid box of a tile expression.
    pub fn box_of(&self, expr: ExprId) -> Result<Vec<Bound<'c>>> {
        let body = &self.kernel.body;
        let shape = body.type_of(expr).shape();
        let meet = |parts: &[ExprId]| -> Result<Vec<Bound<'c>>> {
            let mut all = self.full(shape);
            for &p in parts {
                let part = body.type_of(p).shape();
                if part.is_empty() {
                    continue;
                }
                let inner = self.box_of(p)?;
                all = self.intersect(&all, &self.stretch(&inner, part, shape));
            }
            Ok(all)
        };
        match &body.exprs[expr] {
            Expr::Local(id) => match self.tile_place(*id) {
                Some((_, mem)) => Ok(self.load_box(&mem)),
                None => Ok(Vec::new()),
            },
            Expr::Unary(_, a) | Expr::Cast { value: a, .. } => self.box_of(*a),
            Expr::Bits { value, .. } => {
                let from = body.type_of(*value).shape();
                if from == shape { self.box_of(*value) } else { Ok(self.full(shape)) }
            }
            Expr::Binary(_, a, b) => meet(&[*a, *b]),
            Expr::Select { cond, then, other } => meet(&[*cond, *then, *other]),
            Expr::Math { args, .. } | Expr::Intrinsic { args, .. } => meet(args),
            Expr::Broadcast { value, .. } => meet(&[*value]),
            Expr::Transpose(a) => {
                let mut b = self.box_of(*a)?;
                let n = b.len();
                b.swap(n - 1, n - 2);
                Ok(b)
            }
            Expr::InsertAxis { value, axis } => {
                let mut b = self.box_of(*value)?;
                b.insert(*axis as usize, Bound { lo: self.e.int(0), hi: self.e.int(1) });
                Ok(b)
            }
            Expr::Slice { value, axes } => self.slice_box(*value, axes),
            _ => Ok(self.full(shape)),
        }
    }

    fn slice_box(&self, value: ExprId, axes: &[SliceAxis]) -> Result<Vec<Bound<'c>>> {
        let inner = self.box_of(value)?;
        let mut out = Vec::new();
        // a dropped index outside the box empties the slice
        let mut alive = self.e.bool(true);
        for (b, axis) in inner.iter().zip(axes) {
            match *axis {
                SliceAxis::At(i) => {
                    let i = self.index_expr(i)?;
                    let inside = self.e.and(self.not(self.e.lt(i, b.lo)), self.e.lt(i, b.hi));
                    alive = self.e.and(alive, inside);
                }
                SliceAxis::Span { start, len } => {
                    let start = self.index_expr(start)?;
                    let n = self.e.int(len as i64);
                    let zero = self.e.int(0);
                    let lo = self.e.min(self.e.max(self.e.sub(b.lo, start), zero), n);
                    let hi = self.e.max(self.e.min(self.e.sub(b.hi, start), n), zero);
                    out.push(Bound { lo, hi });
                }
            }
        }
        if self.e.known_bool(alive) != Some(true) {
            for b in &mut out {
                b.hi = self.e.select(alive, b.hi.into(), b.lo.into()).into_int_value();
            }
        }
        Ok(out)
    }

    pub fn not(&self, c: Int<'c>) -> Int<'c> {
        self.e.b.build_not(c, "").unwrap()
    }
}
