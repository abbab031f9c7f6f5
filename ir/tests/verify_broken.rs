//! Programs that no builder would make: the verifier answers, it never panics. What it accepts prints.

mod elab_support;

use elab_support::*;
use pantile_ir::DType;
use pantile_ir::arena::Handle;
use pantile_ir::builder::{Exprs, KernelBuilder, ProgramBuilder};
use pantile_ir::codes;
use pantile_ir::diag::Code;
use pantile_ir::elab::Request;
use pantile_ir::print::print;
use pantile_ir::program::*;
use pantile_ir::span::Span;
use pantile_ir::verify::verify;
use std::collections::BTreeSet;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }

    /// A handle that may be one too far.
    fn handle<T>(&mut self, len: usize) -> Handle<T> {
        Handle::from_index(self.below(len + 2))
    }
}

const TEXTS: &[&str] = &[
    "kernel k(A: f16[M, K], B: f16[K, N], C: out f16[M, N]) {
        grid (ceildiv(M, 32), ceildiv(N, 32)) as (i, j)
        var c = zeros f32[32, 32]
        for k in pipelined(0..ceildiv(K, 16), stages = 3) {
            let a = A[i*32 +: 32, k*16 +: 16]
            let b = B[k*16 +: 16, j*32 +: 32]
            c += a @ b
            if k > 3 { break }
        }
        let m = rowmax(c)
        C[i*32 +: 32, j*32 +: 32] = f16(where(c > 0, c, m[:, _]).T)
    }",
    "kernel k(x: f16[K], I: i32[K], B: f16[N, K], y: out f16[N], z: inout i32[N]) {
        grid ceildiv(N, 2) as bn
        threads (2, 32) as (tn, tk) ordered
        shared t: f32[64] align 16
        let n = bn*2 + tn
        var acc: f32 = 0
        for bk in 0..ceildiv(K, 128) {
            var xv: f16[4]
            for v in vectorized(4) { xv[v] = x[(bk*32 + tk)*4 + v] or 0 }
            for v in unroll(4) { acc += f32(xv[v]) * f32(B[n, I[v]] or 0) }
            t[tn*32 + tk] = acc
        }
        let old = atomic_add(z[0], 1)
        let total = allreduce(add, acc + shfl_xor(acc, 1), over = tk)
        let first = once { t[3] }
        while acc > 1 { acc = acc / 2 }
        if tk == 0 && n < N { y[n] = f16(total + first) }
    }",
    "combine both(a: (f32, i32), b: (f32, i32)) -> (f32, i32) identity (0.0, 0) { let s = a.0 + b.0
        (s, max(a.1, b.1)) }
    kernel part(A: f32[M, N], I: i32[M], P: out f32[M]) { grid 1 as g
        var r: reducer(both) (f32, i32)
        var w: reducer(add) f32[33]
        parallel (a, b) in (33, 7) { w[a] op= A[a, b] or 0 }
        let x = A[I[0 +: 8], 0 +: 16] pad 1
        let (s, t) = reduce(both, (x, i32(iota(8, 1) + iota(1, 16, axis = 1))), axis = 1)
        r op= (x, 1)
        let (u, v) = r
        let q = scan(max, x, axis = 0)
        P[0 +: 8] = s * f32(t) + u + q[:, 3 +: 1][:, 0]
        P[8 +: 33] = w + f32(v)
    }
    op k(A: f32[M, N], I: i32[M], Y: out f32[M], s: f32) where M > 3 {
        workspace W: f32[M]
        launch part(A, I, W)
        if M > 8 { launch part(A, I, Y) } else { for z in 0..3 { launch part(A, I, Y) } }
    }",
    "kernel k(A: f16[M, K], C: out f32[M, M]) {
        grid 1 as i
        team math: 2 groups of 128
        team load: 1 thread of 1 group
        queue mm of math.group: matrix, keep <= 7
        ring ab[4] load -> math { a: shared f16[64, 64], t: shared i32 } fill counted
        turn pp over math.groups
        role load { for ko in 0..ceildiv(K, 64) {
            let w = acquire ab
            copy.async A[0 +: 64, ko*64 +: 64] pad 0 -> w.a
            commit w
        } }
        role math as g {
            var c = zeros f32[64, 64]
            for ko in 0..ceildiv(K, 64) carry (held: slot(ab)? = none) {
                let r = wait ab
                take pp
                issue mm: gemm r.a, r.a.T -> c (init = ko == 0)
                pass pp
                await mm keep 1
                release held
                next r
            }
            await mm keep 0
            release held
            C[g*64 +: 64, 0 +: 64] = c
        }
    }",
];

