//! Tiles: filling, indexing, products, folds, and the functions that make or reshape tiles.

use super::Elab;
use super::calls::CallArgs;
use super::consts::{Callable, Const};
use super::library::Entity;
use super::scope::Value;
use crate::ast::{self, AxisIndex, ExprKind, ItemKind, Named};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use crate::typing;
use smallvec::SmallVec;

impl<'a> Elab<'a> {
    /// `zeros f32[BM, BN]`, `full f32[BM](x)`
    pub(crate) fn fill(
        &mut self,
        value: Option<&'a ast::Expr>,
        elem: &'a ast::Elem,
        shape: &'a [ast::Expr],
        span: Span,
    ) -> Value {
        let elem = self.elem_type(elem);
        let shape = self.static_shape(shape);
        let (Some(elem), Some(shape)) = (elem, shape) else { return Value::Poison };
        let value = match value {
            Some(e) => {
                let v = self.value(e, Some(elem));
                v.and_then(|v| self.need_elem(v, elem, "the value of `full`", e.span))
            }
            None if elem == Elem::BOOL => self.adapt(&Const::Bool(false), elem, span),
            None => self.adapt(&Const::Int(0), elem, span),
        };
        let Some(value) = value else { return Value::Poison };
        self.push(Expr::Splat { value, shape }, span).map_or(Value::Poison, Value::Expr)
    }

    /// A value of exactly this element type; another is reported with the conversion to write.
    pub(crate) fn need_elem(&mut self, v: ExprId, elem: Elem, what: &str, span: Span) -> Option<ExprId> {
        let found = self.elem(v);
        if found == elem {
            return Some(v);
        }
        let text = format!("{what} is {elem}, not {found}");
        let d = Diagnostic::error(codes::TYPE_MISMATCH, self.sp(span), text)
            .label(format!("this is {}", self.ty(v)));
        self.report(d.help(format!("write `{elem}(...)`")));
        None
    }

    // ---- index of a tile value ----------------------------------------------------------------------------------

    pub(crate) fn tile_index(&mut self, tile: ExprId, axes: &'a [AxisIndex], span: Span) -> Value {
        let shape: Shape = self.ty(tile).shape().iter().copied().collect();
        let given = axes.iter().filter(|a| !matches!(a, AxisIndex::New(_))).count();
        if shape.is_empty() || given != shape.len() {
            let ty = self.ty(tile).clone();
            let text = match shape.is_empty() {
                true => format!("a scalar ({ty}) has no elements to index"),
                false => format!("{ty} has {} axes, but {given} indices are given", shape.len()),
            };
            let d = Diagnostic::error(codes::INDEX_COUNT, self.sp(span), text);
            self.report(d.help("give one index for each axis, `:` for a whole one, `_` for a new one"));
            return Value::Poison;
        }
        let mut parts: SmallVec<[SliceAxis; 4]> = SmallVec::new();
        let mut cut = false;
        for (axis, &extent) in axes.iter().filter(|a| !matches!(a, AxisIndex::New(_))).zip(&shape) {
            cut |= !matches!(axis, AxisIndex::Full(_));
            match self.slice_axis(axis, extent) {
                Some(part) => parts.push(part),
                None => return Value::Poison,
            }
        }
        let new = axes.iter().any(|a| matches!(a, AxisIndex::New(_)));
        let picks: Option<Args> =
            parts.iter().map(|p| if let SliceAxis::At(e) = p { Some(*e) } else { None }).collect();
        if let (Some(index), false) = (picks, new) {
            return self.push(Expr::Pick { tile, index }, span).map_or(Value::Poison, Value::Expr);
        }
        let mut value = tile;
        if cut {
            match self.push(Expr::Slice { value, axes: parts }, span) {
                Some(v) => value = v,
                None => return Value::Poison,
            }
        }
        let mut at = 0u8;
        for axis in axes {
            match axis {
                AxisIndex::New(s) => match self.push(Expr::InsertAxis { value, axis: at }, *s) {
                    Some(v) => value = v,
                    None => return Value::Poison,
                },
                AxisIndex::At(_) => continue,
                _ => {}
            }
            at += 1;
        }
        Value::Expr(value)
    }

