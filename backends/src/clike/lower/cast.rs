//! Conversions, to nearest even and rounded once; reinterpretation of bits.

use super::{Fun, Result, Val, is_narrow};
use crate::clike::range::Range;
use crate::clike::tree::{C, Ty};
use pantile_abi::DType;
use pantile_ir::program::*;

impl<'a> Fun<'_, 'a> {
    pub(super) fn cast(&mut self, v: Val, from: Elem, to: Elem, sat: bool) -> Result<Val> {
        if from == to {
            return Ok(v);
        }
        match (from.is_float(), to) {
            (_, Elem::BOOL) => Ok(v),
            (true, Elem::D(d)) if d.is_float() => self.float_to_float(v, from, d, sat),
            (true, _) => self.float_to_int(v, to, sat),
            (false, Elem::D(d)) if d.is_float() => self.int_to_float(v, from, d, sat),
            (false, _) => self.int_to_int(v, from, to, sat),
        }
    }

    fn int_to_int(&mut self, v: Val, from: Elem, to: Elem, sat: bool) -> Result<Val> {
        let inside = v.range.fits(to);
        let Elem::D(d) = to else {
            // an index: `int` holds small types, everything else is widened first
            if v.ty.bytes() < 4 || v.ty == Ty::I32 {
                let c = if v.ty == Ty::Bool { C::cast(Ty::I32, v.c) } else { v.c };
                return Ok(Val::new(c, Ty::I32, v.range));
            }
            let ty = v.range.index_type();
            let range = if inside { v.range } else { Range::INDEX };
            let ty = if inside { ty } else { Ty::I64 };
            return Ok(Val::new(if v.ty == ty { v.c } else { C::cast(ty, v.c) }, ty, range));
        };
        let ty = Ty::of(d);
        if inside {
            let c = if v.ty == ty { v.c } else { literal_or_cast(ty, v.c) };
            return Ok(Val::new(c, ty, v.range));
        }
        if sat {
            return self.clamp_int(v, from, d);
        }
        let c = match d {
            DType::I4 => {
                let low = C::cast(Ty::I32, v.c);
                self.call("wrap_i4", [low])?
            }
            DType::U4 => C::cast(ty, C::binary("&", v.c, C::int(15))),
            _ => C::cast(ty, v.c),
        };
        Ok(Val::of(c, to))
    }

    /// Clamped to the type; four bits are clamped as eight first.
    fn clamp_int(&mut self, v: Val, from: Elem, d: DType) -> Result<Val> {
        let source = if from == Elem::D(DType::U64) { "u64" } else { "i64" };
        if matches!(d, DType::I4 | DType::U4) {
            let wide = self.call(&format!("sat_{source}_i8"), [v.c])?;
            return self.clamp_nibble(wide, d);
        }
        let c = self.call(&format!("sat_{source}_{}", Ty::of(d).tag()), [v.c])?;
        Ok(Val::of(c, Elem::D(d)))
    }

    fn clamp_nibble(&mut self, c: C, d: DType) -> Result<Val> {
        let (lo, hi) = if d == DType::I4 { (-8, 7) } else { (0, 15) };
        let low = self.call("max_i32", [c, C::int(lo)])?;
        let c = self.call("min_i32", [low, C::int(hi)])?;
        Ok(Val::of(C::cast(Ty::of(d), c), Elem::D(d)))
    }

    fn float_to_int(&mut self, v: Val, to: Elem, sat: bool) -> Result<Val> {
        let source = v.ty.tag();
        let d = match to {
            Elem::Index => DType::I64,
            Elem::D(d) => d,
        };
        if !sat {
            let wide = if d.bits() < 32 { DType::I32 } else { d };
            let c = self.call(&format!("near_{source}_{}", Ty::of(wide).tag()), [v.c])?;
            if wide == d {
                return Ok(Val::of(c, to));
            }
            return self.int_to_int(Val::of(c, Elem::D(wide)), Elem::D(wide), to, false);
        }
        if matches!(d, DType::I4 | DType::U4) {
            let c = self.call(&format!("sat_{source}_i8"), [v.c])?;
            return self.clamp_nibble(c, d);
        }
        let c = self.call(&format!("sat_{source}_{}", Ty::of(d).tag()), [v.c])?;
        Ok(Val::of(c, to))
    }

    fn int_to_float(&mut self, v: Val, from: Elem, to: DType, sat: bool) -> Result<Val> {
        let elem = Elem::D(to);
        if from == Elem::BOOL {
            let (one, zero) = if to == DType::F64 { ("1.0", "0.0") } else { ("1.0f", "0.0f") };
            return Ok(Val::of(C::choice(v.c, C::name(one), C::name(zero)), elem));
        }
        if !is_narrow(to) {
            return Ok(Val::of(C::cast(Ty::of(to), v.c), elem));
        }
        let exact = v.range.within(Range::new(-(1 << 24), 1 << 24));
        // of the narrow types only bf16 reaches values that f32 would round first
        let c = if exact || to != DType::BF16 {
            C::cast(Ty::F32, v.c)
        } else if v.ty.bytes() <= 4 {
            self.call("odd_f64", [C::cast(Ty::F64, v.c)])?
        } else {
            self.call(if v.ty == Ty::U64 { "odd_u64" } else { "odd_i64" }, [v.c])?
        };
        self.to_narrow(c, to, sat)
    }

    fn float_to_float(&mut self, v: Val, from: Elem, to: DType, sat: bool) -> Result<Val> {
        let elem = Elem::D(to);
        let wide = from == Elem::D(DType::F64);
        match to {
            DType::F64 => Ok(Val::of(C::cast(Ty::F64, v.c), elem)),
            DType::F32 if sat && wide => {
                let near = C::cast(Ty::F32, v.c);
                let c = self.call("clamp_f32", [near, C::name("3.4028235e38f")])?;
                Ok(Val::of(c, elem))
            }
            DType::F32 if sat => {
                let c = self.call("clamp_f32", [v.c, C::name("3.4028235e38f")])?;
                Ok(Val::of(c, elem))
            }
            DType::F32 if wide => Ok(Val::of(C::cast(Ty::F32, v.c), elem)),
            DType::F32 => Ok(Val::of(v.c, elem)),
            _ => {
                let c = if wide { self.call("odd_f64", [v.c])? } else { v.c };
                self.to_narrow(c, to, sat)
            }
        }
    }

    fn to_narrow(&mut self, c: C, to: DType, sat: bool) -> Result<Val> {
        let most = match to {
            DType::F16 => "65504.0f",
            DType::BF16 => "3.3895314e38f",
            DType::F8E4M3 => "448.0f",
            _ => "57344.0f",
        };
        let c = if sat { self.call("clamp_f32", [c, C::name(most)])? } else { c };
        self.settle(c, Elem::D(to))
    }

    /// The same bits as a type of the same width.
    pub(super) fn reinterpret(&mut self, v: Val, from: Elem, to: DType) -> Result<Val> {
        let Elem::D(source) = from else {
            return Err(self.unsupported("an index has no bits to view".into()));
        };
        if source == to {
            return Ok(v);
        }
        let bits = match source {
            DType::F32 => C::call("__float_as_uint", [v.c]),
            DType::F64 => C::call("__double_as_longlong", [v.c]),
            _ => self.to_word(v, source)?,
        };
        let word = to.bits();
        let c = match to {
            DType::F32 => {
                return Ok(Val::of(C::call("__uint_as_float", [C::cast(Ty::U32, bits)]), Elem::F32));
            }
            DType::F64 => {
                let c = C::call("__longlong_as_double", [C::cast(Ty::I64, bits)]);
                return Ok(Val::of(c, Elem::D(to)));
            }
            DType::I4 => self.call("wrap_i4", [bits])?,
            DType::U4 => C::cast(Ty::U8, C::binary("&", bits, C::int(15))),
            d if is_narrow(d) && word == 16 => return self.from_word(C::cast(Ty::of(d), bits), d),
            d if is_narrow(d) => return self.from_word(C::cast(Ty::of(d), bits), d),
            d => C::cast(Ty::of(d), bits),
        };
        Ok(Val::of(c, Elem::D(to)))
    }
}

fn literal_or_cast(ty: Ty, c: C) -> C {
    match c {
        C::Int(v, _) => C::Int(v, ty),
        c => C::cast(ty, c),
    }
}
