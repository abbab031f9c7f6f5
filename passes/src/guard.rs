//! Loops without bounds compares where no thread needs them.
//!
//! Reads and leaves a program of stage `final`. Conditions and guarded reads in a loop that hold for all threads up to
//! some round, or for a whole block, split the loop's range in two: `seg(lo..m: steady = true; m..hi: steady =
//! false)`. The body stays one; each guard `c` in it becomes `steady || c`, so that a back end which writes the body
//! once a range has no compare in the first. The ends are the same for all threads of a block, and the rounds run in the
//! same order: no result changes.

use crate::affine::{Atom, Opaque, Poly};
use crate::clean::{Clean, bounds, emit};
use crate::copies::Copies;
use crate::pipeline::Cx;
use crate::ranges::{Facts, Inside, comparison, constant_ranges};
use crate::weight::weight;
use pantile_ir::builder::{Exprs, KernelBuilder, Result, Rewrite, rewrite};
use pantile_ir::diag::Diagnostics;
use pantile_ir::program::*;
use pantile_ir::span::Span;
use smallvec::smallvec;
use std::collections::{HashMap, HashSet};

/// Statements of a body that may be written twice.
const SMALL: usize = 200;
/// A kernel's weight up to which any loop may be split: compilers of vendors take time by the statement. Above it only
/// loops that hold no other one but repeated code, where a compare costs most.
const LIGHT: usize = 400;
/// Its weight up to which those are split that are not the innermost steps of a product.
const HEAVY: usize = 900;

/// Nested `min` and `max` in one test.
const ENDS: u32 = 8;

pub fn run(program: Program, _: &Cx) -> std::result::Result<Program, Diagnostics> {
    let stage = program.stage;
    if stage < Stage::Threaded {
        return Ok(program);
    }
    let made = rewrite(program, stage, |k, stmts| {
        let mut guard = Guard {
            facts: Facts::of(k.kernel()),
            uniform: k.kernel().grid.locals.iter().copied().collect(),
            done: HashSet::new(),
            divergent: false,
            weight: 0,
            light: true,
        };
        // guards that hold at their place are gone before the loops are looked at
        let stmts = Clean::of(k.kernel(), true).block(k, stmts)?;
        guard.weight = weight(k.body(), &stmts);
        guard.light = guard.weight <= LIGHT;
        guard.stmts(k, stmts)
    });
    made.map_err(|d| std::iter::once(d).collect())
}

struct Guard {
    facts: Facts,
    /// Names that have one value for all threads of a block.
    uniform: HashSet<LocalId>,
    /// Constants of split loops: what they guard is settled.
    done: HashSet<LocalId>,
    /// Only some threads of a block may come by.
    divergent: bool,
    /// Of the kernel, with the copies that were made.
    weight: usize,
    /// Loops around loops may be split.
    light: bool,
}

/// Something in a loop's body that needs tests.
struct Site {
    at: ExprId,
    tests: Vec<ExprId>,
}

/// Where the tests of a loop hold for all threads.
#[derive(Default)]
struct Steady {
    /// The first round that may fail one, of each.
    before: Vec<Poly>,
    /// Each must be at least 0, or no round is steady.
    always: Vec<Poly>,
    /// Tests of dims: each must hold, or no round is steady.
    dims: Vec<ExprId>,
}

