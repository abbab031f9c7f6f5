//! Indices that lie outside for every value they can have.

use super::affine::{Affine, Canon, Lets};
use super::{Verifier, each_below, operands_of};
use crate::codes;
use crate::program::*;
use crate::span::Span;
use crate::typing;
use std::collections::HashMap;
use std::rc::Rc;

pub fn kernel(v: &mut Verifier) {
    let k = v.kernel;
    let lets = Lets::of(k);
    let canon = Canon { body: &k.body, lets: &lets, names: HashMap::new() };
    let mut ranges: HashMap<Rc<str>, (i64, i64)> = HashMap::new();
    for &(l, n) in k.threads.iter().flat_map(|t| &t.axes) {
        ranges.insert(term(l), (0, i64::from(n) - 1));
    }
    for &l in &k.grid.locals {
        ranges.insert(term(l), (0, i64::MAX));
    }
    for (id, _) in k.dims.iter() {
        ranges.insert(format!("dim{}()", id.index()).into(), (0, i64::MAX));
    }
    let mut check = Check { v, canon, ranges };
    check.block(&k.stmts);
}

fn term(l: LocalId) -> Rc<str> {
    format!("local{}", l.index()).into()
}

struct Check<'v, 'a, 'o, 'c> {
    v: &'v mut Verifier<'a, 'o>,
    canon: Canon<'c>,
    /// What each term can be.
    ranges: HashMap<Rc<str>, (i64, i64)>,
}

