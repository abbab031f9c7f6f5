//! Regions: read into tiles, written from tiles, updated by atomics.

use super::Lower;
use super::bounds::Bound;
use super::nest::{Coord, Inner};
use super::store::Storage;
use crate::layout::classes::{contiguous_axis, region_shape};
use crate::layout::digits::AxisLayout;
use pantile_ir::builder::{Exprs, Result};
use pantile_ir::program::*;
use std::rc::Rc;

/// How one axis of the memory follows the position in the tile.
#[derive(Clone, Debug)]
enum Along {
    Fixed(ExprId),
    Span { start: ExprId, tile: usize },
    Gather { index: ExprId, tile: usize },
}

/// A region ready for addressing.
#[derive(Clone, Debug)]
pub struct Window {
    pub mem: Mem,
    axes: Vec<Along>,
    pub shape: Vec<u32>,
    /// The valid box.
    pub bounds: Vec<Bound>,
    /// Axes whose box is more than the memory's own edge at the high end: `or` does not express it.
    clipped: Vec<bool>,
    fast: Option<usize>,
}

impl Window {
    /// `or` on the element says all about what is valid.
    fn plain(&self) -> bool {
        self.clipped.iter().all(|c| !c)
    }
}

impl Lower<'_, '_> {
    pub fn window(&mut self, region: &Region) -> Result<Window> {
        let dims: Vec<Option<ExprId>> = match region.mem {
            Mem::Tensor(a) => match &self.k.kernel().args[a].kind {
                ArgKind::Tensor(t) => t.dims.iter().map(|&d| Some(d)).collect(),
                ArgKind::Scalar(_) => Vec::new(),
            },
            Mem::Buffer(_) => vec![None; region.axes.len()],
            Mem::Slot { .. } => {
                return self.refuse(
                    "ring slots have no code for this target yet",
                    "use `pipelined` loops, or run it with `--target cpu`",
                );
            }
        };
        let fast = contiguous_axis(self.k.kernel(), region);
        let mut w = Window {
            mem: region.mem,
            axes: Vec::new(),
            shape: region_shape(region),
            bounds: Vec::new(),
            clipped: Vec::new(),
            fast,
        };
        for axis in &region.axes {
            let dim = dims.get(w.axes.len()).copied().flatten();
            let tile = w.bounds.len();
            match axis {
                RegionAxis::New => {
                    w.bounds.push(Bound::default());
                    w.clipped.push(false);
                }
                RegionAxis::At(i) => {
                    let i = self.subscript(*i)?;
                    w.axes.push(Along::Fixed(i));
                }
                RegionAxis::Span { start, len, limit, clip_low } => {
                    let start = self.subscript(*start)?;
                    let limit = match limit {
                        Some(l) => Some(self.subscript(*l)?),
                        None => None,
                    };
                    let b = self.clip(start, *len, limit, *clip_low, dim)?;
                    w.axes.push(Along::Span { start, tile });
                    w.bounds.push(b);
                    w.clipped.push(limit.is_some() || *clip_low);
                }
                RegionAxis::Gather { index, .. } => {
                    let b = self.box_of(*index)?;
                    w.clipped.push(!b[0].is_full());
                    w.bounds.push(b[0]);
                    w.axes.push(Along::Gather { index: *index, tile });
                }
            }
        }
        Ok(w)
    }

    /// Valid part of `start +: len limit m`.
    fn clip(
        &mut self,
        start: ExprId,
        len: u32,
        limit: Option<ExprId>,
        clip_low: bool,
        dim: Option<ExprId>,
    ) -> Result<Bound> {
        let (zero, n) = (self.int(0)?, self.int(len.into())?);
        let lo = match clip_low {
            true => {
                let before = self.sub(zero, start)?;
                let low = self.math(MathFn::Max, &[before, zero])?;
                Some(self.math(MathFn::Min, &[low, n])?)
            }
            false => None,
        };
        let mut hi = None;
        if let Some(dim) = dim {
            let inside = matches!((self.known(start), self.known(dim)), (Some(s), Some(d)) if s >= 0 && s + i64::from(len) <= d);
            if !inside {
                let rest = self.sub(dim, start)?;
                hi = Some(self.math(MathFn::Min, &[n, rest])?);
            }
        }
        if let Some(m) = limit {
            hi = Some(self.math(MathFn::Min, &[hi.unwrap_or(n), m])?);
        }
        if let Some(h) = hi {
            hi = Some(self.math(MathFn::Max, &[h, lo.unwrap_or(zero)])?);
        }
        Ok(Bound { lo, hi })
    }

