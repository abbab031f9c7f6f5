//! Checking a file as a whole: every item, for every type its generics admit and for the constants it is used with.

use super::Elab;
use super::bindings::{Slot, class_types};
use super::consts::{Callable, Const};
use super::emit::FrameKind;
use super::library::{ItemRef, Library};
use super::scope::Value;
use crate::ast::{
    self, ExprKind, Generic, GenericArg, GenericKind, Ident, Item, ItemKind, StmtKind, TestKind, TypeKind,
};
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::program::*;
use crate::span::{Sources, Span};
use crate::target::Arch;
use pantile_abi::DType;
use std::collections::HashMap;

/// Everything wrong with the main file, for all architectures. One mistake is told once, however many types,
/// constants and architectures it shows up for. `verify` is asked about each program that elaborates.
pub fn check_all(
    lib: &Library,
    archs: &[&Arch],
    sources: &mut Sources,
    verify: &mut dyn FnMut(&Program, &Arch, &Sources) -> Diagnostics,
) -> Diagnostics {
    let mut found = Findings::default();
    let uses = uses(lib);
    for arch in archs {
        for (r, item) in lib.main_items() {
            let mut check = Check { lib, arch, sources, uses: &uses, found: &mut found, verify, item: r };
            check.item(item);
            // whoever calls it would grow as far, under every binding
            if found.full {
                return found.finish(archs.len());
            }
        }
    }
    found.finish(archs.len())
}

/// Diagnostics by code and place, with the bindings under which each was met.
#[derive(Default)]
struct Findings {
    list: Vec<Finding>,
    known: HashMap<(u16, u32, u32, u32), usize>,
    missing: HashMap<(ItemRef, String), Span>,
    /// An item was too large to be written out.
    full: bool,
}

struct Finding {
    d: Diagnostic,
    under: String,
    /// Where it was met; the first is the one that it speaks of.
    archs: Vec<String>,
    /// Met under every binding of its item so far.
    always: bool,
}

impl Findings {
    fn add(&mut self, d: Diagnostic, under: &str, arch: &str) {
        let s = d.primary.span;
        let key = (d.code.0, s.file.0, s.start, s.end);
        match self.known.get(&key) {
            Some(&at) => {
                let f = &mut self.list[at];
                if f.archs.last().is_none_or(|a| a != arch) {
                    f.archs.push(arch.into());
                }
            }
            None => {
                self.known.insert(key, self.list.len());
                self.list.push(Finding { d, under: under.into(), archs: vec![arch.into()], always: false });
            }
        }
    }

    /// Whether the item has this unknown name already, at another place.
    fn tells(&mut self, item: ItemRef, d: &Diagnostic) -> bool {
        let key = (item, d.message.clone());
        match self.missing.get(&key) {
            Some(&span) => span != d.primary.span,
            None => {
                self.missing.insert(key, d.primary.span);
                false
            }
        }
    }

    fn finish(self, archs: usize) -> Diagnostics {
        let mut all: Vec<Finding> = self.list;
        all.sort_by_key(|f| (f.d.primary.span.file, f.d.primary.span.start));
        let tell = |f: Finding| {
            let mut d = f.d;
            if !f.under.is_empty() && !f.always {
                d = d.note(format!("with {}", f.under));
            }
            match f.archs.split_first() {
                _ if archs == 1 => d,
                // a limit of the first; others have their own
                Some((first, others)) if !others.is_empty() && d.message.contains(&format!("`{first}`")) => {
                    let all = others.len() + 1 == archs;
                    let whom = if all { "every target".into() } else { f.archs.join(", ") };
                    d.note(format!("refused for {whom}; the limit is that of `{first}`"))
                }
                Some((first, [])) if d.message.contains(&format!("`{first}`")) => d,
                _ if f.archs.len() < archs => d.note(format!("for {}", f.archs.join(", "))),
                _ => d,
            }
        };
        all.into_iter().map(tell).collect()
    }
}

/// Values of constants and functions that launches and tests of the file use, by item and generic.
type Uses = HashMap<(String, String), Vec<Use>>;

#[derive(Clone, PartialEq)]
enum Use {
    Int(i128),
    /// a function or a type
    Name(String),
}

fn uses(lib: &Library) -> Uses {
    let mut uses = Uses::new();
    let items: HashMap<&str, &[Generic]> = lib
        .main_items()
        .filter_map(|(_, i)| match &i.kind {
            ItemKind::Kernel(k) => Some((k.name.name.as_str(), &k.generics[..])),
            ItemKind::Op(o) => Some((o.name.name.as_str(), &o.generics[..])),
            _ => None,
        })
        .collect();
    for (_, item) in lib.main_items() {
        match &item.kind {
            ItemKind::Op(o) => uses_of_launches(&o.body, &items, &mut uses),
            ItemKind::Test(t) => uses_of_test(t, &items, &mut uses),
            _ => {}
        }
    }
    uses
}

