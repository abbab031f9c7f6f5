//! What the generator knows while it writes: names in sight, memories, parameters, the text so far.

use super::{Choices, Data, Program};
use pantile_abi::{DType, DTypeKind};

/// Type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum El {
    Index,
    D(DType),
}

pub(super) const BOOL: El = El::D(DType::Bool);
pub(super) const I32: El = El::D(DType::I32);
pub(super) const F32: El = El::D(DType::F32);

impl El {
    pub fn dtype(self) -> DType {
        match self {
            El::D(d) => d,
            El::Index => DType::I64,
        }
    }

    /// The class `float`.
    pub fn is_float(self) -> bool {
        matches!(self, El::D(d) if d.kind() == DTypeKind::Float)
    }

    pub fn is_float8(self) -> bool {
        matches!(self, El::D(d) if d.kind() == DTypeKind::Float8)
    }

    pub fn is_int(self) -> bool {
        matches!(self, El::D(d) if d.is_int())
    }

    pub fn bits(self) -> u32 {
        self.dtype().bits()
    }
}

/// The valid part of a tile along one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Full,
    /// May end early; where depends on the variables of these loops.
    Ragged(Vec<u32>),
}

impl Edge {
    pub fn join(&self, other: &Edge) -> Edge {
        match (self, other) {
            (Edge::Full, e) | (e, Edge::Full) => e.clone(),
            (Edge::Ragged(a), Edge::Ragged(b)) => {
                let mut all = a.clone();
                all.extend(b.iter().filter(|x| !a.contains(x)));
                Edge::Ragged(all)
            }
        }
    }
}

/// An expression with what must be known of its value.
#[derive(Clone, Debug)]
pub(super) struct Ex {
    pub text: String,
    pub edges: Vec<Edge>,
    /// A bare number, which takes its type from its place.
    pub lit: bool,
}

impl Ex {
    pub fn scalar(text: impl Into<String>) -> Ex {
        Ex { text: text.into(), edges: Vec::new(), lit: false }
    }

    pub fn full(text: impl Into<String>, rank: usize) -> Ex {
        Ex { text: text.into(), edges: vec![Edge::Full; rank], lit: false }
    }

    pub fn tile(text: impl Into<String>, edges: Vec<Edge>) -> Ex {
        Ex { text: text.into(), edges, lit: false }
    }
}

/// A named value in sight.
#[derive(Clone, Debug)]
pub(super) struct Var {
    pub name: String,
    pub el: El,
    /// Empty for a scalar.
    pub shape: Vec<u32>,
    pub edges: Vec<Edge>,
    pub mutable: bool,
    /// Differs between threads.
    pub varies: bool,
    /// Of an `index`: the values it can have.
    pub range: (i64, i64),
    /// Loops that were open where it was declared.
    pub loops: usize,
    /// A parameter or `let` of a function that acts element by element: fits any shape.
    pub any_shape: bool,
}

impl Var {
    pub fn scalar(name: impl Into<String>, el: El) -> Var {
        Var {
            name: name.into(),
            el,
            shape: Vec::new(),
            edges: Vec::new(),
            mutable: false,
            varies: false,
            range: (i64::MIN, i64::MAX),
            loops: 0,
            any_shape: false,
        }
    }

    pub fn index(name: impl Into<String>, lo: i64, hi: i64) -> Var {
        Var { range: (lo, hi), ..Var::scalar(name, El::Index) }
    }
}

/// `shared` memory, or an array of each thread; its elements are all written.
#[derive(Clone, Debug)]
pub(super) struct Mem {
    pub name: String,
    pub el: El,
    pub shape: Vec<u32>,
    pub shared: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    In,
    Out,
    InOut,
}

/// A dim, by name or as a number.
#[derive(Clone, Debug)]
pub struct Dim {
    pub name: Option<String>,
    pub extent: i64,
}

#[derive(Clone, Debug)]
pub struct TensorParam {
    pub name: String,
    pub mode: Mode,
    pub dtype: DType,
    pub dims: Vec<Dim>,
    /// Elements between rows of the last axis but one, where the tensor is not contiguous, and the stride's name.
    pub pitch: Option<(String, i64)>,
    /// The packed axis of a 4-bit type.
    pub packed: Option<usize>,
    pub data: Data,
}

