//! Calls: which function is meant, whether its arguments are there, and the functions of the language.

use super::Elab;
use super::consts::{self, Callable, Const};
use super::functions::{self, Function, Kind};
use super::names::suggest;
use super::scope::Value;
use crate::ast::{self, Arg, ExprKind, GenericArg, Ident, ItemKind};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use pantile_abi::DType;

/// The arguments of one call.
pub(crate) struct CallArgs<'a> {
    pub positional: Vec<&'a ast::Expr>,
    pub names: Vec<(&'a Ident, &'a ast::Expr)>,
}

impl<'a> CallArgs<'a> {
    fn new(args: &'a [Arg]) -> CallArgs<'a> {
        let positional = args.iter().filter(|a| a.name.is_none()).map(|a| &a.value).collect();
        let names = args.iter().filter_map(|a| a.name.as_ref().map(|n| (n, &a.value))).collect();
        CallArgs { positional, names }
    }

    pub fn named(&self, name: &str) -> Option<&'a ast::Expr> {
        self.names.iter().find(|(n, _)| n.name == name).map(|&(_, e)| e)
    }

    /// Positional argument `i`; counts were checked before.
    pub fn one(&self, i: usize) -> Option<&'a ast::Expr> {
        self.positional.get(i).copied()
    }
}

/// Least and largest number of positional arguments, and the named ones.
fn signature(f: &Function) -> (usize, usize, &'static [&'static str]) {
    match f.kind {
        Kind::Math(MathFn::Min | MathFn::Max) => (1, 2, &["axis"]),
        Kind::Math(m) => (m.arity(), m.arity(), &[]),
        Kind::Atomic(AtomicOp::CompareExchange) => (3, 3, &[]),
        Kind::Atomic(_) => (2, 2, &[]),
        Kind::Fold(_) | Kind::Position(_) => (1, 1, &["axis"]),
        Kind::RowFold(_) => (1, 1, &[]),
        Kind::Other => match f.name {
            "where" => (3, 3, &[]),
            "bits" => (2, 2, &[]),
            "iota" => (1, usize::MAX, &["axis"]),
            "reshape" | "broadcast" => (2, usize::MAX, &[]),
            "reduce" => (2, 2, &["axis"]),
            "scan" => (2, 2, &["axis", "reverse", "exclusive"]),
            "cumsum" => (1, 1, &["axis", "reverse", "exclusive"]),
            "allreduce" => (2, 2, &["over"]),
            "shfl" | "shfl_up" | "shfl_down" | "shfl_xor" => (2, 2, &["width"]),
            "vote_any" | "vote_all" | "ballot" | "fence" => (1, 1, &["over"]),
            "print" => (0, usize::MAX, &[]),
            "assert" => (1, 2, &[]),
            _ => (1, 1, &[]),
        },
    }
}

impl<'a> Elab<'a> {
    pub(crate) fn call(
        &mut self,
        callee: &'a ast::Expr,
        generics: &'a [GenericArg],
        args: &'a [Arg],
        want: Option<Elem>,
        span: Span,
    ) -> Value {
        if let ExprKind::Field(base, field) = &callee.kind {
            return self.call_field(base, field, args, want, span);
        }
        let f = match &callee.kind {
            ExprKind::Name(id) => self.lookup(id),
            _ => self.expr(callee, None),
        };
        match f {
            Value::Const(Const::Type(t)) => self.call_type(t, false, args, span),
            Value::Const(Const::Fn(f)) => self.call_value(f, callee, generics, args, want, span),
            Value::Poison => {
                // mistakes in the arguments are mistakes of their own
                for a in args.iter().filter(|a| !matches!(a.value.kind, ExprKind::Keyed(..))) {
                    self.expr(&a.value, None);
                }
                Value::Poison
            }
            _ => {
                let text = match &callee.kind {
                    ExprKind::Name(id) => format!("`{}` is not a function", id.name),
                    _ => "this is not a function".into(),
                };
                let mut d = Diagnostic::error(codes::NOT_CALLABLE, self.sp(callee.span), text);
                if let ExprKind::Name(id) = &callee.kind
                    && let Some(place) = self.f.scope.span(&id.name)
                {
                    d = d.also(place, "declared here");
                    if functions::is_predeclared(&id.name) {
                        let what = if functions::find(&id.name).is_some() { "function" } else { "type" };
                        d = d.help(format!("it hides the {what} `{}`; give it another name", id.name));
                    }
                }
                self.report(d);
                Value::Poison
            }
        }
    }

