//! Tensors in host memory.

use crate::error::{Error, ErrorKind, Result};
use pantile_abi::{DType, DTypeKind, PackOrder, Packing, Ptr, TensorArg};
use std::alloc::Layout;
use std::ptr::NonNull;

/// Every buffer starts on a cache line, which is also the widest vector.
pub const ALIGN: usize = 64;

/// Owned, aligned bytes. Never empty inside, so that the address is always a real one.
#[derive(Debug)]
pub struct HostBuffer {
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer owns its memory as a `Vec<u8>` does.
unsafe impl Send for HostBuffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    pub fn zeroed(len: usize) -> Result<HostBuffer> {
        let refuse = || Error::new(ErrorKind::Memory, format!("cannot get {len} bytes of memory"));
        let layout = Self::layout(len).ok_or_else(refuse)?;
        // SAFETY: the layout is never of size 0.
        let ptr = unsafe { std::alloc::alloc_zeroed(layout) };
        Ok(HostBuffer { ptr: NonNull::new(ptr).ok_or_else(refuse)?, len })
    }

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.max(1), ALIGN).ok()
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `ptr` owns `len` initialised bytes.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }

    pub fn ptr(&self) -> Ptr {
        Ptr(self.ptr.as_ptr())
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.len) {
            // SAFETY: allocated in `zeroed` with this layout.
            unsafe { std::alloc::dealloc(self.ptr.as_ptr(), layout) }
        }
    }
}

/// A row-major tensor without gaps.
#[derive(Debug)]
pub struct HostTensor {
    dtype: DType,
    /// Elements along each axis, also of 4-bit types.
    shape: Vec<usize>,
    packed: Option<Packing>,
    buffer: HostBuffer,
}

impl HostTensor {
    /// All zero. A 4-bit type without a packing is packed along its last axis, linear.
    pub fn zeros(dtype: DType, shape: &[usize], packed: Option<Packing>) -> Result<HostTensor> {
        let packed = packing_of(dtype, shape, packed)?;
        let bytes = storage_bytes(dtype, shape, packed).ok_or_else(|| {
            Error::new(ErrorKind::Memory, format!("a tensor of shape {shape:?} is too large"))
        })?;
        Ok(HostTensor { dtype, shape: shape.to_vec(), packed, buffer: HostBuffer::zeroed(bytes)? })
    }

    /// Copies `bytes`, which must be exactly the tensor's.
    pub fn from_bytes(
        dtype: DType,
        shape: &[usize],
        packed: Option<Packing>,
        bytes: &[u8],
    ) -> Result<HostTensor> {
        let mut t = HostTensor::zeros(dtype, shape, packed)?;
        if t.bytes().len() != bytes.len() {
            let message =
                format!("{dtype} of shape {shape:?} takes {} bytes, not {}", t.bytes().len(), bytes.len());
            return Err(Error::new(ErrorKind::FileFormat, message));
        }
        t.bytes_mut().copy_from_slice(bytes);
        Ok(t)
    }

    /// Rounds each value to the type (see [`DType::encode`]).
    pub fn from_f64(dtype: DType, shape: &[usize], values: &[f64]) -> Result<HostTensor> {
        let mut t = HostTensor::zeros(dtype, shape, None)?;
        if t.len() != values.len() {
            let message = format!("shape {shape:?} has {} elements, not {}", t.len(), values.len());
            return Err(Error::new(ErrorKind::FileFormat, message));
        }
        for (i, &v) in values.iter().enumerate() {
            t.set_bits(i, dtype.encode(v));
        }
        Ok(t)
    }