impl Guard {
    /// Guards in a block and what each tests; `inner` are the constant ranges of loops inside of it.
    fn sites(
        &mut self,
        k: &mut KernelBuilder,
        block: &Block,
        inner: &mut HashMap<LocalId, (i64, i64)>,
        out: &mut Vec<Site>,
    ) -> Result<()> {
        for s in block {
            let mut roots = Vec::new();
            s.kind.operands(|e| roots.push(e));
            self.reads(k, roots, out)?;
            let mark = self.facts.mark();
            match &s.kind {
                StmtKind::Let { local, value } => self.facts.name(k.body(), *local, *value),
                StmtKind::If { cond, .. } => {
                    let mut tests = Vec::new();
                    conjuncts(k.body(), *cond, &mut tests);
                    out.push(Site { at: *cond, tests });
                }
                StmtKind::For { var, segments, .. } => {
                    let known = |e| k.body().index_constant(e);
                    if let ([lo, hi], true) = (segments_ends(segments).map(known), !segments.is_empty())
                        && let (Some(lo), Some(hi)) = (lo, hi)
                    {
                        inner.insert(*var, (lo, hi - 1));
                    }
                    self.facts.enter_loop(k.body(), *var, segments);
                }
                _ => {}
            }
            // what stands beside a test of dims is not there in rounds that are steady
            let asks = match s.kind {
                StmtKind::If { cond, .. } => {
                    let mut tests = Vec::new();
                    conjuncts(k.body(), cond, &mut tests);
                    tests.into_iter().any(|t| of_dims(k.body(), t))
                }
                _ => false,
            };
            let taken = if asks { 1 } else { 2 };
            for block in s.kind.blocks().into_iter().take(taken) {
                self.sites(k, block, inner, out)?;
            }
            self.facts.release(mark);
        }
        Ok(())
    }

    /// Guarded reads below some expressions.
    fn reads(&mut self, k: &mut KernelBuilder, mut open: Vec<ExprId>, out: &mut Vec<Site>) -> Result<()> {
        let mut seen = HashSet::new();
        while let Some(e) = open.pop() {
            if !seen.insert(e) {
                continue;
            }
            let expr = k.body().exprs[e].clone();
            match &expr {
                Expr::Select { cond, other, .. } if self.settled(k.body(), *cond) => {
                    seen.insert(*other);
                    continue;
                }
                Expr::Element { mem, index, or: Some(_) } => {
                    let tests = bounds(k, *mem, index)?;
                    out.push(Site { at: e, tests });
                }
                _ => {}
            }
            expr.operands(|o| open.push(o));
        }
        Ok(())
    }

    fn settled(&self, body: &Body, cond: ExprId) -> bool {
        matches!(body.exprs[cond], Expr::Local(l) if self.done.contains(&l))
    }

    /// What a site needs of the rounds of a loop; `None` if that cannot be said for all threads at once.
    fn needs(
        &mut self,
        k: &KernelBuilder,
        site: &Site,
        var: LocalId,
        inner: &HashMap<LocalId, (i64, i64)>,
    ) -> Option<Steady> {
        let body = k.body();
        let mut out = Steady::default();
        for &test in &site.tests {
            if self.facts.decide(body, test) == Some(true) {
                continue;
            }
            if of_dims(body, test) {
                out.dims.push(test);
                continue;
            }
            let Expr::Binary(op, a, b) = body.exprs[test] else { return None };
            let (x, y) = (self.facts.forms.of(body, a)?, self.facts.forms.of(body, b)?);
            let mut enough = Vec::new();
            self.without_ends(&comparison(op, &x, &y, true)?, var, ENDS, &mut enough)?;
            for p in enough {
                let p = self.facts.minimum(&p, inner)?;
                if !self.facts.at_least_zero(&p) {
                    self.need(&p, var, &mut out)?;
                }
            }
        }
        Some(out)
    }

    /// That a value which changes with the rounds of a loop is at least 0.
    fn need(&mut self, p: &Poly, var: LocalId, out: &mut Steady) -> Option<()> {
        let atom = Atom::Local(var);
        let (factor, rest) = (p.linear_in(atom)?, p.without(atom));
        if !self.of_block(&rest) || self.facts.forms.mentions(&rest, &|a| a == atom) {
            return None;
        }
        match factor {
            0 => out.always.push(rest),
            f if f < 0 => {
                // var <= rest / f, so the first round that may fail is (rest + f) / f
                let f = f.checked_neg()?;
                let top = rest.plus(&Poly::constant(f), 1)?;
                out.before.push(self.facts.forms.quotient(top, f));
            }
            _ => return None,
        }
        Some(())
    }

