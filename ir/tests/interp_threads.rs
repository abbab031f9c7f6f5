//! Thread level: lock step, races and their silent twins, collectives, poison, bounds.

mod interp_common;

use interp_common::*;
use pantile_ir::DType;
use pantile_ir::codes;
use pantile_ir::interp::Options;

const GEMV: &str = "
kernel gemv(x: f32[K], B: f32[N, K], y: out f32[N]) {
    const ROWS = 2
    const RT = 8
    const VEC = 4
    grid ceildiv(N, ROWS) as bn
    threads (ROWS, RT) as (tn, tk)
    let n = bn*ROWS + tn
    var acc: f32 = 0
    for bk in 0..ceildiv(K, RT*VEC) {
        let k0 = (bk*RT + tk) * VEC
        var xv: f32[VEC]
        var bv: f32[VEC]
        for v in vectorized(VEC) {
            xv[v] = x[k0 + v] or 0
            bv[v] = B[n, k0 + v] or 0
        }
        for v in unroll(VEC) { acc += xv[v] * bv[v] }
    }
    let total = allreduce(add, acc, over = tk)
    if tk == 0 && n < N { y[n] = total }
}";

#[test]
fn gemv_with_an_allreduce_over_an_axis() {
    let p = text(GEMV, "gemv");
    for (n, k) in [(1usize, 1usize), (3, 33), (5, 100), (4, 0)] {
        let (x, b) = (|i: usize| noise(i) as f32, |i: usize| noise(i + 99) as f32);
        let args = vec![
            tensor(F32, &[k as i64], |i| f64::from(x(i))),
            tensor(F32, &[n as i64, k as i64], |i| f64::from(b(i))),
            out(F32, &[n as i64]),
        ];
        let got = output(&p, args);
        assert_eq!(got.len(), n);
        for (row, &y) in got.iter().enumerate() {
            let mut lanes = [0f32; 8];
            for step in 0..k.div_ceil(32) {
                for (tk, lane) in lanes.iter_mut().enumerate() {
                    for v in 0..4 {
                        let at = (step * 8 + tk) * 4 + v;
                        let (x, b) = if at < k { (x(at), b(row * k + at)) } else { (0.0, 0.0) };
                        *lane += x * b;
                    }
                }
            }
            let want = lanes.iter().fold(0f32, |s, &l| s + l);
            assert_eq!(y, f64::from(want), "row {row} of {n}x{k}");
        }
    }
}

/// One block of 8 threads over `A` and `O`, both of 8 elements.
fn body(stmts: &str) -> pantile_ir::program::Program {
    text(
        &format!(
            "kernel k(A: i32[8], O: inout i32[8]) {{\ngrid 1 as g\nthreads 8 as t\nshared s: i32[8]\n{stmts}\n}}"
        ),
        "k",
    )
}

fn io() -> Vec<pantile_ir::interp::ArgValue> {
    vec![tensor(I32, &[8], |i| 1.0 + i as f64), tensor(I32, &[8], |_| -1.0)]
}

#[track_caller]
fn gives(stmts: &str, want: [f64; 8]) {
    assert_eq!(output(&body(stmts), io()), want, "{stmts}");
}

#[track_caller]
fn refused(stmts: &str, code: pantile_ir::diag::Code) -> pantile_ir::interp::Fault {
    faults(&body(stmts), io(), code)
}

