//! Builds a program of one kernel for this host and runs it in this thread.

use pantile_backends::cpu::{Host, Jit, Machine, build};
use pantile_ir::program::Program;
use pantile_ir::target::Targets;

#[derive(Default)]
pub struct Args {
    words: Vec<u64>,
    dims: Vec<u64>,
    grid: Vec<u64>,
}

impl Args {
    pub fn new() -> Args {
        Args::default()
    }

    pub fn input<T>(mut self, data: &[T]) -> Args {
        self.words.push(data.as_ptr() as u64);
        self
    }

    pub fn output<T>(mut self, data: &mut [T]) -> Args {
        self.words.push(data.as_mut_ptr() as u64);
        self
    }

    pub fn dims(mut self, dims: &[usize]) -> Args {
        self.dims = dims.iter().map(|&d| d as u64).collect();
        self
    }

    pub fn grid(mut self, grid: &[u64]) -> Args {
        self.grid = grid.to_vec();
        self
    }
}

/// Runs all blocks; gives the seconds that they took.
pub fn run(program: &Program, args: Args) -> f64 {
    let targets = Targets::shipped();
    let host = Host::detect();
    let arch = targets.best_cpu(&host.isa, |f| host.features.iter().any(|h| h == f)).expect("a CPU target");
    let machine = Machine::of(arch).expect("a complete descriptor");
    let built = build(program, &machine, std::env::var_os("SHOW_ASM").is_some()).expect("code");
    if let (Some(asm), Some(llvm)) = (&built.asm, &built.llvm) {
        std::fs::write("/tmp/kernel.s", asm).unwrap();
        std::fs::write("/tmp/kernel.ll", llvm).unwrap();
    }
    let jit = Jit::load(&built.object).expect("loads");
    let code = &built.kernels[0];
    let address = jit.address(&code.symbol).expect("a symbol");
    // SAFETY: the object was made for this signature, and the words match the program's parameters.
    let entry: pantile_abi::CpuEntry = unsafe { std::mem::transmute(address) };
    let mut scratch = vec![0u8; code.abi.scratch as usize + 64];
    let at = scratch.as_mut_ptr();
    // SAFETY: stays inside the vector, which has 64 bytes to spare.
    let at = unsafe { at.add(at.align_offset(64)) };
    let words: Vec<u64> = args.words.iter().chain(&args.dims).chain(&args.grid).copied().collect();
    let blocks = args.grid.iter().product();
    let start = std::time::Instant::now();
    // SAFETY: as above.
    let code = unsafe { entry(words.as_ptr(), 0, blocks, at) };
    let secs = start.elapsed().as_secs_f64();
    assert_eq!(code, 0, "a fault");
    secs
}
