//! What is asked for: an entry with types, constants and params, or with the arguments that tell them.

use super::bindings::{Slot, class_words};
use super::consts::Const;
use super::library::{Entity, Library, item_name};
use super::names::suggest;
use super::{Elab, ItemRef};
use crate::ast::{self, Generic, GenericKind, ItemKind};
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::program::*;
use crate::span::{Sources, Span};
use crate::target::Arch;
use indexmap::IndexMap;
use pantile_abi::DType;
use std::fmt;

/// A value given from outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    Int(i64),
    Bool(bool),
    Float(f64),
    Type(DType),
    /// A function, or whatever else the file knows by this name.
    Name(String),
}

impl Setting {
    /// As on a command line: `64`, `true`, `f16`, `gelu`.
    pub fn parse(text: &str) -> Setting {
        if let Ok(n) = text.parse() {
            return Setting::Int(n);
        }
        match text {
            "true" => Setting::Bool(true),
            "false" => Setting::Bool(false),
            _ => match (DType::from_name(text), text.parse()) {
                (Some(d), _) => Setting::Type(d),
                (None, Ok(x)) => Setting::Float(x),
                (None, Err(_)) => Setting::Name(text.into()),
            },
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Int(n) => n.fmt(f),
            Setting::Bool(b) => b.fmt(f),
            Setting::Float(x) => write!(f, "{x:?}"),
            Setting::Type(d) => d.fmt(f),
            Setting::Name(s) => f.write_str(s),
        }
    }
}

impl From<Const> for Setting {
    fn from(c: Const) -> Setting {
        match c {
            Const::Int(n) => i64::try_from(n).map_or(Setting::Float(n as f64), Setting::Int),
            Const::Bool(b) => Setting::Bool(b),
            Const::Float(x) => Setting::Float(x),
            Const::Type(Elem::D(d)) => Setting::Type(d),
            other => Setting::Name(other.to_string()),
        }
    }
}

/// One argument as it will be at launch. A scalar has no shape; its type may be left open.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgInfo {
    pub name: String,
    pub dtype: Option<DType>,
    pub shape: Vec<u64>,
}

/// What to specialise. Types and constants may also come from `args`; every map may name any generic or param.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub entry: String,
    pub types: IndexMap<String, DType>,
    pub consts: IndexMap<String, Setting>,
    /// `NAME`, or `kernel.NAME` for one of several kernels.
    pub params: IndexMap<String, Setting>,
    pub fns: IndexMap<String, String>,
    pub args: Option<Vec<ArgInfo>>,
    /// Every float type becomes f64: the same kernel as its own reference.
    pub widen: bool,
}

impl Request {
    pub fn new(entry: impl Into<String>) -> Request {
        Request { entry: entry.into(), ..Request::default() }
    }

    pub fn with_type(mut self, name: &str, dtype: DType) -> Request {
        self.types.insert(name.into(), dtype);
        self
    }

    pub fn with_const(mut self, name: &str, value: i64) -> Request {
        self.consts.insert(name.into(), Setting::Int(value));
        self
    }

    pub fn with_flag(mut self, name: &str, value: bool) -> Request {
        self.consts.insert(name.into(), Setting::Bool(value));
        self
    }

    pub fn with_param(mut self, name: &str, value: i64) -> Request {
        self.params.insert(name.into(), Setting::Int(value));
        self
    }

    pub fn with_fn(mut self, name: &str, function: &str) -> Request {
        self.fns.insert(name.into(), function.into());
        self
    }

    /// The same request with every float type f64.
    pub fn widen(&self) -> Request {
        Request { widen: true, ..self.clone() }
    }

    fn settings(&self) -> IndexMap<String, Setting> {
        let types = self.types.iter().map(|(n, d)| (n.clone(), Setting::Type(*d)));
        let fns = self.fns.iter().map(|(n, f)| (n.clone(), Setting::Name(f.clone())));
        let rest = self.consts.iter().chain(&self.params).map(|(n, s)| (n.clone(), s.clone()));
        types.chain(fns).chain(rest).collect()
    }
}

/// One `param` as it was bound.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamInfo {
    /// The kernel or op that declares it.
    pub item: String,
    pub name: String,
    pub value: Setting,
    /// Empty where the text states no range.
    pub choices: Vec<Setting>,
}

