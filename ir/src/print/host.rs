//! The host side as syntax.

use super::exprs::Printer;
use super::kernel::{attrs, param, parameter_names};
use super::syntax::*;
use crate::ast::{self, StmtKind as S};
use crate::program::*;

pub fn host(p: &mut Printer, h: &Host, kernels: &[String]) -> ast::Op {
    parameter_names(p, &h.dims, &h.args);
    let params = h.args.iter().map(|(_, a)| param(p, a)).collect();
    let wheres = h.wheres.iter().map(|(e, _)| p.expr(*e)).collect();
    p.names.open();
    let mut body = Vec::new();
    for (id, w) in h.workspaces.iter() {
        let name = p.names.declare(&w.name);
        p.names.workspaces.set(id, name.clone());
        let shape = w.shape.iter().map(|&e| p.expr(e)).collect();
        body.push(stmt(S::Workspace {
            name: ident(name),
            elem: elem(w.elem.into()),
            shape,
            zeroed: w.zeroed,
        }));
    }
    body.extend(steps(p, &h.steps, kernels));
    p.names.close();
    ast::Op {
        name: ident(&h.name),
        generics: Vec::new(),
        params,
        attrs: attrs(MathMode::Contract, h.deterministic),
        wheres,
        body: block(body),
    }
}

fn steps(p: &mut Printer, list: &[Step], kernels: &[String]) -> Vec<ast::Stmt> {
    list.iter().map(|s| stmt(step(p, &s.kind, kernels))).collect()
}

fn step(p: &mut Printer, kind: &StepKind, kernels: &[String]) -> ast::StmtKind {
    match kind {
        StepKind::Launch { kernel, args } => {
            let arg = |a: &LaunchArg| match a {
                LaunchArg::Arg(a) => name(p.names.args.get(*a)),
                LaunchArg::Workspace(w) => name(p.names.workspaces.get(*w)),
                LaunchArg::Scalar(e) => p.typed(*e),
            };
            S::Launch {
                kernel: ident(kernels.get(kernel.index()).cloned().unwrap_or_default()),
                generics: Vec::new(),
                args: args.iter().map(arg).collect(),
                params: Vec::new(),
            }
        }
        StepKind::If { cond, then, other } => {
            let cond = p.condition(*cond);
            let then = block(steps(p, then, kernels));
            let other = (!other.is_empty()).then(|| block(steps(p, other, kernels)));
            S::If { is_const: false, cond, then, other }
        }
        StepKind::For { var, lo, hi, body } => {
            let range = ast::Range { lo: p.expr(*lo), hi: p.expr(*hi), step: None, span: super::nowhere() };
            p.names.open();
            let ir = p.body();
            let var = ident(p.names.declare_local(*var, ir));
            let body = block(steps(p, body, kernels));
            p.names.close();
            let segments = vec![ast::Segment { range, consts: Vec::new() }];
            S::For { var, kind: ast::LoopKind::Serial, segments, carry: Vec::new(), body }
        }
    }
}
