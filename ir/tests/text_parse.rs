//! What the parser reads: the repository's own texts without a report, and constructs as the right tree.

mod text_support;

use pantile_ir::ast::*;
use pantile_ir::text;
use text_support::*;

#[test]
fn every_tile_file_parses_without_a_report() {
    let files = tile_files();
    assert!(files.len() >= 6, "only {} files", files.len());
    for (path, source) in files {
        assert!(!parse_clean(&source).items.is_empty(), "{}", path.display());
    }
}

fn body(source: &str) -> Block {
    let file = parse_clean(&in_kernel(source));
    match &file.items[0].kind {
        ItemKind::Kernel(k) => k.body.clone(),
        other => panic!("{other:?}"),
    }
}

fn only(source: &str) -> StmtKind {
    let block = body(source);
    assert_eq!(block.stmts.len(), 1, "{source}: {:?}", block.stmts);
    block.stmts[0].kind.clone()
}

fn value(source: &str) -> Expr {
    match only(&format!("let x = {source}")) {
        StmtKind::Let { value, .. } => value,
        other => panic!("{other:?}"),
    }
}

/// Reads an expression and prints it fully bracketed.
fn shape(source: &str) -> String {
    fn show(e: &Expr) -> String {
        match &e.kind {
            ExprKind::Binary(op, a, b) => {
                format!("({} {} {})", show(a), text::precedence::mark(*op), show(b))
            }
            ExprKind::Unary(UnaryOp::Neg, a) => format!("(-{})", show(a)),
            ExprKind::Unary(UnaryOp::Not, a) => format!("(!{})", show(a)),
            ExprKind::Or(a, b) => format!("({} or {})", show(a), show(b)),
            ExprKind::Pad(a, b) => format!("({} pad {})", show(a), show(b)),
            ExprKind::In(a, b) => format!("({} in {})", show(a), show(b)),
            _ => text::format_expr(e),
        }
    }
    show(&value(source))
}

#[test]
fn operators_bind_as_the_table_says() {
    for (source, expected) in [
        ("a + b * c", "(a + (b * c))"),
        ("a * b @ c / d % e", "((((a * b) @ c) / d) % e)"),
        ("a - b - c", "((a - b) - c)"),
        ("-a * b", "((-a) * b)"),
        ("!a && b || c", "(((!a) && b) || c)"),
        ("a || b && c", "(a || (b && c))"),
        ("a << 1 + b", "(a << (1 + b))"),
        ("a & b == c", "((a & b) == c)"),
        ("a | b ^ c & d", "(a | (b ^ (c & d)))"),
        ("-x[i] or 0 + 1", "((-(x[i] or 0)) + 1)"),
        ("x[i] or -inf", "(x[i] or (-inf))"),
        ("x[i] or y[j] * 2", "((x[i] or y[j]) * 2)"),
        ("A[i, :] pad -1 @ b", "((A[i, :] pad (-1)) @ b)"),
        ("D in [1, 2] && e", "((D in [1, 2]) && e)"),
        ("a < b != (c < d)", ""),
        ("q @ k.T * s", "((q @ k.T) * s)"),
        ("- - a", "(-(-a))"),
    ] {
        if expected.is_empty() {
            let (_, diags, _) = parse(&in_kernel(&format!("let x = {source}")));
            assert_eq!(diags.len(), 1, "{source}");
        } else {
            assert_eq!(shape(source), expected, "{source}");
        }
    }
}

#[test]
fn a_statement_ends_with_its_line() {
    assert_eq!(body("x = a\n(b, c) = f(x)").stmts.len(), 2);
    assert_eq!(body("x = a\n[1]").stmts.len(), 2);
    assert_eq!(body("x = a; y = b;").stmts.len(), 2);
    assert_eq!(body("x = a +\n b *\n c").stmts.len(), 1);
    assert_eq!(body("x =\n a").stmts.len(), 1);
    assert_eq!(body("x = f(a\n, b\n)\n").stmts.len(), 1);
    assert_eq!(body("x = (a\n - b)").stmts.len(), 1);
    assert_eq!(body("if a { }\n\n else if b { }\n else { }").stmts.len(), 1);
    assert_eq!(body("x = a -\n\n // a comment between\n b").stmts.len(), 1);
    assert_eq!(body("\r\nx = a\r\ny = b\r\n").stmts.len(), 2);
}

#[test]
fn statement_words_remain_names() {
    for word in text::words::STATEMENTS.iter().filter(|w| !text::words::is_reserved(w)) {
        let assign = only(&format!("{word} = 1"));
        assert!(matches!(assign, StmtKind::Assign { op: AssignOp::Set, .. }), "{word}: {assign:?}");
        let assign = only(&format!("{word}[0] += {word} * {word}.x"));
        assert!(matches!(assign, StmtKind::Assign { op: AssignOp::Add, .. }), "{word}: {assign:?}");
        let fold = only(&format!("{word} op= {word}"));
        assert!(matches!(fold, StmtKind::Assign { op: AssignOp::Fold, .. }), "{word}: {fold:?}");
    }
    for word in
        ["order", "keep", "slots", "step", "pad", "limit", "seed", "full", "wait", "zeros", "where", "K", "w"]
    {
        let source = format!("let {word} = x[{word} +: {word} limit {word}] + {word}");
        assert!(matches!(only(&source), StmtKind::Let { .. }), "{word}");
    }
}

