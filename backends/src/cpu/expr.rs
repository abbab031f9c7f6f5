//! Expressions at one position, for a whole vector of lanes or a scalar.

use super::emit::{Int, Ptr};
use super::error::{CpuError, Result};
use super::frame::{Frame, TileMem};
use super::value::{Val, scratch_bytes};
use pantile_ir::program::{Args, BinOp, Elem, Expr, ExprId, LocalKind, MathFn, Mem, SliceAxis, Type};

/// An index along one axis: `base`, plus the lane number on the one axis that the vector runs along.
#[derive(Clone, Copy, Debug)]
pub struct Ix<'c> {
    pub base: Int<'c>,
    pub lanes: bool,
}

impl<'c> Ix<'c> {
    pub fn at(base: Int<'c>) -> Ix<'c> {
        Ix { base, lanes: false }
    }
}

impl<'a, 'c> Frame<'a, 'c> {
    /// A scalar expression.
    pub fn scalar(&self, expr: ExprId) -> Result<Val<'c>> {
        self.eval(expr, &[], 1)
    }

    pub fn index_expr(&self, expr: ExprId) -> Result<Int<'c>> {
        let v = self.scalar(expr)?;
        Ok(self.e.convert(v, Elem::Index, false).int())
    }

    /// The value of `expr` at `pos` (one entry for each of its axes; empty for a scalar). The result has `lanes`
    /// lanes, or one where it does not depend on the lane.
    pub fn eval(&self, expr: ExprId, pos: &[Ix<'c>], lanes: u32) -> Result<Val<'c>> {
        let body = &self.kernel.body;
        let shape = body.type_of(expr).shape();
        let child = |c: ExprId| -> Result<Val<'c>> {
            let inner = body.type_of(c).shape();
            self.eval(c, &self.stretch_pos(pos, inner, shape), lanes)
        };
        match &body.exprs[expr] {
            Expr::Const { elem, bits } => Ok(self.e.constant(*elem, *bits)),
            Expr::Local(id) => self.eval_local(*id, pos, lanes),
            Expr::Dim(d) => Ok(Val::index(self.dims[d.index()])),
            Expr::Arg(a) => self.eval_arg(*a),
            Expr::Unary(op, a) => Ok(self.e.unary(*op, child(*a)?)),
            Expr::Binary(op, a, b) if op.is_logical() && pos.is_empty() => self.lazy_logical(*op, *a, *b),
            Expr::Binary(op, a, b) => Ok(self.e.binary(*op, child(*a)?, child(*b)?, self.contract)),
            Expr::Select { cond, then, other } if pos.is_empty() => self.lazy_select(*cond, *then, *other),
            Expr::Select { cond, then, other } => {
                Ok(self.e.choose(child(*cond)?, child(*then)?, child(*other)?))
            }
            Expr::Math { f, args, .. } => {
                let mut vals = Vec::with_capacity(args.len());
                for &a in args {
                    vals.push(child(a)?);
                }
                Ok(self.math(*f, &vals))
            }
            Expr::Cast { to, sat, value } => Ok(self.e.convert(child(*value)?, *to, *sat)),
            Expr::Bits { to, value } => {
                if body.type_of(*value).shape() == shape {
                    let v = child(*value)?;
                    let raw = self.e.pack(v);
                    let ty = self.e.lanes_of(self.e.mem_type(Elem::D(*to)), v.lanes);
                    return Ok(self.e.wrap(self.e.unpack(self.e.bitcast(raw, ty), Elem::D(*to), v.lanes)));
                }
                self.lane_wise(pos, lanes, |p| self.rescaled_bits(*value, Elem::D(*to), p))
            }
            Expr::Intrinsic { id, args } => {
                let mut vals = Vec::with_capacity(args.len());
                for &a in args {
                    vals.push(child(a)?);
                }
                self.pure_call(&self.program.intrinsics[*id].means, &vals).map(|r| r[0])
            }
            Expr::Element { mem, index, or } => self.element(*mem, index, *or, body.type_of(expr)),
            Expr::Pick { tile, index } => {
                let at = self.tile_index("a tile", index, body.type_of(*tile).shape())?;
                self.eval(*tile, &at, 1)
            }
            Expr::Splat { value, .. } => self.scalar(*value),
            Expr::Iota { axis, .. } => {
                let ix = pos[*axis as usize];
                let base = Val::index(ix.base);
                if !ix.lanes || lanes == 1 {
                    return Ok(base);
                }
                let steps = Val { v: self.e.lane_numbers(lanes).into(), elem: Elem::Index, lanes };
                Ok(self.e.binary(BinOp::Add, base, steps, false))
            }
            Expr::Transpose(a) => {
                let mut p = pos.to_vec();
                let n = p.len();
                p.swap(n - 1, n - 2);
                self.eval(*a, &p, lanes)
            }
            Expr::InsertAxis { value, axis } => {
                let mut p = pos.to_vec();
                p.remove(*axis as usize);
                self.eval(*value, &p, lanes)
            }
            Expr::Slice { value, axes } => self.eval(*value, &self.slice_pos(axes, pos)?, lanes),
            Expr::Broadcast { value, .. } => child(*value),
            Expr::Reshape { value, .. } => {
                let from = body.type_of(*value).shape().to_vec();
                self.lane_wise(pos, lanes, |p| {
                    let linear = self.linear(p, shape);
                    self.eval(*value, &self.unlinear(linear, &from), 1)
                })
            }
        }
    }

    fn slice_pos(&self, axes: &[SliceAxis], pos: &[Ix<'c>]) -> Result<Vec<Ix<'c>>> {
        let mut kept = pos.iter();
        let mut out = Vec::with_capacity(axes.len());
        for axis in axes {
            match *axis {
                SliceAxis::At(i) => out.push(Ix::at(self.index_expr(i)?)),
                SliceAxis::Span { start, .. } => {
                    let start = self.index_expr(start)?;
                    if let Some(p) = kept.next() {
                        out.push(Ix { base: self.e.add(start, p.base), lanes: p.lanes });
                    }
                }
            }
        }
        Ok(out)
    }

    fn eval_local(&self, id: pantile_ir::program::LocalId, pos: &[Ix<'c>], lanes: u32) -> Result<Val<'c>> {
        match self.tile_place(id) {
            Some((mem, _)) => Ok(self.load_tile(&mem, pos, lanes)),
            None => Ok(match self.kernel.body.locals[id].kind {
                // what the block does once sees the first thread, as all see the same
                LocalKind::Thread(axis) => {
                    let linear = self.thread.get().map_or(self.e.int(0), |t| t.linear);
                    Val::index(self.thread_axis(axis as usize, linear))
                }
                _ => self.get_scalar(id),
            }),
        }
    }

    fn eval_arg(&self, id: pantile_ir::program::ArgId) -> Result<Val<'c>> {
        let v = self.scalars.get(&id).copied();
        v.ok_or_else(|| CpuError::Llvm("a tensor stands where a scalar belongs".into()))
    }

    /// The index along a thread axis; the last axis is fastest.
    pub fn thread_axis(&self, axis: usize, linear: Int<'c>) -> Int<'c> {
        let Some(threads) = &self.kernel.threads else { return linear };
        let inner: u32 = threads.axes[axis + 1..].iter().map(|&(_, n)| n).product();
        let n = threads.axes[axis].1;
        let q = self.e.b.build_int_unsigned_div(linear, self.e.int(inner as i64), "").unwrap();
        if axis == 0 { q } else { self.e.b.build_int_unsigned_rem(q, self.e.int(n as i64), "").unwrap() }
    }

    fn lazy_logical(&self, op: BinOp, a: ExprId, b: ExprId) -> Result<Val<'c>> {
        let left = self.scalar(a)?.int();
        let decided = self.e.bool(op == BinOp::LogicalOr).into();
        let mut right = Ok(Val::scalar(left, Elem::BOOL));
        let v = if op == BinOp::LogicalAnd {
            self.e.if_value(left, || self.keep(b, &mut right, decided), || decided)
        } else {
            self.e.if_value(left, || decided, || self.keep(b, &mut right, decided))
        };
        right?;
        Ok(Val::scalar(v, Elem::BOOL))
    }

    /// Evaluates inside a closure that cannot fail; the error is kept for afterwards.
    fn keep(
        &self,
        expr: ExprId,
        slot: &mut Result<Val<'c>>,
        fallback: super::emit::Any<'c>,
    ) -> super::emit::Any<'c> {
        *slot = self.scalar(expr);
        slot.as_ref().map_or(fallback, |v| v.v)
    }

    fn lazy_select(&self, cond: ExprId, then: ExprId, other: ExprId) -> Result<Val<'c>> {
        let c = self.scalar(cond)?.int();
        let elem = self.kernel.body.type_of(then).elem().unwrap_or(Elem::Index);
        let fallback = self.e.zero(self.e.reg_type(elem));
        let (mut a, mut b) = (Ok(Val::scalar(fallback, elem)), Ok(Val::scalar(fallback, elem)));
        let v =
            self.e.if_value(c, || self.keep(then, &mut a, fallback), || self.keep(other, &mut b, fallback));
        a?;
        b?;
        Ok(Val::scalar(v, elem))
    }

    /// A tile element or vector of elements.
    pub fn load_tile(&self, mem: &TileMem<'c>, pos: &[Ix<'c>], lanes: u32) -> Val<'c> {
        let along = pos.iter().position(|p| p.lanes);
        let at = self.tile_address(mem, pos);
        match along {
            None => self.e.load_val(at, mem.elem, 1),
            Some(_) if lanes == 1 => self.e.load_val(at, mem.elem, 1),
            Some(axis) if mem.strides[axis] == 1 => self.e.load_val(at, mem.elem, lanes),
            Some(axis) => {
                let step = mem.strides[axis] * scratch_bytes(mem.elem) as i64;
                let part =
                    |k: u32| self.e.load_val(self.e.offset(at, self.e.int(step * k as i64)), mem.elem, 1);
                let parts: Vec<Val> = (0..lanes).map(part).collect();
                self.e.gather_lanes(&parts)
            }
        }
    }

    /// Address of the element at `pos`, lane 0.
    pub fn tile_address(&self, mem: &TileMem<'c>, pos: &[Ix<'c>]) -> Ptr<'c> {
        let mut at = self.e.int(0);
        for (p, &s) in pos.iter().zip(&mem.strides) {
            at = self.e.add(at, self.e.mul(p.base, self.e.int(s)));
        }
        self.e.offset(mem.base, self.e.mul(at, self.e.int(scratch_bytes(mem.elem) as i64)))
    }

    /// Runs `f` for each lane's own position.
    fn lane_wise(
        &self,
        pos: &[Ix<'c>],
        lanes: u32,
        f: impl Fn(&[Ix<'c>]) -> Result<Val<'c>>,
    ) -> Result<Val<'c>> {
        if lanes == 1 || !pos.iter().any(|p| p.lanes) {
            return f(pos);
        }
        let mut parts = Vec::with_capacity(lanes as usize);
        for k in 0..lanes {
            let step =
                |p: &Ix<'c>| Ix::at(if p.lanes { self.e.add(p.base, self.e.int(k as i64)) } else { p.base });
            let at: Vec<Ix> = pos.iter().map(step).collect();
            parts.push(f(&at)?);
        }
        Ok(self.e.gather_lanes(&parts))
    }

    fn linear(&self, pos: &[Ix<'c>], shape: &[u32]) -> Int<'c> {
        let mut at = self.e.int(0);
        for (p, &n) in pos.iter().zip(shape) {
            at = self.e.add(self.e.mul(at, self.e.int(n as i64)), p.base);
        }
        at
    }

    fn unlinear(&self, mut linear: Int<'c>, shape: &[u32]) -> Vec<Ix<'c>> {
        let mut out = vec![Ix::at(linear); shape.len()];
        for (axis, &n) in shape.iter().enumerate().rev() {
            let n = self.e.int(n as i64);
            out[axis] = Ix::at(self.e.b.build_int_unsigned_rem(linear, n, "").unwrap());
            linear = self.e.b.build_int_unsigned_div(linear, n, "").unwrap();
        }
        out
    }

    /// A bit view whose last axis has other extents: takes elements apart or joins them, lowest first.
    fn rescaled_bits(&self, value: ExprId, to: Elem, pos: &[Ix<'c>]) -> Result<Val<'c>> {
        let e = self.e;
        let from = self.kernel.body.type_of(value).elem().unwrap_or(to);
        let bits = |x: Elem| x.dtype().map_or(64, |d| d.bits());
        let (bf, bt) = (bits(from), bits(to));
        let Some((last, head)) = pos.split_last() else { return self.eval(value, pos, 1) };
        let raw = |ix: Int<'c>| -> Result<super::emit::Any<'c>> {
            let mut p = head.to_vec();
            p.push(Ix::at(ix));
            let v = self.eval(value, &p, 1)?;
            let int = e.ctx.custom_width_int_type(bf.max(8).try_into().expect("a width")).expect("a width");
            let wide = e.zext(e.bitcast(e.pack(v), int.into()), e.i64().into());
            // 4 bits are held in 8, a sign among them
            Ok(if bf < 8 { e.int_and(wide, e.int((1 << bf) - 1).into()) } else { wide })
        };
        let word = if bf > bt {
            let ratio = e.int((bf / bt) as i64);
            let whole = raw(e.b.build_int_unsigned_div(last.base, ratio, "").unwrap())?;
            let part = e.b.build_int_unsigned_rem(last.base, ratio, "").unwrap();
            e.lshr(whole, e.mul(part, e.int(bt as i64)).into())
        } else {
            let ratio = bt / bf;
            let mut all: super::emit::Any = e.int(0).into();
            for k in 0..ratio {
                let ix = e.add(e.mul(last.base, e.int(ratio as i64)), e.int(k as i64));
                all = e.int_or(all, e.shl(raw(ix)?, e.int((k * bf) as i64).into()));
            }
            all
        };
        let int = e.ctx.custom_width_int_type(bt.max(8).try_into().expect("a width")).expect("a width");
        let narrow = if bt == 64 { word } else { e.trunc(word, int.into()) };
        let v = e.unpack(e.bitcast(narrow, e.mem_type(to)), to, 1);
        Ok(e.wrap(v))
    }

    /// A call of a pure function of the language, on lanes.
    pub fn pure_call(&self, f: &pantile_ir::program::PureFn, args: &[Val<'c>]) -> Result<Vec<Val<'c>>> {
        let mut env: std::collections::HashMap<_, Val<'c>> =
            f.params.iter().copied().zip(args.iter().copied()).collect();
        for &(local, value) in &f.lets {
            let v = self.pure_eval(f, &env, value)?;
            env.insert(local, v);
        }
        f.results.iter().map(|&r| self.pure_eval(f, &env, r)).collect()
    }

    fn pure_eval(
        &self,
        f: &pantile_ir::program::PureFn,
        env: &std::collections::HashMap<pantile_ir::program::LocalId, Val<'c>>,
        expr: ExprId,
    ) -> Result<Val<'c>> {
        let go = |x: ExprId| self.pure_eval(f, env, x);
        let many = |args: &Args| args.iter().map(|&a| go(a)).collect::<Result<Vec<_>>>();
        Ok(match &f.body.exprs[expr] {
            Expr::Const { elem, bits } => self.e.constant(*elem, *bits),
            Expr::Local(id) => match env.get(id) {
                Some(v) => *v,
                None => return Err(CpuError::Llvm("a pure function reads an unknown name".into())),
            },
            Expr::Unary(op, a) => self.e.unary(*op, go(*a)?),
            Expr::Binary(op, a, b) => self.e.binary(*op, go(*a)?, go(*b)?, self.contract),
            Expr::Select { cond, then, other } => self.e.choose(go(*cond)?, go(*then)?, go(*other)?),
            Expr::Math { f: m, args, .. } => self.math(*m, &many(args)?),
            Expr::Cast { to, sat, value } => self.e.convert(go(*value)?, *to, *sat),
            Expr::Bits { to, value } => {
                let v = go(*value)?;
                let ty = self.e.lanes_of(self.e.mem_type(Elem::D(*to)), v.lanes);
                self.e.wrap(self.e.unpack(self.e.bitcast(self.e.pack(v), ty), Elem::D(*to), v.lanes))
            }
            Expr::Intrinsic { id, args } => {
                self.pure_call(&self.program.intrinsics[*id].means, &many(args)?)?[0]
            }
            _ => return Err(CpuError::Llvm("a pure function holds something that is not scalar".into())),
        })
    }

    /// A function of the language; operands stretch to the widest.
    pub fn math(&self, f: MathFn, args: &[Val<'c>]) -> Val<'c> {
        let lanes = args.iter().map(|a| a.lanes).max().unwrap_or(1);
        let args: Vec<Val> = args.iter().map(|&a| self.e.widen(a, lanes)).collect();
        match self.e.simple_math(f, &args) {
            Some(v) => v,
            None => self.e.elementary(f, &args),
        }
    }

    pub fn mem_dims(&self, mem: Mem) -> Vec<Int<'c>> {
        match mem {
            Mem::Tensor(id) => self.tensors[&id].dims.clone(),
            Mem::Buffer(id) => self.buffer(id).shape.iter().map(|&n| self.e.int(n as i64)).collect(),
            Mem::Slot { token, field } => {
                self.slot_field(token, field).shape.iter().map(|&n| self.e.int(n as i64)).collect()
            }
        }
    }

    /// `x[i, j]` or `x[i, j] or v`.
    fn element(&self, mem: Mem, index: &Args, or: Option<ExprId>, ty: &Type) -> Result<Val<'c>> {
        let Some(or) = or else { return self.load_element(mem, &self.element_index(mem, index)?) };
        let at = index.iter().map(|&i| self.index_expr(i)).collect::<Result<Vec<_>>>()?;
        let mut inside = self.e.bool(true);
        for (&i, &n) in at.iter().zip(&self.mem_dims(mem)) {
            // one unsigned compare holds both ends
            inside = self.e.and(inside, self.e.cmp(inkwell::IntPredicate::ULT, i, n));
        }
        let elem = ty.elem().unwrap_or(Elem::Index);
        let fallback = self.e.zero(self.e.reg_type(elem));
        let (mut a, mut b) = (Ok(Val::scalar(fallback, elem)), Ok(Val::scalar(fallback, elem)));
        let v = self.e.if_value(
            inside,
            || {
                a = self.load_element(mem, &at);
                a.as_ref().map_or(fallback, |v| v.v)
            },
            || self.keep(or, &mut b, fallback),
        );
        a?;
        b?;
        Ok(Val::scalar(v, elem))
    }
}
