//! Functions and combiners that a program brings along.

use super::state::{Combine, El, F32, Function, Gen, I32, Var};
use pantile_abi::DType;

impl Gen<'_> {
    /// `fn` items that act element by element, for some types that the kernel uses.
    pub fn make_functions(&mut self) {
        for _ in 0..self.c.below(3) {
            let el = self.numeric();
            if self.functions.iter().any(|f| f.el == el) {
                continue;
            }
            self.function(el);
        }
        if self.c.chance(1, 3) {
            self.combiner_item();
        }
        if self.c.chance(1, 4) {
            self.tile_function();
        }
        if self.c.chance(1, 6) {
            self.intrinsic_item();
        }
    }

    /// Writes an item's body with nothing of the kernel in sight.
    fn apart_from_kernel<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> (R, String) {
        let ty = self.type_alias.take();
        let ext = std::mem::take(&mut self.extent_alias);
        let (vars, lines) = (std::mem::take(&mut self.vars), std::mem::take(&mut self.lines));
        let indent = std::mem::replace(&mut self.indent, 1);
        let result = f(self);
        let body = std::mem::replace(&mut self.lines, lines).join("\n");
        (self.type_alias, self.extent_alias, self.vars, self.indent) = (ty, ext, vars, indent);
        (result, body)
    }

    /// `fn g(s: tile T[R, C], m: tile T[R]) -> (tile A[R, C], tile B[R])`
    fn tile_function(&mut self) {
        let name = format!("g{}", self.number);
        let el = self.numeric();
        let shape = self.shape(2);
        let [r, c] = shape[..] else { return };
        let generic = self.c.chance(1, 2);
        let results = (self.numeric(), self.numeric());
        let ((head, edges), body) = self.apart_from_kernel(|g| {
            g.closed = true;
            if generic {
                g.type_alias = Some((el.dtype(), "T".into()));
                g.extent_alias = vec![(r.into(), "R".into())];
                if c != r {
                    g.extent_alias.push((c.into(), "C".into()));
                }
            }
            let full = |n: usize| vec![super::state::Edge::Full; n];
            g.vars.push(Var { shape: vec![r, c], edges: full(2), ..Var::scalar("s", el) });
            g.vars.push(Var { shape: vec![r], edges: full(1), ..Var::scalar("m", el) });
            for i in 0..g.c.below(3) {
                let el = g.numeric();
                let shape = if g.c.chance(1, 2) { vec![r, c] } else { vec![r] };
                let e = g.value(el, &shape, 2);
                g.line(format!("let u{i} = {}", e.text));
                g.vars.push(Var { shape, edges: e.edges, ..Var::scalar(format!("u{i}"), el) });
            }
            let (a, b) = (g.value(results.0, &[r, c], 2), g.value(results.1, &[r], 2));
            g.line(format!("({}, {})", a.text, b.text));
            let (t, rows, cols) = (g.ty(el), g.ext(r), g.ext(c));
            let (x, y) = (g.ty(results.0), g.ty(results.1));
            g.closed = false;
            let cols_generic = if c != r { ", const C: int" } else { "" };
            let generics = if generic { format!("<T: dtype, const R: int{cols_generic}>") } else { String::new() };
            let head = format!(
                "{generics}(s: tile {t}[{rows}, {cols}], m: tile {t}[{rows}]) -> (tile {x}[{rows}, {cols}], tile {y}[{rows}])"
            );
            (head, (a.edges, b.edges))
        });
        self.functions_text += &format!("fn {name}{head} {{\n{body}\n}}\n\n");
        self.tile_functions.push(super::state::TileFunction { name, el, shape: [r, c], results, edges });
    }

    /// `intrinsic fn` with a meaning and no spelling for the CPU.
    fn intrinsic_item(&mut self) {
        let name = format!("h{}", self.number);
        let el = El::D(self.c.pick(&[DType::F32, DType::F64]));
        let params = 1 + self.c.below(2);
        let (ty, body) = self.apart_from_kernel(|g| {
            g.pure = true;
            for name in &["x", "y"][..params] {
                g.vars.push(Var { any_shape: true, ..Var::scalar(*name, el) });
            }
            let e = g.value(el, &[], 2);
            let e = g.settle(e, el);
            g.line(format!("({} + x * 0)", e.text));
            g.pure = false;
            g.ty(el)
        });
        let head: Vec<String> = ["x", "y"][..params].iter().map(|n| format!("{n}: {ty}")).collect();
        self.functions_text += &format!(
            "intrinsic fn {name}({}) -> {ty} {{\n    means {{\n    {body}\n    }} within 4 ulp\n    \
             cuda(sm_75..) \"nothing({{x}})\"\n}}\n\n",
            head.join(", ")
        );
        self.functions.push(Function { name, el, params });
    }

    fn function(&mut self, el: El) {
        let name = format!("f{}_{}", self.number, self.functions.len());
        let params = 1 + self.c.below(3);
        let generic = !matches!(el, El::Index) && self.c.chance(1, 2);
        let class = match el {
            _ if el.is_float() => self.c.pick(&["float", "dtype"]),
            _ => self.c.pick(&["int", "dtype"]),
        };
        let names = ["x", "y", "z"];
        let (ty, body) = self.apart_from_kernel(|g| {
            // inside, the type is called by its generic name
            g.type_alias = generic.then(|| (el.dtype(), "T".to_string()));
            g.pure = true;
            for name in &names[..params] {
                g.vars.push(Var { any_shape: true, ..Var::scalar(*name, el) });
            }
            for i in 0..g.c.below(3) {
                let e = g.value(el, &[], 2);
                let e = g.settle(e, el);
                g.line(format!("let u{i} = {}", e.text));
                g.vars.push(Var { any_shape: true, ..Var::scalar(format!("u{i}"), el) });
            }
            let e = g.value(el, &[], 2);
            // a result must have the arguments' shape: the first parameter takes part in it
            let e = g.settle(e, el);
            g.line(if el.is_float() {
                format!("({} + x * 0)", e.text)
            } else {
                format!("({} ^ (x ^ x))", e.text)
            });
            g.pure = false;
            g.ty(el)
        });
        let head: Vec<String> = names[..params].iter().map(|n| format!("{n}: {ty}")).collect();
        let generics = if generic { format!("<T: {class}>") } else { String::new() };
        self.functions_text +=
            &format!("fn {name}{generics}({}) -> {ty} {{\n{body}\n}}\n\n", head.join(", "));
        self.functions.push(Function { name, el, params });
    }

    /// A combiner of pairs that is associative: each part by itself, or the first deciding for both.
    fn combiner_item(&mut self) {
        let name = format!("fold{}", self.number);
        let (parts, identity, body) = match self.c.below(4) {
            0 => ((I32, I32), "(0, -2147483648)", "(a.0 + b.0, max(a.1, b.1))"),
            1 => (
                (F32, I32),
                "(-inf, 2147483647)",
                "let above = b.0 > a.0 || (isnan(b.0) && !isnan(a.0))\n    \
                 let level = b.0 == a.0 || (isnan(b.0) && isnan(a.0))\n    \
                 if above || (level && b.1 < a.1) { b } else { a }",
            ),
            2 => ((El::D(DType::U32), F32), "(0, inf)", "(a.0 ^ b.0, min(a.1, b.1))"),
            // the last element that counts
            _ => ((I32, F32), "(0, 0.0)", "(a.0 | b.0, if b.1 != 0.0 { b.1 } else { a.1 })"),
        };
        let (x, y) = (self.plain(parts.0), self.plain(parts.1));
        self.functions_text += &format!(
            "combine {name}(a: ({x}, {y}), b: ({x}, {y})) -> ({x}, {y}) identity {identity} {{\n    {body}\n}}\n\n"
        );
        self.combines.push(Combine { name, parts });
    }

    /// A type's own name: generics of the kernel are not in sight.
    fn plain(&self, el: El) -> &'static str {
        el.dtype().name()
    }
}