    fn call_value(
        &mut self,
        f: Callable,
        callee: &'a ast::Expr,
        generics: &'a [GenericArg],
        args: &'a [Arg],
        want: Option<Elem>,
        span: Span,
    ) -> Value {
        match f {
            Callable::Builtin(name) => match functions::find(name) {
                Some(f) => self.builtin(f, false, args, want, span),
                None => Value::Poison,
            },
            Callable::Item(r) => {
                let lib = self.lib;
                match &lib.item(r).kind {
                    ItemKind::Fn(f) => self.inline(r, f, generics, args, want, span),
                    ItemKind::Intrinsic(i) => self.call_intrinsic(r, i, args, span),
                    _ => {
                        let d = Diagnostic::error(
                            codes::NOT_CALLABLE,
                            self.sp(callee.span),
                            "a combiner is not called",
                        );
                        self.report(d.help("give it to a fold: `reduce(comb, x)`, `scan(comb, x)`, `allreduce(comb, x, over = ...)`"));
                        Value::Poison
                    }
                }
            }
        }
    }

    /// `T.sat(x)`, `exp2.approx(x)`, `target.vec(T)`
    fn call_field(
        &mut self,
        base: &'a ast::Expr,
        field: &'a Ident,
        args: &'a [Arg],
        want: Option<Elem>,
        span: Span,
    ) -> Value {
        match (self.expr(base, None), field.name.as_str()) {
            (Value::Poison, _) => Value::Poison,
            (Value::Const(Const::Type(t)), "sat") => self.call_type(t, true, args, span),
            (Value::Const(Const::Fn(Callable::Builtin(name))), "approx") => match functions::find(name) {
                Some(f) if matches!(f.kind, Kind::Math(_)) => self.builtin(f, true, args, want, span),
                _ => {
                    let d = Diagnostic::error(
                        codes::NO_APPROX,
                        self.sp(span),
                        format!("`{name}` has no `.approx` form"),
                    );
                    self.report(d.help(format!("write `{name}(...)`")));
                    Value::Poison
                }
            },
            (Value::Target, _) => {
                let mut types = Vec::new();
                for a in args {
                    match self.constant(&a.value, "the type of a fact") {
                        Some(Const::Type(Elem::D(d))) => types.push(d),
                        Some(other) => {
                            return self
                                .wrong_kind(a.value.span, "the argument of a fact", "an element type", &other)
                                .unwrap_or(Value::Poison);
                        }
                        None => return Value::Poison,
                    }
                }
                self.fact(field, &types, span)
            }
            (_, name) => {
                let d = Diagnostic::error(
                    codes::UNKNOWN_FIELD,
                    self.sp(field.span),
                    format!("there is no `.{name}` here"),
                );
                self.report(
                    d.help("`T.sat(x)` clamps a conversion, `f.approx(x)` is the fast form of a function"),
                );
                Value::Poison
            }
        }
    }

    fn call_type(&mut self, t: Elem, sat: bool, args: &'a [Arg], span: Span) -> Value {
        match args {
            [Arg { name: None, value }] => self.cast(t, sat, value, span),
            _ => {
                let d = Diagnostic::error(
                    codes::ARGUMENT_COUNT,
                    self.sp(span),
                    format!("a conversion takes one value, not {}", args.len()),
                );
                self.report(d.help(format!("write `{t}(x)`")));
                Value::Poison
            }
        }
    }

    fn checked_args(&mut self, f: &Function, args: &'a [Arg], span: Span) -> Option<CallArgs<'a>> {
        let args = CallArgs::new(args);
        let (least, most, named) = signature(f);
        let n = args.positional.len();
        if n < least || n > most {
            let need = if least == most {
                least.to_string()
            } else if most == usize::MAX {
                format!("at least {least}")
            } else {
                format!("{least} to {most}")
            };
            let s = if need == "1" { "" } else { "s" };
            let text = format!("`{}` takes {need} argument{s}, not {n}", f.name);
            let d = Diagnostic::error(codes::ARGUMENT_COUNT, self.sp(span), text);
            self.report(d.help(format!("it is written `{}`", f.form)));
            return None;
        }
        for (i, (name, _)) in args.names.iter().enumerate() {
            if !named.contains(&name.name.as_str()) {
                let text = format!("`{}` has no argument `{}`", f.name, name.name);
                let mut d = Diagnostic::error(codes::UNKNOWN_ARGUMENT, self.sp(name.span), text);
                d = match suggest(&name.name, named.iter().copied()) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d.help(format!("it is written `{}`", f.form)),
                };
                self.report(d);
                return None;
            }
            if args.names[..i].iter().any(|(n, _)| n.name == name.name) {
                let d = Diagnostic::error(
                    codes::UNKNOWN_ARGUMENT,
                    self.sp(name.span),
                    format!("`{}` is given twice", name.name),
                );
                self.report(d);
                return None;
            }
        }
        Some(args)
    }

