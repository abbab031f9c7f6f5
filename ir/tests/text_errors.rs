//! What the parser says about mistakes: place, words and remedy, and that one slip is one report.

mod text_support;

use pantile_ir::codes;
use pantile_ir::diag::render::{Style, render, render_all};
use pantile_ir::diag::{Code, Diagnostic};
use pantile_ir::span::{Sources, Span};
use text_support::*;

/// `line:col code message | help` of every report.
fn reports(source: &str) -> Vec<String> {
    let (_, diags, sources) = parse(source);
    let line = |d: &Diagnostic| {
        let (line, col) = sources.line_col(d.primary.span);
        format!("{line}:{col} {} {} | {}", d.code, d.message, d.help.join("; "))
    };
    diags.iter().map(line).collect()
}

/// Exactly one report, of this rule, at this place, and with `words` in message or help.
fn one(source: &str, place: &str, code: Code, words: &[&str]) {
    let all = reports(source);
    assert_eq!(all.len(), 1, "{source}\n{all:#?}");
    assert!(all[0].starts_with(&format!("{place} {code} ")), "{source}\n{}", all[0]);
    for word in words {
        assert!(all[0].contains(word), "no `{word}` in\n{}", all[0]);
    }
}

/// The same for statements of a kernel, whose first line is line 2; columns begin at 5.
fn one_in_kernel(body: &str, place: &str, code: Code, words: &[&str]) {
    // a statement behind the mistake must be read again
    one(&in_kernel(&format!("{body}\n    let after = 1")), place, code, words);
}

