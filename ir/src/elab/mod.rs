//! Elaboration: from syntax trees to one specialised, typed program.
//!
//! Resolves names, binds generics, params, constants and `target` facts, inlines `fn`, runs compile-time control,
//! types everything, and writes the IR in its normal form: one op a statement, expressions pure. What needs the
//! finished program (uniformity, races, boxes, modes) is `verify`'s; nothing here knows a vendor.

mod assign;
mod bindings;
mod calls;
mod check;
mod choices;
mod consts;
mod convert;
mod emit;
mod exprs;
mod forms;
pub mod functions;
mod host;
mod inline;
mod items;
mod library;
mod loops;
mod names;
mod places;
mod pure;
mod regions;
mod request;
mod scope;
mod stmts;
mod tests;
mod threads;
mod tiles;
mod tokens;

pub use bindings::admits;
pub use check::check_all;
pub use library::{BuiltIn, Files, Found, ItemRef, Library, Resolver, Unit, std_text};
pub use request::{ArgInfo, Elaborated, ParamInfo, Request, Setting, elaborate};
pub use tests::{Expectation, Given, Input, InputOp, Reference, TestCase, tests};

pub(crate) use request::Choices;

use crate::ast;
use crate::diag::{Diagnostic, Diagnostics};
use crate::program::*;
use crate::span::{FileId, Sources, Span};
use crate::target::Arch;
use emit::{Frame, FrameKind};
use indexmap::IndexMap;
use scope::Value;
use std::collections::{HashMap, HashSet};

/// The built-in library.
const STD: &str = include_str!("../../../kernels/std.tile");

fn parse(file: FileId, sources: &Sources) -> (ast::File, Diagnostics) {
    crate::text::parse(file, sources)
}

/// One run of elaboration.
pub(crate) struct Elab<'a> {
    lib: &'a Library,
    arch: &'a Arch,
    sources: &'a mut Sources,
    diags: Diagnostics,
    errors: usize,
    program: Program,
    /// The body in hand.
    f: Frame<'a>,
    /// Items that are being elaborated, outermost first.
    stack: Vec<(ItemRef, FrameKind)>,
    /// The launch whose kernel is being specialised.
    launch: Option<Span>,
    /// Every float type is f64.
    widen: bool,
    settings: IndexMap<String, Setting>,
    used: HashSet<String>,
    params: Vec<ParamInfo>,
    item_consts: HashMap<ItemRef, Value>,
    combines: HashMap<ItemRef, Option<CombineId>>,
    intrinsics: HashMap<ItemRef, Option<IntrinsicId>>,
    positions: HashMap<(bool, Elem), CombineId>,
    kernels: HashMap<String, KernelId>,
    /// Code and place of what was reported inside of calls.
    told: HashSet<(u16, u32, u32, u32)>,
    /// Calls and rounds of compile-time loops written out so far.
    written: u32,
    /// That there are too many was reported.
    full: bool,
}

impl<'a> Elab<'a> {
    pub(crate) fn new(lib: &'a Library, arch: &'a Arch, sources: &'a mut Sources) -> Elab<'a> {
        Elab {
            lib,
            arch,
            sources,
            diags: Diagnostics::new(),
            errors: 0,
            program: Program { arch: arch.name.clone(), ..Program::default() },
            f: Frame::default(),
            stack: Vec::new(),
            launch: None,
            widen: false,
            settings: IndexMap::new(),
            used: HashSet::new(),
            params: Vec::new(),
            item_consts: HashMap::new(),
            combines: HashMap::new(),
            intrinsics: HashMap::new(),
            positions: HashMap::new(),
            kernels: HashMap::new(),
            told: HashSet::new(),
            written: 0,
            full: false,
        }
    }

    /// Errors reported so far, repeated ones included.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    pub(crate) fn report(&mut self, d: Diagnostic) {
        self.errors += usize::from(d.is_error());
        // a mistake in a function is told once, not for each call
        let s = d.primary.span;
        if s.at.0 == 0 || self.told.insert((d.code.0, s.file.0, s.start, s.end)) {
            self.diags.push(d);
        }
    }
}
