//! The contract of a specialised program: what its entry and kernels take, when they may be launched, over which grid.
//!
//! Dims keep their numbers as slots, parameters their positions. What this writes is all that the runtime, the
//! simulator and ahead-of-time launchers know of a program.

use pantile_abi as abi;
use pantile_abi::{IExpr, IOp};
use pantile_ir::arena::Arena;
use pantile_ir::codes;
use pantile_ir::diag::Diagnostic;
use pantile_ir::program::{
    Arg, ArgKind, BinOp, Body, Dim, Elem, Expr, ExprId, Kernel, LaunchArg, LocalId, MathFn, Mode, PackOrder,
    Program, Step, StepKind, Tensor, UnOp,
};
use pantile_ir::span::Span;

type Result<T> = std::result::Result<T, Diagnostic>;

/// Describes a program that the verifier accepted.
pub fn describe(program: &Program) -> Result<abi::Program> {
    let kernels = program.kernels.iter().map(|(_, k)| kernel(k)).collect::<Result<Vec<_>>>()?;
    let host = &program.entry;
    let mut at = Host { program, loop_vars: Vec::new(), names: Vec::new() };
    let mut steps = Vec::new();
    for (id, w) in host.workspaces.iter() {
        let shape = at.exprs(&w.shape)?;
        let (slot, name) = (id.index() as u32, w.name.clone());
        steps.push(abi::Step::Workspace { slot, name, dtype: w.elem, shape, zeroed: w.zeroed });
    }
    steps.extend(at.steps(&host.steps)?);
    Ok(abi::Program {
        name: host.name.clone(),
        params: params(&host.body, &host.args)?,
        dims: dim_names(&host.dims),
        conditions: conditions(&host.body, &host.wheres)?,
        loop_vars: at.names,
        kernels,
        steps,
    })
}

fn kernel(k: &Kernel) -> Result<abi::KernelAbi> {
    Ok(abi::KernelAbi {
        name: k.name.clone(),
        symbol: String::new(),
        params: params(&k.body, &k.args)?,
        dims: dim_names(&k.dims),
        conditions: conditions(&k.body, &k.wheres)?,
        grid: k.grid.extents.iter().map(|&e| convert(&k.body, e, &|_| None)).collect::<Result<_>>()?,
        threads: k.threads.iter().flat_map(|t| t.axes.iter().map(|&(_, n)| n)).collect(),
        cpu: None,
    })
}

fn dim_names(dims: &Arena<Dim>) -> Vec<String> {
    dims.iter().map(|(_, d)| d.name.clone()).collect()
}

fn conditions(body: &Body, wheres: &[(ExprId, String)]) -> Result<Vec<(IExpr, String)>> {
    wheres.iter().map(|(e, text)| Ok((convert(body, *e, &|_| None)?, text.clone()))).collect()
}

fn params(body: &Body, args: &Arena<Arg>) -> Result<Vec<abi::ParamAbi>> {
    let one = |a: &Arg| -> Result<abi::ParamAbi> {
        Ok(match &a.kind {
            ArgKind::Scalar(elem) => {
                abi::ParamAbi::Scalar(abi::ScalarAbi { name: a.name.clone(), ty: scalar_type(*elem) })
            }
            ArgKind::Tensor(t) => abi::ParamAbi::Tensor(tensor(body, &a.name, t)?),
        })
    };
    args.iter().map(|(_, a)| one(a)).collect()
}

fn scalar_type(elem: Elem) -> abi::ScalarType {
    match elem {
        Elem::Index => abi::ScalarType::Index,
        Elem::D(d) => abi::ScalarType::Typed(d),
    }
}

fn tensor(body: &Body, name: &str, t: &Tensor) -> Result<abi::TensorAbi> {
    let exprs =
        |list: &[ExprId]| list.iter().map(|&e| convert(body, e, &|_| None)).collect::<Result<Vec<_>>>();
    Ok(abi::TensorAbi {
        name: name.to_string(),
        mode: match t.mode {
            Mode::In => abi::Mode::In,
            Mode::Out => abi::Mode::Out,
            Mode::InOut => abi::Mode::InOut,
        },
        dtype: t.elem,
        dims: exprs(&t.dims)?,
        strides: t.strides.as_ref().map(|s| exprs(s)).transpose()?,
        align: t.align,
        base_align: t.base_align,
        packed: t.packed.map(|p| abi::Packing {
            axis: p.axis.into(),
            order: match p.order {
                PackOrder::Linear => abi::PackOrder::Linear,
                PackOrder::Gptq => abi::PackOrder::Gptq,
                PackOrder::Awq => abi::PackOrder::Awq,
            },
        }),
    })
}

struct Host<'a> {
    program: &'a Program,
    /// Loop variables met so far; their slots follow those of the dims.
    loop_vars: Vec<LocalId>,
    names: Vec<String>,
}

