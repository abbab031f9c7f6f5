//! The order in which blocks take the tiles of the grid, as the plan's `schedule` says.
//!
//! Reads and leaves a program of stage `scheduled`. The grid becomes one axis; statements before the body compute the
//! old indices out of a tile's number, and where blocks are persistent the body stands in a loop over the tiles of the
//! block. What was done leaves the plan, so that the text that is left means what it says. Nothing is decided here,
//! and nothing of the body is changed.

use crate::make::Make;
use crate::pipeline::Cx;
use crate::plan::threads;
use crate::ranges::Facts;
use pantile_ir::builder::{Exprs, KernelBuilder, Result, rewrite};
use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::effects::{Sync, sync};
use pantile_ir::program::plan::{Entry, Key, Value};
use pantile_ir::program::schedule::{Raster, Schedule, Walk};
use pantile_ir::program::*;
use pantile_ir::span::Span;

pub fn run(program: Program, _: &Cx) -> std::result::Result<Program, Diagnostics> {
    let asks = |k: &Kernel| entry(k).is_some();
    if !program.kernels.iter().any(|(_, k)| asks(k)) {
        return Ok(program);
    }
    let stage = program.stage;
    let made = rewrite(program, stage, |k, stmts| match entry(k.kernel()).cloned() {
        Some(e) => kernel(k, &e, stmts),
        None => keep(k, stmts),
    });
    made.map_err(|d| std::iter::once(d).collect())
}

fn entry(k: &Kernel) -> Option<&Entry> {
    k.plan.entries.iter().find(|e| e.key == Key::Schedule)
}

fn read(e: &Entry) -> Result<Schedule> {
    Schedule::read(&e.value).map_err(|w| Diagnostic::error(codes::SCHEDULE, e.span, w.message).help(w.help))
}

/// Says how many blocks are persistent where the text does not: as many as the target runs at once.
pub(crate) fn complete(k: &mut Kernel, cx: &Cx) -> Result<()> {
    let Some(e) = entry(k) else { return Ok(()) };
    let Schedule::Persistent { blocks: None, .. } = read(e)? else { return Ok(()) };
    let blocks = resident(cx, threads(k)).ok_or_else(|| {
        let message = format!("how many blocks `{}` runs at once is not known", cx.arch.name);
        no_number(message, e.span)
    })?;
    let mut args = vec![(Some("blocks".to_string()), Value::Int(blocks.into()))];
    if let Value::Call(_, more) = &e.value {
        args.extend_from_slice(more);
    }
    for e in k.plan.entries.iter_mut().filter(|e| e.key == Key::Schedule) {
        e.value = Value::Call("persistent".into(), args.clone());
    }
    Ok(())
}

fn no_number(message: String, span: Span) -> Diagnostic {
    Diagnostic::error(codes::SCHEDULE_BLOCKS, span, message)
        .help("write the number: `schedule = persistent(blocks = 132)`")
}

/// Blocks that are at work at once, by their threads alone.
fn resident(cx: &Cx, threads: u32) -> Option<u32> {
    let facts = &cx.arch.facts.threads;
    let by_threads = facts.max_per_processor.as_ref()?.value / threads.max(1);
    let most = facts.max_blocks_per_processor.as_ref().map_or(by_threads, |m| m.value);
    cx.arch.processors?.checked_mul(by_threads.min(most).max(1))
}

/// The tiles of a grid: its axes with their extents, none of which is less than 0 in a product.
struct Tiles {
    axes: Vec<(LocalId, ExprId)>,
    count: ExprId,
}

fn kernel(k: &mut KernelBuilder, e: &Entry, stmts: Block) -> Result<()> {
    let schedule = read(e)?;
    fits(k.kernel(), &schedule, e.span)?;
    k.kernel_mut().plan.entries.retain(|e| e.key != Key::Schedule);
    let walk = schedule.walk();
    let grid = k.kernel().grid.clone();
    // a kernel without a grid is one block
    if schedule == Schedule::Grid(None) || grid.extents.is_empty() {
        return keep(k, stmts);
    }
    let mut m = Make { span: k.kernel().span, k };
    let tiles = tiles(&mut m, &grid)?;
    match schedule {
        Schedule::Persistent { blocks: Some(blocks), .. } => persistent(&mut m, &tiles, blocks, walk, stmts),
        Schedule::Persistent { blocks: None, .. } => {
            Err(no_number("the plan does not say how many blocks are persistent".into(), e.span))
        }
        Schedule::Grid(_) | Schedule::Other(_) => {
            let number = one_axis(&mut m, tiles.count, "tile_number")?;
            indices(&mut m, &tiles, number, walk)?;
            keep(m.k, stmts)
        }
    }
}