    pub(crate) fn builtin(
        &mut self,
        f: &'static Function,
        approx: bool,
        args: &'a [Arg],
        want: Option<Elem>,
        span: Span,
    ) -> Value {
        let Some(args) = self.checked_args(f, args, span) else { return Value::Poison };
        match f.kind {
            Kind::Math(m @ (MathFn::Min | MathFn::Max)) if args.positional.len() == 1 => {
                self.simple_fold((m.name(), m.name()), &args, false, want, span)
            }
            Kind::Math(m) => self.math(m, approx, &args, want, span),
            Kind::Atomic(op) => self.atomic(op, &args, span),
            Kind::Fold(comb) => self.simple_fold((f.name, comb), &args, false, want, span),
            Kind::RowFold(comb) => self.simple_fold((f.name, comb), &args, true, want, span),
            Kind::Position(largest) => self.position(largest, &args, span),
            Kind::Other => self.other_builtin(f, &args, want, span),
        }
    }

    fn other_builtin(
        &mut self,
        f: &'static Function,
        args: &CallArgs<'a>,
        want: Option<Elem>,
        span: Span,
    ) -> Value {
        match f.name {
            "where" => self.where_call(args, want, span),
            "identity" => args.one(0).map_or(Value::Poison, |e| self.expr(e, want)),
            "bits" => self.bits(args, span),
            "iota" => self.iota(args, span),
            "rows" => self.numbers(args, false, span),
            "cols" => self.numbers(args, true, span),
            "reshape" => self.reshape(args, false, span),
            "broadcast" => self.reshape(args, true, span),
            "reduce" => self.reduce(args, span),
            "scan" => self.scan(args, false, span),
            "cumsum" => self.scan(args, true, span),
            "allreduce" => self.allreduce(args, span),
            "shfl" => self.shuffle(ShuffleKind::Index, args, span),
            "shfl_up" => self.shuffle(ShuffleKind::Up, args, span),
            "shfl_down" => self.shuffle(ShuffleKind::Down, args, span),
            "shfl_xor" => self.shuffle(ShuffleKind::Xor, args, span),
            "vote_any" => self.vote(VoteKind::Any, args, span),
            "vote_all" => self.vote(VoteKind::All, args, span),
            "ballot" => self.vote(VoteKind::Ballot, args, span),
            "fence" => self.fence(args, span),
            "print" => self.print(args, span),
            "assert" => self.assert(args, span),
            _ => Value::Poison,
        }
    }

    /// A function that acts element by element.
    fn math(
        &mut self,
        f: MathFn,
        approx: bool,
        args: &CallArgs<'a>,
        want: Option<Elem>,
        span: Span,
    ) -> Value {
        let want = match f {
            MathFn::IsNan | MathFn::IsInf => None,
            MathFn::Min | MathFn::Max | MathFn::Clamp | MathFn::Abs | MathFn::CeilDiv => want,
            _ => want.filter(|w| w.is_float()),
        };
        let mut values = Vec::new();
        for e in &args.positional {
            let mark = self.mark();
            let v = self.expr(e, want);
            for (before, at) in values.iter_mut().zip(&args.positional) {
                *before = self.settle(std::mem::replace(before, Value::Unit), at, mark);
            }
            values.push(v);
        }
        if values.contains(&Value::Poison) {
            return Value::Poison;
        }
        if !approx {
            let known: Option<Vec<Const>> =
                values.iter().map(|v| if let Value::Const(c) = v { Some(c.clone()) } else { None }).collect();
            match known.and_then(|k| consts::math(f, &k)) {
                Some(Ok(c)) => return Value::Const(c),
                Some(Err(fault)) => return self.fault(span, fault),
                None => {}
            }
        }
        let elem =
            values.iter().find_map(|v| if let Value::Expr(e) = v { Some(self.elem(*e)) } else { None });
        let integers = matches!(f, MathFn::Min | MathFn::Max | MathFn::Clamp | MathFn::Abs | MathFn::CeilDiv);
        let fraction = values.iter().any(|v| matches!(v, Value::Const(Const::Float(_))));
        let default = if integers && !fraction { Elem::Index } else { self.widened(Elem::F32) };
        let elem = elem.or(want).unwrap_or(default);
        let mut out = Args::new();
        for (v, e) in values.into_iter().zip(&args.positional) {
            match self.to_expr(v, Some(elem), e.span) {
                Some(e) => out.push(e),
                None => return Value::Poison,
            }
        }
        self.widen_all(&mut out);
        self.folded(Expr::Math { f, approx, args: out }, span)
    }

