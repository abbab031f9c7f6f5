//! Roles, rings, queues, turns: late landing, in-flight changes, misuse of tokens, deadlock.

mod interp_common;

use interp_common::*;
use pantile_ir::builder::{Exprs, KernelBuilder, Result};
use pantile_ir::codes;
use pantile_ir::diag::Code;
use pantile_ir::interp::{Fault, Options};
use pantile_ir::program::*;
use pantile_ir::span::Span;

/// C = A·B by a load role and a math role of two groups, each a half of the rows.
const WARP_SPECIALISED: &str = "
kernel gemm(A: f32[M, K], B: f32[K, N], C: out f32[M, N]) {
    grid ceildiv(N, 8) as j
    team math: 2 groups of 128
    team load: 1 thread of 1 group
    ring ab[3] load -> math { a: shared f32[16, 8], b: shared f32[8, 8] } fill counted
    queue mm of math.group: matrix, keep <= 7
    role load {
        for k in 0..ceildiv(K, 8) {
            let w = acquire ab
            copy.async A[0 +: 16, k*8 +: 8] pad 0 -> w.a
            copy.async B[k*8 +: 8, j*8 +: 8] pad 0 -> w.b
            commit w
        }
    }
    role math as g {
        var c = zeros f32[8, 8]
        for k in 0..ceildiv(K, 8) carry (held: slot(ab)? = none) {
            let r = wait ab
            issue mm: gemm r.a[g*8 +: 8, :], r.b -> c (init = k == 0)
            await mm keep KEEP
            release HELD
            next r
        }
        await mm keep 0
        release held
        C[g*8 +: 8, j*8 +: 8] = c
    }
}";

fn specialised(keep: u32) -> Program {
    text(&WARP_SPECIALISED.replace("KEEP", &keep.to_string()).replace("HELD", "held"), "gemm")
}

fn gemm_args(m: i64, n: i64, k: i64) -> Vec<pantile_ir::interp::ArgValue> {
    vec![
        tensor(F32, &[m, k], |i| (i % 13) as f64),
        tensor(F32, &[k, n], |i| (i % 7) as f64),
        out(F32, &[m, n]),
    ]
}

#[test]
fn a_specialised_gemm_gives_the_product_for_every_order() {
    for (m, n, k) in [(16usize, 8usize, 8usize), (13, 9, 33), (16, 1, 100), (3, 3, 0)] {
        let want: Vec<f64> = (0..m * n)
            .map(|e| (0..k).map(|l| ((e / n * k + l) % 13) as f64 * ((l * n + e % n) % 7) as f64).sum())
            .collect();
        let got = output(&specialised(1), gemm_args(m as i64, n as i64, k as i64));
        assert_eq!(got, want, "{m}x{n}x{k}");
    }
}

#[test]
fn a_slot_released_too_early_is_found_whatever_the_order() {
    // with two products kept in flight, the slot of the older one is still read
    let p = specialised(2);
    for seed in 0..5 {
        let options = Options { seed, ..Options::default() };
        let f = faults_with(&p, gemm_args(16, 8, 33), codes::RELEASED_EARLY, &options);
        assert!(f.message.contains("`held`"), "{f}");
        assert!(f.notes.iter().any(|n| n.starts_with("in role `math`, group")), "{f:#?}");
    }
}

#[test]
fn an_accumulator_in_flight_cannot_be_read() {
    let p = specialised(1);
    output(&p, gemm_args(16, 8, 16));
    let source = WARP_SPECIALISED.replace("KEEP", "1").replace("HELD", "held");
    let source = source.replace("        await mm keep 0\n        release held\n", "        release held\n");
    let f = faults(&text(&source, "gemm"), gemm_args(16, 8, 16), codes::RELEASED_EARLY);
    assert!(f.message.contains("`held`"));
    let source = WARP_SPECIALISED.replace("KEEP", "1").replace("HELD", "held");
    let source = source.replace(
        "await mm keep 0\n        release held\n",
        "let early = c * 2.0\nawait mm keep 0\nrelease held\n",
    );
    let f = faults(&text(&source, "gemm"), gemm_args(16, 8, 16), codes::READ_IN_FLIGHT);
    assert_eq!(f.tensor.as_deref(), Some("c"));
}

