//! The one place where elaboration adds to the IR: expressions and statements of the body in hand, each typed by
//! the rules of [`crate::typing`], and the hoisting of ops into statements of their own.

use super::scope::{Scope, Value};
use super::{Elab, consts::Const};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::{CallId, Span};
use crate::typing::{self, Ctx, TypeError};
use std::collections::HashMap;

/// What kind of body is being built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Only compile-time values: constants at file level, generics, inputs of tests.
    #[default]
    Consts,
    Kernel,
    Host,
    /// A combiner or intrinsic.
    Pure,
}

/// A body under construction with all that belongs to it. Nested items get a frame of their own.
#[derive(Clone, Default)]
pub(crate) struct Frame<'a> {
    pub kind: FrameKind,
    pub kernel: Kernel,
    pub host: Host,
    pub body: Body,
    pub block: Block,
    pub scope: Scope<'a>,
    /// The chain of inlined calls that leads here.
    pub at: CallId,
    /// Set inside an operand that is evaluated only if needed; the span is of what decides.
    pub lazy: Option<Span>,
    /// Locals made by hoisting that the text has not named.
    pub temps: Vec<LocalId>,
    /// What a reducer was joined to, and the block depth of that.
    pub joined: HashMap<ReducerId, (Value, Vec<u32>)>,
    /// Locals that an op assigns but the text may not.
    pub frozen: Vec<LocalId>,
    /// How deep in loops each reducer was declared.
    pub reducer_loops: HashMap<ReducerId, u32>,
    /// Numbers of the blocks that enclose the present place.
    pub path: Vec<u32>,
    pub blocks: u32,
    pub loops: u32,
    /// Directly inside a `for const`, where jumps have no loop to act on.
    pub in_const: bool,
    /// A slot that the innermost loop should carry was reported.
    pub bad_carry: bool,
    /// Slots that the innermost loop carries.
    pub carries: Vec<LocalId>,
    /// Param values that a launch gives, and those that a param took.
    pub overrides: Vec<(String, Const, Span)>,
    pub used_overrides: Vec<String>,
    /// The kernel or op that is built.
    pub item: Option<super::library::ItemRef>,
    pub steps: Vec<Step>,
    pub has_grid: bool,
    /// What follows the present statement in its block.
    pub rest: &'a [crate::ast::Stmt],
}

/// Calls of functions and rounds of compile-time loops in one item and what it launches.
const MOST_WRITTEN: u32 = 1 << 17;

impl<'a> Elab<'a> {
    pub(crate) fn sp(&self, span: Span) -> Span {
        span.inside(self.f.at)
    }

