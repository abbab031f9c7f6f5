//! One launch: its bound parameters, memories, rings and clocks. Agents stand beside it, so that one of them can work
//! on it while the others wait.

use super::Options;
use super::fault::{Exec, fault};
use super::memory::{MemId, Memory};
use super::ring::Engines;
use super::rng::Rng;
use super::traits::Traits;
use crate::codes;
use crate::program::*;
use crate::span::Span;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

/// What a parameter stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    Scalar(u64),
    Memory(MemId),
}

/// What outlives a launch.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub prints: Vec<String>,
    /// Lines beyond those that are kept.
    pub more_prints: u64,
    pub steps: u64,
    /// Comparisons done so far to see whether a combiner is what it says, by combiner.
    pub combiner_checks: HashMap<usize, u32>,
}

/// A hash of a few words, quick and good enough for spans.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u32(u32::from(b)));
    }

    fn write_u32(&mut self, word: u32) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Spans that accesses refer to by number.
#[derive(Debug, Default)]
pub(super) struct Spans {
    all: Vec<Span>,
    numbers: HashMap<Span, u32, BuildHasherDefault<Mix>>,
}

impl Spans {
    pub fn number(&mut self, span: Span) -> u32 {
        if let Some(last) = self.all.last()
            && *last == span
        {
            return self.all.len() as u32 - 1;
        }
        *self.numbers.entry(span).or_insert_with(|| {
            self.all.push(span);
            self.all.len() as u32 - 1
        })
    }

    pub fn all(&self) -> &[Span] {
        &self.all
    }

    pub fn get(&self, number: u32) -> Option<Span> {
        self.all.get(number as usize).copied()
    }
}

pub(super) struct Run<'p> {
    pub program: &'p Program,
    pub kernel: &'p Kernel,
    pub options: &'p Options,
    pub session: Session,
    pub traits: Rc<Traits>,
    pub dims: Vec<i64>,
    pub args: Vec<Bound>,
    pub mems: Vec<Memory>,
    /// Memories that outlive a block.
    pub globals: usize,
    pub engines: Engines<'p>,
    pub rng: Rng,
    /// The last epoch given out.
    pub epoch: u32,
    pub block_epoch: u32,
    pub extents: Vec<i64>,
    /// First epoch and row-major number of each block so far.
    pub block_starts: Vec<(u32, u32)>,
    pub spans: Spans,
}

impl Run<'_> {
    pub fn next_epoch(&mut self) -> Exec<u32> {
        self.epoch = self.epoch.checked_add(1).ok_or_else(too_long)?;
        Ok(self.epoch)
    }

    /// Elements of the memories of the block that runs.
    pub fn held(&self) -> usize {
        self.mems[self.globals..].iter().map(|m| m.bits.len()).sum()
    }

    /// Counts one step against the limit.
    pub fn tick(&mut self) -> Exec<()> {
        self.session.steps += 1;
        if self.session.steps > self.options.max_steps {
            return Err(too_long().value("the limit", format!("{} statements", self.options.max_steps)));
        }
        Ok(())
    }

    /// Lanes in the linear order of threads, or in another order where the program may not care.
    pub fn any_order(&mut self, mut lanes: Vec<u32>) -> Vec<u32> {
        if self.options.seed != 0 {
            self.rng.shuffle(&mut lanes);
        }
        lanes
    }
}

fn too_long() -> Box<super::Fault> {
    fault(codes::STEP_LIMIT, "the program does not end within the allowed number of steps")
        .help("look for a loop whose condition never becomes false, or raise the limit")
}
