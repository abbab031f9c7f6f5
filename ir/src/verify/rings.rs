//! Rings across roles: both sides run the same steps, and there are slots enough, so nobody waits for ever.

use super::affine::{Canon, Lets};
use super::{Verifier, tokens::Held};
use crate::codes;
use crate::program::*;
use crate::span::Span;
use std::collections::HashMap;

pub fn kernel(v: &mut Verifier, held: &Held) {
    let k = v.kernel;
    if k.rings.is_empty() {
        return;
    }
    let lets = Lets::of(k);
    let mut sites = Sites {
        canon: Canon { body: &k.body, lets: &lets, names: HashMap::new() },
        path: Vec::new(),
        depth: 0,
        found: Vec::new(),
    };
    sites.block(&k.stmts);
    let found = sites.found;
    for (id, ring) in k.rings.iter() {
        let of = |writes: bool| -> Vec<&Site> {
            found.iter().filter(|s| s.ring == id && s.writes == writes).collect()
        };
        trips(v, ring, k.rings.span(id), &of(true), &of(false));
        let need = held.get(&id).map_or(0, |n| n + 1);
        if ring.slots < need {
            let message = format!(
                "`{}` has {} slots, but its reader holds {} at a time",
                ring.name,
                ring.slots,
                need - 1
            );
            v.error(codes::RING_SLOTS, k.rings.span(id), message)
                .help(format!("declare at least {need}: `ring {}[{need}] ...`", ring.name))
                .note("with fewer the producer waits for a slot that the consumer keeps until the next is filled");
        }
    }
}

/// Steps are compared as text: loops by their bounds, conditions by their form.
fn trips(v: &mut Verifier, ring: &Ring, place: Span, fills: &[&Site], reads: &[&Site]) {
    let unknown = |s: &&&Site| s.path.is_none();
    if fills.iter().any(|s| unknown(&s)) || reads.iter().any(|s| unknown(&s)) {
        return;
    }
    let same = fills.len() == reads.len() && fills.iter().zip(reads).all(|(a, b)| a.path == b.path);
    if same {
        return;
    }
    let differ = fills.iter().zip(reads).find(|(a, b)| a.path != b.path);
    let (fill, read) = match differ {
        Some((a, b)) => (Some(a.span), Some(b.span)),
        None => (fills.first().map(|s| s.span), reads.first().map(|s| s.span)),
    };
    let message = format!("the two sides of `{}` do not run the same steps", ring.name);
    let mut report = v.error(codes::RING_TRIPS, read.or(fill).unwrap_or(place), message);
    if let (Some(fill), Some(_)) = (fill, read) {
        report = report.also(fill, "filled here, in other loops or under other conditions");
    }
    report.help("write the same loops, with the same bounds, around `acquire` and `wait`");
}

struct Site {
    ring: RingId,
    writes: bool,
    /// Loops and conditions around it; `None` if they have no canonical form.
    path: Option<Vec<String>>,
    span: Span,
}

struct Sites<'a> {
    canon: Canon<'a>,
    path: Vec<Option<String>>,
    depth: usize,
    found: Vec<Site>,
}

impl Sites<'_> {
    fn block(&mut self, stmts: &Block) {
        for s in stmts {
            match &s.kind {
                StmtKind::Op { op: op @ (Op::Acquire { ring } | Op::Wait { ring }), .. } => {
                    let path = self.path.iter().cloned().collect();
                    let writes = matches!(op, Op::Acquire { .. });
                    self.found.push(Site { ring: *ring, writes, path, span: s.span });
                }
                StmtKind::If { cond, then, other } => {
                    let text = self.canon.text_of(*cond);
                    self.inside(text.as_ref().map(|t| format!("if {t}")), then);
                    self.inside(text.map(|t| format!("else {t}")), other);
                }
                StmtKind::For { var, named, segments, body, .. } => {
                    let parts: Option<Vec<String>> = segments
                        .iter()
                        .flat_map(|s| [s.lo, s.hi, s.step].into_iter().chain(s.values.iter().copied()))
                        .map(|e| self.canon.text_of(e))
                        .collect();
                    self.canon.names.insert(*var, format!("step{}", self.depth));
                    for (i, &l) in named.iter().enumerate() {
                        self.canon.names.insert(l, format!("part{}_{i}", self.depth));
                    }
                    self.inside(parts.map(|p| format!("for {}", p.join(" "))), body);
                }
                StmtKind::While { body, .. } => self.inside(None, body),
                StmtKind::Parallel { body, .. } => self.inside(None, body),
                StmtKind::Roles(roles) => {
                    for r in roles {
                        let outer = std::mem::take(&mut self.depth);
                        self.block(&r.body);
                        self.depth = outer;
                    }
                }
                _ => {}
            }
        }
    }

    fn inside(&mut self, part: Option<String>, body: &Block) {
        self.path.push(part);
        self.depth += 1;
        self.block(body);
        self.depth -= 1;
        self.path.pop();
    }
}
