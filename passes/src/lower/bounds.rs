//! Valid boxes of tiles, as scalars of the block: `lo..hi` an axis, where it is not known to be the whole axis.

use super::Lower;
use super::nest::Coord;
use crate::layout::classes::constant;
use pantile_ir::builder::Result;
use pantile_ir::program::*;
use std::collections::HashMap;

/// The valid range of one axis; `None` is the tile's own edge.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bound {
    pub lo: Option<ExprId>,
    pub hi: Option<ExprId>,
}

impl Bound {
    pub fn is_full(self) -> bool {
        self.lo.is_none() && self.hi.is_none()
    }
}

/// Axes, as bits, whose low or high edge may be inside the tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ragged {
    pub lo: u8,
    pub hi: u8,
}

impl Ragged {
    fn or(self, o: Ragged) -> Ragged {
        Ragged { lo: self.lo | o.lo, hi: self.hi | o.hi }
    }

    fn map(self, f: impl Fn(u8) -> u8) -> Ragged {
        Ragged { lo: f(self.lo), hi: f(self.hi) }
    }
}

/// For each tile local the edges that may ever be inside it.
pub fn ragged(k: &Kernel) -> HashMap<LocalId, Ragged> {
    let mut all: HashMap<LocalId, Ragged> = HashMap::new();
    loop {
        let mut found = Vec::new();
        walk(&k.stmts, &mut |s| defined(&Edges { k, all: &all }, s, &mut found));
        let mut changed = false;
        for (l, r) in found {
            let old = all.entry(l).or_default();
            changed |= old.or(r) != *old;
            *old = old.or(r);
        }
        if !changed {
            return all;
        }
    }
}

/// What a statement gives the tiles that it defines.
fn defined(edges: &Edges, s: &Stmt, out: &mut Vec<(LocalId, Ragged)>) {
    match &s.kind {
        StmtKind::Let { local, value } | StmtKind::Assign { local, value } => {
            out.push((*local, edges.of(*value)));
        }
        StmtKind::Op { results, op } => match op {
            Op::Read { from, pad: None } => {
                out.extend(results.iter().map(|&r| (r, edges.region(from))));
            }
            Op::Reduce { inputs, axis: Some(axis), .. } => {
                let all = edges.joint(inputs);
                let low = (1u8 << axis) - 1;
                let kept = all.map(|b| b & low | b >> 1 & !low);
                out.extend(results.iter().map(|&r| (r, kept)));
            }
            Op::Scan { inputs, .. } => {
                let all = edges.joint(inputs);
                out.extend(results.iter().map(|&r| (r, all)));
            }
            Op::Gemm { a, b, into, init: Init::Overwrite | Init::When(_), .. } => {
                let (a, b) = (edges.of(*a), edges.of(*b));
                out.push((*into, Ragged { lo: a.lo & 1 | b.lo & 2, hi: a.hi & 1 | b.hi & 2 }));
            }
            _ => {}
        },
        _ => {}
    }
}

struct Edges<'k> {
    k: &'k Kernel,
    all: &'k HashMap<LocalId, Ragged>,
}

impl Edges<'_> {
    fn joint(&self, list: &[ExprId]) -> Ragged {
        list.iter().fold(Ragged::default(), |r, &e| r.or(self.of(e)))
    }

    fn of(&self, e: ExprId) -> Ragged {
        let body = &self.k.body;
        let shape = body.types[e.index()].shape();
        if shape.is_empty() {
            return Ragged::default();
        }
        match &body.exprs[e] {
            Expr::Local(l) => self.all.get(l).copied().unwrap_or_default(),
            Expr::Transpose(a) => {
                let n = shape.len();
                let swap = move |b: u8| {
                    let (x, y) = (b >> (n - 2) & 1, b >> (n - 1) & 1);
                    b & !(3 << (n - 2)) | y << (n - 2) | x << (n - 1)
                };
                self.of(*a).map(swap)
            }
            Expr::InsertAxis { value, axis } => {
                let low = (1u8 << axis) - 1;
                self.of(*value).map(|b| b & low | (b & !low) << 1)
            }
            Expr::Slice { value, axes } => {
                let inner = self.of(*value);
                let dropped = axes.iter().any(|a| matches!(a, SliceAxis::At(_)));
                let kept: Vec<usize> =
                    (0..axes.len()).filter(|&i| matches!(axes[i], SliceAxis::Span { .. })).collect();
                let pick = |b: u8| {
                    let any = b != 0 && dropped;
                    let bit = |(n, &i): (usize, &usize)| (u8::from(any) | b >> i & 1) << n;
                    kept.iter().enumerate().map(bit).fold(0, |a, b| a | b)
                };
                Ragged { lo: pick(inner.lo), hi: pick(inner.hi) | if dropped { pick(inner.lo) } else { 0 } }
            }
            Expr::Splat { .. } | Expr::Iota { .. } | Expr::Reshape { .. } | Expr::Pick { .. } => {
                Ragged::default()
            }
            Expr::Bits { value, .. } if body.types[value.index()].shape() != shape => Ragged::default(),
            other => {
                let mut all = Ragged::default();
                other.operands(|o| all = all.or(self.of(o)));
                all
            }
        }
    }

    fn region(&self, region: &Region) -> Ragged {
        let (mut out, mut bit, mut at) = (Ragged::default(), 0u8, 0);
        for axis in &region.axes {
            match axis {
                RegionAxis::At(_) => at += 1,
                RegionAxis::New => bit += 1,
                RegionAxis::Gather { index, .. } => {
                    let inner = self.of(*index);
                    out.lo |= (inner.lo & 1) << bit;
                    out.hi |= (inner.hi & 1) << bit;
                    at += 1;
                    bit += 1;
                }
                RegionAxis::Span { start, len, limit, clip_low } => {
                    out.lo |= u8::from(*clip_low) << bit;
                    out.hi |=
                        u8::from(*clip_low || limit.is_some() || !fits(self.k, region.mem, at, *start, *len))
                            << bit;
                    at += 1;
                    bit += 1;
                }
            }
        }
        out
    }
}

