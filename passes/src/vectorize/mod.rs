//! Wide accesses: lanes of a loop that touch neighbouring elements become one access of a legal width.
//!
//! Reads and leaves a program of stage `threaded`. Afterwards every `vectorized(n)` loop is one wide access: one store
//! between a thread array and a tensor or shared buffer, no `or`, aligned as the target wants it. Lanes that cannot be
//! proved to be wide are an `unroll` of single accesses. An access that may end beyond its memory stands under a test;
//! its other side has guarded single accesses, or none where the test decides for all lanes alike.
//!
//! Where rows would be aligned if a dim were a multiple of the width, the outermost small loop around the access is there
//! twice, under a test of the dims; in a kernel that is large already, only the loop of a fixed count around a read, and
//! stores test dims with what else they test. Base addresses are taken to be aligned (see `Tensor::base_align`). Nothing
//! here reorders float arithmetic.

mod fit;
mod lanes;

pub use fit::extents;

use crate::copies::{Copies, copyable};
use crate::pipeline::Cx;
use crate::ranges::{Facts, Inside};
use crate::weight::weight;
use fit::{Fit, Lanes, Widths, fit};
use lanes::Statement;
use pantile_ir::builder::{Exprs, KernelBuilder, Result, Rewrite, rewrite};
use pantile_ir::diag::Diagnostics;
use pantile_ir::program::*;
use pantile_ir::span::Span;
use smallvec::smallvec;
use std::collections::BTreeMap;

/// Statements that are worth having twice for the sake of wide accesses.
const SMALL: usize = 120;
/// A kernel's weight up to which whole loops are there twice: compilers of vendors take time by the statement.
const LIGHT: usize = 300;
/// Lanes of a plain loop that is looked at.
const MOST_LANES: i64 = 256;

pub fn run(program: Program, cx: &Cx) -> std::result::Result<Program, Diagnostics> {
    let widths = Widths::of(&cx.arch.facts.access);
    let stage = program.stage;
    let made = rewrite(program, stage, |k, stmts| {
        let light = weight(k.body(), &stmts) <= LIGHT;
        let mut pass = Vectorize { widths, facts: Facts::of(k.kernel()), versions: Versions::Open, light };
        pass.stmts(k, stmts)
    });
    made.map_err(|d| std::iter::once(d).collect())
}

/// Whether tests of dims may still be made.
#[derive(Clone, Copy, PartialEq)]
enum Versions {
    Open,
    /// Inside of a test, on either side.
    Decided,
}

struct Vectorize {
    widths: Widths,
    facts: Facts,
    versions: Versions,
    /// The kernel may have more than single accesses twice.
    light: bool,
}

/// A loop that runs over lanes `0..n`.
fn lanes_of(k: &Kernel, kind: &StmtKind) -> Option<Lanes> {
    let StmtKind::For { var, kind, named, segments, carry, .. } = kind else { return None };
    let [s] = &segments[..] else { return None };
    let known = |e| k.body.index_constant(e);
    let (lo, hi, step) = (known(s.lo)?, known(s.hi)?, known(s.step)?);
    let pipelined = matches!(kind, LoopKind::Pipelined { .. });
    let fits = lo == 0 && step == 1 && hi > 0 && hi <= MOST_LANES;
    (fits && named.is_empty() && carry.is_empty() && !pipelined).then_some(Lanes { var: *var, n: hi })
}

/// A loop whose number of rounds is known, as those over a thread's elements.
fn fixed(body: &Body, kind: &StmtKind) -> bool {
    let StmtKind::For { segments, .. } = kind else { return false };
    let known = |e: ExprId| body.index_constant(e).is_some();
    segments.iter().all(|s| known(s.lo) && known(s.hi))
}

impl Vectorize {
    fn fit(&mut self, k: &Kernel, at: (Mem, &[ExprId]), lanes: Lanes, ask: bool) -> Option<Fit> {
        fit(&self.widths, &mut self.facts, k, at, lanes, ask)
    }

    /// Stores test dims themselves, with what else they test.
    fn asks(&self) -> bool {
        !self.light && self.versions == Versions::Open
    }

    /// Dims that would make accesses of a statement wide if they were multiples of these numbers.
    fn wanted(&mut self, k: &Kernel, s: &Stmt, out: &mut BTreeMap<DimId, i64>) {
        let mark = self.facts.mark();
        match &s.kind {
            StmtKind::Let { local, value } => self.facts.name(&k.body, *local, *value),
            StmtKind::If { cond, then, other } => {
                self.facts.assume(&k.body, *cond, true);
                then.iter().for_each(|s| self.wanted(k, s, out));
                self.facts.release(mark);
                other.iter().for_each(|s| self.wanted(k, s, out));
            }
            StmtKind::For { var, segments, body, .. } => {
                if let Some(lanes) = lanes_of(k, &s.kind) {
                    for (mem, index) in lanes::touched(k, &s.kind, self.light) {
                        let better = self.fit(k, (mem, &index), lanes, true).filter(|f| !f.dims.is_empty());
                        for (d, n) in better.map(|f| f.dims).unwrap_or_default() {
                            let old = out.get(&d).copied().unwrap_or(1);
                            out.insert(d, old.max(n));
                        }
                    }
                }
                self.facts.enter_loop(&k.body, *var, segments);
                body.iter().for_each(|s| self.wanted(k, s, out));
            }
            kind => kind.blocks().into_iter().flatten().for_each(|s| self.wanted(k, s, out)),
        }
        self.facts.release(mark);
    }

