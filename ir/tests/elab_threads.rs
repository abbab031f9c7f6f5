//! Threads, collectives, loops and control, teams and tokens.

mod elab_support;

use elab_support::*;
use pantile_ir::elab::Request;
use pantile_ir::print::print;

fn text(body: &str) -> String {
    format!(
        "kernel k(X: f32[N], Q: inout i32[4], Y: out f32[N], n: i32) {{\ngrid ceildiv(N, 64) as b\nthreads (2, 32) ordered as (w, l)\n{body}\n}}"
    )
}

fn printed(body: &str) -> Vec<String> {
    statements(&program(&text(body), "k"))
}

#[track_caller]
fn refused(body: &str, place: &str, code: u16, part: &str) {
    let found = match run(&text(body), &Request::new("k")) {
        Ok(_) => panic!("elaborates:\n{body}"),
        Err(lines) => lines,
    };
    let (line, col) = place.split_once(':').unwrap();
    let expected = format!("{}:{col} P{code:04} ", line.parse::<u32>().unwrap() + 3);
    assert!(
        found.len() == 1 && found[0].starts_with(&expected) && found[0].contains(part),
        "{expected} …{part}… in {found:#?}"
    );
}

#[test]
fn collectives() {
    assert_eq!(
        printed(
            "let x = X[b*64 + w*32 + l] or 0\nlet a = allreduce(add, x, over = (w, l))\nlet c = allreduce(max, x, over = l) + allreduce(min, x, over = warp)\nY[b] = a + c"
        ),
        [
            "let x = X[b*64 + w*32 + l] or 0.0",
            "let a = allreduce(add, x, over = (w, l))",
            "let total = allreduce(max, x, over = l)",
            "let total_2 = allreduce(min, x, over = warp)",
            "let c = total + total_2",
            "Y[b] = a + c",
        ]
    );
    refused("let a = allreduce(add, X[l])", "1:9", 531, "`over = tk`");
    refused("let a = allreduce(add, X[l], over = b)", "1:37", 312, "`b` is not an axis of `threads`");
    refused("let a = allreduce(add, X[l], over = wrap)", "1:37", 202, "`wrap` is not declared");
    refused("barrier wrap", "1:9", 531, "did you mean `warp`?");
    refused("let a = vote_any(n > 0, over = 3)", "1:32", 531, "a team is named here");
}

#[test]
fn combiners_of_tuples_join_threads() {
    let text = "combine first(a: (f32, i32), b: (f32, i32)) -> (f32, i32) identity (0, 0) { if a.1 > b.1 { a } else { b } }
    kernel k(X: f32[N], Y: out f32[N]) { grid N as i\nthreads 32 as t
        let (v, _) = allreduce(first, (X[t], 1), over = t)
        if t == 0 { Y[i] = v } }";
    let all = print(&program(text, "k"));
    assert!(all.contains("allreduce(first, (X[t], 1), over = t)"), "{all}");
}

#[test]
fn once() {
    assert_eq!(printed("let x = once { X[0] }\nY[b] = x")[0], "let x = once { X[0] }");
    let found = printed("let x = once { atomic_add(Q[0], 1) }\nY[b] = f32(x)");
    assert_eq!(found[0], "var held: i32");
    assert!(found[1].starts_with("if w == 0 && l == 0"), "{found:#?}");
    assert_eq!(found[5], "let x = once { held }", "{found:#?}");
    // for its effect alone
    let found = printed("once { Q[1] = 3 }\nY[b] = 0");
    assert_eq!(found[..3], ["if w == 0 && l == 0 {", "Q[1] = 3", "}"]);
    refused("let x = if n > 0 { once { X[0] } } else { 0.0 }", "1:20", 530, "");
}

#[test]
fn atomics() {
    assert_eq!(
        printed(
            "atomic_add(Q[1], n)\nlet a = atomic_cas(Q[0], 0, n)\nlet c = atomic_exchange(Q[2], a)\nY[b] = f32(c)"
        ),
        [
            "atomic_add(Q[1], n)",
            "let a = atomic_cas(Q[0], 0, n)",
            "let c = atomic_exchange(Q[2], a)",
            "Y[b] = f32(c)",
        ]
    );
    refused("exp(1.0)", "1:1", 232, "goes nowhere");
    refused("atomic_add(n, 1)", "1:12", 230, "`n` is a parameter");
    refused("atomic_add(Q[0])", "1:1", 211, "`atomic_add` takes 2 arguments, not 1");
    refused("atomic_add(X[0], 1)\nlet y = X[0] + missing", "2:16", 202, "`missing`");
}

