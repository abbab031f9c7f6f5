//! Roles, rings, queues and turns: the CPU gives the interpreter's bits, and stops where roles wait for one another.

use pantile_ir::elab::Request;
use pantile_tests::plain::program_of;
use pantile_tests::run::{Bench, Outcome, build_code, check_one, compare, compile, kernel_of};

/// One kernel `k`, run for each list of dims on several kinds of data.
#[track_caller]
fn agrees(text: &str, dims: &[&[(&str, i64)]]) {
    let bench = Bench::new();
    for values in dims {
        for kind in 0..2 {
            let p = program_of(&bench, "k", text, values, kind).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let outcome = check_one(&bench, &p);
            assert!(
                matches!(outcome, Outcome::Same),
                "{values:?}, data {kind}: {} {}\n{text}",
                outcome.kind(),
                outcome.text()
            );
        }
    }
}

/// What stops the kernel on the CPU.
#[track_caller]
fn stops(text: &str) -> String {
    let bench = Bench::new();
    let p = program_of(&bench, "k", text, &[], 0).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let made = compile(&bench, text, &Request::new("k")).expect("verified");
    let kernel = kernel_of(&made.program, &p).expect("its kernel");
    let code = build_code(&bench, &made.program).expect("built");
    match compare(&code, kernel.index(), &p, &[]) {
        Outcome::Broken(text) => text,
        other => panic!("it does not stop: {}", other.kind()),
    }
}

const TRIPS: &[&[(&str, i64)]] = &[&[("N", 0)], &[("N", 1)], &[("N", 2)], &[("N", 13)], &[("N", 101)]];

/// C = A·B by a load role and a math role of `groups` groups.
fn specialised(slots: u32, keep: u32, groups: u32, precision: &str) -> String {
    let rows = groups * 8;
    format!(
        "kernel k(A: f32[M, K], B: f32[K, N], C: out f32[M, N]) math exact {{
    grid (ceildiv(M, {rows}), ceildiv(N, 24)) as (i, j)
    team math: {groups} groups of 128
    team load: 1 thread of 1 group
    ring ab[{slots}] load -> math {{ a: shared f32[{rows}, 8], b: shared f32[24, 8] }} fill counted
    queue mm of math.group: matrix, keep <= 7
    role load {{
        for k in 0..ceildiv(K, 8) {{
            let w = acquire ab
            copy.async A[i*{rows} +: {rows}, k*8 +: 8] pad 0 -> w.a
            copy.async B[k*8 +: 8, j*24 +: 24] pad 0 -> w.bt
            commit w
        }}
    }}
    role math as g {{
        var c = zeros f32[8, 24]
        for k in 0..ceildiv(K, 8) carry (held: slot(ab)? = none) {{
            let r = wait ab
            issue mm: gemm r.a[g*8 +: 8, :], r.bt -> c (init = k == 0){precision}
            await mm keep {keep}
            release held
            next r
        }}
        await mm keep 0
        release held
        C[i*{rows} + g*8 +: 8, j*24 +: 24] = c
    }}
}}"
    )
    .replace("b: shared f32[24, 8]", "bt: shared f32[8, 24]")
}

#[test]
fn a_specialised_gemm() {
    let shapes: &[&[(&str, i64)]] = &[
        &[("M", 16), ("N", 24), ("K", 8)],
        &[("M", 13), ("N", 9), ("K", 33)],
        &[("M", 37), ("N", 101), ("K", 100)],
        &[("M", 1), ("N", 1), ("K", 1)],
        &[("M", 5), ("N", 3), ("K", 0)],
    ];
    agrees(&specialised(3, 1, 2, ""), shapes);
    agrees(&specialised(5, 0, 2, ""), shapes);
    agrees(&specialised(4, 1, 3, ""), shapes);
    agrees(&specialised(3, 1, 1, " { precision = tf32 }"), shapes);
}

