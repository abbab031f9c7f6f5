//! Elements of memory: where they lie, guards, packed storage.

use super::arith::index_op;
use super::expr::choose;
use super::{Fun, Place, Result, Val, is_narrow};
use crate::clike::range::Range;
use crate::clike::tree::{C, Ty};
use pantile_abi::DType;
use pantile_ir::layout::{Axis, Dim as LayoutDim, Shared};
use pantile_ir::program::*;

/// An element, as a place or as four bits of a unit of storage.
pub(super) enum Spot {
    Whole(C),
    Packed { unit: C, order: PackOrder, at: C },
}

impl<'a> Fun<'_, 'a> {
    /// `x[i, j]` or `x[i, j] or v`.
    pub(super) fn element(&mut self, mem: Mem, index: &Args, or: Option<ExprId>) -> Result<Val> {
        let index = self.subscripts(index)?;
        let Some(or) = or else { return self.load(mem, &index) };
        let guard = self.inside(mem, &index)?;
        let loaded = self.load(mem, &index)?;
        match guard {
            Some(guard) => {
                let other = self.expr(or)?;
                Ok(choose(guard, loaded, other))
            }
            None => Ok(loaded),
        }
    }

    pub(super) fn subscripts(&mut self, index: &[ExprId]) -> Result<Vec<Val>> {
        let mut out = Vec::with_capacity(index.len());
        for &i in index {
            let elem = self.elem(i)?;
            let v = self.expr(i)?;
            out.push(self.cast(v, elem, Elem::Index, false)?);
        }
        Ok(out)
    }

    /// The extents of a memory.
    fn extents(&mut self, mem: Mem) -> Result<Vec<Val>> {
        match mem {
            Mem::Tensor(a) => {
                let dims = self.tensor(a)?.dims.clone();
                dims.iter().map(|&d| self.expr(d)).collect()
            }
            Mem::Buffer(b) => Ok(self.buffer(b)?.shape.iter().map(|&n| Val::index(n.into())).collect()),
            Mem::Slot { .. } => Err(self.not_threaded("a slot of a ring")),
        }
    }

    /// The tests that are not known to hold.
    fn inside(&mut self, mem: Mem, index: &[Val]) -> Result<Option<C>> {
        let extents = self.extents(mem)?;
        let mut guard: Option<C> = None;
        for (i, n) in index.iter().zip(extents) {
            let mut and = |test: C| {
                guard = Some(match guard.take() {
                    Some(g) => C::binary("&&", g, test),
                    None => test,
                });
            };
            if i.range.lo < 0 {
                and(C::binary(">=", i.c.clone(), C::int(0)));
            }
            if i.range.hi >= n.range.lo {
                and(C::binary("<", i.c.clone(), n.c));
            }
        }
        Ok(guard)
    }

    fn load(&mut self, mem: Mem, index: &[Val]) -> Result<Val> {
        let d = self.mem_elem(mem)?;
        match self.spot(mem, index)? {
            Spot::Whole(place) => self.from_word(place, d),
            Spot::Packed { unit, order, at } => {
                let c = self.call(&format!("nibble_{}", order_name(order)), [unit, at])?;
                let c = if d.is_signed() { self.call("wrap_i4", [c])? } else { c };
                Ok(Val::of(c, Elem::D(d)))
            }
        }
    }

    pub(super) fn mem_elem(&self, mem: Mem) -> Result<DType> {
        match mem {
            Mem::Tensor(a) => Ok(self.tensor(a)?.elem),
            Mem::Buffer(b) => Ok(self.buffer(b)?.elem),
            Mem::Slot { .. } => Err(self.not_threaded("a slot of a ring")),
        }
    }

    pub(super) fn tensor(&self, a: ArgId) -> Result<&'a Tensor> {
        match self.kernel.map(|k| &k.args[a].kind) {
            Some(ArgKind::Tensor(t)) if t.prepacked.is_none() => Ok(t),
            _ => Err(self.not_threaded("this tensor")),
        }
    }

    pub(super) fn buffer(&self, b: BufferId) -> Result<&'a Buffer> {
        self.kernel.and_then(|k| k.buffers.get(b)).ok_or_else(|| self.not_threaded("this memory"))
    }

    pub(super) fn spot(&mut self, mem: Mem, index: &[Val]) -> Result<Spot> {
        match mem {
            Mem::Tensor(a) => self.tensor_spot(a, index),
            Mem::Buffer(b) => Ok(Spot::Whole(self.buffer_spot(b, index)?)),
            Mem::Slot { .. } => Err(self.not_threaded("a slot of a ring")),
        }
    }

    fn tensor_spot(&mut self, a: ArgId, index: &[Val]) -> Result<Spot> {
        let t = self.tensor(a)?;
        let base = C::name(self.args[a.index()].clone());
        let Some(packing) = t.packed.or_else(|| default_packing(t)) else {
            let at = self.offset(t, index, None)?;
            return Ok(Spot::Whole(C::index(base, at.c)));
        };
        let axis = usize::from(packing.axis);
        let (per, _) = unit(packing.order);
        let within = index[axis].clone();
        let mut units = index.to_vec();
        units[axis] = self.binary(BinOp::Div, Elem::Index, within.clone(), Val::index(per))?;
        let at = self.offset(t, &units, Some((axis, per)))?;
        let within = if within.ty == Ty::I64 { C::cast(Ty::I32, within.c) } else { within.c };
        Ok(Spot::Packed { unit: C::index(base, at.c), order: packing.order, at: within })
    }

    /// Elements (units of storage, if packed) from the tensor's start.
    fn offset(&mut self, t: &Tensor, index: &[Val], packed: Option<(usize, i64)>) -> Result<Val> {
        if let Some(strides) = &t.strides {
            let mut at = Val::index(0);
            for (i, &s) in index.iter().zip(strides) {
                let step = self.expr(s)?;
                let step = product(i.clone(), step);
                at = sum(at, step);
            }
            return Ok(at);
        }
        let mut at = Val::index(0);
        for (axis, i) in index.iter().enumerate() {
            let mut n = self.expr(t.dims[axis])?;
            if let Some((p, per)) = packed
                && p == axis
            {
                n = self.ceil_div(Elem::Index, n, Val::index(per))?;
            }
            at = sum(product(at, n), i.clone());
        }
        Ok(at)
    }

    fn buffer_spot(&mut self, b: BufferId, index: &[Val]) -> Result<C> {
        let buffer = self.buffer(b)?;
        let Some(Place { name, ty }) = self.buffers.get(&b).cloned() else {
            return Err(self.not_threaded(&format!("`{}`", buffer.name)));
        };
        let at = match (&buffer.layout, buffer.home) {
            (Some(layout), Home::Shared) => self.laid_out(layout, ty, index)?,
            _ => {
                let mut at = Val::index(0);
                for (i, &n) in index.iter().zip(&buffer.shape) {
                    at = sum(product(at, Val::index(n.into())), i.clone());
                }
                inside(at, buffer.shape.iter().map(|&n| i128::from(n)).product())
            }
        };
        Ok(C::index(C::name(name), at.c))
    }

    /// The element number, from the start of the memory, where a layout puts an element.
    fn laid_out(&mut self, shared: &Shared, ty: Ty, index: &[Val]) -> Result<Val> {
        let mut at = Val::index(0);
        for (i, dim) in index.iter().zip(&shared.layout.dims) {
            let i = inside(i.clone(), dim.extent().into());
            let part = self.digits(dim, ty, i)?;
            at = sum(at, part);
        }
        let whole = i128::from(shared.layout.size(Axis::Mem) - shared.layout.offset[Axis::Mem]);
        let at = inside(at, whole);
        let Some(xor) = shared.xor else { return Ok(at) };
        let lost = ty.bytes().trailing_zeros();
        let Some(base) = xor.base.checked_sub(lost) else {
            return Err(self.unsupported("a swizzle inside of elements".into()));
        };
        let name = format!("swizzle_{}_{}_{}", xor.bits, base, xor.shift);
        let mask = ((1u64 << xor.bits) - 1) << base;
        let text = format!("FN int {name}(int at) {{ return at ^ ((at >> {}) & {mask}); }}\n", xor.shift);
        self.cx.prelude.make(&name, text);
        let at = if at.ty == Ty::I64 { C::cast(Ty::I32, at.c) } else { at.c };
        Ok(Val::new(C::call(name, [at]), Ty::I32, Range::new(0, i32::MAX.into())))
    }

    fn digits(&mut self, dim: &LayoutDim, ty: Ty, i: Val) -> Result<Val> {
        let mut at = Val::index(0);
        let mut inner: u64 = 1;
        for (k, d) in dim.digits.iter().enumerate().rev() {
            if d.axis != Axis::Mem || d.stride % ty.bytes() != 0 {
                return Err(self.unsupported("a layout that places parts of elements".into()));
            }
            let count = |n: u64| Val::index(n as i64);
            let mut v = i.clone();
            if inner > 1 {
                v = self.binary(BinOp::Div, Elem::Index, v, count(inner))?;
            }
            if k > 0 {
                v = self.binary(BinOp::Rem, Elem::Index, v, count(d.extent))?;
            }
            at = sum(product(v, count(d.stride / ty.bytes())), at);
            inner *= d.extent;
        }
        Ok(at)
    }

    /// A value as memory holds it; what only moves is never converted.
    fn word(&mut self, e: ExprId, d: DType) -> Result<C> {
        if !is_narrow(d) || self.shared.contains_key(&e) {
            return self.expr(e).and_then(|v| self.to_word(v, d));
        }
        let body = self.body;
        match &body.exprs[e] {
            Expr::Const { bits, .. } => Ok(C::Int((*bits).into(), Ty::I32)),
            Expr::Select { cond, then, other } => {
                match self.known(*cond) {
                    Some(true) => return self.word(*then, d),
                    Some(false) => return self.word(*other, d),
                    None => {}
                }
                let cond = self.expr(*cond)?.c;
                Ok(C::choice(cond, self.word(*then, d)?, self.word(*other, d)?))
            }
            Expr::Element { mem, index, or } => {
                let index = self.subscripts(index)?;
                let guard = if or.is_some() { self.inside(*mem, &index)? } else { None };
                let Spot::Whole(place) = self.spot(*mem, &index)? else {
                    return Err(self.not_threaded("a packed element"));
                };
                match (guard, or) {
                    (Some(guard), Some(or)) => Ok(C::choice(guard, place, self.word(*or, d)?)),
                    _ => Ok(place),
                }
            }
            _ => self.expr(e).and_then(|v| self.to_word(v, d)),
        }
    }

    pub(super) fn store(&mut self, mem: Mem, index: &Args, value: ExprId) -> Result<()> {
        let d = self.mem_elem(mem)?;
        let index = self.subscripts(index)?;
        let word = self.word(value, d)?;
        match self.spot(mem, &index)? {
            Spot::Whole(to) => self.push(crate::clike::tree::S::Assign { op: "=", to, value: word }),
            Spot::Packed { unit, order, at } => {
                let args = [C::address(unit), at, C::cast(Ty::U32, word)];
                let c = self.call(&format!("set_{}", order_name(order)), args)?;
                self.push(crate::clike::tree::S::Do(c));
            }
        }
        Ok(())
    }
}

