//! Atomics on one element: the hardware's where the target's table lists the type, else a loop of compare-and-swap.
//! Each gives the value before.

use super::Function;
use crate::clike::tree::Ty;
use pantile_abi::DType;
use pantile_ir::target::Arch;

pub(super) fn find(arch: &Arch, family: &str, ty: Ty) -> Option<Function> {
    let op = family.strip_prefix("atomic_")?;
    if op == "cas" {
        return compare(arch, ty);
    }
    let new = new_value(op, ty)?;
    if let Some(f) = native(arch, op, ty) {
        return Some(f);
    }
    match ty {
        Ty::F16 | Ty::BF16 => Some(half_loop(arch, op, ty, &new)),
        _ => word_loop(arch, op, ty, &new),
    }
}

fn listed(arch: &Arch, op: &str, d: DType) -> bool {
    arch.atomics.iter().any(|a| a.op == op && a.types.value.contains(&d))
}

fn dtype(ty: Ty) -> Option<DType> {
    DType::ALL.into_iter().find(|&d| Ty::of(d) == ty && d.bits() >= 8)
}

/// What the element becomes, of `old` and `x`, and the prelude function that computes it.
fn new_value(op: &str, ty: Ty) -> Option<(String, Vec<String>)> {
    let register = ty.register();
    let call = |f: &str| (format!("{f}_{}(old, x)", register.tag()), vec![format!("{f}_{}", register.tag())]);
    let wrapped = |sign: &str| match ty {
        t if t.is_signed() => format!("({t})(({u})old {sign} ({u})x)", t = t.name(), u = t.wrapping().name()),
        _ => format!("old {sign} x"),
    };
    let integer = matches!(ty, Ty::I32 | Ty::U32 | Ty::I64 | Ty::U64);
    let float = matches!(ty, Ty::F16 | Ty::BF16 | Ty::F32 | Ty::F64);
    Some(match op {
        "add" if integer || float => (wrapped("+"), Vec::new()),
        "min" | "max" if integer || float => call(op),
        "and" if integer => (wrapped("&"), Vec::new()),
        "or" if integer => (wrapped("|"), Vec::new()),
        "xor" if integer => (wrapped("^"), Vec::new()),
        "exchange" if integer || float => ("x".to_string(), Vec::new()),
        _ => return None,
    })
}

/// The hardware's, on this type or on the unsigned one of its width where the bits do the same.
fn native(arch: &Arch, op: &str, ty: Ty) -> Option<Function> {
    let d = dtype(ty)?;
    let (t, tag) = (ty.name(), ty.tag());
    let name = match op {
        "add" => "atomicAdd",
        "min" => "atomicMin",
        "max" => "atomicMax",
        "and" => "atomicAnd",
        "or" => "atomicOr",
        "xor" => "atomicXor",
        _ => "atomicExch",
    };
    if matches!(ty, Ty::F16 | Ty::BF16) {
        return None; // the vendors' tables
    }
    if listed(arch, op, d) && ty != Ty::I64 || listed(arch, op, d) && matches!(op, "min" | "max") {
        return Some(Function::new(
            format!("FN {t} atomic_{op}_{tag}({t} *at, {t} x) {{ return {name}(at, x); }}\n"),
            &[],
        ));
    }
    let same_bits = matches!(op, "add" | "and" | "or" | "xor" | "exchange");
    if ty == Ty::I64 && same_bits && listed(arch, op, DType::U64) {
        let text =
            format!("FN i64 atomic_{op}_i64(i64 *at, i64 x) {{ return (i64){name}((u64 *)at, (u64)x); }}\n");
        return Some(Function::new(text, &[]));
    }
    if ty == Ty::F64 && op == "exchange" && listed(arch, op, DType::U64) {
        let text = format!(
            "FN double atomic_exchange_f64(double *at, double x) {{\n    \
             return __longlong_as_double((i64){name}((u64 *)at, (u64)__double_as_longlong(x)));\n}}\n"
        );
        return Some(Function::new(text, &[]));
    }
    None
}

