//! The state of one kernel's code: where its tensors, buffers and locals are.
//!
//! Scratch memory of a block has a static layout: every tile local and buffer gets an offset once. Scalars live in
//! stack slots that LLVM turns into registers.

use super::emit::{Emit, Int, Ptr};
use super::error::Result;
use super::machine::Machine;
use super::masks::Mask;
use super::reducer::ReducerMem;
use super::rings::Engines;
use super::roles::{Agent, Crew};
use super::side::Slopes;
use super::stmt::LoopEnds;
use super::uniform::Varying;
use super::untrusted::Untrusted;
use super::value::{Val, scratch_bytes};
use pantile_abi::CpuFault;
use pantile_ir::diag::Code;
use pantile_ir::program::{
    ArgId, ArgKind, Buffer, BufferId, Elem, Kernel, Local, LocalId, PackOrder, Program, ReducerId, Shape,
    Stmt, Tensor, Type, walk,
};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// A tensor parameter at run time; dims and strides in elements.
#[derive(Clone, Debug)]
pub struct TensorRef<'c> {
    pub ptr: Ptr<'c>,
    pub elem: Elem,
    pub dims: Vec<Int<'c>>,
    pub strides: Vec<Int<'c>>,
    pub packed: Option<(usize, PackOrder)>,
}

/// A tile in scratch: row-major, the last axis padded to whole vectors.
#[derive(Clone, Debug)]
pub struct TileMem<'c> {
    pub base: Ptr<'c>,
    pub elem: Elem,
    pub shape: Shape,
    /// elements from one index of an axis to the next
    pub strides: Vec<i64>,
}

/// The valid box: stack slots of i64 `lo`, `hi` for each axis.
#[derive(Clone, Debug)]
pub struct BoxMem<'c> {
    pub axes: Vec<(Ptr<'c>, Ptr<'c>)>,
}

#[derive(Clone, Debug)]
pub enum Place<'c> {
    Scalar(Ptr<'c>),
    /// one scalar for each thread, an array in scratch
    PerThread(Ptr<'c>),
    Tile(TileMem<'c>, BoxMem<'c>),
}

/// Which thread's code is being made, in a kernel that names threads.
#[derive(Clone, Copy, Debug)]
pub struct ThreadAt<'c> {
    pub linear: Int<'c>,
}

pub struct Frame<'a, 'c> {
    pub e: &'a Emit<'c>,
    pub program: &'a Program,
    pub kernel: &'a Kernel,
    pub varying: Varying,
    pub untrusted: Untrusted,
    pub slopes: Slopes,
    pub machine: &'a Machine,
    pub contract: bool,
    pub words: Ptr<'c>,
    pub scratch: Ptr<'c>,
    scratch_size: Cell<u64>,
    /// Values of the dims, in slot order.
    pub dims: Vec<Int<'c>>,
    pub scalars: HashMap<ArgId, Val<'c>>,
    pub tensors: HashMap<ArgId, TensorRef<'c>>,
    pub places: RefCell<HashMap<LocalId, Place<'c>>>,
    pub buffers: RefCell<HashMap<BufferId, Ptr<'c>>>,
    pub reducers: RefCell<HashMap<ReducerId, ReducerMem<'c>>>,
    pub loops: RefCell<Vec<LoopEnds<'c>>>,
    /// Who takes part where control differs between threads; outermost first.
    pub masks: RefCell<Vec<Mask<'c>>>,
    /// The innermost loop outside the thread loops is one with masks.
    pub in_masks: Cell<bool>,
    pub thread: Cell<Option<ThreadAt<'c>>>,
    /// The threads that run the code being made.
    pub crew: Cell<Crew>,
    /// The block, or the role of it whose code is being made.
    pub agent: RefCell<Agent<'c>>,
    pub engines: Engines<'c>,
    /// What carried tokens will be in the coming iteration.
    pub pending: RefCell<HashMap<LocalId, Ptr<'c>>>,
    /// Number of each statement in the kernel's text.
    numbers: HashMap<*const Stmt, u32>,
    pub here: Cell<Option<u32>>,
    pub faults: RefCell<Vec<CpuFault>>,
}

