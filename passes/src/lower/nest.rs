//! Loops over the elements that one thread holds.

use super::Lower;
use crate::layout::digits::{AxisLayout, Place};
use pantile_ir::builder::Result;
use pantile_ir::program::*;

/// A position along one axis of a tile.
#[derive(Clone, Debug, PartialEq)]
pub struct Coord {
    /// index in the tile
    pub value: ExprId,
    /// where it is an element of this thread: the layout that says so, and its number among the thread's elements
    pub held: Option<(AxisLayout, ExprId)>,
}

impl Coord {
    pub fn free(value: ExprId) -> Coord {
        Coord { value, held: None }
    }
}

/// What runs at each position, with the test of being inside the tile where there is one.
pub type OpenBody<'f, L> = dyn FnMut(&mut L, &[Coord], Option<ExprId>) -> Result<()> + 'f;

/// How the innermost loop runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Inner {
    Unroll,
    /// neighbours along this axis are one access to memory
    Vector(usize),
}

/// One digit's loop.
struct Level {
    axis: usize,
    digit: usize,
    extent: u32,
    kind: LoopKind,
}

impl Lower<'_, '_> {
    /// Runs `body` for each element of this thread. Elements beyond the tile are left out.
    pub fn nest(
        &mut self,
        axes: &[AxisLayout],
        inner: Inner,
        body: &mut dyn FnMut(&mut Self, &[Coord]) -> Result<()>,
    ) -> Result<()> {
        self.nest_open(axes, inner, &mut |s, at, inside| s.when(inside, |s| body(s, at)))
    }

    /// The same for all threads alike: `body` is told where an element is one of the tile. For what exchanges values
    /// between threads, which must not stand under a test that only some of them pass.
    pub fn nest_open(&mut self, axes: &[AxisLayout], inner: Inner, body: &mut OpenBody<Self>) -> Result<()> {
        let mut levels: Vec<Level> = Vec::new();
        for (axis, layout) in axes.iter().enumerate() {
            for (digit, place) in layout.digits.iter().enumerate() {
                if let Place::Reg(extent @ 2..) = *place {
                    levels.push(Level { axis, digit, extent, kind: LoopKind::Unroll });
                }
            }
        }
        if let Inner::Vector(axis) = inner {
            let last = |l: &Level| l.axis == axis && l.digit + 1 == axes[axis].digits.len();
            if let Some(at) = levels.iter().position(last) {
                let mut level = levels.remove(at);
                level.kind = LoopKind::Vectorized;
                levels.push(level);
            }
        }
        let mut values: Vec<Vec<Option<ExprId>>> = axes.iter().map(|a| vec![None; a.digits.len()]).collect();
        self.level(axes, &levels, &mut values, body)
    }

    fn level(
        &mut self,
        axes: &[AxisLayout],
        levels: &[Level],
        values: &mut Vec<Vec<Option<ExprId>>>,
        body: &mut OpenBody<Self>,
    ) -> Result<()> {
        let Some((level, rest)) = levels.split_first() else {
            let mut coords = Vec::with_capacity(axes.len());
            let mut inside = None;
            for (axis, values) in axes.iter().zip(values.iter()) {
                let coord = self.coord(axis, values)?;
                let test = self.short_of(axis, coord.value)?;
                inside = self.both(inside, test)?;
                coords.push(coord);
            }
            return body(self, &coords, inside);
        };
        let (lo, hi) = (self.int(0)?, self.int(level.extent.into())?);
        let name = self.loop_name(level);
        self.for_(&name, level.kind, lo, hi, |s, v| {
            values[level.axis][level.digit] = Some(v);
            s.level(axes, rest, values, body)
        })
    }

    fn loop_name(&self, level: &Level) -> String {
        let axis = ["i", "j", "k", "l"].get(level.axis).copied().unwrap_or("n");
        if level.kind == LoopKind::Vectorized { "v".into() } else { format!("{axis}{}", level.digit) }
    }

    /// The position that digits' loop variables and the thread's number give.
    fn coord(&mut self, axis: &AxisLayout, values: &[Option<ExprId>]) -> Result<Coord> {
        let (mut value, mut number) = (self.int(0)?, self.int(0)?);
        let (mut place, mut count) = (1, 1);
        for (digit, v) in axis.digits.iter().zip(values).rev() {
            let at = match (*digit, v) {
                (Place::Reg(_), Some(v)) => {
                    let n = self.scale(*v, count)?;
                    number = self.add(n, number)?;
                    Some(*v)
                }
                (Place::Thr { extent, stride }, _) => Some(self.lanes.value(self.k, extent, stride)?),
                (Place::Reg(_), None) => None,
            };
            if let Some(at) = at {
                let n = self.scale(at, place)?;
                value = self.add(n, value)?;
            }
            if let Place::Reg(n) = digit {
                count *= n;
            }
            place *= digit.extent();
        }
        Ok(Coord { value, held: Some((axis.clone(), number)) })
    }
}