    /// Values that must all be at least 0 for `p` to be so, without the `min` and `max` that follow the loop's variable:
    /// the edge of a tile is `max(min(64, K - k*64), 0)`.
    fn without_ends(&self, p: &Poly, var: LocalId, fuel: u32, out: &mut Vec<Poly>) -> Option<()> {
        let forms = &self.facts.forms;
        let moves = |p: &Poly| forms.mentions(p, &|a| a == Atom::Local(var));
        let end = p.atoms().find_map(|a| match a {
            Atom::Opaque(n) if moves(&Poly::atom(a)) => match forms.opaque(n) {
                Opaque::Min(x, y) => Some((a, x, y, true)),
                Opaque::Max(x, y) => Some((a, x, y, false)),
                _ => None,
            },
            _ => None,
        });
        let Some((atom, x, y, min)) = end else {
            out.push(p.clone());
            return Some(());
        };
        let fuel = fuel.checked_sub(1)?;
        let (f, rest) = (p.linear_in(atom)?, p.without(atom));
        if min == (f > 0) {
            self.without_ends(&rest.plus(x, f)?, var, fuel, out)?;
            return self.without_ends(&rest.plus(y, f)?, var, fuel, out);
        }
        // one of both is enough
        self.without_ends(&rest.plus(if moves(x) { x } else { y }, f)?, var, fuel, out)
    }

    /// An expression of names that are the same for all threads of a block.
    fn same(&self, body: &Body, e: ExprId) -> bool {
        !body.holds(e, |x, _| match x {
            Expr::Local(l) => !self.uniform.contains(l),
            Expr::Element { .. } => true,
            _ => false,
        })
    }

    /// The same for all threads of a block, whenever it is evaluated.
    fn of_block(&self, p: &Poly) -> bool {
        p.atoms().all(|a| match a {
            Atom::Local(l) => self.uniform.contains(&l),
            Atom::Dim(_) | Atom::Arg(_) => true,
            Atom::Opaque(n) => match self.facts.forms.opaque(n) {
                Opaque::Div(x, y)
                | Opaque::Rem(x, y)
                | Opaque::CeilDiv(x, y)
                | Opaque::Min(x, y)
                | Opaque::Max(x, y) => self.of_block(x) && self.of_block(y),
                Opaque::Value(_) => false,
            },
        })
    }

