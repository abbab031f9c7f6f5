//! Reading of TOML tables with spans: every key is either asked for or reported as unknown, and every mistake of a
//! file is found in one run. Nothing here knows what an architecture is.

use crate::codes;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::span::{FileId, Span};
use pantile_abi::DType;
use std::cell::RefCell;
use std::collections::BTreeSet;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// One table of a targets file, with the words that name it in messages: `arch.sm_80.threads`.
pub(super) struct Reader<'t> {
    pub file: FileId,
    pub path: String,
    pub span: Span,
    table: &'t DeTable<'t>,
    asked: RefCell<BTreeSet<&'static str>>,
    out: &'t RefCell<Diagnostics>,
}

impl<'t> Reader<'t> {
    pub fn new(
        file: FileId,
        path: impl Into<String>,
        table: &'t DeTable<'t>,
        span: Span,
        out: &'t RefCell<Diagnostics>,
    ) -> Self {
        Reader { file, path: path.into(), span, table, asked: RefCell::default(), out }
    }

    pub fn span_of<T>(&self, item: &Spanned<T>) -> Span {
        let range = item.span();
        Span::new(self.file, range.start, range.end)
    }

    pub fn report(&self, d: Diagnostic) {
        self.out.borrow_mut().push(d);
    }

    pub fn error(&self, code: Code, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    /// The raw entry of a key, with the span of its value.
    pub fn raw(&self, key: &'static str) -> Option<(&'t DeValue<'t>, Span)> {
        self.asked.borrow_mut().insert(key);
        let value = self.table.get(key)?;
        Some((value.get_ref(), self.span_of(value)))
    }

    /// The value of a key, absent or of the wrong kind being `None`; the latter is reported.
    pub fn get<T: FromToml>(&self, key: &'static str) -> Option<(T, Span)> {
        let (value, span) = self.raw(key)?;
        match T::from_toml(value) {
            Ok(v) => Some((v, span)),
            Err(wanted) => {
                let message = format!("`{key}` in `{}` must be {wanted}", self.path);
                self.report(Diagnostic::error(codes::TARGET_VALUE, span, message).label(kind_of(value)));
                None
            }
        }
    }

    /// The value of a key that may not be left out.
    pub fn need<T: FromToml>(&self, key: &'static str) -> Option<(T, Span)> {
        if !self.table.contains_key(key) {
            self.asked.borrow_mut().insert(key);
            let message = format!("`{}` does not state `{key}`", self.path);
            self.report(
                Diagnostic::error(codes::TARGET_MISSING, self.span, message)
                    .help(format!("add `{key} = …`, {}", T::WANTED)),
            );
            return None;
        }
        self.get(key)
    }

    pub fn table(&self, key: &'static str) -> Option<Reader<'t>> {
        let (value, span) = self.raw(key)?;
        self.as_table(key, format!("{}.{key}", self.path), value, span)
    }

    /// `[[key]]`: an array of tables.
    pub fn rows(&self, key: &'static str) -> Vec<Reader<'t>> {
        let Some((value, span)) = self.raw(key) else { return Vec::new() };
        let Some(list) = value.as_array() else {
            let message =
                format!("`{key}` in `{}` must be rows, each written `[[{}.{key}]]`", self.path, self.path);
            self.error(codes::TARGET_VALUE, span, message);
            return Vec::new();
        };
        let path = format!("{}.{key}", self.path);
        list.iter()
            .filter_map(|row| self.as_table(key, path.clone(), row.get_ref(), self.span_of(row)))
            .collect()
    }

    /// Every sub-table, for tables whose keys are names: `[arch.NAME]`.
    pub fn named(&self, key: &'static str) -> Vec<(String, Reader<'t>)> {
        let Some((value, span)) = self.raw(key) else { return Vec::new() };
        let Some(map) = value.as_table() else {
            self.error(
                codes::TARGET_VALUE,
                span,
                format!("`{key}` must be tables, each written `[{key}.NAME]`"),
            );
            return Vec::new();
        };
        let mut all: Vec<_> = map.iter().collect();
        all.sort_by_key(|(name, _)| name.span().start);
        let each = all.into_iter().filter_map(|(name, value)| {
            let path = format!("{key}.{}", name.get_ref());
            let reader = self.as_table(key, path, value.get_ref(), self.span_of(name))?;
            Some((name.get_ref().to_string(), reader))
        });
        each.collect()
    }

    /// All entries of a table that maps free names to values.
    pub fn entries<T: FromToml>(&self) -> Vec<(String, T, Span)> {
        let mut all: Vec<_> = self.table.iter().collect();
        all.sort_by_key(|(name, _)| name.span().start);
        let mut found = Vec::new();
        for (name, value) in all {
            match T::from_toml(value.get_ref()) {
                Ok(v) => found.push((name.get_ref().to_string(), v, self.span_of(name))),
                Err(wanted) => {
                    let message = format!("`{}` in `{}` must be {wanted}", name.get_ref(), self.path);
                    self.error(codes::TARGET_VALUE, self.span_of(value), message);
                }
            }
        }
        found
    }

    fn as_table(
        &self,
        key: &'static str,
        path: String,
        value: &'t DeValue<'t>,
        span: Span,
    ) -> Option<Reader<'t>> {
        let Some(table) = value.as_table() else {
            self.error(codes::TARGET_VALUE, span, format!("`{key}` in `{}` must be a table", self.path));
            return None;
        };
        Some(Reader::new(self.file, path, table, span, self.out))
    }

    /// Reports the keys that nobody asked for.
    pub fn finish(&self) {
        let asked = self.asked.borrow();
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if asked.contains(name) {
                continue;
            }
            let message = match self.path.as_str() {
                "" => format!("a targets file has no key `{name}` at its top"),
                path => format!("`{path}` has no key `{name}`"),
            };
            let d = Diagnostic::error(codes::TARGET_KEY, self.span_of(key), message);
            let d = match nearest(name, asked.iter().copied()) {
                Some(close) => d.help(format!("did you mean `{close}`?")),
                None => d.help(format!("the keys are {}", quoted(asked.iter().copied()))),
            };
            self.report(d);
        }
    }
}

/// `a`, `b` and `c`, each in backquotes.
pub(super) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<String> = names.into_iter().map(|n| format!("`{n}`")).collect();
    match all.as_slice() {
        [] => "none".into(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// The candidate that a slip of the fingers may have meant.
pub(super) fn nearest<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let close = all.into_iter().map(|c| (edits(name, c), c)).min_by_key(|(d, _)| *d)?;
    (close.0 <= limit).then_some(close.1)
}

fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let best = (corner + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}

fn kind_of(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "this is text",
        DeValue::Integer(_) => "this is a whole number",
        DeValue::Float(_) => "this is a fraction",
        DeValue::Boolean(_) => "this is true or false",
        DeValue::Datetime(_) => "this is a date",
        DeValue::Array(_) => "this is a list",
        DeValue::Table(_) => "this is a table",
    }
}

/// A kind of value that a targets file may hold.
pub(super) trait FromToml: Sized {
    /// Completes "must be …".
    const WANTED: &'static str;
    fn parse(value: &DeValue) -> Option<Self>;
    fn from_toml(value: &DeValue) -> Result<Self, &'static str> {
        Self::parse(value).ok_or(Self::WANTED)
    }
}

