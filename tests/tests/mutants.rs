//! Mechanical mutants of the library's kernels: how many are found, where, and with how many words.
//!
//! `PANTILE_MUTANTS` sets how many of each kind (70).
#![allow(clippy::print_stdout)]

use pantile::driver::{self, Target};
use pantile_ir::DType;
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::elab::{Library, Request, TestCase, elaborate, tests};
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets};
use pantile_ir::verify::verify;
use pantile_tests::corpus;
use pantile_tests::mutants::{Kind, Mutant, mutants, sites};
use pantile_tests::words::internal_word;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Errors that may follow the first.
const FOLLOW_UPS: usize = 3;
/// A mutant is given up after this long.
const PATIENCE: Duration = Duration::from_secs(20);

fn wanted() -> usize {
    std::env::var("PANTILE_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(70)
}

/// A file of the library with its test cases, by the kernels that they run.
struct Subject {
    path: PathBuf,
    text: String,
    cases: Vec<TestCase>,
    /// Kernel name to cases, the small ones first.
    by_kernel: BTreeMap<String, Vec<usize>>,
}

fn subjects(arch: &Arch) -> Vec<Subject> {
    let mut out = Vec::new();
    for path in corpus::files(&["kernels"]) {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if matches!(name, "std.tile" | "ref.tile") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a file");
        let mut sources = Sources::default();
        let (lib, diags) = corpus::load(&path, &text, &mut sources);
        assert!(!diags.has_errors(), "{name} loads");
        let cases = tests(&lib, &mut sources).expect("test blocks");
        let mut kernels: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut by_kernel: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (i, case) in cases.iter().enumerate() {
            let key = format!("{:?}", case.request);
            let names = kernels.entry(key).or_insert_with(|| {
                let made = elaborate(&lib, &case.request, arch, &mut sources);
                made.map(|m| m.program.kernels.iter().map(|(_, k)| k.name.clone()).collect())
                    .unwrap_or_default()
            });
            for n in names.iter() {
                by_kernel.entry(n.clone()).or_default().push(i);
            }
        }
        for list in by_kernel.values_mut() {
            list.sort_by_key(|&i| weight(&cases[i]));
        }
        out.push(Subject { path, text, cases, by_kernel });
    }
    out
}

/// How large a case is; those without elements come last.
fn weight(case: &TestCase) -> u64 {
    let n: u64 = case.dims.values().fold(1, |n, &d| n.saturating_mul(d));
    if n == 0 { u64::MAX } else { n }
}

/// Requests under which a kernel is specialised: narrow floats first, where a missing conversion shows.
fn requests(s: &Subject, kernel: &str) -> Vec<Request> {
    let mut seen = BTreeSet::new();
    let all = s.by_kernel.get(kernel).into_iter().flatten().map(|&i| s.cases[i].request.clone());
    let mut list: Vec<Request> = all.filter(|r| seen.insert(format!("{r:?}"))).collect();
    list.sort_by_key(|r| !r.types.values().any(|&d| d == DType::F16));
    list.truncate(3);
    list
}

fn errors(d: &Diagnostics) -> Vec<&Diagnostic> {
    d.iter().filter(|d| d.is_error()).collect()
}

/// The first diagnostics of a text under any of the requests.
fn first_errors(
    s: &Subject,
    text: &str,
    kernel: &str,
    arch: &Arch,
    sources: &mut Sources,
) -> Option<(Diagnostics, Library)> {
    let (lib, diags) = corpus::load(&s.path, text, sources);
    if diags.has_errors() {
        return Some((diags, lib));
    }
    for request in requests(s, kernel) {
        let found = match elaborate(&lib, &request, arch, sources) {
            Err(d) => Some(d),
            Ok(made) => verify(&made.program, arch).err(),
        };
        if let Some(d) = found {
            return Some((d, lib));
        }
    }
    None
}

#[derive(Default)]
struct Tally {
    made: usize,
    /// static: diagnosed on the statement; dynamic: caught
    found: usize,
    /// static: diagnosed, but elsewhere
    elsewhere: usize,
    missed: Vec<String>,
    most: usize,
}

/// Every so many of a list, spread over all of it.
fn spread(list: Vec<(usize, Mutant)>, n: usize) -> Vec<(usize, Mutant)> {
    let total = list.len();
    let keep = n.min(total);
    let mut out = Vec::new();
    for (i, m) in list.into_iter().enumerate() {
        if keep > 0 && (i * keep) / total != ((i + 1) * keep) / total {
            out.push(m);
        }
    }
    out
}

fn all_of(subjects: &[Subject], kind: Kind, n: usize) -> Vec<(usize, Mutant)> {
    let mut list = Vec::new();
    for (i, s) in subjects.iter().enumerate() {
        let sites: Vec<_> =
            sites(&s.text).into_iter().filter(|site| s.by_kernel.contains_key(&site.kernel)).collect();
        list.extend(mutants(&s.text, &sites, kind).into_iter().map(|m| (i, m)));
    }
    spread(list, n)
}

/// Runs `f` over a list on all cores, results in order.
fn on_all_cores<T: Sync, R: Send>(list: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let done = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |n| n.get()) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(one) = list.get(i) else { return };
                    let result = f(one);
                    done.lock().unwrap().push((i, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, r)| r).collect()
}

