//! Generics, params, launch conditions: how each is bound, and what is said when it is not.

mod elab_support;

use elab_support::*;
use pantile_abi::DType;
use pantile_ir::elab::{ArgInfo, Request, Setting};
use pantile_ir::print::print;

const K: &str =
    "kernel k<T: float, const D: int, const C: bool, E: fn = identity>(X: T[M, D], Y: out T[M, D], s: acc(T))
where D in [33, 64], M % 2 == 0, !C || M > D
{
    param BM = 16 in [8, 16, 32], U = 3 in 1..=9 step 2
    static_assert(U < 9, \"too many\")
    grid ceildiv(M, BM) as i
    Y[i*BM +: BM, :] = T(E(acc(T)(X[i*BM +: BM, :]) * s))
}
fn twice<T: float>(x: T) -> T { x + x }";

fn bound() -> Request {
    Request::new("k").with_type("T", DType::F16).with_const("D", 64).with_flag("C", false)
}

fn err(request: &Request) -> String {
    let mut found = match run(K, request) {
        Ok(e) => panic!("elaborates:\n{}", print(&e.program)),
        Err(lines) => lines,
    };
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

#[test]
fn types_constants_and_functions_are_bound() {
    let text = print(&program_of(K, &bound()));
    assert!(text.contains("X: f16[M, 64]") && text.contains("s: f32"), "{text}");
    assert!(text.contains(" where M % 2 == 0 {\n"), "{text}");
    let text = print(&program_of(K, &bound().with_type("T", DType::F64).with_fn("E", "twice")));
    assert!(text.contains("X: f64[M, 64]") && text.contains("s: f64"), "{text}");
    let text = print(&program_of(K, &bound().with_flag("C", true)));
    assert!(text.contains("M % 2 == 0, M > 64"), "{text}");
}

#[test]
fn arguments_tell_types_and_extents() {
    let args = |d| {
        let x = ArgInfo { name: "X".into(), dtype: Some(DType::BF16), shape: vec![10, d] };
        Request { args: Some(vec![x]), ..Request::new("k").with_flag("C", true) }
    };
    let text = print(&program_of(K, &args(33)));
    assert!(text.contains("X: bf16[M, 33]"), "{text}");
    assert!(err(&args(65)).contains("P0224 this kernel needs D in [33, 64] | D is 65"));
    let mut wrong = args(33);
    wrong.args.as_mut().unwrap()[0].shape.push(1);
    assert!(err(&wrong).contains("`X` has 2 axes, but the argument has 3"));
    let mut wrong = args(33);
    wrong.args.as_mut().unwrap()[0].name = "x".into();
    assert!(err(&wrong).contains("did you mean `X`?"));
    let mut wrong = args(33);
    wrong.args.as_mut().unwrap()[0].dtype = Some(DType::I8);
    assert!(err(&wrong).contains("P0215 `T` of `k` is a float type"));
}

#[test]
fn what_nothing_binds_is_named_with_the_way_to_give_it() {
    let e = err(&Request::new("k").with_const("D", 64).with_flag("C", false));
    assert!(e.starts_with("1:10 P0214 `T` of `k` is not bound") && e.contains("--param T=f16"), "{e}");
    let e = err(&Request::new("k").with_type("T", DType::F16).with_const("D", 64));
    assert!(e.contains("`C` of `k`") && e.contains("--param C=true"), "{e}");
    assert!(err(&bound().with_type("T", DType::I32)).contains("P0215"));
    let e = err(&bound().with_param("BMM", 3));
    assert!(e.contains("P0222 nothing takes the value given for `BMM` | did you mean `BM`?"), "{e}");
}

#[test]
fn everything_may_be_given_as_a_param() {
    let mut r = Request::new("k");
    for (n, v) in [("T", "f32"), ("D", "33"), ("C", "true"), ("E", "twice"), ("k.BM", "32"), ("U", "1")] {
        r.params.insert(n.into(), Setting::parse(v));
    }
    let e = run(K, &r).unwrap();
    let values: Vec<String> = e.params.iter().map(|p| format!("{}.{}={}", p.item, p.name, p.value)).collect();
    assert_eq!(values, ["k.BM=32", "k.U=1"]);
    assert_eq!(e.params[1].choices.len(), 5);
}

#[test]
fn params_stay_within_their_choices() {
    assert!(err(&bound().with_param("BM", 24)).contains("P0221 `BM` cannot be 24: it is one of 8, 16, 32"));
    assert!(err(&bound().with_param("U", 4)).contains("`U` cannot be 4: it is one of 1..=9 step 2"));
    let mut r = bound();
    r.params.insert("U".into(), Setting::Bool(true));
    assert!(err(&r).contains("`U` is an integer, not a bool"));
    assert!(err(&bound().with_param("U", 9)).contains("P0223 too many"));
}

#[test]
fn defaults_by_target_and_filters() {
    let text = "kernel k(X: f32[N], Y: out f32[N]) {
        param A = 4 for { sm_90a: 8, sm_80: 2 }, B = 2 where A*B <= 16
        grid N as i
        Y[i] = X[i] * f32(A)
    }";
    let value = |target: &str, r: &Request| {
        run_on(text, r, target).map(|e| e.params[0].value.clone()).map_err(|l| l.join("\n"))
    };
    let plain = Request::new("k");
    assert_eq!(value("reference", &plain), Ok(Setting::Int(4)));
    assert_eq!(value("sm_80", &plain), Ok(Setting::Int(2)));
    assert_eq!(value("sm_90a", &plain), Ok(Setting::Int(8)));
    assert_eq!(value("sm_90a", &plain.clone().with_param("A", 5)), Ok(Setting::Int(5)));
    let e = value("sm_90a", &plain.with_param("B", 3)).unwrap_err();
    assert!(e.contains("P0221 these params do not fit together: A*B <= 16 | A is 8, B is 3"), "{e}");
}

#[test]
fn launches_bind_what_they_hand_over() {
    let text = "kernel part<T: float, const W: int, E: fn = identity>(X: T[N, W], Y: out T[N]) {
        param B = 8 in [8, 16]
        grid ceildiv(N, B) as i
        Y[i*B +: B] = E(sum(X[i*B +: B, :], axis = 1))
    }
    fn twice<T: float>(x: T) -> T { x + x }
    op both(X: f32[N, 40], Y: out f32[N], Z: out f32[N]) {
        launch part(X, Y)
        launch part<E = twice>(X, Z) { B = 16 }
        launch part(X, Y)
    }";
    let p = program(text, "both");
    assert_eq!(p.kernels.len(), 2, "the same bindings make one kernel");
    let found = run(&text.replace("{ B = 16 }", "{ C = 16 }"), &Request::new("both")).unwrap_err();
    assert!(found[0].contains("P0222 `part` has no param `C`"), "{found:#?}");
    let found = run(&text.replace("X: f32[N, 40]", "X: f32[N, K]"), &Request::new("both")).unwrap_err();
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(
        found[0].contains("`W` of `part` must be known at compile time, but `K` is a dim bound at launch"),
        "{found:#?}"
    );
    let found =
        run(&text.replace("launch part(X, Y)\n", "launch part(X)\n"), &Request::new("both")).unwrap_err();
    assert!(found[0].contains("P0295 `part` takes 2 arguments, not 1"), "{found:#?}");
    let found = run(&text.replace("Y: out f32[N], Z", "Y: f32[N], Z"), &Request::new("both")).unwrap_err();
    assert!(found[0].contains("`Y` is written by the kernel, but the op only reads `Y`"), "{found:#?}");
    let found = run(&text.replace("Z: out f32[N]", "Z: out f16[N]"), &Request::new("both")).unwrap_err();
    assert!(found[0].contains("`Y` holds f32, but `Z` holds f16"), "{found:#?}");
    let found = run(&text.replace("Z: out f32[N])", "Z: out f32[7, N])"), &Request::new("both")).unwrap_err();
    assert!(found[0].contains("`Y` has 1 axes, but `Z` has 2"), "{found:#?}");
}