fn sizes(k: &Kernel) -> (usize, usize) {
    (k.body.exprs.len(), k.body.locals.len())
}

fn any_expr(r: &mut Random, k: &Kernel) -> Expr {
    let (n, l) = sizes(k);
    let shape: Shape = (0..r.below(4)).map(|_| [1, 8, 33, 0, 4_000_000_000][r.below(5)]).collect();
    let args: Args = (0..r.below(4)).map(|_| r.handle(n)).collect();
    match r.below(16) {
        0 => Expr::Const { elem: Elem::D(DType::ALL[r.below(17)]), bits: [0, 1, u64::MAX, 300][r.below(4)] },
        1 => Expr::Local(r.handle(l)),
        2 => Expr::Dim(r.handle(k.dims.len())),
        3 => Expr::Arg(r.handle(k.args.len())),
        4 => Expr::Unary([UnOp::Neg, UnOp::Not][r.below(2)], r.handle(n)),
        5 => Expr::Binary(
            [BinOp::Add, BinOp::Shl, BinOp::LogicalAnd, BinOp::Lt][r.below(4)],
            r.handle(n),
            r.handle(n),
        ),
        6 => Expr::Select { cond: r.handle(n), then: r.handle(n), other: r.handle(n) },
        7 => Expr::Math { f: MathFn::ALL[r.below(23)], approx: r.below(2) == 0, args },
        8 => Expr::Cast { to: Elem::Index, sat: r.below(2) == 0, value: r.handle(n) },
        9 => Expr::Bits { to: DType::ALL[r.below(17)], value: r.handle(n) },
        10 => Expr::Element { mem: any_mem(r, k), index: args, or: None },
        11 => Expr::Pick { tile: r.handle(n), index: args },
        12 => Expr::Splat { value: r.handle(n), shape },
        13 => Expr::Iota { axis: r.below(9) as u8, shape },
        14 => Expr::InsertAxis { value: r.handle(n), axis: r.below(9) as u8 },
        _ => Expr::Slice {
            value: r.handle(n),
            axes: args.iter().map(|&e| SliceAxis::Span { start: e, len: r.below(9) as u32 }).collect(),
        },
    }
}

fn any_mem(r: &mut Random, k: &Kernel) -> Mem {
    match r.below(3) {
        0 => Mem::Tensor(r.handle(k.args.len())),
        1 => Mem::Buffer(r.handle(k.buffers.len())),
        _ => Mem::Slot { token: r.handle(k.body.locals.len()), field: r.below(3) as u8 },
    }
}

fn any_region(r: &mut Random, k: &Kernel) -> Region {
    let n = k.body.exprs.len();
    let axes = (0..r.below(4)).map(|_| match r.below(4) {
        0 => RegionAxis::At(r.handle(n)),
        1 => RegionAxis::Gather { index: r.handle(n), len: 8 },
        2 => RegionAxis::New,
        _ => RegionAxis::Span {
            start: r.handle(n),
            len: [0, 1, 8, 64][r.below(4)],
            limit: None,
            clip_low: false,
        },
    });
    Region { axes: axes.collect(), mem: any_mem(r, k) }
}

