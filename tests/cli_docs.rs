//! The whole examples of the language page hold for every target, by the same `check` that users run.

mod cli_support;

use cli_support::Place;

#[test]
fn whole_examples_of_the_language_page_check() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/language.md");
    let page = std::fs::read_to_string(page).unwrap();
    let examples: Vec<&str> =
        page.split("```tile\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    let p = Place::new();
    let mut fine = 0;
    for text in &examples {
        p.write("example.tile", text);
        let said = p.run(&["check", "example.tile"]);
        // some only show a form, with kernels and files that stand elsewhere
        let elsewhere =
            ["[P0202]: there is no kernel", "[P0203]: cannot find", "[P0228]: there is no kernel"];
        let codes: Vec<&str> = said.err.lines().filter(|l| l.starts_with("error[")).collect();
        let known = codes.iter().all(|l| elsewhere.iter().any(|e| l.contains(e)));
        assert!(said.status == 0 || (!codes.is_empty() && known), "{text}\n{}{}", said.out, said.err);
        assert!(!said.err.contains("warning"), "{text}\n{}", said.err);
        fine += usize::from(said.status == 0);
    }
    assert!(fine >= 10 && fine + 3 >= examples.len(), "{fine} of {} examples", examples.len());
}
