//! Scalars: numbers, names, elements of memory and of tiles, folds of whole tiles. Leaves of tiles too.

use super::state::{BOOL, Edge, El, Ex, Gen, Var};

impl Gen<'_> {
    /// A number of a type, bare.
    pub fn literal(&mut self, el: El) -> Ex {
        let text = match el {
            BOOL => self.c.pick(&["true", "false"]).to_string(),
            _ if el.is_float() => {
                let list =
                    ["1", "0", "2", "0.5", "-1", "-0.0", "1.5", "3.25", "inf", "-inf", "0.1", "1e-3", "100"];
                self.c.pick(&list).to_string()
            }
            _ => {
                let bits = el.bits();
                let (lo, hi): (i128, i128) = match el {
                    El::D(d) if !d.is_signed() => (0, (1 << bits) - 1),
                    _ => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                };
                let n = match self.c.below(6) {
                    4 => lo,
                    5 => hi,
                    n => [1, 0, 2, 5][n],
                };
                n.to_string()
            }
        };
        let text = if text.starts_with('-') { format!("({text})") } else { text };
        Ex { text, edges: Vec::new(), lit: true }
    }

    pub fn named(&self, el: El, shape: &[u32]) -> Vec<Var> {
        let fits = |v: &&Var| v.el == el && (v.shape == shape || v.any_shape) && self.usable(v);
        self.vars.iter().filter(fits).cloned().collect()
    }

    /// The plainest values: names, numbers, reads of memory.
    pub fn leaf(&mut self, el: El, shape: &[u32]) -> Ex {
        let vars = self.named(el, shape);
        let choice = self.c.below(8);
        if !vars.is_empty() && (choice < 5 || self.pure && choice < 7) {
            // the newest names are the most interesting ones
            let back = self.c.below(vars.len());
            let v = &vars[vars.len() - 1 - back];
            return Ex::tile(v.name.clone(), v.edges.clone());
        }
        if shape.is_empty() {
            return self.scalar_leaf(el, choice);
        }
        self.tile_leaf(el, shape, choice)
    }

    fn scalar_leaf(&mut self, el: El, choice: usize) -> Ex {
        if el.is_float8() {
            let e = self.literal(super::state::F32);
            return Ex::scalar(format!("{}(f32({}))", self.ty(el), e.text));
        }
        if !self.pure && !self.closed && choice >= 6 {
            return self.element(el);
        }
        self.literal(el)
    }

    /// A scalar that comes from elsewhere.
    pub fn source(&mut self, el: El, depth: u32) -> Option<Ex> {
        match self.c.below(4) {
            0 => self.pick_of_tile(el),
            1 | 2 if !self.closed => Some(self.element(el)),
            _ => self.fold_to_scalar(el, depth),
        }
    }

    /// One element of a tile in sight, where it is valid.
    fn pick_of_tile(&mut self, el: El) -> Option<Ex> {
        let full = |v: &&Var| {
            v.el == el && !v.shape.is_empty() && !v.any_shape && v.edges.iter().all(|e| *e == Edge::Full)
        };
        let tiles: Vec<Var> = self.vars.iter().filter(full).cloned().collect();
        if tiles.is_empty() {
            return None;
        }
        let v = &tiles[self.c.below(tiles.len())];
        let index: Vec<String> = v.shape.iter().map(|&n| self.uniformly(|g| g.inside(n.into()))).collect();
        Some(Ex::scalar(format!("{}[{}]", v.name, index.join(", "))))
    }

    /// Runs `f` with names that all threads share only.
    pub fn uniformly<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.uniform, true);
        let result = f(self);
        self.uniform = outer;
        result
    }

    /// One element of a memory: a parameter, `shared` memory or an array.
    pub fn element(&mut self, el: El) -> Ex {
        let own: Vec<_> =
            self.mems.iter().filter(|m| m.el == el && !self.uniform && !m.shared).cloned().collect();
        if !own.is_empty() && self.c.chance(1, 2) {
            let m = &own[self.c.below(own.len())];
            let index: Vec<String> = m.shape.iter().map(|&n| self.inside(n.into())).collect();
            return Ex::scalar(format!("{}[{}]", m.name, index.join(", ")));
        }
        let rank = 1 + self.c.below(2);
        let t = self.tensor(el.dtype(), rank);
        let dims: Vec<i64> = t.dims.iter().map(|d| d.extent).collect();
        if self.c.chance(1, 3) {
            // anywhere, with a value for outside
            let index: Vec<String> = dims.iter().map(|_| self.index(2).text).collect();
            let or = self.lazily(|g| g.value(el, &[], 0));
            return Ex::scalar(format!("({}[{}] or {})", t.name, index.join(", "), or.text));
        }
        let index: Vec<String> = dims.iter().map(|&n| self.inside(n)).collect();
        Ex::scalar(format!("{}[{}]", t.name, index.join(", ")))
    }

    /// A tile or scalar of type `index`.
    pub fn index_value(&mut self, shape: &[u32], depth: u32) -> Ex {
        if shape.is_empty() {
            return Ex::scalar(self.typed_index(depth).text);
        }
        let axis = self.c.below(shape.len());
        let counted = self.count_tile(shape, axis);
        let by = self.uniformly(|g| g.index(1));
        match self.c.below(4) {
            0 => Ex::full(counted, shape.len()),
            1 => Ex::full(format!("({counted} + {})", by.text), shape.len()),
            2 => Ex::full(format!("({counted} * {} - {})", self.c.range(1, 3), by.text), shape.len()),
            _ => Ex::full(format!("({counted} % {})", self.c.range(1, 5)), shape.len()),
        }
    }

    /// Numbers along an axis, stretched to the whole shape.
    fn count_tile(&mut self, shape: &[u32], axis: usize) -> String {
        let n = shape[axis];
        let list = |rank: usize, at: usize, n: u32| -> String {
            (0..rank).map(|i| if i == at { n.to_string() } else { "1".into() }).collect::<Vec<_>>().join(", ")
        };
        if shape.len() == 1 {
            return format!("iota({n})");
        }
        let ones = list(shape.len(), axis, n);
        let iota = format!("iota({ones}, axis = {axis})");
        if shape.iter().enumerate().all(|(i, &n)| i == axis || n == 1) {
            return iota;
        }
        let all: Vec<String> = shape.iter().map(u32::to_string).collect();
        format!("broadcast({iota}, {})", all.join(", "))
    }
}
