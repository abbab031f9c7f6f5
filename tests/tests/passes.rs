//! The passes from tiles to threads: what each leaves means what it was given, whatever the names and the order of
//! independent statements, and for an architecture that only a file describes.
//!
//! `PANTILE_FUZZ_PASSES` sets the number of generated programs (500). Those whose fault is known and not yet mended stand
//! in `tests/mutants/passes_known.txt`; one that is right again must be struck off.
#![allow(clippy::print_stdout)]

use pantile_abi::DType;
use pantile_ir::codes;
use pantile_ir::diag::Diagnostics;
use pantile_ir::interp::{ArgValue, Tensor};
use pantile_ir::num;
use pantile_ir::program::plan::{Entry, Key, Value};
use pantile_ir::program::{Elem, Program as Ir};
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets, UserFile};
use pantile_ir::verify::verify;
use pantile_passes::pipeline::{self, Cx};
use pantile_tests::corpus::root;
use pantile_tests::generate::{Choices, Program};
use pantile_tests::library::kernels;
use pantile_tests::run::{Bench, compile, interpret, kernel_of, request};
use std::collections::BTreeMap;

fn arch(name: &str) -> Arch {
    Targets::shipped().arch(name).unwrap_or_else(|| panic!("{name} is no target")).clone()
}

fn lines(d: &Diagnostics) -> String {
    d.iter().map(|d| format!("{} {}", d.code, d.message)).collect::<Vec<_>>().join("; ")
}

/// Largest difference that sums in another order explain, relative to the largest value of a tensor.
fn allowed(d: DType) -> f64 {
    256.0 * d.unit_roundoff()
}

/// Where two results differ, if they do.
fn difference(want: &[ArgValue], have: &[ArgValue]) -> Option<String> {
    want.iter().zip(have).enumerate().find_map(|(n, (w, h))| match (w, h) {
        (ArgValue::Tensor(w), ArgValue::Tensor(h)) => {
            tensors(w, h).map(|text| format!("parameter {n}: {text}"))
        }
        _ => None,
    })
}

fn tensors(w: &Tensor, h: &Tensor) -> Option<String> {
    let elem = Elem::D(w.dtype);
    let value = |bits: u64| num::to_f64(elem, bits);
    let scale = w.bits.iter().zip(&w.poison).filter(|(_, p)| !**p).map(|(&b, _)| value(b).abs());
    let scale = scale.filter(|v| v.is_finite()).fold(1.0, f64::max);
    for i in 0..w.bits.len() {
        if w.poison[i] != h.poison[i] {
            return Some(format!("element {i} is written on one side only"));
        }
        let (a, b) = (w.bits[i], h.bits[i]);
        let (x, y) = (value(a), value(b));
        let near = w.dtype.is_float()
            && (x.is_nan() && y.is_nan() || x == y || (x - y).abs() <= allowed(w.dtype) * scale);
        if !w.poison[i] && a != b && !near {
            return Some(format!("element {i} is {y}, not {x}"));
        }
    }
    None
}

#[test]
fn generated_programs_keep_their_meaning() {
    let total: usize = std::env::var("PANTILE_FUZZ_PASSES").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
    let known = std::fs::read_to_string(root().join("tests/mutants/passes_known.txt")).unwrap();
    let known: BTreeMap<usize, &str> = known
        .lines()
        .filter_map(|l| l.split_once(' ').and_then(|(n, why)| Some((n.parse().ok()?, why))))
        .collect();
    let mut healed = Vec::new();
    let mut bench = Bench::new();
    bench.arch = arch("sm_80");
    (bench.options.warp, bench.options.group) = (32, 128);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let first: usize = std::env::var("PANTILE_FUZZ_FIRST").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    for number in first..first + total {
        let p = Program::generate(number, Choices::seeded(number as u64));
        let outcome = one(&bench, &p, false);
        if let Err(text) = &outcome {
            println!("{number}: {}", text.lines().next().unwrap_or(""));
            if !known.contains_key(&number) {
                wrong.push(format!("{}\n{text}", p.text));
            }
        } else if known.contains_key(&number) {
            healed.push(number);
        }
        *seen.entry(outcome.unwrap_or_else(|_| "wrong".into())).or_default() += 1;
    }
    println!("{total} generated programs through the passes: {seen:?}");
    wrong.sort_by_key(String::len);
    assert!(wrong.is_empty(), "{} wrong; the shortest:\n{}", wrong.len(), wrong[0]);
    assert!(healed.is_empty(), "these are right now, strike them off the list: {healed:?}");
    let same = seen.get("same").copied().unwrap_or(0);
    assert!(same * 10 >= total * 5, "only {same} of {total} programs come through");
}

