//! A parsed file and the files it uses: loading of `use`, tables of items, resolution of their names.
//!
//! Files are reached through a [`Resolver`], so nothing here insists on a file system. No item is checked here.

use crate::ast::{self, Item, ItemKind};
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::span::{FileId, Sources, Span};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::functions;
use super::names::suggest;

/// A text found for a `use`.
#[derive(Clone, Debug)]
pub struct Found {
    /// How messages call it.
    pub name: String,
    pub path: Option<PathBuf>,
    pub text: String,
}

/// Finds the text of `use "path"`.
pub trait Resolver {
    /// `from` is the file that holds the `use`. An error lists the places tried.
    fn find(&self, path: &str, from: Option<&Path>) -> Result<Found, Vec<String>>;
}

/// Only the built-in library.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl Resolver for BuiltIn {
    fn find(&self, path: &str, _: Option<&Path>) -> Result<Found, Vec<String>> {
        if path == "std" { Ok(std_text()) } else { Err(vec!["the built-in library".into()]) }
    }
}

/// Relative to the using file, then a search path, then the built-in library.
#[derive(Clone, Debug, Default)]
pub struct Files {
    pub search: Vec<PathBuf>,
}

impl Resolver for Files {
    fn find(&self, path: &str, from: Option<&Path>) -> Result<Found, Vec<String>> {
        let beside = from.and_then(Path::parent).unwrap_or(Path::new(""));
        let mut tried = Vec::new();
        if path != "std" {
            for place in std::iter::once(beside).chain(self.search.iter().map(PathBuf::as_path)) {
                let full = place.join(path);
                match std::fs::read_to_string(&full) {
                    Ok(text) => {
                        let name = full.display().to_string();
                        let path = full.canonicalize().unwrap_or(full);
                        return Ok(Found { name, path: Some(path), text });
                    }
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                        tried.push(full.display().to_string())
                    }
                    Err(e) => tried.push(format!("{} ({e})", full.display())),
                }
            }
        }
        BuiltIn.find(path, from).map_err(|last| [tried, last].concat())
    }
}

/// Whether `use "std"` could bring this name.
pub(crate) fn in_std(name: &str) -> bool {
    static NAMES: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    let read = || {
        let mut sources = Sources::default();
        let file = sources.add("std", None, super::STD);
        let (ast, _) = super::parse(file, &sources);
        ast.items.iter().filter_map(item_name).map(|n| n.name.clone()).collect()
    };
    NAMES.get_or_init(read).iter().any(|n| n == name)
}

/// Text of the built-in library.
pub fn std_text() -> Found {
    Found { name: "std".into(), path: None, text: super::STD.into() }
}

/// One item of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ItemRef {
    pub(crate) unit: u32,
    pub(crate) item: u32,
}

/// What a name at file level stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entity {
    Item(ItemRef),
    /// `LOG2E` and the like, imported from std although the language declares them
    Predeclared,
}

/// One parsed file.
#[derive(Clone, Debug)]
pub struct Unit {
    pub file: FileId,
    pub name: String,
    pub ast: ast::File,
    names: IndexMap<String, (Entity, Span)>,
}

/// The file that was asked for (unit 0) and everything it uses.
#[derive(Clone, Debug, Default)]
pub struct Library {
    units: Vec<Unit>,
}

/// Name of an item, if it has one in the file's name space (tests have their own).
pub(crate) fn item_name(item: &Item) -> Option<&ast::Ident> {
    match &item.kind {
        ItemKind::Use(_) | ItemKind::Test(_) => None,
        ItemKind::Const(c) => Some(&c.name),
        ItemKind::Fn(f) => Some(&f.name),
        ItemKind::Kernel(k) => Some(&k.name),
        ItemKind::Op(o) => Some(&o.name),
        ItemKind::Combine(c) => Some(&c.name),
        ItemKind::Intrinsic(i) => Some(&i.name),
    }
}

