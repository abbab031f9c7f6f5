//! Which machine an entry is specialised for and runs on.

use super::Device;
use pantile_ir::codes;
use pantile_ir::diag::Diagnostic;
use pantile_ir::interp;
use pantile_ir::span::Span;
use pantile_ir::target::{Arch, Backend, Fact, Targets};

/// How to run, on whatever device.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Orders that a program may not depend on are chosen by it (interpreter).
    pub seed: u64,
    /// How many such orders are tried and compared (interpreter).
    pub orders: u32,
    /// Statements after which the interpreter gives up.
    pub max_steps: u64,
    /// Keep compiled code on disk.
    pub cache: bool,
    /// Worker threads of native code; `None` is one a core.
    pub threads: Option<usize>,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { seed: 1, orders: 1, max_steps: 20_000_000_000, cache: true, threads: None }
    }
}

/// A back end that can run programs here, with the architecture whose facts they see.
#[derive(Clone)]
pub struct Target {
    pub backend: Backend,
    pub arch: Arch,
    /// The pass after which the interpreter takes the program; `None` is the program as written.
    pub after: Option<&'static str>,
}

impl Target {
    /// `cpu`, `cpu:ARCH`, `interp`, or `auto` for the first that works here. `as_arch` is the architecture that the
    /// interpreter takes for its own.
    pub fn choose(target: &str, as_arch: Option<&str>, targets: &Targets) -> Result<Target, Diagnostic> {
        match (target, as_arch) {
            ("auto", None) => Target::cpu(targets).or_else(|_| Target::interp(None, targets)),
            ("cpu", None) => Target::cpu(targets),
            ("interp", _) => Target::interp(as_arch, targets),
            (_, Some(_)) => {
                let message = format!("target `{target}` takes no other architecture");
                Err(Diagnostic::error(codes::USAGE, Span::default(), message)
                    .help("`--as` goes with `interp`"))
            }
            (_, None) => {
                let arch = targets.arch_for_target(target)?.clone();
                match arch.backend {
                    Backend::Interp | Backend::Cpu => Target::ready(arch),
                    other => Err(absent(&format!("this build cannot run code for `{}`", other.name())).help(
                        "`--target interp` runs every kernel, `--target cpu` compiles it for this machine",
                    )),
                }
            }
        }
    }

    fn interp(as_arch: Option<&str>, targets: &Targets) -> Result<Target, Diagnostic> {
        let arch = targets.arch_for_target(as_arch.unwrap_or("interp"))?.clone();
        Ok(Target { backend: Backend::Interp, arch, after: None })
    }

    /// The richest processor architecture that this machine has.
    fn cpu(targets: &Targets) -> Result<Target, Diagnostic> {
        let host = host_features();
        let found = targets.best_cpu(std::env::consts::ARCH, |f| host.iter().any(|h| h == f));
        match found {
            Some(arch) => Target::ready(arch.clone()),
            None => {
                Err(absent("no processor target fits this machine")
                    .help("`pantile doctor` shows what it has"))
            }
        }
    }

    fn ready(arch: Arch) -> Result<Target, Diagnostic> {
        if arch.backend == Backend::Cpu && crate::llvm_version().is_none() {
            return Err(absent("this build has no CPU back end")
                .help("build with the feature `cpu-llvm22` or `cpu-llvm19`, or use `--target interp`"));
        }
        Ok(Target { backend: arch.backend, arch, after: None })
    }

    /// The same target, running what a pass leaves: only the interpreter runs every stage.
    pub fn after(mut self, pass: Option<&str>) -> Result<Target, Diagnostic> {
        let Some(pass) = pass else { return Ok(self) };
        if self.backend != Backend::Interp {
            let message = format!("`--after` is for the interpreter, but this runs on {}", self.describe());
            return Err(Diagnostic::error(codes::USAGE, Span::default(), message)
                .help("add `--target interp`, and `--as ARCH` for the architecture whose passes run"));
        }
        self.after = Some(super::passes::find_run(pass, &self.arch)?.name);
        Ok(self)
    }

    /// The program that this target runs, made out of the one that was written.
    pub fn prepare(
        &self,
        compiled: super::Compiled,
    ) -> Result<super::Compiled, pantile_ir::diag::Diagnostics> {
        let Some(pass) = self.after else { return Ok(compiled) };
        let program = super::passes::until(compiled.program, &self.arch, pass)?;
        Ok(super::Compiled { program, ..compiled })
    }

    /// The device to run on.
    pub fn device(&self, options: &RunOptions) -> Result<Device, Diagnostic> {
        match self.backend {
            #[cfg(feature = "cpu")]
            Backend::Cpu => Ok(Device::Cpu(super::cpu::Options {
                arch: self.arch.clone(),
                cache: options.cache,
                threads: options.threads,
            })),
            Backend::Interp => {
                let facts = &self.arch.facts.threads;
                let number = |f: &Fact<u32>, other| f.as_ref().map_or(other, |k| k.value);
                Ok(Device::Interp(interp::Options {
                    seed: options.seed,
                    orders: options.orders.max(1),
                    max_steps: options.max_steps,
                    warp: number(&facts.warp_size, 32),
                    group: number(&facts.group_size, 128),
                    ..interp::Options::default()
                }))
            }
            other => Err(absent(&format!("this build cannot run code for `{}`", other.name()))),
        }
    }

    /// `cpu (x86-64-v4)`
    pub fn describe(&self) -> String {
        format!("{} ({})", self.backend.name(), self.arch.name)
    }
}

/// As the compiler names them where there is one, else as the standard library finds them.
fn host_features() -> Vec<String> {
    #[cfg(feature = "cpu")]
    return pantile_backends::cpu::Host::detect().features;
    #[cfg(not(feature = "cpu"))]
    pantile_runtime::features::host().names().iter().map(|n| n.to_string()).collect()
}

pub(super) fn absent(message: &str) -> Diagnostic {
    Diagnostic::error(codes::TARGET_ABSENT, Span::default(), message)
}
