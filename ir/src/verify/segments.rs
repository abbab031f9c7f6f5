//! The ranges of one loop: each begins where the one before ends, and the whole team runs them together.

use super::affine::{Canon, Lets};
use super::uniform::Uniform;
use super::{Level, Verifier};
use crate::codes;
use crate::program::*;
use std::collections::HashMap;

pub(super) fn kernel(v: &mut Verifier, uniform: &Uniform) {
    let k = v.kernel;
    block(v, uniform, &k.stmts, Level::Block);
}

/// `team` is the least that tile statements belong to here.
fn block<'a>(v: &mut Verifier<'a, '_>, uniform: &Uniform, stmts: &'a Block, team: Level) {
    for s in stmts {
        match &s.kind {
            StmtKind::For { segments, .. } if segments.len() > 1 => {
                follow(v, segments);
                together(v, uniform, segments, team);
            }
            StmtKind::Roles(roles) => {
                for r in roles {
                    block(v, uniform, &r.body, if r.group.is_some() { Level::Group } else { Level::Block });
                }
                continue;
            }
            _ => {}
        }
        for inner in s.kind.blocks() {
            block(v, uniform, inner, team);
        }
    }
}

fn follow(v: &mut Verifier, segments: &[Segment]) {
    let lets = Lets::of(v.kernel);
    let canon = Canon { body: v.body(), lets: &lets, names: HashMap::new() };
    for pair in segments.windows(2) {
        let (end, start) = (pair[0].hi, pair[1].lo);
        if end == start || canon.text_of(end).is_some_and(|t| Some(t) == canon.text_of(start)) {
            continue;
        }
        let (place, first) = (v.span(start), v.span(end));
        v.error(codes::SEGMENTS, place, "this range does not begin where the one before ends")
            .also(first, "the one before ends here")
            .help("write `seg(a..b; b..c)`, or a loop of its own for each range");
    }
}

fn together(v: &mut Verifier, uniform: &Uniform, segments: &[Segment], team: Level) {
    for e in segments.iter().flat_map(|s| [s.lo, s.hi, s.step]) {
        if uniform.info.expr(e).level < team {
            let place = v.span(e);
            v.error(codes::SEGMENTS, place, "threads of one team would change range at different steps")
                .help("the ends of the ranges are the same for the whole team: use grid indices, dims and elements of `in` tensors at such indices");
        }
    }
}
