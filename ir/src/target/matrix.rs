//! Rows of the matrix-unit table and of the table of matrix moves (`ldmatrix` and its kin): instruction, shapes,
//! types, team, homes of the operands, and their layouts as text that `layout` reads.

use super::known::{Entry, Evidence, Known};
use super::read::{Extents, FromToml, Reader};
use crate::codes;
use crate::diag::Diagnostic;
use crate::layout::{self, Layout, Parsed, Symbols};
use crate::span::Span;
use pantile_abi::DType;
use std::sync::Arc;

/// Who executes one instruction together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Team {
    /// one thread of a processor without lanes
    Core,
    Warp,
    /// 32 neighbouring threads of a wider warp
    Lanes32,
    /// `threads.group_size` threads
    Group,
}

impl Team {
    const ALL: [Team; 4] = [Team::Core, Team::Warp, Team::Lanes32, Team::Group];

    pub const fn name(self) -> &'static str {
        match self {
            Team::Core => "core",
            Team::Warp => "warp",
            Team::Lanes32 => "lanes32",
            Team::Group => "group",
        }
    }
}

/// Extents of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    pub m: u32,
    pub n: u32,
    pub k: u32,
}

/// Operand and accumulator types of one form of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Types {
    pub a: DType,
    pub b: DType,
    pub acc: DType,
}

/// Layout text with its place in the file.
#[derive(Clone, Debug)]
pub struct Text {
    pub text: String,
    pub parsed: Parsed,
    pub span: Span,
}

impl Text {
    /// Reads the text, or reports where it goes wrong.
    fn new(row: &Reader, text: String, span: Span) -> Option<Text> {
        match layout::parse(&text) {
            Ok(parsed) => Some(Text { text, parsed, span }),
            Err(e) => {
                // One past the quotation mark; texts of layouts hold no escapes.
                let start = span.start as usize + 1 + e.at.start;
                let inside = Span::new(span.file, start, start + e.at.len());
                let d = Diagnostic::error(codes::TARGET_MAP, inside, e.message);
                row.report(e.help.into_iter().fold(d, Diagnostic::help));
                None
            }
        }
    }

    /// The layout under the symbols of one shape and one element width.
    pub fn bind(&self, symbols: &Symbols) -> Option<Layout> {
        self.parsed.bind(symbols).ok().map(|tile| tile.layout)
    }
}

/// Which operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    A,
    B,
    Acc,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::A, Role::B, Role::Acc];

    pub const fn name(self) -> &'static str {
        match self {
            Role::A => "a",
            Role::B => "b",
            Role::Acc => "acc",
        }
    }

    /// The dims of the operand as its maps call them.
    pub const fn dims(self) -> [&'static str; 2] {
        match self {
            Role::A => ["m", "k"],
            Role::B => ["k", "n"],
            Role::Acc => ["m", "n"],
        }
    }
}

/// Where an operand may live, and how it lies there. Empty: the operand has no home this row knows.
#[derive(Clone, Debug, Default)]
pub struct Operand {
    /// lane map of the register home; where an instruction takes both orders of an operand, the order whose
    /// register words run along the contracted axis
    pub regs: Option<Text>,
    /// lane map of the register home whose words run along the other axis
    pub regs_mn: Option<Text>,
    /// templates of shared tiles whose rows run along the contracted axis
    pub shared_k: Vec<Text>,
    /// templates of shared tiles whose rows run along the other axis
    pub shared_mn: Vec<Text>,
    /// a home that only the named load and store instructions reach
    pub opaque: Option<String>,
}

/// How an asynchronous matrix instruction is waited for.
#[derive(Clone, Debug)]
pub struct Asynchronous {
    /// most groups that a wait can leave in flight
    pub max_keep: u32,
    /// who may release operands after the wait: `group` or `warp`
    pub release_by: String,
}

