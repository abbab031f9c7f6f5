//! What compilers of vendors make of a source, where they are on this machine.

use super::make::{Job, Made};
use crate::cli::report::Failure;
use pantile::driver::code::SourceText;
use pantile::ir::codes;
use pantile::ir::target::Backend;
use pantile::runtime::vendor::{EntryFacts, Mcc, Nvrtc, VendorFacts, disassemble, mcc, nvrtc};
use pantile::runtime::{Error, ErrorKind};

/// Something of a vendor is missing: told under the rule of targets that a machine does not have.
fn told(what: &str, job: &Job<'_>, e: Error) -> Failure {
    if e.kind != ErrorKind::Library {
        return e.into();
    }
    let message = format!("no {what} for `{}`: {}", job.target, e.message);
    let failure = Failure::new(codes::TARGET_ABSENT, message);
    match e.help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

fn is_cuda(what: &str, job: &Job<'_>) -> Result<(), Failure> {
    match job.arch.backend {
        Backend::Cuda => Ok(()),
        _ => Err(Failure::new(codes::TARGET_ABSENT, format!("`{}` has no {what}", job.target))
            .help("it exists for CUDA targets; `--stage cubin` is the machine code of any GPU")),
    }
}

fn nvrtc_compiled(source: &SourceText, job: &Job<'_>) -> Result<nvrtc::Compiled, Error> {
    let flags: Vec<&str> = source.flags.iter().map(String::as_str).collect();
    Nvrtc::find()?.compile(&source.text, &job.request.entry, &job.arch.name, &flags)
}

pub fn ptx(source: &SourceText, job: &Job<'_>) -> Result<String, Failure> {
    is_cuda("PTX", job)?;
    Ok(nvrtc_compiled(source, job).map_err(|e| told("PTX", job, e))?.ptx)
}

/// What the vendor's driver loads.
pub fn image(source: &SourceText, job: &Job<'_>) -> Result<Made, Failure> {
    let failed = |e| told("machine code", job, e);
    if job.arch.backend == Backend::Cuda {
        let bytes = nvrtc_compiled(source, job).map_err(failed)?.cubin;
        return Ok(Made { bytes, extension: "cubin" });
    }
    let flags: Vec<&str> = source.flags.iter().map(String::as_str).collect();
    let compiled = Mcc::find()
        .and_then(|m| m.compile(&source.text, &job.request.entry, &job.arch.name, &flags, mcc::LIMIT));
    Ok(Made { bytes: compiled.map_err(failed)?.image, extension: "mubin" })
}

pub fn sass(source: &SourceText, job: &Job<'_>) -> Result<String, Failure> {
    is_cuda("SASS", job)?;
    let cubin = nvrtc_compiled(source, job).map_err(|e| told("SASS", job, e))?.cubin;
    disassemble(&cubin).map_err(|e| told("SASS", job, e))
}

/// Registers, spills and stack of each kernel by its symbol; `unknown` where nothing tells.
pub fn facts(source: &SourceText, job: &Job<'_>) -> impl Fn(&str) -> String {
    let compiled = match job.arch.backend {
        Backend::Cuda => nvrtc_compiled(source, job).map(|c| VendorFacts::parse(&c.log, "")),
        _ => Ok(VendorFacts::default()),
    };
    move |symbol| match &compiled {
        Ok(facts) => resources(facts.entries.iter().find(|e| e.name == symbol)),
        Err(e) if e.kind == ErrorKind::Library => resources(None),
        Err(e) => format!("compiler: {}\n", e.message.lines().next().unwrap_or("refused the source")),
    }
}

fn resources(entry: Option<&EntryFacts>) -> String {
    let known = |n: Option<u32>| n.map_or_else(|| "unknown".to_string(), |n| n.to_string());
    let registers = entry.and_then(|e| e.registers);
    let spills = entry.and_then(|e| Some(e.spill_stores? + e.spill_loads?));
    let stack = entry.and_then(|e| e.stack);
    format!(
        "registers: {}\nspilled bytes: {}\nstack bytes: {}\n",
        known(registers),
        known(spills),
        known(stack)
    )
}