/// `start +: len` is inside the memory's axis for certain. Memory of a fixed shape is inside or a fault.
fn fits(k: &Kernel, mem: Mem, axis: usize, start: ExprId, len: u32) -> bool {
    let Mem::Tensor(a) = mem else { return true };
    let ArgKind::Tensor(t) = &k.args[a].kind else { return true };
    let dim = t.dims.get(axis).and_then(|&d| constant(&k.body, d));
    matches!((constant(&k.body, start), dim), (Some(s), Some(d)) if u64::from(s) + u64::from(len) <= u64::from(d))
}

impl Lower<'_, '_> {
    pub fn full(&self, rank: usize) -> Vec<Bound> {
        vec![Bound::default(); rank]
    }

    fn larger(&mut self, a: Option<ExprId>, b: Option<ExprId>) -> Result<Option<ExprId>> {
        self.tighter(MathFn::Max, a, b)
    }

    fn smaller(&mut self, a: Option<ExprId>, b: Option<ExprId>) -> Result<Option<ExprId>> {
        self.tighter(MathFn::Min, a, b)
    }

    fn tighter(&mut self, f: MathFn, a: Option<ExprId>, b: Option<ExprId>) -> Result<Option<ExprId>> {
        Ok(match (a, b) {
            (Some(a), Some(b)) if !self.alike(a, b) => Some(self.math(f, &[a, b])?),
            (a, b) => a.or(b),
        })
    }

    pub fn intersect(&mut self, a: &[Bound], b: &[Bound]) -> Result<Vec<Bound>> {
        let mut out = Vec::new();
        for (a, b) in a.iter().zip(b) {
            out.push(Bound { lo: self.larger(a.lo, b.lo)?, hi: self.smaller(a.hi, b.hi)? });
        }
        Ok(out)
    }

    /// A box seen through stretching of axes of one element: full where that element is valid.
    pub fn stretch(&mut self, bounds: &[Bound], from: &[u32], to: &[u32]) -> Result<Vec<Bound>> {
        let mut out = Vec::new();
        for ((b, &f), &t) in bounds.iter().zip(from).zip(to) {
            if f == t || b.is_full() {
                out.push(*b);
                continue;
            }
            let (zero, n) = (self.int(0)?, self.int(t.into())?);
            let (lo, hi) = (
                b.lo.unwrap_or(zero),
                match b.hi {
                    Some(h) => h,
                    None => self.int(1)?,
                },
            );
            let some = self.bin(BinOp::Lt, lo, hi)?;
            out.push(Bound {
                lo: None,
                hi: Some(self.expr(Expr::Select { cond: some, then: n, other: zero })?),
            });
        }
        Ok(out)
    }

    /// The box of several tiles that one op takes together, in their joint shape.
    pub fn joint_box(&mut self, list: &[ExprId], shape: &[u32]) -> Result<Vec<Bound>> {
        let mut all = self.full(shape.len());
        for &e in list {
            let from = self.shape(e);
            if from.len() == shape.len() {
                let inner = self.box_of(e)?;
                let inner = self.stretch(&inner, &from, shape)?;
                all = self.intersect(&all, &inner)?;
            }
        }
        Ok(all)
    }

    pub fn box_of(&mut self, e: ExprId) -> Result<Vec<Bound>> {
        let shape = self.shape(e);
        let expr = self.k.kernel().body.exprs[e].clone();
        match &expr {
            Expr::Local(l) => Ok(self.boxes.get(l).cloned().unwrap_or_else(|| self.full(shape.len()))),
            Expr::Transpose(a) => {
                let mut b = self.box_of(*a)?;
                let n = b.len();
                b.swap(n - 1, n - 2);
                Ok(b)
            }
            Expr::InsertAxis { value, axis } => {
                let mut b = self.box_of(*value)?;
                b.insert(usize::from(*axis), Bound::default());
                Ok(b)
            }
            Expr::Slice { value, axes } => self.slice_box(*value, axes),
            Expr::Splat { .. } | Expr::Iota { .. } | Expr::Reshape { .. } | Expr::Pick { .. } => {
                Ok(self.full(shape.len()))
            }
            Expr::Bits { value, .. } if self.shape(*value) != shape => Ok(self.full(shape.len())),
            other => {
                let mut parts = Vec::new();
                other.operands(|o| parts.push(o));
                self.joint_box(&parts, &shape)
            }
        }
    }

