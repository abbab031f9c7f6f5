//! Native code on this machine: built by LLVM or taken from the cache, loaded by the JIT, run on all cores.

use super::execute::{Call, Ran, RunError, Value};
use super::{Compiled, NativeCode, NativeObject};
use pantile_abi::{CpuEntry, Program};
use pantile_backends::cpu::{Built, CpuError, Host, Jit, KernelCode, Machine, build};
use pantile_ir::codes;
use pantile_ir::diag::{Code, Diagnostic};
use pantile_ir::print;
use pantile_ir::program::{Op, Program as IrProgram, StmtKind, walk};
use pantile_ir::span::Span;
use pantile_ir::target::{Arch, Targets};
use pantile_runtime::cache::{Cache, KeyBuilder};
use pantile_runtime::cpu::{CpuLauncher, CpuModule, Stopped};
use pantile_runtime::run::run_bound;
use pantile_runtime::{Error, ErrorKind};
use std::collections::HashMap;
use std::time::Instant;

/// How native code is made and run.
#[derive(Clone, Debug)]
pub struct Options {
    pub arch: Arch,
    /// Keep code on disk between runs.
    pub cache: bool,
    /// Worker threads; `None` is one a core.
    pub threads: Option<usize>,
}

/// The architecture of the target file that fits this machine best.
pub fn host_arch(targets: &Targets) -> Option<&Arch> {
    let host = Host::detect();
    targets.best_cpu(&host.isa, |f| host.features.iter().any(|h| h == f))
}

/// A program ready to run.
pub struct Loaded {
    program: Program,
    module: Module,
}

struct Module {
    entries: HashMap<String, CpuEntry>,
    /// owns the code that `entries` point to
    _jit: Jit,
}

impl CpuModule for Module {
    fn entry(&self, symbol: &str) -> pantile_runtime::Result<CpuEntry> {
        let found = self.entries.get(symbol).copied();
        found.ok_or_else(|| Error::new(ErrorKind::Library, format!("the code has no function `{symbol}`")))
    }
}

/// Builds (or finds in the cache) and loads the code of a program.
pub fn load(compiled: &Compiled, options: &Options) -> Result<Loaded, RunError> {
    let machine = Machine::of(&options.arch).map_err(refusal)?;
    machine.check_host(&Host::detect()).map_err(refusal)?;
    let built = code(compiled, &machine, options)?;
    let jit = Jit::load(&built.object).map_err(refusal)?;
    let mut program = compiled.abi.clone();
    let mut entries = HashMap::new();
    for (abi, code) in program.kernels.iter_mut().zip(&built.kernels) {
        let address = jit.address(&code.symbol).map_err(refusal)?;
        // SAFETY: `build` gives every kernel exactly this signature, and the code outlives `entries` in `Module`.
        let entry = unsafe { std::mem::transmute::<usize, CpuEntry>(address) };
        entries.insert(code.symbol.clone(), entry);
        abi.symbol = code.symbol.clone();
        abi.cpu = Some(code.abi.clone());
    }
    Ok(Loaded { program, module: Module { entries, _jit: jit } })
}

fn code(compiled: &Compiled, machine: &Machine, options: &Options) -> Result<Built, RunError> {
    let make = || build(&compiled.program, machine, false).map_err(refusal);
    let Some(cache) = options.cache.then(Cache::open).flatten() else { return make() };
    let key = KeyBuilder::new("cpu object")
        .field(env!("CARGO_PKG_VERSION").as_bytes())
        .field(pantile_backends::cpu::identity().as_bytes())
        .field(format!("{machine:?}").as_bytes())
        .field(print::print(&compiled.program).as_bytes())
        .finish();
    let bytes = cache.get_or_make(&key, || Ok::<_, RunError>(pack(&make()?)))?;
    // an entry that cannot be read is made anew
    unpack(&bytes).map_or_else(make, Ok)
}

/// Length of the description, the description, the object.
fn pack(built: &Built) -> Vec<u8> {
    let kernels: Vec<_> = built.kernels.iter().map(|k| (&k.symbol, &k.abi)).collect();
    let head = serde_json::to_vec(&kernels).unwrap_or_default();
    let mut bytes = (head.len() as u64).to_le_bytes().to_vec();
    bytes.extend(head);
    bytes.extend(&built.object);
    bytes
}

