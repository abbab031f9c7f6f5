//! Pages of rules: each rule has one, and its examples do what they say.

mod elab_support;

mod text_support;

use elab_support::{arch, lines};
use pantile_ir::ast::ItemKind;
use pantile_ir::codes;
use pantile_ir::diag::{Code, Diagnostics};
use pantile_ir::elab::{Library, Request, elaborate};
use pantile_ir::explain::{PAGES, page};
use pantile_ir::span::Sources;
use pantile_ir::verify::verify;
use std::collections::BTreeSet;
use text_support::fenced;

/// All that is said about a text before anything runs: every entry, or the only op, is elaborated and verified.
fn findings(text: &str, target: &str) -> (Diagnostics, Sources) {
    let mut sources = Sources::default();
    let (lib, mut all) = Library::from_text("page.tile", text, &mut sources);
    if all.has_errors() {
        return (all, sources);
    }
    let arch = arch(target);
    let items = &lib.main().expect("the text").ast.items;
    let ops: Vec<&str> = items
        .iter()
        .filter_map(|i| match &i.kind {
            ItemKind::Op(o) => Some(o.name.name.as_str()),
            _ => None,
        })
        .collect();
    let kernels = items.iter().filter_map(|i| match &i.kind {
        ItemKind::Kernel(k) => Some(k.name.name.as_str()),
        _ => None,
    });
    let entries: Vec<&str> = if ops.is_empty() { kernels.collect() } else { ops };
    for entry in entries {
        match elaborate(&lib, &Request::new(entry), &arch, &mut sources) {
            Err(d) => all.extend(d),
            Ok(made) => {
                all.extend(made.warnings);
                if let Err(d) = verify(&made.program, &arch) {
                    all.extend(d);
                }
            }
        }
    }
    (all, sources)
}

fn target_of(code: Code) -> &'static str {
    // limits are those of a real device
    if (820..830).contains(&code.0) { "sm_90a" } else { "reference" }
}

#[test]
fn every_rule_has_a_page() {
    for row in codes::TABLE {
        let text = page(row.code).unwrap_or_else(|| panic!("{} {} has no page", row.code, row.name));
        let title = format!("# {}: {}\n", row.code, row.title);
        assert!(text.starts_with(&title), "{} begins otherwise than `{title}`", row.code);
        let body = text.lines().skip(1).find(|l| !l.is_empty()).unwrap_or_default();
        assert!(body.len() > 20 && !body.starts_with("```"), "{} says nothing", row.code);
    }
    assert_eq!(PAGES.len(), codes::TABLE.len());
    assert!(page(Code(999)).is_none());
}

#[test]
fn examples_do_what_they_say() {
    let mut failures = Vec::new();
    for &(code, text) in PAGES {
        for (info, example) in fenced(text) {
            let (found, sources) = match info.as_str() {
                "tile wrong" | "tile right" | "tile fails when run" => findings(&example, target_of(code)),
                "tile text" => continue,
                info if info.starts_with("rust ") => continue,
                other => panic!("{code}: unknown kind of example `{other}`"),
            };
            let raised: BTreeSet<Code> = found.iter().map(|d| d.code).collect();
            let expected: BTreeSet<Code> = if info == "tile wrong" { [code].into() } else { BTreeSet::new() };
            if raised != expected {
                failures.push(format!("{code} `{info}` raises {:#?}\n{example}", lines(&found, &sources)));
            }
        }
    }
    assert!(failures.is_empty(), "{} examples:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn rules_of_the_text_have_both_fenced() {
    for &(code, text) in PAGES {
        let kinds: Vec<String> = fenced(text).into_iter().map(|(info, _)| info).collect();
        let pairs = kinds.iter().filter(|k| k.ends_with("wrong")).count()
            == kinds.iter().filter(|k| k.ends_with("right")).count();
        assert!(pairs || kinds.len() == 2, "{code} has {kinds:?}");
    }
}
