//! A kernel made by code that holds an op of each row.

use super::*;
use crate::builder::{Exprs, KernelBuilder, ProgramBuilder};
use pantile_abi::DType;

struct Made {
    k: KernelBuilder,
    t: Mem,
    s: BufferId,
    zero: ExprId,
    tile: ExprId,
    acc: LocalId,
    scalar: ExprId,
    token: LocalId,
    queue: QueueId,
    copies: QueueId,
    reducer: ReducerId,
}

fn made() -> Made {
    let p = ProgramBuilder::new("reference");
    let mut k = p.kernel("k");
    let n = k.dim("N").unwrap();
    let t = Mem::Tensor(k.tensor("A", Mode::InOut, DType::F32, &[n]).unwrap());
    let Mem::Buffer(s) = k.shared("s", DType::F32, &[33]).unwrap() else { panic!("a buffer") };
    let zero = k.c_index(0).unwrap();
    let one = k.c_f32(1.0).unwrap();
    let tile = k.full(one, &[16, 16]).unwrap();
    let tile = k.let_("x", tile).unwrap();
    let acc = k.zeros("c", DType::F32, &[16, 16]).unwrap();
    let at = Span::default();
    let team = TeamDecl { name: "all".into(), groups: 1, threads: None, elected: false, regs: None };
    let team = k.add_team(team, at);
    let queue = |engine| Queue {
        name: "q".into(),
        team,
        per_group: false,
        engine,
        max_keep: None,
        per_thread_one: false,
        read_completion: false,
    };
    let copies = k.add_queue(queue(Engine::Copy), at).unwrap();
    let queue = k.add_queue(queue(Engine::Matrix), at).unwrap();
    let field =
        RingField { name: "a".into(), elem: Elem::F32, shape: [33][..].into(), layout: None, align: None };
    let ring = Ring {
        name: "r".into(),
        slots: 2,
        producer: team,
        consumer: team,
        fields: vec![field],
        fill: Fill::Counted,
    };
    let ring = k.add_ring(ring, at).unwrap();
    let token = k.op(Op::Acquire { ring }, &["w"], at).unwrap()[0];
    let reducer = k.reducer("sum", Combiner::Add, &[Type::Scalar(Elem::F32)]).unwrap();
    let scalar = k.c_f32(2.0).unwrap();
    Made { k, t, s, zero, tile, acc, scalar, token, queue, copies, reducer }
}

fn span(start: ExprId, len: u32) -> RegionAxis {
    RegionAxis::Span { start, len, limit: None, clip_low: false }
}

fn region(mem: Mem, start: ExprId) -> Region {
    Region { mem, axes: smallvec![span(start, 33)] }
}

fn of(m: &Made, op: &Op) -> Vec<(Obj, Kind, Proxy, Done)> {
    let ctx = Ctx { kernel: m.k.kernel(), team: None, span: Span::default() };
    effects(op, &ctx).into_iter().map(|a| (a.obj, a.kind, a.proxy, a.done)).collect()
}

const NOW: (Proxy, Done) = (Proxy::Generic, Done::Now);

fn plain(obj: Obj, kind: Kind) -> (Obj, Kind, Proxy, Done) {
    (obj, kind, NOW.0, NOW.1)
}

fn tile_local(m: &Made) -> LocalId {
    match m.k.kernel().body.exprs[m.tile] {
        Expr::Local(l) => l,
        _ => panic!("a local"),
    }
}

#[test]
fn reads_and_writes() {
    let m = made();
    let Mem::Tensor(a) = m.t else { panic!("a tensor") };
    let read = Op::Read { from: region(m.t, m.zero), pad: None };
    assert_eq!(of(&m, &read), [plain(Obj::Global(a), Kind::Read)]);
    let write = Op::Write { to: region(Mem::Buffer(m.s), m.zero), value: m.scalar };
    assert_eq!(of(&m, &write), [plain(Obj::Shared(m.s), Kind::Write)]);
}

#[test]
fn products_now_and_in_flight() {
    let m = made();
    let x = tile_local(&m);
    let gemm =
        Op::Gemm { a: m.tile, b: m.tile, into: m.acc, init: Init::Accumulate, precision: Precision::Full };
    assert_eq!(of(&m, &gemm), [plain(Obj::Frag(x), Kind::Read), plain(Obj::Frag(m.acc), Kind::Accumulate)]);
    let issue = Op::Issue {
        queue: m.queue,
        a: MatOperand::Memory {
            region: region(Mem::Slot { token: m.token, field: 0 }, m.zero),
            transposed: false,
        },
        b: MatOperand::Value(m.tile),
        into: m.acc,
        init: Init::Overwrite,
        precision: Precision::Full,
    };
    let later = Done::Fifo(m.queue);
    assert_eq!(
        of(&m, &issue),
        [
            plain(Obj::Frag(x), Kind::Read),
            (Obj::Slot { token: m.token, field: 0 }, Kind::Read, Proxy::Async, later),
            (Obj::Frag(x), Kind::Read, Proxy::Async, later),
            (Obj::Frag(m.acc), Kind::Write, Proxy::Async, later),
        ]
    );
}

