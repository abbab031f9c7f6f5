//! From a file to results: reading, formatting, specialising, running, testing.
//!
//! Everything that the command line can do with kernels is a function here, for other programs to call. Nothing here
//! prints or ends the process; whatever goes wrong is a diagnostic.

mod arguments;
pub mod code;
mod compile;
#[cfg(feature = "cpu")]
pub mod cpu;
mod execute;
mod fit;
mod head;
mod interp;
pub mod mapping;
mod meaning;
pub mod passes;
mod reference;
mod source;
mod target;
mod tests;

pub use arguments::{Input, arguments, input_info};
pub use compile::{Compiled, compile, load};
pub use execute::{Device, Ran, RunError, Value, diagnostic, execute};
pub use fit::fitting_types;
pub use head::{Head, entry, heads};
pub use meaning::{Meaning, MeaningOptions, Skipped, keep_meaning};
pub use reference::{Checked, Outputs, check_against, default_tolerance, entry_outputs, relative, widened};
pub use source::{format_source, read_source, read_text};
pub use target::{RunOptions, Target};
pub use tests::{Verdict, run_case};

use pantile_ir::diag::Diagnostics;
use pantile_ir::program::Program;
use pantile_ir::target::Arch;

/// The code of a program as text.
pub struct NativeCode {
    /// LLVM IR as written
    pub lowered: String,
    /// and after LLVM's own passes
    pub llvm: String,
    pub asm: String,
}

/// Machine code of an entry for programs that have no compiler.
pub struct NativeObject {
    pub object: Vec<u8>,
    /// The contract, with symbols and what callers of them must know.
    pub program: pantile_abi::Program,
    /// The same for C.
    pub header: String,
}

/// LLVM IR and assembly of a verified program, where this build has the CPU back end.
pub fn native_code(program: &Program, arch: &Arch) -> Result<NativeCode, Diagnostics> {
    #[cfg(feature = "cpu")]
    return cpu::texts(program, arch).map_err(RunError::into_diagnostics);
    #[cfg(not(feature = "cpu"))]
    Err(no_back_end(program, arch))
}

/// Machine code of a compiled entry, where this build has the CPU back end.
pub fn native_object(compiled: &Compiled, arch: &Arch) -> Result<NativeObject, Diagnostics> {
    #[cfg(feature = "cpu")]
    return cpu::object(compiled, arch).map_err(RunError::into_diagnostics);
    #[cfg(not(feature = "cpu"))]
    Err(no_back_end(&compiled.program, arch))
}

#[cfg(not(feature = "cpu"))]
fn no_back_end(program: &Program, arch: &Arch) -> Diagnostics {
    let name = &program.entry.name;
    Diagnostics::from_iter([target::absent(&format!(
        "`{name}` cannot be compiled for {}: this build has no CPU back end",
        arch.name
    ))])
}
