//! Every kernel of the library through the passes of thread programs: each leaves a program that verifies and reads
//! back as itself.

mod common;

use common::*;
use pantile_ir::DType;
use pantile_ir::ast::{GenericKind, ItemKind};
use pantile_ir::elab::{Files, Found, Library, Request, elaborate};
use pantile_ir::program::*;
use pantile_ir::span::Sources;
use pantile_passes::{guard, simplify, tidy, vectorize};

#[test]
fn each_pass_leaves_a_program() {
    let t = arch("sm_80");
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let mut files: Vec<_> =
        std::fs::read_dir(dir).expect("the library").map(|f| f.expect("a file").path()).collect();
    files.sort();
    let (mut threads, mut tiles) = (0, 0);
    for path in files {
        let mut sources = Sources::default();
        let text = std::fs::read_to_string(&path).expect("a file of the library");
        let name = path.display().to_string();
        let found = Found { name, path: Some(path), text };
        let (lib, _) = Library::load(found, &Files { search: Vec::new() }, &mut sources);
        for item in &lib.main().expect("a file").ast.items {
            let ItemKind::Kernel(k) = &item.kind else { continue };
            let mut request = Request::new(&k.name.name);
            for g in &k.generics {
                let name = &g.name.name;
                request = match g.kind {
                    GenericKind::Float | GenericKind::DType => request.with_type(name, DType::F16),
                    GenericKind::Float8 => request.with_type(name, DType::F8E4M3),
                    GenericKind::Int => request.with_type(name, DType::I32),
                    GenericKind::ConstInt => request.with_const(name, 64),
                    GenericKind::ConstBool => request.with_flag(name, true),
                    GenericKind::Fn => request,
                };
            }
            // kernels that want functions or constants are met through their ops elsewhere
            let Ok(done) = elaborate(&lib, &request, &t, &mut sources) else { continue };
            let named = done.program.kernels.iter().all(|(_, k)| k.threads.is_some());
            let p = passed(simplify::run, done.program, Stage::Tile, &t);
            if named {
                threads += 1;
                let p = passed(vectorize::run, p, Stage::Threaded, &t);
                let p = passed(guard::run, p, Stage::Threaded, &t);
                passed(tidy::run, p, Stage::Threaded, &t);
            } else {
                tiles += 1;
                passed(vectorize::run, p, Stage::Tile, &t);
            }
        }
    }
    assert!(threads >= 10 && tiles >= 20, "{threads} kernels with threads, {tiles} without");
}
