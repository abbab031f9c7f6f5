//! Printing: canonical, readable back, and the same again.

mod elab_support;

use elab_support::*;
use pantile_ir::DType;
use pantile_ir::elab::Request;

#[track_caller]
fn of_body(text: &str) -> String {
    round_trip(&program(&kernel_text(text), "k"))
}

#[test]
fn gemm() {
    let text = "kernel gemm<T: float>(A: T[M, K], B: T[K, N], C: out T[M, N]) {
        param BM = 128, BN = 64
        grid (ceildiv(M, BM), ceildiv(N, BN)) as (i, j)
        var c = zeros acc(T)[BM, BN]
        for k in pipelined(0..ceildiv(K, 32), stages = 3) {
            c += A[i*BM +: BM, k*32 +: 32] @ B[k*32 +: 32, j*BN +: BN]
        }
        C[i*BM +: BM, j*BN +: BN] = T(c)
    }";
    let text = round_trip(&program_of(text, &Request::new("gemm").with_type("T", DType::BF16)));
    assert_eq!(
        text,
        "kernel gemm(A: bf16[M, K], B: bf16[K, N], C: out bf16[M, N]) {
    grid (ceildiv(M, 128), ceildiv(N, 64)) as (i, j)
    var c = zeros f32[128, 64]
    for k in pipelined(0..ceildiv(K, 32), stages = 3) {
        let read = A[i*128 +: 128, k*32 +: 32]
        let read_2 = B[k*32 +: 32, j*64 +: 64]
        c += read @ read_2
    }
    C[i*128 +: 128, j*64 +: 64] = bf16(c)
}
"
    );
}

#[test]
fn expressions() {
    of_body(
        "let x = A[0 +: 8, 0 +: 4]\nlet y = x[:, 1] + 1.5\nlet z = where(x > 0, x, -inf)\nO[0 +: 8, 0 +: 4] = z * y[:, _]",
    );
    of_body(
        "let x = A[i, j] or -0.0\nlet y = if x > 0 { x } else { s }\nO[i, j] = exp2.approx(y) + rcp.approx(x)",
    );
    of_body(
        "let t = H[0 +: 33, 0 +: 7]\nlet u = bits(u16, t).T\nlet f = f32(bits(f16, u ^ 3))\nO[0 +: 7, 0 +: 33] = f",
    );
    of_body(
        "let a = iota(5, 1) * 2 + iota(1, 3, axis = 1)\nlet b = reshape(a, 15)\nlet c = broadcast(f32(a)[_, :, :], 2, 5, 3)\nO[0 +: 5, 0 +: 3] = c[0, :, :]\nX[0, 0 +: 15] = f32(b)",
    );
    of_body("let a = full f32[4](1e-30)\nlet b = full f32[4](s)\nO[i, 0 +: 4] = fma(a, b, zeros f32[4])");
    of_body(
        "let q = 3 + n\nlet r = u8.sat(q) >> 1\nlet w = !r & 7\nO[i, j] = f32(w) + f32(i32(-7) / n) + f32(bool(true))",
    );
    of_body("let p = f32(1.0) + 2.0\nlet m = max(f64(0.1), 0.2)\nO[i, j] = p + f32(m)");
    of_body(
        "let e = A[I[i] - 1, j] or 0\nlet c = n > 3 && e > 0 || s < 1\nif c { O[i, j] = clamp(e, -1.0, 1.0) }",
    );
}

#[test]
fn constants() {
    of_body(
        "let a: f16 = 0.1\nlet b: i8 = -128\nlet c: u64 = 18446744073709551615\nlet d: bool = true\nlet e: f32 = inf\nlet f: f64 = -1e300\nO[i, j] = if d { f32(a) + f32(b) + f32(c) } else { e + f32(f) }",
    );
    of_body(
        "let a: f32 = inf - inf\nlet b: bf16 = 3.3895314e38\nlet c: f8e4m3 = 448\nO[i, j] = a + f32(b) + f32(c)",
    );
    of_body("let big: index = 9223372036854775807\nlet x = f32(big)\nO[i, j] = x");
}

