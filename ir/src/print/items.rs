//! The items of a program's text: combiners, intrinsics, kernels, the op.

use super::exprs::Printer;
use super::names::Names;
use super::syntax::*;
use super::{host, kernel, stmts};
use crate::ast::{self, Item, ItemKind, Pattern, StmtKind as S, TypeKind};
use crate::program::*;
use crate::typing::Ctx;
use std::cell::RefCell;
use std::collections::HashSet;

pub fn items(program: &Program) -> Vec<Item> {
    let (combines, intrinsics, kernels) = item_names(program);
    let used = RefCell::new(HashSet::new());
    let printer = |ctx| {
        let mut names = Names::default();
        combines.iter().chain(&intrinsics).for_each(|n| names.reserve(n));
        Printer { ctx, names, combines: &combines, intrinsics: &intrinsics, used: &used, parts: Vec::new() }
    };
    // what runs first, for it says which combiners and intrinsics there are
    let mut running = Vec::new();
    for id in launched(&program.entry.steps) {
        let Some(k) = program.kernels.get(id) else { continue };
        let mut p = printer(Ctx::kernel(program, k));
        running.push(ItemKind::Kernel(kernel::kernel(&mut p, k, &kernels[id.index()])));
    }
    if !program.entry.lone {
        let mut p = printer(Ctx::host(program, &program.entry));
        running.push(ItemKind::Op(host::host(&mut p, &program.entry, &kernels)));
    }
    let is_used = |name: &String| used.borrow().contains(name);
    let mut kinds = Vec::new();
    // by name: the order of first use differs between nested source and its normal form
    for (id, c) in by_name(program.combines.iter().map(|(id, c)| (id, c, &combines[id.index()]))) {
        if is_used(&combines[id.index()]) {
            let mut p = printer(Ctx::pure(program, &c.func));
            kinds.push(ItemKind::Combine(combine(&mut p, c, &combines[id.index()])));
        }
    }
    // an intrinsic may use others, which stand before it in the arena
    let mut pure = Vec::new();
    for (id, i) in program.intrinsics.iter().rev() {
        let name = &intrinsics[id.index()];
        if is_used(name) {
            let mut p = printer(Ctx::pure(program, &i.means));
            pure.push((id, ItemKind::Intrinsic(intrinsic(&mut p, i, name)), name));
        }
    }
    kinds.extend(by_name(pure.into_iter()).map(|(_, kind)| kind));
    kinds.extend(running);
    kinds.into_iter().map(|kind| Item { kind, span: super::nowhere() }).collect()
}

/// The kernels in the order of their first launches.
fn launched(steps: &[Step]) -> Vec<KernelId> {
    let mut found = Vec::new();
    let mut open: Vec<&Step> = steps.iter().rev().collect();
    while let Some(step) = open.pop() {
        match &step.kind {
            StepKind::Launch { kernel, .. } if !found.contains(kernel) => found.push(*kernel),
            StepKind::Launch { .. } => {}
            StepKind::If { then, other, .. } => open.extend(then.iter().chain(other).rev()),
            StepKind::For { body, .. } => open.extend(body.iter().rev()),
        }
    }
    found
}

fn by_name<'a, I, T>(items: impl Iterator<Item = (I, T, &'a String)>) -> impl Iterator<Item = (I, T)> {
    let mut list: Vec<_> = items.collect();
    list.sort_by_key(|&(_, _, name)| name);
    list.into_iter().map(|(id, item, _)| (id, item))
}

/// Names of combiners, intrinsics and kernels. The entry keeps its own; specialisations of one kernel are numbered.
fn item_names(program: &Program) -> (Vec<String>, Vec<String>, Vec<String>) {
    let mut names = Names::default();
    if !program.entry.lone {
        names.reserve(&program.entry.name);
    }
    let kernels = program.kernels.iter().map(|(_, k)| names.declare_item(&k.name)).collect();
    let combines = program.combines.iter().map(|(_, c)| names.declare_item(&c.name)).collect();
    let intrinsics = program.intrinsics.iter().map(|(_, i)| names.declare_item(&i.name)).collect();
    (combines, intrinsics, kernels)
}

