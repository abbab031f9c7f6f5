//! Programs of tiles through all passes, run after each: control that hangs on a fold's result around memory in which
//! threads meet, tiles and values that only one expression holds, positions of any integer type.

mod support;

use pantile_ir::elab::Request;
use pantile_ir::print::print;
use pantile_ir::program::*;
use pantile_ir::verify::verify;
use pantile_passes::pipeline::{self, Cx};
use support::*;

/// Every pass keeps the results, on every architecture; gives the last program of the first one.
#[track_caller]
fn through(text: &str, rows: i64) -> Program {
    let mut all = Vec::new();
    for arch in archs() {
        let before = compile(text, &Request::new("k"), &arch);
        let dims = [("R", rows)];
        let want = run(&before, args(&before, &dims), &arch).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let last = pipeline::run(before.clone(), &Cx { arch: &arch }, |pass, now| {
            let text = print(now);
            verify(now, &arch).unwrap_or_else(|d| panic!("{}: {d:#?}\n{text}", pass.name));
            let have = run(now, args(&before, &dims), &arch);
            let have = have.unwrap_or_else(|e| panic!("{}, {}: {e}\n{text}", arch.name, pass.name));
            assert_eq!(want, have, "{}, {}\n{text}", arch.name, pass.name);
            Ok(())
        });
        all.push(last.unwrap_or_else(|d| panic!("{}: {d:#?}\n{text}", arch.name)));
    }
    all.swap_remove(0)
}

fn votes(p: &Program) -> usize {
    let mut n = 0;
    for (_, k) in p.kernels.iter() {
        walk(&k.stmts, &mut |s| n += usize::from(matches!(s.kind, StmtKind::Op { op: Op::Vote { .. }, .. })));
    }
    n
}

/// A loop over rows that brings each through shared memory, `body` around it.
fn rows(head: &str, tail: &str) -> String {
    format!(
        "kernel k(X: i32[R, 64], y: out i32[64]) {{
        grid 1 as g
        let most = max(X[0, 0 +: 64])
        var left = most
        var sums = zeros i32[64]
        {head}
            shared s: i32[64]
            s[:] = X[r, 0 +: 64]
            shared t: i32[64]
            parallel x in 64 {{
                t[x] = s[63 - x]
            }}
            {tail}
            sums += t[:]
        }}
        y[0 +: 64] = sums
    }}"
    )
}

#[test]
fn jumps_by_a_folds_result() {
    for jump in ["continue", "break"] {
        let tail = format!("if sum(X[r, 0 +: 64]) > 0 {{ {jump} }}");
        let last = through(&rows("for r in 0..R {", &tail), 5);
        assert_eq!(votes(&last), 1, "{}", print(&last));
        let tail = format!("if sum(X[r, 0 +: 64]) > 0 {{ if sum(X[0, 0 +: 64]) > -999 {{ {jump} }} }}");
        through(&rows("for r in 0..R {", &tail), 5);
    }
}

#[test]
fn loops_bounded_by_a_folds_result() {
    for tail in ["", "if sum(X[r, 0 +: 64]) > 0 { continue }", "if sum(X[r, 0 +: 64]) > 0 { break }"] {
        for head in ["for r in 0..most {", "for r in most - 8..most + 1 step 3 {"] {
            let last = through(&rows(head, tail), 12);
            assert!(votes(&last) >= 1, "{}", print(&last));
        }
        let head = "while left > 0 { left -= 1 + max(X[0, 0 +: 64]) - most\n let r = left % 5";
        let last = through(&rows(head, tail), 12);
        assert!(votes(&last) >= 1, "{}", print(&last));
    }
}

#[test]
fn a_tensor_read_and_written_under_a_folds_result() {
    let text = "kernel k(X: i32[R, 64], A: i32[4, 4], Z: inout i32[8, 4], y: inout i32[64]) {
        grid 2 as g
        if sum(X[g, 0 +: 64]) > -999 {
            Z[g*4 +: 4, 0 +: 4] += A[:, :]
        }
        if sum(X[g, 0 +: 64]) > -999 {
            y[g*32 +: 32] = full i32[32](1)
        }
    }";
    // memory in which threads do not meet needs no vote
    let last = through(text, 2);
    assert_eq!(votes(&last), 1, "{}", print(&last));
}

#[test]
fn a_tile_without_a_name_is_lowered() {
    let text = "kernel k(X: i32[R, 64], y: out i32[64]) {
        grid 1 as g
        threads 64 as t
        let first = once { X[0, 3] }
        let folded = sum(full i32[8](first))
        y[t] = if all(full bool[1](first > 0)) { folded } else { folded + 1 }
    }";
    through(text, 1);
}

#[test]
fn once_reads_a_name_that_one_thread_gives_a_value() {
    let text = "fn twice(x: i32) -> i32 {
        let u = x + 1
        u * u + x
    }
    kernel k(X: i32[R, 64], y: out i32[4, 2, 8]) {
        grid 1 as g
        threads (4, 2, 8) ordered as (a, b, c)
        var sum = X[0, 0]
        for r in 0..R {
            sum += once { twice(X[r, 1]) }
        }
        y[a, b, c] = sum
    }";
    through(text, 3);
}

#[test]
fn positions_in_tiles_are_of_any_integer_type() {
    let text = "kernel k(X: i32[R, 64], P: i32[4], y: out i32[2, 16], z: out i32[2, 8], w: out i32[2, 8], v: out i32[2]) {
        grid 2 as g
        let at = abs(P[g]) % 4
        let row = X[0, 0 +: 32] * 2
        y[g, 0 +: 16] = row[at +: 16]
        let some = X[0 +: 4, 0 +: 8] * 3
        z[g, 0 +: 8] = some[at, :]
        let cut = X[R - 2 +: 4, 0 +: 8]
        w[g, 0 +: 8] = max(cut[i64(g) +: 2, :], axis = 0)
        v[g] = some[u8(g), at]
    }";
    for rows in [4, 9] {
        through(text, rows);
    }
}
