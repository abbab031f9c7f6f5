//! One element of a tile expression at a position. A part that is used more than once gets a name, so that the text
//! stays as short as the expression.

use super::Lower;
use super::nest::Coord;
use pantile_ir::builder::Result;
use pantile_ir::program::*;
use std::collections::HashMap;

/// What one evaluation has made so far.
#[derive(Default)]
pub struct Memo {
    uses: HashMap<ExprId, u32>,
    done: HashMap<(ExprId, Vec<ExprId>), ExprId>,
}

impl Lower<'_, '_> {
    /// The element of a tile expression, or a scalar, at a position.
    pub fn eval(&mut self, e: ExprId, at: &[Coord]) -> Result<ExprId> {
        self.eval_all(&[e], at).map(|v| v[0])
    }

    /// Several expressions at one position.
    pub fn eval_all(&mut self, list: &[ExprId], at: &[Coord]) -> Result<Vec<ExprId>> {
        let mut memo = Memo::default();
        for &e in list {
            self.count(e, &mut memo.uses);
        }
        list.iter().map(|&e| self.at(e, at, &mut memo)).collect()
    }

    fn count(&self, e: ExprId, uses: &mut HashMap<ExprId, u32>) {
        let n = uses.entry(e).or_default();
        *n += 1;
        if *n == 1 {
            self.k.kernel().body.exprs[e].operands(|o| self.count(o, uses));
        }
    }

    fn at(&mut self, e: ExprId, at: &[Coord], memo: &mut Memo) -> Result<ExprId> {
        let ty = self.ty(e);
        if !ty.is_tile() {
            return self.scalar_in(e, memo);
        }
        let at = self.fit(at, ty.shape())?;
        let key = (e, at.iter().map(|c| c.value).collect::<Vec<_>>());
        if let Some(&done) = memo.done.get(&key) {
            return Ok(done);
        }
        let value = self.build(e, &ty, &at, memo)?;
        let again = memo.uses.get(&e).is_some_and(|&n| n > 1);
        let value = if again && self.costs(value) {
            self.fresh += 1;
            let name = format!("e{}", self.fresh);
            self.bind(&name, value)?
        } else {
            value
        };
        memo.done.insert(key, value);
        Ok(value)
    }

    fn costs(&self, e: ExprId) -> bool {
        !matches!(
            self.k.kernel().body.exprs[e],
            Expr::Const { .. } | Expr::Local(_) | Expr::Dim(_) | Expr::Arg(_)
        )
    }

    /// Positions in a tile whose axes of one element are stretched.
    fn fit(&mut self, at: &[Coord], shape: &[u32]) -> Result<Vec<Coord>> {
        let zero = self.int(0)?;
        let one = |(c, &n): (&Coord, &u32)| if n == 1 { Coord::free(zero) } else { c.clone() };
        Ok(at.iter().zip(shape).map(one).collect())
    }

    fn build(&mut self, e: ExprId, ty: &Type, at: &[Coord], memo: &mut Memo) -> Result<ExprId> {
        let expr = self.k.kernel().body.exprs[e].clone();
        match &expr {
            Expr::Local(l) => {
                let storage = self.storage(*l)?;
                self.load(&storage, ty.elem().unwrap_or(Elem::Index), at)
            }
            Expr::Splat { value, .. } => self.at(*value, &[], memo),
            Expr::Iota { axis, .. } => Ok(at[usize::from(*axis)].value),
            Expr::Transpose(v) => {
                let mut at = at.to_vec();
                let n = at.len();
                at.swap(n - 1, n - 2);
                self.at(*v, &at, memo)
            }
            Expr::InsertAxis { value, axis } => {
                let mut at = at.to_vec();
                at.remove(usize::from(*axis));
                self.at(*value, &at, memo)
            }
            Expr::Broadcast { value, .. } => self.at(*value, at, memo),
            Expr::Slice { value, axes } => {
                let inner = self.sliced(*value, axes, at, memo)?;
                self.at(*value, &inner, memo)
            }
            Expr::Reshape { value, shape } => {
                let inner = self.reshaped(*value, shape, at)?;
                self.at(*value, &inner, memo)
            }
            Expr::Bits { value, to } => {
                if self.shape(*value).as_slice() != ty.shape() {
                    return self.refuse(
                        "the bits of a tile are read in units of another width",
                        "convert element by element, or read the tensor in the other type",
                    );
                }
                let value = self.at(*value, at, memo)?;
                self.expr(Expr::Bits { to: *to, value })
            }
            _ => {
                let new = expr.map_operands(|o| self.at(o, at, memo))?;
                self.expr(new)
            }
        }
    }

