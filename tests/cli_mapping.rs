//! `pantile explain FILE::NAME`, `pantile watch`, and what `check --passes` says of meanings.

mod cli_support;

use cli_support::{Place, library};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn how_a_kernel_is_mapped() {
    let p = Place::new();
    let gemm = format!("{}::gemm", library("gemm.tile"));
    let said = p.fine(&[
        "explain",
        &gemm,
        "-p",
        "T=f16",
        "-p",
        "BM=64",
        "-p",
        "BN=16",
        "-p",
        "BK=32",
        "--target",
        "cuda:sm_80",
    ]);
    for words in [
        "for sm_80: ",
        "variant(c)",
        "not mma",
        "shared memory: ",
        "bank conflicts: ",
        "barriers: ",
        "(estimate)",
    ] {
        assert!(said.contains(words), "no `{words}` in\n{said}");
    }
    assert!(said.contains("of the warp") && said.contains("is written before and read after"), "{said}");
    let two = p.fine(&[
        "explain",
        &gemm,
        "-p",
        "T=f16",
        "-p",
        "BM=64",
        "-p",
        "BN=16",
        "-p",
        "BK=32",
        "--target",
        "sm_80,mp_31",
        "--json",
    ]);
    let rows: Vec<serde_json::Value> = two.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let targets: Vec<&str> = rows.iter().filter_map(|r| r["target"].as_str()).collect();
    assert_eq!(targets, ["sm_80", "mp_31"]);
    for row in &rows {
        let end = |s: &serde_json::Value| s["offset"].as_u64().unwrap() + s["bytes"].as_u64().unwrap();
        let most = row["shared"].as_array().unwrap().iter().map(end).max().unwrap();
        assert_eq!(row["shared_bytes"].as_u64().unwrap(), most);
        // the accumulator alone: 64 x 16 words, over the threads
        assert!(row["registers_estimate"].as_u64().unwrap() > 1024 / row["threads"].as_u64().unwrap());
        let mut names: Vec<&str> =
            row["shared"].as_array().unwrap().iter().filter_map(|s| s["name"].as_str()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a buffer is listed twice");
    }
}

#[test]
fn slow_paths_are_told() {
    let p = Place::new();
    p.write(
        "apart.tile",
        "kernel apart(X: f32[N, K] strides (1, ldx), Y: out f32[N, K]) {\n    grid (ceildiv(N, 8), ceildiv(K, 64)) as (n, k)\n    \
         Y[n*8 +: 8, k*64 +: 64] = X[n*8 +: 8, k*64 +: 64]\n}\n",
    );
    let said = p.fine(&["explain", "apart.tile", "--target", "sm_80"]);
    assert!(said.contains("`X` is read one element at a time: it has strides of its own"), "{said}");
    let sum = |threads: &str, name: &str| {
        let text = SUM.replace("threads 32", &format!("threads {threads}"));
        p.write(name, &text);
        p.fine(&["explain", name, "--target", "sm_80"])
    };
    assert!(!sum("32", "one.tile").contains("through shared memory"));
    let said = sum("64", "two.tile");
    assert!(said.contains("folds over threads go through shared memory (`"), "{said}");
    let gemv = format!("{}::gemv_allreduce", library("gemv.tile"));
    assert!(
        !p.fine(&["explain", &gemv, "-p", "T=f16", "--target", "sm_80"]).contains("`B` is read one element")
    );
}

#[test]
fn explain_wants_a_rule_or_a_kernel_and_its_machine() {
    let p = Place::new();
    let gemm = format!("{}::gemm", library("gemm.tile"));
    p.fails(1, &["for which machine?"], &["explain", &gemm, "-p", "T=f16"]);
    p.fails(3, &["P0913", "no machine of threads"], &["explain", &gemm, "-p", "T=f16", "--target", "cpu"]);
    p.fails(1, &["go with a kernel"], &["explain", "P0302", "--json"]);
    p.fails(1, &["a code looks like P0302"], &["explain", "rule"]);
    p.fails(1, &["no/such.tile"], &["explain", "no/such.tile", "--target", "sm_80"]);
    assert!(p.fine(&["explain", "767"]).contains("P0767"));
}

#[test]
fn passes_keep_what_tests_compute() {
    let p = Place::new();
    p.write(
        "twice.tile",
        "kernel twice(X: f32[N], Y: out f32[N]) {\n    grid ceildiv(N, 8) as i\n    Y[i*8 +: 8] = X[i*8 +: 8] * 2\n}\n\n\
         kernel idle(X: f32[N], Y: out f32[N]) {\n    grid N as i\n    Y[i] = X[i]\n}\n\n\
         test twice {\n    kernel twice\n    dims N in [1, 2, 3, 8, 9, 17]\n    X = normal(seed 1)\n    Y == widen\n}\n",
    );
    let check = |rest: &[&str]| p.fine(&[&["check", "--target", "sm_80", "--passes"], rest].concat());
    assert!(
        check(&["twice.tile"]).contains("fine for sm_80; 3 cases of tests give the same after every pass\n")
    );
    assert!(check(&["twice.tile", "--cases", "1"]).contains("; 1 case of tests gives the same"));
    assert!(check(&["twice.tile", "--all-cases"]).contains("; 6 cases"));
    assert!(check(&["twice.tile::twice"]).contains("; 3 cases"));
    assert!(!check(&["twice.tile::idle"]).contains("case"));
    assert!(check(&["twice.tile", "--json"]).contains("\"cases\":3,\"cases_failed\":0,\"skipped\":[]"));
    let short = check(&["twice.tile", "--max-steps", "2"]);
    assert!(short.contains("fine for sm_80; 3 were skipped\n"), "{short}");
    assert!(
        short.contains("  skipped `twice` (3 cases) for sm_80: as written it runs more than 2 statements\n"),
        "{short}"
    );
    p.fails(1, &["--passes"], &["check", "twice.tile", "--all-cases"]);
}

const SUM: &str = "kernel total(X: f32[N], Y: out f32[1]) {\n    threads 32 as t\n    let s = allreduce(add, X[t] or 0, over = t)\n    if t == 0 { Y[0] = s }\n}\n";

/// Lines that a program says, each within the time.
struct Lines(mpsc::Receiver<String>);

impl Lines {
    fn until(&self, words: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match self.0.recv_timeout(Duration::from_secs(15)) {
                Ok(line) => {
                    let found = line.contains(words);
                    seen.push(line);
                    if found {
                        return seen;
                    }
                }
                Err(_) => panic!("`{words}` was never said, only {seen:#?}"),
            }
        }
    }
}