    /// The statement as it is, its blocks rewritten with what holds there.
    fn keep_inside(&mut self, k: &mut KernelBuilder, mut s: Stmt) -> Result<()> {
        self.rewrite_inside(k, &mut s)?;
        k.stmt_staged(s.kind, s.span, s.stage)
    }

    /// The statement under a test of dims and without it, where that pays.
    fn in_versions(&mut self, k: &mut KernelBuilder, s: &Stmt) -> Result<bool> {
        let mut dims = BTreeMap::new();
        let mut size = 0;
        let alone = std::slice::from_ref(s).to_vec();
        walk(&alone, &mut |_| size += 1);
        let loops = matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. });
        let fits = loops && size <= SMALL && (self.light || fixed(k.body(), &s.kind));
        if self.versions == Versions::Decided || !fits || !copyable(&alone) {
            return Ok(false);
        }
        self.wanted(k.kernel(), s, &mut dims);
        if dims.is_empty() {
            return Ok(false);
        }
        let Some(cond) = multiples(k, &dims, s.span)? else { return Ok(false) };
        let copy = Copies::default().stmt(k, s)?;
        self.versions = Versions::Decided;
        let mark = self.facts.mark();
        for (d, n) in dims {
            self.facts.assume_multiple(crate::affine::Atom::Dim(d), n);
        }
        let then = self.block(k, vec![copy])?;
        self.facts.release(mark);
        let other = self.block(k, vec![s.clone()])?;
        self.versions = Versions::Open;
        k.stmt(StmtKind::If { cond, then, other }, s.span)?;
        Ok(true)
    }

    fn lanes(&mut self, k: &mut KernelBuilder, s: &Stmt, lanes: Lanes) -> Result<bool> {
        let StmtKind::For { kind, body, .. } = &s.kind else { return Ok(false) };
        if *kind != LoopKind::Vectorized {
            return self.hoist(k, s, lanes);
        }
        let each: Option<Vec<Statement>> = body.iter().map(|s| Statement::of(&s.kind, s.span)).collect();
        match each {
            Some(each) => each.iter().try_for_each(|one| self.statement(k, one, lanes))?,
            // lanes with control of their own
            None => {
                let mut plain = s.clone();
                if let StmtKind::For { kind, .. } = &mut plain.kind {
                    *kind = LoopKind::Unroll;
                }
                if !self.hoist(k, &plain, lanes)? {
                    self.keep_inside(k, plain)?;
                }
            }
        }
        Ok(true)
    }
}

impl Inside for Vectorize {
    fn facts(&mut self) -> &mut Facts {
        &mut self.facts
    }
}

impl Rewrite for Vectorize {
    fn stmt(&mut self, k: &mut KernelBuilder, s: Stmt) -> Result<()> {
        if let StmtKind::Let { local, value } = s.kind {
            self.facts.name(k.body(), local, value);
        }
        if self.in_versions(k, &s)? {
            return Ok(());
        }
        if let Some(lanes) = lanes_of(k.kernel(), &s.kind)
            && self.lanes(k, &s, lanes)?
        {
            return Ok(());
        }
        let mut s = s;
        if let StmtKind::For { kind: kind @ LoopKind::Vectorized, .. } = &mut s.kind {
            *kind = LoopKind::Serial;
        }
        self.keep_inside(k, s)
    }
}

fn index(k: &mut KernelBuilder, n: i64, span: Span) -> Result<ExprId> {
    k.constant_at(Elem::Index, n as u64, span)
}

/// The condition that dims are multiples of these numbers.
fn multiples(k: &mut KernelBuilder, dims: &BTreeMap<DimId, i64>, span: Span) -> Result<Option<ExprId>> {
    let mut cond = None;
    for (&d, &n) in dims {
        let dim = k.expr(Expr::Dim(d), span)?;
        let (n, zero) = (index(k, n, span)?, index(k, 0, span)?);
        let rest = k.expr(Expr::Binary(BinOp::Rem, dim, n), span)?;
        let whole = k.expr(Expr::Binary(BinOp::Eq, rest, zero), span)?;
        cond = Some(both(k, cond, whole, span)?);
    }
    Ok(cond)
}

fn both(k: &mut KernelBuilder, a: Option<ExprId>, b: ExprId, span: Span) -> Result<ExprId> {
    match a {
        Some(a) => k.expr(Expr::Binary(BinOp::LogicalAnd, a, b), span),
        None => Ok(b),
    }
}

/// `for name in kind(n) { … }` around what `body` adds, which gets the variable's value. One round needs no loop.
fn repeat(
    k: &mut KernelBuilder,
    (name, kind, n, span): (&str, LoopKind, i64, Span),
    body: impl FnOnce(&mut KernelBuilder, ExprId) -> Result<()>,
) -> Result<()> {
    let zero = index(k, 0, span)?;
    if n == 1 {
        return body(k, zero);
    }
    let (hi, step) = (index(k, n, span)?, index(k, 1, span)?);
    let var = k.local(name, Type::INDEX, LocalKind::Loop, span);
    let value = k.get_at(var, span)?;
    k.begin_block();
    body(k, value)?;
    let body = k.end_block()?;
    let segments = smallvec![Segment::plain(zero, hi, step)];
    k.stmt(StmtKind::For { var, kind, named: smallvec![], segments, carry: Vec::new(), body }, span)
}
