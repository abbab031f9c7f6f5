//! How wide an access may be: contiguity, alignment and the target's widths.

use crate::affine::{Atom, Forms, Poly, Term};
use crate::ranges::Facts;
use pantile_ir::builder::{Exprs, KernelBuilder, Result};
use pantile_ir::program::*;
use pantile_ir::span::Span;
use pantile_ir::target::{Access, Fact, Mark};
use std::collections::BTreeMap;

/// The target's rules for one access of a thread.
#[derive(Clone, Copy)]
pub struct Widths {
    preferred: Option<pantile_ir::target::ByWidth>,
    max_bytes: i64,
    /// Least alignment of a wide access, where it is not its own width.
    loose: Option<i64>,
}

impl Widths {
    pub fn of(a: &Access) -> Widths {
        // an alignment that nobody has seen work is not relied on
        let sure = |f: &Fact<bool>| f.as_ref().is_some_and(|k| !k.value && k.mark != Mark::Unmeasured);
        let least = a.min_align_bytes.as_ref().filter(|k| k.mark != Mark::Unmeasured);
        Widths {
            preferred: a.preferred_bytes.as_ref().map(|k| k.value),
            max_bytes: a.max_bytes.as_ref().map_or(0, |k| k.value.into()),
            loose: least.filter(|_| sure(&a.natural_align)).map(|k| k.value.into()),
        }
    }

    /// Widths in elements that divide `n`, widest first, none narrower than two elements.
    fn widths(&self, bits: i64, n: i64) -> impl Iterator<Item = i64> {
        let bytes = self.preferred.map_or(0, |p| i64::from(p.of(bits as u32)).min(self.max_bytes));
        let most = (bytes * 8 / bits).max(1);
        let top = 1i64 << most.ilog2();
        std::iter::successors(Some(top), |w| Some(w / 2))
            .take_while(|&w| w >= 2)
            .filter(move |w| n % w == 0 && (w * bits) % 8 == 0)
    }

    /// Bytes to which an access of `bytes` bytes must be aligned.
    fn alignment(&self, bytes: i64) -> i64 {
        self.loose.map_or(bytes, |l| l.min(bytes))
    }
}

/// A run of lanes: `0..n` of a loop variable.
#[derive(Clone, Copy)]
pub struct Lanes {
    pub var: LocalId,
    pub n: i64,
}

/// An access that is wide, maybe only if dims are multiples of something.
pub struct Fit {
    pub width: i64,
    pub align_bytes: i64,
    pub dims: BTreeMap<DimId, i64>,
}

/// Memory whose last axis is contiguous.
struct Rows {
    bits: i64,
    strides: Vec<Poly>,
    /// Bytes of which the base address is a multiple.
    base: i64,
    /// Bytes of which all strides but the last are multiples, by the caller's promise.
    steps: i64,
}

/// The width of an access with this index; with `ask`, what it would be if dims were multiples.
pub fn fit(
    w: &Widths,
    facts: &mut Facts,
    k: &Kernel,
    (mem, index): (Mem, &[ExprId]),
    lanes: Lanes,
    ask: bool,
) -> Option<Fit> {
    let rows = rows(facts, k, mem)?;
    let (&last, outer) = index.split_last()?;
    let var = Atom::Local(lanes.var);
    let mut polys = Vec::new();
    for &e in outer {
        let p = facts.forms.of(&k.body, e)?;
        if depends(k, &facts.forms, &p, lanes.var) {
            return None;
        }
        polys.push(p);
    }
    let p = facts.forms.of(&k.body, last)?;
    let start = p.without(var);
    let moves = p.linear_in(var) == Some(1) && rows.strides.last()?.as_constant() == Some(1);
    if !moves || depends(k, &facts.forms, &start, lanes.var) {
        return None;
    }
    let mut address = start.clone();
    for (p, stride) in polys.iter().zip(&rows.strides) {
        address = address.plus(&p.times(stride)?, 1)?;
    }
    w.widths(rows.bits, lanes.n).find_map(|width| {
        let bytes = width * rows.bits / 8;
        let align_bytes = w.alignment(bytes);
        if rows.base < align_bytes {
            return None;
        }
        let moved = if rows.steps >= align_bytes { &start } else { &address };
        let multiple = (align_bytes * 8 / rows.bits).max(1);
        let (odd, whole) = facts.odd_terms(moved, multiple);
        if !ask && !odd.is_empty() {
            return None;
        }
        let dims = cover(&odd)?.into_iter().map(|d| (d, multiple)).collect();
        whole.then_some(Fit { width, align_bytes, dims })
    })
}