#[test]
fn one_statement_on_all_threads_before_the_next() {
    gives("s[t] = A[t]\nO[t] = s[7 - t]", [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    gives(
        "s[t] = A[t]\nfor r in 0..3 {\nlet v = s[(t + 1) % 8]\ns[t] = v\n}\nO[t] = s[t]",
        [4.0, 5.0, 6.0, 7.0, 8.0, 1.0, 2.0, 3.0],
    );
}

#[test]
fn a_race_in_one_statement_names_both_places() {
    let f = refused("s[t] = A[t]\ns[t] = s[(t + 1) % 8]\nO[t] = s[t]", codes::RACE_THREADS);
    assert_eq!((f.tensor.as_deref(), f.also.len()), (Some("s"), 1));
    assert_eq!(f.thread.len(), 1);
    assert_eq!(f.thread[0].0, "t");
    refused("s[0] = A[t]\nO[t] = s[0]", codes::RACE_THREADS);
    refused("O[t/2] = A[t]", codes::RACE_THREADS);
    gives("if t == 3 { s[0] = A[t] }\nO[t] = s[0]", [4.0; 8]);
}

#[test]
fn a_divergent_statement_is_one_step() {
    // the writer and its reader stand in one `if`
    refused("s[t] = 0\nif t < 4 {\ns[t] = A[t]\nO[t] = s[3 - t]\n}", codes::RACE_THREADS);
    gives(
        "s[t] = 0\nif t < 4 { s[t] = A[t] }\nif t < 4 { O[t] = s[3 - t] }",
        [4.0, 3.0, 2.0, 1.0, -1.0, -1.0, -1.0, -1.0],
    );
    // the condition belongs to the statement
    refused("s[t] = A[t]\nif s[(t + 1) % 8] > 3 { s[t] = 0 }", codes::RACE_THREADS);
    gives("s[t] = A[t]\nif s[t] > 4 { s[t] = 0 }\nO[t] = s[t]", [1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0]);
    // a loop whose trip count differs
    refused("s[t] = A[t]\nfor i in 0..t {\ns[t] = 0\nO[t] = s[(t + 1) % 8]\n}", codes::RACE_THREADS);
    // of equal trip counts
    gives("s[t] = A[t]\nfor i in 0..2 {\ns[t] = 9\nO[t] = s[(t + 1) % 8]\n}", [9.0; 8]);
}

#[test]
fn a_barrier_of_a_warp_orders_a_divergent_statement() {
    let warp = |stmts: &str, code| {
        let p = text(
            &format!(
                "kernel k(O: inout i32[64]) {{\ngrid 1 as g\nthreads 64 as t ordered\nshared s: i32[64]\ns[t] = 0\nif t < 32 {{\n{stmts}\n}}\n}}"
            ),
            "k",
        );
        let args = vec![tensor(I32, &[64], |_| -1.0)];
        match code {
            Some(code) => drop(faults(&p, args, code)),
            None => assert_eq!(output(&p, args)[..4], [31.0, 30.0, 29.0, 28.0]),
        }
    };
    warp("s[t] = i32(t)\nbarrier warp\nO[t] = s[31 - t]", None);
    warp("s[t] = i32(t)\nO[t] = s[31 - t]", Some(codes::RACE_THREADS));
    warp("s[t] = i32(t)\nbarrier\nO[t] = s[31 - t]", Some(codes::DIVERGENT));
}

#[test]
fn loops_run_in_lock_step_under_masks() {
    gives(
        "var n: i32 = 0\nfor i in 0..t {\nif i == 4 { break }\nif i == 1 { continue }\nn += 1\n}\nO[t] = n",
        [0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0],
    );
    gives(
        "var n: i32 = A[t]\nvar c: i32 = 0\nwhile n != 1 {\nif n % 2 == 0 { n = n / 2 } else { n = 3*n + 1 }\nc += 1\n}\nO[t] = c",
        [0.0, 1.0, 7.0, 2.0, 5.0, 8.0, 16.0, 3.0],
    );
}

#[test]
fn variables_have_a_value_before_they_are_read() {
    let f = refused("var x: i32\nif t < 5 { x = 1 }\nO[t] = x", codes::UNINITIALISED);
    assert_eq!(f.thread, [("t".to_string(), 5)]);
    gives(
        "var x: i32\nif t < 5 { x = 1 } else { x = 2 }\nO[t] = x",
        [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0],
    );
    let f = refused("var a: i32[4]\nfor v in 0..3 { a[v] = A[t] }\nO[t] = a[3]", codes::READ_POISON);
    assert!(f.message.contains("`a[3]`"), "{f}");
    refused("O[t] = s[t]", codes::READ_POISON);
}

#[test]
fn an_index_outside_is_a_fault_unless_a_pad_is_stated() {
    let f = refused("O[t] = A[t + 1]", codes::OUT_OF_BOUNDS);
    assert_eq!((f.index, f.thread), (Some(vec![8]), vec![("t".to_string(), 7)]));
    gives("O[t] = A[t + 1] or 50", [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 50.0]);
    refused("O[t + 1] = 0", codes::OUT_OF_BOUNDS);
    gives("if t < 7 { O[t + 1] = 0 }", [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    // `&&`, `||` and choices evaluate only what they need
    gives("if t < 7 && A[t + 1] > 3 { O[t] = 1 }", [-1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0]);
    gives("O[t] = if t == 7 { 0 } else { A[t + 1] }", [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.0]);
}

#[test]
fn lanes_of_a_vectorized_loop_are_independent() {
    let f = refused(
        "var a: i32[4]\na[0] = 0\nfor v in vectorized(3) { a[v + 1] = a[v] }\nO[t] = a[3]",
        codes::VECTOR_DEPENDENCE,
    );
    assert!(f.message.contains("`vectorized`"), "{f}");
    refused("var n: i32 = 0\nfor v in vectorized(3) { n += 1 }\nO[t] = n", codes::VECTOR_DEPENDENCE);
    gives("var n: i32 = 0\nfor v in unroll(3) { n += 1 }\nO[t] = n", [3.0; 8]);
    gives(
        "var a: i32[4]\nfor v in vectorized(4) {\nlet x = A[(t + v) % 8]\na[v] = x\n}\nO[t] = a[3]",
        [4.0, 5.0, 6.0, 7.0, 8.0, 1.0, 2.0, 3.0],
    );
}

#[test]
fn collectives_need_all_their_threads() {
    gives("let m = allreduce(max, A[t], over = t)\nO[t] = m", [8.0; 8]);
    let f = refused(
        "var m: i32 = 0\nif A[t] < 7 { m = allreduce(max, A[t], over = t) }\nO[t] = m",
        codes::DIVERGENT,
    );
    assert_eq!(f.thread, [("t".to_string(), 6)]);
    refused("if t < 4 {\nshared u: i32[4]\n}", codes::DIVERGENT);
    gives("if g == 0 { O[t] = allreduce(add, i32(1), over = block) }", [8.0; 8]);
}

#[test]
fn collectives_over_an_axis_may_stand_under_a_condition_on_another() {
    let p = text(
        "kernel k(O: inout i32[4, 8]) {\ngrid 1 as g\nthreads (4, 8) as (r, c)\nif r > 1 { O[r, c] = allreduce(add, i32(r), over = c) }\n}",
        "k",
    );
    let got = output(&p, vec![tensor(I32, &[4, 8], |_| 0.0)]);
    assert_eq!((got[15], got[16], got[31]), (0.0, 16.0, 24.0));
}

#[test]
fn an_allreduce_over_two_axes_folds_in_their_order() {
    let p = text(
        "kernel k(A: f32[4, 8], O: out f32[4, 8]) {\ngrid 1 as g\nthreads (4, 8) as (r, c)\nO[r, c] = allreduce(add, A[r, c], over = (c, r))\n}",
        "k",
    );
    let a = |r: usize, c: usize| noise(r * 8 + c) as f32;
    let mut want = 0f32;
    for c in 0..8 {
        for r in 0..4 {
            want += a(r, c);
        }
    }
    let got = output(&p, vec![tensor(F32, &[4, 8], noise), out(F32, &[4, 8])]);
    assert_eq!(got, vec![f64::from(want); 32]);
}

/// One warp and a half.
fn warp(stmts: &str) -> pantile_ir::program::Program {
    text(&format!("kernel k(O: inout i32[48]) {{\ngrid 1 as g\nthreads 48 as t ordered\n{stmts}\n}}"), "k")
}

fn minus_one() -> Vec<pantile_ir::interp::ArgValue> {
    vec![tensor(I32, &[48], |_| -1.0)]
}

#[test]
fn shuffles_read_a_snapshot_of_their_warp() {
    let go = |e: &str| output(&warp(&format!("O[t] = {e}")), minus_one());
    let xor = go("shfl_xor(i32(t), 5)");
    assert_eq!((xor[0], xor[33]), (5.0, 36.0));
    let up = go("shfl_up(i32(t), 2, width = 8)");
    assert_eq!(up[..4], [0.0, 1.0, 0.0, 1.0]);
    let down = go("shfl_down(i32(t), 2, width = 8)");
    assert_eq!(down[4..8], [6.0, 7.0, 6.0, 7.0]);
    let one = go("shfl(i32(t), 3, width = 4)");
    assert_eq!(one[40..45], [43.0, 43.0, 43.0, 43.0, 47.0]);
    let f = faults(&warp("if t < 7 { O[t] = shfl_xor(i32(t), 1) }"), minus_one(), codes::INACTIVE_LANE);
    assert_eq!(f.thread, [("t".to_string(), 6)]);
    faults(&warp("O[t] = shfl(i32(t), 32)"), minus_one(), codes::OUT_OF_BOUNDS);
}

#[test]
fn votes_and_ballots() {
    let got = output(&warp("O[t] = i32(ballot(t % 3 == 0) % 1024)"), minus_one());
    assert_eq!((got[0], got[40]), (f64::from(0b10_0100_1001), f64::from(0b00_1001_0010)));
    let got = output(&warp("O[t] = if vote_any(t == 40) { 1 } else { 0 }"), minus_one());
    assert_eq!((got[31], got[32]), (0.0, 1.0));
    let got = output(&warp("O[t] = if vote_all(t < 40, over = block) { 1 } else { 0 }"), minus_one());
    assert_eq!(got, [0.0; 48]);
}

#[test]
fn once_broadcasts_what_one_thread_got() {
    let p = text(
        "kernel k(C: inout i32[1], O: inout i32[2, 8]) {\ngrid 2 as g\nthreads 8 as t\nlet n = once { atomic_add(C[0], 1) }\nO[n, t] = n\n}",
        "k",
    );
    let got = output(&p, vec![tensor(I32, &[1], |_| 0.0), tensor(I32, &[2, 8], |_| -1.0)]);
    assert_eq!(got, [0., 0., 0., 0., 0., 0., 0., 0., 1., 1., 1., 1., 1., 1., 1., 1.]);
}

#[test]
fn atomics_of_threads_do_not_race() {
    let p = text(
        "kernel k(A: i32[N], H: inout i32[4]) {\ngrid ceildiv(N, 8) as g\nthreads 8 as t\nlet i = g*8 + t\nif i < N { atomic_add(H[A[i]], 1) }\n}",
        "k",
    );
    let got = output(&p, vec![tensor(I32, &[33], |i| (i % 4) as f64), tensor(I32, &[4], |_| 100.0)]);
    assert_eq!(got, [109.0, 108.0, 108.0, 108.0]);
    refused("atomic_add(s[0], 1)", codes::READ_POISON);
    refused("s[t] = 0\nif t == 0 { s[1] = 5 } else { atomic_add(s[1], 1) }", codes::RACE_THREADS);
    gives("s[t] = 0\natomic_max(s[1], A[t])\nO[t] = s[1]", [8.0; 8]);
    gives(
        "s[t] = 0\nlet old = atomic_cas(s[t], 0, A[t])\nO[t] = old + s[t]*10",
        [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0],
    );
}

#[test]
fn the_value_before_an_atomic_depends_on_the_order() {
    let p = body("s[t] = 0\nO[t] = atomic_add(s[0], 1)");
    let options = Options { orders: 4, ..Options::default() };
    let f = faults_with(&p, io(), codes::ORDER_DEPENDENT, &options);
    assert_eq!(f.tensor.as_deref(), Some("O"));
}

#[test]
fn tile_statements_are_collective() {
    gives(
        "let x = A[0 +: 8]\ns[0 +: 8] = x * 2\nO[t] = s[7 - t]",
        [16.0, 14.0, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0],
    );
    refused("if t < 4 {\nlet x = A[0 +: 8]\ns[0 +: 8] = x\n}", codes::DIVERGENT);
    refused("let x = A[t +: 1]\nO[0 +: 1] = x", codes::NOT_UNIFORM);
}

#[test]
fn parallel_runs_every_index_once() {
    let p = text(
        "kernel k(A: f32[M, N], O: out f32[N, M]) {\ngrid 1 as g\nparallel (i, j) in (M, N) { O[j, i] = A[i, j] }\n}",
        "k",
    );
    let got = output(&p, vec![tensor(F32, &[3, 5], |i| i as f64), out(F32, &[5, 3])]);
    assert_eq!(got[..6], [0.0, 5.0, 10.0, 1.0, 6.0, 11.0]);
    output(&p, vec![tensor(F32, &[0, 5], noise), out(F32, &[5, 0])]);
}

#[test]
fn iterations_of_a_parallel_are_independent() {
    let go = |stmts: &str, code| {
        let p = text(&format!("kernel k(O: inout i32[9]) {{\ngrid 1 as g\n{stmts}\n}}"), "k");
        let args = vec![tensor(I32, &[9], |i| i as f64)];
        match code {
            Some(code) => assert_eq!(faults(&p, args, code).thread[0].0, "i"),
            None => drop(output(&p, args)),
        }
    };
    go("parallel (i) in (8) { O[i] = O[i] + 1 }", None);
    go("parallel (i) in (8) { O[i] = O[i + 1] }", Some(codes::RACE_THREADS));
    go("parallel (i) in (8) { O[0] = 1 }", Some(codes::RACE_THREADS));
    // with a tile inside, iterations run one after another and are watched the same way
    go("parallel (i) in (8) { O[i +: 1] = O[i +: 1] + 1 }", None);
    go("parallel (i) in (8) { O[i +: 2] = O[i +: 1] + 1 }", Some(codes::RACE_THREADS));
}

#[test]
fn thread_reducers_join_in_thread_order() {
    let p = text(
        "kernel k(A: f32[N], O: out f32[1]) {\ngrid 1 as g\nthreads 8 as t\nvar r: reducer(add) f32\nfor i in 0..ceildiv(N, 8) {\nif i*8 + t < N { r op= A[i*8 + t] }\n}\nlet s = r\nif t == 0 { O[0] = s }\n}",
        "k",
    );
    for n in [0usize, 1, 33, 1000] {
        let mut lanes = [0f32; 8];
        (0..n).for_each(|i| lanes[i % 8] += noise(i) as f32);
        let used = lanes.iter().take(n).fold(0f32, |s, &l| s + l);
        assert_eq!(
            output(&p, vec![tensor(F32, &[n as i64], noise), out(F32, &[1])]),
            [f64::from(used)],
            "N = {n}"
        );
    }
}

#[test]
fn half_precision_stays_half_in_registers() {
    let p = text(
        "kernel k(A: f16[8], O: out f16[8]) {\ngrid 1 as g\nthreads 8 as t\nvar x: f16 = A[t]\nx += A[t]\nx *= f16(0.333)\nO[t] = x\n}",
        "k",
    );
    let got = output(&p, vec![tensor(DType::F16, &[8], |i| 0.1 * i as f64), out(DType::F16, &[8])]);
    let h = |x: f64| half(x);
    for (i, v) in got.iter().enumerate() {
        let a = h(0.1 * i as f64);
        assert_eq!(*v, h(h(a + a) * h(0.333)));
    }
}

/// To f16 and back, through the tensors themselves.
fn half(x: f64) -> f64 {
    pantile_ir::interp::Tensor::from_f64(DType::F16, &[1], &[x]).to_f64()[0]
}
