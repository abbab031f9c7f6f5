//! `print`: a line of texts, scalars and tiles, written as the interpreter writes it.

use super::emit::Int;
use super::error::Result;
use super::frame::Frame;
use super::value::{Val, signed};
use pantile_abi::DType;
use pantile_ir::program::{Elem, ExprId, PRINTED, Text};

impl<'a, 'c> Frame<'a, 'c> {
    pub fn print(&self, parts: &[Text]) -> Result<()> {
        for part in parts {
            match part {
                Text::Str(s) => self.print_text(s),
                Text::Value(x) if self.kernel.body.type_of(*x).is_tile() => self.print_tile(*x)?,
                Text::Value(x) => self.print_value(self.scalar(*x)?),
            }
        }
        self.e.call_extern("pantile_print_end", None, &[], &[]);
        Ok(())
    }

    fn print_text(&self, s: &str) {
        let e = self.e;
        let text = e.b.build_global_string_ptr(s, "text").unwrap().as_pointer_value();
        let types = [e.ptr_type().into(), e.i64().into()];
        e.call_extern("pantile_print_text", None, &[text.into(), e.int(s.len() as i64).into()], &types);
    }

    fn print_value(&self, v: Val<'c>) {
        let e = self.e;
        let bits: Int<'c> = match v.elem {
            Elem::D(d) if d.is_float() => {
                let width = d.bits().try_into().expect("a width");
                let raw = e.ctx.custom_width_int_type(width).expect("a width");
                let raw = e.bitcast(e.pack(v), raw.into()).into_int_value();
                e.b.build_int_cast_sign_flag(raw, e.i64(), false, "").unwrap()
            }
            elem if signed(elem) => e.convert(v, Elem::D(DType::I64), false).int(),
            _ => e.convert(v, Elem::D(DType::U64), false).int(),
        };
        let types = [e.i64().into(), e.i64().into()];
        let number = e.int(elem_number(v.elem) as i64);
        e.call_extern("pantile_print_value", None, &[number.into(), bits.into()], &types);
    }

    /// `[2, 3]: 1 2 3 4 5 6`, with the valid box where it is not full.
    fn print_tile(&self, x: ExprId) -> Result<()> {
        let e = self.e;
        let shape = self.kernel.body.type_of(x).shape().to_vec();
        let extents: Vec<String> = shape.iter().map(|n| n.to_string()).collect();
        let (mem, bounds) = self.materialize(x)?;
        self.print_text(&format!("[{}]", extents.join(", ")));
        let mut full = e.bool(true);
        for (b, &n) in bounds.iter().zip(&shape) {
            full = e.and(full, e.and(e.eq(b.lo, e.int(0)), e.eq(b.hi, e.int(n as i64))));
        }
        e.if_(
            full,
            || {},
            || {
                for (i, b) in bounds.iter().enumerate() {
                    self.print_text(if i == 0 { " valid [" } else { ", " });
                    self.print_value(Val::index(b.lo));
                    self.print_text("..");
                    self.print_value(Val::index(b.hi));
                }
                self.print_text("]");
            },
        );
        self.print_text(":");
        let shown = e.alloca(e.i64(), "shown");
        e.store(shown, e.int(0), 8);
        self.each_element(&bounds, &mut |step| {
            let v = self.load_tile(&mem, step.pos, 1);
            e.if_(
                e.lt(e.load_int(shown), e.int(PRINTED as i64)),
                || {
                    self.print_text(" ");
                    self.print_value(v);
                },
                || {},
            );
            e.count(shown, e.int(1));
            Ok(())
        })?;
        e.if_(e.lt(e.int(PRINTED as i64), e.load_int(shown)), || self.print_text(" ..."), || {});
        Ok(())
    }
}

/// How compiled code names an element type to [`super::externs`].
fn elem_number(elem: Elem) -> usize {
    match elem {
        Elem::Index => 0,
        Elem::D(d) => 1 + DType::ALL.iter().position(|&o| o == d).unwrap_or_default(),
    }
}

/// The element type of a number that [`elem_number`] gave.
pub fn numbered_elem(n: u64) -> Elem {
    let at = n.checked_sub(1).and_then(|i| DType::ALL.get(i as usize));
    at.map_or(Elem::Index, |&d| Elem::D(d))
}