    fn slice_axis(&mut self, axis: &'a AxisIndex, extent: u32) -> Option<SliceAxis> {
        match axis {
            AxisIndex::At(e) => {
                let at = self.subscript(e)?;
                if !self.ty(at).is_scalar() {
                    let d = Diagnostic::error(
                        codes::GATHER_TYPE,
                        self.sp(e.span),
                        "a tile value is not gathered by a list of indices",
                    );
                    self.report(d.help(
                        "gather where the rows are read from memory, or keep the rows in `shared` memory",
                    ));
                    return None;
                }
                Some(SliceAxis::At(at))
            }
            AxisIndex::Extent { start, len, limit, clip_low, span } => {
                if limit.is_some() || *clip_low {
                    let d = Diagnostic::error(
                        codes::TILE_LIMIT,
                        self.sp(*span),
                        "`limit` and `clip low` belong to reads of memory",
                    );
                    self.report(d.help("a part of a tile value lies inside of it"));
                    return None;
                }
                let start = self.subscript(start);
                let len = self.const_u32(len, "the extent of a slice", 1);
                Some(SliceAxis::Span { start: start?, len: len? })
            }
            AxisIndex::Range { lo, hi, span } => {
                let (start, len) = self.fixed_range(lo, hi, *span)?;
                Some(SliceAxis::Span { start, len })
            }
            AxisIndex::Full(span) | AxisIndex::New(span) => {
                let start = self.index_const(0, *span)?;
                Some(SliceAxis::Span { start, len: extent })
            }
        }
    }

    // ---- products -----------------------------------------------------------------------------------------------

    /// `a @ b` as a value: a fresh accumulator, overwritten.
    pub(crate) fn product(
        &mut self,
        a: &'a ast::Expr,
        b: &'a ast::Expr,
        options: Option<&'a [Named]>,
        span: Span,
    ) -> Value {
        let (x, y) = (self.value(a, None), self.value(b, None));
        let (Some(x), Some(y)) = (x, y) else { return Value::Poison };
        let elem = typing::product_elem(self.elem(x), self.elem(y)).unwrap_or(Elem::F32);
        let extent = |t: &Type, axis: usize| t.shape().get(axis).copied().unwrap_or(1);
        let ty = Type::tile(elem, [extent(self.ty(x), 0), extent(self.ty(y), 1)]);
        let local = self.new_local("product", ty, LocalKind::Var, span);
        if self.stmt(StmtKind::Declare { local }, span).is_none() {
            return Value::Poison;
        }
        let precision = self.precision(options.unwrap_or(&[]));
        let op = Op::Gemm { a: x, b: y, into: local, init: Init::Overwrite, precision };
        if self.op(op, span).is_none() {
            return Value::Poison;
        }
        self.f.temps.push(local);
        self.read_local(local, span).map_or(Value::Poison, Value::Expr)
    }

    /// `c += a @ b`, `c = a @ b`
    pub(crate) fn product_into(
        &mut self,
        into: LocalId,
        a: &'a ast::Expr,
        b: &'a ast::Expr,
        init: Init,
        options: &'a [Named],
        span: Span,
    ) {
        let (x, y) = (self.value(a, None), self.value(b, None));
        let precision = self.precision(options);
        if let (Some(a), Some(b)) = (x, y) {
            self.effect(Op::Gemm { a, b, into, init, precision }, span);
        }
    }

    /// `{ precision = tf32 }`; products in f64 have no lesser one.
    pub(crate) fn precision(&mut self, options: &'a [Named]) -> Precision {
        let mut found = Precision::Full;
        for option in options {
            let word = if let ExprKind::Name(id) = &option.value.kind { id.name.as_str() } else { "" };
            match (option.name.name.as_str(), word) {
                ("precision", "tf32") => found = Precision::Tf32,
                ("precision", "full") => found = Precision::Full,
                ("precision", _) => {
                    let d = Diagnostic::error(
                        codes::UNKNOWN_OPTION,
                        self.sp(option.value.span),
                        "there is no such precision",
                    );
                    self.report(d.help("write `precision = tf32` or `precision = full`"));
                }
                (name, _) => {
                    let d = Diagnostic::error(
                        codes::UNKNOWN_OPTION,
                        self.sp(option.name.span),
                        format!("products have no option `{name}`"),
                    );
                    self.report(d.help("the option of a product is `precision`"));
                }
            }
        }
        if self.widen { Precision::Full } else { found }
    }

