//! Text: the lexer, the parser and the formatter of `.tile` files. Syntax only; meaning is [`crate::elab`]'s.
//!
//! The grammar is written down in `docs/language.md`; which words are reserved in [`words`], how tightly operators
//! bind in [`precedence`]. Line breaks matter: a statement ends with its line, unless a round or square bracket is
//! open or the line ends in a binary operator, a comma, `=`, `->` or `..`.

mod fmt;
mod lexer;
mod parser;
pub mod precedence;
mod structure;
mod token;
pub mod words;

pub use fmt::{format, format_expr};
pub use parser::parse;
pub use structure::structure;
pub use token::is_name;