#[test]
fn reductions_and_scans() {
    of_body(
        "let x = A[i*8 +: 8, 0 +: 32]\nlet m = rowmax(x)\nlet t = sum(x)\nlet u = cumsum(x, axis = 0)\nlet v = scan(max, x, reverse = true, exclusive = true)\nlet k = argmax(x, axis = 1)\nO[i*8 +: 8, 0 +: 32] = u + v + m[:, _] + t + f32(k)[:, _]",
    );
    of_body(
        "let x = A[i*8 +: 8, 0 +: 32]\nlet b = scan(or, x > 0)\nvar r: reducer(or) bool\nr op= b\nlet c = r\nif any(x > 0) && c { O[i*8 +: 8, 0 +: 32] = x }",
    );
}

#[test]
fn reducers() {
    of_body(
        "var r: reducer(add) f32\nvar w: reducer(max) f32[BM]\nparallel (a, b) in (BM, BN) { r op= A[a, b]; w[a] op= A[a, b] }\nlet total = r\nO[0, 0 +: BM] = w + total",
    );
    let welford =
        "combine welford(a: (f32, f32), b: (f32, f32)) -> (f32, f32) identity (0.0, -inf) commutative {
        let d = b.1 - a.1
        let w = if a.0 > 0.0 { d } else { 1.0 }
        (a.0 + b.0 * w, max(a.1, b.1))
    }
    kernel k(A: f32[M, 64], O: out f32[M]) { grid M as i
        var s: reducer(welford) (f32, f32)
        s op= (1.0, A[i, :])
        let (a, b) = s
        let (c, d) = reduce(welford, (A[i, :], A[i, :]))
        O[i] = a + b + c + d }";
    round_trip(&program(welford, "k"));
}

#[test]
fn threads_and_collectives() {
    let text = "kernel k(A: f32[N], B: inout i32[N], O: out f32[N]) { grid ceildiv(N, 128) as b
        threads (4, 32) as (w, l) ordered
        shared t: f32[128] align 128
        var acc: f32 = 0
        let i = b*128 + w*32 + l
        for v in unroll(4) { acc += A[i + v] or 0 }
        for v in nounroll(1..4) { acc -= A[i + v] or 0 }
        let a = shfl_xor(acc, 1)
        let c = shfl(acc, 3, width = 8) + shfl_up(acc, 1) + shfl_down(acc, 2)
        let any_pos = vote_any(acc > 0)
        let mask = ballot(acc > 0)
        t[w*32 + l] = a + c
        barrier
        barrier warp
        let total = allreduce(add, acc, over = (w, l))
        let most = allreduce(max, acc, over = warp)
        let first = once { t[0] }
        let old = atomic_add(B[i], 1)
        atomic_max(B[0], old)
        let seen = atomic_cas(B[i], 0, 1)
        while acc > 1 { acc *= 0.5; if acc < 0 { break }; if acc > 5 { continue } }
        print(\"acc\", acc, mask)
        assert(any_pos, \"none\")
        if l == 0 && i < N { O[i] = total + most + first + f32(seen) } else if l == 1 { O[i] = 0 } else { O[i] = t[l] }
    }";
    round_trip(&program(text, "k"));
}

#[test]
fn regions() {
    of_body(
        "let a = A[i*8 - 1 +: 8 clip low, 0 +: 16 limit n] pad 1\nlet b = B[j, 0 +: 16][_, :]\nlet g = A[I[0 +: 8], 0 +: 16]\nO[i*8 +: 8, 0 +: 16] = a + b + g\natomic_add(X[0 +: 8, 0 +: 16], g)\nO[0 +: 2, 0 +: 2] = 0",
    );
    of_body(
        "shared t: f32[64, 32]\nt[:, :] = A[0 +: 64, 0 +: 32]\nlet u = t[3 +: 8, :]\nO[0 +: 8, 0 +: 32] = u",
    );
}

#[test]
fn products() {
    of_body(
        "let a = H[0 +: 64, 0 +: 32]\nvar c = zeros f32[64, 64]\nc += a @ a.T { precision = full }\nc = a @ a.T\nlet d = a @ a.T\ngemm a, a.T -> c (init = n == 0)\nO[0 +: 64, 0 +: 64] = c + d",
    );
    of_body(
        "let a = A[0 +: 64, 0 +: 32]\nvar c = zeros f32[64, 64]\nc += a @ a.T { precision = tf32 }\nO[0 +: 64, 0 +: 64] = c",
    );
}

#[test]
fn names_stay_apart() {
    let text = of_body(
        "var total: f32 = 0\nfor k in 0..3 { let x = A[k, j]; total += x }\nfor k in 0..4 { let x = A[k, i]; total -= x }\nif n > 0 { let x = 1.0 * s; total += x }\nO[i, j] = total",
    );
    assert!(!text.contains("k_2") && !text.contains("x_2"), "{text}");
}

#[test]
fn ops_print_with_their_kernels() {
    let text = "kernel part<T: float>(A: T[M, K], P: out f32[W, M]) { grid (W, M) as (w, m)
        P[w, m] = f32(A[m, w] or 0) }
    kernel join(P: f32[W, M], Y: out f32[M], scale: f32) { grid M as m
        var s: f32 = 0
        for w in 0..W { s += P[w, m] }
        Y[m] = s * scale }
    op both<T: float>(A: T[M, K], B: f32[M, K], Y: out f32[M], Z: out f32[M], s: f32) deterministic where K > 0 {
        workspace P: f32[K, M]
        workspace C: f32[K + 1, M] = 0
        launch part<T>(A, P)
        launch join(P, Y, s)
        if M > 8 { launch part<f32>(B, C) } else { launch part<f32>(B, C) }
        launch join(C, Z, 1.0)
    }";
    let text = round_trip(&program_of(text, &Request::new("both").with_type("T", DType::F16)));
    assert!(text.contains("kernel part_2(") && text.contains("launch part_2("), "{text}");
}

