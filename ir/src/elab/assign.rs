//! Assignments: to variables, elements, regions and reducers, plain and compound.

use super::Elab;
use super::calls::CallArgs;
use super::scope::Value;
use crate::ast::{self, AssignOp, BinaryOp, ExprKind, Ident, Named};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use crate::typing;

/// What stands on the left of an assignment.
pub(crate) enum Target {
    Local(LocalId),
    Place(Place),
    Reducer(ReducerId, Args),
}

pub(crate) fn update(op: AssignOp) -> Option<Update> {
    Some(match op {
        AssignOp::Add => Update::Add,
        AssignOp::Sub => Update::Sub,
        AssignOp::Mul => Update::Mul,
        AssignOp::Div => Update::Div,
        AssignOp::Rem => Update::Rem,
        AssignOp::And => Update::And,
        AssignOp::Or => Update::Or,
        AssignOp::Xor => Update::Xor,
        AssignOp::Shl => Update::Shl,
        AssignOp::Shr => Update::Shr,
        AssignOp::Set | AssignOp::Fold => return None,
    })
}

impl<'a> Elab<'a> {
    pub(crate) fn assign(
        &mut self,
        place: &'a ast::Expr,
        op: AssignOp,
        value: &'a ast::Expr,
        options: &'a [Named],
        span: Span,
    ) {
        if let ExprKind::Tuple(places) = &place.kind {
            return self.assign_tuple(places, op, value, span);
        }
        let target = match self.target(place) {
            Some(t) => t,
            None => {
                self.expr(value, None);
                return;
            }
        };
        let is_product = matches!(value.kind, ExprKind::Binary(BinaryOp::MatMul, ..));
        if let (Some(o), false) = (options.first(), is_product) {
            let d = Diagnostic::error(
                codes::UNKNOWN_OPTION,
                self.sp(o.name.span),
                "only a product `a @ b` takes options",
            );
            self.report(d);
        }
        match target {
            Target::Local(l) => {
                let all = matches!(place.kind, ExprKind::Index(..));
                self.assign_local(l, (op, all), value, options, span)
            }
            Target::Reducer(r, index) => self.fold_into(r, index, op, place, value, span),
            Target::Place(at) => {
                let Some(elem) = self.place_elem(&at) else { return };
                let v = match (&value.kind, options.is_empty()) {
                    (ExprKind::Binary(BinaryOp::MatMul, a, b), false) => {
                        self.product(a, b, Some(options), value.span)
                    }
                    _ => self.expr(value, Some(elem)),
                };
                if let Some(v) = self.to_expr(v, Some(elem), value.span) {
                    self.store(at, op, v, value.span, span);
                }
            }
        }
    }

    pub(crate) fn target(&mut self, place: &'a ast::Expr) -> Option<Target> {
        match &place.kind {
            ExprKind::Name(id) => match self.lookup(id) {
                Value::Poison => None,
                Value::Reducer(r) => Some(Target::Reducer(r, Args::new())),
                Value::Local(l) if self.assignable(l) => Some(Target::Local(l)),
                other => {
                    self.not_assignable(id, &other);
                    None
                }
            },
            ExprKind::Index(base, axes) => {
                let base_value = match &base.kind {
                    ExprKind::Name(id) => self.lookup(id),
                    _ => self.expr(base, None),
                };
                match base_value {
                    Value::Poison => None,
                    Value::Mem(mem) => self.place(mem, axes, place.span).map(Target::Place),
                    Value::Reducer(r) => {
                        let mut index = Args::new();
                        for axis in axes {
                            let ast::AxisIndex::At(e) = axis else {
                                let d = Diagnostic::error(
                                    codes::REDUCER_USE,
                                    self.sp(place.span),
                                    "one element of a reducer is updated at a time",
                                );
                                self.report(d.help("index every axis, or fold a whole tile: `s op= t`"));
                                return None;
                            };
                            index.push(self.subscript(e)?);
                        }
                        Some(Target::Reducer(r, index))
                    }
                    Value::Local(l) if self.assignable(l) && self.all_of(l, axes) => Some(Target::Local(l)),
                    _ => {
                        let d = Diagnostic::error(
                            codes::NOT_ASSIGNABLE,
                            self.sp(place.span),
                            "a part of a tile value cannot be assigned",
                        );
                        self.report(d.help("a tile changes as a whole: `x = where(c, a, x)`; parts are assigned in `shared` memory"));
                        None
                    }
                }
            }
            ExprKind::Field(base, field) => {
                let mem = self.token_of(base).map(|t| self.slot_field(t, field));
                match mem {
                    Some(Value::Mem(mem)) if typing::mem_rank(&self.ctx(), mem) == Ok(0) => {
                        Some(Target::Place(Place::Element { mem, index: Args::new() }))
                    }
                    Some(Value::Poison) => None,
                    _ => {
                        self.cannot_assign(place.span);
                        None
                    }
                }
            }
            ExprKind::Error => None,
            _ => {
                self.cannot_assign(place.span);
                None
            }
        }
    }