fn note(uses: &mut Uses, item: &str, generic: &str, e: &ast::Expr) {
    let value = match &e.kind {
        ExprKind::Int(text) => super::consts::parse_int(text).map(Use::Int),
        ExprKind::Name(id) => Some(Use::Name(id.name.clone())),
        _ => None,
    };
    if let Some(value) = value {
        let list = uses.entry((item.into(), generic.into())).or_default();
        if !list.contains(&value) {
            list.push(value);
        }
    }
}

fn uses_of_launches(b: &ast::Block, items: &HashMap<&str, &[Generic]>, uses: &mut Uses) {
    for s in &b.stmts {
        match &s.kind {
            StmtKind::Launch { kernel, generics, .. } => {
                let Some(own) = items.get(kernel.name.as_str()) else { continue };
                for (i, g) in generics.iter().enumerate() {
                    match g {
                        GenericArg::Positional(e) => {
                            if let Some(g) = own.get(i) {
                                note(uses, &kernel.name, &g.name.name, e);
                            }
                        }
                        GenericArg::Named(n) => note(uses, &kernel.name, &n.name.name, &n.value),
                    }
                }
            }
            StmtKind::If { then, other, .. } => {
                uses_of_launches(then, items, uses);
                other.iter().for_each(|o| uses_of_launches(o, items, uses));
            }
            StmtKind::For { body, .. } => uses_of_launches(body, items, uses),
            _ => {}
        }
    }
}

fn uses_of_test(t: &ast::Test, items: &HashMap<&str, &[Generic]>, uses: &mut Uses) {
    let written = t
        .entries
        .iter()
        .find_map(|e| if let TestKind::Subject(id) = &e.kind { Some(id.name.as_str()) } else { None });
    let begins = |n: &&&str| t.name.name.starts_with(**n);
    let Some(subject) = written.or_else(|| items.keys().filter(begins).max_by_key(|n| n.len()).copied())
    else {
        return;
    };
    for e in &t.entries {
        if let TestKind::Param(choices) | TestKind::Dims(choices) | TestKind::Type(choices) = &e.kind {
            for c in choices {
                c.values.iter().for_each(|v| note(uses, subject, &c.name.name, v));
            }
        }
    }
}

struct Check<'c, 'v> {
    lib: &'c Library,
    arch: &'c Arch,
    sources: &'c mut Sources,
    uses: &'c Uses,
    found: &'c mut Findings,
    verify: &'v mut dyn FnMut(&Program, &Arch, &Sources) -> Diagnostics,
    item: ItemRef,
}

/// Errors that only say that a sample value was badly chosen.
fn is_choice(d: &Diagnostic) -> bool {
    matches!(d.code, codes::WHERE_FALSE | codes::STATIC_ASSERT)
}

impl Check<'_, '_> {
    fn item(&mut self, item: &Item) {
        match &item.kind {
            ItemKind::Kernel(k) => self.runs(&k.name, &k.generics, &k.wheres),
            ItemKind::Op(o) => self.runs(&o.name, &o.generics, &o.wheres),
            ItemKind::Fn(f) => {
                for binding in self.bindings(&f.name, &f.generics, &[]) {
                    if !self.found.full {
                        self.function(&binding);
                    }
                }
            }
            ItemKind::Combine(_) => self.simple(|e, r| {
                e.combine(r);
            }),
            ItemKind::Intrinsic(_) => self.simple(|e, r| {
                e.intrinsic(r);
            }),
            ItemKind::Const(_) => self.simple(|e, r| {
                e.item_value(r);
            }),
            ItemKind::Test(_) => self.simple(|e, r| {
                let lib = e.lib;
                if let ItemKind::Test(t) = &lib.item(r).kind {
                    e.test(t, lib.item(r).span);
                }
            }),
            ItemKind::Use(_) => {}
        }
    }

