//! Expressions of type `index`, with the range of values that they can have: subscripts stay inside by construction.

use super::exprs::paren;
use super::state::{BOOL, El, Gen, Var};
use pantile_abi::DType;

/// An index expression.
#[derive(Clone, Debug)]
pub(super) struct Ix {
    pub text: String,
    pub lo: i64,
    pub hi: i64,
    /// A bare number.
    pub lit: bool,
}

const FAR: i64 = 1 << 20;

impl Ix {
    fn lit(n: i64) -> Ix {
        let text = if n < 0 { format!("({n})") } else { n.to_string() };
        Ix { text, lo: n, hi: n, lit: true }
    }
}

impl Gen<'_> {
    fn index_vars(&self, lo: i64, hi: i64) -> Vec<Var> {
        let fits = |v: &&Var| {
            v.el == El::Index && v.shape.is_empty() && v.range.0 >= lo && v.range.1 <= hi && self.usable(v)
        };
        self.vars.iter().filter(fits).cloned().collect()
    }

    /// Any index, not far from zero.
    pub fn index(&mut self, depth: u32) -> Ix {
        self.budget -= 1;
        if depth == 0 || self.budget < 0 {
            return self.index_leaf();
        }
        let sub = |g: &mut Self| g.index(depth - 1);
        match self.c.below(12) {
            0..=2 => self.index_leaf(),
            3 => {
                let (a, b) = (sub(self), sub(self));
                self.bin("+", &a, &b, a.lo + b.lo, a.hi + b.hi)
            }
            4 => {
                let (a, b) = (sub(self), sub(self));
                self.bin("-", &a, &b, a.lo - b.hi, a.hi - b.lo)
            }
            5 => {
                let (a, n) = (sub(self), self.c.range(-2, 4));
                let (x, y) = (a.lo * n, a.hi * n);
                self.bin("*", &a, &Ix::lit(n), x.min(y), x.max(y))
            }
            6 => {
                let (a, n) = (sub(self), self.c.range(1, 7));
                self.bin("/", &a, &Ix::lit(n), a.lo.div_euclid(n), a.hi.div_euclid(n))
            }
            7 => {
                let (a, n) = (sub(self), self.c.range(1, 9));
                self.bin("%", &a, &Ix::lit(n), 0, n - 1)
            }
            8 => {
                let (a, b) = (sub(self), sub(self));
                let f = self.c.pick(&["min", "max"]);
                let range = match f {
                    "min" => (a.lo.min(b.lo), a.hi.min(b.hi)),
                    _ => (a.lo.max(b.lo), a.hi.max(b.hi)),
                };
                Ix {
                    text: format!("{f}({}, {})", a.text, b.text),
                    lo: range.0,
                    hi: range.1,
                    lit: a.lit && b.lit,
                }
            }
            9 if !self.pure => {
                let d = self.c.pick(&[DType::I8, DType::I16, DType::U8]);
                let e = self.scalar(El::D(d), depth - 1);
                let half = 1i64 << (d.bits() - 1);
                let (lo, hi) = if d.is_signed() { (-half, half - 1) } else { (0, 2 * half - 1) };
                Ix { text: format!("index({})", e.text), lo, hi, lit: false }
            }
            10 if !self.pure => {
                let c = self.scalar(BOOL, depth - 1);
                let (a, b) = self.lazily(|g| (sub(g), sub(g)));
                let text = format!("(if {} {{ {} }} else {{ {} }})", c.text, a.text, b.text);
                Ix { text, lo: a.lo.min(b.lo), hi: a.hi.max(b.hi), lit: false }
            }
            _ => {
                let (a, b, n) = (sub(self), sub(self), self.c.range(1, 5));
                let product = [a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi];
                let (lo, hi) =
                    (product.into_iter().min().unwrap_or(0), product.into_iter().max().unwrap_or(0));
                if hi - lo > FAR {
                    return self.bin("%", &a, &Ix::lit(n), 0, n - 1);
                }
                self.bin("*", &a, &b, lo, hi)
            }
        }
    }

    fn bin(&mut self, op: &str, a: &Ix, b: &Ix, lo: i64, hi: i64) -> Ix {
        Ix { text: paren(&a.text, op, &b.text), lo, hi, lit: a.lit && b.lit }
    }

    fn index_leaf(&mut self) -> Ix {
        let vars = self.index_vars(-FAR, FAR);
        let dims = if self.pure || self.closed { Vec::new() } else { self.dims.clone() };
        match self.c.below(4) {
            1 | 2 if !vars.is_empty() => {
                let v = &vars[self.c.below(vars.len())];
                Ix { text: v.name.clone(), lo: v.range.0, hi: v.range.1, lit: false }
            }
            3 if !dims.is_empty() => {
                let (name, n) = dims[self.c.below(dims.len())].clone();
                Ix { text: name, lo: n, hi: n, lit: false }
            }
            _ => {
                let n = self.c.range(0, 9);
                Ix::lit(n)
            }
        }
    }

    /// An index from 0 to `n - 1`.
    pub fn inside(&mut self, n: i64) -> String {
        let vars = self.index_vars(0, n - 1);
        match self.c.below(5) {
            1 | 2 if !vars.is_empty() => vars[self.c.below(vars.len())].name.clone(),
            3 => {
                let e = self.index(2);
                if e.lo >= 0 && e.hi < n { e.text } else { format!("({} % {n})", e.text) }
            }
            4 if n <= 1 << 20 => {
                let d = self.c.pick(&[DType::I32, DType::U8, DType::I64]);
                let vars = self.index_vars(0, (n - 1).min(127));
                match vars.first() {
                    Some(v) => format!("{}({})", d.name(), v.name),
                    None => self.c.range(0, n - 1).to_string(),
                }
            }
            _ => self.c.range(0, n - 1).to_string(),
        }
    }

    /// An index of type `index` that cannot be folded to a number: for places where numbers have no type.
    pub fn typed_index(&mut self, depth: u32) -> Ix {
        let e = self.index(depth);
        if e.lit { Ix { text: format!("index({})", e.text), lit: false, ..e } } else { e }
    }
}
