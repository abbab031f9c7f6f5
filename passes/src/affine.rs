//! Index expressions as polynomials with integer coefficients over loop variables, dims and whatever cannot be taken
//! apart. Products of dims are kept, so that `n*K + k` says how a row moves with `n`.
//!
//! Sums of `index` values are taken apart freely: an overflow of one is a fault, never a wrapped value. Names made by
//! `let` count as their values where those cannot change between the `let` and the use.

use crate::terms::Terms;
use pantile_ir::program::*;
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;

/// What a polynomial is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    Local(LocalId),
    Dim(DimId),
    /// A scalar parameter as an index.
    Arg(ArgId),
    Opaque(u32),
}

/// A product of atoms, sorted.
pub type Term = SmallVec<[Atom; 2]>;

/// Why an atom is opaque.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Opaque {
    Div(Poly, Poly),
    Rem(Poly, Poly),
    CeilDiv(Poly, Poly),
    Min(Poly, Poly),
    Max(Poly, Poly),
    /// Known by its handle only.
    Value(ExprId),
}

/// `Σ factor · term + constant`
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Poly {
    pub terms: Terms,
    pub constant: i64,
}

/// Beyond this a form is not worth having.
const MAX_TERMS: usize = 48;

impl Poly {
    pub fn constant(value: i64) -> Poly {
        Poly { terms: Terms::default(), constant: value }
    }

    pub fn atom(a: Atom) -> Poly {
        Poly { terms: Terms::one(smallvec![a], 1), constant: 0 }
    }

    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// `self + factor·other`; `None` on overflow.
    pub fn plus(&self, other: &Poly, factor: i64) -> Option<Poly> {
        self.sum(1, other, factor)
    }

    /// `by·self + other_by·other`; `None` on overflow.
    pub fn sum(&self, by: i64, other: &Poly, other_by: i64) -> Option<Poly> {
        let constant = self.constant.checked_mul(by)?.checked_add(other.constant.checked_mul(other_by)?)?;
        let terms = self.terms.sum(by, &other.terms, other_by)?;
        (terms.len() <= MAX_TERMS).then_some(Poly { terms, constant })
    }

    fn add_term(&mut self, term: &Term, factor: i64) -> Option<()> {
        let sum = self.terms.get(term).copied().unwrap_or(0).checked_add(factor)?;
        if sum == 0 {
            self.terms.remove(term);
        } else {
            self.terms.insert(term.clone(), sum);
        }
        Some(())
    }

    pub fn scale(&self, factor: i64) -> Option<Poly> {
        Poly::default().plus(self, factor)
    }

    pub fn times(&self, other: &Poly) -> Option<Poly> {
        let mut out = self.scale(other.constant)?;
        for (term, &f) in other.terms.iter() {
            for (mine, &g) in self.terms.iter() {
                let mut product: Term = mine.iter().chain(term).copied().collect();
                product.sort_unstable();
                out.add_term(&product, f.checked_mul(g)?)?;
            }
            out.add_term(term, f.checked_mul(self.constant)?)?;
        }
        (out.terms.len() <= MAX_TERMS).then_some(out)
    }

    pub fn atoms(&self) -> impl Iterator<Item = Atom> {
        self.terms.keys().flat_map(|t| t.iter().copied())
    }

    /// The factor of a term that is this atom alone, if the atom stands nowhere else.
    pub fn linear_in(&self, a: Atom) -> Option<i64> {
        let alone: Term = smallvec![a];
        let elsewhere = self.terms.keys().any(|t| *t != alone && t.contains(&a));
        (!elsewhere).then(|| self.terms.get(&alone).copied().unwrap_or(0))
    }

    /// The polynomial without the term that is this atom alone.
    pub fn without(&self, a: Atom) -> Poly {
        let mut out = self.clone();
        let alone: Term = smallvec![a];
        out.terms.remove(&alone);
        out
    }
}

/// The forms of a kernel's expressions.
#[derive(Default)]
pub struct Forms {
    lets: HashMap<LocalId, Poly>,
    opaque: Vec<Opaque>,
    numbers: HashMap<Opaque, u32>,
}

impl Forms {
    pub fn opaque(&self, n: u32) -> &Opaque {
        &self.opaque[n as usize]
    }

    pub fn opaques(&self) -> usize {
        self.opaque.len()
    }

    /// Notes what a `let` names, if it is an index that cannot change. A quotient of or by a quotient keeps its name, or
    /// it would be written out wherever a form is: then the value is given back.
    pub fn name(&mut self, body: &Body, local: LocalId, value: ExprId) -> Option<Poly> {
        if body.locals[local].kind != LocalKind::Let || body.locals[local].ty != Type::INDEX {
            return None;
        }
        let p = self.of(body, value).filter(|p| self.stable(body, p))?;
        if self.divides(&p, 0) > 1 {
            return Some(p);
        }
        self.lets.insert(local, p);
        None
    }

    /// How deep quotients stand in each other below one by what is no constant; 0 where there is none.
    fn divides(&self, p: &Poly, outer: u32) -> u32 {
        let one = |a: Atom| match a {
            Atom::Opaque(n) => match self.opaque(n) {
                Opaque::Div(x, y) | Opaque::Rem(x, y) | Opaque::CeilDiv(x, y) => {
                    let here = outer + u32::from(outer > 0 || y.as_constant().is_none());
                    here.max(self.divides(x, here)).max(self.divides(y, here))
                }
                Opaque::Min(x, y) | Opaque::Max(x, y) => self.divides(x, outer).max(self.divides(y, outer)),
                Opaque::Value(_) => outer,
            },
            _ => outer,
        };
        p.atoms().map(one).max().unwrap_or(outer)
    }

