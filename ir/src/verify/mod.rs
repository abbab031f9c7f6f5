//! Whether a program is one: everything that the type rules cannot see.
//!
//! What [`verify`] accepts has a meaning: the interpreter runs it, and a back end turns it into code or into a named
//! refusal. It checks programs made from text and programs made by Rust code alike, and trusts neither. What it
//! cannot prove (races on data, indices that depend on data, uninitialised memory) is the interpreter's.
//!
//! | code | rule | where |
//! |---|---|---|
//! | P0301–P0330 | types and shapes, for every expression, op and statement again | `types` (by [`crate::typing`]) |
//! | P0323 | handles belong to this program, operands stand before their users | `types` |
//! | P0331 | expressions and blocks are not nested too deeply, nor too large | `types` |
//! | P0291–P0296, P0299 | entry, combiners, intrinsics; one name for each dim and parameter | `types`, `launch` |
//! | P0297 | a name, buffer or reducer is used below its declaration and inside its block | `scope` |
//! | P0298 | one statement declares a name | `scope` |
//! | P0414 | a `var` is assigned on every path before it is read | `scope` |
//! | P0415 | only a `var` is assigned | `scope` |
//! | P0417 | a reducer is not updated after it was read | `scope` |
//! | P0410 | an `in` tensor is never written | `modes` |
//! | P0411, P0412 | an `out` tensor is written, and not read before | `modes` |
//! | P0413 | an index that lies outside for every value it can have | `regions` |
//! | P0416 | a box kept after a loop does not depend on the loop's variable | `boxes` |
//! | P0507, P0610 | `break`, `continue` and `next` have their loop | `control` |
//! | P0501 | control around a collective is uniform over its team | `collective` |
//! | P0502, P0511 | scalars in tile statements and indices of tile values are uniform | `collective` |
//! | P0505, P0506 | warp operations need `threads … ordered`, thread arrays need `threads` | `collective` |
//! | P0509 | no collective inside `parallel` | `collective` |
//! | P0503 | threads do not store different values in one place | `races` |
//! | P0421 | blocks do not write the same elements | `races` |
//! | P0504, P0508 | lanes of `vectorized` and steps of `parallel` are independent | `lanes` |
//! | P0512 | `deterministic` admits no float atomics | `races` |
//! | P0510 | grid, cost, dims and conditions are known at launch | `types` |
//! | P0601, P0602 | what each stage has and needs | `stages` |
//! | P0603–P0607, P0610, P0614 | slot tokens: used once, in order, by their team | `tokens` |
//! | P0608, P0609 | both sides of a ring run the same steps; it has slots enough | `rings` |
//! | P0611–P0613, P0615 | roles, queues, turns, products in flight | `tokens` |
//! | P0616 | ranges of one loop follow each other and are the same for the team | `segments`, `types` |
//! | P0617, P0618 | partial values, homes and layouts fit what they are said of | `types` |
//! | P0619 | a schedule that can be read and fits the grid | `schedule` |
//! | P0295, P0418–P0420 | launches fit their kernels in number, type, mode; workspaces; aliasing | `launch` |
//! | P0820–P0822 | threads, shared memory and warp width of the target | `target` |

mod affine;
mod boxes;
mod collective;
mod control;
mod info;
mod lanes;
mod launch;
mod modes;
mod races;
mod regions;
mod rings;
mod schedule;
mod scope;
mod segments;
pub mod stages;
mod target;
mod tokens;
mod types;
mod uniform;

pub use info::{AxisSet, Info, KernelInfo, Level, Uniformity};

use crate::diag::{Code, Diagnostic, Diagnostics, Result};
use crate::program::*;
use crate::span::Span;
use crate::target::Arch;
use crate::typing::{Ctx, TypeError};

/// Checks a program for an architecture. The answer holds what was found out on the way, and warnings.
pub fn verify(program: &Program, arch: &Arch) -> Result<Info> {
    let mut out = Diagnostics::new();
    types::program(program, &mut out);
    if out.has_errors() {
        return Err(out);
    }
    let mut info = Info::default();
    for (_, kernel) in program.kernels.iter() {
        let mut v = Verifier { program, kernel, ctx: Ctx::kernel(program, kernel), arch, out: &mut out };
        info.kernels.push(v.kernel());
    }
    launch::host(program, &mut out);
    if out.has_errors() {
        return Err(out);
    }
    info.warnings = out;
    Ok(info)
}

