//! From generated text to results: parse, elaborate, verify, interpret, build, run, compare.

use crate::generate::{Mode, Param, Program, TensorParam};
use pantile_abi as abi;
use pantile_backends::cpu::{Built, CpuError, Host, Jit, Machine, build};
use pantile_ir::codes;
use pantile_ir::diag::Diagnostics;
use pantile_ir::elab::{Elaborated, Library, Request, Setting, elaborate};
use pantile_ir::interp::{ArgValue, Fault, Options, Tensor, run_kernel};
use pantile_ir::program::{KernelId, Program as Ir};
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets};
use pantile_ir::verify::verify;
use pantile_runtime::HostBuffer;

/// What this host runs, found once.
pub struct Bench {
    pub arch: Arch,
    pub machine: Machine,
    /// Of the interpreter: the CPU's warp and group.
    pub options: Options,
}

impl Bench {
    pub fn new() -> Bench {
        let targets = Targets::shipped();
        let host = Host::detect();
        let has = |f: &str| host.features.iter().any(|h| h == f);
        let arch = targets.best_cpu(&host.isa, has).expect("a CPU target for this host").clone();
        let machine = Machine::of(&arch).expect("a complete descriptor");
        let options = Options {
            warp: machine.warp,
            group: machine.group,
            require_coverage: false,
            max_steps: 2_000_000,
            ..Options::default()
        };
        Bench { arch, machine, options }
    }
}

impl Default for Bench {
    fn default() -> Self {
        Bench::new()
    }
}

/// Where a program stopped, or that it did not.
#[derive(Clone, Debug)]
pub enum Outcome {
    Same,
    /// The compiler refused a program that should be valid.
    Refused(String),
    /// Its only write of an output stands where control cannot come, so no result exists.
    Unwritten(String),
    /// The interpreter found a fault.
    Fault(String),
    /// The CPU back end cannot build it and says so.
    Unsupported(String),
    /// Building or running failed in a way that no user should see.
    Broken(String),
    /// Interpreter and CPU disagree.
    Differs(String),
}

impl Outcome {
    /// What the diagnostics of a generated program say about it.
    pub fn refused(lines: &[String]) -> Outcome {
        let unwritten = lines.iter().all(|l| l.starts_with(&codes::OUT_NOT_WRITTEN.to_string()));
        if unwritten { Outcome::Unwritten(lines.join("\n")) } else { Outcome::Refused(lines.join("\n")) }
    }

    /// A short name, by which a smaller program is the same failure.
    pub fn kind(&self) -> &'static str {
        match self {
            Outcome::Same => "same",
            Outcome::Refused(_) => "refused",
            Outcome::Unwritten(_) => "unwritten",
            Outcome::Fault(_) => "fault",
            Outcome::Unsupported(_) => "unsupported",
            Outcome::Broken(_) => "broken",
            Outcome::Differs(_) => "differs",
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Outcome::Same => "",
            Outcome::Refused(t)
            | Outcome::Unwritten(t)
            | Outcome::Fault(t)
            | Outcome::Unsupported(t)
            | Outcome::Broken(t)
            | Outcome::Differs(t) => t,
        }
    }
}

/// Diagnostics as `P0123 line:column message | label`, one a line.
pub fn diagnostic_lines(diags: &Diagnostics, sources: &Sources) -> Vec<String> {
    let line = |d: &pantile_ir::diag::Diagnostic| {
        let (line, column) = sources.line_col(d.primary.span);
        format!("{} {line}:{column} {} | {}", d.code, d.message, d.primary.text)
    };
    diags.iter().map(line).collect()
}

/// Elaborates and verifies an entry of a text; problems as lines.
pub fn compile(bench: &Bench, text: &str, request: &Request) -> Result<Elaborated, Vec<String>> {
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("generated.tile", text, &mut sources);
    if diags.has_errors() {
        return Err(diagnostic_lines(&diags, &sources));
    }
    let made =
        elaborate(&lib, request, &bench.arch, &mut sources).map_err(|d| diagnostic_lines(&d, &sources))?;
    match verify(&made.program, &bench.arch) {
        Ok(_) => Ok(made),
        Err(d) => Err(diagnostic_lines(&d, &sources)),
    }
}

