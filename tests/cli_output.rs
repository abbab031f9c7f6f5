//! Results that cannot be written: exit codes stay true, and nothing half-written is left.
#![cfg(target_os = "linux")] // `/dev/full`, and signals

mod cli_support;

use cli_support::Place;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BAD: &str = "\
kernel double(X: f32[N], Y: out f32[N]) {
    grid ceildiv(N, 32) as b
    Y[b*32 +: 32] = X[b*32 +: 32] * 2
}

kernel triple(X: f32[N], Y: out f32[N]) {
    grid ceildiv(N, 32) as b
    Y[b*32 +: 32] = X[b*32 +: 32] * 3
}

test wrong { kernel double; dims N in [7, 33]; X = normal(seed 1); Y ~ triple(X) rtol 1e-5 }
test right { kernel double; dims N in [7, 33]; X = normal(seed 1); Y ~ widen rtol 1e-5 }
";

fn command(p: &Place, args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_pantile"));
    c.current_dir(p.path(".")).args(args).env("PANTILE_CACHE_DIR", p.path("cache")).env("NO_COLOR", "1");
    c
}

#[test]
fn a_full_disk_is_no_success() {
    let p = Place::new();
    p.write("bad.tile", BAD);
    let cases: &[(i32, &[&str])] = &[
        (2, &["test", "bad.tile", "--target", "interp"]),
        (1, &["test", "bad.tile", "--target", "interp", "--only", "right", "--json"]),
        (1, &["check", "bad.tile", "--target", "interp"]),
        (1, &["run", "bad.tile::double", "X=iota:4", "--target", "interp", "--json"]),
        (2, &["run", "bad.tile::double", "X=normal:4", "--target", "interp", "--ref", "triple"]),
        (1, &["emit", "bad.tile::double", "--target", "cpu", "--stage", "tile"]),
        (1, &["targets"]),
        (1, &["explain", "P0302"]),
        (1, &["new", "gemm", "-"]),
        (1, &["--help"]),
        (1, &["--version"]),
    ];
    for (status, args) in cases {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let said = command(&p, args).stdout(full).output().unwrap();
        let err = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(*status), "{args:?}\n{err}");
        assert_eq!(err.matches("P0902").count(), 1, "{args:?}\n{err}");
        assert!(err.contains("cannot write to standard output: no space is left"), "{args:?}\n{err}");
    }
}

#[test]
fn a_reader_that_has_gone_hides_nothing() {
    let p = Place::new();
    p.write("bad.tile", BAD);
    for (status, args) in [
        (2, &["test", "bad.tile", "--target", "interp"][..]),
        (0, &["test", "bad.tile", "--target", "interp", "--only", "right"]),
        (0, &["explain"]),
        (0, &["--help"]),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let said = command(&p, args).stdout(writer).output().unwrap();
        assert_eq!(said.status.code(), Some(status), "{args:?}");
        assert_eq!(String::from_utf8(said.stderr).unwrap(), "", "{args:?}");
    }
}

/// Commands that write files, where the system takes no byte more.
#[test]
fn no_room_leaves_nothing() {
    let p = Place::new();
    p.write("bad.tile", BAD);
    for args in [
        "new gemm",
        "emit bad.tile::double --target cpu --stage tile -o out.tile",
        "run bad.tile::double X=iota:4 Y=@y.npy --target interp",
    ] {
        let script = format!("trap '' 25; ulimit -f 0; exec {} {args}", env!("CARGO_BIN_EXE_pantile"));
        let mut sh = Command::new("sh");
        sh.args(["-c", &script]).current_dir(p.path(".")).env("PANTILE_CACHE_DIR", p.path("cache"));
        let said = sh.output().unwrap();
        let err = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(1), "{args}\n{err}");
        assert!(err.contains("P0902") && err.contains("cannot write"), "{args}\n{err}");
        assert_eq!(p.files(), ["bad.tile"], "{args}");
    }
}

#[cfg(feature = "cpu")]
#[test]
fn a_signal_leaves_nothing_half_written() {
    use std::os::unix::process::ExitStatusExt;
    let p = Place::new();
    p.write("one.tile", "kernel one(Y: inout f32[N]) {\n    grid 1 as b\n    Y[0] = 1.0\n}\n");
    for (signal, number) in [("INT", 2), ("TERM", 15)] {
        let args = ["run", "one.tile", "Y=zeros:40000000,@y.npz", "--target", "cpu"];
        let mut child = command(&p, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let part = p.path(&format!("y.npz.{}.part", child.id()));
        let start = Instant::now();
        // made once before the work, to try the folder, and then to stay
        while !std::fs::metadata(&part).is_ok_and(|m| m.len() > 0) {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it could be stopped");
            assert!(start.elapsed() < Duration::from_secs(300), "nothing is written");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(
            Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap().success()
        );
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert_eq!(p.files(), ["one.tile"], "after {signal}");
    }
}