/// One row: an instruction with all its shapes and types.
#[derive(Clone, Debug)]
pub struct MatrixUnit {
    pub name: String,
    /// family that decides how code is made: `fma`, `mma`, `wgmma`, `wmma`, `sqmma`, `vnni`, `avx512bf16`, `amx`, `dot`
    pub kind: String,
    pub instruction: String,
    pub shapes: Vec<Shape>,
    pub types: Vec<Types>,
    /// operands are read as tf32: the low mantissa bits of each f32 are ignored
    pub tf32: bool,
    pub team: Team,
    pub a: Operand,
    pub b: Operand,
    pub acc: Operand,
    pub asynchronous: Option<Asynchronous>,
    /// rows × columns of accumulators that fit the registers, best first; for instructions that are built up to a
    /// register tile
    pub tiles: Vec<[u32; 2]>,
    /// processor features that the instruction needs beyond those of the architecture
    pub features: Vec<String>,
    /// values that an unknown of the templates may take; an unknown without a row is free
    pub allow: Vec<(String, Vec<u32>)>,
    /// bounds that shapes and types do not say
    pub limits: Vec<String>,
    pub span: Span,
    /// The row's evidence; the value repeats the name.
    pub known: Known<String>,
}

/// A load or store that distributes 8×8 blocks over a warp.
#[derive(Clone, Debug)]
pub struct MoveUnit {
    pub name: String,
    pub instruction: String,
    /// `load`, `store`, or `exchange` between registers
    pub direction: String,
    /// width of an element
    pub bits: u32,
    /// blocks moved by one instruction
    pub counts: Vec<u32>,
    /// lane map of one block, dims `r` (rows, each `row_bytes` contiguous bytes of memory) and `c`
    pub map: Text,
    pub row_bytes: u32,
    pub span: Span,
    pub known: Known<String>,
}

impl Operand {
    fn read(row: &Reader, key: &'static str) -> Operand {
        let Some(t) = row.table(key) else { return Operand::default() };
        let texts = |key| {
            let (list, span) = t.get::<OneOrMore>(key)?;
            Some(list.0.into_iter().filter_map(|text| Text::new(row, text, span)).collect::<Vec<_>>())
        };
        let one = |key| t.get::<String>(key).and_then(|(text, span)| Text::new(row, text, span));
        let operand = Operand {
            regs: one("regs"),
            regs_mn: one("regs_mn"),
            shared_k: texts("shared_k").unwrap_or_default(),
            shared_mn: texts("shared_mn").unwrap_or_default(),
            opaque: t.get::<String>("opaque").map(|(text, _)| text),
        };
        t.finish();
        operand
    }

    fn entries(&self, prefix: &str, row: &Known<String>, out: &mut Vec<Entry>) {
        let mut push = |key: &str, value: &str| out.push(row.entry(format!("{prefix}.{key}"), value));
        if let Some(t) = &self.regs {
            push("regs", &t.text);
        }
        if let Some(t) = &self.regs_mn {
            push("regs_mn", &t.text);
        }
        self.shared_k.iter().for_each(|t| push("shared_k", &t.text));
        self.shared_mn.iter().for_each(|t| push("shared_mn", &t.text));
        if let Some(t) = &self.opaque {
            push("opaque", t);
        }
    }
}

/// One text or a list of texts.
struct OneOrMore(Vec<String>);

impl FromToml for OneOrMore {
    const WANTED: &'static str = "layout text in quotes, or a list of such texts";
    fn parse(value: &toml::de::DeValue) -> Option<Self> {
        String::parse(value).map(|one| vec![one]).or_else(|| Vec::parse(value)).map(OneOrMore)
    }
}

impl Shape {
    /// Extent of a dim by the name that maps give it.
    pub fn of(&self, dim: &str) -> Option<u32> {
        match dim {
            "m" => Some(self.m),
            "n" => Some(self.n),
            "k" => Some(self.k),
            _ => None,
        }
    }
}

impl Types {
    pub fn of(&self, role: Role) -> DType {
        match role {
            Role::A => self.a,
            Role::B => self.b,
            Role::Acc => self.acc,
        }
    }
}

/// The symbols of maps and templates: `M`, `N`, `K`, the operand's `bits`, and `E`, its elements in a 32-bit word.
pub fn symbols(shape: Shape, bits: u32) -> Symbols {
    let e = 32 / bits.clamp(1, 32);
    Symbols::new(
        [("M", shape.m), ("N", shape.n), ("K", shape.k), ("bits", bits), ("E", e)]
            .map(|(n, v)| (n, v.into())),
    )
}

impl MatrixUnit {
    pub fn operand(&self, role: Role) -> &Operand {
        match role {
            Role::A => &self.a,
            Role::B => &self.b,
            Role::Acc => &self.acc,
        }
    }

