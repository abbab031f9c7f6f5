//! Whether the threads of a block meet in statements: in a collective, or in memory that one of them writes and another
//! touches. Where they do, it counts whether the block comes there as a whole; where not, each may come by itself.

use super::divergence::{Kind, KindOfNeed};
use pantile_ir::effects::{Ctx, Kind as Touch, Obj, stmt_effects};
use pantile_ir::program::*;
use pantile_ir::verify::Level;
use std::collections::HashMap;

/// Whether threads meet in these blocks.
pub fn meets<'b>(kernel: &Kernel, blocks: impl IntoIterator<Item = &'b Block>) -> bool {
    let mut at = Meeting { kernel, tensors: HashMap::new(), found: false };
    blocks.into_iter().for_each(|b| at.block(b, false));
    at.found
}

/// Whether statements leave or end the step of the loop around them.
pub fn jumps(block: &Block) -> bool {
    block.iter().any(|s| match &s.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::If { then, other, .. } => jumps(then) || jumps(other),
        _ => false,
    })
}

struct Meeting<'k> {
    kernel: &'k Kernel,
    /// Statements on one way through that touch a tensor, and whether any of all writes it.
    tensors: HashMap<ArgId, (u32, bool)>,
    found: bool,
}

impl Meeting<'_> {
    fn block(&mut self, block: &Block, again: bool) {
        for s in block {
            self.stmt(s, again);
            // steps of a loop over a thread's own elements touch different ones
            let steps = match &s.kind {
                StmtKind::For { kind, .. } => !matches!(kind, LoopKind::Unroll | LoopKind::Vectorized),
                StmtKind::While { .. } => true,
                _ => false,
            };
            // a thread takes one of two branches
            let before = self.tensors.clone();
            let mut all = before.clone();
            for inner in s.kind.blocks() {
                self.tensors.clone_from(&before);
                self.block(inner, again || steps);
                for (&arg, &(count, written)) in &self.tensors {
                    let (n, w) = all.entry(arg).or_default();
                    (*n, *w) = ((*n).max(count), *w || written);
                }
            }
            self.tensors = all;
        }
    }

    fn stmt(&mut self, s: &Stmt, again: bool) {
        self.found |= match s.kind_of_need() {
            Kind::Needs(level) => level > Level::Thread,
            Kind::Fold(..) => true,
            Kind::Buffer(b) => self.kernel.buffers[b].home != Home::Thread,
        };
        let touched = stmt_effects(&s.kind, &Ctx { kernel: self.kernel, team: None, span: s.span });
        for a in touched {
            let writes = a.kind != Touch::Read;
            match a.obj {
                Obj::Shared(_) => self.found |= writes,
                Obj::Global(arg) => {
                    let (count, written) = self.tensors.entry(arg).or_default();
                    *count += if again { 2 } else { 1 };
                    *written |= writes;
                    self.found |= *written && *count > 1;
                }
                _ => {}
            }
        }
    }
}
