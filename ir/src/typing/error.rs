//! What a broken type rule says, before it is tied to a place in the text.

use crate::codes;
use crate::diag::{Code, Diagnostic};
use crate::program::{Body, ExprId};
use crate::span::Span;

/// Points at operands by handle; [`TypeError::diagnostic`] is the one place that turns them into spans.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeError(Box<Inner>);

#[derive(Clone, Debug, PartialEq)]
struct Inner {
    code: Code,
    message: String,
    /// The operand at fault; `None` is the whole expression or statement.
    at: Option<ExprId>,
    label: String,
    also: Vec<(ExprId, String)>,
    help: Vec<String>,
    notes: Vec<String>,
}

impl TypeError {
    pub fn new(code: Code, message: impl Into<String>) -> TypeError {
        TypeError(Box::new(Inner {
            code,
            message: message.into(),
            at: None,
            label: String::new(),
            also: Vec::new(),
            help: Vec::new(),
            notes: Vec::new(),
        }))
    }

    pub(crate) fn foreign(what: &str) -> TypeError {
        TypeError::new(codes::FOREIGN_HANDLE, format!("this {what} was made for another kernel or program"))
            .help(format!("use only what this kernel's own builder returned for its {what}s"))
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Puts the caret under an operand.
    pub fn at(mut self, e: ExprId, label: impl Into<String>) -> Self {
        self.0.at = Some(e);
        self.0.label = label.into();
        self
    }

    /// Words under the caret of the whole expression or statement.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.0.label = label.into();
        self
    }

    pub fn also(mut self, e: ExprId, label: impl Into<String>) -> Self {
        self.0.also.push((e, label.into()));
        self
    }

    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.0.help.push(text.into());
        self
    }

    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.0.notes.push(text.into());
        self
    }

    /// Ties the error to the text; `whole` is the expression's or statement's own span.
    pub fn diagnostic(self, body: &Body, whole: Span) -> Diagnostic {
        let inner = *self.0;
        let place = |e: ExprId| match body.exprs.span(e) {
            span if span == Span::default() => whole,
            span => span,
        };
        let value = inner.at.map_or(whole, place);
        // what a function gave is wrong for its caller, not inside the function
        let given = value.at.0 > whole.at.0;
        let primary = if given { whole } else { value };
        let mut d = Diagnostic::error(inner.code, primary, inner.message).label(inner.label);
        if given {
            d = d.also(value, "the value is made here");
        }
        for (e, text) in inner.also {
            d = d.also(place(e), text);
        }
        d.help = inner.help;
        d.notes = inner.notes;
        d
    }
}
