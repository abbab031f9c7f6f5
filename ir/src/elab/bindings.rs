//! Generics: what each is bound to, whether its class admits that, and what to say where nothing binds it.

use super::Elab;
use super::consts::{Callable, Const};
use super::scope::Value;
use crate::ast::{self, Generic, GenericArg, GenericKind, ItemKind};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::Elem;
use crate::span::Span;
use pantile_abi::{DType, DTypeKind};

/// One generic of an item that is being specialised.
#[derive(Clone, Debug)]
pub(crate) struct Slot<'a> {
    pub generic: &'a Generic,
    pub value: Option<Const>,
    /// Where the value comes from.
    pub span: Span,
    /// An argument's type that the class does not admit.
    pub refused: Option<(Elem, Span)>,
    /// A run-time dim stands where the generic would need a number.
    pub open: Option<(String, Span)>,
}

impl<'a> Slot<'a> {
    pub fn new(generic: &'a Generic) -> Slot<'a> {
        Slot { generic, value: None, span: Span::default(), refused: None, open: None }
    }
}

pub(crate) fn class_admits(kind: GenericKind, elem: Elem) -> bool {
    match kind {
        GenericKind::Float => matches!(elem, Elem::D(d) if d.kind() == DTypeKind::Float),
        // an f8 kernel in f64 keeps its class
        GenericKind::Float8 => matches!(elem, Elem::D(d) if d.kind() == DTypeKind::Float8),
        GenericKind::Int => elem.is_integer(),
        GenericKind::DType => true,
        GenericKind::ConstInt | GenericKind::ConstBool | GenericKind::Fn => false,
    }
}

/// Can a generic of this kind be this type?
pub fn admits(kind: GenericKind, dtype: DType) -> bool {
    class_admits(kind, Elem::D(dtype))
}

/// The types a class admits, of those that memory can hold.
pub(crate) fn class_types(kind: GenericKind) -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(move |&d| class_admits(kind, Elem::D(d)))
}

pub(crate) fn class_words(kind: GenericKind) -> &'static str {
    match kind {
        GenericKind::Float => "a float type (f16, bf16, f32, f64)",
        GenericKind::Float8 => "an 8-bit float type (f8e4m3, f8e5m2)",
        GenericKind::Int => "an integer type",
        GenericKind::DType => "an element type",
        GenericKind::ConstInt => "an integer known at compile time",
        GenericKind::ConstBool => "a bool known at compile time",
        GenericKind::Fn => "a function",
    }
}

impl<'a> Elab<'a> {
    pub(crate) fn admits(&self, kind: GenericKind, c: &Const) -> bool {
        match (kind, c) {
            (GenericKind::Float8, Const::Type(Elem::D(DType::F64))) if self.widen => true,
            (_, Const::Type(t)) => class_admits(kind, *t),
            (GenericKind::ConstInt, Const::Int(_)) | (GenericKind::ConstBool, Const::Bool(_)) => true,
            (GenericKind::Fn, Const::Fn(f)) => match f {
                Callable::Builtin(_) => true,
                Callable::Item(r) => matches!(
                    self.lib.item(*r).kind,
                    ItemKind::Fn(_) | ItemKind::Intrinsic(_) | ItemKind::Combine(_)
                ),
            },
            _ => false,
        }
    }

