//! What a caller hands in: tensors as canonical bits, and scalars.

use super::fault::Fault;
use super::memory::{contiguous, filled, room};
use crate::num;
use crate::program::Elem;
use pantile_abi::DType;

/// A tensor. Element `i, j, …` stands at `i·strides[0] + j·strides[1] + …`; packed types are unpacked, one element a
/// word, in the canonical form of [`crate::num`].
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub dtype: DType,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    pub bits: Vec<u64>,
    /// Elements that hold nothing yet; reading one is a fault.
    pub poison: Vec<bool>,
}

impl Tensor {
    /// Row-major and contiguous.
    pub fn new(dtype: DType, shape: &[i64], bits: Vec<u64>) -> Tensor {
        let strides = contiguous(shape);
        let poison = vec![false; bits.len()];
        Tensor { dtype, shape: shape.to_vec(), strides, bits, poison }
    }

    /// The same of what `bits` gives, where the machine has room for it.
    pub fn gathered(
        dtype: DType,
        shape: &[i64],
        bits: impl ExactSizeIterator<Item = u64>,
        poison: bool,
    ) -> Result<Tensor, Box<Fault>> {
        let mut gathered = room(bits.len())?;
        let poison = filled(poison, bits.len())?;
        gathered.extend(bits);
        let strides = contiguous(shape);
        Ok(Tensor { dtype, shape: shape.to_vec(), strides, bits: gathered, poison })
    }

    pub(super) fn try_clone(&self) -> Result<Tensor, Box<Fault>> {
        let mut copy = Tensor::gathered(self.dtype, &self.shape, self.bits.iter().copied(), false)?;
        copy.strides.clone_from(&self.strides);
        copy.poison.clone_from_slice(&self.poison);
        Ok(copy)
    }

    /// Of values that are rounded to the type; what an integer type cannot hold becomes 0.
    pub fn from_f64(dtype: DType, shape: &[i64], values: &[f64]) -> Tensor {
        let bits = values.iter().map(|&v| num::from_f64(Elem::D(dtype), v).unwrap_or(0)).collect();
        Tensor::new(dtype, shape, bits)
    }

    /// Holding nothing: what an `out` parameter gets.
    pub fn unwritten(dtype: DType, shape: &[i64]) -> Tensor {
        let n = shape.iter().product::<i64>().max(0) as usize;
        Tensor { poison: vec![true; n], ..Tensor::new(dtype, shape, vec![0; n]) }
    }

    pub fn to_f64(&self) -> Vec<f64> {
        self.bits.iter().map(|&b| num::to_f64(Elem::D(self.dtype), b)).collect()
    }

    /// Elements that the strides reach.
    pub(super) fn span(&self) -> Option<usize> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let mut last = 0i64;
        for (&n, &stride) in self.shape.iter().zip(&self.strides) {
            if n < 0 || stride < 0 {
                return None;
            }
            last = last.checked_add((n - 1).checked_mul(stride)?)?;
        }
        usize::try_from(last).ok().map(|n| n + 1)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum ArgValue {
    /// Canonical bits in the parameter's type.
    Scalar(u64),
    Tensor(Tensor),
}

impl ArgValue {
    pub fn tensor(&self) -> Option<&Tensor> {
        match self {
            ArgValue::Tensor(t) => Some(t),
            ArgValue::Scalar(_) => None,
        }
    }
}

impl From<Tensor> for ArgValue {
    fn from(t: Tensor) -> ArgValue {
        ArgValue::Tensor(t)
    }
}