/// A subscript is inside its memory, or the program is wrong.
fn inside(i: Val, extent: i128) -> Val {
    let range = Range { lo: i.range.lo.max(0), hi: i.range.hi.min(extent - 1) };
    let range = if range.lo > range.hi { i.range } else { range };
    match i.ty {
        Ty::I64 if range.fits_int() && extent <= i128::from(i32::MAX) => {
            // computed in 64 bits, small all the same
            Val::new(narrowed(i.c), Ty::I32, range)
        }
        _ => Val::new(i.c, i.ty, range),
    }
}

/// `(int)` where arithmetic would go on in 32 bits.
fn narrowed(c: C) -> C {
    C::cast(Ty::I32, c)
}

/// `a + b`, the sums of `b` one by one: `i * n + j + k`, as it is written by hand.
fn sum(a: Val, b: Val) -> Val {
    let range = a.range.plus(b.range);
    let alike = a.ty == Ty::I64 || a.range.lo >= 0 && b.range.lo >= 0 && b.ty == Ty::I32 && range.fits_int();
    match b.c {
        C::Binary("+", l, r) if alike && a.range != Range::exactly(0) => {
            Val::new(C::binary("+", C::binary("+", a.c, *l), *r), a.ty, range)
        }
        c => index_op("+", a, Val { c, ..b }, range),
    }
}

fn product(a: Val, b: Val) -> Val {
    let range = a.range.times(b.range);
    index_op("*", a, b, range)
}

/// A 4-bit tensor without a packing is packed along its last axis.
fn default_packing(t: &Tensor) -> Option<Packing> {
    let axis = t.dims.len().checked_sub(1)? as u8;
    (t.elem.bits() == 4).then_some(Packing { axis, order: PackOrder::Linear })
}

/// Elements in a unit of storage, and its type.
pub(super) fn unit(order: PackOrder) -> (i64, Ty) {
    match order {
        PackOrder::Linear => (2, Ty::U8),
        PackOrder::Gptq | PackOrder::Awq => (8, Ty::U32),
    }
}

/// The type of a tensor's storage.
pub(super) fn storage(t: &Tensor) -> Ty {
    t.packed.or_else(|| default_packing(t)).map_or(Ty::of(t.elem), |p| unit(p.order).1)
}

fn order_name(order: PackOrder) -> &'static str {
    match order {
        PackOrder::Linear => "linear",
        PackOrder::Gptq => "gptq",
        PackOrder::Awq => "awq",
    }
}