    /// Indices of the memory at a position.
    fn index(&mut self, w: &Window, at: &[Coord]) -> Result<Args> {
        let mut out = Args::new();
        for axis in &w.axes {
            out.push(match *axis {
                Along::Fixed(i) => i,
                Along::Span { start, tile } => self.add(start, at[tile].value)?,
                Along::Gather { index, tile } => {
                    let i = self.eval(index, std::slice::from_ref(&at[tile]))?;
                    self.converted(i, Elem::Index)?
                }
            });
        }
        Ok(out)
    }

    /// The element of the memory at a position, `fill` where it is not valid.
    pub fn fetch(&mut self, w: &Window, at: &[Coord], fill: ExprId) -> Result<ExprId> {
        let index = self.index(w, at)?;
        let always = w.bounds.iter().all(|b| b.is_full());
        let own_edge = w.plain() && !always;
        let value = self.expr(Expr::Element { mem: w.mem, index, or: (!always).then_some(fill) })?;
        if always || own_edge {
            return Ok(value);
        }
        match self.valid(&w.bounds, at)? {
            Some(cond) => self.expr(Expr::Select { cond, then: value, other: fill }),
            None => Ok(value),
        }
    }

    /// `let r = region pad v`
    pub fn read(&mut self, r: LocalId, from: &Region, pad: Option<ExprId>) -> Result<()> {
        let w = self.window(from)?;
        let ty = self.k.kernel().body.locals[r].ty.clone();
        let elem = ty.elem().unwrap_or(Elem::Index);
        let fill = match pad {
            Some(p) => self.scalar(p)?,
            None => self.k.constant_at(elem, 0, self.span)?,
        };
        if !ty.is_tile() {
            let value = self.fetch(&w, &[], fill)?;
            return self.emit(StmtKind::Let { local: r, value });
        }
        if matches!(self.k.kernel().body.exprs[fill], Expr::Const { bits: 0, .. }) {
            self.zeroed.insert(r);
        }
        let bounds = if pad.is_some() { self.full(w.shape.len()) } else { w.bounds.clone() };
        if self.assign.direct.contains(&r) {
            let axes = self.assign.locals.get(&r).cloned().unwrap_or_default();
            let mut w = w;
            // its place is that of now, whatever becomes of the names in it
            for axis in &mut w.axes {
                if let Along::Fixed(e) | Along::Span { start: e, .. } = axis {
                    *e = self.bind("at", *e)?;
                }
            }
            self.store.insert(r, Storage::Direct { window: Rc::new(w), fill, axes });
            return self.set_box(r, bounds);
        }
        let storage = self.storage(r)?;
        let inner = w.fast.map_or(Inner::Unroll, Inner::Vector);
        match &storage {
            Storage::Shared { .. } => {
                // through registers, so that both sides can be wide
                let axes = storage.axes().to_vec();
                let name = format!("{}_in", self.k.kernel().body.locals[r].name);
                let temp = self.new_storage(&name, elem, axes.clone(), false)?;
                self.nest(&axes, inner, &mut |s, at| {
                    let v = s.fetch(&w, at, fill)?;
                    s.put(&temp, at, v)
                })?;
                let fast = Inner::Vector(axes.len() - 1);
                self.nest(&axes, fast, &mut |s, at| {
                    let v = s.load(&temp, elem, at)?;
                    s.put(&storage, at, v)
                })?;
            }
            _ => {
                let axes = storage.axes().to_vec();
                self.nest(&axes, inner, &mut |s, at| {
                    let v = s.fetch(&w, at, fill)?;
                    s.put(&storage, at, v)
                })?;
            }
        }
        self.set_box(r, bounds)
    }

