//! A program as text that shows every field and no handle or span: for comparing a program with what it prints.
#![allow(dead_code)]

use pantile_ir::program::*;
use std::collections::HashMap;

/// Everything that a program says. Names of locals, and how arenas are numbered, do not count.
pub fn fields(p: &Program) -> String {
    let Program { stage, arch, combines, intrinsics, kernels, entry } = p;
    let mut out = format!("{stage:?} {arch}\n");
    for (_, c) in combines.iter() {
        let Combine { name, span: _, identity, commutative, func } = c;
        out += &format!("combine {name} {identity:?} {commutative}\n{}", pure(p, func));
    }
    for (_, i) in intrinsics.iter() {
        let Intrinsic { name, span: _, means, bound, spellings } = i;
        out += &format!("intrinsic {name} {bound:?} {spellings:?}\n{}", pure(p, means));
    }
    for (_, k) in kernels.iter() {
        out += &kernel(p, k);
    }
    let Host { name, span: _, deterministic, dims: _, args, body, wheres, workspaces, steps, lone } = entry;
    let mut s = Shower::new(p, body, None, Some(entry));
    let args: Vec<String> = args.iter().map(|(_, a)| s.show(a)).collect();
    out += &format!("host {name} {deterministic} {lone} {args:?} {}\n", s.show(&conditions(wheres)));
    workspaces.iter().for_each(|(_, w)| out += &s.show(w));
    out + &s.show(steps)
}

/// Launch conditions without their words: text says them as it prints.
fn conditions(wheres: &[(ExprId, String)]) -> Vec<ExprId> {
    wheres.iter().map(|&(e, _)| e).collect()
}

fn pure(p: &Program, f: &PureFn) -> String {
    let PureFn { body, params, lets, results } = f;
    let mut s = Shower::new(p, body, None, None);
    format!("{} {} {}\n", s.show(params), s.show(lets), s.show(results))
}

fn kernel(p: &Program, k: &Kernel) -> String {
    let Kernel {
        name,
        span: _,
        math,
        deterministic,
        dims: _,
        args,
        body,
        wheres,
        grid,
        threads,
        buffers: _,
        reducers: _,
        teams,
        rings,
        queues,
        turns,
        plan,
        stmts,
    } = k;
    let mut s = Shower::new(p, body, Some(k), None);
    let mut out = format!("kernel {name} {math:?} {deterministic}\n");
    args.iter().for_each(|(_, a)| out += &(s.show(a) + "\n"));
    out += &format!("{}\n{}\n{}\n", s.show(&conditions(wheres)), s.show(grid), s.show(threads));
    teams.iter().for_each(|(_, t)| out += &(s.show(t) + "\n"));
    rings.iter().for_each(|(_, t)| out += &(s.show(t) + "\n"));
    queues.iter().for_each(|(_, t)| out += &(s.show(t) + "\n"));
    turns.iter().for_each(|(_, t)| out += &(s.show(t) + "\n"));
    for plan::Entry { key, subject, value, by_hand: _, refused: _, span: _ } in &plan.entries {
        out += &format!("{key:?} {subject:?} {value:?}\n");
    }
    stmts.iter().for_each(|st| out += &(s.show(st) + "\n"));
    out
}

/// Replaces handles in debug text by what they stand for.
struct Shower<'a> {
    program: &'a Program,
    body: &'a Body,
    kernel: Option<&'a Kernel>,
    host: Option<&'a Host>,
    seen: HashMap<String, usize>,
}

impl<'a> Shower<'a> {
    fn new(program: &'a Program, body: &'a Body, kernel: Option<&'a Kernel>, host: Option<&'a Host>) -> Self {
        Shower { program, body, kernel, host, seen: HashMap::new() }
    }

    fn show(&mut self, x: &impl std::fmt::Debug) -> String {
        self.text(&without_spans(&format!("{x:?}")))
    }

    fn text(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('[') {
            let word = rest[..open].rfind(|c: char| !c.is_ascii_alphabetic()).map_or(0, |i| i + 1);
            let number = rest[open + 1..]
                .find(']')
                .and_then(|end| Some((end, rest[open + 1..open + 1 + end].parse().ok()?)));
            match number {
                Some((end, n)) if word < open => {
                    out += &rest[..word];
                    out += &self.handle(&rest[word..open], n);
                    rest = &rest[open + end + 2..];
                }
                _ => {
                    out += &rest[..=open];
                    rest = &rest[open + 1..];
                }
            }
        }
        out + rest
    }

    fn handle(&mut self, kind: &str, n: usize) -> String {
        fn entry<T: std::fmt::Debug>(a: &pantile_ir::arena::Arena<T>, n: usize) -> String {
            a.iter().nth(n).map_or("nothing".into(), |(_, x)| without_spans(&format!("{x:?}")))
        }
        let k = self.kernel;
        let found = match kind {
            "Expr" => {
                let text = format!("({} of {:?})", entry(&self.body.exprs, n), self.body.types[n]);
                return self.text(&text);
            }
            "Local" => {
                let (_, l) = self.body.locals.iter().nth(n).expect("a local");
                let Local { name: _, ty, kind, home, layout, team, partial } = l;
                format!("{ty:?} {kind:?} {home:?} {layout:?} {team:?} {partial:?}")
            }
            "Buffer" => k.map_or(String::new(), |k| entry(&k.buffers, n)),
            "Reducer" => k.map_or(String::new(), |k| entry(&k.reducers, n)),
            "Ring" => k.map_or(String::new(), |k| k.rings.iter().nth(n).expect("a ring").1.name.clone()),
            "Queue" => k.map_or(String::new(), |k| k.queues.iter().nth(n).expect("a queue").1.name.clone()),
            "Turn" => k.map_or(String::new(), |k| k.turns.iter().nth(n).expect("a turn").1.name.clone()),
            "TeamDecl" => k.map_or(String::new(), |k| k.teams.iter().nth(n).expect("a team").1.name.clone()),
            "Dim" => match (k, self.host) {
                (Some(k), _) => entry(&k.dims, n),
                (_, Some(h)) => entry(&h.dims, n),
                _ => String::new(),
            },
            "Arg" => match (k, self.host) {
                (Some(k), _) => k.args.iter().nth(n).expect("an arg").1.name.clone(),
                (_, Some(h)) => h.args.iter().nth(n).expect("an arg").1.name.clone(),
                _ => String::new(),
            },
            "Combine" => self.program.combines.iter().nth(n).expect("a combiner").1.name.clone(),
            "Intrinsic" => self.program.intrinsics.iter().nth(n).expect("an intrinsic").1.name.clone(),
            "Kernel" => self.program.kernels.iter().nth(n).expect("a kernel").1.name.clone(),
            "Workspace" => self.host.map_or(String::new(), |h| entry(&h.workspaces, n)),
            _ => return format!("{kind}[{n}]"),
        };
        // the first time in full, later by the order of first uses
        let key = format!("{kind}{n}");
        let next = self.seen.len();
        match self.seen.get(&key) {
            Some(number) => format!("{kind}#{number}"),
            None => {
                self.seen.insert(key, next);
                let text = self.text(&found);
                format!("{kind}#{next}<{text}>")
            }
        }
    }
}

/// Without `Span { … }`.
fn without_spans(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("Span { file") {
        out += &rest[..at];
        rest = rest[at..].find('}').map_or("", |end| &rest[at + end + 1..]);
    }
    out + rest
}
