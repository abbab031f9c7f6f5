//! Arguments against parameters: what binds, and what each mistake says.

use pantile_abi::*;

fn tensor(name: &str, mode: Mode, dims: Vec<IExpr>) -> TensorAbi {
    TensorAbi::new(name, mode, DType::F32, dims)
}

fn dim(slot: u32) -> IExpr {
    IExpr::Dim(slot)
}

/// `gemm(A: f32[M, K], B: f32[K, N], C: out f32[M, N])`, dims M K N.
fn gemm() -> KernelAbi {
    KernelAbi {
        name: "gemm".into(),
        symbol: "gemm".into(),
        params: vec![
            ParamAbi::Tensor(tensor("A", Mode::In, vec![dim(0), dim(1)])),
            ParamAbi::Tensor(tensor("B", Mode::In, vec![dim(1), dim(2)])),
            ParamAbi::Tensor(tensor("C", Mode::Out, vec![dim(0), dim(2)])),
        ],
        dims: vec!["M".into(), "K".into(), "N".into()],
        conditions: vec![],
        grid: vec![],
        threads: vec![],
        cpu: None,
    }
}

fn at(addr: usize, shape: &[usize]) -> ArgValue {
    let bytes = shape.iter().product::<usize>() * 4;
    let ptr = Ptr(std::ptr::without_provenance_mut(addr));
    ArgValue::Tensor(TensorArg::contiguous(DType::F32, shape, None, ptr, bytes))
}

fn args(a: &[usize], b: &[usize], c: &[usize]) -> Vec<ArgValue> {
    vec![at(0x10000, a), at(0x20000, b), at(0x30000, c)]
}

fn error(k: &KernelAbi, args: Vec<ArgValue>) -> BindError {
    bind(k.signature(), args).unwrap_err()
}

#[test]
fn dims_are_found() {
    for (m, k, n) in [(4, 5, 6), (0, 5, 6), (1, 1, 1), (33, 1, 1000), (7, 0, 7)] {
        let bound = bind(gemm().signature(), args(&[m, k], &[k, n], &[m, n])).unwrap();
        assert_eq!(bound.dims, [Some(m as i64), Some(k as i64), Some(n as i64)]);
    }
}

#[test]
fn disagreeing_shapes_name_both_places() {
    let e = error(&gemm(), args(&[4, 128], &[100, 6], &[4, 6]));
    assert_eq!(e.rule, BindRule::Shape);
    assert_eq!(e.message, "`B` has 100 rows (axis 0), but K is 128 from axis 1 of `A`");
    let e = error(&gemm(), args(&[4, 5], &[5, 6], &[4, 1]));
    assert_eq!(e.message, "`C` has 1 column (axis 1), but N is 6 from axis 1 of `B`");
}

#[test]
fn types_ranks_and_counts() {
    let e = error(&gemm(), args(&[4, 5], &[5, 6], &[24]));
    assert_eq!(e.message, "`C` has 2 axes, but 1 is given (shape [24])");
    let mut wrong = args(&[4, 5], &[5, 6], &[4, 6]);
    if let ArgValue::Tensor(t) = &mut wrong[1] {
        t.dtype = DType::F16;
    }
    assert_eq!(error(&gemm(), wrong).message, "`B` is f32, but f16 is given");
    let mut number = args(&[4, 5], &[5, 6], &[4, 6]);
    number[0] = ArgValue::Scalar(ScalarValue::Index(3));
    assert_eq!(error(&gemm(), number).message, "`A` is a tensor, but a number is given");
    assert_eq!(error(&gemm(), vec![]).message, "`gemm` takes 3 arguments, not 0");
}

#[test]
fn names() {
    let give = |names: &[&str]| {
        let all = args(&[4, 5], &[5, 6], &[4, 6]);
        let given = names.iter().map(|n| n.to_string()).zip(all).collect();
        bind_named(gemm().signature(), given)
    };
    assert!(give(&["A", "B", "C"]).is_ok());
    assert_eq!(give(&["A"]).unwrap_err().message, "`B`, `C` are missing");
    let unknown = give(&["A", "W", "C"]).unwrap_err();
    assert_eq!(unknown.message, "`gemm` has no parameter `W`");
    assert_eq!(unknown.help.unwrap(), "it is gemm(A: f32[M, K], B: f32[K, N], C: out f32[M, N])");
    assert_eq!(give(&["A", "A", "C"]).unwrap_err().message, "`A` is given twice");
}