#[test]
fn slips_in_statements() {
    use codes::*;
    for (body, place, code, words) in [
        ("if i = 3 { x = 1 }", "2:10", ASSIGN_IN_CONDITION, &["write `==`"][..]),
        ("while a = b { x = 1 }", "2:13", ASSIGN_IN_CONDITION, &["write `==`"]),
        ("let z = X[i : 3]", "2:17", EXTENT_COLON, &["start +: count"]),
        ("let z = X[: 3]", "2:15", EXTENT_COLON, &["first..end"]),
        ("vra q = 3", "2:5", UNKNOWN_WORD, &["did you mean `var`"]),
        ("launh k(x)", "2:5", UNKNOWN_WORD, &["did you mean `launch`"]),
        ("frobnicate the thing", "2:5", UNKNOWN_WORD, &["begins no statement"]),
        ("for (int i = 0; i < 3; i++) { x += 1 }", "2:9", FOREIGN_SYNTAX, &["for i in 0..n"]),
        ("for i = 0 { x += 1 }", "2:11", FOREIGN_SYNTAX, &["for i in 0..n"]),
        ("let a = (1, 2", "2:13", UNCLOSED, &["`(` is never closed"]),
        ("let a = X[1, 2", "2:14", UNCLOSED, &["`[` is never closed"]),
        ("let a = f(1, g(2)\n    let b = 3", "2:14", UNCLOSED, &["`(` is never closed"]),
        ("let b = a and c", "2:15", FOREIGN_SYNTAX, &["write `&&`"]),
        ("let b = a or c", "2:15", FOREIGN_SYNTAX, &["write `||`"]),
        ("let b = not c", "2:13", FOREIGN_SYNTAX, &["write `!`"]),
        ("let for = 3", "2:9", RESERVED_WORD, &["`for` is a reserved word", "`for_`"]),
        ("let t = a < b < c", "2:19", CHAINED_COMPARISON, &["a < b && b < c"]),
        ("let t = a < b < c < d < e", "2:19", CHAINED_COMPARISON, &[]),
        ("let u = a ? b : c", "2:15", FOREIGN_SYNTAX, &["if condition { a } else { b }"]),
        ("f(a ? b : c)", "2:9", FOREIGN_SYNTAX, &["if condition { a } else { b }"]),
        ("i++", "2:5", FOREIGN_SYNTAX, &["write `i += 1`"]),
        ("return z", "2:5", FOREIGN_SYNTAX, &["no `return`"]),
        ("return", "2:5", FOREIGN_SYNTAX, &["no `return`"]),
        ("int k = 0", "2:5", FOREIGN_SYNTAX, &["let k"]),
        ("let mut k = 0", "2:13", UNEXPECTED, &["found `k`"]),
        ("k: f32 = 2", "2:6", UNEXPECTED, &["`let` or `var`"]),
        ("z := 3", "2:7", FOREIGN_SYNTAX, &["let x = "]),
        ("x = y pad 3", "2:11", UNEXPECTED, &["`pad` follows a region"]),
        ("x = 2 ** 3", "2:11", FOREIGN_SYNTAX, &["pow(a, b)"]),
        ("y = 1 2", "2:11", MISSING_NEWLINE, &["put `;` before it"]),
        ("y = x)", "2:10", STRAY_CLOSER, &["closes nothing"]),
        ("x = f(1, 2 3)", "2:16", UNEXPECTED, &["expected `,` or `)`"]),
        ("Y[i] = z\n        + 3", "3:9", UNEXPECTED, &["end it with `+`"]),
        ("Y[i] = z\n        - 3", "3:9", UNEXPECTED, &["end it with `-`"]),
        ("if a { x = 1 } elif b { x = 2 }", "2:20", FOREIGN_SYNTAX, &["write `else if`"]),
        ("else { x = 2 }", "2:5", UNEXPECTED, &["belongs to no `if`"]),
        ("let x = if a { 1 }", "2:13", MISSING_CLAUSE, &["needs an `else`"]),
        ("for i in 0..3\n        x = 1", "2:18", MISSING_BLOCK, &["braces"]),
        ("if a\n        x = 1\n    }", "2:9", MISSING_BLOCK, &["braces"]),
        ("if a:\n        x = 1", "2:9", MISSING_BLOCK, &["instead of `:`"]),
        ("if a then { x = 1 }", "2:10", MISSING_BLOCK, &["instead of `then`"]),
        ("for i in 0..=3 { x = 1 }", "2:15", UNEXPECTED, &["exclude their end"]),
        ("for const i in unroll(3) { x = 1 }", "2:20", UNEXPECTED, &["exclude each other"]),
        ("param B = 3 in 2..5", "2:21", UNEXPECTED, &["include their end"]),
        ("parallel i in 0..n { x = 1 }", "2:20", UNEXPECTED, &["extents, not ranges"]),
        ("let q = 1.0f", "2:13", BAD_NUMBER, &["write `1.0`"]),
        ("let q = 1i32", "2:13", BAD_NUMBER, &["write `i32(1)`"]),
        ("let q = 0b01", "2:13", BAD_NUMBER, &["0x80"]),
        ("let q = 12ab", "2:13", BAD_NUMBER, &["begin with a digit"]),
        ("let é = 3", "2:9", BAD_CHARACTER, &["letters a-z"]),
        ("let a = b × c", "2:15", BAD_CHARACTER, &["written `*`"]),
        ("let a = b # c", "2:15", BAD_CHARACTER, &["comments begin with `//`"]),
        ("let w = \"abc", "2:13", UNTERMINATED_STRING, &["no closing quote"]),
        ("let w = \"a\\q\"", "2:15", BAD_ESCAPE, &["`\\q`"]),
        ("let w = 1 /* two\n lines */ + 2", "2:15", FOREIGN_SYNTAX, &["`//`"]),
        ("fn f() { 1 }", "2:5", UNEXPECTED, &["cannot stand inside a block", "top level"]),
        ("let x", "2:10", UNEXPECTED, &["expected `=`", "end of the line"]),
        ("var x", "2:10", UNEXPECTED, &["`: type` or `= value`"]),
        ("grid N", "2:11", UNEXPECTED, &["`as`"]),
        ("let x = ", "2:12", UNEXPECTED, &["expected an expression"]),
        ("let x = *p", "2:13", UNEXPECTED, &["no pointers"]),
        ("let x = X[1..]", "2:18", UNEXPECTED, &["expected an expression"]),
        ("let x = f(a = )", "2:19", UNEXPECTED, &["expected an expression"]),
        ("let x = f(a == 1, b = = 2)", "2:27", UNEXPECTED, &["expected an expression"]),
        ("let x = zeros f32", "2:22", UNEXPECTED, &["expected a shape"]),
        ("let x = full f32[4]()", "2:25", UNEXPECTED, &["needs the value"]),
        ("ring r[2] a -> b { t: shared i32 }", "2:5", MISSING_CLAUSE, &["fill counted"]),
        ("await q", "2:12", UNEXPECTED, &["`keep`"]),
        ("static_assert()", "2:5", UNEXPECTED, &["a condition and a text"]),
    ] {
        one_in_kernel(body, place, code, words);
    }
}

