//! What holds at a place of a kernel: inequalities between index values and what they are multiples of. Facts come
//! from the grid, the threads, the loops and conditions around the place; they are taken back when their block ends.
//!
//! A proof is a search for a sum of facts; it may give up, it is never wrong.

use crate::affine::{Atom, Forms, Opaque, Poly, Term};
use pantile_ir::builder::{Exprs, KernelBuilder, Result, Rewrite};
use pantile_ir::hash::{Map, Set};
use pantile_ir::program::*;
use std::collections::HashMap;

/// Facts in force.
#[derive(Default)]
pub struct Facts {
    pub forms: Forms,
    /// Each is at least 0.
    least: Vec<Poly>,
    /// Factors of atoms; the last of an atom counts.
    factors: Vec<(Atom, i64)>,
    natural: Set<Atom>,
    /// Opaque values whose own facts are listed in `known`.
    seen: usize,
    known: Vec<Poly>,
    /// Facts by the terms that they hold, so that a search looks only at those that help.
    by_term: Map<Term, Vec<usize>>,
    /// Names the set of facts in force, and how many sets had a name.
    state: u64,
    states: u64,
    /// What was proved, or not, by a set of facts and how much was known of opaque values.
    proved: Map<(u64, usize), Map<Poly, bool>>,
}

/// Steps of one search, and facts in one sum.
const FUEL: u32 = 200;
const DEPTH: u32 = 7;

/// How far facts reached at some place.
#[derive(Clone, Copy)]
pub struct Mark {
    least: usize,
    factors: usize,
    state: u64,
}

/// A comparison as `poly >= 0`.
pub type AtLeastZero = Poly;

impl Facts {
    /// What holds everywhere in a kernel.
    pub fn of(k: &Kernel) -> Facts {
        let mut f = Facts::default();
        f.natural.extend(k.dims.handles().map(Atom::Dim));
        for (&l, &extent) in k.grid.locals.iter().zip(&k.grid.extents) {
            f.natural.insert(Atom::Local(l));
            if let Some(p) = f.forms.of(&k.body, extent) {
                f.below(l, &p);
            }
        }
        for &(l, n) in k.threads.iter().flat_map(|t| &t.axes) {
            f.counts(l, n.into());
        }
        for (cond, _) in &k.wheres {
            f.assume(&k.body, *cond, true);
        }
        f
    }

    /// One more fact, if it could be written down.
    fn note(&mut self, fact: Option<AtLeastZero>) {
        if let Some(fact) = fact {
            self.least.push(fact);
            self.states += 1;
            self.state = self.states;
        }
    }

    fn below(&mut self, l: LocalId, extent: &Poly) {
        let last = extent.plus(&Poly::constant(1), -1);
        self.note(last.and_then(|p| p.plus(&Poly::atom(Atom::Local(l)), -1)));
    }

    /// A name that counts `0..n`.
    pub fn counts(&mut self, l: LocalId, n: i64) {
        self.natural.insert(Atom::Local(l));
        self.below(l, &Poly::constant(n));
    }

    /// Notes what a `let` names, and of a name that stands for itself whether it is at least 0.
    pub fn name(&mut self, body: &Body, local: LocalId, value: ExprId) {
        if let Some(kept) = self.forms.name(body, local, value)
            && self.never_negative(&kept)
        {
            self.natural.insert(Atom::Local(local));
        }
    }

    pub fn mark(&self) -> Mark {
        Mark { least: self.least.len(), factors: self.factors.len(), state: self.state }
    }

    pub fn release(&mut self, m: Mark) {
        self.least.truncate(m.least);
        self.factors.truncate(m.factors);
        self.state = m.state;
    }

