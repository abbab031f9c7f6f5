//! Does every pass keep what a program means? Cases of `test` blocks are run on the interpreter before and after each.

use super::arguments::{Input, arguments};
use super::execute::RunError;
use super::passes::of;
use super::reference::{Outputs, default_tolerance, relative};
use super::{Compiled, RunOptions, Target, Value, compile, diagnostic, execute};
use pantile_abi::{DType, Mode, ParamAbi};
use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::elab::{Library, TestCase};
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Backend};
use pantile_ir::verify::verify;
use pantile_passes::pipeline::{Cx, Pass};
use pantile_runtime::HostTensor;
use pantile_runtime::compare::{Tolerance, compare};
use std::collections::BTreeMap;

/// How many cases are run.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeaningOptions {
    /// Every case, not a few small ones of each test.
    pub all: bool,
}

/// Cases of each test that are run where not all are asked for.
const SAMPLE: usize = 3;
/// The product of a case's dims beyond which it is not small.
const SMALL: u64 = 1 << 11;
/// Statements of the interpreter after which a case is given up.
const STEPS: u64 = 400_000_000;

/// Runs cases before and after every pass of the architecture; what is told names the pass and the first wrong output.
/// Returns how many cases were run.
pub fn keep_meaning(
    library: &Library,
    cases: &[TestCase],
    arch: &Arch,
    options: MeaningOptions,
    sources: &mut Sources,
) -> (usize, Diagnostics) {
    let passes: Vec<&Pass> = of(arch.backend).filter(|p| p.run.is_some()).collect();
    all_keep_meaning(&passes, library, cases, arch, options, sources)
}

fn all_keep_meaning(
    passes: &[&Pass],
    library: &Library,
    cases: &[TestCase],
    arch: &Arch,
    options: MeaningOptions,
    sources: &mut Sources,
) -> (usize, Diagnostics) {
    let mut found = Diagnostics::new();
    if passes.is_empty() {
        return (0, found);
    }
    let mine = |c: &&TestCase| {
        c.only.is_empty() || c.only.iter().any(|o| *o == arch.name || o == arch.backend.name())
    };
    let cases: Vec<&TestCase> = cases.iter().filter(mine).collect();
    let cases = if options.all { cases } else { sample(&cases) };
    for case in &cases {
        if let Err(more) = one_case(passes, library, case, arch, sources) {
            found.extend(more);
        }
    }
    (cases.len(), found)
}

/// Of each test: the smallest case that has elements, the largest small one, and one between.
fn sample<'a>(cases: &[&'a TestCase]) -> Vec<&'a TestCase> {
    let size = |c: &TestCase| c.dims.values().fold(1u64, |n, &d| n.saturating_mul(d));
    let mut tests: BTreeMap<(u32, &str), Vec<&TestCase>> = BTreeMap::new();
    for case in cases {
        tests.entry((case.span.start, &case.name)).or_default().push(case);
    }
    let mut all = Vec::new();
    for mut of_test in tests.into_values() {
        of_test.sort_by_key(|c| size(c));
        let first = of_test.iter().position(|c| size(c) > 0).unwrap_or(0);
        let small = of_test.iter().rposition(|c| size(c) <= SMALL).unwrap_or(first).max(first);
        let mut picks: Vec<usize> = (0..SAMPLE).map(|i| first + (small - first) * i / (SAMPLE - 1)).collect();
        picks.dedup();
        all.extend(picks.into_iter().filter_map(|i| of_test.get(i).copied()));
    }
    all
}

fn single(d: Diagnostic) -> Diagnostics {
    Diagnostics::from_iter([d])
}

fn one_case(
    passes: &[&Pass],
    library: &Library,
    case: &TestCase,
    arch: &Arch,
    sources: &mut Sources,
) -> Result<(), Diagnostics> {
    let entry = compile(library, &case.request, arch, sources)?.without_prints();
    let inputs = case.inputs.iter().map(|(n, i)| (n.clone(), Input::Generated(i.clone()))).collect();
    let dims: Vec<(String, i64)> = case.dims.iter().map(|(n, v)| (n.clone(), *v as i64)).collect();
    let before = arguments(&entry, inputs, &dims).map_err(single)?;
    let target = Target { backend: Backend::Interp, arch: arch.clone(), after: None };
    let run = Run { case, target, before };
    // a case that the text itself does not pass is for `pantile test` to tell
    let Ok(mut want) = run.outputs(&entry) else { return Ok(()) };
    let mut current = entry;
    for pass in passes {
        let Some(make) = pass.run else { continue };
        // what a pass refuses by name, the check of the program has told
        let Ok(program) = make(current.program.clone(), &Cx { arch }) else { return Ok(()) };
        verify(&program, arch)?;
        current = Compiled { program, ..current };
        let got = run.outputs(&current).map_err(|found| run.stopped(pass, found))?;
        run.compare(pass, &want, &got)?;
        want = got;
    }
    Ok(())
}

struct Run<'a> {
    case: &'a TestCase,
    target: Target,
    before: Vec<(String, Value)>,
}

