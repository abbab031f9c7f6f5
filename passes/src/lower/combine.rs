//! Combiners on scalars: built-in operators, and users' functions written out.

use super::Lower;
use pantile_ir::builder::{Exprs, Result, Substitution};
use pantile_ir::codes;
use pantile_ir::diag::Diagnostic;
use pantile_ir::program::*;
use std::collections::HashMap;

impl Lower<'_, '_> {
    /// Types in which a fold of these elements runs.
    pub fn fold_elems(&self, comb: Combiner, elems: &[Elem]) -> Vec<Elem> {
        elems.iter().map(|&e| fold_elem(comb, e)).collect()
    }

    /// What leaves a fold as it is.
    pub fn identity(&mut self, comb: Combiner, elems: &[Elem]) -> Result<Vec<ExprId>> {
        if let Combiner::User(id) = comb {
            let parts = self.combines[id].identity.clone();
            return parts.iter().map(|&(e, bits)| self.k.constant_at(e, bits, self.span)).collect();
        }
        elems
            .iter()
            .map(|&e| {
                let op = pantile_ir::num::Bin::of_combiner(comb);
                let bits = op.and_then(|op| pantile_ir::num::identity(op, e)).ok_or_else(|| {
                    Diagnostic::error(codes::UNSUPPORTED, self.span, format!("{e} has no such fold"))
                })?;
                self.k.constant_at(e, bits, self.span)
            })
            .collect()
    }

    pub fn commutes(&self, comb: Combiner) -> bool {
        match comb {
            Combiner::User(id) => self.combines[id].commutative,
            _ => true,
        }
    }

    /// `comb(a, b)`, part by part.
    pub fn combine(&mut self, comb: Combiner, a: &[ExprId], b: &[ExprId]) -> Result<Vec<ExprId>> {
        let one = |s: &mut Self, op: Expr| s.expr(op).map(|e| vec![e]);
        match comb {
            Combiner::Add => one(self, Expr::Binary(BinOp::Add, a[0], b[0])),
            Combiner::Mul => one(self, Expr::Binary(BinOp::Mul, a[0], b[0])),
            Combiner::And => one(self, Expr::Binary(BinOp::And, a[0], b[0])),
            Combiner::Or => one(self, Expr::Binary(BinOp::Or, a[0], b[0])),
            Combiner::Xor => one(self, Expr::Binary(BinOp::Xor, a[0], b[0])),
            Combiner::Min | Combiner::Max => {
                let f = if comb == Combiner::Min { MathFn::Min } else { MathFn::Max };
                self.math(f, &[a[0], b[0]]).map(|e| vec![e])
            }
            Combiner::User(id) => {
                let func = self.combines[id].func.clone();
                self.call(&func, a.iter().chain(b).copied())
            }
        }
    }

    /// A pure function written out: its names become scalars of the thread.
    fn call(&mut self, func: &PureFn, args: impl Iterator<Item = ExprId>) -> Result<Vec<ExprId>> {
        let mut names = Substitution::new(func.params.iter().copied().zip(args));
        for &(local, value) in &func.lets {
            let v = self.import(&func.body, value, &mut names.locals, &mut HashMap::new())?;
            let name = func.body.locals[local].name.clone();
            let v = self.bind(&name, v)?;
            names.locals.insert(local, v);
        }
        let mut done = HashMap::new();
        func.results.iter().map(|&r| self.import(&func.body, r, &mut names.locals, &mut done)).collect()
    }

    /// Copies an expression of another body.
    fn import(
        &mut self,
        from: &Body,
        e: ExprId,
        names: &mut HashMap<LocalId, ExprId>,
        done: &mut HashMap<ExprId, ExprId>,
    ) -> Result<ExprId> {
        if let Some(&d) = done.get(&e) {
            return Ok(d);
        }
        let new = match &from.exprs[e] {
            Expr::Local(l) => match names.get(l) {
                Some(&v) => v,
                None => {
                    return self.refuse("a combiner names what is not its own", "use only its parameters");
                }
            },
            other => {
                let mapped = other.map_operands(|o| self.import(from, o, names, done))?;
                self.expr(mapped)?
            }
        };
        done.insert(e, new);
        Ok(new)
    }
}
