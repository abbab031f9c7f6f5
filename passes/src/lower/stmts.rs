//! Statements: control stays, scalars stay, tile statements go to their files.

use super::Lower;
use super::bounds::Bound;
use super::nest::{Coord, Inner};
use super::scan;
use super::store::Storage;
use pantile_ir::builder::{Exprs, Result};
use pantile_ir::program::*;

impl Lower<'_, '_> {
    pub fn block(&mut self, block: &Block) -> Result<()> {
        for s in block {
            (self.stmt, self.next) = (self.next, self.next + 1);
            self.span = s.span;
            self.statement(s)?;
        }
        Ok(())
    }

    pub fn inner(&mut self, block: &Block) -> Result<Block> {
        self.k.begin_block();
        self.block(block)?;
        self.k.end_block()
    }

    pub fn is_tile(&self, l: LocalId) -> bool {
        self.k.kernel().body.locals[l].ty.is_tile()
    }

    fn statement(&mut self, s: &Stmt) -> Result<()> {
        if self.late_statement(s)? {
            return Ok(());
        }
        match &s.kind {
            StmtKind::Let { local, value } if self.is_tile(*local) => self.assign(*local, *value),
            StmtKind::Assign { local, value } if self.is_tile(*local) => self.assign(*local, *value),
            StmtKind::Update { local, op, value } if self.is_tile(*local) => self.update(*local, *op, *value),
            StmtKind::Declare { local } if self.is_tile(*local) => {
                self.storage(*local)?;
                let rank = self.k.kernel().body.locals[*local].ty.shape().len();
                self.set_box(*local, vec![Default::default(); rank])
            }
            StmtKind::Reducer { reducer } => self.declare_reducer(*reducer),
            StmtKind::Op { results, op } => self.op(results, op),
            StmtKind::If { cond, then, other } => {
                let cond = self.agreed(*cond, &[then, other])?;
                let (then, other) = (self.inner(then)?, self.inner(other)?);
                self.span = s.span;
                self.emit(StmtKind::If { cond, then, other })
            }
            StmtKind::While { cond, body } => self.while_loop(*cond, body),
            StmtKind::For { carry, .. } if !carry.is_empty() => self.refuse(
                "ring slots have no code for this target yet",
                "use `pipelined` loops, or run it with `--target cpu`",
            ),
            StmtKind::For { .. } => self.for_loop(s),
            StmtKind::Parallel { vars, extents, body } => self.run_parallel(vars, extents, body),
            StmtKind::Roles(_) | StmtKind::Next { .. } => self.refuse(
                "roles have no code for this target yet",
                "use `pipelined` loops, or run it with `--target cpu`",
            ),
            StmtKind::Store { mem, index, value } => {
                let (index, value) = (self.scalars(index)?, self.scalar(*value)?);
                let one = if self.own(*mem) { None } else { self.once()? };
                self.when(one, |s| s.emit(StmtKind::Store { mem: *mem, index, value }))
            }
            kind => {
                let mut kind = kind.clone();
                kind.replace_operands(|e| self.scalar(e))?;
                self.emit(kind)
            }
        }
    }

    /// Memory of each thread by itself.
    fn own(&self, mem: Mem) -> bool {
        matches!(mem, Mem::Buffer(b) if self.k.kernel().buffers[b].home == Home::Thread)
    }

    fn scalars(&mut self, list: &[ExprId]) -> Result<Args> {
        list.iter().map(|&e| self.scalar(e)).collect()
    }

    fn for_loop(&mut self, s: &Stmt) -> Result<()> {
        let mut kind = s.kind.clone();
        let inside = s.kind.blocks();
        kind.replace_operands(|e| self.agreed(e, &inside))?;
        let StmtKind::For { kind: run, body, .. } = &mut kind else { return Ok(()) };
        if let LoopKind::Pipelined { .. } = run {
            *run = LoopKind::Serial;
        }
        let late = self.begin_late(body)?;
        *body = self.inner(body)?;
        self.span = s.span;
        self.emit(kind)?;
        self.end_late(late)
    }

    /// `let x = e`, `x = e`
    pub fn assign(&mut self, l: LocalId, value: ExprId) -> Result<()> {
        let storage = self.storage(l)?;
        let bounds = self.box_of(value)?;
        let axes = storage.axes().to_vec();
        let elem = self.k.kernel().body.locals[l].ty.elem().unwrap_or(Elem::Index);
        let own = self.reads(value, l);
        if matches!(storage, Storage::Shared { .. }) && own {
            let temp = self.new_storage("next", elem, axes.clone(), false)?;
            self.nest(&axes, Inner::Unroll, &mut |s, at| s.put_value(&temp, at, value, &bounds, false))?;
            self.nest(&axes, Inner::Unroll, &mut |s, at| {
                let v = s.load(&temp, elem, at)?;
                s.put(&storage, at, v)
            })?;
        } else {
            self.nest(&axes, Inner::Unroll, &mut |s, at| s.put_value(&storage, at, value, &bounds, own))?;
        }
        self.set_box(l, bounds)
    }

