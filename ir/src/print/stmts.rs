//! Statements as syntax.

use super::exprs::Printer;
use super::ops::{self, Written};
use super::syntax::*;
use crate::ast::{self, AssignOp, Pattern, StmtKind as S, TypeKind};
use crate::program::*;

/// Statements of a block, whose names are in sight until its end.
pub fn block_of(p: &mut Printer, stmts: &Block) -> ast::Block {
    p.names.open();
    let list = statements(p, stmts);
    p.names.close();
    block(list)
}

pub fn statements(p: &mut Printer, stmts: &Block) -> Vec<ast::Stmt> {
    let mut out = Vec::new();
    for s in stmts {
        match &s.kind {
            StmtKind::Roles(roles) => out.extend(roles.iter().map(|r| stmt(role(p, r)))),
            kind => {
                let mut printed = stmt(statement(p, kind));
                printed.stage =
                    s.stage.map(|(stage, rank)| Box::new((signed(stage.into()), signed(rank.into()))));
                out.push(printed);
            }
        }
    }
    out
}

fn statement(p: &mut Printer, kind: &StmtKind) -> ast::StmtKind {
    match kind {
        StmtKind::Let { local, value } => {
            let constant = p.constant(*value).is_some();
            let value = p.typed(*value);
            let ty = constant.then(|| p.body().locals.get(*local).map(|l| value_type(&l.ty))).flatten();
            define(p, &[*local], ty, value)
        }
        StmtKind::Declare { local } => declare(p, *local),
        StmtKind::Buffer { buffer } => super::kernel::buffer(p, *buffer),
        StmtKind::Reducer { reducer } => super::kernel::reducer(p, *reducer),
        StmtKind::Assign { local, value } => ops::assign(p.local(*local), AssignOp::Set, p.typed(*value)),
        StmtKind::Update { local, op, value } => {
            ops::assign(p.local(*local), update_op(*op), p.typed(*value))
        }
        StmtKind::Store { mem, index, value } => {
            ops::assign(p.element(*mem, index, None), AssignOp::Set, p.typed(*value))
        }
        StmtKind::Op { results, op } => match ops::op(p, op) {
            Written::Stmt(s) => s,
            Written::Value(e) if results.is_empty() => S::Expr(e),
            Written::Value(e) => define(p, results, None, e),
        },
        StmtKind::If { cond, then, other } => {
            let cond = p.condition(*cond);
            let then = block_of(p, then);
            let other = (!other.is_empty()).then(|| block_of(p, other));
            S::If { is_const: false, cond, then, other }
        }
        StmtKind::For { .. } => for_loop(p, kind),
        StmtKind::While { cond, body } => {
            let cond = p.expr(*cond);
            S::While { cond, body: block_of(p, body) }
        }
        StmtKind::Parallel { vars, extents, body } => {
            let extents = extents.iter().map(|&e| p.expr(e)).collect();
            p.names.open();
            let body_of = p.body();
            let names = vars.iter().map(|&v| ident(p.names.declare_local(v, body_of))).collect();
            let body = block(statements(p, body));
            p.names.close();
            S::Parallel { names, extents, body }
        }
        StmtKind::Break => S::Break,
        StmtKind::Continue => S::Continue,
        StmtKind::Next { value, .. } => {
            S::Next(ident(value.map_or_else(|| "none".to_owned(), |v| p.names.locals.get(v))))
        }
        StmtKind::Roles(roles) => match roles.first() {
            Some(r) => role(p, r),
            None => S::Expr(tuple(Vec::new())),
        },
    }
}

/// `let` or `var` of one name or a tuple of names.
fn define(p: &mut Printer, locals: &[LocalId], ty: Option<ast::Type>, value: ast::Expr) -> ast::StmtKind {
    let body = p.body();
    let mutable = locals.iter().any(|&l| body.locals.get(l).is_some_and(|l| l.kind == LocalKind::Var));
    let mut names: Vec<Pattern> = locals.iter().map(|&l| placed(p, l)).collect();
    let pattern = match names.pop() {
        Some(only) if names.is_empty() => only,
        last => Pattern::Tuple(names.into_iter().chain(last).collect(), super::nowhere()),
    };
    if mutable {
        S::Var { pattern, ty, value: Some(value), options: Vec::new() }
    } else {
        S::Let { pattern, ty, value, options: Vec::new() }
    }
}

