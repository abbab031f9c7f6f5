//! Products on the CPU against float64, on odd shapes.
#![cfg(feature = "cpu")]

mod support;

use pantile_abi::DType;
use pantile_ir::builder::{Exprs, ProgramBuilder};
use pantile_ir::program::*;
use support::{Args, run};

fn gemm(exact: bool, tile: (u32, u32, u32)) -> Program {
    let mut p = ProgramBuilder::new("x86-64-v4");
    let mut k = p.kernel("gemm");
    let (m, n, kk) = (k.dim("M").unwrap(), k.dim("N").unwrap(), k.dim("K").unwrap());
    let a = k.tensor("A", Mode::In, DType::F32, &[m, kk]).unwrap();
    let b = k.tensor("B", Mode::In, DType::F32, &[kk, n]).unwrap();
    let c = k.tensor("C", Mode::Out, DType::F32, &[m, n]).unwrap();
    if exact {
        k.set_math(MathMode::Exact);
    }
    let (bm, bn, bk) = (
        k.c_index(tile.0 as i64).unwrap(),
        k.c_index(tile.1 as i64).unwrap(),
        k.c_index(tile.2 as i64).unwrap(),
    );
    let gm = k.math(MathFn::CeilDiv, &[m, bm]).unwrap();
    let gn = k.math(MathFn::CeilDiv, &[n, bn]).unwrap();
    let ij = k.grid(&[(gm, "i"), (gn, "j")]).unwrap();
    let acc = k.zeros("c", DType::F32, &[tile.0, tile.1]).unwrap();
    let (i0, j0) = (k.mul(ij[0], bm).unwrap(), k.mul(ij[1], bn).unwrap());
    let zero = k.c_index(0).unwrap();
    let steps = k.math(MathFn::CeilDiv, &[kk, bk]).unwrap();
    let span = |start, len| RegionAxis::Span { start, len, limit: None, clip_low: false };
    k.for_("k", zero, steps, |k, kv| {
        let k0 = k.mul(kv, bk)?;
        let at = k.read("a", Mem::Tensor(a), &[span(i0, tile.0), span(k0, tile.2)])?;
        let bt = k.read("b", Mem::Tensor(b), &[span(k0, tile.2), span(j0, tile.1)])?;
        k.gemm(acc, at, bt)
    })
    .unwrap();
    let v = k.get(acc).unwrap();
    k.write(Mem::Tensor(c), &[span(i0, tile.0), span(j0, tile.1)], v).unwrap();
    let id = p.add_kernel(k).unwrap();
    p.set_lone(id).unwrap();
    p.finish().unwrap().0
}

#[test]
fn products_on_odd_shapes() {
    for exact in [false, true] {
        let program = gemm(exact, (32, 48, 24));
        for (m, n, k) in [(1, 1, 1), (33, 17, 5), (100, 33, 64), (64, 96, 0), (1, 1000, 3), (37, 41, 43)] {
            let a: Vec<f32> = (0..m * k).map(|i| ((i * 7 % 13) as f32 - 6.0) / 8.0).collect();
            let b: Vec<f32> = (0..k * n).map(|i| ((i * 5 % 11) as f32 - 5.0) / 8.0).collect();
            let mut c = vec![f32::NAN; m * n];
            let grid = [m.div_ceil(32) as u64, n.div_ceil(48) as u64];
            run(&program, Args::new().input(&a).input(&b).output(&mut c).dims(&[m, n, k]).grid(&grid));
            for i in 0..m {
                for j in 0..n {
                    let want: f64 = (0..k).map(|x| a[i * k + x] as f64 * b[x * n + j] as f64).sum();
                    assert_eq!(c[i * n + j] as f64, want, "{m}x{n}x{k} at {i},{j}");
                }
            }
        }
    }
}

#[test]
#[ignore = "a measurement, run by hand in release"]
fn speed() {
    let program = gemm(false, (128, 128, 128));
    let n = 1024usize;
    let a = vec![1.0f32; n * n];
    let mut c = vec![0.0f32; n * n];
    for _ in 0..3 {
        let secs =
            run(&program, Args::new().input(&a).input(&a).output(&mut c).dims(&[n, n, n]).grid(&[8, 8]));
        eprintln!("{:.1} GFLOP/s", 2.0 * (n * n * n) as f64 / secs / 1e9);
    }
}