    fn sliced(
        &mut self,
        value: ExprId,
        axes: &[SliceAxis],
        at: &[Coord],
        memo: &mut Memo,
    ) -> Result<Vec<Coord>> {
        let shape = self.shape(value);
        let (mut inner, mut next) = (Vec::new(), 0);
        for (axis, &n) in axes.iter().zip(&shape) {
            inner.push(match axis {
                SliceAxis::Span { start, len } => {
                    next += 1;
                    let start = self.subscript_in(*start, memo)?;
                    if *len == n && self.known(start) == Some(0) {
                        at[next - 1].clone()
                    } else {
                        Coord::free(self.add(start, at[next - 1].value)?)
                    }
                }
                SliceAxis::At(i) => Coord::free(self.subscript_in(*i, memo)?),
            });
        }
        Ok(inner)
    }

    /// Row-major numbers of one shape as indices of another.
    fn reshaped(&mut self, value: ExprId, shape: &[u32], at: &[Coord]) -> Result<Vec<Coord>> {
        let mut linear = self.int(0)?;
        for (c, &n) in at.iter().zip(shape) {
            let scaled = if self.known(linear) == Some(0) { linear } else { self.scale(linear, n)? };
            linear = self.add(scaled, c.value)?;
        }
        let inner = self.shape(value);
        let mut out = Vec::new();
        let mut below: u32 = inner.iter().product();
        for &n in &inner {
            below /= n.max(1);
            let (by, m) = (self.int(below.max(1).into())?, self.int(n.into())?);
            let up = if below > 1 { self.bin(BinOp::Div, linear, by)? } else { linear };
            let digit = if out.is_empty() { up } else { self.bin(BinOp::Rem, up, m)? };
            out.push(Coord::free(digit));
        }
        Ok(out)
    }

    /// A scalar expression: the same, but for elements of tiles.
    pub fn scalar(&mut self, e: ExprId) -> Result<ExprId> {
        let mut memo = Memo::default();
        self.scalar_in(e, &mut memo)
    }

    fn scalar_in(&mut self, e: ExprId, memo: &mut Memo) -> Result<ExprId> {
        let key = (e, Vec::new());
        if let Some(&done) = memo.done.get(&key) {
            return Ok(done);
        }
        let expr = self.k.kernel().body.exprs[e].clone();
        let new = match &expr {
            Expr::Pick { tile, index } => {
                let mut at = Vec::new();
                for &i in index {
                    at.push(self.position(i, memo)?);
                }
                self.at(*tile, &at, memo)?
            }
            _ => {
                let mapped = expr.map_operands(|o| self.scalar_in(o, memo))?;
                if mapped == expr { e } else { self.expr(mapped)? }
            }
        };
        memo.done.insert(key, new);
        Ok(new)
    }

    /// A position that the text may give as any integer, as one that joins index arithmetic.
    fn subscript_in(&mut self, e: ExprId, memo: &mut Memo) -> Result<ExprId> {
        let e = self.scalar_in(e, memo)?;
        self.converted(e, Elem::Index)
    }

    pub fn subscript(&mut self, e: ExprId) -> Result<ExprId> {
        self.subscript_in(e, &mut Memo::default())
    }

    /// An index: of a running `parallel` it is a position that the thread holds.
    fn position(&mut self, i: ExprId, memo: &mut Memo) -> Result<Coord> {
        if let Expr::Local(l) = self.k.kernel().body.exprs[i]
            && let Some(c) = self.running.get(&l)
        {
            return Ok(c.clone());
        }
        Ok(Coord::free(self.subscript_in(i, memo)?))
    }
}
