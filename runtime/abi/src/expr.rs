//! Integer expressions over dims, strides and integer or boolean scalars.
//!
//! Values are the language's `index`: 64-bit integers whose overflow is an error. Division and remainder are
//! floor. A comparison gives 0 or 1; every other number but 0 counts as true.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IExpr {
    Const(i64),
    /// A dim, a named stride or a loop variable, by its slot.
    Dim(u32),
    /// The value of the integer, boolean or `index` parameter at this position of the parameter list.
    Scalar(u32),
    Bin(IOp, Box<IExpr>, Box<IExpr>),
    Not(Box<IExpr>),
    /// Condition, value if true, value if false; only the chosen one is evaluated.
    Select(Box<IExpr>, Box<IExpr>, Box<IExpr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IOp {
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    /// Rounds up; 0 where the quotient is not positive, so that it is a trip count.
    CeilDiv,
    Min,
    Max,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Evaluates its right side only if the left one is true.
    And,
    /// Evaluates its right side only if the left one is false.
    Or,
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    Overflow,
    DivisionByZero,
    /// No argument determines the dim in this slot.
    UnboundDim(u32),
    /// The parameter at this position has no integer value.
    UnboundScalar(u32),
}

/// Values of dims and scalar parameters; `None` where not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values<'a> {
    pub dims: &'a [Option<i64>],
    pub scalars: &'a [Option<i64>],
}

/// Names for printing: dims by slot, parameters by position.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub dims: Vec<String>,
    pub params: Vec<String>,
}

impl Names {
    pub fn dim(&self, slot: u32) -> &str {
        self.dims.get(slot as usize).map_or("?", String::as_str)
    }

    pub fn param(&self, index: u32) -> &str {
        self.params.get(index as usize).map_or("?", String::as_str)
    }

    /// A sentence for an error met while evaluating something the user wrote.
    pub fn explain(&self, error: &EvalError) -> String {
        match error {
            EvalError::Overflow => "the value does not fit in 64 bits".into(),
            EvalError::DivisionByZero => "it divides by zero".into(),
            EvalError::UnboundDim(d) => format!("no argument determines `{}`", self.dim(*d)),
            EvalError::UnboundScalar(p) => format!("`{}` has no integer value", self.param(*p)),
        }
    }
}

impl IExpr {
    pub fn bin(op: IOp, a: IExpr, b: IExpr) -> IExpr {
        IExpr::Bin(op, Box::new(a), Box::new(b))
    }

    pub fn select(cond: IExpr, then: IExpr, other: IExpr) -> IExpr {
        IExpr::Select(Box::new(cond), Box::new(then), Box::new(other))
    }

    pub fn negate(a: IExpr) -> IExpr {
        IExpr::Not(Box::new(a))
    }

    pub fn eval(&self, values: Values<'_>) -> Result<i64, EvalError> {
        match self {
            IExpr::Const(c) => Ok(*c),
            IExpr::Dim(d) => values.dims.get(*d as usize).copied().flatten().ok_or(EvalError::UnboundDim(*d)),
            IExpr::Scalar(s) => {
                values.scalars.get(*s as usize).copied().flatten().ok_or(EvalError::UnboundScalar(*s))
            }
            IExpr::Bin(IOp::And, a, b) => Ok((a.is_true(values)? && b.is_true(values)?) as i64),
            IExpr::Bin(IOp::Or, a, b) => Ok((a.is_true(values)? || b.is_true(values)?) as i64),
            IExpr::Bin(op, a, b) => op.apply(a.eval(values)?, b.eval(values)?),
            IExpr::Not(a) => Ok(!a.is_true(values)? as i64),
            IExpr::Select(c, a, b) => if c.is_true(values)? { a } else { b }.eval(values),
        }
    }

    pub fn is_true(&self, values: Values<'_>) -> Result<bool, EvalError> {
        Ok(self.eval(values)? != 0)
    }

    /// The expression as the user would write it.
    pub fn display<'a>(&'a self, names: &'a Names) -> impl fmt::Display + 'a {
        Shown { expr: self, names, outer: 0 }
    }

    /// Calls `f` with every dim slot that occurs.
    pub fn for_each_dim(&self, f: &mut impl FnMut(u32)) {
        match self {
            IExpr::Const(_) | IExpr::Scalar(_) => {}
            IExpr::Dim(d) => f(*d),
            IExpr::Bin(_, a, b) => {
                a.for_each_dim(f);
                b.for_each_dim(f);
            }
            IExpr::Not(a) => a.for_each_dim(f),
            IExpr::Select(c, a, b) => {
                c.for_each_dim(f);
                a.for_each_dim(f);
                b.for_each_dim(f);
            }
        }
    }
}

