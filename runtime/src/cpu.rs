//! Kernels for the CPU as functions: blocks spread over threads. Who made the function (the JIT, an object on disk)
//! does not matter here.

use crate::error::{Error, ErrorKind, Result};
use crate::host::HostBuffer;
use crate::run::{Launch, Launcher};
use pantile_abi::{CpuAbi, CpuEntry, CpuFault, KernelAbi, cpu_words};
use rayon::prelude::*;

/// Something that holds the code of kernels. Code stays valid while the module lives.
pub trait CpuModule: Send + Sync {
    /// The function of the kernel exported under `symbol`.
    fn entry(&self, symbol: &str) -> Result<CpuEntry>;
}

/// Makes modules out of bytes of one kind: objects for the JIT, shared libraries for the loader.
pub trait Loader {
    type Module: CpuModule;
    fn load(&self, code: &[u8]) -> Result<Self::Module>;
}

/// Runs the kernels of a module on the threads of the current rayon pool.
pub struct CpuLauncher<'a> {
    module: &'a dyn CpuModule,
}

impl<'a> CpuLauncher<'a> {
    pub fn new(module: &'a dyn CpuModule) -> CpuLauncher<'a> {
        CpuLauncher { module }
    }
}

impl Launcher for CpuLauncher<'_> {
    fn launch(&mut self, launch: Launch<'_>) -> Result<()> {
        let abi = launch.abi;
        let cpu = cpu_abi(abi)?;
        let entry = self.module.entry(symbol(abi))?;
        let words = cpu_words(launch.args, launch.grid);
        let blocks: u64 = launch.grid.iter().product();
        let workers = rayon::current_num_threads() as u64;
        // a few ranges a worker even out blocks of unequal cost
        let ranges = blocks.min(workers * 4).max(1);
        let cut = |i: u64| (blocks as u128 * i as u128 / ranges as u128) as u64;
        let scratch = || HostBuffer::zeroed(cpu.scratch as usize);
        let run = |memory: &mut Result<HostBuffer>, i: u64| -> Result<()> {
            let memory = memory.as_mut().map_err(|e| Error::new(e.kind, e.message.clone()))?;
            // SAFETY: `run_program`'s caller answers for the tensors, the module for the function, and the words
            // are laid out as the function's kernel declares; each worker's scratch is its own.
            let status =
                unsafe { entry(words.as_ptr(), cut(i), cut(i + 1), memory.bytes_mut().as_mut_ptr()) };
            status_result(launch.kernel, abi, cpu, status)
        };
        if ranges == 1 || workers == 1 {
            let mut memory = scratch();
            return (0..ranges).try_for_each(|i| run(&mut memory, i));
        }
        (0..ranges).into_par_iter().map_init(scratch, |memory, i| run(memory, i)).collect()
    }
}

fn symbol(abi: &KernelAbi) -> &str {
    if abi.symbol.is_empty() { &abi.name } else { &abi.symbol }
}

fn cpu_abi(abi: &KernelAbi) -> Result<&CpuAbi> {
    abi.cpu.as_ref().ok_or_else(|| {
        Error::new(ErrorKind::Library, format!("`{}` was not built for the CPU", abi.name))
            .help("build it again with `--target cpu`")
    })
}

fn status_result(kernel: usize, abi: &KernelAbi, cpu: &CpuAbi, status: u64) -> Result<()> {
    let Some(fault) = status.checked_sub(1) else { return Ok(()) };
    let fault = cpu.faults.get(fault as usize).cloned().unwrap_or_else(|| CpuFault {
        message: "it stopped for an unknown reason".into(),
        code: ErrorKind::Fault.code(),
        statement: None,
    });
    Err(Error::from_launcher(ErrorKind::Fault, Stopped { kernel, name: abi.name.clone(), fault }))
}

/// The source of an error of kind [`ErrorKind::Fault`]: which kernel stopped, and why.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// Position in [`pantile_abi::Program::kernels`].
    pub kernel: usize,
    pub name: String,
    pub fault: CpuFault,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`: {}", self.name, self.fault.message)
    }
}

impl std::error::Error for Stopped {}