/// The values a param may take.
pub(crate) enum Choices {
    List(Vec<Const>),
    Range { lo: i128, hi: i128, step: i128 },
}

impl Choices {
    pub fn admit(&self, c: &Const) -> bool {
        match (self, c) {
            (Choices::List(items), c) => items.contains(c),
            (Choices::Range { lo, hi, step }, Const::Int(n)) => n >= lo && n <= hi && (n - lo) % step == 0,
            _ => false,
        }
    }

    pub fn into_public(self) -> Vec<Setting> {
        match self {
            Choices::List(items) => items.into_iter().map(Setting::from).collect(),
            Choices::Range { lo, hi, step } => {
                let steps = (0..4096).map(|i| lo + i * step).take_while(|&n| n <= hi);
                steps.map(|n| Setting::from(Const::Int(n))).collect()
            }
        }
    }
}

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choices::List(items) => {
                for (i, c) in items.iter().enumerate() {
                    write!(f, "{}{c}", if i == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
            Choices::Range { lo, hi, step: 1 } => write!(f, "{lo}..={hi}"),
            Choices::Range { lo, hi, step } => write!(f, "{lo}..={hi} step {step}"),
        }
    }
}

/// A specialised program, with what was chosen on the way.
#[derive(Clone, Debug)]
pub struct Elaborated {
    pub program: Program,
    pub warnings: Diagnostics,
    pub params: Vec<ParamInfo>,
}

/// Specialises an entry of the library's main file for an architecture.
pub fn elaborate(
    lib: &Library,
    request: &Request,
    arch: &Arch,
    sources: &mut Sources,
) -> Result<Elaborated, Diagnostics> {
    let mut e = Elab::new(lib, arch, sources);
    e.widen = request.widen;
    e.settings = request.settings();
    if let Some(host) = e.entry(request) {
        e.program.entry = host;
    }
    if e.errors == 0 {
        e.unused_settings();
    }
    if e.errors > 0 {
        return Err(e.diags);
    }
    Ok(Elaborated { program: e.program, warnings: e.diags, params: e.params })
}

impl<'a> Elab<'a> {
    fn entry(&mut self, request: &Request) -> Option<Host> {
        self.stage();
        let r = self.find_entry(&request.entry)?;
        let lib = self.lib;
        match &lib.item(r).kind {
            ItemKind::Kernel(k) => {
                let slots = self.entry_slots(r, &k.generics, &k.params, &k.name, request)?;
                self.host_lone(r, &slots)
            }
            ItemKind::Op(o) => {
                let slots = self.entry_slots(r, &o.generics, &o.params, &o.name, request)?;
                self.host_op(r, &slots)
            }
            _ => None,
        }
    }

    pub(crate) fn stage(&mut self) {
        let Some(stage) = self.lib.main().and_then(|u| u.ast.stage.as_ref()) else { return };
        match Stage::from_name(&stage.name) {
            Some(s) => self.program.stage = s,
            None => {
                let names: Vec<&str> = Stage::ALL.iter().map(|s| s.name()).collect();
                let d = Diagnostic::error(
                    codes::UNKNOWN_STAGE,
                    stage.span,
                    format!("there is no stage `{}`", stage.name),
                );
                self.report(d.help(format!("the stages are {}", names.join(", "))));
            }
        }
    }

