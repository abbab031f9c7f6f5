//! Commands for developers: `cargo xtask check` runs every house rule, `cargo xtask NAME` one of them.
//!
//! A rule looks at files of the repository and gives findings; it changes nothing.

mod docs;
mod files;
mod licences;
mod snapshots;
mod words;

use anyhow::Result;
use std::io::Write;
use std::process::ExitCode;

/// What a rule has to say.
#[derive(Default)]
pub struct Findings {
    /// For people to read; never a failure.
    pub notes: Vec<String>,
    pub faults: Vec<String>,
}

type Rule = fn() -> Result<Findings>;

const RULES: [(&str, &str, Rule); 5] = [
    ("licences", "dependencies have licences that deny.toml allows", licences::check),
    ("snapshots", "no snapshot is pending or belongs to no test", snapshots::check),
    (
        "words",
        "no vendor and no kernel where all are alike, one instruction a prelude function, nothing left undone",
        words::check,
    ),
    ("docs", "commands in README and docs exist", docs::check),
    ("lengths", "how long files are (a report)", files::lengths),
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let chosen: Vec<_> = RULES.iter().filter(|(n, ..)| name == "check" || name == *n).collect();
    if chosen.is_empty() {
        let list = RULES.iter().map(|(n, what, _)| format!("  {n:<10} {what}\n")).collect::<String>();
        say(&format!("cargo xtask check, or one of\n{list}"));
        return ExitCode::from(1);
    }
    let mut faults = 0;
    for (name, _, rule) in chosen {
        match rule() {
            Ok(found) => {
                faults += found.faults.len();
                let state = if found.faults.is_empty() { "ok" } else { "FAULTS" };
                say(&format!("{name}: {state}\n"));
                found.notes.iter().for_each(|n| say(&format!("  {n}\n")));
                found.faults.iter().for_each(|f| say(&format!("  fault: {f}\n")));
            }
            Err(e) => {
                faults += 1;
                say(&format!("{name}: cannot be checked: {e:#}\n"));
            }
        }
    }
    if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn say(text: &str) {
    // a closed pipe is no reason to fail a check
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
