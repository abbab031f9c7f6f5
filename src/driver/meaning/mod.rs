//! Does every pass keep what a program means? Cases of `test` blocks are run on the interpreter before and after each.
//!
//! No case is dropped in silence: what was not compared is told with the reason.

mod chain;
#[cfg(test)]
mod tests;

use super::arguments::{Input, arguments};
use super::execute::RunError;
use super::passes::of;
use super::reference::{Outputs, default_tolerance, relative};
use super::{Compiled, RunOptions, Target, Value, compile, diagnostic, execute};
use chain::Chain;
use pantile_abi::{DType, Mode, ParamAbi};
use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::elab::{Library, TestCase};
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Backend};
use pantile_passes::pipeline::Pass;
use pantile_runtime::HostTensor;
use pantile_runtime::compare::{Tolerance, compare};
use serde::Serialize;
use std::collections::BTreeMap;

/// Which cases are run, and how far.
#[derive(Clone, Copy, Debug)]
pub struct MeaningOptions {
    /// Cases of each test; `None` is all.
    pub cases: Option<usize>,
    /// Statements of the interpreter, in one run of a case, after which the case is given up.
    pub steps: u64,
}

impl Default for MeaningOptions {
    fn default() -> MeaningOptions {
        MeaningOptions { cases: Some(3), steps: 1_000_000 }
    }
}

/// What came of the cases for one architecture.
#[derive(Clone, Debug, Default)]
pub struct Meaning {
    /// Cases whose outputs were the same after every pass.
    pub compared: usize,
    /// Cases that a pass changed, or made stop.
    pub failed: usize,
    pub skipped: Vec<Skipped>,
    /// Faults; those of one test are told once.
    pub found: Diagnostics,
}

/// A case that says nothing of the passes.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    pub test: String,
    pub case: String,
    pub target: String,
    pub why: String,
}

/// The product of a case's dims beyond which it is not small.
const SMALL: u64 = 1 << 11;

/// Runs cases before and after every pass of the architecture.
pub fn keep_meaning(
    library: &Library,
    cases: &[TestCase],
    arch: &Arch,
    options: MeaningOptions,
    sources: &mut Sources,
) -> Meaning {
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
) -> Meaning {
    let mut told = Meaning::default();
    if passes.is_empty() {
        return told;
    }
    let mine = |c: &&TestCase| {
        c.only.is_empty() || c.only.iter().any(|o| *o == arch.name || o == arch.backend.name())
    };
    let cases: Vec<&TestCase> = cases.iter().filter(mine).collect();
    let cases = match options.cases {
        Some(n) => sample(&cases, n),
        None => cases,
    };
    // cases of one request have the same programs; those of a test stand together
    let mut last: Option<(&TestCase, Result<Chain, Diagnostics>)> = None;
    for case in cases {
        let kept = last.take().filter(|(of, _)| of.request == case.request);
        let chain = kept.map(|(_, c)| c).unwrap_or_else(|| {
            let entry = compile(library, &case.request, arch, sources)?.without_prints();
            Ok(Chain::new(passes, entry, arch))
        });
        match one_case(&chain, case, arch, options.steps) {
            Ok(()) => told.compared += 1,
            Err(Ended::Skipped(why)) => told.skipped.push(Skipped {
                test: case.name.clone(),
                case: case.label.clone(),
                target: arch.name.clone(),
                why,
            }),
            Err(Ended::Wrong(d)) => {
                told.failed += 1;
                told.found.push(*d);
            }
        }
        last = Some((case, chain));
    }
    told
}

/// Of each test: the smallest case that has elements, the largest small one, and some between.
fn sample<'a>(cases: &[&'a TestCase], most: usize) -> Vec<&'a TestCase> {
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
        let steps = most.saturating_sub(1).max(1);
        let mut picks: Vec<usize> = (0..most).map(|i| first + (small - first) * i / steps).collect();
        picks.dedup();
        all.extend(picks.into_iter().filter_map(|i| of_test.get(i).copied()));
    }
    all
}

/// Why a case was not compared to its end.
enum Ended {
    Skipped(String),
    Wrong(Box<Diagnostic>),
}

/// `P0701: what was wrong`.
fn first(found: &Diagnostics) -> String {
    found.iter().next().map_or_else(String::new, |d| format!("{}: {}", d.code, d.message))
}