#[test]
fn slips_in_items() {
    use codes::*;
    let k = "kernel k(X: f32[N]) {\n    grid N as i\n}\n";
    for (source, place, code, words) in [
        ("kernal k(X: f32[N]) {\n    grid N as i\n}\n", "1:1", UNKNOWN_WORD, &["did you mean `kernel`"][..]),
        ("def f(x) {\n}\n", "1:1", FOREIGN_SYNTAX, &["`fn`"]),
        ("let x = 3\n", "1:1", UNEXPECTED, &["outside of a body"]),
        ("}\n", "1:1", STRAY_CLOSER, &["closes nothing"]),
        ("kernel k(X f32[N]) {\n    grid N as i\n}\n", "1:12", UNEXPECTED, &["`:` and the parameter's type"]),
        ("kernel k(X: f32[N]) -> f32 {\n    grid N as i\n}\n", "1:21", UNEXPECTED, &["give no value"]),
        ("kernel k(X: f32[:]) {\n    grid N as i\n}\n", "1:17", UNEXPECTED, &["every extent"]),
        ("kernel k<C: bool>(X: f32[N]) {\n    grid N as i\n}\n", "1:13", UNEXPECTED, &["const C: bool"]),
        ("kernel k(X: f32[N]) align 16 {\n    grid N as i\n}\n", "1:21", MISSING_BLOCK, &["found `align`"]),
        ("kernel k(X: f32[N])\n    grid N as i\n}\n", "1:20", MISSING_BLOCK, &["braces"]),
        ("kernel k(X: f32[N]) {\n    grid N as i\n", "1:21", UNCLOSED, &["never closed"]),
        ("kernel k(X: f32[N] align 2 align 4) {\n    grid N as i\n}\n", "1:28", DUPLICATE_CLAUSE, &["twice"]),
        ("combine c(a: f32, b: f32) -> f32 { a + b }\n", "1:34", MISSING_CLAUSE, &["identity"]),
        ("intrinsic fn f(x: f32) -> f32 {\n    cuda(sm_80) \"a\"\n}\n", "1:31", MISSING_CLAUSE, &["means"]),
        ("intrinsic fn f(x: f32) -> f32 {\n    means { x }\n}\n", "2:16", MISSING_CLAUSE, &["within"]),
        ("use std\n", "1:5", UNEXPECTED, &["use \"std\""]),
        ("const A: int = 3\n", "1:8", UNEXPECTED, &["type of its value"]),
        ("test t {\n    dim N = 3\n}\n", "2:5", UNKNOWN_WORD, &["did you mean `dims`"]),
        ("test t {\n    Y == ref(X) rtol 1e-3\n}\n", "2:22", UNEXPECTED, &["takes no tolerance"]),
        ("test t {\n    N 3\n}\n", "2:7", UNEXPECTED, &["`~` or `==`"]),
        ("$\n", "1:1", BAD_CHARACTER, &["without `$`"]),
    ] {
        one(&format!("{source}{k}"), place, code, words);
        one(&format!("{k}\n{source}"), &shifted(place, 4), code, words);
    }
}

fn shifted(place: &str, lines: usize) -> String {
    let (line, col) = place.split_once(':').unwrap();
    format!("{}:{col}", line.parse::<usize>().unwrap() + lines)
}

#[test]
fn a_forgotten_brace_is_found_where_it_was_forgotten() {
    let source = "\
kernel a(X: f32[N]) {
    grid N as i
    for k in 0..N {
        if k > 3 {
            X[k] = 1
    }
    let z = 3
}

kernel b(X: f32[N]) {
    grid N as i
}
";
    one(source, "4:18", codes::UNCLOSED, &["never closed"]);
}

#[test]
fn several_mistakes_are_reported_in_one_run_and_in_order() {
    let body = "let a = )\n    if b = 1 { c = 2 }\n    vra d = 3\n    let e = X[i : 4]\n    x = f(1 2)";
    let all = reports(&in_kernel(body));
    let places: Vec<&str> = all.iter().map(|r| r.split(' ').next().unwrap()).collect();
    assert_eq!(places, ["2:13", "3:10", "4:5", "5:17", "6:13"], "{all:#?}");
}

#[test]
fn messages_are_in_the_users_words() {
    let all =
        reports(&in_kernel("let a = \n if b = 1 { c = 2 }\n vra d = 3\n ring x\n x = f(1 2)\n let 3 = 4"));
    for report in &all {
        for internal in ["Tok", "Expr", "Ident", "Stmt", "token", "parser", "AST", "None", "Some"] {
            assert!(!report.contains(internal), "{report}");
        }
        let message = report.splitn(3, ' ').nth(2).unwrap();
        assert!(message.starts_with(|c: char| c.is_lowercase() || c == '`'), "{report}");
    }
}

