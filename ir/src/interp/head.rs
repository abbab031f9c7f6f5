//! The head of a kernel or op meets its arguments: dims are found, shapes, strides and conditions checked; and the
//! scope of everything that is known at launch.

use super::eval::{Memo, Scope, scalar, shared_exprs};
use super::fault::{Exec, Fault, fault, malformed};
use super::memory::contiguous;
use super::value::{Lanes, Mask, Value};
use crate::arena::Arena;
use crate::codes;
use crate::num;
use crate::program::*;
use pantile_abi::DType;

/// What kernels and ops have in common.
#[derive(Clone, Copy)]
pub(super) struct Head<'p> {
    pub program: &'p Program,
    pub name: &'p str,
    pub dims: &'p Arena<Dim>,
    pub args: &'p Arena<Arg>,
    pub body: &'p Body,
    pub wheres: &'p [(ExprId, String)],
}

/// What a head needs to know of an argument.
#[derive(Clone, Debug)]
pub(super) enum Shown {
    Scalar(u64),
    Tensor { dtype: DType, shape: Vec<i64>, strides: Vec<i64> },
}

/// Values that are known at launch.
pub(super) struct Heads<'p> {
    head: Head<'p>,
    pub dims: Vec<Option<i64>>,
    args: Vec<Option<u64>>,
    pub locals: Vec<Option<u64>>,
    mask: Mask,
    memo: Memo,
}

impl<'p> Head<'p> {
    pub fn of_kernel(program: &'p Program, k: &'p Kernel) -> Head<'p> {
        Head { program, name: &k.name, dims: &k.dims, args: &k.args, body: &k.body, wheres: &k.wheres }
    }

    pub fn of_host(program: &'p Program, h: &'p Host) -> Head<'p> {
        Head { program, name: &h.name, dims: &h.dims, args: &h.args, body: &h.body, wheres: &h.wheres }
    }

    /// Binds dims: given ones stand, bare names take the extents (then strides) they name, all else is checked.
    pub fn bind(self, given: &[Option<i64>], shown: &[Shown]) -> Exec<Heads<'p>> {
        let mut dims = given.to_vec();
        dims.resize(self.dims.len(), None);
        if shown.len() != self.args.len() {
            let message = format!("`{}` takes {} arguments, not {}", self.name, self.args.len(), shown.len());
            return Err(fault(codes::BIND_ARGUMENT, message));
        }
        for ((id, arg), given) in self.args.iter().zip(shown) {
            self.kind(arg, given).map_err(|f| f.at(self.args.span(id)))?;
        }
        let pairs = || self.tensors().zip(shown.iter().filter(|s| matches!(s, Shown::Tensor { .. })));
        for ((_, _, t), given) in pairs() {
            self.bare(&t.dims, given, true, &mut dims);
        }
        for ((_, _, t), given) in pairs() {
            self.bare(t.strides.as_deref().unwrap_or(&[]), given, false, &mut dims);
        }
        let args = shown.iter().map(|s| if let Shown::Scalar(v) = s { Some(*v) } else { None });
        let mut heads = Heads {
            head: self,
            dims,
            args: args.collect(),
            locals: vec![None; self.body.locals.len()],
            mask: Mask::All(1),
            memo: Memo::new(shared_exprs(self.body)),
        };
        for ((id, arg, t), given) in pairs() {
            heads.check(arg, t, given).map_err(|f| f.at(self.args.span(id)))?;
        }
        for (cond, text) in self.wheres {
            heads.memo.begin();
            if heads.value(*cond)? == 0 {
                let message = format!("`{}` demands `{text}`, which is false", self.name);
                let mut f = fault(codes::BIND_CONDITION, message).at(self.body.exprs.span(*cond));
                for ((_, dim), value) in self.dims.iter().zip(&heads.dims) {
                    if let Some(v) = value.filter(|_| !dim.stride) {
                        f = f.value(&dim.name, v.to_string());
                    }
                }
                return Err(f);
            }
        }
        Ok(heads)
    }

    fn tensors(self) -> impl Iterator<Item = (ArgId, &'p Arg, &'p Tensor)> {
        self.args.iter().filter_map(|(id, arg)| match &arg.kind {
            ArgKind::Tensor(t) => Some((id, arg, t)),
            ArgKind::Scalar(_) => None,
        })
    }

    fn kind(self, arg: &Arg, given: &Shown) -> Exec<()> {
        let name = &arg.name;
        match (&arg.kind, given) {
            (ArgKind::Scalar(_), Shown::Scalar(_)) => Ok(()),
            (ArgKind::Scalar(_), _) => {
                Err(fault(codes::BIND_ARGUMENT, format!("`{name}` is a scalar, but a tensor is given")))
            }
            (ArgKind::Tensor(_), Shown::Scalar(_)) => {
                Err(fault(codes::BIND_ARGUMENT, format!("`{name}` is a tensor, but a scalar is given")))
            }
            (ArgKind::Tensor(t), Shown::Tensor { dtype, shape, .. }) => {
                if *dtype != t.elem {
                    let message = format!("`{name}` holds {}, but {dtype} is given", t.elem);
                    return Err(fault(codes::BIND_DTYPE, message).named(name));
                }
                if shape.len() != t.dims.len() {
                    let message =
                        format!("`{name}` has {}, but the argument has {}", axes(t.dims.len()), shape.len());
                    return Err(fault(codes::BIND_RANK, message).named(name));
                }
                Ok(())
            }
        }
    }

    fn bare(self, exprs: &[ExprId], given: &Shown, shape: bool, dims: &mut [Option<i64>]) {
        let Shown::Tensor { shape: extents, strides, .. } = given else { return };
        let values = if shape { extents } else { strides };
        for (&e, &v) in exprs.iter().zip(values) {
            if let Expr::Dim(d) = self.body.exprs[e]
                && let Some(slot) = dims.get_mut(d.index())
            {
                slot.get_or_insert(v);
            }
        }
    }
}

