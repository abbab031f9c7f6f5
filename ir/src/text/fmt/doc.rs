//! Layout of text into lines: groups that stay on one line if they fit, after Wadler's pretty printer.

/// Lines are broken to stay within this many characters. Comments may go beyond.
pub const WIDTH: usize = 110;

const INDENT: usize = 4;

#[derive(Clone, Debug)]
pub enum Doc {
    Text(String),
    /// A space, or a line break where the group around is broken.
    Line,
    /// Nothing, or a line break where the group around is broken.
    Soft,
    /// A line break always.
    Hard,
    /// A line break and an empty line.
    Blank,
    Nest(Box<Doc>),
    Concat(Vec<Doc>, bool),
    Group(Vec<Doc>, bool),
    /// Parts separated by spaces, as many on a line as fit.
    Fill(Vec<Doc>, bool),
    /// A comment at the end of a line; a line break must follow.
    Comment(String),
}

pub fn text(s: impl Into<String>) -> Doc {
    Doc::Text(s.into())
}

pub fn empty() -> Doc {
    Doc::Concat(Vec::new(), false)
}

pub fn concat(docs: Vec<Doc>) -> Doc {
    let forced = docs.iter().any(Doc::breaks);
    Doc::Concat(docs, forced)
}

pub fn group(docs: Vec<Doc>) -> Doc {
    let forced = docs.iter().any(Doc::breaks);
    Doc::Group(docs, forced)
}

pub fn fill(docs: Vec<Doc>) -> Doc {
    let forced = docs.iter().any(Doc::breaks);
    Doc::Fill(docs, forced)
}

pub fn nest(doc: Doc) -> Doc {
    Doc::Nest(Box::new(doc))
}

impl Doc {
    /// It holds a line break that cannot be taken away.
    pub fn breaks(&self) -> bool {
        match self {
            Doc::Text(_) | Doc::Line | Doc::Soft => false,
            Doc::Hard | Doc::Blank | Doc::Comment(_) => true,
            Doc::Nest(d) => d.breaks(),
            Doc::Concat(_, forced) | Doc::Group(_, forced) | Doc::Fill(_, forced) => *forced,
        }
    }

