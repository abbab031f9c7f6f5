//! One statement over lanes: its wide loads, its arithmetic lane by lane, its wide store.

use super::fit::{Lanes, extents};
use super::{Vectorize, both, index, multiples, repeat};
use crate::affine::{Atom, Poly};
use crate::copies::Copies;
use crate::ranges::comparison;
use pantile_ir::builder::{Exprs, KernelBuilder, Result};
use pantile_ir::program::*;
use pantile_ir::span::Span;
use smallvec::smallvec;
use std::collections::{BTreeMap, HashSet};

/// A store, maybe under a condition.
#[derive(Clone)]
pub struct Statement {
    guard: Option<ExprId>,
    mem: Mem,
    index: Args,
    value: ExprId,
    span: Span,
}

/// A read of neighbouring elements.
#[derive(Clone)]
struct Load {
    at: ExprId,
    mem: Mem,
    index: Args,
    or: Option<ExprId>,
    width: i64,
    align: i64,
}

/// A store of neighbouring elements.
struct Wide {
    width: i64,
    align: i64,
    /// Multiples that dims must be, which the access tests itself.
    dims: BTreeMap<DimId, i64>,
}

impl Statement {
    pub fn of(kind: &StmtKind, span: Span) -> Option<Statement> {
        match kind {
            StmtKind::Store { mem, index, value } => {
                Some(Statement { guard: None, mem: *mem, index: index.clone(), value: *value, span })
            }
            StmtKind::If { cond, then, other } if other.is_empty() => {
                let [one] = &then[..] else { return None };
                let inner = Statement::of(&one.kind, one.span).filter(|s| s.guard.is_none())?;
                Some(Statement { guard: Some(*cond), ..inner })
            }
            _ => None,
        }
    }
}

/// Reads that happen whenever the statement runs, or say themselves what holds outside.
fn reads(body: &Body, root: ExprId) -> Vec<ExprId> {
    let (mut out, mut seen) = (Vec::new(), HashSet::new());
    let mut open = vec![(root, true)];
    while let Some((e, sure)) = open.pop() {
        if !seen.insert((e, sure)) {
            continue;
        }
        match &body.exprs[e] {
            Expr::Element { mem, index, or } => {
                let private = |i: &ExprId| body.holds(*i, |x, _| matches!(x, Expr::Element { .. }));
                let constant = or.is_none_or(|o| matches!(body.exprs[o], Expr::Const { .. }));
                if !out.contains(&e)
                    && (sure || or.is_some())
                    && constant
                    && !index.iter().any(private)
                    && !matches!(mem, Mem::Slot { .. })
                {
                    out.push(e);
                }
                open.extend(index.iter().map(|&i| (i, sure)));
            }
            Expr::Select { cond, then, other } => {
                open.extend([(*other, false), (*then, false), (*cond, sure)]);
            }
            Expr::Binary(op, a, b) if op.is_logical() => open.extend([(*b, false), (*a, sure)]),
            expr => {
                let mut list = Vec::new();
                expr.operands(|o| list.push((o, sure)));
                open.extend(list.into_iter().rev());
            }
        }
    }
    out
}

fn is_array(k: &Kernel, mem: Mem) -> bool {
    matches!(mem, Mem::Buffer(b) if k.buffers[b].home == Home::Thread)
}

fn elem_of(k: &Kernel, mem: Mem) -> Option<pantile_ir::DType> {
    match mem {
        Mem::Tensor(a) => match &k.args[a].kind {
            ArgKind::Tensor(t) => Some(t.elem),
            ArgKind::Scalar(_) => None,
        },
        Mem::Buffer(b) => Some(k.buffers[b].elem),
        Mem::Slot { .. } => None,
    }
}

fn name_of(k: &Kernel, mem: Mem) -> String {
    match mem {
        Mem::Tensor(a) => k.args[a].name.to_lowercase(),
        Mem::Buffer(b) => k.buffers[b].name.clone(),
        Mem::Slot { .. } => "slot".into(),
    }
}

