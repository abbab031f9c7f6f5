//! Back ends. Each takes a verified program and gives code or a named error; none decides how a kernel is mapped.

#[cfg(feature = "cpu")]
pub mod cpu;

#[cfg(any(feature = "cuda", feature = "musa"))]
pub mod clike;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "musa")]
pub mod musa;

/// The words and tables of the architecture's vendor, if this build has them: the one place that picks.
#[cfg(any(feature = "cuda", feature = "musa"))]
fn dialect(arch: &pantile_ir::target::Arch) -> Option<&'static clike::Dialect> {
    use pantile_ir::target::Backend;
    match arch.backend {
        #[cfg(feature = "cuda")]
        Backend::Cuda => Some(&cuda::DIALECT),
        #[cfg(feature = "musa")]
        Backend::Musa => Some(&musa::DIALECT),
        _ => None,
    }
}

/// How files of an architecture's sources end; `None` where this build writes none for it.
#[cfg(any(feature = "cuda", feature = "musa"))]
pub fn source_extension(arch: &pantile_ir::target::Arch) -> Option<&'static str> {
    dialect(arch).map(|d| d.extension)
}
