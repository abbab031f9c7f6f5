//! The one writer of the C-like tree: precedence, layout, indentation.

use super::tree::{C, S, Ty};
use std::fmt::Write;

const ATOM: u8 = 20;
const UNARY: u8 = 14;
const CHOICE: u8 = 3;

fn level(op: &str) -> u8 {
    match op {
        "*" | "/" | "%" => 13,
        "+" | "-" => 12,
        "<<" | ">>" => 11,
        "<" | "<=" | ">" | ">=" => 10,
        "==" | "!=" => 9,
        "&" => 8,
        "^" => 7,
        "|" => 6,
        "&&" => 5,
        _ => 4,
    }
}

/// The text of an expression.
pub fn expr(c: &C) -> String {
    let mut out = String::new();
    put(&mut out, c, 0);
    out
}

fn put(out: &mut String, c: &C, least: u8) {
    let own = precedence(c);
    if own < least {
        out.push('(');
    }
    bare(out, c);
    if own < least {
        out.push(')');
    }
}

fn precedence(c: &C) -> u8 {
    match c {
        C::Int(v, _) if *v < 0 => UNARY,
        C::Int(..) | C::Name(_) | C::Call(..) | C::Index(..) => ATOM,
        C::Unary(..) | C::Cast(..) => UNARY,
        C::Binary(op, ..) => level(op),
        C::Choice(..) => CHOICE,
    }
}

fn bare(out: &mut String, c: &C) {
    match c {
        C::Int(v, ty) => out.push_str(&literal(*v, *ty)),
        C::Name(n) => out.push_str(n),
        C::Call(f, args) => {
            let _ = write!(out, "{f}(");
            list(out, args);
            out.push(')');
        }
        C::Unary(op, a) => {
            out.push_str(op);
            // `- -x` must not become `--x`
            let least = if matches!(**a, C::Unary(..)) || starts_with_minus(a) { UNARY + 1 } else { UNARY };
            put(out, a, least);
        }
        C::Cast(ty, a) => {
            let _ = write!(out, "({ty})");
            put(out, a, UNARY);
        }
        C::Index(base, at) => {
            put(out, base, ATOM);
            out.push('[');
            put(out, at, 0);
            out.push(']');
        }
        C::Binary(op, a, b) => {
            put(out, a, operand(op, a, level(op)));
            let _ = write!(out, " {op} ");
            put(out, b, operand(op, b, level(op) + 1));
        }
        C::Choice(cond, then, other) => {
            put(out, cond, CHOICE + 1);
            out.push_str(" ? ");
            put(out, then, CHOICE + 1);
            out.push_str(" : ");
            put(out, other, CHOICE);
        }
    }
}

fn starts_with_minus(c: &C) -> bool {
    matches!(c, C::Int(v, _) if *v < 0)
}

fn list(out: &mut String, args: &[C]) {
    for (i, a) in args.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        put(out, a, 0);
    }
}

/// Operators whose precedence few people know get parentheses around other operators.
fn operand(op: &str, child: &C, least: u8) -> u8 {
    let C::Binary(inner, ..) = child else { return least };
    let obscure = |op: &str| matches!(op, "<<" | ">>" | "&" | "|" | "^");
    let mixed = (obscure(op) || obscure(inner)) && (*inner != op || op == "<<" || op == ">>");
    let logical =
        op == "||" && *inner == "&&" || op == "==" && level(inner) <= 10 || op == "!=" && level(inner) <= 10;
    if mixed || logical { UNARY } else { least }
}

/// An integer with the suffix of its type.
pub fn literal(v: i128, ty: Ty) -> String {
    let smallest = match ty {
        Ty::I32 => i128::from(i32::MIN),
        Ty::I64 => i128::from(i64::MIN),
        _ => 1,
    };
    let suffix = match ty {
        Ty::U32 => "u",
        Ty::I64 if i32::try_from(v).is_err() => "ll",
        Ty::U64 => "ull",
        _ => "",
    };
    if v == smallest && v < 0 {
        return format!("({}{suffix} - 1)", v + 1);
    }
    format!("{v}{suffix}")
}

/// The text of statements at a depth of indentation.
pub fn stmts(out: &mut String, block: &[S], depth: usize) {
    for s in block {
        stmt(out, s, depth);
    }
}