    /// The loop in two ranges, if some of its guards hold in one of them.
    fn split(&mut self, k: &mut KernelBuilder, s: &mut Stmt) -> Result<()> {
        let mut size = 0;
        s.kind.blocks().into_iter().for_each(|b| walk(b, &mut |_| size += 1));
        let StmtKind::For { var, kind, named, segments, carry, body } = &mut s.kind else { return Ok(()) };
        let [range] = &segments[..] else { return Ok(()) };
        let one = matches!(k.body().exprs[range.step], Expr::Const { bits: 1, .. });
        let plain =
            matches!(kind, LoopKind::Serial | LoopKind::NoUnroll) && named.is_empty() && carry.is_empty();
        let (Some(lo), Some(hi)) =
            (self.facts.forms.of(k.body(), range.lo), self.facts.forms.of(k.body(), range.hi))
        else {
            return Ok(());
        };
        if !one || !plain || size > SMALL || !self.of_block(&lo) || !self.of_block(&hi) {
            return Ok(());
        }
        let more = weight(k.body(), body);
        let step = *kind == LoopKind::NoUnroll;
        if !self.light && (holds_loops(body) || (!step && self.weight + more > HEAVY)) {
            return Ok(());
        }
        let (lo_e, hi_e, step) = (range.lo, range.hi, range.step);
        let mark = self.facts.mark();
        self.facts.enter_loop(k.body(), *var, segments);
        let (mut inner, mut sites) = (constant_ranges(k.kernel()), Vec::new());
        self.sites(k, body, &mut inner, &mut sites)?;
        let mut steady = Steady::default();
        let (mut settled, mut moves) = (Vec::new(), false);
        for site in sites {
            if let Some(needs) = self.needs(k, &site, *var, &inner) {
                let bounded = !needs.before.is_empty() || !needs.always.is_empty();
                let any = bounded || !needs.dims.is_empty();
                moves |= bounded;
                for (list, more) in [(&mut steady.before, needs.before), (&mut steady.always, needs.always)] {
                    for p in more {
                        if !list.contains(&p) {
                            list.push(p);
                        }
                    }
                }
                for test in needs.dims {
                    if !steady.dims.contains(&test) {
                        steady.dims.push(test);
                    }
                }
                settled.extend(any.then_some(site.at));
            }
        }
        self.facts.release(mark);
        // a test of dims alone is no reason: all rounds take the same way
        if !moves {
            return Ok(());
        }
        let m = self.border(k, &steady, (&lo, lo_e), (&hi, hi_e), s.span)?;
        // where only some threads come by, a name of its own would not be one value of the block
        let m = if self.divergent {
            m
        } else {
            let border = k.local("edge", Type::INDEX, LocalKind::Let, s.span);
            k.stmt(StmtKind::Let { local: border, value: m }, s.span)?;
            self.uniform.insert(border);
            k.get_at(border, s.span)?
        };
        self.weight += more;
        let name = k.local("steady", Type::BOOL, LocalKind::Loop, s.span);
        self.done.insert(name);
        let flag = k.get_at(name, s.span)?;
        let mut replaced = Vec::new();
        settled.sort_unstable();
        settled.dedup();
        for at in settled {
            let span = k.body().exprs.span(at);
            let new = match k.body().exprs[at].clone() {
                Expr::Element { mem, index, .. } if k.body().types[at.index()] != Type::BOOL => {
                    let then = k.expr(Expr::Element { mem, index, or: None }, span)?;
                    k.expr(Expr::Select { cond: flag, then, other: at }, span)?
                }
                _ => k.expr(Expr::Binary(BinOp::LogicalOr, flag, at), span)?,
            };
            replaced.push((at, new));
        }
        let mut copies = Copies::default().replace(replaced);
        replace_in(k, body, &mut copies)?;
        let (yes, no) = (k.constant_at(Elem::BOOL, 1, s.span)?, k.constant_at(Elem::BOOL, 0, s.span)?);
        named.push(name);
        *segments = smallvec![
            Segment { lo: lo_e, hi: m, step, values: smallvec![yes] },
            Segment { lo: m, hi: hi_e, step, values: smallvec![no] },
        ];
        Ok(())
    }

    /// The first round that is not steady, between the ends of the range.
    fn border(
        &mut self,
        k: &mut KernelBuilder,
        steady: &Steady,
        (lo, lo_e): (&Poly, ExprId),
        (hi, hi_e): (&Poly, ExprId),
        span: Span,
    ) -> Result<ExprId> {
        let math = |k: &mut KernelBuilder, f, a, b| {
            k.expr(Expr::Math { f, approx: false, args: [a, b].into_iter().collect() }, span)
        };
        let (mut m, mut least, mut most) = (None, true, false);
        for p in &steady.before {
            least &= p.plus(lo, -1).is_some_and(|d| self.facts.at_least_zero(&d));
            most |= hi.plus(p, -1).is_some_and(|d| self.facts.at_least_zero(&d));
            let e = emit(k, &self.facts.forms, p, span)?;
            m = Some(match m {
                Some(old) => math(k, MathFn::Min, old, e)?,
                None => e,
            });
        }
        let mut m = match m {
            Some(e) if !least => math(k, MathFn::Max, e, lo_e)?,
            Some(e) => e,
            None => hi_e,
        };
        let between = steady.before.is_empty() || (most && least);
        if !between {
            // above the end where the guards hold beyond it, or where the range is empty
            m = math(k, MathFn::Min, m, hi_e)?;
            let ordered = hi.plus(lo, -1).is_some_and(|d| self.facts.at_least_zero(&d));
            if !ordered {
                m = math(k, MathFn::Max, m, lo_e)?;
            }
        }
        for p in &steady.always {
            // what is subtracted stands on the left
            let part = |sign: i64| Poly {
                terms: p
                    .terms
                    .iter()
                    .filter(|(_, f)| f.signum() == sign)
                    .map(|(t, f)| (t.clone(), f * sign))
                    .collect(),
                constant: 0,
            };
            let (plus, mut minus) = (part(1), part(-1));
            minus.constant = p.constant.saturating_neg();
            let (left, right) =
                (emit(k, &self.facts.forms, &minus, span)?, emit(k, &self.facts.forms, &plus, span)?);
            let cond = k.expr(Expr::Binary(BinOp::Le, left, right), span)?;
            m = k.expr(Expr::Select { cond, then: m, other: lo_e }, span)?;
        }
        for &cond in &steady.dims {
            m = k.expr(Expr::Select { cond, then: m, other: lo_e }, span)?;
        }
        Ok(m)
    }
}

