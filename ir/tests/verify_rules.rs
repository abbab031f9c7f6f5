//! The verifier's rules at their edges. Each rule's plain example stands on its page (`explain_pages.rs`).

mod elab_support;

use elab_support::*;
use pantile_ir::codes;
use pantile_ir::diag::{Code, Diagnostics};
use pantile_ir::elab::{Library, Request, elaborate};
use pantile_ir::span::Sources;
use pantile_ir::verify::{AxisSet, Info, Level, verify};

fn result(text: &str) -> (Result<Info, Diagnostics>, Sources, pantile_ir::program::Program) {
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("test.tile", text, &mut sources);
    assert!(diags.is_empty(), "{text}\n{:#?}", lines(&diags, &sources));
    let arch = arch("sm_90a");
    let made = elaborate(&lib, &Request::new("k"), &arch, &mut sources);
    let program = made.unwrap_or_else(|d| panic!("{text}\n{:#?}", lines(&d, &sources))).program;
    (verify(&program, &arch), sources, program)
}

#[track_caller]
fn clean(text: &str) -> Info {
    let (found, sources, _) = result(text);
    found.unwrap_or_else(|d| panic!("{text}\n{:#?}", lines(&d, &sources)))
}

/// Exactly one error, with this code and on this line; gives its text.
#[track_caller]
fn one(text: &str, code: Code, line: usize) -> String {
    let (found, sources, _) = result(text);
    let d = found.err().unwrap_or_else(|| panic!("accepted:\n{text}"));
    let all = lines(&d, &sources);
    assert!(
        all.len() == 1 && all[0].starts_with(&format!("{line}:")) && d.iter().all(|d| d.code == code),
        "{text}\n{all:#?}"
    );
    all[0].clone()
}

fn threads(body: &str) -> String {
    format!(
        "kernel k(A: f32[N], B: i32[N], O: inout f32[N]) {{\ngrid ceildiv(N, 128) as b\nthreads (4, 32) as (w, l) ordered\n{body}\n}}"
    )
}

fn tiles(body: &str) -> String {
    format!("kernel k(A: f32[M, N], B: i32[M], O: inout f32[M, N]) {{\ngrid M as i\n{body}\n}}")
}

// --- uniformity ----------------------------------------------------------------------------------------------

#[test]
fn an_axis_may_differ_along_the_others() {
    clean(&threads(
        "if w < 2 { let s = allreduce(add, A[b*128 + l], over = l)\nif l == 0 { O[b*4 + w] = s } }",
    ));
    let text =
        threads("if l < 2 { let s = allreduce(add, A[b*128 + l], over = l)\nif l == 0 { O[b*4 + w] = s } }");
    assert!(one(&text, codes::DIVERGENT_CONTROL, 4).contains("all threads of its axis"));
}

#[test]
fn ordered_axes_make_whole_warps_uniform() {
    clean(&threads("if w < 2 { let x = shfl_xor(A[l], 1)\nif l == 0 { O[b*4 + w] = x } }"));
    one(
        &threads("if l < 2 { let x = shfl_xor(A[l], 1)\nif l == 0 { O[b*4 + w] = x } }"),
        codes::DIVERGENT_CONTROL,
        4,
    );
    one(&threads("if w < 2 { barrier }\nO[b*128 + w*32 + l] = 0"), codes::DIVERGENT_CONTROL, 4);
}

#[test]
fn loaded_values_are_uniform_if_their_address_is_and_nobody_writes() {
    clean(&threads("if B[b] > 0 { barrier }\nO[b*128 + w*32 + l] = 0"));
    let text = one(&threads("if B[l] > 0 { barrier }\nO[b*128 + w*32 + l] = 0"), codes::DIVERGENT_CONTROL, 4);
    assert!(text.contains("`barrier` needs all threads of the block"), "{text}");
    one(
        &threads("shared t: i32[4]\nif t[0] > 0 { barrier }\nO[b*128 + w*32 + l] = 0"),
        codes::DIVERGENT_CONTROL,
        5,
    );
    clean(&threads("shared t: i32[4]\nlet c = once { t[0] }\nif c > 0 { barrier }\nO[b*128 + w*32 + l] = 0"));
    one(&threads("if O[0] > 0 { barrier }\nO[b*128 + w*32 + l] = 0"), codes::DIVERGENT_CONTROL, 4);
}