fn stmt(out: &mut String, s: &S, depth: usize) {
    let pad = "    ".repeat(depth);
    let _ = match s {
        S::Comment(text) => writeln!(out, "{pad}// {text}"),
        S::Declare { constant, ty, name, init } => {
            let constant = if *constant { "const " } else { "" };
            match init {
                Some(c) => writeln!(out, "{pad}{constant}{ty} {name} = {};", expr(c)),
                None => writeln!(out, "{pad}{ty} {name};"),
            }
        }
        S::Array { ty, name, len, align } => {
            let wide = if *align > ty.bytes() { format!("__align__({align}) ") } else { String::new() };
            writeln!(out, "{pad}{wide}{} {name}[{len}];", ty.name())
        }
        S::Assign { op, to, value } => writeln!(out, "{pad}{} {op} {};", expr(to), expr(value)),
        S::Do(c) => writeln!(out, "{pad}{};", expr(c)),
        S::Break => writeln!(out, "{pad}break;"),
        S::Continue => writeln!(out, "{pad}continue;"),
        S::Return(c) => writeln!(out, "{pad}return {};", expr(c)),
        S::If { cond, then, other } => {
            branch(out, &pad, cond, then, other, depth);
            Ok(())
        }
        S::For { hint, ty, var, lo, cond, step, body } => {
            if let Some(hint) = hint {
                let _ = writeln!(out, "{pad}{hint}");
            }
            let next = match step {
                C::Int(1, _) => format!("++{var}"),
                step => format!("{var} += {}", expr(step)),
            };
            let _ = writeln!(out, "{pad}for ({} {var} = {}; {}; {next}) {{", ty.name(), expr(lo), expr(cond));
            stmts(out, body, depth + 1);
            writeln!(out, "{pad}}}")
        }
        S::While { cond, body } => {
            let _ = writeln!(out, "{pad}while ({}) {{", expr(cond));
            stmts(out, body, depth + 1);
            writeln!(out, "{pad}}}")
        }
    };
}

fn branch(out: &mut String, pad: &str, cond: &C, then: &[S], other: &[S], depth: usize) {
    let _ = writeln!(out, "{pad}if ({}) {{", expr(cond));
    stmts(out, then, depth + 1);
    let mut rest = other;
    loop {
        match rest {
            [] => break,
            [S::If { cond, then, other }] => {
                let _ = writeln!(out, "{pad}}} else if ({}) {{", expr(cond));
                stmts(out, then, depth + 1);
                rest = other;
            }
            _ => {
                let _ = writeln!(out, "{pad}}} else {{");
                stmts(out, rest, depth + 1);
                break;
            }
        }
    }
    let _ = writeln!(out, "{pad}}}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(text: &str) -> C {
        C::name(text)
    }

    #[test]
    fn parentheses_follow_precedence() {
        let sum = || C::binary("+", n("a"), n("b"));
        assert_eq!(expr(&C::binary("*", sum(), n("c"))), "(a + b) * c");
        assert_eq!(expr(&C::binary("-", n("c"), sum())), "c - (a + b)");
        assert_eq!(expr(&C::binary("+", sum(), n("c"))), "a + b + c");
        assert_eq!(expr(&C::binary("&", sum(), C::int(3))), "(a + b) & 3");
        assert_eq!(expr(&C::unary("-", C::unary("-", n("a")))), "-(-a)");
        assert_eq!(expr(&C::unary("-", C::int(-3))), "-(-3)");
        assert_eq!(expr(&C::cast(Ty::I64, sum())), "(i64)(a + b)");
        let and = C::binary("&&", n("a"), n("b"));
        assert_eq!(expr(&C::binary("||", and, n("c"))), "(a && b) || c");
        assert_eq!(expr(&C::binary("-", n("a"), C::int(-3))), "a - -3");
        let pick = C::choice(n("c"), n("x"), n("y"));
        assert_eq!(expr(&C::choice(n("d"), pick.clone(), pick)), "d ? (c ? x : y) : c ? x : y");
    }

    #[test]
    fn smallest_integers_are_no_negated_overflow() {
        assert_eq!(literal(i32::MIN.into(), Ty::I32), "(-2147483647 - 1)");
        assert_eq!(literal(i64::MIN.into(), Ty::I64), "(-9223372036854775807ll - 1)");
        assert_eq!(literal(5, Ty::U64), "5ull");
    }
}