impl<'a, 'c> Frame<'a, 'c> {
    pub fn new(
        e: &'a Emit<'c>,
        program: &'a Program,
        kernel: &'a Kernel,
        machine: &'a Machine,
        words: Ptr<'c>,
        scratch: Ptr<'c>,
    ) -> Self {
        let mut numbers = HashMap::new();
        walk(&kernel.stmts, &mut |s| {
            numbers.insert(std::ptr::from_ref(s), numbers.len() as u32);
        });
        Frame {
            e,
            program,
            kernel,
            varying: Varying::of(kernel),
            untrusted: Untrusted::of(kernel),
            slopes: Slopes::of(kernel),
            machine,
            contract: kernel.math == pantile_ir::program::MathMode::Contract,
            words,
            scratch,
            scratch_size: Cell::new(0),
            dims: Vec::new(),
            scalars: HashMap::new(),
            tensors: HashMap::new(),
            places: RefCell::default(),
            buffers: RefCell::default(),
            reducers: RefCell::default(),
            loops: RefCell::default(),
            masks: RefCell::default(),
            in_masks: Cell::new(false),
            thread: Cell::new(None),
            crew: Cell::new(Crew::of(kernel)),
            agent: RefCell::new(Agent::block()),
            engines: Engines::default(),
            pending: RefCell::default(),
            numbers,
            here: Cell::new(None),
            faults: RefCell::default(),
        }
    }

    /// Bytes of scratch that one running range of blocks needs.
    pub fn scratch_size(&self) -> u64 {
        self.scratch_size.get()
    }

