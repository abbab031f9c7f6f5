//! What the user sees: results on standard output, diagnostics on standard error.

use super::Exit;
use clap::ValueEnum;
use clap::error::ErrorKind as Usage;
use pantile::ir::codes;
use pantile::ir::diag::render::{Style, render_all};
use pantile::ir::diag::{Code, Diagnostic, Diagnostics};
use pantile::ir::span::{Sources, Span};
use pantile::runtime;
use pantile::runtime::cache::{Cache, default_dir, wrong_bound};
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(clap::Args)]
#[command(next_help_heading = "Reporting")]
pub struct Options {
    /// How errors are written: for people with the source, for people in one line each, for programs.
    #[arg(long, global = true, value_enum, default_value_t = ErrorFormat::Human, value_name = "FORM")]
    error_format: ErrorFormat,
    /// When errors are coloured.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    color: Colour,
}

#[derive(Clone, Copy, ValueEnum)]
enum ErrorFormat {
    Human,
    Short,
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

/// Texts that were read and the way to report on them.
pub struct Session {
    pub sources: Sources,
    style: Style,
}

/// Why a command gave up.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub diagnostics: Diagnostics,
}

impl Default for Session {
    fn default() -> Session {
        Session::new(&Options { error_format: ErrorFormat::Human, color: Colour::Auto })
    }
}

impl Session {
    pub fn new(options: &Options) -> Session {
        let coloured = match options.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            }
        };
        let style = match options.error_format {
            ErrorFormat::Human if coloured => Style::Coloured,
            ErrorFormat::Human => Style::Plain,
            ErrorFormat::Short => Style::Short,
            ErrorFormat::Json => Style::Json,
        };
        Session { sources: Sources::default(), style }
    }

    /// Warnings and notes, or the errors of a failure, to standard error.
    pub fn show(&self, diagnostics: &Diagnostics) {
        let text = render_all(diagnostics, &self.sources, self.style);
        // nobody is left to tell that standard error is closed
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    /// One line that does not stop the command.
    pub fn warn(&self, code: Code, message: String) {
        self.show(&Diagnostics::from_iter([Diagnostic::warning(code, Span::default(), message)]));
    }

    /// Says once where built code cannot be kept; the work goes on without.
    pub fn warn_of_cache(&self) {
        if let Some(wrong) = wrong_bound() {
            self.warn(codes::USAGE, format!("{wrong}; the default holds"));
        }
        let (Some(dir), Some(cache)) = (default_dir(), Cache::open()) else { return };
        if let Err(e) = cache.writable() {
            let why = runtime::io_words(&e);
            let message = format!("`{}` cannot be the cache, so nothing built is kept: {why}", dir.display());
            self.warn(codes::FILE_ACCESS, message);
        }
    }

    pub fn report(&self, failure: &Failure) -> Exit {
        self.show(&failure.diagnostics);
        failure.exit
    }
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Diagnostic::error(code, Span::default(), message).into()
    }

    pub fn help(mut self, text: impl Into<String>) -> Failure {
        let text = text.into();
        self.diagnostics = self.diagnostics.into_iter().map(|d| d.help(text.clone())).collect();
        self
    }
}

/// Rules whose remedy is another machine, another build or an installation.
const MISSING: [Code; 3] = [codes::HOST_FEATURE, codes::LIBRARY, codes::TARGET_ABSENT];

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Failure {
        let missing = diagnostics.iter().any(|d| MISSING.contains(&d.code));
        Failure { exit: if missing { Exit::Missing } else { Exit::Mistake }, diagnostics }
    }
}

impl From<Diagnostic> for Failure {
    fn from(d: Diagnostic) -> Failure {
        Diagnostics::from_iter([d]).into()
    }
}

impl From<runtime::Error> for Failure {
    fn from(e: runtime::Error) -> Failure {
        pantile::driver::diagnostic(e).into()
    }
}

/// Prints help and version, or says what is wrong with the command line.
pub fn usage(e: &clap::Error) -> Exit {
    if matches!(e.kind(), Usage::DisplayHelp | Usage::DisplayVersion) {
        note(e.print().and_then(|()| std::io::stdout().flush()));
        return Exit::Fine;
    }
    let json = std::env::args().any(|a| a == "--error-format=json")
        || std::env::args().zip(std::env::args().skip(1)).any(|(a, b)| a == "--error-format" && b == "json");
    if !json {
        let _ = e.print();
        return Exit::Mistake;
    }
    let text = e.render().to_string();
    let message = text.lines().next().unwrap_or("").trim_start_matches("error: ").to_string();
    let d = Diagnostic::error(codes::USAGE, Span::default(), message);
    let line = render_all(&Diagnostics::from_iter([d]), &Sources::default(), Style::Json);
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
    Exit::Mistake
}

/// Standard output is one for the process, and so is what became of it.
static OUTPUT: Mutex<Output> = Mutex::new(Output::Open);

enum Output {
    Open,
    /// The reader has gone (`| head`), which is nobody's mistake.
    Gone,
    /// Why it takes no more.
    Failed(String),
}

fn output() -> MutexGuard<'static, Output> {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a result. Once standard output takes no more, commands go on without it: their exit code tells what they found.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if takes_output() {
        note(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    }
}

fn note(written: std::io::Result<()>) {
    if let Err(e) = written {
        *output() = match e.kind() {
            std::io::ErrorKind::BrokenPipe => Output::Gone,
            _ => Output::Failed(runtime::io_words(&e)),
        };
    }
}

/// Is there still somebody to write results for?
pub fn takes_output() -> bool {
    matches!(*output(), Output::Open)
}

/// The error that results were lost, if they were.
pub fn lost_output() -> Option<Failure> {
    match &*output() {
        Output::Failed(why) => {
            Some(Failure::new(codes::FILE_ACCESS, format!("cannot write to standard output: {why}")))
        }
        Output::Open | Output::Gone => None,
    }
}

/// Writes data for programs, on one line.
pub fn print_json(value: &impl serde::Serialize) {
    // plain data with string keys always has a JSON form
    if let Ok(text) = serde_json::to_string(value) {
        print(&(text + "\n"));
    }
}

/// Columns set apart by two spaces, the last one ragged.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(c, cell)| format!("{cell:<w$}", w = widths[c]));
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
