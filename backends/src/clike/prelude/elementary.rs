//! Elementary functions: `pantile_ir::math`'s definitions instantiated with text, so that a device gives the bits that
//! the interpreter and the CPU give.
//!
//! The compiler must not contract what stands here: either every operation is an intrinsic that says how it rounds, or
//! the function forbids it.

use super::Function;
use crate::clike::tree::Ty;
use pantile_ir::math::{Float, Lanes, emit_f32, emit_f64, fma_to_odd};
use pantile_ir::program::MathFn;
use std::cell::RefCell;

/// How a vendor writes operations that round once each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `__fadd_rn` and the like
    Intrinsics,
    /// operators, with contraction forbidden by a pragma
    Pragma,
}

struct Writer {
    style: Arithmetic,
    lines: RefCell<Vec<String>>,
    needs: RefCell<Vec<String>>,
}

/// Number of the line that holds a value; arguments come first.
type Id = usize;

const ARGUMENTS: usize = 3;

pub(super) fn find(style: Arithmetic, family: &str, ty: Ty) -> Option<Function> {
    let w = Writer { style, lines: RefCell::default(), needs: RefCell::default() };
    let (arity, result) = if family == "fma_to_odd" && ty == Ty::F32 {
        (3, fma_to_odd(&w, 0, 1, 2))
    } else {
        let f = MathFn::from_name(family)?;
        let args: Vec<Id> = (0..f.arity()).collect();
        let result = if ty == Ty::F32 {
            emit_f32(&w, f, &args)
        } else if ty == Ty::F64 {
            emit_f64(&w, f, &args)
        } else {
            None
        };
        (f.arity(), result?)
    };
    let t = ty.name();
    let params: Vec<String> = (0..arity).map(|i| format!("{t} {}", name(i))).collect();
    let pragma = if style == Arithmetic::Pragma { "#pragma clang fp contract(off)\n" } else { "" };
    let body: String = w.lines.borrow().iter().map(|l| format!("    {l}\n")).collect();
    let text = format!(
        "FN {t} {family}_{}({}) {{\n{pragma}{body}    return {};\n}}\n",
        ty.tag(),
        params.join(", "),
        name(result)
    );
    let needs = w.needs.borrow();
    Some(Function::new(text, &needs.iter().map(String::as_str).collect::<Vec<_>>()))
}

fn name(id: Id) -> String {
    match id {
        0 => "x".into(),
        1 => "y".into(),
        2 => "z".into(),
        n => format!("t{}", n - ARGUMENTS),
    }
}

impl Writer {
    fn line(&self, ty: &str, text: String) -> Id {
        let mut lines = self.lines.borrow_mut();
        let id = ARGUMENTS + lines.len();
        lines.push(format!("const {ty} {} = {text};", name(id)));
        id
    }

    fn call(&self, ty: &str, f: &str, args: &[Id]) -> Id {
        let args: Vec<String> = args.iter().map(|&a| name(a)).collect();
        self.line(ty, format!("{f}({})", args.join(", ")))
    }

    fn prelude(&self, ty: &str, f: &str, args: &[Id]) -> Id {
        self.needs.borrow_mut().push(f.to_string());
        self.call(ty, f, args)
    }

    /// An operator, or the intrinsic that rounds it. A quotient of floats is exact only as one.
    fn round(&self, ty: &str, op: &str, intrinsic: &str, a: Id, b: Id) -> Id {
        match self.style {
            _ if intrinsic == "__fdiv_rn" => self.call(ty, intrinsic, &[a, b]),
            Arithmetic::Intrinsics => self.call(ty, intrinsic, &[a, b]),
            Arithmetic::Pragma => self.line(ty, format!("{} {op} {}", name(a), name(b))),
        }
    }
}

