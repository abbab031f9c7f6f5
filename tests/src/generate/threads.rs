//! Kernels of thread level: the head, scalar statements, control that may differ between threads.

use super::state::{BOOL, El, Ex, Gen, I32, Mode, Param, Var};
use pantile_abi::DType;

impl Gen<'_> {
    pub fn thread_kernel(&mut self) {
        self.grid_line();
        self.threads_line();
        let mut depth = 3;
        self.thread_statements(9, &mut depth);
        self.thread_results();
    }

    pub fn thread_count(&self) -> i64 {
        self.threads.iter().map(|t| t.1).product()
    }

    fn threads_line(&mut self) {
        let shapes: [&[i64]; 10] =
            [&[32], &[4, 8], &[64], &[2, 32], &[1], &[33], &[3, 5], &[48], &[2, 2, 16], &[8, 4]];
        let shape = self.c.pick(&shapes);
        self.ordered = self.c.chance(1, 2);
        let names = ["x", "y", "z"];
        for (i, &n) in shape.iter().enumerate() {
            let name = format!("t{}", names[i]);
            self.vars.push(Var { varies: n > 1, ..Var::index(name.clone(), 0, n - 1) });
            self.threads.push((name, n));
        }
        let names: Vec<String> = self.threads.iter().map(|t| t.0.clone()).collect();
        let ordered = if self.ordered { " ordered" } else { "" };
        match shape {
            [n] => self.line(format!("threads {n}{ordered} as {}", names[0])),
            _ => {
                let list: Vec<String> = shape.iter().map(i64::to_string).collect();
                self.line(format!("threads ({}){ordered} as ({})", list.join(", "), names.join(", ")));
            }
        }
        let mut text = names[0].clone();
        for (name, (_, n)) in names.iter().zip(&self.threads).skip(1) {
            text = format!("({text} * {n} + {name})");
        }
        let count = self.thread_count();
        self.line(format!("let lin = {text}"));
        self.vars.push(Var { varies: count > 1, ..Var::index("lin", 0, count - 1) });
    }

    pub fn thread_statements(&mut self, most: usize, depth: &mut u32) {
        for i in 0..most {
            if i > 0 && (!self.c.chance(4, 5) || self.budget <= 0) {
                break;
            }
            self.thread_statement(depth);
        }
    }

    /// A statement that all threads of the block reach together.
    fn thread_statement(&mut self, depth: &mut u32) {
        match self.c.below(24) {
            0 | 1 => self.thread_let(),
            2 | 3 => self.thread_var(),
            4..=6 => self.thread_change(),
            7 => self.thread_store_something(),
            8 | 9 => self.divergent_if(depth),
            10 => self.divergent_loop(depth),
            11 | 12 if *depth > 0 => self.nested(depth, Self::uniform_loop),
            13 if *depth > 0 => self.nested(depth, Self::uniform_if),
            14 | 15 => self.array(),
            16 | 17 => self.exchange(),
            18 => self.allreduce(),
            19 if self.ordered => self.warp_talk(),
            19 => self.allreduce(),
            20 => self.shared_atomics(),
            21 => self.global_atomic(),
            22 => self.thread_reducer(),
            _ => self.tile_between(),
        }
    }

    // ---- scalars ------------------------------------------------------------------------------------------------

    /// A scalar that may differ between threads, or not.
    fn thread_value(&mut self, el: El, varies: bool, depth: u32) -> Ex {
        match varies {
            true => self.scalar(el, depth),
            false => self.uniformly(|g| g.scalar(el, depth)),
        }
    }

    pub fn thread_type(&mut self) -> El {
        self.any_type()
    }

    fn thread_let(&mut self) {
        if self.c.chance(1, 4) {
            let e = self.index(2);
            let name = self.fresh("n");
            self.line(format!("let {name} = {}", e.text));
            self.vars.push(Var { varies: true, ..Var::index(name, e.lo, e.hi) });
            return;
        }
        let el = self.thread_type();
        let varies = self.c.chance(3, 4);
        let e = self.thread_value(el, varies, 3);
        self.name_scalar(el, e, varies, false);
    }

    fn name_scalar(&mut self, el: El, e: Ex, varies: bool, mutable: bool) {
        let name = self.fresh(if mutable { "m" } else { "t" });
        let word = if mutable { "var" } else { "let" };
        let ty = if self.c.chance(1, 3) { format!(": {}", self.ty(el)) } else { String::new() };
        self.line(format!("{word} {name}{ty} = {}", e.text));
        self.vars.push(Var { mutable, varies, ..Var::scalar(name, el) });
    }

    fn thread_var(&mut self) {
        let el = self.thread_type();
        let varies = self.c.chance(3, 4);
        let e = self.thread_value(el, varies, 2);
        self.name_scalar(el, e, varies, true);
    }

    pub fn thread_change(&mut self) {
        let alone = self.divergent > 0;
        let fits = |v: &&Var| v.mutable && v.shape.is_empty() && v.el != El::Index && (v.varies || !alone);
        let mutable: Vec<Var> = self.vars.iter().filter(fits).cloned().collect();
        if mutable.is_empty() {
            let el = self.thread_type();
            let e = self.scalar(el, 1);
            return if alone { self.name_scalar(el, e, true, false) } else { self.thread_var() };
        }
        let v = mutable[self.c.below(mutable.len())].clone();
        let ops: &[&str] = match v.el {
            BOOL => &["&=", "|=", "^=", "="],
            _ if v.el.is_float8() => &["="],
            _ if v.el.is_float() => &["+=", "-=", "*=", "="],
            _ => &["+=", "-=", "*=", "&=", "|=", "^=", "="],
        };
        let op = self.c.pick(ops);
        let e = self.thread_value(v.el, v.varies, 2);
        self.line(format!("{} {op} {}", v.name, e.text));
    }

    // ---- stores -------------------------------------------------------------------------------------------------

    fn thread_store_something(&mut self) {
        let el = self.thread_type();
        let e = self.scalar(el, 2);
        self.thread_store(el, e);
    }

    /// Writes a scalar of each thread to a place of its own.
    pub fn thread_store(&mut self, el: El, e: Ex) {
        let (el, text) = match el {
            El::Index => (El::D(DType::I64), format!("i64({})", e.text)),
            _ if el.bits() == 4 => (I32, format!("i32({})", e.text)),
            _ => (el, e.text),
        };
        let mut extents: Vec<i64> = self.grid.iter().map(|g| g.1).collect();
        let mut axes: Vec<String> = self.grid.iter().map(|g| g.0.clone()).collect();
        let count = self.thread_count();
        let mode = if self.c.chance(1, 5) { Mode::InOut } else { Mode::Out };
        match self.c.below(4) {
            0 | 1 => {
                extents.extend(self.threads.iter().map(|t| t.1));
                axes.extend(self.threads.iter().map(|t| t.0.clone()));
                let t = self.new_tensor(el.dtype(), mode, &extents);
                self.line(format!("{}[{}] = {text}", t.name, axes.join(", ")));
            }
            2 => {
                // ragged: the last threads have no place
                let n = (count - self.c.range(0, 5)).max(1);
                extents.push(n);
                let t = self.new_tensor(el.dtype(), mode, &extents);
                // what the value needs of the block may not stand under the guard
                let name = self.fresh("t");
                self.line(format!("let {name} = {text}"));
                let bound = t.dims.last().map_or(n.to_string(), |d| d.name.clone().unwrap_or(n.to_string()));
                axes.push("lin".into());
                self.line(format!("if lin < {bound} {{ {}[{}] = {name} }}", t.name, axes.join(", ")));
            }
            _ => {
                // blocks one after the other along one axis
                let blocks: i64 = extents.iter().product();
                let mut at = axes[0].clone();
                for (name, (_, n)) in axes.iter().zip(&self.grid).skip(1) {
                    at = format!("({at} * {n} + {name})");
                }
                let t = self.new_tensor(el.dtype(), mode, &[blocks * count]);
                self.line(format!("{}[{at} * {count} + lin] = {text}", t.name));
            }
        }
    }

    fn thread_results(&mut self) {
        let mut left = 4;
        let vars: Vec<Var> = self.vars.iter().rev().cloned().collect();
        for v in vars {
            let axis = |list: &[(String, i64)]| list.iter().any(|t| t.0 == v.name);
            let given = self.params.iter().any(|p| p.name() == v.name);
            if left == 0 || given || axis(&self.threads) || axis(&self.grid) || !v.shape.is_empty() {
                continue;
            }
            self.thread_store(v.el, Ex::scalar(v.name.clone()));
            left -= 1;
        }
        let written = |p: &Param| matches!(p, Param::Tensor(t) if t.mode != Mode::In);
        if !self.params.iter().any(written) {
            self.thread_store(El::Index, Ex::scalar("lin"));
        }
    }

    // ---- control that differs ---------------------------------------------------------------------------------------

    /// Runs `f` where threads may be apart: nothing of the block may stand there.
    fn apart(&mut self, f: impl FnOnce(&mut Self)) {
        self.divergent += 1;
        self.lazily(|g| g.scoped(f));
        self.divergent -= 1;
    }

    fn divergent_if(&mut self, depth: &mut u32) {
        let c = self.scalar(BOOL, 2);
        self.open(format!("if {}", c.text));
        self.apart(|g| g.own_statements(3, depth));
        if self.c.chance(1, 2) {
            self.indent -= 1;
            self.line("} else {");
            self.indent += 1;
            self.apart(|g| g.own_statements(2, depth));
        }
        self.close();
    }

    /// Statements of one thread.
    fn own_statements(&mut self, most: usize, depth: &mut u32) {
        for i in 0..most {
            if i > 0 && (!self.c.chance(2, 3) || self.budget <= 0) {
                break;
            }
            match self.c.below(7) {
                0..=2 => self.thread_change(),
                3 => {
                    let el = self.thread_type();
                    let e = self.scalar(el, 2);
                    self.name_scalar(el, e, true, self.divergent > 0);
                }
                4 => self.own_shared(),
                5 if *depth > 0 => self.nested(depth, Self::divergent_if),
                6 if *depth > 0 => self.nested(depth, Self::divergent_loop),
                _ => self.thread_store_something(),
            }
        }
    }

    /// A thread's own element of shared memory.
    fn own_shared(&mut self) {
        let count = self.thread_count();
        let fits = |m: &&super::state::Mem| {
            m.shared && m.shape.iter().map(|&n| i64::from(n)).product::<i64>() == count
        };
        let Some(m) = self.mems.iter().rev().find(fits).cloned() else { return self.thread_change() };
        let at = self.own_place(m.shape.len());
        let e = self.scalar(m.el, 1);
        self.line(format!("{}[{at}] = {}", m.name, e.text));
    }

    pub fn own_place(&self, rank: usize) -> String {
        match rank {
            1 => "lin".to_string(),
            _ => self.threads.iter().map(|t| t.0.as_str()).collect::<Vec<_>>().join(", "),
        }
    }

    /// A loop whose threads may leave at different times.
    fn divergent_loop(&mut self, depth: &mut u32) {
        if *depth == 0 {
            return self.thread_change();
        }
        *depth -= 1;
        let var = self.fresh("k");
        let most = self.c.range(1, 4);
        match self.c.below(3) {
            0 => {
                let end = self.index(1);
                self.open(format!("for {var} in 0..min({}, {most})", end.text));
                self.apart(|g| {
                    g.vars.push(Var { varies: true, ..Var::index(var, 0, most - 1) });
                    g.own_statements(2, depth);
                    if g.c.chance(1, 3) {
                        let c = g.scalar(BOOL, 1);
                        let word = g.c.pick(&["break", "continue"]);
                        g.line(format!("if {} {{ {word} }}", c.text));
                    }
                });
            }
            1 => {
                self.line(format!("var {var}: index = lin % {most}"));
                self.open(format!("while {var} < {most}"));
                self.line(format!("{var} += 1"));
                self.apart(|g| {
                    g.vars.push(Var { varies: true, ..Var::index(var, 0, most) });
                    g.own_statements(2, depth);
                });
            }
            _ => {
                self.line(format!("var {var}: index = 0"));
                self.open("while true");
                self.line(format!("{var} += 1"));
                self.apart(|g| {
                    let c = g.scalar(BOOL, 1);
                    g.line(format!("if {var} > {most} || {} {{ break }}", c.text));
                    g.vars.push(Var { varies: true, ..Var::index(var, 0, most) });
                    g.own_statements(2, depth);
                });
            }
        }
        self.close();
        *depth += 1;
    }
}
