//! What passes write into a program reads back: ranges of one loop, homes, layouts, teams, partial sums, stages.

mod elab_support;

use elab_support::*;
use pantile_ir::DType;
use pantile_ir::codes;
use pantile_ir::diag::Code;
use pantile_ir::elab::{Library, Request, elaborate};
use pantile_ir::interp::{ArgValue, Options, Tensor, run_host};
use pantile_ir::program::*;
use pantile_ir::span::Sources;
use pantile_ir::verify::verify;

/// A kernel of stage `scheduled` with a vector in, a vector out and the statements of one block.
fn scheduled(body: &str) -> String {
    format!("stage scheduled\n\nkernel k(A: f32[N], O: out f32[M]) {{\ngrid 1 as b\n{body}\n}}")
}

#[track_caller]
fn checked(text: &str) -> Program {
    let p = program(text, "k");
    if let Err(d) = verify(&p, &arch("reference")) {
        panic!("{:#?}", d.iter().map(|d| &d.message).collect::<Vec<_>>());
    }
    round_trip(&p);
    p
}

#[track_caller]
fn refused(text: &str, code: Code, part: &str) {
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("test.tile", text, &mut sources);
    let mut all = diags;
    if !all.has_errors() {
        match elaborate(&lib, &Request::new("k"), &arch("reference"), &mut sources) {
            Err(d) => all.extend(d),
            Ok(e) => {
                if let Err(d) = verify(&e.program, &arch("reference")) {
                    all.extend(d);
                }
            }
        }
    }
    let found = all.iter().any(|d| d.code == code && sources.text(d.primary.span).contains(part));
    assert!(found, "no {code} at `{part}`: {:#?}", lines(&all, &sources));
}

fn run(p: &Program, a: &[f64], m: i64) -> Vec<f64> {
    let mut args: Vec<ArgValue> = vec![
        Tensor::from_f64(DType::F32, &[a.len() as i64], a).into(),
        Tensor::unwritten(DType::F32, &[m]).into(),
    ];
    run_host(p, &[], &mut args, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}"));
    args[1].tensor().unwrap().to_f64()
}

#[test]
fn segments_run_in_order_each_with_its_constants() {
    let text = scheduled(
        "var at: index = 0
        for j in seg(0..N / 2: tail = false, w = 1; N / 2..N - 1 step 2: tail = true, w = 10; N - 1..N: tail = true, w = 100) {
            if tail { O[at] = A[j] * f32(w) } else { O[at] = -A[j] }
            at += 1
        }
        while at < M { O[at] = 0; at += 1 }",
    );
    let p = checked(&text);
    let a: Vec<f64> = (1..=7).map(f64::from).collect();
    assert_eq!(run(&p, &a, 7), [-1.0, -2.0, -3.0, 40.0, 60.0, 700.0, 0.0]);
    let printed = round_trip(&p);
    let head = "0..N/2: tail = false, w = 1; N/2..N - 1 step 2: tail = true, w = 10; N - 1..N: tail = true, w = 100) {";
    assert!(printed.contains(head), "{printed}");
}

#[test]
fn a_jump_out_of_one_segment_leaves_all() {
    let text = scheduled(
        "var s: f32 = 0
        for j in pipelined(seg(0..3: far = false; 3..N: far = true), stages = 2) {
            if A[j] < 0 { break }
            if far { continue }
            s += A[j]
        }
        O[0] = s",
    );
    let p = checked(&text);
    assert_eq!(run(&p, &[1.0, -1.0, 5.0, 7.0], 1), [1.0]);
    assert_eq!(run(&p, &[1.0, 2.0, 5.0, 7.0], 1), [8.0]);
}

#[test]
fn one_segment_without_constants_is_a_plain_range() {
    let p = checked(&scheduled("for j in unroll(seg(0..4)) { O[j] = A[j] }"));
    assert!(round_trip(&p).contains("for j in unroll(4) {"));
    let p = checked(&scheduled("for j in seg(0..4: x = 3) { O[j] = A[j] + f32(x) }"));
    assert!(round_trip(&p).contains("for j in seg(0..4: x = 3) {"));
}

