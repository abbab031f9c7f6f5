//! What each stage has: which ops and statements, and which attributes they may or must carry.
//!
//! The language itself is stage `tile`; later stages lose what passes have resolved and gain what they decide.
//! [`OPS`] and [`ATTRIBUTES`] are the whole table.

use super::Verifier;
use crate::codes;
use crate::program::*;
use crate::span::Span;

/// The stages in which something may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    pub from: Stage,
    pub to: Stage,
}

const ALL: Stages = Stages { from: Stage::Tile, to: Stage::Final };
const TO_SCHEDULED: Stages = Stages { from: Stage::Tile, to: Stage::Scheduled };
const TO_THREADED: Stages = Stages { from: Stage::Tile, to: Stage::Threaded };
const FROM_SCHEDULED: Stages = Stages { from: Stage::Scheduled, to: Stage::Final };

impl Stages {
    pub fn holds(self, stage: Stage) -> bool {
        self.from <= stage && stage <= self.to
    }
}

macro_rules! table {
    ($($variant:ident $name:literal $stages:ident,)*) => {
        /// Each op: its name for people and the stages that have it.
        pub const OPS: &[(&str, Stages)] = &[$(($name, $stages)),*];

        fn row(op: &Op) -> (&'static str, Stages) {
            match op { $(Op::$variant { .. } => ($name, $stages)),* }
        }
    };
}

table! {
    Read "the read of a region" ALL,
    Write "the write of a region" ALL,
    Gemm "`@`" ALL,
    Reduce "`reduce`" ALL,
    Scan "`scan`" ALL,
    Fold "the update of a reducer" TO_THREADED,
    Join "the read of a reducer" TO_THREADED,
    AllReduce "`allreduce`" ALL,
    Shuffle "a shuffle" ALL,
    Vote "a vote" ALL,
    Once "`once`" TO_THREADED,
    Barrier "`barrier`" ALL,
    Atomic "an atomic" ALL,
    Print "`print`" ALL,
    Assert "`assert`" ALL,
    Acquire "`acquire`" ALL,
    Wait "`wait`" ALL,
    Commit "`commit`" ALL,
    Release "`release`" ALL,
    Await "`await`" ALL,
    Take "`take`" ALL,
    Pass "`pass`" ALL,
    CopyAsync "`copy.async`" ALL,
    Issue "`issue`" ALL,
    Fence "`fence`" ALL,
}

/// Statements and attributes that not every stage has.
pub const ATTRIBUTES: &[(&str, Stages)] = &[
    ("`pipelined`", TO_SCHEDULED),
    ("several ranges of one loop", FROM_SCHEDULED),
    ("a pipeline stage", FROM_SCHEDULED),
    ("a home of a tile", FROM_SCHEDULED),
    ("a layout of a tile", FROM_SCHEDULED),
    ("a team of a tile", FROM_SCHEDULED),
];

fn attribute(name: &str) -> Stages {
    ATTRIBUTES.iter().find(|(n, _)| *n == name).map_or(ALL, |&(_, s)| s)
}

pub(super) fn kernel(v: &mut Verifier) {
    let k = v.kernel;
    let mut list = Vec::new();
    walk(&k.stmts, &mut |s| list.push(s));
    for s in list {
        if s.stage.is_some() {
            has(v, "a pipeline stage", s.span);
        }
        match &s.kind {
            StmtKind::Op { op, .. } => {
                let (name, stages) = row(op);
                if !stages.holds(v.program.stage) {
                    v.error(
                        codes::STAGE_OP,
                        s.span,
                        format!("stage `{}` has no {name}", v.program.stage.name()),
                    );
                }
            }
            StmtKind::For { kind: LoopKind::Pipelined { .. }, .. } => has(v, "`pipelined`", s.span),
            _ => {}
        }
        if let StmtKind::For { segments, .. } = &s.kind {
            if segments.is_empty() {
                v.error(codes::STAGE_ATTRIBUTE, s.span, "this loop has no range");
            } else if segments.len() > 1 {
                has(v, "several ranges of one loop", s.span);
            }
        }
    }
    for (id, l) in k.body.locals.iter() {
        let span = k.body.locals.span(id);
        if l.home != Home::Open && l.home != Home::Fragment {
            has(v, "a home of a tile", span);
        }
        if l.layout.is_some() && l.home != Home::Fragment {
            has(v, "a layout of a tile", span);
        }
        if l.team.is_some() && l.home != Home::Fragment {
            has(v, "a team of a tile", span);
        }
    }
}

fn has(v: &mut Verifier, name: &str, span: Span) {
    let stages = attribute(name);
    if stages.holds(v.program.stage) {
        return;
    }
    let here = v.program.stage.name();
    let range = format!("it belongs to the stages `{}` to `{}`", stages.from.name(), stages.to.name());
    v.error(codes::STAGE_ATTRIBUTE, span, format!("stage `{here}` does not have {name}")).note(range);
}
