//! Products, reductions, scans, combiners, reducers: order, rounding, empty folds.

mod interp_common;

use interp_common::*;
use pantile_ir::DType;
use pantile_ir::builder::{Exprs, KernelBuilder, ProgramBuilder, Result};
use pantile_ir::codes;
use pantile_ir::program::*;
use pantile_ir::span::Span;
use std::time::Instant;

/// C = A·B with 16×16×16 tiles, odd edges everywhere.
fn gemm(dtype: DType, tile: u32, precision: Precision) -> Program {
    program(|k| {
        let (m, n, kk) = (k.dim("M")?, k.dim("N")?, k.dim("K")?);
        let a = Mem::Tensor(k.tensor("A", Mode::In, dtype, &[m, kk])?);
        let b = Mem::Tensor(k.tensor("B", Mode::In, dtype, &[kk, n])?);
        let c = Mem::Tensor(k.tensor("C", Mode::Out, dtype.acc(), &[m, n])?);
        let t = ix(k, i64::from(tile))?;
        let (gm, gn) = (k.ceildiv(m, t)?, k.ceildiv(n, t)?);
        let ij = k.grid(&[(gm, "i"), (gn, "j")])?;
        let (i0, j0) = (k.mul(ij[0], t)?, k.mul(ij[1], t)?);
        let acc = k.zeros("c", dtype.acc(), &[tile, tile])?;
        let (zero, steps) = (ix(k, 0)?, k.ceildiv(kk, t)?);
        k.for_("ko", zero, steps, |k, ko| {
            let k0 = k.mul(ko, t)?;
            let x = k.read("a", a, &[span(i0, tile), span(k0, tile)])?;
            let y = k.read("b", b, &[span(k0, tile), span(j0, tile)])?;
            let op = Op::Gemm { a: x, b: y, into: acc, init: Init::Accumulate, precision };
            k.op(op, &[], Span::default()).map(|_| ())
        })?;
        let sum = k.get(acc)?;
        k.write(c, &[span(i0, tile), span(j0, tile)], sum)
    })
}

#[test]
fn a_product_folds_k_in_order_without_fma() {
    let p = gemm(F32, 16, Precision::Full);
    for (m, n, k) in [(1, 1, 1), (33, 17, 65), (5, 40, 0), (16, 16, 100)] {
        let a: Vec<f32> = (0..m * k).map(|i| noise(i) as f32).collect();
        let b: Vec<f32> = (0..k * n).map(|i| noise(i + 7919) as f32).collect();
        let args = vec![
            tensor(F32, &[m as i64, k as i64], |i| f64::from(a[i])),
            tensor(F32, &[k as i64, n as i64], |i| f64::from(b[i])),
            out(F32, &[m as i64, n as i64]),
        ];
        let got = output(&p, args);
        for i in 0..m {
            for j in 0..n {
                let mut sum = 0f32;
                for l in 0..k {
                    let product = a[i * k + l] * b[l * n + j];
                    sum += product;
                }
                assert_eq!(got[i * n + j], f64::from(sum), "{m}x{n}x{k} at {i}, {j}");
            }
        }
    }
}

#[test]
fn a_product_of_i8_wraps_in_i32_and_takes_u8() {
    let p = gemm(DType::I8, 16, Precision::Full);
    let args = vec![
        tensor(DType::I8, &[2, 3], |i| i as f64 - 2.0),
        tensor(DType::I8, &[3, 1], |i| 100.0 * (i as f64 - 1.0)),
        out(I32, &[2, 1]),
    ];
    assert_eq!(output(&p, args), [200.0, 200.0]);
}

#[test]
fn tf32_rounds_the_operands() {
    let x = 1.0 + f64::powi(2.0, -11) + f64::powi(2.0, -20);
    let args = || vec![tensor(F32, &[1, 1], |_| x), tensor(F32, &[1, 1], |_| 1.0), out(F32, &[1, 1])];
    assert_eq!(output(&gemm(F32, 16, Precision::Tf32), args()), [1.0 + f64::powi(2.0, -10)]);
    assert_eq!(output(&gemm(F32, 16, Precision::Full), args()), [x]);
}

