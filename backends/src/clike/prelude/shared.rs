//! Functions that need no vendor: plain C++ over the built-in types. Vendors lay instructions over some of them.

use super::Entry;

pub const TABLE: &[Entry] = &[
    // Wide accesses: one each.
    Entry::new("copy_1", "FN void copy_1(void *to, const void *from) { *(u8 *)to = *(const u8 *)from; }\n"),
    Entry::new("copy_2", "FN void copy_2(void *to, const void *from) { *(u16 *)to = *(const u16 *)from; }\n"),
    Entry::new("copy_4", "FN void copy_4(void *to, const void *from) { *(u32 *)to = *(const u32 *)from; }\n"),
    Entry::new("copy_8", "FN void copy_8(void *to, const void *from) { *(uint2 *)to = *(const uint2 *)from; }\n"),
    Entry::new("copy_16", "FN void copy_16(void *to, const void *from) { *(uint4 *)to = *(const uint4 *)from; }\n"),
    Entry::new(
        "copy_32",
        "FN void copy_32(void *to, const void *from) {\n    struct __align__(32) Wide { uint4 part[2]; };\n    *(Wide *)to = *(const Wide *)from;\n}\n",
    ),
    Entry::new(
        "copy_64",
        "FN void copy_64(void *to, const void *from) {\n    struct __align__(64) Wide { uint4 part[4]; };\n    *(Wide *)to = *(const Wide *)from;\n}\n",
    ),
    Entry::new(
        "copy_128",
        "FN void copy_128(void *to, const void *from) {\n    struct __align__(128) Wide { uint4 part[8]; };\n    *(Wide *)to = *(const Wide *)from;\n}\n",
    ),
    // Narrow floats: bits to values.
    Entry::new("from_bf16", "FN float from_bf16(bf16 x) { return __uint_as_float((u32)x << 16); }\n"),
    Entry::new("from_f8e5m2", "FN float from_f8e5m2(f8e5m2 x) { return from_f16((f16)(x << 8)); }\n").needs(&["from_f16"]),
    Entry::new(
        "from_f8e4m3",
        r#"
FN float from_f8e4m3(f8e4m3 x) {
    const u32 magnitude = x & 0x7fu, sign = (x & 0x80u) << 24;
    u32 bits = (magnitude << 20) + (120u << 23);
    if (magnitude == 0x7fu) bits = 0x7fc00000u;
    if (magnitude < 8u) bits = __float_as_uint((float)magnitude * 0.001953125f);
    return __uint_as_float(bits | sign);
}
"#,
    ),
    // Values to bits, to nearest even.
    Entry::new(
        "to_bf16",
        r#"
FN bf16 to_bf16(float x) {
    const u32 bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (bf16)0x7fc0;
    return (bf16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
"#,
    ),
    Entry::new(
        "to_f8e4m3",
        r#"
// What rounds to more than 448 is NaN: the type has no infinity.
FN f8e4m3 to_f8e4m3(float x) {
    const u32 bits = __float_as_uint(x), sign = (bits >> 24) & 0x80u;
    u32 m = bits & 0x7fffffffu;
    if (m > 0x43e80000u) return (f8e4m3)(sign | 0x7fu);
    if (m < 0x3c800000u) return (f8e4m3)(sign | (u32)rintf(__uint_as_float(m) * 512.0f));
    m += 0x7ffffu + ((m >> 20) & 1u);
    return (f8e4m3)(sign | ((m >> 20) - 960u));
}
"#,
    ),
    Entry::new(
        "to_f8e5m2",
        r#"
FN f8e5m2 to_f8e5m2(float x) {
    const u32 bits = __float_as_uint(x), sign = (bits >> 24) & 0x80u;
    u32 m = bits & 0x7fffffffu;
    if (m > 0x7f800000u) return (f8e5m2)(sign | 0x7eu);
    if (m >= 0x47800000u) return (f8e5m2)(sign | 0x7cu);
    if (m < 0x38800000u) return (f8e5m2)(sign | (u32)rintf(__uint_as_float(m) * 65536.0f));
    m += 0xfffffu + ((m >> 21) & 1u);
    return (f8e5m2)(sign | ((m >> 21) - 448u));
}
"#,
    ),
    // A conversion to a narrower type rounds what these give once more, as if it had rounded only once.
    Entry::new(
        "odd_f64",
        r#"
// To odd: cut off, with the last bit set where that loses something.
FN float odd_f64(double x) {
    const float near = (float)x;
    if ((double)near == x || x != x) return near;
    u32 bits = __float_as_uint(near);
    if (fabs((double)near) > fabs(x)) bits -= 1u;
    return __uint_as_float(bits | 1u);
}
"#,
    ),
    Entry::new(
        "odd_u64",
        r#"
FN float odd_u64(u64 x) {
    const int lost = x >> 53 ? 11 : 0;
    const u64 kept = x >> lost;
    return odd_f64((double)(kept | (u64)(kept << lost != x)) * (double)(1ull << lost));
}
"#,
    )
    .needs(&["odd_f64"]),
    Entry::new("odd_i64", "FN float odd_i64(i64 x) { return x < 0 ? -odd_u64(0ull - (u64)x) : odd_u64((u64)x); }\n").needs(&["odd_u64"]),
    Entry::new(
        "clamp_f32",
        "FN float clamp_f32(float x, float most) { return x > most ? most : (x < -most ? -most : x); }\n",
    ),
    Entry::new(
        "clamp_f64",
        "FN double clamp_f64(double x, double most) { return x > most ? most : (x < -most ? -most : x); }\n",
    ),
    // Four bits.
    Entry::new("wrap_i4", "FN i8 wrap_i4(int x) { return (i8)((int)((u32)x << 28) >> 28); }\n"),
    Entry::new("nibble_linear", "FN u8 nibble_linear(u8 unit, int i) { return (u8)((unit >> ((i & 1) * 4)) & 15); }\n"),
    Entry::new("nibble_gptq", "FN u8 nibble_gptq(u32 unit, int i) { return (u8)((unit >> ((i & 7) * 4)) & 15u); }\n"),
    Entry::new(
        "nibble_awq",
        "FN u8 nibble_awq(u32 unit, int i) { return (u8)((unit >> (((i & 7) >> 1) * 4 + (i & 1) * 16)) & 15u); }\n",
    ),
    // Other threads own the rest of the word.
    Entry::new(
        "set_nibble",
        r#"
FN void set_nibble(u32 *word, int bit, u32 value) {
    atomicAnd(word, ~(15u << bit));
    atomicOr(word, (value & 15u) << bit);
}
"#,
    ),
    Entry::new(
        "set_linear",
        r#"
FN void set_linear(u8 *unit, int i, u32 value) {
    const u64 at = (u64)unit;
    set_nibble((u32 *)(at & ~3ull), (int)(at & 3ull) * 8 + (i & 1) * 4, value);
}
"#,
    )
    .needs(&["set_nibble"]),
    Entry::new("set_gptq", "FN void set_gptq(u32 *unit, int i, u32 value) { set_nibble(unit, (i & 7) * 4, value); }\n")
        .needs(&["set_nibble"]),
    Entry::new(
        "set_awq",
        "FN void set_awq(u32 *unit, int i, u32 value) { set_nibble(unit, ((i & 7) >> 1) * 4 + (i & 1) * 16, value); }\n",
    )
    .needs(&["set_nibble"]),
    // Threads.
    Entry::new("block_barrier", "FN void block_barrier() { __syncthreads(); }\n"),
    Entry::new("shared_barrier", "FN void shared_barrier() { __syncthreads(); }\n"),
    Entry::new("warp_barrier", "FN void warp_barrier(u32 lanes) { __syncwarp(lanes); }\n"),
    Entry::new("warp_any", "FN bool warp_any(u32 lanes, bool c) { return __any_sync(lanes, c) != 0; }\n"),
    Entry::new("warp_all", "FN bool warp_all(u32 lanes, bool c) { return __all_sync(lanes, c) != 0; }\n"),
    Entry::new("warp_ballot", "FN u32 warp_ballot(u32 lanes, bool c) { return __ballot_sync(lanes, c); }\n"),
    Entry::new("block_any", "FN bool block_any(bool c) { return __syncthreads_or(c) != 0; }\n"),
    Entry::new("block_all", "FN bool block_all(bool c) { return __syncthreads_and(c) != 0; }\n"),
    Entry::new("stop", "FN void stop() { __trap(); }\n"),
    // IEEE 754 divisions and roots.
    Entry::new("root_f32", "FN float root_f32(float x) { return sqrtf(x); }\n"),
    Entry::new("root_f64", "FN double root_f64(double x) { return sqrt(x); }\n"),
];
