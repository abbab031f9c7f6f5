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
use std::borrow::Cow;

/// What a pass left.
pub struct Dump {
    pub pass: &'static Pass,
    pub text: String,
    /// How a file of it ends.
    pub extension: &'static str,
}

/// What passes left, as far as they came.
#[derive(Default)]
pub struct Dumps {
    pub list: Vec<Dump>,
    pub warnings: Diagnostics,
    /// Why a pass after the last of the list could not, or why what the last left is no program.
    pub stopped: Option<Diagnostics>,
}

impl Dumps {
    /// All of them, or what stopped them.
    pub fn whole(self) -> Result<(Vec<Dump>, Diagnostics), Diagnostics> {
        match self.stopped {
            Some(errors) => Err(errors),
            None => Ok((self.list, self.warnings)),
        }
    }
}

/// Runs the passes of the architecture's back end on an entry, all or up to a named one, and gives what each left.
pub fn dumps(
    library: &Library,
    request: &Request,
    arch: &Arch,
    last: Option<&str>,
    sources: &mut Sources,
) -> Result<Dumps, Diagnostics> {
    let done = elab::elaborate(library, request, arch, sources)?;
    let mut dumps = after_specialise(&done.program, arch, last);
    let later = std::mem::replace(&mut dumps.warnings, done.warnings);
    dumps.warnings.extend(later);
    Ok(dumps)
}

/// The same from a specialised program on. Every program is verified and read back from its text.
pub fn after_specialise(program: &Program, arch: &Arch, last: Option<&str>) -> Dumps {
    let mut steps = Steps { start: program, current: Cow::Borrowed(program), arch, code: None };
    let mut dumps = Dumps::default();
    for pass in of(arch.backend) {
        let mut dump = Dump { pass, text: String::new(), extension: pass.to.extension() };
        let made = steps.take(&mut dump);
        // a program that is refused is what its reader must see
        if made.is_ok() || !dump.text.is_empty() {
            dumps.list.push(dump);
        }
        match made {
            Ok(warnings) => dumps.warnings.extend(warnings),
            Err(errors) => {
                dumps.stopped = Some(errors);
                break;
            }
        }
        if last == Some(pass.name) {
            break;
        }
    }
    dumps
}

/// One program on its way through the passes.
struct Steps<'a> {
    start: &'a Program,
    current: Cow<'a, Program>,
    arch: &'a Arch,
    /// what the processor's own steps leave, made once
    code: Option<super::NativeCode>,
}

impl Steps<'_> {
    /// Runs one pass and writes what it leaves as text, then checks that.
    fn take(&mut self, left: &mut Dump) -> Result<Diagnostics, Diagnostics> {
        let pass = left.pass;
        if let Some(run) = pass.run {
            let before = std::mem::replace(&mut self.current, Cow::Borrowed(self.start));
            self.current = Cow::Owned(run(before.into_owned(), &Cx { arch: self.arch })?);
        }
        match pass.to {
            Form::Source | Form::Program(_) => {
                left.text = print(&self.current);
                let info = verify(&self.current, self.arch)?;
                reads_back(&self.current, &left.text, self.arch, pass)?;
                if pass.name == "verify" {
                    return Ok(info.warnings);
                }
            }
            Form::Contract => {
                let abi =
                    pantile_passes::abi::describe(self.start).map_err(|d| Diagnostics::from_iter([d]))?;
                left.text = serde_json::to_string_pretty(&abi).unwrap_or_default() + "\n";
            }
            Form::Code => {
                let source = super::code::source(&self.current, self.arch)?;
                (left.text, left.extension) = (source.text, source.extension);
            }
            Form::Llvm | Form::Assembly => {
                if self.code.is_none() {
                    self.code = Some(super::native_code(self.start, self.arch)?);
                }
                if let Some(c) = &self.code {
                    let of_pass = match pass.name {
                        "lower" => &c.lowered,
                        "optimize" => &c.llvm,
                        _ => &c.asm,
                    };
                    left.text.clone_from(of_pass);
                }
            }
        }
        Ok(Diagnostics::new())
    }
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