#[test]
fn a_gemm_of_128_is_quick() {
    let p = gemm(DType::F16, 64, Precision::Full);
    let mut args = vec![
        tensor(DType::F16, &[128, 128], noise),
        tensor(DType::F16, &[128, 128], noise),
        out(F32, &[128, 128]),
    ];
    let start = Instant::now();
    run(&p, &mut args).unwrap();
    let took = start.elapsed();
    assert!(took.as_secs_f64() < 1.0, "took {took:?}");
}

/// `B = reduce(comb, A)` of a matrix in a tile of 64×64, along an axis or of everything.
fn reduce(dtype: DType, comb: Combiner, axis: Option<u8>) -> Program {
    program(|k| {
        let (m, n) = (k.dim("M")?, k.dim("N")?);
        let a = Mem::Tensor(k.tensor("A", Mode::In, dtype, &[m, n])?);
        let one = ix(k, 1)?;
        let kept = match axis {
            Some(0) => n,
            Some(_) => m,
            None => one,
        };
        let b = Mem::Tensor(k.tensor("B", Mode::Out, dtype, &[kept])?);
        let z = ix(k, 0)?;
        let x = k.read("x", a, &[span(z, 64), span(z, 64)])?;
        let r = k.reduce("r", comb, x, axis)?;
        match axis {
            None => k.store(b, &[z], r),
            Some(_) => k.write(b, &[span(z, 64)], r),
        }
    })
}

#[test]
fn a_sum_of_f16_is_rounded_once() {
    let p = reduce(DType::F16, Combiner::Add, Some(1));
    // 2048 + 1 + 1 is 2050 in one rounding, 2048 if each sum is rounded to f16
    let got = output(&p, vec![tensor(DType::F16, &[1, 3], |i| [2048.0, 1.0, 1.0][i]), out(DType::F16, &[1])]);
    assert_eq!(got, [2050.0]);
}

#[test]
fn reductions_take_valid_elements_only_along_every_axis() {
    for (m, n) in [(1i64, 1i64), (33, 5), (7, 64)] {
        let a = |i: usize| -5.0 - noise(i);
        for axis in [Some(0), Some(1), None] {
            let p = reduce(F32, Combiner::Max, axis);
            let kept = axis.map_or(1, |d| [n, m][d as usize]);
            let got = output(&p, vec![tensor(F32, &[m, n], a), out(F32, &[kept])]);
            let mut want = vec![f64::NEG_INFINITY; kept as usize];
            for i in 0..m as usize {
                for j in 0..n as usize {
                    let at = axis.map_or(0, |d| [j, i][d as usize]);
                    want[at] = want[at].max(f64::from(a(i * n as usize + j) as f32));
                }
            }
            assert_eq!(got, want, "{m}x{n} along {axis:?}");
        }
    }
}

#[test]
fn an_empty_reduction_is_the_identity() {
    let go = |comb| output(&reduce(F32, comb, Some(1)), vec![tensor(F32, &[2, 0], noise), out(F32, &[2])]);
    assert_eq!(go(Combiner::Add), [0.0; 2]);
    assert_eq!(go(Combiner::Mul), [1.0; 2]);
    assert_eq!(go(Combiner::Max), [f64::NEG_INFINITY; 2]);
    let all = reduce(I32, Combiner::And, None);
    assert_eq!(output(&all, vec![tensor(I32, &[0, 0], noise), out(I32, &[1])]), [-1.0]);
}

#[test]
fn nan_wins_a_maximum() {
    let p = reduce(F32, Combiner::Max, None);
    let got = output(&p, vec![tensor(F32, &[1, 3], |i| [1.0, f64::NAN, 2.0][i]), out(F32, &[1])]);
    assert!(got[0].is_nan());
}

