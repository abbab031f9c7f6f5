"""Every constant that says how far a computed number may lie from the exact one.

Nothing here knows a kernel. A reference gives a value in float64 and an absolute bound on the error of the arithmetic
that leads to it, as a function of the accumulate type's unit roundoff; `allowed` adds the rounding of the result to its
own type, componentwise. No tolerance is chosen by hand.
"""

import numpy as np

# dtype: (unit roundoff, smallest positive subnormal, largest finite), round to nearest
FLOATS = {
    "f8e4m3": (2.0**-4, 2.0**-9, 448.0),
    "f8e5m2": (2.0**-3, 2.0**-16, 57344.0),
    "f16": (2.0**-11, 2.0**-24, 65504.0),
    "bf16": (2.0**-8, 2.0**-133, float(np.float32(3.3895313892515355e38))),
    "f32": (2.0**-24, 2.0**-149, float(np.finfo(np.float32).max)),
    "f64": (2.0**-53, 2.0**-1074, float(np.finfo(np.float64).max)),
}

# the accumulate type of a product or sum over elements of a type
ACC = {"f8e4m3": "f32", "f8e5m2": "f32", "f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64", "i8": "i32", "u8": "i32"}

# a library function (exp, log, erf, tanh, sin, cos, rsqrt, …) is at most this many unit roundoffs off; approximate forms
MATH = 4
APPROX = 32


def unit(dtype):
    """Unit roundoff of a float type; 0 for integers, whose arithmetic is exact."""
    return FLOATS[dtype][0] if dtype in FLOATS else 0.0


def gamma(n, u):
    """Higham's bound on n successive roundings, in any order and with or without fma."""
    n = np.asarray(n, dtype=np.float64)
    return np.where(n * u < 0.5, n * u / (1 - np.minimum(n * u, 0.5)), np.inf)


def allowed(value, error, dtype):
    """How far a result of type `dtype` may lie from `value`, componentwise: error of the arithmetic, then rounding."""
    if dtype not in FLOATS:
        return np.zeros_like(np.asarray(value, dtype=np.float64))
    u, tiny, _ = FLOATS[dtype]
    return error + u * (np.abs(value) + error) + tiny


def judge(got, value, error, dtype):
    """Worst ratio of distance to allowance, and where. NaN must meet NaN, infinity infinity of the same sign.

    A finite value that rounds beyond the type's range may come out as infinity.
    """
    got, value = np.asarray(got, dtype=np.float64), np.asarray(value, dtype=np.float64)
    if got.shape != value.shape:
        return np.inf, f"shape {got.shape}, expected {value.shape}"
    if got.size == 0:
        return 0.0, "empty"
    with np.errstate(all="ignore"):
        limit = np.broadcast_to(allowed(value, error, dtype), value.shape)
        away = np.abs(got - value)
        ratio = np.where(away == 0, 0.0, away / np.where(limit == 0, np.finfo(np.float64).tiny, limit))
        same = (np.isnan(got) & np.isnan(value)) | (np.isinf(value) & (got == value))
        if dtype in FLOATS:
            top = FLOATS[dtype][2]
            same |= np.isinf(got) & (np.abs(value) + limit > top) & (np.sign(got) == np.sign(value))
        ratio = np.where(same, 0.0, np.where(np.isnan(ratio), np.inf, ratio))
    at = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    where = f"at {list(map(int, at))}: got {got[at]!r}, expected {value[at]!r}, allowed ±{limit[at]:.3g}"
    return float(ratio[at]), where
