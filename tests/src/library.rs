//! The kernels of the library, one representative instance each, and what becomes of it for a target.

use crate::corpus::{files, load, root};
use crate::run::diagnostic_lines;
use pantile_abi::DType;
use pantile_ir::ast::{Generic, GenericKind, ItemKind};
use pantile_ir::diag::Diagnostics;
use pantile_ir::elab::{Library, Request, Setting, admits, elaborate};
use pantile_ir::program::{Program, Stage};
use pantile_ir::span::Sources;
use pantile_ir::target::Arch;
use pantile_ir::verify::verify;
use pantile_passes::pipeline;
use std::collections::BTreeMap;

/// Files that hold functions and references, no kernel of the library.
const NOT_KERNELS: [&str; 2] = ["std", "ref"];

/// The instance of one kernel that is pinned.
pub struct Row {
    /// `gemv.gemv_allreduce`
    pub name: String,
    pub file: String,
    pub request: Request,
    library: usize,
}

/// The library, parsed.
pub struct Kernels {
    pub rows: Vec<Row>,
    libraries: Vec<Library>,
    sources: Sources,
}

/// Options of kernels, from `tests/snapshots/kernels.toml`.
struct Table {
    types: Vec<DType>,
    consts: toml::Table,
    kernels: BTreeMap<String, toml::Table>,
}

impl Table {
    fn read() -> Result<Table, String> {
        let path = root().join("tests/snapshots/kernels.toml");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut all: toml::Table = text.parse().map_err(|e| format!("kernels.toml: {e}"))?;
        let defaults = all.remove("defaults").and_then(|d| d.as_table().cloned()).unwrap_or_default();
        let names = defaults.get("types").and_then(|t| t.as_array()).cloned().unwrap_or_default();
        let named = |v: &toml::Value| v.as_str().and_then(DType::from_name).ok_or(format!("no type: {v}"));
        let types = names.iter().map(named).collect::<Result<_, _>>()?;
        let consts = defaults.get("consts").and_then(|c| c.as_table().cloned()).unwrap_or_default();
        let mut kernels = BTreeMap::new();
        for (file, inner) in all {
            for (kernel, options) in inner.as_table().ok_or(format!("`{file}` is no table"))? {
                let options = options.as_table().ok_or(format!("`{file}.{kernel}` is no table"))?;
                kernels.insert(format!("{file}.{kernel}"), options.clone());
            }
        }
        Ok(Table { types, consts, kernels })
    }
}

fn setting(value: &toml::Value) -> Setting {
    match value {
        toml::Value::String(s) => Setting::parse(s),
        other => Setting::parse(&other.to_string()),
    }
}

/// Every kernel of the library with the instance that the table picks; a fault of the table is an error.
pub fn kernels() -> Result<Kernels, String> {
    let mut table = Table::read()?;
    let mut all = Kernels { rows: Vec::new(), libraries: Vec::new(), sources: Sources::default() };
    for path in files(&["kernels"]) {
        let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        if NOT_KERNELS.contains(&stem.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        let (library, diags) = load(&path, &text, &mut all.sources);
        if diags.has_errors() {
            return Err(diagnostic_lines(&diags, &all.sources).join("\n"));
        }
        for item in library.main().map_or(&[][..], |u| &u.ast.items) {
            let ItemKind::Kernel(k) = &item.kind else { continue };
            let name = format!("{stem}.{}", k.name.name);
            let options = table.kernels.remove(&name).unwrap_or_default();
            let request = request(&k.name.name, &k.generics, &options, &table);
            all.rows.push(Row { name, file: stem.clone(), request, library: all.libraries.len() });
        }
        all.libraries.push(library);
    }
    match table.kernels.keys().next() {
        Some(name) => {
            Err(format!("kernels.toml has options for `{name}`, which is no kernel of the library"))
        }
        None => Ok(all),
    }
}

/// Generics by the table's defaults, then what the kernel's options say.
fn request(kernel: &str, generics: &[Generic], options: &toml::Table, table: &Table) -> Request {
    let mut r = Request::new(kernel);
    for g in generics {
        let name = &g.name.name;
        let given = options.get(name).map(setting);
        match (g.kind, given) {
            (GenericKind::Fn, Some(Setting::Name(f))) => {
                r.fns.insert(name.clone(), f);
            }
            (_, Some(Setting::Type(d))) => {
                r.types.insert(name.clone(), d);
            }
            (_, Some(value)) => {
                r.consts.insert(name.clone(), value);
            }
            (GenericKind::ConstInt | GenericKind::ConstBool, None) => {
                let value = table.consts.get(name).filter(|_| g.default.is_none()).map(setting);
                r.consts.extend(value.map(|v| (name.clone(), v)));
            }
            (GenericKind::Fn, None) => {}
            (kind, None) => {
                let first = table.types.iter().copied().find(|&d| admits(kind, d));
                r.types.extend(first.filter(|_| g.default.is_none()).map(|d| (name.clone(), d)));
            }
        }
    }
    for (name, value) in options {
        if !generics.iter().any(|g| g.name.name == *name) {
            r.params.insert(name.clone(), setting(value));
        }
    }
    r
}

impl Row {
    /// The instance, as a line: `T=f16 NB=1024`.
    pub fn options(&self) -> String {
        let r = &self.request;
        let mut words: Vec<String> = r.types.iter().map(|(n, d)| format!("{n}={d}")).collect();
        words.extend(r.consts.iter().chain(&r.params).map(|(n, s)| format!("{n}={s}")));
        words.extend(r.fns.iter().map(|(n, f)| format!("{n}={f}")));
        if words.is_empty() { "defaults".into() } else { words.join(" ") }
    }
}

impl Kernels {
    /// The verified tile program of a row.
    pub fn tile(&mut self, row: usize, arch: &Arch) -> Result<Program, String> {
        let Row { library, request, .. } = &self.rows[row];
        let made = elaborate(&self.libraries[*library], request, arch, &mut self.sources);
        let made = made.map_err(|d| told(&d))?;
        verify(&made.program, arch).map_err(|d| told(&d))?;
        Ok(made.program)
    }

    /// What the passes of the target's family leave of it; every one is verified.
    pub fn lowered(&mut self, row: usize, arch: &Arch) -> Result<Program, String> {
        let tile = self.tile(row, arch)?;
        // without the pass from tiles to threads the others only show where they stop
        if !pipeline::of(arch.backend).any(|p| p.name == "lower") {
            return Err("the passes do not lead to a final program yet".into());
        }
        let cx = pipeline::Cx { arch };
        let last = pipeline::run(tile, &cx, |_, p| verify(p, arch).map(drop)).map_err(|d| told(&d))?;
        match last.stage {
            Stage::Final => Ok(last),
            // what they leave so far would change with each new pass
            _ => Err("the passes do not lead to a final program yet".into()),
        }
    }

    /// The source of a final program.
    pub fn source(&self, program: &Program, arch: &Arch) -> Result<String, String> {
        pantile_backends::clike::emit(program, arch).map(|s| s.text).map_err(|d| told(&d))
    }
}

/// Diagnostics by code, message and remedy; places would change with every line above them.
fn told(diags: &Diagnostics) -> String {
    let line = |d: &pantile_ir::diag::Diagnostic| format!("{} {} | {}", d.code, d.message, d.primary.text);
    diags.iter().map(line).collect::<Vec<_>>().join("\n")
}
