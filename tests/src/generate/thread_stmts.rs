//! Statements of thread level that several threads take part in, arrays of one thread, uniform control.

use super::state::{BOOL, El, Ex, Gen, I32, Mem, Mode, Var};
use pantile_abi::DType;

impl Gen<'_> {
    pub fn uniform_if(&mut self, depth: &mut u32) {
        let c = self.uniformly(|g| g.scalar(BOOL, 2));
        self.open(format!("if {}", c.text));
        self.scoped(|g| g.thread_statements(3, depth));
        if self.c.chance(1, 2) {
            self.indent -= 1;
            self.line("} else {");
            self.indent += 1;
            self.scoped(|g| g.thread_statements(2, depth));
        }
        self.close();
    }

    pub fn uniform_loop(&mut self, depth: &mut u32) {
        let (head, lo, hi) = self.loop_head();
        let var = self.fresh("k");
        self.open(format!("for {var} in {head}"));
        self.loops.push(self.names);
        self.scoped(|g| {
            g.vars.push(Var::index(var, lo, hi));
            g.thread_statements(4, depth);
            if g.c.chance(1, 5) {
                g.jump();
            }
        });
        self.loops.pop();
        self.close();
    }

    /// An array of each thread: filled, changed, read.
    pub fn array(&mut self) {
        let el = self.thread_type();
        let el = if el.bits() == 4 { I32 } else { el };
        let name = self.fresh("a");
        let n = self.c.pick(&[4u32, 1, 3, 8]);
        let two = self.c.chance(1, 4);
        let shape = if two { vec![n, 2] } else { vec![n] };
        self.line(format!("var {name}: {}[{}]", self.ty(el), self.shape_text(&shape)));
        let vars: Vec<String> = shape.iter().map(|_| self.fresh("v")).collect();
        let kinds = ["unroll", "vectorized", "plain"];
        let mut heads = Vec::new();
        for (i, v) in vars.iter().enumerate() {
            let inner = i + 1 == vars.len();
            let kind = if inner { self.c.pick(&kinds) } else { "plain" };
            heads.push(match kind {
                "plain" => format!("for {v} in 0..{}", shape[i]),
                kind => format!("for {v} in {kind}({})", shape[i]),
            });
        }
        for head in &heads {
            self.open(head);
        }
        self.divergent += 1;
        self.lazily(|g| {
            g.scoped(|g| {
                for (v, &n) in vars.iter().zip(&shape) {
                    g.vars.push(Var::index(v.clone(), 0, i64::from(n) - 1));
                }
                let e = match g.c.below(3) {
                    0 => {
                        let t = g.tensor(el.dtype(), 1);
                        let pad = g.value(el, &[], 0);
                        Ex::scalar(format!("({}[lin * {n} + {}] or {})", t.name, vars[0], pad.text))
                    }
                    _ => g.scalar(el, 2),
                };
                g.line(format!("{name}[{}] = {}", vars.join(", "), e.text));
            });
        });
        self.divergent -= 1;
        for _ in &heads {
            self.close();
        }
        self.mems.push(Mem { name, el, shape, shared: false });
        if self.c.chance(1, 2) {
            self.sum_array(el, n);
        }
    }

    fn sum_array(&mut self, el: El, n: u32) {
        let Some(m) = self.mems.last().cloned() else { return };
        if el == BOOL || el.is_float8() || m.shape.len() > 1 {
            return;
        }
        let (sum, v) = (self.fresh("m"), self.fresh("v"));
        self.line(format!("var {sum}: {} = 0", self.ty(el)));
        self.line(format!("for {v} in unroll({n}) {{ {sum} += {}[{v}] }}", m.name));
        self.vars.push(Var { mutable: true, varies: true, ..Var::scalar(sum, el) });
    }

    /// Threads write elements of shared memory and read each other's in the next statement.
    pub fn exchange(&mut self) {
        let el = self.thread_type();
        let el = if el.bits() == 4 { I32 } else { el };
        let count = self.thread_count();
        let shaped = self.threads.len() > 1 && self.c.chance(1, 2);
        let shape: Vec<u32> =
            if shaped { self.threads.iter().map(|t| t.1 as u32).collect() } else { vec![count as u32] };
        let name = self.fresh("s");
        self.line(format!("shared {name}: {}[{}]", self.ty(el), self.shape_text(&shape)));
        let e = self.scalar(el, 2);
        let place = match self.c.below(4) {
            0 if !shaped => format!("{count} - 1 - lin"),
            1 if !shaped => format!("(lin + {}) % {count}", self.c.range(0, count)),
            2 if !shaped && count % 2 == 0 => "i32(lin) ^ 1".to_string(),
            _ => self.own_place(shape.len()),
        };
        self.line(format!("{name}[{place}] = {}", e.text));
        if self.c.chance(1, 6) {
            self.line("barrier");
        }
        self.mems.push(Mem { name: name.clone(), el, shape: shape.clone(), shared: true });
        for _ in 0..1 + self.c.below(2) {
            let from: Vec<String> = shape.iter().map(|&n| self.inside(n.into())).collect();
            let t = self.fresh("t");
            self.line(format!("let {t} = {name}[{}]", from.join(", ")));
            self.vars.push(Var { varies: true, ..Var::scalar(t, el) });
        }
        if self.c.chance(1, 3) {
            // each its own element again
            let at = self.own_place(shape.len());
            let e = self.scalar(el, 1);
            self.line(format!("{name}[{at}] = {}", e.text));
            let n = self.fresh("t");
            let from: Vec<String> = shape.iter().map(|&n| self.inside(n.into())).collect();
            self.line(format!("let {n} = {name}[{}]", from.join(", ")));
            self.vars.push(Var { varies: true, ..Var::scalar(n, el) });
        }
    }

    /// Some of the thread axes, or a team.
    fn over(&mut self) -> String {
        let names: Vec<String> = self.threads.iter().map(|t| t.0.clone()).collect();
        match self.c.below(4) {
            0 => names[0].clone(),
            1 => names[names.len() - 1].clone(),
            2 if names.len() > 1 => format!("({})", names.join(", ")),
            _ => "block".to_string(),
        }
    }

    pub fn allreduce(&mut self) {
        let over = self.over();
        if let Some(c) = self.combines.first().cloned()
            && self.c.chance(1, 3)
        {
            let (x, y) = (self.scalar(c.parts.0, 2), self.scalar(c.parts.1, 2));
            let (a, b) = (self.fresh("t"), self.fresh("t"));
            self.line(format!(
                "let ({a}, {b}) = allreduce({}, ({}, {}), over = {over})",
                c.name, x.text, y.text
            ));
            for (name, el) in [(a, c.parts.0), (b, c.parts.1)] {
                self.vars.push(Var { varies: true, ..Var::scalar(name, el) });
            }
            return;
        }
        let el = self.numeric();
        let el = if self.c.chance(1, 8) { BOOL } else { el };
        let comb = self.combiner(el);
        let e = self.scalar(el, 2);
        let name = self.fresh("t");
        self.line(format!("let {name} = allreduce({comb}, {}, over = {over})", e.text));
        // over all threads the value is one for the block
        let varies = over != "block";
        self.vars.push(Var { varies, ..Var::scalar(name, el) });
    }

    /// Shuffles and votes of a warp; warps are whole.
    pub fn warp_talk(&mut self) {
        if self.thread_count() % 32 != 0 {
            return self.allreduce();
        }
        let name = self.fresh("t");
        if self.c.chance(1, 3) {
            let c = self.scalar(BOOL, 2);
            let f = self.c.pick(&["vote_any", "vote_all", "ballot"]);
            self.line(format!("let {name} = {f}({})", c.text));
            let el = if f == "ballot" { El::D(DType::U32) } else { BOOL };
            self.vars.push(Var { varies: true, ..Var::scalar(name, el) });
            return;
        }
        let el = self.numeric();
        let e = self.scalar(el, 2);
        let f = self.c.pick(&["shfl_xor", "shfl", "shfl_up", "shfl_down"]);
        let by = match f {
            "shfl" => self.inside(32),
            "shfl_xor" => self.c.pick(&["1", "2", "5", "16", "31"]).to_string(),
            _ => self.c.pick(&["1", "2", "7", "16"]).to_string(),
        };
        let width = match f {
            "shfl_xor" | "shfl" => "",
            _ => self.c.pick(&["", ", width = 8", ", width = 16"]),
        };
        self.line(format!("let {name} = {f}({}, {by}{width})", e.text));
        self.vars.push(Var { varies: true, ..Var::scalar(name, el) });
    }

    pub fn shared_atomics(&mut self) {
        let el = El::D(self.c.pick(&[DType::I32, DType::U32, DType::I64, DType::U64]));
        let count = self.thread_count();
        let n = self.c.range(1, count.min(9));
        let name = self.fresh("h");
        self.line(format!("shared {name}: {}[{n}]", self.ty(el)));
        let first = self.c.range(0, 5);
        self.line(format!("if lin < {n} {{ {name}[lin] = {first} }}"));
        for _ in 0..1 + self.c.below(2) {
            let (at, e) = self.lazily(|g| (g.inside(n), g.scalar(el, 1)));
            let f = self.c.pick(&[
                "atomic_add",
                "atomic_max",
                "atomic_min",
                "atomic_and",
                "atomic_or",
                "atomic_xor",
            ]);
            let call = format!("{f}({name}[{at}], {})", e.text);
            if self.c.chance(1, 2) {
                let c = self.lazily(|g| g.scalar(BOOL, 1));
                self.line(format!("if {} {{ {call} }}", c.text));
            } else {
                self.line(call);
            }
        }
        let (t, at) = (self.fresh("t"), self.inside(n));
        self.line(format!("let {t} = {name}[{at}]"));
        self.vars.push(Var { varies: true, ..Var::scalar(t, el) });
    }

    pub fn global_atomic(&mut self) {
        let el = El::D(self.c.pick(&[DType::I32, DType::U32, DType::I64, DType::U64]));
        let n = self.c.range(1, 9);
        let (at, e) = (self.inside(n), self.scalar(el, 2));
        let t = self.new_tensor(el.dtype(), Mode::InOut, &[n]);
        let f = self.c.pick(&["atomic_add", "atomic_max", "atomic_min", "atomic_xor"]);
        self.line(format!("{f}({}[{at}], {})", t.name, e.text));
    }

    pub fn thread_reducer(&mut self) {
        let el = self.numeric();
        let el = if el.bits() == 4 { I32 } else { el };
        let name = self.fresh("r");
        let comb = self.combiner(el);
        self.line(format!("var {name}: reducer({comb}) {}", self.ty(el)));
        for _ in 0..1 + self.c.below(2) {
            let e = self.lazily(|g| g.scalar(el, 2));
            let fold = format!("{name} op= {}", e.text);
            match self.c.below(3) {
                0 => self.line(fold),
                1 => {
                    let c = self.lazily(|g| g.scalar(BOOL, 1));
                    self.line(format!("if {} {{ {fold} }}", c.text));
                }
                _ => {
                    let (k, n) = (self.fresh("k"), self.c.range(1, 3));
                    self.line(format!("for {k} in 0..{n} {{ {fold} }}"));
                }
            }
        }
        self.line(format!("let {name}v = {name}"));
        self.vars.push(Var::scalar(format!("{name}v"), el));
    }

    /// Tile statements among thread code: a tile through shared memory, a fold, `once`.
    pub fn tile_between(&mut self) {
        match self.c.below(4) {
            0 => {
                let el = self.thread_type();
                let e = self.uniformly(|g| g.lazily(|g| g.scalar(el, 2)));
                let name = self.fresh("t");
                self.line(format!("let {name} = once {{ {} }}", e.text));
                self.vars.push(Var::scalar(name, el));
            }
            1 => {
                let el = self.numeric();
                if let Some(e) = self.fold_to_scalar(el, 2) {
                    self.name_uniform(el, e);
                }
            }
            2 => {
                let (el, shape) = self.some_tile();
                let e = self.uniformly(|g| g.value(el, &shape, 2));
                let name = self.fresh("t");
                self.line(format!("let {name} = {}", e.text));
                self.vars.push(Var { shape, edges: e.edges, varies: false, ..Var::scalar(name, el) });
            }
            _ => {
                let (el, shape) = self.some_tile();
                let el = if el.bits() == 4 { I32 } else { el };
                let e = self.uniformly(|g| g.whole(el, &shape, 2));
                let name = self.fresh("s");
                self.line(format!("shared {name}: {}[{}]", self.ty(el), self.shape_text(&shape)));
                self.line(format!("{name}[{}] = {}", vec![":"; shape.len()].join(", "), e.text));
                let at: Vec<String> = shape.iter().map(|&n| self.inside(n.into())).collect();
                let t = self.fresh("t");
                self.line(format!("let {t} = {name}[{}]", at.join(", ")));
                self.vars.push(Var { varies: true, ..Var::scalar(t, el) });
            }
        }
    }

    fn name_uniform(&mut self, el: El, e: Ex) {
        let name = self.fresh("t");
        self.line(format!("let {name} = {}", e.text));
        self.vars.push(Var::scalar(name, el));
    }
}
