//! The words of the language: which are reserved, which begin an item or a statement, which stand between operands.
//!
//! Only [`RESERVED`] words can never be names. Every other word keeps its meaning to the one place where the grammar
//! asks for it, so `order`, `keep`, `slots`, `step`, `pad` or `ring` remain usable as names:
//!
//! - A word of [`STATEMENTS`] begins its statement only if what follows on the same line cannot continue an
//!   expression that begins with a name, as in `release r`, `plan {`, `team math:`; `release = 1` is an assignment.
//! - A word of [`INFIX`] is looked for only after a complete operand.
//! - Words of clauses (`strides`, `align`, `cost`, `fill` …) are looked for only where their clause may stand.

/// Words that are never names.
pub const RESERVED: &[&str] = &[
    "break", "const", "continue", "else", "false", "fn", "for", "if", "in", "let", "once", "or", "true",
    "var", "while",
];

/// Words that begin an item, where a name, a string or `fn` follows.
pub const ITEMS: &[&str] = &["combine", "const", "fn", "intrinsic", "kernel", "op", "test", "use"];

/// Words that begin a statement.
pub const STATEMENTS: &[&str] = &[
    "await",
    "barrier",
    "break",
    "commit",
    "const",
    "continue",
    "copy",
    "for",
    "fragment",
    "gemm",
    "grid",
    "if",
    "issue",
    "launch",
    "let",
    "next",
    "parallel",
    "param",
    "pass",
    "plan",
    "queue",
    "release",
    "ring",
    "role",
    "scratch",
    "shared",
    "static_assert",
    "take",
    "team",
    "threads",
    "turn",
    "var",
    "while",
    "workspace",
];

/// Words that join operands, and so do not begin one.
pub const INFIX: &[&str] = &["and", "as", "in", "or", "pad"];

/// Words of clauses that may follow an expression on its line. After `zeros`, `full`, `wait`, `acquire` and `seed`
/// they show that the word before is a name.
pub const CLAUSES: &[&str] = &[
    "align",
    "atol",
    "base",
    "carry",
    "clip",
    "commutative",
    "cost",
    "for",
    "group",
    "groups",
    "layout",
    "limit",
    "of",
    "ordered",
    "over",
    "packed",
    "prepacked",
    "rtol",
    "step",
    "strides",
    "thread",
    "ulp",
    "where",
    "xor",
];

pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// The candidate nearest to `word`, if it is near enough to be what was meant.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match word.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let lower = word.to_lowercase();
    let scored = candidates.into_iter().map(|c| (distance(&lower, &c.to_lowercase()), c));
    let (best, name) = scored.min_by_key(|(d, _)| *d)?;
    (best <= allowed).then_some(name)
}

/// Edit distance with insertion, deletion, substitution and the swap of neighbours.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let width = b.len() + 1;
    let mut table = vec![0; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            if i == 0 || j == 0 {
                table[i * width + j] = i + j;
                continue;
            }
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (table[(i - 1) * width + j] + 1).min(table[i * width + j - 1] + 1);
            best = best.min(table[(i - 1) * width + j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(table[(i - 2) * width + j - 2] + 1);
            }
            table[i * width + j] = best;
        }
    }
    table[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        assert_eq!(distance("kernel", "kernel"), 0);
        assert_eq!(distance("kernle", "kernel"), 1);
        assert_eq!(closest("kernal", ITEMS.iter().copied()), Some("kernel"));
        assert_eq!(closest("lte", STATEMENTS.iter().copied()), Some("let"));
        assert_eq!(closest("x", STATEMENTS.iter().copied()), None);
        assert_eq!(closest("matrix", STATEMENTS.iter().copied()), None);
    }
}
