//! Real kernels of the library on this machine, each compared with plain loops in float64.
//!
//! `./x demo` runs them on seeded data, `./x demo --weights FILE.safetensors` on the tensors of a BERT-like model's
//! first layer; `config.json` beside the file, or `--heads`, says how many heads it has. Each line names the kernel, what
//! was fixed at compile time and the shapes. The demo ends with an error where a result is further from float64 than its bound.

use pantile::abi::DType;
use pantile::driver::{self, Input, RunError, RunOptions, Target, Value};
use pantile::ir::diag::Diagnostics;
use pantile::ir::diag::render::{Style, render_all};
use pantile::ir::elab::{Request, Setting};
use pantile::ir::span::Sources;
use pantile::ir::target::Targets;
use pantile::runtime::HostTensor;
use pantile::runtime::compare::{Report, Tolerance, compare};
use pantile::runtime::files::{self, ArrayPath};
use pantile::runtime::random::{Distribution, Recipe};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// A line of the report; a reader that has gone ends the demo.
macro_rules! say {
    ($($text:tt)*) => { writeln!(std::io::stdout(), $($text)*)? };
}

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let mut sources = Sources::default();
    match run(&mut sources) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(1)
        }
    }
}

fn run(sources: &mut Sources) -> Fallible<bool> {
    let (mut weights, mut heads) = (None, None);
    let mut args = std::env::args().skip(1);
    while let Some(option) = args.next() {
        match (option.as_str(), args.next()) {
            ("--weights", Some(file)) => weights = Some(PathBuf::from(file)),
            ("--heads", Some(n)) => {
                heads = Some(n.parse().map_err(|_| format!("`{n}` is no number of heads"))?)
            }
            _ => return Err("usage: ./x demo [--weights FILE.safetensors [--heads N]]".into()),
        }
    }
    if weights.is_none() && heads.is_some() {
        return Err("`--heads` goes with `--weights`".into());
    }
    let target = Target::choose("auto", None, &Targets::shipped()).map_err(|d| d.message)?;
    say!("on {}, {} threads\n", target.describe(), std::thread::available_parallelism()?);
    say!("{:<34} {:<46} {:>10} {:>14}  against float64", "kernel", "shapes", "time", "rate");
    let mut demo = Demo { target, sources, right: true };
    let data = match &weights {
        Some(file) => Data::of_model(file, heads)?,
        None => Data::seeded()?,
    };
    demo.products(&data)?;
    demo.rows(&data)?;
    demo.attention(&data)?;
    Ok(demo.right)
}

/// Inputs of every kernel.
struct Data {
    /// Activations, [tokens, width].
    x: HostTensor,
    /// Weights of a linear layer, [outputs, width].
    w: HostTensor,
    gamma: HostTensor,
    beta: HostTensor,
    /// Queries, keys, values, each [1, heads, tokens, head].
    qkv: [HostTensor; 3],
}

fn normal(shape: &[usize], seed: u64, scale: f64) -> Fallible<HostTensor> {
    let recipe = Recipe { scale, ..Recipe::new(Distribution::Normal, seed) };
    Ok(recipe.make(DType::F32, shape, None)?)
}

impl Data {
    fn seeded() -> Fallible<Data> {
        let (tokens, width, outputs, heads) = (1000, 1024, 1152, 8);
        let head = |seed| normal(&[1, heads, 333, 64], seed, 1.0);
        Ok(Data {
            x: normal(&[tokens, width], 1, 1.0)?,
            w: normal(&[outputs, width], 2, 0.03)?,
            gamma: normal(&[width], 3, 1.0)?,
            beta: normal(&[width], 4, 1.0)?,
            qkv: [head(5)?, head(6)?, head(7)?],
        })
    }