/// The request for one generated program by itself.
pub fn request(p: &Program) -> Request {
    let mut r = Request::new(&p.name);
    for (name, value) in &p.generics {
        match Setting::parse(value) {
            Setting::Type(d) => r.types.insert(name.clone(), d).map(|_| ()),
            setting => r.consts.insert(name.clone(), setting).map(|_| ()),
        };
    }
    r
}

/// Bytes on either side of every tensor that nobody may touch.
const GUARD: usize = 256;
const GUARD_BYTE: u8 = 0xc3;
/// What an output holds before it is written.
const POISON: u8 = 0xa5;

/// A tensor in host memory, with guards around it.
struct Held {
    memory: HostBuffer,
    bytes: usize,
}

impl Held {
    fn new(t: &TensorParam) -> Held {
        let (units, width) = storage(t);
        let bytes = units * width;
        let mut memory = HostBuffer::zeroed(bytes + 2 * GUARD).expect("memory for a small tensor");
        memory.bytes_mut().fill(GUARD_BYTE);
        let mut held = Held { memory, bytes };
        if t.mode == Mode::Out {
            held.inner_mut().fill(POISON);
        } else {
            held.inner_mut().fill(0);
            let values = t.data.bits(t.dtype, units * per_unit(t));
            for (i, v) in values.into_iter().enumerate() {
                held.set(t, i, v);
            }
        }
        held
    }

    fn inner_mut(&mut self) -> &mut [u8] {
        let bytes = self.bytes;
        &mut self.memory.bytes_mut()[GUARD..GUARD + bytes]
    }

    fn inner(&self) -> &[u8] {
        &self.memory.bytes()[GUARD..GUARD + self.bytes]
    }

    fn guards_whole(&self) -> bool {
        let all = self.memory.bytes();
        all[..GUARD].iter().chain(&all[GUARD + self.bytes..]).all(|&b| b == GUARD_BYTE)
    }

    /// Bits of the element in storage place `i` (of packed types: element `i`).
    fn get(&self, t: &TensorParam, i: usize) -> u64 {
        if t.packed.is_some() {
            return u64::from(self.inner()[i / 2] >> (4 * (i % 2)) & 15);
        }
        let width = t.dtype.bits() as usize / 8;
        let mut word = [0; 8];
        word[..width].copy_from_slice(&self.inner()[i * width..(i + 1) * width]);
        u64::from_le_bytes(word)
    }

    fn set(&mut self, t: &TensorParam, i: usize, bits: u64) {
        if t.packed.is_some() {
            let byte = &mut self.inner_mut()[i / 2];
            *byte = *byte & !(15 << (4 * (i % 2))) | ((bits & 15) as u8) << (4 * (i % 2));
            return;
        }
        let width = t.dtype.bits() as usize / 8;
        self.inner_mut()[i * width..(i + 1) * width].copy_from_slice(&bits.to_le_bytes()[..width]);
    }

    fn arg(&self, t: &TensorParam) -> abi::TensorArg {
        // SAFETY: the guard lies before the tensor in the same allocation.
        let ptr = unsafe { self.memory.ptr().0.add(GUARD) };
        let shape = t.shape();
        let mut strides: Vec<isize> = t.strides().iter().map(|&s| s as isize).collect();
        if t.packed.is_some() {
            let last = strides.len() - 1;
            for s in &mut strides[..last] {
                *s /= 2;
            }
        }
        abi::TensorArg { dtype: t.dtype, shape, strides, ptr: abi::Ptr(ptr), bytes: self.bytes }
    }
}

fn per_unit(t: &TensorParam) -> usize {
    1 + usize::from(t.packed.is_some())
}

/// Units of storage, and bytes of each.
fn storage(t: &TensorParam) -> (usize, usize) {
    let n = elements(t);
    match t.packed {
        Some(_) => (n / 2, 1),
        None => (n, t.dtype.bits().div_ceil(8) as usize),
    }
}

