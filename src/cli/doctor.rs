//! `pantile doctor`: what this machine and this build can do.

use super::report::{Session, print, print_json, table};
use super::{Exit, Outcome};
use pantile::ir::target::Targets;
use pantile::runtime::cache::{Cache, default_dir, wrong_bound};
use pantile::runtime::{features, io_words};

/// Say what is present on this machine and in this build, and what is missing for what.
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Check {
    what: &'static str,
    /// `ok`, `absent` (something does not work) or `note`.
    state: &'static str,
    found: String,
}

pub fn run(args: &Args, _: &mut Session) -> Outcome {
    let checks = vec![version(), processor(), threads(), native(), cache()];
    let fine = checks.iter().all(|c| c.state != "absent");
    if args.json {
        print_json(&checks);
    } else {
        let rows = checks.into_iter().map(|c| vec![c.what.to_string(), c.state.to_string(), c.found]);
        print(&table(&rows.collect::<Vec<_>>()));
    }
    Ok(if fine { Exit::Fine } else { Exit::Missing })
}

fn version() -> Check {
    Check { what: "pantile", state: "ok", found: env!("CARGO_PKG_VERSION").to_string() }
}

fn processor() -> Check {
    let host = features::host();
    let targets = Targets::shipped();
    let best = targets.best_cpu(std::env::consts::ARCH, |f| host.has(f));
    let names = host.names().join(" ");
    match best {
        Some(arch) => Check { what: "processor", state: "ok", found: format!("{} ({names})", arch.name) },
        None => Check {
            what: "processor",
            state: "absent",
            found: format!("no shipped target fits this {} ({names})", std::env::consts::ARCH),
        },
    }
}

fn threads() -> Check {
    let found = match std::thread::available_parallelism() {
        Ok(n) => n.to_string(),
        Err(e) => format!("cannot be counted ({e}), 1 is used"),
    };
    Check { what: "threads", state: "ok", found }
}

/// Which LLVM this build calls.
fn native() -> Check {
    let (state, found) = match pantile::llvm_version() {
        Some(version) => ("ok", format!("LLVM {version}")),
        None => (
            "absent",
            "this build has no CPU back end: build with the feature `cpu-llvm22` or `cpu-llvm19`".into(),
        ),
    };
    Check { what: "cpu back end", state, found }
}

fn cache() -> Check {
    let (Some(dir), Some(cache)) = (default_dir(), Cache::open()) else {
        return Check {
            what: "cache",
            state: "note",
            found: "no place for one: set PANTILE_CACHE_DIR".into(),
        };
    };
    let dir = dir.display();
    let found = match (cache.writable(), wrong_bound()) {
        (Ok(()), None) => return Check { what: "cache", state: "ok", found: dir.to_string() },
        (Ok(()), Some(wrong)) => format!("{dir}; {wrong}"),
        (Err(e), _) => format!("{dir} cannot be the cache, so nothing built is kept: {}", io_words(&e)),
    };
    Check { what: "cache", state: "note", found }
}
