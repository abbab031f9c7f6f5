//! Statements of kernels as places in a text.

use pantile_ir::ast::{Block, ItemKind, Stmt, StmtKind};
use pantile_ir::span::Sources;
use pantile_ir::text;

/// One statement, or the head of one that holds others.
#[derive(Clone, Debug)]
pub struct Site {
    pub kernel: String,
    pub start: usize,
    pub end: usize,
    /// The head of `if`, `for`, `while`, `parallel`.
    pub head: bool,
    /// A declaration of memory, threads or the grid.
    pub memory: bool,
}

/// The statements of all kernels of a text, in order.
pub fn sites(source: &str) -> Vec<Site> {
    let mut sources = Sources::default();
    let file = sources.add("kernels.tile", None, source);
    let (ast, _) = text::parse(file, &sources);
    let mut out = Vec::new();
    for item in &ast.items {
        if let ItemKind::Kernel(k) = &item.kind {
            block(&k.name.name, &k.body, &mut out);
        }
    }
    out
}

fn block(kernel: &str, b: &Block, out: &mut Vec<Site>) {
    for s in &b.stmts {
        statement(kernel, s, out);
    }
}

fn statement(kernel: &str, s: &Stmt, out: &mut Vec<Site>) {
    let (start, end) = (s.span.start as usize, s.span.end as usize);
    let mut push = |start: usize, end: usize, head: bool, memory: bool| {
        if end > start {
            out.push(Site { kernel: kernel.into(), start, end, head, memory });
        }
    };
    match &s.kind {
        StmtKind::If { then, other, .. } => {
            push(start, then.span.start as usize, true, false);
            block(kernel, then, out);
            other.iter().for_each(|b| block(kernel, b, out));
        }
        StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::Parallel { body, .. } => {
            push(start, body.span.start as usize, true, false);
            block(kernel, body, out);
        }
        StmtKind::Param { .. }
        | StmtKind::StaticAssert { .. }
        | StmtKind::Plan(_)
        | StmtKind::Role { .. } => {}
        StmtKind::Memory { .. } | StmtKind::Grid { .. } | StmtKind::Threads { .. } => {
            push(start, end, false, true)
        }
        _ => push(start, end, false, false),
    }
}