#[test]
fn expression_dims_are_checked_not_solved() {
    let mut k = gemm();
    k.dims = vec!["K".into(), "G".into()];
    let groups = IExpr::bin(IOp::FloorDiv, dim(0), dim(1));
    k.params = vec![
        ParamAbi::Tensor(tensor("S", Mode::In, vec![groups.clone()])),
        ParamAbi::Tensor(tensor("X", Mode::In, vec![dim(0), dim(1)])),
    ];
    let call = |s: usize, x: &[usize]| bind(k.signature(), vec![at(0x10000, &[s]), at(0x20000, x)]);
    assert!(call(16, &[128, 8]).is_ok(), "a dim may be used before the tensor that binds it");
    let e = call(17, &[128, 8]).unwrap_err();
    assert_eq!(e.message, "`S` has 17 elements (axis 0), but K / G is 16 where K = 128, G = 8");
    let e = call(16, &[128, 0]).unwrap_err();
    assert_eq!(e.message, "axis 0 of `S` is K / G: it divides by zero");
    k.params.truncate(1);
    let e = bind(k.signature(), vec![at(0x10000, &[3])]).unwrap_err();
    assert_eq!(e.message, "axis 0 of `S` is K / G: no argument determines `K`");
}

#[test]
fn conditions_in_the_users_words() {
    let mut k = gemm();
    let multiple = IExpr::bin(IOp::Eq, IExpr::bin(IOp::Mod, dim(1), 32.into()), 0.into());
    k.conditions = vec![(multiple, "K % 32 == 0".into())];
    assert!(bind(k.signature(), args(&[4, 64], &[64, 6], &[4, 6])).is_ok());
    let e = error(&k, args(&[4, 40], &[40, 6], &[4, 6]));
    assert_eq!(
        (e.rule, e.message.as_str()),
        (BindRule::Condition, "`gemm` wants K % 32 == 0, but K is 40 from axis 1 of `A`")
    );
}

fn view(addr: usize, shape: &[usize], strides: &[isize], bytes: usize) -> ArgValue {
    ArgValue::Tensor(TensorArg {
        dtype: DType::F32,
        shape: shape.to_vec(),
        strides: strides.to_vec(),
        ptr: Ptr(std::ptr::without_provenance_mut(addr)),
        bytes,
    })
}

/// `copy(X: f32[N, K] strides (ld, 1) align 16, Y: out f32[N, K] strides (lo, 1))`.
fn strided() -> KernelAbi {
    let mut x = tensor("X", Mode::In, vec![dim(0), dim(1)]);
    x.strides = Some(vec![dim(2), 1.into()]);
    x.align = Some(16);
    let mut y = tensor("Y", Mode::Out, vec![dim(0), dim(1)]);
    y.strides = Some(vec![dim(3), 1.into()]);
    KernelAbi {
        params: vec![ParamAbi::Tensor(x), ParamAbi::Tensor(y)],
        dims: ["N", "K", "ld", "lo"].map(String::from).to_vec(),
        ..gemm()
    }
}

#[test]
fn named_strides_bind_and_fixed_ones_are_checked() {
    let k = strided();
    let y = || view(0x20000, &[3, 4], &[4, 1], 48);
    let bound = bind(k.signature(), vec![view(0x10000, &[3, 4], &[8, 1], 80), y()]).unwrap();
    assert_eq!(bound.dims, [Some(3), Some(4), Some(8), Some(4)]);
    let e = error(&k, vec![view(0x10000, &[3, 4], &[8, 2], 96), y()]);
    assert_eq!(e.message, "`X` has stride 2 on axis 1, but 1 is declared");
    let e = error(&k, vec![view(0x10000, &[3, 4], &[8, 1], 79), y()]);
    assert_eq!(
        (e.rule, e.message.as_str()),
        (BindRule::Size, "`X` needs 80 bytes for shape [3, 4] and strides [8, 1], but 79 bytes are there")
    );
    let e = error(&k, vec![view(0x10000, &[3, 4], &[-8, 1], 80), y()]);
    assert_eq!(e.message, "axis 0 of `X` runs backwards");
    let broadcast = vec![view(0x10000, &[3, 4], &[0, 1], 16), y()];
    assert!(bind(k.signature(), broadcast).is_ok(), "stride 0 is fine where a tensor is only read");
    let e = error(&k, vec![view(0x10000, &[3, 4], &[4, 1], 48), view(0x20000, &[3, 4], &[0, 1], 48)]);
    assert_eq!(e.rule, BindRule::Overlap);
    let e =
        error(&gemm(), vec![view(0x10000, &[3, 4], &[8, 1], 96), at(0x20000, &[4, 2]), at(0x30000, &[3, 2])]);
    assert_eq!(
        e.message,
        "`A` has stride 8 on axis 0, but it must be 4: it is declared row-major without gaps"
    );
}

