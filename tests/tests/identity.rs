//! Printing and reading back: `print(elab(parse(print(p))))` is `print(p)`, and formatting twice is formatting once.
//!
//! `PANTILE_FUZZ_PROGRAMS` sets the number of generated programs (2,000).
#![allow(clippy::print_stdout)]

use pantile_ir::elab::{Library, Request, elaborate, tests};
use pantile_ir::print::print;
use pantile_ir::program::Program as Ir;
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets};
use pantile_ir::text;
use pantile_ir::verify::verify;
use pantile_tests::corpus;
use pantile_tests::generate::{Choices, Program};
use pantile_tests::run::{Bench, Outcome, compile, diagnostic_lines, request};
use std::collections::BTreeSet;

/// What breaks the round trip of a program.
fn round_trip(ir: &Ir, arch: &Arch) -> Result<(), String> {
    let first = print(ir);
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("printed.tile", &first, &mut sources);
    if !diags.is_empty() {
        return Err(format!(
            "does not read back:\n{}\n{first}",
            diagnostic_lines(&diags, &sources).join("\n")
        ));
    }
    let request = Request::new(ir.entry.name.clone());
    let again = elaborate(&lib, &request, arch, &mut sources).map_err(|d| {
        format!("does not elaborate:\n{}\n{first}", diagnostic_lines(&d, &sources).join("\n"))
    })?;
    verify(&again.program, arch)
        .map_err(|d| format!("is refused:\n{}\n{first}", diagnostic_lines(&d, &sources).join("\n")))?;
    let second = print(&again.program);
    if first == second {
        Ok(())
    } else {
        Err(format!("prints differently:\n{first}\n--- then ---\n{second}"))
    }
}

fn format_twice(source: &str) -> Result<(), String> {
    let once = formatted(source)?;
    let twice = formatted(&once)?;
    if once == twice { Ok(()) } else { Err(format!("formatted twice:\n{once}\n--- then ---\n{twice}")) }
}

fn formatted(source: &str) -> Result<String, String> {
    let mut sources = Sources::default();
    let file = sources.add("text.tile", None, source);
    let (ast, diags) = text::parse(file, &sources);
    if diags.has_errors() {
        return Err(format!("does not parse:\n{}\n{source}", diagnostic_lines(&diags, &sources).join("\n")));
    }
    Ok(text::format(&ast))
}

#[test]
fn generated_programs_print_back() {
    let bench = Bench::new();
    let mut failed = Vec::new();
    let count = std::env::var("PANTILE_FUZZ_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000u64);
    for seed in 0..count {
        let p = Program::generate(0, Choices::seeded(seed));
        let tried = format_twice(&p.text).and_then(|()| match compile(&bench, &p.text, &request(&p)) {
            Ok(made) => round_trip(&made.program, &bench.arch),
            Err(lines) => match Outcome::refused(&lines) {
                Outcome::Unwritten(_) => Ok(()),
                other => Err(format!("refused:\n{}", other.text())),
            },
        });
        failed.extend(tried.err().map(|why| format!("seed {seed}: {why}")));
    }
    let count = failed.len();
    assert!(failed.is_empty(), "{count} programs, the first: {}", failed[0]);
}

#[test]
fn library_programs_print_back() {
    let arch = Targets::shipped().arch("reference").expect("the reference descriptor").clone();
    let mut failed = Vec::new();
    let mut count = 0;
    for path in corpus::files(&["kernels", "tests/cases", "tests/numerics"]) {
        let source = std::fs::read_to_string(&path).expect("a file");
        let place = path.display();
        failed.extend(format_twice(&source).err().map(|why| format!("{place}: {why}")));
        let mut sources = Sources::default();
        let (lib, diags) = corpus::load(&path, &source, &mut sources);
        assert!(!diags.has_errors(), "{place}: {:?}", diagnostic_lines(&diags, &sources));
        let cases = match tests(&lib, &mut sources) {
            Ok(cases) => cases,
            Err(d) => {
                failed.push(format!("{place}: {:?}", diagnostic_lines(&d, &sources)));
                continue;
            }
        };
        // every way in which a test specialises a kernel, once
        let mut seen = BTreeSet::new();
        for case in cases {
            if !seen.insert(format!("{:?}", case.request)) {
                continue;
            }
            count += 1;
            let tried = match elaborate(&lib, &case.request, &arch, &mut sources) {
                Ok(made) => round_trip(&made.program, &arch),
                Err(d) => Err(diagnostic_lines(&d, &sources).join("\n")),
            };
            failed.extend(tried.err().map(|why| format!("{place} {} {}: {why}", case.name, case.label)));
        }
    }
    println!("{count} programs of the library");
    assert!(count > 100, "{count} programs");
    assert!(failed.is_empty(), "{} programs, the first: {}", failed.len(), failed[0]);
}