/// Roles `one` (a producer) and `two` (a consumer) with a ring of `f32[4]` tiles, over A and O of N elements.
fn pair(slots: u32, fill: &str, producer: &str, consumer: &str) -> Program {
    let source = format!(
        "kernel k(A: f32[N], O: inout f32[N]) {{\n\
         grid 1 as i\n\
         team one: 1 group of 32\nteam two: 1 group of 32\n\
         ring r[{slots}] one -> two {{ t: shared f32[4] }} fill {fill}\n\
         role one {{\n{producer}\n}}\nrole two {{\n{consumer}\n}}\n}}"
    );
    text(&source, "k")
}

const SEND: &str =
    "for n in 0..ceildiv(N, 4) {\nlet w = acquire r\ncopy.async A[n*4 +: 4] pad 0 -> w.t\ncommit w\n}";
const TAKE: &str = "for n in 0..ceildiv(N, 4) {\nlet v = wait r\nO[n*4 +: 4] = v.t[:] * 2.0\nrelease v\n}";

fn pair_args() -> Vec<pantile_ir::interp::ArgValue> {
    vec![tensor(F32, &[11], |i| i as f64), tensor(F32, &[11], |_| 0.0)]
}

#[track_caller]
fn pair_fails(producer: &str, consumer: &str, code: Code) -> Fault {
    faults(&pair(2, "counted", producer, consumer), pair_args(), code)
}

#[test]
fn a_ring_passes_tiles_in_order() {
    for slots in [1, 2, 5] {
        let got = output(&pair(slots, "counted", SEND, TAKE), pair_args());
        assert_eq!(got, (0..11).map(|i| 2.0 * f64::from(i)).collect::<Vec<_>>());
    }
    let generic = "for n in 0..ceildiv(N, 4) {\nlet w = acquire r\nw.t[:] = A[n*4 +: 4] pad 0\ncommit w\n}";
    output(&pair(2, "generic", generic, TAKE), pair_args());
}

#[test]
fn a_slot_that_is_not_released_ends_in_deadlock_or_is_reported() {
    let keep = "for n in 0..ceildiv(N, 4) {\nlet v = wait r\nO[n*4 +: 4] = v.t[:]\n}";
    pair_fails(SEND, keep, codes::TOKEN_LOST);
    let one = "let v = wait r\nO[0 +: 4] = v.t[:]\nrelease v";
    let f = pair_fails(SEND, one, codes::TOKEN_LOST);
    assert!(f.message.contains("the last 2 slots of `r`"), "{f}");
    let f = faults(&pair(1, "counted", SEND, one), pair_args(), codes::DEADLOCK);
    assert!(f.label.contains("role `one` waits for an empty slot of `r`"), "{f:#?}");
    let once = "let w = acquire r\ncopy.async A[0 +: 4] -> w.t\ncommit w";
    let f = pair_fails(once, TAKE, codes::DEADLOCK);
    assert!(f.label.contains("role `two` waits for a full slot of `r`"), "{f:#?}");
}

#[test]
fn two_rings_in_opposite_orders_block_each_other() {
    let source = |first: &str, second: &str| {
        format!(
            "kernel k(O: inout f32[4]) {{\ngrid 1 as i\nteam one: 1 group of 32\nteam two: 1 group of 32\n\
             ring r[1] one -> two {{ t: shared f32[4] }} fill generic\n\
             ring q[1] two -> one {{ t: shared f32[4] }} fill generic\n\
             role one {{\n{first}\n}}\nrole two {{\n{second}\n}}\n}}"
        )
    };
    let send = |ring: &str| format!("let w{ring} = acquire {ring}\nw{ring}.t[:] = 1.0\ncommit w{ring}\n");
    let take = |ring: &str| format!("let v{ring} = wait {ring}\nrelease v{ring}\n");
    let args = || vec![tensor(F32, &[4], |_| 0.0)];
    let good = source(&(send("r") + &take("q")), &(take("r") + &send("q")));
    output(&text(&good, "k"), args());
    let bad = source(&(take("q") + &send("r")), &(take("r") + &send("q")));
    let f = faults(&text(&bad, "k"), args(), codes::DEADLOCK);
    assert_eq!(f.also.len(), 1, "both positions are named: {f:#?}");
}

