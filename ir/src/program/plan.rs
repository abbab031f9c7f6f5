//! The plan: how a kernel is mapped, as data. Only the pass `plan` decides what stands here; every later pass
//! obeys it. It prints as `plan { … }`, parses back, and may be written by hand, whole or in part.

use super::{Kernel, Partial, Spread, TeamId};
use crate::span::Span;
use std::fmt;

/// An ordered list of decisions; an absent key is open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub entries: Vec<Entry>,
}

/// `key(subject) = value`, with the losers' reasons at the side.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: Key,
    /// The local, ring or role spoken of, by its name in the text.
    pub subject: Option<String>,
    pub value: Value,
    pub by_hand: bool,
    /// `variant: reason` of each refused alternative
    pub refused: Vec<(String, String)>,
    pub span: Span,
}

/// Where it came from and why do not make two plans differ.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.subject == other.subject && self.value == other.value
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Int(i64),
    Bool(bool),
    Name(String),
    Str(String),
    List(Vec<Value>),
    /// `splitk(loop = ko, ways = 2, over = cluster)`
    Call(String, Vec<(Option<String>, Value)>),
}

macro_rules! keys {
    ($($variant:ident $name:literal $doc:literal,)*) => {
        /// What a decision is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Key { $(#[doc = $doc] $variant,)* }
        impl Key {
            pub const ALL: &[Key] = &[$(Key::$variant),*];
            pub const fn name(self) -> &'static str { match self { $(Key::$variant => $name),* } }
            pub const fn doc(self) -> &'static str { match self { $(Key::$variant => $doc),* } }
        }
    };
}

keys! {
    Schedule "schedule" "grid, persistent, dynamic or split-K",
    Variant "variant" "the implementation chosen for an op",
    Tile "tile" "instruction or register tile of a product",
    Swap "swap" "operands exchanged, accumulator transposed",
    Home "home" "where a tile lives: shared, fragment, ring, direct, scratch",
    Layout "layout" "layout of a tile in its home",
    Ring "ring" "slots of a copied tile",
    Roles "roles" "teams and their register quotas",
    Stage "stage" "pipeline stage and rank of a statement",
    Turn "turn" "cyclic mutual exclusion of groups",
    Cluster "cluster" "blocks that share memory",
    Epilogue "epilogue" "how results are staged to memory",
    Panels "panels" "packing of operand panels: per_block, per_worker, prepack",
    Threads "threads" "number of threads where the kernel names none",
    Vector "vector" "elements of one access or SIMD width",
    Unroll "unroll" "times a loop's body is repeated",
}

impl Key {
    pub fn from_name(name: &str) -> Option<Key> {
        Key::ALL.iter().copied().find(|k| k.name() == name)
    }
}

impl Plan {
    pub fn get(&self, key: Key, subject: Option<&str>) -> Option<&Value> {
        let found = self.entries.iter().find(|e| e.key == key && e.subject.as_deref() == subject);
        found.map(|e| &e.value)
    }
}

/// A value that several members hold in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Split<'a> {
    pub name: &'a str,
    pub span: Span,
    pub over: Spread,
    pub parts: i64,
}

impl Kernel {
    /// The first value that is really split: that its axis holds in more than one part. A partial value with one part
    /// is an ordinary one.
    pub fn split_value(&self) -> Option<Split<'_>> {
        let buffers = self.buffers.iter().map(|(id, b)| (&b.name, self.buffers.span(id), b.partial, b.team));
        let locals = &self.body.locals;
        let locals = locals.iter().map(|(id, l)| (&l.name, locals.span(id), l.partial, l.team));
        buffers.chain(locals).find_map(|(name, span, partial, team)| {
            let Partial { over, .. } = partial?;
            let parts = self.parts(over, team);
            (parts > 1).then_some(Split { name, span, over, parts })
        })
    }

    fn parts(&self, over: Spread, team: Option<TeamId>) -> i64 {
        let groups = || team.and_then(|t| self.teams.get(t)).map_or(1, |t| i64::from(t.groups));
        let own = match over {
            Spread::Groups => groups(),
            Spread::Cluster => self.plan.get(Key::Cluster, None).map_or(1, Value::product),
            Spread::Blocks => 1,
        };
        own.max(self.plan.get(Key::Schedule, None).map_or(1, |v| v.ways(over)))
    }
}

impl Value {
    /// `2`, or the product of `[2, 1]`
    fn product(&self) -> i64 {
        match self {
            Value::Int(n) => *n,
            Value::List(items) => items.iter().fold(1, |n, v| n.saturating_mul(v.product())),
            _ => 1,
        }
    }

    /// `splitk(loop = ko, ways = 2, over = cluster)`: its ways over that axis
    fn ways(&self, over: Spread) -> i64 {
        let Value::Call(name, args) = self else { return 1 };
        let arg = |key: &str| args.iter().find(|(k, _)| k.as_deref() == Some(key)).map(|(_, v)| v);
        match (name.as_str(), arg("ways"), arg("over")) {
            ("splitk", Some(ways), Some(Value::Name(axis))) if axis == over.name() => ways.product(),
            _ => 1,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => n.fmt(f),
            Value::Bool(b) => b.fmt(f),
            Value::Name(s) => f.write_str(s),
            Value::Str(s) => write!(f, "{s:?}"),
            Value::List(items) => {
                f.write_str("[")?;
                for (i, v) in items.iter().enumerate() {
                    write!(f, "{}{v}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Call(name, args) => {
                write!(f, "{name}(")?;
                for (i, (key, v)) in args.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    match key {
                        Some(key) => write!(f, "{comma}{key} = {v}")?,
                        None => write!(f, "{comma}{v}")?,
                    }
                }
                f.write_str(")")
            }
        }
    }
}
