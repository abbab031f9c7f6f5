//! Expressions: names, operators, choices, blocks. Calls, memory and tiles stand in their own modules.

use super::Elab;
use super::consts::{self, Callable, Const};
use super::functions;
use super::library::{Entity, in_std};
use super::names::suggest;
use super::scope::Value;
use crate::ast::{self, BinaryOp, ExprKind, Ident, UnaryOp};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::{BinOp, Elem, Expr, ExprId, UnOp};
use crate::span::Span;
use pantile_abi::DType;

impl<'a> Elab<'a> {
    /// Elaborates an expression; `want` is the element type of its place, for numbers that have none of their own.
    pub(crate) fn expr(&mut self, e: &'a ast::Expr, want: Option<Elem>) -> Value {
        match &e.kind {
            ExprKind::Int(text) => match consts::parse_int(text) {
                Some(n) => Value::Const(Const::Int(n)),
                None => self.bad_number(e.span, text),
            },
            ExprKind::Float(text) => match consts::parse_float(text) {
                Some(x) if x.is_finite() => Value::Const(Const::Float(x)),
                _ => self.bad_number(e.span, text),
            },
            ExprKind::Bool(b) => Value::Const(Const::Bool(*b)),
            ExprKind::Str(s) => Value::Const(Const::Str(s.as_str().into())),
            ExprKind::Name(id) => self.name(id),
            ExprKind::Elem(elem) => {
                self.elem_type(elem).map_or(Value::Poison, |t| Value::Const(Const::Type(t)))
            }
            ExprKind::Unary(op, a) => self.unary(*op, a, want, e.span),
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, want, e.span),
            ExprKind::Or(place, pad) => self.element_or(place, pad, e.span),
            ExprKind::Pad(place, pad) => self.region_pad(place, pad, e.span),
            ExprKind::Index(base, axes) => self.index(base, axes, e.span),
            ExprKind::Field(base, field) => self.field(base, field, e.span),
            ExprKind::Call { callee, generics, args } => self.call(callee, generics, args, want, e.span),
            ExprKind::Tuple(parts) => {
                let parts: Vec<Value> = parts.iter().map(|p| self.expr(p, None)).collect();
                Value::Tuple(parts.into())
            }
            ExprKind::List(items) => self.list(items),
            ExprKind::If { is_const, cond, then, other } => {
                self.choice(*is_const, cond, then, other, want, e.span)
            }
            ExprKind::Block(b) => self.block_value(b, want),
            ExprKind::Once(b) => self.once(b, want, e.span),
            ExprKind::Fill { value, elem, shape } => self.fill(value.as_deref(), elem, shape, e.span),
            ExprKind::Acquire(ring) => self.acquire(ring, true, e.span),
            ExprKind::Wait(ring) => self.acquire(ring, false, e.span),
            ExprKind::In(a, list) => self.membership(a, list, e.span),
            ExprKind::Keyed(key, _) => {
                let text = format!("`{}` is not expected here", key.name);
                let d = Diagnostic::error(codes::NOT_A_VALUE, self.sp(key.span), text);
                self.report(d.help(
                    "keyed arguments belong to the generators of `test` blocks, as in `normal(seed 1)`",
                ));
                Value::Poison
            }
            ExprKind::Error => Value::Poison,
        }
    }

    fn bad_number(&mut self, span: Span, text: &str) -> Value {
        let d = Diagnostic::error(codes::NUMBER_RANGE, self.sp(span), format!("no type can hold `{text}`"));
        self.report(d);
        Value::Poison
    }

    /// A name used for its value.
    pub(crate) fn name(&mut self, id: &'a Ident) -> Value {
        match self.lookup(id) {
            Value::Local(l) => self.read_local(l, id.span).map_or(Value::Poison, Value::Expr),
            Value::Dim(d) => self.push(Expr::Dim(d), id.span).map_or(Value::Poison, Value::Expr),
            Value::Arg(a) => self.push(Expr::Arg(a), id.span).map_or(Value::Poison, Value::Expr),
            Value::Reducer(r) => self.join(r, id),
            other => other,
        }
    }

    /// What a name stands for, unread; an unknown one is reported.
    pub(crate) fn lookup(&mut self, id: &'a Ident) -> Value {
        match self.find(&id.name) {
            Some(value) => value,
            None => {
                if self.f.scope.miss(&id.name) {
                    let d = self.unknown_name(id);
                    self.report(d);
                } else {
                    self.errors += 1;
                }
                Value::Poison
            }
        }
    }

    /// Local names, then the file's items, then names of the language.
    pub(crate) fn find(&mut self, name: &str) -> Option<Value> {
        if let Some(value) = self.f.scope.get(name) {
            return Some(value.clone());
        }
        match self.lib.lookup(self.f.scope.unit, name) {
            // what is only launched does not hide a function of the same name
            Some(Entity::Item(r)) if !self.lib.is_entry(r) => Some(self.item_value(r)),
            Some(Entity::Item(r)) => Some(self.predeclared(name).unwrap_or_else(|| self.item_value(r))),
            _ => self.predeclared(name),
        }
    }

    fn predeclared(&self, name: &str) -> Option<Value> {
        if let Some(elem) = elem_from_name(name) {
            return Some(Value::Const(Const::Type(self.widened(elem))));
        }
        Some(match name {
            "target" => Value::Target,
            "none" => Value::NoToken,
            _ => match functions::constant(name) {
                Some(x) => Value::Const(Const::Float(x)),
                None => Value::Const(Const::Fn(Callable::Builtin(functions::find(name)?.name))),
            },
        })
    }

    pub(crate) fn widened(&self, elem: Elem) -> Elem {
        if self.widen && elem.is_float() { Elem::D(DType::F64) } else { elem }
    }

    pub(crate) fn unknown_name(&self, id: &Ident) -> Diagnostic {
        let d = Diagnostic::error(
            codes::UNKNOWN_NAME,
            self.sp(id.span),
            format!("`{}` is not declared", id.name),
        );
        let near = {
            let items = self.lib.names(self.f.scope.unit);
            let language = functions::TABLE.iter().map(|f| f.name);
            let types = DType::ALL.iter().map(|d| d.name());
            let all = self.f.scope.names().chain(items).chain(language).chain(types);
            suggest(&id.name, all).map(str::to_owned)
        };
        match near {
            _ if in_std(&id.name) => d.help(format!("import it: `use \"std\"::{{{}}}`", id.name)),
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d,
        }
    }

    // ---- values -----------------------------------------------------------------------------------------------

    /// A run-time value; a number takes the type `want`, else `index` or `f32`.
    pub(crate) fn value(&mut self, e: &'a ast::Expr, want: Option<Elem>) -> Option<ExprId> {
        let v = self.expr(e, want);
        self.to_expr(v, want, e.span)
    }

    pub(crate) fn to_expr(&mut self, v: Value, want: Option<Elem>, span: Span) -> Option<ExprId> {
        let what = match v {
            Value::Expr(e) => return Some(e),
            Value::Poison => return None,
            Value::Const(c) => return self.const_expr(&c, want, span),
            Value::Local(l) => return self.read_local(l, span),
            Value::Dim(d) => return self.push(Expr::Dim(d), span),
            Value::Arg(a) => return self.push(Expr::Arg(a), span),
            Value::Mem(mem) => {
                if crate::typing::mem_rank(&self.ctx(), mem) == Ok(0) {
                    return self.push(Expr::Element { mem, index: Default::default(), or: None }, span);
                }
                let name = crate::typing::mem_name(&self.ctx(), mem).unwrap_or_default();
                let d = Diagnostic::error(
                    codes::NOT_A_VALUE,
                    self.sp(span),
                    format!("`{name}` is memory, not a value"),
                );
                self.report(d.help(format!("read a region or an element of it: `{name}[...]`")));
                return None;
            }
            Value::Tuple(_) => "a tuple",
            Value::Unit => "a call without a value",
            Value::Reducer(_) => "a reducer",
            Value::Workspace(_) => "a workspace",
            Value::Ring(_) => "a ring",
            Value::Queue(_) => "a queue",
            Value::Turn(_) => "a turn",
            Value::Team(_) => "a team",
            Value::NoToken => "`none`",
            Value::Target => "`target`",
        };
        let d = Diagnostic::error(
            codes::NOT_A_VALUE,
            self.sp(span),
            format!("{what} stands where one value is needed"),
        );
        self.report(match what {
            "a tuple" => d.help("take it apart: `let (a, b) = ...`, or pick a part: `t.0`"),
            "`target`" => d.help("name a fact: `target.warp`"),
            _ => d,
        });
        None
    }

    fn const_expr(&mut self, c: &Const, want: Option<Elem>, span: Span) -> Option<ExprId> {
        let elem = match c {
            Const::Int(_) => want.unwrap_or(Elem::Index),
            Const::Float(_) => want.unwrap_or(self.widened(Elem::F32)),
            Const::Bool(_) => want.unwrap_or(Elem::BOOL),
            other => {
                let text = format!("{} stands where a run-time value is needed", other.kind());
                let d = Diagnostic::error(codes::NOT_A_VALUE, self.sp(span), text);
                self.report(d);
                return None;
            }
        };
        self.adapt(c, elem, span)
    }

    /// A scalar of type `index`, as bounds and extents are.
    pub(crate) fn index_value(&mut self, e: &'a ast::Expr) -> Option<ExprId> {
        let value = self.value(e, Some(Elem::Index))?;
        Some(self.to_index(value, e.span))
    }

    /// Any integer, as subscripts are.
    pub(crate) fn subscript(&mut self, e: &'a ast::Expr) -> Option<ExprId> {
        self.value(e, Some(Elem::Index))
    }

    // ---- compile time -----------------------------------------------------------------------------------------

    /// A value known at compile time; `what` says what needs it.
    pub(crate) fn constant(&mut self, e: &'a ast::Expr, what: &str) -> Option<Const> {
        match self.expr(e, None) {
            Value::Const(c) => Some(c),
            Value::Poison => None,
            _ => {
                let text = format!("{what} must be known at compile time");
                let d = Diagnostic::error(codes::NOT_CONSTANT, self.sp(e.span), text);
                self.report(d.help("use numbers, params, const generics, `const` names and `target` facts"));
                None
            }
        }
    }

    pub(crate) fn const_int(&mut self, e: &'a ast::Expr, what: &str) -> Option<i128> {
        match self.constant(e, what)? {
            Const::Int(n) => Some(n),
            other => self.wrong_kind(e.span, what, "an integer", &other),
        }
    }

    pub(crate) fn const_bool(&mut self, e: &'a ast::Expr, what: &str) -> Option<bool> {
        match self.constant(e, what)? {
            Const::Bool(b) => Some(b),
            other => self.wrong_kind(e.span, what, "a bool", &other),
        }
    }

    pub(crate) fn const_number(&mut self, e: &'a ast::Expr, what: &str) -> Option<f64> {
        let c = self.constant(e, what)?;
        match c.as_f64() {
            Some(x) => Some(x),
            None => self.wrong_kind(e.span, what, "a number", &c),
        }
    }

    pub(crate) fn wrong_kind<T>(&mut self, span: Span, what: &str, need: &str, found: &Const) -> Option<T> {
        let text = format!("{what} must be {need}, not {}", found.kind());
        let d = Diagnostic::error(codes::WRONG_CONST, self.sp(span), text).label(format!("this is {found}"));
        self.report(d);
        None
    }

    /// A compile-time integer that fits into 32 bits, at least `least`.
    pub(crate) fn const_u32(&mut self, e: &'a ast::Expr, what: &str, least: u32) -> Option<u32> {
        let n = self.const_int(e, what)?;
        match u32::try_from(n) {
            Ok(n) if n >= least => Some(n),
            _ => {
                let text = match n < least.into() {
                    true => format!("{what} must be at least {least}, not {n}"),
                    false => format!("{what} must be at most {}, not {n}", u32::MAX),
                };
                let d = Diagnostic::error(codes::WRONG_CONST, self.sp(e.span), text);
                self.report(d);
                None
            }
        }
    }

    pub(crate) fn static_shape(&mut self, shape: &'a [ast::Expr]) -> Option<crate::program::Shape> {
        let extents: Vec<Option<u32>> = shape.iter().map(|e| self.const_u32(e, "an extent", 1)).collect();
        extents.into_iter().collect()
    }

    fn list(&mut self, items: &'a [ast::Expr]) -> Value {
        let items: Vec<Option<Const>> =
            items.iter().map(|i| self.constant(i, "an element of a list")).collect();
        let items: Option<Vec<Const>> = items.into_iter().collect();
        items.map_or(Value::Poison, |i| Value::Const(Const::List(i.into())))
    }

    pub(crate) fn fault(&mut self, span: Span, fault: consts::Fault) -> Value {
        let d = Diagnostic::error(codes::CONST_FAULT, self.sp(span), fault.words());
        self.report(d);
        Value::Poison
    }

    // ---- operators --------------------------------------------------------------------------------------------

    fn unary(&mut self, op: UnaryOp, a: &'a ast::Expr, want: Option<Elem>, span: Span) -> Value {
        let v = self.expr(a, want);
        if let Value::Const(c) = &v {
            // a negated zero keeps its sign where it becomes a float
            if let (UnaryOp::Neg, Const::Int(0), Some(e)) = (op, c, want)
                && e.is_float()
            {
                return Value::Const(Const::Float(-0.0));
            }
            return match consts::unary(op, c) {
                Ok(c) => Value::Const(c),
                Err(fault) => self.fault(span, fault),
            };
        }
        let op = if op == UnaryOp::Neg { UnOp::Neg } else { UnOp::Not };
        match self.to_expr(v, want, a.span) {
            Some(e) => self.folded(Expr::Unary(op, e), span),
            None => Value::Poison,
        }
    }

    pub(crate) fn folded(&mut self, e: Expr, span: Span) -> Value {
        if let Some(same) = self.same_as_operand(&e) {
            return Value::Expr(same);
        }
        let e = self.fold(e);
        self.push(e, span).map_or(Value::Poison, Value::Expr)
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        a: &'a ast::Expr,
        b: &'a ast::Expr,
        want: Option<Elem>,
        span: Span,
    ) -> Value {
        match op {
            BinaryOp::MatMul => return self.product(a, b, None, span),
            BinaryOp::AndAnd | BinaryOp::OrOr => return self.logical(op, a, b, span),
            _ => {}
        }
        let ir = operator(op);
        let want = want.filter(|_| !ir.is_comparison());
        let left = self.expr(a, want);
        let mark = self.mark();
        let right = self.expr(b, want);
        match (left, right) {
            (Value::Poison, _) | (_, Value::Poison) => Value::Poison,
            (Value::Const(x), Value::Const(y)) => {
                let float = want.is_some_and(Elem::is_float);
                match consts::binary(op, &x, &y, float) {
                    Ok(c) => Value::Const(c),
                    Err(consts::Fault::Kinds) => {
                        let text = format!("{} and {} do not go together here", x.kind(), y.kind());
                        let d = Diagnostic::error(codes::CONST_FAULT, self.sp(span), text);
                        self.report(
                            d.also(self.sp(a.span), format!("{x}")).also(self.sp(b.span), format!("{y}")),
                        );
                        Value::Poison
                    }
                    Err(fault) => self.fault(span, fault),
                }
            }
            (left, right) => {
                let left = self.settle(left, a, mark);
                let Some((x, y)) = self.operands(left, a, right, b, want) else { return Value::Poison };
                self.folded(Expr::Binary(ir, x, y), span)
            }
        }
    }

    /// Both operands as run-time values of one type: a number takes the other's type.
    fn operands(
        &mut self,
        left: Value,
        a: &'a ast::Expr,
        right: Value,
        b: &'a ast::Expr,
        want: Option<Elem>,
    ) -> Option<(ExprId, ExprId)> {
        let (x, y) = match (left, right) {
            (Value::Const(c), right) => {
                let y = self.to_expr(right, want, b.span)?;
                let elem = self.elem(y);
                (self.retyped(c, a, want, elem)?, y)
            }
            (left, Value::Const(c)) => {
                let x = self.to_expr(left, want, a.span)?;
                let elem = self.elem(x);
                (x, self.retyped(c, b, want, elem)?)
            }
            (left, right) => (self.to_expr(left, want, a.span)?, self.to_expr(right, want, b.span)?),
        };
        Some(self.widen_ints(x, y))
    }

    /// A compile-time operand in the type of its neighbour. Arithmetic of plain numbers is done anew in that type,
    /// so that `x * (1/2)` of a float x means a half.
    fn retyped(&mut self, c: Const, e: &'a ast::Expr, want: Option<Elem>, elem: Elem) -> Option<ExprId> {
        let again = elem.is_float() && want != Some(elem) && c.is_number() && divides(e);
        let c = match again {
            true => match self.expr(e, Some(elem)) {
                Value::Const(c) => c,
                _ => return None,
            },
            false => c,
        };
        self.adapt(&c, elem, e.span)
    }

    fn logical(&mut self, op: BinaryOp, a: &'a ast::Expr, b: &'a ast::Expr, span: Span) -> Value {
        let decides = op == BinaryOp::OrOr;
        let left = match self.expr(a, None) {
            Value::Const(Const::Bool(x)) if x == decides => return Value::Const(Const::Bool(x)),
            Value::Const(Const::Bool(_)) => {
                let right = self.expr(b, None);
                if let Value::Const(c) = &right
                    && !matches!(c, Const::Bool(_))
                {
                    return self
                        .wrong_kind(b.span, "an operand of a logical operator", "a bool", c)
                        .unwrap_or(Value::Poison);
                }
                return right;
            }
            other => self.to_expr(other, Some(Elem::BOOL), a.span),
        };
        let scalar = left.is_some_and(|l| self.ty(l).is_scalar());
        let right = if scalar { self.lazily(a.span, |s| s.expr(b, None)) } else { self.expr(b, None) };
        let Some(left) = left else { return Value::Poison };
        match right {
            Value::Const(Const::Bool(x)) if x == decides => return Value::Const(Const::Bool(x)),
            Value::Const(Const::Bool(_)) => return Value::Expr(left),
            _ => {}
        }
        let Some(right) = self.to_expr(right, Some(Elem::BOOL), b.span) else { return Value::Poison };
        let op = if decides { BinOp::LogicalOr } else { BinOp::LogicalAnd };
        self.push(Expr::Binary(op, left, right), span).map_or(Value::Poison, Value::Expr)
    }

    /// `D in [64, 128]`
    fn membership(&mut self, a: &'a ast::Expr, list: &'a ast::Expr, span: Span) -> Value {
        let value = self.expr(a, None);
        let items = match self.constant(list, "the list after `in`") {
            Some(Const::List(items)) => items,
            Some(other) => {
                return self
                    .wrong_kind(list.span, "what follows `in`", "a list", &other)
                    .unwrap_or(Value::Poison);
            }
            None => return Value::Poison,
        };
        if let Value::Const(c) = &value {
            let same = |i: &Const| i == c || matches!((i.as_f64(), c.as_f64()), (Some(x), Some(y)) if x == y);
            return Value::Const(Const::Bool(items.iter().any(same)));
        }
        let Some(x) = self.to_expr(value, None, a.span) else { return Value::Poison };
        let elem = self.elem(x);
        let mut any: Option<ExprId> = None;
        for item in items.iter() {
            let Some(y) = self.adapt(item, elem, list.span) else { return Value::Poison };
            let Some(same) = self.push(Expr::Binary(BinOp::Eq, x, y), span) else { return Value::Poison };
            any = match any {
                None => Some(same),
                Some(before) => self.push(Expr::Binary(BinOp::LogicalOr, before, same), span),
            };
        }
        any.map_or(Value::Const(Const::Bool(false)), Value::Expr)
    }

    /// Two values in one type: a number takes the type of its neighbour, or of the place.
    pub(crate) fn alike(
        &mut self,
        x: Value,
        at_x: Span,
        y: Value,
        at_y: Span,
        want: Option<Elem>,
    ) -> Option<(ExprId, ExprId)> {
        let (x, y) = match (x, y) {
            (Value::Const(a), Value::Const(b)) => {
                let float = matches!(a, Const::Float(_)) || matches!(b, Const::Float(_));
                let want = want.or(float.then(|| self.widened(Elem::F32)));
                (self.const_expr(&a, want, at_x)?, self.const_expr(&b, want, at_y)?)
            }
            (Value::Const(a), y) => {
                let y = self.to_expr(y, want, at_y)?;
                let elem = self.elem(y);
                (self.adapt(&a, elem, at_x)?, y)
            }
            (x, Value::Const(b)) => {
                let x = self.to_expr(x, want, at_x)?;
                let elem = self.elem(x);
                (x, self.adapt(&b, elem, at_y)?)
            }
            (x, y) => (self.to_expr(x, want, at_x)?, self.to_expr(y, want, at_y)?),
        };
        Some(self.widen_ints(x, y))
    }

    /// A block in braces that gives a value.
    pub(crate) fn block_value(&mut self, b: &'a ast::Block, want: Option<Elem>) -> Value {
        self.f.scope.open();
        self.stmts(&b.stmts);
        let value = match &b.tail {
            Some(tail) => self.expr(tail, want),
            None => Value::Unit,
        };
        self.f.scope.close();
        value
    }

    // ---- fields -----------------------------------------------------------------------------------------------

    fn field(&mut self, base: &'a ast::Expr, field: &'a Ident, span: Span) -> Value {
        if let Some(token) = self.token_of(base) {
            return self.slot_field(token, field);
        }
        let value = self.expr(base, None);
        let name = field.name.as_str();
        match &value {
            Value::Poison => return Value::Poison,
            Value::Target => return self.fact(field, &[], span),
            Value::Tuple(parts) => {
                if let Some(part) = name.parse::<usize>().ok().and_then(|i| parts.get(i)) {
                    return part.clone();
                }
                let text = format!("a tuple of {} has no part `{name}`", parts.len());
                let d = Diagnostic::error(codes::UNKNOWN_FIELD, self.sp(field.span), text);
                self.report(d.help(format!("its parts are `.0` to `.{}`", parts.len().saturating_sub(1))));
                return Value::Poison;
            }
            Value::Const(Const::Fn(_) | Const::Type(_)) => {
                let text = format!("`.{name}` belongs to a call");
                let d = Diagnostic::error(codes::UNKNOWN_FIELD, self.sp(field.span), text);
                self.report(d.help(format!("write `.{name}(...)`")));
                return Value::Poison;
            }
            Value::Expr(e) if name == "T" => {
                return self.push(Expr::Transpose(*e), span).map_or(Value::Poison, Value::Expr);
            }
            Value::Mem(mem) if name == "T" => {
                let name = crate::typing::mem_name(&self.ctx(), *mem).unwrap_or_default();
                let d = Diagnostic::error(
                    codes::NOT_A_VALUE,
                    self.sp(span),
                    format!("`{name}` is memory, not a tile"),
                );
                self.report(d.help(format!("transpose a region of it: `{name}[...].T`")));
                return Value::Poison;
            }
            _ => {}
        }
        let d = Diagnostic::error(
            codes::UNKNOWN_FIELD,
            self.sp(field.span),
            format!("there is no `.{name}` here"),
        );
        self.report(d.help(
            "`.T` transposes a tile, `.0` picks a part of a tuple, a slot's tiles have the names of its ring",
        ));
        Value::Poison
    }

    pub(crate) fn fact(&mut self, field: &'a Ident, args: &[DType], span: Span) -> Value {
        if let Some(n) = self.arch.fact(&field.name, args) {
            return Value::Const(Const::Int(n.into()));
        }
        let known = crate::target::FACT_NAMES;
        let text = match known.iter().find(|(n, _)| *n == field.name) {
            Some((_, 0)) if !args.is_empty() => format!("`target.{}` takes no type", field.name),
            Some((_, 1)) if args.len() != 1 => {
                format!("`target.{0}` takes one type: `target.{0}(f16)`", field.name)
            }
            Some(_) => format!("`{}` does not state `target.{}`", self.arch.name, field.name),
            None => format!("there is no fact `target.{}`", field.name),
        };
        let names: Vec<String> = known.iter().map(|(n, _)| format!("`target.{n}`")).collect();
        let d = Diagnostic::error(codes::UNKNOWN_FACT, self.sp(span), text);
        self.report(d.help(format!("the facts are {}", names.join(", "))));
        Value::Poison
    }

    /// `f32`, `T`, `acc(T)`
    pub(crate) fn elem_type(&mut self, e: &'a ast::Elem) -> Option<Elem> {
        let (id, acc) = match e {
            ast::Elem::Name(id) => (id, false),
            ast::Elem::Acc(id, _) => (id, true),
        };
        match self.lookup(id) {
            Value::Const(Const::Type(t)) => Some(if acc { t.acc() } else { t }),
            Value::Poison => None,
            _ => {
                let d = Diagnostic::error(
                    codes::NOT_A_TYPE,
                    self.sp(id.span),
                    format!("`{}` is not a type", id.name),
                );
                let hidden = elem_from_name(&id.name).is_some();
                let hides = format!("it hides the type `{}`; give it another name", id.name);
                self.report(if hidden {
                    d.help(hides)
                } else {
                    d.help("element types are f16, bf16, f32, f64, i8 … u64, bool, index and type generics")
                });
                None
            }
        }
    }
}

