//! Lane maps and templates must fit their instructions: the right dims with the right extents, every place of the
//! team's registers filled exactly once up to declared copies.

use super::arch::Arch;
use super::matrix::{MatrixUnit, MoveUnit, Role, Shape, Team, Text, symbols};
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::layout::{Axis, Layout};

/// What is wrong with a map.
enum Fault {
    /// it is for a team of that many threads
    Team(u64),
    Text(String),
}

pub(super) fn maps(a: &Arch, out: &mut Diagnostics) {
    let mut misfits: Vec<&str> = Vec::new();
    for unit in &a.matrix {
        team(a, unit, out);
        let own = *unit.known.owner == *a.name;
        for role in Role::ALL {
            match registers(a, unit, role) {
                Ok(()) => {}
                Err((_, Fault::Team(_))) if !own => misfits.push(&unit.name),
                Err((text, Fault::Team(n))) => fault(text, wrong_team(a, unit, role, n), out),
                Err((text, Fault::Text(why))) => fault(text, why, out),
            }
            templates(unit, role, out);
        }
    }
    for m in &a.moves {
        match block(a, m) {
            Ok(()) => {}
            Err(Fault::Team(_)) if *m.known.owner != *a.name => misfits.push(&m.name),
            Err(Fault::Team(n)) => {
                fault(&m.map, format!("the map of `{}` is for {n} threads, no warp", m.name), out)
            }
            Err(Fault::Text(why)) => fault(&m.map, why, out),
        }
    }
    inherited(a, &misfits, out);
}

fn wrong_team(a: &Arch, unit: &MatrixUnit, role: Role, n: u64) -> String {
    let team = a.team_threads(unit.team).unwrap_or(1);
    format!("`{}` of `{}`: the digits name {n} threads, the team has {team}", role.name(), unit.name)
}

/// Inherited rows whose teams no longer have the size that their maps are for: one complaint for all.
fn inherited(a: &Arch, misfits: &[&str], out: &mut Diagnostics) {
    let Some(first) = misfits.first() else { return };
    let size = &a.facts.threads.warp_size;
    let span = size.as_ref().map_or(a.span, |k| k.span);
    let message =
        format!("`{first}` and other rows that `{}` inherits are for teams of another size", a.name);
    let mut names: Vec<String> = misfits.iter().map(|n| format!("\"{n}\"")).collect();
    names.dedup();
    out.push(
        Diagnostic::error(codes::TARGET_MAP, span, message)
            .help(format!("leave the rows out with `without = [{}]`, or keep the size", names.join(", "))),
    );
}

fn fault(text: &Text, message: String, out: &mut Diagnostics) {
    out.push(Diagnostic::error(codes::TARGET_MAP, text.span, message));
}

fn team(a: &Arch, unit: &MatrixUnit, out: &mut Diagnostics) {
    if a.team_threads(unit.team).is_none() {
        let key = if unit.team == Team::Group { "threads.group_size" } else { "threads.warp_size" };
        let message = format!(
            "`{}` is executed by a {}, but `{}` does not state `{key}`",
            unit.name,
            unit.team.name(),
            a.name
        );
        out.push(Diagnostic::error(codes::TARGET_MISSING, unit.span, message));
    }
    if unit.shapes.is_empty() || unit.types.is_empty() {
        let message = format!("`{}` offers no shape or no types", unit.name);
        out.push(Diagnostic::error(codes::TARGET_VALUE, unit.span, message));
    }
}

/// The lane maps of one operand, under every shape and every width that its types have.
fn registers<'u>(a: &Arch, unit: &'u MatrixUnit, role: Role) -> Result<(), (&'u Text, Fault)> {
    let operand = unit.operand(role);
    let mut widths: Vec<u32> = unit.types.iter().map(|t| t.of(role).bits()).collect();
    widths.sort_unstable();
    widths.dedup();
    for text in [&operand.regs, &operand.regs_mn].into_iter().flatten() {
        for shape in &unit.shapes {
            for bits in &widths {
                map(a, unit, role, text, *shape, *bits).map_err(|fault| (text, fault))?;
            }
        }
    }
    Ok(())
}

