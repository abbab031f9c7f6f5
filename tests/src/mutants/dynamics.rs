//! Slips that leave a program of the language which means something else.

use super::{Edit, Source};
use crate::pieces::Kind;

/// Counts, bounds and comparisons that miss by one.
pub fn off_by_one(s: &Source) -> Vec<Vec<Edit>> {
    let mut out = Vec::new();
    for i in 0..s.solid.len() {
        let word = s.at(i);
        let swap = match word {
            "<" => Some("<="),
            "<=" => Some("<"),
            ">" => Some(">="),
            ">=" => Some(">"),
            _ => None,
        };
        // generics are written without spaces
        let spaced = s.text[..s.solid[i].start].ends_with(' ');
        if let Some(with) = swap.filter(|_| spaced) {
            out.push(vec![s.replace(i, i, with)]);
        }
        let counts = matches!(s.before(i), "==" | "+" | "-" | "in" | "[" | "<" | ">=") || s.at(i + 1) == "..";
        if s.solid[i].kind == Kind::Number && counts && !s.site.memory {
            let n: Option<u64> = word.parse().ok();
            out.extend(n.map(|n| vec![s.replace(i, i, &(n + 1).to_string())]));
        }
        if word == "ceildiv"
            && let Some(close) = s.close(i + 1)
        {
            out.push(vec![s.replace(close, close, ") - 1")]);
        }
        if word == "+:" && s.solid[i + 1].kind == Kind::Word {
            // the region begins one later
            out.push(vec![s.replace(i, i, "+ 1 +:")]);
        }
    }
    out
}

/// Two axes take each other's place.
pub fn swapped(s: &Source) -> Vec<Vec<Edit>> {
    let mut out = Vec::new();
    let lists = s.index_lists();
    for i in 0..s.solid.len() {
        let list = lists.contains(&i) || s.at(i) == "(" && s.before(i) == "as";
        let parts = if list { s.parts(i) } else { Vec::new() };
        if let [.., a, b] = parts[..] {
            let (x, y) = (s.words(a.0, a.1), s.words(b.0, b.1));
            if x != y {
                out.push(vec![s.replace(a.0, a.1, &y), s.replace(b.0, b.1, &x)]);
            }
        }
        if s.at(i) == "axis" && s.at(i + 1) == "=" {
            let other = if s.at(i + 2) == "0" { "1" } else { "0" };
            out.push(vec![s.replace(i + 2, i + 2, other)]);
        }
        if s.at(i) == "." && s.at(i + 1) == "T" {
            out.push(vec![s.replace(i, i + 1, "")]);
        }
        if s.at(i) == "@"
            && s.solid[i - 1].kind == Kind::Word
            && s.solid.get(i + 1).is_some_and(|p| p.kind == Kind::Word)
        {
            out.push(vec![s.replace(i - 1, i - 1, s.at(i + 1)), s.replace(i + 1, i + 1, s.at(i - 1))]);
        }
    }
    out
}

/// A condition, a pad or a limit that is not there.
pub fn guards(s: &Source) -> Vec<Vec<Edit>> {
    let mut out = Vec::new();
    let last = s.solid.len() - 1;
    if s.site.head && s.at(0) == "if" && last > 0 {
        let cuts: Vec<usize> = top_level(s, "&&");
        if cuts.is_empty() {
            out.push(vec![s.replace(1, last, "true")]);
        } else {
            // one of two conditions
            out.push(vec![s.remove(cuts[0], last)]);
            out.push(vec![s.replace(1, cuts[0], "")]);
        }
    }
    for i in 1..s.solid.len() {
        let word = s.at(i);
        if matches!(word, "or" | "pad" | "limit") {
            let end = operand_end(s, i + 1);
            out.push(vec![s.remove(i, end)]);
        }
        if word == "clip" {
            out.push(vec![s.remove(i, i + 1)]);
        }
    }
    out
}

/// Places of a mark outside of brackets.
fn top_level(s: &Source, mark: &str) -> Vec<usize> {
    let mut depth = 0;
    let mut out = Vec::new();
    for i in 0..s.solid.len() {
        match s.at(i) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            m if m == mark && depth == 0 => out.push(i),
            _ => {}
        }
    }
    out
}

/// The last piece of the operand that begins at `i`.
fn operand_end(s: &Source, i: usize) -> usize {
    let mut at = i;
    if s.at(at) == "-" {
        at += 1;
    }
    loop {
        let next = at + 1;
        if matches!(s.at(next), "(" | "[") && s.text[..s.solid[next].start].ends_with(s.at(at)) {
            match s.close(next) {
                Some(c) => at = c,
                None => return at,
            }
        } else if s.at(next) == "-" && s.at(i - 1) == "limit" && next + 1 < s.solid.len() {
            at = next + 1;
        } else {
            return at.min(s.solid.len() - 1);
        }
    }
}
