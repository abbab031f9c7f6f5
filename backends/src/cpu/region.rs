//! Memory: single elements, and regions read or written as tiles.

use super::bounds::Bound;
use super::emit::{Int, Ptr};
use super::error::{CpuError, Result};
use super::expr::Ix;
use super::frame::{Frame, TensorRef, TileMem, per_unit};
use super::tile::Step;
use super::value::{Val, scratch_bytes};
use inkwell::{AtomicOrdering, AtomicRMWBinOp};
use pantile_ir::program::{BufferId, Elem, Expr, ExprId, Home, LocalId, Mem, PackOrder, Region, RegionAxis};

/// How one axis of the memory follows the tile's position.
enum Axis<'c> {
    Fixed(Int<'c>),
    /// memory index = start + position along tile axis `tile`
    Along {
        start: Int<'c>,
        tile: usize,
    },
    /// memory index = the index tile's element at the position along tile axis `tile`
    Gather {
        index: TileMem<'c>,
        tile: usize,
    },
}

/// Takes the memory index and the tile position of one element.
type EachElement<'f, 'c> = dyn FnMut(&[Int<'c>], &[Ix<'c>]) -> Result<()> + 'f;

/// A region ready for addressing: one entry for each memory axis, and the tile's valid box.
struct Window<'c> {
    mem: Mem,
    axes: Vec<Axis<'c>>,
    shape: Vec<u32>,
    bounds: Vec<Bound<'c>>,
}

impl<'a, 'c> Frame<'a, 'c> {
    // ---- single elements

    /// Address of an element that is not packed.
    pub fn element_address(&self, mem: Mem, at: &[Int<'c>]) -> Result<(Ptr<'c>, Elem)> {
        match mem {
            Mem::Tensor(id) => {
                let t = &self.tensors[&id];
                let mut off = self.e.int(0);
                for (&i, &s) in at.iter().zip(&t.strides) {
                    off = self.e.add(off, self.e.mul(i, s));
                }
                Ok((self.scaled(t.ptr, off, t.elem), t.elem))
            }
            Mem::Buffer(id) => {
                let b = self.buffer(id);
                let mut off = self.e.int(0);
                for (&i, &n) in at.iter().zip(&b.shape) {
                    off = self.e.add(self.e.mul(off, self.e.int(n as i64)), i);
                }
                let elem = Elem::D(b.elem);
                Ok((self.scaled(self.buffer_base(id), off, elem), elem))
            }
            Mem::Slot { token, field } => Ok(self.slot_address(token, field, at)),
        }
    }

    pub fn scaled(&self, base: Ptr<'c>, elements: Int<'c>, elem: Elem) -> Ptr<'c> {
        self.e.offset(base, self.e.mul(elements, self.e.int(scratch_bytes(elem) as i64)))
    }