#[derive(Clone, Debug)]
pub struct ScalarParam {
    pub name: String,
    /// `None` is `index`.
    pub dtype: Option<DType>,
    pub value: f64,
}

#[derive(Clone, Debug)]
pub enum Param {
    Tensor(TensorParam),
    Scalar(ScalarParam),
}

impl Param {
    pub fn name(&self) -> &str {
        match self {
            Param::Tensor(t) => &t.name,
            Param::Scalar(s) => &s.name,
        }
    }

    /// The parameter with its extents and contents, in words.
    pub fn summary(&self) -> String {
        match self {
            Param::Scalar(s) => format!("{} = {}", s.name, s.value),
            Param::Tensor(t) => {
                let shown: Vec<String> = match t.mode {
                    Mode::Out => Vec::new(),
                    _ => t.data.bits(t.dtype, 8).iter().map(|&b| t.dtype.decode(b).to_string()).collect(),
                };
                format!("{}: {} {:?} {:?} {}", t.name, t.dtype, t.shape(), t.data, shown.join(" "))
            }
        }
    }

    /// As it stands in a head; `ty` spells element types, `prefix` goes before every name.
    pub fn declaration(&self, prefix: &str, ty: &dyn Fn(DType) -> String) -> String {
        match self {
            Param::Scalar(s) => {
                format!("{prefix}{}: {}", s.name, s.dtype.map_or("index".into(), ty))
            }
            Param::Tensor(t) => t.declaration(prefix, ty),
        }
    }
}

impl TensorParam {
    fn declaration(&self, prefix: &str, ty: &dyn Fn(DType) -> String) -> String {
        let dim = |d: &Dim| d.name.as_ref().map_or(d.extent.to_string(), |n| format!("{prefix}{n}"));
        let dims: Vec<String> = self.dims.iter().map(dim).collect();
        let mode = match self.mode {
            Mode::In => "",
            Mode::Out => "out ",
            Mode::InOut => "inout ",
        };
        let mut text = format!("{prefix}{}: {mode}{}[{}]", self.name, ty(self.dtype), dims.join(", "));
        if let Some((name, _)) = &self.pitch {
            text += &format!(" strides ({prefix}{name}, 1)");
        }
        if let Some(axis) = self.packed {
            text += &format!(" packed({}, order = linear)", dims[axis]);
        }
        text
    }

    pub fn shape(&self) -> Vec<usize> {
        self.dims.iter().map(|d| d.extent as usize).collect()
    }

    /// Elements between neighbours along each axis.
    pub fn strides(&self) -> Vec<usize> {
        let shape = self.shape();
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i].max(1);
        }
        if let Some((_, pitch)) = self.pitch {
            strides[0] = pitch as usize;
        }
        strides
    }
}

/// A scalar function, or one of tiles, that the kernel may call.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub name: String,
    pub el: El,
    pub params: usize,
}

/// A function of a tile and a row of it, which gives another of each.
#[derive(Clone, Debug)]
pub(super) struct TileFunction {
    pub name: String,
    pub el: El,
    pub shape: [u32; 2],
    /// Types of the two results.
    pub results: (El, El),
    pub edges: (Vec<Edge>, Vec<Edge>),
}

/// A user's combiner of pairs.
#[derive(Clone, Debug)]
pub(super) struct Combine {
    pub name: String,
    pub parts: (El, El),
}

