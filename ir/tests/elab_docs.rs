//! `docs/functions.md` is what the compiler's table says. `PANTILE_BLESS=1` writes it anew.

use pantile_ir::elab::functions::markdown;
use std::path::Path;

#[test]
fn the_page_of_functions_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/functions.md");
    let want = markdown();
    if std::env::var_os("PANTILE_BLESS").is_some() {
        std::fs::write(&path, &want).expect("writes the page");
    }
    let have = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(have == want, "docs/functions.md is stale: run this test with PANTILE_BLESS=1");
}
