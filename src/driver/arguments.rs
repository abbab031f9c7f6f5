//! From what the user gives to what an entry takes.

use super::{Compiled, Head, Value, diagnostic};
use pantile_abi::{
    DType, Known, Mode, PackOrder, ParamAbi, ScalarAbi, ScalarType, ScalarValue, TensorAbi, infer_shapes,
};
use pantile_ir::ast::{self, ExprKind};
use pantile_ir::codes;
use pantile_ir::diag::Diagnostic;
use pantile_ir::elab::{self, ArgInfo, InputOp};
use pantile_ir::span::Span;
use pantile_runtime::HostTensor;
use pantile_runtime::files::{FileType, RawArray, Wanted};
use pantile_runtime::random::{Distribution, InputSpec, Recipe};

/// What was given for a parameter.
#[derive(Debug)]
pub enum Input {
    /// An array and where it came from.
    Array(RawArray, String),
    /// Seeded values of a stated shape.
    Spec(InputSpec),
    /// Values as a test describes them; the shape follows from the dims.
    Generated(elab::Input),
    /// A number as written.
    Number(String),
    /// A tensor at hand; floats are converted to the parameter's type.
    Tensor(HostTensor),
    /// A scalar at hand, likewise.
    Scalar(ScalarValue),
}

impl Value {
    pub fn as_tensor(&self) -> Option<&HostTensor> {
        match self {
            Value::Tensor(t) => Some(t),
            Value::Scalar(_) => None,
        }
    }

    /// The same value for another run.
    pub fn copy(&self) -> Result<Input, Diagnostic> {
        match self {
            Value::Tensor(t) => t.try_clone().map(Input::Tensor).map_err(diagnostic),
            Value::Scalar(s) => Ok(Input::Scalar(*s)),
        }
    }
}

/// What inputs tell about types and shapes before anything is specialised.
pub fn input_info(head: &Head<'_>, inputs: &[(String, Input)]) -> Vec<ArgInfo> {
    inputs.iter().filter_map(|(name, input)| input.info(head, name)).collect()
}

impl Input {
    /// The same again, of what is at hand.
    pub(super) fn copy(&self) -> Result<Input, Diagnostic> {
        match self {
            Input::Tensor(t) => t.try_clone().map(Input::Tensor).map_err(diagnostic),
            Input::Scalar(s) => Ok(Input::Scalar(*s)),
            Input::Number(text) => Ok(Input::Number(text.clone())),
            Input::Generated(g) => Ok(Input::Generated(g.clone())),
            Input::Spec(s) => Ok(Input::Spec(s.clone())),
            Input::Array(..) => {
                Err(error(codes::INPUT_SPEC, "an array is used twice before it is read".into()))
            }
        }
    }

    fn info(&self, head: &Head<'_>, name: &str) -> Option<ArgInfo> {
        let param = head.param(name);
        let (dtype, shape) = match self {
            Input::Array(raw, _) => {
                let dtype = match raw.ty {
                    FileType::Known(d) => Some(d),
                    // the only type of two bytes that array files have no name for
                    FileType::Raw(2) => Some(DType::BF16),
                    FileType::Raw(_) => None,
                };
                (dtype, logical_shape(param, &raw.shape))
            }
            Input::Spec(spec) => (None, spec.shape.clone()),
            Input::Generated(_) => return None,
            // what is no number either says nothing of the types; binding tells what it should be
            Input::Number(text) if text.parse::<f64>().is_err() && text != "true" && text != "false" => {
                return None;
            }
            Input::Number(_) | Input::Scalar(_) => (None, Vec::new()),
            Input::Tensor(t) => (Some(t.dtype()), t.shape().to_vec()),
        };
        Some(ArgInfo { name: name.into(), dtype, shape: shape.iter().map(|&e| e as u64).collect() })
    }
}

/// Elements along each axis of an array whose parameter is declared packed.
fn logical_shape(param: Option<&ast::Param>, shape: &[usize]) -> Vec<usize> {
    let mut shape = shape.to_vec();
    let Some((packed, dims)) = param.and_then(|p| Some((p.packed.as_ref()?, p.shape.as_ref()?))) else {
        return shape;
    };
    let per = match packed.order.as_ref().map(|o| o.name.as_str()) {
        Some("gptq" | "awq") => PackOrder::Gptq.per_unit(),
        _ => PackOrder::Linear.per_unit(),
    };
    let text = |e: &ast::Expr| match &e.kind {
        ExprKind::Name(n) => n.name.clone(),
        _ => pantile_ir::text::format_expr(e),
    };
    let axis = dims.iter().position(|d| text(d) == text(&packed.axis));
    if let Some(extent) = axis.and_then(|a| shape.get_mut(a)) {
        *extent = extent.saturating_mul(per);
    }
    shape
}

