//! The prelude: small device functions, each written only when used. A hardware operation stands nowhere else.
//!
//! A name is looked up in the vendor's table, then in the shared one, then among the families that exist once a type
//! ([`families`], [`atomics`], [`elementary`]). Tables are data: name, architecture from which on, text, what it needs.

mod atomics;
mod elementary;
mod families;
mod shared;

use super::dialect::Dialect;
use super::tree::Ty;
pub use elementary::{Arithmetic, f32_literal, f64_literal};
use pantile_ir::target::Arch;
use std::collections::{BTreeMap, BTreeSet};

/// One function of a table. `FN` in the text stands for the qualifiers of a device function.
pub struct Entry {
    pub name: &'static str,
    /// The oldest architecture that has it; empty for all.
    pub since: &'static str,
    pub text: &'static str,
    pub needs: &'static [&'static str],
    /// A header of the vendor.
    pub include: Option<&'static str>,
}

impl Entry {
    pub const fn new(name: &'static str, text: &'static str) -> Entry {
        Entry { name, since: "", text, needs: &[], include: None }
    }

    pub const fn since(self, since: &'static str) -> Entry {
        Entry { since, ..self }
    }

    pub const fn needs(self, needs: &'static [&'static str]) -> Entry {
        Entry { needs, ..self }
    }

    pub const fn include(self, include: &'static str) -> Entry {
        Entry { include: Some(include), ..self }
    }
}

/// A function as it is written.
pub(super) struct Function {
    pub text: String,
    pub needs: Vec<String>,
    pub include: Option<&'static str>,
}

impl Function {
    fn new(text: impl Into<String>, needs: &[&str]) -> Function {
        Function { text: text.into(), needs: needs.iter().map(|n| n.to_string()).collect(), include: None }
    }
}

/// What a source uses.
pub struct Prelude<'a> {
    arch: &'a Arch,
    dialect: &'a Dialect,
    done: BTreeSet<String>,
    /// Names and texts, what is needed before what needs it.
    texts: Vec<(String, String)>,
    includes: BTreeSet<&'static str>,
    made: BTreeMap<String, String>,
}

impl<'a> Prelude<'a> {
    pub fn new(arch: &'a Arch, dialect: &'a Dialect) -> Prelude<'a> {
        let (done, includes) = (BTreeSet::new(), BTreeSet::new());
        Prelude { arch, dialect, done, texts: Vec::new(), includes, made: BTreeMap::new() }
    }

    /// Whether there is such a function on this architecture.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Writes the function and what it needs, once; false if there is none of that name.
    #[must_use]
    pub fn need(&mut self, name: &str) -> bool {
        if self.done.contains(name) {
            return true;
        }
        let Some(f) = self.find(name) else { return false };
        self.done.insert(name.to_string());
        let all = f.needs.iter().all(|n| self.need(n));
        self.includes.extend(f.include);
        self.texts.push((name.to_string(), qualified(&f.text)));
        all
    }

    /// A function that belongs to this source alone, as a swizzle or an intrinsic of the text.
    pub fn make(&mut self, name: &str, text: String) {
        if self.made.insert(name.to_string(), text.clone()).is_none() {
            self.texts.push((name.to_string(), qualified(&text)));
        }
    }

    /// Whether [`Prelude::make`] was called for the name.
    pub fn made(&self, name: &str) -> bool {
        self.made.contains_key(name)
    }

    fn find(&self, name: &str) -> Option<Function> {
        let tables = [self.dialect.prelude, shared::TABLE];
        for entry in tables.into_iter().flatten() {
            let runs = entry.since.is_empty() || self.arch.chain.iter().any(|a| a == entry.since);
            if entry.name == name && runs {
                let f = Function::new(entry.text.trim_start(), entry.needs);
                return Some(Function { include: entry.include, ..f });
            }
        }
        let (family, tag) = name.rsplit_once('_')?;
        let ty = Ty::ALL.into_iter().find(|t| t.tag() == tag)?;
        families::find(family, ty)
            .or_else(|| atomics::find(self.arch, family, ty))
            .or_else(|| elementary::find(self.dialect.arithmetic, family, ty))
    }

    /// Includes, names of types and functions, in the order in which they were asked for.
    pub fn text(&self, body: &str) -> String {
        let mut out = String::new();
        for i in self.dialect.includes.iter().chain(&self.includes) {
            out += &format!("#include <{i}>\n");
        }
        let mut kept = Vec::new();
        let mut seen = body.to_string();
        for (name, text) in self.texts.iter().rev() {
            // what was asked for may have been simplified away since
            if word(&seen, name) {
                seen += text;
                kept.push(text);
            }
        }
        for ty in Ty::ALL {
            if let Some(definition) = ty.definition()
                && word(&seen, ty.name())
            {
                out += &format!("typedef {definition} {};\n", ty.name());
            }
        }
        for text in kept.iter().rev() {
            out += "\n";
            out += text.trim_end();
            out += "\n";
        }
        out
    }
}

fn qualified(text: &str) -> String {
    text.replace("FN ", "static __device__ __forceinline__ ")
}

/// Whether a name stands in a text as a word of its own.
pub fn word(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name)
        .any(|(i, _)| !text[..i].ends_with(part) && !text[i + name.len()..].starts_with(part))
}

/// Whether some function of the prelude may have this name, on any architecture.
pub fn may_define(name: &str) -> bool {
    let typed = name.rsplit_once('_').is_some_and(|(_, t)| Ty::ALL.iter().any(|ty| ty.tag() == t));
    typed
        || shared::TABLE.iter().any(|e| e.name == name)
        || name.starts_with("swizzle_")
        || name.starts_with("copy_")
}
