//! Integer expressions in canonical form: a sum of products of things that stay as they are. Used to compare
//! indices and trip counts, and to bound them. Names made by `let` are replaced by their values.

use crate::program::*;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// `Σ factor · term + constant`; a term is the text of what cannot be taken apart.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Affine {
    pub terms: BTreeMap<Rc<str>, i64>,
    pub constant: i64,
}

/// The values of a kernel's `let`s.
pub struct Lets {
    values: HashMap<LocalId, ExprId>,
}

impl Lets {
    pub fn of(kernel: &Kernel) -> Lets {
        let mut values = HashMap::new();
        walk(&kernel.stmts, &mut |s| {
            if let StmtKind::Let { local, value } = s.kind
                && kernel.body.locals[local].kind == LocalKind::Let
            {
                values.insert(local, value);
            }
        });
        Lets { values }
    }

    pub fn get(&self, l: LocalId) -> Option<ExprId> {
        self.values.get(&l).copied()
    }
}

pub struct Canon<'a> {
    pub body: &'a Body,
    pub lets: &'a Lets,
    /// Names for locals, for instance a loop variable by its depth.
    pub names: HashMap<LocalId, String>,
}

/// Beyond this the form of an expression is not worth having.
const MAX_TERMS: usize = 64;

impl Canon<'_> {
    /// `None` if a factor or the constant overflows, or the form grows too large.
    pub fn affine(&self, e: ExprId) -> Option<Affine> {
        self.affine_within(e, &mut 512)
    }

    fn affine_within(&self, e: ExprId, fuel: &mut u32) -> Option<Affine> {
        *fuel = fuel.checked_sub(1)?;
        // other integers wrap, so their sums may not be taken apart
        if self.body.types[e.index()] != Type::INDEX {
            return self.term(e, fuel);
        }
        match &self.body.exprs[e] {
            Expr::Const { bits, .. } => Some(Affine { constant: *bits as i64, ..Affine::default() }),
            Expr::Local(l) if !self.names.contains_key(l) => match self.lets.get(*l) {
                Some(value) => self.affine_within(value, fuel),
                None => self.term(e, fuel),
            },
            Expr::Unary(UnOp::Neg, a) => self.affine_within(*a, fuel)?.scale(-1),
            Expr::Binary(BinOp::Add, a, b) => {
                let (x, y) = (self.affine_within(*a, fuel)?, self.affine_within(*b, fuel)?);
                x.plus(&y, 1)
            }
            Expr::Binary(BinOp::Sub, a, b) => {
                let (x, y) = (self.affine_within(*a, fuel)?, self.affine_within(*b, fuel)?);
                x.plus(&y, -1)
            }
            Expr::Binary(BinOp::Mul, a, b) => {
                let (x, y) = (self.affine_within(*a, fuel)?, self.affine_within(*b, fuel)?);
                match (x.terms.is_empty(), y.terms.is_empty()) {
                    (true, _) => y.scale(x.constant),
                    (_, true) => x.scale(y.constant),
                    _ => self.term(e, fuel),
                }
            }
            _ => self.term(e, fuel),
        }
    }

    fn term(&self, e: ExprId, fuel: &mut u32) -> Option<Affine> {
        let text: Rc<str> = self.text(e, fuel)?.into();
        Some(Affine { terms: BTreeMap::from([(text, 1)]), constant: 0 })
    }

    /// Canonical text: equal texts are equal values at one point of the program.
    pub fn text_of(&self, e: ExprId) -> Option<String> {
        self.show(e, &mut 512)
    }

    fn show(&self, e: ExprId, fuel: &mut u32) -> Option<String> {
        if self.body.types[e.index()] != Type::INDEX {
            return self.text(e, fuel);
        }
        let a = self.affine_within(e, fuel)?;
        let mut out = a.constant.to_string();
        for (term, factor) in &a.terms {
            out.push_str(&format!("+{factor}*{term}"));
        }
        Some(out)
    }

    fn text(&self, e: ExprId, fuel: &mut u32) -> Option<String> {
        *fuel = fuel.checked_sub(1)?;
        let expr = &self.body.exprs[e];
        if let Expr::Local(l) = expr {
            if let Some(name) = self.names.get(l) {
                return Some(name.clone());
            }
            if let Some(value) = self.lets.get(*l) {
                return self.show(value, fuel);
            }
            return Some(format!("local{}", l.index()));
        }
        // the node without its operands, then the operands
        let mut parts = Vec::new();
        let mut operands = Vec::new();
        expr.operands(|o| operands.push(o));
        for o in operands {
            parts.push(self.show(o, fuel)?);
        }
        Some(format!("{}({})", head(expr), parts.join(",")))
    }
}

/// What a node is, but for its operands.
fn head(expr: &Expr) -> String {
    match expr {
        Expr::Const { elem, bits } => format!("{elem}:{bits}"),
        Expr::Local(l) => format!("local{}", l.index()),
        Expr::Dim(d) => format!("dim{}", d.index()),
        Expr::Arg(a) => format!("arg{}", a.index()),
        Expr::Unary(op, _) => format!("{op:?}"),
        Expr::Binary(op, ..) => format!("{op:?}"),
        Expr::Select { .. } => "select".into(),
        Expr::Math { f, approx, .. } => format!("{}{}", f.name(), if *approx { "~" } else { "" }),
        Expr::Cast { to, sat, .. } => format!("{to}{}", if *sat { "!" } else { "" }),
        Expr::Bits { to, .. } => format!("bits {to}"),
        Expr::Intrinsic { id, .. } => format!("intrinsic{}", id.index()),
        Expr::Element { mem, or, .. } => format!("{mem:?}{}", if or.is_some() { "?" } else { "" }),
        Expr::Pick { .. } => "pick".into(),
        Expr::Splat { shape, .. } => format!("splat{shape:?}"),
        Expr::Iota { axis, shape } => format!("iota{axis}{shape:?}"),
        Expr::Transpose(_) => "transpose".into(),
        Expr::InsertAxis { axis, .. } => format!("insert{axis}"),
        Expr::Slice { axes, .. } => {
            let part = |a: &SliceAxis| match a {
                SliceAxis::Span { len, .. } => len.to_string(),
                SliceAxis::At(_) => "at".into(),
            };
            format!("slice[{}]", axes.iter().map(part).collect::<Vec<_>>().join(";"))
        }
        Expr::Broadcast { shape, .. } => format!("broadcast{shape:?}"),
        Expr::Reshape { shape, .. } => format!("reshape{shape:?}"),
    }
}

impl Affine {
    /// `self - other`, if that is a plain number.
    pub fn distance(&self, other: &Affine) -> Option<i64> {
        (self.terms == other.terms).then(|| self.constant.checked_sub(other.constant)).flatten()
    }

    fn plus(mut self, other: &Affine, factor: i64) -> Option<Affine> {
        self.constant = self.constant.checked_add(other.constant.checked_mul(factor)?)?;
        for (term, f) in &other.terms {
            let sum = self.terms.get(term).copied().unwrap_or(0).checked_add(f.checked_mul(factor)?)?;
            if sum == 0 {
                self.terms.remove(term);
            } else {
                self.terms.insert(term.clone(), sum);
            }
        }
        (self.terms.len() <= MAX_TERMS).then_some(self)
    }

    fn scale(mut self, factor: i64) -> Option<Affine> {
        if factor == 0 {
            return Some(Affine::default());
        }
        self.constant = self.constant.checked_mul(factor)?;
        for f in self.terms.values_mut() {
            *f = f.checked_mul(factor)?;
        }
        Some(self)
    }
}