#[test]
fn values_of_blocks_are_told_from_statements() {
    let file = parse_clean("fn f(a: f32) -> f32 {\n if a > 0 { a } else if a < 0 { -a } else { 0 }\n}\n");
    let ItemKind::Fn(f) = &file.items[0].kind else { panic!() };
    assert!(f.body.stmts.is_empty());
    let Some(tail) = &f.body.tail else { panic!("no value") };
    let ExprKind::If { other, .. } = &tail.kind else { panic!("{tail:?}") };
    assert!(matches!(other.tail.as_ref().unwrap().kind, ExprKind::If { .. }));

    // without `else`, before another statement, or in a kernel there is no value
    for source in ["if a > 0 { g(a) }\n", "if a > 0 { g(a) } else { h(a) }\n 1"] {
        let file = parse_clean(&format!("fn f(a: f32) {{\n {source}\n}}"));
        let ItemKind::Fn(f) = &file.items[0].kind else { panic!() };
        let StmtKind::If { then, other, .. } = &f.body.stmts[0].kind else { panic!("{source}") };
        assert!(then.tail.is_none() && then.stmts.len() == 1, "{source}");
        assert!(other.as_ref().is_none_or(|b| b.tail.is_none() && b.stmts.len() == 1), "{source}");
    }
    let block = body("if a { f(x) } else if b { g(x) } else { h(x) }");
    assert!(block.tail.is_none());
    let StmtKind::If { other: Some(other), .. } = &block.stmts[0].kind else { panic!() };
    let StmtKind::If { then, other: Some(last), .. } = &other.stmts[0].kind else { panic!("{other:?}") };
    assert!(then.tail.is_none() && last.tail.is_none());
}

#[test]
fn angle_brackets_are_generics_only_when_they_touch() {
    assert!(matches!(value("f<a, b>(c)").kind, ExprKind::Call { generics, .. } if generics.len() == 2));
    let call = value("g(a < b, c > (d))");
    let ExprKind::Call { generics, args, .. } = call.kind else { panic!() };
    assert!(generics.is_empty() && args.len() == 2);
    assert!(matches!(value("f<N/2, E = gelu>(x)[0]").kind, ExprKind::Index(..)));
    assert!(matches!(value("a<b").kind, ExprKind::Binary(BinaryOp::Lt, ..)));
}

#[test]
fn numbers_and_strings() {
    assert!(matches!(value("0x7F").kind, ExprKind::Int(s) if s == "0x7F"));
    assert!(matches!(value("1_000").kind, ExprKind::Int(s) if s == "1_000"));
    for float in ["0.5", "1e-30", "2.5E+3", "1_0.0_1e4"] {
        assert!(matches!(value(float).kind, ExprKind::Float(s) if s == float), "{float}");
    }
    // a tuple's fields are no fractions
    let e = value("a.0.1");
    let ExprKind::Field(base, name) = e.kind else { panic!() };
    assert_eq!(name.name, "1");
    assert!(matches!(base.kind, ExprKind::Field(_, n) if n.name == "0"));
    assert!(matches!(only("for i in 0..3 { }"), StmtKind::For { .. }));
    assert!(matches!(value(r#""a\t\"b\" \\ ü""#).kind, ExprKind::Str(s) if s == "a\t\"b\" \\ ü"));
}

#[test]
fn comments_are_kept_with_their_places() {
    let file = parse_clean("// one\nconst A = 1 // two\n\n/// three ü\nconst B = 2\n// four");
    let kept: Vec<_> = file.comments.iter().map(|c| (c.text.as_str(), c.own_line)).collect();
    assert_eq!(kept, [("// one", true), ("// two", false), ("/// three ü", true), ("// four", true)]);
    assert_eq!(file.lines.len(), 6);
}

#[test]
fn deep_and_long_texts_are_refused_and_do_not_overflow() {
    let n = 20_000;
    let bodies = [
        format!("x = {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("x = {}1{}", "f(".repeat(n), ")".repeat(n)),
        format!("x = {}1{}", "[".repeat(n), "]".repeat(n)),
        format!("x = {}a", "-".repeat(n)),
        format!("x = {}a", "- ".repeat(n)),
        format!("x = a{}", " + a".repeat(n)),
        format!("x = a{}", ".T".repeat(n)),
        format!("x = a{}", "[0]".repeat(n)),
        format!("x = {}1{}", "{ ".repeat(n), " }".repeat(n)),
        format!("x = {}1{}", "once { ".repeat(n), " }".repeat(n)),
        format!("x = x[0] or {}1", "- ".repeat(n)),
        format!("{}{}", "if a { ".repeat(n), " }".repeat(n)),
        format!("{}{{ }}", "if a { } else ".repeat(n)),
        format!("x = {}{{ 1 }}", "if a { 1 } else ".repeat(n)),
        format!("x = {}1", "if ".repeat(n)),
        format!("{}{}", "for i in 0..1 { ".repeat(n), "}".repeat(n)),
        format!("let {}a{} = 1", "(".repeat(n), ")".repeat(n)),
        format!("let a: {}f32{} = 1", "(".repeat(n), ")".repeat(n)),
        format!("let a: {}f32 = 1", "reducer(add) ".repeat(n)),
        format!("x = {}1", "a in ".repeat(n)),
        format!("x = {}1", "not ".repeat(n)),
        "(".repeat(n),
        "{".repeat(n),
        "[({".repeat(n),
    ];
    for body in bodies {
        let (tree, diags, _) = parse(&in_kernel(&body));
        let shown: String = body.chars().take(30).collect();
        assert!((1..=3).contains(&diags.len()), "{shown}: {} reports", diags.len());
        // later walks recurse too: the tree must be shallow
        let _ = text::format(&tree);
        let _ = text::structure(&tree);
    }
}

#[test]
fn what_is_allowed_to_be_deep_is_read() {
    let n = 60;
    for source in [
        format!("x = {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("x = a{}", " + a".repeat(100)),
        format!("{}{}", "if a { ".repeat(n), " }".repeat(n)),
    ] {
        check_format(&in_kernel(&source));
    }
}
