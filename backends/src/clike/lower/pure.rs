//! Intrinsics of the text: the spelling of the nearest architecture, else the meaning as a function.

use super::{Cx, Fun, Result, Val, Var, is_narrow};
use crate::clike::tree::{C, S, Ty};
use crate::clike::write;
use pantile_ir::program::*;

impl<'a> Fun<'_, 'a> {
    pub(super) fn intrinsic(&mut self, id: IntrinsicId, args: &Args) -> Result<Val> {
        let mut vals = Vec::with_capacity(args.len());
        for &a in args {
            vals.push(self.expr(a)?.c);
        }
        let def: &'a Intrinsic = &self.cx.program.intrinsics[id];
        let name = self.cx.intrinsics[&id].clone();
        if !self.cx.prelude.made(&name) {
            let text = match spelling(self.cx, def) {
                Some(s) => self.spelled(&name, def, s)?,
                None => meaning(self.cx, &name, def)?,
            };
            self.cx.prelude.make(&name, text);
        }
        Ok(Val::of(C::call(name, vals), result(def)))
    }

    /// `asm: op {r}, {x};` or an expression over `{x}`. Narrow floats are words there.
    fn spelled(&mut self, name: &str, def: &Intrinsic, s: &Spelling) -> Result<String> {
        let out = result(def);
        let assembly = s.text.strip_prefix("asm:").map(str::trim);
        let mut text = assembly.unwrap_or(&s.text).to_string();
        let mut inputs = Vec::new();
        let mut words = String::new();
        let mut params = Vec::new();
        for (i, &p) in def.means.params.iter().enumerate() {
            let local = &def.means.body.locals[p];
            let elem = local.ty.elem().unwrap_or(Elem::F32);
            params.push(format!("{} x{i}", register(elem).name()));
            let mut operand = format!("x{i}");
            if let Elem::D(d) = elem
                && is_narrow(d)
            {
                let word = self.to_word(Val::of(C::name(operand), elem), d)?;
                operand = format!("w{i}");
                words += &format!("    const {} {operand} = {};\n", Ty::of(d).name(), write::expr(&word));
            }
            let stands = if assembly.is_some() { format!("%{}", i + 1) } else { operand.clone() };
            text = text.replace(&format!("{{{}}}", local.name), &stands);
            inputs.push(format!("\"{}\"({operand})", constraint(elem)));
        }
        let word = match out {
            Elem::D(d) => Ty::of(d),
            Elem::Index => Ty::I64,
        };
        let set = match assembly {
            Some(_) => {
                let quoted = text.replace("{r}", "%0").replace('\\', "\\\\").replace('"', "\\\"");
                format!(
                    "    {} r;\n    asm(\"{quoted}\" : \"={}\"(r) : {});\n",
                    word.name(),
                    constraint(out),
                    inputs.join(", ")
                )
            }
            None => format!("    const {} r = {text};\n", word.name()),
        };
        let back = match out {
            Elem::D(d) => self.from_word(C::name("r"), d)?.c,
            Elem::Index => C::name("r"),
        };
        let head = format!("FN {} {name}({})", register(out).name(), params.join(", "));
        Ok(format!("{head} {{\n{words}{set}    return {};\n}}\n", write::expr(&back)))
    }
}

fn register(elem: Elem) -> Ty {
    match elem {
        Elem::Index => Ty::I64,
        Elem::D(d) => Ty::of(d).register(),
    }
}

fn result(def: &Intrinsic) -> Elem {
    let f = &def.means;
    f.results.first().and_then(|r| f.body.types.get(r.index())).and_then(Type::elem).unwrap_or(Elem::F32)
}

fn constraint(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 => "f",
        Elem::D(pantile_abi::DType::F64) => "d",
        Elem::Index => "l",
        Elem::D(d) => match d.bits() {
            64 => "l",
            32 => "r",
            _ => "h",
        },
    }
}

/// Of the spellings whose span of architectures holds this one, the one that begins nearest.
fn spelling<'a>(cx: &Cx, def: &'a Intrinsic) -> Option<&'a Spelling> {
    let chain = &cx.arch.chain;
    let place = |name: &str| chain.iter().position(|a| a == name);
    let fits = |s: &&Spelling| {
        let end = if s.open_ended { s.to.as_deref() } else { s.to.as_deref().or(Some(&s.from)) };
        s.backend == cx.arch.backend.name()
            && place(&s.from).is_some()
            && end.is_none_or(|t| place(t).is_none_or(|p| p == 0))
    };
    def.spellings.iter().filter(fits).min_by_key(|s| place(&s.from))
}

/// The meaning, as a function of the source.
fn meaning<'a>(cx: &mut Cx<'a>, name: &str, def: &'a Intrinsic) -> Result<String> {
    let f = &def.means;
    let out = result(def);
    let mut fun = Fun::new(cx, &f.body, None);
    fun.span = def.span;
    let mut params = Vec::new();
    for &p in &f.params {
        let local = &f.body.locals[p];
        let v = Val::of(C::int(0), local.ty.elem().unwrap_or(Elem::F32));
        let name = fun.names.take(&local.name);
        params.push(format!("{} {name}", v.ty.name()));
        fun.locals.insert(p, Var { name, ty: v.ty, range: v.range });
    }
    for &(l, value) in &f.lets {
        let v = fun.value(value)?;
        fun.define(l, v)?;
    }
    let Some(&r) = f.results.first() else { return Err(fun.not_threaded("an intrinsic without a result")) };
    let v = fun.value(r)?;
    fun.push(S::Return(v.c));
    let mut text = format!("FN {} {name}({}) {{\n", register(out).name(), params.join(", "));
    write::stmts(&mut text, &fun.stmts, 1);
    Ok(text + "}\n")
}
