//! Commands that README and docs show must exist: `pantile NAME`, `./x NAME`, `cargo xtask NAME`; so must files that
//! links point at.

use crate::{Findings, RULES, files};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

pub fn check() -> Result<Findings> {
    let pantile = pantile_commands()?;
    let x = x_commands()?;
    let mut found = Findings::default();
    let mut seen = 0;
    for path in files::list(&[".md"])? {
        let text = files::read(&path)?;
        let mut code = false;
        for (i, line) in text.lines().enumerate() {
            let at = format!("{}:{}", path.display(), i + 1);
            if line.trim_start().starts_with("```") {
                code = !code;
                continue;
            }
            for command in commands(line, code) {
                seen += 1;
                if let Some(why) = unknown(&command, &pantile, &x) {
                    found.faults.push(format!("{at}: `{command}`: {why}"));
                }
            }
            if !code {
                found
                    .faults
                    .extend(dead_links(&path, line).into_iter().map(|l| format!("{at}: no file `{l}`")));
            }
        }
    }
    found.notes.push(format!("{seen} commands"));
    Ok(found)
}

/// Lines of code blocks, and inline code, that begin with one of our commands.
fn commands(line: &str, code: bool) -> Vec<String> {
    let ours = |t: &str| ["pantile ", "./x ", "cargo xtask "].iter().any(|p| t.starts_with(p));
    if code {
        let line = line.trim().trim_start_matches("$ ");
        return ours(line).then(|| line.to_string()).into_iter().collect();
    }
    line.split('`').skip(1).step_by(2).filter(|t| ours(t)).map(str::to_string).collect()
}

fn unknown(command: &str, pantile: &[String], x: &[String]) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let (known, name): (Vec<&str>, &str) = match words.as_slice() {
        ["pantile", name, ..] => (pantile.iter().map(String::as_str).collect(), name),
        ["./x", name, ..] => (x.iter().map(String::as_str).collect(), name),
        ["cargo", "xtask", name, ..] => (RULES.iter().map(|(n, ..)| *n).chain(["check"]).collect(), name),
        _ => return None,
    };
    let placeholder = !name.starts_with(|c: char| c.is_ascii_lowercase());
    // `check|fmt|run` lists several
    let missing = name.split('|').find(|n| !known.contains(n))?;
    (!placeholder).then(|| format!("there is no `{missing}`"))
}

/// Names in the command list of `pantile --help`.
fn pantile_commands() -> Result<Vec<String>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["run", "--quiet", "-p", "pantile", "--", "--help"]).current_dir(files::root());
    let out = cargo.output()?;
    if !out.status.success() {
        bail!("pantile --help failed: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    let help = String::from_utf8(out.stdout)?;
    let list = help.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
    Ok(list.filter_map(|l| l.split_whitespace().next()).map(str::to_string).collect())
}

/// Names that the `case` of `x` knows.
fn x_commands() -> Result<Vec<String>> {
    let text = files::read("x".as_ref())?;
    let case = text.split("case \"$command\" in").nth(1).context("x has no case of commands")?;
    let arms = case.lines().filter_map(|l| l.strip_suffix(')'));
    Ok(arms.filter(|a| a.chars().all(|c| c.is_ascii_lowercase())).map(str::to_string).collect())
}

/// Targets of relative links that do not exist.
fn dead_links(path: &Path, line: &str) -> Vec<String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let targets = line.split("](").skip(1).filter_map(|t| t.split(')').next());
    let local = targets.filter(|t| !t.contains("://") && !t.starts_with('#') && !t.is_empty());
    local
        .map(|t| t.split('#').next().unwrap_or(t))
        .filter(|t| !files::root().join(folder).join(t).exists())
        .map(str::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{commands, unknown};

    #[test]
    fn commands_are_found_and_judged() {
        assert_eq!(commands("$ ./x demo --weights w", true), ["./x demo --weights w"]);
        assert_eq!(commands("see `pantile run` and `x`", false), ["pantile run"]);
        let (p, x) = (["run".to_string(), "fmt".into()], ["demo".to_string()]);
        assert_eq!(unknown("pantile run a.tile", &p, &x), None);
        assert_eq!(unknown("pantile run|fmt", &p, &x), None);
        assert_eq!(unknown("pantile COMMAND", &p, &x), None);
        assert!(unknown("pantile walk", &p, &x).is_some());
        assert!(unknown("./x dance", &p, &x).is_some());
        assert!(unknown("cargo xtask words", &p, &x).is_none());
    }
}