/// What a loop over lanes reads outside of thread arrays, and on demand what it stores there.
pub fn touched(k: &Kernel, kind: &StmtKind, stores: bool) -> Vec<(Mem, Args)> {
    let StmtKind::For { kind, body, .. } = kind else { return Vec::new() };
    let mut out = Vec::new();
    let mut values = |value: ExprId| {
        for e in reads(&k.body, value) {
            if let Expr::Element { mem, index, .. } = &k.body.exprs[e]
                && !is_array(k, *mem)
            {
                out.push((*mem, index.clone()));
            }
        }
    };
    for s in body {
        match Statement::of(&s.kind, s.span) {
            Some(s) => values(s.value),
            None => s.kind.operands(&mut values),
        }
    }
    if stores && *kind == LoopKind::Vectorized {
        let stores = body.iter().filter_map(|s| Statement::of(&s.kind, s.span));
        out.extend(stores.filter(|s| !is_array(k, s.mem)).map(|s| (s.mem, s.index)));
    }
    out
}

impl Vectorize {
    fn loads(&mut self, k: &Kernel, values: &[ExprId], lanes: Lanes) -> Vec<Load> {
        let mut out: Vec<Load> = Vec::new();
        for e in values.iter().flat_map(|&v| reads(&k.body, v)) {
            let Expr::Element { mem, index, or } = &k.body.exprs[e] else { continue };
            if is_array(k, *mem) || out.iter().any(|l| l.at == e) {
                continue;
            }
            if let Some(f) = self.fit(k, (*mem, index), lanes, false) {
                let (width, align) = (f.width, f.align_bytes);
                out.push(Load { at: e, mem: *mem, index: index.clone(), or: *or, width, align });
            }
        }
        out
    }

    /// One statement of a `vectorized` loop.
    pub(super) fn statement(&mut self, k: &mut KernelBuilder, s: &Statement, lanes: Lanes) -> Result<()> {
        let kernel = k.kernel();
        let loads = self.loads(kernel, &[s.value], lanes);
        let array = is_array(kernel, s.mem);
        let asks = self.asks();
        let store = if array { None } else { self.fit(kernel, (s.mem, &s.index), lanes, asks) };
        let store = store.map(|f| Wide { width: f.width, align: f.align_bytes, dims: f.dims });
        let chunk = loads.iter().map(|l| l.width).chain(store.iter().map(|w| w.width)).max().unwrap_or(1);
        let name = k.body().locals[lanes.var].name.clone();
        if chunk < 2 {
            return self.singly(k, s, (lanes.var, &name, lanes.n), None);
        }
        let rounds = lanes.n / chunk;
        let step = Lanes { var: lanes.var, n: chunk };
        repeat(k, ("c", LoopKind::Unroll, rounds, s.span), |k, c| {
            let mark = self.facts.mark();
            self.counts(k, c, rounds);
            let width = index(k, chunk, s.span)?;
            let start = k.expr(Expr::Binary(BinOp::Mul, c, width), s.span)?;
            self.chunk(k, s, step, (start, &name), &loads, store.as_ref())?;
            self.facts.release(mark);
            Ok(())
        })
    }

    /// Every lane by itself, `start` being the first.
    fn singly(
        &mut self,
        k: &mut KernelBuilder,
        s: &Statement,
        (var, name, n): (LocalId, &str, i64),
        start: Option<ExprId>,
    ) -> Result<()> {
        let counts = if self.light { Vec::new() } else { self.counted(k, s, (var, n), start)? };
        repeat(k, (name, LoopKind::Unroll, n, s.span), |k, v| {
            let lane = offset(k, start, v, s.span)?;
            let mut replaced = Vec::new();
            for &(at, left) in &counts {
                replaced.push((at, within(k, (var, lane), (at, left), v, s.span)?));
            }
            let mut copy = Copies::with(var, lane).replace(replaced);
            let index = s.index.iter().map(|&e| copy.expr(k, e)).collect::<Result<Args>>()?;
            let value = copy.expr(k, s.value)?;
            let store = StmtKind::Store { mem: s.mem, index, value };
            match s.guard {
                None => k.stmt(store, s.span),
                Some(g) => {
                    let cond = copy.expr(k, g)?;
                    let then = vec![Stmt::new(store, s.span)];
                    k.stmt(StmtKind::If { cond, then, other: Block::new() }, s.span)
                }
            }
        })
    }