#[test]
fn scans_go_both_ways_and_may_leave_out_the_element() {
    let build = |reverse, exclusive| {
        program(move |k| {
            let n = k.dim("N")?;
            let a = vector(k, "A", Mode::In, F32, n)?;
            let b = vector(k, "B", Mode::Out, F32, n)?;
            let z = ix(k, 0)?;
            let x = k.read("x", a, &[span(z, 8)])?;
            let inputs = std::iter::once(x).collect();
            let op = Op::Scan { comb: Combiner::Add, inputs, axis: 0, reverse, exclusive };
            let y = k.op(op, &["y"], Span::default())?[0];
            let y = k.get(y)?;
            k.write(b, &[span(z, 8)], y)
        })
    };
    let go = |r, e| output(&build(r, e), vec![tensor(F32, &[5], |i| 1.0 + i as f64), out(F32, &[5])]);
    assert_eq!(go(false, false), [1.0, 3.0, 6.0, 10.0, 15.0]);
    assert_eq!(go(false, true), [0.0, 1.0, 3.0, 6.0, 10.0]);
    assert_eq!(go(true, false), [15.0, 14.0, 12.0, 9.0, 5.0]);
    assert_eq!(go(true, true), [14.0, 12.0, 9.0, 5.0, 0.0]);
}

/// `combine name(a: (f32, i32), b: (f32, i32)) identity (-inf, last)`: the larger value, the smaller index on ties.
fn arg_max(p: &mut ProgramBuilder, name: &str, last: i32, keep_left: bool) -> Result<CombineId> {
    let mut f = p.pure();
    let av = f.param("a0", Elem::F32)?;
    let ai = f.param("a1", Elem::D(I32))?;
    let bv = f.param("b0", Elem::F32)?;
    let bi = f.param("b1", Elem::D(I32))?;
    let more = f.binary(BinOp::Gt, bv, av)?;
    let (same, less) = (f.binary(BinOp::Eq, bv, av)?, f.lt(bi, ai)?);
    let tie = f.binary(BinOp::LogicalAnd, same, less)?;
    let take = f.binary(BinOp::LogicalOr, more, tie)?;
    let v = f.select(take, bv, av)?;
    let i = if keep_left { ai } else { f.select(take, bi, ai)? };
    let func = f.finish(&[v, i])?;
    p.add_combine(Combine {
        name: name.into(),
        span: Span::default(),
        identity: vec![(Elem::F32, f32::NEG_INFINITY.to_bits() as u64), (Elem::D(I32), last as i64 as u64)],
        commutative: true,
        func,
    })
}

fn arg_max_kernel(last: i32, keep_left: bool) -> Program {
    program_with(|p| {
        let comb = Combiner::User(arg_max(p, "arg_max", last, keep_left)?);
        let mut k = p.kernel("argmax");
        let n = k.dim("N")?;
        let a = vector(&mut k, "A", Mode::In, F32, n)?;
        let one = ix(&mut k, 1)?;
        let b = Mem::Tensor(k.tensor("I", Mode::Out, I32, &[one])?);
        let z = ix(&mut k, 0)?;
        let x = k.read("x", a, &[span(z, 64)])?;
        let count = k.iota(64)?;
        let i = k.cast(I32, count)?;
        let op = Op::Reduce { comb, inputs: [x, i].into_iter().collect(), axis: None };
        let parts = k.op(op, &["v", "i"], Span::default())?;
        let i = k.get(parts[1])?;
        k.store(b, &[z], i)?;
        Ok(k)
    })
}

#[test]
fn a_user_combiner_folds_tuples() {
    let p = arg_max_kernel(i32::MAX, false);
    let data = |i: usize| [3.0, 9.0, -1.0, 9.0, 2.0][i % 5];
    assert_eq!(output(&p, vec![tensor(F32, &[33], data), out(I32, &[1])]), [1.0]);
    assert_eq!(output(&p, vec![tensor(F32, &[0], data), out(I32, &[1])]), [f64::from(i32::MAX)]);
}