/// Roles `one` and `two` with a ring `r` of `f32[4]` tiles between them.
fn pair(slots: u32, fill: &str, producer: &str, consumer: &str) -> String {
    format!(
        "kernel k(A: f32[N], O: inout f32[N]) math exact {{
    grid 1 as i
    team one: 1 group of 32
    team two: 1 group of 32
    ring r[{slots}] one -> two {{ t: shared f32[4], n: shared i32 }} fill {fill}
    role one {{
{producer}
    }}
    role two {{
{consumer}
    }}
}}"
    )
}

const SEND: &str =
    "for n in 0..ceildiv(N, 4) {\nlet w = acquire r\ncopy.async A[n*4 +: 4] pad 0 -> w.t\ncommit w\n}";
const TAKE: &str = "for n in 0..ceildiv(N, 4) {\nlet v = wait r\nO[n*4 +: 4] = v.t[:] * 2.0\nrelease v\n}";

#[test]
fn a_ring_of_one_to_five_slots_and_any_number_of_trips() {
    for slots in [2, 3, 4, 5] {
        agrees(&pair(slots, "counted", SEND, TAKE), TRIPS);
        let generic = "for n in 0..ceildiv(N, 4) {\nlet w = acquire r\nw.t[:] = A[n*4 +: 4] pad 0\nw.n = i32(n)\ncommit w\n}";
        let take = "var all: i32 = 1\nfor n in 0..ceildiv(N, 4) {\nlet v = wait r\nall = all*3 + v.n\nO[n*4 +: 4] = v.t[:] * f32(all)\nrelease v\n}";
        agrees(&pair(slots, "generic", generic, take), TRIPS);
    }
}

/// A kernel over `A: f32[N, 8]`, `P: i32[N]` and `O: inout f32[N, 8]`, `R: inout i32[8]`.
fn kernel(machines: &str, body: &str) -> String {
    format!(
        "kernel k(A: f32[N, 8], P: i32[N], O: inout f32[N, 8], R: inout i32[8]) math exact {{
    grid 1 as i
{machines}
{body}
}}"
    )
}

const ONE: &[&[(&str, i64)]] = &[&[("N", 5)]];

#[test]
fn two_rings_make_a_line_of_three_roles() {
    let machines = "team load: 1 thread of 1 group\nteam math: 1 group of 128\nteam store: 1 group of 32
        ring a[2] load -> math { x: shared f32[1, 8] } fill counted
        ring b[3] math -> store { y: shared f32[1, 8], z: shared f32[1, 8] } fill generic
        queue st of store: store";
    let body = "role load { for n in 0..N { let w = acquire a\ncopy.async A[n +: 1, :] -> w.x\ncommit w } }
        role math { var s = zeros f32[1, 8]
            for n in 0..N { let v = wait a\nlet w = acquire b\ns += v.x[:, :]\nw.y[:, :] = s\nw.z[:, :] = v.x[:, :] * s\nrelease v\ncommit w } }
        role store { for n in 0..N carry (held: slot(b)? = none) {
            let r = wait b\nO[n +: 1, :] = r.y[:, :] - r.z[:, :]
            await st keep 1\nrelease held\nnext r }
            await st keep 0\nrelease held }";
    agrees(&kernel(machines, body), TRIPS);
    let body = body.replace("O[n +: 1, :] = r.y[:, :] - r.z[:, :]", "issue st: copy r.z -> O[n +: 1, :]");
    agrees(&kernel(machines, &body), TRIPS);
}

