//! The row pitch of a shared buffer: plain rows, or rows padded so that the counted bank conflicts of all its accesses
//! are fewest.

use crate::order::Env;
use pantile_ir::effects::{Ctx, Obj, Part, stmt_effects};
use pantile_ir::layout::{Axis, Banks, Digit, Dim, Layout, Shared, bank_conflicts_of, contiguous};
use pantile_ir::program::*;
use pantile_ir::target::Arch;
use pantile_ir::verify::KernelInfo;
use std::rc::Rc;

/// The indices of an access by thread, and the bytes that each takes.
struct Use {
    index: Vec<Vec<i64>>,
    active: Rc<Vec<bool>>,
    bytes: u64,
}

/// A padded layout where it has fewer conflicts than plain rows.
pub fn choose(k: &Kernel, info: &KernelInfo, buffer: BufferId, arch: &Arch) -> Option<Shared> {
    let b = &k.buffers[buffer];
    let banks = arch.banks()?;
    let size = Elem::D(b.elem).bytes();
    let (&fast, slow) = b.shape.split_last()?;
    if slow.iter().all(|&n| n == 1) {
        return None;
    }
    let env = Env::new(k, info);
    let active = Rc::new(vec![true; env.threads]);
    let mut scan = Scan { env, buffer, size, uses: Vec::new(), skipped: 0 };
    scan.block(&k.stmts, &active, 1);
    let row = u64::from(fast) * size;
    let wide = scan.uses.iter().map(|u| u.bytes).max().unwrap_or(size);
    // a padded row must keep the alignment that wide accesses need
    let steps = [0, size.max(banks.bytes), wide.max(16)]
        .map(|pad| if pad == 0 { 0 } else { pad.next_multiple_of(wide) });
    let pitches: Vec<u64> =
        steps.iter().map(|pad| if *pad == 0 { row } else { row.next_multiple_of(wide) + pad }).collect();
    let cost = |pitch: u64| -> u64 {
        let strides = strides(&b.shape, size, pitch);
        scan.uses.iter().map(|u| cycles(u, &strides, &banks)).sum()
    };
    let best = pitches.into_iter().min_by_key(|&p| (cost(p), p))?;
    (best != row).then(|| {
        let strides = strides(&b.shape, size, best);
        let dims = b.shape.iter().zip(&strides).enumerate();
        let dims = dims.map(|(i, (&n, &stride))| {
            Dim::new(format!("d{i}"), vec![Digit::new(n.into(), Axis::Mem, stride)])
        });
        Shared::plain(Layout::new(dims.collect::<Vec<_>>()), 16)
    })
}

/// Bank conflicts of all accesses to a buffer as it is placed, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// most words that one bank must serve in one phase
    pub ways: u64,
    /// phases of all accesses, each counted with its ways
    pub phases: u64,
    /// phases if no bank were hit twice
    pub ideal: u64,
    /// accesses whose places are not known before the launch
    pub unknown: u64,
}

/// `None` where nothing is known of the target's banks.
pub fn conflicts(k: &Kernel, info: &KernelInfo, buffer: BufferId, arch: &Arch) -> Option<Conflicts> {
    let b = &k.buffers[buffer];
    let banks = arch.banks()?;
    let size = Elem::D(b.elem).bytes();
    let shape: Vec<u64> = b.shape.iter().map(|&n| n.into()).collect();
    let place = b.layout.clone().unwrap_or_else(|| Shared::plain(contiguous(&shape, size), 1));
    let env = Env::new(k, info);
    let active = Rc::new(vec![true; env.threads]);
    let mut scan = Scan { env, buffer, size, uses: Vec::new(), skipped: 0 };
    scan.block(&k.stmts, &active, 1);
    let mut total = Conflicts { unknown: scan.skipped, ..Conflicts::default() };
    for u in &scan.uses {
        let threads: Vec<usize> = (0..u.active.len()).collect();
        for warp in threads.chunks(banks.lanes.max(1) as usize) {
            let at = |t: usize| {
                let index: Vec<u64> = u.index.iter().map(|i| i[t].unsigned_abs()).collect();
                place.address(&index)
            };
            let lanes: Vec<u64> = warp.iter().filter(|&&t| u.active[t]).map(|&t| at(t)).collect();
            let phases = bank_conflicts_of(&lanes, u.bytes, &banks);
            total.ideal += phases.len() as u64;
            total.phases += phases.iter().sum::<u64>();
            total.ways = total.ways.max(phases.into_iter().max().unwrap_or(0));
        }
    }
    Some(total)
}