#[test]
fn machines() {
    let text = "kernel k(A: f16[M, K], B: f16[N, K], C: out f32[M, N]) {
        grid (ceildiv(M, 128), ceildiv(N, 256)) as (i, j)
        team math: 2 groups of 128 { regs 232 }
        team load: 1 thread of 1 group { regs 40 }
        queue mm of math.group: matrix, keep <= 7
        queue st of math.group: store, per_thread one, read_completion
        ring ab[4] load -> math { a: shared f16[128, 64], b: shared f16[256, 64] align 1024 } fill counted
        ring tl[2] load -> math { t: shared i32 } fill generic
        turn pp over math.groups
        plan { schedule = persistent(raster = rows, group = 8); ring(ab) = 4 }
        role load {
            for ko in 0..ceildiv(K, 64) {
                let w = acquire ab
                copy.async A[i*128 +: 128, ko*64 +: 64] -> w.a
                copy.async B[j*256 +: 256, ko*64 +: 64] pad 0 -> w.b
                commit w
            }
            let w = acquire tl
            w.t = 3
            commit w
        }
        role math as g {
            var c: tile f32[128, 256]
            for ko in 0..ceildiv(K, 64) carry (held: slot(ab)? = none) {
                let r = wait ab
                take pp
                issue mm: gemm r.a, r.b.T -> c (init = ko == 0)
                pass pp
                await mm keep 1
                release held
                next r
            }
            await mm keep 0
            let r = wait tl
            let n = r.t
            release r
            fence(proxy)
            shared o: f32[128, 256]
            o[:, :] = c
            issue st: copy o -> C[i*128 +: 128, j*256 +: 256]
            await st keep 0
            C[i*128 +: 128, j*256 +: 256] = c * f32(n + i32(g))
        }
    }";
    round_trip(&program(text, "k"));
}

