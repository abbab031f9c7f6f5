//! Generated trees and mutated texts: what is printed can be read, and no text makes the parser panic.

mod text_support;

use pantile_ir::ast::*;
use pantile_ir::span::Span;
use pantile_ir::text;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use text_support::*;

const NAMES: &[&str] = &[
    "a", "b2", "K", "i", "order", "step", "limit", "seed", "full", "zeros", "wait", "acquire", "ring",
    "grid", "copy", "barrier", "tile", "acc", "op", "shared", "keep", "where", "plan", "not", "kernel",
    "stage", "return",
];

fn ident() -> impl Strategy<Value = Ident> {
    prop::sample::select(NAMES).prop_map(|n| Ident { name: n.into(), span: Span::default() })
}

fn plain() -> impl Strategy<Value = Ident> {
    ident()
        .prop_filter("clause words follow expressions", |n| !text::words::CLAUSES.contains(&n.name.as_str()))
}

fn e(kind: ExprKind) -> Expr {
    Expr { kind, span: Span::default() }
}

fn boxed(x: Expr) -> Box<Expr> {
    Box::new(x)
}

fn block(stmts: Vec<Stmt>, tail: Option<Expr>) -> Block {
    Block { stmts, tail: tail.map(Box::new), span: Span::default() }
}

fn atom() -> BoxedStrategy<Expr> {
    prop_oneof![
        ident().prop_map(|n| e(ExprKind::Name(n))),
        ident().prop_map(|n| e(ExprKind::Name(n))),
        prop::sample::select(&["0", "17", "0xfF", "1_000"][..]).prop_map(|s| e(ExprKind::Int(s.into()))),
        prop::sample::select(&["0.5", "1e-30", "2.5E3"][..]).prop_map(|s| e(ExprKind::Float(s.into()))),
        any::<bool>().prop_map(|b| e(ExprKind::Bool(b))),
        "[ -~äü\\n\\t]{0,6}".prop_map(|s| e(ExprKind::Str(s))),
        ident().prop_map(|n| e(ExprKind::Elem(Elem::Acc(n, Span::default())))),
        plain().prop_map(|n| e(ExprKind::Acquire(n))),
        plain().prop_map(|n| e(ExprKind::Wait(n))),
    ]
    .boxed()
}

const BINARY: &[BinaryOp] = {
    use BinaryOp::*;
    &[OrOr, AndAnd, Eq, Ne, Lt, Le, Gt, Ge, BitOr, BitXor, BitAnd, Shl, Shr, Add, Sub, Mul, Div, Rem, MatMul]
};

fn axis(x: BoxedStrategy<Expr>) -> impl Strategy<Value = AxisIndex> {
    let span = Span::default();
    prop_oneof![
        x.clone().prop_map(AxisIndex::At),
        (x.clone(), x.clone(), option::of(x.clone()), any::<bool>()).prop_map(
            move |(start, len, limit, clip_low)| AxisIndex::Extent { start, len, limit, clip_low, span }
        ),
        (x.clone(), x).prop_map(move |(lo, hi)| AxisIndex::Range { lo, hi, span }),
        Just(AxisIndex::Full(span)),
        Just(AxisIndex::New(span)),
    ]
}

fn arg(x: BoxedStrategy<Expr>) -> impl Strategy<Value = Arg> {
    let seed = Ident { name: "seed".into(), span: Span::default() };
    let keyed = Arg { name: None, value: e(ExprKind::Keyed(seed, boxed(e(ExprKind::Int("7".into()))))) };
    prop_oneof![4 => (option::of(ident()), x).prop_map(|(name, value)| Arg { name, value }), 1 => Just(keyed)]
}

fn generic_args() -> impl Strategy<Value = Vec<GenericArg>> {
    let value =
        || prop_oneof![ident().prop_map(|n| e(ExprKind::Name(n))), Just(e(ExprKind::Int("8".into())))];
    let one = prop_oneof![
        value().prop_map(GenericArg::Positional),
        (ident(), value()).prop_map(|(name, value)| GenericArg::Named(Named { name, value })),
    ];
    vec(one, 0..3)
}