    // ---- folds --------------------------------------------------------------------------------------------------

    /// `add`, `max`, … or the name of a `combine`.
    pub(crate) fn combiner(&mut self, e: &'a ast::Expr) -> Option<Combiner> {
        let ExprKind::Name(id) = &e.kind else {
            self.not_a_combiner(e.span, "this");
            return None;
        };
        self.combiner_named(id)
    }

    pub(crate) fn combiner_named(&mut self, id: &'a ast::Ident) -> Option<Combiner> {
        let item = match self.f.scope.get(&id.name) {
            Some(Value::Const(Const::Fn(Callable::Item(r)))) => Some(*r),
            Some(Value::Const(Const::Fn(Callable::Builtin(name)))) => return Combiner::from_name(name),
            Some(_) => None,
            None => match self.lib.lookup(self.f.scope.unit, &id.name) {
                Some(Entity::Item(r)) => Some(r),
                _ => None,
            },
        };
        if let Some(r) = item
            && matches!(self.lib.item(r).kind, ItemKind::Combine(_))
        {
            return self.combine(r).map(Combiner::User);
        }
        let builtin = Combiner::from_name(&id.name);
        if builtin.is_none() {
            if item.is_none() && self.find(&id.name).is_none() {
                let d = self.unknown_name(id);
                self.report(
                    d.help("combiners are add, mul, min, max, and, or, xor and the file's `combine` items"),
                );
            } else {
                self.not_a_combiner(id.span, &format!("`{}`", id.name));
            }
        }
        builtin
    }

    fn not_a_combiner(&mut self, span: Span, what: &str) {
        let d = Diagnostic::error(codes::NOT_A_COMBINER, self.sp(span), format!("{what} is not a combiner"));
        self.report(
            d.help("combiners are add, mul, min, max, and, or, xor and items declared with `combine`"),
        );
    }

    /// A value or the parts of a tuple; numbers take the types of the combiner's parts, scalars stretch to the
    /// tiles beside them where `stretch` is set.
    pub(crate) fn fold_inputs(&mut self, comb: Combiner, e: &'a ast::Expr, stretch: bool) -> Option<Args> {
        let parts = typing::combiner_parts(&self.ctx(), comb).ok().flatten();
        let want = |i: usize| parts.as_ref().and_then(|p| p.get(i).copied());
        let mut out = Args::new();
        match &e.kind {
            ExprKind::Tuple(items) => {
                for (i, item) in items.iter().enumerate() {
                    out.push(self.value(item, want(i))?);
                }
            }
            _ => match self.expr(e, want(0)) {
                Value::Tuple(values) => {
                    for (i, v) in values.iter().enumerate() {
                        out.push(self.to_expr(v.clone(), want(i), e.span)?);
                    }
                }
                v => out.push(self.to_expr(v, want(0), e.span)?),
            },
        }
        if out.is_empty() {
            let d = Diagnostic::error(codes::WRONG_COUNT, self.sp(e.span), "there is nothing to fold");
            self.report(d);
            return None;
        }
        if stretch {
            self.stretch_scalars(&mut out, e.span)?;
        }
        Some(out)
    }

    /// Scalars, and tiles with extents of 1, take the joined shape of their neighbours.
    fn stretch_scalars(&mut self, values: &mut Args, span: Span) -> Option<()> {
        let mut joined: Option<Shape> = None;
        for &v in values.iter() {
            if let Type::Tile { shape, .. } = self.ty(v) {
                joined = match joined {
                    None => Some(shape.clone()),
                    Some(have) => typing::broadcast(&have, shape).ok(),
                };
                joined.as_ref()?;
            }
        }
        let Some(joined) = joined else { return Some(()) };
        for v in values.iter_mut() {
            let ty = self.ty(*v).clone();
            *v = match ty {
                Type::Scalar(_) => self.push(Expr::Splat { value: *v, shape: joined.clone() }, span)?,
                Type::Tile { ref shape, .. } if *shape != joined => {
                    self.push(Expr::Broadcast { value: *v, shape: joined.clone() }, span)?
                }
                _ => *v,
            };
        }
        Some(())
    }