    /// Guarded reads of neighbouring elements, each with a name for how many of the lanes are inside: one comparison of
    /// small numbers a lane instead of one of indices an axis.
    fn counted(
        &mut self,
        k: &mut KernelBuilder,
        s: &Statement,
        (var, n): (LocalId, i64),
        start: Option<ExprId>,
    ) -> Result<Vec<(ExprId, LocalId)>> {
        let (mut out, span) = (Vec::new(), s.span);
        for at in reads(k.body(), s.value) {
            let Expr::Element { mem, index: place, or: Some(or) } = k.body().exprs[at].clone() else {
                continue;
            };
            let Some((&last, outer)) = place.split_last() else { continue };
            let moves = |e: ExprId| k.body().holds(e, |x, _| *x == Expr::Local(var));
            let constant = matches!(k.body().exprs[or], Expr::Const { .. });
            let Some(p) = self.facts.forms.of(k.body(), last) else { continue };
            let atom = Atom::Local(var);
            let neighbours =
                p.linear_in(atom) == Some(1) && !self.facts.forms.mentions(&p.without(atom), &|a| a == atom);
            if !constant || !neighbours || outer.iter().any(|&e| moves(e)) || is_array(k.kernel(), mem) {
                continue;
            }
            let zero = index(k, 0, span)?;
            let first = Copies::with(var, start.unwrap_or(zero)).expr(k, last)?;
            let below = k.expr(Expr::Binary(BinOp::Ge, first, zero), span)?;
            if self.facts.decide(k.body(), below) != Some(true) {
                continue;
            }
            let (mut cond, mut left) = (None, zero);
            for (axis, extent) in extents(k.kernel(), mem).into_iter().enumerate() {
                let extent = extent.value(k, span)?;
                let Some(&at) = outer.get(axis) else {
                    let room = k.expr(Expr::Binary(BinOp::Sub, extent, first), span)?;
                    let most = index(k, n, span)?;
                    left = math(k, MathFn::Min, (most, room), span)?;
                    left = math(k, MathFn::Max, (left, zero), span)?;
                    continue;
                };
                for (op, end) in [(BinOp::Ge, zero), (BinOp::Lt, extent)] {
                    let test = k.expr(Expr::Binary(op, at, end), span)?;
                    if self.facts.decide(k.body(), test) != Some(true) {
                        cond = Some(both(k, cond, test, span)?);
                    }
                }
            }
            if let Some(cond) = cond {
                left = k.expr(Expr::Select { cond, then: left, other: zero }, span)?;
            }
            let local = k.local("left", Type::INDEX, LocalKind::Let, span);
            k.stmt(StmtKind::Let { local, value: left }, span)?;
            out.push((at, local));
        }
        Ok(out)
    }

    fn chunk(
        &mut self,
        k: &mut KernelBuilder,
        s: &Statement,
        lanes: Lanes,
        (start, name): (ExprId, &str),
        loads: &[Load],
        store: Option<&Wide>,
    ) -> Result<()> {
        let mut tests = match store {
            Some(w) => asked(k, &w.dims, s.span)?,
            None => Tests { cond: None, exact: true },
        };
        if let Some(guard) = s.guard {
            let Some((cond, exact)) = self.guard(k, guard, lanes, start)? else {
                return self.singly(k, s, (lanes.var, name, lanes.n), Some(start));
            };
            tests = Tests { cond: Some(both(k, tests.cond, cond, s.span)?), exact: tests.exact && exact };
        }
        let Tests { cond: Some(cond), exact } = tests else {
            return self.whole(k, s, lanes, (start, name), loads, store);
        };
        k.begin_block();
        self.whole(k, s, lanes, (start, name), loads, store)?;
        let then = k.end_block()?;
        k.begin_block();
        if !exact {
            self.singly(k, s, (lanes.var, name, lanes.n), Some(start))?;
        }
        let other = k.end_block()?;
        k.stmt(StmtKind::If { cond, then, other }, s.span)
    }