fn strides(shape: &[u32], size: u64, pitch: u64) -> Vec<u64> {
    let mut all = vec![size; shape.len()];
    let mut stride = pitch;
    for i in (0..shape.len().saturating_sub(1)).rev() {
        all[i] = stride;
        stride *= u64::from(shape[i]);
    }
    all
}

/// Phases that one access of all warps takes.
fn cycles(u: &Use, strides: &[u64], banks: &Banks) -> u64 {
    let threads: Vec<usize> = (0..u.active.len()).collect();
    let warps = threads.chunks(banks.lanes as usize).map(|warp| {
        let lanes: Vec<u64> = warp
            .iter()
            .filter(|&&t| u.active[t])
            .map(|&t| u.index.iter().zip(strides).map(|(i, s)| i[t].unsigned_abs() * s).sum())
            .collect();
        bank_conflicts_of(&lanes, u.bytes, banks).iter().sum::<u64>()
    });
    warps.sum()
}

struct Scan<'a> {
    env: Env<'a>,
    buffer: BufferId,
    size: u64,
    uses: Vec<Use>,
    /// Accesses whose places are not known here.
    skipped: u64,
}

impl Scan<'_> {
    fn block(&mut self, block: &Block, active: &Rc<Vec<bool>>, lanes: u64) {
        for s in block {
            self.touch(s, active, lanes);
            match &s.kind {
                StmtKind::If { cond, then, other } => {
                    for (block, no) in [(then, false), (other, true)] {
                        let may = self.env.may(*cond, no);
                        let both = Rc::new(active.iter().zip(may).map(|(&a, b)| a && b).collect());
                        self.block(block, &both, lanes);
                    }
                }
                StmtKind::For { var, kind, segments, body, .. } => {
                    self.env.forget(body);
                    let n = segments.first().and_then(|g| self.env.eval(g.hi)).and_then(|v| v.constant());
                    let lanes =
                        if *kind == LoopKind::Vectorized { n.unwrap_or(1).max(1) as u64 } else { lanes };
                    let start = segments.first().and_then(|g| self.env.eval(g.lo));
                    self.env.set(*var, start.filter(|v| v.constant().is_some()));
                    self.block(body, active, lanes);
                }
                _ => s.kind.blocks().iter().for_each(|b| self.block(b, active, lanes)),
            }
            s.kind.blocks().iter().for_each(|b| self.env.forget(b));
            if let StmtKind::Let { local, value } | StmtKind::Assign { local, value } = &s.kind {
                let v = self.env.eval(*value);
                self.env.set(*local, v);
            }
        }
    }

    fn touch(&mut self, s: &Stmt, active: &Rc<Vec<bool>>, lanes: u64) {
        let ctx = Ctx { kernel: self.env.k, team: None, span: s.span };
        for a in stmt_effects(&s.kind, &ctx) {
            let Part::Element(list) = &a.part else { continue };
            if a.obj != Obj::Shared(self.buffer) {
                continue;
            }
            // symbols move all threads alike, which no plain pitch minds
            let index: Option<Vec<Vec<i64>>> = list
                .iter()
                .map(|&e| {
                    let v = self.env.eval(e).filter(|v| v.modulus == 0)?;
                    Some((0..self.env.threads).map(|t| v.of(t)).collect())
                })
                .collect();
            if let Some(index) = index {
                let bytes = (self.size * lanes).next_power_of_two().min(16).max(self.size);
                self.uses.push(Use { index, active: active.clone(), bytes });
            } else {
                self.skipped += 1;
            }
        }
    }
}