impl Run<'_> {
    fn outputs(&self, entry: &Compiled) -> Result<Outputs, Diagnostics> {
        let copy = |v: &Value| match v {
            Value::Tensor(t) => t.try_clone().map(Value::Tensor).map_err(diagnostic),
            Value::Scalar(s) => Ok(Value::Scalar(*s)),
        };
        let copies = self.before.iter().map(|(n, v)| Ok((n.clone(), copy(v)?)));
        let mut args = copies.collect::<Result<Vec<_>, Diagnostic>>().map_err(single)?;
        let options = RunOptions { max_steps: STEPS, ..RunOptions::default() };
        let device = self.target.device(&options).map_err(single)?;
        execute(entry, &mut args, &device).map_err(RunError::into_diagnostics)?;
        let written =
            entry.abi.params.iter().zip(args).filter_map(|(param, (name, value))| match (param, value) {
                (ParamAbi::Tensor(p), Value::Tensor(t)) if p.mode != Mode::In => Some((name, t)),
                _ => None,
            });
        Ok(written.collect())
    }

    /// The test's own tolerance, or 64 roundings; whole numbers are equal.
    fn tolerance(&self, name: &str, dtype: DType, want: &HostTensor) -> Tolerance<'static> {
        let stated = self.case.expects.iter().find(|e| e.tensor == name && !e.exact);
        match stated {
            Some(e) if dtype.is_float() => match e.atol {
                Some(atol) => Tolerance::Close { rtol: e.rtol, atol },
                None => relative(e.rtol, want),
            },
            _ => default_tolerance(dtype, want),
        }
    }

    fn compare(&self, pass: &Pass, want: &Outputs, got: &Outputs) -> Result<(), Diagnostics> {
        for ((name, want), (_, got)) in want.iter().zip(got) {
            let tolerance = self.tolerance(name, want.dtype(), want);
            let report = compare(got, want, tolerance).map_err(|e| single(diagnostic(e)))?;
            if !report.is_right() {
                let message = format!("`{}` changes what the program means: `{name}`: {report}", pass.name);
                return Err(single(self.fault(message)));
            }
        }
        Ok(())
    }

    fn fault(&self, message: String) -> Diagnostic {
        let label =
            if self.case.label.is_empty() { String::new() } else { format!(" ({})", self.case.label) };
        let arch = &self.target.arch.name;
        Diagnostic::error(codes::PASS_MEANING, self.case.span, message)
            .note(format!("in the case `{}`{label} for `{arch}`", self.case.name))
            .help("this is a fault of the compiler; please report it with this file")
    }

    fn stopped(&self, pass: &Pass, found: Diagnostics) -> Diagnostics {
        let why = found.iter().next().map_or_else(String::new, |d| format!("{}: {}", d.code, d.message));
        single(self.fault(format!("what `{}` leaves stops, what it was given does not: {why}", pass.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantile_ir::program::{Program, StmtKind};
    use pantile_ir::target::Targets;

    const TEXT: &str = "\
kernel twice(X: f32[N], Y: out f32[N]) {
    grid ceildiv(N, 8) as i
    Y[i*8 +: 8] = X[i*8 +: 8] * 2
}

test twice {
    kernel twice
    dims N in [0, 3, 20, 90000]
    X = int(-9, 9, seed 1)
    Y ~ widen rtol 1e-6
}
";

    fn drop_last(mut program: Program, _: &Cx) -> Result<Program, Diagnostics> {
        for k in program.kernels.handles() {
            program.kernels[k]
                .stmts
                .retain(|s| !matches!(s.kind, StmtKind::Op { ref results, .. } if results.is_empty()));
        }
        Ok(program)
    }

    fn found(passes: &[&Pass], options: MeaningOptions) -> (usize, Vec<String>) {
        let mut sources = Sources::default();
        let (library, problems) = Library::from_text("t.tile", TEXT, &mut sources);
        assert!(!problems.has_errors(), "{problems:?}");
        let cases = pantile_ir::elab::tests(&library, &mut sources).unwrap();
        let targets = Targets::shipped();
        let arch = targets.arch("sm_80").unwrap();
        let (n, found) = all_keep_meaning(passes, &library, &cases, arch, options, &mut sources);
        (n, found.iter().map(|d| format!("{} {}", d.code, d.message)).collect())
    }

    #[test]
    fn a_pass_that_loses_a_store_is_named() {
        let like = of(Backend::Cuda).find(|p| p.name == "simplify").unwrap();
        let broken = Pass { name: "broken", run: Some(drop_last), ..*like };
        let (n, told) = found(&[like, &broken, like], MeaningOptions::default());
        assert_eq!(n, 2, "3 and 20, as 0 has no elements and 90000 is not small");
        assert_eq!(told.len(), 2);
        assert!(
            told.iter().all(|t| t.starts_with("P0767 `broken` changes what the program means: `Y`")),
            "{told:?}"
        );
    }

    #[test]
    fn the_shipped_passes_keep_it() {
        let all: Vec<&Pass> = of(Backend::Cuda).filter(|p| p.run.is_some()).collect();
        assert!(all.len() > 5);
        assert_eq!(found(&all, MeaningOptions::default()), (2, Vec::new()));
    }
}
