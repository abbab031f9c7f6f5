//! What the language and the passes ask of targets, on the shipped file.

use pantile_ir::DType;
use pantile_ir::span::Sources;
use pantile_ir::target::{FACT_NAMES, Targets};

#[test]
fn the_shipped_file_is_sound() {
    let mut sources = Sources::default();
    let found = Targets::with_user(&[], &mut sources).unwrap_or_else(|ds| {
        let lines: Vec<String> =
            ds.iter().map(|d| format!("{:?}: {}", sources.line_col(d.primary.span), d.message)).collect();
        panic!("{}", lines.join("\n"))
    });
    assert!(found.archs().count() > 0);
}

#[test]
fn facts_of_the_language() {
    let targets = Targets::shipped();
    let reference = targets.arch("reference").expect("shipped");
    assert_eq!(reference.fact("warp", &[]), Some(32));
    assert_eq!(reference.fact("vec", &[DType::F16]), Some(8));
    assert_eq!(reference.fact("vec", &[DType::U4]), Some(32));
    assert_eq!(reference.fact("vec", &[]), None, "one type is wanted");
    assert_eq!(reference.fact("warp", &[DType::F16]), None, "no type is wanted");
    assert_eq!(reference.fact("lanes", &[]), None);
    for (name, types) in FACT_NAMES {
        let args = &[DType::F32][..types];
        for a in targets.archs() {
            assert!(a.fact(name, args).is_some(), "{} does not know target.{name}", a.name);
        }
        let (lo, hi) = targets.fact_range(name, args).expect("every fact has a range");
        assert!(0 < lo && lo <= hi);
    }
}
