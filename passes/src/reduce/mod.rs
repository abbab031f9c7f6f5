//! `allreduce` and `once` become shuffles and staging in shared memory.
//!
//! Lanes fold first: by exchange at powers of two where the threads of a fold are whole bits of the lane's number,
//! else towards the first lane of each run of neighbours. What does not fit among the lanes of one exchange meets in
//! staging memory, with one ordering point, and is folded there. Folds run in their accumulate type and are rounded
//! once. A combiner that does not commute keeps the order of the fold: the left side always comes from lower threads.
//!
//! Control that differs between threads around a collective is taken apart first (`predicate`).
//!
//! After this pass no statement folds over threads. It never waits: ordering is another pass's.

mod axes;
mod divergence;
mod fold;
mod lanes;
mod meet;
mod predicate;
mod shape;
mod stage;
mod votes;

use crate::make::Make;
use crate::pipeline::Cx;
use fold::Folder;
use lanes::{Place, Running};
use pantile_ir::arena::Arena;
use pantile_ir::builder::{Exprs, KernelBuilder, Result, Rewrite, rewrite};
use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::program::*;
use pantile_ir::span::Span;
use pantile_ir::target::Arch;
use pantile_ir::verify::{KernelInfo, Level, Uniformity, verify};
use shape::{Group, Method, Widths, group};
use stage::Staging;
use std::collections::HashSet;

pub fn run(program: Program, cx: &Cx) -> std::result::Result<Program, Diagnostics> {
    let program = axes::run(program);
    let widths = widths(cx.arch);
    let program = predicate::run(program, cx.arch, widths)?;
    let info = verify(&program, cx.arch)?;
    let combines = program.combines.clone();
    let mut kernels = info.kernels.iter();
    let done = rewrite(program, Stage::Threaded, |k, stmts| {
        let none = KernelInfo::default();
        let info = kernels.next().unwrap_or(&none);
        Reduce {
            combines: &combines,
            widths,
            info,
            number: 0,
            staging: Staging::default(),
            sites: 0,
            loops: Vec::new(),
            read_once: HashSet::new(),
        }
        .kernel(k, stmts)
    });
    done.map_err(|d| std::iter::once(d).collect())
}

fn widths(arch: &Arch) -> Widths {
    let fact = |f: &pantile_ir::target::Fact<u32>| f.as_ref().map(|k| u64::from(k.value)).filter(|&n| n > 0);
    let t = &arch.facts.threads;
    let warp = fact(&t.warp_size).unwrap_or(1);
    let shuffle = fact(&t.shuffle_width).unwrap_or(warp).min(warp);
    Widths { shuffle, warp, group: fact(&t.group_size).unwrap_or(u64::MAX) }
}

struct Reduce<'a> {
    combines: &'a Arena<Combine>,
    widths: Widths,
    info: &'a KernelInfo,
    /// of the next statement
    number: usize,
    staging: Staging,
    /// staged folds so far
    sites: u64,
    /// The open loops: the variable where it counts by one, and whether an odd number of staged folds stands inside.
    loops: Vec<(Option<LocalId>, bool)>,
    /// What `once` reads: of these the first thread's value alone counts.
    read_once: HashSet<LocalId>,
}

/// A statement to be replaced.
struct Site<'s> {
    results: &'s [LocalId],
    control: Uniformity,
    span: Span,
}

impl Rewrite for Reduce<'_> {
    fn stmt(&mut self, k: &mut KernelBuilder, stmt: Stmt) -> Result<()> {
        let control = self.info.stmts.get(self.number).copied().unwrap_or(Uniformity::THREAD);
        self.number += 1;
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Op { results, op: Op::AllReduce { comb, inputs, over } } => {
                self.reduce(k, *comb, inputs, over, &Site { results, control, span })
            }
            // only the thread that evaluates may have given it a value, which the text no longer shows
            StmtKind::Declare { local } if self.read_once.contains(local) => self.zero(k, *local, span),
            StmtKind::Op { results, op: Op::Once { value } } => {
                self.once(k, *value, &Site { results, control, span })
            }
            StmtKind::For { var, segments, body, .. } => {
                let one = |s: &Segment| matches!(k.body().exprs[s.step], Expr::Const { bits: 1, .. });
                let var = (segments.len() == 1 && one(&segments[0])).then_some(*var);
                let odd = sites(body) % 2 == 1;
                self.inside(k, stmt, (var, odd))
            }
            StmtKind::While { body, .. } => {
                let odd = sites(body) % 2 == 1;
                self.inside(k, stmt, (None, odd))
            }
            _ => self.keep(k, stmt),
        }
    }
}

/// Folds in a block that may need staging.
fn sites(block: &Block) -> usize {
    let mut n = 0;
    walk(block, &mut |s| {
        n += usize::from(matches!(s.kind, StmtKind::Op { op: Op::AllReduce { .. } | Op::Once { .. }, .. }));
    });
    n
}

/// The names in an expression.
fn names(body: &Body, e: ExprId, into: &mut HashSet<LocalId>) {
    if let Expr::Local(l) = body.exprs[e] {
        into.insert(l);
    }
    body.exprs[e].operands(|o| names(body, o, into));
}