fn is_long(found: &Diagnostics) -> bool {
    found.iter().any(|d| d.code == codes::STEP_LIMIT)
}

fn one_case(
    chain: &Result<Chain, Diagnostics>,
    case: &TestCase,
    arch: &Arch,
    steps: u64,
) -> Result<(), Ended> {
    let chain = chain.as_ref().map_err(|d| Ended::Skipped(format!("it cannot be compiled: {}", first(d))))?;
    let inputs = case.inputs.iter().map(|(n, i)| (n.clone(), Input::Generated(i.clone()))).collect();
    let dims: Vec<(String, i64)> = case.dims.iter().map(|(n, v)| (n.clone(), *v as i64)).collect();
    let given = |d: &Diagnostic| Ended::Skipped(format!("it has no inputs: {}: {}", d.code, d.message));
    let before = arguments(&chain.entry, inputs, &dims).map_err(|d| given(&d))?;
    let target = Target { backend: Backend::Interp, arch: arch.clone(), after: None };
    let run = Run { case, target, before, steps };
    let long = |when: &str| Ended::Skipped(format!("{when} it runs more than {steps} statements"));
    let mut want = run.outputs(&chain.entry).map_err(|found| match is_long(&found) {
        true => long("as written"),
        false => Ended::Skipped(format!("it stops before any pass: {}", first(&found))),
    })?;
    for step in &chain.steps {
        let wrong = |message: String| Ended::Wrong(Box::new(run.fault(message)));
        let program = match &step.left {
            chain::Left::Same => continue,
            chain::Left::Program(program) => program,
            chain::Left::Refused(d) => {
                return Err(Ended::Skipped(format!("`{}` refuses it: {}", step.pass, first(d))));
            }
            chain::Left::Broken(d) => {
                return Err(wrong(format!("what `{}` leaves is no right program: {}", step.pass, first(d))));
            }
        };
        let got = run.outputs(program).map_err(|found| match is_long(&found) {
            true => long(&format!("after `{}`", step.pass)),
            false => {
                let why = first(&found);
                wrong(format!("what `{}` leaves stops, what it was given does not: {why}", step.pass))
            }
        })?;
        if let Some(difference) = run.difference(&want, &got).map_err(|d| wrong(d.message))? {
            return Err(wrong(format!("`{}` changes what the program means: {difference}", step.pass)));
        }
        want = got;
    }
    Ok(())
}

fn single(d: Diagnostic) -> Diagnostics {
    Diagnostics::from_iter([d])
}

struct Run<'a> {
    case: &'a TestCase,
    target: Target,
    before: Vec<(String, Value)>,
    steps: u64,
}

impl Run<'_> {
    fn outputs(&self, entry: &Compiled) -> Result<Outputs, Diagnostics> {
        let copy = |v: &Value| match v {
            Value::Tensor(t) => t.try_clone().map(Value::Tensor).map_err(diagnostic),
            Value::Scalar(s) => Ok(Value::Scalar(*s)),
        };
        let copies = self.before.iter().map(|(n, v)| Ok((n.clone(), copy(v)?)));
        let mut args = copies.collect::<Result<Vec<_>, Diagnostic>>().map_err(single)?;
        let options = RunOptions { max_steps: self.steps, ..RunOptions::default() };
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

    /// The first output that differs, in words.
    fn difference(&self, want: &Outputs, got: &Outputs) -> Result<Option<String>, Diagnostic> {
        for ((name, want), (_, got)) in want.iter().zip(got) {
            let tolerance = self.tolerance(name, want.dtype(), want);
            let report = compare(got, want, tolerance).map_err(diagnostic)?;
            if !report.is_right() {
                return Ok(Some(format!("`{name}`: {report}")));
            }
        }
        Ok(None)
    }

    fn fault(&self, message: String) -> Diagnostic {
        let label =
            if self.case.label.is_empty() { String::new() } else { format!(" ({})", self.case.label) };
        let arch = &self.target.arch.name;
        Diagnostic::error(codes::PASS_MEANING, self.case.span, message)
            .note(format!("in the case `{}`{label} for `{arch}`", self.case.name))
            .help("this is a fault of the compiler; please report it with this file")
    }
}
