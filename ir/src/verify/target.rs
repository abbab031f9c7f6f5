//! Limits of the architecture: threads, shared memory, warp width.

use super::Verifier;
use crate::codes;
use crate::program::*;
use crate::span::Span;

pub fn kernel(v: &mut Verifier) {
    threads(v);
    shared(v);
    warps(v);
}

fn limit(v: &Verifier, fact: &str) -> Option<u64> {
    v.arch.fact(fact, &[]).and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0)
}

fn threads(v: &mut Verifier) {
    let Some(t) = &v.kernel.threads else { return };
    let count = t.axes.iter().try_fold(1u64, |n, &(_, m)| n.checked_mul(u64::from(m)));
    let Some(max) = limit(v, "max_threads") else { return };
    if count.is_some_and(|n| n <= max) {
        return;
    }
    let found = count.map_or("too many".to_owned(), |n| n.to_string());
    let message = format!("a block has {found} threads, `{}` allows {max}", v.arch.name);
    v.error(codes::TOO_MANY_THREADS, t.span, message)
        .help("let each thread do more, or make the block smaller");
}

/// Bytes of the largest set of buffers in sight at one point, and of the rings.
fn shared(v: &mut Verifier) {
    let k = v.kernel;
    let rings: u64 = k.rings.iter().map(|(_, r)| ring_bytes(r)).fold(0, u64::saturating_add);
    let mut most = (rings, k.span);
    block(k, &k.stmts, rings, &mut most);
    let Some(max) = limit(v, "shared_bytes") else { return };
    let (bytes, span) = most;
    if bytes <= max {
        return;
    }
    let message = format!("a block needs {bytes} bytes of shared memory, `{}` has {max}", v.arch.name);
    v.error(codes::SHARED_LIMIT, span, message).help("use smaller tiles, or fewer slots of a ring");
}

fn bytes(elem: pantile_abi::DType, shape: &[u32], align: u64) -> u64 {
    let bits = shape.iter().fold(u64::from(elem.bits()), |n, &e| n.saturating_mul(u64::from(e)));
    bits.div_ceil(8).div_ceil(align.max(1)).saturating_mul(align.max(1))
}

fn ring_bytes(r: &Ring) -> u64 {
    let field = |f: &RingField| {
        let elem = f.elem.dtype().unwrap_or(pantile_abi::DType::I64);
        bytes(elem, &f.shape, u64::from(f.align.unwrap_or(16)))
    };
    let slot = r.fields.iter().map(field).fold(0, u64::saturating_add);
    slot.saturating_mul(u64::from(r.slots))
}

fn block(k: &Kernel, stmts: &Block, before: u64, most: &mut (u64, Span)) {
    let mut here = before;
    for s in stmts {
        if let StmtKind::Buffer { buffer } = &s.kind {
            let b = &k.buffers[*buffer];
            if b.home == Home::Shared {
                here = here.saturating_add(bytes(b.elem, &b.shape, u64::from(b.align.unwrap_or(16))));
                if here > most.0 {
                    *most = (here, s.span);
                }
            }
        }
        for inner in s.kind.blocks() {
            block(k, inner, here, most);
        }
    }
}

fn warps(v: &mut Verifier) {
    let Some(warp) = limit(v, "warp") else { return };
    let k = v.kernel;
    let mut list = Vec::new();
    walk(&k.stmts, &mut |s| list.push(s));
    for s in list {
        match &s.kind {
            StmtKind::Op { op: Op::Shuffle { width: Some(w), .. }, .. } if u64::from(*w) > warp => {
                let message = format!("a shuffle over {w} lanes, but a warp of `{}` has {warp}", v.arch.name);
                v.error(codes::WARP_WIDTH, s.span, message)
                    .help("`target.warp` is the number of lanes; exchange more through `shared` memory");
            }
            StmtKind::Op { op: Op::Vote { kind: VoteKind::Ballot, .. }, .. } if warp > 32 => {
                let message =
                    format!("a ballot has 32 bits, but a warp of `{}` has {warp} lanes", v.arch.name);
                v.error(codes::WARP_WIDTH, s.span, message)
                    .help("count with `allreduce(add, ..., over = warp)`");
            }
            _ => {}
        }
    }
}
