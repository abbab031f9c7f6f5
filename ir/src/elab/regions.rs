//! Memory under an index: elements, regions, gathers, pads. Tile values under an index are in `tiles`.

use super::Elab;
use super::consts::Const;
use super::scope::Value;
use crate::ast::{self, AxisIndex, ExprKind, Ident};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use crate::typing;
use smallvec::SmallVec;

impl<'a> Elab<'a> {
    /// `x[…]` as a value.
    pub(crate) fn index(&mut self, base: &'a ast::Expr, axes: &'a [AxisIndex], span: Span) -> Value {
        match self.base(base) {
            Value::Mem(mem) => match self.place(mem, axes, span) {
                Some(place) => self.read(place, None, span),
                None => Value::Poison,
            },
            Value::Const(Const::List(items)) => self.list_item(&items, axes, span),
            Value::Workspace(_) => {
                let d = Diagnostic::error(codes::MISPLACED, self.sp(span), "an op does not read tensors");
                self.report(d.help("give the tensor to a kernel: `launch k(W)`"));
                Value::Poison
            }
            other => match self.to_expr(other, None, base.span) {
                Some(tile) => self.tile_index(tile, axes, span),
                None => Value::Poison,
            },
        }
    }

    /// What is indexed, without reading it.
    fn base(&mut self, base: &'a ast::Expr) -> Value {
        let ExprKind::Name(id) = &base.kind else { return self.expr(base, None) };
        match self.lookup(id) {
            Value::Reducer(r) => self.join(r, id),
            other => other,
        }
    }

    fn list_item(&mut self, items: &[Const], axes: &'a [AxisIndex], span: Span) -> Value {
        let [AxisIndex::At(e)] = axes else {
            let d = Diagnostic::error(codes::WRONG_CONST, self.sp(span), "a list takes one index");
            self.report(d);
            return Value::Poison;
        };
        let Some(n) = self.const_int(e, "the index of a list") else { return Value::Poison };
        match usize::try_from(n).ok().and_then(|n| items.get(n)) {
            Some(item) => Value::Const(item.clone()),
            None => {
                let text = format!("the list has {} elements, there is no element {n}", items.len());
                let d = Diagnostic::error(codes::WRONG_CONST, self.sp(e.span), text);
                self.report(d.help("elements are numbered from 0"));
                Value::Poison
            }
        }
    }

    /// Reads an element as an expression, a region as a statement.
    pub(crate) fn read(&mut self, place: Place, pad: Option<ExprId>, span: Span) -> Value {
        match place {
            Place::Element { mem, index } => {
                self.push(Expr::Element { mem, index, or: pad }, span).map_or(Value::Poison, Value::Expr)
            }
            Place::Region(from) => self.op_value(Op::Read { from, pad }, span),
        }
    }

    /// `A[i, j] or 0`
    pub(crate) fn element_or(&mut self, place: &'a ast::Expr, pad: &'a ast::Expr, span: Span) -> Value {
        let Some((mem, place)) = self.padded(place, "or") else { return Value::Poison };
        if let Place::Region(_) = place {
            let d =
                Diagnostic::error(codes::PAD_PLACE, self.sp(span), "`or` follows the read of one element");
            self.report(d.help("a region takes `pad`: `A[i +: N] pad 0`"));
            return Value::Poison;
        }
        let Ok(elem) = typing::mem_elem(&self.ctx(), mem) else { return Value::Poison };
        let pad = self.lazily(span, |s| s.value(pad, Some(elem)));
        pad.map_or(Value::Poison, |pad| self.read(place, Some(pad), span))
    }

    /// `A[…] pad 0`
    pub(crate) fn region_pad(&mut self, place: &'a ast::Expr, pad: &'a ast::Expr, span: Span) -> Value {
        let Some((mem, place)) = self.padded(place, "pad") else { return Value::Poison };
        if let Place::Element { .. } = place {
            let d = Diagnostic::error(codes::PAD_PLACE, self.sp(span), "`pad` follows the read of a region");
            self.report(d.help("an element takes `or`: `A[i, j] or 0`"));
            return Value::Poison;
        }
        let Ok(elem) = typing::mem_elem(&self.ctx(), mem) else { return Value::Poison };
        self.value(pad, Some(elem)).map_or(Value::Poison, |pad| self.read(place, Some(pad), span))
    }

    fn padded(&mut self, place: &'a ast::Expr, word: &str) -> Option<(Mem, Place)> {
        if let ExprKind::Index(base, axes) = &place.kind {
            match self.base(base) {
                Value::Mem(mem) => return Some((mem, self.place(mem, axes, place.span)?)),
                Value::Poison => return None,
                _ => {}
            }
        }
        let d = Diagnostic::error(
            codes::PAD_PLACE,
            self.sp(place.span),
            format!("`{word}` follows a read of memory"),
        );
        self.report(d.help("a tile value has no outside; pad where it is read from memory"));
        None
    }