#[test]
fn intrinsics_and_parameters() {
    let text = "intrinsic fn ex(x: f32, y: f32) -> f32 {
        means { let z = x * 1.5
            exp2(z) + y } within 2 ulp
        cuda(sm_75..) \"ex2 {x}\"
        musa(mp_31..) \"exp2f({x})\"
    }
    kernel k(A: f32[M, N] strides (lda, 1) align 16, W: u4[M, K] packed(K, order = gptq), O: inout f32[M, N], s: f32) math exact deterministic where M > 3 {
        grid M as i cost = i + 1
        O[i, 0 +: 8] = ex(A[i, 0 +: 8], s) + f32(W[i, 0 +: 8]) }";
    let text = round_trip(&program(text, "k"));
    assert!(text.contains("strides (lda, 1) align 16"), "{text}");
    assert!(text.contains("packed(K, order = gptq)"), "{text}");
}

#[test]
fn layouts_and_teams() {
    let text = "kernel k(A: f16[M, K], C: out f32[M, K]) {
        grid 1 as i
        team math: 2 groups of 128
        team load: 1 thread of 1 group
        ring ab[4] load -> math { a: shared f16[64, 64] xor<3, 4, 3> align 1024, b: shared f32[64] align 128 } fill counted
        shared t: f16[64, 64] xor<3, 4, 3> align 1024
        shared u: f32[4, 33] layout \"m: 4@mem*132; n: 33@mem*4\"
        role load { let w = acquire ab
            copy.async A[0 +: 64, 0 +: 64] -> w.a
            commit w }
        role math as g { let r = wait ab
            fragment f: f32[64, 64] over math
            f[:, :] = f32(r.a[:, :])
            C[g*64 +: 64, 0 +: 64] = f[:, :]
            release r }
    }";
    let text = round_trip(&program(text, "k"));
    assert!(text.contains("fragment f: f32[64, 64] over math"), "{text}");
}

/// What Rust code builds prints as the same program written as text does.
#[test]
fn built_and_written_programs_are_one_text() {
    use pantile_ir::builder::{Exprs, ProgramBuilder};
    use pantile_ir::program::*;
    let mut p = ProgramBuilder::new("reference");
    let mut k = p.kernel("scale");
    let (m, n) = (k.dim("M").unwrap(), k.dim("N").unwrap());
    let a = Mem::Tensor(k.tensor("A", Mode::In, DType::F16, &[m, n]).unwrap());
    let o = Mem::Tensor(k.tensor("O", Mode::Out, DType::F16, &[m, n]).unwrap());
    let s = k.scalar("s", DType::F32).unwrap();
    let i = k.grid(&[(m, "i")]).unwrap()[0];
    let (zero, tile) = (k.c_index(0).unwrap(), k.c_index(64).unwrap());
    let steps = k.ceildiv(n, tile).unwrap();
    k.for_("j", zero, steps, |k, j| {
        let start = k.mul(j, tile)?;
        let span = RegionAxis::Span { start, len: 64, limit: None, clip_low: false };
        let axes = [RegionAxis::At(i), span];
        let x = k.read("x", a, &axes)?;
        let wide = k.cast(DType::F32, x)?;
        let one = k.c_f32(1.0)?;
        let shifted = k.add(s, one)?;
        let scaled = k.mul(wide, shifted)?;
        let narrow = k.cast(DType::F16, scaled)?;
        k.write(o, &axes, narrow)
    })
    .unwrap();
    let id = p.add_kernel(k).unwrap();
    p.set_lone(id).unwrap();
    let (built, _) = p.finish().unwrap();
    let written = "kernel scale(A: f16[M, N], O: out f16[M, N], s: f32) {
        grid M as i
        for j in 0..ceildiv(N, 64) {
            let x = A[i, j*64 +: 64]
            O[i, j*64 +: 64] = f16(f32(x) * (s + 1.0))
        }
    }";
    assert_eq!(round_trip(&built), round_trip(&program(written, "scale")));
    pantile_ir::verify::verify(&built, &arch("reference")).expect("a right program");
}
