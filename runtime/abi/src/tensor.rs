//! Arguments of a call: views of tensors that somebody else owns, and scalars.

use crate::{DType, Packing, ScalarType};

/// An address on some device. It owns nothing, and nothing in this crate reads or writes through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ptr(pub *mut u8);

// SAFETY: a `Ptr` is a number with provenance; using it takes `unsafe` elsewhere, where the owner of the memory
// answers for exclusive access.
unsafe impl Send for Ptr {}
// SAFETY: as above; a shared `Ptr` gives no access by itself.
unsafe impl Sync for Ptr {}

impl Ptr {
    pub fn addr(self) -> usize {
        self.0.addr()
    }
}

/// A view of a tensor in memory that outlives the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorArg {
    pub dtype: DType,
    /// Elements along each axis, also of 4-bit types.
    pub shape: Vec<usize>,
    /// Elements between neighbours along each axis; of packed 4-bit tensors, storage units (see [`Packing`]).
    pub strides: Vec<isize>,
    pub ptr: Ptr,
    /// Bytes that may be touched from `ptr` on.
    pub bytes: usize,
}

impl TensorArg {
    /// A row-major tensor without gaps.
    pub fn contiguous(
        dtype: DType,
        shape: &[usize],
        packed: Option<Packing>,
        ptr: Ptr,
        bytes: usize,
    ) -> TensorArg {
        let strides = contiguous_strides(&storage_shape(shape, packed));
        TensorArg { dtype, shape: shape.to_vec(), strides, ptr, bytes }
    }

    /// Units of storage along each axis: elements, but for packed 4-bit tensors.
    pub fn storage_shape(&self, packed: Option<Packing>) -> Vec<usize> {
        storage_shape(&self.shape, packed)
    }

    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }
}

fn storage_shape(shape: &[usize], packed: Option<Packing>) -> Vec<usize> {
    let mut shape = shape.to_vec();
    if let Some(p) = packed
        && let Some(extent) = shape.get_mut(p.axis as usize)
    {
        *extent = extent.div_ceil(p.order.per_unit());
    }
    shape
}

/// Row-major strides. Extents whose product does not fit saturate; such a tensor fails the size check at binding.
pub fn contiguous_strides(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1isize; shape.len()];
    for axis in (1..shape.len()).rev() {
        let extent = isize::try_from(shape[axis]).unwrap_or(isize::MAX).max(1);
        strides[axis - 1] = strides[axis].saturating_mul(extent);
    }
    strides
}

/// The value of a scalar parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarValue {
    Index(i64),
    /// The value's bits in the low end.
    Bits(DType, u64),
}

impl ScalarValue {
    pub fn ty(self) -> ScalarType {
        match self {
            ScalarValue::Index(_) => ScalarType::Index,
            ScalarValue::Bits(t, _) => ScalarType::Typed(t),
        }
    }

    /// The value of an integer or boolean; `None` for floats and for what does not fit.
    pub fn as_int(self) -> Option<i64> {
        let (dtype, bits) = match self {
            ScalarValue::Index(v) => return Some(v),
            ScalarValue::Bits(dtype, bits) => (dtype, bits),
        };
        match dtype {
            DType::Bool => Some((bits & 1) as i64),
            DType::U64 => i64::try_from(bits).ok(),
            d if d.is_int() => {
                let unused = 64 - d.bits();
                let high = bits << unused;
                Some(if d.is_signed() { (high as i64) >> unused } else { (high >> unused) as i64 })
            }
            _ => None,
        }
    }

    /// The integer in the parameter's type, where it fits.
    pub fn from_int(ty: ScalarType, value: i64) -> Option<ScalarValue> {
        let dtype = match ty {
            ScalarType::Index => return Some(ScalarValue::Index(value)),
            ScalarType::Typed(d) => d,
        };
        let bits = dtype.bits();
        let fits = match dtype {
            DType::Bool => value == 0 || value == 1,
            DType::I64 => true,
            DType::U64 => value >= 0,
            d if d.is_int() && d.is_signed() => (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&value),
            d if d.is_int() => (0..1i64 << bits).contains(&value),
            _ => false,
        };
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        fits.then_some(ScalarValue::Bits(dtype, value as u64 & mask))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgValue {
    Tensor(TensorArg),
    Scalar(ScalarValue),
}

impl ArgValue {
    pub fn as_tensor(&self) -> Option<&TensorArg> {
        match self {
            ArgValue::Tensor(t) => Some(t),
            ArgValue::Scalar(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_survive_their_bits() {
        for d in DType::ALL.into_iter().filter(|d| d.is_int()) {
            let ty = ScalarType::Typed(d);
            for v in [-129i64, -128, -9, -8, -1, 0, 1, 7, 8, 15, 16, 127, 128, 255, 256, 1 << 40] {
                if let Some(s) = ScalarValue::from_int(ty, v) {
                    assert_eq!(s.as_int(), Some(v), "{d} {v}");
                } else {
                    let range = d.bits() < 64 || v < 0;
                    assert!(range, "{d} refuses {v}");
                }
            }
        }
        assert_eq!(ScalarValue::from_int(ScalarType::Typed(DType::I4), 8), None);
        assert_eq!(ScalarValue::from_int(ScalarType::Typed(DType::U8), -1), None);
        assert_eq!(ScalarValue::from_int(ScalarType::Typed(DType::F32), 1), None);
        assert_eq!(ScalarValue::Bits(DType::U64, u64::MAX).as_int(), None);
    }

    #[test]
    fn strides_of_empty_and_huge_shapes() {
        assert_eq!(contiguous_strides(&[]), vec![]);
        assert_eq!(contiguous_strides(&[3, 0, 5]), vec![5, 5, 1]);
        assert_eq!(contiguous_strides(&[2, usize::MAX, 2])[0], isize::MAX);
    }
}