    pub(crate) fn axis_arg(
        &mut self,
        args: &CallArgs<'a>,
        rank: usize,
        default: Option<usize>,
    ) -> Option<Option<u8>> {
        let Some(e) = args.named("axis") else { return Some(default.map(|d| d as u8)) };
        let n = self.const_int(e, "an axis")?;
        if (0..rank as i128).contains(&n) {
            return Some(Some(n as u8));
        }
        let text = format!("there is no axis {n} in a tile of rank {rank}");
        let d = Diagnostic::error(codes::NO_SUCH_AXIS, self.sp(e.span), text);
        self.report(d.help(format!("axes are numbered from 0 to {}", rank.saturating_sub(1))));
        None
    }

    /// `sum(t, axis = k)` and its kind.
    pub(crate) fn simple_fold(
        &mut self,
        (name, comb): (&str, &str),
        args: &CallArgs<'a>,
        rows: bool,
        want: Option<Elem>,
        span: Span,
    ) -> Value {
        let Some(e) = args.one(0) else { return Value::Poison };
        let Some(x) = self.value(e, want) else { return Value::Poison };
        if !self.tile_arg(name, x, e.span) {
            return Value::Poison;
        }
        let rank = self.ty(x).shape().len();
        let default = if rows { Some(rank.saturating_sub(1)) } else { None };
        let Some(axis) = self.axis_arg(args, rank, default) else { return Value::Poison };
        let Some(comb) = Combiner::from_name(comb) else { return Value::Poison };
        self.op_value(Op::Reduce { comb, inputs: Args::from_slice(&[x]), axis }, span)
    }

    /// Whether the argument is a tile; a scalar is reported.
    fn tile_arg(&mut self, name: &str, x: ExprId, span: Span) -> bool {
        let tile = self.ty(x).is_tile();
        if !tile {
            let text = format!("`{name}` takes a tile, not {}", self.ty(x));
            let d = Diagnostic::error(codes::NEED_TILE, self.sp(span), text);
            self.report(d.help("a value that each thread has is folded by `allreduce`"));
        }
        tile
    }

    /// `reduce(comb, t, axis = k)`
    pub(crate) fn reduce(&mut self, args: &CallArgs<'a>, span: Span) -> Value {
        let (Some(c), Some(e)) = (args.one(0), args.one(1)) else { return Value::Poison };
        let Some(comb) = self.combiner(c) else { return Value::Poison };
        let Some(inputs) = self.fold_inputs(comb, e, true) else { return Value::Poison };
        let rank = self.ty(inputs[0]).shape().len();
        let Some(axis) = self.axis_arg(args, rank, None) else { return Value::Poison };
        self.op_value(Op::Reduce { comb, inputs, axis }, span)
    }

    /// `scan(comb, t, axis = k, reverse = b, exclusive = b)`
    pub(crate) fn scan(&mut self, args: &CallArgs<'a>, sum: bool, span: Span) -> Value {
        let (comb, e) = match sum {
            true => (Some(Combiner::Add), args.one(0)),
            false => (args.one(0).and_then(|c| self.combiner(c)), args.one(1)),
        };
        let (Some(comb), Some(e)) = (comb, e) else { return Value::Poison };
        let Some(inputs) = self.fold_inputs(comb, e, true) else { return Value::Poison };
        let rank = self.ty(inputs[0]).shape().len();
        let Some(axis) = self.axis_arg(args, rank, Some(rank.saturating_sub(1))) else {
            return Value::Poison;
        };
        let Some(reverse) = self.flag(args, "reverse") else { return Value::Poison };
        let Some(exclusive) = self.flag(args, "exclusive") else { return Value::Poison };
        self.op_value(Op::Scan { comb, inputs, axis: axis.unwrap_or(0), reverse, exclusive }, span)
    }

    fn flag(&mut self, args: &CallArgs<'a>, name: &str) -> Option<bool> {
        match args.named(name) {
            Some(e) => self.const_bool(e, &format!("`{name}`")),
            None => Some(false),
        }
    }