#[test]
fn data_in_flight_is_poison() {
    // the producer itself looks at the slot before anybody could know that the copy arrived
    let peek = SEND.replace("commit w", "O[0 +: 4] = w.t[:]\ncommit w");
    pair_fails(&peek, TAKE, codes::TOKEN_MISUSE);
    // a slot that nobody filled
    let empty = SEND.replace("copy.async A[n*4 +: 4] pad 0 -> w.t\n", "");
    pair_fails(&empty, TAKE, codes::READ_POISON);
    // without a pad, what lay outside the tensor never arrives
    let ragged = SEND.replace(" pad 0", "");
    let f = pair_fails(&ragged, TAKE, codes::READ_POISON);
    assert_eq!(f.index, Some(vec![3]));
    // old contents are gone when a slot is filled again
    let once = SEND
        .replace("copy.async A[n*4 +: 4] pad 0 -> w.t", "if n == 0 { copy.async A[n*4 +: 4] pad 0 -> w.t }");
    pair_fails(&once, TAKE, codes::READ_POISON);
}

#[test]
fn tokens_are_used_once_and_in_order() {
    let twice = TAKE.replace("release v", "release v\nrelease v");
    output(&pair(2, "counted", SEND, &twice), pair_args());
    let after = TAKE.replace("release v", "release v\nO[0 +: 4] = v.t[:]");
    pair_fails(SEND, &after, codes::TOKEN_MISUSE);
    let swapped = "let a = wait r\nlet b = wait r\nrelease b\nrelease a\nlet c = wait r\nrelease c";
    let f = pair_fails(SEND, swapped, codes::TOKEN_MISUSE);
    assert!(f.message.contains("released before an earlier slot"), "{f}");
    let write = TAKE.replace("release v", "v.t[:] = 0.0\nrelease v");
    pair_fails(SEND, &write, codes::TOKEN_MISUSE);
    let commit = TAKE.replace("release v", "commit v");
    pair_fails(SEND, &commit, codes::TOKEN_MISUSE);
    let none = "for n in 0..3 carry (h: slot(r)? = none) {\nlet v = wait r\nO[0 +: 4] = h.t[:]\nrelease h\nnext v\n}\nrelease h";
    pair_fails(SEND, none, codes::TOKEN_MISUSE);
}

#[test]
fn roles_share_memory_only_in_order() {
    let source = |order: [&str; 2]| {
        format!(
            "kernel k(O: inout f32[4]) {{\ngrid 1 as i\nteam one: 1 group of 32\nteam two: 1 group of 32\n\
             ring r[1] one -> two {{ t: shared f32[4] }} fill generic\nshared s: f32[4]\n\
             role one {{\nlet w = acquire r\n{}w.t[:] = 1.0\ncommit w\n{}}}\n\
             role two {{\nlet v = wait r\nO[0 +: 4] = s[0 +: 4] + v.t[:]\nrelease v\n}}\n}}",
            order[0], order[1]
        )
    };
    let args = || vec![tensor(F32, &[4], |_| 0.0)];
    assert_eq!(output(&text(&source(["s[0 +: 4] = 2.0\n", ""]), "k"), args()), [3.0; 4]);
    for seed in 0..6 {
        let p = text(&source(["", "s[0 +: 4] = 2.0\n"]), "k");
        let options = Options { seed, ..Options::default() };
        let mut a = args();
        let f = pantile_ir::interp::run_host(&p, &[], &mut a, &options).unwrap_err();
        assert!([codes::RACE_ROLES, codes::READ_POISON].contains(&f.code), "{f:#?}");
    }
}

#[test]
fn a_barrier_joins_roles() {
    let source = |barrier: &str| {
        format!(
            "kernel k(O: inout f32[4]) {{\ngrid 1 as i\nteam one: 1 group of 32\nteam two: 1 group of 32\nshared s: f32[4]\n\
             role one {{\ns[0 +: 4] = 2.0\n{barrier}\n}}\nrole two {{\n{barrier}\nO[0 +: 4] = s[0 +: 4]\n}}\n}}"
        )
    };
    let args = || vec![tensor(F32, &[4], |_| 0.0)];
    assert_eq!(output(&text(&source("barrier"), "k"), args()), [2.0; 4]);
    for seed in 0..6 {
        let options = Options { seed, ..Options::default() };
        let mut a = args();
        let f = pantile_ir::interp::run_host(&text(&source(""), "k"), &[], &mut a, &options).unwrap_err();
        assert!([codes::RACE_ROLES, codes::READ_POISON].contains(&f.code), "{f:#?}");
    }
    let lone = source("barrier").replacen("barrier", "let nothing = i", 1);
    faults(&text(&lone, "k"), args(), codes::DEADLOCK);
}