    /// What a loop says of its variable, inside of its body.
    pub fn enter_loop(&mut self, body: &Body, var: LocalId, segments: &[Segment]) {
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return };
        let lo = self.forms.of(body, first.lo);
        let hi = self.forms.of(body, last.hi);
        let steps: Vec<Option<i64>> =
            segments.iter().map(|s| self.forms.of(body, s.step).and_then(|p| p.as_constant())).collect();
        if steps.iter().any(|s| s.is_none_or(|s| s <= 0)) {
            return;
        }
        if let Some(lo) = lo.filter(|p| self.forms.stable(body, p)) {
            if self.at_least_zero(&lo) {
                self.natural.insert(Atom::Local(var));
            }
            self.note(Poly::atom(Atom::Local(var)).plus(&lo, -1));
            if let [Some(step)] = steps[..] {
                self.factors.push((Atom::Local(var), gcd(self.factor(&lo), step)));
            }
        }
        if let Some(hi) = hi.filter(|p| self.forms.stable(body, p)) {
            self.below(var, &hi);
        }
    }

    /// Takes a condition, or its opposite, as true.
    pub fn assume(&mut self, body: &Body, cond: ExprId, holds: bool) {
        match &body.exprs[cond] {
            Expr::Binary(BinOp::LogicalAnd | BinOp::And, a, b) if holds => {
                self.assume(body, *a, true);
                self.assume(body, *b, true);
            }
            Expr::Binary(BinOp::LogicalOr | BinOp::Or, a, b) if !holds => {
                self.assume(body, *a, false);
                self.assume(body, *b, false);
            }
            Expr::Unary(UnOp::Not, a) => self.assume(body, *a, !holds),
            Expr::Binary(op, a, b) if op.is_comparison() => {
                self.assume_comparison(body, *op, (*a, *b), holds)
            }
            _ => {}
        }
    }

    fn assume_comparison(&mut self, body: &Body, op: BinOp, (a, b): (ExprId, ExprId), holds: bool) {
        let (Some(x), Some(y)) = (self.forms.of(body, a), self.forms.of(body, b)) else { return };
        if !self.forms.stable(body, &x) || !self.forms.stable(body, &y) {
            return;
        }
        if (op == BinOp::Eq && holds) || (op == BinOp::Ne && !holds) {
            self.note(x.plus(&y, -1));
            self.note(y.plus(&x, -1));
            self.assume_factor(&x, &y);
        } else {
            self.note(comparison(op, &x, &y, holds));
        }
    }

    /// `x % c == 0`
    fn assume_factor(&mut self, x: &Poly, y: &Poly) {
        if y.as_constant() != Some(0) || x.constant != 0 {
            return;
        }
        let Some((term, 1)) = single(x) else { return };
        let [Atom::Opaque(n)] = term[..] else { return };
        if let Opaque::Rem(of, by) = self.forms.opaque(n)
            && let (Some(by), Some((term, 1))) = (by.as_constant(), single(of))
            && let ([a], 0) = (&term[..], of.constant)
            && by > 0
        {
            self.assume_multiple(*a, by);
        }
    }

    pub fn assume_multiple(&mut self, a: Atom, of: i64) {
        let old = self.factor_of(a);
        self.factors.push((a, old / gcd(old, of) * of));
    }

    fn factor_of(&self, a: Atom) -> i64 {
        self.factors.iter().rev().find(|(b, _)| *b == a).map_or(1, |&(_, n)| n)
    }

    fn factor_of_term(&self, term: &Term, factor: i64) -> i64 {
        term.iter()
            .fold(factor.saturating_abs(), |all, &a| all.saturating_mul(self.factor_of(a)).min(1 << 40))
    }

    /// A number of which the value is a multiple; 0 for 0.
    pub fn factor(&self, p: &Poly) -> i64 {
        let terms = p.terms.iter().map(|(t, &f)| self.factor_of_term(t, f));
        terms.fold(p.constant.saturating_abs(), gcd)
    }

    /// The terms that are not known to be multiples of `n`, and whether the constant is one.
    pub fn odd_terms<'p>(&self, p: &'p Poly, n: i64) -> (Vec<&'p Term>, bool) {
        let odd = |(t, f): &(&'p Term, &i64)| self.factor_of_term(t, **f) % n != 0;
        (p.terms.iter().filter(odd).map(|(t, _)| t).collect(), p.constant % n == 0)
    }

    /// Whether a condition is known to hold (`Some(true)`) or not to.
    pub fn decide(&mut self, body: &Body, cond: ExprId) -> Option<bool> {
        match &body.exprs[cond] {
            Expr::Const { elem, bits } if *elem == Elem::BOOL => Some(*bits != 0),
            Expr::Unary(UnOp::Not, a) => self.decide(body, *a).map(|b| !b),
            Expr::Binary(op, a, b) if op.is_comparison() => {
                let (x, y) = (self.forms.of(body, *a)?, self.forms.of(body, *b)?);
                self.compare(*op, &x, &y)
            }
            _ => None,
        }
    }

    fn compare(&mut self, op: BinOp, x: &Poly, y: &Poly) -> Option<bool> {
        match op {
            BinOp::Eq | BinOp::Ne => {
                let d = x.plus(y, -1)?;
                let equal = if d.as_constant() == Some(0) {
                    true
                } else {
                    let apart = [d.plus(&Poly::constant(1), -1)?, d.scale(-1)?.plus(&Poly::constant(1), -1)?];
                    if !apart.iter().any(|p| self.at_least_zero(p)) {
                        return None;
                    }
                    false
                };
                Some(equal == (op == BinOp::Eq))
            }
            _ => {
                let (yes, no) = (comparison(op, x, y, true)?, comparison(op, x, y, false)?);
                if self.at_least_zero(&yes) { Some(true) } else { self.at_least_zero(&no).then_some(false) }
            }
        }
    }

    /// Whether the value is proved to be at least 0.
    pub fn at_least_zero(&mut self, p: &Poly) -> bool {
        self.know_opaques();
        let now = (self.state, self.known.len());
        if let Some(&known) = self.proved.get(&now).and_then(|of| of.get(p)) {
            return known;
        }
        let found = Search { facts: self, fuel: FUEL }.prove(p, DEPTH);
        self.proved.entry(now).or_default().insert(p.clone(), found);
        found
    }

    /// What quotients, remainders and minima say of themselves.
    fn know_opaques(&mut self) {
        while self.seen < self.forms.opaques() {
            let n = self.seen as u32;
            self.seen += 1;
            let o = self.forms.opaque(n).clone();
            let me = Poly::atom(Atom::Opaque(n));
            let mut facts = Vec::new();
            match &o {
                Opaque::Div(x, y) if let Some(d) = y.as_constant().filter(|&d| d > 0) => {
                    let down = me.scale(-d).and_then(|p| p.plus(x, 1));
                    facts.push(down.clone());
                    facts.push(down.and_then(|p| Poly::constant(d - 1).plus(&p, -1)));
                }
                Opaque::CeilDiv(x, y) if let Some(d) = y.as_constant().filter(|&d| d > 0) => {
                    let up = me.scale(d).and_then(|p| p.plus(x, -1));
                    facts.push(up.clone());
                    facts.push(up.and_then(|p| Poly::constant(d - 1).plus(&p, -1)));
                }
                Opaque::Rem(_, y) if let Some(d) = y.as_constant().filter(|&d| d > 0) => {
                    self.natural.insert(Atom::Opaque(n));
                    facts.push(Poly::constant(d - 1).plus(&me, -1));
                }
                Opaque::Min(x, y) => facts.extend([x.plus(&me, -1), y.plus(&me, -1)]),
                Opaque::Max(x, y) => facts.extend([me.plus(x, -1), me.plus(y, -1)]),
                _ => {}
            }
            for fact in facts.into_iter().flatten() {
                for term in fact.terms.keys() {
                    self.by_term.entry(term.clone()).or_default().push(self.known.len());
                }
                self.known.push(fact);
            }
            let positive = match &o {
                Opaque::Div(x, y) | Opaque::CeilDiv(x, y) => {
                    y.as_constant().is_some_and(|d| d > 0) && self.everywhere_natural(x)
                }
                Opaque::Min(x, y) => self.everywhere_natural(x) && self.everywhere_natural(y),
                Opaque::Max(x, y) => self.everywhere_natural(x) || self.everywhere_natural(y),
                _ => false,
            };
            if positive {
                self.natural.insert(Atom::Opaque(n));
            }
        }
    }

    /// At least 0 wherever its names are in sight.
    fn everywhere_natural(&self, p: &Poly) -> bool {
        p.constant >= 0 && p.terms.iter().all(|(t, &f)| f > 0 && self.natural_term(t))
    }

    /// The same, by what quotients are made of as well: what divides is not 0, or there is no value.
    fn never_negative(&self, p: &Poly) -> bool {
        let natural = |a: Atom| {
            let Atom::Opaque(n) = a else { return self.natural.contains(&a) };
            match self.forms.opaque(n) {
                Opaque::Div(x, y) | Opaque::CeilDiv(x, y) | Opaque::Min(x, y) => {
                    self.never_negative(x) && self.never_negative(y)
                }
                Opaque::Rem(_, y) => self.never_negative(y),
                Opaque::Max(x, y) => self.never_negative(x) || self.never_negative(y),
                Opaque::Value(_) => false,
            }
        };
        p.constant >= 0 && p.terms.iter().all(|(_, &f)| f > 0) && p.atoms().all(natural)
    }

    fn natural_term(&self, t: &Term) -> bool {
        t.iter().all(|a| self.natural.contains(a))
    }

    /// The least value over all values of some names with constant ranges, as a form without them; `None` where a
    /// name's range is not constant or it stands in a product.
    pub fn minimum(&self, p: &Poly, over: &HashMap<LocalId, (i64, i64)>) -> Option<Poly> {
        let mut out = p.clone();
        for (&l, &(lo, hi)) in over {
            let a = Atom::Local(l);
            let factor = out.linear_in(a)?;
            if factor != 0 {
                out = out.without(a);
                let at = if factor > 0 { lo } else { hi };
                out.constant = out.constant.checked_add(factor.checked_mul(at)?)?;
            }
        }
        let left = self.forms.mentions(&out, &|a| matches!(a, Atom::Local(l) if over.contains_key(&l)));
        (!left).then_some(out)
    }
}