    fn widen_all(&mut self, args: &mut Args) {
        if let Some(i) = args.iter().position(|&a| self.elem(a) == Elem::Index) {
            let index = args[i];
            for a in args.iter_mut() {
                *a = self.widen_ints(index, *a).1;
            }
        }
    }

    fn where_call(&mut self, args: &CallArgs<'a>, want: Option<Elem>, span: Span) -> Value {
        let [c, a, b] = args.positional[..] else { return Value::Poison };
        let cond = self.expr(c, None);
        let (x, y) = (self.expr(a, want), self.expr(b, want));
        if x == Value::Poison || y == Value::Poison {
            return Value::Poison;
        }
        // numbers without a type stay numbers; else both sides decide type and shape, whatever the condition
        if let (Value::Const(Const::Bool(c)), Value::Const(a), Value::Const(b)) = (&cond, &x, &y)
            && std::mem::discriminant(a) == std::mem::discriminant(b)
        {
            return if *c { x } else { y };
        }
        let Some(cond) = self.to_expr(cond, Some(Elem::BOOL), c.span) else { return Value::Poison };
        let Some((then, other)) = self.alike(x, a.span, y, b.span, want) else { return Value::Poison };
        self.push(Expr::Select { cond, then, other }, span).map_or(Value::Poison, Value::Expr)
    }

    fn bits(&mut self, args: &CallArgs<'a>, span: Span) -> Value {
        let [t, x] = args.positional[..] else { return Value::Poison };
        let to = match self.constant(t, "the first argument of `bits`") {
            Some(Const::Type(Elem::D(d))) => d,
            Some(other) => {
                return self
                    .wrong_kind(t.span, "the first argument of `bits`", "an element type", &other)
                    .unwrap_or(Value::Poison);
            }
            None => return Value::Poison,
        };
        let Some(value) = self.value(x, None) else { return Value::Poison };
        if self.widen && (to == DType::F64 || self.elem(value).is_float()) {
            let text = "a kernel that looks at the bits of floats has no meaning in f64";
            let d = Diagnostic::error(codes::WIDEN_BITS, self.sp(span), text);
            self.report(d.help("compare with a reference kernel or fn instead of `widen`"));
            return Value::Poison;
        }
        self.push(Expr::Bits { to, value }, span).map_or(Value::Poison, Value::Expr)
    }

    /// A user's intrinsic, element by element.
    fn call_intrinsic(
        &mut self,
        r: super::library::ItemRef,
        i: &'a ast::Intrinsic,
        args: &'a [Arg],
        span: Span,
    ) -> Value {
        let args = CallArgs::new(args);
        if let Some((name, _)) = args.names.first() {
            let d = Diagnostic::error(
                codes::UNKNOWN_ARGUMENT,
                self.sp(name.span),
                "an intrinsic takes its arguments in order",
            );
            self.report(d);
            return Value::Poison;
        }
        if args.positional.len() != i.params.len() {
            let text = format!(
                "`{}` takes {} arguments, not {}",
                i.name.name,
                i.params.len(),
                args.positional.len()
            );
            let d = Diagnostic::error(codes::ARGUMENT_COUNT, self.sp(span), text);
            self.report(d.also(i.name.span, "declared here"));
            return Value::Poison;
        }
        let Some(id) = self.intrinsic(r) else { return Value::Poison };
        let func = &self.program.intrinsics[id].means;
        let wants: Vec<Option<Elem>> = func.params.iter().map(|&p| func.body.locals[p].ty.elem()).collect();
        let mut out = Args::new();
        for (e, want) in args.positional.iter().zip(wants) {
            match self.value(e, want) {
                Some(v) => out.push(v),
                None => return Value::Poison,
            }
        }
        self.push(Expr::Intrinsic { id, args: out }, span).map_or(Value::Poison, Value::Expr)
    }
}
