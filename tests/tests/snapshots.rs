//! What the compiler makes of every kernel of the library, pinned: the tile program, for each GPU target the final
//! program, its source and facts, for the CPU the hot loop and facts. `docs/reviewing-snapshots.md` says how to read and
//! renew them.
//!
//! A kernel that a target cannot have is pinned with what the compiler says about it.
#![allow(clippy::print_stdout)]

use pantile_ir::print::print;
use pantile_ir::target::{Arch, Targets};
use pantile_passes::facts::facts;
use pantile_passes::work::work;
use pantile_tests::corpus::root;
use pantile_tests::library::{Kernels, Row, kernels};
use pantile_tests::tidy::renumbered;
use pantile_tests::vendor;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The compiler whose registers and spills stand in snapshots.
const NVRTC: (u32, u32) = (13, 0);
/// All snapshots together.
const LIMIT: u64 = 8 << 20;

/// Pins `text(row)` of every kernel under `tests/snapshots/FOLDER`; all differences are told at once.
fn pin(folder: &str, mut text: impl FnMut(&mut Kernels, usize) -> String) {
    let mut all = kernels().unwrap_or_else(|e| panic!("{e}"));
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(root().join("tests/snapshots").join(folder));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut changed = Vec::new();
    for row in 0..all.rows.len() {
        let made = text(&mut all, row);
        let Row { name, file, request, .. } = &all.rows[row];
        let head =
            format!("kernel: kernels/{file}.tile::{}\noptions: {}\n", request.entry, all.rows[row].options());
        let check = || settings.bind(|| insta::assert_snapshot!(name.as_str(), format!("{head}{made}")));
        if catch_unwind(AssertUnwindSafe(check)).is_err() {
            changed.push(name.clone());
        }
    }
    let count = changed.len();
    assert!(changed.is_empty(), "{count} of {} changed for {folder}: {}", all.rows.len(), changed.join(" "));
}

fn section(title: &str, body: &str) -> String {
    format!("\n==== {title}\n{}\n", body.trim_end())
}

fn refused(why: &str) -> String {
    section("not for this target", why)
}

#[test]
fn tile() {
    let targets = Targets::shipped();
    // the target's facts that a kernel asks for are those of this one
    let arch = targets.arch("sm_80").unwrap();
    pin("tile", |all, row| match all.tile(row, arch) {
        Ok(program) => section("tile", &renumbered(&print(&program))),
        Err(why) => refused(&why),
    });
}

#[test]
fn sm_80() {
    threads("sm_80");
}

#[test]
fn sm_90a() {
    threads("sm_90a");
}

#[test]
fn mp_31() {
    threads("mp_31");
}

#[test]
fn mp_22() {
    threads("mp_22");
}

fn threads(name: &str) {
    let targets = Targets::shipped();
    let arch = targets.arch(name).unwrap();
    pin(name, |all, row| match all.lowered(row, arch) {
        Err(why) => refused(&why),
        Ok(program) => {
            let mut text = section("final", &renumbered(&print(&program)));
            let source = all.source(&program, arch);
            text += &match &source {
                Ok(source) => section("source", &renumbered(source)),
                Err(why) => section("no source", why),
            };
            let known = facts(&program, arch).unwrap_or_else(|d| panic!("{name}: {d:?}"));
            let work = all.tile(row, arch).map(|p| work(&p)).unwrap_or_default();
            for (((_, k), facts), work) in program.kernels.iter().zip(known).zip(work) {
                let compiled =
                    source.as_ref().ok().map(|s| vendor_facts(s, &all.rows[row].name, &k.name, arch));
                let compiled = compiled.unwrap_or_else(|| UNKNOWN.to_string());
                text += &section(&format!("facts of {}", k.name), &format!("{facts}{work}{compiled}"));
            }
            text
        }
    });
}

const UNKNOWN: &str = "registers: unknown\nspilled bytes: unknown\n";

