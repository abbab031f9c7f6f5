//! Kernels of tile level: the head, and statements of the block.

use super::state::{BOOL, Edge, El, Ex, Gen, I32, Mem, Mode, Param, TensorParam, Var};
use pantile_abi::DType;

/// Kinds of statement; the first are the plainest.
const STATEMENTS: usize = 30;
/// How deep control nests.
const TOP: u32 = 3;

impl Gen<'_> {
    pub fn kernel(&mut self) {
        self.head();
        if self.c.chance(2, 5) {
            return self.thread_kernel();
        }
        self.grid_line();
        let mut depth = TOP;
        self.statements(9, &mut depth);
        self.results();
    }

    /// Generics and params: names for a type and some extents.
    pub fn head(&mut self) {
        if self.c.chance(1, 4) {
            let d = self.c.pick(&[DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32, DType::I16]);
            let class = match El::D(d).is_float() {
                true => self.c.pick(&["float", "dtype"]),
                false => self.c.pick(&["int", "dtype"]),
            };
            self.make_functions();
            self.type_alias = Some((d, "T".into()));
            self.generic_text.push(format!("T: {class}"));
            self.generics.push(("T".into(), d.name().into()));
        } else {
            self.make_functions();
        }
        if self.c.chance(1, 4) {
            let n = i64::from(self.c.pick(&super::memory::EXTENTS));
            self.extent_alias.push((n, "B0".into()));
            self.generic_text.push("const B0: int".into());
            self.generics.push(("B0".into(), n.to_string()));
        }
        if self.c.chance(1, 4) {
            let n = self.c.pick(&[8i64, 4, 24, 16]);
            self.line(format!("param B1 = {n} in 1..=64"));
            self.extent_alias.push((n, "B1".into()));
            if self.c.chance(1, 2) {
                self.line("const B2 = B1 * 2 + 1");
                self.extent_alias.push((n * 2 + 1, "B2".into()));
            }
        }
        for _ in 0..self.c.below(2) {
            let el = if self.c.chance(1, 3) { El::Index } else { self.numeric() };
            let el = if el.bits() == 4 { I32 } else { el };
            let name = self.scalar_param(el);
            self.vars.push(match el {
                El::Index => Var::index(name, 1, 9),
                _ => Var::scalar(name, el),
            });
        }
    }

    pub fn grid_line(&mut self) {
        let axes = 1 + self.c.below(2);
        let mut extents = Vec::new();
        for i in 0..axes {
            let n = self.c.range(1, 3);
            let text = match self.c.below(3) {
                0 => n.to_string(),
                1 => self.dim_text(n),
                _ => {
                    let part = self.c.range(1, 8);
                    let whole = n * part - self.c.range(0, part - 1);
                    format!("ceildiv({}, {part})", self.dim_text(whole))
                }
            };
            extents.push(text);
            let name = ["i", "j"][i].to_string();
            self.vars.push(Var::index(name.clone(), 0, n - 1));
            self.grid.push((name, n));
        }
        let cost = if self.c.chance(1, 8) { " cost = i + 1" } else { "" };
        let names: Vec<&str> = self.grid.iter().map(|g| g.0.as_str()).collect();
        match &extents[..] {
            [one] => self.line(format!("grid {one} as {}{cost}", names[0])),
            _ => self.line(format!("grid ({}) as ({}){cost}", extents.join(", "), names.join(", "))),
        }
    }

    /// A dim of some value that a tensor binds: one is made for it if need be.
    fn dim_text(&mut self, n: i64) -> String {
        if let Some((name, _)) = self.dims.iter().find(|d| d.1 == n) {
            return name.clone();
        }
        let t = self.new_tensor(DType::F32, Mode::In, &[n]);
        match &t.dims[0].name {
            Some(name) => name.clone(),
            None => n.to_string(),
        }
    }

    /// Up to `most` statements of the block.
    pub fn statements(&mut self, most: usize, depth: &mut u32) {
        for i in 0..most {
            if i > 0 && (!self.c.chance(4, 5) || self.budget <= 0) {
                break;
            }
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: &mut u32) {
        match self.c.below(STATEMENTS) {
            0 | 1 => self.let_tile(),
            2 => self.let_scalar(),
            3 => self.var_tile(),
            4 => self.var_scalar(),
            5..=7 => self.change(),
            8 => self.store_something(),
            9 | 10 if *depth > 0 => self.nested(depth, Self::if_stmt),
            11..=13 if *depth > 0 => self.nested(depth, Self::for_stmt),
            14 => self.accumulate(),
            15 => self.fold_tuple(),
            16 => self.reducer(),
            17 => self.parallel(),
            18 => self.shared_regions(),
            19 => self.form(),
            20 if *depth > 0 => self.nested(depth, Self::const_control),
            21 if *depth > 0 => self.nested(depth, Self::while_stmt),
            22 => self.region_atomic(),
            23 => self.gather(),
            24 => self.call_tiles(),
            25 => self.update_in_place(),
            26 => self.tuple_reducer(),
            27 => self.swap(),
            28 | 29 if *depth == TOP && !self.has_roles => self.roles(),
            _ => self.let_tile(),
        }
    }

    pub fn nested(&mut self, depth: &mut u32, f: fn(&mut Self, &mut u32)) {
        *depth -= 1;
        f(self, depth);
        *depth += 1;
    }

    // ---- names --------------------------------------------------------------------------------------------------

    pub fn let_tile(&mut self) {
        let (el, shape) = self.some_tile();
        let e = self.value(el, &shape, 3);
        self.bind(el, shape, e, false);
    }

    pub fn bind(&mut self, el: El, shape: Vec<u32>, e: Ex, mutable: bool) {
        let name = self.fresh(if mutable { "m" } else { "t" });
        let word = if mutable { "var" } else { "let" };
        let tile = if shape.is_empty() { String::new() } else { "tile ".into() };
        let ty = match self.c.below(3) {
            1 => {
                let list =
                    if shape.is_empty() { String::new() } else { format!("[{}]", self.shape_text(&shape)) };
                format!(": {tile}{}{list}", self.ty(el))
            }
            _ => String::new(),
        };
        let e = if ty.is_empty() { self.settle(e, el) } else { e };
        self.line(format!("{word} {name}{ty} = {}", e.text));
        let loops = self.loops.len();
        self.vars.push(Var { shape, edges: e.edges, mutable, loops, ..Var::scalar(name, el) });
    }

    pub fn let_scalar(&mut self) {
        if self.c.chance(1, 4) {
            let e = self.index(2);
            let name = self.fresh("n");
            self.line(format!("let {name} = {}", e.text));
            self.vars.push(Var::index(name, e.lo, e.hi));
            return;
        }
        let el = self.any_type();
        let e = self.scalar(el, 3);
        self.bind(el, Vec::new(), e, false);
    }

    pub fn var_tile(&mut self) {
        let (el, shape) = self.some_tile();
        if self.c.chance(1, 5) {
            // declared first, assigned next
            let name = self.fresh("m");
            self.line(format!("var {name}: tile {}[{}]", self.ty(el), self.shape_text(&shape)));
            let e = self.value(el, &shape, 2);
            self.line(format!("{name} = {}", e.text));
            let loops = self.loops.len();
            self.vars.push(Var { shape, edges: e.edges, mutable: true, loops, ..Var::scalar(name, el) });
            return;
        }
        let e = self.value(el, &shape, 2);
        self.bind(el, shape, e, true);
    }

    fn var_scalar(&mut self) {
        let el = self.any_type();
        let e = self.scalar(el, 2);
        self.bind(el, Vec::new(), e, true);
    }

    /// An assignment or update of a name.
    pub fn change(&mut self) {
        let mutable: Vec<usize> =
            (0..self.vars.len()).filter(|&i| self.vars[i].mutable && self.vars[i].el != El::Index).collect();
        if mutable.is_empty() {
            return self.var_tile();
        }
        let at = mutable[self.c.below(mutable.len())];
        let v = self.vars[at].clone();
        let ops: &[&str] = match v.el {
            BOOL => &["&=", "|=", "^="],
            _ if v.el.is_float8() => &[],
            _ if v.el.is_float() => &["+=", "-=", "*=", "/="],
            _ => &["+=", "-=", "*=", "&=", "|=", "^="],
        };
        let set = ops.is_empty() || self.c.chance(1, 3);
        if !set {
            let op = self.c.pick(ops);
            let e =
                if v.shape.is_empty() { self.value(v.el, &[], 2) } else { self.operand(v.el, &v.shape, 2) };
            // a product that is added as a whole must have the variable's own shape
            let stretched = !v.shape.is_empty() && e.text.contains(" @ ");
            let text = if stretched { format!("where(bool(true), {0}, {0})", e.text) } else { e.text };
            return self.line(format!("{} {op} {text}", v.name));
        }
        // a box that outlives its loop may not depend on the loop's variable
        let leaves = self.loops.len() > v.loops;
        let e = if leaves { self.whole(v.el, &v.shape, 2) } else { self.value(v.el, &v.shape, 2) };
        self.line(format!("{} = {}", v.name, e.text));
        // on another path it may have kept its old edge
        let edges: Vec<Edge> = v.edges.iter().zip(&e.edges).map(|(a, b)| a.join(b)).collect();
        self.vars[at].edges = edges;
    }

    /// `let (a, b) = g(s, m)`
    fn call_tiles(&mut self) {
        let Some(f) = self.tile_functions.first().cloned() else { return self.let_tile() };
        let (s, m) = (self.whole(f.el, &f.shape, 2), self.whole(f.el, &f.shape[..1], 2));
        let (a, b) = (self.fresh("t"), self.fresh("t"));
        self.line(format!("let ({a}, {b}) = {}({}, {})", f.name, s.text, m.text));
        let shape = f.shape.to_vec();
        self.vars.push(Var { shape: shape.clone(), edges: f.edges.0, ..Var::scalar(a, f.results.0) });
        self.vars.push(Var { shape: shape[..1].to_vec(), edges: f.edges.1, ..Var::scalar(b, f.results.1) });
    }

    /// `(a, b) = (b, a)` of two names of one type.
    fn swap(&mut self) {
        let pair = self.vars.iter().rev().filter(|v| v.mutable && v.el != El::Index).find_map(|v| {
            let twin = |w: &&Var| {
                w.mutable && w.name != v.name && w.el == v.el && w.shape == v.shape && w.edges == v.edges
            };
            self.vars.iter().find(twin).map(|w| (v.name.clone(), w.name.clone()))
        });
        match pair {
            Some((a, b)) => self.line(format!("({a}, {b}) = ({b}, {a})")),
            None => self.change(),
        }
    }

    /// `Z[…] += e`: a region of the block's own, read and written.
    fn update_in_place(&mut self) {
        let el = self.numeric();
        let el = if el.bits() == 4 { I32 } else { el };
        let rank = 1 + self.c.below(2);
        let shape = self.shape(rank);
        let e = self.operand(el, &shape, 2);
        let mut extents: Vec<i64> = self.grid.iter().map(|g| g.1).collect();
        extents.extend(shape.iter().map(|&n| (i64::from(n) + self.c.range(-1, 1)).max(1)));
        let t = self.new_tensor(el.dtype(), Mode::InOut, &extents);
        let mut axes: Vec<String> = self.grid.iter().map(|g| g.0.clone()).collect();
        axes.extend(shape.iter().map(|n| format!("0 +: {n}")));
        let at = axes.join(", ");
        let op = self.c.pick(&["+=", "*=", "="]);
        let e = self.settle(e, el);
        self.line(format!("{}[{at}] {op} {}", t.name, e.text));
        if self.c.chance(1, 2) {
            let edges = vec![Edge::Ragged(self.loops.clone()); rank];
            self.bind(el, shape, Ex::tile(format!("{}[{at}]", t.name), edges), false);
        }
    }

    /// A reducer of pairs by the program's own combiner.
    fn tuple_reducer(&mut self) {
        let Some(c) = self.combines.first().cloned() else { return self.reducer() };
        let name = self.fresh("r");
        let rank = self.c.below(2);
        let shape = self.shape(rank);
        let list = if rank == 0 { String::new() } else { format!("[{}]", self.shape_text(&shape)) };
        let (x, y) = (self.ty(c.parts.0), self.ty(c.parts.1));
        self.line(format!("var {name}: reducer({}) ({x}{list}, {y}{list})", c.name));
        for _ in 0..1 + self.c.below(2) {
            let of = if rank == 0 {
                let r = self.c.below(3);
                self.shape(r)
            } else {
                shape.clone()
            };
            let (x, y) = (self.value(c.parts.0, &of, 2), self.operand(c.parts.1, &of, 1));
            let (x, y) = (self.settle(x, c.parts.0), self.settle(y, c.parts.1));
            self.line(format!("{name} op= ({}, {})", x.text, y.text));
        }
        let (a, b) = (self.fresh("t"), self.fresh("t"));
        self.line(format!("let ({a}, {b}) = {name}"));
        for (name, el) in [(a, c.parts.0), (b, c.parts.1)] {
            let edges = vec![Edge::Full; shape.len()];
            self.vars.push(Var { shape: shape.clone(), edges, ..Var::scalar(name, el) });
        }
    }

    // ---- stores -------------------------------------------------------------------------------------------------

    pub fn store_something(&mut self) {
        let (el, shape) = self.some_tile();
        let e = self.value(el, &shape, 2);
        let e = self.settle(e, el);
        self.store(el, &shape, e);
    }

    /// Writes a value to an output that is made for it: one place for each block.
    pub fn store(&mut self, el: El, shape: &[u32], e: Ex) {
        let (el, e) = match el {
            El::Index => (El::D(DType::I64), Ex { text: format!("i64({})", e.text), ..e }),
            _ if el.bits() == 4 => (El::D(DType::I8), Ex { text: format!("i8({})", e.text), ..e }),
            _ => (el, e),
        };
        let mode = if self.c.chance(1, 5) { Mode::InOut } else { Mode::Out };
        let mut extents: Vec<i64> = self.grid.iter().map(|g| g.1).collect();
        let mut axes: Vec<String> = self.grid.iter().map(|g| g.0.clone()).collect();
        // the first axis may be cut into tiles over the first grid axis instead
        let tiled = !shape.is_empty() && self.c.chance(1, 3);
        for (i, &n) in shape.iter().enumerate() {
            let n64 = i64::from(n);
            let len = self.ext(n);
            if i == 0 && tiled {
                let blocks = extents.remove(0);
                let axis = axes.remove(0);
                extents.push((blocks * n64 - self.c.range(0, 2)).max(1));
                axes.push(format!("{axis} * {len} +: {len}"));
                continue;
            }
            let extent = match self.c.below(4) {
                0 | 1 => n64,
                2 => n64 + self.c.range(0, 3),
                _ => (n64 - self.c.range(0, 3)).max(1),
            };
            extents.push(extent);
            axes.push(format!("0 +: {len}"));
        }
        let t = self.new_tensor(el.dtype(), mode, &extents);
        self.line(format!("{}[{}] = {}", t.name, axes.join(", "), e.text));
    }

    /// Everything in sight that was computed goes to outputs.
    pub fn results(&mut self) {
        let mut left = 4;
        let vars: Vec<Var> = self.vars.iter().rev().cloned().collect();
        let param = |p: &Param, name: &str| p.name() == name;
        for v in vars {
            let given =
                self.params.iter().any(|p| param(p, &v.name)) || self.grid.iter().any(|g| g.0 == v.name);
            if left == 0 || given || v.varies {
                continue;
            }
            self.store(v.el, &v.shape, Ex::tile(v.name.clone(), v.edges.clone()));
            left -= 1;
        }
        let written = |p: &Param| matches!(p, Param::Tensor(t) if t.mode != Mode::In);
        if !self.params.iter().any(written) {
            let e = Ex::full("zeros i32[4]", 1);
            self.store(I32, &[4], e);
        }
    }

    // ---- control ------------------------------------------------------------------------------------------------

    fn if_stmt(&mut self, depth: &mut u32) {
        let c = self.scalar(BOOL, 2);
        self.open(format!("if {}", c.text));
        self.scoped(|g| g.statements(3, depth));
        if self.c.chance(1, 2) {
            self.indent -= 1;
            self.line("} else {");
            self.indent += 1;
            self.scoped(|g| g.statements(2, depth));
        }
        self.close();
    }

    pub fn for_stmt(&mut self, depth: &mut u32) {
        let (head, lo, hi) = self.loop_head();
        let var = self.fresh("k");
        self.open(format!("for {var} in {head}"));
        self.loops.push(self.names);
        self.scoped(|g| {
            g.vars.push(Var::index(var, lo, hi));
            g.statements(4, depth);
            if g.c.chance(1, 8) {
                g.jump();
            }
        });
        self.loops.pop();
        self.close();
    }

    /// `if c { break }` at the end of a loop's body.
    pub fn jump(&mut self) {
        let c = self.uniformly(|g| g.scalar(BOOL, 1));
        let word = self.c.pick(&["break", "continue"]);
        self.line(format!("if {} {{ {word} }}", c.text));
    }

    /// A loop's range as text, with the least and largest value of its variable.
    pub fn loop_head(&mut self) -> (String, i64, i64) {
        let trips = self.c.pick(&[2i64, 1, 3, 0, 4]);
        let lo = self.c.range(0, 2);
        let step = self.c.pick(&[1i64, 1, 2, 3]);
        let hi = lo + trips * step - if trips > 0 { self.c.range(0, step - 1) } else { 0 };
        let last = (lo + (trips - 1) * step).max(lo);
        let steps = if step == 1 { String::new() } else { format!(" step {step}") };
        let end = match self.c.below(3) {
            0 => hi.to_string(),
            1 => match self.dims.iter().find(|d| d.1 <= hi && d.1 >= 0) {
                Some((name, n)) if hi - n == 0 => name.clone(),
                Some((name, n)) => format!("({name} + {})", hi - n),
                None => hi.to_string(),
            },
            _ => {
                let e = self.uniformly(|g| g.index(1));
                // any end: at most `hi`
                return (format!("{lo}..min({}, {hi}){steps}", e.text), lo, last);
            }
        };
        let range = format!("{lo}..{end}{steps}");
        match self.c.below(6) {
            0..=2 => (range, lo, last),
            3 => (format!("pipelined({range}, stages = {})", self.c.range(1, 4)), lo, last),
            4 => (format!("nounroll({range})"), lo, last),
            _ => {
                let n = trips.max(1);
                (format!("unroll({n})"), 0, n - 1)
            }
        }
    }

    fn const_control(&mut self, depth: &mut u32) {
        if self.c.chance(1, 2) {
            let cond = match self.extent_alias.first() {
                Some((n, name)) => format!("{name} == {n}"),
                None => "2 > 1".to_string(),
            };
            let (first, second) = self.c.pick(&[(true, false), (false, true)]);
            let cond = if first { cond } else { format!("!({cond})") };
            self.open(format!("if const {cond}"));
            self.scoped(|g| g.branch(first, depth));
            if second || self.c.chance(1, 2) {
                self.indent -= 1;
                self.line("} else {");
                self.indent += 1;
                self.scoped(|g| g.branch(second, depth));
            }
            return self.close();
        }
        let var = self.fresh("q");
        let list = self.c.chance(1, 3);
        let n = self.c.range(1, 3);
        let head = if list { "[1, 3, 0]".to_string() } else { format!("0..{n}") };
        self.open(format!("for const {var} in {head}"));
        // what a copy makes is gone with it; every copy is its own text, so no loop is open
        self.scoped(|g| {
            let hi = if list { 3 } else { n - 1 };
            g.vars.push(Var::index(var, 0, hi));
            let mut only_names = 0;
            let outer = g.budget;
            g.budget = g.budget.min(12);
            g.const_body(&mut only_names);
            g.budget = outer - 12;
        });
        self.close();
        let _ = depth;
    }

    /// Statements that may be written out several times: no output is made in them.
    fn const_body(&mut self, _: &mut u32) {
        for _ in 0..2 {
            match self.c.below(3) {
                0 => self.change(),
                1 => self.let_tile(),
                _ => self.let_scalar(),
            }
        }
    }

    /// A branch that is taken, or one that only has to parse.
    fn branch(&mut self, taken: bool, depth: &mut u32) {
        if taken {
            self.statements(2, depth);
        } else {
            self.line("let never = nothing_of_the_kind[3] + 1");
        }
    }

    /// A loop that counts by itself.
    fn while_stmt(&mut self, depth: &mut u32) {
        let name = self.fresh("w");
        let most = self.c.range(1, 3);
        self.line(format!("var {name}: index = 0"));
        let c = if self.c.chance(1, 2) {
            format!(" && {}", self.lazily(|g| g.scalar(BOOL, 1)).text)
        } else {
            String::new()
        };
        self.open(format!("while {name} < {most}{c}"));
        self.line(format!("{name} += 1"));
        self.loops.push(self.names);
        self.scoped(|g| {
            g.vars.push(Var::index(name.clone(), 0, most));
            g.statements(2, depth);
        });
        self.loops.pop();
        self.close();
    }

    // ---- products, folds, reducers --------------------------------------------------------------------------------

    fn accumulate(&mut self) {
        let el = El::D(self.c.pick(&[DType::F32, DType::I32, DType::F64]));
        let shape = self.shape(2);
        let name = self.fresh("sum");
        self.line(format!("var {name} = zeros {}[{}]", self.ty(el), self.shape_text(&shape)));
        let var = self.fresh("k");
        let (head, lo, hi) = self.loop_head();
        let looped = self.c.chance(1, 2);
        if looped {
            self.open(format!("for {var} in {head}"));
            self.loops.push(self.names);
        }
        let vars = self.vars.len();
        if looped {
            self.vars.push(Var::index(var, lo, hi));
        }
        if let Some((a, b)) = self.factors(el, &shape, 3) {
            match self.c.below(4) {
                2 => self.line(format!("gemm {}, {} -> {name}", a.text, b.text)),
                3 if !looped => {
                    let c = self.scalar(BOOL, 1);
                    self.line(format!("gemm {}, {} -> {name} (init = {})", a.text, b.text, c.text));
                }
                _ => self.line(format!("{name} += {} @ {}", a.text, b.text)),
            }
        }
        self.vars.truncate(vars);
        if looped {
            self.loops.pop();
            self.close();
        }
        // with `init` the box may be that of the product
        let edges = vec![Edge::Ragged(Vec::new()); 2];
        let loops = self.loops.len();
        self.vars.push(Var { shape, edges, mutable: true, loops, ..Var::scalar(name, el) });
    }

    /// `let (a, b) = reduce(comb, (x, y), axis = k)`
    fn fold_tuple(&mut self) {
        let Some(c) = self.combines.first().cloned() else { return self.let_tile() };
        let rank = 1 + self.c.below(2);
        let shape = self.shape(rank);
        let scan = self.c.chance(1, 3);
        let axis = self.c.below(rank);
        let x = self.value(c.parts.0, &shape, 2);
        let y = if self.c.chance(1, 3) {
            self.value(c.parts.1, &[], 1)
        } else {
            self.value(c.parts.1, &shape, 2)
        };
        let (x, y) = (self.settle(x, c.parts.0), self.settle(y, c.parts.1));
        let (a, b) = (self.fresh("t"), self.fresh("t"));
        let f = if scan { "scan" } else { "reduce" };
        let all = !scan && self.c.chance(1, 3);
        let at = if all { String::new() } else { format!(", axis = {axis}") };
        self.line(format!("let ({a}, {b}) = {f}({}, ({}, {}){at})", c.name, x.text, y.text));
        let mut edges = self.joined(&shape, &[&x, &y]);
        let mut shape = shape;
        if all {
            (edges, shape) = (Vec::new(), Vec::new());
        } else if !scan {
            edges.remove(axis);
            shape.remove(axis);
        }
        for (name, el) in [(a, c.parts.0), (b, c.parts.1)] {
            self.vars.push(Var { shape: shape.clone(), edges: edges.clone(), ..Var::scalar(name, el) });
        }
    }

    /// A reducer of the block: fed by tiles and scalars, or element by element from `parallel`.
    fn reducer(&mut self) {
        let el = self.numeric();
        let el = if el.bits() == 4 { I32 } else { el };
        let name = self.fresh("r");
        let comb = self.combiner(el);
        let rank = self.c.below(2);
        let shape = self.shape(rank);
        let ty = self.ty(el);
        let list = if rank == 0 { String::new() } else { format!("[{}]", self.shape_text(&shape)) };
        self.line(format!("var {name}: reducer({comb}) {ty}{list}"));
        let looped = self.c.chance(1, 2);
        let vars = self.vars.len();
        if looped {
            let (head, lo, hi) = self.loop_head();
            let var = self.fresh("k");
            self.open(format!("for {var} in {head}"));
            self.loops.push(self.names);
            self.vars.push(Var::index(var, lo, hi));
        }
        for _ in 0..1 + self.c.below(2) {
            let of = if rank == 0 {
                let r = self.c.below(3);
                self.shape(r)
            } else {
                shape.clone()
            };
            if rank == 1 && self.c.chance(1, 2) {
                self.parallel_fold(&name, el, shape[0]);
            } else {
                let e = self.value(el, &of, 2);
                let e = self.settle(e, el);
                self.line(format!("{name} op= {}", e.text));
            }
        }
        if looped {
            self.vars.truncate(vars);
            self.loops.pop();
            self.close();
        }
        self.line(format!("let {name}v = {name}"));
        let edges = vec![Edge::Full; shape.len()];
        self.vars.push(Var { shape, edges, ..Var::scalar(format!("{name}v"), el) });
    }

    fn parallel_fold(&mut self, name: &str, el: El, n: u32) {
        let (i, j) = (self.fresh("x"), self.fresh("y"));
        let m = self.c.range(1, 5);
        self.open(format!("parallel ({i}, {j}) in ({n}, {m})"));
        self.scoped(|g| {
            g.vars.push(Var { varies: true, ..Var::index(i.clone(), 0, i64::from(n) - 1) });
            g.vars.push(Var { varies: true, ..Var::index(j, 0, m - 1) });
            let e = g.lazily(|g| g.scalar(el, 2));
            g.line(format!("{name}[{i}] op= {}", e.text));
        });
        self.close();
    }

    // ---- shared memory, regions, gathers ----------------------------------------------------------------------------

    /// `shared` memory filled and changed by `parallel`, read back as a tile.
    fn parallel(&mut self) {
        let (el, shape) = self.some_tile();
        let el = if el.bits() == 4 { I32 } else { el };
        let (name, dtype) = (self.fresh("s"), self.ty(el));
        let list = self.shape_text(&shape);
        self.line(format!("shared {name}: {dtype}[{list}]"));
        let vars: Vec<String> = shape.iter().map(|_| self.fresh("x")).collect();
        for round in 0..1 + self.c.below(2) {
            let head = match &vars[..] {
                [one] => format!("parallel {one} in {list}"),
                _ => format!("parallel ({}) in ({list})", vars.join(", ")),
            };
            self.open(head);
            self.scoped(|g| {
                for (v, &n) in vars.iter().zip(&shape) {
                    g.vars.push(Var { varies: true, ..Var::index(v.clone(), 0, i64::from(n) - 1) });
                }
                let at = vars.join(", ");
                let e = g.lazily(|g| {
                    if round > 0 {
                        g.vars.push(Var { varies: true, ..Var::scalar(format!("{name}[{at}]"), el) });
                    }
                    g.scalar(el, 2)
                });
                g.line(format!("{name}[{at}] = {}", e.text));
            });
            self.close();
        }
        let rank = shape.len();
        let all = vec![":"; rank].join(", ");
        self.mems.push(Mem { name: name.clone(), el, shape: shape.clone(), shared: true });
        self.bind(el, shape, Ex::full(format!("{name}[{all}]"), rank), false);
    }

    /// `shared` memory written as a whole and read in parts.
    fn shared_regions(&mut self) {
        let (el, shape) = self.some_tile();
        let name = self.fresh("s");
        let align = self.c.pick(&["", "", " align 16", " align 128"]);
        self.line(format!("shared {name}: {}[{}]{align}", self.ty(el), self.shape_text(&shape)));
        let all = vec![":"; shape.len()].join(", ");
        let e = self.whole(el, &shape, 2);
        match self.c.below(3) {
            0 => self.line(format!("copy {} -> {name}[{all}]", e.text)),
            _ => self.line(format!("{name}[{all}] = {}", e.text)),
        }
        let mut part = Vec::new();
        let mut axes = Vec::new();
        for &n in &shape {
            let len = self.c.pick(&[n, 1 + n / 2, 1]);
            let room = i64::from(n - len);
            let start = self.uniformly(|g| g.inside(room + 1));
            axes.push(format!("{start} +: {len}"));
            part.push(len);
        }
        let at = axes.join(", ");
        if self.c.chance(1, 2) && !el.is_float8() {
            let value = self.value(el, &part, 1);
            let value = self.settle(value, el);
            self.line(format!("{name}[{at}] = {}", value.text));
        }
        let rank = part.len();
        self.bind(el, part, Ex::full(format!("{name}[{at}]"), rank), false);
    }

    /// Statement forms of reads, folds and scans.
    fn form(&mut self) {
        let (el, shape) = self.some_tile();
        if el.is_float8() {
            return self.let_tile();
        }
        let name = self.fresh("t");
        let comb = self.combiner(el);
        let e = self.value(el, &shape, 2);
        let axis = self.c.below(shape.len());
        let (mut shape, mut edges) = (shape, e.edges.clone());
        if self.c.chance(1, 2) {
            self.line(format!("scan({comb}, {}, axis = {axis}) -> {name}", e.text));
        } else {
            self.line(format!("reduce({comb}, {}, axis = {axis}) -> {name}", e.text));
            shape.remove(axis);
            edges.remove(axis);
        }
        self.vars.push(Var { shape, edges, ..Var::scalar(name, el) });
    }

    /// An atomic update of a region: integers only, so that the order of blocks does not matter.
    fn region_atomic(&mut self) {
        let el = El::D(self.c.pick(&[DType::I32, DType::U32, DType::I64, DType::U64]));
        let rank = 1 + self.c.below(2);
        let shape = self.shape(rank);
        let e = self.value(el, &shape, 2);
        let extents: Vec<i64> = shape.iter().map(|&n| i64::from(n) + self.c.range(0, 2)).collect();
        let t = self.new_tensor(el.dtype(), Mode::InOut, &extents);
        let axes: Vec<String> = shape.iter().map(|n| format!("0 +: {n}")).collect();
        let f = self.c.pick(&["atomic_add", "atomic_max", "atomic_min", "atomic_xor", "atomic_or"]);
        self.line(format!("{f}({}[{}], {})", t.name, axes.join(", "), e.text));
    }

    /// Rows picked by a tile of indices.
    fn gather(&mut self) {
        let el = self.any_type();
        let el = if el.bits() == 4 { I32 } else { el };
        let (rows, n, m) = (self.c.range(1, 9), self.extent(), self.extent());
        let t: TensorParam = self.new_tensor(el.dtype(), Mode::In, &[rows, i64::from(m) + 1]);
        let list = self.value(I32, &[n], 1);
        let edge = list.edges[0].clone();
        let name = self.fresh("t");
        self.line(format!("let {name} = ({} & 1023) % {rows}", list.text));
        let text = format!("{}[{name}, 0 +: {m}]", t.name);
        let edges = vec![edge, Edge::Full];
        self.vars.push(Var { shape: vec![n], edges: vec![edges[0].clone()], ..Var::scalar(name, I32) });
        let n = vec![n, m];
        self.bind(el, n, Ex::tile(text, edges), false);
    }
}
