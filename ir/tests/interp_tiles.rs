//! Tiles: regions and their valid boxes, element-wise operations, updates, re-indexing.

mod interp_common;

use interp_common::*;
use pantile_ir::builder::{Exprs, KernelBuilder, Result};
use pantile_ir::codes;
use pantile_ir::program::*;
use pantile_ir::span::Span;

const SIZES: [i64; 5] = [1, 31, 33, 1000, 0];

/// `B[i*32 +: 32] = f(A[i*32 +: 32])`
fn map(f: impl FnOnce(&mut KernelBuilder, ExprId) -> Result<ExprId>) -> Program {
    program(|k| {
        let n = k.dim("N")?;
        let a = vector(k, "A", Mode::In, F32, n)?;
        let b = vector(k, "B", Mode::Out, F32, n)?;
        let tile = k.c_index(32)?;
        let blocks = k.ceildiv(n, tile)?;
        let i = k.grid(&[(blocks, "i")])?[0];
        let start = k.mul(i, tile)?;
        let x = k.read("x", a, &[span(start, 32)])?;
        let y = f(k, x)?;
        k.write(b, &[span(start, 32)], y)
    })
}

#[test]
fn a_map_covers_every_element_of_odd_shapes() {
    let p = map(|k, x| {
        let two = k.c_f32(2.0)?;
        let y = k.mul(x, two)?;
        k.add(y, x)
    });
    for n in SIZES {
        let got = output(&p, vec![tensor(F32, &[n], |i| i as f64), out(F32, &[n])]);
        let want: Vec<f64> = (0..n).map(|i| 3.0 * i as f64).collect();
        assert_eq!(got, want, "N = {n}");
    }
}

#[test]
fn an_empty_grid_runs_nothing_and_succeeds() {
    let p = map(|_, x| Ok(x));
    let mut args = vec![tensor(F32, &[0], noise), out(F32, &[0])];
    assert_eq!(run(&p, &mut args).unwrap().steps, 1, "only the launch itself");
}

#[test]
fn broadcast_transpose_and_select() {
    // B = where(A > A.T, A, row[_, :]), a 5×5 matrix in a tile of 8×8
    let p = program(|k| {
        let n = k.dim("N")?;
        let a = Mem::Tensor(k.tensor("A", Mode::In, F32, &[n, n])?);
        let r = vector(k, "R", Mode::In, F32, n)?;
        let b = Mem::Tensor(k.tensor("B", Mode::Out, F32, &[n, n])?);
        let z = ix(k, 0)?;
        let x = k.read("x", a, &[span(z, 8), span(z, 8)])?;
        let row = k.read("row", r, &[span(z, 8)])?;
        let t = k.transpose(x)?;
        let c = k.binary(BinOp::Gt, x, t)?;
        let wide = k.insert_axis(row, 0)?;
        let y = k.select(c, x, wide)?;
        k.write(b, &[span(z, 8), span(z, 8)], y)
    });
    let got = output(
        &p,
        vec![tensor(F32, &[5, 5], noise), tensor(F32, &[5], |i| 10.0 + i as f64), out(F32, &[5, 5])],
    );
    for i in 0..5 {
        for j in 0..5 {
            let (x, t) = (noise(i * 5 + j), noise(j * 5 + i));
            let want = if x > t { x as f32 as f64 } else { 10.0 + j as f64 };
            assert_eq!(got[i * 5 + j], want);
        }
    }
}

#[test]
fn pad_limit_and_clip_low() {
    // shifted by one to the left, at most m elements, zeros elsewhere
    let p = program(|k| {
        let n = k.dim("N")?;
        let m = k.scalar("m", Elem::Index)?;
        let a = vector(k, "A", Mode::In, F32, n)?;
        let b = Mem::Tensor({
            let eight = ix(k, 8)?;
            k.tensor("B", Mode::Out, F32, &[eight])?
        });
        let (low, z, zero) = (ix(k, -1)?, ix(k, 0)?, k.c_f32(-5.0)?);
        let axis = RegionAxis::Span { start: low, len: 8, limit: Some(m), clip_low: true };
        let x = k.read_pad("x", a, &[axis], zero)?;
        k.write(b, &[span(z, 8)], x)
    });
    let go = |n: i64, m: i64| {
        let args = vec![scalar(m), tensor(F32, &[n], |i| i as f64), out(F32, &[8])];
        output(&p, args)
    };
    assert_eq!(go(3, 8), [-5.0, 0.0, 1.0, 2.0, -5.0, -5.0, -5.0, -5.0]);
    assert_eq!(go(20, 3), [-5.0, 0.0, 1.0, -5.0, -5.0, -5.0, -5.0, -5.0]);
    assert_eq!(go(20, -4), [-5.0; 8]);
}

