//! A fact and its evidence: value, place in the file, source, and how sure we are of it.

use super::read::Reader;
use crate::codes;
use crate::diag::Diagnostic;
use crate::span::Span;
use std::fmt::{self, Display};
use std::sync::Arc;

/// How a value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// Inferred, from the press, or in conflict between sources: check on a device before relying on it.
    Unmeasured,
    /// As the named source states it.
    Documented,
    /// Seen on a device.
    Measured,
}

impl Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mark::Unmeasured => "unmeasured",
            Mark::Documented => "documented",
            Mark::Measured => "measured",
        })
    }
}

/// A value with its evidence.
#[derive(Clone, Debug)]
pub struct Known<T> {
    pub value: T,
    /// Where the value stands in the targets file.
    pub span: Span,
    pub source: Arc<str>,
    pub mark: Mark,
    /// The architecture or chip that states it: an ancestor where it was inherited.
    pub owner: Arc<str>,
}

/// A value that may be unknown. Unknown is never guessed.
pub type Fact<T> = Option<Known<T>>;

/// One row of `pantile targets NAME`.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: String,
    pub value: String,
    pub source: String,
    pub mark: Mark,
    pub owner: String,
}

impl<T> Known<T> {
    pub fn entry(&self, key: impl Into<String>, value: impl Display) -> Entry {
        Entry {
            key: key.into(),
            value: value.to_string(),
            source: self.source.to_string(),
            mark: self.mark,
            owner: self.owner.to_string(),
        }
    }
}

/// The evidence that a table of the file states for its values: `source = "…"`, exceptions in `sources`, and the
/// lists `measured` and `unmeasured`.
pub(super) struct Evidence {
    owner: Arc<str>,
    source: Arc<str>,
    sources: Vec<(String, Arc<str>, Span)>,
    measured: Vec<String>,
    unmeasured: Vec<String>,
    lists: Vec<(&'static str, Span)>,
}

impl Evidence {
    pub fn read(reader: &Reader, owner: &Arc<str>) -> Evidence {
        let mut lists = Vec::new();
        let mut list = |key: &'static str| match reader.get::<Vec<String>>(key) {
            Some((names, span)) => {
                lists.push((key, span));
                names
            }
            None => Vec::new(),
        };
        let (measured, unmeasured) = (list("measured"), list("unmeasured"));
        let source = reader.need::<String>("source").map_or(String::new(), |(s, _)| s);
        let sources = reader.table("sources").map_or(Vec::new(), |t| t.entries::<String>());
        Evidence {
            owner: owner.clone(),
            source: Arc::from(source),
            sources: sources.into_iter().map(|(k, s, at)| (k, Arc::from(s), at)).collect(),
            measured,
            unmeasured,
            lists,
        }
    }

    pub fn known<T>(&self, key: &str, value: T, span: Span) -> Known<T> {
        let own = self.sources.iter().find(|(k, _, _)| k == key).map(|(_, s, _)| s);
        let has = |list: &[String]| list.iter().any(|k| k == key || k == "all");
        let mark = match (has(&self.measured), has(&self.unmeasured)) {
            (true, _) => Mark::Measured,
            (false, true) => Mark::Unmeasured,
            (false, false) => Mark::Documented,
        };
        Known { value, span, source: own.unwrap_or(&self.source).clone(), mark, owner: self.owner.clone() }
    }

    /// Reports names in `sources`, `measured`, `unmeasured` that stand for no value of this table.
    pub fn check(&self, reader: &Reader, stated: &[&str]) {
        let stated = |k: &str| stated.contains(&k);
        let stray = |name: &str, place: &str, span: Span| {
            let message =
                format!("`{place}` of `{}` names `{name}`, which the table does not state", reader.path);
            reader.report(
                Diagnostic::error(codes::TARGET_KEY, span, message)
                    .help("evidence belongs beside the value: move it, or state the value here"),
            );
        };
        for (name, _, span) in self.sources.iter().filter(|(k, _, _)| !stated(k)) {
            stray(name, "sources", *span);
        }
        for (place, span) in &self.lists {
            let list = if *place == "measured" { &self.measured } else { &self.unmeasured };
            for name in list.iter().filter(|k| !stated(k) && *k != "all") {
                stray(name, place, *span);
            }
        }
        if let Some(both) = self.measured.iter().find(|k| self.unmeasured.contains(k)) {
            let span = self.lists.first().map_or(reader.span, |(_, s)| *s);
            let message = format!("`{both}` of `{}` is called both measured and unmeasured", reader.path);
            reader.error(codes::TARGET_VALUE, span, message);
        }
    }
}