#[test]
fn a_save_is_seen() {
    let p = Place::new();
    p.write("total.tile", SUM);
    let mut command = Command::new(env!("CARGO_BIN_EXE_pantile"));
    command.current_dir(p.path("")).env("NO_COLOR", "1").env("PANTILE_NVRTC", p.path("nowhere"));
    command.args(["watch", "total.tile", "--target", "sm_80", "--every", "20", "-o", "out"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (send, receive) = mpsc::channel();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let also = send.clone();
    std::thread::spawn(move || {
        BufReader::new(out).lines().map_while(Result::ok).try_for_each(|l| send.send(l))
    });
    std::thread::spawn(move || {
        BufReader::new(err).lines().map_while(Result::ok).try_for_each(|l| also.send(l))
    });
    let lines = Lines(receive);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        lines.until("shuffles: 5");
        lines.until("stack bytes");
        p.write("total.tile", &SUM.replace("threads 32", "threads 128"));
        lines.until("-threads: 32");
        lines.until("+threads: 128");
        p.write("total.tile", "kernel total(");
        lines.until("error[P01");
        p.write("total.tile", &SUM.replace("threads 32", "threads 64"));
        lines.until("+threads: 64");
    }));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(result.is_ok());
    assert!(p.read("out/total.cu").contains("__global__"));
}

#[test]
fn watch_needs_a_file_and_a_place() {
    let p = Place::new();
    p.fails(1, &["P0901", "there is no file `no.tile`"], &["watch", "no.tile", "--target", "sm_80"]);
    p.write("total.tile", SUM);
    p.write("plain", "");
    p.fails(1, &["`plain` is a file, not a folder"], &["watch", "total.tile", "-t", "sm_80", "-o", "plain"]);
    p.fails(1, &["--target"], &["watch", "total.tile"]);
}

#[test]
fn a_written_barrier_that_orders_nothing_is_said_to_be_the_texts() {
    let p = Place::new();
    p.write(
        "lone.tile",
        "kernel lone(X: f32[N], Y: out f32[N]) {\n    grid N as b\n    threads 32 as t\n    barrier\n    \
         if t == 0 { Y[b] = X[b] }\n}\n",
    );
    let text = p.fine(&["explain", "lone.tile::lone", "--target", "sm_80"]);
    assert!(text.contains("the text has it") && !text.contains("step of the loop"), "{text}");
}
