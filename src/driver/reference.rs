//! What a result is compared with: the same entry in f64, or another entry.

use super::arguments::input_info;
use super::{
    Compiled, Head, Input, RunError, RunOptions, Target, Value, arguments, compile, diagnostic, execute,
};
use pantile_abi::{DType, Mode, ParamAbi};
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::elab::{Library, Request};
use pantile_ir::span::Sources;
use pantile_runtime::HostTensor;
use pantile_runtime::compare::{Report, Tolerance, compare};

/// One output and what the comparison found.
#[derive(Clone, Debug)]
pub struct Checked {
    pub name: String,
    pub report: Report,
}

/// Named tensors that a reference computed.
pub type Outputs = Vec<(String, HostTensor)>;

/// Runs the entry again with every float type f64, on the arguments as they were before the run.
pub fn widened(
    library: &Library,
    request: &Request,
    target: &Target,
    before: Vec<(String, Input)>,
    sources: &mut Sources,
) -> Result<Outputs, Diagnostics> {
    let entry = compile(library, &request.widen(), &target.arch, sources)?;
    outputs(&entry, target, before)
}

/// Runs another entry on the arguments that it has by the same names; types and constants follow from them, or from
/// `request` where it declares the name.
pub fn entry_outputs(
    library: &Library,
    head: &Head<'_>,
    request: &Request,
    target: &Target,
    before: Vec<(String, Input)>,
    sources: &mut Sources,
) -> Result<Outputs, Diagnostics> {
    let mut other = Request::new(head.name);
    let own = request.params.iter().filter(|(n, _)| head.has_generic(n));
    other.params.extend(own.map(|(n, v)| (n.clone(), v.clone())));
    let given: Vec<_> = before.into_iter().filter(|(n, _)| head.param(n).is_some()).collect();
    other.args = Some(input_info(head, &given));
    let entry = compile(library, &other, &target.arch, sources)?;
    outputs(&entry, target, given)
}

/// Runs a compiled reference; the tensors that it writes.
pub(super) fn outputs(
    entry: &Compiled,
    target: &Target,
    given: Vec<(String, Input)>,
) -> Result<Outputs, Diagnostics> {
    let one = |d: Diagnostic| Diagnostics::from_iter([d]);
    let entry = &entry.without_prints();
    let mut args = arguments(entry, given, &[]).map_err(one)?;
    let device = target.device(&RunOptions::default()).map_err(one)?;
    execute(entry, &mut args, &device).map_err(RunError::into_diagnostics)?;
    let written =
        entry.abi.params.iter().zip(args).filter_map(|(param, (name, value))| match (param, value) {
            (ParamAbi::Tensor(p), Value::Tensor(t)) if p.mode != Mode::In => Some((name, t)),
            _ => None,
        });
    Ok(written.collect())
}

/// Compares every output that both sides have.
pub fn check_against(
    entry: &Compiled,
    got: &[(String, Value)],
    want: &Outputs,
    tolerance: impl Fn(DType, &HostTensor) -> Tolerance<'static>,
) -> Result<Vec<Checked>, Diagnostic> {
    let mut checked = Vec::new();
    for (param, (name, value)) in entry.abi.params.iter().zip(got) {
        let (ParamAbi::Tensor(p), Value::Tensor(have)) = (param, value) else { continue };
        let Some((_, reference)) = want.iter().find(|(n, _)| n == name) else { continue };
        if p.mode == Mode::In {
            continue;
        }
        let report = compare(have, reference, tolerance(p.dtype, reference));
        let report = report.map_err(|e| diagnostic(e.within(format!("`{name}`"))))?;
        checked.push(Checked { name: name.clone(), report });
    }
    Ok(checked)
}

/// 64 unit roundoffs of the type, relative to each element and to the size of the elements together; integers must be
/// equal.
pub fn default_tolerance(dtype: DType, reference: &HostTensor) -> Tolerance<'static> {
    const ROUNDOFFS: f64 = 64.0;
    let rtol = ROUNDOFFS * dtype.unit_roundoff();
    if !dtype.is_float() {
        return Tolerance::Close { rtol: 0.0, atol: 0.0 };
    }
    relative(rtol, reference)
}

/// `rtol`, relative to each element and to the root mean square of all of them: what an element near zero lost to
/// cancellation is not held against it.
pub fn relative(rtol: f64, reference: &HostTensor) -> Tolerance<'static> {
    let finite = (0..reference.len()).map(|i| reference.get(i)).filter(|v| v.is_finite());
    let (sum, n) = finite.fold((0.0, 0usize), |(s, n), v| (s + v * v, n + 1));
    let size = (sum / n.max(1) as f64).sqrt();
    Tolerance::Close { rtol, atol: rtol * size }
}
