//! Element types of given arrays against those of a specialised entry, told with where each came from.

use super::{Compiled, Head, Input};
use pantile_abi::{DType, TensorAbi};
use pantile_ir::ast::Elem;
use pantile_ir::codes;
use pantile_ir::diag::Diagnostic;
use pantile_ir::elab::{Request, Setting, admits};
use pantile_runtime::files::{FileType, Wanted};

/// Refuses arrays of files that hold another type than their parameter has.
pub fn fitting_types(
    head: &Head<'_>,
    request: &Request,
    entry: &Compiled,
    inputs: Vec<(String, Input)>,
) -> Result<Vec<(String, Input)>, Diagnostic> {
    for (name, input) in &inputs {
        let Some(abi) = entry.abi.param_index(name).and_then(|i| entry.abi.params[i].as_tensor()) else {
            continue;
        };
        if let Input::Array(raw, file) = input
            && !raw.fits(Wanted { dtype: abi.dtype, packed: abi.packed })
        {
            return Err(Misfit { head, request, inputs: &inputs, abi, file, holds: raw.ty }.told());
        }
    }
    Ok(inputs)
}

struct Misfit<'a> {
    head: &'a Head<'a>,
    request: &'a Request,
    inputs: &'a [(String, Input)],
    abi: &'a TensorAbi,
    file: &'a str,
    holds: FileType,
}

impl Misfit<'_> {
    fn told(&self) -> Diagnostic {
        let Misfit { abi, file, holds, .. } = self;
        let param = self.head.param(&abi.name);
        let message = format!("`{}` is {}, but `{file}` holds {holds}", abi.name, abi.dtype);
        let d = Diagnostic::error(codes::BIND_DTYPE, param.map(|p| p.span).unwrap_or_default(), message);
        let convert = format!("convert `{file}` to {}", abi.dtype);
        match param.map(|p| &p.elem) {
            Some(Elem::Name(ty) | Elem::Acc(ty, _)) if self.head.has_generic(&ty.name) => {
                self.inferred(d, &ty.name, convert)
            }
            _ => d.help(convert),
        }
    }

    /// Where a generic type got its value, and what else it could be.
    fn inferred(&self, d: Diagnostic, generic: &str, convert: String) -> Diagnostic {
        let other = match self.holds {
            FileType::Known(held) if self.admits(generic, held) => Some(held),
            _ => None,
        };
        if let Some(given) = self.request.params.get(generic) {
            let given: &Setting = given;
            let d = d.note(format!("`-p {generic}={given}` says so"));
            return match other {
                Some(held) => d.help(format!("{convert}, or give `-p {generic}={held}`")),
                None => d.help(convert),
            };
        }
        let Some((from, source)) = self.source(generic) else {
            return d.help(format!("{convert}, or give the type: `-p {generic}=...`"));
        };
        let d = d.note(format!("`{generic}` is {} from `{from}` (`{source}`)", self.abi.dtype));
        match other {
            Some(held) => d.help(format!("{convert}, or `{source}` to {held}")),
            None => d.help(convert),
        }
    }

    fn admits(&self, generic: &str, held: DType) -> bool {
        self.head.generics.iter().any(|g| g.name.name == generic && admits(g.kind, held))
    }

    /// The first array whose parameter has this type and that could tell it.
    fn source(&self, generic: &str) -> Option<(&str, &str)> {
        self.inputs.iter().find_map(|(name, input)| {
            let Elem::Name(ty) = &self.head.param(name)?.elem else { return None };
            let Input::Array(raw, file) = input else { return None };
            let held = match raw.ty {
                FileType::Known(held) => held,
                FileType::Raw(2) => DType::BF16,
                FileType::Raw(_) => return None,
            };
            (ty.name == generic && self.admits(generic, held)).then_some((name.as_str(), file.as_str()))
        })
    }
}
