//! What passes leave of one entry, one after the other: made once, for all cases of it.

use crate::driver::Compiled;
use pantile_ir::diag::Diagnostics;
use pantile_ir::print::print;
use pantile_ir::target::Arch;
use pantile_ir::verify::verify;
use pantile_passes::pipeline::{Cx, Pass};

pub struct Chain {
    pub entry: Compiled,
    /// Ends with the first pass that leaves no program.
    pub steps: Vec<Step>,
}

pub struct Step {
    pub pass: &'static str,
    pub left: Left,
}

pub enum Left {
    /// The text of its input: nothing new to run.
    Same,
    Program(Box<Compiled>),
    /// By a diagnostic of its own.
    Refused(Diagnostics),
    /// What it left does not verify.
    Broken(Diagnostics),
}

impl Chain {
    pub fn new(passes: &[&Pass], entry: Compiled, arch: &Arch) -> Chain {
        let mut steps = Vec::new();
        let mut program = entry.program.clone();
        let mut text = print(&program);
        for pass in passes {
            let Some(run) = pass.run else { continue };
            let left = match run(program.clone(), &Cx { arch }) {
                Err(refused) => Left::Refused(refused),
                Ok(made) => match verify(&made, arch) {
                    Err(found) => Left::Broken(found),
                    Ok(_) => {
                        let before = std::mem::replace(&mut text, print(&made));
                        program = made;
                        match before == text {
                            true => Left::Same,
                            false => Left::Program(Box::new(entry.with(program.clone()))),
                        }
                    }
                },
            };
            let ends = matches!(left, Left::Refused(_) | Left::Broken(_));
            steps.push(Step { pass: pass.name, left });
            if ends {
                break;
            }
        }
        Chain { entry, steps }
    }
}
