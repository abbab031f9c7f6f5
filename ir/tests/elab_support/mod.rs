//! What the tests of elaboration share: loading from text, specialising, and diagnostics as short lines.
#![allow(dead_code)]

use pantile_ir::diag::Diagnostics;
use pantile_ir::elab::{Elaborated, Library, Request, elaborate};
use pantile_ir::print::print;
use pantile_ir::program::*;
use pantile_ir::span::Sources;
use pantile_ir::target::{Arch, Targets};

pub fn arch(name: &str) -> Arch {
    Targets::shipped().arch(name).expect("a shipped architecture").clone()
}

/// `line:column P0123 message | label | help | …` of each diagnostic.
pub fn lines(diags: &Diagnostics, sources: &Sources) -> Vec<String> {
    diags
        .iter()
        .map(|d| {
            let (line, col) = sources.line_col(d.primary.span);
            let mut text = format!("{line}:{col} {} {}", d.code, d.message);
            for more in std::iter::once(&d.primary.label_text()).chain(&d.help) {
                if !more.is_empty() {
                    text += &format!(" | {more}");
                }
            }
            text
        })
        .collect()
}

trait LabelText {
    fn label_text(&self) -> String;
}

impl LabelText for pantile_ir::diag::Label {
    fn label_text(&self) -> String {
        self.text.clone()
    }
}

pub fn load(text: &str) -> (Library, Sources) {
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("test.tile", text, &mut sources);
    assert!(diags.is_empty(), "does not load: {:#?}", lines(&diags, &sources));
    (lib, sources)
}

pub fn run_on(text: &str, request: &Request, target: &str) -> Result<Elaborated, Vec<String>> {
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("test.tile", text, &mut sources);
    if diags.has_errors() {
        return Err(lines(&diags, &sources));
    }
    elaborate(&lib, request, &arch(target), &mut sources).map_err(|d| lines(&d, &sources))
}

pub fn run(text: &str, request: &Request) -> Result<Elaborated, Vec<String>> {
    run_on(text, request, "reference")
}

/// The program of an entry without generics to bind.
#[track_caller]
pub fn program(text: &str, entry: &str) -> Program {
    program_of(text, &Request::new(entry))
}

#[track_caller]
pub fn program_of(text: &str, request: &Request) -> Program {
    match run(text, request) {
        Ok(e) => e.program,
        Err(lines) => panic!("does not elaborate:\n{}", lines.join("\n")),
    }
}

/// The only kernel of a body written as statements, over a few parameters.
pub fn kernel_text(body: &str) -> String {
    format!(
        "kernel k(A: f32[M, N], B: f32[N, M], H: f16[M, N], I: i32[M], O: out f32[M, N], X: inout f32[M, N], s: f32, n: i32) {{\n\
         param BM = 64, BN = 32\ngrid (ceildiv(M, BM), ceildiv(N, BN)) as (i, j)\n{body}\n}}"
    )
}

#[track_caller]
pub fn body(text: &str) -> Kernel {
    program(&kernel_text(text), "k").kernels.iter().next().expect("a kernel").1.clone()
}

/// The diagnostics of a kernel's body; lines are counted from 1 at the body's first line.
#[track_caller]
pub fn errors(text: &str) -> Vec<String> {
    match run(&kernel_text(text), &Request::new("k")) {
        Ok(_) => panic!("elaborates, but should not:\n{text}"),
        Err(lines) => lines.into_iter().map(|l| shift(&l)).collect(),
    }
}

fn shift(line: &str) -> String {
    let (number, rest) = line.split_once(':').expect("a place");
    let number: i64 = number.parse().expect("a line");
    format!("{}:{rest}", number - 3)
}

/// Exactly one error, at the place and with the code given, whose text holds `part`.
#[track_caller]
pub fn one_error(text: &str, place: &str, code: u16, part: &str) {
    let found = errors(text);
    let expected = format!("{place} P{code:04} ");
    assert!(
        found.len() == 1 && found[0].starts_with(&expected) && found[0].contains(part),
        "expected `{expected}…{part}…`, found {found:#?}\nin\n{text}"
    );
}

/// Names of statements in order, nested ones indented: the shape of a body.
pub fn shape(k: &Kernel) -> Vec<String> {
    let mut out = Vec::new();
    shape_of(k, &k.stmts, 0, &mut out);
    out
}

fn shape_of(k: &Kernel, block: &Block, depth: usize, out: &mut Vec<String>) {
    let name = |l: &LocalId| k.body.locals[*l].name.clone();
    for s in block {
        let text = match &s.kind {
            StmtKind::Let { local, .. } => format!("let {}", name(local)),
            StmtKind::Declare { local } => format!("declare {}", name(local)),
            StmtKind::Buffer { buffer } => format!("buffer {}", k.buffers[*buffer].name),
            StmtKind::Reducer { reducer } => format!("reducer {}", k.reducers[*reducer].name),
            StmtKind::Assign { local, .. } => format!("{} =", name(local)),
            StmtKind::Update { local, op, .. } => format!("{} {op:?}=", name(local)),
            StmtKind::Store { .. } => "store".into(),
            StmtKind::Op { results, op } => {
                let results: Vec<String> = results.iter().map(name).collect();
                let op = format!("{op:?}");
                let op = op.split([' ', '{']).next().unwrap_or_default().to_string();
                format!("[{}] {op}", results.join(", "))
            }
            StmtKind::If { .. } => "if".into(),
            StmtKind::For { var, kind, .. } => format!("for {} {kind:?}", name(var)),
            StmtKind::While { .. } => "while".into(),
            StmtKind::Parallel { .. } => "parallel".into(),
            StmtKind::Break => "break".into(),
            StmtKind::Continue => "continue".into(),
            StmtKind::Next { .. } => "next".into(),
            StmtKind::Roles(_) => "roles".into(),
        };
        out.push(format!("{}{text}", "  ".repeat(depth)));
        for b in s.kind.blocks() {
            shape_of(k, b, depth + 1, out);
        }
    }
}

/// The printed statements of a kernel's body after its grid and threads, one a line without indentation.
#[track_caller]
pub fn statements(p: &Program) -> Vec<String> {
    let all = pantile_ir::print::print(p);
    let from = all.find("kernel k(").expect("a kernel named k");
    let lines: Vec<&str> = all[from..].lines().map(str::trim).collect();
    let head =
        lines.iter().rposition(|l| l.starts_with("grid ") || l.starts_with("threads ")).expect("a grid");
    lines[head + 1..lines.len() - 1].iter().map(|l| l.to_string()).collect()
}

#[track_caller]
pub fn printed(text: &str) -> Vec<String> {
    statements(&program(&kernel_text(text), "k"))
}

/// The program that a program's text is.
#[track_caller]
pub fn reread(p: &Program) -> Program {
    let text = print(p);
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("printed.tile", &text, &mut sources);
    assert!(diags.is_empty(), "does not read back:\n{text}\n{:#?}", lines(&diags, &sources));
    match elaborate(&lib, &Request::new(p.entry.name.clone()), &arch(&p.arch), &mut sources) {
        Ok(e) => e.program,
        Err(d) => panic!("does not elaborate:\n{text}\n{:#?}", lines(&d, &sources)),
    }
}

/// The text of a program, after checking that it reads back to the same text.
#[track_caller]
pub fn round_trip(p: &Program) -> String {
    let first = print(p);
    let second = print(&reread(p));
    assert!(first == second, "prints differently:\n{first}\n--- then ---\n{second}");
    first
}