#[test]
fn turns_go_round() {
    let source = |body: &str| {
        format!(
            "kernel k(O: inout i32[1]) {{\ngrid 1 as i\nteam math: 3 groups of 32\nturn pp over math.groups\nshared s: i32[1]\ns[0 +: 1] = i32(0)\n\
             role math as g {{\n{body}\n}}\nO[0 +: 1] = s[0 +: 1]\n}}"
        )
    };
    let go = |body: &str, code: Option<Code>| {
        let p = text(&source(body), "k");
        let args = vec![tensor(I32, &[1], |_| 0.0)];
        match code {
            None => assert_eq!(output(&p, args), [12012.0]),
            Some(code) => drop(faults(&p, args, code)),
        }
    };
    // ((0*10 + 0)*10 + 1)*10 + 2, twice around: 012012
    let step = "s[0 +: 1] = s[0 +: 1] * 10 + i32(g)";
    go(&format!("for n in 0..2 {{\ntake pp\n{step}\npass pp\n}}"), None);
    go(&format!("for n in 0..2 {{\n{step}\n}}"), Some(codes::RACE_ROLES));
    go(&format!("take pp\n{step}"), Some(codes::DEADLOCK));
    go(&format!("if g < 2 {{\ntake pp\n{step}\npass pp\n}}"), Some(codes::TOKEN_MISUSE));
    go("pass pp", Some(codes::TOKEN_MISUSE));
}

#[test]
fn work_that_is_never_awaited_is_reported() {
    let p = text(
        "kernel k(A: f32[8, 8], O: inout f32[8, 8]) {\ngrid 1 as i\nteam math: 1 group of 128\nqueue mm of math: matrix\nshared s: f32[8, 8]\n\
         s[0 +: 8, 0 +: 8] = A[0 +: 8, 0 +: 8]\nvar c = zeros f32[8, 8]\nissue mm: gemm s, s -> c (init = true)\n}",
        "k",
    );
    faults(&p, vec![tensor(F32, &[8, 8], noise), tensor(F32, &[8, 8], noise)], codes::NOT_AWAITED);
}

/// One product on a queue, with a statement between issue and await.
fn one_issue(between: &str) -> Program {
    text(
        &format!(
            "kernel k(A: f32[8, 8], O: out f32[8, 8]) {{\ngrid 1 as i\nteam math: 1 group of 128\nqueue mm of math: matrix\nshared s: f32[8, 8]\n\
             s[0 +: 8, 0 +: 8] = A[0 +: 8, 0 +: 8]\nvar p = A[0 +: 8, 0 +: 8]\nvar c = zeros f32[8, 8]\nissue mm: gemm p, s.T -> c (init = true)\n\
             {between}\nawait mm keep 0\nO[0 +: 8, 0 +: 8] = c\n}}"
        ),
        "k",
    )
}

#[test]
fn operands_in_flight_may_not_change() {
    let args = || vec![tensor(F32, &[8, 8], |i| (i % 5) as f64), out(F32, &[8, 8])];
    let got = output(&one_issue(""), args());
    let want: f64 = (0..8).map(|l| ((8 + l) % 5) as f64 * ((16 + l) % 5) as f64).sum();
    assert_eq!(got[8 + 2], want);
    let f = faults(&one_issue("s[0 +: 1, 0 +: 8] = 0.0"), args(), codes::CHANGED_IN_FLIGHT);
    assert_eq!((f.tensor.as_deref(), f.also.len()), (Some("s"), 2));
    let f = faults(&one_issue("p = p * 2.0"), args(), codes::CHANGED_IN_FLIGHT);
    assert_eq!(f.tensor.as_deref(), Some("p"));
    faults(&one_issue("c = p"), args(), codes::CHANGED_IN_FLIGHT);
    output(&one_issue("let q = p * 2.0\nlet z = s[0 +: 8, 0 +: 8]"), args());
}

