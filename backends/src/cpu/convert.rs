//! Conversions between element types, bit for bit as `pantile_ir::num` defines them.

use super::emit::{Any, Emit};
use super::value::{Val, signed};
use inkwell::types::BasicTypeEnum;
use inkwell::{FloatPredicate, IntPredicate};
use pantile_abi::DType;
use pantile_ir::program::Elem;

/// Parameters of an 8-bit float: mantissa bits, f32 exponent field of its exponent field 0, least normal, largest
/// finite code, and the code that stands for what is too large.
struct F8 {
    mantissa: u32,
    rebias: u64,
    min_normal: f32,
    denormal_scale: f32,
    max_code: u64,
    over_code: u64,
    nan_code: u64,
}

const E4M3: F8 = F8 {
    mantissa: 3,
    rebias: 120 << 3,
    min_normal: 0.015625,
    denormal_scale: 512.0,
    max_code: 0x7e,
    over_code: 0x7f,
    nan_code: 0x7f,
};
const E5M2: F8 = F8 {
    mantissa: 2,
    rebias: 112 << 2,
    min_normal: 0.000_061_035_156,
    denormal_scale: 65536.0,
    max_code: 0x7b,
    over_code: 0x7c,
    nan_code: 0x7e,
};

fn f8(d: DType) -> F8 {
    if d == DType::F8E4M3 { E4M3 } else { E5M2 }
}

impl<'c> Emit<'c> {
    pub fn zero(&self, ty: BasicTypeEnum<'c>) -> Any<'c> {
        ty.const_zero()
    }

    fn i32s(&self, v: u64, lanes: u32) -> Any<'c> {
        self.ints(self.ctx.i32_type().into(), v, lanes)
    }

    pub fn ints(&self, ty: BasicTypeEnum<'c>, v: u64, lanes: u32) -> Any<'c> {
        let one = ty.into_int_type().const_int(v, true);
        if lanes == 1 { one.into() } else { self.splat(one.into(), lanes).into() }
    }

    pub fn f32s(&self, v: f32, lanes: u32) -> Any<'c> {
        let one = self.ctx.f32_type().const_float(v as f64);
        if lanes == 1 { one.into() } else { self.splat(one.into(), lanes).into() }
    }