fn keep(k: &mut KernelBuilder, stmts: Block) -> Result<()> {
    stmts.into_iter().try_for_each(|s| k.stmt_staged(s.kind, s.span, s.stage))
}

/// Whether the kernel's blocks may be numbered anew, and do the work of several.
fn fits(k: &Kernel, schedule: &Schedule, span: Span) -> Result<()> {
    let refuse = |message: String, help: &str| {
        Err(Diagnostic::error(codes::UNSUPPORTED, span, message).help(help.to_owned()))
    };
    match schedule {
        Schedule::Other(name) => {
            return refuse(
                format!("the schedule `{name}` has no lowering yet"),
                "write `grid` or `persistent(blocks = …)`",
            );
        }
        Schedule::Grid(None) => return Ok(()),
        _ => {}
    }
    let (mut cluster, mut roles) = (k.plan.get(Key::Cluster, None).is_some(), false);
    walk(&k.stmts, &mut |s| match &s.kind {
        StmtKind::Roles(_) => roles = true,
        StmtKind::Op { op, .. } => {
            let team = sync(op);
            cluster |= matches!(team, Some(Sync::Barrier(Team::Cluster) | Sync::Exchange(Team::Cluster)));
        }
        _ => {}
    });
    if cluster {
        let message = format!("blocks of `{}` form clusters, which are numbered by the grid", k.name);
        return refuse(message, "leave the schedule at `grid`");
    }
    let handed = k.rings.len() + k.queues.len() + k.turns.len() > 0;
    if matches!(schedule, Schedule::Persistent { .. }) && (roles || handed) {
        let message = format!("a block of `{}` cannot take several tiles: it has roles or rings", k.name);
        return refuse(message, "write the loop over tiles into each role, or leave the schedule at `grid`");
    }
    Ok(())
}

/// How many tiles there are. Two extents below 0 must not make a number of tiles.
fn tiles(m: &mut Make, grid: &Grid) -> Result<Tiles> {
    // what the grid's own indices say holds only where there is a tile
    let bare = Kernel { grid: Grid::default(), ..m.k.kernel().clone() };
    let mut facts = Facts::of(&bare);
    let (mut axes, mut count) = (Vec::new(), None);
    for (&l, &extent) in grid.locals.iter().zip(&grid.extents) {
        let mut e = extent;
        if grid.extents.len() > 1 {
            let form = facts.forms.of(m.k.body(), e);
            if !form.is_some_and(|p| facts.at_least_zero(&p)) {
                let zero = m.int(0)?;
                e = m.math(MathFn::Max, zero, e)?;
            }
        }
        axes.push((l, e));
        count = Some(match count {
            None => e,
            Some(n) => m.bin(BinOp::Mul, n, e)?,
        });
    }
    let count = match count {
        Some(n) => n,
        None => m.int(1)?,
    };
    Ok(Tiles { axes, count })
}

/// Makes the grid one axis; gives its index. A block's cost was said of the old indices and has done its work.
fn one_axis(m: &mut Make, extent: ExprId, name: &str) -> Result<ExprId> {
    let span = m.span;
    let axes = m.k.set_grid(&[(extent, name)], span)?;
    match axes.first() {
        Some(&axis) => m.get(axis),
        None => m.int(0),
    }
}