    /// The lane map of an operand's register home, for one shape and one choice of types.
    pub fn lane_map(&self, role: Role, shape: Shape, types: Types) -> Option<Layout> {
        self.operand(role).regs.as_ref()?.bind(&symbols(shape, types.of(role).bits()))
    }

    pub(super) fn read(row: &Reader, owner: &Arc<str>) -> Option<MatrixUnit> {
        let evidence = Evidence::read(row, owner);
        let (name, span) = row.need::<String>("name")?;
        let team = row.need::<String>("team").and_then(|(t, span)| team(row, &t, span));
        let unit = MatrixUnit {
            kind: row.need::<String>("kind")?.0,
            instruction: row.need::<String>("instruction")?.0,
            shapes: shapes(row),
            types: types(row),
            tf32: row.get::<bool>("tf32").is_some_and(|(v, _)| v),
            team: team?,
            a: Operand::read(row, "a"),
            b: Operand::read(row, "b"),
            acc: Operand::read(row, "acc"),
            asynchronous: asynchronous(row),
            tiles: tiles(row),
            features: row.get::<Vec<String>>("features").map_or(Vec::new(), |(v, _)| v),
            allow: row.table("allow").map_or(Vec::new(), |t| {
                t.entries::<Vec<u32>>().into_iter().map(|(name, values, _)| (name, values)).collect()
            }),
            limits: row.get::<Vec<String>>("limits").map_or(Vec::new(), |(v, _)| v),
            span,
            known: evidence.known("name", name.clone(), span),
            name,
        };
        evidence.check(row, &["name"]);
        Some(unit)
    }

    pub(super) fn entries(&self, out: &mut Vec<Entry>) {
        let prefix = format!("matrix {}", self.name);
        let row = &self.known;
        let mut push = |key: &str, value: String| out.push(row.entry(format!("{prefix}.{key}"), value));
        push("instruction", self.instruction.clone());
        push("shapes", self.shapes_text());
        push("types", self.types.iter().map(Types::to_string).collect::<Vec<_>>().join(", "));
        push("team", self.team.name().into());
        if let Some(a) = &self.asynchronous {
            push(
                "in flight",
                format!("at most {} after a wait; released by each {}", a.max_keep, a.release_by),
            );
        }
        if !self.features.is_empty() {
            push("features", self.features.join(", "));
        }
        if !self.tiles.is_empty() {
            let all: Vec<String> = self.tiles.iter().map(|[m, n]| format!("{m}x{n}")).collect();
            push("tiles", all.join(", "));
        }
        self.limits.iter().for_each(|l| push("limit", l.clone()));
        self.a.entries(&format!("{prefix}.a"), row, out);
        self.b.entries(&format!("{prefix}.b"), row, out);
        self.acc.entries(&format!("{prefix}.acc"), row, out);
    }

