//! Running the cases of `test` blocks.

use super::arguments::{Input, arguments};
use super::reference::{Checked, Outputs, outputs, widened};
use super::{Compiled, RunError, RunOptions, Target, Value, compile, diagnostic, execute};
use pantile_abi::ParamAbi;
use pantile_ir::codes;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::elab::{
    self, Expectation, Files, Found, Given, Library, Reference, Request, Resolver, TestCase,
};
use pantile_ir::span::Sources;
use pantile_ir::target::{Backend, Targets};
use pantile_runtime::HostTensor;
use pantile_runtime::compare::{Tolerance, compare};
use std::path::{Path, PathBuf};

/// Whether a case holds.
#[derive(Debug)]
pub struct Verdict {
    pub checked: Vec<Checked>,
    pub warnings: Diagnostics,
}

impl Verdict {
    pub fn holds(&self) -> bool {
        self.checked.iter().all(|c| c.report.is_right())
    }
}

/// Runs one case. `search` is where `use` looks, as it was for the library.
pub fn run_case(
    library: &Library,
    case: &TestCase,
    target: &Target,
    targets: &Targets,
    search: &[PathBuf],
    sources: &mut Sources,
) -> Result<Verdict, Diagnostics> {
    // cases run side by side, and their lines would mix with the results
    let entry = compile(library, &case.request, &target.arch, sources)?.without_prints();
    let inputs = case.inputs.iter().map(|(n, i)| (n.clone(), Input::Generated(i.clone()))).collect();
    let dims: Vec<(String, i64)> = case.dims.iter().map(|(n, v)| (n.clone(), *v as i64)).collect();
    let mut args = arguments(&entry, inputs, &dims).map_err(one)?;
    let before = (args.iter())
        .map(|(n, v)| Ok((n.clone(), v.copy()?)))
        .collect::<Result<Vec<_>, Diagnostic>>()
        .map_err(one)?;
    let device = target.device(&RunOptions::default()).map_err(one)?;
    let entry = target.prepare(entry)?;
    execute(&entry, &mut args, &device).map_err(RunError::into_diagnostics)?;
    let judge = judge(&args, target, targets);
    let mut ctx = Judge { library, case, entry: &entry, before, target: &judge, search, sources, wide: None };
    let checked = case.expects.iter().map(|e| ctx.check(e, &args)).collect::<Result<_, _>>()?;
    Ok(Verdict { checked, warnings: entry.warnings })
}

fn one(d: Diagnostic) -> Diagnostics {
    Diagnostics::from_iter([d])
}

/// What the interpreter ran is judged by the interpreter; so are small runs of other targets. Large ones are judged by
/// native code.
fn judge(args: &[(String, Value)], target: &Target, targets: &Targets) -> Target {
    const SMALL: usize = 1 << 13;
    let elements: usize = args.iter().filter_map(|(_, v)| v.as_tensor()).map(HostTensor::len).sum();
    if target.backend == Backend::Interp || elements <= SMALL {
        return Target::choose("interp", None, targets).unwrap_or_else(|_| target.clone());
    }
    Target::choose("auto", None, targets).unwrap_or_else(|_| target.clone())
}

struct Judge<'a> {
    library: &'a Library,
    case: &'a TestCase,
    entry: &'a Compiled,
    /// Arguments as they were before the run.
    before: Vec<(String, Input)>,
    target: &'a Target,
    search: &'a [PathBuf],
    sources: &'a mut Sources,
    wide: Option<Outputs>,
}

