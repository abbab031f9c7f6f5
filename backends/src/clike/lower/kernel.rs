//! A kernel: parameters, the arena of shared memory, numbers of blocks and threads, the body.

use super::memory::storage;
use super::{Cx, Fun, Place, Result, Var};
use crate::clike::range::Range;
use crate::clike::tree::{C, S, Ty};
use crate::clike::{unroll, write};
use pantile_ir::codes;
use pantile_ir::diag::Diagnostic;
use pantile_ir::layout::Axis;
use pantile_ir::program::*;

/// A kernel of a source. A launch gives `grid` as one number of blocks along x: the product of the kernel's extents, of
/// which the first is fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSource {
    pub name: String,
    /// The `extern "C"` name.
    pub symbol: String,
    /// Threads of a block, along x; the last axis is fastest.
    pub threads: u32,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u64,
    pub params: Vec<Param>,
    pub counts: Counts,
}

/// A parameter of the function, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// The address of a tensor's first element.
    Tensor { arg: usize, name: String },
    /// A scalar: `index` has 64 bits, narrow floats are their words, 4 bits and bool a byte.
    Scalar { arg: usize, name: String, elem: Elem },
    /// A dim or stride, of 64 bits.
    Dim { dim: usize, name: String },
}

/// What a kernel's text holds, once for each place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Bytes of each wide access.
    pub wide: Vec<u64>,
    pub barriers: u32,
    pub shuffles: u32,
    pub votes: u32,
    pub atomics: u32,
}

/// The text of a kernel, after the prelude it needs went into `cx`.
pub fn kernel<'a>(cx: &mut Cx<'a>, k: &'a Kernel, symbol: String) -> Result<(String, KernelSource)> {
    let mut f = Fun::new(cx, &k.body, Some(k));
    f.global_exchange = exchanges(k);
    let (list, params) = f.params(k);
    let shared_bytes = f.arena(k)?;
    let arena = std::mem::take(&mut f.stmts);
    f.numbers(k)?;
    let numbers = std::mem::take(&mut f.stmts);
    f.stmts(&k.stmts)?;
    let mut body = std::mem::take(&mut f.stmts);
    align(&mut body, &f.aligned);
    unroll::mark(&mut body);
    let counts = std::mem::take(&mut f.facts);
    let threads = k.threads.as_ref().map_or(1, Threads::count);
    let mut inner = String::new();
    write::stmts(&mut inner, &body, 1);
    let mut text =
        format!("extern \"C\" __global__ void __launch_bounds__({threads})\n{symbol}({list}) {{\n");
    if shared_bytes > 0 {
        let to = cx.dialect.arena_align;
        text += &format!("    extern __shared__ __align__({to}) unsigned char arena[];\n");
    }
    write::stmts(&mut text, &used(arena, &inner), 1);
    write::stmts(&mut text, &used(numbers, &inner), 1);
    text += &inner;
    text += "}\n";
    let name = k.name.clone();
    Ok((text, KernelSource { name, symbol, threads, shared_bytes, params, counts }))
}

/// Whether threads of a block may hand each other data through a tensor.
fn exchanges(k: &Kernel) -> bool {
    let mut written = Vec::new();
    walk(&k.stmts, &mut |s| match &s.kind {
        StmtKind::Store { mem: Mem::Tensor(a), .. } => written.push(*a),
        StmtKind::Op { op: Op::Atomic { at, .. }, .. } => {
            if let Mem::Tensor(a) = at.mem() {
                written.push(a);
            }
        }
        _ => {}
    });
    let read = |a: ArgId| {
        k.body.exprs.iter().any(|(_, e)| matches!(e, Expr::Element { mem, .. } if *mem == Mem::Tensor(a)))
    };
    written.into_iter().any(read)
}

