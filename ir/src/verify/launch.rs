//! The host side: launches fit their kernels, tensors are written before they are read, nothing overlaps.

use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::program::*;
use crate::span::Span;
use std::collections::HashSet;

pub fn host(p: &Program, out: &mut Diagnostics) {
    let h = &p.entry;
    let mut c = Check { p, h, out, written: HashSet::new() };
    c.steps(&h.steps);
    if h.lone {
        return;
    }
    let written = c.written;
    for (id, arg) in h.args.iter() {
        if let ArgKind::Tensor(Tensor { mode: Mode::Out, .. }) = &arg.kind
            && !written.contains(&Thing::Arg(id))
        {
            let message = format!("`{}` is `out`, but no launch writes it", arg.name);
            out.push(
                Diagnostic::error(codes::OUT_NOT_WRITTEN, h.args.span(id), message)
                    .help("pass it to a kernel that has it `out` or `inout`"),
            );
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Thing {
    Arg(ArgId),
    Workspace(WorkspaceId),
}

struct Check<'a, 'o> {
    p: &'a Program,
    h: &'a Host,
    out: &'o mut Diagnostics,
    /// What some launch before may have written.
    written: HashSet<Thing>,
}

impl<'a> Check<'a, '_> {
    fn steps(&mut self, steps: &'a [Step]) {
        for s in steps {
            match &s.kind {
                StepKind::Launch { kernel, args } => self.launch(&self.p.kernels[*kernel], args, s.span),
                StepKind::If { then, other, .. } => {
                    self.steps(then);
                    self.steps(other);
                }
                StepKind::For { body, .. } => {
                    // a later round reads what an earlier one wrote
                    self.mark(body);
                    self.steps(body);
                }
            }
        }
    }

    fn mark(&mut self, steps: &[Step]) {
        for s in steps {
            match &s.kind {
                StepKind::Launch { kernel, args } => {
                    let params = self.p.kernels[*kernel].args.iter().map(|(_, a)| a);
                    for (param, arg) in params.zip(args) {
                        if let (ArgKind::Tensor(t), Some(thing)) = (&param.kind, thing(arg))
                            && t.mode != Mode::In
                        {
                            self.written.insert(thing);
                        }
                    }
                }
                StepKind::If { then, other, .. } => {
                    self.mark(then);
                    self.mark(other);
                }
                StepKind::For { body, .. } => self.mark(body),
            }
        }
    }

    fn launch(&mut self, k: &'a Kernel, args: &[LaunchArg], span: Span) {
        if k.args.len() != args.len() {
            let message = format!("`{}` takes {} arguments, not {}", k.name, k.args.len(), args.len());
            self.push(
                Diagnostic::error(codes::LAUNCH_ARGUMENTS, span, message).also(k.span, "declared here"),
            );
            return;
        }
        let mut now = Vec::new();
        for ((id, param), arg) in k.args.iter().zip(args) {
            let place = k.args.span(id);
            match (&param.kind, thing(arg)) {
                (ArgKind::Tensor(t), Some(thing)) => {
                    self.tensor(k, (&param.name, t, place), thing, span);
                    now.push((thing, t.mode, param.name.as_str()));
                }
                (ArgKind::Scalar(elem), None) => self.scalar(&param.name, *elem, arg, span, place),
                (ArgKind::Tensor(_), None) => {
                    let message = format!("`{}` of `{}` is a tensor, a scalar is passed", param.name, k.name);
                    self.push(
                        Diagnostic::error(codes::LAUNCH_ARGUMENTS, span, message)
                            .also(place, "declared here"),
                    );
                }
                (ArgKind::Scalar(elem), Some(thing)) => {
                    let message = format!(
                        "`{}` of `{}` is a scalar {elem}, the tensor `{}` is passed",
                        param.name,
                        k.name,
                        self.name(thing)
                    );
                    self.push(
                        Diagnostic::error(codes::LAUNCH_ARGUMENTS, span, message)
                            .also(place, "declared here"),
                    );
                }
            }
        }
        self.aliases(&now, span);
        self.written.extend(now.iter().filter(|(_, mode, _)| *mode != Mode::In).map(|&(t, ..)| t));
    }

    fn scalar(&mut self, name: &str, elem: Elem, arg: &LaunchArg, span: Span, place: Span) {
        let LaunchArg::Scalar(e) = arg else { return };
        let ty = &self.h.body.types[e.index()];
        if *ty != Type::Scalar(elem) {
            let message = format!("`{name}` is {elem}, the value is {ty}");
            let at = match self.h.body.exprs.span(*e) {
                s if s == Span::default() => span,
                s => s,
            };
            self.push(
                Diagnostic::error(codes::LAUNCH_ARGUMENTS, at, message)
                    .also(place, "declared here")
                    .help(format!("write `{elem}(...)`")),
            );
        }
    }

    fn tensor(&mut self, k: &Kernel, (name, t, place): (&str, &Tensor, Span), thing: Thing, span: Span) {
        let given = self.name(thing);
        let (elem, rank, mode) = match thing {
            Thing::Workspace(w) => {
                let w = &self.h.workspaces[w];
                (w.elem, w.shape.len(), Mode::InOut)
            }
            Thing::Arg(a) => match &self.h.args[a].kind {
                ArgKind::Tensor(t) => (t.elem, t.dims.len(), t.mode),
                ArgKind::Scalar(_) => {
                    let message =
                        format!("`{name}` of `{}` is a tensor, the scalar `{given}` is passed", k.name);
                    self.push(
                        Diagnostic::error(codes::LAUNCH_ARGUMENTS, span, message)
                            .also(place, "declared here"),
                    );
                    return;
                }
            },
        };
        if elem != t.elem || rank != t.dims.len() {
            let message = format!(
                "`{name}` of `{}` is {} with {} axes, `{given}` is {elem} with {rank}",
                k.name,
                t.elem,
                t.dims.len()
            );
            self.push(Diagnostic::error(codes::LAUNCH_ARGUMENTS, span, message).also(place, "declared here"));
        }
        if t.mode != Mode::In && mode == Mode::In {
            let message = format!("`{given}` is `in`, but `{}` writes it as `{name}`", k.name);
            self.push(
                Diagnostic::error(codes::LAUNCH_MODE, span, message)
                    .also(place, "written there")
                    .help(format!("declare `{given}` `out` or `inout`")),
            );
        }
        self.fresh(k, (name, t, place), thing, mode, span);
    }

    /// What is read has been written.
    fn fresh(
        &mut self,
        k: &Kernel,
        (name, t, place): (&str, &Tensor, Span),
        thing: Thing,
        mode: Mode,
        span: Span,
    ) {
        if t.mode == Mode::Out || self.written.contains(&thing) {
            return;
        }
        let given = self.name(thing);
        match thing {
            Thing::Workspace(w) if !self.h.workspaces[w].zeroed => {
                let message =
                    format!("`{}` reads the workspace `{given}`, which nothing has written", k.name);
                self.push(
                    Diagnostic::error(codes::WORKSPACE_UNWRITTEN, span, message)
                        .also(place, format!("read there as `{name}`"))
                        .help(format!(
                            "launch what fills it first, or begin with zeros: `workspace {given}: ... = 0`"
                        )),
                );
            }
            Thing::Arg(_) if mode == Mode::Out => {
                let message = format!("`{}` reads `{given}`, which is `out` and holds nothing yet", k.name);
                self.push(
                    Diagnostic::error(codes::READ_OF_OUT, span, message)
                        .also(place, format!("read there as `{name}`"))
                        .help(format!("declare it `inout`: `{given}: inout ...`")),
                );
            }
            _ => {}
        }
    }

    fn aliases(&mut self, now: &[(Thing, Mode, &str)], span: Span) {
        for (i, &(thing, mode, name)) in now.iter().enumerate() {
            let other = now[..i].iter().find(|&&(t, m, _)| t == thing && (m != Mode::In || mode != Mode::In));
            if let Some(&(_, _, first)) = other {
                let given = self.name(thing);
                let message =
                    format!("`{given}` is passed as `{first}` and as `{name}`, and one of them is written");
                self.push(
                    Diagnostic::error(codes::SAME_TENSOR, span, message).help(
                        "what a launch writes may not overlap its other tensors; go through a workspace",
                    ),
                );
            }
        }
    }

    fn name(&self, thing: Thing) -> &'a str {
        match thing {
            Thing::Arg(a) => &self.h.args[a].name,
            Thing::Workspace(w) => &self.h.workspaces[w].name,
        }
    }

    fn push(&mut self, d: Diagnostic) {
        self.out.push(d);
    }
}

fn thing(arg: &LaunchArg) -> Option<Thing> {
    match arg {
        LaunchArg::Arg(a) => Some(Thing::Arg(*a)),
        LaunchArg::Workspace(w) => Some(Thing::Workspace(*w)),
        LaunchArg::Scalar(_) => None,
    }
}