    /// A piece of scratch at a fixed offset, aligned to a cache line.
    pub fn reserve(&self, bytes: u64) -> Ptr<'c> {
        let at = self.scratch_size.get();
        self.scratch_size.set(at + bytes.max(1).next_multiple_of(64));
        self.e.entry_offset(self.scratch, at as i64)
    }

    pub fn word(&self, index: usize) -> Ptr<'c> {
        self.e.offset(self.words, self.e.int(index as i64 * 8))
    }

    pub fn grid_word(&self, axis: usize) -> usize {
        self.kernel.args.len() + self.kernel.dims.len() + axis
    }

    /// Reads dims, scalars, and the tensors' pointers: once, before the loop over blocks.
    pub fn bind_words(&mut self) -> Result<()> {
        for dim in 0..self.kernel.dims.len() {
            let v = self.e.load(self.e.i64(), self.word(self.kernel.args.len() + dim), 8);
            self.dims.push(v.into_int_value());
        }
        for (id, arg) in self.kernel.args.iter() {
            let ArgKind::Scalar(elem) = arg.kind else { continue };
            let raw = self.e.load(self.e.mem_type(elem), self.word(id.index()), 8);
            self.scalars.insert(id, self.e.unpack(raw, elem, 1));
        }
        for (id, arg) in self.kernel.args.iter() {
            let ArgKind::Tensor(t) = &arg.kind else { continue };
            let ptr = self.e.load(self.e.ptr_type(), self.word(id.index()), 8).into_pointer_value();
            let tensor = self.tensor_ref(t, ptr)?;
            self.tensors.insert(id, tensor);
        }
        Ok(())
    }

    fn tensor_ref(&self, t: &Tensor, ptr: Ptr<'c>) -> Result<TensorRef<'c>> {
        let mut dims = Vec::with_capacity(t.dims.len());
        for &d in &t.dims {
            dims.push(self.scalar(d)?.int());
        }
        let packed = t.packed.map(|p| (p.axis as usize, p.order));
        let strides = match &t.strides {
            Some(given) => {
                let mut all = Vec::with_capacity(given.len());
                for &s in given {
                    all.push(self.scalar(s)?.int());
                }
                all
            }
            None => self.contiguous(&dims, packed),
        };
        Ok(TensorRef { ptr, elem: Elem::D(t.elem), dims, strides, packed })
    }

    fn contiguous(&self, dims: &[Int<'c>], packed: Option<(usize, PackOrder)>) -> Vec<Int<'c>> {
        let mut strides = vec![self.e.int(1); dims.len()];
        let mut run = self.e.int(1);
        for axis in (0..dims.len()).rev() {
            strides[axis] = run;
            let extent = match packed {
                Some((at, order)) if at == axis => {
                    let per = per_unit(order);
                    let up = self.e.add(dims[axis], self.e.int(per - 1));
                    self.e.b.build_int_unsigned_div(up, self.e.int(per), "").unwrap()
                }
                _ => dims[axis],
            };
            run = self.e.mul(run, extent);
        }
        strides
    }

    /// Elements of the last axis, rounded up to whole vectors.
    pub fn pitch(&self, n: u32) -> i64 {
        if n == 1 { 1 } else { n.next_multiple_of(self.machine.lanes) as i64 }
    }

    pub fn new_tile(&self, elem: Elem, shape: &[u32]) -> TileMem<'c> {
        let mut strides = vec![1; shape.len()];
        let mut run = shape.last().map_or(1, |&n| self.pitch(n));
        for axis in (0..shape.len().saturating_sub(1)).rev() {
            strides[axis] = run;
            run *= shape[axis] as i64;
        }
        let base = self.reserve(run as u64 * scratch_bytes(elem) as u64);
        TileMem { base, elem, shape: shape.into(), strides }
    }

    pub fn new_box(&self, rank: usize) -> BoxMem<'c> {
        let slot = || self.e.alloca(self.e.i64(), "box");
        BoxMem { axes: (0..rank).map(|_| (slot(), slot())).collect() }
    }

    /// The place of a local, made at its first mention.
    pub fn place(&self, id: LocalId) -> Place<'c> {
        if let Some(p) = self.places.borrow().get(&id) {
            return p.clone();
        }
        let local: &Local = &self.kernel.body.locals[id];
        let place = match &local.ty {
            Type::Tile { elem, shape } => Place::Tile(self.new_tile(*elem, shape), self.new_box(shape.len())),
            other => {
                let elem = other.elem().unwrap_or(Elem::Index);
                Place::Scalar(self.e.alloca(self.e.reg_type(elem), &local.name))
            }
        };
        self.places.borrow_mut().insert(id, place.clone());
        place
    }

    pub fn tile_place(&self, id: LocalId) -> Option<(TileMem<'c>, BoxMem<'c>)> {
        match self.place(id) {
            Place::Tile(mem, bounds) => Some((mem, bounds)),
            _ => None,
        }
    }

    pub fn buffer(&self, id: BufferId) -> &'a Buffer {
        &self.kernel.buffers[id]
    }

    fn scalar_slot(&self, id: LocalId) -> (Ptr<'c>, Elem) {
        let elem = self.kernel.body.locals[id].ty.elem().unwrap_or(Elem::Index);
        match self.place(id) {
            Place::Scalar(p) | Place::Tile(TileMem { base: p, .. }, _) => (p, elem),
            Place::PerThread(base) => {
                let t = self.thread.get().map_or(self.e.int(0), |t| t.linear);
                (self.e.offset(base, self.e.mul(t, self.e.int(scratch_bytes(elem) as i64))), elem)
            }
        }
    }

    pub fn get_scalar(&self, id: LocalId) -> Val<'c> {
        let (p, elem) = self.scalar_slot(id);
        match self.place(id) {
            Place::PerThread(_) => self.e.load_val(p, elem, 1),
            _ => Val::scalar(self.e.b.build_load(self.e.reg_type(elem), p, "").unwrap(), elem),
        }
    }

    pub fn set_scalar(&self, id: LocalId, v: Val<'c>) {
        let (p, _) = self.scalar_slot(id);
        match self.place(id) {
            Place::PerThread(_) => self.e.store_val(p, v),
            _ => {
                self.e.b.build_store(p, v.v).unwrap();
            }
        }
    }

    /// The code that follows belongs to this statement.
    pub fn at_stmt(&self, s: &Stmt) {
        self.here.set(self.numbers.get(&std::ptr::from_ref(s)).copied());
    }

    /// The number that stops the kernel with this message.
    pub fn fault(&self, code: Code, message: String) -> Int<'c> {
        let fault = CpuFault { message, code: code.0, statement: self.here.get() };
        let mut all = self.faults.borrow_mut();
        let at = all.iter().position(|f| *f == fault).unwrap_or_else(|| {
            all.push(fault);
            all.len() - 1
        });
        self.e.int(at as i64 + 1)
    }
}

/// Elements in one unit of storage of a packed tensor.
pub fn per_unit(order: PackOrder) -> i64 {
    match order {
        PackOrder::Linear => 2,
        PackOrder::Gptq | PackOrder::Awq => 8,
    }
}