fn compare(arch: &Arch, ty: Ty) -> Option<Function> {
    let (t, tag) = (ty.name(), ty.tag());
    let head = format!("FN {t} atomic_cas_{tag}({t} *at, {t} expected, {t} x)");
    let body = match ty {
        Ty::I32 | Ty::U32 if listed(arch, "cas", dtype(ty)?) => "atomicCAS(at, expected, x)".to_string(),
        Ty::I32 if listed(arch, "cas", DType::U32) => {
            "(int)atomicCAS((u32 *)at, (u32)expected, (u32)x)".into()
        }
        Ty::U64 if listed(arch, "cas", DType::U64) => "atomicCAS(at, expected, x)".into(),
        Ty::I64 if listed(arch, "cas", DType::U64) => {
            "(i64)atomicCAS((u64 *)at, (u64)expected, (u64)x)".into()
        }
        _ => return None,
    };
    Some(Function::new(format!("{head} {{ return {body}; }}\n"), &[]))
}

/// 32 and 64 bits.
fn word_loop(arch: &Arch, op: &str, ty: Ty, new: &(String, Vec<String>)) -> Option<Function> {
    let word = ty.wrapping();
    let word = if ty == Ty::F64 { Ty::U64 } else { word };
    if !listed(arch, "cas", dtype(word)?) {
        return None;
    }
    let (t, tag, w) = (ty.name(), ty.tag(), word.name());
    let (to_word, to_value) = match ty {
        Ty::F32 => ("__float_as_uint", "__uint_as_float"),
        Ty::F64 => ("(u64)__double_as_longlong", "__longlong_as_double"),
        Ty::I32 => ("(u32)", "(int)"),
        Ty::I64 => ("(u64)", "(i64)"),
        _ => ("", ""),
    };
    let text = format!(
        "FN {t} atomic_{op}_{tag}({t} *at, {t} x) {{\n    {w} seen = *({w} *)at;\n    while (true) {{\n        \
         const {t} old = {to_value}(seen);\n        const {w} before = atomicCAS(({w} *)at, seen, {to_word}({new}));\n        \
         if (before == seen) return old;\n        seen = before;\n    }}\n}}\n",
        new = new.0
    );
    let needs: Vec<&str> = new.1.iter().map(String::as_str).collect();
    Some(Function::new(text, &needs))
}

/// 16 bits: swapped alone where the hardware can, else inside their aligned word.
fn half_loop(arch: &Arch, op: &str, ty: Ty, new: &(String, Vec<String>)) -> Function {
    let tag = ty.tag();
    let (from, to) = (format!("from_{tag}"), format!("to_{tag}"));
    let mut needs: Vec<&str> = new.1.iter().map(String::as_str).collect();
    needs.extend([from.as_str(), to.as_str()]);
    let new = &new.0;
    let text = if listed(arch, "cas", DType::U16) {
        format!(
            "FN float atomic_{op}_{tag}({tag} *at, float x) {{\n    u16 seen = *at;\n    while (true) {{\n        \
             const float old = {from}(seen);\n        \
             const u16 before = atomicCAS((unsigned short *)at, seen, {to}({new}));\n        \
             if (before == seen) return old;\n        seen = before;\n    }}\n}}\n"
        )
    } else {
        format!(
            "FN float atomic_{op}_{tag}({tag} *at, float x) {{\n    u32 *word = (u32 *)((u64)at & ~3ull);\n    \
             const int bit = (int)((u64)at & 2ull) * 8;\n    u32 seen = *word;\n    while (true) {{\n        \
             const float old = {from}((u16)(seen >> bit));\n        \
             const u32 next = (seen & ~(0xffffu << bit)) | ((u32){to}({new}) << bit);\n        \
             const u32 before = atomicCAS(word, seen, next);\n        \
             if (before == seen) return old;\n        seen = before;\n    }}\n}}\n"
        )
    };
    Function::new(text, &needs)
}
