//! Ops as syntax: a value to be named, or a statement of its own.

use super::exprs::Printer;
use super::regions::{region, whole_or_region};
use super::syntax::*;
use crate::ast::{self, AssignOp, BinaryOp, ExprKind, Form, StmtKind as S};
use crate::program::*;

/// How an op is written.
pub enum Written {
    /// `let name = value`
    Value(ast::Expr),
    Stmt(ast::StmtKind),
}

use Written::{Stmt, Value};

pub fn op(p: &Printer, op: &Op) -> Written {
    match op {
        Op::Read { from, pad } => Value(padded(p, region(p, from), *pad)),
        Op::Write { to, value } => Stmt(assign(region(p, to), AssignOp::Set, p.typed(*value))),
        Op::Gemm { a, b, into, init, precision } => Stmt(gemm(p, (*a, *b), *into, *init, *precision)),
        Op::Reduce { comb, inputs, axis } => {
            let named = axis.iter().map(|a| ("axis", int(a))).collect();
            Value(fold(p, "reduce", *comb, inputs, named))
        }
        Op::Scan { comb, inputs, axis, reverse, exclusive } => {
            let mut named = vec![("axis", int(axis))];
            let flags = [("reverse", *reverse), ("exclusive", *exclusive)];
            let set = flags.into_iter().filter(|&(_, on)| on);
            named.extend(set.map(|(n, _)| (n, expr(ExprKind::Bool(true)))));
            Value(fold(p, "scan", *comb, inputs, named))
        }
        Op::Fold { reducer, index, values } => Stmt(fold_into(p, *reducer, index, values)),
        Op::Join { reducer } => Value(name(p.names.reducers.get(*reducer))),
        Op::AllReduce { comb, inputs, over } => {
            let over = match over {
                Over::Team(team) => team_name(p, *team),
                Over::Axes(axes) => tuple(axes.iter().map(|&a| p.local(a)).collect()),
            };
            Value(fold(p, "allreduce", *comb, inputs, vec![("over", over)]))
        }
        Op::Shuffle { kind, value, lane, width } => {
            let f = match kind {
                ShuffleKind::Index => "shfl",
                ShuffleKind::Up => "shfl_up",
                ShuffleKind::Down => "shfl_down",
                ShuffleKind::Xor => "shfl_xor",
            };
            let named = width.iter().map(|w| ("width", int(w))).collect();
            Value(call_with(name(f), vec![p.expr(*value), p.subscript(*lane)], named))
        }
        Op::Vote { kind, cond, team } => {
            let f = match kind {
                VoteKind::Any => "vote_any",
                VoteKind::All => "vote_all",
                VoteKind::Ballot => "ballot",
            };
            let named = if *team == Team::Warp { vec![] } else { vec![("over", team_name(p, *team))] };
            Value(call_with(name(f), vec![p.condition(*cond)], named))
        }
        Op::Once { value } => Value(expr(ExprKind::Once(value_block(p.expr(*value))))),
        Op::Barrier { team } => {
            let team = (*team != Team::Block).then(|| ident(team_word(p, *team)));
            Stmt(S::Barrier { team })
        }
        Op::Atomic { op, at, value, expected } => {
            let place = match at {
                Place::Element { mem, index } => p.element(*mem, index, None),
                Place::Region(r) => region(p, r),
            };
            let args = std::iter::once(place).chain(expected.map(|e| p.typed(e))).chain([p.typed(*value)]);
            Value(call(name(op.name()), args.collect()))
        }
        Op::Print { parts } => {
            let part = |t: &Text| match t {
                Text::Str(s) => string(s),
                Text::Value(e) => p.expr(*e),
            };
            Stmt(S::Expr(call(name("print"), parts.iter().map(part).collect())))
        }
        Op::Assert { cond, message } => {
            let text = (!message.is_empty()).then(|| string(message));
            let args = std::iter::once(p.condition(*cond)).chain(text).collect();
            Stmt(S::Expr(call(name("assert"), args)))
        }
        Op::Acquire { ring } => Value(expr(ExprKind::Acquire(ident(p.names.rings.get(*ring))))),
        Op::Wait { ring } => Value(expr(ExprKind::Wait(ident(p.names.rings.get(*ring))))),
        Op::Commit { token } => Stmt(S::Commit(ident(p.names.locals.get(*token)))),
        Op::Release { token } => Stmt(S::Release(ident(p.names.locals.get(*token)))),
        Op::Await { queue, keep } => {
            Stmt(S::Await { queue: ident(p.names.queues.get(*queue)), keep: int(keep) })
        }
        Op::Take { turn } => Stmt(S::Take(ident(p.names.turns.get(*turn)))),
        Op::Pass { turn } => Stmt(S::Pass(ident(p.names.turns.get(*turn)))),
        Op::CopyAsync { from, to, pad, queue } => Stmt(copy(p, from, to, *pad, *queue)),
        Op::Issue { queue, a, b, into, init, precision } => {
            let queue = Some(ident(p.names.queues.get(*queue)));
            let (a, b) = (mat_operand(p, a), mat_operand(p, b));
            Stmt(gemm_form(p, queue, a, b, *into, *init, *precision))
        }
        Op::Fence { kind, team } => {
            let kind = match kind {
                FenceKind::Proxy => "proxy",
                FenceKind::Registers => "registers",
            };
            let named = if *team == Team::Block { vec![] } else { vec![("over", team_name(p, *team))] };
            Stmt(S::Expr(call_with(name("fence"), vec![name(kind)], named)))
        }
    }
}