/// Makes every argument of a specialised entry: given ones in the parameter's type, outputs poisoned. `dims` fixes
/// dims that no input has.
pub fn arguments(
    entry: &Compiled,
    inputs: Vec<(String, Input)>,
    dims: &[(String, i64)],
) -> Result<Vec<(String, Value)>, Diagnostic> {
    let abi = &entry.abi;
    let mut given: Vec<Option<Input>> = abi.params.iter().map(|_| None).collect();
    for (name, input) in inputs {
        let Some(at) = abi.param_index(&name) else {
            let message = format!("`{}` has no parameter `{name}`", abi.name);
            return Err(
                error(codes::BIND_ARGUMENT, message).help(format!("it is {}", abi.signature().head()))
            );
        };
        if given[at].replace(input).is_some() {
            return Err(error(codes::BIND_ARGUMENT, format!("`{name}` is given twice")));
        }
    }
    let mut made: Vec<Option<Value>> = Vec::new();
    let mut waiting: Vec<Option<elab::Input>> = Vec::new();
    for (param, input) in abi.params.iter().zip(given) {
        let (argument, recipe) = one(param, input, &abi.signature().head())?;
        made.push(argument);
        waiting.push(recipe);
    }
    let known: Vec<Known> = made.iter().map(known).collect();
    let shapes = infer_shapes(abi.signature(), &known, dims).map_err(|e| {
        let mut d = diagnostic(e.into());
        if d.help.iter().any(|h| h.starts_with("give the shape")) {
            d.help = vec!["give the dim itself: `--dim NAME=VALUE`, or the shape of another tensor".into()];
        }
        d
    })?;
    let rest = made.into_iter().zip(&abi.params).zip(shapes).zip(waiting);
    rest.map(|(((argument, param), shape), recipe)| match (argument, param, shape) {
        // what an output held before is nobody's business
        (Some(Value::Tensor(mut t)), ParamAbi::Tensor(p), _) if p.mode == Mode::Out => {
            t.poison();
            Ok((p.name.clone(), Value::Tensor(t)))
        }
        (Some(a), p, _) => Ok((p.name().to_string(), a)),
        (None, ParamAbi::Tensor(t), Some(shape)) => Ok((t.name.clone(), fresh(t, &shape, recipe)?)),
        (None, p, _) => Err(error(codes::BIND_ARGUMENT, format!("`{}` is missing", p.name()))),
    })
    .collect()
}

fn fresh(t: &TensorAbi, shape: &[usize], input: Option<elab::Input>) -> Result<Value, Diagnostic> {
    let make = || {
        let mut tensor = HostTensor::zeros(t.dtype, shape, t.packed)?;
        match &input {
            None => tensor.poison(),
            Some(input) => {
                for i in 0..tensor.len() {
                    tensor.set_bits(i, element(input, t.dtype, i));
                }
            }
        }
        Ok(tensor)
    };
    make()
        .map(Value::Tensor)
        .map_err(|e: pantile_runtime::Error| diagnostic(e.within(format!("`{}`", t.name))))
}

/// Bits of the element at row-major position `i`.
fn element(input: &elab::Input, dtype: DType, i: usize) -> u64 {
    match input {
        // integers of 64 bits are not always numbers of f64
        elab::Input::Whole(n) if !dtype.is_float() => *n as u64 & (u64::MAX >> (64 - dtype.bits())),
        other => dtype.encode(generated(other, dtype, i)),
    }
}

fn generated(input: &elab::Input, dtype: DType, i: usize) -> f64 {
    let draw = |d, seed| Recipe::new(d, seed).value(dtype, i);
    let go = |e: &elab::Input| generated(e, dtype, i);
    match input {
        elab::Input::Normal { seed } => draw(Distribution::Normal, *seed),
        elab::Input::Uniform { lo, hi, seed } => draw(Distribution::Uniform { lo: *lo, hi: *hi }, *seed),
        elab::Input::Int { lo, hi, seed } => draw(Distribution::Int { range: Some((*lo, *hi)) }, *seed),
        elab::Input::Iota => draw(Distribution::Iota, 0),
        elab::Input::Number(x) => *x,
        elab::Input::Whole(n) => *n as f64,
        elab::Input::Neg(a) => -go(a),
        elab::Input::Binary(op, a, b) => {
            let (a, b) = (go(a), go(b));
            match op {
                InputOp::Add => a + b,
                InputOp::Sub => a - b,
                InputOp::Mul => a * b,
                InputOp::Div => a / b,
                InputOp::Rem => a - b * (a / b).floor(),
            }
        }
    }
}

fn known(argument: &Option<Value>) -> Known {
    match argument {
        Some(Value::Tensor(t)) => Known::Shape(t.shape().to_vec()),
        Some(Value::Scalar(s)) => s.as_int().map_or(Known::Nothing, Known::Int),
        None => Known::Nothing,
    }
}