    /// The first layer of a model with BERT's names.
    fn of_model(file: &Path, heads: Option<usize>) -> Fallible<Data> {
        let names: Vec<String> = files::list(file)?.into_iter().map(|(n, ..)| n).collect();
        let get = |part: &str| -> Fallible<HostTensor> {
            let wanted = format!("encoder.layer.0.{part}");
            let name =
                names.iter().find(|n| n.ends_with(&wanted)).ok_or(format!("the file holds no `{wanted}`"))?;
            let at = ArrayPath { path: file.to_path_buf(), key: Some(name.clone()) };
            let t = files::read_tensor(&at, None)?;
            Ok(HostTensor::from_f64(DType::F32, t.shape(), &t.to_f64())?)
        };
        let w = get("intermediate.dense.weight")?;
        let (width, tokens) = (w.shape()[1], 37);
        let x = normal(&[tokens, width], 1, 1.0)?;
        let heads = heads.map_or_else(|| heads_of(file), Ok)?;
        if heads == 0 || width % heads != 0 {
            return Err(format!("a width of {width} does not divide into {heads} heads").into());
        }
        let head = width / heads;
        let mut qkv = Vec::new();
        for part in ["query", "key", "value"] {
            let w = get(&format!("attention.self.{part}.weight"))?;
            let b = get(&format!("attention.self.{part}.bias"))?;
            let y = linear(&x.to_f64(), &w.to_f64(), tokens, width, width);
            let mut out = vec![0.0; heads * tokens * head];
            for (i, o) in out.iter_mut().enumerate() {
                let (h, t, d) = (i / head / tokens, i / head % tokens, i % head);
                *o = y[t * width + h * head + d] + b.get(h * head + d);
            }
            qkv.push(HostTensor::from_f64(DType::F32, &[1, heads, tokens, head], &out)?);
        }
        let [q, k, v] = qkv.try_into().map_err(|_| "three projections")?;
        let gamma = get("attention.output.LayerNorm.weight")?;
        Ok(Data { x, w, gamma, beta: get("attention.output.LayerNorm.bias")?, qkv: [q, k, v] })
    }
}

/// How many heads the model has, from the `config.json` that lies beside its weights.
fn heads_of(weights: &Path) -> Fallible<usize> {
    let file = weights.with_file_name("config.json");
    let remedy = "give `--heads N`";
    let text = std::fs::read_to_string(&file)
        .map_err(|e| format!("cannot read `{}`: {e}; {remedy}", file.display()))?;
    let config: serde_json::Value = serde_json::from_str(&text)
        .map_err(|e| format!("`{}` is not JSON: {e}; {remedy}", file.display()))?;
    let heads = config.get("num_attention_heads").and_then(serde_json::Value::as_u64);
    let heads = heads.and_then(|n| usize::try_from(n).ok());
    Ok(heads.ok_or_else(|| format!("`{}` has no number `num_attention_heads`; {remedy}", file.display()))?)
}

struct Demo<'a> {
    target: Target,
    sources: &'a mut Sources,
    right: bool,
}

