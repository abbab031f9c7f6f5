//! How kernels are mapped to a machine of threads, for people: what was decided and why, where tiles live, what each
//! access and barrier costs. Everything is read from the programs that passes leave; nothing is decided here.

mod registers;
mod slow;

use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::effects::{Ctx, Kind, Obj, stmt_effects};
use pantile_ir::layout::{Axis, Shared, contiguous};
use pantile_ir::program::{Elem, Home, Kernel, Mem, Op, Program, Stage, StmtKind, Team, walk};
use pantile_ir::span::{Sources, Span};
use pantile_ir::target::{Arch, Backend};
use pantile_ir::verify::{KernelInfo, verify};
use pantile_passes::facts::{conflicts_text, facts};
use pantile_passes::pipeline::{self, Cx, Form};
use pantile_passes::share;
use serde::Serialize;

/// The mapping of one kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Mapping {
    pub kernel: String,
    pub target: String,
    pub threads: u32,
    /// whether the text names them
    pub threads_by_hand: bool,
    pub plan: Vec<Decision>,
    pub tiles: Vec<Tile>,
    pub shared_bytes: u64,
    pub shared: Vec<Placed>,
    pub accesses: Vec<Accesses>,
    pub barriers: Vec<Barrier>,
    /// 32-bit words alive at one place of the program, at most: an estimate, as the vendor's compiler decides
    pub registers_estimate: u64,
    pub slow: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    pub what: String,
    pub value: String,
    pub by_hand: bool,
    /// alternatives that were not taken, each with the reason
    pub refused: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tile {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
    pub home: &'static str,
    pub layout: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placed {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
    pub offset: u64,
    pub bytes: u64,
    /// where it is not plain rows
    pub layout: Option<String>,
    pub conflicts: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Accesses {
    pub memory: String,
    pub way: &'static str,
    /// of one access of a thread
    pub bits: u64,
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Barrier {
    pub team: &'static str,
    pub line: Option<usize>,
    pub why: String,
}

/// Maps a verified program of stage tile; one entry a kernel.
pub fn mapping(program: &Program, arch: &Arch, sources: &Sources) -> Result<Vec<Mapping>, Diagnostics> {
    if matches!(arch.backend, Backend::Cpu | Backend::Interp) {
        let message = format!("`{}` is no machine of threads: nothing is mapped for it", arch.name);
        let d = Diagnostic::error(codes::TARGET_ABSENT, program.entry.span, message)
            .help("name a GPU, such as `--target cuda:sm_80` or `--target musa`");
        return Err(Diagnostics::from_iter([d]));
    }
    let (mut planned, mut scheduled) = (program.clone(), program.clone());
    let mut slow = slow::Watch::new(program);
    let last = pipeline::run(program.clone(), &Cx { arch }, |pass, p| {
        // what a pass has carried out leaves the plan
        if pass.name == "plan" {
            planned = p.clone();
        }
        if pass.to == Form::Program(Stage::Scheduled) {
            scheduled = p.clone();
        }
        slow.see(p);
        Ok(())
    })?;
    let info = verify(&last, arch)?;
    let known = facts(&last, arch)?;
    let mut all = Vec::new();
    for (i, ((_, k), info)) in last.kernels.iter().zip(&info.kernels).enumerate() {
        let of = |p: &Program| p.kernels.handles().nth(i);
        let (Some(plan), Some(tiled)) = (of(&planned), of(&scheduled)) else { continue };
        let named = program.kernels.iter().nth(i).is_some_and(|(_, k)| k.threads.is_some());
        let mut slow = slow.told(i).to_vec();
        slow.extend(slow::narrow(k, &known[i].accesses, arch));
        all.push(Mapping {
            kernel: k.name.clone(),
            target: arch.name.clone(),
            threads: known[i].threads,
            threads_by_hand: named,
            plan: decisions(&planned.kernels[plan]),
            tiles: tiles(&scheduled.kernels[tiled]),
            shared_bytes: known[i].shared_bytes,
            shared: placed(k, info, arch),
            accesses: accesses(k, &known[i].accesses),
            barriers: barriers(k, sources),
            registers_estimate: registers::estimate(k),
            slow,
        });
    }
    Ok(all)
}

fn decisions(k: &Kernel) -> Vec<Decision> {
    let entry = |e: &pantile_ir::program::plan::Entry| Decision {
        what: match &e.subject {
            Some(s) => format!("{}({s})", e.key.name()),
            None => e.key.name().to_string(),
        },
        value: e.value.to_string(),
        by_hand: e.by_hand,
        refused: e.refused.clone(),
    };
    k.plan.entries.iter().map(entry).collect()
}

fn type_text(elem: impl std::fmt::Display, shape: &[u32]) -> String {
    let dims: Vec<String> = shape.iter().map(u32::to_string).collect();
    format!("{elem}[{}]", dims.join(", "))
}

fn home_text(home: Home) -> &'static str {
    match home {
        Home::Open => "registers",
        Home::Shared => "shared memory",
        Home::Fragment => "registers of the threads",
        Home::Thread => "an array of each thread",
        Home::Ring(_) => "a ring's slots",
        Home::Direct => "read in place",
        Home::Scratch => "scratch",
    }
}

fn tiles(k: &Kernel) -> Vec<Tile> {
    let tiles = k.body.locals.iter().filter(|(_, l)| l.ty.is_tile() && l.home != Home::Open);
    let tile = |l: &pantile_ir::program::Local| Tile {
        name: l.name.clone(),
        ty: l.ty.elem().map_or_else(String::new, |e| type_text(e, l.ty.shape())),
        home: home_text(l.home),
        layout: l.layout.as_ref().map(|s| s.to_string()),
    };
    let mut all: Vec<Tile> = Vec::new();
    for tile in tiles.map(|(_, l)| tile(l)) {
        if !all.contains(&tile) {
            all.push(tile);
        }
    }
    all
}

fn placed(k: &Kernel, info: &KernelInfo, arch: &Arch) -> Vec<Placed> {
    let ranges = share::ranges(k);
    let mut all = Vec::new();
    for (id, b) in k.buffers.iter().filter(|(_, b)| b.home == Home::Shared) {
        let Some(range) = ranges.get(&id) else { continue };
        let size = Elem::D(b.elem).bytes();
        let shape: Vec<u64> = b.shape.iter().map(|&n| n.into()).collect();
        let beside = b.layout.clone().and_then(|mut l: Shared| {
            l.layout.offset[Axis::Mem] = 0;
            let plain = l.xor.is_none() && l.layout.same(&contiguous(&shape, size));
            (!plain).then(|| l.to_string())
        });
        all.push(Placed {
            name: b.name.clone(),
            ty: type_text(b.elem, &b.shape),
            offset: range.start,
            bytes: range.end - range.start,
            layout: beside,
            conflicts: conflicts_text(share::conflicts(k, info, id, arch)),
        });
    }
    all.sort_by_key(|p| p.offset);
    once(all)
}

/// A loop in several versions has each buffer several times: told once, and where versions differ, by number.
fn once(all: Vec<Placed>) -> Vec<Placed> {
    let mut kept: Vec<Placed> = Vec::new();
    for p in all {
        if !kept.contains(&p) {
            kept.push(p);
        }
    }
    let names: Vec<String> = kept.iter().map(|p| p.name.clone()).collect();
    for (i, p) in kept.iter_mut().enumerate() {
        let of_name = |names: &[String]| names.iter().filter(|n| **n == p.name).count();
        if of_name(&names) > 1 {
            p.name = format!("{} (version {})", p.name, of_name(&names[..=i]));
        }
    }
    kept
}

/// What people call a memory.
pub(super) fn memory(k: &Kernel, mem: Mem) -> String {
    match mem {
        Mem::Tensor(a) => k.args[a].name.clone(),
        Mem::Buffer(b) => k.buffers[b].name.clone(),
        Mem::Slot { token, .. } => k.body.locals[token].name.clone(),
    }
}

fn accesses(k: &Kernel, all: &[pantile_passes::facts::Access]) -> Vec<Accesses> {
    let mut rows: Vec<Accesses> = Vec::new();
    for a in all {
        let (memory, way) = (memory(k, a.mem), if a.store { "store" } else { "load" });
        match rows.iter_mut().find(|r| r.memory == memory && r.way == way && r.bits == a.bits) {
            Some(r) => r.count += 1,
            None => rows.push(Accesses { memory, way, bits: a.bits, count: 1 }),
        }
    }
    rows
}

/// What was touched between two barriers, in the order of the text.
#[derive(Default)]
struct Between {
    touched: Vec<(Obj, bool)>,
    at: Option<(Team, Span)>,
}

fn barriers(k: &Kernel, sources: &Sources) -> Vec<Barrier> {
    let mut parts = vec![Between::default()];
    walk(&k.stmts, &mut |s| {
        if let StmtKind::Op { op: Op::Barrier { team }, .. } = &s.kind {
            return parts.push(Between { at: Some((*team, s.span)), ..Between::default() });
        }
        let Some(part) = parts.last_mut() else { return };
        for e in stmt_effects(&s.kind, &Ctx { kernel: k, team: None, span: s.span }) {
            if matches!(e.obj, Obj::Shared(_) | Obj::Global(_)) {
                part.touched.push((e.obj, e.kind != Kind::Read));
            }
        }
    });
    let mut looped = Vec::new();
    walk(&k.stmts, &mut |s| {
        if matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. }) {
            let barrier =
                |s: &pantile_ir::program::Stmt| matches!(s.kind, StmtKind::Op { op: Op::Barrier { .. }, .. });
            for block in s.kind.blocks() {
                walk(block, &mut |s| looped.extend(barrier(s).then_some(s.span)));
            }
        }
    });
    let pairs = parts.windows(2).filter_map(|w| {
        let (team, span) = w[1].at?;
        let line = (span.end > 0).then(|| sources.line_col(span).0);
        let team = match team {
            Team::Warp => "warp",
            Team::Group => "group",
            Team::Cluster => "cluster",
            Team::Block => "block",
            Team::Named(_) => "team",
        };
        let reason = why(k, &w[0], &w[1]).unwrap_or_else(|| match looped.contains(&span) {
            true => {
                "what a step of the loop touches, the step before has touched, or memory is used anew".into()
            }
            false => "the text has it; nothing that threads share is touched on both of its sides".into(),
        });
        Some(Barrier { team, line, why: reason })
    });
    pairs.collect()
}

/// The first memory that both sides touch, one of them writing.
fn why(k: &Kernel, before: &Between, after: &Between) -> Option<String> {
    for (obj, writes) in &before.touched {
        let others = after.touched.iter().filter(|(o, w)| o == obj && (*writes || *w));
        // a read of what was written says more than a second write
        let Some((_, second)) = others.min_by_key(|(_, w)| *w) else { continue };
        let name = match obj {
            Obj::Shared(b) => k.buffers[*b].name.clone(),
            Obj::Global(a) => k.args[*a].name.clone(),
            _ => continue,
        };
        let word = |w: bool| if w { "written" } else { "read" };
        return Some(format!("`{name}` is {} before and {} after", word(*writes), word(*second)));
    }
    None
}