#[test]
fn two_consumer_groups_read_every_slot() {
    let machines = "team load: 1 thread of 1 group\nteam math: 2 groups of 32\nring a[3] load -> math { x: shared f32[1, 8] } fill counted";
    let body = "role load { for n in 0..N { let w = acquire a\ncopy.async A[n +: 1, :] -> w.x\ncommit w } }
        role math as g {
            var s = zeros f32[1, 4]\nvar kept = zeros f32[1, 4]
            for n in 0..N { let one = wait a\ns = s * 0.5 + one.x[:, g*4 +: 4]\nif n == 2 { kept = s }\nrelease one\nO[n +: 1, g*4 +: 4] = s + kept } }";
    agrees(&kernel(machines, body), TRIPS);
    // one group runs ahead by a second slot
    let body = body.replace(
        "for n in 0..N { let one = wait a\ns =",
        "for n in 0..N carry (h: slot(a)? = none) { let one = wait a\nrelease h\ns =",
    );
    let body =
        body.replace("release one\nO", "next one\nO").replace("s + kept } }", "s + kept }\nrelease h }");
    agrees(&kernel(machines, &body), TRIPS);
}

#[test]
fn turns_go_round() {
    let source = |groups: u32, body: &str| {
        kernel(
            &format!(
                "team math: {groups} groups of 32\nturn pp over math.groups\nshared s: i32[1]\ns[0 +: 1] = i32(1)"
            ),
            &format!("role math as g {{\n{body}\n}}\nR[0 +: 1] = s[0 +: 1]"),
        )
    };
    let step = "take pp\ns[0 +: 1] = s[0 +: 1] * 3 + i32(g)\npass pp";
    for groups in [1, 2, 3, 5] {
        agrees(&source(groups, step), ONE);
        agrees(&source(groups, &format!("for n in 0..N {{\n{step}\n}}")), TRIPS);
        agrees(
            &source(groups, &format!("for n in 0..N {{\nif n % 2 == 0 {{\n{step}\n}}\n{step}\n}}")),
            TRIPS,
        );
    }
}

#[test]
fn one_team_fills_and_reads_its_ring() {
    for (slots, ahead) in [(3, 2), (3, 3), (4, 1), (4, 3)] {
        let machines = format!(
            "team all: 1 group of 128\nqueue cp of all: copy\nring r[{slots}] all -> all {{ t: shared f32[1, 8] }} fill fifo(cp)"
        );
        let body = format!(
            "var s = zeros f32[1, 8]
            for n in 0..min(N, {ahead}) {{ let w = acquire r\ncopy.async A[n +: 1, :] -> w.t\ncommit w }}
            for n in 0..N {{ let v = wait r\ns = s * 0.5 + v.t[:, :]\nrelease v\nO[n +: 1, :] = s
                if n + {ahead} < N {{ let w = acquire r\ncopy.async A[n + {ahead} +: 1, :] -> w.t\ncommit w }} }}"
        );
        agree_unless_refused(&kernel(&machines, &body), TRIPS);
    }
    // both in one loop, with the same steps
    let machines = "team all: 1 group of 128\nqueue cp of all: copy\nring r[2] all -> all { t: shared f32[1, 8] } fill fifo(cp)";
    let body = "for n in 0..N { let w = acquire r\ncopy.async A[n +: 1, :] -> w.t\ncommit w\nlet v = wait r\nO[n +: 1, :] = v.t[:, :] + 1.0\nrelease v }";
    agrees(&kernel(machines, body), TRIPS);
}

#[track_caller]
fn agree_unless_refused(text: &str, dims: &[&[(&str, i64)]]) {
    match compile(&Bench::new(), text, &Request::new("k")) {
        Ok(_) => agrees(text, dims),
        Err(lines) => assert!(lines.iter().all(|l| l.starts_with("P0608")), "{lines:?}"),
    }
}

