//! Element-wise tile statements as vector loops over the valid box.
//!
//! A loop covers whole vectors: rows are padded in scratch, so what lies beside the box may be computed too; it is
//! never read as valid. Only updates in place and writes to the user's memory need masks.

use super::bounds::Bound;
use super::emit::Int;
use super::error::Result;
use super::expr::Ix;
use super::frame::{Frame, TileMem};
use super::value::Val;
use inkwell::values::VectorValue;
use pantile_ir::arena::Arena;
use pantile_ir::program::{Elem, Expr, ExprId, LocalId, Update};

/// One step of a loop over a box: the position and how many lanes it covers.
pub struct Step<'s, 'c> {
    pub pos: &'s [Ix<'c>],
    pub lanes: u32,
    /// The box along the last axis.
    pub last: Bound<'c>,
}

impl<'a, 'c> Frame<'a, 'c> {
    /// Runs `body` over the box in row-major order, vectors along the last axis.
    pub fn each_vector(
        &self,
        shape: &[u32],
        bounds: &[Bound<'c>],
        body: &mut dyn FnMut(Step<'_, 'c>) -> Result<()>,
    ) -> Result<()> {
        let lanes = if shape.last().is_some_and(|&n| n > 1) { self.machine.lanes } else { 1 };
        self.each(bounds, lanes, &mut Vec::new(), body)
    }

    /// Runs `body` for each element of the box.
    pub fn each_element(
        &self,
        bounds: &[Bound<'c>],
        body: &mut dyn FnMut(Step<'_, 'c>) -> Result<()>,
    ) -> Result<()> {
        self.each(bounds, 1, &mut Vec::new(), body)
    }

    fn each(
        &self,
        bounds: &[Bound<'c>],
        lanes: u32,
        pos: &mut Vec<Ix<'c>>,
        body: &mut dyn FnMut(Step<'_, 'c>) -> Result<()>,
    ) -> Result<()> {
        let axis = pos.len();
        let Some(b) = bounds.get(axis) else {
            let zero = self.e.int(0);
            return body(Step { pos, lanes: 1, last: Bound { lo: zero, hi: zero } });
        };
        let inner = axis + 1 == bounds.len();
        let step = if inner { lanes } else { 1 };
        let lo = if inner { self.align_down(b.lo, lanes) } else { b.lo };
        let mut result = Ok(());
        self.e.for_(lo, b.hi, self.e.int(step as i64), |i| {
            pos.push(Ix { base: i, lanes: inner && lanes > 1 });
            result =
                if inner { body(Step { pos, lanes, last: *b }) } else { self.each(bounds, lanes, pos, body) };
            pos.pop();
        });
        result
    }

    fn align_down(&self, lo: Int<'c>, lanes: u32) -> Int<'c> {
        if lanes == 1 || self.e.known(lo) == Some(0) {
            return lo;
        }
        self.e.and(lo, self.e.int(-(lanes as i64)))
    }

    /// Lanes of a step that lie in the box; `None` for a single element, which always does.
    pub fn step_mask(&self, step: &Step<'_, 'c>) -> Option<VectorValue<'c>> {
        if step.lanes == 1 {
            return None;
        }
        let at = step.pos.last()?.base;
        let below = self.e.lane_mask(self.e.sub(step.last.hi, at), step.lanes);
        if self.e.known(step.last.lo) == Some(0) {
            return Some(below);
        }
        let skipped = self.e.lane_mask(self.e.sub(step.last.lo, at), step.lanes);
        let kept = self.e.b.build_not(skipped, "").unwrap();
        Some(self.e.b.build_and(below, kept, "").unwrap())
    }

    /// Evaluates a tile expression into memory, over a box of it.
    pub fn fill_tile(&self, mem: &TileMem<'c>, value: ExprId, bounds: &[Bound<'c>]) -> Result<()> {
        self.each_vector(&mem.shape, bounds, &mut |step| {
            let v = self.eval(value, step.pos, step.lanes)?;
            let v = self.e.widen(v, step.lanes);
            self.e.store_val(self.tile_address(mem, step.pos), v);
            Ok(())
        })
    }

    /// The memory that holds a tile expression: a local's own, or a temporary.
    pub fn materialize(&self, value: ExprId) -> Result<(TileMem<'c>, Vec<Bound<'c>>)> {
        let body = &self.kernel.body;
        if let Expr::Local(id) = body.exprs[value]
            && let Some((mem, bounds)) = self.tile_place(id)
        {
            return Ok((mem, self.load_box(&bounds)));
        }
        let ty = body.type_of(value);
        let bounds = self.box_of(value)?;
        let mem = self.new_tile(ty.elem().unwrap_or(Elem::Index), ty.shape());
        self.fill_tile(&mem, value, &bounds)?;
        Ok((mem, bounds))
    }

    /// `let x = e`, `x = e`
    pub fn assign(&self, local: LocalId, value: ExprId) -> Result<()> {
        let Some((mem, box_mem)) = self.tile_place(local) else {
            let v = self.scalar(value)?;
            self.set_scalar(local, v);
            return Ok(());
        };
        let bounds = self.box_of(value)?;
        if self.reads_moved(value, local) {
            let temp = self.new_tile(mem.elem, &mem.shape);
            self.fill_tile(&temp, value, &bounds)?;
            self.copy_tile(&temp, &mem, &bounds)?;
        } else {
            self.fill_tile(&mem, value, &bounds)?;
        }
        self.store_box(&box_mem, &bounds);
        Ok(())
    }

    pub fn copy_tile(&self, from: &TileMem<'c>, to: &TileMem<'c>, bounds: &[Bound<'c>]) -> Result<()> {
        self.each_vector(&to.shape, bounds, &mut |step| {
            let v = self.load_tile(from, step.pos, step.lanes);
            self.e.store_val(self.tile_address(to, step.pos), v);
            Ok(())
        })
    }

    /// Whether the expression reads `local` at other positions than the one it is evaluated for.
    fn reads_moved(&self, value: ExprId, local: LocalId) -> bool {
        let exprs = &self.kernel.body.exprs;
        let mut moved = false;
        for_each_expr(exprs, value, &mut |id| {
            let re_indexes = matches!(
                exprs[id],
                Expr::Transpose(_)
                    | Expr::InsertAxis { .. }
                    | Expr::Slice { .. }
                    | Expr::Broadcast { .. }
                    | Expr::Reshape { .. }
                    | Expr::Pick { .. }
                    | Expr::Bits { .. }
            );
            // a unit axis that is stretched reads one element many times, while the loop overwrites it
            let stretched = matches!(exprs[id], Expr::Local(l) if l == local)
                && self.kernel.body.type_of(id).shape() != self.kernel.body.type_of(value).shape();
            moved |= stretched;
            if re_indexes {
                for_each_expr(exprs, id, &mut |inner| {
                    moved |= matches!(exprs[inner], Expr::Local(l) if l == local);
                });
            }
        });
        moved
    }

    /// `x op= e`: only where `e` is valid; `x` keeps its box.
    pub fn update(&self, local: LocalId, op: Update, value: ExprId) -> Result<()> {
        let Some((mem, box_mem)) = self.tile_place(local) else {
            let (old, new) = (self.get_scalar(local), self.scalar(value)?);
            let v = self.e.binary(op.binary(), old, new, self.contract);
            self.set_scalar(local, v);
            return Ok(());
        };
        let own = self.load_box(&box_mem);
        let shape = self.kernel.body.type_of(value).shape().to_vec();
        let bounds = if shape.is_empty() {
            own
        } else {
            let inner = self.box_of(value)?;
            self.intersect(&own, &self.stretch(&inner, &shape, &mem.shape))
        };
        let source = if self.reads_moved(value, local) { Some(self.materialize(value)?.0) } else { None };
        self.each_vector(&mem.shape, &bounds, &mut |step| {
            let at = self.tile_address(&mem, step.pos);
            let old = self.e.load_val(at, mem.elem, step.lanes);
            let inner = self.stretch_pos(step.pos, &shape, &mem.shape);
            let new = match &source {
                Some(temp) => self.load_tile(temp, &inner, step.lanes),
                None => self.eval(value, &inner, step.lanes)?,
            };
            let v = self.e.binary(op.binary(), old, new, self.contract);
            match self.step_mask(&step) {
                Some(mask) => {
                    let kept =
                        self.e.choose(Val { v: mask.into(), elem: Elem::BOOL, lanes: step.lanes }, v, old);
                    self.e.store_val(at, kept);
                }
                None => self.e.store_val(at, v),
            }
            Ok(())
        })
    }

    /// Positions in a smaller tile whose unit axes are stretched; empty for a scalar.
    pub fn stretch_pos(&self, pos: &[Ix<'c>], from: &[u32], to: &[u32]) -> Vec<Ix<'c>> {
        let one = |((p, &f), &t): ((&Ix<'c>, &u32), &u32)| {
            if f == 1 && t != 1 { Ix::at(self.e.int(0)) } else { *p }
        };
        if from.is_empty() { Vec::new() } else { pos.iter().zip(from).zip(to).map(one).collect() }
    }
}

/// Visits an expression and everything below it.
pub fn for_each_expr(exprs: &Arena<Expr>, root: ExprId, f: &mut dyn FnMut(ExprId)) {
    f(root);
    exprs[root].operands(|c| for_each_expr(exprs, c, f));
}
