//! Layout text: `m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: N/8@reg*4, 4@thr, 2@reg`.
//!
//! Parts are separated by `;`: dims (`name: digits`, `name: 1` for a single index, `< 100` after the digits for a
//! guard), `rep digits`, `offset 64@mem`, `xor<3,4,3>`, `align 1024`, and `with N = 64` to give a symbol a value.
//! Numbers may be products and exact quotients of numbers and symbols. Reading and printing are inverse.

use super::{At, Axis, Digit, Dim, Layout, Shared, Xor};
use std::ops::Range;

/// A number that may still hold symbols.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    Number(u64),
    Symbol(String),
    Times(Box<Expr>, Box<Expr>),
    Over(Box<Expr>, Box<Expr>),
}

/// Values of symbols.
#[derive(Clone, Debug, Default)]
pub struct Symbols(Vec<(String, u64)>);

impl Symbols {
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, u64)>) -> Symbols {
        Symbols(pairs.into_iter().map(|(name, v)| (name.to_string(), v)).collect())
    }

    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v)
    }

    pub fn set(&mut self, name: &str, value: u64) {
        self.0.push((name.to_string(), value));
    }
}

/// Why text is not a layout, and the bytes at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    pub at: Range<usize>,
    pub message: String,
    pub help: Option<String>,
}

/// A digit whose numbers may hold symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDigit {
    pub extent: Expr,
    pub axis: Axis,
    pub stride: Expr,
    pub at: Range<usize>,
}

/// A dim whose numbers may hold symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDim {
    pub name: String,
    pub digits: Vec<OpenDigit>,
    pub guard: Option<Expr>,
    pub at: Range<usize>,
}

/// Text as read: a layout, a shared tile, or a template with unknowns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub dims: Vec<OpenDim>,
    pub rep: Vec<OpenDigit>,
    pub offset: At,
    pub xor: Option<Xor>,
    pub align: Option<u64>,
    pub with: Vec<(String, u64)>,
}

/// Greatest number that text may hold or products of it may reach: keeps all later sums far from overflow.
const LIMIT: u64 = 1 << 40;

impl Expr {
    /// The value under the given symbols; `Err` says in the user's words why there is none.
    pub fn value(&self, symbols: &Symbols) -> Result<u64, String> {
        match self {
            Expr::Number(n) => Ok(*n),
            Expr::Symbol(name) => symbols.get(name).ok_or_else(|| format!("`{name}` has no value")),
            Expr::Times(a, b) => {
                let (x, y) = (a.value(symbols)?, b.value(symbols)?);
                x.checked_mul(y).filter(|v| *v <= LIMIT).ok_or_else(|| format!("`{self}` is too large"))
            }
            Expr::Over(a, b) => match (a.value(symbols)?, b.value(symbols)?) {
                (_, 0) => Err(format!("`{self}` divides by zero")),
                (x, y) if x % y != 0 => Err(format!("`{self}`: {y} does not divide {x}")),
                (x, y) => Ok(x / y),
            },
        }
    }

    /// The symbol, where the expression is nothing else.
    pub fn symbol(&self) -> Option<&str> {
        if let Expr::Symbol(name) = self { Some(name) } else { None }
    }
}

/// Reads text without giving values to symbols.
pub fn parse(text: &str) -> Result<Parsed, TextError> {
    const LONGEST: usize = 4096;
    if text.len() > LONGEST {
        let message = format!("layout text is at most {LONGEST} bytes long");
        return Err(TextError { at: 0..text.len(), message, help: None });
    }
    let mut p = Parser { text, at: 0, depth: 0 };
    let mut out = Parsed::default();
    loop {
        p.part(&mut out)?;
        if !p.eat(';') {
            break;
        }
    }
    p.skip();
    if p.at < text.len() {
        return Err(p.fail("this cannot stand here", Some("parts are separated by `;`, digits by `,`")));
    }
    if out.dims.is_empty() {
        return Err(TextError {
            at: 0..text.len(),
            message: "a layout needs a dim".into(),
            help: Some("write its digits, such as `m: 8@thr*4, 2@reg`".into()),
        });
    }
    Ok(out)
}

