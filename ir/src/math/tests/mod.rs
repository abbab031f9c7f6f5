mod measure;

use super::*;
use crate::num;
use crate::program::{Elem, MathFn};

pub(super) fn f32_of(f: MathFn, args: &[f32]) -> f32 {
    emit_f32(&Scalar, f, args).unwrap()
}

pub(super) fn f64_of(f: MathFn, args: &[f64]) -> f64 {
    emit_f64(&Scalar, f, args).unwrap()
}