pub(super) struct Gen<'c> {
    pub c: &'c mut Choices,
    pub number: usize,
    pub lines: Vec<String>,
    pub indent: usize,
    pub functions_text: String,
    pub params: Vec<Param>,
    pub vars: Vec<Var>,
    pub mems: Vec<Mem>,
    pub functions: Vec<Function>,
    pub tile_functions: Vec<TileFunction>,
    pub combines: Vec<Combine>,
    /// Dims in sight with their values.
    pub dims: Vec<(String, i64)>,
    /// Types and extents that have a name: generics and params.
    pub type_alias: Option<(DType, String)>,
    pub extent_alias: Vec<(i64, String)>,
    pub generics: Vec<(String, String)>,
    /// Header clauses, the text between `<` and `>`.
    pub generic_text: Vec<String>,
    /// Grid axes: name and extent.
    pub grid: Vec<(String, i64)>,
    /// Thread axes: name and extent; empty at tile level.
    pub threads: Vec<(String, i64)>,
    pub ordered: bool,
    /// Numbers of the open loops.
    pub loops: Vec<u32>,
    pub names: u32,
    /// Expressions that may still be written.
    pub budget: i32,
    /// Inside of what is evaluated only if needed, or of `parallel`: no statement of the block.
    pub lazy: u32,
    /// Inside of a function that acts element by element.
    pub pure: bool,
    /// Inside of a function of tiles: no memory in sight.
    pub closed: bool,
    /// Only values that all threads share.
    pub uniform: bool,
    /// Only tiles without a ragged edge.
    pub need_full: bool,
    /// Inside of control that differs between threads.
    pub divergent: u32,
    pub has_roles: bool,
}

impl<'c> Gen<'c> {
    pub fn new(number: usize, c: &'c mut Choices) -> Gen<'c> {
        Gen {
            c,
            number,
            lines: Vec::new(),
            indent: 1,
            functions_text: String::new(),
            params: Vec::new(),
            vars: Vec::new(),
            mems: Vec::new(),
            functions: Vec::new(),
            tile_functions: Vec::new(),
            combines: Vec::new(),
            dims: Vec::new(),
            type_alias: None,
            extent_alias: Vec::new(),
            generics: Vec::new(),
            generic_text: Vec::new(),
            grid: Vec::new(),
            threads: Vec::new(),
            ordered: false,
            loops: Vec::new(),
            names: 0,
            budget: 70,
            lazy: 0,
            pure: false,
            closed: false,
            uniform: false,
            need_full: false,
            divergent: 0,
            has_roles: false,
        }
    }

    pub fn line(&mut self, text: impl AsRef<str>) {
        let pad = "    ".repeat(self.indent);
        self.lines.push(format!("{pad}{}", text.as_ref()));
    }

    pub fn open(&mut self, text: impl AsRef<str>) {
        self.line(format!("{} {{", text.as_ref()));
        self.indent += 1;
    }

    pub fn close(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    pub fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    /// An element type as text: its generic's name, where it has one.
    pub fn ty(&self, el: El) -> String {
        match (el, &self.type_alias) {
            (El::D(d), Some((alias, name))) if d == *alias => name.clone(),
            (El::D(d), _) => d.name().to_string(),
            (El::Index, _) => "index".to_string(),
        }
    }

    /// An extent as text.
    pub fn ext(&self, n: u32) -> String {
        let found = self.extent_alias.iter().find(|(v, _)| *v == i64::from(n));
        found.map_or(n.to_string(), |(_, name)| name.clone())
    }

    pub fn shape_text(&self, shape: &[u32]) -> String {
        shape.iter().map(|&n| self.ext(n)).collect::<Vec<_>>().join(", ")
    }

    /// Runs `f` in a scope of its own: names declared inside go out of sight.
    pub fn scoped<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let (vars, mems) = (self.vars.len(), self.mems.len());
        let result = f(self);
        self.vars.truncate(vars);
        self.mems.truncate(mems);
        result
    }

    /// Whether the value of a name may be used here.
    pub fn usable(&self, v: &Var) -> bool {
        let unfit = self.uniform && v.varies;
        let ragged = self.need_full && v.edges.iter().any(|e| *e != Edge::Full);
        !unfit && !ragged
    }

    pub fn finish(self) -> Program {
        let name = format!("k{}", self.number);
        let generics = match &self.generic_text[..] {
            [] => String::new(),
            list => format!("<{}>", list.join(", ")),
        };
        let ty = |d: DType| self.ty(El::D(d));
        let params: Vec<String> = self.params.iter().map(|p| p.declaration("", &ty)).collect();
        let mut text = self.functions_text.clone();
        text += &format!("kernel {name}{generics}({}) math exact {{\n", params.join(", "));
        for line in &self.lines {
            text += line;
            text.push('\n');
        }
        text += "}\n";
        Program { name, text, params: self.params, generics: self.generics, choices: Vec::new() }
    }
}
