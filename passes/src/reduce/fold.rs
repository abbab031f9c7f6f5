//! Combining two values of a fold, part by part.

use crate::make::Make;
use pantile_ir::builder::{Exprs, Result};
use pantile_ir::num;
use pantile_ir::program::*;
use std::collections::HashMap;

/// What a reduction combines with, and in which types.
pub struct Folder {
    pub comb: Combiner,
    /// `Some` where the text says what it means.
    user: Option<Combine>,
    /// Types of the running values.
    pub elems: Vec<Elem>,
}

impl Folder {
    pub fn new(comb: Combiner, user: Option<Combine>, inputs: impl Iterator<Item = Elem>) -> Folder {
        Folder { comb, user, elems: inputs.map(|e| fold_elem(comb, e)).collect() }
    }

    pub fn commutes(&self) -> bool {
        self.user.as_ref().is_none_or(|c| c.commutative)
    }

    /// `left ∘ right`
    pub fn join(&self, m: &mut Make, left: &[ExprId], right: &[ExprId]) -> Result<Vec<ExprId>> {
        if let Some(c) = &self.user {
            return inline(m, &c.func, &[left, right].concat());
        }
        left.iter().zip(right).map(|(&a, &b)| self.builtin(m, a, b)).collect()
    }

    fn builtin(&self, m: &mut Make, a: ExprId, b: ExprId) -> Result<ExprId> {
        let f = match self.comb {
            Combiner::Add => return m.bin(BinOp::Add, a, b),
            Combiner::Mul => return m.bin(BinOp::Mul, a, b),
            Combiner::And => return m.bin(BinOp::And, a, b),
            Combiner::Or => return m.bin(BinOp::Or, a, b),
            Combiner::Xor => return m.bin(BinOp::Xor, a, b),
            Combiner::Min => MathFn::Min,
            Combiner::Max | Combiner::User(_) => MathFn::Max,
        };
        m.expr(Expr::Math { f, approx: false, args: [a, b].into_iter().collect() })
    }

    /// What leaves the other side as it is.
    pub fn identity(&self, m: &mut Make) -> Result<Vec<ExprId>> {
        let constants: Vec<(Elem, u64)> = match &self.user {
            Some(c) => c.identity.clone(),
            None => self.elems.iter().map(|&e| (e, identity_bits(self.comb, e))).collect(),
        };
        constants.into_iter().map(|(elem, bits)| m.expr(Expr::Const { elem, bits })).collect()
    }
}

fn identity_bits(comb: Combiner, elem: Elem) -> u64 {
    let op = match comb {
        Combiner::Add => num::Bin::Add,
        Combiner::Mul => num::Bin::Mul,
        Combiner::Min => num::Bin::Min,
        Combiner::Max | Combiner::User(_) => num::Bin::Max,
        Combiner::And => num::Bin::And,
        Combiner::Or => num::Bin::Or,
        Combiner::Xor => num::Bin::Xor,
    };
    num::identity(op, elem).unwrap_or(0)
}

/// A pure function's results on `args`. Its own names become names of the kernel.
pub fn inline(m: &mut Make, f: &PureFn, args: &[ExprId]) -> Result<Vec<ExprId>> {
    let mut at = Inline {
        f,
        known: f.params.iter().copied().zip(args.iter().copied()).collect(),
        memo: HashMap::new(),
    };
    for &(local, value) in &f.lets {
        let value = at.expr(m, value)?;
        let value = m.let_(&f.body.locals[local].name, value)?;
        at.known.insert(local, value);
    }
    f.results.iter().map(|&r| at.expr(m, r)).collect()
}

struct Inline<'f> {
    f: &'f PureFn,
    known: HashMap<LocalId, ExprId>,
    memo: HashMap<ExprId, ExprId>,
}

impl Inline<'_> {
    fn expr(&mut self, m: &mut Make, e: ExprId) -> Result<ExprId> {
        if let Some(&done) = self.memo.get(&e) {
            return Ok(done);
        }
        let expr = &self.f.body.exprs[e];
        let new = match expr {
            Expr::Local(l) if self.known.contains_key(l) => self.known[l],
            _ => {
                let expr = expr.map_operands(|o| self.expr(m, o))?;
                m.k.expr(expr, m.span)?
            }
        };
        self.memo.insert(e, new);
        Ok(new)
    }
}