fn scalar_type(e: Elem) -> ast::Type {
    ty(TypeKind::Elem(elem(e)))
}

fn tuple_type(mut parts: Vec<ast::Type>) -> ast::Type {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => ty(TypeKind::Tuple(parts.into_iter().chain(last).collect())),
    }
}

/// The `let`s and the results of a function of scalars.
fn pure_body(p: &mut Printer, f: &PureFn, wants: &[Elem]) -> ast::Block {
    p.names.open();
    let mut list = Vec::new();
    for &(local, value) in &f.lets {
        let constant = p.constant(value).is_some();
        let ty = constant.then(|| stmts::value_type(&f.body.locals[local].ty));
        let value = p.typed(value);
        let pattern = Pattern::Name(ident(p.names.declare_local(local, &f.body)));
        list.push(stmt(S::Let { pattern, ty, value, options: Vec::new() }));
    }
    let result = |(i, &e): (usize, &ExprId)| {
        let typed = f.body.types.get(e.index()).and_then(Type::elem) == wants.get(i).copied();
        if typed { p.typed(e) } else { p.expr(e) }
    };
    let results = tuple(f.results.iter().enumerate().map(result).collect());
    p.names.close();
    ast::Block { stmts: list, tail: Some(Box::new(results)), span: super::nowhere() }
}

fn combine(p: &mut Printer, c: &Combine, printed: &str) -> ast::Combine {
    let elems: Vec<Elem> = c.identity.iter().map(|&(e, _)| e).collect();
    let n = elems.len();
    p.names.reserve("a");
    p.names.reserve("b");
    for (i, &local) in c.func.params.iter().enumerate() {
        let side = name(if i < n { "a" } else { "b" });
        let part = if n == 1 { side } else { field(side, (i % n).to_string()) };
        p.parts.push((local, part));
    }
    let whole = || tuple_type(elems.iter().map(|&e| scalar_type(e)).collect());
    ast::Combine {
        name: ident(printed),
        params: ["a", "b"].map(|side| (ident(side), whole())).into(),
        result: whole(),
        identity: tuple(c.identity.iter().map(|&(e, bits)| literal(e, bits)).collect()),
        commutative: c.commutative,
        body: pure_body(p, &c.func, &elems),
    }
}

fn intrinsic(p: &mut Printer, i: &Intrinsic, printed: &str) -> ast::Intrinsic {
    let func = &i.means;
    p.names.open();
    let mut params = Vec::new();
    for &local in &func.params {
        let elem = func.body.locals.get(local).and_then(|l| l.ty.elem()).unwrap_or(Elem::F32);
        params.push((ident(p.names.declare_local(local, &func.body)), scalar_type(elem)));
    }
    let results: Vec<Elem> =
        func.results.iter().filter_map(|r| func.body.types.get(r.index()).and_then(Type::elem)).collect();
    let means = pure_body(p, func, &results);
    p.names.close();
    let (value, ulp) = match i.bound {
        ErrorBound::Ulp(n) => (n, true),
        ErrorBound::Abs(x) => (x, false),
    };
    ast::Intrinsic {
        name: ident(printed),
        params,
        result: tuple_type(results.into_iter().map(scalar_type).collect()),
        means,
        bound: ast::Bound { value: plain_number(value), ulp, span: super::nowhere() },
        spellings: i.spellings.iter().map(spelling).collect(),
    }
}

fn spelling(s: &Spelling) -> ast::Spelling {
    ast::Spelling {
        backend: ident(&s.backend),
        from: ident(&s.from),
        to: s.to.as_ref().map(ident),
        open_ended: s.open_ended,
        text: s.text.clone(),
        text_span: super::nowhere(),
    }
}