    /// The buffer's memory for the running thread (per-thread arrays) or block.
    pub fn buffer_base(&self, id: BufferId) -> Ptr<'c> {
        let b = self.buffer(id);
        let bytes =
            b.shape.iter().map(|&n| n as u64).product::<u64>() * scratch_bytes(Elem::D(b.elem)) as u64;
        let per_thread = b.home == Home::Thread;
        let threads = self.kernel.threads.as_ref().map_or(1, |t| t.count()) as u64;
        let stride = bytes.max(1).next_multiple_of(64);
        let known = self.buffers.borrow().get(&id).copied();
        let base = known.unwrap_or_else(|| {
            let base = self.reserve(if per_thread { stride * threads } else { bytes });
            self.buffers.borrow_mut().insert(id, base);
            base
        });
        match self.thread.get() {
            Some(t) if per_thread => self.e.offset(base, self.e.mul(t.linear, self.e.int(stride as i64))),
            _ => base,
        }
    }

    fn packed(&self, mem: Mem) -> Option<(&TensorRef<'c>, usize, PackOrder)> {
        match mem {
            Mem::Tensor(id) => {
                let t = &self.tensors[&id];
                t.packed.map(|(axis, order)| (t, axis, order))
            }
            _ => None,
        }
    }

    pub fn load_element(&self, mem: Mem, at: &[Int<'c>]) -> Result<Val<'c>> {
        if let Some((t, axis, order)) = self.packed(mem) {
            let (unit, shift) = self.packed_unit(t, axis, order, at);
            let ty = if order == PackOrder::Linear { self.e.ctx.i8_type() } else { self.e.ctx.i32_type() };
            let raw = self.e.load(ty, unit, ty.get_bit_width() / 8).into_int_value();
            let shift = self.narrow(shift, ty);
            let low = self.e.b.build_right_shift(raw, shift, false, "").unwrap();
            let byte = self.narrow(low, self.e.ctx.i8_type());
            return Ok(self.e.wrap(Val::scalar(byte, t.elem)));
        }
        let (p, elem) = self.element_address(mem, at)?;
        Ok(self.e.load_val(p, elem, 1))
    }

    fn narrow(&self, v: Int<'c>, ty: inkwell::types::IntType<'c>) -> Int<'c> {
        self.e.b.build_int_cast_sign_flag(v, ty, false, "").unwrap()
    }

    /// Address of the unit of storage that holds an element, and the bit at which it starts.
    fn packed_unit(
        &self,
        t: &TensorRef<'c>,
        axis: usize,
        order: PackOrder,
        at: &[Int<'c>],
    ) -> (Ptr<'c>, Int<'c>) {
        let e = self.e;
        let per = e.int(per_unit(order));
        let k = at[axis];
        let mut off = e.int(0);
        for (i, (&ix, &s)) in at.iter().zip(&t.strides).enumerate() {
            let ix = if i == axis { e.b.build_int_unsigned_div(ix, per, "").unwrap() } else { ix };
            off = e.add(off, e.mul(ix, s));
        }
        let within = e.b.build_int_unsigned_rem(k, per, "").unwrap();
        let place = match order {
            PackOrder::Linear | PackOrder::Gptq => within,
            PackOrder::Awq => {
                // 0 2 4 6 1 3 5 7 from the lowest: element i sits at i/2 + (i%2)·4
                let half = e.b.build_right_shift(within, e.int(1), false, "").unwrap();
                e.add(half, e.mul(e.and(within, e.int(1)), e.int(4)))
            }
        };
        let bytes = e.int(per_unit(order) / 2);
        (e.offset(t.ptr, e.mul(off, bytes)), e.mul(place, e.int(4)))
    }

    pub fn store_element(&self, mem: Mem, at: &[Int<'c>], v: Val<'c>) -> Result<()> {
        if let Some((t, axis, order)) = self.packed(mem) {
            let (unit, shift) = self.packed_unit(t, axis, order, at);
            self.store_nibble(unit, shift, order, v);
            return Ok(());
        }
        let (p, _) = self.element_address(mem, at)?;
        self.e.store_val(p, v);
        Ok(())
    }

    /// Neighbours in one unit may belong to another block: two atomic steps touch only the element's own bits.
    fn store_nibble(&self, unit: Ptr<'c>, shift: Int<'c>, order: PackOrder, v: Val<'c>) {
        let e = self.e;
        let ty = if order == PackOrder::Linear { e.ctx.i8_type() } else { e.ctx.i32_type() };
        let shift = self.narrow(shift, ty);
        let wide = self.narrow(e.and_low4(v.int()), ty);
        let bits = e.b.build_left_shift(wide, shift, "").unwrap();
        let mask = e.b.build_left_shift(ty.const_int(15, false), shift, "").unwrap();
        let keep = e.b.build_not(mask, "").unwrap();
        for (op, x) in [(AtomicRMWBinOp::And, keep), (AtomicRMWBinOp::Or, bits)] {
            e.b.build_atomicrmw(op, unit, x, AtomicOrdering::Monotonic).unwrap();
        }
    }

    // ---- regions

    fn window(&self, region: &Region) -> Result<Window<'c>> {
        let dims = self.mem_dims(region.mem);
        let mut w = Window { mem: region.mem, axes: Vec::new(), shape: Vec::new(), bounds: Vec::new() };
        let mut alive = self.e.bool(true);
        for axis in &region.axes {
            let dim = dims.get(w.axes.len()).copied();
            match axis {
                RegionAxis::New => {
                    w.shape.push(1);
                    w.bounds.push(Bound { lo: self.e.int(0), hi: self.e.int(1) });
                }
                RegionAxis::At(i) => {
                    let i = self.element_axis(region.mem, *i, dim)?;
                    if let Some(n) = dim {
                        alive = self.e.and(alive, self.e.cmp(inkwell::IntPredicate::ULT, i, n));
                    }
                    w.axes.push(Axis::Fixed(i));
                }
                RegionAxis::Span { start, len, limit, clip_low } => {
                    let start = self.span_start(region.mem, *start, *clip_low)?;
                    let b = self.clip(start, *len, *limit, *clip_low, dim)?;
                    w.axes.push(Axis::Along { start, tile: w.shape.len() });
                    w.shape.push(*len);
                    w.bounds.push(b);
                }
                RegionAxis::Gather { index, len } => {
                    let (mem, bounds) = self.materialize(*index)?;
                    if let Some(n) = dim {
                        self.gathered_rows(region.mem, &mem, bounds[0], n);
                    }
                    w.axes.push(Axis::Gather { index: mem, tile: w.shape.len() });
                    w.shape.push(*len);
                    w.bounds.push(bounds[0]);
                }
            }
        }
        // an index outside its axis leaves nothing valid; the interpreter reports it
        for b in &mut w.bounds {
            b.hi = self.e.select(alive, b.hi.into(), b.lo.into()).into_int_value();
        }
        Ok(w)
    }

    /// Valid part of `start +: len limit m` in an axis of `dim` elements.
    fn clip(
        &self,
        start: Int<'c>,
        len: u32,
        limit: Option<ExprId>,
        clip_low: bool,
        dim: Option<Int<'c>>,
    ) -> Result<Bound<'c>> {
        let e = self.e;
        let (zero, n) = (e.int(0), e.int(len as i64));
        let lo = if clip_low { e.min(e.max(e.sub(zero, start), zero), n) } else { zero };
        let mut hi = n;
        if let Some(dim) = dim {
            let fits = match (e.known(start), e.known(dim)) {
                (Some(s), Some(d)) => s >= 0 && s + len as i64 <= d,
                _ => false,
            };
            if !fits {
                hi = e.min(hi, e.sub(dim, start));
            }
        }
        if let Some(m) = limit {
            hi = e.min(hi, self.index_expr(m)?);
        }
        Ok(Bound { lo, hi: if e.known(hi).is_some() && !clip_low { hi } else { e.max(hi, lo) } })
    }

    /// Memory index of each axis at a position, lane 0, and the memory axis that lanes run along.
    fn window_index(&self, w: &Window<'c>, step: &Step<'_, 'c>) -> (Vec<Int<'c>>, Option<usize>) {
        let mut lanes = None;
        let mut at = Vec::with_capacity(w.axes.len());
        for (i, axis) in w.axes.iter().enumerate() {
            at.push(match axis {
                Axis::Fixed(x) => *x,
                Axis::Along { start, tile } => {
                    if step.pos[*tile].lanes {
                        lanes = Some(i);
                    }
                    self.e.add(*start, step.pos[*tile].base)
                }
                Axis::Gather { index, tile } => {
                    let v = self.load_tile(index, &[Ix::at(step.pos[*tile].base)], 1);
                    self.e.convert(v, Elem::Index, false).int()
                }
            });
        }
        (at, lanes)
    }

    /// Whether whole vectors along the last tile axis are neighbours in memory.
    fn unit_stride(&self, w: &Window<'c>) -> bool {
        let last = w.shape.len().wrapping_sub(1);
        let along = w.axes.iter().position(|a| matches!(a, Axis::Along { tile, .. } if *tile == last));
        let Some(axis) = along else { return false };
        if self.packed(w.mem).is_some() {
            return false;
        }
        match w.mem {
            Mem::Tensor(id) => self.e.known(self.tensors[&id].strides[axis]) == Some(1),
            Mem::Buffer(id) => axis + 1 == self.buffer(id).shape.len(),
            Mem::Slot { token, field } => axis + 1 == self.slot_field(token, field).shape.len(),
        }
    }

    /// `let t = A[…] pad v`
    pub fn read_region(&self, to: LocalId, from: &Region, pad: Option<ExprId>) -> Result<()> {
        let Some((mem, box_mem)) = self.tile_place(to) else {
            return Err(CpuError::Llvm("a region read needs a tile".into()));
        };
        let w = self.window(from)?;
        let bounds = self.read_window(&w, &mem, pad)?;
        self.store_box(&box_mem, &bounds);
        Ok(())
    }

    /// A region as a tile of its own.
    pub fn fetch(&self, from: &Region, pad: Option<ExprId>) -> Result<(TileMem<'c>, Vec<Bound<'c>>)> {
        let w = self.window(from)?;
        let mem = self.new_tile(self.mem_elem(from.mem), &w.shape);
        let bounds = self.read_window(&w, &mem, pad)?;
        Ok((mem, bounds))
    }

    fn mem_elem(&self, mem: Mem) -> Elem {
        match mem {
            Mem::Tensor(id) => self.tensors[&id].elem,
            Mem::Buffer(id) => Elem::D(self.buffer(id).elem),
            Mem::Slot { token, field } => self.slot_field(token, field).elem,
        }
    }

    fn read_window(&self, w: &Window<'c>, mem: &TileMem<'c>, pad: Option<ExprId>) -> Result<Vec<Bound<'c>>> {
        if let Some(pad) = pad {
            let v = self.scalar(pad)?;
            self.each_vector(&mem.shape, &self.full(&mem.shape), &mut |step| {
                self.e.store_val(self.tile_address(mem, step.pos), self.e.widen(v, step.lanes));
                Ok(())
            })?;
        }
        self.load_window(w, mem, pad.is_some())?;
        Ok(if pad.is_some() { self.full(&mem.shape) } else { w.bounds.clone() })
    }

    fn load_window(&self, w: &Window<'c>, mem: &TileMem<'c>, keep_rest: bool) -> Result<()> {
        let one = |step: &Step<'_, 'c>| -> Result<Val<'c>> {
            let (at, _) = self.window_index(w, step);
            self.load_element(w.mem, &at)
        };
        if !self.unit_stride(w) {
            return self.each_element(&w.bounds, &mut |step| {
                let v = one(&step)?;
                self.e.store_val(self.tile_address(mem, step.pos), v);
                Ok(())
            });
        }
        self.each_vector(&mem.shape, &w.bounds, &mut |step| {
            if step.lanes == 1 {
                let v = one(&step)?;
                self.e.store_val(self.tile_address(mem, step.pos), v);
                return Ok(());
            }
            let (at, _) = self.window_index(w, &step);
            let (p, elem) = self.element_address(w.mem, &at)?;
            let to = self.tile_address(mem, step.pos);
            let mask = self.step_mask(&step);
            let inside = self.whole(&step);
            let mut result = Ok(());
            let raw = self.e.lanes_of(self.e.mem_type(elem), step.lanes);
            self.e.if_(
                inside,
                || self.e.store(to, self.e.load(raw, p, scratch_bytes(elem)), scratch_bytes(elem)),
                || match mask {
                    Some(mask) if keep_rest => {
                        let v = self.e.load_masked(p, elem, step.lanes, mask);
                        self.e.store_masked(to, v, mask);
                    }
                    Some(mask) => self.e.store_val(to, self.e.load_masked(p, elem, step.lanes, mask)),
                    None => result = Err(CpuError::Llvm("a vector step without a mask".into())),
                },
            );
            result
        })
    }

    /// All lanes of a step lie in the box.
    fn whole(&self, step: &Step<'_, 'c>) -> Int<'c> {
        let Some(at) = step.pos.last().map(|p| p.base) else { return self.e.bool(true) };
        let end = self.e.add(at, self.e.int(step.lanes as i64));
        let below = self.not(self.e.lt(step.last.hi, end));
        if self.e.known(step.last.lo) == Some(0) {
            return below;
        }
        self.e.and(below, self.not(self.e.lt(at, step.last.lo)))
    }

    /// `A[…] = e`: the valid elements of `e` that lie in the region.
    pub fn write_region(&self, to: &Region, value: ExprId) -> Result<()> {
        let w = self.window(to)?;
        let shape = self.kernel.body.type_of(value).shape().to_vec();
        let bounds = if shape.is_empty() {
            w.bounds.clone()
        } else {
            let inner = self.box_of(value)?;
            self.intersect(&w.bounds, &self.stretch(&inner, &shape, &w.shape))
        };
        let source = if self.may_overlap(value, to.mem) { Some(self.materialize(value)?.0) } else { None };
        let get = |step: &Step<'_, 'c>| -> Result<Val<'c>> {
            let pos = self.stretch_pos(step.pos, &shape, &w.shape);
            let v = match &source {
                Some(temp) => self.load_tile(temp, &pos, step.lanes),
                None => self.eval(value, &pos, step.lanes)?,
            };
            Ok(self.e.widen(v, step.lanes))
        };
        self.store_window(&w, &bounds, &get)
    }

    /// `copy.async`: the elements of one region to another.
    pub fn copy_region(&self, from: &Region, to: &Region, pad: Option<ExprId>) -> Result<()> {
        let (tile, bounds) = self.fetch(from, pad)?;
        let w = self.window(to)?;
        let bounds = self.intersect(&w.bounds, &bounds);
        self.store_window(&w, &bounds, &|step| Ok(self.load_tile(&tile, step.pos, step.lanes)))
    }

    fn store_window(
        &self,
        w: &Window<'c>,
        bounds: &[Bound<'c>],
        get: &dyn Fn(&Step<'_, 'c>) -> Result<Val<'c>>,
    ) -> Result<()> {
        if !self.unit_stride(w) {
            return self.each_element(bounds, &mut |step| {
                let v = get(&step)?;
                let (at, _) = self.window_index(w, &step);
                self.store_element(w.mem, &at, v)
            });
        }
        self.each_vector(&w.shape, bounds, &mut |step| {
            let v = get(&step)?;
            let (at, _) = self.window_index(w, &step);
            if step.lanes == 1 {
                return self.store_element(w.mem, &at, v);
            }
            let (p, _) = self.element_address(w.mem, &at)?;
            let mask = self.step_mask(&step);
            self.e.if_(
                self.whole(&step),
                || self.e.store_val(p, v),
                || {
                    if let Some(mask) = mask {
                        self.e.store_masked(p, v, mask);
                    }
                },
            );
            Ok(())
        })
    }

    /// The value reads elements of the memory that is being written.
    fn may_overlap(&self, value: ExprId, mem: Mem) -> bool {
        let exprs = &self.kernel.body.exprs;
        let mut found = false;
        super::tile::for_each_expr(exprs, value, &mut |id| {
            found |= matches!(&exprs[id], Expr::Element { mem: m, .. } if *m == mem);
        });
        found
    }

    /// Runs `f` with the memory index of each valid element of a region.
    pub fn each_in_region(
        &self,
        region: &Region,
        inner: Option<&[Bound<'c>]>,
        f: &mut EachElement<'_, 'c>,
    ) -> Result<()> {
        let w = self.window(region)?;
        let bounds = match inner {
            Some(b) => self.intersect(&w.bounds, b),
            None => w.bounds.clone(),
        };
        self.each_element(&bounds, &mut |step| {
            let (at, _) = self.window_index(&w, &step);
            f(&at, step.pos)
        })
    }

    /// Address of an element for an atomic access.
    pub fn atomic_address(&self, mem: Mem, at: &[Int<'c>]) -> Result<(Ptr<'c>, Elem)> {
        self.element_address(mem, at)
    }
}

impl<'c> super::emit::Emit<'c> {
    fn and_low4(&self, v: Int<'c>) -> Int<'c> {
        self.b.build_and(v, v.get_type().const_int(15, false), "").unwrap()
    }
}
