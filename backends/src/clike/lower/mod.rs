//! From a program of threads to the tree. One function of the source is made by one [`Fun`]; each construct of the
//! language has a small function of its own in the files beside this.

mod arith;
mod cast;
mod expr;
mod kernel;
mod math;
mod memory;
mod ops;
mod pure;
mod share;
mod stmt;
mod wide;

pub(super) use kernel::kernel;
pub use kernel::{Counts, KernelSource, Param};

use super::dialect::Dialect;
use super::names::Names;
use super::prelude::Prelude;
use super::range::Range;
use super::tree::{C, S, Ty};
use pantile_abi::DType;
use pantile_ir::codes;
use pantile_ir::diag::Diagnostic;
use pantile_ir::program::*;
use pantile_ir::span::Span;
use pantile_ir::target::Arch;
use std::collections::HashMap;

pub(super) type Result<T> = std::result::Result<T, Diagnostic>;

/// What all functions of a source share.
pub(super) struct Cx<'a> {
    pub program: &'a Program,
    pub arch: &'a Arch,
    pub dialect: &'a Dialect,
    pub prelude: Prelude<'a>,
    /// Names of functions: kernels, and the text's intrinsics.
    pub functions: Names,
    pub intrinsics: HashMap<IntrinsicId, String>,
}

/// A value in a register.
#[derive(Clone, Debug)]
pub(super) struct Val {
    pub c: C,
    pub ty: Ty,
    /// Of integers and bool.
    pub range: Range,
}

impl Val {
    pub fn new(c: C, ty: Ty, range: Range) -> Val {
        Val { c, ty, range }
    }

    /// A value that may be any of its type.
    pub fn of(c: C, elem: Elem) -> Val {
        let ty = match elem {
            Elem::Index => Ty::I64,
            Elem::D(d) => Ty::of(d).register(),
        };
        Val { c, ty, range: Range::of(elem) }
    }

    pub fn index(v: i64) -> Val {
        let range = Range::exactly(v.into());
        Val { c: C::int(v), ty: range.index_type(), range }
    }
}

/// What a local is in the source.
#[derive(Clone, Debug)]
struct Var {
    name: String,
    ty: Ty,
    range: Range,
}

/// A memory of the block or thread: its name, the type of its elements and where each lies.
#[derive(Clone, Debug)]
struct Place {
    name: String,
    ty: Ty,
}

/// One function being made.
pub(super) struct Fun<'f, 'a> {
    pub cx: &'f mut Cx<'a>,
    body: &'a Body,
    kernel: Option<&'a Kernel>,
    names: Names,
    locals: HashMap<LocalId, Var>,
    dims: Vec<String>,
    args: Vec<String>,
    buffers: HashMap<BufferId, Place>,
    /// Expressions of the present statement that have a name.
    shared: HashMap<ExprId, Val>,
    stmts: Vec<S>,
    span: Span,
    /// Depth of `if` and `while`: how far control may differ between threads.
    branches: u32,
    /// For each loop that runs in several ranges: the flag that says it was left.
    left: Vec<Option<String>>,
    facts: kernel::Counts,
    /// What the present range of a loop fixes.
    fixed: HashMap<LocalId, bool>,
    /// Arrays of threads that wide accesses touch, with the widest.
    aligned: HashMap<String, u64>,
    /// Threads of a block may exchange data through a tensor.
    global_exchange: bool,
}

impl<'f, 'a> Fun<'f, 'a> {
    fn new(cx: &'f mut Cx<'a>, body: &'a Body, kernel: Option<&'a Kernel>) -> Fun<'f, 'a> {
        let mut names = cx.functions.below();
        names.open();
        Fun {
            cx,
            body,
            kernel,
            names,
            locals: HashMap::new(),
            dims: Vec::new(),
            args: Vec::new(),
            buffers: HashMap::new(),
            shared: HashMap::new(),
            stmts: Vec::new(),
            span: kernel.map_or(Span::default(), |k| k.span),
            branches: 0,
            left: Vec::new(),
            facts: kernel::Counts::default(),
            fixed: HashMap::new(),
            aligned: HashMap::new(),
            global_exchange: true,
        }
    }

    /// A function of the prelude, called.
    fn call(&mut self, name: &str, args: impl Into<Vec<C>>) -> Result<C> {
        if self.cx.prelude.need(name) {
            return Ok(C::call(name, args));
        }
        let what = name.replace('_', " ");
        Err(self.unsupported(format!("`{what}` is nothing that {} has", self.cx.arch.name)))
    }

    /// Something of the language that this target has no means for.
    fn unsupported(&self, message: String) -> Diagnostic {
        Diagnostic::error(codes::UNSUPPORTED, self.span, message)
            .help("use another type, or run it on another target; `pantile doctor` lists what targets have")
    }

    /// Something that an earlier step should have turned into code of threads.
    fn not_threaded(&self, what: &str) -> Diagnostic {
        Diagnostic::error(
            codes::NOT_THREADED,
            self.span,
            format!("{what} cannot be written as code of single threads"),
        )
        .label("this concerns the block as a whole")
        .help(
            "name threads with `threads` and give each its own part, or choose the target `cpu` or `interp`",
        )
    }

    fn elem(&self, e: ExprId) -> Result<Elem> {
        match self.body.type_of(e) {
            Type::Scalar(elem) => Ok(*elem),
            Type::Tile { .. } => Err(self.not_threaded("a tile")),
            Type::Token => Err(self.not_threaded("a slot of a ring")),
        }
    }

    /// Runs `f` on a block of its own.
    fn block(&mut self, f: impl FnOnce(&mut Self) -> Result<()>) -> Result<Vec<S>> {
        let outer = std::mem::take(&mut self.stmts);
        self.names.open();
        let done = f(self);
        self.names.close();
        let inner = std::mem::replace(&mut self.stmts, outer);
        done.map(|()| inner)
    }

    fn push(&mut self, s: S) {
        self.stmts.push(s);
    }

    /// Defines a local at its first value. An index has 32 bits where its values are known to fit and stay.
    fn define(&mut self, id: LocalId, value: Val) -> Result<()> {
        let local = &self.body.locals[id];
        let Type::Scalar(elem) = local.ty else {
            return Err(self.not_threaded(&format!("`{}`", local.name)));
        };
        let fixed = local.kind != LocalKind::Var;
        let range = if fixed { value.range } else { Range::of(elem) };
        let ty = match elem {
            Elem::Index => range.index_type(),
            Elem::D(d) => Ty::of(d).register(),
        };
        let init = fit(value, ty);
        let name = self.names.take(&local.name);
        self.push(S::Declare { constant: fixed, ty: ty.name().into(), name: name.clone(), init: Some(init) });
        self.locals.insert(id, Var { name, ty, range });
        Ok(())
    }

    fn local(&self, id: LocalId) -> Result<&Var> {
        self.locals.get(&id).ok_or_else(|| {
            let name = self.body.locals.get(id).map_or("a value", |l| l.name.as_str());
            self.not_threaded(&format!("`{name}`"))
        })
    }
}

/// The value as one of `ty`: written only where C would not do it alone, or would lose something.
fn fit(value: Val, ty: Ty) -> C {
    match (value.ty, ty) {
        (Ty::I64, Ty::I32) => C::cast(ty, value.c),
        _ => value.c,
    }
}

fn is_narrow(d: DType) -> bool {
    matches!(d, DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2)
}
