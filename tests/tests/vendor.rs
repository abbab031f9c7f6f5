//! The sources of every library kernel before the compilers of vendors: real NVRTC to device code and PTX for every
//! generation, MUSA C++ through clang against strict declarations, and through `mcc` where it is installed.
//!
//! What a target cannot have yet is counted and pinned in the snapshots; a source that its compiler refuses is a failure.
//! Absent compilers are skipped, or failures with `PANTILE_NEED_VENDOR=1`.
#![allow(clippy::print_stdout)]

use pantile_ir::target::Targets;
use pantile_runtime::vendor::VendorFacts;
use pantile_tests::library::kernels;
use pantile_tests::vendor::{Clang, nvrtc, real_musa};
use std::time::{Duration, Instant};

/// Goals for one kernel; timings are reported, never a failure.
const MEDIAN: Duration = Duration::from_millis(150);
const LONGEST: Duration = Duration::from_millis(400);

struct Tally {
    arch: &'static str,
    taken: usize,
    /// no source yet
    without: usize,
    wrong: Vec<String>,
    times: Vec<(Duration, String)>,
}

/// Gives each source to a compiler.
fn each(arch: &'static str, mut compile: impl FnMut(&str, &str) -> Result<(), String>) -> Tally {
    let targets = Targets::shipped();
    let target = targets.arch(arch).unwrap_or_else(|| panic!("{arch} is no target"));
    let mut all = kernels().unwrap_or_else(|e| panic!("{e}"));
    let mut tally = Tally { arch, taken: 0, without: 0, wrong: Vec::new(), times: Vec::new() };
    for row in 0..all.rows.len() {
        let source = all.lowered(row, target).and_then(|p| all.source(&p, target));
        let name = all.rows[row].name.clone();
        let Ok(source) = source else {
            tally.without += 1;
            continue;
        };
        let start = Instant::now();
        match compile(&source, &name) {
            Ok(()) => tally.taken += 1,
            Err(log) => tally.wrong.push(format!("{name} for {arch}:\n{log}")),
        }
        tally.times.push((start.elapsed(), name));
    }
    tally
}

impl Tally {
    fn report(mut self) {
        self.times.sort();
        let Tally { arch, taken, without, wrong, times } = self;
        println!("{arch}: {taken} taken, {} refused, {without} without a source", wrong.len());
        if let (Some((median, _)), Some((longest, name))) = (times.get(times.len() / 2), times.last()) {
            let late = times.iter().filter(|(t, _)| *t > LONGEST).count();
            println!(
                "  median {median:.0?} (goal {MEDIAN:?}), longest {longest:.0?} {name}, {late} over {LONGEST:?}"
            );
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

fn cuda(arch: &'static str) {
    let nvrtc = match nvrtc() {
        Ok(found) => found,
        Err(why) => return println!("skipped: {arch}: {why}"),
    };
    let compile = |source: &str, name: &str| {
        if source.contains("#include") {
            return Err("a source includes a header".into());
        }
        let made = nvrtc.compile(source, name, arch, &[]).map_err(|e| e.message)?;
        let facts = VendorFacts::parse(&made.log, &made.ptx);
        let whole = !made.cubin.is_empty() && !facts.entries.is_empty();
        let counted = facts.entries.iter().all(|e| e.registers.is_some() && e.counts.is_some());
        if whole && counted { Ok(()) } else { Err(format!("facts are missing:\n{facts}\n{}", made.log)) }
    };
    each(arch, compile).report();
}

fn musa(arch: &'static str) {
    let clang = match Clang::find() {
        Ok(found) => found,
        Err(why) => return println!("skipped: {arch}: {why}"),
    };
    let compile = |source: &str, name: &str| {
        clang.check(source, arch)?;
        real_musa(source, name, arch).unwrap_or(Ok(()))
    };
    each(arch, compile).report();
}

#[test]
fn sm_75() {
    cuda("sm_75");
}

#[test]
fn sm_80() {
    cuda("sm_80");
}

#[test]
fn sm_89() {
    cuda("sm_89");
}

#[test]
fn sm_90a() {
    cuda("sm_90a");
}

#[test]
fn sm_100a() {
    cuda("sm_100a");
}

#[test]
fn mp_31() {
    musa("mp_31");
}

#[test]
fn mp_22() {
    musa("mp_22");
}