/// Registers and spills by the vendor's compiler. Where it is not here, what is pinned already counts: nothing is
/// compared then, and the test says so.
fn vendor_facts(source: &str, row: &str, kernel: &str, arch: &Arch) -> String {
    if !arch.name.starts_with("sm_") {
        return UNKNOWN.into();
    }
    let found = vendor::nvrtc().and_then(|n| match n.version() == NVRTC {
        true => Ok(n),
        false => Err(format!("{n:?} is not the version of the snapshots, {}.{}", NVRTC.0, NVRTC.1)),
    });
    let nvrtc = match found {
        Ok(nvrtc) => nvrtc,
        Err(why) => {
            assert!(!vendor::needed(), "{why}");
            println!("skipped: registers of {row} for {}: {why}", arch.name);
            return pinned_facts(row, kernel, arch).unwrap_or_else(|| UNKNOWN.into());
        }
    };
    match nvrtc.compile(source, row, &arch.name, &[]) {
        Ok(made) => {
            let facts = pantile_runtime::vendor::VendorFacts::parse(&made.log, "");
            let known = |n: Option<u32>| n.map_or_else(|| "unknown".to_string(), |n| n.to_string());
            let entry = facts.entries.iter().find(|e| e.name == kernel).cloned().unwrap_or_default();
            let spills = entry.spill_stores.zip(entry.spill_loads).map(|(s, l)| s + l);
            format!("registers: {}\nspilled bytes: {}\n", known(entry.registers), known(spills))
        }
        Err(e) => format!("compiler: {}\n", e.message),
    }
}

/// The vendor's lines of the snapshot that is there.
fn pinned_facts(row: &str, kernel: &str, arch: &Arch) -> Option<String> {
    let path = root().join("tests/snapshots").join(&arch.name).join(format!("{row}.snap"));
    let text = std::fs::read_to_string(path).ok()?;
    let (_, part) = text.split_once(&format!("==== facts of {kernel}\n"))?;
    let part = part.split("\n====").next()?;
    let ours = |l: &&str| ["registers: ", "spilled bytes: ", "compiler: "].iter().any(|k| l.starts_with(k));
    Some(part.lines().filter(ours).map(|l| format!("{l}\n")).collect())
}

/// Only for the LLVM of the snapshots: another version writes other code.
#[cfg(feature = "cpu-llvm22")]
#[test]
fn x86_64_v4() {
    use pantile_backends::cpu::{Machine, build};
    let targets = Targets::shipped();
    let arch = targets.arch("x86-64-v4").unwrap();
    let machine = Machine::of(arch).unwrap();
    pin("x86-64-v4", |all, row| {
        let tile = all.tile(row, arch);
        let asked: String = tile.iter().flat_map(work).map(|w| w.to_string()).collect();
        let built = tile.and_then(|p| build(&p, &machine, true).map_err(|e| e.to_string()));
        match built.map(|b| pantile_tests::hot::hot_loop(&b.asm.unwrap_or_default())) {
            Err(why) => refused(&why),
            Ok(None) => section("facts", &format!("loops: 0\n{asked}")),
            Ok(Some(hot)) => {
                let facts = format!(
                    "inner loops: {}\ninstructions of the hot loop: {}\nregister bits: {}\nfma: {}\nstack accesses: {}\n{asked}",
                    hot.loops, hot.instructions, hot.bits, hot.fma, hot.stack
                );
                section("hot loop", &hot.text) + &section("facts", &facts)
            }
        }
    });
}

/// Somebody has to read them.
#[test]
fn all_together_are_small() {
    let mut bytes = 0;
    let folders = std::fs::read_dir(root().join("tests/snapshots")).unwrap().flatten();
    for folder in folders.filter(|f| f.path().is_dir()) {
        for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
            bytes += file.metadata().unwrap().len();
        }
    }
    println!("{bytes} bytes of snapshots");
    assert!(bytes < LIMIT, "{bytes} bytes of snapshots, {LIMIT} is the limit");
}
