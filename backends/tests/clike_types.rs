//! Every conversion, function, atomic and shuffle of every type, on every GPU target.
//!
//! `PANTILE_SOURCES=DIR` keeps the texts there, for a compiler to read.
#![cfg(all(feature = "cuda", feature = "musa"))]

use pantile_backends::clike::emit;
use pantile_ir::DType;
use pantile_ir::elab::{Library, Request, elaborate};
use pantile_ir::program::{MathFn, Stage};
use pantile_ir::span::Sources;
use pantile_ir::target::{Backend, Targets};
use std::fmt::Write;

/// Emits the kernel `k` of a text for every GPU target.
fn everywhere(text: &str, name: &str) {
    let targets = Targets::shipped();
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("t.tile", text, &mut sources);
    assert!(!diags.has_errors(), "{text}\n{:?}", diags.iter().map(|d| &d.message).collect::<Vec<_>>());
    for arch in targets.archs().filter(|a| matches!(a.backend, Backend::Cuda | Backend::Musa)) {
        let said = |d: pantile_ir::diag::Diagnostics| d.iter().map(|d| d.message.clone()).collect::<Vec<_>>();
        let made = elaborate(&lib, &Request::new("k"), arch, &mut sources);
        let mut program = made.unwrap_or_else(|d| panic!("{text}\n{:?}", said(d))).program;
        program.stage = Stage::Threaded;
        let source = emit(&program, arch).unwrap_or_else(|d| panic!("{} {text}\n{:?}", arch.name, said(d)));
        assert!(source.text.contains("extern \"C\" __global__"));
        if let Some(dir) = std::env::var_os("PANTILE_SOURCES") {
            let file = std::path::Path::new(&dir).join(format!("types.{name}.{}.cu", arch.name));
            std::fs::write(file, source.text).expect("a folder");
        }
    }
}

fn tensor(name: &str, mode: &str, d: DType) -> String {
    let packed = if d.bits() == 4 { " packed(N, order = linear)" } else { "" };
    format!("{name}: {mode}{d}[N]{packed}")
}

const HEAD: &str =
    "where N % 32 == 0 {\n    grid N/32 as b\n    threads 32 ordered as t\n    let i = b*32 + t\n";

#[test]
fn conversions() {
    for from in DType::ALL {
        let mut params = vec![tensor("X", "", from)];
        let mut body = String::new();
        for to in DType::ALL.into_iter().filter(|&to| to != DType::Bool) {
            params.push(tensor(&format!("Y_{to}"), "inout ", to));
            params.push(tensor(&format!("Z_{to}"), "inout ", to));
            let _ = writeln!(body, "    Y_{to}[i] = {to}(X[i])");
            if from != DType::Bool {
                let _ = writeln!(body, "    Z_{to}[i] = {to}.sat(X[i])");
            }
        }
        everywhere(&format!("kernel k({}) {HEAD}{body}}}", params.join(", ")), &format!("from_{from}"));
    }
}

#[test]
fn functions() {
    for d in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let mut body =
            format!("    let (x, y, z) = (X[i], X[i] + {d}(1), X[i] - {d}(2))\n    var s: {d} = 0\n");
        for f in MathFn::ALL.into_iter().filter(|f| !matches!(f, MathFn::CeilDiv)) {
            let args = ["x", "y", "z"][..f.arity()].join(", ");
            let forms = if f.has_approx() { vec!["", ".approx"] } else { vec![""] };
            for form in forms {
                let call = format!("{}{form}({args})", f.name());
                let _ = match f {
                    MathFn::IsNan | MathFn::IsInf => writeln!(body, "    if {call} {{ s = 1 }}"),
                    _ => writeln!(body, "    s += {call}"),
                };
            }
        }
        let exact = if d == DType::F32 { "math exact " } else { "" };
        let head = format!("kernel k({}, {}) {exact}{HEAD}", tensor("X", "", d), tensor("Y", "out ", d));
        everywhere(&format!("{head}{body}    Y[i] = s / x\n}}"), &format!("functions_{d}"));
    }
}

#[test]
fn integers() {
    for d in DType::ALL.into_iter().filter(|d| d.is_int()) {
        let body = format!(
            "    let (x, y) = (X[i], X[N - 1 - i])\n    var s = x + y*x - (x << {d}(1))\n    s += (x >> {d}(2)) / y + x % y\n    \
             s = max(min(s, x), clamp(y, {d}(1), {d}(5))) ^ !x | y & x\n    Y[i] = abs(s) + ceildiv(x, y) - (0 - y)\n"
        );
        let head = format!("kernel k({}, {}) {HEAD}", tensor("X", "", d), tensor("Y", "out ", d));
        everywhere(&format!("{head}{body}}}"), &format!("integers_{d}"));
    }
}

#[test]
fn atomics_and_shuffles() {
    for d in DType::ALL.into_iter().filter(|d| d.bits() >= 8 && *d != DType::Bool) {
        let float = matches!(d, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
        let wide = matches!(d, DType::I32 | DType::U32 | DType::I64 | DType::U64);
        let mut ops = vec![];
        if float || wide {
            ops.extend(["add", "min", "max"]);
        }
        if wide {
            ops.extend(["and", "or", "xor"]);
        }
        if wide || matches!(d, DType::F32 | DType::F64) {
            ops.push("exchange");
        }
        let mut body = "    shared s: T[4]\n    if t < 4 { s[t] = X[i] }\n".replace('T', d.name());
        for op in ops {
            let _ = writeln!(
                body,
                "    let r_{op} = atomic_{op}(Y[i], X[i])\n    Y[i] = r_{op}\n    atomic_{op}(s[t % 4], X[i])"
            );
        }
        if wide {
            body += "    let old = atomic_cas(Y[i], X[i], X[0])\n    Y[i] = old\n";
        }
        for kind in ["", "_up", "_down", "_xor"] {
            let _ = writeln!(body, "    let q{kind} = shfl{kind}(X[i], 1)\n    Y[i] = q{kind}");
        }
        let head = format!("kernel k({}, {}) {HEAD}", tensor("X", "", d), tensor("Y", "inout ", d));
        everywhere(&format!("{head}{body}}}"), &format!("atomics_{d}"));
    }
}
