//! `pantile run`: one entry on real input.

use super::entry::{Entry, MOST_THREADS, On, Specialise, assignment, usage};
use super::report::{Failure, Session, print, print_json};
use super::{Exit, Outcome};
use pantile::abi::{DType, Mode, ParamAbi};
use pantile::driver::{
    self, Checked, Compiled, Input, RunError, RunOptions, Target, Value, arguments, check_against, compile,
    default_tolerance, entry_outputs, execute, input_info, relative, widened,
};
use pantile::ir::codes;
use pantile::ir::diag::Diagnostic;
use pantile::ir::elab::{Library, Request};
use pantile::ir::target::Backend;
use pantile::runtime::HostTensor;
use pantile::runtime::compare::Tolerance;
use pantile::runtime::files::{self, ArrayPath};
use pantile::runtime::random::InputSpec;

/// Run a kernel or op on files or seeded data, and check the result.
#[derive(clap::Args)]
#[command(after_help = "\
Inputs and outputs are given by parameter name:
  A=a.npy  A=w.npz:key  A=m.safetensors:key     an array file
  A=normal:128x64  A=normal:128x64:7            seeded data: shape, then seed
  A=uniform:33:lo=-1:hi=1  A=int:1000:lo=0:hi=10  A=zeros:4x4  A=iota:10
  A=normal:7x33:scale=3:shift=1000              then scaled and shifted
  eps=1e-5                                      a number
  C=@c.npy  C=@out.npz:key                      write an output; one that is not written is summed up
  Y=y.npy,@y2.npy                               both, for a tensor that is read and written

Examples:
  pantile run gemm.tile::gemm A=normal:1000x300 B=normal:300x500 C=@c.npy -p T=f32 --check
  pantile run norm.tile X=x.npy G=w.safetensors:gamma eps=1e-5 Y=@y.npy --target interp
  pantile run gemm.tile::gemm A=a.npy B=b.npy --ref gemm_reference --rtol 1e-3")]
pub struct Args {
    /// The file, with the kernel or op where it holds several.
    #[arg(value_name = "FILE[::NAME]", value_parser = Entry::parse)]
    entry: Entry,
    #[arg(value_name = "NAME=VALUE", value_parser = assignment)]
    values: Vec<(String, String)>,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    specialise: Specialise,
    /// Compare every output with the same kernel computed in f64.
    #[arg(long)]
    check: bool,
    /// Compare with another kernel or op of the file, on the same inputs.
    #[arg(long = "ref", value_name = "NAME", conflicts_with = "check")]
    reference: Option<String>,
    /// Tolerance relative to each element and, without --atol, to the root mean square of the reference. Without
    /// tolerances: 64 roundings of the output's type.
    #[arg(long, value_parser = tolerance, allow_negative_numbers = true)]
    rtol: Option<f64>,
    /// Absolute tolerance.
    #[arg(long, value_parser = tolerance, allow_negative_numbers = true)]
    atol: Option<f64>,
    /// Run this many times; the shortest time is shown.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Worker threads of native code; one a core where not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST_THREADS))]
    threads: Option<u16>,
    /// Let the interpreter try this many orders of blocks and threads, and compare.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    orders: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Output {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    mean: f64,
    min: f64,
    max: f64,
    file: Option<String>,
}

#[derive(serde::Serialize)]
struct Compared {
    name: String,
    right: bool,
    elements: usize,
    wrong: usize,
    max_abs: f64,
    max_rel: f64,
}

#[derive(serde::Serialize)]
struct Shown {
    entry: String,
    target: String,
    arch: String,
    seconds: f64,
    params: Vec<(String, String)>,
    outputs: Vec<Output>,
    checks: Vec<Compared>,
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    if (args.rtol.is_some() || args.atol.is_some()) && !args.check && args.reference.is_none() {
        return Err(
            usage("a tolerance needs something to compare with").help("add `--check` or `--ref NAME`")
        );
    }
    let targets = args.specialise.files.load(session)?;
    let target = Target::choose(&args.on.target, args.on.as_arch.as_deref(), &targets)?
        .after(args.on.after.as_deref())?;
    for_this_target(args, &target)?;
    if target.backend == Backend::Cpu {
        session.warn_of_cache();
    }
    let library = args.specialise.load(&args.entry.file, session)?;
    let head = driver::entry(&library, args.entry.name.as_deref())?;
    let (inputs, files) = values(&args.values)?;
    let (mut request, dims) = args.specialise.request(&head);
    request.args = Some(input_info(&head, &inputs));
    let entry = compile(&library, &request, &target.arch, &mut session.sources)?;
    session.show(&entry.warnings);
    known_outputs(&entry, &files)?;
    files::check_writable(&files.iter().map(|(n, f)| (f.clone(), n.as_str())).collect::<Vec<_>>())?;
    let inputs = driver::fitting_types(&head, &request, &entry, inputs)?;
    // results for programs are not mixed with what the kernel says
    let entry = if args.json { entry.without_prints() } else { entry };

