//! Arguments meet parameters: dims are found, everything else is checked, and what does not fit is said in the
//! user's words.
//!
//! A dim or stride that is a bare name is bound by its first occurrence (tensors in the order of declaration, shape
//! before strides); every other occurrence and every expression is checked against that. Nothing is solved.

use crate::overlap::Footprint;
use crate::{ArgValue, IExpr, Mode, Names, ParamAbi, ScalarAbi, ScalarValue, TensorAbi, TensorArg, Values};

/// What a caller sees of a kernel or op.
#[derive(Clone, Copy, Debug)]
pub struct Signature<'a> {
    pub name: &'a str,
    pub params: &'a [ParamAbi],
    pub dims: &'a [String],
    pub conditions: &'a [(IExpr, String)],
}

impl Signature<'_> {
    pub fn names(&self) -> Names {
        Names { dims: self.dims.to_vec(), params: self.params.iter().map(|p| p.name().to_string()).collect() }
    }

    /// The head as the user would write it: `gemv(x: f16[K], B: f16[N, K], y: out f16[N])`.
    pub fn head(&self) -> String {
        let names = self.names();
        let params: Vec<String> = self.params.iter().map(|p| p.display(&names).to_string()).collect();
        format!("{}({})", self.name, params.join(", "))
    }
}

/// Which rule an argument broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BindRule {
    /// An argument is missing, unknown, given twice, or a tensor where a scalar is expected.
    Argument,
    DType,
    Rank,
    /// An extent disagrees with its dim or expression, or a dim cannot be found.
    Shape,
    Stride,
    Align,
    /// The memory behind an argument is too small.
    Size,
    /// Memory that is written is also reachable through another argument, or twice through the same.
    Overlap,
    /// A condition of the header is false.
    Condition,
}

impl BindRule {
    /// The rule's number, as in `P0750`.
    pub const fn code(self) -> u16 {
        match self {
            BindRule::Argument => 750,
            BindRule::DType => 751,
            BindRule::Rank => 752,
            BindRule::Shape => 753,
            BindRule::Stride => 754,
            BindRule::Align => 755,
            BindRule::Size => 756,
            BindRule::Overlap => 757,
            BindRule::Condition => 758,
        }
    }
}

/// An argument that does not fit its parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindError {
    pub rule: BindRule,
    /// The parameter at fault, where there is one.
    pub param: Option<String>,
    pub message: String,
    pub help: Option<String>,
}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for BindError {}

/// Arguments that fit, in the order of the parameters, and the dims they determine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundArgs {
    pub args: Vec<ArgValue>,
    /// By slot; `None` for one that nothing asked for.
    pub dims: Vec<Option<i64>>,
    /// Integer values of scalar parameters, by position.
    pub scalars: Vec<Option<i64>>,
}

impl BoundArgs {
    pub fn values(&self) -> Values<'_> {
        Values { dims: &self.dims, scalars: &self.scalars }
    }
}

/// Binds arguments given by name, in any order.
pub fn bind_named(sig: Signature<'_>, given: Vec<(String, ArgValue)>) -> Result<BoundArgs, BindError> {
    let mut slots: Vec<Option<ArgValue>> = vec![None; sig.params.len()];
    for (name, value) in given {
        let Some(at) = sig.params.iter().position(|p| p.name() == name) else {
            let message = format!("`{}` has no parameter `{name}`", sig.name);
            return Err(fail(BindRule::Argument, None, message).help(format!("it is {}", sig.head())));
        };
        if slots[at].replace(value).is_some() {
            return Err(fail(BindRule::Argument, Some(&name), format!("`{name}` is given twice")));
        }
    }
    let missing: Vec<String> = (sig.params.iter().zip(&slots))
        .filter(|(_, slot)| slot.is_none())
        .map(|(p, _)| format!("`{}`", p.name()))
        .collect();
    if !missing.is_empty() {
        let verb = if missing.len() == 1 { "is" } else { "are" };
        let message = format!("{} {verb} missing", missing.join(", "));
        return Err(fail(BindRule::Argument, None, message).help(format!("the head is {}", sig.head())));
    }
    bind(sig, slots.into_iter().flatten().collect())
}

