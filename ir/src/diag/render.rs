//! Diagnostics as text: for people (plain, coloured, one line) and for programs (one JSON object a line).
//!
//! A place inside an inlined function shows the calls that lead to it as further labels.

use super::{Diagnostic, Diagnostics, Label, Severity};
use crate::span::{FileId, Sources, Span};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::Serialize;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Snippets of the source with carets.
    Plain,
    /// The same with colours, for a terminal.
    Coloured,
    /// `file:line:col: error[P0123]: message`
    Short,
    /// One JSON object a line.
    Json,
}

/// One diagnostic, without a line break at its end.
pub fn render(d: &Diagnostic, sources: &Sources, style: Style) -> String {
    if matches!(style, Style::Plain | Style::Coloured) && unshowable(d, sources) {
        return without_source(d, sources);
    }
    match style {
        Style::Plain => snippets(d, sources, &Renderer::plain().decor_style(DecorStyle::Ascii)),
        Style::Coloured => snippets(d, sources, &Renderer::styled()),
        Style::Short => short(d, sources),
        Style::Json => json(d, sources),
    }
}

/// All diagnostics of a run, each ended by a line break; snippets are set apart by an empty line.
pub fn render_all(diags: &Diagnostics, sources: &Sources, style: Style) -> String {
    let separator = if matches!(style, Style::Plain | Style::Coloured) { "\n\n" } else { "\n" };
    let texts: Vec<String> = diags.iter().map(|d| render(d, sources, style)).collect();
    if texts.is_empty() { String::new() } else { texts.join(separator) + "\n" }
}

/// Lines beyond this length are named, not shown: nobody reads them, and drawing one takes time in proportion to its
/// length for every part of the picture.
const LONGEST_LINE: usize = 2000;

fn unshowable(d: &Diagnostic, sources: &Sources) -> bool {
    let long = |span: Span| {
        let text = sources.file(span.file).text.as_bytes();
        let at = (span.start as usize).min(text.len());
        let end = (span.end as usize).clamp(at, text.len());
        let before = text[..at].iter().rev().take_while(|&&b| b != b'\n').count();
        let after = text[end..].iter().take_while(|&&b| b != b'\n').count();
        before > LONGEST_LINE
            || after > LONGEST_LINE
            || text[at..end].split(|&b| b == b'\n').any(|l| l.len() > LONGEST_LINE)
    };
    long(d.primary.span) || labels(d, sources).iter().any(|l| long(l.span))
}

/// The one-line form and the help below it.
fn without_source(d: &Diagnostic, sources: &Sources) -> String {
    let mut text = short(d, sources);
    let below = d.notes.iter().map(|n| ("note", n)).chain(d.help.iter().map(|h| ("help", h)));
    for (what, words) in below {
        text += &format!("\n  = {what}: {words}");
    }
    text
}

fn severity_name(s: Severity) -> &'static str {
    match s {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// Is there a text in which `span` can be shown?
fn has_place(span: Span) -> bool {
    span.file != FileId::default()
}

/// The secondary labels, and for the primary place the calls that lead to it, innermost first.
fn labels(d: &Diagnostic, sources: &Sources) -> Vec<Label> {
    let mut all = d.secondary.clone();
    let mut at = d.primary.span;
    // calls point outwards only; the bound guards against a damaged chain
    for _ in 0..64 {
        let Some(call) = sources.call(at) else { break };
        all.push(Label { span: call.span, text: format!("in this call of `{}`", call.callee) });
        at = call.span;
    }
    all.retain(|l| has_place(l.span));
    all
}

fn short(d: &Diagnostic, sources: &Sources) -> String {
    let head = format!("{}[{}]: {}", severity_name(d.severity), d.code, d.message.replace('\n', " "));
    let span = d.primary.span;
    if !has_place(span) {
        return head;
    }
    let (line, col) = sources.line_col(span);
    format!("{}:{line}:{col}: {head}", sources.file(span.file).name)
}

// ---- snippets ----

fn snippets(d: &Diagnostic, sources: &Sources, renderer: &Renderer) -> String {
    let level = match d.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let code = d.code.to_string();
    let others = labels(d, sources);
    let mut group = Group::with_title(level.primary_title(d.message.as_str()).id(code.as_str()));
    for file in files_shown(d, &others) {
        let source = sources.file(file);
        if source.text.is_empty() {
            group = group.element(Origin::path(source.name.as_str()));
            continue;
        }
        let mut snippet = Snippet::source(source.text.as_str()).path(source.name.as_str());
        if d.primary.span.file == file {
            let range = visible(&source.text, d.primary.span);
            snippet = snippet.annotation(AnnotationKind::Primary.span(range).label(words(&d.primary)));
        }
        for label in others.iter().filter(|l| l.span.file == file) {
            let range = visible(&source.text, label.span);
            snippet = snippet.annotation(AnnotationKind::Context.span(range).label(words(label)));
        }
        group = group.element(snippet);
    }
    group = group.elements(d.notes.iter().map(|n| Level::NOTE.message(n.as_str())));
    group = group.elements(d.help.iter().map(|h| Level::HELP.message(h.as_str())));
    renderer.render(&[group])
}

fn words(label: &Label) -> Option<&str> {
    Some(label.text.as_str()).filter(|t| !t.is_empty())
}

/// The files to show, that of the primary place first.
fn files_shown(d: &Diagnostic, others: &[Label]) -> Vec<FileId> {
    let mut files = Vec::new();
    let places = std::iter::once(&d.primary).chain(others).map(|l| l.span);
    for span in places.filter(|s| has_place(*s)) {
        if !files.contains(&span.file) {
            files.push(span.file);
        }
    }
    files
}

/// The bytes of `span`, inside `text` and on character borders.
fn visible(text: &str, span: Span) -> Range<usize> {
    let mut start = (span.start as usize).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = (span.end as usize).clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

// ---- JSON ----

#[derive(Serialize)]
struct Place<'a> {
    file: &'a str,
    line: usize,
    col: usize,
    end: End,
}

#[derive(Serialize)]
struct End {
    line: usize,
    col: usize,
}

#[derive(Serialize)]
struct JsonLabel<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    text: &'a str,
}

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    code: String,
    severity: &'static str,
    message: &'a str,
    #[serde(flatten)]
    place: Option<Place<'a>>,
    label: &'a str,
    labels: Vec<JsonLabel<'a>>,
    help: &'a [String],
    notes: &'a [String],
}

fn place(span: Span, sources: &Sources) -> Place<'_> {
    let (line, col) = sources.line_col(span);
    let last = sources.line_col(Span { start: span.end, ..span });
    Place { file: &sources.file(span.file).name, line, col, end: End { line: last.0, col: last.1 } }
}

fn json(d: &Diagnostic, sources: &Sources) -> String {
    let others = labels(d, sources);
    let object = JsonDiagnostic {
        code: d.code.to_string(),
        severity: severity_name(d.severity),
        message: &d.message,
        place: has_place(d.primary.span).then(|| place(d.primary.span, sources)),
        label: &d.primary.text,
        labels: others.iter().map(|l| JsonLabel { place: place(l.span, sources), text: &l.text }).collect(),
        help: &d.help,
        notes: &d.notes,
    };
    // strings and numbers always have a JSON form
    serde_json::to_string(&object).unwrap_or_default()
}