#[test]
fn roles_between_ordinary_statements() {
    let machines = "team one: 1 group of 32\nteam two: 1 group of 32\nring r[2] one -> two { t: shared f32[1, 8] } fill generic";
    let body = "shared s: f32[8]\ns[:] = 0.5
        var x: f32 = 1.5\nvar y: f32 = 2.5\nvar c = A[0 +: 1, :] pad 0\nvar d = zeros f32[1, 8]\nvar best: reducer(add) i32
        for n in 0..N { best op= P[n] }
        let top = best
        role one { x += 1.0\nfor n in 0..N { let w = acquire r\nw.t[:, :] = A[n +: 1, :] * x + y\ncommit w\nx += f32(P[n]) } }
        role two { var sum: reducer(add) f32\nfor n in 0..N { let v = wait r\nd += v.t[:, :]\nsum op= v.t[:, :]\nrelease v }\ny = sum + x }
        s[:] = s[:] * 2.0
        O[0 +: 1, :] = c * x + d * y + s[_, :]
        R[0 +: 1] = top
        role two { for n in 0..N { let v = wait r\nd = v.t[:, :] - d\nrelease v } }
        role one { for n in 0..N { let w = acquire r\nw.t[:, :] = d + f32(n)\ncommit w } }
        O[1 +: 1, :] = d";
    agrees(&kernel(machines, body), TRIPS);
}

#[test]
fn a_name_is_a_roles_own_until_they_join() {
    let machines = "team one: 1 group of 32\nteam two: 2 groups of 32\nteam three: 1 group of 32";
    // who assigns depends on the data
    let body = "for n in 0..N {
        var x: i32 = 7\nvar y: i32 = P[n]\nvar t = A[n +: 1, :]
        role one { if P[n] % 2 == 0 { x = 1\nt = t * 2.0 }\nlet z = x + y\nR[0] = z }
        role two as g { if P[n] % 2 != 0 && g == 1 { x = y + 2\nt += 1.0 }\nR[1 + g] = x }
        role three { y += 1\nlet z = y * 3 + x\nR[3] = z }
        R[4] = x * 100 + y
        O[n +: 1, :] = t
        if n % 2 == 0 { role three { y = y * x }\nR[5] = y }
    }";
    agrees(&kernel(machines, body), TRIPS);
}

#[test]
fn barriers_join_roles() {
    let machines = "team one: 1 group of 32\nteam two: 3 groups of 32\nshared s: f32[8]\ns[:] = 1.0\nshared q: i32[4]\nq[:] = 0";
    let body = "for rounds in 0..2 {
        role one { for n in 0..N { s[:] = s[:] + A[n, :]\nbarrier\nbarrier } }
        role two as g { for n in 0..N { barrier\nif g == 0 { O[n, :] = s[:] }
            q[g] = q[g] + i32(g) * P[n]\nbarrier two\nif g == 2 { R[n % 8] = q[0] + q[1] * 3 + q[2] * 5 }\nbarrier } }
    }";
    agrees(&kernel(machines, body), TRIPS);
}

#[test]
fn roles_with_loops_of_every_kind() {
    let machines = "team one: 1 group of 32\nteam two: 1 group of 32\nring r[2] one -> two { n: shared i32, t: shared f32[2, 8] } fill generic";
    let body = "role one { for a in 0..2 { if a == 1 { for n in unroll(0..3) {
            let w = acquire r\nw.n = i32(n + a)\nw.t[0 +: 1, :] = A[n*a % max(N, 1) +: 1, :] pad 1\nw.t[1 +: 1, :] = f32(n)\ncommit w } } else {
            for n in 0..N { let w = acquire r\nw.n = P[n]\nw.t[:, :] = 0.25\ncommit w } } } }
        role two { var all: i32 = 0\nvar c = zeros f32[2, 8]
            for a in 0..2 { if a == 1 { for n in unroll(0..3) {
            let v = wait r\nall = all * 5 + v.n\nc += v.t[:, :]\nparallel (p, q) in (2, 8) { }\nrelease v } } else {
            for n in 0..N { let v = wait r\nvar i: i32 = 0\nwhile i < 3 { i += 1\nif v.n > i { continue }\nall += i\nif all > 100 { break } }\nc = max(c, v.t[:, :])\nrelease v } } }
            R[0 +: 1] = all\nO[0 +: 2, :] = c }";
    agrees(&kernel(machines, &body.replace("parallel (p, q) in (2, 8) { }\n", "")), TRIPS);
}