/// Binds arguments given in the order of the parameters.
pub fn bind(sig: Signature<'_>, args: Vec<ArgValue>) -> Result<BoundArgs, BindError> {
    if args.len() != sig.params.len() {
        let message = format!("`{}` takes {} arguments, not {}", sig.name, sig.params.len(), args.len());
        return Err(fail(BindRule::Argument, None, message).help(format!("the head is {}", sig.head())));
    }
    let mut binder = Binder {
        sig,
        dims: vec![None; sig.dims.len()],
        origin: vec![Origin { param: 0, axis: 0, stride: false }; sig.dims.len()],
        scalars: vec![None; args.len()],
    };
    for (i, (param, arg)) in sig.params.iter().zip(&args).enumerate() {
        binder.kind(i, param, arg)?;
    }
    let tensors: Vec<(usize, &TensorAbi, &TensorArg)> = (sig.params.iter().zip(&args).enumerate())
        .filter_map(|(i, (p, a))| Some((i, p.as_tensor()?, a.as_tensor()?)))
        .collect();
    for &(i, abi, arg) in &tensors {
        binder.bare(i, abi, arg);
    }
    for &(_, abi, arg) in &tensors {
        binder.shape(abi, arg)?;
        binder.strides(abi, arg)?;
        memory(abi, arg)?;
    }
    binder.conditions()?;
    overlaps(&tensors)?;
    let Binder { dims, scalars, .. } = binder;
    Ok(BoundArgs { args, dims, scalars })
}

/// Where a dim got its value.
#[derive(Clone, Copy)]
struct Origin {
    param: usize,
    axis: usize,
    stride: bool,
}

struct Binder<'a> {
    sig: Signature<'a>,
    dims: Vec<Option<i64>>,
    origin: Vec<Origin>,
    scalars: Vec<Option<i64>>,
}