    /// Whether `c[:, :]` names all of a tile.
    fn all_of(&self, l: LocalId, axes: &[ast::AxisIndex]) -> bool {
        let Type::Tile { shape, .. } = &self.f.body.locals[l].ty else { return false };
        shape.len() == axes.len() && axes.iter().all(|a| matches!(a, ast::AxisIndex::Full(_)))
    }

    pub(crate) fn cannot_assign(&mut self, span: Span) {
        let d = Diagnostic::error(codes::NOT_ASSIGNABLE, self.sp(span), "this cannot be assigned");
        self.report(d.help("assign to a `var`, or to a part of memory: `A[i, j] = x`, `A[i +: N] = t`"));
    }

    fn assignable(&self, l: LocalId) -> bool {
        self.f.body.locals[l].kind == LocalKind::Var && !self.f.frozen.contains(&l)
    }

    fn not_assignable(&mut self, id: &'a Ident, value: &Value) {
        let name = &id.name;
        let part;
        let (text, help) = match value {
            Value::Local(l) => match self.f.body.locals[*l].kind {
                LocalKind::Loop => (format!("`{name}` counts the loop"), "copy it into a `var`"),
                LocalKind::Grid(_) => (format!("`{name}` is an index of the grid"), "copy it into a `var`"),
                LocalKind::Thread(_) => {
                    (format!("`{name}` is an index of the threads"), "copy it into a `var`")
                }
                LocalKind::Token(_) => (format!("`{name}` is a slot"), "assign to its tiles"),
                LocalKind::Let | LocalKind::Var => {
                    (format!("`{name}` was declared with `let`"), "declare it with `var`")
                }
            },
            Value::Mem(mem) => {
                part =
                    format!("assign to a region or an element of it: `{} = ...`", self.region_of(*mem, name));
                (format!("`{name}` is memory"), part.as_str())
            }
            Value::Const(_) => (format!("`{name}` is known at compile time"), "declare a `var`"),
            Value::Dim(_) => (format!("`{name}` is a dim"), "copy it into a `var`"),
            Value::Arg(_) => (format!("`{name}` is a parameter"), "copy it into a `var`"),
            _ => (format!("`{name}` is not a variable"), "declare a `var`"),
        };
        let mut d = Diagnostic::error(
            codes::NOT_ASSIGNABLE,
            self.sp(id.span),
            format!("{text}, it cannot be assigned"),
        );
        if let Some(place) = self.f.scope.span(name) {
            d = d.also(place, "declared here");
        }
        self.report(d.help(help));
    }

    /// How a region of a memory may be written: all of it where its extents are known.
    fn region_of(&self, mem: Mem, name: &str) -> String {
        let extents = typing::mem_extents(&self.ctx(), mem).unwrap_or_default();
        let axes: Vec<&str> = extents.iter().map(|e| if e.is_some() { ":" } else { "i +: 64" }).collect();
        format!("{name}[{}]", axes.join(", "))
    }

    pub(crate) fn place_elem(&self, place: &Place) -> Option<Elem> {
        let mem = match place {
            Place::Element { mem, .. } => *mem,
            Place::Region(r) => r.mem,
        };
        typing::mem_elem(&self.ctx(), mem).ok()
    }

    // ---- variables ------------------------------------------------------------------------------------------------

    /// `all` says that the tile is written `c[:, :]`, where a scalar fills it.
    fn assign_local(
        &mut self,
        local: LocalId,
        (op, all): (AssignOp, bool),
        value: &'a ast::Expr,
        options: &'a [Named],
        span: Span,
    ) {
        let ty = self.f.body.locals[local].ty.clone();
        if op == AssignOp::Fold {
            return self.not_a_reducer(value.span, span);
        }
        if let ExprKind::Binary(BinaryOp::MatMul, a, b) = &value.kind
            && matches!(op, AssignOp::Set | AssignOp::Add)
            && ty.is_tile()
        {
            let init = if op == AssignOp::Set { Init::Overwrite } else { Init::Accumulate };
            let name = self.f.body.locals[local].name.clone();
            // a product may not read what it overwrites
            if !mentions(a, &name) && !mentions(b, &name) {
                return self.product_into(local, a, b, init, options, span);
            }
        }
        let want = ty.elem();
        let v = match (&value.kind, options.is_empty()) {
            (ExprKind::Binary(BinaryOp::MatMul, a, b), false) => {
                self.product(a, b, Some(options), value.span)
            }
            _ => self.expr(value, want),
        };
        let Some(mut v) = self.to_expr(v, want, value.span) else { return };
        if want == Some(Elem::Index) {
            v = self.to_index(v, value.span);
        }
        if all && !self.ty(v).is_tile() {
            let shape = ty.shape().into();
            let Some(full) = self.push(Expr::Splat { value: v, shape }, value.span) else { return };
            v = full;
        }
        let kind = match update(op) {
            None => StmtKind::Assign { local, value: v },
            Some(op) => StmtKind::Update { local, op, value: v },
        };
        self.stmt(kind, span);
    }

