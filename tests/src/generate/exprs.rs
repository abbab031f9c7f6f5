//! Typed expressions, scalars and tiles alike: operators, functions, choices, conversions.

use super::state::{BOOL, El, Ex, F32, Gen};
use pantile_abi::DType;

pub(super) fn paren(a: &str, op: &str, b: &str) -> String {
    format!("({a} {op} {b})")
}

pub(super) const FLOATS: [DType; 4] = [DType::F32, DType::F16, DType::BF16, DType::F64];
pub(super) const INTS: [DType; 10] = [
    DType::I32,
    DType::I8,
    DType::U8,
    DType::U32,
    DType::I16,
    DType::U16,
    DType::I64,
    DType::U64,
    DType::I4,
    DType::U4,
];
const FLOAT8: [DType; 2] = [DType::F8E4M3, DType::F8E5M2];

/// Ways to make a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Leaf,
    Binary,
    Unary,
    Math,
    Where,
    Cast,
    Bits,
    Call,
    /// scalars: `if c { a } else { b }`
    If,
    /// scalars: an element of memory or of a tile, a full fold
    Source,
    /// tiles: see `tiles`
    Shape,
    Fold,
    Product,
}

impl Gen<'_> {
    pub fn numeric(&mut self) -> El {
        match self.c.below(8) {
            0 | 1 => F32,
            2..=4 => El::D(self.c.pick(&FLOATS)),
            _ => El::D(self.c.pick(&INTS)),
        }
    }

    /// A type that tensors and tiles of this program may have.
    pub fn any_type(&mut self) -> El {
        match self.c.below(12) {
            0..=8 => self.numeric(),
            9 => BOOL,
            _ => El::D(self.c.pick(&FLOAT8)),
        }
    }

    pub fn scalar(&mut self, el: El, depth: u32) -> Ex {
        let e = self.value(el, &[], depth);
        self.settle(e, el)
    }

    /// A value whose type does not depend on its place.
    pub fn settle(&mut self, e: Ex, el: El) -> Ex {
        if e.lit { Ex { text: format!("{}({})", self.ty(el), e.text), lit: false, ..e } } else { e }
    }

    pub fn lazily<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.lazy += 1;
        let result = f(self);
        self.lazy -= 1;
        result
    }

    /// A value of an element type and shape (empty for a scalar); a scalar may be a bare number.
    pub fn value(&mut self, el: El, shape: &[u32], depth: u32) -> Ex {
        self.budget -= 1;
        if el == El::Index {
            return self.index_value(shape, depth);
        }
        if depth == 0 || self.budget <= 0 {
            return self.leaf(el, shape);
        }
        let ways = self.ways(el, shape);
        let way = self.c.pick(&ways);
        let made = match way {
            Way::Leaf => None,
            Way::Binary => Some(self.binary(el, shape, depth)),
            Way::Unary => Some(self.unary(el, shape, depth)),
            Way::Math => Some(self.math(el, shape, depth)),
            Way::Where => Some(self.choice(el, shape, depth)),
            Way::Cast => self.cast(el, shape, depth),
            Way::Bits => self.bits_view(el, shape, depth),
            Way::Call => self.call(el, shape, depth),
            Way::If => Some(self.if_value(el, depth)),
            Way::Source => self.source(el, depth),
            Way::Shape => self.reshaped(el, shape, depth),
            Way::Fold => self.folded(el, shape, depth),
            Way::Product => self.product(el, shape, depth),
        };
        match made {
            Some(e) => e,
            None => self.leaf(el, shape),
        }
    }

    fn ways(&mut self, el: El, shape: &[u32]) -> Vec<Way> {
        use Way::*;
        let mut ways = vec![Leaf];
        let tile = !shape.is_empty();
        if el == BOOL {
            ways.extend([Binary, Binary, Binary, Unary, Math, Where]);
        } else if el.is_float8() {
            ways.extend([Cast, Cast, Where, Bits]);
        } else {
            ways.extend([Binary, Binary, Binary, Unary, Math, Math, Where, Cast, Cast, Bits, Call]);
        }
        if !tile && !self.pure {
            ways.extend([If, Source, Source]);
        }
        if tile && !self.pure && self.lazy == 0 {
            ways.extend([Shape, Shape, Fold]);
            if matches!(el, El::D(DType::F32 | DType::F64 | DType::I32)) {
                ways.push(Product);
            }
        }
        ways
    }

    /// Two values that join to `shape`; at least one has it, and at most one is a bare number.
    pub fn pair(&mut self, el: El, shape: &[u32], depth: u32) -> (Ex, Ex) {
        let swap = self.c.chance(1, 2);
        let whole = self.value(el, shape, depth - 1);
        let whole = self.settle(whole, el);
        let other = self.operand(el, shape, depth - 1);
        if swap { (other, whole) } else { (whole, other) }
    }

    /// A value that stretches to `shape`.
    pub fn operand(&mut self, el: El, shape: &[u32], depth: u32) -> Ex {
        let mut shape = shape.to_vec();
        match self.c.below(6) {
            0..=2 => {}
            3 | 4 => shape.clear(),
            _ => {
                for n in &mut shape {
                    if self.c.chance(1, 2) {
                        *n = 1;
                    }
                }
            }
        }
        self.value(el, &shape, depth)
    }

    /// Edges of values that are joined element by element.
    pub fn joined(&self, shape: &[u32], parts: &[&Ex]) -> Vec<super::state::Edge> {
        let mut edges = vec![super::state::Edge::Full; shape.len()];
        for part in parts {
            for (edge, other) in edges.iter_mut().zip(&part.edges) {
                *edge = edge.join(other);
            }
        }
        edges
    }

    fn binary(&mut self, el: El, shape: &[u32], depth: u32) -> Ex {
        if el == BOOL {
            return self.bool_binary(shape, depth);
        }
        let ops: &[&str] = if el.is_float() {
            &["+", "-", "*", "/"]
        } else {
            &["+", "-", "*", "&", "|", "^", "/", "%", "<<", ">>"]
        };
        let op = self.c.pick(ops);
        let (a, b) = self.pair(el, shape, depth);
        let edges = self.joined(shape, &[&a, &b]);
        let text = match op {
            "/" | "%" if !el.is_float() => {
                let b = self.settle(b, el);
                paren(&a.text, op, &format!("({} | 1)", b.text))
            }
            "<<" | ">>" => {
                let b = self.settle(b, el);
                paren(&a.text, op, &format!("({} & {})", b.text, el.bits() - 1))
            }
            _ => paren(&a.text, op, &b.text),
        };
        Ex::tile(text, edges)
    }

    fn bool_binary(&mut self, shape: &[u32], depth: u32) -> Ex {
        match self.c.below(4) {
            0..=2 => {
                let index = self.c.chance(1, 8) && !self.pure;
                let el = if index { El::Index } else { self.comparable() };
                let op = self.c.pick(&["<", "<=", ">", ">=", "==", "!="]);
                let (a, b) = self.pair(el, shape, depth);
                let edges = self.joined(shape, &[&a, &b]);
                Ex::tile(paren(&a.text, op, &b.text), edges)
            }
            _ => {
                let op = self.c.pick(&["&&", "||", "&", "|", "^", "==", "!="]);
                let whole = self.value(BOOL, shape, depth - 1);
                let whole = self.settle(whole, BOOL);
                // the right side of `&&` on scalars is evaluated only if needed
                let lazy = shape.is_empty() && matches!(op, "&&" | "||");
                let other = match lazy {
                    true => self.lazily(|g| g.operand(BOOL, shape, depth - 1)),
                    false => self.operand(BOOL, shape, depth - 1),
                };
                let other = self.settle(other, BOOL);
                let edges = self.joined(shape, &[&whole, &other]);
                Ex::tile(paren(&whole.text, op, &other.text), edges)
            }
        }
    }

    fn comparable(&mut self) -> El {
        if self.pure { self.pure_el() } else { self.numeric() }
    }

    /// The one type of a pure function's names.
    pub fn pure_el(&self) -> El {
        self.vars.iter().rev().find(|v| v.any_shape).map_or(F32, |v| v.el)
    }

    fn unary(&mut self, el: El, shape: &[u32], depth: u32) -> Ex {
        let e = self.value(el, shape, depth - 1);
        let e = self.settle(e, el);
        let op = match el {
            BOOL => "!",
            _ if el.is_float() => "-",
            _ => self.c.pick(&["-", "!"]),
        };
        Ex { text: format!("({op}{})", e.text), ..e }
    }

    fn math(&mut self, el: El, shape: &[u32], depth: u32) -> Ex {
        if el == BOOL {
            let of = if self.pure { self.pure_el() } else { El::D(self.c.pick(&FLOATS)) };
            if !of.is_float() {
                return self.bool_binary(shape, depth);
            }
            let f = self.c.pick(&["isnan", "isinf"]);
            let e = self.value(of, shape, depth - 1);
            let e = self.settle(e, of);
            return Ex { text: format!("{f}({})", e.text), ..e };
        }
        const ONE: [&str; 21] = [
            "abs",
            "floor",
            "ceil",
            "round",
            "sqrt",
            "rsqrt",
            "rcp",
            "exp",
            "exp2",
            "log",
            "log2",
            "tanh",
            "sin",
            "cos",
            "erf",
            "exp2.approx",
            "rcp.approx",
            "tanh.approx",
            "rsqrt.approx",
            "exp.approx",
            "log2.approx",
        ];
        let two: &[&str] = if el.is_float() { &["min", "max", "pow"] } else { &["min", "max", "ceildiv"] };
        match self.c.below(6) {
            0..=2 => {
                let f = if el.is_float() { self.c.pick(&ONE) } else { "abs" };
                let e = self.value(el, shape, depth - 1);
                let e = self.settle(e, el);
                Ex { text: format!("{f}({})", e.text), ..e }
            }
            3 | 4 => {
                let f = self.c.pick(two);
                let (a, mut b) = self.pair(el, shape, depth);
                if f == "ceildiv" {
                    b = self.settle(b, el);
                    b.text = format!("({} | 1)", b.text);
                }
                let edges = self.joined(shape, &[&a, &b]);
                Ex::tile(format!("{f}({}, {})", a.text, b.text), edges)
            }
            _ => {
                let f = if el.is_float() { self.c.pick(&["fma", "clamp"]) } else { "clamp" };
                let (a, b) = self.pair(el, shape, depth);
                let c = self.operand(el, shape, depth - 1);
                let edges = self.joined(shape, &[&a, &b, &c]);
                Ex::tile(format!("{f}({}, {}, {})", a.text, b.text, c.text), edges)
            }
        }
    }

    /// `where(c, a, b)`: any of the three may be the one that has the shape.
    fn choice(&mut self, el: El, shape: &[u32], depth: u32) -> Ex {
        let c = self.operand(BOOL, shape, depth - 1);
        // a condition that is known while compiling takes no part in the shape
        let c = if c.lit { self.value(BOOL, shape, 1) } else { c };
        let c = self.settle(c, BOOL);
        let (a, b) = self.pair(el, shape, depth);
        let (a, b) = (self.settle(a, el), self.settle(b, el));
        let edges = self.joined(shape, &[&c, &a, &b]);
        Ex::tile(format!("where({}, {}, {})", c.text, a.text, b.text), edges)
    }

    fn if_value(&mut self, el: El, depth: u32) -> Ex {
        let c = self.scalar(BOOL, depth - 1);
        let (a, b) = self.lazily(|g| (g.scalar(el, depth - 1), g.scalar(el, depth - 1)));
        Ex::scalar(format!("(if {} {{ {} }} else {{ {} }})", c.text, a.text, b.text))
    }

    /// A conversion that keeps values in range, or says `.sat`.
    fn cast(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        let name = self.ty(el);
        let (from, sat) = match el {
            _ if self.pure => return None,
            _ if el.is_int() => match self.c.below(5) {
                0..=2 => (El::D(self.c.pick(&INTS)), false),
                3 if self.c.chance(1, 3) => (El::Index, false),
                3 => (El::D(self.c.pick(&INTS)), true),
                _ => return self.rounded(el, shape, depth),
            },
            _ => match self.c.below(8) {
                0..=2 => (El::D(self.c.pick(&FLOATS)), false),
                3 => (El::D(self.c.pick(&FLOATS)), true),
                4 => (El::D(self.c.pick(&FLOAT8)), false),
                5 => (BOOL, false),
                _ => (El::D(self.c.pick(&INTS)), false),
            },
        };
        let from = if el.is_int() && !sat && self.c.chance(1, 6) { BOOL } else { from };
        let e = self.value(from, shape, depth - 1);
        let mut e = self.settle(e, from);
        if from == El::Index {
            // known numbers must fit
            e.text = format!("max({}, 0) % 5", e.text);
        }
        let sat = if sat { ".sat" } else { "" };
        Some(Ex { text: format!("{name}{sat}({})", e.text), ..e })
    }

    /// A float as an integer: clamped, or from a value that is small by its making.
    fn rounded(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        let from = El::D(self.c.pick(&FLOATS));
        if self.c.chance(2, 3) {
            let e = self.value(from, shape, depth - 1);
            let e = self.settle(e, from);
            return Some(Ex { text: format!("{}.sat({})", self.ty(el), e.text), ..e });
        }
        let small = El::D(if el.dtype().is_signed() { DType::I4 } else { DType::U4 });
        let e = self.value(small, shape, depth - 1);
        let e = self.settle(e, small);
        Some(Ex { text: format!("{}({}({}) * 0.5)", self.ty(el), self.ty(from), e.text), ..e })
    }

    /// Element-wise bit view between types of one width.
    fn bits_view(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        if self.pure {
            return None;
        }
        let others: Vec<DType> = DType::ALL
            .into_iter()
            .filter(|d| d.bits() == el.bits() && *d != DType::Bool && El::D(*d) != el)
            .collect();
        if others.is_empty() {
            return None;
        }
        let from = El::D(self.c.pick(&others));
        let e = self.value(from, shape, depth - 1);
        let e = self.settle(e, from);
        let e = self.numbers_only(from, e);
        Some(Ex { text: format!("bits({}, {})", self.ty(el), e.text), ..e })
    }

    /// The value with 1 for NaN, whose bits are nobody's business.
    pub fn numbers_only(&mut self, el: El, e: Ex) -> Ex {
        let text = match el {
            _ if el.is_float() => format!("where(isnan({0}), 1, {0})", e.text),
            _ if el.is_float8() => {
                format!("{1}.sat(where(isnan(f32({0})), 1, f32({0})))", e.text, self.ty(el))
            }
            _ => return e,
        };
        Ex { text, ..e }
    }

    fn call(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        let fitting: Vec<_> = self.functions.iter().filter(|f| f.el == el).cloned().collect();
        if fitting.is_empty() || self.pure {
            return None;
        }
        let f = fitting[self.c.below(fitting.len())].clone();
        let mut args = Vec::new();
        for i in 0..f.params {
            let e =
                if i == 0 { self.value(el, shape, depth - 1) } else { self.operand(el, shape, depth - 1) };
            args.push(self.settle(e, el));
        }
        let edges = self.joined(shape, &args.iter().collect::<Vec<_>>());
        let args: Vec<String> = args.into_iter().map(|a| a.text).collect();
        Some(Ex::tile(format!("{}({})", f.name, args.join(", ")), edges))
    }
}
