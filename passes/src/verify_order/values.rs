//! Values of names and expressions, for all threads at once.

use pantile_ir::hash::{Map, Words};
use pantile_ir::program::*;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// A value that nobody knows.
pub const OPEN: i64 = i64::MIN;

/// A number for all threads, or one for each.
#[derive(Clone, Debug, Hash)]
pub enum Val {
    One(i64),
    Each(Rc<[i64]>),
}

impl Val {
    pub fn at(&self, thread: usize) -> i64 {
        match self {
            Val::One(v) => *v,
            Val::Each(list) => list[thread],
        }
    }

    /// Thread by thread, unknown where either is.
    fn with(&self, other: &Val, f: impl Fn(i64, i64) -> Option<i64>) -> Val {
        let known = |a: i64, b: i64| if a == OPEN || b == OPEN { OPEN } else { f(a, b).unwrap_or(OPEN) };
        self.zip(other, known)
    }

    fn zip(&self, other: &Val, f: impl Fn(i64, i64) -> i64) -> Val {
        match (self, other) {
            (Val::One(a), Val::One(b)) => Val::One(f(*a, *b)),
            (Val::Each(a), Val::One(b)) => Val::Each(a.iter().map(|&a| f(a, *b)).collect()),
            (Val::One(a), Val::Each(b)) => Val::Each(b.iter().map(|&b| f(*a, b)).collect()),
            (Val::Each(a), Val::Each(b)) => {
                Val::Each(a.iter().zip(b.iter()).map(|(&a, &b)| f(a, b)).collect())
            }
        }
    }

    /// `self + n * step`
    pub fn advanced(&self, n: i64, step: &Val) -> Val {
        self.with(step, |a, s| a.checked_add(n.checked_mul(s)?))
    }

    /// This many more than the other, in all threads.
    pub fn is_ahead(&self, other: &Val, by: i64) -> bool {
        match (self, other) {
            (Val::One(a), Val::One(b)) => *a == b + by,
            (Val::Each(a), Val::Each(b)) => a.iter().zip(b.iter()).all(|(a, b)| *a == b + by),
            _ => false,
        }
    }

    pub fn or(&self, known: i64) -> Val {
        self.zip(&Val::One(known), |a, k| if a == OPEN { k } else { a })
    }
}

/// What an expression's value hangs on.
#[derive(Clone)]
struct Roots {
    locals: Rc<[LocalId]>,
    /// sizes of tensors and arguments of the launch
    sample: bool,
}

/// What a local holds, since when, and its hash.
#[derive(Clone)]
struct Name {
    val: Val,
    when: u64,
    hash: u64,
}

/// A value, its hash, whether it is unknown for some thread, and the least and the most that it is.
#[derive(Clone)]
pub struct Found {
    pub val: Val,
    pub hash: u64,
    pub open: bool,
    pub range: (i64, i64),
}

impl From<Val> for Found {
    fn from(val: Val) -> Found {
        let mut h = Words::default();
        val.hash(&mut h);
        let range = match &val {
            Val::One(v) => (*v, *v),
            Val::Each(list) => list.iter().fold((i64::MAX, i64::MIN), |(lo, hi), &v| (lo.min(v), hi.max(v))),
        };
        // the unknown value is the least of all
        Found { hash: h.finish(), open: range.0 == OPEN, range, val }
    }
}

/// Values remembered at once; a loop of many steps makes many that nobody asks for again.
const KNOWN: usize = 1 << 12;

pub struct Values<'a> {
    k: &'a Kernel,
    pub threads: usize,
    sample: super::Sample,
    pub sample_asked: bool,
    /// by local
    names: Vec<Name>,
    clock: u64,
    memo: Vec<Option<(Val, u64)>>,
    /// What was asked from outside, by the expression and the values of the names that it hangs on.
    known: Map<u64, Found>,
    /// Where what inputs hold at a place that all threads agree on counts as 0: what was found so far.
    agreed: Option<Map<ExprId, Val>>,
    roots: Vec<Option<Roots>>,
}

impl<'a> Values<'a> {
    pub fn new(k: &'a Kernel, threads: usize, sample: super::Sample) -> Self {
        let names = vec![Name { val: Val::One(OPEN), when: 0, hash: 0 }; k.body.locals.len()];
        let memo = vec![None; k.body.exprs.len()];
        let mut v = Values {
            k,
            threads,
            sample,
            sample_asked: false,
            names,
            clock: 0,
            memo,
            known: Map::default(),
            agreed: None,
            roots: vec![None; k.body.exprs.len()],
        };
        v.restart(sample);
        v
    }

