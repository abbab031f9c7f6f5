//! What goes wrong while a program runs: one [`Fault`] says what, where in the text, in which block and thread, and
//! with which values. Deep code states only what it knows; the statement's executor adds place, block and thread.

use crate::diag::{Code, Diagnostic};
use crate::span::Span;

/// Results inside the interpreter.
pub type Exec<T> = Result<T, Box<Fault>>;

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub code: Code,
    /// One sentence, lower case, no full stop.
    pub message: String,
    /// The statement or expression at fault; `None` before the executor has filled it in.
    pub span: Option<Span>,
    /// A few words under the caret.
    pub label: String,
    /// The other statements that take part: the earlier access of a race, the issue of a copy.
    pub also: Vec<(Span, String)>,
    /// The tensor, buffer or variable by its name in the text.
    pub tensor: Option<String>,
    /// The element of it.
    pub index: Option<Vec<i64>>,
    pub kernel: Option<String>,
    /// Grid indices by name.
    pub block: Vec<(String, i64)>,
    /// Thread indices, or the indices of a `parallel`, by name.
    pub thread: Vec<(String, i64)>,
    /// Values that explain it, as `name` and text.
    pub values: Vec<(String, String)>,
    pub help: Option<String>,
    pub notes: Vec<String>,
    /// What was printed, and how much was run, before.
    pub before: super::Report,
    /// The lane that did it, until the executor turns it into `thread`.
    pub(super) lane: Option<u32>,
    /// When the other block of a race acted, until the executor turns it into its grid indices.
    pub(super) other_epoch: Option<u32>,
}

pub(super) fn fault(code: Code, message: impl Into<String>) -> Box<Fault> {
    Box::new(Fault {
        code,
        message: message.into(),
        span: None,
        label: String::new(),
        also: Vec::new(),
        tensor: None,
        index: None,
        kernel: None,
        block: Vec::new(),
        thread: Vec::new(),
        values: Vec::new(),
        help: None,
        notes: Vec::new(),
        before: super::Report::default(),
        lane: None,
        other_epoch: None,
    })
}

/// A program that `verify` would not have let through.
pub(super) fn malformed(message: impl Into<String>) -> Box<Fault> {
    fault(crate::codes::NOT_VERIFIED, message).help("check the program before it is run")
}

impl Fault {
    pub(super) fn at(mut self: Box<Self>, span: Span) -> Box<Self> {
        if self.span.is_none() && span != Span::default() {
            self.span = Some(span);
        }
        self
    }

    pub(super) fn label(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.label = text.into();
        self
    }

    pub(super) fn also(mut self: Box<Self>, span: Span, text: impl Into<String>) -> Box<Self> {
        self.also.push((span, text.into()));
        self
    }

    pub(super) fn of(mut self: Box<Self>, tensor: &str, index: Vec<i64>) -> Box<Self> {
        self.tensor = Some(tensor.to_owned());
        self.index = Some(index);
        self
    }

    pub(super) fn named(mut self: Box<Self>, tensor: &str) -> Box<Self> {
        self.tensor = Some(tensor.to_owned());
        self
    }

    pub(super) fn on(mut self: Box<Self>, lane: u32) -> Box<Self> {
        self.lane.get_or_insert(lane);
        self
    }

    pub(super) fn value(mut self: Box<Self>, name: impl Into<String>, text: impl Into<String>) -> Box<Self> {
        self.values.push((name.into(), text.into()));
        self
    }

    pub(super) fn help(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.help = Some(text.into());
        self
    }

    pub(super) fn note(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.notes.push(text.into());
        self
    }

    /// `in kernel `gemm`, block (i = 1, j = 0), thread (tn = 0, tk = 3)`; empty outside kernels.
    pub fn place(&self) -> String {
        let tuple = |list: &[(String, i64)]| {
            let parts: Vec<String> = list.iter().map(|(n, v)| format!("{n} = {v}")).collect();
            parts.join(", ")
        };
        let Some(kernel) = &self.kernel else { return String::new() };
        let mut text = format!("in kernel `{kernel}`");
        if !self.block.is_empty() {
            text += &format!(", block ({})", tuple(&self.block));
        }
        if !self.thread.is_empty() {
            text += &format!(", thread ({})", tuple(&self.thread));
        }
        text
    }

    pub fn to_diagnostic(&self) -> Diagnostic {
        let mut d = Diagnostic::error(self.code, self.span.unwrap_or_default(), self.message.clone())
            .label(self.label.clone());
        for (span, text) in &self.also {
            d = d.also(*span, text.clone());
        }
        if let Some(text) = &self.help {
            d = d.help(text.clone());
        }
        let place = self.place();
        if !place.is_empty() {
            d = d.note(place);
        }
        for (name, value) in &self.values {
            d = d.note(format!("{name} is {value}"));
        }
        for note in &self.notes {
            d = d.note(note.clone());
        }
        d
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)?;
        let place = self.place();
        if place.is_empty() { Ok(()) } else { write!(f, " ({place})") }
    }
}

impl std::error::Error for Fault {}

/// `C[3, 5]`
pub(super) fn element_text(name: &str, index: &[i64]) -> String {
    let parts: Vec<String> = index.iter().map(|i| i.to_string()).collect();
    if parts.is_empty() { format!("`{name}`") } else { format!("`{name}[{}]`", parts.join(", ")) }
}