#[test]
fn extents_that_are_known_must_agree() {
    let text = "kernel dot(A: f32[N], B: f32[N], Y: out f32[N]) { grid N as i\nY[i] = A[i] * B[i] }
    op o(A: f32[7], B: f32[8], Y: out f32[7]) { launch dot(A, B, Y) }";
    let found = run(text, &Request::new("o")).unwrap_err();
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("an extent of `B` is 8, but the kernel needs `N`, which is 7"), "{found:#?}");
}

#[test]
fn functions_bind_generics_from_their_arguments() {
    let text = |call: &str| {
        format!(
            "fn f<T: float, const R: int>(x: tile T[R, C], y: T) -> tile T[R] {{ rowsum(x * y) + T(R * C) }}
            kernel k(X: f16[8, 5], Y: out f16[8], s: f16) {{ grid 1 as z\nlet x = X[:, :]\nY[:] = {call} }}"
        )
    };
    let printed = print(&program(&text("f(x, s)"), "k"));
    assert!(printed.contains("40.0"), "{printed}");
    program(&text("f(x, 2)"), "k");
    program(&text("f<f16>(x, y = s)"), "k");
    let e = |call: &str| run(&text(call), &Request::new("k")).unwrap_err();
    let found = e("f(x, f32(s))");
    assert!(
        found.len() == 1 && found[0].contains("P0213 `y` of `f` is f16, but this is f32 | write `f16(...)`"),
        "{found:#?}"
    );
    let found = e("f(x)");
    assert!(found.len() == 1 && found[0].contains("P0211 `f` takes 2 arguments, not 1"), "{found:#?}");
    let found = e("f(x, s, s)");
    assert!(found.len() == 1 && found[0].contains("P0211"), "{found:#?}");
    let found = e("f(x, z = s)");
    assert!(found.len() == 1 && found[0].contains("P0212 `f` has no parameter `z`"), "{found:#?}");
    let found = e("f<i32>(x, s)");
    assert!(found.len() == 1 && found[0].contains("P0215 `T` of `f` is a float type"), "{found:#?}");
    let found = e("f(rowsum(x), s)");
    assert!(found.len() == 1, "{found:#?}");
}

