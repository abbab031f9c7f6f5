//! The last look before source is written: what is known is decided, what does nothing is gone.
//!
//! Reads and leaves a program of stage `final`. Conditions and bounds that hold at their place, loops of one round,
//! empty statements, names and thread arrays that nobody reads. The order of effects and of float arithmetic stays.

use crate::clean::{Clean, without_dead};
use crate::pipeline::Cx;
use pantile_ir::builder::{KernelBuilder, Result, Rewrite, rewrite};
use pantile_ir::diag::Diagnostics;
use pantile_ir::program::{Block, Program};

pub fn run(program: Program, _: &Cx) -> std::result::Result<Program, Diagnostics> {
    let stage = program.stage;
    let made = rewrite(program, stage, |k, stmts| {
        // what a round leaves without readers shows in the next
        let mut block = stmts;
        for _ in 0..2 {
            block = round(k, block)?;
        }
        block.into_iter().try_for_each(|s| k.stmt_staged(s.kind, s.span, s.stage))
    });
    made.map_err(|d| std::iter::once(d).collect())
}

fn round(k: &mut KernelBuilder, block: Block) -> Result<Block> {
    let mut clean = Clean::of(k.kernel(), true);
    let block = clean.block(k, block)?;
    Ok(without_dead(k, block))
}
