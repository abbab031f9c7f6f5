//! Loops of thread code, many threads at a time: a lane a thread.
//!
//! The elements of a step stand in the order of memory, thread after thread, and are loaded, converted and computed
//! with in that order. Where a thread folds its elements into a variable, they are sorted by lane first, so
//! that each thread keeps its order. Arrays of a thread are vectors in that same order. At the edge of a tensor the
//! step is copied into scratch, outside of the hot path. What may run so: [`super::side`].

use super::emit::{Any, Int, Ptr, vector_of};
use super::error::Result;
use super::frame::{Frame, Place, ThreadAt};
use super::side::Chunk;
use super::value::{Val, scratch_bytes};
use inkwell::IntPredicate;
use inkwell::types::VectorType;
use inkwell::values::VectorValue;
use pantile_ir::program::{
    Block, BufferId, Elem, Expr, ExprId, LocalId, LocalKind, Mem, Stmt, StmtKind, Update,
};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

struct Wide<'f, 'a, 'c> {
    f: &'f Frame<'a, 'c>,
    lanes: u32,
    /// Variables that differ between lanes: a vector each, in the form of registers.
    locals: HashMap<LocalId, Ptr<'c>>,
    arrays: RefCell<HashMap<BufferId, Ptr<'c>>>,
    own: RefCell<HashSet<BufferId>>,
}

/// What is the same for all vectors of a step.
#[derive(Default)]
struct Prepared<'c> {
    /// values of the first lane at the chunk's first element
    first: HashMap<ExprId, Val<'c>>,
    places: HashMap<ExprId, Ptr<'c>>,
}

impl<'a, 'c> Frame<'a, 'c> {
    /// Runs a statement of thread code for all threads of the block, `lanes` at a time.
    pub fn each_thread_wide(&self, s: &Stmt, lanes: u32) -> Result<()> {
        let crew = self.crew.get();
        let names = self.lane_locals(s);
        let slot = |l: &LocalId| {
            let elem = self.kernel.body.locals[*l].ty.elem().unwrap_or(Elem::Index);
            self.e.alloca(self.e.lanes_of(self.e.reg_type(elem), lanes), &self.kernel.body.locals[*l].name)
        };
        let locals = names.iter().map(|(l, _)| (*l, slot(l))).collect();
        let wide = Wide { f: self, lanes, locals, arrays: RefCell::default(), own: RefCell::default() };
        let mut result = Ok(());
        let (from, to) = (self.e.int(crew.from.into()), self.e.int(crew.to.into()));
        self.e.for_(from, to, self.e.int(lanes.into()), |t| {
            self.with_thread(Some(ThreadAt { linear: t }), |_| {
                names.iter().for_each(|&(l, changed)| wide.enter(l, changed, t));
                result = wide.stmt(s);
                names.iter().filter(|(_, changed)| *changed).for_each(|&(l, _)| wide.leave(l, t));
            });
        });
        result
    }

    /// Variables of the statement that differ between lanes, and whether it changes them.
    fn lane_locals(&self, s: &Stmt) -> Vec<(LocalId, bool)> {
        let (mut all, mut changed) = (HashSet::new(), HashSet::new());
        let mut mention = |s: &Stmt| {
            changed.extend(s.kind.defines());
            s.kind.operands(|x| {
                super::tile::for_each_expr(&self.kernel.body.exprs, x, &mut |id| {
                    if let Expr::Local(l) = self.kernel.body.exprs[id] {
                        all.insert(l);
                    }
                });
            });
        };
        mention(s);
        s.kind.blocks().iter().for_each(|b| pantile_ir::program::walk(b, &mut mention));
        all.extend(changed.iter().copied());
        let differs = |l: &LocalId| {
            matches!(self.kernel.body.locals[*l].kind, LocalKind::Let | LocalKind::Var) && !self.follows(*l)
        };
        let mut out: Vec<_> = all.into_iter().filter(differs).map(|l| (l, changed.contains(&l))).collect();
        out.sort();
        out
    }
}

impl<'f, 'a, 'c> Wide<'f, 'a, 'c> {
    fn elem(&self, l: LocalId) -> Elem {
        self.f.kernel.body.locals[l].ty.elem().unwrap_or(Elem::Index)
    }

