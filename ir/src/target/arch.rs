//! What an architecture and a chip are, once read, and the questions that other parts ask of them.

use super::known::{Entry, Fact, Known};
use super::matrix::{MatrixUnit, MoveUnit};
use super::sections::{EngineFacts, Facts, Group};
use crate::layout::{Banks, BlockMove, Prices, Symbols};
use crate::span::Span;
use pantile_abi::DType;
use std::sync::Arc;

/// Which back end turns programs into code for an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Backend {
    Interp,
    Cpu,
    Cuda,
    Musa,
}

impl Backend {
    pub const ALL: [Backend; 4] = [Backend::Interp, Backend::Cpu, Backend::Cuda, Backend::Musa];

    pub const fn name(self) -> &'static str {
        match self {
            Backend::Interp => "interp",
            Backend::Cpu => "cpu",
            Backend::Cuda => "cuda",
            Backend::Musa => "musa",
        }
    }

    pub fn from_name(name: &str) -> Option<Backend> {
        Backend::ALL.into_iter().find(|b| b.name() == name)
    }
}

/// An architecture with everything it inherits.
#[derive(Clone, Debug)]
pub struct Arch {
    pub name: String,
    pub backend: Backend,
    /// A few words on what it is or lacks.
    pub note: Option<String>,
    /// Chosen where a target names only the back end.
    pub default: bool,
    /// Itself first, then what it inherits from, nearest first. Intrinsics of the text look names up along it.
    pub chain: Vec<String>,
    /// Where it is declared.
    pub span: Span,
    pub facts: Facts,
    pub engines: Vec<Engine>,
    pub atomics: Vec<Atomic>,
    pub matrix: Vec<MatrixUnit>,
    pub moves: Vec<MoveUnit>,
    /// Multiprocessors, or cores, where its chips state them and agree.
    pub processors: Option<u32>,
}

/// A copy engine or an asynchronous kind of access, by name.
#[derive(Clone, Debug)]
pub struct Engine {
    pub name: String,
    pub span: Span,
    pub facts: EngineFacts,
}

/// An atomic operation and the types it takes natively.
#[derive(Clone, Debug)]
pub struct Atomic {
    pub op: String,
    pub types: Known<Vec<DType>>,
}

/// A product: an architecture with counts, peaks and bandwidths.
#[derive(Clone, Debug)]
pub struct Chip {
    pub name: String,
    /// The name people use.
    pub title: String,
    pub arch: String,
    pub span: Span,
    pub facts: ChipFacts,
    /// Dense peaks by operand type, in 10¹² operations a second.
    pub peaks: Vec<Peak>,
}

/// The best rate of products of one type.
#[derive(Clone, Debug)]
pub struct Peak {
    /// `f16`, `tf32`, `f32` and so on, with ` vector` where the matrix unit is not meant.
    pub what: String,
    pub tera_ops: Known<f64>,
}

pub use super::sections::ChipFacts;

/// Names of `target.NAME` in the language, with the number of types each takes.
pub const FACT_NAMES: [(&str, usize); 5] =
    [("warp", 0), ("vec", 1), ("max_threads", 0), ("shared_bytes", 0), ("regs", 0)];

/// The bare value of a fact.
fn value<T: Copy>(fact: &Fact<T>) -> Option<T> {
    fact.as_ref().map(|k| k.value)
}

impl Arch {
    /// `target.NAME` or `target.NAME(T)` as the language sees it; `None` where the name is unknown, is given the
    /// wrong number of types, or the architecture does not state it.
    pub fn fact(&self, name: &str, args: &[DType]) -> Option<i64> {
        let f = &self.facts;
        let count = |fact: &Fact<u32>| value(fact).map(i64::from);
        match (name, args) {
            ("warp", []) => count(&f.threads.warp_size),
            ("max_threads", []) => count(&f.threads.max_per_block),
            ("shared_bytes", []) => count(&f.shared.max_bytes),
            ("regs", []) => count(&f.registers.per_block),
            ("vec", [t]) => count(&f.access.vector_bytes).map(|bytes| bytes * 8 / i64::from(t.bits())),
            _ => None,
        }
    }

    /// Threads of the team that executes one instruction of a matrix unit; 1 on processors without lanes.
    pub fn team_threads(&self, team: super::matrix::Team) -> Option<u32> {
        use super::matrix::Team;
        match team {
            Team::Core => Some(1),
            Team::Warp => value(&self.facts.threads.warp_size),
            Team::Lanes32 => Some(32),
            Team::Group => value(&self.facts.threads.group_size),
        }
    }

    /// How shared memory serves a warp; `None` where the banks are unknown.
    pub fn banks(&self) -> Option<Banks> {
        let s = &self.facts.shared;
        Some(Banks {
            count: value(&s.banks)?.into(),
            bytes: value(&s.bank_bytes)?.into(),
            phase: value(&s.phase_bytes)?.into(),
            lanes: value(&self.facts.threads.shuffle_width)?.into(),
        })
    }

    /// The moves of the architecture as the conversion planner takes them.
    pub fn block_moves(&self) -> Vec<BlockMove> {
        let moves = self.moves.iter().filter(|m| m.direction != "exchange" && m.bits >= 8);
        let each = moves.filter_map(|m| {
            Some(BlockMove {
                name: m.name.clone(),
                loads: m.direction == "load",
                element_bytes: u64::from(m.bits / 8),
                row_bytes: m.row_bytes.into(),
                blocks: m.counts.iter().copied().max()?.into(),
                map: m.map.bind(&Symbols::default())?,
            })
        });
        each.collect()
    }

    /// Prices of register conversions; `None` where a price or the banks are unknown.
    pub fn prices<'a>(&self, moves: &'a [BlockMove]) -> Option<Prices<'a>> {
        let c = &self.facts.costs;
        Some(Prices {
            shuffle: value(&c.shuffle)?,
            select: value(&c.select)?,
            shared_store: value(&c.shared_store)?,
            shared_load: value(&c.shared_load)?,
            barrier: value(&c.barrier)?,
            max_bytes: value(&self.facts.access.vector_bytes)?.into(),
            banks: self.banks()?,
            moves,
        })
    }

    /// Every value with its source and mark, in the order of the file's sections.
    pub fn describe(&self) -> Vec<Entry> {
        let mut out = Vec::new();
        self.facts.entries(&mut out);
        for e in &self.engines {
            e.facts.entries(&format!("engine {}", e.name), &mut out);
        }
        for a in &self.atomics {
            let types: Vec<&str> = a.types.value.iter().map(|t| t.name()).collect();
            out.push(a.types.entry(format!("atomics.{}", a.op), types.join(", ")));
        }
        self.matrix.iter().for_each(|m| m.entries(&mut out));
        self.moves.iter().for_each(|m| m.entries(&mut out));
        out
    }

    pub(super) fn owner(&self) -> Arc<str> {
        Arc::from(self.name.as_str())
    }
}

impl Chip {
    /// Every value with its source and mark.
    pub fn describe(&self) -> Vec<Entry> {
        let mut out = Vec::new();
        self.facts.entries("chip", &mut out);
        out.extend(
            self.peaks.iter().map(|p| p.tera_ops.entry(format!("peaks.{}", p.what), p.tera_ops.value)),
        );
        out
    }
}