fn index(x: BoxedStrategy<Expr>) -> impl Strategy<Value = Expr> {
    (x.clone(), vec(axis(x), 1..4)).prop_map(|(b, axes)| e(ExprKind::Index(boxed(b), axes)))
}

fn expr() -> BoxedStrategy<Expr> {
    atom().prop_recursive(4, 40, 3, |x| {
        let field = prop::sample::select(&["T", "0", "12", "approx", "x"][..]);
        let field = field.prop_map(|n| Ident { name: n.into(), span: Span::default() });
        prop_oneof![
            4 => (prop::sample::select(BINARY), x.clone(), x.clone())
                .prop_map(|(op, a, b)| e(ExprKind::Binary(op, boxed(a), boxed(b)))),
            1 => (any::<bool>(), x.clone()).prop_map(|(neg, a)| {
                e(ExprKind::Unary(if neg { UnaryOp::Neg } else { UnaryOp::Not }, boxed(a)))
            }),
            1 => (x.clone(), x.clone()).prop_map(|(a, b)| e(ExprKind::In(boxed(a), boxed(b)))),
            2 => index(x.clone()),
            1 => (index(x.clone()), x.clone(), any::<bool>()).prop_map(|(a, v, or)| {
                e(if or { ExprKind::Or(boxed(a), boxed(v)) } else { ExprKind::Pad(boxed(a), boxed(v)) })
            }),
            1 => (x.clone(), field).prop_map(|(a, n)| e(ExprKind::Field(boxed(a), n))),
            2 => (x.clone(), vec(arg(x.clone()), 0..4)).prop_map(|(f, args)| {
                e(ExprKind::Call { callee: boxed(f), generics: Vec::new(), args })
            }),
            1 => (ident(), generic_args(), vec(arg(x.clone()), 0..3)).prop_map(|(f, generics, args)| {
                e(ExprKind::Call { callee: boxed(e(ExprKind::Name(f))), generics, args })
            }),
            1 => vec(x.clone(), 0..4).prop_map(|v| e(ExprKind::Tuple(v))),
            1 => vec(x.clone(), 0..4).prop_map(|v| e(ExprKind::List(v))),
            1 => (any::<bool>(), x.clone(), x.clone(), x.clone()).prop_map(|(is_const, c, a, b)| {
                let (then, other) = (block(Vec::new(), Some(a)), block(Vec::new(), Some(b)));
                e(ExprKind::If { is_const, cond: boxed(c), then, other })
            }),
            1 => (any::<bool>(), x.clone(), x.clone()).prop_map(|(once, a, b)| {
                let set = StmtKind::Assign { place: a, op: AssignOp::Fold, value: b.clone(), options: Vec::new() };
                let inner = block(vec![Stmt::new(set, Span::default())], Some(b));
                e(if once { ExprKind::Once(inner) } else { ExprKind::Block(inner) })
            }),
            1 => (plain(), vec(x.clone(), 1..3), option::of(x)).prop_map(|(n, shape, value)| {
                e(ExprKind::Fill { value: value.map(boxed), elem: Elem::Name(n), shape })
            }),
        ]
    })
    .boxed()
}

fn ty() -> BoxedStrategy<Type> {
    let t = |kind| Type { kind, span: Span::default() };
    let name = || ident().prop_map(Elem::Name);
    let shape = || vec(expr(), 1..3);
    let leaf = prop_oneof![
        name().prop_map(move |n| t(TypeKind::Elem(n))),
        ident().prop_map(move |n| t(TypeKind::Elem(Elem::Acc(n, Span::default())))),
        (name(), shape()).prop_map(move |(elem, shape)| t(TypeKind::Tile { elem, shape })),
        (name(), shape()).prop_map(move |(elem, shape)| t(TypeKind::Array { elem, shape })),
        (name(), shape()).prop_map(move |(elem, shape)| t(TypeKind::Shared { elem, shape })),
    ];
    leaf.prop_recursive(2, 6, 3, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(move |v| t(TypeKind::Tuple(v))),
            (ident(), inner)
                .prop_map(move |(comb, value)| t(TypeKind::Reducer { comb, value: Box::new(value) })),
        ]
    })
    .boxed()
}