    /// `region = value`
    pub fn write(&mut self, to: &Region, value: ExprId) -> Result<()> {
        let w = self.window(to)?;
        if w.shape.is_empty() {
            let index = self.index(&w, &[])?;
            let value = self.scalar(value)?;
            let one = self.once()?;
            return self.when(one, |s| s.emit(StmtKind::Store { mem: w.mem, index, value }));
        }
        let axes = self.own_axes(0, &w.shape);
        let bounds = self.target_box(&w, value)?;
        let vector = w.fast.map_or(1, |f| axes[f].vector());
        let shared = matches!(w.mem, Mem::Buffer(b) if self.k.kernel().buffers[b].home == Home::Shared);
        let one = self.canonical(&axes)?;
        if vector == 1 && !shared {
            return self.nest(&axes, Inner::Unroll, &mut |s, at| {
                let ok = s.valid(&bounds, at)?;
                let ok = s.both(one, ok)?;
                s.when(ok, |s| {
                    let v = s.eval(value, at)?;
                    let index = s.index(&w, at)?;
                    s.emit(StmtKind::Store { mem: w.mem, index, value: v })
                })
            });
        }
        // values first: the stores that follow are nothing but accesses; and what is written may be what was read
        let elem = self.ty(value).elem().unwrap_or(Elem::Index);
        let temp = self.new_storage("out", elem, axes.clone(), false)?;
        self.nest(&axes, Inner::Unroll, &mut |s, at| s.put_value(&temp, at, value, &bounds, false))?;
        let inner = w.fast.map_or(Inner::Unroll, Inner::Vector);
        self.when(one, |s| {
            s.nest(&axes, inner, &mut |s, at| {
                let ok = s.valid(&bounds, at)?;
                s.when(ok, |s| {
                    let v = s.load(&temp, elem, at)?;
                    let index = s.index(&w, at)?;
                    s.emit(StmtKind::Store { mem: w.mem, index, value: v })
                })
            })
        })
    }

    fn target_box(&mut self, w: &Window, value: ExprId) -> Result<Vec<Bound>> {
        let inner = self.joint_box(&[value], &w.shape)?;
        let all = self.intersect(&w.bounds, &inner)?;
        self.named_box("n", all)
    }

    /// The same box with names for its edges.
    pub fn named_box(&mut self, name: &str, bounds: Vec<Bound>) -> Result<Vec<Bound>> {
        let mut out = Vec::new();
        for (i, b) in bounds.into_iter().enumerate() {
            let lo = match b.lo {
                Some(e) => Some(self.bind(&format!("{name}_lo{i}"), e)?),
                None => None,
            };
            let hi = match b.hi {
                Some(e) => Some(self.bind(&format!("{name}{i}"), e)?),
                None => None,
            };
            out.push(Bound { lo, hi });
        }
        Ok(out)
    }

    /// The layout of the statement's own loop.
    pub fn own_axes(&self, n: usize, shape: &[u32]) -> Vec<AxisLayout> {
        let found = self.assign.stmts.get(&self.stmt).and_then(|list| list.get(n));
        found.cloned().unwrap_or_else(|| shape.iter().map(|&n| AxisLayout::whole(n)).collect())
    }

    /// The condition under which a statement of the block runs once.
    pub fn once(&mut self) -> Result<Option<ExprId>> {
        if self.named || self.parallel { Ok(None) } else { self.first() }
    }

    /// An atomic on each valid element of a region.
    pub fn atomic_region(
        &mut self,
        results: &[LocalId],
        op: AtomicOp,
        to: &Region,
        value: ExprId,
        expected: Option<ExprId>,
    ) -> Result<()> {
        let w = self.window(to)?;
        let axes = self.own_axes(0, &w.shape);
        let bounds = self.target_box(&w, value)?;
        let one = self.canonical(&axes)?;
        let result = match results.first() {
            Some(&r) => Some((r, self.storage(r)?)),
            None => None,
        };
        self.nest(&axes, Inner::Unroll, &mut |s, at| {
            let ok = s.valid(&bounds, at)?;
            let ok = s.both(one, ok)?;
            s.when(ok, |s| {
                let v = s.eval(value, at)?;
                let expected = match expected {
                    Some(e) => Some(s.eval(e, at)?),
                    None => None,
                };
                let index = s.index(&w, at)?;
                let at_place = Place::Element { mem: w.mem, index };
                let names: &[&str] = if result.is_some() { &["before"] } else { &[] };
                let op = Op::Atomic { op, at: at_place, value: v, expected };
                let got = s.k.op(op, names, s.span)?;
                if let (Some((_, storage)), Some(&got)) = (&result, got.first()) {
                    let v = s.get(got)?;
                    s.put(storage, at, v)?;
                }
                Ok(())
            })
        })?;
        match result {
            Some((r, _)) => self.set_box(r, bounds),
            None => Ok(()),
        }
    }
}
