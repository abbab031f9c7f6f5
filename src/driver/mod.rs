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

/// LLVM IR and assembly of a verified program, where this build has the CPU back end.
pub fn native_code(program: &Program, arch: &Arch) -> Result<NativeCode, Diagnostics> {
    #[cfg(feature = "cpu")]
    return cpu::texts(program, arch).map_err(RunError::into_diagnostics);
    #[cfg(not(feature = "cpu"))]
    {
        let name = &program.entry.name;
        let d = target::absent(&format!(
            "`{name}` cannot be compiled for {}: this build has no CPU back end",
            arch.name
        ));
        Err(Diagnostics::from_iter([d]))
    }
}
