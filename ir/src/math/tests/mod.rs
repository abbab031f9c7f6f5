mod bounds;
mod lanes;
mod measure;
mod narrow;
mod specials;

use super::*;
use crate::num;
use crate::program::{Elem, MathFn};
use pantile_abi::DType;

pub(super) fn f32_of(f: MathFn, args: &[f32]) -> f32 {
    emit_f32(&Scalar, f, args).unwrap()
}

pub(super) fn f64_of(f: MathFn, args: &[f64]) -> f64 {
    emit_f64(&Scalar, f, args).unwrap()
}

/// A small generator, so that samples are the same in every run.
pub(super) struct Lcg(pub u64);

impl Lcg {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 ^ self.0 >> 31
    }
}
