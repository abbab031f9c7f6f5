//! What the tests of text share.

#![allow(dead_code)] // each test file uses a part

use pantile_ir::ast::File;
use pantile_ir::diag::Diagnostics;
use pantile_ir::diag::render::{Style, render_all};
use pantile_ir::span::Sources;
use pantile_ir::text;
use std::path::PathBuf;

pub fn parse(source: &str) -> (File, Diagnostics, Sources) {
    let mut sources = Sources::default();
    let file = sources.add("test.tile", None, source);
    let (tree, diags) = text::parse(file, &sources);
    (tree, diags, sources)
}

/// The tree of a text without mistakes.
pub fn parse_clean(source: &str) -> File {
    let (tree, diags, sources) = parse(source);
    assert!(diags.is_empty(), "{}\nin\n{source}", render_all(&diags, &sources, Style::Plain));
    tree
}

/// Info string and text of every fenced block of a page.
pub fn fenced(page: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((info.to_string(), String::new())),
            (Some(_), Some(_)) => all.extend(open.take()),
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "an open fence");
    all
}

/// `body` as the body of a kernel.
pub fn in_kernel(body: &str) -> String {
    format!("kernel k(X: f32[N], Y: out f32[N]) {{\n    {body}\n}}\n")
}

/// All `.tile` files of the repository with their texts.
pub fn tile_files() -> Vec<(PathBuf, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in ["tests/syntax", "kernels"] {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "tile") {
                let source = std::fs::read_to_string(&path).unwrap();
                files.push((path, source));
            }
        }
    }
    files.sort();
    files
}

pub fn comment_texts(file: &File) -> Vec<String> {
    let mut all: Vec<String> = file.comments.iter().map(|c| c.text.clone()).collect();
    all.sort();
    all
}

/// The laws of the formatter for one clean text; gives the formatted text.
pub fn check_format(source: &str) -> String {
    let tree = parse_clean(source);
    let once = text::format(&tree);
    let again = parse_clean(&once);
    assert_eq!(
        text::structure(&tree),
        text::structure(&again),
        "the meaning changed in\n{source}\nto\n{once}"
    );
    assert_eq!(comment_texts(&tree), comment_texts(&again), "comments differ in\n{source}\nto\n{once}");
    let twice = text::format(&again);
    assert_eq!(once, twice, "formatting is not stable");
    once
}