    /// `argmax(t, axis = k)`: value and position folded together, the position kept.
    pub(crate) fn position(&mut self, largest: bool, args: &CallArgs<'a>, span: Span) -> Value {
        let Some(e) = args.one(0) else { return Value::Poison };
        let Some(x) = self.value(e, None) else { return Value::Poison };
        if !self.tile_arg(if largest { "argmax" } else { "argmin" }, x, e.span) {
            return Value::Poison;
        }
        let shape: Shape = self.ty(x).shape().iter().copied().collect();
        let Some(axis) = self.axis_arg(args, shape.len(), None) else { return Value::Poison };
        let Some(at) = self.positions(&shape, axis, span) else { return Value::Poison };
        let elem = self.elem(x);
        let comb = Combiner::User(self.position_combine(largest, elem));
        match self.op(Op::Reduce { comb, inputs: Args::from_slice(&[x, at]), axis }, span).as_deref() {
            Some([_, at]) => {
                let at = *at;
                self.read_local(at, span).map_or(Value::Poison, Value::Expr)
            }
            _ => Value::Poison,
        }
    }

    /// Row-major position of each element along one axis or in the whole tile, as i32.
    fn positions(&mut self, shape: &Shape, axis: Option<u8>, span: Span) -> Option<ExprId> {
        let mut total: Option<ExprId> = None;
        let mut stride = 1i64;
        for k in (0..shape.len()).rev() {
            if axis.is_some_and(|a| usize::from(a) != k) {
                continue;
            }
            let mut ones: Shape = SmallVec::from_elem(1, shape.len());
            ones[k] = shape[k];
            let mut part = self.push(Expr::Iota { axis: k as u8, shape: ones }, span)?;
            if stride != 1 {
                let by = self.index_const(stride, span)?;
                part = self.push(Expr::Binary(BinOp::Mul, part, by), span)?;
            }
            total = Some(match total {
                None => part,
                Some(t) => self.push(Expr::Binary(BinOp::Add, part, t), span)?,
            });
            stride *= i64::from(shape[k]);
        }
        let to = Elem::D(pantile_abi::DType::I32);
        let cast = self.push(Expr::Cast { to, sat: false, value: total? }, span)?;
        if self.ty(cast).shape() == shape.as_slice() {
            return Some(cast);
        }
        self.push(Expr::Broadcast { value: cast, shape: shape.clone() }, span)
    }

    // ---- tiles that count, other shapes -----------------------------------------------------------------------------

    pub(crate) fn iota(&mut self, args: &CallArgs<'a>, span: Span) -> Value {
        let extents: Vec<Option<u32>> =
            args.positional.iter().map(|e| self.const_u32(e, "an extent", 1)).collect();
        let Some(shape) = extents.into_iter().collect::<Option<Shape>>() else { return Value::Poison };
        let Some(axis) = self.axis_arg(args, shape.len(), Some(0)) else { return Value::Poison };
        self.push(Expr::Iota { axis: axis.unwrap_or(0), shape }, span).map_or(Value::Poison, Value::Expr)
    }

    /// `rows(t)` and `cols(t)`
    pub(crate) fn numbers(&mut self, args: &CallArgs<'a>, columns: bool, span: Span) -> Value {
        let Some(e) = args.one(0) else { return Value::Poison };
        let Some(t) = self.value(e, None) else { return Value::Poison };
        let shape: Shape = self.ty(t).shape().iter().copied().collect();
        if !self.tile_arg(if columns { "cols" } else { "rows" }, t, e.span) {
            return Value::Poison;
        }
        let axis = if columns { shape.len() - 1 } else { shape.len().saturating_sub(2) };
        let mut ones: Shape = SmallVec::from_elem(1, shape.len());
        ones[axis] = shape[axis];
        self.push(Expr::Iota { axis: axis as u8, shape: ones }, span).map_or(Value::Poison, Value::Expr)
    }

    /// `reshape(t, n, m)`, `broadcast(t, n, m)`
    pub(crate) fn reshape(&mut self, args: &CallArgs<'a>, stretch: bool, span: Span) -> Value {
        let Some((first, rest)) = args.positional.split_first() else { return Value::Poison };
        let value = self.value(first, None);
        let extents: Vec<Option<u32>> = rest.iter().map(|e| self.const_u32(e, "an extent", 1)).collect();
        let shape = extents.into_iter().collect::<Option<Shape>>();
        let (Some(value), Some(shape)) = (value, shape) else { return Value::Poison };
        let e = if stretch { Expr::Broadcast { value, shape } } else { Expr::Reshape { value, shape } };
        self.push(e, span).map_or(Value::Poison, Value::Expr)
    }
}
