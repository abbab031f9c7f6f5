//! Places of shared buffers in the block's one arena: row pitch or swizzle by counted bank conflicts, offsets by who
//! lives when.
//!
//! A buffer lives from the first unit (a statement that the block reaches together) that touches it to the last, over
//! whole loops where it outlives a step. Buffers that never live together may share bytes; the ordering pass sees
//! that and waits between them, which it always can, as units are what it can stand between.

mod pitch;

pub use pitch::{Conflicts, conflicts, ways};

use crate::pipeline::{Cx, fill};
use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::effects::{Ctx, Obj, stmt_effects};
use pantile_ir::layout::{Axis, Shared, Xor, contiguous};
use pantile_ir::program::*;
use pantile_ir::verify::{KernelInfo, Level, examine};
use pitch::{Rows, Scan};
use std::collections::HashMap;
use std::ops::Range;

/// Every buffer begins at a multiple of it, so that the widest accesses are aligned.
const ALIGN: u64 = 16;
/// Smaller buffers have bytes of their own: sharing them would cost a barrier and save nothing.
const SMALL: u64 = 1024;

pub fn run(program: Program, cx: &Cx) -> std::result::Result<Program, Diagnostics> {
    let info = examine(&program, cx.arch);
    let limit = cx.arch.fact("shared_bytes", &[]).and_then(|n| u64::try_from(n).ok());
    let mut plans = Vec::new();
    for ((_, k), info) in program.kernels.iter().zip(&info.kernels) {
        let need =
            |places: &HashMap<BufferId, Place>| places.values().map(|p| p.range().end).max().unwrap_or(0);
        let scan = Scan::of(k, info);
        let mut chosen = places(k, info, cx, &scan, Rows::Padded);
        for rows in [Rows::Swizzled, Rows::Plain] {
            if limit.is_some_and(|l| need(&chosen) > l) {
                chosen = places(k, info, cx, &scan, rows);
            }
        }
        let most = need(&chosen);
        if let Some(limit) = limit.filter(|&l| most > l) {
            let message =
                format!("a block needs {most} bytes of shared memory, `{}` has {limit}", cx.arch.name);
            let d = Diagnostic::error(codes::SHARED_LIMIT, k.span, message);
            return Err(std::iter::once(d.help("use smaller tiles or fewer threads a block")).collect());
        }
        plans.push(chosen);
    }
    Ok(fill(program, Stage::Threaded, |id, k| {
        for (buffer, place) in std::mem::take(&mut plans[id.index()]) {
            k.buffers[buffer].layout = Some(place.shared);
        }
    }))
}

/// Bytes of the arena that a kernel needs.
pub fn bytes(kernel: &Kernel) -> u64 {
    ranges(kernel).into_values().map(|r| r.end).max().unwrap_or(0)
}

/// Where each shared buffer lies; empty as long as none has a place.
pub fn ranges(kernel: &Kernel) -> HashMap<BufferId, Range<u64>> {
    let shared = || kernel.buffers.iter().filter(|(_, b)| b.home == Home::Shared);
    if !shared().any(|(_, b)| b.layout.is_some()) {
        return HashMap::new();
    }
    shared().map(|(id, b)| (id, range(b))).collect()
}

fn range(b: &Buffer) -> Range<u64> {
    let size = Elem::D(b.elem).bytes();
    let plain = || Shared::plain(contiguous(&extents(b), size), 1);
    Place { shared: b.layout.clone().unwrap_or_else(plain), size }.range()
}

fn extents(b: &Buffer) -> Vec<u64> {
    b.shape.iter().map(|&n| n.into()).collect()
}

struct Place {
    shared: Shared,
    /// bytes of an element
    size: u64,
}

impl Place {
    fn range(&self) -> Range<u64> {
        let start = self.shared.layout.offset[Axis::Mem];
        start..self.shared.bytes(self.size).max(start)
    }
}