fn single(p: &Poly) -> Option<(&Term, i64)> {
    (p.terms.len() == 1).then(|| p.terms.iter().next().map(|(t, &f)| (t, f)))?
}

/// A comparison, or its opposite, as a value that is at least 0.
pub fn comparison(op: BinOp, x: &Poly, y: &Poly, holds: bool) -> Option<AtLeastZero> {
    let one = Poly::constant(1);
    let op = match (op, holds) {
        (op, true) => op,
        (BinOp::Lt, false) => BinOp::Ge,
        (BinOp::Le, false) => BinOp::Gt,
        (BinOp::Gt, false) => BinOp::Le,
        (BinOp::Ge, false) => BinOp::Lt,
        _ => return None,
    };
    match op {
        BinOp::Lt => y.plus(x, -1)?.plus(&one, -1),
        BinOp::Le => y.plus(x, -1),
        BinOp::Gt => x.plus(y, -1)?.plus(&one, -1),
        BinOp::Ge => x.plus(y, -1),
        _ => None,
    }
}

pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.saturating_abs(), b.saturating_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

struct Search<'a> {
    facts: &'a Facts,
    fuel: u32,
}

impl Search<'_> {
    /// Takes one term after another out of the goal with a fact that bounds it.
    fn prove(&mut self, goal: &Poly, depth: u32) -> bool {
        if self.fuel == 0 {
            return false;
        }
        self.fuel -= 1;
        let bad = goal.terms.iter().find(|(t, f)| **f < 0 || !self.facts.natural_term(t));
        let Some((term, &factor)) = bad else {
            return goal.constant >= 0 || (depth > 0 && self.lower(goal, depth));
        };
        depth > 0 && self.remove(goal, &term.clone(), factor, depth)
    }

    /// All terms are at least 0, but the constant is not: one of them has a greater lower bound.
    fn lower(&mut self, goal: &Poly, depth: u32) -> bool {
        let terms: Vec<(Term, i64)> = goal.terms.iter().map(|(t, &f)| (t.clone(), f)).collect();
        terms.iter().any(|(t, f)| self.remove(goal, t, *f, depth))
    }

    fn remove(&mut self, goal: &Poly, term: &Term, factor: i64, depth: u32) -> bool {
        let facts = self.facts;
        let known = facts.by_term.get(term).into_iter().flatten().map(|&i| &facts.known[i]);
        for fact in facts.least.iter().chain(known) {
            let Some(&k) = fact.terms.get(term) else { continue };
            if (k > 0) != (factor > 0) {
                continue;
            }
            let g = gcd(k, factor);
            let (scale, times) = (k.abs() / g, factor.abs() / g);
            if goal.sum(scale, fact, -times).is_some_and(|p| self.prove(&p, depth - 1)) {
                return true;
            }
        }
        false
    }
}

