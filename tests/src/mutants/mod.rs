//! Mechanical mutants of kernels: one slip in one statement.
//!
//! *Static* kinds break a rule of the language and must be diagnosed at the statement. *Dynamic* kinds are programs
//! of the language that mean something else; the check, the interpreter or a `test` block must tell.

mod dynamics;
mod sites;
mod statics;

pub use sites::{Site, sites};

use crate::pieces::Piece;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    DroppedToken,
    UnknownName,
    WrongDtype,
    WrongRank,
    MissingCast,
    OffByOne,
    SwappedDims,
    MissingGuard,
}

impl Kind {
    pub const ALL: [Kind; 8] = [
        Kind::DroppedToken,
        Kind::UnknownName,
        Kind::WrongDtype,
        Kind::WrongRank,
        Kind::MissingCast,
        Kind::OffByOne,
        Kind::SwappedDims,
        Kind::MissingGuard,
    ];

    pub fn is_static(self) -> bool {
        !matches!(self, Kind::OffByOne | Kind::SwappedDims | Kind::MissingGuard)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::DroppedToken => "dropped token",
            Kind::UnknownName => "unknown name",
            Kind::WrongDtype => "wrong dtype",
            Kind::WrongRank => "wrong rank",
            Kind::MissingCast => "missing cast",
            Kind::OffByOne => "off by one",
            Kind::SwappedDims => "swapped dims",
            Kind::MissingGuard => "missing guard",
        }
    }
}

/// A replacement of a byte range of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub start: usize,
    pub end: usize,
    pub with: String,
}

/// One mutant of one file.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub kind: Kind,
    /// The kernel that holds the statement.
    pub kernel: String,
    pub text: String,
    /// Lines of the mutated statement, from 1.
    pub lines: (usize, usize),
    pub before: String,
    pub after: String,
}

impl Mutant {
    fn new(text: &str, site: &Site, kind: Kind, edits: &[Edit]) -> Mutant {
        let mut edits = edits.to_vec();
        edits.sort_by_key(|e| e.start);
        let mut out = String::new();
        let mut at = 0;
        let (mut start, mut end) = (site.start, site.end);
        for e in &edits {
            out += &text[at..e.start];
            out += &e.with;
            at = e.end;
            let grown = e.with.len() as isize - (e.end - e.start) as isize;
            end = (end as isize + grown) as usize;
        }
        out += &text[at..];
        start = start.min(out.len());
        let line = |at: usize| out[..at.min(out.len())].matches('\n').count() + 1;
        let squeeze = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
        Mutant {
            kind,
            kernel: site.kernel.clone(),
            lines: (line(start), line(end)),
            before: squeeze(&text[site.start..site.end]),
            after: squeeze(&out[start..end.min(out.len())]),
            text: out,
        }
    }

    /// What names the mutant: kernel, statement before and after.
    pub fn id(&self) -> String {
        format!("{}: {} => {}", self.kernel, self.before, self.after)
    }
}

/// All mutants of a kind.
pub fn mutants(text: &str, sites: &[Site], kind: Kind) -> Vec<Mutant> {
    let mut out: Vec<Mutant> = Vec::new();
    for site in sites {
        let source = Source::new(text, site);
        let all = match kind {
            Kind::DroppedToken => statics::dropped(&source),
            Kind::UnknownName => statics::unknown(&source),
            Kind::WrongDtype => statics::dtypes(&source),
            Kind::WrongRank => statics::ranks(&source),
            Kind::MissingCast => statics::casts(&source),
            Kind::OffByOne => dynamics::off_by_one(&source),
            Kind::SwappedDims => dynamics::swapped(&source),
            Kind::MissingGuard => dynamics::guards(&source),
        };
        for edits in all {
            let m = Mutant::new(text, site, kind, &edits);
            if m.text != text && m.before != m.after && out.iter().all(|o| o.id() != m.id()) {
                out.push(m);
            }
        }
    }
    out
}

/// One statement in its pieces, white space and comments apart.
pub(crate) struct Source<'t> {
    pub text: &'t str,
    pub solid: Vec<Piece>,
    pub site: &'t Site,
}

impl<'t> Source<'t> {
    fn new(text: &'t str, site: &'t Site) -> Source<'t> {
        use crate::pieces::{Kind as P, pieces};
        let all = pieces(&text[site.start..site.end], "//");
        let shift = |p: Piece| Piece { start: p.start + site.start, end: p.end + site.start, ..p };
        let solid = all.into_iter().filter(|p| !matches!(p.kind, P::Space | P::Comment)).map(shift).collect();
        Source { text, solid, site }
    }

    pub fn at(&self, i: usize) -> &'t str {
        self.solid.get(i).map_or("", |p| p.text(self.text))
    }

    pub fn before(&self, i: usize) -> &'t str {
        if i == 0 { "" } else { self.at(i - 1) }
    }

    /// Replaces pieces `from..=to`.
    pub fn replace(&self, from: usize, to: usize, with: &str) -> Edit {
        Edit { start: self.solid[from].start, end: self.solid[to].end, with: with.into() }
    }

    /// Removes pieces `from..=to` with the space before them.
    pub fn remove(&self, from: usize, to: usize) -> Edit {
        let start = if from > 0 { self.solid[from - 1].end } else { self.solid[from].start };
        Edit { start, end: self.solid[to].end, with: String::new() }
    }

    /// The piece that closes the bracket at `open`.
    pub fn close(&self, open: usize) -> Option<usize> {
        let mut depth = 0;
        for i in open..self.solid.len() {
            match self.at(i) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(i);
            }
        }
        None
    }

    /// The parts of a bracketed list, as piece ranges.
    pub fn parts(&self, open: usize) -> Vec<(usize, usize)> {
        let Some(close) = self.close(open) else { return Vec::new() };
        let mut parts = Vec::new();
        let (mut depth, mut from) = (0, open + 1);
        for i in open + 1..close {
            match self.at(i) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                "," if depth == 0 => {
                    parts.push((from, i - 1));
                    from = i + 1;
                }
                _ => {}
            }
        }
        if from < close {
            parts.push((from, close - 1));
        }
        parts
    }

    /// Index lists: brackets that follow a value, not a type.
    pub fn index_lists(&self) -> Vec<usize> {
        let list = |&i: &usize| {
            if self.at(i) != "[" || i == 0 {
                return false;
            }
            let before = self.before(i);
            let word = before.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            let close = self.close(i).is_some();
            let typed = is_type(before) || before == ")" && self.type_call(i - 1) || self.site.memory;
            // `var x: T[4]`
            let declared = i >= 2 && self.at(i - 2) == ":" && self.at(0) == "var";
            close
                && (word || before == "]" || before == ")")
                && !typed
                && !declared
                && !matches!(before, "in" | "or")
        };
        (0..self.solid.len()).filter(list).collect()
    }

    /// `acc(T)` whose closing parenthesis stands at `close`.
    fn type_call(&self, close: usize) -> bool {
        close >= 3 && self.at(close - 3) == "acc"
    }

    pub fn words(&self, from: usize, to: usize) -> String {
        self.text[self.solid[from].start..self.solid[to].end].to_string()
    }
}

pub(crate) fn is_type(word: &str) -> bool {
    word == "T" || pantile_ir::DType::from_name(word).is_some()
}