fn range() -> impl Strategy<Value = Range> {
    (expr(), expr(), option::of(expr())).prop_map(|(lo, hi, step)| Range {
        lo,
        hi,
        step,
        span: Span::default(),
    })
}

fn place() -> impl Strategy<Value = Expr> {
    (ident(), vec(axis(expr()), 0..3)).prop_map(|(n, axes)| {
        let base = e(ExprKind::Name(n));
        if axes.is_empty() { base } else { e(ExprKind::Index(boxed(base), axes)) }
    })
}

fn options() -> impl Strategy<Value = Vec<Named>> {
    vec((ident(), expr()).prop_map(|(name, value)| Named { name, value }), 0..2)
}

fn home() -> impl Strategy<Value = Home> {
    use Home::*;
    prop_oneof![prop::sample::select(vec![Shared, Fragment, Thread, Scratch, Direct]), ident().prop_map(Ring)]
}

/// With a home of its own it says something.
fn placement(own: bool) -> BoxedStrategy<Placement> {
    let layout = prop::sample::select(vec!["xor<3, 4, 3>", "m: 8@mem*4", "a \"quoted\" one"]);
    let align = option::of((1..64u32).prop_map(|n| e(ExprKind::Int(n.to_string()))));
    let partial = option::of((ident(), ident()));
    (home(), option::of(layout), align, option::of(ident()), partial)
        .prop_map(move |(home, layout, align, over, partial)| Placement {
            home: own.then_some(home),
            layout: layout.map(str::to_owned),
            align,
            over,
            partial,
            span: Span::default(),
        })
        .boxed()
}

fn segments() -> impl Strategy<Value = Vec<Segment>> {
    let named = || (ident(), expr()).prop_map(|(name, value)| Named { name, value });
    let segment = move || (range(), vec(named(), 0..3)).prop_map(|(range, consts)| Segment { range, consts });
    prop_oneof![range().prop_map(|range| vec![Segment { range, consts: Vec::new() }]), vec(segment(), 1..4),]
}

