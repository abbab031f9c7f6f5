//! Names, items, imports: what is found where, and what is said when it is not.

mod elab_support;

use elab_support::*;
use pantile_ir::elab::{BuiltIn, Found, Library, Request, Resolver};
use pantile_ir::span::Sources;
use std::path::{Path, PathBuf};

struct Shelf(Vec<(&'static str, &'static str)>);

impl Resolver for Shelf {
    fn find(&self, path: &str, from: Option<&Path>) -> Result<Found, Vec<String>> {
        match self.0.iter().find(|(name, _)| *name == path) {
            Some((name, text)) => {
                Ok(Found { name: (*name).into(), path: Some(PathBuf::from(name)), text: (*text).into() })
            }
            None => BuiltIn.find(path, from).map_err(|_| vec![format!("shelf/{path}")]),
        }
    }
}

fn load_with(shelf: Shelf, main: &str) -> Vec<String> {
    let mut sources = Sources::default();
    let found = Found { name: "main.tile".into(), path: None, text: main.into() };
    let (lib, diags) = Library::load(found, &shelf, &mut sources);
    if diags.has_errors() {
        return lines(&diags, &sources);
    }
    let entry = lib.entries().first().map(|e| e.to_string()).unwrap_or_default();
    let arch = arch("reference");
    match pantile_ir::elab::elaborate(&lib, &Request::new(entry), &arch, &mut sources) {
        Ok(_) => Vec::new(),
        Err(d) => lines(&d, &sources),
    }
}

const K: &str = "kernel k(Y: out f32[N]) { grid N as i\nY[i] = f(2.0) }";

#[test]
fn imports_reach_items_of_other_files() {
    let other = "const TWO = 2.0\nfn g(x: f32) -> f32 { x * TWO }\nfn f(x: f32) -> f32 { g(x) }";
    let main = format!("use \"a.tile\"::{{f}}\n{K}");
    assert_eq!(load_with(Shelf(vec![("a.tile", other)]), &main), [] as [&str; 0]);
    // what the other file has besides is not seen
    let main = "use \"a.tile\"::{f}\nkernel k(Y: out f32[N]) { grid N as i\nY[i] = g(TWO) }";
    let found = load_with(Shelf(vec![("a.tile", other)]), main);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found.iter().all(|l| l.contains("is not declared")), "{found:#?}");
}

#[test]
fn files_may_use_each_other() {
    let a = "use \"b.tile\"::{g}\nfn f(x: f32) -> f32 { g(x) + 1 }\nfn h(x: f32) -> f32 { x }";
    let b = "use \"a.tile\"::{h}\nfn g(x: f32) -> f32 { h(x) }";
    let main = format!("use \"a.tile\"::{{f}}\n{K}");
    assert_eq!(load_with(Shelf(vec![("a.tile", a), ("b.tile", b)]), &main), [] as [&str; 0]);
}

#[test]
fn imports_that_fail() {
    let found = load_with(Shelf(vec![]), "use \"no.tile\"::{f}\nconst A = 1");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("1:5 P0203 cannot find \"no.tile\""), "{found:#?}");
    let found = load_with(Shelf(vec![("a.tile", "fn gelu2(x: f32) -> f32 { x }")]), "use \"a.tile\"::{gelu}");
    assert!(found[0].starts_with("1:16 P0204 ") && found[0].contains("did you mean `gelu2`"), "{found:#?}");
    // no re-export
    let a = "use \"std\"::{gelu}\nfn f(x: f32) -> f32 { gelu(x) }";
    let found = load_with(Shelf(vec![("a.tile", a)]), "use \"a.tile\"::{gelu}");
    assert!(found[0].starts_with("1:16 P0204 "), "{found:#?}");
    let found = load_with(Shelf(vec![]), "use \"std\"::{gelu}\nfn gelu(x: f32) -> f32 { x }");
    assert!(found[0].contains("P0201") && found[0].contains("`gelu` is already declared"), "{found:#?}");
}

#[test]
fn the_language_declares_numbers_and_std_hands_them_out() {
    let main = "use \"std\"::{LOG2E, PI}\nkernel k(Y: out f32[N]) { grid N as i\nY[i] = LOG2E * PI }";
    assert_eq!(load_with(Shelf(vec![]), main), [] as [&str; 0]);
    let main = "kernel k(Y: out f32[N]) { grid N as i\nY[i] = max(LOG2E, -inf) }";
    assert_eq!(load_with(Shelf(vec![]), main), [] as [&str; 0]);
}

#[test]
fn items_may_not_take_names_of_the_language() {
    let found = load_with(Shelf(vec![]), "fn exp(x: f32) -> f32 { x }");
    assert!(found[0].starts_with("1:4 P0205 `exp` is a name of the language"), "{found:#?}");
    // a kernel is only launched, so it hides nothing
    let main = "kernel sum(X: f32[64], Y: out f32[1]) { grid 1 as i\nY[0] = sum(X[:]) }";
    assert_eq!(load_with(Shelf(vec![]), main), [] as [&str; 0]);
}

#[test]
fn one_name_one_thing() {
    let found = load_with(Shelf(vec![]), "const A = 1\nconst A = 2");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("2:7 P0201 `A` is already declared"), "{found:#?}");
    one_error("let x = s\nlet x = s", "2:5", 206, "`x` is already declared here");
    // an inner scope may hide an outer name
    body("let x = s\nif n > 0 {\n  let x = s * 2\n  O[i, j] = x\n}\nO[0, 0] = x");
}

#[test]
fn unknown_names_are_told_once_with_the_nearest_known_one() {
    one_error("let y = scl * 2\nlet z = y + y\nO[i, j] = z", "1:9", 202, "`scl` is not declared");
    one_error("O[i, j] = roww(s)", "1:11", 202, "did you mean `rows`?");
    one_error("O[i, j] = gelu(s)", "1:11", 202, "import it: `use \"std\"::{gelu}`");
}

#[test]
fn locals_hide_functions_but_are_not_called() {
    body("let sum = s * 2\nO[i, j] = sum");
    one_error("let max = s\nO[i, j] = max(s, 1.0)", "2:11", 210, "`max` is not a function");
}

#[test]
fn errors_inside_a_function_carry_the_call() {
    let text = "fn f(x: f32) -> f32 { x + nothing }\nkernel k(Y: out f32[N]) { grid N as i\nY[i] = f(1.0)\nY[i] = f(2.0) }";
    let mut sources = Sources::default();
    let (lib, _) = Library::from_text("t", text, &mut sources);
    let d =
        pantile_ir::elab::elaborate(&lib, &Request::new("k"), &arch("reference"), &mut sources).unwrap_err();
    let first = d.iter().next().unwrap();
    let call = sources.call(first.primary.span).expect("reached through a call");
    assert_eq!(call.callee, "f");
    assert_eq!(sources.text(call.span), "f(1.0)");
}
