//! Short ways to make the index arithmetic of passes. Arithmetic that is for nothing is not made.

use pantile_ir::builder::{Exprs, KernelBuilder, Result};
use pantile_ir::program::*;
use pantile_ir::span::Span;

/// A builder with the place that everything made here belongs to.
pub struct Make<'k> {
    pub k: &'k mut KernelBuilder,
    pub span: Span,
}

impl Make<'_> {
    pub fn expr(&mut self, e: Expr) -> Result<ExprId> {
        self.k.expr(e, self.span)
    }

    pub fn int(&mut self, n: u64) -> Result<ExprId> {
        self.k.constant_at(Elem::Index, n, self.span)
    }

    pub fn get(&mut self, l: LocalId) -> Result<ExprId> {
        self.k.get_at(l, self.span)
    }

    pub fn bin(&mut self, op: BinOp, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.expr(Expr::Binary(op, a, b))
    }

    pub fn known(&self, e: ExprId) -> Option<i64> {
        self.k.body().index_constant(e)
    }

    pub fn add(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        match (self.known(a), self.known(b)) {
            (Some(0), _) => Ok(b),
            (_, Some(0)) => Ok(a),
            _ => self.bin(BinOp::Add, a, b),
        }
    }

    pub fn add_int(&mut self, a: ExprId, n: u64) -> Result<ExprId> {
        let n = self.int(n)?;
        self.add(a, n)
    }

    pub fn sub(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        if self.known(b) == Some(0) { Ok(a) } else { self.bin(BinOp::Sub, a, b) }
    }

    pub fn scale(&mut self, a: ExprId, n: u64) -> Result<ExprId> {
        if n == 1 {
            return Ok(a);
        }
        let n = self.int(n)?;
        self.bin(BinOp::Mul, a, n)
    }

    pub fn div(&mut self, a: ExprId, n: u64) -> Result<ExprId> {
        if n == 1 {
            return Ok(a);
        }
        let n = self.int(n)?;
        self.bin(BinOp::Div, a, n)
    }

    pub fn rem(&mut self, a: ExprId, n: u64) -> Result<ExprId> {
        let n = self.int(n)?;
        if self.known(n) == Some(1) { self.int(0) } else { self.bin(BinOp::Rem, a, n) }
    }

    pub fn math(&mut self, f: MathFn, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.expr(Expr::Math { f, approx: false, args: [a, b].into_iter().collect() })
    }

    pub fn lt(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        self.bin(BinOp::Lt, a, b)
    }

    pub fn is_zero(&mut self, a: ExprId) -> Result<ExprId> {
        let zero = self.int(0)?;
        self.bin(BinOp::Eq, a, zero)
    }

    pub fn select(&mut self, cond: ExprId, then: ExprId, other: ExprId) -> Result<ExprId> {
        self.expr(Expr::Select { cond, then, other })
    }

    pub fn cast(&mut self, to: Elem, value: ExprId) -> Result<ExprId> {
        if self.elem(value) == Some(to) {
            return Ok(value);
        }
        self.expr(Expr::Cast { to, sat: false, value })
    }

    pub fn elem(&self, e: ExprId) -> Option<Elem> {
        self.k.type_of(e).and_then(Type::elem)
    }

    /// `let name = value`
    pub fn let_(&mut self, name: &str, value: ExprId) -> Result<ExprId> {
        let local = self.define(name, LocalKind::Let, value)?;
        self.get(local)
    }

    /// `var name = value`
    pub fn var(&mut self, name: &str, value: ExprId) -> Result<LocalId> {
        self.define(name, LocalKind::Var, value)
    }

    fn define(&mut self, name: &str, kind: LocalKind, value: ExprId) -> Result<LocalId> {
        let ty = self.k.type_of(value).cloned().unwrap_or(Type::INDEX);
        let local = self.k.local(name, ty, kind, self.span);
        self.stmt(StmtKind::Let { local, value })?;
        Ok(local)
    }

    pub fn stmt(&mut self, kind: StmtKind) -> Result<()> {
        self.k.stmt(kind, self.span)
    }

    /// `if cond { then }`
    pub fn when(&mut self, cond: ExprId, then: impl FnOnce(&mut Make) -> Result<()>) -> Result<()> {
        self.k.begin_block();
        then(self)?;
        let then = self.k.end_block()?;
        self.stmt(StmtKind::If { cond, then, other: Block::new() })
    }

    /// `for name in lo..hi { body }`
    pub fn count(
        &mut self,
        name: &str,
        (lo, hi): (ExprId, ExprId),
        body: impl FnOnce(&mut Make, ExprId) -> Result<()>,
    ) -> Result<()> {
        let var = self.k.local(name, Type::INDEX, LocalKind::Loop, self.span);
        let value = self.get(var)?;
        let step = self.int(1)?;
        self.k.begin_block();
        body(self, value)?;
        let body = self.k.end_block()?;
        let segments = std::iter::once(Segment::plain(lo, hi, step)).collect();
        let (kind, named, carry) = (LoopKind::Serial, Default::default(), Vec::new());
        self.stmt(StmtKind::For { var, kind, named, segments, carry, body })
    }

    /// The number of the thread in its block, where the threads' order is fixed.
    pub fn thread(&mut self) -> Result<ExprId> {
        let axes = self.k.kernel().threads.as_ref().map(|t| t.axes.clone()).unwrap_or_default();
        let mut stride = 1;
        let mut id = self.int(0)?;
        for &(axis, n) in axes.iter().rev() {
            let axis = self.get(axis)?;
            let part = self.scale(axis, stride)?;
            id = self.add(part, id)?;
            stride *= u64::from(n);
        }
        Ok(id)
    }
}