/// A condition over dims and numbers alone.
fn of_dims(body: &Body, cond: ExprId) -> bool {
    let varies = |x: &Expr| {
        let mut leaf = true;
        x.operands(|_| leaf = false);
        leaf && !matches!(x, Expr::Dim(_) | Expr::Const { .. })
    };
    !body.holds(cond, |x, _| varies(x) || matches!(x, Expr::Element { .. }))
}

/// Loops that stay loops.
fn holds_loops(block: &Block) -> bool {
    let mut found = false;
    walk(block, &mut |s| {
        found |= match &s.kind {
            StmtKind::For { kind, .. } => !matches!(kind, LoopKind::Unroll | LoopKind::Vectorized),
            kind => matches!(kind, StmtKind::While { .. }),
        }
    });
    found
}

/// Whether some round may end a loop before its time.
fn leaves(block: &Block) -> bool {
    let mut found = false;
    walk(block, &mut |s| found |= matches!(s.kind, StmtKind::Break | StmtKind::Continue));
    found
}

fn segments_ends(segments: &[Segment]) -> [ExprId; 2] {
    [segments[0].lo, segments[segments.len() - 1].hi]
}

fn conjuncts(body: &Body, cond: ExprId, out: &mut Vec<ExprId>) {
    match body.exprs[cond] {
        Expr::Binary(BinOp::LogicalAnd | BinOp::And, a, b) => {
            conjuncts(body, a, out);
            conjuncts(body, b, out);
        }
        _ => out.push(cond),
    }
}

/// Replaces expressions in place; nothing is declared anew.
fn replace_in(k: &mut KernelBuilder, block: &mut Block, copies: &mut Copies) -> Result<()> {
    for s in block {
        s.kind.replace_operands(|e| copies.expr(k, e))?;
        for inner in s.kind.blocks_mut() {
            replace_in(k, inner, copies)?;
        }
    }
    Ok(())
}

impl Inside for Guard {
    fn facts(&mut self) -> &mut Facts {
        &mut self.facts
    }
}

impl Rewrite for Guard {
    fn stmt(&mut self, k: &mut KernelBuilder, mut s: Stmt) -> Result<()> {
        if let StmtKind::Let { local, value } = s.kind {
            self.facts.name(k.body(), local, value);
            if !self.divergent && k.body().locals[local].kind == LocalKind::Let && self.same(k.body(), value)
            {
                self.uniform.insert(local);
            }
        }
        self.split(k, &mut s)?;
        let outer = self.divergent;
        self.divergent |= match &s.kind {
            StmtKind::If { cond, .. } => !self.same(k.body(), *cond),
            StmtKind::For { segments, body, .. } => {
                leaves(body)
                    || segments.iter().any(|s| !self.same(k.body(), s.lo) || !self.same(k.body(), s.hi))
            }
            kind => !kind.blocks().is_empty(),
        };
        if let (StmtKind::For { var, .. }, false) = (&s.kind, self.divergent) {
            self.uniform.insert(*var);
        }
        self.rewrite_inside(k, &mut s)?;
        self.divergent = outer;
        k.stmt_staged(s.kind, s.span, s.stage)
    }
}
