//! The plan: how a kernel is mapped, as data. Only the pass `plan` decides what stands here; every later pass
//! obeys it. It prints as `plan { … }`, parses back, and may be written by hand, whole or in part.

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
