//! `pantile cache`: what built code is kept on disk.

use super::report::{Failure, Session, print, print_json};
use super::{Exit, Outcome};
use pantile::ir::codes;
use pantile::runtime::cache::{Cache, Usage, default_dir, wrong_bound};
use pantile::runtime::io_words;

/// Show or empty the cache of built code.
///
/// Built code is kept in PANTILE_CACHE_DIR, or in the user's cache folder. PANTILE_CACHE_SIZE bounds it, in bytes.
#[derive(clap::Args)]
pub struct Args {
    /// Remove every entry.
    #[arg(long)]
    clear: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Shown {
    dir: String,
    entries: u64,
    bytes: u64,
    bound: u64,
    cleared: bool,
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    let (Some(dir), Some(cache)) = (default_dir(), Cache::open()) else {
        return Err(Failure::new(codes::FILE_MISSING, "there is no place for a cache")
            .help("set PANTILE_CACHE_DIR to a folder"));
    };
    let dir = dir.display().to_string();
    if let Some(wrong) = wrong_bound() {
        session.warn(codes::USAGE, format!("{wrong}; the cache keeps {}", size(cache.bound())));
    }
    cache.usable().map_err(|e| {
        Failure::new(codes::FILE_ACCESS, format!("`{dir}` cannot be the cache: {}", io_words(&e)))
            .help("set PANTILE_CACHE_DIR to a folder that can be written")
    })?;
    let Usage { entries, bytes } = if args.clear {
        cache.clear().map_err(|e| {
            Failure::new(codes::FILE_ACCESS, format!("cannot empty `{dir}`: {}", io_words(&e)))
        })?
    } else {
        cache.usage()
    };
    if args.json {
        print_json(&Shown { dir, entries, bytes, bound: cache.bound(), cleared: args.clear });
    } else {
        let verb = if args.clear { "removed " } else { "" };
        let noun = if entries == 1 { "entry" } else { "entries" };
        print(&format!("{verb}{entries} {noun}, {} of {} in {dir}\n", size(bytes), size(cache.bound())));
    }
    Ok(Exit::Fine)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}
