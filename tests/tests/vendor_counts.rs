//! What reaches the machine: exchanges, waits and widths counted in the PTX that NVRTC makes of our sources.
#![allow(clippy::print_stdout)]

use pantile_abi::DType;
use pantile_ir::elab::{Library, Request, Setting, elaborate};
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets};
use pantile_passes::pipeline::{self, Cx};
use pantile_runtime::vendor::{EntryFacts, Nvrtc, VendorFacts};
use pantile_tests::corpus::root;
use pantile_tests::vendor::nvrtc;

const ARCH: &str = "sm_80";

fn counted(nvrtc: &Nvrtc, text: &str, request: &Request, arch: &Arch) -> EntryFacts {
    let mut sources = Sources::default();
    let (library, diags) = Library::from_text("counted.tile", text, &mut sources);
    assert!(!diags.has_errors(), "{diags:?}");
    let made = elaborate(&library, request, arch, &mut sources).unwrap_or_else(|d| panic!("{d:?}"));
    let program =
        pipeline::run(made.program, &Cx { arch }, |_, _| Ok(())).unwrap_or_else(|d| panic!("{d:?}"));
    let source = pantile_backends::clike::emit(&program, arch).unwrap_or_else(|d| panic!("{d:?}"));
    let made =
        nvrtc.compile(&source.text, "counted", &arch.name, &[]).unwrap_or_else(|e| panic!("{}", e.message));
    let facts = VendorFacts::parse(&made.log, &made.ptx);
    facts.entries.into_iter().next().expect("an entry")
}

fn ready() -> Option<(&'static Nvrtc, Arch)> {
    let arch = Targets::shipped().arch(ARCH).cloned()?;
    nvrtc().inspect_err(|why| println!("skipped: {why}")).ok().map(|n| (n, arch))
}

fn number(facts: &EntryFacts, name: &str) -> u32 {
    facts.count(name).unwrap_or_else(|| panic!("`{name}` is not counted"))
}

#[test]
fn a_row_of_a_warp_is_five_exchanges_and_wide_loads() {
    let Some((nvrtc, arch)) = ready() else { return };
    let text = std::fs::read_to_string(root().join("kernels/gemv.tile")).unwrap();
    let text = text.split("// ---- tests").next().unwrap();
    let text = text.replace("use \"ref.tile\"::{ref_gemv, ref_gemv_alpha_beta}", "");
    let plain = "threads (ROWS, RT) as (tn, tk)";
    assert!(text.contains(plain));
    for order in [plain, "threads (RT, ROWS) as (tk, tn)"] {
        let mut request = Request::new("gemv_allreduce").with_type("T", DType::F16);
        request.params.insert("RT".into(), Setting::Int(32));
        let facts = counted(nvrtc, &text.replace(plain, order), &request, &arch);
        println!("{order}:\n{facts}");
        assert_eq!(number(&facts, "shuffle"), 5, "{facts}");
        assert_eq!(number(&facts, "block barrier"), 0, "{facts}");
        assert_eq!(number(&facts, "shared atomic"), 0, "{facts}");
        assert!(number(&facts, "global load 128") >= 2, "{facts}");
    }
}

#[test]
fn folds_of_any_width_wait_once_at_most() {
    let Some((nvrtc, arch)) = ready() else { return };
    let text = include_str!("../../passes/tests/widths.tile");
    let cases = [
        ("total", DType::F16),
        ("total", DType::BF16),
        ("total", DType::I8),
        ("total", DType::F32),
        ("best", DType::F32),
    ];
    for rt in [2, 7, 8, 11, 26, 48, 64, 100, 256, 1024] {
        let mut line = String::new();
        for (name, t) in cases {
            let request = Request::new(name).with_type("T", t).with_const("RT", rt);
            let facts = counted(nvrtc, text, &request, &arch);
            let (shuffles, barriers) = (number(&facts, "shuffle"), number(&facts, "block barrier"));
            line += &format!(" {shuffles}/{barriers}");
            assert!(barriers <= 1, "{rt} {t:?}\n{facts}");
            assert!(shuffles > 0, "{rt} {t:?}\n{facts}");
        }
        println!("{rt}: shuffles/barriers{line}");
    }
}