fn simple_stmt() -> BoxedStrategy<StmtKind> {
    let name = || {
        prop_oneof![
            3 => ident().prop_map(Pattern::Name),
            1 => (ident(), placement(true)).prop_map(|(n, place)| Pattern::Placed(n, Box::new(place))),
        ]
    };
    let pattern = || {
        prop_oneof![
            name(),
            vec(name(), 2..4).prop_map(|v| Pattern::Tuple(v, Span::default())),
            Just(Pattern::Ignore(Span::default())),
        ]
    };
    let ops = {
        use AssignOp::*;
        prop::sample::select(vec![Set, Add, Sub, Mul, Div, Rem, And, Or, Xor, Shl, Shr, Fold])
    };
    prop_oneof![
        3 => (pattern(), option::of(ty()), expr(), options())
            .prop_map(|(pattern, ty, value, options)| StmtKind::Let { pattern, ty, value, options }),
        2 => (pattern(), option::of(ty()), expr(), options()).prop_map(|(pattern, ty, value, options)| {
            StmtKind::Var { pattern, ty, value: Some(value), options }
        }),
        3 => (expr(), ops, expr(), options()).prop_filter("an `if` is a statement", |s| !starts_with_if(&s.0))
            .prop_map(|(place, op, value, options)| StmtKind::Assign { place, op, value, options }),
        2 => expr().prop_filter("an `if` is a statement", |x| !starts_with_if(x)).prop_map(StmtKind::Expr),
        1 => (vec(expr(), 1..3), vec(ident(), 1..3), any::<bool>())
            .prop_map(|(extents, names, ordered)| StmtKind::Threads { extents, names, ordered }),
        1 => (vec(expr(), 1..3), vec(ident(), 1..3), option::of(expr()))
            .prop_map(|(extents, names, cost)| StmtKind::Grid { extents, names, cost }),
        1 => (any::<bool>(), option::of(ident()), place(), place(), any::<bool>()).prop_map(
            |(asynchronous, queue, from, to, padded)| {
                let zero = e(ExprKind::Int("0".into()));
                let pad = Some(zero).filter(|_| padded && matches!(from.kind, ExprKind::Index(..)));
                let asynchronous = asynchronous || queue.is_some();
                StmtKind::Form(Form::Copy { asynchronous, queue, from, to, pad })
            }
        ),
        1 => (option::of(ident()), place(), place(), place(), option::of(expr()), options()).prop_map(
            |(queue, a, b, to, init, options)| StmtKind::Form(Form::Gemm { queue, a, b, to, init, options })
        ),
        1 => (ident(), vec(arg(expr()), 0..3), vec(place(), 1..3)).prop_map(|(f, args, to)| {
            let callee = boxed(e(ExprKind::Name(f)));
            StmtKind::Form(Form::Call { call: e(ExprKind::Call { callee, generics: Vec::new(), args }), to })
        }),
        1 => (ident(), generic_args(), vec(expr(), 0..3), options())
            .prop_map(|(kernel, generics, args, params)| StmtKind::Launch { kernel, generics, args, params }),
        1 => (ident(), ident(), vec(expr(), 1..3), placement(false), 0..3usize).prop_map(
            |(name, elem, shape, mut place, home)| {
                place.home = Some([Home::Shared, Home::Fragment, Home::Scratch][home].clone());
                StmtKind::Memory { name, elem: Elem::Name(elem), shape, place }
            }
        ),
        1 => (ident(), ident(), any::<bool>())
            .prop_map(|(name, team, groups)| StmtKind::Turn { name, team, groups }),
        1 => (ident(), expr()).prop_map(|(queue, keep)| StmtKind::Await { queue, keep }),
        1 => prop_oneof![
            ident().prop_map(StmtKind::Commit),
            ident().prop_map(StmtKind::Release),
            ident().prop_map(StmtKind::Take),
            option::of(ident()).prop_map(|team| StmtKind::Barrier { team }),
            Just(StmtKind::Break),
        ],
    ]
    .boxed()
}

/// At the start of a statement `if` is control.
fn starts_with_if(x: &Expr) -> bool {
    matches!(x.kind, ExprKind::If { .. })
}

fn stmt() -> BoxedStrategy<Stmt> {
    let s = |kind| Stmt::new(kind, Span::default());
    let simple = (simple_stmt(), option::of((expr(), expr())))
        .prop_map(move |(kind, stage)| Stmt { stage: stage.map(Box::new), ..s(kind) });
    simple
        .prop_recursive(3, 12, 3, move |inner| {
            let body = || vec(inner.clone(), 0..3).prop_map(|v| block(v, None));
            let kind = prop_oneof![
                Just(LoopKind::Serial),
                Just(LoopKind::Const),
                Just(LoopKind::Unroll),
                Just(LoopKind::NoUnroll),
                Just(LoopKind::Vectorized),
                option::of(expr()).prop_map(|stages| LoopKind::Pipelined { stages }),
            ];
            prop_oneof![
                (any::<bool>(), expr(), body(), option::of(body())).prop_map(
                    move |(is_const, cond, then, other)| s(StmtKind::If { is_const, cond, then, other })
                ),
                (ident(), kind, segments(), body()).prop_map(move |(var, kind, segments, body)| {
                    s(StmtKind::For { var, kind, segments, carry: Vec::new(), body })
                }),
                (expr(), body()).prop_map(move |(cond, body)| s(StmtKind::While { cond, body })),
                (vec(ident(), 1..3), vec(expr(), 1..3), body())
                    .prop_map(move |(names, extents, body)| s(StmtKind::Parallel { names, extents, body })),
                (ident(), option::of(ident()), body())
                    .prop_map(move |(team, group, body)| s(StmtKind::Role { team, group, body })),
            ]
        })
        .boxed()
}

