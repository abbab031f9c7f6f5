//! The thread's number as axes. The cuts between the axes are those of all layouts and of the axes that the user
//! named, so every digit is a run of neighbouring axes and collectives can name it.

use super::Lower;
use crate::layout::Assignment;
use crate::layout::digits::{AxisLayout, unused};
use pantile_ir::builder::{Exprs, KernelBuilder, Result};
use pantile_ir::codes;
use pantile_ir::diag::Diagnostic;
use pantile_ir::program::*;
use std::collections::{BTreeSet, HashMap};

pub struct Lanes {
    pub count: u32,
    /// `(local, extent, stride)`, slowest first.
    pub axes: Vec<(LocalId, u32, u32)>,
    /// The axes that the user named: `(extent, stride)`.
    pub named: HashMap<LocalId, (u32, u32)>,
}

impl Lanes {
    /// Gives the kernel its thread axes; axes that the user named become sums of them.
    pub fn make(k: &mut KernelBuilder, assign: &Assignment) -> Result<Lanes> {
        let span = k.kernel().span;
        let named = order(k.kernel());
        let mut cuts: BTreeSet<u32> = [1, assign.threads].into();
        let all = assign.locals.values().chain(assign.stmts.values().flatten());
        for (extent, stride) in all.flatten().flat_map(AxisLayout::threads) {
            cuts.extend([stride, stride * extent]);
        }
        let mut stride = 1;
        for &(_, n) in named.iter().rev() {
            stride *= n;
            cuts.insert(stride);
        }
        let cuts: Vec<u32> = cuts.into_iter().collect();
        if cuts.windows(2).any(|w| w[1] % w[0] != 0) {
            let message =
                format!("no cut of {} threads fits all the layouts of `{}`", assign.threads, k.kernel().name);
            return Err(Diagnostic::error(codes::UNSUPPORTED, span, message)
                .help("use thread axes and tile extents with common factors, such as powers of two"));
        }
        let steps: Vec<(u32, u32)> = cuts.windows(2).rev().map(|w| (w[1] / w[0], w[0])).collect();
        let steps = if steps.is_empty() { vec![(1, 1)] } else { steps };
        let names: Vec<String> = match steps.len() {
            1 => vec!["t".into()],
            n => (0..n).map(|i| format!("t{i}")).collect(),
        };
        let given: Vec<(u32, &str)> =
            steps.iter().zip(&names).map(|(&(n, _), name)| (n, name.as_str())).collect();
        let span = k.kernel().threads.as_ref().map_or(span, |t| t.span);
        let locals = k.set_threads(&given, true, span);
        let axes = locals.iter().zip(&steps).map(|(&l, &(n, s))| (l, n, s)).collect();
        let mut lanes = Lanes { count: assign.threads, axes, named: HashMap::new() };
        let mut stride = 1;
        for &(local, n) in named.iter().rev() {
            let value = lanes.value(k, n, stride)?;
            k.kernel_mut().body.locals[local].kind = LocalKind::Let;
            k.stmt(StmtKind::Let { local, value }, span)?;
            lanes.named.insert(local, (n, stride));
            stride *= n;
        }
        Ok(lanes)
    }

    /// The axes that hold the digit, slowest first.
    pub fn run(&self, extent: u32, stride: u32) -> impl Iterator<Item = &(LocalId, u32, u32)> {
        self.axes.iter().filter(move |&&(_, n, s)| n > 1 && s >= stride && s < stride * extent)
    }

    /// The value of a digit of the thread's number.
    pub fn value(&self, k: &mut KernelBuilder, extent: u32, stride: u32) -> Result<ExprId> {
        let span = k.kernel().span;
        let mut sum = None;
        for &(local, _, s) in self.run(extent, stride).collect::<Vec<_>>() {
            let mut e = k.get_at(local, span)?;
            if s != stride {
                let place = k.constant_at(Elem::Index, u64::from(s / stride), span)?;
                e = k.expr(Expr::Binary(BinOp::Mul, e, place), span)?;
            }
            sum = Some(match sum {
                Some(sum) => k.expr(Expr::Binary(BinOp::Add, sum, e), span)?,
                None => e,
            });
        }
        match sum {
            Some(sum) => Ok(sum),
            None => k.constant_at(Elem::Index, 0, span),
        }
    }
}

/// The user's axes, slowest first: where their order is open, those that are reduced over are fastest.
fn order(k: &Kernel) -> Vec<(LocalId, u32)> {
    let Some(t) = &k.threads else { return Vec::new() };
    let mut axes: Vec<(LocalId, u32)> = t.axes.to_vec();
    if !t.ordered {
        let mut reduced = Vec::new();
        walk(&k.stmts, &mut |s| {
            if let StmtKind::Op { op: Op::AllReduce { over: Over::Axes(over), .. }, .. } = &s.kind {
                reduced.extend(over.iter().copied());
            }
        });
        axes.sort_by_key(|(l, _)| reduced.contains(l));
    }
    axes
}

impl Lower<'_, '_> {
    /// Thread axes of some digits, slowest place first.
    pub fn over(&self, digits: impl IntoIterator<Item = (u32, u32)>) -> Vec<LocalId> {
        digits.into_iter().flat_map(|(e, s)| self.lanes.run(e, s).map(|&(l, _, _)| l)).collect()
    }

    /// True on one of the threads that hold copies of the same elements; `None` where there are no copies.
    pub fn canonical(&mut self, axes: &[AxisLayout]) -> Result<Option<ExprId>> {
        let used: Vec<(u32, u32)> = axes.iter().flat_map(AxisLayout::threads).collect();
        let free = unused(&used, self.lanes.count);
        let locals = self.over(free.into_iter().rev());
        self.zero(&locals)
    }

    /// True on the first thread of the block; `None` where it is the only one.
    pub fn first(&mut self) -> Result<Option<ExprId>> {
        let locals: Vec<LocalId> = self.lanes.axes.iter().filter(|a| a.1 > 1).map(|a| a.0).collect();
        self.zero(&locals)
    }

    fn zero(&mut self, locals: &[LocalId]) -> Result<Option<ExprId>> {
        let mut all = None;
        for &l in locals {
            let (l, zero) = (self.get(l)?, self.int(0)?);
            let is = self.bin(BinOp::Eq, l, zero)?;
            all = self.both(all, Some(is))?;
        }
        Ok(all)
    }
}
