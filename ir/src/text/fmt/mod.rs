//! The one printer of syntax trees: `fmt`, dumps and snapshots all come from here.
//!
//! The text depends on the tree, its comments, and (where the tree was read from text) on which lines were blank
//! and which blocks stood on one line; a tree without places prints the same text every time. Reading the text
//! gives the same tree again.

mod doc;
mod exprs;
mod items;
mod machines;
mod spacing;
mod statements;

use crate::ast::{self, File};
use crate::span::Span;
use doc::{Doc, concat, empty, fill, group, nest, text};

/// The canonical text of `file`, ended by a line break (empty for an empty file).
pub fn format(file: &File) -> String {
    let mut printer = Printer::new(file);
    let doc = printer.file(file);
    if matches!(&doc, Doc::Concat(parts, _) if parts.is_empty()) {
        return String::new();
    }
    doc::render(&doc)
}

/// The text of one expression on one line, for messages and dumps.
pub fn format_expr(e: &ast::Expr) -> String {
    let no_file = File::default();
    let mut printer = Printer::new(&no_file);
    let doc = printer.expr(e, super::precedence::ANY);
    doc::render(&doc).split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Note {
    at: u32,
    text: String,
    own_line: bool,
    taken: bool,
}

struct Printer<'a> {
    /// Comments by place.
    notes: Vec<Note>,
    lines: &'a [u32],
    /// Columns of indentation of the statement being printed.
    margin: usize,
}

/// One line of a sequence: a statement, an entry or a comment.
struct Row {
    doc: Doc,
    /// Line numbers in the source; 0 without a source.
    first: usize,
    last: usize,
    /// Always set apart from what stands before.
    apart: bool,
}

impl<'a> Printer<'a> {
    fn new(file: &'a File) -> Self {
        let mut notes: Vec<Note> = file
            .comments
            .iter()
            .map(|c| Note { at: c.span.start, text: c.text.clone(), own_line: c.own_line, taken: false })
            .collect();
        notes.sort_by_key(|n| n.at);
        Printer { notes, lines: &file.lines, margin: 0 }
    }

    // ---- places ----

    /// The 1-based line of a byte, 0 if the tree has no source.
    fn line(&self, at: u32) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    fn last_line(&self, span: Span) -> usize {
        self.line(span.end.saturating_sub(1).max(span.start))
    }

    /// Read from text where it stood on one line.
    fn on_one_line(&self, span: Span) -> bool {
        !self.lines.is_empty() && self.line(span.start) == self.last_line(span)
    }

    // ---- comments ----

    fn note_range(&self, lo: u32, hi: u32) -> std::ops::Range<usize> {
        let first = self.notes.partition_point(|n| n.at < lo);
        let end = self.notes.partition_point(|n| n.at < hi);
        first..end.max(first)
    }

    /// Are there comments in `lo..hi` that nobody has printed?
    fn has_notes(&self, lo: u32, hi: u32) -> bool {
        self.note_range(lo, hi).any(|i| !self.notes[i].taken)
    }

    fn take_notes(&mut self, lo: u32, hi: u32) -> Vec<usize> {
        let range = self.note_range(lo, hi);
        let free: Vec<usize> = range.filter(|i| !self.notes[*i].taken).collect();
        for i in &free {
            self.notes[*i].taken = true;
        }
        free
    }

    fn note_row(&self, i: usize) -> Row {
        let line = self.line(self.notes[i].at);
        Row { doc: Doc::Comment(self.notes[i].text.clone()), first: line, last: line, apart: false }
    }

    /// Adds comment `i` to `rows`: behind the last one if it stood there, else on a line of its own.
    fn add_note(&self, rows: &mut Vec<Row>, i: usize) {
        let note = &self.notes[i];
        let line = self.line(note.at);
        match rows.last_mut() {
            Some(row) if !note.own_line && row.last == line && !matches!(row.doc, Doc::Comment(_)) => {
                let doc = std::mem::replace(&mut row.doc, empty());
                row.doc = concat(vec![doc, Doc::Comment(note.text.clone())]);
            }
            _ => rows.push(self.note_row(i)),
        }
    }

