//! What the parser reads: the language's own examples without a report, and each construct as the right tree.

use pantile_ir::span::Sources;
use pantile_ir::text;
use std::path::PathBuf;

fn syntax_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/syntax")
}

#[test]
fn every_syntax_file_parses_without_a_report() {
    let mut seen = 0;
    for entry in std::fs::read_dir(syntax_dir()).unwrap() {
        let path = entry.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        let mut sources = Sources::default();
        let file = sources.add(path.display().to_string(), Some(&path), source);
        let (tree, diags) = text::parse(file, &sources);
        let lines: Vec<_> =
            diags.iter().map(|d| (sources.line_col(d.primary.span), d.message.clone())).collect();
        assert!(diags.is_empty(), "{}: {lines:#?}", path.display());
        assert!(!tree.items.is_empty(), "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 4, "only {seen} files in tests/syntax");
}
