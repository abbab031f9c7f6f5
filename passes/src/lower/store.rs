//! Where a tile lives after lowering: a scalar or an array of each thread, or shared memory.

use super::Lower;
use super::memory::Window;
use super::nest::Coord;
use crate::layout::digits::AxisLayout;
use pantile_abi::DType;
use pantile_ir::builder::{Exprs, Result};
use pantile_ir::program::*;
use std::rc::Rc;

#[derive(Clone, Debug)]
pub enum Storage {
    /// One element a thread.
    Scalar { local: LocalId, axes: Vec<AxisLayout> },
    /// Elements of a thread, an index an axis.
    Array { buffer: BufferId, axes: Vec<AxisLayout> },
    /// `axes` says who writes which element.
    Shared { buffer: BufferId, axes: Vec<AxisLayout> },
    /// Nowhere: each use reads the tensor.
    Direct { window: Rc<Window>, fill: ExprId, axes: Vec<AxisLayout> },
}

impl Storage {
    pub fn axes(&self) -> &[AxisLayout] {
        match self {
            Storage::Scalar { axes, .. }
            | Storage::Array { axes, .. }
            | Storage::Shared { axes, .. }
            | Storage::Direct { axes, .. } => axes,
        }
    }
}

/// The type in which memory of a block or thread holds an element: whole bytes, and `index` as 64 bits.
pub fn stored(elem: Elem) -> DType {
    match elem {
        Elem::Index => DType::I64,
        Elem::D(DType::I4) => DType::I8,
        Elem::D(DType::U4) => DType::U8,
        Elem::D(d) => d,
    }
}

impl Lower<'_, '_> {
    /// Memory for a tile of these elements, brought to life here.
    pub fn new_storage(
        &mut self,
        name: &str,
        elem: Elem,
        axes: Vec<AxisLayout>,
        shared: bool,
    ) -> Result<Storage> {
        let regs: Vec<u32> = axes.iter().map(AxisLayout::regs).collect();
        if shared {
            let shape: Shape = axes.iter().map(|a| a.extent).collect();
            let buffer = self.buffer(name, Home::Shared, elem, shape)?;
            return Ok(Storage::Shared { buffer, axes });
        }
        if regs.iter().all(|&n| n == 1) {
            let local = self.k.local(name, Type::Scalar(elem), LocalKind::Var, self.span);
            // threads beyond the tile never give it a value
            if axes.iter().any(|a| a.covered() > u64::from(a.extent)) {
                let value = self.k.constant_at(elem, 0, self.span)?;
                self.emit(StmtKind::Let { local, value })?;
            } else {
                self.emit(StmtKind::Declare { local })?;
            }
            return Ok(Storage::Scalar { local, axes });
        }
        let buffer = self.buffer(name, Home::Thread, elem, regs.into())?;
        Ok(Storage::Array { buffer, axes })
    }

    pub fn buffer(&mut self, name: &str, home: Home, elem: Elem, shape: Shape) -> Result<BufferId> {
        let buffer = self.k.add_buffer(Buffer::new(name.into(), home, stored(elem), shape), self.span)?;
        self.emit(StmtKind::Buffer { buffer })?;
        Ok(buffer)
    }

    /// Memory of a tile local, made where it is first named.
    pub fn storage(&mut self, l: LocalId) -> Result<Storage> {
        if let Some(s) = self.store.get(&l) {
            return Ok(s.clone());
        }
        let local = &self.k.kernel().body.locals[l];
        let (name, elem) = (local.name.clone(), local.ty.elem().unwrap_or(Elem::Index));
        let axes = match self.assign.locals.get(&l) {
            Some(axes) => axes.clone(),
            None => local.ty.shape().iter().map(|&n| AxisLayout::whole(n)).collect(),
        };
        let shared = self.assign.shared.contains(&l);
        let s = self.new_storage(&name, elem, axes, shared)?;
        self.store.insert(l, s.clone());
        Ok(s)
    }

    /// Reads an element.
    pub fn load(&mut self, s: &Storage, elem: Elem, at: &[Coord]) -> Result<ExprId> {
        match s {
            Storage::Scalar { local, axes } => {
                self.number(axes, at)?;
                self.get(*local)
            }
            Storage::Array { buffer, axes } => {
                let index = self.number(axes, at)?;
                self.element(*buffer, index, elem)
            }
            Storage::Shared { buffer, axes } => {
                let index = self.values(axes, at)?;
                self.element(*buffer, index, elem)
            }
            Storage::Direct { window, fill, .. } => {
                let value = self.fetch(&window.clone(), at, *fill)?;
                self.converted(value, elem)
            }
        }
    }

    fn element(&mut self, buffer: BufferId, index: Args, elem: Elem) -> Result<ExprId> {
        let e = self.expr(Expr::Element { mem: Mem::Buffer(buffer), index, or: None })?;
        self.converted(e, elem)
    }

    /// The same value as another type that holds it exactly.
    pub fn converted(&mut self, e: ExprId, to: Elem) -> Result<ExprId> {
        self.make().cast(to, e)
    }

    /// Writes an element that this thread holds; one of the threads that hold copies writes to shared memory.
    pub fn put(&mut self, s: &Storage, at: &[Coord], value: ExprId) -> Result<()> {
        match s {
            Storage::Scalar { local, axes } => {
                self.number(axes, at)?;
                self.emit(StmtKind::Assign { local: *local, value })
            }
            Storage::Array { buffer, axes } => {
                let index = self.number(axes, at)?;
                self.put_element(*buffer, index, value)
            }
            Storage::Shared { buffer, axes } => {
                let index = self.values(axes, at)?;
                let held: Vec<AxisLayout> =
                    at.iter().filter_map(|c| c.held.as_ref().map(|(axis, _)| axis.clone())).collect();
                let one = self.canonical(&held)?;
                self.when(one, |s| s.put_element(*buffer, index, value))
            }
            Storage::Direct { .. } => self
                .refuse("a tile that is read in place is written", "give the written tile a name of its own"),
        }
    }

    pub fn put_element(&mut self, buffer: BufferId, index: Args, value: ExprId) -> Result<()> {
        let elem = Elem::D(self.k.kernel().buffers[buffer].elem);
        let value = self.converted(value, elem)?;
        self.emit(StmtKind::Store { mem: Mem::Buffer(buffer), index, value })
    }

    /// Indices into a thread's own array.
    fn number(&mut self, axes: &[AxisLayout], at: &[Coord]) -> Result<Args> {
        let mut out = Args::new();
        for (axis, c) in axes.iter().zip(at) {
            out.push(match &c.held {
                Some((held, n)) if held == axis => *n,
                _ if axis.extent == 1 => self.int(0)?,
                _ => {
                    return self.refuse(
                        "this reads a tile at positions that other threads hold",
                        "put the tile into shared memory: `shared t: f32[64, 64]` and `t[:, :] = tile`",
                    );
                }
            });
        }
        Ok(out)
    }

    fn values(&mut self, axes: &[AxisLayout], at: &[Coord]) -> Result<Args> {
        let mut out = Args::new();
        for (axis, c) in axes.iter().zip(at) {
            out.push(if axis.extent == 1 { self.int(0)? } else { c.value });
        }
        Ok(out)
    }
}