fn any_stmt(r: &mut Random, k: &Kernel) -> StmtKind {
    let (n, l) = sizes(k);
    let op = |op| StmtKind::Op { results: Default::default(), op };
    match r.below(20) {
        0 => StmtKind::Let { local: r.handle(l), value: r.handle(n) },
        1 => StmtKind::Declare { local: r.handle(l) },
        2 => StmtKind::Buffer { buffer: r.handle(k.buffers.len()) },
        3 => StmtKind::Reducer { reducer: r.handle(k.reducers.len()) },
        4 => StmtKind::Assign { local: r.handle(l), value: r.handle(n) },
        5 => StmtKind::Update { local: r.handle(l), op: Update::Add, value: r.handle(n) },
        6 => StmtKind::Store {
            mem: any_mem(r, k),
            index: (0..r.below(3)).map(|_| r.handle(n)).collect(),
            value: r.handle(n),
        },
        7 => StmtKind::Next { carry: r.handle(l), value: Some(r.handle(l)) },
        8 => StmtKind::Break,
        9 => StmtKind::Continue,
        10 => StmtKind::Op {
            results: (0..r.below(3)).map(|_| r.handle(l)).collect(),
            op: Op::Wait { ring: r.handle(k.rings.len()) },
        },
        11 => op(Op::Release { token: r.handle(l) }),
        12 => op(Op::Await { queue: r.handle(k.queues.len()), keep: r.below(9) as u32 }),
        13 => StmtKind::Op {
            results: [r.handle(l)].into_iter().collect(),
            op: Op::Read { from: any_region(r, k), pad: None },
        },
        14 => op(Op::Write { to: any_region(r, k), value: r.handle(n) }),
        15 => op(Op::Gemm {
            a: r.handle(n),
            b: r.handle(n),
            into: r.handle(l),
            init: Init::When(r.handle(n)),
            precision: Precision::Tf32,
        }),
        16 => op(Op::Fold {
            reducer: r.handle(k.reducers.len()),
            index: Default::default(),
            values: (0..r.below(3)).map(|_| r.handle(n)).collect(),
        }),
        17 => StmtKind::Op {
            results: [r.handle(l)].into_iter().collect(),
            op: Op::Reduce {
                comb: Combiner::User(r.handle(2)),
                inputs: (0..r.below(3)).map(|_| r.handle(n)).collect(),
                axis: Some(r.below(4) as u8),
            },
        },
        18 => StmtKind::Parallel {
            vars: [r.handle(l)].into_iter().collect(),
            extents: [r.handle(n)].into_iter().collect(),
            body: Vec::new(),
        },
        _ => StmtKind::Roles(vec![Role {
            team: r.handle(k.teams.len()),
            group: Some(r.handle(l)),
            body: Vec::new(),
            span: Span::default(),
        }]),
    }
}

/// The block at a random place of the tree.
fn some_block<'a>(r: &mut Random, block: &'a mut Block) -> &'a mut Block {
    let inner: Vec<usize> = (0..block.len()).filter(|&i| !block[i].kind.blocks().is_empty()).collect();
    if inner.is_empty() || r.below(3) == 0 {
        return block;
    }
    let at = inner[r.below(inner.len())];
    match &mut block[at].kind {
        StmtKind::If { then, other, .. } => {
            some_block(r, if other.is_empty() || then.len() > 1 { then } else { other })
        }
        StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::Parallel { body, .. } => {
            some_block(r, body)
        }
        StmtKind::Roles(roles) => {
            let n = r.below(roles.len());
            some_block(r, &mut roles[n].body)
        }
        _ => unreachable!("only these hold blocks"),
    }
}

