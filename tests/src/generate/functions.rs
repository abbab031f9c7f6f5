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
    }

    fn function(&mut self, el: El) {
        let name = format!("f{}_{}", self.number, self.functions.len());
        let params = 1 + self.c.below(3);
        let generic = !matches!(el, El::Index) && self.c.chance(1, 2);
        let class = match el {
            _ if el.is_float() => self.c.pick(&["float", "dtype"]),
            _ => self.c.pick(&["int", "dtype"]),
        };
        // inside, the type is called by its generic name
        let outer = std::mem::replace(&mut self.type_alias, generic.then(|| (el.dtype(), "T".to_string())));
        let aliases = std::mem::take(&mut self.extent_alias);
        let (vars, lines) = (std::mem::take(&mut self.vars), std::mem::take(&mut self.lines));
        let indent = std::mem::replace(&mut self.indent, 1);
        let ty = self.ty(el);
        self.pure = true;
        let names = ["x", "y", "z"];
        for name in &names[..params] {
            self.vars.push(Var { any_shape: true, ..Var::scalar(*name, el) });
        }
        for i in 0..self.c.below(3) {
            let e = self.value(el, &[], 2);
            let e = self.settle(e, el);
            self.line(format!("let u{i} = {}", e.text));
            self.vars.push(Var { any_shape: true, ..Var::scalar(format!("u{i}"), el) });
        }
        let e = self.value(el, &[], 2);
        // a result must have the arguments' shape: the first parameter takes part in it
        let e = self.settle(e, el);
        let result =
            if el.is_float() { format!("({} + x * 0)", e.text) } else { format!("({} ^ (x ^ x))", e.text) };
        self.line(&result);
        self.pure = false;
        let head: Vec<String> = names[..params].iter().map(|n| format!("{n}: {ty}")).collect();
        let generics = if generic { format!("<T: {class}>") } else { String::new() };
        let body = self.lines.join("\n");
        self.functions_text +=
            &format!("fn {name}{generics}({}) -> {ty} {{\n{body}\n}}\n\n", head.join(", "));
        self.type_alias = outer;
        self.extent_alias = aliases;
        (self.vars, self.lines, self.indent) = (vars, lines, indent);
        self.functions.push(Function { name, el, params });
    }

    /// A combiner of pairs that is associative: each part by itself, or the first deciding for both.
    fn combiner_item(&mut self) {
        let name = format!("c{}", self.number);
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