/// A copy from shared memory to a tensor on a store queue, with statements before and after its await.
fn stored(read_completion: bool, before: bool, after: bool) -> Program {
    program(move |k: &mut KernelBuilder| {
        let n = ix(k, 8)?;
        let o = vector(k, "O", Mode::InOut, F32, n)?;
        let team = TeamDecl { name: "all".into(), groups: 1, threads: None, elected: false, regs: None };
        let team = k.add_team(team, Span::default());
        let queue = Queue {
            name: "st".into(),
            team,
            per_group: false,
            engine: Engine::Store,
            max_keep: None,
            per_thread_one: true,
            read_completion,
        };
        let queue = k.add_queue(queue, Span::default())?;
        let s = k.shared("s", F32, &[8])?;
        let (z, one, two) = (ix(k, 0)?, k.c_f32(1.0)?, k.c_f32(2.0)?);
        k.write(s, &[span(z, 8)], one)?;
        let region = |mem| Region { mem, axes: std::iter::once(span(z, 8)).collect() };
        let copy = Op::CopyAsync { from: region(s), to: region(o), pad: None, queue: Some(queue) };
        k.op(copy, &[], Span::default())?;
        if before {
            k.write(s, &[span(z, 8)], two)?;
        }
        k.op(Op::Await { queue, keep: 0 }, &[], Span::default())?;
        if after {
            k.write(s, &[span(z, 8)], two)?;
            k.read("x", o, &[span(z, 8)])?;
        }
        Ok(())
    })
}

#[test]
fn a_store_queue_reads_before_its_await_and_arrives_when_told() -> Result<()> {
    let args = || vec![tensor(F32, &[8], |_| 0.0)];
    assert_eq!(output(&stored(false, false, true), args()), [1.0; 8]);
    faults(&stored(false, true, false), args(), codes::CHANGED_IN_FLIGHT);
    // awaiting the reads frees the source, but the data has not arrived for sure
    assert_eq!(output(&stored(true, false, false), args()), [1.0; 8]);
    faults(&stored(true, false, true), args(), codes::READ_IN_FLIGHT);
    Ok(())
}

#[test]
fn a_multistage_pipeline_of_one_team_on_a_copy_queue() {
    let source = |prefetch: u32| {
        format!(
            "kernel k(A: f32[N, 4], O: out f32[4]) {{\ngrid 1 as i\nteam all: 1 group of 128\nqueue cp of all: copy\n\
             ring r[3] all -> all {{ t: shared f32[1, 4] }} fill fifo(cp)\n\
             var s = zeros f32[1, 4]\n\
             for n in 0..min(N, {prefetch}) {{\nlet w = acquire r\ncopy.async A[n +: 1, :] -> w.t\ncommit w\n}}\n\
             for n in 0..N {{\nlet v = wait r\ns += v.t[:, :]\nrelease v\n\
             if n + {prefetch} < N {{\nlet w = acquire r\ncopy.async A[n + {prefetch} +: 1, :] -> w.t\ncommit w\n}}\n}}\n\
             O[:] = reshape(s, 4)\n}}"
        )
    };
    for n in [0usize, 1, 2, 7] {
        let want: Vec<f64> = (0..4).map(|c| (0..n).map(|r| (r * 4 + c) as f64).sum()).collect();
        let args = || vec![tensor(F32, &[n as i64, 4], |i| i as f64), out(F32, &[4])];
        assert_eq!(output(&text(&source(2), "k"), args()), want, "N = {n}");
        assert_eq!(output(&text(&source(3), "k"), args()), want, "N = {n}");
    }
    let args = vec![tensor(F32, &[7, 4], |i| i as f64), out(F32, &[4])];
    faults(&text(&source(4), "k"), args, codes::DEADLOCK);
}

#[test]
fn a_name_that_two_roles_assign_is_lost() {
    let source = |second: &str| {
        format!(
            "kernel k(O: out f32[1]) {{\ngrid 1 as i\nteam one: 1 group of 32\nteam two: 1 group of 32\nvar x: f32 = 0.0\nvar y: f32 = 0.0\n\
             role one {{ x = 1.0 }}\nrole two {{ {second} = 2.0 }}\nO[0] = x + y\n}}"
        )
    };
    assert_eq!(output(&text(&source("y"), "k"), vec![out(F32, &[1])]), [3.0]);
    faults(&text(&source("x"), "k"), vec![out(F32, &[1])], codes::RACE_ROLES);
}
