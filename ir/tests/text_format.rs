//! The laws of the formatter: it keeps the meaning and every comment, and formats its own output to itself.

mod text_support;

use pantile_ir::text;
use text_support::*;

#[test]
fn the_laws_hold_for_every_tile_file() {
    for (path, source) in tile_files() {
        let out = check_format(&source);
        let long = out.lines().find(|l| l.split("//").next().unwrap().trim_end().chars().count() > 110);
        assert!(long.is_none(), "{}: too long: {long:?}", path.display());
        assert!(
            !out.contains("\n\n\n") && out.ends_with('\n') && !out.ends_with("\n\n"),
            "{}",
            path.display()
        );
    }
}

fn formats_to(source: &str, expected: &str) {
    assert_eq!(check_format(source), expected, "from\n{source}");
}

#[test]
fn brackets_are_as_few_as_possible_and_as_many_as_readers_need() {
    for (source, expected) in [
        ("((a)) + ((b * c))", "a + b*c"),
        ("(a + b) * c", "(a + b) * c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("-(a + b)", "-(a + b)"),
        ("(-a).x", "(-a).x"),
        ("(a || b) && c", "(a || b) && c"),
        ("a || (b && c)", "a || (b && c)"),
        ("a || b && c", "a || (b && c)"),
        ("(q @ k.T) * s", "(q @ k.T) * s"),
        ("a * b * (c)", "a * b * c"),
        ("(a < b) == c", "(a < b) == c"),
        ("(x[i] or 0) + 1", "x[i] or 0 + 1"),
        ("x[i] or (0 + 1)", "x[i] or (0 + 1)"),
        ("(A[i, :] pad 0).T", "(A[i, :] pad 0).T"),
        ("(if a { 1 } else { 2 }) + 3", "(if a { 1 } else { 2 }) + 3"),
        ("(1).x", "(1).x"),
        ("(a,)", "(a,)"),
        ("f(x, )", "f(x)"),
        ("A[i*BM+:BM,k * BK..(k+1)*BK,_,:]", "A[i*BM +: BM, k*BK..(k+1)*BK, _, :]"),
        ("A[(i + 1) * f(x)]", "A[(i + 1) * f(x)]"),
        ("full f32 [ N ] ( 0 )", "full f32[N](0)"),
        ("(acc)(x)", "(acc)(x)"),
        ("acc( T )( x )", "acc(T)(x)"),
    ] {
        formats_to(&in_kernel(&format!("let v = {source}")), &in_kernel(&format!("let v = {expected}")));
    }
}

#[test]
fn long_lists_are_filled_and_long_chains_broken_behind_operators() {
    let names: Vec<String> = (0..30).map(|i| format!("argument_{i}")).collect();
    let out = check_format(&in_kernel(&format!("let v = f({})", names.join(", "))));
    assert!(out.contains("    let v = f(\n        argument_0, argument_1,"), "{out}");
    assert!(out.contains("argument_29)\n"), "{out}");
    let out = check_format(&in_kernel(&format!("let v = {}", names.join(" + "))));
    assert!(out.contains(" +\n        argument_"), "{out}");
    let params: Vec<String> = names.iter().map(|n| format!("{n}: f32")).collect();
    let out = check_format(&format!("kernel k({}) where a < b {{ }}", params.join(", ")));
    assert!(out.starts_with("kernel k(\n    argument_0: f32, "), "{out}");
    assert!(out.contains("argument_29: f32)\nwhere a < b\n{}\n"), "{out}");
}

#[test]
fn short_blocks_keep_their_line_and_long_ones_lose_it() {
    formats_to(&in_kernel("if a { x = 1 }"), &in_kernel("if a { x = 1 }"));
    formats_to(&in_kernel("if a {\n x = 1\n }"), &in_kernel("if a {\n        x = 1\n    }"));
    formats_to(&in_kernel("if a { x = 1 } else { x = 2 }"), &in_kernel("if a { x = 1 } else { x = 2 }"));
    formats_to(
        &in_kernel("if a { x = 1 }\n else if b { x = 2 }\n else { x = 3 }"),
        &in_kernel("if a { x = 1 }\n    else if b { x = 2 }\n    else { x = 3 }"),
    );
    formats_to(
        &in_kernel("if a { x = 1; y = 2 } else { x = 2 }"),
        &in_kernel("if a {\n        x = 1\n        y = 2\n    } else {\n        x = 2\n    }"),
    );
    let long = "x".repeat(100);
    formats_to(
        &in_kernel(&format!("for i in 0..n {{ {long} = 1 }}")),
        &in_kernel(&format!("for i in 0..n {{\n        {long} = 1\n    }}")),
    );
}

#[test]
fn one_empty_line_is_kept_and_items_stand_apart() {
    formats_to(
        "const A = 1\nconst B = 2\n\n\n\nconst C = 3\nfn f() { }\nfn g() {\n\n\n  a()\n\n\n  b()\n\n}",
        "const A = 1\nconst B = 2\n\nconst C = 3\n\nfn f() {}\n\nfn g() {\n    a()\n\n    b()\n}\n",
    );
    formats_to("", "");
    formats_to("\n\n// only\n\n\n// comments\n\n", "// only\n\n// comments\n");
}

#[test]
fn comments_stay_at_their_places() {
    let source = "\
// head

stage threaded // kept

// before an item
use \"a\"::{b} // behind an item
/// doc
kernel k(
    // before a parameter
    A: f32[N], // behind a parameter
    B: f32[N]
    // after the last parameter
) where N > 0 { // behind the brace
    // first in the block
    let a = 1 // behind a statement

    // before a statement
    for i in 0..n { // behind a loop's brace
        // alone in a block
    }
    let c = f(
        a, // behind an argument
        // before an argument
        b)
    if a {
        x = 1
    } // behind a branch
    else { // behind else
        x = 2
        // last in a branch
    }
    // last in the block
}

// at the end
";
    let expected = "\
// head

stage threaded // kept

// before an item
use \"a\"::{b} // behind an item

/// doc
kernel k(
    // before a parameter
    A: f32[N], // behind a parameter
    B: f32[N],
    // after the last parameter
)
where N > 0
{ // behind the brace
    // first in the block
    let a = 1 // behind a statement

    // before a statement
    for i in 0..n { // behind a loop's brace
        // alone in a block
    }
    let c = f(
        a, // behind an argument
        // before an argument
        b,
    )
    if a {
        x = 1
        // behind a branch
    } else { // behind else
        x = 2
        // last in a branch
    }
    // last in the block
}

// at the end
";
    formats_to(source, expected);
}

/// A comment behind many tokens of a text: none may be lost, wherever it stands.
#[test]
fn no_comment_is_lost_between_any_two_tokens() {
    let mut clean = 0;
    for (path, source) in tile_files().into_iter().filter(|(p, _)| p.to_string_lossy().contains("syntax")) {
        for at in token_ends(&source).into_iter().step_by(7) {
            let mut text = source.clone();
            // a comment ends its line, so only where a line may end is the text still clean
            text.insert_str(at, " // inserted\n");
            let (tree, diags, _) = parse(&text);
            if diags.is_empty() {
                check_format(&text);
                assert!(tree.comments.iter().any(|c| c.text.contains("inserted")), "{}", path.display());
                clean += 1;
            }
        }
    }
    assert!(clean > 100, "only {clean} texts were clean");
}

/// Byte offsets behind words and marks, roughly the lexer's, found without it.
fn token_ends(source: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    for line in source.split_inclusive('\n') {
        let code = line.find("//").unwrap_or(line.len());
        let in_code = |i: &usize| *i < code && !line[..*i].contains('"');
        let borders = line.char_indices().map(|(i, c)| i + c.len_utf8()).filter(|i| *i < line.len());
        let between = borders.filter(|i| {
            let (a, b) = (line.as_bytes()[*i - 1], line.as_bytes()[*i]);
            let word = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
            !(word(a) && word(b)) && (word(a) || word(b) || a == b' ')
        });
        ends.extend(between.filter(in_code).map(|i| at + i));
        at += line.len();
    }
    ends
}

#[test]
fn a_tree_without_places_prints_the_same_meaning() {
    for (path, source) in tile_files() {
        let tree = parse_clean(&source);
        let bare = pantile_ir::ast::File { comments: Vec::new(), lines: Vec::new(), ..tree.clone() };
        let printed = text::format(&bare);
        let again = parse_clean(&printed);
        assert_eq!(text::structure(&tree), text::structure(&again), "{}", path.display());
    }
}
