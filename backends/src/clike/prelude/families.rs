//! Functions that exist once a type.

use super::Function;
use crate::clike::tree::Ty;

pub(super) fn find(family: &str, ty: Ty) -> Option<Function> {
    let float = matches!(ty, Ty::F32 | Ty::F64);
    let integer = matches!(ty, Ty::I32 | Ty::U32 | Ty::I64 | Ty::U64);
    match family {
        "min" | "max" if float => Some(float_extreme(family, ty)),
        "min" | "max" if integer => Some(extreme(family, ty)),
        "floor_div" | "floor_rem" | "ceil_div" if matches!(ty, Ty::I32 | Ty::I64) => {
            Some(division(family, ty))
        }
        "ceil_div" if integer => Some(unsigned_ceil(ty)),
        "abs" if ty.is_signed() && integer => Some(magnitude(ty)),
        "is_nan" if float => Some(one_line("bool", "is_nan", ty, "return x != x;")),
        "is_inf" if float => Some(is_inf(ty)),
        "round" => round(ty),
        "shuffle_index" | "shuffle_up" | "shuffle_down" | "shuffle_xor" if integer || float => {
            Some(shuffle(family, ty))
        }
        _ => family.strip_prefix("near_").and_then(|from| nearest(from, ty, false)).or_else(|| {
            let from = family.strip_prefix("sat_")?;
            nearest(from, ty, true).or_else(|| clamp(from, ty))
        }),
    }
}

fn one_line(result: &str, family: &str, ty: Ty, body: &str) -> Function {
    Function::new(format!("FN {result} {family}_{}({} x) {{ {body} }}\n", ty.tag(), ty.name()), &[])
}

/// NaN wins and −0 < +0, as IEEE 754-2019 has it.
fn float_extreme(family: &str, ty: Ty) -> Function {
    let (t, tag) = (ty.name(), ty.tag());
    let (less, join) = if family == "min" { ("<", "|") } else { (">", "&") };
    let (bits, value) = match ty {
        Ty::F32 => ("__float_as_uint", "__uint_as_float"),
        _ => ("__double_as_longlong", "__longlong_as_double"),
    };
    let text = format!(
        "FN {t} {family}_{tag}({t} a, {t} b) {{\n    if (a {less} b) return a;\n    if (b {less} a) return b;\n    \
         return a == b ? {value}({bits}(a) {join} {bits}(b)) : a + b;\n}}\n"
    );
    Function::new(text, &[])
}

fn extreme(family: &str, ty: Ty) -> Function {
    let (t, tag) = (ty.name(), ty.tag());
    let less = if family == "min" { "<" } else { ">" };
    Function::new(format!("FN {t} {family}_{tag}({t} a, {t} b) {{ return a {less} b ? a : b; }}\n"), &[])
}

/// Divisions that round down or up; the one quotient that does not fit wraps.
fn division(family: &str, ty: Ty) -> Function {
    let (t, tag, u) = (ty.name(), ty.tag(), ty.wrapping().name());
    let body = match family {
        "floor_div" => format!(
            "    if (b == -1) return ({t})(0 - ({u})a);\n    const {t} q = a / b;\n    \
             return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;\n"
        ),
        "floor_rem" => format!(
            "    if (b == -1) return 0;\n    const {t} r = a % b;\n    \
             return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n"
        ),
        _ => format!(
            "    if (b == -1) return ({t})(0 - ({u})a);\n    const {t} q = a / b;\n    \
             return a % b != 0 && (a < 0) == (b < 0) ? q + 1 : q;\n"
        ),
    };
    Function::new(format!("FN {t} {family}_{tag}({t} a, {t} b) {{\n{body}}}\n"), &[])
}

fn unsigned_ceil(ty: Ty) -> Function {
    let (t, tag) = (ty.name(), ty.tag());
    Function::new(format!("FN {t} ceil_div_{tag}({t} a, {t} b) {{ return a / b + (a % b != 0); }}\n"), &[])
}

fn magnitude(ty: Ty) -> Function {
    let (t, u) = (ty.name(), ty.wrapping().name());
    one_line(t, "abs", ty, &format!("return x < 0 ? ({t})(0 - ({u})x) : x;"))
}

fn is_inf(ty: Ty) -> Function {
    let body = match ty {
        Ty::F32 => "return (__float_as_uint(x) & 0x7fffffffu) == 0x7f800000u;",
        _ => "return (__double_as_longlong(x) & 0x7fffffffffffffffll) == 0x7ff0000000000000ll;",
    };
    one_line("bool", "is_inf", ty, body)
}