/// `kernel`, `fn`, …
pub(crate) fn item_kind(item: &Item) -> &'static str {
    match &item.kind {
        ItemKind::Use(_) => "use",
        ItemKind::Test(_) => "test",
        ItemKind::Const(_) => "const",
        ItemKind::Fn(_) => "fn",
        ItemKind::Kernel(_) => "kernel",
        ItemKind::Op(_) => "op",
        ItemKind::Combine(_) => "combine",
        ItemKind::Intrinsic(_) => "intrinsic",
    }
}

impl Library {
    /// Parses `text` and, through `resolver`, all it uses. Problems are returned beside what could be read.
    pub fn load(found: Found, resolver: &dyn Resolver, sources: &mut Sources) -> (Library, Diagnostics) {
        let mut loader =
            Loader { resolver, sources, units: Vec::new(), known: HashMap::new(), diags: Diagnostics::new() };
        loader.unit(found);
        let mut diags = loader.diags;
        let mut library = Library { units: loader.units };
        library.link(loader.known, &mut diags);
        (library, diags)
    }

    /// One text that uses at most the built-in library.
    pub fn from_text(name: &str, text: &str, sources: &mut Sources) -> (Library, Diagnostics) {
        let found = Found { name: name.into(), path: None, text: text.into() };
        Library::load(found, &BuiltIn, sources)
    }

    pub(crate) fn item(&self, r: ItemRef) -> &Item {
        &self.units[r.unit as usize].ast.items[r.item as usize]
    }

    /// The main file's items in order.
    pub fn main(&self) -> Option<&Unit> {
        self.units.first()
    }

    pub(crate) fn main_items(&self) -> impl Iterator<Item = (ItemRef, &Item)> {
        let items = self.units.first().map_or(&[][..], |u| &u.ast.items);
        items.iter().enumerate().map(|(i, item)| (ItemRef { unit: 0, item: i as u32 }, item))
    }

    /// Names of the kernels and ops of the main file: what can be run.
    pub fn entries(&self) -> Vec<&str> {
        let runs = |i: &&Item| matches!(i.kind, ItemKind::Kernel(_) | ItemKind::Op(_));
        let items = self.units.first().map_or(&[][..], |u| &u.ast.items);
        items.iter().filter(runs).filter_map(item_name).map(|n| n.name.as_str()).collect()
    }

    pub(crate) fn lookup(&self, unit: u32, name: &str) -> Option<Entity> {
        self.units.get(unit as usize)?.names.get(name).map(|&(e, _)| e)
    }

    pub(crate) fn is_entry(&self, r: ItemRef) -> bool {
        matches!(self.item(r).kind, ItemKind::Kernel(_) | ItemKind::Op(_))
    }

    /// All names at file level, for suggestions.
    pub(crate) fn names(&self, unit: u32) -> impl Iterator<Item = &str> {
        self.units.get(unit as usize).into_iter().flat_map(|u| u.names.keys().map(String::as_str))
    }

    fn link(&mut self, known: HashMap<(u32, usize), Option<u32>>, diags: &mut Diagnostics) {
        for at in 0..self.units.len() {
            let mut names = IndexMap::new();
            self.own_names(at as u32, &mut names, diags);
            self.units[at].names = names;
        }
        for at in 0..self.units.len() {
            let mut imports = Vec::new();
            for (i, item) in self.units[at].ast.items.iter().enumerate() {
                let ItemKind::Use(used) = &item.kind else { continue };
                let Some(target) = known.get(&(at as u32, i)).copied().flatten() else { continue };
                for name in &used.names {
                    match self.import(target, used, name) {
                        Ok(entity) => imports.push((name.clone(), entity)),
                        Err(d) => diags.push(d),
                    }
                }
            }
            for (name, entity) in imports {
                let names = &mut self.units[at].names;
                if let Some(&(_, first)) = names.get(&name.name) {
                    diags.push(duplicate(&name, first));
                } else {
                    names.insert(name.name.clone(), (entity, name.span));
                }
            }
        }
    }