fn places(k: &Kernel, info: &KernelInfo, cx: &Cx, scan: &Scan, rows: Rows) -> HashMap<BufferId, Place> {
    let mut lives = Lives { k, info, at: 0, number: 0, lives: HashMap::new() };
    lives.block(&k.stmts, true);
    let mut wanted = Vec::new();
    for (id, b) in k.buffers.iter().filter(|(_, b)| b.home == Home::Shared) {
        let size = Elem::D(b.elem).bytes();
        let mut shared = match &b.layout {
            Some(l) => l.clone(),
            None => Shared::plain(contiguous(&extents(b), size), 1),
        };
        shared.layout.offset[Axis::Mem] = 0;
        if b.layout.is_none()
            && let Some(pitched) = pitch::choose(scan, id, cx.arch, rows)
        {
            shared = pitched;
        }
        shared.align =
            shared.align.max(ALIGN).max(b.align.unwrap_or(1).into()).max(shared.xor.map_or(1, Xor::cycle));
        wanted.push((id, Place { shared, size }));
    }
    // the largest first: small ones then fill what is left
    wanted.sort_by_key(|(id, p)| (std::cmp::Reverse(p.range().end), id.index()));
    let mut done: HashMap<BufferId, Place> = HashMap::new();
    for (id, mut place) in wanted {
        let bytes = place.range().end;
        let blocked: Vec<Range<u64>> = done
            .iter()
            .filter(|(other, p)| {
                bytes < SMALL || p.range().end - p.range().start < SMALL || lives.meet(id, **other)
            })
            .map(|(_, p)| p.range())
            .collect();
        place.shared.layout.offset[Axis::Mem] = first_fit(bytes, place.shared.align, &blocked);
        done.insert(id, place);
    }
    done
}

/// The lowest aligned start that meets none of the ranges.
fn first_fit(bytes: u64, align: u64, blocked: &[Range<u64>]) -> u64 {
    let mut starts: Vec<u64> = blocked.iter().map(|r| r.end.next_multiple_of(align)).collect();
    starts.push(0);
    starts.sort_unstable();
    let free = |s: &u64| blocked.iter().all(|r| s + bytes <= r.start || *s >= r.end);
    starts.into_iter().find(free).unwrap_or(0)
}

/// When buffers are touched, counted in units.
struct Lives<'a> {
    k: &'a Kernel,
    info: &'a KernelInfo,
    at: usize,
    /// of the next statement
    number: usize,
    lives: HashMap<BufferId, (usize, usize)>,
}

impl Lives<'_> {
    fn meet(&self, a: BufferId, b: BufferId) -> bool {
        match (self.lives.get(&a), self.lives.get(&b)) {
            (Some(a), Some(b)) => a.0 <= b.1 && b.0 <= a.1,
            _ => true,
        }
    }

    fn touch(&mut self, b: BufferId, at: usize) {
        let life = self.lives.entry(b).or_insert((at, at));
        *life = (life.0.min(at), life.1.max(at));
    }

    fn block(&mut self, block: &Block, together: bool) {
        for s in block {
            let number = self.number;
            self.number += 1;
            let here = together && self.info.stmts.get(number).is_none_or(|u| u.level >= Level::Block);
            self.at += usize::from(here);
            let ctx = Ctx { kernel: self.k, team: None, span: s.span };
            for a in stmt_effects(&s.kind, &ctx) {
                if let Obj::Shared(b) = a.obj {
                    self.touch(b, self.at);
                }
            }
            let start = self.at;
            for inner in s.kind.blocks() {
                self.block(inner, here);
            }
            if matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. }) {
                self.at += usize::from(here);
                self.whole_loop(s, start);
            }
        }
    }

    /// What a loop touches lives through all of its steps.
    fn whole_loop(&mut self, s: &Stmt, start: usize) {
        let end = self.at;
        let mut inside = Vec::new();
        for block in s.kind.blocks() {
            walk(block, &mut |s| {
                let ctx = Ctx { kernel: self.k, team: None, span: s.span };
                inside.extend(stmt_effects(&s.kind, &ctx).into_iter().filter_map(|a| match a.obj {
                    Obj::Shared(b) => Some(b),
                    _ => None,
                }));
            });
        }
        for b in inside {
            self.touch(b, start);
            self.touch(b, end);
        }
    }
}
