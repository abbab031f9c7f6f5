//! Layouts as text; `text` reads back what is printed here.

use super::text::Expr;
use super::{Axis, Digit, Layout, Shared, Xor};
use std::fmt;

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Number(n) => write!(f, "{n}"),
            Expr::Symbol(s) => f.write_str(s),
            Expr::Times(a, b) => write!(f, "{a}*{}", Tight(b)),
            Expr::Over(a, b) => write!(f, "{a}/{}", Tight(b)),
        }
    }
}

/// An operand on the right: products need parentheses there.
struct Tight<'a>(&'a Expr);

impl fmt::Display for Tight<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expr::Times(..) | Expr::Over(..) => write!(f, "({})", self.0),
            plain => write!(f, "{plain}"),
        }
    }
}

impl fmt::Display for Xor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "xor<{},{},{}>", self.bits, self.base, self.shift)
    }
}

impl fmt::Display for Digit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.extent, self.axis)?;
        if self.stride != 1 { write!(f, "*{}", self.stride) } else { Ok(()) }
    }
}

fn list(f: &mut fmt::Formatter<'_>, digits: &[Digit]) -> fmt::Result {
    if digits.is_empty() {
        return f.write_str("1");
    }
    for (i, d) in digits.iter().enumerate() {
        write!(f, "{}{d}", if i > 0 { ", " } else { "" })?;
    }
    Ok(())
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, dim) in self.dims.iter().enumerate() {
            write!(f, "{}{}: ", if i > 0 { " ; " } else { "" }, dim.name)?;
            list(f, &dim.digits)?;
            if let Some(g) = dim.guard {
                write!(f, " < {g}")?;
            }
        }
        if !self.rep.is_empty() {
            f.write_str(" ; rep ")?;
            list(f, &self.rep)?;
        }
        let offsets = Axis::ALL.into_iter().filter(|a| self.offset[*a] > 0);
        for (i, a) in offsets.enumerate() {
            write!(f, "{}{}@{a}", if i > 0 { ", " } else { " ; offset " }, self.offset[a])?;
        }
        Ok(())
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.layout)?;
        if let Some(x) = self.xor {
            write!(f, " ; {x}")?;
        }
        match (self.xor, self.align) {
            (_, 1) => Ok(()),
            (Some(_), n) => write!(f, " align {n}"),
            (None, n) => write!(f, " ; align {n}"),
        }
    }
}