/// To a narrow float and back.
fn round(ty: Ty) -> Option<Function> {
    let tag = ty.tag();
    let (from, to) = (format!("from_{tag}"), format!("to_{tag}"));
    let narrow = matches!(ty, Ty::F16 | Ty::BF16 | Ty::F8E4M3 | Ty::F8E5M2);
    narrow.then(|| {
        Function::new(format!("FN float round_{tag}(float x) {{ return {from}({to}(x)); }}\n"), &[&from, &to])
    })
}

fn shuffle(family: &str, ty: Ty) -> Function {
    let (t, tag) = (ty.name(), ty.tag());
    let call = match family {
        "shuffle_index" => "__shfl_sync",
        "shuffle_up" => "__shfl_up_sync",
        "shuffle_down" => "__shfl_down_sync",
        _ => "__shfl_xor_sync",
    };
    let text = format!(
        "FN {t} {family}_{tag}(u32 lanes, {t} x, int lane, int width) {{ return {call}(lanes, x, lane, width); }}\n"
    );
    Function::new(text, &[])
}

fn limits(ty: Ty) -> Option<(String, String)> {
    let lit = |v: i128, ty: Ty| crate::clike::write::literal(v, ty);
    Some(match ty {
        Ty::I8 => ("-128".into(), "127".into()),
        Ty::U8 => ("0".into(), "255".into()),
        Ty::I16 => ("-32768".into(), "32767".into()),
        Ty::U16 => ("0".into(), "65535".into()),
        Ty::I32 => (lit(i32::MIN.into(), ty), lit(i32::MAX.into(), ty)),
        Ty::U32 => ("0u".into(), lit(u32::MAX.into(), ty)),
        Ty::I64 => (lit(i64::MIN.into(), ty), lit(i64::MAX.into(), ty)),
        Ty::U64 => ("0ull".into(), lit(u64::MAX.into(), ty)),
        _ => return None,
    })
}

/// `near_f32_i32`: to nearest even; `sat_f32_i32`: clamped as well, NaN to 0.
fn nearest(from: &str, to: Ty, sat: bool) -> Option<Function> {
    let (lo, hi) = limits(to)?;
    let (t, tag) = (to.name(), to.tag());
    let (f, rint, suffix) = match from {
        "f32" => ("float", "rintf", "f"),
        "f64" => ("double", "rint", ""),
        _ => return None,
    };
    if !sat {
        return Some(Function::new(
            format!("FN {t} near_{from}_{tag}({f} x) {{ return ({t}){rint}(x); }}\n"),
            &[],
        ));
    }
    let bits = 8 * to.bytes();
    // the powers of two that bound the type are exact in both widths
    let power = |n: u64| format!("{:?}{suffix}", 2f64.powi(n as i32));
    let (low, end) = match to.is_signed() {
        true => (format!("-{}", power(bits - 1)), power(bits - 1)),
        false => (format!("0.0{suffix}"), power(bits)),
    };
    let text = format!(
        "FN {t} sat_{from}_{tag}({f} x) {{\n    const {f} r = {rint}(x);\n    if (r >= {end}) return {hi};\n    \
         if (r <= {low}) return {lo};\n    return r == r ? ({t})r : ({t})0;\n}}\n"
    );
    Some(Function::new(text, &[]))
}

/// `sat_i64_i8`, `sat_u64_i8`: integers clamped to a type.
fn clamp(from: &str, to: Ty) -> Option<Function> {
    let (t, tag) = (to.name(), to.tag());
    let (lo, hi) = limits(to)?;
    let body = match (from, to) {
        ("i64", Ty::I64) | ("u64", Ty::U64) => "return x;".to_string(),
        ("i64", Ty::U64) => "return x < 0 ? 0ull : (u64)x;".to_string(),
        ("i64", _) => format!("return x < {lo} ? {lo} : (x > {hi} ? {hi} : ({t})x);").replace("0u ", "0 "),
        ("u64", _) => format!("return x > (u64){hi} ? {hi} : ({t})x;"),
        _ => return None,
    };
    let body = if from == "i64" && to == Ty::U32 {
        "return x < 0 ? 0u : (x > 4294967295ll ? 4294967295u : (u32)x);".to_string()
    } else {
        body
    };
    let x = if from == "i64" { "i64" } else { "u64" };
    Some(Function::new(format!("FN {t} sat_{from}_{tag}({x} x) {{ {body} }}\n"), &[]))
}
