//! From a program to object bytes.

use super::emit::Emit;
use super::error::{CpuError, Result};
use super::expr::Ix;
use super::frame::Frame;
use super::machine::Machine;
use super::paths;
use super::value::Val;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};
use pantile_abi::CpuAbi;
use pantile_ir::program::{Kernel, Program};

/// One kernel's code: its function's name and what its caller must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCode {
    pub symbol: String,
    pub abi: CpuAbi,
}

/// Code of a whole program, kernels in the program's order.
#[derive(Clone, Debug)]
pub struct Built {
    pub object: Vec<u8>,
    pub kernels: Vec<KernelCode>,
    /// LLVM IR before and after LLVM's passes and assembly, where asked for
    pub lowered: Option<String>,
    pub llvm: Option<String>,
    pub asm: Option<String>,
}

/// Compiles every kernel of a verified program; `texts` also keeps LLVM IR and assembly.
pub fn build(program: &Program, machine: &Machine, texts: bool) -> Result<Built> {
    let generator = machine.generator()?;
    let ctx = Context::create();
    let mut emit = Emit::new(&ctx, &program.entry.name);
    emit.module.set_triple(&generator.get_triple());
    emit.module.set_data_layout(&generator.get_target_data().get_data_layout());
    let mut kernels = Vec::with_capacity(program.kernels.len());
    for (id, kernel) in program.kernels.iter() {
        let symbol = format!("{}_{}", kernel.name, id.index());
        kernels.push(function(&mut emit, program, kernel, machine, symbol)?);
    }
    let lowered = texts.then(|| emit.module.print_to_string().to_string());
    let threaded = program.kernels.iter().any(|(_, k)| k.threads.is_some());
    optimize(&emit.module, &generator, threaded)?;
    let text = |kind| -> Result<String> {
        let bytes = generator
            .write_to_memory_buffer(&emit.module, kind)
            .map_err(|e| CpuError::Llvm(e.to_string()))?;
        Ok(String::from_utf8_lossy(bytes.as_slice()).trim_end_matches('\0').to_string())
    };
    let object = generator
        .write_to_memory_buffer(&emit.module, FileType::Object)
        .map_err(|e| CpuError::Llvm(e.to_string()))?
        .as_slice()
        .to_vec();
    let (llvm, asm) = if texts {
        (Some(emit.module.print_to_string().to_string()), Some(text(FileType::Assembly)?))
    } else {
        (None, None)
    };
    Ok(Built { object, kernels, lowered, llvm, asm })
}

fn function<'c>(
    emit: &mut Emit<'c>,
    program: &Program,
    kernel: &Kernel,
    machine: &Machine,
    symbol: String,
) -> Result<KernelCode> {
    if let Some(split) = kernel.split_value() {
        let what = format!("`{}`, held in {} parts over {},", split.name, split.parts, split.over.name());
        let help = "run it in one part: one group, no cluster, `ways = 1`; or write the parts to a workspace and add them in a second launch";
        return Err(CpuError::unsupported(what, help, split.span));
    }
    let args = emit.begin(&symbol, "piip", machine.vector_bits);
    let (words, begin, end, scratch) = (
        args[0].into_pointer_value(),
        args[1].into_int_value(),
        args[2].into_int_value(),
        args[3].into_pointer_value(),
    );
    let e: &Emit<'c> = emit;
    let mut frame = Frame::new(e, program, kernel, machine, words, scratch);
    frame.bind_words()?;
    frame.engines = frame.make_engines();
    let mut result = Ok(());
    e.for_(begin, end, e.int(1), |block| {
        frame.set_grid(block);
        frame.start_engines();
        result = frame.crew_block(&kernel.stmts, &|_| true);
        frame.check_engines();
    });
    result?;
    let abi = CpuAbi {
        scratch: frame.scratch_size(),
        faults: frame.faults.borrow().clone(),
        features: machine.features.clone(),
    };
    let code = KernelCode { symbol, abi };
    drop(frame);
    emit.end();
    Ok(code)
}

impl<'a, 'c> Frame<'a, 'c> {
    /// Grid indices of a block; the first axis is fastest.
    fn set_grid(&self, block: super::emit::Int<'c>) {
        let mut rest = block;
        for (axis, &local) in self.kernel.grid.locals.iter().enumerate() {
            let n = self.e.load(self.e.i64(), self.word(self.grid_word(axis)), 8).into_int_value();
            let i = self.e.b.build_int_unsigned_rem(rest, n, "").unwrap();
            rest = self.e.b.build_int_unsigned_div(rest, n, "").unwrap();
            self.set_scalar(local, Val::index(Ix::at(i).base));
        }
    }
}

/// The vector code of tile kernels is already in shape; code of named threads gains from LLVM's own loops passes.
fn optimize(module: &Module<'_>, generator: &TargetMachine, threaded: bool) -> Result<()> {
    module.verify().map_err(|e| CpuError::Llvm(format!("the code of this kernel is malformed: {e}")))?;
    let vectorize = threaded && paths::few(&simplified(module, generator)?);
    run(module, generator, vectorize, threaded)?;
    super::plain_stores::rewrite(module);
    Ok(())
}

/// A copy as it is before LLVM looks for vectors.
fn simplified<'c>(module: &Module<'c>, generator: &TargetMachine) -> Result<Module<'c>> {
    let copy = module.clone();
    run(&copy, generator, false, false)?;
    Ok(copy)
}

fn run(module: &Module<'_>, generator: &TargetMachine, vectorize: bool, unroll: bool) -> Result<()> {
    let options = PassBuilderOptions::create();
    options.set_loop_vectorization(vectorize);
    options.set_loop_interleaving(vectorize);
    options.set_loop_slp_vectorization(unroll);
    options.set_loop_unrolling(unroll);
    module.run_passes("default<O2>", generator, options).map_err(|e| CpuError::Llvm(e.to_string()))
}

/// What the code's bytes depend on beside program and machine: this generator and the version of LLVM.
pub fn identity() -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("{} LLVM {major}.{minor}.{patch}", env!("PANTILE_GENERATOR"))
}