#[test]
fn segments_follow_each_other_and_agree_on_their_constants() {
    let body = |head: &str| scheduled(&format!("for j in seg({head}) {{ O[j] = A[j] }}"));
    refused(&body("0..3; 4..N"), codes::SEGMENTS, "4");
    refused(&body("0..3: x = 1; 3..N: y = 2"), codes::SEGMENTS, "3..N");
    refused(&body("0..3: x = 1; 3..N"), codes::SEGMENTS, "3..N");
    refused(&body("0..3: x = 1; 3..N: x = 0.5"), codes::SEGMENTS, "");
    refused(&body("0..3: x = true; 3..N: x = 1"), codes::SEGMENTS, "");
    refused(&body("0..3: x = A[0] > 0"), codes::SEGMENTS, "");
    refused(
        "kernel k(A: f32[N], O: out f32[N]) { grid 1 as b
        for j in seg(0..3; 3..N) { O[j] = A[j] } }",
        codes::STAGE_ATTRIBUTE,
        "",
    );
    refused(
        "op k(A: f32[N], O: out f32[N]) { for j in seg(0..3; 3..4) { launch l(A, O) } }
        kernel l(A: f32[N], O: out f32[N]) { grid N as i
        O[i] = A[i] }",
        codes::SEGMENTS,
        "",
    );
}

#[test]
fn ends_of_segments_are_the_same_for_the_team() {
    let text = "stage scheduled\n\nkernel k(A: f32[N], O: out f32[N]) { grid 1 as b
        threads 32 as t
        var s: f32 = 0
        for j in seg(0..t: own = true; t..32: own = false) { if own { s += A[j] } }
        O[t] = s }";
    refused(text, codes::SEGMENTS, "t");
}

#[test]
fn values_say_where_they_live() {
    let text = "stage scheduled

kernel k(A: f32[N], O: out f32[N]) {
    grid 1 as b
    team load: 1 thread of 1 group
    team math: 2 groups of 128
    ring r[3] load -> math { a: shared f32[8] } fill generic
    let a @ shared xor<1, 2, 3> = A[0 +: 16]
    let c @ direct = A[0 +: 16]
    let d @ ring r = A[0 +: 8]
    let e @ scratch layout \"d0: 8@mem*8\": tile f32[8] = full f32[8](1.0)
    var f @ fragment layout \"d0: 8@thr, 2@reg\" over math partial(max, groups): tile f32[16]
    let g @ over load = A[0]
    let n @ thread: f32 = 2.0
    let (p @ shared, q) = reduce(two, (a, a), axis = 0)
    f = a + c
    var h @ layout \"d0: 16@mem*4 ; align 64\" = f + g * n + p
    O[0 +: 16] = h + q
    O[0 +: 8] = d + e
}

combine two(a: (f32, f32), b: (f32, f32)) -> (f32, f32) identity (0.0, 0.0) { (a.0 + b.0, a.1 + b.1) }
";
    let p = checked(text);
    let printed = round_trip(&p);
    for line in text.lines().filter(|l| l.contains('@')) {
        let head = line.split(" =").next().unwrap().replace(": tile f32[8]", "").replace(": f32", "");
        let found = printed.replace(": tile f32[8]", "").replace(": f32", "");
        assert!(found.contains(head.trim_end_matches(['(', ')'])), "{head}\n{printed}");
    }
    let k = p.kernels.iter().next().unwrap().1;
    let local = |name: &str| k.body.locals.iter().find(|(_, l)| l.name == name).unwrap().1;
    assert_eq!(local("d").home, Home::Ring(k.rings.iter().next().unwrap().0));
    assert_eq!(local("f").partial, Some(Partial { comb: Combiner::Max, over: Spread::Groups }));
    assert_eq!(local("h").layout.as_ref().unwrap().align, 64);
    assert_eq!((local("q").home, local("p").home), (Home::Open, Home::Shared));
}

#[test]
fn memory_says_all_of_where_it_lives() {
    let text = "kernel k(A: f32[N], O: out f32[N]) {
    grid 1 as b
    threads 8 as t
    team math: 1 group of 8
    scratch s: f32[8] align 64 over math
    fragment c: f32[8, 4] layout \"d0: 8@thr ; d1: 4@reg\" over math partial(add, cluster)
    var x @ layout \"d0: 4@mem*8\" align 8 over math: f32[4]
    let read = A[0 +: 8]
    s[:] = read
    c[:, :] = full f32[8, 4](1.0)
    x[0] = s[t] + c[t, 0]
    O[t] = x[0]
}
";
    let p = checked(text);
    assert_eq!(round_trip(&p), text);
    let frag = text.replace("fragment c: f32", "c: frag f32");
    assert_eq!(round_trip(&program(&frag, "k")), text);
}

