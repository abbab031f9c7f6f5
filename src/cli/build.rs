//! `pantile build`: kernels as objects and shared libraries for programs in C and for the runtime.

use super::emit::arch;
use super::entry::{Entry, Specialise};
use super::report::{Failure, Session};
use super::{Exit, Outcome};
use pantile::driver::{self, NativeObject, compile, native_object};
use pantile::ir::codes;
use pantile::ir::target::Backend;
use pantile::runtime::files::{self, check_place};
use pantile::runtime::io_words;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Build an entry for processors: an object, a shared library with its description, a C header.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pantile build gemm.tile::gemm -p T=f32 -o gemm.o --header gemm.h
  pantile build gemm.tile::gemm -p T=f32 --target cpu:x86-64-v3 -o gemm.so    and gemm.json beside it
  pantile build gemm.tile::gemm -p T=f32 -o out                               all of them, in a folder")]
pub struct Args {
    #[arg(value_name = "FILE[::NAME]", value_parser = Entry::parse)]
    entry: Entry,
    /// cpu, cpu:ARCH, or an architecture of a processor.
    #[arg(long, short, default_value = "cpu")]
    target: String,
    #[command(flatten)]
    specialise: Specialise,
    /// FILE.o, FILE.so (linked with `cc`, or what CC names; the description goes beside it), or a folder.
    #[arg(long, short)]
    output: PathBuf,
    /// Write a C header: the functions, how they are called, a launcher for each kernel.
    #[arg(long, value_name = "FILE.h")]
    header: Option<PathBuf>,
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    let targets = args.specialise.files.load(session)?;
    let library = args.specialise.load(&args.entry.file, session)?;
    let head = driver::entry(&library, args.entry.name.as_deref())?;
    let request = args.specialise.request_only(&head)?;
    let arch = arch(&args.target, &targets)?;
    if arch.backend != Backend::Cpu {
        let message = format!("`{}` is no processor, and objects are for those", args.target);
        return Err(Failure::new(codes::TARGET_ABSENT, message)
            .help("build for `--target cpu`; `pantile emit --stage source` gives a GPU's source"));
    }
    let places = Places::of(args, head.name)?;
    let compiled = compile(&library, &request, &arch, &mut session.sources)?;
    session.show(&compiled.warnings);
    let made = native_object(&compiled, &arch)?;
    places.write(&made)?;
    Ok(Exit::Fine)
}

/// What is asked for, and where it goes.
#[derive(Default)]
struct Places {
    object: Option<PathBuf>,
    library: Option<PathBuf>,
    header: Option<PathBuf>,
}

impl Places {
    fn of(args: &Args, name: &str) -> Result<Places, Failure> {
        let mut places = Places { header: args.header.clone(), ..Places::default() };
        let output = &args.output;
        match output.extension().and_then(|e| e.to_str()) {
            Some("o") => places.object = Some(output.clone()),
            Some("so") => places.library = Some(output.clone()),
            None => {
                std::fs::create_dir_all(output).map_err(|e| refused(output, &e))?;
                let file = |ending: &str| Some(output.join(format!("{name}.{ending}")));
                places.object = file("o");
                places.library = file("so");
                places.header = places.header.or_else(|| file("h"));
            }
            Some(_) => {
                let message = format!("`{}` says no form that is built", output.display());
                return Err(
                    Failure::new(codes::USAGE, message).help("end it in `.o` or `.so`, or name a folder")
                );
            }
        }
        for place in [&places.object, &places.library, &places.header].into_iter().flatten() {
            check_place(place)?;
        }
        Ok(places)
    }

    fn write(&self, made: &NativeObject) -> Result<(), Failure> {
        let put = |path: &Path, bytes: &[u8]| files::put(path, bytes).map_err(|e| refused(path, &e));
        if let Some(path) = &self.object {
            put(path, &made.object)?;
        }
        if let Some(path) = &self.header {
            put(path, made.header.as_bytes())?;
        }
        if let Some(path) = &self.library {
            let part = path.with_extension(format!("{}.part.o", std::process::id()));
            put(&part, &made.object)?;
            let linked = link(&part, path);
            // it was only needed for the linker
            let _ = std::fs::remove_file(&part);
            linked?;
            let description = serde_json::to_string_pretty(&made.program).unwrap_or_default() + "\n";
            put(&path.with_extension("json"), description.as_bytes())?;
        }
        Ok(())
    }
}

/// By the system's C compiler, which knows its linker.
fn link(object: &Path, library: &Path) -> Result<(), Failure> {
    let cc = std::env::var("CC").ok().filter(|s| !s.is_empty()).unwrap_or_else(|| "cc".into());
    let ran = Command::new(&cc).arg("-shared").arg("-o").arg(library).arg(object).output();
    let help = "set CC to a C compiler, or build an object with `-o FILE.o` and link it elsewhere";
    match ran {
        Err(e) => {
            let message =
                format!("no shared library without a linker: `{cc}` does not run: {}", io_words(&e));
            Err(Failure::new(codes::TARGET_ABSENT, message).help(help))
        }
        Ok(done) if !done.status.success() => {
            let said = String::from_utf8_lossy(&done.stderr);
            let first = said.lines().next().unwrap_or("it does not say why").to_string();
            Err(Failure::new(codes::TARGET_ABSENT, format!("`{cc}` cannot link: {first}")).help(help))
        }
        Ok(_) => Ok(()),
    }
}

fn refused(path: &Path, e: &std::io::Error) -> Failure {
    Failure::new(codes::FILE_ACCESS, format!("cannot write `{}`: {}", path.display(), io_words(e)))
}
