//! The C view of kernels built to a file: their functions, how each is called, and a launcher for each.

use pantile_abi::{CpuAbi, DType, IExpr, IOp, KernelAbi, Mode, ParamAbi, Program, ScalarType};
use std::fmt::Write;

/// A header for C99 and C++ that declares every kernel of a program with code.
pub fn header(program: &Program, target: &str) -> String {
    let guard: String = program.name.chars().map(|c| c.to_ascii_uppercase()).collect();
    let mut out = format!(
        "/* {} for {target}, built by pantile {}. */\n#ifndef PANTILE_{guard}_H\n#define PANTILE_{guard}_H\n\n",
        program.name,
        env!("CARGO_PKG_VERSION")
    );
    out += HELPERS;
    for kernel in &program.kernels {
        out += &one(kernel);
    }
    out += "#ifdef __cplusplus\n}\n#endif\n#endif\n";
    out
}

const HELPERS: &str = "\
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern \"C\" {
#endif

/* Every kernel is one function
 *     uint64_t NAME(const uint64_t *words, uint64_t begin, uint64_t end, unsigned char *scratch);
 * It runs blocks begin .. end of the grid, the first grid axis fastest. Ranges may run on any threads at a time, each
 * with scratch of its own: NAME_SCRATCH bytes at a multiple of 64, contents unspecified.
 * words: one a parameter in the order of declaration (a tensor's address, a scalar's bits in the low end), one a dim,
 * one a grid axis. It gives 0, or 1 + the number of what stopped it. */

#ifndef PANTILE_COMMON
#define PANTILE_COMMON
/* What launchers give beside a kernel's own result. */
#define PANTILE_BAD_ARGUMENT UINT64_MAX
#define PANTILE_NO_MEMORY (UINT64_MAX - 1)

static inline int64_t pantile_div(int64_t a, int64_t b) { return b == 0 ? 0 : a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
static inline int64_t pantile_mod(int64_t a, int64_t b) { return b == 0 ? 0 : a - pantile_div(a, b) * b; }
static inline int64_t pantile_ceildiv(int64_t a, int64_t b) { int64_t q = b == 0 ? 0 : -pantile_div(-a, b); return q > 0 ? q : 0; }
static inline int64_t pantile_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t pantile_max(int64_t a, int64_t b) { return a > b ? a : b; }
#endif

";

/// Names that a launcher of C needs for itself, or that C has taken.
const TAKEN: &[&str] = &[
    "words",
    "status",
    "blocks",
    "scratch",
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "class",
    "new",
    "delete",
    "this",
    "template",
    "namespace",
    "operator",
    "private",
    "public",
    "protected",
    "virtual",
    "friend",
    "using",
    "try",
    "catch",
    "throw",
    "bool",
    "true",
    "false",
    "and",
    "or",
    "not",
    "xor",
];

fn c_name(name: &str) -> String {
    if TAKEN.contains(&name) { format!("{name}_") } else { name.into() }
}

fn c_type(d: DType) -> &'static str {
    match d {
        DType::Bool | DType::U8 | DType::I4 | DType::U4 | DType::F8E4M3 | DType::F8E5M2 => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::U16 | DType::F16 | DType::BF16 => "uint16_t",
        DType::I32 => "int32_t",
        DType::U32 => "uint32_t",
        DType::I64 => "int64_t",
        DType::U64 => "uint64_t",
        DType::F32 => "float",
        DType::F64 => "double",
    }
}

fn one(k: &KernelAbi) -> String {
    let none = CpuAbi::default();
    let cpu = k.cpu.as_ref().unwrap_or(&none);
    let (symbol, name) = (&k.symbol, &k.name);
    let mut out = format!("/* {name}(");
    let shown: Vec<String> = k.params.iter().map(|p| described(p, k)).collect();
    let _ = writeln!(out, "{}) */", shown.join(", "));
    let _ = writeln!(
        out,
        "uint64_t {symbol}(const uint64_t *words, uint64_t begin, uint64_t end, unsigned char *scratch);\n\
         #define {symbol}_SCRATCH {}\n",
        cpu.scratch
    );
    out += &faults(k, cpu);
    out += &launcher(k);
    out
}

/// A parameter as the kernel declares it.
fn described(p: &ParamAbi, k: &KernelAbi) -> String {
    match p {
        ParamAbi::Tensor(t) => {
            let list = |all: &[IExpr]| all.iter().map(|x| expr(x, k)).collect::<Vec<_>>().join(", ");
            let strides = t.strides.as_ref().map(|s| format!(" strides ({})", list(s))).unwrap_or_default();
            format!("{}: {}[{}]{strides}", t.name, t.dtype.name(), list(&t.dims))
        }
        ParamAbi::Scalar(s) => format!("{}: {}", s.name, s.ty),
    }
}

