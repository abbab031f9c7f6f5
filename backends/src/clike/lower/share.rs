//! Parts of an expression that a statement uses more than once and that cost something get a name before it. Only what
//! is evaluated in any case may move there: the other side of a condition must not be touched.

use super::{Fun, Result};
use crate::clike::tree::S;
use pantile_ir::program::*;
use std::collections::{HashMap, HashSet};

/// Parts smaller than this are written again.
const CHEAP: usize = 5;
/// Parts of one statement after which its text would help nobody.
const LARGEST: usize = 20_000;

#[derive(Default)]
struct Uses {
    count: HashMap<ExprId, u32>,
    always: HashSet<ExprId>,
    seen: HashSet<(ExprId, bool)>,
    /// Operands before what uses them.
    order: Vec<ExprId>,
    size: HashMap<ExprId, usize>,
}

impl Uses {
    fn visit(&mut self, body: &Body, e: ExprId, always: bool) {
        if always {
            self.always.insert(e);
        }
        if self.seen.contains(&(e, true)) || !self.seen.insert((e, always)) {
            return;
        }
        let first = !self.size.contains_key(&e);
        let expr = &body.exprs[e];
        let lazy: Vec<ExprId> = match expr {
            Expr::Select { then, other, .. } => vec![*then, *other],
            Expr::Binary(op, _, b) if op.is_logical() => vec![*b],
            Expr::Element { or: Some(or), .. } => vec![*or],
            _ => Vec::new(),
        };
        let mut operands = Vec::new();
        expr.operands(|o| operands.push(o));
        for &o in &operands {
            if first {
                // a guarded read tests the index and uses it
                let twice = matches!(expr, Expr::Element { or: Some(or), .. } if o != *or);
                *self.count.entry(o).or_default() += if twice { 2 } else { 1 };
            }
            self.visit(body, o, always && !lazy.contains(&o));
        }
        if first {
            let own = if matches!(expr, Expr::Element { .. }) { 3 } else { 1 };
            let all = operands.iter().map(|o| self.size.get(o).copied().unwrap_or(1));
            self.size.insert(e, all.fold(own, usize::saturating_add));
            self.order.push(e);
        }
    }
}

impl<'a> Fun<'_, 'a> {
    /// Names what `roots` share. The names hold until the next call.
    pub(super) fn share(&mut self, roots: &[ExprId]) -> Result<()> {
        self.shared.clear();
        let mut uses = Uses::default();
        for &r in roots {
            *uses.count.entry(r).or_default() += 1;
            uses.visit(self.body, r, true);
        }
        let mut written: HashMap<ExprId, usize> = HashMap::new();
        for &e in &uses.order {
            let expr = &self.body.exprs[e];
            let mut size = 1usize;
            expr.operands(|o| size = size.saturating_add(written.get(&o).copied().unwrap_or(1)));
            if uses.count[&e] > 1 && uses.size[&e] >= CHEAP && uses.always.contains(&e) {
                self.name_part(e)?;
                size = 1;
            }
            if size > LARGEST {
                return Err(self
                    .unsupported(format!("an expression of more than {LARGEST} parts"))
                    .help("give parts of it names with `let`"));
            }
            written.insert(e, size);
        }
        Ok(())
    }

    fn name_part(&mut self, e: ExprId) -> Result<()> {
        let mut v = self.expr(e)?;
        let name = self.names.take("t");
        let init = Some(v.c);
        self.push(S::Declare { constant: true, ty: v.ty.name().into(), name: name.clone(), init });
        v.c = crate::clike::tree::C::name(name);
        self.shared.insert(e, v);
        Ok(())
    }
}