/// The same where a few blocks take all tiles, in bands of columns where there are any.
#[test]
fn generated_programs_keep_their_meaning_in_persistent_blocks() {
    let total: usize = std::env::var("PANTILE_FUZZ_PASSES").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let first: usize = std::env::var("PANTILE_FUZZ_FIRST").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let known = std::fs::read_to_string(root().join("tests/mutants/passes_known.txt")).unwrap();
    let known: Vec<usize> = known.lines().filter_map(|l| l.split_once(' ')?.0.parse().ok()).collect();
    let mut bench = Bench::new();
    bench.arch = arch("sm_80");
    (bench.options.warp, bench.options.group) = (32, 128);
    let (mut seen, mut wrong): (BTreeMap<String, usize>, Vec<String>) = Default::default();
    for number in (first..first + total).filter(|n| !known.contains(n)) {
        let p = Program::generate(number, Choices::seeded(number as u64));
        let outcome = one(&bench, &p, true);
        wrong.extend(outcome.as_ref().err().map(|text| format!("{number}: {}\n{text}", p.text)));
        *seen.entry(outcome.unwrap_or_else(|_| "wrong".into())).or_default() += 1;
    }
    println!("{total} generated programs in persistent blocks: {seen:?}");
    wrong.sort_by_key(String::len);
    assert!(wrong.is_empty(), "{} wrong; the shortest:\n{}", wrong.len(), wrong[0]);
    let same = seen.get("same").copied().unwrap_or(0);
    assert!(same * 10 >= total * 5, "only {same} of {total} programs come through");
}

/// Writes a schedule into the plan of every kernel.
fn persistent(program: &mut Ir) {
    for id in program.kernels.handles().collect::<Vec<_>>() {
        let k = &mut program.kernels[id];
        let number = |key: &str, n| (Some(key.to_string()), Value::Int(n));
        let mut args = vec![number("blocks", 2)];
        if k.grid.extents.len() > 1 {
            args.extend([(Some("raster".into()), Value::Name("columns".into())), number("group", 2)]);
        }
        let (key, value) = (Key::Schedule, Value::Call("persistent".into(), args));
        let (subject, refused, span) = (None, Vec::new(), k.span);
        k.plan.entries.push(Entry { key, subject, value, by_hand: true, refused, span });
    }
}

fn one(bench: &Bench, p: &Program, in_few_blocks: bool) -> Result<String, String> {
    let Ok(mut made) = compile(bench, &p.text, &request(p)) else { return Ok("refused before".into()) };
    let Some(kernel) = kernel_of(&made.program, p) else { return Err("the kernel is lost".into()) };
    let Ok(want) = interpret(bench, &made.program, kernel, p) else { return Ok("a fault before".into()) };
    if in_few_blocks {
        persistent(&mut made.program);
    }
    let cx = Cx { arch: &bench.arch };
    let mut found = None;
    let mut last = String::new();
    let done = pipeline::run(made.program, &cx, |pass, program| {
        last = pantile_ir::print::print(program);
        verify(program, &bench.arch).inspect_err(|d| {
            found = Some(format!("after {}: {}\n{last}", pass.name, lines(d)));
        })?;
        let text = match interpret(bench, program, kernel, p) {
            Ok(have) => difference(&want, &have),
            Err(fault) => Some(format!("{} {fault}", fault.code)),
        };
        match text {
            Some(text) => {
                found = Some(format!("after {}: {text}\n{last}", pass.name));
                Err(Diagnostics::new())
            }
            None => Ok(()),
        }
    });
    match (found, done) {
        (Some(text), _) => Err(text),
        (None, Ok(_)) => Ok("same".into()),
        // what a target cannot have yet is said, with its code
        (None, Err(d)) => match d.iter().next().map(|d| d.code) {
            Some(c) if [codes::UNSUPPORTED, codes::SHARED_LIMIT].contains(&c) => Ok(format!("refused {c}")),
            _ => Err(format!("refused: {}\n{last}", lines(&d))),
        },
    }
}

#[test]
fn an_architecture_of_a_file_compiles_the_library() {
    let path = root().join("tests/targets/toy.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let targets = Targets::with_user(&[UserFile { path, text }], &mut Sources::default()).unwrap();
    let toy = targets.arch("toy").unwrap();
    let mut all = kernels().unwrap_or_else(|e| panic!("{e}"));
    let (mut wide, mut far, mut refused) = (0, 0, Vec::new());
    for row in 0..all.rows.len() {
        let name = all.rows[row].name.clone();
        match all.lowered(row, toy).and_then(|p| all.source(&p, toy)) {
            Ok(source) => {
                wide += usize::from(source.contains("copy_32("));
                far += usize::from(source.contains(", 32, 64)"));
                assert!(!source.contains("copy_64("), "{name}: an access wider than the target has");
            }
            Err(why) => refused.push(format!("{name}: {why}")),
        }
    }
    println!(
        "toy: {} kernels, {wide} with 32-byte accesses, {far} with shuffles over 64 lanes",
        all.rows.len()
    );
    assert!(refused.is_empty(), "{} refused:\n{}", refused.len(), refused.join("\n"));
    assert!(wide > 20 && far > 5);
}