#[test]
fn copies_complete_by_count_or_queue() {
    let m = made();
    let Mem::Tensor(a) = m.t else { panic!("a tensor") };
    let slot = Mem::Slot { token: m.token, field: 0 };
    let counted =
        Op::CopyAsync { from: region(m.t, m.zero), to: region(slot, m.zero), pad: None, queue: None };
    let done = Done::Counted(m.token);
    assert_eq!(
        of(&m, &counted),
        [
            (Obj::Global(a), Kind::Read, Proxy::Async, done),
            (Obj::Slot { token: m.token, field: 0 }, Kind::Write, Proxy::Async, done),
        ]
    );
    let to = region(Mem::Buffer(m.s), m.zero);
    let fifo = Op::CopyAsync { from: region(m.t, m.zero), to, pad: None, queue: Some(m.copies) };
    let done = Done::Fifo(m.copies);
    assert_eq!(
        of(&m, &fifo),
        [
            (Obj::Global(a), Kind::Read, Proxy::Generic, done),
            (Obj::Shared(m.s), Kind::Write, Proxy::Generic, done)
        ]
    );
}

#[test]
fn atomics_have_the_scope_of_their_memory() {
    let m = made();
    let Mem::Tensor(a) = m.t else { panic!("a tensor") };
    let atomic = |mem| Op::Atomic {
        op: AtomicOp::Add,
        at: Place::Element { mem, index: smallvec![m.zero] },
        value: m.scalar,
        expected: None,
    };
    assert_eq!(of(&m, &atomic(m.t)), [plain(Obj::Global(a), Kind::Atomic(Scope::Device))]);
    assert_eq!(of(&m, &atomic(Mem::Buffer(m.s))), [plain(Obj::Shared(m.s), Kind::Atomic(Scope::Block))]);
}

#[test]
fn reducers_accumulate_until_they_are_read() {
    let m = made();
    let fold = Op::Fold { reducer: m.reducer, index: smallvec![], values: smallvec![m.scalar] };
    assert_eq!(of(&m, &fold), [plain(Obj::Reducer(m.reducer), Kind::Accumulate)]);
    assert_eq!(of(&m, &Op::Join { reducer: m.reducer }), [plain(Obj::Reducer(m.reducer), Kind::Read)]);
}

#[test]
fn elements_in_expressions_are_reads() {
    let mut m = made();
    let e = m.k.element(Mem::Buffer(m.s), &[m.zero]).unwrap();
    let store = StmtKind::Store { mem: m.t, index: smallvec![m.zero], value: e };
    let ctx = Ctx { kernel: m.k.kernel(), team: None, span: Span::default() };
    let found: Vec<_> = stmt_effects(&store, &ctx).into_iter().map(|a| (a.obj, a.kind, a.owner)).collect();
    let Mem::Tensor(a) = m.t else { panic!("a tensor") };
    assert_eq!(
        found,
        [(Obj::Shared(m.s), Kind::Read, Owner::Thread), (Obj::Global(a), Kind::Write, Owner::Thread)]
    );
    let update = StmtKind::Update { local: m.acc, op: Update::Add, value: m.tile };
    let kinds: Vec<_> = stmt_effects(&update, &ctx).into_iter().map(|a| (a.obj, a.kind)).collect();
    assert_eq!(
        kinds,
        [
            (Obj::Frag(tile_local(&m)), Kind::Read),
            (Obj::Frag(m.acc), Kind::Read),
            (Obj::Frag(m.acc), Kind::Write)
        ]
    );
}

#[test]
fn only_what_crosses_threads_or_agents_orders_them() {
    let m = made();
    assert_eq!(sync(&Op::Commit { token: m.token }), Some(Sync::Commit(m.token)));
    assert_eq!(sync(&Op::Await { queue: m.queue, keep: 1 }), Some(Sync::Await { queue: m.queue, keep: 1 }));
    let fence = Op::Fence { kind: FenceKind::Registers, team: Team::Group };
    assert_eq!(sync(&fence), Some(Sync::RegFence(Team::Group)));
    assert_eq!(sync(&Op::Once { value: m.scalar }), Some(Sync::Exchange(Team::Block)));
    assert_eq!(sync(&Op::Join { reducer: m.reducer }), Some(Sync::Exchange(Team::Block)));
    assert_eq!(sync(&Op::Read { from: region(m.t, m.zero), pad: None }), None);
}
