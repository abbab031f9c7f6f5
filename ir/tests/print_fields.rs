//! Nothing that a program can say is lost in its text: every field, alone and with the others, and every variant.

mod elab_support;
mod print_support;

use elab_support::*;
use pantile_ir::DType;
use pantile_ir::builder::{Exprs, KernelBuilder, ProgramBuilder, Result};
use pantile_ir::layout;
use pantile_ir::layout::Shared;
use pantile_ir::program::plan::{Entry, Key, Plan, Value};
use pantile_ir::program::*;
use pantile_ir::span::Span;
use print_support::fields;
use proptest::prelude::*;
use std::collections::BTreeSet;

const NOWHERE: Span =
    Span { file: pantile_ir::span::FileId(0), start: 0, end: 0, at: pantile_ir::span::CallId(0) };

/// What may be said or left out, one bit each.
struct Choice(u64);

impl Choice {
    fn some<T>(&self, bit: u32, value: T) -> Option<T> {
        self.on(bit).then_some(value)
    }

    fn on(&self, bit: u32) -> bool {
        assert!(bit < BITS);
        self.0 >> bit & 1 == 1
    }
}

const BITS: u32 = 49;

fn memory(text: &str, shape: &[u64]) -> Shared {
    layout::tile_text(text, shape, 4).expect("a layout")
}

fn registers(text: &str, shape: &[u64]) -> Shared {
    Shared::plain(layout::fragment_text(text, shape).expect("a layout"), 1)
}

fn parameters(k: &mut KernelBuilder, c: &Choice) -> Result<(Mem, Mem)> {
    let (m, n) = (k.dim("M")?, k.dim("N")?);
    let lda = k.add_dim(Dim { name: "lda".into(), stride: true }, NOWHERE);
    let lda = k.expr(Expr::Dim(lda), NOWHERE)?;
    let one = k.c_index(1)?;
    let tensor = |mode, elem, dims: &[ExprId]| Tensor {
        mode,
        elem,
        dims: dims.into(),
        strides: None,
        align: None,
        base_align: None,
        packed: None,
        prepacked: None,
    };
    let a = Tensor {
        strides: Some([lda, one][..].into()),
        align: c.some(0, 16),
        base_align: c.some(1, 32),
        ..tensor(Mode::In, DType::F32, &[m, n])
    };
    let order = [PackOrder::Linear, PackOrder::Gptq, PackOrder::Awq][c.0 as usize % 3];
    let w = Tensor {
        packed: Some(Packing { axis: u8::from(c.on(1)), order }),
        prepacked: c.some(2, if c.on(3) { Operand::A } else { Operand::B }),
        ..tensor(Mode::In, DType::U4, &[m, n])
    };
    let o = tensor(if c.on(4) { Mode::InOut } else { Mode::Out }, DType::F32, &[m, n]);
    let mut ids = Vec::new();
    for (name, t) in [("A", a), ("W", w), ("O", o)] {
        ids.push(k.add_arg(Arg { name: name.into(), kind: ArgKind::Tensor(t) }, NOWHERE)?);
    }
    k.scalar("s", DType::F64)?;
    if c.on(5) {
        let zero = k.c_index(0)?;
        let cond = k.lt(zero, m)?;
        k.add_where(cond, "0 < M", NOWHERE)?;
    }
    let i = k.set_grid(&[(m, "i")], NOWHERE)?[0];
    if c.on(6) {
        let i = k.get(i)?;
        k.set_cost(i, NOWHERE)?;
    }
    k.set_threads(&[(4, "t"), (32, "lane")], c.on(7), NOWHERE);
    Ok((Mem::Tensor(ids[0]), Mem::Tensor(ids[2])))
}

