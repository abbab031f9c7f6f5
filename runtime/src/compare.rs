//! Is a result right? Element by element, against a reference in f64.

use crate::error::{Error, ErrorKind, Result};
use crate::host::HostTensor;
use std::fmt;

/// How far an element may be from its reference.
#[derive(Clone, Copy, Debug)]
pub enum Tolerance<'a> {
    /// Not at all; 0 and −0 differ.
    Bits,
    /// `|got − want| ≤ atol + rtol · |want|`.
    Close { rtol: f64, atol: f64 },
    /// `|got − want| ≤` the element's own bound, for instance `n · u · Σ|aᵢ||bᵢ|`.
    Bounds(&'a [f64]),
}

/// The element that is furthest outside its tolerance, or nearest to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    pub index: Vec<usize>,
    pub got: f64,
    pub want: f64,
    /// How far an element here may be off.
    pub allowed: f64,
}

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub count: usize,
    /// Elements outside their tolerance.
    pub wrong: usize,
    pub worst: Option<Worst>,
    /// Over elements whose reference is finite.
    pub max_abs: f64,
    /// Over elements whose reference is finite and not 0.
    pub max_rel: f64,
}

impl Report {
    pub fn is_right(&self) -> bool {
        self.wrong == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { count, wrong, max_abs, max_rel, .. } = self;
        if self.is_right() {
            let elements = if *count == 1 { "element agrees" } else { "elements agree" };
            return write!(f, "{count} {elements} (largest error {max_abs:.3e}, relative {max_rel:.3e})");
        }
        let (noun, verb) =
            (if *count == 1 { "element" } else { "elements" }, if *wrong == 1 { "is" } else { "are" });
        write!(f, "{wrong} of {count} {noun} {verb} wrong")?;
        let Some(w) = &self.worst else { return Ok(()) };
        write!(
            f,
            ", the worst at {:?}: {:e} instead of {:e}, allowed ±{:.3e}",
            w.index, w.got, w.want, w.allowed
        )
    }
}

/// Compares a tensor with another of the same type or with a more exact one. All NaNs are equal; an infinity equals
/// only itself.
pub fn compare(got: &HostTensor, want: &HostTensor, tolerance: Tolerance<'_>) -> Result<Report> {
    if got.shape() != want.shape() {
        let message = format!("shape {:?} cannot be compared with {:?}", got.shape(), want.shape());
        return Err(Error::new(ErrorKind::Compare, message));
    }
    compare_values(got.shape(), |i| got.get(i), |i| want.get(i), tolerance)
}

/// Compares row-major elements given by functions.
pub fn compare_values(
    shape: &[usize],
    got: impl Fn(usize) -> f64,
    want: impl Fn(usize) -> f64,
    tolerance: Tolerance<'_>,
) -> Result<Report> {
    let count = shape.iter().product();
    if let Tolerance::Bounds(bounds) = tolerance
        && bounds.len() != count
    {
        let message = format!("{} bounds cannot be compared with {count} elements", bounds.len());
        return Err(Error::new(ErrorKind::Compare, message));
    }
    let mut report = Report { count, ..Report::default() };
    let mut worst: Option<(f64, usize)> = None;
    for i in 0..count {
        let (g, w) = (got(i), want(i));
        let allowed = allowed(tolerance, i, w);
        let excess = excess(g, w, allowed, tolerance);
        report.wrong += (excess > 1.0) as usize;
        if w.is_finite() {
            let off = if g.is_nan() { f64::INFINITY } else { (g - w).abs() };
            report.max_abs = report.max_abs.max(off);
            if w != 0.0 {
                report.max_rel = report.max_rel.max(off / w.abs());
            }
        }
        if worst.is_none_or(|(e, _)| excess > e) {
            worst = Some((excess, i));
        }
    }
    report.worst = worst.map(|(_, i)| {
        let (got, want) = (got(i), want(i));
        Worst { index: unravel(i, shape), got, want, allowed: self::allowed(tolerance, i, want) }
    });
    Ok(report)
}

