//! Generates valid programs as text: one kernel each, tile level or thread level, with the functions it calls and a
//! description of its arguments. Everything follows from a stream of [`Choices`].
//!
//! *Valid* means that elaboration and verification accept it and that the interpreter finds no fault: indices stay
//! inside, divisors are odd, shift counts are masked, whole-tile views get padded tiles, threads write places of
//! their own. Every kernel is `math exact`.

mod choices;
mod data;
mod exprs;
mod functions;
mod index;
mod memory;
mod ops;
mod roles;
mod scalars;
mod state;
mod stmts;
mod thread_stmts;
mod threads;
mod tiles;

pub use choices::{Choices, Rng};
pub use data::Data;
pub use state::{Dim, Mode, Param, ScalarParam, TensorParam};

use state::Gen;
use std::fmt::Write;

/// One generated program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name of the kernel.
    pub name: String,
    /// The kernel and its functions.
    pub text: String,
    pub params: Vec<Param>,
    /// Values of the kernel's generics as they stand in a launch: `f16`, `8`, `true`.
    pub generics: Vec<(String, String)>,
    /// The choices that made it.
    pub choices: Vec<u32>,
}

impl Program {
    /// Program number `number` of a batch; names carry the number, so that many fit into one file.
    pub fn generate(number: usize, mut choices: Choices) -> Program {
        let mut g = Gen::new(number, &mut choices);
        g.kernel();
        let mut program = g.finish();
        program.choices = choices.taken().to_vec();
        program
    }

    /// The launch of this program inside an op that has all its parameters, prefixed by its name.
    fn launch(&self) -> String {
        let generics = match &self.generics[..] {
            [] => String::new(),
            list => format!("<{}>", list.iter().map(|(_, v)| v.as_str()).collect::<Vec<_>>().join(", ")),
        };
        let args: Vec<String> = self.params.iter().map(|p| format!("{}_{}", self.name, p.name())).collect();
        format!("    launch {}{generics}({})\n", self.name, args.join(", "))
    }
}

/// One file with all the programs and an op `all` that launches every one.
pub fn batch(programs: &[&Program]) -> String {
    let mut text = String::new();
    for p in programs {
        text += &p.text;
        text.push('\n');
    }
    let params: Vec<String> = programs
        .iter()
        .flat_map(|p| p.params.iter().map(|q| q.declaration(&format!("{}_", p.name), &|n| n.to_string())))
        .collect();
    let _ = write!(text, "op all(\n    {}) {{\n", params.join(",\n    "));
    for p in programs {
        text += &p.launch();
    }
    text += "}\n";
    text
}