#[test]
fn loops() {
    let found = printed(
        "var s: f32 = 0\nfor k in 0..n step 3 { s += X[k] }\nfor k in pipelined(1..9, stages = 2) { s += 1 }\nfor k in unroll(4) { s += X[k] }\nfor k in nounroll(2..n) { s -= 1 }\nfor v in vectorized(4) { Y[v] = s }\nwhile s > 1 { s *= 0.5\nif s < 0.1 { break } }\nY[b] = s",
    );
    let heads: Vec<&String> =
        found.iter().filter(|l| l.starts_with("for") || l.starts_with("while")).collect();
    assert_eq!(
        heads,
        [
            "for k in 0..index(n) step 3 {",
            "for k in pipelined(1..9, stages = 2) {",
            "for k in unroll(4) {",
            "for k in nounroll(2..index(n)) {",
            "for v in vectorized(4) {",
            "while s > 1.0 {",
        ]
    );
    refused("for k in 0..3 step 0 { Y[k] = 1 }", "1:20", 245, "a step is at least 1");
    refused("for k in 0..X[0] { Y[k] = 1 }", "1:13", 301, "the end of a loop is an index, not f32");
    refused("break", "1:1", 246, "`break` stands in no loop");
    refused("parallel (i, j) in (3, 4) { break }", "1:29", 246, "stands in no loop");
    refused("parallel (i, j) in (3) { Y[i] = 1 }", "1:1", 231, "2 names stand for 1 extents");
    refused(
        "for k in pipelined(0..3, stages = 0) { Y[k] = 1 }",
        "1:35",
        218,
        "the number of stages must be at least 1",
    );
}

#[test]
fn frame_statements_have_their_place() {
    refused("if n > 0 { grid 3 as z }", "1:12", 235, "a kernel has one grid");
    refused("threads 3 as z", "1:1", 235, "are named once");
    refused("if n > 0 { param P = 3 }", "1:12", 225, "`param` belongs to the top");
    refused("workspace P: f32[3]", "1:1", 225, "a workspace cannot stand in a kernel");
    let found =
        run("kernel k(X: f32[N], Y: out f32[N]) { grid index(X[0]) as i\nY[i] = 0 }", &Request::new("k"));
    assert!(found.is_ok(), "an element is an expression; what may stand in a grid is the verifier's");
    let found = run(
        "kernel k(X: f32[N], Y: out f32[N]) { grid index(sum(X[0 +: 4])) as i\nY[i] = 0 }",
        &Request::new("k"),
    );
    assert!(found.unwrap_err()[0].contains("P0248"));
}

#[test]
fn teams_rings_and_tokens() {
    let found = |change: (&str, &str)| {
        let text = "kernel k(A: f16[M, K], C: out f32[M, 64]) {
            grid ceildiv(M, 64) as i
            team math: 2 groups of 128
            team load: 1 thread of 1 group
            ring ab[3] load -> math { a: shared f16[64, 32] } fill counted
            queue mm of math.group: matrix, keep <= 1
            role load { for k in 0..ceildiv(K, 32) {
                let w = acquire ab
                copy.async A[i*64 +: 64, k*32 +: 32] -> w.a
                commit w
            } }
            role math {
                var c: tile f32[64, 64]
                for k in 0..ceildiv(K, 32) carry (held: slot(ab)? = none) {
                    let r = wait ab
                    issue mm: gemm r.a, r.a.T -> c (init = k == 0)
                    await mm keep 1
                    release held
                    next r
                }
                C[i*64 +: 64, :] = c
            }
        }"
        .replace(change.0, change.1);
        match run(&text, &Request::new("k")) {
            Ok(e) => vec![print(&e.program)],
            Err(lines) => lines,
        }
    };
    assert!(found(("", ""))[0].starts_with("kernel k("));
    for (from, to, code, part) in [
        ("acquire ab", "acquire abc", 202, "did you mean `ab`?"),
        ("acquire ab", "acquire mm", 630, "`mm` is not a ring"),
        ("-> w.a", "-> w.b", 406, "the slots of `ab` have no `b`"),
        ("commit w", "commit k", 326, ""),
        ("await mm", "await ab", 631, "`ab` is not a queue"),
        ("next r", "next k", 326, "`k` is not a slot"),
        ("ab[3] load", "ab[3] loads", 202, "did you mean `load`?"),
        ("of math.group: matrix", "of math.group: tensor", 631, "there is no engine `tensor`"),
        ("slot(ab)? = none", "slot(ab) = none", 326, "may not be absent"),
        ("-> w.a", "-> A", 433, "a region of memory is needed"),
    ] {
        let found = found((from, to));
        assert!(
            found.len() == 1 && found[0].contains(&format!("P{code:04}")) && found[0].contains(part),
            "{to}: {found:#?}"
        );
    }
}

#[test]
fn plans() {
    let text = "kernel k(Y: out f32[N]) {\nparam W = 4\ngrid N as i\nplan { schedule = persistent(blocks = 8); home(y) = shared; unroll = W; variant = \"fma\" }\nY[i] = 0 }";
    let p = program(text, "k");
    let plan: Vec<String> = p
        .kernels
        .iter()
        .next()
        .unwrap()
        .1
        .plan
        .entries
        .iter()
        .map(|e| format!("{} {}", e.key.name(), e.value))
        .collect();
    assert_eq!(plan, ["schedule persistent(blocks = 8)", "home shared", "unroll 4", "variant \"fma\""]);
    let found = run(&text.replace("unroll", "unrol"), &Request::new("k")).unwrap_err();
    assert!(
        found.len() == 1 && found[0].contains("P0240") && found[0].contains("did you mean `unroll`?"),
        "{found:#?}"
    );
    let found = run(&text.replace("unroll = W", "schedule = grid"), &Request::new("k")).unwrap_err();
    assert!(found.len() == 1 && found[0].contains("P0235"), "{found:#?}");
}