fn table(tallies: &BTreeMap<Kind, Tally>) {
    println!("{:<15} {:>6} {:>7} {:>7} {:>10}", "kind", "made", "found", "rate", "most errors");
    for (kind, t) in tallies {
        let rate = 100.0 * t.found as f64 / t.made.max(1) as f64;
        println!("{:<15} {:>6} {:>7} {:>6.1}% {:>10}", kind.name(), t.made, t.found, rate, t.most);
    }
}

#[test]
fn static_mutants_are_diagnosed_at_their_statement() {
    let arch = Targets::shipped().arch("reference").expect("the reference descriptor").clone();
    let subjects = subjects(&arch);
    let mut tallies: BTreeMap<Kind, Tally> = BTreeMap::new();
    let mut bad = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|k| k.is_static()) {
        let list = all_of(&subjects, kind, wanted());
        let results = on_all_cores(&list, |(at, m)| {
            let s = &subjects[*at];
            let mut sources = Sources::default();
            let found = first_errors(s, &m.text, &m.kernel, &arch, &mut sources);
            judged(s, m, found.map(|(d, _)| d), &sources)
        });
        let tally = tallies.entry(kind).or_default();
        for ((_, m), (hit, count, note)) in list.iter().zip(results) {
            tally.made += 1;
            tally.found += usize::from(hit == Some(true));
            tally.elsewhere += usize::from(hit == Some(false));
            tally.most = tally.most.max(count);
            if hit != Some(true) {
                tally.missed.push(format!("{} | {}", m.id(), note.clone()));
            }
            if count > 1 + FOLLOW_UPS || note.starts_with("internal") {
                bad.push(format!("{} {}: {count} errors {note}", kind.name(), m.id()));
            }
        }
    }
    for (kind, t) in &tallies {
        t.missed.iter().for_each(|m| println!("{}: {m}", kind.name()));
    }
    table(&tallies);
    bad.iter().for_each(|b| println!("too much or internal: {b}"));
    let made: usize = tallies.values().map(|t| t.made).sum();
    let found: usize = tallies.values().map(|t| t.found).sum();
    println!("{found} of {made} on the statement");
    assert!(made >= 200, "{made} static mutants");
    assert!(found * 10 >= made * 9, "{found} of {made} are diagnosed on their statement");
    assert!(bad.is_empty(), "{} mutants with more than three follow-up errors or internal words", bad.len());
}