/// Reads text that must be a complete layout, with or without a swizzle.
pub fn parse_layout(text: &str, symbols: &Symbols) -> Result<Shared, TextError> {
    parse(text)?.bind(symbols)
}

impl Parsed {
    /// Puts values for all symbols.
    pub fn bind(&self, symbols: &Symbols) -> Result<Shared, TextError> {
        let mut all = symbols.clone();
        self.with.iter().for_each(|(name, v)| all.set(name, *v));
        let value = |e: &Expr, at: &Range<usize>| {
            e.value(&all).map_err(|message| {
                let help = e_unknown(&message).then(|| "give it one: `with NAME = …`".to_string());
                TextError { at: at.clone(), message, help }
            })
        };
        let digit = |d: &OpenDigit| {
            let (extent, stride) = (value(&d.extent, &d.at)?, value(&d.stride, &d.at)?);
            if extent == 0 {
                return Err(TextError {
                    at: d.at.clone(),
                    message: "an extent of 0 holds nothing".into(),
                    help: None,
                });
            }
            Ok(Digit { extent, axis: d.axis, stride })
        };
        let mut layout = Layout { offset: self.offset, ..Layout::default() };
        for dim in &self.dims {
            let digits = dim.digits.iter().map(digit).collect::<Result<Vec<_>, _>>()?;
            let guard = dim.guard.as_ref().map(|g| value(g, &dim.at)).transpose()?;
            let covered =
                digits.iter().try_fold(1u64, |p, d| p.checked_mul(d.extent).filter(|p| *p <= LIMIT));
            let Some(covered) = covered else {
                return Err(TextError {
                    at: dim.at.clone(),
                    message: "this dim is too large".into(),
                    help: None,
                });
            };
            if let Some(g) = guard.filter(|g| *g > covered) {
                let message =
                    format!("the guard {g} is more than the {covered} indices that the digits cover");
                return Err(TextError { at: dim.at.clone(), message, help: None });
            }
            layout.dims.push(Dim { name: dim.name.clone(), digits, guard: guard.filter(|g| *g < covered) });
        }
        layout.rep = self.rep.iter().map(digit).collect::<Result<_, _>>()?;
        if !bounded(&layout) {
            let at = 0..self.dims.last().map_or(0, |d| d.at.end);
            return Err(TextError { at, message: "this layout is too large".into(), help: None });
        }
        Ok(Shared { layout, xor: self.xor, align: self.align.unwrap_or(1) })
    }
}

/// Elements with their copies and the reach of each digit stay below the limit, so that no later sum or product
/// overflows.
fn bounded(layout: &Layout) -> bool {
    let mut extents = layout.dims.iter().map(Dim::covered).chain(layout.rep.iter().map(|d| d.extent));
    let fits = |v: Option<u64>| v.filter(|v| *v <= LIMIT);
    let reach = |d: &Digit| fits((d.extent - 1).checked_mul(d.stride)).is_some();
    extents.try_fold(1u64, |p, e| fits(p.checked_mul(e))).is_some()
        && layout.digits().map(|(_, d)| d).chain(&layout.rep).all(reach)
}

fn e_unknown(message: &str) -> bool {
    message.ends_with("has no value")
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// open parentheses
    depth: usize,
}