pub(crate) fn elem_from_name(name: &str) -> Option<Elem> {
    if name == "index" { Some(Elem::Index) } else { DType::from_name(name).map(Elem::D) }
}

/// Plain arithmetic with a division in it: worth doing again as float arithmetic.
fn divides(e: &ast::Expr) -> bool {
    match &e.kind {
        ExprKind::Unary(_, a) => divides(a),
        ExprKind::Binary(op, a, b) => {
            let plain = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div);
            plain && (*op == BinaryOp::Div || divides(a) || divides(b))
        }
        _ => false,
    }
}

pub(crate) fn operator(op: BinaryOp) -> BinOp {
    match op {
        BinaryOp::OrOr => BinOp::LogicalOr,
        BinaryOp::AndAnd => BinOp::LogicalAnd,
        BinaryOp::Eq => BinOp::Eq,
        BinaryOp::Ne => BinOp::Ne,
        BinaryOp::Lt => BinOp::Lt,
        BinaryOp::Le => BinOp::Le,
        BinaryOp::Gt => BinOp::Gt,
        BinaryOp::Ge => BinOp::Ge,
        BinaryOp::BitOr => BinOp::Or,
        BinaryOp::BitXor => BinOp::Xor,
        BinaryOp::BitAnd => BinOp::And,
        BinaryOp::Shl => BinOp::Shl,
        BinaryOp::Shr => BinOp::Shr,
        BinaryOp::Add => BinOp::Add,
        BinaryOp::Sub => BinOp::Sub,
        BinaryOp::Mul | BinaryOp::MatMul => BinOp::Mul,
        BinaryOp::Div => BinOp::Div,
        BinaryOp::Rem => BinOp::Rem,
    }
}
