//! MUSA C++ for mcc: built-in functions instead of inline assembly. Words and tables only; the code is made in `clike`.

use crate::clike::{Arithmetic, Dialect, Entry};

pub const DIALECT: Dialect = Dialect {
    name: "MUSA C++",
    extension: "mu",
    includes: &["musa_runtime.h"],
    prelude: PRELUDE,
    arithmetic: Arithmetic::Pragma,
    arena_align: 4096,
    no_contraction: "-ffp-contract=off",
};

macro_rules! wide {
    ($name:literal, $bytes:literal) => {
        Entry::new(
            $name,
            concat!(
                "typedef u32 words_",
                $bytes,
                " __attribute__((vector_size(",
                $bytes,
                ")));\nFN void ",
                $name,
                "(void *to, const void *from) { *(words_",
                $bytes,
                " *)to = *(const words_",
                $bytes,
                " *)from; }\n"
            ),
        )
        .since("mp_31")
    };
}

macro_rules! unary_f32 {
    ($name:literal, $call:literal) => {
        Entry::new($name, concat!("FN float ", $name, "(float x) { return ", $call, "; }\n"))
    };
}

macro_rules! atomic_half {
    ($name:literal, $type:literal, $vendor:literal, $make:literal, $take:literal, $header:literal) => {
        Entry::new(
            $name,
            concat!(
                "FN float ",
                $name,
                "(",
                $type,
                " *at, float x) { return ",
                $take,
                "(atomicAdd((",
                $vendor,
                " *)at, ",
                $make,
                "(x))); }\n"
            ),
        )
        .since("mp_31")
        .include($header)
    };
}

const PRELUDE: &[Entry] = &[
    wide!("copy_32", "32"),
    wide!("copy_64", "64"),
    wide!("copy_128", "128"),
    Entry::new("from_f16", "FN float from_f16(f16 x) { return __half2float(*(const __half *)&x); }\n")
        .include("musa_fp16.h"),
    Entry::new(
        "to_f16",
        "FN f16 to_f16(float x) {\n    const __half h = __float2half(x);\n    return *(const f16 *)&h;\n}\n",
    )
    .include("musa_fp16.h"),
    atomic_half!("atomic_add_f16", "f16", "__half", "__float2half", "__half2float", "musa_fp16.h"),
    atomic_half!(
        "atomic_add_bf16",
        "bf16",
        "__mt_bfloat16",
        "__float2bfloat16_rn",
        "__bfloat162float",
        "musa_bf16.h"
    ),
    Entry::new("shared_barrier", "FN void shared_barrier() { __syncthreads_lm(); }\n").since("mp_31"),
    // There is no trap; a failed assertion stops the kernel.
    Entry::new("stop", "FN void stop() { assert(false); }\n").include("assert.h"),
    Entry::new("div_f32", "FN float div_f32(float a, float b) { return __fdiv_rn(a, b); }\n"),
    unary_f32!("exp_approx_f32", "__expf(x)"),
    unary_f32!("exp2_approx_f32", "exp2f(x)"),
    unary_f32!("log_approx_f32", "__logf(x)"),
    unary_f32!("log2_approx_f32", "log2f(x)"),
    unary_f32!("sqrt_approx_f32", "__sqrtf(x)"),
    unary_f32!("rsqrt_approx_f32", "rsqrtf(x)"),
    unary_f32!("rcp_approx_f32", "__fdividef(1.0f, x)"),
    unary_f32!("tanh_approx_f32", "tanhf(x)"),
    unary_f32!("sin_approx_f32", "__sinf(x)"),
    unary_f32!("cos_approx_f32", "__cosf(x)"),
];