macro_rules! float {
    ($t:ident, $c:literal, $int:literal, $unsigned:literal, $tag:literal, $letter:literal, $fma:literal, $div:literal,
     $bits:literal, $value:literal, $f:literal, $literal:ident) => {
        impl Float<$t> for Writer {
            type V = Id;
            type I = Id;
            type M = Id;

            fn splat(&self, x: $t) -> Id {
                self.line($c, $literal(x))
            }
            fn add(&self, a: Id, b: Id) -> Id {
                self.round($c, "+", concat!("__", $letter, "add_rn"), a, b)
            }
            fn sub(&self, a: Id, b: Id) -> Id {
                self.round($c, "-", concat!("__", $letter, "sub_rn"), a, b)
            }
            fn mul(&self, a: Id, b: Id) -> Id {
                self.round($c, "*", concat!("__", $letter, "mul_rn"), a, b)
            }
            fn div(&self, a: Id, b: Id) -> Id {
                self.round($c, "/", $div, a, b)
            }
            fn fma(&self, a: Id, b: Id, c: Id) -> Id {
                self.call(
                    $c,
                    if self.style == Arithmetic::Intrinsics { $fma } else { concat!("fma", $f) },
                    &[a, b, c],
                )
            }
            fn sqrt(&self, a: Id) -> Id {
                self.prelude($c, concat!("root_", $tag), &[a])
            }
            fn neg(&self, a: Id) -> Id {
                self.line($c, format!("-{}", name(a)))
            }
            fn abs(&self, a: Id) -> Id {
                self.call($c, concat!("fabs", $f), &[a])
            }
            fn floor(&self, a: Id) -> Id {
                self.call($c, concat!("floor", $f), &[a])
            }
            fn ceil(&self, a: Id) -> Id {
                self.call($c, concat!("ceil", $f), &[a])
            }
            fn round_even(&self, a: Id) -> Id {
                self.call($c, concat!("rint", $f), &[a])
            }
            fn minimum(&self, a: Id, b: Id) -> Id {
                self.prelude($c, concat!("min_", $tag), &[a, b])
            }
            fn maximum(&self, a: Id, b: Id) -> Id {
                self.prelude($c, concat!("max_", $tag), &[a, b])
            }
            fn lt(&self, a: Id, b: Id) -> Id {
                self.line("bool", format!("{} < {}", name(a), name(b)))
            }
            fn eq(&self, a: Id, b: Id) -> Id {
                self.line("bool", format!("{} == {}", name(a), name(b)))
            }
            fn mask_and(&self, a: Id, b: Id) -> Id {
                self.line("bool", format!("{} && {}", name(a), name(b)))
            }
            fn mask_or(&self, a: Id, b: Id) -> Id {
                self.line("bool", format!("{} || {}", name(a), name(b)))
            }
            fn mask_not(&self, a: Id) -> Id {
                self.line("bool", format!("!{}", name(a)))
            }
            fn select(&self, m: Id, yes: Id, no: Id) -> Id {
                self.line($c, format!("{} ? {} : {}", name(m), name(yes), name(no)))
            }
            fn bits_of(&self, a: Id) -> Id {
                self.call($int, $bits, &[a])
            }
            fn of_bits(&self, a: Id) -> Id {
                self.call($c, $value, &[a])
            }
            fn int_splat(&self, x: i64) -> Id {
                self.line(
                    $int,
                    crate::clike::write::literal(x.into(), if $f == "f" { Ty::I32 } else { Ty::I64 }),
                )
            }
            fn int_add(&self, a: Id, b: Id) -> Id {
                self.line($int, format!("({})(({u}){} + ({u}){})", $int, name(a), name(b), u = $unsigned))
            }
            fn int_sub(&self, a: Id, b: Id) -> Id {
                self.line($int, format!("({})(({u}){} - ({u}){})", $int, name(a), name(b), u = $unsigned))
            }
            fn int_and(&self, a: Id, b: Id) -> Id {
                self.line($int, format!("{} & {}", name(a), name(b)))
            }
            fn int_or(&self, a: Id, b: Id) -> Id {
                self.line($int, format!("{} | {}", name(a), name(b)))
            }
            fn int_xor(&self, a: Id, b: Id) -> Id {
                self.line($int, format!("{} ^ {}", name(a), name(b)))
            }
            fn int_shl(&self, a: Id, n: u32) -> Id {
                self.line($int, format!("({})(({}){} << {n})", $int, $unsigned, name(a)))
            }
            fn int_shr(&self, a: Id, n: u32) -> Id {
                self.line($int, format!("{} >> {n}", name(a)))
            }
            fn int_eq(&self, a: Id, b: Id) -> Id {
                self.line("bool", format!("{} == {}", name(a), name(b)))
            }
            fn int_to_float(&self, a: Id) -> Id {
                self.line($c, format!("({}){}", $c, name(a)))
            }
        }
    };
}

float!(
    f32,
    "float",
    "int",
    "u32",
    "f32",
    "f",
    "__fmaf_rn",
    "__fdiv_rn",
    "__float_as_int",
    "__int_as_float",
    "f",
    f32_literal
);
float!(
    f64,
    "double",
    "i64",
    "u64",
    "f64",
    "d",
    "__fma_rn",
    "__ddiv_rn",
    "__double_as_longlong",
    "__longlong_as_double",
    "",
    f64_literal
);

impl Lanes for Writer {
    fn widen(&self, a: Id) -> Id {
        self.line("double", format!("(double){}", name(a)))
    }
    fn narrow(&self, a: Id) -> Id {
        self.line("float", format!("(float){}", name(a)))
    }
}

/// The shortest text that reads as the number.
pub fn f32_literal(x: f32) -> String {
    if x.is_finite() { format!("{x:?}f") } else { format!("__uint_as_float(0x{:08x}u)", x.to_bits()) }
}

pub fn f64_literal(x: f64) -> String {
    if x.is_finite() {
        format!("{x:?}")
    } else {
        format!("__longlong_as_double((long long)0x{:016x}ull)", x.to_bits())
    }
}
