//! How a kernel built for the CPU is called, whether it came from the JIT or from an object on disk.
//!
//! The kernel is one C function over a range of blocks. Its arguments are a row of 64-bit words: one a parameter in
//! the order of declaration (a tensor's address, a scalar's bits in the low end), one a dim slot, one a grid extent.
//! Blocks are numbered with the first grid axis fastest. The caller cuts the grid into ranges and may run them on any
//! threads; each running range has scratch memory of its own.

use crate::{ArgValue, BoundArgs, ScalarValue};

/// `words`, first block, block after the last, scratch memory (64-byte aligned, [`CpuAbi::scratch`] bytes, contents
/// unspecified). Gives 0, or 1 + the number of the fault in [`CpuAbi::faults`] that stopped it.
pub type CpuEntry = unsafe extern "C" fn(words: *const u64, begin: u64, end: u64, scratch: *mut u8) -> u64;

/// One thing that may stop a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CpuFault {
    /// One sentence, lower case, no full stop.
    pub message: String,
    /// The rule that is broken: `717` prints as `P0717`.
    pub code: u16,
    /// The statement at fault, by its number in the kernel's text (outer statements first), for who has the text.
    #[serde(default)]
    pub statement: Option<u32>,
}

/// What the caller must know beside the function, part of a kernel's contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CpuAbi {
    /// Bytes of scratch for one running range.
    #[serde(default)]
    pub scratch: u64,
    /// What may stop the kernel: failed asserts, indices made from data, loop steps, roles that wait for one another.
    #[serde(default)]
    pub faults: Vec<CpuFault>,
    /// Features the code uses, as the compiler names them; the host must have them all.
    #[serde(default)]
    pub features: Vec<String>,
}

/// The words of one launch.
pub fn cpu_words(args: &BoundArgs, grid: &[u64]) -> Vec<u64> {
    let params = args.args.iter().map(|arg| match arg {
        ArgValue::Tensor(t) => t.ptr.0.expose_provenance() as u64,
        ArgValue::Scalar(ScalarValue::Index(v)) => *v as u64,
        ArgValue::Scalar(ScalarValue::Bits(_, bits)) => *bits,
    });
    let dims = args.dims.iter().map(|d| d.unwrap_or(0) as u64);
    params.chain(dims).chain(grid.iter().copied()).collect()
}
