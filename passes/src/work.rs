//! What a kernel asks for, whatever runs it: operations on floats and bytes of its tensors, as formulas over its dims.
//! Counted in the tile text, so that two mappings of one kernel are measured by the same yardstick.
//!
//! An operation is one `+ - * /`, one `min` or `max`, one function of `math`, or half an `fma`, on one element of a
//! float type; conversions, comparisons and moves are free. A product of M×K and K×N is 2·M·N·K. Tiles count whole, also
//! where their box ends earlier, and both values of a choice count. Bytes are those of each tensor once, twice where it is read and written (`inout`): the
//! least that must move.

use crate::affine::{Atom, Forms, Opaque, Poly};
use crate::layout::classes::region_shape;
use pantile_ir::program::*;
use std::collections::HashSet;

/// A count as a formula.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Amount {
    /// `None` where the count hangs on data, or has no short formula.
    pub formula: Option<String>,
    /// It may be less: something runs under a condition, or a trip count differs from block to block.
    pub at_most: bool,
}

/// The work of one kernel over its whole grid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    pub flops: Amount,
    pub bytes: Amount,
}

/// The work of each kernel of a program of stage tile.
pub fn work(program: &Program) -> Vec<Work> {
    program.kernels.iter().map(|(_, k)| of(program, k)).collect()
}

fn of(program: &Program, k: &Kernel) -> Work {
    let mut count = Count { program, k, forms: Forms::default(), ends: Vec::new(), at_most: false };
    let flops = count.grid();
    let at_most = count.at_most;
    let bits = count.tensors();
    let flops = flops.and_then(|p| count.text(&p, 1));
    let bytes = bits.and_then(|p| count.text(&p, 8));
    Work { flops: Amount { formula: flops, at_most }, bytes: Amount { formula: bytes, at_most: false } }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.formula, self.at_most) {
            (None, _) => write!(f, "unknown"),
            (Some(text), false) => write!(f, "{text}"),
            (Some(text), true) => write!(f, "at most {text}"),
        }
    }
}

impl std::fmt::Display for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "flops: {}\nbytes: {}", self.flops, self.bytes)
    }
}

struct Count<'a> {
    program: &'a Program,
    k: &'a Kernel,
    forms: Forms,
    /// variables that are in sight, with the least and the most that each may be
    ends: Vec<(LocalId, Option<(Poly, Poly)>)>,
    at_most: bool,
}

