//! Tensors laid out as a parameter's strides demand.
//!
//! A parameter with `strides (1, ldb)` wants its first axis contiguous. [`Arranged`] keeps a row-major copy whose axes
//! are reordered so that they have the declared unit stride, and shows it under the parameter's own axes.

use crate::error::{Error, ErrorKind, Result};
use crate::host::HostTensor;
use pantile_abi::{IExpr, TensorAbi, TensorArg};

#[derive(Debug)]
pub struct Arranged {
    memory: HostTensor,
    /// `order[i]` is the parameter's axis that is axis `i` in memory.
    order: Vec<usize>,
}

impl Arranged {
    /// A copy in the order that the parameter demands; `None` where row-major is what it demands.
    pub fn copy(abi: &TensorAbi, tensor: &HostTensor) -> Result<Option<Arranged>> {
        match memory_order(abi) {
            Some(order) if order.len() == tensor.shape().len() => {
                let memory = permute(tensor, &order)?;
                Ok(Some(Arranged { memory, order }))
            }
            _ => Ok(None),
        }
    }

    /// The view to hand to a kernel; one that writes needs the arrangement to itself meanwhile.
    pub fn arg(&mut self) -> TensorArg {
        let mut arg = self.memory.arg_mut();
        let (shape, strides) = (arg.shape.clone(), arg.strides.clone());
        for (i, &axis) in self.order.iter().enumerate() {
            arg.shape[axis] = shape[i];
            arg.strides[axis] = strides[i];
        }
        arg
    }

    /// The elements in memory order.
    pub fn memory_mut(&mut self) -> &mut HostTensor {
        &mut self.memory
    }

    /// Back to the parameter's own axes, row-major.
    pub fn into_tensor(self) -> Result<HostTensor> {
        let mut back = vec![0; self.order.len()];
        for (i, &axis) in self.order.iter().enumerate() {
            back[axis] = i;
        }
        permute(&self.memory, &back)
    }
}

/// Axes from slowest to fastest where declared strides ask for another order than row-major: larger constants are
/// slower, names are slower than constants, and otherwise the order of declaration holds.
fn memory_order(abi: &TensorAbi) -> Option<Vec<usize>> {
    let strides = abi.strides.as_ref()?;
    let weight = |axis: usize| match &strides[axis] {
        IExpr::Const(c) => *c,
        _ => i64::MAX,
    };
    let mut order: Vec<usize> = (0..strides.len()).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(weight(axis)));
    order.windows(2).any(|w| w[0] > w[1]).then_some(order)
}

/// A copy whose axis `i` is axis `order[i]` of `t`.
fn permute(t: &HostTensor, order: &[usize]) -> Result<HostTensor> {
    if t.packed().is_some() {
        let message = "a packed tensor with its axes in another order is not supported";
        return Err(Error::new(ErrorKind::FileUnsupported, message));
    }
    let shape: Vec<usize> = order.iter().map(|&a| t.shape()[a]).collect();
    let from = pantile_abi::contiguous_strides(t.shape());
    let strides: Vec<usize> = order.iter().map(|&a| from[a].unsigned_abs()).collect();
    let mut out = HostTensor::zeros(t.dtype(), &shape, None)?;
    let mut index = vec![0usize; shape.len()];
    for i in 0..out.len() {
        let at = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        out.set_bits(i, t.bits(at));
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantile_abi::{DType, Mode};

    #[test]
    fn unit_strides_are_where_they_are_declared() {
        let mut abi = TensorAbi::new("B", Mode::In, DType::F32, vec![IExpr::Dim(0), IExpr::Dim(1)]);
        let values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let t = HostTensor::from_f64(DType::F32, &[2, 3], &values).unwrap();
        abi.strides = Some(vec![1.into(), IExpr::Dim(2)]);
        let mut a = Arranged::copy(&abi, &t).unwrap().unwrap();
        assert_eq!(a.memory_mut().to_f64(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        let arg = a.arg();
        assert_eq!((arg.shape, arg.strides), (vec![2, 3], vec![1, 2]));
        assert_eq!(a.into_tensor().unwrap().to_f64(), values);
        for plain in [None, Some(vec![IExpr::Dim(2), 1.into()])] {
            abi.strides = plain;
            assert!(Arranged::copy(&abi, &t).unwrap().is_none());
        }
    }

    #[test]
    fn three_axes() {
        let mut abi = TensorAbi::new("B", Mode::In, DType::F32, vec![0.into(), 0.into(), 0.into()]);
        abi.strides = Some(vec![4.into(), 1.into(), IExpr::Dim(0)]);
        let values: Vec<f64> = (0..24).map(f64::from).collect();
        let t = HostTensor::from_f64(DType::F32, &[2, 4, 3], &values).unwrap();
        let mut a = Arranged::copy(&abi, &t).unwrap().unwrap();
        let arg = a.arg();
        assert_eq!((arg.shape, arg.strides), (vec![2, 4, 3], vec![4, 1, 8]));
        assert_eq!(a.into_tensor().unwrap().to_f64(), values);
    }
}
