//! Words that belong to the compiler's inside and may not reach a user.

use pantile_ir::diag::Diagnostic;

const INTERNAL: [&str; 40] = [
    "ExprId",
    "LocalId",
    "BufferId",
    "CombineId",
    "KernelId",
    "Handle",
    "Arena",
    "arena",
    "unwrap",
    "Some(",
    "None,",
    "Ok(",
    "Err(",
    "panicked",
    "elab",
    "Elab",
    "StmtKind",
    "ExprKind",
    "TypeKind",
    "Vec<",
    "Vec ",
    "SmallVec",
    "usize",
    "i128",
    "Option<",
    "Poison",
    "poisoned value",
    "Value::",
    "Op::",
    "Expr::",
    "Const(",
    "Elem::",
    "DType::",
    "ast::",
    "AST",
    " IR ",
    "frontend",
    "RefCell",
    "&str",
    ".rs:",
];

/// The first internal word of a diagnostic; names from the user's text may look like one, so `source` is asked.
pub fn internal_word(d: &Diagnostic, source: &str) -> Option<String> {
    let texts = std::iter::once(&d.message)
        .chain([&d.primary.text])
        .chain(d.secondary.iter().map(|l| &l.text))
        .chain(&d.help)
        .chain(&d.notes);
    for text in texts {
        let word = INTERNAL.iter().find(|w| text.contains(**w) && !source.contains(**w));
        if let Some(w) = word {
            return Some(format!("`{w}` in \"{text}\""));
        }
        if handle(text) && !source.contains(text.as_str()) {
            return Some(format!("a handle in \"{text}\""));
        }
    }
    None
}

/// `Local([12])`, as a derived description shows it.
fn handle(text: &str) -> bool {
    text.match_indices("([").any(|(at, _)| {
        let rest = &text[at + 2..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        digits > 0 && rest[digits..].starts_with(']')
    })
}