fn file() -> impl Strategy<Value = File> {
    let param =
        (ident(), ident(), option::of(vec(expr(), 1..3)), 0..3u8).prop_map(|(name, elem, shape, mode)| {
            let mode = [Mode::In, Mode::Out, Mode::InOut][mode as usize];
            let elem = Elem::Name(elem);
            let span = Span::default();
            Param {
                name,
                mode,
                elem,
                shape,
                strides: None,
                align: None,
                base: None,
                packed: None,
                prepacked: None,
                span,
            }
        });
    let kernel = (ident(), vec(param, 0..4), vec(expr(), 0..3), vec(stmt(), 0..4)).prop_map(
        |(name, params, wheres, stmts)| {
            let (generics, attrs) = (Vec::new(), Attrs::default());
            ItemKind::Kernel(Kernel { name, generics, params, attrs, wheres, body: block(stmts, None) })
        },
    );
    let function = (ident(), vec((ident(), ty()), 0..3), option::of(ty()), vec(stmt(), 0..3), expr())
        .prop_map(|(name, params, result, stmts, tail)| {
            ItemKind::Fn(Fn { name, generics: Vec::new(), params, result, body: block(stmts, Some(tail)) })
        });
    let item = prop_oneof![kernel, function].prop_map(|kind| Item { kind, span: Span::default() });
    (option::of(ident()), vec(item, 1..3)).prop_map(|(stage, items)| File { stage, items, ..File::default() })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_can_be_read(tree in file()) {
        let printed = text::format(&tree);
        let (again, diags, _) = parse(&printed);
        let messages: Vec<_> = diags.iter().map(|d| d.message.clone()).collect();
        prop_assert!(diags.is_empty(), "{messages:?} in\n{printed}");
        prop_assert_eq!(text::structure(&tree), text::structure(&again), "in\n{}", printed);
        let long = printed.lines().any(|l| l.trim_end() != l);
        prop_assert!(!long, "white space at the end of a line of\n{printed}");
        // once read, blocks and lines have places: the next round must already be stable
        let second = text::format(&again);
        let third = text::format(&parse(&second).0);
        prop_assert_eq!(second, third);
    }
}

// ---- mutation ----

/// A small generator of numbers, so that a failing case is named by its seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// Words, numbers and single marks of `source` as byte ranges.
fn pieces(source: &str) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    let mut start = None;
    for (i, c) in source.char_indices() {
        let word = c.is_ascii_alphanumeric() || c == '_';
        if let Some(s) = start.filter(|_| !word) {
            all.push((s, i));
            start = None;
        }
        if word {
            start.get_or_insert(i);
        } else if !c.is_whitespace() {
            all.push((i, i + c.len_utf8()));
        }
    }
    all
}

const NOISE: &[&str] = &[
    "\0", "\u{feff}", "é", "\"", "\\", "//", "/*", "{", "}", "(", ")", "[", "]", "..", "+:", ";", "\r",
    "\u{2028}", "if ", "else ", "0x", "1e", "'", "#", "𝄞", "or ", "in ", "let ", "kernel ", "<", ">", "->",
    ".", ",", "\n", "=",
];

