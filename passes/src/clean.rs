//! What `simplify`, `guard` and `tidy` share: expressions and statements made simpler by what is known at their place.
//! Exact on integers and conditions; no float operation is changed.

use crate::affine::{Atom, Forms, Opaque, Poly};
use crate::ranges::{Facts, Inside};
use pantile_ir::builder::{Exprs, KernelBuilder, Result, Rewrite};
use pantile_ir::program::*;
use pantile_ir::span::Span;
use std::collections::{HashMap, HashSet};

/// One walk over a kernel.
pub struct Clean {
    pub facts: Facts,
    /// Also drop `or` where the index is inside, and loops and conditions that do nothing.
    pub thorough: bool,
    /// Statements that write each tensor: the last of one must stay, even where control never comes, since a program of
    /// tiles must show how each output is written.
    pub writes: HashMap<ArgId, usize>,
    memo: HashMap<ExprId, ExprId>,
}

impl Clean {
    pub fn of(k: &Kernel, thorough: bool) -> Clean {
        Clean { facts: Facts::of(k), thorough, writes: HashMap::new(), memo: HashMap::new() }
    }

    fn expr(&mut self, k: &mut KernelBuilder, e: ExprId) -> Result<ExprId> {
        if let Some(&done) = self.memo.get(&e) {
            return Ok(done);
        }
        let old = k.body().exprs[e].clone();
        let span = k.body().exprs.span(e);
        let new = old.map_operands(|o| self.expr(k, o))?;
        let done = if new == old { e } else { k.expr(new, span)? };
        let done = self.known(k, done, span)?;
        self.memo.insert(e, done);
        Ok(done)
    }

    fn known(&mut self, k: &mut KernelBuilder, e: ExprId, span: Span) -> Result<ExprId> {
        let ty = k.body().types[e.index()].clone();
        match k.body().exprs[e].clone() {
            Expr::Binary(op, ..) if op.is_comparison() && ty == Type::BOOL => {
                match self.facts.decide(k.body(), e) {
                    Some(b) => k.constant_at(Elem::BOOL, u64::from(b), span),
                    None => Ok(e),
                }
            }
            Expr::Select { cond, then, other } => match k.body().exprs[cond] {
                Expr::Const { elem: Elem::BOOL, bits } => {
                    let (chosen, gone) = if bits != 0 { (then, other) } else { (other, then) };
                    // the side that is not taken still says which elements are valid, and how many there are
                    let body = k.body();
                    let full = body.type_of(gone).is_scalar()
                        || matches!(body.exprs[gone], Expr::Splat { .. } | Expr::Iota { .. });
                    Ok(if full && *body.type_of(chosen) == ty { chosen } else { e })
                }
                _ => Ok(e),
            },
            Expr::Binary(op @ (BinOp::Div | BinOp::Rem), a, b) if ty == Type::INDEX => {
                let body = k.body();
                let (Some(x), Some(y)) = (self.facts.forms.of(body, a), self.facts.forms.of(body, b)) else {
                    return Ok(e);
                };
                let room = y.plus(&x, -1).and_then(|p| p.plus(&Poly::constant(1), -1));
                if self.facts.at_least_zero(&x) && room.is_some_and(|p| self.facts.at_least_zero(&p)) {
                    return if op == BinOp::Rem { Ok(a) } else { k.constant_at(Elem::Index, 0, span) };
                }
                self.exact(k, e, span)
            }
            Expr::Math { f: f @ (MathFn::Min | MathFn::Max), args, .. } if ty == Type::INDEX => {
                let [a, b] = args[..] else { return Ok(e) };
                let body = k.body();
                let (Some(x), Some(y)) = (self.facts.forms.of(body, a), self.facts.forms.of(body, b)) else {
                    return Ok(e);
                };
                let (small, large) = if f == MathFn::Min { (a, b) } else { (b, a) };
                if y.plus(&x, -1).is_some_and(|p| self.facts.at_least_zero(&p)) {
                    return Ok(small);
                }
                if x.plus(&y, -1).is_some_and(|p| self.facts.at_least_zero(&p)) {
                    return Ok(large);
                }
                Ok(e)
            }
            Expr::Math { f: MathFn::CeilDiv, .. } if ty == Type::INDEX => self.exact(k, e, span),
            Expr::Element { mem, index, or: Some(_) } if self.thorough && self.inside(k, mem, &index)? => {
                k.expr(Expr::Element { mem, index, or: None }, span)
            }
            _ => Ok(e),
        }
    }