fn machines(k: &mut KernelBuilder, c: &Choice) -> Result<(TeamId, RingId)> {
    let load = k.add_team(
        TeamDecl { name: "load".into(), groups: 1, threads: None, elected: c.on(8), regs: c.some(9, 40) },
        NOWHERE,
    );
    let math = k.add_team(
        TeamDecl { name: "math".into(), groups: 2, threads: c.some(10, 128), elected: false, regs: None },
        NOWHERE,
    );
    let engine = [Engine::Copy, Engine::Matrix, Engine::Store][c.0 as usize % 3];
    let queue = Queue {
        name: "q".into(),
        team: load,
        per_group: c.on(11),
        engine,
        max_keep: c.some(12, 7),
        per_thread_one: c.on(13),
        read_completion: c.on(14),
    };
    let queue = k.add_queue(queue, NOWHERE)?;
    let swizzled = memory("xor<3, 4, 3>", &[64, 32]);
    let fields = vec![
        RingField {
            name: "a".into(),
            elem: Elem::F32,
            shape: [64, 32][..].into(),
            layout: c.some(15, swizzled),
            align: c.some(16, 1024),
        },
        RingField { name: "n".into(), elem: Elem::F32, shape: Shape::new(), layout: None, align: None },
    ];
    let fill = [Fill::Counted, Fill::Generic, Fill::Fifo(queue)][c.0 as usize / 3 % 3];
    let ring = Ring { name: "r".into(), slots: 3, producer: load, consumer: math, fields, fill };
    let ring = k.add_ring(ring, NOWHERE)?;
    k.add_turn(Turn { name: "pp".into(), team: math }, NOWHERE)?;
    Ok((math, ring))
}

fn plan(c: &Choice) -> Plan {
    let name = |n: &str| Value::Name(n.into());
    let call = vec![
        (Some("loop".to_owned()), name("ko")),
        (None, Value::Int(-3)),
        (Some("over".to_owned()), Value::List(vec![Value::Bool(true), Value::Str("a \"b\"\n".into())])),
    ];
    let values = [
        Value::Int(i64::MIN),
        Value::Int(i64::MAX),
        Value::Bool(false),
        name("rows"),
        Value::Str("m: 8@reg".into()),
        Value::List(Vec::new()),
        Value::Call("splitk".into(), call),
    ];
    let entries = Key::ALL.iter().enumerate().filter(|(i, _)| c.on(17 + *i as u32)).map(|(i, &key)| Entry {
        key,
        subject: c.some(33, "c".to_owned()),
        value: values[i % values.len()].clone(),
        by_hand: c.on(34),
        refused: vec![("mma".into(), "too wide".into())],
        span: NOWHERE,
    });
    Plan { entries: entries.collect() }
}

fn buffers(k: &mut KernelBuilder, c: &Choice, math: TeamId) -> Result<()> {
    let rows = memory("d0: 8@mem*64; d1: 4@mem*8", &[8, 4]);
    let regs = registers("d0: 8@thr; d1: 4@reg", &[8, 4]);
    for (i, home) in [Home::Shared, Home::Fragment, Home::Thread, Home::Scratch].into_iter().enumerate() {
        let fragment = home == Home::Fragment;
        let buffer = Buffer {
            name: format!("m{i}"),
            home,
            elem: DType::F32,
            shape: [8, 4][..].into(),
            align: c.some(35, 64),
            layout: c.some(36, if fragment { regs.clone() } else { rows.clone() }),
            team: c.some(37, math),
            partial: c
                .some(38, Partial { comb: Combiner::Max, over: Spread::ALL[c.0 as usize % 3] })
                .filter(|_| fragment),
        };
        let buffer = k.add_buffer(buffer, NOWHERE)?;
        k.stmt(StmtKind::Buffer { buffer }, NOWHERE)?;
    }
    Ok(())
}

fn values(k: &mut KernelBuilder, c: &Choice, a: Mem, math: TeamId, ring: RingId) -> Result<()> {
    let homes = [
        Home::Open,
        Home::Shared,
        Home::Fragment,
        Home::Thread,
        Home::Ring(ring),
        Home::Direct,
        Home::Scratch,
    ];
    let zero = k.c_index(0)?;
    let span = |start, len| RegionAxis::Span { start, len, limit: None, clip_low: false };
    for (i, home) in homes.into_iter().enumerate() {
        let x = k.op(
            Op::Read { from: Region { mem: a, axes: [span(zero, 8), span(zero, 4)][..].into() }, pad: None },
            &[&format!("v{i}")],
            NOWHERE,
        )?[0];
        let read = k.get(x)?;
        let y = k.var(format!("w{i}"), read)?;
        let registers = registers("d0: 8@thr ; d1: 4@reg", &[8, 4]);
        let rows = memory("d0: 8@mem*64 ; d1: 4@mem*8 ; xor<1, 2, 3> align 128", &[8, 4]);
        for l in [x, y] {
            k.place_local(l, |l| {
                l.home = if c.on(39) { home } else { Home::Open };
                let fragment = l.home == Home::Fragment;
                l.layout = c.some(40, if fragment { registers.clone() } else { rows.clone() });
                l.team = c.some(41, math);
                l.partial =
                    c.some(42, Partial { comb: Combiner::Add, over: Spread::Groups }).filter(|_| fragment);
            })?;
        }
    }
    Ok(())
}