    pub fn f64s(&self, v: f64, lanes: u32) -> Any<'c> {
        let one = self.ctx.f64_type().const_float(v);
        if lanes == 1 { one.into() } else { self.splat(one.into(), lanes).into() }
    }

    fn f32_lanes(&self, lanes: u32) -> BasicTypeEnum<'c> {
        self.lanes_of(self.ctx.f32_type().into(), lanes)
    }

    fn i32_lanes(&self, lanes: u32) -> BasicTypeEnum<'c> {
        self.lanes_of(self.ctx.i32_type().into(), lanes)
    }

    /// f32 rounded to nearest even at 10 bits of fraction, as matrix units take it.
    pub fn tf32(&self, a: Val<'c>) -> Val<'c> {
        let bits = self.bitcast(a.v, self.i32_lanes(a.lanes));
        let lsb = self.int_and(self.lshr(bits, self.i32s(13, a.lanes)), self.i32s(1, a.lanes));
        let bias = self.int_add(lsb, self.i32s(0xfff, a.lanes));
        let rounded = self.int_and(self.int_add(bits, bias), self.i32s(!0x1fff, a.lanes));
        let nan = self.float_compare(FloatPredicate::UNO, a.v, a.v);
        let v = self.pick(nan, a.v, self.bitcast(rounded, self.f32_lanes(a.lanes)));
        Val { v, ..a }
    }

    pub fn decode_bf16(&self, raw: Any<'c>, lanes: u32) -> Any<'c> {
        let wide = self.zext(raw, self.i32_lanes(lanes));
        let shifted = self.shl(wide, self.i32s(16, lanes));
        self.bitcast(shifted, self.f32_lanes(lanes))
    }

    pub fn encode_bf16(&self, v: Any<'c>, lanes: u32) -> Any<'c> {
        let bits = self.bitcast(v, self.i32_lanes(lanes));
        let lsb = self.int_and(self.lshr(bits, self.i32s(16, lanes)), self.i32s(1, lanes));
        let bias = self.int_add(lsb, self.i32s(0x7fff, lanes));
        let rounded = self.lshr(self.int_add(bits, bias), self.i32s(16, lanes));
        let nan = self.float_compare(FloatPredicate::UNO, v, v);
        let picked = self.pick(nan, self.i32s(0x7fc0, lanes), rounded);
        self.trunc(picked, self.lanes_of(self.ctx.i16_type().into(), lanes))
    }

    pub fn decode_f8(&self, d: DType, raw: Any<'c>, lanes: u32) -> Any<'c> {
        let wide = self.zext(raw, self.i32_lanes(lanes));
        if d == DType::F8E5M2 {
            // the upper half of an f16
            let half = self
                .trunc(self.shl(wide, self.i32s(8, lanes)), self.lanes_of(self.ctx.i16_type().into(), lanes));
            let half = self.bitcast(half, self.lanes_of(self.ctx.f16_type().into(), lanes));
            return self.fpext(half, self.f32_lanes(lanes));
        }
        let code = self.int_and(wide, self.i32s(0x7f, lanes));
        let sign = self.shl(self.int_and(wide, self.i32s(0x80, lanes)), self.i32s(24, lanes));
        // exponent and mantissa fields moved to f32's places, then rescaled: exact for denormals too
        let moved = self.bitcast(self.shl(code, self.i32s(20, lanes)), self.f32_lanes(lanes));
        let scaled = self.float_mul(moved, self.f32s(f32::from_bits((127 + 120) << 23), lanes));
        let nan = self.int_compare(IntPredicate::EQ, code, self.i32s(0x7f, lanes));
        let value = self.pick(nan, self.f32s(f32::NAN, lanes), scaled);
        let bits = self.int_or(self.bitcast(value, self.i32_lanes(lanes)), sign);
        self.bitcast(bits, self.f32_lanes(lanes))
    }

    pub fn encode_f8(&self, d: DType, v: Any<'c>, lanes: u32, sat: bool) -> Any<'c> {
        let p = f8(d);
        let i = |x: u64| self.i32s(x, lanes);
        let bits = self.bitcast(v, self.i32_lanes(lanes));
        let sign = self.lshr(self.int_and(bits, i(0x8000_0000)), i(24));
        let abs_bits = self.int_and(bits, i(0x7fff_ffff));
        let abs = self.bitcast(abs_bits, self.f32_lanes(lanes));
        let drop = (23 - p.mantissa) as u64;
        let lsb = self.int_and(self.lshr(abs_bits, i(drop)), i(1));
        let rounded = self.int_add(abs_bits, self.int_add(lsb, i((1 << (drop - 1)) - 1)));
        let normal = self.int_sub(self.lshr(rounded, i(drop)), i(p.rebias));
        let count = self.round_even(self.float_mul(abs, self.f32s(p.denormal_scale, lanes)));
        let small = self.float_compare(FloatPredicate::OLT, abs, self.f32s(p.min_normal, lanes));
        // large inputs are clamped first: their count would not fit an integer
        let count = self.pick(small, count, self.f32s(0.0, lanes));
        let denormal = self.fptosi(count, self.i32_lanes(lanes));
        let code = self.pick(small, denormal, normal);
        let over = self.int_compare(IntPredicate::SGT, code, i(p.max_code));
        let code = self.pick(over, i(if sat { p.max_code } else { p.over_code }), code);
        let nan = self.float_compare(FloatPredicate::UNO, v, v);
        let code = self.pick(nan, i(p.nan_code), code);
        self.trunc(self.int_or(code, sign), self.lanes_of(self.ctx.i8_type().into(), lanes))
    }

    /// Rounds an f32 to a narrow float, still held as f32.
    pub fn round_to(&self, d: DType, v: Any<'c>, lanes: u32) -> Any<'c> {
        match d {
            DType::F16 => {
                let h = self.fptrunc(v, self.lanes_of(self.ctx.f16_type().into(), lanes));
                self.fpext(h, self.f32_lanes(lanes))
            }
            DType::BF16 => self.decode_bf16(self.encode_bf16(v, lanes), lanes),
            DType::F8E4M3 | DType::F8E5M2 => self.decode_f8(d, self.encode_f8(d, v, lanes, false), lanes),
            _ => v,
        }
    }

    /// f64 to f32 rounded to odd: a later rounding to fewer bits then rounds once.
    fn f64_to_f32_odd(&self, v: Any<'c>, lanes: u32) -> Any<'c> {
        let (f32t, i32t) = (self.f32_lanes(lanes), self.i32_lanes(lanes));
        let near = self.fptrunc(v, f32t);
        let back = self.fpext(near, self.lanes_of(self.ctx.f64_type().into(), lanes));
        let bits = self.bitcast(near, i32t);
        let abs = |x| self.float_abs(x);
        let away = self.float_compare(FloatPredicate::OGT, abs(back), abs(v));
        let toward = self.pick(away, self.int_sub(bits, self.i32s(1, lanes)), bits);
        let odd = self.int_or(toward, self.i32s(1, lanes));
        let inexact = self.float_compare(FloatPredicate::ONE, back, v);
        self.bitcast(self.pick(inexact, odd, bits), f32t)
    }

    /// A 64-bit integer as f64 with the lost bits or-ed into the last: right for one more rounding.
    fn int_to_f64_sticky(&self, v: Any<'c>, is_signed: bool, lanes: u32) -> Any<'c> {
        let i64t = self.lanes_of(self.i64().into(), lanes);
        let i = |x: u64| self.ints(self.i64().into(), x, lanes);
        let low = self.int_and(v, i(0x7ff));
        let lost = self.zext(self.int_compare(IntPredicate::NE, low, i(0)), i64t);
        let high = if is_signed { self.ashr(v, i(11)) } else { self.lshr(v, i(11)) };
        let shortened = self.int_or(high, lost);
        let f64t = self.lanes_of(self.ctx.f64_type().into(), lanes);
        let scaled = self.float_mul(self.sitofp(shortened, f64t), self.f64s(2048.0, lanes));
        // small magnitudes convert exactly and must not lose their low bits
        let exact = if is_signed { self.sitofp(v, f64t) } else { self.uitofp(v, f64t) };
        let small = self.float_compare(
            FloatPredicate::OLT,
            self.float_abs(exact),
            self.f64s(9007199254740992.0, lanes),
        );
        self.pick(small, exact, scaled)
    }

    /// `to(a)` or `to.sat(a)`.
    pub fn convert(&self, a: Val<'c>, to: Elem, sat: bool) -> Val<'c> {
        let lanes = a.lanes;
        let done = |v: Any<'c>| Val { v, elem: to, lanes };
        if a.elem == to && !sat {
            return a;
        }
        if to == Elem::BOOL {
            let v = if a.elem == Elem::BOOL {
                a.v
            } else if a.is_float() {
                let zero = self.zero(self.lanes_of(self.reg_type(a.elem), lanes));
                self.float_compare(FloatPredicate::UNE, a.v, zero)
            } else {
                let zero = self.zero(self.lanes_of(self.reg_type(a.elem), lanes));
                self.int_compare(IntPredicate::NE, a.v, zero)
            };
            return done(v);
        }
        match (a.is_float(), to.is_float()) {
            (true, true) => done(self.float_to_float(a, to, sat)),
            (false, true) => done(self.int_to_float(a, to, sat)),
            (true, false) => done(self.float_to_int(a, to, sat)),
            (false, false) => done(self.int_to_int(a, to, sat)),
        }
    }

    fn float_to_float(&self, a: Val<'c>, to: Elem, sat: bool) -> Any<'c> {
        let lanes = a.lanes;
        let Elem::D(d) = to else { return a.v };
        let from64 = a.elem == Elem::D(DType::F64);
        match d {
            DType::F64 => {
                let wide = if from64 {
                    a.v
                } else {
                    self.fpext(a.v, self.lanes_of(self.ctx.f64_type().into(), lanes))
                };
                if sat { self.clamp_finite(wide, d, lanes) } else { wide }
            }
            DType::F32 => {
                let v = if from64 { self.fptrunc(a.v, self.f32_lanes(lanes)) } else { a.v };
                if sat { self.clamp_finite(v, d, lanes) } else { v }
            }
            _ => {
                let v = if from64 { self.f64_to_f32_odd(a.v, lanes) } else { a.v };
                let rounded = match d {
                    DType::F8E4M3 | DType::F8E5M2 => {
                        self.decode_f8(d, self.encode_f8(d, v, lanes, sat), lanes)
                    }
                    _ => self.round_to(d, v, lanes),
                };
                if sat && matches!(d, DType::F16 | DType::BF16) {
                    self.clamp_finite(rounded, d, lanes)
                } else {
                    rounded
                }
            }
        }
    }

    /// Infinities become the largest finite value of the type; NaN stays.
    fn clamp_finite(&self, v: Any<'c>, d: DType, lanes: u32) -> Any<'c> {
        let max = match d {
            DType::F16 => 65504.0,
            DType::BF16 => f32::from_bits(0x7f7f_0000) as f64,
            DType::F64 => f64::MAX,
            _ => f32::MAX as f64,
        };
        let c = |x: f64| if d == DType::F64 { self.f64s(x, lanes) } else { self.f32s(x as f32, lanes) };
        let high = self.float_compare(FloatPredicate::OGT, v, c(max));
        let v = self.pick(high, c(max), v);
        let low = self.float_compare(FloatPredicate::OLT, v, c(-max));
        self.pick(low, c(-max), v)
    }

    fn int_to_float(&self, a: Val<'c>, to: Elem, sat: bool) -> Any<'c> {
        let lanes = a.lanes;
        let is_signed = signed(a.elem) && a.elem != Elem::BOOL;
        let Elem::D(d) = to else { return a.v };
        let width = self.reg_type(a.elem).into_int_type().get_bit_width();
        let plain = |ty| if is_signed { self.sitofp(a.v, ty) } else { self.uitofp(a.v, ty) };
        match d {
            DType::F64 => plain(self.lanes_of(self.ctx.f64_type().into(), lanes)),
            DType::F32 => plain(self.f32_lanes(lanes)),
            _ => {
                let exact = if width <= 16 {
                    plain(self.f32_lanes(lanes))
                } else {
                    let wide = if width == 64 {
                        self.int_to_f64_sticky(a.v, is_signed, lanes)
                    } else {
                        plain(self.lanes_of(self.ctx.f64_type().into(), lanes))
                    };
                    self.f64_to_f32_odd(wide, lanes)
                };
                let held = Val { v: exact, elem: Elem::F32, lanes };
                self.float_to_float(held, to, sat)
            }
        }
    }

    fn float_to_int(&self, a: Val<'c>, to: Elem, sat: bool) -> Any<'c> {
        let lanes = a.lanes;
        let rounded = self.round_even(a.v);
        let int = self.lanes_of(self.reg_type(to), lanes);
        let name = if signed(to) { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
        let v = self.intrinsic(name, &[int, rounded.get_type()], &[rounded.into()]).expect("a value");
        let held = Val { v, elem: to, lanes };
        if sat { self.clamp_nibble(held) } else { self.wrap(held).v }
    }

    /// 4-bit types are held in 8 bits: clamp the rest of the way.
    fn clamp_nibble(&self, a: Val<'c>) -> Any<'c> {
        let (lo, hi) = match a.elem {
            Elem::D(DType::I4) => (-8i64, 7u64),
            Elem::D(DType::U4) => (0, 15),
            _ => return a.v,
        };
        let c = |x: u64| self.ints(self.ctx.i8_type().into(), x, a.lanes);
        let less = if a.is_signed() { IntPredicate::SLT } else { IntPredicate::ULT };
        let v = self.pick(self.int_compare(less, c(hi), a.v), c(hi), a.v);
        if a.is_signed() { self.pick(self.int_compare(less, v, c(lo as u64)), c(lo as u64), v) } else { v }
    }

    fn int_to_int(&self, a: Val<'c>, to: Elem, sat: bool) -> Any<'c> {
        let lanes = a.lanes;
        let v = if sat { self.clamp_to(a, to) } else { a.v };
        let (from_w, to_w) = (
            self.reg_type(a.elem).into_int_type().get_bit_width(),
            self.reg_type(to).into_int_type().get_bit_width(),
        );
        let ty = self.lanes_of(self.reg_type(to), lanes);
        let v = match from_w.cmp(&to_w) {
            std::cmp::Ordering::Greater => self.trunc(v, ty),
            std::cmp::Ordering::Equal => v,
            std::cmp::Ordering::Less if signed(a.elem) => self.sext(v, ty),
            std::cmp::Ordering::Less => self.zext(v, ty),
        };
        self.wrap(Val { v, elem: to, lanes }).v
    }

    /// Clamps an integer to the range of another integer type, in its own width.
    fn clamp_to(&self, a: Val<'c>, to: Elem) -> Any<'c> {
        let bits = |e: Elem| e.dtype().map_or(64, |d| if d == DType::Bool { 1 } else { d.bits() });
        let (from_signed, to_signed) = (signed(a.elem) && a.elem != Elem::BOOL, signed(to));
        let ty = self.reg_type(a.elem);
        let c = |x: u64| self.ints(ty, x, a.lanes);
        let less = if from_signed { IntPredicate::SLT } else { IntPredicate::ULT };
        let mut v = a.v;
        let to_bits = bits(to);
        let max: u64 = if to_signed { (1u64 << (to_bits - 1)) - 1 } else { u64::MAX >> (64 - to_bits) };
        let own_max: u64 =
            if from_signed { (1u64 << (bits(a.elem) - 1)) - 1 } else { u64::MAX >> (64 - bits(a.elem)) };
        if max < own_max {
            v = self.pick(self.int_compare(less, c(max), v), c(max), v);
        }
        if from_signed {
            let min: i64 = if to_signed { -1i64 << (to_bits - 1) } else { 0 };
            let own_min: i64 = -1i64 << (bits(a.elem) - 1);
            if min > own_min {
                v = self.pick(self.int_compare(less, v, c(min as u64)), c(min as u64), v);
            }
        }
        v
    }
}
