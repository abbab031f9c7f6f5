//! Literals: text to a value of a type, and the canonical text of a value.
//!
//! A literal takes the context's type and must be representable: an integer exactly, also in a float type; a decimal
//! fraction is rounded to nearest even once, but neither to infinity nor, unless it is zero, to zero.
//! [`print_value`] gives the shortest text that [`parse_value`] reads back to the same value.

use super::{Rounding, Scalar, convert, from_int, int_range, is_nan, to_f64};
use crate::program::Elem;
use pantile_abi::DType;
use std::cmp::Ordering;
use std::fmt;
use std::num::IntErrorKind;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiteralError {
    /// No number at all.
    Malformed { text: String },
    /// An integer outside the type's range, or a fraction too large for it.
    OutOfRange { text: String, elem: Elem },
    /// An integer that the float type rounds.
    Inexact { text: String, elem: Elem, nearest: String },
    /// A fraction that would become zero.
    TooSmall { text: String, elem: Elem },
    /// A fraction for an integer type, or a number for bool.
    WrongKind { text: String, elem: Elem },
}

impl fmt::Display for LiteralError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiteralError::Malformed { text } => write!(f, "`{text}` is not a number"),
            LiteralError::OutOfRange { text, elem } => match int_range(*elem) {
                Some((lo, hi)) => write!(f, "`{text}` does not fit into {elem} ({lo} to {hi})"),
                None => write!(
                    f,
                    "`{text}` does not fit into {elem} (largest {})",
                    print_value(*elem, largest(*elem))
                ),
            },
            LiteralError::Inexact { text, elem, nearest } => {
                write!(f, "`{text}` is not a value of {elem}; the nearest is {nearest}")
            }
            LiteralError::TooSmall { text, elem } => {
                write!(f, "`{text}` is too small for {elem}: it would be zero")
            }
            LiteralError::WrongKind { text, elem } => write!(f, "`{text}` is not a literal of {elem}"),
        }
    }
}

impl std::error::Error for LiteralError {}

/// The largest finite value of a float type.
fn largest(elem: Elem) -> Scalar {
    let max = super::from_f64(elem, f64::MAX);
    convert(Elem::D(DType::F64), elem, f64::MAX.to_bits(), Rounding::Saturate).or(max).unwrap_or(0)
}

/// Reads `128`, `1_000`, `0x7f`, `0b101` without sign.
fn magnitude(text: &str) -> Result<i128, IntErrorKind> {
    let digits = text.replace('_', "");
    let (digits, radix) = match digits.get(..2) {
        Some("0x" | "0X") => (&digits[2..], 16),
        Some("0b" | "0B") => (&digits[2..], 2),
        Some("0o" | "0O") => (&digits[2..], 8),
        _ => (digits.as_str(), 10),
    };
    if digits.starts_with(['+', '-']) {
        return Err(IntErrorKind::InvalidDigit);
    }
    i128::from_str_radix(digits, radix).map_err(|e| *e.kind())
}

/// The value of an integer literal, `text` as written and without its sign.
pub fn int_literal(elem: Elem, text: &str, negative: bool) -> Result<Scalar, LiteralError> {
    let shown = if negative { format!("-{text}") } else { text.to_string() };
    if elem == Elem::BOOL {
        return Err(LiteralError::WrongKind { text: shown, elem });
    }
    let value = match magnitude(text) {
        Ok(v) if negative => -v,
        Ok(v) => v,
        Err(IntErrorKind::PosOverflow) => return Err(LiteralError::OutOfRange { text: shown, elem }),
        Err(_) => return Err(LiteralError::Malformed { text: shown }),
    };
    if negative && value == 0 && elem.is_float() {
        return Ok(sign_bit(elem));
    }
    if let Some(bits) = from_int(elem, value) {
        return Ok(bits);
    }
    if int_range(elem).is_some() {
        return Err(LiteralError::OutOfRange { text: shown, elem });
    }
    let nearest = round_decimal(elem, &value.unsigned_abs().to_string());
    match nearest {
        Some(bits) if to_f64(elem, bits).is_finite() => {
            let sign = if negative { sign_bit(elem) } else { 0 };
            Err(LiteralError::Inexact { text: shown, elem, nearest: print_value(elem, bits | sign) })
        }
        _ => Err(LiteralError::OutOfRange { text: shown, elem }),
    }
}

/// The value of a literal with a fraction or an exponent, `text` as written and without its sign.
pub fn float_literal(elem: Elem, text: &str, negative: bool) -> Result<Scalar, LiteralError> {
    let shown = if negative { format!("-{text}") } else { text.to_string() };
    if !elem.is_float() {
        return Err(LiteralError::WrongKind { text: shown, elem });
    }
    let digits = text.replace('_', "");
    let bits =
        if digits.starts_with(|c: char| c.is_ascii_digit()) { round_decimal(elem, &digits) } else { None };
    let Some(bits) = bits else {
        return Err(LiteralError::Malformed { text: shown });
    };
    if !to_f64(elem, bits).is_finite() {
        return Err(LiteralError::OutOfRange { text: shown, elem });
    }
    if bits == 0 && !Decimal::parse(&digits).digits.is_empty() {
        return Err(LiteralError::TooSmall { text: shown, elem });
    }
    Ok(bits | if negative { sign_bit(elem) } else { 0 })
}

fn sign_bit(elem: Elem) -> u64 {
    1 << (super::bits(elem) - 1)
}

