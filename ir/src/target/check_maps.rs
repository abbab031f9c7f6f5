//! Lane maps and templates must fit their instructions: the right dims with the right extents, every place of the
//! team's registers filled exactly once up to declared copies.

use super::arch::Arch;
use super::matrix::{MatrixUnit, MoveUnit, Role, Shape, Team, Text, symbols};
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::layout::{Axis, Layout};

pub(super) fn maps(a: &Arch, out: &mut Diagnostics) {
    for unit in &a.matrix {
        team(a, unit, out);
        for role in Role::ALL {
            registers(a, unit, role, out);
            templates(unit, role, out);
        }
    }
    a.moves.iter().for_each(|m| block(a, m, out));
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
fn registers(a: &Arch, unit: &MatrixUnit, role: Role, out: &mut Diagnostics) {
    let operand = unit.operand(role);
    let mut widths: Vec<u32> = unit.types.iter().map(|t| t.of(role).bits()).collect();
    widths.sort_unstable();
    widths.dedup();
    for text in [&operand.regs, &operand.regs_mn].into_iter().flatten() {
        let found = unit
            .shapes
            .iter()
            .try_for_each(|shape| widths.iter().try_for_each(|bits| map(a, unit, role, text, *shape, *bits)));
        if let Err(why) = found {
            fault(text, why, out);
        }
    }
}

fn map(a: &Arch, unit: &MatrixUnit, role: Role, text: &Text, shape: Shape, bits: u32) -> Result<(), String> {
    let place =
        format!("`{}` of `{}` at {}x{}x{}, {bits} bits", role.name(), unit.name, shape.m, shape.n, shape.k);
    let tile = text.parsed.bind(&symbols(shape, bits)).map_err(|e| format!("{place}: {}", e.message))?;
    extents(&tile.layout, role, shape).map_err(|why| format!("{place}: {why}"))?;
    let threads = a.team_threads(unit.team).map_or(1, u64::from);
    places(&tile.layout, threads).map_err(|why| format!("{place}: {why}"))?;
    let lanes = tile.layout.size(Axis::Simd) * u64::from(bits.max(32));
    match &a.facts.simd.bits {
        Some(k) if lanes > u64::from(k.value) && bits >= 32 => {
            Err(format!("{place}: the lanes hold {lanes} bits, a vector has {}", k.value))
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

/// Each register of each thread (or lane) holds one element.
fn places(layout: &Layout, threads: u64) -> Result<(), String> {
    let sizes = layout.bijective(&[Axis::Thr, Axis::Reg, Axis::Simd]).map_err(|u| {
        format!(
            "the digits on {} leave or share places: {} where {} would follow",
            u.axis, u.stride, u.wanted
        )
    })?;
    if sizes[0] != threads {
        return Err(format!("the digits name {} threads, the team has {threads}", sizes[0]));
    }
    let foreign = [Axis::Mem, Axis::Group, Axis::Cta].into_iter().find(|a| layout.size(*a) > 1);
    foreign.map_or(Ok(()), |a| Err(format!("a lane map has no digits on {a}")))
}

/// Templates of shared tiles must name the operand's dims, and lie in memory.
fn templates(unit: &MatrixUnit, role: Role, out: &mut Diagnostics) {
    let operand = unit.operand(role);
    for text in operand.shared_k.iter().chain(&operand.shared_mn) {
        let named = |d: &&str| text.parsed.dims.iter().any(|o| o.name == **d);
        if text.parsed.dims.len() != 2 || !role.dims().iter().all(|d| named(&d)) {
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
        if let (Some(x), Some(align)) = (text.parsed.xor, text.parsed.align) {
            if align < x.cycle() {
                let message =
                    format!("{x} repeats every {} bytes, more than the alignment {align}", x.cycle());
                fault(text, message, out);
            }
        }
    }
}

fn block(a: &Arch, m: &MoveUnit, out: &mut Diagnostics) {
    let Ok(tile) = m.map.parsed.bind(&symbols(Shape { m: 0, n: 0, k: 0 }, m.bits)) else {
        return fault(&m.map, format!("the map of `{}` must hold numbers only", m.name), out);
    };
    let row = u64::from(m.row_bytes * 8 / m.bits.max(1));
    let extent = |name: &str| tile.layout.dim(name).map(|d| d.extent());
    if tile.layout.dims.len() != 2 || extent("r") != Some(8) || extent("c") != Some(row) {
        return fault(
            &m.map,
            format!("the map of `{}` must have `r` of 8 rows and `c` of {row} columns", m.name),
            out,
        );
    }
    let threads = a.team_threads(Team::Warp).map_or(1, u64::from);
    if let Err(why) = places(&tile.layout, threads) {
        fault(&m.map, format!("the map of `{}`: {why}", m.name), out);
    }
}