/// What is asked of one kernel.
struct Job<'a> {
    file: &'a str,
    name: &'a str,
    /// Types, constants and params, as on a command line.
    settings: Vec<(&'a str, String)>,
    inputs: Vec<(&'a str, Input)>,
    output: &'a str,
    /// Floating-point operations, or bytes where memory is what limits it.
    work: Work,
    want: Vec<f64>,
    /// Each element's own bound.
    bounds: Vec<f64>,
}

enum Work {
    Flops(f64),
    Bytes(f64),
}

impl Demo<'_> {
    fn products(&mut self, d: &Data) -> Fallible<()> {
        let (m, k, n) = (d.x.shape()[0], d.x.shape()[1], d.w.shape()[0]);
        let (x, w) = (d.x.to_f64(), d.w.to_f64());
        let transposed: Vec<f64> = (0..k * n).map(|i| w[(i % n) * k + i / n]).collect();
        let want = linear(&x, &w, m, k, n);
        let bounds = dot_bounds(&x, &w, m, k, n);
        self.show(Job {
            file: "gemm.tile",
            name: "gemm",
            settings: vec![],
            inputs: vec![
                ("A", Input::Tensor(d.x.try_clone()?)),
                ("B", Input::Tensor(HostTensor::from_f64(DType::F32, &[k, n], &transposed)?)),
            ],
            output: "C",
            work: Work::Flops(2.0 * (m * k * n) as f64),
            want: want.clone(),
            bounds: bounds.clone(),
        })?;
        let row = HostTensor::from_f64(DType::F32, &[k], &x[..k])?;
        self.show(Job {
            file: "gemv.tile",
            name: "gemv_allreduce",
            settings: vec![],
            inputs: vec![("x", Input::Tensor(row)), ("B", Input::Tensor(d.w.try_clone()?))],
            output: "y",
            work: Work::Bytes(4.0 * (n * k + n + k) as f64),
            want: want[..n].to_vec(),
            bounds: bounds[..n].to_vec(),
        })
    }

    fn rows(&mut self, d: &Data) -> Fallible<()> {
        let (r, c) = (d.x.shape()[0], d.x.shape()[1]);
        let x = d.x.to_f64();
        let u = DType::F32.unit_roundoff();
        let bytes = Work::Bytes(8.0 * (r * c) as f64);
        let soft: Vec<f64> = x.chunks(c).flat_map(softmax).collect();
        self.show(Job {
            file: "rows.tile",
            name: "softmax",
            settings: vec![],
            inputs: vec![("X", Input::Tensor(d.x.try_clone()?))],
            output: "Y",
            work: bytes,
            // a relative error of some roundings in the exponential, c more in the sum
            bounds: soft.iter().map(|y| (16.0 + c as f64) * u * y).collect(),
            want: soft,
        })?;
        let (g, b) = (d.gamma.to_f64(), d.beta.to_f64());
        let norm: Vec<f64> = x.chunks(c).flat_map(|row| layernorm(row, &g, &b, 1e-5)).collect();
        let bounds = (norm.iter().enumerate())
            .map(|(i, y)| (16.0 + c as f64) * u * (y.abs() + b[i % c].abs() + g[i % c].abs()))
            .collect();
        self.show(Job {
            file: "rows.tile",
            name: "layernorm",
            settings: vec![],
            inputs: vec![
                ("X", Input::Tensor(d.x.try_clone()?)),
                ("G", Input::Tensor(d.gamma.try_clone()?)),
                ("B", Input::Tensor(d.beta.try_clone()?)),
                ("eps", Input::Number("1e-5".into())),
            ],
            output: "Y",
            work: Work::Bytes(8.0 * (r * c) as f64),
            want: norm,
            bounds,
        })
    }

    fn attention(&mut self, d: &Data) -> Fallible<()> {
        let [q, k, v] = &d.qkv;
        let &[_, h, s, width] = q.shape() else { return Err("queries have four axes".into()) };
        // what the kernel multiplies by: the factor in its own type
        let scale = 1.0 / (width as f32).sqrt();
        let (want, bounds) =
            attention([&q.to_f64(), &k.to_f64(), &v.to_f64()], [h, s, width], f64::from(scale));
        self.show(Job {
            file: "attention.tile",
            name: "attention",
            settings: vec![("CAUSAL", "false".into()), ("D", width.to_string())],
            inputs: vec![
                ("Q", Input::Tensor(q.try_clone()?)),
                ("K", Input::Tensor(k.try_clone()?)),
                ("V", Input::Tensor(v.try_clone()?)),
                ("scale", Input::Number(scale.to_string())),
            ],
            output: "O",
            work: Work::Flops(4.0 * (h * s * s * width) as f64),
            want,
            bounds,
        })
    }

    /// Runs one kernel until the clock is sure, compares, prints a line.
    fn show(&mut self, job: Job<'_>) -> Fallible<()> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels").join(job.file);
        let library = driver::load(&path, &[], self.sources).map_err(|d| self.text(d))?;
        let head = driver::entry(&library, Some(job.name)).map_err(|d| d.message)?;
        let inputs: Vec<(String, Input)> = job.inputs.into_iter().map(|(n, i)| (n.to_string(), i)).collect();
        let mut request = Request::new(job.name);
        let fixed: Vec<String> = job.settings.iter().map(|(n, s)| format!("{n} = {s}")).collect();
        request.params.extend(job.settings.into_iter().map(|(n, s)| (n.to_string(), Setting::parse(&s))));
        request.args = Some(driver::input_info(&head, &inputs));
        let entry =
            driver::compile(&library, &request, &self.target.arch, self.sources).map_err(|d| self.text(d))?;
        let mut values = driver::arguments(&entry, inputs, &[]).map_err(|d| d.message)?;
        let device = self.target.device(&RunOptions::default()).map_err(|d| d.message)?;
        let (start, mut best) = (Instant::now(), f64::INFINITY);
        while start.elapsed().as_secs_f64() < 0.5 {
            let ran = driver::execute(&entry, &mut values, &device);
            best = best.min(ran.map_err(RunError::into_diagnostics).map_err(|d| self.text(d))?.seconds);
        }
        let shapes = values.iter().filter_map(|(_, v)| v.as_tensor()).map(|t| shape(t.shape()));
        let shapes = shapes.collect::<Vec<_>>().join(" ");
        let got = values.iter().find_map(|(n, v)| match v {
            Value::Tensor(t) if n == job.output => Some(t),
            _ => None,
        });
        let got = got.ok_or("the kernel has another output")?;
        let want = HostTensor::from_f64(DType::F64, got.shape(), &job.want)?;
        let report = compare(got, &want, Tolerance::Bounds(&job.bounds))?;
        let rate = match job.work {
            Work::Flops(n) => format!("{:.1} GFLOP/s", n / best / 1e9),
            Work::Bytes(n) => format!("{:.1} GB/s", n / best / 1e9),
        };
        let what =
            if fixed.is_empty() { job.name.into() } else { format!("{}<{}>", job.name, fixed.join(", ")) };
        say!("{what:<34} {shapes:<46} {:>7.3} ms {rate:>14}  {}", best * 1e3, verdict(&report));
        self.right &= report.is_right();
        Ok(())
    }

    fn text(&self, d: Diagnostics) -> String {
        render_all(&d, self.sources, Style::Plain)
    }
}

