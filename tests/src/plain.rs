//! Programs written by hand, run the same way as generated ones.

use crate::generate::{Data, Dim, Mode, Param, Program, ScalarParam, TensorParam};
use crate::run::{Bench, compile};
use pantile_ir::elab::Request;
use pantile_ir::program::{ArgKind, Expr, Mode as IrMode, PackOrder};

/// The program of kernel `name` in a text whose dims are all numbers. `kind` chooses what its inputs hold.
pub fn program(bench: &Bench, name: &str, text: &str, kind: u8) -> Result<Program, String> {
    program_of(bench, name, text, &[], kind)
}

/// As [`program`], with values of its dims.
pub fn program_of(
    bench: &Bench,
    name: &str,
    text: &str,
    values: &[(&str, i64)],
    kind: u8,
) -> Result<Program, String> {
    let made = compile(bench, text, &Request::new(name)).map_err(|lines| lines.join("\n"))?;
    let host = &made.program.entry;
    let mut params = Vec::new();
    for (id, arg) in host.args.iter() {
        let t = match &arg.kind {
            ArgKind::Scalar(elem) => {
                params.push(Param::Scalar(ScalarParam {
                    name: arg.name.clone(),
                    dtype: elem.dtype(),
                    value: 3.0,
                }));
                continue;
            }
            ArgKind::Tensor(t) => t,
        };
        let mut dims = Vec::new();
        for &d in &t.dims {
            match host.body.exprs[d] {
                Expr::Const { bits, .. } => dims.push(Dim { name: None, extent: bits as i64 }),
                Expr::Dim(id) => {
                    let name = &host.dims[id].name;
                    let value = values.iter().find(|(n, _)| n == name);
                    let &(_, extent) = value.ok_or_else(|| format!("`{name}` has no value"))?;
                    dims.push(Dim { name: Some(name.clone()), extent });
                }
                _ => return Err(format!("`{}` has a dim that is no number", arg.name)),
            }
        }
        let packed = t.packed.filter(|p| p.order == PackOrder::Linear).map(|p| usize::from(p.axis));
        params.push(Param::Tensor(TensorParam {
            name: arg.name.clone(),
            mode: match t.mode {
                IrMode::In => Mode::In,
                IrMode::Out => Mode::Out,
                IrMode::InOut => Mode::InOut,
            },
            dtype: t.elem,
            dims,
            pitch: None,
            packed,
            data: Data { kind, seed: id.index() as u64 },
        }));
    }
    Ok(Program { name: name.into(), text: text.into(), params, generics: Vec::new(), choices: Vec::new() })
}
