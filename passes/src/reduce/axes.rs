//! The order of threads, where the text leaves it open: axes that are reduced count fastest, so that a reduction stays
//! among neighbouring lanes.

use crate::pipeline::fill;
use pantile_ir::program::*;

/// Fixes the order of the threads of each kernel that names them.
pub fn run(program: Program) -> Program {
    let stage = program.stage;
    fill(program, stage, |_, k| {
        let Some(axes) = order(k, &k.stmts) else { return };
        for (i, &(l, _)) in axes.iter().enumerate() {
            k.body.locals[l].kind = LocalKind::Thread(i as u8);
        }
        if let Some(threads) = &mut k.threads {
            threads.axes = axes.into_iter().collect();
            threads.ordered = true;
        }
    })
}

/// The axes slowest first: those that nobody reduces as they stand, then the others, the more often reduced the
/// faster. `None` where the text has fixed the order.
fn order(kernel: &Kernel, stmts: &Block) -> Option<Vec<(LocalId, u32)>> {
    let threads = kernel.threads.as_ref().filter(|t| !t.ordered)?;
    let mut uses: Vec<(usize, usize)> = vec![(0, 0); threads.axes.len()];
    walk(stmts, &mut |s| {
        if let StmtKind::Op { op: Op::AllReduce { over: Over::Axes(axes), .. }, .. } = &s.kind {
            for (place, &axis) in axes.iter().enumerate() {
                if let Some(i) = threads.axes.iter().position(|&(l, _)| l == axis) {
                    uses[i].0 += 1;
                    uses[i].1 = uses[i].1.max(place);
                }
            }
        }
    });
    let mut numbers: Vec<usize> = (0..threads.axes.len()).collect();
    // stable: where nothing is reduced the text's order stays
    numbers.sort_by_key(|&i| uses[i]);
    Some(numbers.into_iter().map(|i| threads.axes[i]).collect())
}