impl From<i64> for IExpr {
    fn from(value: i64) -> IExpr {
        IExpr::Const(value)
    }
}

impl IOp {
    /// The operator on two values. `And` and `Or` see both sides here; [`IExpr::eval`] is lazy.
    pub fn apply(self, a: i64, b: i64) -> Result<i64, EvalError> {
        let over = EvalError::Overflow;
        match self {
            IOp::Add => a.checked_add(b).ok_or(over),
            IOp::Sub => a.checked_sub(b).ok_or(over),
            IOp::Mul => a.checked_mul(b).ok_or(over),
            IOp::FloorDiv => floor_div(a, b),
            IOp::Mod => match b {
                0 => Err(EvalError::DivisionByZero),
                -1 => Ok(0),
                _ => {
                    let r = a % b;
                    Ok(if r != 0 && (r < 0) != (b < 0) { r + b } else { r })
                }
            },
            IOp::CeilDiv => {
                let down = floor_div(a, b)?;
                let inexact = b != -1 && a % b != 0;
                Ok((down + inexact as i64).max(0))
            }
            IOp::Min => Ok(a.min(b)),
            IOp::Max => Ok(a.max(b)),
            IOp::Eq => Ok((a == b) as i64),
            IOp::Ne => Ok((a != b) as i64),
            IOp::Lt => Ok((a < b) as i64),
            IOp::Le => Ok((a <= b) as i64),
            IOp::Gt => Ok((a > b) as i64),
            IOp::Ge => Ok((a >= b) as i64),
            IOp::And => Ok((a != 0 && b != 0) as i64),
            IOp::Or => Ok((a != 0 || b != 0) as i64),
        }
    }

    /// Operator text and binding strength (larger binds tighter); `None` for the ones written as calls.
    fn infix(self) -> Option<(&'static str, u8)> {
        Some(match self {
            IOp::Or => ("||", 1),
            IOp::And => ("&&", 2),
            IOp::Eq => ("==", 3),
            IOp::Ne => ("!=", 3),
            IOp::Lt => ("<", 3),
            IOp::Le => ("<=", 3),
            IOp::Gt => (">", 3),
            IOp::Ge => (">=", 3),
            IOp::Add => ("+", 4),
            IOp::Sub => ("-", 4),
            IOp::Mul => ("*", 5),
            IOp::FloorDiv => ("/", 5),
            IOp::Mod => ("%", 5),
            IOp::CeilDiv | IOp::Min | IOp::Max => return None,
        })
    }

    fn call(self) -> &'static str {
        match self {
            IOp::CeilDiv => "ceildiv",
            IOp::Min => "min",
            _ => "max",
        }
    }
}

fn floor_div(a: i64, b: i64) -> Result<i64, EvalError> {
    if b == 0 {
        return Err(EvalError::DivisionByZero);
    }
    let q = a.checked_div(b).ok_or(EvalError::Overflow)?;
    let below = b != -1 && a % b != 0 && ((a < 0) != (b < 0));
    Ok(q - below as i64)
}