fn loops(k: &mut KernelBuilder, c: &Choice, a: Mem, o: Mem) -> Result<()> {
    let bounds: Vec<ExprId> = (0..4).map(|n| k.c_index(n * 8)).collect::<Result<_>>()?;
    let (one, two) = (k.c_index(1)?, k.c_index(2)?);
    let var = k.local("j", Type::INDEX, LocalKind::Loop, NOWHERE);
    let types = [Type::BOOL, Type::INDEX, Type::Scalar(Elem::F32)];
    let count = if c.on(43) { 3 } else { 0 };
    let mut named = smallvec::SmallVec::new();
    for (i, ty) in types.iter().take(count).enumerate() {
        named.push(k.local(format!("c{i}"), ty.clone(), LocalKind::Loop, NOWHERE));
    }
    let many = if c.on(44) { 3 } else { 1 };
    let mut segments = smallvec::SmallVec::new();
    for i in 0..many {
        let values = [k.c_bool(i > 0)?, k.c_index(i as i64 - 1)?, k.c_f32(i as f32)?];
        let step = if c.on(45) { two } else { one };
        let values = values[..count].into();
        segments.push(Segment { lo: bounds[i], hi: bounds[i + 1], step, values });
    }
    let kinds = [
        LoopKind::Serial,
        LoopKind::Unroll,
        LoopKind::NoUnroll,
        LoopKind::Vectorized,
        LoopKind::Pipelined { stages: None },
        LoopKind::Pipelined { stages: Some(3) },
    ];
    k.begin_block();
    let j = k.get(var)?;
    let zero = bounds[0];
    let other = match named.get(2) {
        Some(&l) => k.get(l)?,
        None => k.c_f32(-0.0)?,
    };
    let x = k.element_or(a, &[zero, j], other)?;
    let stage = c.some(46, (if c.on(47) { -1 } else { 1 }, 7));
    k.stmt_staged(StmtKind::Store { mem: o, index: [zero, j][..].into(), value: x }, NOWHERE, stage)?;
    let body = k.end_block()?;
    let kind = kinds[c.0 as usize % kinds.len()];
    let stage = c.some(48, (0, -2));
    k.stmt_staged(StmtKind::For { var, kind, named, segments, carry: Vec::new(), body }, NOWHERE, stage)
}

fn built(c: &Choice) -> Result<Program> {
    let mut p = ProgramBuilder::new("reference");
    p.set_stage(Stage::ALL[c.0 as usize / 7 % 4]);
    let mut k = p.kernel("k");
    k.set_math(if c.on(3) { MathMode::Exact } else { MathMode::Contract });
    k.set_deterministic(c.on(5));
    let (a, o) = parameters(&mut k, c)?;
    let (math, ring) = machines(&mut k, c)?;
    k.set_plan(plan(c));
    buffers(&mut k, c, math)?;
    values(&mut k, c, a, math, ring)?;
    loops(&mut k, c, a, o)?;
    let id = p.add_kernel(k)?;
    p.set_lone(id)?;
    Ok(p.finish()?.0)
}

#[track_caller]
fn same_after_reading(p: &Program) {
    let text = round_trip(p);
    let (before, after) = (fields(p), fields(&reread(p)));
    if before != after {
        let differ = before.lines().zip(after.lines()).find(|(a, b)| a != b);
        panic!("{text}\n{differ:#?}");
    }
}

#[test]
fn all_fields_and_none() {
    same_after_reading(&built(&Choice(0)).unwrap());
    same_after_reading(&built(&Choice((1 << BITS) - 1)).unwrap());
}

#[test]
fn each_field_alone() {
    for bit in 0..BITS {
        same_after_reading(&built(&Choice(1 << bit)).unwrap());
    }
}