#[test]
fn many_blocks_do_not_disturb_each_other() {
    let text = "kernel k(A: f32[N, 16], O: out f32[N, 16], S: out f32[N]) math exact {
        grid (N, 2) as (i, j)
        team one: 1 group of 32\nteam two: 2 groups of 32
        ring r[3] one -> two { t: shared f32[4] } fill counted
        turn pp over two.groups
        shared sum: f32[1]\nsum[:] = 0.0
        role one { for n in 0..2 { let w = acquire r\ncopy.async A[i, j*8 + n*4 +: 4] -> w.t\ncommit w } }
        role two as g { for n in 0..2 { let v = wait r\nlet p = v.t[g*2 +: 2] * 3.0
            O[i, j*8 + n*4 + g*2 +: 2] = p + f32(i)\nrelease v
            take pp\nsum[:] = sum[:] + reduce(add, p)\npass pp } }
        if j == 1 { S[i +: 1] = sum[:] }
    }";
    agrees(text, &[&[("N", 1)], &[("N", 33)], &[("N", 500)]]);
}

/// A kernel of 128 threads over `A: f32[N, 128]`, `O: inout f32[N, 128]` and `R: inout i32[128]`.
fn threaded(threads: &str, machines: &str, body: &str) -> String {
    format!(
        "kernel k(A: f32[N, 128], O: inout f32[N, 128], R: inout i32[128]) math exact {{
    grid 1 as i
    threads {threads}
{machines}
{body}
}}"
    )
}

#[test]
fn roles_of_kernels_that_name_their_threads() {
    let machines = "team load: 1 group of 128\nteam math: 2 groups of 64\nteam all: 1 group of 128
        ring r[3] load -> math { t: shared f32[128] } fill generic";
    // the loader as one, the groups thread by thread
    let body = "role load { for n in 0..N { let w = acquire r\nw.t[:] = A[n, :] * 2.0\ncommit w } }
        role math as g { var own: f32 = 0.0\nvar last: f32 = 1.0
            for n in 0..N { let v = wait r
            own += v.t[t] * f32(g + 1)
            let sum = allreduce(add, v.t[t], over = math)
            let near = allreduce(max, own, over = warp)
            release v
            if sum > 0.0 { last = near }
            O[n, t] = own + sum * last } }";
    agrees(&threaded("128 as t", machines, body), TRIPS);
    // the loader thread by thread, too, and a name of each thread
    let body = "var before: i32 = i32(t) * 3\nvar x: f32 = f32(t)
        role load { for n in 0..N { let w = acquire r\nw.t[t] = A[n, t] + x\ncommit w } }
        role math as g { var mine: i32 = before\nfor n in 0..N { let v = wait r
            mine = mine * 2 + (if v.t[127 - t] > 0.5 { 1 } else { 0 })\nrelease v
            let first = once { mine }
            O[n, t] = f32(first + mine) + x }
            R[t] = mine }";
    agrees(
        &threaded(
            "(4, 32) as (a, b)",
            machines,
            &body
                .replace("[t]", "[a*32 + b]")
                .replace("i32(t)", "i32(a*32 + b)")
                .replace("f32(t)", "f32(a + b)")
                .replace("127 - t", "127 - a*32 - b")
                .replace(", t]", ", a*32 + b]"),
        ),
        TRIPS,
    );
    agrees(&threaded("128 as t", machines, body), TRIPS);
    let body = "var x: f32 = f32(t)\nvar y: f32 = 2.0\nshared s: f32[128]
        role all { for n in 0..N { x = x + A[n, t] }\ns[t] = x }
        role load { y = 5.0\nlet z = y * 2.0\ny = z }
        for n in 0..N { O[n, t] = x + y + s[127 - t] }
        R[t] = i32(allreduce(add, t % 3, over = all))";
    agrees(&threaded("128 as t", machines, body), TRIPS);
}

