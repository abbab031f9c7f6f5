//! `--diff A..B`: what two passes leave, or a stage for two targets.

use super::make::Job;
use super::{Args, arch};
use crate::cli::report::{Failure, Session};
use crate::cli::unified::unified;
use pantile::driver::passes::{self, PASSES};
use pantile::ir::codes;
use pantile::ir::elab::{Library, Request};
use pantile::ir::target::Targets;

/// `A..B`
pub fn sides(text: &str) -> Result<(String, String), String> {
    match text.split_once("..") {
        Some((a, b)) if !a.is_empty() && !b.is_empty() => Ok((a.into(), b.into())),
        _ => Err("write A..B, two passes or two targets".into()),
    }
}

pub fn run(
    args: &Args,
    (a, b): &(String, String),
    library: &Library,
    request: &Request,
    targets: &Targets,
    session: &mut Session,
) -> Result<String, Failure> {
    let is_pass = |n: &String| PASSES.iter().any(|p| p.name == n);
    if is_pass(a) || is_pass(b) {
        return between_passes(args, (a, b), library, request, targets, session);
    }
    let mut texts = Vec::new();
    for target in [a, b] {
        let job = Job { library, request, target, arch: arch(target, targets)? };
        let made = job.make(args.stage, session)?.bytes;
        texts.push(String::from_utf8(made).map_err(|_| {
            Failure::new(codes::USAGE, "machine code has no lines to compare").help("compare `--stage sass`")
        })?);
    }
    Ok(unified(a, &texts[0], b, &texts[1]))
}

fn between_passes(
    args: &Args,
    (a, b): (&str, &str),
    library: &Library,
    request: &Request,
    targets: &Targets,
    session: &mut Session,
) -> Result<String, Failure> {
    let mut out = String::new();
    for target in &args.target {
        let arch = arch(target, targets)?;
        passes::find(a, &arch)?;
        passes::find(b, &arch)?;
        let (dumps, warnings) =
            passes::dumps(library, request, &arch, None, &mut session.sources)?.whole()?;
        session.show(&warnings);
        let left = |name: &str| dumps.iter().find(|d| d.pass.name == name).map_or("", |d| &d.text);
        let label = |name: &str| match args.target.len() {
            1 => format!("after {name}"),
            _ => format!("after {name} for {target}"),
        };
        out += &unified(&label(a), left(a), &label(b), left(b));
    }
    Ok(out)
}
