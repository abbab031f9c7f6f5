//! From texts to targets: parse all files, resolve `inherits`, lay values over one another, check.

use super::Targets;
use super::arch::{Arch, Atomic, Backend, Chip, Engine, Peak};
use super::check;
use super::known::Evidence;
use super::matrix::{MatrixUnit, MoveUnit};
use super::read::{Reader, nearest};
use super::sections::{ChipFacts, Facts, Group};
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::span::{FileId, Span};
use pantile_abi::DType;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::de::DeTable;

/// Errors of syntax that are reported for one file.
const MOST_ERRORS: usize = 10;

/// All tables that speak of one architecture, oldest file first.
struct Layers<'t> {
    name: String,
    tables: Vec<Reader<'t>>,
}

pub(super) fn load(texts: &[(FileId, &str)]) -> Result<Targets> {
    let out = RefCell::new(Diagnostics::new());
    let parsed: Vec<_> = texts.iter().map(|(file, text)| (*file, parse(*file, text, &out))).collect();
    if out.borrow().has_errors() {
        return Err(out.into_inner());
    }
    let mut archs: Vec<Layers> = Vec::new();
    let mut chips: Vec<Layers> = Vec::new();
    for (file, table) in &parsed {
        let root = Reader::new(*file, "", table, Span::new(*file, 0, 0), &out);
        collect(&mut archs, root.named("arch"));
        collect(&mut chips, root.named("chip"));
        root.finish();
    }
    let mut targets = Targets { archs: resolve(archs, &out), chips: Vec::new() };
    targets.chips = chips.iter().filter_map(|c| chip(c, &targets.archs)).collect();
    for a in &mut targets.archs {
        a.processors = agreed(&targets.chips, &a.name);
    }
    let mut found = out.into_inner();
    if !found.has_errors() {
        targets.archs.iter().for_each(|a| check::arch(a, &mut found));
    }
    if found.has_errors() { Err(found) } else { Ok(targets) }
}

fn parse<'t>(file: FileId, text: &'t str, out: &RefCell<Diagnostics>) -> DeTable<'t> {
    let (table, errors) = DeTable::parse_recoverable(text);
    // one slip may be followed by thousands of complaints
    for e in errors.into_iter().take(MOST_ERRORS) {
        let range = e.span().unwrap_or(0..0);
        let message = format!("the targets file cannot be read: {}", e.message());
        out.borrow_mut().push(Diagnostic::error(
            codes::TARGET_FILE,
            Span::new(file, range.start, range.end),
            message,
        ));
    }
    table.into_inner()
}

fn collect<'t>(into: &mut Vec<Layers<'t>>, found: Vec<(String, Reader<'t>)>) {
    for (name, table) in found {
        match into.iter_mut().find(|l| l.name == name) {
            Some(known) => known.tables.push(table),
            None => into.push(Layers { name, tables: vec![table] }),
        }
    }
}

/// Parents before children, in the order of the files otherwise.
fn resolve(layers: Vec<Layers>, out: &RefCell<Diagnostics>) -> Vec<Arch> {
    let names: Vec<String> = layers.iter().map(|l| l.name.clone()).collect();
    let mut state = Resolver { layers: &layers, names, done: BTreeMap::new(), open: Vec::new(), out };
    for l in &layers {
        state.arch(&l.name);
    }
    let mut done = state.done;
    layers.iter().filter_map(|l| done.remove(&l.name).flatten()).collect()
}

struct Resolver<'a, 't> {
    layers: &'a [Layers<'t>],
    names: Vec<String>,
    /// `None` where resolving failed and was reported
    done: BTreeMap<String, Option<Arch>>,
    open: Vec<String>,
    out: &'a RefCell<Diagnostics>,
}

impl Resolver<'_, '_> {
    fn arch(&mut self, name: &str) -> Option<Arch> {
        if let Some(found) = self.done.get(name) {
            return found.clone();
        }
        let layers = self.layers.iter().find(|l| l.name == name)?;
        self.open.push(name.to_string());
        let built = self.build(layers);
        self.open.pop();
        self.done.insert(name.to_string(), built.clone());
        built
    }