/// A name as it is declared, with what the plan says of it.
fn placed(p: &mut Printer, id: LocalId) -> Pattern {
    let body = p.body();
    let name = ident(p.names.declare_local(id, body));
    let Some(l) = body.locals.get(id) else { return Pattern::Name(name) };
    if l.home == Home::Open && l.layout.is_none() && l.team.is_none() && l.partial.is_none() {
        return Pattern::Name(name);
    }
    let shape = (l.ty.shape(), l.ty.elem().unwrap_or(Elem::Index));
    let place = super::places::placement(p, l.home, (l.layout.as_ref(), None), shape, l.team, l.partial);
    Pattern::Placed(name, Box::new(place))
}

fn declare(p: &mut Printer, local: LocalId) -> ast::StmtKind {
    let body = p.body();
    let pattern = placed(p, local);
    let ty = body.locals.get(local).map(|l| value_type(&l.ty));
    S::Var { pattern, ty, value: None, options: Vec::new() }
}

pub fn value_type(t: &Type) -> ast::Type {
    ty(match t {
        Type::Scalar(e) => TypeKind::Elem(elem(*e)),
        Type::Tile { elem: e, shape } => TypeKind::Tile { elem: elem(*e), shape: extents(shape) },
        Type::Token => TypeKind::Elem(ast::Elem::Name(ident("slot"))),
    })
}

fn update_op(op: Update) -> AssignOp {
    match op {
        Update::Add => AssignOp::Add,
        Update::Sub => AssignOp::Sub,
        Update::Mul => AssignOp::Mul,
        Update::Div => AssignOp::Div,
        Update::Rem => AssignOp::Rem,
        Update::And => AssignOp::And,
        Update::Or => AssignOp::Or,
        Update::Xor => AssignOp::Xor,
        Update::Shl => AssignOp::Shl,
        Update::Shr => AssignOp::Shr,
    }
}

fn for_loop(p: &mut Printer, stmt: &StmtKind) -> ast::StmtKind {
    let StmtKind::For { var, kind, named, segments, carry, body } = stmt else { return S::Break };
    let kind = match *kind {
        LoopKind::Serial => ast::LoopKind::Serial,
        LoopKind::Unroll => ast::LoopKind::Unroll,
        LoopKind::NoUnroll => ast::LoopKind::NoUnroll,
        LoopKind::Vectorized => ast::LoopKind::Vectorized,
        LoopKind::Pipelined { stages } => ast::LoopKind::Pipelined { stages: stages.map(int) },
    };
    let mut ranges: Vec<ast::Segment> =
        segments.iter().map(|s| ast::Segment { range: range(p, s), consts: Vec::new() }).collect();
    let inits: Vec<ast::Expr> =
        carry.iter().map(|c| c.init.map_or_else(|| name("none"), |l| p.local(l))).collect();
    // what is carried is still in sight when the loop has ended
    let carry = carry.iter().zip(inits).map(|(c, init)| carried(p, c, init)).collect();
    p.names.open();
    let ir = p.body();
    let var = ident(p.names.declare_local(*var, ir));
    let names: Vec<String> = named.iter().map(|&l| p.names.declare_local(l, ir)).collect();
    for (s, printed) in segments.iter().zip(&mut ranges) {
        let consts = names.iter().zip(&s.values);
        printed.consts = consts.map(|(n, &v)| super::syntax::named(n, p.expr(v))).collect();
    }
    let body = block(statements(p, body));
    p.names.close();
    S::For { var, kind, segments: ranges, carry, body }
}

fn range(p: &Printer, s: &Segment) -> ast::Range {
    let step = (!p.is_index(s.step, 1)).then(|| p.expr(s.step));
    ast::Range { lo: p.expr(s.lo), hi: p.expr(s.hi), step, span: super::nowhere() }
}

fn carried(p: &mut Printer, c: &Carry, init: ast::Expr) -> ast::Carry {
    let body = p.body();
    let ring = match body.locals.get(c.local).map(|l| l.kind) {
        Some(LocalKind::Token(ring)) => p.names.rings.get(ring),
        _ => String::new(),
    };
    let local = p.names.declare_local(c.local, body);
    ast::Carry { name: ident(local), ring: ident(ring), optional: c.init.is_none(), init }
}

fn role(p: &mut Printer, r: &Role) -> ast::StmtKind {
    let team = ident(p.names.teams.get(r.team));
    p.names.open();
    let body = p.body();
    let group = r.group.map(|g| ident(p.names.declare_local(g, body)));
    let body = block(statements(p, &r.body));
    p.names.close();
    S::Role { team, group, body }
}