    /// Its width on one line, if it can stand on one.
    pub fn flat_width(&self) -> Option<usize> {
        match self {
            Doc::Text(s) => Some(s.chars().count()),
            Doc::Line => Some(1),
            Doc::Soft => Some(0),
            Doc::Hard | Doc::Blank | Doc::Comment(_) => None,
            Doc::Nest(d) => d.flat_width(),
            Doc::Concat(ds, _) | Doc::Group(ds, _) => {
                ds.iter().try_fold(0, |sum, d| Some(sum + d.flat_width()?))
            }
            Doc::Fill(ds, _) => {
                let parts = ds.iter().try_fold(0, |sum, d| Some(sum + d.flat_width()?))?;
                Some(parts + ds.len().saturating_sub(1))
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Job<'a> {
    Put {
        indent: usize,
        flat: bool,
        doc: &'a Doc,
    },
    /// The gap before a further part of a fill.
    Gap {
        indent: usize,
        next: &'a Doc,
    },
}

#[derive(Default)]
struct Page {
    lines: Vec<(String, Option<String>)>,
    code: String,
    comment: Option<String>,
    column: usize,
}

impl Page {
    fn put(&mut self, s: &str) {
        self.code.push_str(s);
        self.column += s.chars().count();
    }

    fn line_break(&mut self, indent: usize) {
        let code = std::mem::take(&mut self.code);
        let comment = self.comment.take();
        // the indentation of a line that holds only a comment is the comment's
        let alone = comment.is_some() && code.trim().is_empty();
        let code = if alone { code } else { code.trim_end().to_string() };
        self.lines.push((code, comment));
        self.code = " ".repeat(indent);
        self.column = indent;
    }
}

/// The text of `doc`, ended by a line break.
pub fn render(doc: &Doc) -> String {
    let mut page = Page::default();
    let mut jobs = vec![Job::Put { indent: 0, flat: false, doc }];
    while let Some(job) = jobs.pop() {
        match job {
            Job::Put { indent, flat, doc } => put(&mut page, &mut jobs, indent, flat, doc),
            Job::Gap { indent, next } => {
                let as_flat = Job::Put { indent, flat: true, doc: next };
                if !next.breaks() && fits(page.column + 1, as_flat, &jobs[..jobs.len() - 1]) {
                    page.put(" ");
                } else {
                    page.line_break(indent);
                }
            }
        }
    }
    page.line_break(0);
    align_comments(&mut page.lines);
    let mut out = String::new();
    for (code, comment) in &page.lines {
        out.push_str(code);
        if let Some(comment) = comment {
            if !code.trim().is_empty() {
                out.push(' ');
            }
            out.push_str(comment);
        }
        out.push('\n');
    }
    out
}

fn put<'a>(page: &mut Page, jobs: &mut Vec<Job<'a>>, indent: usize, flat: bool, doc: &'a Doc) {
    match doc {
        Doc::Text(s) => page.put(s),
        Doc::Line if flat => page.put(" "),
        Doc::Soft if flat => {}
        Doc::Line | Doc::Soft | Doc::Hard => page.line_break(indent),
        Doc::Blank => {
            page.line_break(0);
            page.line_break(indent);
        }
        Doc::Comment(s) => match &mut page.comment {
            // two comments cannot share a line: the second one follows the first
            Some(first) => {
                first.push(' ');
                first.push_str(s);
            }
            none => *none = Some(s.clone()),
        },
        Doc::Nest(d) => jobs.push(Job::Put { indent: indent + INDENT, flat, doc: d }),
        Doc::Concat(ds, _) => jobs.extend(ds.iter().rev().map(|doc| Job::Put { indent, flat, doc })),
        Doc::Group(ds, forced) => {
            let flat = flat || (!forced && fits(page.column, Job::Put { indent, flat: true, doc }, jobs));
            jobs.extend(ds.iter().rev().map(|doc| Job::Put { indent, flat, doc }));
        }
        Doc::Fill(ds, _) => {
            for (i, doc) in ds.iter().enumerate().rev() {
                jobs.push(Job::Put { indent, flat, doc });
                if i > 0 && flat {
                    jobs.push(Job::Put { indent, flat, doc: &Doc::Line });
                } else if i > 0 {
                    jobs.push(Job::Gap { indent, next: doc });
                }
            }
        }
    }
}

/// Does `first` and what follows it, up to the next possible line break, end within the width?
fn fits<'a>(column: usize, first: Job<'a>, rest: &[Job<'a>]) -> bool {
    let mut left = WIDTH as isize - column as isize;
    let mut todo = vec![first];
    let mut rest = rest.iter().rev();
    loop {
        if left < 0 {
            return false;
        }
        let Some(job) = todo.pop().or_else(|| rest.next().copied()) else { return true };
        let Job::Put { indent, flat, doc } = job else { return true };
        match doc {
            Doc::Text(s) => left -= s.chars().count() as isize,
            Doc::Line if flat => left -= 1,
            Doc::Soft if flat => {}
            Doc::Line | Doc::Soft | Doc::Hard | Doc::Blank | Doc::Comment(_) => return true,
            Doc::Nest(doc) => todo.push(Job::Put { indent, flat, doc }),
            // groups further on may be broken, so that their first line break ends the line
            Doc::Concat(ds, _) | Doc::Group(ds, _) => {
                todo.extend(ds.iter().rev().map(|doc| Job::Put { indent, flat, doc }));
            }
            Doc::Fill(ds, _) => {
                for (i, doc) in ds.iter().enumerate().rev() {
                    todo.push(Job::Put { indent, flat, doc });
                    if i > 0 {
                        todo.push(Job::Put { indent, flat, doc: &Doc::Line });
                    }
                }
            }
        }
    }
}

/// Puts the comments behind neighbouring lines of one indentation under each other.
fn align_comments(lines: &mut [(String, Option<String>)]) {
    let indentation = |code: &str| code.len() - code.trim_start().len();
    let mut i = 0;
    while i < lines.len() {
        let margin = indentation(&lines[i].0);
        let run = lines[i..]
            .iter()
            .take_while(|(code, comment)| {
                comment.is_some() && !code.trim().is_empty() && indentation(code) == margin
            })
            .count();
        let width = lines[i..i + run].iter().map(|(code, _)| code.chars().count()).max().unwrap_or(0);
        if run > 1 && width < WIDTH {
            for (code, _) in &mut lines[i..i + run] {
                let missing = width.saturating_sub(code.chars().count());
                code.push_str(&" ".repeat(missing));
            }
        }
        i += run.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(args: usize) -> Doc {
        let parts = (0..args).map(|i| text(format!("argument{i}{}", if i + 1 < args { "," } else { "" })));
        group(vec![text("f("), nest(concat(vec![Doc::Soft, fill(parts.collect())])), text(")")])
    }

    #[test]
    fn what_fits_stays_on_its_line() {
        assert_eq!(render(&call(3)), "f(argument0, argument1, argument2)\n");
    }

    #[test]
    fn what_does_not_fit_is_filled_and_within_the_width() {
        let out = render(&call(30));
        assert!(out.starts_with("f(\n    argument0, argument1,"), "{out}");
        assert!(out.ends_with("argument29)\n"), "{out}");
        assert!(out.lines().all(|l| l.chars().count() <= WIDTH), "{out}");
        assert!(out.lines().count() > 3);
    }

    #[test]
    fn comments_of_neighbours_are_aligned() {
        let line = |code: &str, c: &str| concat(vec![text(code), Doc::Comment(c.into()), Doc::Hard]);
        let doc = concat(vec![line("a", "// 1"), line("long", "// 2"), text("x")]);
        assert_eq!(render(&doc), "a    // 1\nlong // 2\nx\n");
    }
}
