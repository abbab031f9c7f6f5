//! What the code is made for, and whether this host can run it.

use super::error::{CpuError, Result};
use inkwell::OptimizationLevel;
use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple};
use pantile_ir::target::Arch;
use std::sync::Once;

/// What decides the shape of the code.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    pub name: String,
    /// instruction set, as Rust's `std::env::consts::ARCH` spells it
    pub isa: String,
    /// processor name for the code generator
    pub cpu: String,
    pub features: Vec<String>,
    /// f32 lanes of one vector
    pub lanes: u32,
    pub vector_bits: u32,
    pub registers: u32,
    /// threads of a virtual warp and group
    pub warp: u32,
    pub group: u32,
    /// candidate register tiles (rows, columns) for f32 products, best first
    pub tiles: Vec<(u32, u32)>,
}

impl Machine {
    pub fn of(arch: &Arch) -> Result<Machine> {
        let simd = &arch.facts.simd;
        let missing = |what: &str| CpuError::Descriptor { arch: arch.name.clone(), what: what.into() };
        let bits = simd.bits.as_ref().ok_or_else(|| missing("simd.bits"))?.value;
        let text = |k: &Option<pantile_ir::target::Known<String>>, what: &str| {
            k.as_ref().map(|k| k.value.clone()).ok_or_else(|| missing(what))
        };
        let number = |k: &Option<pantile_ir::target::Known<u32>>| k.as_ref().map(|k| k.value);
        let f32_row = arch.matrix.iter().find(|m| m.name == "fma.f32");
        Ok(Machine {
            name: arch.name.clone(),
            isa: text(&simd.machine, "simd.machine")?,
            cpu: text(&simd.cpu, "simd.cpu")?,
            features: simd.features.as_ref().map(|k| k.value.clone()).unwrap_or_default(),
            lanes: (bits / 32).max(1),
            vector_bits: bits,
            registers: number(&simd.vector_registers).unwrap_or(16),
            warp: number(&arch.facts.threads.warp_size).unwrap_or(32).max(1),
            group: number(&arch.facts.threads.group_size).unwrap_or(128).max(1),
            tiles: f32_row.map(|m| m.tiles.iter().map(|t| (t[0], t[1])).collect()).unwrap_or_default(),
        })
    }

    /// The code generator for this machine.
    pub fn generator(&self) -> Result<TargetMachine> {
        initialize();
        let triple = if self.isa == std::env::consts::ARCH {
            TargetMachine::get_default_triple()
        } else {
            TargetTriple::create(&format!("{}-unknown-linux-gnu", self.isa))
        };
        let target = Target::from_triple(&triple).map_err(|e| CpuError::Llvm(e.to_string()))?;
        let mut features: Vec<String> = self.features.iter().map(|f| format!("+{f}")).collect();
        if self.vector_bits >= 512 {
            features.push("-prefer-256-bit".into());
        }
        target
            .create_target_machine(
                &triple,
                &self.cpu,
                &features.join(","),
                OptimizationLevel::Aggressive,
                RelocMode::PIC,
                CodeModel::Small,
            )
            .ok_or_else(|| CpuError::Llvm(format!("no code generator for {} {}", self.isa, self.cpu)))
    }

    /// Features that the code uses and the host does not report.
    pub fn check_host(&self, host: &Host) -> Result<()> {
        let fail = |missing: String| Err(CpuError::MissingFeatures { target: self.name.clone(), missing });
        if host.isa != self.isa {
            return fail(format!("the {} instruction set (it is {})", self.isa, host.isa));
        }
        let lacking: Vec<&str> = self
            .features
            .iter()
            .map(String::as_str)
            .filter(|f| !host.features.iter().any(|h| h == f))
            .collect();
        if lacking.is_empty() { Ok(()) } else { fail(lacking.join(", ")) }
    }
}

/// The processor that this process runs on, as LLVM sees it.
#[derive(Clone, Debug)]
pub struct Host {
    pub isa: String,
    pub cpu: String,
    pub features: Vec<String>,
}

impl Host {
    pub fn detect() -> Host {
        initialize();
        let text = |s: inkwell::support::LLVMString| s.to_string_lossy().into_owned();
        let all = text(TargetMachine::get_host_cpu_features());
        Host {
            isa: std::env::consts::ARCH.into(),
            cpu: text(TargetMachine::get_host_cpu_name()),
            features: all.split(',').filter_map(|f| f.strip_prefix('+')).map(String::from).collect(),
        }
    }
}

fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        Target::initialize_x86(&InitializationConfig::default());
        Target::initialize_aarch64(&InitializationConfig::default());
    });
}