    /// Writes an element of a value. What is not valid is zero, and not computed with, where that could go wrong; `own`
    /// where the value asks for what was there.
    pub fn put_value(
        &mut self,
        to: &Storage,
        at: &[Coord],
        value: ExprId,
        bounds: &[Bound],
        own: bool,
    ) -> Result<()> {
        let ok = if self.may_fail(value) { self.valid(bounds, at)? } else { None };
        let Some(ok) = ok else {
            let v = self.eval(value, at)?;
            return self.put(to, at, v);
        };
        let elem = self.ty(value).elem().unwrap_or(Elem::Index);
        let zero = self.k.constant_at(elem, 0, self.span)?;
        let given = |s: &mut Self| {
            let v = s.eval(value, at)?;
            s.put(to, at, v)
        };
        if own {
            let then = self.block_of(given)?;
            let other = self.block_of(|s| s.put(to, at, zero))?;
            return self.emit(StmtKind::If { cond: ok, then, other });
        }
        self.put(to, at, zero)?;
        self.when(Some(ok), given)
    }

    fn reads(&self, e: ExprId, l: LocalId) -> bool {
        self.k.body().holds(e, |x, _| *x == Expr::Local(l))
    }

    /// Elements of no meaning may have no result: integer division, conversion to integers, indexing.
    pub fn may_fail(&self, e: ExprId) -> bool {
        let body = &self.k.kernel().body;
        let whole = |e: ExprId| body.type_of(e).elem().is_some_and(Elem::is_integer);
        body.holds(e, |x, _| match x {
            Expr::Binary(BinOp::Div | BinOp::Rem | BinOp::Shl | BinOp::Shr, a, _) => whole(*a),
            Expr::Math { f: MathFn::CeilDiv, .. } => true,
            Expr::Cast { to, value, .. } => to.is_integer() && !whole(*value),
            Expr::Element { .. } | Expr::Pick { .. } | Expr::Slice { .. } => true,
            _ => false,
        })
    }

    /// `x op= e`: only where `e` is valid.
    fn update(&mut self, l: LocalId, op: Update, value: ExprId) -> Result<()> {
        let storage = self.storage(l)?;
        let shape: Shape = self.k.kernel().body.locals[l].ty.shape().into();
        let elem = self.k.kernel().body.locals[l].ty.elem().unwrap_or(Elem::Index);
        let own = self.boxes.get(&l).cloned().unwrap_or_else(|| self.full(shape.len()));
        let inner = self.joint_box(&[value], &shape)?;
        let bounds = self.intersect(&own, &inner)?;
        let bounds = self.named_box("n", bounds)?;
        let axes = storage.axes().to_vec();
        let temp = match matches!(storage, Storage::Shared { .. }) && self.reads(value, l) {
            true => {
                let temp = self.new_storage("next", elem, axes.clone(), false)?;
                self.nest(&axes, Inner::Unroll, &mut |s, at| s.put_value(&temp, at, value, &bounds, false))?;
                Some(temp)
            }
            false => None,
        };
        self.nest(&axes, Inner::Unroll, &mut |s, at| {
            let ok = s.valid(&bounds, at)?;
            s.when(ok, |s| {
                let old = s.load(&storage, elem, at)?;
                let v = match &temp {
                    Some(t) => s.load(t, elem, at)?,
                    None => s.eval(value, at)?,
                };
                let new = s.bin(op.binary(), old, v)?;
                s.put(&storage, at, new)
            })
        })
    }

    fn op(&mut self, results: &[LocalId], op: &Op) -> Result<()> {
        match op {
            Op::Read { from, pad } => match results {
                [r] => self.read(*r, from, *pad),
                _ => Ok(()),
            },
            Op::Write { to, value } => self.write(to, *value),
            Op::Gemm { a, b, into, init, precision } => self.gemm(*a, *b, *into, *init, *precision),
            Op::Reduce { comb, inputs, axis } => self.reduce(results, *comb, inputs, *axis),
            Op::Scan { comb, inputs, axis, reverse, exclusive } => {
                let kind = scan::Kind {
                    comb: *comb,
                    axis: usize::from(*axis),
                    reverse: *reverse,
                    exclusive: *exclusive,
                };
                self.scan(results, kind, inputs)
            }
            Op::Fold { reducer, index, values } => self.fold_reducer(*reducer, index, values),
            Op::Join { reducer } => self.join_reducer(results, *reducer),
            Op::Atomic { op, at: Place::Region(to), value, expected } => {
                self.atomic_region(results, *op, to, *value, *expected)
            }
            Op::Atomic { at: Place::Element { .. }, .. } => self.atomic(results, op),
            Op::AllReduce { comb, inputs, over } => {
                let inputs = self.scalars(inputs)?;
                let over = match over {
                    Over::Axes(axes) => {
                        let digits = axes.iter().filter_map(|l| self.lanes.named.get(l).copied());
                        Over::Axes(self.over(digits.collect::<Vec<_>>()).into_iter().collect())
                    }
                    team => team.clone(),
                };
                self.keep(results, Op::AllReduce { comb: *comb, inputs, over })
            }
            Op::Print { parts } => {
                let tile = parts.iter().any(|p| matches!(p, Text::Value(e) if self.ty(*e).is_tile()));
                if tile {
                    return self.refuse(
                        "a tile is printed, which this target does not do",
                        "print elements, or run it with `--target interp`",
                    );
                }
                let op = op.map_operands(|e| self.scalar(e))?;
                let one = self.once()?;
                self.when(one, |s| s.keep(results, op))
            }
            Op::Shuffle { .. }
            | Op::Vote { .. }
            | Op::Once { .. }
            | Op::Barrier { .. }
            | Op::Assert { .. } => {
                let op = op.map_operands(|e| self.scalar(e))?;
                self.keep(results, op)
            }
            Op::Acquire { .. }
            | Op::Wait { .. }
            | Op::Commit { .. }
            | Op::Release { .. }
            | Op::Await { .. }
            | Op::Take { .. }
            | Op::Pass { .. }
            | Op::CopyAsync { .. }
            | Op::Issue { .. }
            | Op::Fence { .. } => self.refuse(
                "asynchronous work has no code for this target yet",
                "use `pipelined` loops, or run it with `--target cpu`",
            ),
        }
    }

