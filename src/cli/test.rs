//! `pantile test`: the `test` blocks of files.

use super::entry::On;
use super::report::{Failure, Session, print, print_json};
use super::targets::Files;
use super::{Exit, Outcome};
use pantile::driver::{self, Target, Verdict, run_case};
use pantile::ir::codes;
use pantile::ir::diag::Diagnostics;
use pantile::ir::elab::{Library, TestCase, tests};
use pantile::ir::target::Targets;
use std::path::{Path, PathBuf};

/// Run the `test` blocks of files.
///
/// A test is run for every combination of its dims, types and params. Exit code 2 means that a result is wrong, 1 that
/// a test could not be run.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pantile test gemm.tile
  pantile test kernels/gemv.tile --only allreduce --target cpu
  pantile test *.tile --json")]
pub struct Args {
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    on: On,
    /// Only tests whose name contains this.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    only: String,
    /// Name every case, not only those that fail.
    #[arg(long, short)]
    verbose: bool,
    /// Where `use` looks after the file's own folder. May be repeated.
    #[arg(long = "search", value_name = "DIR")]
    search: Vec<PathBuf>,
    #[command(flatten)]
    targets: Files,
    /// Print JSON, a case a line.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Row<'a> {
    file: String,
    test: &'a str,
    case: &'a str,
    target: &'a str,
    state: &'a str,
    detail: Vec<String>,
}

#[derive(Default)]
struct Count {
    right: usize,
    wrong: usize,
    /// Cases that could not be run.
    stopped: usize,
    skipped: usize,
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    let targets = args.targets.load(session)?;
    let target = Target::choose(&args.on.target, args.on.as_arch.as_deref(), &targets)?;
    let mut count = Count::default();
    for file in &args.files {
        match load(args, file, session) {
            Ok((library, cases)) => {
                let mut ctx = Ctx { args, file, library: &library, target: &target, targets: &targets };
                cases.iter().for_each(|case| ctx.one(case, &mut count, session));
            }
            Err(f) => {
                session.show(&f.diagnostics);
                count.stopped += 1;
            }
        }
    }
    finish(args, &target, &count)
}

fn load(args: &Args, file: &Path, session: &mut Session) -> Result<(Library, Vec<TestCase>), Failure> {
    let library = driver::load(file, &args.search, &mut session.sources)?;
    let mut cases = tests(&library, &mut session.sources)?;
    cases.retain(|c| c.name.contains(&args.only));
    Ok((library, cases))
}

struct Ctx<'a> {
    args: &'a Args,
    file: &'a Path,
    library: &'a Library,
    target: &'a Target,
    targets: &'a Targets,
}

impl Ctx<'_> {
    fn one(&mut self, case: &TestCase, count: &mut Count, session: &mut Session) {
        let Ctx { args, target, .. } = *self;
        let mine = |n: &String| n == target.backend.name() || *n == target.arch.name;
        if !case.only.is_empty() && !case.only.iter().any(mine) {
            count.skipped += 1;
            return;
        }
        let sources = &mut session.sources;
        let verdict = run_case(self.library, case, target, self.targets, &args.search, sources);
        let (state, detail) = match &verdict {
            Ok(v) if v.holds() => ("right", Vec::new()),
            Ok(v) => ("WRONG", wrong(v)),
            Err(d) => ("stopped", messages(d)),
        };
        match state {
            "right" => count.right += 1,
            "WRONG" => count.wrong += 1,
            _ => count.stopped += 1,
        }
        if args.json {
            let (test, case, target) = (case.name.as_str(), case.label.as_str(), target.backend.name());
            return print_json(&Row {
                file: self.file.display().to_string(),
                test,
                case,
                target,
                state,
                detail,
            });
        }
        if state != "right" || args.verbose {
            let label = if case.label.is_empty() { String::new() } else { format!(" ({})", case.label) };
            print(&format!("{state}: {}{label}\n", case.name));
            match &verdict {
                Err(d) => session.show(d),
                Ok(_) => detail.iter().for_each(|line| print(&format!("    {line}\n"))),
            }
        }
    }
}

fn wrong(v: &Verdict) -> Vec<String> {
    let bad = v.checked.iter().filter(|c| !c.report.is_right());
    bad.map(|c| format!("{}: {}", c.name, c.report)).collect()
}

fn messages(d: &Diagnostics) -> Vec<String> {
    d.iter().map(|d| format!("{}: {}", d.code, d.message)).collect()
}

fn finish(args: &Args, target: &Target, count: &Count) -> Outcome {
    let Count { right, wrong, stopped, skipped } = count;
    if right + wrong + stopped == 0 && args.only.is_empty() && *skipped == 0 {
        return Err(Failure::new(codes::TEST, "there is no test in these files")
            .help("write one beside the kernel: `test NAME { dims N = 33 … }`"));
    }
    if !args.json {
        let skipped = if *skipped > 0 { format!(", {skipped} for other targets") } else { String::new() };
        print(&format!("{}: {right} right, {wrong} wrong, {stopped} stopped{skipped}\n", target.describe()));
    }
    Ok(match (wrong, stopped) {
        (0, 0) => Exit::Fine,
        (0, _) => Exit::Mistake,
        _ => Exit::WrongResult,
    })
}
