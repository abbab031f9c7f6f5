//! The host side: an op's parameters, workspaces and launches.

use super::frame::{self, parameters};
use super::{Defs, Exprs, Here, Result, place};
use crate::arena::Arena;
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use crate::typing::{Ctx, Frame};
use pantile_abi::DType;
use std::collections::HashMap;
use std::panic::Location;

pub struct HostBuilder {
    pub(super) defs: Defs,
    pub(super) host: Host,
    open: Vec<Vec<Step>>,
}

impl Here for HostBuilder {
    fn here(&self, at: &'static Location<'static>) -> Span {
        place::span(&self.defs, at)
    }
}

impl Exprs for HostBuilder {
    fn body(&self) -> &Body {
        &self.host.body
    }

    fn body_mut(&mut self) -> &mut Body {
        &mut self.host.body
    }

    fn with_ctx<R>(&self, f: impl FnOnce(&Ctx) -> R) -> R {
        let shared = self.defs.borrow();
        f(&Ctx {
            body: &self.host.body,
            frame: Frame::Host(&self.host),
            combines: &shared.combines,
            intrinsics: &shared.intrinsics,
        })
    }
}

impl HostBuilder {
    pub(super) fn new(defs: Defs, name: String, span: Span) -> HostBuilder {
        HostBuilder { defs, host: Host { name, span, ..Host::default() }, open: Vec::new() }
    }

    parameters!(host);

    pub fn add_workspace(&mut self, workspace: Workspace, span: Span) -> Result<WorkspaceId> {
        self.with_ctx(|ctx| frame::extents(ctx, "an extent", &workspace.shape, span))?;
        Ok(self.host.workspaces.push(workspace, span))
    }

    #[track_caller]
    pub fn workspace(
        &mut self,
        name: impl Into<String>,
        elem: DType,
        shape: &[ExprId],
    ) -> Result<WorkspaceId> {
        let span = self.here(Location::caller());
        self.add_workspace(Workspace { name: name.into(), elem, shape: shape.into(), zeroed: false }, span)
    }

    pub fn step(&mut self, kind: StepKind, span: Span) {
        let steps = self.open.last_mut().unwrap_or(&mut self.host.steps);
        steps.push(Step { kind, span });
    }

    /// Opens a list of steps for an `if` or `for`.
    pub fn begin_steps(&mut self) {
        self.open.push(Vec::new());
    }

    pub fn end_steps(&mut self) -> Result<Vec<Step>> {
        self.open.pop().ok_or_else(|| {
            Diagnostic::error(codes::OPEN_BLOCK, self.host.span, "a block is closed that was not opened")
        })
    }

    #[track_caller]
    pub fn launch(&mut self, kernel: KernelId, args: &[LaunchArg]) {
        let span = self.here(Location::caller());
        self.step(StepKind::Launch { kernel, args: args.to_vec() }, span);
    }

    /// Handles only: what a launch must match is the verifier's.
    pub(super) fn check(&self, kernels: &Arena<Kernel>) -> Result<()> {
        if !self.open.is_empty() {
            let message = format!("a block of `{}` was opened and never closed", self.host.name);
            return Err(Diagnostic::error(codes::OPEN_BLOCK, self.host.span, message));
        }
        self.check_steps(&self.host.steps, kernels)
    }

    fn check_steps(&self, steps: &[Step], kernels: &Arena<Kernel>) -> Result<()> {
        for step in steps {
            match &step.kind {
                StepKind::Launch { kernel, args } => {
                    if kernels.get(*kernel).is_none() {
                        return Err(super::foreign(step.span, "kernel"));
                    }
                    for arg in args {
                        let known = match arg {
                            LaunchArg::Arg(a) => self.host.args.get(*a).is_some(),
                            LaunchArg::Workspace(w) => self.host.workspaces.get(*w).is_some(),
                            LaunchArg::Scalar(e) => self.host.body.exprs.get(*e).is_some(),
                        };
                        if !known {
                            return Err(super::foreign(step.span, "argument"));
                        }
                    }
                }
                StepKind::If { cond, then, other } => {
                    self.with_ctx(|ctx| frame::condition(ctx, *cond, step.span))?;
                    self.check_steps(then, kernels)?;
                    self.check_steps(other, kernels)?;
                }
                StepKind::For { lo, hi, body, .. } => {
                    self.with_ctx(|ctx| frame::extents(ctx, "the range of a loop", &[*lo, *hi], step.span))?;
                    self.check_steps(body, kernels)?;
                }
            }
        }
        Ok(())
    }
}

