//! Shapes of tensors that are not there yet, for callers that allocate outputs.

use crate::bind::{BindError, BindRule, Signature};
use crate::{IExpr, ParamAbi, TensorAbi, Values};

/// What is known of a parameter before everything is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    Nothing,
    Shape(Vec<usize>),
    /// Of an integer, boolean or `index` parameter.
    Int(i64),
}

/// Shapes that follow from the known ones and from dims given by name: one a parameter, `None` for scalars. Nothing
/// is checked here but that the shapes can be computed; [`crate::bind()`] checks the rest.
pub fn infer_shapes(
    sig: Signature<'_>,
    known: &[Known],
    fixed: &[(String, i64)],
) -> Result<Vec<Option<Vec<usize>>>, BindError> {
    let mut dims: Vec<Option<i64>> = vec![None; sig.dims.len()];
    for (name, value) in fixed {
        let Some(slot) = sig.dims.iter().position(|d| d == name) else {
            let names = sig.dims.iter().map(|d| format!("`{d}`")).collect::<Vec<_>>().join(", ");
            let message = format!("`{}` has no dim `{name}`", sig.name);
            return Err(fail(None, message, format!("its dims are {names}")));
        };
        if !bears_extent(sig, slot as u32) {
            let message = format!(
                "`{name}` is a stride of {}, which follows from how its array lies in memory",
                strided(sig, slot as u32)
            );
            return Err(fail(None, message, "only extents can be given".into()));
        }
        dims[slot] = Some(*value);
    }
    let scalars: Vec<Option<i64>> =
        known.iter().map(|k| if let Known::Int(v) = k { Some(*v) } else { None }).collect();
    for (param, known) in sig.params.iter().zip(known) {
        if let (ParamAbi::Tensor(t), Known::Shape(shape)) = (param, known) {
            for (axis, (expr, &extent)) in t.dims.iter().zip(shape).enumerate() {
                let IExpr::Dim(slot) = expr else { continue };
                let Some(dim) = dims.get_mut(*slot as usize) else { continue };
                let extent = i64::try_from(extent).ok();
                let name = sig.dims.get(*slot as usize).map_or("?", String::as_str);
                match fixed.iter().find(|(n, _)| n == name) {
                    Some((_, value)) if Some(*value) != extent => {
                        return Err(contradiction(name, *value, t, axis, shape[axis]));
                    }
                    _ => *dim = dim.or(extent),
                }
            }
        }
    }
    let values = Values { dims: &dims, scalars: &scalars };
    let one = |(param, known): (&ParamAbi, &Known)| match (param, known) {
        (ParamAbi::Scalar(_), _) => Ok(None),
        (_, Known::Shape(shape)) => Ok(Some(shape.clone())),
        (ParamAbi::Tensor(t), _) => (t.dims.iter())
            .map(|e| extent(sig, &t.name, e, values))
            .collect::<Result<Vec<usize>, BindError>>()
            .map(Some),
    };
    sig.params.iter().zip(known).map(one).collect()
}

/// Is the dim a number of elements somewhere, and not only a stride?
fn bears_extent(sig: Signature<'_>, slot: u32) -> bool {
    let tensors = || sig.params.iter().filter_map(ParamAbi::as_tensor);
    let within = |exprs: &[IExpr]| exprs.iter().any(|e| mentions(e, slot));
    tensors().any(|t| within(&t.dims)) || !tensors().any(|t| t.strides.as_deref().is_some_and(within))
}

fn mentions(expr: &IExpr, slot: u32) -> bool {
    let mut found = false;
    expr.for_each_dim(&mut |d| found |= d == slot);
    found
}

/// The tensors with this stride, in words.
fn strided(sig: Signature<'_>, slot: u32) -> String {
    let names = sig
        .params
        .iter()
        .filter_map(ParamAbi::as_tensor)
        .filter(|t| t.strides.iter().flatten().any(|e| mentions(e, slot)));
    names.map(|t| format!("`{}`", t.name)).collect::<Vec<_>>().join(" and ")
}

fn contradiction(dim: &str, given: i64, t: &TensorAbi, axis: usize, extent: usize) -> BindError {
    let message = format!("`{dim}` is given as {given}, but it is {extent} from axis {axis} of `{}`", t.name);
    fail(Some(&t.name), message, format!("leave `{dim}` out, or give `{}` another shape", t.name))
}

fn extent(sig: Signature<'_>, param: &str, expr: &IExpr, values: Values<'_>) -> Result<usize, BindError> {
    let names = sig.names();
    let text = expr.display(&names);
    let what = match expr.eval(values) {
        Ok(v) => match usize::try_from(v) {
            Ok(v) => return Ok(v),
            Err(_) => format!("it is {v}"),
        },
        Err(e) => names.explain(&e),
    };
    let message =
        format!("the shape of `{param}` is not known: it has {text} elements along an axis, but {what}");
    Err(fail(Some(param), message, "give the shape of another tensor, or the dim itself".into()))
}

fn fail(param: Option<&str>, message: String, help: String) -> BindError {
    BindError { rule: BindRule::Shape, param: param.map(str::to_string), message, help: Some(help) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, IOp, Mode, ScalarAbi, ScalarType};

    #[test]
    fn outputs_follow_from_inputs() {
        let dim = IExpr::Dim;
        let half = IExpr::bin(IOp::FloorDiv, dim(0), IExpr::Scalar(0));
        let params = [
            ParamAbi::Scalar(ScalarAbi { name: "g".into(), ty: ScalarType::Index }),
            ParamAbi::Tensor(TensorAbi::new("A", Mode::In, DType::F32, vec![dim(0), dim(1)])),
            ParamAbi::Tensor(TensorAbi::new("C", Mode::Out, DType::F32, vec![dim(1), half, dim(2)])),
        ];
        let dims = ["K".to_string(), "M".to_string(), "N".to_string()];
        let sig = Signature { name: "k", params: &params, dims: &dims, conditions: &[] };
        let known = [Known::Int(4), Known::Shape(vec![16, 3]), Known::Nothing];
        let shapes = infer_shapes(sig, &known, &[("N".into(), 7)]).unwrap();
        assert_eq!(shapes, [None, Some(vec![16, 3]), Some(vec![3, 4, 7])]);
        let e = infer_shapes(sig, &known, &[]).unwrap_err();
        assert!(
            e.message.ends_with("it has N elements along an axis, but no argument determines `N`"),
            "{e}"
        );
        let e = infer_shapes(sig, &known, &[("X".into(), 7)]).unwrap_err();
        assert_eq!(e.message, "`k` has no dim `X`");
        let e = infer_shapes(sig, &known, &[("N".into(), -1)]).unwrap_err();
        assert!(e.message.ends_with("but it is -1"), "{e}");
        let e = infer_shapes(sig, &known, &[("K".into(), 5)]).unwrap_err();
        assert_eq!(e.message, "`K` is given as 5, but it is 16 from axis 0 of `A`");
        assert!(infer_shapes(sig, &known, &[("K".into(), 16), ("N".into(), 7)]).is_ok());
    }
}
