//! Values in registers: how each element type is held, loaded and stored.
//!
//! Narrow floats (f8, f16, bf16) are held as f32 that is exactly representable in the narrow type; every operation
//! rounds back at once ([`super::convert`]). 4-bit integers are held as i8, `index` as i64, `bool` as i1 (i8 in
//! memory). `lanes == 1` is a scalar, not a vector of one.

use super::emit::{Any, Emit, Int, Ptr, vector_of};
use inkwell::types::BasicTypeEnum;
use inkwell::values::VectorValue;
use pantile_abi::DType;
use pantile_ir::program::Elem;

#[derive(Clone, Copy, Debug)]
pub struct Val<'c> {
    pub v: Any<'c>,
    pub elem: Elem,
    pub lanes: u32,
}

impl<'c> Val<'c> {
    pub fn scalar(v: impl Into<Any<'c>>, elem: Elem) -> Val<'c> {
        Val { v: v.into(), elem, lanes: 1 }
    }

    pub fn index(v: Int<'c>) -> Val<'c> {
        Val::scalar(v, Elem::Index)
    }

    pub fn is_float(&self) -> bool {
        self.elem.is_float()
    }

    pub fn is_signed(&self) -> bool {
        signed(self.elem)
    }

    pub fn int(&self) -> Int<'c> {
        self.v.into_int_value()
    }
}

pub fn signed(elem: Elem) -> bool {
    match elem {
        Elem::Index => true,
        Elem::D(d) => d.is_signed(),
    }
}

/// Bytes of one element in scratch memory (4-bit types take a byte there).
pub fn scratch_bytes(elem: Elem) -> u32 {
    match elem {
        Elem::Index => 8,
        Elem::D(d) => d.bits().div_ceil(8),
    }
}

impl<'c> Emit<'c> {
    /// The scalar type in registers.
    pub fn reg_type(&self, elem: Elem) -> BasicTypeEnum<'c> {
        let Elem::D(d) = elem else { return self.i64().into() };
        match d {
            DType::Bool => self.ctx.bool_type().into(),
            DType::I4 | DType::U4 | DType::I8 | DType::U8 => self.ctx.i8_type().into(),
            DType::I16 | DType::U16 => self.ctx.i16_type().into(),
            DType::I32 | DType::U32 => self.ctx.i32_type().into(),
            DType::I64 | DType::U64 => self.i64().into(),
            DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 => {
                self.ctx.f32_type().into()
            }
            DType::F64 => self.ctx.f64_type().into(),
        }
    }

    /// The scalar type in memory.
    pub fn mem_type(&self, elem: Elem) -> BasicTypeEnum<'c> {
        match elem {
            Elem::D(DType::Bool | DType::F8E4M3 | DType::F8E5M2) => self.ctx.i8_type().into(),
            Elem::D(DType::F16) => self.ctx.f16_type().into(),
            Elem::D(DType::BF16) => self.ctx.i16_type().into(),
            other => self.reg_type(other),
        }
    }

    pub fn lanes_of(&self, ty: BasicTypeEnum<'c>, lanes: u32) -> BasicTypeEnum<'c> {
        if lanes == 1 { ty } else { vector_of(ty, lanes).into() }
    }

    /// A constant of the interpreter's canonical bits.
    pub fn constant(&self, elem: Elem, bits: u64) -> Val<'c> {
        let v: Any = match elem {
            Elem::Index => self.int(bits as i64).into(),
            Elem::D(d) if d.is_float() => {
                let x = pantile_ir::num::to_f64(elem, bits);
                let t = self.reg_type(elem).into_float_type();
                t.const_float(x).into()
            }
            Elem::D(_) => self.reg_type(elem).into_int_type().const_int(bits, true).into(),
        };
        Val::scalar(v, elem)
    }

    /// The same value in every lane; vectors of the right width pass.
    pub fn widen(&self, a: Val<'c>, lanes: u32) -> Val<'c> {
        if a.lanes == lanes {
            return a;
        }
        Val { v: self.splat(a.v, lanes).into(), elem: a.elem, lanes }
    }

    /// From the form in memory to the form in registers.
    pub fn unpack(&self, raw: Any<'c>, elem: Elem, lanes: u32) -> Val<'c> {
        let v = match elem {
            Elem::D(DType::Bool) => {
                let zero = self.zero(self.lanes_of(self.ctx.i8_type().into(), lanes));
                self.int_compare(inkwell::IntPredicate::NE, raw, zero)
            }
            Elem::D(DType::F16) => self.fpext(raw, self.lanes_of(self.ctx.f32_type().into(), lanes)),
            Elem::D(DType::BF16) => self.decode_bf16(raw, lanes),
            Elem::D(d @ (DType::F8E4M3 | DType::F8E5M2)) => self.decode_f8(d, raw, lanes),
            _ => raw,
        };
        Val { v, elem, lanes }
    }

    /// From the form in registers to the form in memory.
    pub fn pack(&self, a: Val<'c>) -> Any<'c> {
        match a.elem {
            Elem::D(DType::Bool) => self.zext(a.v, self.lanes_of(self.ctx.i8_type().into(), a.lanes)),
            Elem::D(DType::F16) => self.fptrunc(a.v, self.lanes_of(self.ctx.f16_type().into(), a.lanes)),
            Elem::D(DType::BF16) => self.encode_bf16(a.v, a.lanes),
            Elem::D(d @ (DType::F8E4M3 | DType::F8E5M2)) => self.encode_f8(d, a.v, a.lanes, false),
            _ => a.v,
        }
    }

    pub fn load_val(&self, p: Ptr<'c>, elem: Elem, lanes: u32) -> Val<'c> {
        let ty = self.lanes_of(self.mem_type(elem), lanes);
        let raw = self.load(ty, p, scratch_bytes(elem));
        self.unpack(raw, elem, lanes)
    }

    /// Lanes where the mask is off hold zero.
    pub fn load_masked(&self, p: Ptr<'c>, elem: Elem, lanes: u32, mask: VectorValue<'c>) -> Val<'c> {
        let ty = vector_of(self.mem_type(elem), lanes);
        let raw = self.masked_load(ty, p, mask, scratch_bytes(elem));
        self.unpack(raw.into(), elem, lanes)
    }

    pub fn store_val(&self, p: Ptr<'c>, a: Val<'c>) {
        let raw = self.pack(a);
        self.store(p, raw, scratch_bytes(a.elem));
    }

    pub fn store_masked(&self, p: Ptr<'c>, a: Val<'c>, mask: VectorValue<'c>) {
        let raw = self.pack(a).into_vector_value();
        self.masked_store(raw, p, mask, scratch_bytes(a.elem));
    }

    /// A scalar lane of a vector, or the scalar itself.
    pub fn lane(&self, a: Val<'c>, lane: u32) -> Val<'c> {
        if a.lanes == 1 {
            return a;
        }
        let at = self.ctx.i32_type().const_int(lane as u64, false);
        let v = self.b.build_extract_element(a.v.into_vector_value(), at, "").unwrap();
        Val::scalar(v, a.elem)
    }

    /// A vector from scalars.
    pub fn gather_lanes(&self, parts: &[Val<'c>]) -> Val<'c> {
        let lanes = parts.len() as u32;
        let mut v = vector_of(self.reg_type(parts[0].elem), lanes).get_poison();
        for (i, p) in parts.iter().enumerate() {
            let at = self.ctx.i32_type().const_int(i as u64, false);
            v = self.b.build_insert_element(v, p.v, at, "").unwrap();
        }
        Val { v: v.into(), elem: parts[0].elem, lanes }
    }
}
