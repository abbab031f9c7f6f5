//! Compilers of vendors where there are any, and what is said where there are none.
#![cfg(feature = "vendor-jit")]
#![allow(clippy::print_stdout)]

use pantile_runtime::ErrorKind;
use pantile_runtime::vendor::{Mcc, Nvrtc, VendorFacts, mcc};

/// A sum over a warp, one wide load, one atomic in shared memory.
const SOURCE: &str = r#"
extern "C" __global__ void __launch_bounds__(64) sums(const float4* __restrict__ x, float* __restrict__ y) {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    float4 v = x[blockIdx.x * 64 + threadIdx.x];
    float s = v.x + v.y + v.z + v.w;
    for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, s);
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = total;
}
"#;

fn nvrtc() -> Option<&'static Nvrtc> {
    match Nvrtc::find() {
        Ok(found) => Some(found),
        Err(e) if std::env::var_os("PANTILE_NEED_VENDOR").is_some_and(|v| v == "1") => panic!("{e}"),
        Err(e) => {
            println!("skipped: {e}");
            None
        }
    }
}

#[test]
fn sources_become_code_and_facts() {
    let Some(nvrtc) = nvrtc() else { return };
    for arch in ["sm_80", "sm_90a", "compute_90"] {
        let made = nvrtc.compile(SOURCE, "sums.cu", arch, &[]).unwrap();
        let facts = VendorFacts::parse(&made.log, &made.ptx);
        let [sums] = &facts.entries[..] else { panic!("{facts}") };
        assert_eq!(sums.name, "sums");
        assert_eq!(sums.count("global load 128"), Some(1), "{facts}");
        assert_eq!(sums.count("shuffle"), Some(5), "{facts}");
        assert_eq!(sums.count("block barrier"), Some(2), "{facts}");
        assert_eq!(sums.count("shared atomic"), Some(1), "{facts}");
        match arch {
            "compute_90" => assert!(made.cubin.is_empty() && sums.registers.is_none()),
            _ => {
                assert_eq!(made.cubin[..4], *b"\x7fELF");
                assert_eq!((sums.shared, sums.spill_stores), (Some(4), Some(0)), "{}", made.log);
                assert!(sums.registers.is_some_and(|r| r > 4), "{}", made.log);
            }
        }
    }
}

#[test]
fn refusals_carry_the_compilers_words() {
    let Some(nvrtc) = nvrtc() else { return };
    let refused = |source: &str, arch: &str| nvrtc.compile(source, "wrong.cu", arch, &[]).unwrap_err();
    let e = refused("__global__ void k() { undeclared = 1; }", "sm_80");
    assert_eq!(e.kind, ErrorKind::Compiler);
    assert!(e.message.contains("wrong.cu(1)") && e.message.contains("undeclared"), "{e}");
    assert!(refused(SOURCE, "sm_1").message.contains("sm_1"));
    assert_eq!(refused("a\0b", "sm_80").message, "the source holds a zero byte");
}

#[test]
fn what_is_no_compiler_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libnvrtc.so.13");
    std::fs::write(&file, "no library").unwrap();
    for path in [file, folder.path().join("libnvrtc.so.12")] {
        let e = Nvrtc::open(&path).unwrap_err();
        assert_eq!(e.kind, ErrorKind::Library);
        assert!(e.message.contains("cannot be loaded") && e.help.is_some(), "{e}");
    }
}

#[test]
fn the_other_compiler_compiles_or_is_named() {
    match Mcc::find() {
        Ok(found) => {
            let made = found.compile(SOURCE, "sums.mu", "mp_31", &[], mcc::LIMIT).unwrap();
            assert!(!made.image.is_empty());
        }
        Err(e) => {
            assert_eq!(e.kind, ErrorKind::Library);
            assert!(e.message.contains("mcc") && e.help.is_some(), "{e}");
        }
    }
}

/// A program in the compiler's place: what it is told, and what its refusal becomes.
#[cfg(unix)]
#[test]
fn the_other_compiler_is_told_language_and_architecture() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let fake = folder.path().join("mcc");
    let script = "#!/bin/sh\ncase \"$*\" in *--wrong*) for f in \"$@\"; do :; done; echo \"$f:1: bad\"; exit 1;; esac\n\
                  case \"$*\" in *--slow*) sleep 60;; esac\n\
                  out=; for a in \"$@\"; do [ \"$out\" = next ] && out=$a && break; [ \"$a\" = -o ] && out=next; done\n\
                  echo \"$*\" >\"$out\"\n";
    std::fs::write(&fake, script).unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let compiler = Mcc::at(&fake);
    let compile = |option: &str, limit| compiler.compile(SOURCE, "sums.mu", "mp_31", &[option], limit);
    let told = String::from_utf8(compile("-O3", mcc::LIMIT).unwrap().image).unwrap();
    for word in ["-x musa", "--offload-arch=mp_31", "--cuda-device-only", "-O3"] {
        assert!(told.contains(word), "{told}");
    }
    let e = compile("--wrong", mcc::LIMIT).unwrap_err();
    assert_eq!(e.kind, ErrorKind::Compiler);
    assert!(e.message.contains("sums.mu:1: bad"), "{e}");
    let e = compile("--slow", std::time::Duration::from_millis(200)).unwrap_err();
    assert!(e.message.contains("had not ended"), "{e}");
}
