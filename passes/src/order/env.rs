//! Values of names and expressions along the text.

use super::value::{Known, STEPS, Val, operate};
use pantile_ir::hash::Map;
use pantile_ir::program::*;
use pantile_ir::verify::{KernelInfo, Level};
use std::rc::Rc;

pub struct Env<'a> {
    pub k: &'a Kernel,
    pub info: &'a KernelInfo,
    pub threads: usize,
    /// by local: its value, and when it got it
    names: Vec<(Val, u64)>,
    clock: u64,
    /// by expression: values with the time of their making, which hold as long as no name in them got another
    memo: Vec<Option<(Val, u64)>>,
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
            clock: 0,
            memo: vec![None; k.body.exprs.len()],
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
        (self.clock, self.fresh) = (self.clock + 1, 0);
        self.names.fill((None, self.clock));
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
        self.clock += 1;
        self.names[l.index()] = (v, self.clock);
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

    pub fn eval(&mut self, e: ExprId) -> Val {
        let roots = self.roots(e);
        if let Some((v, made)) = &self.memo[e.index()]
            && roots.iter().all(|l| self.names[l.index()].1 <= *made)
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
            return None;
        }
        match &body.exprs[e] {
            Expr::Const { bits, .. } => Some(Rc::new(Known::number(*bits as i64))),
            Expr::Local(l) => self.get(*l),
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
    pub fn may(&mut self, cond: ExprId, no: bool) -> Vec<bool> {
        match self.k.body.exprs[cond] {
            Expr::Binary(op @ (BinOp::LogicalAnd | BinOp::LogicalOr), a, b) => {
                let (x, y) = (self.may(a, no), self.may(b, no));
                let both = (op == BinOp::LogicalAnd) != no;
                x.iter().zip(&y).map(|(&x, &y)| if both { x && y } else { x || y }).collect()
            }
            Expr::Unary(UnOp::Not, a) => self.may(a, !no),
            _ => match self.eval(cond).as_ref().and_then(|v| v.numbers().cloned()) {
                Some(v) => {
                    (0..self.threads).map(|t| (v[if v.len() == 1 { 0 } else { t }] != 0) != no).collect()
                }
                None => vec![true; self.threads],
            },
        }
    }
}
