//! Tensors: parameters that come into being where the program first needs them, and regions of them.

use super::state::{Dim, Edge, El, Ex, Gen, Mode, Param, ScalarParam, TensorParam};
use super::{Data, state::I32};
use pantile_abi::DType;

pub(super) const EXTENTS: [u32; 7] = [4, 1, 3, 8, 24, 33, 16];

impl Gen<'_> {
    /// A named dim of a value, or the number itself.
    pub fn dim(&mut self, extent: i64) -> Dim {
        let same: Vec<String> = self.dims.iter().filter(|d| d.1 == extent).map(|d| d.0.clone()).collect();
        let half: Vec<String> =
            self.dims.iter().filter(|d| d.1 * 2 == extent).map(|d| format!("{} * 2", d.0)).collect();
        match self.c.below(4) {
            0 => Dim { name: None, extent },
            3 if !half.is_empty() => Dim { name: half.first().cloned(), extent },
            1 if !same.is_empty() => Dim { name: Some(same[self.c.below(same.len())].clone()), extent },
            _ => {
                let name = self.fresh("N");
                self.dims.push((name.clone(), extent));
                Dim { name: Some(name), extent }
            }
        }
    }

    fn data(&mut self) -> Data {
        let kind = self.c.below(Data::KINDS) as u8;
        Data { kind, seed: self.c.below(1 << 16) as u64 }
    }

    /// An input of some type and rank, old or new.
    pub fn tensor(&mut self, dtype: DType, rank: usize) -> TensorParam {
        let old: Vec<TensorParam> = self.inputs(|t| t.dtype == dtype && t.dims.len() == rank);
        if !old.is_empty() && (self.params.len() > 8 || self.c.chance(2, 3)) {
            return old[self.c.below(old.len())].clone();
        }
        let extents: Vec<i64> = (0..rank).map(|_| i64::from(self.c.pick(&EXTENTS))).collect();
        self.new_tensor(dtype, Mode::In, &extents)
    }

    pub fn inputs(&self, fits: impl Fn(&TensorParam) -> bool) -> Vec<TensorParam> {
        let tensor = |p: &Param| if let Param::Tensor(t) = p { Some(t.clone()) } else { None };
        self.params.iter().filter_map(tensor).filter(|t| t.mode == Mode::In && fits(t)).collect()
    }

    pub fn new_tensor(&mut self, dtype: DType, mode: Mode, extents: &[i64]) -> TensorParam {
        let stem = match mode {
            Mode::In => "A",
            Mode::Out => "Y",
            Mode::InOut => "Z",
        };
        let name = self.fresh(stem);
        let mut extents = extents.to_vec();
        let packed = (dtype.bits() == 4).then(|| extents.len() - 1);
        if let Some(axis) = packed {
            extents[axis] += extents[axis] % 2;
        }
        let mut dims: Vec<Dim> = Vec::new();
        for (axis, &n) in extents.iter().enumerate() {
            if packed != Some(axis) {
                dims.push(self.dim(n));
                continue;
            }
            // the packed axis is called by a name of its own
            let name = self.fresh("N");
            self.dims.push((name.clone(), n));
            dims.push(Dim { name: Some(name), extent: n });
        }
        let pitch = if mode == Mode::In && dims.len() == 2 && packed.is_none() && self.c.chance(1, 6) {
            let more = self.c.range(0, 5);
            let name = self.fresh("ld");
            Some((name, dims[1].extent + more))
        } else {
            None
        };
        let data = self.data();
        let t = TensorParam { name, mode, dtype, dims, pitch, packed, data };
        self.params.push(Param::Tensor(t.clone()));
        t
    }

    /// A scalar parameter.
    pub fn scalar_param(&mut self, el: El) -> String {
        let name = self.fresh("p");
        let value = self.c.range(-3, 9) as f64;
        let (dtype, value) = match el {
            El::Index => (None, value.max(1.0)),
            El::D(d) if d.is_int() && !d.is_signed() => (Some(d), value.abs()),
            El::D(d) => (Some(d), value),
        };
        self.params.push(Param::Scalar(ScalarParam { name: name.clone(), dtype, value }));
        name
    }

    /// A region of an input as a tile of this type and shape; a new tensor if none fits.
    pub fn read(&mut self, el: El, shape: &[u32]) -> Ex {
        let dtype = el.dtype();
        let extra = self.c.below(2);
        let rank = (shape.len() + extra).min(4);
        let old = self.inputs(|t| t.dtype == dtype && t.dims.len() == rank);
        let t = if !old.is_empty() && (self.params.len() > 8 || self.c.chance(1, 2)) {
            old[self.c.below(old.len())].clone()
        } else {
            let extents = self.new_extents(shape, rank);
            self.new_tensor(dtype, Mode::In, &extents)
        };
        self.region(&t, shape)
    }

    /// Extents of a tensor that tiles of this shape are read from: as large, smaller, or several tiles.
    fn new_extents(&mut self, shape: &[u32], rank: usize) -> Vec<i64> {
        let lead = rank - shape.len();
        let mut extents: Vec<i64> = (0..lead).map(|_| self.c.range(1, 3)).collect();
        for &n in shape {
            let n = i64::from(n);
            extents.push(match self.c.below(5) {
                0 => n,
                1 => (n - self.c.range(0, 3)).max(1),
                2 => n * 2 + 1,
                3 => (n * 3 - self.c.range(0, 2)).max(1),
                _ => n + self.c.range(0, 9),
            });
        }
        extents
    }

    /// One region of a tensor; leading axes are dropped by an index.
    pub fn region(&mut self, t: &TensorParam, shape: &[u32]) -> Ex {
        let dims: Vec<i64> = t.dims.iter().map(|d| d.extent).collect();
        let named: Vec<bool> = t.dims.iter().map(|d| d.name.is_some()).collect();
        let lead = dims.len() - shape.len();
        let mut axes: Vec<String> = dims[..lead].iter().map(|&n| self.uniformly(|g| g.inside(n))).collect();
        let mut edges = Vec::new();
        for (i, &n) in shape.iter().enumerate() {
            let (text, edge) = self.span(n, dims[lead + i], named[lead + i]);
            axes.push(text);
            edges.push(edge);
        }
        let text = format!("{}[{}]", t.name, axes.join(", "));
        let whole = edges.iter().all(|e| *e == Edge::Full);
        let pad = self.c.chance(1, 4) || self.need_full && !whole;
        // 8-bit floats take no plain number; bools and packed types take one like the others
        if pad && !El::D(t.dtype).is_float8() {
            let pad = self.literal(El::D(t.dtype));
            return Ex::full(format!("({text} pad {})", pad.text), shape.len());
        }
        if self.need_full && !whole {
            return Ex::full(format!("full {}[{}](0)", self.ty(I32), self.shape_text(shape)), shape.len());
        }
        Ex::tile(text, edges)
    }

    /// `start +: n` along an axis of some extent.
    fn span(&mut self, n: u32, extent: i64, named: bool) -> (String, Edge) {
        let len = self.ext(n);
        let ragged = Edge::Ragged(self.loops.clone());
        if i64::from(n) == extent && !named && self.c.chance(1, 2) {
            return (":".into(), Edge::Full);
        }
        match self.c.below(8) {
            // at the beginning: full, if the tensor is large enough
            0..=2 => (
                format!("0 +: {len}"),
                if i64::from(n) <= extent { Edge::Full } else { Edge::Ragged(vec![]) },
            ),
            // one of several tiles along the axis
            3 | 4 => {
                let i = self.uniformly(|g| g.index(0));
                let i = if i.lo < 0 { "0".to_string() } else { i.text };
                (format!("({i}) * {len} +: {len}"), ragged)
            }
            5 => {
                let start = self.uniformly(|g| g.index(1));
                let start = if start.lo < 0 { format!("max({}, 0)", start.text) } else { start.text };
                (format!("{start} +: {len}"), ragged)
            }
            6 => {
                let start = self.uniformly(|g| g.index(1));
                (format!("{} - {} +: {len} clip low", start.text, self.c.range(1, 4)), ragged)
            }
            _ => {
                let limit = self.uniformly(|g| g.index(1));
                (format!("0 +: {len} limit {}", limit.text), ragged)
            }
        }
    }
}