    // ---- sequences ----

    /// The rows of `items`, which stand between bytes `lo` and `hi`, with the comments there.
    fn rows<T>(
        &mut self,
        (lo, hi): (u32, u32),
        items: &[T],
        span: impl Fn(&T) -> Span,
        mut print: impl FnMut(&mut Self, &T) -> Doc,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut at = lo;
        for item in items {
            let place = span(item);
            for i in self.take_notes(at, place.start) {
                self.add_note(&mut rows, i);
            }
            let doc = print(self, item);
            // comments in the midst of an expression have no place of their own there
            for i in self.take_notes(place.start, place.end) {
                rows.push(self.note_row(i));
            }
            rows.push(Row { doc, first: self.line(place.start), last: self.last_line(place), apart: false });
            at = place.end.max(at);
        }
        for i in self.take_notes(at, hi) {
            self.add_note(&mut rows, i);
        }
        rows
    }

    /// Rows one below the other; where the source had empty lines, one is kept.
    fn stack(rows: Vec<Row>) -> Doc {
        let mut docs = Vec::new();
        let mut last = None;
        for row in rows {
            if let Some(last) = last {
                let gap = row.apart || row.first > last + 1;
                docs.push(if gap { Doc::Blank } else { Doc::Hard });
            }
            last = Some(row.last.max(row.first));
            docs.push(row.doc);
        }
        concat(docs)
    }

    /// `{`, rows, `}`; a comment behind the `{` stays there.
    fn braced(&mut self, span: Span, rows: Vec<Row>) -> Doc {
        let mut rows = rows.into_iter().peekable();
        let mut docs = vec![text("{")];
        if rows.peek().is_none() {
            return text("{}");
        }
        let behind = rows.next_if(|r| {
            matches!(r.doc, Doc::Comment(_)) && r.first == self.line(span.start) && !self.lines.is_empty()
        });
        docs.extend(behind.map(|r| r.doc));
        let rest: Vec<Row> = rows.collect();
        if !rest.is_empty() {
            docs.push(nest(concat(vec![Doc::Hard, Self::stack(rest)])));
        }
        docs.push(Doc::Hard);
        docs.push(text("}"));
        concat(docs)
    }

    /// Runs `print` one step further to the right.
    fn indented<T>(&mut self, print: impl FnOnce(&mut Self) -> T) -> T {
        self.margin += 4;
        let value = print(self);
        self.margin -= 4;
        value
    }

    /// `open a, b, … close`: on one line, or filled; one element a line where comments stand between them.
    fn list<T>(
        &mut self,
        (open, close): (&str, &str),
        (lo, hi): (u32, u32),
        items: &[T],
        span: impl Fn(&T) -> Span,
        mut print: impl FnMut(&mut Self, &T) -> Doc,
    ) -> Doc {
        if self.gaps_hold_notes((lo, hi), items, &span) {
            let rows = self.rows((lo, hi), items, span, |p, item| concat(vec![print(p, item), text(",")]));
            return concat(vec![
                text(open),
                nest(concat(vec![Doc::Hard, Self::stack(rows)])),
                Doc::Hard,
                text(close),
            ]);
        }
        let count = items.len();
        let parts = items.iter().enumerate().map(|(i, item)| {
            let doc = print(self, item);
            if i + 1 < count { concat(vec![doc, text(",")]) } else { doc }
        });
        let parts: Vec<Doc> = parts.collect();
        if parts.is_empty() {
            return text(format!("{open}{close}"));
        }
        group(vec![text(open), nest(concat(vec![Doc::Soft, fill(parts)])), text(close)])
    }

    fn gaps_hold_notes<T>(&self, (lo, hi): (u32, u32), items: &[T], span: impl Fn(&T) -> Span) -> bool {
        if self.notes.is_empty() || items.is_empty() {
            return false;
        }
        let mut at = lo;
        for item in items {
            if self.has_notes(at, span(item).start) {
                return true;
            }
            at = span(item).end;
        }
        self.has_notes(at, hi)
    }
}