    fn not_a_reducer(&mut self, at: Span, span: Span) {
        let d = Diagnostic::error(
            codes::REDUCER_USE,
            self.sp(span),
            "`op=` folds into a reducer, and this is none",
        );
        self.report(
            d.also(self.sp(at), "this would be folded")
                .help("declare it: `var s: reducer(add) f32`, or write `+=`"),
        );
    }

    /// All values first, then all assignments: `(a, b) = (b, a)` swaps.
    fn assign_tuple(&mut self, places: &'a [ast::Expr], op: AssignOp, value: &'a ast::Expr, span: Span) {
        if op != AssignOp::Set {
            let d =
                Diagnostic::error(codes::NOT_ASSIGNABLE, self.sp(span), "a tuple is assigned with `=` only");
            return self.report(d);
        }
        let values = match self.expr(value, None) {
            Value::Tuple(v) if v.len() == places.len() => v,
            Value::Poison => return,
            _ => {
                let text = format!(
                    "{} places stand on the left, but the value is no tuple of {}",
                    places.len(),
                    places.len()
                );
                let d = Diagnostic::error(codes::PATTERN, self.sp(span), text);
                return self.report(d.also(self.sp(value.span), "this is the value"));
            }
        };
        let mut held = Vec::new();
        for (v, place) in values.iter().zip(places) {
            held.push(match v {
                Value::Expr(e) if matches!(self.f.body.exprs[*e], Expr::Const { .. }) => v.clone(),
                Value::Expr(e) => self.bind("t", *e, place.span),
                other => other.clone(),
            });
        }
        for (v, place) in held.into_iter().zip(places) {
            if matches!(&place.kind, ExprKind::Name(id) if id.name == "_") {
                continue;
            }
            match self.target(place) {
                Some(Target::Local(local)) => {
                    let want = self.f.body.locals[local].ty.elem();
                    if let Some(value) = self.to_expr(v, want, value.span) {
                        self.stmt(StmtKind::Assign { local, value }, span);
                    }
                }
                Some(Target::Place(at)) => {
                    let want = self.place_elem(&at);
                    if let Some(v) = self.to_expr(v, want, value.span) {
                        self.store(at, AssignOp::Set, v, value.span, span);
                    }
                }
                Some(Target::Reducer(..)) => self.cannot_assign(place.span),
                None => {}
            }
        }
    }

    // ---- memory ---------------------------------------------------------------------------------------------------

    pub(crate) fn store(&mut self, place: Place, op: AssignOp, value: ExprId, at: Span, span: Span) {
        if op == AssignOp::Fold {
            return self.not_a_reducer(at, span);
        }
        match place {
            Place::Element { mem, index } => {
                let value = match update(op) {
                    None => Some(value),
                    Some(u) => {
                        let old = self.push(Expr::Element { mem, index: index.clone(), or: None }, span);
                        old.and_then(|old| self.push(Expr::Binary(u.binary(), old, value), span))
                    }
                };
                if let Some(value) = value {
                    self.stmt(StmtKind::Store { mem, index, value }, span);
                }
            }
            Place::Region(to) => {
                let value = match update(op) {
                    None => Some(value),
                    Some(u) => match self.op_value(Op::Read { from: to.clone(), pad: None }, span) {
                        Value::Expr(old) => self.push(Expr::Binary(u.binary(), old, value), span),
                        _ => None,
                    },
                };
                if let Some(value) = value {
                    self.effect(Op::Write { to, value }, span);
                }
            }
        }
    }