/// Rounds an unsigned decimal number to the float type, once.
fn round_decimal(elem: Elem, digits: &str) -> Option<Scalar> {
    if elem == Elem::F32 {
        return digits.parse::<f32>().ok().map(|v| v.to_bits() as u64);
    }
    let near: f64 = digits.parse().ok()?;
    let round = |v: f64| super::from_f64(elem, v).ok();
    let bits = round(near)?;
    if elem == Elem::D(DType::F64) || !near.is_finite() {
        return Some(bits);
    }
    // Rounding twice goes wrong only if `near` is a tie of the narrow type that the text is not; ties are f64s.
    let below = round(f64::from_bits(near.to_bits().saturating_sub(1)))?;
    let above = round(f64::from_bits(near.to_bits() + 1))?;
    let lower = to_f64(elem, below);
    let upper = match to_f64(elem, above) {
        v if v.is_finite() => v,
        _ => 2.0 * lower - to_f64(elem, below - 1), // one step past the largest value
    };
    if below == above || (lower + upper) * 0.5 != near {
        return Some(bits);
    }
    Some(match Decimal::parse(digits).cmp(&Decimal::parse(&format!("{near:.1100}"))) {
        Ordering::Less => below,
        Ordering::Equal => bits,
        Ordering::Greater => above,
    })
}

/// An unsigned decimal number `0.DIGITS · 10^exponent` without zeros at either end; zero has no digits.
struct Decimal {
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn parse(text: &str) -> Decimal {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let leading = all.iter().take_while(|&&d| d == b'0').count();
        let trailing = all.iter().rev().take_while(|&&d| d == b'0').count();
        if leading == all.len() {
            return Decimal { digits: Vec::new(), exponent: 0 };
        }
        // An exponent beyond i32 is as good as i32's ends: the digits of a source file cannot make up for it.
        let written =
            exponent.parse::<i32>().unwrap_or(if exponent.starts_with('-') { i32::MIN } else { i32::MAX });
        Decimal {
            digits: all[leading..all.len() - trailing].to_vec(),
            exponent: written as i64 + whole.len() as i64 - leading as i64,
        }
    }

    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

/// Reads what [`print_value`] writes, and any literal with a sign: `-12`, `0.5`, `-inf`, `nan`, `true`.
pub fn parse_value(elem: Elem, text: &str) -> Result<Scalar, LiteralError> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let wrong = || LiteralError::WrongKind { text: text.to_string(), elem };
    match unsigned {
        "true" | "false" if elem == Elem::BOOL && !negative => Ok((unsigned == "true") as u64),
        "inf" | "nan" if elem.is_float() => {
            let value = if unsigned == "nan" { f64::NAN } else { f64::INFINITY };
            let bits = super::from_f64(elem, value).map_err(|_| wrong())?;
            if unsigned == "inf" && is_nan(elem, bits) {
                return Err(LiteralError::OutOfRange { text: text.to_string(), elem });
            }
            Ok(bits | if negative { sign_bit(elem) } else { 0 })
        }
        _ if is_hex(unsigned) || !unsigned.contains(['.', 'e', 'E']) => int_literal(elem, unsigned, negative),
        _ => float_literal(elem, unsigned, negative),
    }
}

fn is_hex(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}

/// A constant as programs hold it: all NaNs of a type are one value.
pub fn one_nan(elem: Elem, bits: Scalar) -> Scalar {
    if elem.is_float() && to_f64(elem, bits).is_nan() {
        return super::from_f64(elem, f64::NAN.abs()).unwrap_or(bits);
    }
    bits
}

/// The canonical text of a value: the shortest that reads back. Floats always carry a point or an exponent.
pub fn print_value(elem: Elem, x: Scalar) -> String {
    match elem {
        Elem::D(DType::Bool) => (if x != 0 { "true" } else { "false" }).to_string(),
        Elem::D(d) if d.is_float() => print_float(elem, x),
        Elem::D(d) if !d.is_signed() => x.to_string(),
        _ => (x as i64).to_string(),
    }
}

fn print_float(elem: Elem, x: Scalar) -> String {
    let value = to_f64(elem, x);
    if value.is_nan() {
        return "nan".to_string();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    if value == 0.0 {
        return format!("{sign}0.0");
    }
    if value.fract() == 0.0 && value.abs() < 16_777_216.0 {
        return format!("{value:.1}"); // an integer reads best in full
    }
    format!("{sign}{}", place_point(&shortest(elem, x & !sign_bit(elem), value.abs())))
}

/// The shortest scientific form, e.g. `6.1e-5`.
fn shortest(elem: Elem, magnitude: Scalar, value: f64) -> String {
    match elem {
        Elem::D(DType::F64) => format!("{value:e}"),
        // read as f64 and rounded to f32 it must be the same value
        Elem::D(DType::F32) => {
            let text = format!("{:e}", value as f32);
            if text.parse::<f64>().is_ok_and(|v| v as f32 == value as f32) {
                text
            } else {
                format!("{value:e}")
            }
        }
        // At most five digits tell the values of a 16-bit format apart.
        _ => (0..17)
            .map(|digits| format!("{value:.digits$e}"))
            .find(|text| text.parse().is_ok_and(|v| super::from_f64(elem, v) == Ok(magnitude)))
            .unwrap_or_else(|| format!("{value:e}")),
    }
}

/// `1.25e2` to `125.0`, `5e-1` to `0.5`; far exponents stay: `1e30`.
fn place_point(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = mantissa.replace('.', "");
    match exponent {
        -4..0 => format!("0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
        0..16 => {
            let whole = exponent as usize + 1;
            if digits.len() <= whole {
                format!("{digits}{}.0", "0".repeat(whole - digits.len()))
            } else {
                format!("{}.{}", &digits[..whole], &digits[whole..])
            }
        }
        _ => format!("{mantissa}e{exponent}"),
    }
}
