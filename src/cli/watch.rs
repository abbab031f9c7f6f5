//! `pantile watch`: what a change of the text does to the facts, at every save.

use super::emit::{Job, Stage, arch};
use super::entry::{Entry, Specialise};
use super::report::{Failure, Session, print, takes_output};
use super::unified::unified;
use super::{Exit, Outcome};
use pantile::driver;
use pantile::ir::codes;
use pantile::ir::span::Sources;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Emit an entry again whenever its file is saved, and show how its facts changed. Ctrl-C ends it, or a standard output
/// that is closed.
///
/// Without a name, the file must hold one kernel or op. Errors are shown, and the next save is waited for. Files that
/// the text uses are watched too.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pantile watch gemm.tile::gemm -p T=f16 --target cuda:sm_80
  pantile watch gemv.tile::gemv -p T=f16 --target cuda,musa -o out     and the sources, written anew each time")]
pub struct Args {
    #[arg(value_name = "FILE[::NAME]", value_parser = Entry::parse)]
    entry: Entry,
    /// cuda, cuda:ARCH, musa, musa:ARCH, or an architecture; several with commas.
    #[arg(long, short, required = true, value_delimiter = ',')]
    target: Vec<String>,
    #[command(flatten)]
    specialise: Specialise,
    /// Write the sources into this folder, with one for each target where there are several.
    #[arg(long, short, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Milliseconds between looks at the files.
    #[arg(long, default_value_t = 200, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=60_000))]
    every: u64,
}

/// When a file was written and how long it is: some clocks are coarser than an editor is quick.
type Mark = Option<(SystemTime, u64)>;

fn mark(path: &Path) -> Mark {
    let data = std::fs::metadata(path).ok()?;
    Some((data.modified().ok()?, data.len()))
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    if !args.entry.file.exists() {
        let message = format!("there is no file `{}`", args.entry.file.display());
        return Err(Failure::new(codes::FILE_MISSING, message));
    }
    let out = super::emit::Out::of(args.output.as_deref(), true)?;
    let mut before: BTreeMap<String, String> = BTreeMap::new();
    loop {
        session.sources = Sources::default();
        // taken before the files are read, so that a save in between is seen
        let own = mark(&args.entry.file);
        if let Err(failure) = once(args, &out, &mut before, session) {
            session.report(&failure);
        }
        let mut watched = BTreeMap::from([(args.entry.file.clone(), own)]);
        for (_, file) in session.sources.files() {
            if let Some(path) = &file.path {
                watched.entry(path.clone()).or_insert_with(|| mark(path));
            }
        }
        if !takes_output() {
            return Ok(Exit::Fine);
        }
        while watched.iter().all(|(path, seen)| mark(path) == *seen) {
            std::thread::sleep(Duration::from_millis(args.every));
        }
    }
}

/// Facts for every target, and what changed in them.
fn once(
    args: &Args,
    out: &super::emit::Out,
    before: &mut BTreeMap<String, String>,
    session: &mut Session,
) -> Result<Exit, Failure> {
    let targets = args.specialise.files.load(session)?;
    let library = args.specialise.load(&args.entry.file, session)?;
    let head = driver::entry(&library, args.entry.name.as_deref())?;
    let request = args.specialise.request_only(&head)?;
    for target in &args.target {
        let job = Job { library: &library, request: &request, target, arch: arch(target, &targets)? };
        let facts = String::from_utf8_lossy(&job.make(Stage::Facts, session)?.bytes).into_owned();
        if out.is_disk() {
            let source = job.make(Stage::Source, session)?;
            let folder = if args.target.len() > 1 { job.arch.name.as_str() } else { "" };
            let name = format!("{}.{}", head.name, source.extension);
            out.put(&Path::new(folder).join(name), &source.bytes)?;
        }
        match before.insert(target.clone(), facts.clone()) {
            None => print(&format!("{target}:\n{facts}")),
            Some(old) if old == facts => print(&format!("{target}: the same facts\n")),
            Some(old) => print(&unified(&format!("{target} before"), &old, &format!("{target} now"), &facts)),
        }
    }
    Ok(Exit::Fine)
}