fn verdict(report: &Report) -> String {
    if report.is_right() {
        format!("right, largest error {:.1e}", report.max_abs)
    } else {
        format!("WRONG: {report}")
    }
}

fn shape(extents: &[usize]) -> String {
    extents.iter().map(ToString::to_string).collect::<Vec<_>>().join("×")
}

// ---- plain loops in float64 -----------------------------------------------------------------------------------

/// x · wᵀ
fn linear(x: &[f64], w: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    (0..m * n).map(|i| dot(&x[i / n * k..][..k], &w[i % n * k..][..k])).collect()
}

/// What a sum of k rounded products may be off: k·u·Σ|x||w| and the rounding of the result.
fn dot_bounds(x: &[f64], w: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    let abs = |v: &[f64]| v.iter().map(|a| a.abs()).collect::<Vec<f64>>();
    let u = DType::F32.unit_roundoff();
    linear(&abs(x), &abs(w), m, k, n).into_iter().map(|s| (k + 2) as f64 * u * s).collect()
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let e: Vec<f64> = row.iter().map(|x| (x - max).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.into_iter().map(|e| e / sum).collect()
}

fn layernorm(row: &[f64], g: &[f64], b: &[f64], eps: f64) -> Vec<f64> {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let var = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    let scale = 1.0 / (var + eps).sqrt();
    row.iter().enumerate().map(|(i, x)| (x - mean) * scale * g[i] + b[i]).collect()
}

/// The result and each element's bound. A relative error of a weight p moves the result by that part of p·|V|, in the
/// numerator and in the denominator: `width + 8` roundings of the score's terms, the exponential's own error and that of
/// its argument, and sums over the keys.
fn attention([q, k, v]: [&[f64]; 3], [heads, s, width]: [usize; 3], scale: f64) -> (Vec<f64>, Vec<f64>) {
    let (mut out, mut bounds) = (vec![0.0; heads * s * width], vec![0.0; heads * s * width]);
    let u = DType::F32.unit_roundoff();
    let abs = |v: &[f64]| v.iter().map(|a| a.abs()).collect::<Vec<f64>>();
    for h in 0..heads {
        let part = h * s * width..(h + 1) * s * width;
        let (q, k) = (&q[part.clone()], &k[part.clone()]);
        let scores = linear(q, k, s, width, s);
        let sizes = linear(&abs(q), &abs(k), s, width, s);
        for (i, (row, sizes)) in scores.chunks(s).zip(sizes.chunks(s)).enumerate() {
            let row: Vec<f64> = row.iter().map(|x| x * scale).collect();
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let p = softmax(&row);
            let error = |j: usize| {
                u * ((width + 8) as f64 * scale * sizes[j] + 4.0 * (top - row[j]) + (40 + 2 * s) as f64)
            };
            let mean: f64 = p.iter().enumerate().map(|(j, p)| p * error(j)).sum();
            let at = part.start + i * width;
            for (j, p) in p.iter().enumerate() {
                for d in 0..width {
                    let term = p * v[part.start + j * width + d];
                    out[at + d] += term;
                    bounds[at + d] += term.abs() * (error(j) + mean);
                }
            }
        }
    }
    let bounds = out.iter().zip(bounds).map(|(o, b)| b + u * o.abs()).collect();
    (out, bounds)
}