/// `for tile in block..tiles step blocks { body }`
fn persistent(m: &mut Make, tiles: &Tiles, blocks: u32, walk: Option<Walk>, body: Block) -> Result<()> {
    let step = m.int(blocks.into())?;
    let launched = m.math(MathFn::Min, tiles.count, step)?;
    let first = one_axis(m, launched, "worker")?;
    let var = match tiles.axes[..] {
        // the only index is the number of the tile
        [(axis, _)] => {
            m.k.kernel_mut().body.locals[axis].kind = LocalKind::Loop;
            axis
        }
        _ => m.k.local("tile_number", Type::INDEX, LocalKind::Loop, m.span),
    };
    m.k.begin_block();
    if tiles.axes.len() > 1 {
        let number = m.get(var)?;
        indices(m, tiles, number, walk)?;
    }
    keep(m.k, body)?;
    let body = m.k.end_block()?;
    let segments = std::iter::once(Segment::plain(first, tiles.count, step)).collect();
    let (kind, named, carry) = (LoopKind::Serial, Default::default(), Vec::new());
    m.stmt(StmtKind::For { var, kind, named, segments, carry, body })
}

/// Defines the old indices out of a tile's number.
fn indices(m: &mut Make, tiles: &Tiles, number: ExprId, walk: Option<Walk>) -> Result<()> {
    let (lead, last) = tiles.axes.split_at(tiles.axes.len().saturating_sub(2));
    let &[rows, columns] = last else {
        return last.iter().try_for_each(|&(axis, _)| index(m, axis, number));
    };
    let mut rest = number;
    if !lead.is_empty() {
        let plane = m.bin(BinOp::Mul, rows.1, columns.1)?;
        let plane = divisor(m, plane)?;
        let plane_number = m.bin(BinOp::Div, number, plane)?;
        leading(m, lead, plane_number)?;
        let inside = m.bin(BinOp::Rem, number, plane)?;
        rest = m.let_("tile_of_plane", inside)?;
    }
    match walk.unwrap_or(Walk { raster: Raster::Rows, group: 1 }) {
        Walk { raster: Raster::Rows, group } => band(m, rest, rows, columns, group),
        Walk { raster: Raster::Columns, group } => band(m, rest, columns, rows, group),
    }
}

/// The axes before the last two, the last of them fastest.
fn leading(m: &mut Make, axes: &[(LocalId, ExprId)], mut number: ExprId) -> Result<()> {
    for (i, &(axis, extent)) in axes.iter().enumerate().rev() {
        if i == 0 {
            return index(m, axis, number);
        }
        let extent = divisor(m, extent)?;
        let own = m.bin(BinOp::Rem, number, extent)?;
        index(m, axis, own)?;
        number = m.bin(BinOp::Div, number, extent)?;
    }
    Ok(())
}

/// `group` steps of the slow axis before the next step of the fast one; the last band may hold fewer.
fn band(
    m: &mut Make,
    number: ExprId,
    (slow, slow_extent): (LocalId, ExprId),
    (fast, fast_extent): (LocalId, ExprId),
    group: u32,
) -> Result<()> {
    let size = m.scale(fast_extent, group.into())?;
    let size = divisor(m, size)?;
    if group == 1 {
        let outer = m.bin(BinOp::Div, number, size)?;
        index(m, slow, outer)?;
        let inner = m.bin(BinOp::Rem, number, size)?;
        return index(m, fast, inner);
    }
    let band = m.bin(BinOp::Div, number, size)?;
    let first = m.scale(band, group.into())?;
    let first = m.let_("band_first", first)?;
    let inside = m.bin(BinOp::Rem, number, size)?;
    let inside = m.let_("band_tile", inside)?;
    let left = m.sub(slow_extent, first)?;
    let most = m.int(group.into())?;
    let height = m.math(MathFn::Min, left, most)?;
    let height = divisor(m, height)?;
    let height = m.let_("band_height", height)?;
    let down = m.bin(BinOp::Rem, inside, height)?;
    let slow_index = m.add(first, down)?;
    index(m, slow, slow_index)?;
    let along = m.bin(BinOp::Div, inside, height)?;
    index(m, fast, along)
}

/// A number by which tiles are divided: at least 1 where there is a tile, and that is written down for those who ask in
/// how many bits a quotient fits.
fn divisor(m: &mut Make, e: ExprId) -> Result<ExprId> {
    if m.known(e).is_some_and(|n| n > 0) {
        return Ok(e);
    }
    let one = m.int(1)?;
    m.math(MathFn::Max, e, one)
}

/// What was an index of the grid is a name with a value.
fn index(m: &mut Make, axis: LocalId, value: ExprId) -> Result<()> {
    m.k.kernel_mut().body.locals[axis].kind = LocalKind::Let;
    m.stmt(StmtKind::Let { local: axis, value })
}
