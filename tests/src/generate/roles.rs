//! Roles: a producer and the groups of a consumer, with a ring of tiles between them.

use super::state::{BOOL, Edge, El, Ex, Gen, I32, Mode, Var};

/// What both roles must agree on.
struct Line {
    ring: String,
    el: El,
    shape: Vec<u32>,
    groups: u32,
    /// The loop of both, with the range of its variable.
    head: (String, i64, i64),
    /// Filled by copies, which are counted, from this tensor of tiles one after another.
    source: Option<String>,
    /// A slot is kept until the next has come.
    keeps: bool,
}

impl Gen<'_> {
    /// Once a kernel: teams, a ring, both roles, and what the consumers leave in shared memory.
    pub fn roles(&mut self) {
        self.has_roles = true;
        let head = self.loop_head();
        let (el, shape) = self.some_tile();
        let groups = self.c.pick(&[1u32, 2, 1, 3]);
        let keeps = self.c.chance(1, 3);
        let (ring, p, m) = (self.fresh("q"), self.fresh("p"), self.fresh("m"));
        let counted = self.c.chance(1, 3);
        let source = counted.then(|| {
            let mut extents: Vec<i64> = shape.iter().map(|&n| i64::from(n)).collect();
            extents[0] = (extents[0] * self.c.range(1, 3) - self.c.range(0, 1)).max(1);
            self.new_tensor(el.dtype(), Mode::In, &extents).name
        });
        let slots = 2 + u32::from(keeps) + self.c.below(3) as u32;
        let z = self.fresh("s");
        let (ty, list) = (self.ty(el), self.shape_text(&shape));
        self.line(format!("team {p}: 1 group of 32"));
        self.line(format!("team {m}: {groups} group{} of 32", if groups == 1 { "" } else { "s" }));
        let scalar = if counted { "" } else { ", n: shared i32" };
        let fill = if counted { "counted" } else { "generic" };
        self.line(format!(
            "ring {ring}[{slots}] {p} -> {m} {{ x: shared {ty}[{list}]{scalar} }} fill {fill}"
        ));
        self.line(format!("shared {z}: {ty}[{groups}, {list}]"));
        let all = Line { ring, el, shape, groups, head, source, keeps };
        // names of the block are read by all; each role may change one that the other leaves alone
        let outer: Vec<bool> = self.vars.iter().map(|v| v.mutable).collect();
        let free: Vec<usize> = (0..outer.len())
            .filter(|&i| outer[i] && !all.head.0.contains(self.vars[i].name.as_str()))
            .collect();
        let chosen = [self.choose(&free), self.choose(&free)];
        let mut order = [0, 1];
        if self.c.chance(1, 2) {
            order.reverse();
        }
        for role in order {
            for (i, v) in self.vars.iter_mut().enumerate() {
                let own = chosen[role] == Some(i) && (role == 0 || chosen[0] != Some(i) && groups == 1);
                v.mutable = own;
            }
            self.scoped(|g| if role == 0 { g.producer(&p, &all) } else { g.consumer(&m, &z, &all) });
        }
        for (v, was) in self.vars.iter_mut().zip(outer) {
            v.mutable = was;
        }
        let spans = ", :".repeat(all.shape.len());
        for g in 0..groups {
            let rank = all.shape.len();
            self.bind(all.el, all.shape.clone(), Ex::full(format!("{z}[{g}{spans}]"), rank), false);
        }
    }

    fn choose(&mut self, from: &[usize]) -> Option<usize> {
        if from.is_empty() || self.c.chance(1, 3) { None } else { Some(from[self.c.below(from.len())]) }
    }

    fn producer(&mut self, team: &str, all: &Line) {
        self.open(format!("role {team}"));
        self.role_statements(2, true);
        self.rounds(all, String::new(), |g, k| {
            let w = g.fresh("w");
            g.line(format!("let {w} = acquire {}", all.ring));
            let spans = vec![":"; all.shape.len()].join(", ");
            match &all.source {
                Some(source) => {
                    let n = all.shape[0];
                    let rest: String = all.shape[1..].iter().map(|n| format!(", 0 +: {n}")).collect();
                    let pad = g.c.pick(if all.el == BOOL { &["false", "true"] } else { &["0", "1"] });
                    g.line(format!("copy.async {source}[{k}*{n} +: {n}{rest}] pad {pad} -> {w}.x"));
                }
                None => {
                    g.role_statements(2, true);
                    let e = g.whole(all.el, &all.shape, 2);
                    let e = g.settle(e, all.el);
                    let n = g.uniformly(|g| g.scalar(I32, 2));
                    let n = g.settle(n, I32);
                    g.line(format!("{w}.x[{spans}] = {}", e.text));
                    g.line(format!("{w}.n = {}", n.text));
                }
            }
            g.line(format!("commit {w}"));
        });
        self.close();
    }

    fn consumer(&mut self, team: &str, z: &str, all: &Line) {
        let group = self.fresh("g");
        self.open(format!("role {team} as {group}"));
        self.vars.push(Var::index(group.clone(), 0, i64::from(all.groups) - 1));
        self.role_statements(2, all.groups == 1);
        let own = self.vars.len();
        let e = self.whole(all.el, &all.shape, 1);
        self.bind(all.el, all.shape.clone(), e, true);
        let held = self.fresh("h");
        let carry =
            if all.keeps { format!(" carry ({held}: slot({})? = none)", all.ring) } else { String::new() };
        self.rounds(all, carry, |g, _| {
            let v = g.fresh("w");
            g.line(format!("let {v} = wait {}", all.ring));
            let spans = vec![":"; all.shape.len()].join(", ");
            let rank = all.shape.len();
            g.bind(all.el, all.shape.clone(), Ex::full(format!("{v}.x[{spans}]"), rank), false);
            if all.source.is_none() {
                g.bind(I32, Vec::new(), Ex::scalar(format!("{v}.n")), false);
            }
            g.role_statements(3, all.groups == 1);
            match all.keeps {
                true => {
                    g.line(format!("release {held}"));
                    g.line(format!("next {v}"));
                }
                false => g.line(format!("release {v}")),
            }
        });
        if all.keeps {
            self.line(format!("release {held}"));
        }
        let v = self.vars[own].clone();
        let last = match v.edges.iter().all(|e| *e == Edge::Full) {
            true => Ex::full(v.name, all.shape.len()),
            false => self.whole(all.el, &all.shape, 1),
        };
        let last = self.settle(last, all.el);
        self.line(format!("{z}[{group}{}] = {}", ", :".repeat(all.shape.len()), last.text));
        self.close();
    }

    /// The loop that both roles run, with the same text.
    fn rounds(&mut self, all: &Line, carry: String, body: impl FnOnce(&mut Self, &str)) {
        let (head, lo, hi) = &all.head;
        let k = self.fresh("k");
        self.open(format!("for {k} in {head}{carry}"));
        self.loops.push(self.names);
        self.scoped(|g| {
            g.vars.push(Var::index(k.clone(), *lo, *hi));
            body(g, &k);
        });
        self.loops.pop();
        self.close();
    }

    /// Statements that touch nothing of another role's; `alone`: no second group runs the same.
    fn role_statements(&mut self, most: usize, alone: bool) {
        for _ in 0..self.c.below(most + 1) {
            match self.c.below(6) {
                0 => self.let_tile(),
                1 => self.let_scalar(),
                2 | 3 => self.change(),
                4 if alone => self.store_something(),
                _ => self.var_tile(),
            }
        }
    }
}