/// The argument if it can be made already; a recipe waits for its shape, an output for the dims.
fn one(
    param: &ParamAbi,
    input: Option<Input>,
    head: &str,
) -> Result<(Option<Value>, Option<elab::Input>), Diagnostic> {
    let place = |e: pantile_runtime::Error| diagnostic(e.within(format!("`{}`", param.name())));
    let wrong = |message: String| Err(error(codes::BIND_ARGUMENT, message));
    let name = param.name();
    Ok(match (param, input) {
        (ParamAbi::Scalar(s), Some(Input::Number(text))) => (Some(Value::Scalar(scalar(s, &text)?)), None),
        (ParamAbi::Scalar(s), Some(Input::Generated(g))) => {
            (Some(Value::Scalar(generated_scalar(s, &g)?)), None)
        }
        (ParamAbi::Scalar(s), Some(Input::Scalar(v))) => (Some(Value::Scalar(converted(s, v))), None),
        (ParamAbi::Scalar(s), Some(_)) => {
            return wrong(format!("`{name}` is a number of type {}, write `{name}=VALUE`", s.ty));
        }
        (ParamAbi::Tensor(t), Some(Input::Array(raw, _))) => {
            let tensor = raw.into_tensor(Some(Wanted { dtype: t.dtype, packed: t.packed })).map_err(place)?;
            (Some(Value::Tensor(tensor)), None)
        }
        (ParamAbi::Tensor(t), Some(Input::Spec(spec))) => {
            let tensor = spec.recipe.make(t.dtype, &spec.shape, t.packed).map_err(place)?;
            (Some(Value::Tensor(tensor)), None)
        }
        (ParamAbi::Tensor(_), Some(Input::Generated(g))) => (None, Some(g)),
        (ParamAbi::Tensor(t), Some(Input::Tensor(have))) => {
            (Some(Value::Tensor(as_type(have, t.dtype).map_err(place)?)), None)
        }
        (ParamAbi::Tensor(t), Some(Input::Scalar(_))) => {
            return wrong(format!("`{}` is a tensor, but a number is given", t.name));
        }
        (ParamAbi::Tensor(_), Some(Input::Number(text))) => {
            let message = format!("`{name}` is a tensor, but `{text}` is neither a file nor a description");
            return Err(error(codes::INPUT_SPEC, message)
                .help("files end in .npy, .npz or .safetensors; descriptions look like normal:128x64"));
        }
        (ParamAbi::Tensor(t), None) if t.mode == Mode::Out => (None, None),
        (_, None) => {
            return Err(error(codes::BIND_ARGUMENT, format!("`{name}` is missing"))
                .help(format!("the head is {head}")));
        }
    })
}

/// Floats go over to another float type; everything else is left for binding to judge.
fn as_type(t: HostTensor, dtype: DType) -> pantile_runtime::Result<HostTensor> {
    if t.dtype() == dtype || !t.dtype().is_float() || !dtype.is_float() {
        return Ok(t);
    }
    HostTensor::from_f64(dtype, t.shape(), &t.to_f64())
}

fn converted(abi: &ScalarAbi, value: ScalarValue) -> ScalarValue {
    match (value, abi.ty) {
        (ScalarValue::Bits(from, bits), ScalarType::Typed(to)) if from.is_float() && to.is_float() => {
            ScalarValue::Bits(to, if from == to { bits } else { to.encode(from.decode(bits)) })
        }
        (v, ty) => v.as_int().and_then(|i| ScalarValue::from_int(ty, i)).unwrap_or(v),
    }
}

/// A number in the parameter's type.
fn scalar(abi: &ScalarAbi, text: &str) -> Result<ScalarValue, Diagnostic> {
    let wrong = |what: &str| {
        Err(error(codes::BIND_DTYPE, format!("`{}` is {}, but `{text}` {what}", abi.name, abi.ty)))
    };
    let dtype = match abi.ty {
        ScalarType::Index => None,
        ScalarType::Typed(d) => Some(d),
    };
    match dtype {
        Some(DType::Bool) => match text {
            "true" | "1" => Ok(ScalarValue::Bits(DType::Bool, 1)),
            "false" | "0" => Ok(ScalarValue::Bits(DType::Bool, 0)),
            _ => wrong("is neither true nor false"),
        },
        Some(d) if d.is_float() => match text.parse::<f64>() {
            Ok(v) => Ok(ScalarValue::Bits(d, d.encode(v))),
            Err(_) => wrong("is no number"),
        },
        Some(DType::U64) => match text.parse::<u64>() {
            Ok(v) => Ok(ScalarValue::Bits(DType::U64, v)),
            Err(_) => wrong("is no such number"),
        },
        _ => match text.parse::<i64>() {
            Ok(v) => ScalarValue::from_int(abi.ty, v).map_or_else(|| wrong("does not fit"), Ok),
            Err(_) => wrong("is no whole number"),
        },
    }
}

fn generated_scalar(abi: &ScalarAbi, input: &elab::Input) -> Result<ScalarValue, Diagnostic> {
    match (abi.ty, input) {
        (ScalarType::Typed(d), _) if d.is_float() => Ok(ScalarValue::Bits(d, element(input, d, 0))),
        (_, elab::Input::Whole(n)) => scalar(abi, &n.to_string()),
        (ScalarType::Typed(d), _) => scalar(abi, &format!("{}", generated(input, d, 0))),
        (ScalarType::Index, _) => scalar(abi, &format!("{}", generated(input, DType::I64, 0))),
    }
}

fn error(code: pantile_ir::diag::Code, message: String) -> Diagnostic {
    Diagnostic::error(code, Span::default(), message)
}
