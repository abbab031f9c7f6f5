//! Where values and memory live: homes, layouts, teams and partial sums as they stand in the text.

use super::Elab;
use super::scope::Value;
use crate::ast::{self, Ident, Placement};
use crate::codes;
use crate::diag::Diagnostic;
use crate::layout;
use crate::program::*;
use crate::span::Span;

impl<'a> Elab<'a> {
    /// `let t @ shared align 128 = …`: the plan fields of the local that the name stands for.
    pub(crate) fn place_value(&mut self, id: &'a Ident, place: &'a Placement) {
        let local = match self.f.scope.get(&id.name) {
            Some(Value::Local(l)) => *l,
            Some(Value::Poison) => return,
            _ => return self.no_place(place, "only a scalar or a tile lives in one place"),
        };
        let home = match &place.home {
            Some(h) => match self.home(h) {
                Some(home) => home,
                None => return,
            },
            None => Home::Open,
        };
        if let Some(align) = &place.align {
            let d = Diagnostic::error(
                codes::MISPLACED,
                self.sp(align.span),
                "a value has no alignment of its own",
            );
            self.report(d.help("alignment is part of a layout in full: `layout \"m: 8@mem*4 ; align 128\"`"));
        }
        let ty = self.f.body.locals[local].ty.clone();
        let layout = match (&place.layout, ty.elem()) {
            (Some(text), Some(elem)) => {
                self.placement(text, elem, ty.shape(), in_memory(home, text), place.span)
            }
            _ => None,
        };
        let team = place.over.as_ref().and_then(|t| self.team_named(t));
        let partial = self.partial(place);
        let l = &mut self.f.body.locals[local];
        (l.home, l.layout, l.team, l.partial) = (home, layout, team, partial);
    }

    pub(crate) fn place_buffer(&mut self, b: &mut Buffer, place: &'a Placement, span: Span) {
        match &place.home {
            Some(h) if self.home(h) != Some(b.home) => {
                self.no_place(place, "an array of each thread lives with its thread");
            }
            _ => {}
        }
        b.align = place.align.as_ref().and_then(|e| self.alignment(e));
        let memory = b.home != Home::Fragment;
        b.layout = place
            .layout
            .as_deref()
            .and_then(|text| self.placement(text, Elem::D(b.elem), &b.shape, memory, span));
        b.team = place.over.as_ref().and_then(|t| self.team_named(t));
        b.partial = self.partial(place);
    }

    pub(crate) fn home(&mut self, home: &'a ast::Home) -> Option<Home> {
        Some(match home {
            ast::Home::Shared => Home::Shared,
            ast::Home::Fragment => Home::Fragment,
            ast::Home::Thread => Home::Thread,
            ast::Home::Scratch => Home::Scratch,
            ast::Home::Direct => Home::Direct,
            ast::Home::Ring(name) => Home::Ring(self.ring_named(name)?),
        })
    }

    /// `partial(add, cluster)`
    fn partial(&mut self, place: &'a Placement) -> Option<Partial> {
        let (comb, over) = place.partial.as_ref()?;
        let axis = Spread::from_name(&over.name);
        if axis.is_none() {
            let text = format!("a value is not split over `{}`", over.name);
            let d = Diagnostic::error(codes::PARTIAL, self.sp(over.span), text);
            let axes: Vec<String> = Spread::ALL.iter().map(|a| format!("`{}`", a.name())).collect();
            self.report(d.help(format!("write {}", axes.join(", "))));
        }
        let comb = self.combiner_named(comb)?;
        Some(Partial { comb, over: axis? })
    }

    pub(crate) fn no_place(&mut self, place: &'a Placement, why: &str) {
        let d = Diagnostic::error(codes::MISPLACED, self.sp(place.span), why);
        self.report(d.help("leave what follows `@` out"));
    }

    /// The swizzle or layout written beside a declaration or a value.
    pub(crate) fn placement(
        &mut self,
        text: &str,
        elem: Elem,
        shape: &[u32],
        memory: bool,
        span: Span,
    ) -> Option<layout::Shared> {
        let shape: Vec<u64> = shape.iter().map(|e| u64::from(*e)).collect();
        let found = if memory {
            layout::tile_text(text, &shape, elem.bytes())
        } else {
            layout::fragment_text(text, &shape).map(|l| layout::Shared::plain(l, 1))
        };
        match found {
            Ok(tile) => Some(tile),
            Err(why) => {
                let message = format!("the layout `{text}` cannot be used: {}", why.message);
                let d = Diagnostic::error(codes::LAYOUT_TEXT, self.sp(span), message);
                self.report(why.help.into_iter().fold(d, Diagnostic::help));
                None
            }
        }
    }
}

/// Values in registers have layouts on threads and registers, all others on bytes; one without a home says which.
fn in_memory(home: Home, text: &str) -> bool {
    match home {
        Home::Fragment => false,
        Home::Open => !text.contains(':') || text.contains("@mem"),
        _ => true,
    }
}