fn map(a: &Arch, unit: &MatrixUnit, role: Role, text: &Text, shape: Shape, bits: u32) -> Result<(), Fault> {
    let Shape { m, n, k } = shape;
    let here = |why: String| {
        Fault::Text(format!("`{}` of `{}` at {m}x{n}x{k}, {bits} bits: {why}", role.name(), unit.name))
    };
    let tile = text.parsed.bind(&symbols(shape, bits)).map_err(|e| here(e.message))?;
    extents(&tile.layout, role, shape).map_err(here)?;
    let threads = places(&tile.layout).map_err(here)?;
    if threads != a.team_threads(unit.team).map_or(1, u64::from) {
        return Err(Fault::Team(threads));
    }
    let lanes = tile.layout.size(Axis::Simd) * u64::from(bits.max(32));
    match &a.facts.simd.bits {
        Some(k) if lanes > u64::from(k.value) && bits >= 32 => {
            Err(here(format!("the lanes hold {lanes} bits, a vector has {}", k.value)))
        }
        _ => Ok(()),
    }
}

fn extents(layout: &Layout, role: Role, shape: Shape) -> Result<(), String> {
    let mut names: Vec<&str> = layout.dims.iter().map(|d| d.name.as_str()).collect();
    names.sort_unstable();
    let mut wanted = role.dims();
    wanted.sort_unstable();
    if names != wanted {
        return Err(format!("the dims must be `{}` and `{}`", role.dims()[0], role.dims()[1]));
    }
    for dim in &layout.dims {
        let wanted = shape.of(&dim.name).map_or(0, u64::from);
        if dim.extent() != wanted {
            return Err(format!("`{}` has {} indices, the instruction {wanted}", dim.name, dim.extent()));
        }
    }
    Ok(())
}

/// Each register of each thread (or lane) holds one element; the number of threads.
fn places(layout: &Layout) -> Result<u64, String> {
    let sizes = layout.bijective(&[Axis::Thr, Axis::Reg, Axis::Simd]).map_err(|u| {
        format!(
            "the digits on {} leave or share places: {} where {} would follow",
            u.axis, u.stride, u.wanted
        )
    })?;
    let foreign = [Axis::Mem, Axis::Group, Axis::Cta].into_iter().find(|a| layout.size(*a) > 1);
    foreign.map_or(Ok(sizes[0]), |a| Err(format!("a lane map has no digits on {a}")))
}

/// Templates of shared tiles must name the operand's dims, and lie in memory.
fn templates(unit: &MatrixUnit, role: Role, out: &mut Diagnostics) {
    let operand = unit.operand(role);
    for text in operand.shared_k.iter().chain(&operand.shared_mn) {
        let named = |d: &str| text.parsed.dims.iter().any(|o| o.name == d);
        if text.parsed.dims.len() != 2 || !role.dims().into_iter().all(named) {
            let [x, y] = role.dims();
            fault(
                text,
                format!("a template for `{}` of `{}` has the dims `{x}` and `{y}`", role.name(), unit.name),
                out,
            );
        }
        let digits = text.parsed.dims.iter().flat_map(|d| &d.digits);
        if digits.into_iter().any(|d| d.axis != Axis::Mem) {
            fault(text, format!("a template for `{}` of `{}` lies on `mem`", role.name(), unit.name), out);
        }
        let align = text.parsed.align.unwrap_or(1);
        if let Some(x) = text.parsed.xor.filter(|x| align < x.cycle()) {
            let message = format!("{x} repeats every {} bytes, more than the alignment {align}", x.cycle());
            fault(text, message, out);
        }
    }
}

fn block(a: &Arch, m: &MoveUnit) -> Result<(), Fault> {
    let Ok(tile) = m.map.parsed.bind(&symbols(Shape { m: 0, n: 0, k: 0 }, m.bits)) else {
        return Err(Fault::Text(format!("the map of `{}` must hold numbers only", m.name)));
    };
    let row = u64::from(m.row_bytes) * 8 / u64::from(m.bits.max(1));
    let extent = |name: &str| tile.layout.dim(name).map(|d| d.extent());
    if tile.layout.dims.len() != 2 || extent("r") != Some(8) || extent("c") != Some(row) {
        let message = format!("the map of `{}` must have `r` of 8 rows and `c` of {row} columns", m.name);
        return Err(Fault::Text(message));
    }
    let threads =
        places(&tile.layout).map_err(|why| Fault::Text(format!("the map of `{}`: {why}", m.name)))?;
    if threads == a.team_threads(Team::Warp).map_or(1, u64::from) {
        Ok(())
    } else {
        Err(Fault::Team(threads))
    }
}