fn mutate(source: &str, rng: &mut Rng) -> String {
    let all = pieces(source);
    if all.is_empty() {
        return NOISE[rng.below(NOISE.len())].to_string();
    }
    let (a, b) = (all[rng.below(all.len())], all[rng.below(all.len())]);
    let mut out = source.to_string();
    match rng.below(6) {
        0 => out.replace_range(a.0..a.1, ""),
        1 => out.insert_str(a.1, &format!(" {}", &source[a.0..a.1])),
        2 => {
            let ((l0, l1), (r0, r1)) = if a.0 < b.0 { (a, b) } else { (b, a) };
            if l1 <= r0 {
                out = [&source[..l0], &source[r0..r1], &source[l1..r0], &source[l0..l1], &source[r1..]]
                    .concat();
            }
        }
        3 => out.replace_range(a.0..a.1, &source[b.0..b.1]),
        4 => out.insert_str(a.0, NOISE[rng.below(NOISE.len())]),
        _ => out.truncate(a.0),
    }
    out
}

/// `PANTILE_FUZZ_TEXTS` beyond 3,000 tries as many times more.
fn times(n: u64) -> u64 {
    let texts: Option<u64> = std::env::var("PANTILE_FUZZ_TEXTS").ok().and_then(|v| v.parse().ok());
    n * texts.map_or(1, |t| t / 3000).max(1)
}

/// Files of at most `lines` lines, so that thousands of mutants stay cheap.
fn small_files(lines: usize) -> Vec<String> {
    let files = tile_files().into_iter().map(|(_, s)| s).filter(|s| s.lines().count() <= lines);
    files.collect()
}

#[test]
fn mutants_are_reported_briefly_and_never_panic() {
    let files = small_files(120);
    let mut worst = (0, String::new());
    let mut clean = 0;
    for seed in 0..times(3000) {
        let mut rng = Rng(seed * 7919 + 1);
        let source = &files[rng.below(files.len())];
        let mutant = mutate(source, &mut rng);
        let (tree, diags, sources) = parse(&mutant);
        for d in diags.iter() {
            for style in [Style::Plain, Style::Short, Style::Json] {
                assert!(!render(d, &sources, style).is_empty());
            }
        }
        if diags.is_empty() {
            // a clean mutant is one more text for the formatter
            check_format(&mutant);
            clean += 1;
        } else {
            let _ = text::format(&tree);
        }
        if diags.len() > worst.0 {
            worst = (diags.len(), format!("seed {seed}:\n{}", render_all(&diags, &sources, Style::Short)));
        }
    }
    assert!(clean > 300, "only {clean} mutants were clean");
    // a swap is two mistakes, each may have three reports
    assert!(worst.0 <= 6, "{} reports for one mutation, {}", worst.0, worst.1);
}

#[test]
fn one_wrong_token_gives_at_most_three_reports() {
    let files = small_files(120);
    let mut bad = Vec::new();
    for seed in 0..times(2000) {
        let mut rng = Rng(seed * 104729 + 3);
        let source = &files[rng.below(files.len())];
        let all = pieces(source);
        let (start, end) = all[rng.below(all.len())];
        let mut mutant = source.clone();
        if seed % 2 == 0 {
            mutant.replace_range(start..end, "");
        } else {
            mutant.insert_str(end, &format!(" {}", &source[start..end]));
        }
        let (_, diags, sources) = parse(&mutant);
        if diags.len() > 3 {
            bad.push(format!("seed {seed}:\n{}", render_all(&diags, &sources, Style::Short)));
        }
    }
    assert!(bad.is_empty(), "{} texts with more than three reports\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn noise_never_panics() {
    let files = small_files(60);
    for seed in 0..times(2000) {
        let mut rng = Rng(seed * 31 + 5);
        let mut mutant = files[rng.below(files.len())].clone();
        for _ in 0..=rng.below(12) {
            if mutant.trim().is_empty() {
                break;
            }
            mutant = mutate(&mutant, &mut rng);
        }
        let (tree, diags, sources) = parse(&mutant);
        let _ = render_all(&diags, &sources, Style::Coloured);
        let _ = text::format(&tree);
    }
}

use pantile_ir::diag::render::{Style, render, render_all};