fn damage(r: &mut Random, p: &mut Program) {
    let id = Handle::from_index(r.below(p.kernels.len()));
    let mut k = p.kernels[id].clone();
    let (n, l) = sizes(&k);
    match r.below(12) {
        0 => k.body.exprs[Handle::from_index(r.below(n))] = any_expr(r, &k.clone()),
        1 => {
            let at = r.below(n).min(k.body.types.len() - 1);
            k.body.types[at] = Type::tile(Elem::F32, [r.below(9) as u32]);
        }
        2 => k.body.types.truncate(1 + r.below(n)),
        3 => {
            let kinds = [
                LocalKind::Let,
                LocalKind::Var,
                LocalKind::Loop,
                LocalKind::Grid(9),
                LocalKind::Thread(7),
                LocalKind::Token(r.handle(2)),
            ];
            k.body.locals[Handle::from_index(r.below(l))].kind = kinds[r.below(6)];
        }
        4 => {
            k.body.locals[Handle::from_index(r.below(l))].ty =
                [Type::INDEX, Type::Token, Type::BOOL, Type::tile(Elem::Index, [])][r.below(4)].clone()
        }
        5 => k.grid.extents.push(r.handle(n)),
        6 => k.grid.locals.push(r.handle(l)),
        7 => k.wheres.push((r.handle(n), String::new())),
        8 => {
            let at = Handle::from_index(r.below(k.args.len()));
            if let ArgKind::Tensor(t) = &mut k.args[at].kind {
                t.mode = [Mode::In, Mode::Out, Mode::InOut][r.below(3)];
                if r.below(2) == 0 {
                    t.dims.push(r.handle(n));
                }
            }
        }
        9 => {
            let stmt = Stmt::new(any_stmt(r, &k), Span::default());
            let block = some_block(r, &mut k.stmts);
            let at = r.below(block.len() + 1);
            block.insert(at, stmt);
        }
        10 => {
            let block = some_block(r, &mut k.stmts);
            if !block.is_empty() {
                let at = r.below(block.len());
                block.remove(at);
            }
        }
        _ => {
            let block = some_block(r, &mut k.stmts);
            if !block.is_empty() {
                let (a, b) = (r.below(block.len()), r.below(block.len()));
                if r.below(2) == 0 {
                    block.swap(a, b);
                } else {
                    let copy = block[a].clone();
                    block.insert(b, copy);
                }
            }
        }
    }
    p.kernels[id] = k;
}

#[test]
fn damaged_programs_are_answered() {
    let target = arch("sm_90a");
    let mut seen: BTreeSet<Code> = BTreeSet::new();
    let mut accepted = 0;
    let mut r = Random(0x9e37_79b9_7f4a_7c15);
    for text in TEXTS {
        let base = program_of(text, &Request::new("k"));
        if let Err(d) = verify(&base, &target) {
            panic!("{text}\n{d:#?}");
        }
        for _ in 0..600 {
            let mut p = base.clone();
            for _ in 0..1 + r.below(2) {
                damage(&mut r, &mut p);
            }
            match verify(&p, &target) {
                Ok(_) => {
                    accepted += 1;
                    assert!(print(&p).contains("kernel "));
                }
                Err(d) => seen.extend(d.iter().map(|d| d.code)),
            }
        }
    }
    assert!(accepted > 60, "only {accepted} accepted");
    assert!(seen.len() > 30, "only {} rules broken", seen.len());
}

// --- rules that only Rust code can break ---------------------------------------------------------------------

fn kernel() -> (ProgramBuilder, KernelBuilder, Mem, ExprId) {
    let p = ProgramBuilder::new("reference");
    let mut k = p.kernel("k");
    let n = k.dim("N").unwrap();
    let out = Mem::Tensor(k.tensor("O", Mode::InOut, DType::F32, &[n]).unwrap());
    let i = k.grid(&[(n, "i")]).unwrap()[0];
    (p, k, out, i)
}

fn codes_of(mut p: ProgramBuilder, k: KernelBuilder) -> Vec<Code> {
    let id = p.add_kernel(k).unwrap();
    p.set_lone(id).unwrap();
    let (program, _) = p.finish().unwrap();
    match verify(&program, &arch("reference")) {
        Ok(_) => Vec::new(),
        Err(d) => d.iter().map(|d| d.code).collect(),
    }
}