fn allowed(tolerance: Tolerance<'_>, i: usize, want: f64) -> f64 {
    match tolerance {
        Tolerance::Bits => 0.0,
        Tolerance::Close { rtol, atol } => atol + rtol * want.abs(),
        Tolerance::Bounds(bounds) => bounds[i],
    }
}

/// The error in units of what is allowed; above 1 is wrong.
fn excess(got: f64, want: f64, allowed: f64, tolerance: Tolerance<'_>) -> f64 {
    let same = match tolerance {
        Tolerance::Bits => got.to_bits() == want.to_bits(),
        _ => got == want,
    };
    if same || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    if !got.is_finite() || !want.is_finite() || allowed.is_nan() {
        return f64::INFINITY;
    }
    let off = (got - want).abs();
    if matches!(tolerance, Tolerance::Bits) {
        // 0 and −0 differ by nothing, and yet are wrong
        return 2.0 + off;
    }
    if off <= allowed { off / allowed.max(f64::MIN_POSITIVE) } else { (off / allowed).max(1.0f64.next_up()) }
}

fn unravel(mut i: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (at, &extent) in index.iter_mut().zip(shape).rev() {
        *at = i % extent;
        i /= extent;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(got: &[f64], want: &[f64], tolerance: Tolerance<'_>) -> Report {
        compare_values(&[got.len()], |i| got[i], |i| want[i], tolerance).unwrap()
    }

    const CLOSE: Tolerance<'static> = Tolerance::Close { rtol: 1e-2, atol: 0.0 };

    #[test]
    fn finds_the_worst() {
        let got = [1.0, 2.5, 3.0, 1.009];
        let r = check(&got, &[1.0, 2.0, 4.0, 1.0], CLOSE);
        assert_eq!((r.count, r.wrong), (4, 2));
        let worst = r.worst.unwrap();
        assert_eq!((worst.index, worst.got, worst.want), (vec![1], 2.5, 2.0));
        assert_eq!((r.max_abs, r.max_rel), (1.0, 0.25));
    }

    #[test]
    fn special_values() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert!(check(&[nan, inf, -inf, 0.0], &[-nan, inf, -inf, -0.0], CLOSE).is_right());
        for (g, w) in [(nan, 1.0), (1.0, nan), (inf, 1e300), (1e300, inf), (inf, -inf), (inf, nan)] {
            let loose = Tolerance::Close { rtol: 1e9, atol: 1e9 };
            assert_eq!(check(&[g], &[w], loose).wrong, 1, "{g} {w}");
        }
        assert_eq!(check(&[0.0], &[-0.0], Tolerance::Bits).wrong, 1);
        assert_eq!(check(&[nan], &[-nan], Tolerance::Bits).wrong, 0);
        assert_eq!(check(&[1.0], &[1.0f64.next_up()], Tolerance::Bits).wrong, 1);
    }

    #[test]
    fn bounds_are_each_elements_own() {
        let r = check(&[1.0, 1.0, 1.0], &[1.5, 1.5, 1.5], Tolerance::Bounds(&[0.5, 0.4, f64::NAN]));
        assert_eq!(r.wrong, 2);
        assert!(compare_values(&[2], |_| 0.0, |_| 0.0, Tolerance::Bounds(&[1.0])).is_err());
    }

    #[test]
    fn nothing_is_right() {
        let r = check(&[], &[], Tolerance::Bits);
        assert!(r.is_right() && r.worst.is_none());
    }

    #[test]
    fn shapes_must_agree() {
        let a = HostTensor::from_f64(pantile_abi::DType::F32, &[2, 3], &[0.0; 6]).unwrap();
        let b = HostTensor::from_f64(pantile_abi::DType::F32, &[3, 2], &[0.0; 6]).unwrap();
        assert_eq!(compare(&a, &b, CLOSE).unwrap_err().kind, ErrorKind::Compare);
        assert_eq!(unravel(5, &[2, 3]), [1, 2]);
    }
}