    /// What an index list names: one element if every index drops its axis, else a region.
    pub(crate) fn place(&mut self, mem: Mem, axes: &'a [AxisIndex], span: Span) -> Option<Place> {
        let extents = typing::mem_extents(&self.ctx(), mem).ok()?;
        let given = axes.iter().filter(|a| !matches!(a, AxisIndex::New(_))).count();
        if given != extents.len() {
            self.wrong_rank(mem, extents.len(), given, span);
            return None;
        }
        let mut out: SmallVec<[RegionAxis; 4]> = SmallVec::new();
        let mut all = true;
        let mut at = 0;
        for axis in axes {
            if let AxisIndex::New(_) = axis {
                out.push(RegionAxis::New);
                continue;
            }
            match self.region_axis(mem, axis, extents[at], at) {
                Some(axis) => out.push(axis),
                None => all = false,
            }
            at += 1;
        }
        if !all {
            return None;
        }
        let index: Option<Args> =
            out.iter().map(|a| if let RegionAxis::At(e) = a { Some(*e) } else { None }).collect();
        Some(match index {
            Some(index) => Place::Element { mem, index },
            None => Place::Region(Region { mem, axes: out }),
        })
    }

    fn wrong_rank(&mut self, mem: Mem, rank: usize, given: usize, span: Span) {
        let name = typing::mem_name(&self.ctx(), mem).unwrap_or_default();
        let s = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        let text = format!(
            "`{name}` has {}, but {} given",
            s(rank, "axis", "axes"),
            s(given, "index is", "indices are")
        );
        let d = Diagnostic::error(codes::INDEX_COUNT, self.sp(span), text);
        self.report(d.help("give one index for each axis; `:` takes a whole axis whose extent is known"));
    }

    fn region_axis(
        &mut self,
        mem: Mem,
        axis: &'a AxisIndex,
        extent: Option<u64>,
        at: usize,
    ) -> Option<RegionAxis> {
        match axis {
            AxisIndex::At(e) => {
                let index = self.subscript(e)?;
                match self.ty(index).shape() {
                    [] => Some(RegionAxis::At(index)),
                    shape => Some(RegionAxis::Gather { index, len: shape[0] }),
                }
            }
            AxisIndex::Extent { start, len, limit, clip_low, .. } => {
                let start = self.subscript(start);
                let len = self.const_u32(len, "the extent of a region", 1);
                let limit = match limit {
                    Some(l) => Some(self.subscript(l)?),
                    None => None,
                };
                Some(RegionAxis::Span { start: start?, len: len?, limit, clip_low: *clip_low })
            }
            AxisIndex::Range { lo, hi, span } => {
                let (start, len) = self.fixed_range(lo, hi, *span)?;
                Some(RegionAxis::Span { start, len, limit: None, clip_low: false })
            }
            AxisIndex::Full(span) => {
                let Some(len) = extent.and_then(|n| u32::try_from(n).ok()) else {
                    self.open_axis(mem, at, *span);
                    return None;
                };
                let start = self.index_const(0, *span)?;
                Some(RegionAxis::Span { start, len, limit: None, clip_low: false })
            }
            AxisIndex::New(_) => Some(RegionAxis::New),
        }
    }

    fn open_axis(&mut self, mem: Mem, at: usize, span: Span) {
        let name = typing::mem_name(&self.ctx(), mem).unwrap_or_default();
        let text =
            format!("`:` takes an axis whose extent is known at compile time; axis {at} of `{name}` is not");
        let d = Diagnostic::error(codes::OPEN_AXIS, self.sp(span), text);
        self.report(d.help("read a tile of it, `start +: N`, or make the dim a generic: `const D: int`"));
    }

    /// `a..b` with both ends known.
    pub(crate) fn fixed_range(
        &mut self,
        lo: &'a ast::Expr,
        hi: &'a ast::Expr,
        span: Span,
    ) -> Option<(ExprId, u32)> {
        let (x, y) = (self.expr(lo, None), self.expr(hi, None));
        match (x, y) {
            (Value::Const(Const::Int(a)), Value::Const(Const::Int(b))) => match u32::try_from(b - a) {
                Ok(len) if len > 0 => {
                    let start = self.adapt(&Const::Int(a), Elem::Index, lo.span)?;
                    Some((start, len))
                }
                _ => {
                    let text = format!("the range {a}..{b} holds nothing");
                    let d = Diagnostic::error(codes::WRONG_CONST, self.sp(span), text);
                    self.report(d.help("a range excludes its end"));
                    None
                }
            },
            (Value::Poison, _) | (_, Value::Poison) => None,
            _ => {
                let text = "the ends of a range in an index must be known at compile time";
                let d = Diagnostic::error(codes::NOT_CONSTANT, self.sp(span), text);
                self.report(d.help("give a start and a fixed extent: `start +: N`"));
                None
            }
        }
    }

    // ---- slots ------------------------------------------------------------------------------------------------

    /// The slot token that a name stands for.
    pub(crate) fn token_of(&mut self, base: &'a ast::Expr) -> Option<LocalId> {
        let ExprKind::Name(id) = &base.kind else { return None };
        match self.f.scope.get(&id.name) {
            Some(&Value::Local(l)) if self.f.body.locals[l].ty == Type::Token => Some(l),
            _ => None,
        }
    }

    pub(crate) fn slot_field(&mut self, token: LocalId, field: &'a Ident) -> Value {
        let LocalKind::Token(ring) = self.f.body.locals[token].kind else { return Value::Poison };
        let ring = &self.f.kernel.rings[ring];
        if let Some(at) = ring.fields.iter().position(|f| f.name == field.name) {
            return Value::Mem(Mem::Slot { token, field: at as u8 });
        }
        let names: Vec<String> = ring.fields.iter().map(|f| format!("`{}`", f.name)).collect();
        let text = format!("the slots of `{}` have no `{}`", ring.name, field.name);
        let d = Diagnostic::error(codes::NO_SUCH_FIELD, self.sp(field.span), text);
        self.report(d.help(format!("they hold {}", names.join(", "))));
        Value::Poison
    }
}
