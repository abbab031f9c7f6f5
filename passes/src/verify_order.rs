//! Replay of a final program: is every meeting of threads in memory ordered by a barrier?
//!
//! One block runs with all its threads and without data. Indices and conditions are computed for each thread from
//! thread numbers, loop variables, constants and sample dims; what depends on data is unknown: an unknown index may be
//! any of its memory, an unknown condition goes both ways. Every byte of the arena remembers who touched it and after
//! how many barriers, so that buffers that share bytes are seen to meet. Nothing here asks the ordering pass.

use crate::pipeline::Cx;
use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::effects::{Ctx, Kind, Obj, Part, stmt_effects};
use pantile_ir::layout::{Axis, Shared, contiguous};
use pantile_ir::program::*;
use pantile_ir::span::Span;
use std::collections::HashMap;

/// Ways through unknown conditions and trip counts that are tried.
const PATHS: usize = 64;
/// Steps of a loop that are walked.
const TRIPS: i64 = 3;
/// What each dim is taken to be.
const DIM: i64 = 97;

pub fn run(program: Program, cx: &Cx) -> Result<Program, Diagnostics> {
    let warp = cx.arch.facts.threads.warp_size.as_ref().map_or(1, |w| w.value).max(1) as usize;
    for (_, k) in program.kernels.iter() {
        let mut script = Vec::new();
        for _ in 0..PATHS {
            let mut r = Replay::new(k, warp, script);
            let all = vec![true; r.threads];
            r.block(&k.stmts, &all);
            if let Some(d) = r.fault {
                return Err(std::iter::once(d).collect());
            }
            // the next way: the last choice that has another side
            script = r.script;
            script.truncate(r.at);
            while script.last().is_some_and(|&(now, last)| now == last) {
                script.pop();
            }
            match script.last_mut() {
                Some((now, _)) => *now += 1,
                None => break,
            }
        }
    }
    Ok(program)
}

#[derive(Clone, Copy, PartialEq)]
struct Mark {
    thread: usize,
    blocks: u32,
    warps: u32,
    kind: Kind,
    span: Span,
}

/// A byte of the arena (under no argument's number), or an element of a tensor.
type Cell = (usize, i64);

struct Replay<'a> {
    k: &'a Kernel,
    threads: usize,
    warp: usize,
    names: HashMap<LocalId, Vec<Option<i64>>>,
    /// barriers passed by the block, and by each warp
    blocks: u32,
    warps: Vec<u32>,
    cells: HashMap<Cell, Vec<Mark>>,
    /// choices of this way: the one taken, and the last there is
    script: Vec<(i64, i64)>,
    at: usize,
    fault: Option<Diagnostic>,
    leave: bool,
}

impl<'a> Replay<'a> {
    fn new(k: &'a Kernel, warp: usize, script: Vec<(i64, i64)>) -> Self {
        let threads = k.threads.as_ref().map_or(1, Threads::count) as usize;
        let mut names = HashMap::new();
        let mut inner = 1;
        for &(axis, n) in k.threads.iter().flat_map(|t| t.axes.iter().rev()) {
            let n = n.max(1) as usize;
            names.insert(axis, (0..threads).map(|t| Some((t / inner % n) as i64)).collect());
            inner *= n;
        }
        for &l in &k.grid.locals {
            names.insert(l, vec![Some(0); threads]);
        }
        let warps = vec![0; threads.div_ceil(warp)];
        let (cells, fault) = (HashMap::new(), None);
        Replay { k, threads, warp, names, blocks: 0, warps, cells, script, at: 0, fault, leave: false }
    }

    fn choose(&mut self, last: i64) -> i64 {
        if self.at == self.script.len() {
            self.script.push((0, last));
        }
        self.at += 1;
        self.script[self.at - 1].0
    }

