//! Templates: a matrix unit states how an operand may lie in memory as digits with unknowns; matching a tile against
//! it yields the constants of the instruction's descriptor, or the digit that does not fit.

use super::text::{Expr, OpenDim, Parsed, Symbols};
use super::{Digit, Shared};
use std::fmt;

/// Values of a template's unknowns. An unknown that nothing depends on (a stride of a digit of extent 1) has none.
#[derive(Clone, Debug, Default)]
pub struct Solution {
    pub values: Symbols,
}

/// Why a tile does not match a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// the dim at fault, where it is one dim
    pub dim: Option<String>,
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.dim {
            Some(dim) => write!(f, "along `{dim}`, {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

fn refuse(dim: Option<&str>, reason: impl Into<String>) -> Refusal {
    Refusal { dim: dim.map(str::to_string), reason: reason.into() }
}

/// Matches a tile against a template. `known` gives values to symbols (`bits`, say); each dim's extent is known under
/// the dim's name in capitals. `allow` lists the values that single unknowns may take.
pub fn unify(
    template: &Parsed,
    tile: &Shared,
    known: &Symbols,
    allow: &[(String, Vec<u32>)],
) -> Result<Solution, Refusal> {
    let mut values = known.clone();
    for dim in &tile.layout.dims {
        values.set(&dim.name.to_uppercase(), dim.extent());
    }
    address(template, tile)?;
    if let Some(extra) = tile.layout.dims.iter().find(|d| template.dims.iter().all(|t| t.name != d.name)) {
        return Err(refuse(Some(&extra.name), "the instruction has no such dim"));
    }
    for open in &template.dims {
        dim(open, tile, &mut values)?;
    }
    for (name, list) in allow {
        if let Some(v) = values.get(name).filter(|v| list.iter().all(|a| u64::from(*a) != *v)) {
            return Err(refuse(None, format!("{name} would be {v}; it must be one of {list:?}")));
        }
    }
    Ok(Solution { values })
}

fn address(template: &Parsed, tile: &Shared) -> Result<(), Refusal> {
    if template.xor != tile.xor {
        let word = |x: &Option<super::Xor>| x.map_or("no swizzle".into(), |x| x.to_string());
        let reason =
            format!("the tile has {}, the instruction wants {}", word(&tile.xor), word(&template.xor));
        return Err(refuse(None, reason));
    }
    match template.align {
        Some(a) if !tile.align.is_multiple_of(a) => Err(refuse(
            None,
            format!("the tile is aligned to {} bytes, the instruction wants {a}", tile.align),
        )),
        _ => Ok(()),
    }
}

/// Takes the tile's digits from the innermost outwards, as the template asks for them.
fn dim(open: &OpenDim, tile: &Shared, values: &mut Symbols) -> Result<(), Refusal> {
    let fail = |reason: String| refuse(Some(&open.name), reason);
    let Some(own) = tile.layout.dim(&open.name) else { return Err(fail("the tile has no such dim".into())) };
    if own.guard.is_some() {
        return Err(fail("the tile is padded".into()));
    }
    let mut rest = own.canon().digits;
    for want in open.digits.iter().rev() {
        let extent = match (&want.extent, want.extent.value(values)) {
            (_, Ok(e)) => e,
            (Expr::Symbol(name), Err(_)) => {
                let whole = rest.last().map_or(1, |d| d.extent);
                values.set(name, whole);
                whole
            }
            (_, Err(why)) => return Err(fail(why)),
        };
        let Some(found) = take(&mut rest, extent).map_err(fail)? else { continue };
        if found.axis != want.axis {
            return Err(fail(format!("the tile's digit {found} is not on `{}`", want.axis)));
        }
        match (&want.stride, want.stride.value(values)) {
            (_, Ok(s)) if s == found.stride => {}
            (Expr::Symbol(name), Err(_)) => values.set(name, found.stride),
            (_, Ok(s)) => {
                let reason = format!("{extent} steps are {} apart, the instruction wants {s}", found.stride);
                return Err(fail(reason));
            }
            (_, Err(why)) => return Err(fail(why)),
        }
    }
    match rest.last() {
        None => Ok(()),
        Some(d) => Err(fail(format!("the tile's digit {d} has no counterpart"))),
    }
}

/// The innermost `extent` indices as one digit, which leave the rest behind; `None` for a single index.
fn take(rest: &mut Vec<Digit>, extent: u64) -> Result<Option<Digit>, String> {
    if extent == 1 {
        return Ok(None);
    }
    let Some(last) = rest.pop() else { return Err(format!("the tile ends before {extent} indices")) };
    if !last.extent.is_multiple_of(extent) {
        return Err(format!("the tile is cut every {} indices, the instruction every {extent}", last.extent));
    }
    if last.extent > extent {
        rest.push(Digit { extent: last.extent / extent, stride: last.stride * extent, ..last });
    }
    Ok(Some(Digit { extent, ..last }))
}
