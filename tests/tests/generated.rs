//! Generated programs mean the same on the interpreter and on the CPU, bit for bit.
//!
//! `PANTILE_FUZZ_PROGRAMS` sets their number (2,000), `PANTILE_FUZZ_SEED` the seed of the half that is not fixed
//! (else the commit's). A failure prints the smallest program that still fails, with its choices.
#![allow(clippy::print_stdout)]

use pantile_ir::elab::Request;
use pantile_tests::generate::{Choices, Program, batch};
use pantile_tests::run::{
    Bench, Outcome, build_code, check_one, compare, compile, interpret, kernel_of, request,
};
use pantile_tests::shrink::shrink;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Programs of one LLVM module.
const BATCH: usize = 20;

fn count() -> usize {
    std::env::var("PANTILE_FUZZ_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)
}

/// From the environment, else from the commit.
fn varying_seed() -> u64 {
    if let Some(seed) = std::env::var("PANTILE_FUZZ_SEED").ok().and_then(|s| s.parse().ok()) {
        return seed;
    }
    let commit = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output().ok();
    let text = commit.filter(|o| o.status.success()).map(|o| o.stdout).unwrap_or_default();
    text.iter().fold(7, |h: u64, &b| h.wrapping_mul(0x100_0000_01b3) ^ u64::from(b)) >> 16
}

/// The fixed half, then the half of this commit.
fn seed_of(number: usize, total: usize, varying: u64) -> u64 {
    if number < total / 2 {
        number as u64
    } else {
        varying.wrapping_mul(1_000_003).wrapping_add(number as u64)
    }
}

/// What became of a batch, program by program.
fn check_batch(bench: &Bench, programs: &[Program]) -> Vec<Outcome> {
    let mut outcomes: Vec<Option<Outcome>> = vec![None; programs.len()];
    // what is refused by itself would take its neighbours along
    for (p, o) in programs.iter().zip(&mut outcomes) {
        if let Err(lines) = compile(bench, &p.text, &request(p)) {
            *o = Some(Outcome::refused(&lines));
        }
    }
    let good: Vec<&Program> =
        programs.iter().zip(&outcomes).filter(|(_, o)| o.is_none()).map(|(p, _)| p).collect();
    let together = compile(bench, &batch(&good), &Request::new("all"));
    let code = match &together {
        Ok(made) => build_code(bench, &made.program).ok(),
        Err(_) => None,
    };
    for (p, o) in programs.iter().zip(&mut outcomes) {
        if o.is_some() {
            continue;
        }
        let (Ok(made), Some(code)) = (&together, &code) else {
            *o = Some(match check_one(bench, p) {
                Outcome::Same if together.is_err() => {
                    let lines = together.as_ref().err().map(|l| l.join("\n")).unwrap_or_default();
                    Outcome::Broken(format!("good alone, not in a batch:\n{lines}"))
                }
                alone => alone,
            });
            continue;
        };
        let Some(kernel) = kernel_of(&made.program, p) else {
            *o = Some(Outcome::Broken("the batch lost its kernel".into()));
            continue;
        };
        *o = Some(match interpret(bench, &made.program, kernel, p) {
            Ok(expected) => compare(code, kernel.index(), p, &expected),
            Err(f) => Outcome::Fault(format!("{} {f} {:?}", f.code, f.values)),
        });
    }
    outcomes.into_iter().flatten().collect()
}

/// The smallest program with the same kind of failure.
fn smallest(bench: &Bench, p: &Program, kind: &str) -> (Program, Outcome) {
    let fails = |choices: &[u32]| {
        let q = Program::generate(0, Choices::replay(choices));
        check_one(bench, &q).kind() == kind
    };
    let limit = Duration::from_secs(if kind == "differs" || kind == "broken" { 120 } else { 30 });
    let choices = shrink(&p.choices, limit, fails);
    let q = Program::generate(0, Choices::replay(&choices));
    let outcome = check_one(bench, &q);
    (q, outcome)
}

fn report(bench: &Bench, seed: u64, p: &Program, outcome: &Outcome, small: bool) -> String {
    let mut text = format!("seed {seed}: {}\n{}\n", outcome.kind(), outcome.text());
    if !small {
        return text;
    }
    let (q, what) = smallest(bench, p, outcome.kind());
    let _ = writeln!(text, "smallest program of this kind ({}): {}", what.kind(), what.text());
    let _ = writeln!(text, "{}", q.text);
    for param in &q.params {
        let _ = writeln!(text, "// {}", param.summary());
    }
    let _ = writeln!(text, "// choices {:?}", q.choices);
    text
}

#[test]
fn interpreter_and_cpu_agree() {
    let total = count();
    let varying = varying_seed();
    let bench = Bench::new();
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(u64, Program, Outcome)>> = Mutex::new(Vec::new());
    let counts: Mutex<BTreeMap<&'static str, usize>> = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= total {
                return;
            }
            let numbers: Vec<usize> = (first..total.min(first + BATCH)).collect();
            let seeds: Vec<u64> = numbers.iter().map(|&n| seed_of(n, total, varying)).collect();
            let programs: Vec<Program> =
                seeds.iter().enumerate().map(|(i, &s)| Program::generate(i, Choices::seeded(s))).collect();
            for ((seed, p), o) in seeds.into_iter().zip(programs.iter()).zip(check_batch(&bench, &programs)) {
                *counts.lock().unwrap().entry(o.kind()).or_default() += 1;
                if !matches!(o, Outcome::Same | Outcome::Unwritten(_)) {
                    found.lock().unwrap().push((seed, p.clone(), o));
                }
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(2, |n| n.get());
    std::thread::scope(|s| {
        for _ in 0..workers {
            s.spawn(work);
        }
    });
    let counts = counts.into_inner().unwrap();
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(seed, _, _)| *seed);
    println!("{total} programs, varying seed {varying}: {counts:?}");
    let show = std::env::var("PANTILE_FUZZ_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(3usize);
    let mut shown: BTreeMap<String, usize> = BTreeMap::new();
    for (seed, p, o) in &found {
        // one of each sort in full
        let sort = format!("{} {}", o.kind(), o.text().split_whitespace().next().unwrap_or_default());
        let n = shown.entry(sort).or_default();
        *n += 1;
        if *n <= show {
            println!("---- {}", report(&bench, *seed, p, o, *n == 1));
        }
    }
    let of = |kind: &str| counts.get(kind).copied().unwrap_or(0);
    assert_eq!(of("differs") + of("broken") + of("refused"), 0, "programs without one meaning");
    assert!(of("unwritten") * 100 <= total, "more than 1 % of the programs never write an output");
    assert!(of("fault") * 20 <= total, "more than 5 % of the programs fault: the generator is wrong");
    assert_eq!(of("unsupported"), 0, "generated programs hold nothing that the CPU refuses");
}

/// One program by its choices, for reproducing: `PANTILE_FUZZ_CHOICES="1, 2, 3"`.
#[test]
fn one_program() {
    let Ok(text) = std::env::var("PANTILE_FUZZ_CHOICES") else { return };
    let choices: Vec<u32> = text.split(',').filter_map(|w| w.trim().parse().ok()).collect();
    let p = Program::generate(0, Choices::replay(&choices));
    println!("{}", p.text);
    let bench = Bench::new();
    let outcome = check_one(&bench, &p);
    println!("{} {}", outcome.kind(), outcome.text());
}

/// A program of a file, for looking closer: `PANTILE_FUZZ_FILE=x.tile`, its kernel is `k0`.
#[test]
fn one_file() {
    let Ok(path) = std::env::var("PANTILE_FUZZ_FILE") else { return };
    let text = std::fs::read_to_string(&path).expect("a file");
    let bench = Bench::new();
    for kind in 0..4 {
        let p = pantile_tests::plain::program(&bench, "k0", &text, kind).expect("a program");
        let outcome = check_one(&bench, &p);
        println!("data {kind}: {} {}", outcome.kind(), outcome.text());
    }
    if std::env::var_os("PANTILE_FUZZ_LLVM").is_some() {
        let made = compile(&bench, &text, &Request::new("k0")).expect("compiles");
        println!("{}", pantile_ir::print::print(&made.program));
        let built = pantile_backends::cpu::build(&made.program, &bench.machine, true).expect("builds");
        println!("{}\n{}", built.llvm.unwrap_or_default(), built.asm.unwrap_or_default());
    }
}

/// The program of one seed, for looking closer: `PANTILE_FUZZ_ONE=456`.
#[test]
fn one_seed() {
    let Some(seed) = std::env::var("PANTILE_FUZZ_ONE").ok().and_then(|s| s.parse().ok()) else { return };
    let p = Program::generate(0, Choices::seeded(seed));
    println!("{}", p.text);
    let bench = Bench::new();
    let outcome = check_one(&bench, &p);
    println!("{}", report(&bench, seed, &p, &outcome, true));
}
