//! The replay of barriers: silent on what the passes leave of the library, of the cases and of generated programs,
//! and loud where a barrier is gone, too weak or misplaced, or where two buffers lie on each other.
//!
//! `PANTILE_FUZZ_PROGRAMS` sets the number of generated programs (500).
#![allow(clippy::print_stdout)]

use pantile_ir::codes;
use pantile_ir::diag::Diagnostics;
use pantile_ir::effects::{Ctx, Obj, stmt_effects};
use pantile_ir::elab::{Library, elaborate};
use pantile_ir::layout::Axis;
use pantile_ir::print::print;
use pantile_ir::program::*;
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets};
use pantile_passes::pipeline::{self, Cx};
use pantile_passes::{share, verify_order};
use pantile_tests::corpus::root;
use pantile_tests::generate::{self, Choices};
use pantile_tests::library::kernels;
use pantile_tests::run::request;
use std::collections::BTreeSet;
use std::time::Instant;

fn arch(name: &str) -> Arch {
    Targets::shipped().arch(name).expect("a shipped architecture").clone()
}

/// What the passes say, and whether it is the replay that says it.
fn through(p: Program, arch: &Arch, last: &mut Option<Program>) -> Result<Program, (bool, Diagnostics)> {
    let mut passed = "";
    let done = pipeline::run(p, &Cx { arch }, |pass, p| {
        passed = pass.name;
        *last = Some(p.clone());
        Ok(())
    });
    // which comes after `tidy`
    let replay = |c| c == codes::UNORDERED || c == codes::PARTIAL_EXCHANGE;
    done.map_err(|d| (passed == "tidy" && d.iter().any(|d| replay(d.code)), d))
}

#[test]
fn the_library_is_ordered() {
    let mut all = kernels().expect("the library");
    let only = std::env::var("PANTILE_KERNEL").unwrap_or_default();
    for name in ["sm_80", "mp_31", "mp_22"] {
        let arch = arch(name);
        let (mut done, mut failed) = (0, Vec::new());
        for row in 0..all.rows.len() {
            if !all.rows[row].name.contains(&only) {
                continue;
            }
            let Ok(tile) = all.tile(row, &arch) else { continue };
            let mut last = None;
            match through(tile, &arch, &mut last) {
                Ok(_) => done += 1,
                Err((true, d)) => {
                    let text = last.filter(|_| !only.is_empty()).map(|p| print(&p)).unwrap_or_default();
                    failed.push(format!("{}: {d:#?}\n{text}", all.rows[row].name));
                }
                Err(_) => {}
            }
        }
        println!("{name}: {done} kernels are ordered, {} are refused", failed.len());
        assert!(failed.is_empty(), "{name}: {}", failed.join("\n"));
        assert!(done >= 60 || !only.is_empty(), "{name}: {done} kernels");
    }
}

