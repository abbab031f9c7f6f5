//! The one list of passes: their names, what each does, what it reads and what it leaves. Who runs them, prints what
//! they leave and checks it is the driver's.

use pantile_ir::program::Stage;
use pantile_ir::target::Backend;

/// What a pass reads or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// text with generics, `fn` and params
    Source,
    /// a program of a stage; as a pass's input, of this stage or a later one
    Program(Stage),
    /// what launchers must know
    Contract,
    Llvm,
    Assembly,
}

impl Form {
    /// How a file of it is called.
    pub const fn extension(self) -> &'static str {
        match self {
            Form::Source | Form::Program(_) => "tile",
            Form::Contract => "json",
            Form::Llvm => "ll",
            Form::Assembly => "s",
        }
    }
}

/// One pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    pub name: &'static str,
    pub doc: &'static str,
    pub from: Form,
    pub to: Form,
    /// The back end whose pass it is; `None` is everyone's.
    pub backend: Option<Backend>,
}

const TILE: Form = Form::Program(Stage::Tile);

const fn pass(name: &'static str, from: Form, to: Form, doc: &'static str) -> Pass {
    Pass { name, doc, from, to, backend: None }
}

const fn cpu(name: &'static str, from: Form, to: Form, doc: &'static str) -> Pass {
    Pass { name, doc, from, to, backend: Some(Backend::Cpu) }
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
    pass("abi", TILE, Form::Contract, "describes parameters, grid and conditions for launchers"),
    cpu("lower", TILE, Form::Llvm, "writes LLVM IR"),
    cpu("optimize", Form::Llvm, Form::Llvm, "LLVM's own passes"),
    cpu("assemble", Form::Llvm, Form::Assembly, "machine code, shown as assembly"),
];

/// The passes of a back end, in order.
pub fn of(backend: Backend) -> impl Iterator<Item = &'static Pass> {
    PASSES.iter().filter(move |p| p.backend.is_none_or(|b| b == backend))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_reads_what_one_before_it_left() {
        for (i, p) in PASSES.iter().enumerate() {
            assert!(PASSES[..i].iter().all(|q| q.name != p.name), "{}", p.name);
            let left = |q: &Pass| q.to == p.from && (q.backend.is_none() || q.backend == p.backend);
            assert!(p.from == Form::Source || PASSES[..i].iter().any(left), "{}", p.name);
        }
    }
}