#[test]
fn a_name_is_as_uniform_as_its_least_assignment() {
    one(
        &threads("var x: f32 = 0\nif l == 3 { x = 1 }\nif x > 0 { barrier }\nO[b*128 + w*32 + l] = x"),
        codes::DIVERGENT_CONTROL,
        6,
    );
    clean(&threads(
        "var x: f32 = 0\nif l == 3 { x = 1 }\nif vote_any(x > 0, over = block) { barrier }\nO[b*128 + w*32 + l] = x",
    ));
    one(
        &threads("var n = l\nwhile n > 0 { n -= 1\nbarrier }\nO[b*128 + w*32 + l] = 0"),
        codes::DIVERGENT_CONTROL,
        5,
    );
}

#[test]
fn a_divergent_break_divides_the_rest_of_the_body() {
    let body = |place: &str| {
        format!("for k in 0..8 {{\nif {place} > 3 {{ break }}\nbarrier\n}}\nO[b*128 + w*32 + l] = 0")
    };
    clean(&threads(&body("k")));
    one(&threads(&body("l")), codes::DIVERGENT_CONTROL, 5);
    clean(&threads("for k in 0..8 {\nif l > 3 { break }\n}\nbarrier\nO[b*128 + w*32 + l] = 0"));
}

#[test]
fn kernels_without_threads_run_scalars_once() {
    clean(&tiles("let old = atomic_add(O[i, 0], 1)\nif old > 0 { O[i, 0 +: 8] = A[i, 0 +: 8] }"));
    clean(&tiles("shared t: f32[8]\nt[0] = A[i, 0]\nif t[0] > 0 { O[i, 0 +: 8] = A[i, 0 +: 8] * t[0] }"));
    clean(&tiles("let x = A[i, 0 +: 8]\nif any(x > 0) { O[i, 0 +: 8] = x * x[3] }"));
}

#[test]
fn facts_of_uniformity_are_told() {
    let text = threads("let x = A[b*128 + l]\nlet s = allreduce(add, x, over = l)\nO[b*128 + w*32 + l] = s");
    let (found, _, program) = result(&text);
    let info = found.expect("clean");
    let kernel = &program.kernels.iter().next().expect("a kernel").1;
    let facts = |name: &str| {
        let found = kernel.body.exprs.iter().find(
            |(_, e)| matches!(e, pantile_ir::program::Expr::Local(l) if kernel.body.locals[*l].name == name),
        );
        info.kernels[0].expr(found.expect("a use").0)
    };
    assert_eq!((facts("x").level, facts("x").threads), (Level::Thread, AxisSet::one(1)));
    assert_eq!((facts("s").level, facts("s").threads), (Level::Block, AxisSet::NONE));
    assert_eq!((facts("w").level, facts("w").threads), (Level::Warp, AxisSet::one(0)));
    assert_eq!((facts("b").level, facts("b").grid), (Level::Block, AxisSet::one(0)));
    assert_eq!(info.kernels[0].stmts.len(), 3);
}

// --- definition before use -----------------------------------------------------------------------------------

#[test]
fn assignment_is_followed_through_control() {
    clean(&tiles("var x: f32\nif i > 3 { x = 1 } else { x = 2 }\nO[i, 0] = x"));
    one(&tiles("var x: f32\nfor k in 0..3 { x = 1 }\nO[i, 0] = x"), codes::UNASSIGNED, 5);
    clean(&tiles("var x: f32\nwhile true {\nx = A[i, 0]\nif x > 0 { break }\n}\nO[i, 0] = x"));
    one(
        &tiles(
            "var x: f32\nwhile true {\nif i > 3 { break }\nx = A[i, 0]\nif x > 0 { break }\n}\nO[i, 0] = x",
        ),
        codes::UNASSIGNED,
        9,
    );
    clean(&tiles("for k in 0..3 {\nvar x: f32\nif k > 1 { continue } else { x = 1 }\nO[i, 0] = x\n}"));
    one(
        &tiles(
            "var c: tile f32[16, 16]\nlet a = A[0 +: 16, 0 +: 16]\nc += a @ a\nif i == 0 { O[0 +: 16, 0 +: 16] = c }",
        ),
        codes::UNASSIGNED,
        5,
    );
    clean(&tiles(
        "var c: tile f32[16, 16]\nlet a = A[0 +: 16, 0 +: 16]\nc = a @ a\nif i == 0 { O[0 +: 16, 0 +: 16] = c }",
    ));
}

// --- modes and places ----------------------------------------------------------------------------------------

#[test]
fn out_is_read_only_after_something_wrote_it() {
    let k = |body: &str| format!("kernel k(A: f32[N], O: out f32[N]) {{\ngrid N as i\n{body}\n}}");
    clean(&k("O[i] = A[i]\nO[i] = O[i] + 1"));
    clean(&k("for k in 0..2 { if k > 0 { O[i] = O[i] + 1 } else { O[i] = 0 } }"));
    one(&k("let x = O[i]\nO[i] = x"), codes::READ_OF_OUT, 3);
    one(&k("atomic_add(O[i], A[i])"), codes::READ_OF_OUT, 3);
    one(&k("if i < 3 { A[i] = 0 }\nO[i] = 1"), codes::WRITE_TO_IN, 3);
}

