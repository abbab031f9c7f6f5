//! Facts of compiled kernels, read from what vendors' compilers print: the assembler's report and the PTX text.
//!
//! Only counts of what is written there, never an estimate; what the text does not tell is `unknown`.

use std::collections::BTreeMap;
use std::fmt;

/// Facts of every entry of a source, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VendorFacts {
    pub entries: Vec<EntryFacts>,
}

/// Facts of one kernel. `None` is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryFacts {
    pub name: String,
    /// registers of a thread
    pub registers: Option<u32>,
    /// bytes of a thread's stack
    pub stack: Option<u32>,
    /// bytes that a thread stores for lack of registers, and loads again
    pub spill_stores: Option<u32>,
    pub spill_loads: Option<u32>,
    /// bytes of shared memory of fixed size
    pub shared: Option<u32>,
    /// barriers in use
    pub barriers: Option<u32>,
    /// Counts by name, `global load 128` and the like; `None` where there was no PTX.
    pub counts: Option<BTreeMap<String, u32>>,
}

/// Counts that are shown even where they are zero.
const ALWAYS: [&str; 3] = ["block barrier", "shuffle", "shared atomic"];

impl VendorFacts {
    /// From the log of `--ptxas-options=-v` and PTX text; either may be empty.
    pub fn parse(log: &str, ptx: &str) -> VendorFacts {
        let mut facts = VendorFacts::default();
        facts.read_ptx(ptx);
        facts.read_log(log);
        facts
    }

    fn entry(&mut self, name: &str) -> &mut EntryFacts {
        let found = self.entries.iter().position(|e| e.name == name);
        let i = found.unwrap_or_else(|| {
            self.entries.push(EntryFacts { name: name.into(), ..EntryFacts::default() });
            self.entries.len() - 1
        });
        &mut self.entries[i]
    }

    fn read_log(&mut self, log: &str) {
        let mut current: Option<String> = None;
        for line in log.lines() {
            if let Some((_, rest)) = line.split_once("Compiling entry function '") {
                current = rest.split('\'').next().map(str::to_string);
            }
            // functions that are called have a frame of their own, which is not the entry's
            if let Some((_, name)) = line.split_once("Function properties for ")
                && current.as_deref() != Some(name.trim())
            {
                continue;
            }
            let Some(name) = current.clone() else { continue };
            let entry = self.entry(&name);
            let before = |what: &str| number_before(line, what);
            set(&mut entry.stack, before(" bytes stack frame"));
            set(&mut entry.spill_stores, before(" bytes spill stores"));
            set(&mut entry.spill_loads, before(" bytes spill loads"));
            if line.contains("Used ") {
                set(&mut entry.registers, before(" registers"));
                set(&mut entry.barriers, before(" barriers").or(Some(0)));
                set(&mut entry.shared, before(" bytes smem").or(Some(0)));
            }
        }
    }

    fn read_ptx(&mut self, ptx: &str) {
        let mut name: Option<String> = None;
        let mut depth = 0usize;
        for line in ptx.lines() {
            let line = line.split("//").next().unwrap_or("").trim();
            if let Some((_, rest)) = line.split_once(".entry ") {
                let end = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$');
                let found = rest.split(end).next().unwrap_or("").to_string();
                self.entry(&found).counts = Some(ALWAYS.iter().map(|a| (a.to_string(), 0)).collect());
                name = Some(found);
                depth = 0;
            }
            let Some(current) = &name else { continue };
            let inside = depth > 0;
            depth += line.matches('{').count();
            depth = depth.saturating_sub(line.matches('}').count());
            if inside && let Some(counts) = &mut self.entry(&current.clone()).counts {
                line.split(';').filter_map(kind).for_each(|k| *counts.entry(k).or_default() += 1);
            }
            if inside && depth == 0 {
                name = None;
            }
        }
    }
}

fn set(place: &mut Option<u32>, found: Option<u32>) {
    if found.is_some() {
        *place = found;
    }
}

fn number_before(line: &str, what: &str) -> Option<u32> {
    let head = &line[..line.find(what)?];
    let start = head.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
    head[start..].parse().ok()
}

/// As what an instruction counts, if as anything.
fn kind(statement: &str) -> Option<String> {
    let mut words = statement.trim_start_matches(['{', ' ', '\t']).split_whitespace();
    let mut op = words.next()?;
    if op.starts_with('@') {
        op = words.next()?;
    }
    let parts: Vec<&str> = op.split('.').collect();
    let has = |p: &str| parts.contains(&p);
    let space = || {
        let of = |p: &&str| {
            matches!(p.split("::").next(), Some("global" | "shared" | "local" | "param" | "const"))
        };
        parts.iter().copied().find(of).map_or("generic", |p| p.split("::").next().unwrap_or(p))
    };
    let named = match parts[0] {
        "ld" | "ldu" | "st" => {
            let way = if parts[0] == "st" { "store" } else { "load" };
            return match space() {
                "param" | "const" => None,
                space => Some(format!("{space} {way} {}", width(&parts)?)),
            };
        }
        "bar" if has("warp") => "warp barrier",
        "bar" | "barrier" if has("cluster") => "cluster barrier",
        "bar" | "barrier" => "block barrier",
        "shfl" => "shuffle",
        "vote" | "activemask" | "match" => "vote",
        "redux" => "warp reduction",
        // results that nobody reads make no difference to what the memory does
        "atom" | "red" => return Some(format!("{} atomic", space())),
        "cp" if has("bulk") => "bulk copy",
        "cp" if has("async") && (has("ca") || has("cg")) => "asynchronous copy",
        "membar" | "fence" => "fence",
        "mma" | "wmma" if has("mma") || has("sync") => "matrix product",
        "wgmma" if has("mma_async") => "matrix product",
        "ldmatrix" | "stmatrix" => "matrix access",
        "fma" => "fma",
        "mbarrier" => "memory barrier",
        "call" => "call",
        _ => return None,
    };
    Some(named.into())
}

