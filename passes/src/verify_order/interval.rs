//! What happens between two barriers of the block. Nothing before the first can meet anything behind it, so equal
//! intervals are looked at once, however often and on however many ways they come.

use super::shadow::{Ahead, Found, Owned, Shadow};
use super::values::{Found as Value, OPEN};
use super::walk::Mask;
use pantile_ir::effects::{Kind, Obj};
use pantile_ir::hash::{Map, Words};
use pantile_ir::program::Kernel;
use pantile_ir::span::Span;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Two touches that should not meet as they do.
pub enum Fault {
    /// of one place, by two threads, with no barrier between them
    Race { obj: Obj, threads: [usize; 2], spans: [Span; 2] },
    /// a read of what another object wrote over
    Other { mine: Obj, other: Obj, span: Span },
}

/// Touches of one statement come one after the other and have its span.
enum Event {
    Statement(Span),
    Touch {
        object: usize,
        index: Option<SmallVec<[Value; 2]>>,
        kind: Kind,
        mask: Mask,
        /// elements side by side in the last axis
        lanes: u64,
    },
    /// these threads' warps wait
    Wait(Mask),
}

pub struct Intervals {
    shadow: Shadow,
    warp: usize,
    /// of the interval that is open
    events: Vec<Event>,
    hash: Words,
    /// intervals without a fault, by their hash and whose data memory held before, and whose it holds after them
    known: Map<(u64, u64), Option<Owned>>,
}

impl Intervals {
    pub fn new(k: &Kernel, threads: usize, warp: usize) -> Intervals {
        let shadow = Shadow::new(k, threads, warp);
        Intervals { shadow, warp, events: Vec::new(), hash: Words::default(), known: Map::default() }
    }

    /// A run from the start: nobody has touched anything.
    pub fn restart(&mut self) {
        self.forget();
        self.shadow.restart();
    }

    /// Nothing has happened since the last barrier.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    fn forget(&mut self) {
        self.events.clear();
        self.hash = Words::default();
    }

    /// A statement that touches begins.
    pub fn statement(&mut self, span: Span) {
        self.events.push(Event::Statement(span));
        // every other part of an event begins with a smaller number
        self.hash.write_u64(u64::MAX);
    }

    pub fn touch(
        &mut self,
        obj: Obj,
        index: Option<SmallVec<[Value; 2]>>,
        kind: Kind,
        mask: &Mask,
        lanes: u64,
    ) {
        let Some(object) = self.shadow.object(obj) else { return };
        (object, kind, mask, index.is_some(), lanes).hash(&mut self.hash);
        index.iter().flatten().for_each(|v| self.hash.write_u64(v.hash));
        self.events.push(Event::Touch { object, index, kind, mask: mask.clone(), lanes });
    }

    /// Warps of these threads wait.
    pub fn wait_warps(&mut self, mask: &Mask) {
        (u64::MAX - 1, mask).hash(&mut self.hash);
        self.events.push(Event::Wait(mask.clone()));
    }

    /// All that later touches may find, the same for two runs that find the same.
    pub fn state(&self, h: &mut impl Hasher) {
        (self.hash.finish(), self.shadow.owned()).hash(h);
    }

    /// The block waits or ends.
    pub fn close(&mut self) -> Option<Fault> {
        if self.is_empty() {
            return None;
        }
        let key = (self.hash.finish(), self.shadow.owned());
        let fault = match self.known.get(&key) {
            Some(Some(after)) => {
                self.shadow.set_owned(after);
                None
            }
            Some(None) => None,
            None => self.look(),
        };
        if fault.is_none() {
            let after = || (self.shadow.owned() != key.1).then(|| self.shadow.all_owned());
            self.known.entry(key).or_insert_with(after);
        }
        self.forget();
        fault
    }

    fn look(&mut self) -> Option<Fault> {
        let Intervals { shadow, warp, events, .. } = self;
        let written = events.iter().filter_map(|e| match e {
            Event::Touch { object, kind, .. } if *kind != Kind::Read => Some(*object),
            _ => None,
        });
        // what is only read here cannot be met wrongly
        let counts = shadow.concerned(written);
        let mut ahead = Ahead::default();
        for event in events.iter() {
            if let Event::Touch { object, index, kind, .. } = event
                && counts[*object]
            {
                ahead.add(*kind);
                ahead.opens |= index.as_ref().is_none_or(|list| list.iter().any(|v| v.open));
            }
        }
        let mut spans: Vec<Span> = Vec::new();
        shadow.wait(ahead);
        for (object, ranges) in boxes(shadow, events, &counts) {
            shadow.frame(object, &ranges);
        }
        for event in events.iter() {
            match event {
                Event::Statement(span) => {
                    spans.push(*span);
                    shadow.tick();
                }
                Event::Wait(mask) => {
                    let warps = mask.of.chunks(*warp).enumerate();
                    warps
                        .filter(|(_, m)| m.iter().any(|&m| m != Mask::GONE))
                        .for_each(|(w, _)| shadow.wait_warp(w));
                }
                Event::Touch { object, index, kind, mask, lanes } if counts[*object] => {
                    let wide = Wide { object: *object, index: index.as_deref(), kind: *kind, lanes: *lanes };
                    if let Some(fault) = wide.all_threads(shadow, mask, &spans) {
                        return Some(fault);
                    }
                }
                Event::Touch { .. } => {}
            }
        }
        None
    }
}

