//! Element-wise operations on slices: one dispatch on operation and type, then a plain loop.
//!
//! An operand of one element stands for all elements of the output. An element without a value becomes 0 and is
//! reported in `faults`, and the others are computed all the same: whoever calls knows which elements count.

use super::kind::{Kind, Res, with_kind};
use super::{Bin, Fault, NumError, Scalar, Un};
use crate::program::Elem;

/// How far to walk in an operand for each output element. Lengths that do not agree are the caller's mistake.
pub(super) fn step(operand: usize, out: usize) -> usize {
    assert!(operand == out || operand == 1, "operand of {operand} elements for {out}");
    (operand != 1 || out == 1) as usize
}

struct Operands<'a> {
    a: &'a [Scalar],
    b: &'a [Scalar],
    out: &'a mut [Scalar],
    faults: &'a mut Vec<Fault>,
}

impl Operands<'_> {
    #[inline]
    fn map<K: Kind>(self, k: K, f: impl Fn(K::V, K::V) -> Res<K::V>) {
        let Operands { a, b, out, faults } = self;
        let compute = |a: Scalar, b: Scalar| f(k.load(a), k.load(b)).map(|v| k.store(v));
        pairs(a, b, out, compute, |at, error| faults.push(Fault { at, error }));
    }

    #[inline]
    fn compare<K: Kind>(self, k: K, f: impl Fn(&K::V, &K::V) -> bool) {
        let Operands { a, b, out, .. } = self;
        let compute = |a: Scalar, b: Scalar| Ok(f(&k.load(a), &k.load(b)) as u64);
        pairs(a, b, out, compute, |_, _| ());
    }
}

/// Fills `out` from pairs of operands; a loop for each way of repeating one.
#[inline]
fn pairs(
    a: &[Scalar],
    b: &[Scalar],
    out: &mut [Scalar],
    f: impl Fn(Scalar, Scalar) -> Res<Scalar>,
    mut fault: impl FnMut(usize, NumError),
) {
    let n = out.len();
    let mut set = |at: usize, o: &mut Scalar, value: Res<Scalar>| {
        *o = value.unwrap_or_else(|error| {
            fault(at, error);
            0
        })
    };
    match (step(a.len(), n), step(b.len(), n)) {
        (0, 0) => out.iter_mut().enumerate().for_each(|(i, o)| set(i, o, f(a[0], b[0]))),
        (0, _) => out.iter_mut().zip(b).enumerate().for_each(|(i, (o, &b))| set(i, o, f(a[0], b))),
        (_, 0) => out.iter_mut().zip(a).enumerate().for_each(|(i, (o, &a))| set(i, o, f(a, b[0]))),
        _ => {
            out.iter_mut().zip(a.iter().zip(b)).enumerate().for_each(|(i, (o, (&a, &b)))| set(i, o, f(a, b)))
        }
    }
}

/// Element-wise [`super::binary`].
pub fn binary_slice(
    op: Bin,
    elem: Elem,
    a: &[Scalar],
    b: &[Scalar],
    out: &mut [Scalar],
    faults: &mut Vec<Fault>,
) {
    let operands = Operands { a, b, out, faults };
    with_kind!(elem, k => binary_kind(op, k, operands))
}

fn binary_kind<K: Kind>(op: Bin, k: K, x: Operands<'_>) {
    match op {
        Bin::Add => x.map(k, |a, b| k.add(a, b)),
        Bin::Sub => x.map(k, |a, b| k.sub(a, b)),
        Bin::Mul => x.map(k, |a, b| k.mul(a, b)),
        Bin::Div => x.map(k, |a, b| k.div(a, b)),
        Bin::Rem => x.map(k, |a, b| k.rem(a, b)),
        Bin::CeilDiv => x.map(k, |a, b| k.ceil_div(a, b)),
        Bin::Min => x.map(k, |a, b| Ok(k.min(a, b))),
        Bin::Max => x.map(k, |a, b| Ok(k.max(a, b))),
        Bin::And => x.map(k, |a, b| k.and(a, b)),
        Bin::Or => x.map(k, |a, b| k.or(a, b)),
        Bin::Xor => x.map(k, |a, b| k.xor(a, b)),
        Bin::Shl => x.map(k, |a, b| k.shl(a, b)),
        Bin::Shr => x.map(k, |a, b| k.shr(a, b)),
        Bin::Eq => x.compare(k, |a, b| a == b),
        Bin::Ne => x.compare(k, |a, b| a != b),
        Bin::Lt => x.compare(k, |a, b| a < b),
        Bin::Le => x.compare(k, |a, b| a <= b),
        Bin::Gt => x.compare(k, |a, b| a > b),
        Bin::Ge => x.compare(k, |a, b| a >= b),
    }
}

