//! Functions of the language.

use super::{Fun, Result, Val};
use crate::clike::range::Range;
use crate::clike::tree::{C, Ty};
use pantile_abi::DType;
use pantile_ir::program::*;

impl<'a> Fun<'_, 'a> {
    pub(super) fn math(&mut self, f: MathFn, approx: bool, args: &Args) -> Result<Val> {
        let elem = self.elem(args[0])?;
        let mut vals = Vec::with_capacity(args.len());
        for &a in args {
            vals.push(self.expr(a)?);
        }
        self.math_on(f, approx, elem, vals)
    }

    fn math_on(&mut self, f: MathFn, approx: bool, elem: Elem, mut args: Vec<Val>) -> Result<Val> {
        let first = args[0].clone();
        match f {
            MathFn::CeilDiv => {
                let b = args.remove(1);
                self.ceil_div(elem, first, b)
            }
            MathFn::Min | MathFn::Max => {
                let b = args.remove(1);
                self.extreme(f, elem, first, b)
            }
            MathFn::Clamp => {
                let (hi, lo) = (args.remove(2), args.remove(1));
                let low = self.extreme(MathFn::Max, elem, first, lo)?;
                self.extreme(MathFn::Min, elem, low, hi)
            }
            MathFn::Abs if elem.is_float() => {
                let name = if first.ty == Ty::F64 { "fabs" } else { "fabsf" };
                Ok(Val::of(C::call(name, [first.c]), elem))
            }
            MathFn::Abs => self.int_abs(elem, first),
            MathFn::IsNan | MathFn::IsInf => {
                let name = if f == MathFn::IsNan { "is_nan" } else { "is_inf" };
                let c = self.call(&format!("{name}_{}", first.ty.tag()), [first.c])?;
                Ok(Val::new(c, Ty::Bool, Range::BOOL))
            }
            _ => {
                let vals = args.into_iter().map(|v| v.c).collect();
                let c = self.float_fn(f, approx, elem, first.ty, vals)?;
                self.settle(c, elem)
            }
        }
    }

    fn extreme(&mut self, f: MathFn, elem: Elem, a: Val, b: Val) -> Result<Val> {
        let name = if f == MathFn::Min { "min" } else { "max" };
        let range = if f == MathFn::Min { a.range.min(b.range) } else { a.range.max(b.range) };
        if elem.is_float() {
            let c = self.call(&format!("{name}_{}", a.ty.tag()), [a.c, b.c])?;
            return Ok(Val::of(c, elem)); // one of the operands: no rounding
        }
        let ty = if b.ty == Ty::I64 { Ty::I64 } else { a.ty };
        let wide = if ty.bytes() < 4 { Ty::I32 } else { ty };
        let c = self.call(&format!("{name}_{}", wide.tag()), [a.c, b.c])?;
        Ok(Val::new(if wide == ty { c } else { C::cast(ty, c) }, ty, range))
    }

    fn int_abs(&mut self, elem: Elem, a: Val) -> Result<Val> {
        if a.range.lo >= 0 {
            return Ok(a);
        }
        let most = a.range.hi.max(-a.range.lo);
        let range = Range::new(0, most);
        let range = if range.fits(elem) { range } else { Range::of(elem) };
        let wide = if a.ty == Ty::I64 { Ty::I64 } else { Ty::I32 };
        let c = self.call(&format!("abs_{}", wide.tag()), [a.c])?;
        let ty = a.ty;
        match elem {
            Elem::D(DType::I4) => Ok(Val::of(self.call("wrap_i4", [c])?, elem)),
            _ => Ok(Val::new(if wide == ty { c } else { C::cast(ty, c) }, ty, range)),
        }
    }

    /// Functions of floats, before the result is rounded to a narrow type.
    fn float_fn(&mut self, f: MathFn, approx: bool, elem: Elem, ty: Ty, mut args: Vec<C>) -> Result<C> {
        let single = if ty == Ty::F32 { "f" } else { "" };
        if approx && ty == Ty::F32 {
            return self.call(&format!("{}_approx_f32", f.name()), args);
        }
        match f {
            MathFn::Floor | MathFn::Ceil => Ok(C::call(format!("{}{single}", f.name()), args)),
            MathFn::Round => Ok(C::call(format!("rint{single}"), args)),
            MathFn::Sqrt => self.call(&format!("root_{}", ty.tag()), args),
            MathFn::Rcp => {
                let one = C::name(if ty == Ty::F32 { "1.0f" } else { "1.0" });
                let x = args.remove(0);
                self.quotient(ty, one, x)
            }
            MathFn::Fma if elem != Elem::F32 && ty == Ty::F32 => self.call("fma_to_odd_f32", args),
            MathFn::Fma => Ok(C::call(format!("fma{single}"), args)),
            _ => self.call(&format!("{}_{}", f.name(), ty.tag()), args),
        }
    }
}
