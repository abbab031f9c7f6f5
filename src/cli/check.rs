//! `pantile check`: is every item of a file one, on every target?

use super::entry::{Entry, Specialise};
use super::report::{Failure, Session, print, print_json};
use super::{Exit, Outcome};
use pantile::driver::{self, Meaning, MeaningOptions, Skipped, compile, keep_meaning, passes};
use pantile::ir::diag::Diagnostics;
use pantile::ir::elab::{Library, check_all, tests};
use pantile::ir::program::Program;
use pantile::ir::span::Sources;
use pantile::ir::target::{Arch, Targets};
use pantile::ir::verify::verify;

/// Check kernels without running them: types, shapes, regions, races, limits of targets.
///
/// Generic items are checked for the types that their generics admit and for the constants that launches and tests of
/// the file use. Without `--target`, every shipped architecture is checked.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pantile check gemm.tile
  pantile check gemm.tile::gemm -p T=f16 -p BM=64 --target sm_90a,cpu
  pantile check kernels/*.tile --error-format=short
  pantile check gemm.tile --target sm_80 --passes     every pass: what it leaves, and that it means the same")]
pub struct Args {
    #[arg(required = true, value_name = "FILE[::NAME]", value_parser = Entry::parse)]
    entries: Vec<Entry>,
    /// Architectures or back ends, with commas.
    #[arg(long, short, value_delimiter = ',')]
    target: Vec<String>,
    /// Also run every pass of each target, and check what each leaves: it reads back, and gives the results of its
    /// input in the file's tests, on the interpreter.
    #[arg(long)]
    passes: bool,
    /// With `--passes`, how many cases of each test are run: small ones; 0 only checks what passes leave.
    #[arg(long, requires = "passes", value_name = "N", default_value_t = 3)]
    cases: usize,
    /// With `--passes`, run every case of the tests.
    #[arg(long, requires = "passes", conflicts_with = "cases")]
    all_cases: bool,
    /// With `--passes`, statements that one run of a case may take on the interpreter; a longer one is skipped, and that
    /// is said.
    #[arg(long, requires = "passes", value_name = "N", default_value_t = MeaningOptions::default().steps)]
    max_steps: u64,
    #[command(flatten)]
    specialise: Specialise,
    /// Print JSON: files, targets, numbers of errors and warnings.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Shown {
    files: Vec<String>,
    targets: Vec<String>,
    errors: usize,
    warnings: usize,
    /// Cases of tests that gave the same before and after every pass.
    cases: usize,
    /// Cases that a pass changed, or made stop.
    cases_failed: usize,
    /// Cases that could not be compared, with the reason.
    skipped: Vec<Skipped>,
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    let targets = args.specialise.files.load(session)?;
    let archs = archs(&args.target, &targets)?;
    let mut all = Diagnostics::new();
    let mut meaning = Meaning::default();
    for entry in &args.entries {
        match args.specialise.load(&entry.file, session) {
            Err(f) => all.extend(f.diagnostics),
            Ok(library) => {
                all.extend(match entry.name.is_none() && args.specialise.is_plain() {
                    true => whole(&library, &archs, args.passes, session),
                    false => one(args, entry, &library, &archs, session)?,
                });
                if args.passes && !all.has_errors() {
                    keeps_meaning(args, entry, &library, &archs, &mut meaning, session);
                }
            }
        }
    }
    all.extend(std::mem::take(&mut meaning.found));
    session.show(&all);
    let errors = all.iter().filter(|d| d.is_error()).count();
    let shown = Shown {
        files: args.entries.iter().map(|e| e.file.display().to_string()).collect(),
        targets: archs.iter().map(|a| a.name.clone()).collect(),
        errors,
        warnings: all.len() - errors,
        cases: meaning.compared,
        cases_failed: meaning.failed,
        skipped: meaning.skipped,
    };
    if args.json {
        print_json(&shown);
    } else {
        let ran = cases_text(&shown);
        if errors == 0 {
            let ran = if ran.is_empty() { ran } else { format!("; {ran}") };
            print(&format!("fine for {}{ran}\n", shown.targets.join(", ")));
        } else if !ran.is_empty() {
            print(&format!("{ran}\n"));
        }
        print(&skipped_text(&shown.skipped));
    }
    Ok(if errors > 0 { Exit::Mistake } else { Exit::Fine })
}

fn archs(wanted: &[String], targets: &Targets) -> Result<Vec<Arch>, Failure> {
    if wanted.is_empty() {
        return Ok(targets.archs().cloned().collect());
    }
    let mut archs = Vec::new();
    for target in wanted {
        archs.push(targets.arch_for_target(target)?.clone());
    }
    Ok(archs)
}

/// Every item, and the tests.
fn whole(library: &Library, archs: &[Arch], all_passes: bool, session: &mut Session) -> Diagnostics {
    let archs: Vec<&Arch> = archs.iter().collect();
    let mut judge = |program: &Program, arch: &Arch, _: &Sources| match verify(program, arch) {
        Ok(_) if all_passes => {
            let dumps = passes::after_specialise(program, arch, None);
            dumps.stopped.unwrap_or(dumps.warnings)
        }
        Ok(info) => info.warnings,
        Err(found) => found,
    };
    let mut found = check_all(library, &archs, &mut session.sources, &mut judge);
    if let Err(more) = tests(library, &mut session.sources) {
        found.extend(more);
    }
    found
}

/// One entry as asked for.
fn one(
    args: &Args,
    entry: &Entry,
    library: &Library,
    archs: &[Arch],
    session: &mut Session,
) -> Result<Diagnostics, Failure> {
    let head = driver::entry(library, entry.name.as_deref())?;
    let request = args.specialise.request_only(&head)?;
    let mut found = Diagnostics::new();
    for arch in archs {
        if args.passes {
            let dumps = passes::dumps(library, &request, arch, None, &mut session.sources);
            match dumps.and_then(passes::Dumps::whole) {
                Ok((_, warnings)) => found.extend(warnings),
                Err(errors) => found.extend(errors),
            }
            continue;
        }
        match compile(library, &request, arch, &mut session.sources) {
            Ok(done) => found.extend(done.warnings),
            Err(errors) => found.extend(errors),
        }
    }
    Ok(found)
}

/// Runs cases of the file's tests before and after every pass; those of the named entry where one is named.
fn keeps_meaning(
    args: &Args,
    entry: &Entry,
    library: &Library,
    archs: &[Arch],
    told: &mut Meaning,
    session: &mut Session,
) {
    // faults of tests themselves are told by the check of the whole file
    let Ok(mut cases) = tests(library, &mut session.sources) else { return };
    cases.retain(|c| entry.name.as_ref().is_none_or(|n| *n == c.request.entry));
    let options = MeaningOptions { cases: (!args.all_cases).then_some(args.cases), steps: args.max_steps };
    for arch in archs {
        let more = keep_meaning(library, &cases, arch, options, &mut session.sources);
        told.compared += more.compared;
        told.failed += more.failed;
        told.skipped.extend(more.skipped);
        told.found.extend(more.found);
    }
}

/// `3 cases of tests give the same after every pass, 1 does not, 2 were skipped`; empty where none was run.
fn cases_text(shown: &Shown) -> String {
    let mut parts = Vec::new();
    match shown.cases {
        0 => {}
        1 => parts.push("1 case of tests gives the same after every pass".to_string()),
        n => parts.push(format!("{n} cases of tests give the same after every pass")),
    }
    match shown.cases_failed {
        0 => {}
        1 => parts.push("1 does not".into()),
        n => parts.push(format!("{n} do not")),
    }
    match shown.skipped.len() {
        0 => {}
        1 => parts.push("1 was skipped".into()),
        n => parts.push(format!("{n} were skipped")),
    }
    parts.join(", ")
}

/// Skipped cases, those of one test for one reason on a line.
fn skipped_text(skipped: &[Skipped]) -> String {
    let mut groups: Vec<(&Skipped, usize)> = Vec::new();
    for s in skipped {
        let same = |o: &Skipped| (&o.test, &o.target, &o.why) == (&s.test, &s.target, &s.why);
        match groups.iter_mut().find(|(o, _)| same(o)) {
            Some((_, n)) => *n += 1,
            None => groups.push((s, 1)),
        }
    }
    let line = |(s, n): (&Skipped, usize)| {
        let case = match (n, s.case.as_str()) {
            (1, "") => String::new(),
            (1, case) => format!(" ({case})"),
            (n, _) => format!(" ({n} cases)"),
        };
        format!("  skipped `{}`{case} for {}: {}\n", s.test, s.target, s.why)
    };
    groups.into_iter().map(line).collect()
}