// ---- rendering ----

#[test]
fn the_four_styles() {
    let (_, diags, sources) = parse("kernel k(X: f32[N]) {\n    if N = 3 { ü = 1 }\n}\n");
    let first = diags.iter().next().unwrap();
    assert_eq!(
        render(first, &sources, Style::Short),
        "test.tile:2:10: error[P0111]: `=` assigns, a condition compares"
    );
    let plain = "\
error[P0111]: `=` assigns, a condition compares
 --> test.tile:2:10
  |
2 |     if N = 3 { ü = 1 }
  |          ^
  |
  = help: write `==`";
    assert_eq!(render(first, &sources, Style::Plain), plain);
    let coloured = render(first, &sources, Style::Coloured);
    assert!(coloured.contains("\u{1b}[") && coloured.contains("P0111"), "{coloured}");
    let json: serde_json::Value = serde_json::from_str(&render(first, &sources, Style::Json)).unwrap();
    let expected = serde_json::json!({
        "code": "P0111", "severity": "error", "message": "`=` assigns, a condition compares",
        "file": "test.tile", "line": 2, "col": 10, "end": { "line": 2, "col": 11 }, "label": "",
        "labels": [], "help": ["write `==`"], "notes": []
    });
    assert_eq!(json, expected);
    let all = render_all(&diags, &sources, Style::Json);
    assert_eq!(all.lines().count(), diags.len());
    assert!(all.lines().all(|l| serde_json::from_str::<serde_json::Value>(l).is_ok()));
}

#[test]
fn calls_are_shown_from_the_inside_out() {
    let mut sources = Sources::default();
    let lib = sources.add("lib.tile", None, "fn f(x: f32) -> f32 {\n    x + y\n}\nfn g() { f(1) }\n");
    let main = sources.add("main.tile", None, "kernel k() {\n    g()\n}\n");
    let outer = sources.add_call(Span::new(main, 17, 20), "g");
    let inner = sources.add_call(Span::new(lib, 43, 47).inside(outer), "f");
    let d = Diagnostic::error(codes::UNEXPECTED, Span::new(lib, 30, 31).inside(inner), "no name `y`")
        .label("not declared")
        .note("a note")
        .help("a remedy");
    let expected = "\
error[P0101]: no name `y`
 --> lib.tile:2:9
  |
2 |     x + y
  |         ^ not declared
3 | }
4 | fn g() { f(1) }
  |          ---- in this call of `f`
  |
 ::: main.tile:2:5
  |
2 |     g()
  |     --- in this call of `g`
  |
  = note: a note
  = help: a remedy";
    assert_eq!(render(&d, &sources, Style::Plain), expected);
    let json: serde_json::Value = serde_json::from_str(&render(&d, &sources, Style::Json)).unwrap();
    let labels = json["labels"].as_array().unwrap();
    assert_eq!(labels.len(), 2);
    assert_eq!((labels[1]["file"].as_str(), labels[1]["line"].as_u64()), (Some("main.tile"), Some(2)));
}

#[test]
fn places_outside_of_any_text_do_no_harm() {
    let mut sources = Sources::default();
    let file = sources.add("ü.tile", None, "ü");
    let empty = sources.add("empty.tile", None, "");
    for span in [
        Span::default(),
        Span::new(file, 1, 1),
        Span::new(file, 0, 900),
        Span::new(file, 800, 900),
        Span::new(empty, 0, 5),
        Span { file: pantile_ir::span::FileId(77), ..Span::new(file, 0, 1) },
        Span { at: pantile_ir::span::CallId(99), ..Span::new(file, 0, 1) },
    ] {
        let d = Diagnostic::error(codes::UNEXPECTED, span, "message").also(span, "also");
        for style in [Style::Plain, Style::Coloured, Style::Short, Style::Json] {
            assert!(render(&d, &sources, style).contains("message"), "{span:?} {style:?}");
        }
    }
}

#[test]
fn a_very_long_line_is_named_but_not_drawn() {
    let text = format!("kernel k(A: f32[N]) {{\n    let x = {}\n}}\n", "f(".repeat(40_000));
    let mut sources = pantile_ir::span::Sources::default();
    let file = sources.add("long.tile", None, text);
    let (_, found) = pantile_ir::text::parse(file, &sources);
    let shown =
        pantile_ir::diag::render::render_all(&found, &sources, pantile_ir::diag::render::Style::Plain);
    assert!(shown.contains("long.tile:2:") && shown.len() < 4000, "{}", &shown[..shown.len().min(400)]);
}
