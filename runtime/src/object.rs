//! Kernels built ahead of time: a shared library beside a JSON description of its [`Program`].

use crate::cpu::{CpuLauncher, CpuModule};
use crate::error::{Error, ErrorKind, Result};
use crate::run::run_program;
use pantile_abi::{ArgValue, CpuEntry, Program};
use std::path::{Path, PathBuf};

/// A loaded shared library.
pub struct Library {
    path: PathBuf,
    library: libloading::Library,
}

impl Library {
    /// # Safety
    /// Loading a library runs its initialisers; the file must be trusted.
    pub unsafe fn open(path: &Path) -> Result<Library> {
        if !path.exists() {
            return Err(Error::new(ErrorKind::Library, format!("there is no library `{}`", path.display())));
        }
        // a bare file name would be looked up in the system's search path
        let full = std::path::absolute(path).map_err(|e| Error::io(path, "find", &e))?;
        // SAFETY: the caller trusts the file.
        let library = unsafe { libloading::Library::new(&full) }.map_err(|e| {
            Error::new(ErrorKind::Library, format!("cannot load `{}`: {}", path.display(), root_cause(&e)))
        })?;
        Ok(Library { path: path.to_path_buf(), library })
    }
}

impl CpuModule for Library {
    fn entry(&self, symbol: &str) -> Result<CpuEntry> {
        // SAFETY: a library of kernels exports functions of this type only; its description names them.
        let found = unsafe { self.library.get::<CpuEntry>(symbol) };
        found.map(|f| *f).map_err(|_| {
            let message = format!("`{}` exports no `{symbol}`", self.path.display());
            Error::new(ErrorKind::Library, message).help("library and description come from different builds")
        })
    }
}

/// A program with its code.
pub struct Object {
    pub program: Program,
    library: Library,
}

impl Object {
    /// Loads `NAME.so` and the description `NAME.json` beside it, and checks that they belong together.
    ///
    /// # Safety
    /// As [`Library::open`].
    pub unsafe fn load(path: &Path) -> Result<Object> {
        let description = path.with_extension("json");
        let text = std::fs::read_to_string(&description).map_err(|e| Error::io(&description, "read", &e))?;
        let program: Program = serde_json::from_str(&text).map_err(|e| Error::format(&description, e))?;
        // SAFETY: the caller trusts the file.
        let library = unsafe { Library::open(path)? };
        let host = crate::features::host();
        for kernel in &program.kernels {
            let symbol = if kernel.symbol.is_empty() { &kernel.name } else { &kernel.symbol };
            library.entry(symbol)?;
            if let Some(cpu) = &kernel.cpu {
                host.require(&kernel.name, &cpu.features)?;
            }
        }
        Ok(Object { program, library })
    }

    /// # Safety
    /// As [`run_program`].
    pub unsafe fn run(&self, args: Vec<(String, ArgValue)>) -> Result<()> {
        // SAFETY: the caller answers for the arguments.
        unsafe { run_program(&self.program, args, &mut CpuLauncher::new(&self.library)) }
    }
}

/// The loader's words without the chain of wrappers.
fn root_cause(e: &libloading::Error) -> String {
    let mut at: &dyn std::error::Error = e;
    while let Some(inner) = at.source() {
        at = inner;
    }
    at.to_string()
}