#[test]
fn generated_programs_are_ordered() {
    let count = std::env::var("PANTILE_FUZZ_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(500u64);
    let first = std::env::var("PANTILE_FUZZ_FIRST").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    let archs = ["sm_80", "mp_22"].map(arch);
    let (mut done, mut refused, mut failed) = (0, 0, Vec::new());
    let known = std::fs::read_to_string(root().join("tests/mutants/passes_known.txt")).unwrap();
    let known: Vec<u64> = known.lines().filter_map(|l| l.split(' ').next()?.parse().ok()).collect();
    for seed in (first..first + count).filter(|s| !known.contains(s)) {
        let p = generate::Program::generate(0, Choices::seeded(seed));
        let arch = &archs[seed as usize % 2];
        let mut sources = Sources::default();
        let (lib, _) = Library::from_text("generated.tile", &p.text, &mut sources);
        let Ok(made) = elaborate(&lib, &request(&p), arch, &mut sources) else {
            refused += 1;
            continue;
        };
        let mut last = None;
        match through(made.program, arch, &mut last) {
            Ok(_) => done += 1,
            Err((true, d)) => {
                let text = last.map(|p| print(&p)).unwrap_or_default();
                failed.push(format!("seed {seed}, {}: {d:#?}\n{}\n{text}", arch.name, p.text));
            }
            Err(_) => refused += 1,
        }
    }
    println!("{done} programs are ordered, {refused} are refused by other passes");
    failed.iter().for_each(|f: &String| println!("{}", f.split(",").next().unwrap_or("")));
    assert!(failed.is_empty(), "{} are refused, the first: {}", failed.len(), failed[0]);
    assert!(done * 4 >= count, "{done} of {count}");
}

/// A change that makes an order worse, or at least no better.
#[derive(Clone, Copy, Debug)]
enum Change {
    Delete,
    Weaken,
    Earlier,
    Later,
}

fn shared(k: &Kernel, s: &Stmt) -> bool {
    let mut found = false;
    let one = std::slice::from_ref(s);
    walk(&one.to_vec(), &mut |s| {
        let all = stmt_effects(&s.kind, &Ctx { kernel: k, team: None, span: s.span });
        found |= all.iter().any(|a| matches!(a.obj, Obj::Shared(_)));
    });
    found
}

/// Whether the `n`th barrier was found; `None` there: it has no such mutant.
fn change(k: &Kernel, b: &mut Block, left: &mut usize, c: Change) -> Option<bool> {
    for i in 0..b.len() {
        if let StmtKind::Op { op: Op::Barrier { team }, .. } = &mut b[i].kind {
            if *left > 0 {
                *left -= 1;
                continue;
            }
            match c {
                Change::Weaken if *team == Team::Warp => return Some(false),
                Change::Weaken => *team = Team::Warp,
                Change::Delete => drop(b.remove(i)),
                Change::Earlier => {
                    let Some(to) = (0..i).rev().find(|&j| shared(k, &b[j])) else { return Some(false) };
                    let s = b.remove(i);
                    b.insert(to, s);
                }
                Change::Later => {
                    let Some(to) = (i + 1..b.len()).find(|&j| shared(k, &b[j])) else { return Some(false) };
                    let s = b.remove(i);
                    b.insert(to, s);
                }
            }
            return Some(true);
        }
        for inner in b[i].kind.blocks_mut() {
            if let Some(done) = change(k, inner, left, c) {
                return Some(done);
            }
        }
    }
    None
}

/// Every mutant with its name.
fn mutants(p: &Program) -> Vec<(String, Program)> {
    let mut all = Vec::new();
    for id in p.kernels.handles() {
        let k = &p.kernels[id];
        for c in [Change::Delete, Change::Weaken, Change::Earlier, Change::Later] {
            for n in 0.. {
                let mut m = p.clone();
                match change(k, &mut m.kernels[id].stmts, &mut n.clone(), c) {
                    None => break,
                    Some(false) => {}
                    Some(true) => all.push((format!("{c:?}({n})").to_lowercase(), m)),
                }
            }
        }
        let ranges = share::ranges(k);
        let mut names: Vec<_> = ranges.keys().copied().collect();
        names.sort_unstable();
        for (i, a) in names.iter().enumerate() {
            for b in &names[i + 1..] {
                if ranges[a].start < ranges[b].end && ranges[b].start < ranges[a].end {
                    continue;
                }
                let mut m = p.clone();
                if let Some(l) = &mut m.kernels[id].buffers[*b].layout {
                    l.layout.offset[Axis::Mem] = ranges[a].start;
                    all.push((format!("alias({},{})", k.buffers[*a].name, k.buffers[*b].name), m));
                }
            }
        }
    }
    all
}

#[test]
fn mutants_are_noticed() {
    let path = root().join("tests/mutants/equivalent_order.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let argued: BTreeSet<&str> = text
        .lines()
        .filter(|l| !l.starts_with('#') && !l.trim().is_empty())
        .map(|l| l.split(" — ").next().unwrap_or(l).trim())
        .collect();
    let arch = arch("sm_80");
    let mut all = kernels().expect("the library");
    let only = std::env::var("PANTILE_KERNEL").unwrap_or_default();
    let (mut caught, mut survived) = (0, BTreeSet::new());
    for row in 0..all.rows.len() {
        let name = all.rows[row].name.clone();
        if !name.contains(&only) {
            continue;
        }
        let Ok(p) = all.lowered(row, &arch) else { continue };
        for (what, m) in mutants(&p) {
            match verify_order::run(m.clone(), &Cx { arch: &arch }) {
                Err(_) => caught += 1,
                Ok(_) => {
                    if !only.is_empty() {
                        println!("{name} {what}\n{}", print(&m));
                    }
                    survived.insert(format!("{name} {what}"));
                }
            }
        }
    }
    let total = caught + survived.len();
    println!("{caught} of {total} mutants are noticed; {} survive", survived.len());
    let unargued: Vec<&String> = survived.iter().filter(|s| !argued.contains(s.as_str())).collect();
    assert!(unargued.is_empty(), "{} survive without a reason:\n{unargued:#?}", unargued.len());
    if only.is_empty() {
        for stale in argued.iter().filter(|a| !survived.contains(**a)) {
            println!("noticed, or gone, and yet argued: {stale}");
        }
        assert!(total >= 100 && caught * 100 >= total * 95, "{caught} of {total}");
    }
}

/// Milliseconds of all passes and of the two that order, for each kernel of the library.
#[test]
#[ignore = "measures; run it in release"]
fn time_of_the_passes() {
    let arch = arch("sm_80");
    let mut all = kernels().expect("the library");
    let mut sums = Vec::new();
    for row in 0..all.rows.len() {
        let Ok(tile) = all.tile(row, &arch) else { continue };
        let (mut last, begin) = (Instant::now(), Instant::now());
        let mut times = Vec::new();
        let run = pipeline::run(tile, &Cx { arch: &arch }, |pass, _| {
            times.push((pass.name, last.elapsed().as_secs_f64() * 1e3));
            last = Instant::now();
            Ok(())
        });
        let sum = begin.elapsed().as_secs_f64() * 1e3;
        times.sort_by(|a, b| b.1.total_cmp(&a.1));
        let most: Vec<String> = times.iter().take(4).map(|(n, t)| format!("{n} {t:.2}")).collect();
        if run.is_ok() {
            sums.push(sum);
            println!("{sum:8.2} ms  {}: {}", all.rows[row].name, most.join(", "));
        }
    }
    sums.sort_by(f64::total_cmp);
    println!("median {:.2} ms, p95 {:.2} ms", sums[sums.len() / 2], sums[sums.len() * 95 / 100]);
}