#[test]
fn a_field_that_is_set_shows() {
    let plain = fields(&built(&Choice(0)).unwrap());
    for bit in (0..BITS).filter(|b| ![3, 33, 34, 47].contains(b)) {
        assert_ne!(fields(&built(&Choice(1 << bit)).unwrap()), plain, "bit {bit} sets nothing");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fields_in_any_company(bits in 0u64..1 << BITS) {
        same_after_reading(&built(&Choice(bits)).unwrap());
    }
}

/// A function from a value to its variant's name, and all those names: a new variant does not compile without a row.
macro_rules! variants {
    ($name:ident, $all:ident, $type:ty, $path:path: $($variant:ident)*) => {
        #[allow(unused_imports)]
        fn $name(x: &$type) -> &'static str {
            use $path as V;
            match x { $(V::$variant { .. } => stringify!($variant)),* }
        }
        const $all: &[&str] = &[$(stringify!($variant)),*];
    };
}

variants!(op_name, OPS, Op, Op: Read Write Gemm Reduce Scan Fold Join AllReduce Shuffle Vote Once Barrier Atomic Print
    Assert Acquire Wait Commit Release Await Take Pass CopyAsync Issue Fence);
variants!(stmt_name, STMTS, StmtKind, StmtKind: Let Declare Buffer Reducer Assign Update Store Op If For While Parallel Break
    Continue Next Roles);
variants!(expr_name, EXPRS, Expr, Expr: Const Local Dim Arg Unary Binary Select Math Cast Bits Intrinsic Element Pick Splat Iota
    Transpose InsertAxis Slice Broadcast Reshape);
variants!(type_name, TYPES, Type, Type: Scalar Tile Token);

/// Programs that hold every variant.
const SAMPLES: &[&str] = &[
    "intrinsic fn ex(x: f32) -> f32 {
        means { exp2(x) } within 2 ulp
        cuda(sm_75..sm_80) \"ex2 {x}\"
        musa(mp_31) \"exp2f({x})\"
    }
    kernel k(A: f32[M, 64], I: i32[M], O: inout f32[M, 64], C: inout i32[M], s: f32) {
        grid M as i
        threads (4, 32) ordered as (w, l)
        shared t: f32[64]
        var r: reducer(add) f32
        var q: reducer(max) f32[4]
        var late: f32
        var m: tile f32[64, 64] = zeros f32[64, 64]
        let x = A[i, :]
        let g = A[I[0 +: 8], :] pad 0
        t[:] = x
        r op= x[3]
        q[1] op= s
        let y = (x[:, _] @ x[_, :])
        m += x[:, _] @ x[_, :] { precision = tf32 }
        gemm y, y.T -> m (init = M == 3)
        let b = broadcast(x[_, :], 2, 64)
        let h = reshape(bits(i32, x), 8, 8)
        let u = scan(add, y, axis = 1, reverse = true, exclusive = true)
        let v = reduce(max, where(y > 0, -y, u))
        let z = y[0..8, 3] + f32(iota(8))
        late = if s > 0 { ex(s) } else { A[i, l] or 0 }
        late *= 2
        let a = allreduce(add, late, over = (w, l))
        let c = allreduce(min, late, over = warp)
        let d = shfl(late, 3, width = 8) + shfl_up(late, 1) + shfl_down(late, 1) + shfl_xor(late, 2)
        let e1 = vote_any(late > 0)
        let e2 = vote_all(late > 0, over = block)
        let e3 = ballot(late > 0, over = warp)
        let e = e1 && e2 || e3 > 0
        let once_only = once { t[0] }
        barrier
        barrier warp
        let old = atomic_add(C[i], 1)
        let swapped = atomic_cas(C[i], old, 2)
        atomic_max(C[i], swapped)
        print(\"s\", s)
        assert(e, \"e\")
        fence(registers, over = warp)
        fence(proxy, over = cluster)
        fence(proxy)
        barrier group
        barrier cluster
        parallel (p, o) in (8, 8) { O[p, o] = z[3] + f32(h[0, 0]) }
        while late > 1 { late -= 1; if late > 9 { break } else { continue } }
        let total = r
        let most = q
        O[i, 0 +: 2 limit M clip low] = b[0, 0 +: 2] + total + v + g[0, 0] + most[0]
        O[i, l] = a + c + d + once_only + rsqrt.approx(late) + f32(u8.sat(late)) + f32(M)
    }",
    "kernel k(A: f16[M, K], B: f16[N, K], C: out f32[M, N]) {
        grid 1 as i
        team math: 2 groups of 128
        team load: 1 thread of 1 group
        queue mm of math.group: matrix, keep <= 7
        queue st of math.group: store, per_thread one, read_completion
        ring ab[4] load -> math { a: shared f16[128, 64], b: shared f16[256, 64] align 1024 } fill counted
        turn pp over math.groups
        role load { for ko in 0..K/64 {
            let w = acquire ab
            copy.async A[0 +: 128, ko*64 +: 64] -> w.a
            copy.async B[0 +: 256, ko*64 +: 64] pad 0 -> w.b
            commit w } }
        role math as g {
            var c: tile f32[128, 256]
            for ko in 0..K/64 carry (held: slot(ab)? = none) {
                let r = wait ab
                take pp
                issue mm: gemm r.a, r.b.T -> c (init = ko == 0)
                pass pp
                await mm keep 1
                release held
                next r }
            await mm keep 0
            release held
            shared o: f32[128, 256]
            o[:, :] = c
            issue st: copy o -> C[0 +: 128, 0 +: 256]
            await st keep 0 } }",
];

