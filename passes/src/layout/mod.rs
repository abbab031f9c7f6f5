//! `layout`: where each tile lives and which thread holds which element. Reads the plan's number of threads and the
//! access widths of the target; writes home and layout of tile locals. Decides no arithmetic and moves no data: where
//! two layouts meet, the tile lives in shared memory and any thread reaches any element.

pub mod classes;
pub mod digits;
mod spread;

use crate::pipeline::{Cx, fill};
use classes::{Classes, Collect};
use digits::AxisLayout;
use pantile_ir::diag::Diagnostics;
use pantile_ir::layout::Shared;
use pantile_ir::program::*;
use std::collections::{HashMap, HashSet};

/// What spreading asks of a target.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub vector_bytes: u32,
    /// threads that a shuffle reaches
    pub lanes: u32,
    /// threads whose widest accesses make one line of all banks
    pub line: u32,
    /// neighbouring columns of a product's register tile
    pub register_row: u32,
    pub shared_bytes: u64,
}

impl Facts {
    pub fn of(cx: &Cx) -> Facts {
        let f = &cx.arch.facts;
        Facts {
            vector_bytes: f.access.vector_bytes.as_ref().map_or(1, |k| k.value),
            lanes: f.threads.shuffle_width.as_ref().map_or(1, |k| k.value).max(1),
            line: cx.arch.banks().map_or(u32::MAX, |b| (b.count * b.bytes) as u32)
                / f.access.vector_bytes.as_ref().map_or(1, |k| k.value).max(1),
            register_row: 4,
            shared_bytes: f.shared.max_bytes.as_ref().map_or(u64::MAX, |k| k.value.into()),
        }
    }
}

/// The layouts of everything that a kernel's statements walk over.
pub struct Assignment {
    pub threads: u32,
    /// Layouts of tile locals, in shared memory too: there they say who writes which element.
    pub locals: HashMap<LocalId, Vec<AxisLayout>>,
    pub shared: HashSet<LocalId>,
    /// Tiles that their users read in the tensor itself, since shared memory has no room.
    pub direct: HashSet<LocalId>,
    /// Of loops that ops without a local of their own need, by statement number.
    pub stmts: HashMap<usize, Vec<Vec<AxisLayout>>>,
    pub reducers: HashMap<ReducerId, Vec<AxisLayout>>,
}

pub fn assign(k: &Kernel, cx: &Cx) -> Assignment {
    let facts = Facts::of(cx);
    let threads = crate::plan::threads(k);
    let classes = Collect::of(k, &facts);
    let by_root = spread::spread(&classes, threads, &facts);
    let of = |axes: &[classes::Node]| -> Vec<AxisLayout> {
        axes.iter().map(|&a| by_root[&classes.find(a)].clone()).collect()
    };
    let tiles = k.body.locals.iter().filter(|(_, l)| !l.ty.shape().is_empty());
    let locals = tiles.filter_map(|(id, l)| Some((id, given(l).or_else(|| axes_of(&classes, id, l, &of))?)));
    let stmts = classes
        .of_stmt
        .iter()
        .map(|(&s, spaces)| (s, spaces.iter().map(|&id| of(&classes.spaces[id].axes)).collect()));
    let reducers = classes.reducers.iter().map(|(&r, axes)| (r, of(axes))).collect();
    let mut shared = classes.shared.clone();
    let direct = demote(k, &classes, &mut shared, facts.shared_bytes);
    Assignment { direct, reducers, threads, locals: locals.collect(), stmts: stmts.collect(), shared }
}

/// Bytes of a tile in shared memory.
fn bytes(elem: Option<Elem>, shape: impl IntoIterator<Item = u32>) -> u64 {
    let count = shape.into_iter().fold(1u64, |n, e| n.saturating_mul(e.into()));
    count.saturating_mul(elem.map_or(8, Elem::bytes)).next_multiple_of(16)
}

/// Where all tiles together do not fit, the largest of those that are plain reads of inputs are read in place.
fn demote(k: &Kernel, classes: &Classes, shared: &mut HashSet<LocalId>, limit: u64) -> HashSet<LocalId> {
    let size = |l: &LocalId| {
        let ty = &k.body.locals[*l].ty;
        bytes(ty.elem(), ty.shape().iter().copied())
    };
    let mut total: u64 = shared.iter().map(size).sum::<u64>() + classes.copied_bytes;
    total += k
        .buffers
        .iter()
        .filter(|(_, b)| b.home == Home::Shared)
        .map(|(_, b)| bytes(Some(Elem::D(b.elem)), b.shape.iter().copied()))
        .sum::<u64>();
    let mut movable: Vec<LocalId> = Vec::new();
    walk(&k.stmts, &mut |s| {
        if let StmtKind::Op { results, op: Op::Read { from, .. } } = &s.kind
            && let Mem::Tensor(a) = from.mem
            && matches!(&k.args[a].kind, ArgKind::Tensor(Tensor { mode: Mode::In, .. }))
            && from.axes.iter().all(|a| !matches!(a, RegionAxis::Gather { .. }))
        {
            movable.extend(
                results.iter().filter(|r| shared.contains(r) && k.body.locals[**r].kind == LocalKind::Let),
            );
        }
    });
    movable.sort_by_key(|l| (std::cmp::Reverse(size(l)), l.index()));
    let mut direct = HashSet::new();
    for l in movable {
        if total <= limit {
            break;
        }
        total -= size(&l);
        shared.remove(&l);
        direct.insert(l);
    }
    direct
}

fn axes_of(
    classes: &Classes,
    id: LocalId,
    l: &Local,
    of: &dyn Fn(&[classes::Node]) -> Vec<AxisLayout>,
) -> Option<Vec<AxisLayout>> {
    classes.local_axes(id, l.ty.shape().len()).map(|axes| of(&axes))
}

/// A fragment's layout that the text gives.
fn given(l: &Local) -> Option<Vec<AxisLayout>> {
    let layout = l.layout.as_ref().filter(|_| l.home == Home::Fragment)?;
    layout.layout.dims.iter().map(AxisLayout::of).collect()
}

/// Fills homes and layouts.
pub fn run(program: Program, cx: &Cx) -> Result<Program, Diagnostics> {
    Ok(fill(program, Stage::Scheduled, |_, kernel| {
        let a = assign(kernel, cx);
        for (&id, axes) in &a.locals {
            let local = &mut kernel.body.locals[id];
            if a.direct.contains(&id) {
                local.home = Home::Direct;
            } else if a.shared.contains(&id) {
                local.home = Home::Shared;
            } else {
                local.home = Home::Fragment;
                local.layout = Some(Shared::plain(digits::layout(axes, a.threads), 1));
            }
        }
    }))
}