#[test]
fn certain_misses_are_found_and_no_others() {
    one(&tiles("O[i, 0] = A[M, 0]"), codes::OUTSIDE, 3);
    one(&tiles("let n = M + 1\nO[i, 0] = A[n - 1, 0]"), codes::OUTSIDE, 4);
    clean(&tiles("O[i, 0] = A[M - 1, 0] + (A[M, 0] or 0)"));
    one(&tiles("let x = A[i, -4 +: 4]\nO[i, 0 +: 4] = x"), codes::OUTSIDE, 3);
    clean(&tiles("let x = A[i, -4 +: 8 clip low] pad 0\nO[i, 0 +: 8] = x"));
    one(&tiles("shared t: f32[33]\nfor k in 33..40 { t[k] = 0 }\nO[i, 0] = t[0]"), codes::OUTSIDE, 4);
    clean(&tiles("shared t: f32[33]\nfor k in 0..40 { if k < 33 { t[k] = 0 } }\nO[i, 0] = t[0]"));
    one(
        &tiles("shared t: f32[8, 8]\nt[:, 1 +: 8] = A[0 +: 8, 0 +: 8]\nO[i, 0] = t[0, 0]"),
        codes::OUTSIDE,
        4,
    );
}

#[test]
fn blocks_write_apart_or_are_chosen() {
    let k = |body: &str| {
        format!("kernel k(A: f32[N], I: i32[N], O: out f32[N]) {{\ngrid (N, 4) as (i, j)\n{body}\n}}")
    };
    assert!(one(&k("O[i] = A[i]"), codes::BLOCKS_COLLIDE, 3).contains("along `j`"));
    clean(&k("O[i*4 + j] = A[i]"));
    clean(&k("O[I[i*4 + j]] = A[i]"));
    clean(&k("let n = i*4 + j\nif n < 9 { O[i] = A[i] }"));
    clean("kernel k(A: f32[N], O: out f32[N]) {\ngrid (N, 1) as (i, j)\nO[i] = A[i]\n}");
}

#[test]
fn threads_store_apart_or_alike() {
    one(&threads("O[b*4 + w] = A[b*128 + l]"), codes::STORE_RACE, 4);
    clean(&threads("O[b*4 + w] = A[b*128 + w]"));
    clean(&threads("O[b] = 1"));
    clean(&threads("if l == 0 && w == 0 { O[b] = A[b*128 + l] }"));
    one(&threads("shared t: f32[4]\nt[w] = f32(l)\nO[b*128 + w*32 + l] = t[0]"), codes::STORE_RACE, 5);
}

// --- loops ---------------------------------------------------------------------------------------------------

#[test]
fn boxes_keep_only_what_outlives_the_loop() {
    let k = |body: &str| {
        format!(
            "kernel k(A: f32[M, N], O: inout f32[M, N]) {{\ngrid M as i\nvar x = zeros f32[64]\nfor k in 0..ceildiv(N, 64) {{ {body} }}\nO[i, 0 +: 64] = x\n}}"
        )
    };
    one(&k("x = A[i, k*64 +: 64]"), codes::BOX_AFTER_LOOP, 4);
    one(&k("let s = k * 64\nlet y = A[i, s +: 64] + 1\nx = y * 2"), codes::BOX_AFTER_LOOP, 6);
    clean(&k("x += A[i, k*64 +: 64]"));
    clean(&k("x = A[i, k*64 +: 64] pad 0"));
    clean(&k("x = A[i, 0 +: 64] * f32(k)"));
    clean(&k("let t = A[0 +: 64, k*64 +: 64]\nx = max(x, rowmax(t))"));
    one(&k("let t = A[k*64 +: 64, 0 +: 64]\nx = max(x, rowmax(t))"), codes::BOX_AFTER_LOOP, 5);
    clean(
        &k("x = A[i, k*64 +: 64]\nO[i, k*64 +: 64] = x\nx = zeros f32[64]")
            .replace("O[i, 0 +: 64] = x\n}", "}"),
    );
}

