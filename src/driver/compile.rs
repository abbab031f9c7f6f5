//! From a source file to a checked, specialised program and its contract.

use pantile_abi as abi;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::elab::{self, Elaborated, Files, Found, Library, Request};
use pantile_ir::program::{Block, Op, Program, StmtKind};
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

impl Compiled {
    /// The same without what it prints: for references, and where results for programs share the output.
    pub fn without_prints(&self) -> Compiled {
        let mut program = self.program.clone();
        for kernel in program.kernels.handles() {
            drop_prints(&mut program.kernels[kernel].stmts);
        }
        self.with(program)
    }

    /// The same entry as another program: what a pass left of it.
    pub(super) fn with(&self, program: Program) -> Compiled {
        Compiled {
            program,
            abi: self.abi.clone(),
            warnings: self.warnings.clone(),
            params: self.params.clone(),
        }
    }
}

fn drop_prints(block: &mut Block) {
    block.retain(|s| !matches!(s.kind, StmtKind::Op { op: Op::Print { .. }, .. }));
    for stmt in block {
        match &mut stmt.kind {
            StmtKind::If { then, other, .. } => {
                drop_prints(then);
                drop_prints(other);
            }
            StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::Parallel { body, .. } => {
                drop_prints(body);
            }
            StmtKind::Roles(roles) => roles.iter_mut().for_each(|r| drop_prints(&mut r.body)),
            _ => {}
        }
    }
}