    /// Nothing is known but numbers of threads and blocks.
    pub fn restart(&mut self, sample: super::Sample) {
        let k = self.k;
        if self.sample != sample {
            self.memo.fill(None);
        }
        (self.sample, self.sample_asked) = (sample, false);
        self.clock += 1;
        let Found { val, hash, .. } = Val::One(OPEN).into();
        self.names.fill(Name { val, when: self.clock, hash });
        let mut inner = 1;
        for &(axis, n) in k.threads.iter().flat_map(|t| t.axes.iter().rev()) {
            let n = n.max(1) as usize;
            self.set(axis, Val::Each((0..self.threads).map(|t| (t / inner % n) as i64).collect()));
            inner *= n;
        }
        k.grid.locals.iter().for_each(|&l| self.set(l, Val::One(sample.block)));
    }

    pub fn state(&self, h: &mut impl Hasher) {
        self.names.iter().for_each(|n| n.hash.hash(h));
    }

    pub fn first_block(&self) -> bool {
        self.sample.block == 0
    }

    pub fn set(&mut self, l: LocalId, v: Val) {
        self.clock += 1;
        let Found { val, hash, .. } = v.into();
        self.names[l.index()] = Name { val, when: self.clock, hash };
    }

    /// Nobody asks for it until it gets a value again.
    pub fn drop(&mut self, l: LocalId) {
        self.set(l, Val::One(OPEN));
    }

    pub fn get(&self, l: LocalId) -> Val {
        self.names[l.index()].val.clone()
    }

    fn roots(&mut self, e: ExprId) -> Roots {
        if let Some(r) = &self.roots[e.index()] {
            return r.clone();
        }
        let expr = &self.k.body.exprs[e];
        let mut list = Vec::new();
        if let Expr::Local(l) = expr {
            list.push(*l);
        }
        let mut sample = matches!(expr, Expr::Dim(_) | Expr::Arg(_));
        let mut inner = Vec::new();
        expr.operands(|o| inner.push(o));
        for o in inner {
            let r = self.roots(o);
            list.extend(r.locals.iter().copied());
            sample |= r.sample;
        }
        list.sort_unstable();
        list.dedup();
        let r = Roots { locals: list.into(), sample };
        self.roots[e.index()] = Some(r.clone());
        r
    }

    /// The value of an index. Where inputs give all threads the same unknown offset, one value stands for any.
    pub fn place(&mut self, e: ExprId) -> Found {
        let mut h = Words::default();
        let roots = self.roots(e);
        e.hash(&mut h);
        roots.locals.iter().for_each(|l| self.names[l.index()].hash.hash(&mut h));
        if roots.sample {
            self.sample_asked = true;
            self.sample.hash(&mut h);
        }
        let key = h.finish();
        if let Some(found) = self.known.get(&key) {
            return found.clone();
        }
        let mut found: Found = self.eval(e).into();
        if found.open {
            self.agreed = Some(Map::default());
            found = self.eval(e).into();
            self.agreed = None;
        }
        if self.known.len() == KNOWN {
            self.known.clear();
        }
        self.known.insert(key, found.clone());
        found
    }

    pub fn eval(&mut self, e: ExprId) -> Val {
        match &self.k.body.exprs[e] {
            Expr::Local(l) => return self.get(*l),
            Expr::Const { elem, bits } if elem.is_integer() || *elem == Elem::BOOL => {
                return Val::One(*bits as i64);
            }
            _ => {}
        }
        if let Some(found) = &self.agreed {
            if let Some(v) = found.get(&e) {
                return v.clone();
            }
            let v = self.compute(e);
            self.agreed.get_or_insert_default().insert(e, v.clone());
            return v;
        }
        let roots = self.roots(e);
        if let Some((v, when)) = &self.memo[e.index()]
            && roots.locals.iter().all(|l| self.names[l.index()].when <= *when)
        {
            return v.clone();
        }
        let v = self.compute(e);
        self.memo[e.index()] = Some((v.clone(), self.clock));
        v
    }

