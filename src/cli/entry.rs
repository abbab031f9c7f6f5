//! Arguments that several commands share: which entry, which params, which files beside it.

use super::report::{Failure, Session};
use super::targets::Files;
use pantile::driver::{self, Head};
use pantile::ir::codes;
use pantile::ir::elab::{Library, Request, Setting};
use std::path::PathBuf;

/// `FILE` or `FILE::NAME`.
#[derive(Clone)]
pub struct Entry {
    pub file: PathBuf,
    pub name: Option<String>,
}

impl Entry {
    pub fn parse(text: &str) -> Result<Entry, String> {
        match text.rsplit_once("::") {
            Some((file, name)) if !file.is_empty() && pantile::ir::text::is_name(name) => {
                Ok(Entry { file: file.into(), name: Some(name.to_string()) })
            }
            Some((_, name)) => Err(format!("`{name}` is no name; write FILE::NAME")),
            None => Ok(Entry { file: text.into(), name: None }),
        }
    }
}

/// `NAME=VALUE`
pub fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !value.is_empty() && name.split('.').all(pantile::ir::text::is_name) => {
            Ok((name.to_string(), value.to_string()))
        }
        _ => Err("write NAME=VALUE".into()),
    }
}

fn dim(text: &str) -> Result<(String, i64), String> {
    let (name, value) = assignment(text)?;
    match value.parse() {
        Ok(v) if v >= 0 => Ok((name, v)),
        _ => Err(format!("`{value}` is no extent")),
    }
}

/// How an entry is specialised.
#[derive(clap::Args)]
pub struct Specialise {
    /// Give a type, constant, function or param its value: T=f16, D=64, BM=128, E=gelu. May be repeated.
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE", value_parser = assignment)]
    params: Vec<(String, String)>,
    /// Fix a dim that no input has. May be repeated.
    #[arg(long = "dim", value_name = "NAME=N", value_parser = dim)]
    dims: Vec<(String, i64)>,
    /// Where `use` looks after the file's own folder. May be repeated.
    #[arg(long = "search", value_name = "DIR")]
    pub search: Vec<PathBuf>,
    #[command(flatten)]
    pub files: Files,
}

impl Specialise {
    /// What is asked of the entry, and the dims that are no constants of its head.
    pub fn request(&self, head: &Head<'_>) -> (Request, Vec<(String, i64)>) {
        let mut request = Request::new(head.name);
        for (name, value) in &self.params {
            request.params.insert(name.clone(), Setting::parse(value));
        }
        let (consts, dims): (Vec<_>, Vec<_>) =
            self.dims.iter().cloned().partition(|(n, _)| head.has_const(n));
        request.params.extend(consts.into_iter().map(|(n, v)| (n, Setting::Int(v))));
        (request, dims)
    }

    /// What is asked of the entry where nothing is run: only constants of its head have a use.
    pub fn request_only(&self, head: &Head<'_>) -> Result<Request, Failure> {
        let (request, dims) = self.request(head);
        match dims.first() {
            None => Ok(request),
            Some((name, _)) => Err(usage(format!(
                "`{name}` is a dim of the launch, nothing that is asked for depends on it"
            ))),
        }
    }

    pub fn load(&self, file: &std::path::Path, session: &mut Session) -> Result<Library, Failure> {
        Ok(driver::load(file, &self.search, &mut session.sources)?)
    }

    /// Is nothing asked for beyond the file?
    pub fn is_plain(&self) -> bool {
        self.params.is_empty() && self.dims.is_empty()
    }
}

/// Which machine.
#[derive(clap::Args)]
pub struct On {
    /// Where to run: cpu, cpu:ARCH, interp (the reference interpreter), or auto for the first that works here.
    #[arg(long, short, default_value = "auto")]
    pub target: String,
    /// The architecture that the interpreter takes for its own.
    #[arg(long = "as", value_name = "ARCH")]
    pub as_arch: Option<String>,
    /// Let the interpreter run what this pass leaves, with `--as` the architecture whose passes run.
    #[arg(long, value_name = "PASS")]
    pub after: Option<String>,
}

/// More threads than any machine has cores; making as many as a slip of the pen asks for takes minutes.
pub const MOST_THREADS: i64 = 4096;

/// Refuses a combination that clap cannot see.
pub fn usage(message: impl Into<String>) -> Failure {
    Failure::new(codes::USAGE, message)
}