#[test]
fn places_that_cannot_be_are_refused() {
    let line = |line: &str| scheduled(&format!("{line}\nO[0 +: 8] = x"));
    refused(&line("let x @ fragment layout \"d0: 8@mem*4\" = A[0 +: 8]"), codes::LAYOUT_TEXT, "x @ fragment");
    refused(&line("let x @ shared layout \"d0: 8@thr\" = A[0 +: 8]"), codes::LAYOUT_TEXT, "x @ shared");
    refused(&line("let x @ shared layout \"d0: 9@mem*4\" = A[0 +: 8]"), codes::LAYOUT_TEXT, "x @ shared");
    refused(&line("let x @ shared align 16 = A[0 +: 8]"), codes::MISPLACED, "16");
    refused(&line("let x @ ring y = A[0 +: 8]"), codes::UNKNOWN_NAME, "y");
    refused(&line("let x @ over y = A[0 +: 8]"), codes::UNKNOWN_NAME, "y");
    refused(&line("let x @ shared partial(add, cluster) = A[0 +: 8]"), codes::PARTIAL, "A[0 +: 8]");
    refused(&line("let x @ fragment partial(mul, cluster) = A[0 +: 8]"), codes::PARTIAL, "A[0 +: 8]");
    refused(&line("let x @ fragment partial(add, warp) = A[0 +: 8]"), codes::PARTIAL, "warp");
    refused(&line("let x @ shared shared = A[0 +: 8]"), codes::DUPLICATE_CLAUSE, "shared");
    refused(&line("let x @ = A[0 +: 8]"), codes::UNEXPECTED, "=");
    refused(&line("var x @ shared: reducer(add) f32[8]\nx op= A[0 +: 8]"), codes::MISPLACED, "x @ shared");
    refused(
        "kernel k(A: f32[N], O: out f32[N]) { grid 1 as b
        let x @ shared = A[0 +: 8]
        O[0 +: 8] = x }",
        codes::STAGE_ATTRIBUTE,
        "A[0 +: 8]",
    );
}

#[test]
fn stages_stand_before_their_statements() {
    let text = "stage scheduled

kernel k(A: f32[N], O: out f32[N]) {
    grid 1 as b
    var s: f32 = 0.0
    for j in pipelined(0..N, stages = 2) {
        @stage(0, 0) let x: f32 = 1.0
        @stage(1, -2) if s > x {
            @stage(-1, 3) s += A[j]
        } else {
            @stage(0, 1) if s < 0.0 {
                s = x
            }
        }
        @stage(1, 0) for i in 0..3 {
            s += 1.0
        }
    }
    O[0] = s
}
";
    let p = checked(text);
    assert_eq!(round_trip(&p), text);
    refused(&scheduled("for j in 0..2 { @stage(1) O[j] = A[j] }"), codes::UNEXPECTED, ")");
    refused(&scheduled("for j in 0..2 { @stage(1, 2)\nO[j] = A[j] }"), codes::UNEXPECTED, ")");
    refused(
        &scheduled("for j in 0..2 { @stage(1, 5000000000) O[j] = A[j] }"),
        codes::WRONG_CONST,
        "5000000000",
    );
    refused(&scheduled("for j in 0..2 { @stage(1, 5) const X = 3\nO[j] = A[j] }"), codes::MISPLACED, "const");
    refused(
        "kernel k(A: f32[N], O: out f32[N]) { grid 1 as b
        for j in 0..2 { @stage(1, 0) O[j] = A[j] } }",
        codes::STAGE_ATTRIBUTE,
        "O[j]",
    );
}

#[test]
fn a_value_in_one_part_runs_and_one_in_several_is_refused_by_name() {
    let body = |groups: u32, plan: &str| {
        format!(
            "kernel k(A: f32[N], O: out f32[M]) {{
        grid 1 as b
        team math: {groups} groups of 32
        {plan}
        fragment c: f32[8] over math partial(add, groups)
        c[:] = A[0 +: 8]
        O[0 +: 8] = c[:] }}"
        )
    };
    let a: Vec<f64> = (0..8).map(f64::from).collect();
    let p = checked(&body(1, ""));
    assert_eq!(run(&p, &a, 8), a);
    let plan = "plan { schedule = splitk(loop = ko, ways = 4, over = groups) }";
    for (text, parts) in [(body(2, ""), "2 parts over groups"), (body(1, plan), "4 parts over groups")] {
        let p = checked(&text);
        let mut args: Vec<ArgValue> =
            vec![Tensor::from_f64(DType::F32, &[8], &a).into(), Tensor::unwritten(DType::F32, &[8]).into()];
        let f = run_host(&p, &[], &mut args, &Options::default()).expect_err("several parts");
        assert_eq!(f.code, codes::UNSUPPORTED);
        assert!(f.message.contains("`c`") && f.message.contains(parts), "{f:#?}");
        assert!(f.help.is_some_and(|h| h.contains("one part")));
    }
}
