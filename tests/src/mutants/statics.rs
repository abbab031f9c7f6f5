//! Slips that break a rule of the language.

use super::{Edit, Source, is_type};
use crate::pieces::Kind;

/// Words that are no names of values.
const WORDS: [&str; 38] = [
    "let",
    "var",
    "for",
    "in",
    "if",
    "else",
    "while",
    "const",
    "shared",
    "fragment",
    "reducer",
    "tile",
    "grid",
    "threads",
    "as",
    "ordered",
    "cost",
    "pad",
    "or",
    "limit",
    "clip",
    "low",
    "once",
    "step",
    "pipelined",
    "unroll",
    "nounroll",
    "vectorized",
    "parallel",
    "zeros",
    "full",
    "axis",
    "over",
    "stages",
    "true",
    "false",
    "acc",
    "copy",
];

fn is_word(source: &Source, i: usize) -> bool {
    source.solid[i].kind == Kind::Word
}

/// A bracket, an operator or an operand is missing.
pub fn dropped(s: &Source) -> Vec<Vec<Edit>> {
    const OPERATORS: [&str; 13] = ["+", "-", "*", "/", "%", "@", "<", "==", "&&", "||", "=", "+=", ">="];
    let mut out = Vec::new();
    for i in 0..s.solid.len() {
        let (before, word) = (s.before(i), s.at(i));
        let binary =
            OPERATORS.contains(&word) && i > 0 && !matches!(before, "(" | "[" | "," | "=" | "return" | "in");
        let bracket = matches!(word, "(" | ")" | "[" | "]");
        let range = matches!(word, "+:" | ".." | "in" | "as" | ",");
        // the right operand of an operator
        let operand = OPERATORS.contains(&before)
            && (is_word(s, i) || s.solid[i].kind == Kind::Number)
            && !matches!(s.at(i + 1), "(" | "[" | ".");
        // generics and casts are told from comparisons by their spaces
        let spaced = word != "<" || s.text[..s.solid[i].start].ends_with(' ');
        if (binary || bracket || range || operand) && spaced {
            out.push(vec![s.replace(i, i, "")]);
        }
    }
    out
}

/// A name that nobody declared.
pub fn unknown(s: &Source) -> Vec<Vec<Edit>> {
    let mut out = Vec::new();
    for i in 0..s.solid.len() {
        let word = s.at(i);
        let declared =
            matches!(s.before(i), "let" | "var" | "for" | "parallel" | "shared" | "fragment" | "as" | ".");
        let named = s.at(i + 1) == "=" && i > 0 && matches!(s.before(i), "," | "(");
        let axes = s.site.memory && s.solid[..i].iter().any(|p| p.text(s.text) == "as");
        if is_word(s, i) && !WORDS.contains(&word) && !is_type(word) && !declared && !named && !axes {
            out.push(vec![s.replace(i, i, &format!("{word}_q"))]);
        }
    }
    out
}

/// Whether the piece begins the whole value of a `let` or `var`: such a statement is right whatever its type, and
/// only its users are not.
fn whole_value(s: &Source, i: usize, close: usize) -> bool {
    matches!(s.at(0), "let" | "var") && s.before(i) == "=" && close + 1 >= s.solid.len()
}

/// Another element type where the statement asks for its own.
pub fn dtypes(s: &Source) -> Vec<Vec<Edit>> {
    let mut out = Vec::new();
    if s.site.memory {
        return out;
    }
    for i in 0..s.solid.len() {
        let (to, next) = if s.at(i) == "acc" && s.at(i + 1) == "(" { (i + 3, i + 4) } else { (i, i + 1) };
        if to >= s.solid.len() || !(is_type(s.at(i)) || to > i) || s.before(i) == "(" && s.at(i + 1) == "," {
            continue;
        }
        // a number may be of any type, and a subscript of any integer
        let literal = s.solid.get(next + 1).is_some_and(|p| p.kind == Kind::Number) && s.at(next + 2) == ")";
        let declared =
            s.at(0) == "var" && (s.before(i) == ":" || matches!(s.before(i), "zeros" | "full" | ")"));
        let close = s.close(next).filter(|_| s.at(next) == "(").unwrap_or(to);
        // `acc(T)` is mutated as a whole
        let inner = i >= 2 && s.at(i - 2) == "acc";
        if !literal && !declared && !inner && s.at(next) != "." && !whole_value(s, i, close) {
            let wrong = if s.words(i, to) == "i16" { "f64" } else { "i16" };
            out.push(vec![s.replace(i, to, wrong)]);
        }
    }
    out
}

/// One index too few, or one too many.
pub fn ranks(s: &Source) -> Vec<Vec<Edit>> {
    let mut out = Vec::new();
    for open in s.index_lists() {
        let parts = s.parts(open);
        let Some(&(from, to)) = parts.last() else { continue };
        if parts.len() > 1 {
            out.push(vec![s.remove(from - 1, to)]);
        }
        out.push(vec![Edit { start: s.solid[to].end, end: s.solid[to].end, with: ", 0".into() }]);
    }
    out
}

/// A conversion left away.
pub fn casts(s: &Source) -> Vec<Vec<Edit>> {
    let mut out = Vec::new();
    for i in 0..s.solid.len() {
        let open = if s.at(i) == "acc" && s.at(i + 1) == "(" { i + 4 } else { i + 1 };
        let conversion = (is_type(s.at(i)) || open > i + 1) && s.at(open) == "(" && s.before(i) != ":";
        let Some(close) = s.close(open).filter(|_| conversion) else { continue };
        let literal = close == open + 2 && s.solid[open + 1].kind == Kind::Number;
        if !literal && !whole_value(s, i, close) {
            out.push(vec![s.replace(i, open, "("), s.replace(close, close, ")")]);
        }
    }
    out
}
