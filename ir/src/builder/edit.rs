//! Rewriting: passes take a kernel's statements and make new ones with the same builder, so that whatever they make
//! is checked as a user's program is.

use super::{Defs, Exprs, KernelBuilder, Result, Shared};
use crate::program::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Gives each kernel of a program to `f`: a builder that holds all of the kernel but its statements, and those. What
/// `f` adds become the statements of the new kernel; the program is then of stage `to`.
pub fn rewrite(
    program: Program,
    to: Stage,
    mut f: impl FnMut(&mut KernelBuilder, Block) -> Result<()>,
) -> Result<Program> {
    let Program { arch, combines, intrinsics, kernels, entry, .. } = program;
    let defs: Defs = Rc::new(RefCell::new(Shared { combines, intrinsics, ..Shared::default() }));
    let mut done = crate::arena::Arena::new();
    for (id, kernel) in kernels.iter() {
        let mut kernel = kernel.clone();
        let stmts = std::mem::take(&mut kernel.stmts);
        let mut builder = KernelBuilder::resume(defs.clone(), kernel);
        f(&mut builder, stmts)?;
        done.push(builder.finish()?, kernels.span(id));
    }
    let mut shared = defs.borrow_mut();
    Ok(Program {
        stage: to,
        arch,
        combines: std::mem::take(&mut shared.combines),
        intrinsics: std::mem::take(&mut shared.intrinsics),
        kernels: done,
        entry,
    })
}

/// Copies expressions with some of them replaced; equal handles stay equal.
#[derive(Default)]
pub struct Substitution {
    /// What stands for a name.
    pub locals: HashMap<LocalId, ExprId>,
    memo: HashMap<ExprId, ExprId>,
}

impl Substitution {
    pub fn new(locals: impl IntoIterator<Item = (LocalId, ExprId)>) -> Substitution {
        Substitution { locals: locals.into_iter().collect(), memo: HashMap::new() }
    }

    /// The expression with the names replaced; itself where it holds none of them.
    pub fn apply(&mut self, k: &mut impl Exprs, e: ExprId) -> Result<ExprId> {
        if let Some(&done) = self.memo.get(&e) {
            return Ok(done);
        }
        let expr = k.body().exprs[e].clone();
        let new = match &expr {
            Expr::Local(l) => self.locals.get(l).copied().unwrap_or(e),
            _ => {
                let mapped = expr.map_operands(|o| self.apply(k, o))?;
                if mapped == expr {
                    e
                } else {
                    let span = k.body().exprs.span(e);
                    k.expr(mapped, span)?
                }
            }
        };
        self.memo.insert(e, new);
        Ok(new)
    }
}

/// A walk that makes new statements out of old ones; what a pass does not change is copied.
pub trait Rewrite {
    fn stmt(&mut self, k: &mut KernelBuilder, stmt: Stmt) -> Result<()>;

    fn stmts(&mut self, k: &mut KernelBuilder, block: Block) -> Result<()> {
        block.into_iter().try_for_each(|s| self.stmt(k, s))
    }

    /// A block of its own.
    fn block(&mut self, k: &mut KernelBuilder, block: Block) -> Result<Block> {
        k.begin_block();
        self.stmts(k, block)?;
        k.end_block()
    }

    /// The statement as it is, with its blocks rewritten.
    fn keep(&mut self, k: &mut KernelBuilder, mut stmt: Stmt) -> Result<()> {
        for block in stmt.kind.blocks_mut() {
            let old = std::mem::take(block);
            *block = self.block(k, old)?;
        }
        k.stmt_staged(stmt.kind, stmt.span, stmt.stage)
    }
}
