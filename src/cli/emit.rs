//! `pantile emit`: what becomes of an entry.

use super::entry::{Entry, Specialise};
use super::report::{Failure, Session, print};
use super::{Exit, Outcome};
use pantile::driver::{self, Target, compile, native_code, passes};
use pantile::ir::codes;
use pantile::ir::elab::{Library, Request};
use pantile::ir::print as printer;
use pantile::ir::target::{Backend, Targets};
use pantile::runtime::io_words;
use std::path::{Path, PathBuf};

/// Print an entry as the compiler sees it: specialised tile text, LLVM IR, assembly, or its launch contract.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pantile emit gemm.tile::gemm -p T=f16 --stage tile          generics bound, functions inlined
  pantile emit gemm.tile::gemm -p T=f32 --target cpu:x86-64-v3 --stage asm
  pantile emit norm.tile -p T=f32 --stage abi                 parameters, grid and conditions as JSON
  pantile emit norm.tile -p T=f32 --dump-after all -o dumps   what every pass leaves")]
pub struct Args {
    #[arg(value_name = "FILE[::NAME]", value_parser = Entry::parse)]
    entry: Entry,
    /// cpu, cpu:ARCH, interp, or an architecture; several with commas.
    #[arg(long, short, default_value = "cpu", value_delimiter = ',')]
    target: Vec<String>,
    #[arg(long, short, value_enum, default_value_t = Stage::Tile)]
    stage: Stage,
    #[command(flatten)]
    specialise: Specialise,
    /// Write to a file; with `--dump-after`, to files in this folder.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Write what a pass leaves, or what each leaves: into the folder of `-o`, as NN-PASS.tile, .json, .ll or .s.
    #[arg(long, value_name = "PASS|all", conflicts_with = "stage", requires = "output")]
    dump_after: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Stage {
    /// tile text, specialised
    Tile,
    /// LLVM IR
    Llvm,
    /// assembly
    Asm,
    /// the contract with launchers, as JSON
    Abi,
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    let targets = args.specialise.files.load(session)?;
    let library = args.specialise.load(&args.entry.file, session)?;
    let head = driver::entry(&library, args.entry.name.as_deref())?;
    let request = args.specialise.request_only(&head)?;
    if let (Some(wanted), Some(folder)) = (&args.dump_after, &args.output) {
        return dump(args, wanted, folder, &library, &request, &targets, session);
    }
    let mut text = String::new();
    for target in &args.target {
        let arch = arch(target, &targets)?;
        let entry = compile(&library, &request, &arch, &mut session.sources)?;
        session.show(&entry.warnings);
        if args.target.len() > 1 {
            text += &format!("// target {target}\n");
        }
        text += &match args.stage {
            Stage::Tile => printer::print(&entry.program),
            Stage::Abi => serde_json::to_string_pretty(&entry.abi).unwrap_or_default() + "\n",
            Stage::Llvm | Stage::Asm if arch.backend != Backend::Cpu => {
                let message = format!("`{target}` has no LLVM IR and no assembly here");
                return Err(Failure::new(codes::TARGET_ABSENT, message).help("they exist for `--target cpu`"));
            }
            Stage::Llvm => native_code(&entry.program, &arch)?.llvm,
            Stage::Asm => native_code(&entry.program, &arch)?.asm,
        };
    }
    match &args.output {
        None => print(&text),
        Some(path) => std::fs::write(path, text).map_err(|e| {
            Failure::new(codes::FILE_ACCESS, format!("cannot write `{}`: {}", path.display(), io_words(&e)))
        })?,
    }
    Ok(Exit::Fine)
}

/// What passes leave, a file each; a folder for each target where there are several.
fn dump(
    args: &Args,
    wanted: &str,
    folder: &Path,
    library: &Library,
    request: &Request,
    targets: &Targets,
    session: &mut Session,
) -> Outcome {
    for target in &args.target {
        let arch = arch(target, targets)?;
        if wanted != "all" {
            passes::find(wanted, &arch)?;
        }
        let (dumps, warnings) = passes::dumps(library, request, &arch, &mut session.sources)?;
        session.show(&warnings);
        let folder = if args.target.len() > 1 { folder.join(&arch.name) } else { folder.to_path_buf() };
        let failed = |path: &Path, e: std::io::Error| {
            Failure::new(codes::FILE_ACCESS, format!("cannot write `{}`: {}", path.display(), io_words(&e)))
        };
        std::fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
        for (i, d) in dumps.iter().enumerate().filter(|(_, d)| wanted == "all" || wanted == d.pass.name) {
            let path = folder.join(format!("{:02}-{}.{}", i + 1, d.pass.name, d.pass.to.extension()));
            std::fs::write(&path, &d.text).map_err(|e| failed(&path, e))?;
            print(&format!("{}\n", path.display()));
        }
    }
    Ok(Exit::Fine)
}

/// Any architecture can be asked for; `cpu` alone is the one of this machine where it is known.
fn arch(target: &str, targets: &Targets) -> Result<pantile::ir::target::Arch, Failure> {
    match target {
        "cpu" => match Target::choose("cpu", None, targets) {
            Ok(d) => Ok(d.arch),
            Err(_) => Ok(targets.arch_for_target("cpu")?.clone()),
        },
        _ => Ok(targets.arch_for_target(target)?.clone()),
    }
}