    fn fold_into(
        &mut self,
        reducer: ReducerId,
        index: Args,
        op: AssignOp,
        place: &'a ast::Expr,
        value: &'a ast::Expr,
        span: Span,
    ) {
        let name = self.f.kernel.reducers[reducer].name.clone();
        if op != AssignOp::Fold {
            let d = Diagnostic::error(
                codes::REDUCER_USE,
                self.sp(span),
                format!("`{name}` is a reducer, it is only updated with `op=`"),
            );
            self.report(d.help(format!("write `{name} op= ...`; its combiner says what that does")));
            return;
        }
        if self.f.joined.contains_key(&reducer) {
            let d = Diagnostic::error(
                codes::REDUCER_USE,
                self.sp(place.span),
                format!("`{name}` was read before and takes no more updates"),
            );
            self.report(
                d.note("a reducer is joined at its first read")
                    .help("fold everything in before the first read"),
            );
            return;
        }
        let comb = self.f.kernel.reducers[reducer].comb;
        if typing::combiner_parts(&self.ctx(), comb).ok().flatten().is_none() {
            let want = self.f.kernel.reducers[reducer].parts.first().and_then(Type::elem);
            let Some(v) = self.value(value, want) else { return };
            let fits =
                want.map_or(Some(v), |w| self.need_elem(v, w, &format!("what `{name}` folds"), value.span));
            if let Some(v) = fits {
                self.effect(Op::Fold { reducer, index, values: Args::from_slice(&[v]) }, span);
            }
        } else if let Some(values) = self.fold_inputs(comb, value, false) {
            self.effect(Op::Fold { reducer, index, values }, span);
        }
    }

    pub(crate) fn place_arg(&mut self, e: &'a ast::Expr, what: &str) -> Option<Place> {
        match self.target(e)? {
            Target::Place(p) => Some(p),
            _ => {
                let d =
                    Diagnostic::error(codes::NOT_MEMORY, self.sp(e.span), format!("{what} works on memory"));
                self.report(d.help("name an element or a region of a tensor or `shared` tile: `P[i]`"));
                None
            }
        }
    }

    /// `atomic_add(P[i], x)`
    pub(crate) fn atomic(&mut self, op: AtomicOp, args: &CallArgs<'a>, span: Span) -> Value {
        let (Some(p), Some(last)) = (args.one(0), args.positional.last().copied()) else {
            return Value::Poison;
        };
        let Some(at) = self.place_arg(p, &format!("`{}`", op.name())) else {
            self.expr(last, None);
            return Value::Poison;
        };
        let elem = self.place_elem(&at);
        let expected = match op {
            AtomicOp::CompareExchange => match args.one(1).and_then(|e| self.value(e, elem)) {
                Some(e) => Some(e),
                None => return Value::Poison,
            },
            _ => None,
        };
        let Some(value) = self.value(last, elem) else { return Value::Poison };
        self.op_value(Op::Atomic { op, at, value, expected }, span)
    }
}

/// Whether the text of an expression names a variable.
fn mentions(e: &ast::Expr, name: &str) -> bool {
    let any = |list: &[ast::Expr]| list.iter().any(|e| mentions(e, name));
    match &e.kind {
        ExprKind::Name(id) => id.name == name,
        ExprKind::Unary(_, a) | ExprKind::Field(a, _) | ExprKind::Keyed(_, a) => mentions(a, name),
        ExprKind::Binary(_, a, b) | ExprKind::Or(a, b) | ExprKind::Pad(a, b) | ExprKind::In(a, b) => {
            mentions(a, name) || mentions(b, name)
        }
        ExprKind::Index(a, axes) => mentions(a, name) || axes.iter().any(|x| axis_mentions(x, name)),
        ExprKind::Call { callee, args, .. } => {
            mentions(callee, name) || args.iter().any(|a| mentions(&a.value, name))
        }
        ExprKind::Tuple(parts) | ExprKind::List(parts) => any(parts),
        ExprKind::If { cond, then, other, .. } => {
            mentions(cond, name) || block_mentions(then, name) || block_mentions(other, name)
        }
        ExprKind::Block(b) | ExprKind::Once(b) => block_mentions(b, name),
        ExprKind::Fill { value, shape, .. } => {
            value.as_deref().is_some_and(|v| mentions(v, name)) || any(shape)
        }
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Str(_)
        | ExprKind::Elem(_)
        | ExprKind::Acquire(_)
        | ExprKind::Wait(_)
        | ExprKind::Error => false,
    }
}

fn axis_mentions(axis: &ast::AxisIndex, name: &str) -> bool {
    match axis {
        ast::AxisIndex::At(e) => mentions(e, name),
        ast::AxisIndex::Extent { start, len, limit, .. } => {
            mentions(start, name) || mentions(len, name) || limit.as_ref().is_some_and(|l| mentions(l, name))
        }
        ast::AxisIndex::Range { lo, hi, .. } => mentions(lo, name) || mentions(hi, name),
        ast::AxisIndex::Full(_) | ast::AxisIndex::New(_) => false,
    }
}

/// Statements are rare in an operand; taking the longer way is never wrong.
fn block_mentions(b: &ast::Block, name: &str) -> bool {
    !b.stmts.is_empty() || b.tail.as_deref().is_some_and(|e| mentions(e, name))
}