impl Judge<'_> {
    fn check(&mut self, expect: &Expectation, args: &[(String, Value)]) -> Result<Checked, Diagnostics> {
        let name = &expect.tensor;
        let got = args.iter().find(|(n, _)| n == name).and_then(|(_, v)| v.as_tensor());
        let Some(got) = got else { return Err(self.fail(expect, format!("`{name}` is no result"))) };
        let want = match &expect.reference {
            Reference::Widen => self.wide(name)?,
            Reference::Run { request, args, result } => self.run(expect, request, args, result)?,
            Reference::Call { function, args } => Some(self.function(expect, function, args)?),
        };
        let Some(want) = want else {
            return Err(self.fail(expect, format!("the reference of `{name}` gives nothing to compare with")));
        };
        let exact = expect.exact;
        // equal to the reference once that is rounded to the output's own type
        let want = if exact { rounded(got, want).map_err(|e| one(diagnostic(e)))? } else { want };
        let tolerance = match expect.atol {
            _ if exact => Tolerance::Close { rtol: 0.0, atol: 0.0 },
            Some(atol) => Tolerance::Close { rtol: expect.rtol, atol },
            None => super::reference::relative(expect.rtol, &want),
        };
        let report = compare(got, &want, tolerance).map_err(|e| one(diagnostic(e)))?;
        Ok(Checked { name: name.clone(), report })
    }

    fn fail(&self, expect: &Expectation, message: String) -> Diagnostics {
        one(Diagnostic::error(codes::TEST, expect.span, message))
    }

    fn copies(&self) -> Result<Vec<(String, Input)>, Diagnostics> {
        let copy = |(n, i): &(String, Input)| Ok((n.clone(), i.copy()?));
        self.before.iter().map(copy).collect::<Result<_, Diagnostic>>().map_err(one)
    }

    fn given(&self, expect: &Expectation, given: &Given) -> Result<Input, Diagnostics> {
        match given {
            Given::Number(x) => Ok(Input::Generated(elab::Input::Number(*x))),
            Given::Whole(n) => Ok(Input::Generated(elab::Input::Whole(*n))),
            Given::Input(name) => match self.before.iter().find(|(n, _)| n == name) {
                Some((_, input)) => input.copy().map_err(one),
                None => Err(self.fail(expect, format!("there is no input `{name}`"))),
            },
        }
    }

    /// The case in f64, run once for all its expectations.
    fn wide(&mut self, output: &str) -> Result<Option<HostTensor>, Diagnostics> {
        if self.wide.is_none() {
            let before = self.copies()?;
            let wide = widened(self.library, &self.case.request, self.target, before, self.sources)?;
            self.wide = Some(wide);
        }
        let found = self.wide.iter().flatten().find(|(n, _)| n == output);
        found.map(|(_, t)| t.try_clone()).transpose().map_err(|e| one(diagnostic(e)))
    }

    /// Another kernel or op on inputs of the case; in f64 unless equality is demanded.
    fn run(
        &mut self,
        expect: &Expectation,
        request: &Request,
        given: &[(String, Given)],
        result: &str,
    ) -> Result<Option<HostTensor>, Diagnostics> {
        let info = self.case.args(&self.entry.program.entry).map_err(|e| self.fail(expect, e))?;
        let request = self.case.reference_request(expect, &info).unwrap_or_else(|| request.clone());
        let request = if expect.exact { request } else { request.widen() };
        let mut call = Vec::new();
        for (param, g) in given {
            call.push((param.clone(), self.given(expect, g)?));
        }
        if !call.iter().any(|(n, _)| n == result) {
            // tells the shape where the reference's dims do not
            call.push((result.to_string(), self.given(expect, &Given::Input(expect.tensor.clone()))?));
        }
        let entry = compile(self.library, &request, &self.target.arch, self.sources)?;
        let done = outputs(&entry, self.target, call)?;
        Ok(done.into_iter().find(|(n, _)| n == result).map(|(_, t)| t))
    }

    /// A function of scalars, applied to every element: a kernel is written around it.
    fn function(
        &mut self,
        expect: &Expectation,
        function: &str,
        given: &[Given],
    ) -> Result<HostTensor, Diagnostics> {
        let Some((out, shape)) = self.output(&expect.tensor) else {
            return Err(self.fail(expect, format!("`{}` is no result", expect.tensor)));
        };
        let list =
            |prefix: &str| (0..shape.len()).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>().join(", ");
        let (index, dims) = (list("i"), list("N"));
        let (mut params, mut call, mut actual) = (String::new(), Vec::new(), Vec::new());
        for (i, g) in given.iter().enumerate() {
            match (g, self.given(expect, g)?) {
                (Given::Number(x), _) => call.push(format!("{x:?}")),
                (Given::Whole(n), _) => call.push(n.to_string()),
                (_, Input::Tensor(t)) if t.shape() == shape => {
                    params += &format!("a{i}: {}[{dims}], ", t.dtype());
                    call.push(format!("a{i}[{index}]"));
                    actual.push((format!("a{i}"), Input::Tensor(t)));
                }
                (_, Input::Scalar(s)) => {
                    params += &format!("a{i}: {}, ", s.ty());
                    call.push(format!("a{i}"));
                    actual.push((format!("a{i}"), Input::Scalar(s)));
                }
                (Given::Input(n), _) => {
                    let message =
                        format!("`{function}` is applied element by element, but `{n}` has another shape");
                    return Err(self.fail(expect, message));
                }
            }
        }
        actual.push(("result".into(), self.given(expect, &Given::Input(expect.tensor.clone()))?));
        let text = format!(
            "use \"{TESTED}\"::{{{function}}}\nkernel reference({params}result: out {out}[{dims}]) {{\n    \
             grid ({dims}) as ({index})\n    result[{index}] = {function}({})\n}}\n",
            call.join(", ")
        );
        let found = Found { name: format!("<around {function}>"), path: None, text };
        let around = self.around();
        let (library, problems) = Library::load(found, &around, self.sources);
        if problems.has_errors() {
            return Err(problems);
        }
        let entry = compile(&library, &Request::new("reference"), &self.target.arch, self.sources)?;
        let done = outputs(&entry, self.target, actual)?;
        done.into_iter()
            .next()
            .map(|(_, t)| t)
            .ok_or_else(|| self.fail(expect, format!("`{function}` gives nothing")))
    }

    /// Type and shape of an output.
    fn output(&self, name: &str) -> Option<(pantile_abi::DType, Vec<usize>)> {
        let abi = &self.entry.abi;
        let ParamAbi::Tensor(t) = &abi.params[abi.param_index(name)?] else { return None };
        let (_, before) = self.before.iter().find(|(n, _)| n == name)?;
        let Input::Tensor(tensor) = before else { return None };
        Some((t.dtype, tensor.shape().to_vec()))
    }

    fn around(&self) -> Around {
        let file = self.library.main().map(|u| self.sources.file(u.file).clone());
        let tested = Found {
            name: file.as_ref().map_or_else(String::new, |f| f.name.clone()),
            path: file.as_ref().and_then(|f| f.path.clone()),
            text: file.map_or_else(String::new, |f| f.text),
        };
        Around { tested, files: Files { search: self.search.to_vec() } }
    }
}

/// The name of the tested file for the kernel around a function; no path that a user writes holds a colon first.
const TESTED: &str = ":tested";

struct Around {
    tested: Found,
    files: Files,
}

impl Resolver for Around {
    fn find(&self, path: &str, from: Option<&Path>) -> Result<Found, Vec<String>> {
        if path == TESTED { Ok(self.tested.clone()) } else { self.files.find(path, from) }
    }
}

fn rounded(got: &HostTensor, want: HostTensor) -> pantile_runtime::Result<HostTensor> {
    if want.dtype() == got.dtype() || !got.dtype().is_float() {
        return Ok(want);
    }
    HostTensor::from_f64(got.dtype(), want.shape(), &want.to_f64())
}
