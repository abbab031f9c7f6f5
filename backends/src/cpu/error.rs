//! What can go wrong, as named errors.

use pantile_ir::span::Span;

#[derive(Debug, thiserror::Error)]
pub enum CpuError {
    /// The program is right, this back end cannot express it yet; `help` says what to do instead.
    #[error("{what} cannot run on the CPU target")]
    Unsupported { what: String, help: String, span: Span },
    /// The host lacks what the target's code would use.
    #[error("this machine's CPU lacks {missing}, which target {target} needs")]
    MissingFeatures { target: String, missing: String },
    #[error("target {arch} does not say {what}, which code for a CPU needs")]
    Descriptor { arch: String, what: String },
    #[error("LLVM: {0}")]
    Llvm(String),
}

impl CpuError {
    pub fn unsupported(what: impl Into<String>, help: impl Into<String>, span: Span) -> CpuError {
        CpuError::Unsupported { what: what.into(), help: help.into(), span }
    }
}

pub type Result<T> = std::result::Result<T, CpuError>;
