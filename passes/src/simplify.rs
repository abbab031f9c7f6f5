//! Exact simplification before anything is planned: conditions and indices that are known, statements that nobody
//! reads, tiles that one other statement reads element for element.
//!
//! Reads and leaves a program of stage `tile`. Only integers and conditions are computed; float operations stay as
//! they are written, and so do all reads of memory that something uses.

use crate::clean::{Clean, without_dead, writes};
use crate::forward::forward;
use crate::pipeline::Cx;
use pantile_ir::builder::{Rewrite, rewrite};
use pantile_ir::diag::Diagnostics;
use pantile_ir::program::Program;

pub fn run(program: Program, _: &Cx) -> Result<Program, Diagnostics> {
    let stage = program.stage;
    let made = rewrite(program, stage, |k, stmts| {
        let mut clean = Clean::of(k.kernel(), false);
        let stmts = without_dead(k, stmts);
        let stmts = forward(k, stmts)?;
        clean.writes = writes(&stmts);
        clean.stmts(k, stmts)
    });
    made.map_err(|d| std::iter::once(d).collect())
}