#[test]
fn alignment() {
    let k = strided();
    let y = || view(0x20000, &[3, 4], &[4, 1], 48);
    let e = error(&k, vec![view(0x10004, &[3, 4], &[8, 1], 80), y()]);
    assert_eq!(e.message, "`X` starts at 0x10004, which is not a multiple of 16 bytes");
    let e = error(&k, vec![view(0x10000, &[3, 4], &[7, 1], 80), y()]);
    assert_eq!(e.message, "axis 0 of `X` steps by 28 bytes, which is not a multiple of align 16");
    assert!(
        bind(k.signature(), vec![view(0x10000, &[1, 4], &[7, 1], 80), view(0x20000, &[1, 4], &[4, 1], 48)])
            .is_ok()
    );
    let e = error(&k, vec![view(0x10000, &[3, 4], &[8, 1], 80), view(0x20001, &[3, 4], &[4, 1], 48)]);
    assert_eq!(e.message, "`Y` starts at 0x20001, which is not a multiple of 4 bytes");
}

#[test]
fn shared_memory_is_refused_only_if_written() {
    let k = gemm();
    let same = vec![at(0x10000, &[4, 4]), at(0x10000, &[4, 4]), at(0x30000, &[4, 4])];
    assert!(bind(k.signature(), same).is_ok());
    let e = error(&k, vec![at(0x10000, &[4, 4]), at(0x20000, &[4, 4]), at(0x20030, &[4, 4])]);
    assert_eq!(e.message, "`B` and `C` share memory, but `C` is written");
    let empty = vec![at(0x10000, &[0, 4]), at(0x20000, &[4, 4]), at(0x20000, &[0, 4])];
    assert!(bind(k.signature(), empty).is_ok());
}

#[test]
fn scalars() {
    let mut k = gemm();
    k.params = vec![
        ParamAbi::Scalar(ScalarAbi { name: "eps".into(), ty: ScalarType::Typed(DType::F32) }),
        ParamAbi::Scalar(ScalarAbi { name: "n".into(), ty: ScalarType::Index }),
        ParamAbi::Tensor(tensor("X", Mode::In, vec![IExpr::Scalar(1)])),
    ];
    let eps = ArgValue::Scalar(ScalarValue::Bits(DType::F32, 1e-5f32.to_bits().into()));
    let n = |v| ArgValue::Scalar(ScalarValue::Index(v));
    let bound = bind(k.signature(), vec![eps.clone(), n(3), at(0x10000, &[3])]).unwrap();
    assert_eq!(bound.scalars, [None, Some(3), None]);
    let e = error(&k, vec![eps, n(4), at(0x10000, &[3])]);
    assert_eq!(e.message, "`X` has 3 elements (axis 0), but n is 4");
    let e = error(&k, vec![n(1), n(3), at(0x10000, &[3])]);
    assert_eq!(e.message, "`eps` is f32, but index is given");
    let e = error(&k, vec![at(0x10000, &[3]), n(3), at(0x10000, &[3])]);
    assert_eq!(e.message, "`eps` is a number of type f32, but a tensor is given");
}

#[test]
fn packed_tensors_count_units() {
    let mut w = TensorAbi::new("W", Mode::In, DType::U4, vec![dim(0), dim(1)]);
    w.packed = Some(Packing { axis: 1, order: PackOrder::Linear });
    let k = KernelAbi { params: vec![ParamAbi::Tensor(w)], dims: vec!["N".into(), "K".into()], ..gemm() };
    let give = |shape: [usize; 2], bytes| {
        let packed = Some(Packing { axis: 1, order: PackOrder::Linear });
        let ptr = Ptr(std::ptr::without_provenance_mut(0x10001));
        bind(
            k.signature(),
            vec![ArgValue::Tensor(TensorArg::contiguous(DType::U4, &shape, packed, ptr, bytes))],
        )
    };
    assert_eq!(give([3, 10], 15).unwrap().dims, [Some(3), Some(10)]);
    assert_eq!(give([3, 10], 14).unwrap_err().rule, BindRule::Size);
    let odd = give([3, 9], 15).unwrap_err();
    assert_eq!(odd.message, "axis 1 of `W` has 9 elements, but 2 of them share a unit of storage");
}

#[test]
fn packing_orders_place_each_element_once() {
    for order in [PackOrder::Linear, PackOrder::Gptq, PackOrder::Awq] {
        let mut shifts: Vec<u32> = (0..order.per_unit()).map(|i| order.shift(i)).collect();
        shifts.sort_unstable();
        let all: Vec<u32> = (0..order.per_unit() as u32).map(|i| 4 * i).collect();
        assert_eq!(shifts, all);
    }
    assert_eq!((0..8).map(|i| PackOrder::Awq.shift(i) / 4).collect::<Vec<_>>(), [0, 4, 1, 5, 2, 6, 3, 7]);
}

#[test]
fn a_program_survives_json() {
    let program = Program::of_kernel(strided());
    let text = serde_json::to_string(&program).unwrap();
    assert_eq!(serde_json::from_str::<Program>(&text).unwrap(), program);
}
