//! Broken sources and targets files: never a panic, always diagnostics or success, in bounded time, in the user's words.
//!
//! `PANTILE_FUZZ_TEXTS` sets how many texts (3,000), `PANTILE_FUZZ_SEED` the seed.
#![allow(clippy::print_stdout)]

use pantile_ir::diag::render::{Style, render_all};
use pantile_ir::diag::{Diagnostic, Diagnostics};
use pantile_ir::elab::{Library, Request, elaborate};
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets, UserFile};
use pantile_ir::verify::verify;
use pantile_ir::{print, text};
use pantile_tests::generate::Rng;
use pantile_tests::mutate::mutate;
use pantile_tests::words::internal_word;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

fn count() -> usize {
    std::env::var("PANTILE_FUZZ_TEXTS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000)
}

fn seed() -> u64 {
    std::env::var("PANTILE_FUZZ_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// All `.tile` texts of the repository.
fn corpus() -> Vec<String> {
    let paths = pantile_tests::corpus::files(&["kernels", "tests/cases", "tests/numerics", "tests/syntax"]);
    let texts: Vec<String> = paths.iter().filter_map(|p| std::fs::read_to_string(p).ok()).collect();
    assert!(texts.len() > 15, "the corpus is there");
    texts
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records panics of this thread instead of printing them.
fn quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            PANIC.with(|p| *p.borrow_mut() = Some(info.to_string()));
        }));
    });
}

/// What went wrong with one text.
fn trial(f: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(f));
    let spent = start.elapsed();
    if std::env::var_os("PANTILE_FUZZ_TIMES").is_some() && spent > Duration::from_secs(1) {
        println!("{spent:?}");
    }
    match result {
        Err(_) => Err(format!("panic: {}", PANIC.with(|p| p.borrow_mut().take()).unwrap_or_default())),
        Ok(_) if spent > Duration::from_secs(20) => Err(format!("took {spent:?}")),
        Ok(r) => r,
    }
}

fn check_words(diags: &Diagnostics, source: &str) -> Result<(), String> {
    let bad = |d: &Diagnostic| internal_word(d, source);
    match diags.iter().find_map(bad) {
        Some(word) => Err(format!("internal word {word}")),
        None => Ok(()),
    }
}

/// Reads, formats, elaborates, verifies and prints everything that a text has.
fn whole_way(source: &str, arch: &Arch) -> Result<(), String> {
    let mut sources = Sources::default();
    let file = sources.add("mutated.tile", None, source);
    let (ast, diags) = text::parse(file, &sources);
    check_words(&diags, source)?;
    let shown = render_all(&diags, &sources, Style::Plain);
    if diags.has_errors() && shown.is_empty() {
        return Err("an error that shows nothing".into());
    }
    if !diags.has_errors() {
        let once = text::format(&ast);
        let mut again = Sources::default();
        let file = again.add("formatted.tile", None, once.as_str());
        let (ast, diags) = text::parse(file, &again);
        if diags.has_errors() {
            return Err(format!(
                "formatted text does not parse:\n{}",
                render_all(&diags, &again, Style::Plain)
            ));
        }
        let twice = text::format(&ast);
        if once != twice {
            return Err("formatting twice differs from formatting once".into());
        }
    }
    let (lib, diags) = Library::from_text("mutated.tile", source, &mut sources);
    check_words(&diags, source)?;
    let entries: Vec<String> = lib.entries().into_iter().map(String::from).collect();
    for entry in entries.iter().take(6) {
        one_entry(&lib, entry, arch, &mut sources, source)?;
    }
    Ok(())
}

fn one_entry(
    lib: &Library,
    entry: &str,
    arch: &Arch,
    sources: &mut Sources,
    source: &str,
) -> Result<(), String> {
    let request = Request::new(entry);
    // generics that are named like this in the library
    let request = request.with_type("T", pantile_ir::DType::F16).with_const("D", 64).with_const("NB", 64);
    let made = match elaborate(lib, &request, arch, sources) {
        Ok(made) => made,
        Err(first) => {
            check_words(&first, source)?;
            match elaborate(lib, &Request::new(entry), arch, sources) {
                Ok(made) => made,
                Err(d) => {
                    check_words(&d, source)?;
                    let _ = render_all(&d, sources, Style::Plain);
                    return Ok(());
                }
            }
        }
    };
    match verify(&made.program, arch) {
        Ok(info) => check_words(&info.warnings, source)?,
        Err(d) => {
            check_words(&d, source)?;
            let _ = render_all(&d, sources, Style::Plain);
            return Ok(());
        }
    }
    let _ = print::print(&made.program);
    Ok(())
}

/// Runs trials on all cores, each on a stack of the size that threads have by default.
fn many(
    n: usize,
    one: impl Fn(usize) -> Result<(), (String, String)> + Sync,
) -> Vec<(usize, String, String)> {
    quiet();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = std::sync::Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, |n| n.get());
    std::thread::scope(|s| {
        for _ in 0..workers {
            s.spawn(|| {
                loop {
                    let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if i >= n {
                        return;
                    }
                    if let Err((why, text)) = one(i) {
                        found.lock().unwrap().push((i, why, text));
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort();
    found
}

fn show(found: &[(usize, String, String)], n: usize, what: &str) {
    println!("{n} {what}: {} fail", found.len());
    let mut seen = std::collections::BTreeMap::new();
    for (i, why, text) in found {
        let head: String = why.chars().take(60).collect();
        let count = seen.entry(head).or_insert(0);
        *count += 1;
        if *count == 1 {
            let path = std::env::temp_dir().join(format!("pantile-mutated-{i}.txt"));
            let _ = std::fs::write(&path, text);
            println!("---- {i}: {why}\nthe text is in {}", path.display());
        }
    }
}

#[test]
fn broken_sources_are_diagnosed() {
    let corpus = corpus();
    let others: Vec<&str> = corpus.iter().map(String::as_str).collect();
    let arch = Targets::shipped().arch("reference").expect("the reference descriptor").clone();
    let n = count();
    let found = many(n, |i| {
        let mut rng = Rng::new(seed().wrapping_mul(1 << 32).wrapping_add(i as u64));
        let text = mutate(others[rng.below(others.len())], "//", &others, &mut rng);
        trial(|| whole_way(&text, &arch)).map_err(|why| (why, text))
    });
    show(&found, n, "mutated sources");
    assert!(found.is_empty());
}

#[test]
fn broken_targets_files_are_diagnosed() {
    let shipped = Targets::SHIPPED;
    let n = count() / 3;
    let found = many(n, |i| {
        let mut rng = Rng::new(seed().wrapping_mul(1 << 33).wrapping_add(i as u64));
        let text = mutate(shipped, "#", &[shipped], &mut rng);
        let why = trial(|| {
            let mut sources = Sources::default();
            let user = UserFile { path: "mine.toml".into(), text: text.clone() };
            match Targets::with_user(&[user], &mut sources) {
                Ok(targets) => {
                    for a in targets.archs() {
                        let _ = a.describe();
                    }
                    Ok(())
                }
                Err(d) => {
                    let _ = render_all(&d, &sources, Style::Plain);
                    check_words(&d, &text)
                }
            }
        });
        why.map_err(|why| (why, text))
    });
    show(&found, n, "mutated targets files");
    assert!(found.is_empty());
}
