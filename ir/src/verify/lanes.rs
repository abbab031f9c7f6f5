//! Lanes of `vectorized` and steps of `parallel`: each may run without the others.

use super::affine::{Canon, Lets};
use super::{Verifier, each_below, operands_of};
use crate::codes;
use crate::program::*;
use crate::span::Span;
use std::collections::{HashMap, HashSet};

pub fn kernel(v: &mut Verifier) {
    let k = v.kernel;
    let lets = Lets::of(k);
    let defs = Definitions::of(k);
    let mut found = Vec::new();
    walk(&k.stmts, &mut |s| match &s.kind {
        StmtKind::For { var, kind: LoopKind::Vectorized, body, segments, .. } => {
            let two = segments.iter().any(|s| !single(&k.body, s));
            if two {
                found.push((s, vec![*var], body, true));
            }
        }
        StmtKind::Parallel { vars, body, extents } => {
            let many = vars
                .iter()
                .zip(extents)
                .filter(|(_, e)| !matches!(k.body.exprs[**e], Expr::Const { bits: 0 | 1, .. }));
            found.push((s, many.map(|(&v, _)| v).collect(), body, false));
        }
        _ => {}
    });
    for (s, vars, body, lanes) in found {
        let mut check = Check { v, lets: &lets, defs: &defs, span: s.span, vars, lanes };
        check.body(body);
    }
}

/// A segment of at most one step.
fn single(body: &Body, s: &Segment) -> bool {
    match (&body.exprs[s.lo], &body.exprs[s.hi]) {
        (Expr::Const { bits: lo, .. }, Expr::Const { bits: hi, .. }) => {
            (*hi as i64).saturating_sub(*lo as i64) <= 1
        }
        _ => false,
    }
}

/// Which expressions give each local its values.
pub struct Definitions {
    values: Vec<Vec<ExprId>>,
}

impl Definitions {
    pub fn of(k: &Kernel) -> Definitions {
        let mut values = vec![Vec::new(); k.body.locals.len()];
        walk(&k.stmts, &mut |s| {
            let operands = || operands_of(&s.kind);
            for l in s.kind.defines() {
                values[l.index()].extend(operands());
            }
        });
        Definitions { values }
    }

    /// All locals that a value depends on through data, itself included.
    pub fn sources(&self, body: &Body, root: ExprId) -> HashSet<LocalId> {
        let mut seen: HashSet<LocalId> = HashSet::new();
        let mut open = vec![root];
        let mut visited: HashSet<ExprId> = HashSet::new();
        while let Some(e) = open.pop() {
            if !visited.insert(e) {
                continue;
            }
            if let Expr::Local(l) = body.exprs[e]
                && seen.insert(l)
            {
                open.extend(&self.values[l.index()]);
            }
            body.exprs[e].operands(|o| open.push(o));
        }
        seen
    }
}

struct Check<'v, 'a, 'o, 'c> {
    v: &'v mut Verifier<'a, 'o>,
    lets: &'c Lets,
    defs: &'c Definitions,
    span: Span,
    /// Indices that count more than one step.
    vars: Vec<LocalId>,
    /// `vectorized`; otherwise `parallel`
    lanes: bool,
}

