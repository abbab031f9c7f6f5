//! `pantile emit`: what becomes of an entry.

mod diff;
mod make;
mod out;
mod vendor;

use super::entry::{Entry, Specialise};
use super::report::{Failure, Session, print};
use super::{Exit, Outcome};
pub use make::Job;
pub use make::Stage;
pub use out::Out;
use pantile::driver::{self, Target, passes};
use pantile::ir::target::{Arch, Targets};
use std::path::PathBuf;

/// Print an entry as the compiler sees it: the program at each stage, sources, code, facts, its launch contract.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pantile emit gemm.tile::gemm -p T=f16 --stage tile          generics bound, functions inlined
  pantile emit gemm.tile::gemm -p T=f16 --target cuda:sm_80,musa --stage source
  pantile emit norm.tile -p T=f16 --target cuda:sm_90a --stage facts
  pantile emit gemm.tile::gemm -p T=f32 --target cpu:x86-64-v3 --stage asm
  pantile emit norm.tile -p T=f32 --stage abi                 parameters, grid and conditions as JSON
  pantile emit norm.tile -p T=f32 --target cuda --dump-after all -o dumps   what every pass leaves
  pantile emit norm.tile -p T=f32 --target cuda --diff lower..reduce        what passes changed
  pantile emit norm.tile -p T=f32 --stage source --diff sm_80..mp_31        how two targets differ")]
pub struct Args {
    #[arg(value_name = "FILE[::NAME]", value_parser = Entry::parse)]
    entry: Entry,
    /// cpu, cpu:ARCH, cuda, cuda:ARCH, musa, musa:ARCH, interp, or an architecture; several with commas.
    #[arg(long, short, default_value = "cpu", value_delimiter = ',')]
    target: Vec<String>,
    #[arg(long, short, value_enum, default_value_t = Stage::Tile)]
    stage: Stage,
    #[command(flatten)]
    specialise: Specialise,
    /// Write to a file, or into a folder that is there; a folder with one for each target where there are several,
    /// and with `--dump-after`.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Write what a pass leaves, or what each leaves: into the folder of `-o`, as NN-PASS with the form's ending.
    #[arg(long, value_name = "PASS|all", conflicts_with = "stage", requires = "output")]
    dump_after: Option<String>,
    /// How two things differ, line by line: what two passes leave, or the stage for two targets.
    #[arg(long, value_name = "A..B", value_parser = diff::sides, conflicts_with = "dump_after")]
    diff: Option<(String, String)>,
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    let targets = args.specialise.files.load(session)?;
    let library = args.specialise.load(&args.entry.file, session)?;
    let head = driver::entry(&library, args.entry.name.as_deref())?;
    let request = args.specialise.request_only(&head)?;
    let several = args.target.len() > 1 && args.diff.is_none();
    let out = Out::of(args.output.as_deref(), several || args.dump_after.is_some())?;
    if args.stage == Stage::Cubin && args.diff.is_none() {
        out.takes_bytes()?;
    }
    if let Some(sides) = &args.diff {
        let text = diff::run(args, sides, &library, &request, &targets, session)?;
        return out.put("changes.diff".as_ref(), text.as_bytes()).map(|()| Exit::Fine);
    }
    let mut jobs = Vec::new();
    for target in &args.target {
        jobs.push(Job { library: &library, request: &request, target, arch: arch(target, &targets)? });
    }
    for job in &jobs {
        let folder = if several { PathBuf::from(&job.arch.name) } else { PathBuf::new() };
        if let Some(wanted) = &args.dump_after {
            dump(job, wanted, &folder, &out, session)?;
            continue;
        }
        let made = job.make(args.stage, session)?;
        let text = match several && !out.is_disk() {
            true => [heading(args.stage, job.target).as_bytes(), &made.bytes].concat(),
            false => made.bytes,
        };
        let name = format!("{}.{}", head.name, made.extension);
        out.put(&folder.join(name), &text)?;
    }
    Ok(Exit::Fine)
}

/// A comment, where the text has such.
fn heading(stage: Stage, target: &str) -> String {
    match stage {
        Stage::Facts => format!("target: {target}\n"),
        Stage::Llvm => format!("; target {target}\n"),
        Stage::Asm => format!("# target {target}\n"),
        _ => format!("// target {target}\n"),
    }
}

/// What passes leave, a file each; where one cannot, what those before it left.
fn dump(
    job: &Job<'_>,
    wanted: &str,
    folder: &std::path::Path,
    out: &Out,
    session: &mut Session,
) -> Result<(), Failure> {
    if wanted != "all" {
        passes::find(wanted, &job.arch)?;
    }
    let last = (wanted != "all").then_some(wanted);
    let dumps = passes::dumps(job.library, job.request, &job.arch, last, &mut session.sources)?;
    session.show(&dumps.warnings);
    for (i, d) in dumps.list.iter().enumerate().filter(|(_, d)| wanted == "all" || wanted == d.pass.name) {
        let name = folder.join(format!("{:02}-{}.{}", i + 1, d.pass.name, d.extension));
        let path = out.put_in_folder(&name, d.text.as_bytes())?;
        print(&format!("{}\n", path.display()));
    }
    match dumps.stopped {
        Some(errors) => Err(errors.into()),
        None => Ok(()),
    }
}

/// Any architecture can be asked for; `cpu` alone is the one of this machine where it is known.
pub fn arch(target: &str, targets: &Targets) -> Result<Arch, Failure> {
    match target {
        "cpu" => match Target::choose("cpu", None, targets) {
            Ok(d) => Ok(d.arch),
            Err(_) => Ok(targets.arch_for_target("cpu")?.clone()),
        },
        _ => Ok(targets.arch_for_target(target)?.clone()),
    }
}
