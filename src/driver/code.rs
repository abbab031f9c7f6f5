//! Source text of a program for a vendor's compiler, and what is known of it without one.

use pantile_ir::diag::Diagnostics;
use pantile_ir::program::Program;
use pantile_ir::target::Arch;

/// The source of a program of the last stage.
#[derive(Clone, Debug)]
pub struct SourceText {
    pub text: String,
    /// How files of it end.
    pub extension: &'static str,
    /// Flags on which its meaning depends.
    pub flags: Vec<String>,
    pub kernels: Vec<SourceKernel>,
}

/// One kernel of a source, in the order of the program.
#[derive(Clone, Debug)]
pub struct SourceKernel {
    pub name: String,
    /// Its `extern "C"` name.
    pub symbol: String,
    pub threads: u32,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u64,
}

/// Writes the source of a program of the last stage.
#[cfg(any(feature = "cuda", feature = "musa"))]
pub fn source(program: &Program, arch: &Arch) -> Result<SourceText, Diagnostics> {
    let made = pantile_backends::clike::emit(program, arch)?;
    let kernels = made.kernels.into_iter().map(|k| SourceKernel {
        name: k.name,
        symbol: k.symbol,
        threads: k.threads,
        shared_bytes: k.shared_bytes,
    });
    Ok(SourceText {
        text: made.text,
        extension: pantile_backends::source_extension(arch).unwrap_or("c"),
        flags: made.flags,
        kernels: kernels.collect(),
    })
}

/// This build has no back end that writes sources.
#[cfg(not(any(feature = "cuda", feature = "musa")))]
pub fn source(program: &Program, arch: &Arch) -> Result<SourceText, Diagnostics> {
    let message = format!("`{}` has no source for {}: this build writes none", program.entry.name, arch.name);
    Err(Diagnostics::from_iter([
        super::target::absent(&message).help("build with the feature `cuda` or `musa`")
    ]))
}
