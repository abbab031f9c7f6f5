//! Indices as sums: which thread axes two equal elements must have in common, over all steps of all loops at once.
//!
//! An index is `Σ factor · (thread axis or loop variable) + rest`. Two accesses meet where the difference of their
//! indices is 0. Where each factor is larger than what all smaller ones can sum up to, as in a mixed-radix number, a
//! difference of 0 makes each variable's own difference 0.

use pantile_ir::hash::Map;
use pantile_ir::program::*;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A variable that differs between threads or between steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Var {
    Axis(usize),
    Loop(LocalId),
}

/// What all threads and steps agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Same {
    Dim(DimId),
    Arg(ArgId),
    Grid(LocalId),
    Whole(ExprId),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sum {
    vars: BTreeMap<Var, i64>,
    same: BTreeMap<Same, i64>,
    number: i64,
}

impl Sum {
    fn number(n: i64) -> Sum {
        Sum { number: n, ..Sum::default() }
    }

    fn plus(mut self, o: &Sum, by: i64) -> Option<Sum> {
        self.number = self.number.checked_add(o.number.checked_mul(by)?)?;
        for (v, n) in &o.vars {
            let e = self.vars.entry(*v).or_default();
            *e = e.checked_add(n.checked_mul(by)?)?;
        }
        for (v, n) in &o.same {
            let e = self.same.entry(*v).or_default();
            *e = e.checked_add(n.checked_mul(by)?)?;
        }
        Some(self)
    }
}

/// Definitions that sums are expanded by.
pub struct Sums<'a> {
    k: &'a Kernel,
    lets: Map<LocalId, ExprId>,
    /// The first and the last value of a loop's variable, where they are known.
    spans: Map<LocalId, Option<(i64, i64)>>,
    axes: Map<LocalId, usize>,
    memo: Map<ExprId, Option<Rc<Sum>>>,
}