#[test]
fn lanes_read_what_they_wrote_themselves() {
    let k = |body: &str| {
        threads(&format!("var x: f32[8]\nfor v in vectorized(7) {{\n{body}\n}}\nO[b*128 + w*32 + l] = x[0]"))
    };
    clean(&k("x[v] = A[v]\nx[v] = x[v] * 2"));
    one(&k("x[v + 1] = x[v] + 1"), codes::DEPENDENT_LANES, 6);
    one(&k("x[0] = A[v]"), codes::DEPENDENT_LANES, 6);
    clean(&k("let y = A[v] * 2\nvar z = y\nz += 1\nx[v] = z"));
    one(
        &threads("var x: f32 = 0\nparallel k in 8 { if k == 3 { x = 1 } }\nO[b*128 + w*32 + l] = x"),
        codes::PARALLEL_ASSIGN,
        5,
    );
    one(
        &tiles("shared t: f32[4]\nparallel (a, c) in (4, 8) { t[a] = A[a, c] }\nO[i, 0] = t[0]"),
        codes::STORE_RACE,
        4,
    );
    clean(&tiles(
        "shared t: f32[4]\nparallel (a, c) in (4, 8) { if c == 0 { t[a] = A[a, c] } }\nO[i, 0] = t[0]",
    ));
}

// --- the host ------------------------------------------------------------------------------------------------

#[test]
fn launches_write_before_they_read() {
    let op = |body: &str| {
        format!(
            "kernel inc(X: f32[N], Y: out f32[N]) {{ grid N as i\nY[i] = X[i] + 1 }}\nop k(A: f32[N], Y: out f32[N]) {{\n{body}\n}}"
        )
    };
    clean(&op("workspace W: f32[N]\nlaunch inc(A, W)\nlaunch inc(W, Y)"));
    one(&op("workspace W: f32[N]\nlaunch inc(W, Y)"), codes::WORKSPACE_UNWRITTEN, 5);
    clean(&op("workspace W: f32[N] = 0\nlaunch inc(W, Y)"));
    one(&op("workspace W: f32[N]\nlaunch inc(Y, W)\nlaunch inc(W, Y)"), codes::READ_OF_OUT, 5);
    one(&op("workspace W: f32[N]\nlaunch inc(A, W)"), codes::OUT_NOT_WRITTEN, 3);
    clean(&op("workspace W: f32[N]\nlaunch inc(A, W)\nfor s in 0..3 { launch inc(W, Y)\nlaunch inc(Y, W) }"));
    one(
        &op("workspace W: f32[N]\nlaunch inc(A, W)\nlaunch inc(W, W)\nlaunch inc(W, Y)"),
        codes::SAME_TENSOR,
        6,
    );
}

// --- limits --------------------------------------------------------------------------------------------------

#[test]
fn shared_memory_counts_what_is_alive_together() {
    let big = "shared %: f32[160, 160]\n%[0, 0] = A[0]\nO[b*128 + w*32 + l] = %[0, 0]";
    let (a, c) = (big.replace('%', "t"), big.replace('%', "u"));
    clean(&threads(&format!("if b > 3 {{\n{a}\n}} else {{\n{c}\n}}")));
    assert!(
        one(
            &threads(&format!("{a}\n{c}\nshared v: f32[64, 160]\nO[b*128 + w*32 + l] = v[0, 0]")),
            codes::SHARED_LIMIT,
            10
        )
        .contains("245760")
    );
}

/// Run by hand: `cargo test --release --test verify_rules -- --ignored --nocapture`.
#[test]
#[ignore = "measures time"]
fn cost_grows_with_size() {
    let mut last = None;
    for n in [250, 500, 1000, 2000] {
        let mut body = String::from("var s: f32 = 0\nvar t = zeros f32[16, 16]\n");
        for k in 0..n {
            body += &format!(
                "let x{k} = A[i, {k} +: 64] pad 0\nlet y{k} = sum(x{k} * s)\nfor j in 0..4 {{ if j > {} {{ s += y{k} }} }}\nt += t * y{k}\nshared m{k}: f32[4]\nm{k}[0] = s\n",
                k % 7
            );
        }
        body += "O[i, 0] = s\n";
        let text = tiles(&body)
            .replace("shared m", "if i > 0 { shared m")
            .replace("[0] = s\n", "[0] = s }\n")
            .replace("O[i, 0 }", "O[i, 0");
        let (_, _, program) = result(&text);
        let arch = arch("sm_90a");
        let best = |f: &dyn Fn()| {
            (0..3)
                .map(|_| {
                    let t = std::time::Instant::now();
                    f();
                    t.elapsed()
                })
                .min()
        };
        let v = best(&|| drop(verify(&program, &arch)));
        let p = best(&|| drop(pantile_ir::print::print(&program)));
        eprintln!("{n}: verify {v:?}, print {p:?}, before {last:?}");
        last = Some((v, p));
    }
}