    /// A quotient without rest, or a constant.
    fn exact(&mut self, k: &mut KernelBuilder, e: ExprId, span: Span) -> Result<ExprId> {
        let Some(p) = self.facts.forms.of(k.body(), e) else { return Ok(e) };
        let simple = p.terms.len() <= 2 && p.atoms().all(|a| matches!(a, Atom::Local(_) | Atom::Dim(_)));
        if simple { emit(k, &self.facts.forms, &p, span) } else { Ok(e) }
    }

    fn inside(&mut self, k: &mut KernelBuilder, mem: Mem, index: &[ExprId]) -> Result<bool> {
        for test in bounds(k, mem, index)? {
            if self.facts.decide(k.body(), test) != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a block that control never comes to may go; it counts as gone then.
    fn gives_up(&mut self, gone: &Block) -> bool {
        let lost = writes(gone);
        if lost.iter().any(|(a, n)| self.writes.get(a) == Some(n)) {
            return false;
        }
        for (a, n) in lost {
            self.writes.entry(a).and_modify(|all| *all -= n);
        }
        true
    }

    /// A block's statements in the place of a statement.
    fn splice(&mut self, k: &mut KernelBuilder, block: Block) -> Result<()> {
        self.stmts(k, block)
    }

    /// The loop's body never runs. What is known inside of it contradicts itself, so that anything would follow.
    fn no_round(&mut self, k: &KernelBuilder, segments: &[Segment]) -> bool {
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return false };
        let up = |s: &Segment| k.body().index_constant(s.step).is_some_and(|n| n > 0);
        let forms = &mut self.facts.forms;
        let (lo, hi) = (forms.of(k.body(), first.lo), forms.of(k.body(), last.hi));
        let over = lo.zip(hi).and_then(|(lo, hi)| lo.plus(&hi, -1));
        segments.iter().all(up) && over.is_some_and(|p| self.facts.at_least_zero(&p))
    }

    fn single_round(&self, k: &Kernel, kind: &StmtKind) -> Option<ExprId> {
        let StmtKind::For { kind, named, segments, carry, body, .. } = kind else { return None };
        let [s] = &segments[..] else { return None };
        let known = |e| k.body.index_constant(e);
        let one = known(s.hi)?.checked_sub(known(s.lo)?)? == 1 && known(s.step)? == 1;
        let plain = named.is_empty() && carry.is_empty() && *kind != LoopKind::Vectorized;
        (one && plain && !jumps(body)).then_some(s.lo)
    }
}

/// Whether a block leaves or continues the loop around it.
fn jumps(block: &Block) -> bool {
    block.iter().any(|s| match &s.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::For { .. } | StmtKind::While { .. } => false,
        kind => kind.blocks().into_iter().any(jumps),
    })
}

/// The tests that an index is inside of a memory.
pub fn bounds(k: &mut KernelBuilder, mem: Mem, index: &[ExprId]) -> Result<Vec<ExprId>> {
    let mut out = Vec::new();
    for (&at, extent) in index.iter().zip(crate::vectorize::extents(k.kernel(), mem)) {
        let span = k.body().exprs.span(at);
        let extent = extent.value(k, span)?;
        let zero = k.constant_at(Elem::Index, 0, span)?;
        out.push(k.expr(Expr::Binary(BinOp::Ge, at, zero), span)?);
        out.push(k.expr(Expr::Binary(BinOp::Lt, at, extent), span)?);
    }
    Ok(out)
}

/// A form as an expression.
pub fn emit(k: &mut KernelBuilder, forms: &Forms, p: &Poly, span: Span) -> Result<ExprId> {
    let mut sum = None;
    let mut terms: Vec<_> = p.terms.iter().collect();
    terms.sort_by_key(|(_, f)| (**f < 0, std::cmp::Reverse(f.unsigned_abs())));
    for (term, &factor) in terms {
        let mut product = None;
        for &a in term {
            let atom = emit_atom(k, forms, a, span)?;
            product = Some(match product {
                Some(x) => k.expr(Expr::Binary(BinOp::Mul, x, atom), span)?,
                None => atom,
            });
        }
        let Some(mut value) = product else { continue };
        let minus = factor < 0 && sum.is_some();
        let times = if minus { factor.wrapping_neg() } else { factor };
        let times = k.constant_at(Elem::Index, times as u64, span)?;
        value = k.expr(Expr::Binary(BinOp::Mul, value, times), span)?;
        let op = if minus { BinOp::Sub } else { BinOp::Add };
        sum = Some(match sum {
            Some(x) => k.expr(Expr::Binary(op, x, value), span)?,
            None => value,
        });
    }
    let constant = k.constant_at(Elem::Index, p.constant.unsigned_abs(), span)?;
    match sum {
        Some(x) => {
            let op = if p.constant < 0 { BinOp::Sub } else { BinOp::Add };
            k.expr(Expr::Binary(op, x, constant), span)
        }
        None => k.constant_at(Elem::Index, p.constant as u64, span),
    }
}