#[test]
fn a_function_may_not_lead_back_to_itself() {
    let text = "fn f(x: f32) -> f32 { g(x) }\nfn g(x: f32) -> f32 { f(x) }
    kernel k(Y: out f32[N]) { grid N as i\nY[i] = f(1.0) }";
    let found = run(text, &Request::new("k")).unwrap_err();
    assert!(found.len() == 1 && found[0].contains("P0216 `f` calls itself"), "{found:#?}");
    // a function handed to itself as a value is no recursion
    let text = "fn app<E: fn>(x: f32) -> f32 { E(x) }\nfn one(x: f32) -> f32 { x + 1 }
    kernel k(Y: out f32[N]) { grid N as i\nY[i] = app<one>(app<E = exp>(2.0)) }";
    let printed = print(&program(text, "k"));
    assert!(printed.contains("exp(f32(2.0))"), "{printed}");
}

#[test]
fn widening_turns_every_float_into_f64() {
    let text = "use \"std\"::{welford}
    kernel k<T: float>(X: T[M, 64], I: i32[M], Y: out T[M], s: f32) {
        grid M as i
        var w: reducer(welford) (f32, f32, f32)
        w op= (1.0, f32(X[i, :]), 0.0)
        let (n, mean, m2) = w
        Y[i] = T(mean * s + f16(m2) + n) + T(I[i])
    }";
    let r = Request::new("k").with_type("T", DType::F16).widen();
    let printed = print(&program_of(text, &r));
    for narrow in ["f32", "f16"] {
        assert!(!printed.contains(narrow), "{printed}");
    }
    assert!(printed.contains("I: i32[M]"), "{printed}");
}

#[test]
fn what_a_function_gives_is_wrong_at_its_call() {
    let text = "fn half(x: f32) -> f32 {\n    x * 0.5\n}\nkernel k(A: f32[4], Y: out f16[4]) {\n    grid 1 as i\n    \
                Y[0 +: 4] = half(A[0 +: 4])\n}\n";
    let found = run(text, &Request::new("k")).expect_err("another type is stored");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("6:5 "), "{found:#?}");
}

#[test]
fn a_known_condition_decides_neither_type_nor_shape() {
    let kernel = |body: &str| {
        format!(
            "kernel k(A: f32[4], Y: out f32[4]) {{\n    grid 1 as i\n    const OFF = false\n    {body}\n}}\n"
        )
    };
    // the literal takes the type of the branch that is left out: 1 / 3 is no integer division
    let half = print(&program_of(
        &kernel("let s = if OFF { A[0] } else { 1 }\n    Y[0 +: 4] = full f32[4](s / 3)"),
        &Request::new("k"),
    ));
    assert!(half.contains("f32(1") || half.contains("1.0"), "{half}");
    // a scalar side becomes a tile
    let tile = print(&program_of(
        &kernel("let s = where(OFF, A[0 +: 4], 1)\n    Y[0 +: 4] = s"),
        &Request::new("k"),
    ));
    assert!(tile.contains("where("), "{tile}");
    let both = print(&program_of(
        &kernel(
            "let t = A[:]\n    let (c, d) = if OFF { (t, A[1]) } else { (1, 2) }\n    \
             Y[:] = c / 2 + d / 4",
        ),
        &Request::new("k"),
    ));
    assert!(both.contains("let c = full f32[4](1.0)") && both.contains("let d: f32 = 2.0"), "{both}");
    // `if const` chooses text
    let chosen = print(&program_of(
        &kernel("let s = if const OFF { A[0] } else { 1 }\n    Y[0 +: 4] = full f32[4](f32(s / 3))"),
        &Request::new("k"),
    ));
    assert!(chosen.contains("let s: index = 1"), "{chosen}");
}

/// Texts whose size doubles with every line end at a limit that is named, and are told of once.
#[test]
fn what_grows_without_end_is_stopped() {
    let chain: String =
        (1..60).map(|n| format!("fn g{n}(x: f32) -> f32 {{ g{0}(x) + g{0}(x) }}\n", n - 1)).collect();
    let calls = format!(
        "{chain}fn g0(x: f32) -> f32 {{ x }}\nkernel k(X: f32[N], Y: out f32[N]) {{\n    grid N as b\n    Y[b] = g59(X[b])\n}}\n"
    );
    let loops = "kernel k(X: f32[N], Y: out f32[N]) {
    grid N as b
    for const i in 0..4000 { for const j in 0..4000 { for const k in 0..4000 { print(\"x\") } } }
    Y[b] = X[b]
}
";
    for text in [calls.as_str(), loops] {
        let e = run(text, &Request::new("k")).err().unwrap();
        assert!(e.len() == 1 && e[0].contains("P0243"), "{e:#?}");
    }
}