#[test]
fn names_are_used_in_sight() {
    let (p, mut k, out, i) = kernel();
    let (one, yes) = (k.c_f32(1.0).unwrap(), k.c_bool(true).unwrap());
    let mut inner = None;
    k.if_(yes, |k| {
        inner = Some(k.var("x", one)?);
        Ok(())
    })
    .unwrap();
    let x = k.get(inner.unwrap()).unwrap();
    k.store(out, &[i], x).unwrap();
    assert_eq!(codes_of(p, k), [codes::NOT_IN_SIGHT]);
}

#[test]
fn one_statement_declares_a_name() {
    let (p, mut k, out, i) = kernel();
    let one = k.c_f32(1.0).unwrap();
    let x = k.var("x", one).unwrap();
    k.stmt(StmtKind::Let { local: x, value: one }, Span::default()).unwrap();
    k.store(out, &[i], one).unwrap();
    assert_eq!(codes_of(p, k), [codes::DECLARED_TWICE]);
}

#[test]
fn a_let_is_not_assigned() {
    let (p, mut k, out, i) = kernel();
    let one = k.c_f32(1.0).unwrap();
    let x = k.local("x", Type::Scalar(Elem::F32), LocalKind::Let, Span::default());
    k.stmt(StmtKind::Let { local: x, value: one }, Span::default()).unwrap();
    k.set(x, one).unwrap();
    k.store(out, &[i], one).unwrap();
    assert_eq!(codes_of(p, k), [codes::NOT_MUTABLE]);
}

#[test]
fn a_reducer_closes_at_its_first_read() {
    let (p, mut k, out, i) = kernel();
    let one = k.c_f32(1.0).unwrap();
    let r = k.reducer("r", Combiner::Add, &[Type::Scalar(Elem::F32)]).unwrap();
    k.fold(r, &[], &[one]).unwrap();
    let sum = k.join(&["s"], r).unwrap()[0];
    k.fold(r, &[], &[one]).unwrap();
    k.store(out, &[i], sum).unwrap();
    assert_eq!(codes_of(p, k), [codes::REDUCER_AFTER_READ]);
}

#[test]
fn parameters_have_different_names() {
    let (p, mut k, out, i) = kernel();
    let x = k.scalar("N", DType::F32).unwrap();
    k.store(out, &[i], x).unwrap();
    assert!(codes_of(p, k).contains(&codes::SAME_PARAMETER));
}

#[test]
fn expressions_stay_readable() {
    let (p, mut k, out, i) = kernel();
    let mut x = k.scalar("x", DType::F32).unwrap();
    for _ in 0..200 {
        x = k.neg(x).unwrap();
    }
    k.store(out, &[i], x).unwrap();
    assert_eq!(codes_of(p, k), [codes::TOO_BIG]);
    let (p, mut k, out, i) = kernel();
    let mut x = k.scalar("x", DType::F32).unwrap();
    for _ in 0..60 {
        x = k.add(x, x).unwrap();
    }
    k.store(out, &[i], x).unwrap();
    assert_eq!(codes_of(p, k), [codes::TOO_BIG]);
}

#[test]
fn what_is_written_is_not_in() {
    let mut p = ProgramBuilder::new("reference");
    let mut k = p.kernel("k");
    let n = k.dim("N").unwrap();
    let out = Mem::Tensor(k.tensor("O", Mode::Out, DType::F32, &[n]).unwrap());
    let i = k.grid(&[(n, "i")]).unwrap()[0];
    let one = k.c_f32(1.0).unwrap();
    k.store(out, &[i], one).unwrap();
    let id = p.add_kernel(k).unwrap();
    let mut h = p.host("run");
    let n = h.dim("N").unwrap();
    let a = h.tensor("A", Mode::In, DType::F32, &[n]).unwrap();
    h.launch(id, &[LaunchArg::Arg(a)]);
    p.set_entry(h).unwrap();
    let (program, sources) = p.finish().unwrap();
    let d = verify(&program, &arch("reference")).expect_err("refused");
    assert!(d.iter().all(|d| d.code == codes::LAUNCH_MODE) && d.len() == 1, "{:#?}", lines(&d, &sources));
}