fn emit_atom(k: &mut KernelBuilder, forms: &Forms, a: Atom, span: Span) -> Result<ExprId> {
    let math = |k: &mut KernelBuilder, f, a, b| {
        k.expr(Expr::Math { f, approx: false, args: [a, b].into_iter().collect() }, span)
    };
    match a {
        Atom::Local(l) => k.get_at(l, span),
        Atom::Dim(d) => k.expr(Expr::Dim(d), span),
        Atom::Arg(a) => {
            let value = k.expr(Expr::Arg(a), span)?;
            k.expr(Expr::Cast { to: Elem::Index, sat: false, value }, span)
        }
        Atom::Opaque(n) => {
            let o = forms.opaque(n);
            let (x, y) = match o {
                Opaque::Value(e) => return Ok(*e),
                Opaque::Div(x, y)
                | Opaque::Rem(x, y)
                | Opaque::CeilDiv(x, y)
                | Opaque::Min(x, y)
                | Opaque::Max(x, y) => (emit(k, forms, x, span)?, emit(k, forms, y, span)?),
            };
            match o {
                Opaque::Div(..) => k.expr(Expr::Binary(BinOp::Div, x, y), span),
                Opaque::Rem(..) => k.expr(Expr::Binary(BinOp::Rem, x, y), span),
                Opaque::CeilDiv(..) => math(k, MathFn::CeilDiv, x, y),
                Opaque::Min(..) => math(k, MathFn::Min, x, y),
                _ => math(k, MathFn::Max, x, y),
            }
        }
    }
}

impl Inside for Clean {
    fn facts(&mut self) -> &mut Facts {
        &mut self.facts
    }
}

impl Rewrite for Clean {
    fn stmt(&mut self, k: &mut KernelBuilder, mut s: Stmt) -> Result<()> {
        self.memo.clear();
        let written = if let StmtKind::If { cond, .. } = s.kind { Some(cond) } else { None };
        s.kind.replace_operands(|e| self.expr(k, e))?;
        if let StmtKind::Let { local, value } = s.kind {
            self.facts.name(k.body(), local, value);
        }
        if let StmtKind::If { cond, then, other } = &mut s.kind
            && let Expr::Const { bits, .. } = k.body().exprs[*cond]
        {
            if self.gives_up(if bits != 0 { other } else { then }) {
                let chosen = std::mem::take(if bits != 0 { then } else { other });
                return self.splice(k, chosen);
            }
            // the condition as it was written, so that both sides count as possible
            let never = if bits != 0 { other } else { then };
            let kept = std::mem::take(never);
            *cond = written.unwrap_or(*cond);
            self.rewrite_inside(k, &mut s)?;
            if let StmtKind::If { then, other, .. } = &mut s.kind {
                *(if bits != 0 { other } else { then }) = kept;
            }
            return k.stmt_staged(s.kind, s.span, s.stage);
        }
        // it stays, since the steps of queues in it are counted
        if let StmtKind::For { segments, .. } = &s.kind
            && self.no_round(k, segments)
        {
            return k.stmt_staged(s.kind, s.span, s.stage);
        }
        if self.thorough
            && let Some(lo) = self.single_round(k.kernel(), &s.kind)
            && let StmtKind::For { var, body, .. } = &s.kind
        {
            let inside = crate::copies::Copies::with(*var, lo).block(k, body);
            return self.splice(k, inside?);
        }
        self.rewrite_inside(k, &mut s)?;
        let idle = match &s.kind {
            StmtKind::If { then, other, .. } => then.is_empty() && other.is_empty(),
            StmtKind::For { body, carry, .. } => body.is_empty() && carry.is_empty(),
            _ => false,
        };
        if self.thorough && idle {
            return Ok(());
        }
        k.stmt_staged(s.kind, s.span, s.stage)
    }
}

