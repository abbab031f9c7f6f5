//! The one table of operator precedence; parser, formatter and `docs/language.md` follow it.
//!
//! | level | operators                        | grouping          |
//! |-------|----------------------------------|-------------------|
//! | 13    | `x.f`, `x[…]`, `f(…)`, `f<…>(…)` | left              |
//! | 12    | `x[…] or v`, `x[…] pad v`        | none              |
//! | 11    | `-x`, `!x`                       | right             |
//! | 10    | `*` `/` `%` `@`                  | left              |
//! | 9     | `+` `-`                          | left              |
//! | 8     | `<<` `>>`                        | left              |
//! | 7     | `&`                              | left              |
//! | 6     | `^`                              | left              |
//! | 5     | `\|`                             | left              |
//! | 4     | `==` `!=` `<` `<=` `>` `>=` `in` | none: an error    |
//! | 2     | `&&`                             | left              |
//! | 1     | `\|\|`                           | left              |
//!
//! The ranges `a..b`, `a +: n` and assignments are no expressions; they stand around whole ones.

use super::token::Tok;
use crate::ast::BinaryOp;

pub const ANY: u8 = 0;
pub const COMPARE: u8 = 4;
/// The first level above comparisons.
pub const BITS: u8 = 5;
/// Sums and tighter: what may stand where `<`, `>` or `in` have a meaning of their own.
pub const SUM: u8 = 9;
pub const UNARY: u8 = 11;
pub const ELEMENT: u8 = 12;
pub const POSTFIX: u8 = 13;
pub const ATOM: u8 = 14;

pub const fn level(op: BinaryOp) -> u8 {
    use BinaryOp::*;
    match op {
        Mul | Div | Rem | MatMul => 10,
        Add | Sub => SUM,
        Shl | Shr => 8,
        BitAnd => 7,
        BitXor => 6,
        BitOr => BITS,
        Eq | Ne | Lt | Le | Gt | Ge => COMPARE,
        AndAnd => 2,
        OrOr => 1,
    }
}

pub const fn operator(tok: Tok) -> Option<BinaryOp> {
    use BinaryOp::*;
    Some(match tok {
        Tok::OrOr => OrOr,
        Tok::AndAnd => AndAnd,
        Tok::EqEq => Eq,
        Tok::NotEq => Ne,
        Tok::Lt => Lt,
        Tok::Le => Le,
        Tok::Gt => Gt,
        Tok::Ge => Ge,
        Tok::Pipe => BitOr,
        Tok::Caret => BitXor,
        Tok::Amp => BitAnd,
        Tok::Shl => Shl,
        Tok::Shr => Shr,
        Tok::Plus => Add,
        Tok::Minus => Sub,
        Tok::Star => Mul,
        Tok::Slash => Div,
        Tok::Percent => Rem,
        Tok::At => MatMul,
        _ => return None,
    })
}

pub const fn mark(op: BinaryOp) -> &'static str {
    use BinaryOp::*;
    match op {
        OrOr => "||",
        AndAnd => "&&",
        Eq => "==",
        Ne => "!=",
        Lt => "<",
        Le => "<=",
        Gt => ">",
        Ge => ">=",
        BitOr => "|",
        BitXor => "^",
        BitAnd => "&",
        Shl => "<<",
        Shr => ">>",
        Add => "+",
        Sub => "-",
        Mul => "*",
        Div => "/",
        Rem => "%",
        MatMul => "@",
    }
}
