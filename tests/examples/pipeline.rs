//! Time from a kernel's text to its source, for every kernel of the library, and of each pass; what a doubling of a
//! program's size costs.
//!
//! `cargo run --release -p pantile-tests --example pipeline [ARCH] [NAME]`
#![allow(clippy::print_stdout)]

use pantile_ir::diag::Diagnostics;
use pantile_ir::elab::{Library, Request, elaborate};
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets};
use pantile_passes::pipeline::{Cx, of};
use pantile_tests::library::{Kernels, kernels};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

/// As the command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 5;
/// Steps of the smallest program whose doubling is timed.
const SIZE: usize = 4;

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v.get(v.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Milliseconds by step of one kernel; the last is the source.
fn steps(all: &mut Kernels, row: usize, arch: &Arch) -> Result<Vec<(&'static str, f64)>, String> {
    let start = Instant::now();
    let mut program = all.tile(row, arch)?;
    let mut out = vec![("specialise and verify", ms(start))];
    for pass in of(arch.backend) {
        let Some(run) = pass.run else { continue };
        if std::env::var_os("PIPELINE_FAST").is_some() && pass.name == "verify-order" {
            continue;
        }
        let start = Instant::now();
        program = run(program, &Cx { arch })
            .map_err(|d| d.iter().map(|d| d.message.clone()).collect::<String>())?;
        out.push((pass.name, ms(start)));
    }
    let start = Instant::now();
    let text = all.source(&program, arch)?;
    if std::env::var_os("PIPELINE_PRINT").is_some() {
        println!("{text}");
    }
    out.push(("source", ms(start)));
    Ok(out)
}

/// Text of a kernel of so many steps, each with shared memory, a fold over threads and a new tile.
fn long(steps: usize) -> String {
    let mut body = String::new();
    for i in 0..steps {
        let _ = writeln!(body, "    let t{i} = X[r*16 +: 16, {} +: 64] * {}.5", i % 7 * 64, i % 5);
        let _ = writeln!(body, "    s += sum(t{i}, axis = 1)");
        let _ = writeln!(body, "    y += t{i} @ W[{} +: 64, 0 +: 32]", i % 3 * 64);
    }
    format!(
        "kernel long(X: f32[R, 512], W: f32[256, 32], Y: out f32[R, 32], S: out f32[R]) {{\n\
         \x20   grid ceildiv(R, 16) as r\n    var s = zeros f32[16]\n    var y = zeros f32[16, 32]\n{body}\
         \x20   Y[r*16 +: 16, :] = y\n    S[r*16 +: 16] = s\n}}\n"
    )
}

/// What a doubling of a program's size costs, text to the last pass.
fn doubling(arch: &Arch) -> Result<(), String> {
    println!("{}: programs of 1, 2, 4 and 8 times the size, median of {RUNS}", arch.name);
    let mut before: Option<f64> = None;
    for n in [1, 2, 4, 8] {
        let text = long(n * SIZE);
        let mut times = Vec::new();
        for _ in 0..RUNS {
            let start = Instant::now();
            let mut sources = Sources::default();
            let lines = |d: Diagnostics| d.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; ");
            let (library, found) = Library::from_text("long.tile", &text, &mut sources);
            if found.has_errors() {
                return Err(lines(found));
            }
            let made = elaborate(&library, &Request::new("long"), arch, &mut sources).map_err(lines)?;
            let mut program = made.program;
            for pass in of(arch.backend) {
                let Some(run) = pass.run else { continue };
                program = run(program, &Cx { arch }).map_err(lines)?;
            }
            times.push(ms(start));
        }
        let t = median(times);
        let growth = before.map_or(String::new(), |b| format!("   x {:.2}", t / b));
        println!("  {:>4} steps {t:9.2} ms{growth}", n * SIZE);
        before = Some(t);
    }
    Ok(())
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_else(|| "sm_80".into());
    let only = std::env::args().nth(2);
    let targets = Targets::shipped();
    let Some(arch) = targets.arch(&wanted) else { return println!("there is no `{wanted}`") };
    let mut all = match kernels() {
        Ok(all) => all,
        Err(why) => return println!("{why}"),
    };
    let mut totals: Vec<(f64, String)> = Vec::new();
    let mut passes: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for row in 0..all.rows.len() {
        let name = all.rows[row].name.clone();
        if only.as_ref().is_some_and(|o| !name.contains(o)) {
            continue;
        }
        let mut runs: Vec<Vec<(&'static str, f64)>> = Vec::new();
        for _ in 0..RUNS {
            match steps(&mut all, row, arch) {
                Ok(list) => runs.push(list),
                Err(why) => {
                    println!("{name}: {why}");
                    break;
                }
            }
        }
        let Some(first) = runs.first() else { continue };
        let each: Vec<f64> =
            (0..first.len()).map(|i| median(runs.iter().map(|r| r[i].1).collect())).collect();
        for ((pass, _), &t) in first.iter().zip(&each) {
            passes.entry(pass).or_default().push(t);
        }
        totals.push((each.iter().sum(), name));
    }
    totals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |p: f64| totals.get(((totals.len() as f64 - 1.0) * p) as usize).map_or(f64::NAN, |t| t.0);
    println!("{wanted}: text to source, {} kernels, median of {RUNS}", totals.len());
    println!("  p50 {:.2} ms   p95 {:.2} ms   most {:.2} ms", at(0.5), at(0.95), at(1.0));
    for (t, name) in totals.iter().rev().take(20) {
        println!("  {t:8.2} ms  {name}");
    }
    if only.is_none()
        && let Err(why) = doubling(arch)
    {
        println!("  {why}");
    }
    for (pass, list) in &passes {
        let most = list.iter().copied().fold(0.0, f64::max);
        println!("  {pass:22} sum {:9.2} ms   most {most:8.2} ms", list.iter().sum::<f64>());
    }
}