    /// The value of an `index` expression; `None` if it overflows or grows too large, or has another type.
    pub fn of(&mut self, body: &Body, e: ExprId) -> Option<Poly> {
        self.within(body, e, &mut 256)
    }

    fn within(&mut self, body: &Body, e: ExprId, fuel: &mut u32) -> Option<Poly> {
        *fuel = fuel.checked_sub(1)?;
        // other integers wrap, so their sums may not be taken apart
        if body.types[e.index()] != Type::INDEX {
            return None;
        }
        match &body.exprs[e] {
            Expr::Const { bits, .. } => Some(Poly::constant(*bits as i64)),
            Expr::Local(l) => Some(self.lets.get(l).cloned().unwrap_or_else(|| Poly::atom(Atom::Local(*l)))),
            Expr::Dim(d) => Some(Poly::atom(Atom::Dim(*d))),
            Expr::Cast { value, .. } if let Expr::Arg(a) = body.exprs[*value] => {
                Some(Poly::atom(Atom::Arg(a)))
            }
            Expr::Unary(UnOp::Neg, a) => self.within(body, *a, fuel)?.scale(-1),
            Expr::Binary(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), a, b) => {
                let (x, y) = (self.within(body, *a, fuel)?, self.within(body, *b, fuel)?);
                match op {
                    BinOp::Add => x.plus(&y, 1),
                    BinOp::Sub => x.plus(&y, -1),
                    _ => x.times(&y),
                }
            }
            Expr::Binary(op @ (BinOp::Div | BinOp::Rem), a, b) => {
                let (x, y) = (self.within(body, *a, fuel)?, self.within(body, *b, fuel)?);
                let known = if *op == BinOp::Div { Opaque::Div(x, y) } else { Opaque::Rem(x, y) };
                Some(self.number(known))
            }
            Expr::Math { f, args, .. } if let [a, b] = args[..] => {
                let (x, y) = (self.within(body, a, fuel)?, self.within(body, b, fuel)?);
                Some(match f {
                    MathFn::CeilDiv => self.number(Opaque::CeilDiv(x, y)),
                    MathFn::Min => self.number(Opaque::Min(x, y)),
                    MathFn::Max => self.number(Opaque::Max(x, y)),
                    _ => self.number(Opaque::Value(e)),
                })
            }
            _ => Some(self.number(Opaque::Value(e))),
        }
    }

    /// An opaque value, with what is known at once: exact quotients and constants.
    fn number(&mut self, o: Opaque) -> Poly {
        if let Some(p) = exact(&o) {
            return p;
        }
        let next = self.opaque.len() as u32;
        let n = *self.numbers.entry(o.clone()).or_insert(next);
        if n == next {
            self.opaque.push(o);
        }
        Poly::atom(Atom::Opaque(n))
    }

    /// The floor of a quotient by a positive number.
    pub fn quotient(&mut self, of: Poly, by: i64) -> Poly {
        self.number(Opaque::Div(of, Poly::constant(by)))
    }

    /// The value, but 0 where that is less; written down only where it may be.
    pub fn at_least_none(&mut self, p: Poly) -> Poly {
        let sure = p.constant >= 0 && p.terms.values().all(|&f| f >= 0);
        match p.as_constant() {
            _ if sure => p,
            Some(_) => Poly::default(),
            None => self.number(Opaque::Max(p, Poly::default())),
        }
    }

    /// A quotient by a positive number, rounded up.
    pub fn ceil_quotient(&mut self, of: Poly, by: i64) -> Poly {
        self.number(Opaque::CeilDiv(of, Poly::constant(by)))
    }

    /// Whether the value is the same whenever it is evaluated while its names stay in sight.
    pub fn stable(&self, body: &Body, p: &Poly) -> bool {
        p.atoms().all(|a| match a {
            Atom::Local(l) => body.locals[l].kind != LocalKind::Var,
            Atom::Dim(_) | Atom::Arg(_) => true,
            Atom::Opaque(n) => match self.opaque(n) {
                Opaque::Div(x, y)
                | Opaque::Rem(x, y)
                | Opaque::CeilDiv(x, y)
                | Opaque::Min(x, y)
                | Opaque::Max(x, y) => self.stable(body, x) && self.stable(body, y),
                Opaque::Value(_) => false,
            },
        })
    }

    /// Whether an atom stands in a polynomial, inside of opaque values too.
    pub fn mentions(&self, p: &Poly, wanted: &impl Fn(Atom) -> bool) -> bool {
        p.atoms().any(|a| {
            wanted(a)
                || match a {
                    Atom::Opaque(n) => match self.opaque(n) {
                        Opaque::Div(x, y)
                        | Opaque::Rem(x, y)
                        | Opaque::CeilDiv(x, y)
                        | Opaque::Min(x, y)
                        | Opaque::Max(x, y) => self.mentions(x, wanted) || self.mentions(y, wanted),
                        // what it holds is not looked into
                        Opaque::Value(_) => true,
                    },
                    _ => false,
                }
        })
    }
}

fn exact(o: &Opaque) -> Option<Poly> {
    match o {
        Opaque::Div(x, y) | Opaque::CeilDiv(x, y) => {
            let d = y.as_constant().filter(|&d| d > 0)?;
            let whole = |n: i64| n % d == 0;
            (whole(x.constant) && x.terms.values().all(|&f| whole(f))).then(|| Poly {
                terms: x.terms.iter().map(|(t, f)| (t.clone(), f / d)).collect(),
                constant: x.constant / d,
            })
        }
        Opaque::Rem(x, y) => {
            let d = y.as_constant().filter(|&d| d > 0)?;
            let rest = x.constant.rem_euclid(d);
            x.terms.values().all(|f| f % d == 0).then(|| Poly::constant(rest))
        }
        _ => None,
    }
}