    /// All lanes of a chunk, none of which is left out.
    fn whole(
        &mut self,
        k: &mut KernelBuilder,
        s: &Statement,
        lanes: Lanes,
        (start, name): (ExprId, &str),
        loads: &[Load],
        store: Option<&Wide>,
    ) -> Result<()> {
        let kernel = k.kernel();
        let array = is_array(kernel, s.mem);
        // straight into the array that the text names
        if let [l] = loads
            && array
            && l.at == s.value
            && self.fit(kernel, (s.mem, &s.index), lanes, false).is_some_and(|f| f.width >= l.width)
        {
            return self.load(k, l, lanes, (start, name), (s.mem, Some(&s.index)), s.span);
        }
        let mut by = Vec::new();
        for l in loads {
            let place = self.temporary(k, l.mem, lanes.n, s.span)?;
            self.load(k, l, lanes, (start, name), (place, None), s.span)?;
            by.push((l.at, place));
        }
        let Some(w) = store else {
            return self.lane_by_lane(k, s, lanes, (start, name), &by, None);
        };
        // straight out of the array that the text names
        let from = match &k.body().exprs[s.value] {
            Expr::Element { mem, index, or: None } if is_array(k.kernel(), *mem) => {
                Some((*mem, index.clone()))
            }
            _ => None,
        };
        let from = match from {
            Some((mem, index))
                if self.fit(k.kernel(), (mem, &index), lanes, false).is_some_and(|f| f.width >= w.width) =>
            {
                (mem, Some(index))
            }
            _ => {
                let place = self.temporary(k, s.mem, lanes.n, s.span)?;
                self.lane_by_lane(k, s, lanes, (start, name), &by, Some(place))?;
                (place, None)
            }
        };
        self.aligned(k, s.mem, w.align);
        self.aligned(k, from.0, w.align);
        let wide = Move { to: (s.mem, Some(&s.index)), from: (from.0, from.1.as_deref()) };
        self.pieces(k, lanes, w.width, s.span, |_, k, piece| {
            let first = offset(k, Some(start), piece, s.span)?;
            wide.write(k, (lanes.var, name), (first, piece), w.width, s.span)
        })
    }

    /// The arithmetic, with what was loaded in the place of the reads; into the statement's place or another.
    fn lane_by_lane(
        &mut self,
        k: &mut KernelBuilder,
        s: &Statement,
        lanes: Lanes,
        (start, name): (ExprId, &str),
        by: &[(ExprId, Mem)],
        into: Option<Mem>,
    ) -> Result<()> {
        repeat(k, (name, LoopKind::Unroll, lanes.n, s.span), |k, v| {
            let mut replaced = Vec::new();
            for &(e, mem) in by {
                replaced.push((e, k.expr(Expr::Element { mem, index: smallvec![v], or: None }, s.span)?));
            }
            let lane = offset(k, Some(start), v, s.span)?;
            let mut copy = Copies::with(lanes.var, lane).replace(replaced);
            let value = copy.expr(k, s.value)?;
            let (mem, index) = match into {
                Some(mem) => (mem, smallvec![v]),
                None => (s.mem, s.index.iter().map(|&e| copy.expr(k, e)).collect::<Result<Args>>()?),
            };
            k.stmt(StmtKind::Store { mem, index, value }, s.span)
        })
    }

    /// A plain loop over lanes: what it reads is loaded before it.
    pub(super) fn hoist(&mut self, k: &mut KernelBuilder, s: &Stmt, lanes: Lanes) -> Result<bool> {
        let StmtKind::For { body, .. } = &s.kind else { return Ok(false) };
        let Some(values) = plain_values(k.kernel(), body) else { return Ok(false) };
        let loads = self.loads(k.kernel(), &values, lanes);
        let loads: Vec<Load> = loads.into_iter().filter(|l| unchanged(k.kernel(), body, l)).collect();
        if loads.is_empty() {
            return Ok(false);
        }
        let zero = index(k, 0, s.span)?;
        let name = k.body().locals[lanes.var].name.clone();
        let lane = k.get_at(lanes.var, s.span)?;
        let mut by = Vec::new();
        for l in &loads {
            let place = self.temporary(k, l.mem, lanes.n, s.span)?;
            self.load(k, l, lanes, (zero, &name), (place, None), s.span)?;
            by.push((l.at, k.expr(Expr::Element { mem: place, index: smallvec![lane], or: None }, s.span)?));
        }
        let mut copy = Copies::default().replace(by);
        let mut plain = s.clone();
        if let StmtKind::For { body, .. } = &mut plain.kind {
            for s in body {
                s.kind.replace_operands(|e| copy.expr(k, e))?;
            }
        }
        k.stmt_staged(plain.kind, plain.span, plain.stage)?;
        Ok(true)
    }