impl<'p> Heads<'p> {
    /// A scalar that is known at launch.
    pub fn value(&mut self, e: ExprId) -> Exec<u64> {
        Ok(scalar(self, e)?.get(0))
    }

    pub fn index(&mut self, e: ExprId) -> Exec<i64> {
        let bits = self.value(e)?;
        match self.head.body.type_of(e).elem() {
            Some(Elem::Index) | None => Ok(bits as i64),
            Some(elem) => num::to_i64(elem, bits).ok_or_else(|| malformed("a float as an extent")),
        }
    }

    /// A new step of the host: what it evaluates may see new values.
    pub fn begin(&mut self) {
        self.memo.begin();
    }

    pub fn named_dim(&self, name: &str) -> Option<i64> {
        let at = self.head.dims.iter().position(|(_, d)| d.name == name)?;
        self.dims[at]
    }

    /// All dims; one that no argument names has no value.
    pub fn all_dims(&self) -> Exec<Vec<i64>> {
        let named = self.head.dims.iter().zip(&self.dims);
        named.map(|((_, dim), value)| value.ok_or_else(|| self.unbound(&dim.name))).collect()
    }

    fn unbound(&self, name: &str) -> Box<Fault> {
        fault(
            codes::BIND_SHAPE,
            format!("the dim `{name}` of `{}` is not given by any argument", self.head.name),
        )
        .help(format!("name it as the extent of a tensor: `A: f16[{name}]`"))
    }

    fn check(&mut self, arg: &Arg, t: &Tensor, given: &Shown) -> Exec<()> {
        let Shown::Tensor { shape, strides, .. } = given else { return Ok(()) };
        let name = &arg.name;
        for (axis, (&e, &have)) in t.dims.iter().zip(shape).enumerate() {
            let want = self.index(e)?;
            if want != have {
                let message = format!(
                    "axis {axis} of `{name}` has {have} elements, but the head of `{}` says {want}",
                    self.head.name
                );
                return Err(fault(codes::BIND_SHAPE, message).named(name));
            }
        }
        let wants = match &t.strides {
            Some(exprs) => exprs.iter().map(|&e| self.index(e)).collect::<Exec<Vec<i64>>>()?,
            None => contiguous(shape),
        };
        for axis in 0..wants.len() {
            let free = shape[axis] <= 1 || shape.contains(&0);
            if !free && wants[axis] != strides[axis] {
                let message = format!(
                    "axis {axis} of `{name}` has stride {}, but the head of `{}` says {}",
                    strides[axis], self.head.name, wants[axis]
                );
                let f = fault(codes::BIND_STRIDE, message).named(name);
                return Err(match t.strides {
                    None => f.help(format!("name the strides in the head: `{name}: ... strides (...)`")),
                    Some(_) => f,
                });
            }
        }
        Ok(())
    }
}

impl<'p> Scope<'p> for Heads<'p> {
    fn program(&self) -> &'p Program {
        self.head.program
    }

    fn body(&self) -> &'p Body {
        self.head.body
    }

    fn width(&self) -> u32 {
        1
    }

    fn mask(&self) -> &Mask {
        &self.mask
    }

    fn set_mask(&mut self, mask: Mask) -> Mask {
        std::mem::replace(&mut self.mask, mask)
    }

    fn memo(&mut self) -> &mut Memo {
        &mut self.memo
    }

    fn local(&mut self, id: LocalId) -> Exec<Value> {
        let value = self.locals.get(id.index()).copied().flatten();
        value.map(Value::one).ok_or_else(|| malformed("a name that has no value at launch"))
    }

    fn dim(&self, id: DimId) -> Exec<i64> {
        let value = self.dims.get(id.index()).copied().flatten();
        value.ok_or_else(|| match self.head.dims.get(id) {
            Some(dim) => self.unbound(&dim.name),
            None => malformed("an unknown dim"),
        })
    }

    fn arg(&self, id: ArgId) -> Exec<u64> {
        let value = self.args.get(id.index()).copied().flatten();
        value.ok_or_else(|| malformed("a tensor used as a scalar"))
    }

    fn element(&mut self, _: Mem, _: &[Lanes], _: Option<ExprId>) -> Exec<Lanes> {
        Err(malformed("memory is read where only dims and parameters are known"))
    }

    fn local_one(&mut self, id: LocalId) -> Exec<u64> {
        let value = self.locals.get(id.index()).copied().flatten();
        value.ok_or_else(|| malformed("a name that has no value at launch"))
    }

    fn element_one(&mut self, _: Mem, _: &[i64], _: bool) -> Exec<Option<u64>> {
        Err(malformed("memory is read where only dims and parameters are known"))
    }
}

fn axes(n: usize) -> String {
    format!("{n} {}", if n == 1 { "axis" } else { "axes" })
}