impl Binder<'_> {
    /// Tensor or scalar, type and rank.
    fn kind(&mut self, i: usize, param: &ParamAbi, arg: &ArgValue) -> Result<(), BindError> {
        match (param, arg) {
            (ParamAbi::Scalar(abi), ArgValue::Scalar(value)) => {
                self.scalars[i] = value.as_int();
                scalar_type(abi, *value)
            }
            (ParamAbi::Tensor(abi), ArgValue::Tensor(arg)) => tensor_type(abi, arg),
            (ParamAbi::Tensor(t), _) => {
                let message = format!("`{}` is a tensor, but a number is given", t.name);
                Err(fail(BindRule::Argument, Some(&t.name), message))
            }
            (ParamAbi::Scalar(s), _) => {
                let message = format!("`{}` is a number of type {}, but a tensor is given", s.name, s.ty);
                Err(fail(BindRule::Argument, Some(&s.name), message))
            }
        }
    }

    /// Binds dims and strides that are bare names and not bound yet.
    fn bare(&mut self, param: usize, abi: &TensorAbi, arg: &TensorArg) {
        let shape = abi.dims.iter().zip(arg.shape.iter().map(|&e| i64::try_from(e).ok()));
        for (axis, (expr, extent)) in shape.enumerate() {
            self.bind_bare(expr, extent, Origin { param, axis, stride: false });
        }
        let strides = abi.strides.iter().flatten().zip(arg.strides.iter().map(|&s| i64::try_from(s).ok()));
        for (axis, (expr, stride)) in strides.enumerate() {
            self.bind_bare(expr, stride, Origin { param, axis, stride: true });
        }
    }

    fn bind_bare(&mut self, expr: &IExpr, value: Option<i64>, origin: Origin) {
        if let IExpr::Dim(slot) = expr
            && let Some(dim @ None) = self.dims.get_mut(*slot as usize)
        {
            *dim = value;
            self.origin[*slot as usize] = origin;
        }
    }

    fn values(&self) -> Values<'_> {
        Values { dims: &self.dims, scalars: &self.scalars }
    }

    /// The expression's value, or why parameter `name` cannot be checked.
    fn eval(&self, expr: &IExpr, rule: BindRule, name: &str, what: &str) -> Result<i64, BindError> {
        expr.eval(self.values()).map_err(|e| {
            let names = self.sig.names();
            let message = format!("{what} of `{name}` is {}: {}", expr.display(&names), names.explain(&e));
            fail(rule, Some(name), message)
        })
    }

    fn shape(&self, abi: &TensorAbi, arg: &TensorArg) -> Result<(), BindError> {
        for (axis, (expr, &extent)) in abi.dims.iter().zip(&arg.shape).enumerate() {
            let want = self.eval(expr, BindRule::Shape, &abi.name, &format!("axis {axis}"))?;
            if i64::try_from(extent) != Ok(want) {
                let things = elements_word(axis, abi.dims.len(), extent);
                let because = self.because(expr, want);
                let message = format!("`{}` has {extent} {things} (axis {axis}), but {because}", abi.name);
                return Err(fail(BindRule::Shape, Some(&abi.name), message));
            }
            if let Some(p) = abi.packed
                && p.axis as usize == axis
                && extent % p.order.per_unit() != 0
            {
                let per = p.order.per_unit();
                let message = format!(
                    "axis {axis} of `{}` has {extent} elements, but {per} of them share a unit of storage",
                    abi.name
                );
                return Err(fail(BindRule::Shape, Some(&abi.name), message)
                    .help(format!("make it a multiple of {per}")));
            }
        }
        Ok(())
    }

    /// `K is 128 from axis 1 of `A``, or `K/G is 16`, with what its dims are.
    fn because(&self, expr: &IExpr, want: i64) -> String {
        let names = self.sig.names();
        let text = format!("{} is {want}", expr.display(&names));
        match expr {
            IExpr::Const(c) => format!("{c} is declared"),
            IExpr::Dim(d) => format!("{text} from {}", self.source_of(*d)),
            _ => {
                let mut slots = Vec::new();
                expr.for_each_dim(&mut |d| {
                    if !slots.contains(&d) {
                        slots.push(d);
                    }
                });
                let facts: Vec<String> = (slots.iter())
                    .filter_map(|&d| Some(format!("{} = {}", names.dim(d), (*self.dims.get(d as usize)?)?)))
                    .collect();
                if facts.is_empty() { text } else { format!("{text} where {}", facts.join(", ")) }
            }
        }
    }

    fn source_of(&self, slot: u32) -> String {
        let Some(origin) = self.origin.get(slot as usize) else { return "the call".into() };
        let what = if origin.stride { "the stride of axis" } else { "axis" };
        let name = self.sig.params.get(origin.param).map_or("?", |p| p.name());
        format!("{what} {} of `{name}`", origin.axis)
    }

    fn strides(&self, abi: &TensorAbi, arg: &TensorArg) -> Result<(), BindError> {
        let rule = BindRule::Stride;
        let err = |message: String| fail(rule, Some(&abi.name), message);
        if let Some(axis) = arg.strides.iter().position(|&s| s < 0) {
            return Err(err(format!("axis {axis} of `{}` runs backwards", abi.name)).help("copy it first"));
        }
        if arg.is_empty() {
            return Ok(());
        }
        let plain;
        let want: &[isize] = match &abi.strides {
            None => {
                plain = crate::contiguous_strides(&arg.storage_shape(abi.packed));
                &plain
            }
            Some(exprs) => {
                plain = (exprs.iter().enumerate())
                    .map(|(axis, e)| {
                        let v = self.eval(e, rule, &abi.name, &format!("the stride of axis {axis}"))?;
                        isize::try_from(v)
                            .map_err(|_| err(format!("a stride of `{}` is too large", abi.name)))
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                &plain
            }
        };
        for (axis, (&have, &want)) in arg.strides.iter().zip(want).enumerate() {
            if have == want || arg.shape[axis] == 1 {
                continue;
            }
            return Err(match &abi.strides {
                None => err(format!(
                    "`{}` has stride {have} on axis {axis}, but it must be {want}: it is declared row-major without gaps",
                    abi.name
                ))
                .help("copy it, or name its strides in the head: `strides (lda, 1)`"),
                Some(exprs) => {
                    let because = self.because(&exprs[axis], want as i64);
                    err(format!("`{}` has stride {have} on axis {axis}, but {because}", abi.name))
                }
            });
        }
        if abi.mode == Mode::In {
            return Ok(());
        }
        if footprint(abi, arg).overlaps_itself() {
            let message = format!(
                "elements of `{}` share memory (shape {:?}, strides {:?}), but it is written",
                abi.name, arg.shape, arg.strides
            );
            return Err(fail(BindRule::Overlap, Some(&abi.name), message)
                .help("give each element a place of its own; stride 0 is for tensors that are only read"));
        }
        Ok(())
    }

    fn conditions(&self) -> Result<(), BindError> {
        for (cond, text) in self.sig.conditions {
            let names = self.sig.names();
            let holds = cond.is_true(self.values()).map_err(|e| {
                let message = format!("`{}` wants {text}, but {}", self.sig.name, names.explain(&e));
                fail(BindRule::Condition, None, message)
            })?;
            if !holds {
                let mut slots = Vec::new();
                cond.for_each_dim(&mut |d| {
                    if !slots.contains(&d) {
                        slots.push(d);
                    }
                });
                let facts: Vec<String> = (slots.into_iter())
                    .filter_map(|d| {
                        let value = (*self.dims.get(d as usize)?)?;
                        Some(format!("{} is {value} from {}", names.dim(d), self.source_of(d)))
                    })
                    .collect();
                let facts = if facts.is_empty() { "it is false".into() } else { facts.join(", ") };
                let message = format!("`{}` wants {text}, but {facts}", self.sig.name);
                return Err(fail(BindRule::Condition, None, message));
            }
        }
        Ok(())
    }
}

fn scalar_type(abi: &ScalarAbi, value: ScalarValue) -> Result<(), BindError> {
    if abi.ty == value.ty() {
        return Ok(());
    }
    let message = format!("`{}` is {}, but {} is given", abi.name, abi.ty, value.ty());
    Err(fail(BindRule::DType, Some(&abi.name), message))
}

fn tensor_type(abi: &TensorAbi, arg: &TensorArg) -> Result<(), BindError> {
    if abi.dtype != arg.dtype {
        let message = format!("`{}` is {}, but {} is given", abi.name, abi.dtype, arg.dtype);
        return Err(fail(BindRule::DType, Some(&abi.name), message));
    }
    if abi.dims.len() != arg.shape.len() || arg.strides.len() != arg.shape.len() {
        let (want, have) = (abi.dims.len(), arg.shape.len());
        let (axes, are) = (if want == 1 { "axis" } else { "axes" }, if have == 1 { "is" } else { "are" });
        let message =
            format!("`{}` has {want} {axes}, but {have} {are} given (shape {:?})", abi.name, arg.shape);
        return Err(fail(BindRule::Rank, Some(&abi.name), message));
    }
    Ok(())
}

/// Alignment and size of the memory behind an argument.
fn memory(abi: &TensorAbi, arg: &TensorArg) -> Result<(), BindError> {
    if arg.is_empty() {
        return Ok(());
    }
    let unit = unit_bytes(abi);
    let place = footprint(abi, arg);
    let need = place.span();
    if need.is_none_or(|n| n > arg.bytes) {
        let need = need.map_or("more than can be addressed".into(), |n| format!("{n} bytes"));
        let message = format!(
            "`{}` needs {need} for shape {:?} and strides {:?}, but {} bytes are there",
            abi.name, arg.shape, arg.strides, arg.bytes
        );
        return Err(fail(BindRule::Size, Some(&abi.name), message));
    }
    let err = |message: String| Err(fail(BindRule::Align, Some(&abi.name), message));
    let addr = arg.ptr.addr();
    let align = abi.align.max(abi.base_align).map_or(unit, |a| a as usize).max(unit);
    if !addr.is_multiple_of(align) {
        return err(format!("`{}` starts at {addr:#x}, which is not a multiple of {align} bytes", abi.name));
    }
    let Some(align) = abi.align else { return Ok(()) };
    for (axis, &stride) in arg.strides.iter().enumerate() {
        let bytes = stride.unsigned_abs().saturating_mul(unit);
        if stride != 1 && arg.shape[axis] > 1 && !bytes.is_multiple_of(align as usize) {
            return err(format!(
                "axis {axis} of `{}` steps by {bytes} bytes, which is not a multiple of align {align}",
                abi.name
            ));
        }
    }
    Ok(())
}

fn overlaps(tensors: &[(usize, &TensorAbi, &TensorArg)]) -> Result<(), BindError> {
    let places: Vec<Footprint> = tensors.iter().map(|(_, abi, arg)| footprint(abi, arg)).collect();
    for (i, (_, a, _)) in tensors.iter().enumerate() {
        for (j, (_, b, _)) in tensors.iter().enumerate().skip(i + 1) {
            if (a.mode.writes() || b.mode.writes()) && places[i].overlaps(&places[j]) {
                let written = if b.mode.writes() { b } else { a };
                let message =
                    format!("`{}` and `{}` share memory, but `{}` is written", a.name, b.name, written.name);
                return Err(fail(BindRule::Overlap, Some(&written.name), message)
                    .help("hand over a tensor of its own, or declare one `inout` parameter"));
            }
        }
    }
    Ok(())
}

/// Bytes of one element, or of one unit of packed storage.
fn unit_bytes(abi: &TensorAbi) -> usize {
    abi.packed.map_or(abi.dtype.bits().div_ceil(8) as usize, |p| p.order.unit_bytes())
}

fn footprint(abi: &TensorAbi, arg: &TensorArg) -> Footprint {
    Footprint::new(arg.ptr.addr(), &arg.storage_shape(abi.packed), &arg.strides, unit_bytes(abi))
}

fn elements_word(axis: usize, rank: usize, extent: usize) -> &'static str {
    match (rank, axis, extent) {
        (2, 0, 1) => "row",
        (2, 0, _) => "rows",
        (2, 1, 1) => "column",
        (2, 1, _) => "columns",
        (_, _, 1) => "element",
        _ => "elements",
    }
}

fn fail(rule: BindRule, param: Option<&str>, message: String) -> BindError {
    BindError { rule, param: param.map(str::to_string), message, help: None }
}

impl BindError {
    fn help(mut self, text: impl Into<String>) -> BindError {
        self.help = Some(text.into());
        self
    }
}