/// A kernel as an op of one launch: the same parameters, dims and conditions.
pub(crate) fn lone(id: KernelId, kernel: &Kernel) -> Result<Host> {
    let mut copy = Copy { from: kernel, host: Host::default(), done: HashMap::new() };
    for (dim, d) in kernel.dims.iter() {
        copy.host.dims.push(d.clone(), kernel.dims.span(dim));
    }
    let mut launch = Vec::new();
    for (arg, a) in kernel.args.iter() {
        let span = kernel.args.span(arg);
        let copied = Arg { name: a.name.clone(), kind: copy.arg_kind(&a.kind)? };
        let new = copy.host.args.push(copied, span);
        launch.push(match a.kind {
            ArgKind::Tensor(_) => LaunchArg::Arg(new),
            ArgKind::Scalar(elem) => {
                copy.host.body.types.push(Type::Scalar(elem));
                LaunchArg::Scalar(copy.host.body.exprs.push(Expr::Arg(new), span))
            }
        });
    }
    for (cond, text) in &kernel.wheres {
        let cond = copy.expr(*cond)?;
        copy.host.wheres.push((cond, text.clone()));
    }
    let step = Step { kind: StepKind::Launch { kernel: id, args: launch }, span: kernel.span };
    Ok(Host {
        name: kernel.name.clone(),
        span: kernel.span,
        deterministic: kernel.deterministic,
        steps: vec![step],
        lone: true,
        ..copy.host
    })
}

/// Copies expressions over dims and scalar parameters; dims and parameters keep their numbers.
struct Copy<'a> {
    from: &'a Kernel,
    host: Host,
    done: HashMap<ExprId, ExprId>,
}

impl Copy<'_> {
    fn arg_kind(&mut self, kind: &ArgKind) -> Result<ArgKind> {
        let ArgKind::Tensor(t) = kind else { return Ok(kind.clone()) };
        let dims = t.dims.iter().map(|&d| self.expr(d)).collect::<Result<_>>()?;
        let strides = match &t.strides {
            None => None,
            Some(strides) => Some(strides.iter().map(|&s| self.expr(s)).collect::<Result<_>>()?),
        };
        Ok(ArgKind::Tensor(Tensor { dims, strides, ..t.clone() }))
    }

    fn expr(&mut self, e: ExprId) -> Result<ExprId> {
        if let Some(&known) = self.done.get(&e) {
            return Ok(known);
        }
        let body = &self.from.body;
        let Some(expr) = body.exprs.get(e) else { return Err(super::foreign(self.from.span, "value")) };
        let span = body.exprs.span(e);
        let copied = match expr {
            Expr::Const { .. } | Expr::Dim(_) | Expr::Arg(_) => expr.clone(),
            Expr::Unary(op, a) => Expr::Unary(*op, self.expr(*a)?),
            Expr::Binary(op, a, b) => Expr::Binary(*op, self.expr(*a)?, self.expr(*b)?),
            Expr::Cast { to, sat, value } => Expr::Cast { to: *to, sat: *sat, value: self.expr(*value)? },
            Expr::Math { f, approx, args } => {
                let args = args.iter().map(|&a| self.expr(a)).collect::<Result<_>>()?;
                Expr::Math { f: *f, approx: *approx, args }
            }
            Expr::Select { cond, then, other } => {
                Expr::Select { cond: self.expr(*cond)?, then: self.expr(*then)?, other: self.expr(*other)? }
            }
            _ => {
                let message = "dims and launch conditions are made of dims, scalar parameters and constants";
                return Err(Diagnostic::error(codes::HOST_EXPRESSION, span, message));
            }
        };
        self.host.body.types.push(body.types[e.index()].clone());
        let new = self.host.body.exprs.push(copied, span);
        self.done.insert(e, new);
        Ok(new)
    }
}