    fn build(&mut self, layers: &Layers) -> Option<Arch> {
        let parents: Vec<_> = layers.tables.iter().map(|t| t.get::<String>("inherits")).collect();
        let mut stated = parents.iter().flatten();
        let parent = stated.next();
        if let (Some((first, _)), Some((again, span))) =
            (parent, stated.find(|(p, _)| Some(p) != parent.map(|p| &p.0)))
        {
            let message = format!("`{}` already inherits from `{first}`, not from `{again}`", layers.name);
            self.push(Diagnostic::error(codes::TARGET_INHERITS, *span, message));
        }
        let base = match parent {
            Some((name, span)) => Some(self.parent(layers, name, *span)?),
            None => None,
        };
        let mut arch = start(layers, base)?;
        let owner = arch.owner();
        for t in &layers.tables {
            lay(&mut arch, t, &owner);
        }
        Some(arch)
    }

    fn parent(&mut self, child: &Layers, name: &str, span: Span) -> Option<Arch> {
        if let Some(at) = self.open.iter().position(|n| n == name) {
            let circle = self.open[at..].join("` -> `");
            let message = format!("`{}` inherits from itself: `{circle}` -> `{name}`", child.name);
            self.push(Diagnostic::error(codes::TARGET_INHERITS, span, message));
            return None;
        }
        if !self.names.iter().any(|n| n == name) {
            let message = format!("`{}` inherits from `{name}`, which is not declared", child.name);
            let d = Diagnostic::error(codes::TARGET_INHERITS, span, message);
            self.push(match nearest(name, self.names.iter().map(String::as_str)) {
                Some(close) => d.help(format!("did you mean `{close}`?")),
                None => d.help("declare it as `[arch.NAME]` in this file or one given before"),
            });
            return None;
        }
        self.arch(name)
    }

    fn push(&self, d: Diagnostic) {
        self.out.borrow_mut().push(d);
    }
}

/// The architecture before its own tables are laid over what it inherits.
fn start(layers: &Layers, base: Option<Arch>) -> Option<Arch> {
    let first = layers.tables.first()?;
    let span = first.span;
    Some(match base {
        Some(mut a) => {
            a.chain.insert(0, layers.name.clone());
            Arch { name: layers.name.clone(), span, default: false, note: None, ..a }
        }
        None => Arch {
            name: layers.name.clone(),
            backend: backend(first)?,
            note: None,
            default: false,
            chain: vec![layers.name.clone()],
            span,
            facts: Facts::default(),
            engines: Vec::new(),
            atomics: Vec::new(),
            matrix: Vec::new(),
            moves: Vec::new(),
            processors: None,
        },
    })
}

fn backend(t: &Reader) -> Option<Backend> {
    let (name, span) = t.need::<String>("backend")?;
    let found = Backend::from_name(&name);
    if found.is_none() {
        let all = super::read::quoted(Backend::ALL.map(Backend::name));
        t.error(codes::TARGET_VALUE, span, format!("no back end is called `{name}`; there are {all}"));
    }
    found
}

/// Lays one table of an architecture over what is known already.
fn lay(arch: &mut Arch, t: &Reader, owner: &Arc<str>) {
    if t.raw("backend").is_some() && backend(t).is_some_and(|b| b != arch.backend) {
        t.error(codes::TARGET_INHERITS, t.span, format!("`{}` cannot change its back end", arch.name));
    }
    if let Some((note, _)) = t.get::<String>("note") {
        arch.note = Some(note);
    }
    if let Some((default, _)) = t.get::<bool>("default") {
        arch.default = default;
    }
    without(arch, t);
    arch.facts.read(t, owner);
    for row in t.rows("engine") {
        engine(arch, &row, owner);
        row.finish();
    }
    if let Some(table) = t.table("atomics") {
        atomics(arch, &table, owner);
    }
    for row in t.rows("matrix") {
        if let Some(unit) = MatrixUnit::read(&row, owner) {
            put(&mut arch.matrix, unit, |u| &u.name);
            row.finish();
        }
    }
    for row in t.rows("move") {
        if let Some(unit) = MoveUnit::read(&row, owner) {
            put(&mut arch.moves, unit, |u| &u.name);
            row.finish();
        }
    }
    t.finish();
}

/// A row of the same name is replaced, a new one joins the end.
fn put<T>(rows: &mut Vec<T>, row: T, name: impl Fn(&T) -> &String) {
    match rows.iter_mut().find(|r| name(r) == name(&row)) {
        Some(old) => *old = row,
        None => rows.push(row),
    }
}