    pub(crate) fn ctx(&self) -> Ctx<'_> {
        let frame = match self.f.kind {
            FrameKind::Kernel => typing::Frame::Kernel(&self.f.kernel),
            FrameKind::Host => typing::Frame::Host(&self.f.host),
            FrameKind::Pure | FrameKind::Consts => typing::Frame::Pure,
        };
        Ctx {
            body: &self.f.body,
            frame,
            combines: &self.program.combines,
            intrinsics: &self.program.intrinsics,
        }
    }

    fn type_error(&mut self, e: TypeError, span: Span) {
        let d = e.diagnostic(&self.f.body, span);
        self.report(d);
    }

    /// Adds an expression, or reports why it cannot be.
    pub(crate) fn push(&mut self, expr: Expr, span: Span) -> Option<ExprId> {
        let expr = typing::normal(expr);
        let span = self.sp(span);
        if self.f.kind == FrameKind::Consts {
            self.report(not_constant(span));
            return None;
        }
        match typing::type_of(&self.ctx(), &expr) {
            Ok(ty) => {
                self.f.body.types.push(ty);
                Some(self.f.body.exprs.push(expr, span))
            }
            Err(e) => {
                self.type_error(e, span);
                None
            }
        }
    }

    pub(crate) fn ty(&self, e: ExprId) -> &Type {
        self.f.body.type_of(e)
    }

    pub(crate) fn elem(&self, e: ExprId) -> Elem {
        self.ty(e).elem().unwrap_or(Elem::Index)
    }

    /// Adds a statement, or reports why it cannot be.
    pub(crate) fn stmt(&mut self, kind: StmtKind, span: Span) -> Option<()> {
        let span = self.sp(span);
        if let Some(decides) = self.f.lazy {
            self.report(lazy_statement(span, decides));
            return None;
        }
        match typing::check_stmt(&self.ctx(), &kind) {
            Ok(()) => {
                self.f.block.push(Stmt::new(kind, span));
                Some(())
            }
            Err(e) => {
                self.type_error(e, span);
                None
            }
        }
    }

    pub(crate) fn new_local(&mut self, name: &str, ty: Type, kind: LocalKind, span: Span) -> LocalId {
        let span = self.sp(span);
        self.f.body.locals.push(Local::new(name, ty, kind), span)
    }

    pub(crate) fn read_local(&mut self, l: LocalId, span: Span) -> Option<ExprId> {
        self.push(Expr::Local(l), span)
    }

    /// Adds an op as a statement with fresh locals for its results.
    pub(crate) fn op(&mut self, op: Op, span: Span) -> Option<Vec<LocalId>> {
        let here = self.sp(span);
        if let Some(decides) = self.f.lazy {
            self.report(lazy_op(here, decides));
            return None;
        }
        if self.f.kind != FrameKind::Kernel {
            self.report(self.op_misplaced(here));
            return None;
        }
        let types = match typing::op_results(&self.ctx(), &op) {
            Ok(types) => types,
            Err(e) => {
                self.type_error(e, here);
                return None;
            }
        };
        let name = temp_name(&op);
        let kind = match &op {
            Op::Acquire { ring } | Op::Wait { ring } => LocalKind::Token(*ring),
            _ => LocalKind::Let,
        };
        let results: Vec<LocalId> =
            types.into_iter().map(|ty| self.new_local(name, ty, kind, span)).collect();
        self.f.temps.extend(&results);
        let kind = StmtKind::Op { results: results.iter().copied().collect(), op };
        self.f.block.push(Stmt::new(kind, here));
        Some(results)
    }

    fn op_misplaced(&self, span: Span) -> Diagnostic {
        let text = "this needs a kernel's block of threads, and none is here";
        let d = Diagnostic::error(codes::MISPLACED, span, text);
        match self.f.kind {
            FrameKind::Pure => d.help("a combiner or intrinsic computes with scalars only"),
            FrameKind::Host => d.help("an op computes with dims and params; move this into a kernel"),
            _ => d.help("a compile-time value is made of numbers, params and `target` facts"),
        }
    }

    /// An op with one result, as a value.
    pub(crate) fn op_value(&mut self, op: Op, span: Span) -> Value {
        match self.op(op, span).as_deref() {
            Some([l]) => self.read_local(*l, span).map_or(Value::Poison, Value::Expr),
            Some([]) => Value::Unit,
            Some(many) => {
                let parts: Option<Vec<Value>> =
                    many.iter().copied().map(|l| self.read_local(l, span).map(Value::Expr)).collect();
                parts.map_or(Value::Poison, |p| Value::Tuple(p.into()))
            }
            None => Value::Poison,
        }
    }

    /// An op without results.
    pub(crate) fn effect(&mut self, op: Op, span: Span) {
        self.op(op, span);
    }

    /// Runs `fill` on a block of its own and returns what it emitted.
    pub(crate) fn in_block(&mut self, fill: impl FnOnce(&mut Self)) -> Block {
        let outer = std::mem::take(&mut self.f.block);
        self.f.blocks += 1;
        let number = self.f.blocks;
        self.f.path.push(number);
        self.f.scope.open();
        fill(self);
        self.f.scope.close();
        self.f.path.pop();
        std::mem::replace(&mut self.f.block, outer)
    }

    /// Is the local a result of hoisting that no name was given to?
    pub(crate) fn take_temp(&mut self, l: LocalId) -> bool {
        match self.f.temps.iter().rposition(|&t| t == l) {
            Some(at) => {
                self.f.temps.swap_remove(at);
                true
            }
            None => false,
        }
    }

    /// Names a value with a statement. In an operand that may not be evaluated the statement comes before, if the
    /// value cannot fail; else the name stands for the expression itself.
    pub(crate) fn bind(&mut self, name: &str, value: ExprId, span: Span) -> Value {
        let lazy = self.f.lazy;
        if lazy.is_some() && !self.cannot_fail(value) {
            return Value::Expr(value);
        }
        let ty = self.ty(value).clone();
        let local = self.new_local(name, ty, LocalKind::Let, span);
        self.f.lazy = None;
        let made = self.stmt(StmtKind::Let { local, value }, span);
        self.f.lazy = lazy;
        match made {
            Some(()) => Value::Local(local),
            None => Value::Poison,
        }
    }

    /// Arithmetic of floats, bits and bools on names that are assigned: no index, division or memory.
    fn cannot_fail(&self, e: ExprId) -> bool {
        let elem = self.elem(e);
        let expr = &self.f.body.exprs[e];
        let own = match expr {
            Expr::Const { .. } | Expr::Dim(_) | Expr::Arg(_) | Expr::Select { .. } => true,
            Expr::Local(l) => self.f.body.locals[*l].kind != LocalKind::Var,
            Expr::Unary(..) | Expr::Bits { .. } => elem != Elem::Index,
            Expr::Binary(op, a, _) => {
                let fails = matches!(op, BinOp::Div | BinOp::Rem | BinOp::Shl | BinOp::Shr);
                let inner = self.elem(*a);
                inner.is_float() || (op.is_comparison() || (!fails && inner != Elem::Index))
            }
            Expr::Math { f, .. } => {
                elem.is_float()
                    || matches!(f, MathFn::Min | MathFn::Max | MathFn::Clamp | MathFn::IsNan | MathFn::IsInf)
            }
            Expr::Cast { to, sat, value } => {
                to.is_float() || *sat || self.elem(*value).is_integer() && *to != Elem::Index
            }
            _ => false,
        };
        let mut all = own;
        if own {
            expr.operands(|o| all = all && self.cannot_fail(o));
        }
        all
    }

    /// Counts one more text that is written out. Whether there are more than of any use; told once, and then nothing more
    /// is written out: functions that call others twice would go on for ever.
    pub(crate) fn too_large(&mut self, span: Span) -> bool {
        const MOST_EXPRS: usize = 1 << 21;
        if self.written < MOST_WRITTEN && self.f.body.exprs.len() < MOST_EXPRS {
            self.written += 1;
            return false;
        }
        if !std::mem::replace(&mut self.full, true) {
            let text = "functions and compile-time loops written out make this too large";
            let d = Diagnostic::error(codes::TOO_MANY_COPIES, self.sp(span), text);
            let d = d.note(format!("at most {MOST_WRITTEN} calls and rounds are written out"));
            self.report(d.help("use plain loops, or fewer calls of functions that call others twice"));
        }
        self.written = MOST_WRITTEN;
        true
    }

    pub(crate) fn declare(&mut self, name: &'a crate::ast::Ident, value: Value) {
        if name.name == "_" {
            return;
        }
        let span = self.sp(name.span);
        if let Err(first) = self.f.scope.declare(&name.name, value, span) {
            let d = Diagnostic::error(
                codes::SHADOWED_NAME,
                span,
                format!("`{}` is already declared here", name.name),
            );
            self.report(
                d.also(first, "first declared here").help("choose another name, or assign to a `var`"),
            );
        }
    }
}