    fn get(&self, l: LocalId) -> Val<'c> {
        let elem = self.elem(l);
        let ty = self.f.e.lanes_of(self.f.e.reg_type(elem), self.lanes);
        let v = self.f.e.b.build_load(ty, self.locals[&l], "").unwrap();
        Val { v, elem, lanes: self.lanes }
    }

    fn set(&self, l: LocalId, v: Val<'c>) {
        let v = self.f.e.widen(v, self.lanes);
        self.f.e.b.build_store(self.locals[&l], v.v).unwrap();
    }

    fn own_place(&self, base: Ptr<'c>, t: Int<'c>, elem: Elem) -> Ptr<'c> {
        self.f.scaled(base, t, elem)
    }

    fn enter(&self, l: LocalId, changed: bool, t: Int<'c>) {
        match self.f.place(l) {
            Place::PerThread(base) => {
                let elem = self.elem(l);
                self.set(l, self.f.e.load_val(self.own_place(base, t, elem), elem, self.lanes));
            }
            // its first value is given inside
            _ if changed => {}
            _ => self.set(l, self.f.get_scalar(l)),
        }
    }

    fn leave(&self, l: LocalId, t: Int<'c>) {
        if let Place::PerThread(base) = self.f.place(l) {
            self.f.e.store_val(self.own_place(base, t, self.elem(l)), self.get(l));
        }
    }

    fn block(&self, block: &Block) -> Result<()> {
        block.iter().try_for_each(|s| self.stmt(s))
    }

    fn stmt(&self, s: &Stmt) -> Result<()> {
        self.f.at_stmt(s);
        match &s.kind {
            StmtKind::Buffer { buffer } => {
                self.array(*buffer);
                Ok(())
            }
            StmtKind::Let { local, .. } if !self.locals.contains_key(local) => self.f.stmt(s),
            StmtKind::If { cond, then, other } => {
                self.f.branch(*cond, |_| self.block(then), |_| self.block(other))
            }
            StmtKind::For { var, named, segments, carry, body, .. } => {
                let chunk = self.f.chunk_loop(s, &self.own.borrow());
                match chunk {
                    Some(chunk) => body.iter().try_for_each(|s| self.step(s, chunk)),
                    None => self.f.for_loop(*var, named, segments, carry, &mut |_| self.block(body)),
                }
            }
            _ => self.step(s, Chunk::ONE),
        }
    }

    /// Contents are undefined in the text; here they are zero, and nothing is computed from what is not there.
    fn array(&self, id: BufferId) {
        let e = self.f.e;
        let b = self.f.buffer(id);
        let elem = Elem::D(b.elem);
        let ty = vector_of(e.mem_type(elem), self.lanes);
        let known = self.arrays.borrow().get(&id).copied();
        let n = b.shape[0];
        let base = known.unwrap_or_else(|| e.alloca(ty.array_type(n), &b.name));
        for i in 0..n {
            e.store(self.part(base, elem, i), ty.const_zero(), scratch_bytes(elem));
        }
        self.arrays.borrow_mut().insert(id, base);
        self.own.borrow_mut().insert(id);
    }

    /// Address of the i-th vector of a step.
    fn part(&self, base: Ptr<'c>, elem: Elem, i: u32) -> Ptr<'c> {
        let bytes = i64::from(i) * i64::from(self.lanes) * i64::from(scratch_bytes(elem));
        self.f.e.offset(base, self.f.e.int(bytes))
    }

    /// One statement for all elements of a step.
    fn step(&self, s: &Stmt, chunk: Chunk) -> Result<()> {
        self.f.at_stmt(s);
        if let Some(v) = chunk.var {
            self.f.set_scalar(v, Val::index(self.f.e.int(0)));
        }
        match &s.kind {
            StmtKind::Let { local, value } | StmtKind::Assign { local, value } => {
                let v = self.values(*value, chunk)?;
                self.set(*local, v[0]);
                Ok(())
            }
            StmtKind::Update { local, op, value } => {
                let vals = self.values(*value, chunk)?;
                self.fold(*local, *op, &vals);
                Ok(())
            }
            StmtKind::Store { mem, index, value } => {
                let vals = self.values(*value, chunk)?;
                let to = match mem {
                    Mem::Buffer(id) if self.own.borrow().contains(id) => self.arrays.borrow()[id],
                    _ => self.address(*mem, index)?.0,
                };
                for (i, v) in (0..).zip(vals) {
                    self.f.e.store_val(self.part(to, v.elem, i), v);
                }
                Ok(())
            }
            // a variable without a value
            _ => Ok(()),
        }
    }

    fn address(&self, mem: Mem, index: &[ExprId]) -> Result<(Ptr<'c>, Vec<Int<'c>>)> {
        let at = index.iter().map(|&i| self.f.index_expr(i)).collect::<Result<Vec<_>>>()?;
        Ok((self.f.element_address(mem, &at)?.0, at))
    }

    /// Each lane's elements in their order.
    fn fold(&self, local: LocalId, op: Update, vals: &[Val<'c>]) {
        let e = self.f.e;
        let vectors: Vec<VectorValue> = vals.iter().map(|v| v.v.into_vector_value()).collect();
        for v in self.by_lane(vectors) {
            let new = Val { v: v.into(), ..vals[0] };
            self.set(local, e.binary(op.binary(), self.get(local), new, self.f.contract));
        }
    }

    /// From thread after thread to element after element: even and odd places apart, again and again.
    fn by_lane(&self, vectors: Vec<VectorValue<'c>>) -> Vec<VectorValue<'c>> {
        if vectors.len() == 1 {
            return vectors;
        }
        let every_other = |first: u32| -> Vec<VectorValue<'c>> {
            let mask = self.numbers(|j| u64::from(2 * j + first));
            let one = |p: &[VectorValue<'c>]| self.f.e.b.build_shuffle_vector(p[0], p[1], mask, "").unwrap();
            vectors.chunks(2).map(one).collect()
        };
        let (even, odd) = (self.by_lane(every_other(0)), self.by_lane(every_other(1)));
        even.into_iter().zip(odd).flat_map(|(a, b)| [a, b]).collect()
    }

    fn numbers(&self, f: impl Fn(u32) -> u64) -> VectorValue<'c> {
        let i32t = self.f.e.ctx.i32_type();
        let all: Vec<Int> = (0..self.lanes).map(|j| i32t.const_int(f(j), false)).collect();
        VectorType::const_vector(&all)
    }

    /// The vectors of a step, in the order of memory.
    fn values(&self, x: ExprId, chunk: Chunk) -> Result<Vec<Val<'c>>> {
        let mut prepared = Prepared::default();
        self.prepare(x, chunk, &mut prepared)?;
        let one = |i| Ok(self.f.e.widen(self.eval(x, chunk, i, &prepared)?, self.lanes));
        (0..chunk.n).map(one).collect()
    }

    fn is_linear(&self, x: ExprId, chunk: Chunk) -> Option<(i64, i64)> {
        let index = self.f.kernel.body.type_of(x).elem() == Some(Elem::Index);
        self.f.slopes_in(x, chunk).filter(|&s| s == (0, 0) || index)
    }

    fn prepare(&self, x: ExprId, chunk: Chunk, p: &mut Prepared<'c>) -> Result<()> {
        if self.is_linear(x, chunk).is_some() {
            p.first.insert(x, self.f.scalar(x)?);
            return Ok(());
        }
        if let Expr::Element { mem, index, or } = &self.f.kernel.body.exprs[x] {
            let place = match mem {
                Mem::Buffer(id) if self.own.borrow().contains(id) => self.arrays.borrow()[id],
                _ => self.source(*mem, index, *or, chunk, self.f.kernel.body.type_of(x).elem())?,
            };
            p.places.insert(x, place);
            return Ok(());
        }
        let mut below = Vec::new();
        self.f.kernel.body.exprs[x].operands(|c| below.push(c));
        below.into_iter().try_for_each(|c| self.prepare(c, chunk, p))
    }

    /// Where the elements of a step stand: in place, or at an edge as a copy filled with the value after `or`.
    fn source(
        &self,
        mem: Mem,
        index: &[ExprId],
        or: Option<ExprId>,
        chunk: Chunk,
        elem: Option<Elem>,
    ) -> Result<Ptr<'c>> {
        let (f, e) = (self.f, self.f.e);
        let (p, at) = self.address(mem, index)?;
        let Some(or) = or else { return Ok(p) };
        let elem = elem.unwrap_or(Elem::Index);
        let dims = f.mem_dims(mem);
        let (Some((&last, outer)), Some((&extent, others))) = (at.split_last(), dims.split_last()) else {
            return Ok(p);
        };
        let mut inside = e.bool(true);
        for (&i, &n) in outer.iter().zip(others) {
            inside = e.and(inside, e.cmp(IntPredicate::ULT, i, n));
        }
        let span = e.int(i64::from(self.lanes * chunk.n));
        let starts = e.cmp(IntPredicate::SGE, last, e.int(0));
        let ends = e.cmp(IntPredicate::SLE, last, e.sub(extent, span));
        let whole = e.and(inside, e.and(starts, ends));
        let copy = f.reserve(u64::from(self.lanes * chunk.n) * u64::from(scratch_bytes(elem)));
        let fill = f.scalar(or)?;
        let place = e.if_value(
            whole,
            || p.into(),
            || {
                e.for_(e.int(0), span, e.int(1), |k| {
                    let there = e.and(inside, e.cmp(IntPredicate::ULT, e.add(last, k), extent));
                    let read = || e.load_val(f.scaled(p, k, elem), elem, 1).v;
                    let v = e.if_value(there, read, || fill.v);
                    e.store_val(f.scaled(copy, k, elem), Val::scalar(v, elem));
                });
                copy.into()
            },
        );
        Ok(place.into_pointer_value())
    }

    /// The i-th vector of a step; one lane where all are the same.
    fn eval(&self, x: ExprId, chunk: Chunk, i: u32, p: &Prepared<'c>) -> Result<Val<'c>> {
        let (f, e) = (self.f, self.f.e);
        if let Some(slopes) = self.is_linear(x, chunk) {
            let first = p.first[&x];
            return Ok(if slopes == (0, 0) { first } else { self.linear(first, slopes, chunk, i) });
        }
        let go = |x: ExprId| self.eval(x, chunk, i, p);
        Ok(match &f.kernel.body.exprs[x] {
            Expr::Local(l) => self.spread(self.get(*l), chunk, i),
            Expr::Unary(op, a) => e.unary(*op, go(*a)?),
            Expr::Binary(op, a, b) if op.is_logical() => {
                use pantile_ir::program::BinOp::{And, LogicalAnd, Or};
                e.binary(if *op == LogicalAnd { And } else { Or }, go(*a)?, go(*b)?, f.contract)
            }
            Expr::Binary(op, a, b) => e.binary(*op, go(*a)?, go(*b)?, f.contract),
            Expr::Select { cond, then, other } => e.choose(go(*cond)?, go(*then)?, go(*other)?),
            Expr::Math { f: m, args, .. } => {
                f.math(*m, &args.iter().map(|&a| go(a)).collect::<Result<Vec<_>>>()?)
            }
            Expr::Cast { to, sat, value } => e.convert(go(*value)?, *to, *sat),
            Expr::Bits { to, value } => {
                let v = go(*value)?;
                let ty = e.lanes_of(e.mem_type(Elem::D(*to)), v.lanes);
                e.wrap(e.unpack(e.bitcast(e.pack(v), ty), Elem::D(*to), v.lanes))
            }
            Expr::Intrinsic { id, args } => {
                let vals = args.iter().map(|&a| go(a)).collect::<Result<Vec<_>>>()?;
                f.pure_call(&f.program.intrinsics[*id].means, &vals)?[0]
            }
            _ => {
                let elem = f.kernel.body.type_of(x).elem().unwrap_or(Elem::Index);
                e.load_val(self.part(p.places[&x], elem, i), elem, self.lanes)
            }
        })
    }

    /// An index from that of the first lane and element.
    fn linear(&self, first: Val<'c>, (lane, within): (i64, i64), chunk: Chunk, i: u32) -> Val<'c> {
        let e = self.f.e;
        let at = |j: u32| {
            let place = i64::from(i * self.lanes + j);
            let n = i64::from(chunk.n);
            e.int(lane * (place / n) + within * (place % n))
        };
        let steps: Vec<Int> = (0..self.lanes).map(at).collect();
        let v: Any = VectorType::const_vector(&steps).into();
        e.binary(
            pantile_ir::program::BinOp::Add,
            first,
            Val { v, elem: Elem::Index, lanes: self.lanes },
            false,
        )
    }

    /// A variable of each lane at the places of that lane's elements.
    fn spread(&self, v: Val<'c>, chunk: Chunk, i: u32) -> Val<'c> {
        if chunk.n == 1 {
            return v;
        }
        let from = v.v.into_vector_value();
        let mask = self.numbers(|j| u64::from((i * self.lanes + j) / chunk.n));
        let v2 = self.f.e.b.build_shuffle_vector(from, from.get_type().get_poison(), mask, "").unwrap();
        Val { v: v2.into(), ..v }
    }
}