    let mut values = arguments(&entry, inputs, &dims)?;
    let before = copies(&values)?;
    let options = RunOptions {
        orders: args.orders.unwrap_or(1),
        threads: args.threads.map(usize::from),
        ..RunOptions::default()
    };
    let device = target.device(&options)?;
    let entry = target.prepare(entry)?;
    let mut seconds = f64::INFINITY;
    for turn in 0..args.repeat {
        if turn > 0 {
            restore(&entry, &mut values, &before);
        }
        let ran = execute(&entry, &mut values, &device).map_err(|e| {
            if let RunError::Stopped { prints, .. } = &e {
                print_lines(prints);
            }
            e.into_diagnostics()
        })?;
        seconds = seconds.min(ran.seconds);
        print_lines(&ran.prints);
    }
    write(&values, &files)?;
    let against = Against { library: &library, request: &request, entry: &entry, target: &target };
    let checks = checks(args, against, &values, before, session)?;
    let shown = Shown {
        entry: entry.abi.name.clone(),
        target: target.backend.name().to_string(),
        arch: target.arch.name.clone(),
        seconds,
        params: entry.params.iter().map(|p| (p.name.clone(), p.value.to_string())).collect(),
        outputs: outputs(&entry, &values, &files),
        checks: checks.iter().map(compared).collect(),
    };
    if args.json {
        print_json(&shown)
    } else {
        print(&human(&shown, &target, &checks))
    }
    Ok(if checks.iter().all(|c| c.report.is_right()) { Exit::Fine } else { Exit::WrongResult })
}

/// What a kernel says; nothing where prints were taken out of it.
fn print_lines(lines: &[String]) {
    if !lines.is_empty() {
        print(&lines.iter().map(|l| format!("{l}\n")).collect::<String>());
    }
}

/// An option that the chosen target would not heed is a mistake.
fn for_this_target(args: &Args, target: &Target) -> Result<(), Failure> {
    let refuse = |option: &str, whose: &str, remedy: &str| {
        let message = format!("`{option}` is for {whose}, but this runs on {}", target.describe());
        Err(usage(message).help(format!("add `--target {remedy}`, or leave `{option}` out")))
    };
    match target.backend {
        Backend::Interp if args.threads.is_some() => refuse("--threads", "native code", "cpu"),
        Backend::Cpu if args.orders.is_some() => refuse("--orders", "the interpreter", "interp"),
        _ => Ok(()),
    }
}

/// A bound on a difference.
fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() && v >= 0.0 => Ok(v),
        Ok(_) => Err("a tolerance is a finite number, zero or more".into()),
        Err(_) => Err("this is no number".into()),
    }
}

type Outputs = Vec<(String, ArrayPath)>;

/// Reads inputs and notes where outputs go.
fn values(given: &[(String, String)]) -> Result<(Vec<(String, Input)>, Outputs), Failure> {
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    // what a tensor starts from and where it goes may stand together: `Y=in.npy,@out.npy`
    let apart = given.iter().flat_map(|(name, value)| match value.split_once(",@") {
        Some((from, to)) => vec![(name, from.to_string()), (name, format!("@{to}"))],
        None => vec![(name, value.clone())],
    });
    for (name, value) in apart {
        if let Some(file) = value.strip_prefix('@') {
            let path = ArrayPath::parse(file).ok_or_else(|| {
                Failure::new(
                    codes::FILE_UNSUPPORTED,
                    format!("`{name}={value}`: `{file}` is not an array file"),
                )
                .help("array files end in .npy, .npz or .safetensors")
            })?;
            if outputs.iter().any(|(n, _): &(String, ArrayPath)| n == name) {
                return Err(usage(format!("`{name}` is written twice")));
            }
            outputs.push((name.clone(), path));
        } else if let Some(spec) = InputSpec::parse(&value, name) {
            inputs.push((name.clone(), Input::Spec(spec?)));
        } else if let Some(path) = ArrayPath::parse(&value) {
            inputs.push((name.clone(), Input::Array(files::read(&path)?, value.clone())));
        } else {
            inputs.push((name.clone(), Input::Number(value.clone())));
        }
    }
    Ok((inputs, outputs))
}

/// Output files must belong to outputs; found out before the kernel has run for an hour.
fn known_outputs(entry: &Compiled, files: &Outputs) -> Result<(), Failure> {
    for (name, _) in files {
        let param = entry.abi.params.iter().find(|p| p.name() == name);
        let help = format!("the head is {}", entry.abi.signature().head());
        match param {
            Some(ParamAbi::Tensor(t)) if t.mode.writes() => {}
            Some(_) => {
                let message = format!("`{name}` is only read, so there is nothing to write to a file");
                return Err(Failure::new(codes::BIND_ARGUMENT, message).help(help));
            }
            None => {
                let message = format!("`{}` has no parameter `{name}`", entry.abi.name);
                return Err(Failure::new(codes::BIND_ARGUMENT, message).help(help));
            }
        }
    }
    Ok(())
}

