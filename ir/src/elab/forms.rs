//! The statement forms: `copy`, `gemm`, `reduce` and `scan` with a target behind `->`. Memory that stands in one by
//! its name alone means all of it.

use super::Elab;
use super::assign::Target;
use super::scope::Value;
use crate::ast::{self, AssignOp, ExprKind, Form, StmtKind as A};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use crate::typing;

impl<'a> Elab<'a> {
    pub(crate) fn form(&mut self, form: &'a Form, span: Span) {
        match form {
            Form::Copy { asynchronous: true, queue, from, to, pad } => {
                self.copy_async(queue.as_ref(), from, to, pad.as_ref(), span)
            }
            Form::Copy { from, to, pad, .. } => self.copy(from, to, pad.as_ref(), span),
            Form::Gemm { queue: Some(q), a, b, to, init, options } => {
                self.issue(q, (a, b), to, init.as_ref(), options, span)
            }
            Form::Gemm { queue: None, a, b, to, init, options } => {
                let target = self.form_target(to);
                let (a, b) = (self.form_value(a), self.form_value(b));
                let Some(init) = self.init(init.as_ref()) else { return };
                let precision = self.precision(options);
                let (Some(target), Some(a), Some(b)) = (target, a, b) else { return };
                match target {
                    Target::Local(into) => self.effect(Op::Gemm { a, b, into, init, precision }, span),
                    Target::Place(Place::Region(to)) => self.gemm_memory((a, b), to, init, precision, span),
                    _ => self.no_accumulator(to.span),
                }
            }
            Form::Call { call, to } => self.call_form(call, to, span),
        }
    }

    /// A product that is in flight accumulates into a tile variable.
    pub(crate) fn tile_target(&mut self, to: &'a ast::Expr) -> Option<LocalId> {
        match self.target(to)? {
            Target::Local(l) => Some(l),
            _ => {
                self.no_accumulator(to.span);
                None
            }
        }
    }

    fn no_accumulator(&mut self, span: Span) {
        let text = "a product accumulates into a tile variable";
        let d = Diagnostic::error(codes::NOT_ASSIGNABLE, self.sp(span), text);
        self.report(d.help("declare it: `var c = zeros f32[BM, BN]`"));
    }

    /// A product into memory: what is there is read, added to, and written back as a whole.
    fn gemm_memory(
        &mut self,
        (a, b): (ExprId, ExprId),
        to: Region,
        init: Init,
        precision: Precision,
        span: Span,
    ) {
        let Ok(ty) = typing::region_type(&self.ctx(), &to) else {
            // what is wrong with the region is wrong with its read
            return self.effect(Op::Read { from: to, pad: None }, span);
        };
        let into = self.new_local("product", ty, LocalKind::Var, span);
        if self.stmt(StmtKind::Declare { local: into }, span).is_none() {
            return;
        }
        let fresh = Op::Gemm { a, b, into, init: Init::Overwrite, precision };
        let more = Op::Gemm { a, b, into, init: Init::Accumulate, precision };
        let add = |e: &mut Self, to: Region| {
            if let Value::Expr(value) = e.op_value(Op::Read { from: to, pad: None }, span) {
                e.stmt(StmtKind::Assign { local: into, value }, span);
                e.effect(more, span);
            }
        };
        match init {
            Init::Overwrite => self.effect(fresh, span),
            Init::Accumulate => add(self, to.clone()),
            Init::When(cond) => {
                let then = self.in_block(|e| e.effect(fresh, span));
                let other = self.in_block(|e| add(e, to.clone()));
                self.stmt(StmtKind::If { cond, then, other }, span);
            }
        }
        if let Some(value) = self.read_local(into, span) {
            self.effect(Op::Write { to, value }, span);
        }
    }

    // ---- memory by its name alone -------------------------------------------------------------------------------

    fn is_named_memory(&mut self, e: &'a ast::Expr) -> bool {
        let mem = match &e.kind {
            ExprKind::Name(id) => match self.find(&id.name) {
                Some(Value::Mem(mem)) => mem,
                _ => return false,
            },
            ExprKind::Field(base, field) => match self.token_of(base) {
                Some(token) => match self.slot_field(token, field) {
                    Value::Mem(mem) => mem,
                    // reported
                    _ => return true,
                },
                None => return false,
            },
            _ => return false,
        };
        typing::mem_rank(&self.ctx(), mem).is_ok_and(|rank| rank > 0)
    }