impl Count<'_> {
    /// `None` is unknown, all through.
    fn grid(&mut self) -> Option<Poly> {
        let (mut blocks, grid) = (Poly::constant(1), &self.k.grid);
        for (&extent, &local) in grid.extents.iter().zip(&grid.locals) {
            let n = self.forms.of(&self.k.body, extent)?;
            self.below(local, &n);
            blocks = blocks.times(&n)?;
        }
        let threads = self.k.threads.as_ref().map_or(1, Threads::count);
        for &(l, n) in self.k.threads.iter().flat_map(|t| &t.axes) {
            self.below(l, &Poly::constant(n.into()));
        }
        self.block(&self.k.stmts)?.scale(threads.into())?.times(&blocks)
    }

    fn tensors(&mut self) -> Option<Poly> {
        let mut bits = Poly::default();
        for (_, arg) in self.k.args.iter() {
            let ArgKind::Tensor(t) = &arg.kind else { continue };
            let mut size = Poly::constant(t.elem.bits().into());
            for &d in &t.dims {
                size = size.times(&self.forms.of(&self.k.body, d)?)?;
            }
            bits = bits.plus(&size, if t.mode == Mode::InOut { 2 } else { 1 })?;
        }
        Some(bits)
    }

    fn block(&mut self, block: &Block) -> Option<Poly> {
        let depth = self.ends.len();
        let mut sum = Poly::default();
        for s in block {
            sum = sum.plus(&self.stmt(&s.kind)?, 1)?;
        }
        self.ends.truncate(depth);
        Some(sum)
    }

    fn stmt(&mut self, kind: &StmtKind) -> Option<Poly> {
        if let StmtKind::Let { local, value } = kind {
            self.forms.name(&self.k.body, *local, *value);
        }
        let mut seen = HashSet::new();
        let mut own = 0;
        kind.operands(|e| own += cost(&self.k.body, self.program, e, &mut seen));
        let own = Poly::constant(i64::try_from(own).ok()?);
        let inner = match kind {
            StmtKind::Update { local, op, .. } if arithmetic(*op) => {
                self.elements(&self.k.body.locals[*local].ty)
            }
            StmtKind::Op { op, .. } => self.op(op)?,
            StmtKind::If { then, other, .. } => {
                self.at_most = true;
                self.block(then)?.plus(&self.block(other)?, 1)?
            }
            StmtKind::For { var, segments, body, .. } => {
                let trips = self.trips(*var, segments)?;
                self.block(body)?.times(&trips)?
            }
            StmtKind::Parallel { vars, extents, body } => {
                let mut trips = Poly::constant(1);
                for (&v, &e) in vars.iter().zip(extents) {
                    let n = self.forms.of(&self.k.body, e).and_then(|n| self.bound(&n, true))?;
                    self.below(v, &n);
                    trips = trips.times(&n)?;
                }
                self.block(body)?.times(&trips)?
            }
            // how often it runs, only data know
            StmtKind::While { body, .. } if self.block(body)? == Poly::default() => Poly::default(),
            StmtKind::While { .. } => return None,
            StmtKind::Break | StmtKind::Continue => {
                self.at_most = true;
                Poly::default()
            }
            StmtKind::Roles(roles) => {
                let mut sum = Poly::default();
                for r in roles {
                    sum = sum.plus(&self.block(&r.body)?, 1)?;
                }
                sum
            }
            _ => Poly::default(),
        };
        own.plus(&inner, 1)
    }

    /// A variable counts from 0 to below `n`.
    fn below(&mut self, var: LocalId, n: &Poly) {
        let last = n.plus(&Poly::constant(1), -1);
        self.ends.push((var, last.map(|last| (Poly::default(), last))));
    }

    /// How often a loop runs, and what its variable may be.
    fn trips(&mut self, var: LocalId, segments: &[Segment]) -> Option<Poly> {
        let body = &self.k.body;
        let mut trips = Poly::default();
        let mut ends = None;
        for s in segments {
            let (lo, hi) = (self.forms.of(body, s.lo)?, self.forms.of(body, s.hi)?);
            let step = self.forms.of(body, s.step)?.as_constant().filter(|&s| s > 0)?;
            let (least, most) = (self.bound(&lo, false)?, self.bound(&hi, true)?);
            let span = self.forms.at_least_none(most.plus(&least, -1)?);
            let n = if step == 1 { span } else { self.forms.ceil_quotient(span, step) };
            trips = trips.plus(&n, 1)?;
            let last = most.plus(&Poly::constant(1), -1)?;
            ends = Some((ends.map_or(least, |(first, _)| first), last));
        }
        self.ends.push((var, ends));
        Some(trips)
    }

    fn op(&mut self, op: &Op) -> Option<Poly> {
        let body = &self.k.body;
        let each = |comb: Combiner, inputs: &[ExprId]| {
            let first = body.type_of(*inputs.first()?);
            let one = combiner(self.program, comb, first);
            i64::try_from(one * first.count() as u64).ok()
        };
        let n = match op {
            Op::Gemm { a, into, .. } => return self.product(body.type_of(*a).shape().last(), *into),
            Op::Reduce { comb, inputs, .. }
            | Op::Scan { comb, inputs, .. }
            | Op::AllReduce { comb, inputs, .. } => each(*comb, inputs)?,
            Op::Fold { reducer, values, .. } => each(self.k.reducers[*reducer].comb, values)?,
            Op::Atomic { op: AtomicOp::Add | AtomicOp::Min | AtomicOp::Max, value, .. } => {
                return Some(self.elements(body.type_of(*value)));
            }
            Op::Issue { a, b, into, .. } => {
                let depth = |m: &MatOperand, first: bool| match m {
                    MatOperand::Value(e) => ends_of(body.type_of(*e).shape(), first),
                    MatOperand::Memory { region, transposed } => {
                        ends_of(&region_shape(region), first != *transposed)
                    }
                };
                return self.product(depth(a, false).or_else(|| depth(b, true)).as_ref(), *into);
            }
            _ => 0,
        };
        Some(Poly::constant(n))
    }

    /// 2·M·N·K, of floats.
    fn product(&self, depth: Option<&u32>, into: LocalId) -> Option<Poly> {
        self.elements(&self.k.body.locals[into].ty).scale(2)?.scale((*depth?).into())
    }

    fn elements(&self, ty: &Type) -> Poly {
        Poly::constant(if float(ty) { ty.count() as i64 } else { 0 })
    }

    /// The most (`up`) or least that a sum may be, over what its variables may be; the same where it has none.
    fn bound(&mut self, p: &Poly, up: bool) -> Option<Poly> {
        let mut p = p.clone();
        // inner variables end where outer ones say
        for (var, ends) in self.ends.clone().into_iter().rev() {
            let f = p.linear_in(Atom::Local(var))?;
            if f == 0 {
                continue;
            }
            self.at_most = true;
            let (least, most) = ends?;
            p = p.without(Atom::Local(var)).plus(if (f > 0) == up { &most } else { &least }, f)?;
        }
        self.capped(&p, up)
    }

    /// `min(x, y)` is at most the one of both that has no variable.
    fn capped(&mut self, p: &Poly, up: bool) -> Option<Poly> {
        let mut p = p.clone();
        for atom in p.clone().atoms().collect::<Vec<_>>() {
            let closed = match atom {
                Atom::Dim(_) | Atom::Arg(_) => continue,
                Atom::Local(_) => return None,
                Atom::Opaque(n) => !self.open(&Poly::atom(Atom::Opaque(n))),
            };
            if closed {
                continue;
            }
            let Atom::Opaque(n) = atom else { return None };
            let f = p.linear_in(atom)?;
            let up = (f > 0) == up;
            let (x, y) = match (self.forms.opaque(n).clone(), up) {
                (Opaque::Min(x, y), true) | (Opaque::Max(x, y), false) => (x, y),
                (Opaque::CeilDiv(x, y), up) if y.as_constant().is_some_and(|d| d > 0) => {
                    let x = self.bound(&x, up)?;
                    let end = self.forms.ceil_quotient(x, y.as_constant()?);
                    p = p.without(atom).plus(&end, f)?;
                    continue;
                }
                _ => return None,
            };
            self.at_most = true;
            let end = self.bound(&x, up).or_else(|| self.bound(&y, up))?;
            p = p.without(atom).plus(&end, f)?;
        }
        Some(p)
    }

    fn open(&self, p: &Poly) -> bool {
        self.forms.mentions(p, &|a| matches!(a, Atom::Local(_)))
    }

    /// `2*N*K + 4*N`, of a count in units of `1/per`; `None` where it names what nobody outside knows.
    fn text(&self, p: &Poly, per: i64) -> Option<String> {
        if self.open(p) {
            return None;
        }
        let whole = p.constant % per == 0 && p.terms.values().all(|f| f % per == 0);
        let by = if whole { per } else { 1 };
        let text = self.sum(p, by)?;
        Some(if whole { text } else { format!("({text})/{per}") })
    }

    fn sum(&self, p: &Poly, by: i64) -> Option<String> {
        let mut out = String::new();
        let mut add = |f: i64, names: &[String]| {
            let sign = if f < 0 { "-" } else { "+" };
            out += &match out.is_empty() {
                true if f < 0 => "-".to_string(),
                true => String::new(),
                false => format!(" {sign} "),
            };
            let f = f.unsigned_abs();
            let number = if f == 1 && !names.is_empty() { None } else { Some(f.to_string()) };
            out += &number.into_iter().chain(names.iter().cloned()).collect::<Vec<_>>().join("*");
        };
        // the largest products first
        let mut terms: Vec<_> = p.terms.iter().collect();
        terms.sort_by_key(|(t, _)| std::cmp::Reverse(t.len()));
        for (term, f) in terms {
            let names: Option<Vec<String>> = term.iter().map(|&a| self.atom(a)).collect();
            add(f / by, &names?);
        }
        if p.constant != 0 || p.terms.is_empty() {
            add(p.constant / by, &[]);
        }
        Some(out)
    }

    fn atom(&self, a: Atom) -> Option<String> {
        let pair = |x: &Poly, y: &Poly| Some((self.sum(x, 1)?, self.sum(y, 1)?));
        Some(match a {
            Atom::Local(_) => return None,
            Atom::Dim(d) => self.k.dims[d].name.clone(),
            Atom::Arg(a) => self.k.args[a].name.clone(),
            Atom::Opaque(n) => match self.forms.opaque(n) {
                Opaque::CeilDiv(x, y) => pair(x, y).map(|(x, y)| format!("ceildiv({x}, {y})"))?,
                Opaque::Min(x, y) => pair(x, y).map(|(x, y)| format!("min({x}, {y})"))?,
                Opaque::Max(x, y) => pair(x, y).map(|(x, y)| format!("max({x}, {y})"))?,
                Opaque::Div(x, y) => pair(x, y).map(|(x, y)| format!("(({x})/({y}))"))?,
                Opaque::Rem(x, y) => pair(x, y).map(|(x, y)| format!("(({x})%({y}))"))?,
                Opaque::Value(_) => return None,
            },
        })
    }
}

