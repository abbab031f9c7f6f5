//! An op: workspaces, launches, and control flow over dims and parameters.

use super::Options;
use super::args::{ArgValue, Tensor};
use super::fault::{Exec, Fault, fault, malformed};
use super::head::{Head, Heads, Shown};
use super::launch::{Handed, Launch};
use super::memory::{Memory, contiguous, filled};
use super::run::Session;
use super::traits::Traits;
use crate::codes;
use crate::num;
use crate::program::*;
use std::collections::HashMap;
use std::rc::Rc;

/// The largest workspace, in elements.
const MOST_ELEMENTS: i64 = 1 << 28;

pub(super) struct HostRun<'p> {
    pub program: &'p Program,
    pub host: &'p Host,
    pub options: &'p Options,
    pub seed: u64,
    pub session: Session,
    traits: HashMap<KernelId, Rc<Traits>>,
    mems: Vec<Memory>,
    handed: Vec<Handed>,
    workspaces: usize,
}

impl<'p> HostRun<'p> {
    pub fn new(program: &'p Program, options: &'p Options, seed: u64) -> HostRun<'p> {
        HostRun {
            program,
            host: &program.entry,
            options,
            seed,
            session: Session::default(),
            traits: HashMap::new(),
            mems: Vec::new(),
            handed: Vec::new(),
            workspaces: 0,
        }
    }

    /// Runs the op; tensors come back changed, whatever happens.
    pub fn run(&mut self, given: &[Option<i64>], args: &mut [ArgValue]) -> Exec<()> {
        let host = self.host;
        let named = |f: Box<Fault>| f.at(host.span);
        let shown = shown(args);
        let mut heads = Head::of_host(self.program, host).bind(given, &shown).map_err(named)?;
        adopt(&host.args, args, &mut self.mems, &mut self.handed).map_err(named)?;
        let result = self.work(&mut heads);
        give_back(args, &self.handed, &mut self.mems);
        result
    }

    fn work(&mut self, heads: &mut Heads<'p>) -> Exec<()> {
        let host = self.host;
        for (mem, mode) in self.tensors() {
            if mode == Mode::Out {
                self.mems[mem].enter(Mode::Out).map_err(|f| f.at(host.span))?;
            }
        }
        self.workspaces = self.mems.len();
        for (id, w) in host.workspaces.iter() {
            let memory = workspace(heads, w).map_err(|f| f.at(host.workspaces.span(id)).named(&w.name))?;
            self.mems.push(memory);
        }
        self.steps(&host.steps, heads)?;
        self.check_end()
    }

    fn tensors(&self) -> Vec<(usize, Mode)> {
        let pairs = self.host.args.iter().zip(&self.handed);
        pairs
            .filter_map(|((_, arg), h)| match (&arg.kind, h) {
                (ArgKind::Tensor(t), Handed::Memory(id)) => Some((*id, t.mode)),
                _ => None,
            })
            .collect()
    }

    fn steps(&mut self, steps: &'p [Step], heads: &mut Heads<'p>) -> Exec<()> {
        for step in steps {
            self.session.steps += 1;
            if self.session.steps > self.options.max_steps {
                let f = fault(codes::STEP_LIMIT, "the op does not end within the allowed number of steps");
                return Err(f.at(step.span));
            }
            heads.begin();
            match &step.kind {
                StepKind::Launch { kernel, args } => {
                    self.launch(*kernel, args, heads).map_err(|f| f.at(step.span))?;
                }
                StepKind::If { cond, then, other } => {
                    let cond = heads.value(*cond).map_err(|f| f.at(step.span))?;
                    self.steps(if cond != 0 { then } else { other }, heads)?;
                }
                StepKind::For { var, lo, hi, body } => {
                    let lo = heads.index(*lo).map_err(|f| f.at(step.span))?;
                    let hi = heads.index(*hi).map_err(|f| f.at(step.span))?;
                    for i in lo..hi {
                        heads.locals[var.index()] = Some(i as u64);
                        self.steps(body, heads)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn launch(&mut self, kernel: KernelId, args: &[LaunchArg], heads: &mut Heads<'p>) -> Exec<()> {
        let mut handed = Vec::with_capacity(args.len());
        for arg in args {
            handed.push(match arg {
                LaunchArg::Arg(id) => {
                    *self.handed.get(id.index()).ok_or_else(|| malformed("an unknown parameter"))?
                }
                LaunchArg::Workspace(id) => Handed::Memory(self.workspaces + id.index()),
                LaunchArg::Scalar(e) => Handed::Scalar(heads.value(*e)?),
            });
        }
        let Some(k) = self.program.kernels.get(kernel) else { return Err(malformed("an unknown kernel")) };
        self.check_inputs(k, args)?;
        let traits = self.traits.entry(kernel).or_insert_with(|| Rc::new(Traits::of(k))).clone();
        let launch = Launch { program: self.program, kernel, traits, options: self.options, seed: self.seed };
        self.seed = self.seed.wrapping_add(0x1_0000_0001);
        let given: Vec<Option<i64>> = match self.host.lone {
            true => k.dims.iter().map(|(_, d)| heads.named_dim(&d.name)).collect(),
            false => Vec::new(),
        };
        launch.run(&given, &handed, &mut self.mems, &mut self.session)
    }

    /// A kernel may not write what the op only reads.
    fn check_inputs(&self, kernel: &Kernel, args: &[LaunchArg]) -> Exec<()> {
        for ((_, param), arg) in kernel.args.iter().zip(args) {
            let (ArgKind::Tensor(t), LaunchArg::Arg(id)) = (&param.kind, arg) else { continue };
            if let Some(Arg { name, kind: ArgKind::Tensor(own) }) = self.host.args.get(*id)
                && own.mode == Mode::In
                && t.mode != Mode::In
            {
                let message =
                    format!("`{name}` is an input of `{}`, but `{}` writes it", self.host.name, kernel.name);
                return Err(malformed(message).help("declare it `out` or `inout`"));
            }
        }
        Ok(())
    }

    /// Every element of an `out` was written, every zeroed workspace is zero again.
    fn check_end(&self) -> Exec<()> {
        for ((id, arg), h) in self.host.args.iter().zip(&self.handed) {
            let (ArgKind::Tensor(t), Handed::Memory(mem)) = (&arg.kind, h) else { continue };
            let m = &self.mems[*mem];
            if t.mode != Mode::Out || !self.options.require_coverage {
                continue;
            }
            let (mut first, mut missing, mut all) = (None, 0u64, 0u64);
            addresses(m, |a| {
                all += 1;
                if m.is_poison(a) {
                    missing += 1;
                    first.get_or_insert(a);
                }
            });
            if let Some(first) = first {
                let message = format!("{} is never written", m.text(first));
                return Err(fault(codes::NOT_COVERED, message)
                    .at(self.host.args.span(id))
                    .of(&arg.name, m.index_of(first))
                    .value("the number of elements never written", format!("{missing} of {all}"))
                    .help("write every element of an `out` tensor, or declare it `inout`"));
            }
        }
        for ((id, w), m) in self.host.workspaces.iter().zip(self.mems.iter().skip(self.workspaces)) {
            let left = |a: &usize| !m.is_poison(*a) && m.bits[*a] != 0;
            if let Some(addr) = (0..m.bits.len()).find(left).filter(|_| w.zeroed) {
                let message = format!("{} is not zero at the end of `{}`", m.text(addr), self.host.name);
                return Err(fault(codes::NOT_RESTORED, message)
                    .at(self.host.workspaces.span(id))
                    .of(&w.name, m.index_of(addr))
                    .help(
                        "a workspace `= 0` is zeroed once only: kernels must leave it zero for the next call",
                    ));
            }
        }
        Ok(())
    }
}

/// Visits the addresses of all elements of a memory.
fn addresses(m: &Memory, mut visit: impl FnMut(usize)) {
    fn axis(axes: &[(i64, i64)], base: usize, visit: &mut impl FnMut(usize)) {
        match axes {
            [] => visit(base),
            [(n, stride), rest @ ..] => (0..*n).for_each(|i| axis(rest, base + (i * stride) as usize, visit)),
        }
    }
    let axes: Vec<(i64, i64)> = m.dims.iter().copied().zip(m.strides.iter().copied()).collect();
    axis(&axes, 0, &mut visit);
}

fn workspace(heads: &mut Heads, w: &Workspace) -> Exec<Memory> {
    let mut dims = Vec::with_capacity(w.shape.len());
    for &e in &w.shape {
        dims.push(heads.index(e)?);
    }
    let n = dims.iter().try_fold(1i64, |n, &d| if d < 0 { None } else { n.checked_mul(d) });
    let Some(n) = n.filter(|&n| n <= MOST_ELEMENTS) else {
        let message = format!("the workspace `{}` has the extents {dims:?}, which cannot be", w.name);
        return Err(fault(codes::LAUNCH, message));
    };
    let poison = filled(!w.zeroed, n as usize)?;
    let strides = contiguous(&dims);
    Memory::tensor(&w.name, w.elem.into(), dims, strides, filled(0, n as usize)?, &poison)
}

pub(super) fn shown(args: &[ArgValue]) -> Vec<Shown> {
    let one = |a: &ArgValue| match a {
        ArgValue::Scalar(bits) => Shown::Scalar(*bits),
        ArgValue::Tensor(t) => {
            Shown::Tensor { dtype: t.dtype, shape: t.shape.clone(), strides: t.strides.clone() }
        }
    };
    args.iter().map(one).collect()
}

/// Moves the tensors of a call into memories.
pub(super) fn adopt(
    params: &crate::arena::Arena<Arg>,
    args: &mut [ArgValue],
    mems: &mut Vec<Memory>,
    handed: &mut Vec<Handed>,
) -> Exec<()> {
    for ((_, param), arg) in params.iter().zip(args.iter()) {
        if let ArgValue::Tensor(t) = arg {
            check_size(&param.name, t)?;
        }
    }
    for ((_, param), arg) in params.iter().zip(args) {
        handed.push(match arg {
            ArgValue::Scalar(bits) => Handed::Scalar(*bits),
            ArgValue::Tensor(t) => {
                let (dims, strides) = (t.shape.clone(), t.strides.clone());
                let bits = std::mem::take(&mut t.bits);
                mems.push(Memory::tensor(&param.name, t.dtype.into(), dims, strides, bits, &t.poison)?);
                Handed::Memory(mems.len() - 1)
            }
        });
    }
    Ok(())
}

fn check_size(name: &str, t: &Tensor) -> Exec<()> {
    if t.strides.len() != t.shape.len() {
        return Err(fault(codes::BIND_STRIDE, format!("`{name}` needs one stride for each axis")).named(name));
    }
    match t.span() {
        Some(n) if n <= t.bits.len() => Ok(()),
        _ => {
            let message =
                format!("`{name}` of shape {:?} does not fit into {} elements", t.shape, t.bits.len());
            Err(fault(codes::BIND_SIZE, message).named(name))
        }
    }
}

/// Moves the memories back into the tensors of the call.
pub(super) fn give_back(args: &mut [ArgValue], handed: &[Handed], mems: &mut [Memory]) {
    for (arg, h) in args.iter_mut().zip(handed) {
        if let (ArgValue::Tensor(t), Handed::Memory(id)) = (arg, h) {
            let m = &mut mems[*id];
            m.poison_into(&mut t.poison);
            t.bits = std::mem::take(&mut m.bits);
        }
    }
}

/// An op of one launch around a kernel.
pub(super) fn alone(kernel: &Kernel, id: KernelId) -> Host {
    let mut host = Host {
        name: kernel.name.clone(),
        span: kernel.span,
        deterministic: kernel.deterministic,
        dims: kernel.dims.clone(),
        args: kernel.args.clone(),
        body: kernel.body.clone(),
        lone: true,
        ..Host::default()
    };
    let mut args = Vec::with_capacity(kernel.args.len());
    for (arg, param) in kernel.args.iter() {
        args.push(match &param.kind {
            ArgKind::Tensor(_) => LaunchArg::Arg(arg),
            ArgKind::Scalar(elem) => {
                host.body.types.push(Type::Scalar(*elem));
                LaunchArg::Scalar(host.body.exprs.push(Expr::Arg(arg), kernel.args.span(arg)))
            }
        });
    }
    host.steps.push(Step { kind: StepKind::Launch { kernel: id, args }, span: kernel.span });
    host
}

/// Whether two results are equal; all NaNs are one value.
pub(super) fn same(a: &ArgValue, b: &ArgValue) -> bool {
    match (a, b) {
        (ArgValue::Tensor(a), ArgValue::Tensor(b)) => first_difference(a, b).is_none(),
        _ => a == b,
    }
}

fn first_difference(a: &Tensor, b: &Tensor) -> Option<usize> {
    let elem = Elem::D(a.dtype);
    let nan = |x| num::is_nan(elem, x);
    (0..a.bits.len()).find(|&i| a.bits[i] != b.bits[i] && !(nan(a.bits[i]) && nan(b.bits[i])))
}

/// The fault of two runs that differ in their order only, and in a result.
pub(super) fn order_fault(host: &Host, at: usize, a: &ArgValue, b: &ArgValue) -> Box<Fault> {
    let name = host.args.iter().nth(at).map_or("a result", |(_, arg)| &arg.name[..]);
    let mut f = fault(
        codes::ORDER_DEPENDENT,
        format!("`{name}` depends on the order in which blocks, threads or roles run"),
    );
    if let (ArgValue::Tensor(a), ArgValue::Tensor(b)) = (a, b)
        && let Some(i) = first_difference(a, b)
    {
        let elem = Elem::D(a.dtype);
        f = f
            .value("the place in memory", i.to_string())
            .value("in one order it", num::print_value(elem, a.bits[i]))
            .value("in another it", num::print_value(elem, b.bits[i]));
    }
    f.named(name).at(host.span)
}

/// Whether sums of floats depend on the order by nature.
pub(super) fn has_float_atomics(program: &Program) -> bool {
    let mut found = false;
    for (_, k) in program.kernels.iter() {
        walk(&k.stmts, &mut |s| {
            if let StmtKind::Op { op: Op::Atomic { op, value, .. }, .. } = &s.kind {
                found |= *op == AtomicOp::Add && k.body.type_of(*value).elem().is_some_and(Elem::is_float);
            }
        });
    }
    found
}