/// Whether the statement is hit (`None`: nothing was said), how many errors there are, and the first.
fn judged(
    s: &Subject,
    m: &Mutant,
    found: Option<Diagnostics>,
    sources: &Sources,
) -> (Option<bool>, usize, String) {
    let Some(found) = found else { return (None, 0, "not diagnosed".into()) };
    let list = errors(&found);
    let Some(first) = list.first() else { return (None, 0, "only warnings".into()) };
    if let Some(word) = list.iter().find_map(|d| internal_word(d, &m.text)) {
        return (Some(true), list.len(), format!("internal word {word}"));
    }
    let span = first.primary.span;
    let name = s.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let own = sources.file(span.file).name == name;
    let line = |at: u32| m.text[..(at as usize).min(m.text.len())].matches('\n').count() + 1;
    let hit = own && line(span.start) <= m.lines.1 && line(span.end) >= m.lines.0;
    let (l, c) = sources.line_col(span);
    (Some(hit), list.len(), format!("{l}:{c} {} (statement in lines {:?})", first.message, m.lines))
}

/// Equivalent mutants with their reasons: `id # reason`, one a line.
fn equivalents() -> BTreeMap<String, String> {
    let path = corpus::root().join("tests/mutants/equivalent.txt");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with("//"));
    lines.filter_map(|l| l.split_once(" # ")).map(|(id, why)| (id.trim().into(), why.trim().into())).collect()
}

/// What tells a dynamic mutant from its original, if anything does.
fn caught(s: &Subject, m: &Mutant, target: &Target, targets: &Targets) -> Option<String> {
    let start = Instant::now();
    let mut sources = Sources::default();
    let (lib, diags) = corpus::load(&s.path, &m.text, &mut sources);
    if diags.has_errors() {
        return Some("check".into());
    }
    let search: Vec<PathBuf> = s.path.parent().map(Path::to_path_buf).into_iter().collect();
    for &i in s.by_kernel.get(&m.kernel)? {
        let case = &s.cases[i];
        match driver::run_case(&lib, case, target, targets, &search, &mut sources) {
            Err(d) => return Some(d.iter().next().map_or("stopped".into(), |d| d.code.to_string())),
            Ok(v) if !v.holds() => return Some("test".into()),
            Ok(_) => {}
        }
        if start.elapsed() > PATIENCE {
            return None;
        }
    }
    None
}

#[test]
fn dynamic_mutants_are_caught() {
    let targets = Targets::shipped();
    let target = Target::choose("interp", None, &targets).expect("the interpreter");
    let subjects = subjects(&target.arch);
    let equivalents = equivalents();
    let mut used = BTreeSet::new();
    let mut tallies: BTreeMap<Kind, Tally> = BTreeMap::new();
    let mut ways: BTreeMap<String, usize> = BTreeMap::new();
    for kind in Kind::ALL.into_iter().filter(|k| !k.is_static()) {
        let list = all_of(&subjects, kind, wanted());
        let results = on_all_cores(&list, |(at, m)| {
            let known = equivalents.contains_key(&m.id());
            if known { None } else { Some(caught(&subjects[*at], m, &target, &targets)) }
        });
        let tally = tallies.entry(kind).or_default();
        for ((_, m), result) in list.iter().zip(results) {
            match result {
                None => {
                    used.insert(m.id());
                }
                Some(way) => {
                    tally.made += 1;
                    match way {
                        Some(way) => {
                            tally.found += 1;
                            *ways.entry(way).or_default() += 1;
                        }
                        None => tally.missed.push(m.id()),
                    }
                }
            }
        }
    }
    for (kind, t) in &tallies {
        t.missed.iter().for_each(|m| println!("{} not caught: {m}", kind.name()));
    }
    table(&tallies);
    println!("by: {ways:?}; {} equivalents left out", used.len());
    let made: usize = tallies.values().map(|t| t.made).sum();
    let found: usize = tallies.values().map(|t| t.found).sum();
    assert!(made >= 100, "{made} dynamic mutants");
    assert!(found * 10 >= made * 9, "{found} of {made} are caught");
    let stale: Vec<&String> = equivalents.keys().filter(|id| !used.contains(*id)).collect();
    assert!(wanted() != 70 || stale.is_empty(), "listed as equivalent, but no mutant any more: {stale:#?}");
}
