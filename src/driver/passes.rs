//! The passes one by one: each run, what it leaves as text, and the check of that.

use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::elab::{self, Library, Request};
use pantile_ir::print::print;
use pantile_ir::program::{Program, Stage};
use pantile_ir::span::{Sources, Span};
use pantile_ir::target::Arch;
use pantile_ir::verify::verify;
use pantile_passes::pipeline::Cx;
pub use pantile_passes::pipeline::{Form, PASSES, Pass, of};

/// What a pass left.
pub struct Dump {
    pub pass: &'static Pass,
    pub text: String,
    /// How a file of it ends.
    pub extension: &'static str,
}

/// Runs every pass of the architecture's back end on an entry, and gives what each left.
pub fn dumps(
    library: &Library,
    request: &Request,
    arch: &Arch,
    sources: &mut Sources,
) -> Result<(Vec<Dump>, Diagnostics), Diagnostics> {
    let done = elab::elaborate(library, request, arch, sources)?;
    let (dumps, more) = after_specialise(&done.program, arch)?;
    let mut warnings = done.warnings;
    warnings.extend(more);
    Ok((dumps, warnings))
}

/// The same from a specialised program on. Every program is verified and read back from its text.
pub fn after_specialise(program: &Program, arch: &Arch) -> Result<(Vec<Dump>, Diagnostics), Diagnostics> {
    let mut warnings = Diagnostics::new();
    let mut dumps = Vec::new();
    let mut code = None;
    let mut current = std::borrow::Cow::Borrowed(program);
    for pass in of(arch.backend) {
        if let Some(run) = pass.run {
            current = std::borrow::Cow::Owned(run(current.into_owned(), &Cx { arch })?);
        }
        let mut extension = pass.to.extension();
        let text = match (pass.name, pass.to) {
            (_, Form::Source | Form::Program(_)) => {
                let info = verify(&current, arch)?;
                if pass.name == "verify" {
                    warnings.extend(info.warnings);
                }
                let text = print(&current);
                reads_back(&current, &text, arch, pass)?;
                text
            }
            (_, Form::Contract) => {
                let abi = pantile_passes::abi::describe(program).map_err(|d| Diagnostics::from_iter([d]))?;
                serde_json::to_string_pretty(&abi).unwrap_or_default() + "\n"
            }
            (_, Form::Code) => {
                let source = super::code::source(&current, arch)?;
                extension = source.extension;
                source.text
            }
            (name, Form::Llvm | Form::Assembly) => {
                if code.is_none() {
                    code = Some(super::native_code(program, arch)?);
                }
                match (name, &code) {
                    ("lower", Some(c)) => c.lowered.clone(),
                    ("optimize", Some(c)) => c.llvm.clone(),
                    (_, Some(c)) => c.asm.clone(),
                    (_, None) => String::new(),
                }
            }
        };
        dumps.push(Dump { pass, text, extension });
    }
    Ok((dumps, warnings))
}

/// A dump is a program: read again it says the same.
fn reads_back(program: &Program, text: &str, arch: &Arch, pass: &Pass) -> Result<(), Diagnostics> {
    let fail = |why: &str| {
        let message = format!("what `{}` leaves cannot be fed back in: {why}", pass.name);
        let d = Diagnostic::error(codes::READ_BACK, program.entry.span, message)
            .help("this is a fault of the compiler; please report it with this file");
        Diagnostics::from_iter([d])
    };
    let mut sources = Sources::default();
    let name = format!("after {}", pass.name);
    let (library, diags) = Library::from_text(&name, text, &mut sources);
    if let Some(d) = diags.iter().find(|d| d.is_error()) {
        return Err(fail(&d.message));
    }
    let request = Request::new(program.entry.name.clone());
    match elab::elaborate(&library, &request, arch, &mut sources) {
        Ok(again) if print(&again.program) == text => Ok(()),
        Ok(_) => Err(fail("it reads as another program")),
        Err(diags) => Err(fail(diags.iter().next().map_or("it is refused", |d| &d.message))),
    }
}

/// The pass of that name, of those that run for the architecture.
pub fn find(name: &str, arch: &Arch) -> Result<&'static Pass, Diagnostic> {
    if let Some(pass) = of(arch.backend).find(|p| p.name == name) {
        return Ok(pass);
    }
    let message = match PASSES.iter().any(|p| p.name == name) {
        true => format!("`{name}` does not run for `{}`", arch.name),
        false => format!("there is no pass `{name}`"),
    };
    let known: Vec<&str> = of(arch.backend).map(|p| p.name).collect();
    Err(Diagnostic::error(codes::USAGE, Span::default(), message).help(format!(
        "for `{}` there are {}; `all` means every one",
        arch.name,
        known.join(", ")
    )))
}

/// The pass of that name, of those that make programs for the architecture.
pub fn find_run(name: &str, arch: &Arch) -> Result<&'static Pass, Diagnostic> {
    let runs = || of(arch.backend).filter(|p| p.run.is_some());
    if let Some(pass) = runs().find(|p| p.name == name) {
        return Ok(pass);
    }
    let known: Vec<&str> = runs().map(|p| p.name).collect();
    let help = match known.as_slice() {
        [] => "name an architecture of threads with `--as`, such as sm_80".to_string(),
        _ => format!("there are {}", known.join(", ")),
    };
    let message = format!("no pass `{name}` makes programs for `{}`", arch.name);
    Err(Diagnostic::error(codes::USAGE, Span::default(), message).help(help))
}

/// What stands after the last pass that leaves the stage.
pub fn at_stage(program: Program, arch: &Arch, stage: Stage) -> Result<Program, Diagnostics> {
    let leaves = |p: &&Pass| p.to == Form::Program(stage);
    match of(arch.backend).filter(|p| p.run.is_some()).filter(leaves).last() {
        Some(pass) => until(program, arch, pass.name),
        None if program.stage == stage => Ok(program),
        None => {
            let message = format!("nothing is made for `{}` between tile text and code", arch.name);
            let d = Diagnostic::error(codes::TARGET_ABSENT, program.entry.span, message)
                .help("later stages exist for architectures of threads, such as sm_80 and mp_31");
            Err(Diagnostics::from_iter([d]))
        }
    }
}

/// What the passes up to and including one make of a verified program; checked as a user's program is.
pub fn until(program: Program, arch: &Arch, last: &str) -> Result<Program, Diagnostics> {
    let mut program = program;
    for pass in of(arch.backend) {
        if let Some(run) = pass.run {
            program = run(program, &Cx { arch })?;
            if pass.name == last {
                break;
            }
        }
    }
    verify(&program, arch)?;
    Ok(program)
}
