//! Work of a kernel as formulas of its dims.

mod common;

use common::{arch, library, program};
use pantile_ir::DType;
use pantile_ir::elab::{Request, Setting};
use pantile_passes::work::work;

fn told(text: &str) -> String {
    work(&program(text, &Request::new("k"), &arch("sm_80")))[0].to_string()
}

#[test]
fn formulas() {
    let cases = [
        // each operation on a float counts, conversions and integers do not
        (
            "kernel k(X: f16[N], Y: out f16[N]) {
                grid ceildiv(N, 64) as i
                let x = f32(X[i*64 +: 64])
                Y[i*64 +: 64] = f16(exp(x) * 2.0 + x)
            }",
            "flops: 192*ceildiv(N, 64)\nbytes: 4*N\n",
        ),
        // trips times a product, and what is read and written counts twice
        (
            "kernel k(A: f32[M, K], B: f32[K, N], C: inout f32[M, N]) {
                grid (ceildiv(M, 16), ceildiv(N, 32)) as (i, j)
                var c = C[i*16 +: 16, j*32 +: 32]
                for k in 0..ceildiv(K, 8) { c += A[i*16 +: 16, k*8 +: 8] @ B[k*8 +: 8, j*32 +: 32] }
                C[i*16 +: 16, j*32 +: 32] = c
            }",
            "flops: 8192*ceildiv(M, 16)*ceildiv(N, 32)*ceildiv(K, 8)\nbytes: 4*M*K + 8*M*N + 4*K*N\n",
        ),
        // a loop that grows with the block
        (
            "kernel k(X: f32[N, N], y: out f32[N]) {
                grid N as i
                var s: f32 = 0
                for j in 0..i + 1 { s += X[i, j] }
                y[i] = s
            }",
            "flops: at most N*N\nbytes: 4*N*N + 4*N\n",
        ),
        // no round where the end lies before the start
        (
            "kernel k(X: f32[N], y: out f32[N]) {
                grid N as i
                var s = X[i]
                for j in 7..N { s += X[j] }
                for j in 9..3 { s += X[i] }
                y[i] = s
            }",
            "flops: N*max(N - 7, 0)\nbytes: 8*N\n",
        ),
        // threads each do theirs; one side of a branch is not the other
        (
            "kernel k(X: i8[N], y: out f32[N]) {
                grid ceildiv(N, 32) as i
                threads 32 as t
                let n = i*32 + t
                if n < N { y[n] = f32(X[n]) * 0.5 }
            }",
            "flops: at most 32*ceildiv(N, 32)\nbytes: 5*N\n",
        ),
        // only data know
        (
            "kernel k(X: f32[N], y: out f32[N]) {
                grid N as i
                var s = X[i]
                while s > 1 { s = s * 0.5 }
                y[i] = s
            }",
            "flops: unknown\nbytes: 8*N\n",
        ),
        // half a byte an element
        (
            "kernel k(X: u4[N] packed(0), y: out f32[N]) {
                grid N as i
                y[i] = f32(X[i])
            }",
            "flops: 0\nbytes: (36*N)/8\n",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(told(text), want, "{text}");
    }
}

#[test]
fn causal_attention_is_bounded() {
    let mut request = Request::new("attention").with_type("T", DType::F16).with_const("D", 64);
    request.consts.insert("CAUSAL".into(), Setting::Bool(true));
    let p = library("attention.tile", &request, &arch("sm_80"));
    let text = work(&p)[0].to_string();
    assert!(text.starts_with("flops: at most ") && text.contains("ceildiv(L, 128)"), "{text}");
}