/// Element-wise [`super::unary`].
pub fn unary_slice(op: Un, elem: Elem, a: &[Scalar], out: &mut [Scalar], faults: &mut Vec<Fault>) {
    let operands = Operands { a, b: a, out, faults };
    with_kind!(elem, k => match op {
        Un::Neg => operands.map(k, |a, _| k.neg(a)),
        Un::Not => operands.map(k, |a, _| k.not(a)),
        Un::Abs => operands.map(k, |a, _| k.abs(a)),
    })
}

/// Element-wise [`super::fma`].
pub fn fma_slice(
    elem: Elem,
    a: &[Scalar],
    b: &[Scalar],
    c: &[Scalar],
    out: &mut [Scalar],
    faults: &mut Vec<Fault>,
) {
    let n = out.len();
    let (sa, sb, sc) = (step(a.len(), n), step(b.len(), n), step(c.len(), n));
    with_kind!(elem, k => {
        for (i, o) in out.iter_mut().enumerate() {
            *o = match k.fma(k.load(a[i * sa]), k.load(b[i * sb]), k.load(c[i * sc])) {
                Ok(v) => k.store(v),
                Err(error) => {
                    faults.push(Fault { at: i, error });
                    0
                }
            };
        }
    })
}

/// `out[i] += a * b[i]`, product and sum rounded each: one step of `@` along its contracted axis.
pub fn axpy_slice(elem: Elem, a: Scalar, b: &[Scalar], out: &mut [Scalar]) -> Result<(), NumError> {
    assert_eq!(b.len(), out.len());
    with_kind!(elem, k => {
        let a = k.load(a);
        for (o, &b) in out.iter_mut().zip(b) {
            let product = k.load(k.store(k.mul(a, k.load(b))?));
            *o = k.store(k.add(k.load(*o), product)?);
        }
        Ok(())
    })
}

/// Folds `values` into `acc` in order with one accumulator, as `reduce` does.
pub fn fold_slice(op: Bin, elem: Elem, acc: Scalar, values: &[Scalar]) -> Result<Scalar, Fault> {
    with_kind!(elem, k => {
        match op {
            Bin::Add => fold(k, acc, values, |a, b| k.add(a, b)),
            Bin::Mul => fold(k, acc, values, |a, b| k.mul(a, b)),
            Bin::Min => fold(k, acc, values, |a, b| Ok(k.min(a, b))),
            Bin::Max => fold(k, acc, values, |a, b| Ok(k.max(a, b))),
            Bin::And => fold(k, acc, values, |a, b| k.and(a, b)),
            Bin::Or => fold(k, acc, values, |a, b| k.or(a, b)),
            Bin::Xor => fold(k, acc, values, |a, b| k.xor(a, b)),
            _ => Err(Fault { at: 0, error: NumError::Undefined { elem } }),
        }
    })
}

#[inline]
fn fold<K: Kind>(
    k: K,
    acc: Scalar,
    values: &[Scalar],
    f: impl Fn(K::V, K::V) -> Res<K::V>,
) -> Result<Scalar, Fault> {
    let mut acc = acc;
    for (at, &v) in values.iter().enumerate() {
        acc = match f(k.load(acc), k.load(v)) {
            Ok(v) => k.store(v),
            Err(error) => return Err(Fault { at, error }),
        };
    }
    Ok(acc)
}