/// What the numbers that a kernel gives mean.
fn faults(k: &KernelAbi, cpu: &CpuAbi) -> String {
    let mut out = format!("static inline const char *{}_message(uint64_t status) {{\n", k.name);
    out += "    if (status == 0) return \"fine\";\n";
    for (i, f) in cpu.faults.iter().enumerate() {
        let text = f.message.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
        let _ = writeln!(out, "    if (status == {}) return \"P{:04}: {text}\";", i + 1, f.code);
    }
    out += "    if (status == PANTILE_BAD_ARGUMENT) return \"a condition on the dims does not hold\";\n";
    out += "    if (status == PANTILE_NO_MEMORY) return \"no memory for scratch\";\n";
    out + "    return \"unknown\";\n}\n\n"
}

/// Parameters, then dims and strides by name; all blocks on the calling thread.
fn launcher(k: &KernelAbi) -> String {
    let mut takes = Vec::new();
    let mut body = String::new();
    let words = k.params.len() + k.dims.len() + k.grid.len();
    let _ = writeln!(body, "    uint64_t words[{}] = {{0}};", words.max(1));
    for (i, p) in k.params.iter().enumerate() {
        let name = c_name(p.name());
        match p {
            ParamAbi::Tensor(t) => {
                let access = if t.mode == Mode::In { "const " } else { "" };
                takes.push(format!("{access}{} *{name}", c_type(t.dtype)));
                let _ = writeln!(body, "    words[{i}] = (uint64_t)(uintptr_t){name};");
            }
            ParamAbi::Scalar(s) => {
                let ty = match s.ty {
                    ScalarType::Index => "int64_t",
                    ScalarType::Typed(d) => c_type(d),
                };
                takes.push(format!("{ty} {name}"));
                let _ = writeln!(body, "    memcpy(&words[{i}], &{name}, sizeof {name});");
            }
        }
    }
    for (i, d) in k.dims.iter().enumerate() {
        takes.push(format!("int64_t {}", c_name(d)));
        let _ = writeln!(body, "    words[{}] = (uint64_t){};", k.params.len() + i, c_name(d));
    }
    for (condition, _) in &k.conditions {
        let _ = writeln!(body, "    if (!({})) return PANTILE_BAD_ARGUMENT;", expr(condition, k));
    }
    body += "    uint64_t blocks = 1;\n";
    for (i, axis) in k.grid.iter().enumerate() {
        let at = k.params.len() + k.dims.len() + i;
        let _ = writeln!(body, "    words[{at}] = (uint64_t)pantile_max(0, {});", expr(axis, k));
        let _ = writeln!(body, "    blocks *= words[{at}];");
    }
    let symbol = &k.symbol;
    let _ = write!(
        body,
        "    unsigned char *scratch = (unsigned char *)malloc({symbol}_SCRATCH + 64);\n\
         \x20   if (!scratch) return PANTILE_NO_MEMORY;\n\
         \x20   uint64_t status = {symbol}(words, 0, blocks, scratch + (64 - (uintptr_t)scratch % 64) % 64);\n\
         \x20   free(scratch);\n    return status;\n"
    );
    let takes = if takes.is_empty() { "void".into() } else { takes.join(", ") };
    format!("static inline uint64_t {}({takes}) {{\n{body}}}\n\n", k.name)
}

/// C of an integer expression; a parameter or dim is a name of the launcher.
fn expr(x: &IExpr, k: &KernelAbi) -> String {
    let go = |x: &IExpr| expr(x, k);
    match x {
        IExpr::Const(v) => v.to_string(),
        IExpr::Dim(i) => k.dims.get(*i as usize).map_or("0".into(), |d| c_name(d)),
        IExpr::Scalar(i) => {
            k.params.get(*i as usize).map_or("0".into(), |p| format!("(int64_t){}", c_name(p.name())))
        }
        IExpr::Not(a) => format!("!({})", go(a)),
        IExpr::Select(c, a, b) => format!("({} ? {} : {})", go(c), go(a), go(b)),
        IExpr::Bin(op, a, b) => {
            let (a, b) = (go(a), go(b));
            let call = |f: &str| format!("pantile_{f}({a}, {b})");
            let infix = |s: &str| format!("({a} {s} {b})");
            match op {
                IOp::Add => infix("+"),
                IOp::Sub => infix("-"),
                IOp::Mul => infix("*"),
                IOp::FloorDiv => call("div"),
                IOp::Mod => call("mod"),
                IOp::CeilDiv => call("ceildiv"),
                IOp::Min => call("min"),
                IOp::Max => call("max"),
                IOp::Eq => infix("=="),
                IOp::Ne => infix("!="),
                IOp::Lt => infix("<"),
                IOp::Le => infix("<="),
                IOp::Gt => infix(">"),
                IOp::Ge => infix(">="),
                IOp::And => infix("&&"),
                IOp::Or => infix("||"),
            }
        }
    }
}