impl Reduce<'_> {
    fn kernel(mut self, k: &mut KernelBuilder, stmts: Block) -> Result<()> {
        walk(&stmts, &mut |s| {
            if let StmtKind::Op { op: Op::Once { value }, .. } = &s.kind {
                names(k.body(), *value, &mut self.read_once);
            }
        });
        let body = self.block(k, stmts)?;
        let span = k.kernel().span;
        self.staging.declare(&mut Make { k, span }, span)?;
        body.into_iter().try_for_each(|s| k.stmt_staged(s.kind, s.span, s.stage))
    }

    /// The declaration with a value.
    fn zero(&self, k: &mut KernelBuilder, local: LocalId, span: Span) -> Result<()> {
        let Some(elem) = k.body().locals[local].ty.elem() else {
            return k.stmt(StmtKind::Declare { local }, span);
        };
        let value = k.constant_at(elem, 0, span)?;
        k.stmt(StmtKind::Let { local, value }, span)
    }

    fn inside(&mut self, k: &mut KernelBuilder, stmt: Stmt, around: (Option<LocalId>, bool)) -> Result<()> {
        self.loops.push(around);
        let done = self.keep(k, stmt);
        self.loops.pop();
        done
    }

    /// The staging row of the next fold: the other one than the last fold's, also across a loop's steps.
    fn row(&mut self, m: &mut Make) -> Result<ExprId> {
        let n = self.sites % 2;
        self.sites += 1;
        match self.loops.last() {
            Some(&(Some(var), true)) => {
                let var = m.get(var)?;
                let step = m.add_int(var, n)?;
                m.rem(step, 2)
            }
            _ => m.int(n),
        }
    }

    fn reduce(
        &mut self,
        k: &mut KernelBuilder,
        comb: Combiner,
        inputs: &[ExprId],
        over: &Over,
        site: &Site,
    ) -> Result<()> {
        let w = self.widths;
        let m = &mut Make { k, span: site.span };
        let user = match comb {
            Combiner::User(id) => self.combines.get(id).cloned(),
            _ => None,
        };
        let elems: Vec<Elem> = inputs.iter().filter_map(|&e| m.elem(e)).collect();
        let fold = Folder::new(comb, user, elems.iter().copied());
        let Some(mut g) = group(m, over, w)? else { return Err(no_team(site.span)) };
        let method = g.method(&fold, w);
        check(site, &g, &method)?;
        let names: Vec<String> = site.results.iter().map(|&l| m.k.body().locals[l].name.clone()).collect();
        let mut locals = Vec::new();
        for ((&e, &acc), name) in inputs.iter().zip(&fold.elems).zip(&names) {
            let wide = m.cast(acc, e)?;
            locals.push(m.var(&format!("{name}_all"), wide)?);
        }
        let r = Running { fold: &fold, names, locals };
        let cells = method.cells();
        let slot = if method.in_lanes() {
            None
        } else {
            let row = self.row(m)?;
            Some(self.staging.slot(m, &fold.elems, g.count() * cells, row)?)
        };
        match &method {
            Method::Bits(b) => {
                lanes::butterfly(m, &r, &g, &b.steps, w)?;
                if let Some(slot) = &slot {
                    stage::bits(m, &r, &g, b, slot, w)?;
                }
            }
            Method::Run(run) => {
                let at = Place::new(m, &g, w)?;
                lanes::towards_first(m, &r, run, &at, w)?;
                match &slot {
                    None => lanes::from_first(m, &r, &at, w)?,
                    Some(slot) => stage::run(m, &r, &g, run, &at, slot, w)?,
                }
            }
        }
        for ((&result, &local), &elem) in site.results.iter().zip(&r.locals).zip(&elems) {
            let value = m.get(local)?;
            let value = m.cast(elem, value)?;
            m.stmt(StmtKind::Let { local: result, value })?;
        }
        Ok(())
    }

    /// The first thread evaluates, all read.
    fn once(&mut self, k: &mut KernelBuilder, value: ExprId, site: &Site) -> Result<()> {
        let m = &mut Make { k, span: site.span };
        let Some(&local) = site.results.first() else { return Ok(()) };
        let threads = m.k.kernel().threads.as_ref().map_or(1, Threads::count);
        if threads == 1 {
            return m.stmt(StmtKind::Let { local, value });
        }
        if site.control.level < Level::Block {
            return Err(partial(site.span, "the block"));
        }
        let elems: Vec<Elem> = m.elem(value).into_iter().collect();
        let row = self.row(m)?;
        let slot = self.staging.slot(m, &elems, 1, row)?;
        let thread = m.thread()?;
        let first = m.is_zero(thread)?;
        let zero = m.int(0)?;
        m.when(first, |m| slot.store(m, zero, &[value]))?;
        let all = slot.load(m, zero, &elems)?;
        all.into_iter().try_for_each(|value| m.stmt(StmtKind::Let { local, value }))
    }
}

/// Lanes exchange only where all of their warp arrive, and wait for the block only where all of it arrives.
fn check(site: &Site, g: &Group, method: &Method) -> Result<()> {
    let level = site.control.level;
    if g.len() > 1 && level < Level::Warp && g.total > 1 {
        return Err(partial(site.span, "the warp"));
    }
    if !method.in_lanes() && level < Level::Block {
        return Err(partial(site.span, "the block"));
    }
    Ok(())
}

fn partial(span: Span, whom: &str) -> Diagnostic {
    let message =
        format!("only a part of {whom} comes here, but on this target all of it must exchange values");
    Diagnostic::error(codes::PARTIAL_EXCHANGE, span, message).label("joins values of several threads").help(
        "move it out of the `if` or loop around it: give the threads that do not take part the combiner's identity",
    )
}

fn no_team(span: Span) -> Diagnostic {
    Diagnostic::error(codes::UNSUPPORTED, span, "values of this team cannot be joined by its threads")
        .help("name thread axes, `warp` or `block` after `over`")
}