#[test]
fn a_negative_start_must_be_written() {
    let build = |clip_low: bool| {
        program(move |k| {
            let n = k.dim("N")?;
            let a = vector(k, "A", Mode::In, F32, n)?;
            let b = vector(k, "B", Mode::Out, F32, n)?;
            let (low, z) = (ix(k, -2)?, ix(k, 0)?);
            let zero = k.c_f32(0.0)?;
            let axis = RegionAxis::Span { start: low, len: 4, limit: None, clip_low };
            let x = k.read_pad("x", a, &[axis], zero)?;
            k.write(b, &[span(z, 4)], x)
        })
    };
    let args = || vec![tensor(F32, &[4], |i| 1.0 + i as f64), out(F32, &[4])];
    let f = faults(&build(false), args(), codes::NEGATIVE_START);
    assert!(f.message.contains("`A` starts at -2"), "{f}");
    assert_eq!(output(&build(true), args()), [0.0, 0.0, 1.0, 2.0]);
}

#[test]
fn rows_are_gathered_by_a_list() {
    let build = || {
        program(|k| {
            let (n, m) = (k.dim("N")?, k.dim("M")?);
            let w = ix(k, 3)?;
            let a = Mem::Tensor(k.tensor("A", Mode::In, F32, &[n, w])?);
            let l = Mem::Tensor(k.tensor("L", Mode::In, I32, &[m])?);
            let b = Mem::Tensor(k.tensor("B", Mode::Out, F32, &[m, w])?);
            let z = ix(k, 0)?;
            let list = k.read("list", l, &[span(z, 4)])?;
            let x = k.read("x", a, &[RegionAxis::Gather { index: list, len: 4 }, span(z, 3)])?;
            k.write(b, &[span(z, 4), span(z, 3)], x)
        })
    };
    let list = |v: &'static [i64]| tensor(I32, &[v.len() as i64], move |i| v[i] as f64);
    let a = || tensor(F32, &[5, 3], |i| i as f64);
    let got = output(&build(), vec![a(), list(&[4, 0, 4]), out(F32, &[3, 3])]);
    assert_eq!(got, [12.0, 13.0, 14.0, 0.0, 1.0, 2.0, 12.0, 13.0, 14.0]);
    let f = faults(&build(), vec![a(), list(&[4, 5, 0]), out(F32, &[3, 3])], codes::OUT_OF_BOUNDS);
    assert!(f.message.contains("the gathered index 5 is outside axis 0 of `A`"), "{f}");
    assert_eq!(f.values, [("its place in the list".to_string(), "1".to_string())]);
}

#[test]
fn a_scatter_names_each_row_once() {
    let p = program(|k| {
        let n = k.dim("N")?;
        let l = Mem::Tensor(k.tensor("L", Mode::In, I32, &[n])?);
        let b = vector(k, "B", Mode::Out, F32, n)?;
        let z = ix(k, 0)?;
        let list = k.read("list", l, &[span(z, 4)])?;
        let one = k.c_f32(1.0)?;
        k.write(b, &[RegionAxis::Gather { index: list, len: 4 }], one)
    });
    let list = |v: [i64; 3]| tensor(I32, &[3], move |i| v[i] as f64);
    assert_eq!(output(&p, vec![list([2, 0, 1]), out(F32, &[3])]), [1.0; 3]);
    let f = faults(&p, vec![list([2, 0, 2]), out(F32, &[3])], codes::RACE_THREADS);
    assert_eq!(f.index, Some(vec![2]));
}

