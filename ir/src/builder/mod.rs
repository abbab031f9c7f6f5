//! Programs made by code instead of text; `elab` makes them with the same calls.
//!
//! [`ProgramBuilder`] holds what a program's parts share; [`KernelBuilder`], [`HostBuilder`] and [`PureBuilder`]
//! make a part each, and [`Exprs`] is their common way to make expressions. Types are checked as things are
//! added, so a mistake is told at its place: the low-level calls (`expr`, `stmt`, `op`, …) take a span, the
//! convenient ones use the caller's line of Rust. A handle of another builder is an error, never a panic.
//! What needs the whole program (scopes, uniformity, races) is `verify`'s.

mod edit;
mod exprs;
mod fold;
mod frame;
mod here;
mod host;
mod kernel;
mod place;
mod pure;
mod stmts;

pub use edit::{Rewrite, Substitution, rewrite};
pub use exprs::Exprs;
pub use here::Here;
pub use host::HostBuilder;
pub(crate) use host::lone;
pub use kernel::KernelBuilder;
pub use pure::PureBuilder;

use crate::arena::Arena;
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::{Sources, Span};
use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;

pub type Result<T> = std::result::Result<T, Diagnostic>;

/// What all parts of a program share while it is being made.
#[derive(Default)]
struct Shared {
    combines: Arena<Combine>,
    intrinsics: Arena<Intrinsic>,
    sources: Sources,
    places: place::Places,
}

type Defs = Rc<RefCell<Shared>>;

/// Makes a program out of kernels and a host.
pub struct ProgramBuilder {
    defs: Defs,
    stage: Stage,
    arch: String,
    kernels: Arena<Kernel>,
    entry: Option<Host>,
}

impl ProgramBuilder {
    /// `arch` is the architecture to which `target.*` is bound.
    pub fn new(arch: impl Into<String>) -> ProgramBuilder {
        ProgramBuilder {
            defs: Defs::default(),
            stage: Stage::Tile,
            arch: arch.into(),
            kernels: Arena::new(),
            entry: None,
        }
    }

    pub fn set_stage(&mut self, stage: Stage) {
        self.stage = stage;
    }

    #[track_caller]
    pub fn kernel(&self, name: impl Into<String>) -> KernelBuilder {
        let span = self.here(Location::caller());
        self.kernel_at(name, span)
    }

    pub fn kernel_at(&self, name: impl Into<String>, span: Span) -> KernelBuilder {
        KernelBuilder::new(self.defs.clone(), name.into(), span)
    }

    #[track_caller]
    pub fn host(&self, name: impl Into<String>) -> HostBuilder {
        let span = self.here(Location::caller());
        self.host_at(name, span)
    }

    pub fn host_at(&self, name: impl Into<String>, span: Span) -> HostBuilder {
        HostBuilder::new(self.defs.clone(), name.into(), span)
    }

    /// A function of scalars, for [`ProgramBuilder::add_combine`] and [`ProgramBuilder::add_intrinsic`].
    pub fn pure(&self) -> PureBuilder {
        PureBuilder::new(self.defs.clone())
    }

    pub fn add_kernel(&mut self, kernel: KernelBuilder) -> Result<KernelId> {
        if !Rc::ptr_eq(&kernel.defs, &self.defs) {
            return Err(foreign(kernel.kernel.span, "kernel"));
        }
        let kernel = kernel.finish()?;
        let span = kernel.span;
        Ok(self.kernels.push(kernel, span))
    }

    pub fn kernel_ref(&self, id: KernelId) -> Option<&Kernel> {
        self.kernels.get(id)
    }

    pub fn add_combine(&mut self, combine: Combine) -> Result<CombineId> {
        pure::check_combine(&self.defs.borrow(), &combine)?;
        let span = combine.span;
        Ok(self.defs.borrow_mut().combines.push(combine, span))
    }

    pub fn add_intrinsic(&mut self, intrinsic: Intrinsic) -> Result<IntrinsicId> {
        pure::check_intrinsic(&intrinsic)?;
        let span = intrinsic.span;
        Ok(self.defs.borrow_mut().intrinsics.push(intrinsic, span))
    }

    pub fn set_entry(&mut self, host: HostBuilder) -> Result<()> {
        if !Rc::ptr_eq(&host.defs, &self.defs) {
            return Err(foreign(host.host.span, "op"));
        }
        host.check(&self.kernels)?;
        self.entry = Some(host.host);
        Ok(())
    }

    /// Makes the kernel itself what runs: an op of one launch with the kernel's own parameters.
    pub fn set_lone(&mut self, id: KernelId) -> Result<()> {
        let Some(kernel) = self.kernels.get(id) else { return Err(foreign(Span::default(), "kernel")) };
        self.entry = Some(host::lone(id, kernel)?);
        Ok(())
    }

    /// The program, and the texts that its spans point into where no spans were given.
    pub fn finish(self) -> Result<(Program, Sources)> {
        let Some(entry) = self.entry else {
            let message = "the program has no entry";
            return Err(Diagnostic::error(codes::NO_ENTRY, Span::default(), message)
                .help("call `set_entry` with an op, or `set_lone` with a kernel"));
        };
        let mut shared = self.defs.borrow_mut();
        let program = Program {
            stage: self.stage,
            arch: self.arch,
            combines: std::mem::take(&mut shared.combines),
            intrinsics: std::mem::take(&mut shared.intrinsics),
            kernels: self.kernels,
            entry,
        };
        Ok((program, std::mem::take(&mut shared.sources)))
    }

    fn here(&self, at: &'static Location<'static>) -> Span {
        place::span(&self.defs, at)
    }
}

fn foreign(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error(
        codes::FOREIGN_HANDLE,
        span,
        format!("this {what} was made for another kernel or program"),
    )
    .help(format!("use only what this builder returned for its {what}s"))
}