#[test]
fn a_combiner_with_a_wrong_identity_or_law_is_refused() {
    let args = || vec![tensor(F32, &[33], |i| (i % 7) as f64), out(I32, &[1])];
    let f = faults(&arg_max_kernel(i32::MAX, true), args(), codes::BAD_COMBINER);
    assert!(f.message.contains("`arg_max`") && f.message.contains("identity"), "{f}");
    assert!(f.values.iter().any(|(_, v)| v.starts_with('(')));
    // an average is commutative but not associative, and has no identity; subtraction from the right has one
    let p = program_with(|p| {
        let mut c = p.pure();
        let (a, b) = (c.param("a", Elem::F32)?, c.param("b", Elem::F32)?);
        let zero = c.c_f32(0.0)?;
        let (a0, b0) = (c.eq(a, zero)?, c.eq(b, zero)?);
        let half = c.c_f32(0.5)?;
        let sum = c.add(a, b)?;
        let mean = c.mul(sum, half)?;
        let inner = c.select(b0, a, mean)?;
        let r = c.select(a0, b, inner)?;
        let func = c.finish(&[r])?;
        let identity = vec![(Elem::F32, 0)];
        let combine =
            Combine { name: "mean".into(), span: Span::default(), identity, commutative: false, func };
        let comb = Combiner::User(p.add_combine(combine)?);
        let mut k = p.kernel("k");
        let n = k.dim("N")?;
        let x = vector(&mut k, "A", Mode::In, F32, n)?;
        let one = ix(&mut k, 1)?;
        let y = Mem::Tensor(k.tensor("B", Mode::Out, F32, &[one])?);
        let z = ix(&mut k, 0)?;
        let t = k.read("t", x, &[span(z, 64)])?;
        let r = k.reduce("r", comb, t, None)?;
        k.store(y, &[z], r)?;
        Ok(k)
    });
    let f = faults(&p, vec![tensor(F32, &[5], |i| 1.0 + i as f64), out(F32, &[1])], codes::BAD_COMBINER);
    assert!(f.message.contains("not associative"), "{f}");
}

/// One block streams a row through a reducer, as tiles or element by element in `parallel`.
fn streamed(parallel: bool, read_before_end: bool) -> Program {
    program(move |k: &mut KernelBuilder| {
        let n = k.dim("N")?;
        let a = vector(k, "A", Mode::In, F32, n)?;
        let one = ix(k, 1)?;
        let b = Mem::Tensor(k.tensor("B", Mode::Out, F32, &[one])?);
        let r = k.reducer("s", Combiner::Add, &[Type::Scalar(Elem::F32)])?;
        let (z, t) = (ix(k, 0)?, ix(k, 8)?);
        if read_before_end {
            k.join(&["early"], r)?;
        }
        if parallel {
            let i = k.local("i", Type::INDEX, LocalKind::Loop, Span::default());
            let iv = k.get(i)?;
            k.begin_block();
            let v = k.element(a, &[iv])?;
            k.fold(r, &[], &[v])?;
            let body = k.end_block()?;
            let vars = std::iter::once(i).collect();
            k.stmt(
                StmtKind::Parallel { vars, extents: std::iter::once(n).collect(), body },
                Span::default(),
            )?;
        } else {
            let steps = k.ceildiv(n, t)?;
            k.for_("c", z, steps, |k, c| {
                let start = k.mul(c, t)?;
                let x = k.read("x", a, &[span(start, 8)])?;
                k.fold(r, &[], &[x])
            })?;
        }
        let s = k.join(&["s"], r)?[0];
        k.store(b, &[z], s)
    })
}

#[test]
fn reducers_fold_in_ascending_order() {
    for n in [0usize, 1, 33, 1000] {
        let want = (0..n).fold(0f32, |s, i| s + noise(i) as f32);
        for parallel in [false, true] {
            let got =
                output(&streamed(parallel, false), vec![tensor(F32, &[n as i64], noise), out(F32, &[1])]);
            assert_eq!(got, [f64::from(want)], "N = {n}, parallel: {parallel}");
        }
    }
}

#[test]
fn a_reducer_is_closed_by_its_first_read() {
    let f =
        faults(&streamed(false, true), vec![tensor(F32, &[9], noise), out(F32, &[1])], codes::REDUCER_JOINED);
    assert_eq!(f.also.len(), 1);
}
