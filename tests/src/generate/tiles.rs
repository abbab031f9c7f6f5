//! Tiles: leaves, and expressions that move elements without computing.

use super::state::{BOOL, Edge, El, Ex, Gen, I32, Var};
use pantile_abi::DType;

impl Gen<'_> {
    pub fn tile_leaf(&mut self, el: El, shape: &[u32], choice: usize) -> Ex {
        let ops = self.lazy == 0 && !self.pure && !self.closed;
        if ops && choice >= 2 {
            let e = self.read(el, shape);
            // where nothing full could be read, the replacement has another type
            return if e.text.starts_with(&format!("full {}[", self.ty(I32))) && el != I32 {
                self.filled(el, shape)
            } else {
                e
            };
        }
        self.filled(el, shape)
    }

    /// A tile of one value.
    fn filled(&mut self, el: El, shape: &[u32]) -> Ex {
        let list = self.shape_text(shape);
        if el.is_float8() {
            return Ex::full(format!("{}(zeros f32[{list}])", self.ty(el)), shape.len());
        }
        if self.c.below(3) == 0 && el != BOOL {
            return Ex::full(format!("zeros {}[{list}]", self.ty(el)), shape.len());
        }
        let v = self.uniformly(|g| g.value(el, &[], 0));
        Ex::full(format!("full {}[{list}]({})", self.ty(el), v.text), shape.len())
    }

    /// A value whose edges are all full.
    pub fn whole(&mut self, el: El, shape: &[u32], depth: u32) -> Ex {
        let outer = std::mem::replace(&mut self.need_full, true);
        let e = self.value(el, shape, depth);
        let e = self.settle(e, el);
        self.need_full = outer;
        e
    }

    /// The same elements from a tile of another shape.
    pub fn reshaped(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        match self.c.below(7) {
            0 => self.transposed(el, shape, depth),
            1 => self.inserted(el, shape, depth),
            2 => self.stretched(el, shape, depth),
            3 | 4 => self.sliced(el, shape),
            5 => self.under_other_shape(el, shape, depth),
            _ => self.wide_bits(el, shape, depth),
        }
    }

    fn transposed(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        let n = shape.len();
        if n < 2 {
            return None;
        }
        let mut from = shape.to_vec();
        from.swap(n - 2, n - 1);
        let mut e = self.value(el, &from, depth - 1);
        e.edges.swap(n - 2, n - 1);
        Some(Ex { text: format!("{}.T", postfix(&e.text)), ..e })
    }

    fn inserted(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        let axis = shape.iter().position(|&n| n == 1).filter(|_| shape.len() > 1)?;
        let mut from = shape.to_vec();
        from.remove(axis);
        let mut e = self.value(el, &from, depth - 1);
        e.edges.insert(axis, Edge::Full);
        let axes: Vec<&str> = (0..shape.len()).map(|i| if i == axis { "_" } else { ":" }).collect();
        Some(Ex { text: format!("{}[{}]", postfix(&e.text), axes.join(", ")), ..e })
    }

    fn stretched(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        let axis = self.c.below(shape.len());
        let mut from = shape.to_vec();
        from[axis] = 1;
        let mut e = self.value(el, &from, depth - 1);
        // an axis of one element that may be invalid would make the whole tile so
        if e.edges[axis] != Edge::Full {
            e = self.whole(el, &from, 0);
        }
        e.edges[axis] = Edge::Full;
        Some(Ex { text: format!("broadcast({}, {})", e.text, self.shape_text(shape)), ..e })
    }

    /// A part of a named tile.
    fn sliced(&mut self, el: El, shape: &[u32]) -> Option<Ex> {
        let fits = |v: &&Var| {
            let lead = v.shape.len().wrapping_sub(shape.len());
            let dropped_full = || v.edges[..lead].iter().all(|e| *e == Edge::Full);
            v.el == el
                && !v.any_shape
                && lead <= 1
                && self.usable(v)
                && dropped_full()
                && v.shape[lead..].iter().zip(shape).all(|(a, b)| a >= b)
                && v.shape != shape
        };
        let found: Vec<Var> = self.vars.iter().filter(fits).cloned().collect();
        if found.is_empty() {
            return None;
        }
        let v = found[self.c.below(found.len())].clone();
        let lead = v.shape.len() - shape.len();
        let mut axes: Vec<String> =
            v.shape[..lead].iter().map(|&n| self.uniformly(|g| g.inside(n.into()))).collect();
        let mut edges = Vec::new();
        for ((&have, &want), edge) in v.shape[lead..].iter().zip(shape).zip(&v.edges[lead..]) {
            let room = i64::from(have - want);
            edges.push(edge.clone());
            axes.push(match self.c.below(3) {
                0 => {
                    let at = self.c.range(0, room);
                    format!("{at}..{}", at + i64::from(want))
                }
                1 if *edge == Edge::Full => {
                    let at = self.uniformly(|g| g.inside(room + 1));
                    format!("{at} +: {want}")
                }
                _ if room == 0 => ":".to_string(),
                _ => format!("{room} +: {want}"),
            });
        }
        Some(Ex::tile(format!("{}[{}]", v.name, axes.join(", ")), edges))
    }

    fn under_other_shape(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        let count: u32 = shape.iter().product();
        let mut forms: Vec<Vec<u32>> = vec![vec![count]];
        for n in [2, 3, 4, 8] {
            if count.is_multiple_of(n) {
                forms.push(vec![n, count / n]);
                forms.push(vec![count / n, n]);
            }
        }
        let from = forms[self.c.below(forms.len())].clone();
        let e = self.whole(el, &from, depth - 1);
        Some(Ex::full(format!("reshape({}, {})", e.text, self.shape_text(shape)), shape.len()))
    }

    /// A bit view of a type of another width: the last axis scales.
    fn wide_bits(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        if el == BOOL {
            return None;
        }
        let last = *shape.last()? * el.bits();
        let fits = |d: &DType| *d != DType::Bool && d.bits() != el.bits() && last.is_multiple_of(d.bits());
        let others: Vec<DType> = DType::ALL.into_iter().filter(fits).collect();
        if others.is_empty() {
            return None;
        }
        let from = El::D(self.c.pick(&others));
        let mut source = shape.to_vec();
        *source.last_mut()? = last / from.bits();
        let e = self.whole(from, &source, depth - 1);
        let e = self.numbers_only(from, e);
        Some(Ex::full(format!("bits({}, {})", self.ty(el), e.text), shape.len()))
    }

    /// Extents of a tile.
    pub fn shape(&mut self, rank: usize) -> Vec<u32> {
        let mut shape: Vec<u32> = (0..rank).map(|_| self.extent()).collect();
        // small programs: a tile holds a few thousand elements at most
        while shape.iter().product::<u32>() > 1100 {
            if let Some(n) = shape.iter_mut().max() {
                *n = 4;
            }
        }
        shape
    }

    pub fn extent(&mut self) -> u32 {
        let aliases: Vec<u32> = self.extent_alias.iter().map(|(n, _)| *n as u32).collect();
        if !aliases.is_empty() && self.c.chance(1, 3) {
            return aliases[self.c.below(aliases.len())];
        }
        self.c.pick(&super::memory::EXTENTS)
    }

    /// A type and shape for a new tile.
    pub fn some_tile(&mut self) -> (El, Vec<u32>) {
        let el = self.any_type();
        let rank = self.c.pick(&[1, 2, 2, 1, 3]);
        (el, self.shape(rank))
    }
}

/// Text that an index or `.T` may follow.
pub(super) fn postfix(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain || text.starts_with('(') && text.ends_with(')') && balanced(text) {
        text.to_string()
    } else {
        format!("({text})")
    }
}

/// The first parenthesis closes at the end.
fn balanced(text: &str) -> bool {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1 == text.len();
        }
    }
    false
}