    /// All shapes, with runs along one extent drawn together.
    pub fn shapes_text(&self) -> String {
        let mut groups: Vec<(u32, u32, Vec<u32>)> = Vec::new();
        for s in &self.shapes {
            match groups.iter_mut().find(|(m, k, _)| (*m, *k) == (s.m, s.k)) {
                Some((_, _, ns)) => ns.push(s.n),
                None => groups.push((s.m, s.k, vec![s.n])),
            }
        }
        let each = groups.into_iter().map(|(m, k, ns)| match ns.as_slice() {
            [n] => format!("{m}x{n}x{k}"),
            _ => format!("{m}x({})x{k}", Extents(ns)),
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Display for Types {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}·{} -> {}", self.a, self.b, self.acc)
    }
}

impl MoveUnit {
    pub(super) fn read(row: &Reader, owner: &Arc<str>) -> Option<MoveUnit> {
        let evidence = Evidence::read(row, owner);
        let (name, span) = row.need::<String>("name")?;
        let unit = MoveUnit {
            instruction: row.need::<String>("instruction")?.0,
            direction: row.need::<String>("direction")?.0,
            bits: row.need::<u32>("bits")?.0,
            counts: row.need::<Vec<u32>>("counts")?.0,
            map: row.need::<String>("map").and_then(|(text, span)| Text::new(row, text, span))?,
            row_bytes: row.need::<u32>("row_bytes")?.0,
            span,
            known: evidence.known("name", name.clone(), span),
            name,
        };
        evidence.check(row, &["name"]);
        Some(unit)
    }

    pub(super) fn entries(&self, out: &mut Vec<Entry>) {
        let prefix = format!("move {}", self.name);
        let mut push =
            |key: &str, value: String| out.push(self.known.entry(format!("{prefix}.{key}"), value));
        push("instruction", self.instruction.clone());
        push("map", self.map.text.clone());
        push("blocks", self.counts.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
    }
}

fn team(row: &Reader, name: &str, span: Span) -> Option<Team> {
    let found = Team::ALL.into_iter().find(|t| t.name() == name);
    if found.is_none() {
        let all = super::read::quoted(Team::ALL.iter().map(|t| t.name()));
        row.error(codes::TARGET_VALUE, span, format!("`{name}` is no team; the teams are {all}"));
    }
    found
}

/// `shapes` one by one, `m`, `n`, `k` multiplied out, or `mn` pairs with every `k`.
fn shapes(row: &Reader) -> Vec<Shape> {
    if let Some((list, span)) = row.get::<Vec<Vec<u32>>>("shapes") {
        if list.iter().any(|s| s.len() != 3 || s.contains(&0)) {
            row.error(
                codes::TARGET_VALUE,
                span,
                "`shapes` must list m, n and k, such as [[16, 8, 16], [16, 8, 8]]",
            );
        }
        return list.iter().filter(|s| s.len() == 3).map(|s| Shape { m: s[0], n: s[1], k: s[2] }).collect();
    }
    let ks = row.need::<Extents>("k").map_or(Vec::new(), |(e, _)| e.0);
    if let Some((pairs, span)) = row.get::<Vec<Vec<u32>>>("mn") {
        if pairs.iter().any(|p| p.len() != 2) {
            row.error(codes::TARGET_VALUE, span, "`mn` must list pairs, such as [[64, 16], [64, 32]]");
        }
        let pairs = pairs.iter().filter(|p| p.len() == 2).map(|p| (p[0], p[1]));
        return product(row, span, &pairs.collect::<Vec<_>>(), &ks);
    }
    let (ms, ns) = (row.need::<Extents>("m"), row.need::<Extents>("n"));
    let (Some((Extents(ms), span)), Some((Extents(ns), _))) = (ms, ns) else { return Vec::new() };
    let pairs: Vec<_> = ms.iter().flat_map(|m| ns.iter().map(|n| (*m, *n))).take(MOST_SHAPES + 1).collect();
    product(row, span, &pairs, &ks)
}

/// Shapes that one row may offer.
const MOST_SHAPES: usize = 4096;

fn product(row: &Reader, span: Span, mn: &[(u32, u32)], ks: &[u32]) -> Vec<Shape> {
    if mn.len() * ks.len() > MOST_SHAPES {
        row.error(codes::TARGET_VALUE, span, format!("a row offers at most {MOST_SHAPES} shapes"));
        return Vec::new();
    }
    mn.iter().flat_map(|(m, n)| ks.iter().map(|k| Shape { m: *m, n: *n, k: *k })).collect()
}

fn types(row: &Reader) -> Vec<Types> {
    let Some((list, span)) = row.need::<Vec<Vec<DType>>>("types") else { return Vec::new() };
    let mut all = Vec::new();
    for t in &list {
        match t.as_slice() {
            [a, b, acc] => all.push(Types { a: *a, b: *b, acc: *acc }),
            _ => row.error(
                codes::TARGET_VALUE,
                span,
                "each of `types` must be two operands and an accumulator, such as [\"f16\", \"f16\", \"f32\"]",
            ),
        }
    }
    all
}

fn asynchronous(row: &Reader) -> Option<Asynchronous> {
    let t = row.table("async")?;
    let found = t.need::<u32>("max_keep").zip(t.need::<String>("release_by"));
    t.finish();
    found.map(|((max_keep, _), (release_by, _))| Asynchronous { max_keep, release_by })
}

fn tiles(row: &Reader) -> Vec<[u32; 2]> {
    let Some((list, span)) = row.get::<Vec<Vec<u32>>>("tiles") else { return Vec::new() };
    if list.iter().any(|t| t.len() != 2 || t.contains(&0)) {
        row.error(
            codes::TARGET_VALUE,
            span,
            "`tiles` must list rows and columns, such as [[14, 32], [6, 64]]",
        );
    }
    list.iter().filter(|t| t.len() == 2).map(|t| [t[0], t[1]]).collect()
}
