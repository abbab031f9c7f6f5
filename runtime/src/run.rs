//! Running a program: dims are bound, workspaces made, steps walked, grids computed.
//!
//! How one kernel runs is the launcher's affair: the JIT, objects on disk and the interpreter are launchers.

use crate::error::{Error, ErrorKind, Result};
use crate::host::{HostBuffer, poison_byte, storage_bytes};
use pantile_abi::{
    Arg, ArgValue, BoundArgs, DType, IExpr, KernelAbi, PackOrder, Packing, ParamAbi, Program, ScalarValue,
    Step, TensorArg, bind, bind_named,
};

/// One launch, ready to go: every argument fits, no grid extent is 0.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Position in [`Program::kernels`].
    pub kernel: usize,
    pub abi: &'a KernelAbi,
    pub args: &'a BoundArgs,
    /// Blocks along each grid axis.
    pub grid: &'a [u64],
}

/// Whatever can run the kernels of one program.
pub trait Launcher {
    fn launch(&mut self, launch: Launch<'_>) -> Result<()>;

    /// Memory for a workspace, in the space where kernels run.
    fn workspace(&mut self, request: WorkspaceRequest<'_>) -> Result<Box<dyn Workspace>> {
        let mut buffer = HostBuffer::zeroed(request.bytes)?;
        if !request.zeroed {
            buffer.bytes_mut().fill(poison_byte(request.dtype));
        }
        Ok(Box::new(buffer))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct WorkspaceRequest<'a> {
    pub name: &'a str,
    pub dtype: DType,
    pub shape: &'a [usize],
    pub bytes: usize,
    /// Zero, or poison so that a read before a write shows.
    pub zeroed: bool,
}

/// Memory that lives until the program ends.
pub trait Workspace {
    fn ptr(&self) -> pantile_abi::Ptr;
}

impl Workspace for HostBuffer {
    fn ptr(&self) -> pantile_abi::Ptr {
        HostBuffer::ptr(self)
    }
}

/// Runs a program on arguments given by name.
///
/// # Safety
/// The memory behind every tensor argument is valid for its size where the launcher runs kernels, for reads, and for
/// writes where the parameter is `out` or `inout`; nobody else uses it meanwhile (reads of `in` tensors excepted).
pub unsafe fn run_program(
    program: &Program,
    args: Vec<(String, ArgValue)>,
    launcher: &mut dyn Launcher,
) -> Result<()> {
    let bound = bind_named(program.signature(), args)?;
    // SAFETY: passed on.
    unsafe { run_bound(program, bound, launcher) }
}

/// Runs a program on arguments that were bound to its signature.
///
/// # Safety
/// As [`run_program`].
pub unsafe fn run_bound(program: &Program, bound: BoundArgs, launcher: &mut dyn Launcher) -> Result<()> {
    let mut dims = bound.dims.clone();
    dims.resize(program.dims.len() + program.loop_vars.len(), None);
    let mut run = Run { program, bound, dims, workspaces: Vec::new(), launcher };
    run.steps(&program.steps)
}

struct Run<'a> {
    program: &'a Program,
    bound: BoundArgs,
    /// Dims and loop variables, by slot.
    dims: Vec<Option<i64>>,
    workspaces: Vec<Option<(TensorArg, Box<dyn Workspace>)>>,
    launcher: &'a mut dyn Launcher,
}

impl Run<'_> {
    fn steps(&mut self, steps: &[Step]) -> Result<()> {
        for step in steps {
            match step {
                Step::Workspace { slot, name, dtype, shape, zeroed } => {
                    self.workspace(*slot, name, *dtype, shape, *zeroed)?;
                }
                Step::Launch { kernel, args } => self.launch(*kernel as usize, args)?,
                Step::If { cond, then, other } => {
                    let taken = self.eval(cond, "a condition")? != 0;
                    self.steps(if taken { then } else { other })?;
                }
                Step::For { var, lo, hi, body } => {
                    let (lo, hi) = (self.eval(lo, "a loop's start")?, self.eval(hi, "a loop's end")?);
                    for i in lo..hi {
                        match self.dims.get_mut(*var as usize) {
                            Some(slot) => *slot = Some(i),
                            None => return Err(self.malformed("a loop variable has no slot")),
                        }
                        self.steps(body)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn eval(&self, expr: &IExpr, what: &str) -> Result<i64> {
        let values = pantile_abi::Values { dims: &self.dims, scalars: &self.bound.scalars };
        expr.eval(values).map_err(|e| {
            let names = self.program.names();
            let text = format!("{what} of `{}` is {}", self.program.name, expr.display(&names));
            Error::new(ErrorKind::Launch, format!("{text}: {}", names.explain(&e)))
        })
    }

    fn workspace(
        &mut self,
        slot: u32,
        name: &str,
        dtype: DType,
        shape: &[IExpr],
        zeroed: bool,
    ) -> Result<()> {
        let what = format!("an extent of workspace `{name}`");
        let extents = (shape.iter())
            .map(|e| {
                let v = self.eval(e, &what)?;
                usize::try_from(v).map_err(|_| {
                    let text = e.display(&self.program.names()).to_string();
                    Error::new(
                        ErrorKind::Launch,
                        format!("workspace `{name}` has extent {text}, which is {v}"),
                    )
                })
            })
            .collect::<Result<Vec<usize>>>()?;
        let packed = (dtype.bits() == 4 && !extents.is_empty())
            .then(|| Packing { axis: extents.len() as u32 - 1, order: PackOrder::Linear });
        let bytes = storage_bytes(dtype, &extents, packed).ok_or_else(|| {
            Error::new(ErrorKind::Memory, format!("workspace `{name}` of shape {extents:?} is too large"))
        })?;
        let request = WorkspaceRequest { name, dtype, shape: &extents, bytes, zeroed };
        let memory = self.launcher.workspace(request).map_err(|e| e.within(format!("workspace `{name}`")))?;
        let arg = TensorArg::contiguous(dtype, &extents, packed, memory.ptr(), bytes);
        let slot = slot as usize;
        if self.workspaces.len() <= slot {
            self.workspaces.resize_with(slot + 1, || None);
        }
        self.workspaces[slot] = Some((arg, memory));
        Ok(())
    }

    fn launch(&mut self, kernel: usize, args: &[Arg]) -> Result<()> {
        let program = self.program;
        let Some(abi) = program.kernels.get(kernel) else {
            return Err(self.malformed("a launch names no kernel"));
        };
        if args.len() != abi.params.len() {
            return Err(self.malformed("a launch has too few or too many arguments"));
        }
        let place = format!("in the launch of `{}`", abi.name);
        let values = args.iter().zip(&abi.params).map(|(arg, param)| self.arg(arg, param, &place));
        let values = values.collect::<Result<Vec<ArgValue>>>()?;
        // a program of one launch was bound with the same head already
        let alone = matches!(program.steps.as_slice(), [Step::Launch { .. }]);
        let bound = bind(abi.signature(), values).map_err(|e| {
            let e = Error::from(e);
            if alone { e } else { e.within(&place) }
        })?;
        let grid = grid(abi, &bound)?;
        if grid.contains(&0) {
            return Ok(());
        }
        self.launcher.launch(Launch { kernel, abi, args: &bound, grid: &grid })
    }

    fn arg(&self, arg: &Arg, param: &ParamAbi, place: &str) -> Result<ArgValue> {
        match arg {
            Arg::Param(i) => self
                .bound
                .args
                .get(*i as usize)
                .cloned()
                .ok_or_else(|| self.malformed("an argument names no parameter")),
            Arg::Workspace(slot) => match self.workspaces.get(*slot as usize) {
                Some(Some((arg, _))) => Ok(ArgValue::Tensor(arg.clone())),
                _ => Err(self.malformed("a workspace is used before it is made")),
            },
            Arg::Bits(dtype, bits) => Ok(ArgValue::Scalar(ScalarValue::Bits(*dtype, *bits))),
            Arg::Int(expr) => {
                let value = self.eval(expr, &format!("`{}` {place}", param.name()))?;
                let ParamAbi::Scalar(s) = param else {
                    return Err(self.malformed("a number is handed to a tensor"));
                };
                ScalarValue::from_int(s.ty, value).map(ArgValue::Scalar).ok_or_else(|| {
                    let message = format!("`{}` is {value}, which does not fit {}", s.name, s.ty);
                    Error::new(ErrorKind::Launch, message).within(place)
                })
            }
        }
    }

    /// The program itself is wrong, which its maker should have seen.
    fn malformed(&self, what: &str) -> Error {
        Error::new(ErrorKind::Launch, format!("the description of `{}` is wrong: {what}", self.program.name))
    }
}

/// Blocks along each axis; a negative extent counts as an error, 0 as nothing to do.
fn grid(abi: &KernelAbi, bound: &BoundArgs) -> Result<Vec<u64>> {
    let fail = |expr: &IExpr, why: String| {
        let text = expr.display(&abi.signature().names()).to_string();
        Error::new(ErrorKind::Launch, format!("the grid of `{}` has extent {text}, {why}", abi.name))
    };
    let extents = (abi.grid.iter())
        .map(|expr| {
            let v = expr.eval(bound.values()).map_err(|e| fail(expr, abi.signature().names().explain(&e)))?;
            u64::try_from(v).map_err(|_| fail(expr, format!("which is {v}")))
        })
        .collect::<Result<Vec<u64>>>()?;
    let blocks = extents.iter().try_fold(1u64, |n, &e| n.checked_mul(e));
    if !extents.contains(&0) && blocks.is_none_or(|n| n > i64::MAX as u64) {
        let message = format!("the grid of `{}` has more blocks than can be counted: {extents:?}", abi.name);
        return Err(Error::new(ErrorKind::Launch, message));
    }
    Ok(extents)
}
