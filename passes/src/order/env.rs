//! Values of names and expressions along the text.

use super::value::{Known, STEPS, Val, operate};
use pantile_ir::hash::Map;
use pantile_ir::program::*;
use pantile_ir::verify::{KernelInfo, Level};
use smallvec::SmallVec;
use std::rc::Rc;

/// An expression and, by their numbers, the values of the names in it.
type Key = (ExprId, SmallVec<[u32; 4]>);

pub struct Env<'a> {
    pub k: &'a Kernel,
    pub info: &'a KernelInfo,
    pub threads: usize,
    /// by local: its value and the value's number
    names: Vec<(Val, u32)>,
    /// Equal values have one number; 0 is the unknown one.
    numbers: Map<Rc<Known>, u32>,
    /// by expression and the values of its names
    memo: Map<Key, Val>,
    /// the same of conditions: who may find them true (or false)
    masks: Map<(Key, bool), Rc<Vec<bool>>>,
    roots: Vec<Option<Rc<[LocalId]>>>,
    /// what blocks assign
    assigned: Map<*const Stmt, Rc<[LocalId]>>,
    /// Makes symbols of different times different.
    fresh: u32,
}

impl<'a> Env<'a> {
    pub fn new(k: &'a Kernel, info: &'a KernelInfo) -> Env<'a> {
        let threads = k.threads.as_ref().map_or(1, Threads::count) as usize;
        let mut env = Env {
            k,
            info,
            threads,
            names: vec![(None, 0); k.body.locals.len()],
            numbers: Map::default(),
            memo: Map::default(),
            masks: Map::default(),
            roots: vec![None; k.body.exprs.len()],
            assigned: Map::default(),
            fresh: 0,
        };
        env.restart();
        env
    }

    /// Nothing is known but numbers of threads and blocks.
    pub fn restart(&mut self) {
        let k = self.k;
        self.fresh = 0;
        self.names.fill((None, 0));
        let mut inner = 1;
        for &(axis, n) in k.threads.iter().flat_map(|t| t.axes.iter().rev()) {
            let n = n.max(1) as usize;
            let part = (0..self.threads).map(|t| (t / inner % n) as i64).collect();
            self.set(axis, Some(Rc::new(Known::table(part))));
            inner *= n;
        }
        for (i, &l) in k.grid.locals.iter().enumerate() {
            self.set(l, Some(Rc::new(Known::symbol(&format!("grid{i}")))));
        }
    }

    pub fn set(&mut self, l: LocalId, v: Val) {
        let next = self.numbers.len() as u32 + 1;
        let number = v.as_ref().map_or(0, |v| *self.numbers.entry(v.clone()).or_insert(next));
        self.names[l.index()] = (v, number);
    }

    /// The names that an expression's value hangs on.
    fn roots(&mut self, e: ExprId) -> Rc<[LocalId]> {
        if let Some(r) = &self.roots[e.index()] {
            return r.clone();
        }
        let (mut list, mut inner) = (Vec::new(), Vec::new());
        let expr = &self.k.body.exprs[e];
        if let Expr::Local(l) = expr {
            list.push(*l);
        }
        expr.operands(|o| inner.push(o));
        for o in inner {
            list.extend(self.roots(o).iter().copied());
        }
        list.sort_unstable();
        list.dedup();
        let r: Rc<[LocalId]> = list.into();
        self.roots[e.index()] = Some(r.clone());
        r
    }

    pub fn get(&self, l: LocalId) -> Val {
        self.names[l.index()].0.clone()
    }

    /// A new symbol, for a value that all threads agree on.
    pub fn symbol(&mut self, what: &str) -> Val {
        self.fresh += 1;
        Some(Rc::new(Known::symbol(&format!("{what}#{}", self.fresh))))
    }

    /// A value of which only its uniformity may be known.
    pub fn open(&mut self, e: ExprId) -> Val {
        if self.info.expr(e).level >= Level::Block { self.symbol("v") } else { None }
    }

    /// Some steps later: 1, or any number of them.
    pub fn later(&mut self, v: &Val, step: i64, any: bool) -> Val {
        let steps = if any { Known::symbol(STEPS) } else { Known::number(1) };
        v.as_ref().and_then(|v| v.plus(&steps, step)).map(Rc::new)
    }

    /// Forgets what a block may assign.
    pub fn forget(&mut self, block: &Block) {
        let Some(first) = block.first() else { return };
        let known = self.assigned.entry(first).or_insert_with(|| {
            let mut list = Vec::new();
            walk(block, &mut |s| {
                if let StmtKind::Assign { local, .. } | StmtKind::Update { local, .. } = s.kind {
                    list.push(local);
                }
            });
            list.into()
        });
        for &l in known.clone().iter() {
            if self.get(l).is_some() {
                self.set(l, None);
            }
        }
    }

    fn key(&mut self, e: ExprId) -> Key {
        let roots = self.roots(e);
        (e, roots.iter().map(|l| self.names[l.index()].1).collect())
    }

    pub fn eval(&mut self, e: ExprId) -> Val {
        if let Expr::Local(l) = self.k.body.exprs[e] {
            return self.get(l);
        }
        let key = self.key(e);
        if let Some(v) = self.memo.get(&key) {
            return v.clone();
        }
        let v = self.compute(e);
        self.memo.insert(key, v.clone());
        v
    }

    fn compute(&mut self, e: ExprId) -> Val {
        let body = &self.k.body;
        let elem = body.type_of(e).elem();
        if !elem.is_some_and(|t| t.is_integer() || t == Elem::BOOL) {
            return None;
        }
        match &body.exprs[e] {
            Expr::Const { bits, .. } => Some(Rc::new(Known::number(*bits as i64))),
            Expr::Dim(d) => Some(Rc::new(Known::symbol(&format!("dim{}", d.index())))),
            Expr::Arg(a) => Some(Rc::new(Known::symbol(&format!("arg{}", a.index())))),
            Expr::Unary(UnOp::Neg, a) => self.eval(*a)?.scale(-1).map(Rc::new),
            Expr::Unary(UnOp::Not, a) if elem == Some(Elem::BOOL) => {
                Known::number(1).plus(self.eval(*a)?.as_ref(), -1).map(Rc::new)
            }
            Expr::Binary(op, a, b) => self.binary(*op, *a, *b),
            Expr::Cast { value, .. } => self.eval(*value),
            Expr::Select { cond, then, other } => {
                let (c, a, b) = (self.eval(*cond)?, self.eval(*then)?, self.eval(*other)?);
                if let Some(c) = c.constant() {
                    return Some(if c != 0 { a } else { b });
                }
                let (c, x, y) = (c.numbers()?, a.numbers()?, b.numbers()?);
                let at = |v: &Vec<i64>, t: usize| v[if v.len() == 1 { 0 } else { t }];
                let part = (0..self.threads).map(|t| if at(c, t) != 0 { at(x, t) } else { at(y, t) });
                Some(Rc::new(Known::table(part.collect())))
            }
            Expr::Math { f, args, .. } => self.math(*f, args),
            Expr::Element { mem: Mem::Tensor(arg), index, .. } if self.constant_tensor(*arg) => {
                let mut text = format!("t{}", arg.index());
                for &i in index {
                    text.push_str(&format!("[{}]", self.eval(i)?.text()?));
                }
                Some(Rc::new(Known::symbol(&text)))
            }
            _ => None,
        }
    }

    fn constant_tensor(&self, arg: ArgId) -> bool {
        matches!(&self.k.args[arg].kind, ArgKind::Tensor(t) if t.mode == Mode::In)
    }

    fn binary(&mut self, op: BinOp, a: ExprId, b: ExprId) -> Val {
        let (x, y) = (self.eval(a)?, self.eval(b)?);
        let exact = match (op, x.constant(), y.constant()) {
            (BinOp::Add, ..) => x.plus(&y, 1),
            (BinOp::Sub, ..) => x.plus(&y, -1),
            (BinOp::Mul, Some(n), _) => y.scale(n),
            (BinOp::Mul, _, Some(n)) => x.scale(n),
            (BinOp::Div, _, Some(n)) => x.divide(n),
            (BinOp::Rem, _, Some(n)) => x.modulo(n),
            _ if op.is_comparison() => x
                .plus(&y, -1)
                .filter(|d| d.symbols.is_empty())
                .and_then(|d| d.apply(&Known::number(0), |d, _| operate(op, d, 0))),
            _ => x.apply(&y, |a, b| operate(op, a, b)),
        };
        let text = || Some(Known::symbol(&format!("({} {op:?} {})", x.text()?, y.text()?)));
        exact.or_else(text).map(Rc::new)
    }

    fn math(&mut self, f: MathFn, args: &[ExprId]) -> Val {
        let values: Vec<Rc<Known>> = args.iter().map(|&a| self.eval(a)).collect::<Option<_>>()?;
        let exact = match (f, &values[..]) {
            (MathFn::Min, [a, b]) => a.apply(b, |a, b| Some(a.min(b))),
            (MathFn::Max, [a, b]) => a.apply(b, |a, b| Some(a.max(b))),
            (MathFn::CeilDiv, [a, b]) => a.apply(b, |a, b| (b > 0).then(|| (a + b - 1).div_euclid(b))),
            _ => None,
        };
        let text = || {
            let parts: Option<Vec<String>> = values.iter().map(|v| v.text()).collect();
            Some(Known::symbol(&format!("{}({})", f.name(), parts?.join(","))))
        };
        exact.or_else(text).map(Rc::new)
    }

    /// Threads for which the condition may hold (or, with `no`, may fail).
    pub fn may(&mut self, cond: ExprId, no: bool) -> Rc<Vec<bool>> {
        let key = (self.key(cond), no);
        if let Some(known) = self.masks.get(&key) {
            return known.clone();
        }
        let may = Rc::new(self.each_may(cond, no));
        self.masks.insert(key, may.clone());
        may
    }

    fn each_may(&mut self, cond: ExprId, no: bool) -> Vec<bool> {
        match self.k.body.exprs[cond] {
            Expr::Binary(op @ (BinOp::LogicalAnd | BinOp::LogicalOr), a, b) => {
                let (x, y) = (self.may(a, no), self.may(b, no));
                let both = (op == BinOp::LogicalAnd) != no;
                x.iter().zip(y.iter()).map(|(&x, &y)| if both { x && y } else { x || y }).collect()
            }
            Expr::Unary(UnOp::Not, a) => self.each_may(a, !no),
            _ => match self.eval(cond).as_ref().and_then(|v| v.numbers().cloned()) {
                Some(v) => {
                    (0..self.threads).map(|t| (v[if v.len() == 1 { 0 } else { t }] != 0) != no).collect()
                }
                None => vec![true; self.threads],
            },
        }
    }
}