    fn simple(&mut self, run: impl FnOnce(&mut Elab<'_>, ItemRef)) {
        let mut e = Elab::new(self.lib, self.arch, self.sources);
        run(&mut e, self.item);
        self.found.full |= e.full;
        let diags = e.diags;
        for d in diags {
            self.found.add(d, "", &self.arch.name);
        }
    }

    fn runs(&mut self, name: &Ident, generics: &[Generic], wheres: &[ast::Expr]) {
        let all = self.bindings(name, generics, wheres);
        let first = self.found.list.len();
        let doubtful = |b: &&Binding| b.doubt != Doubt::None;
        let (sure, rest): (Vec<&Binding>, Vec<&Binding>) = all.iter().partition(|b| !doubtful(b));
        let mut hits: HashMap<usize, usize> = HashMap::new();
        let mut runs = 0;
        let mut failed = false;
        for binding in sure.into_iter().chain(rest) {
            if self.found.full {
                break;
            }
            // what fails for a type that must work says enough
            if binding.doubt != Doubt::None && failed {
                break;
            }
            let Some(seen) = self.run(name, binding) else { continue };
            runs += 1;
            failed |= seen.iter().any(|&at| self.found.list[at].d.is_error());
            for at in seen {
                *hits.entry(at).or_default() += 1;
            }
        }
        for (at, n) in hits {
            if at >= first && n == runs {
                self.found.list[at].always = true;
            }
        }
    }

    /// Elaborates under one binding; the places of what was found, or nothing if the binding is not admitted.
    fn run(&mut self, name: &Ident, binding: &Binding) -> Option<Vec<usize>> {
        let lib = self.lib;
        let mut e = Elab::new(lib, self.arch, self.sources);
        e.stage();
        let slots = binding.slots(&mut e, self.item);
        let host = match &lib.item(self.item).kind {
            ItemKind::Kernel(_) => e.host_lone(self.item, &slots),
            _ => e.host_op(self.item, &slots),
        };
        self.found.full |= e.full;
        let (diags, mut program) = (e.diags, e.program);
        if diags.iter().any(is_choice) && binding.sampled {
            return None;
        }
        let clean = !diags.has_errors();
        if !clean && binding.doubt != Doubt::None {
            self.unfit(name, binding, &diags);
            return None;
        }
        let mut all: Vec<Diagnostic> = diags.into_iter().collect();
        if let (true, Some(host)) = (clean, host) {
            program.entry = host;
            all.extend((self.verify)(&program, self.arch, self.sources));
        }
        Some(self.note(all, &binding.words()))
    }

    /// A type that the class admits and the body does not; nothing in the file uses it.
    fn unfit(&mut self, name: &Ident, binding: &Binding, diags: &Diagnostics) {
        let (Doubt::Warn, Some(first)) = (binding.doubt, diags.iter().find(|d| d.is_error())) else { return };
        let text = format!("`{}` admits {}, but does not work for it", name.name, binding.varied);
        let mut d = Diagnostic::warning(codes::UNFIT_TYPE, name.span, text);
        d = d.also(first.primary.span, first.message.clone());
        let (generic, ty) = binding.varied.split_once(" = ").unwrap_or_default();
        let rest: Vec<&str> = class_types(GenericKind::Float).map(DType::name).filter(|n| *n != ty).collect();
        d = d.help(format!("say so: `where {generic} in [{}]`", rest.join(", ")));
        self.found.add(d, "", &self.arch.name);
    }

    fn note(&mut self, diags: Vec<Diagnostic>, under: &str) -> Vec<usize> {
        let mut at = Vec::new();
        for d in diags {
            let s = d.primary.span;
            let key = (d.code.0, s.file.0, s.start, s.end);
            // another binding may meet an unknown name elsewhere first
            if d.code == codes::UNKNOWN_NAME && self.found.tells(self.item, &d) {
                continue;
            }
            self.found.add(d, under, &self.arch.name);
            at.extend(self.found.known.get(&key));
        }
        at
    }

    fn function(&mut self, binding: &Binding) {
        let lib = self.lib;
        let mut e = Elab::new(lib, self.arch, self.sources);
        let slots = binding.slots(&mut e, self.item);
        e.sample_call(self.item, &slots);
        self.found.full |= e.full;
        let diags = e.diags;
        if diags.iter().any(is_choice) && binding.sampled {
            return;
        }
        if diags.has_errors() && binding.doubt != Doubt::None {
            return;
        }
        let all = diags.into_iter().collect();
        self.note(all, &binding.words());
    }

    /// One generic varies at a time, the others stay at their first value.
    fn bindings(&mut self, name: &Ident, generics: &[Generic], wheres: &[ast::Expr]) -> Vec<Binding> {
        let mut sampled = false;
        let choices: Vec<(&Generic, Vec<(Bound, Doubt)>)> = generics
            .iter()
            .map(|g| {
                let (values, sample) = self.values(name, g, wheres);
                sampled |= sample;
                (g, values)
            })
            .collect();
        let base: Vec<(String, Bound)> =
            choices.iter().filter_map(|(g, v)| Some((g.name.name.clone(), v.first()?.0.clone()))).collect();
        let mut out =
            vec![Binding { values: base.clone(), sampled, doubt: Doubt::None, varied: String::new() }];
        for (i, (g, values)) in choices.iter().enumerate() {
            for (v, doubt) in values.iter().skip(1) {
                let mut values = base.clone();
                if let Some(slot) = values.get_mut(i) {
                    slot.1 = v.clone();
                }
                let varied = format!("{} = {v}", g.name.name);
                out.push(Binding { values, sampled, doubt: *doubt, varied });
            }
        }
        out
    }

    /// What a generic is bound to, and whether that is only a sample.
    fn values(&mut self, item: &Ident, g: &Generic, wheres: &[ast::Expr]) -> (Vec<(Bound, Doubt)>, bool) {
        let sure = |b: Vec<Bound>| b.into_iter().map(|b| (b, Doubt::None)).collect::<Vec<_>>();
        let listed = wheres.iter().find_map(|w| match &w.kind {
            ExprKind::In(a, list) => match (&a.kind, &list.kind) {
                (ExprKind::Name(id), ExprKind::List(items)) if id.name == g.name.name => Some(items),
                _ => None,
            },
            _ => None,
        });
        if let Some(items) = listed {
            let values: Vec<Bound> = items.iter().filter_map(|i| bound(i, g.kind)).collect();
            if !values.is_empty() {
                return (sure(values), false);
            }
        }
        let used = self.uses.get(&(item.name.clone(), g.name.name.clone()));
        let used = used.map_or(&[][..], Vec::as_slice);
        let names = || used.iter().filter_map(|u| if let Use::Name(f) = u { Some(f) } else { None });
        match g.kind {
            GenericKind::ConstBool => (sure(vec![Bound::Bool(false), Bound::Bool(true)]), false),
            GenericKind::ConstInt => {
                let ints =
                    used.iter().filter_map(|u| if let Use::Int(n) = u { Some(Bound::Int(*n)) } else { None });
                let ints: Vec<Bound> = ints.collect();
                let samples = || vec![Bound::Int(64), Bound::Int(16)];
                (sure(if ints.is_empty() { samples() } else { ints }), true)
            }
            GenericKind::Fn => {
                let default = g.default.is_some().then_some(Bound::Default);
                let fns: Vec<Bound> = default.into_iter().chain(names().cloned().map(Bound::Fn)).collect();
                let sample = fns.is_empty();
                (sure(if sample { vec![Bound::Fn("identity".into())] } else { fns }), sample)
            }
            kind => {
                let used: Vec<DType> = names().filter_map(|n| DType::from_name(n)).collect();
                (types_of(kind, &used), false)
            }
        }
    }
}

/// Types that the file uses and those that must work come first. Of an open class (`dtype`) only these must work;
/// f64, whose sums are not f32, may be left out by a kernel of the class `float`.
fn types_of(kind: GenericKind, used: &[DType]) -> Vec<(Bound, Doubt)> {
    let doubt = |d: DType| match (kind, d) {
        _ if used.contains(&d) => Doubt::None,
        (GenericKind::DType, DType::F32) if used.is_empty() => Doubt::None,
        (GenericKind::DType, _) => Doubt::Silent,
        (GenericKind::Float, DType::F64) => Doubt::Warn,
        (GenericKind::Int, DType::I4 | DType::U4) => Doubt::Silent,
        (GenericKind::Int, _) if !used.is_empty() => Doubt::Silent,
        _ => Doubt::None,
    };
    let mut types: Vec<(DType, Doubt)> = class_types(kind).map(|d| (d, doubt(d))).collect();
    types.sort_by_key(|&(d, doubt)| (doubt, !matches!(d, DType::F16 | DType::I32)));
    types.into_iter().map(|(d, doubt)| (Bound::Type(d), doubt)).collect()
}

/// What follows if an item does not work for a binding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doubt {
    /// It is an error.
    None,
    Warn,
    Silent,
}