/// `without = ["row"]` drops inherited rows that the architecture lacks.
fn without(arch: &mut Arch, t: &Reader) {
    let Some((names, span)) = t.get::<Vec<String>>("without") else { return };
    for name in &names {
        let before = arch.matrix.len() + arch.moves.len() + arch.engines.len();
        arch.matrix.retain(|r| r.name != *name);
        arch.moves.retain(|r| r.name != *name);
        arch.engines.retain(|r| r.name != *name);
        if arch.matrix.len() + arch.moves.len() + arch.engines.len() == before {
            t.error(codes::TARGET_KEY, span, format!("`{}` inherits no row called `{name}`", arch.name));
        }
    }
}

fn engine(arch: &mut Arch, row: &Reader, owner: &Arc<str>) {
    let Some((name, span)) = row.need::<String>("name") else { return };
    let inherited = arch.engines.iter().find(|e| e.name == name);
    let mut facts = inherited.map_or_else(Default::default, |e| e.facts.clone());
    facts.read(row, owner);
    put(&mut arch.engines, Engine { name, span, facts }, |e| &e.name);
}

/// `[arch.NAME.atomics]`: one list of types an operation.
fn atomics(arch: &mut Arch, table: &Reader, owner: &Arc<str>) {
    const OPS: [&str; 8] = ["add", "min", "max", "and", "or", "xor", "exchange", "cas"];
    let evidence = Evidence::read(table, owner);
    let mut stated = Vec::new();
    for op in OPS {
        if let Some((types, span)) = table.get::<Vec<DType>>(op) {
            stated.push(op);
            put(&mut arch.atomics, Atomic { op: op.into(), types: evidence.known(op, types, span) }, |a| {
                &a.op
            });
        }
    }
    evidence.check(table, &stated);
    table.finish();
}

/// The number of processors of an architecture's chips; `None` where none states it or two differ.
fn agreed(chips: &[Chip], arch: &str) -> Option<u32> {
    let of_arch = chips.iter().filter(|c| c.arch == arch);
    let mut stated = of_arch.filter_map(|c| c.facts.processors.as_ref().map(|k| k.value));
    let first = stated.next()?;
    stated.all(|n| n == first).then_some(first)
}

fn chip(layers: &Layers, archs: &[Arch]) -> Option<Chip> {
    let owner: Arc<str> = Arc::from(layers.name.as_str());
    let first = layers.tables.first()?;
    if layers.tables.iter().all(|t| t.raw("arch").is_none()) {
        first.need::<String>("arch");
        return None;
    }
    let mut found = Chip {
        name: layers.name.clone(),
        title: layers.name.clone(),
        arch: String::new(),
        span: first.span,
        facts: ChipFacts::default(),
        peaks: Vec::new(),
    };
    for t in &layers.tables {
        if let Some((name, span)) = t.get::<String>("arch") {
            known_arch(t, &layers.name, &name, span, archs)?;
            found.arch = name;
        }
        if let Some((title, _)) = t.get::<String>("title") {
            found.title = title;
        }
        if let Some(table) = t.table("facts") {
            found.facts.read(&table, &owner);
            table.finish();
        }
        if let Some(table) = t.table("peaks") {
            peaks(&mut found, &table, &owner);
        }
        t.finish();
    }
    Some(found)
}

/// Reports a chip's architecture that is not declared.
fn known_arch(t: &Reader, chip: &str, name: &str, span: Span, archs: &[Arch]) -> Option<()> {
    if archs.iter().any(|a| a.name == name) {
        return Some(());
    }
    let message = format!("chip `{chip}` is of the architecture `{name}`, which is not declared");
    let d = Diagnostic::error(codes::TARGET_INHERITS, span, message);
    t.report(match nearest(name, archs.iter().map(|a| a.name.as_str())) {
        Some(close) => d.help(format!("did you mean `{close}`?")),
        None => d,
    });
    None
}

/// `[chip.NAME.peaks]`: one figure an operand type.
fn peaks(chip: &mut Chip, table: &Reader, owner: &Arc<str>) {
    const KINDS: [&str; 12] = [
        "f64",
        "f64_vector",
        "f32",
        "tf32",
        "f16",
        "f16_acc16",
        "bf16",
        "f8",
        "f8_acc16",
        "i8",
        "i4",
        "f32_vector",
    ];
    let evidence = Evidence::read(table, owner);
    let mut stated = Vec::new();
    for what in KINDS {
        if let Some((v, span)) = table.get::<f64>(what) {
            stated.push(what);
            put(&mut chip.peaks, Peak { what: what.into(), tera_ops: evidence.known(what, v, span) }, |p| {
                &p.what
            });
        }
    }
    evidence.check(table, &stated);
    table.finish();
}