/// Of each tensor that matters, the box of all elements that are touched, where it is known.
fn boxes(shadow: &Shadow, events: &[Event], counts: &[bool]) -> Vec<(usize, Vec<(i64, i64)>)> {
    let mut all: Vec<Option<Vec<(i64, i64)>>> = vec![None; counts.len()];
    for event in events {
        let Event::Touch { object, index: Some(index), lanes, .. } = event else { continue };
        if !counts[*object] || !shadow.is_tensor(*object) || index.iter().any(|v| v.open) {
            continue;
        }
        let mut here: Vec<(i64, i64)> = index.iter().map(|v| v.range).collect();
        if let Some(last) = here.last_mut() {
            last.1 += *lanes as i64 - 1;
        }
        let known = all[*object].get_or_insert_with(|| here.clone());
        for (a, b) in known.iter_mut().zip(here) {
            *a = (a.0.min(b.0), a.1.max(b.1));
        }
    }
    all.into_iter().enumerate().filter_map(|(o, ranges)| Some((o, ranges?))).collect()
}

struct Wide<'a> {
    object: usize,
    index: Option<&'a [Value]>,
    kind: Kind,
    lanes: u64,
}

impl Wide<'_> {
    fn all_threads(&self, shadow: &mut Shadow, mask: &Mask, spans: &[Span]) -> Option<Fault> {
        let Wide { object, index, kind, lanes } = *self;
        let mut at = vec![0; index.map_or(0, <[Value]>::len)];
        for t in (0..mask.of.len()).filter(|&t| mask.of[t] != Mask::GONE) {
            let new = shadow.mark(t);
            let mut known = index.is_some();
            for (a, v) in at.iter_mut().zip(index.into_iter().flatten()) {
                *a = v.val.at(t);
                known &= *a != OPEN;
            }
            let met = match known {
                true => shadow.touch(object, &at, lanes, kind, new, mask.of[t] == Mask::SURE),
                false => shadow.touch_any(object, kind, new),
            };
            let span = |time: u32| spans[time as usize - 1];
            let obj = shadow.obj(object);
            match met {
                Some(Found::Race(other)) => {
                    let (threads, spans) = ([other.thread(), t], [span(other.time), span(new.time)]);
                    return Some(Fault::Race { obj, threads, spans });
                }
                Some(Found::Other(o)) => {
                    return Some(Fault::Other { mine: obj, other: shadow.obj(o), span: span(new.time) });
                }
                None => {}
            }
        }
        None
    }
}
