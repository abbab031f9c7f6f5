//! Sources for GPU back ends: a program of threads becomes a C-like tree, and the tree text.
//!
//! The way: [`emit`] → `lower` (one function a construct) → `tree` → `write`. Hardware operations stand only in the
//! prelude (`prelude`), and what differs between vendors only in a [`Dialect`]. Nothing here decides how a kernel is
//! mapped; what is not code of single threads is refused by name.
//!
//! Conventions of a source: one dynamic arena of shared memory with commented offsets; the grid along x alone, first
//! axis fastest; threads along x, last axis fastest; narrow floats are words in memory and `float` in registers, rounded
//! after each operation; integers wrap; an index is `int` where its range is known to fit, else `i64`.

mod dialect;
mod lower;
mod names;
mod prelude;
mod range;
mod tree;
mod unroll;
mod write;

pub use dialect::Dialect;
pub use lower::{Counts, KernelSource, Param};
pub use prelude::{Arithmetic, Entry};

use lower::Cx;
use names::Names;
use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::program::{MathMode, Program, Stage};
use pantile_ir::span::Span;
use pantile_ir::target::Arch;
use prelude::Prelude;
use std::collections::HashMap;

/// The source of a program, and what a runtime must know to compile and launch it.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub text: String,
    /// In the order of the program's kernels.
    pub kernels: Vec<KernelSource>,
    /// Compiler flags on which the meaning depends.
    pub flags: Vec<String>,
}

/// Writes the source of a program for the back end of `arch`.
pub fn emit(program: &Program, arch: &Arch) -> Result<Source, Diagnostics> {
    let one = |d: Diagnostic| Diagnostics::from_iter([d]);
    let dialect = crate::dialect(arch).ok_or_else(|| one(absent(program, arch)))?;
    if program.stage < Stage::Threaded {
        return Err(one(not_lowered(program)));
    }
    let mut functions = Names::new();
    let symbols: Vec<String> = program.kernels.iter().map(|(_, k)| functions.take(&k.name)).collect();
    let mut intrinsics = HashMap::new();
    for (id, i) in program.intrinsics.iter() {
        intrinsics.insert(id, functions.take(&i.name));
    }
    let prelude = Prelude::new(arch, dialect);
    let mut cx = Cx { program, arch, dialect, prelude, functions, intrinsics };
    let (mut texts, mut kernels, mut faults) = (Vec::new(), Vec::new(), Diagnostics::new());
    for ((_, k), symbol) in program.kernels.iter().zip(symbols) {
        match lower::kernel(&mut cx, k, symbol) {
            Ok((text, kernel)) => {
                texts.push(text);
                kernels.push(kernel);
            }
            Err(d) => faults.push(d),
        }
    }
    if faults.has_errors() {
        return Err(faults);
    }
    let exact = program.kernels.iter().any(|(_, k)| k.math == MathMode::Exact);
    let flags = if exact { vec![dialect.no_contraction.to_string()] } else { Vec::new() };
    let body = texts.join("\n");
    let head = format!("// `{}` for {}: {}\n", program.entry.name, arch.name, dialect.name);
    let text = format!("{head}{}\n{body}", cx.prelude.text(&body));
    Ok(Source { text, kernels, flags })
}

fn absent(program: &Program, arch: &Arch) -> Diagnostic {
    let message = format!("`{}` is no target that sources are written for", arch.name);
    Diagnostic::error(codes::TARGET_ABSENT, program.entry.span, message)
        .help("`pantile doctor` lists the targets that this build has")
}

fn not_lowered(program: &Program) -> Diagnostic {
    let kernel = program.kernels.iter().next();
    let (name, span) = kernel.map_or(("", Span::default()), |(_, k)| (k.name.as_str(), k.span));
    Diagnostic::error(codes::NOT_THREADED, span, format!("`{name}` has not been turned into code of threads"))
        .help("run the passes of the target first")
}
