//! The one list of passes: their names, what each does, what it reads and what it leaves. Who runs them, prints what
//! they leave and checks it is the driver's.

use pantile_ir::diag::Diagnostics;
use pantile_ir::program::{Kernel, KernelId, Program, Stage};
use pantile_ir::target::{Arch, Backend};

/// What a pass may ask beside the program.
#[derive(Clone, Copy)]
pub struct Cx<'a> {
    pub arch: &'a Arch,
}

/// A program made out of a program.
pub type Run = fn(Program, &Cx) -> Result<Program, Diagnostics>;

/// Fills what of each kernel has no statement: plan, homes, layouts, the order of threads.
pub(crate) fn fill(mut program: Program, to: Stage, mut f: impl FnMut(KernelId, &mut Kernel)) -> Program {
    for id in program.kernels.handles() {
        f(id, &mut program.kernels[id]);
    }
    program.stage = to;
    program
}

/// What a pass reads or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// text with generics, `fn` and params
    Source,
    /// a program of a stage; as a pass's input, of this stage or a later one
    Program(Stage),
    /// what launchers must know
    Contract,
    /// C-like source text
    Code,
    Llvm,
    Assembly,
}

impl Form {
    /// How a file of it is called; of code, where its back end has no name of its own for such files.
    pub const fn extension(self) -> &'static str {
        match self {
            Form::Source | Form::Program(_) => "tile",
            Form::Contract => "json",
            Form::Code => "c",
            Form::Llvm => "ll",
            Form::Assembly => "s",
        }
    }
}

/// For whom a pass runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Everyone,
    /// machines whose blocks are loops of one core
    Cores,
    /// machines whose blocks are many threads
    Threads,
}

impl Family {
    pub fn has(self, backend: Backend) -> bool {
        match self {
            Family::Everyone => true,
            Family::Cores => backend == Backend::Cpu,
            Family::Threads => !matches!(backend, Backend::Cpu | Backend::Interp),
        }
    }
}

/// One pass.
#[derive(Clone, Copy)]
pub struct Pass {
    pub name: &'static str,
    pub doc: &'static str,
    pub from: Form,
    pub to: Form,
    pub family: Family,
    /// What it does to a program; `None` where another crate does the work (the front end, a back end).
    pub run: Option<Run>,
}

const TILE: Form = Form::Program(Stage::Tile);
const SCHEDULED: Form = Form::Program(Stage::Scheduled);
const FINAL: Form = Form::Program(Stage::Final);
const THREADED: Form = Form::Program(Stage::Threaded);

const fn pass(name: &'static str, from: Form, to: Form, doc: &'static str) -> Pass {
    Pass { name, doc, from, to, family: Family::Everyone, run: None }
}

const fn cores(name: &'static str, from: Form, to: Form, doc: &'static str) -> Pass {
    Pass { name, doc, from, to, family: Family::Cores, run: None }
}

const fn threads(name: &'static str, from: Form, to: Form, run: Run, doc: &'static str) -> Pass {
    Pass { name, doc, from, to, family: Family::Threads, run: Some(run) }
}

/// All passes in the order in which they run.
pub const PASSES: &[Pass] = &[
    pass(
        "specialise",
        Form::Source,
        TILE,
        "binds generics, params and facts of the target, inlines functions",
    ),
    pass("verify", TILE, TILE, "checks everything that back ends rely on; changes nothing"),
    pass("abi", TILE, Form::Contract, "describes parameters, grid of tiles and conditions for launchers"),
    threads("simplify", TILE, TILE, crate::simplify::run, "decides what is known, drops what nobody reads"),
    threads(
        "plan",
        TILE,
        SCHEDULED,
        crate::plan::run,
        "decides: threads, variants of ops, blocks of a schedule",
    ),
    threads(
        "schedule",
        SCHEDULED,
        SCHEDULED,
        crate::schedule::run,
        "makes the order in which blocks take the grid's tiles, as the plan says",
    ),
    threads(
        "layout",
        SCHEDULED,
        SCHEDULED,
        crate::layout::run,
        "says where tiles live and which thread holds which element",
    ),
    threads(
        "lower",
        SCHEDULED,
        THREADED,
        crate::lower::run,
        "turns tiles into registers and shared memory, tile ops into loops of each thread",
    ),
    threads(
        "vectorize",
        THREADED,
        THREADED,
        crate::vectorize::run,
        "neighbouring lanes become one access of a legal width",
    ),
    threads(
        "reduce",
        THREADED,
        THREADED,
        crate::reduce::run,
        "folds over threads by shuffles and staging memory",
    ),
    threads(
        "share",
        THREADED,
        THREADED,
        crate::share::run,
        "places shared buffers in one arena, padded against bank conflicts",
    ),
    threads("order", THREADED, FINAL, crate::order::run, "waits where threads meet in memory"),
    threads("guard", FINAL, FINAL, crate::guard::run, "splits loops so that the steady part has no compare"),
    threads("tidy", FINAL, FINAL, crate::tidy::run, "the last look: known, dead and empty things are gone"),
    threads("verify-order", FINAL, FINAL, crate::verify_order::run, "replays the barriers; changes nothing"),
    Pass {
        name: "source",
        doc: "writes the source text for the vendor's compiler",
        from: FINAL,
        to: Form::Code,
        family: Family::Threads,
        run: None,
    },
    cores("lower", TILE, Form::Llvm, "writes LLVM IR"),
    cores("optimize", Form::Llvm, Form::Llvm, "LLVM's own passes"),
    cores("assemble", Form::Llvm, Form::Assembly, "machine code, shown as assembly"),
];

/// The passes of a back end, in order.
pub fn of(backend: Backend) -> impl Iterator<Item = &'static Pass> {
    PASSES.iter().filter(move |p| p.family.has(backend))
}

/// Runs the passes that make programs out of a verified program, and shows what each leaves.
pub fn run(
    mut program: Program,
    cx: &Cx,
    mut observe: impl FnMut(&'static Pass, &Program) -> Result<(), Diagnostics>,
) -> Result<Program, Diagnostics> {
    for pass in of(cx.arch.backend) {
        if let Some(run) = pass.run {
            program = run(program, cx)?;
            observe(pass, &program)?;
        }
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_reads_what_one_before_it_left() {
        for (i, p) in PASSES.iter().enumerate() {
            let both = |q: &Pass| Backend::ALL.iter().any(|&b| q.family.has(b) && p.family.has(b));
            assert!(PASSES[..i].iter().filter(|q| both(q)).all(|q| q.name != p.name), "{}", p.name);
            let left = |q: &&Pass| q.to == p.from && both(q);
            assert!(p.from == Form::Source || PASSES[..i].iter().any(|q| left(&q)), "{}", p.name);
        }
    }
}
