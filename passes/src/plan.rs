//! `plan`: the only pass that decides. It writes decisions into the kernel's plan, with the reasons of what it did not
//! choose; later passes obey. What a user wrote by hand stays.

use crate::layout::Facts;
use crate::pipeline::{Cx, fill};
use pantile_ir::diag::Diagnostics;
use pantile_ir::program::plan::{Entry, Key, Value};
use pantile_ir::program::*;

/// Elements of a product's accumulator, and of other tiles, that one thread should hold.
const PRODUCT_REGS: u64 = 64;
const MOST_REGS: u64 = 64;

/// Threads of a block: those that the kernel names, else the plan's.
pub fn threads(k: &Kernel) -> u32 {
    if let Some(t) = &k.threads {
        return t.count();
    }
    match k.plan.get(Key::Threads, None) {
        Some(Value::Int(n)) => u32::try_from(*n).unwrap_or(1).max(1),
        _ => 1,
    }
}

pub fn run(program: Program, cx: &Cx) -> Result<Program, Diagnostics> {
    let mut errors = Diagnostics::new();
    let program = fill(program, Stage::Scheduled, |_, k| {
        decide(k, cx);
        if let Err(d) = crate::schedule::complete(k, cx) {
            errors.push(d);
        }
    });
    if errors.has_errors() { Err(errors) } else { Ok(program) }
}

fn decide(k: &mut Kernel, cx: &Cx) {
    if k.threads.is_none() && k.plan.get(Key::Threads, None).is_none() {
        let n = block_size(k, cx);
        add(k, Key::Threads, None, Value::Int(n.into()), Vec::new());
    }
    let mut products = Vec::new();
    walk(&k.stmts, &mut |s| {
        if let StmtKind::Op { op: Op::Gemm { into, .. }, .. } = &s.kind {
            products.push(k.body.locals[*into].name.clone());
        }
    });
    products.dedup();
    for name in products {
        if k.plan.get(Key::Variant, Some(&name)).is_none() {
            let refused: Vec<(String, String)> = cx
                .arch
                .matrix
                .iter()
                .filter(|u| u.name != "fma")
                .map(|u| (u.name.clone(), "its fragments have no lowering yet".to_string()))
                .collect();
            add(k, Key::Variant, Some(name), Value::Name("fma".into()), refused);
        }
    }
}

fn add(k: &mut Kernel, key: Key, subject: Option<String>, value: Value, refused: Vec<(String, String)>) {
    if !k.plan.entries.iter().any(|e| e.key == key && e.subject == subject) {
        k.plan.entries.push(Entry { key, subject, value, by_hand: false, refused, span: k.span });
    }
}

/// Threads for a kernel that names none: one wide access each for the largest tile, more where registers would not
/// hold it; a product's accumulator in register tiles.
fn block_size(k: &Kernel, cx: &Cx) -> u32 {
    let facts = Facts::of(cx);
    let threads = &cx.arch.facts.threads;
    let warp = threads.warp_size.as_ref().map_or(1, |w| w.value).max(1);
    let most = threads.max_per_block.as_ref().map_or(warp, |m| m.value);
    let (mut product, mut largest, mut vectors, mut parallel) = (0u64, 0u64, 0u64, false);
    walk(&k.stmts, &mut |s| match &s.kind {
        StmtKind::Op { op: Op::Gemm { into, .. }, .. } => {
            product = product.max(k.body.locals[*into].ty.count() as u64);
        }
        StmtKind::Op { results, op: Op::Read { .. } } => {
            for r in results {
                let ty = &k.body.locals[*r].ty;
                let bits = ty.elem().and_then(Elem::dtype).map_or(64, |d| d.bits());
                let each = u64::from((facts.vector_bytes * 8 / bits.max(1)).max(1));
                vectors = vectors.max((ty.count() as u64).div_ceil(each));
            }
        }
        StmtKind::Op { op: Op::Write { to, .. } | Op::Atomic { at: Place::Region(to), .. }, .. } => {
            let shape = crate::layout::classes::region_shape(to);
            largest = largest.max(shape.iter().map(|&n| u64::from(n)).product());
        }
        StmtKind::Parallel { .. } => parallel = true,
        _ => {}
    });
    for (_, l) in k.body.locals.iter() {
        largest = largest.max(if l.ty.is_tile() { l.ty.count() as u64 } else { 0 });
    }
    if largest == 0 && !parallel {
        return 1;
    }
    let base = match product {
        0 => vectors.max(largest.div_ceil(8)).max(if parallel { 128 } else { 1 }).min(256),
        p => p.div_ceil(PRODUCT_REGS).min(256),
    };
    let base = base.max(largest.div_ceil(MOST_REGS));
    let n = u32::try_from(base).unwrap_or(u32::MAX / 2).next_power_of_two();
    n.clamp(warp, most.max(warp)).min(prev(most))
}

fn prev(n: u32) -> u32 {
    1 << n.max(1).ilog2()
}