    fn form_target(&mut self, to: &'a ast::Expr) -> Option<Target> {
        match self.is_named_memory(to) {
            true => self.region(to).map(|r| Target::Place(Place::Region(r))),
            false => self.target(to),
        }
    }

    /// A tile value, or all of a memory: `t`, `t.T`, `w.a`.
    fn form_value(&mut self, e: &'a ast::Expr) -> Option<ExprId> {
        if let ExprKind::Field(base, t) = &e.kind
            && t.name == "T"
            && self.is_named_memory(base)
        {
            let read = self.form_value(base)?;
            return self.push(Expr::Transpose(read), e.span);
        }
        if !self.is_named_memory(e) {
            return self.value(e, None);
        }
        let from = self.region(e)?;
        match self.op_value(Op::Read { from, pad: None }, e.span) {
            Value::Expr(read) => Some(read),
            _ => None,
        }
    }

    // ---- accumulators -------------------------------------------------------------------------------------------

    /// Whether a product that is in flight accumulates into this fragment: then it is a tile variable, since its
    /// elements are the queue's until they are awaited.
    pub(crate) fn issued_into(rest: &[ast::Stmt], name: &str) -> bool {
        let block = |b: &ast::Block| Self::issued_into(&b.stmts, name);
        rest.iter().any(|s| match &s.kind {
            A::Form(Form::Gemm { queue: Some(_), to, .. }) => {
                matches!(&to.kind, ExprKind::Name(id) if id.name == name)
            }
            A::If { then, other, .. } => block(then) || other.as_ref().is_some_and(block),
            A::For { body, .. } | A::While { body, .. } | A::Parallel { body, .. } | A::Role { body, .. } => {
                block(body)
            }
            _ => false,
        })
    }

    /// `(init = cond)`; absent it accumulates.
    pub(crate) fn init(&mut self, init: Option<&'a ast::Expr>) -> Option<Init> {
        let Some(e) = init else { return Some(Init::Accumulate) };
        match self.expr(e, None) {
            Value::Const(super::consts::Const::Bool(true)) => Some(Init::Overwrite),
            Value::Const(super::consts::Const::Bool(false)) => Some(Init::Accumulate),
            v => self.to_expr(v, Some(Elem::BOOL), e.span).map(Init::When),
        }
    }

    /// `copy from -> to`: a read of a region or a tile, then a write or an assignment.
    fn copy(&mut self, from: &'a ast::Expr, to: &'a ast::Expr, pad: Option<&'a ast::Expr>, span: Span) {
        let value = match pad {
            Some(pad) => {
                let read = self.region_pad(from, pad, from.span);
                self.to_expr(read, None, from.span)
            }
            None => self.form_value(from),
        };
        let target = self.form_target(to);
        let Some(value) = value else { return };
        match target {
            Some(Target::Local(local)) => {
                self.stmt(StmtKind::Assign { local, value }, span);
            }
            Some(Target::Place(place)) => self.store(place, AssignOp::Set, value, from.span, span),
            Some(Target::Reducer(..)) => self.cannot_assign(to.span),
            None => {}
        }
    }

    /// `reduce(add, s, axis = 1) -> m`
    fn call_form(&mut self, call: &'a ast::Expr, to: &'a [ast::Expr], span: Span) {
        let value = self.expr(call, None);
        let values: Vec<Value> = match value {
            Value::Poison => return,
            Value::Tuple(v) => v.to_vec(),
            Value::Unit => Vec::new(),
            v => vec![v],
        };
        if values.len() != to.len() {
            let text = format!("the call gives {} values, but {} targets stand here", values.len(), to.len());
            let d = Diagnostic::error(codes::PATTERN, self.sp(span), text);
            return self.report(d);
        }
        for (v, place) in values.into_iter().zip(to) {
            // a name that is not declared yet is declared by the form
            if let ExprKind::Name(id) = &place.kind
                && self.f.scope.get(&id.name).is_none()
                && let Value::Expr(e) = v
            {
                if let Expr::Local(l) = self.f.body.exprs[e]
                    && self.take_temp(l)
                {
                    self.f.body.locals[l].name = id.name.clone();
                    self.declare(id, Value::Local(l));
                }
                continue;
            }
            let Some(value) = self.to_expr(v, None, call.span) else { continue };
            match self.form_target(place) {
                Some(Target::Local(local)) => {
                    self.stmt(StmtKind::Assign { local, value }, span);
                }
                Some(Target::Place(at)) => self.store(at, AssignOp::Set, value, call.span, span),
                Some(Target::Reducer(..)) => self.cannot_assign(place.span),
                None => {}
            }
        }
    }
}