    fn slice_box(&mut self, value: ExprId, axes: &[SliceAxis]) -> Result<Vec<Bound>> {
        let inner = self.box_of(value)?;
        let whole = self.shape(value);
        let (mut out, mut alive) = (Vec::new(), None);
        for ((b, axis), &n) in inner.iter().zip(axes).zip(&whole) {
            match axis {
                SliceAxis::At(i) => {
                    let i = self.subscript(*i)?;
                    let inside = self.inside(*b, i)?;
                    alive = self.both(alive, inside)?;
                }
                SliceAxis::Span { start, len } => {
                    let start = self.subscript(*start)?;
                    let (zero, most) = (self.int(0)?, self.int((*len).into())?);
                    if b.is_full() || (*len == n && self.known(start) == Some(0)) {
                        out.push(*b);
                        continue;
                    }
                    let clamp = |s: &mut Self, edge: Option<ExprId>| -> Result<Option<ExprId>> {
                        let Some(edge) = edge else { return Ok(None) };
                        let moved = s.sub(edge, start)?;
                        let low = s.math(MathFn::Max, &[moved, zero])?;
                        Ok(Some(s.math(MathFn::Min, &[low, most])?))
                    };
                    out.push(Bound { lo: clamp(self, b.lo)?, hi: clamp(self, b.hi)? });
                }
            }
        }
        if let Some(alive) = alive {
            for (b, axis) in out.iter_mut().zip(axes.iter().filter(|a| matches!(a, SliceAxis::Span { .. }))) {
                let SliceAxis::Span { len, .. } = axis else { continue };
                let zero = self.int(0)?;
                let hi = match b.hi {
                    Some(h) => h,
                    None => self.int((*len).into())?,
                };
                b.hi = Some(self.expr(Expr::Select { cond: alive, then: hi, other: zero })?);
            }
        }
        Ok(out)
    }

    /// Whether a position is valid along one axis; `None` where it always is.
    pub fn inside(&mut self, b: Bound, at: ExprId) -> Result<Option<ExprId>> {
        let low = match b.lo {
            Some(lo) => Some(self.bin(BinOp::Ge, at, lo)?),
            None => None,
        };
        let high = match b.hi {
            Some(hi) => Some(self.bin(BinOp::Lt, at, hi)?),
            None => None,
        };
        self.both(low, high)
    }

    /// Whether an element is valid; `None` where it always is.
    pub fn valid(&mut self, bounds: &[Bound], at: &[Coord]) -> Result<Option<ExprId>> {
        let mut all = None;
        for (b, c) in bounds.iter().zip(at) {
            let one = self.inside(*b, c.value)?;
            all = self.both(all, one)?;
        }
        Ok(all)
    }

    /// The box of a tile that comes to life or is replaced. Names are given to its edges; a variable's edges that may
    /// be inside are variables too.
    pub fn set_box(&mut self, l: LocalId, bounds: Vec<Bound>) -> Result<()> {
        let local = &self.k.kernel().body.locals[l];
        let (name, variable) = (local.name.clone(), local.kind == LocalKind::Var);
        let shape: Shape = local.ty.shape().into();
        let edges = self.ragged.get(&l).copied().unwrap_or_default();
        let old = self.boxes.get(&l).cloned();
        let mut out = Vec::new();
        for (i, b) in bounds.into_iter().enumerate() {
            let known = old.as_ref().map(|o| o[i]);
            let lo = self.edge(
                &format!("{name}_lo{i}"),
                b.lo,
                edges.lo >> i & 1 == 1 && variable,
                0,
                known.and_then(|k| k.lo),
            )?;
            let hi = self.edge(
                &format!("{name}_n{i}"),
                b.hi,
                edges.hi >> i & 1 == 1 && variable,
                shape[i],
                known.and_then(|k| k.hi),
            )?;
            out.push(Bound { lo, hi });
        }
        self.boxes.insert(l, out);
        Ok(())
    }

    fn edge(
        &mut self,
        name: &str,
        value: Option<ExprId>,
        variable: bool,
        whole: u32,
        old: Option<ExprId>,
    ) -> Result<Option<ExprId>> {
        if !variable {
            return match value {
                Some(v) => self.bind(name, v).map(Some),
                None => Ok(None),
            };
        }
        let value = match value {
            Some(v) => v,
            None => self.int(whole.into())?,
        };
        let known = old.map(|o| self.k.kernel().body.exprs[o].clone());
        if let Some(Expr::Local(local)) = known {
            if old == Some(value) || self.k.kernel().body.exprs[value] == Expr::Local(local) {
                return Ok(old);
            }
            self.emit(StmtKind::Assign { local, value })?;
            return Ok(old);
        }
        let local = self.var(name, value)?;
        self.get(local).map(Some)
    }
}