/// Dims of which each term has one, few: a row's length stands in all terms of an address, the lengths around it do not.
fn cover(terms: &[&Term]) -> Option<Vec<DimId>> {
    let dims = |t: &Term| -> Vec<DimId> {
        let dim = |a: &Atom| if let Atom::Dim(d) = a { Some(*d) } else { None };
        t.iter().filter_map(dim).collect()
    };
    let mut open: Vec<Vec<DimId>> = terms.iter().map(|t| dims(t)).collect();
    let mut chosen = Vec::new();
    while !open.is_empty() {
        let times = |d: DimId| open.iter().filter(|t| t.contains(&d)).count();
        // of two that do the same, the inner one
        let best = open.iter().flatten().copied().max_by_key(|&d| (times(d), d))?;
        open.retain(|t| !t.contains(&best));
        chosen.push(best);
    }
    Some(chosen)
}

fn depends(k: &Kernel, forms: &Forms, p: &Poly, var: LocalId) -> bool {
    p.atoms().any(|a| atom_depends(k, forms, a, var))
}

fn atom_depends(k: &Kernel, forms: &Forms, a: Atom, var: LocalId) -> bool {
    use crate::affine::Opaque::*;
    match a {
        Atom::Local(l) => l == var,
        Atom::Dim(_) | Atom::Arg(_) => false,
        Atom::Opaque(n) => match forms.opaque(n) {
            Div(x, y) | Rem(x, y) | CeilDiv(x, y) | Min(x, y) | Max(x, y) => {
                depends(k, forms, x, var) || depends(k, forms, y, var)
            }
            Value(e) => k.body.holds(*e, |x, _| *x == Expr::Local(var)),
        },
    }
}

fn rows(facts: &mut Facts, k: &Kernel, mem: Mem) -> Option<Rows> {
    match mem {
        Mem::Tensor(arg) => {
            let ArgKind::Tensor(t) = &k.args[arg].kind else { return None };
            let last = t.dims.len().checked_sub(1)?;
            let plain = t.packed.is_none_or(|p| p.axis as usize == last && p.order == PackOrder::Linear);
            if !plain || t.prepacked.is_some() {
                return None;
            }
            let strides = match &t.strides {
                Some(list) => list.iter().map(|&e| facts.forms.of(&k.body, e)).collect::<Option<Vec<_>>>()?,
                None => {
                    let dims = t.dims.iter().map(|&e| facts.forms.of(&k.body, e));
                    row_major(&dims.collect::<Option<Vec<_>>>()?)?
                }
            };
            let promised = t.align.map(i64::from);
            Some(Rows {
                bits: t.elem.bits().into(),
                strides,
                base: promised.unwrap_or(i64::MAX),
                steps: promised.unwrap_or(0),
            })
        }
        Mem::Buffer(b) => {
            let b = &k.buffers[b];
            if b.layout.is_some() || !matches!(b.home, Home::Shared | Home::Thread) {
                return None;
            }
            let dims: Vec<Poly> = b.shape.iter().map(|&n| Poly::constant(n.into())).collect();
            let strides = row_major(&dims)?;
            Some(Rows { bits: b.elem.bits().into(), strides, base: i64::MAX, steps: 0 })
        }
        Mem::Slot { .. } => None,
    }
}

fn row_major(dims: &[Poly]) -> Option<Vec<Poly>> {
    let mut out = vec![Poly::constant(1)];
    for d in dims.iter().skip(1).rev() {
        out.push(out.last()?.times(d)?);
    }
    out.reverse();
    (!dims.is_empty()).then_some(out)
}

/// Dims of a memory, as expressions, where they are; a buffer's are numbers.
pub enum Extent {
    Of(ExprId),
    Known(i64),
}

impl Extent {
    pub fn value(self, k: &mut KernelBuilder, span: Span) -> Result<ExprId> {
        match self {
            Extent::Of(e) => Ok(e),
            Extent::Known(n) => k.constant_at(Elem::Index, n as u64, span),
        }
    }
}

pub fn extents(k: &Kernel, mem: Mem) -> Vec<Extent> {
    match mem {
        Mem::Tensor(arg) => match &k.args[arg].kind {
            ArgKind::Tensor(t) => t.dims.iter().map(|&e| Extent::Of(e)).collect(),
            ArgKind::Scalar(_) => Vec::new(),
        },
        Mem::Buffer(b) => k.buffers[b].shape.iter().map(|&n| Extent::Known(n.into())).collect(),
        Mem::Slot { .. } => Vec::new(),
    }
}
