//! The command line: arguments in, one command, an exit code out.
//!
//! A command is a module with an `Args` struct and a `run` function. It gives an [`Exit`], or a [`Failure`] which is
//! reported here; nothing else prints errors or ends the process (but [`stop`], on a signal).

mod build;
mod cache;
mod check;
mod doctor;
mod emit;
mod entry;
mod explain;
mod fmt;
mod new;
mod report;
mod run;
mod stop;
mod targets;
mod test;
mod unified;
mod watch;

use clap::{Parser, Subcommand};
use report::{Failure, Session};
use std::process::ExitCode;

/// Tile kernels written once, compiled for CPUs and GPUs.
#[derive(Parser)]
#[command(name = "pantile", version, max_term_width = 100, after_help = EXAMPLES, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    report: report::Options,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  pantile new gemm                         a first kernel in gemm.tile
  pantile check gemm.tile                  types, shapes, races, limits, for every target
  pantile test gemm.tile                   its tests, on this machine
  pantile run gemm.tile::gemm A=normal:1000x300 B=normal:300x500 C=@c.npy -p T=f32 --check
  pantile targets sm_90a                   everything known of an architecture, with sources

Exit codes: 0 fine, 1 a mistake in input or usage, 2 a wrong result, 3 a device or library is missing.";

#[derive(Subcommand)]
enum Command {
    New(new::Args),
    Check(check::Args),
    Fmt(fmt::Args),
    Run(Box<run::Args>),
    Test(test::Args),
    Emit(emit::Args),
    Build(build::Args),
    Watch(watch::Args),
    Explain(Box<explain::Args>),
    Targets(targets::Args),
    Doctor(doctor::Args),
    Cache(cache::Args),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    Fine = 0,
    Mistake = 1,
    WrongResult = 2,
    Missing = 3,
}

pub type Outcome = Result<Exit, Failure>;

pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return ended(report::usage(&e), &Session::default()),
    };
    stop::on_signals();
    let mut session = Session::new(&cli.report);
    let outcome = match cli.command {
        Command::New(args) => new::run(&args, &mut session),
        Command::Check(args) => check::run(&args, &mut session),
        Command::Run(args) => run::run(&args, &mut session),
        Command::Test(args) => test::run(&args, &mut session),
        Command::Build(args) => build::run(&args, &mut session),
        Command::Emit(args) => emit::run(&args, &mut session),
        Command::Fmt(args) => fmt::run(&args, &mut session),
        Command::Watch(args) => watch::run(&args, &mut session),
        Command::Explain(args) => explain::run(&args, &mut session),
        Command::Targets(args) => targets::run(&args, &mut session),
        Command::Doctor(args) => doctor::run(&args, &mut session),
        Command::Cache(args) => cache::run(&args, &mut session),
    };
    let exit = outcome.unwrap_or_else(|failure| session.report(&failure));
    ended(exit, &session)
}

/// The exit code. Results that were lost are a mistake, where nothing worse was found.
fn ended(exit: Exit, session: &Session) -> ExitCode {
    let lost = report::lost_output().map_or(Exit::Fine, |failure| session.report(&failure));
    ExitCode::from(exit.max(lost) as u8)
}

#[cfg(test)]
mod tests {
    #[test]
    fn arguments_are_consistent() {
        <super::Cli as clap::CommandFactory>::command().debug_assert();
    }
}
