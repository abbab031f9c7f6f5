//! Licences of everything that is linked, against the list in `deny.toml`.

use crate::{Findings, files};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::process::Command;

pub fn check() -> Result<Findings> {
    let deny: toml::Table = toml::from_str(&files::read("deny.toml".as_ref())?)?;
    let allowed: Vec<&str> = (deny.get("licenses"))
        .and_then(|l| l.get("allow")?.as_array())
        .context("deny.toml has no licenses.allow")?
        .iter()
        .filter_map(|v| v.as_str())
        .collect();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["metadata", "--format-version", "1", "--locked"]).current_dir(files::root());
    let out = cargo.output()?;
    if !out.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&out.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut found = Findings::default();
    for p in packages {
        let (name, version) = (p["name"].as_str().unwrap_or("?"), p["version"].as_str().unwrap_or("?"));
        match p["license"].as_str() {
            Some(expr) if allows(expr, &allowed) => {}
            Some(expr) => found.faults.push(format!("{name} {version} is under {expr}")),
            None => found.faults.push(format!("{name} {version} states no licence")),
        }
    }
    found.notes.push(format!("{} packages", packages.len()));
    Ok(found)
}

/// Does an SPDX expression leave a choice that is allowed? `OR` binds weaker than `AND`; `/` is an old `OR`.
fn allows(expr: &str, allowed: &[&str]) -> bool {
    let expr = expr.replace('/', " OR ");
    let tokens = expr.replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = tokens.split_whitespace().collect();
    let mut at = 0;
    let value = any(&tokens, &mut at, allowed);
    value && at == tokens.len()
}

fn any(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut value = all(tokens, at, allowed);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        value |= all(tokens, at, allowed);
    }
    value
}

fn all(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut value = one(tokens, at, allowed);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        value &= one(tokens, at, allowed);
    }
    value
}

fn one(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    match tokens.get(*at) {
        Some(&"(") => {
            *at += 1;
            let value = any(tokens, at, allowed);
            let closed = tokens.get(*at) == Some(&")");
            *at += 1;
            value && closed
        }
        Some(name) => {
            *at += 1;
            let mut name = name.to_string();
            if tokens.get(*at) == Some(&"WITH") {
                name = format!("{name} WITH {}", tokens.get(*at + 1).unwrap_or(&""));
                *at += 2;
            }
            allowed.contains(&name.as_str())
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::allows;

    #[test]
    fn expressions() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(allows(good, &allowed), "{good}");
        }
        for bad in
            ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR GPL-3.0) AND GPL-3.0", "MIT WITH other", "(MIT", ""]
        {
            assert!(!allows(bad, &allowed), "{bad}");
        }
    }
}
