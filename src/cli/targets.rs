//! `pantile targets`: what is known of architectures and chips.

use super::report::{Failure, Session, print, print_json, table};
use super::{Exit, Outcome};
use pantile::driver::read_text;
use pantile::ir::codes;
use pantile::ir::target::{Arch, Chip, Entry, Targets, UserFile};
use std::path::PathBuf;

/// List targets, or show all that is known of one, each value with its source.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pantile targets                    every architecture and chip
  pantile targets sm_90a             one of them in full
  pantile targets --json S5000       the same as data")]
pub struct Args {
    /// An architecture or chip.
    name: Option<String>,
    #[command(flatten)]
    files: Files,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Targets of the user, beside those that ship.
#[derive(clap::Args)]
pub struct Files {
    /// Read more targets from a file; it may change those that ship. May be given more than once.
    #[arg(id = "target_files", long = "targets", value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Files {
    pub fn load(&self, session: &mut Session) -> Result<Targets, Failure> {
        let read = |path: &PathBuf| Ok(UserFile { path: path.clone(), text: read_text(path)? });
        let files = self.files.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
        Ok(Targets::with_user(&files, &mut session.sources)?)
    }
}

#[derive(serde::Serialize)]
struct Row {
    kind: &'static str,
    name: String,
    backend: String,
    default: bool,
    note: String,
}

#[derive(serde::Serialize)]
struct Fact {
    key: String,
    value: String,
    source: String,
    mark: String,
    /// The architecture or chip that states it.
    owner: String,
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    let targets = args.files.load(session)?;
    match &args.name {
        None => list(args, &targets),
        Some(name) => show(args, &targets, name)?,
    }
    Ok(Exit::Fine)
}

fn list(args: &Args, targets: &Targets) {
    let rows: Vec<Row> = targets.archs().map(arch_row).chain(targets.chips().map(chip_row)).collect();
    if args.json {
        return print_json(&rows);
    }
    let section = |kind: &str, title: [&str; 3]| {
        let head = title.map(str::to_string).to_vec();
        let body = rows.iter().filter(|r| r.kind == kind).map(|r| {
            let star = if r.default { " *" } else { "" };
            vec![r.name.clone(), format!("{}{star}", r.backend), r.note.clone()]
        });
        table(&std::iter::once(head).chain(body).collect::<Vec<_>>())
    };
    let archs = section("architecture", ["architecture", "back end", "note"]);
    let chips = section("chip", ["chip", "architecture", "note"]);
    print(&format!("{archs}\n* what the back end's name alone means\n\n{chips}"));
}

fn arch_row(a: &Arch) -> Row {
    Row {
        kind: "architecture",
        name: a.name.clone(),
        backend: a.backend.name().to_string(),
        default: a.default,
        note: a.note.clone().unwrap_or_default(),
    }
}

fn chip_row(c: &Chip) -> Row {
    Row { kind: "chip", name: c.name.clone(), backend: c.arch.clone(), default: false, note: c.title.clone() }
}

fn show(args: &Args, targets: &Targets, name: &str) -> Result<(), Failure> {
    let entries = match (targets.arch(name), targets.chip(name)) {
        (Some(arch), _) => arch.describe(),
        (None, Some(chip)) => chip.describe(),
        (None, None) => return Err(unknown(targets, name)),
    };
    let facts: Vec<Fact> = entries.iter().map(fact).collect();
    if args.json {
        print_json(&facts);
        return Ok(());
    }
    print(&facts_table(name, &facts));
    Ok(())
}

/// Sources are long and shared by many values, so they stand below by number.
fn facts_table(name: &str, facts: &[Fact]) -> String {
    let mut sources: Vec<&str> = Vec::new();
    let mut rows = vec![["key", "value", "known", "source", ""].map(str::to_string).to_vec()];
    for f in facts {
        let at = sources.iter().position(|s| *s == f.source).unwrap_or_else(|| {
            sources.push(&f.source);
            sources.len() - 1
        });
        let from = if f.owner == name { String::new() } else { format!("from {}", f.owner) };
        rows.push(vec![f.key.clone(), f.value.clone(), f.mark.clone(), format!("[{}]", at + 1), from]);
    }
    let list: String = sources.iter().enumerate().map(|(i, s)| format!("[{}] {s}\n", i + 1)).collect();
    format!("{}\n{list}", table(&rows))
}

fn fact(e: &Entry) -> Fact {
    Fact {
        key: e.key.clone(),
        value: e.value.clone(),
        source: e.source.clone(),
        mark: e.mark.to_string(),
        owner: e.owner.clone(),
    }
}

fn unknown(targets: &Targets, name: &str) -> Failure {
    match targets.arch_for_target(name) {
        Err(d) => d.into(),
        Ok(_) => Failure::new(codes::UNKNOWN_TARGET, format!("`{name}` is a back end, not an architecture"))
            .help("name one of its architectures"),
    }
}
