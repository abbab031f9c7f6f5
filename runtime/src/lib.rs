//! Runs built kernels: host tensors, array files, random inputs, comparison, the disk cache, and the walk over an
//! op's launches.
//!
//! No compiler lives here and none may be linked: a service that only runs artifacts links this crate alone. With the
//! feature `vendor-jit`, compilers that vendors install are found and called at run time.
//! Whoever makes code (the JIT, an object on disk) or meaning (the interpreter) does it behind [`Launcher`].

pub mod arrange;
pub mod cache;
pub mod compare;
pub mod cpu;
pub mod error;
pub mod features;
pub mod files;
pub mod host;
pub mod object;
pub mod random;
pub mod run;
#[cfg(feature = "vendor-jit")]
pub mod vendor;

pub use error::{Error, ErrorKind, Result, io_words};
pub use host::{HostBuffer, HostTensor};
pub use run::{Launch, Launcher, Workspace, WorkspaceRequest, run_program};