#[test]
fn an_update_keeps_the_box_and_an_assignment_takes_it() {
    // x is full; y is valid on 0..N only
    let build = |assign: bool| {
        program(move |k| {
            let n = k.dim("N")?;
            let a = vector(k, "A", Mode::In, F32, n)?;
            let b = Mem::Tensor({
                let eight = ix(k, 8)?;
                k.tensor("B", Mode::Out, F32, &[eight])?
            });
            let z = ix(k, 0)?;
            let x = k.zeros("x", F32, &[8])?;
            let y = k.read("y", a, &[span(z, 8)])?;
            if assign {
                k.set(x, y)?
            } else {
                k.update(x, Update::Add, y)?
            }
            let v = k.get(x)?;
            k.write(b, &[span(z, 8)], v)
        })
    };
    let args = || vec![tensor(F32, &[3], |i| 1.0 + i as f64), out(F32, &[8])];
    assert_eq!(output(&build(false), args()), [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let f = faults(&build(true), args(), codes::NOT_COVERED);
    assert_eq!((f.tensor.as_deref(), f.index), (Some("B"), Some(vec![3])));
    assert_eq!(f.values[0].1, "5 of 8");
}

#[test]
fn an_invalid_element_cannot_be_read_by_index() {
    let p = program(|k| {
        let n = k.dim("N")?;
        let i = k.scalar("i", Elem::Index)?;
        let a = vector(k, "A", Mode::In, F32, n)?;
        let b = Mem::Tensor({
            let one = ix(k, 1)?;
            k.tensor("B", Mode::Out, F32, &[one])?
        });
        let z = ix(k, 0)?;
        let x = k.read("x", a, &[span(z, 8)])?;
        let v = k.expr(Expr::Pick { tile: x, index: [i].into_iter().collect() }, Span::default())?;
        k.store(b, &[z], v)
    });
    let go = |i: i64| vec![scalar(i), tensor(F32, &[3], |i| i as f64), out(F32, &[1])];
    assert_eq!(output(&p, go(2)), [2.0]);
    faults(&p, go(3), codes::INVALID_ELEMENT);
    faults(&p, go(8), codes::OUT_OF_BOUNDS);
}

#[test]
fn a_reshape_needs_a_full_tile() {
    let p = program(|k| {
        let n = k.dim("N")?;
        let a = vector(k, "A", Mode::In, F32, n)?;
        let (two, three) = (ix(k, 2)?, ix(k, 3)?);
        let b = Mem::Tensor(k.tensor("B", Mode::Out, F32, &[three, two])?);
        let z = ix(k, 0)?;
        let x = k.read("x", a, &[span(z, 6)])?;
        let shape: Shape = [2, 3].into_iter().collect();
        let y = k.expr(Expr::Reshape { value: x, shape }, Span::default())?;
        let t = k.transpose(y)?;
        k.write(b, &[span(z, 3), span(z, 2)], t)
    });
    let got = output(&p, vec![tensor(F32, &[6], |i| i as f64), out(F32, &[3, 2])]);
    assert_eq!(got, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let f = faults(&p, vec![tensor(F32, &[5], noise), out(F32, &[3, 2])], codes::PARTIAL_TILE);
    assert_eq!(f.values[0].1, "[0..5]");
}

#[test]
fn a_slice_of_a_tile_keeps_its_valid_part() {
    let build = |start: i64| {
        program(move |k| {
            let n = k.dim("N")?;
            let m = k.scalar("m", Elem::Index)?;
            let a = vector(k, "A", Mode::In, F32, n)?;
            let b = Mem::Tensor({
                let four = ix(k, 4)?;
                k.tensor("B", Mode::InOut, F32, &[four])?
            });
            let z = ix(k, 0)?;
            let s = ix(k, start)?;
            let s = k.add(s, m)?;
            let x = k.read("x", a, &[span(z, 8)])?;
            let axes = [SliceAxis::Span { start: s, len: 4 }].into_iter().collect();
            let y = k.expr(Expr::Slice { value: x, axes }, Span::default())?;
            k.write(b, &[span(z, 4)], y)
        })
    };
    let go = |n: i64| vec![scalar(0), tensor(F32, &[n], |i| i as f64), tensor(F32, &[4], |_| -1.0)];
    assert_eq!(output(&build(3), go(5)), [3.0, 4.0, -1.0, -1.0]);
    assert_eq!(output(&build(4), go(3)), [-1.0; 4]);
    faults(&build(5), go(8), codes::OUT_OF_BOUNDS);
}

#[test]
fn strided_tensors_are_read_by_their_strides() {
    let p = program(|k| {
        let (n, ld) = (k.dim("N")?, k.add_dim(Dim { name: "ld".into(), stride: true }, Span::default()));
        let ld = k.expr(Expr::Dim(ld), Span::default())?;
        let one = ix(k, 1)?;
        let two = ix(k, 2)?;
        let t = Tensor {
            mode: Mode::In,
            elem: F32,
            dims: [two, n].into_iter().collect(),
            strides: Some([one, ld].into_iter().collect()),
            align: None,
            base_align: None,
            packed: None,
            prepacked: None,
        };
        let a = Mem::Tensor(k.add_arg(Arg { name: "A".into(), kind: ArgKind::Tensor(t) }, Span::default())?);
        let b = Mem::Tensor(k.tensor("B", Mode::Out, F32, &[two, n])?);
        let z = ix(k, 0)?;
        let x = k.read("x", a, &[span(z, 2), span(z, 4)])?;
        k.write(b, &[span(z, 2), span(z, 4)], x)
    });
    let mut a = pantile_ir::interp::Tensor::from_f64(F32, &[9], &(0..9).map(f64::from).collect::<Vec<_>>());
    (a.shape, a.strides) = (vec![2, 3], vec![1, 3]);
    assert_eq!(output(&p, vec![a.clone().into(), out(F32, &[2, 3])]), [0.0, 3.0, 6.0, 1.0, 4.0, 7.0]);
    a.strides = vec![2, 3];
    faults(&p, vec![a.into(), out(F32, &[2, 3])], codes::BIND_STRIDE);
}