/// What [`verify`] tells of a program that it accepts, without asking whether it does.
pub fn examine(program: &Program, arch: &Arch) -> Info {
    let mut out = Diagnostics::new();
    let mut info = Info::default();
    for (_, kernel) in program.kernels.iter() {
        let v = Verifier { program, kernel, ctx: Ctx::kernel(program, kernel), arch, out: &mut out };
        info.kernels.push(uniform::analyse(&v).info);
    }
    info
}

/// One kernel under examination.
struct Verifier<'a, 'o> {
    program: &'a Program,
    kernel: &'a Kernel,
    ctx: Ctx<'a>,
    arch: &'a Arch,
    out: &'o mut Diagnostics,
}

impl<'a> Verifier<'a, '_> {
    fn kernel(&mut self) -> KernelInfo {
        stages::kernel(self);
        scope::kernel(self);
        control::kernel(self);
        schedule::kernel(self);
        if self.out.has_errors() {
            return KernelInfo::default();
        }
        let uniform = uniform::analyse(self);
        modes::kernel(self);
        regions::kernel(self);
        boxes::kernel(self);
        collective::kernel(self, &uniform);
        segments::kernel(self, &uniform);
        races::kernel(self, &uniform);
        lanes::kernel(self);
        let held = tokens::kernel(self);
        rings::kernel(self, &held);
        target::kernel(self);
        uniform.info
    }

    fn body(&self) -> &'a Body {
        &self.kernel.body
    }

    fn span(&self, e: ExprId) -> Span {
        self.kernel.body.exprs.span(e)
    }

    fn local_name(&self, l: LocalId) -> &'a str {
        &self.kernel.body.locals[l].name
    }

    fn mem_name(&self, mem: Mem) -> String {
        crate::typing::mem_name(&self.ctx, mem).unwrap_or_default()
    }

    fn tensor(&self, mem: Mem) -> Option<&'a Tensor> {
        let Mem::Tensor(arg) = mem else { return None };
        match &self.kernel.args[arg].kind {
            ArgKind::Tensor(t) => Some(t),
            ArgKind::Scalar(_) => None,
        }
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> Report<'_> {
        Report { d: Some(Diagnostic::error(code, span, message)), out: self.out }
    }
}

/// A diagnostic that is pushed when it goes out of scope.
struct Report<'o> {
    d: Option<Diagnostic>,
    out: &'o mut Diagnostics,
}

impl Report<'_> {
    fn map(mut self, f: impl FnOnce(Diagnostic) -> Diagnostic) -> Self {
        self.d = self.d.take().map(f);
        self
    }

    fn label(self, text: impl Into<String>) -> Self {
        self.map(|d| d.label(text))
    }

    fn also(self, span: Span, text: impl Into<String>) -> Self {
        self.map(|d| d.also(span, text))
    }

    fn help(self, text: impl Into<String>) -> Self {
        self.map(|d| d.help(text))
    }

    fn note(self, text: impl Into<String>) -> Self {
        self.map(|d| d.note(text))
    }
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        if let Some(d) = self.d.take() {
            self.out.push(d);
        }
    }
}

fn type_error(
    out: &mut Diagnostics,
    body: &Body,
    span: Span,
    checked: std::result::Result<(), TypeError>,
) -> bool {
    match checked {
        Ok(()) => true,
        Err(e) => {
            out.push(e.diagnostic(body, span));
            false
        }
    }
}

/// Calls `f` on an expression and all below it, each once.
fn each_below(body: &Body, roots: &[ExprId], mut f: impl FnMut(ExprId, &Expr)) {
    let mut seen = std::collections::HashSet::new();
    let mut open: Vec<ExprId> = roots.to_vec();
    while let Some(e) = open.pop() {
        if seen.insert(e) {
            let expr = &body.exprs[e];
            f(e, expr);
            expr.operands(|o| open.push(o));
        }
    }
}

/// The expressions that a statement evaluates itself.
fn operands_of(kind: &StmtKind) -> Vec<ExprId> {
    let mut list = Vec::new();
    kind.operands(|e| list.push(e));
    list
}