#[derive(Clone)]
enum Bound {
    Int(i128),
    Bool(bool),
    Type(DType),
    Fn(String),
    Default,
}

fn bound(e: &ast::Expr, kind: GenericKind) -> Option<Bound> {
    match (&e.kind, kind) {
        (ExprKind::Int(text), GenericKind::ConstInt) => super::consts::parse_int(text).map(Bound::Int),
        (ExprKind::Bool(b), GenericKind::ConstBool) => Some(Bound::Bool(*b)),
        (ExprKind::Name(id), GenericKind::Fn) => Some(Bound::Fn(id.name.clone())),
        (ExprKind::Name(id), _) => DType::from_name(&id.name).map(Bound::Type),
        _ => None,
    }
}

struct Binding {
    values: Vec<(String, Bound)>,
    sampled: bool,
    doubt: Doubt,
    /// The generic that differs from the first binding: `T = f64`.
    varied: String,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::Int(n) => n.fmt(f),
            Bound::Bool(b) => b.fmt(f),
            Bound::Type(d) => d.fmt(f),
            Bound::Fn(name) => f.write_str(name),
            Bound::Default => f.write_str("its default"),
        }
    }
}

impl Binding {
    fn words(&self) -> String {
        let told = |(_, b): &&(String, Bound)| !matches!(b, Bound::Default);
        self.values.iter().filter(told).map(|(n, b)| format!("{n} = {b}")).collect::<Vec<_>>().join(", ")
    }