#[test]
fn collectives_over_named_teams_and_clusters_join_the_block() {
    for over in ["all", "cluster", "block", "group", "warp"] {
        let body = format!(
            "let x = allreduce(add, A[0, t], over = {over})\nlet any = vote_any(A[0, t] > 1.0, over = {over})
            O[0, t] = x\nR[t] = if any {{ 1 }} else {{ 0 }}\nbarrier {over}"
        );
        agrees(&threaded("128 ordered as t", "team all: 1 group of 128", &body), &[&[("N", 1)]]);
    }
}

#[test]
fn roles_that_wait_for_one_another_stop_the_kernel() {
    let source = |first: &str, second: &str| {
        format!(
            "kernel k(O: inout f32[4]) {{\ngrid 3 as i\nteam one: 1 group of 32\nteam two: 2 groups of 32\nteam three: 1 group of 32
            ring r[2] one -> three {{ t: shared f32[4] }} fill generic
            ring q[2] three -> one {{ t: shared f32[4] }} fill generic
            turn pp over two.groups
            role one {{\n{first}\n}}\nrole three {{\n{second}\n}}\n}}"
        )
    };
    let send = |ring: &str| format!("let w{ring} = acquire {ring}\nw{ring}.t[:] = 1.0\ncommit w{ring}\n");
    let take = |ring: &str| format!("let v{ring} = wait {ring}\nrelease v{ring}\n");
    agrees(&source(&(send("r") + &take("q")), &(take("r") + &send("q"))), &[&[]]);
    let stopped = stops(&source(&(take("q") + &send("r")), &(take("r") + &send("q"))));
    assert!(stopped.ends_with("role `one` waits for a full slot of `q`, and nobody can go on"), "{stopped}");
    let stopped = stops(&source("barrier", "let nothing = i"));
    assert!(
        stopped.ends_with("role `one` waits for the other roles at a barrier, and nobody can go on"),
        "{stopped}"
    );
    let unequal = source("barrier", "barrier")
        .replace("role three {", "role two as g { barrier\nif g == 1 { take pp\npass pp } }\nrole three {");
    let stopped = stops(&unequal);
    assert!(
        stopped.ends_with("role `two`, group 1 waits for its turn at `pp`, and nobody can go on"),
        "{stopped}"
    );
    let stopped = stops(&unequal.replace("g == 1", "g == 0"));
    assert!(stopped.ends_with("the groups take `pp` unequally often"), "{stopped}");
    let lone = "kernel k(O: inout f32[4]) {\ngrid 1 as i\nteam all: 1 group of 32\nring r[2] all -> all { t: shared f32[4] } fill generic
        for n in 0..3 { let w = acquire r\nw.t[:] = 1.0\ncommit w }\nfor n in 0..3 { let v = wait r\nO[:] = v.t[:]\nrelease v }\n}";
    let stopped = stops(lone);
    assert!(stopped.ends_with("the block waits for an empty slot of `r`, and nobody can go on"), "{stopped}");
}

#[test]
fn a_slot_is_carried_over_the_border_of_two_ranges() {
    let text = kernel(
        "team one: 1 group of 32\nteam two: 2 groups of 32\nring r[3] one -> two { t: shared f32[1, 8] } fill counted",
        "let n = N / 2
        role one { for j in seg(0..n: late = false; n..N: late = true) { let w = acquire r\ncopy.async A[j +: 1, :] -> w.t\ncommit w } }
        role two as g { var s = zeros f32[1, 4]\nvar left = 7
            for j in seg(0..n: late = false; n..N: late = true) carry (h: slot(r)? = none) {
                let v = wait r\nrelease h
                if late { s = s * 0.5 }
                s += v.t[:, g*4 +: 4]\nO[j +: 1, g*4 +: 4] = s\nnext v }
            release h
            for j in seg(0..left; left..12: ) { left = 3\nif j > 8 { break } }
            R[g] = i32(left) }",
    );
    agrees(&format!("stage scheduled\n{}", text.replace("; left..12: )", "; left..12)")), TRIPS);
}