impl<'a> Check<'_, 'a, '_, '_> {
    fn block(&mut self, stmts: &'a Block) {
        for s in stmts {
            self.stmt(s);
            let var = match &s.kind {
                StmtKind::For { var, segments, .. } => self.loop_range(segments).map(|r| (*var, r)),
                _ => None,
            };
            if let Some((var, range)) = var {
                self.ranges.insert(term(var), range);
            }
            for inner in s.kind.blocks() {
                self.block(inner);
            }
        }
    }

    fn loop_range(&self, segments: &[Segment]) -> Option<(i64, i64)> {
        let mut all: Option<(i64, i64)> = None;
        for s in segments {
            let (lo, _) = self.range(s.lo)?;
            let hi = self.range(s.hi)?.1.saturating_sub(1);
            all = Some(all.map_or((lo, hi), |(a, b)| (a.min(lo), b.max(hi))));
        }
        all.filter(|(lo, hi)| lo <= hi)
    }

    fn range(&self, e: ExprId) -> Option<(i64, i64)> {
        self.bounds(&self.canon.affine(e)?)
    }

    fn bounds(&self, a: &Affine) -> Option<(i64, i64)> {
        let (mut lo, mut hi) = (a.constant, a.constant);
        for (term, &factor) in &a.terms {
            let &(min, max) = self.ranges.get(term)?;
            let (x, y) = (min.saturating_mul(factor), max.saturating_mul(factor));
            lo = lo.saturating_add(x.min(y));
            hi = hi.saturating_add(x.max(y));
        }
        Some((lo, hi))
    }

    fn stmt(&mut self, s: &Stmt) {
        let mut elements: Vec<(Mem, Args, Span)> = Vec::new();
        each_below(self.v.body(), &operands_of(&s.kind), |e, expr| {
            if let Expr::Element { mem, index, or: None } = expr {
                elements.push((*mem, index.clone(), self.v.span(e)));
            }
        });
        if let StmtKind::Store { mem, index, .. } = &s.kind {
            elements.push((*mem, index.clone(), s.span));
        }
        for (mem, index, span) in elements {
            let span = if span == Span::default() { s.span } else { span };
            self.element(mem, &index, span);
        }
        let StmtKind::Op { op, .. } = &s.kind else { return };
        match op {
            Op::Read { from, .. } => self.region(from, s.span),
            Op::Write { to, .. } => self.region(to, s.span),
            Op::Atomic { at: Place::Region(r), .. } => self.region(r, s.span),
            Op::Atomic { at: Place::Element { mem, index }, .. } => self.element(*mem, index, s.span),
            Op::CopyAsync { from, to, .. } => {
                self.region(from, s.span);
                self.region(to, s.span);
            }
            _ => {}
        }
    }

    fn element(&mut self, mem: Mem, index: &[ExprId], span: Span) {
        // what passes put under conditions may stand where control never comes
        if self.v.program.stage > Stage::Scheduled {
            return;
        }
        let extents = typing::mem_extents(&self.v.ctx, mem).unwrap_or_default();
        for (axis, (&e, extent)) in index.iter().zip(extents).enumerate() {
            if let Some(past) = self.past_dim(mem, axis, e) {
                self.past(mem, axis, past, e, span);
                continue;
            }
            let Some((lo, hi)) = self.range(e) else { continue };
            let outside = hi < 0 || extent.is_some_and(|n| i64::try_from(n).is_ok_and(|n| lo >= n));
            if outside {
                self.outside(mem, axis, extent, (lo, hi), e, span);
            }
        }
    }

    /// How far an index lies past the symbolic extent of its axis, whatever the dims are.
    fn past_dim(&self, mem: Mem, axis: usize, e: ExprId) -> Option<i64> {
        let dim = *self.v.tensor(mem)?.dims.get(axis)?;
        let distance = self.canon.affine(e)?.distance(&self.canon.affine(dim)?)?;
        (distance >= 0).then_some(distance)
    }

    fn past(&mut self, mem: Mem, axis: usize, by: i64, e: ExprId, span: Span) {
        let name = self.v.mem_name(mem);
        let place = self.place(e, span);
        let label = if by == 0 {
            "is the extent of the axis".to_owned()
        } else {
            format!("is the extent of the axis + {by}")
        };
        self.v
            .error(codes::OUTSIDE, place, format!("this index of `{name}` is outside"))
            .label(label)
            .help(format!("the last element of axis {axis} is at its extent - 1"));
    }

    fn place(&self, e: ExprId, other: Span) -> Span {
        match self.v.span(e) {
            s if s == Span::default() => other,
            s => s,
        }
    }

    fn region(&mut self, r: &Region, span: Span) {
        let extents = typing::mem_extents(&self.v.ctx, r.mem).unwrap_or_default();
        let fixed = !matches!(r.mem, Mem::Tensor(_));
        let axes = r.axes.iter().filter(|a| !matches!(a, RegionAxis::New));
        for (axis, (part, extent)) in axes.zip(extents).enumerate() {
            let extent_i = extent.and_then(|n| i64::try_from(n).ok());
            match part {
                RegionAxis::At(e) => {
                    let Some((lo, hi)) = self.range(*e) else { continue };
                    if hi < 0 || extent_i.is_some_and(|n| lo >= n) {
                        self.outside(r.mem, axis, extent, (lo, hi), *e, span);
                    }
                }
                RegionAxis::Span { start, len, limit, clip_low } => {
                    let Some((lo, hi)) = self.range(*start) else { continue };
                    let low = hi < 0 && !clip_low;
                    // memory of the block has no ragged edge unless it is written
                    let high = fixed
                        && limit.is_none()
                        && !clip_low
                        && extent_i.is_some_and(|n| lo.saturating_add(i64::from(*len)) > n);
                    if low || high {
                        self.outside(
                            r.mem,
                            axis,
                            extent,
                            (lo, hi.saturating_add(i64::from(*len) - 1)),
                            *start,
                            span,
                        );
                    }
                }
                RegionAxis::Gather { .. } | RegionAxis::New => {}
            }
        }
    }

    fn outside(
        &mut self,
        mem: Mem,
        axis: usize,
        extent: Option<u64>,
        (lo, hi): (i64, i64),
        e: ExprId,
        span: Span,
    ) {
        let name = self.v.mem_name(mem);
        let place = self.place(e, span);
        let range = match (lo, hi) {
            (lo, hi) if lo == hi => format!("is {lo}"),
            (lo, i64::MAX) => format!("is at least {lo}"),
            (i64::MIN, hi) => format!("is at most {hi}"),
            (lo, hi) => format!("runs from {lo} to {hi}"),
        };
        let has = extent.map_or(String::new(), |n| format!(", axis {axis} of `{name}` has {n} elements"));
        let help = if lo < 0 {
            "start at 0 or above; a halo below the edge is written `start +: n clip low`"
        } else {
            "make the range smaller, or the memory larger"
        };
        self.v
            .error(codes::OUTSIDE, place, format!("this index of `{name}` is outside"))
            .label(format!("{range}{has}"))
            .help(help);
    }
}
