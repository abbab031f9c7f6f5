//! The kernels that ship: verified, and printed so that they read back.

mod elab_support;

use elab_support::*;
use pantile_ir::DType;
use pantile_ir::ast::{Generic, GenericKind, ItemKind};
use pantile_ir::elab::{Files, Found, Library, Request, Setting, elaborate};
use pantile_ir::print::print;
use pantile_ir::span::Sources;
use pantile_ir::verify::verify;
use std::path::Path;

fn request(name: &str, generics: &[Generic]) -> Request {
    let mut r = Request::new(name);
    for g in generics {
        let name = g.name.name.clone();
        match g.kind {
            GenericKind::Float | GenericKind::DType => drop(r.types.insert(name, DType::F32)),
            GenericKind::Float8 => drop(r.types.insert(name, DType::F8E4M3)),
            GenericKind::Int => drop(r.types.insert(name, DType::I32)),
            GenericKind::ConstInt if g.default.is_none() => drop(r.consts.insert(name, Setting::Int(64))),
            GenericKind::ConstBool if g.default.is_none() => drop(r.consts.insert(name, Setting::Bool(true))),
            GenericKind::Fn if g.default.is_none() => drop(r.fns.insert(name, "identity".into())),
            _ => {}
        }
    }
    r
}

fn check_file(path: &Path, failures: &mut Vec<String>) -> usize {
    let text = std::fs::read_to_string(path).expect("a kernel file");
    let mut sources = Sources::default();
    let found = || Found { name: path.display().to_string(), path: Some(path.into()), text: text.clone() };
    let resolver = Files { search: vec![path.parent().expect("a folder").into()] };
    let (lib, diags) = Library::load(found(), &resolver, &mut sources);
    assert!(!diags.has_errors(), "{}: {:#?}", path.display(), lines(&diags, &sources));
    let mut count = 0;
    for item in &lib.main().expect("a file").ast.items {
        let (name, generics) = match &item.kind {
            ItemKind::Kernel(k) => (&k.name.name, &k.generics),
            ItemKind::Op(o) => (&o.name.name, &o.generics),
            _ => continue,
        };
        let place = format!("{}::{name}", path.display());
        let arch = arch("reference");
        let program = match elaborate(&lib, &request(name, generics), &arch, &mut sources) {
            Ok(e) => e.program,
            // some need constants that only their tests know
            Err(_) => continue,
        };
        count += 1;
        if let Err(d) = verify(&program, &arch) {
            failures.push(format!("{place}: {:#?}", lines(&d, &sources)));
            continue;
        }
        let first = print(&program);
        let mut again = Sources::default();
        let (lib, diags) = Library::from_text("printed.tile", &first, &mut again);
        if diags.has_errors() {
            failures.push(format!("{place}: printed, but unreadable\n{first}\n{:#?}", lines(&diags, &again)));
            continue;
        }
        match elaborate(&lib, &Request::new(name.clone()), &arch, &mut again) {
            Err(d) => failures
                .push(format!("{place}: printed, but not elaborated\n{first}\n{:#?}", lines(&d, &again))),
            Ok(e) => {
                let second = print(&e.program);
                if first != second {
                    failures.push(format!("{place}: prints differently\n{first}\n---\n{second}"));
                }
            }
        }
    }
    count
}

#[test]
fn library() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let mut failures = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(root).expect("kernels") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "tile") {
            count += check_file(&path, &mut failures);
        }
    }
    assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
    assert!(count > 40, "only {count} kernels were looked at");
}
