//! Texts made wrong at random: what a slip of the hand, a bad merge or an attacker makes of a source file.

use crate::generate::Rng;
use crate::pieces::{Kind, Piece, pieces};

/// One text with a few random edits. `others` are texts that pieces are borrowed from.
pub fn mutate(text: &str, comment: &str, others: &[&str], rng: &mut Rng) -> String {
    let mut text = text.to_string();
    for _ in 0..1 + rng.below(4) {
        text = edit(&text, comment, others, rng);
        if text.is_empty() {
            break;
        }
    }
    text
}

fn edit(text: &str, comment: &str, others: &[&str], rng: &mut Rng) -> String {
    let all = pieces(text, comment);
    let solid: Vec<Piece> =
        all.iter().copied().filter(|p| !matches!(p.kind, Kind::Space | Kind::Comment)).collect();
    if solid.is_empty() {
        return FOREIGN[rng.below(FOREIGN.len())].to_string();
    }
    let one = solid[rng.below(solid.len())];
    let two = solid[rng.below(solid.len())];
    let replace = |p: Piece, with: &str| format!("{}{with}{}", &text[..p.start], &text[p.end..]);
    match rng.below(20) {
        0 | 1 => replace(one, ""),
        2 => replace(one, &format!("{0} {0}", one.text(text))),
        3 => swap(text, one, two),
        4 => {
            let i = rng.below(solid.len());
            swap(text, solid[i], solid[(i + 1).min(solid.len() - 1)])
        }
        5 => match solid.iter().filter(|p| p.kind == Kind::Number).nth(rng.below(8)) {
            Some(p) => replace(*p, NUMBERS[rng.below(NUMBERS.len())]),
            None => replace(one, NUMBERS[rng.below(NUMBERS.len())]),
        },
        6 => {
            let mut at = rng.below(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            match rng.below(2) {
                0 => text[..at].to_string(),
                _ => text[at..].to_string(),
            }
        }
        7 | 8 => replace(one, &format!("{} {}", FOREIGN[rng.below(FOREIGN.len())], one.text(text))),
        9 => nest(text, one, rng),
        10 => {
            let strange = STRANGE[rng.below(STRANGE.len())];
            format!("{}{strange}{}", &text[..one.start], &text[one.start..])
        }
        11 => lines(text, rng, |list, i, _| {
            list.remove(i);
        }),
        12 => lines(text, rng, |list, i, _| list.insert(i, list[i])),
        13 => lines(text, rng, |list, i, j| list.swap(i, j)),
        14 => words(text, &solid, rng),
        15 => {
            // a run of pieces from another text
            let other = others[rng.below(others.len())];
            let from = pieces(other, comment);
            let at = rng.below(from.len());
            let end = (at + 1 + rng.below(30)).min(from.len() - 1);
            let borrowed = &other[from[at].start..from[end].end];
            replace(one, borrowed)
        }
        16 => {
            let (a, b) = if one.start < two.start { (one, two) } else { (two, one) };
            let end = b.start.min(a.start + 200);
            let end = (a.start..=end).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(a.start);
            format!("{}{}", &text[..a.start], &text[end..])
        }
        17 => replace(one, two.text(text)),
        18 => match solid
            .iter()
            .filter(|p| matches!(p.text(text), "(" | ")" | "[" | "]" | "{" | "}"))
            .nth(rng.below(20))
        {
            Some(p) => replace(*p, ["(", ")", "[", "]", "{", "}", ""][rng.below(7)]),
            None => replace(one, "("),
        },
        _ => replace(one, &one.text(text).repeat(1 + rng.below(300))),
    }
}

fn swap(text: &str, a: Piece, b: Piece) -> String {
    let (a, b) = if a.start < b.start { (a, b) } else { (b, a) };
    if a.end > b.start {
        return text.to_string();
    }
    let parts = [&text[..a.start], b.text(text), &text[a.end..b.start], a.text(text), &text[b.end..]];
    parts.concat()
}

/// Deep nesting around or in front of a piece.
fn nest(text: &str, p: Piece, rng: &mut Rng) -> String {
    let depth = [10, 100, 1000, 20_000][rng.below(4)];
    let (open, close) = [
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("-", ""),
        ("!", ""),
        ("if true { ", " }"),
        ("f(", ")"),
        ("1 + ", ""),
        ("x.", ""),
        ("for k in 0..2 { ", " }"),
        ("A[", "]"),
        ("f16(", ")"),
    ][rng.below(12)];
    let closed = if rng.below(2) == 0 { close.repeat(depth) } else { String::new() };
    format!("{}{}{}{closed}{}", &text[..p.start], open.repeat(depth), p.text(text), &text[p.end..])
}

fn lines(text: &str, rng: &mut Rng, f: impl FnOnce(&mut Vec<&str>, usize, usize)) -> String {
    let mut list: Vec<&str> = text.lines().collect();
    if list.is_empty() {
        return text.to_string();
    }
    let (i, j) = (rng.below(list.len()), rng.below(list.len()));
    f(&mut list, i, j);
    list.join("\n")
}

/// One word becomes another of the same text.
fn words(text: &str, solid: &[Piece], rng: &mut Rng) -> String {
    let words: Vec<Piece> = solid.iter().copied().filter(|p| p.kind == Kind::Word).collect();
    if words.is_empty() {
        return text.to_string();
    }
    let (to, from) = (words[rng.below(words.len())], words[rng.below(words.len())]);
    format!("{}{}{}", &text[..to.start], from.text(text), &text[to.end..])
}

const NUMBERS: [&str; 18] = [
    "0",
    "1",
    "-1",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "1e400",
    "1e-400",
    "0.0",
    "0x",
    "0xffffffffffffffffffffffffffffffffff",
    "1_000_000_000_000_000_000_000",
    "1e",
    "2147483648",
    "65536",
];

const FOREIGN: [&str; 44] = [
    "let",
    "var",
    "fn",
    "kernel",
    "op",
    "grid",
    "threads",
    "for",
    "in",
    "if",
    "else",
    "const",
    "param",
    "shared",
    "pad",
    "or",
    "limit",
    "clip low",
    "packed(",
    "strides (",
    "->",
    "=>",
    ";",
    "..",
    "..=",
    "+:",
    "::",
    "@",
    "op=",
    "<",
    ">",
    "\"",
    "'",
    "\\",
    "/*",
    "*/",
    "//",
    "return",
    "while true {",
    "}",
    "role",
    "ring",
    "team",
    "plan {",
];

const STRANGE: [&str; 10] =
    ["\u{feff}", "\u{202e}", "é", "λ", "\u{0}", "\u{1f980}", "\r", "\u{2028}", "ﬁ", "\u{7f}"];