impl<'a> Fun<'_, 'a> {
    fn params(&mut self, k: &'a Kernel) -> (String, Vec<Param>) {
        let (mut texts, mut params) = (Vec::new(), Vec::new());
        for (id, arg) in k.args.iter() {
            let name = self.names.take(&arg.name);
            match &arg.kind {
                ArgKind::Scalar(elem) => {
                    let ty = match elem {
                        Elem::Index => Ty::I64,
                        Elem::D(d) => Ty::of(*d),
                    };
                    texts.push(format!("{} {name}", ty.name()));
                    params.push(Param::Scalar { arg: id.index(), name: arg.name.clone(), elem: *elem });
                }
                ArgKind::Tensor(t) => {
                    let constant = if t.mode == Mode::In { "const " } else { "" };
                    // memory that is written belongs to one parameter alone, or the launch is refused
                    texts.push(format!("{constant}{} *__restrict__ {name}", storage(t).name()));
                    params.push(Param::Tensor { arg: id.index(), name: arg.name.clone() });
                }
            }
            self.args.push(name);
        }
        for (id, dim) in k.dims.iter() {
            let name = self.names.take(&dim.name);
            texts.push(format!("i64 {name}"));
            params.push(Param::Dim { dim: id.index(), name: dim.name.clone() });
            self.dims.push(name);
        }
        (texts.join(", "), params)
    }

    /// Shared memory: where an earlier step put it, else one after the other.
    fn arena(&mut self, k: &'a Kernel) -> Result<u64> {
        let mut end = 0;
        for (id, b) in k.buffers.iter().filter(|(_, b)| b.home == Home::Shared) {
            self.span = k.buffers.span(id);
            let ty = Ty::of(b.elem);
            let plain = b.shape.iter().map(|&n| u64::from(n)).product::<u64>() * ty.bytes();
            let (at, bytes) = match &b.layout {
                Some(l) => (l.layout.offset[Axis::Mem], l.bytes(ty.bytes()) - l.layout.offset[Axis::Mem]),
                None => (round_up(end, u64::from(b.align.unwrap_or(16)).max(16)), plain),
            };
            end = end.max(at + bytes);
            let name = self.names.take(&b.name);
            let shape: Vec<String> = b.shape.iter().map(u32::to_string).collect();
            self.push(S::Comment(format!(
                "{name}: {}[{}], bytes {at} to {}",
                b.elem,
                shape.join(", "),
                at + bytes
            )));
            let start =
                if at == 0 { C::name("arena") } else { C::binary("+", C::name("arena"), C::int(at as i64)) };
            let init = Some(C::Cast(format!("{} *", ty.name()), Box::new(start)));
            self.push(S::Declare {
                constant: false,
                ty: format!("{} *const", ty.name()),
                name: name.clone(),
                init,
            });
            self.buffers.insert(id, Place { name, ty });
        }
        let most = self.cx.arch.facts.shared.max_bytes.as_ref().map(|k| u64::from(k.value));
        match most {
            Some(most) if end > most => {
                let message = format!(
                    "`{}` needs {end} bytes of shared memory, {} has {most}",
                    k.name, self.cx.arch.name
                );
                Err(Diagnostic::error(codes::SHARED_LIMIT, k.span, message).help("choose smaller tiles"))
            }
            _ => Ok(end),
        }
    }

    /// Indices of the block and the thread.
    fn numbers(&mut self, k: &'a Kernel) -> Result<()> {
        let last = k.grid.locals.len().saturating_sub(1);
        let mut rest = C::name("blockIdx.x");
        for (axis, (&local, &extent)) in k.grid.locals.iter().zip(&k.grid.extents).enumerate() {
            let n = self.value(extent)?;
            // a launch has fewer than 2^31 blocks
            let range = Range::new(0, (n.range.hi - 1).clamp(0, i128::from(i32::MAX) - 1));
            let mut value = rest.clone();
            if axis < last {
                let blocks = self.names.take(&format!("blocks_{}", self.body.locals[local].name));
                let init = Some(C::cast(Ty::U32, n.c));
                self.push(S::Declare { constant: true, ty: "u32".into(), name: blocks.clone(), init });
                value = C::binary("%", rest.clone(), C::name(blocks.clone()));
                rest = C::binary("/", rest, C::name(blocks));
            }
            self.number(local, value, range);
        }
        let Some(threads) = &k.threads else { return Ok(()) };
        let mut inner: u32 = threads.axes.iter().map(|&(_, n)| n).product();
        for (axis, &(local, n)) in threads.axes.iter().enumerate() {
            inner /= n.max(1);
            let mut value = C::name("threadIdx.x");
            if inner > 1 {
                value = C::binary("/", value, C::int(inner.into()));
            }
            if axis > 0 {
                value = C::binary("%", value, C::int(n.into()));
            }
            self.number(local, value, Range::new(0, i128::from(n) - 1));
        }
        Ok(())
    }

    fn number(&mut self, local: LocalId, value: C, range: Range) {
        let name = self.names.take(&self.body.locals[local].name);
        self.push(S::Declare { constant: true, ty: "int".into(), name: name.clone(), init: Some(value) });
        self.locals.insert(local, Var { name, ty: Ty::I32, range });
    }
}

impl Var {
    /// A name that stands for 0.
    pub(super) fn zero() -> Var {
        Var { name: "0".into(), ty: Ty::I32, range: Range::exactly(0) }
    }
}

/// Declarations that something later uses, their comments with them.
fn used(block: Vec<S>, body: &str) -> Vec<S> {
    let mut text = body.to_string();
    let mut kept = Vec::new();
    let mut rest = block.into_iter().rev().peekable();
    while let Some(s) = rest.next() {
        let S::Declare { name, .. } = &s else { continue };
        let comment = rest.next_if(|s| matches!(s, S::Comment(_)));
        if crate::clike::prelude::word(&text, name) {
            write::stmts(&mut text, std::slice::from_ref(&s), 0);
            kept.push(s);
            kept.extend(comment);
        }
    }
    kept.reverse();
    kept
}

/// Arrays that wide accesses touch are aligned for them.
fn align(block: &mut [S], aligned: &std::collections::HashMap<String, u64>) {
    for s in block {
        match s {
            S::Array { name, align: to, .. } => *to = aligned.get(name).map_or(*to, |&n| n.max(*to)),
            S::If { then, other, .. } => {
                align(then, aligned);
                align(other, aligned);
            }
            S::For { body, .. } | S::While { body, .. } => align(body, aligned),
            _ => {}
        }
    }
}

fn round_up(n: u64, to: u64) -> u64 {
    n.div_ceil(to) * to
}