fn integer(i: &DeInteger) -> Option<i64> {
    let text = i.as_str().replace('_', "");
    i64::from_str_radix(
        text.trim_start_matches("0x").trim_start_matches("0o").trim_start_matches("0b"),
        i.radix(),
    )
    .ok()
}

impl FromToml for u64 {
    const WANTED: &'static str = "a whole number, not negative";
    fn parse(value: &DeValue) -> Option<u64> {
        value.as_integer().and_then(integer).and_then(|v| u64::try_from(v).ok())
    }
}

impl FromToml for u32 {
    const WANTED: &'static str = "a whole number from 0 to 4294967295";
    fn parse(value: &DeValue) -> Option<u32> {
        u64::parse(value).and_then(|v| u32::try_from(v).ok())
    }
}

impl FromToml for f64 {
    const WANTED: &'static str = "a number";
    fn parse(value: &DeValue) -> Option<f64> {
        match value {
            DeValue::Integer(i) => integer(i).map(|v| v as f64),
            DeValue::Float(f) => f.as_str().replace('_', "").parse().ok(),
            _ => None,
        }
        .filter(|v: &f64| v.is_finite())
    }
}

impl FromToml for bool {
    const WANTED: &'static str = "true or false";
    fn parse(value: &DeValue) -> Option<bool> {
        value.as_bool()
    }
}