#[test]
fn every_variant_has_a_sample_that_reads_back() {
    let mut seen: [BTreeSet<&str>; 4] = Default::default();
    for sample in SAMPLES {
        let p = program(sample, "k");
        same_after_reading(&p);
        for (_, k) in p.kernels.iter() {
            seen[2].extend(k.body.exprs.iter().map(|(_, e)| expr_name(e)));
            seen[3].extend(k.body.locals.iter().map(|(_, l)| type_name(&l.ty)));
            walk(&k.stmts, &mut |s| {
                seen[1].insert(stmt_name(&s.kind));
                if let StmtKind::Op { op, .. } = &s.kind {
                    seen[0].insert(op_name(op));
                }
            });
        }
    }
    for (seen, all) in seen.iter().zip([OPS, STMTS, EXPRS, TYPES]) {
        let missing: Vec<&&str> = all.iter().filter(|v| !seen.contains(**v)).collect();
        assert!(missing.is_empty(), "no sample has {missing:?}");
    }
}

#[test]
fn what_nothing_uses_is_not_part_of_the_text() {
    let mut p = ProgramBuilder::new("reference");
    let combiner = |p: &mut ProgramBuilder, name: &str| {
        let mut f = p.pure();
        let (a, b) = (f.param("a", DType::F32).unwrap(), f.param("b", DType::F32).unwrap());
        let sum = f.add(a, b).unwrap();
        let func = f.finish(&[sum]).unwrap();
        let identity = vec![(Elem::F32, 0)];
        p.add_combine(Combine { name: name.into(), span: NOWHERE, identity, commutative: true, func })
            .unwrap()
    };
    combiner(&mut p, "unused");
    let plus = combiner(&mut p, "plus");
    let kernel = |p: &mut ProgramBuilder, name: &str| {
        let mut k = p.kernel(name);
        let n = k.dim("N").unwrap();
        let o = Mem::Tensor(k.tensor("O", Mode::InOut, DType::F32, &[n]).unwrap());
        let (zero, x) = (k.c_index(0).unwrap(), k.c_f32(1.0).unwrap());
        let t = k.full(x, &[4]).unwrap();
        let s = k.reduce("s", Combiner::User(plus), t, None).unwrap();
        k.store(o, &[zero], s).unwrap();
        p.add_kernel(k).unwrap()
    };
    let (second, _, first) = (kernel(&mut p, "second"), kernel(&mut p, "never"), kernel(&mut p, "first"));
    let mut h = p.host("both");
    let n = h.dim("N").unwrap();
    let o = h.tensor("O", Mode::InOut, DType::F32, &[n]).unwrap();
    h.launch(first, &[LaunchArg::Arg(o)]);
    h.launch(second, &[LaunchArg::Arg(o)]);
    p.set_entry(h).unwrap();
    let p = p.finish().unwrap().0;
    let text = round_trip(&p);
    assert!(!text.contains("unused") && !text.contains("never"), "{text}");
    assert!(text.find("kernel first") < text.find("kernel second"), "{text}");
}
