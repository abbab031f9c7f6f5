//! The functions of the language in one table: what may be called, how, and in a few words why. `docs/functions.md`
//! is made from it.

use crate::program::{AtomicOp, MathFn};

/// How a function is elaborated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Math(MathFn),
    Atomic(AtomicOp),
    /// A reduction of a tile with this combiner, over an axis or all of it.
    Fold(&'static str),
    /// A reduction along the last axis.
    RowFold(&'static str),
    /// Position of the extreme: `true` for the largest.
    Position(bool),
    Other,
}

/// One function.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub name: &'static str,
    /// How it is written.
    pub form: &'static str,
    pub doc: &'static str,
    pub(crate) kind: Kind,
}

const fn math(f: MathFn, form: &'static str, doc: &'static str) -> Function {
    Function { name: f.name(), form, doc, kind: Kind::Math(f) }
}

const fn atomic(op: AtomicOp, form: &'static str, doc: &'static str) -> Function {
    Function { name: op.name(), form, doc, kind: Kind::Atomic(op) }
}

const fn other(name: &'static str, form: &'static str, doc: &'static str) -> Function {
    Function { name, form, doc, kind: Kind::Other }
}

const fn fold(name: &'static str, comb: &'static str, form: &'static str, doc: &'static str) -> Function {
    Function { name, form, doc, kind: Kind::Fold(comb) }
}

const fn rows(name: &'static str, comb: &'static str, form: &'static str, doc: &'static str) -> Function {
    Function { name, form, doc, kind: Kind::RowFold(comb) }
}

/// All functions, by what they are for.
pub const TABLE: &[Function] = &[
    // element by element
    math(MathFn::Exp, "exp(x)", "e to the power x"),
    math(MathFn::Exp2, "exp2(x)", "2 to the power x"),
    math(MathFn::Log, "log(x)", "natural logarithm"),
    math(MathFn::Log2, "log2(x)", "logarithm to base 2"),
    math(MathFn::Sqrt, "sqrt(x)", "square root, correctly rounded"),
    math(MathFn::Rsqrt, "rsqrt(x)", "1 / sqrt(x)"),
    math(MathFn::Rcp, "rcp(x)", "1 / x"),
    math(MathFn::Tanh, "tanh(x)", "hyperbolic tangent"),
    math(MathFn::Sin, "sin(x)", "sine of an angle in radians"),
    math(MathFn::Cos, "cos(x)", "cosine of an angle in radians"),
    math(MathFn::Erf, "erf(x)", "error function"),
    math(MathFn::Pow, "pow(x, y)", "x to the power y"),
    math(MathFn::Fma, "fma(a, b, c)", "a * b + c, rounded once"),
    math(MathFn::Floor, "floor(x)", "largest whole number not above x"),
    math(MathFn::Ceil, "ceil(x)", "smallest whole number not below x"),
    math(MathFn::Round, "round(x)", "nearest whole number, halves to even"),
    math(MathFn::Abs, "abs(x)", "absolute value"),
    math(
        MathFn::Min,
        "min(a, b)",
        "the smaller; NaN wins, -0 is below 0. With one tile: its smallest element, see `sum`",
    ),
    math(
        MathFn::Max,
        "max(a, b)",
        "the larger; NaN wins, 0 is above -0. With one tile: its largest element, see `sum`",
    ),
    math(MathFn::Clamp, "clamp(x, lo, hi)", "min(max(x, lo), hi)"),
    math(MathFn::IsNan, "isnan(x)", "whether x is not a number"),
    math(MathFn::IsInf, "isinf(x)", "whether x is infinite"),
    math(MathFn::CeilDiv, "ceildiv(a, b)", "a / b of integers, rounded up"),
    other("where", "where(c, a, b)", "a where c holds, else b; all three are evaluated"),
    other("identity", "identity(x)", "x itself: the epilogue that does nothing"),
    other(
        "bits",
        "bits(T, x)",
        "the same bits seen as type T; the last axis of a tile scales with the width",
    ),
    // tiles
    other(
        "iota",
        "iota(n)",
        "the tile 0, 1, … n-1 of `index`; `iota(1, n, axis = 1)` counts along another axis",
    ),
    other(
        "rows",
        "rows(t)",
        "row number of each element of t (axis 0 of the last two), 1 long on the other axes",
    ),
    other("cols", "cols(t)", "column number of each element of t (last axis), 1 long on the other axes"),
    other(
        "reshape",
        "reshape(t, n, m)",
        "the elements of t in row-major order under another shape; t must be full",
    ),
    other("broadcast", "broadcast(t, n, m)", "t with its extents of 1 stretched"),
    fold("sum", "add", "sum(t), sum(t, axis = k)", "sum of all valid elements, or along one axis"),
    fold("prod", "mul", "prod(t), prod(t, axis = k)", "product of all valid elements, or along one axis"),
    fold("any", "or", "any(t), any(t, axis = k)", "whether a valid element is true"),
    fold("all", "and", "all(t), all(t, axis = k)", "whether all valid elements are true"),
    rows("rowsum", "add", "rowsum(t)", "sum along the last axis"),
    rows("rowmax", "max", "rowmax(t)", "largest element along the last axis"),
    rows("rowmin", "min", "rowmin(t)", "smallest element along the last axis"),
    Function {
        name: "argmax",
        form: "argmax(t), argmax(t, axis = k)",
        doc: "position (i32) of the largest valid element, the first of equals; a NaN is the largest",
        kind: Kind::Position(true),
    },
    Function {
        name: "argmin",
        form: "argmin(t), argmin(t, axis = k)",
        doc: "position (i32) of the smallest valid element, the first of equals; a NaN is the smallest",
        kind: Kind::Position(false),
    },
    other(
        "reduce",
        "reduce(comb, t, axis = k)",
        "fold with add, mul, min, max, and, or, xor or a `combine`; a tuple of tiles for tuples",
    ),
    other(
        "scan",
        "scan(comb, t, axis = k, reverse = b, exclusive = b)",
        "running fold along an axis, the last if none is named",
    ),
    other("cumsum", "cumsum(t, axis = k)", "running sum"),
    // threads
    other(
        "allreduce",
        "allreduce(comb, x, over = axis)",
        "fold over thread axes `a`, `(a, b)`, or `warp`, `group`, `block`; every thread has the result",
    ),
    other("shfl", "shfl(x, lane, width = n)", "x of another lane of the warp"),
    other("shfl_up", "shfl_up(x, n, width = n)", "x of the lane n below"),
    other("shfl_down", "shfl_down(x, n, width = n)", "x of the lane n above"),
    other(
        "shfl_xor",
        "shfl_xor(x, mask, width = n)",
        "x of the lane whose number differs in the bits of mask",
    ),
    other(
        "vote_any",
        "vote_any(c, over = warp)",
        "whether c holds on a thread of the team (warp if none is named)",
    ),
    other("vote_all", "vote_all(c, over = warp)", "whether c holds on all threads of the team"),
    other("ballot", "ballot(c)", "mask (u32) of the warp's lanes on which c holds"),
    atomic(
        AtomicOp::Add,
        "atomic_add(P[i], x)",
        "P[i] += x in one step; gives the value before. Also of a region and a tile, without a value",
    ),
    atomic(AtomicOp::Min, "atomic_min(P[i], x)", "P[i] = min(P[i], x) in one step"),
    atomic(AtomicOp::Max, "atomic_max(P[i], x)", "P[i] = max(P[i], x) in one step"),
    atomic(AtomicOp::And, "atomic_and(P[i], x)", "P[i] &= x in one step"),
    atomic(AtomicOp::Or, "atomic_or(P[i], x)", "P[i] |= x in one step"),
    atomic(AtomicOp::Xor, "atomic_xor(P[i], x)", "P[i] ^= x in one step"),
    atomic(AtomicOp::Exchange, "atomic_exchange(P[i], x)", "P[i] = x in one step; gives the value before"),
    atomic(
        AtomicOp::CompareExchange,
        "atomic_cas(P[i], e, x)",
        "P[i] = x if it is e, in one step; gives the value before",
    ),
    other(
        "fence",
        "fence(proxy, over = team)",
        "makes writes visible to copy and matrix engines (`proxy`), or pins registers before an issue (`registers`)",
    ),
    // finding faults
    other(
        "print",
        "print(\"text\", x, …)",
        "writes its parts as a line, with a space where words or numbers would run together; for finding faults",
    ),
    other(
        "assert",
        "assert(c, \"text\")",
        "stops with the text where c does not hold, in interpreter, simulator and debug builds",
    ),
];