impl FromToml for String {
    const WANTED: &'static str = "text in quotes";
    fn parse(value: &DeValue) -> Option<String> {
        value.as_str().filter(|s| !s.trim().is_empty()).map(str::to_string)
    }
}

impl FromToml for DType {
    const WANTED: &'static str = "an element type in quotes, such as \"f16\"";
    fn parse(value: &DeValue) -> Option<DType> {
        value.as_str().and_then(DType::from_name)
    }
}

macro_rules! lists {
    ($($t:ty, $wanted:literal;)*) => { $(
        impl FromToml for Vec<$t> {
            const WANTED: &'static str = $wanted;
            fn parse(value: &DeValue) -> Option<Self> {
                value.as_array()?.iter().map(|v| <$t>::parse(v.get_ref())).collect()
            }
        }
    )* };
}

lists! {
    u32, "a list of whole numbers, such as [4, 8, 16]";
    String, "a list of texts, such as [\"a\", \"b\"]";
    DType, "a list of element types, such as [\"f16\", \"bf16\"]";
    Vec<u32>, "a list of lists of whole numbers, such as [[64, 16], [64, 32]]";
    Vec<DType>, "a list of lists of element types, such as [[\"f16\", \"f16\", \"f32\"]]";
}

/// Extents that an instruction offers: `16`, `[16, 32]` or `"8..=256 step 8"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents(pub Vec<u32>);

impl FromToml for Extents {
    const WANTED: &'static str = "an extent: 16, [16, 32] or \"8..=256 step 8\"";
    fn parse(value: &DeValue) -> Option<Extents> {
        let all = match value {
            DeValue::String(text) => range(text)?,
            DeValue::Array(_) => Vec::parse(value)?,
            _ => vec![u32::parse(value)?],
        };
        (!all.is_empty() && all.iter().all(|e| *e > 0)).then_some(Extents(all))
    }
}

/// `a..=b` or `a..=b step s`
fn range(text: &str) -> Option<Vec<u32>> {
    let (bounds, step) = text.split_once("step").map_or((text, "1"), |(b, s)| (b, s));
    let (from, to) = bounds.split_once("..=")?;
    let number = |s: &str| s.trim().parse::<u32>().ok();
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    (step > 0 && from <= to && (to - from) / step < 4096)
        .then(|| (from..=to).step_by(step as usize).collect())
}

impl std::fmt::Display for Extents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_slice() {
            [one] => write!(f, "{one}"),
            [a, b, .., last] if b > a && self.0.windows(2).all(|w| w[1].checked_sub(w[0]) == Some(b - a)) => {
                write!(f, "{a}..={last} step {}", b - a)
            }
            list => write!(f, "{list:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_and_print() {
        assert_eq!(range("8..=24 step 8"), Some(vec![8, 16, 24]));
        assert_eq!(range("1..=3"), Some(vec![1, 2, 3]));
        assert_eq!(range("8..=4"), None);
        assert_eq!(range("0..=4 step 0"), None);
        assert_eq!(Extents(vec![8, 16, 24]).to_string(), "8..=24 step 8");
        assert_eq!(Extents(vec![16]).to_string(), "16");
        assert_eq!(Extents(vec![16, 64, 128]).to_string(), "[16, 64, 128]");
    }

    #[test]
    fn near_names() {
        assert_eq!(nearest("warpsize", ["warp_size", "banks"]), Some("warp_size"));
        assert_eq!(nearest("zzz", ["warp_size", "banks"]), None);
    }
}
