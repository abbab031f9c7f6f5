//! One entry at one stage for one target.

use super::vendor;
use crate::cli::report::{Failure, Session};
use pantile::driver::{code, compile, native_code, passes};
use pantile::ir::codes;
use pantile::ir::elab::{Library, Request};
use pantile::ir::print as printer;
use pantile::ir::program::{self as ir, Program};
use pantile::ir::target::{Arch, Backend};

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Stage {
    /// tile text, specialised; for machines of threads, simplified
    Tile,
    /// the same with the plan, layouts and homes of tiles
    Scheduled,
    /// the program of a thread
    Threaded,
    /// the same with barriers and all that the source has
    Final,
    /// CUDA C++ or MUSA C++
    Source,
    /// PTX by the vendor's compiler
    Ptx,
    /// machine code by the vendor's compiler; needs -o
    Cubin,
    /// machine code as text, by the vendor's tools
    Sass,
    /// threads, shared memory, barriers, accesses by width, registers: one `key: value` a line
    Facts,
    /// LLVM IR
    Llvm,
    /// assembly
    Asm,
    /// the contract with launchers, as JSON
    Abi,
}

pub struct Job<'a> {
    pub library: &'a Library,
    pub request: &'a Request,
    /// as the user wrote it
    pub target: &'a str,
    pub arch: Arch,
}

pub struct Made {
    pub bytes: Vec<u8>,
    /// How a file of it ends.
    pub extension: &'static str,
}

fn text(text: String, extension: &'static str) -> Result<Made, Failure> {
    Ok(Made { bytes: text.into_bytes(), extension })
}

impl Job<'_> {
    pub fn make(&self, stage: Stage, session: &mut Session) -> Result<Made, Failure> {
        let arch = &self.arch;
        let entry = compile(self.library, self.request, arch, &mut session.sources)?;
        session.show(&entry.warnings);
        let program = entry.program;
        match stage {
            Stage::Tile => self.staged(program, ir::Stage::Tile),
            Stage::Scheduled => self.staged(program, ir::Stage::Scheduled),
            Stage::Threaded => self.staged(program, ir::Stage::Threaded),
            Stage::Final => self.staged(program, ir::Stage::Final),
            Stage::Source => {
                let source = self.source(program)?.1;
                text(source.text, source.extension)
            }
            Stage::Ptx => text(vendor::ptx(&self.source(program)?.1, self)?, "ptx"),
            Stage::Cubin => Ok(vendor::image(&self.source(program)?.1, self)?),
            Stage::Sass => text(vendor::sass(&self.source(program)?.1, self)?, "sass"),
            Stage::Facts => self.facts(program),
            Stage::Llvm | Stage::Asm if arch.backend != Backend::Cpu => {
                let message = format!("`{}` has no LLVM IR and no assembly here", self.target);
                Err(Failure::new(codes::TARGET_ABSENT, message)
                    .help("they exist for `--target cpu`; GPUs have `--stage source` and `--stage ptx`"))
            }
            Stage::Llvm => text(native_code(&program, arch)?.llvm, "ll"),
            Stage::Asm => text(native_code(&program, arch)?.asm, "s"),
            Stage::Abi => {
                let abi = match arch.backend {
                    Backend::Cpu | Backend::Interp => entry.abi,
                    // the grid and the threads are those of the code, which the plan may have chosen
                    _ => {
                        let last = passes::at_stage(program, arch, ir::Stage::Final)?;
                        pantile::passes::abi::describe(&last)?
                    }
                };
                text(serde_json::to_string_pretty(&abi).unwrap_or_default() + "\n", "json")
            }
        }
    }

    fn staged(&self, program: Program, stage: ir::Stage) -> Result<Made, Failure> {
        let program = passes::at_stage(program, &self.arch, stage)?;
        text(printer::print(&program), "tile")
    }

    /// The last program and its source.
    fn source(&self, program: Program) -> Result<(Program, code::SourceText), Failure> {
        if matches!(self.arch.backend, Backend::Cpu | Backend::Interp) {
            let message = format!("`{}` has no source for a compiler of its own", self.target);
            return Err(Failure::new(codes::TARGET_ABSENT, message)
                .help("sources are for GPUs, such as `--target cuda:sm_80`; processors have `--stage llvm` and `--stage asm`"));
        }
        let program = passes::at_stage(program, &self.arch, ir::Stage::Final)?;
        let source = code::source(&program, &self.arch)?;
        Ok((program, source))
    }

    fn facts(&self, program: Program) -> Result<Made, Failure> {
        let work = pantile::passes::work::work(&program);
        let (program, source) = self.source(program)?;
        let compiled = vendor::facts(&source, self);
        let mut out = String::new();
        let several = source.kernels.len() > 1;
        let known = pantile::passes::facts::facts(&program, &self.arch)?;
        for ((facts, work), made) in known.iter().zip(&work).zip(&source.kernels) {
            if several {
                out += &format!("kernel: {}\n", made.name);
            }
            out += &format!("{facts}{work}");
            out += &compiled(&made.symbol);
        }
        text(out, "facts")
    }
}
