//! The one form of a wide access: a `vectorized` loop that copies neighbours, whose width and alignment earlier steps
//! have proven.

use super::memory::Spot;
use super::{Fun, Result};
use crate::clike::tree::{C, S};
use pantile_ir::layout::Axis;
use pantile_ir::program::*;

struct Side<'a> {
    mem: Mem,
    index: &'a Args,
}

impl<'a> Fun<'_, 'a> {
    /// The copy, if the loop is one.
    pub(super) fn wide(&mut self, var: LocalId, segments: &[Segment], body: &'a Block) -> Result<Option<S>> {
        let ([seg], [stmt]) = (segments, body.as_slice()) else { return Ok(None) };
        let StmtKind::Store { mem, index, value } = &stmt.kind else { return Ok(None) };
        let all = self.body;
        let Expr::Element { mem: from, index: at, or: None } = &all.exprs[*value] else { return Ok(None) };
        let known = [seg.lo, seg.hi, seg.step].map(|e| self.body.index_constant(e));
        let [Some(0), Some(n), Some(1)] = known else { return Ok(None) };
        let (to, from) = (Side { mem: *mem, index }, Side { mem: *from, index: at });
        let elem = self.mem_elem(to.mem)?;
        if elem != self.mem_elem(from.mem)? || elem.bits() < 8 || n < 1 {
            return Ok(None);
        }
        let bytes = n as u64 * u64::from(elem.bits() / 8);
        let name = format!("copy_{bytes}");
        for side in [&to, &from] {
            if !self.runs_along(side, var, n as u64, bytes)? {
                return Ok(None);
            }
        }
        if !self.cx.prelude.has(&name) {
            return Ok(None);
        }
        let (Some(to), Some(from)) = (self.start(&to, var, bytes)?, self.start(&from, var, bytes)?) else {
            return Ok(None);
        };
        self.facts.wide.push(bytes);
        Ok(Some(S::Do(self.call(&name, [to, from])?)))
    }

    /// The last subscript grows by one with the variable, the others not at all, and neighbours lie side by side.
    fn runs_along(&self, side: &Side, var: LocalId, n: u64, bytes: u64) -> Result<bool> {
        let Some((last, rest)) = side.index.split_last() else { return Ok(false) };
        if self.slope(*last, var) != Some(1) || rest.iter().any(|&i| self.slope(i, var) != Some(0)) {
            return Ok(false);
        }
        Ok(match side.mem {
            Mem::Tensor(a) => {
                let t = self.tensor(a)?;
                let step = t
                    .strides
                    .as_ref()
                    .and_then(|s| s.last())
                    .map_or(Some(1), |&s| self.body.index_constant(s));
                step == Some(1) && t.packed.is_none()
            }
            Mem::Buffer(b) => {
                let buffer = self.buffer(b)?;
                let Some(shared) = &buffer.layout else { return Ok(true) };
                let inner = shared.layout.dims.last().and_then(|d| d.digits.last());
                inner.is_some_and(|d| {
                    let packed = d.axis == Axis::Mem && d.stride == u64::from(buffer.elem.bits() / 8);
                    packed && d.extent % n == 0 && shared.xor.is_none_or(|x| 1 << x.base >= bytes)
                })
            }
            Mem::Slot { .. } => false,
        })
    }

    /// By how much an expression grows with the variable, where that is one number.
    fn slope(&self, e: ExprId, var: LocalId) -> Option<i64> {
        match &self.body.exprs[e] {
            Expr::Local(l) => Some(i64::from(*l == var)),
            Expr::Binary(BinOp::Add, a, b) => self.slope(*a, var)?.checked_add(self.slope(*b, var)?),
            Expr::Binary(BinOp::Sub, a, b) => self.slope(*a, var)?.checked_sub(self.slope(*b, var)?),
            other => {
                let mut free = true;
                other.operands(|o| free &= self.slope(o, var) == Some(0));
                free.then_some(0)
            }
        }
    }

    /// The address of the first element.
    fn start(&mut self, side: &Side, var: LocalId, bytes: u64) -> Result<Option<C>> {
        let before = self.locals.insert(var, super::Var::zero());
        let place = self.subscripts(side.index).and_then(|i| self.spot(side.mem, &i));
        match before {
            Some(v) => self.locals.insert(var, v),
            None => self.locals.remove(&var),
        };
        let Spot::Whole(place) = place? else { return Ok(None) };
        if let (C::Index(base, _), Mem::Buffer(_)) = (&place, side.mem)
            && let C::Name(name) = &**base
        {
            let most = self.aligned.entry(name.clone()).or_insert(1);
            *most = (*most).max(bytes);
        }
        Ok(Some(C::address(place)))
    }
}
