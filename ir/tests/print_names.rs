//! A name may be any word of the language that is not reserved; where it cannot, an error says so at the name.

mod elab_support;

use elab_support::*;
use pantile_ir::elab::{Library, Request, elaborate};
use pantile_ir::print::print;
use pantile_ir::program::Program;
use pantile_ir::span::Sources;
use pantile_ir::text::words;
use pantile_ir::verify::verify;
use std::collections::BTreeSet;

/// Words with a meaning somewhere that are in none of the lists of [`words`].
const MORE: &[&str] = &[
    "acc",
    "acquire",
    "add",
    "approx",
    "async",
    "awq",
    "axis",
    "ballot",
    "block",
    "bool",
    "cluster",
    "cols",
    "contract",
    "counted",
    "cpu",
    "deterministic",
    "dims",
    "direct",
    "dtype",
    "exact",
    "exclusive",
    "exp",
    "f32",
    "fifo",
    "fill",
    "float",
    "frag",
    "full",
    "generic",
    "gptq",
    "identity",
    "index",
    "inf",
    "init",
    "inout",
    "int",
    "iota",
    "keep",
    "linear",
    "low",
    "math",
    "matrix",
    "max",
    "means",
    "min",
    "mul",
    "nan",
    "none",
    "not",
    "nounroll",
    "once",
    "only",
    "operand",
    "order",
    "out",
    "partial",
    "per_thread",
    "pipelined",
    "PI",
    "precision",
    "proxy",
    "read_completion",
    "reduce",
    "reducer",
    "registers",
    "regs",
    "return",
    "reverse",
    "rows",
    "sat",
    "scan",
    "seed",
    "seg",
    "slot",
    "stage",
    "stages",
    "sum",
    "T",
    "target",
    "tf32",
    "tile",
    "type",
    "unroll",
    "vectorized",
    "wait",
    "warp",
    "width",
    "within",
    "zeros",
    "a",
    "b",
    "_x",
    "e5",
    "x2",
];

/// Each name in angle brackets stands for a declaration of its kind and its uses.
const TEXT: &str = "stage scheduled

kernel <kernel>(<tensor>: f32[<dim>, 64] strides (<stride>, 1) align 16, O: out f32[<dim>, 64], <scalar>: f32) where <dim> > 0 {
    grid <dim> as <grid> cost = <grid> + 1
    threads (2, 32) ordered as (<thread>, lane)
    shared <buffer>: f32[64] align 128
    var <array>: f32[4]
    var <reducer>: reducer(add) f32
    var <var>: f32 = <scalar>
    let <let> = <tensor>[<grid>, 0] or 0
    <array>[0] = <let>
    for <loop> in pipelined(seg(0..4: <const> = true; 4..8 step 2: <const> = false), stages = 2) {
        if <const> { <var> += f32(<loop>) * <array>[0] } else { <var> -= <let> }
        <reducer> op= <var>
    }
    parallel <parallel> in 64 { <buffer>[<parallel>] = <tensor>[<grid>, <parallel>] or -1.0 }
    let <tile> @ shared = <buffer>[:]
    let <total> = allreduce(max, <var>, over = <thread>)
    let joined = <reducer>
    let shuffled = shfl_xor(<total>, 1)
    O[<grid>, :] = where(<tile> > 0, <tile>, joined)[0..64] pad_not
    if <thread> == 0 && lane == 0 { O[<grid>, 0] = <total> + shuffled }
}
";

