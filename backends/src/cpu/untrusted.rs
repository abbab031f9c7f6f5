//! Indices that come from the user's data, and the checks that they get before they become addresses.
//!
//! What the text computes from block and thread numbers is the author's, and the interpreter's to judge. What is
//! loaded, or given as a scalar, differs from run to run: it is compared with the extent, and a kernel that is
//! given a wrong one stops with a fault.

use super::bounds::Bound;
use super::emit::Int;
use super::error::Result;
use super::expr::Ix;
use super::frame::{Frame, TileMem};
use super::tile::for_each_expr;
use inkwell::IntPredicate;
use pantile_ir::codes;
use pantile_ir::program::{BinOp, Elem, Expr, ExprId, Kernel, LocalId, Mem, Stmt, StmtKind};
use std::collections::HashSet;

/// Locals whose value depends on what is in memory or in scalar arguments.
#[derive(Default)]
pub struct Untrusted {
    locals: HashSet<LocalId>,
}

impl Untrusted {
    pub fn of(kernel: &Kernel) -> Untrusted {
        let mut u = Untrusted::default();
        loop {
            let before = u.locals.len();
            u.block(kernel, &kernel.stmts, false);
            if u.locals.len() == before {
                return u;
            }
        }
    }

    /// `counted`: inside a `while` that asks the data, where any variable may have become anything.
    fn block(&mut self, k: &Kernel, block: &[Stmt], counted: bool) {
        for s in block {
            let mut from_data = matches!(s.kind, StmtKind::Op { .. }) || counted;
            s.kind.operands(|x| from_data |= self.holds(k, x));
            if from_data {
                self.locals.extend(s.kind.defines());
            }
            let counted = counted || (from_data && matches!(s.kind, StmtKind::While { .. }));
            for inner in s.kind.blocks() {
                self.block(k, inner, counted);
            }
        }
    }

    pub fn holds(&self, k: &Kernel, x: ExprId) -> bool {
        let mut any = false;
        for_each_expr(&k.body.exprs, x, &mut |id| {
            any |= match &k.body.exprs[id] {
                Expr::Element { .. } | Expr::Arg(_) => true,
                Expr::Local(l) => self.locals.contains(l),
                _ => false,
            }
        });
        any
    }
}

impl<'a, 'c> Frame<'a, 'c> {
    /// The indices of one element, each in its extent.
    pub fn element_index(&self, mem: Mem, index: &[ExprId]) -> Result<Vec<Int<'c>>> {
        let dims = self.mem_dims(mem);
        index.iter().zip(dims).map(|(&x, n)| self.element_axis(mem, x, Some(n))).collect()
    }

    /// One of them.
    pub fn element_axis(&self, mem: Mem, x: ExprId, extent: Option<Int<'c>>) -> Result<Int<'c>> {
        self.index_below(self.mem_name(mem), x, extent)
    }

    /// The place of one element in a tile or reducer of this shape.
    pub fn tile_index(&self, name: &str, index: &[ExprId], shape: &[u32]) -> Result<Vec<Ix<'c>>> {
        let one = |(&x, &n)| self.index_below(name, x, Some(self.e.int(n as i64))).map(Ix::at);
        index.iter().zip(shape).map(one).collect()
    }

    fn index_below(&self, name: &str, x: ExprId, extent: Option<Int<'c>>) -> Result<Int<'c>> {
        let i = self.index_expr(x)?;
        if let Some(n) = extent.filter(|_| self.untrusted.holds(self.kernel, x)) {
            self.go_on_if(self.e.cmp(IntPredicate::ULT, i, n), self.out_of(name));
        }
        Ok(i)
    }

    /// The first index of a span, which `clip low` alone lets be negative.
    pub fn span_start(&self, mem: Mem, x: ExprId, clip_low: bool) -> Result<Int<'c>> {
        let start = self.index_expr(x)?;
        let may_be_negative = || {
            let mut subtracts = self.untrusted.holds(self.kernel, x);
            for_each_expr(&self.kernel.body.exprs, x, &mut |id| {
                subtracts |=
                    matches!(self.kernel.body.exprs[id], Expr::Binary(BinOp::Sub, ..) | Expr::Unary(..));
            });
            subtracts
        };
        if !clip_low && self.e.known(start).is_none_or(|n| n < 0) && may_be_negative() {
            let message = format!("a region of `{}` starts below 0", self.mem_name(mem));
            let stop = self.fault(codes::NEGATIVE_START, message);
            self.go_on_if(self.not(self.e.lt(start, self.e.int(0))), stop);
        }
        Ok(start)
    }

    /// Every row that a gather names is there.
    pub fn gathered_rows(&self, mem: Mem, rows: &TileMem<'c>, bound: Bound<'c>, extent: Int<'c>) {
        let stop = self.out_of(self.mem_name(mem));
        self.e.for_(bound.lo, bound.hi, self.e.int(1), |i| {
            let row = self.e.convert(self.load_tile(rows, &[Ix::at(i)], 1), Elem::Index, false).int();
            self.go_on_if(self.e.cmp(IntPredicate::ULT, row, extent), stop);
        });
    }

    fn out_of(&self, name: &str) -> Int<'c> {
        let message = format!("an index made from data lies outside of `{name}`");
        self.fault(codes::OUT_OF_BOUNDS, message)
    }

    fn mem_name(&self, mem: Mem) -> &'a str {
        match mem {
            Mem::Tensor(id) => self.kernel.args[id].name.as_str(),
            Mem::Buffer(id) => self.kernel.buffers[id].name.as_str(),
            Mem::Slot { .. } => "a slot",
        }
    }
}