    fn find_entry(&mut self, name: &str) -> Option<ItemRef> {
        let lib = self.lib;
        let runs = |k: &ItemKind| matches!(k, ItemKind::Kernel(_) | ItemKind::Op(_));
        match lib.lookup(0, name) {
            Some(Entity::Item(r)) if runs(&lib.item(r).kind) => return Some(r),
            Some(Entity::Item(r)) => {
                let item = lib.item(r);
                let span = item_name(item).map(|n| n.span).unwrap_or_default();
                let text = format!("`{name}` is a {}, it cannot be run", super::library::item_kind(item));
                let d = Diagnostic::error(codes::UNKNOWN_ENTRY, span, text);
                self.report(d.help("kernels and ops are run"));
            }
            _ => {
                let entries = lib.entries();
                let file = lib.main().map_or("the file", |u| u.name.as_str());
                let mut d = Diagnostic::error(
                    codes::UNKNOWN_ENTRY,
                    Span::default(),
                    format!("{file} has no kernel or op `{name}`"),
                );
                d = match suggest(name, entries.iter().copied()) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None if entries.is_empty() => d,
                    None => d.help(format!("it has {}", entries.join(", "))),
                };
                self.report(d);
            }
        }
        None
    }

    /// Generics of the entry: as requested, else as the arguments tell.
    fn entry_slots(
        &mut self,
        r: ItemRef,
        generics: &'a [Generic],
        params: &'a [ast::Param],
        owner: &'a ast::Ident,
        request: &Request,
    ) -> Option<Vec<Slot<'a>>> {
        let mut slots: Vec<Slot<'a>> = generics.iter().map(Slot::new).collect();
        let mut ok = true;
        self.f.scope = super::scope::Scope::new(r.unit);
        for slot in &mut slots {
            let generic = slot.generic;
            let Some(c) = self.requested(&generic.name.name) else { continue };
            if self.admits(generic.kind, &c) {
                slot.value = Some(c);
                slot.span = generic.span;
                continue;
            }
            let text = format!(
                "`{}` of `{}` is {}, but {c} is given",
                generic.name.name,
                owner.name,
                class_words(generic.kind)
            );
            let d = Diagnostic::error(codes::WRONG_GENERIC, generic.span, text);
            self.report(d);
            ok = false;
        }
        for arg in request.args.iter().flatten() {
            match params.iter().find(|p| p.name.name == arg.name) {
                Some(p) => ok &= self.infer_arg(&mut slots, p, arg),
                None => {
                    let names: Vec<&str> = params.iter().map(|p| p.name.name.as_str()).collect();
                    let text = format!("`{}` has no parameter `{}`", owner.name, arg.name);
                    let mut d = Diagnostic::error(codes::UNKNOWN_ARGUMENT, owner.span, text);
                    d = match suggest(&arg.name, names.iter().copied()) {
                        Some(near) => d.help(format!("did you mean `{near}`?")),
                        None => d.help(format!("its parameters are {}", names.join(", "))),
                    };
                    self.report(d);
                    ok = false;
                }
            }
        }
        ok.then_some(slots)
    }

    fn infer_arg(&mut self, slots: &mut [Slot<'a>], p: &'a ast::Param, arg: &ArgInfo) -> bool {
        if let Some(d) = arg.dtype {
            let elem = self.widened(Elem::D(d));
            let float8 = self.widen
                && slots.iter().any(|s| {
                    matches!(&p.elem, ast::Elem::Name(id) if id.name == s.generic.name.name)
                        && s.generic.kind == GenericKind::Float8
                });
            if !float8 {
                self.infer_elem(slots, &p.elem, elem, p.span);
            } else if let ast::Elem::Name(id) = &p.elem
                && let Some(slot) = slots.iter_mut().find(|s| s.generic.name.name == id.name)
            {
                slot.value.get_or_insert(Const::Type(elem));
            }
        }
        let Some(shape) = &p.shape else { return true };
        if shape.len() != arg.shape.len() {
            let text = format!(
                "`{}` has {} {}, but the argument has {}",
                p.name.name,
                shape.len(),
                if shape.len() == 1 { "axis" } else { "axes" },
                arg.shape.len()
            );
            let d = Diagnostic::error(codes::ARGUMENT_TYPE, p.span, text);
            self.report(d);
            return false;
        }
        let extents: Vec<Option<u64>> = arg.shape.iter().map(|&n| Some(n)).collect();
        self.infer_shape(slots, shape, &extents);
        true
    }

    /// Settings that nothing took: a slip of the pen, most likely.
    fn unused_settings(&mut self) {
        let names: Vec<String> = self.settings.keys().filter(|n| !self.used.contains(*n)).cloned().collect();
        for name in names {
            let known: Vec<String> =
                self.params.iter().map(|p| p.name.clone()).chain(self.used.iter().cloned()).collect();
            let text = format!("nothing takes the value given for `{name}`");
            let mut d = Diagnostic::error(codes::UNKNOWN_PARAM, Span::default(), text);
            let mut all: Vec<&str> = known.iter().map(String::as_str).collect();
            all.sort_unstable();
            all.dedup();
            d = match suggest(&name, all.iter().copied()) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None if all.is_empty() => d.help("the entry has no generics and no params"),
                None => d.help(format!("the params are {}", all.join(", "))),
            };
            self.report(d);
        }
    }
}