    fn compute(&mut self, e: ExprId) -> Val {
        let body = &self.k.body;
        let elem = body.type_of(e).elem();
        if !elem.is_some_and(|t| t.is_integer() || t == Elem::BOOL) {
            return Val::One(OPEN);
        }
        match &body.exprs[e] {
            Expr::Dim(d) => {
                self.sample_asked = true;
                let bare = |e: &ExprId| self.k.body.exprs[*e] == Expr::Dim(*d);
                let counts = self.k.grid.extents.iter().any(bare);
                Val::One(if counts { self.sample.count } else { self.sample.dims[d.index() % 4] })
            }
            Expr::Arg(_) => {
                self.sample_asked = true;
                Val::One(self.sample.arg)
            }
            Expr::Element { mem: Mem::Tensor(a), index, .. } if self.agreed.is_some() => {
                let input = matches!(&self.k.args[*a].kind, ArgKind::Tensor(t) if t.mode == Mode::In);
                let known = index.iter().all(|&i| matches!(self.eval(i), Val::One(v) if v != OPEN));
                Val::One(if input && known { 0 } else { OPEN })
            }
            Expr::Cast { value, .. } => self.eval(*value),
            Expr::Unary(UnOp::Neg, a) => Val::One(0).with(&self.eval(*a), i64::checked_sub),
            Expr::Unary(UnOp::Not, a) if elem == Some(Elem::BOOL) => {
                Val::One(1).with(&self.eval(*a), i64::checked_sub)
            }
            Expr::Binary(op @ (BinOp::LogicalAnd | BinOp::LogicalOr), a, b) => {
                let decides = i64::from(*op == BinOp::LogicalOr);
                let (a, b) = (self.eval(*a), self.eval(*b));
                a.zip(&b, |a, b| match (a, b) {
                    _ if a == decides || b == decides => decides,
                    _ if a == OPEN || b == OPEN => OPEN,
                    _ => 1 - decides,
                })
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.eval(*a), self.eval(*b));
                a.with(&b, |a, b| arithmetic(*op, a, b))
            }
            Expr::Select { cond, then, other } => {
                let (c, a, b) = (self.eval(*cond), self.eval(*then), self.eval(*other));
                if let Val::One(c) = c {
                    return match c {
                        OPEN => Val::One(OPEN),
                        0 => b,
                        _ => a,
                    };
                }
                let side = |t: usize| match c.at(t) {
                    OPEN => OPEN,
                    0 => b.at(t),
                    _ => a.at(t),
                };
                Val::Each((0..self.threads).map(side).collect())
            }
            Expr::Math { f, args, .. } => {
                let v: Vec<Val> = args.iter().map(|&a| self.eval(a)).collect();
                match (f, &v[..]) {
                    (MathFn::Min, [a, b]) => a.with(b, |a, b| Some(a.min(b))),
                    (MathFn::Max, [a, b]) => a.with(b, |a, b| Some(a.max(b))),
                    (MathFn::Clamp, [x, lo, hi]) => {
                        x.with(lo, |x, lo| Some(x.max(lo))).with(hi, |x, hi| Some(x.min(hi)))
                    }
                    (MathFn::CeilDiv, [a, b]) => a.with(b, |a, b| (b > 0).then(|| (a + b - 1).div_euclid(b))),
                    (MathFn::Abs, [a]) => a.with(a, |a, _| a.checked_abs()),
                    _ => Val::One(OPEN),
                }
            }
            _ => Val::One(OPEN),
        }
    }
}

pub fn arithmetic(op: BinOp, a: i64, b: i64) -> Option<i64> {
    Some(match op {
        BinOp::Add => a.checked_add(b)?,
        BinOp::Sub => a.checked_sub(b)?,
        BinOp::Mul => a.checked_mul(b)?,
        BinOp::Div if b > 0 => a.div_euclid(b),
        BinOp::Rem if b > 0 => a.rem_euclid(b),
        BinOp::Shl if (0..31).contains(&b) => a.checked_mul(1 << b)?,
        BinOp::Shr if (0..63).contains(&b) => a >> b,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Eq => i64::from(a == b),
        BinOp::Ne => i64::from(a != b),
        BinOp::Lt => i64::from(a < b),
        BinOp::Le => i64::from(a <= b),
        BinOp::Gt => i64::from(a > b),
        BinOp::Ge => i64::from(a >= b),
        _ => return None,
    })
}