    fn own_names(&self, at: u32, names: &mut IndexMap<String, (Entity, Span)>, diags: &mut Diagnostics) {
        let mut tests: HashMap<&str, Span> = HashMap::new();
        for (i, item) in self.units[at as usize].ast.items.iter().enumerate() {
            if let ItemKind::Test(t) = &item.kind
                && let Some(first) = tests.insert(&t.name.name, t.name.span)
            {
                diags.push(duplicate(&t.name, first));
            }
            let Some(name) = item_name(item) else { continue };
            let runs = matches!(item.kind, ItemKind::Kernel(_) | ItemKind::Op(_));
            if !runs && functions::is_predeclared(&name.name) && self.units[at as usize].name != "std" {
                let text = format!("`{}` is a name of the language", name.name);
                let d = Diagnostic::error(codes::PREDECLARED_NAME, name.span, text);
                diags.push(d.help(format!("choose another name for this {}", item_kind(item))));
            } else if let Some(&(_, first)) = names.get(&name.name) {
                diags.push(duplicate(name, first));
            } else {
                let entity = Entity::Item(ItemRef { unit: at, item: i as u32 });
                names.insert(name.name.clone(), (entity, name.span));
            }
        }
    }

    fn import(&self, target: u32, used: &ast::Use, name: &ast::Ident) -> Result<Entity, Diagnostic> {
        let unit = &self.units[target as usize];
        let own = |e: Entity| matches!(e, Entity::Item(r) if r.unit == target);
        match unit.names.get(&name.name) {
            Some(&(entity, _)) if own(entity) => Ok(entity),
            _ if unit.name == "std" && functions::is_predeclared(&name.name) => Ok(Entity::Predeclared),
            other => {
                let text = format!("\"{}\" has no item `{}`", used.path, name.name);
                let mut d = Diagnostic::error(codes::UNKNOWN_IMPORT, name.span, text);
                if let Some(&(_, span)) = other {
                    d = d.also(span, "it uses that name itself, but does not define it");
                } else if let Some(near) = suggest(&name.name, unit.names.keys().map(String::as_str)) {
                    d = d.help(format!("did you mean `{near}`?"));
                }
                Err(d)
            }
        }
    }
}

fn duplicate(name: &ast::Ident, first: Span) -> Diagnostic {
    Diagnostic::error(codes::DUPLICATE_NAME, name.span, format!("`{}` is already declared", name.name))
        .also(first, "first declared here")
        .help("one name stands for one thing in a file; rename one of them")
}

struct Loader<'a> {
    resolver: &'a dyn Resolver,
    sources: &'a mut Sources,
    units: Vec<Unit>,
    /// unit and item of a `use` → the unit it names
    known: HashMap<(u32, usize), Option<u32>>,
    diags: Diagnostics,
}

impl Loader<'_> {
    fn unit(&mut self, found: Found) -> u32 {
        let same = |u: &Unit| {
            let source = self.sources.file(u.file);
            if found.path.is_some() {
                source.path == found.path
            } else {
                source.path.is_none() && u.name == found.name
            }
        };
        if let Some(at) = self.units.iter().position(same) {
            return at as u32;
        }
        let file = self.sources.add(found.name.clone(), found.path.as_deref(), found.text.as_str());
        let (ast, diags) = super::parse(file, self.sources);
        self.diags.extend(diags);
        self.add(Unit { file, name: found.name, ast, names: IndexMap::new() }, found.path.as_deref())
    }

    fn add(&mut self, unit: Unit, path: Option<&Path>) -> u32 {
        let at = self.units.len() as u32;
        let uses: Vec<(usize, ast::Use)> = unit
            .ast
            .items
            .iter()
            .enumerate()
            .filter_map(|(i, item)| match &item.kind {
                ItemKind::Use(used) => Some((i, used.clone())),
                _ => None,
            })
            .collect();
        self.units.push(unit);
        for (i, used) in uses {
            let target = match self.resolver.find(&used.path, path) {
                Ok(found) => Some(self.unit(found)),
                Err(tried) => {
                    let text = format!("cannot find \"{}\"", used.path);
                    let mut d = Diagnostic::error(codes::UNKNOWN_FILE, used.path_span, text);
                    for place in tried {
                        d = d.note(format!("not found: {place}"));
                    }
                    self.diags.push(d.help(
                        "paths are relative to this file, then to the search path; \"std\" is built in",
                    ));
                    None
                }
            };
            self.known.insert((at, i), target);
        }
        at
    }
}