/// How an unnamed result is called in dumps.
fn temp_name(op: &Op) -> &'static str {
    match op {
        Op::Read { .. } => "read",
        Op::Reduce { .. } => "folded",
        Op::Scan { .. } => "scanned",
        Op::Join { .. } => "joined",
        Op::AllReduce { .. } => "total",
        Op::Atomic { .. } => "old",
        Op::Once { .. } => "given",
        Op::Shuffle { .. } => "shuffled",
        Op::Vote { .. } => "voted",
        _ => "t",
    }
}

pub(crate) fn not_constant(span: Span) -> Diagnostic {
    Diagnostic::error(codes::NOT_CONSTANT, span, "this is not known at compile time")
        .help("use numbers, params, const generics, `const` names and `target` facts")
}

fn lazy_op(span: Span, decides: Span) -> Diagnostic {
    let text = "this runs on the whole team, but stands where it is evaluated only if needed";
    Diagnostic::error(codes::LAZY_COLLECTIVE, span, text)
        .also(decides, "this decides whether it is evaluated")
        .help("give it a name with `let` before, then use the name here")
}

fn lazy_statement(span: Span, decides: Span) -> Diagnostic {
    Diagnostic::error(
        codes::LAZY_COLLECTIVE,
        span,
        "a statement stands where a value is evaluated only if needed",
    )
    .also(decides, "this decides whether it is evaluated")
    .help("use an `if` statement that assigns to a `var`")
}