    /// Notes that the variable of a loop over chunks, if there is one, counts them.
    fn counts(&mut self, k: &KernelBuilder, c: ExprId, rounds: i64) {
        if let Expr::Local(l) = k.body().exprs[c] {
            self.facts.counts(l, rounds);
        }
    }

    fn temporary(&mut self, k: &mut KernelBuilder, like: Mem, n: i64, span: Span) -> Result<Mem> {
        let elem = elem_of(k.kernel(), like).unwrap_or(pantile_ir::DType::F32);
        let name = format!("{}_v", name_of(k.kernel(), like));
        let buffer = k.add_buffer(Buffer::new(name, Home::Thread, elem, smallvec![n as u32]), span)?;
        k.stmt(StmtKind::Buffer { buffer }, span)?;
        Ok(Mem::Buffer(buffer))
    }

    /// Notes that an access relies on the alignment of a memory.
    fn aligned(&mut self, k: &mut KernelBuilder, mem: Mem, bytes: i64) {
        let bytes = bytes as u32;
        match mem {
            Mem::Tensor(a) => {
                if let ArgKind::Tensor(t) = &mut k.kernel_mut().args[a].kind {
                    t.base_align = Some(t.base_align.unwrap_or(1).max(bytes));
                }
            }
            Mem::Buffer(b) => {
                let b = &mut k.kernel_mut().buffers[b];
                let own = (b.elem.bits() / 8).max(1);
                if bytes > own {
                    b.align = Some(b.align.unwrap_or(1).max(bytes));
                }
            }
            Mem::Slot { .. } => {}
        }
    }

    /// Runs over the pieces of a chunk, each of `width` lanes; gives the first lane of each, from 0.
    fn pieces(
        &mut self,
        k: &mut KernelBuilder,
        lanes: Lanes,
        width: i64,
        span: Span,
        body: impl FnOnce(&mut Self, &mut KernelBuilder, ExprId) -> Result<()>,
    ) -> Result<()> {
        let rounds = lanes.n / width;
        repeat(k, ("c", LoopKind::Unroll, rounds, span), |k, c| {
            let mark = self.facts.mark();
            self.counts(k, c, rounds);
            let width = index(k, width, span)?;
            let first = k.expr(Expr::Binary(BinOp::Mul, c, width), span)?;
            body(self, k, first)?;
            self.facts.release(mark);
            Ok(())
        })
    }

    /// Loads all lanes of a chunk into an array, whose index is over the lanes' variable too.
    fn load(
        &mut self,
        k: &mut KernelBuilder,
        l: &Load,
        lanes: Lanes,
        (start, name): (ExprId, &str),
        to: Side,
        span: Span,
    ) -> Result<()> {
        self.aligned(k, l.mem, l.align);
        self.aligned(k, to.0, l.align);
        let wide = Move { to, from: (l.mem, Some(&l.index)) };
        let var = (lanes.var, name);
        self.pieces(k, lanes, l.width, span, |me, k, piece| {
            let first = offset(k, Some(start), piece, span)?;
            let tests = match l.or {
                Some(_) => me.bounds(k, l, (lanes.var, l.width), first, span)?,
                None => Tests::default(),
            };
            let (Some(cond), Some(or)) = (tests.cond, l.or) else {
                return wide.write(k, var, (first, piece), l.width, span);
            };
            k.begin_block();
            wide.write(k, var, (first, piece), l.width, span)?;
            let then = k.end_block()?;
            k.begin_block();
            let value = if tests.exact { or } else { l.at };
            repeat(k, (name, LoopKind::Unroll, l.width, span), |k, v| {
                let lane = offset(k, Some(first), v, span)?;
                let mut copy = Copies::with(lanes.var, lane);
                let index = side(k, &mut copy, to.1, (piece, v), span)?;
                let value = copy.expr(k, value)?;
                k.stmt(StmtKind::Store { mem: to.0, index, value }, span)
            })?;
            let other = k.end_block()?;
            k.stmt(StmtKind::If { cond, then, other }, span)
        })
    }