/// How many statements write each tensor.
pub fn writes(block: &Block) -> HashMap<ArgId, usize> {
    let mut found = HashMap::new();
    walk(block, &mut |s| {
        let mem = match &s.kind {
            StmtKind::Store { mem, .. } => *mem,
            StmtKind::Op { op: Op::Write { to, .. }, .. } => to.mem,
            StmtKind::Op { op: Op::Atomic { at, .. }, .. } => at.mem(),
            _ => return,
        };
        if let Mem::Tensor(a) = mem {
            *found.entry(a).or_default() += 1;
        }
    });
    found
}

/// Takes away names that nobody reads and thread arrays that nobody reads, with what is stored there.
pub fn without_dead(k: &KernelBuilder, mut block: Block) -> Block {
    loop {
        let (mut locals, mut buffers) = (HashSet::new(), HashSet::new());
        let mut roots = Vec::new();
        walk(&block, &mut |s| {
            s.kind.operands(|e| roots.push(e));
            used_by_name(&s.kind, &mut locals, &mut buffers);
        });
        let mut seen = HashSet::new();
        while let Some(e) = roots.pop() {
            if seen.insert(e) {
                match &k.body().exprs[e] {
                    Expr::Local(l) => drop(locals.insert(*l)),
                    Expr::Element { mem: Mem::Buffer(b), .. } => drop(buffers.insert(*b)),
                    Expr::Element { mem: Mem::Slot { token, .. }, .. } => drop(locals.insert(*token)),
                    _ => {}
                }
                k.body().exprs[e].operands(|o| roots.push(o));
            }
        }
        let private = |b: BufferId| k.kernel().buffers[b].home == Home::Thread && !buffers.contains(&b);
        let dead = |s: &Stmt| match &s.kind {
            StmtKind::Let { local, .. } => {
                k.body().locals[*local].kind == LocalKind::Let && !locals.contains(local)
            }
            StmtKind::Buffer { buffer } => private(*buffer),
            StmtKind::Store { mem: Mem::Buffer(b), .. } => private(*b),
            _ => false,
        };
        if !remove(&mut block, &dead) {
            return block;
        }
    }
}

fn remove(block: &mut Block, dead: &impl Fn(&Stmt) -> bool) -> bool {
    let before = block.len();
    block.retain(|s| !dead(s));
    let mut any = block.len() != before;
    for s in block {
        for inner in s.kind.blocks_mut() {
            any |= remove(inner, dead);
        }
    }
    any
}

/// What a statement uses without an expression.
fn used_by_name(kind: &StmtKind, locals: &mut HashSet<LocalId>, buffers: &mut HashSet<BufferId>) {
    let mut mem = |m: Mem| match m {
        Mem::Buffer(b) => drop(buffers.insert(b)),
        Mem::Slot { token, .. } => drop(locals.insert(token)),
        Mem::Tensor(_) => {}
    };
    match kind {
        StmtKind::Op { op, .. } => match op {
            Op::Read { from: r, .. } | Op::Write { to: r, .. } => mem(r.mem),
            Op::CopyAsync { from, to, .. } => {
                mem(from.mem);
                mem(to.mem);
            }
            Op::Atomic { at, .. } => mem(at.mem()),
            Op::Issue { a, b, .. } => {
                for o in [a, b] {
                    if let MatOperand::Memory { region, .. } = o {
                        mem(region.mem);
                    }
                }
            }
            _ => {}
        },
        StmtKind::Store { mem: m @ Mem::Slot { .. }, .. } => mem(*m),
        _ => {}
    }
    match kind {
        StmtKind::Assign { local, .. } | StmtKind::Update { local, .. } => drop(locals.insert(*local)),
        StmtKind::Op { op, .. } => match op {
            Op::Gemm { into: l, .. }
            | Op::Issue { into: l, .. }
            | Op::Commit { token: l }
            | Op::Release { token: l } => drop(locals.insert(*l)),
            Op::AllReduce { over: Over::Axes(axes), .. } => locals.extend(axes.iter().copied()),
            _ => {}
        },
        StmtKind::For { carry, .. } => locals.extend(carry.iter().filter_map(|c| c.init)),
        StmtKind::Next { carry, value } => {
            locals.insert(*carry);
            locals.extend(*value);
        }
        _ => {}
    }
}
