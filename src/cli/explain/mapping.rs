//! `pantile explain FILE::NAME --target ARCH`: how a kernel is mapped to a machine of threads.

use crate::cli::emit::arch;
use crate::cli::entry::{Entry, Specialise, usage};
use crate::cli::report::{Session, print, print_json, table};
use crate::cli::{Exit, Outcome};
use pantile::driver::mapping::{Barrier, Mapping, mapping};
use pantile::driver::{self, compile};

pub struct Options<'a> {
    pub specialise: &'a Specialise,
    pub targets: &'a [String],
    pub json: bool,
}

pub fn run(entry: &Entry, options: &Options<'_>, session: &mut Session) -> Outcome {
    if options.targets.is_empty() {
        return Err(
            usage("for which machine?").help("name one, such as `--target cuda:sm_80` or `--target musa`")
        );
    }
    let targets = options.specialise.files.load(session)?;
    let library = options.specialise.load(&entry.file, session)?;
    let head = driver::entry(&library, entry.name.as_deref())?;
    let request = options.specialise.request_only(&head)?;
    for target in options.targets {
        let arch = arch(target, &targets)?;
        let made = compile(&library, &request, &arch, &mut session.sources)?;
        session.show(&made.warnings);
        for kernel in mapping(&made.program, &arch, &session.sources)? {
            match options.json {
                true => print_json(&kernel),
                false => print(&text(&kernel)),
            }
        }
    }
    Ok(Exit::Fine)
}

fn section(title: &str, rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let body: String = table(rows).lines().map(|l| format!("  {l}\n")).collect();
    format!("{title}\n{body}")
}

fn text(m: &Mapping) -> String {
    let by = if m.threads_by_hand { "as the kernel says" } else { "by the plan" };
    let mut out = format!("`{}` for {}: {} threads a block, {by}\n", m.kernel, m.target, m.threads);
    let mut plan = Vec::new();
    for d in &m.plan {
        let by = if d.by_hand { " (by hand)" } else { "" };
        plan.push(vec![d.what.clone(), format!("{}{by}", d.value)]);
        plan.extend(d.refused.iter().map(|(v, why)| vec![String::new(), format!("not {v}: {why}")]));
    }
    out += &section("plan", &plan);
    let tiles = m.tiles.iter().map(|t| {
        vec![t.name.clone(), t.ty.clone(), t.home.to_string(), t.layout.clone().unwrap_or_default()]
    });
    out += &section("tiles", &tiles.collect::<Vec<_>>());
    let shared = m.shared.iter().map(|s| {
        let place = format!("{}..{}", s.offset, s.offset + s.bytes);
        let layout = s.layout.clone().unwrap_or_else(|| "plain rows".into());
        vec![place, s.name.clone(), s.ty.clone(), format!("bank conflicts: {}", s.conflicts), layout]
    });
    out += &section(&format!("shared memory: {} bytes", m.shared_bytes), &shared.collect::<Vec<_>>());
    if m.shared.is_empty() {
        out += &format!("shared memory: {} bytes\n", m.shared_bytes);
    }
    let accesses = m.accesses.iter().map(|a| {
        vec![a.memory.clone(), format!("{}s", a.way), format!("of {} bits", a.bits), format!("x {}", a.count)]
    });
    out += &section("accesses of a thread, each place once", &accesses.collect::<Vec<_>>());
    // places that say the same, as those of a loop's versions, share a row
    let mut barriers: Vec<(&Barrier, usize)> = Vec::new();
    for b in &m.barriers {
        match barriers.iter_mut().find(|(o, _)| *o == b) {
            Some((_, n)) => *n += 1,
            None => barriers.push((b, 1)),
        }
    }
    let barriers = barriers.iter().map(|(b, n)| {
        let line = b.line.map_or_else(String::new, |l| format!("before line {l}"));
        vec![format!("of the {}", b.team), line, format!("x {n}"), b.why.clone()]
    });
    out += &section(&format!("barriers: {}", m.barriers.len()), &barriers.collect::<Vec<_>>());
    if m.barriers.is_empty() {
        out += "barriers: 0\n";
    }
    out += &format!("registers of a thread: {} (estimate)\n", m.registers_estimate);
    let slow: Vec<Vec<String>> = m.slow.iter().map(|s| vec![s.clone()]).collect();
    out + &section("slow paths", &slow)
}