/// A rewriting that knows what holds where it is.
pub trait Inside: Rewrite {
    fn facts(&mut self) -> &mut Facts;

    /// Rewrites the blocks of a statement, each with what control says there.
    fn rewrite_inside(&mut self, k: &mut KernelBuilder, s: &mut Stmt) -> Result<()> {
        let mark = self.facts().mark();
        match &mut s.kind {
            StmtKind::If { cond, then, other } => {
                self.facts().assume(k.body(), *cond, true);
                *then = self.block(k, std::mem::take(then))?;
                self.facts().release(mark);
                self.facts().assume(k.body(), *cond, false);
                *other = self.block(k, std::mem::take(other))?;
            }
            StmtKind::For { var, segments, body, .. } => {
                self.facts().enter_loop(k.body(), *var, segments);
                *body = self.block(k, std::mem::take(body))?;
            }
            kind => {
                for block in kind.blocks_mut() {
                    *block = self.block(k, std::mem::take(block))?;
                }
            }
        }
        self.facts().release(mark);
        Ok(())
    }
}

/// Ranges of names that are constant: thread axes, and loops from a constant to a constant.
pub fn constant_ranges(k: &Kernel) -> HashMap<LocalId, (i64, i64)> {
    let mut out: HashMap<LocalId, (i64, i64)> = HashMap::new();
    for &(l, n) in k.threads.iter().flat_map(|t| &t.axes) {
        out.insert(l, (0, i64::from(n) - 1));
    }
    out
}
