//! Folds over threads: right at every width, order, type and combiner, with few exchanges.

mod support;

use pantile_ir::elab::Request;
use pantile_ir::program::*;
use pantile_ir::target::Arch;
use pantile_ir::verify::verify;
use pantile_passes::pipeline::Cx;
use pantile_passes::reduce;
use support::*;

#[track_caller]
fn reduced(p: &Program, arch: &Arch) -> Program {
    let new = reduce::run(p.clone(), &Cx { arch }).unwrap_or_else(|d| panic!("{d:#?}"));
    let text = pantile_ir::print::print(&new);
    verify(&new, arch).unwrap_or_else(|d| panic!("{d:#?}\n{text}"));
    for (_, k) in new.kernels.iter() {
        walk(&k.stmts, &mut |s| {
            let left = matches!(&s.kind, StmtKind::Op { op: Op::AllReduce { .. } | Op::Once { .. }, .. });
            assert!(!left, "{text}");
            if let StmtKind::Op { op: Op::Shuffle { kind: ShuffleKind::Xor, lane, .. }, .. } = &s.kind {
                let width = u64::from(arch.facts.threads.shuffle_width.as_ref().unwrap().value);
                assert!(matches!(k.body.exprs[*lane], Expr::Const { bits, .. } if bits < width), "{text}");
            }
        });
    }
    new
}

/// Runs both and compares every tensor.
#[track_caller]
fn same(p: &Program, dims: &[(&str, i64)], arch: &Arch) -> Program {
    let new = reduced(p, arch);
    let text = pantile_ir::print::print(&new);
    let before =
        run(p, args(p, dims), arch).unwrap_or_else(|e| panic!("{e}\n{}", pantile_ir::print::print(p)));
    let after = run(&new, args(p, dims), arch).unwrap_or_else(|e| panic!("{}: {e}\n{text}", arch.name));
    assert_eq!(before, after, "{}\n{text}", arch.name);
    new
}

const WIDTHS: [u32; 14] = [1, 2, 7, 8, 11, 26, 32, 33, 48, 64, 100, 256, 1000, 1024];

#[test]
fn every_width_and_type() {
    let text = "kernel k<T: dtype, const RT: int>(X: T[RT], y: out T[RT], z: out T[RT]) {
        grid 1 as g
        threads RT as t
        y[t] = allreduce(add, X[t], over = t)
        z[t] = allreduce(max, X[t], over = t)
    }";
    use pantile_ir::DType::*;
    for arch in archs() {
        for rt in WIDTHS {
            for t in [F16, BF16, F32, F64, I8, U8, I32, U32, I64] {
                let request = Request::new("k").with_type("T", t).with_const("RT", rt.into());
                same(&compile(text, &request, &arch), &[], &arch);
            }
        }
    }
}

#[test]
fn every_builtin_combiner() {
    let text = "kernel k<const RT: int>(X: i32[RT], y: out i32[RT], F: f32[RT], f: out f32[RT], b: out i32[RT]) {
        grid 1 as g
        threads RT as t
        y[t] = allreduce(and, X[t], over = t) + allreduce(or, X[t], over = t) + allreduce(xor, X[t], over = t) +
            allreduce(mul, X[t], over = t) + allreduce(min, X[t], over = t)
        f[t] = allreduce(min, F[t], over = t)
        b[t] = if allreduce(and, X[t] > -9, over = t) { 1 } else { 0 }
    }";
    for arch in archs() {
        for rt in WIDTHS {
            same(&compile(text, &Request::new("k").with_const("RT", rt.into()), &arch), &[], &arch);
        }
    }
}

/// Argmax (a tuple) and composition of affine maps (order counts).
const USER: &str = "
combine best_of(a: (f32, i32), b: (f32, i32)) -> (f32, i32) identity (-inf, -1) {
    let left = a.0 >= b.0
    (if left { a.0 } else { b.0 }, if left { a.1 } else { b.1 })
}
combine after_it(a: (i32, i32), b: (i32, i32)) -> (i32, i32) identity (1, 0) { (b.0 * a.0, b.0 * a.1 + b.1) }
";

#[test]
fn user_combiners_keep_their_order() {
    let text = format!(
        "{USER}
    kernel k<const RT: int>(F: f32[RT], X: i32[RT], y: out i32[RT], m: out f32[RT], a: out i32[RT]) {{
        grid 1 as g
        threads RT as t
        let (best, at) = allreduce(best_of, (F[t], i32(t)), over = t)
        let (u, v) = allreduce(after_it, (X[t], X[t] + 1), over = t)
        y[t] = at
        m[t] = best
        a[t] = u + v
    }}"
    );
    for arch in archs() {
        for rt in WIDTHS {
            same(&compile(&text, &Request::new("k").with_const("RT", rt.into()), &arch), &[], &arch);
        }
    }
}

