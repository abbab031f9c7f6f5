//! The kernels of LANGUAGE.md and those that ship.

mod elab_support;

use elab_support::*;
use pantile_abi::DType;
use pantile_ir::elab::Request;

const GEMM: &str = r#"
kernel gemm<T: float>(A: T[M, K], B: T[K, N], C: out T[M, N]) {
    param BM = 128 in [64, 128, 256], BN = 128 in 16..=256 step 16, BK = 64 in [32, 64, 128], STAGES = 3 in 2..=6
    grid (ceildiv(M, BM), ceildiv(N, BN)) as (i, j)

    var c = zeros acc(T)[BM, BN]
    for k in pipelined(0..ceildiv(K, BK), stages = STAGES) {
        let a = A[i*BM +: BM, k*BK +: BK]
        let b = B[k*BK +: BK, j*BN +: BN]
        c += a @ b
    }
    C[i*BM +: BM, j*BN +: BN] = T(c)
}
"#;

const ATTENTION: &str = r#"
use "std"::{online_softmax, LOG2E}
kernel attention<T: float, const D: int, const CAUSAL: bool>(
    Q: T[B, H, S, D], K: T[B, G, L, D], V: T[B, G, L, D], O: out T[B, H, S, D], scale: f32)
where D in [64, 80, 96, 128, 192, 256], H % G == 0, !CAUSAL || L >= S
{
    param BM = 128 in [64, 128, 192], BN = 128 in 48..=176 step 16, STAGES = 2
    grid (ceildiv(S, BM), H, B) as (i, h, b) cost = if CAUSAL { i + 1 } else { 1 }

    let q = Q[b, h, i*BM +: BM, :]
    var o = zeros f32[BM, D]
    var m = full f32[BM](-1e30)
    var l = zeros f32[BM]
    for j in pipelined(0..ceildiv(if CAUSAL { min(L, (i+1)*BM + L - S) } else { L }, BN), stages = STAGES) {
        let k = K[b, h*G/H, j*BN +: BN, :]
        let v = V[b, h*G/H, j*BN +: BN, :]
        var s = (q @ k.T) * (scale * LOG2E)
        if const CAUSAL { s = where(i*BM + rows(s) + L - S >= j*BN + cols(s), s, -inf) }
        let (p, a, m2, l2) = online_softmax(s, m, l)
        o = o * a[:, _]
        o += T(p) @ v
        m = m2
        l = l2
    }
    O[b, h, i*BM +: BM, :] = T(o / l[:, _])
}
"#;

const GEMV: &str = r#"
kernel gemv_allreduce(x: f16[K], B: f16[N, K], y: out f16[N]) {
    param ROWS = 2 in [2, 4, 8, 32, 64, 128], RT = 32 in [4, 8, 32]
    const VEC = target.vec(f16)
    grid ceildiv(N, ROWS) as bn
    threads (ROWS, RT) as (tn, tk)

    let n = bn*ROWS + tn
    var acc: f32 = 0
    for bk in 0..ceildiv(K, RT*VEC) {
        let k0 = (bk*RT + tk) * VEC
        var xv: f16[VEC]
        var bv: f16[VEC]
        for v in vectorized(VEC) {
            xv[v] = x[k0 + v] or 0
            bv[v] = B[n, k0 + v] or 0
        }
        for v in unroll(VEC) { acc += f32(xv[v]) * f32(bv[v]) }
    }
    let total = allreduce(add, acc, over = tk)
    if tk == 0 && n < N { y[n] = f16(total) }
}
"#;

#[test]
fn gemm() {
    let p = program_of(GEMM, &Request::new("gemm").with_type("T", DType::F16));
    let k = p.kernels.iter().next().unwrap().1;
    assert_eq!(
        shape(k),
        ["let c", "for k Pipelined { stages: Some(3) }", "  [a] Read", "  [b] Read", "  [] Gemm", "[] Write",]
    );
    assert_eq!(p.entry.args.len(), 3);
    assert!(p.entry.lone);
}

#[test]
fn attention() {
    let request = Request::new("attention").with_type("T", DType::F16).with_const("D", 64);
    let p = program_of(ATTENTION, &request.clone().with_flag("CAUSAL", true));
    let k = p.kernels.iter().next().unwrap().1;
    assert_eq!(
        shape(k),
        [
            "[q] Read",
            "let o",
            "let m",
            "let l",
            "for j Pipelined { stages: Some(2) }",
            "  [k] Read",
            "  [v] Read",
            "  declare product",
            "  [] Gemm",
            "  let s",
            "  s =",
            "  [folded] Reduce",
            "  let m2",
            "  let a",
            "  let p",
            "  [folded] Reduce",
            "  let l2",
            "  o =",
            "  [] Gemm",
            "  m =",
            "  l =",
            "[] Write",
        ]
    );
    assert_eq!(
        k.wheres.iter().map(|w| w.1.as_str()).collect::<Vec<_>>(),
        ["H % G == 0", "!CAUSAL || L >= S"]
    );
    let p = program_of(ATTENTION, &request.with_flag("CAUSAL", false));
    let k = p.kernels.iter().next().unwrap().1;
    assert!(!shape(k).contains(&"  s =".to_string()));
    assert_eq!(k.wheres.len(), 1);
}

#[test]
fn gemv() {
    let p = program(GEMV, "gemv_allreduce");
    let k = p.kernels.iter().next().unwrap().1;
    assert_eq!(
        shape(k),
        [
            "let n",
            "let acc",
            "for bk Serial",
            "  let k0",
            "  buffer xv",
            "  buffer bv",
            "  for v Vectorized",
            "    store",
            "    store",
            "  for v Unroll",
            "    acc Add=",
            "[total] AllReduce",
            "if",
            "  store",
        ]
    );
}
