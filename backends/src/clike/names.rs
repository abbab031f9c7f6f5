//! Names of the text, made fit for C: no keyword, no built-in, no name of the prelude, none that an outer scope holds.

use std::collections::HashSet;

/// Words that C++, the devices' languages or their headers take.
const TAKEN: &str = "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t \
    class compl const const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit \
    export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr \
    operator or or_eq private protected public register reinterpret_cast return short signed sizeof static \
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union \
    unsigned using virtual void volatile wchar_t while xor xor_eq char8_t concept requires co_await co_return co_yield \
    consteval constinit half half2 int2 int3 int4 uint uint2 uint3 uint4 char4 uchar4 float2 float3 float4 double2 \
    longlong4 ulonglong4 dim3 threadIdx blockIdx blockDim gridDim warpSize printf assert malloc free memcpy memset \
    exp exp2 expf exp2f log log2 logf log2f sqrt sqrtf rsqrt rsqrtf tanh tanhf sin sinf cos cosf erf erff pow powf fma \
    fmaf floor floorf ceil ceilf rint rintf round abs fabs fabsf min max fmin fmax main std arena u8 i8 u16 i16 u32 \
    i32 u64 i64 f16 bf16 f32 f64 f8e4m3 f8e5m2 y0 y1 yn j0 j1 jn signbit isnan isinf nan clock trap tid NULL index";

pub struct Names {
    reserved: HashSet<String>,
    scopes: Vec<HashSet<String>>,
}

impl Names {
    pub fn new() -> Names {
        let reserved = TAKEN.split_whitespace().map(str::to_string).collect();
        Names { reserved, scopes: vec![HashSet::new()] }
    }

    /// Names for inside a function: all that these hold are out of reach.
    pub fn below(&self) -> Names {
        Names { reserved: self.reserved.clone(), scopes: self.scopes.clone() }
    }

    pub fn open(&mut self) {
        self.scopes.push(HashSet::new());
    }

    pub fn close(&mut self) {
        self.scopes.pop();
    }

    /// A name near `wanted` that nothing in sight has, taken in the innermost scope.
    pub fn take(&mut self, wanted: &str) -> String {
        let base = self.fit(wanted);
        let seen = |n: &str| self.scopes.iter().any(|s| s.contains(n));
        let mut name = base.clone();
        let mut number = 2;
        while seen(&name) {
            name = format!("{base}_{number}");
            number += 1;
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone());
        }
        name
    }

    /// Prelude functions end in a type or hold two words; a single trailing `_` keeps users' names apart from them.
    fn fit(&self, wanted: &str) -> String {
        let clean: String = wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let clean = clean.trim_matches('_').replace("__", "_");
        let clean = match clean.chars().next() {
            None => "v".to_string(),
            Some(c) if c.is_ascii_digit() => format!("v{clean}"),
            Some(_) => clean,
        };
        if self.reserved.contains(&clean) || super::prelude::may_define(&clean) {
            format!("{clean}_")
        } else {
            clean
        }
    }
}

impl Default for Names {
    fn default() -> Names {
        Names::new()
    }
}