impl<'a> Check<'_, 'a, '_, '_> {
    fn body(&mut self, body: &'a Block) {
        let mut inner = HashSet::new();
        walk(body, &mut |s| inner.extend(s.kind.defines().into_iter().filter(|_| declares(&s.kind))));
        let mut stores: Vec<(Mem, &'a [ExprId], Span)> = Vec::new();
        let mut list = Vec::new();
        walk(body, &mut |s| list.push(s));
        for s in &list {
            match &s.kind {
                StmtKind::Assign { local, .. } | StmtKind::Update { local, .. } if !inner.contains(local) => {
                    self.outer_assignment(*local, s.span);
                }
                StmtKind::Op { op: Op::Gemm { into, .. }, .. } if !inner.contains(into) => {
                    self.outer_assignment(*into, s.span);
                }
                StmtKind::Store { mem, index, value } => {
                    self.store(*mem, index, *value, s.span);
                    stores.push((*mem, index, s.span));
                }
                _ => {}
            }
        }
        if self.lanes {
            for s in list {
                self.shifted_reads(s, &stores);
            }
        }
    }

    fn outer_assignment(&mut self, l: LocalId, span: Span) {
        let name = self.v.local_name(l);
        if self.lanes {
            self.v
                .error(codes::DEPENDENT_LANES, span, format!("each lane needs `{name}` from the lane before"))
                .also(self.span, "lanes of this run at the same time")
                .help("write `unroll(n)`, or a plain loop");
        } else {
            self.v
                .error(
                    codes::PARALLEL_ASSIGN,
                    span,
                    format!("`{name}` belongs to all steps of the `parallel`"),
                )
                .also(self.span, "steps of this run in any order")
                .help(format!("collect with a reducer: `var {name}: reducer(add) f32`, then `{name} op= x`"));
        }
    }

    /// A place that is the same for all steps.
    fn store(&mut self, mem: Mem, index: &[ExprId], value: ExprId, span: Span) {
        let body = self.v.body();
        let place: HashSet<LocalId> = index.iter().flat_map(|&e| self.defs.sources(body, e)).collect();
        let value = self.defs.sources(body, value);
        let clash =
            self.vars.iter().copied().find(|x| !place.contains(x) && (self.lanes || value.contains(x)));
        let Some(var) = clash else { return };
        // a guard may choose one step; what it chooses is not looked into
        if !self.lanes && self.guarded(span, var) {
            return;
        }
        let (name, var) = (self.v.mem_name(mem), self.v.local_name(var));
        if self.lanes {
            self.v
                .error(
                    codes::DEPENDENT_LANES,
                    span,
                    format!("all lanes store to the same element of `{name}`"),
                )
                .also(self.span, "lanes of this run at the same time")
                .help(format!("index `{name}` by `{var}`, or write `unroll(n)`"));
        } else {
            let message =
                format!("all steps along `{var}` store to the same element of `{name}`, each another value");
            self.v
                .error(codes::STORE_RACE, span, message)
                .also(self.span, "steps of this run in any order")
                .help(format!("index `{name}` by `{var}`, or use `atomic_add` or a reducer"));
        }
    }

    /// Whether an `if` whose condition depends on `var` stands around the store.
    fn guarded(&self, store: Span, var: LocalId) -> bool {
        let mut found = false;
        walk(&self.v.kernel.stmts, &mut |s| {
            if let StmtKind::If { cond, then, other } = &s.kind {
                let mut holds = false;
                let mut look =
                    |s: &Stmt| holds |= s.span == store && matches!(s.kind, StmtKind::Store { .. });
                walk(then, &mut look);
                walk(other, &mut look);
                found |= holds && self.defs.sources(self.v.body(), *cond).contains(&var);
            }
        });
        found
    }

    /// A read that is a fixed distance away from what another lane stores.
    fn shifted_reads(&mut self, s: &Stmt, stores: &[(Mem, &'a [ExprId], Span)]) {
        let body = self.v.body();
        let mut reads = Vec::new();
        each_below(body, &operands_of(&s.kind), |e, expr| {
            if let Expr::Element { mem, index, .. } = expr {
                reads.push((*mem, index.clone(), self.v.span(e)));
            }
        });
        let canon = Canon { body, lets: self.lets, names: HashMap::new() };
        for (mem, index, span) in reads {
            for &(stored, at, place) in stores {
                if stored != mem || at.len() != index.len() {
                    continue;
                }
                let distance = |(&x, &y): (&ExprId, &ExprId)| canon.affine(x)?.distance(&canon.affine(y)?);
                let distances: Option<Vec<i64>> = index.iter().zip(at).map(distance).collect();
                if distances.is_some_and(|d| d.iter().any(|&n| n != 0)) {
                    let name = self.v.mem_name(mem);
                    let span = if span == Span::default() { s.span } else { span };
                    self.v
                        .error(
                            codes::DEPENDENT_LANES,
                            span,
                            format!("a lane reads what another lane stores to `{name}`"),
                        )
                        .also(place, "stored here")
                        .help("write `unroll(n)`, or a plain loop");
                    return;
                }
            }
        }
    }
}

fn declares(kind: &StmtKind) -> bool {
    !matches!(
        kind,
        StmtKind::Assign { .. }
            | StmtKind::Update { .. }
            | StmtKind::Op { op: Op::Gemm { .. } | Op::Issue { .. }, .. }
    )
}
