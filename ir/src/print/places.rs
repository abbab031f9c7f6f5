//! Homes, layouts, teams and partial sums as syntax.

use super::exprs::Printer;
use super::syntax::*;
use crate::ast;
use crate::layout::Shared;
use crate::program::*;

/// What stands behind `@`, or behind a declaration of memory. Alignment is a layout's own or stands apart.
pub fn placement(
    p: &Printer,
    home: Home,
    (layout, align): (Option<&Shared>, Option<u32>),
    (shape, elem): (&[u32], Elem),
    team: Option<TeamId>,
    partial: Option<Partial>,
) -> ast::Placement {
    ast::Placement {
        home: home_word(p, home),
        layout: layout.map(|l| layout_text(l, shape, elem)),
        align: align.map(int),
        over: team.map(|t| ident(p.names.teams.get(t))),
        partial: partial.map(|s| (ident(super::ops::combiner(p, s.comb)), ident(s.over.name()))),
        span: super::nowhere(),
    }
}

fn home_word(p: &Printer, home: Home) -> Option<ast::Home> {
    Some(match home {
        Home::Open => return None,
        Home::Shared => ast::Home::Shared,
        Home::Fragment => ast::Home::Fragment,
        Home::Thread => ast::Home::Thread,
        Home::Scratch => ast::Home::Scratch,
        Home::Direct => ast::Home::Direct,
        Home::Ring(r) => ast::Home::Ring(ident(p.names.rings.get(r))),
    })
}

/// A swizzle alone where nothing else differs from plain rows, else the layout in full, its dims named by number.
pub fn layout_text(l: &Shared, shape: &[u32], elem: Elem) -> String {
    let shape: Vec<u64> = shape.iter().map(|&n| n.into()).collect();
    if let Some(xor) = l.xor
        && l.align == xor.cycle()
        && l.layout.same(&crate::layout::contiguous(&shape, elem.bytes()))
    {
        return format!("xor<{}, {}, {}>", xor.bits, xor.base, xor.shift);
    }
    let mut numbered = l.clone();
    for (i, d) in numbered.layout.dims.iter_mut().enumerate() {
        d.name = format!("d{i}");
    }
    numbered.to_string()
}