const MACHINES: &str = "kernel <kernel>(A: f32[<dim>, 64], O: out f32[<dim>, 64]) {
    grid 1 as i
    team <team>: 1 group of 128
    team <load>: 1 thread of 1 group
    queue <queue> of <team>: matrix, keep <= 7
    ring <ring>[4] <load> -> <team> { <field>: shared f32[64] align 128, other: shared f32[64] } fill generic
    turn <turn> over <team>.groups
    role <load> {
        for k in 0..<dim> {
            let <put> = acquire <ring>
            <put>.<field>[:] = A[k, :]
            commit <put>
        }
    }
    role <team> as <group> {
        fragment <fragment>: f32[64] over <team>
        for k in 0..<dim> carry (<held>: slot(<ring>)? = none) {
            let <got> = wait <ring>
            take <turn>
            <fragment>[:] = <got>.<field>[:]
            O[k + <group>, :] = <fragment>[:]
            pass <turn>
            await <queue> keep 1
            release <held>
            next <got>
        }
        await <queue> keep 0
        release <held>
    }
}
";

/// The kinds of names in a template, and the text with `word` for one of them.
fn kinds(template: &str) -> Vec<&str> {
    let mut all: Vec<&str> =
        template.split('<').skip(1).filter_map(|p| p.split_once('>').map(|(n, _)| n)).collect();
    all.retain(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphabetic()));
    all.sort_unstable();
    all.dedup();
    all
}

fn filled(template: &str, kind: &str, word: &str) -> String {
    kinds(template).into_iter().fold(template.replace("[0..64] pad_not", ""), |text, k| {
        let name = if k == kind { word.to_owned() } else { format!("{k}_{}", k.len()) };
        text.replace(&format!("<{k}>"), &name)
    })
}

/// The program, or what was said.
fn made(text: &str, entry: &str) -> Result<Program, Vec<String>> {
    let mut sources = Sources::default();
    let (lib, diags) = Library::from_text("t.tile", text, &mut sources);
    if diags.has_errors() {
        return Err(lines(&diags, &sources));
    }
    let target = arch("reference");
    let p = elaborate(&lib, &Request::new(entry), &target, &mut sources).map_err(|d| lines(&d, &sources))?;
    match verify(&p.program, &target) {
        Ok(_) => Ok(p.program),
        Err(d) => Err(lines(&d, &sources)),
    }
}

fn every_word(template: &str) {
    let lists = [words::ITEMS, words::STATEMENTS, words::INFIX, words::CLAUSES, MORE];
    let all: BTreeSet<&str> =
        lists.into_iter().flatten().copied().filter(|w| !words::is_reserved(w)).collect();
    let mut faults = Vec::new();
    let mut refused = std::collections::BTreeMap::<String, Vec<String>>::new();
    for kind in kinds(template) {
        for &word in &all {
            let text = filled(template, kind, word);
            let entry = if kind == "kernel" { word } else { "kernel_6" };
            match made(&text, entry) {
                Err(said) => {
                    let clear = said.iter().any(|l| l.contains(&format!("`{word}`")) && is_about_names(l));
                    if clear {
                        refused.entry(word.into()).or_default().push(kind.into());
                    } else {
                        faults.push(format!("{kind} `{word}`: {said:?}"));
                    }
                }
                Ok(p) => match made(&print(&p), &p.entry.name) {
                    Ok(again) if print(&again) == print(&p) => {}
                    Ok(again) => {
                        faults.push(format!("{kind} `{word}` differs:\n{}\n{}", print(&p), print(&again)))
                    }
                    Err(said) => {
                        faults.push(format!("{kind} `{word}` reads back as {said:?}\n{}", print(&p)))
                    }
                },
            }
        }
    }
    let short: Vec<String> = faults.iter().map(|f| f.lines().next().unwrap_or("").to_owned()).collect();
    assert!(faults.is_empty(), "{} faults\n{}\n\n{}", faults.len(), short.join("\n"), faults[0]);
}

/// A reserved word, or a name that the language needs for itself.
fn is_about_names(line: &str) -> bool {
    ["P0109", "P0252"].iter().any(|c| line.contains(c)) || line.contains("it hides the")
}

#[test]
fn values_may_be_called_like_words_of_the_language() {
    every_word(TEXT);
}

#[test]
fn teams_and_tokens_may_be_called_like_words_of_the_language() {
    every_word(MACHINES);
}
