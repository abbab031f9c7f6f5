//! Statements.

use super::{Fun, Place, Result, Val, Var, fit};
use crate::clike::range::Range;
use crate::clike::tree::{C, S, Ty};
use crate::clike::unroll;
use pantile_ir::program::*;

impl<'a> Fun<'_, 'a> {
    pub(super) fn stmts(&mut self, block: &'a Block) -> Result<()> {
        block.iter().try_for_each(|s| self.stmt(s))
    }

    fn stmt(&mut self, s: &'a Stmt) -> Result<()> {
        self.span = s.span;
        self.shared.clear();
        match &s.kind {
            StmtKind::Let { local, value } => {
                let v = self.value(*value)?;
                self.define(*local, v)
            }
            StmtKind::Declare { local } => self.declare(*local),
            StmtKind::Assign { local, value } => {
                let v = self.value(*value)?;
                self.assign(*local, v)
            }
            StmtKind::Update { local, op, value } => self.update(*local, *op, *value),
            StmtKind::Store { mem, index, value } => {
                let mut roots = vec![*value];
                roots.extend(index);
                self.share(&roots)?;
                self.store(*mem, index, *value)
            }
            StmtKind::Buffer { buffer } => self.begin_buffer(*buffer),
            StmtKind::Op { results, op } => self.op(results, op),
            StmtKind::If { cond, then, other } => self.branch(*cond, then, other),
            StmtKind::For { var, kind, named, segments, carry, body } if carry.is_empty() => {
                self.for_loop(*var, *kind, named, segments, body)
            }
            StmtKind::While { cond, body } => self.while_loop(*cond, body),
            StmtKind::Break => {
                if let Some(Some(flag)) = self.left.last() {
                    let to = C::name(flag.clone());
                    self.push(S::Assign { op: "=", to, value: C::name("true") });
                }
                self.push(S::Break);
                Ok(())
            }
            StmtKind::Continue => {
                self.push(S::Continue);
                Ok(())
            }
            StmtKind::For { .. } | StmtKind::Next { .. } => Err(self.not_threaded("a slot of a ring")),
            StmtKind::Reducer { reducer } => {
                let name = self.kernel.and_then(|k| k.reducers.get(*reducer)).map_or("", |r| r.name.as_str());
                Err(self.not_threaded(&format!("the reducer `{name}`")))
            }
            StmtKind::Parallel { .. } => Err(self.not_threaded("`parallel`")),
            StmtKind::Roles(_) => Err(self.not_threaded("a `role`")),
        }
    }

    fn declare(&mut self, id: LocalId) -> Result<()> {
        let local = &self.body.locals[id];
        let Type::Scalar(elem) = local.ty else {
            return Err(self.not_threaded(&format!("`{}`", local.name)));
        };
        let v = Val::of(C::int(0), elem);
        let name = self.names.take(&local.name);
        self.push(S::Declare { constant: false, ty: v.ty.name().into(), name: name.clone(), init: None });
        self.locals.insert(id, Var { name, ty: v.ty, range: v.range });
        Ok(())
    }

    pub(super) fn assign(&mut self, id: LocalId, v: Val) -> Result<()> {
        let var = self.local(id)?.clone();
        let value = fit(v, var.ty);
        self.push(S::Assign { op: "=", to: C::name(var.name), value });
        Ok(())
    }

    fn update(&mut self, id: LocalId, op: Update, value: ExprId) -> Result<()> {
        let v = self.value(value)?;
        let var = self.local(id)?.clone();
        let Type::Scalar(elem) = self.body.locals[id].ty else { return Err(self.not_threaded("a tile")) };
        let own = C::name(var.name.clone());
        let left = if elem.is_integer() {
            Val::new(own.clone(), var.ty, var.range)
        } else {
            Val::of(own.clone(), elem)
        };
        let result = self.binary(op.binary(), elem, left, v)?;
        let (op, value) = match result.c {
            C::Binary(sign, a, b) if *a == own => match with_assignment(sign) {
                Some(op) => (op, *b),
                None => ("=", C::Binary(sign, a, b)),
            },
            c => ("=", fit(Val { c, ..result }, var.ty)),
        };
        self.push(S::Assign { op, to: own, value });
        Ok(())
    }

    fn begin_buffer(&mut self, id: BufferId) -> Result<()> {
        let buffer = self.buffer(id)?;
        match buffer.home {
            Home::Shared => Ok(()), // placed at the kernel's top
            Home::Thread | Home::Fragment => {
                let ty = Ty::of(buffer.elem);
                let name = self.names.take(&buffer.name);
                let len = buffer.shape.iter().map(|&n| u64::from(n)).product();
                let align = buffer.align.map_or(ty.bytes(), u64::from);
                self.push(S::Array { ty, name: name.clone(), len, align });
                self.buffers.insert(id, Place { name, ty });
                Ok(())
            }
            _ => Err(self.not_threaded(&format!("`{}`", buffer.name))),
        }
    }

    fn branch(&mut self, cond: ExprId, then: &'a Block, other: &'a Block) -> Result<()> {
        if let Some(known) = self.known(cond) {
            return self.stmts(if known { then } else { other });
        }
        let cond = self.value(cond)?.c;
        self.branches += 1;
        let then = self.block(|f| f.stmts(then));
        let other = self.block(|f| f.stmts(other));
        self.branches -= 1;
        self.push(S::If { cond, then: then?, other: other? });
        Ok(())
    }

    fn while_loop(&mut self, cond: ExprId, body: &'a Block) -> Result<()> {
        self.branches += 1;
        self.left.push(None);
        let mut test = C::name("true");
        let body = self.block(|f| {
            let c = f.value(cond)?.c;
            if f.stmts.is_empty() {
                test = c;
            } else {
                f.push(S::If { cond: C::unary("!", c), then: vec![S::Break], other: Vec::new() });
            }
            f.stmts(body)
        });
        self.left.pop();
        self.branches -= 1;
        self.push(S::While { cond: test, body: body? });
        Ok(())
    }

    fn for_loop(
        &mut self,
        var: LocalId,
        kind: LoopKind,
        named: &[LocalId],
        segments: &'a [Segment],
        body: &'a Block,
    ) -> Result<()> {
        if kind == LoopKind::Vectorized
            && let Some(copy) = self.wide(var, segments, body)?
        {
            self.push(copy);
            return Ok(());
        }
        let flag = (segments.len() > 1 && leaves(body)).then(|| self.names.take("left"));
        if let Some(name) = &flag {
            let init = Some(C::name("false"));
            self.push(S::Declare { constant: false, ty: "bool".into(), name: name.clone(), init });
        }
        self.left.push(flag);
        let done = segments.iter().try_for_each(|s| self.segment(var, kind, named, s, body));
        self.left.pop();
        done
    }

    fn segment(
        &mut self,
        var: LocalId,
        kind: LoopKind,
        named: &[LocalId],
        s: &'a Segment,
        body: &'a Block,
    ) -> Result<()> {
        let wanted = self.body.locals[var].name.clone();
        let (lo, hi, step) = (self.value(s.lo)?, self.bound(s.hi, &wanted)?, self.bound(s.step, &wanted)?);
        let past = Range::new(lo.range.lo, hi.range.hi.max(lo.range.hi) + step.range.hi);
        let range = Range::new(lo.range.lo, (hi.range.hi - 1).max(lo.range.lo));
        let ty = past.index_type();
        let flag = self.left.last().cloned().flatten();
        let mut name = String::new();
        let inner = self.block(|f| {
            name = f.names.take(&wanted);
            f.locals.insert(var, Var { name: name.clone(), ty, range });
            for (&n, &v) in named.iter().zip(&s.values) {
                match f.known(v) {
                    Some(b) => {
                        f.fixed.insert(n, b);
                    }
                    None => {
                        let v = f.value(v)?;
                        f.define(n, v)?;
                    }
                }
            }
            f.stmts(body)
        })?;
        named.iter().for_each(|n| {
            self.fixed.remove(n);
        });
        let mut cond = C::binary("<", C::name(name.clone()), hi.c);
        if let Some(flag) = flag {
            cond = C::binary("&&", C::unary("!", C::name(flag)), cond);
        }
        let hint = match kind {
            LoopKind::Unroll | LoopKind::Vectorized => Some("#pragma unroll"),
            LoopKind::NoUnroll => Some(unroll::KEEP),
            LoopKind::Serial | LoopKind::Pipelined { .. } => None,
        };
        self.push(S::For { hint, ty, var: name, lo: fit(lo, ty), cond, step: step.c, body: inner });
        Ok(())
    }

    /// A bound is evaluated once: written in place only where it cannot change.
    fn bound(&mut self, e: ExprId, of: &str) -> Result<Val> {
        let v = self.value(e)?;
        if self.steady(e) {
            return Ok(v);
        }
        let name = self.names.take(&format!("{of}_end"));
        self.push(S::Declare { constant: true, ty: v.ty.name().into(), name: name.clone(), init: Some(v.c) });
        Ok(Val { c: C::name(name), ..v })
    }

    fn steady(&self, e: ExprId) -> bool {
        if self.shared.contains_key(&e) {
            return true;
        }
        match &self.body.exprs[e] {
            Expr::Element { .. } => false,
            Expr::Local(l) => self.body.locals[*l].kind != LocalKind::Var,
            other => {
                let mut all = true;
                other.operands(|o| all &= self.steady(o));
                all
            }
        }
    }
}

fn with_assignment(sign: &str) -> Option<&'static str> {
    ["+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="]
        .into_iter()
        .find(|op| op.strip_suffix('=') == Some(sign))
}

/// Whether a `break` of this loop stands in its body.
fn leaves(block: &Block) -> bool {
    block.iter().any(|s| match &s.kind {
        StmtKind::Break => true,
        StmtKind::If { then, other, .. } => leaves(then) || leaves(other),
        _ => false,
    })
}