    fn slots<'a>(&self, e: &mut Elab<'a>, r: ItemRef) -> Vec<Slot<'a>> {
        let lib = e.lib;
        let generics: &'a [Generic] = match &lib.item(r).kind {
            ItemKind::Kernel(k) => &k.generics,
            ItemKind::Op(o) => &o.generics,
            ItemKind::Fn(f) => &f.generics,
            _ => &[],
        };
        let mut slots = Vec::new();
        for g in generics {
            let mut slot = Slot::new(g);
            slot.value = match self.values.iter().find(|(n, _)| *n == g.name.name).map(|(_, b)| b) {
                Some(Bound::Int(n)) => Some(Const::Int(*n)),
                Some(Bound::Bool(b)) => Some(Const::Bool(*b)),
                Some(Bound::Type(d)) => Some(Const::Type(Elem::D(*d))),
                Some(Bound::Fn(f)) => match e.find(f) {
                    Some(Value::Const(c @ Const::Fn(_))) => Some(c),
                    _ => Some(Const::Fn(Callable::Builtin("identity"))),
                },
                Some(Bound::Default) | None => None,
            };
            slots.push(slot);
        }
        slots
    }
}

/// Extents for tiles whose shape a function leaves open: all different, so that a mix-up shows.
const EXTENTS: [u32; 6] = [16, 32, 64, 128, 8, 4];

impl<'a> Elab<'a> {
    /// Elaborates a function's body as if it were called from a kernel with values of its parameters' types.
    fn sample_call(&mut self, r: ItemRef, slots: &[Slot<'a>]) {
        let lib = self.lib;
        let ItemKind::Fn(f) = &lib.item(r).kind else { return };
        self.stack.push((r, FrameKind::Kernel));
        self.framed(FrameKind::Kernel, r.unit, |s| {
            if !s.bind_generics(&f.generics, slots, &f.name) {
                return;
            }
            let mut next = 0;
            for (name, ty) in &f.params {
                let value = s.sample(ty, &mut next, name.span);
                s.declare(name, value.unwrap_or(Value::Poison));
            }
            s.fn_body(f, None);
        });
        self.stack.pop();
    }

    fn sample(&mut self, ty: &'a ast::Type, next: &mut usize, span: Span) -> Option<Value> {
        match &ty.kind {
            TypeKind::Elem(e) => {
                let elem = self.elem_type(e)?;
                Some(Value::Local(self.new_local("x", Type::Scalar(elem), LocalKind::Let, span)))
            }
            TypeKind::Tile { elem, shape } => {
                let elem = self.elem_type(elem);
                let shape = self.sample_shape(shape, next)?;
                Some(Value::Local(self.new_local(
                    "x",
                    Type::Tile { elem: elem?, shape },
                    LocalKind::Let,
                    span,
                )))
            }
            TypeKind::Shared { elem, shape } | TypeKind::Array { elem, shape } => {
                let elem = self.elem_type(elem)?.dtype()?;
                let shape = self.sample_shape(shape, next)?;
                let buffer = Buffer::new("t".into(), Home::Shared, elem, shape);
                Some(Value::Mem(Mem::Buffer(self.f.kernel.buffers.push(buffer, span))))
            }
            TypeKind::Tuple(types) => {
                let parts: Option<Vec<Value>> = types.iter().map(|t| self.sample(t, next, span)).collect();
                Some(Value::Tuple(parts?.into()))
            }
            TypeKind::Reducer { .. } => None,
        }
    }

    fn sample_shape(&mut self, shape: &'a [ast::Expr], next: &mut usize) -> Option<Shape> {
        for e in shape {
            if let ExprKind::Name(id) = &e.kind
                && self.find(&id.name).is_none()
            {
                self.declare(id, Value::Const(Const::Int(EXTENTS[*next % EXTENTS.len()].into())));
                *next += 1;
            }
        }
        self.static_shape(shape)
    }
}