impl<'a> Sums<'a> {
    pub fn of(k: &'a Kernel) -> Sums<'a> {
        let mut s = Sums {
            k,
            lets: Map::default(),
            spans: Map::default(),
            axes: Map::default(),
            memo: Map::default(),
        };
        if let Some(t) = &k.threads {
            s.axes.extend(t.axes.iter().enumerate().map(|(i, &(l, _))| (l, i)));
        }
        walk(&k.stmts, &mut |st| match &st.kind {
            StmtKind::Let { local, value } if k.body.locals[*local].kind == LocalKind::Let => {
                s.lets.insert(*local, *value);
            }
            StmtKind::For { var, segments, .. } => {
                let known = |e| k.body.index_constant(e);
                let span = match &segments[..] {
                    [g] => known(g.lo).zip(known(g.hi)).map(|(lo, hi)| (lo, (hi - 1).max(lo))),
                    _ => None,
                };
                s.spans.insert(*var, span);
            }
            _ => {}
        });
        s
    }

    /// The sum that an index is; `None` where it is something else.
    pub fn sum(&mut self, e: ExprId) -> Option<Rc<Sum>> {
        if let Some(known) = self.memo.get(&e) {
            return known.clone();
        }
        self.memo.insert(e, None);
        let made = self.make(e).map(Rc::new);
        self.memo.insert(e, made.clone());
        made
    }

    fn make(&mut self, e: ExprId) -> Option<Sum> {
        let body = &self.k.body;
        let same = |s: Same| Some(Sum { same: [(s, 1)].into(), ..Sum::default() });
        match &body.exprs[e] {
            Expr::Const { elem, bits } if elem.is_integer() => Some(Sum::number(*bits as i64)),
            Expr::Local(l) => {
                let var = |v: Var| Some(Sum { vars: [(v, 1)].into(), ..Sum::default() });
                if let Some(&axis) = self.axes.get(l) {
                    var(Var::Axis(axis))
                } else if self.spans.contains_key(l) {
                    var(Var::Loop(*l))
                } else if let Some(&value) = self.lets.get(l) {
                    self.sum(value).map(|s| (*s).clone())
                } else if matches!(body.locals[*l].kind, LocalKind::Grid(_)) {
                    same(Same::Grid(*l))
                } else {
                    None
                }
            }
            Expr::Dim(d) => same(Same::Dim(*d)),
            Expr::Arg(a) => same(Same::Arg(*a)),
            Expr::Binary(BinOp::Add, a, b) => (*self.sum(*a)?).clone().plus(&*self.sum(*b)?, 1),
            Expr::Binary(BinOp::Sub, a, b) => (*self.sum(*a)?).clone().plus(&*self.sum(*b)?, -1),
            Expr::Binary(BinOp::Mul, a, b) => {
                let (x, y) = (self.sum(*a)?, self.sum(*b)?);
                let plain = |s: &Sum| s.vars.is_empty() && s.same.is_empty();
                match (plain(&x), plain(&y)) {
                    (true, _) => Sum::default().plus(&y, x.number),
                    (_, true) => Sum::default().plus(&x, y.number),
                    _ if x.vars.is_empty() && y.vars.is_empty() => same(Same::Whole(e)),
                    _ => None,
                }
            }
            Expr::Cast { to: Elem::Index, value, .. } => self.sum(*value).map(|s| (*s).clone()),
            _ if self.fixed(e) => same(Same::Whole(e)),
            _ => None,
        }
    }

    /// The same for all threads and steps: nothing in it varies.
    fn fixed(&self, e: ExprId) -> bool {
        let body = &self.k.body;
        let own = match &body.exprs[e] {
            Expr::Local(l) => match self.lets.get(l) {
                Some(&v) => self.fixed(v),
                None => matches!(body.locals[*l].kind, LocalKind::Grid(_)),
            },
            Expr::Element { mem: Mem::Tensor(a), .. } => {
                matches!(&self.k.args[*a].kind, ArgKind::Tensor(t) if t.mode == Mode::In)
            }
            Expr::Element { .. } => false,
            _ => true,
        };
        let mut all = own;
        body.exprs[e].operands(|o| all = all && self.fixed(o));
        all
    }

    /// Every thread axis stands in one of the indices, so that equal indices may mean equal threads.
    pub fn names_all(&self, sums: &[Rc<Sum>]) -> bool {
        let axes = self.k.threads.iter().flat_map(|t| &t.axes).enumerate();
        let named = |i: usize| sums.iter().any(|s| s.vars.get(&Var::Axis(i)).is_some_and(|&n| n != 0));
        axes.filter(|(_, a)| a.1 > 1).all(|(i, _)| named(i))
    }

    /// Thread axes, as bits, on which threads must agree that meet at these two places.
    pub fn agree(&self, a: &[Option<Rc<Sum>>], b: &[Option<Rc<Sum>>]) -> u32 {
        let pairs = a.iter().zip(b).filter_map(|(x, y)| Some((x.as_ref()?, y.as_ref()?)));
        pairs.map(|(x, y)| self.agree_on(x, y)).fold(0, |m, n| m | n)
    }

    fn agree_on(&self, x: &Sum, y: &Sum) -> u32 {
        if x.same != y.same {
            return 0;
        }
        // variables that both have in the same way; what else there is only widens the difference
        let mut terms: Vec<(i64, Var)> = Vec::new();
        let mut rest = Some((x.number - y.number, x.number - y.number));
        let mut add = |n: i64, v: Var| {
            let reach = self.range(v).and_then(|(lo, hi)| Some((n.checked_mul(lo)?, n.checked_mul(hi)?)));
            rest = rest
                .zip(reach)
                .and_then(|((lo, hi), (a, b))| Some((lo.checked_add(a.min(b))?, hi.checked_add(a.max(b))?)));
        };
        for (&v, &n) in x.vars.iter().filter(|(_, n)| **n != 0) {
            if y.vars.get(&v) == Some(&n) {
                terms.push((n.abs(), v));
            } else {
                add(n, v);
            }
        }
        for (&v, &n) in y.vars.iter().filter(|(v, n)| **n != 0 && x.vars.get(v) != Some(n)) {
            add(-n, v);
        }
        let Some((lo, hi)) = rest else { return 0 };
        terms.sort();
        // from the largest factor down: what is smaller must not reach it
        let mut below = Some(lo.abs().max(hi.abs()));
        let mut reach: Vec<Option<i64>> = Vec::new();
        for &(n, v) in &terms {
            reach.push(below);
            let span = self.range(v).map(|(lo, hi)| hi - lo);
            below = below.zip(span).and_then(|(b, s)| b.checked_add(n.checked_mul(s)?));
        }
        let mut found = 0;
        for (&(n, v), reach) in terms.iter().zip(&reach).rev() {
            match (reach, v) {
                (Some(r), Var::Axis(i)) if *r < n => found |= 1 << i,
                (Some(r), Var::Loop(_)) if *r < n => {}
                _ => return found,
            }
        }
        // every common variable agrees: they meet only where the rest can be 0
        if (lo..=hi).contains(&0) { found } else { u32::MAX }
    }

    /// The smallest and the largest value of a variable.
    fn range(&self, v: Var) -> Option<(i64, i64)> {
        match v {
            Var::Axis(i) => self.k.threads.as_ref().map(|t| (0, i64::from(t.axes[i].1) - 1)),
            Var::Loop(l) => self.spans.get(&l).copied().flatten(),
        }
    }

    /// Whether threads that agree on these axes are one thread, or of one warp.
    pub fn reach(&self, agree: u32, warp: usize) -> (bool, bool) {
        let Some(t) = &self.k.threads else { return (true, true) };
        let (mut one, mut near, mut stride) = (true, true, 1usize);
        for (i, &(_, n)) in t.axes.iter().enumerate().rev() {
            let open = n > 1 && agree >> i & 1 == 0;
            one &= !open;
            // an axis stays within a warp if its whole extent does
            near &= !open || (warp.is_multiple_of(stride * n as usize) && stride * n as usize <= warp);
            stride *= n as usize;
        }
        (one, near)
    }
}
