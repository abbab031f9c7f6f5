//! Programs as text: typed IR → syntax tree → the formatter's text.
//!
//! Printing is canonical. Names are made unique within what is in sight (`k`, `k_2`, …) and never hide a function
//! or type of the language; one op stands in one statement; constants carry their type where their place does not
//! give it. The text elaborates to an equal program, and printing that gives the same text again, at every stage.
//! What the text does not hold: the architecture, spans, and names of parameters that the
//! program was specialised for.

mod exprs;
mod host;
mod items;
mod kernel;
mod names;
mod ops;
mod places;
mod regions;
mod stmts;
mod syntax;

use crate::ast;
use crate::program::{Program, Stage};
use crate::span::Span;

/// The syntax tree of a program. It has no comments and no spans.
pub fn to_ast(program: &Program) -> ast::File {
    let stage = (program.stage != Stage::Tile).then(|| syntax::ident(program.stage.name()));
    ast::File { stage, items: items::items(program), comments: Vec::new(), lines: Vec::new() }
}

/// The canonical text of a program.
pub fn print(program: &Program) -> String {
    crate::text::format(&to_ast(program))
}

fn nowhere() -> Span {
    Span::default()
}