/// Bits of one access.
fn width(parts: &[&str]) -> Option<u32> {
    let lanes = parts.iter().find_map(|p| p.strip_prefix('v')?.parse::<u32>().ok()).unwrap_or(1);
    let last = parts.last()?;
    let bits: u32 = last.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    Some(lanes * bits)
}

impl EntryFacts {
    /// How often something of that name stands in the PTX; `None` where that is unknown.
    pub fn count(&self, name: &str) -> Option<u32> {
        Some(self.counts.as_ref()?.get(name).copied().unwrap_or(0))
    }
}

impl fmt::Display for EntryFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |n: Option<u32>| n.map_or_else(|| "unknown".to_string(), |n| n.to_string());
        writeln!(f, "registers: {}", known(self.registers))?;
        writeln!(f, "stack bytes: {}", known(self.stack))?;
        writeln!(f, "spill store bytes: {}", known(self.spill_stores))?;
        writeln!(f, "spill load bytes: {}", known(self.spill_loads))?;
        writeln!(f, "static shared bytes: {}", known(self.shared))?;
        writeln!(f, "barriers in use: {}", known(self.barriers))?;
        match &self.counts {
            None => writeln!(f, "instructions: unknown"),
            Some(counts) => counts.iter().try_for_each(|(name, n)| writeln!(f, "{name}: {n}")),
        }
    }
}

impl fmt::Display for VendorFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for e in &self.entries {
            write!(f, "entry: {}\n{e}", e.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90a'
ptxas info    : Function properties for first
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 34 registers, used 2 barriers, 1024 bytes smem
ptxas info    : Compile time = 3.000 ms
ptxas info    : Compiling entry function 'second' for 'sm_90a'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 384 bytes cmem[0]
ptxas info    : Function properties for helper
    64 bytes stack frame, 9 bytes spill stores, 9 bytes spill loads
";

    #[test]
    fn the_log_of_each_entry() {
        let facts = VendorFacts::parse(LOG, "");
        let [first, second] = &facts.entries[..] else { panic!("{facts:?}") };
        assert_eq!((first.registers, first.shared, first.barriers), (Some(34), Some(1024), Some(2)));
        assert_eq!((first.stack, first.spill_stores, first.spill_loads), (Some(8), Some(4), Some(12)));
        assert_eq!((second.registers, second.shared), (Some(8), Some(0)));
        assert_eq!(first.counts, None);
    }

    #[test]
    fn accesses_by_space_and_width() {
        let of = |s: &str| kind(s).unwrap_or_default();
        assert_eq!(of("ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1]"), "global load 128");
        assert_eq!(of("@%p1 ld.volatile.global.u16 %rs1, [%rd1]"), "global load 16");
        assert_eq!(of("ld.global.L1::no_allocate.v8.b32 {}"), "global load 256");
        assert_eq!(of("st.shared::cta.v2.b64 [%r1], {%rd1, %rd2}"), "shared store 128");
        assert_eq!(of("ld.f32 %f1, [%rd1]"), "generic load 32");
        assert_eq!(of("ld.param.u64 %rd1, [k_param_0]"), "");
        assert_eq!(of("bar.sync 0"), "block barrier");
        assert_eq!(of("bar.warp.sync -1"), "warp barrier");
        assert_eq!(of("red.shared.add.f32 [%r1], %f1"), "shared atomic");
        assert_eq!(of("shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1"), "shuffle");
        assert_eq!(of("cp.async.cg.shared.global [%r1], [%rd1], 16"), "asynchronous copy");
        assert_eq!(of("cp.async.commit_group"), "");
        assert_eq!(of("add.s32 %r1, %r2, %r3"), "");
    }

    #[test]
    fn only_bodies_count() {
        let ptx = "\
.visible .entry k(\n.param .u64 k_param_0\n)\n{\n{ // inline\nshfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;\n}\n\
bar.sync 0; bar.sync 0;\n// bar.sync 0;\n}\n.func f()\n{\nbar.sync 0;\n}\n";
        let facts = VendorFacts::parse("", ptx);
        assert_eq!(facts.entries[0].count("block barrier"), Some(2));
        assert_eq!(facts.entries[0].count("shuffle"), Some(1));
        assert_eq!(facts.entries[0].count("shared atomic"), Some(0));
        assert!(facts.to_string().contains("registers: unknown\n"), "{facts}");
        assert!(facts.to_string().lines().all(|l| l.contains(": ")), "{facts}");
    }
}