fn copies(values: &[(String, Value)]) -> Result<Vec<(String, Input)>, Diagnostic> {
    values.iter().map(|(n, v)| Ok((n.clone(), v.copy()?))).collect()
}

/// `inout` tensors start each run from what they held first.
fn restore(entry: &Compiled, values: &mut [(String, Value)], before: &[(String, Input)]) {
    for ((param, (_, value)), (_, first)) in entry.abi.params.iter().zip(values).zip(before) {
        if let (ParamAbi::Tensor(p), Value::Tensor(t), Input::Tensor(first)) = (param, value, first)
            && p.mode == Mode::InOut
        {
            t.bytes_mut().copy_from_slice(first.bytes());
        }
    }
}

fn write(values: &[(String, Value)], files: &Outputs) -> Result<(), Failure> {
    let mut list = Vec::new();
    for (name, path) in files {
        if let Some((n, Value::Tensor(t))) = values.iter().find(|(n, _)| n == name) {
            list.push((path.clone(), n.as_str(), t));
        }
    }
    Ok(files::write(&list)?)
}

/// What a result is compared against comes from.
struct Against<'a> {
    library: &'a Library,
    request: &'a Request,
    entry: &'a Compiled,
    target: &'a Target,
}

fn checks(
    args: &Args,
    a: Against<'_>,
    values: &[(String, Value)],
    before: Vec<(String, Input)>,
    session: &mut Session,
) -> Result<Vec<Checked>, Failure> {
    let sources = &mut session.sources;
    let want = match &args.reference {
        Some(name) => {
            let head = driver::entry(a.library, Some(name))?;
            entry_outputs(a.library, &head, a.request, a.target, before, sources)?
        }
        None if args.check => widened(a.library, a.request, a.target, before, sources)?,
        None => return Ok(Vec::new()),
    };
    let tolerance = |dtype: DType, reference: &HostTensor| match (args.rtol, args.atol) {
        (None, None) => default_tolerance(dtype, reference),
        (Some(rtol), None) => relative(rtol, reference),
        (rtol, atol) => Tolerance::Close { rtol: rtol.unwrap_or(0.0), atol: atol.unwrap_or(0.0) },
    };
    let checked = check_against(a.entry, values, &want, tolerance)?;
    if checked.is_empty() {
        let message = format!("`{}` and its reference have no output in common", a.entry.abi.name);
        return Err(Failure::new(codes::COMPARE, message).help("outputs are compared by name"));
    }
    Ok(checked)
}

fn outputs(entry: &Compiled, values: &[(String, Value)], files: &Outputs) -> Vec<Output> {
    let written = entry.abi.params.iter().zip(values).filter_map(|(p, (_, v))| match (p, v) {
        (ParamAbi::Tensor(p), Value::Tensor(t)) if p.mode.writes() => Some((p, t)),
        _ => None,
    });
    written
        .map(|(p, t)| {
            let values = || (0..t.len()).map(|i| t.get(i));
            Output {
                name: p.name.clone(),
                dtype: p.dtype.to_string(),
                shape: t.shape().to_vec(),
                mean: values().sum::<f64>() / t.len().max(1) as f64,
                min: values().fold(f64::INFINITY, f64::min),
                max: values().fold(f64::NEG_INFINITY, f64::max),
                file: files.iter().find(|(n, _)| *n == p.name).map(|(_, f)| f.to_string()),
            }
        })
        .collect()
}

fn compared(c: &Checked) -> Compared {
    Compared {
        name: c.name.clone(),
        right: c.report.is_right(),
        elements: c.report.count,
        wrong: c.report.wrong,
        max_abs: c.report.max_abs,
        max_rel: c.report.max_rel,
    }
}

fn human(shown: &Shown, target: &Target, checks: &[Checked]) -> String {
    let mut text = format!("{} on {}: {}\n", shown.entry, target.describe(), time(shown.seconds));
    for o in &shown.outputs {
        let shape = o.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let numbers = if o.shape.contains(&0) {
            "no elements".to_string()
        } else {
            format!("mean {:.6}, from {:.6} to {:.6}", o.mean, o.min, o.max)
        };
        let file = o.file.as_ref().map_or(String::new(), |f| format!(", written to {f}"));
        text += &format!("  {}: {}[{shape}]  {numbers}{file}\n", o.name, o.dtype);
    }
    for c in checks {
        let word = if c.report.is_right() { "right" } else { "WRONG" };
        text += &format!("  {}: {word}: {}\n", c.name, c.report);
    }
    text
}

pub fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}