/// The first or last extent.
fn ends_of(shape: &[u32], first: bool) -> Option<u32> {
    if first { shape.first() } else { shape.last() }.copied()
}

fn float(ty: &Type) -> bool {
    ty.elem().is_some_and(Elem::is_float)
}

fn arithmetic(op: Update) -> bool {
    matches!(op, Update::Add | Update::Sub | Update::Mul | Update::Div)
}

/// Operations of an expression, of each part once.
fn cost(body: &Body, program: &Program, e: ExprId, seen: &mut HashSet<ExprId>) -> u64 {
    if !seen.insert(e) {
        return 0;
    }
    let ty = body.type_of(e);
    let counts = u64::from(float(ty));
    let each = match &body.exprs[e] {
        Expr::Unary(UnOp::Neg, _) => counts,
        Expr::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Rem, ..) => counts,
        Expr::Math { f: MathFn::IsNan | MathFn::IsInf | MathFn::Abs, .. } => 0,
        Expr::Math { f: MathFn::Fma | MathFn::Clamp, .. } => 2 * counts,
        Expr::Math { .. } => counts,
        Expr::Intrinsic { id, .. } => pure(&program.intrinsics[*id].means, program),
        _ => 0,
    };
    let mut sum = each * ty.count() as u64;
    body.exprs[e].operands(|o| sum += cost(body, program, o, seen));
    sum
}

fn pure(f: &PureFn, program: &Program) -> u64 {
    let mut seen = HashSet::new();
    let roots = f.lets.iter().map(|&(_, e)| e).chain(f.results.iter().copied());
    roots.map(|e| cost(&f.body, program, e, &mut seen)).sum()
}

/// Operations of one joining of two values.
fn combiner(program: &Program, comb: Combiner, ty: &Type) -> u64 {
    match comb {
        Combiner::User(id) => pure(&program.combines[id].func, program),
        Combiner::And | Combiner::Or | Combiner::Xor => 0,
        Combiner::Add | Combiner::Mul | Combiner::Min | Combiner::Max => u64::from(float(ty)),
    }
}