/// Elements that the strides reach; the packed axis is the last.
fn elements(t: &TensorParam) -> usize {
    if t.shape().contains(&0) {
        return 0;
    }
    let last: usize = t.shape().iter().zip(t.strides()).map(|(n, s)| (n - 1) * s).sum();
    last + 1
}

/// Bits as the interpreter has them: integers extended to 64 bits.
fn canonical(dtype: abi::DType, bits: u64) -> u64 {
    let unused = 64 - dtype.bits();
    if dtype.is_int() && dtype.is_signed() { ((bits << unused) as i64 >> unused) as u64 } else { bits }
}

fn low(dtype: abi::DType, bits: u64) -> u64 {
    let unused = 64 - dtype.bits();
    bits << unused >> unused
}

fn is_nan(dtype: abi::DType, bits: u64) -> bool {
    dtype.is_float() && dtype.decode(bits).is_nan()
}

fn scalar_bits(dtype: Option<abi::DType>, value: f64) -> u64 {
    dtype.map_or(value as i64 as u64, |d| canonical(d, d.encode(value)))
}

/// The interpreter's arguments.
fn interp_args(p: &Program) -> Vec<ArgValue> {
    let one = |q: &Param| match q {
        Param::Scalar(s) => ArgValue::Scalar(scalar_bits(s.dtype, s.value)),
        Param::Tensor(t) => {
            let held = Held::new(t);
            let n = elements(t);
            let bits = (0..n).map(|i| canonical(t.dtype, held.get(t, i))).collect();
            let shape: Vec<i64> = t.shape().iter().map(|&n| n as i64).collect();
            let mut tensor = Tensor::new(t.dtype, &shape, bits);
            tensor.strides = t.strides().iter().map(|&s| s as i64).collect();
            tensor.poison = vec![t.mode == Mode::Out; n];
            ArgValue::Tensor(tensor)
        }
    };
    p.params.iter().map(one).collect()
}

/// Runs one kernel on the interpreter; the arguments come back changed.
pub fn interpret(bench: &Bench, ir: &Ir, kernel: KernelId, p: &Program) -> Result<Vec<ArgValue>, Box<Fault>> {
    let mut args = interp_args(p);
    run_kernel(ir, kernel, &[], &mut args, &bench.options)?;
    Ok(args)
}

/// The kernel of a program among those of a batch.
pub fn kernel_of(ir: &Ir, p: &Program) -> Option<KernelId> {
    ir.kernels.iter().find(|(_, k)| k.name == p.name).map(|(id, _)| id)
}

/// Code of a batch in memory.
pub struct Code {
    built: Built,
    jit: Jit,
    described: abi::Program,
}

pub fn build_code(bench: &Bench, ir: &Ir) -> Result<Code, CpuError> {
    let built = build(ir, &bench.machine, false)?;
    let jit = Jit::load(&built.object)?;
    let described = pantile_passes::abi::describe(ir).map_err(|d| CpuError::Llvm(d.message))?;
    Ok(Code { built, jit, described })
}