fn unpack(bytes: &[u8]) -> Option<Built> {
    let (len, rest) = bytes.split_first_chunk::<8>()?;
    let (head, object) = rest.split_at_checked(u64::from_le_bytes(*len) as usize)?;
    let kernels: Vec<(String, pantile_abi::CpuAbi)> = serde_json::from_slice(head).ok()?;
    let kernels = kernels.into_iter().map(|(symbol, abi)| KernelCode { symbol, abi }).collect();
    Some(Built { object: object.to_vec(), kernels, lowered: None, llvm: None, asm: None })
}

impl Loaded {
    /// Runs once; the seconds it took.
    pub fn run(&self, args: &mut [(String, Value)], threads: Option<usize>) -> Result<f64, RunError> {
        let call = Call::new(&self.program, args)?;
        let go = || {
            let start = Instant::now();
            let mut launcher = CpuLauncher::new(&self.module);
            // SAFETY: every tensor is a live host array of the bound size, and `call` holds them for the whole run.
            unsafe { run_bound(&self.program, call.bound.clone(), &mut launcher) }?;
            Ok::<_, Error>(start.elapsed().as_secs_f64())
        };
        let seconds = match threads {
            None => go(),
            Some(n) => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build();
                let pool = pool.map_err(|e| Error::new(ErrorKind::Library, format!("no threads: {e}")))?;
                pool.install(go)
            }
        };
        call.finish()?;
        Ok(seconds?)
    }
}

pub(super) fn execute(
    compiled: &Compiled,
    args: &mut [(String, Value)],
    options: &Options,
) -> Result<Ran, RunError> {
    let ran = load(compiled, options)?.run(args, options.threads);
    let seconds = ran.map_err(|e| located(compiled, e))?;
    Ok(Ran { prints: Vec::new(), seconds })
}

/// A kernel that stopped, with the place in its text.
fn located(compiled: &Compiled, e: RunError) -> RunError {
    let RunError::Runtime(error) = &e else { return e };
    let Some(stopped) = error.source.as_ref().and_then(|s| s.downcast_ref::<Stopped>()) else { return e };
    let Some((_, kernel)) = compiled.program.kernels.iter().nth(stopped.kernel) else { return e };
    let mut spans = Vec::new();
    walk(&kernel.stmts, &mut |s| spans.push(s.span));
    let span = stopped.fault.statement.and_then(|n| spans.get(n as usize).copied());
    let message = stopped.fault.message.clone();
    Diagnostic::error(Code(stopped.fault.code), span.unwrap_or(kernel.span), message)
        .note(format!("in kernel `{}`", kernel.name))
        .help("`--target interp` runs the same program and says more")
        .into()
}

/// The code of a verified program as text.
pub fn texts(program: &IrProgram, arch: &Arch) -> Result<NativeCode, RunError> {
    let machine = Machine::of(arch).map_err(refusal)?;
    let built = build(program, &machine, true).map_err(refusal)?;
    let text = Option::unwrap_or_default;
    Ok(NativeCode { lowered: text(built.lowered), llvm: text(built.llvm), asm: text(built.asm) })
}

/// The machine code of an entry for programs that call it without this compiler.
pub fn object(compiled: &Compiled, arch: &Arch) -> Result<NativeObject, RunError> {
    let machine = Machine::of(arch).map_err(refusal)?;
    let mut prints = None;
    for (_, kernel) in compiled.program.kernels.iter() {
        walk(&kernel.stmts, &mut |s| {
            if matches!(s.kind, StmtKind::Op { op: Op::Print { .. }, .. }) {
                prints = Some(s.span);
            }
        });
    }
    if let Some(span) = prints {
        return Err(Diagnostic::error(codes::UNSUPPORTED, span, "code built to a file cannot `print`")
            .help("remove the `print`, or run the kernel with `pantile run`")
            .into());
    }
    let built = build(&compiled.program, &machine, false).map_err(refusal)?;
    let mut program = compiled.abi.clone();
    for (abi, code) in program.kernels.iter_mut().zip(built.kernels) {
        abi.symbol = code.symbol;
        abi.cpu = Some(code.abi);
    }
    let header = pantile_backends::cpu::header(&program, &arch.name);
    Ok(NativeObject { object: built.object, program, header })
}

fn refusal(e: CpuError) -> RunError {
    match e {
        CpuError::Unsupported { ref help, span, .. } => {
            Diagnostic::error(codes::UNSUPPORTED, span, e.to_string()).help(help.clone()).into()
        }
        CpuError::MissingFeatures { .. } => Error::new(ErrorKind::HostFeature, e.to_string())
            .help("choose an older architecture, for example `--target cpu:x86-64-v3`, or `--target interp`")
            .into(),
        other => Diagnostic::error(codes::COMPILER, Span::default(), other.to_string()).into(),
    }
}
