//! What the host's processor can do, in the names that compilers use.

use crate::error::{Error, ErrorKind, Result};

/// Feature names that the host has.
#[derive(Clone, Debug, Default)]
pub struct HostFeatures {
    names: Vec<&'static str>,
}

macro_rules! detect {
    ($macro:ident: $($name:tt = $llvm:literal),* $(,)?) => {{
        let mut names = Vec::new();
        $(if std::arch::$macro!($name) { names.push($llvm); })*
        names
    }};
}

/// Detects the features that code for the host may ask for.
pub fn host() -> HostFeatures {
    #[cfg(target_arch = "x86_64")]
    let mut names = detect!(is_x86_feature_detected:
        "sse2" = "sse2", "sse4.1" = "sse4.1", "sse4.2" = "sse4.2", "avx" = "avx", "avx2" = "avx2", "fma" = "fma",
        "f16c" = "f16c", "bmi1" = "bmi", "bmi2" = "bmi2", "lzcnt" = "lzcnt", "popcnt" = "popcnt", "movbe" = "movbe",
        "avx512f" = "avx512f", "avx512bw" = "avx512bw", "avx512cd" = "avx512cd", "avx512dq" = "avx512dq",
        "avx512vl" = "avx512vl", "avx512vbmi" = "avx512vbmi", "avx512vnni" = "avx512vnni",
        "avx512bf16" = "avx512bf16", "avx512fp16" = "avx512fp16", "avxvnni" = "avxvnni",
    );
    #[cfg(target_arch = "x86_64")]
    names.extend(matrix_tiles());
    #[cfg(target_arch = "aarch64")]
    let names = detect!(is_aarch64_feature_detected:
        "neon" = "neon", "fp16" = "fullfp16", "bf16" = "bf16", "dotprod" = "dotprod", "i8mm" = "i8mm",
        "sve" = "sve", "sve2" = "sve2",
    );
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let names = Vec::new();
    HostFeatures { names }
}

/// AMX, which the standard library cannot ask for yet; the kernel lists it where it lets programs use it.
#[cfg(target_arch = "x86_64")]
fn matrix_tiles() -> Vec<&'static str> {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|l| l.starts_with("flags")).unwrap_or("");
    let known = [("amx_tile", "amx-tile"), ("amx_bf16", "amx-bf16"), ("amx_int8", "amx-int8")];
    known
        .into_iter()
        .filter(|(flag, _)| flags.split_whitespace().any(|f| f == *flag))
        .map(|(_, name)| name)
        .collect()
}

impl HostFeatures {
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Refuses to run `kernel` where a feature that it was built for is absent.
    pub fn require(&self, kernel: &str, wanted: &[String]) -> Result<()> {
        let missing: Vec<&str> = wanted.iter().map(String::as_str).filter(|w| !self.has(w)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!("`{kernel}` was built for {}, which this processor lacks", missing.join(", "));
        Err(Error::new(ErrorKind::HostFeature, message)
            .help("build it for this host, or run it with `--target interp`"))
    }
}