/// Runs one kernel natively; gives its tensors afterwards.
fn native(code: &Code, kernel: usize, p: &Program) -> Result<Vec<Option<Held>>, String> {
    let mut held: Vec<Option<Held>> = Vec::new();
    let mut values = Vec::new();
    for q in &p.params {
        match q {
            Param::Scalar(s) => {
                held.push(None);
                values.push(abi::ArgValue::Scalar(match s.dtype {
                    None => abi::ScalarValue::Index(s.value as i64),
                    Some(d) => abi::ScalarValue::Bits(d, low(d, d.encode(s.value))),
                }));
            }
            Param::Tensor(t) => {
                let h = Held::new(t);
                values.push(abi::ArgValue::Tensor(h.arg(t)));
                held.push(Some(h));
            }
        }
    }
    let kernel_abi = code.described.kernels.get(kernel).ok_or("the description lacks the kernel")?;
    let bound = abi::bind(kernel_abi.signature(), values).map_err(|e| e.to_string())?;
    let mut grid = Vec::new();
    for e in &kernel_abi.grid {
        grid.push(
            u64::try_from(e.eval(bound.values()).map_err(|e| format!("{e:?}"))?)
                .map_err(|e| e.to_string())?,
        );
    }
    let blocks: u64 = grid.iter().product();
    if blocks == 0 {
        return Ok(held);
    }
    let own = &code.built.kernels[kernel];
    let address = code.jit.address(&own.symbol).map_err(|e| e.to_string())?;
    // SAFETY: the object was made for this signature.
    let entry: abi::CpuEntry = unsafe { std::mem::transmute(address) };
    let words = abi::cpu_words(&bound, &grid);
    let mut scratch = HostBuffer::zeroed(own.abi.scratch as usize + 2 * GUARD).map_err(|e| e.message)?;
    scratch.bytes_mut().fill(0x7f);
    // in two ranges, the later first: blocks do not depend on each other
    let middle = blocks / 2;
    for (from, to) in [(middle, blocks), (0, middle)] {
        if from == to {
            continue;
        }
        // SAFETY: words, scratch and tensors are those of the signature and live as long as the call.
        let status = unsafe { entry(words.as_ptr(), from, to, scratch.bytes_mut().as_mut_ptr()) };
        if status != 0 {
            let text = own.abi.faults.get(status as usize - 1).map(|f| f.message.clone()).unwrap_or_default();
            return Err(format!("stopped with status {status}: {text}"));
        }
    }
    if scratch.bytes()[own.abi.scratch as usize..].iter().any(|&b| b != 0x7f) {
        return Err("writes behind its scratch memory".into());
    }
    Ok(held)
}

/// Runs the built kernel and compares every tensor with what the interpreter left.
pub fn compare(code: &Code, kernel: usize, p: &Program, expected: &[ArgValue]) -> Outcome {
    let held = match native(code, kernel, p) {
        Ok(h) => h,
        Err(text) => return Outcome::Broken(text),
    };
    for ((q, h), e) in p.params.iter().zip(&held).zip(expected) {
        let (Param::Tensor(t), Some(h), ArgValue::Tensor(e)) = (q, h, e) else { continue };
        if !h.guards_whole() {
            return Outcome::Differs(format!("`{}`: writes outside of it", t.name));
        }
        if let Some(text) = difference(t, h, e) {
            return Outcome::Differs(text);
        }
    }
    Outcome::Same
}

fn difference(t: &TensorParam, h: &Held, e: &Tensor) -> Option<String> {
    let before = Held::new(t);
    let mut first = None;
    let mut count = 0;
    for i in 0..elements(t) {
        let found = h.get(t, i);
        let wanted = if e.poison[i] { before.get(t, i) } else { low(t.dtype, e.bits[i]) };
        let same = found == wanted || !e.poison[i] && is_nan(t.dtype, found) && is_nan(t.dtype, wanted);
        if !same {
            count += 1;
            first.get_or_insert((i, found, wanted, e.poison[i]));
        }
    }
    let (i, found, wanted, unwritten) = first?;
    let show = |b: u64| format!("{} ({b:#x})", t.dtype.decode(b));
    let wanted = if unwritten { "nothing".to_string() } else { show(wanted) };
    Some(format!(
        "`{}` {:?}: {count} of {} elements differ; place {i} holds {} on the CPU, {wanted} on the interpreter",
        t.name,
        t.shape(),
        elements(t),
        show(found),
    ))
}

/// The whole way of one program by itself.
pub fn check_one(bench: &Bench, p: &Program) -> Outcome {
    let made = match compile(bench, &p.text, &request(p)) {
        Ok(made) => made,
        Err(lines) => return Outcome::refused(&lines),
    };
    let Some(kernel) = kernel_of(&made.program, p) else {
        return Outcome::Broken("the program lost its kernel".into());
    };
    let expected = match interpret(bench, &made.program, kernel, p) {
        Ok(args) => args,
        Err(f) => return Outcome::Fault(format!("{} {f} {:?}", f.code, f.values)),
    };
    match build_code(bench, &made.program) {
        Ok(code) => compare(&code, kernel.index(), p, &expected),
        Err(e @ CpuError::Unsupported { .. }) => Outcome::Unsupported(e.to_string()),
        Err(e) => Outcome::Broken(e.to_string()),
    }
}
