//! Targets as data: what differs between architectures is read from `targets.toml` and from users' files, never
//! written into a pass. Every value carries its source and a mark that says how it is known.
//!
//! [`Targets`] holds all architectures with inheritance resolved; [`Arch`] answers questions. Adding an
//! architecture of a known back end needs no line of Rust.

mod arch;
mod check;
mod check_maps;
mod known;
mod load;
mod matrix;
mod read;
mod sections;

pub use arch::{Arch, Atomic, Backend, Chip, ChipFacts, Engine, FACT_NAMES, Peak};
pub use known::{Entry, Fact, Known, Mark};
pub use matrix::{Asynchronous, MatrixUnit, MoveUnit, Operand, Role, Shape, Team, Text, Types, symbols};
pub use read::Extents;
pub use sections::{
    Access, Barriers, ByWidth, Costs, EngineFacts, Facts, Rates, Registers, SharedMemory, Simd, Threads,
};

use crate::codes;
use crate::diag::{Diagnostic, Result};
use crate::span::{Sources, Span};
use pantile_abi::DType;
use std::path::{Path, PathBuf};

/// All architectures and chips that a run knows.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    pub(crate) archs: Vec<Arch>,
    pub(crate) chips: Vec<Chip>,
}

/// A targets file of the user: its path as given, and its text.
#[derive(Clone, Debug)]
pub struct UserFile {
    pub path: PathBuf,
    pub text: String,
}

impl Targets {
    /// The text of the file that ships with the compiler.
    pub const SHIPPED: &'static str = include_str!("../../../targets.toml");

    /// The targets that ship with the compiler.
    pub fn shipped() -> Targets {
        static ONCE: std::sync::OnceLock<Targets> = std::sync::OnceLock::new();
        // The shipped file is checked by a test; a fault in it cannot come from a user.
        ONCE.get_or_init(|| Targets::with_user(&[], &mut Sources::default()).unwrap_or_default()).clone()
    }

    /// The shipped targets with users' files laid over them, later files over earlier ones. The texts are added to
    /// `sources`, so that a diagnostic can show the line.
    pub fn with_user(files: &[UserFile], sources: &mut Sources) -> Result<Targets> {
        let shipped = (sources.add("targets.toml", None, Targets::SHIPPED), Targets::SHIPPED);
        let mut texts = vec![shipped];
        for f in files {
            let name = f.path.display().to_string();
            texts.push((sources.add(name, Some(Path::new(&f.path)), f.text.as_str()), f.text.as_str()));
        }
        load::load(&texts)
    }

    pub fn archs(&self) -> impl Iterator<Item = &Arch> {
        self.archs.iter()
    }

    pub fn chips(&self) -> impl Iterator<Item = &Chip> {
        self.chips.iter()
    }

    pub fn arch(&self, name: &str) -> Option<&Arch> {
        self.archs.iter().find(|a| a.name == name)
    }

    pub fn chip(&self, name: &str) -> Option<&Chip> {
        self.chips.iter().find(|c| c.name == name || c.title == name)
    }

    /// The architecture that `--target` text names: a back end (`cuda`, `musa`, `cpu`, `interp`), a back end with
    /// an architecture (`cuda:sm_80`), or an architecture alone (`sm_80`).
    pub fn arch_for_target(&self, target: &str) -> std::result::Result<&Arch, Diagnostic> {
        let (backend, arch) = match target.split_once(':') {
            Some((b, a)) => (Some(b), Some(a)),
            None if Backend::from_name(target).is_some() => (Some(target), None),
            None => (None, Some(target)),
        };
        let Some(name) = arch else { return self.default_arch(target) };
        let found = self.arch(name).ok_or_else(|| self.unknown_target(target, name))?;
        match backend {
            Some(b) if b != found.backend.name() => {
                let message = format!("target `{target}`: `{name}` belongs to `{}`", found.backend.name());
                let help = format!("write `{}:{name}`", found.backend.name());
                Err(Diagnostic::error(codes::UNKNOWN_TARGET, Span::default(), message).help(help))
            }
            _ => Ok(found),
        }
    }

    /// The default architecture of a back end; for processors, the one of the machine this runs on.
    fn default_arch(&self, backend: &str) -> std::result::Result<&Arch, Diagnostic> {
        let host = std::env::consts::ARCH;
        let here = |a: &Arch| a.facts.simd.machine.as_ref().is_none_or(|m| m.value == host);
        let found = self.archs.iter().find(|a| a.backend.name() == backend && a.default && here(a));
        found.ok_or_else(|| {
            let message = format!("target `{backend}` has no default architecture for this machine ({host})");
            let names = self.archs.iter().filter(|a| a.backend.name() == backend).map(|a| a.name.as_str());
            Diagnostic::error(codes::UNKNOWN_TARGET, Span::default(), message)
                .help(format!("name one: {}", read::quoted(names)))
        })
    }

    /// The richest processor architecture whose features a host reports, for the machine it names.
    pub fn best_cpu<'a>(&'a self, machine: &str, has: impl Fn(&str) -> bool) -> Option<&'a Arch> {
        let fits = |a: &&Arch| {
            let simd = &a.facts.simd;
            let known = simd.machine.as_ref().is_some_and(|m| m.value == machine);
            known && simd.features.as_ref().is_some_and(|f| f.value.iter().all(|name| has(name)))
        };
        let richness = |a: &&Arch| a.facts.simd.features.as_ref().map_or(0, |f| f.value.len());
        self.archs.iter().filter(|a| a.backend == Backend::Cpu).filter(fits).max_by_key(richness)
    }

    fn unknown_target(&self, target: &str, name: &str) -> Diagnostic {
        let d = Diagnostic::error(
            codes::UNKNOWN_TARGET,
            Span::default(),
            format!("no target is called `{target}`"),
        );
        match read::nearest(name, self.archs.iter().map(|a| a.name.as_str())) {
            Some(close) => d.help(format!("did you mean `{close}`?")),
            None => d
                .help(format!("back ends: {}", read::quoted(Backend::ALL.map(Backend::name))))
                .help(format!("architectures: {}", read::quoted(self.archs.iter().map(|a| a.name.as_str())))),
        }
    }

    /// The least and the greatest value of a `target.*` fact over all architectures; `None` where the name or the
    /// number of types is wrong.
    pub fn fact_range(&self, name: &str, args: &[DType]) -> Option<(i64, i64)> {
        let all = self.archs.iter().filter_map(|a| a.fact(name, args));
        all.fold(None, |range, v| Some(range.map_or((v, v), |(lo, hi): (i64, i64)| (lo.min(v), hi.max(v)))))
    }
}
