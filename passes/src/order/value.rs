//! What is known of an index: a sum of symbols that all threads agree on, and a number for each thread.

use pantile_ir::program::*;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// `Σ factor · symbol + part[thread]`, modulo `modulus` where it is not 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub symbols: BTreeMap<Rc<str>, i64>,
    /// one number, or one for each thread
    pub part: Rc<Vec<i64>>,
    pub modulus: i64,
}

/// By what most values differ in: a look at every thread's number would cost more than it saves.
impl Hash for Known {
    fn hash<H: Hasher>(&self, h: &mut H) {
        let n = self.part.len();
        (&self.symbols, self.modulus, n).hash(h);
        (self.part.first(), self.part.get(n / 2), self.part.last()).hash(h);
    }
}

/// `None`: nothing is known.
pub type Val = Option<Rc<Known>>;

/// Stands for how many steps of a loop lie between two accesses: 1 or more.
pub const STEPS: &str = "steps";

impl Known {
    pub fn number(n: i64) -> Known {
        Known { symbols: BTreeMap::new(), part: Rc::new(vec![n]), modulus: 0 }
    }

    pub fn table(part: Vec<i64>) -> Known {
        Known { symbols: BTreeMap::new(), part: Rc::new(part), modulus: 0 }
    }

    pub fn symbol(name: &str) -> Known {
        Known { symbols: [(Rc::from(name), 1)].into(), ..Known::number(0) }
    }

    pub fn of(&self, thread: usize) -> i64 {
        self.part[if self.part.len() == 1 { 0 } else { thread }]
    }

    pub fn constant(&self) -> Option<i64> {
        (self.symbols.is_empty() && self.part.len() == 1 && self.modulus == 0).then(|| self.part[0])
    }

    /// The same for all threads.
    pub fn is_uniform(&self) -> bool {
        self.part.len() == 1
    }

    /// Numbers only.
    pub fn numbers(&self) -> Option<&Rc<Vec<i64>>> {
        (self.symbols.is_empty() && self.modulus == 0).then_some(&self.part)
    }

    pub fn text(&self) -> Option<String> {
        self.is_uniform().then(|| format!("{:?}+{}%{}", self.symbols, self.part[0], self.modulus))
    }

    fn each(&self, other: &Known, f: impl Fn(i64, i64) -> Option<i64>) -> Option<Rc<Vec<i64>>> {
        let n = self.part.len().max(other.part.len());
        (0..n).map(|t| f(self.of(t), other.of(t))).collect::<Option<Vec<_>>>().map(Rc::new)
    }

    /// `self + factor · other`
    pub fn plus(&self, other: &Known, factor: i64) -> Option<Known> {
        if self.modulus != 0 || other.modulus != 0 {
            return None;
        }
        let part = self.each(other, |a, b| a.checked_add(b.checked_mul(factor)?))?;
        let mut symbols = self.symbols.clone();
        for (s, n) in &other.symbols {
            let sum = symbols.entry(s.clone()).or_default();
            *sum = sum.checked_add(n.checked_mul(factor)?)?;
        }
        symbols.retain(|_, n| *n != 0);
        Some(Known { symbols, part, modulus: 0 })
    }

    pub fn scale(&self, n: i64) -> Option<Known> {
        Known::number(0).plus(self, n)
    }

    pub fn divide(&self, n: i64) -> Option<Known> {
        let whole = self.symbols.values().all(|f| f % n == 0);
        if n <= 0 || self.modulus != 0 || !whole {
            return None;
        }
        let symbols = self.symbols.iter().map(|(s, f)| (s.clone(), f / n)).collect();
        Some(Known {
            symbols,
            part: Rc::new(self.part.iter().map(|p| p.div_euclid(n)).collect()),
            modulus: 0,
        })
    }

    pub fn modulo(&self, n: i64) -> Option<Known> {
        if n <= 0 || self.modulus != 0 {
            return None;
        }
        let mut symbols = self.symbols.clone();
        symbols.retain(|_, f| *f % n != 0);
        let modulus = if symbols.is_empty() { 0 } else { n };
        Some(Known { symbols, part: Rc::new(self.part.iter().map(|p| p.rem_euclid(n)).collect()), modulus })
    }

    /// By operator, on numbers alone.
    pub fn apply(&self, other: &Known, f: impl Fn(i64, i64) -> Option<i64>) -> Option<Known> {
        self.numbers()?;
        other.numbers()?;
        let part = self.each(other, f)?;
        Some(Known { symbols: BTreeMap::new(), part, modulus: 0 })
    }
}

/// A number's operator.
pub fn operate(op: BinOp, a: i64, b: i64) -> Option<i64> {
    let truth = |c: bool| Some(i64::from(c));
    match op {
        BinOp::Add => a.checked_add(b),
        BinOp::Sub => a.checked_sub(b),
        BinOp::Mul => a.checked_mul(b),
        BinOp::Div => (b > 0).then(|| a.div_euclid(b)),
        BinOp::Rem => (b > 0).then(|| a.rem_euclid(b)),
        BinOp::Shl => u32::try_from(b).ok().filter(|&b| b < 31 && a.abs() < 1 << 31).map(|b| a << b),
        BinOp::Shr => u32::try_from(b).ok().filter(|&b| b < 63).map(|b| a >> b),
        BinOp::And | BinOp::LogicalAnd => Some(a & b),
        BinOp::Or | BinOp::LogicalOr => Some(a | b),
        BinOp::Xor => Some(a ^ b),
        BinOp::Eq => truth(a == b),
        BinOp::Ne => truth(a != b),
        BinOp::Lt => truth(a < b),
        BinOp::Le => truth(a <= b),
        BinOp::Gt => truth(a > b),
        BinOp::Ge => truth(a >= b),
    }
}