    /// A copy with memory of its own.
    pub fn try_clone(&self) -> Result<HostTensor> {
        HostTensor::from_bytes(self.dtype, &self.shape, self.packed, self.bytes())
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn packed(&self) -> Option<Packing> {
        self.packed
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }

    /// A view to hand to a kernel that only reads the tensor.
    pub fn arg(&self) -> TensorArg {
        let bytes = self.bytes().len();
        TensorArg::contiguous(self.dtype, &self.shape, self.packed, self.buffer.ptr(), bytes)
    }

    /// A view to hand to a kernel that writes it.
    pub fn arg_mut(&mut self) -> TensorArg {
        self.arg()
    }

    /// The bits of the element at row-major position `i`; 0 behind the end.
    pub fn bits(&self, i: usize) -> u64 {
        let (offset, width, shift) = self.place(i);
        let Some(unit) = self.bytes().get(offset..offset + width) else { return 0 };
        let mut word = [0u8; 8];
        word[..width].copy_from_slice(unit);
        let word = u64::from_le_bytes(word);
        match self.packed {
            Some(_) => word >> shift & 0xf,
            None => word,
        }
    }

    /// Sets the bits of the element at row-major position `i`; nothing behind the end.
    pub fn set_bits(&mut self, i: usize, bits: u64) {
        let (offset, width, shift) = self.place(i);
        let packed = self.packed.is_some();
        let Some(unit) = self.bytes_mut().get_mut(offset..offset + width) else { return };
        let mut word = [0u8; 8];
        word[..width].copy_from_slice(unit);
        let mut value = bits;
        if packed {
            value = u64::from_le_bytes(word) & !(0xf << shift) | (bits & 0xf) << shift;
        }
        unit.copy_from_slice(&value.to_le_bytes()[..width]);
    }

    /// The number at row-major position `i` (integers beyond 2^53 round).
    pub fn get(&self, i: usize) -> f64 {
        self.dtype.decode(self.bits(i))
    }

    pub fn to_f64(&self) -> Vec<f64> {
        (0..self.len()).map(|i| self.get(i)).collect()
    }

    /// Fills with a pattern that shows when used: NaN for floats, a large odd number for integers.
    pub fn poison(&mut self) {
        let byte = poison_byte(self.dtype);
        self.bytes_mut().fill(byte);
    }

    /// Byte offset and width of the unit that holds element `i`, and the element's bit in it.
    fn place(&self, i: usize) -> (usize, usize, u32) {
        let Some(p) = self.packed else {
            let width = self.dtype.bits() as usize / 8;
            return (i * width, width, 0);
        };
        let axis = p.axis as usize;
        let inner: usize = self.shape[axis + 1..].iter().product::<usize>().max(1);
        let extent = self.shape[axis].max(1);
        let (outer, k, rest) = (i / (inner * extent), i / inner % extent, i % inner);
        let per = p.order.per_unit();
        let unit = (outer * extent.div_ceil(per) + k / per) * inner + rest;
        (unit * p.order.unit_bytes(), p.order.unit_bytes(), p.order.shift(k % per))
    }
}

pub(crate) fn poison_byte(dtype: DType) -> u8 {
    match dtype.kind() {
        DTypeKind::Float | DTypeKind::Float8 => 0xff,
        DTypeKind::Bool => 1,
        DTypeKind::Int | DTypeKind::Uint => 0xa5,
    }
}

fn packing_of(dtype: DType, shape: &[usize], packed: Option<Packing>) -> Result<Option<Packing>> {
    let refuse = |message: String| Err(Error::new(ErrorKind::FileUnsupported, message));
    if dtype.bits() != 4 {
        return match packed {
            None => Ok(None),
            Some(_) => refuse(format!("only 4-bit types are packed, not {dtype}")),
        };
    }
    let Some(last) = shape.len().checked_sub(1) else {
        return refuse(format!("{dtype} needs an axis to be packed along"));
    };
    let p = packed.unwrap_or(Packing { axis: last as u32, order: PackOrder::Linear });
    if p.axis as usize > last {
        return refuse(format!("shape {shape:?} has no axis {} to be packed along", p.axis));
    }
    Ok(Some(p))
}

/// Bytes of a tensor, `None` where they cannot be counted.
pub(crate) fn storage_bytes(dtype: DType, shape: &[usize], packed: Option<Packing>) -> Option<usize> {
    let mut units = shape.to_vec();
    let mut width = dtype.bits().div_ceil(8) as usize;
    if let Some(p) = packed {
        let extent = units.get_mut(p.axis as usize)?;
        *extent = extent.div_ceil(p.order.per_unit());
        width = p.order.unit_bytes();
    }
    if units.contains(&0) {
        return Some(0);
    }
    let bytes = units.iter().try_fold(width, |n, &e| n.checked_mul(e))?;
    (bytes <= isize::MAX as usize).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_places_of_their_own_in_every_packing() {
        for order in [PackOrder::Linear, PackOrder::Gptq, PackOrder::Awq] {
            for axis in 0..3 {
                let shape = [8, 16, 24];
                let mut t = HostTensor::zeros(DType::U4, &shape, Some(Packing { axis, order })).unwrap();
                assert_eq!(t.bytes().len(), 8 * 16 * 24 / 2);
                for i in 0..t.len() {
                    t.set_bits(i, (i * 7 % 16) as u64);
                }
                for i in 0..t.len() {
                    assert_eq!(t.bits(i), (i * 7 % 16) as u64, "{order:?} axis {axis} element {i}");
                }
            }
        }
    }

    #[test]
    fn linear_puts_even_elements_low() {
        let t = HostTensor::from_bytes(DType::I4, &[2, 2], None, &[0x1f, 0x80]).unwrap();
        assert_eq!(t.to_f64(), [-1.0, 1.0, 0.0, -8.0]);
    }

    #[test]
    fn values_round_and_return() {
        let t = HostTensor::from_f64(DType::BF16, &[3], &[1.0, 1.0 + 1.0 / 256.0, -0.0]).unwrap();
        assert_eq!(t.to_f64(), [1.0, 1.0, 0.0]);
        assert_eq!(t.bits(2), 0x8000);
        assert!(t.arg().ptr.addr().is_multiple_of(ALIGN));
    }

    #[test]
    fn sizes_that_cannot_be_are_errors() {
        let e = HostTensor::zeros(DType::F64, &[usize::MAX, 2], None).unwrap_err();
        assert_eq!(e.kind, ErrorKind::Memory);
        let e = HostTensor::zeros(DType::F64, &[1 << 50], None).unwrap_err();
        assert_eq!(e.kind, ErrorKind::Memory);
        assert!(HostTensor::zeros(DType::F64, &[usize::MAX, 0], None).is_ok());
        assert_eq!(HostTensor::zeros(DType::U4, &[], None).unwrap_err().kind, ErrorKind::FileUnsupported);
    }

    #[test]
    fn poison_is_seen() {
        for d in DType::ALL.into_iter().filter(|d| d.is_float()) {
            let mut t = HostTensor::zeros(d, &[5], None).unwrap();
            t.poison();
            assert!(t.to_f64().iter().all(|v| v.is_nan()), "{d}");
        }
    }
}