impl Parser<'_> {
    fn skip(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Where what was read ends, without the blanks behind it.
    fn end(&self) -> usize {
        self.text[..self.at].trim_end().len()
    }

    fn peek(&mut self) -> Option<char> {
        self.skip();
        self.text[self.at..].chars().next()
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn want(&mut self, c: char, after: &str) -> Result<(), TextError> {
        if self.eat(c) { Ok(()) } else { Err(self.fail(&format!("`{c}` is missing after {after}"), None)) }
    }

    /// An error at the next piece of text.
    fn fail(&mut self, message: &str, help: Option<&str>) -> TextError {
        self.skip();
        let rest = &self.text[self.at..];
        let len = rest.find(|c: char| c.is_whitespace() || ",;@*".contains(c)).unwrap_or(rest.len());
        let len = len.max(rest.chars().next().map_or(0, char::len_utf8));
        let found = &rest[..len];
        let message = if found.is_empty() {
            format!("{message}: the text ends")
        } else {
            format!("{message}: `{found}`")
        };
        TextError { at: self.at..self.at + len, message, help: help.map(str::to_string) }
    }

    fn word(&mut self) -> Option<(String, Range<usize>)> {
        self.skip();
        let rest = &self.text[self.at..];
        let starts = rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if !starts {
            return None;
        }
        let at = self.at..self.at + len;
        self.at = at.end;
        Some((self.text[at.clone()].to_string(), at))
    }

    fn number(&mut self) -> Result<u64, TextError> {
        self.skip();
        let rest = &self.text[self.at..];
        let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if len == 0 {
            return Err(self.fail("a number is missing", None));
        }
        match rest[..len].parse::<u64>() {
            Ok(n) if n <= LIMIT => {
                self.at += len;
                Ok(n)
            }
            _ => Err(self.fail("this number is too large", None)),
        }
    }

    fn part(&mut self, out: &mut Parsed) -> Result<(), TextError> {
        let start = self.at;
        let Some((word, at)) = self.word() else {
            return Err(self.fail(
                "a dim is missing",
                Some("write its name, a colon and its digits: `m: 8@thr*4, 2@reg`"),
            ));
        };
        match word.as_str() {
            _ if self.eat(':') => return self.dim(word, at, out),
            "rep" => out.rep.extend(self.digits()?),
            "offset" => self.offset(out)?,
            "with" => self.bindings(out)?,
            "xor" | "align" => {
                self.at = at.start;
                return self.address(out);
            }
            _ => {
                self.at = start;
                return Err(self.fail(
                    "this starts no part of a layout",
                    Some("parts are dims (`m: 8@thr*4`), `rep`, `offset`, `xor<3,4,3>`, `align` and `with`"),
                ));
            }
        }
        Ok(())
    }

    fn dim(&mut self, name: String, at: Range<usize>, out: &mut Parsed) -> Result<(), TextError> {
        if out.dims.iter().any(|d| d.name == name) {
            return Err(TextError { at, message: format!("dim `{name}` is written twice"), help: None });
        }
        let digits = self.digits()?;
        let guard = if self.eat('<') { Some(self.product()?) } else { None };
        let at = at.start..self.end();
        out.dims.push(OpenDim { name, digits, guard, at });
        Ok(())
    }

    /// Digits separated by commas, or `1` for none.
    fn digits(&mut self) -> Result<Vec<OpenDigit>, TextError> {
        let mut all = Vec::new();
        loop {
            self.skip();
            let start = self.at;
            let extent = self.product()?;
            if extent == Expr::Number(1) && self.peek() != Some('@') {
                if !all.is_empty() || self.peek() == Some(',') {
                    self.at = start;
                    return Err(self.fail("`1` without an axis stands alone", None));
                }
                return Ok(all);
            }
            if !self.eat('@') {
                return Err(self.fail("`@` and an axis are missing after an extent", Some(AXES)));
            }
            let axis = self.axis()?;
            let stride = if self.eat('*') { self.product()? } else { Expr::Number(1) };
            all.push(OpenDigit { extent, axis, stride, at: start..self.end() });
            if !self.eat(',') {
                return Ok(all);
            }
        }
    }

    fn axis(&mut self) -> Result<Axis, TextError> {
        let Some((word, at)) = self.word() else {
            return Err(self.fail("an axis is missing after `@`", Some(AXES)));
        };
        Axis::from_name(&word).ok_or_else(|| TextError {
            at,
            message: format!("no axis is called `{word}`"),
            help: Some(AXES.into()),
        })
    }

    fn product(&mut self) -> Result<Expr, TextError> {
        let mut left = self.primary()?;
        loop {
            if self.eat('*') {
                left = Expr::Times(Box::new(left), Box::new(self.primary()?));
            } else if self.eat('/') {
                left = Expr::Over(Box::new(left), Box::new(self.primary()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn primary(&mut self) -> Result<Expr, TextError> {
        if self.eat('(') {
            self.depth += 1;
            if self.depth > 16 {
                return Err(self.fail("parentheses are nested too deeply", None));
            }
            let inner = self.product()?;
            self.want(')', "an expression in parentheses")?;
            self.depth -= 1;
            return Ok(inner);
        }
        match self.peek() {
            Some(c) if c.is_ascii_digit() => Ok(Expr::Number(self.number()?)),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self
                .word()
                .map(|(name, _)| Expr::Symbol(name))
                .ok_or_else(|| self.fail("a name is missing", None)),
            _ => Err(self.fail("a number or a symbol is missing", None)),
        }
    }

    fn offset(&mut self, out: &mut Parsed) -> Result<(), TextError> {
        loop {
            let n = self.number()?;
            self.want('@', "an offset")?;
            let axis = self.axis()?;
            out.offset[axis] = n;
            if !self.eat(',') {
                return Ok(());
            }
        }
    }

    fn bindings(&mut self, out: &mut Parsed) -> Result<(), TextError> {
        loop {
            let Some((name, _)) = self.word() else { return Err(self.fail("a symbol is missing", None)) };
            self.want('=', "a symbol")?;
            out.with.push((name, self.number()?));
            if !self.eat(',') {
                return Ok(());
            }
        }
    }

    /// The numbers of `xor<b,m,s>`, from the `<` on.
    fn xor(&mut self, start: usize) -> Result<Xor, TextError> {
        self.want('<', "`xor`")?;
        let mut part = |end: char| {
            let n = self.number()?;
            self.want(end, "a number of `xor`")?;
            Ok::<u32, TextError>(n.min(64) as u32)
        };
        let xor = Xor { bits: part(',')?, base: part(',')?, shift: part('>')? };
        if xor.bits == 0 || xor.shift < xor.bits || xor.base + xor.bits + xor.shift > 40 {
            return Err(TextError {
                at: start..self.at,
                message: format!("{xor} is no swizzle"),
                help: Some("xor<bits, base, shift> needs 1 <= bits <= shift".into()),
            });
        }
        Ok(xor)
    }

    /// `xor<b,m,s>` and `align n`, in one part or in two.
    fn address(&mut self, out: &mut Parsed) -> Result<(), TextError> {
        while let Some((word, at)) = self.word() {
            match word.as_str() {
                "xor" if out.xor.is_none() => out.xor = Some(self.xor(at.start)?),
                "align" if out.align.is_none() => {
                    let n = self.number()?;
                    if !n.is_power_of_two() {
                        let message = format!("an alignment of {n} is no power of two");
                        return Err(TextError { at: at.start..self.at, message, help: None });
                    }
                    out.align = Some(n);
                }
                _ => {
                    self.at = at.start;
                    return Err(self.fail("this cannot stand here", None));
                }
            }
        }
        Ok(())
    }
}

const AXES: &str = "the axes are reg, thr, group, cta, simd and mem";

impl std::str::FromStr for Xor {
    type Err = TextError;

    /// Reads `xor<3,4,3>`.
    fn from_str(text: &str) -> Result<Xor, TextError> {
        let mut p = Parser { text, at: 0, depth: 0 };
        match p.word() {
            Some((word, at)) if word == "xor" => {
                let xor = p.xor(at.start)?;
                p.skip();
                if p.at == text.len() { Ok(xor) } else { Err(p.fail("this cannot stand here", None)) }
            }
            _ => Err(TextError {
                at: 0..text.len(),
                message: format!("`{text}` is no swizzle"),
                help: Some("write xor<bits, base, shift>, such as xor<3,4,3>".into()),
            }),
        }
    }
}
