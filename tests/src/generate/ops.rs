//! Folds, scans and products inside expressions.

use super::state::{BOOL, Edge, El, Ex, Gen, I32};
use pantile_abi::DType;

impl Gen<'_> {
    /// A built-in combiner that takes the type.
    pub fn combiner(&mut self, el: El) -> &'static str {
        match el {
            BOOL => self.c.pick(&["and", "or", "xor"]),
            _ if el.is_float() => self.c.pick(&["add", "max", "min", "mul"]),
            _ => self.c.pick(&["add", "max", "min", "mul", "and", "or", "xor"]),
        }
    }

    /// A tile from a fold or scan of another.
    pub fn folded(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        if el.is_float8() {
            return None;
        }
        if self.c.chance(1, 3) {
            return self.scanned(el, shape, depth);
        }
        if shape.len() >= 3 {
            return None;
        }
        let axis = self.c.below(shape.len() + 1);
        let mut from = shape.to_vec();
        from.insert(axis, self.c.pick(&[3, 1, 8, 24, 33]));
        while from.iter().product::<u32>() > 1600 {
            from[axis] = 2;
            if from.iter().product::<u32>() > 1600 {
                return None;
            }
        }
        let (text, mut edges) = self.fold_text(el, &from, Some(axis), depth)?;
        edges.remove(axis);
        Some(Ex::tile(text, edges))
    }

    pub fn fold_to_scalar(&mut self, el: El, depth: u32) -> Option<Ex> {
        if self.lazy > 0 || self.pure || el.is_float8() {
            return None;
        }
        let rank = 1 + self.c.below(2);
        let from = self.shape(rank);
        let (text, _) = self.uniformly(|g| g.fold_text(el, &from, None, depth))?;
        Some(Ex::scalar(text))
    }

    /// A fold that gives elements of type `el`.
    fn fold_text(
        &mut self,
        el: El,
        from: &[u32],
        axis: Option<usize>,
        depth: u32,
    ) -> Option<(String, Vec<Edge>)> {
        let last = axis.is_some_and(|a| a + 1 == from.len());
        let at = axis.map_or(String::new(), |a| format!(", axis = {a}"));
        if el == I32 && self.c.chance(1, 6) {
            let of = self.numeric();
            let e = self.value(of, from, depth - 1);
            let f = self.c.pick(&["argmax", "argmin"]);
            return Some((format!("{f}({}{at})", e.text), e.edges));
        }
        let e = self.value(el, from, depth - 1);
        let text = match self.c.below(3) {
            0 if el == BOOL => format!("{}({}{at})", self.c.pick(&["any", "all"]), e.text),
            0 => format!("{}({}{at})", self.c.pick(&["sum", "max", "min", "prod"]), e.text),
            1 if last && el != BOOL => {
                format!("{}({})", self.c.pick(&["rowsum", "rowmax", "rowmin"]), e.text)
            }
            _ => format!("reduce({}, {}{at})", self.combiner(el), e.text),
        };
        Some((text, e.edges))
    }

    fn scanned(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        let e = self.value(el, shape, depth - 1);
        let axis = self.c.below(shape.len());
        let mut args = format!("{}, axis = {axis}", e.text);
        if el != BOOL && self.c.chance(1, 4) {
            return Some(Ex { text: format!("cumsum({args})"), ..e });
        }
        if self.c.chance(1, 3) {
            args += ", reverse = true";
        }
        if self.c.chance(1, 3) {
            args += ", exclusive = true";
        }
        Some(Ex { text: format!("scan({}, {args})", self.combiner(el)), ..e })
    }

    /// `a @ b` with the accumulator type `el`.
    pub fn product(&mut self, el: El, shape: &[u32], depth: u32) -> Option<Ex> {
        let (a, b) = self.factors(el, shape, depth)?;
        let edges = vec![a.edges[0].clone(), b.edges[1].clone()];
        Some(Ex::tile(format!("({} @ {})", a.text, b.text), edges))
    }

    /// Two tiles whose product has this type and shape.
    pub fn factors(&mut self, el: El, shape: &[u32], depth: u32) -> Option<(Ex, Ex)> {
        let &[m, n] = shape else { return None };
        let types: &[(DType, DType)] = match el.dtype() {
            DType::F32 => &[
                (DType::F32, DType::F32),
                (DType::F16, DType::F16),
                (DType::BF16, DType::BF16),
                (DType::F8E4M3, DType::F8E5M2),
                (DType::F8E5M2, DType::F8E5M2),
            ],
            DType::F64 => &[(DType::F64, DType::F64)],
            DType::I32 => &[
                (DType::I8, DType::I8),
                (DType::U8, DType::U8),
                (DType::I8, DType::U8),
                (DType::U8, DType::I8),
                (DType::I4, DType::I4),
                (DType::U4, DType::U4),
            ],
            _ => return None,
        };
        let (x, y) = self.c.pick(types);
        let k = self.c.pick(&[4, 1, 3, 8, 24]);
        let a = self.value(El::D(x), &[m, k], depth.saturating_sub(2));
        let b = self.value(El::D(y), &[k, n], depth.saturating_sub(2));
        Some((a, b))
    }
}