    /// Generics as written at the call: `f<f16, E = gelu>(…)`.
    pub(crate) fn explicit_generics(
        &mut self,
        generics: &'a [Generic],
        owner: &ast::Ident,
        args: &'a [GenericArg],
        span: Span,
    ) -> Option<Vec<Slot<'a>>> {
        let mut slots: Vec<Slot<'a>> = generics.iter().map(Slot::new).collect();
        let mut ok = true;
        for (i, arg) in args.iter().enumerate() {
            let (at, e) = match arg {
                GenericArg::Positional(e) => (i, e),
                GenericArg::Named(n) => match generics.iter().position(|g| g.name.name == n.name.name) {
                    Some(at) => (at, &n.value),
                    None => {
                        let text = format!("`{}` has no generic `{}`", owner.name, n.name.name);
                        let d = Diagnostic::error(codes::WRONG_GENERIC, self.sp(n.name.span), text);
                        self.report(d.also(owner.span, "declared here"));
                        ok = false;
                        continue;
                    }
                },
            };
            let Some(slot) = slots.get(at) else {
                let text =
                    format!("`{}` has {} generics, but {} are given", owner.name, generics.len(), args.len());
                let d = Diagnostic::error(codes::WRONG_GENERIC, self.sp(span), text);
                self.report(d.also(owner.span, "declared here"));
                return None;
            };
            let kind = slot.generic.kind;
            let generic = slot.generic;
            let Some(c) = self.constant(e, &format!("`{}`", generic.name.name)) else {
                ok = false;
                continue;
            };
            if !self.admits(kind, &c) {
                let text = format!(
                    "`{}` of `{}` is {}, not {}",
                    generic.name.name,
                    owner.name,
                    class_words(kind),
                    c.kind()
                );
                let d = Diagnostic::error(codes::WRONG_GENERIC, self.sp(e.span), text);
                self.report(d.also(generic.span, "declared here"));
                ok = false;
                continue;
            }
            slots[at].value = Some(c);
            slots[at].span = self.sp(e.span);
        }
        ok.then_some(slots)
    }

    /// Declares the generics in the present scope; unbound ones take their defaults or are reported.
    pub(crate) fn bind_generics(
        &mut self,
        generics: &'a [Generic],
        slots: &[Slot<'a>],
        owner: &ast::Ident,
    ) -> bool {
        let mut ok = true;
        for (generic, slot) in generics.iter().zip(slots) {
            let value = match (&slot.value, &generic.default) {
                (Some(c), _) => Some(c.clone()),
                (None, Some(default)) if slot.refused.is_none() => {
                    match self.constant(default, &format!("the default of `{}`", generic.name.name)) {
                        Some(c) if self.admits(generic.kind, &c) => Some(c),
                        Some(c) => self.wrong_kind(
                            default.span,
                            &format!("`{}`", generic.name.name),
                            class_words(generic.kind),
                            &c,
                        ),
                        None => None,
                    }
                }
                (None, _) => {
                    if !self.class_error(slot, owner) {
                        self.unbound(slot, owner);
                    }
                    None
                }
            };
            ok &= value.is_some();
            self.declare(&generic.name, value.map_or(Value::Poison, Value::Const));
        }
        ok
    }

    fn unbound(&mut self, slot: &Slot<'a>, owner: &ast::Ident) {
        let generic = slot.generic;
        let name = &generic.name.name;
        if let Some((dim, span)) = &slot.open {
            let text = format!(
                "`{name}` of `{}` must be known at compile time, but `{dim}` is a dim bound at launch",
                owner.name
            );
            let d = Diagnostic::error(codes::UNBOUND_GENERIC, *span, text);
            self.report(
                d.also(generic.span, "declared here")
                    .help(format!("make `{dim}` a generic too: `const {dim}: int`")),
            );
            return;
        }
        // inside an inlined call the call is at fault, at the entry the request
        let call = self.sources.call(self.sp(generic.span)).map(|c| c.span);
        let (span, help) = match call {
            Some(call) => (call, format!("name it at the call: `{}<{name} = ...>(...)`", owner.name)),
            None => match self.launch {
                Some(launch) => {
                    (launch, format!("name it at the launch: `launch {}<{name} = ...>(...)`", owner.name))
                }
                None => (generic.span, format!("give it: `--param {name}={}`", sample_text(generic.kind))),
            },
        };
        let text = format!("`{name}` of `{}` is not bound by any argument", owner.name);
        let d = Diagnostic::error(codes::UNBOUND_GENERIC, span, text);
        let d =
            if call.is_some() || self.launch.is_some() { d.also(generic.span, "declared here") } else { d };
        self.report(d.help(help));
    }
}

fn sample_text(kind: GenericKind) -> &'static str {
    match kind {
        GenericKind::Float | GenericKind::DType => "f16",
        GenericKind::Float8 => "f8e4m3",
        GenericKind::Int => "i32",
        GenericKind::ConstInt => "64",
        GenericKind::ConstBool => "true",
        GenericKind::Fn => "gelu",
    }
}