#[test]
fn axes_in_any_place_and_order() {
    for arch in archs() {
        for (a, b, c) in
            [(2, 8, 16), (3, 5, 7), (4, 1, 32), (32, 2, 3), (5, 26, 2), (12, 26, 3), (2, 100, 4), (4, 7, 1)]
        {
            for over in
                ["x", "y", "z", "(x, y)", "(y, x)", "(x, z)", "(z, x)", "(y, z)", "(x, y, z)", "(z, y, x)"]
            {
                for ordered in ["", "ordered"] {
                    let text = format!(
                        "{USER}
                    kernel k(X: i32[{a}, {b}, {c}], s: out i32[{a}, {b}, {c}], o: out i32[{a}, {b}, {c}]) {{
                        grid 1 as g
                        threads ({a}, {b}, {c}) as (x, y, z) {ordered}
                        s[x, y, z] = allreduce(add, X[x, y, z], over = {over})
                        let (u, v) = allreduce(after_it, (X[x, y, z], X[x, y, z] + 1), over = {over})
                        o[x, y, z] = u + v
                    }}"
                    );
                    same(&compile(&text, &Request::new("k"), &arch), &[], &arch);
                }
            }
        }
    }
}

#[test]
fn teams_and_elected_values() {
    for arch in archs() {
        for n in [1, 16, 32, 40, 64, 96, 100, 128, 200, 256, 288] {
            let text = format!(
                "kernel k(X: i32[{n}], w: out i32[{n}], b: out i32[{n}], o: out i32[{n}]) {{
                grid 1 as g
                threads {n} as t ordered
                w[t] = allreduce(add, X[t], over = warp)
                b[t] = allreduce(add, X[t], over = block)
                let first = once {{ X[{n} - 1] + 1 }}
                o[t] = first
                for r in 0..3 {{
                    let next = once {{ X[r % {n}] }}
                    let all = allreduce(max, X[t] * i32(r), over = block)
                    o[t] = next + all
                }}
            }}"
            );
            same(&compile(&text, &Request::new("k"), &arch), &[], &arch);
        }
    }
}

fn gemv(order: &str, rt: i64, arch: &Arch) -> Program {
    let text = std::fs::read_to_string("../kernels/gemv.tile").unwrap();
    let text = text.replace("threads (ROWS, RT) as (tn, tk)", order);
    let request = Request::new("gemv_allreduce").with_type("T", pantile_ir::DType::F16);
    let mut request = request;
    request.params.insert("RT".into(), pantile_ir::elab::Setting::Int(rt));
    let mut sources = pantile_ir::span::Sources::default();
    let only = text
        .split("// ---- tests")
        .next()
        .unwrap()
        .replace("use \"ref.tile\"::{ref_gemv, ref_gemv_alpha_beta}", "");
    let (lib, d) = pantile_ir::elab::Library::from_text("gemv.tile", &only, &mut sources);
    assert!(!d.has_errors(), "{d:?}");
    pantile_ir::elab::elaborate(&lib, &request, arch, &mut sources).unwrap().program
}

#[test]
fn both_orders_of_axes_exchange_among_lanes() {
    for order in ["threads (ROWS, RT) as (tn, tk)", "threads (RT, ROWS) as (tk, tn)"] {
        for arch in archs() {
            let p = gemv(order, 32, &arch);
            let new = same(&p, &[("N", 5), ("K", 300)], &arch);
            let c = counts(&new);
            assert_eq!((c.shuffles, c.staging), (5, 0), "{}", pantile_ir::print::print(&new));
        }
    }
}

#[test]
fn control_may_differ_between_teams() {
    let bodies = [
        "if a < 2 { y[a, b] = allreduce(add, X[a, b], over = b) } else { y[a, b] = 7 }",
        "for i in 0..a {
            let s = allreduce(add, X[i, b] + X[a, b], over = b)
            if s < 0 { continue }
            if i > 1 { break }
            y[a, b] = s
        }",
        "var n = a
        while n > 0 {
            let s = allreduce(max, X[n, b], over = b)
            y[a, b] = y[a, b] + s
            n = n - 1
        }",
        "if allreduce(max, X[a, b], over = (a, b)) > 0 { y[a, b] = allreduce(add, X[a, b], over = (a, b)) }",
        "if a > 1 { for i in unroll(3) { if X[i, 0] > 0 { y[a, b] = allreduce(add, X[i, b], over = b) } } }",
    ];
    for rt in [8, 5, 64] {
        for body in bodies {
            let text = format!(
                "kernel k(X: i32[4, {rt}], y: inout i32[4, {rt}]) {{
                    grid 1 as g
                    threads (4, {rt}) as (a, b)
                    {body}
                }}"
            );
            let arch = arch("sm_80");
            same(&compile(&text, &Request::new("k"), &arch), &[], &arch);
        }
    }
}