impl Host<'_> {
    fn body(&self) -> &Body {
        &self.program.entry.body
    }

    fn expr(&self, e: ExprId) -> Result<IExpr> {
        let first = self.program.entry.dims.len();
        let slot = |l: LocalId| self.loop_vars.iter().position(|v| *v == l).map(|i| (first + i) as u32);
        convert(self.body(), e, &slot)
    }

    fn exprs(&self, list: &[ExprId]) -> Result<Vec<IExpr>> {
        list.iter().map(|&e| self.expr(e)).collect()
    }

    fn steps(&mut self, steps: &[Step]) -> Result<Vec<abi::Step>> {
        steps.iter().map(|s| self.step(s)).collect()
    }

    fn step(&mut self, step: &Step) -> Result<abi::Step> {
        Ok(match &step.kind {
            StepKind::Launch { kernel, args } => abi::Step::Launch {
                kernel: kernel.index() as u32,
                args: args.iter().map(|a| self.launch_arg(*a)).collect::<Result<_>>()?,
            },
            StepKind::If { cond, then, other } => {
                let cond = self.expr(*cond)?;
                abi::Step::If { cond, then: self.steps(then)?, other: self.steps(other)? }
            }
            StepKind::For { var, lo, hi, body } => {
                let (lo, hi) = (self.expr(*lo)?, self.expr(*hi)?);
                let slot = (self.program.entry.dims.len() + self.loop_vars.len()) as u32;
                self.loop_vars.push(*var);
                self.names.push(self.body().locals.get(*var).map_or_else(String::new, |l| l.name.clone()));
                abi::Step::For { var: slot, lo, hi, body: self.steps(body)? }
            }
        })
    }

    fn launch_arg(&self, arg: LaunchArg) -> Result<abi::Arg> {
        let e = match arg {
            LaunchArg::Arg(a) => return Ok(abi::Arg::Param(a.index() as u32)),
            LaunchArg::Workspace(w) => return Ok(abi::Arg::Workspace(w.index() as u32)),
            LaunchArg::Scalar(e) => e,
        };
        let body = self.body();
        Ok(match &body.exprs[e] {
            Expr::Arg(a) => abi::Arg::Param(a.index() as u32),
            Expr::Const { elem: Elem::D(d), bits } if !d.is_int() => abi::Arg::Bits(*d, low(*bits, d.bits())),
            // the launcher converts the number and says so where it does not fit
            Expr::Cast { to: Elem::D(d), value, .. } if d.is_int() => abi::Arg::Int(self.expr(*value)?),
            _ => abi::Arg::Int(self.expr(e)?),
        })
    }
}

fn low(bits: u64, width: u32) -> u64 {
    if width >= 64 { bits } else { bits & ((1 << width) - 1) }
}

/// An integer expression over dims, scalar parameters and, by `slot`, loop variables.
fn convert(body: &Body, e: ExprId, slot: &dyn Fn(LocalId) -> Option<u32>) -> Result<IExpr> {
    let span = body.exprs.span(e);
    let sub = |e: ExprId| convert(body, e, slot);
    let bin = |op, a, b| Ok(IExpr::bin(op, a, b));
    match &body.exprs[e] {
        Expr::Const { elem, bits } if elem.is_integer() || *elem == Elem::BOOL => {
            Ok(IExpr::Const(*bits as i64))
        }
        Expr::Dim(d) => Ok(IExpr::Dim(d.index() as u32)),
        Expr::Arg(a) => Ok(IExpr::Scalar(a.index() as u32)),
        Expr::Local(l) => slot(*l).map(IExpr::Dim).ok_or_else(|| unknown(span)),
        Expr::Unary(UnOp::Neg, a) => bin(IOp::Sub, IExpr::Const(0), sub(*a)?),
        Expr::Unary(UnOp::Not, a) if body.type_of(*a).elem() == Some(Elem::BOOL) => {
            Ok(IExpr::negate(sub(*a)?))
        }
        Expr::Binary(op, a, b) => bin(operator(*op).ok_or_else(|| unknown(span))?, sub(*a)?, sub(*b)?),
        Expr::Select { cond, then, other } => Ok(IExpr::select(sub(*cond)?, sub(*then)?, sub(*other)?)),
        // integers keep their value on the way to `index`
        Expr::Cast { to: Elem::Index, value, .. } => sub(*value),
        Expr::Math { f, args, .. } => match (f, args.as_slice()) {
            (MathFn::Min, [a, b]) => bin(IOp::Min, sub(*a)?, sub(*b)?),
            (MathFn::Max, [a, b]) => bin(IOp::Max, sub(*a)?, sub(*b)?),
            (MathFn::CeilDiv, [a, b]) => bin(IOp::CeilDiv, sub(*a)?, sub(*b)?),
            (MathFn::Clamp, [x, lo, hi]) => {
                bin(IOp::Min, IExpr::bin(IOp::Max, sub(*x)?, sub(*lo)?), sub(*hi)?)
            }
            (MathFn::Abs, [a]) => {
                let a = sub(*a)?;
                bin(IOp::Max, a.clone(), IExpr::bin(IOp::Sub, IExpr::Const(0), a))
            }
            _ => Err(unknown(span)),
        },
        _ => Err(unknown(span)),
    }
}

fn operator(op: BinOp) -> Option<IOp> {
    Some(match op {
        BinOp::Add => IOp::Add,
        BinOp::Sub => IOp::Sub,
        BinOp::Mul => IOp::Mul,
        BinOp::Div => IOp::FloorDiv,
        BinOp::Rem => IOp::Mod,
        BinOp::LogicalAnd => IOp::And,
        BinOp::LogicalOr => IOp::Or,
        BinOp::Eq => IOp::Eq,
        BinOp::Ne => IOp::Ne,
        BinOp::Lt => IOp::Lt,
        BinOp::Le => IOp::Le,
        BinOp::Gt => IOp::Gt,
        BinOp::Ge => IOp::Ge,
        BinOp::Shl | BinOp::Shr | BinOp::And | BinOp::Or | BinOp::Xor => return None,
    })
}

fn unknown(span: Span) -> Diagnostic {
    Diagnostic::error(codes::HOST_EXPRESSION, span, "this value cannot be computed at the launch")
        .help("use dims, integer parameters, constants, + - * / %, comparisons, min, max and ceildiv")
}
