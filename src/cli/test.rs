//! `pantile test`: the `test` blocks of files.

use super::entry::{MOST_THREADS, On};
use super::report::{Failure, Session, print, print_json};
use super::targets::Files;
use super::{Exit, Outcome};
use pantile::driver::{self, Target, Verdict, run_case};
use pantile::ir::codes;
use pantile::ir::diag::Diagnostics;
use pantile::ir::elab::{Library, TestCase, tests};
use pantile::ir::span::Sources;
use pantile::ir::target::{Backend, Targets};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Run the `test` blocks of files.
///
/// A test is run for every combination of its dims, types and params, several at a time. Exit code 2 means that a result is wrong, 1 that
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
    /// How many cases run at a time; one a core where not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST_THREADS))]
    jobs: Option<u16>,
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
    let target = Target::choose(&args.on.target, args.on.as_arch.as_deref(), &targets)?
        .after(args.on.after.as_deref())?;
    let mut count = Count::default();
    if target.backend == Backend::Cpu {
        session.warn_of_cache();
    }
    for file in &args.files {
        match load(args, file, session) {
            Ok((library, cases)) => {
                let ctx = Ctx { args, file, library: &library, target: &target, targets: &targets };
                ctx.all(&cases, &mut count, session)?;
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

/// What became of a case, and the texts with the calls that its diagnostics point into, where it has some to show.
type Ran = (Result<Verdict, Diagnostics>, Option<Sources>);

/// As much as the main thread usually has: elaboration and code generation walk nested expressions.
const STACK: usize = 16 << 20;

impl Ctx<'_> {
    /// Runs the cases that are for this target on several threads, and tells of them in their order.
    fn all(&self, cases: &[TestCase], count: &mut Count, session: &mut Session) -> Result<(), Failure> {
        let (mine, others): (Vec<_>, Vec<_>) = cases.iter().partition(|c| self.is_for_target(c));
        count.skipped += others.len();
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let jobs = self.args.jobs.map_or(cores, usize::from).min(mine.len());
        let base = session.sources.clone();
        let next = AtomicUsize::new(0);
        let (send, receive) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                let (send, mine, next, mut sources) = (send.clone(), &mine, &next, base.clone());
                let work = move || {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = mine.get(at) else { return };
                        if send.send((at, self.run(case, &mut sources))).is_err() {
                            return;
                        }
                    }
                };
                let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
                thread.map_err(|e| {
                    Failure::new(codes::TEST, format!("the system gives no thread to run tests on: {e}"))
                        .help("run fewer at a time: `--jobs 1`")
                })?;
            }
            drop(send);
            let (mut waiting, mut told) = (BTreeMap::new(), 0);
            for (at, ran) in receive {
                waiting.insert(at, ran);
                while let Some(ran) = waiting.remove(&told) {
                    self.tell(mine[told], ran, count, session);
                    told += 1;
                }
            }
            Ok(())
        })
    }

    fn is_for_target(&self, case: &TestCase) -> bool {
        let mine = |n: &String| n == self.target.backend.name() || *n == self.target.arch.name;
        case.only.is_empty() || case.only.iter().any(mine)
    }

    fn run(&self, case: &TestCase, sources: &mut Sources) -> Ran {
        let verdict = run_case(self.library, case, self.target, self.targets, &self.args.search, sources);
        let seen = verdict.is_err().then(|| sources.clone());
        (verdict, seen)
    }

    fn tell(&self, case: &TestCase, (verdict, seen): Ran, count: &mut Count, session: &mut Session) {
        let Ctx { args, target, .. } = *self;
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
                Err(d) => {
                    if let Some(seen) = seen {
                        session.sources = seen;
                    }
                    session.show(d);
                }
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