    /// What must be tested before lanes `first..first + width` of a guarded read are read at once.
    fn bounds(
        &mut self,
        k: &mut KernelBuilder,
        l: &Load,
        (var, width): (LocalId, i64),
        first: ExprId,
        span: Span,
    ) -> Result<Tests> {
        let mut tests = Tests { cond: None, exact: true };
        let all = extents(k.kernel(), l.mem);
        let last = l.index.len().saturating_sub(1);
        for (axis, (&e, extent)) in l.index.iter().zip(all).enumerate() {
            let at = Copies::with(var, first).expr(k, e)?;
            let extent = extent.value(k, span)?;
            let zero = index(k, 0, span)?;
            let low = k.expr(Expr::Binary(BinOp::Ge, at, zero), span)?;
            let (end, op) = if axis == last {
                let width = index(k, width, span)?;
                (k.expr(Expr::Binary(BinOp::Add, at, width), span)?, BinOp::Le)
            } else {
                (at, BinOp::Lt)
            };
            let high = k.expr(Expr::Binary(op, end, extent), span)?;
            for test in [low, high] {
                if self.facts.decide(k.body(), test) == Some(true) {
                    continue;
                }
                tests.cond = Some(both(k, tests.cond, test, span)?);
                if axis == last {
                    tests.exact &= self.multiple(k, at, width) && self.multiple(k, extent, width);
                }
            }
        }
        Ok(tests)
    }

    fn multiple(&mut self, k: &KernelBuilder, e: ExprId, of: i64) -> bool {
        self.facts.forms.of(k.body(), e).is_some_and(|p| self.facts.factor(&p) % of == 0)
    }

    /// A condition on lanes as one for all of a chunk, and whether it is true for all or for none.
    fn guard(
        &mut self,
        k: &mut KernelBuilder,
        guard: ExprId,
        lanes: Lanes,
        start: ExprId,
    ) -> Result<Option<(ExprId, bool)>> {
        let span = k.body().exprs.span(guard);
        match k.body().exprs[guard] {
            Expr::Binary(BinOp::LogicalAnd | BinOp::And, a, b) => {
                let Some((a, x)) = self.guard(k, a, lanes, start)? else { return Ok(None) };
                let Some((b, y)) = self.guard(k, b, lanes, start)? else { return Ok(None) };
                Ok(Some((both(k, Some(a), b, span)?, x && y)))
            }
            Expr::Binary(op, a, b) if op.is_comparison() => {
                let body = k.body();
                let (Some(x), Some(y)) = (self.facts.forms.of(body, a), self.facts.forms.of(body, b)) else {
                    return Ok(None);
                };
                let Some(p) = comparison(op, &x, &y, true) else { return Ok(None) };
                let var = Atom::Local(lanes.var);
                if self.facts.forms.mentions(&p.without(var), &|a| a == var) {
                    return Ok(None);
                }
                let Some(factor) = p.linear_in(var) else { return Ok(None) };
                let at = if factor < 0 { lanes.n - 1 } else { 0 };
                let at = index(k, at, span)?;
                let lane = offset(k, Some(start), at, span)?;
                let cond = Copies::with(lanes.var, lane).expr(k, guard)?;
                let exact = factor == 0 || (factor == -1 && self.all_or_none(k, &p, lanes, start));
                Ok(Some((cond, exact)))
            }
            _ if !k.body().holds(guard, |x, _| *x == Expr::Local(lanes.var)) => Ok(Some((guard, true))),
            _ => Ok(None),
        }
    }

    /// `p` falls by 1 a lane; what is left beyond the first lane is a multiple of the lanes.
    fn all_or_none(&mut self, k: &KernelBuilder, p: &Poly, lanes: Lanes, start: ExprId) -> bool {
        let rest = p.without(Atom::Local(lanes.var));
        let room = self.facts.forms.of(k.body(), start).and_then(|s| rest.plus(&s, -1));
        let room = room.and_then(|r| r.plus(&Poly::constant(1), 1));
        room.is_some_and(|r| self.facts.factor(&r) % lanes.n == 0)
    }
}

#[derive(Clone, Copy, Default)]
struct Tests {
    /// `None` needs no test.
    cond: Option<ExprId>,
    /// Where the test fails all lanes are outside.
    exact: bool,
}

/// The test that dims are multiples. Where it fails, single accesses say for themselves what is inside.
fn asked(k: &mut KernelBuilder, dims: &BTreeMap<DimId, i64>, span: Span) -> Result<Tests> {
    Ok(Tests { cond: multiples(k, dims, span)?, exact: dims.is_empty() })
}

