//! Names in force: scopes of the text being elaborated, hygienic across inlined functions.

use super::consts::Const;
use crate::program::*;
use crate::span::Span;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What a name or an expression stands for while a body is elaborated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Stands where an error was reported; nothing more is said about what depends on it.
    Poison,
    /// No value: a statement-like call.
    Unit,
    Const(Const),
    Expr(ExprId),
    Local(LocalId),
    Dim(DimId),
    Arg(ArgId),
    Tuple(Rc<[Value]>),
    Mem(Mem),
    Workspace(WorkspaceId),
    Reducer(ReducerId),
    Ring(RingId),
    Queue(QueueId),
    Turn(TurnId),
    Team(TeamId),
    /// `none`, a token that is not there
    NoToken,
    /// `target`, which only has facts
    Target,
}

#[derive(Clone, Debug)]
struct Binding<'a> {
    name: &'a str,
    value: Value,
    span: Span,
    /// the binding of this name that it hides
    hides: Option<u32>,
}

/// The names of one body; a function inlined into it has a `Scope` of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope<'a> {
    /// The file whose items are seen behind the local names.
    pub unit: u32,
    bindings: Vec<Binding<'a>>,
    latest: HashMap<&'a str, u32>,
    marks: Vec<u32>,
    /// Names that were reported as unknown: each is told once.
    missing: HashSet<String>,
}

impl<'a> Scope<'a> {
    pub fn new(unit: u32) -> Scope<'a> {
        Scope { unit, ..Scope::default() }
    }

    pub fn open(&mut self) {
        self.marks.push(self.bindings.len() as u32);
    }

    pub fn close(&mut self) {
        let mark = self.marks.pop().unwrap_or(0) as usize;
        while self.bindings.len() > mark {
            let Some(gone) = self.bindings.pop() else { break };
            match gone.hides {
                Some(old) => self.latest.insert(gone.name, old),
                None => self.latest.remove(gone.name),
            };
        }
    }

    /// Declares a name; `Err` is the place of the same name in the same scope.
    pub fn declare(&mut self, name: &'a str, value: Value, span: Span) -> Result<(), Span> {
        let hides = self.latest.get(name).copied();
        let mark = self.marks.last().copied().unwrap_or(0);
        if let Some(old) = hides
            && old >= mark
        {
            return Err(self.bindings[old as usize].span);
        }
        self.latest.insert(name, self.bindings.len() as u32);
        self.bindings.push(Binding { name, value, span, hides });
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.latest.get(name).map(|&i| &self.bindings[i as usize].value)
    }

    /// Notes that nothing declares the name; `true` the first time.
    pub fn miss(&mut self, name: &str) -> bool {
        self.missing.insert(name.to_owned())
    }

    pub fn span(&self, name: &str) -> Option<Span> {
        self.latest.get(name).map(|&i| self.bindings[i as usize].span)
    }

    /// All names in force, for suggestions.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.latest.keys().copied()
    }
}
