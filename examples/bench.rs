//! `./x bench`: how fast the generated code and the compiler are.
//!
//! Speed of code is a ratio to OpenBLAS, the two in turn in one process on one thread; times of the compiler are
//! medians. Nothing here is a test: a noisy machine makes other numbers, not failures.

#![allow(clippy::print_stdout)]

use pantile::driver::{self, Value, cpu};
use pantile::ir::elab::{Library, Request};
use pantile::ir::span::Sources;
use pantile::ir::target::Targets;
use pantile::ir::{print, text, verify};
use pantile::runtime::HostTensor;
use pantile::runtime::random::{Distribution, Recipe};
use pantile_abi::DType;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

type Sgemm = unsafe extern "C" fn(
    i32,
    i32,
    i32,
    i32,
    i32,
    i32,
    f32,
    *const f32,
    i32,
    *const f32,
    i32,
    f32,
    *mut f32,
    i32,
);

fn main() {
    let only = std::env::args().nth(1);
    let wanted = |name: &str| only.as_deref().is_none_or(|o| o == name);
    if wanted("compiler") {
        compiler();
    }
    if wanted("gemm") {
        gemm();
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn time(runs: usize, mut f: impl FnMut()) -> f64 {
    let one = |_| {
        let start = Instant::now();
        f();
        start.elapsed().as_secs_f64()
    };
    median((0..runs).map(one).collect())
}

/// Parse + elaborate + verify + print of the largest library kernels, and of programs of doubled size.
fn compiler() {
    println!("compiler: parse, specialise, verify, print (median of 31)");
    let targets = Targets::shipped();
    let arch = targets.arch("reference").expect("the reference architecture");
    let largest = [
        (
            "kernels/attention.tile",
            Request::new("attention")
                .with_type("T", DType::F16)
                .with_const("D", 64)
                .with_flag("CAUSAL", true),
        ),
        ("kernels/gemm.tile", Request::new("gemm_register").with_type("T", DType::F32)),
        (
            "kernels/flash_decode.tile",
            Request::new("flash_decode")
                .with_type("T", DType::F16)
                .with_const("D", 64)
                .with_const("PAGE", 16),
        ),
    ];
    for (file, request) in largest {
        let whole = time(31, || {
            let mut sources = Sources::default();
            let library = driver::load(Path::new(file), &[], &mut sources).expect("a library kernel");
            let done = driver::compile(&library, &request, arch, &mut sources).expect("a right kernel");
            std::hint::black_box(print::print(&done.program));
        });
        let mut sources = Sources::default();
        let library = driver::load(Path::new(file), &[], &mut sources).expect("a library kernel");
        let done = driver::compile(&library, &request, arch, &mut sources).expect("a right kernel");
        let printed = print::print(&done.program);
        // the specialised kernel alone: what a cache key or a dump costs
        let own = time(31, || {
            let mut sources = Sources::default();
            let file = sources.add("kernel.tile", None, printed.as_str());
            let (tree, _) = text::parse(file, &sources);
            std::hint::black_box(tree);
            std::hint::black_box(verify::verify(&done.program, arch).is_ok());
            std::hint::black_box(print::print(&done.program));
        });
        println!(
            "  {:<24} file to program {:6.2} ms   parse + verify + print {:6.2} ms",
            request.entry,
            whole * 1e3,
            own * 1e3
        );
    }
    let mut before = None;
    for n in [1usize, 2, 4, 8] {
        let source = long_kernel(n * 60);
        let t = time(15, || {
            let mut sources = Sources::default();
            let (library, _) = Library::from_text("long.tile", &source, &mut sources);
            let done =
                driver::compile(&library, &Request::new("long"), arch, &mut sources).expect("a right kernel");
            std::hint::black_box(print::print(&done.program));
        });
        let growth = before.map_or(String::new(), |b: f64| format!("   x {:.2}", t / b));
        println!("  {:>5} statements {:8.2} ms{growth}", n * 60, t * 1e3);
        before = Some(t);
    }
}

fn long_kernel(statements: usize) -> String {
    let mut body = String::new();
    for i in 0..statements {
        let _ = writeln!(body, "    let t{i} = x * {}.5 + X[r, {}]", i % 7, i % 64);
        let _ = writeln!(body, "    Y[r, :] = t{i}");
    }
    format!(
        "kernel long(X: f32[R, 64], Y: inout f32[R, 64]) {{\n    grid R as r\n    let x = X[r, :]\n{body}}}\n"
    )
}

/// f32 products on one thread beside OpenBLAS.
fn gemm() {
    let Some((_library, sgemm)) = openblas() else {
        println!("gemm: skipped, libopenblas.so.0 is not there (apt-get install libopenblas0-pthread)");
        return;
    };
    println!(
        "f32 gemm, one thread, in turn with OpenBLAS, random normal data (median of 9; ratio = theirs / ours)"
    );
    let targets = Targets::shipped();
    let arch = cpu::host_arch(&targets).expect("a CPU that the target file knows").clone();
    for (m, n, k) in [(1024, 1024, 1024), (512, 512, 512), (1000, 777, 1023), (1023, 1023, 1023)] {
        let mut sources = Sources::default();
        let library =
            driver::load(Path::new("kernels/gemm.tile"), &[], &mut sources).expect("the gemm kernel");
        let request = Request::new("gemm").with_type("T", DType::F32);
        let compiled = driver::compile(&library, &request, &arch, &mut sources).expect("a right kernel");
        let options = cpu::Options { arch: arch.clone(), cache: false, threads: Some(1) };
        let loaded = cpu::load(&compiled, &options).expect("code for this machine");
        let make = |seed, shape: &[usize]| {
            Recipe::new(Distribution::Normal, seed).make(DType::F32, shape, None).expect("memory")
        };
        let (a, b) = (make(1, &[m, k]), make(2, &[k, n]));
        let mut theirs = HostTensor::zeros(DType::F32, &[m, n], None).expect("memory");
        let (pa, pb, pc) = (a.bytes().as_ptr(), b.bytes().as_ptr(), theirs.bytes_mut().as_mut_ptr());
        let c = HostTensor::zeros(DType::F32, &[m, n], None).expect("memory");
        let mut args = vec![
            ("A".to_string(), Value::Tensor(make(1, &[m, k]))),
            ("B".to_string(), Value::Tensor(make(2, &[k, n]))),
            ("C".to_string(), Value::Tensor(c)),
        ];
        let (mut ours, mut blas) = (Vec::new(), Vec::new());
        for round in 0..11 {
            let t = loaded.run(&mut args, Some(1)).unwrap_or_else(|_| panic!("the kernel runs"));
            let start = Instant::now();
            // SAFETY: row-major arrays of exactly these sizes.
            unsafe {
                sgemm(
                    101,
                    111,
                    111,
                    m as i32,
                    n as i32,
                    k as i32,
                    1.0,
                    pa.cast(),
                    k as i32,
                    pb.cast(),
                    n as i32,
                    0.0,
                    pc.cast(),
                    n as i32,
                )
            };
            if round >= 2 {
                ours.push(t);
                blas.push(start.elapsed().as_secs_f64());
            }
        }
        let (ours, blas) = (median(ours), median(blas));
        let rate = |t: f64| 2.0 * (m * n * k) as f64 / t / 1e9;
        println!(
            "  {:<16} ours {:6.1} GFLOP/s   OpenBLAS {:6.1} GFLOP/s   ratio {:.2}",
            format!("{m}x{n}x{k}"),
            rate(ours),
            rate(blas),
            blas / ours
        );
    }
}

fn openblas() -> Option<(libloading::Library, Sgemm)> {
    // a processor newer than the library falls back to its slowest code, which would flatter us
    #[cfg(target_arch = "x86_64")]
    if std::env::var_os("OPENBLAS_CORETYPE").is_none() && std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("OPENBLAS_CORETYPE", "SkylakeX") };
    }
    // SAFETY: a plain C library whose initialisers have no requirements; the signatures are those of its header.
    unsafe {
        let library = libloading::Library::new("libopenblas.so.0").ok()?;
        if let Ok(set) = library.get::<unsafe extern "C" fn(i32)>(b"openblas_set_num_threads") {
            set(1);
        }
        if let Ok(core) =
            library.get::<unsafe extern "C" fn() -> *const std::ffi::c_char>(b"openblas_get_corename")
        {
            println!("  OpenBLAS runs its {} code", std::ffi::CStr::from_ptr(core()).to_string_lossy());
        }
        let sgemm = *library.get::<Sgemm>(b"cblas_sgemm").ok()?;
        Some((library, sgemm))
    }
}
