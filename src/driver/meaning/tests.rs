//! Passes that break programs are named, whatever they break; what was not compared is told.

use super::*;
use pantile_ir::program::{BinOp, Expr, Program, StmtKind};
use pantile_ir::target::Targets;
use pantile_passes::pipeline::Cx;

const TEXT: &str = "\
kernel twice(X: f32[N], Y: out f32[N]) {
    grid ceildiv(N, 8) as i
    Y[i*8 +: 8] = X[i*8 +: 8] / 2
}

test twice {
    kernel twice
    dims N in [0, 3, 20, 90000]
    X = int(-9, 9, seed 1)
    Y ~ widen rtol 1e-6
}
";

/// Loses every store of a tile: no right program is left, as nothing writes `Y`.
fn lose(mut program: Program, _: &Cx) -> Result<Program, Diagnostics> {
    for k in program.kernels.handles() {
        program.kernels[k]
            .stmts
            .retain(|s| !matches!(s.kind, StmtKind::Op { ref results, .. } if results.is_empty()));
    }
    Ok(program)
}

/// Turns every quotient into a sum: right by every rule, and wrong.
fn add(mut program: Program, _: &Cx) -> Result<Program, Diagnostics> {
    for k in program.kernels.handles() {
        let exprs = &mut program.kernels[k].body.exprs;
        for e in exprs.handles() {
            if let Expr::Binary(op @ BinOp::Div, ..) = &mut exprs[e] {
                *op = BinOp::Add;
            }
        }
    }
    Ok(program)
}

fn refuse(program: Program, _: &Cx) -> Result<Program, Diagnostics> {
    Err(single(Diagnostic::error(codes::UNSUPPORTED, program.entry.span, "no such thing here")))
}

fn told(passes: &[&Pass], options: MeaningOptions) -> (Meaning, Vec<String>) {
    let mut sources = Sources::default();
    let (library, problems) = Library::from_text("t.tile", TEXT, &mut sources);
    assert!(!problems.has_errors(), "{problems:?}");
    let cases = pantile_ir::elab::tests(&library, &mut sources).unwrap();
    let targets = Targets::shipped();
    let arch = targets.arch("sm_80").unwrap();
    let told = all_keep_meaning(passes, &library, &cases, arch, options, &mut sources);
    let texts = told.found.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
    (told, texts)
}

fn simplify() -> &'static Pass {
    of(Backend::Cuda).find(|p| p.name == "simplify").unwrap()
}

/// Two cases are run: 3 and 20, as 0 has no elements and 90000 is not small. Both are of one test, told once.
fn with(run: fn(Program, &Cx) -> Result<Program, Diagnostics>) -> (Meaning, Vec<String>) {
    let broken = Pass { name: "broken", run: Some(run), ..*simplify() };
    told(&[simplify(), &broken, simplify()], MeaningOptions::default())
}

#[test]
fn a_pass_that_loses_a_store_is_named() {
    let (meaning, texts) = with(lose);
    assert_eq!((meaning.compared, meaning.failed, meaning.skipped.len()), (0, 2, 0));
    let [text] = texts.as_slice() else { panic!("{texts:?}") };
    assert!(text.starts_with("P0767 what `broken` leaves is no right program: P0412"), "{text}");
}

#[test]
fn a_pass_that_changes_a_result_is_named() {
    let (meaning, texts) = with(add);
    assert_eq!((meaning.compared, meaning.failed, meaning.skipped.len()), (0, 2, 0));
    let [text] = texts.as_slice() else { panic!("{texts:?}") };
    assert!(text.starts_with("P0767 `broken` changes what the program means: `Y`"), "{text}");
}

#[test]
fn a_pass_that_refuses_leaves_nothing_to_compare_and_that_is_told() {
    let (meaning, texts) = with(refuse);
    assert_eq!((meaning.compared, meaning.failed, texts.len()), (0, 0, 0));
    let whys: Vec<&str> = meaning.skipped.iter().map(|s| s.why.as_str()).collect();
    assert_eq!(whys, ["`broken` refuses it: P0830: no such thing here"; 2]);
    assert_eq!((meaning.skipped[0].test.as_str(), meaning.skipped[0].case.as_str()), ("twice", "N = 3"));
}

#[test]
fn the_shipped_passes_keep_it() {
    let all: Vec<&Pass> = of(Backend::Cuda).filter(|p| p.run.is_some()).collect();
    assert!(all.len() > 5);
    let (meaning, texts) = told(&all, MeaningOptions::default());
    assert_eq!((meaning.compared, meaning.failed, meaning.skipped.len(), texts.len()), (2, 0, 0, 0));
}

#[test]
fn a_case_that_runs_long_is_given_up_and_told() {
    let (meaning, _) = told(&[simplify()], MeaningOptions { cases: None, steps: 100 });
    assert_eq!((meaning.compared, meaning.failed, meaning.skipped.len()), (3, 0, 1));
    assert_eq!(meaning.skipped[0].why, "as written it runs more than 100 statements");
}