pub fn assign(place: ast::Expr, op: AssignOp, value: ast::Expr) -> ast::StmtKind {
    S::Assign { place, op, value, options: Vec::new() }
}

fn padded(p: &Printer, place: ast::Expr, pad: Option<ExprId>) -> ast::Expr {
    match pad {
        None => place,
        Some(pad) => expr(ExprKind::Pad(Box::new(place), Box::new(p.typed(pad)))),
    }
}

fn precision_options(precision: Precision) -> Vec<ast::Named> {
    match precision {
        Precision::Full => Vec::new(),
        Precision::Tf32 => vec![named("precision", name("tf32"))],
    }
}

fn gemm(
    p: &Printer,
    (a, b): (ExprId, ExprId),
    into: LocalId,
    init: Init,
    precision: Precision,
) -> ast::StmtKind {
    let (a, b) = (p.expr(a), p.expr(b));
    let op = match init {
        Init::Accumulate => AssignOp::Add,
        Init::Overwrite => AssignOp::Set,
        Init::When(_) => return gemm_form(p, None, a, b, into, init, precision),
    };
    let value = binary(BinaryOp::MatMul, a, b);
    S::Assign { place: p.local(into), op, value, options: precision_options(precision) }
}

fn gemm_form(
    p: &Printer,
    queue: Option<ast::Ident>,
    a: ast::Expr,
    b: ast::Expr,
    into: LocalId,
    init: Init,
    precision: Precision,
) -> ast::StmtKind {
    let init = match init {
        Init::Accumulate => None,
        Init::Overwrite => Some(expr(ExprKind::Bool(true))),
        Init::When(cond) => Some(p.condition(cond)),
    };
    S::Form(Form::Gemm { queue, a, b, to: p.local(into), init, options: precision_options(precision) })
}

fn mat_operand(p: &Printer, m: &MatOperand) -> ast::Expr {
    match m {
        MatOperand::Value(e) => p.expr(*e),
        MatOperand::Memory { region: r, transposed } => {
            let place = whole_or_region(p, r);
            if *transposed { field(place, "T") } else { place }
        }
    }
}

fn copy(
    p: &Printer,
    from: &Region,
    to: &Region,
    pad: Option<ExprId>,
    queue: Option<QueueId>,
) -> ast::StmtKind {
    S::Form(Form::Copy {
        asynchronous: true,
        queue: queue.map(|q| ident(p.names.queues.get(q))),
        from: whole_or_region(p, from),
        to: whole_or_region(p, to),
        pad: pad.map(|e| p.typed(e)),
    })
}

/// `reduce(comb, values, …)`
fn fold(p: &Printer, f: &str, comb: Combiner, inputs: &[ExprId], named: Vec<(&str, ast::Expr)>) -> ast::Expr {
    let values = inputs.iter().map(|&e| fold_value(p, comb, e)).collect();
    call_with(name(f), vec![name(combiner(p, comb)), tuple(values)], named)
}

/// A user's combiner gives numbers the types of its parts.
fn fold_value(p: &Printer, comb: Combiner, e: ExprId) -> ast::Expr {
    if matches!(comb, Combiner::User(_)) { p.typed(e) } else { p.expr(e) }
}

pub fn combiner(p: &Printer, comb: Combiner) -> String {
    match comb {
        Combiner::User(id) => {
            let name = p.combines.get(id.index()).cloned().unwrap_or_default();
            p.used.borrow_mut().insert(name.clone());
            name
        }
        _ => comb.builtin_name().unwrap_or_default().to_owned(),
    }
}

fn fold_into(p: &Printer, id: ReducerId, index: &[ExprId], values: &[ExprId]) -> ast::StmtKind {
    let base = name(p.names.reducers.get(id));
    let place = if index.is_empty() {
        base
    } else {
        let axes = index.iter().map(|&e| ast::AxisIndex::At(p.subscript(e))).collect();
        super::syntax::index(base, axes)
    };
    let values = values.iter().map(|&e| p.typed(e)).collect();
    assign(place, AssignOp::Fold, tuple(values))
}

fn team_word(p: &Printer, team: Team) -> String {
    match team {
        Team::Warp => "warp".into(),
        Team::Group => "group".into(),
        Team::Block => "block".into(),
        Team::Cluster => "cluster".into(),
        Team::Named(id) => p.names.teams.get(id),
    }
}

fn team_name(p: &Printer, team: Team) -> ast::Expr {
    name(team_word(p, team))
}
