//! What `pantile explain --layout TEXT` says about a layout.

use super::{
    Axis, Banks, Digit, Dim, Layout, Shared, Symbols, VectorLimits, bank_conflicts, draw, parse_layout,
    relate, vector_width,
};
use crate::codes;
use crate::diag::Diagnostic;
use crate::span::{FileId, Span};
use std::fmt::Write;

/// A page about a layout: canonical form, sizes, copies, what accesses to it cost, and a picture. Spans of the
/// diagnostic count bytes of `text`.
pub fn explain(text: &str) -> Result<String, Diagnostic> {
    explain_in(text, FileId::default())
}

/// The same, with spans in a file that holds exactly `text`.
pub fn explain_in(text: &str, file: FileId) -> Result<String, Diagnostic> {
    let tile = parse_layout(text, &Symbols::default()).map_err(|e| {
        let span = Span::new(file, e.at.start, e.at.end);
        let d = Diagnostic::error(codes::LAYOUT_TEXT, span, e.message);
        match e.help {
            Some(help) => d.help(help),
            None => d,
        }
    })?;
    let mut out = String::new();
    let canon = Shared { layout: tile.layout.canon(), ..tile.clone() };
    let _ = writeln!(out, "canonical  {canon}");
    sizes(&tile, &mut out);
    match tile.layout.size(Axis::Mem) {
        1 => fragment(&tile.layout, &mut out),
        _ => memory(&tile, &mut out),
    }
    let _ = writeln!(out, "\n{}", draw(&tile));
    Ok(out)
}

fn sizes(tile: &Shared, out: &mut String) {
    let l = &tile.layout;
    let shape: Vec<String> = l.dims.iter().map(|d| format!("{} {}", d.name, d.extent())).collect();
    let _ = writeln!(out, "shape      {}", shape.join(" x "));
    let axes = Axis::ALL.into_iter().filter(|a| l.size(*a) > 1);
    let axes: Vec<String> = axes.map(|a| format!("{a} {}", l.size(a))).collect();
    let _ = writeln!(out, "axes       {}", if axes.is_empty() { "none".into() } else { axes.join(", ") });
    if l.copies() > 1 {
        let _ = writeln!(out, "copies     {} of each element", l.copies());
    }
    for d in l.dims.iter().filter(|d| d.guard.is_some()) {
        let _ =
            writeln!(out, "guard      {} of {} indices of `{}` are valid", d.extent(), d.covered(), d.name);
    }
    if let Some(x) = tile.xor {
        let short =
            if tile.align.is_multiple_of(x.cycle()) { "" } else { ", more than the tile's alignment" };
        let _ = writeln!(out, "swizzle    {x} repeats every {} bytes{short}", x.cycle());
    }
}

/// The banks of all GPUs that are shipped.
const BANKS: Banks = Banks { count: 32, bytes: 4, phase: 128, lanes: 32 };

/// Accesses of a fragment to plain rows in memory.
fn fragment(l: &Layout, out: &mut String) {
    let mut tiled = |axis: Axis| {
        if let Err(u) = l.invert(axis, 1) {
            let _ = writeln!(
                out,
                "note       the digits on {axis} leave or share places: {} where {} would follow",
                u.stride, u.wanted
            );
        }
    };
    tiled(Axis::Thr);
    tiled(Axis::Reg);
    for bytes in [1, 2, 4] {
        let limits = VectorLimits { max_bytes: 16, align: 16, xor_base: None };
        let (rows, columns) = (plain(l, bytes, false), plain(l, bytes, true));
        let width = |memory: &Layout| relate(l, memory).map(|r| vector_width(&r, bytes, &limits)).ok();
        if let (Some(r), Some(c)) = (width(&rows), width(&columns)) {
            let _ = writeln!(
                out,
                "access     {}-bit elements: {r} at once along the last dim, {c} along the first",
                bytes * 8
            );
        }
    }
}

/// Contiguous memory with the last dim fastest, or the first.
fn plain(l: &Layout, element_bytes: u64, first_fast: bool) -> Layout {
    let mut stride = element_bytes;
    let mut dims: Vec<Dim> = Vec::new();
    let mut order: Vec<&Dim> = l.dims.iter().collect();
    if !first_fast {
        order.reverse();
    }
    for d in order {
        dims.push(Dim::new(&d.name, vec![Digit::new(d.extent(), Axis::Mem, stride)]));
        stride *= d.extent();
    }
    Layout::new(dims)
}

/// Accesses of a warp along the dims of a tile in memory.
fn memory(tile: &Shared, out: &mut String) {
    let strides = tile.layout.digits().filter(|(_, d)| d.axis == Axis::Mem && d.extent > 1 && d.stride > 0);
    let Some(element) = strides.map(|(_, d)| d.stride).min() else { return };
    let _ = writeln!(out, "bytes      {} with elements of {element} bytes", tile.bytes(element));
    for d in &tile.layout.dims {
        let lanes = d.extent().min(BANKS.lanes);
        let Some(slice) = tile.layout.slice(&d.name, 0, lanes) else { continue };
        let mut frag: Vec<Dim> = tile
            .layout
            .dims
            .iter()
            .map(|o| Dim::new(&o.name, vec![Digit::new(o.extent(), Axis::Reg, 1)]))
            .collect();
        if let Some(own) = frag.iter_mut().find(|f| f.name == d.name) {
            own.digits = vec![Digit::new(lanes, Axis::Thr, 1)];
        }
        let part = Shared { layout: slice, ..tile.clone() };
        if let Ok(c) = bank_conflicts(&Layout::new(frag), &part, element, 1, &BANKS) {
            let _ = writeln!(
                out,
                "banks      {lanes} threads along `{}`, one element each: {}-way",
                d.name, c.ways
            );
        }
    }
}