pub fn find(name: &str) -> Option<&'static Function> {
    TABLE.iter().find(|f| f.name == name)
}

/// Numbers that the language declares.
pub(crate) fn constant(name: &str) -> Option<f64> {
    Some(match name {
        "LOG2E" => std::f64::consts::LOG2_E,
        "PI" => std::f64::consts::PI,
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => return None,
    })
}

pub(crate) fn is_predeclared(name: &str) -> bool {
    find(name).is_some() || constant(name).is_some() || super::exprs::elem_from_name(name).is_some()
}

/// What a dim or parameter may not be called, and what the word is: dumps write these words though the text did not,
/// and keep the names of dims and parameters.
pub fn kept_for_dumps(name: &str) -> Option<&'static str> {
    match name {
        "broadcast" | "bits" | "ceildiv" | "iota" | "reduce" | "reshape" | "scan" | "where" => {
            Some("a function of the language")
        }
        "inf" | "nan" | "none" | "target" => Some("a value of the language"),
        _ if super::exprs::elem_from_name(name).is_some() => Some("a type of the language"),
        _ => None,
    }
}

/// The table as a page of the documentation.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Functions of the language\n\nMade from the compiler's own table. `T(x)` converts to type T, `T.sat(x)` converts and clamps, `f.approx(x)` is the fast form of exp, exp2, log, log2, sqrt, rsqrt, rcp, tanh, sin and cos.\n\n| call | meaning |\n|---|---|\n",
    );
    for f in TABLE {
        text += &format!("| `{}` | {} |\n", f.form.replace('|', "\\|"), f.doc.replace('|', "\\|"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_math_function_is_there() {
        for (i, f) in TABLE.iter().enumerate() {
            assert!(TABLE[i + 1..].iter().all(|g| g.name != f.name), "{}", f.name);
            assert!(f.form.starts_with(f.name), "{}", f.name);
        }
        for f in MathFn::ALL {
            assert!(matches!(find(f.name()), Some(Function { kind: Kind::Math(g), .. }) if *g == f));
        }
        for op in AtomicOp::ALL {
            assert!(matches!(find(op.name()), Some(Function { kind: Kind::Atomic(o), .. }) if *o == op));
        }
    }
}