    fn eval(&self, e: ExprId, t: usize) -> Option<i64> {
        let body = &self.k.body;
        match &body.exprs[e] {
            Expr::Const { elem, bits } if elem.is_integer() || *elem == Elem::BOOL => Some(*bits as i64),
            Expr::Local(l) => self.names.get(l).and_then(|v| v[t]),
            Expr::Dim(_) => Some(DIM),
            Expr::Cast { to, value, .. } if to.is_integer() => self.eval(*value, t),
            Expr::Unary(UnOp::Neg, a) => self.eval(*a, t)?.checked_neg(),
            Expr::Unary(UnOp::Not, a) if *body.type_of(e) == Type::BOOL => self.eval(*a, t).map(|v| 1 - v),
            Expr::Binary(op @ (BinOp::LogicalAnd | BinOp::LogicalOr), a, b) => {
                let decides = i64::from(*op == BinOp::LogicalOr);
                match (self.eval(*a, t), self.eval(*b, t)) {
                    (Some(x), _) | (_, Some(x)) if x == decides => Some(decides),
                    (Some(_), Some(_)) => Some(1 - decides),
                    _ => None,
                }
            }
            Expr::Binary(op, a, b) => arithmetic(*op, self.eval(*a, t)?, self.eval(*b, t)?),
            Expr::Select { cond, then, other } => {
                let side = if self.eval(*cond, t)? != 0 { then } else { other };
                self.eval(*side, t)
            }
            Expr::Math { f, args, .. } => {
                let v: Vec<i64> = args.iter().map(|&a| self.eval(a, t)).collect::<Option<_>>()?;
                match (f, &v[..]) {
                    (MathFn::Min, [a, b]) => Some(*a.min(b)),
                    (MathFn::Max, [a, b]) => Some(*a.max(b)),
                    (MathFn::CeilDiv, [a, b]) if *b > 0 => Some((a + b - 1).div_euclid(*b)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn set(&mut self, l: LocalId, value: Option<ExprId>, mask: &[bool]) {
        let new: Vec<_> = (0..self.threads).map(|t| value.and_then(|e| self.eval(e, t))).collect();
        let old = self.names.entry(l).or_insert_with(|| vec![None; mask.len()]);
        (0..mask.len()).filter(|&t| mask[t]).for_each(|t| old[t] = new[t]);
    }

    fn block(&mut self, block: &'a Block, mask: &[bool]) {
        for s in block {
            if self.fault.is_some() || self.leave || !mask.contains(&true) {
                return;
            }
            self.stmt(s, mask);
        }
    }

    fn stmt(&mut self, s: &'a Stmt, mask: &[bool]) {
        self.touch(s, mask);
        match &s.kind {
            StmtKind::Let { local, value } | StmtKind::Assign { local, value } => {
                self.set(*local, Some(*value), mask)
            }
            StmtKind::Update { local, .. } => self.set(*local, None, mask),
            StmtKind::Op { op: Op::Barrier { team }, .. } => self.barrier(*team, mask, s.span),
            StmtKind::Op { results, .. } => results.iter().for_each(|&l| self.set(l, None, mask)),
            StmtKind::If { cond, then, other } => {
                let values: Vec<_> = (0..self.threads).map(|t| self.eval(*cond, t)).collect();
                let unknown = (0..self.threads).any(|t| mask[t] && values[t].is_none());
                let (mut yes, mut no) = (mask.to_vec(), mask.to_vec());
                match unknown {
                    true if self.choose(1) == 0 => no.fill(false),
                    true => yes.fill(false),
                    false => (0..self.threads).filter(|&t| mask[t]).for_each(|t| {
                        yes[t] = values[t] != Some(0);
                        no[t] = !yes[t];
                    }),
                }
                self.block(then, &yes);
                self.block(other, &no);
            }
            StmtKind::For { var, segments, body, .. } => {
                for g in segments {
                    let bound = |r: &Self, e, t| r.eval(e, t);
                    let known = (0..self.threads).all(|t| {
                        !mask[t] || (bound(self, g.lo, t).is_some() && bound(self, g.hi, t).is_some())
                    });
                    let trips = if known { TRIPS } else { self.choose(TRIPS) };
                    let step = self.eval(g.step, 0).unwrap_or(1);
                    for i in 0..trips {
                        let at: Vec<Option<i64>> =
                            (0..self.threads).map(|t| Some(self.eval(g.lo, t)? + i * step)).collect();
                        let on: Vec<bool> = (0..self.threads)
                            .map(|t| mask[t] && (!known || at[t] < self.eval(g.hi, t)))
                            .collect();
                        self.names.insert(*var, at);
                        self.block(body, &on);
                        if std::mem::take(&mut self.leave) {
                            break;
                        }
                    }
                }
            }
            StmtKind::While { body, .. } => {
                for _ in 0..self.choose(TRIPS) {
                    self.block(body, mask);
                    if std::mem::take(&mut self.leave) {
                        break;
                    }
                }
            }
            StmtKind::Break | StmtKind::Continue => self.leave = true,
            _ => s.kind.blocks().iter().for_each(|b| self.block(b, mask)),
        }
    }

    fn barrier(&mut self, team: Team, mask: &[bool], span: Span) {
        match team {
            Team::Warp => (0..self.warps.len()).for_each(|w| self.warps[w] += 1),
            _ if mask.contains(&false) => {
                let message = "only a part of the block comes to this barrier";
                self.fault = Some(Diagnostic::error(codes::UNORDERED, span, message));
            }
            _ => self.blocks += 1,
        }
    }

    fn touch(&mut self, s: &Stmt, mask: &[bool]) {
        let ctx = Ctx { kernel: self.k, team: None, span: s.span };
        for a in stmt_effects(&s.kind, &ctx) {
            let Part::Element(index) = &a.part else { continue };
            for t in (0..self.threads).filter(|&t| mask[t]) {
                let at: Option<Vec<i64>> = index.iter().map(|&e| self.eval(e, t)).collect();
                // an index that depends on data could be any: nothing is certain
                let Some(at) = at else { continue };
                for cell in self.bytes(a.obj, &at) {
                    self.mark(cell, t, a.kind, s.span);
                }
            }
        }
    }

    fn bytes(&self, obj: Obj, at: &[i64]) -> Vec<Cell> {
        match obj {
            Obj::Shared(id) => {
                let b = &self.k.buffers[id];
                let size = Elem::D(b.elem).bytes();
                let shape: Vec<u64> = b.shape.iter().map(|&n| n.into()).collect();
                if at.iter().zip(&shape).any(|(&i, &n)| i < 0 || i as u64 >= n) {
                    return Vec::new();
                }
                let plain = || Shared::plain(contiguous(&shape, size), 1);
                let place = b.layout.clone().unwrap_or_else(plain);
                let start = place.layout.offset[Axis::Mem];
                let index: Vec<u64> = at.iter().map(|&i| i as u64).collect();
                let inner = place.swizzled(place.layout.at(&index)[Axis::Mem] - start);
                let first = (start + inner) as i64;
                // one object for the whole arena
                (first..first + size as i64).map(|b| (usize::MAX, b)).collect()
            }
            Obj::Global(arg) => match &self.k.args[arg].kind {
                ArgKind::Tensor(t) if t.mode != Mode::In => {
                    vec![(arg.index(), at.iter().fold(0i64, |n, &i| n.wrapping_mul(1 << 20).wrapping_add(i)))]
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn mark(&mut self, cell: Cell, thread: usize, kind: Kind, span: Span) {
        let new = Mark { thread, blocks: self.blocks, warps: self.warps[thread / self.warp], kind, span };
        let marks = self.cells.entry(cell).or_default();
        marks.retain(|m| m.blocks == new.blocks);
        let quiet = |a: Kind, b: Kind| {
            matches!((a, b), (Kind::Read, Kind::Read) | (Kind::Atomic(_), Kind::Atomic(_)))
        };
        let ordered = |m: &Mark| {
            m.thread == thread || (m.thread / self.warp == thread / self.warp && m.warps != new.warps)
        };
        if let Some(m) = marks.iter().find(|m| !quiet(m.kind, kind) && !ordered(m)) {
            let message = "two threads meet here in memory, and no barrier lies between them";
            let d = Diagnostic::error(codes::UNORDERED, span, message).also(m.span, "the other access");
            self.fault = Some(d);
        }
        if !marks.contains(&new) {
            marks.push(new);
        }
    }
}

fn arithmetic(op: BinOp, a: i64, b: i64) -> Option<i64> {
    Some(match op {
        BinOp::Add => a.checked_add(b)?,
        BinOp::Sub => a.checked_sub(b)?,
        BinOp::Mul => a.checked_mul(b)?,
        BinOp::Div if b > 0 => a.div_euclid(b),
        BinOp::Rem if b > 0 => a.rem_euclid(b),
        BinOp::Shl if (0..31).contains(&b) => a.checked_mul(1 << b)?,
        BinOp::Shr if (0..63).contains(&b) => a >> b,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Eq => i64::from(a == b),
        BinOp::Ne => i64::from(a != b),
        BinOp::Lt => i64::from(a < b),
        BinOp::Le => i64::from(a <= b),
        BinOp::Gt => i64::from(a > b),
        BinOp::Ge => i64::from(a >= b),
        _ => return None,
    })
}