/// A memory with an index over the lanes' variable, or an array that holds just the lanes of a chunk.
type Side<'a> = (Mem, Option<&'a [ExprId]>);

/// Between an array and another memory.
struct Move<'a> {
    to: Side<'a>,
    from: Side<'a>,
}

/// The index of lane `piece + v` of a chunk.
fn side(
    k: &mut KernelBuilder,
    copy: &mut Copies,
    index: Option<&[ExprId]>,
    (piece, v): (ExprId, ExprId),
    span: Span,
) -> Result<Args> {
    match index {
        Some(index) => index.iter().map(|&e| copy.expr(k, e)).collect(),
        None => Ok(smallvec![offset(k, Some(piece), v, span)?]),
    }
}

impl Move<'_> {
    /// The one wide access.
    fn write(
        &self,
        k: &mut KernelBuilder,
        (var, name): (LocalId, &str),
        (first, piece): (ExprId, ExprId),
        width: i64,
        span: Span,
    ) -> Result<()> {
        repeat(k, (name, LoopKind::Vectorized, width, span), |k, v| {
            let lane = offset(k, Some(first), v, span)?;
            let mut copy = Copies::with(var, lane);
            let to = side(k, &mut copy, self.to.1, (piece, v), span)?;
            let from = side(k, &mut copy, self.from.1, (piece, v), span)?;
            let value = k.expr(Expr::Element { mem: self.from.0, index: from, or: None }, span)?;
            k.stmt(StmtKind::Store { mem: self.to.0, index: to, value }, span)
        })
    }
}

/// A guarded read at a lane, `v` being its number, where `left` lanes are inside.
fn within(
    k: &mut KernelBuilder,
    (var, lane): (LocalId, ExprId),
    (at, left): (ExprId, LocalId),
    v: ExprId,
    span: Span,
) -> Result<ExprId> {
    let Expr::Element { mem, index, or: Some(other) } = k.body().exprs[at].clone() else { return Ok(at) };
    let mut copy = Copies::with(var, lane);
    let index = index.iter().map(|&e| copy.expr(k, e)).collect::<Result<Args>>()?;
    let then = k.expr(Expr::Element { mem, index, or: None }, span)?;
    let left = k.get_at(left, span)?;
    let cond = k.expr(Expr::Binary(BinOp::Lt, v, left), span)?;
    k.expr(Expr::Select { cond, then, other }, span)
}

fn math(k: &mut KernelBuilder, f: MathFn, (a, b): (ExprId, ExprId), span: Span) -> Result<ExprId> {
    k.expr(Expr::Math { f, approx: false, args: smallvec![a, b] }, span)
}

fn offset(k: &mut KernelBuilder, start: Option<ExprId>, by: ExprId, span: Span) -> Result<ExprId> {
    match start {
        Some(start) => k.expr(Expr::Binary(BinOp::Add, start, by), span),
        None => Ok(by),
    }
}

/// The values of a body without control, ops and guarded places; `None` of another.
fn plain_values(k: &Kernel, body: &Block) -> Option<Vec<ExprId>> {
    let mut out = Vec::new();
    for s in body {
        match &s.kind {
            StmtKind::Let { value, .. }
            | StmtKind::Assign { value, .. }
            | StmtKind::Update { value, .. }
            | StmtKind::Store { value, .. } => out.push(*value),
            StmtKind::Declare { .. } => {}
            _ => return None,
        }
    }
    let scalar = |l: LocalId| k.body.locals[l].ty.is_scalar();
    body.iter().all(|s| s.kind.defines().into_iter().all(scalar)).then_some(out)
}

/// Whether a read gives before the loop what it gives inside.
fn unchanged(k: &Kernel, body: &Block, l: &Load) -> bool {
    let constant = match l.mem {
        Mem::Tensor(a) => matches!(&k.args[a].kind, ArgKind::Tensor(t) if t.mode == Mode::In),
        mem => !body.iter().any(|s| matches!(&s.kind, StmtKind::Store { mem: m, .. } if *m == mem)),
    };
    let made: Vec<LocalId> = body.iter().flat_map(|s| s.kind.defines()).collect();
    let moved = |e: &ExprId| k.body.holds(*e, |x, _| matches!(x, Expr::Local(m) if made.contains(m)));
    constant && !l.index.iter().any(moved)
}
