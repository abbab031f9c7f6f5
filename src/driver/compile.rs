//! From a source file to a checked, specialised program and its contract.

use pantile_abi as abi;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::elab::{self, Elaborated, Files, Found, Library, Request};
use pantile_ir::program::Program;
use pantile_ir::span::Sources;
use pantile_ir::target::Arch;
use pantile_ir::verify;
use std::path::{Path, PathBuf};

/// A specialised program that the verifier accepted.
#[derive(Debug)]
pub struct Compiled {
    pub program: Program,
    /// What a runtime must know to launch it.
    pub abi: abi::Program,
    pub warnings: Diagnostics,
    /// The params of all its kernels with the values chosen.
    pub params: Vec<elab::ParamInfo>,
}

/// Reads a file and everything it uses; `search` are further folders for `use`.
pub fn load(path: &Path, search: &[PathBuf], sources: &mut Sources) -> Result<Library, Diagnostics> {
    let one = |d: Diagnostic| Diagnostics::from_iter([d]);
    let text = super::source::read_text(path).map_err(one)?;
    let found = Found { name: super::source::shown(path), path: Some(path.to_path_buf()), text };
    let (library, diagnostics) = Library::load(found, &Files { search: search.to_vec() }, sources);
    if diagnostics.has_errors() { Err(diagnostics) } else { Ok(library) }
}

/// Specialises an entry for an architecture, verifies it and describes it.
pub fn compile(
    library: &Library,
    request: &Request,
    arch: &Arch,
    sources: &mut Sources,
) -> Result<Compiled, Diagnostics> {
    let Elaborated { program, mut warnings, params } = elab::elaborate(library, request, arch, sources)?;
    let checked = verify::verify(&program, arch)?;
    warnings.extend(checked.warnings);
    let abi = pantile_passes::abi::describe(&program).map_err(|d| Diagnostics::from_iter([d]))?;
    Ok(Compiled { program, abi, warnings, params })
}