    fn keep(&mut self, results: &[LocalId], op: Op) -> Result<()> {
        self.emit(StmtKind::Op { results: results.iter().copied().collect(), op })
    }

    /// An atomic on one element: by one thread of the block where the block acts; all threads learn the result.
    fn atomic(&mut self, results: &[LocalId], op: &Op) -> Result<()> {
        let op = op.map_operands(|e| self.scalar(e))?;
        let one = self.once()?;
        let Some(&r) = results.first() else { return self.when(one, |s| s.keep(&[], op)) };
        if one.is_none() {
            return self.keep(results, op);
        }
        let elem = self.k.kernel().body.locals[r].ty.elem().unwrap_or(Elem::Index);
        let told = self.buffer("told", Home::Shared, elem, [1u32][..].into())?;
        let zero = self.int(0)?;
        self.when(one, |s| {
            let got = s.k.op(op, &["before"], s.span)?;
            let v = s.get(got[0])?;
            s.put_element(told, [zero][..].into(), v)
        })?;
        let v = self.expr(Expr::Element { mem: Mem::Buffer(told), index: [zero][..].into(), or: None })?;
        let value = self.converted(v, elem)?;
        self.emit(StmtKind::Let { local: r, value })
    }

    fn run_parallel(&mut self, vars: &[LocalId], extents: &[ExprId], body: &Block) -> Result<()> {
        let outer = std::mem::replace(&mut self.parallel, true);
        for &v in vars {
            self.k.kernel_mut().body.locals[v].kind = LocalKind::Let;
        }
        let result = match self.assign.stmts.get(&self.stmt).and_then(|l| l.first()).cloned() {
            Some(axes) => self.canonical(&axes).and_then(|one| {
                self.when(one, |s| {
                    s.nest(&axes, Inner::Unroll, &mut |s, at| {
                        for (&v, c) in vars.iter().zip(at) {
                            s.emit(StmtKind::Let { local: v, value: c.value })?;
                            s.running.insert(v, c.clone());
                        }
                        s.block(body)
                    })
                })
            }),
            None => {
                let extents = self.scalars(extents)?;
                self.strided(vars, &extents, body)
            }
        };
        vars.iter().for_each(|v| {
            self.running.remove(v);
        });
        self.parallel = outer;
        result
    }

    /// Extents of run time: the last index strides over the threads.
    fn strided(&mut self, vars: &[LocalId], extents: &[ExprId], body: &Block) -> Result<()> {
        let (Some((&v, rest)), Some((&n, more))) = (vars.split_first(), extents.split_first()) else {
            return self.block(body);
        };
        let name = self.k.kernel().body.locals[v].name.clone();
        let zero = self.int(0)?;
        if !rest.is_empty() {
            return self.for_(&name, LoopKind::Serial, zero, n, |s, i| {
                s.emit(StmtKind::Let { local: v, value: i })?;
                s.running.insert(v, Coord::free(i));
                s.strided(rest, more, body)
            });
        }
        let count = self.int(self.lanes.count.into())?;
        let rounds = self.math(MathFn::CeilDiv, &[n, count])?;
        self.for_("round", LoopKind::Serial, zero, rounds, |s, r| {
            let me = s.lanes.value(s.k, s.lanes.count, 1)?;
            let before = s.scale(r, s.lanes.count)?;
            let i = s.add(before, me)?;
            s.emit(StmtKind::Let { local: v, value: i })?;
            let i = s.get(v)?;
            s.running.insert(v, Coord::free(i));
            let inside = s.bin(BinOp::Lt, i, n)?;
            s.when(Some(inside), |s| s.block(body))
        })
    }
}