/// An expression inside an operator that binds with strength `outer`.
struct Shown<'a> {
    expr: &'a IExpr,
    names: &'a Names,
    outer: u8,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names;
        let inside = |expr, outer| Shown { expr, names, outer };
        match self.expr {
            IExpr::Const(c) if *c < 0 && self.outer > 4 => write!(f, "({c})"),
            IExpr::Const(c) => write!(f, "{c}"),
            IExpr::Dim(d) => f.write_str(names.dim(*d)),
            IExpr::Scalar(p) => f.write_str(names.param(*p)),
            IExpr::Not(a) => write!(f, "!{}", inside(a, 6)),
            IExpr::Select(c, a, b) => {
                write!(f, "if {} {{ {} }} else {{ {} }}", inside(c, 0), inside(a, 0), inside(b, 0))
            }
            IExpr::Bin(op, a, b) => match op.infix() {
                None => write!(f, "{}({}, {})", op.call(), inside(a, 0), inside(b, 0)),
                Some((text, strength)) => {
                    // comparisons do not chain, so both their sides need more strength
                    let left = strength + (strength == 3) as u8;
                    let (a, b) = (inside(a, left), inside(b, strength + 1));
                    if strength < self.outer {
                        write!(f, "({a} {text} {b})")
                    } else {
                        write!(f, "{a} {text} {b}")
                    }
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(v: i64) -> IExpr {
        IExpr::Const(v)
    }

    #[test]
    fn division_is_floor_and_ceildiv_never_negative() {
        for a in -20i64..=20 {
            for b in [-7i64, -3, -1, 1, 2, 5, 8] {
                let floor = (a as f64 / b as f64).floor() as i64;
                assert_eq!(IOp::FloorDiv.apply(a, b), Ok(floor), "{a}/{b}");
                assert_eq!(IOp::Mod.apply(a, b), Ok(a - floor * b), "{a}%{b}");
                let ceil = (a as f64 / b as f64).ceil() as i64;
                assert_eq!(IOp::CeilDiv.apply(a, b), Ok(ceil.max(0)), "ceildiv({a},{b})");
            }
        }
    }

    #[test]
    fn mistakes_have_names() {
        use EvalError::*;
        assert_eq!(IOp::Add.apply(i64::MAX, 1), Err(Overflow));
        assert_eq!(IOp::Mul.apply(i64::MIN, -1), Err(Overflow));
        assert_eq!(IOp::FloorDiv.apply(i64::MIN, -1), Err(Overflow));
        assert_eq!(IOp::CeilDiv.apply(i64::MIN, -1), Err(Overflow));
        assert_eq!(IOp::Mod.apply(i64::MIN, -1), Ok(0));
        assert_eq!(IOp::Mod.apply(3, 0), Err(DivisionByZero));
        assert_eq!(IOp::CeilDiv.apply(3, 0), Err(DivisionByZero));
        assert_eq!(IExpr::Dim(2).eval(Values::default()), Err(UnboundDim(2)));
        assert_eq!(IExpr::Scalar(1).eval(Values::default()), Err(UnboundScalar(1)));
    }

    #[test]
    fn logic_is_lazy() {
        let bad = IExpr::bin(IOp::FloorDiv, c(1), c(0));
        let and = IExpr::bin(IOp::And, c(0), bad.clone());
        let or = IExpr::bin(IOp::Or, c(1), bad.clone());
        let select = IExpr::select(c(0), bad, c(7));
        assert_eq!(and.eval(Values::default()), Ok(0));
        assert_eq!(or.eval(Values::default()), Ok(1));
        assert_eq!(select.eval(Values::default()), Ok(7));
    }

    #[test]
    fn large_remainders_do_not_overflow() {
        assert_eq!(IOp::Mod.apply(i64::MAX - 1, i64::MAX), Ok(i64::MAX - 1));
        assert_eq!(IOp::Mod.apply(-1, i64::MAX), Ok(i64::MAX - 1));
    }

    #[test]
    fn prints_as_written() {
        let names = Names { dims: vec!["M".into(), "K".into()], params: vec!["causal".into()] };
        let show = |e: &IExpr| e.display(&names).to_string();
        let (m, k) = (IExpr::Dim(0), IExpr::Dim(1));
        let sum = IExpr::bin(IOp::Add, m.clone(), c(1));
        assert_eq!(show(&IExpr::bin(IOp::Mul, sum.clone(), k.clone())), "(M + 1) * K");
        assert_eq!(show(&IExpr::bin(IOp::Sub, k.clone(), sum.clone())), "K - (M + 1)");
        assert_eq!(show(&IExpr::bin(IOp::Sub, sum.clone(), k.clone())), "M + 1 - K");
        assert_eq!(show(&IExpr::bin(IOp::CeilDiv, sum, c(128))), "ceildiv(M + 1, 128)");
        assert_eq!(show(&IExpr::bin(IOp::Mul, k.clone(), c(-2))), "K * (-2)");
        let ge = IExpr::bin(IOp::Ge, m, k);
        let or = IExpr::bin(IOp::Or, IExpr::negate(IExpr::Scalar(0)), ge.clone());
        assert_eq!(show(&or), "!causal || M >= K");
        assert_eq!(show(&IExpr::negate(or.clone())), "!(!causal || M >= K)");
        assert_eq!(show(&IExpr::bin(IOp::Eq, ge.clone(), ge)), "(M >= K) == (M >= K)");
        assert_eq!(show(&IExpr::select(or, c(1), c(2))), "if !causal || M >= K { 1 } else { 2 }");
    }
}
