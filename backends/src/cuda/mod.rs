//! CUDA C++ for NVRTC: no header at all, instructions as inline PTX. Words and tables only; the code is made in `clike`.

use crate::clike::{Arithmetic, Dialect, Entry};

pub const DIALECT: Dialect = Dialect {
    name: "CUDA C++",
    extension: "cu",
    includes: &[],
    prelude: PRELUDE,
    arithmetic: Arithmetic::Intrinsics,
    arena_align: 1024,
    no_contraction: "--fmad=false",
};

macro_rules! unary_f32 {
    ($name:literal, $ptx:literal) => {
        Entry::new(
            $name,
            concat!(
                "FN float ",
                $name,
                "(float x) {\n    float r;\n    asm(\"",
                $ptx,
                " %0, %1;\" : \"=f\"(r) : \"f\"(x));\n    return r;\n}\n"
            ),
        )
    };
}

macro_rules! atomic_half {
    ($name:literal, $type:literal, $ptx:literal, $from:literal, $to:literal) => {
        Entry::new(
            $name,
            concat!(
                "FN float ",
                $name,
                "(",
                $type,
                " *at, float x) {\n    u16 old;\n    asm volatile(\"",
                $ptx,
                " %0, [%1], %2;\" : \"=h\"(old) : \"l\"(at), \"h\"(",
                $to,
                "(x)) : \"memory\");\n    return ",
                $from,
                "(old);\n}\n"
            ),
        )
        .needs(&[$from, $to])
    };
}

macro_rules! extreme_f32 {
    ($name:literal, $ptx:literal) => {
        Entry::new(
            $name,
            concat!(
                "FN float ",
                $name,
                "(float a, float b) {\n    float r;\n    asm(\"",
                $ptx,
                " %0, %1, %2;\" : \"=f\"(r) : \"f\"(a), \"f\"(b));\n    return r;\n}\n"
            ),
        )
        .since("sm_80")
    };
}

const PRELUDE: &[Entry] = &[
    Entry::new("from_f16", "FN float from_f16(f16 x) {\n    float r;\n    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(x));\n    return r;\n}\n"),
    Entry::new("to_f16", "FN f16 to_f16(float x) {\n    f16 r;\n    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x));\n    return r;\n}\n"),
    Entry::new("to_bf16", "FN bf16 to_bf16(float x) {\n    bf16 r;\n    asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x));\n    return r;\n}\n")
        .since("sm_80"),
    Entry::new(
        "to_f8e4m3",
        r#"
// What rounds to more than 448 is NaN: the type has no infinity.
FN f8e4m3 to_f8e4m3(float x) {
    u16 r;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(x));
    return fabsf(x) > 464.0f ? (f8e4m3)0x7f : (f8e4m3)r;
}
"#,
    )
    .since("sm_89"),
    Entry::new(
        "from_f8e4m3",
        r#"
FN float from_f8e4m3(f8e4m3 x) {
    u32 r;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"((u16)x));
    return from_f16((f16)r);
}
"#,
    )
    .since("sm_89")
    .needs(&["from_f16"]),
    extreme_f32!("min_f32", "min.NaN.f32"),
    extreme_f32!("max_f32", "max.NaN.f32"),
    // Addition of halves; the table of targets says from which architecture on.
    atomic_half!("atomic_add_f16", "f16", "atom.add.noftz.f16", "from_f16", "to_f16"),
    atomic_half!("atomic_add_bf16", "bf16", "atom.add.noftz.bf16", "from_bf16", "to_bf16").since("sm_90a"),
    unary_f32!("exp2_approx_f32", "ex2.approx.f32"),
    unary_f32!("log2_approx_f32", "lg2.approx.f32"),
    unary_f32!("sqrt_approx_f32", "sqrt.approx.f32"),
    unary_f32!("rsqrt_approx_f32", "rsqrt.approx.f32"),
    unary_f32!("rcp_approx_f32", "rcp.approx.f32"),
    unary_f32!("tanh_approx_f32", "tanh.approx.f32"),
    unary_f32!("sin_approx_f32", "sin.approx.f32"),
    unary_f32!("cos_approx_f32", "cos.approx.f32"),
    Entry::new("exp_approx_f32", "FN float exp_approx_f32(float x) { return __expf(x); }\n"),
    Entry::new("log_approx_f32", "FN float log_approx_f32(float x) { return __logf(x); }\n"),
];
